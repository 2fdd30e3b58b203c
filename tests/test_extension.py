"""Files with extensions of their own are checked in the language that `extension` gives them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import lint
from torchlint.source import is_notebook

NOTEBOOKS = Path(__file__).resolve().parents[1] / "fixtures" / "notebooks"
PROGRAM = """\
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = model(x.cuda(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, in which the tests run."""
    for name in [name for name in os.environ if name.startswith("TORCHLINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHLINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def found(*args: str, text: str | None = None) -> set[tuple[str, str, int | None]]:
    result = lint("check", "--output-format", "json", *args, stdin=text)
    assert result.exit_code in (0, 1), result.stderr
    return {(Path(item["filename"]).name, item["code"], item["cell"]) for item in json.loads(result.stdout)}


def test_the_language_of_an_extension_overrules_its_own() -> None:
    assert is_notebook(Path("a.ipynb")) and not is_notebook(Path("a.ipy"))
    assert is_notebook(Path("a.ipy"), (("ipy", "ipynb"),))
    assert not is_notebook(Path("a.ipynb"), (("ipynb", "python"),))
    assert not is_notebook(Path("ipy"), (("ipy", "ipynb"),))


@pytest.mark.parametrize("how", ["flag", "config"])
def test_files_with_an_extension_are_found_and_read_in_its_language(how: str) -> None:
    shutil.copy(NOTEBOOKS / "fine_tuning.ipynb", "look.ipy")
    shutil.copy(NOTEBOOKS / "fine_tuning.ipynb", "same.ipynb")
    Path("train.pyt").write_text(PROGRAM)
    assert {name for name, *_ in found(".")} == {"same.ipynb"}
    args = ["--extension", "ipy:ipynb,pyt:python"]
    if how == "config":
        Path("torchlint.toml").write_text('extension = { "ipy" = "ipynb", "pyt" = "python" }\n')
        args = []
    everything = found(*args, ".")
    look = {(code, cell) for name, code, cell in everything if name == "look.ipy"}
    assert look == {(code, cell) for name, code, cell in everything if name == "same.ipynb"}
    assert look and all(cell is not None for _, cell in look)
    assert ("train.pyt", "TL202", None) in everything
    # The second time the cache knows.
    assert found(*args, ".") == everything


def test_what_the_cache_knows_of_a_file_is_of_its_language() -> None:
    shutil.copy(NOTEBOOKS / "fine_tuning.ipynb", "look.ipy")
    assert ("look.ipy", "TL001", None) not in found("--extension", "ipy:ipynb", "look.ipy")
    assert found("--extension", "ipy:python", "look.ipy") != found("--extension", "ipy:ipynb", "look.ipy")


def test_a_notebook_with_an_extension_of_its_own_is_fixed_as_one() -> None:
    for name in ("look.ipy", "same.ipynb"):
        shutil.copy(NOTEBOOKS / "fine_tuning.ipynb", name)
        lint("check", "--extension", "ipy:ipynb", "--fix", "--unsafe-fixes", "--impact", "low", name)
    assert Path("look.ipy").read_bytes() == Path("same.ipynb").read_bytes()
    assert Path("look.ipy").read_bytes() != (NOTEBOOKS / "fine_tuning.ipynb").read_bytes()


def test_such_a_notebook_is_one_to_the_project() -> None:
    Path("pyproject.toml").write_text('[tool.torchlint]\nextension = { "ipy" = "ipynb" }\n')
    Path("engine.py").write_text(PROGRAM)
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": [text]}
        for text in ("from engine import train\n", "train(model, loader, optimizer)\n")
    ]
    Path("look.ipy").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
    )
    result = lint("graph", "--output-format", "json")
    assert '"notebook"' in result.stdout, result.output


def test_standard_input_has_the_language_of_its_name() -> None:
    text = (NOTEBOOKS / "fine_tuning.ipynb").read_text()
    assert found("--extension", "ipy:ipynb", "--stdin-filename", "look.ipy", "-", text=text)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("ipy", "expects EXTENSION:LANGUAGE, such as `ipy:ipynb`"),
        ("ipy:jupyter", "`jupyter` is none of `python`, `ipynb`"),
        (".ipy:ipynb", "`.ipy` is not a file extension such as `ipy`, without the dot"),
        ("yml:python", "`yml` files are read as configuration files"),
    ],
)
def test_a_wrong_mapping_is_refused(value: str, told: str) -> None:
    result = lint("check", "--extension", value, ".")
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
