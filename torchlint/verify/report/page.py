"""From results to the page: what each part of the template shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from torchlint import html, links
from torchlint.registry import catalogue, rule_name
from torchlint.verify import words
from torchlint.verify.report import figures
from torchlint.verify.report.axis import Axis, Tick, clock
from torchlint.verify.report.figures import Drawing
from torchlint.verify.report.listing import (
    DiffLine,
    SourceLine,
    annotate,
    changed_files,
    parse_diff,
    to_original,
)
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Comparison,
    Interval,
    Line,
    Machine,
    Measurement,
    Noise,
    Results,
    Slice,
    SyncRow,
    SyncStatus,
    Timeline,
    Track,
    TrackKind,
    Variant,
    Verdict,
)
from torchlint.verify.words import Remark

SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SAME: "=",
    Verdict.SLOWER: "▼",
    Verdict.LESS_WORK: "▲",
    Verdict.SAME_WORK: "=",
    Verdict.MORE_WORK: "▼",
    Verdict.UNCLEAR: "?",
    Verdict.UNFIT: "!",
    Verdict.REJECTED: "×",
    Verdict.UNREACHED: "–",
    Verdict.UNMEASURED: "–",
}
"""What stands before a verdict, so that its colour is not the only sign of it."""


_COLUMNS = {
    "place": "On",
    "times": "Step",
    "memory": "Peak memory",
    "syncs": "Syncs a\u00a0step",
    "kernels": "Kernels a\u00a0step",
    "collectives": "Collectives a\u00a0step",
}


@dataclass(frozen=True)
class Mark:
    """An interval on the scale of its table, in per cent of the width."""

    low: float
    ratio: float
    high: float
    band_low: float
    band_high: float
    one: float
    beyond: int
    """1 if the ratio lies beyond the right end of the scale, -1 beyond the left; else 0."""


@dataclass(frozen=True)
class Row:
    """A line of the table of verdicts."""

    title: str
    rule: str
    """The name of the rule whose fix it is; empty of several."""
    url: str | None
    """Where that rule is documented."""
    notes: tuple[str, ...]
    anchor: str
    patch: str
    """The anchor of its diff."""
    verdict: Verdict
    sign: str
    reason: str
    speedup: str
    span: str
    mark: Mark | None
    times: str
    agreement: Agreement
    memory: str
    syncs: str
    kernels: str
    collectives: str = words.NOTHING
    size: str = ""
    place: str = words.NOTHING
    """What it ran on, where that is not the same for all rows."""


@dataclass(frozen=True)
class NoiseRow:
    """The last line of a program's table: the original against a copy of itself."""

    speedup: str
    span: str
    mark: Mark
    times: str
    fit: bool
    verdict: None = None


@dataclass(frozen=True)
class Group:
    """Rows that share a heading: the sizes of one rule."""

    title: str
    name: str
    rows: tuple[Row, ...]
    noise: tuple[NoiseRow, ...]


@dataclass(frozen=True)
class Table:
    """The verdicts, and the scale that their intervals are drawn on."""

    groups: tuple[Group, ...]
    ticks: tuple[Tick, ...]
    verdicts: tuple[tuple[Verdict, str, str], ...]
    """What occurs in it, with its sign and its meaning."""
    agreements: tuple[tuple[Agreement, str], ...]
    beyond: bool
    """Whether a ratio lies outside of the scale."""
    columns: tuple[tuple[str, str], ...]
    """The figures that were seen of any program: the field of the row, and a heading."""


@dataclass(frozen=True)
class Figures:
    """All that is known of one variant, for a table of its own."""

    title: str
    step: str
    device: str
    pairs: str
    compared: str
    largest: str
    allocated: str
    reserved: str
    syncs: str
    kernels: str
    to_device: str
    to_host: str
    startup: str


@dataclass(frozen=True)
class Patch:
    """The diff of a variant; patches that say the same are equal, wherever they stand."""

    anchor: str = field(compare=False)
    title: str
    notes: tuple[str, ...]
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class SyncGroup:
    """The lines of one status of ``--syncs``."""

    title: str
    rows: tuple[SyncRow, ...]


@dataclass(frozen=True)
class Bar:
    """A slice of a timeline, in per mille of the width."""

    left: float
    width: float
    strength: float
    """For which share of it anything ran."""
    told: str
    label: str = ""
    """What is written on it; empty where there is no room."""


@dataclass(frozen=True)
class Lane:
    """A track of a timeline."""

    kind: str
    """The name of its style."""
    title: str
    busy: str
    bars: tuple[Bar, ...]
    longest: tuple[tuple[str, str, int], ...]
    """What took longest: its name, how long, and how often it ran."""


@dataclass(frozen=True)
class Step:
    """The timeline of one variant."""

    title: str
    told: str
    end: float
    """Where the host is done with it, in per mille of the width."""
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class Timelines:
    """One step before and after, on the same scale."""

    steps: tuple[Step, ...]
    ticks: tuple[Tick, ...]
    missing: tuple[str, ...]
    """Of which variants there is none, and why, a sentence each."""


@dataclass(frozen=True)
class Allocated:
    """What a line of the original allocated of the peak of a step."""

    place: str
    text: str
    size: str
    share: str
    count: int


@dataclass(frozen=True)
class Part:
    """What the page says of one measurement beside its verdicts."""

    anchor: str
    title: str
    verdicts: tuple[Row, ...]
    remarks: tuple[Remark, ...]
    drawings: tuple[Drawing, ...]
    timelines: Timelines | None
    allocated: tuple[Allocated, ...]
    noise: str
    figures: tuple[Figures, ...]
    file: str
    listing: tuple[SourceLine, ...]
    elsewhere: tuple[Line, ...]
    added: tuple[Line, ...]
    """Waits that only the fixed program has."""
    watched: bool
    """Whether anybody looked where the host waits."""
    syncs: tuple[SyncGroup, ...]
    sync_summary: str
    """What was watched for the join of predicted and seen waits, and what could not be; empty without one."""
    patches: tuple[Patch, ...]
    method: tuple[str, ...]
    repeated: str = ""
    """The title of an earlier part with the same diff and the same lines."""


@dataclass(frozen=True)
class Chapter:
    """The parts of a script, or of a rule with its sizes."""

    title: str
    name: str
    summary: str
    parts: tuple[Part, ...]


def render(results: Results) -> str:
    """Return the page.

    Raises:
        ImportError: Jinja or Matplotlib is missing; both come with the extra ``verify``.
    """
    environment = html.environment("torchlint.verify.report")
    environment.filters["size"] = words.size
    environment.filters["seconds"] = words.seconds
    environment.filters["count"] = words.count
    environment.globals["NOTHING"] = words.NOTHING
    chapters = tuple(_chapters(results))
    return html.render(
        environment,
        "page.html.jinja",
        results=results,
        title=_title(results),
        headline=_headline(results),
        lead=_tied(_lead(results)),
        table=_table(results),
        chapters=chapters,
        bench=results.command == "bench",
        machine=tuple(_machine(results.machine)),
        run=tuple(_run(results)),
        took=words.duration(results.seconds),
        hardware=words.everywhere(results),
    )


def _tied(text: str) -> str:
    """Return numbers and their units on one line."""
    return _UNIT.sub("\u00a0", text)


_UNIT = re.compile(r"(?<=\d) (?=%|(?:[mµn]?s|[KMGT]?i?B)\b)")


def _title(results: Results) -> str:
    subjects = dict.fromkeys(item.subject for item in results.measurements)
    if results.command == "bench":
        return f"torchlint bench: {len(subjects)} rule{'' if len(subjects) == 1 else 's'}"
    return f"torchlint {results.command}: {', '.join(subjects) or 'nothing'}"


# --- the verdicts ----------------------------------------------------------------------------------------


def _headline(results: Results) -> tuple[str, str] | None:
    """Return the speed-up of a program, and with which fixes; None if there is no such number."""
    if results.command == "bench" or len(results.measurements) != 1:
        return None
    (measurement,) = results.measurements
    head = words.headline(measurement)
    interval = words.speedup(head) if head is not None else None
    if head is None or interval is None:
        return None
    fixes = words.label(measurement, head.variant)
    return f"{words.ratio(interval)}×", f"as fast with {'the fix' if fixes == 'fixed' else fixes}"


def _lead(results: Results) -> str:
    """Return the outcome in a sentence or two."""
    if not results.measurements:
        return "Nothing was measured."
    if results.command == "bench" or len(results.measurements) > 1:
        found = [words.headline(item) for item in results.measurements]
        counts = Counter(item.verdict for item in found if item is not None)
        told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        return f"{_plural(len(found), 'measurement')}: {told}." if told else "No fix was measured."
    (measurement,) = results.measurements
    head = words.headline(measurement)
    if head is None and results.interrupted:
        return "Nothing was measured."
    if head is None:
        return words.what_to_do(measurement) or _sync_lead(measurement)
    return f"{words.what_to_do(measurement)} {_outcome(measurement, head)}"


def _outcome(measurement: Measurement, head: Comparison) -> str:
    variant = _variant(measurement, head.variant)
    fixes = len(variant.fixes)
    what = {0: "the fixes", 1: "the fix", 2: "both fixes"}.get(fixes, f"all {fixes} fixes")
    interval = words.speedup(head)
    examination = measurement.examination(head.variant)
    agreement = examination.sameness.agreement if examination else Agreement.UNCHECKED
    if interval is None:
        tell = {
            Verdict.LESS_WORK: f"With {what} the device has less to do; the time is unclear.",
            Verdict.SAME_WORK: f"With {what} the device has as much to do; the time is unclear.",
            Verdict.MORE_WORK: f"With {what} the device has more to do; the time is unclear.",
            Verdict.UNCLEAR: f"It is unclear whether the program is faster with {what}.",
            Verdict.UNFIT: "This machine does not reproduce the program's own time: no speed-up is reported.",
            Verdict.REJECTED: f"With {what} the program "
            + ("fails." if agreement is Agreement.FAILED else "computes different results."),
        }
        return tell.get(head.verdict, f"The program with {what} was not timed.") + _alone(measurement)
    ratio = f"{words.ratio(interval)} (95 % interval {words.span(interval)})"
    tell = {
        Verdict.FASTER: f"With {what} the program runs {ratio} times as fast.",
        Verdict.SAME: f"With {what} the program takes the same time: {ratio}.",
        Verdict.SLOWER: f"With {what} the program is slower: it runs {ratio} times as fast.",
        Verdict.UNCLEAR: f"It is unclear whether the program is faster with {what}: {ratio}.",
    }
    told = tell[head.verdict]
    before, after = words.step(measurement, ORIGINAL), words.step(measurement, head.variant)
    if before and after:
        told += f" A step took {before} before and {after} after."
    memory = words.memory(measurement, head.variant)
    if "→" in memory:
        told += f" Peak memory: {memory}."
    return told + _alone(measurement)


def _alone(measurement: Measurement) -> str:
    """Return how the fixes fared one by one, a sentence with a space before it."""
    counts = Counter(item.verdict for item in words.compared(measurement) if item.variant != TOGETHER)
    told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    timed = any(item.verdict in words.TIMED for item in words.compared(measurement))
    return f" Separately: {told}." if told and timed else ""


def _sync_lead(measurement: Measurement) -> str:
    rows = measurement.syncs.rows if measurement.syncs else ()
    if measurement.syncs and measurement.syncs.missing and not rows:
        return "Synchronization with the device could not be observed."
    counts = Counter(row.status for row in rows)
    told = ", ".join(f"{counts[status]} {status.value}" for status in SyncStatus if counts[status])
    return (
        f"Lines that synchronize with the device: {told}."
        if told
        else "No line synchronizes with the device."
    )


def _table(results: Results) -> Table:
    bench = results.command == "bench"
    shown = [
        (number, measurement, comparison)
        for number, measurement in enumerate(results.measurements, start=1)
        for comparison in words.compared(measurement)[: 1 if bench else None]
    ]
    intervals = [interval for *_, item in shown if (interval := words.speedup(item)) is not None]
    floors = [item.noise for _, item, _ in shown if item.noise is not None]
    intervals += [] if bench else [floor.wall for floor in floors]
    axis = Axis.around(intervals, max((floor.threshold for floor in floors if floor.fit), default=0.03))
    groups = []
    for subject, found in groupby(shown, key=lambda member: member[1].subject):
        members = list(found)
        rows = tuple(_row(number, measurement, item, axis) for number, measurement, item in members)
        if words.ranked(results):
            places = (words.briefly(results.machine, measurement) for _, measurement, _ in members)
            rows = tuple(replace(row, place=place) for row, place in zip(rows, places, strict=True))
        rows = rows if bench else _gathered(rows)
        last = members[-1][1]
        floor = () if bench or last.noise is None else (_noise_row(last, last.noise, axis),)
        groups.append(Group(subject, rule_name(subject) if bench else "", rows, floor))
    every = [row for group in groups for row in group.rows]
    verdicts = {row.verdict for row in every}
    agreements = {row.agreement for row in every}
    return Table(
        tuple(groups),
        tuple(axis.ticks()) if intervals else (),
        tuple((item, SIGNS[item], words.VERDICTS[item]) for item in Verdict if item in verdicts),
        tuple((item, words.AGREEMENTS[item]) for item in Agreement if item in agreements),
        any(row.mark is not None and row.mark.beyond != 0 for row in every),
        tuple(
            (name, heading)
            for name, heading in _COLUMNS.items()
            if any(getattr(row, name) != words.NOTHING for row in every)
        ),
    )


def _gathered(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows, those of which nothing but the verdict is known as one for each verdict."""
    figures = ("times", "memory", "syncs", "kernels", "collectives")
    bare: dict[Verdict, list[Row]] = {}
    for row in rows:
        if row.agreement is Agreement.UNCHECKED and {getattr(row, name) for name in figures} == {
            words.NOTHING
        }:
            bare.setdefault(row.verdict, []).append(row)
    several = {id(row): found for found in bare.values() if len(found) > 1 for row in found}
    return tuple(
        replace(row, title=words.listed([item.title for item in found]), rule="", notes=(), patch="")
        if (found := several.get(id(row)))
        else row
        for row in rows
        if id(row) not in several or several[id(row)][0] is row
    )


def _row(number: int, measurement: Measurement, comparison: Comparison, axis: Axis | None) -> Row:
    name = comparison.variant
    variant = _variant(measurement, name)
    rule = catalogue().get(name.partition(":")[0])
    examination = measurement.examination(name)
    interval = words.speedup(comparison)
    threshold = measurement.noise.threshold if measurement.noise else 0.0
    mark = None if interval is None or axis is None else _mark(interval, threshold, axis)
    agreement = examination.sameness.agreement if examination else Agreement.UNCHECKED
    return Row(
        title=words.label(measurement, name),
        rule=rule.name if rule is not None else "",
        url=links.page(rule) if rule is not None else None,
        notes=_row_notes(variant),
        anchor=f"m{number}",
        patch=_patch_anchor(number, variant),
        verdict=comparison.verdict,
        sign=SIGNS[comparison.verdict],
        reason=words.sentence(comparison.reason),
        speedup=words.ratio(interval) if interval else words.NOTHING,
        span=words.span(interval) if interval else "",
        mark=mark,
        times=words.times(measurement, name) if interval else words.NOTHING,
        agreement=agreement,
        memory=words.memory(measurement, name),
        syncs=words.counted(measurement, name, "syncs"),
        kernels=words.counted(measurement, name, "kernels"),
        collectives=words.counted(measurement, name, "collectives"),
        size=measurement.size or "",
    )


def _noise_row(measurement: Measurement, noise: Noise, axis: Axis) -> NoiseRow:
    return NoiseRow(
        speedup=words.ratio(noise.wall),
        span=words.span(noise.wall),
        mark=_mark(noise.wall, noise.threshold, axis),
        times=words.times(measurement, AGAIN),
        fit=noise.fit,
    )


def _mark(interval: Interval, threshold: float, axis: Axis) -> Mark:
    return Mark(
        low=axis.at(interval.low),
        ratio=axis.at(interval.ratio),
        high=axis.at(interval.high),
        band_low=axis.at(1 / (1 + threshold)),
        band_high=axis.at(1 + threshold),
        one=axis.at(1.0),
        beyond=axis.beyond(interval.ratio),
    )


def _row_notes(variant: Variant) -> tuple[str, ...]:
    """Return what the fix of a variant does; of several only the rules."""
    messages = dict.fromkeys(fix.message for fix in variant.fixes if fix.message)
    if len(messages) == 1:
        # The name of the variant has the rule, and the line where there is one.
        rows = [str(fix.row) for fix in variant.fixes if fix.row and not variant.name.endswith(f":{fix.row}")]
        return (next(iter(messages)) + _lines(rows),)
    return (", ".join(codes),) if (codes := dict.fromkeys(fix.code for fix in variant.fixes)) else ()


def _fix_notes(variant: Variant) -> tuple[str, ...]:
    """Return what a variant's fixes do, each once, with the lines that they touch."""
    places: dict[tuple[str, str], list[str]] = {}
    brought_up: list[str] = []
    several = len({fix.file for fix in variant.fixes if fix.row}) > 1
    for fix in variant.fixes:
        if not fix.row:
            brought_up.append(fix.code)
            continue
        known = places.setdefault((fix.code, fix.message), [])
        known.append(f"{fix.file}:{fix.row}" if several else str(fix.row))
    told = [f"{code}: {message}{_lines(rows)}" for (code, message), rows in places.items()]
    if brought_up:
        told.append(f"{', '.join(dict.fromkeys(brought_up))}: only after the other fixes")
    return tuple(told)


def _lines(rows: list[str]) -> str:
    rows = list(dict.fromkeys(rows))
    return f" (line{'s' if len(rows) > 1 else ''} {', '.join(rows)})" if rows else ""


# --- one measurement -------------------------------------------------------------------------------------


def _chapters(results: Results) -> Iterator[Chapter]:
    bench = results.command == "bench"
    number = 0
    for subject, members in groupby(results.measurements, key=lambda item: item.subject):
        parts: list[Part] = []
        summary = []
        for measurement in members:
            number += 1
            part = _part(measurement, number, bench=bench)
            alike = next((old for old in parts if old.patches == part.patches and not old.repeated), None)
            parts.append(_without_patches(part, alike.title) if alike is not None and part.patches else part)
            head = words.headline(measurement)
            if head is not None:
                interval = words.speedup(head)
                told = f"{measurement.size or ''} {head.verdict.value}".strip()
                summary.append(told + (f" {words.ratio(interval)}" if interval else ""))
        yield Chapter(subject, rule_name(subject) if bench else "", ", ".join(summary), tuple(parts))


def _without_patches(part: Part, earlier: str) -> Part:
    return replace(part, patches=(), repeated=earlier)


def _part(measurement: Measurement, number: int, *, bench: bool) -> Part:
    compared = words.compared(measurement)
    names = [ORIGINAL, *(item.variant for item in compared)]
    examined = {item.variant for item in measurement.examinations}
    timed = [ORIGINAL, AGAIN, *names[1:]]
    head = words.headline(measurement)
    drawings = (
        figures.step_times(measurement, timed, f"t{number}"),
        figures.course(measurement, head.variant if head else AGAIN, f"c{number}"),
        figures.memory(measurement, names, f"m{number}"),
        *(
            figures.losses(measurement, name, f"l{number}v{place}")
            for place, name in enumerate(names)
            if name != ORIGINAL
        ),
    )
    file = _file(measurement, bench=bench)
    listing, elsewhere, added = _waits(measurement, head, file)
    return Part(
        anchor=f"m{number}",
        title=measurement.size or measurement.subject,
        verdicts=tuple(_row(number, measurement, item, None) for item in compared),
        remarks=tuple(
            remark
            for remark in _remarks(measurement, bench=bench)
            # A case has one verdict, and its reason stands beside it.
            if not (bench and compared and remark.text == words.sentence(compared[0].reason))
        ),
        drawings=tuple(drawing for drawing in drawings if drawing is not None),
        timelines=_timelines(measurement),
        allocated=tuple(_allocated(measurement)),
        noise=_tied(_noise(measurement)),
        figures=tuple(_figures(measurement, name) for name in names if name in examined),
        file=file,
        listing=tuple(listing),
        elsewhere=tuple(elsewhere),
        added=tuple(added),
        watched=words.evidence(measurement, ORIGINAL).syncs is not None,
        syncs=tuple(_sync_groups(measurement)),
        sync_summary=_sync_summary(measurement),
        patches=tuple(
            Patch(
                _patch_anchor(number, variant),
                words.label(measurement, variant.name),
                _fix_notes(variant),
                tuple(parse_diff(variant.diff)),
            )
            for variant in _in_order(measurement)
            if variant.diff.strip()
        ),
        method=tuple(_method(measurement)),
    )


def _patch_anchor(number: int, variant: Variant) -> str:
    """Return where the diff of a variant is found; empty if it has none."""
    return f"m{number}-{_UNFIT.sub('-', variant.name)}" if variant.diff.strip() else ""


_UNFIT = re.compile(r"\W+")


def _remarks(measurement: Measurement, *, bench: bool) -> Iterator[Remark]:
    """Yield what there is to say, with the variants as people call them."""
    for remark in words.remarks(measurement):
        # In a bench case there is one fixed program, and its name would tell nothing.
        names = [name for name in remark.variants if not (bench and name == TOGETHER)]
        yield replace(remark, variants=tuple(words.label(measurement, name) for name in names))
    # A case is about one thing, and not about the memory of a program.
    for text in () if bench else words.memory_advice(measurement):
        yield Remark(words.About.NOTE, (), words.sentence(text))


def _in_order(measurement: Measurement) -> list[Variant]:
    return sorted(measurement.variants, key=lambda variant: variant.name != TOGETHER)


def _file(measurement: Measurement, *, bench: bool) -> str:
    """Return the file that ``source`` is the text of, as the lines call it."""
    if not bench:
        return measurement.subject
    named = [fix.file for variant in measurement.variants for fix in variant.fixes]
    named += [name for variant in measurement.variants for name in changed_files(variant.diff)]
    named += [
        line.file for line in words.evidence(measurement, ORIGINAL).sync_lines if line.file[:1] not in "/<"
    ]
    return named[0] if named else measurement.subject


def _waits(
    measurement: Measurement, head: Comparison | None, file: str
) -> tuple[list[SourceLine], list[Line], list[Line]]:
    """Return the annotated source, the waits in other files, and those that only the fixed program has."""
    lines = words.evidence(measurement, ORIGINAL).sync_lines
    here = [line for line in lines if line.file == file]
    elsewhere = [line for line in lines if line.file != file]
    after: list[tuple[int, Line]] | None = None
    added = []
    variant = _variant(measurement, head.variant if head else TOGETHER)
    if head is not None and words.evidence(measurement, head.variant).syncs is not None:
        diff = parse_diff(variant.diff)
        after = []
        for line in words.evidence(measurement, head.variant).sync_lines:
            if line.file != file:
                continue
            row = to_original(diff, file, line.row)
            if row is None:
                added.append(line)
            else:
                after.append((row, line))
    fixes = [fix for fix in variant.fixes if fix.file == file]
    return annotate(measurement.source, fixes, here, after), elsewhere, added


def _sync_groups(measurement: Measurement) -> Iterator[SyncGroup]:
    if measurement.syncs is None:
        return
    titles = {
        SyncStatus.CONFIRMED: "Confirmed: predicted and observed",
        SyncStatus.REACHED: "Predicted, but reached without waiting",
        SyncStatus.NOT_REACHED: "Predicted, but not reached",
        SyncStatus.NOT_SEEN: "Predicted, but not observed",
        SyncStatus.NOT_PREDICTED: "Observed, but not predicted",
    }
    for status, title in titles.items():
        rows = tuple(row for row in measurement.syncs.rows if row.status is status)
        if rows:
            yield SyncGroup(title, rows)


def _sync_summary(measurement: Measurement) -> str:
    if measurement.syncs is None:
        return ""
    steps = measurement.syncs.steps
    told = [f"{_plural(steps, 'step')} of the original {'was' if steps == 1 else 'were'} observed."]
    if measurement.syncs.phases:
        told.append(words.watched(measurement.syncs))
    told += map(words.sentence, measurement.syncs.missing)
    if not measurement.syncs.rows and not measurement.syncs.missing:
        told.append("No line was predicted or observed to synchronize with the device.")
    return " ".join(told)


def _noise(measurement: Measurement) -> str:
    noise = measurement.noise
    if noise is None:
        return ""
    floor = (
        f"Noise floor: the original compared with a copy of itself gave {words.ratio(noise.wall)} "
        f"({words.span(noise.wall)})"
    )
    told = f"{floor}; differences below {words.percent(noise.threshold)} count as the same."
    return told if noise.fit else f"{floor}, which is too far from 1, or too uncertain, for a verdict."


_LANES = {
    TrackKind.LINES: "lines of the step",
    TrackKind.CHANGED: "lines that fixes change",
    TrackKind.OPERATORS: "torch operators",
    TrackKind.LAUNCHES: "launches",
    TrackKind.WAITS: "waits for the device",
    TrackKind.KERNELS: "kernels",
    TrackKind.COPIES: "copies",
}


def _allocated(measurement: Measurement) -> Iterator[Allocated]:
    peak = words.evidence(measurement, ORIGINAL).peak_allocated or 1
    for line in words.memory_lines(measurement, ORIGINAL):
        share = words.percent(line.size / peak)
        yield Allocated(words.allocated_by(line), line.text, words.size(line.size), share, line.count)


def _timelines(measurement: Measurement) -> Timelines | None:
    """Return what is drawn of the recorded steps; None where nobody asked for that."""
    if not measurement.timelines:
        return None
    recorded = [item for item in measurement.timelines if not item.missing]
    missing = [
        words.sentence(f"{words.label(measurement, item.variant)}: {item.missing}")
        for item in measurement.timelines
        if item.missing
    ]
    ends = [item.seconds for item in recorded]
    ends += [part.end for item in recorded for track in item.tracks for part in track.slices]
    whole = max(ends, default=0.0)
    if whole <= 0:
        return Timelines((), (), tuple(missing))
    return Timelines(
        tuple(_step(measurement, item, whole) for item in recorded),
        tuple(clock(whole)),
        tuple(missing),
    )


def _step(measurement: Measurement, timeline: Timeline, whole: float) -> Step:
    told = f"{words.seconds(timeline.seconds)} on the host"
    device = [track.busy for track in timeline.tracks if track.kind is TrackKind.KERNELS]
    waits = [track.busy for track in timeline.tracks if track.kind is TrackKind.WAITS]
    told += f", {words.seconds(waits[0])} of it waiting" if waits else ""
    told += f"; kernels run for {words.seconds(max(device))}" if device else ""
    return Step(
        f"{words.label(measurement, timeline.variant)}, step {timeline.step}",
        told,
        round(1000 * timeline.seconds / whole, 1),
        tuple(_lane(track, whole) for track in timeline.tracks),
    )


def _lane(track: Track, whole: float) -> Lane:
    title = _LANES[track.kind]
    return Lane(
        track.kind.name.lower(),
        f"{title}, {track.detail}" if track.detail else title,
        words.seconds(track.busy),
        tuple(_bar(part, track.kind, whole) for part in track.slices),
        tuple((item.name, words.seconds(item.seconds), item.count) for item in track.longest),
    )


def _bar(part: Slice, kind: TrackKind, whole: float) -> Bar:
    length = part.end - part.begin
    width = max(round(1000 * length / whole, 1), _THINNEST)
    several = f" and {part.count - 1} more" if part.count > 1 else ""
    return Bar(
        round(1000 * part.begin / whole, 1),
        width,
        round(max(part.busy / length, _FAINTEST), 2) if length > 0 else 1.0,
        f"{part.name}{several}: {words.seconds(part.busy)} at {words.seconds(part.begin)}",
        _PLACE.sub("", part.name) if kind is TrackKind.LINES and width >= _LABELLED else "",
    )


_PLACE = re.compile(r"^.*?:\d+: ")
"""What stands before the text of a line."""
_THINNEST = 1.0
"""The least width of a bar, in per mille,"""
_FAINTEST = 0.35
"""and its least strength;"""
_LABELLED = 100.0
"""and from which width on there is room for a line of code, or its beginning."""


def _figures(measurement: Measurement, name: str) -> Figures:
    seen = words.evidence(measurement, name)
    examination = measurement.examination(name)
    comparison = measurement.comparison(name)
    same = examination.sameness if examination else None
    checked = same is not None and same.agreement not in (Agreement.UNCHECKED, Agreement.FAILED)

    def shown(value: float | None, how: object = words.count) -> str:
        return words.NOTHING if value is None or not callable(how) else str(how(value))

    pairs = words.NOTHING
    if comparison is not None and comparison.pairs:
        pairs = str(comparison.pairs)
        if comparison.discarded:
            pairs += f" ({_plural(comparison.discarded, 'block')} discarded)"
    device = comparison.device if comparison is not None and words.speedup(comparison) else None
    return Figures(
        title=words.label(measurement, name),
        step=words.step(measurement, name) or words.NOTHING,
        device=_interval(device),
        pairs=pairs,
        compared=_plural(same.steps, "step") if same and checked and name != ORIGINAL else words.NOTHING,
        largest=(f"{same.largest:.1e}" if same.largest else "0")
        if same and checked and name != ORIGINAL
        else words.NOTHING,
        allocated=shown(seen.peak_allocated, words.size),
        reserved=shown(seen.peak_reserved, words.size),
        syncs=shown(seen.syncs),
        kernels=shown(seen.kernels),
        to_device=shown(seen.copies_to_device),
        to_host=shown(seen.copies_to_host),
        startup=shown(examination.startup_seconds if examination else None, words.seconds),
    )


def _interval(interval: Interval | None) -> str:
    return words.NOTHING if interval is None else f"{words.ratio(interval)} ({words.span(interval)})"


def _method(measurement: Measurement) -> Iterator[str]:
    """Yield how this measurement was done, in numbers."""
    blocks = measurement.blocks
    examination = measurement.examination(ORIGINAL)
    if examination is not None and examination.found_by:
        yield f"Steps are {examination.found_by}."
    if measurement.ranks > 1:
        yield (
            f"The program has {measurement.ranks} ranks, each in its own process. Their blocks start "
            "together and take as long as the slowest of them; the peak memory is the highest of any "
            "rank, and every rank's results were compared. Syncs, kernels and collectives are those of "
            "rank 0."
        )
    if not blocks:
        return
    steps = sorted({block.steps for block in blocks})
    lengths = sorted(block.wall for block in blocks)
    variants = len({block.variant for block in blocks})
    each = str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    processes = _plural(variants, "process", "es")
    yield (
        f"{_plural(measurement.replicates, 'replicate')}, each with {processes} and "
        f"{_plural(measurement.warmup_steps, 'step')} of warm-up; {_plural(len(blocks), 'block')} of "
        f"{each} step{'s' if each != '1' else ''} "
        f"(median {words.seconds(lengths[len(lengths) // 2])} a block)."
    )
    discarded = [block for block in blocks if block.discarded is not None]
    if discarded:
        yield f"Excluded from the statistics: {_plural(len(discarded), 'block')} on a throttled clock."


# --- the run ---------------------------------------------------------------------------------------------


def _machine(machine: Machine) -> Iterator[tuple[str, str]]:
    if machine.gpu:
        memory = f", {words.size(machine.gpu_memory)}" if machine.gpu_memory else ""
        count = f"{machine.gpus} × " if machine.gpus > 1 else ""
        yield "GPU", f"{count}{machine.gpu}{memory}"
    else:
        yield "Device", machine.device
    for name, value in (
        ("Driver", machine.driver),
        ("CUDA", machine.cuda),
        ("torch", machine.torch),
        ("Python", machine.python),
        ("Processor", machine.processor),
        ("Cores", str(machine.cores) if machine.cores else None),
        ("Memory", words.size(machine.memory) if machine.memory else None),
        ("Platform", machine.platform),
    ):
        if value:
            yield name, value
    yield from sorted(machine.packages.items())


def _run(results: Results) -> Iterator[tuple[str, str]]:
    commit = f" ({results.commit[:12]})" if results.commit else ""
    yield "torchlint", f"{results.torchlint}{commit}"
    yield "Started", results.started.replace("T", " ").replace("+00:00", " UTC")
    yield "Took", words.duration(results.seconds)
    if words.awake(results):
        yield "While timing", words.awake(results)


# --- small things ----------------------------------------------------------------------------------------


def _variant(measurement: Measurement, name: str) -> Variant:
    return next((item for item in measurement.variants if item.name == name), Variant(name))


def _plural(count: int, noun: str, ending: str = "s") -> str:
    return f"{count} {noun}{'' if count == 1 else ending}"
