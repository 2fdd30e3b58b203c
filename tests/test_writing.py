"""Whatever fails while a file is written, and whoever is killed, it is the old file or the new one."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchlint.options import LintSettings
from torchlint.runner import Mode, Result, run
from torchlint.source import SourceError, write_atomically

OLD, NEW = b"x = 1  # noqa: TL202\n", b"x = 1\n"
SETTINGS = LintSettings(rules=("TL001", "TL002", "TL202"), fixable=frozenset({"TL002"}))

# Whatever replaces files in one step, as a function of the path, the new bytes and the old ones, with what it
# raises if it cannot. A cache or a baseline that gets a writer of its own is to be added here.
WRITERS: dict[str, tuple[Callable[[Path, bytes, bytes], object], type[Exception]]] = {
    "write_atomically": (write_atomically, SourceError),
}


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
    "replace": lambda patch, fail: patch.setattr(Path, "replace", fail),
}
ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)


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


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.__getitem__)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_the_old_file(
    file: Path, writer: str, step: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, raised = WRITERS[writer]
    with monkeypatch.context() as patch:
        STEPS[step](patch, _failing(OSError(number, os.strerror(number))))
        with pytest.raises(raised, match=os.strerror(number)[1:]):
            write(file, NEW, OLD)
    assert file.read_bytes() == OLD
    assert leftovers(file.parent / "real") == []
    write(file, NEW, OLD)
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_leaves_the_old_file(
    file: Path, writer: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    STEPS[step](monkeypatch, _failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        WRITERS[writer][0](file, NEW, OLD)
    assert file.read_bytes() == OLD
    assert leftovers(file.parent / "real") == []


def fix(*paths: Path) -> list[Result]:
    return list(run(paths, dict.fromkeys(paths, SETTINGS), Mode(fix=True)))


@pytest.mark.parametrize("step", STEPS)
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


# --- killed ----------------------------------------------------------------------------------------------

KILLED = """
import os, shutil, signal, sys, tempfile
from pathlib import Path
from torchlint.options import LintSettings
from torchlint.runner import Mode, run

owner, name, moment, path = eval(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
step = getattr(owner, name)

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def killed(*args, **kwargs):
    if moment == "before":
        kill()
    done = step(*args, **kwargs)
    if moment == "after":
        kill()
    # Killed while it writes: the first half has reached the disk.
    write = done.write
    class File:
        __enter__ = lambda self: self
        __exit__ = kill
        def write(self, data):
            write(data[:len(data) // 2])
            done.flush()
            kill()
    return File()

setattr(owner, name, killed)
settings = LintSettings(rules=("TL001", "TL002", "TL202"), fixable=frozenset({"TL002"}))
list(run([path], {path: settings}, Mode(fix=True)))
"""


@pytest.mark.parametrize(
    ("owner", "name", "moment", "after", "left"),
    [
        ("tempfile", "mkstemp", "before", OLD, 0),
        ("tempfile", "mkstemp", "after", OLD, 1),
        ("os", "fdopen", "amid", OLD, 1),
        ("os", "fsync", "before", OLD, 1),
        ("os", "fsync", "after", OLD, 1),
        ("shutil", "copymode", "before", OLD, 1),
        ("Path", "replace", "before", OLD, 1),
        ("Path", "replace", "after", NEW, 0),
    ],
)
def test_who_is_killed_leaves_the_old_file_or_the_new_one(
    file: Path, owner: str, name: str, moment: str, after: bytes, left: int
) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, owner, name, moment, file], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == after
    found = leftovers(file.parent / "real")
    assert len(found) == left
    # They can be told from a user's files, and no later run takes them for programs.
    assert all(item.startswith(".torchlint-") for item in found)
    fix(file)
    assert file.read_bytes() == NEW
    assert leftovers(file.parent / "real") == found


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
