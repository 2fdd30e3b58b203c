"""What becomes of a program that starts one rounding error away."""

from __future__ import annotations

import torch

from torchlint.verify.worker.trace import perturbed


def test_every_number_that_was_rounded_moves_by_its_last_bit() -> None:
    start = torch.rand(64, dtype=torch.float32) + 0.25
    moved = perturbed(start)
    assert (moved != start).all()
    assert torch.allclose(moved, start, rtol=2e-7, atol=0)
    assert (moved > start).any() and (moved < start).any()


def test_whole_numbers_stay() -> None:
    labels = torch.tensor([0.0, 1.0, -3.0, 40.0])
    assert torch.equal(perturbed(labels), labels)
    counts = torch.arange(5)
    assert torch.equal(perturbed(counts), counts)
