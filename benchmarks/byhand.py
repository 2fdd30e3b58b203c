"""How long a step of a program takes before and after its fixes, timed without the harness of ``verify``.

Usage: ``python -m benchmarks.byhand LABEL [--programs NAME ...] [--scripts FILE] [--verified FOLDER]``

The programs are those of ``verdicts.py``. Of each, two copies are made, the fixes of ``torchlint check
--fix`` applied to one, and both run alone, in turn: A B B A and again. The time of a step is that from
the end of one step of the optimizer to the end of a later one, the device synchronized at both, over the
steps between; nothing else is hooked, and no other process of the two runs meanwhile. The results go
under LABEL into ``benchmarks/results/byhand.json``, beside the ratio that ``verify`` gave: FOLDER is
what ``verdicts.py --folder`` kept.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.verdicts import PROGRAMS, Program, given, own

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "byhand.json"
WARM = 30
"""Steps before the first that counts."""
GROUP = 10
"""The steps that are timed as one."""
AGREES = 0.05
"""How far the two ratios may be apart."""


@dataclass(frozen=True)
class Command:
    """What follows ``torchlint verify`` on a command line, taken apart."""

    words: tuple[str, ...]
    """The script, or ``-m`` and a module, and the program's own arguments."""
    links: tuple[str, ...]
    """What lies beside the project and is only read."""

    @staticmethod
    def of(program: Program) -> Command:
        """The command of a program."""
        words = list(program.command)
        split = words.index("--") if "--" in words else len(words)
        ours, theirs = words[:split], words[split + 1 :]
        links = tuple(after for before, after in itertools.pairwise(ours) if before == "--link")
        told = [word for before, word in itertools.pairwise(["", *ours]) if "--link" not in (before, word)]
        return Command((*told, *theirs), links)


def run_alone(steps: int, seconds: float) -> None:
    """Run the program that the rest of the command line names, and write the seconds of its steps as JSON."""
    import torch
    from torch.optim import optimizer as optimizers

    sys.argv = sys.argv[sys.argv.index("--") + 1 :]
    module = sys.argv[0] == "-m"
    if module:
        del sys.argv[0]
    sys.path[0] = str(Path.cwd()) if module else str(Path(sys.argv[0]).resolve().parent)
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
            if past >= steps or marks[-1] - marks[0] > seconds:
                tell()

    def tell() -> None:
        pairs = itertools.pairwise(marks)
        Path(os.environ["STEP_TIMES"]).write_text(
            json.dumps([(after - before) / GROUP for before, after in pairs]), encoding="utf-8"
        )
        sys.stdout.flush()
        os._exit(0)

    optimizers.register_optimizer_step_post_hook(stepped)
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
    tell()


def times(folder: Path, command: Sequence[str], program: Program, steps: int, seconds: float) -> list[float]:
    """The times of the steps of one run, in groups.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "times.json"
        worker = [
            sys.executable,
            "-m",
            "benchmarks.byhand",
            "--alone",
            str(steps),
            str(seconds),
            "--",
            *command,
        ]
        environment = {**os.environ, "STEP_TIMES": str(file)}
        entries = [*program.python_path, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(entries)
        ended = subprocess.run(
            worker, cwd=folder, env=environment, check=False, capture_output=True, text=True
        )
        if not file.exists():
            raise RuntimeError(f"{command[0]} failed:\n{ended.stderr[-2000:]}")
        found: list[float] = json.loads(file.read_text(encoding="utf-8"))
        return found


def measured(program: Program, steps: int, seconds: float, rounds: int) -> dict[str, Any]:
    """The times of a program before and after its fixes, and their ratio."""
    command = Command.of(program)
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / name / program.folder.name for name in ("before", "after")}
        for folder in folders.values():
            shutil.copytree(program.folder, folder)
            for link in command.links:
                beside = folder / link
                if not beside.exists():
                    beside.symlink_to((program.folder / link).resolve())
        fix = [sys.executable, "-m", "torchlint", "check", "--fix", "--isolated", "--impact", "low"]
        subprocess.run(
            [*fix, "--advice", "--no-cache", "."],
            cwd=folders["after"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        runs: dict[str, list[list[float]]] = {"before": [], "after": []}
        for number in range(2 * rounds):
            for name in ("before", "after")[:: 1 if number % 2 == 0 else -1]:
                runs[name].append(times(folders[name], command.words, program, steps, seconds))
    means = {name: [sum(run) / len(run) for run in found] for name, found in runs.items()}
    return {
        "command": " ".join(program.command),
        "steps": [GROUP * len(run) for run in runs["before"]],
        "milliseconds": {name: [round(1e3 * run, 3) for run in taken] for name, taken in means.items()},
        "ratio": round(median(means["before"]) / median(means["after"]), 4),
    }


def verified(file: Path) -> dict[str, Any] | None:
    """What ``verify`` found of all fixes together: the ratio with its interval, and the time of a step."""
    from torchlint.verify import stats, words
    from torchlint.verify.results import ORIGINAL, TOGETHER, load

    if not file.exists():
        return None
    measurement = load(file).measurements[0]
    # Beside some verdicts no ratio is shown; whether it is right can be asked all the same.
    interval = stats.interval(measurement.blocks, ORIGINAL, TOGETHER)
    comparison = measurement.comparison(TOGETHER)
    taken = words.step_seconds(measurement, ORIGINAL)
    if interval is None or comparison is None or taken is None:
        return None
    return {
        "verdict": comparison.verdict.value,
        "ratio": round(interval.ratio, 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        "milliseconds": round(1e3 * taken, 3),
    }


def main() -> None:
    """Measure programs, and write what came out."""
    if sys.argv[1:2] == ["--alone"]:
        run_alone(int(sys.argv[2]), float(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("label")
    parser.add_argument(
        "--programs", nargs="*", default=[], choices=[path.stem for path in PROGRAMS.glob("*.py")]
    )
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--only", nargs="+", help="of the scripts, these")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=4.0, help="the most that a run is timed for")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--verified", type=Path, help="what `verdicts.py --folder` kept")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    known = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    of_label = known.setdefault(arguments.label, {})
    with tempfile.TemporaryDirectory() as folder:
        programs = own(arguments.programs, Path(folder))
        if arguments.scripts:
            scripts = given(arguments.scripts.resolve())
            programs += [item for item in scripts if not arguments.only or item.name in arguments.only]
        for program in programs:
            try:
                found = measured(program, arguments.steps, arguments.seconds, arguments.rounds)
            except RuntimeError as error:
                print(program.name, error, flush=True)
                continue
            said = arguments.verified and verified(arguments.verified / f"verify-{program.name}.json")
            if said:
                apart = found["ratio"] / said["ratio"] - 1
                found |= {"verify": said, "apart": round(apart, 4), "agrees": abs(apart) <= AGREES}
            of_label[program.name] = found
            arguments.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            print(program.name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
