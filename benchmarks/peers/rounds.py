"""The measurement itself: which commands, in which order, how often."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.peers.contenders import Contender
from benchmarks.peers.trees import Tree
from benchmarks.processes import Usage

ALONE, SEVERAL = "one", "default"
COLD, WARM = "cold", "warm"


@dataclass(slots=True)
class Series:
    """One way to run one tool on one tree, and what each run of it took."""

    contender: Contender
    tree: Tree
    python: Path
    processes: str
    state: str
    runs: list[Usage] = field(default_factory=list)
    error: str | None = None

    def command(self, cache: Path) -> list[str]:
        """Return the command with all folders put in."""
        extra = (self.contender.alone or ()) if self.processes == ALONE else ()
        return [_filled(part, self, cache) for part in (*self.contender.command, *extra)]

    def environment(self, cache: Path) -> dict[str, str]:
        """Return this process's variables without those that change what a linter or Python does,
        and the tool's.
        """
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "RAYON_", "RUFF_", "PYLINT", "PYREFLY_", "TORCHLINT_"))
        }
        own["PATH"] = os.pathsep.join([str(self.python.parent), own.get("PATH", os.defpath)])
        added = dict(self.contender.variables)
        if self.processes == ALONE:
            added |= self.contender.alone_variables
        return own | {name: _filled(value, self, cache) for name, value in added.items()}

    def as_json(self) -> dict[str, Any]:
        """Return it for the results; the command keeps its placeholders,
        so that no folder of a machine is in it.
        """
        contender = self.contender
        extra = (contender.alone or ()) if self.processes == ALONE else ()
        words = ["…" if "\n" in part else part for part in (*contender.command, *extra)]
        variables = {**contender.variables, **(contender.alone_variables if self.processes == ALONE else {})}
        return {
            "tool": contender.name,
            "kind": contender.kind,
            "command": " ".join([*(f"{name}={value}" for name, value in variables.items()), *words]),
            "processes": self.processes,
            "several": contender.several if self.processes == SEVERAL else "",
            "state": self.state,
            "files": self.tree.files,
            "bytes": self.tree.bytes,
            "error": self.error,
            "rounds": [
                {
                    "cpu_seconds": round(run.cpu, 4),
                    "wall_seconds": round(run.wall, 4),
                    "peak_mib": round(run.memory, 1),
                    "status": run.status,
                    "lines": run.lines,
                }
                for run in self.runs
            ],
        }


def _filled(part: str, series: Series, cache: Path) -> str:
    places: Mapping[str, Path] = {
        "{tree}": series.tree.folder,
        "{cache}": cache,
        "{bin}": series.python.parent,
        "{python}": series.python,
    }
    for name, path in places.items():
        part = part.replace(name, str(path))
    return part


def series_of(contender: Contender, tree: Tree, python: Path) -> list[Series]:
    """Return all ways in which a tool is run: alone or as it comes, cold and, if it has a cache, warm."""
    ways = [ALONE] if contender.alone is not None else []
    ways += [SEVERAL] if contender.several else []
    states = [COLD, WARM] if contender.caches else [COLD]
    return [Series(contender, tree, python, way, state) for way, state in itertools.product(ways, states)]


@dataclass(frozen=True, slots=True)
class Plan:
    """How often and how long; seconds of wall time."""

    rounds: int
    slow_rounds: int
    slow: float
    limit: float


def measure(
    all_series: Sequence[Series], plan: Plan, scratch: Path, report: Callable[[Series, int], None]
) -> None:
    """Run everything, round by round, and keep what each run took in the series.

    ``report`` is told of every run, and of every failure.
    """
    for number in range(plan.rounds):
        for series in all_series if number % 2 == 0 else reversed(all_series):
            if series.error is None and not _done(series, plan):
                _run(series, plan.limit, scratch)
                report(series, number)


def _done(series: Series, plan: Plan) -> bool:
    if not series.runs or len(series.runs) < plan.slow_rounds:
        return False
    return series.runs[0].wall > plan.slow


def _run(series: Series, limit: float, scratch: Path) -> None:
    """Run once; a cold run has an empty cache, a warm one what a run before it has left."""
    cache = scratch / f"cache-{series.contender.name}-{series.processes}-{series.state}"
    if series.state == COLD:
        shutil.rmtree(cache, ignore_errors=True)
    fill = series.state == WARM and not cache.exists()
    cache.mkdir(exist_ok=True)
    try:
        for _ in range(2 if fill else 1):
            usage = processes.run(
                series.command(cache), environment=series.environment(cache), folder=scratch, limit=limit
            )
    except RuntimeError as error:
        series.error = str(error).splitlines()[-1]
        return
    if usage.expired:
        series.error = f"stopped after {limit:.0f} s"
    elif not 0 <= usage.status <= series.contender.finished:
        last = usage.told.splitlines()[-1] if usage.told else "nothing"
        series.error = f"exit status {usage.status}: {last}"[:300]
    else:
        series.runs.append(usage)
