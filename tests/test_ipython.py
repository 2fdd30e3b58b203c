"""The magics of IPython: what they show under a cell, and what becomes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

LOOP = """\
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.empty_cache()
ran = True
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A shell of its own, with the extension loaded; `inputs` has what is put into the next prompt."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    made.inputs = []
    made.set_next_input = lambda text, replace=False: made.inputs.append((text, replace))
    made.run_cell("%load_ext torchlint", store_history=True)
    for name in ("torch", "torch.cuda"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["torch.cuda"].empty_cache = None  # type: ignore[attr-defined]
    made.user_ns["loader"] = []
    made.run_cell("import torch", store_history=True)
    yield made
    made.history_manager.end_session()


def test_a_cell_is_checked_and_run(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(f"%%torchlint --select TL601\n{LOOP}", store_history=True)
    told = capsys.readouterr().out
    assert "TL601 [*] `torch.cuda.empty_cache()`" in told
    assert "notebook.ipynb:cell 3:7:5" in told
    assert "Found 1 warning." in told
    assert shell.user_ns["ran"] is True and shell.inputs == []


def test_the_cells_above_are_part_of_the_program(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("from torch.cuda import empty_cache as forget", store_history=True)
    capsys.readouterr()
    changed = LOOP.replace("torch.cuda.empty_cache", "forget")
    shell.run_cell(f"%%torchlint --select TL601\n{changed}", store_history=True)
    assert "TL601" in capsys.readouterr().out


def test_the_fixed_cell_takes_the_place_of_it(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(f"%%torchlint --select TL601 --fix\n{LOOP}", store_history=True)
    assert "1 fixed, 0 remaining" in capsys.readouterr().out
    assert shell.inputs == [(LOOP.replace("    torch.cuda.empty_cache()\n", "").rstrip(), True)]
    assert "ran" not in shell.user_ns


def test_cells_that_have_run_stay_as_they_are(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    # With the last use of its name the fix takes out the import, which stands in a cell that has run.
    shell.run_cell("from torch.cuda import empty_cache as forget", store_history=True)
    changed = LOOP.replace("torch.cuda.empty_cache", "forget")
    shell.run_cell(f"%%torchlint --select TL601 --fix\n{changed}", store_history=True)
    assert "TL601" in capsys.readouterr().out
    assert shell.inputs == []


def test_all_cells_are_listed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(LOOP, store_history=True)
    capsys.readouterr()
    shell.run_cell("%torchlint --select TL601", store_history=True)
    assert "notebook.ipynb:cell 3:6:5" in capsys.readouterr().out


def test_the_config_of_the_folder_holds(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torchlint.toml").write_text('ignore = ["TL601"]\n')
    shell.run_cell(f"%%torchlint\n{LOOP}", store_history=True)
    assert "TL601" not in capsys.readouterr().out
    (tmp_path / "torchlint.toml").write_text("ignore = 1\n")
    shell.run_cell("%torchlint", store_history=True)
    assert "invalid value for `ignore`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--selct TL6", "unrecognized arguments: --selct TL6; did you mean `--select`?"),
        ("--select TL99", "unknown rule selector `TL99`"),
        ("--impact some", "invalid choice"),
    ],
)
def test_a_mistake_is_told(line: str, told: str, shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(f"%torchlint {line}", store_history=True)
    assert told in capsys.readouterr().err
