"""The folder of documents: whole or absent, whatever happens to it, and nobody else's files touched."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchlint import store
from torchlint.cache import Cache
from torchlint.store import MAX_AGE, Store, StoreError, own_key

LARGE = {"text": "x" * 20_000}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "of" / "torchlint"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def document(folder: Path) -> Path:
    return folder / "a.json"


def test_a_document_comes_back(folder: Path) -> None:
    saved = {"ü\udc80": [1, None, "\u2028"]}
    Store(folder).save("a", saved)
    assert Store(folder).load("a") == saved
    assert Store(folder).load("b") is None
    Store(folder).save("a", 2)
    assert Store(folder).load("a") == 2


def test_nothing_is_made_before_something_is_saved(folder: Path) -> None:
    made = Store(folder)
    assert made.load("a") is None
    assert made.clear() == (0, 0)
    assert not folder.parent.exists()


def test_it_says_that_it_is_a_cache_and_ignores_itself_in_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    folder = tmp_path / ".torchlint_cache"
    Store(folder).save("a", 1)
    assert names(folder) == [".gitignore", "CACHEDIR.TAG", "a.json"]
    tag = (folder / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert status.stdout == b""


def test_nobody_else_reads_it(folder: Path) -> None:
    Store(folder).save("a", 1)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("mine")
    with pytest.raises(StoreError, match="it contains other files"):
        Store(tmp_path)
    (tmp_path / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another tool\n")
    with pytest.raises(StoreError, match="it contains other files"):
        Store(tmp_path)
    assert names(tmp_path) == ["CACHEDIR.TAG", "a.json"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used as a cache"):
        Store(tmp_path / "file")


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    Store(tmp_path).save("a", 1)
    assert Store(tmp_path).load("a") == 1


def test_another_users_folder_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(folder).save("a", 1)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(StoreError, match="belongs to another user"):
        Store(folder)


def test_a_damaged_document_is_as_good_as_none(folder: Path) -> None:
    Store(folder).save("a", {"b": [1, 2, 3]})
    whole = document(folder).read_bytes()
    for cut in range(len(whole)):
        document(folder).write_bytes(whole[:cut])
        assert Store(folder).load("a") is None
    for at in range(len(whole)):
        document(folder).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert Store(folder).load("a") is None
    document(folder).write_bytes(whole)
    assert Store(folder).load("a") == {"b": [1, 2, 3]}


def test_with_a_key_only_what_was_saved_with_it_counts(folder: Path) -> None:
    ours, theirs = b"k" * 32, b"x" * 32
    Store(folder).save("a", 1)
    assert Store(folder, ours).load("a") is None
    Store(folder, theirs).save("a", 1)
    assert Store(folder, ours).load("a") is None
    Store(folder, ours).save("a", 2)
    assert Store(folder, ours).load("a") == 2
    assert Store(folder).load("a") is None
    # Nor under another name.
    document(folder).rename(folder / "b.json")
    assert Store(folder, ours).load("b") is None
    (folder / "b.json").rename(document(folder))
    whole = document(folder).read_bytes()
    for at in range(len(whole)):
        document(folder).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert Store(folder, ours).load("a") is None


def test_the_key_is_the_users_alone_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "of" / "torchlint" / "key"
    key = own_key(path)
    assert (len(key), path.read_bytes(), path.stat().st_mode & 0o777) == (32, key, 0o600)
    assert own_key(path) == key
    assert [item.name for item in path.parent.iterdir()] == ["key"]
    assert own_key(tmp_path / "key") != key


@pytest.mark.parametrize("flaw", ["readable", "short", "long", "link", "pipe", "another user's"])
def test_a_key_that_others_may_know_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"k" * {"short": 31, "long": 33}.get(flaw, 32))
    path.chmod(0o644 if flaw == "readable" else 0o600)
    if flaw == "link":
        path.rename(tmp_path / "other")
        path.symlink_to(tmp_path / "other")
    elif flaw == "pipe":
        path.unlink()
        os.mkfifo(path, 0o600)
    elif flaw == "another user's":
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        assert own_key(path) == b""
        return
    key = own_key(path)
    assert len(key) == 32 and key != b"k" * 32
    assert (path.read_bytes(), path.is_symlink(), path.stat().st_mode & 0o777) == (key, False, 0o600)


def test_where_no_key_can_be_kept_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert own_key(tmp_path / "file" / "key") == b""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert own_key(tmp_path / "key") == b""


@pytest.mark.parametrize("name", ["a.json", "CACHEDIR.TAG"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder: Path, name: str) -> None:
    Store(folder).save("a", 1)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    if name == "CACHEDIR.TAG":
        with pytest.raises(StoreError, match="it contains other files"):
            Store(folder)
    else:
        assert Store(folder).load("a") is None


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 5_000, b"\xff", b"", b"{"])
def test_a_document_that_is_no_json_is_as_good_as_none(folder: Path, body: bytes) -> None:
    Store(folder).save("a", 1)
    document(folder).write_bytes(store._digest(body) + b"\n" + body)
    assert Store(folder).load("a") is None


def test_a_document_that_is_too_large_is_neither_read_nor_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(folder).save("a", LARGE)
    monkeypatch.setattr(store, "MAX_DOCUMENT", 1_000)
    assert Store(folder).load("a") is None
    Store(folder).save("b", LARGE)
    assert "b.json" not in names(folder)


def test_old_documents_and_the_remains_of_killed_runs_go(folder: Path) -> None:
    held = Store(folder)
    for name in ("a", "b", "c"):
        held.save(name, 1)
    (folder / "d.tmp").write_bytes(b"")
    (folder / "e.tmp").write_bytes(b"")
    (folder / "mine.txt").write_text("")
    for name, age in (("b.json", MAX_AGE + 60), ("d.tmp", 2 * store.DAY), ("mine.txt", 2 * MAX_AGE)):
        os.utime(folder / name, times=(time.time() - age,) * 2)
    held.save("c", 2)
    assert names(folder) == [".gitignore", "CACHEDIR.TAG", "a.json", "c.json", "e.tmp", "mine.txt"]


def test_the_oldest_documents_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 50_000)
    held = Store(folder)
    for at, name in enumerate(("a", "b", "c")):
        held.save(name, LARGE)
        os.utime(folder / f"{name}.json", times=(time.time() - 100 + at,) * 2)
    held.save("d", 1)
    assert names(folder) == [".gitignore", "CACHEDIR.TAG", "b.json", "c.json", "d.json"]


def test_clearing_leaves_what_is_not_ours(folder: Path) -> None:
    Store(folder).save("a", 1)
    (folder / "mine.txt").write_text("")
    (folder / "left.tmp").write_text("")
    count, size = Store(folder).clear()
    assert (count, size > 0) == (1, True)
    assert names(folder) == ["mine.txt"]


def test_clearing_takes_the_folder_with_it(folder: Path) -> None:
    Store(folder).save("a", 1)
    Store(folder).clear()
    assert not folder.exists()
    Store(folder).save("a", 1)
    assert Store(folder).load("a") == 1


@pytest.mark.parametrize("function", ["open", "fdopen", "replace", "mkstemp", "mkdtemp", "mkdir", "scandir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("new", [True, False])
def test_a_disk_that_takes_nothing_leaves_the_old_document(
    folder: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, new: bool
) -> None:
    if not new:
        Store(folder).save("a", "old")

    def fail(*args: object, **kwargs: object) -> object:
        raise OSError(number, os.strerror(number))

    places = {
        "open": "torchlint.store.Path.write_text",
        "fdopen": "torchlint.store.os.fdopen",
        "replace": "torchlint.store.Path.replace",
        "mkstemp": "tempfile.mkstemp",
        "mkdtemp": "tempfile.mkdtemp",
        "mkdir": "torchlint.store.Path.mkdir",
        "scandir": "torchlint.store.os.scandir",
    }
    with monkeypatch.context() as broken:
        broken.setattr(places[function], fail)
        Store(folder).save("a", "new")
    found = Store(folder).load("a")
    assert found in ((None, "new") if new else ("old", "new"))
    left = [path.name for path in folder.glob("*.tmp")] if folder.is_dir() else []
    # Where `os.fdopen` fails, the test keeps the descriptor open; the file must be gone all the same.
    assert left == []
    Store(folder).save("a", "newer")
    assert Store(folder).load("a") == "newer"


KILLED = """
import json, os, signal, sys, tempfile, shutil
from pathlib import Path
from torchlint.store import Store

folder, new = Path(sys.argv[1]), sys.argv[2] == "new"

def attempt(limit):
    "Save in a child that is killed at its call of this number; the status of its end."
    Store(folder).clear() if new else Store(folder).save("a", "old")
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
    Store(folder).save("a", ["new"] * 2000)
    os._exit(0)

limit = 1
while (status := attempt(limit)) == -signal.SIGKILL:
    print(json.dumps(Store(folder).load("a")))
    limit += 7
assert status == 0
print(json.dumps(Store(folder).load("a")))
"""


@pytest.mark.parametrize("old", [None, "old"])
def test_a_kill_at_any_moment_leaves_the_old_document_or_the_new(folder: Path, old: str | None) -> None:
    arguments = [str(folder), "old" if old else "new"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    before = found.index(["new"] * 2000)
    # The kills came close enough to one another to hit each of the steps that a write takes.
    assert before > 12
    assert found == [old] * before + [["new"] * 2000] * (len(found) - before)


def test_runs_side_by_side_leave_whole_documents(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from torchlint.store import Store\n"
        "for at in range(40):\n"
        "    held = Store(Path(sys.argv[1])); held.save('a', [sys.argv[2]] * 500)\n"
        "    found = held.load('a'); assert found in (['x'] * 500, ['y'] * 500), found\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(folder), name]) for name in "xy"]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert names(folder) == [".gitignore", "CACHEDIR.TAG", "a.json"]


HAMMERED = """
import itertools, sys
from pathlib import Path
from torchlint.cache import Cache
from torchlint.store import Store

for number in itertools.count():
    known = Cache(Store(Path(sys.argv[1])), Path("/p"), "code")
    for old in range(max(0, number - 3), number):
        known.get(f"{sys.argv[2]}{old}", Path("a.py"))
    known.put(f"{sys.argv[2]}{number}", ())
    known.save()
    if number == 1:
        print("going", flush=True)
"""


def test_runs_that_are_killed_while_others_write_do_no_harm(folder: Path) -> None:
    kills = 0

    def start(name: str) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            [sys.executable, "-c", HAMMERED, str(folder), name], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        return run

    running = {name: start(name) for name in "abcd"}
    for name in "abcdbad":
        run = running[name]
        assert run.stdout is not None and run.stdout.readline() == "going\n"
        run.kill()
        run.wait(60)
        kills += 1
        running[name] = start(name)
    for run in running.values():
        assert run.stdout is not None and run.stdout.readline() == "going\n"
        run.kill()
        run.wait(60)
    (document,) = [path.stem for path in folder.glob("*.json")]
    found = Store(folder).load(document)
    assert {key[0] for key in found} <= set("abcd") and len(found) >= 2
    assert all(type(day) is int for day in found.values())
    assert len(list(folder.glob("*.tmp"))) <= kills + len(running)
    known = Cache(Store(folder), Path("/p"), "code")
    known.put("last", ())
    known.save()
    assert set(Store(folder).load(document)) == {*found, "last"}
