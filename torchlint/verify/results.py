"""What a measurement says: plain data, kept whole as JSON, from which every figure is made.

Times are in seconds, memory in bytes, ratios are time before over time after (1.25 means that the fixed
program takes 1/1.25 of the time). A ``Results`` file is what ``--json`` writes and ``--html`` draws.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
"""The version of the JSON form; a reader refuses any other."""

ORIGINAL = "original"
"""The name of the variant that the user wrote."""

AGAIN = "again"
"""The name of the second copy of the original: what differs between the two is noise."""

TOGETHER = "together"
"""The name of the variant that has all fixes."""


class Verdict(enum.Enum):
    """What the times say of a fix, or why they say nothing."""

    FASTER = "FASTER"
    SAME = "SAME"
    SLOWER = "SLOWER"
    LESS_WORK = "LESS DEVICE WORK"
    """The time of a step tells nothing, but the device works for less time in it, by the profiler."""
    SAME_WORK = "SAME DEVICE WORK"
    MORE_WORK = "MORE DEVICE WORK"
    UNCLEAR = "UNCLEAR"
    UNFIT = "UNFIT"
    """The machine does not reproduce the original's own time: no number is to be trusted."""
    REJECTED = "REJECTED"
    """The fix changes the results, or the fixed program fails: its time is of no interest."""
    UNREACHED = "NOT REACHED"
    """Nothing that the fix changes ran in the steps that were watched, so it was not timed."""
    UNMEASURED = "UNMEASURED"
    """Nothing was timed: the budget, the program's end or the user came first."""


class Agreement(enum.Enum):
    """How the results of a variant compare with the original's."""

    IDENTICAL = "identical"
    CLOSE = "close"
    """Within the tolerance, or no further off than the original is from itself."""
    TRAINS = "same training"
    """The numbers differ by how they are rounded, and the losses by less than from seed to seed."""
    STREAM_MOVED = "stream moved"
    """Random numbers come from another generator: shapes, dtypes, devices and moments agree."""
    DIFFERENT = "different"
    FAILED = "failed"
    """The variant ended with an error, or never reached a step."""
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Machine:
    """Where the measurement ran; None for what could not be found out."""

    device: str
    """The torch device type that was measured: ``cuda``, ``mps``, ``xpu`` or ``cpu``."""
    gpu: str | None = None
    gpu_memory: int | None = None
    gpus: int = 0
    """How many GPUs a program sees."""
    driver: str | None = None
    cuda: str | None = None
    torch: str = ""
    python: str = ""
    platform: str = ""
    processor: str | None = None
    cores: int = 0
    memory: int | None = None
    packages: dict[str, str] = field(default_factory=dict)
    """Versions of further packages that decide about speed, where they are installed."""


@dataclass(frozen=True)
class AppliedFix:
    """One fix that a variant has and the original has not."""

    code: str
    name: str
    message: str
    """The imperative sentence of the fix."""
    applicability: str
    file: str
    """Relative to the project's folder, with forward slashes."""
    row: int
    """The line of the finding in the original file, from 1; 0 if only an earlier fix brought it up."""


@dataclass(frozen=True)
class Variant:
    """One form of the program."""

    name: str
    """``ORIGINAL``, ``AGAIN``, ``TOGETHER``, or the rule whose fixes alone it has (``TL202``), with the line
    behind a colon where each place is measured by itself (``TL202:41``)."""
    codes: tuple[str, ...] = ()
    fixes: tuple[AppliedFix, ...] = ()
    diff: str = ""
    """A unified diff against the original."""


@dataclass(frozen=True)
class Interval:
    """A ratio of times with its 95 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval, relative to the ratio."""
        return (self.high - self.low) / (2 * self.ratio)


@dataclass(frozen=True)
class Block:
    """Some steps in a row of one variant, timed as one."""

    variant: str
    replicate: int
    round: int
    """Counts from 0 within a replicate. All variants run the same steps in the same round."""
    position: int
    """The place of the block within its round."""
    steps: int
    wall: float
    """Host time of the whole block, the device synchronised before and after it."""
    device: float | None = None
    """Time between two events on the device's current stream around the block."""
    clock: int | None = None
    """The SM clock in MHz just after the block."""
    discarded: str | None = None
    """Why the statistics leave the block out (a throttled clock); None if they use it."""
    since: int = 0
    """The number of the first step of the block, its untimed lead included; 0 where nobody counted."""
    until: int = 0
    """The number of the last."""
    times: tuple[float, ...] = ()
    """How long each timed step took: between two events on the device, on the host where there are none."""
    slow: tuple[tuple[int, float], ...] = ()
    """Steps between these that took much longer than the others, and how much, in seconds of the host."""


@dataclass(frozen=True)
class Sameness:
    """What the comparison of results found."""

    agreement: Agreement
    steps: int = 0
    """The number of steps whose results were compared."""
    largest: float = 0.0
    """The largest relative difference, scaled as the judge's docstring says."""
    noise: float = 0.0
    """The same for the original against itself, started a rounding error away."""
    tolerance: float = 0.0
    where: str = ""
    """What differs most: ``loss at step 3``, ``gradient of features.0.weight``."""
    reason: str = ""
    """One sentence for people."""


@dataclass(frozen=True)
class Line:
    """What happened at one line of the user's program, or of a library that it called from there."""

    file: str
    """Relative to the project's folder where it lies in it."""
    row: int
    per_step: float
    """How often, on average."""
    seconds: float | None = None
    """Host time per step spent waiting there; None where it was not timed."""
    what: str = ""
    """The operation, such as ``aten::item`` or ``cudaStreamSynchronize``."""
    calls: int = 0
    """How often in all, where the whole program was watched."""
    phases: tuple[str, ...] = ()
    """What the program did meanwhile, most calls first, where it was watched as a whole."""


@dataclass(frozen=True)
class Allocation:
    """What one line allocated in a step, of what is alive at its peak."""

    file: str
    """Relative to the project's folder; empty for what no line of the project asked for."""
    row: int
    size: int
    count: int
    text: str = ""
    """The line itself, without its indentation."""


@dataclass(frozen=True)
class Roles:
    """What the memory of a step is for, in bytes: at its peak, or at its end where no peak is known."""

    weights: int = 0
    gradients: int = 0
    """Those that were there at the peak."""
    states: int = 0
    """Of the optimizers."""
    buffers: int = 0
    when: str = ""
    """What the program did at the peak: ``forward pass``, ``backward pass`` or ``optimizer step``; empty
    where no peak is known."""
    differentiates: bool = False
    """Whether the peak is in a step with a backward pass, and before its end."""
    droppable: int = 0
    """Gradients at the peak that were left from the step before, and were not used any more."""
    spared_8bit: int = 0
    """By how much the states of Adam would be smaller in 8 bits."""
    spared_factored: int = 0
    """By how much they would be smaller as Adafactor keeps them."""
    activations: int | None = None
    """What was kept for a backward pass at the peak; None where no history is kept."""
    full_precision: bool = False
    """Whether all parameters are float32, and nothing was seen to run under autocast."""
    sharded: bool = False
    """Whether each rank holds a part of the parameters."""
    lines: tuple[Allocation, ...] = ()
    """What was allocated since the step began, most bytes first; none where no history is kept."""


@dataclass(frozen=True)
class Evidence:
    """What the device did in an average step; None for what could not be seen."""

    steps: int = 0
    peak_allocated: int | None = None
    peak_reserved: int | None = None
    roles: Roles | None = None
    """What the memory was for."""
    syncs: float | None = None
    kernels: float | None = None
    copies_to_device: float | None = None
    copies_to_host: float | None = None
    collectives: float | None = None
    """Operations between the ranks of a program, such as all-reduces, as one rank takes part in them."""
    sync_lines: tuple[Line, ...] = ()
    """Most calls first."""
    missing: tuple[str, ...] = ()
    """What could not be seen, and why, a sentence each."""


@dataclass(frozen=True)
class Examination:
    """One untimed run of one variant: its results and what the device did."""

    variant: str
    found_by: str = ""
    """What a step is: ``optimizer steps``, ``forward passes``, ``calls of module:function``, ``case``."""
    steps: int = 0
    ended: bool = False
    """Whether the program came to its own end while it was examined."""
    step_seconds: float | None = None
    """A rough time of one step, for the plan."""
    startup_seconds: float | None = None
    """From the start of the process to its first step."""
    busy: float | None = None
    """How many processors the threads of the process keep busy during a step, on the average."""
    sameness: Sameness = Sameness(Agreement.UNCHECKED)
    evidence: Evidence = Evidence()
    failure: str | None = None
    """Why the run ended before its time, for people, with the last lines that it printed."""


@dataclass(frozen=True)
class Periodic:
    """Steps at regular distances that take longer than those between them."""

    every: int
    """The distance in steps."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How much longer, in the median, by variant; 0 where they do not."""
    file: str = ""
    """What runs in them and not in the steps before: the first such line, relative to the project's folder;
    empty where that is not known."""
    row: int = 0


@dataclass(frozen=True)
class Curve:
    """How one variant trains from one seed."""

    variant: str
    seed: int
    losses: tuple[float, ...]
    """The sum of the losses of each step."""


class TrackKind(enum.Enum):
    """What a track of a timeline is about; those of the host come first."""

    LINES = "lines"
    """The lines of the project's code that the step consists of, without those that they call."""
    CHANGED = "changed lines"
    """Those lines that the fixes change, wherever they are called from."""
    OPERATORS = "operators"
    """What torch runs on the host, without what that calls in turn."""
    LAUNCHES = "launches"
    """Calls that give the device something to do."""
    WAITS = "waits"
    """Calls in which the host waits for the device."""
    KERNELS = "kernels"
    COPIES = "copies"
    """With what fills memory."""


@dataclass(frozen=True)
class Slice:
    """Something that ran on a track of a timeline, or several things too short for a figure."""

    name: str
    """Of several, the longest."""
    begin: float
    """Since the step began."""
    end: float
    busy: float
    """For how long of that anything ran."""
    count: int = 1


@dataclass(frozen=True)
class Total:
    """All that ran on a track under one name."""

    name: str
    seconds: float
    count: int


@dataclass(frozen=True)
class Track:
    """What went on side by side with the other tracks of a timeline."""

    kind: TrackKind
    detail: str = ""
    """Which of several, such as ``stream 7``; empty of one."""
    busy: float = 0.0
    """For how long anything ran."""
    slices: tuple[Slice, ...] = ()
    """In the order of time, without overlaps."""
    longest: tuple[Total, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """One step of a variant, as the profiler saw it. That slows the host down."""

    variant: str
    step: int = 0
    """Its number, from 1."""
    seconds: float = 0.0
    """How long the host took for it."""
    tracks: tuple[Track, ...] = ()
    missing: str = ""
    """Why there is none; empty if there is."""


@dataclass(frozen=True)
class Comparison:
    """One variant against the original."""

    variant: str
    verdict: Verdict
    reason: str
    """One sentence for people, such as what made it UNCLEAR."""
    wall: Interval | None = None
    """None where the times say nothing: no number stands beside ``UNFIT``."""
    device: Interval | None = None
    work: Interval | None = None
    """The time of kernels and copies before over after; None where nobody looked at it."""
    pairs: int = 0
    discarded: int = 0
    memory: float | None = None
    """Peak memory before over after, as allocated by torch."""


@dataclass(frozen=True)
class Noise:
    """How well the machine reproduces the original's own time."""

    wall: Interval
    threshold: float
    """The relative difference from which on two times count as different (0.03 is 3 %)."""
    fit: bool
    reason: str = ""


class SyncStatus(enum.Enum):
    """How what the linter says of a line and what happened there go together."""

    CONFIRMED = "confirmed"
    REACHED = "reached without waiting"
    """A finding says that the line waits for the device; it ran, and did not."""
    NOT_REACHED = "predicted, not reached"
    """A finding says that the line waits for the device, and it did not run."""
    NOT_SEEN = "predicted, not seen"
    """A finding says that the line waits for the device; it did not, and nobody knows whether it ran."""
    NOT_PREDICTED = "seen, not predicted"
    """The line waited for the device, and no finding says so."""


@dataclass(frozen=True)
class SyncRow:
    """One line of the program that waits for the device, or is said to."""

    file: str
    """Relative to the project's folder where it lies in it."""
    row: int
    status: SyncStatus
    codes: tuple[str, ...] = ()
    """The rules that have a finding there; none if nothing was predicted."""
    message: str = ""
    """What the finding says; empty if nothing was predicted."""
    per_step: float = 0.0
    """How often it waited, on average."""
    seconds: float | None = None
    """Host time per step spent waiting there; None where it was not timed."""
    what: str = ""
    """The operation, as in ``Line``."""
    text: str = ""
    """The source line itself, without its indentation; empty if it cannot be read."""
    calls: int = 0
    """As in ``Line``."""
    phases: tuple[str, ...] = ()
    """As in ``Line``."""


@dataclass(frozen=True)
class SyncPhase:
    """What the program did for some time: it started, trained, or ran a model without training it."""

    name: str
    """``training in train()``: with the function of the project that calls the model."""
    seconds: float
    calls: int
    """How often a model was called."""


@dataclass(frozen=True)
class SyncReport:
    """The synchronising calls of an original program, joined with what the linter predicts."""

    steps: int
    """The number of steps that were watched."""
    rows: tuple[SyncRow, ...] = ()
    """Most calls first within a status, and the statuses in the order of their declaration."""
    missing: tuple[str, ...] = ()
    """What could not be seen, and why, a sentence each."""
    phases: tuple[SyncPhase, ...] = ()
    """In the order in which they were first seen."""
    ended: bool = False
    """Whether the program came to its own end, instead of that of the budget."""


@dataclass(frozen=True)
class Measurement:
    """One program (and size), all its variants, and what came out."""

    subject: str
    """The rule's code, or the script relative to its project's folder."""
    size: str | None = None
    variants: tuple[Variant, ...] = ()
    examinations: tuple[Examination, ...] = ()
    blocks: tuple[Block, ...] = ()
    windows: tuple[Block, ...] = ()
    """Further blocks, under the profiler: their ``device`` is the time of kernels and copies in them."""
    noise: Noise | None = None
    comparisons: tuple[Comparison, ...] = ()
    replicates: int = 0
    warmup_steps: int = 0
    awake: int = 0
    """How many processors were kept from going to sleep while it was timed (``awake.py``)."""
    dropped: tuple[str, ...] = ()
    """What the budget left no time for, a sentence each."""
    notes: tuple[str, ...] = ()
    """What a reader should know, a sentence each: torchrun variables that were set, an early end."""
    source: str = ""
    """The original text of the script or case, so that a report can show its lines."""
    syncs: SyncReport | None = None
    """What ``verify --syncs`` found; None where it was not asked for."""
    periodic: Periodic | None = None
    """The steps that evaluate, log or save, or begin an epoch; None if none can be told from the others."""
    curves: tuple[Curve, ...] = ()
    """How the original trains, and the variants whose results differ from its own by how they are rounded."""
    timelines: tuple[Timeline, ...] = ()
    """One step of the original, and the same with all fixes; none where nobody asked for them."""
    spent: dict[str, float] = field(default_factory=dict)
    """Seconds by what they were spent on: ``original`` (its first run), ``results`` (of the variants),
    ``start``, ``warm-up``, ``timed`` (with the untimed lead of each block), ``device work``, ``training``,
    ``recording``."""
    ranks: int = 1
    """How many processes the program has. The slowest decides about the time of a block, the one that needs
    most about the memory, and the first stands for the rest of the evidence."""
    device: str = ""
    """The device type that it ran on; empty for the machine's. It is not the machine's where a program has
    more ranks than there are GPUs."""

    def comparison(self, variant: str) -> Comparison | None:
        """Return what was found about a variant; None if nothing was."""
        return next((item for item in self.comparisons if item.variant == variant), None)

    def examination(self, variant: str) -> Examination | None:
        """Return the untimed run of a variant; None if there was none."""
        return next((item for item in self.examinations if item.variant == variant), None)


@dataclass(frozen=True)
class Results:
    """Everything that one command measured."""

    command: str
    """``bench`` or ``verify``."""
    torchlint: str
    started: str
    """UTC, ISO 8601."""
    seconds: float
    machine: Machine
    measurements: tuple[Measurement, ...] = ()
    commit: str | None = None
    """The commit of the checkout that torchlint ran from; None outside of one."""
    interrupted: bool = False
    format: int = FORMAT


def dump(results: Results) -> str:
    """Return the JSON form, indented."""
    return json.dumps(_converter().unstructure(results), indent=1) + "\n"


def load(path: Path) -> Results:
    """Read a results file.

    Raises:
        ValueError: the file is of another format, or no results file.
    """
    data: Any = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"{path} is not a results file of format {FORMAT}")
    loaded: Results = _converter().structure(data, Results)
    return loaded


def _converter() -> Any:
    import cattrs

    return cattrs.Converter(forbid_extra_keys=True)
