"""Whether the models that a program trains are convolutional networks, over images, of one size each time.

cuDNN can measure which algorithm suits a convolution best, and its kernels like the channels last; both pay
for networks that are mostly convolutions, and the first only where the shapes stay what they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import (
    ATTENTION,
    CONVOLUTION_LAYERS,
    CONVOLUTIONS,
    CROPS,
    MATRIX_PRODUCTS,
    MODELS_BY_NAME,
    RESIZES,
    has_one_size,
)
from torchlint.semantics.expansion import adds_dimension
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.program import Program, Trained
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ATTENTION_NAME = re.compile(r"attention|attn|transformer|patch", re.IGNORECASE)
# What libraries, and files that are not shown, call convolutional networks; weights and encoders included.
_NETWORK = re.compile(
    r"(?:^|_)(?:wide_?)?(?:res_?net|res_?next|vgg|dense_?net|mobile_?net|efficient_?net|u_?net|inception"
    r"|google_?net|alex_?net|squeeze_?net|shuffle_?net|reg_?net|conv_?ne(?:x)?t|mnas_?net|dcgan|deeplab|fcn"
    r"|seg_?net|dark_?net|pre_?act_?res_?net|le_?net|dpn|dla|se_?net|hr_?net|cnn|xception|pyramid_?net"
    r"|conv_?net|pix2pix|cycle_?gan|srcnn|edsr|vdsr|rdn|rcan|lenet5|stylegan)\w*$",
    re.IGNORECASE,
)
_NO_NETWORK = re.compile(
    r"vit|swin|transformer|mixer|bert|gpt|text|1d|audio|wav|speech|rnn|lstm|faster|mask_?rcnn|retina|ssd|gcn|graph",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SEGMENTATION = "segmentation_models_pytorch."
# Libraries whose networks work with channels last.
_KNOWN = ("torchvision.models.", "timm.", _SEGMENTATION, "torch.nn.")
# Texts, sounds and point clouds are as long as they are; detectors are given images as large as they are.
_LENGTHS = re.compile(
    r"vocab|token(?!_)|sentence|utterance|spectrogram|\bmel|wave?form|\bwav\b|torchaudio|librosa|torchtext|pad_sequence"
    r"|bucket|multi_?scale|bounding|\bbbox|boxes|anchors|\bcoco|detection|point_?cloud|collate_fn=(?!None)",
    re.IGNORECASE,
)
# One of these stands in whatever that pattern finds, and is looked for first: most files have none.
_LENGTH_WORDS = (
    *("vocab", "token", "sentence", "utterance", "spectrogram", "mel", "wav", "torchaudio", "librosa"),
    *("torchtext", "pad_sequence", "bucket", "multiscale", "multi_scale", "bounding", "bbox", "boxes"),
    *("anchors", "coco", "detection", "pointcloud", "point_cloud", "collate_fn="),
)
_SIZE_NAME = re.compile(
    r"^(?:args_)?(?:image|img|im|input|crop|train_crop|patch|load|fine|image_patch|frame|tile|train)_?(?:size|res|resolution|dim)s?$"
    r"|^(?:img|image|input)_?(?:h|w|height|width|rows|cols)$|^resolution$|^img_shape$",
    re.IGNORECASE,
)
# Networks that convolve all the way to one last layer.
_ALL_THE_WAY = re.compile(
    r"(?:^|_)(?:(?:wide_?|pre_?act_?)?res_?ne[xs]?t|dense_?net|squeeze_?net|google_?net|inception|shuffle_?net"
    r"|mobile_?net|mnas_?net|efficient_?net|reg_?net|fcn|deeplab|u_?net|dla|dpn|xception|seg_?net)(?!\w*rcnn)\w*$",
    re.IGNORECASE,
)
_IMAGES = re.compile(
    r"(?:^|_)(?:torchvision|images?|imgs?)(?:$|_)|cifar|image_?net|image_?folder", re.IGNORECASE
)
_PRODUCTS = re.compile(
    r"transformer|attention|attn|bert|gpt|vit(?:$|_|\d)|swin|mixer|^clip$|clip_(?:model|vit|text)|open_?clip|mlp|lstm"
    r"|gru(?:$|_)|token|embed|(?:^|_)text(?:$|_)|vocab|llm|caption|latent",
    re.IGNORECASE,
)
# The network of style transfer is called a transformer, and convolves.
_STYLE = re.compile(r"(?:^|_|-)style_?(?:image|weight|size|loss)", re.IGNORECASE)
_RANDOM = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})


def convolutional(module: Module, model: Trained, *, volumes: bool = True) -> bool:
    """Whether a model is a convolutional network over images, or, with ``volumes``, over volumes."""
    layers = list(Program.of(module).layers(model))
    if layers:
        names = [name for _, name in layers]
        dimensions = [CONVOLUTIONS.get(name, 0) for name in names]
        count = sum(number > 1 for number in dimensions)
        if not volumes and 3 in dimensions:
            return False
        # One convolution beside attention makes patches of an image.
        if count == 1 and (not ATTENTION.isdisjoint(names) or _attends(module, model)):
            return False
        if count:
            return "torch.nn.Embedding" not in names or count > 4
        return any(_is_network(module, call) for call, _ in layers)
    return any(_is_network(module, call) for call in Program.of(module).makers(model))


def _attends(module: Module, model: Trained) -> bool:
    definition = model.value.definition
    return definition is not None and _ATTENTION_NAME.search(module.source(definition)) is not None


def _is_network(module: Module, call: cst.Call) -> bool:
    """Whether what a call makes goes by the name of a convolutional network."""
    if isinstance(call.func, cst.Subscript) and isinstance(call.func.value, cst.Attribute):
        # ``torchvision.models.__dict__[arch]()``: nearly all of them are convolutional networks.
        table = call.func.value
        return table.attr.value == "__dict__" and module.qualified(table.value) == "torchvision.models"
    dotted = module.qualified(call.func) or ""
    if dotted.startswith(_SEGMENTATION):
        return "mit_b" not in module.source(call)
    if dotted.startswith("torchvision.models.detection."):
        return False
    return any(map(_sounds_convolutional, _names_of_network(module, call)))


def _names_of_network(module: Module, call: cst.Call) -> list[str]:
    """The words by which a call says which network it makes, in the form ``res_net18``."""
    if module.qualified(call.func) in MODELS_BY_NAME:
        constants = [module.value(arg.value).constant for arg in call.args[:2]]
        words = [text.partition(".")[0] for text in constants if isinstance(text, str)]
    else:
        words = [last_name(call.func) or ""]
    return [_CAMEL.sub("_", word) for word in words]


def _sounds_convolutional(name: str) -> bool:
    return _NETWORK.search(name) is not None and _NO_NETWORK.search(name) is None


def multiplies_matrices(module: Module) -> bool:
    """Whether products of matrices may be much of the work of the models that a program trains.

    They are not in networks that convolve all the way to one last layer, whose work cuDNN does.
    """
    training = Program.of(module).training
    return training is not None and not all(_only_convolves(module, model) for model in training.models)


def _only_convolves(module: Module, model: Trained) -> bool:
    names = [name for _, name in Program.of(module).layers(model)]
    multiplies = not MATRIX_PRODUCTS.isdisjoint(names)
    if not CONVOLUTION_LAYERS.keys().isdisjoint(names):
        return Program.of(module).in_sight(model) and not multiplies
    makers = Program.of(module).makers(model)
    if makers and all(any(map(_ALL_THE_WAY.search, _names_of_network(module, call))) for call in makers):
        return True
    # Nothing tells what a network of another file does to images; most convolve.
    if Program.of(module).in_sight(model) or multiplies:
        return False
    program = Program.of(module)
    return program.mentions(_IMAGES) and (program.mentions(_STYLE) or not program.mentions(_PRODUCTS))


def one_size(module: Module) -> bool:
    """Whether the batches of a program have one shape, as far as its file shows.

    What shows it are data sets and crops of one size, an option for the size, or batches that the default
    collation stacks; what speaks against it are sequences, detection and training at several scales.
    """
    lowered = module.tree.lowered
    if any(word in lowered for word in _LENGTH_WORDS) and module.tree.matches(_LENGTHS):
        return False
    for call in module.tree.nodes(cst.Call):
        name = module.qualified(call.func) or last_name(call.func) or ""
        last = name.rpartition(".")[2]
        if last in CROPS or has_one_size(name):
            return True
        if last in RESIZES and _names_both_sides(module, call):
            return True
        if name in _RANDOM and len([arg for arg in call.args if arg.keyword is None and not arg.star]) == 4:
            return True
        if Loaders.of(module).makes_loader(call) and _stacks(module, call):
            return True
    return any(_SIZE_NAME.match(name.value) for name in module.tree.nodes(cst.Name))


def _names_both_sides(module: Module, call: cst.Call) -> bool:
    if len([arg for arg in call.args if arg.keyword is None]) > 1:
        return True
    return any(isinstance(arg.value, (cst.Tuple, cst.List)) for arg in call.args)


def _stacks(module: Module, call: cst.Call) -> bool:
    """Whether a loader puts several items of a data set into a batch by the default collation."""
    if not module.argument(call, "collate_fn").absent or not module.argument(call, "batch_sampler").absent:
        return False
    size = module.argument(call, "batch_size").constant
    return size is MISSING or (isinstance(size, int) and size > 1)


def needs_channels_first(module: Module, model: Trained) -> bool:
    """Whether a program may fail with channels last.

    Its code is out of sight, it calls ``view``, or it makes images of what has no four dimensions: only what
    has four can have its channels last.
    """
    definition = model.value.definition
    if isinstance(definition, cst.ClassDef):
        if module.classes.info(definition).opaque:
            return True
    elif not any(name.startswith(_KNOWN) for _, name in Program.of(module).layers(model)):
        return True
    return any(_refuses_channels_last(call) for call in module.tree.nodes(cst.Call)) or any(
        adds_dimension(element.slice)
        for subscript in module.tree.nodes(cst.Subscript)
        for element in subscript.slice
    )


def _refuses_channels_last(call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        return False
    name = call.func.attr.value
    if name == "reshape":
        sizes = call.args[0].value if len(call.args) == 1 else None
        given = sizes.elements if isinstance(sizes, (cst.Tuple, cst.List)) else call.args
        return len(given) == 4
    return name in ("view", "as_strided", "unsqueeze", "unflatten")
