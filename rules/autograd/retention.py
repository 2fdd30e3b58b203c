"""Values that are kept: added to a running total, appended to a list, stored under a key, fed to a meter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import AttributeBinding, Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Item, Source, Through, onward, some, steps, traced
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import MISSING, Kind
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path

# What is assigned where something is added up or collected.
_KEEPING = (cst.BinaryOperation, cst.IfExp, cst.ListComp, cst.DictComp)
_DEFAULTS = "collections.defaultdict"
_APPENDING = frozenset({"append", "appendleft", "extend", "extendleft"})
# Methods of lists, dicts and meters.
_KEEPING_METHODS = _APPENDING | {"insert", "update"}
_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.DictComp)


@dataclass(frozen=True, slots=True)
class Kept:
    """An expression whose value is kept, and the name, attribute or item that keeps it."""

    place: cst.BaseExpression
    stored: cst.BaseExpression


def may_keep(module: Module, node: cst.AugAssign | cst.Assign | cst.Call) -> bool:
    """Return whether a statement or call can keep anything, going by its form:
    to be asked before ``kept``.
    """
    if isinstance(node, cst.Call):
        func = node.func
        return isinstance(func, cst.Attribute) and (
            func.attr.value in _KEEPING_METHODS or _has_other_classes(module)
        )
    if isinstance(node, cst.AugAssign):
        return isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    return len(node.targets) == 1 and (
        isinstance(node.value, _KEEPING) or isinstance(node.targets[0].target, cst.Subscript)
    )


@remembered
def _has_other_classes(module: Module) -> bool:
    """Return whether there are classes, beside those of models,
    whose methods may keep what they are given.
    """
    return module.link is not None or any(
        module.classes.info(definition).kind is not Kind.MODULE
        for definition in module.tree.nodes(cst.ClassDef)
    )


def kept(module: Module, node: cst.CSTNode) -> Iterator[Kept]:
    """Yield what a statement, call or comprehension adds to something that was there before.

    Items of a list, tuple or dict that is kept are given one by one. Overwriting keeps nothing: ``last =
    loss`` lets go of what was there.
    """
    for place, stored in (*_added(module, node), *_metered(module, node)):
        for item in _items(module, stored):
            yield Kept(place, item)


def _added(module: Module, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield what a statement or call adds to a number, a list or a dict, and to which."""
    match node:
        case cst.AugAssign(operator=cst.AddAssign() | cst.SubtractAssign()):
            yield node.target, node.value
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            branches = [b for b in _branches(node.value) if isinstance(b, cst.BinaryOperation)]
            sums = [_terms(branch, target) for branch in branches]
            yield from ((target, term) for terms in sums for term in terms or ())
            if (
                not any(terms is not None for terms in sums)
                and isinstance(target, cst.Subscript)
                and _new_key(module, target)
            ):
                yield target.value, node.value
            elif isinstance(node.value, (cst.ListComp, cst.DictComp)):
                yield target, node.value
        case cst.Call(func=cst.Attribute(attr=cst.Name(method), value=owner)) if not module.callee(node):
            if module.value(owner).kind in (Kind.LIST, Kind.ITERATOR, Kind.UNKNOWN):
                arguments = [argument.value for argument in node.args if argument.star == ""]
                if method in _APPENDING and len(arguments) == 1:
                    yield _container(owner), arguments[0]
                elif method == "insert" and len(arguments) == 2:
                    yield owner, arguments[1]
            elif method == "update" and module.value(owner).kind is Kind.DICT:
                yield from ((owner, value) for value in _put_under_new_keys(module, node))
        case _:
            pass


def _container(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the dict whose list ``losses.setdefault(name, [])`` is; else what is given."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("setdefault"))):
            return owner
        case _:
            return node


def _metered(module: Module, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield what a call gives an object that keeps it, and that object."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(method), value=owner)):
            callees = [each for each in module.callees(node) if isinstance(each, cst.FunctionDef)]
            if callees:
                meant = (callee for callee in callees if not stands_in(module, node, callee))
                # What else an object has may well be backpropagated if it keeps the tensor itself.
                own = isinstance(owner, cst.Name) and module.classes.instance_class(owner) is not None
                found = (each for callee in meant for each in _kept_arguments(module, node, callee))
                values = {value: place if own else owner for place, value in found}
                yield from ((place, value) for value, place in values.items())
            elif method == "update" and module.value(owner).kind in (Kind.LIST, Kind.ITERATOR, Kind.UNKNOWN):
                given = [argument.value for argument in node.args if argument.star == ""]
                if given and _is_average(module, owner):
                    yield owner, given[0]
        case _:
            pass


def _put_under_new_keys(module: Module, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """Yield what ``totals.update({f"loss/{step}": loss})`` stores under keys that are others each time."""
    match call.args:
        case [cst.Arg(value=cst.Dict(elements=elements))]:
            for pair in elements:
                if isinstance(pair, cst.DictElement) and _differs(module, pair.key):
                    yield pair.value
        case _:
            pass


def _is_average(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether a meter of another file adds up what it is given:
    the `AverageMeter` that everybody copies.

    It may be one of many: ``meters[name]``.
    """
    one_of_many = isinstance(owner, cst.Subscript)
    if isinstance(owner, cst.Subscript):
        owner = owner.value
    bindings: Sequence[Binding | AttributeBinding] = ()
    if isinstance(owner, cst.Attribute):
        bindings = module.names.attributes.get(owner.attr.value, ())
    elif isinstance(owner, cst.Name):
        bindings = module.bindings(owner)
    assigned = [_assigned(binding) for binding in bindings]
    if one_of_many:
        assigned = [made for value in assigned for made in _made_items(module, value)]
    return bool(assigned) and all(_makes_average(module, value) for value in assigned)


def _makes_average(module: Module, value: cst.BaseExpression | None) -> bool:
    name = value.func if isinstance(value, cst.Call) else value
    if not isinstance(name, (cst.Name, cst.Attribute)):
        return False
    return (module.qualified(name) or last_name(name) or "").endswith("AverageMeter")


def _made_items(module: Module, value: cst.BaseExpression | None) -> list[cst.BaseExpression | None]:
    """Return what makes the items of a dict or list:
    ``{k: Meter() for k in names}``, ``defaultdict(Meter)``.
    """
    match value:
        case cst.DictComp(value=item) | cst.ListComp(elt=item):
            return [item]
        case cst.Dict(elements=elements) | cst.List(elements=elements):
            return [element.value for element in elements]
        case cst.Call(args=[cst.Arg(value=maker)]) if module.qualified(value.func) == _DEFAULTS:
            return [maker.body if isinstance(maker, cst.Lambda) else maker]
        case _:
            return [None]


def _assigned(binding: Binding | AttributeBinding) -> cst.BaseExpression | None:
    """Return what a name or attribute is set to, by itself or as one of several that are written out."""
    match binding.value, binding.path:
        case ((cst.Tuple(elements=elements) | cst.List(elements=elements)), (int(index),)) if index < len(
            elements
        ):
            return elements[index].value
        case value, ():
            return value
        case _:
            return None


def _branches(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the expressions one of which is the value of an expression: the two of a ternary."""
    if isinstance(value, cst.IfExp):
        yield from _branches(value.body)
        yield from _branches(value.orelse)
    else:
        yield value


def _terms(value: cst.BaseExpression, target: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """Return the terms of ``target + ...`` that are added to ``target``;
    None where the value is no such sum.
    """
    waiting: list[tuple[cst.BaseExpression, list[cst.BaseExpression]]] = [(value, [])]
    while waiting:
        operand, beside = waiting.pop()
        if _is_read_of(target, operand):
            return beside
        match operand:
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
                waiting += [(right, [*beside, left]), (left, [right, *beside])]
            case cst.BinaryOperation(operator=cst.Multiply() | cst.Divide(), left=left, right=right):
                waiting += [(right, beside), (left, beside)]
            case _:
                pass
    return None


def _is_read_of(target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Return whether an expression is what stands in ``target`` so far, also ``totals.get(name, 0)``."""
    match target, value:
        case (
            cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]),
            cst.Call(func=cst.Attribute(value=asked, attr=cst.Name("get")), args=[cst.Arg(value=key), *_]),
        ):
            return alike(owner, asked) and alike(index, key)
        case _:
            return alike(value, target)


def _new_key(module: Module, target: cst.Subscript) -> bool:
    """Return whether the item of a dict or list is another one each time."""
    if module.value(target.value).kind not in (Kind.DICT, Kind.LIST):
        return False
    return any(
        isinstance(element.slice, cst.Index) and _differs(module, element.slice.value)
        for element in target.slice
    )


def _differs(module: Module, key: cst.BaseExpression, step: cst.CSTNode | None = None) -> bool:
    """Return whether a key is another one in each iteration: ``losses[epoch]`` is overwritten by every batch.

    ``step``: the loop whose iterations count, the innermost if None. What a loop inside of it runs over
    comes again each time: ``best[i]`` for each ``i`` of a batch.
    """
    if module.value(key).constant is not MISSING:
        return False
    parts = list(module.tree.descendants(key))
    if any(isinstance(part, (cst.Call, cst.Attribute)) for part in parts):
        return True
    if step is None:
        step = next((loop for loop in module.flow.loops(key) if isinstance(loop, (cst.For, cst.While))), None)
    if step is None:
        return True
    bindings = (b for part in parts if isinstance(part, cst.Name) for b in module.bindings(part))
    return any(
        module.tree.contains(step, binding.node)
        and (binding.kind is not BindingKind.LOOP or binding.value is getattr(step, "iter", None))
        for binding in bindings
    )


def overwritten(module: Module, node: cst.CSTNode, place: cst.BaseExpression, step: cst.CSTNode) -> bool:
    """Return whether an item of ``place`` that an assignment sets is set again
    by the next iteration of a loop.
    """
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=owner) as target)]) if (
            owner is place
        ):
            keys = [e.slice.value for e in target.slice if isinstance(e.slice, cst.Index)]
            return not any(_differs(module, key, step) for key in keys)
        case _:
            return False


def _items(module: Module, stored: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what is written out of the items of a list, tuple or dict, those of others in it included."""
    waiting = [stored]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DISPLAYS):
            items = steps(module, Source(node, (Item.ANY,))) or ()
            waiting += [item.node for item in reversed(items) if isinstance(item.node, cst.BaseExpression)]
        else:
            yield node


def _kept_arguments(
    module: Module, call: cst.Call, method: cst.FunctionDef
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Yield the arguments that a method of a class keeps in the instance as they are, with where it does."""
    owner = module.classes.owner(method)
    if owner is None or module.classes.info(owner).kind is Kind.MODULE:
        return
    bound = module.inference.callgraph.bound_to(call, method)
    by_keyword = method.params.star_kwarg.name.value if method.params.star_kwarg is not None else None
    parameters = {
        binding: place
        for inner in module.tree.descendants(method.body)
        for place, stored in _added(module, inner)
        if _of_instance(module, place, method)
        for binding in passed_on(module, stored)
    }
    for name, place in sorted(parameters.items(), key=itemgetter(0)):
        node = bound.get(name).node
        if node is not None:
            yield place, node
        elif name == by_keyword and bound.unpacked is not None:
            yield from ((place, value) for value in bound.unpacked.keywords.values())


def stands_in(module: Module, call: cst.Call, method: cst.FunctionDef) -> bool:
    """Return whether a call runs a method as one of several, in the place of another or by its name:
    a hook.
    """
    meant = [one.definition for one in module.value(call.func).each]
    return method not in meant and any(isinstance(each, cst.FunctionDef) for each in meant)


def _of_instance(module: Module, place: cst.BaseExpression, method: cst.FunctionDef) -> bool:
    root = start_of(place, cst.Attribute, cst.Subscript)
    return isinstance(root, cst.Name) and root.value == module.classes.self_name(method)


def handed_in(module: Module, place: cst.BaseExpression) -> bool:
    """Return whether what is kept goes into a container that the caller of the function gave it."""
    whole = start_of(place, cst.Subscript)
    return isinstance(whole, cst.Name) and any(
        binding.kind is BindingKind.PARAMETER for binding in module.names.bindings_at(whole.value, whole)
    )


def passed_on(module: Module, stored: cst.BaseExpression) -> Iterator[str]:
    """Yield the parameters of the function that an expression hands on, by arithmetic at most,
    or an item of them.
    """
    match stored:
        case cst.Name():
            bindings = module.bindings(stored)
            if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER:
                yield stored.value
            elif len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP:
                match bindings[0].value:
                    case cst.Call(func=cst.Attribute(value=whole, attr=cst.Name("items" | "values"))):
                        yield from passed_on(module, whole)
        case cst.BinaryOperation():
            yield from passed_on(module, stored.left)
            yield from passed_on(module, stored.right)
        case _:
            for item in _items(module, stored):
                if item is not stored:
                    yield from passed_on(module, item)


def outlives(module: Module, place: cst.BaseExpression, loop: cst.CSTNode) -> bool:
    """Return whether what is kept in ``place`` is carried from one iteration of ``loop`` to the next."""
    return isinstance(loop, (cst.ListComp, cst.DictComp)) or some(_was_there(module, place, loop))


@traced(Through.NOTHING)
def _was_there(module: Module, node: cst.CSTNode, path: Path, loop: cst.CSTNode) -> bool | list[Source]:
    """Return whether something is what was there before an iteration: ``for callback in self.callbacks``."""
    tree = module.tree
    match node:
        case cst.Subscript(value=owner):
            return onward(owner)
        case cst.Attribute(attr=cst.Name(name)):
            return not any(
                binding.kind is BindingKind.ASSIGN
                and tree.contains(loop, binding.target)
                # ``total = total + loss`` carries it on.
                and not (binding.value is not None and _terms(binding.value, node))
                for binding in module.names.attributes.get(name, ())
            )
        case cst.Name(name):
            bindings = module.names.bindings_at(name, node)
            if not all(tree.contains(loop, binding.node) for binding in bindings):
                return True
            inner = [each for each in bindings if each.kind is BindingKind.LOOP]
            gone_through = [each.value for each in inner if module.names.loop(each) not in (None, loop)]
            return onward(*(each for each in gone_through if isinstance(each, (cst.Name, cst.Attribute))))
    return False
