"""Which files a run is about: directories searched, excludes and ignore files honoured."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from torchlint.documents import is_document
from torchlint.options import Options, Pattern
from torchlint.source import SourceError, exists, is_file, is_folder, read_text

# Most runs outside of repositories need it for no pattern.
if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".ignore")
_WINDOWS = os.name == "nt"
# IO_REPARSE_TAG_MOUNT_POINT, which the module `stat` has on Windows only.
_MOUNT_POINT = 0xA0000003
_DRIVE = re.compile("[A-Za-z]:")
_LARGEST_IGNORE_FILE = 1_000_000


@dataclass(frozen=True)
class Discovery:
    """The files found, sorted and absolute, and what could not be looked at, in words."""

    files: tuple[Path, ...]
    warnings: tuple[str, ...] = ()


def absolute(path: Path) -> Path:
    """Return ``path`` from the root and without ``..``; links are kept, unlike with `Path.resolve`."""
    return Path(os.path.normpath(path.absolute()))


def repository(directory: Path) -> Path | None:
    """Return the root of the git repository that ``directory`` lies in, None outside of any."""
    return next((up for up in (directory, *directory.parents) if exists(up / ".git")), None)


def matches(pattern: Pattern, path: PurePath, *, directory: bool = False) -> bool:
    """Return whether ``path``, or a directory above it and below the pattern's root, matches.

    Both paths are absolute. ``!`` in front of a pattern turns the answer round. A path outside the root
    matches by its name alone.
    """
    text, negated = (pattern.text[1:], True) if pattern.text.startswith("!") else (pattern.text, False)
    spec = _spec((text,), pattern.root.as_posix())
    return bool(spec.match_file(_relative(path, pattern.root, directory))) is not negated


def _relative(path: PurePath, root: PurePath, directory: bool) -> str:
    text, base = path.as_posix(), root.as_posix()
    base = base if base.endswith("/") else base + "/"
    if text.startswith(base):
        inside = text[len(base) :]
    elif path.is_relative_to(root):
        # Windows does not tell `c:\\src` from `C:\\Src`.
        inside = path.relative_to(root).as_posix()
    else:
        inside = path.name
    return _composed(inside) + ("/" if directory else "")


def _composed(text: str) -> str:
    """Return ``text`` with accents and letters as one character:
    macOS has file names in which they are two.
    """
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFC", text)


class _Names:
    """Patterns of which each is a name or ``*.ending``, as most are: they take no search to match."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._names = {text for text in texts if not text.startswith("*")}
        self._endings = tuple(text[1:] for text in texts if text.startswith("*"))

    def match_file(self, path: str) -> bool:
        """Return whether a part of the path matches; as in git, a directory stands for what is in it."""
        parts = path.split("/")
        return not self._names.isdisjoint(parts) or any(part.endswith(self._endings) for part in parts)


_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*|\*\.[A-Za-z0-9_.-]+")


# As many as the largest config has, or each would be made anew for each file.
@lru_cache(maxsize=16_384)
def _spec(texts: tuple[str, ...], root: str) -> GitIgnoreSpec | _Names:
    if all(map(_NAME.fullmatch, texts)):
        return _Names(texts)
    from torchlint import globs

    base = root.rstrip("/") + "/"
    lines = []
    for text in texts:
        bang, body = ("!", text[1:]) if text.startswith("!") else ("", text)
        if body.startswith("./"):
            body = body[1:]
        elif body.startswith(base) or (_DRIVE.match(base) and body.lower().startswith(base.lower())):
            body = "/" + body[len(base) :]
        # In a config file a leading `#` is part of the name, not a comment.
        lines.append(_composed(bang + ("\\" + body if body.startswith("#") else body)))
    return globs.spec(lines)


class _Filter:
    """Patterns of one or more roots, in order: the last that matches decides, as in .gitignore."""

    def __init__(self, patterns: Iterable[Pattern], default_root: Path) -> None:
        grouped: dict[Path, list[str]] = {}
        for pattern in patterns:
            root = pattern.root if pattern.root.is_absolute() else default_root
            grouped.setdefault(root, []).append(pattern.text)
        self._specs = [(root, _spec(tuple(texts), root.as_posix())) for root, texts in grouped.items()]

    def matches(self, path: Path, directory: bool) -> bool:
        """Return whether any group of patterns takes ``path`` in."""
        return any(spec.match_file(_relative(path, root, directory)) for root, spec in self._specs)

    def without(self, path: Path) -> _Filter:
        """Return the groups that leave the directory ``path`` alone: naming it overrules the others."""
        kept = _Filter((), path)
        kept._specs = [
            (root, spec) for root, spec in self._specs if not spec.match_file(_relative(path, root, True))
        ]
        return kept


class _Ignored:
    """The ignore files that hold for a directory, outermost first; the innermost that speaks decides."""

    def __init__(
        self, specs: tuple[tuple[Path, GitIgnoreSpec], ...] = (), warnings: list[str] | None = None
    ) -> None:
        self._specs = specs
        self._warnings = [] if warnings is None else warnings

    def below(self, directory: Path) -> _Ignored:
        """Return these with the ignore files that lie in ``directory`` itself."""
        own = tuple(
            (directory, spec)
            for spec in (_ignore_file(directory / name, self._warnings) for name in IGNORE_FILES)
            if spec is not None
        )
        return _Ignored((*self._specs, *own), self._warnings) if own else self

    def matches(self, path: Path, directory: bool) -> bool:
        """Return whether ``path`` is ignored."""
        for root, spec in reversed(self._specs):
            verdict = spec.check_file(_relative(path, root, directory)).include
            if verdict is not None:
                return verdict
        return False

    @classmethod
    def above(cls, directory: Path, warnings: list[str]) -> _Ignored:
        """Return what holds for ``directory`` from outside: its repository's ignore files,
        and the user's own.

        A directory that is itself ignored and yet named starts afresh: naming it overrules. What is not
        heeded is told in ``warnings``.
        """
        top = repository(directory)
        if top is None:
            return cls((), warnings)
        specs: list[tuple[Path, GitIgnoreSpec]] = []
        for path in (_global_ignore_file(), top / ".git" / "info" / "exclude"):
            spec = _ignore_file(path, warnings)
            if spec is not None:
                specs.append((top, spec))
        ignored = cls(tuple(specs), warnings)
        between = [up for up in reversed(directory.parents) if up == top or top in up.parents]
        for up in between:
            ignored = ignored.below(up)
        if directory != top and ignored.matches(directory, True):
            return cls((), warnings)
        return ignored


def _global_ignore_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path("~/.config").expanduser()) / "git" / "ignore"


def _ignore_file(path: Path, warnings: list[str]) -> GitIgnoreSpec | None:
    """Return what an ignore file matches;
    None if there is none. Why one is not heeded is added to ``warnings``.
    """
    try:
        lines = _composed(read_text(path, _LARGEST_IGNORE_FILE)).split("\n")
    except SourceError as error:
        if is_file(path):
            warnings.append(f"{path} is ignored: {error.reason.removeprefix('cannot read the file: ')}")
        return None
    from torchlint import globs

    if len(lines) > globs.MOST_PATTERNS:
        many = f"it has {len(lines)} lines; the limit is {globs.MOST_PATTERNS}"
        warnings.append(f"{path} is ignored: {many}")
        return None
    return globs.spec(lines)


def discover(
    paths: Sequence[Path],
    options_for: Callable[[Path], Options],
    *,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
    root: Path | None = None,
) -> Discovery:
    """Return the files to check among ``paths``: files as named, directories searched.

    ``options_for`` gives the options of the files in a directory. A path that does not exist is kept, for
    the run to report; a broken link that a search comes upon is a warning, and so is a file that is named
    without looking like Python. Directory links are not followed. Excluded files that are named are kept
    unless ``force_exclude``; of theirs, ``root``, the working directory without it, is where usual excludes
    begin.
    """
    found: set[Path] = set()
    warnings: list[str] = []
    for path in paths:
        path = absolute(path)
        if is_folder(path):
            if not (
                force_exclude and is_excluded(path, True, options_for, respect_gitignore, root, warnings)
            ):
                found.update(_search(path, options_for, respect_gitignore, force_exclude, warnings))
        elif not (force_exclude and is_excluded(path, False, options_for, respect_gitignore, root, warnings)):
            found.add(path)
            if path.suffix and is_file(path) and not _is_code(path, options_for(path.parent)):
                warnings.append(f"{path} is checked as Python, although its name ends in {path.suffix}")
    return Discovery(tuple(_distinct(sorted(found))), tuple(dict.fromkeys(warnings)))


def _is_code(path: Path, chosen: Options) -> bool:
    """Return whether a file is what is checked, by its name."""
    return (
        path.suffix in (".py", ".pyw", ".pyi", ".ipynb")
        or is_document(path)
        or any(matches(pattern, path) for pattern in chosen.included)
    )


class TooManyError(Exception):
    """There are more folders below one than are to be searched."""


def files_below(
    root: Path,
    options_for: Callable[[Path], Options],
    *,
    respect_gitignore: bool = True,
    most: int,
    documents: set[Path] | None = None,
) -> tuple[Path, ...]:
    """Return the files that a search of the folder ``root`` finds, sorted;
    nothing is said of what it cannot read.

    The YAML and JSON files that it comes across are added to ``documents``.

    Raises:
        TooManyError: there are more than ``most`` folders to search.
    """
    found = _search(root, options_for, respect_gitignore, False, [], most, documents)
    return tuple(_distinct(sorted(found, key=str)))


def _distinct(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield ``paths`` without those that only spell another one differently, as macOS and Windows allow."""
    spelled: dict[str, list[Path]] = {}
    for path in paths:
        others = spelled.setdefault(_composed(str(path)).casefold(), [])
        if not any(_same_entry(path, other) for other in others):
            others.append(path)
            yield path


def _same_entry(path: Path, other: Path) -> bool:
    """Return whether two names, alike but for their case, are one: a file that has a single name has both."""
    try:
        found = path.lstat()
        return found.st_nlink == 1 and os.path.samestat(found, other.lstat())
    except OSError:
        return False


def is_excluded(
    path: Path,
    directory: bool,
    options_for: Callable[[Path], Options],
    respect_gitignore: bool,
    root: Path | None,
    warnings: list[str],
) -> bool:
    """Return whether a path that was named would have been left out of a search."""
    chosen = options_for(path if directory else path.parent)
    filters = _Filter((*chosen.exclude, *chosen.extend_exclude), root or Path.cwd())
    if filters.matches(path, directory):
        return True
    if not respect_gitignore:
        return False
    parents = path.parents
    top = repository(path.parent)
    if top is None:
        return False
    ignored = _Ignored.above(top, warnings)
    for up in reversed(parents[: list(parents).index(top) + 1]):
        ignored = ignored.below(up)
    return ignored.matches(path, directory)


def _search(
    top: Path,
    options_for: Callable[[Path], Options],
    respect_gitignore: bool,
    force_exclude: bool,
    warnings: list[str],
    most: int | None = None,
    documents: set[Path] | None = None,
) -> Iterator[Path]:
    filters: dict[Options, tuple[_Filter, _Filter]] = {}

    def filters_of(chosen: Options) -> tuple[_Filter, _Filter]:
        made = filters.get(chosen)
        if made is None:
            excludes = _Filter((*chosen.exclude, *chosen.extend_exclude), top)
            includes = _Filter(chosen.included, top)
            made = filters[chosen] = (excludes if force_exclude else excludes.without(top), includes)
        return made

    stack = [(top, _Ignored.above(top, warnings) if respect_gitignore else _Ignored())]
    searched = 0
    while stack:
        directory, ignored = stack.pop()
        searched += 1
        if most is not None and searched > most:
            raise TooManyError
        if respect_gitignore:
            ignored = ignored.below(directory)
        excludes, includes = filters_of(options_for(directory))
        try:
            with os.scandir(directory) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            warnings.append(f"cannot read the directory {directory}: {error.strerror}")
            continue
        for entry in listing:
            path = Path(entry.path)
            is_directory = entry.is_dir(follow_symlinks=False) and not _is_junction(entry)
            if documents is not None and not is_directory and is_document(path):
                documents.add(path)
            if not is_directory and not includes.matches(path, False):
                continue
            if excludes.matches(path, is_directory) or ignored.matches(path, is_directory):
                continue
            if is_directory:
                stack.append((path, ignored))
            elif _is_broken(entry):
                # Nobody named it, and there is nothing to check: an editor's lock (``.#name``) is no news.
                if not entry.name.startswith(".#"):
                    warnings.append(f"{path} is a broken symbolic link, and was not checked")
            elif _is_program(entry):
                yield path


def _is_junction(entry: os.DirEntry[str]) -> bool:
    """Return whether a directory is a link as only Windows has them; it may lead in a circle."""
    return _WINDOWS and getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == _MOUNT_POINT


def _is_broken(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a link that leads nowhere, or in a circle."""
    if not entry.is_symlink():
        return False
    try:
        entry.stat()
    except OSError as error:
        return error.errno != errno.EACCES
    return False


def _is_program(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a regular file, or a link to one; also if it cannot be looked at."""
    try:
        return stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return True
