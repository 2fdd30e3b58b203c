"""A folder of JSON documents that torchlint keeps for itself, and trusts no further than it can see.

A folder that a project names is not trusted at all: what is read there must have been written on this
machine, by this user, which a key in the user's own folder proves.

A ``CACHEDIR.TAG`` says that the folder is a cache of torchlint, and it ignores itself in git. Only a folder
that is new, empty or so tagged is ever written to or emptied. A document is replaced in one step, and carries
the digest of what it holds: one that is cut short, damaged or not ours is as good as none.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from torchlint.source import SourceError, read_bytes

DAY = 86_400
MAX_AGE = 30 * DAY
"""Seconds after which a document that nobody wrote again is dropped."""
MAX_BYTES = 256 << 20
"""What all documents of a store may take together; the oldest go first."""
MAX_DOCUMENT = 32 << 20

_TAG, _IGNORE = "CACHEDIR.TAG", ".gitignore"
_CONTENTS = {
    _IGNORE: "# Made by torchlint.\n*\n",
    _TAG: "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This is a cache of torchlint; `torchlint clean` deletes it.\n"
    "# About cache directory tags: https://bford.info/cachedir/\n",
}
_SUFFIX, _UNFINISHED = ".json", ".tmp"
_KEY_SIZE = 32


class StoreError(Exception):
    """A folder cannot be used as a store; the message says why, for people."""


class Store:
    """The documents in one folder, which is made when the first is saved.

    With a ``key`` only documents count that were saved with the same one.

    Raises:
        StoreError: the folder is there and holds something else, or belongs to another user.
    """

    def __init__(self, directory: Path, key: bytes = b"") -> None:
        self.directory = directory
        self._key = key
        self._exists = _check(directory)

    def load(self, name: str) -> Any:
        """Return the document of this name; None if there is none that is whole."""
        if not self._there:
            return None
        try:
            content = read_bytes(self.directory / f"{name}{_SUFFIX}", MAX_DOCUMENT)
        except SourceError:
            return None
        digest, _, body = content.partition(b"\n")
        if not self._made(name, digest, body):
            return None
        try:
            return json.loads(body)
        except (ValueError, RecursionError, MemoryError):
            return None

    def save(self, name: str, document: Any) -> None:
        """Replace the document of this name, and drop what is old or too much.

        Whatever goes wrong, a reader sees the old document or the new one; that nothing was saved is logged.
        """
        body = json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode()
        content = self._seal(name, body) + b"\n" + body
        if len(content) > MAX_DOCUMENT:
            return
        try:
            if not self._there:
                _make(self.directory)
            _replace(self.directory / f"{name}{_SUFFIX}", content)
            self._prune()
        except (OSError, StoreError) as error:
            import logging

            logging.getLogger("torchlint").debug("nothing was cached in %s: %s", self.directory, error)

    def clear(self) -> tuple[int, int]:
        """Delete everything that torchlint made in the folder; the number of documents, and of their bytes.

        Raises:
            StoreError: something cannot be deleted.
        """
        if not self._there:
            return 0, 0
        count = size = 0
        try:
            for path, status in self._files():
                path.unlink(missing_ok=True)
                count += path.suffix == _SUFFIX
                size += status.st_size
            for name in _CONTENTS:
                (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot delete the cache in {self.directory}: {error.strerror}") from error
        self._exists = False
        with contextlib.suppress(OSError):  # somebody else's files are in it, which stay
            self.directory.rmdir()
        return count, size

    def _seal(self, name: str, body: bytes) -> bytes:
        """Return what says that a document is whole; with a key also that it is ours."""
        if not self._key:
            return _digest(body)
        import hmac

        return hmac.digest(self._key, name.encode() + b"\0" + body, "sha256").hex().encode()

    def _made(self, name: str, seal: bytes, body: bytes) -> bool:
        if not self._key:
            return seal == self._seal(name, body)
        import hmac

        return hmac.compare_digest(seal, self._seal(name, body))

    @property
    def _there(self) -> bool:
        # Another process may make it at any time.
        with contextlib.suppress(StoreError):
            self._exists = self._exists or _check(self.directory)
        return self._exists

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        with os.scandir(self.directory) as entries:
            for entry in entries:
                if entry.name.endswith((_SUFFIX, _UNFINISHED)) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)

    def _prune(self) -> None:
        now, total = time.time(), 0
        for path, status in sorted(self._files(), key=lambda item: item[1].st_mtime, reverse=True):
            # What a killed run has left unfinished is of no use to anybody the next day.
            oldest = now - (DAY if path.suffix == _UNFINISHED else MAX_AGE)
            total += status.st_size
            if status.st_mtime < oldest or total > MAX_BYTES:
                path.unlink(missing_ok=True)


def default_directory() -> Path | None:
    """Return the folder in the user's own cache; None where the user has none.

    It is not in the project: whoever wrote the project must have no say in what was found in it before.
    """
    from platformdirs import user_cache_path

    path = user_cache_path("torchlint", appauthor=False) / "check"
    return path if path.is_absolute() else None


def own_key(path: Path) -> bytes:
    """Return the key that is kept at ``path``, made at the first use; empty if it cannot be kept from others.

    Who can read it can write what torchlint believes.
    """
    for _ in range(2):
        key = _known_key(path)
        if key:
            return key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, os.urandom(_KEY_SIZE))
        except OSError:
            return b""
    # Another process may have made one at the same time: what counts is the one that is there now.
    return _known_key(path)


def _known_key(path: Path) -> bytes:
    try:
        found = path.lstat()
        key = read_bytes(path, _KEY_SIZE)
    except (OSError, SourceError):
        return b""
    foreign = hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o077)
    return b"" if foreign or not stat.S_ISREG(found.st_mode) or len(key) != _KEY_SIZE else key


def _check(directory: Path) -> bool:
    """Return whether the store is there.

    Raises:
        StoreError: something else is there.
    """
    try:
        status = directory.stat()
        empty = next(directory.iterdir(), None) is None
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"{directory} cannot be used as a cache: {reason}") from error
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise StoreError(f"{directory} cannot be used as a cache: it belongs to another user")
    if empty:
        return False
    try:
        tag = read_bytes(directory / _TAG, len(_CONTENTS[_TAG]))
    except SourceError:
        tag = b""
    if tag != _CONTENTS[_TAG].encode():
        raise StoreError(f"{directory} cannot be used as a cache: it contains other files")
    return True


def _make(directory: Path) -> None:
    """Make the folder with its tag in one step, so that no other process sees it without."""
    import shutil
    import tempfile

    directory.parent.mkdir(parents=True, exist_ok=True)
    # Readable by this user alone, as the XDG specification wants it of what it names.
    unfinished = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}-"))
    try:
        for name, content in _CONTENTS.items():
            (unfinished / name).write_text(content, encoding="utf-8", newline="\n")
        try:
            if os.name == "nt" and directory.is_dir():  # where a folder cannot take the place of an empty one
                directory.rmdir()
            unfinished.replace(directory)
        except OSError:
            if not _check(directory):
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _replace(path: Path, content: bytes) -> None:
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}-", suffix=_UNFINISHED)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # Not forced to the disk: what a power failure cuts short does not have the digest it says.
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _digest(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode()


def text_of(value: Any) -> str:
    """Return the value, which a document is to have as a string.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not str:
        raise TypeError("expected a string")
    return value


def number_of(value: Any) -> int:
    """Return the value, which a document is to have as a whole number that is not negative.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not int or value < 0:
        raise TypeError("expected a whole number")
    return value
