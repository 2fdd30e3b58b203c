"""Changes, baselines and added comments on the command line, with a small rule pack of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tests.conftest import lint
from torchlint.diagnostics import Applicability, Edit, Fix
from torchlint.options import LintSettings
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule("ZZ101", "bad-called", severity=WARNING, fix="safe", on=cst.Call, mentions=("bad",))
def bad_called(call: cst.Call, module: Module) -> Iterator[Finding]:
    """Finds `bad()`, and makes two statements of it."""
    if isinstance(call.func, cst.Name) and call.func.value == "bad":
        edit = Edit(module.tree.span(call.func), "good()\ngood")
        yield Finding(call, "`bad` is called", fix=Fix("Use `good`", (edit,), Applicability.SAFE))


@rule("ZZ102", "worse-called", severity=WARNING, fix="none", on=cst.Call, mentions=("worse",))
def worse_called(call: cst.Call, module: Module) -> Iterator[Finding]:
    """Finds `worse()`."""
    if isinstance(call.func, cst.Name) and call.func.value == "worse":
        yield Finding(call, "`worse` is called")


@pytest.fixture(autouse=True)
def work(git: Any, use_rules: Callable[..., LintSettings], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit, in which only the rules of this file exist."""
    use_rules(bad_called, worse_called)
    git.write("torchlint.toml", 'select = ["ZZ", "TL"]\n')
    git.commit(old="bad()\nworse()\n", other="worse()\n")
    monkeypatch.chdir(git.top)
    top: Path = git.top
    return top


def places(*args: str) -> list[str]:
    """File, row and code of everything that is reported."""
    found = json.loads(lint("--output-format", "json", *args).stdout)
    return [f"{Path(item['filename']).name}:{item['location']['row']} {item['code']}" for item in found]


# --- changes ---------------------------------------------------------------------------------------------


def test_only_what_is_on_changed_lines_is_reported(git: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    git.write("old.py", "bad()\nworse()\nworse()\n")
    git.write("sub/new.py", "bad()\n")
    git.write("broken.py", "x = (\n")

    expected = ["broken.py:1 TL001", "old.py:3 ZZ102", "new.py:1 ZZ101"]
    assert places("--changed-since", "main") == expected
    result = lint("--changed-since", "main")
    assert result.exit_code == 1
    assert "Found 1 error, 2 warnings on changed lines.\n" in result.stdout
    assert lint("--changed-since", "main", "other.py").exit_code == 0
    shown = lint("--changed-since", "main", "--show-files").stdout.splitlines()
    assert [Path(line).name for line in shown] == ["broken.py", "old.py", "new.py"]
    monkeypatch.chdir(git.top / "sub")
    assert places("--changed-since", "HEAD", "..") == expected


def test_a_file_that_does_not_parse_is_reported_wherever_the_error_is(git: Any) -> None:
    git.commit(old="x = (\n\n")
    git.write("old.py", "x = (\n\ny = 1\n")

    assert places("--changed-since", "main") == ["old.py:1 TL001"]


def test_only_what_is_on_changed_lines_is_fixed(git: Any) -> None:
    path = git.write("old.py", "bad()\nworse()\nbad()\nbad()\n")

    result = lint("--changed-since", "main", "--diff", "-q")
    assert result.stdout.count("\n-bad()") == 2
    assert lint("--changed-since", "main", "--fix").exit_code == 0
    assert path.read_text() == "bad()\nworse()\n" + "good()\n" * 4


def test_what_is_staged_is_checked_as_it_is_staged(git: Any) -> None:
    path = git.write("old.py", "bad()\nworse()\nbad( )\n")
    git("add", "old.py")
    git.write("other.py", "worse()\nbad()\n")
    assert places("--staged") == ["old.py:3 ZZ101"]
    assert lint("--staged", "--fix").exit_code == 0
    assert path.read_text() == "bad()\nworse()\ngood()\ngood( )\n"

    result = lint("--staged")
    assert result.exit_code == 1
    # The working tree has something else in that line.
    assert "3 | bad( )" in result.stdout
    for flag in ("--fix", "--add-noqa"):
        result = lint("--staged", flag)
        assert result.exit_code == 2
        assert f"{flag} cannot change what is staged of {path}" in result.stderr
    assert path.read_text() == "bad()\nworse()\ngood()\ngood( )\n"
    path.unlink()
    assert f"{path} is staged but missing from the working tree" in lint("--staged").stderr


@pytest.mark.parametrize("option", [["--staged"], ["--changed-since", "HEAD"]])
def test_a_path_that_does_not_exist_is_told_where_only_changes_count(option: list[str]) -> None:
    result = lint(*option, "old.py", "mispelt.py")
    assert "mispelt.py does not exist, and was not checked" in result.stderr
    assert "old.py" not in result.stderr and result.exit_code == 0


def test_files_of_no_repository_are_left_out_with_a_word(git: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("bad()\n")

    result = lint("--changed-since", "main", str(outside))
    assert (result.exit_code, "1 file outside the repository" in result.stderr) == (0, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--changed-since", "nowhere"], "`nowhere` is not a commit"),
        (["--changed-since", "--output=x"], "`--output=x` is not a commit"),
        (["--changed-since", ""], "--changed-since requires"),
        (["--changed-since", "main", "-"], "--changed-since does not work with standard input"),
        (["--staged", "--changed-since", "main"], "--changed-since and --staged cannot be combined"),
        (["--update-baseline"], "--update-baseline requires --baseline FILE"),
        (["--update-baseline", "--baseline", "b", "--staged"], "--staged and --update-baseline cannot"),
        (["--update-baseline", "--baseline", "b", "--diff"], "--update-baseline and --diff cannot"),
        (["--update-baseline", "--baseline", "b", "--ignore-baseline"], "cannot be combined"),
        (["--update-baseline", "--baseline", "nowhere/b"], "cannot write the baseline"),
        (["--baseline", "b"], "no such file or directory; `--update-baseline` creates it"),
        (["--baseline", "old.py"], "old.py: it is not valid JSON"),
        (["--add-noqa", "--fix"], "cannot be combined with --fix"),
        (["--add-noqa", "--ignore-noqa"], "cannot be combined"),
        (["--add-noqa=one\ntwo"], "the reason must be a single line"),
        (["--add-noqa", "-"], "--add-noqa does not work with standard input"),
        (["--report", "json"], "--report expects FORMAT=FILE"),
        (["--report", "jsno=x"], "`jsno` is none of"),
        (["--report", "json=nowhere/x"], "cannot write"),
    ],
)
def test_what_cannot_be_followed_ends_the_run_with_2(args: list[str], said: str) -> None:
    result = lint(*args)

    assert result.exit_code == 2
    assert said in result.stderr


def notebook(*cells: str, printed: str = "") -> str:
    """The JSON of a notebook with these code cells, the first of which printed something."""
    outputs = [{"name": "stdout", "output_type": "stream", "text": [printed]}]
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": outputs if number == 1 else [],
            "source": text.splitlines(keepends=True),
        }
        for number, text in enumerate(cells, 1)
    ]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def cells(path: Path) -> list[str]:
    """The sources of the cells of a notebook."""
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def test_of_a_notebook_the_changed_cells_count(git: Any) -> None:
    path = git.write("n.ipynb", notebook("%pip list\nbad()", "worse()", "bad()\nworse()"))
    git.commit()
    path.write_text(notebook("%pip list\nbad()", "worse()", "bad()\nx = 1\nworse()", printed="something"))

    assert places("--changed-since", "main") == ["n.ipynb:1 ZZ101", "n.ipynb:3 ZZ102"]
    assert lint("--changed-since", "main", "--fix").exit_code == 1
    assert cells(path) == ["%pip list\nbad()", "worse()", "good()\ngood()\nx = 1\nworse()"]
    assert lint("--changed-since", "main", "--add-noqa").exit_code == 0
    assert cells(path)[1:] == ["worse()", "good()\ngood()\nx = 1\nworse()  # noqa: ZZ102"]
    assert lint("--add-noqa").exit_code == 0
    assert cells(path)[:2] == ["%pip list\nbad()  # noqa: ZZ101", "worse()  # noqa: ZZ102"]


def test_a_notebook_has_entries_in_a_baseline(git: Any) -> None:
    path = git.write("n.ipynb", notebook("%pip list\nbad()", "worse()"))
    lint("--baseline", "known.json", "--update-baseline", "n.ipynb")
    listed = json.loads((git.top / "known.json").read_text())["findings"]
    path.write_text(notebook("x = 1", "worse()", "%pip list\nbad()", "worse()"))

    assert [(item["code"], item["line"]) for item in listed] == [("ZZ101", "bad()"), ("ZZ102", "worse()")]
    (found,) = json.loads(lint("--baseline", "known.json", "--output-format", "json", "n.ipynb").stdout)
    assert (found["code"], found["cell"]) == ("ZZ102", 4)


# --- baselines -------------------------------------------------------------------------------------------


@pytest.fixture
def baseline(work: Path) -> Path:
    """The baseline of everything that is found at first, named in the config file."""
    with (work / "torchlint.toml").open("a") as file:
        file.write('baseline = "known.json"\n')
    result = lint("--update-baseline")
    assert (result.exit_code, result.stdout) == (
        0,
        "Wrote 3 findings (3 added, 0 removed) to known.json.\n",
    ), result.stdout
    return work / "known.json"


def test_only_what_is_new_is_reported(git: Any, baseline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lint().stdout == "All checks passed!\n3 findings listed in the baseline not shown.\n"
    assert lint().exit_code == 0
    git.write("old.py", "# moved\nif 1:\n    bad()\nworse()\nworse()\n")
    assert places() == ["old.py:5 ZZ102"]
    assert "Found 1 warning not in the baseline.\n" in lint().stdout
    assert "baseline.\n" not in lint("--ignore-baseline").stdout
    monkeypatch.chdir(git.write("sub/new.py", "").parent)
    assert places("..") == ["old.py:5 ZZ102"]
    assert places("..", "--ignore-baseline") == [
        "old.py:3 ZZ101",
        "old.py:4 ZZ102",
        "old.py:5 ZZ102",
        "other.py:1 ZZ102",
    ]
    assert places("..", "--isolated", "--select", "ZZ101") == ["old.py:3 ZZ101"]


def test_the_file_is_readable(baseline: Path) -> None:
    listed = json.loads(baseline.read_text())["findings"]

    assert [(item["code"], item["path"], item["line"]) for item in listed] == [
        ("ZZ101", "old.py", "bad()"),
        ("ZZ102", "old.py", "worse()"),
        ("ZZ102", "other.py", "worse()"),
    ]


def test_what_is_fixed_leaves_and_what_was_not_looked_at_stays(git: Any, baseline: Path) -> None:
    git.write("old.py", "worse()\n")
    git.write("other.py", "")
    assert lint().stdout.endswith(
        "1 finding listed in the baseline not shown.\n"
        "2 findings in the baseline no longer found; run with `--update-baseline` to remove them.\n"
    )
    lint("--update-baseline", "--select", "ZZ102", "old.py")
    assert baseline.read_text().count("old.py") == 2
    assert "Wrote 2 findings (0 added, 1 removed)" in lint("--update-baseline", "old.py").stdout
    (git.top / "other.py").unlink()
    assert "Wrote 1 finding (0 added, 1 removed)" in lint("--update-baseline", "old.py").stdout
    git.write("old.py", "x = (\n")
    result = lint("--update-baseline")
    assert result.exit_code == 1
    assert baseline.read_text().count("old.py") == 1


def test_what_the_baseline_lists_is_not_fixed(git: Any, baseline: Path) -> None:
    path = git.write("old.py", "bad()\nworse()\nbad()\n")

    assert lint("--fix").exit_code == 0
    # Of two equal findings the first is the one that is known.
    assert path.read_text() == "bad()\nworse()\ngood()\ngood()\n"
    assert lint("--fix", "--update-baseline").stdout.startswith("Found 1 problem (1 fixed, 0 remaining).")
    assert path.read_text() == "good()\ngood()\nworse()\ngood()\ngood()\n"
    assert baseline.read_text().count("old.py") == 1


def test_standard_input_has_the_baseline_of_its_name(baseline: Path) -> None:
    text = "bad()\nworse()\nbad()\n"
    result = lint("-", "--stdin-filename", "old.py", "-q", "--output-format", "concise", stdin=text)

    assert result.stdout == "old.py:3:1: ZZ101 [*] `bad` is called\n"


def test_a_baseline_and_a_change_together(git: Any, baseline: Path) -> None:
    git.write("old.py", "x = 1\nbad()\nworse()\n" + "worse(1)\n")

    assert places("--changed-since", "HEAD") == ["old.py:4 ZZ102"]


# --- comments --------------------------------------------------------------------------------------------


def test_comments_are_added_and_a_second_run_finds_nothing(work: Path) -> None:
    result = lint("--add-noqa", "old.py")

    assert (result.exit_code, result.stdout) == (
        0,
        "2 findings silenced by comments.\n",
    )
    assert (work / "old.py").read_text() == "bad()  # noqa: ZZ101\nworse()  # noqa: ZZ102\n"
    assert (work / "other.py").read_text() == "worse()\n"
    lint("--add-noqa=known since 2019")
    assert (work / "other.py").read_text() == "worse()  # noqa: ZZ102 known since 2019\n"
    assert lint("--add-noqa").stdout == "0 findings silenced by comments.\n"


def test_comments_are_added_where_a_change_is(git: Any) -> None:
    path = git.write("old.py", "bad()\nworse()\nworse()\n")

    assert lint("--add-noqa", "--changed-since", "main", ".").exit_code == 0
    assert path.read_text() == "bad()\nworse()\nworse()  # noqa: ZZ102\n"
    assert lint("--add-noqa=x", "--select", "ZZ101", "--", "old.py").exit_code == 0
    assert path.read_text() == "bad()  # noqa: ZZ101 x\nworse()\nworse()  # noqa: ZZ102\n"


def test_findings_that_stream_are_none_that_go_to_the_baseline_or_another_report(work: Path) -> None:
    streamed = ("--output-format", "json-lines", "old.py")

    assert len(lint(*streamed).stdout.splitlines()) == 2
    assert lint(*streamed, "--baseline", "known.json", "--update-baseline").stdout == ""
    assert len(lint(*streamed, "--report", "concise=c.txt").stdout.splitlines()) == 2
    assert len((work / "c.txt").read_text().splitlines()) == 2


def test_a_comment_that_cannot_be_encoded_is_not_added(git: Any) -> None:
    path = git.write("old.py", b"# coding: latin-1\nbad()  # \xe9\n")

    result = lint("--add-noqa=\u20ac", "old.py", "--output-format", "concise")
    assert result.exit_code == 1
    assert "TL001" in result.stdout and "ZZ101" in result.stdout
    assert path.read_bytes() == b"# coding: latin-1\nbad()  # \xe9\n"


# --- further reports -------------------------------------------------------------------------------------


def test_further_reports_are_written_beside_the_first(work: Path) -> None:
    result = lint("old.py", "--report", "json=a=b.json", "--report=concise=c.txt", "--color", "always")

    assert "Found 2 warnings." in result.stdout
    assert [item["code"] for item in json.loads((work / "a=b.json").read_text())] == ["ZZ101", "ZZ102"]
    assert (work / "c.txt").read_text().splitlines() == [
        "old.py:1:1: ZZ101 [*] `bad` is called",
        "old.py:2:1: ZZ102 `worse` is called",
    ]
