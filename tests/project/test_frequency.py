"""How often a place runs that another file of the project leads to."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from torchlint import cli
from torchlint.commands import build

JOURNAL = dedent("""\
    import torch


    def clear():
        torch.cuda.empty_cache()


    def fresh():
        return torch.arange(8).cuda()
    """)
TRAIN = dedent("""\
    import torch
    from torch import nn

    from journal import clear, fresh


    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            clear()


    @torch.no_grad()
    def generate(model: nn.Module, tokens):
        for _ in range(100):
            logits = model(tokens)
            tokens = torch.cat((tokens, logits[:, -1:].argmax(-1)), 1)
            fresh()
        return tokens
    """)


def test_a_place_runs_as_often_as_other_files_call_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"pyproject.toml": "", "journal.py": JOURNAL, "train.py": TRAIN}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    command = build(cli._COMMANDS, cli._DEFAULT)
    words = [
        "--isolated",
        "--select",
        "TL201,TL601",
        "--impact",
        "low",
        "--output-format",
        "json",
        "journal.py",
    ]
    found = json.loads(CliRunner().invoke(command, words, prog_name="torchlint").stdout)
    assert [(item["code"], item["frequency"]) for item in found] == [("TL601", "step"), ("TL201", "token")]
