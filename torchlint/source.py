"""Bytes ⇄ text of one file: encoding, byte order mark, newlines, line index, and the atomic write.

Reading and writing follow the interpreter: the coding cookie or the byte order mark decides, UTF-8 is
the default, and no newline is translated, so that what is not edited is written back byte for byte.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import stat
import sys
import time
import tokenize
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path

from torchlint.diagnostics import Edit, Fix, Position

_WINDOWS = os.name == "nt"
# Seconds to wait before each further attempt to replace a file that somebody else has open.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
# Of renameat2 on Linux: paths are relative to the working directory; fail if there is such a file already;
# exchange the names of two files.
_HERE, _NO_REPLACE, _EXCHANGE = -100, 1, 2
# How often somebody may save a file in the moment in which it is replaced.
_SAVES = 100
_UNSTORED = "its size does not match the size reported by the system"
# How often a file is read from the start because its size changes meanwhile.
_READINGS = 5
NOTEBOOK = ".ipynb"
NOTEBOOK_FACTOR = 10
"""How many times as many bytes as others a notebook may have: most of it is what its cells have shown."""
NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK_LINE = re.compile(rf"[ \t\f]*(?:{NEWLINE.pattern})")
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

    ``reason`` is one sentence without a full stop; ``position`` is where the offending byte stands, and
    ``remedy`` what to do about it, if that is known.
    """

    def __init__(self, reason: str, position: Position | None = None, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position or Position(1, 1)
        self.remedy = remedy


class StaleSourceError(SourceError):
    """The file on disk is no longer the one that was read; nothing was written."""


class TogetherError(SourceError):
    """Of several files none was written, since the one at ``path`` could not be."""

    def __init__(self, path: Path, error: SourceError) -> None:
        super().__init__(error.reason, error.position)
        self.path = path
        self.error = error


class _KeptError(SourceError):
    """Nothing was written, and what the temporary file holds is not torchlint's to delete."""


@dataclass(frozen=True, slots=True)
class Part:
    """What people read as one, and Python on its own: the program of a file, or one cell of a notebook.

    ``text`` is as its author wrote it. It begins at ``start`` of the text of the file, and is as long there.
    ``code`` is what has to be Python; it ends where ``text`` does, and may begin before it.
    """

    cell: int | None
    start: int
    text: str
    code: str


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
    def from_bytes(cls, data: bytes, path: Path) -> Source:
        """Decode ``data`` as the interpreter would.

        Raises:
            SourceError: the bytes are not text in the encoding they declare, or hold a NUL.
        """
        body = data.removeprefix(codecs.BOM_UTF8)
        return cls.decoded(data, path, _declared_encoding(data, body))

    @classmethod
    def decoded(cls, data: bytes, path: Path, encoding: str) -> Source:
        """Decode ``data`` by a codec, but for a byte order mark of UTF-8.

        Raises:
            SourceError: the bytes are not text in this encoding, or hold a NUL.
        """
        bom = data.startswith(codecs.BOM_UTF8)
        body = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            raise undecodable(body, error, encoding, _ENCODED) from error
        except (LookupError, ValueError) as error:
            raise SourceError(f"`{encoding}` is not a text encoding") from error
        if (nul := text.find("\0")) >= 0:
            raise SourceError("the file contains a NUL byte", _end_position(text[:nul]))
        return cls(path, text, encoding, bom, dominant_newline(text))

    @classmethod
    def from_text(cls, text: str, path: Path) -> Source:
        """Return a text that an editor holds for ``path``: already decoded,
        and stored as the editor likes.
        """
        return cls(path, text, newline=dominant_newline(text))

    def with_text(self, text: str, edits: Iterable[Edit] = ()) -> Source:
        """Return the same file holding another text, which the edits have made of this one."""
        return replace(self, text=text)

    def to_bytes(self) -> bytes:
        """Return the file.

        Raises:
            SourceError: its encoding cannot hold the text.
        """
        return self.encode(self.text)

    def encode(self, text: str) -> bytes:
        """Return ``text`` as this file stores it.

        Raises:
            SourceError: the encoding of the file cannot hold it.
        """
        try:
            data = text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise SourceError(f"{self.encoding} cannot encode the character {character!r}") from error
        return codecs.BOM_UTF8 + data if self.bom else data

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """The offset at which each line begins."""
        return line_starts(self.text)

    def position(self, offset: int) -> Position:
        """Return row and column of a character offset; offsets beyond the text count as its end."""
        offset = max(0, min(offset, len(self.text)))
        row = bisect_right(self.line_starts, offset)
        return Position(row, offset - self.line_starts[row - 1] + 1)

    def locate(self, offset: int) -> Position:
        """Return the place of a character offset as people are told it: within its cell in a notebook."""
        return self.position(offset)

    @property
    def stored(self) -> str:
        """The text that the file holds: the JSON of a notebook, ``text`` of any other file."""
        return self.text

    def in_file(self, offset: int) -> Position:
        """Return the row and column, in what the file holds, of a character of ``text``."""
        return self.position(offset)

    def edits_in_file(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return what these edits of ``text`` change in what the file holds."""
        return edits

    @property
    def in_cells(self) -> bool:
        """Whether this is a notebook, in which places are counted by cell."""
        return False

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What people read as one: the whole text, or each cell of a notebook."""
        return (Part(None, 0, self.text, self.text),)

    def part(self, cell: int | None) -> Part | None:
        """Return the part that is the cell of this number, or for None the whole of a file without cells."""
        return next((part for part in self.parts if part.cell == cell), None)

    def fitted(self, fix: Fix) -> Fix | None:
        """Return the fix with edits that may be made; None if one of them may not be."""
        return fix

    def rows_of(self, lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return the lines of the text that these of the file are about: ranges,
        as `torchlint.changes` counts.
        """
        return tuple(lines)

    def offset(self, position: Position) -> int:
        """Return the character offset of a position; one beyond its line counts as the end of that line."""
        if position.row > len(self.line_starts):
            return len(self.text)
        start = self.line_starts[max(position.row, 1) - 1]
        return min(start + max(position.column, 1) - 1, start + len(self.line(position.row)))

    def line(self, row: int) -> str:
        """Return the text of line ``row`` (from 1) without its newline; empty beyond the end."""
        starts = self.line_starts
        if not 1 <= row <= len(starts):
            return ""
        end = starts[row] if row < len(starts) else len(self.text)
        return self.text[starts[row - 1] : end].rstrip("\r\n")


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` with the edits made, each once.

    Raises:
        ValueError: two of them overlap, or one lies outside the text.
    """
    parts: list[str] = []
    at = 0
    for edit in sorted(set(edits)):
        if not at <= edit.span.start <= edit.span.end <= len(text):
            raise ValueError(f"an edit of characters {edit.span.start} to {edit.span.end} cannot be made")
        parts += (text[at : edit.span.start], edit.content)
        at = edit.span.end
    return "".join((*parts, text[at:]))


def is_file(path: Path) -> bool:
    """Return whether there is a regular file, or a link to one; False for a name that is too long,
    or hidden.
    """
    return os.path.isfile(path)  # noqa: PTH113 (pathlib raises then)


def is_folder(path: Path) -> bool:
    """Return whether there is a folder, or a link to one; likewise."""
    return os.path.isdir(path)  # noqa: PTH112 (likewise)


def exists(path: Path) -> bool:
    """Return whether there is anything, or a link to it; likewise."""
    return os.path.exists(path)  # noqa: PTH110 (likewise)


State = tuple[int, int] | None


def state_of(path: Path) -> State:
    """Return what changes with a file: its time and size; None if it is not there."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def read_bytes(path: Path, most: int = 0) -> bytes:
    """Return the bytes of the regular file at ``path``, symbolic links followed; ``most`` of them,
    if it is not 0.

    Raises:
        SourceError: no such file, it is something else, it may not be read, or it is too large.
    """
    try:
        # Asked before it is opened: to open a device may be enough for it to do something.
        _checked_size(path.stat(), most)
        with io.FileIO(path, opener=_open_at_once) as file:
            for _ in range(_READINGS):
                size = _checked_size(os.fstat(file.fileno()), most)
                data = _read(file, size + 1)
                if len(data) == size:
                    return data
                if not os.fstat(file.fileno()).st_size:
                    break
                # Somebody is writing it at this moment.
                file.seek(0)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read the file: {_reason(error, path)}") from error
    raise SourceError(f"cannot read the file: {_UNSTORED}")


def _checked_size(found: os.stat_result, most: int) -> int:
    """Return the size of a regular file of at most ``most`` bytes, if that is not 0.

    Raises:
        SourceError: it is something else, or too large.
    """
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "it is not a file")
        raise SourceError(f"cannot read the file: {kind}")
    if most and found.st_size > most:
        raise too_large(found.st_size, most)
    return found.st_size


def _open_at_once(path: str, flags: int) -> int:
    # What the kernel makes up as it is read, in /proc, counts as a regular file and may have no end.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _read(file: io.FileIO, size: int) -> bytes:
    """Return the next ``size`` bytes; fewer at the end of the file.

    Raises:
        OSError: there may be more, but not for now, as no stored file says.
    """
    parts = []
    # One call of the system may stop short of what a large file holds.
    while size and (part := file.read(size)) != b"":
        if part is None:
            raise BlockingIOError(errno.EAGAIN, _UNSTORED)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def is_notebook(path: Path, extension: Iterable[tuple[str, str]] = ()) -> bool:
    """Return whether a file is a notebook by its name,
    or by the language that ``extension`` gives its suffix.
    """
    languages = dict(extension)
    return languages.get(path.suffix.removeprefix("."), "") == "ipynb" or (
        path.suffix == NOTEBOOK and NOTEBOOK.removeprefix(".") not in languages
    )


def most_bytes(notebook: bool, most: int) -> int:
    """Return how many bytes a file may have where ``most`` are allowed; 0 means any number."""
    return most * (NOTEBOOK_FACTOR if notebook else 1)


def too_large(size: int, most: int) -> SourceError:
    """Return why a file of ``size`` bytes is not read."""
    return SourceError(f"cannot read the file: it has {size} bytes; the limit is {most}")


def read_text(path: Path, most: int) -> str:
    """Return the text of a small file of a project that is no program, such as an ignore file or a lock file.

    What is not UTF-8 is replaced, a byte order mark left out and every newline LF.

    Raises:
        SourceError: as `read_bytes`.
    """
    return with_line_feeds(read_bytes(path, most).decode("utf-8-sig", "replace"))


def line_starts(text: str) -> Sequence[int]:
    """Return the offset at which each line begins; lines end at LF, CR LF or a lone CR, as in Python."""
    # Lines of a stream that translates nothing are found in half the time that an expression takes.
    starts = array("i", accumulate(map(len, io.StringIO(text, newline="")), initial=0))
    if text and text[-1] not in "\r\n":
        starts.pop()
    return starts


def line_start(text: str, at: int) -> int:
    """Return the offset at which the line of ``at`` begins; lines end as in Python."""
    start = text.rfind("\n", 0, at) + 1
    return max(start, text.rfind("\r", start, at) + 1)


def line_above(text: str, start: int) -> int:
    """Return the offset at which the line above the one that begins at ``start`` does."""
    return line_start(text, start - 2 if text[start - 2 : start] == "\r\n" else start - 1)


def blank_lines_before(text: str, start: int) -> int:
    """Return how many lines right above a line have nothing on them; two at most,
    as formatters leave them.
    """
    count = 0
    while start > 0 and count < 2:
        above = line_above(text, start)
        if text[above:start].strip():
            break
        count, start = count + 1, above
    return count


def past_blank_lines(text: str, start: int, most: int) -> int:
    """Return where the blank lines that begin at ``start`` end, or so many of them; none of a text's end."""
    for _ in range(most):
        blank = _BLANK_LINE.match(text, start)
        if blank is None or blank.end() == len(text):
            break
        start = blank.end()
    return start


def with_line_feeds(text: str) -> str:
    """Return ``text`` with every newline LF, as the interpreter reads a file."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_atomically(
    path: Path, data: bytes, expected_old_bytes: bytes | None, what: str = "the fixes"
) -> bool:
    """Replace the contents of ``path`` in one step; return whether anything had to be written.

    ``expected_old_bytes`` is None for a file that is to be made. The new contents go to a temporary file
    beside the target of ``path`` (a symbolic link stays one), which takes over the old mode, the owner if
    that is allowed, and then the name: a reader sees the old file or the new one. Who is killed meanwhile
    leaves at most a file ``.torchlint-….tmp``, which no run looks at. ``what`` is the word for the data in
    messages.

    Raises:
        StaleSourceError: the file no longer holds ``expected_old_bytes``.
        SourceError: it is read-only, or its folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    if expected_old_bytes is None and not exists(target):
        try:
            _make(target, data, what)
        except OSError as error:
            raise SourceError(f"cannot write {what}: {_reason(error, target.parent)}") from error
        return True
    with _prepared(target, data, expected_old_bytes, what) as put:
        return put()


@dataclass(frozen=True, slots=True)
class Change:
    """What a file that holds ``old`` is to hold."""

    path: Path
    new: bytes
    old: bytes


def write_together(changes: Sequence[Change], what: str = "the fixes") -> list[bool]:
    """Replace the contents of several files, or of none; return for each whether it had to be written.

    All temporary files are written before the first of them takes over a name. If one cannot, those that
    have are given back what they held.

    Raises:
        TogetherError: one of the files cannot be written, as `write_atomically` says.
    """
    done: list[Change] = []
    written = []
    with contextlib.ExitStack() as stack:
        puts = []
        for change in changes:
            try:
                target = Path(os.path.realpath(change.path))
                puts.append(stack.enter_context(_prepared(target, change.new, change.old, what)))
            except SourceError as error:
                raise TogetherError(change.path, error) from error
        for change, put in zip(changes, puts, strict=True):
            try:
                written.append(put())
            except SourceError as error:
                for earlier in reversed(done):
                    # What somebody has saved meanwhile is theirs.
                    with contextlib.suppress(SourceError):
                        write_atomically(earlier.path, earlier.old, earlier.new, what)
                raise TogetherError(change.path, error) from error
            done.append(change)
    return written


@contextlib.contextmanager
def _prepared(target: Path, data: bytes, old: bytes | None, what: str) -> Iterator[Callable[[], bool]]:
    """Write the new contents of a file to the disk, and yield what puts them in its place.

    That returns whether it had to.

    That returns whether it had to.

    Raises:
        StaleSourceError: the file no longer holds ``old``.
        SourceError: it cannot be written.
    """
    current = read_bytes(target)
    if current == data:
        yield lambda: False
        return
    if current != old:
        raise _stale(what)
    check_writable(target, what)
    import shutil

    with contextlib.ExitStack() as stack:
        try:
            temporary = stack.enter_context(_beside(target, data))
            if (owner := _owner(target)) != _owner(temporary):
                # A superuser who fixes a file, as in a container, does not take it away from its owner.
                with contextlib.suppress(OSError, AttributeError):
                    os.chown(temporary, *owner)
            shutil.copymode(target, temporary)
        except OSError as error:
            raise SourceError(f"cannot write {what}: {_reason(error, target)}") from error

        def put() -> bool:
            try:
                _put(temporary, target, data, current, what)
            except OSError as error:
                raise SourceError(f"cannot write {what}: {_reason(error, target)}") from error
            return True

        yield put


def check_writable(path: Path, what: str = "the fixes") -> None:
    """Make sure that a file may be replaced, so far as its mode says.

    Raises:
        SourceError: it is read-only, or not there.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except OSError as error:
        raise SourceError(f"cannot write {what}: {_reason(error, target)}") from error
    # The mode is asked as well because a superuser is granted access to read-only files, and because
    # replacing a file needs no permission on the file itself.
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise SourceError(f"cannot write {what}: the file is read-only")


def _stale(what: str) -> StaleSourceError:
    return StaleSourceError(f"cannot write {what}: the file changed while it was checked")


def _put(temporary: Path, target: Path, data: bytes, old: bytes, what: str) -> None:
    if not _holds(target, old):
        raise _stale(what)
    if _rename_by(_EXCHANGE, temporary, target):
        _settle(temporary, target, data, old, what)
    else:
        _rename(temporary, target)


def _settle(temporary: Path, target: Path, data: bytes, old: bytes, what: str) -> None:
    """Delete what had the name ``target`` and is ``temporary`` by now; if it is not ``old``, put it back.

    Somebody may save the file at any moment, in place or by another file that takes over the name: what was
    saved last has the name in the end.

    Raises:
        StaleSourceError: somebody has saved the file; ``target`` is theirs.
    """
    if _holds(temporary, old):
        temporary.unlink()
        return
    placed: bytes | None = data
    for _ in range(_SAVES):
        theirs = _held(temporary)
        _rename_by(_EXCHANGE, temporary, target)
        # What has come back is what was put there, unless somebody has saved once more.
        if placed is not None and _holds(temporary, placed):
            temporary.unlink()
            raise _stale(what)
        placed = theirs
    raise _KeptError(f"cannot write {what}: the file changes all the time; {temporary.name} was part of it")


def _held(path: Path) -> bytes | None:
    """Return what the regular file at ``path`` holds, no link followed; None if it is something else."""
    try:
        return read_bytes(path) if stat.S_ISREG(path.lstat().st_mode) else None
    except (OSError, SourceError):
        return None


def _holds(path: Path, data: bytes) -> bool:
    """Return whether there is a regular file, and no link, that holds ``data``."""
    try:
        same = path.lstat().st_size == len(data)
    except OSError:
        return False
    return same and _held(path) == data


def _make(target: Path, data: bytes, what: str) -> None:
    with _beside(target, data) as temporary:
        # As other files are made; only the kernel knows, and tells who sets another.
        mask = os.umask(0o077)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        try:
            made = _rename_by(_NO_REPLACE, temporary, target)
        except FileExistsError:
            raise _stale(what) from None
        if not made:
            _rename(temporary, target)


def _rename_by(flag: int, temporary: Path, target: Path) -> bool:
    """Rename as only Linux can, in one step; False where that is not possible, and nothing was done.

    Raises:
        OSError: it failed.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(temporary), _HERE, os.fsencode(target), flag) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    # The kernel is too old, or the file system cannot do it: as over a network.
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(target))


@lru_cache(maxsize=1)
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # another C library
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    renames: Callable[[int, bytes, int, bytes, int], int] = function
    return renames


@contextlib.contextmanager
def _beside(target: Path, data: bytes) -> Iterator[Path]:
    """Write ``data`` to a file beside ``target``, which is gone afterwards unless it was renamed."""
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".torchlint-", suffix=".tmp")
    temporary, made = Path(name), os.fstat(descriptor)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            # By now the name may be that of somebody else's file.
            if not isinstance(error, _KeptError) and os.path.samestat(temporary.lstat(), made):
                temporary.unlink()
        raise


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


def _rename(temporary: Path, target: Path) -> None:
    """Give a file the name of another one, which is gone with that."""
    for pause in _PAUSES if _WINDOWS else ():
        try:
            temporary.replace(target)
            return
        except PermissionError:
            # Windows refuses while somebody has the file open: a virus scanner, for a moment.
            time.sleep(pause)
    temporary.replace(target)


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is a broken symbolic link" if os.path.islink(path) else "no such file or directory"  # noqa: PTH114
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


_ENCODED = "Save the file as UTF-8, or declare its encoding in the first line: `# -*- coding: latin-1 -*-`"


def _declared_encoding(data: bytes, body: bytes) -> str:
    # Newer versions of Python decode the first two lines, too, and refuse a NUL in them. Where it is, the
    # decoder tells.
    readable = data.replace(b"\0", b" ") if b"\0" in data else data
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(readable).readline)
    except LookupError as error:
        raise SourceError(str(error).partition(";")[0].replace("'", "`")) from error
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


def undecodable(
    body: bytes, error: UnicodeDecodeError, encoding: str, remedy: str = "Save the file as UTF-8"
) -> SourceError:
    """Return why ``body`` is no text in ``encoding``, and where."""
    before = body[: error.start].decode(encoding, "replace")
    reason = f"byte 0x{body[error.start]:02x} is not valid {encoding}"
    return SourceError(reason, _end_position(before), remedy)


def _sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _end_position(before: str) -> Position:
    lines = NEWLINE.split(before)
    return Position(len(lines), len(lines[-1]) + 1)


def dominant_newline(text: str) -> str:
    """Return the newline that is most frequent in ``text``; LF if there is none."""
    if "\r" not in text:
        return "\n"
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=counts.__getitem__)
