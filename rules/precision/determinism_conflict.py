"""TL504: cuDNN is told to pick its algorithms by the clock, and results are told to be repeatable."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.flow.guards import guards
from torchlint.semantics.module import Module

from .backendflags import DETERMINISTIC_ALGORITHMS, BackendFlags


@rule(
    "TL504",
    "determinism-conflict",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Module,
    mentions=("benchmark", "determin"),
    remedy="Set `benchmark` to `False`, or no longer ask for the same results in each run",
)
def determinism_conflict(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that set `torch.backends.cudnn.benchmark` to True and ask for repeatable results as well,
    with `torch.backends.cudnn.deterministic = True` or `torch.use_deterministic_algorithms(True)`; and
    trainers of Lightning that are given both. Both must hold at the end of one way through the program: what
    is set again behind, and branches of which only one is taken, are no conflict.

    ## Why is this bad?

    With `benchmark`, cuDNN takes whichever algorithm is the fastest in this run, and in the next run that may
    be another: results differ from run to run after all. At the same time only the deterministic algorithms
    are left to choose from, which are slower. The program pays for both and gets neither.

    ## Example

    ```python
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True
    ```

    ## Use instead

    ```python
    torch.backends.cudnn.benchmark = True
    ```

    or, where each run has to give the same results (if only with a seed: `benchmark = seed is None`),

    ```python
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    ```

    ## Fix safety

    There is no fix: which of the two is meant is for the author to say.

    ## References

    - [Reproducibility: cuDNN convolution benchmarking](https://docs.pytorch.org/docs/stable/notes/randomness.html#cuda-convolution-benchmarking)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    conflict = BackendFlags.of(module).conflict
    if conflict is None:
        return
    search, repeatable = conflict
    remedy, given = None, _only_if_given(module, repeatable.node, search.node)
    if given is not None:
        remedy = f"Search only where results may differ: `benchmark = {module.source(given)} is None`"
    if repeatable.switch == DETERMINISTIC_ALGORITHMS:
        asked = "`use_deterministic_algorithms` asks"
    else:
        asked = "`deterministic` asks"
    yield Finding(
        search.node,
        f"`benchmark` picks algorithms by the clock, though {asked} for the same results in each run; drop "
        "one of the two",
        remedy=remedy,
        related=((repeatable.node, "here results are asked to be repeatable"),)
        if search.block is None
        else (),
    )


def _only_if_given(module: Module, repeatable: cst.CSTNode, search: cst.CSTNode) -> cst.BaseExpression | None:
    """``args.seed``, where results are asked to be repeatable in ``if args.seed is not None:`` alone."""
    searched = {guard.test for guard in guards(module, search)}
    for guard in guards(module, repeatable):
        match guard.test:
            case cst.Comparison(
                left=given,
                comparisons=[cst.ComparisonTarget(cst.Is() | cst.IsNot() as operator, cst.Name("None"))],
            ) if guard.holds is isinstance(operator, cst.IsNot) and guard.test not in searched:
                return given
    return None
