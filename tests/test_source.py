"""Bytes to text and back, positions, and the write that loses nothing."""

from __future__ import annotations

import codecs
import os
import stat
from itertools import product
from pathlib import Path

import pytest

from torchlint import reading
from torchlint.diagnostics import Position
from torchlint.source import NEWLINE, Source, SourceError, StaleSourceError, line_starts, write_atomically

PATH = Path("a.py")
TEXTS = [
    "",
    "x = 1",
    "x = 1\n",
    "x = 1\r\ny = 2\r\n",
    "x = 1\ny = 2\r\nz = 3\rw = 4",
    "x = 1\n\x0cclass A: pass\n",
    "x = 'ü€😀'\n",
    "x = '\u2028\x85\x1c'\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
def test_bytes_survive(text: str, bom: bytes) -> None:
    data = bom + text.encode()
    source = reading.from_bytes(data, PATH)
    assert (source.text, source.bom, source.encoding) == (text, bool(bom), "utf-8")
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("cookie", "codec"),
    [
        ("latin-1", "iso-8859-1"),
        ("cp1252", "cp1252"),
        ("utf8", "utf-8"),
        ("koi8-r", "koi8-r"),
        ("shift_jis", "shift_jis"),
    ],
)
def test_the_cookie_decides(cookie: str, codec: str) -> None:
    word = {"koi8-r": "привет", "shift_jis": "日本"}.get(cookie, "Grüße")
    data = f"#!/usr/bin/python\n# -*- coding: {cookie} -*-\nx = '{word}'\n".encode(cookie)
    source = reading.from_bytes(data, PATH)
    assert codecs.lookup(source.encoding).name == codecs.lookup(codec).name
    assert word in source.text
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "reason", "position"),
    [
        (b"x = 1\ny = '\xff'\n", "byte 0xff is not valid utf-8", Position(2, 6)),
        (b"x = '\xe4\xf6'\n", "byte 0xe4 is not valid utf-8", Position(1, 6)),
        ("x = 1\r\n\r\nü = ".encode() + b"\x80", "byte 0x80 is not valid utf-8", Position(3, 5)),
        (b"x = 1\ny = 2\0\n", "the file contains a NUL byte", Position(2, 6)),
        (b"# coding: klingon\n", "unknown encoding: klingon", Position(1, 1)),
        (b"# coding: rot13\nk = 1\n", "`rot13` is not a text encoding", Position(1, 1)),
        (b"# coding: ascii\nx = '\xc3\xbc'\n", "byte 0xc3 is not valid ascii", Position(2, 6)),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "encoding problem: utf-8", Position(1, 1)),
        ("x = 1\n".encode("utf-16"), "byte 0xff is not valid utf-8", Position(1, 1)),
        (b"\0" * 10, "the file contains a NUL byte", Position(1, 1)),
    ],
)
def test_what_is_no_text(data: bytes, reason: str, position: Position) -> None:
    with pytest.raises(SourceError) as caught:
        reading.from_bytes(data, PATH)
    assert (caught.value.reason, caught.value.position) == (reason, position)


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("x", "\n"), ("a\r\nb\n\r\n", "\r\n"), ("a\nb\r\nc\n", "\n"), ("a\rb\rc\n", "\r")],
)
def test_the_dominant_newline(text: str, newline: str) -> None:
    assert reading.from_bytes(text.encode(), PATH).newline == newline


def test_positions() -> None:
    text = "ab\r\nc\rd\n\x0ce\u2028f"
    source = Source(PATH, text)
    places = {character: source.position(text.index(character)) for character in "abcdef"}
    assert places == {
        "a": Position(1, 1),
        "b": Position(1, 2),
        "c": Position(2, 1),
        "d": Position(3, 1),
        "e": Position(4, 2),
        "f": Position(4, 4),
    }
    assert [source.offset(place) for place in places.values()] == [text.index(item) for item in places]
    assert source.position(999) == source.position(len(text)) == Position(4, 5)
    assert source.offset(Position(1, 99)) == 2
    assert source.offset(Position(99, 1)) == len(text)
    assert [source.line(row) for row in range(6)] == ["", "ab", "c", "d", "\x0ce\u2028f", ""]


def test_an_encoding_that_cannot_hold_a_character() -> None:
    source = reading.from_bytes(b"# coding: latin-1\n", PATH)
    with pytest.raises(SourceError, match="iso-8859-1 cannot encode the character '€'"):
        source.encode("# coding: latin-1\n€")


# --- reading -----------------------------------------------------------------------------------------------


def reason_for(path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        reading.read(path)
    return caught.value.reason


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "broken.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert reason_for(tmp_path / "missing.py") == "cannot read the file: no such file or directory"
    assert reason_for(tmp_path / "folder.py") == "cannot read the file: it is a directory"
    assert reason_for(tmp_path / "broken.py") == "cannot read the file: it is a broken symbolic link"
    assert "symbolic link" in reason_for(tmp_path / "loop.py")
    assert reason_for(tmp_path / "pipe.py") == "cannot read the file: it is a pipe"
    assert reason_for(tmp_path / "missing.py" / "a.py") == "cannot read the file: no such file or directory"
    # Python releases word it differently from here on.
    assert reason_for(Path("nul\0.py")).startswith("cannot read the file: ")
    assert "embedded null" in reason_for(Path("nul\0.py"))


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.py"
    path.write_text("x = 1\n")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    assert reason_for(path) == "cannot read the file: permission denied"


PROC = Path("/proc/self/environ")


@pytest.mark.parametrize("name", ["environ", "cmdline", "status", "maps", "mem"])
def test_what_the_kernel_makes_up_is_no_file(tmp_path: Path, name: str) -> None:
    link = tmp_path / "a.py"
    link.symlink_to(PROC.with_name(name))
    assert reason_for(link) in (
        "cannot read the file: its size does not match the size reported by the system",
        "cannot read the file: input/output error",
    )


def test_a_file_without_end_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe in the place of the file that was looked at, as `/proc/kmsg`: it says that it is regular."""
    os.mkfifo(tmp_path / "a.py")
    (tmp_path / "empty.py").touch()
    regular, checked = (tmp_path / "empty.py").stat(), os.fstat
    monkeypatch.setattr(Path, "stat", lambda *_, **__: regular)
    assert reason_for(tmp_path / "a.py") == "cannot read the file: it is a pipe"
    writer = os.open(tmp_path / "a.py", os.O_RDWR | os.O_NONBLOCK)
    try:
        monkeypatch.setattr(os, "fstat", lambda number: regular)
        # Nothing to read for now, and not the end either.
        assert "does not match the size" in reason_for(tmp_path / "a.py")
        os.write(writer, b"x = 1\n")
        assert "does not match the size" in reason_for(tmp_path / "a.py")
        monkeypatch.setattr(os, "fstat", checked)
    finally:
        os.close(writer)


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    texts = iter(["x = 12\n", "x = 1", "x = 123\n"])
    measured = os.fstat

    def saving(number: int) -> os.stat_result:
        found = measured(number)
        path.write_text(next(texts, path.read_text()))
        return found

    monkeypatch.setattr(os, "fstat", saving)
    assert reading.read(path).text == "x = 123\n"


# --- writing -----------------------------------------------------------------------------------------------


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600])
def test_a_write_keeps_the_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(mode)
    assert write_atomically(path, b"new", b"old") is True
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert leftovers(tmp_path) == ["a.py"]


def test_a_write_goes_through_symbolic_links(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    target = folder / "target.py"
    target.write_bytes(b"old")
    (tmp_path / "middle.py").symlink_to(Path("real") / "target.py")
    link = tmp_path / "link.py"
    link.symlink_to("middle.py")
    assert write_atomically(link, b"new", b"old") is True
    assert target.read_bytes() == b"new"
    assert link.readlink() == Path("middle.py")
    assert leftovers(folder) == ["target.py"]


def test_nothing_is_written_if_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"same")
    before = path.stat()
    assert write_atomically(path, b"same", b"same") is False
    assert path.stat() == before


def test_a_file_that_somebody_else_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"theirs")
    with pytest.raises(StaleSourceError, match="the file changed while it was checked"):
        write_atomically(path, b"ours", b"old")
    assert path.read_bytes() == b"theirs"
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        write_atomically(path, b"ours", b"old")
    assert leftovers(tmp_path) == []


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(SourceError, match="the file is read-only"):
        write_atomically(path, b"new", b"old")
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.py"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "copymode", "replace", "_rename_by"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, step: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise failure

    if step == "replace":
        monkeypatch.setattr("torchlint.source._renameat2", lambda: None)
    places = {"fsync": "os", "copymode": "shutil", "replace": "pathlib.Path"}
    owner = places.get(step, "torchlint.source")
    monkeypatch.setattr(f"{owner}.{step}", fail)
    expected = KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else SourceError
    with pytest.raises(expected):
        write_atomically(path, b"new", b"old")
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == ["a.py"]


def test_lines_begin_behind_every_end_of_a_line() -> None:
    for length in range(6):
        for text in map("".join, product("a\n\r\x0c\u2028", repeat=length)):
            assert list(line_starts(text)) == [0, *(found.end() for found in NEWLINE.finditer(text))], text
    # Longer than what a stream reads at once.
    assert list(line_starts("a\r\n" * 20_000)) == list(range(0, 60_001, 3))
