"""TL903: private names of torch that have a public twin."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import KEPT_FOR_CALLERS
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.upgrades import Upgrade
from torchlint.semantics.module import Module
from torchlint.semantics.upgrading import GIVEN_UP, is_kept_for_callers, last_part

from .givenup import moved, said_of
from .uses import guarded, uses_of_given_up


@rule(
    "TL903",
    "private-api",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=(cst.Attribute, cst.ImportFrom),
    named={cst.Attribute: GIVEN_UP},
    mentions=("torch", "torch._|_dynamo|_LRScheduler|data._utils|._tensor|_composable|er_base|_pytree_node"),
)
def private_api(node: cst.Attribute | cst.ImportFrom, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds private names of torch, marked by an underscore, for which every torch release that the project
    supports has a public equivalent.

    Code that is only reached behind a version check is ignored: either branch of a test of
    `torch.__version__` or `hasattr(torch, …)`, code after an early `return`, `try` blocks with their
    handlers, and functions used only in such places. A private name is also ignored if the file defines the
    public one itself. Findings for annotations are of low impact.

    ## Why is this bad?

    Private names move and disappear without notice: `torch._six` and `torch._utils._accumulate` disappeared
    from one release to the next, and every import of them failed. `_LRScheduler` is worse: since torch 2.0 it
    is an empty subclass, so `isinstance(scheduler, _LRScheduler)` is `False` for torch's own schedulers.

    ## Example

    ```python
    from torch.optim.lr_scheduler import _LRScheduler


    class Warmup(_LRScheduler): ...


    torch._dynamo.reset()
    ```

    ## Use instead

    ```python
    from torch.optim.lr_scheduler import LRScheduler


    class Warmup(LRScheduler): ...


    torch.compiler.reset()
    ```

    ## Fix safety

    Safe: both names refer to the same object, or one only calls the other. The fix is unsafe if the
    program does more with `_LRScheduler` than to inherit from it and to annotate: `isinstance`, `issubclass`
    and patterns of `match` give another result. There is no fix if the name is exported in `__all__`.

    ## References

    - [torch.compiler](https://docs.pytorch.org/docs/stable/torch.compiler_api.html)
    - [torch.optim.lr_scheduler.LRScheduler](https://docs.pytorch.org/docs/stable/optim.html)
    - [PyTorch: public API definition and documentation](https://github.com/pytorch/pytorch/wiki/Public-API-definition-and-documentation)
    - [TorchFix](https://github.com/pytorch-labs/torchfix)
    """
    imported = set[str]()
    for use, row in uses_of_given_up(module, node):
        target = module.target_of(row.package)
        if not row.private or row.is_removed(target) or not row.is_replaceable(target):
            continue
        if isinstance(use, cst.ImportAlias) or guarded(module, use, row):
            continue
        # Where the name stays, the import alone changes, however often the name is read.
        stays = isinstance(node, cst.ImportFrom) and last_part(row.replacement or "") == last_part(row.symbol)
        if stays and row.symbol in imported:
            continue
        imported.add(row.symbol)
        # Nothing but who checks types asks what an annotation names.
        unasked = module.tree.enclosing(use, cst.Annotation) is not None
        slight = "only names a type" if unasked else None
        slight = KEPT_FOR_CALLERS if is_kept_for_callers(module, use) else slight
        yield Finding(
            _alias(node, row) if stays and isinstance(node, cst.ImportFrom) else use,
            said_of(module, row),
            fix=moved(module, use, row),
            remedy=row.remedy,
            slight=slight,
        )


def _alias(node: cst.ImportFrom, row: Upgrade) -> cst.CSTNode:
    """Return the part of an import that names what a row of the table is about."""
    aliases = () if isinstance(node.names, cst.ImportStar) else node.names
    word = last_part(row.symbol)
    return next((each for each in aliases if cst.ensure_type(each.name, cst.Name).value == word), node)
