"""TL708: the ranks wait for one another in every step, to report a number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import reason
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.iterations import Act, Iterations
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, evaluated_only, phase
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import keywords, last_name
from torchlint.semantics.values import Kind

from ..collectives import Collective, Collectives, collective
from .reporting import read_after, reported_only


@rule(
    "TL708",
    "collective-for-logging",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=(
        (
            "reduce(|reduce_|_reduce|allreduce|reduce as|gather(|gather_|_gather|allgather|gather as"
            "|sync_dist|distributed_|average_losses|across_"
        ),
        "backward|training_step|zero_grad",
    ),
    remedy="Reduce the value every few steps only, or reduce a total after the loop",
)
def collective_for_logging(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds collectives in every step of a training loop whose results are only printed, logged, passed to
    meters or added to a running total: `all_reduce`, `all_gather` and similar functions, those of Accelerate,
    Horovod and Ignite, helpers such as `reduce_tensor(loss)`, and `self.log(..., sync_dist=True)` in
    Lightning's `training_step`.

    The rule ignores results that affect training (early stopping, skipped steps, loss scaling), results that
    are only computed every few steps, and evaluation.

    ## Why is this bad?

    Every rank has to reach the collective, so all of them wait for the slowest. The gradient all-reduce
    overlaps with the backward pass; an additional collective after it overlaps with nothing, and reading its
    result with `.item()` synchronizes each host with its device.

    ## Example

    ```python
    for step, (x, y) in enumerate(loader):
        loss = train_step(x, y)
        dist.all_reduce(loss, op=dist.ReduceOp.AVG)
        total += loss.item()
    ```

    ## Use instead

    ```python
    for step, (x, y) in enumerate(loader):
        loss = train_step(x, y)
        total += loss.detach()
    dist.all_reduce(total, op=dist.ReduceOp.AVG)
    ```

    For a loss curve, reduce every fifty steps, under `if step % 50 == 0:` on all ranks; with Lightning, log
    with `on_step=False, on_epoch=True`.

    ## Fix safety

    There is no fix: how often to report the value is a decision for the author.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization)
    - [Distributed communication package](https://docs.pytorch.org/docs/stable/distributed.html)
    - [Lightning: logging](https://lightning.ai/docs/pytorch/stable/extensions/logging.html)
    """
    if _synchronised_log(module, call):
        yield Finding(
            call,
            "`sync_dist=True` synchronizes all ranks in every step; log with `on_step=False, on_epoch=True`",
            remedy="Log with `on_step=False, on_epoch=True`",
            # A few numbers are reduced, and without it each rank draws a curve of its own.
            slight="only a few numbers are reduced",
        )
        return
    found = Collectives.of(module).reduction(call)
    if found is None or found.is_barrier or not may_repeat(module, call):
        return
    if found.received is not None and not isinstance(found.received, cst.Name):
        # What else holds it may be known by other names.
        return
    if _hands_it_out(module, call) or _in_helper(module, call):
        return
    hot = places.hot(module, call)
    if hot is None or not _trains(module, hot) or evaluated_only(module, call):
        return
    if phase(module, call) is Phase.FORWARD:
        # What a layer keeps is part of the model, whatever it is called.
        return
    if not _reported(module, found, hot):
        return
    name = last_name(call.func)
    yield Finding(
        call,
        f"`{name}` synchronizes all ranks in every step for a value that is only logged",
        related=((hot.path[0] if hot.path else hot.loop, reason(hot)), *_barrier_before(module, call)),
    )


def _barrier_before(module: Module, call: cst.Call) -> Iterator[tuple[cst.CSTNode, str]]:
    """Yield a barrier right in front of the collective, which is one by itself."""
    statement = module.tree.statement(call)
    block = module.tree.parent(statement)
    if not isinstance(block, cst.IndentedBlock):
        return
    earlier = [other for other in block.body if module.tree.order[other] < module.tree.order[statement]]
    match earlier[-1:]:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as before)])]:
            found = collective(module, before)
            if found is not None and found.is_barrier:
                yield before, "this barrier is unnecessary"


def _hands_it_out(module: Module, call: cst.Call) -> bool:
    """Return whether a function that nothing in the file calls returns the outcome."""
    statement = module.tree.parent(call)
    function = module.function(call)
    if not isinstance(statement, cst.Return) or function is None:
        return False
    return not module.callers(function)


def _in_helper(module: Module, call: cst.Call) -> bool:
    """Return whether the call belongs to a helper of the file, which is found where it is called."""
    function = module.function(call)
    if not isinstance(function, cst.FunctionDef) or not module.callers(function):
        return False
    return Collectives.of(module).communicates(function) is not None


def _trains(module: Module, hot: Hot) -> bool:
    if not isinstance(hot.loop, (cst.For, cst.While, cst.FunctionDef)):
        return False
    return bool(Iterations.of(module).iteration(hot.loop).of(Act.BACKWARD, Act.STEP, Act.CLEAR))


def _reported(module: Module, found: Collective, hot: Hot) -> bool:
    received = found.received
    if not isinstance(received, cst.Name):
        return reported_only(module, [found.call], hot.loop)
    reads = read_after(module, received, hot.loop)
    return reads is not None and reported_only(module, reads, hot.loop)


_STEPS = frozenset({"training_step", "training_step_end", "on_train_batch_start", "on_train_batch_end"})


def _synchronised_log(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``self.log("loss", loss, sync_dist=True)`` in a training step of Lightning,
    for the step itself.
    """
    match call.func:
        case cst.Attribute(value=cst.Name(), attr=cst.Name("log" | "log_dict")):
            pass
        case _:
            return False
    given = keywords(call)
    if "sync_dist" not in given or module.value(given["sync_dist"]).constant is not True:
        return False
    on_step = given.get("on_step")
    if on_step is not None and module.value(on_step).constant is not True:
        return False
    function = module.function(call)
    if not isinstance(function, cst.FunctionDef) or function.name.value not in _STEPS:
        return False
    if (
        module.classes.owner(function) is None
        or places.throttled(module, call)
        or any(arg.star for arg in call.args)
    ):
        return False
    logged = given.get("value", call.args[1].value if len(call.args) > 1 else None)
    # A metric of torchmetrics keeps its own state, and is reduced when it is computed.
    return not isinstance(logged, cst.Attribute) and (
        logged is None or module.value(logged).kind is not Kind.MODULE
    )
