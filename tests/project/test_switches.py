"""Switches of a backend that several files of a project set: each file is told of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import cli
from torchlint.commands import build

SWITCH = "import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = True\n"


def test_a_deprecated_switch_is_told_of_in_each_file_that_sets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"pyproject.toml": "", "train.py": SWITCH, "evaluate.py": f"{SWITCH}\nimport train\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    words = ["check", "--select", "TL502", "--advice", "on", "--impact", "low", "--target-torch", "2.9"]
    words += ["--output-format", "json", "--no-cache", "."]
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), words, prog_name="torchlint")
    found = [(Path(item["filename"]).name, item["location"]["row"]) for item in json.loads(result.stdout)]
    assert found == [("evaluate.py", 3), ("train.py", 3)]
