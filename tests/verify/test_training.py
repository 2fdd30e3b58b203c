"""Whether a variant that rounds otherwise trains the same as the original."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from torchlint.verify import judge
from torchlint.verify.measure import Pool, Session, Settings
from torchlint.verify.processes import Nurseries, machine
from torchlint.verify.results import AGAIN, ORIGINAL, Agreement, Variant
from torchlint.verify.subjects import Script
from torchlint.verify.workspace import Workspace

STEPS = 200
TRAIN = """
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
truth = torch.randn(16, 1)
for step in range(5000):
    inputs = torch.randn(64, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        loss = nn.functional.mse_loss(model(inputs), (inputs @ truth).tanh())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HALF = TRAIN.replace("enabled=False", "enabled=True")
# The same at first, but its updates vanish.
SLOWED = HALF + "    optimizer.param_groups[0]['lr'] *= 0.9\n"


def curve(number: int, end: float = 0.1, noise: float = 0.02) -> list[float]:
    """Losses that fall from 1 to ``end`` from a seed, and vary."""
    draw = random.Random(number)
    last = end + draw.gauss(0, noise)
    return [last + (1 - last) * math.exp(-step / 20) + draw.gauss(0, noise) for step in range(STEPS)]


@pytest.mark.parametrize(
    ("fixed", "same"),
    [
        (lambda seed: curve(100 + seed), True),
        (lambda seed: curve(seed), True),
        (lambda seed: curve(seed, end=0.3), False),
        (lambda seed: curve(seed, end=0.0, noise=0.0), False),
        (lambda seed: [*curve(seed)[:-1], math.nan], False),
        (lambda seed: curve(seed)[:10], None),
        (lambda seed: [], None),
    ],
    ids=["another course", "identical", "worse", "better", "diverges", "too short", "failed"],
)
def test_training_is_the_same_within_what_seeds_make(
    fixed: Callable[[int], list[float]], same: bool | None
) -> None:
    found, reason = judge.training([curve(seed) for seed in range(3)], [fixed(seed) for seed in range(3)])
    assert found is same, reason
    assert reason


def test_nothing_is_said_of_an_original_that_does_not_train() -> None:
    still = [curve(seed, end=1.0, noise=0.1) for seed in range(3)]
    assert judge.training(still, still)[0] is None


def test_few_variants_that_train_the_same_are_missed() -> None:
    missed = sum(
        not judge.training(
            [curve(10 * trial + seed) for seed in range(3)],
            [curve(10 * trial + seed + 5) for seed in range(3)],
        )[0]
        for trial in range(200)
    )
    assert missed <= 0.15 * 200, f"{missed} of 200"


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ({"loss of step 1": 1e-3, "loss of step 8": 0.5}, True),
        ({"loss of step 1": 0.4, "loss of step 8": 0.5}, False),
        ({"loss of step 1": 1e-3, "output of step 2": math.inf}, False),
        ({"loss of step 3": 1e-3}, False),
        ({}, False),
    ],
)
def test_only_what_begins_with_rounding_is_trained(differences: dict[str, float], expected: bool) -> None:
    assert judge.rounds_otherwise(differences) is expected


def test_a_precision_that_trains_passes_and_one_that_does_not_is_rejected(
    nurseries: Nurseries, tmp_path: Path, scratch: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    script = Script(Workspace(tmp_path / "train.py", scratch), device="cpu", directory=tmp_path)
    texts = {"half": HALF, "slowed": SLOWED}
    script.contents = {name: {PurePosixPath("train.py"): text.encode()} for name, text in texts.items()}
    with Pool(script, nurseries) as pool:
        found_machine = machine("cpu", scratch, nurseries.get(0))
        session = Session(pool, Settings(device="cpu", budget=600.0), found_machine, scratch)
        session.examine_original()
        session.examine([Variant(name) for name in texts])
        before = {name: item.sameness.agreement for name, item in session.examinations.items()}
        assert before["half"] is before["slowed"] is Agreement.DIFFERENT
        session.train()
        after = session.measurement()
    found = {name: after.examination(name) for name in (*texts, AGAIN)}
    sameness = {name: item.sameness for name, item in found.items() if item is not None}
    assert sameness["half"].agreement is Agreement.TRAINS, sameness["half"].reason
    assert "trains the same" in sameness["half"].reason
    assert sameness["slowed"].agreement is Agreement.DIFFERENT, sameness["slowed"].reason
    assert "trains otherwise" in sameness["slowed"].reason
    assert {item.variant for item in after.curves} == {ORIGINAL, *texts}
    one, other = [item.losses for item in after.curves if item.variant == ORIGINAL][:2]
    assert one != other, "the program sets a seed, which is another in each run"
