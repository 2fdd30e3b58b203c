"""TL204 printed-tensor-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.rules.host_device.purpose import stake, writes_results
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.needs import needed_on_host
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.synchronisation import (
    WRITERS,
    after_a_decision,
    only_on_failure,
    waiting_place,
    written_out,
)

from .remedies import now_and_then, runs_as_function, without_graph

_PLACES = (cst.Call, cst.FormattedString, cst.BinaryOperation)


@rule(
    "TL204",
    "printed-tensor-in-hot-loop",
    severity=WARNING,
    fix="none",
    on=_PLACES,
    named={cst.Call: WRITERS},
    mentions=("torch|lightning|accelerate",),
    remedy="Write it out every 100 steps, where `step % 100 == 0`",
)
def printed_tensor_in_hot_loop(
    node: cst.Call | cst.FormattedString | cst.BinaryOperation, module: Module
) -> Iterator[Finding]:
    """## What it does

    Finds tensors on the accelerator that are turned into text, or sent to a chart, in every iteration of a
    hot loop: `print`, f-strings, `%` and `format`, `logging`, the postfix of a progress bar, TensorBoard,
    wandb, MLflow, the trackers of Accelerate; lists and dictionaries of tensors as well.

    ## Why is this bad?

    The text needs the number, so the host waits until the device has finished everything queued so far.
    A progress bar that redraws ten times a second still reads the tensor on every call.

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

    Lightning's `self.log` keeps the tensor and reads it when the logger is due; it is not reported. Nor is
    the message of an exception or of an assertion. In compiled code TL513 speaks instead.

    ## Fix safety

    There is no fix: how often to report is for the author to say.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_repeat(module, node) or only_on_failure(module, node):
        return
    tensor = written_out(module, node)
    if tensor is None or not _first_of_statement(module, node):
        return
    hot = waiting_place(module, node)
    if hot is None or after_a_decision(module, node) or writes_results(module, hot):
        return
    if graph_break(module, node):
        return
    text = module.tree.source(tensor)
    subject = f"`{text}`" if len(text) <= 40 and "\n" not in text else "the tensor"
    message = f"the host waits for the device to write out {subject} {when(module, hot)}; do it every N steps"
    named = needed_on_host(module, node) is not None
    remedy = _BY_NUMBER if named else _remedy(module, tensor, hot)
    impact = stake(module, node, slight=named)
    yield Finding(node, message, related=trail(hot), remedy=remedy, impact=impact)


_BY_NUMBER = "Name it by a number that the host has already, such as the step or the index of the sample"


def _remedy(module: Module, tensor: cst.BaseExpression, hot: Hot) -> str:
    """Where to write instead, by what makes the place hot."""
    if not runs_as_function(hot):
        return f"Write it out every 100 steps, {now_and_then(module, hot)}"
    kept = without_graph(module, tensor)
    return f"Keep {kept} in an attribute and write it out in the training loop, every 100 steps"


def _first_of_statement(module: Module, node: cst.BaseExpression) -> bool:
    """Whether no other place of the same statement, around it or before it, is reported already."""
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
