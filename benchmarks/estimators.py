"""Which number stands best for the blocks of a process, on the noise that was recorded on several machines.

    python -m benchmarks.estimators

Each results file of ``bench`` and ``verify`` has blocks of the original and of its copy, which took turns:
their log ratio is 0, and what an estimator says instead is its error in one replicate. Prints the median, the
90 % quantile and the root mean square of the errors in percent, for the cases of ``bench``, whose steps are
all alike, and for whole programs, and writes them into ``benchmarks/results/estimators.json``. Where a file
has the time of every step, the same estimators are tried on steps, those of the same number side by side.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torchlint.verify.results import AGAIN, ORIGINAL

RESULTS = Path(__file__).resolve().parent / "results"
LEAST = 6
"""Rounds that a replicate must have to count."""
Times = npt.NDArray[np.float64]


def pairs(one: Times, other: Times) -> Times:
    """Return the log ratios of rounds, averaged over each pair of opposite order,
    as ``stats.samples`` has them.
    """
    ratios = one - other
    count = len(ratios) // 2 * 2
    found: Times = (ratios[:count:2] + ratios[1:count:2]) / 2
    return found


def hodges_lehmann(one: Times, other: Times) -> float:
    """Return the median of the means of all pairs of samples."""
    found = pairs(one, other)
    left, right = np.triu_indices(len(found))
    return float(np.median((found[left] + found[right]) / 2))


def lower_half(one: Times, other: Times) -> float:
    """Return the difference of the means of the faster halves."""
    count = max(1, len(one) // 2)
    return float(np.sort(one)[:count].mean() - np.sort(other)[:count].mean())


def quantile(share: float) -> Callable[[Times, Times], float]:
    """Return the difference of a quantile of both; 0 is the minimum."""
    return lambda one, other: float(np.quantile(one, share) - np.quantile(other, share))


ESTIMATORS: Mapping[str, Callable[[Times, Times], float]] = {
    "median of pairs": lambda one, other: float(np.median(pairs(one, other))),
    "mean of pairs": lambda one, other: float(pairs(one, other).mean()),
    "Hodges-Lehmann": hodges_lehmann,
    "median": quantile(0.5),
    "quantile 25 %": quantile(0.25),
    "quantile 10 %": quantile(0.1),
    "minimum": quantile(0.0),
    "lower half": lower_half,
}


OF_STEPS = "median", "quantile 25 %", "quantile 10 %", "minimum", "lower half"
"""What is tried on single steps as well, and the median of their ratios."""


def steps(rounds: Iterable[Mapping[str, Any]]) -> tuple[Times, Times] | None:
    """Return the log times of all timed steps of the original and its copy; None where nobody kept them."""
    both = [tuple(np.log(item[name]["times"]) for name in (ORIGINAL, AGAIN)) for item in rounds]
    if not all(len(one) == len(other) > 0 for one, other in both):
        return None
    return tuple(np.concatenate([item[place] for item in both]) for place in range(2))  # type: ignore[return-value]


def replicates(
    results: Mapping[str, Any],
) -> Iterator[tuple[tuple[Times, Times], tuple[Times, Times] | None]]:
    """Yield the log times of a step of the original and its copy, by round and by step,
    for each replicate.
    """
    for measurement in results["measurements"]:
        found: dict[int, dict[int, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
        for block in measurement["blocks"]:
            if block["variant"] in (ORIGINAL, AGAIN) and not block.get("discarded"):
                found[block["replicate"]][block["round"]][block["variant"]] = {"times": (), **block}
        for rounds in found.values():
            both = [rounds[number] for number in sorted(rounds) if len(rounds[number]) == 2]
            if len(both) >= LEAST:
                one, other = (
                    np.log([item[name]["wall"] / item[name]["steps"] for item in both])
                    for name in (ORIGINAL, AGAIN)
                )
                yield (one, other), steps(both)


def errors(pattern: str) -> dict[str, list[float]]:
    """Return what each estimator says of the replicates in the results files of a pattern."""
    found: dict[str, list[float]] = defaultdict(list)
    for path in sorted(RESULTS.glob(pattern)):
        for (one, other), of_steps in replicates(json.loads(path.read_text(encoding="utf-8"))):
            for name, estimate in ESTIMATORS.items():
                found[name].append(abs(estimate(one, other)))
            if of_steps is not None:
                found["steps: median of ratios"].append(abs(float(np.median(of_steps[0] - of_steps[1]))))
                for name in OF_STEPS:
                    found[f"steps: {name}"].append(abs(ESTIMATORS[name](*of_steps)))
    return found


def main() -> None:
    """Compare the estimators, print a line for each, and write the results."""
    told: dict[str, Any] = {}
    for pattern in ("bench-*.json", "verify-*.json"):
        found = errors(pattern)
        count = len(next(iter(found.values())))
        told[pattern] = {
            "replicates": count,
            "errors_percent": {
                name: {
                    "median": round(100 * float(np.median(values)), 2),
                    "quantile_90": round(100 * float(np.quantile(values, 0.9)), 2),
                    "root_mean_square": round(100 * float(np.sqrt(np.mean(np.square(values)))), 2),
                }
                for name, values in found.items()
            },
        }
        print(f"{pattern}, {count} replicates")
        for name, figures in told[pattern]["errors_percent"].items():
            print(f"  {name:24} {figures}")
    text = json.dumps(told, indent=1) + "\n"
    (RESULTS / "estimators.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
