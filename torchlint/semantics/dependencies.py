"""Dependency tracking: which files an answer was computed from, and so which files a finding depends on.

Code that reads another file while it computes an answer records that file in `noted`. A memory keeps the
recorded files with each answer, and records them again for whoever asks for it later. So the files recorded
while a file is checked are those that its findings depend on, whatever was known before.

Sets of files are integers with one bit for the rank of each file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class _Noted(threading.local):
    files = 0
    """The files that what is being computed has depended on so far."""


noted = _Noted()


def worked_out(work_out: Callable[..., T], *arguments: Any) -> tuple[T, int]:
    """Return what a function says, and the files it depends on, which are noted for the asker as well."""
    outer, noted.files = noted.files, 0
    try:
        return work_out(*arguments), noted.files
    finally:
        noted.files |= outer


class Table:
    """What a table of answers depends on that are computed together, and told from one another by nobody."""

    __slots__ = ("_files",)

    def __init__(self) -> None:
        self._files = 0

    def note(self) -> None:
        """Note what the table depends on, for something that is read in the table alone."""
        noted.files |= self._files

    def asked(self) -> _Asked:
        """Return a context in which the table is read and added to.

        The asker depends on all that went into it.
        """
        return _Asked(self)


class _Asked:
    """Notes what is computed meanwhile for a table, and what the table depends on for the asker.

    A class, since a generator takes several times as long to begin and to end.
    """

    __slots__ = ("_outer", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table

    def __enter__(self) -> None:
        self._outer, noted.files = noted.files, 0

    def __exit__(self, *_: object) -> None:
        table = self._table
        table._files |= noted.files
        noted.files = self._outer | table._files


class cached_property(Generic[T]):  # noqa: N801 - in place of that of ``functools``
    """An attribute that is computed when it is first asked for, and kept with the files it depends on."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._beside = name, f"{name} "

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        known = instance.__dict__
        kept: tuple[T, int] | None = known.get(self._beside)
        if kept is not None:
            noted.files |= kept[1]
            return kept[0]
        found, files = worked_out(self._work_out, instance)
        if files:
            known[self._beside] = found, files
        else:
            # From now on nobody comes by here.
            known[self._name] = found
        return found
