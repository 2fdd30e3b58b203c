"""The join of what waited at run time with what is said of the same lines; nothing is run on a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.runtime import arguments
from benchmarks.runtime.compare import compare

PROGRAM = """\
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        torch.manual_seed(0)
    return total
"""


def test_lines_are_told_by_who_speaks_of_them(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "loop.py").write_text(PROGRAM)
    ran = {"loop.py": [*range(3, 12)]}

    def status(*waited: int) -> dict[int, str]:
        seen = {"libraries": {"library": {"waited": {"loop.py": [*waited]}, "ran": ran}}}
        return {line.row: line.status for line in compare(json.loads(json.dumps(seen)), tmp_path)}

    assert status(9, 10)[9] == "both"
    assert status(9, 10)[10] == "seen"
    assert status(10)[9] == "said"


def test_what_a_scene_lacks_must_have_a_default() -> None:
    def wanted(image: object, sigma: object, strange: object = 1) -> None: ...

    scene = {"image": "an image"}
    assert arguments.filled(wanted, scene) == {"image": "an image", "sigma": (1.0, 1.0)}

    def stranger(image: object, strange: object) -> None: ...

    with pytest.raises(LookupError, match="strange"):
        arguments.filled(stranger, scene)
