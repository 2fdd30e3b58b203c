"""How measurements are put into words and figures: shared by the terminal, the HTML report and the docs."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from torchlint.verify import judge
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Allocation,
    Comparison,
    Evidence,
    Interval,
    Machine,
    Measurement,
    Results,
    Roles,
    Sameness,
    SyncReport,
    SyncRow,
    SyncStatus,
    Verdict,
)

VERDICTS: Mapping[Verdict, str] = {
    Verdict.FASTER: "The whole interval is above the noise threshold: the fixed program takes less time.",
    Verdict.SAME: (
        "The whole interval is within ±5 %, and reaches below the noise threshold: the fix makes no "
        "difference to the time here."
    ),
    Verdict.SLOWER: "The whole interval is below the noise threshold: the fixed program takes more time.",
    Verdict.LESS_WORK: (
        "The time of a step tells nothing, but its kernels and copies take less time on the device: the "
        "whole interval is above the noise threshold."
    ),
    Verdict.SAME_WORK: (
        "The time of a step tells nothing, but its kernels and copies take the same time on the device: the "
        "whole interval is within ±5 %."
    ),
    Verdict.MORE_WORK: (
        "The time of a step tells nothing, but its kernels and copies take more time on the device: the "
        "whole interval is below the noise threshold."
    ),
    Verdict.UNCLEAR: (
        "The interval crosses the noise threshold, or is too wide: more steps or a quieter machine are "
        "needed for a verdict."
    ),
    Verdict.UNFIT: (
        "The machine does not reproduce the time of the original: timed against a copy of "
        "itself, the program differed, so no speed-up measured here can be trusted."
    ),
    Verdict.REJECTED: "The fix changes the results, or the fixed program fails, so it was not timed.",
    Verdict.UNREACHED: "The lines that the fix changes did not run, so it was not timed.",
    Verdict.UNMEASURED: (
        "Nothing was timed: the budget ran out, the program ended, or the run was interrupted."
    ),
}
"""What each verdict says."""

AGREEMENTS: Mapping[Agreement, str] = {
    Agreement.IDENTICAL: "All compared numbers are bitwise identical.",
    Agreement.CLOSE: (
        "The numbers agree within the tolerance, or the original differs from itself by as much."
    ),
    Agreement.TRAINS: (
        "The numbers differ by how they are rounded; trained from several seeds, the loss differs from the "
        "original's by less than from seed to seed."
    ),
    Agreement.STREAM_MOVED: (
        "Random numbers come from another generator; shapes, dtypes, devices and moments agree."
    ),
    Agreement.DIFFERENT: "The numbers differ by more than the tolerance.",
    Agreement.FAILED: "The program failed, or never reached a step.",
    Agreement.UNCHECKED: "The results were not compared.",
}
"""What each outcome of the comparison of results says."""

TIMED = (Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR)
"""The verdicts with which a speed-up may be shown."""

WORKED = (Verdict.LESS_WORK, Verdict.SAME_WORK, Verdict.MORE_WORK)
"""Those that are about the time that the device works."""

PERIODIC = 0.2
"""The share by which what only some steps do has to change to be worth a word: there are few of them."""

ACTIVATIONS, WORKSPACE = "activations", "workspace and inputs"
REST, CACHE = "activations and workspace", "cache and fragmentation"
"""The parts of the memory that no tensor of the program's modules and optimizers accounts for; the third
stands for the first two where they cannot be told apart."""

CONSIDERABLE = 0.1
"""The share of the peak from which on it is worth a word what would make it lower."""

LITTLE = 0.02
"""The share of the peak below which it is not told which line allocated it."""

NOTHING = "–"
"""Stands where there is no figure."""


class About(enum.Enum):
    """What a remark is about."""

    NOISE = "noise"
    REASON = "verdict"
    RESULTS = "results"
    FAILURE = "failure"
    MISSING = "unavailable"
    NOTE = "note"
    DROPPED = "skipped"


@dataclass(frozen=True)
class Remark:
    """A sentence (a failure may have several lines) that belongs to a measurement."""

    about: About
    variants: tuple[str, ...]
    """The names of the variants that it is about; none if it is about all."""
    text: str


def remarks(measurement: Measurement) -> list[Remark]:
    """Return what there is to say beside the figures,
    each sentence once with all variants of which it is true.
    """
    found: dict[str, Remark] = {}

    def say(about: About, variant: str, text: str) -> None:
        if not text.strip():
            return
        text = sentence(text)
        known = found.setdefault(text, Remark(about, (variant,) if variant else (), text))
        if known.variants and variant not in known.variants:
            found[text] = replace(known, variants=(*known.variants, variant))

    if measurement.noise is not None:
        say(About.NOISE, "", measurement.noise.reason)
    for comparison in compared(measurement):
        examination = measurement.examination(comparison.variant)
        # The others say in words what the interval says in figures.
        if comparison.verdict in WORKED and comparison.work is not None:
            told = f"{comparison.reason}: {ratio(comparison.work)} ({span(comparison.work)})"
            say(About.REASON, comparison.variant, told)
        elif comparison.verdict not in (Verdict.FASTER, Verdict.SAME, Verdict.SLOWER):
            say(About.REASON, comparison.variant, comparison.reason)
        same = Sameness(Agreement.UNCHECKED) if examination is None else examination.sameness
        if same.agreement not in (Agreement.IDENTICAL, Agreement.UNCHECKED):
            say(About.RESULTS, comparison.variant, same.reason)
    for examination in measurement.examinations:
        say(About.FAILURE, examination.variant, examination.failure or "")
    # What kept waits from being seen is said where they would stand.
    elsewhere = measurement.syncs.missing if measurement.syncs is not None else ()
    for examination in measurement.examinations:
        for text in examination.evidence.missing:
            say(About.MISSING, "", "" if text in elsewhere else text)
    say(About.NOTE, "", periodic(measurement))
    for text in measurement.notes:
        say(About.NOTE, "", text)
    for text in measurement.dropped:
        say(About.DROPPED, "", text)
    return list(found.values())


def sentence(text: str) -> str:
    """Return a clause with a capital and a full stop;
    a text of several lines ends with what a program printed.
    """
    text = text.strip()
    if "\n" not in text and text and text[-1] not in ".!?:…":
        text += "."
    first = text.split(maxsplit=1)[0] if text else ""
    # A name, a path or a rule's code keeps its spelling.
    return text[:1].upper() + text[1:] if first.rstrip(",;:").isalpha() and first.islower() else text


def compared(measurement: Measurement) -> list[Comparison]:
    """Return the comparisons of the fixed variants, all fixes together first, the others in their order."""
    order = {variant.name: number for number, variant in enumerate(measurement.variants)}
    found = [item for item in measurement.comparisons if item.variant not in (ORIGINAL, AGAIN)]
    return sorted(found, key=lambda item: (item.variant != TOGETHER, order.get(item.variant, len(order))))


def headline(measurement: Measurement) -> Comparison | None:
    """Return the comparison that stands for the measurement: all fixes together, else the first."""
    return next(iter(compared(measurement)), None)


def what_to_do(measurement: Measurement) -> str:
    """Return what the result says to do, in a line: which fixes to apply, what that gains,
    and what of the others.

    Empty where no fix was to be measured.
    """
    found = compared(measurement)
    if not found:
        return "" if measurement.syncs is not None else "There is no fix to measure."
    worth = sorted(judge.proven(measurement))
    alone = [item for item in found if item.variant != TOGETHER]
    rest = [item for item in alone or found if not worth or (alone and item.variant not in worth)]
    if worth:
        told = listed(worth)
        if len(worth) == 1 and alone:
            told += _gain(measurement, worth[0], ": {}")
        elif all(item.verdict in (Verdict.SAME, Verdict.UNREACHED) for item in rest):
            # They were timed together with the others, which make no difference.
            told += _gain(measurement, TOGETHER, ": {}")
        else:
            told = listed([name + _gain(measurement, name, " ({})") for name in worth])
        return f"Apply {told}. {_others(measurement, rest)}"
    head = found[0]
    interval = speedup(head)
    if alone and head.variant == TOGETHER and head.verdict is Verdict.FASTER and interval is not None:
        told = f"All fixes together run {ratio(interval)} times as fast, but no single one is clearly faster."
        return f"{told} {_others(measurement, rest)}"
    if all(item.verdict in (Verdict.UNFIT, Verdict.UNMEASURED) for item in found):
        return "Nothing could be measured."
    if all(item.verdict in (Verdict.SAME, Verdict.UNREACHED) for item in found):
        return "Apply nothing: no fix makes a difference here."
    if all(item.verdict in (Verdict.SAME, Verdict.SAME_WORK, Verdict.UNREACHED) for item in found):
        return "Apply nothing: no fix makes a difference that could be seen here."
    rest = rest if any(item.verdict is not Verdict.UNREACHED for item in rest) else found
    return f"Apply nothing yet. {_others(measurement, rest)}"


def _gain(measurement: Measurement, variant: str, form: str) -> str:
    """Return what a variant is better by, put into ``form``; empty if there is no figure."""
    comparison = measurement.comparison(variant)
    gains = []
    if comparison is not None and comparison.verdict is Verdict.FASTER and comparison.wall is not None:
        gains.append(f"{ratio(comparison.wall)} times as fast")
    before, after = (evidence(measurement, name).peak_allocated for name in (ORIGINAL, variant))
    if before and after and before >= judge.LESS_MEMORY * after:
        gains.append(f"{size(before - after)} less memory")
    return form.format(", ".join(gains)) if gains else ""


def _others(measurement: Measurement, rest: Sequence[Comparison]) -> str:
    """Return what there is to say of the fixes that are not to be applied."""
    unreached = {item.variant for item in measurement.comparisons if item.verdict is Verdict.UNREACHED}
    codes = {
        item.name: listed([code for code in item.codes if code not in unreached] or item.codes)
        for item in measurement.variants
        if item.name == TOGETHER
    }

    def named(*verdicts: Verdict) -> list[str]:
        return [codes.get(item.variant, item.variant) for item in rest if item.verdict in verdicts]

    said = []
    if names := named(Verdict.FASTER):
        said.append(f"{listed(names)} {_verb(names, 'runs', 'run')} faster, but with other random numbers.")
    if names := named(Verdict.SLOWER):
        said.append(f"{listed(names)} {_verb(names, 'makes', 'make')} it slower.")
    if names := named(Verdict.LESS_WORK):
        said.append(f"{listed(names)} {_verb(names, 'leaves', 'leave')} the device less to do.")
    if names := named(Verdict.MORE_WORK):
        said.append(f"{listed(names)} {_verb(names, 'gives', 'give')} the device more to do.")
    if names := named(Verdict.REJECTED):
        said.append(f"{listed(names)} {_verb(names, 'does', 'do')} not keep the results.")
    if names := named(Verdict.UNCLEAR, Verdict.UNFIT, Verdict.UNMEASURED):
        said.append(f"Nothing can be said yet of {listed(names)}.")
    return " ".join(said) or "Nothing else matters here."


def listed(names: Sequence[str]) -> str:
    """Return ``TL101, TL202 and TL302``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "the fixes"


def _verb(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 and " and " not in names[0] else several


def speedup(comparison: Comparison) -> Interval | None:
    """Return the speed-up, if the verdict lets it be shown."""
    return comparison.wall if comparison.verdict in TIMED else None


def evidence(measurement: Measurement, variant: str) -> Evidence:
    """Return what the device did in a step of a variant; an empty one if nobody looked."""
    examination = measurement.examination(variant)
    return Evidence() if examination is None else examination.evidence


def step_seconds(measurement: Measurement, variant: str) -> float | None:
    """Return the median time of a step over the blocks of a variant."""
    times = [
        block.wall / block.steps
        for block in measurement.blocks
        if block.variant == variant and block.steps > 0 and block.discarded is None
    ]
    return median(times) if times else None


def step_is(measurement: Measurement) -> str:
    """Return what was recognised as a step, in how many steps, and how long one takes;
    empty if nobody looked.
    """
    original = measurement.examination(ORIGINAL)
    if original is None or not original.found_by:
        return ""
    kinds = {"optimizer steps": "an optimizer step", "forward passes": "a forward pass"}
    kind = kinds.get(original.found_by, original.found_by.replace("calls of", "a call of"))
    watched = f"{original.steps} {'was' if original.steps == 1 else 'were'} watched"
    many = f"the program has {original.steps}" if original.ended else watched
    each = "" if original.step_seconds is None else f", {seconds(original.step_seconds)} each"
    told = f"A step is {kind}; {many}{each}."
    found = measurement.periodic
    if found is None or not found.seconds.get(ORIGINAL):
        return told
    where = f" ({found.file}:{found.row})" if found.file else ""
    return f"{told} Every {ordinal(found.every)} takes {seconds(found.seconds[ORIGINAL])} more{where}."


def periodic(measurement: Measurement) -> str:
    """Return how the variants change what only some steps do; empty where they do not."""
    found = measurement.periodic
    if found is None or not (own := found.seconds.get(ORIGINAL)):
        return ""
    told = [
        f"{label(measurement, name)} {change(seconds(own), seconds(taken))}"
        for name, taken in found.seconds.items()
        if name not in (ORIGINAL, AGAIN) and abs(taken - own) > PERIODIC * own
    ]
    return f"every {ordinal(found.every)} step takes more: {', '.join(told)}" if told else ""


def step(measurement: Measurement, variant: str) -> str | None:
    """Return how long a step takes; None if it was not timed."""
    taken = step_seconds(measurement, variant)
    return None if taken is None else seconds(taken)


def times(measurement: Measurement, variant: str) -> str:
    """Return how a variant changes the time of a step."""
    return change(step(measurement, ORIGINAL), step(measurement, variant))


def memory(measurement: Measurement, variant: str) -> str:
    """Return how a variant changes the peak memory."""
    before, after = (evidence(measurement, name).peak_allocated for name in (ORIGINAL, variant))
    return NOTHING if before is None or after is None else change(size(before), size(after))


def memory_parts(measurement: Measurement, variant: str) -> list[tuple[str, int]]:
    """Return what the memory of a step is for, with the bytes; none if nobody looked.

    Where the peak is known, all of it, and what the allocator reserves beyond it.
    """
    seen = evidence(measurement, variant)
    roles = seen.roles
    if roles is None:
        return []
    parts = [
        ("weights", roles.weights),
        ("gradients", roles.gradients),
        ("optimizer state", roles.states),
        ("buffers", roles.buffers),
    ]
    if seen.peak_allocated is not None:
        rest = max(0, seen.peak_allocated - sum(size for _, size in parts))
        if roles.activations is None:
            parts.append((REST, rest))
        else:
            kept = min(roles.activations, rest)
            parts += [(ACTIVATIONS, kept), (WORKSPACE, rest - kept)]
        if seen.peak_reserved is not None:
            parts.append((CACHE, max(0, seen.peak_reserved - seen.peak_allocated)))
    return parts


def memory_told(measurement: Measurement, variant: str) -> str:
    """Return the same in a sentence, for what follows a name; empty if there is nothing to tell."""
    parts = memory_parts(measurement, variant)
    roles = evidence(measurement, variant).roles
    if roles is None or not any(value for _, value in parts):
        return ""
    known = bool(roles.when)
    told = ", ".join(f"{name} {size(value)}" for name, value in parts if value)
    head = f"memory at the peak of a step ({roles.when})" if known else "memory at the end of a step"
    return f"{head}: {told}." if known else f"{head}: {told}; activations are not seen here."


def memory_lines(measurement: Measurement, variant: str) -> list[Allocation]:
    """Return what the lines of a step allocated of its peak, without what is too little for a word."""
    seen = evidence(measurement, variant)
    if seen.roles is None or not seen.peak_allocated:
        return []
    return [line for line in seen.roles.lines if line.size >= LITTLE * seen.peak_allocated]


def allocated_by(line: Allocation) -> str:
    """Return the place of a line, or what stands for it where there is none."""
    return f"{line.file}:{line.row}" if line.file else "the backward pass and libraries"


def memory_lines_told(measurement: Measurement, variant: str) -> str:
    """Return the same in a sentence; empty if there is nothing to tell."""
    lines = memory_lines(measurement, variant)
    told = ", ".join(f"{allocated_by(line)} {size(line.size)}" for line in lines)
    return f"allocated in the step and alive at its peak: {told}." if told else ""


def memory_advice(measurement: Measurement) -> list[str]:
    """Return what would make the original's peak lower, a sentence each, where that is much of it.

    Where a fix does it that was measured, also what became of the peak.
    """
    seen = evidence(measurement, ORIGINAL)
    roles = seen.roles
    if roles is None or not seen.peak_allocated:
        return []
    parts = dict(memory_parts(measurement, ORIGINAL))
    rest = parts.get(REST) or parts[ACTIVATIONS] + parts[WORKSPACE]
    return [
        f"{text.format(size(value))} ({percent(value / seen.peak_allocated)} of the peak)"
        f"{_tried(measurement, code) if code else ''}"
        for code, text, value in _spared(roles, rest, measurement.ranks)
        if value >= CONSIDERABLE * seen.peak_allocated
    ]


def _spared(roles: Roles, rest: int, ranks: int) -> list[tuple[str, str, int]]:
    """Return what spares how many bytes, with the rule whose fix does it, if any."""
    # In an optimizer's step, and without one, nothing is kept for a backward pass.
    kept = rest if roles.differentiates else 0
    activations = kept if roles.activations is None else min(roles.activations, kept)
    # With one GPU, what a second one would be worth.
    ranks = max(ranks, 2)
    replicated = roles.weights + roles.gradients + roles.states
    trains = roles.differentiates or roles.states > 0
    return [
        (
            "TL302",
            "`zero_grad(set_to_none=True)` before the forward pass would drop gradients of up to {}",
            roles.droppable,
        ),
        ("", "the optimizer's state in 8 bits would take about {} less", roles.spared_8bit),
        ("", "the state of Adafactor, which trains differently, would take {} less", roles.spared_factored),
        ("", "checkpointing of activations could spare {} at most", activations),
        (
            "",
            "activations in bfloat16, with autocast, could take {} less at most",
            activations // 2 if roles.full_precision else 0,
        ),
        ("", "half the batch, with gradients accumulated over two, could spare {} at most", kept // 2),
        (
            "",
            f"sharding weights, gradients and states over {ranks} GPUs (FSDP) could take {{}} less on each",
            replicated * (ranks - 1) // ranks if trains and not roles.sharded else 0,
        ),
    ]


def _tried(measurement: Measurement, code: str) -> str:
    """Return how high the peak was with the fixes of a rule alone; empty where they were not measured."""
    before = evidence(measurement, ORIGINAL).peak_allocated
    peaks = [
        after
        for variant in measurement.variants
        if set(variant.codes) == {code}
        and (after := evidence(measurement, variant.name).peak_allocated) is not None
    ]
    if before is None or not peaks:
        return ""
    spared = before - min(peaks)
    became = f"makes the peak {size(spared)} lower" if spared > 0 else "does not make the peak lower"
    return f"; the fix of {code}, tried here, {became}"


def counted(measurement: Measurement, variant: str, what: str) -> str:
    """Return how a variant changes a number a step that the evidence has, such as ``kernels``."""
    before, after = (getattr(evidence(measurement, name), what) for name in (ORIGINAL, variant))
    return NOTHING if before is None or after is None else change(count(before), count(after))


def label(measurement: Measurement, variant: str) -> str:
    """Return a variant's name as people read it."""
    if variant == TOGETHER:
        codes = {code for item in measurement.variants if item.name == TOGETHER for code in item.codes}
        return "all fixes" if len(codes) > 1 else "fixed"
    return {ORIGINAL: "original", AGAIN: "original again"}.get(variant, variant)


def hardware(machine: Machine) -> str:
    """Return ``NVIDIA H200``, or what stands for it without a GPU."""
    if machine.gpu:
        return machine.gpu
    return (machine.processor or "CPU") if machine.device == "cpu" else machine.device


def where(machine: Machine, measurement: Measurement) -> str:
    """Return what a measurement ran on: ``NVIDIA H200``, ``2 × NVIDIA H200`` or ``2 ranks on Xeon``."""
    if _on_processor(machine, measurement):
        name = machine.processor or "CPU"
        return name if measurement.ranks == 1 else f"{measurement.ranks} ranks on {name}"
    name = hardware(machine)
    return name if measurement.ranks == 1 else f"{measurement.ranks} × {name}"


def briefly(machine: Machine, measurement: Measurement) -> str:
    """Return the same for a column: ``2 × H200``, ``2 × CPU``."""
    on_processor = _on_processor(machine, measurement)
    name = "CPU" if on_processor else hardware(machine).removeprefix("NVIDIA ")
    return name if measurement.ranks == 1 else f"{measurement.ranks} × {name}"


def everywhere(results: Results) -> str:
    """Return what all measurements ran on, if that is one thing; else what the machine has."""
    found = {where(results.machine, item) for item in results.measurements}
    return found.pop() if len(found) == 1 else hardware(results.machine)


def ranked(results: Results) -> bool:
    """Return whether any measurement is of a program with several ranks."""
    return any(item.ranks > 1 for item in results.measurements)


def _on_processor(machine: Machine, measurement: Measurement) -> bool:
    return (measurement.device or machine.device) == "cpu"


def awake(results: Results) -> str:
    """Return what was done against sleeping processors, in a few words; empty if nothing was."""
    counts = {item.awake for item in results.measurements if item.blocks}
    if not any(counts):
        return ""
    text = f"{max(counts)} processors kept awake"
    return text if all(counts) else f"{text} for steps on one processor"


# --- figures ---------------------------------------------------------------------------------------------


def decimals(interval: Interval) -> int:
    """Return how many decimals of an interval mean something."""
    if interval.ratio >= 9.995:
        return 1 if interval.ratio < 99.95 else 0
    return 3 if interval.high - interval.low < 0.02 else 2


def ratio(interval: Interval) -> str:
    """Return ``1.32``."""
    return f"{interval.ratio:.{decimals(interval)}f}"


def span(interval: Interval) -> str:
    """Return ``1.28–1.36``."""
    places = decimals(interval)
    return f"{interval.low:.{places}f}–{interval.high:.{places}f}"


def percent(fraction: float) -> str:
    """Return ``3 %``, ``0.4 %``."""
    value = abs(fraction) * 100
    digits = 0 if value >= 10 or math.isclose(value, round(value), abs_tol=0.005) else 1
    return f"{value:.{digits}f} %"


def seconds(value: float) -> str:
    """Return ``12.4 ms``: three figures and the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.9995:
            return f"{_three(value / size)} {unit}"
    return "0 s" if value == 0 else f"{_three(value / 1e-9)} ns"


def duration(value: float) -> str:
    """Return ``4 min 12 s``: how long a command took."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s" if value >= 9.5 else f"{value:.1f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _three(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def size(value: float) -> str:
    """Return ``2.81 GiB``: three figures and the unit that fits."""
    unit, scale = _unit(value)
    return f"{_three(value / scale)} {unit}" if scale > 1 else f"{value:.0f} {unit}"


def _unit(value: float) -> tuple[str, int]:
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if value >= 1024**power * 0.9995:
            return unit, 1024**power
    return "B", 1


def count(value: float) -> str:
    """Return ``2``, ``0.25``, ``1204``: how often something happens in a step."""
    if value >= 100 or math.isclose(value, round(value), abs_tol=0.005):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}".rstrip("0")


def sync_figures(row: SyncRow) -> list[str]:
    """Return how often a line waited, how long, and in what, a few words each."""
    figures = []
    if row.per_step and (not row.phases or any(name.startswith("training") for name in row.phases)):
        figures.append(f"{count(row.per_step)} per step")
        if row.seconds is not None:
            figures.append(f"{seconds(row.seconds)} per step spent waiting")
    elif row.per_step:
        figures.append(f"{row.calls} times")
        if row.seconds is not None:
            figures.append(f"{seconds(row.seconds / row.per_step)} spent waiting each time")
    if row.what:
        figures.append(row.what)
    return figures


def sync_counts(report: SyncReport) -> str:
    """Return how many lines there are of each status."""
    counts = {status: sum(row.status is status for row in report.rows) for status in SyncStatus}
    told = [f"{counts[SyncStatus.CONFIRMED]} confirmed"]
    told += [
        f"{counts[status]} {text}"
        for status, text in (
            (SyncStatus.REACHED, "reached without waiting"),
            (SyncStatus.NOT_REACHED, "predicted but not reached"),
            (SyncStatus.NOT_SEEN, "predicted but not observed"),
        )
        if counts[status]
    ]
    return f"Lines: {', '.join(told)}, {counts[SyncStatus.NOT_PREDICTED]} observed but not predicted."


def watched(report: SyncReport) -> str:
    """Return what the program did while it was watched, and for how long."""
    told = []
    for phase in report.phases:
        calls = f" ({phase.calls} calls of a model)" if phase.calls > 1 else ""
        told.append(f"{phase.name} {seconds(phase.seconds)}{calls}")
    end = "to the end of the program" if report.ended else "until the time was over"
    return f"Watched {end}: {', '.join(told)}."


def ordinal(number: int) -> str:
    """Return ``2nd``, ``50th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


def change(before: str | None, after: str | None, arrow: str = " → ") -> str:
    """Return ``3.10 → 2.81 GiB``: the unit once if it is the same, one figure if both are."""
    if before is None and after is None:
        return NOTHING
    if before == after and before is not None:
        return before
    if before is None or after is None:
        return f"{before or '?'}{arrow}{after or '?'}"
    number, _, unit = before.partition(" ")
    if unit and after.endswith(f" {unit}"):
        return f"{number}{arrow}{after}"
    return f"{before}{arrow}{after}"
