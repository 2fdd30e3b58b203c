"""``torchlint graph``: what a user is shown of a project."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint.cli import main
from torchlint.commands.graph import command
from torchlint.project.graph import FileKind, kind_of
from torchlint.project.index import Index
from torchlint.project.roots import source_folders

PROJECT = {
    "pyproject.toml": "",
    "train.py": "from models import Net\nimport engine\nif __name__ == '__main__':\n    engine.train(Net())",
    "engine.py": "from config import *\ndef train(net):\n    from utils.meters import Meter",
    "config.py": "LR = 0.1",
    "models/__init__.py": "from .net import Net",
    "models/net.py": "import torch\nfrom .missing import layer\nclass Net: ...",
    "utils/meters.py": "if AVAILABLE:\n    from models import Net\nclass Meter: ...",
    "run.py": "from engine import train\ntrain(None)",
    "tests/helpers.py": "from engine import train",
    "test_engine.py": "from engine import train",
    "setup.py": "from setuptools import setup\nsetup()",
    "broken.py": "def f(:",
    "look.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a small project, which is the working directory."""
    folder = tmp_path / "project"
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> str:
    """What ``torchlint graph`` prints."""
    result = CliRunner().invoke(command, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_each_file_is_known_for_what_it_is(project: Path) -> None:
    files = [project / name for name in PROJECT if not name.endswith(".toml")]
    index = Index(source_folders(project), files, notebooks=[project / "look.ipynb"])
    assert {file.relative_to(project).as_posix(): kind_of(index, file) for file in files} == {
        "train.py": FileKind.PROGRAM,
        "engine.py": FileKind.LIBRARY,
        "config.py": FileKind.CONFIG,
        "models/__init__.py": FileKind.LIBRARY,
        "models/net.py": FileKind.LIBRARY,
        "utils/meters.py": FileKind.LIBRARY,
        "run.py": FileKind.PROGRAM,
        "tests/helpers.py": FileKind.TEST,
        "test_engine.py": FileKind.TEST,
        "setup.py": FileKind.CONFIG,
        "broken.py": FileKind.UNREADABLE,
        "look.ipynb": FileKind.NOTEBOOK,
    }


def test_a_script_that_another_file_imports_is_no_program(project: Path) -> None:
    (project / "other.py").write_text("import run")
    index = Index(source_folders(project), [project / "run.py", project / "other.py", project / "engine.py"])
    assert kind_of(index, project / "run.py") is FileKind.LIBRARY


def test_text_tells_what_each_file_imports_and_what_was_not_found(project: Path) -> None:
    assert run("train.py", "engine.py", "models", "utils") == (
        f"{project} (library): 5 files, 6 imports between them\n"
        "\n"
        "engine.py (library)\n"
        "  imports config.py\n"
        "  imports utils/meters.py (Meter; inside a function)\n"
        "\n"
        "models/__init__.py (library)\n"
        "  imports models/net.py (Net)\n"
        "\n"
        "models/net.py (library)\n"
        "  line 2: not found: from .missing import layer\n"
        "\n"
        "train.py (program)\n"
        "  imports models/net.py (Net)\n"
        "  imports engine.py\n"
        "\n"
        "utils/meters.py (library)\n"
        "  imports models/net.py (Net; conditionally)\n"
    )


def test_json_holds_all_of_it(project: Path) -> None:
    document = json.loads(run("--output-format", "json", "engine.py", "models/net.py"))
    engine, net = document["files"]
    assert (document["root"], document["kind"]) == (str(project), "library")
    assert (engine["path"], engine["kind"]) == ("engine.py", "library")
    assert engine["imports"] == [
        {"path": "config.py", "names": [], "when": "always"},
        {"path": "utils/meters.py", "names": ["Meter"], "when": "later"},
    ]
    assert net["unresolved"] == [{"row": 2, "statement": "from .missing import layer"}]
    assert net["libraries"] == ["torch"]


def test_pictures_have_a_box_for_each_file_and_an_arrow_for_each_import(project: Path) -> None:
    mermaid = run("--output-format", "mermaid", "train.py", "engine.py").splitlines()
    assert mermaid[0] == "flowchart LR"
    assert '  f0["engine.py<br><i>library</i>"]' in mermaid
    assert [line.split() for line in mermaid if ">" in line and "[" not in line] == [
        ["f0", "-->", "f2"],
        ["f0", "-.->", "f3"],
        ["f1", "-->", "f4"],
        ["f1", "-->", "f0"],
    ]
    dot = run("--output-format", "dot", "train.py", "engine.py")
    assert '  "engine.py" -> "utils/meters.py" [style=dashed];' in dot.splitlines()
    assert '  "train.py" -> "engine.py";' in dot.splitlines()


def test_configuration_files_stand_with_the_program_that_reads_them(project: Path) -> None:
    (project / "fit.py").write_text(
        "import yaml\nif __name__ == '__main__':\n    yaml.safe_load(open('conf/fit.yaml'))"
    )
    (project / "conf").mkdir()
    (project / "conf/fit.yaml").write_text("workers: 0")
    assert "fit.py (program)\n  reads conf/fit.yaml\n" in run("fit.py")
    assert json.loads(run("--output-format", "json", "fit.py"))["files"][0]["reads"] == ["conf/fit.yaml"]
    dot = run("--output-format", "dot", "fit.py").splitlines()
    assert '  "conf/fit.yaml" [label="conf/fit.yaml\\nconfig"];' in dot
    assert '  "fit.py" -> "conf/fit.yaml" [style=dotted];' in dot
    mermaid = run("--output-format", "mermaid", "fit.py").splitlines()
    assert mermaid[1:] == [
        '  f0["fit.py<br><i>program</i>"]',
        '  f1["conf/fit.yaml<br><i>config</i>"]',
        "  f0 -.- f1",
    ]


def test_two_projects_of_one_run_are_shown_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: Mapping[str, str] = {"one/a.py": "import b", "one/b.py": "", "two/a.py": "import b"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).with_name("pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert run() == (
        f"{tmp_path / 'one'} (application): 2 files, 1 import between them\n"
        "\na.py (library)\n  imports b.py\n\nb.py (library)\n\n"
        f"{tmp_path / 'two'} (application): 1 file, 0 imports between them\n\na.py (library)\n"
    )


def test_a_folder_without_python_files_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["graph", str(tmp_path)])
    assert end.value.code == 0
    assert "No Python files found" in capsys.readouterr().err


def test_what_a_star_brings_from_elsewhere_is_no_import_of_its_own(project: Path) -> None:
    (project / "all.py").write_text("from engine import *")
    (project / "star.py").write_text("from all import *")
    assert "star.py (library)\n  imports all.py\n" in run("star.py")
    assert "all.py (library)\n  imports engine.py\n" in run("all.py")


def test_files_that_are_left_out_of_the_project_are_not_shown(project: Path) -> None:
    (project / "torchlint.toml").write_text("exclude = ['engine.py']")
    result = CliRunner().invoke(command, ["engine.py", "train.py"])
    assert "engine.py (" not in result.stdout
    assert "1 file skipped: excluded from the project" in result.stderr
