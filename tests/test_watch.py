"""``--watch``: what changes is checked again, what torchlint writes itself is not."""

from __future__ import annotations

import builtins
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles
from click.testing import CliRunner, Result

from torchlint import cli, runner
from torchlint.commands import build

BAD = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
GOOD = BAD.replace("        torch.cuda.empty_cache()\n", "")
SELECT = ("--select", "TL601", "--output-format", "concise")

Step = Callable[[], object]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the files that were really checked, round by round."""
    rounds: list[list[str]] = []
    real = runner.run

    def run(paths: Any, *args: Any) -> Iterator[runner.Result]:
        rounds.append([path.name for path in paths])
        return real(paths, *args)

    monkeypatch.setattr(runner, "run", run)
    return rounds


def watch(monkeypatch: pytest.MonkeyPatch, *steps: Step, args: tuple[str, ...] = SELECT) -> Result:
    """Run with steps between the rounds that change files; each step's changes come as one batch."""
    watched: list[Any] = []

    def fake(*places: Path, **options: Any) -> Iterator[set[tuple[int, str]]]:
        watched.extend(places)
        yield set()
        for step in steps:
            before = _seen()
            step()
            after = _seen()
            changes = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            yield {(2, path) for path in changes}
            yield set()
        raise KeyboardInterrupt

    monkeypatch.setattr(watchfiles, "watch", fake)
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), ["--watch", *args], prog_name="torchlint")
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2 or watched
    return result


def _seen() -> dict[str, tuple[int, int, int]]:
    paths = [path for path in Path.cwd().rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size, path.stat().st_ino) for path in paths}


def write(name: str, text: str) -> Step:
    def step() -> None:
        path = Path.cwd() / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # However coarse the clock of the file system is.
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns + 10_000_000))

    return step


def reports(result: Result) -> list[list[str]]:
    """The files with findings, round by round: standard error and output are one in the order of writing."""
    parts = result.output.split("Watching for changes")
    return [re.findall(r"^(\S+\.py):", part, re.MULTILINE) for part in parts[:-1]]


def test_changed_added_and_removed_files_are_checked_again(
    monkeypatch: pytest.MonkeyPatch, checked: list[list[str]]
) -> None:
    write("src/a.py", BAD)()
    write("src/b.py", GOOD)()
    result = watch(
        monkeypatch,
        write("src/b.py", BAD),
        write("src/c.py", BAD),
        (Path.cwd() / "src/a.py").unlink,
        write("src/c.py", GOOD),
        args=SELECT,
    )
    assert result.exit_code == 130
    assert reports(result) == [
        ["src/a.py"],
        ["src/a.py", "src/b.py"],
        ["src/a.py", "src/b.py", "src/c.py"],
        ["src/b.py", "src/c.py"],
        ["src/b.py"],
    ]
    # What one file says counts for the others.
    assert checked == [["a.py", "b.py"], ["a.py", "b.py"], ["a.py", "b.py", "c.py"], *[["b.py", "c.py"]] * 2]


HELPER = "def report(loss):\n    print(loss.item())\n"
CALLER = BAD.replace("import torch\n", "import torch\nfrom b import report\n").replace(
    "torch.cuda.empty_cache()", "report(loss)"
)


@pytest.mark.parametrize("asked", [(), ("src/b.py",)])
def test_what_another_file_says_is_followed(monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]) -> None:
    """Also if the other file is none of those that are watched."""
    write("src/a.py", CALLER)()
    write("src/b.py", HELPER)()
    result = watch(
        monkeypatch,
        write("src/a.py", CALLER.replace("report(loss)", "pass")),
        write("src/a.py", CALLER),
        (Path.cwd() / "src/a.py").unlink,
        write("src/c.py", CALLER),
        args=("--select", "TL202", "--output-format", "concise", *asked),
    )
    assert reports(result) == [["src/b.py"], [], ["src/b.py"], [], ["src/b.py"]]


def test_what_is_of_no_concern_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, checked: list[list[str]]
) -> None:
    write("src/a.py", BAD)()
    result = watch(
        monkeypatch,
        write("src/notes.txt", "x"),
        write("build/c.py", BAD),
        write(".git/index", "x"),
        args=SELECT,
    )
    assert checked == [["a.py"]]
    assert reports(result) == [["src/a.py"]]


def test_the_config_is_followed_when_it_changes(
    monkeypatch: pytest.MonkeyPatch, checked: list[list[str]]
) -> None:
    write("src/a.py", BAD)()
    write("torchlint.toml", "select = ['TL601']")()
    result = watch(
        monkeypatch,
        write("torchlint.toml", "select = ['TL602']"),
        write("torchlint.toml", "select = ['TL60"),
        write("torchlint.toml", "select = ['TL6']\nexclude = ['b.py']"),
        write("src/pyproject.toml", "[tool.torchlint]\nselect = ['TL1']"),
        args=("--output-format", "concise", "src"),
    )
    assert reports(result) == [["src/a.py"], [], [], ["src/a.py"], []]
    assert "not valid TOML" in result.output
    assert checked == [["a.py"]] * 4


def test_a_config_that_is_wrong_from_the_start_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write("torchlint.toml", "selct = []")()
    result = watch(monkeypatch, args=SELECT)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "unknown key `selct`; did you mean `select`?" in result.stderr


def test_an_extended_file_elsewhere_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write("src/a.py", BAD)()
    base = tmp_path / "base.toml"
    base.write_text("select = ['TL601']", encoding="utf-8")
    write("torchlint.toml", f"extend = {str(base)!r}")()

    def change() -> None:
        base.write_text("select = ['TL602']  # of another length", encoding="utf-8")

    assert reports(watch(monkeypatch, change, args=("--output-format", "concise"))) == [["src/a.py"], []]


def test_fixing_does_not_answer_to_itself(monkeypatch: pytest.MonkeyPatch, checked: list[list[str]]) -> None:
    write("src/a.py", BAD)()
    touch = write("src/b.py", BAD)
    result = watch(monkeypatch, lambda: None, touch, lambda: None, args=("--fix", *SELECT))
    assert (Path.cwd() / "src/a.py").read_text(encoding="utf-8") == GOOD
    assert (Path.cwd() / "src/b.py").read_text(encoding="utf-8") == GOOD
    assert checked == [["a.py"], ["a.py", "b.py"]]
    # Each fix is told of once.
    assert result.output.count("(1 fixed, 0 remaining)") == 2


def test_the_report_of_a_format_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    write("src/a.py", BAD)()
    seen: list[str] = []
    report = Path.cwd() / "report.json"

    def fix() -> None:
        seen.append(report.read_text(encoding="utf-8"))
        write("src/a.py", GOOD)()

    watch(monkeypatch, fix, args=("--select", "TL601", "--output-format", "json", "-o", str(report)))
    assert "TL601" in seen[0]
    assert report.read_text(encoding="utf-8").split() == ["[]"]


def test_a_terminal_is_cleared_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[None] = []
    monkeypatch.setattr("torchlint.commands.terminal.is_terminal", lambda stream: True)
    monkeypatch.setattr("click.clear", lambda: cleared.append(None))
    write("src/a.py", BAD)()
    watch(monkeypatch, write("src/a.py", GOOD), args=(*SELECT, "--color", "never"))
    assert len(cleared) == 1


def test_standard_input_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    result = watch(monkeypatch, args=("-",))
    assert result.exit_code == 2
    assert "(standard input) cannot be watched" in result.stderr


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **options: Any) -> Any:
        if name == "watchfiles":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    result = CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), ["-w"], prog_name="torchlint")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "run `pip install 'watchfiles>=0.21'`" in result.stderr


def test_a_real_run_ends_quietly_with_130(work: Path) -> None:
    write("src/a.py", BAD)()
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", "--watch", "-q", *SELECT, "src"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("src/a.py:9:9: TL601")
        (work / "src" / "b.py").write_text(BAD, encoding="utf-8")
        assert process.stdout.readline().startswith("src/a.py:9:9: TL601")
        assert process.stdout.readline().startswith("src/b.py:9:9: TL601")
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "")
