"""What the hooks cost by which ``bench`` and ``verify`` find the steps of a program and time them.

    python -m benchmarks.hooks [--device cuda] [--json benchmarks/results/hooks-h200.json]

Two programs of many small modules, so that it is the interpreter that takes the time, are made so deep that
a step takes about 5 ms: one trains (an optimizer step ends a step), one only infers (a forward pass does).
Blocks of steps that a measuring process's own code ends and times are interleaved with blocks that are timed
by hand in a plain loop, with none of its hooks in torch, and with those again, which shows the noise. One
process runs them all, on the same module: what is left to differ is the hooks. Exits with 1 unless the 95 %
interval of each program's overhead lies below 1 % of a step.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import click
import torch
from torch import nn

from torchlint.verify import stats
from torchlint.verify.awake import processors_awake
from torchlint.verify.plan import BLOCK_SECONDS
from torchlint.verify.results import Block, Interval
from torchlint.verify.worker.blocks import Blocks
from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.channel import Channel
from torchlint.verify.worker.device import Device, find
from torchlint.verify.worker.machine import describe
from torchlint.verify.worker.steps import Steps

STEP_SECONDS = 0.005
BOUND = 0.01
"""The share of a step that the hooks may take."""
HOOKED, BY_HAND, AGAIN = "hooks", "by hand", "by hand again"
WIDTH, BATCH = 32, 8
TRIALS = 2
LEAD = 4
"""Steps before each block that are not timed: until the hooks are where they stay, and what their coming and
going has left in the caches of the interpreter and the processor is over."""

Step = Callable[[], None]


def layers(depth: int) -> nn.Module:
    """Return a model of modules that have next to nothing to do."""
    return nn.Sequential(
        *(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(depth))
    )


@dataclass(frozen=True)
class Program:
    """A program of ``modules`` modules that runs one step when it is called."""

    step: Step
    modules: int


def training(depth: int, device: str) -> Program:
    """Return a model with its optimizer."""
    model = layers(depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    inputs = torch.randn(BATCH, WIDTH, device=device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()

    return Program(step, sum(1 for _ in model.modules()))


def inference(depth: int, device: str) -> Program:
    """Return a model that is only called."""
    model = layers(depth).to(device).eval()
    inputs = torch.randn(BATCH, WIDTH, device=device)

    def step() -> None:
        with torch.inference_mode():
            model(inputs)

    return Program(step, sum(1 for _ in model.modules()))


PROGRAMS: Mapping[str, tuple[Callable[[int, str], Program], str]] = {
    "training": (training, "optimizer"),
    "inference": (inference, "forward"),
}
"""How each program is made, and what its steps are found by."""


class Orders(Channel):
    """Asks for one block after the other, and keeps their times."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.taken: list[float] = []

    def receive(self) -> dict[str, Any]:
        """Return the next order: the block comes after steps that are not timed."""
        return {"do": "block", "lead": LEAD, "steps": self._steps}

    def send(self, **message: Any) -> None:
        """Take what the boundary says of the last order; of the first step it only says that it is over."""
        self.taken += [message["wall"]] if message["event"] == "block" else []


class Hooked:
    """Times blocks of a program as a measuring process does."""

    def __init__(self, program: Program, by: str, device: Device, steps: int) -> None:
        self._step, self._by, self._orders = program.step, by, Orders(steps)
        self._boundary = Blocks(self._orders, device, Stopper(), time.perf_counter())

    def block(self) -> float:
        """Put the hooks in, run steps until a block is over, and take the hooks out."""
        before = len(self._orders.taken)
        steps = Steps(self._by, self._boundary)
        while len(self._orders.taken) == before:
            self._step()
        steps.close()
        return self._orders.taken[-1]


def by_hand(program: Program, device: Device, steps: int) -> float:
    """Return the time of a block that a plain loop runs."""
    for _ in range(LEAD):
        program.step()
    device.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        program.step()
    device.synchronize()
    return time.perf_counter() - began


def fitting_depth(make: Callable[[int, str], Program], device: Device) -> int:
    """Return how many layers take ``STEP_SECONDS`` where nothing else runs."""
    depth = 32
    for _ in range(TRIALS):
        program = make(depth, device.kind)
        seconds = min(by_hand(program, device, 4) / 4 for _ in range(20))
        depth = max(1, round(depth * STEP_SECONDS / seconds))
    return depth


@dataclass(frozen=True)
class Outcome:
    """What was measured of one program."""

    depth: int
    modules: int
    step_seconds: float
    overhead: Interval
    """The time with hooks over the time by hand."""
    noise: Interval
    """The time by hand over the time by hand."""
    blocks: Sequence[Block]

    @property
    def within(self) -> bool:
        """Whether the overhead is surely below the bound."""
        return self.overhead.high < 1 + BOUND


def measure(name: str, device: Device, replicates: int, rounds: int) -> Outcome:
    """Time one program; each replicate makes it afresh."""
    make, by = PROGRAMS[name]
    depth = fitting_depth(make, device)
    steps = math.ceil(BLOCK_SECONDS / STEP_SECONDS)
    blocks: list[Block] = []
    for replicate in range(replicates):
        program = make(depth, device.kind)
        hooked = Hooked(program, by, device, steps)
        ways: dict[str, Callable[[], float]] = {
            HOOKED: hooked.block,
            BY_HAND: lambda program=program: by_hand(program, device, steps),  # type: ignore[misc]
            AGAIN: lambda program=program: by_hand(program, device, steps),  # type: ignore[misc]
        }
        for turn in range(-2, rounds):
            order = list(ways) if turn % 2 == 0 else list(ways)[::-1]
            taken = [(way, ways[way]()) for way in order]
            if turn >= 0:
                blocks += [
                    Block(way, replicate, turn, place, steps, wall) for place, (way, wall) in enumerate(taken)
                ]
    overhead = stats.interval(blocks, HOOKED, BY_HAND)
    noise = stats.interval(blocks, AGAIN, BY_HAND)
    assert overhead is not None and noise is not None
    step_seconds = median(block.wall / block.steps for block in blocks if block.variant == BY_HAND)
    return Outcome(depth, program.modules, step_seconds, overhead, noise, blocks)


def told(name: str, outcome: Outcome) -> str:
    """Return one line about a program."""
    verdict = "below" if outcome.within else "not surely below"
    return (
        f"{name}: {outcome.modules} modules, {1000 * outcome.step_seconds:.2f} ms a step; the hooks take "
        f"{_share(outcome.overhead)} of it, {verdict} {BOUND:.0%} (by hand twice: {_share(outcome.noise)})"
    )


def _share(interval: Interval) -> str:
    ends = f"{100 * (interval.low - 1):+.2f} to {100 * (interval.high - 1):+.2f}"
    return f"{100 * (interval.ratio - 1):+.2f} % ({ends})"


def _raw(blocks: Sequence[Block]) -> dict[str, list[list[float]]]:
    """Return seconds of the blocks, for each way by replicate and round."""
    found: dict[str, list[list[float]]] = {}
    for block in sorted(blocks, key=lambda block: (block.replicate, block.round)):
        rows = found.setdefault(block.variant, [])
        rows += [[]] if len(rows) == block.replicate else []
        rows[-1].append(block.wall)
    return found


def document(device: Device, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Return what is kept: ratios are time with hooks over time by hand, times are in seconds."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit or None,
        "machine": describe(device),
        "bound": BOUND,
        "programs": {
            name: {
                "depth": outcome.depth,
                "modules": outcome.modules,
                "step_seconds": outcome.step_seconds,
                "overhead": asdict(outcome.overhead),
                "noise": asdict(outcome.noise),
                "within": outcome.within,
                "steps_per_block": outcome.blocks[0].steps,
                "block_seconds": _raw(outcome.blocks),
            }
            for name, outcome in outcomes.items()
        },
    }


def _text(data: Mapping[str, Any]) -> str:
    """Return JSON with the times of one replicate on one line."""
    indented = json.dumps(data, indent=1)
    return re.sub(r"\[[-\d.e,\s]+\]", lambda found: " ".join(found[0].split()), indented) + "\n"


@click.command()
@click.option("--device", "wanted", default="auto", show_default=True, help="cpu, cuda or mps.")
@click.option("--replicates", type=click.IntRange(2), default=5, show_default=True)
@click.option("--rounds", type=click.IntRange(2), default=100, show_default=True)
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Where to keep it all.")
def main(wanted: str, replicates: int, rounds: int, file: Path | None) -> None:
    """Measure what the hooks of bench and verify cost, as a share of a step of about 5 ms."""
    try:
        device = find(wanted)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if device.kind == "cpu":
        # Threads would not help with operations as small as these, and what else runs would disturb them.
        torch.set_num_threads(1)
    outcomes = {}
    for name in PROGRAMS:
        with processors_awake():
            outcomes[name] = measure(name, device, replicates, rounds)
        click.echo(told(name, outcomes[name]))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_text(document(device, outcomes)), encoding="utf-8")
    sys.exit(0 if all(outcome.within for outcome in outcomes.values()) else 1)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.hooks")
