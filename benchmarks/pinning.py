"""What pinned memory is worth with and without worker processes (TL102); prints one JSON document.

    python -m benchmarks.pinning [--seconds 0.3] > benchmarks/results/pinning-h200.json

Milliseconds a step of: fetch a batch from a DataLoader, copy it to the GPU (as the loader's setting allows:
blocking for pageable memory, and pinned both blocking and with non_blocking=True), and compute on it. Two
workloads for the GPU: none (the copy alone), and one that takes about as long as a small training step.
Cases take turns, so that drift hits all alike; the medians are given, with the quartiles.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

PIXELS = 112
"""Pixels on each side of an image."""


class Rows(Dataset):  # type: ignore[misc]
    """Rows of a store in memory, as a TensorDataset has them."""

    def __init__(self) -> None:
        self.store = torch.randn(512, 3, PIXELS, PIXELS)

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.store[index % 512], index % 10


def steps(loader: DataLoader[Any], non_blocking: bool, work: bool) -> Iterator[torch.Tensor]:
    """Take steps over the batches of a loader, with or without work for the device."""
    weight = torch.randn(4096, 4096, device="cuda")
    for images, labels in loader:
        images = images.to("cuda", non_blocking=non_blocking)
        labels = labels.to("cuda", non_blocking=non_blocking)
        total = images.sum() + labels.sum()
        if work:
            for _ in range(8):
                weight = (weight @ weight).clamp(-1, 1)
        yield total


def timed(runner: Iterator[torch.Tensor], count: int) -> float:
    """Return milliseconds a step takes, over so many steps."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        next(runner)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count * 1e3


def main() -> None:
    """Time every combination."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    data = Rows()
    results = []
    for workers, batch, work in itertools.product((0, 4), (8, 64, 256), (False, True)):
        variants = {
            "pageable": (False, False),
            "pinned": (True, False),
            "pinned, non_blocking": (True, True),
        }
        runners = {
            name: steps(DataLoader(data, batch_size=batch, num_workers=workers, pin_memory=pin), ahead, work)
            for name, (pin, ahead) in variants.items()
        }
        times: dict[str, list[float]] = {name: [] for name in runners}
        for runner in runners.values():
            timed(runner, 10)
        count = max(3, int(0.1 / max(timed(runners["pageable"], 5) / 1e3, 1e-4)))
        end = time.perf_counter() + seconds * len(runners)
        while time.perf_counter() < end:
            for name, runner in runners.items():
                times[name].append(timed(runner, count))
        for name, taken in times.items():
            low, middle, high = statistics.quantiles(taken, n=4) if len(taken) > 1 else (taken[0],) * 3
            results.append(
                {
                    "workers": workers,
                    "batch": batch,
                    "megabytes": round(batch * 3 * PIXELS**2 * 4 / 1e6, 1),
                    "work": work,
                    "memory": name,
                    "ms": round(middle, 4),
                    "quartiles": [round(low, 4), round(high, 4)],
                    "speedup": round(statistics.median(times["pageable"]) / middle, 3),
                    "blocks": len(taken),
                }
            )
        del runners
    device = torch.cuda.get_device_name()
    print(json.dumps({"device": device, "torch": torch.__version__, "results": results}, indent=1))


if __name__ == "__main__":
    main()
