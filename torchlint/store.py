"""A folder of JSON documents that torchlint keeps for itself, and trusts no further than it can see.

A ``CACHEDIR.TAG`` says that the folder is a cache of torchlint, and it ignores itself in git. Only a folder
that is new, empty or so tagged is ever written to or emptied. A document is replaced in one step, and carries
the digest of what it holds: one that is cut short, damaged or not ours is as good as none.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

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


class StoreError(Exception):
    """A folder cannot be used as a store; the message says why, for people."""


class Store:
    """The documents in one folder, which is made when the first is saved.

    Raises:
        StoreError: the folder is there and holds something else, or belongs to another user.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._exists = _check(directory)

    def load(self, name: str) -> Any:
        """The document of this name; None if there is none that is whole."""
        if not self._there:
            return None
        try:
            with (self.directory / f"{name}{_SUFFIX}").open("rb") as file:
                content = file.read(MAX_DOCUMENT + 1)
        except (OSError, ValueError):
            return None
        digest, _, body = content.partition(b"\n")
        if len(content) > MAX_DOCUMENT or digest != _digest(body):
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
        if len(body) + 65 > MAX_DOCUMENT:
            return
        try:
            if not self._there:
                _make(self.directory)
            _replace(self.directory / f"{name}{_SUFFIX}", _digest(body) + b"\n" + body)
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
    """The folder in the user's own cache; None where the user has none.

    It is not in the project: whoever wrote the project must have no say in what was found in it before.
    """
    from platformdirs import user_cache_path

    path = user_cache_path("torchlint", appauthor=False) / "check"
    return path if path.is_absolute() else None


def _check(directory: Path) -> bool:
    """Whether the store is there.

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
        tag = (directory / _TAG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        tag = ""
    if tag != _CONTENTS[_TAG]:
        raise StoreError(f"{directory} cannot be used as a cache: it holds something else")
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
