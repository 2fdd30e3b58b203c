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
    remedy="Set `benchmark` to `False`, or stop requesting deterministic results",
)
def determinism_conflict(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that set `torch.backends.cudnn.benchmark` to True and also request deterministic results,
    with `torch.backends.cudnn.deterministic = True` or `torch.use_deterministic_algorithms(True)`, and
    Lightning trainers that get both options. Both settings must be in effect at the end of one path through
    the program: settings that are changed later, and alternative branches, do not conflict.

    ## Why is this bad?

    With `benchmark`, cuDNN selects the algorithm that is fastest in this run, and may select a different one
    in the next: results still differ between runs. At the same time it may only choose among the
    deterministic algorithms, which are slower. The program pays for both settings and benefits from neither.

    ## Example

    ```python
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True
    ```

    ## Use instead

    ```python
    torch.backends.cudnn.benchmark = True
    ```

    Or, if every run has to give the same results (if only with a seed: `benchmark = seed is None`):

    ```python
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    ```

    ## Fix safety

    There is no fix: only the author knows which of the two is intended.

    ## References

    - [Reproducibility: cuDNN convolution benchmarking](https://docs.pytorch.org/docs/stable/notes/randomness.html#cuda-convolution-benchmarking)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    conflict = BackendFlags.of(module).conflict
    if conflict is None:
        return
    search, repeatable = conflict
    if module.tree.is_elsewhere(search.node):
        return
    remedy, given = None, _only_if_given(module, repeatable.node, search.node)
    if given is not None:
        remedy = f"Autotune only where results may differ: `benchmark = {module.source(given)} is None`"
    if repeatable.switch == DETERMINISTIC_ALGORITHMS:
        asked = "`use_deterministic_algorithms`"
    else:
        asked = "`deterministic`"
    yield Finding(
        search.node,
        f"`benchmark` may pick a different algorithm in each run, which defeats {asked}",
        remedy=remedy,
        related=((repeatable.node, "deterministic results are requested here"),)
        if search.block is None
        else (),
    )


def _only_if_given(module: Module, repeatable: cst.CSTNode, search: cst.CSTNode) -> cst.BaseExpression | None:
    """Return what is asked for in ``if args.seed is not None:``,
    if results are to be repeatable in that branch alone.
    """
    searched = {guard.test for guard in guards(module, search)}
    for guard in guards(module, repeatable):
        match guard.test:
            case cst.Comparison(
                left=given,
                comparisons=[cst.ComparisonTarget(cst.Is() | cst.IsNot() as operator, cst.Name("None"))],
            ) if guard.holds is isinstance(operator, cst.IsNot) and guard.test not in searched:
                return given
    return None
