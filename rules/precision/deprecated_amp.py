"""TL507: automatic mixed precision under the names of one device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import graded
from torchlint.fixes.replacements import upgraded
from torchlint.messages import KEPT_FOR_CALLERS
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.upgrades import SYMBOLS
from torchlint.semantics.lexicon import words
from torchlint.semantics.module import Module
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.spellings import last_words
from torchlint.semantics.upgrading import is_kept_for_callers, last_part, only_names, root_of, upgrade_at

_PLACES = ("torch.cuda.amp.", "torch.cpu.amp.")
_APEX = ("apex.amp.initialize", "apex.amp.scale_loss")
_NAMES = last_words((*_APEX, *(symbol for symbol in SYMBOLS if symbol.startswith(_PLACES))))


@rule(
    "TL507",
    "deprecated-amp",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=(cst.Name, cst.Attribute),
    named={cst.Name: _NAMES, cst.Attribute: _NAMES},
    mentions=("amp", "cuda|cpu|apex", "autocast|GradScaler|custom_fwd|custom_bwd|initialize|scale_loss"),
)
def deprecated_amp(node: cst.Name | cst.Attribute, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of `torch.cuda.amp` and `torch.cpu.amp`, and
    the mixed precision of apex, where the program requires torch 2.4 or newer. The rule ignores branches for
    older releases, annotations, `isinstance` checks, and classes that are there to wrap apex.

    ## Why is this bad?

    They are deprecated, and since torch 2.4 each use emits a `FutureWarning`. Their replacements take the
    device as an argument, so the same code runs on every kind of accelerator. The mixed precision of apex is
    no longer maintained.

    ## Example

    ```python
    from torch.cuda.amp import GradScaler, autocast

    scaler = GradScaler()
    with autocast(args.amp, dtype=torch.float16):
        loss = model(images)
    ```

    ## Use instead

    ```python
    from torch.amp import GradScaler, autocast

    scaler = GradScaler("cuda")
    with autocast("cuda", enabled=args.amp, dtype=torch.float16):
        loss = model(images)
    ```

    ## Fix safety

    Safe: the old names are thin wrappers that pass the device to the new ones. Names that the file imports
    from the old module are imported from the new one, and all their uses in the file are rewritten at once.
    The fix is unsafe where the file sets the dtype or the cache of autocast for the whole program, because
    the old names do not read these settings, and where another file asks what is an instance of
    `GradScaler`. There is no fix where a name is exported in `__all__`, used by another file by way of this
    one, passed on without being called, or used as a base class, where arguments are hidden in `*args`, and
    for apex.

    ## References

    - [torch.amp: the deprecated names](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch 2.4: deprecation of torch.cuda.amp](https://github.com/pytorch/pytorch/releases/tag/v2.4.0)
    """
    row = upgrade_at(module, node)
    if row is None:
        yield from _apex(module, node)
    elif (
        row.symbol.startswith(_PLACES) and module.target.at_least("2.4") and row.is_deprecated(module.target)
    ):
        if _is_alias(module, node) or only_names(module, node) or ReleaseChecks.of(module).over(node):
            return
        assert row.replacement is not None
        new = row.replacement
        edits = upgraded(module, node) if row.is_replaceable(module.target) else None
        risk = None
        if _sets_defaults(module):
            risk = "the file sets defaults of autocast, which only the new name reads"
        elif _is_compared(module, row.symbol):
            risk = "another file asks what is an instance of the old class"
        yield Finding(
            node,
            f"`{row.symbol}` is deprecated since torch 2.4; use `{new}` with `{row.adds}`",
            fix=graded(module, f"Use `{new}`", edits, risk=risk),
            # Whoever asks for the type asks for that of the old name.
            remedy=f"Use `{new}` with `{row.adds}`, wherever the file has the old name",
            slight=KEPT_FOR_CALLERS if is_kept_for_callers(module, node) else None,
        )


def _is_alias(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is given another name, under which it is found where it is used."""
    match module.tree.parent(node):
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)])
            | cst.AnnAssign(target=cst.Name() as name)
        ):
            binding = module.binding_of(name)
            uses = module.uses(binding) if binding is not None else []
            return not uses or any(upgrade_at(module, use) is not None for use in uses)
    return False


def _sets_defaults(module: Module) -> bool:
    return module.tree.mentions("set_autocast") or module.tree.mentions("cache_enabled")


def _is_compared(module: Module, symbol: str) -> bool:
    """Return whether another file of the program names a class without calling it:
    ``isinstance(s, GradScaler)``.

    The old name is that of a subclass of the new one.
    """
    name = last_part(symbol)
    return name == "GradScaler" and any(
        each.qualified(node) == symbol
        and not each.tree.is_called(node)
        and each.tree.enclosing(node, cst.Annotation, cst.Import, cst.ImportFrom) is None
        for each in module.companions(name)
        for node in each.tree.nodes(cst.Name, cst.Attribute)
    )


def _apex(module: Module, node: cst.CSTNode) -> Iterator[Finding]:
    call = module.tree.parent(node)
    if (
        isinstance(call, cst.Call)
        and call.func is node
        and module.qualified(node) in _APEX
        and module.target.at_least("2.4")
        and not _is_for_apex(module, call)
    ):
        yield Finding(
            node,
            f"`{module.source(node)}` of apex is no longer maintained; use `torch.amp`",
            remedy="Use `torch.amp.autocast` and `torch.amp.GradScaler`",
            slight="the program runs without apex as well" if _is_optional(module, node) else None,
        )


def _is_for_apex(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is part of a class that is there to wrap apex, as its name says."""
    owner = module.tree.enclosing(node, cst.ClassDef)
    return owner is not None and "apex" in words(owner.name.value)


def _is_optional(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the program also runs where apex is not installed."""
    checks = ReleaseChecks.of(module)
    return any(checks.tries(binding.node) for binding in module.bindings(root_of(node)))
