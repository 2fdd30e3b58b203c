"""Habits of Windows and macOS, simulated: paths, names, newlines, code pages, processes and consoles."""

from __future__ import annotations

import ctypes
import errno
import io
import multiprocessing
import os
import subprocess
import sys
import types
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

import pytest

from tests.conftest import lint
from torchlint import cli, files, reading, registry, runner, source, target, testing
from torchlint.checker import check
from torchlint.commands import build, terminal
from torchlint.commands import check as check_command
from torchlint.config import Resolver
from torchlint.diagnostics import Position
from torchlint.files import discover, matches
from torchlint.options import LintSettings, Options, Pattern
from torchlint.project.surroundings import Surroundings
from torchlint.render.report import Report
from torchlint.source import SourceError, write_atomically

BAD = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.cuda())
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
SETTINGS = LintSettings(rules=("TL002", "TL601"), fixable=frozenset({"TL002", "TL601"}))


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


# --- paths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "pattern", "path", "matched"),
    [
        ("C:\\proj", "tests/**", "C:\\proj\\tests\\a.py", True),
        ("C:\\proj", "tests/**", "C:\\proj\\src\\tests\\a.py", False),
        ("C:\\proj", "/a.py", "C:\\proj\\a.py", True),
        ("C:\\proj", "/a.py", "C:\\proj\\src\\a.py", False),
        ("c:\\Proj", "/src/*.py", "C:\\proj\\src\\a.py", True),
        ("C:\\", "/src/*.py", "C:\\src\\a.py", True),
        ("C:\\proj", "C:/proj/src", "C:\\proj\\src\\a.py", True),
        ("C:\\proj", "c:/Proj/src", "C:\\proj\\src\\a.py", True),
        ("C:\\proj", "src", "D:\\proj\\src\\a.py", False),
        ("C:\\proj", "a.py", "D:\\proj\\src\\a.py", True),
        ("\\\\server\\share\\proj", "/src/*.py", "\\\\server\\share\\proj\\src\\a.py", True),
        ("\\\\server\\share\\proj", "/src/*.py", "\\\\server\\other\\proj\\src\\a.py", False),
        ("\\\\?\\C:\\proj", "/src/*.py", "\\\\?\\C:\\proj\\src\\a.py", True),
        ("C:\\proj", "!src/**", "C:\\proj\\tests\\a.py", True),
        ("C:\\proj", f"/{'x' * 300}/*.py", f"C:\\proj\\{'x' * 300}\\a.py", True),
        ("C:\\proj", "aux.py", "C:\\proj\\aux.py", True),
    ],
)
def test_patterns_on_windows(root: str, pattern: str, path: str, matched: bool) -> None:
    home: Any = PureWindowsPath(root)
    assert matches(Pattern(pattern, home), PureWindowsPath(path)) is matched


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("C:\\proj\\src\\a.py", "src\\a.py"),
        ("c:\\PROJ\\src\\a.py", "src\\a.py"),
        ("C:\\other\\a.py", "C:\\other\\a.py"),
        ("\\\\server\\share\\a.py", "\\\\server\\share\\a.py"),
        ("\\\\?\\C:\\proj\\a.py", "\\\\?\\C:\\proj\\a.py"),
    ],
)
def test_people_see_the_separators_of_their_system(path: str, shown: str) -> None:
    root: Any = PureWindowsPath("C:\\proj")
    file: Any = PureWindowsPath(path)
    assert Report((), lambda _: None, root=root).shown(file) == shown


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("wanted", ["NFC", "NFD"])
def test_accents_are_one_character_or_two(work: Path, form: str, wanted: str) -> None:
    """HFS+ gives back `é` as two characters, whatever the user typed into the config file."""
    spelled = {"NFC": unicodedata.normalize("NFC", "café"), "NFD": unicodedata.normalize("NFD", "café")}
    folder, pattern = spelled[form], spelled[wanted]
    (work / folder).mkdir()
    (work / folder / "a.py").write_text("", encoding="utf-8")
    assert matches(Pattern(f"{pattern}/*.py", work), work / folder / "a.py")
    options = Options(extend_exclude=(Pattern(pattern, work),))
    assert discover([work], lambda _: options).files == ()
    (work / ".git").mkdir()
    (work / ".gitignore").write_text(f"{pattern}/\n", encoding="utf-8")
    assert discover([work], lambda _: Options()).files == ()


def test_two_spellings_of_one_file_are_one_file(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS and Windows find `a.py` under the name `A.py`, too."""
    for name in ("a.py", "A.py", "b.py"):
        (work / name).write_text("", encoding="utf-8")
    # Two files, two hard links and a link are what they are, wherever case counts.
    os.link(work / "b.py", work / "B.py")
    (work / "linked.py").write_text("", encoding="utf-8")
    (work / "LINKED.py").symlink_to("linked.py")
    everything = [work / name for name in ("A.py", "B.py", "LINKED.py", "a.py", "b.py", "linked.py")]
    assert list(discover([work], lambda _: Options()).files) == everything

    assert files._same_entry(work / "a.py", work / "a.py")
    monkeypatch.setattr(os.path, "samestat", lambda found, other: True)
    assert list(discover([work / "a.py", work / "A.py"], lambda _: Options()).files) == [work / "A.py"]


def test_a_path_may_be_longer_than_260_characters(work: Path) -> None:
    deep = work.joinpath(*["d" * 100] * 5)
    deep.mkdir(parents=True)
    (deep / "a.py").write_text(BAD, encoding="utf-8")
    assert "a.py:9:9: TL601" in lint("--output-format", "concise", "--select", "TL601").stdout
    assert lint("--fix", "--select", "TL601").exit_code == 0
    assert "empty_cache" not in (deep / "a.py").read_text(encoding="utf-8")


def test_a_junction_is_not_followed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("junction", "folder"):
        (work / name).mkdir()
        (work / name / "a.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(files, "_WINDOWS", True)
    real = files._is_junction

    def entry(found: os.DirEntry[str]) -> Any:
        tag = 0xA0000003 if found.name == "junction" else 0
        return types.SimpleNamespace(stat=lambda follow_symlinks: types.SimpleNamespace(st_reparse_tag=tag))

    monkeypatch.setattr(files, "_is_junction", lambda found: real(entry(found)))
    assert discover([work], lambda _: Options()).files == (work / "folder" / "a.py",)


def test_patterns_that_the_shell_left_to_the_program(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.py", "a.py", "[c].py"):
        (work / name).write_text(BAD, encoding="utf-8")
    arguments = ("--select", "TL601", "--show-files", "*.py", "[c].py", "x*.py")
    taken = lint(*arguments)
    assert [Path(line).name for line in taken.stdout.splitlines()] == ["[c].py"]
    assert "/*.py does not exist" in taken.stderr and "/x*.py does not exist" in taken.stderr
    monkeypatch.setattr(check_command, "WINDOWS", True)
    taken = lint(*arguments)
    assert [Path(line).name for line in taken.stdout.splitlines()] == ["[c].py", "a.py", "b.py"]
    assert "/x*.py does not exist" in taken.stderr and "/*.py" not in taken.stderr


def test_a_glob_with_backslashes_is_explained() -> None:
    result = lint("--extend-exclude", "src\\generated\\")
    assert result.exit_code == 2
    assert "--extend-exclude: `src\\generated\\` is not a glob pattern: separate directories" in result.stderr


def test_devices_are_no_programs() -> None:
    assert "cannot read the file: it is a device" in lint("--output-format", "concise", os.devnull).stdout
    assert lint("-o", os.devnull, "--exit-zero").exit_code == 0


# --- newlines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_end_of_line(work: Path, newline: str) -> None:
    text = BAD.replace("empty_cache()", "empty_cache()  # noqa: TL601") + BAD.replace("train", "test")
    data = text.replace("\n", newline).encode()
    found = check(reading.from_bytes(data, work / "a.py"), SETTINGS)
    assert [(item.code, item.start) for item in found] == [("TL601", Position(18, 9))]
    path = work / "a.py"
    path.write_bytes(data)
    lint("--fix", "--select", "TL601", "a.py")
    kept = text[: text.rindex("        torch.cuda.empty_cache()\n")]
    assert path.read_bytes() == kept.replace("\n", newline).encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_configs_and_ignore_files_of_windows_editors(work: Path, newline: str, bom: str) -> None:
    for name, text in (
        ("torchlint.toml", f"{bom}select = ['TL601']\nextend-exclude = ['b.py']\n"),
        (".gitignore", "c.py\n\n# d.py\n"),
        ("requirements.txt", f"{bom}numpy\ntorch>=2.4\n"),
    ):
        (work / name).write_bytes(text.replace("\n", newline).encode())
    (work / ".git").mkdir()
    for name in "abcd":
        (work / f"{name}.py").write_text(BAD, encoding="utf-8")
    result = lint("--output-format", "concise", "-q")
    assert [line[:4] for line in result.stdout.splitlines()] == ["a.py", "d.py"]
    target.forget()
    assert str(Resolver(registry.catalogue(), directory=work).lint(work / "a.py").target) == ">=2.4.0"


def test_a_patch_has_the_ends_of_lines_of_the_program(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows makes CR LF of every LF that a program writes as text."""
    (work / "a.py").write_bytes(BAD.replace("\n", "\r\n").encode())
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="cp437", newline="\r\n")
    monkeypatch.setattr(terminal, "WINDOWS", True)
    monkeypatch.setattr(sys, "stdout", stream)
    build(cli._COMMANDS, cli._DEFAULT).main(
        ["--diff", "-q", "--select", "TL601"], prog_name="torchlint", standalone_mode=False
    )
    stream.flush()
    written = buffer.getvalue()
    monkeypatch.undo()
    assert b"\r\r\n" not in written
    assert b"\n-        torch.cuda.empty_cache()\r\n" in written and b"\n+++ a.py\n" in written


# --- code pages --------------------------------------------------------------------------------------

COMMANDS = {
    "check": ["check", "--select", "TL601"],
    "diff": ["check", "--select", "TL601", "--diff"],
    "help": ["check", "--help"],
    "rule": ["rule", "TL202"],
    "rules": ["rule", "--all"],
    "pages": ["--color", "always", "rule", "TL202"],
    "config": ["config"],
    "schema": ["schema"],
    "wrong": ["check", "--select", "…→"],
}


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1252"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_code_page_ends_a_run(
    work: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, command: str
) -> None:
    (work / "übung→.py").write_text(f'"""… → 日本"""\n{BAD}        print("日本…→")\n', encoding="utf-8")
    buffers = [io.BytesIO(), io.BytesIO()]
    streams = [io.TextIOWrapper(buffer, encoding=encoding, errors="strict") for buffer in buffers]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    status = build(cli._COMMANDS, cli._DEFAULT).main(
        COMMANDS[command], prog_name="torchlint", standalone_mode=False
    )
    for stream in streams:
        stream.flush()
    written = b"".join(buffer.getvalue() for buffer in buffers)
    monkeypatch.undo()
    assert status == {"check": 1, "diff": 1, "wrong": 2}.get(command, 0)
    # Click takes ASCII for a mistake, and writes UTF-8 instead.
    text = written.decode(encoding, "replace")
    assert text and "internal-error" not in text and "UnicodeEncodeError" not in text
    if command == "check":
        assert "\\u65e5\\u672c" in text and "TL601" in text


def test_a_locale_without_letters(work: Path) -> None:
    (work / "übung.py").write_text(BAD + '        print("…")\n', encoding="utf-8")
    (work / "torchlint.toml").write_text("# …\nselect = ['TL601']\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "torchlint", "--fix", "--show-fixes"],
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )
    assert (run.returncode, run.stderr) == (0, b"")
    # To this locale the name of the file is no text.
    assert b"\\ufffd\\ufffdbung.py" in run.stdout and b"1 \\xd7 TL601" in run.stdout
    assert "empty_cache" not in (work / "übung.py").read_text(encoding="utf-8")


def test_fixtures_are_told_of_in_every_code_page(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = work / "TL601_cache_emptied_in_loop"
    folder.mkdir()
    (folder / "bad.py").write_text(BAD.replace("torch.cuda", "print('日本'); torch.cuda"), encoding="utf-8")
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    status = testing.main([str(folder)])
    stream.flush()
    written = buffer.getvalue()
    monkeypatch.undo()
    assert status == 1
    assert b"expects something" in written and b"\\u65e5" in written


# --- processes ---------------------------------------------------------------------------------------


def test_processes_that_are_spawned_find_the_same(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes to a worker and comes back is pickled, and the worker imports what it needs."""
    paths = []
    for number in range(4):
        path = work / f"{number}.py"
        path.write_text(BAD + f"# {'x' * 100}\n" * 900, encoding="utf-8")
        paths.append(path)
    settings = dict.fromkeys(paths, SETTINGS)
    alone = list(runner.run(paths, settings, runner.Mode(), jobs=1))
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    pools: list[str] = []
    real = multiprocessing.get_context

    def context(method: str) -> Any:
        pools.append(method)
        return real(method)

    monkeypatch.setattr(multiprocessing, "get_context", context)
    assert list(runner.run(paths, settings, runner.Mode(), jobs=2)) == alone
    assert pools == ["spawn"] and len(alone[0].diagnostics) == 1
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn", "fork", "forkserver"])
    monkeypatch.setattr(sys, "platform", "darwin")
    runner._pool(1, Surroundings()).shutdown()
    assert pools[-1] == "spawn"


def test_windows_waits_for_61_handles_at_most(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [work / f"{number}.py" for number in range(100)]
    for path in paths:
        path.write_text("#" * 4_000, encoding="utf-8")
    wanted: list[int] = []

    def in_pool(work: Any, sizes: Any, mode: runner.Mode, jobs: int, around: Surroundings) -> Any:
        wanted.append(jobs)
        return runner._in_process(work, sizes, mode, around)

    monkeypatch.setattr(runner, "_in_pool", in_pool)
    results = list(runner.run(paths, dict.fromkeys(paths, SETTINGS), runner.Mode(), jobs=200))
    assert (len(results), wanted) == (100, [60])


def test_processors_are_counted_where_there_is_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert runner._processors() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert runner._processors() == 1


# --- files in use, pipes and consoles --------------------------------------------------------------------


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Replacing a file fails as often as the number in the list says."""
    left, real = [0], Path.replace

    def replace(self: Path, target: PurePath) -> Path:
        if left[0]:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "Access is denied")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(source, "_renameat2", lambda: None)
    monkeypatch.setattr(source, "_PAUSES", (0.0, 0.0, 0.0))
    yield left


@pytest.mark.parametrize(
    ("windows", "times", "written"),
    [(True, 0, True), (True, 3, True), (True, 4, False), (False, 1, False), (False, 0, True)],
)
def test_a_file_that_somebody_has_open(
    work: Path, monkeypatch: pytest.MonkeyPatch, busy: list[int], windows: bool, times: int, written: bool
) -> None:
    monkeypatch.setattr(source, "_WINDOWS", windows)
    busy[0] = times
    path = work / "a.py"
    path.write_bytes(b"old")
    if written:
        assert write_atomically(path, b"new", b"old")
    else:
        with pytest.raises(SourceError, match="cannot write the fixes: access is denied"):
            write_atomically(path, b"new", b"old")
    assert path.read_bytes() == (b"new" if written else b"old")
    assert [item.name for item in work.iterdir()] == ["a.py"]


def test_a_reader_that_has_gone_on_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There is no SIGPIPE and no EPIPE: writing to the pipe is an invalid argument."""

    class Gone(io.TextIOWrapper):
        def write(self, text: str) -> int:
            raise OSError(errno.EINVAL, "Invalid argument")

    with (tmp_path / "out").open("wb") as file:
        stream = Gone(file)
        monkeypatch.setattr(terminal, "WINDOWS", True)
        terminal._write(stream, "text")
    with (tmp_path / "out").open("wb") as file:
        monkeypatch.setattr(terminal, "WINDOWS", False)
        with pytest.raises(terminal.OutputError, match="Invalid argument"):
            terminal._write(Gone(file), "text")


@pytest.mark.parametrize(
    ("consoles", "modern", "colored"),
    [((-11, -12), True, True), ((-11,), True, True), ((-11, -12), False, False), ((), True, False)],
)
def test_consoles_of_windows_are_told_to_understand_colours(
    monkeypatch: pytest.MonkeyPatch, consoles: tuple[int, ...], modern: bool, colored: bool
) -> None:
    """An old one cannot: it would show the escape sequences themselves."""
    modes = dict.fromkeys(consoles, 0x3)

    def get_mode(handle: int, mode: Any) -> int:
        mode._obj.value = modes.get(handle, 0)
        return int(handle in modes)

    def set_mode(handle: int, mode: int) -> int:
        modes[handle] = mode
        return int(modern)

    kernel = types.SimpleNamespace(
        GetStdHandle=lambda number: number, GetConsoleMode=get_mode, SetConsoleMode=set_mode
    )
    monkeypatch.setattr(ctypes, "windll", types.SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    monkeypatch.setattr(terminal, "WINDOWS", True)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert terminal.Terminal().colored(io.StringIO()) is colored
    if colored:
        assert modes == dict.fromkeys(consoles, 0x7)
    assert terminal.Terminal("always").colored(io.StringIO())
    assert not terminal.Terminal("never").colored(io.StringIO())


def test_text_is_utf8_on_windows_whatever_the_code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="cp437", newline="\r\n")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    terminal.prepare_streams()
    before = stream.encoding
    monkeypatch.setattr(terminal, "WINDOWS", True)
    terminal.prepare_streams()
    stream.write("…\n")
    stream.flush()
    monkeypatch.undo()
    assert (before, buffer.getvalue()) == ("cp437", "…\n".encode())
