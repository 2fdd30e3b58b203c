"""TL712: gradients are averaged over the ranks by hand, once all of them are there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.iterations import Act, Iteration, Iterations, is_parameter
from torchlint.semantics.module import Module
from torchlint.semantics.sources import Item, Path, Source, Through, onward, some, traced

from .collectives import collective
from .parallelism import Parallelism, Wrapping

_REDUCTIONS = frozenset({"all_reduce", "allreduce"})
# What gives the same numbers or a share of them, or makes one tensor of several.
_METHODS = frozenset(
    {"data", "detach", "clone", "view", "reshape", "flatten", "contiguous", "float", "half"}
    | {"div", "div_", "mul", "mul_"}
)
_JOINING = frozenset(
    {"torch.cat", "torch.concat", "torch.stack", "torch._utils._flatten_dense_tensors"}
    | {"torch.nn.utils.parameters_to_vector"}
)


@rule(
    "TL712",
    "gradients-reduced-by-hand",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("all_reduce|allreduce", "grad", "backward", "parameters"),
    remedy="Wrap the model in `DistributedDataParallel`, and remove the reduction",
)
def gradients_reduced_by_hand(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loops of training that call `all_reduce` on the gradients of the parameters of a model between the
    backward pass and the step of the optimizer: one by one, or flattened into one tensor.

    The rule ignores reductions within a process group (of tensor or expert parallelism), gradients of some
    parameters only, models in `DistributedDataParallel` or FSDP, hooks that run during the backward pass, and
    functions that the file does not show to run between the two.

    ## Why is this bad?

    The network idles during the backward pass, and the device during the reduction.
    `DistributedDataParallel` reduces the gradients of the last layers while those of the first ones are
    computed, in buckets of 25 MB. A collective for each parameter also pays its latency for each parameter,
    and one tensor for all copies every gradient twice.

    ## Example

    ```python
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
    optimizer.step()
    ```

    ## Use instead

    ```python
    model = DistributedDataParallel(model, device_ids=[local_rank])
    ...
    loss.backward()
    optimizer.step()
    ```

    ## Fix safety

    There is no fix. `DistributedDataParallel` averages gradients, while `all_reduce` sums them by default: if
    nothing divided the sums, multiply the learning rate of SGD by the number of ranks to keep its steps.

    ## References

    - [Distributed data parallel](https://docs.pytorch.org/docs/stable/notes/ddp.html)
    """
    found = collective(module, call)
    if found is None or found.name not in _REDUCTIONS or found.group is not None or found.sent is None:
        return
    if is_test(module) or not some(_of_gradients(module, found.sent)):
        return
    if Parallelism.of(module).wrapped_by(Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD):
        return
    steps = [iteration for iteration in Iterations.of(module).running(call) if _trains(iteration)]
    if not steps:
        return
    inner = next(iter(module.flow.loops(call)), None)
    one_by_one = inner is not None and all(step.loop is not inner for step in steps)
    if one_by_one and _selects(module, call, inner):
        return
    how = " one by one" if one_by_one else ""
    yield Finding(
        call,
        f"gradients are reduced{how} when backward is over; `DistributedDataParallel` overlaps the two",
        frequency=Frequency.STEP,
    )


def _selects(module: Module, call: cst.Call, loop: cst.CSTNode | None) -> bool:
    """Return whether a loop over parameters reduces only some of those that have a gradient."""
    decisions = module.flow.decisions(call, within=loop)
    return any("grad" not in module.source(decision.test) for decision in decisions)


@traced(Through.ITEMS | Through.PARAMETERS | Through.RETURNS)
def _of_gradients(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor has the gradients of parameters in it, and nothing else is known of it."""
    match node:
        case cst.Attribute(attr=cst.Name("grad"), value=owner):
            return is_parameter(module, owner)
        case cst.Attribute(attr=cst.Name("data"), value=owner):
            return onward(owner, path=path)
        case cst.Call(func=cst.Attribute(attr=cst.Name(name), value=owner)) if name in _METHODS:
            return onward(owner, path=path)
        case cst.Call(args=[first, *_]) if module.qualified(node.func) in _JOINING:
            return [Source(first.value, (Item.ANY,))]
    return None


def _trains(iteration: Iteration) -> bool:
    """Return whether an iteration has a backward pass and a step."""
    return bool(iteration.of(Act.BACKWARD) and iteration.of(Act.STEP))
