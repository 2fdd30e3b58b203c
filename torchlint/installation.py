"""What is installed here: rule packs, and the code that checks, so that results of other code are told apart.

Both are found anew only if something was changed: a folder where distributions are installed, or the size or
time of a file of code, as the interpreter judges its own byte code.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PACKAGE = "torchlint"
# Bench cases are programs to be measured; no run of the linter imports them.
_NO_CODE = frozenset({"__pycache__", "cases"})


@dataclass(frozen=True)
class Pack:
    """An installed rule pack: its entry point's name and module, and ``NAME VERSION`` of what holds it."""

    name: str
    module: str
    distribution: str

    def __str__(self) -> str:
        return f"`{self.name}` ({self.distribution or self.module})"


def packs(group: str) -> tuple[Pack, ...]:
    """Return the rule packs that are installed, by name."""
    from importlib.metadata import entry_points

    found = []
    for entry in entry_points(group=group):
        distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
        found.append(Pack(entry.name, entry.module, distribution))
    return tuple(sorted(found, key=lambda pack: (pack.name, pack.module)))


recalled: dict[str, str | None] = {}
"""Versions that need not be looked for, since an earlier run did and nothing was installed meanwhile."""


def versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of distributions by their names,
    None for one that is not installed or says none.
    """
    wanted = tuple(distributions)
    if recalled.keys() >= set(wanted):
        return {name: recalled[name] for name in wanted}
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in wanted:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


recalled_urls: list[dict[str, str]] = []
"""The project's addresses, if an earlier run looked for them and nothing was installed meanwhile."""


def urls() -> dict[str, str]:
    """Return the project's addresses by their names in lower case, as the installed metadata has them."""
    if recalled_urls:
        return recalled_urls[-1]
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        entries = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a checkout that is not installed
        return {}
    pairs = (str(entry).partition(",") for entry in entries)
    return {name.strip().lower(): url.strip() for name, _, url in pairs}


def install_command(extra: str) -> str:
    """Return the command that installs what an extra requires.

    It names the requirements and not the extra: on an index, torchlint's name may belong to somebody else.

    Raises:
        ValueError: the installed torchlint has no such extra.
    """
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    try:
        declared = requires(PACKAGE) or ()
    except PackageNotFoundError:  # run from a checkout that is not installed
        return f"pip install '.[{extra}]'"
    wanted = []
    for requirement in map(Requirement, declared):
        marker = requirement.marker
        if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            requirement.marker = None
            wanted.append(shlex.quote(str(requirement)))
    if not wanted:
        raise ValueError(f"torchlint has no extra {extra}")
    return f"pip install {' '.join(wanted)}"


def places() -> str:
    """Return a digest of the folders that distributions are installed in;
    it changes when one comes or goes.
    """
    states: list[object] = [sys.version, sys.path]
    for place in sys.path:
        try:
            states.append(Path(place).stat().st_mtime_ns)
            with os.scandir(place or ".") as entries:
                # What stands in a checkout is rewritten in place, which its folder does not show.
                metadata = sorted(entry.path for entry in entries if entry.name.endswith(".egg-info"))
        except OSError:
            continue
        states += [_state(Path(path) / "entry_points.txt") for path in metadata]
    return _digest(states)


@dataclass(frozen=True)
class Code:
    """Every file of the code that checks: torchlint, the rules, the packs; of LibCST its version."""

    files: tuple[tuple[str, Path], ...]

    @classmethod
    def of(cls, modules: Iterable[str]) -> Code:
        """Return the code of torchlint and of the packages that hold these modules."""
        roots = [PACKAGE, f"{PACKAGE}.rules", *(name.partition(".")[0] for name in modules)]
        files = {(f"{root}/{name}", path) for root in roots for name, path in _files(root)}
        for name, version in (("libcst", "_version.py"), ("yaml", "__init__.py")):
            parser = importlib.util.find_spec(name)
            if parser is not None and parser.origin is not None:
                files.add((name, Path(parser.origin).with_name(version)))
        return cls(tuple(sorted(files)))

    @property
    def state(self) -> str:
        """A digest of the places, sizes and times of the files."""
        return _digest([(str(path), _state(path)) for _, path in self.files])

    @property
    def digest(self) -> str:
        """A digest of what the files hold, wherever they are.

        Raises:
            OSError: one cannot be read.
        """
        return _digest([(name, sha256(path.read_bytes()).hexdigest()) for name, path in self.files])


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package, with their names in it; the file of a module."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin is not None and spec.has_location:
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        yield from _below(folder, "")


def _below(folder: str, prefix: str) -> Iterator[tuple[str, Path]]:
    try:
        with os.scandir(folder) as entries:
            listing = list(entries)
    except OSError:
        return
    for entry in listing:
        if entry.is_dir():
            if entry.name not in _NO_CODE:
                yield from _below(entry.path, f"{prefix}{entry.name}/")
        elif not entry.name.endswith((".pyc", ".tmp")):
            yield prefix + entry.name, Path(entry.path)


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _digest(values: Iterable[object]) -> str:
    return sha256(repr(list(values)).encode("utf-8", "surrogateescape")).hexdigest()
