"""TL205 branch-on-tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.compilation import compiled
from torchlint.semantics.evidence import perhaps_accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Path, Through, some, traced
from torchlint.semantics.spellings import is_none, positional
from torchlint.semantics.synchronisation import asking_function, truth_tests
from torchlint.semantics.usage import handed_to
from torchlint.semantics.values import Kind

from ..decisions import instead, outcome, slight_decision
from ..destinations import steps_environment
from ..needs import Need, needed_on_host
from ..numbers import gone_through, takes_number
from ..remedies import (
    as_spelt,
    callee,
    inline,
    tight,
)
from ..stakes import AS_SIZE, slight, unspared
from ..waits import waiting_place
from .checks import check_of, factorizes


@rule(
    "TL205",
    "branch-on-tensor",
    severity=WARNING,
    fix="none",
    on=(
        cst.If,
        cst.While,
        cst.Assert,
        cst.IfExp,
        cst.CompIf,
        cst.UnaryOperation,
        cst.BooleanOperation,
        cst.Comparison,
        cst.Call,
    ),
    mentions=("torch|lightning|accelerate",),
    remedy="Select on the device with `torch.where(…)`",
    synchronizes=True,
)
def branch_on_tensor(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python control flow that depends on the value of a tensor on the accelerator, in every iteration of
    a hot loop or in every forward pass. This includes

    - `if`, `while`, `assert`, `and`, `or`, `not`, conditional expressions, chained comparisons and `in`;
    - the builtins `any`, `all`, `min`, `max`, `sorted` and `sum`, and `torch.equal` and `torch.allclose`;
    - calls that check their arguments or results: distributions of `torch.distributions`, which validate
      their parameters when they are created, `clip_grad_norm_(..., error_if_nonfinite=True)`, `torch.normal`
      with a tensor of standard deviations, `gaussian_nll_loss` with a tensor of variances, and
      `torch.linalg.inv`, `solve`, `cholesky`, `lu_factor`, `svd`, `eigh` and other decompositions, which
      check for errors.

    In compiled code, TL513 reports a graph break instead. The finding is a note for functions of
    `torch.linalg`, for `gaussian_nll_loss`, and for a distribution from which the action for an environment
    is sampled.

    Findings are of low impact where no simple edit avoids the wait: the branch raises, prints, leaves the
    loop or the function, sets what the next step depends on (a learning rate), runs a model, begins with a
    wait of its own (`x[mask]`) or keeps a division by zero out of the gradients, which `torch.where` would
    not. Counts can be divided by in any case, as `count.clamp(min=1)`. In training, printing is not of low
    impact, because printing every hundredth step is enough. Decompositions that no function computes without
    checking (`svd`, `eigh`, `lstsq`, `pinv`) are of low impact as well. Otherwise, nothing is of low impact
    in inference engines, and in decoding loops only what decides what Python does next.

    ## Why is this bad?

    Python needs the value to continue, so the host waits until the device has finished all work launched so
    far. In that time it could have prepared the next batch or launched the backward pass. `any()`, `max()`
    and similar builtins synchronize once for every element. `sum()` does not synchronize, but launches one
    kernel for every element.

    ## Example

    ```python
    loss = criterion(model(x), y)
    if not torch.isfinite(loss):
        raise RuntimeError("the loss is not finite")
    if x.max() > limit:
        x = x.clamp(max=limit)
    ```

    ## Use instead

    Select on the device, where a decision only chooses between values:

    ```python
    x = torch.where(x > limit, limit, x)
    ```

    or check later, or on the device (`torch._assert_async`):

    ```python
    bad |= ~torch.isfinite(loss)
    if step % 100 == 0 and bad:
        raise RuntimeError("the loss is not finite")
    ```

    `torch.maximum` replaces `max`, and a `GradScaler` already skips steps with non-finite gradients.
    `Normal(mean, scale, validate_args=False)` does not validate its parameters;
    `torch.distributions.Distribution.set_default_validate_args(False)` turns validation off for all
    distributions. `torch.linalg.inv_ex` and its counterparts return an error code instead of checking it.

    ## Fix safety

    There is no fix: what can replace a branch depends on what it does.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_recur(module, node) or not perhaps_accelerated(module):
        return
    if isinstance(node, cst.Call):
        yield from _call_that_decides(module, node)
        return
    if compiled(module, node):
        return
    for tensor in truth_tests(module, node):
        hot = waiting_place(module, tensor)
        if hot is not None:
            what = outcome(module, tensor)
            subject = "a tensor" if gone_through(module, tensor) is None else "an element of a tensor"
            decision = _decision(module, node)
            message = f"{decision} on {subject} synchronizes with the device {when(module, hot)}"
            remedy = as_spelt(module, node, _remedy(module, node, tensor, hot))
            little = slight_decision(module, tensor, what, hot) or unspared(module, hot, remedy)
            yield Finding(tensor, message, related=trail(hot), remedy=remedy, slight=little)


_KEYWORDS: dict[type[cst.CSTNode], str] = {
    cst.If: "`if`",
    cst.While: "`while`",
    cst.Assert: "`assert`",
    cst.IfExp: "`if`",
    cst.CompIf: "`if`",
    cst.UnaryOperation: "`not`",
}


def _decision(module: Module, node: cst.CSTNode) -> str:
    """Return what decides, as the subject of a message: "`if`"."""
    match node:
        case cst.If() if isinstance(module.tree.parent(node), cst.If):
            return "`elif`"
        case cst.BooleanOperation(operator=operator):
            return "`and`" if isinstance(operator, cst.And) else "`or`"
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In())]):
            return "`in`"
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.NotIn())]):
            return "`not in`"
    return _KEYWORDS.get(type(node), "a chained comparison")


def _remedy(module: Module, node: cst.CSTNode, tensor: cst.BaseExpression, hot: Hot) -> str:
    """Return what to write in place of a decision, by its form and by what makes the place hot."""
    if some(_is_none(module, tensor)):
        return f"Compare it with None, if that is what is meant: `{inline(module, tensor)} is not None`"
    items = gone_through(module, tensor)
    if items is not None:
        return f"Copy the tensor once before the loop, and use the list: `{tight(module, items)}.tolist()`"
    return instead(module, tensor, hot) or _joined(module, node)


@traced(Through.RETURNS)
def _is_none(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a value is None, as that of a function which sometimes has nothing to give."""
    return is_none(node) or None


def _decides_later(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a truth that has been given a name decides on something, or is compared with True."""
    if use.kind is UseKind.ASSIGNED:
        return ONWARD
    return use.kind in (UseKind.TESTED, UseKind.COMPARED)


def _joined(module: Module, node: cst.CSTNode) -> str:
    """Return what makes a tensor of a condition that is no decision of a statement."""
    match node:
        case cst.UnaryOperation() if any(verdicts(module, node, _decides_later)):
            return "Do the work in either case, or select with `torch.where(…)`"
        case cst.UnaryOperation():
            return "Negate on the device with `torch.logical_not(…)`"
        case cst.BooleanOperation(operator=operator):
            joint = "&" if isinstance(operator, cst.And) else "|"
            return f"Combine the conditions on the device with `{joint}`, each in parentheses"
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.In(), comparator=into)]
        ):
            return f"Search on the device: `({module.source(into)} == {module.source(left)}).any()`"
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.NotIn(), comparator=into)]
        ):
            return f"Search on the device: `({module.source(into)} != {module.source(left)}).all()`"
    return "Split the chain into single comparisons in parentheses, and combine them with `&`"


def _call_that_decides(module: Module, call: cst.Call) -> Iterator[Finding]:
    check = check_of(module, call)
    name = asking_function(module, call) if check is None else None
    if (check is None and name is None) or (name == "builtins.sum" and _decides(module, call)):
        return
    if check is None and compiled(module, call):
        return
    hot = waiting_place(module, call)
    if hot is None:
        return
    often, related = when(module, hot), trail(hot)
    if check is None:
        assert name is not None
        remedy = as_spelt(module, call, _function_of_torch(module, call, name, hot))
        what = outcome(module, call) if name.startswith("torch") else None
        little = slight_decision(module, call, what, hot)
        if _chooses_number(module, call, name):
            remedy = "Read the tensors together before, with one `.tolist()`, and compare the numbers"
            little = slight(module, call, AS_SIZE)
        message = _of_call(module, call, name, often)
        yield Finding(call, message, related=related, remedy=remedy, slight=little)
        return
    # Who acts in an environment waits for the action anyway.
    acting = handed_to(module, call, steps_environment)
    severity = NOTE if acting or check.advice else None
    message = f"`{callee(module, call)}` synchronizes with the device to {check.purpose} {often}"
    remedy = as_spelt(module, call, check.remedy)
    little = slight(module, call, "factorizing waits anyway") if factorizes(module, call) else None
    if check.needed:
        little = "no function does the same without checking"
    yield Finding(call, message, severity=severity, related=related, remedy=remedy, slight=little)


def _chooses_number(module: Module, call: cst.Call, name: str) -> bool:
    """Return whether the host needs the lesser or the greater for a size or bound:
    ``end = min(end, limit)``.
    """
    if name not in ("builtins.max", "builtins.min") or sum(arg.keyword is None for arg in call.args) < 2:
        return False
    return needed_on_host(module, call) is Need.SIZE


def _decides(module: Module, call: cst.Call) -> bool:
    """Return whether a decision on the sum is reported anyway."""
    parent = module.tree.parent(call)
    return isinstance(
        parent, (cst.Comparison, cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.IfExp)
    )


def _of_call(module: Module, call: cst.Call, name: str, often: str) -> str:
    package, _, function = name.rpartition(".")
    if function == "sum":
        return f"builtin `sum()` launches one kernel per element {often}; use `.sum()`"
    if package.startswith("torch"):
        return f"`{name}` synchronizes with the device {often}"
    if function in ("max", "min") and len(call.args) > 1:
        return f"builtin `{function}()` synchronizes with the device {often}"
    if package == "builtins":
        if sum(arg.keyword is None for arg in call.args) > 1:
            return f"builtin `{function}()` synchronizes with the device {often}"
        return f"builtin `{function}()` synchronizes with the device for each element {often}"
    return f"`{callee(module, call)}` synchronizes with the device for each comparison {often}"


_OF_PAIRS = {"equal": "({0} == {1}).all()", "allclose": "torch.isclose({0}, {1}).all()"}
_OF_ITEMS = {"any": "{0}.any()", "all": "{0}.all()", "max": "{0}.max()", "min": "{0}.min()"}


def _function_of_torch(module: Module, call: cst.Call, name: str, hot: Hot) -> str:
    """Return what computes the same in one operation, and leaves the result on the device."""
    function = name.rpartition(".")[2]
    given = positional(call)
    if name.startswith("torch"):
        if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
            given = [call.func.value, *given]
        if function in _OF_PAIRS and len(given) > 1:
            code = _OF_PAIRS[function].format(*(inline(module, value) for value in given[:2]))
        else:
            code = f"{tight(module, given[0])} != 0"
        return instead(module, call, hot) or f"Keep the result on the device: `{code}`"
    if name == "builtins.sum":
        return f"Sum on the device: `{tight(module, given[0])}.sum(0)`"
    if function in ("max", "min") and len(given) > 1:
        numbers = [value for value in given if module.value(value).kind is Kind.NUMBER]
        tensors = [value for value in given if value not in numbers]
        if len(tensors) == len(numbers) == 1:
            code = f"{tight(module, tensors[0])}.clamp({_OTHER[function]}={inline(module, numbers[0])})"
            return f"Clamp on the device: `{code}`"
        return f"Compare on the device with `torch.{function}imum(…)`"
    items = call.func.value if name.startswith("list.") and isinstance(call.func, cst.Attribute) else None
    if items is None and given and module.value(given[0]).tensorlike:
        if function in _OF_ITEMS:
            code = _OF_ITEMS[function].format(tight(module, given[0]))
            if True in verdicts(module, call, takes_number):
                return f"Reduce on the device, and read the result once: `int({code})`"
            return f"Reduce on the device: `{code}`"
        return f"Sort on the device: `{tight(module, given[0])}.sort().values`"
    return "Stack the tensors with `torch.stack(…)`, and use a tensor operation on the result"


_OTHER = {"max": "min", "min": "max"}
