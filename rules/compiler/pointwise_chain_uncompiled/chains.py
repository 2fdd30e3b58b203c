"""Functions that compute nothing but pointwise operations, one behind the other.

Each of them is a kernel that reads and writes whole tensors, where a compiler makes one kernel of all. A
function counts if that is all it does: straight-line code of arithmetic, of pointwise functions, of views and
casts, and of reductions, which are fused as well; so that it can be compiled by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import ELEMENTWISE
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import is_none
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ACTIVATIONS = frozenset(
    {"relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu", "softplus", "hardswish"}
    | {"hardsigmoid", "hardtanh", "logsigmoid", "softsign", "tanhshrink"}
)
# They launch nothing, or copy without computing.
_STILL = frozenset(
    {"bfloat16", "bool", "contiguous", "detach", "double", "expand", "expand_as", "flatten", "float", "half"}
    | {"int", "long", "permute", "reshape", "squeeze", "to", "transpose", "type_as", "unsqueeze", "view"}
    | {"chunk", "split", "unbind", "size", "dim", "view_as", "clone"}
)
# They end a kernel or fill one, and are fused with what is pointwise before and behind them.
_REDUCTIONS = frozenset(
    {"mean", "sum", "amax", "amin", "var", "std", "norm", "prod", "softmax", "log_softmax", "logsumexp"}
    | {"cat", "stack", "zeros_like", "ones_like", "full_like"}
)
_PASSED = _STILL | _REDUCTIONS
_COMPUTING = (ELEMENTWISE - {"clone", "detach", "bernoulli"}) | _ACTIVATIONS | {"where", "masked_fill"}


def pointwise_operations(module: Module, function: cst.FunctionDef) -> int:
    """Return how many pointwise operations on tensors a function computes behind each other;
    0 if it does more.

    The longest chain counts, not the sum: what does not feed one another cannot be fused into one.
    """
    if function.asynchronous is not None or not isinstance(function.body, cst.IndentedBlock):
        return 0
    statements = list(_statements(function.body))
    if not statements or not isinstance(statements[-1], cst.Return):
        return 0
    chains = _Chains(module, function)
    longest = 0
    for statement in statements:
        match statement:
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
                continue
            case cst.Assign(targets=[cst.AssignTarget()], value=value) | cst.Return(value=value) if value:
                length = chains.length(value)
            case _:
                return 0
        if length is None:
            return 0
        longest = max(longest, length)
    return longest


def _statements(body: cst.IndentedBlock) -> Iterator[cst.CSTNode]:
    for line in body.body:
        if not isinstance(line, cst.SimpleStatementLine):
            yield line
            return
        yield from line.body


class _Chains:
    """The lengths of the chains that end in the expressions of one function."""

    def __init__(self, module: Module, function: cst.FunctionDef) -> None:
        self.module = module
        self.function = function

    @solved(None)
    def length(self, node: cst.BaseExpression) -> int | None:
        """Return how many operations are chained up to here; None if something else is done on the way."""
        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString() | cst.Ellipsis():
                return 0
            case cst.Name():
                return self._of_name(node)
            case cst.Attribute():
                return 0
            case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
                return self._longest([inner], self._on_tensor(node))
            case cst.BinaryOperation(left=left, right=right, operator=operator):
                if isinstance(operator, cst.MatrixMultiply):
                    return None
                return self._longest([left, right], self._on_tensor(node))
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return self._longest([element.value for element in elements], False)
            case cst.Subscript(value=value, slice=slices):
                return self.length(value) if all(_is_view(element.slice) for element in slices) else None
            case cst.Comparison(left=left, comparisons=[target]):
                return self._longest([left, target.comparator], self._on_tensor(node))
            case cst.Call():
                return self._of_call(node)
        return None

    def _of_name(self, name: cst.Name) -> int | None:
        found = 0
        for binding in self.module.bindings(name):
            if binding.scope.node is not self.function or binding.kind is BindingKind.PARAMETER:
                continue
            if binding.value is None:
                return None
            length = self.length(binding.value)
            if length is None:
                return None
            found = max(found, length)
        return found

    def _of_call(self, call: cst.Call) -> int | None:
        qualified = self.module.qualified(call.func)
        if any(arg.star for arg in call.args):
            return None
        given = [arg.value for arg in call.args]
        if qualified is not None:
            package, _, name = qualified.rpartition(".")
            if package in ("math", "builtins"):
                # Of numbers, or of shapes.
                return 0 if not any(self.module.value(value).kind is Kind.TENSOR for value in given) else None
        elif isinstance(call.func, cst.Attribute):
            if self.module.classes.instance_class(call.func.value) is not None:
                return None  # a method or a layer of its own, whatever it is called
            package, name = "torch", call.func.attr.value
            given = [call.func.value, *given]
        else:
            return None
        if package not in ("torch", "torch.nn.functional", "torch.special") or name.endswith("_"):
            return None
        if name in _COMPUTING:
            return self._longest(given, self._on_tensor(call))
        return self._longest(given, False) if name in _PASSED else None

    def _longest(self, parts: list[cst.BaseExpression], counts: bool) -> int | None:
        lengths = [self.length(part) for part in parts]
        if any(length is None for length in lengths):
            return None
        return max((length for length in lengths if length is not None), default=0) + counts

    def _on_tensor(self, node: cst.BaseExpression) -> bool:
        """Return whether a tensor is computed here: the model says so,
        or what goes in is a tensor elsewhere.
        """
        value = self.module.value(node)
        if value.kind is Kind.UNKNOWN:
            return any(
                isinstance(part, cst.Name) and part.value in self._tensors
                for part in self.module.tree.descendants(node)
            )
        return value.kind in (Kind.TENSOR, Kind.BATCH)

    @cached_property
    def _tensors(self) -> set[str]:
        """The names that make up what the function gives to pointwise functions of torch.

        Numbers among them do no harm: what is computed of numbers alone is seldom a long chain.
        """
        waiting: list[cst.CSTNode] = [
            part.args[0].value
            for part in self.module.tree.descendants(self.function.body)
            if isinstance(part, cst.Call) and part.args and self._is_pointwise(part)
        ]
        found: set[str] = set()
        while waiting:
            for part in self.module.tree.descendants(waiting.pop()):
                if not isinstance(part, cst.Name) or part.value in found:
                    continue
                bindings = [b for b in self.module.bindings(part) if b.scope.node is self.function]
                if bindings and not any(_is_number(b.node) for b in bindings):
                    found.add(part.value)
                    waiting.extend(b.value for b in bindings if b.value is not None)
        return found

    def _is_pointwise(self, call: cst.Call) -> bool:
        package, _, name = (self.module.qualified(call.func) or "").rpartition(".")
        return package in ("torch", "torch.nn.functional", "torch.special") and name in _COMPUTING


def _is_view(index: cst.BaseSlice) -> bool:
    """Return whether an index is written out, so that what it gives is a view of known size."""
    if isinstance(index, cst.Slice):
        return True
    value = index.value if isinstance(index, cst.Index) else None
    if isinstance(value, cst.UnaryOperation):
        value = value.expression
    return is_none(value) or isinstance(value, (cst.Integer, cst.Ellipsis))


def _is_number(node: cst.CSTNode) -> bool:
    """Return whether a parameter is declared as a number, or is one by default."""
    if not isinstance(node, cst.Param):
        return False
    if node.annotation is not None:
        annotation = node.annotation.annotation
        return isinstance(annotation, cst.Name) and annotation.value in ("int", "float", "bool")
    return isinstance(node.default, (cst.Integer, cst.Float))
