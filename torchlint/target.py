"""The range of releases of PyTorch and its frameworks that may run a program, and where a project says so.

A rule or a fix that depends on the PyTorch version asks the target. It is found, in this order, from the
``--target-torch`` flag, the ``target-torch`` key, the lowest release that the project's own declarations
admit, the torch installed beside torchlint, and else it is unknown: any release from 1.7 on. The targets of
other libraries are found in the same way, but for the flag and the key.

Nothing here imports a library: an installed release is read from its metadata.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from torchlint import installation
from torchlint.releases import RELEASES
from torchlint.source import SourceError, exists, is_file, is_folder, read_text

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

OLDEST = "1.7"
"""The oldest release that an unknown target stands for."""

TORCH = "torch"
LIBRARIES = ("accelerate", "torchaudio", "torchvision", "transformers")
"""The libraries beside torch that have a target."""

# A local part ("+cu118") pins a build; the question here is the release.
_LOCAL = re.compile(r"\+[\w.]+")
_ALIASES = {TORCH: frozenset({"torch", "pytorch", "pytorch-cpu", "pytorch-gpu"})}


@dataclass(frozen=True)
class Target:
    """The releases of a library that may run a program: from ``lower`` to ``upper``, both included.

    None on a side means that nothing is known there. ``origin`` says in words where the range comes from;
    it takes no part in comparisons.
    """

    lower: Version | None
    upper: Version | None
    origin: str = field(default="unknown", compare=False)

    @classmethod
    def unknown(cls, origin: str = "unknown") -> Target:
        """Return any release, of torch any from 1.7 on."""
        return cls(None, None, origin)

    @classmethod
    def parse(cls, text: str, origin: str = "given", package: str = TORCH) -> Target:
        """Read ``2.1`` ("2.1 or newer"), a specifier such as ``>=2.1,<2.5``, or ``unknown``.

        Raises:
            ValueError: the text is none of these; the message says what is expected.
        """
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        text = text.strip()
        if text == "unknown":
            return cls.unknown(origin)
        try:
            version = _final(Version(text))
        except InvalidVersion:
            pass
        else:
            _check_exists(version, text, package)
            return cls(version, None, origin)
        try:
            specifiers = SpecifierSet(text)
        except InvalidSpecifier:
            specifiers = SpecifierSet()
        if not len(specifiers):
            raise ValueError(
                f"`{text}` is not a PyTorch version; expected one such as `2.1`, a range such as "
                "`>=2.1,<2.6`, or `unknown`"
            )
        return cls(_lowest(specifiers, package), _highest(specifiers, package), origin)

    def admits_below(self, version: str) -> bool:
        """Return whether a release older than ``version`` could run the program;
        True where nothing is known.
        """
        return self.lower is None or self.lower < _version(version)

    def promises_below(self, version: str) -> bool:
        """Return whether the program is known to run with releases older than ``version``."""
        return self.lower is not None and self.lower < _version(version)

    def at_least(self, version: str) -> bool:
        """Return whether every release that may run the program is provably ``version`` or newer."""
        return self.lower is not None and self.lower >= _version(version)

    def admits(self, version: str) -> bool:
        """Return whether ``version`` or a newer release could run the program;
        True where nothing is known.
        """
        return self.upper is None or self.upper >= _version(version)

    def __str__(self) -> str:
        if self.lower is None and self.upper is None:
            return "unknown"
        if self.lower == self.upper:
            return f"=={self.lower}"
        bounds = (f">={self.lower}" if self.lower else "", f"<={self.upper}" if self.upper else "")
        return ",".join(bound for bound in bounds if bound)


def beside(torch: Target, package: str) -> Target:
    """Return the releases of torchvision or torchaudio that the releases of torch imply.

    Both are built for one minor release of torch each: neither an older nor a newer one can be installed
    beside it.
    """
    lower, upper = _built_for(torch.lower, package), _built_for(torch.upper, package)
    if lower is None and upper is None:
        return Target.unknown()
    # torchaudio has the same functions since 2.9, whichever it is.
    bounded = upper is not None and package == "torchvision"
    highest = Version(f"{upper}.{_LAST_PATCH}") if bounded else None
    return Target(None if lower is None else Version(lower), highest, f"torch {torch}")


_BUILT_FOR_TORCH = ("torchvision", "torchaudio")
_LAST_PATCH = 9


def _built_for(torch: Version | None, package: str) -> str | None:
    """Return the minor release of a library that is built for a release of torch; None if it is not known."""
    if torch is None or package not in _BUILT_FOR_TORCH:
        return None
    major, minor = torch.major, torch.minor
    if package == "torchaudio":
        return f"2.{minor}" if major == 2 and minor < 9 else "2.9" if major >= 2 else None
    return f"0.{minor + 15}" if major == 2 else f"0.{minor + 1}" if major == 1 and minor >= 3 else None


def _check_exists(version: Version, text: str, package: str) -> None:
    """Refuse what is a typing error: ``24`` for ``2.4``.

    Raises:
        ValueError: the next release with another first number than the newest known one is still older.
    """
    newest = Version(RELEASES[package][-1])
    if version.major > newest.major + 1:
        meant = f"{text[0]}.{text[1:]}" if re.fullmatch(r"[1-9][0-9]{1,2}", text) else ""
        hint = f"; did you mean `{meant}`?" if meant and Version(meant).major <= newest.major else ""
        raise ValueError(f"there is no {package} {text}; the newest known release is {newest}{hint}")


@lru_cache(maxsize=256)
def _version(text: str) -> Version:
    return Version(text)


def _final(version: Version) -> Version:
    """Return the release that a build belongs to: ``2.1.0+cu118`` and ``2.1.0a0`` count as ``2.1.0``."""
    return Version(version.base_version)


def _named(specifiers: SpecifierSet) -> Iterator[Version]:
    for specifier in specifiers:
        try:
            yield _final(Version(specifier.version.removesuffix(".*")))
        except InvalidVersion:
            continue


@cache
def _releases(package: str) -> tuple[Version, ...]:
    """Return the known releases of a library, oldest first."""
    return tuple(Version(text) for text in RELEASES[package])


def _admitted(specifiers: SpecifierSet, package: str) -> list[Version]:
    """Return the known releases, and those that the declaration names, which it admits; lowest first."""
    from packaging.specifiers import SpecifierSet

    plain = SpecifierSet(",".join(_LOCAL.sub("", str(specifier)) for specifier in specifiers))
    candidates = {*_releases(package), *_named(specifiers)}
    return sorted(version for version in candidates if plain.contains(version, prereleases=True))


def _lowest(specifiers: SpecifierSet, package: str) -> Version | None:
    """Return the lowest release admitted; None where the declaration sets no lower bound of its own."""
    admitted = _admitted(specifiers, package)
    if not admitted or admitted[0] <= _releases(package)[0]:
        bounded = any(specifier.operator in ("==", ">=", ">", "~=", "===") for specifier in specifiers)
        return admitted[0] if admitted and bounded else None
    return admitted[0]


def _highest(specifiers: SpecifierSet, package: str) -> Version | None:
    """Return the highest release admitted; None where releases yet to come are admitted too."""
    coming = (f"{_releases(package)[-1].major}.999", "999")
    if any(specifiers.contains(Version(text), prereleases=True) for text in coming):
        return None
    admitted = _admitted(specifiers, package)
    return admitted[-1] if admitted else None


# --- declarations of a project ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Declared:
    """What the file ``name`` says about a library: the ranges it declares, whether it pins (a lock file)."""

    name: str
    ranges: tuple[Target, ...]
    lock: bool = False


def detect(path: Path, package: str = TORCH, torch: Target | None = None) -> Target:
    """Return the target of the program at ``path`` (a file or a directory) as its project declares it.

    The closest directory upwards whose files mention the library decides. A lower bound in a declaration
    counts before a pin in a lock file, since who installs the project need not use the lock; where no
    declaration sets a bound, the pin counts. The lowest admitted release of all declarations is the target's
    lower bound; the highest that is pinned, in whichever file, its upper one: with it the program is run.
    Without any declaration it is the installed one, else unknown. A library that is built for one release of
    torch is not the installed one where ``torch`` is another.

    Unreadable or malformed files declare nothing: other tools report them.
    """
    path = path.absolute()
    directory = path if is_folder(path) else path.parent
    declared = _declared(directory, package)
    if declared is None and package in _BUILT_FOR_TORCH and torch not in (None, installed(TORCH)):
        return Target.unknown("no declaration found")
    return declared or installed(package)


def forget() -> None:
    """Look at the files of projects again when next asked: they may have changed."""
    _declared.cache_clear()
    _files.cache_clear()
    installed.cache_clear()


@lru_cache(maxsize=4096)
def _declared(directory: Path, package: str) -> Target | None:
    found = tuple(declared for declared in _declarations(directory, package) if declared.ranges)
    if found:
        return _combine(found, package)
    if exists(directory / ".git") or directory.parent == directory:
        return None
    return _declared(directory.parent, package)


def _combine(found: tuple[_Declared, ...], package: str) -> Target:
    declared = _declared_range(found, package)
    pins = [target.upper for each in found for target in each.ranges if target.lower == target.upper]
    pinned = max((pin for pin in pins if pin is not None), default=None)
    if pinned is None or (declared.lower is not None and pinned < declared.lower):
        return declared
    upper = pinned if declared.upper is None else min(pinned, declared.upper)
    return Target(declared.lower, upper, declared.origin)


def _declared_range(found: tuple[_Declared, ...], package: str) -> Target:
    for lock in (False, True):
        bounded = [
            (declared, target)
            for declared in found
            if declared.lock is lock
            for target in declared.ranges
            if target.lower is not None
        ]
        if bounded:
            uppers = [target.upper for _, target in bounded]
            declared, lowest = min(bounded, key=lambda item: item[1].lower or _releases(package)[0])
            upper = None if None in uppers else max(upper for upper in uppers if upper is not None)
            return Target(lowest.lower, upper, declared.name)
    uppers = [target.upper for declared in found for target in declared.ranges]
    upper = None if None in uppers else max(upper for upper in uppers if upper is not None)
    return Target(None, upper, f"{found[0].name}, without a lower bound")


@cache
def installed(package: str = TORCH) -> Target:
    """Return the release that is installed beside torchlint, read from its metadata;
    unknown if there is none.
    """
    try:
        release = _final(Version(installation.versions((package,))[package] or ""))
    except InvalidVersion:
        return Target.unknown(f"no declaration found, {package} not installed")
    return Target(release, release, f"installed {package}")


def _declarations(directory: Path, package: str) -> Iterator[_Declared]:
    for name, text in _files(directory):
        if package in text:
            ranges, lock = _ranges_in(name, text, package)
            yield _Declared(str(directory / name), tuple(islice(ranges, _MOST_RANGES)), lock)


def _ranges_in(name: str, text: str, package: str) -> tuple[Iterable[Target], bool]:
    """Return the ranges that a file declares, and whether it is a lock file."""
    if _is_lock(name):
        return _from_lock(text, package), True
    if name == "pyproject.toml":
        return _from_pyproject(text, package), False
    if name == "Pipfile":
        return _from_pipfile(text, package), False
    if name == "setup.cfg":
        return _from_setup_cfg(text, package), False
    if name == "setup.py":
        return _from_setup_py(text, package), False
    if name.endswith((".yml", ".yaml")):
        return _from_environment(text, package), False
    if name in ("METADATA", "PKG-INFO"):
        return _from_metadata(text, package), False
    return _from_requirements(text, package), False


def _is_lock(name: str) -> bool:
    return name.endswith((".lock", "-lock.yml")) or name.startswith("pylock.")


# What no project has, and what would keep the readers busy: beyond it nothing is declared.
_LARGEST, _LARGEST_LOCK = 1_000_000, 10_000_000
_MOST_FILES, _MOST_RANGES, _LONGEST_REQUIREMENT = 100, 500, 1_000


# The libraries are looked for one after the other in the same few directories, whose lock files may be large.
@lru_cache(maxsize=16)
def _files(directory: Path) -> tuple[tuple[str, str], ...]:
    """Return the names and texts of the files in a directory that may declare dependencies."""
    found = []
    for path in islice(_candidates(directory), _MOST_FILES):
        with contextlib.suppress(SourceError):
            most = _LARGEST_LOCK if _is_lock(path.name) else _LARGEST
            found.append((path.name, read_text(path, most)))
    return tuple(found)


FILES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "Pipfile",
    "environment.yml",
    "environment.yaml",
    "conda.yml",
    "conda.yaml",
    "cog.yaml",
    "PKG-INFO",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "Pipfile.lock",
    "conda-lock.yml",
)
"""The files that may declare dependencies, besides those of ``PATTERNS``."""

PATTERNS = (
    "requirements*.txt",
    "requirements*.in",
    "requirements/*.txt",
    "requirements/*.in",
    "constraints*.txt",
)
"""Globs of requirements files, relative to a directory of the project."""
_UNPACKED = "*.dist-info/METADATA"
"""What an unpacked wheel has; a directory with several of them is an environment, and no project."""


def _candidates(directory: Path) -> Iterator[Path]:
    for name in FILES:
        path = directory / name
        if is_file(path):
            yield path
    try:
        for pattern in PATTERNS:
            yield from sorted(path for path in directory.glob(pattern) if is_file(path))
        unpacked = list(islice(directory.glob(_UNPACKED), 2))
        if len(unpacked) == 1:
            yield unpacked[0]
    except OSError:
        return


def _of_requirement(text: str, package: str) -> Iterator[Target]:
    """Yield the range of one PEP 508 requirement, if it is the library's."""
    from packaging.requirements import InvalidRequirement, Requirement

    if package not in text.lower() or len(text) > _LONGEST_REQUIREMENT:
        return
    try:
        requirement = Requirement(text.strip())
        if requirement.name.lower() == package:
            specifiers = requirement.specifier
            yield Target(_lowest(specifiers, package), _highest(specifiers, package))
    except (InvalidRequirement, RecursionError):
        return


def _requirements(value: object, package: str) -> Iterator[Target]:
    """Yield the ranges in a list of requirement strings; anything else in the list is passed over."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                yield from _of_requirement(item, package)


def _from_pyproject(text: str, package: str) -> Iterator[Target]:
    from torchlint import toml

    document = toml.document(text)
    project = toml.table(document, "project")
    yield from _requirements(project.get("dependencies"), package)
    for group in (
        toml.table(project, "optional-dependencies"),
        toml.table(document, "dependency-groups"),
        toml.table(document, "tool", "pdm", "dev-dependencies"),
    ):
        for requirements in group.values():
            yield from _requirements(requirements, package)
    yield from _requirements(toml.table(document, "tool", "uv").get("dev-dependencies"), package)
    poetry = toml.table(document, "tool", "poetry")
    tables = [toml.table(poetry, "dependencies"), toml.table(poetry, "dev-dependencies")]
    tables += [toml.table(group, "dependencies") for group in toml.table(poetry, "group").values()]
    tables += [toml.table(document, "tool", "pixi", key) for key in ("dependencies", "pypi-dependencies")]
    for table in tables:
        for name in _ALIASES.get(package, {package}) & table.keys():
            yield from _of_table_entry(table[name], package)


def _from_pipfile(text: str, package: str) -> Iterator[Target]:
    from torchlint import toml

    document = toml.document(text)
    for section in ("packages", "dev-packages"):
        entry = toml.table(document, section).get(package)
        if entry is not None:
            yield from _of_table_entry(entry, package)


def _of_table_entry(entry: object, package: str) -> Iterator[Target]:
    """Yield the range of ``torch = ENTRY`` as Poetry, Pixi and Pipenv write it: a string, a table, a list."""
    for item in entry if isinstance(entry, list) else [entry]:
        text = item.get("version", "*") if isinstance(item, dict) else item
        if isinstance(text, str):
            yield _of_loose_specifier(text, package)


def _of_loose_specifier(text: str, package: str) -> Target:
    """Read a constraint in the dialects of Poetry and conda: ``^2.1``, ``~2.1``, ``2.1.*``, ``=2.1``."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if len(text) > _LONGEST_REQUIREMENT:
        return Target.unknown()
    alternatives = []
    for alternative in text.split("||" if "||" in text else "|"):
        parts = []
        for part in alternative.split(","):
            part = part.strip().replace(" ", "")
            if part in ("", "*"):
                continue
            match = re.fullmatch(r"(\^|~=?|===?|!=|[<>]=?|=)?v?(\d[\w.+]*?)(\.?\*)?", part)
            if match is None:
                return Target.unknown()
            operator, version = match.group(1) or "", match.group(2).rstrip(".")
            wildcard = match.group(3) is not None
            if operator == "^":
                parts += [f">={version}", f"<{int(version.split('.')[0]) + 1}"]
            elif operator == "~":
                parts += [f">={version}", "==" + ".".join(version.split(".")[:2]) + ".*"]
            elif operator in ("=", "") or wildcard:
                exact = operator == "" and not wildcard and version.count(".") >= 2
                comparison = operator if operator == "!=" else "=="
                parts.append(f"{comparison}{version}" if exact else f"{comparison}{version}.*")
            else:
                parts.append(operator + version)
        alternatives.append(",".join(parts))
    try:
        ranges = [SpecifierSet(alternative) for alternative in alternatives]
    except InvalidSpecifier:
        return Target.unknown()
    lowers = [_lowest(specifiers, package) for specifiers in ranges]
    uppers = [_highest(specifiers, package) for specifiers in ranges]
    return Target(
        None if None in lowers else min(lower for lower in lowers if lower is not None),
        None if None in uppers else max(upper for upper in uppers if upper is not None),
    )


def _from_setup_cfg(text: str, package: str) -> Iterator[Target]:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    blocks = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        blocks += [value for _, value in parser.items("options.extras_require")]
    for block in blocks:
        yield from _from_requirements(block, package)


def _from_setup_py(text: str, package: str) -> Iterator[Target]:
    """Yield requirement strings such as ``"torch>=1.10"``;
    a bare ``"torch"`` may be any word and is not one.
    """
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(module):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and re.match(rf"\s*{package}\s*[\[(<>=~!]", value):
            yield from _of_requirement(value, package)


def _from_requirements(text: str, package: str) -> Iterator[Target]:
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.split(r"\s#|^#", line)[0]
        yield from _of_requirement(re.split(r"\s--", line)[0], package)


def _from_metadata(text: str, package: str) -> Iterator[Target]:
    """Yield the ``Requires-Dist: torch (>=1.8)`` lines in the metadata of a distribution."""
    for line in text.splitlines():
        name, _, requirement = line.partition(":")
        if name == "Requires-Dist":
            yield from _of_requirement(requirement, package)


def _from_environment(text: str, package: str) -> Iterator[Target]:
    """Yield the ``- pytorch=2.1`` and ``- torch==2.1`` items of a conda environment;
    builds are passed over.
    """
    names = "|".join(sorted(_ALIASES.get(package, {package})))
    item = re.compile(rf"^\s*-\s*[\"']?(?:[\w./-]+::)?({names})(?![\w-])([^\"'#]*)")
    for line in text.splitlines():
        match = item.match(line) if len(line) <= _LONGEST_REQUIREMENT else None
        if match is None:
            continue
        name, constraint = match.group(1), match.group(2).strip()
        of_pip = list(_of_requirement(name + constraint, package)) if name == package else []
        if of_pip or name == TORCH:
            yield from of_pip
            continue
        # ``pytorch=2.1=py3.10_cuda`` and ``pytorch 2.1.* *cuda*``: the last part is the build.
        constraint = re.sub(r"^(=?=?[\w.*]+)=[^=]+$", r"\1", constraint)
        constraint = re.sub(r"^([^\s,]+)\s+[^\s,<>=!]*\*?\w*\*?$", r"\1", constraint)
        yield _of_loose_specifier(constraint, package)


def _from_lock(text: str, package: str) -> Iterator[Target]:
    """Yield the pins of a lock file; one that resolves several platforms may hold more than one."""
    prefix = "(?:py)?" if package == TORCH else ""
    patterns = (
        rf'^name = "{package}"\r?\nversion = "([^"]+)"',
        rf'"{package}":\s*\{{[^{{}}]*"version":\s*"==([^"]+)"',
        rf"^- name: {prefix}{package}\r?\n\s+version: ['\"]?([\w.+]+)",
    )
    for pattern in patterns:
        for pin in re.findall(pattern, text, re.MULTILINE):
            try:
                release = _final(Version(pin))
            except InvalidVersion:
                continue
            yield Target(release, release)
