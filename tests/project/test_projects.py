"""Small projects of several files, each checked as a whole, as a user would: what is found, and where.

A project is a folder ``fixtures/projects/<topic>/<name>``. Comments such as ``# expect: TL202`` mark its
findings as they do in the fixtures of the rules, those of every rule, in whichever file they stand. In a
project whose name begins with ``bad`` a finding, or the grade of its fix, follows from what several files say
together; in one that begins with ``good`` another file says why there is nothing to find where there seems
to be.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import registry
from torchlint.commands.check import command
from torchlint.testing import Case

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "fixtures" / "projects"
# A training program of many modules, which runs on the CPU and prints its losses.
SPLIT_TRAINER = ROOT / "fixtures" / "programs" / "split_trainer"
NAMES = sorted(path.relative_to(PROJECTS).as_posix() for path in PROJECTS.glob("*/*") if path.is_dir())
# As old as the oldest release that all of them would run with.
TARGET = "2.3"

# What follows from several files together and is not found yet, or is found although another file speaks
# against it.
WAITING: frozenset[str] = frozenset({"split_trainer"})

Place = tuple[str, int, str, str]
"""File, row, code and severity."""


def wanted(project: Path) -> list[tuple[Place, str | None]]:
    """What the comments of a project ask for, with the grade of the fix where they name one."""
    return [
        (
            (
                path.relative_to(project).as_posix(),
                item.row,
                item.code,
                item.severity or registry.catalogue()[item.code].severity.value,
            ),
            item.fix,
        )
        for path in sorted(project.rglob("*.py"))
        for item in Case(path).expectations
    ]


def torchlint(*arguments: str) -> str:
    """What a check prints."""
    options = ("--isolated", "--target-torch", TARGET, "--jobs", "1")
    result = CliRunner().invoke(command, [*options, *arguments])
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def found(project: Path, *selection: str) -> list[tuple[Place, str]]:
    """What a check of the folder reports, with the grade of the fix."""
    return [
        (
            (
                Path(item["filename"]).relative_to(project).as_posix(),
                item["location"]["row"],
                item["code"],
                item["severity"],
            ),
            item["fix"]["applicability"] if item["fix"] else "none",
        )
        for item in json.loads(torchlint(*selection, "--output-format", "json", str(project)))
    ]


def differences(project: Path, *selection: str) -> list[str]:
    """What is wanted and not found, and what is found and not wanted."""
    missing, unexpected = [], found(project, *selection)
    for place, fix in wanted(project):
        same = [item for item in unexpected if item[0] == place and fix in (None, item[1])]
        if same:
            unexpected.remove(same[0])
        else:
            missing.append((place, fix))
    return [
        f"{file}:{row}: {code}[{severity}] fix={fix or 'any'} {verdict}"
        for verdict, items in (("is missing", missing), ("is found", unexpected))
        for (file, row, code, severity), fix in items
    ]


@pytest.mark.parametrize("name", NAMES)
def test_project(name: str, tmp_path: Path) -> None:
    """On a copy, so that the files around the fixtures are no part of the project."""
    project = tmp_path / "project"
    shutil.copytree(PROJECTS / name, project)
    different = differences(project, "--select", "ALL")
    if name in WAITING:
        assert different, f"{name} is as it should be: it no longer waits"
    else:
        assert not different, "\n".join(different)


def test_what_waits_exists() -> None:
    assert {*NAMES, SPLIT_TRAINER.name} >= WAITING


@pytest.mark.parametrize("name", NAMES)
def test_bad_projects_expect_something(name: str) -> None:
    project = PROJECTS / name
    kind = project.name.partition("_")[0]
    assert kind in ("bad", "good")
    assert kind == "good" or wanted(project)
    # What is there for one thing is small; the programs are as large as people write them.
    most = 16 if project.parent.name == "programs" else 8
    assert 2 <= len([path for path in project.rglob("*.py") if path.read_text(encoding="utf-8")]) <= most


def test_every_topic_has_both_kinds() -> None:
    topics: dict[str, set[str]] = {}
    for name in NAMES:
        topic, _, project = name.partition("/")
        topics.setdefault(topic, set()).add(project.partition("_")[0])
    assert all(kinds == {"bad", "good"} for kinds in topics.values()), topics


def test_a_program_keeps_its_findings_when_it_is_split(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(SPLIT_TRAINER, project)
    assert len([path for path in project.rglob("*.py") if path.read_text(encoding="utf-8")]) >= 15
    assert len(wanted(project)) >= 20
    different = differences(project)
    if SPLIT_TRAINER.name in WAITING:
        assert different, f"{SPLIT_TRAINER.name} is as it should be: it no longer waits"
    else:
        assert not different, "\n".join(different)


def losses(project: Path) -> dict[str, list[float]]:
    """What the program says of itself in its last line."""
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Draws as many random numbers after a fix as before.
        "PYTHONPATH": str(ROOT / "tests" / "draws"),
        "PYTHONWARNINGS": "ignore",
    }
    run = subprocess.run(
        [sys.executable, "train.py", "--epochs", "2", "--device", "cpu"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    told: dict[str, list[float]] = json.loads(run.stdout.splitlines()[-1])
    assert all(len(values) == 2 for values in told.values())
    return told


@pytest.fixture(scope="session")
def losses_before() -> dict[str, list[float]]:
    return losses(SPLIT_TRAINER)


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_a_split_program_trains_as_before_when_it_is_fixed(
    unsafe: bool, losses_before: dict[str, list[float]], tmp_path: Path
) -> None:
    project = tmp_path / "project"
    shutil.copytree(SPLIT_TRAINER, project)
    torchlint("--fix", *(["--unsafe-fixes"] if unsafe else []), str(project))
    after = losses(project)
    # Other kernels round otherwise.
    assert after["losses"] == pytest.approx(losses_before["losses"], rel=1e-4)
    # A bias before a normalization is a step ahead of the running mean that takes it off again.
    tolerance = 5e-2 if unsafe else 1e-4
    assert after["validation_losses"] == pytest.approx(losses_before["validation_losses"], rel=tolerance)
