"""How many repositories ``torchlint report`` checks in a minute, in how much memory, and whether it resumes.

    python -m benchmarks.report FOLDER… [--jobs 1 2 4] [--sample 60] [--limit 0] [--timeout 300] [-o FILE]

The largest number of processes checks all folders from scratch, with two more that cannot be checked: it is
interrupted after half a minute, as Ctrl-C does, and resumed; then it checks them again unchanged. The smaller
numbers check a sample, in the same order and side by side, for at most ``--limit`` seconds. The results, with
what could not be checked and what torchlint says of itself, are written to ``results/report.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from torchlint import __version__
from torchlint.report.records import Record, Shelf, names

RESULTS = Path(__file__).with_name("results") / "report.json"
_PAUSE = 0.25
_INTERRUPTED = 30.0
"""Seconds after which the large run is interrupted."""
_FAILURES = {"TL000", "TL001"}
"""What torchlint says of itself: a rule that failed, and a file that it cannot read."""


@dataclass(frozen=True)
class Course:
    """A run of ``torchlint report``: its exit status, seconds, and MiB of all its processes at once.

    ``left`` is the number of its processes that outlived it.
    """

    status: int
    wall: float
    processor: float
    memory: float
    left: int
    told: str


def course(
    folders: Sequence[Path], site: Path, jobs: int, timeout: float, *more: str, limit: float = 0
) -> Course:
    """Run it in a session of its own, which is interrupted after ``limit`` seconds, unless that is 0.

    What it remembers lies beside the site.
    """
    command = [
        *(sys.executable, "-m", "torchlint", "report", "-o", str(site), "--jobs", str(jobs)),
        *("--timeout", str(timeout), *more, "--", *map(str, folders)),
    ]
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={**os.environ, "TORCHLINT_CACHE_DIR": str(site.with_name(f"{site.name}-cache"))},
        )
        most, interrupted, ended = 0.0, False, 0
        while not ended:
            time.sleep(_PAUSE)
            most = max(most, sum(map(_memory, _session(process.pid))))
            if limit and not interrupted and time.perf_counter() - started > limit:
                os.killpg(process.pid, signal.SIGINT)
                interrupted = True
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        told = output.read().decode(errors="replace")
    left = len(_session(process.pid))
    return Course(process.returncode, wall, usage.ru_utime + usage.ru_stime, most, left, told)


def _session(leader: int) -> list[int]:
    """Return the processes of a session, as Linux tells them; none elsewhere."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def _memory(process: int) -> float:
    """Return MiB of a process; what it shares with others counts in parts."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def records(folders: Sequence[Path], site: Path) -> list[Record]:
    """Return what a report has checked so far."""
    shelf = Shelf(site)
    found = [shelf.get(name) for name in names([path.resolve() for path in folders]).values()]
    return [record for record in found if record is not None]


def told(jobs: int, runs: Sequence[Course], known: Sequence[Record]) -> dict[str, Any]:
    """Return the figures of a run, or of one that was interrupted and resumed."""
    wall, processor = sum(run.wall for run in runs), sum(run.processor for run in runs)
    return {
        "jobs": jobs,
        "repositories": len(known),
        "not checked": sorted(f"{record.name}: {record.error}" for record in known if record.error),
        "findings": sum(len(record.findings) for record in known),
        "wall_seconds": round(wall, 1),
        "processor_seconds": round(processor, 1),
        "repositories_a_minute": round(60 * len(known) / wall, 1),
        "repositories_a_processor_minute": round(60 * len(known) / processor, 1),
        "median_seconds": round(median(record.seconds for record in known), 2),
        "memory": round(max(run.memory for run in runs)),
    }


def measured(folders: Sequence[Path], site: Path, jobs: int, timeout: float, limit: float) -> dict[str, Any]:
    """Return the figures of a sample; of what was checked in time, if there is a limit."""
    run = course(folders, site, jobs, timeout, limit=limit)
    result = told(jobs, [run], records(folders, site))
    return {**result, "complete": result["repositories"] == len(folders)}


def resumed(folders: Sequence[Path], site: Path, jobs: int, timeout: float) -> dict[str, Any]:
    """Return the figures of all folders, by a run that is interrupted and resumed;
    and what resuming came to.
    """
    first = course(folders, site, jobs, timeout, limit=_INTERRUPTED)
    before = {record.name: record.checked for record in records(folders, site) if not record.error}
    second = course(folders, site, jobs, timeout, "--resume")
    known = records(folders, site)
    kept = sum(before.get(record.name) == record.checked for record in known)
    failed = sum(bool(record.error) for record in known)
    pages = [path.stat().st_size for path in (site / "repositories").iterdir()]
    again = course(folders, site, jobs, timeout)
    return {
        **told(jobs, [first, second], known),
        "unchanged": {
            key: value
            for key, value in told(jobs, [again], records(folders, site)).items()
            if key not in ("not checked", "median_seconds")
        },
        "interrupted": {
            "after_seconds": round(first.wall, 1),
            "status": first.status,
            "processes_left": first.left,
            "checked": len(before),
            "kept": kept,
            "checked_again": len(before) - kept,
            "told": first.told[-500:],
        },
        "resumed": {"status": second.status, "failed": failed, "missing": len(folders) - len(known)},
        "bytes": {
            "index": (site / "index.html").stat().st_size,
            "largest page": max(pages),
            "all pages": sum(pages),
        },
        "says of itself": sorted(
            f"{record.name}: {finding.code} {finding.file}:{finding.row}: {finding.message}"
            for record in known
            for finding in record.findings
            if finding.code in _FAILURES
        ),
        "seconds": {record.name: record.seconds for record in sorted(known, key=lambda item: item.name)},
    }


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", nargs="+", type=int, default=[1, 2, os.cpu_count() or 1])
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--limit", type=float, default=0)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    *few, many = sorted(chosen.jobs)
    folders = random.Random(25).sample(chosen.folders, len(chosen.folders))
    sample = folders[: chosen.sample]
    with tempfile.TemporaryDirectory() as scratch:
        broken = Path(scratch, "broken", "configuration")
        broken.mkdir(parents=True)
        (broken / "torchlint.toml").write_text("select = 1\n")
        with ThreadPoolExecutor() as pool:
            parts = list(
                pool.map(
                    lambda jobs: measured(
                        sample, Path(scratch, f"site{jobs}"), jobs, chosen.timeout, chosen.limit
                    ),
                    few,
                )
            )
        folders[5:5] = [broken, broken.with_name("missing")]
        result = {
            "torchlint": __version__,
            "python": platform.python_version(),
            "processors": os.cpu_count(),
            **resumed(folders, Path(scratch, "site"), many, chosen.timeout),
            "sample": parts,
        }
    text = json.dumps(result, indent=2).replace(f"{scratch}/", "")
    chosen.output.write_text(text + "\n", encoding="utf-8")
    shown = {key: value for key, value in result.items() if key not in ("seconds", "says of itself")}
    print(json.dumps(shown, indent=2))


if __name__ == "__main__":
    main()
