"""What a change touches, as git tells it: the changed lines of every file of a repository.

Git is only asked. It gets no pager, no external diff, text conversion or filter and no file system monitor to
start, fetches nothing, takes no optional locks, and sees nothing that a user wrote where it would look for
options.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

Rows = tuple[tuple[int, int], ...]
"""Ranges of lines, first and last, counted from 1 as git does: a line ends at a line feed."""

_GIT = (
    "git",
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.quotepath=off"),
    *("-c", "core.fsmonitor="),
    *("-c", "diff.relative=false"),
)
_DIFF = (
    "diff",
    *("--raw", "--numstat", "--patch", "-z"),
    *("--unified=0", "--inter-hunk-context=0", "--find-renames", "--no-abbrev", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-O/dev/null"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
# The variable would overrule the flag, and add lines around the changed ones.
_UNSET = ("GIT_DIFF_OPTS",)
# A clone without all objects fetches them when they are needed, by the programs that its config names.
_FETCHING_NOTHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}
# Programs that git hands the contents of files to, where an attribute of the file names them.
_FILTERS = r"^filter\..*\.(clean|smudge|process|required)$"
# The settings that came with the repository; a filter of the user's own is as good as git.
_OF_THE_REPOSITORY = (b"local", b"worktree")
_PATIENCE = 120
"""Seconds that git may take for an answer."""
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class ChangesError(Exception):
    """Git cannot say what changed; the message is for people."""


@dataclass(frozen=True)
class Changed:
    """What a change does to one file: the ``rows`` it touches, None if that is all of them.

    ``content`` is what is staged of a file that is something else in the working tree.
    """

    rows: Rows | None = None
    content: bytes | None = None


@dataclass(frozen=True)
class Changes:
    """The changed files of the repository whose working tree is at ``top``, by path without links.

    ``missing`` are files that are staged and not in the working tree.
    """

    top: Path
    files: Mapping[Path, Changed]
    missing: tuple[Path, ...] = ()
    _folders: dict[Path, Path] = field(default_factory=dict, compare=False, repr=False)

    def of(self, path: Path) -> Changed | None:
        """Return what the change does to the file at ``path``; None if nothing."""
        return self.files.get(self._real(path))

    def covers(self, path: Path) -> bool:
        """Return whether ``path`` lies in the working tree, so that git can tell of it."""
        return self._real(path).is_relative_to(self.top)

    def _real(self, path: Path) -> Path:
        folder = self._folders.get(path.parent)
        if folder is None:
            folder = self._folders[path.parent] = Path(os.path.realpath(path.parent))
        real = folder / path.name
        return Path(os.path.realpath(real)) if os.path.islink(real) else real  # noqa: PTH114 (pathlib may raise)


def since(ref: str, directory: Path) -> Changes:
    """Return what differs between the working tree around ``directory`` and where HEAD branched off ``ref``.

    What is not committed counts, and so does what git does not track and does not ignore.

    Raises:
        ChangesError: there is no repository, no such commit, or no common ancestor in what was cloned.
    """
    repository = _Repository.around(directory)
    base = repository.merge_base(ref)
    files = {}
    for path, record in repository.diff(base).items():
        # Nothing is said of lines that are added by a pure rename or a change of the mode.
        files[path] = Changed(record.rows)
    for path in repository.untracked():
        files[path] = Changed()
    return Changes(repository.top, files)


def staged(directory: Path) -> Changes:
    """Return what is staged in the repository around ``directory``, against its HEAD.

    Raises:
        ChangesError: there is no repository, or git fails.
    """
    repository = _Repository.around(directory)
    records = repository.diff("--cached")
    unstaged = repository.differing() & records.keys()
    contents = repository.contents({records[path].blob for path in unstaged})
    files = {
        path: Changed(record.rows, contents.get(record.blob) if path in unstaged else None)
        for path, record in records.items()
    }
    missing = tuple(path for path in sorted(unstaged) if not os.path.lexists(path))
    return Changes(repository.top, files, missing)


@dataclass(frozen=True)
class _Record:
    """One changed file: its object in the newer tree, zeros if it is not in the object store."""

    blob: str
    rows: Rows | None = ()


@dataclass(frozen=True)
class _Repository:
    top: Path

    @classmethod
    def around(cls, directory: Path) -> _Repository:
        """Return the repository whose working tree ``directory`` is in."""
        try:
            told = _git(directory, "rev-parse", "--show-toplevel")
        except _GitError as error:
            raise ChangesError(f"{directory} is not in a git working tree: {error}") from None
        return cls(Path(os.path.realpath(os.fsdecode(told.removesuffix(b"\n").removesuffix(b"\r")))))

    def merge_base(self, ref: str) -> str:
        """Return the commit at which HEAD branched off ``ref``."""
        commit = self._commit(ref)
        try:
            return _git(self.top, "merge-base", commit, "HEAD").split()[0].decode()
        except _GitError as error:
            if error.status != 1:
                raise ChangesError(f"git cannot compare `{ref}` with HEAD: {error}") from None
        told = f"`{ref}` and HEAD have no common ancestor"
        if self._shallow:
            told += (
                " in this shallow clone; fetch more history, with `git fetch --deepen=100` or "
                "`git fetch --unshallow` (actions/checkout: `fetch-depth: 0`; GitLab: `GIT_DEPTH: 0`)"
            )
        raise ChangesError(told)

    def _commit(self, ref: str) -> str:
        try:
            # The suffix peels tags; a ref that looks like an option is none behind this one.
            told = _git(self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except _GitError as error:
            hint = ""
            if self._shallow or "/" in ref:
                hint = "; fetch remote branches first with `git fetch`"
            said = f" ({error})" if str(error) else ""
            raise ChangesError(f"`{ref}` is not a commit of {self.top}{said}{hint}") from None
        return told.split()[0].decode()

    @cached_property
    def _shallow(self) -> bool:
        return self._ask("rev-parse", "--is-shallow-repository").strip() == b"true"

    def untracked(self) -> Iterator[Path]:
        """Return the files that git neither tracks nor ignores; those of nested repositories left out."""
        told = self._ask("ls-files", "--others", "--exclude-standard", "-z")
        return (self._path(name) for name in told.split(b"\0") if name and not name.endswith(b"/"))

    def differing(self) -> set[Path]:
        """Return the files that are not in the working tree as they are staged."""
        told = self._ask(
            "diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all", "-O/dev/null"
        )
        return {self._path(name) for name in told.split(b"\0") if name}

    def diff(self, against: str) -> dict[Path, _Record]:
        """Return the files of the working tree, or with ``--cached`` of the index, that differ;
        not those gone.
        """
        told = self._ask(*_DIFF, against, "--")
        listed, patch = _split(told)
        rows = dict(_rows(patch))
        found = {}
        for name, (status, blob) in listed.records.items():
            if status == "D":
                continue
            # What cannot be compared line by line is new as a whole.
            whole = name in listed.binary or status in "UT"
            found[self._path(name)] = _Record(blob, None if whole else rows.get(name, ()))
        return found

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return the objects of these names."""
        wanted = sorted(blob for blob in blobs if blob.strip("0"))
        if not wanted:
            return {}
        told = self._ask("cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        found, at = {}, 0
        for blob in wanted:
            end = told.index(b"\n", at)
            header = told[at:end].split()
            if len(header) != 3:
                raise ChangesError(f"git object {blob} is missing")
            start, size = end + 1, int(header[2])
            found[blob] = told[start : start + size]
            at = start + size + 1
        return found

    def _path(self, name: bytes) -> Path:
        return self.top / os.fsdecode(name)

    @cached_property
    def _unfiltered(self) -> Mapping[str, str]:
        """The variables that take the repository's filters from git."""
        try:
            told = _git(self.top, "config", "--show-scope", "-z", "--get-regexp", _FILTERS)
        except _GitError:
            # There are none, or this git is too old to say whose they are.
            told = b""
        scopes, settings = told.split(b"\0")[::2], told.split(b"\0")[1::2]
        names = [
            os.fsdecode(setting.partition(b"\n")[0])
            for scope, setting in zip(scopes, settings, strict=False)
            if scope in _OF_THE_REPOSITORY
        ]
        count = os.environ.get("GIT_CONFIG_COUNT", "")
        first = int(count) if count.isdecimal() else 0
        numbered = enumerate(sorted(set(names)), first)
        variables = {}
        for number, name in numbered:
            variables[f"GIT_CONFIG_KEY_{number}"] = name
            variables[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
        return {**variables, "GIT_CONFIG_COUNT": str(first + len(set(names)))}

    def _ask(self, *arguments: str, given: bytes = b"") -> bytes:
        try:
            return _git(self.top, *arguments, given=given, variables=self._unfiltered)
        except _GitError as error:
            told = f"`git {arguments[0]}` failed: {error}"
            if self._partial:
                told += "; torchlint does not fetch objects: run `git fetch --refetch --no-filter`"
            raise ChangesError(told) from None

    @property
    def _partial(self) -> bool:
        """Whether the clone was made without some of its objects."""
        try:
            return bool(_git(self.top, "config", "--get-regexp", r"^remote\..*\.promisor$"))
        except _GitError:
            return False


# --- running git ---------------------------------------------------------------------------------------


class _GitError(Exception):
    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _git(
    directory: Path, *arguments: str, given: bytes = b"", variables: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Return what git prints."""
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    try:
        ended = subprocess.run(
            [*_GIT, *arguments],
            cwd=directory,
            env={**kept, **_FETCHING_NOTHING, **variables},
            input=given,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ChangesError(f"`git {arguments[0]}` did not finish within {_PATIENCE} seconds") from None
    except FileNotFoundError:
        raise ChangesError("`git` was not found") from None
    except (OSError, ValueError) as error:
        raise ChangesError(f"`git` cannot be run: {error}") from error
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise _GitError(said, ended.returncode)
    return ended.stdout


# --- reading a diff ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """Status letter and new object by name, and the names of files that are no text to git."""

    records: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    binary: set[bytes] = field(default_factory=set)


def _split(told: bytes) -> tuple[_Listed, bytes]:
    """Return the lists in front of a patch, whose fields end with NULs, and the patch;
    an empty field parts them.
    """
    listed, at = _Listed(), 0

    def take() -> bytes:
        nonlocal at
        end = told.find(b"\0", at)
        end = len(told) if end < 0 else end
        taken, at = told[at:end], end + 1
        return taken

    while at < len(told):
        head = take()
        if not head:
            break
        if head.startswith(b":"):
            *_, blob, status = head[1:].split(b" ")
            name = take()
            if status[:1] in b"RC":
                name = take()
            listed.records[name] = (status[:1].decode(), blob.decode())
        else:
            added, _, name = head.split(b"\t", 2)
            if not name:
                take()
                name = take()
            if added == b"-":
                listed.binary.add(name)
    return listed, told[at:]


def _rows(patch: bytes) -> Iterator[tuple[bytes, Rows]]:
    """Yield the lines that each file of a patch without context adds."""
    lines = iter(patch.split(b"\n"))
    name: bytes | None = None
    found: list[tuple[int, int]] = []
    for line in lines:
        if line.startswith(b"diff --git "):
            if name is not None:
                yield name, tuple(found)
            name, found = None, []
        elif line.startswith(b"+++ ") and name is None:
            name = _name(line[4:])
        elif hunk := _HUNK.match(line):
            removed, start, added = (1 if part is None else int(part) for part in hunk.groups())
            if added:
                found.append((start, start + added - 1))
            # What the lines say is not for this loop to read: it may look like a header.
            for _ in range(removed + added):
                next(lines, None)
    if name is not None:
        yield name, tuple(found)


def _name(shown: bytes) -> bytes:
    """Return the name in a ``+++`` line: git ends one that has spaces with a tab,
    and quotes odd ones as C does.
    """
    shown = shown.removesuffix(b"\t")
    if shown.startswith(b'"'):
        shown = _QUOTED.sub(_unquoted, shown[1:-1])
    return shown.removeprefix(b"b/")


def _unquoted(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPES.get(code, code)
