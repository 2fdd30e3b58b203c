"""What the configuration declares to run at every step, or seldom: `hot` and `cold`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchlint import registry
from torchlint.checker import check
from torchlint.config import Resolver
from torchlint.diagnostics import Diagnostic, Impact
from torchlint.options import LintSettings
from torchlint.source import Source

PROGRAM = """\
import torch


class Engine:
    def __init__(self, device: torch.device):
        self.device = device

    def advance(self, batch):
        return torch.tensor(batch.rows, device=self.device)

    def execute_model(self, batch):
        return torch.tensor(batch.rows, device=self.device)


def collect(batch, device: torch.device):
    return torch.tensor(batch.rows, device=device)
"""
ADVANCE, EXECUTE, COLLECT = 9, 12, 16


def rows(*, hot: tuple[str, ...] = (), cold: tuple[str, ...] = ()) -> list[int]:
    settings = LintSettings(
        rules=("TL213",),
        hot=tuple(("/project", pattern) for pattern in hot),
        cold=tuple(("/project", pattern) for pattern in cold),
    )
    found = check(Source(Path("/project/engine/core.py"), PROGRAM), settings)
    return _shown(found)


def _shown(found: list[Diagnostic]) -> list[int]:
    """The rows of what is shown by default."""
    return [each.start.row for each in found if each.impact is not Impact.LOW]


@pytest.mark.parametrize(
    ("hot", "cold", "expected"),
    [
        ((), (), [EXECUTE]),
        (("engine/**::*.advance",), (), [ADVANCE, EXECUTE]),
        (("::Engine.advance",), (), [ADVANCE, EXECUTE]),
        (("engine/*.py::collect",), (), [EXECUTE, COLLECT]),
        (("engine/*.py::Engine",), (), [ADVANCE, EXECUTE]),
        (("core.py",), (), [ADVANCE, EXECUTE, COLLECT]),
        (("other/**::*.advance",), (), [EXECUTE]),
        ((), ("engine/**::*.execute_model",), []),
        ((), ("engine/",), []),
        (("engine/**::*.execute_model",), ("engine/",), [EXECUTE]),
    ],
)
def test_declared_functions(hot: tuple[str, ...], cold: tuple[str, ...], expected: list[int]) -> None:
    assert rows(hot=hot, cold=cold) == expected


def test_the_constructor_of_a_hot_class_runs_once() -> None:
    program = PROGRAM.replace(
        "self.device = device\n",
        "self.device = device\n        self.x = torch.tensor([1, 2], device=device)\n",
        1,
    )
    settings = LintSettings(rules=("TL213",), hot=(("/project", "::Engine"),))
    found = check(Source(Path("/project/engine/core.py"), program), settings)
    assert _shown(found) == [ADVANCE + 1, EXECUTE + 1]


def test_patterns_come_from_the_config(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text('hot = ["engine/**::*.advance"]\ncold = ["tools/"]\n')
    resolver = Resolver(registry.rules(), directory=tmp_path)
    settings = resolver.lint(tmp_path / "engine" / "core.py")
    assert settings.hot == ((tmp_path.as_posix(), "engine/**::*.advance"),)
    assert settings.cold == ((tmp_path.as_posix(), "tools/"),)
    only = replace(settings, rules=("TL213",))
    found = check(Source(tmp_path / "engine" / "core.py", PROGRAM), only)
    assert _shown(found) == [ADVANCE, EXECUTE]
    assert check(Source(tmp_path / "tools" / "core.py", PROGRAM), only) == []
