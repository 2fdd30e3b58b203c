"""Diagnostics as the editor shows them, and the pages of rules that it shows beside them."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from torchlint import links, registry
from torchlint.diagnostics import Diagnostic, Impact, Severity
from torchlint.render import page
from torchlint.rule import Rule
from torchlint.server.documents import Places
from torchlint.suppressions import Suppressions

SOURCE = "torchlint"
_SEVERITIES = {
    Severity.NOTE: types.DiagnosticSeverity.Information,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.ERROR: types.DiagnosticSeverity.Error,
}


def report(diagnostic: Diagnostic, places: Places) -> tuple[str, types.Diagnostic]:
    """Return the URI of the text that a diagnostic is of, and how the editor shows it."""
    fix = diagnostic.fix
    url = links.explaining(diagnostic, registry.catalogue())
    location = places.location(diagnostic.span)
    related = [
        types.DiagnosticRelatedInformation(places.at(place), remark) for place, remark in diagnostic.related
    ]
    return location.uri, types.Diagnostic(
        range=location.range,
        message=diagnostic.message,
        severity=_severity(diagnostic),
        code=diagnostic.code,
        code_description=types.CodeDescription(url) if url else None,
        source=SOURCE,
        related_information=related or None,
        data={
            "name": diagnostic.name,
            "impact": diagnostic.impact.label,
            "impactReason": diagnostic.slight,
            "fix": fix
            and {
                "message": fix.message,
                "applicability": fix.applicability.label,
                **({"unsafeReason": fix.risk} if fix.risk else {}),
            },
        },
    )


def _severity(diagnostic: Diagnostic) -> types.DiagnosticSeverity:
    """Return how loudly the editor says it: what is of low impact, if that is wanted at all, as a hint."""
    if diagnostic.impact is Impact.LOW:
        return types.DiagnosticSeverity.Hint
    return _SEVERITIES[diagnostic.severity]


def hover(offset: int, found: Iterable[Diagnostic], places: Places) -> types.Hover | None:
    """Return the pages of the rules that are named, or that found something, at an offset of a program."""
    rules = registry.catalogue()
    for directive in Suppressions(places.program.source, rules).directives:
        for entry in directive.entries:
            if entry.code and entry.span.start <= offset <= entry.span.end:
                return _shown([rules[entry.code]], places.location(entry.span).range)
    here = [item for item in found if item.span.start <= offset <= item.span.end and item.code in rules]
    if not here:
        return None
    innermost = min(here, key=lambda item: item.span.end - item.span.start)
    codes = dict.fromkeys(item.code for item in here)
    return _shown([rules[code] for code in codes], places.location(innermost.span).range)


def _shown(rules: Iterable[Rule], where: types.Range) -> types.Hover:
    text = "\n---\n\n".join(page.render(rule) for rule in rules)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)
