"""Small projects of several files, each checked as a whole, as a user would: what is found, and where.

A project is a folder ``fixtures/projects/<topic>/<name>``. Comments such as ``# expect: TL202`` mark its
findings as they do in the fixtures of the rules, those of every rule, in whichever file they stand. In a
project whose name begins with ``bad`` a finding, or the grade of its fix, follows from what several files say
together; in one that begins with ``good`` another file says why there is nothing to find where there seems
to be. In a notebook they stand in its cells. A file with a ``.fixed`` twin becomes that when all fixes are
made, unsafe ones too; in a project that has twins the other files stay as they are.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import registry
from torchlint.commands.check import command
from torchlint.diagnostics import Position
from torchlint.project import index
from torchlint.syntax import ElsewhereError
from torchlint.testing import Case

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "fixtures" / "projects"
# A training program of many modules, which runs on the CPU and prints its losses.
SPLIT_TRAINER = ROOT / "fixtures" / "programs" / "split_trainer"
NAMES = sorted(path.relative_to(PROJECTS).as_posix() for path in PROJECTS.glob("*/*") if path.is_dir())
# As old as the oldest release that all of them would run with.
TARGET = "2.3"

Place = tuple[str, int, str, str]
"""File, row, code and severity; in a notebook the file with the number of the cell, and the row in it."""


def programs(project: Path) -> list[Path]:
    """The Python files and notebooks of a project, without the twins."""
    found = [*project.rglob("*.py"), *project.rglob("*.ipynb")]
    return sorted(path for path in found if not path.name.endswith(".fixed.py"))


def place(name: str, position: Position, code: str, severity: str) -> Place:
    cell = "" if position.cell is None else f":cell {position.cell}"
    return f"{name}{cell}", position.row, code, severity


def wanted(project: Path) -> list[tuple[Place, str | None]]:
    """What the comments of a project ask for, with the grade of the fix where they name one."""
    return [
        (
            place(
                path.relative_to(project).as_posix(),
                case.source.locate(case.source.line_starts[item.row - 1]),
                item.code,
                item.severity or registry.catalogue()[item.code].severity.value,
            ),
            item.fix,
        )
        for path, expected in files_of(project).items()
        for case in [Case(expected)]
        for item in case.expectations
    ]


def files_of(project: Path) -> dict[Path, Path]:
    """The files of a project that can be checked, and where the comments on each stand.

    JSON has no comments; those on a file of it stand in the same rows of one beside it.
    """
    documents = [path for path in sorted(project.rglob("*")) if path.suffix in (".yaml", ".yml", ".json")]
    files = [*programs(project), *documents]
    beside = {path: path.with_name(f"{path.name}.expect") for path in files}
    return {path: beside[path] if beside[path].exists() else path for path in files}


def copied(project: Path, folder: Path) -> Path:
    """A project by itself, so that the files around it are no part of it, without the twins."""
    return shutil.copytree(project, folder / "project", ignore=shutil.ignore_patterns("*.fixed.py"))


def torchlint(*arguments: str) -> str:
    """What a check prints that leaves out nothing, whatever its impact.

    A project with a config file of its own is checked with that.
    """
    configured = any((up / "torchlint.toml").exists() for up in (Path.cwd(), *map(Path, arguments)))
    isolated = () if configured else ("--isolated",)
    options = ("--target-torch", TARGET, "--jobs", "1", "--impact", "low", "--advice", "on")
    result = CliRunner().invoke(command, [*isolated, *options, *arguments])
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def found(project: Path, *selection: str) -> list[tuple[Place, str]]:
    """What a check of the folder reports, with the grade of the fix."""
    return [
        (
            place(
                Path(item["filename"]).relative_to(project).as_posix(),
                Position(**item["location"], cell=item["cell"]),
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
def test_project(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = copied(PROJECTS / name, tmp_path)
    with caplog.at_level(logging.DEBUG, logger="torchlint"):
        different = differences(project, "--select", "ALL")
    assert not different, "\n".join(different)
    # It ends a rule, and nobody but the log is told.
    assert ElsewhereError.__name__ not in caplog.text


@pytest.mark.parametrize("name", NAMES)
def test_fixes_of_a_project(name: str, tmp_path: Path) -> None:
    """What the twins say, if there are any, and that a second run has nothing more to do."""
    project = copied(PROJECTS / name, tmp_path)
    before = {path: path.read_text(encoding="utf-8") for path in programs(project)}
    torchlint("--fix", "--unsafe-fixes", "--select", "ALL", str(project))
    after = {path: path.read_text(encoding="utf-8") for path in before}
    twins = {path: Case(PROJECTS / name / path.relative_to(project)).fixed_path for path in before}
    if any(twin.exists() for twin in twins.values()):
        assert after == {
            path: twin.read_text(encoding="utf-8") if twin.exists() else before[path]
            for path, twin in twins.items()
        }
    assert torchlint("--diff", "--unsafe-fixes", "--select", "ALL", str(project)) == ""


@pytest.mark.parametrize("name", NAMES)
def test_bad_projects_expect_something(name: str) -> None:
    project = PROJECTS / name
    kind = project.name.partition("_")[0]
    assert kind in ("bad", "good")
    assert kind == "good" or wanted(project)
    # What is there for one thing is small; the programs are as large as people write them.
    most = 16 if project.parent.name == "programs" else 8
    assert 2 <= len([path for path in files_of(project) if path.stat().st_size]) <= most


def test_every_topic_has_both_kinds() -> None:
    topics: dict[str, set[str]] = {}
    for name in NAMES:
        topic, _, project = name.partition("/")
        topics.setdefault(topic, set()).add(project.partition("_")[0])
    assert all(kinds == {"bad", "good"} for kinds in topics.values()), topics


def test_the_table_of_what_crosses_files_names_projects() -> None:
    lines = (PROJECTS / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("|")][2:]
    named = [tuple(cell.strip(" `") for cell in (bad, good)) for _, _, bad, good, _ in rows]
    assert {name for pair in named for name in pair} <= set(NAMES)
    assert all(
        bad.partition("/")[2].startswith("bad") and good.partition("/")[2].startswith("good")
        for bad, good in named
    )
    assert {name.partition("/")[0] for name in NAMES} == {bad.partition("/")[0] for bad, _ in named}


@pytest.mark.parametrize(
    "name",
    [
        "functions_handed_on/bad_returned_in_a_library",
        "no_grad_elsewhere/good_adapted_by_a_learner",
        "serving/bad_reached_by_interfaces",
        "serving/good_reached_once",
    ],
)
def test_a_file_of_a_large_library_goes_by_what_it_calls(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MOST_COMPANIONS", 0)
    different = differences(copied(PROJECTS / name, tmp_path), "--select", "ALL")
    assert not different, "\n".join(different)


def test_a_program_keeps_its_findings_when_it_is_split(tmp_path: Path) -> None:
    project = copied(SPLIT_TRAINER, tmp_path)
    assert len([path for path in project.rglob("*.py") if path.read_text(encoding="utf-8")]) >= 15
    assert len(wanted(project)) >= 20
    different = differences(project)
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
    project = copied(SPLIT_TRAINER, tmp_path)
    options = ["--unsafe-fixes"] if unsafe else []
    torchlint("--fix", *options, str(project))
    assert torchlint("--diff", *options, str(project)) == ""
    after = losses(project)
    # Other kernels round otherwise.
    assert after["losses"] == pytest.approx(losses_before["losses"], rel=1e-4)
    # A bias before a normalization is a step ahead of the running mean that takes it off again.
    tolerance = 5e-2 if unsafe else 1e-4
    assert after["validation_losses"] == pytest.approx(losses_before["validation_losses"], rel=tolerance)


def test_constants_of_callers_do_not_count_in_a_program_that_is_too_large_to_be_seen_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the calls in the file itself are looked for there, and others may pass something else."""
    helper = "import torch\n\n\ndef shifted(x: torch.Tensor, one=1.0):\n    return torch.log(one + x)\n"
    own = "\n\ndef both(x: torch.Tensor):\n    return shifted(x, 1.0)\n"
    (tmp_path / "maths.py").write_text(helper + own)
    for name in ("first", "second"):
        call = "import torch\nfrom maths import shifted\n\nprint(shifted(torch.ones(2), 1.0))\n"
        (tmp_path / f"{name}.py").write_text(call)
    (tmp_path / "main.py").write_text("import first\nimport second\n")
    assert [file for (file, *_), _ in found(tmp_path, "--select", "TL406")] == ["maths.py"]
    (tmp_path / "second.py").write_text(call.replace("1.0", "2.0"))
    assert found(tmp_path, "--select", "TL406") == []
    monkeypatch.setattr("torchlint.project.index.MOST_COMPANIONS", 1)
    assert found(tmp_path, "--select", "TL406") == []


def test_who_uses_a_module_of_a_file_with_many_users_names_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of an instance do not name its class, but what makes the instance does."""
    monkeypatch.setattr("torchlint.project.program.MOST_USERS", 1)
    project = copied(PROJECTS / "model_forward" / "good_switch_of_host", tmp_path)
    assert found(project, "--select", "TL205") == []
    patches = project / "forecast" / "patches.py"
    patches.write_text(patches.read_text(encoding="utf-8").replace("torch.tensor(True)", "x.sum() > 0"))
    assert [file for (file, *_), _ in found(project, "--select", "TL205")] == ["forecast/layers.py"]
