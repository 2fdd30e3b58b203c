"""Bytes ⇄ text of one file: encoding, byte order mark, newlines, line index, and the atomic write.

Reading and writing follow the interpreter: the coding cookie or the byte order mark decides, UTF-8 is
the default, and no newline is translated, so that what is not edited is written back byte for byte.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import shutil
import stat
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from torchlint.diagnostics import Position

NEWLINE = re.compile(r"\r\n|\r|\n")
# A device or a pipe would block the reader for ever; anything but a regular file is refused.
_KINDS = {
    stat.S_IFDIR: "it is a directory",
    stat.S_IFIFO: "it is a pipe",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
}


class SourceError(Exception):
    """A file that cannot be read as text or written back.

    ``reason`` is one sentence without a full stop; ``position`` is where the offending byte stands.
    """

    def __init__(self, reason: str, position: Position | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position or Position(1, 1)


class StaleSourceError(SourceError):
    """The file on disk is no longer the one that was read; nothing was written."""


@dataclass(frozen=True)
class Source:
    """The decoded text of one file, with all that it takes to write it back unchanged.

    ``text`` holds no byte order mark and keeps every newline as it is. ``encoding`` is the codec that
    the cookie names (``utf-8`` without one), ``newline`` the most frequent newline of the file.
    """

    path: Path
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    newline: str = "\n"

    @classmethod
    def read(cls, path: Path) -> Source:
        """The file at ``path``.

        Raises:
            SourceError: it is missing, unreadable, not a regular file, or not text.
        """
        return cls.from_bytes(read_bytes(path), path)

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        """Decode ``data`` as the interpreter would.

        Raises:
            SourceError: the bytes are not text in the encoding they declare, or hold a NUL.
        """
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        encoding = _declared_encoding(data, body)
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            before = body[: error.start].decode(encoding, "replace")
            raise SourceError(
                f"byte 0x{body[error.start]:02x} is not valid {encoding}", _end_position(before)
            ) from error
        except (LookupError, ValueError) as error:
            raise SourceError(f"`{encoding}` is not an encoding of text") from error
        if (nul := text.find("\0")) >= 0:
            raise SourceError("the file holds a NUL byte", _end_position(text[:nul]))
        return cls(path, text, encoding, bom, _dominant_newline(text))

    def with_text(self, text: str) -> Source:
        """The same file holding another text."""
        return replace(self, text=text)

    def encode(self, text: str) -> bytes:
        """``text`` as this file stores it.

        Raises:
            SourceError: the encoding of the file cannot hold it.
        """
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise SourceError(f"{self.encoding} cannot hold the character {character!r}") from error
        return codecs.BOM_UTF8 + data if self.bom else data

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; lines end at LF, CR LF or a lone CR, as in Python."""
        return (0, *(match.end() for match in NEWLINE.finditer(self.text)))

    def position(self, offset: int) -> Position:
        """Row and column of a character offset; offsets beyond the text count as its end."""
        offset = max(0, min(offset, len(self.text)))
        row = bisect_right(self.line_starts, offset)
        return Position(row, offset - self.line_starts[row - 1] + 1)

    def offset(self, position: Position) -> int:
        """The character offset of a position; one beyond its line counts as the end of that line."""
        if position.row > len(self.line_starts):
            return len(self.text)
        start = self.line_starts[max(position.row, 1) - 1]
        return min(start + max(position.column, 1) - 1, start + len(self.line(position.row)))

    def line(self, row: int) -> str:
        """The text of line ``row`` (from 1) without its newline; empty beyond the end."""
        starts = self.line_starts
        if not 1 <= row <= len(starts):
            return ""
        end = starts[row] if row < len(starts) else len(self.text)
        return self.text[starts[row - 1] : end].rstrip("\r\n")


def read_bytes(path: Path) -> bytes:
    """The bytes of the regular file at ``path``, symbolic links followed.

    Raises:
        SourceError: there is no such file, it is something else, or it may not be read.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise SourceError(f"cannot read the file: {_KINDS.get(stat.S_IFMT(mode), 'it is not a file')}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read the file: {_reason(error, path)}") from error


def write_atomically(path: Path, data: bytes, expected_old_bytes: bytes) -> bool:
    """Replace the contents of ``path`` in one step; return whether anything had to be written.

    The new contents go to a temporary file beside the target of ``path`` (a symbolic link stays one),
    which takes over the old mode and then its name: a reader sees the old file or the new one.

    Raises:
        StaleSourceError: the file no longer holds ``expected_old_bytes``.
        SourceError: it is read-only, or its folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    current = read_bytes(target)
    if current == data:
        return False
    if current != expected_old_bytes:
        raise StaleSourceError("cannot write the fixes: the file changed while it was checked")
    try:
        mode = target.stat().st_mode
        # The mode is asked as well because a superuser is granted access to read-only files, and
        # because replacing a file needs no permission on the file itself.
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise SourceError("cannot write the fixes: the file is read-only")
        _replace(target, data)
    except OSError as error:
        raise SourceError(f"cannot write the fixes: {_reason(error, target)}") from error
    return True


def _replace(target: Path, data: bytes) -> None:
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".torchlint-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is a broken symbolic link" if path.is_symlink() else "there is no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def _declared_encoding(data: bytes, body: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        # The standard library says the same thing of an unknown cookie and of undecodable bytes in
        # the first two lines; the latter are reported with their position by the decoder.
        try:
            body.decode("utf-8")
        except UnicodeDecodeError:
            if "unknown encoding" not in str(error):
                return "utf-8"
        raise SourceError(_sentence(str(error))) from error
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _end_position(before: str) -> Position:
    lines = NEWLINE.split(before)
    return Position(len(lines), len(lines[-1]) + 1)


def _dominant_newline(text: str) -> str:
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=counts.__getitem__)
