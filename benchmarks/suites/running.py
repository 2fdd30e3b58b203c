"""One run of a package's tests, test by test."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import processes
from benchmarks.suites.packages import Suite

_SAID = 300
"""Characters that are kept of what a failed test says."""

# No network, no GPU, no threads that compete with the test runner's processes.
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How each test ended: ``passed``, ``failed`` or ``skipped``, and the first line of each failure."""

    ended: dict[str, str]
    said: dict[str, str]
    seconds: float

    def count(self, outcome: str) -> int:
        """Return how many tests ended so."""
        return sum(1 for value in self.ended.values() if value == outcome)


def run(
    python: Path,
    suite: Suite,
    tree: Path,
    *,
    tests: Sequence[str] = (),
    jobs: int = 1,
    limit: float,
    timeout: int,
) -> Outcomes:
    """Run the tests of a suite, or only those named, in one copy of its sources.

    Args:
        limit: seconds after which the run is ended as a whole; what has not run by then counts as missing.
        timeout: seconds after which one test counts as failed.

    Raises:
        RuntimeError: pytest could not run at all, for instance since a module cannot be collected.
    """
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log.jsonl"
        command = [
            *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"),
            *(f"--report-log={log}", f"--timeout={timeout}", f"--basetemp={scratch}/work"),
            *(("-n", str(jobs), "--dist", "loadfile") if jobs > 1 and not tests else ()),
            *suite.options,
            *(f"--deselect={name}" for name in suite.left_out),
            *(tests or suite.tests),
        ]
        path = os.pathsep.join(str(tree / folder) for folder in suite.paths)
        usage = processes.run(
            command,
            environment={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
            folder=tree,
            limit=limit,
        )
        if not log.is_file():
            raise RuntimeError(f"pytest could not run for {suite.name}: {usage.told}")
        return _read(log.read_text(encoding="utf-8"), usage.wall)


def _read(log: str, seconds: float) -> Outcomes:
    """Return the outcomes in a log of pytest-reportlog."""
    ended: dict[str, str] = {}
    said: dict[str, str] = {}
    for line in log.splitlines():
        try:
            report = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was ended
        if report.get("$report_type") == "CollectReport" and report["outcome"] == "failed":
            ended[report["nodeid"]] = "failed"
            said[report["nodeid"]] = _first_line(report)
        if report.get("$report_type") != "TestReport":
            continue
        name, outcome = report["nodeid"], report["outcome"]
        # A test is set up, called and torn down; it has passed if all three have.
        if outcome == "failed" or (outcome == "skipped" and ended.get(name) != "failed"):
            ended[name] = outcome
        elif report["when"] == "call":
            ended.setdefault(name, outcome)
        if outcome == "failed":
            said[name] = _first_line(report)
    return Outcomes(ended, said, round(seconds, 1))


def _first_line(report: dict[str, object]) -> str:
    """Return the first line of the message of the exception that a report is about."""
    representation = report.get("longrepr")
    if isinstance(representation, dict) and representation.get("reprcrash"):
        text = str(representation["reprcrash"]["message"])
    else:
        text = str(representation)
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "")[:_SAID]
