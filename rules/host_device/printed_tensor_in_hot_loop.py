"""TL204 printed-tensor-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.rules.host_device.purpose import slight_wait, writes_results
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.synchronisation import WRITERS, only_on_failure, written_out

from .needs import followed_at_each_step, needed_on_host
from .remedies import callee, counts_rounds, inline, now_and_then, without_graph
from .stakes import NEEDED, ON_BAR, behind_wait
from .waits import waiting_place

_SHORT = 24
_PLACES = (cst.Call, cst.FormattedString, cst.BinaryOperation)


@rule(
    "TL204",
    "printed-tensor-in-hot-loop",
    severity=WARNING,
    fix="none",
    on=_PLACES,
    named={cst.Call: WRITERS},
    mentions=("torch|lightning|accelerate",),
    remedy="Log it only every 100 steps, under `if step % 100 == 0`",
    synchronizes=True,
)
def printed_tensor_in_hot_loop(
    node: cst.Call | cst.FormattedString | cst.BinaryOperation, module: Module
) -> Iterator[Finding]:
    """## What it does

    Finds tensors on the accelerator that are formatted, printed or logged in every iteration of a hot loop
    or in every forward pass: `print`, f-strings, `%` and `format`, `logging`, the postfix of a progress bar,
    TensorBoard, wandb, MLflow and the trackers of Accelerate. Lists and dictionaries of tensors are found as
    well.

    The rule ignores Lightning's `self.log`, which keeps the tensor and reads it only when the logger writes,
    and the messages of exceptions and assertions. In compiled code, TL513 reports a graph break instead.

    ## Why is this bad?

    Formatting needs the value, so the host waits until the device has finished all work launched so far. A
    progress bar that redraws ten times a second still reads the tensor in every call.

    ## Example

    ```python
    for step, (x, y) in enumerate(loader):
        loss = training_step(x, y)
        bar.set_postfix(loss=loss)
        writer.add_scalar("loss", loss, step)
    ```

    ## Use instead

    ```python
    for step, (x, y) in enumerate(loader):
        loss = training_step(x, y)
        if step % 100 == 0:
            bar.set_postfix(loss=loss.item())
            writer.add_scalar("loss", loss, step)
    ```

    ## Fix safety

    There is no fix: how often to log is a decision for the author.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_recur(module, node) or only_on_failure(module, node):
        return
    tensor = written_out(module, node)
    if tensor is None or not _first_of_statement(module, node):
        return
    hot = waiting_place(module, node)
    if hot is None or writes_results(module, hot):
        return
    if graph_break(module, node):
        return
    named = needed_on_host(module, node) is not None
    message = f"{_writing(module, node, tensor)} {when(module, hot)}"
    remedy = _BY_NUMBER if named else _remedy(module, tensor, hot)
    why = NEEDED if named else ON_BAR if followed_at_each_step(module, tensor) else None
    little = behind_wait(module, node) or slight_wait(module, node, why)
    yield Finding(node, message, related=trail(hot), remedy=remedy, slight=little)


_BY_NUMBER = "Name it by a number that the host has already, such as the step or the index of the sample"


def _writing(
    module: Module, node: cst.Call | cst.FormattedString | cst.BinaryOperation, tensor: cst.BaseExpression
) -> str:
    """Return what happens, as a clause: "`print` synchronizes with the device to output `loss`"."""
    code = inline(module, tensor)
    value = f"`{code}`" if code != "…" and len(code) <= _SHORT else "a tensor"
    match node:
        case cst.Call(func=cst.Attribute(value=cst.BaseString())):
            writer, purpose = "`str.format`", "format"
        case cst.Call():
            writer, purpose = f"`{callee(module, node)}`", "output"
        case cst.FormattedString():
            writer, purpose = "an f-string", "format"
        case _:
            writer, purpose = "formatting with `%`", "format"
    return f"{writer} synchronizes with the device to {purpose} {value}"


def _remedy(module: Module, tensor: cst.BaseExpression, hot: Hot) -> str:
    """Return where to write instead, by what makes the place hot."""
    if counts_rounds(hot):
        return f"Log it only every 100 steps, {now_and_then(module, hot)}"
    kept = without_graph(module, tensor)
    return f"Store {kept} in an attribute, and log it in the training loop every 100 steps"


def _first_of_statement(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether no other place of the same statement, around it or before it, is reported already."""
    tree = module.tree
    statement = tree.statement(node)
    if isinstance(statement, cst.BaseCompoundStatement):
        return not any(
            isinstance(outer, _PLACES) and written_out(module, outer) is not None
            for outer in tree.ancestors(node)
        )
    for other in tree.descendants(statement):
        if other is node:
            return True
        if isinstance(other, _PLACES) and written_out(module, other) is not None:
            return False
    return True
