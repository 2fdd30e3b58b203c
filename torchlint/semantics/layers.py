"""What layers and containers of layers are, by their names in torch, and which of them a program can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.names import unpacked
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

MODULE_LIST = "torch.nn.ModuleList"
SEQUENTIAL = "torch.nn.Sequential"
# Functions that hand back the layer given to them, changed in place.
WRAPPERS = frozenset(
    {
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "torch.nn.utils.skip_init",
    }
)
# Methods of a module that return the module itself.
RETURNS_SELF = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "apply", "requires_grad_"}
)


def runs_layer(module: Module, nodes: Iterable[cst.CSTNode], kept: str) -> bool:
    """Return whether code runs a layer, which may have hooks, other than in the text that is ``kept``."""
    return any(
        isinstance(call, cst.Call)
        and isinstance(call.func, (cst.Name, cst.Attribute, cst.Subscript))
        and module.value(call.func).kind is Kind.MODULE
        and module.tree.source(call) not in kept
        for node in nodes
        for call in module.tree.descendants(node)
    )


# --- the layers that can run at all ----------------------------------------------------------------

_MODULE = "torch.nn.Module"
_CONSTRUCTOR = "__init__"
# What gets to layers without naming them.
_EVERY_LAYER = frozenset(
    {"_modules", "__dict__", "children", "named_children", "modules", "named_modules", "get_submodule"}
)
_FILLING = frozenset({"append", "extend", "insert", "add_module", "register_module", "update"})
# They ask what a layer is, and do not run it.
_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "super", "type", "len", "print", "id"})
# What the next layer is made as wide as.
_WIDTHS = frozenset({"in_channels", "out_channels", "in_features", "out_features"})


class ReachedLayers:
    """Which code of a class making and running it gets to, and so which of its layers can run at all.

    A constructor may make layers that no forward pass calls: remnants, or what another method has for another
    program. Whoever asks what work a network is must not count those. What the file leaves open counts as
    reached.
    """

    def __init__(self, module: Module) -> None:
        self.module, self.tree = module, module.tree

    @remembered
    def calls(self, definition: cst.ClassDef) -> list[cst.Call]:
        """Return the calls in a class and its ancestors in the file that making and running it may get to."""
        info = self.module.classes.info(definition)
        nodes = _Reach(self.module, info, self._named_outside).nodes() if _is_plain(info) else None
        if nodes is None:
            nodes = [node for part in info.lineage for node in self.tree.descendants(part.node)]
        return [node for node in nodes if isinstance(node, cst.Call)]

    @cached_property
    def _named_outside(self) -> frozenset[str]:
        """The attributes of anything but ``self`` that the file names: ``model.encode(x)``."""
        classes, module = self.module.classes, self.module
        return frozenset(
            node.attr.value
            for node in self.tree.nodes(cst.Attribute)
            if classes.instance_class(node.value) is None and module.qualified(node) is None
        )


def _is_plain(info: ClassInfo) -> bool:
    """Return whether a class is a module whose forward pass is in sight."""
    known = not info.opaque and all(base == _MODULE for base in info.bases)
    return known and info.method("forward") is not None and info.method("__getattr__") is None


class _Piece:
    """A small statement in a method, or the header of a compound one, and what it gives something to."""

    def __init__(self, method: str, made: tuple[str, ...]) -> None:
        self.method, self.made = method, made
        self.nodes: list[cst.CSTNode] = []


class _Reach:
    """What is reached of one class with its ancestors.

    Names are those of methods and attributes, and of local variables behind the name of their method. A
    method that *runs* does all that it says; what one that only sets up makes matters if something reached
    names it.
    """

    def __init__(self, module: Module, info: ClassInfo, named_outside: frozenset[str]) -> None:
        self.module, self.tree = module, module.tree
        self.attributes: SelfAttributes = SelfAttributes.of(module)
        self.classes = [part.node for part in info.lineage]
        self.methods = [(name, method) for part in info.lineage for name, method in part.methods.items()]
        special = {name for name, _ in self.methods if name.startswith("__")}
        self.running = {"forward", *special, *named_outside} - {_CONSTRUCTOR}
        self.reached = {_CONSTRUCTOR, *self.running}

    def nodes(self) -> list[cst.CSTNode] | None:
        """Return the nodes that are reached; None if code reaches layers without naming them."""
        pieces, aside = self._pieces()
        how: dict[_Piece, bool] = {}
        while True:
            new = [piece for piece in pieces if piece not in how and self._is_reached(piece)]
            new += [piece for piece, runs in how.items() if not runs and piece.method in self.running]
            if not new:
                return [*aside, *(node for piece in how for node in piece.nodes)]
            for piece in new:
                how[piece] = piece.method in self.running
                names = set(self._named(piece, runs=how[piece]))
                if not names.isdisjoint(_EVERY_LAYER):
                    return None
                self.reached |= names
                if how[piece]:
                    self.running |= names - {_CONSTRUCTOR}

    def _is_reached(self, piece: _Piece) -> bool:
        if piece.method in self.running:
            return True
        return piece.method in self.reached and (not piece.made or not self.reached.isdisjoint(piece.made))

    # ------------------------------------------------------------------ the pieces

    def _pieces(self) -> tuple[list[_Piece], list[cst.CSTNode]]:
        """Return the pieces of the methods, and the nodes outside of methods."""
        found: dict[cst.CSTNode, _Piece] = {}
        inside: set[cst.CSTNode] = set()
        for name, method in self.methods:
            for node in self.tree.descendants(method):
                statement = self._statement(node)
                if statement not in found:
                    found[statement] = _Piece(name, self._made(statement, name))
                found[statement].nodes.append(node)
                inside.add(node)
        every = (node for definition in self.classes for node in self.tree.descendants(definition))
        return list(found.values()), [node for node in every if node not in inside]

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode:
        while not isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            node = self.tree.parents[node]
        return node

    def _made(self, statement: cst.CSTNode, method: str) -> tuple[str, ...]:
        """Return the names that a statement gives something to; none if it does something else, too."""
        match statement:
            case cst.Assign(targets=targets):
                given: list[cst.CSTNode] = [target.target for target in targets]
            case cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.For(target=target):
                given = [target]
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(word)))) if (
                word in _FILLING and not self._is_self(holder)
            ):
                given = [holder]
            case cst.Expr(value=cst.Call(args=args)):
                registered = [self.attributes.registered_name(arg) for arg in args]
                return tuple(name for name in registered if name is not None and "*" not in name)
            case _:
                return ()
        made = [self._name(part, method) for whole in given for part, _ in unpacked(whole)]
        return tuple(name for name in made if name is not None) if None not in made else ()

    def _name(self, node: cst.CSTNode, method: str) -> str | None:
        """Return what a variable, an attribute of ``self``, or the holder of an element goes by."""
        node = start_of(node, cst.Subscript)
        if isinstance(node, cst.Name):
            return f"{method}:{node.value}"
        return node.attr.value if isinstance(node, cst.Attribute) and self._is_self(node.value) else None

    def _is_self(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            return last_name(node.func) == "super"
        return self.module.classes.instance_class(node) is not None

    # ------------------------------------------------------------------ what they name

    def _named(self, piece: _Piece, *, runs: bool) -> Iterator[str]:
        """Yield the names that a piece hands on or runs."""
        for node in piece.nodes:
            if not isinstance(node, (cst.Name, cst.Attribute)) or self._is_label(node):
                continue
            if not runs and not self._hands_on(node, piece):
                continue
            if isinstance(node, cst.Name) and self._is_self(node):
                if not isinstance(self.tree.parent(node), cst.Attribute) and not self._asks(node):
                    yield from _EVERY_LAYER
                continue
            name = self._name(node, piece.method)
            if name is not None:
                yield name

    def _hands_on(self, node: cst.Name | cst.Attribute, piece: _Piece) -> bool:
        """Return whether set-up code does more with a layer than to look at it, or to fill its weights."""
        parent = self.tree.parent(node)
        if piece.made:
            sized = isinstance(parent, cst.Attribute) and _is_size(parent.attr.value)
            return not sized and self._name(node, piece.method) not in piece.made
        return not isinstance(parent, cst.Attribute) and not self._asks(node)

    def _is_label(self, node: cst.CSTNode) -> bool:
        """Return whether a name stands for no value: that of a parameter, a keyword, an attribute."""
        match self.tree.parent(node):
            case cst.Param(name=name) | cst.Arg(keyword=name) | cst.Attribute(attr=name):
                return name is node
            case _:
                return False

    def _asks(self, node: cst.CSTNode) -> bool:
        call = self.tree.call_given(node)
        return call is not None and isinstance(call.func, cst.Name) and call.func.value in _ASKING


def _is_size(name: str) -> bool:
    """Return whether an attribute of a layer is one of its sizes, by the names that torch gives them."""
    return name in _WIDTHS or name.startswith("num_") or name.endswith(("_size", "_dim"))
