"""Which calls make a layer, and the order of layers in a sequence, written out or filled step by step.

What a list may begin with is computed like the FIRST sets of a grammar (A. V. Aho, R. Sethi and
J. D. Ullman, Compilers: Principles, Techniques, and Tools, 1986, section 4.4): the elements are its
terminals, the lists inside of it its nonterminals, and one that may be empty lets through to what follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes, pattern_of
from torchlint.semantics.layers import MODULE_LIST, RETURNS_SELF, SEQUENTIAL, WRAPPERS
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Source, Through, onward, steps, traced
from torchlint.semantics.values import Kind
from torchlint.syntax import alike

from .sequences import Filling, Step, argument_steps, literal_steps, trace

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path

LISTS = frozenset({"builtins.list", "builtins.tuple", "collections.OrderedDict", "builtins.dict"})
FILLING_METHODS = frozenset({"append", "extend", "insert", "add_module", "register_module"})
_LIST_KINDS = frozenset({Kind.LIST, Kind.TUPLE, Kind.DICT})


class Gap(Enum):
    """What a list may begin with besides an element."""

    EMPTY = "nothing at all"
    UNKNOWN = "something out of sight"


Firsts: TypeAlias = "frozenset[cst.BaseExpression | Gap]"
"""The elements that a list may begin with."""


def called(module: Module, call: cst.CSTNode | None) -> str | None:
    """Return the dotted name of the very class or function of a library that a call calls,
    partials included.
    """
    if not isinstance(call, cst.Call):
        return None
    name = module.qualified(call.func)
    if name is None and isinstance(call.func, cst.Name) and module.tree.mentions("partial"):
        value = module.value(call.func)
        if value.presets and value.definition is None:
            name = value.cls
    return name


@traced(Through.ITEMS | Through.RETURNS)
def makers(module: Module, node: cst.CSTNode, path: Path) -> cst.Call | list[Source] | None:
    """Return the constructor calls that can have made a layer; None for what is out of sight."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name("forward")):
            return onward(owner, path=path)
    if not isinstance(node, cst.Call):
        return None
    name = called(module, node)
    match node.func:
        case cst.Attribute(value=owner, attr=cst.Name(method)) if name is None and method in RETURNS_SELF:
            return onward(owner, path=path)
    if name in WRAPPERS and node.args:
        return onward(node.args[0].value, path=path)
    if name == "builtins.getattr" and len(node.args) == 2 and SelfAttributes.is_self(node.args[0].value):
        wanted = pattern_of(node.args[1].value)
        values = SelfAttributes.of(module).attribute_values(node, wanted) if wanted.strip("*") else []
        return onward(*values, path=path) if values else node
    if not path:
        return node if name is not None else None
    if name not in (SEQUENTIAL, MODULE_LIST):
        return None
    found: list[Source] = []
    for step in arguments_in_order(module, node):
        found += onward(step.node, path=path if step.many else path[1:])
    return found


# --- what comes first ---------------------------------------------------------------------------------------


def first_of(module: Module, pieces: Iterable[Step]) -> Firsts:
    """Return what some elements and lists in a row begin with."""
    found: set[cst.BaseExpression | Gap] = set()
    for piece in pieces:
        found |= _firsts(module, piece.node) if piece.many else {piece.node}
        if Gap.EMPTY not in found:
            return frozenset(found)
        found.discard(Gap.EMPTY)
    return frozenset((*found, Gap.EMPTY))


@solved(frozenset())
def _firsts(module: Module, node: Any) -> Firsts:
    """Return what a list begins with."""
    pieces = _pieces(module, node)
    if pieces is not None:
        return first_of(module, pieces)
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return frozenset((node.elt, Gap.EMPTY))
    filling = filling_of(module, node)
    if filling is not None:
        elements, reads = behind(module, filling, None)
        return elements | {Gap.EMPTY} if node in reads else elements
    found: Firsts = frozenset()
    for source in steps(module, Source(node), Through.RETURNS) or [Source(node, (0,))]:
        known = isinstance(source.node, cst.BaseExpression) and source != Source(node, (0,))
        found |= _firsts(module, source.node) if known else {Gap.UNKNOWN}
    return found


def _pieces(module: Module, node: cst.CSTNode) -> list[Step] | None:
    """Return the elements and lists that a list is put together from, in order."""
    match node:
        case cst.List() | cst.Tuple() | cst.Dict():
            return literal_steps(node)
        case cst.BinaryOperation(operator=cst.Add()):
            return [Step(node.left, True), Step(node.right, True)]
        case cst.Call() if called(module, node) in LISTS or called(module, node) == SEQUENTIAL:
            return arguments_in_order(module, node)
    return None


def arguments_in_order(module: Module, call: cst.Call) -> list[Step]:
    """Return what a list or a sequence is made of by a call: one list, or its arguments."""
    match call.args:
        case [cst.Arg(value=value, star="")] if is_list(module, value):
            return [Step(value, True)]
    return argument_steps(call.args)


def is_list(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a list, tuple or dictionary."""
    return called(module, node) in LISTS or module.value(node).kind in _LIST_KINDS


def first_in(module: Module, sequence: cst.Call) -> Firsts:
    """Return what a sequence begins with: one of its arguments, or of what is added to it later."""
    firsts = first_of(module, arguments_in_order(module, sequence))
    filling = filling_of(module, owner_of(module, sequence))
    if Gap.EMPTY in firsts and filling is not None and (sequence.args or len(filling.steps) > 1):
        elements, reads = behind(module, filling, sequence)
        firsts = (firsts - {Gap.EMPTY}) | elements | ({Gap.EMPTY} if reads else frozenset())
    return firsts - {Gap.EMPTY} | {Gap.UNKNOWN} if Gap.EMPTY in firsts else firsts


def last_in(module: Module, sequence: cst.Call) -> cst.BaseExpression | None:
    """Return the last layer of a sequence that is written out."""
    filling = filling_of(module, owner_of(module, sequence))
    if filling is not None and (filling.broken or len(filling.steps) > 1):
        return None
    pieces = argument_steps(sequence.args)
    return pieces[-1].node if pieces and not pieces[-1].many else None


# --- what comes next ----------------------------------------------------------------------------------------


def behind(
    module: Module, filling: Filling, node: cst.CSTNode | None
) -> tuple[Firsts, list[cst.BaseExpression | None]]:
    """Return what comes right behind ``node`` in a list that is filled step by step.

    The elements, and the reads of the list at which there is none yet; None stands for the end of the code
    that fills it. Nothing is known of a list that is rearranged.
    """
    if filling.broken or node not in filling.after:
        return frozenset((Gap.UNKNOWN,)), []
    elements: set[cst.BaseExpression | Gap] = set()
    reads: dict[cst.BaseExpression | None, None] = {}
    waiting, seen = [node], {node}
    while waiting:
        for option in filling.following(waiting.pop()):
            if not isinstance(option, Step):
                reads[option.read] = None
                continue
            found = first_of(module, [option])
            elements |= found - {Gap.EMPTY}
            if Gap.EMPTY in found and option.node not in seen:
                seen.add(option.node)
                waiting.append(option.node)
    return frozenset(elements), list(reads)


# --- lists that are filled ----------------------------------------------------------------------------------


def filling_of(module: Module, owner: cst.CSTNode | None) -> Filling | None:
    """Return how code fills the list or container behind a name or an attribute of ``self``;
    None for others.
    """
    match owner:
        case cst.Name(value=name):
            binding = module.binding_of(owner)
            scope = binding.scope if binding is not None else module.names.lookup(name, owner)
            if scope is None or any(
                other.kind not in (BindingKind.ASSIGN, BindingKind.AUGMENT) or other.path
                for other in scope.bindings[name]
            ):
                return None
            body = scope.node if isinstance(scope.node, cst.Module) else getattr(scope.node, "body", None)
            spelt = name
        case cst.Attribute(attr=cst.Name(name)) if SelfAttributes.of(module).self_class(owner) is not None:
            function = module.tree.enclosing(owner, cst.FunctionDef)
            body, spelt = function.body if function is not None else None, f"self.{name}"
        case _:
            return None
    if not isinstance(body, (cst.IndentedBlock, cst.Module)):
        return None
    values = made(module, owner) or ()
    container = any(called(module, value) in (SEQUENTIAL, MODULE_LIST) for value in values)
    return _filled(module, body, spelt, container)


def own_filling(module: Module, node: cst.CSTNode) -> Filling:
    """Return the order of the layers that the constructor of a sequence class registers."""
    function = module.tree.enclosing(node, cst.FunctionDef)
    assert function is not None
    return _filled(module, function.body, "self", True)


@remembered
def _filled(module: Module, body: cst.CSTNode, spelt: str, container: bool) -> Filling:
    """Return how a function fills what a name, or an attribute of ``self``, stands for."""
    names = module.names

    def owns(node: cst.CSTNode) -> bool:
        match node:
            case cst.Name(value=name):
                return name == spelt and (name == "self" or node in names.by_node or names.is_read(node))
            case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)):
                return f"self.{name}" == spelt
        return False

    return trace(module.flow, body, owns, container=container)


def made(module: Module, owner: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return what a list or container is assigned; None if some of it is out of sight."""
    if isinstance(owner, cst.Attribute):
        attributes = SelfAttributes.of(module)
        own = attributes.self_class(owner) is not None
        return attributes.attribute_values(owner, owner.attr.value) or None if own else None
    if not isinstance(owner, cst.Name):
        return None
    binding = module.binding_of(owner)
    found: dict[cst.BaseExpression, None] = {}
    for reaching in (binding,) if binding is not None else module.bindings(owner):
        augmented = reaching.kind is BindingKind.AUGMENT
        for each in reaching.scope.bindings[reaching.name] if augmented else (reaching,):
            if each.kind is BindingKind.ASSIGN and not each.path and each.value is not None:
                if not (isinstance(each.value, cst.BinaryOperation) and alike(each.value.left, owner)):
                    found[each.value] = None
            elif not augmented:
                return None
    return list(found) or None


def owner_of(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the name or attribute that a container is assigned to, and nothing else."""
    match module.tree.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as target)]):
            return target
    return None
