"""What is kept of a project is let go of at once: what the garbage collector has frozen it never looks at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchlint import checker, reading
from torchlint.diagnostics import Severity
from torchlint.options import LintSettings, Options
from torchlint.project import project as projects
from torchlint.project.layout import Layouts
from torchlint.project.program import Trees
from torchlint.project.project import Project
from torchlint.syntax import SyntaxTree

TRAINER = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "split_trainer"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[SyntaxTree]]]:
    """The trees that are made for other files, while no garbage is collected."""
    found: list[weakref.ref[SyntaxTree]] = []
    tree = Trees.tree

    def watched(self: Trees, file: Path) -> SyntaxTree | None:
        made = tree(self, file)
        if made is not None and not any(known() is made for known in found):
            found.append(weakref.ref(made))
        return made

    monkeypatch.setattr(Trees, "tree", watched)
    gc.collect()
    gc.disable()
    yield found
    gc.enable()


def check_all(project: Project, files: list[Path]) -> None:
    settings = LintSettings(rules=("TL101", "TL202", "TL303"))
    for file in files:
        checker.check(reading.read(file), settings, project=project)


def test_a_project_that_is_closed_holds_no_tree(made: list[weakref.ref[SyntaxTree]]) -> None:
    files = sorted(TRAINER.rglob("*.py"))
    project = Project(Layouts(lambda _: Options()).around(files[0]).index())
    check_all(project, files)
    assert sum(known() is not None for known in made) > 10
    project.close()
    assert not [known for known in made if known() is not None]


def test_no_more_trees_are_held_than_there_is_room_for(
    made: list[weakref.ref[SyntaxTree]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_MOST_MEMORY", 1)
    files = sorted(TRAINER.rglob("*.py"))
    project = Project(Layouts(lambda _: Options()).around(files[0]).index())
    check_all(project, files[::3])
    check_all(project, files[:1])
    assert len(made) > 2 * sum(known() is not None for known in made)


def test_files_with_other_rules_or_severities_share_what_was_worked_out() -> None:
    first = min(TRAINER.rglob("*.py"))
    project = Project(Layouts(lambda _: Options()).around(first).index())
    program = project.program(LintSettings(rules=("TL202",), severities=(("TL202", Severity.ERROR),)))
    assert project.program(LintSettings(rules=("TL101", "TL202"))) is program
    assert project.program(LintSettings(rules=("TL202",), hot=(("/", "*.py"),))) is not program
    assert project.program(LintSettings(rules=("TL202",), host_names=("x",))) is not program
    project.close()
