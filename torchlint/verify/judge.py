"""Verdicts: first on the results of a fix, then on its times."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

from torchlint.verify import stats
from torchlint.verify.results import (
    AGAIN,
    ORIGINAL,
    TOGETHER,
    Agreement,
    Block,
    Comparison,
    Evidence,
    Examination,
    Interval,
    Measurement,
    Noise,
    Sameness,
    Verdict,
)

THRESHOLD = 0.03
"""The relative difference below which nobody needs to act; noise can raise it."""
WIDEST = 0.05
"""How far from 1 an interval may reach that says that two times are the same: a wider one leaves room for a
difference that somebody would act on, however much the machine varies."""
UNBIASED = 0.01
"""How far from 1 the whole interval of the original against itself may lie on a machine that is fit. It is
not 0, since enough blocks make any interval too narrow to hold 1 exactly."""
UNSTEADY = 0.25
"""How far from 1 the interval of the original against itself may reach. Beyond that, a machine is unfit for
all but differences that are larger still."""
TOLERANCE = 1e-3
"""The default for ``--tolerance``: relative to the largest magnitude in a tensor. Single precision keeps
about 1e-7 a step, and some steps of training amplify that."""
AMPLIFIED = 10.0
"""How many times the noise a result may differ: a fix may round at every layer of every step, and the noise
comes of one rounding at the start."""
ROUNDINGS = 8
"""How many steps between numbers of the coarsest type among the results these may differ by."""
MOMENTS = 1.0
"""How far mean and spread of a result may be apart, in standard deviations, where a stream has moved."""
ROUNDED = 0.1
"""How far results of the first step may be apart in a program that only rounds otherwise: gradients of a deep
model in eight bits of mantissa."""
FEWEST_LOSSES = 20
"""The fewest steps whose losses say how a program trains."""
ONE_REPLICATE = (
    "only one process of each variant was timed, so the variation between processes is unknown; "
    "raise `--budget`"
)
"""Why a single replicate has no verdict, however narrow its interval."""
COUNTS = 0.05
"""The share by which a number of kernels or waits has to differ to be worth a word."""
LESS_MEMORY = 1.02
"""Peak memory before over after from which on a fix counts as saving memory."""


def agreement(found: Mapping[str, Any], noise: Mapping[str, float], tolerance: float) -> Sameness:
    """Return the judgement over the results of a variant.

    ``found`` is what ``worker.trace`` compared; ``noise`` says, by result, what the original differs from
    itself by when it starts a rounding error away, or is run once more: a fix is not asked to be more
    reproducible than the program. A result may differ by ``tolerance``; by ``AMPLIFIED`` times its noise; or
    by the most that any result of its kind, up to the same step, has of it. Parameters after some steps may
    differ by ten times the tolerance, since optimizers amplify what rounding leaves open.
    """
    steps, differences = found["steps"], found.get("differences", {})
    # A program that computes in half precision rounds as coarsely as that.
    tolerance = max(tolerance, ROUNDINGS * found.get("coarsest", 0.0))
    if not steps:
        return Sameness(Agreement.UNCHECKED, reason="no results were recorded")
    if found["bitwise"]:
        return Sameness(Agreement.IDENTICAL, steps, tolerance=tolerance, reason="bitwise identical")

    about = [(*_about(key), most) for key, most in noise.items()]

    def allowance(key: str) -> float:
        kind, step = _about(key)
        of_kind = max((most for other, at, most in about if other == kind and at <= step), default=0.0)
        return max(_allowed(key, tolerance), AMPLIFIED * noise.get(key, 0.0), of_kind)

    def excess(key: str) -> float:
        allowed = allowance(key)
        return 0.0 if math.isinf(allowed) else float(differences[key]) / allowed

    where = max(differences, key=excess, default="")
    largest = differences.get(where, 0.0)
    allowed = allowance(where)
    same = partial(
        Sameness, steps=steps, largest=largest, noise=noise.get(where, 0.0), tolerance=allowed, where=where
    )
    if math.isinf(largest) and math.isinf(allowed):
        reason = f"the original differs from itself as much ({where})"
        return same(Agreement.CLOSE, largest=1.0, noise=1.0, tolerance=1.0, reason=reason)
    if largest <= allowed:
        return same(Agreement.CLOSE, reason=f"results differ by at most {largest:.1e} ({where})")
    if found["streams_differ"] and found["kinds_agree"] and found["moments"] <= MOMENTS:
        return same(
            Agreement.STREAM_MOVED,
            reason="random numbers come from another generator; shapes, dtypes, devices and moments agree",
        )
    if math.isinf(largest):
        reason = f"the results differ: {where} has another shape, other NaNs, or no counterpart"
        return same(Agreement.DIFFERENT, largest=1.0, reason=reason)
    reason = f"the results differ: {where} by {largest:.1e}, more than the allowed {allowed:.1e}"
    return same(Agreement.DIFFERENT, reason=reason)


def rounds_otherwise(differences: Mapping[str, float]) -> bool:
    """Return whether results may differ by nothing but how numbers are rounded, such as in another precision.

    Those of the first two steps (the second is the first that an optimizer has had a part in) are no further
    off than that explains; what becomes of it later, nobody knows.
    """
    first = [value for key, value in differences.items() if _about(key)[1] <= 2]
    return bool(first) and max(first) <= ROUNDED and all(map(math.isfinite, differences.values()))


def training(
    original: Sequence[Sequence[float]], fixed: Sequence[Sequence[float]]
) -> tuple[bool | None, str]:
    """Return whether a variant trains as the original does, with the reason; None where that cannot be told.

    Each is given by its losses, seed by seed. What counts is the mean loss of the last half of the steps,
    averaged over the seeds. The two may differ by twice the deviation from seed to seed of the original, or
    by a fiftieth of what its loss changed by since the first tenth of the steps. That the original trains at
    all must be seen: its loss changes by more than those two deviations.
    """
    count = min(map(len, (*original, *fixed)), default=0)
    if count < FEWEST_LOSSES or len(original) < 2 or len(original) != len(fixed):
        return None, f"its training cannot be compared in {count} steps"
    curves = [[curve[:count] for curve in of] for of in (original, fixed)]
    if any(not math.isfinite(loss) for curve in curves[0] for loss in curve):
        return None, "the loss of the original is infinite or NaN at times"
    if any(not math.isfinite(loss) for curve in curves[1] for loss in curve):
        return False, "its loss becomes infinite or NaN"
    before, after = ([fmean(curve[count // 2 :]) for curve in of] for of in curves)
    changed = abs(fmean(fmean(curve[: count // 10]) for curve in curves[0]) - fmean(before))
    seeds = 2 * stdev(before)
    if changed <= seeds:
        return None, f"the loss of the original changes in {count} steps by less than from seed to seed"
    gap, allowed = abs(fmean(after) - fmean(before)), max(seeds, changed / 50)
    told = f"after {count} steps the losses of {len(original)} seeds differ by {gap:.2g}"
    if gap > allowed:
        return False, f"it trains otherwise: {told} from the original's, more than the allowed {allowed:.2g}"
    return True, f"it trains the same: {told} from the original's, and {allowed:.2g} is allowed"


def _about(key: str) -> tuple[str, int]:
    """Return the kind of a result, and the step that it is of, as ``worker.trace`` names it."""
    kind = re.search(r"\b(loss|output|gradient|result) ", key)
    step = re.search(r"\bstep (\d+)|\bafter (\d+) steps", key)
    return kind[1] if kind else "parameter", int(step[1] or step[2]) if step else 0


def _allowed(key: str, tolerance: float) -> float:
    return 10 * tolerance if key.endswith("steps") else tolerance


def noise(blocks: Sequence[Block]) -> Noise | None:
    """Return what the original against itself says of the machine; None if that was not timed."""
    wall = stats.interval(blocks, ORIGINAL, AGAIN)
    if wall is None:
        return None
    reach, threshold = _reach(wall), _threshold(wall)
    fit, reason = True, ""
    if _biased(wall):
        fit = False
        reason = f"the time of the unchanged program, run twice, differs by {_percent(wall.ratio - 1)}"
    elif reach > UNSTEADY:
        fit = False
        known = f"is only known to ±{_percent(reach)}" if reach < 1 else "varies too much between runs"
        reason = f"the time of the unchanged program {known}"
    return Noise(wall, threshold, fit, reason)


def _threshold(again: Interval) -> float:
    """Return the relative difference from which on a change counts, given the original against itself.

    The interval of a change covers its own noise: that of the copy is not added to it. What the copy came out
    at by chance is a floor all the same, and all that its interval covers on a machine that is unfit.
    """
    apart = max(again.ratio, 1 / again.ratio) - 1
    reach = _reach(again)
    return max(THRESHOLD, reach if reach > UNSTEADY or _biased(again) else apart)


def _reach(interval: Interval) -> float:
    """Return how far from 1 an interval reaches."""
    return max(1 / interval.low, interval.high) - 1


def _biased(wall: Interval) -> bool:
    """Return whether the original against itself comes out as faster or slower."""
    return wall.low > 1 + UNBIASED or wall.high < 1 / (1 + UNBIASED)


def verdict(interval: Interval, threshold: float) -> Verdict:
    """Return what an interval says, given the relative difference from which on a change counts."""
    if interval.low > 1 + threshold:
        return Verdict.FASTER
    if interval.high < 1 / (1 + threshold):
        return Verdict.SLOWER
    return Verdict.SAME if _reach(interval) <= WIDEST else Verdict.UNCLEAR


def comparison(
    examination: Examination,
    original: Examination,
    blocks: tuple[Block, ...],
    noise: Noise | None,
    windows: Sequence[Block] = (),
) -> Comparison:
    """Return one variant against the original: results first, then time, then memory.

    ``windows`` are the blocks that say how long the device worked. They count where the times say nothing.
    """
    name = examination.variant
    memory = _memory(original.evidence, examination.evidence)
    agreement = examination.sameness.agreement
    if agreement in (Agreement.DIFFERENT, Agreement.FAILED):
        reason = examination.sameness.reason or examination.failure or "the fixed program fails"
        return Comparison(name, Verdict.REJECTED, reason)
    pairs = stats.samples(blocks, ORIGINAL, name)
    wall = stats.interval(blocks, ORIGINAL, name)
    if wall is None:
        return Comparison(name, Verdict.UNMEASURED, "it was not timed", memory=memory)
    alone = len(pairs) < 2
    found, reason = (Verdict.UNCLEAR, ONE_REPLICATE) if alone else timed(wall, noise)
    shown = not alone and found is not Verdict.UNFIT
    work = stats.interval(windows, ORIGINAL, name, "device")
    if work is not None and found in (Verdict.UNCLEAR, Verdict.UNFIT):
        again = stats.interval(windows, ORIGINAL, AGAIN, "device")
        worked = _worked(work, again)
        if worked is not None:
            found, reason = worked[0], worked[1] + _launches(original.evidence, examination.evidence)
    return Comparison(
        name,
        found,
        reason,
        wall=wall if shown else None,
        device=stats.interval(blocks, ORIGINAL, name, "device") if shown else None,
        work=work,
        pairs=sum(map(len, pairs.values())),
        discarded=sum(block.discarded is not None for block in blocks if block.variant in (ORIGINAL, name)),
        memory=memory,
    )


def worth_applying(comparison: Comparison, sameness: Sameness) -> bool:
    """Return whether a fix kept the results and was FASTER, or used less memory without being slower."""
    if sameness.agreement not in (Agreement.IDENTICAL, Agreement.CLOSE, Agreement.TRAINS):
        return False
    if comparison.verdict is Verdict.FASTER:
        return True
    saves = comparison.memory is not None and comparison.memory >= LESS_MEMORY
    return saves and comparison.verdict not in (Verdict.SLOWER, Verdict.REJECTED)


def proven(measurement: Measurement) -> set[str]:
    """Return the names of the variants whose fixes are worth applying, those of single rules or places.

    Where there was only one rule to measure, that is the variant with all fixes.
    """
    good = {
        item.variant
        for item in measurement.comparisons
        if (examined := measurement.examination(item.variant)) and worth_applying(item, examined.sameness)
    }
    alone = {item.name for item in measurement.variants} - {ORIGINAL, AGAIN, TOGETHER}
    if alone:
        return good & alone
    codes = {code for item in measurement.variants for code in item.codes}
    return codes if TOGETHER in good else set()


def timed(wall: Interval, noise: Noise | None) -> tuple[Verdict, str]:
    """Return the verdict on a time, with its reason in a sentence for people."""
    if noise is None:
        return Verdict.UNFIT, "the original was not timed against a copy of itself"
    found = verdict(wall, noise.threshold)
    # What is too unsteady for a figure of its own can still be far from what was four times as slow.
    if not noise.fit and found not in (Verdict.FASTER, Verdict.SLOWER):
        return Verdict.UNFIT, noise.reason
    reasons = {
        Verdict.FASTER: f"takes {_percent(1 - 1 / wall.ratio)} less time per step",
        Verdict.SLOWER: f"takes {_percent(1 / wall.ratio - 1)} more time per step",
        Verdict.SAME: f"no difference of {_bound(wall)} or more",
        Verdict.UNCLEAR: f"the interval crosses the threshold of {_percent(noise.threshold)}; measure longer"
        if wall.half_width <= WIDEST
        else f"the interval is wider than ±{_percent(WIDEST)}; measure longer",
    }
    return found, reasons[found]


def _worked(work: Interval, again: Interval | None) -> tuple[Verdict, str] | None:
    """Return the verdict on the work of the device, with its reason; None where that tells nothing either."""
    if again is None or _biased(again) or _reach(again) > UNSTEADY:
        return None
    less, more = _percent(1 - 1 / work.ratio), _percent(1 / work.ratio - 1)
    return {
        Verdict.FASTER: (Verdict.LESS_WORK, f"kernels and copies take {less} less time per step"),
        Verdict.SLOWER: (Verdict.MORE_WORK, f"kernels and copies take {more} more time per step"),
        Verdict.SAME: (
            Verdict.SAME_WORK,
            f"the time of kernels and copies does not differ by {_bound(work)} or more",
        ),
    }.get(verdict(work, _threshold(again)))


def _bound(interval: Interval) -> str:
    """Return the least difference that an interval excludes, if anybody acts on it."""
    return _percent(max(THRESHOLD, _reach(interval)))


def _launches(before: Evidence, after: Evidence) -> str:
    """Return how the numbers of kernels and waits in a step differ, behind a verdict on the device's work."""
    told = []
    for what in ("kernels", "syncs"):
        one, other = getattr(before, what), getattr(after, what)
        if one is not None and other is not None and abs(one - other) >= COUNTS * max(one, 1.0):
            name = "kernels" if what == "kernels" else "waits"
            told.append(f"{other:.4g} instead of {one:.4g} {name}")
    return f"; a step has {' and '.join(told)}" if told else ""


def _memory(before: Evidence, after: Evidence) -> float | None:
    if not before.peak_allocated or not after.peak_allocated:
        return None
    return before.peak_allocated / after.peak_allocated


def _percent(share: float) -> str:
    digits = 1 if abs(share) < 0.095 and not math.isclose(share, round(share, 2), abs_tol=5e-4) else 0
    return f"{100 * abs(share):.{digits}f} %"
