"""What was measured, as documentation: from the results that are kept under ``benchmarks/results``.

``bench-*.json`` are what ``torchlint bench --json`` wrote, ``verify-*.json`` what ``torchlint verify --json``
wrote for the programs of ``fixtures/programs``. On the page of everything that was measured, of several
measurements on the same kind of machine the latest that told something counts, and the others show how well
it can be repeated. README.md, the pages of the rules and the shipped figures have all machines pooled.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from torchlint import effects
from torchlint.dev import ROOT, pooling
from torchlint.effects import Effect
from torchlint.registry import rule_name
from torchlint.verify import judge, results, stats, words
from torchlint.verify.results import (
    ORIGINAL,
    Agreement,
    Comparison,
    Interval,
    Measurement,
    Results,
    Verdict,
)

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "measured.md"
DATA = ROOT / "torchlint" / "effects.json"

T = TypeVar("T")

_SIZES = ("small", "medium", "large")
_NOTICED = 0.02
"""The least relative difference of peak memory that is worth a word."""

_METHOD = (
    "A speed-up is time before over time after, with its 95 % interval: 2 means half the time. FASTER and "
    "SLOWER mean that the whole interval is outside the noise threshold (3 % or more), SAME that it is "
    "not and lies within ±5 %, and UNCLEAR that it is neither."
)
_POOLED = (
    "Where a case was measured on several machines, its interval covers the differences between them; where "
    "it was measured once, it is widened by what such runs differ by elsewhere."
)
_NO_RATIO = (*words.WORKED, Verdict.UNFIT, Verdict.REJECTED, Verdict.UNREACHED, Verdict.UNMEASURED)
_FIGURES = "results | speed-up | per step | peak memory | syncs per step | kernels per step |"
_WIDTH = 110
_EVIDENCE = {
    "peak_memory": "peak_allocated",
    "syncs": "syncs",
    "kernels": "kernels",
    "collectives": "collectives",
}
"""The keys of the shipped figures, and the evidence that they come from."""


@dataclass(frozen=True)
class Case:
    """One rule at one size, or one program, on one machine, or pooled from ``runs`` on several."""

    run: Results
    measurement: Measurement
    runs: tuple[Case, ...] = ()

    @property
    def machine(self) -> str:
        """The kind of machine, by which measurements may be compared."""
        return _everywhere([self])

    @property
    def kind(self) -> tuple[str, int]:
        """The kind of device and the number of ranks, within which machines are pooled."""
        return self.measurement.device or self.run.machine.device, self.measurement.ranks

    @property
    def date(self) -> str:
        """The day of the measurement."""
        return self.run.started[:10]

    @property
    def key(self) -> tuple[str, str, str]:
        """What two measurements of the same thing share."""
        return self.machine, self.measurement.subject, self.measurement.size or ""


def load(command: str) -> list[Case]:
    """Return all that ``command`` has measured, the oldest first; nothing if no results are kept."""
    runs = [results.load(path) for path in sorted(RESULTS.glob(f"{command}-*.json"))]
    runs.sort(key=lambda run: run.started)
    return [Case(run, measurement) for run in runs for measurement in run.measurements]


def generate() -> Mapping[Path, str]:
    """Return the page of everything measured, and the data that is shipped;
    nothing if there is nothing to tell.
    """
    bench, programs = load("bench"), load("verify")
    if not bench and not programs:
        return {}
    parts = [f"# Measured\n\n{_paragraph(_METHOD)}"]
    for machine in _machines(bench):
        parts.append(_bench_section(machine, _latest(case for case in bench if case.machine == machine)))
    parts += _repetitions(bench)
    for machine in _machines(programs):
        cases = _latest(case for case in programs if case.machine == machine)
        parts.append(_programs_section(machine, cases))
    parts += _programs_again(programs)
    parts += _elsewhere(programs)
    return {PAGE: "\n".join(parts), DATA: _dump(_effects(bench))}


def summary() -> str:
    """Return the part of README.md: each rule at each size,
    pooled over all machines with a device of one kind.
    """
    kinds = _kinds(pooled(load("bench")))
    if not kinds:
        return ""
    kind = max(kinds, key=lambda kind: len(kinds[kind]))
    cases = kinds[kind]
    several = [found for other, found in kinds.items() if other[0] == kind[0] and other != kind]
    return (
        "\n## What the fixes are worth\n\n"
        + _paragraph(
            f"Measured on {_everywhere(cases)}: `torchlint bench` runs a small program with the pattern of "
            f"each rule, before and after torchlint's own fix. {_METHOD} {_POOLED}"
        )
        + f"\n{_table(cases)}\n"
        + "".join(
            _paragraph(f"On {_everywhere(found)}, where the slowest rank counts: {_conclusion(found)}")
            + f"\n{_table(found)}\n"
            for found in several
        )
        + _paragraph(
            f"{_conclusion(cases)} [docs/measured.md](docs/measured.md) has each machine, step times, "
            "memory, device activity and whole programs; `benchmarks/results` has the raw data."
        )
        + "\n"
    )


def section(cases: Sequence[Case], code: str) -> str:
    """Return what was measured of a rule, for its page;
    empty if nothing was. ``cases`` are those of ``bench``.
    """
    return effects.section(code, of(cases, code))


def of(cases: Sequence[Case], code: str) -> Sequence[Effect]:
    """Return what was measured of a rule; ``cases`` are those of ``bench``."""
    return _effects(cases).get(code, ())


# --- several machines ------------------------------------------------------------------------------------


def pooled(cases: Sequence[Case]) -> list[Case]:
    """Return one case for each rule and size: the latest that told something,
    with the times of all runs of it.

    Runs are pooled by `torchlint.dev.pooling` if they ran the same program on the same kind of device, with
    as many ranks. The verdict is that of the pooled interval, by the threshold of the quietest run.
    """
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        _, subject, size = case.key
        groups.setdefault((str(case.kind), subject, size), []).append(case)
    factor = _scale(cases)
    return [_pool(found, factor) for _, found in _sorted(groups)]


def contradicted(path: Path) -> list[str]:
    """Return the published figures that another run of ``torchlint bench --json`` contradicts, a line each.

    Args:
        path: the results file of that run. One that is published is held against the others.

    Raises:
        ValueError: if it has nothing in common with what is published.
    """
    run = results.load(path)
    kept = [case for case in load("bench") if case.run != run]
    factor = _scale(kept)
    published = {_program(case): case for case in pooled(kept) if _timed(case)}
    cases = [Case(run, measurement) for measurement in run.measurements]
    common = [case for case in cases if _timed(case) and _program(case) in published]
    if not common:
        raise ValueError(f"{path}: no case was timed that has a published figure")
    found = []
    for case in common:
        old, new = _interval(published[_program(case)]), _interval(case)
        if pooling.contradicts(new, old, factor):
            name = f"{case.measurement.subject} {case.measurement.size or 'case'}"
            found.append(f"{name}: published {_ratio(old)}, here {_ratio(new)}")
    return found


def _program(case: Case) -> tuple[object, ...]:
    """Return what two runs of the same thing on the same kind of device share."""
    measurement = case.measurement
    return *case.kind, measurement.subject, measurement.size, measurement.source


def _scale(cases: Iterable[Case]) -> float:
    """Return how much too small the standard errors of single runs are,
    by all cases that ran more than once.
    """
    repeated: dict[object, list[Interval]] = {}
    for case in cases:
        if _timed(case):
            repeated.setdefault((case.machine, _program(case)), []).append(_interval(case))
    return pooling.scale(repeated.values())


def _pool(found: Sequence[Case], factor: float) -> Case:
    latest = _last(found)
    same = [case for case in found if _timed(case) and case.measurement.source == latest.measurement.source]
    head = words.headline(latest.measurement)
    if head is None or head.verdict is Verdict.REJECTED or not same:
        return latest
    times = pooling.pooled([_interval(case) for case in same], factor)
    threshold = min(_threshold(case) for case in same)
    compared = replace(head, wall=times, verdict=judge.verdict(times, threshold))
    # What is shown beside the ratio, such as step times, is of a run that has one.
    shown = latest if _timed(latest) else same[-1]
    ours = [compared if item.variant == head.variant else item for item in shown.measurement.comparisons]
    measurement = replace(shown.measurement, comparisons=tuple(ours))
    return Case(shown.run, measurement, tuple(same))


def _threshold(case: Case) -> float:
    noise = case.measurement.noise
    return judge.THRESHOLD if noise is None else noise.threshold


def _timed(case: Case) -> bool:
    head = words.headline(case.measurement)
    return head is not None and words.speedup(head) is not None


def _kinds(cases: Iterable[Case]) -> dict[tuple[str, int], list[Case]]:
    """Return the cases by the kind of device and the number of ranks."""
    found: dict[tuple[str, int], list[Case]] = {}
    for case in cases:
        found.setdefault(case.kind, []).append(case)
    return found


def _everywhere(cases: Iterable[Case]) -> str:
    """Return what the cases ran on, each name once: ``NVIDIA H200 and NVIDIA H100, torch 2.11.0``."""
    runs = [run for case in cases for run in case.runs or (case,)]
    names = dict.fromkeys(words.where(case.run.machine, case.measurement) for case in runs)
    releases = dict.fromkeys(case.run.machine.torch for case in runs)
    return f"{' and '.join(names)}, torch {' and '.join(releases)}"


# --- the figures that are shipped ------------------------------------------------------------------------


def _effects(cases: Sequence[Case]) -> dict[str, list[Effect]]:
    """Return what `torchlint.effects` has to tell, by rule."""
    found: dict[str, list[Effect]] = {}
    for same in _kinds(pooled(cases)).values():
        for case in same:
            found.setdefault(case.measurement.subject, []).append(_effect(case))
    return dict(sorted(found.items()))


def _effect(case: Case) -> Effect:
    measurement = case.measurement
    head = words.headline(measurement)
    interval = None if head is None else words.speedup(head)
    variant = "" if head is None else head.variant
    examination = measurement.examination(variant)
    timed = interval is not None
    return {
        "machine": case.machine,
        "date": case.date,
        "size": measurement.size,
        "verdict": None if head is None else head.verdict.value,
        "speedup": _figures_of(vars(interval)) if interval is not None else None,
        "results": None if examination is None else examination.sameness.agreement.value,
        "seconds": _pair(
            *(words.step_seconds(measurement, name) if timed else None for name in (ORIGINAL, variant))
        ),
        **{
            key: _pair(*(getattr(words.evidence(measurement, name), what) for name in (ORIGINAL, variant)))
            for key, what in _EVIDENCE.items()
        },
        "told": _told(case),
    }


def _pair(before: float | None, after: float | None) -> Mapping[str, float] | None:
    return None if before is None or after is None else _figures_of({"before": before, "after": after})


def _figures_of(values: Mapping[str, float]) -> Mapping[str, float]:
    """Return it with four figures, more than any of these measurements is good for;
    whole numbers as they are.
    """
    return {key: value if isinstance(value, int) else float(f"{value:.4g}") for key, value in values.items()}


def _dump(found: Mapping[str, Sequence[Effect]]) -> str:
    """Return one measurement a line, so that a change can be read."""
    rules = (
        f"{json.dumps(code)}: [\n" + ",\n".join(json.dumps(effect) for effect in measured) + "\n]"
        for code, measured in found.items()
    )
    return "{\n" + ",\n".join(rules) + "\n}\n"


# --- tables ----------------------------------------------------------------------------------------------


def _table(cases: Sequence[Case]) -> str:
    sizes = _sizes(cases)
    head = "".join(f" {size or 'speed-up'} |" for size in sizes)
    rows = f"| code | name |{head} peak memory |\n|---|---|{'---|' * len(sizes)}---|\n"
    for code, found in _by_subject(cases).items():
        by_size = {case.measurement.size or "": case for case in found}
        cells = "".join(
            f" {_verdict(by_size[size]) if size in by_size else words.NOTHING} |" for size in sizes
        )
        rows += f"| [{code}](docs/rules/{code}.md) | {rule_name(code)} |{cells} {_memory_of(found)} |\n"
    return rows


def _bench_section(machine: str, cases: Sequence[Case]) -> str:
    rows = ""
    for case in cases:
        code, size = case.measurement.subject, _cell(case.measurement.size or words.NOTHING)
        rows += f"| [{code}](rules/{code}.md) | {size} {_figures(case, words.headline(case.measurement))}\n"
    return (
        f"## The rules, on {machine}\n\n{_paragraph(_versions(cases))}\n"
        f"| code | size | {_FIGURES}\n|---|---|---|---|---|---|---|---|\n{rows}\n"
        f"{_paragraph(_conclusion(cases))}"
    )


def _programs_section(machine: str, cases: Sequence[Case]) -> str:
    rows = ""
    for case in cases:
        for number, comparison in enumerate(words.compared(case.measurement)):
            program = _cell(f"`{case.measurement.subject}`") if number == 0 else ""
            variant = _cell(words.label(case.measurement, comparison.variant))
            rows += f"| {program} | {variant} {_figures(case, comparison)}\n"
    told = (
        "The programs of `fixtures/programs`, measured by `torchlint verify` with all fixes together and "
        "with each alone. They run in seconds, with tiny models, short epochs and data in memory, so that "
        "they are limited by the host, and starting workers in each epoch costs more than it saves. "
        f"{_versions(cases)} {_explained(cases)}"
    )
    return (
        f"## Whole programs, on {machine}\n\n{_paragraph(told)}\n"
        f"| program | fixes | {_FIGURES}\n|---|---|---|---|---|---|---|---|\n{rows}"
    )


def _figures(case: Case, comparison: Comparison | None) -> str:
    """Return the cells that every table of measurements ends with."""
    measurement = case.measurement
    if comparison is None:
        return f"| {words.NOTHING} " * 6 + "|"
    name = comparison.variant
    examination = measurement.examination(name)
    agreement = examination.sameness.agreement if examination else Agreement.UNCHECKED
    timed = words.speedup(comparison) is not None
    cells = (
        agreement.value,
        _comparison(comparison),
        words.times(measurement, name) if timed else words.NOTHING,
        words.memory(measurement, name),
        words.counted(measurement, name, "syncs"),
        words.counted(measurement, name, "kernels"),
    )
    return "".join(f"| {_cell(cell)} " for cell in cells) + "|"


def _repetitions(cases: Sequence[Case]) -> Iterator[str]:
    """Yield what was measured more than once, to show whether it can be repeated."""
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        head = words.headline(case.measurement)
        if head is not None and words.speedup(head) is not None:
            groups.setdefault(case.key, []).append(case)
    rows = ""
    agreeing = compared = 0
    for (_, subject, size), found in _sorted(groups):
        if len(found) < 2:
            continue
        *earlier, last = found
        for case in earlier:
            first, second = _interval(case), _interval(last)
            agree = first.low <= second.high and second.low <= first.high
            compared += 1
            agreeing += agree
            name = f"[{subject}](rules/{subject}.md) | {_cell(size or words.NOTHING)}"
            both = f"{_ratio(first)}, {case.date} | {_ratio(second)}, {last.date}"
            rows += f"| {name} | {both} | {'yes' if agree else 'no'} |\n"
    if rows:
        told = (
            "The same cases in separate runs on machines of the same kind. The intervals overlap in "
            f"{agreeing} of {compared} comparisons."
        )
        yield (
            f"## Measured again\n\n{_paragraph(told)}\n"
            "| code | size | earlier | latest | intervals overlap |\n|---|---|---|---|---|\n"
            f"{rows}"
        )


def _elsewhere(programs: Sequence[Case]) -> Iterator[str]:
    """Yield whether programs that were measured on two kinds of machines have the same figures there."""
    groups: dict[str, list[Case]] = {}
    for case in _latest(programs):
        groups.setdefault(case.measurement.subject, []).append(case)
    both = {name: found for name, found in groups.items() if len(found) > 1}
    counts, rows = _overlaps({name: (found[0], found[1]) for name, found in both.items()})
    if both:
        one, other, *_ = next(iter(both.values()))
        told = f"Measured on both kinds of machines: {', '.join(f'`{name}`' for name in both)}. {counts}"
        table = (
            f"\nApart:\n\n| program | fixes | of | {one.machine} | {other.machine} |\n"
            f"|---|---|---|---|---|\n{rows}"
        )
        yield f"\n## Whole programs on two machines\n\n{_paragraph(told)}{table if rows else ''}"


def _programs_again(programs: Sequence[Case]) -> Iterator[str]:
    """Yield whether programs that were measured twice on machines of one kind have the same figures there."""
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in programs:
        groups.setdefault(case.key, []).append(case)
    pairs = {
        found[-1].measurement.subject: (found[-2], found[-1]) for found in groups.values() if len(found) > 1
    }
    if pairs:
        counts, rows = _overlaps(dict(sorted(pairs.items())))
        names = ", ".join(f"`{name}`" for name in sorted(pairs))
        table = f"\nApart:\n\n| program | fixes | of | earlier | latest |\n|---|---|---|---|---|\n{rows}"
        told = f"Measured on two machines of the same kind: {names}. {counts}"
        yield f"\n## Whole programs, measured again\n\n{_paragraph(told)}{table if rows else ''}"


def _overlaps(pairs: Mapping[str, tuple[Case, Case]]) -> tuple[str, str]:
    """Return how often both measurements of a program agree, and the rows of a table of where they do not."""
    rows = ""
    agreeing, compared = dict.fromkeys(("time", "work"), 0), dict.fromkeys(("time", "work"), 0)
    for name, (one, other) in pairs.items():
        for comparison in words.compared(one.measurement):
            first, second = (_intervals(case, comparison.variant) for case in (one, other))
            for what in sorted(first.keys() & second.keys()):
                agree = first[what].low <= second[what].high and second[what].low <= first[what].high
                compared[what] += 1
                agreeing[what] += agree
                if not agree:
                    label = _cell(words.label(one.measurement, comparison.variant))
                    figures = f"{_ratio(first[what])} | {_ratio(second[what])}"
                    rows += f"| `{name}` | {label} | {what} | {figures} |\n"
    told = (
        f"Of each fix, the intervals of the speed-up overlap in {agreeing['time']} of {compared['time']} "
        f"cases, those of the time of kernels and copies in {agreeing['work']} of {compared['work']}."
    )
    return told, rows


def _intervals(case: Case, variant: str) -> Mapping[str, Interval]:
    """Return the ratios of a variant of a program: of the time of a step, and of what the device works."""
    measurement = case.measurement
    comparison = measurement.comparison(variant)
    found = {
        # Beside a verdict on the device's work, no ratio of the time is kept.
        "time": stats.interval(measurement.blocks, ORIGINAL, variant),
        "work": None if comparison is None else comparison.work,
    }
    return {what: interval for what, interval in found.items() if interval is not None}


# --- sentences -------------------------------------------------------------------------------------------


def _conclusion(cases: Sequence[Case]) -> str:
    """Return which rules gain something, and which do not."""
    faster, slower, leaner, same = [], [], [], []
    for code, found in _by_subject(cases).items():
        heads = [head for case in found if (head := words.headline(case.measurement)) is not None]
        verdicts = {head.verdict for head in heads}
        kept = [head for head in heads if head.verdict is not Verdict.REJECTED]
        saves = any(head.memory is not None and head.memory >= 1 + _NOTICED for head in kept)
        if Verdict.SLOWER in verdicts:
            slower.append(code)
        if Verdict.FASTER in verdicts:
            faster.append(code)
        elif saves:
            leaner.append(code)
        elif verdicts == {Verdict.SAME}:
            same.append(code)
    told = [f"Faster at some size: {', '.join(faster)}." if faster else "No fix is faster at any size."]
    if slower:
        told.append(f"Slower at some size: {', '.join(slower)}.")
    if leaner:
        told.append(f"No faster, but with less memory: {', '.join(leaner)}.")
    if same:
        told.append(f"The same time and the same memory at every size: {', '.join(same)}.")
    return " ".join(filter(None, (*told, _explained(cases))))


def _explained(cases: Sequence[Case]) -> str:
    """Return what the verdicts without a ratio mean, if there are any."""
    found = {item.verdict for case in cases for item in words.compared(case.measurement)}
    return " ".join(
        f"{verdict.value}: {words.VERDICTS[verdict]}" for verdict in _NO_RATIO if verdict in found
    )


def _told(case: Case) -> str:
    """Return the outcome of one case in a line."""
    measurement = case.measurement
    head = words.headline(measurement)
    if head is None:
        return "not measured"
    parts = [_comparison(head)]
    examination = measurement.examination(head.variant)
    if examination is not None and examination.sameness.agreement is not Agreement.UNCHECKED:
        parts.append(f"results {examination.sameness.agreement.value}")
    for name, text in (
        ("peak memory", words.memory(measurement, head.variant)),
        ("synchronizing calls per step", words.counted(measurement, head.variant, "syncs")),
        ("kernels per step", words.counted(measurement, head.variant, "kernels")),
        ("collectives per step", words.counted(measurement, head.variant, "collectives")),
    ):
        if "→" in text:
            parts.append(f"{name} {text}")
    return "; ".join(parts)


def _verdict(case: Case) -> str:
    head = words.headline(case.measurement)
    return words.NOTHING if head is None else _comparison(head)


def _comparison(comparison: Comparison) -> str:
    interval = comparison.work if comparison.verdict in words.WORKED else words.speedup(comparison)
    return comparison.verdict.value + (f" {_ratio(interval)}" if interval else "")


def _ratio(interval: Interval) -> str:
    return f"{words.ratio(interval)} ({words.span(interval)})"


def _interval(case: Case) -> Interval:
    head = words.headline(case.measurement)
    assert head is not None and head.wall is not None
    return head.wall


def _memory_of(cases: Sequence[Case]) -> str:
    """Return where the peak memory differs, by size."""
    told, seen = [], False
    for case in cases:
        head = words.headline(case.measurement)
        if head is None or head.memory is None:
            continue
        seen = True
        if abs(head.memory - 1) >= _NOTICED:
            size = f"{case.measurement.size}: " if case.measurement.size else ""
            told.append(f"{size}{words.memory(case.measurement, head.variant)}")
    return "; ".join(told) or ("same" if seen else words.NOTHING)


# --- small things ----------------------------------------------------------------------------------------


def _machines(cases: Iterable[Case]) -> list[str]:
    return list(dict.fromkeys(case.machine for case in cases))


def _latest(cases: Iterable[Case]) -> list[Case]:
    """Return the last measurement of each thing that told something, sorted by subject and size.

    What a machine was unfit for leaves an earlier measurement in its place.
    """
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault(case.key, []).append(case)
    return [_last(found) for _, found in _sorted(groups)]


def _last(cases: Sequence[Case]) -> Case:
    """Return the last of several measurements of one thing that told something, else the last."""
    return next((case for case in reversed(cases) if _tells(case)), cases[-1])


def _tells(case: Case) -> bool:
    head = words.headline(case.measurement)
    return head is not None and head.verdict not in (Verdict.UNFIT, Verdict.UNREACHED, Verdict.UNMEASURED)


def _sorted(groups: Mapping[tuple[str, str, str], T]) -> list[tuple[tuple[str, str, str], T]]:
    return sorted(groups.items(), key=lambda item: (item[0][1], _rank(item[0][2]), item[0]))


def _rank(size: str) -> int:
    return _SIZES.index(size) if size in _SIZES else len(_SIZES)


def _sizes(cases: Iterable[Case]) -> list[str]:
    return sorted(dict.fromkeys(case.measurement.size or "" for case in cases), key=_rank)


def _by_subject(cases: Iterable[Case]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.measurement.subject, []).append(case)
    return found


def _versions(cases: Sequence[Case]) -> str:
    """Return a sentence that says with what the cases were measured."""
    machine = cases[-1].run.machine
    parts = [
        f"CUDA {machine.cuda}" if machine.cuda else "",
        f"driver {machine.driver}" if machine.driver else "",
        words.awake(cases[-1].run),
    ]
    days = ", ".join(sorted({case.date for case in cases}))
    return ", ".join(filter(None, (*parts, f"Python {machine.python}", f"measured {days}"))) + "."


def _paragraph(text: str) -> str:
    return textwrap.fill(text.strip(), _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
