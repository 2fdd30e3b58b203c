"""Two versions side by side: nothing that differs is left out, and nothing that does not is shown."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.corpus import __main__ as command
from benchmarks.corpus import comparison, differences, findings, report, versions
from benchmarks.corpus.comparison import Comparison, Fixed
from benchmarks.corpus.differences import Finding
from benchmarks.corpus.packages import Package
from benchmarks.corpus.versions import Version

FIRST = Finding(
    package="demo",
    path="demo/train.py",
    code="TL202",
    start=(3, 5),
    end=(3, 17),
    severity="warning",
    message="`.item()` waits",
    help="Accumulate the tensor",
    grade="safe",
    edits=(((3, 5), (3, 17), "loss.detach()"),),
)
OLD, NEW = Version("old", "old", Path("old/python")), Version("new", "new", Path("new/python"))


def test_the_same_findings_differ_in_nothing() -> None:
    other = replace(FIRST, path="demo/other.py")
    found = differences.compare([FIRST, other], [other, FIRST])
    assert not found and found.unchanged == 2


def test_what_only_one_version_finds() -> None:
    other = replace(FIRST, code="TL203")
    found = differences.compare([FIRST], [other])
    assert (found.removed, found.added, found.changed, found.unchanged) == ([FIRST], [other], [], 0)


@pytest.mark.parametrize(
    ("aspect", "change"),
    [
        ("place", {"end": (4, 1)}),
        ("place", {"start": (2, 1)}),
        ("severity", {"severity": "note"}),
        ("message", {"message": "the host waits"}),
        ("help", {"help": None}),
        ("grade", {"grade": "unsafe"}),
        ("edits", {"edits": ()}),
    ],
)
def test_what_of_a_finding_changed(aspect: str, change: dict[str, Any]) -> None:
    after = replace(FIRST, **change)
    found = differences.compare([FIRST], [after])
    assert [(item.before, item.after, item.aspects) for item in found.changed] == [(FIRST, after, (aspect,))]
    assert not found.added and not found.removed and found.unchanged == 0


def test_two_findings_at_one_place_are_told_apart() -> None:
    second = replace(FIRST, message="`.tolist()` waits")
    found = differences.compare([FIRST, second, second], [second, FIRST])
    assert found.removed == [second] and found.unchanged == 2 and not found.changed and not found.added


def test_the_json_of_versions_without_help_is_read(tmp_path: Path) -> None:
    def place(row: int, column: int) -> dict[str, int]:
        return {"row": row, "column": column}

    edit = {"location": place(3, 5), "end_location": place(3, 17), "content": "loss.detach()"}
    item = {
        "filename": str(tmp_path / "demo" / "train.py"),
        "code": "TL202",
        "location": place(3, 5),
        "end_location": place(3, 17),
        "severity": "warning",
        "message": "`.item()` waits",
        "fix": {"applicability": "safe", "message": "Accumulate the tensor", "edits": [edit]},
    }
    assert differences.finding(item, "demo", tmp_path) == FIRST
    assert differences.finding({**item, "help": "Other"}, "demo", tmp_path).help == "Other"
    bare = differences.finding({**item, "fix": None}, "demo", tmp_path)
    assert (bare.help, bare.grade, bare.edits) == (None, "none", ())


class Torchlint:
    """Stands in for both versions: each fixes to a text of its own, and only the old one finds something."""

    def __init__(self) -> None:
        self.options: list[tuple[Path, list[str]]] = []

    def __call__(self, folder: Path, options: list[str], **how: Any) -> list[dict[str, Any]]:
        self.options.append((how["python"], options))
        if "--fix" in options:
            assert (folder / "demo" / "other.py").is_file()
            (path,) = how["paths"]
            path.write_bytes(path.read_bytes() + bytes(how["python"].parent.name, "ascii"))
        if how["python"] == NEW.python:
            return []
        place = {"row": 1, "column": 1}
        fix = {"applicability": "unsafe", "message": "Do", "edits": []}
        found = {"filename": str(folder / "demo" / "train.py"), "code": "TL202", "severity": "warning"}
        return [{**found, "location": place, "end_location": place, "message": "waits", "fix": fix}]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    folder = tmp_path / "corpus" / "demo-1.0"
    (folder / "demo").mkdir(parents=True)
    (folder / "demo" / "train.py").write_bytes(b"x\n")
    (folder / "demo" / "other.py").touch()
    monkeypatch.setattr(findings, "diagnostics", Torchlint())
    return Package("demo", "1.0", folder)


def test_a_package_is_checked_and_copies_are_fixed(demo: Package, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    found = comparison.compare(demo, OLD, NEW, tmp_path / "work")
    assert (found.files, found.before, found.after) == (2, {"TL202": 1}, {})
    assert len(found.differences.removed) == 1 and not found.differences.added
    assert found.fixed == [Fixed("demo", "demo/train.py", b"x\nold", b"x\nnew")]
    assert (demo.folder / "demo" / "train.py").read_bytes() == b"x\n"


def test_the_command_writes_and_its_status_tells(
    demo: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "prepare", lambda asked, folder: {"a": OLD, "b": NEW}[asked])
    shared = ["compare", "--folder", str(tmp_path / "none"), "--tree", f"demo={demo.folder}"]
    json_file = tmp_path / "out.json"
    done = CliRunner().invoke(
        command.main, [*shared, "--before", "a", "--after", "b", "--json", str(json_file)]
    )
    assert done.exit_code == 1 and "# From old to new" in done.output
    (package,) = json.loads(json_file.read_text(encoding="utf-8"))["packages"]
    assert package["fixed_otherwise"] == ["demo/train.py"] and package["removed"][0]["code"] == "TL202"
    same = CliRunner().invoke(command.main, [*shared, "--before", "b", "--after", "b"])
    assert same.exit_code == 0

    torchlint = findings.diagnostics
    assert isinstance(torchlint, Torchlint)
    torchlint.options.clear()
    done = CliRunner().invoke(
        command.main, [*shared, "--before", "b", "--before-option=--no-project", "--after", "b"]
    )
    assert "# From new --no-project to new\n" in done.output
    assert ["--no-project" in options for _, options in torchlint.options] == [True, False]

    def broken(*_: object, **__: object) -> list[dict[str, Any]]:
        raise RuntimeError("torchlint exited with 3")

    monkeypatch.setattr(findings, "diagnostics", broken)
    failed = CliRunner().invoke(command.main, [*shared, "--before", "a", "--after", "b"])
    assert failed.exit_code == 2 and "- demo: torchlint exited with 3" in failed.output


def test_the_report(tmp_path: Path) -> None:
    louder = replace(FIRST, message="a | b", grade="unsafe")
    gone = [replace(FIRST, code="TL203", path=f"demo/{number}.py") for number in range(3)]
    compared = Comparison(
        package=Package("demo", "1.0", tmp_path),
        files=5,
        before={"TL202": 1, "TL203": 3},
        after={"TL202": 1},
        differences=differences.compare([FIRST, *gone], [louder]),
        fixed=[Fixed("demo", "demo/train.py", b"secret = 1\n", b"secret = 2\nmore\n")],
    )
    text = report.markdown(OLD, NEW, [compared], [], examples=1)
    assert (
        "1 package, 5 files. 4 findings before, 1 after: 0 added, 3 removed, 1 changed, 0 the same." in text
    )
    assert "| TL202 | 1 | 1 | 0 | 0 | 1 | message 1, grade 1 |" in text
    assert "| TL203 | 3 | 0 | 0 | 3 | 0 |  |" in text
    assert "- removed: `demo` demo/0.py:3:5 `.item()` waits (safe fix)\n- removed: 2 more" in text
    assert (
        "- changed (message, grade): `demo` demo/train.py:3:5 `.item()` waits → a \\| b; safe → unsafe"
        in text
    )
    assert "- `demo` demo/train.py: 1 line less, 2 more" in text
    assert "| demo 1.0 | 5 | 4 | 1 | 0 | 3 | 1 | 1 |" in text
    assert "secret" not in text
    assert "  -secret = 1\n  +secret = 2" in report.markdown(OLD, NEW, [compared], [], examples=1, code=True)


def test_names_of_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []

    def install(requirement: str, home: Path) -> Path:
        installed.append(requirement)
        home.mkdir(parents=True, exist_ok=True)
        return home / "python"

    monkeypatch.setattr(versions, "_installed", install)
    wheel = tmp_path / "torchlint-9.0-py3-none-any.whl"
    wheel.touch()
    assert versions.prepare(str(wheel), tmp_path).name == wheel.name
    assert versions.prepare("0.0.9", tmp_path).name == "torchlint 0.0.9"
    assert installed == [str(wheel), "torchlint==0.0.9"]
    for asked in ("no such branch", "missing.whl", "--output=x"):
        with pytest.raises(ValueError, match=asked):
            versions.prepare(asked, tmp_path)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, other = (versions.prepare(str(tmp_path / name), tmp_path / "homes") for name in ("one", "other"))
    assert one.python != other.python


def test_a_commit_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    (project / "torchlint").mkdir(parents=True)
    (project / "torchlint" / "__init__.py").touch()
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    for command_line in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "m"]):
        subprocess.run(["git", *command_line], cwd=project, check=True)
    monkeypatch.setattr(versions, "ROOT", project)
    installed: list[bool] = []

    def install(requirement: str, home: Path) -> Path:
        installed.append((Path(requirement) / "torchlint" / "__init__.py").is_file())
        home.mkdir(parents=True)
        return home / "python"

    monkeypatch.setattr(versions, "_installed", install)
    head, again = (versions.prepare("HEAD", tmp_path / "homes") for _ in range(2))
    assert len(head.name) == 7 and head.name == again.name and installed == [True]


def test_a_working_tree_is_copied_without_what_is_ignored(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "build").mkdir(parents=True)
    for name, text in {".gitignore": "build/\n", "new.py": "a\n", "build/stale.py": "b\n"}.items():
        (tree / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    copy = versions._copied(tree, tmp_path / "copy")
    assert sorted(path.name for path in copy.rglob("*") if path.is_file()) == [".gitignore", "new.py"]
