"""Tensors that a loop makes longer by concatenation, and how a list would collect the pieces instead.

``t = torch.cat([t, x])`` copies all of ``t`` each time. A list serves as well where nothing in the loop reads
what ``t`` holds: not where a model is given the tokens so far, or where a window slides. ``grown`` tells one
from the other by the reads of the variable that its definitions reach, and for attributes and items, which
have no such record, by everything that is spelt alike.

What both forms give was compared with torch 2.13: ``cat`` of all pieces promotes dtypes and skips empty
tensors as ``cat`` of two at a time does. It has no answer for a list of one tensor that lacks the dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import insert_after, insert_before, replace, unsafe
from torchlint.semantics import places
from torchlint.semantics.api.memory import READING_METHODS
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.contexts import is_test
from torchlint.semantics.flow.graph import StatementLoop
from torchlint.semantics.names import Binding, BindingKind, ScopeKind, leaves
from torchlint.semantics.operations import operations_of
from torchlint.semantics.sharing import Fate, fate, other_names, writes_to
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import is_none, last_name, start_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


CONCATENATIONS = frozenset(
    f"torch.{name}"
    for name in (
        *("cat", "concat", "concatenate"),
        *("hstack", "vstack", "dstack"),
        "column_stack",
        "row_stack",
    )
)
"""Functions that put tensors one behind the other, so that many at once give what two at a time give."""

# Loops of so few rounds hardly copy anything twice.
_FEW = 4
# Methods that hand on the result of a concatenation as it is, or copy it once more.
_KEEPING = frozenset({"clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "long", "to"})
# What can be asked of a tensor without reading what it holds.
_METADATA = frozenset(
    {"device", "dim", "dtype", "is_cuda", "ndim", "nelement", "new_empty", "new_full", "new_ones"}
    | {"new_zeros", "numel", "requires_grad", "shape", "size"}
)
_VIEWS = frozenset({"T", "mT", "H", "mH", "data"})
_ASKING = frozenset({"builtins.len", "builtins.isinstance", "builtins.type", "torch.is_tensor"})


@dataclass(frozen=True, slots=True)
class Growth:
    """A tensor that a loop makes longer.

    Attributes:
        call: the concatenation.
        target: what its result is assigned to.
        own: the target where it is read, among the tensors of the call.
        pieces: the other tensors of the call.
        in_front: whether the pieces go in front of what there is.
        loops: the loops that it grows in, innermost first.
        starts: the assignments in the loop that begin the tensor with its first piece.
        asked: reads in the loops that want to know its size, or whether it is there yet, or that leave the
            loop with it.
    """

    call: cst.Call
    target: cst.BaseExpression
    own: cst.BaseExpression
    pieces: tuple[cst.BaseElement, ...]
    in_front: bool | None
    loops: tuple[StatementLoop, ...]
    starts: tuple[cst.CSTNode, ...]
    asked: tuple[cst.BaseExpression, ...]


def grown(module: Module, call: cst.Call) -> Growth | None:
    """Return the tensor that a concatenation makes longer in each round of a loop that never reads it,
    or None.
    """
    # Most calls list no tensors, which is told at a glance.
    if not any(isinstance(arg.value, (cst.List, cst.Tuple)) for arg in call.args):
        return None
    if module.qualified(call.func) not in CONCATENATIONS or is_test(module):
        return None
    tensors, out = module.argument(call, "tensors").node, module.argument(call, "out")
    loops = module.flow.statement_loops(call)
    if _is_set_up(module, call) or not isinstance(tensors, (cst.List, cst.Tuple)) or not out.absent:
        return None
    target = _target(module, call)
    if target is None:
        return None
    spelt = module.source(target)
    own = [e for e in tensors.elements if isinstance(e, cst.Element) and module.source(e.value) == spelt]
    pieces = tuple(e for e in tensors.elements if e not in own)
    if len(own) != 1 or not pieces:
        return None
    place: _Place
    if isinstance(target, cst.Name):
        place = _Variable(module, target, own[0].value)
    elif isinstance(target, (cst.Attribute, cst.Subscript)):
        place = _Item(module, target, own[0].value)
    else:
        return None
    found: list[StatementLoop] = []
    if not loops and isinstance(place, _Item):
        found += (loop for loop in place.loops_of_callers() if not _has_few_rounds(module, loop))
    for loop in loops:
        if place.differs(loop):
            continue
        if not place.carried(loop) or _bound_inside(module, loop, _other_arguments(call, tensors)):
            break
        if not all(_asks(module, read, loop) for read in place.reads(loop)):
            break
        if not _has_few_rounds(module, loop) and not places.throttled_in(module, call, loop):
            found.append(loop)
    if not found:
        return None
    at = tensors.elements.index(own[0])
    in_front = None if 0 < at < len(pieces) else at > 0
    asked = tuple(place.reads(found[-1])) if loops else ()
    return Growth(call, target, own[0].value, pieces, in_front, tuple(found), tuple(place.starts), asked)


def _is_set_up(module: Module, call: cst.Call) -> bool:
    """Return whether a tensor is put together once, when an object is made, or for ONNX,
    which has its own lists.
    """
    function = module.function(call)
    name = function.name.value if isinstance(function, cst.FunctionDef) else ""
    return name == "__init__" or "onnx" in name.lower()


def _target(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return what the result of a call is assigned to, as it is or moved, and in one branch or always."""
    targets = list(sinks(module, call, _assigned))
    return targets[0] if len(targets) == 1 else None


def _assigned(module: Module, use: Use) -> Verdict[cst.BaseExpression]:
    """Return the target that a statement assigns a value to."""
    if use.kind is UseKind.METHOD:
        return ONWARD if use.name in _KEEPING else ()
    assigned = use.kind in (UseKind.ASSIGNED, UseKind.STORED, UseKind.UNPACKED)
    by_statement = not isinstance(module.tree.parent(use.by), cst.NamedExpr)
    return use.by if assigned and by_statement and isinstance(use.by, cst.BaseExpression) else ()


def _other_arguments(call: cst.Call, tensors: cst.BaseExpression) -> list[cst.CSTNode]:
    return [arg.value for arg in call.args if arg.value is not tensors]


def _bound_inside(module: Module, loop: cst.CSTNode, nodes: Iterable[cst.CSTNode]) -> bool:
    """Return whether a name that one of these expressions reads is bound in a loop."""
    names = (name for node in nodes for name in operations_of(module).read_names(node))
    return any(
        module.tree.contains(loop, binding.node) for name in names for binding in module.bindings(name)
    )


def _has_few_rounds(module: Module, loop: StatementLoop) -> bool:
    """Return whether a loop goes over a handful of things that are written out,
    or counts to a small number.
    """
    if isinstance(loop, cst.While):
        return False
    node = loop.iter
    while isinstance(node, cst.Call) and last_name(node.func) in ("enumerate", "zip", "reversed", "tqdm"):
        if not node.args:
            return False
        node = node.args[0].value
    if isinstance(node, cst.Call) and module.qualified(node.func) == "builtins.range":
        constants = (module.value(arg.value).constant for arg in node.args)
        ends = [end for end in constants if isinstance(end, int)]
        known = 0 < len(ends) == len(node.args) <= 3 and 0 not in ends[2:]
        return known and not range(*ends)[_FEW:]
    elements = module.value(node).elements
    return elements is not None and len(elements) <= _FEW


def _asks(module: Module, read: cst.BaseExpression, loop: StatementLoop) -> bool:
    """Return whether a read of a tensor does not look at what it holds,
    or is the last thing that the loop does.
    """
    if module.function(read) is not module.function(loop):
        return False
    return _asks_size(module, read) or module.flow.ends_loop(read, loop)


def _asks_size(module: Module, read: cst.BaseExpression) -> bool:
    """Return whether a read of a tensor asks for its size or the like, or whether there is one."""
    parent = module.tree.parent(read)
    match parent:
        case cst.Attribute() if parent.attr.value in _METADATA:
            return True
        case cst.Comparison() | cst.ComparisonTarget():
            operator = (
                parent.comparisons[0].operator if isinstance(parent, cst.Comparison) else parent.operator
            )
            if isinstance(operator, (cst.Is, cst.IsNot)):
                return True
        case cst.Arg():
            call = module.tree.parent(parent)
            if isinstance(call, cst.Call) and module.qualified(call.func) in _ASKING:
                return True
    return False


# --- what grows -------------------------------------------------------------------------------------


class _Variable:
    """A tensor in a variable of the function, or of the module."""

    def __init__(self, module: Module, target: cst.Name, own: cst.BaseExpression) -> None:
        self.module, self.target, self.own = module, target, own
        self.binding = module.binding_of(target)
        self.reaching = set(module.bindings(own)) if isinstance(own, cst.Name) else set()

    @property
    def starts(self) -> list[cst.CSTNode]:
        """The assignments beside the concatenation, in the other branch or the handler of a failure."""
        if self.binding is None:
            return []
        others = (b for b in self.binding.scope.bindings[self.target.value] if b is not self.binding)
        return [b.node for b in others if _is_alternative(self.module, b.node, self.target)]

    def differs(self, loop: StatementLoop) -> bool:
        """Return whether each round has a variable of its own: never."""
        return False

    def carried(self, loop: StatementLoop) -> bool:
        """Return whether the loop adds to what there was in the round before, and sets it to nothing else."""
        if self.binding is None or self.binding not in self.reaching:
            return False
        contains = self.module.tree.contains
        starts = set(self.starts)
        for other in self.binding.scope.bindings[self.target.value]:
            if other is not self.binding and other.node not in starts and contains(loop, other.node):
                return self._grows_too(other)
        entered = any(not contains(loop, other.node) for other in self.reaching)
        return entered or any(contains(loop, start) for start in starts)

    def _grows_too(self, other: Binding) -> bool:
        """Return whether another assignment concatenates as well:
        ``if ...: t = torch.cat([t, x])``, twice.
        """
        call = other.value
        return (
            isinstance(call, cst.Call)
            and not other.path
            and self.module.qualified(call.func) in CONCATENATIONS
            and any(
                isinstance(name, cst.Name) and name.value == self.target.value
                for name in self.module.tree.descendants(call)
            )
        )

    def reads(self, loop: StatementLoop) -> Iterator[cst.BaseExpression]:
        """Yield where the loop reads it, apart from adding to it."""
        contains = self.module.tree.contains
        for read in self.module.names.reads(self.target.value):
            if contains(loop, read) and read is not self.own and not self._is_own(read):
                yield read

    def _is_own(self, read: cst.Name) -> bool:
        """Return whether another concatenation adds to the variable here."""
        element = self.module.tree.parent(read)
        display = self.module.tree.parent(element) if isinstance(element, cst.Element) else None
        arg = self.module.tree.parent(display) if isinstance(display, (cst.List, cst.Tuple)) else None
        call = self.module.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or self.module.qualified(call.func) not in CONCATENATIONS:
            return False
        target = _target(self.module, call)
        return isinstance(target, cst.Name) and target.value == read.value


class _Item:
    """A tensor in an attribute, or under a key that stays the same."""

    def __init__(
        self, module: Module, target: cst.Attribute | cst.Subscript, own: cst.BaseExpression
    ) -> None:
        self.module, self.target, self.own = module, target, own
        self.spelt = module.source(target)
        self.holder = target.value if isinstance(target, cst.Subscript) else target
        self.keys: Sequence[cst.CSTNode] = target.slice if isinstance(target, cst.Subscript) else ()

    @property
    def starts(self) -> list[cst.CSTNode]:
        """The assignments beside the concatenation that begin the tensor."""
        scope = self.module.function(self.target) or self.module.tree.root
        return [
            node
            for node in self.module.tree.descendants(scope)
            if isinstance(node, type(self.target))
            and node is not self.target
            and self._alike(node)
            and _is_alternative(self.module, node, self.target)
        ]

    def differs(self, loop: StatementLoop) -> bool:
        """Return whether the loop itself counts through the keys, so that each round has another place."""
        return any(
            self.module.tree.contains(loop.target, binding.node)
            for name in self._names_of_keys()
            for binding in self.module.bindings(name)
            if isinstance(loop, cst.For)
        )

    def _names_of_keys(self) -> Iterator[cst.Name]:
        for key in self.keys:
            yield from operations_of(self.module).read_names(key)

    def carried(self, loop: StatementLoop) -> bool:
        """Return whether it is the same place in each round,
        and nothing but the concatenation is put there.
        """
        root = start_of(self.target, cst.Attribute, cst.Subscript)
        if not isinstance(root, cst.Name) or _bound_inside(self.module, loop, [self.holder]):
            return False
        starts = self.starts
        for node in self.module.tree.descendants(loop):
            if isinstance(node, type(self.target)) and node not in starts and node is not self.target:
                stored = isinstance(self.module.tree.parent(node), (cst.AssignTarget, cst.AugAssign))
                if stored and self._alike(node):
                    return False
        for name in self._names_of_keys():
            inside = [b for b in self.module.bindings(name) if self.module.tree.contains(loop, b.node)]
            if any(binding.kind is not BindingKind.LOOP for binding in inside):
                return False
        return not self._calls_unknown(loop)

    def _calls_unknown(self, loop: StatementLoop) -> bool:
        """Return whether the loop calls a method of the same object that may read the attribute."""
        if not isinstance(self.target, cst.Attribute) and not isinstance(self.holder, cst.Attribute):
            return False
        attribute = self.holder if isinstance(self.holder, cst.Attribute) else self.target
        assert isinstance(attribute, cst.Attribute)
        owner = self.module.source(attribute.value)
        for node in self.module.tree.descendants(loop):
            match node:
                case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(method))):
                    if self.module.source(receiver) == owner and method not in self.module.names.attributes:
                        function = self.module.callee(node)
                        if function is None or self._mentions(function, attribute.attr.value):
                            return True
                case cst.Arg(value=argument) if self.module.source(argument) == owner:
                    return True
        return False

    def _mentions(self, function: cst.CSTNode, attribute: str) -> bool:
        """Return whether a function names an attribute."""
        return any(
            isinstance(node, cst.Attribute) and node.attr.value == attribute
            for node in self.module.tree.descendants(function)
        )

    def loops_of_callers(self) -> Iterator[StatementLoop]:
        """Yield the loops around calls of the function, if it is the same attribute in each of their rounds.

        That is an attribute of ``self`` or of an object of the module which, of all that the loops run,
        nothing but the concatenation reads or sets.
        """
        module, function = self.module, self.module.function(self.target)
        root = start_of(self.target, cst.Attribute, cst.Subscript)
        if not isinstance(self.target, cst.Attribute) or not isinstance(function, cst.FunctionDef):
            return
        if places.throttled(module, self.target) or not isinstance(root, cst.Name):
            return
        owner = module.classes.owner(function)
        if root.value != "self" and any(b.scope.kind is not ScopeKind.MODULE for b in module.bindings(root)):
            return
        namesakes = module.tree.attributes_by_name[self.target.attr.value]
        others = [node for node in namesakes if node not in (self.target, self.own)]
        starts, here = self.starts, [node for node in others if module.function(node) is function]
        if not all(node in starts or _asks_size(module, node) for node in here if self._alike(node)):
            return
        for call in module.callers(function):
            for loop in module.flow.statement_loops(call)[:1]:
                if owner is not None and _bound_inside(module, loop, [call.func]):
                    continue
                if not any(self._is_run_by(loop, node) for node in others if node not in here):
                    yield loop

    def _is_run_by(self, loop: StatementLoop, node: cst.CSTNode) -> bool:
        """Return whether a loop runs a node, itself or by way of functions of the file."""
        waiting, seen = [node], set[cst.CSTNode]()
        for place in waiting:
            if self.module.tree.contains(loop, place):
                return True
            function = self.module.function(place)
            if function is not None and function not in seen:
                seen.add(function)
                waiting.extend(self.module.callers(function))
        return False

    def _alike(self, node: cst.BaseExpression) -> bool:
        return self.module.source(node) == self.spelt

    def reads(self, loop: StatementLoop) -> Iterator[cst.BaseExpression]:
        """Yield where the loop reads it, or the container that holds it, apart from adding to it."""
        starts, holder = set(self.starts), self.module.source(self.holder)
        for node in self.module.tree.descendants(loop):
            if not isinstance(node, type(self.holder)) or self.module.source(node) != holder:
                continue
            if self.module.tree.contains(self.target, node) or self.module.tree.contains(self.own, node):
                continue
            outer = self.module.tree.parent(node) if self.holder is not self.target else node
            if outer in starts or _is_asked_for_key(self.module, node):
                continue
            if isinstance(outer, cst.Subscript) and self._alike(outer):
                yield outer
            elif isinstance(node, cst.BaseExpression):
                yield node


_Place = _Variable | _Item


def _is_asked_for_key(module: Module, container: cst.CSTNode) -> bool:
    """Return whether it is ``key in outputs``."""
    parent = module.tree.parent(container)
    return isinstance(parent, cst.ComparisonTarget) and isinstance(parent.operator, (cst.In, cst.NotIn))


def _is_alternative(module: Module, target: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Return whether one of two assignments is made in each round: in two branches,
    or after the other failed.
    """
    flow = module.flow
    loops = flow.statement_loops(target)[:1]
    if flow.statement_loops(other)[:1] != loops:
        return False
    within = loops[0] if loops else None
    pairs = (target, other), (other, target)
    return not any(flow.may_follow(one, two, within=within) for one, two in pairs)


# --- the fix ----------------------------------------------------------------------------------------


def collected(module: Module, growth: Growth) -> Fix | None:
    """Return the fix that collects the pieces in a list and joins them once;
    None where that is not the same.
    """
    loop = growth.loops[-1]
    target = growth.target
    binding = module.binding_of(target)
    if not isinstance(target, cst.Name) or binding is None or growth.in_front is None:
        return None
    if loop.orelse is not None or not _is_plain(module, growth, loop, binding):
        return None
    if any(_may_change(module, piece.value, growth) for piece in growth.pieces):
        return None
    name = _free_name(module, target)
    joined = _joined(module, growth, name)
    piece = _added(module, growth, name)
    if name is None or joined is None or piece is None:
        return None
    start = _start(module, growth, loop, binding)
    if start is None:
        return None
    replaced, empty = start
    first = f"{name} = []" if empty else f"{name} = [{target.value}]"
    last = f"{target.value} = {joined}"
    if empty:
        last = f"if {name}:\n    {last}"
    elif _needs_dimension(module, growth.call):
        last = f"if len({name}) > 1:\n    {last}"
    return unsafe(
        module,
        f"Collect the pieces in a list, and call `{module.source(growth.call.func)}` once after the loop",
        insert_before(module, loop, first),
        replace(module, replaced, piece),
        insert_after(module, loop, last),
        risk="after an exception in the loop, the tensor has none of the pieces",
    )


def _is_plain(module: Module, growth: Growth, loop: StatementLoop, binding: Binding) -> bool:
    """Return whether one function holds the variable,
    and nothing but the growth sets or reads it in the loop.
    """
    tree = module.tree
    scope = module.names.scope(growth.target)
    if binding.scope is not scope or scope.kind not in (ScopeKind.FUNCTION, ScopeKind.MODULE):
        return False
    function = module.function(growth.call)
    for other in scope.bindings[binding.name]:
        if other is not binding and tree.contains(loop, other.node) and other.node not in growth.starts:
            return False
        if any(module.function(use) is not function for use in module.uses(other)):
            return False
    if any(isinstance(holder, cst.Try) for holder in _between(module, growth.call, loop)):
        return False
    for attempt in module.flow.tries(loop):
        # Behind an error in the loop, what has been joined so far is missing.
        goes_on = any(not leaves(handler.body) for handler in attempt.handlers)
        elsewhere = [*attempt.handlers, *([attempt.finalbody] if attempt.finalbody else [])]
        for use in module.uses(binding):
            if any(tree.contains(part, use) for part in elsewhere):
                return False
            if goes_on and not tree.contains(attempt.body, use):
                return False
    return not any(
        isinstance(node, (cst.Global, cst.Nonlocal))
        and re.search(rf"\b{binding.name}\b", module.source(node))
        for node in tree.descendants(function or tree.root)
    )


def _between(module: Module, node: cst.CSTNode, loop: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for holder in module.tree.ancestors(node):
        if holder is loop:
            return
        yield holder


def _may_change(module: Module, piece: cst.BaseExpression, growth: Growth) -> bool:
    """Return whether a piece may be overwritten before the pieces are joined.

    It is a view of something that the loop writes to, or is handed on afterwards, to what may work in place.
    """
    root = piece
    while not isinstance(root, cst.Name):
        match root:
            case cst.Attribute(attr=cst.Name(attribute)) if attribute in _VIEWS:
                root = root.value
            case cst.Subscript():
                root = root.value
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if (
                method in TENSOR_METHODS and method not in READING_METHODS
            ):
                root = owner
            case _:
                return isinstance(root, cst.Attribute)  # anybody may write to an attribute
    return any(_written_in_loop(module, binding, piece, growth) for binding in module.bindings(root))


def _written_in_loop(module: Module, binding: Binding, piece: cst.BaseExpression, growth: Growth) -> bool:
    """Return whether the loop may write to the tensor in a variable, by any name, once it was a piece."""
    tree, loop = module.tree, growth.loops[-1]
    others, attributes = other_names(module, binding)
    if any(tree.contains(loop, attribute) for attribute in attributes):
        return True
    for held in (binding, *others):
        each_round = tree.contains(loop, held.node)
        inside = held.kind is BindingKind.ASSIGN and each_round
        end = tree.span(tree.statement(held.node)).end if inside else 0
        for use in module.uses(held):
            if tree.contains(piece, use) or not tree.contains(loop, use):
                continue
            later = tree.order[use] > tree.order[growth.call]
            carried = inside and tree.span(use).start < end
            worst = fate(module, use)
            # What one tensor of all rounds is handed to may write to it in the next round.
            if worst is Fate.WRITTEN or (worst is Fate.HELD and (later or carried or not each_round)):
                return True
    return False


def _free_name(module: Module, target: cst.Name) -> str | None:
    """Return a name for the list that nothing in the function is called."""
    code = module.source(module.function(target) or module.tree.root)
    for name in (f"{target.value}_parts", f"{target.value}_pieces"):
        if not re.search(rf"\b{name}\b", code):
            return name
    return None


def _joined(module: Module, growth: Growth, name: str | None) -> str | None:
    """Return the code that joins the list as the call in the loop joins two tensors."""
    call = growth.call
    parent = module.tree.parent(call)
    if not isinstance(parent, (cst.Assign, cst.IfExp)):
        return None
    tensors = module.argument(call, "tensors").node
    rest = [arg for arg in call.args if arg.value is not tensors]
    if any(not operations_of(module).at_hand(arg.value) for arg in rest):
        return None
    pieces = f"{name}[::-1]" if growth.in_front else name
    arguments = [pieces, *(module.source(arg).rstrip(", \n") for arg in rest)]
    code = f"{module.source(call.func)}({', '.join(str(a) for a in arguments)})"
    return None if "#" in code or "\n" in code else code


def _added(module: Module, growth: Growth, name: str | None) -> str | None:
    """Return the code that puts the pieces of one round into the list."""
    codes = [module.source(piece.value) for piece in growth.pieces]
    if len(codes) == 1 and isinstance(growth.pieces[0], cst.Element):
        return f"{name}.append({codes[0]})"
    if growth.in_front:
        return None
    stars = ["*" if isinstance(piece, cst.StarredElement) else "" for piece in growth.pieces]
    return f"{name} += [{', '.join(star + code for star, code in zip(stars, codes, strict=True))}]"


def _needs_dimension(module: Module, call: cst.Call) -> bool:
    """Return whether a tensor that nothing is added to may be one that the function refuses,
    or shapes anew.
    """
    if module.qualified(call.func) not in ("torch.cat", "torch.concat", "torch.concatenate"):
        return True
    dim = module.argument(call, "dim")
    return not dim.absent and dim.constant not in (0, -1)


def _start(
    module: Module, growth: Growth, loop: StatementLoop, binding: Binding
) -> tuple[cst.CSTNode, bool] | None:
    """Return what goes away for adding to the list, and whether the list begins empty;
    None if it is not clear.
    """
    tree = module.tree
    parent = tree.parent(growth.call)
    asked = list(growth.asked)
    if isinstance(parent, cst.Assign) and not growth.starts:
        certain = any(
            _is_certain(module, other, loop) and not _is_changed(module, other)
            for other in module.bindings(growth.own)
            if other is not binding
        )
        return (parent, False) if certain and not asked else None
    branches = _branches(module, growth)
    if branches is None:
        return None
    test, first, replaced = branches
    pieces = [piece.value for piece in growth.pieces]
    if len(pieces) != 1 or not operations_of(module).same(first, pieces[0]):
        return None
    if module.source(first) != module.source(pieces[0]):
        return None
    if _asks_for_none(test, binding.name):
        before = [b for read in asked for b in module.bindings(read) if not tree.contains(loop, b.node)]
        around = module.flow.loops(loop)
        fresh = all(
            is_none(b.value) and not b.path and all(tree.contains(outer, b.node) for outer in around)
            for b in before
        )
        if len(asked) == 1 and before and fresh:
            return replaced, True
    elif not asked and _is_first_round(module, test, growth.loops) and len(growth.loops) == 1:
        return replaced, True
    return None


def _branches(
    module: Module, growth: Growth
) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.CSTNode] | None:
    """Return the test that tells the first piece from the others, the first piece,
    and the statement of it all.
    """
    tree = module.tree
    parent = tree.parent(growth.call)
    if isinstance(parent, cst.IfExp):
        statement = tree.parent(parent)
        other = parent.body if parent.orelse is growth.call else parent.orelse
        if not isinstance(statement, cst.Assign) or growth.starts:
            return None
        return (parent.test, other, statement) if _right_way(parent.test, parent.body is other) else None
    holder = next((branch.construct for branch in module.flow.branches(growth.call)), None)
    if not isinstance(holder, cst.If) or not tree.contains(growth.loops[0], holder):
        return None
    if len(growth.starts) != 1 or not isinstance(holder.orelse, cst.Else):
        return None
    if isinstance(tree.parent(holder), cst.If):
        return None
    first = _only_value(holder.body), _only_value(holder.orelse.body)
    values = [value for value in first if value is not None and value is not growth.call]
    if None in first or len(values) != 1:
        return None
    value = values[0]
    return (holder.test, value, holder) if _right_way(holder.test, first[0] is value) else None


def _only_value(block: cst.BaseSuite) -> cst.BaseExpression | None:
    """Return the value that a block of one assignment assigns."""
    line = block.body[0] if len(block.body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 else None


def _right_way(test: cst.BaseExpression, first_in_body: bool) -> bool:
    """Return whether the first piece is taken where the test says that there is nothing yet."""
    negated = isinstance(test, cst.Comparison) and isinstance(
        test.comparisons[0].operator, (cst.IsNot, cst.NotEqual, cst.GreaterThan)
    )
    return first_in_body is not negated


def _asks_for_none(test: cst.BaseExpression, name: str) -> bool:
    match test:
        case cst.Comparison(
            left=cst.Name(value),
            comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name("None"))],
        ):
            return value == name
        case _:
            return False


def _is_first_round(module: Module, test: cst.BaseExpression, loops: Sequence[StatementLoop]) -> bool:
    """Return whether it is ``i == 0`` in ``for i, x in enumerate(xs)`` or ``for i in range(n)``."""
    match test:
        case cst.Comparison(
            left=cst.Name() as counter,
            comparisons=[
                cst.ComparisonTarget(
                    operator=cst.Equal() | cst.NotEqual() | cst.GreaterThan(), comparator=cst.Integer("0")
                )
            ],
        ):
            bindings = module.bindings(counter)
        case _:
            return False
    loop = loops[0]
    if len(bindings) != 1 or not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
        return False
    bound, name = bindings[0], module.qualified(loop.iter.func)
    if bound.kind is not BindingKind.LOOP or bound.value is not loop.iter or len(loop.iter.args) != 1:
        return False
    return (name == "builtins.range" and not bound.path) or (
        name == "builtins.enumerate" and bound.path == (0,)
    )


def _is_certain(module: Module, binding: Binding, loop: StatementLoop) -> bool:
    """Return whether a variable is certainly set by this definition when the loop begins, and to a tensor."""
    if binding.kind is BindingKind.PARAMETER:
        return True
    if is_none(binding.value):
        return False
    block = module.tree.parent(module.tree.statement(binding.node))
    before = module.tree.order[binding.node] < module.tree.order[loop]
    return block is not None and before and module.tree.contains(block, loop)


def _is_changed(module: Module, binding: Binding) -> bool:
    """Return whether the tensor that the loop begins with is another's, which is written to."""
    value = binding.value
    return value is not None and any(writes_to(module, other) for other in module.bindings(value))
