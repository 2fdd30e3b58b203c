"""TL205 branch-on-tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Impact
from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.compilation import compiled
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.sinks import verdicts
from torchlint.semantics.synchronisation import asking_function, truth_tests, waiting_place
from torchlint.semantics.usage import handed_to, steps_environment
from torchlint.semantics.values import Kind

from ..remedies import (
    as_spelt,
    counter_of,
    inline,
    now_and_then,
    tight,
)
from ..stakes import slight
from .checks import Check, check_of
from .numbers import gone_through, takes_number
from .outcomes import Outcome, outcome


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
    remedy="Choose on the device, with `torch.where(…)`",
)
def branch_on_tensor(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python decisions that depend on a tensor on the accelerator, in every iteration of a hot loop or in
    every forward pass: `if`, `while`, `assert`, `and`, `or`, `not`, ternaries, chained comparisons, `in`, the
    builtins `any`, `all`, `min`, `max`, `sorted` and `sum`, and `torch.equal` and `torch.allclose`; and the
    decisions that calls make by themselves: a distribution of `torch.distributions` checks its parameters
    when it is made, `clip_grad_norm_(..., error_if_nonfinite=True)` the norm, `torch.normal` the deviations,
    and `torch.linalg.inv`, `solve`, `cholesky` and `lu_factor` whether they have succeeded.

    ## Why is this bad?

    Python must know the answer before it can go on, so the host waits until the device has finished
    everything queued so far. That costs what the host could have done meanwhile, such as to prepare the next
    batch or to queue the backward pass. `any()`, `max()` and their like ask once for every element (`sum()`
    asks nothing, but launches one addition for each). In compiled code TL513 speaks instead, as the graph
    breaks.

    ## Example

    ```python
    loss = criterion(model(x), y)
    if not torch.isfinite(loss):
        raise RuntimeError("the loss is not finite")
    if x.max() > limit:
        x = x.clamp(max=limit)
    ```

    ## Use instead

    Choose on the device, where a decision only chooses between values:

    ```python
    x = torch.where(x > limit, limit, x)
    ```

    Check later, or on the device (`torch._assert_async`):

    ```python
    bad |= ~torch.isfinite(loss)
    if step % 100 == 0 and bad:
        raise RuntimeError("the loss is not finite")
    ```

    `torch.maximum` is `max` on the device, a `GradScaler` finds infinite gradients by itself, and
    `Normal(mean, scale, validate_args=False)` believes its parameters
    (`torch.distributions.Distribution.set_default_validate_args(False)` does so for all of them).
    `torch.linalg.inv_ex` and its like return the outcome instead of looking at it, which is a note. So is the
    check of a distribution where the sample is an action that an environment waits for.

    Findings are of low impact where no simple edit spares the wait: the branch raises, prints, leaves the
    loop or the function, runs a model or keeps a division by zero from the gradients, which `torch.where`
    would not. In servers and decoding loops these count as much as any other.

    ## Fix safety

    There is no fix: what the branch does decides what can take its place.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_repeat(module, node) or not accelerated(module):
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
            instead = "" if what in _ACTED_UPON else "; decide on the device (`torch.where`) or check later"
            if gone_through(module, tensor) is not None:
                instead = "; copy all of it once, before the loop"
            often = when(module, hot)
            message = f"Python needs this tensor to decide, and the host waits for it {often}{instead}"
            remedy = as_spelt(module, node, _remedy(module, node, tensor, hot))
            impact = _impact(module, tensor, what)
            yield Finding(tensor, message, related=trail(hot), remedy=remedy, impact=impact)


_ACTED_UPON = (Outcome.ACTION, Outcome.CHECK)


def _impact(module: Module, tensor: cst.BaseExpression, what: Outcome | None) -> Impact:
    """The most that is at stake: little where the host needs the decision, or no simple edit spares it."""
    spared = what in (None, Outcome.CHOICE) or gone_through(module, tensor) is not None
    return Impact.HIGH if spared else slight(module, tensor)


def _remedy(module: Module, node: cst.CSTNode, tensor: cst.BaseExpression, hot: Hot) -> str:
    """What to write in place of a decision, by its form and by what makes the place hot."""
    items = gone_through(module, tensor)
    if items is not None:
        return f"Copy it to the host once, before the loop, and go by that: `{tight(module, items)}.tolist()`"
    return _of_decision(module, tensor, hot) or _joined(module, node)


def _of_decision(module: Module, tensor: cst.BaseExpression, hot: Hot) -> str | None:
    """What to do with a decision, by what depends on it; None where nothing is decided."""
    counted = next(iter(module.flow.loops(tensor)), None) is hot.loop
    decision = module.flow.condition(tensor)
    match outcome(module, tensor):
        case Outcome.CHECK if counted:
            return f"Check it every 100 steps, {now_and_then(module, hot)}"
        case Outcome.CHECK:
            return "Take the check out of the hot path, or check on the device with `torch._assert_async(…)`"
        case Outcome.GUARD:
            return (
                "Keep both values finite, as by `.clamp(…)`, and choose on the device, with `torch.where(…)`"
            )
        case Outcome.CHOICE:
            return "Choose on the device, with `torch.where(…)`"
        case Outcome.ACTION if isinstance(decision, cst.While):
            return "Run a fixed number of iterations, or test the condition only in some of them"
        case Outcome.ACTION if isinstance(decision, cst.CompIf):
            return "Test all of them at once on the device, and copy the answers to the host before the loop"
        case Outcome.ACTION if counted:
            return f"Decide every 100 steps, `{counter_of(module, hot)} % 100 == 0 and …`"
        case Outcome.ACTION:
            return "Decide by what is in host memory, or take the decision out of the hot path"
    return None


def _joined(module: Module, node: cst.CSTNode) -> str:
    """What makes a tensor of a condition that is no decision of a statement."""
    match node:
        case cst.UnaryOperation():
            return "Negate on the device, with `torch.logical_not(…)`"
        case cst.BooleanOperation(operator=operator):
            joint = "&" if isinstance(operator, cst.And) else "|"
            return f"Join the conditions on the device, in parentheses, with `{joint}`"
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.In(), comparator=into)]
        ):
            return f"Look for it on the device: `({module.source(into)} == {module.source(left)}).any()`"
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.NotIn(), comparator=into)]
        ):
            return f"Look for it on the device: `({module.source(into)} != {module.source(left)}).all()`"
    return "Write one comparison for each sign, in parentheses, and join them on the device with `&`"


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
        impact = _impact(module, call, outcome(module, call) if name.startswith("torch") else None)
        message = _of_call(module, call, name, often)
        yield Finding(call, message, related=related, remedy=remedy, impact=impact)
        return
    # Who acts in an environment waits for the action anyway.
    acting = handed_to(module, call, steps_environment)
    severity = NOTE if acting or check.advice else None
    message = _of_check(module, call, check, often)
    remedy = as_spelt(module, call, check.remedy)
    yield Finding(call, message, severity=severity, related=related, remedy=remedy)


def _of_check(module: Module, call: cst.Call, check: Check, often: str) -> str:
    name = f"`{module.source(call.func)}`"
    return f"{name} looks {check.look}, and the host waits for the device {often}; {check.instead}"


def _decides(module: Module, call: cst.Call) -> bool:
    """Whether a decision on the sum is reported anyway."""
    parent = module.tree.parent(call)
    return isinstance(
        parent, (cst.Comparison, cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.IfExp)
    )


def _of_call(module: Module, call: cst.Call, name: str, often: str) -> str:
    package, _, function = name.rpartition(".")
    if function == "sum":
        return f"builtin `sum()` adds the tensor up one element at a time {often}; use `.sum()`"
    if package.startswith("torch"):
        return f"`{name}` needs the answer in Python, and the host waits for the device {often}"
    if function in ("max", "min") and len(call.args) > 1:
        return f"builtin `{function}()` compares in Python, and the host waits for the device {often}"
    if package == "builtins":
        if sum(arg.keyword is None for arg in call.args) > 1:
            return f"builtin `{function}()` compares in Python, and the host waits for the device {often}"
        instead = "use the function of torch"
        if True in verdicts(module, call, takes_number):
            instead = "read it once"
        return f"builtin `{function}()` asks the device about each element {often}; {instead}"
    spelt = module.source(call.func)
    return f"`{spelt}` compares tensors one by one, and the host waits for each {often}; stack them first"


_OF_PAIRS = {"equal": "({0} == {1}).all()", "allclose": "torch.isclose({0}, {1}).all()"}
_OF_ITEMS = {"any": "{0}.any()", "all": "{0}.all()", "max": "{0}.max()", "min": "{0}.min()"}


def _function_of_torch(module: Module, call: cst.Call, name: str, hot: Hot) -> str:
    """What asks the device in one go, and leaves the answer there."""
    function = name.rpartition(".")[2]
    given = [arg.value for arg in call.args if arg.keyword is None]
    if name.startswith("torch"):
        if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
            given = [call.func.value, *given]
        if function in _OF_PAIRS and len(given) > 1:
            code = _OF_PAIRS[function].format(*(inline(module, value) for value in given[:2]))
        else:
            code = f"{tight(module, given[0])} != 0"
        return _of_decision(module, call, hot) or f"Leave the answer on the device: `{code}`"
    if name == "builtins.sum":
        return f"Add up on the device: `{tight(module, given[0])}.sum(0)`"
    if function in ("max", "min") and len(given) > 1:
        numbers = [value for value in given if module.value(value).kind is Kind.NUMBER]
        tensors = [value for value in given if value not in numbers]
        if len(tensors) == len(numbers) == 1:
            code = f"{tight(module, tensors[0])}.clamp({_OTHER[function]}={inline(module, numbers[0])})"
            return f"Compare on the device: `{code}`"
        return f"Compare on the device, with `torch.{function}imum(…)`"
    items = call.func.value if name.startswith("list.") and isinstance(call.func, cst.Attribute) else None
    if items is None and given and module.value(given[0]).tensorlike:
        if function in _OF_ITEMS:
            code = _OF_ITEMS[function].format(tight(module, given[0]))
            if True in verdicts(module, call, takes_number):
                return f"Read it once, as a number: `int({code})`"
            return f"Ask once, on the device: `{code}`"
        return f"Sort on the device: `{tight(module, given[0])}.sort().values`"
    return "Stack the tensors, `torch.stack(…)`, and use what torch has for the whole"


_OTHER = {"max": "min", "min": "max"}
