"""Joins the waits that were seen at run time with those that the linter predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import PurePosixPath

from torchlint.checker import check
from torchlint.diagnostics import Diagnostic
from torchlint.source import Source
from torchlint.verify.results import Evidence, Line, Results, SyncReport, SyncRow, SyncStatus
from torchlint.verify.variants import SettingsFor

AROUND = 5
"""How many lines before and after a wait are shown to whoever has to understand it."""


def predicts_wait(code: str, message: str) -> bool:
    """Return whether a finding says that the host waits for the device at its place.

    Of those about decisions, one says what else they cost: `sum()` launches kernels, and does not wait.
    """
    return (code.startswith("TL2") and "launches one kernel" not in message) or code == "TL103"


def join(
    evidence: Evidence,
    ran: Mapping[str, Set[int]] | None,
    sources: Mapping[PurePosixPath, Source],
    settings_for: SettingsFor,
) -> SyncReport:
    """Return every line that waited or was said to, with both sides of the story.

    A finding covers all lines of its expression. Where no wait could have been seen, no line is reported,
    and ``missing`` says why. ``ran`` has the lines that ran by file, None if that is not known.
    """
    if evidence.syncs is None:
        return SyncReport(evidence.steps, missing=evidence.missing)
    findings = {
        str(path): [
            item for item in check(source, settings_for(source)) if predicts_wait(item.code, item.message)
        ]
        for path, source in sources.items()
    }
    texts = {str(path): source for path, source in sources.items()}
    rows = [
        *_seen(evidence.sync_lines, findings, texts),
        *_unseen(evidence.sync_lines, ran, findings, texts),
    ]
    order = list(SyncStatus)
    rows.sort(key=lambda row: (order.index(row.status), -row.per_step, row.file, row.row))
    return SyncReport(evidence.steps, tuple(rows))


def unpredicted(results: Results, sources: Mapping[PurePosixPath, Source]) -> str:
    """Return a report in Markdown, for the authors of the rules,
    of the lines that waited without being predicted.

    Each is shown with the lines around it, and nothing else of the program is. Empty if there are none.
    """
    texts = {str(path): source for path, source in sources.items()}
    rows = [
        row
        for measurement in results.measurements
        for row in (measurement.syncs.rows if measurement.syncs else ())
        if row.status is SyncStatus.NOT_PREDICTED and row.file in texts
    ]
    if not rows:
        return ""
    told = [
        "# Waits that torchlint does not predict",
        f"torchlint {results.torchlint}, torch {results.machine.torch}, {results.machine.gpu or 'CPU'}",
    ]
    for row in rows:
        what = f" ({row.what})" if row.what else ""
        told.append(f"## {row.file}:{row.row}, {row.per_step:.3g} per step{what}")
        source = texts[row.file]
        around = range(max(1, row.row - AROUND), min(row.row + AROUND, len(source.line_starts)) + 1)
        shown = [f"{'>' if at == row.row else ' '} {source.line(at)}".rstrip() for at in around]
        told.append("\n".join(["```", *shown, "```"]))
    return "\n\n".join(told) + "\n"


def _seen(
    lines: Iterable[Line], findings: Mapping[str, list[Diagnostic]], sources: Mapping[str, Source]
) -> Iterable[SyncRow]:
    for line in lines:
        said = [item for item in findings.get(line.file, ()) if _covers(item, line.row)]
        yield SyncRow(
            line.file,
            line.row,
            SyncStatus.CONFIRMED if said else SyncStatus.NOT_PREDICTED,
            codes=tuple(dict.fromkeys(item.code for item in said)),
            message=said[0].message if said else "",
            per_step=line.per_step,
            seconds=line.seconds,
            what=line.what,
            text=_text(sources, line.file, line.row),
            calls=line.calls,
            phases=line.phases,
        )


def _unseen(
    lines: Iterable[Line],
    ran: Mapping[str, Set[int]] | None,
    findings: Mapping[str, list[Diagnostic]],
    sources: Mapping[str, Source],
) -> Iterable[SyncRow]:
    waited = [(line.file, line.row) for line in lines]
    for file, items in findings.items():
        for item in items:
            if not any(name == file and _covers(item, row) for name, row in waited):
                text = _text(sources, file, item.start.row)
                yield SyncRow(
                    file, item.start.row, _status(item, file, ran), (item.code,), item.message, text=text
                )


def _status(item: Diagnostic, file: str, ran: Mapping[str, Set[int]] | None) -> SyncStatus:
    """Return what became of a finding whose lines were not seen to wait."""
    if ran is None:
        return SyncStatus.NOT_SEEN
    rows = range(item.start.row, item.end.row + 1)
    return SyncStatus.NOT_REACHED if ran.get(file, frozenset()).isdisjoint(rows) else SyncStatus.REACHED


def _covers(item: Diagnostic, row: int) -> bool:
    return item.start.row <= row <= item.end.row


def _text(sources: Mapping[str, Source], file: str, row: int) -> str:
    return sources[file].line(row).strip() if file in sources else ""
