"""What whole projects cost: what is measured, and of which files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import projects, speed
from benchmarks.corpus.packages import pinned
from benchmarks.processes import Usage


def test_every_package_of_a_project_is_in_the_corpus(tmp_path: Path) -> None:
    assert {name for names in projects.PROJECTS.values() for name in names} <= {
        package.name for package in pinned(tmp_path)
    }


def test_each_package_of_a_project_has_metadata_of_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "corpus" / name / name).mkdir(parents=True)
        (tmp_path / "corpus" / name / name / "__init__.py").write_text("")
    trees = {name: tmp_path / "corpus" / name for name in ("one", "two")}
    laid = projects.lay_out(tmp_path / "laid", trees)
    assert sorted(path.relative_to(laid).as_posix() for path in laid.rglob("*.*")) == [
        "one/one/__init__.py",
        "one/pyproject.toml",
        "two/pyproject.toml",
        "two/two/__init__.py",
    ]


def test_a_file_changes_before_each_check_that_is_about_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("a.py", "import torch\n"), ("b.py", "import torch  # longer\n"), ("c.py", "x = 1\n")):
        (tmp_path / name).write_text(text)
    assert projects.changing(tmp_path).name == "b.py"
    runs: list[tuple[list[str], int]] = []

    def watched(arguments: list[str]) -> Usage:
        runs.append((arguments, len((tmp_path / "b.py").read_text().splitlines())))
        return usage

    usage = speed.run(["-c", "pass"])
    monkeypatch.setattr(projects, "run", watched)
    found = projects.measure(tmp_path, 1, 1)
    cold, alone, warm, one_file, changed = runs
    assert cold[0] == warm[0] == changed[0] and "--no-cache" not in cold[0] and "--no-project" not in cold[0]
    # What the project has left in the cache is no help to the files alone.
    store = cold[0].index("--cache-dir") + 1
    assert alone[0][store] != cold[0][store] and alone[0][store + 1 :] == ["--no-project", str(tmp_path)]
    assert one_file[0][-1] == str(tmp_path / "b.py")
    assert [lines for _, lines in runs] == [1, 1, 1, 2, 3]
    assert found["cold_over_alone"] == 1
    assert found["changed_file"] == "b.py"
    assert found["warm"]["peak_mib"] == usage.memory
