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

    Finds `find_unused_parameters=True`, for `DistributedDataParallel` itself, or for Accelerate, Lightning,
    Transformers or Ignite, which hand it on.

    It is a warning where the file has the class of the model, or takes a classifier of torchvision, and all
    that the model has takes part in each of its forward passes. It is a note where the forward pass has
    branches, and where the file makes and trains a model of another file: then some parameters may get no
    gradient. Nothing is said beside `static_graph=True`, nor where a comment gives the reason.

    ## Why is this bad?

    After each forward pass, `DistributedDataParallel` goes through the graph of autograd to find the
    parameters that will get no gradient, and marks them as ready. The host does that, and the device may have
    to wait. Where every parameter gets a gradient, the search finds nothing, and PyTorch warns so in the
    first iteration.

    ## Example

    ```python
    model = DistributedDataParallel(model, device_ids=[rank], find_unused_parameters=True)
    ```

    ## Use instead

    ```python
    model = DistributedDataParallel(model, device_ids=[rank])
    ```

    That raises if some parameters take no part in the loss. Leave them out of the model then, or freeze them
    before it is wrapped. Where each iteration leaves out the same ones, `static_graph=True` searches once.

    ## Fix safety

    There is no fix: whether a parameter gets a gradient depends on the loss, too, and without the search
    training stops with an error if one gets none.

    ## References

    - [PyTorch performance tuning guide: distributed optimizations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
    - [Distributed data parallel: forward pass](https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design)
    """
    found = search(module, call)
    if found is None:
        return
    what = "DDP searches the graph of every forward pass for parameters that get no gradient"
    name = f"`{found.model}`"
    remedy = _remedy(module, found)
    if found.outcome is Outcome.NOTHING:
        yield Finding(
            found.node, f"{what}, and {name} has none: all of it takes part in each of them", remedy=remedy
        )
    elif found.outcome is Outcome.BRANCHES:
        yield Finding(
            found.node,
            f"{what}; {name} has some only if a branch leaves them out",
            severity=NOTE,
            remedy=remedy,
        )
    else:
        yield Finding(
            found.node, f"{what}; try without, unless the model has some", severity=NOTE, remedy=remedy
        )


def _remedy(module: Module, found: Search) -> str:
    code = module.source(found.node).rstrip(", ")
    plain = code.replace("_find_unused_parameters_true", "")
    done = f"Remove `{code}`" if plain == code else f"Use `{plain}`"
    unless = (
        ""
        if found.outcome is Outcome.NOTHING
        else ", unless DDP then raises an error about parameters without a gradient"
    )
    return done + unless
