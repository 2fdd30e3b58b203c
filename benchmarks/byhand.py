"""How long a step of a program takes before and after its fixes, timed without the harness of ``verify``.

Usage: ``python benchmarks/byhand.py NAME FOLDER [--select CODES] [--steps N] [--rounds N] -- SCRIPT
ARGUMENTS``

Copies FOLDER, applies the fixes of ``torchlint check --fix`` to the copy, and runs both alone, in turn: A B B
A and again. The time of a step is that from the end of one step of the optimizer to the end of a later one,
the device synchronized at both, over the steps between; nothing else is hooked, and no other process of the
two runs meanwhile. The result goes under NAME into ``benchmarks/results/byhand.json``; compare it with the
interval that ``verify`` gave.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "byhand.json"
WARM = 30
"""Steps before the first that counts."""
GROUP = 10
"""The steps that are timed as one."""


def run_alone(steps: int) -> None:
    """Run the program that the rest of the command line names, and print the seconds of its steps as JSON."""
    import torch
    from torch.optim import optimizer as optimizers

    sys.argv = sys.argv[sys.argv.index("--") + 1 :]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    marks: list[float] = []
    steppers: list[int] = []

    def stepped(optimizer: Any, *_: Any) -> None:
        if steppers and steppers[0] != id(optimizer):
            return
        steppers.append(id(optimizer))
        past = len(steppers) - WARM
        if past >= 0 and past % GROUP == 0:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            marks.append(time.perf_counter())
        if past >= steps:
            tell()

    def tell() -> None:
        pairs = itertools.pairwise(marks)
        Path(os.environ["STEP_TIMES"]).write_text(
            json.dumps([(after - before) / GROUP for before, after in pairs]), encoding="utf-8"
        )
        sys.stdout.flush()
        os._exit(0)

    optimizers.register_optimizer_step_post_hook(stepped)
    runpy.run_path(sys.argv[0], run_name="__main__")
    tell()


def seconds(folder: Path, command: list[str], steps: int) -> list[float]:
    """The times of the steps of one run, in groups."""
    with tempfile.TemporaryDirectory() as place:
        times = Path(place) / "times.json"
        worker = [sys.executable, __file__, "--alone", str(steps), "--", *command]
        environment = {**os.environ, "STEP_TIMES": str(times)}
        ended = subprocess.run(
            worker, cwd=folder, env=environment, check=False, capture_output=True, text=True
        )
        if not times.exists():
            raise SystemExit(f"{command[0]} failed:\n{ended.stderr[-2000:]}")
        found: list[float] = json.loads(times.read_text(encoding="utf-8"))
        return found


def main() -> None:
    """Measure one program, and write what came out."""
    if sys.argv[1:2] == ["--alone"]:
        run_alone(int(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--select", default="")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / name / given.folder.name for name in ("before", "after")}
        for folder in folders.values():
            shutil.copytree(given.folder, folder)
        fix = [
            sys.executable,
            "-m",
            "torchlint",
            "check",
            "--fix",
            "--isolated",
            "--impact",
            "low",
            "--advice",
        ]
        fix += ["--no-cache", *(["--select", given.select] if given.select else []), "."]
        subprocess.run(fix, cwd=folders["after"], check=False, stdout=subprocess.DEVNULL)
        times: dict[str, list[list[float]]] = {"before": [], "after": []}
        for number in range(2 * given.rounds):
            for name in ("before", "after")[:: 1 if number % 2 == 0 else -1]:
                times[name].append(seconds(folders[name], given.command, given.steps))
    runs = {name: [sum(run) / len(run) for run in found] for name, found in times.items()}
    found = {
        "command": " ".join(given.command),
        "select": given.select,
        "steps": given.steps,
        "milliseconds": {name: [round(1e3 * run, 3) for run in taken] for name, taken in runs.items()},
        "ratio": round(median(runs["before"]) / median(runs["after"]), 4),
    }
    known = json.loads(given.output.read_text("utf-8")) if given.output.exists() else {}
    known[given.name] = found
    given.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(given.name, json.dumps(found))


if __name__ == "__main__":
    main()
