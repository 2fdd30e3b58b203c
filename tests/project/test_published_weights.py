"""What other files say of the weights that a model is filled with."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from torchlint import cli
from torchlint.commands import build

BLOCKS = dedent("""\
    from torch import nn


    def block():
        return nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    """)
LIBRARY = dedent("""\
    from blocks import block

    model = block()
    """)
TRAINED = LIBRARY + dedent("""\
    for images in batches:
        model(images).mean().backward()
    """)
RESUMED = TRAINED + dedent("""\
    model.load_state_dict(torch.load("last.pt", weights_only=True))
    """)
STORED = LIBRARY + dedent("""\
    model.load_state_dict(torch.load("last.pt", weights_only=True))
    """)
FILLED = dedent("""\
    from torch.hub import load_state_dict_from_url

    from blocks import block

    model = block()
    model.load_state_dict(load_state_dict_from_url("https://example.org/weights"))
    """)
FILLS_ITSELF = dedent("""\
    import torch
    from torch import nn

    from blocks import block


    class Enhancer(nn.Module):
        def __init__(self, path):
            super().__init__()
            self.block = block()
            self.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    """)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (TRAINED, "medium"),
        (RESUMED, "medium"),
        (LIBRARY, "low"),
        (STORED, "low"),
        (FILLED, "low"),
        (FILLS_ITSELF, "low"),
    ],
)
def test_published_weights_have_the_biases_of_the_model(
    user: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"pyproject.toml": "", "blocks.py": BLOCKS, "model.py": user}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    words = [*("check", "--select", "TL401", "--impact", "low", "--output-format", "json"), "--no-cache", "."]
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), words, prog_name="torchlint")
    assert [item["impact"] for item in json.loads(result.stdout)] == [expected]


PUBLISHED = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "nets"\nversion = "1"\n'


@pytest.mark.parametrize(("kind", "expected"), [("application", "medium"), ("library", "low")])
def test_users_of_a_library_have_the_biases_of_its_models(
    kind: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "nets"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text(PUBLISHED)
    for name, text in {"__init__.py": "", "blocks.py": BLOCKS}.items():
        (package / name).write_text(text)
    (package / "train.py").write_text(TRAINED.replace("blocks", ".blocks"))
    monkeypatch.chdir(tmp_path)
    words = ["check", "--select", "TL401", "--impact", "low", "--output-format", "json", "--no-cache"]
    words += ["--project-kind", kind, "."]
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), words, prog_name="torchlint")
    assert [item["impact"] for item in json.loads(result.stdout)] == [expected]


LOADED = dedent("""\
    import torch


    def load(model, path):
        model.load_state_dict(torch.load(path, map_location="cpu"))
    """)
SAVED = dedent("""\
    import torch

    from model import load


    def save(model, path):
        torch.save(model.state_dict(), path)
    """)


PICKLED = SAVED.replace("model.state_dict()", "{'model': torch.nn.Linear(2, 2), 'epoch': 3}")


@pytest.mark.parametrize(
    ("trainer", "expected", "fixed"),
    [(SAVED, "low", True), (PICKLED, "low", False), ("from model import load\n", "medium", True)],
)
def test_a_checkpoint_that_another_file_saves_is_that_of_the_program(
    trainer: str, expected: str, fixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"pyproject.toml": "", "model.py": LOADED, "trainer.py": trainer}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    words = ["check", "--select", "TL904", "--impact", "low", "--target-torch", "2.5", "--no-cache"]
    words += ["--output-format", "json", "."]
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), words, prog_name="torchlint")
    (found,) = json.loads(result.stdout)
    assert (found["impact"], found["fix"] is not None) == (expected, fixed)
