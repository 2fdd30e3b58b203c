"""What was measured, as documentation: from the results that are kept under ``benchmarks/results``.

``bench-*.json`` are what ``torchlint bench --json`` wrote, ``verify-*.json`` what ``torchlint verify --json``
wrote for the programs of ``fixtures/programs``. Of what was measured more than once on the same kind of
machine the latest that told something counts, and the others show how well it can be repeated.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torchlint import effects
from torchlint.dev import ROOT
from torchlint.effects import Effect
from torchlint.registry import rule_name
from torchlint.verify import results, words
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
    "inside, and UNCLEAR that it is neither."
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
    """One rule at one size, or one program, on one machine."""

    run: Results
    measurement: Measurement

    @property
    def machine(self) -> str:
        """The kind of machine, by which measurements may be compared."""
        name = words.where(self.run.machine, self.measurement)
        return f"{name}, torch {self.run.machine.torch}"

    @property
    def date(self) -> str:
        """The day of the measurement."""
        return self.run.started[:10]

    @property
    def key(self) -> tuple[str, str, str]:
        """What two measurements of the same thing share."""
        return self.machine, self.measurement.subject, self.measurement.size or ""


def load(command: str) -> list[Case]:
    """All that ``command`` has measured, the oldest first; nothing if no results are kept."""
    runs = [results.load(path) for path in sorted(RESULTS.glob(f"{command}-*.json"))]
    runs.sort(key=lambda run: run.started)
    return [Case(run, measurement) for run in runs for measurement in run.measurements]


def generate() -> Mapping[Path, str]:
    """The page of everything measured, and the data that is shipped; nothing if there is nothing to tell."""
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
    return {PAGE: "\n".join(parts), DATA: _dump(_effects(bench))}


def summary() -> str:
    """The part of README.md: each rule at each size, on the machine that measured most."""
    bench = load("bench")
    if not bench:
        return ""
    machine = max(_machines(bench), key=lambda name: len(_latest(c for c in bench if c.machine == name)))
    cases = _latest(case for case in bench if case.machine == machine)
    return (
        "\n## What the fixes are worth\n\n"
        + _paragraph(
            f"Measured on {machine}: `torchlint bench` runs a small program with the pattern of each rule, "
            f"before and after torchlint's own fix. {_METHOD}"
        )
        + f"\n{_table(cases)}\n"
        + _ranks_summary(bench, machine)
        + _paragraph(
            f"{_conclusion(cases)} [docs/measured.md](docs/measured.md) has step times, memory, "
            "device activity and whole programs; `benchmarks/results` has the raw data."
        )
        + "\n"
    )


def _ranks_summary(cases: Sequence[Case], machine: str) -> str:
    """The rules whose programs have several ranks, on as many devices of the kind of ``machine``."""
    parts = []
    for several in _machines(cases):
        found = _latest(case for case in cases if case.machine == several)
        if found[0].measurement.ranks > 1 and several.endswith(f" × {machine}"):
            told = f"On {several}, where the slowest rank counts: {_conclusion(found)}"
            parts.append(f"{_paragraph(told)}\n{_table(found)}\n")
    return "".join(parts)


def section(cases: Sequence[Case], code: str) -> str:
    """What was measured of a rule, for its page; empty if nothing was. ``cases`` are those of ``bench``."""
    return effects.section(code, of(cases, code))


def of(cases: Sequence[Case], code: str) -> Sequence[Effect]:
    """What was measured of a rule; ``cases`` are those of ``bench``."""
    return _effects(cases).get(code, ())


# --- the figures that are shipped ------------------------------------------------------------------------


def _effects(cases: Sequence[Case]) -> dict[str, list[Effect]]:
    """What `torchlint.effects` has to tell, by rule."""
    found: dict[str, list[Effect]] = {}
    latest = _latest(cases)
    for machine in _machines(cases):
        for case in latest:
            if case.machine == machine:
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
    """With four figures, more than any of these measurements is good for; whole numbers as they are."""
    return {key: value if isinstance(value, int) else float(f"{value:.4g}") for key, value in values.items()}


def _dump(found: Mapping[str, Sequence[Effect]]) -> str:
    """One measurement a line, so that a change can be read."""
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
    """The cells that every table of measurements ends with."""
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
    """What was measured more than once, to show whether it can be repeated."""
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


# --- sentences -------------------------------------------------------------------------------------------


def _conclusion(cases: Sequence[Case]) -> str:
    """Which rules gain something, and which do not."""
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
    """What the verdicts without a ratio mean, if there are any."""
    found = {item.verdict for case in cases for item in words.compared(case.measurement)}
    return " ".join(
        f"{verdict.value}: {words.VERDICTS[verdict]}" for verdict in _NO_RATIO if verdict in found
    )


def _told(case: Case) -> str:
    """The outcome of one case in a line."""
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
    """Where the peak memory differs, by size."""
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
    """The last measurement of each thing that told something, sorted by subject and size.

    What a machine was unfit for leaves an earlier measurement in its place.
    """
    found: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        if case.key not in found or _tells(case) or not _tells(found[case.key]):
            found[case.key] = case
    return [case for _, case in _sorted(found)]


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
    """With what the cases were measured, a sentence."""
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
