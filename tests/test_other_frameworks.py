"""Programs of other frameworks, which look like those of torch but for where their names come from.

The fixtures of all rules are read with another framework in the place of torch: no rule finds anything in
them, whatever their classes and methods are called.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchlint import registry
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.semantics.conventions import imports_torch, of_other_framework
from torchlint.semantics.model import build
from torchlint.semantics.names import Names
from torchlint.source import Source
from torchlint.syntax import SyntaxTree

FIXTURES = Path(__file__).parent.parent / "fixtures"
BAD = sorted(path for path in FIXTURES.glob("TL*/bad*.py") if path.name.count(".") == 1)
FRAMEWORKS = ("megengine", "oneflow", "mindspore", "jittor", "paddle", "mxnet.gluon", "flax", "tinygrad")
# About the comments of the linter, not about torch.
ABOUT_NO_TORCH = frozenset({"TL002", "TL003"})
RULES = tuple(sorted(registry.rules()))
_IMPORT = re.compile(
    r"^(?P<before>[ \t]*(?:import|from)[ ]+)torch\b(?P<part>[\w.]*)(?P<behind>.*)$", re.MULTILINE
)


def of_framework(program: str, framework: str) -> str:
    """The program with its imports of torch from another framework, under the names that they had."""

    def imported(match: re.Match[str]) -> str:
        before, part, behind = match["before"], match["part"], match["behind"]
        if before.strip() == "from" or behind.lstrip().startswith("as "):
            return f"{before}{framework}{part}{behind}"
        return f"{before}{framework} as torch"

    return _IMPORT.sub(imported, program)


def names_of(program: str) -> Names:
    return build(SyntaxTree(program), LintSettings()).names


def findings(program: str, path: Path) -> list[str]:
    settings = LintSettings(rules=RULES, fixable=frozenset(RULES), unsafe_fixes=True)
    return [f"{d.code} in line {d.start.row}" for d in check(Source(path, program), settings)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_rule_takes_another_framework_for_torch(framework: str) -> None:
    """Each fixture is read with one of the frameworks, so that all of them are met by many rules."""
    wrong: dict[str, list[str]] = {}
    tried = 0
    for path in BAD[FRAMEWORKS.index(framework) :: len(FRAMEWORKS)]:
        before = path.read_text(encoding="utf-8")
        program = of_framework(before, framework)
        if program == before or not of_other_framework(names_of(program)):
            continue  # It uses nothing of torch by name, or other libraries that are built on torch.
        tried += 1
        found = [each for each in findings(program, path) if each[:5] not in ABOUT_NO_TORCH]
        if found:
            wrong[str(path)] = found
    assert wrong == {}
    assert tried > 30


def test_fixtures_of_all_families_are_tried() -> None:
    tried = {
        path.parent.name[:3]
        for path in BAD
        if of_other_framework(names_of(of_framework(path.read_text(encoding="utf-8"), "megengine")))
    }
    assert tried >= {f"TL{family}" for family in range(1, 9)}


def test_no_fix_imports_torch_into_a_file_that_does_not_use_it() -> None:
    brought_in = []
    for path in BAD:
        fixed = path.with_suffix(".fixed.py")
        if not fixed.exists() or imports_torch(names_of(path.read_text(encoding="utf-8"))):
            continue
        if imports_torch(names_of(fixed.read_text(encoding="utf-8"))):
            brought_in.append(path)
    assert brought_in == []


@pytest.mark.parametrize(
    ("imports", "other"),
    [
        ("import torch", False),
        ("import megengine as mge", True),
        ("import megengine.module as M", True),
        ("from megengine import module as M", True),
        ("from tensorflow.keras import *", True),
        ("def f():\n    import paddle", True),
        ("import needle as torch", True),
        ("from needle import nn", True),
        ("import needle.nn.functional as F", True),
        ("import needle.nn as nn", True),
        ("import megengine\nimport torch", False),
        ("import megengine\ndef f():\n    import torch", False),
        ("import tensorflow as tf\nfrom transformers import Trainer", False),
        ("import tensorflow as tf\nimport pytorch_lightning as pl", False),
        ("import cv2", False),
        ("from .compat import nn", False),
        ("from compat.layers import Block", False),
        ("from helpers import *\nimport tensorflow as tf\nx = torch.ones(3)", False),
        ("", False),
    ],
)
def test_of_other_framework(imports: str, other: bool) -> None:
    assert of_other_framework(names_of(imports + "\n")) is other


@pytest.mark.parametrize("imports", ["from .compat import nn", "from mypackage.compat import nn"])
def test_a_module_of_unknown_origin_gets_no_fix_that_imports_torch(imports: str) -> None:
    program = f"""{imports}


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = [nn.Linear(width, width) for _ in range(3)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
    settings = LintSettings(rules=RULES, fixable=frozenset(RULES), unsafe_fixes=True)
    found = check(Source(Path("net.py"), program), settings)
    assert not any("torch" in edit.content for each in found if each.fix for edit in each.fix.edits)
