"""Fixes that change two files: both are changed or neither is, whatever happens, and in every format."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import lint as run
from torchlint import runner, source
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Severity, Span
from torchlint.source import Change, TogetherError, write_together

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "projects" / "two_files" / "bad_sigmoid_layer"
NAMES = ("critics.py", "objectives.py", "train.py")
BEFORE = {name: (FIXTURE / name).read_text() for name in NAMES}
AFTER = {
    name: (
        twin if (twin := FIXTURE / name.replace(".py", ".fixed.py")).exists() else FIXTURE / name
    ).read_text()
    for name in NAMES
}
FIX = ("--fix", "--unsafe-fixes")


@pytest.fixture(autouse=True)
def work(work: Path) -> Path:
    """The project in the working directory, and no cache or config of the user's own."""
    for name, text in BEFORE.items():
        (work / name).write_text(text)
    return work


def lint(*arguments: str | Path, stdin: str | None = None) -> str:
    """What a run over the rule says, in one process if it does not say otherwise."""
    options = ("--select", "TL408,TL001", "-j", "1", "--impact", "low")
    return run(*options, *arguments, stdin=stdin).stdout


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in NAMES}


def found(*arguments: str | Path, stdin: str | None = None) -> list[dict[str, object]]:
    objects: list[dict[str, object]] = json.loads(lint(*arguments, "--output-format", "json", stdin=stdin))
    return objects


def test_both_files_are_changed(work: Path) -> None:
    assert "1 fixed" in lint(*FIX)
    assert texts(work) == AFTER
    assert lint(*FIX, "--diff") == ""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_neither_order_nor_processes_change_a_byte(
    work: Path, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_WORTH_A_POOL", 0)
    told = lint(*FIX, "--diff", "--no-cache", "-j", "1", *NAMES)
    assert told.count("+++") == 2
    for order in (NAMES, NAMES[::-1]):
        assert lint(*FIX, "--diff", "--no-cache", "-j", jobs, *order) == told
    lint(*FIX, "--no-cache", "-j", jobs, *NAMES[::-1])
    assert texts(work) == AFTER


def test_a_diff_shows_both_files_and_changes_none(work: Path) -> None:
    shown = lint("--diff", "--unsafe-fixes")
    assert "-        nn.Sigmoid()," in shown
    assert "+    return F.binary_cross_entropy_with_logits(scores, target)" in shown
    assert texts(work) == BEFORE


def test_formats_name_the_file_of_every_edit(work: Path) -> None:
    for _ in range(2):  # and as it is remembered
        (item,) = found()
        fix = item["fix"]
        assert isinstance(fix, dict)
        assert fix["applicability"] == "unsafe" and "withheld" not in fix
        files = [edit.get("filename") for edit in fix["edits"]]
        assert files == [None, str(work / "critics.py")]
        assert fix["edits"][1]["location"]["row"] == 9
    (result,) = json.loads(lint("--output-format", "sarif"))["runs"][0]["results"]
    changes = result["fixes"][0]["artifactChanges"]
    assert [change["artifactLocation"]["uri"] for change in changes] == ["objectives.py", "critics.py"]
    assert [len(change["replacements"]) for change in changes] == [1, 1]
    assert "::: critics.py" in lint()
    assert "suggestions" not in lint("--output-format", "rdjson")


@pytest.mark.parametrize("only", [("objectives.py",), ("objectives.py", "train.py")])
def test_a_file_that_was_not_asked_for_is_not_changed(work: Path, only: Sequence[str]) -> None:
    reason = "`critics.py` is not among the checked files"
    for arguments in (only, (*FIX, *only)):
        (item,) = found(*arguments)
        assert isinstance(item["fix"], dict)
        assert item["fix"]["withheld"] == reason
        told = lint(*arguments)
        assert f"This fix changes several files and was not applied: {reason}" in told
        assert "unsafe fix available" not in told
    assert texts(work) == BEFORE
    assert lint("--diff", "--unsafe-fixes", *only) == ""


def test_neither_is_standard_input_changed(work: Path) -> None:
    name, text = "objectives.py", BEFORE["objectives.py"]
    assert lint(*FIX, "-", "--stdin-filename", name, stdin=text) == text
    (item,) = found("-", "--stdin-filename", name, stdin=text)
    assert isinstance(item["fix"], dict) and item["fix"]["withheld"]


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_file_that_may_not_be_written_keeps_the_other_from_being_changed(work: Path, name: str) -> None:
    (work / name).chmod(0o444)
    told = lint(*FIX)
    assert f"was not applied: `{name}` cannot be written: the file is read-only" in told
    assert "fixed" not in told
    assert texts(work) == BEFORE


def test_an_excluded_file_is_no_part_of_the_project(work: Path) -> None:
    (work / "torchlint.toml").write_text("exclude = ['critics.py']\n")
    assert found(*FIX) == []
    assert texts(work) == BEFORE


def test_a_suppressed_finding_changes_nothing(work: Path) -> None:
    text = BEFORE["objectives.py"].replace("# expect: TL408 fix=unsafe", "# noqa: TL408")
    (work / "objectives.py").write_text(text)
    lint(*FIX)
    assert texts(work) == {**BEFORE, "objectives.py": text}


@pytest.mark.parametrize("changed", NAMES[:2])
def test_a_file_that_somebody_saves_meanwhile_keeps_the_other_from_being_changed(
    work: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = source.write_together

    def late(changes: Sequence[Change]) -> list[bool]:
        (work / changed).write_text("# somebody else\n")
        return write(changes)

    monkeypatch.setattr(runner, "write_together", late)
    told = lint(*FIX)
    assert "the file changed while it was checked" in told
    assert f"those of {changed}, which go together with them, cannot be written" in told
    assert texts(work) == {**BEFORE, changed: "# somebody else\n"}


def test_files_that_are_written_together_get_back_what_they_held(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(b"old")
    put, done = source._put, list[Path]()

    def failing(temporary: Path, target: Path, *rest: object) -> None:
        if target == paths[2] and rest[0] == b"new":
            raise OSError(28, os.strerror(28))
        put(temporary, target, *rest)  # type: ignore[arg-type]
        done.append(target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_put", failing)
        with pytest.raises(TogetherError, match="no space left") as failure:
            write_together([Change(path, b"new", b"old") for path in paths])
    assert failure.value.path == paths[2]
    assert done == [paths[0], paths[1], paths[1], paths[0]]
    assert [path.read_bytes() for path in paths] == [b"old"] * 3
    assert sorted(path for path in tmp_path.iterdir() if path.is_file()) == paths


def test_an_editor_is_given_one_edit_of_the_workspace(work: Path) -> None:
    from lsprotocol import types
    from pygls.workspace import PositionCodec

    from torchlint.reading import read
    from torchlint.server import actions
    from torchlint.server.documents import Places, Program, Text

    def places(path: Path) -> Places | None:
        if not path.exists():
            return None
        texts: dict[int | None, Text] = {None: Text(path.as_uri(), None)}
        return Places(Program(path.as_uri(), read(path), texts, path), PositionCodec())

    edits = (Edit(Span(0, 6), "from"), Edit(Span(0, 4), "import", work / "critics.py"))
    fix = Fix("Do it", edits, Applicability.UNSAFE)
    place = Position(1, 1)
    finding = Diagnostic(
        "TL408", "x", "x", Severity.WARNING, work / "objectives.py", Span(0, 6), place, place, fix
    )
    here = places(work / "objectives.py")
    assert here is not None
    offered = list(actions.quick_fixes([finding], Span(0, 1), here, places, versioned=True))
    edit = offered[0].edit
    assert edit is not None and edit.document_changes is not None
    changes = [each for each in edit.document_changes if isinstance(each, types.TextDocumentEdit)]
    assert [Path(each.text_document.uri).name for each in changes] == ["objectives.py", "critics.py"]
    made = [each.edits[0] for each in changes]
    assert [each.new_text for each in made if isinstance(each, types.TextEdit)] == ["from", "import"]
    shutil.move(work / "critics.py", work / "gone.py")
    left = list(actions.quick_fixes([finding], Span(0, 1), here, places, versioned=True))
    assert len(left) == len(offered) - 1
