"""What torchvision and torchaudio deprecated, renamed or removed, beside ``pretrained=``."""

from __future__ import annotations

from typing import Final

from torchlint.semantics.api.changes import Upgrade, of, renamed

_VISION = "https://github.com/pytorch/vision/releases/tag/v"
_AUDIO = "https://github.com/pytorch/audio/issues/3902"
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
            note='with `num_classes="400"`, and which lays out its files otherwise',
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


def _audio() -> tuple[Upgrade, ...]:
    codec = "use TorchCodec"
    notes = {
        "info": codec,
        "AudioMetaData": codec,
        "io.StreamReader": codec,
        "io.StreamWriter": codec,
        "io.AudioEffector": codec,
        "sox_effects.apply_effects_tensor": "call sox itself, or use another library",
        "sox_effects.apply_effects_file": "call sox itself, or use another library",
        "functional.apply_codec": codec,
        "kaldi_io.read_mat_scp": "use the package `kaldiio`",
        "kaldi_io.read_mat_ark": "use the package `kaldiio`",
        "get_audio_backend": "there is no backend to choose any more",
        "set_audio_backend": "there is no backend to choose any more",
        "list_audio_backends": "there is no backend to choose any more",
    }
    warned = {"functional.apply_codec": "2.1", "get_audio_backend": "2.2", "set_audio_backend": "2.2"}
    return tuple(
        Upgrade(
            symbol=f"torchaudio.{name}",
            deprecated=warned.get(name),
            removed="2.9",
            note=note,
            source=_AUDIO,
        )
        for name, note in notes.items()
    )


ROWS: Final = (*_names(), *_arguments(), *_audio())
