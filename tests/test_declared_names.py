"""Names that the configuration declares: `host-names`, `device-names` and `known-async-helpers`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from torchlint.checker import check
from torchlint.config import Resolver
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.registry import catalogue
from torchlint.source import Source

CODES = tuple(code for code in catalogue() if code.startswith("TL2"))
HEAD = """\
import torch
from engine import h2d, utils
from engine.utils import async_tensor_h2d


class Runner:
    def execute_model(self, batch, rows, n, device: torch.device):
"""


def checked(body: str, **declared: Any) -> list[Diagnostic]:
    text = HEAD + indent(dedent(body), "        ") + "\n"
    return check(Source(Path("/project/engine/core.py"), text), LintSettings(rules=CODES, **declared))


def found(body: str, **declared: Any) -> list[str]:
    return [each.code for each in checked(body, **declared)]


# --- where tensors are --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "fits"),
    [
        (("lengths",), True),
        (("batch.lengths",), True),
        (("batch.*",), True),
        (("len*",), True),
        (("self.lengths",), False),
        (("length",), False),
        (("engine.lengths",), False),
    ],
)
def test_a_pattern_fits_the_last_parts_of_what_is_written(names: tuple[str, ...], fits: bool) -> None:
    body = "if batch.lengths > 3:\n    n = 1\nreturn n"
    assert found(body) == []
    assert found(body, device_names=names) == (["TL205"] if fits else [])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("self.table_gpu[[0, 2]] = 0", "TL215"),
        ("return [int(x) for x in self.ids_gpu]", "TL202"),
        ("return self.mask_gpu.nonzero()", "TL206"),
        ("return self.ids_gpu.cpu()", "TL203"),
    ],
)
def test_tensors_with_declared_names_are_on_the_device(body: str, code: str) -> None:
    assert code in found(body, device_names=("*_gpu",))


def test_tensors_with_declared_names_are_on_the_host() -> None:
    body = """\
    x = torch.zeros(3, device=device)
    if self.lengths.max() > 3:
        n = 1
    return x + self.lengths.max().item()
    """
    assert "TL205" in found(body, device_names=("lengths",))
    assert found(body, host_names=("lengths",)) == []
    assert found(body, host_names=("lengths",), device_names=("lengths",)) == []


def test_what_is_declared_to_be_on_the_host_waits_when_it_is_copied() -> None:
    body = "return self.lengths.to(device)"
    assert found(body) == []
    assert found(body, host_names=("self.lengths",)) == ["TL213"]
    assert found("return self.lengths.to(device, non_blocking=True)", host_names=("self.lengths",)) == []


def test_the_parts_of_a_buffer_can_be_declared() -> None:
    declared = {"host_names": ("*.np", "*.cpu"), "device_names": ("*.gpu",)}
    assert found("return self.lengths.gpu.nonzero()", **declared) == ["TL206"]
    assert found("if self.lengths.np.max() > 3:\n    n = 1\nreturn n", **declared) == []
    assert found("return self.lengths.cpu[:n].to(device)", **declared) == ["TL213"]
    assert found("return self.lengths.gpu.cpu()", **declared) == ["TL203"]


def test_only_tensors_are_declared() -> None:
    assert found("self.n_gpu = 3\nif self.n_gpu > 2:\n    n = 1\nreturn n", device_names=("*_gpu",)) == []
    assert (
        found("x = self.pool_gpu.grow(3)\nif x:\n    n = 1\nreturn n", device_names=("self.pool_gpu.*",))
        == []
    )


# --- helpers that copy --------------------------------------------------------------------------------------

HELPERS = ("async_tensor_h2d", "h2d.*")


@pytest.mark.parametrize(
    "call",
    [
        "async_tensor_h2d({})",
        "utils.async_tensor_h2d({}, torch.int32)",
        "h2d.copy({})",
        "async_tensor_h2d(data=[{}])",
    ],
)
def test_nothing_is_reported_of_what_a_helper_copies(call: str) -> None:
    data = "torch.tensor(rows, device=device)"
    assert found(f"return {data}", known_async_helpers=HELPERS) == ["TL213"]
    assert found(f"return {call.format(data)}", known_async_helpers=HELPERS) == []
    moved = call.format("torch.zeros(3).to(device)")
    assert found(f"return {moved}", known_async_helpers=HELPERS) == []
    assert found(
        f"return {call.format('self.x.sum().item()')}", known_async_helpers=HELPERS, device_names=("x",)
    )


def test_nothing_is_reported_in_the_body_of_a_helper() -> None:
    body = """\
    def async_tensor_h2d(data):
        return torch.tensor(data, device=device)
    return async_tensor_h2d(rows)
    """
    assert found(body) == ["TL213"]
    assert found(body, known_async_helpers=HELPERS) == []


def test_what_a_helper_gives_is_on_the_device() -> None:
    body = "x = async_tensor_h2d(rows)\nif x.sum() > 3:\n    n = 1\nreturn n"
    assert found(body, known_async_helpers=HELPERS) == ["TL205"]


@pytest.mark.parametrize(
    "body",
    [
        "return torch.tensor(rows, device=device)",
        "return torch.tensor([len(r) for r in rows]).to(device)",
        "x = torch.zeros(9, n, device=device)\nreturn x[torch.tensor([r + 1 for r in rows])]",
        "x = torch.zeros(9, 9, device=device)\nx[torch.tensor([r + 1 for r in rows])] = n + 1",
        "return torch.tensor(rows * 100_000).to(device, non_blocking=True)",
    ],
)
def test_the_help_names_the_first_helper(body: str) -> None:
    told = checked(body, known_async_helpers=("h2d.*", "async_tensor_h2d", "other"))
    helps = [each.remedy or "" for each in told if each.code in ("TL213", "TL214", "TL215")]
    assert helps and all("`async_tensor_h2d(…)`" in each for each in helps)
    assert all(each.fix is None for each in told if each.code in ("TL213", "TL214"))
    assert "async_tensor_h2d" not in str([each.remedy for each in checked(body)])


def test_the_names_come_from_the_config(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text(
        'host-names = ["*_cpu"]\ndevice-names = ["self.table"]\nknown-async-helpers = ["async_tensor_h2d"]\n'
    )
    settings = Resolver(catalogue(), directory=tmp_path).lint(tmp_path / "a.py")
    assert settings.host_names == ("*_cpu",)
    assert settings.device_names == ("self.table",)
    assert settings.known_async_helpers == ("async_tensor_h2d",)
