"""On code that nobody here wrote, the screen and the outline change no diagnostic.

The fixtures and the programs are held to that by test_rules.py; here it is what is installed beside
torchlint.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import libcst as cst
import pytest

from benchmarks.corpus import soundness
from benchmarks.corpus.packages import Package
from torchlint.options import LintSettings
from torchlint.outline import Outline
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

# What the development install has that mentions torch, with how many characters of it are checked.
INSTALLED = {
    "torch": 700_000,
    "torchvision": 250_000,
    "functorch": 40_000,
    "torchgen": 60_000,
    "sympy": 60_000,
    "matplotlib": 40_000,
}
LARGEST = 60_000


def chosen(package: Package, size: int) -> list[Path]:
    """Files of the package that mention torch, the same ones every time, of about so many characters."""

    def rank(path: Path) -> bytes:
        return hashlib.sha256(path.relative_to(package.folder).as_posix().encode()).digest()

    found: list[Path] = []
    for path in sorted(soundness.mentioning(package.folder), key=rank):
        if path.stat().st_size <= min(size, LARGEST):
            size -= path.stat().st_size
            found.append(path)
    return found


@pytest.mark.parametrize("name", INSTALLED)
def test_the_screen_and_the_outline_hide_nothing_of_what_is_installed(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    package = Package(name, "installed", Path(spec.origin).parent)
    paths = chosen(package, INSTALLED[name])
    outcome = soundness.check(package, paths, soundness.everything(), lambda text: None)
    assert outcome.files == len(paths) > 0
    assert outcome.spared > 50 * outcome.files
    assert outcome.differences == []


def test_a_difference_is_told(tmp_path: Path, use_rules: Callable[..., LintSettings]) -> None:
    """A screen that hides a finding, an outline in which a rule finds nothing, and what is no difference."""

    def find(call: cst.Call, module: Module) -> Iterator[Finding]:
        yield Finding(call, "a call")

    def find_in_full(call: cst.Call, module: Module) -> Iterator[Finding]:
        if not isinstance(module.tree, Outline):
            yield Finding(call, "a call in the full tree")

    declare = partial(rule, severity=WARNING, fix="none", on=cst.Call, remedy="Do not call")
    settings = use_rules(
        declare("TL901", "hidden", mentions=("nowhere",))(find),
        declare("TL902", "outlined", mentions=("torch",))(find_in_full),
        declare("TL903", "found", mentions=("torch",))(find),
    )
    (tmp_path / "a.py").write_text("import torch\nx = torch.zeros(3)\n")
    package = Package("a", "1", tmp_path)
    told: list[str] = []
    outcome = soundness.check(package, soundness.mentioning(tmp_path), settings, told.append)
    assert (outcome.files, outcome.spared, outcome.diagnostics) == (1, 1, 1)
    assert told == [
        "a.py: without the screen: TL901 at 2, TL902 at 2 in place of nothing",
        "a.py: without the outline: TL902 at 2 in place of nothing",
    ]
    assert outcome.differences == told
