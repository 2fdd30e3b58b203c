"""TL507 asks the other files who compares types: the old `GradScaler` is a subclass of the new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint.commands.check import command

FACTORY = """
import torch


def make():
    return torch.cuda.amp.GradScaler()
"""
USER = """
import torch
from factory import make


def use(scaler: torch.cuda.amp.GradScaler):
    {}


use(make())
"""


@pytest.mark.parametrize(
    ("use", "grade"),
    [
        ("print(isinstance(scaler, torch.cuda.amp.GradScaler))", "unsafe"),
        ("print([torch.cuda.amp.GradScaler].index(type(scaler)))", "unsafe"),
        ("print(scaler.get_scale())", "safe"),
    ],
)
def test_fix_of_a_scaler(tmp_path: Path, use: str, grade: str) -> None:
    (tmp_path / "factory.py").write_text(FACTORY)
    (tmp_path / "main.py").write_text(USER.format(use))
    options = ("--isolated", "--no-cache", "-j", "1", "--target-torch", "2.6", "--select", "TL507")
    result = CliRunner().invoke(command, [*options, "--output-format", "json", str(tmp_path)])
    found = [item for item in json.loads(result.stdout) if item["filename"].endswith("factory.py")]
    assert [item["fix"]["applicability"] for item in found] == [grade]
