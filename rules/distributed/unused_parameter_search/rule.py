"""TL703: a search through the graph of every forward pass."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .unusedparameters import Outcome, Search, search


@rule(
    "TL703",
    "unused-parameter-search",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("find_unused_parameters",),
    lasting=True,
)
def unused_parameter_search(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `find_unused_parameters=True`, passed to `DistributedDataParallel` itself or to Accelerate,
    Lightning, Transformers or Ignite, which pass it on.

    It is a warning if the class of the model is in the file, or the model is a torchvision classifier, and
    every forward pass uses all of its parameters. It is a note if `forward` has branches, or if the class of
    the model is in another file: then some parameters may receive no gradient. The rule ignores calls with
    `static_graph=True` and calls whose comment gives a reason.

    ## Why is this bad?

    After each forward pass, `DistributedDataParallel` traverses the autograd graph to find parameters that
    will receive no gradient, and marks them as ready. This runs on the host, and the device may have to wait.
    If every parameter receives a gradient, the search finds nothing, and PyTorch warns about it in the first
    iteration.

    ## Example

    ```python
    model = DistributedDataParallel(model, device_ids=[rank], find_unused_parameters=True)
    ```

    ## Use instead

    ```python
    model = DistributedDataParallel(model, device_ids=[rank])
    ```

    This raises an error if some parameters do not contribute to the loss. In that case remove them from the
    model, or freeze them before it is wrapped. If the same parameters are unused in every iteration,
    `static_graph=True` searches only once.

    ## Fix safety

    There is no fix: whether a parameter receives a gradient also depends on the loss, and without the search
    training fails if one does not.

    ## References

    - [PyTorch performance tuning guide: distributed optimizations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Distributed data parallel: forward pass](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design)
    """
    found = search(module, call)
    if found is None:
        return
    what = "DDP searches for unused parameters in every step"
    name = f"`{found.model}`"
    remedy = _remedy(module, found)
    if found.outcome is Outcome.NOTHING:
        yield Finding(found.node, f"{what}, but {name} has none", remedy=remedy)
    elif found.outcome is Outcome.BRANCHES:
        yield Finding(
            found.node,
            f"{what}; {name} only has some if a branch skips them",
            severity=NOTE,
            remedy=remedy,
        )
    else:
        yield Finding(found.node, f"{what}, which only some models need", severity=NOTE, remedy=remedy)


def _remedy(module: Module, found: Search) -> str:
    code = module.source(found.node).rstrip(", ")
    plain = code.replace("_find_unused_parameters_true", "")
    done = f"Remove `{code}`" if plain == code else f"Use `{plain}`"
    unless = (
        ""
        if found.outcome is Outcome.NOTHING
        else ", unless DDP then raises an error about unused parameters"
    )
    return done + unless
