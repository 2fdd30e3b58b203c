"""What torchvision and torchaudio deprecated, renamed or removed, beside ``pretrained=``.

Since 2.9, torchaudio no longer reads and writes files.
"""

from __future__ import annotations

from typing import Final

from torchlint.semantics.api.changes import Upgrade, of, renamed

_VISION = "https://github.com/pytorch/vision/releases/tag/v"
_MODELS = ["alexnet", "densenet", "googlenet", "inception", "mobilenetv2", "resnet", "squeezenet", "vgg"]


def _names() -> tuple[Upgrade, ...]:
    return (
        *(
            Upgrade(
                symbol=f"torchvision.transforms.{old}",
                deprecated="0.8",
                removed="0.12",
                replacement=f"torchvision.transforms.{new}",
                exact=True,
                source=f"{_VISION}0.12.0",
            )
            for old, new in (("Scale", "Resize"), ("RandomSizedCrop", "RandomResizedCrop"))
        ),
        Upgrade(
            symbol="torchvision.transforms.functional_tensor.rgb_to_grayscale",
            removed="0.17",
            replacement="torchvision.transforms.functional.rgb_to_grayscale",
            exact=True,
            source=f"{_VISION}0.17.0",
        ),
        Upgrade(
            symbol="torchvision.models.utils.load_state_dict_from_url",
            removed="0.11",
            replacement="torch.hub.load_state_dict_from_url",
            exact=True,
            source=f"{_VISION}0.11.0",
        ),
        *(
            Upgrade(
                symbol=f"torchvision.models.{name}.load_state_dict_from_url",
                removed="0.13",
                replacement="torch.hub.load_state_dict_from_url",
                exact=True,
                source=f"{_VISION}0.13.0",
            )
            for name in _MODELS
        ),
        *(
            Upgrade(
                symbol=f"torchvision.models.{name}.model_urls",
                removed="0.15",
                note="use the address of the weights, `ResNet50_Weights.IMAGENET1K_V1.url`",
                source=f"{_VISION}0.13.0",
            )
            for name in _MODELS
        ),
        Upgrade(
            symbol="torchvision.models.mobilenetv2.ConvBNReLU",
            removed="0.14",
            note="use `torchvision.ops.Conv2dNormActivation` with `activation_layer=nn.ReLU6`",
            source=f"{_VISION}0.12.0",
        ),
        Upgrade(
            symbol="torchvision.datasets.Kinetics400",
            deprecated="0.11",
            removed="0.14",
            replacement="torchvision.datasets.Kinetics",
            since="0.11",
            note='with `num_classes="400"` and a different file layout',
            source=f"{_VISION}0.12.0",
        ),
        *(
            Upgrade(
                symbol=f"torchvision.transforms.v2.{old}",
                removed="0.16",
                replacement=f"torchvision.transforms.v2.{new}",
                since="0.16",
                exact=True,
                source=f"{_VISION}0.16.0",
            )
            for old, new in (
                ("ToImageTensor", "ToImage"),
                ("SanitizeBoundingBox", "SanitizeBoundingBoxes"),
                ("ClampBoundingBox", "ClampBoundingBoxes"),
            )
        ),
        *(
            Upgrade(
                symbol=f"torchvision.datapoints.{name}",
                removed="0.16",
                replacement=f"torchvision.tv_tensors.{name}",
                since="0.16",
                exact=True,
                source=f"{_VISION}0.16.0",
            )
            for name in ("Image", "Video", "Mask")
        ),
        Upgrade(
            symbol="torchvision.transforms.v2.functional.get_image_size",
            deprecated="0.15",
            replacement="torchvision.transforms.v2.functional.get_size",
            since="0.16",
            note="which returns the height first",
            source="https://docs.pytorch.org/vision/stable/transforms.html",
        ),
        Upgrade(
            symbol="torchvision.transforms.v2.functional.to_tensor",
            deprecated="0.15",
            note="use `to_image` and `to_dtype` with `scale=True`",
            owner="TL906",
            source="https://docs.pytorch.org/vision/stable/transforms.html",
        ),
        Upgrade(
            symbol="torchvision.transforms.v2.ToTensor",
            deprecated="0.15",
            note="use `ToImage` and `ToDtype` with `scale=True`",
            owner="TL906",
            source="https://docs.pytorch.org/vision/stable/generated/torchvision.transforms.v2.ToTensor.html",
        ),
    )


def _arguments() -> tuple[Upgrade, ...]:
    source = f"{_VISION}0.12.0"
    interpolated = ("transforms.RandomRotation", "transforms.functional.rotate")
    filled = ("transforms.RandomAffine", "transforms.functional.affine")
    return (
        *of("torchvision.utils.make_grid", source, renamed("range", "value_range", at="0.9", removed="0.14")),
        Upgrade(
            symbol="torchvision.utils.save_image",
            argument="range",
            deprecated="0.9",
            removed="0.14",
            replacement="value_range",
            since="0.9",
            exact=True,
            witness="torchvision.utils.make_grid:range",
            source=source,
        ),
        *(
            row
            for name in (*interpolated, *filled)
            for row in of(
                f"torchvision.{name}", source, renamed("resample", "interpolation", at="0.9", removed="0.14")
            )
        ),
        *(
            row
            for name in filled
            for row in of(
                f"torchvision.{name}", source, renamed("fillcolor", "fill", at="0.9", removed="0.14")
            )
        ),
    )


_CODEC = "use TorchCodec"
_WARNS_OF_IMAGES = (
    "read_image read_file write_file write_jpeg write_png decode_image decode_jpeg decode_png decode_gif "
    "decode_webp decode_avif decode_heic encode_jpeg encode_png ImageReadMode"
)


def _files() -> tuple[Upgrade, ...]:
    """Return what read and wrote images and videos."""
    return (
        *(
            Upgrade(
                symbol=f"torchvision.io.{name}",
                deprecated="0.22",
                removed="0.26",
                note=_CODEC,
                source=f"{_VISION}0.22.0",
            )
            for name in ("read_video", "read_video_timestamps", "write_video")
        ),
        *(
            Upgrade(
                symbol=f"torchvision.io.{name}", deprecated="0.29", note=_CODEC, source=f"{_VISION}0.29.0"
            )
            for name in _WARNS_OF_IMAGES.split()
        ),
    )


def _other_homes() -> tuple[Upgrade, ...]:
    """Return what left the module that it was defined in; where it is public, it means the same."""
    segmentation = "fcn_resnet50 fcn_resnet101 deeplabv3_resnet50 deeplabv3_resnet101"

    def row(
        old: str, new: str, removed: str, *, at: str | None = None, since: str | None = None, note: str = ""
    ) -> Upgrade:
        return Upgrade(
            symbol=f"torchvision.{old}",
            deprecated=at,
            removed=removed,
            replacement=new,
            since=since,
            exact=not note,
            note=note,
            source=f"{_VISION}{removed}.0",
        )

    return (
        *(
            row(f"models.segmentation.segmentation.{name}", f"torchvision.models.segmentation.{name}", "0.14")
            for name in segmentation.split()
        ),
        *(
            row(
                f"models.segmentation.segmentation.{name}",
                f"torchvision.models.segmentation.{name}",
                "0.14",
                since="0.9",
            )
            for name in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")
        ),
        *(
            row(f"ops.misc.{name}", f"torch.nn.{name}", "0.12", at="0.8")
            for name in ("BatchNorm2d", "Conv2d", "ConvTranspose2d")
        ),
        row(
            "models.mobilenetv3.SqueezeExcitation",
            "torchvision.ops.SqueezeExcitation",
            "0.14",
            at="0.11",
            since="0.12",
            note="which takes the squeezed channels instead of a factor",
        ),
        *(
            Upgrade(
                symbol=f"torchvision.models.{name}",
                removed=removed,
                note="use `torchvision.ops.Conv2dNormActivation`",
                source=f"{_VISION}0.12.0",
            )
            for name, removed in (("mobilenet.ConvBNReLU", "0.9"), ("mobilenetv2.ConvBNActivation", "0.14"))
        ),
        row(
            "models.mobilenet.InvertedResidual",
            "torchvision.models.mobilenetv2.InvertedResidual",
            "0.9",
            since="0.9",
        ),
        row("transforms.functional.scale", "torchvision.transforms.functional.resize", "0.12"),
        *(
            row(
                f"transforms.functional_tensor.{name}",
                f"torchvision.transforms.functional.{name}",
                "0.12",
                at="0.8",
                note=_DISPATCHES,
            )
            for name in ("center_crop", "five_crop", "ten_crop")
        ),
        *(
            Upgrade(
                symbol=f"torchvision.transforms.functional_{kind}.{name}",
                removed="0.17",
                replacement=f"torchvision.transforms.functional.{name}",
                since=_CAME_LATER.get(name),
                note=_DISPATCHES,
                source=f"{_VISION}0.17.0",
            )
            for kind, names in _KERNELS.items()
            for name in f"{_KERNELS_OF_BOTH} {names}".split()
        ),
    )


_DISPATCHES = "which accepts PIL images and tensors but may order its arguments differently"
_KERNELS_OF_BOTH = (
    "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation adjust_sharpness affine "
    "autocontrast crop equalize get_dimensions get_image_num_channels get_image_size hflip invert pad "
    "perspective posterize resize rotate solarize vflip"
)
_KERNELS = {
    "tensor": "convert_image_dtype elastic_transform erase gaussian_blur normalize",
    "pil": "to_grayscale",
}
_CAME_LATER = {
    "adjust_sharpness": "0.9",
    "autocontrast": "0.9",
    "equalize": "0.9",
    "invert": "0.9",
    "posterize": "0.9",
    "solarize": "0.9",
    "get_image_size": "0.11",
    "get_image_num_channels": "0.11",
    "get_dimensions": "0.13",
    "elastic_transform": "0.14",
}


def _beta() -> tuple[Upgrade, ...]:
    """Return what the second generation of transforms called otherwise in its first release, 0.15."""

    def row(old: str, new: str, note: str = "", *, since: str = "0.15") -> Upgrade:
        return Upgrade(
            symbol=f"torchvision.{old}",
            removed="0.16",
            replacement=f"torchvision.{new}",
            since=since,
            exact=not note,
            note=note,
            source=f"{_VISION}0.16.0",
        )

    functional = "transforms.v2.functional"
    return (
        row(
            "datapoints.BoundingBox",
            "tv_tensors.BoundingBoxes",
            "with `canvas_size` instead of `spatial_size`",
            since="0.16",
        ),
        row("datapoints.BoundingBoxFormat", "tv_tensors.BoundingBoxFormat", since="0.16"),
        row("transforms.v2.ToImagePIL", "transforms.v2.ToPILImage"),
        row("transforms.v2.ConvertDtype", "transforms.v2.ToDtype", "with `scale=True`"),
        row(f"{functional}.convert_dtype", f"{functional}.to_dtype", "with `scale=True`", since="0.16"),
        row(f"{functional}.get_spatial_size", f"{functional}.get_size", since="0.16"),
        row(f"{functional}.to_image_tensor", f"{functional}.to_image", since="0.16"),
        row(f"{functional}.to_image_pil", f"{functional}.to_pil_image"),
        row(f"{functional}.is_simple_tensor", f"{functional}.is_pure_tensor", since="0.16"),
        row(
            f"{functional}.convert_format_bounding_box",
            f"{functional}.convert_bounding_box_format",
            "which orders its arguments differently",
            since="0.16",
        ),
        row(
            f"{functional}.clamp_bounding_box",
            f"{functional}.clamp_bounding_boxes",
            "with `canvas_size` instead of `spatial_size`",
            since="0.16",
        ),
        *(
            row(f"{functional}.{name}_image_tensor", f"{functional}.{name}", _DISPATCHES)
            for name in f"{_OF_IMAGES} normalize".split()
        ),
        *(
            row(f"{functional}.{name}_image_pil", f"{functional}.{name}", _DISPATCHES)
            for name in _OF_IMAGES.split()
        ),
        *(
            row(
                f"{functional}.{name}_bounding_box",
                f"{functional}.{name}",
                "which takes the `BoundingBoxes`",
            )
            for name in _OF_BOXES.split()
        ),
    )


_OF_IMAGES = (
    "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation adjust_sharpness affine "
    "autocontrast center_crop crop elastic equalize erase five_crop gaussian_blur get_dimensions "
    "get_num_channels horizontal_flip invert pad perspective posterize resize resized_crop "
    "rgb_to_grayscale rotate solarize ten_crop vertical_flip"
)
_OF_BOXES = (
    "affine center_crop crop elastic horizontal_flip pad perspective resize resized_crop rotate vertical_flip"
)


# --- torchaudio -------------------------------------------------------------------------------------------

_AUDIO = "https://github.com/pytorch/audio/issues/3902"
_SOX = "call sox directly, or use another library"
_BACKEND = "the backend can no longer be selected"
_KALDI = "use the package `kaldiio`"

# What went with 2.9, and what to do instead.
_NOTES = {
    "info": _CODEC,
    "AudioMetaData": _CODEC,
    "io.StreamReader": _CODEC,
    "io.StreamWriter": _CODEC,
    "io.AudioEffector": _CODEC,
    "functional.apply_codec": _CODEC,
    **{f"sox_effects.{name}": _SOX for name in ("apply_effects_tensor", "apply_effects_file")},
    **{f"sox_effects.{name}": _SOX for name in ("init_sox_effects", "shutdown_sox_effects", "effect_names")},
    **{
        f"utils.sox_utils.{name}": _SOX
        for name in [
            "set_seed",
            "set_verbosity",
            "set_buffer_size",
            "get_buffer_size",
            "set_use_threads",
            "list_effects",
            "list_read_formats",
            "list_write_formats",
        ]
    },
    **{
        f"kaldi_io.read_{name}": _KALDI
        for name in ["mat_scp", "mat_ark", "vec_flt_ark", "vec_flt_scp", "vec_int_ark"]
    },
    **{f"{name}_audio_backend": _BACKEND for name in ("get", "set")},
    "list_audio_backends": _BACKEND,
    "utils.download_asset": "use `torch.hub.download_url_to_file`",
}
_WARNED = {
    "sox_effects.init_sox_effects": "2.0",
    "sox_effects.shutdown_sox_effects": "2.0",
    "functional.apply_codec": "2.1",
    "get_audio_backend": "2.2",
    "set_audio_backend": "2.2",
}

_AUDIO_ROWS = (
    *(
        Upgrade(
            symbol=f"torchaudio.{name}",
            deprecated=_WARNED.get(name),
            removed="2.9",
            note=note,
            source=_AUDIO,
        )
        for name, note in _NOTES.items()
    ),
    Upgrade(symbol="torchaudio.io.play_audio", removed="2.9", note=_CODEC, source=_AUDIO),
    Upgrade(
        symbol="torchaudio.functional.compute_kaldi_pitch",
        removed="2.1",
        note="it has no replacement",
        source="https://github.com/pytorch/audio/releases/tag/v2.1.0",
    ),
    *(
        Upgrade(
            symbol=f"torchaudio.backend.{module}.{name}",
            removed="2.1",
            note=f"use `torchaudio.{name}`",
            source="https://github.com/pytorch/audio/releases/tag/v2.1.0",
        )
        for module in ("soundfile_backend", "sox_io_backend")
        for name in ("load", "save", "info")
    ),
)

ROWS: Final = (*_names(), *_files(), *_other_homes(), *_beta(), *_arguments(), *_AUDIO_ROWS)
