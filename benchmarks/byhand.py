"""How long a step of a program takes before and after its fixes, timed without the harness of ``verify``.

Usage: ``python -m benchmarks.byhand LABEL [--programs NAME ...] [--scripts FILE] [--verified FOLDER]``

The programs are those of ``verdicts.py``. Of each, two copies are made and the fixes of ``torchlint check
--fix`` applied to one. Several processes of both are started by ``python``, and each waits at the end of a
step of its optimizer until it is its turn: then it runs alone, untimed steps for a quarter of a second and
then as many as take half of one, the device synchronized at both ends. Nothing else is hooked, no process is
stopped by a signal, and nothing is set that the program does not set. The two processes of a pair take their
turns one after the other, before and after, after and before (A B B A), so that both cover the same steps.

The speed of these machines changes from one turn to the next, so that the ratio has an interval like that of
``verify`` (`torchlint.verify.stats`). How far the ratio would be repeated is told by two halves of the pairs,
each taken for a measurement of its own. The results go under LABEL into ``benchmarks/results/byhand.json``,
beside the ratio that ``verify`` gave: FOLDER is what ``verdicts.py --folder`` kept.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.verdicts import PROGRAMS, Program, given, own
from torchlint.verify import stats, words
from torchlint.verify.results import ORIGINAL, TOGETHER, Block, load

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "byhand.json"
WARM = 30
"""Steps of a process before its first turn."""
LEAD = 10
"""The fewest untimed steps of a turn,"""
LEAD_SECONDS = 0.25
"""and about how long they take: the batches that were loaded while others had their turns are used up first,
and threads that slept are spread over the processors again."""
TURN = 0.5
"""About how many seconds of a turn are timed,"""
FEWEST = 10
"""in at least so many steps."""
AGREES = 0.05
"""How far the two ratios may be apart."""
_UNSAFE = "--unsafe-fixes"


@dataclass(frozen=True)
class Command:
    """What follows ``torchlint verify`` on a command line, taken apart."""

    words: tuple[str, ...]
    """The script, or ``-m`` and a module, and the program's own arguments."""
    links: tuple[str, ...]
    """What lies beside the project and is only read."""
    unsafe: bool = False
    """Whether unsafe fixes are measured, too."""

    @staticmethod
    def of(program: Program) -> Command:
        """Return the command of a program."""
        words = list(program.command)
        split = words.index("--") if "--" in words else len(words)
        ours, theirs = words[:split], words[split + 1 :]
        links = tuple(after for before, after in itertools.pairwise(ours) if before == "--link")
        told = [word for before, word in itertools.pairwise(["", *ours]) if "--link" not in (before, word)]
        unsafe = _UNSAFE in told
        return Command((*(word for word in told if word != _UNSAFE), *theirs), links, unsafe)


class Turns:
    """What happens at the end of each step of the program's first optimizer.

    Args:
        order: waits for the next order, the untimed steps and those to time; None ends the program.
        answer: takes the seconds that they took; 0 when the process is ready for its first turn.
        synchronize: waits for the device.
        end: ends the program.
    """

    def __init__(
        self,
        order: Callable[[], tuple[int, int] | None],
        answer: Callable[[float], None],
        synchronize: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._order, self._answer, self._synchronize, self._end = order, answer, synchronize, end
        self._optimizer: object = None
        self._left, self._steps = WARM, 0
        self._began: float | None = None

    def __call__(self, optimizer: object, *_: Any) -> None:
        """Count a step."""
        if self._optimizer is None:
            self._optimizer = optimizer
        if optimizer is not self._optimizer:
            return
        self._left -= 1
        if self._left > 0:
            return
        self._synchronize()
        now = time.perf_counter()
        if self._steps and self._began is None:
            # The untimed steps are over.
            self._left, self._began = self._steps, time.perf_counter()
            return
        self._answer(0.0 if self._began is None else now - self._began)
        self._began = None
        order = self._order()
        if order is None:
            self._end()
        else:
            self._left, self._steps = order


def run_alone(answers: int) -> None:
    """Run the program that the rest of the command line names; orders come from the standard input.

    Args:
        answers: the descriptor that takes the seconds of a turn, a line each, and at the end the number of
            threads that the program's main thread has.
    """
    import torch
    from torch.optim import optimizer as optimizers

    sys.argv = sys.argv[sys.argv.index("--") + 1 :]
    module = sys.argv[0] == "-m"
    if module:
        del sys.argv[0]
    sys.path[0] = str(Path.cwd()) if module else str(Path(sys.argv[0]).resolve().parent)
    orders = sys.stdin

    def order() -> tuple[int, int] | None:
        line = orders.readline().split()
        return (int(line[0]), int(line[1])) if line else None

    def tell(number: float) -> None:
        os.write(answers, f"{number}\n".encode())

    def synchronize() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def end() -> None:
        # Asked earlier, it would settle what the program has left open.
        tell(torch.get_num_threads())
        sys.stdout.flush()
        os._exit(0)

    optimizers.register_optimizer_step_post_hook(Turns(order, tell, synchronize, end))
    if module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
    os._exit(0)


class Alone:
    """A process of a program, which waits for its turns. Leaving the ``with`` block ends it."""

    def __init__(self, folder: Path, command: Sequence[str], program: Program, log: Path) -> None:
        """Start it in ``folder``; what it prints goes to ``log``."""
        ours, theirs = os.pipe()
        worker = [sys.executable, "-m", "benchmarks.byhand", "--alone", str(theirs), "--", *command]
        entries = [*program.python_path, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._log = log
        with log.open("wb") as printed:
            self._process = subprocess.Popen(
                worker,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entries)},
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
            )
        os.close(theirs)
        self._answers = os.fdopen(ours)

    def __enter__(self) -> Alone:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._answers.close()

    def answer(self) -> float | None:
        """Return what it says next; None once the program is over."""
        line = self._answers.readline()
        return float(line) if line else None

    def ready(self) -> None:
        """Wait until it has warmed up.

        Raises:
            RuntimeError: it failed, or was over before.
        """
        if self.answer() is None:
            raise RuntimeError(f"failed:\n{self._log.read_text('utf-8', 'replace')[-2000:]}")

    def turn(self, lead: int, steps: int) -> float | None:
        """Return the seconds of so many steps after untimed ones; None if the program was over before."""
        self._order(f"{lead} {steps}")
        return self.answer()

    def end(self) -> int:
        """End the program, and say how many threads its main thread had; 0 if it was over before."""
        self._order("")
        return int(self.answer() or 0)

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return


def taken_in_turns(
    pairs: Sequence[Mapping[str, Callable[[int], float | None]]], steps: int, seconds: float
) -> list[Block]:
    """Return what the processes took, as blocks: each pair is a replicate, and its rounds are an A B B A.

    Args:
        pairs: for each pair and each variant, what runs a turn of so many steps.
        steps: those of a turn.
        seconds: how long to go on. It ends with a whole A B B A, or where a program is over.
    """
    found: list[Block] = []
    end = time.monotonic() + seconds
    for turn in itertools.count():
        if turn % 2 == 0 and time.monotonic() > end:
            break
        for number, pair in enumerate(pairs):
            order = (ORIGINAL, TOGETHER) if (turn + number) % 2 == 0 else (TOGETHER, ORIGINAL)
            for place, name in enumerate(order):
                taken = pair[name](steps)
                if taken is None:
                    return found
                found.append(Block(name, number, turn, place, steps, taken, None, None))
    return found


def measured(program: Program, processes: int, seconds: float) -> dict[str, Any]:
    """Return the times of a program before and after its fixes, and their ratio.

    Raises:
        RuntimeError: the program failed, or was over too soon.
    """
    command = Command.of(program)
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folders = {name: Path(place) / name / program.folder.name for name in (ORIGINAL, TOGETHER)}
        for folder in folders.values():
            shutil.copytree(program.folder, folder)
            for link in command.links:
                beside = folder / link
                if not beside.exists():
                    beside.symlink_to((program.folder / link).resolve())
        fix = [sys.executable, "-m", "torchlint", "check", "--fix", "--isolated", "--impact", "low"]
        subprocess.run(
            [*fix, *([_UNSAFE] if command.unsafe else []), "--advice", "on", "--no-cache", "."],
            cwd=folders[TOGETHER],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        pairs = [
            {
                name: stack.enter_context(
                    Alone(folder, command.words, program, Path(place) / f"{name}{number}.log")
                )
                for name, folder in folders.items()
            }
            for number in range(processes)
        ]
        every = [process for pair in pairs for process in pair.values()]
        for process in every:
            process.ready()
        first = [taken for process in every if (taken := process.turn(LEAD, FEWEST)) is not None]
        pace = FEWEST / median(first) if first else 0.0
        lead, steps = max(LEAD, round(LEAD_SECONDS * pace)), max(FEWEST, round(TURN * pace))
        turns = [{name: partial(process.turn, lead) for name, process in pair.items()} for pair in pairs]
        blocks = taken_in_turns(turns, steps, seconds)
        threads = {name: [pair[name].end() for pair in pairs] for name in folders}
    interval = stats.interval(blocks, ORIGINAL, TOGETHER)
    if interval is None:
        raise RuntimeError("the program was over before every process had two turns")
    halves = [[block for block in blocks if block.replicate % 2 == half] for half in (0, 1)]
    apart = [stats.interval(half, ORIGINAL, TOGETHER) for half in halves]
    return {
        "command": " ".join(program.command),
        "processes": processes,
        "lead": lead,
        "turns": max(block.round for block in blocks) + 1,
        "steps": steps,
        "milliseconds": {
            name: [round(_milliseconds(blocks, name, number), 3) for number in range(processes)]
            for name in folders
        },
        "threads": threads,
        "ratio": round(interval.ratio, 4),
        "interval": [round(interval.low, 4), round(interval.high, 4)],
        "halves": [round(half.ratio, 4) for half in apart if half is not None],
    }


def _milliseconds(blocks: Sequence[Block], name: str, number: int) -> float:
    """Return the usual step of one process."""
    own_blocks = [block for block in blocks if (block.variant, block.replicate) == (name, number)]
    return median(1e3 * block.wall / block.steps for block in own_blocks)


def verified(file: Path) -> dict[str, Any] | None:
    """Return what ``verify`` found of all fixes together: the ratio with its interval,
    and the time of a step.
    """
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
        run_alone(int(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("label")
    parser.add_argument(
        "--programs", nargs="*", default=[], choices=[path.stem for path in PROGRAMS.glob("*.py")]
    )
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--only", nargs="+", help="of the scripts, these")
    parser.add_argument("--processes", type=int, default=6, help="how many of each variant")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they take their turns")
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
                found = measured(program, arguments.processes, arguments.seconds)
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
