"""Contexts in which the host may wait for the device: `allowed-sync-contexts`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from torchlint.checker import check
from torchlint.config import Resolver
from torchlint.options import LintSettings
from torchlint.registry import catalogue
from torchlint.source import Source

WAITING = tuple(code for code, rule in catalogue().items() if rule.synchronizes)
HEAD = """\
import torch
from contextlib import nullcontext
from engine.utils import gpu_sync_allowed, gpu_sync_allowed as may_wait
from engine import utils


class Runner:
    def __init__(self, device: torch.device):
        self.device = device

"""


def found(program: str, *names: str) -> list[tuple[str, int]]:
    """Codes and rows (of the program, from 1 on) of what is found with these contexts allowed."""
    text = HEAD + indent(dedent(program), "    ")
    settings = LintSettings(rules=("TL002", *WAITING), allowed_sync_contexts=names or ("gpu_sync_allowed",))
    checked = check(Source(Path("/project/engine/core.py"), text), settings)
    return [(each.code, each.start.row - HEAD.count("\n")) for each in checked]


def test_all_kinds_of_waits_can_be_allowed() -> None:
    assert {"TL103", "TL202", "TL203", "TL205", "TL206", "TL207", "TL210", "TL213", "TL214", "TL215"} <= {
        *WAITING
    }
    assert not {"TL102", "TL209", "TL211", "TL513"} & {*WAITING}


IN_BLOCK = """\
def execute_model(self, rows):
    {header}:
        sizes = torch.tensor(rows, device=self.device)
    return torch.tensor([r + 1 for r in rows], device=self.device)
"""


@pytest.mark.parametrize(
    "header",
    [
        "with gpu_sync_allowed()",
        "with gpu_sync_allowed('sizes'), torch.no_grad()",
        "with may_wait()",
        "with utils.gpu_sync_allowed()",
        "with gpu_sync_allowed() if self.strict else nullcontext()",
    ],
)
def test_what_waits_in_such_a_block_is_not_reported(header: str) -> None:
    assert found(IN_BLOCK.format(header=header)) == [("TL213", 4)]


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (("utils.gpu_sync_allowed",), True),
        (("engine.utils.gpu_sync_allowed",), True),
        (("gpu_*_allowed",), True),
        (("sync_allowed",), False),
        (("other.gpu_sync_allowed",), False),
        (("gpu_sync",), False),
    ],
)
def test_patterns_fit_what_is_imported(names: tuple[str, ...], allowed: bool) -> None:
    rows = [row for code, row in found(IN_BLOCK.format(header="with may_wait()"), *names) if code == "TL213"]
    assert rows == ([4] if allowed else [3, 4])


def test_what_waits_under_such_a_decorator_is_not_reported() -> None:
    program = """\
    @gpu_sync_allowed()
    def execute_model(self, rows):
        def send():
            return torch.tensor(rows, device=self.device)
        return send()
    """
    assert found(program) == []


def test_what_is_only_called_in_such_a_block_is_not_reported() -> None:
    program = """\
    def execute_model(self, rows):
        with gpu_sync_allowed():
            a = self._sizes(rows)
            c = self._starts(rows)
        return a + self._starts(rows) + c

    def _sizes(self, rows):
        return self._send(rows)

    def _send(self, rows):
        return torch.tensor(rows, device=self.device)

    def _starts(self, rows):
        return torch.tensor(rows, device=self.device)
    """
    assert found(program) == [("TL213", 14)]


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        ("y = x + 1", False),
        ("pass", False),
        ("self.y = x.shape[0] + 1\ny = self.y", False),
        ("y = rows.total", True),
        ("y = 0 < x < 1", True),
        ("y = 0 < x.shape[0] < 9", False),
        ("y = 3 in x", True),
        ("y = '%s' % x", True),
        ("y = x % 3", False),
        ("y = x.sum(-1).unsqueeze(0)", False),
        ("y = torch.zeros(4, device=self.device)", False),
        ("y = torch.cat([x, x])\ny.mul_(2)", False),
        ("n = len(rows)\ny = x[:, 0]", False),
        ("for i in range(3):\n    y = x[i]", False),
        ("y = x if x is not None else None", False),
        ("n = x.sum().item()", True),
        ("n = rows.item()", True),
        ("n = int(rows)", True),
        ("y = rows.to(self.device)", True),
        ("y = torch.tensor(rows, device=self.device)", True),
        ("y = self.plan(rows)", True),
        ("y = utils.plan(rows)", True),
        ("y = x[rows]", True),
        ("x[0] = 1.0", True),
        ("y = x.nonzero()", True),
        ("y = torch.where(x > 0)", True),
        ("y = torch.zeros(rows, device=self.device)", True),
        ("y = x.repeat_interleave(rows)", True),
        ("torch.cuda.synchronize()", True),
        ("if x.any():\n    y = 1", True),
        ("y = f'{x}'", True),
        ("print(x)", True),
        ("y = torch.linalg.inv(x)", True),
        ("for row in rows:\n    y = row", True),
        ("yield x", True),
    ],
)
@pytest.mark.parametrize("decorated", [False, True])
def test_a_context_that_allows_nothing_is_reported(body: str, waits: bool, decorated: bool) -> None:
    head = "def advance(self, x: torch.Tensor, rows):\n"
    if decorated:
        program = "@gpu_sync_allowed\n" + head + indent(body, "    ") + "\n"
    else:
        program = head + "    with gpu_sync_allowed():\n" + indent(body, "        ") + "\n"
    row = 1 if decorated else 2
    assert found(program) == ([] if waits else [("TL002", row)])


def test_the_names_come_from_the_config(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text('allowed-sync-contexts = ["gpu_sync_allowed"]\n')
    settings = Resolver(catalogue(), directory=tmp_path).lint(tmp_path / "a.py")
    assert settings.allowed_sync_contexts == ("gpu_sync_allowed",)
