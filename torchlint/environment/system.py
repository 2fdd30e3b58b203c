"""One look at the operating system: files, variables and sizes, all replaceable by a test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class System:
    """The file system from its root on, and the environment variables of this process.

    No question raises: what does not exist or may not be read is None or empty.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def read(self, path: str) -> str | None:
        """Return the stripped text of a file, by its absolute path."""
        try:
            return self._at(path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Return whether there is something at an absolute path."""
        try:
            return self._at(path).exists()
        except OSError:
            return False

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            return sorted(entry.name for entry in self._at(path).iterdir())
        except OSError:
            return []

    def size(self, path: str) -> int | None:
        """Return the capacity of the file system at an absolute path, in bytes."""
        try:
            status = os.statvfs(self._at(path))
        except (OSError, AttributeError):
            return None
        return status.f_frsize * status.f_blocks

    def matching(self, folder: str, pattern: str) -> Iterator[str]:
        """Yield the absolute paths below a folder that match a glob pattern."""
        try:
            found = sorted(self._at(folder).glob(pattern))
        except OSError:
            return
        for path in found:
            yield "/" + path.relative_to(self.root).as_posix()

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")
