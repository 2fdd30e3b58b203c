"""What is sent to the device at every step, and from where: what the rules about such copies share.

A copy from pageable memory makes the host wait until everything that was queued before it is done; with
``non_blocking=True`` it goes on if the copy is small (benchmarks/results/syncs.json).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import LIKE_FACTORIES, NEW_FACTORIES
from torchlint.semantics.compilation import compiled
from torchlint.semantics.declared import defines_declared, is_declared
from torchlint.semantics.evidence import Evidence, accelerated, evidence
from torchlint.semantics.identifiers import imports
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.serving import is_part_of_step, serves
from torchlint.semantics.sources import Path, Source, Through, every, onward, some, steps, traced
from torchlint.semantics.spellings import given_as, keywords, last_name, start_of
from torchlint.semantics.synchronisation import may_be_on_device
from torchlint.semantics.transfers import MOVING_METHODS, copied_in, move_to_accelerator, on_host, transferred
from torchlint.semantics.values import Device, Kind, Memory, Value

from .factories import factory, takes_no_data
from .invariance import needless_move
from .roundtrips import copied_back_from
from .sizes import holds_nothing
from .stakes import BESIDE, in_row, in_server
from .waits import after_a_guard, waiting_place, within_a_wait

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding
    from torchlint.semantics.places import Hot

_PICTURES = ("PIL", "torchvision.transforms")


def place_of_sending(module: Module, node: cst.BaseExpression) -> Hot | None:
    """Return the hot place each of whose rounds sends what ``node`` copies to the device,
    unless that is rare.
    """
    hot = waiting_place(module, node)
    if hot is None or compiled(module, node) or phase(module, node) is Phase.DATASET:
        return None
    if by_async_helper(module, node) or (within_a_wait(module, node) and not in_server(module, node)):
        return None
    return None if _stands_in(module, node) else hot


def beside(module: Module, node: cst.BaseExpression) -> str | None:
    """Return that little is at stake in a copy next to which the host waits anyway; None for any other."""
    waits = in_row(module, node) or (after_a_guard(module, node) and not in_server(module, node))
    return BESIDE if waits else None


def by_async_helper(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a copy is in the arguments or the body of a function
    that copies without blocking the host.
    """
    helpers = module.settings.known_async_helpers
    if not helpers:
        return False
    function = module.function(node)
    if isinstance(function, cst.FunctionDef):
        owner = module.classes.owner(function)
        if defines_declared(module.path, owner.name.value if owner else None, function, helpers):
            return True
    return any(
        isinstance(outer, cst.Call)
        and isinstance(outer.func, (cst.Name, cst.Attribute))
        and is_declared(module.names, outer.func, helpers)
        for outer in (node, *module.tree.ancestors(node))
    )


def async_helper(module: Module) -> str | None:
    """Return the call, in words, of the function of the project that copies without blocking the host."""
    named = (name for name in module.settings.known_async_helpers if "*" not in name)
    return next((f"`{name}(…)`" for name in named), None)


def goes_on(module: Module, copy: cst.Call) -> bool:
    """Return whether a call of ``to``, ``cuda`` or ``copy_`` is, or may be, given ``non_blocking=True``."""
    named = keywords(copy)
    given = named.get("non_blocking")
    if given is not None:
        return module.value(given).constant is not False
    positional = (arg.value for arg in copy.args if arg.keyword is None)
    return any(arg.star for arg in copy.args) or any(module.value(a).kind is Kind.BOOL for a in positional)


def sent_from_host(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    """Return the tensor in host memory that a call of ``to``, ``cuda`` or ``copy_`` copies to an accelerator.

    What a loader yields is none: whether that is pinned, and moved without a wait, is told of the loader.
    Neither is what a kernel could make on the device, or what was there just before or stays the same.
    """
    source = copied_from_host(module, copy) if accelerated(module) else None
    if source is None or last_name(copy.func) == "copy_":
        return source
    if made_by_kernel(module, source) or copied_back_from(module, copy) is not None:
        return None
    if holds_nothing(module, source):
        return None
    return None if needless_move(module, copy) is not None else source


def copied_from_host(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    """Return what a call of ``to``, ``cuda`` or ``copy_`` copies to an accelerator from host memory,
    if anything.
    """
    if last_name(copy.func) == "copy_":
        source = copied_in(module, copy) or _into_device(module, copy)
        return source if source is not None and in_host_memory(module, source) else None
    return _moved(module, copy)


def _into_device(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    """Return ``source`` in ``target.copy_(source)``,
    where the target is made or computed where a model computes.

    In a file that shows no accelerator itself, a model is where the caller has it, and so is its input.
    """
    if not isinstance(copy.func, cst.Attribute) or not on_accelerator(module, copy.func.value):
        return None
    source = given_as(copy, "src", 0)
    together = source is not None and evidence(module) is Evidence.LIBRARY and some(_of_input(module, source))
    return None if together else source


@traced(Through.OPERANDS)
def _of_input(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor is what the function around is given, or made of that."""
    match node:
        case cst.Name() if any(b.kind is BindingKind.PARAMETER for b in module.bindings(node)):
            return True
        case cst.Call(func=cst.Attribute(value=owner)) if module.qualified(node.func) is None:
            return onward(owner)
        case cst.Subscript(value=owner):
            return onward(owner)
    return None


def _moved(module: Module, copy: cst.Call) -> cst.BaseExpression | None:
    func = copy.func
    # Where a tensor is, is mostly known, and asked before where it goes.
    if not isinstance(func, cst.Attribute) or func.attr.value not in MOVING_METHODS:
        return None
    if module.qualified(func) is not None or not in_host_memory(module, func.value):
        return None
    move = move_to_accelerator(module, copy)
    if move is None or move.shown:
        return func.value if move is not None else None
    # What takes the device of another tensor goes there, if that is where the model computes.
    return func.value if move.other is not None and on_accelerator(module, move.other) else None


def in_host_memory(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a tensor that the program keeps in host memory, and not of a loader."""
    value = module.value(node)
    if value.kind is not Kind.TENSOR or value.device is not Device.CPU or value.part:
        return False
    made = module.qualified(value.origin.func) if isinstance(value.origin, cst.Call) else None
    if value.memory is not Memory.UNKNOWN or made == "torch.from_numpy":
        return True
    whole, names = start_of(node, cst.Subscript), module.settings.host_names
    return isinstance(whole, (cst.Name, cst.Attribute)) and is_declared(module.names, whole, names)


def is_input(module: Module, node: cst.CSTNode, source: cst.BaseExpression) -> bool:
    """Return whether data of the host is copied to the device for a model that is not trained there.

    It has to get there at some time: what a program predicts from, or what an array holds that a forward pass
    has computed on the host. Constants could have been there all along, and so could what a program makes
    up of nothing but numbers.
    """
    current = phase(module, node)
    if current is Phase.TRAINING or every(_is_constant(module, source)):
        return False
    return current is not Phase.FORWARD or some(_is_array(module, source))


@traced(Through.OPERANDS)
def _is_constant(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether data is written out as numbers, or repeats itself, or is made of such
    by functions of torch.
    """
    match node:
        case cst.Integer() | cst.Float():
            return True
        case cst.BinaryOperation(left=cst.List(), operator=cst.Multiply()) if not path:
            return True  # the same, over and over
        case cst.List(elements=elements) | cst.Tuple(elements=elements) if elements and not path:
            return onward(*(element.value for element in elements))
        case cst.Call(func=func, args=[cst.Arg(keyword=None, value=first), *_]):
            return (module.qualified(func) or "").startswith("torch.") and onward(first)
    return None


@traced(Through.NOTHING)
def _is_array(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether data is, or a tensor is made of, an array of NumPy."""
    if isinstance(node, cst.BaseExpression) and module.value(node).kind is Kind.NDARRAY:
        return True
    match node:
        case cst.Call(func=func, args=[cst.Arg(keyword=None, value=first), *_]) if (
            module.qualified(func) or ""
        ).startswith("torch."):
            return onward(first)
    return None


def made_by_kernel(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a tensor is used for nothing but the move, and a kernel could make it on the device."""
    made: cst.BaseExpression | None = node
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        single = len(bindings) == 1 and not bindings[0].path
        moved = single and (
            module.uses(bindings[0]) == [node] or moved_on_condition(module, bindings[0], node)
        )
        made = bindings[0].value if moved else None
    found = factory(module, made) if made is not None else None
    return found is not None and takes_no_data(module, found)


def computed_from_kernels(module: Module, source: cst.BaseExpression) -> bool:
    """Return whether a tensor is computed from nothing but numbers and what kernels can make,
    without data.
    """
    return every(_from_kernels(module, source))


@traced(Through.OPERANDS)
def _from_kernels(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    if path:
        return False
    if module.value(node).kind in (Kind.NUMBER, Kind.BOOL):
        return True
    match node:
        case cst.Name():
            uses = [use for b in module.bindings(node) for use in module.uses(b) if use is not node]
            stored = [value for use in uses if (value := _stored(module, use)) is not None]
            if any(_stored(module, use) is None and not _only_read(module, use) for use in uses):
                # It may be filled with data there.
                return False
            return [*onward(*stored), *(steps(module, Source(node)) or ())] if stored else None
        case cst.Attribute():
            return False
        case cst.Subscript(value=owner):
            return onward(owner)
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return onward(*(element.value for element in elements)) if elements else False
        case cst.Call(func=func):
            made = factory(module, node)
            if made is not None:
                without: bool = takes_no_data(module, made)
                return without
            given = (arg.value for arg in node.args)
            parts = [
                value for value in given if module.value(value).kind is Kind.TENSOR or _gathers(module, value)
            ]
            if isinstance(func, cst.Attribute) and module.value(func.value).kind is Kind.TENSOR:
                parts.append(func.value)
            return onward(*parts) if parts else False
    return None


def _stored(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    """Return what a statement stores in a part of a tensor: ``values`` in ``name[:, 0::2] = values``."""
    part = module.tree.parent(name)
    match module.tree.parent(part) if isinstance(part, cst.Subscript) and part.value is name else None:
        case cst.AssignTarget() as target:
            assigned = module.tree.parent(target)
            return assigned.value if isinstance(assigned, cst.Assign) else None
        case cst.AugAssign(target=target, value=value) if target is part:
            return value
    return None


def _only_read(module: Module, name: cst.Name) -> bool:
    """Return whether a use of a tensor is an operand of arithmetic, or what a function of torch is given."""
    match module.tree.parent(name):
        case cst.BinaryOperation():
            return True
        case cst.Arg(keyword=keyword) as argument if keyword is None or keyword.value != "out":
            call = module.tree.parent(argument)
            return isinstance(call, cst.Call) and (module.qualified(call.func) or "").startswith("torch.")
    return False


def _gathers(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a list of tensors, written out or made by a function of torch:
    a mesh grid.
    """
    if isinstance(node, cst.Call):
        return (module.qualified(node.func) or "").startswith("torch.")
    return isinstance(node, (cst.List, cst.Tuple)) and any(
        module.value(e.value).kind is Kind.TENSOR for e in node.elements
    )


COMPUTED = "Compute it on the device: pass `device=` to the functions that create what it is computed from"
"""What to do with a tensor that is ``computed_from_kernels``."""


def single_number(module: Module, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str] | None:
    """Return the number in the data of a tensor of nothing else, and the code of the tensor's size:
    ``(1, n)`` for ``[[number] * n]``.
    """
    sizes: list[str] = []
    while (repeated := _repeated(module, node)) is not None:
        node, count = repeated
        sizes.append(count)
    if not _is_number(module, node):
        return None
    return node, f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _repeated(module: Module, node: cst.BaseExpression) -> tuple[cst.BaseExpression, str] | None:
    """Return the item that a list consists of, and how many times: ``[x]``, ``[x] * n``,
    ``[x for _ in range(n)]``.
    """
    match node:
        case cst.List(elements=[cst.Element(value=item)]) | cst.Tuple(elements=[cst.Element(value=item)]):
            return item, "1"
        case cst.BinaryOperation(
            left=cst.List(elements=[cst.Element(value=item)]), operator=cst.Multiply(), right=count
        ):
            pass
        case cst.ListComp(
            elt=item,
            for_in=cst.CompFor(
                target=cst.Name(value=name),
                iter=cst.Call(func=cst.Name("range"), args=[cst.Arg(value=count, star="")]),
                ifs=[],
                inner_for_in=None,
            ),
        ) if all(n.value != name for n in module.tree.nodes_within(item, cst.Name)):
            pass
        case _:
            return None
    # Nothing but a whole number says how often, unless an array of NumPy is multiplied.
    counts = module.value(count).kind in (Kind.NUMBER, Kind.UNKNOWN)
    return (item, module.source(count)) if counts else None


def _is_number(module: Module, node: cst.BaseExpression) -> bool:
    return module.value(node).kind in (Kind.NUMBER, Kind.BOOL)


def on_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a tensor that, as far as the file shows, is on an accelerator.

    Data is indexed in host memory and moved then: outside of modules the file has to show where a tensor is,
    and so it does beside transforms of pictures, which are modules as well.
    """
    if not may_be_on_device(module, node) or _moved_then(module, node):
        return False
    value, whole = module.value(node), start_of(node, cst.Subscript)
    told = module.value(whole)
    if value.device is Device.ACCELERATOR or _is_told_where(module, told) or _is_like_parameter(module, told):
        return True
    function = module.function(node)
    in_pass = (
        phase(module, node) is Phase.FORWARD
        or is_part_of_step(module, node)
        or (function is not None and serves(module, function))
    )
    return in_pass and not imports(module, _PICTURES)


def _is_told_where(module: Module, value: Value) -> bool:
    """Return whether a tensor is made with ``device=`` of what is not known to be the CPU."""
    given = given_as(value.origin, "device", None) if isinstance(value.origin, cst.Call) else None
    return given is not None and module.value(given).constant is not None and not on_host(module, given)


def _is_like_parameter(module: Module, value: Value) -> bool:
    """Return whether a tensor is made where a parameter of a module is: ``self.weight.new_zeros(…)``."""
    match value.origin:
        case cst.Call(func=cst.Attribute(value=like, attr=cst.Name(method))) if method in NEW_FACTORIES:
            return _is_own_parameter(module, like)
        case cst.Call(func=func, args=[cst.Arg(value=like), *_]) if module.qualified(func) in LIKE_FACTORIES:
            return _is_own_parameter(module, like)
    return False


def _is_own_parameter(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return isinstance(node, cst.Attribute) and value.kind is Kind.TENSOR and value.leaf


def _moved_then(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether it is ``data[rows].to(device)``: what is moved afterwards, was in host memory."""
    taken = module.tree.parent(node)
    while isinstance(taken, cst.Subscript):
        call = module.tree.method_call(taken)
        if call is not None:
            return transferred(module, call) is not None
        taken = module.tree.parent(taken)
    return False


def _stands_in(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` is in the branch for the case that there is nothing:
    ``x.mean() if len(x) else …``.
    """
    loop = next(iter(module.flow.statement_loops(node)), None)
    for branch in module.flow.branches(node, within=loop):
        if _true_for_nothing(module, branch.test) is branch.holds:
            return True
        if isinstance(branch.construct, cst.IfExp) and not branch.holds and _asks_type(module, branch.test):
            return True
    return False


def _asks_type(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether it is ``x if isinstance(x, torch.Tensor) else …``: a guard for the type checker, or for
    what is not given.
    """
    return isinstance(test, cst.Call) and module.qualified(test.func) == "builtins.isinstance"


def _true_for_nothing(module: Module, test: cst.BaseExpression) -> bool | None:
    """Return the truth of a test if something counted is zero, or a container empty;
    None if it asks neither.
    """
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=expression):
            truth = _true_for_nothing(module, expression)
            return None if truth is None else not truth
        case cst.Comparison(left=cst.BinaryOperation(operator=cst.Modulo())):
            return None  # ``step % 2 == 0`` counts nothing
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=bound)]):
            at_zero, constant = _AT_ZERO.get(type(operator)), module.value(bound).constant
            # What is compared with 1.0 is no count.
            return None if at_zero is None or isinstance(constant, float) else at_zero.get(constant)
        case cst.Call(func=cst.Name(value="len")):
            return False
    return False if module.value(test).kind in (Kind.LIST, Kind.TUPLE, Kind.DICT) else None


# By comparison and bound: how it turns out for zero, where it tells zero from everything above.
_AT_ZERO: dict[type[cst.BaseCompOp], dict[object, bool]] = {
    cst.Equal: {0: True},
    cst.NotEqual: {0: False},
    cst.GreaterThan: {0: False},
    cst.GreaterThanEqual: {1: False},
    cst.LessThan: {1: True},
    cst.LessThanEqual: {0: True},
}


def moved_on_condition(module: Module, binding: Binding, name: cst.Name) -> bool:
    """Return whether all that is done with a variable before any other use is to move it,
    if some condition holds.

    That is ``if cuda: noise = noise.cuda()`` or ``noise = noise.cuda() if cuda else noise``; ``name`` is what
    is moved there, and reads ``binding``.
    """
    tree = module.tree
    first, second = tree.statement(binding.node), tree.statement(name)
    others = [use for use in module.uses(binding) if use is not name]
    branch = next(module.flow.branches(name), None)
    match branch.construct if branch is not None else None:
        case cst.IfExp(orelse=other):
            return others == [other] and tree.parent(first) is tree.parent(second)
        case cst.If(orelse=None) as around if tree.parent(second) is around.body:
            end = tree.span(around).end
            beside = tree.parent(around) is tree.parent(first) and _gives_back(second, name)
            return beside and all(tree.span(use).start >= end for use in others)
        case _:
            return False


def _gives_back(statement: cst.CSTNode, name: cst.Name) -> bool:
    """Return whether a statement assigns to the variable of this name, and does nothing else."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=word))])]
        ):
            return word == name.value
    return False
