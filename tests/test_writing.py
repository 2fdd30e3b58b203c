"""Whatever fails while a file is written, and whoever is killed, it is the old file or the new one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import torchlint
from torchlint import source
from torchlint.baseline import Baseline, BaselineError, Entry
from torchlint.files import discover
from torchlint.options import LintSettings, Options
from torchlint.runner import Mode, Result, run
from torchlint.source import SourceError, write_atomically
from torchlint.store import Store

OLD, NEW = b"x = 1  # noqa: TL202\n", b"x = 1\n"
SETTINGS = LintSettings(rules=("TL001", "TL002", "TL202"), fixable=frozenset({"TL002"}))


@dataclass(frozen=True)
class Writer:
    """What replaces a file in one step, by ``write(path, old, new)``.

    ``old`` and ``new`` are what the file holds before and after. ``raises`` is what it says if it cannot,
    None if nobody needs to know; ``steps`` are those of `STEPS` that it takes. One that ``keeps`` the file
    leaves its mode, and a link that leads to it, as they are.
    """

    write: Callable[[Path, bytes | None, bytes], object]
    old: bytes
    new: bytes
    raises: type[Exception] | None
    steps: tuple[str, ...] = ("open", "write", "fsync", "mode", "rename", "replace")
    keeps: bool = True


def _write_baseline(path: Path, old: bytes | None, new: bytes) -> None:
    Baseline(path, frozenset({ENTRY} if new == BASELINES[1] else ())).write()


def _write_document(path: Path, old: bytes | None, new: bytes) -> None:
    Store(path.parent).save(path.stem, "new" if new == DOCUMENTS[1] else "old")


ENTRY = Entry("a.py", "TL202", "x = 1", "0" * 16)
_LISTED = b'{"code": "TL202", "path": "a.py", "line": "x = 1", "fingerprint": "0000000000000000"}'
BASELINES = tuple(
    b'{\n  "version": 2,\n  "findings": [%s]\n}\n' % entries for entries in (b"", b"\n    %s\n  " % _LISTED)
)
DOCUMENTS = tuple(b"%s\n%s" % (sha256(body).hexdigest().encode(), body) for body in (b'"old"', b'"new"'))

# Whatever replaces files in one step; `test_every_writer_is_here` holds that there are no others.
WRITERS = {
    "fixes": Writer(lambda path, old, new: write_atomically(path, new, old), OLD, NEW, SourceError),
    "baseline": Writer(_write_baseline, BASELINES[0], BASELINES[1], BaselineError),
    "store": Writer(
        _write_document, DOCUMENTS[0], DOCUMENTS[1], None, ("open", "write", "replace"), keeps=False
    ),
}
WRITES = [(name, step) for name, writer in WRITERS.items() for step in writer.steps]


class _Full:
    """A file on a disk that has room for the first bytes only."""

    def __init__(self, file: Any, fail: Callable[..., object]) -> None:
        self._file, self._fail = file, fail

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._fail()


# Each step of a write, made to call ``fail`` in its place.
STEPS: dict[str, Callable[[pytest.MonkeyPatch, Callable[..., Any]], None]] = {
    "open": lambda patch, fail: patch.setattr(tempfile, "mkstemp", fail),
    "write": lambda patch, fail: patch.setattr(os, "fdopen", _half_written(fail)),
    "fsync": lambda patch, fail: patch.setattr(os, "fsync", fail),
    "mode": lambda patch, fail: patch.setattr(shutil, "copymode", fail),
    "new mode": lambda patch, fail: patch.setattr(Path, "chmod", fail),
    "rename": lambda patch, fail: patch.setattr(source, "_rename_by", fail),
    "replace": lambda patch, fail: _portably(patch, fail),
}
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)


def _portably(patch: pytest.MonkeyPatch, replace: Callable[..., Any] = Path.replace) -> None:
    """As on a system, or a file system, that cannot exchange the names of two files."""
    patch.setattr(source, "_renameat2", lambda: None)
    patch.setattr(Path, "replace", replace)


def _half_written(fail: Callable[..., object]) -> Callable[..., _Full]:
    opened = os.fdopen
    return lambda *args: _Full(opened(*args), fail)


def _failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that the store takes for its own."""
    folder = tmp_path / "real"
    Store(folder).save("other", 1)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A link to the file that is to be written, which has a mode of its own."""
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.py", tmp_path / "a.py"
    target.write_bytes(OLD)
    target.chmod(0o754)
    link.symlink_to(Path("real", "a.py"))
    yield link
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o754


@pytest.fixture(params=["old", "none"])
def before(request: pytest.FixtureRequest) -> bool:
    """Whether there is a file already."""
    return bool(request.param == "old")


def prepared(folder: Path, writer: Writer, before: bool) -> tuple[Path, bytes | None]:
    """Where a writer is to write, and what is there: for one that keeps it, a link to a file with a mode."""
    if not writer.keeps:
        target = path = folder / "a.json"
    else:
        target, path = folder / "a.json", folder.parent / "a.json"
        path.symlink_to(target)
    if before:
        target.write_bytes(writer.old)
        target.chmod(0o754 if writer.keeps else 0o600)
    return path, writer.old if before else None


def held(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def assert_kept(path: Path, writer: Writer, before: bool) -> None:
    """Check that the new file is where, and as open to others, as the old one was."""
    assert path.read_bytes() == writer.new
    assert path.is_symlink() is writer.keeps
    expected = (0o754 if before else 0o640) if writer.keeps else 0o600
    assert stat.S_IMODE(path.stat().st_mode) == expected


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.__getitem__)
@pytest.mark.parametrize(("name", "step"), WRITES)
def test_a_step_that_fails_leaves_the_old_file(
    folder: Path, name: str, step: str, number: int, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step == "mode" and not before:
        step = "new mode"
    writer = WRITERS[name]
    path, old = prepared(folder, writer, before)
    with monkeypatch.context() as patch:
        STEPS[step](patch, _failing(OSError(number, os.strerror(number))))
        if writer.raises is None:
            writer.write(path, old, writer.new)
        else:
            with pytest.raises(writer.raises, match=os.strerror(number)[1:]):
                writer.write(path, old, writer.new)
    assert held(path) == old
    assert leftovers(folder) == []
    mask = os.umask(0o027)
    try:
        writer.write(path, old, writer.new)
    finally:
        os.umask(mask)
    assert_kept(path, writer, before)


@pytest.mark.parametrize(("name", "step"), WRITES)
def test_an_interrupt_leaves_the_old_file(
    folder: Path, name: str, step: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step == "mode" and not before:
        step = "new mode"
    writer = WRITERS[name]
    path, old = prepared(folder, writer, before)
    STEPS[step](monkeypatch, _failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        writer.write(path, old, writer.new)
    assert held(path) == old
    assert leftovers(folder) == []


def test_every_writer_is_here() -> None:
    """Files are made and renamed in two modules; the others that write have reasons of their own."""
    making = re.compile(
        r"\bmkstemp\(|\.replace\((?:path|target|directory)\)|\.write_(?:bytes|text)\(|\.touch\("
    )
    opening = re.compile(r"""open\((?:[^()]|\([^()]*\))*["'][rwax]b?\+?["']""")
    root = Path(torchlint.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if making.search(text := path.read_text(encoding="utf-8"))
        or any("r" not in match[0][-4:] for match in opening.finditer(text))
    }
    atomic = {"source.py", "store.py"}
    # A report goes where the user says, part by part; the bench works on copies, the others on a checkout.
    told, copies = {"commands/terminal.py"}, {name for name in found if name.startswith(("verify/", "dev/"))}
    assert found - copies == {*atomic, *told, "testing.py"}


def fix(*paths: Path) -> list[Result]:
    return list(run(paths, dict.fromkeys(paths, SETTINGS), Mode(fix=True)))


@pytest.mark.parametrize("step", WRITERS["fixes"].steps)
def test_a_run_reports_what_it_cannot_write_and_goes_on(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths:
        path.write_bytes(OLD)
    results = run(paths, dict.fromkeys(paths, SETTINGS), Mode(fix=True))
    first = next(results)
    with monkeypatch.context() as patch:
        STEPS[step](patch, _failing(OSError(errno.ENOSPC, "No space left on device")))
        second = next(results)
    (third,) = results
    assert [first.written, second.written, third.written] == [True, False, True]
    assert [item.code for item in second.diagnostics] == ["TL001", "TL002"]
    assert second.diagnostics[0].message == "cannot write the fixes: no space left on device"
    assert [path.read_bytes() for path in paths] == [NEW, OLD, NEW]
    assert [result.written for result in fix(*paths)] == [False, True, False]
    assert leftovers(tmp_path) == []


# --- saved by somebody else meanwhile ----------------------------------------------------------------------

THEIRS, LATER = b"x = 1  # theirs\n", b"x = 1  # theirs, once more\n"


def in_place(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def by_name(path: Path, text: bytes) -> None:
    beside = path.with_name("saved")
    beside.write_bytes(text)
    beside.replace(path)


def same_size(path: Path, text: bytes) -> None:
    """As `in_place`, with neither the size nor the time of the old file telling of it."""
    found = path.stat()
    path.write_bytes(text[: found.st_size].ljust(found.st_size))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


class Saving:
    """Saves a file just before or just after each of the first exchanges of names, as planned."""

    def __init__(
        self, patch: pytest.MonkeyPatch, path: Path, plan: list[tuple[str, Callable[..., None], bytes]]
    ):
        self._path, self._plan, self._rename = path, plan, source._rename_by
        self.exchanges = 0
        patch.setattr(source, "_rename_by", self)

    def __call__(self, flag: int, temporary: Path, target: Path) -> bool:
        self.exchanges += 1
        self._save("before")
        done = self._rename(flag, temporary, target)
        self._save("after")
        return done

    def _save(self, moment: str) -> None:
        if self._plan and self._plan[0][0] == f"{moment} {self.exchanges}":
            _, save, text = self._plan.pop(0)
            save(self._path, text)


@pytest.mark.parametrize("first", [in_place, by_name, same_size])
@pytest.mark.parametrize("second", [None, in_place, by_name, same_size])
@pytest.mark.parametrize("moment", ["after 1", "before 2", "after 2"])
def test_what_is_saved_while_names_are_exchanged_is_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: Callable[..., None],
    second: Callable[..., None] | None,
    moment: str,
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    plan = [("before 1", first, THEIRS), *([(moment, second, LATER)] if second else [])]
    expected = []

    def noted(save: Callable[..., None]) -> Callable[..., None]:
        def saves(where: Path, text: bytes) -> None:
            save(where, text)
            expected.append(where.read_bytes())

        return saves

    Saving(monkeypatch, path, [(when, noted(save), text) for when, save, text in plan])
    with pytest.raises(source.StaleSourceError, match="the file changed while it was checked"):
        write_atomically(path, NEW, OLD)
    assert path.read_bytes() == expected[-1]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.py"]
    # And once nobody saves any more, it is written.
    monkeypatch.undo()
    assert write_atomically(path, NEW, expected[-1])
    assert path.read_bytes() == NEW


def test_what_is_saved_behind_the_exchange_is_an_edit_of_the_fixed_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    Saving(monkeypatch, path, [("after 1", in_place, LATER)])
    assert write_atomically(path, NEW, OLD)
    assert path.read_bytes() == LATER
    assert leftovers(tmp_path) == []


def test_a_link_that_takes_over_the_name_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    path.write_bytes(OLD)
    other.write_bytes(OLD)

    def link(where: Path, _: bytes) -> None:
        where.unlink()
        where.symlink_to(other)

    Saving(monkeypatch, path, [("before 1", link, b"")])
    with pytest.raises(source.StaleSourceError):
        write_atomically(path, NEW, OLD)
    assert (path.readlink(), other.read_bytes()) == (other, OLD)
    assert leftovers(tmp_path) == []


def test_who_saves_all_the_time_loses_nothing_but_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    plan = [(f"before {number}", by_name, b"%d" % number) for number in range(1, 200)]
    saving = Saving(monkeypatch, path, plan)
    with pytest.raises(SourceError, match=r"changes all the time; \.torchlint-.*\.tmp was part of it"):
        write_atomically(path, NEW, OLD)
    (left,) = leftovers(tmp_path)
    found = {path.read_bytes(), (tmp_path / left).read_bytes()}
    assert found == {b"%d" % number for number in (saving.exchanges - 1, saving.exchanges)}


@pytest.mark.parametrize("save", [in_place, by_name, same_size])
def test_the_last_look_is_just_before_the_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[..., None]
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    _portably(monkeypatch)
    copied = shutil.copymode

    saved = []

    def saving(*paths: Path) -> None:
        copied(*paths)
        save(path, THEIRS)
        saved.append(path.read_bytes())

    monkeypatch.setattr(shutil, "copymode", saving)
    with pytest.raises(source.StaleSourceError):
        write_atomically(path, NEW, OLD)
    assert path.read_bytes() == saved[0] != OLD
    assert leftovers(tmp_path) == []


def test_a_file_system_that_exchanges_no_names_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    monkeypatch.setattr(source, "_renameat2", lambda: lambda *_: _fails_with(errno.EINVAL))
    assert write_atomically(path, NEW, OLD)
    assert path.read_bytes() == NEW
    monkeypatch.setattr(source, "_renameat2", lambda: lambda *_: _fails_with(errno.EROFS))
    with pytest.raises(SourceError, match="ead-only file system"):
        write_atomically(path, OLD, NEW)
    assert leftovers(tmp_path) == []


def _fails_with(number: int) -> int:
    import ctypes

    ctypes.set_errno(number)
    return -1


def test_a_new_file_takes_the_name_of_none_that_appears_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    Saving(monkeypatch, path, [("before 1", in_place, THEIRS)])
    with pytest.raises(source.StaleSourceError):
        write_atomically(path, NEW, None)
    assert path.read_bytes() == THEIRS
    assert leftovers(tmp_path) == []


def test_a_run_says_which_file_somebody_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from torchlint import cli
    from torchlint.commands import build

    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    Saving(monkeypatch, path, [("before 1", in_place, THEIRS)])
    command = build(cli._COMMANDS, cli._DEFAULT)
    flags = [
        "--isolated",
        "--no-cache",
        "--fix",
        "--select",
        "TL002,TL202",
        "--output-format",
        "concise",
        "-q",
    ]
    result = CliRunner().invoke(command, [*flags, str(path)], prog_name="torchlint")
    assert "a.py:1:1: TL001 cannot write the fixes: the file changed while it was checked" in result.stdout
    assert (result.exit_code, path.read_bytes()) == (1, THEIRS)


# --- killed ----------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path

name, apart, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
sys.path.insert(0, sys.argv[4])
import test_writing

at = 1
writer = test_writing.WRITERS[name]
old = path.read_bytes() if path.exists() else None

def killed_at(limit):
    "Write in a child that is killed at its call of this number; how that ended."
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    calls = 0
    def step(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls == limit:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(step)
    writer.write(path, old, writer.new)
    os._exit(0)

while (status := killed_at(at)) == -signal.SIGKILL:
    now = path.read_bytes() if path.exists() else None
    print("old" if now == old else "new" if now == writer.new else repr(now))
    at += apart
    # Killed behind the last step: the file is to be the old one again.
    if now != old:
        path.write_bytes(old) if old is not None else Path(os.path.realpath(path)).unlink()
assert status == 0
"""


# How many calls the kills are apart: test_store.py looks at the store closely.
@pytest.mark.parametrize(("name", "apart"), [("fixes", 3), ("baseline", 5), ("store", 24)])
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(
    folder: Path, name: str, apart: int, before: bool
) -> None:
    writer = WRITERS[name]
    path, _ = prepared(folder, writer, before)
    command = [sys.executable, "-c", KILLED, name, str(apart), str(path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = done.stdout.split()
    assert set(found) <= {"old", "new"}
    assert found == sorted(found, reverse=True)
    # Close enough to one another to hit each of the steps that a write takes.
    assert found.count("old") > 8
    left = leftovers(folder)
    assert left
    if writer.keeps:
        # They can be told from a user's files, and no later run takes them for programs.
        assert all(item.startswith(".torchlint-") for item in left)
    writer.write(path, held(path), writer.new)
    assert path.read_bytes() == writer.new
    assert leftovers(folder) == left


def test_what_a_killed_run_left_is_no_program(file: Path) -> None:
    (file.parent / "real" / ".torchlint-x.tmp").write_bytes(OLD)
    assert [result.written for result in fix(file)] == [True]
    assert file.read_bytes() == NEW
    assert discover([file.parent], lambda _: Options()).files == (file, file.parent / "real" / "a.py")


def test_a_superuser_leaves_a_file_to_its_owner(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []

    def chown(path: str, uid: int, gid: int) -> None:
        given.append((uid, gid))
        raise PermissionError(errno.EPERM, "Operation not permitted")

    owner = file.stat().st_uid + 1, file.stat().st_gid
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr("torchlint.source._owner", lambda path: owner if path.name == "a.py" else (0, 0))
    assert write_atomically(file, NEW, OLD)
    assert given == [owner]
    assert file.read_bytes() == NEW
