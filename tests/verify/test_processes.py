"""Programs as users write them, examined in their own processes: steps found, stops survived, files kept."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlint.verify.processes import Failure, Nurseries, Process
from torchlint.verify.subjects import Script
from torchlint.verify.workspace import Workspace

_SPEC = importlib.util.spec_from_file_location("torchlint_programs", Path(__file__).with_name("programs.py"))
assert _SPEC is not None and _SPEC.loader is not None
programs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(programs)

# What a step is, and whether the program comes to its own end.
EXPECTED = {
    "argparse": ("optimizer steps", True),
    "generative": ("optimizer steps", False),
    "closure": ("optimizer steps", False),
    "stages": ("optimizer steps", False),
    "scaler": ("optimizer steps", False),
    "inference": ("forward passes", False),
    "trial": ("optimizer steps", False),
    "compiled": ("optimizer steps", False),
    "short": ("optimizer steps", True),
    "swallowing": ("optimizer steps", False),
    "leaving": ("optimizer steps", False),
    "writing": ("optimizer steps", True),
}


@pytest.fixture
def script(tmp_path: Path, scratch: Path) -> Callable[..., Script]:
    """Makes the script with a text, in a project of its own."""

    def make(text: str) -> Script:
        (tmp_path / "data.txt").write_text("the user's", encoding="utf-8")
        (tmp_path / "main.py").write_text(text, encoding="utf-8")
        (tmp_path / "pyproject.toml").touch()
        workspace = Workspace(tmp_path / "main.py", scratch)
        return Script(workspace, ["--steps", "30"], device="cpu")

    return make


@pytest.fixture
def examine(nurseries: Nurseries) -> Callable[..., dict[str, Any]]:
    """Returns what the examination of a script finds."""

    def run(script: Script, trace: Path, role: str, timeout: float = 120) -> dict[str, Any]:
        job = replace(script.job("original", "examine"), trace=str(trace), role=role)
        with Process(job, Path(job.scratch) / "output.log", nursery=nurseries.get(0)) as process:
            process.run()
            return process.examined(timeout)

    return run


@pytest.mark.parametrize("name", programs.FOUND)
def test_steps_are_found_and_the_program_is_stopped(
    name: str, script: Any, examine: Any, tmp_path: Path
) -> None:
    program = script(programs.FOUND[name])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    found = examine(program, tmp_path.parent / f"{name}.pt", "reference")
    assert (found["found_by"], found["ended"]) == EXPECTED[name]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_program_that_hangs_is_explained_by_its_line(script: Any, examine: Any, tmp_path: Path) -> None:
    program = script("import time\n\n\ndef wait():\n    time.sleep(600)\n\n\nwait()\n")
    with pytest.raises(Failure, match=r"did not finish a step within 2 s; it is at main\.py:5, in wait\(\)"):
        examine(program, tmp_path.parent / "hang.pt", "reference", timeout=2)


def test_a_program_that_fails_shows_what_it_printed(script: Any, examine: Any, tmp_path: Path) -> None:
    program = script("print('loading')\nopen('missing.csv')\n")
    with pytest.raises(Failure, match=r"(?s)FileNotFoundError.*The last lines of its output:"):
        examine(program, tmp_path.parent / "fails.pt", "reference")
