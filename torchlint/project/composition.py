"""What the files of a Hydra configuration say together, as their defaults lists stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchlint.diagnostics import Span
from torchlint.documents import OPAQUE, Document, Entry, Row, Scalar, Table

_DEFAULTS = "defaults"
_PACKAGE = re.compile(r"^#[ \t]*@package[ \t]+([\w.-]+)[ \t]*$", re.MULTILINE)
_MOST_FILES = 60
_YAML = ".yaml"


class _UnclearError(Exception):
    """A defaults list has more to it than is computed here."""


class _Choice(NamedTuple):
    """What an item of a defaults list stands for: files of a group, and the package that they go to."""

    group: PurePosixPath
    files: tuple[str, ...]
    package: tuple[str, ...]
    optional: bool = False


class Composition:
    """Composes the configurations of one folder; ``read`` gives a file, None if it is not there.

    Source: Hydra's documentation, "The Defaults List" and "Packages".
    """

    def __init__(self, read: Callable[[Path], Document | None], folder: Path) -> None:
        self._read = read
        self._folder = folder
        self.visited: set[Path] = set()
        """The files that were read."""

    def table(self, name: str) -> Table | None:
        """Return the primary configuration of this name; None where it is not there, or not plain."""
        try:
            made = self._file(PurePosixPath(name.removesuffix(_YAML)), (), 0)
        except _UnclearError:
            return None
        return made

    def _file(self, name: PurePosixPath, package: tuple[str, ...], depth: int) -> Table | None:
        """Return what a file, named from the folder, says with its defaults; None if it is not there."""
        path = Path(f"{self._folder / name}{_YAML}")
        if len(self.visited) > _MOST_FILES or depth > _MOST_FILES:
            raise _UnclearError
        document = self._read(path)
        if document is None:
            return None
        self.visited.add(path)
        root = document.root
        if root is None and not document.source.text.strip():
            root = Table(document, Span(0, 0), {})
        if not isinstance(root, Table):
            raise _UnclearError
        package = self._package(document, name, package)
        own = replace(root, items={key: item for key, item in root.items.items() if key != _DEFAULTS})
        listed = root.items.get(_DEFAULTS)
        body = _nested(own, package)
        if listed is None:
            return body
        if not isinstance(listed, Row):
            raise _UnclearError
        parts: list[Table] = []
        placed = False
        for item in listed.items:
            if isinstance(item, Scalar) and item.value == "_self_":
                parts.append(body)
                placed = True
                continue
            for choice in self._choices(item, name.parent, package):
                for each in choice.files:
                    made = self._file(choice.group / each, choice.package, depth + 1)
                    if made is None and not choice.optional:
                        raise _UnclearError
                    parts += [made] if made is not None else []
        if not placed:
            # Releases of Hydra differ in where the file itself comes then.
            parts.append(body)
        result = parts[0]
        for part in parts[1:]:
            result = _merged(result, part, ordered=placed)
        return result

    def _choices(self, item: Entry, group: PurePosixPath, package: tuple[str, ...]) -> list[_Choice]:
        if isinstance(item, Scalar):
            if not isinstance(item.value, str) or "$" in item.value or "@" in item.value:
                raise _UnclearError
            return [_Choice(_joined(group, item.value).parent, (PurePosixPath(item.value).name,), package)]
        if not isinstance(item, Table) or len(item.items) != 1:
            raise _UnclearError
        (key, chosen), *_ = item.items.items()
        words = key.split()
        keywords, words = words[:-1], words[-1:]
        name, _, target = words[0].partition("@") if words else ("", "", "")
        if name.lstrip("/").startswith("hydra/"):
            return []
        if "override" in keywords or "$" in key:
            raise _UnclearError
        if target not in ("", "_global_"):
            package = (*package, *(part for part in target.split(".") if part != "_here_"))
        elif target:
            package = ()
        else:
            package = (*package, *PurePosixPath(name.lstrip("/")).parts)
        if isinstance(chosen, Scalar) and chosen.value is None:
            return []
        files = chosen.items if isinstance(chosen, Row) else (chosen,)
        names = [each.value for each in files if isinstance(each, Scalar) and isinstance(each.value, str)]
        if len(names) != len(files) or any("$" in each or each == "???" for each in names):
            raise _UnclearError
        options = tuple(each.removesuffix(_YAML) for each in names)
        return [_Choice(_joined(group, name), options, package, optional="optional" in keywords)]

    def _package(self, document: Document, name: PurePosixPath, package: tuple[str, ...]) -> tuple[str, ...]:
        """Return the package that the head of a file names, or else the one that it was asked for."""
        text = document.source.text
        head = _PACKAGE.search(text, 0, 1_000)
        if head is None:
            return package
        match head[1]:
            case "_global_":
                return ()
            case "_group_":
                return name.parent.parts
            case named:
                return tuple(named.split("."))


def _joined(group: PurePosixPath, name: str) -> PurePosixPath:
    return PurePosixPath(name.lstrip("/")) if name.startswith("/") else group / name


def _nested(table: Table, package: tuple[str, ...]) -> Table:
    for name in reversed(package):
        table = Table(table.document, table.span, {name: table})
    return table


def _merged(first: Table, second: Table, *, ordered: bool) -> Table:
    """Return two mappings as one, of which the second wins;
    nobody where they differ and it is not ``ordered``.
    """
    items = dict(first.items)
    for key, value in second.items.items():
        before = items.get(key)
        if isinstance(before, Table) and isinstance(value, Table):
            items[key] = _merged(before, value, ordered=ordered)
        elif before is not None and not ordered:
            items[key] = Scalar(value.document, value.span, OPAQUE, value.key, editable=False)
        else:
            items[key] = value
    # What is added goes to the file that says most of it.
    larger = second if len(second.pairs) > len(first.pairs) else first
    return replace(larger, items=items)
