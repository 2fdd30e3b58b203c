"""Python loops that go through a tensor on the device element by element, where one call would do it all.

A loop counts only if each of its rounds could be done at once: its statements compute with the element of the
round, and put the result in its own place, at the end of a list, or add it up. What one round leaves for the
next, parts of different lengths, branches and functions that are not known rule that out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import FUNCTIONS, TENSOR_METHODS
from torchlint.semantics.comments import Topic, says_inside
from torchlint.semantics.evidence import on_device
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.operations import operations_of
from torchlint.semantics.sources import Through, sole, traced
from torchlint.semantics.spellings import is_none
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path

# Their results have as many elements as the data says, or are on the host; and what draws random numbers.
_NOT_AT_ONCE = frozenset(
    {
        "argwhere",
        "expand",
        "narrow",
        "pad",
        "repeat",
        "repeat_interleave",
        "bernoulli",
        "bincount",
        "cpu",
        "dropout",
        "histc",
        "item",
        "load",
        "masked_select",
        "multinomial",
    }
    | {"nonzero", "numpy", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "save", "split"}
    | {
        "tolist",
        "from_numpy",
        "tensor",
        "as_tensor",
        "tensor_split",
        "unique",
        "unique_consecutive",
        "chunk",
        "register_hook",
        "backward",
    }
)
# What is asked of a tensor, and not of a list.
_OF_ONE = frozenset(
    {"cuda", "detach", "dim", "float", "mean", "ndim", "new", "new_ones", "new_zeros", "shape", "size", "sum"}
    | {"to", "unsqueeze", "view"}
)
_METADATA = frozenset({"shape", "dtype", "device", "T", "mT", "size", "dim", "ndim", "numel"})


@dataclass(frozen=True, slots=True)
class ElementLoop:
    """A loop over a dimension of a tensor: the tensor, and the first operation of a round."""

    tensor: cst.BaseExpression
    work: cst.BaseExpression


def element_loop(module: Module, loop: cst.For | cst.ListComp) -> ElementLoop | None:
    """Return what a loop does with the elements of a tensor on the device, if all rounds could be one;
    else None.
    """
    comprehension = loop.for_in if isinstance(loop, cst.ListComp) else loop
    if isinstance(loop, cst.ListComp) and (loop.for_in.ifs or loop.for_in.inner_for_in is not None):
        return None
    rounds = _Rounds(module, loop)
    if not rounds.follow(comprehension.target, comprehension.iter):
        return None
    if isinstance(loop, cst.ListComp):
        fine = rounds.computes(loop.elt)
    else:
        fine = loop.orelse is None and rounds.block(loop.body)
    if not fine or rounds.tensor is None or rounds.work is None:
        return None
    around = module.function(loop) or module.tree.root
    if says_inside(module, around, Topic.MEMORY, Topic.SPARSE):  # why an author goes one by one
        return None
    return ElementLoop(rounds.tensor, rounds.work)


class _Rounds:
    """What the rounds of one loop may do to be done at once."""

    def __init__(self, module: Module, loop: cst.CSTNode) -> None:
        self.module, self.loop = module, loop
        self.counters: set[str] = set()
        self.elements: set[str] = set()
        self.stores: set[str] = set()
        self.tensor: cst.BaseExpression | None = None
        self.work: cst.BaseExpression | None = None

    # ------------------------------------------------------------------ what it goes through

    def follow(self, target: cst.BaseExpression, iterable: cst.BaseExpression) -> bool:
        """Take up what the loop variables stand for: counters of a dimension, elements of a tensor."""
        match iterable:
            case cst.Call(args=[cst.Arg(star="", value=inner)]):
                name = self.module.qualified(iterable.func)
                if name == "builtins.range" and isinstance(target, cst.Name):
                    self.counters.add(target.value)
                    owner = sole(_owner_of_length(self.module, inner))
                    self.tensor = owner if owner is not None and self._is_on_device(owner) else None
                    return self.tensor is not None
                if (
                    name == "builtins.enumerate"
                    and isinstance(target, cst.Tuple)
                    and len(target.elements) == 2
                ):
                    counter = target.elements[0].value
                    if isinstance(counter, cst.Name):
                        self.counters.add(counter.value)
                    return self.follow(target.elements[1].value, inner)
        if isinstance(iterable, cst.Call) and self.module.qualified(iterable.func) == "builtins.zip":
            if not isinstance(target, cst.Tuple) or len(target.elements) != len(iterable.args):
                return False
            pairs = zip(target.elements, iterable.args, strict=True)
            return all(self.follow(element.value, arg.value) for element, arg in pairs)
        if isinstance(target, cst.Name) and self._is_on_device(iterable) and self._is_one_tensor(iterable):
            self.elements.add(target.value)
            self.tensor = self.tensor or iterable
            return True
        return False

    def _is_on_device(self, node: cst.BaseExpression) -> bool:
        return self.module.value(node).kind is Kind.TENSOR and on_device(self.module, node)

    def _is_one_tensor(self, node: cst.BaseExpression) -> bool:
        """Return whether it is no list of tensors, which goes by the same names: it is computed,
        or has a shape.
        """
        if not isinstance(node, cst.Name):
            return isinstance(node, (cst.Call, cst.BinaryOperation))
        if self.module.inference.clues.used_attributes(node) & _OF_ONE:
            return True
        return all(
            binding.kind is BindingKind.ASSIGN
            and not binding.path
            and isinstance(binding.value, (cst.Call, cst.BinaryOperation))
            and self.module.value(binding.value).kind is Kind.TENSOR
            for binding in self.module.bindings(node)
        )

    # ------------------------------------------------------------------ what each round does

    def block(self, body: cst.BaseSuite) -> bool:
        """Return whether all statements of a body could be done for all rounds at once."""
        small: list[cst.CSTNode] = []
        for line in body.body:
            if isinstance(line, cst.SimpleStatementLine):
                small += line.body
            elif isinstance(line, cst.BaseSmallStatement):
                small.append(line)
            else:
                return False
        return all(self._statement(part) for part in small) and not self._is_carried(body)

    def _statement(self, statement: cst.CSTNode) -> bool:
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)], value=value):
                if self.computes(value):
                    self.elements.add(target.value)
                    return True
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name() as owner) as target)]
            ):
                self.stores.add(owner.value)
                return self._is_own_place(target) and self.computes(statement.value)
            case cst.AugAssign(target=cst.Subscript(value=cst.Name() as owner) as target, value=value):
                self.stores.add(owner.value)
                return self._is_own_place(target) and self._works(target, [target, value])
            case cst.AugAssign(target=cst.Name() as target, operator=cst.AddAssign(), value=value):
                self.stores.add(target.value)
                return self.computes(value)
            case cst.Expr(
                value=cst.Call(
                    func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("append")),
                    args=[cst.Arg(star="", keyword=None, value=value)],
                )
            ):
                self.stores.add(owner.value)
                return self.computes(value)
        return False

    def _is_own_place(self, target: cst.Subscript) -> bool:
        """Return whether a round stores into its own place of a result: ``out[i]``, ``out[:, i]``."""
        indices = [part.slice for part in target.slice]
        return self._is_regular(target) and any(
            isinstance(index, cst.Index) and self._is_counter(index.value) for index in indices
        )

    def _is_counter(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value in self.counters

    def _is_carried(self, body: cst.BaseSuite) -> bool:
        """Return whether a round reads what an earlier one has left."""
        module = self.module
        for node in module.tree.descendants(body):
            if not isinstance(node, cst.Name) or not module.names.is_read(node):
                continue
            parent = module.tree.parent(node)
            if node.value in self.stores:
                kept = isinstance(parent, cst.AugAssign) and parent.target is node
                place = isinstance(parent, cst.Subscript) and isinstance(
                    module.tree.parent(parent), (cst.AssignTarget, cst.AugAssign)
                )
                filled = isinstance(parent, cst.Attribute) and parent.attr.value == "append"
                if not (kept or place or filled):
                    return True
                continue
            for binding in module.bindings(node):
                if module.tree.contains(self.loop, binding.node) and not self._is_before(binding, node):
                    return True
        return False

    def _is_before(self, binding: Binding, read: cst.Name) -> bool:
        """Return whether a variable of the loop is set before it is read, in the same round."""
        statement = self.module.tree.statement(binding.node)
        if statement is self.loop or binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
            return True
        order = self.module.tree.order
        return order[binding.node] < order[read] and not self.module.tree.contains(statement, read)

    def computes(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression could be computed for all rounds at once;
        notes the first work on them.
        """
        match node:
            case cst.Name() | cst.Integer() | cst.Float() | cst.SimpleString():
                return not self._is_counter(node)
            case cst.Attribute():
                return node.attr.value in _METADATA or self._is_outside(node)
            case cst.Subscript():
                return self._takes_part(node)
            case cst.UnaryOperation(operator=cst.Minus()):
                return self.computes(node.expression)
            case cst.BinaryOperation():
                return self._works(node, [node.left, node.right])
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
                return self._works(node, [left, right])
            case cst.Call():
                return self._called(node)
            case cst.List() | cst.Tuple():
                return all(self.computes(element.value) for element in node.elements)
        return False

    def _is_outside(self, node: cst.Attribute) -> bool:
        """Return whether it is ``self.weight``: what is the same in each round."""
        names = list(operations_of(self.module).read_names(node))
        return not any(name.value in self.counters | self.elements for name in names)

    def _works(self, node: cst.BaseExpression, operands: list[cst.BaseExpression]) -> bool:
        if not all(self.computes(operand) for operand in operands):
            return False
        if self.work is None and any(self._is_element(operand) for operand in operands):
            self.work = node
        return True

    def _is_element(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression depends on the round."""
        names = {name.value for name in operations_of(self.module).read_names(node)}
        return bool(names & (self.elements | self.counters))

    def _takes_part(self, node: cst.Subscript) -> bool:
        """Return whether it is ``x[i]``, ``x[:, i]``, ``x[i, 0]``:
        parts that have the same shape in each round.
        """
        if not isinstance(node.value, (cst.Name, cst.Attribute)):
            return False
        return self._is_regular(node) and self._is_tensor(node.value)

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        """Return whether a variable is a tensor that may be on the device, or holds one for the round."""
        value = self.module.value(node)
        named = isinstance(node, cst.Name) and node.value in self.elements
        return (named or value.kind is Kind.TENSOR) and value.device is not Device.CPU

    def _is_regular(self, node: cst.Subscript) -> bool:
        """Return whether indices and slices take as much in each round."""
        for element in node.slice:
            index = element.slice
            if isinstance(index, cst.Slice):
                if any(bound is not None and self._is_element(bound) for bound in (index.lower, index.upper)):
                    return self._is_one_row(index)
            elif isinstance(index, cst.Index):
                if not is_none(index.value) and not self._is_index(index.value):
                    return False
        return True

    def _is_index(self, node: cst.BaseExpression) -> bool:
        """Return whether an index is a constant, the counter,
        or a number that another tensor holds for the round.
        """
        if isinstance(node, cst.BinaryOperation) and isinstance(node.right, cst.Integer):
            node = node.left
            if not isinstance(node, cst.Subscript):
                return False
        match node:
            case cst.Integer() | cst.Ellipsis() | cst.UnaryOperation(expression=cst.Integer()):
                return True
            case cst.Subscript(
                value=cst.Name() | cst.Attribute() as tensor,
                slice=[cst.SubscriptElement(slice=cst.Index(value=inner))],
            ):
                return self._is_counter(inner) and self._is_tensor(tensor)
            case _:
                return self._is_counter(node)

    def _is_one_row(self, index: cst.Slice) -> bool:
        """Return whether it is ``x[i : i + 1]``."""
        match index:
            case cst.Slice(
                lower=cst.Name() as lower,
                upper=cst.BinaryOperation(
                    left=cst.Name() as upper, operator=cst.Add(), right=cst.Integer("1")
                ),
                step=None,
            ):
                return self._is_counter(lower) and lower.value == upper.value
            case _:
                return False

    def _called(self, call: cst.Call) -> bool:
        arguments = [arg.value for arg in call.args]
        if any(arg.star for arg in call.args):
            return False
        name = self.module.qualified(call.func)
        if name is not None:
            short = name.rpartition(".")[2]
            known = name.startswith("torch.") and (
                name in FUNCTIONS or name.startswith("torch.nn.functional.")
            )
            if not known or short in _NOT_AT_ONCE or short.endswith("_"):
                return False
            return self._works(call, [a for a in arguments if not self._is_option(a)])
        called = self.module.value(call.func)
        if called.kind is Kind.MODULE and called.cls != "torch.nn.Module":
            return bool(arguments) and self._works(call, arguments)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in TENSOR_METHODS:
            method = call.func.attr.value
            if method in _NOT_AT_ONCE or method.endswith("_"):
                return False
            operands = [call.func.value, *(a for a in arguments if not self._is_option(a))]
            return self._works(call, operands) if method not in _METADATA else True
        return False

    def _is_option(self, node: cst.BaseExpression) -> bool:
        """Return whether an argument is a constant of the call, as ``dim=-1`` or ``keepdim=True``."""
        return self.module.value(node).kind in (
            Kind.NUMBER,
            Kind.BOOL,
            Kind.STRING,
            Kind.NONE,
            Kind.DTYPE,
        ) and (not self._is_element(node))


@traced(Through.NOTHING)
def _owner_of_length(module: Module, node: cst.CSTNode, path: Path) -> cst.BaseExpression | None:
    """Return the tensor whose size is asked: ``len(x)``, ``x.size(1)``, ``x.shape[0]``,
    ``b, n = x.shape``.
    """
    match node:
        case cst.Call(args=[cst.Arg(value=inner)]) if module.qualified(node.func) == "builtins.len":
            return inner
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("size")), args=given):
            return owner if bool(path) is not bool(given) else None
        case cst.Subscript(value=cst.Attribute(value=owner, attr=cst.Name("shape"))):
            return owner
        case cst.Attribute(value=owner, attr=cst.Name("shape")) if path:
            return owner
    return None
