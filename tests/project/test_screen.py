"""The screen in front of the parse changes no finding of a project, whose files lend one another words."""

import shutil
from pathlib import Path

import pytest

from torchlint import checker, reading, registry
from torchlint.options import LintSettings, Options
from torchlint.project.layout import Layouts
from torchlint.project.project import Project

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures" / "projects"
NAMES = sorted(path.relative_to(PROJECTS).as_posix() for path in PROJECTS.glob("*/*") if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_the_screen_changes_no_finding(name: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECTS / name, project)
    files = sorted(project.rglob("*.py"))
    settings = LintSettings(rules=tuple(registry.catalogue()))
    layout = Layouts(lambda _: Options()).around(files[0])
    for file in files:
        source = reading.read(file)
        screened, whole = (
            checker.check(source, settings, screen=screen, project=Project(layout.index()))
            for screen in (True, False)
        )
        assert screened == whole
