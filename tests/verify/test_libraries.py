"""Libraries of a program are imported once for all its processes, where that changes nothing."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.verify.processes import Nurseries, Process
from torchlint.verify.worker.job import Job
from torchlint.verify.worker.libraries import Libraries

LIBRARY = """
import os

with open(os.path.join(os.path.dirname(__file__), "imports.txt"), "a") as out:
    out.write("imported\\n")
os.environ["FROM_LIBRARY"] = "set"
"""
THREADED = """
import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
CASE = """
import os

import library
import torch


def setup(device, size):
    assert os.environ["FROM_LIBRARY"] == "set"
    return torch.ones(3)


def step(state):
    return state.sum()
"""


def test_copies_find_a_library_imported_unless_it_does_not_let_itself_be_copied(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = scratch / "elsewhere"
    folder.mkdir()
    (folder / "library.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "threaded.py").write_text(THREADED, encoding="utf-8")
    case = scratch / "case" / "case.py"
    case.parent.mkdir()
    case.write_text(CASE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    job = Job(
        "examine",
        "case",
        str(case),
        str(case.parent),
        function="step",
        device="cpu",
        project=str(case.parent),
        trace=str(scratch / "trace.pt"),
        role="reference",
    )
    with Nurseries(scratch, "cpu") as nurseries:
        # What is found elsewhere than in the first run is left to the program.
        modules = [("library", str(folder / "library.py")), ("wave", "/elsewhere/wave.py")]
        nurseries.load(modules)
        usable = [nurseries.loaded]
        for number in range(2):
            place = scratch / f"run{number}"
            place.mkdir()
            copy = replace(job, scratch=str(place))
            with Process(copy, place / "output.log", nursery=nurseries.get(0)) as process:
                process.run()
                assert process.examined(60)["steps"] > 0
        assert (folder / "imports.txt").read_text() == "imported\n"
        nursery = nurseries.get(0)
        nurseries.load([("threaded", str(folder / "threaded.py"))])
        assert [*usable, nurseries.loaded] == [True, False]
        assert nursery is not None and not nursery.alive, "the next copy is made without"


@pytest.mark.parametrize("sets", [True, False])
def test_libraries_are_left_to_a_program_that_sets_variables(
    sets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder, name in ((project, "torchlint_test_own"), (elsewhere, "torchlint_test_library")):
        folder.mkdir()
        (folder / f"{name}.py").write_text(
            "import os\nos.environ['SOME'] = '1'\n" * (folder != project or sets)
        )
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, name, raising=False)
    kind = type(os.environ)
    monkeypatch.setattr(kind, "__setitem__", kind.__setitem__)
    monkeypatch.setenv("SOME", "0")
    libraries = Libraries([str(project)])
    libraries.start()
    for name in ("torchlint_test_own", "torchlint_test_library"):
        importlib.import_module(name)
    file = str(elsewhere / "torchlint_test_library.py")
    assert libraries.found() == ([] if sets else [("torchlint_test_library", file)])
