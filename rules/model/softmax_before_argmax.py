"""TL417: probabilities are computed only to find out which of them is the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import remove_statement, replace, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.constancy import same_later
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dimensions import rank
from torchlint.semantics.formulas import argument
from torchlint.semantics.module import Module
from torchlint.semantics.operations import Operation, operations_of
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import last_name

from .formulas import one_line, superfluous, through_names
from .unpacking import used_parts

_MONOTONIC = ("softmax", "log_softmax", "sigmoid")
# The names of other operations, which are none of these whatever they are called on.
_OTHERS = frozenset(TENSOR_METHODS).difference(_MONOTONIC)
# Where the dimension stands among the arguments behind the tensor, and what it is if it is left out.
_INDICES = {"argmax": (0, None), "argsort": (0, -1)}
# These return values, too: the indices are the second part of what they return.
_PAIRS = {"max": (0, None), "sort": (0, -1), "topk": (1, -1)}
# What leaves the order of the elements and their dimensions as they are.
_KEEPING = frozenset({"detach", "cpu", "numpy", "cuda", "float", "double", "contiguous", "clone"})
_NAMESPACES = ("torch.", "numpy.")


@dataclass(frozen=True, slots=True)
class _Pick:
    """A call of which only the positions of the largest elements are used.

    Attributes:
        call: the call, which is given the tensor as ``tensor``.
        dim: the dimension; None if it is not a number that the file shows.
        shares: whether the elements are used as well, divided by their sum.
    """

    call: cst.Call
    tensor: cst.BaseExpression
    dim: int | None
    shares: bool = False


@dataclass(frozen=True, slots=True)
class _Need:
    """A use that needs the probabilities themselves."""

    node: cst.CSTNode


@rule(
    "TL417",
    "softmax-before-argmax",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("oftmax|igmoid", "argmax|argsort|.max(|topk|sort("),
    remedy="Find the elements among the logits",
)
def softmax_before_argmax(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `softmax`, `log_softmax` and `sigmoid`, in any spelling, whose result is only used to find out which
    elements are the largest: by `argmax` or `argsort`, or by `max`, `topk` or `sort` of which only the
    indices are used. It also finds them where other uses stand only in other branches, as in a decoding loop
    that samples or takes the most likely token; and a `softmax` of which `topk` takes elements that are
    then divided by their own sum, as in the router of a mixture of experts.

    The rule ignores probabilities that anything else reads in the same run, and a softmax over another
    dimension than the one in which the maximum is looked for.

    ## Why is this bad?

    The functions are increasing, so that the largest logit has the largest probability. They read and write
    the whole tensor for nothing, which is felt for large vocabularies and for segmentation maps. They also
    round: logits that differ can have the same probability, and a sigmoid of more than 17 is 1.

    ## Example

    ```python
    prediction = torch.softmax(logits, dim=1).argmax(dim=1)
    ```

    ## Use instead

    ```python
    prediction = logits.argmax(dim=1)
    ```

    ## Fix safety

    The fix removes the function from what is asked for its largest elements. It is unsafe, because
    probabilities that round to the same number are tied, and logits are not. There is no fix where the
    logits may have changed in between, or where several uses read the probabilities.

    ## References

    - [torch.argmax](https://docs.pytorch.org/docs/stable/generated/torch.argmax.html)
    """
    spelt = last_name(call.func)
    if spelt in _OTHERS or is_test(module):
        return
    # What becomes of the result is found out sooner than what a method is called on.
    if spelt in _MONOTONIC and not any(isinstance(fact, _Pick) for fact in sinks(module, call, _judged)):
        return
    function = operations_of(module).of(call)
    if function is None or function.name not in _MONOTONIC or function.in_place:
        return
    facts = list(sinks(module, call, _judged))
    picks = [fact for fact in facts if isinstance(fact, _Pick)]
    needs = [fact.node for fact in facts if isinstance(fact, _Need)]
    if not picks or not all(_same_dimension(module, function, pick.dim) for pick in picks):
        return
    first = min(picks, key=lambda pick: module.tree.order[pick.call])
    if any(pick.shares for pick in picks) and (len(picks) > 1 or needs or function.name != "softmax"):
        return
    asked, related = last_name(first.call.func), ((call, f"the `{function.name}`"),)
    # A kernel is little, unless it is launched all the time.
    slight = "not in a hot loop" if places.hot(module, call) is None else None
    if first.shares:
        yield Finding(
            first.call,
            "these shares of the largest probabilities are a `softmax` of the largest logits",
            remedy="Call `topk` on the logits, and `softmax` on its values instead of the division",
            related=related,
            slight=slight,
        )
    elif not needs:
        yield Finding(
            first.call,
            f"`{asked}` finds the same elements without the `{function.name}`, which nothing else uses",
            fix=_without(module, function, picks),
            related=related,
            slight=slight,
        )
    elif not any(_same_run(module, pick.call, need) for pick in picks for need in needs):
        yield Finding(
            first.call,
            f"`{asked}` finds the same elements without the `{function.name}`, which only other branches use",
            remedy=f"Call `{asked}` on the logits, and `{function.name}` in the branches that need it",
            related=related,
            slight=slight,
        )


def _judged(module: Module, use: Use) -> Verdict[_Pick | _Need]:
    """Return what a use of the probabilities means."""
    match use.kind:
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.DISCARDED:
            return ()
        case UseKind.ATTRIBUTE if use.name == "data":
            return ONWARD
        case UseKind.METHOD if use.name == "to" or (use.name in _KEEPING and not use.call.args):
            return ONWARD
        case UseKind.METHOD:
            return _picked(module, use.call, use.node, use.call.args) or _Need(use.by)
        case UseKind.ARGUMENT if use.argument is use.call.args[0] and use.argument.keyword is None:
            if (module.qualified(use.call.func) or "").startswith(_NAMESPACES):
                return _picked(module, use.call, use.node, use.call.args[1:]) or _Need(use.by)
    return _Need(use.by)


def _picked(
    module: Module, call: cst.Call, tensor: cst.BaseExpression, others: Sequence[cst.Arg]
) -> _Pick | None:
    """Return a call of which only the positions of the largest elements are used; None for any other call.

    ``others`` are its arguments behind the tensor.
    """
    name, shares = last_name(call.func), False
    if name in _INDICES:
        place, default = _INDICES[name]
    elif name in _PAIRS and _only_indices(module, call):
        place, default = _PAIRS[name]
    elif name == "topk":
        place, default = _PAIRS[name]
        shares = True
    else:
        return None
    for i, each in enumerate(others):
        if each.star:
            return None
        keyword = each.keyword.value if each.keyword is not None else None
        if keyword in ("dim", "axis") or (keyword is None and i == place):
            default = operations_of(module).integer(each.value)
            break
    return _Pick(call, tensor, default, shares) if not shares or _divided(module, call, default) else None


def _divided(module: Module, call: cst.Call, dim: int | None) -> bool:
    """Return whether of the values that a call returns only the shares in their sum are used."""
    match module.tree.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[values, _]))]):
            binding = module.binding_of(values.value) if isinstance(values.value, cst.Name) else None
        case _:
            return False
    uses = module.uses(binding) if binding is not None else []
    statements = {module.tree.statement(use) for use in uses}
    if len(statements) != 1 or binding is None or not isinstance(values.value, cst.Name):
        return False
    (statement,) = statements
    if module.tree.parent(statement) is not module.tree.parent(module.tree.statement(call)):
        return False
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.AugAssign(target=cst.Name() as whole, operator=cst.DivideAssign(), value=total)]
        ):
            pass
        case cst.SimpleStatementLine(
            body=[cst.Assign(value=cst.BinaryOperation(left=whole, operator=cst.Divide(), right=total))]
        ):
            pass
        case cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call() as normalized)]):
            return _normalizes(module, normalized, dim)
        case _:
            return False
    if isinstance(total, cst.BinaryOperation) and isinstance(total.operator, cst.Add):
        total = total.left
    return _is_sum(module, total, values.value.value, dim) and module.source(whole) == values.value.value


def _normalizes(module: Module, call: cst.Call, dim: int | None) -> bool:
    """Return whether it is ``F.normalize(values, p=1, dim=-1)``."""
    if module.qualified(call.func) != "torch.nn.functional.normalize":
        return False
    power, along = module.argument(call, "p"), module.argument(call, "dim")
    return power.constant == 1 and dim is not None and along.constant == dim


def _is_sum(module: Module, total: cst.BaseExpression, name: str, dim: int | None) -> bool:
    """Return whether it is ``values.sum(dim=-1, keepdim=True)``."""
    match total:
        case cst.Call(func=cst.Attribute(value=cst.Name(value), attr=cst.Name("sum"))) if value == name:
            along, kept = module.argument(total, "dim"), module.argument(total, "keepdim")
            return dim is not None and along.constant == dim and kept.constant is True
    return False


def _only_indices(module: Module, call: cst.Call) -> bool:
    """Return whether of the values and indices that a call returns only the indices are read."""
    parent = module.tree.parent(call)
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "indices"
    return used_parts(module, call, 2) == frozenset({1})


def _same_dimension(module: Module, function: Operation, dim: int | None) -> bool:
    """Return whether a maximum along ``dim`` is looked for among elements
    that the function keeps in their order.
    """
    if function.name == "sigmoid":
        return True
    own = operations_of(module).integer(function.options.get("dim"))
    if own is None or dim is None or own == dim:
        return own is not None and own == dim
    dimensions = rank(module, function.operands[0])
    return dimensions is not None and own % dimensions == dim % dimensions


def _same_run(module: Module, pick: cst.Call, need: cst.CSTNode) -> bool:
    """Return whether a use that needs the probabilities may run in the same call, or iteration,
    as the other.
    """
    if module.function(pick) is not module.function(need):
        return True
    loops = [loop for loop in module.flow.loops(pick) if module.tree.contains(loop, need)]
    within = loops[-1] if loops else None
    return module.flow.may_follow(pick, need, within) or module.flow.may_follow(need, pick, within)


def _without(module: Module, function: Operation, picks: Sequence[_Pick]) -> Fix | None:
    """Return the fix that asks the logits;
    None if they cannot be written where the probabilities are read.
    """
    if len(picks) != 1:
        return None
    (pick,) = picks
    names = through_names(module, pick.tensor, 0)
    code = argument(module, function.operands[0])
    found = superfluous(module, names)
    if operations_of(module).origin(pick.tensor) is not function.node or found is None or not one_line(code):
        return None
    gone, all_gone = found
    if not all_gone or not same_later(module, function.operands[0], pick.call, gone):
        return None
    edits = [replace(module, pick.tensor, code), *(remove_statement(module, each) for each in gone)]
    risk = "probabilities that round to the same number are tied, and the logits are not"
    return unsafe(module, f"Remove the `{function.name}`", *edits, risk=risk)
