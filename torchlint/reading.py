"""Reading a file: Python source, with cells perhaps, or a notebook or configuration file by its name."""

from __future__ import annotations

from pathlib import Path

from torchlint.documents import is_document
from torchlint.source import NOTEBOOK, Source, read_bytes


def read(path: Path, most: int = 0) -> Source:
    """The file at ``path``, if it has at most ``most`` bytes; any file if that is 0.

    Raises:
        SourceError: it is missing, unreadable, not a regular file, too large, or not text.
    """
    return from_bytes(read_bytes(path, most), path)


def from_bytes(data: bytes, path: Path) -> Source:
    """Decode ``data`` as the interpreter would, or as a notebook or a configuration file by its name.

    Raises:
        SourceError: the bytes are not text in the encoding they declare, hold a NUL, or are no notebook.
    """
    if path.suffix == NOTEBOOK:
        from torchlint.notebook import Notebook

        return Notebook.from_bytes(data, path)
    if is_document(path):
        return Source.decoded(data, path, "utf-8")
    source = Source.from_bytes(data, path)
    if "%%" in source.text or "In[" in source.text:
        from torchlint import scripts

        return scripts.read(source)
    return source
