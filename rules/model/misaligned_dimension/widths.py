"""Widths of layers, vocabularies and batches that are written down as numbers off the grid of tensor cores.

A width is the author's to choose if one layer makes it and a later one takes it. What the first layer takes
is the data's, and so is what the last one gives, the number of classes for instance; a vocabulary is padded
all the same, since no token ever has the additional numbers. Where stored weights are loaded, the file that
they were saved from has chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.checkpoints import is_stored_weights
from torchlint.semantics.comments import Topic, documents, says_inside
from torchlint.semantics.contexts import is_test
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.evidence import Evidence, accelerated, evidence
from torchlint.semantics.identifiers import identifiers, imports, named, speaks_of
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

GRID = 8
"""Kernels for tensor cores want sizes that are multiples of this, in half precision."""
LARGE_GRID = 64
"""Whole tiles of the matrix product, to which vocabularies are often padded."""
_WIDE = 64
_VOCABULARY = 1024

# What a layer takes and what it makes, by the parameters of its constructor.
_CONVOLUTIONS = tuple(f"torch.nn.Conv{kind}{n}d" for kind in ("", "Transpose") for n in (1, 2, 3))
_SIZES: dict[str, tuple[str | None, str | None]] = {
    "torch.nn.Linear": ("in_features", "out_features"),
    "torch.nn.Embedding": (None, "embedding_dim"),
    "torch.nn.EmbeddingBag": (None, "embedding_dim"),
    **dict.fromkeys(_CONVOLUTIONS, ("in_channels", "out_channels")),
    **dict.fromkeys(("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"), ("input_size", None)),
    **dict.fromkeys(("torch.nn.RNNCell", "torch.nn.LSTMCell", "torch.nn.GRUCell"), ("input_size", None)),
    "torch.nn.MultiheadAttention": ("embed_dim", None),
    "torch.nn.TransformerEncoderLayer": ("d_model", None),
    "torch.nn.TransformerDecoderLayer": ("d_model", None),
    "torch.nn.Transformer": ("d_model", None),
}
_EMBEDDINGS = frozenset({"torch.nn.Embedding", "torch.nn.EmbeddingBag"})
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in _SIZES) | {"DataLoader"}


# Who loads stored weights by one of these, or by what these give.
_STORING = ("safetensors", "torch.hub", "torch.utils.model_zoo", "fasttext")
_LOADING = frozenset({"load_state_dict_from_url", "model_zoo"})


class What(IdentityEnum):
    """What a number counts."""

    FEATURES = "features"
    CHANNELS = "channels"
    VOCABULARY = "vocabulary"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class OffGrid:
    """A number in the file that is no multiple of 8.

    Attributes:
        number: where it is written.
        size: its value.
        what: what it counts.
        call: the first layer or loader that gets it.
    """

    number: cst.BaseExpression
    size: int
    what: What
    call: cst.Call

    @property
    def padded(self) -> int:
        """The next size on the grid, which is enough."""
        return -(-self.size // GRID) * GRID

    @property
    def tiled(self) -> int:
        """The next size of whole tiles of the matrix product."""
        return -(-self.size // LARGE_GRID) * LARGE_GRID


@dataclass(frozen=True, slots=True)
class _Size:
    """A size that a constructor is given: its value and where that is written down."""

    call: cst.Call
    argument: cst.BaseExpression
    number: cst.BaseExpression
    value: int

    @property
    def off(self) -> bool:
        """Whether it is large enough to matter, and no multiple of the grid."""
        return _is_off(self.value)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer with the sizes that are known, and the class or function that it belongs to."""

    name: str
    call: cst.Call
    holder: cst.CSTNode
    taken: _Size | None
    made: _Size | None


def off_grid(module: Module) -> Iterator[OffGrid]:
    """Yield the sizes of layers and batches in a file that an engineer can choose,
    and has not put on the grid.
    """
    if not any(_is_off(int(text, 0)) for text in {n.value for n in module.tree.nodes(cst.Integer)}):
        return
    calls = [call for call in module.tree.nodes(cst.Call) if _last_name(call) in _LAST_NAMES]
    if not calls or is_test(module) or _loads_weights(module) or not accelerated(module):
        return
    layers = [layer for call in calls for layer in _layers(module, call)]
    passed = _Passed(layers)
    found: dict[cst.BaseExpression, OffGrid] = {}
    for layer in layers:
        for one in (*_vocabularies(module, layer, layers), *_hidden(layer, passed), *_batches(module, layer)):
            found.setdefault(one.number, one)
    yield from sorted(found.values(), key=lambda one: module.tree.order[one.number])


def _loads_weights(module: Module) -> bool:
    """Return whether stored weights or word vectors are loaded, or spoken of, which come with their sizes."""
    if imports(module, _STORING) or not _LOADING.isdisjoint(identifiers(module)):
        return True
    if any(module.qualified(each) == "torch.hub" for each in module.tree.attributes_by_name.get("hub", ())):
        return True
    if says_inside(module, module.tree.root, Topic.PRETRAINED) or documents(module, Topic.PRETRAINED):
        return True
    texts = [string.raw_value for string in module.tree.nodes(cst.SimpleString)]
    paths = [text for text in texts if " " not in text]
    return any(has(name, Role.PRETRAINED) for name in (*identifiers(module), *paths)) or any(
        map(is_stored_weights, texts)
    )


def _is_off(size: int) -> bool:
    return size >= _WIDE and size % GRID != 0


def _last_name(call: cst.Call) -> str:
    node = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return node.value if isinstance(node, cst.Name) else ""


def _layers(module: Module, call: cst.Call) -> Iterator[_Layer]:
    name = module.class_of(call)
    if name == "torch.utils.data.DataLoader":
        yield _Layer(name, call, call, None, _size(module, call, "batch_size"))
    elif name in _SIZES:
        holder = module.tree.enclosing(call, cst.ClassDef) or module.function(call) or module.tree.root
        taken, made = (_size(module, call, one) if one is not None else None for one in _SIZES[name])
        yield _Layer(name, call, holder, taken, made)


def _size(module: Module, call: cst.Call, parameter: str) -> _Size | None:
    argument = module.argument(call, parameter).node
    if argument is None:
        return None
    number = _written(module, argument)
    return None if number is None else _Size(call, argument, number, int(number.evaluated_value))


# --- where a number is written ----------------------------------------------------------------------


@solved(None)
def _written(module: Module, node: cst.BaseExpression) -> cst.Integer | None:
    """Return the literal that an expression gets its value from: itself, a constant,
    the default of an option.
    """
    match node:
        case cst.Integer():
            return node
        case cst.Name():
            bindings = module.bindings(node)
            if len(bindings) != 1:
                return None
            return _bound(module, bindings[0])
        case cst.Attribute():
            return _default_of_field(module, node) or _attribute(module, node)
    return None


def _bound(module: Module, binding: Binding) -> cst.Integer | None:
    if binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
        return _written(module, binding.value)
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
        default = binding.node.default
        given = any(
            not module.argument(call, binding.name).absent for call in _callers(module, binding.scope.node)
        )
        return default if isinstance(default, cst.Integer) and not given else None
    return None


def _callers(module: Module, function: cst.CSTNode) -> Iterator[cst.Call]:
    """Yield the calls in the file of a function,
    or those that make objects of the class that it initialises.
    """
    yield from module.callers(function)
    owner = module.tree.enclosing(function, cst.ClassDef)
    if isinstance(function, cst.FunctionDef) and function.name.value == "__init__" and owner is not None:
        for call in module.tree.nodes(cst.Call):
            if _last_name(call) == owner.name.value and module.value(call.func).definition is owner:
                yield call


def _attribute(module: Module, node: cst.Attribute) -> cst.Integer | None:
    values = SelfAttributes.of(module).attribute_values(node, node.attr.value)
    return _written(module, values[0]) if len(values) == 1 else None


def _default_of_field(module: Module, node: cst.Attribute) -> cst.Integer | None:
    """Return the default of ``vocab_size: int = 50257``,
    if a single class of the file has such a field and nothing sets it.
    """
    name = node.attr.value
    fields = _fields(module).get(name, [])
    if len(fields) != 1 or not isinstance(fields[0], cst.Integer):
        return None
    return None if name in _set_or_named(module) else fields[0]


@remembered
def _fields(module: Module) -> dict[str, list[cst.BaseExpression | None]]:
    """Return by name: what the fields of classes are by default."""
    found: dict[str, list[cst.BaseExpression | None]] = {}
    for statement in module.tree.nodes(cst.AnnAssign):
        holder = module.tree.enclosing(statement, cst.ClassDef, cst.FunctionDef)
        if isinstance(statement.target, cst.Name) and holder.__class__ is cst.ClassDef:
            found.setdefault(statement.target.value, []).append(statement.value)
    return found


@remembered
def _set_or_named(module: Module) -> set[str]:
    """Return the names that are set as attributes, given as keywords, or stand in quotes."""
    code = module.tree.code
    return {name for pattern in _SET_OR_NAMED for name in pattern.findall(code)}


_SET_OR_NAMED = (
    re.compile(r"\.(\w+)\s*=(?=[^=])"),
    re.compile(r"[(,]\s*(\w+)\s*="),
    re.compile(r"[\"'](\w+)(?=[\"'])"),
)


# --- which of them can be chosen --------------------------------------------------------------------


def _vocabularies(module: Module, layer: _Layer, layers: list[_Layer]) -> Iterator[OffGrid]:
    """Yield the vocabulary that a layer scores, or that it embeds and another one scores."""
    if speaks_of(module, Role.PADDED_VOCABULARY):
        return
    if layer.name in _EMBEDDINGS:
        size = _size(module, layer.call, "num_embeddings")
        if size is None or not _is_large(size):
            return
        scored = any(_scores(other, size) for other in layers) or _is_tied(module, layer.call)
    elif layer.name == "torch.nn.Linear" and layer.made is not None and _is_large(layer.made):
        size = layer.made
        scored = _is_named_vocabulary(module, size) or any(
            other.name in _EMBEDDINGS and _embeds(module, other, size) for other in layers
        )
    else:
        return
    if scored:
        yield OffGrid(size.number, size.value, What.VOCABULARY, layer.call)


def _is_large(size: _Size) -> bool:
    return size.value >= _VOCABULARY and size.off


def _scores(layer: _Layer, size: _Size) -> bool:
    made = layer.made
    return layer.name == "torch.nn.Linear" and made is not None and made.value == size.value


def _embeds(module: Module, layer: _Layer, size: _Size) -> bool:
    embedded = _size(module, layer.call, "num_embeddings")
    return embedded is not None and embedded.value == size.value


def _is_tied(module: Module, embedding: cst.Call) -> bool:
    """Return whether the weight of an embedding is used for anything but looking tokens up."""
    statement = module.tree.parent(embedding)
    if not isinstance(statement, cst.Assign) or not isinstance(statement.targets[0].target, cst.Attribute):
        return False
    name = statement.targets[0].target.attr.value
    return name in _with_weights(module)


_ABOUT_TENSOR = frozenset({"data", "requires_grad", "device", "dtype"})


@remembered
def _with_weights(module: Module) -> set[str]:
    """Return the attributes whose weight is used."""
    return {
        weight.value.attr.value
        for weight in module.tree.attributes_by_name.get("weight", ())
        if isinstance(weight.value, cst.Attribute) and not _asks_about(module.tree.parent(weight))
    }


def _asks_about(around: cst.CSTNode | None) -> bool:
    return isinstance(around, cst.Attribute) and around.attr.value in _ABOUT_TENSOR


def _is_named_vocabulary(module: Module, size: _Size) -> bool:
    told: list[cst.CSTNode] = [size.argument]
    statement = module.tree.parent(size.call)
    if isinstance(statement, cst.Assign):
        told.append(statement.targets[0].target)
    return any(has(name, Role.VOCABULARY) for node in told for name in named(module, node))


class _Passed:
    """Which sizes the layers of one holder hand on to one another.

    By holder and size: whether it is first taken and not made, and at which place it is last taken.
    """

    def __init__(self, layers: list[_Layer]) -> None:
        self.first_taken: dict[tuple[cst.CSTNode, int], bool] = {}
        self.last_taken: dict[tuple[cst.CSTNode, int], int] = {}
        self.places = {layer.call: place for place, layer in enumerate(layers)}
        for place, layer in enumerate(layers):
            for size in (layer.taken, layer.made):
                if size is not None:
                    self.first_taken.setdefault((layer.holder, size.value), size is layer.taken)
            if layer.taken is not None:
                self.last_taken[layer.holder, layer.taken.value] = place


def _hidden(layer: _Layer, passed: _Passed) -> Iterator[OffGrid]:
    """Yield the width that a layer makes for a later one."""
    made = layer.made
    if made is None or not made.off or layer.name not in _SIZES:
        return
    key = layer.holder, made.value
    if passed.first_taken[key]:
        return  # it comes with the data
    if passed.last_taken.get(key, -1) > passed.places[layer.call]:
        kind = What.CHANNELS if layer.name in _CONVOLUTIONS else What.FEATURES
        yield OffGrid(made.number, made.value, kind, layer.call)


def _batches(module: Module, layer: _Layer) -> Iterator[OffGrid]:
    if layer.name == "torch.utils.data.DataLoader" and layer.made is not None and layer.made.off:
        if evidence(module) is Evidence.ACCELERATOR:
            yield OffGrid(layer.made.number, layer.made.value, What.BATCH, layer.call)
