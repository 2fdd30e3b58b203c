"""Whether the models that a program trains are convolutional networks, over images, of one size each time.

cuDNN can measure which algorithm suits a convolution best, and its kernels like the channels last; both pay
for networks that are mostly convolutions, and the first only where the shapes stay what they are.
"""

from __future__ import annotations

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
from torchlint.semantics.dimensions import adds_dimension
from torchlint.semantics.identifiers import identifiers, imports, named, speaks_of
from torchlint.semantics.lexicon import Role, asks, has
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.program import Program, Trained
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SEGMENTATION = "segmentation_models_pytorch."
# Libraries whose networks work with channels last.
_KNOWN = ("torchvision.models.", "timm.", _SEGMENTATION, "torch.nn.")
# Libraries for what is as long as it is.
_OF_LENGTHS = ("torchaudio", "librosa", "torchtext")
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
    return definition is not None and any(has(name, Role.ATTENTION) for name in named(module, definition))


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
    """The names by which a call says which network it makes."""
    if module.qualified(call.func) in MODELS_BY_NAME:
        constants = [module.value(arg.value).constant for arg in call.args[:2]]
        return [text.partition(".")[0] for text in constants if isinstance(text, str)]
    return [last_name(call.func) or ""]


def _sounds_convolutional(name: str) -> bool:
    return has(name, Role.FULLY_CONVOLUTIONAL, Role.CONVOLUTIONAL) and not has(name, Role.NOT_CONVOLUTIONAL)


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
    if makers and all(any(map(_convolves_to_the_end, _names_of_network(module, call))) for call in makers):
        return True
    # Nothing tells what a network of another file does to images; most convolve.
    if Program.of(module).in_sight(model) or multiplies:
        return False
    program = Program.of(module)
    if not program.speaks_of(Role.PICTURE):
        return False
    multiplies = program.speaks_of(Role.MULTIPLYING) or imports(module, ("clip",))
    return program.speaks_of(Role.STYLE_TRANSFER) or not multiplies


def _convolves_to_the_end(name: str) -> bool:
    return has(name, Role.FULLY_CONVOLUTIONAL) and not has(name, Role.DETECTION)


def one_size(module: Module) -> bool:
    """Whether the batches of a program have one shape, as far as its files show.

    What shows it are data sets and crops of one size, an option for the size, or batches that the default
    collation stacks; what speaks against it are sequences, detection and training at several scales.
    """
    files = (module, *module.companions())
    return not any(map(_varies_in_size, files)) and any(map(_shows_size, files))


def _varies_in_size(module: Module) -> bool:
    return speaks_of(module, Role.VARIABLE_SHAPE) or imports(module, _OF_LENGTHS) or _collates(module)


def _shows_size(module: Module) -> bool:
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
    return any(asks(name, Role.PICTURE_SIZE) for name in identifiers(module))


def _collates(module: Module) -> bool:
    """Whether anything is given a function that makes batches of samples."""
    return any(
        argument.keyword is not None
        and argument.keyword.value == "collate_fn"
        and module.value(argument.value).kind is not Kind.NONE
        for argument in module.tree.nodes(cst.Arg)
    )


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
    return any(map(_changes_dimensions, (module, *module.companions())))


def _changes_dimensions(module: Module) -> bool:
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
