"""Reading a file: Python source, with cells perhaps, or a notebook or configuration file."""

from __future__ import annotations

from pathlib import Path

from torchlint.documents import is_document
from torchlint.source import Source, is_notebook, read_bytes


def read(path: Path, most: int = 0, *, notebook: bool | None = None) -> Source:
    """Return the file at ``path``, if it has at most ``most`` bytes; any file if that is 0.

    ``notebook`` says whether it is one, if not its name does.

    Raises:
        SourceError: it is missing, unreadable, not a regular file, too large, or not text.
    """
    return from_bytes(read_bytes(path, most), path, notebook=notebook)


def from_bytes(data: bytes, path: Path, *, notebook: bool | None = None) -> Source:
    """Decode ``data`` as the interpreter would, or as a notebook or a configuration file.

    ``notebook`` says whether it is one, if not its name does.

    Raises:
        SourceError: the bytes are not text in the encoding they declare, hold a NUL, or are no notebook.
    """
    if is_notebook(path) if notebook is None else notebook:
        from torchlint.notebook import Notebook

        return Notebook.from_bytes(data, path)
    if is_document(path):
        return Source.decoded(data, path, "utf-8")
    source = Source.from_bytes(data, path)
    if "%%" in source.text or "In[" in source.text:
        from torchlint import scripts

        return scripts.read(source)
    return source
