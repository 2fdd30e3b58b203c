"""What the editor offers to do about findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types

from torchlint import registry
from torchlint.checker import OWN_CODES
from torchlint.diagnostics import Applicability, Diagnostic, Edit
from torchlint.server.documents import Document, Places
from torchlint.server.reports import report
from torchlint.suppressions import NEVER_SUPPRESSED, silence

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.torchlint"
KINDS = (types.CodeActionKind.QuickFix.value, FIX_ALL)
"""The kinds of actions that there are."""


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether the editor asks for actions of a kind; ``only`` may name kinds that it belongs to."""
    return only is None or any(kind == outer or kind.startswith(f"{outer}.") for outer in only)


def quick_fixes(
    found: Iterable[Diagnostic], where: types.Range, places: Places, document: Document, *, versioned: bool
) -> Iterator[types.CodeAction]:
    """The fixes of the findings in a range, then the ways to silence them."""
    span = places.span(where)
    here = [item for item in found if item.span.start <= span.end and span.start <= item.span.end]
    for item in here:
        fix = item.fix
        if fix is None or not fix.edits or fix.applicability is Applicability.DISPLAY:
            continue
        yield types.CodeAction(
            fix.message if safe(item) else f"{fix.message} (unsafe fix)",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[report(item, places, document.uri)],
            is_preferred=safe(item),
            edit=change(fix.edits, places, document, versioned=versioned),
        )
    offered = set()
    for item in here:
        if item.code in NEVER_SUPPRESSED | OWN_CODES or (item.code, item.noqa_row) in offered:
            continue
        offered.add((item.code, item.noqa_row))
        edit = silence(places.source, registry.catalogue(), item.noqa_row, item.code)
        yield types.CodeAction(
            f"Disable {item.code} for this line",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[report(item, places, document.uri)],
            edit=change([edit], places, document, versioned=versioned),
        )


def safe(diagnostic: Diagnostic) -> bool:
    """Whether a finding has a safe fix."""
    fix = diagnostic.fix
    return fix is not None and bool(fix.edits) and fix.applicability is Applicability.SAFE


def fix_all(document: Document) -> types.CodeAction:
    """The offer to make all safe fixes of a text; its edit is worked out once it is accepted."""
    return types.CodeAction("Fix all safe torchlint problems", kind=FIX_ALL, data={"uri": document.uri})


def change(
    edits: Iterable[Edit], places: Places, document: Document, *, versioned: bool
) -> types.WorkspaceEdit:
    """Edits of a text; with ``versioned`` the editor refuses them once the text is another."""
    made = places.edits(edits)
    if not versioned:
        return types.WorkspaceEdit(changes={document.uri: made})
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, made)])
