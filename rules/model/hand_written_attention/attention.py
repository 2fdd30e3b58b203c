"""Attention that is written out: a product of scores, softmax over the keys, a product with the values.

``attention`` recognises it from its last product backwards, whatever stands between: scales, masks that are
added, filled in or chosen, casts, reshapes, dropout. ``as_one_call`` writes the call of
``scaled_dot_product_attention`` where every argument maps exactly.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import remove_statement, replace, spell, unsafe
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.constancy import same_later
from torchlint.semantics.formulas import argument as _code
from torchlint.semantics.names import Binding
from torchlint.semantics.operations import Operation, operations_of
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Through, every, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

from ..causality import Triangle, causal
from ..formulas import loses_comment, superfluous

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path

PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum"})
"""What the operations are named that may be the last product of attention."""
_CASTS = frozenset({"to", "type", "type_as", "float", "half", "bfloat16", "double"})
_RESHAPES = frozenset({"view", "reshape", "unsqueeze", "squeeze", "contiguous", "clone", "expand", "flatten"})
_METADATA = frozenset({"shape", "size", "dim", "ndim", "device", "dtype", "is_cuda"})
_CAUSAL = "is_causal=True"
_LARGEST = frozenset({"max", "amax"})
# What calls code of its own with what a layer is given and computes.
_LISTENING = frozenset(
    {"register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"}
    | {"register_full_backward_pre_hook", "register_backward_hook", "register_module_forward_hook"}
    | {"register_module_forward_pre_hook", "create_feature_extractor", "IntermediateLayerGetter"}
)
# How fused attention is called, also by other libraries.
_FUSED = (
    "scaled_dot_product_attention",
    "flash_attn",
    "memory_efficient_attention",
    "sdpa",
    "flex_attention",
)


@dataclass(frozen=True, slots=True)
class Step:
    """What happens on the way from the scores to the weights.

    Attributes:
        kind: ``scale``, ``add`` or ``fill`` (masks), ``dropout``, ``cast``, ``shape``, or ``other``, which
            changes nothing that counts but cannot be written as an argument.
        operation: the operation, if it is one.
        other: the factor, the mask, the dropout layer.
        optional: the ``if`` around it, where it runs only if its mask is not None.
    """

    kind: str
    operation: Operation | None = None
    other: cst.BaseExpression | None = None
    optional: cst.If | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention written out.

    Attributes:
        product: the last product.
        softmax: what makes weights of scores.
        scores: the product of queries and keys.
        weights_first: whether the weights are the left operand of the last product.
        outer: the steps between softmax and the last product, the last one first.
        inner: those between the scores and softmax, the last one first.
        statements: the assignments that keep scores and weights under a name.
        straight: whether these run one after the other in one block, whatever is optional aside.
    """

    product: Operation
    softmax: Operation
    scores: Operation
    weights_first: bool
    outer: tuple[Step, ...]
    inner: tuple[Step, ...]
    statements: tuple[cst.CSTNode, ...]
    straight: bool


@dataclass(frozen=True, slots=True)
class _Chain:
    """The way back from an expression to the product of scores.

    Attributes:
        scores: the product.
        softmax: what makes weights of the scores, if the way leads through it.
        outer: the steps behind softmax, the last one first.
        inner: the steps before it, the last one first.
        reads: the names that the way leads through.
        bindings: what gives these names their values, the last one first.
        straight: whether one thing follows the other, whatever is optional aside.
    """

    scores: Operation
    softmax: Operation | None = None
    outer: tuple[Step, ...] = ()
    inner: tuple[Step, ...] = ()
    reads: frozenset[cst.Name] = frozenset()
    bindings: tuple[Binding, ...] = ()
    straight: bool = True

    def with_step(self, step: Step) -> _Chain:
        if self.softmax is not None:
            return dataclasses.replace(self, outer=(step, *self.outer))
        return dataclasses.replace(self, inner=(step, *self.inner))


# Softmax is looked for first (``weighted``), then the product of the scores.


@solved(None)
def _chain(module: Module, node: cst.BaseExpression, weighted: bool) -> _Chain | None:
    if isinstance(node, cst.Name):
        return _through_name(module, node, weighted)
    if isinstance(node, cst.IfExp):
        return None
    operation = operations_of(module).of(node)
    if operation is None:
        return _through_layer(module, node, weighted) if isinstance(node, cst.Call) else None
    return _through(module, operation, weighted)


def _through(module: Module, operation: Operation, weighted: bool) -> _Chain | None:
    name, operands = operation.name, operation.operands
    if weighted:
        if name == "softmax":
            chain = _chain(module, operands[0], False)
            if chain is None or not _over_keys(module, operation, chain):
                return None
            return dataclasses.replace(chain, softmax=operation)
    elif name in PRODUCTS or name == "baddbmm":
        return _Chain(operation)
    step = _step(operation, weighted)
    if step is None:
        return None
    for index in _carriers(operation):
        chain = _chain(module, operands[index], weighted)
        if chain is not None:
            if _is_statement(module, operation):
                chain = dataclasses.replace(chain, straight=False)
            return chain.with_step(_completed(step, operation, index))
    return None


def _is_statement(module: Module, operation: Operation) -> bool:
    """Return whether an operation in place is a statement of its own: ``scores.mul_(scale)``."""
    statement = isinstance(module.tree.parent(operation.node), cst.Expr)
    return operation.in_place and statement and not isinstance(operation.node, cst.AugAssign)


def _completed(step: Step, operation: Operation, carrier: int) -> Step:
    """Return the step with its other operand: of ``mask + scores`` the left one."""
    others = [o for i, o in enumerate(operation.operands) if i != carrier]
    match operation.name:
        case "add" | "sub" | "mul" | "div":
            other = others[0]
            if operation.name in ("sub", "div") and carrier == 1:
                return dataclasses.replace(step, kind="other", other=other)
            kind = "other" if operation.name == "sub" or operation.options else step.kind
            return dataclasses.replace(step, kind=kind, other=other)
        case "masked_fill":
            return dataclasses.replace(step, other=operation.options.get("mask"))
        case "where":
            return dataclasses.replace(step, other=operation.operands[_condition_of(operation)])
        case _:
            return step


def _step(operation: Operation, weighted: bool) -> Step | None:
    """Return what an operation between softmax and a product is; None for what attention does not have."""
    name = operation.name
    if name in _CASTS:
        return Step("cast", operation)
    if name in _RESHAPES:
        return Step("shape", operation)
    if name in ("transpose", "permute", "T", "mT"):
        return Step("transpose", operation) if weighted else None
    if name == "identity":
        return Step("other", operation)
    if weighted:
        return Step("dropout", operation, operation.layer) if name == "dropout" else None
    if name in ("mul", "div"):
        return Step("scale", operation)
    if name in ("add", "sub"):
        return Step("add", operation)
    if name in ("masked_fill", "where"):
        return Step("fill", operation)
    return None


def _through_layer(module: Module, call: cst.Call, weighted: bool) -> _Chain | None:
    """Look through dropout that the file does not show in full: ``self.attn_drop(weights)``."""
    name = (last_name(call.func) or "").lower()
    if not weighted or "drop" not in name or len(call.args) != 1 or call.args[0].star:
        return None
    if module.qualified(call.func) is not None:
        return None
    chain = _chain(module, call.args[0].value, weighted)
    return chain.with_step(Step("other")) if chain is not None else None


def _through_name(module: Module, name: cst.Name, weighted: bool) -> _Chain | None:
    chains = []
    for binding in module.bindings(name):
        definition = operations_of(module).definition(binding)
        if definition is None:
            return None
        if module.tree.contains(definition, name):
            # In a loop, what a variable was in the iteration before adds nothing to what it begins with.
            continue
        chain = _defined_by(module, definition, weighted)
        if chain is None:
            return None
        chains.append((binding, chain))
    if not chains or len({chain.scores.node for _, chain in chains}) != 1:
        return None
    found = chains[0][1] if len(chains) == 1 else _optional(module, chains)
    bindings = (one for binding, chain in chains for one in (binding, *chain.bindings))
    return dataclasses.replace(
        found,
        reads=frozenset((name,)).union(*(chain.reads for _, chain in chains)),
        bindings=tuple(dict.fromkeys(bindings)),
        straight=found.straight and all(chain.straight for _, chain in chains),
    )


def _defined_by(module: Module, definition: cst.CSTNode, weighted: bool) -> _Chain | None:
    if isinstance(definition, cst.AugAssign):
        operation = operations_of(module).of(definition)
        return _through(module, operation, weighted) if operation is not None else None
    assert isinstance(definition, cst.BaseExpression)
    return _chain(module, definition, weighted)


def _optional(module: Module, chains: Sequence[tuple[Binding, _Chain]]) -> _Chain:
    """Return of the chains of ``if mask is not None: scores = scores + mask`` the one with the mask."""
    ordered = sorted(chains, key=lambda pair: len(pair[1].inner) + len(pair[1].outer))
    binding, longest = ordered[-1]
    test = _only_statement_of(module, binding)
    shorter = ordered[0][1]
    if (
        len(ordered) == 2
        and test is not None
        and longest.inner
        and longest.inner[1:] == shorter.inner
        and longest.outer == shorter.outer
        and longest.softmax is shorter.softmax
    ):
        return dataclasses.replace(
            longest, inner=(dataclasses.replace(longest.inner[0], optional=test), *shorter.inner)
        )
    return dataclasses.replace(longest, straight=False)


def _only_statement_of(module: Module, binding: Binding) -> cst.If | None:
    """Return the ``if``, without ``else``, of which the statement that makes a binding is all there is."""
    tree = module.tree
    line = tree.statement(binding.node)
    block = tree.parent(line)
    test = tree.parent(block) if block is not None else None
    if not isinstance(test, cst.If) or test.orelse is not None or test.body is not block:
        return None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or len(test.body.body) != 1:
        return None
    return None if isinstance(tree.parent(test), cst.If) else test


def attention(module: Module, node: cst.BaseExpression) -> Attention | None:
    """Return the attention whose last product is ``node``; None if it is none,
    or its weights serve another end.
    """
    product = operations_of(module).of(node)
    if product is None or product.name not in PRODUCTS:
        return None
    first = 1 if product.name == "einsum" else 0
    operands = product.operands[first:]
    if len(operands) != 2:
        return None
    for index, operand in enumerate(operands):
        if not _may_hold_weights(module, operand):
            continue
        chain = _chain(module, operand, True)
        if chain is None or chain.softmax is None:
            continue
        uses = _other_uses(module, chain)
        found = Attention(
            product,
            chain.softmax,
            chain.scores,
            index == 0,
            chain.outer,
            chain.inner,
            tuple(module.tree.statement(b.node) for b in chain.bindings),
            chain.straight and _Reading.CHANGED not in uses,
        )
        if _multiplies_keys(module, found) and _Reading.ELSEWHERE not in uses:
            return found
    return None


def _may_hold_weights(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an operand may hold weights of attention:
    no parameter or attribute does. A cheap test that comes first.
    """
    while isinstance(node, cst.Call):
        if not isinstance(node.func, cst.Attribute):
            return True
        if module.qualified(node.func) is not None or not isinstance(node.func.value, (cst.Name, cst.Call)):
            return True
        if isinstance(node.func.value, cst.Name) and node.func.value.value == "self":
            return True
        node = node.func.value
    if isinstance(node, cst.Name):
        return any(binding.value is not None for binding in module.bindings(node))
    return isinstance(node, cst.BinaryOperation)


def _carriers(operation: Operation) -> tuple[int, ...]:
    """Return which operands can be the scores."""
    match operation.name:
        case "add" | "mul":
            return (0, 1)
        case "where":
            # ``torch.where(mask, scores, fill)`` and ``scores.where(mask, fill)``
            return (1, 2) if _condition_of(operation) == 0 else (0,)
        case _:
            return (0,)


def _condition_of(operation: Operation) -> int:
    node = operation.node
    method = isinstance(node, cst.Call) and len(node.args) < len(operation.operands)
    return 1 if method else 0


# ---------------------------------------------------------------------- what is summed over


def _over_keys(module: Module, softmax: Operation, chain: _Chain) -> bool:
    """Return whether softmax runs over the last dimension of the scores, as far as the file shows."""
    dim = softmax.options.get("dim")
    number = operations_of(module).integer(dim)
    if number is None:
        return False
    scores = chain.scores
    if scores.name == "einsum":
        return _summed_label(module, softmax, scores, chain.inner) is not None
    if number == -1:
        return True
    if scores.name in ("bmm", "baddbmm"):
        return number == 2
    if number == 2 and scores.name == "matmul":
        return _of_three(module, scores)
    return number == 3 and scores.name == "matmul"


def _summed_label(
    module: Module, softmax: Operation, scores: Operation, inner: Sequence[Step]
) -> tuple[str, int] | None:
    """Return the label of an ``einsum`` of scores that softmax runs over, and its place from the end."""
    number = operations_of(module).integer(softmax.options.get("dim"))
    labels = _labels(module, scores)
    if labels is None or number is None:
        return ("", -1) if number == -1 else None
    queries, keys, result = labels
    place = number if number < 0 else number - len(result)
    shown = not any(step.kind in ("shape", "transpose") for step in inner)
    if place == -1 and (shown or number == -1):
        return result[-1] if result else "", -1
    if not shown or "..." in result or not -len(result) <= place < 0:
        return None
    label = result[place]
    return (label, place) if label in keys and label not in queries else None


def _of_three(module: Module, scores: Operation) -> bool:
    """Return whether the keys show that scores have three dimensions:
    ``torch.matmul(q, k.transpose(1, 2))``.
    """
    queries, keys = (operations_of(module).of(operand) for operand in scores.operands[:2])
    if keys is None or keys.name not in ("transpose", "permute"):
        return False
    numbers = [operations_of(module).integer(o) for o in _dimensions(keys)]
    swapped = set(numbers) == {1, 2} if keys.name == "transpose" else numbers == [0, 2, 1]
    return swapped and (queries is None or queries.name not in ("transpose", "permute"))


def _labels(module: Module, operation: Operation) -> list[list[str]] | None:
    """Return the labels of the operands of an ``einsum`` of two, and of its result."""
    equation = module.value(operation.operands[0]).constant
    if not isinstance(equation, str) or "->" not in equation or len(operation.operands) != 3:
        return None
    left, right = equation.split("->", 1)
    parts = [*left.split(","), right]
    if len(parts) != 3:
        return None
    assert isinstance(operation.node, cst.Call)
    words = module.qualified(operation.node.func) == "einops.einsum"
    return [part.split() if words else re.findall(r"\.\.\.|\w", part.replace(" ", "")) for part in parts]


def _multiplies_keys(module: Module, found: Attention) -> bool:
    """Return whether the last product sums over the keys, those that softmax ran over."""
    transposed = sum(step.kind == "transpose" for step in (*found.outer,)) % 2 == 1
    if found.scores.name == "einsum":
        labels = _labels(module, found.scores)
        if labels is None:
            return False
        queries, keys, scores = labels
        summed_over = _summed_label(module, found.softmax, found.scores, found.inner)
        if summed_over is None:
            return False
        key, place = summed_over
        summed = set(queries) & set(keys) - set(scores)
        if len(summed) != 1 or not set(queries) - set(keys):
            # Attention between channels sums over all positions; a single query has no matrix of scores.
            return False
        if (key in queries) == (key in keys):
            return False
        if place != -1 and (found.product.name != "einsum" or any(s.kind == "shape" for s in found.outer)):
            return False
    else:
        place = -1
        operands = found.scores.operands[1:] if found.scores.name == "baddbmm" else found.scores.operands
        if any(_is_table(module, operand) for operand in operands):
            return False
        # Queries that are transposed before weights that are not: attention between channels, whose
        # "head size" is the number of tokens.
        if found.weights_first and not transposed and _is_transposed(module, operands[0]):
            if not _is_transposed(module, operands[1]):
                return False
    if found.product.name == "einsum":
        labels = _labels(module, found.product)
        if labels is None or transposed:
            return False
        weights, values, result = labels if found.weights_first else (labels[1], labels[0], labels[2])
        position = weights[place] if len(weights) >= -place else ""
        return position in values and position not in result
    return found.weights_first != transposed


def _is_table(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an operand is the weight of a layer or of an embedding: a classifier, not attention."""
    for found in module.tree.descendants(node):
        if isinstance(found, cst.Attribute) and found.attr.value == "weight":
            return True
    return False


def _is_transposed(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression swaps the last two dimensions right here."""
    operation = operations_of(module).of(node)
    if operation is None:
        return False
    numbers = [operations_of(module).integer(o) for o in _dimensions(operation)]
    if operation.name == "transpose":
        return set(numbers) in ({-1, -2}, {1, 2}, {2, 3})
    if operation.name == "permute":
        return numbers in ([0, 2, 1], [0, 1, 3, 2])
    return operation.name in ("mT", "T")


def _dimensions(operation: Operation) -> list[cst.BaseExpression]:
    if operation.name == "transpose":
        return [operation.options[o] for o in ("dim0", "dim1") if o in operation.options]
    rest = operation.operands[1:]
    if len(rest) == 1 and isinstance(rest[0], (cst.Tuple, cst.List)):
        return [element.value for element in rest[0].elements]
    return list(rest)


# ---------------------------------------------------------------------- other uses


class _Reading(enum.Enum):
    """What else scores or weights are read for."""

    HARMLESS = enum.auto()
    """Their shape, say, or a message."""
    CHANGED = enum.auto()
    """They are changed in place, or kept from overflowing, on the way to the product with the values."""
    ELSEWHERE = enum.auto()
    """Anything else."""


def _other_uses(module: Module, chain: _Chain) -> set[_Reading]:
    """Return what scores and weights are used for besides the product with the values."""
    return {
        _reading(module, use)
        for binding in chain.bindings
        for use in module.uses(binding)
        if use not in chain.reads
    }


def _reading(module: Module, use: cst.Name) -> _Reading:
    tree = module.tree
    parent = tree.parent(use)
    match parent:
        case cst.AugAssign() | cst.Del() | cst.Assert():
            return _Reading.HARMLESS
        case cst.Attribute(attr=cst.Name(name)) if name in _METADATA:
            return _Reading.HARMLESS
        case cst.Attribute(attr=cst.Name(name)) if tree.is_called(parent):
            call = tree.parents[parent]
            if name.endswith("_") and isinstance(tree.parent(call), cst.Expr):
                # ``scores.masked_fill_(mask, -inf)`` as a statement of its own
                masked = name in ("masked_fill_", "mul_", "div_", "add_")
                return _Reading.CHANGED if masked else _Reading.ELSEWHERE
            if name in _LARGEST and _is_subtracted(module, call, use):
                return _Reading.CHANGED
        case cst.Subscript(value=owner) if owner is use:
            if isinstance(tree.parent(parent), cst.AssignTarget):
                return _Reading.CHANGED
        case cst.Arg():
            call = tree.parents[parent]
            name = (module.qualified(call.func) or "") if isinstance(call, cst.Call) else ""
            if name in ("torch.max", "torch.amax"):
                return _Reading.CHANGED if _is_subtracted(module, call, use) else _Reading.ELSEWHERE
            # ``softmax(scores.float(), dim=-1).type_as(scores)``, and what a fill is made of:
            # ``torch.finfo(scores.dtype)``, ``torch.zeros_like(scores)``
            alike = isinstance(call, cst.Call) and last_name(call.func) == "type_as"
            if alike or name.endswith("_like") or name == "builtins.print":
                return _Reading.HARMLESS
        case cst.Comparison(comparisons=targets):
            if any(isinstance(target.operator, (cst.Is, cst.IsNot)) for target in targets):
                return _Reading.HARMLESS
    return _Reading.ELSEWHERE


def _is_subtracted(module: Module, largest: cst.CSTNode, use: cst.Name) -> bool:
    """Return whether ``scores.max(...)`` only keeps softmax
    from overflowing: ``scores - scores.max(...)[0]``.
    """
    for ancestor in module.tree.ancestors(largest):
        if isinstance(ancestor, cst.BinaryOperation):
            return isinstance(ancestor.operator, cst.Subtract) and module.source(ancestor.left) == use.value
        if not isinstance(ancestor, (cst.Attribute, cst.Subscript, cst.Call)):
            return False
    return False


# ---------------------------------------------------------------------- the one call


def as_one_call(module: Module, found: Attention) -> Fix | None:
    """Return the fix that writes ``scaled_dot_product_attention``; None unless each argument maps exactly."""
    if not found.straight or not found.weights_first or _listened_to(module, found):
        return None
    mapped = _operands(module, found)
    arguments = _arguments(module, found) if mapped is not None else None
    if mapped is None or arguments is None:
        return None
    operands, swapped = mapped
    needed = "2.1" if any(argument.startswith("scale=") for argument in arguments) else "2.0"
    if not module.target.at_least(needed):
        return None
    optional = [step.optional for step in found.inner if step.optional is not None]
    removed = _removable(module, found, optional)
    product = found.product.node
    spelling = spell(module, "torch.nn.functional.scaled_dot_product_attention", product)
    if removed is None or spelling is None:
        return None
    code = f"{spelling.text}({', '.join([*operands, *arguments])})"
    removed = [*_superfluous_masks(module, found, removed, code), *removed]
    if swapped:
        code += ".transpose(-2, -1)"
    if "#" in code or "\n" in code:
        return None
    edits: list[tuple[Edit, ...] | None] = [replace(module, product, code), spelling.edits]
    edits += [remove_statement(module, statement) for statement in removed]
    return unsafe(
        module,
        "Use `scaled_dot_product_attention`",
        *edits,
        risk="results change in the last digits, dropout draws differently, and NaN rows may become 0",
    )


def _listened_to(module: Module, found: Attention) -> bool:
    """Return whether the file hooks into layers, and softmax or dropout is one,
    which the one call would not run.
    """
    steps = [found.softmax, *(step.operation for step in (*found.inner, *found.outer) if step.operation)]
    if not any(step.layer is not None for step in steps):
        return False
    return any(name.value in _LISTENING for name in module.tree.nodes(cst.Name))


def _operands(module: Module, found: Attention) -> tuple[list[str], bool] | None:
    """Return the code of queries, keys and values,
    and whether the result has its last two dimensions swapped.
    """
    value = found.product.operands[-1]
    if found.scores.name == "einsum":
        labels = _labels(module, found.scores)
        if labels is None:
            return None
        queries, keys, scores = labels
        batch, rows = scores[:-2], scores[-2:]
        feature = [label for label in queries if label in keys and label not in scores]
        if len(rows) < 2 or len(feature) != 1:
            return None
        query = _oriented(module, found.scores.operands[1], queries, [*batch, rows[0], *feature])
        key = _oriented(module, found.scores.operands[2], keys, [*batch, rows[1], *feature])
    elif found.scores.name == "baddbmm":
        return None
    else:
        query = _code(module, found.scores.operands[0])
        key = _swapped(module, found.scores.operands[1], found.scores.name == "bmm")
    swapped = False
    if found.product.name == "einsum":
        labels = _labels(module, found.product)
        if labels is None:
            return None
        weights, values, result = labels
        batch, rows = weights[:-2], weights[-2:]
        feature = [label for label in values if label not in weights]
        if len(rows) < 2 or len(feature) != 1:
            return None
        code = _oriented(module, value, values, [*batch, rows[1], *feature])
        swapped = result == [*batch, *feature, rows[0]]
        if not swapped and result != [*batch, rows[0], *feature]:
            return None
    elif any(step.kind == "transpose" for step in found.outer):
        return None
    else:
        code = _code(module, value)
    if query is None or key is None or code is None:
        return None
    return [query, key, code], swapped


def _oriented(module: Module, node: cst.BaseExpression, labels: list[str], wanted: list[str]) -> str | None:
    """Return the code of an operand of ``einsum`` in this order, if at most the last two dimensions swap."""
    if labels == wanted:
        return _code(module, node)
    return _swapped(module, node) if labels == [*wanted[:-2], *reversed(wanted[-2:])] else None


def _swapped(module: Module, key: cst.BaseExpression, batched: bool = False) -> str:
    """Return the code of the keys with their last two dimensions swapped; of three,
    if they are ``batched``.
    """
    operation = operations_of(module).of(key)
    if operation is not None and operation.name == "mT":
        return _code(module, operation.operands[0])
    if operation is not None and operation.name == "transpose":
        numbers = {operations_of(module).integer(o) for o in _dimensions(operation)}
        if numbers in ({-1, -2}, {2, 3}) or (numbers == {1, 2} and batched):
            return _code(module, operation.operands[0])
    if operation is not None and operation.name == "permute" and _is_transposed(module, key):
        return _code(module, operation.operands[0])
    if operation is not None and operation.name == "mul" and isinstance(key, cst.BinaryOperation):
        left, right = operation.operands
        if _is_transposed(module, left) and is_number(module, right):
            return f"{_swapped(module, left, batched)} * {module.source(right)}"
    simple = module.tree.takes_dot(key)
    code = module.source(key)
    return f"{code}.transpose(-2, -1)" if simple else f"({code}).transpose(-2, -1)"


def _arguments(module: Module, found: Attention) -> list[str] | None:
    """Return the code of the mask, the dropout and the scale."""
    masks = [step for step in found.inner if step.kind in ("add", "fill")]
    scales = [step for step in found.inner if step.kind == "scale"]
    drops = [step for step in found.outer if step.kind == "dropout"]
    others = [step for step in (*found.inner, *found.outer) if step.kind in ("other", "shape", "transpose")]
    if others or len(masks) > 1 or len(scales) > 1 or len(drops) > 1:
        return None
    if scales and masks and found.inner.index(scales[0]) < found.inner.index(masks[0]):
        # The mask would have to be scaled, too.
        return None
    if any(step.optional is not None and step not in masks for step in (*found.inner, *found.outer)):
        return None
    if not _casts_cancel(module, found):
        return None
    scale = _scale(module, found, scales[0] if scales else None)
    mask = _mask(module, masks[0]) if masks else ""
    drop = _dropout(module, drops[0]) if drops else ""
    if scale is None or mask is None or drop is None:
        return None
    return [argument for argument in (mask, drop, scale) if argument]


def _scale(module: Module, found: Attention, step: Step | None) -> str | None:
    """Return the argument ``scale=…``; empty if it would be the default."""
    if step is None:
        return "scale=1.0"
    assert step.operation is not None and step.other is not None
    other = step.other
    divides = step.operation.name == "div"
    root = other if divides else _inverse(module, other)
    if root is not None and _is_root_of_head_size(module, root, found):
        return ""
    if not is_number(module, other):
        return None
    code = module.source(other)
    if divides:
        atom = isinstance(other, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float))
        return f"scale=1 / {code}" if atom or module.tree.parentheses(other) else f"scale=1 / ({code})"
    return f"scale={code}"


def _inverse(module: Module, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``x`` of ``1 / x``."""
    match node:
        case cst.BinaryOperation(operator=cst.Divide()) if operations_of(module).number(node.left) == 1:
            return node.right
        case _:
            return None


def _is_root_of_head_size(module: Module, node: cst.BaseExpression, found: Attention) -> bool:
    """Return whether an expression is ``math.sqrt(q.size(-1))``, the default scale's inverse."""
    origin = operations_of(module).origin(node)
    match origin:
        case cst.Call(args=[cst.Arg(value=inner)]) if module.qualified(origin.func) in (
            "math.sqrt",
            "numpy.sqrt",
        ):
            size = operations_of(module).origin(inner)
        case cst.BinaryOperation(operator=cst.Power(), left=left, right=right):
            size = operations_of(module).origin(left)
            if operations_of(module).number(right) != 0.5:
                return False
        case _:
            return False
    owner: cst.BaseExpression | None = None
    match size:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("size")), args=[cst.Arg(value=dim)]):
            if operations_of(module).integer(dim) != -1:
                return False
        case cst.Subscript(
            value=cst.Attribute(value=owner, attr=cst.Name("shape")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=dim))],
        ):
            if operations_of(module).integer(dim) != -1:
                return False
        case _:
            return False
    if owner is None or found.scores.name == "einsum":
        return False
    query, key = found.scores.operands
    keys = operations_of(module).of(key) if _is_transposed(module, key) else None
    candidates = [query] if keys is None else [query, keys.operands[0]]
    return any(operations_of(module).same(owner, candidate) for candidate in candidates)


def is_number(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a Python number, going by how it is computed and what is annotated."""
    return every(_number(module, node))


@traced(Through.OPERANDS)
def _number(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    if isinstance(node, cst.BinaryOperation) and not module.value(node).known:
        return not isinstance(node.operator, cst.MatrixMultiply) and every(_settings(module, node))
    return _plain_number(module, node)


@traced(Through.OPERANDS)
def _settings(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a value is computed of numbers and parameters of a constructor: ``dim // heads``."""
    if isinstance(node, cst.Param):
        function = module.tree.enclosing(node, cst.FunctionDef)
        return isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
    return _plain_number(module, node)


def _plain_number(module: Module, node: cst.CSTNode) -> bool | None:
    """Return whether an expression is a number by itself; None if that depends on what it comes from."""
    value = module.value(node)
    if value.known:
        return value.kind is Kind.NUMBER
    if not isinstance(node, cst.Call):
        return None
    dotted = module.qualified(node.func) or ""
    return dotted.startswith("math.") or dotted in ("builtins.float", "builtins.int", "numpy.sqrt")


def _casts_cancel(module: Module, found: Attention) -> bool:
    """Return whether the weights come back to the type of the values after they were cast for softmax."""
    casts = [s.operation for s in (*found.inner, *found.outer) if s.kind == "cast" and s.operation]
    dtype = found.softmax.options.get("dtype")
    if dtype is not None:
        if module.qualified(dtype) not in ("torch.float32", "torch.float"):
            return False
    if not casts:
        return dtype is None
    back = next((s.operation for s in found.outer if s.kind == "cast" and s.operation), None)
    if back is None or len([s for s in found.outer if s.kind == "cast"]) != 1:
        return False
    others = [*back.operands[1:], *back.options.values()]
    if back.name not in ("to", "type_as", "type") or len(others) != 1:
        return False
    wanted = others[0]
    if isinstance(wanted, cst.Attribute) and wanted.attr.value == "dtype":
        wanted = wanted.value
    elif back.name != "type_as":
        return False
    operations = operations_of(module)
    if operations.origin(wanted) is found.scores.node:
        return all(cast is back or cast.name == "float" for cast in casts)
    candidates = (*found.scores.operands[-2:], found.product.operands[-1])
    return any(operations.same(wanted, candidate) for candidate in candidates) and all(
        cast is back or cast.name == "float" for cast in casts
    )


def _mask(module: Module, step: Step) -> str | None:
    """Return the argument ``is_causal=True`` or ``attn_mask=…``;
    a mask is added as it is, or lets through where it is true.
    """
    operation, mask = step.operation, step.other
    if operation is None or mask is None:
        return None
    if step.kind == "add":
        if operation.name != "add" or operation.options:
            return None
        if step.optional is None and causal(module, mask) is Triangle.BIAS:
            return _CAUSAL
        if _computes(mask):
            return None
        return f"attn_mask={module.source(mask)}" if _unless_none(module, step, mask) == "" else None
    fill = operation.options.get("value")
    if operation.name == "where":
        condition = _condition_of(operation)
        rest = [o for i, o in enumerate(operation.operands) if i not in (condition, _carriers(operation)[0])]
        fill = rest[0] if len(rest) == 1 else None
    if operations_of(module).number(fill) != -math.inf:
        return None
    shown = Triangle.KEPT if operation.name == "where" else Triangle.HIDDEN
    if step.optional is None and causal(module, mask) is shown:
        return _CAUSAL
    prefix = _unless_none(module, step, mask)
    if prefix is None:
        return None
    code = module.source(mask) if operation.name == "where" else _inverted(module, mask)
    return f"attn_mask={prefix}{code}"


def _computes(mask: cst.BaseExpression) -> bool:
    """Return whether a term is computed on the spot, of which nobody says that it is a mask."""
    return not isinstance(mask, (cst.Name, cst.Attribute, cst.Subscript))


def _unless_none(module: Module, step: Step, mask: cst.BaseExpression) -> str | None:
    """Return what stands before a mask that may be None; None where the ``if`` asks something else."""
    if step.optional is None:
        return ""
    match step.optional.test:
        case cst.Comparison(
            left=cst.Name() as asked,
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            names = module.tree.names_in(mask)
            if asked.value not in names:
                return None
            if step.kind == "add":
                return "" if isinstance(mask, cst.Name) else None
            return f"None if {asked.value} is None else "
        case _:
            return None


def _inverted(module: Module, mask: cst.BaseExpression) -> str:
    """Return the code of a boolean mask the other way round."""
    match mask:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]
        ):
            return f"{module.source(left)} != {module.source(right)}"
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return module.source(inner)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name("logical_not")), args=[]):
            return module.source(inner)
        case cst.Name() | cst.Attribute() | cst.Subscript() | cst.Call():
            return f"~{module.source(mask)}"
        case _:
            return f"~({module.source(mask)})"


def _dropout(module: Module, step: Step) -> str | None:
    """Return the argument ``dropout_p=…``, zero where the layer does nothing."""
    operation = step.operation
    if operation is None or operation.in_place:
        return None
    if step.other is not None:
        layer = module.source(step.other)
        if not isinstance(step.other, (cst.Attribute, cst.Name)):
            return None
        return f"dropout_p={layer}.p if {layer}.training else 0.0"
    p, training = operation.options.get("p"), operation.options.get("training")
    code = module.source(p) if p is not None else "0.5"
    if training is None:
        return f"dropout_p={code}"
    if not isinstance(training, (cst.Name, cst.Attribute)):
        return None
    if isinstance(training, cst.Name) and training.value in ("True", "False"):
        return f"dropout_p={code}" if training.value == "True" else ""
    return f"dropout_p={code} if {module.source(training)} else 0.0"


def _removable(module: Module, found: Attention, optional: Sequence[cst.If]) -> list[cst.CSTNode] | None:
    """Return the statements that go away, if they stand in one block before the last product, in order."""
    tree = module.tree
    final = tree.statement(found.product.node)
    block = tree.parent(final)
    removed: list[cst.CSTNode] = []
    for statement in found.statements:
        outer = next((test for test in optional if tree.contains(test, statement)), None)
        if outer is None:
            if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
                return None
            if isinstance(statement.body[0], cst.Assign) and len(statement.body[0].targets) != 1:
                return None
            if not isinstance(statement.body[0], (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                return None
        holder = outer if outer is not None else statement
        if tree.parent(holder) is not block or loses_comment(module, holder):
            return None
        if holder not in removed and holder is not final:
            removed.append(holder)
        elif holder is final:
            return None
    removed.sort(key=lambda node: tree.span(node).start)
    return removed if _undisturbed(module, found, removed, final) else None


def _superfluous_masks(
    module: Module, found: Attention, removed: Sequence[cst.CSTNode], code: str
) -> list[cst.CSTNode]:
    """Return the statements that make a mask which ``is_causal=True`` takes the place of.

    The triangle of a matrix of ones is made by torch alone, so that nothing else is lost with them.
    """
    if _CAUSAL not in code:
        return []
    operations, tree = operations_of(module), module.tree
    gone: list[cst.CSTNode] = [*removed, found.product.node]
    needed = set(re.findall(r"\w+", code))
    masks = [name for step in found.inner if step.other for name in operations.read_names(step.other)]
    while masks:
        mask = masks.pop()
        bindings = module.bindings(mask)
        if len(bindings) != 1 or mask.value in needed or not any(tree.contains(node, mask) for node in gone):
            continue
        uses = [use for use in module.uses(bindings[0]) if any(tree.contains(node, use) for node in gone)]
        statements, ends = superfluous(module, [mask], uses) or ((), False)
        if ends:
            new = [statement for statement in statements if statement not in gone]
            gone += new
            masks += [name for statement in new for name in operations.read_names(statement)]
    return gone[len(removed) + 1 :]


def _undisturbed(
    module: Module, found: Attention, removed: Sequence[cst.CSTNode], final: cst.CSTNode
) -> bool:
    """Return whether what the call reads is the same at the last product as where it stood before."""
    if not removed:
        return True
    if not all(same_later(module, statement, found.product.node, removed) for statement in removed):
        return False
    # Anything between that is not part of it may change what is read, or draw random numbers.
    return _between(module, removed, final)


def _between(module: Module, removed: Sequence[cst.CSTNode], final: cst.CSTNode) -> bool:
    block = module.tree.parent(final)
    body = block.body if isinstance(block, (cst.IndentedBlock, cst.Module)) else ()
    inside = False
    for statement in body:
        if statement is removed[0]:
            inside = True
        if statement is final:
            return True
        if inside and statement not in removed and not _plain(module, statement):
            return False
    return False


def _plain(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a statement only computes something into a name."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for small in statement.body:
        if not isinstance(small, cst.Assign):
            return False
        if any(not isinstance(target.target, (cst.Name, cst.Tuple)) for target in small.targets):
            return False
    return True


def has_fused_form(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the function or class around has a fused form, too,
    so that this one is there on purpose.
    """
    if not any(module.tree.mentions(word) for word in _FUSED):
        return False
    around: list[cst.CSTNode] = []
    owner = module.tree.enclosing(node, cst.ClassDef)
    if owner is not None:
        around += SelfAttributes.of(module).family(owner)
    function = module.function(node)
    if function is not None:
        around.append(function)
    homes = ((module.home(part), part) for part in around)
    return any(home.tree.holds(part, _fused(home)) for home, part in homes)


@remembered
def _fused(module: Module) -> list[cst.CSTNode]:
    """Return the names and texts of a file that speak of fused attention, in source order."""
    spoken = module.tree.nodes(cst.Name, cst.SimpleString)
    return [
        node
        for node in spoken
        if isinstance(node, (cst.Name, cst.SimpleString)) and any(word in node.value for word in _FUSED)
    ]
