"""What the editor offers to do about findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lsprotocol import types

from torchlint.checker import OWN_CODES
from torchlint.diagnostics import UNTREATED, Applicability, Diagnostic, Edit, Span
from torchlint.server.documents import Places
from torchlint.server.reports import report
from torchlint.silencing import comments

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.torchlint"
FIX_NOTEBOOK = f"notebook.{FIX_ALL}"
KINDS = (types.CodeActionKind.QuickFix.value, FIX_ALL, FIX_NOTEBOOK)
"""The kinds of actions that there are."""
_NONE: Mapping[Path, Places] = MappingProxyType({})


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Return whether the editor asks for actions of a kind; ``only`` may name kinds that it belongs to."""
    return only is None or any(kind == outer or kind.startswith(f"{outer}.") for outer in only)


Elsewhere = Callable[[Path], "Places | None"]
"""The places in another file, as the editor has it; None for one that cannot be read."""


def quick_fixes(
    found: Iterable[Diagnostic], span: Span, places: Places, elsewhere: Elsewhere, *, versioned: bool
) -> Iterator[types.CodeAction]:
    """Yield the fixes of the findings in a part of a program, then the ways to silence them."""
    here = [item for item in found if item.span.start <= span.end and span.start <= item.span.end]
    for item in here:
        fix = item.fix
        if fix is None or not fix.edits or fix.applicability is Applicability.DISPLAY:
            continue
        others = {path: there for path in fix.elsewhere if (there := elsewhere(path)) is not None}
        if len(others) < len(fix.elsewhere):
            continue
        yield types.CodeAction(
            fix.message if safe(item) else f"{fix.message} (unsafe: {fix.risk or 'may change behavior'})",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[report(item, places)[1]],
            is_preferred=safe(item),
            edit=change(fix.edits, places, others, versioned=versioned),
        )
    offered = set()
    for item in here:
        if item.code in UNTREATED | OWN_CODES or (item.code, item.cell, item.noqa_row) in offered:
            continue
        offered.add((item.code, item.cell, item.noqa_row))
        silenced = list(comments(places.program.source, [item]))
        if silenced:
            yield types.CodeAction(
                f"Disable {item.code} for this line",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[report(item, places)[1]],
                edit=change(silenced, places, versioned=versioned),
            )


def safe(diagnostic: Diagnostic) -> bool:
    """Return whether a finding has a safe fix."""
    fix = diagnostic.fix
    return fix is not None and bool(fix.edits) and fix.applicability is Applicability.SAFE


def fix_all(uri: str, kind: str) -> types.CodeAction:
    """Return the offer to make all safe fixes of a program; its edit is computed once it is accepted."""
    return types.CodeAction("Fix all safe torchlint problems", kind=kind, data={"uri": uri})


def change(
    edits: Iterable[Edit], places: Places, others: Mapping[Path, Places] = _NONE, *, versioned: bool
) -> types.WorkspaceEdit:
    """Return edits of a program and of ``others``, which an editor makes all or none.

    With ``versioned`` it refuses them once a text is another.
    """
    made: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        location = (places if edit.path is None else others[edit.path]).location(edit.span)
        made.setdefault(location.uri, []).append(types.TextEdit(location.range, edit.content))
    if not versioned:
        return types.WorkspaceEdit(changes=made)
    programs = [place.program for place in (places, *others.values())]
    versions = {text.uri: text.version for program in programs for text in program.texts.values()}
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), changes)
            for uri, changes in made.items()
        ]
    )
