"""What ``bench`` and ``verify`` measured, as a table and sentences for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torchlint.registry import catalogue
from torchlint.render.report import paint, plural, visible
from torchlint.render.snippet import cells
from torchlint.verify import words
from torchlint.verify.results import (
    ORIGINAL,
    TOGETHER,
    Agreement,
    Comparison,
    Machine,
    Measurement,
    Results,
    SyncReport,
    SyncRow,
    SyncStatus,
    Verdict,
)
from torchlint.verify.words import About, Remark

_SENTENCES = 110
"""No line of running text is longer."""

_GAPS = ("  ", " ")
"""What stands between two columns, and what if there is little room."""

_ARROW = "→"

_VERDICT_COLORS = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.REJECTED: "red",
    Verdict.UNFIT: "yellow",
    Verdict.UNCLEAR: "yellow",
}

_AGREEMENTS = {Agreement.STREAM_MOVED: "moved", Agreement.UNCHECKED: words.NOTHING}
"""What is too long, or says nothing, in a column."""

_STATUSES = {
    SyncStatus.CONFIRMED: ("Confirmed: predicted and observed", "green"),
    SyncStatus.REACHED: ("Predicted, but reached without waiting", "yellow"),
    SyncStatus.NOT_REACHED: ("Predicted, but not reached", "yellow"),
    SyncStatus.NOT_SEEN: ("Predicted, but not observed", "yellow"),
    SyncStatus.NOT_PREDICTED: ("Observed, but not predicted", "cyan"),
}


@dataclass(frozen=True)
class _Column:
    header: str
    cells: tuple[str, ...]
    colors: tuple[str, ...] = ()
    right: bool = False
    spare: int = 0
    """The columns with the highest number go first when there is no room; those with 0 never do."""

    @property
    def width(self) -> int:
        return max(map(cells, (self.header, *self.cells)))

    @property
    def empty(self) -> bool:
        return not any(cell not in ("", words.NOTHING) for cell in self.cells)


@dataclass(frozen=True)
class _Row:
    """A line of the table: the original (without a comparison), or one variant."""

    measurement: Measurement
    variant: str
    comparison: Comparison | None = None


def render(results: Results, width: int, *, color: bool = False) -> str:
    """Return the table, what there is to say about it, and where the device was waited for.

    ``width`` is the number of columns of the terminal. Columns that do not fit are left out by name.
    """
    out = _advice(results, width, color) + _heading(results, width, color)
    if results.command == "bench":
        columns = _bench_columns(list(map(_headline, results.measurements)))
        if words.ranked(results):
            places = (words.briefly(results.machine, item) for item in results.measurements)
            columns.insert(3, _Column("on", tuple(map(visible, places)), spare=4))
        out += _table(columns, width, color)
        out += _bench_remarks(results.measurements, width, color)
    for measurement in results.measurements:
        if results.command != "bench":
            out += _title(measurement, color)
            compared = [_Row(measurement, item.variant, item) for item in words.compared(measurement)]
            if compared:
                out += _table(_verify_columns([_Row(measurement, ORIGINAL), *compared]), width, color)
            out += _remarks(measurement, width, color)
        if measurement.syncs is not None:
            out += render_syncs(measurement.syncs, width, color=color)
    if results.interrupted:
        out += "\nInterrupted: results up to this point.\n"
    return out


def render_syncs(report: SyncReport, width: int, *, color: bool = False) -> str:
    """Return the lines that wait for the device: confirmed, predicted but not seen,
    seen but not predicted.
    """
    out = f"\nSynchronizing calls in {plural(report.steps, 'step')}\n"
    if report.phases:
        out += "\n" + _paragraph("", words.watched(report), width)
    for status, (title, hue) in _STATUSES.items():
        rows = [row for row in report.rows if row.status is status]
        if not rows:
            continue
        out += f"\n{_paint(f'{title} ({len(rows)})', color, hue, bold=True)}\n"
        for row in rows:
            out += _sync(row, width, color)
        if status is SyncStatus.NOT_PREDICTED:
            out += "  `--report-unpredicted FILE` writes them for torchlint's authors.\n"
    if not report.rows and report.missing:
        out += "\n"
    elif not report.rows:
        out += "\nNo line was predicted or observed to synchronize with the device.\n"
    else:
        out += "\n" + _paragraph("", words.sync_counts(report), width)
    for text in report.missing:
        out += _paragraph("", words.sentence(text), width)
    return out


def _sync(row: SyncRow, width: int, color: bool) -> str:
    where = _paint(f"{visible(row.file)}:{row.row}", color, bold=True)
    figures = list(map(visible, words.sync_figures(row)))
    out = f"  {where}{'  ' if figures else ''}{', '.join(figures)}\n"
    if row.text:
        out += f"      {visible(row.text.strip())}\n"
    if row.phases:
        out += _paragraph("    during", ", ".join(row.phases), width)
    if row.codes:
        out += _paragraph("    " + ", ".join(row.codes), row.message, width)
    return out


def _advice(results: Results, width: int, color: bool) -> str:
    """Return what to do, in front of everything else."""
    if results.command == "bench":
        return ""
    # What was interrupted may not have got to any fix.
    over = [item for item in results.measurements if words.compared(item) or not results.interrupted]
    told = "\n".join(filter(None, map(words.what_to_do, over)))
    filled = textwrap.fill(
        visible(told), min(width, _SENTENCES), subsequent_indent="  ", break_long_words=False
    )
    return f"{_paint(filled, color, bold=True)}\n\n" if told else ""


def _heading(results: Results, width: int, color: bool) -> str:
    name = visible(words.everywhere(results))
    versions = ", ".join(filter(None, (*_versions(results.machine), words.awake(results))))
    text = f"Measured on {name}, {versions}, in {words.duration(results.seconds)}"
    filled = textwrap.fill(text, min(width, _SENTENCES), subsequent_indent="  ", break_long_words=False)
    return filled.replace(name, _paint(name, color, bold=True), 1) + "\n"


def _versions(machine: Machine) -> Iterator[str]:
    yield f"torch {visible(machine.torch)}"
    if machine.cuda:
        yield f"CUDA {visible(machine.cuda)}"
    if machine.driver:
        yield f"driver {visible(machine.driver)}"


def _title(measurement: Measurement, color: bool) -> str:
    size = f", {visible(measurement.size)}" if measurement.size else ""
    steps = visible(words.step_is(measurement))
    title = f"\n{_paint(visible(measurement.subject) + size, color, bold=True)}\n"
    return title + (f"{steps}\n" if steps else "")


# --- the table -------------------------------------------------------------------------------------------


def _table(columns: Sequence[_Column], width: int, color: bool) -> str:
    columns = [column for column in columns if not (column.spare and column.empty)]
    if not columns[0].cells:
        return "\nNothing was measured.\n"
    kept, gap = _fit(columns, width)
    out = "\n" + gap.join(_pad(column.header, column) for column in kept).rstrip() + "\n"
    for number in range(len(kept[0].cells)):
        parts = []
        for column in kept:
            hue = column.colors[number] if column.colors else ""
            parts.append(_paint(_pad(column.cells[number], column), color, hue, bold=bool(hue)))
        out += gap.join(parts).rstrip() + "\n"
    if any(column.header in ("syncs", "kernels") for column in kept):
        out += "\nSynchronizing calls and kernels are counted per step.\n"
    dropped = [column.header for column in columns if column not in kept and column.header]
    if dropped:
        out += f"Omitted for lack of space: {', '.join(dropped)}.\n"
    return out


def _pad(text: str, column: _Column) -> str:
    blank = " " * (column.width - cells(text))
    return blank + text if column.right else text + blank


def _fit(columns: Sequence[_Column], width: int) -> tuple[list[_Column], str]:
    """Return the columns for which there is room, and what stands between them."""
    kept = list(columns)
    while True:
        for gap in _GAPS:
            if sum(column.width for column in kept) + len(gap) * (len(kept) - 1) <= width:
                return kept, gap
        last = max(kept, key=lambda column: column.spare)
        if not last.spare:
            return kept, _GAPS[-1]
        kept.remove(last)


def _headline(measurement: Measurement) -> _Row:
    found = words.headline(measurement)
    return _Row(measurement, found.variant if found else TOGETHER, found)


def _bench_columns(rows: Sequence[_Row]) -> list[_Column]:
    codes, names, shown = [], [], ""
    known = catalogue()
    for row in rows:
        code = row.measurement.subject
        repeated = code == shown
        codes.append("" if repeated else visible(code))
        names.append("" if repeated or code not in known else known[code].name)
        shown = code
    sizes = tuple(visible(row.measurement.size or "") for row in rows)
    return [
        _Column("rule", tuple(codes)),
        # Without a header, as nobody misses it: the code says the same.
        _Column("", tuple(names), spare=9),
        _Column("size", sizes),
        _Column("before", _texts(rows, _before), right=True, spare=5),
        *_common(rows),
    ]


def _verify_columns(rows: Sequence[_Row]) -> list[_Column]:
    return [
        _Column("", _texts(rows, lambda row: visible(words.label(row.measurement, row.variant)))),
        *_common(rows),
    ]


def _common(rows: Sequence[_Row]) -> list[_Column]:
    return [
        _Column("results", _texts(rows, _agreement)),
        _Column("speed-up", _texts(rows, _speedup)),
        _Column("verdict", _texts(rows, _verdict), tuple(map(_verdict_color, rows))),
        _Column("peak memory", _texts(rows, _memory), spare=1),
        _Column("syncs", _texts(rows, _syncs), spare=2),
        _Column("kernels", _texts(rows, _kernels), spare=3),
        _Column("collectives", _texts(rows, _collectives), spare=6),
    ]


def _texts(rows: Sequence[_Row], text: Callable[[_Row], str]) -> tuple[str, ...]:
    return tuple(map(text, rows))


def _agreement(row: _Row) -> str:
    if row.variant == ORIGINAL:
        return ""
    examination = row.measurement.examination(row.variant)
    agreement = Agreement.UNCHECKED if examination is None else examination.sameness.agreement
    return _AGREEMENTS.get(agreement, agreement.value)


def _before(row: _Row) -> str:
    step = words.step_seconds(row.measurement, ORIGINAL)
    return words.NOTHING if step is None else words.seconds(step)


def _speedup(row: _Row) -> str:
    if row.variant == ORIGINAL:
        step = words.step_seconds(row.measurement, row.variant)
        return "" if step is None else f"{words.seconds(step)} per step"
    interval = None if row.comparison is None else words.speedup(row.comparison)
    return words.NOTHING if interval is None else f"{words.ratio(interval)} ({words.span(interval)})"


def _verdict(row: _Row) -> str:
    return row.comparison.verdict.value if row.comparison is not None else ""


def _verdict_color(row: _Row) -> str:
    return "" if row.comparison is None else _VERDICT_COLORS.get(row.comparison.verdict, "")


def _change(row: _Row, figure: Callable[[Measurement, str], str | None]) -> str:
    before = figure(row.measurement, ORIGINAL)
    if row.variant == ORIGINAL:
        return before or words.NOTHING
    after = figure(row.measurement, row.variant)
    return words.NOTHING if after is None else words.change(before, after, _ARROW)


def _memory(row: _Row) -> str:
    def figure(measurement: Measurement, variant: str) -> str | None:
        peak = words.evidence(measurement, variant).peak_allocated
        return None if peak is None else words.size(peak)

    return _change(row, figure)


def _syncs(row: _Row) -> str:
    def figure(measurement: Measurement, variant: str) -> str | None:
        number = words.evidence(measurement, variant).syncs
        return None if number is None else words.count(number)

    return _change(row, figure)


def _kernels(row: _Row) -> str:
    def figure(measurement: Measurement, variant: str) -> str | None:
        number = words.evidence(measurement, variant).kernels
        return None if number is None else words.count(number)

    return _change(row, figure)


def _collectives(row: _Row) -> str:
    if words.evidence(row.measurement, ORIGINAL).collectives is None:
        return words.NOTHING

    def figure(measurement: Measurement, variant: str) -> str | None:
        number = words.evidence(measurement, variant).collectives
        return None if number is None else words.count(number)

    return _change(row, figure)


# --- sentences -------------------------------------------------------------------------------------------


def _remarks(measurement: Measurement, width: int, color: bool) -> str:
    out = "\n"
    noise = measurement.noise
    # Of a machine that is not fit, the remarks say why.
    if noise is not None and noise.fit:
        text = (
            f"Original compared with a copy of itself: {words.ratio(noise.wall)} ({words.span(noise.wall)}). "
            f"Differences below {words.percent(noise.threshold)} count as the same."
        )
        out += _paragraph("", text, width)
    for told in _memories(measurement):
        out += _paragraph("", told, width)
    for remark in words.remarks(measurement):
        names = ", ".join(words.label(measurement, variant) for variant in remark.variants)
        out += _paragraph(_about(remark, names), remark.text, width, color=color)
    return out if out.strip() else ""


def _memories(measurement: Measurement) -> Iterator[str]:
    """Yield what the memory is for, in the original and with the fixes if that differs, and advice."""
    head = words.headline(measurement)
    before = words.memory_told(measurement, ORIGINAL)
    after = words.memory_told(measurement, head.variant) if head is not None else ""
    if before:
        yield words.sentence(before)
    if head is not None and after and after != before:
        yield f"{words.label(measurement, head.variant).capitalize()}: {after}"
    if lines := words.memory_lines_told(measurement, ORIGINAL):
        yield words.sentence(lines)
    yield from map(words.sentence, words.memory_advice(measurement))


def _bench_remarks(measurements: Sequence[Measurement], width: int, color: bool) -> str:
    """Return what there is to say, once for all rules and sizes of which it is true."""
    places: dict[Remark, dict[str, list[str]]] = {}
    for measurement in measurements:
        for remark in words.remarks(measurement):
            sizes = places.setdefault(remark, {}).setdefault(measurement.subject, [])
            sizes.append(measurement.size or "")
    out = ""
    for remark, found in places.items():
        everywhere = len(measurements) > 1 and sum(map(len, found.values())) == len(measurements)
        # There is one fixed program in each, and its name would tell nothing.
        head = "; ".join(
            f"{subject} {', '.join(filter(None, sizes))}".strip() for subject, sizes in found.items()
        )
        out += _paragraph(_about(remark, "" if everywhere else head), remark.text, width, color=color)
    return f"\n{out}" if out else ""


def _about(remark: Remark, subject: str) -> str:
    what = remark.about.value if remark.about in (About.RESULTS, About.FAILURE) else ""
    return ", ".join(filter(None, (subject, what)))


def _paragraph(head: str, text: str, width: int, *, color: bool = False) -> str:
    """Return a sentence behind what it is about; what a program printed keeps its lines."""
    first, *rest = text.strip().splitlines() or [""]
    indent = " " * (len(head) - len(head.lstrip()))
    plain = visible(head.strip()) + (": " if head.strip() else "")
    filled = textwrap.fill(
        indent + plain + visible(first),
        min(width, _SENTENCES),
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    if plain:
        filled = filled.replace(plain.strip(), _paint(plain.strip(), color, bold=True), 1)
    return "".join(f"{line}\n" for line in (filled, *(f"    {visible(line)}".rstrip() for line in rest)))


def _paint(text: str, color: bool, hue: str = "", *, bold: bool = False) -> str:
    return paint(text, hue, bold=bold) if color else text
