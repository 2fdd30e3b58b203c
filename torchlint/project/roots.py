"""Where the modules of a project lie: its root, and the folders that imports in one of its files begin from.

A file is found as the interpreter would find it when the programs of the project run, though nobody has said
how they are started: from the folder of a script, from the folder above a package, or installed.
"""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from torchlint.source import SourceError, exists, is_file, is_folder, read_text

METADATA = "pyproject.toml"
SETTINGS = (METADATA, "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "tox.ini")
"""The files at the root of a project in which its build and its tests are configured."""
_MARKERS = (METADATA, "setup.py", "setup.cfg", ".git")
_LARGEST = 1_000_000
INIT = "__init__.py"
_NOT_FAR = 6
_LONGEST_WAY = 2
"""Through how many folders without modules the imports of a program may lead."""
_MOST_MODULES = 50
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittests"})


def root_of(file: Path) -> Path:
    """Return the root of the project that a file belongs to, the first of `roots_of`."""
    return roots_of(file)[0]


def roots_of(file: Path) -> list[Path]:
    """Return the folders that may be the root of the project that a file belongs to,
    the most likely one first.

    That is the nearest folder above it with build metadata, settings or a repository; without any, the folder
    above the package that the file is in, or else its own folder, or the highest above that with modules in
    it, and in all folders between: ``train.py`` stands above ``utils/meters.py``, and above
    ``lib/utils/meters.py`` if it imports ``lib``, where that has no modules itself. So does the folder above
    modules that import one another by the name of theirs. The others follow, from
    the highest to the nearest, as modules may lie about in a folder with many projects; the last is the
    package itself, which may lie among all that are installed.
    """
    marked = next(filter(is_root, file.parents), None)
    if marked is not None:
        return [marked]
    above = above_package(file.parent)
    folders = [above]
    while (folder := _with_modules_above(folders[0])) is not None:
        folders.insert(0, above_package(folder))
    package = file.parents[len(file.parent.relative_to(above).parts) - 1]
    return folders if above == file.parent else [*folders, package]


def roots_around(folder: Path) -> list[Path]:
    """Return the folders that may be the root of the project
    that the configuration files in a folder belong to.

    Those are the ones of the nearest programs: those in the folder, or in one not far above it.
    """
    around = (folder, *folder.parents)[:_NOT_FAR]
    near = next((up for up in around if is_marked(up) or _has_modules(up)), folder)
    return roots_of(near / INIT)


def _with_modules_above(folder: Path) -> Path | None:
    """Return the folder above with modules, or one not far above that whose modules import by way of those
    without any.
    """
    if folder == folder.parent or _has_modules(folder.parent):
        return None if folder == folder.parent else folder.parent
    if _is_named_inside(folder):
        return folder.parent
    between = folder.parents[: _LONGEST_WAY + 1]
    return next((up for way, up in pairwise(between) if _imports(up, way.name)), None)


def _is_named_inside(folder: Path) -> bool:
    """Return whether modules of a folder import others of it by the name of the folder:
    ``from nets.unet import UNet`` in ``nets/train.py``, beside ``nets/unet.py``.
    """
    if not folder.name.isidentifier():
        return False
    named = re.compile(rf"^[ \t]*(?:from|import)[ \t]+{folder.name}\.(\w+)", re.MULTILINE)
    return any(
        is_file(folder / f"{name}.py") or is_folder(folder / name)
        for module in _modules_in(folder)[:_MOST_MODULES]
        for name in named.findall(_read(folder / module))
    )


def _imports(folder: Path, name: str) -> bool:
    """Return whether a module in a folder may import one by a top-level name."""
    modules = _modules_in(folder)[:_MOST_MODULES]
    return any(name in imported_names(_read(folder / module)) for module in modules)


def _has_modules(folder: Path) -> bool:
    return bool(_modules_in(folder))


def _modules_in(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".py"))  # noqa: PTH208
    except OSError:
        return []


def is_marked(folder: Path) -> bool:
    """Return whether a folder has build metadata, settings or a repository,
    and so is the root of a project.
    """
    return any(exists(folder / marker) for marker in _MARKERS)


def is_root(folder: Path) -> bool:
    """Return whether a folder is the root of a project,
    and no part of a package that has a project of its own.

    ``models/ops/setup.py`` builds an extension of the package ``models``, whose project lies above.
    """
    if not is_marked(folder):
        return False
    if exists(folder / ".git") or not (is_file(folder / INIT) or is_file(folder.parent / INIT)):
        return True
    return not any(map(is_marked, folder.parents))


def above_package(folder: Path) -> Path:
    """Return the nearest folder, this one included, that is no regular package."""
    while is_file(folder / INIT) and folder != folder.parent:
        folder = folder.parent
    return folder


def is_in_package(file: Path) -> bool:
    """Return whether a file is a module of a regular package."""
    return is_file(file.parent / INIT)


def is_test(file: Path, root: Path) -> bool:
    """Return whether a file of a project holds tests,
    as test runners go by its name and the folders around it.
    """
    name = file.stem
    if name == "conftest" or name.startswith("test_") or name.endswith("_test"):
        return True
    return not _TEST_FOLDERS.isdisjoint(file.relative_to(root).parts[:-1]) if root in file.parents else False


@dataclass(frozen=True, slots=True)
class SourceFolders:
    """The folders of a project in which top-level modules are looked up.

    ``declared`` are those that the project names: in its build metadata, or as ``src`` in its configuration.
    ``packages`` are packages that its build metadata gives another name than that of their folder, and what
    is installed editable.
    """

    root: Path
    declared: tuple[Path, ...] = ()
    packages: tuple[tuple[str, Path], ...] = ()

    def seen_from(self, file: Path, *, alone: bool = False) -> Iterator[Path]:
        """Yield the folders that imports in ``file`` begin from, nearest first, each once.

        A module of a package is imported from the folder above it. A script, a notebook and what lies beside
        them begin from their own folder, and may be run from any folder above. ``alone`` says that a file is
        no module of a package, whatever lies beside it.
        """
        begin = file.parent if alone else above_package(file.parent)
        seen: set[Path] = set()
        ways = [begin, *begin.parents] if begin.is_relative_to(self.root) else [begin]
        for folder in (*ways, self.root / "src", *self.declared):
            if folder not in seen and (folder.is_relative_to(self.root) or folder in self.declared):
                seen.add(folder)
                yield folder
        if begin not in seen:
            yield begin

    def named(self, name: str) -> Iterator[tuple[Path, str]]:
        """Yield the folders of packages that a dotted name begins with, and the rest of it, nearest first."""
        for package, folder in sorted(self.packages, reverse=True):
            if name == package or name.startswith(f"{package}."):
                yield folder, name[len(package) + 1 :]


def source_folders(
    root: Path, named: Sequence[str] = (), installed: Sequence[tuple[str, Path]] = ()
) -> SourceFolders:
    """Return the source folders of a project; ``named`` are those of its configuration, relative to the root.

    Those of its build metadata are what an editable installation puts on the path, or maps names to.
    ``installed`` are packages that an environment maps names to.
    """
    pyproject = _pyproject(root)
    placed = dict(_placed(root, pyproject))
    below = [*named, *_packaged(pyproject), *(folder for package, folder in placed.items() if not package)]
    declared = dict.fromkeys(folder for name in below if is_folder(folder := root / name))
    packages = {package: root / folder for package, folder in placed.items() if package}
    return SourceFolders(
        root,
        tuple(declared),
        (*((name, folder) for name, folder in packages.items() if is_folder(folder)), *installed),
    )


def environment_of(root: Path, top: Path) -> Path:
    """Return the folder with the installed packages of a project: of the nearest ``.venv`` or ``venv`` beside
    it, or above it as far as ``top``. Without one it is that of the running interpreter.
    """
    for folder in (root, *root.parents):
        for name in (".venv", "venv"):
            if is_file(folder / name / "pyvenv.cfg"):
                found = sorted((folder / name).glob("lib/python*/site-packages"))
                return found[-1] if found else folder / name / "Lib" / "site-packages"
        if folder == top:
            break
    return Path(sysconfig.get_paths()["purelib"])


def editable(environment: Path) -> dict[str, Path]:
    """Return the packages and modules of editable installations in an environment, each by its name.

    Those are what is in the folders that ``*.pth`` files name, and what the import hooks of setuptools map
    names to. Nothing is executed.
    """
    found: dict[str, Path] = {}
    try:
        names = sorted(os.listdir(environment))  # noqa: PTH208  - names are enough
    except OSError:
        return found
    for name in names:
        if name.endswith(".pth"):
            for line in _read(environment / name).splitlines():
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    for module, place in _top_level(environment / line.strip()):
                        found.setdefault(module, place)
        elif name.startswith("__editable__") and name.endswith("_finder.py"):
            for module, place in _mapped(_read(environment / name)):
                found.setdefault(module, place)
    return found


def _top_level(folder: Path) -> Iterator[tuple[str, Path]]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  - names are enough
    except (OSError, ValueError):
        return
    for name in names:
        if name.removesuffix(".py").isidentifier() and (found := module_at(folder, name.removesuffix(".py"))):
            yield name.removesuffix(".py"), found.parent if found.name == INIT else found


def _mapped(finder: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules that an import hook of setuptools finds; the path of a file is without its suffix."""
    for written in _MAPPING.findall(finder):
        try:
            pairs = list(_pairs(ast.literal_eval(written)))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        for name, path in pairs:
            place = Path(path)
            if not (place.is_absolute() and place.name and all(map(str.isidentifier, name.split(".")))):
                continue
            if is_folder(place):
                yield name, place
            elif is_file(module := place.with_name(f"{place.name}.py")):
                yield name, module


_MAPPING = re.compile(r"^MAPPING\b[^=\n]*=\s*(\{[^{}]*\})", re.MULTILINE)


def imported_names(text: str) -> Iterator[str]:
    """Yield the names of top-level modules that a program or notebook may import, and others besides."""
    for statement in _IMPORTED.finditer(text):
        yield from _FIRST.findall(statement[1] or statement[2])


_FIRST = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_IMPORTED = re.compile(r"""\b(?:import|from)[ \t]+([\w., \t]+)|import_module\(\s*["'](\w+)""")


def is_built(root: Path) -> bool:
    """Return whether a project has build metadata, or is a package that is installed:
    others can import it.
    """
    from torchlint import toml

    pyproject = _pyproject(root)
    tools = toml.table(pyproject, "tool")
    if (
        toml.table(tools, "poetry").get("package-mode") is False
        or toml.table(tools, "uv").get("package") is False
    ):
        return False
    if any(toml.table(pyproject, name) for name in ("project", "build-system")) or toml.table(
        tools, "poetry"
    ):
        return True
    if is_file(root / "setup.py") or "[metadata]" in _read(root / "setup.cfg"):
        return True
    return is_file(root / INIT) and any(root.parent.glob("*.dist-info"))


def fails_on_warnings(root: Path) -> bool:
    """Return whether the settings of a project's tests turn warnings into errors."""
    return any(_WARNINGS_AS_ERRORS.search(_read(root / name)) for name in SETTINGS)


_WARNINGS_AS_ERRORS = re.compile(
    r"""(?:-W\s*|PYTHONWARNINGS\s*=\s*["']?)error(?![\w:])"""
    r"""|^\s*(?:filterwarnings\s*=\s*\[?\s*)?["']?error(?:::(?:User)?Warning)?["']?\s*(?:[],#]|$)""",
    re.MULTILINE,
)


def entry_points(root: Path) -> frozenset[str]:
    """Return what the build metadata of a project has others call, as ``package.module:function``."""
    texts = (_read(root / name) for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    return frozenset(match[0] for text in texts for match in _ENTRY_POINT.finditer(text))


_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _packaged(pyproject: Mapping[str, Any]) -> Iterator[str]:
    """Yield where build back ends are told to look for packages, as folders relative to the root."""
    from torchlint import toml

    setuptools = toml.table(pyproject, "tool", "setuptools")
    yield from _texts(toml.table(setuptools, "packages", "find").get("where"))
    yield from _texts([toml.table(pyproject, "tool", "pdm", "build").get("package-dir")])
    yield from _texts([toml.table(pyproject, "tool", "uv", "build-backend").get("module-root")])
    yield from _texts([toml.table(pyproject, "tool", "maturin").get("python-source")])
    wheel = toml.table(pyproject, "tool", "hatch", "build", "targets", "wheel")
    yield from (str(PurePosixPath(package).parent) for package in _texts(wheel.get("packages")))
    yield from _texts(wheel.get("sources"))
    packages = toml.table(pyproject, "tool", "poetry").get("packages")
    for package in packages if isinstance(packages, list) else ():
        yield from _texts([toml.table(package).get("from")])


def _placed(root: Path, pyproject: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the packages that setuptools is told the folders of; without a name, the folder of all others."""
    from torchlint import toml

    yield from _options_of_setup(_read(root / "setup.cfg"), "package_dir")
    for written in _PACKAGE_DIR.findall(_read(root / "setup.py")):
        try:
            packages = ast.literal_eval(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue  # It is computed.
        yield from _pairs(packages)
    yield from _pairs(toml.table(pyproject, "tool", "setuptools", "package-dir"))


_PACKAGE_DIR = re.compile(r"\bpackage_dir\s*=\s*(\{[^{}]*\})")


def _options_of_setup(text: str, option: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of an option of ``setup.cfg``: ``name = folder`` in a line each."""
    settings = ConfigParser(interpolation=None, strict=False)
    try:
        settings.read_string(text)
    except ConfigError:
        return
    for line in settings.get("options", option, fallback="").splitlines():
        name, equals, folder = line.partition("=")
        if equals:
            yield name.strip(), folder.strip()


def _pairs(packages: object) -> Iterator[tuple[str, str]]:
    for name, folder in packages.items() if isinstance(packages, Mapping) else ():
        if isinstance(name, str) and isinstance(folder, str):
            yield name, folder


def _texts(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _pyproject(root: Path) -> Mapping[str, Any]:
    from torchlint import toml

    return toml.document(_read(root / METADATA))


def _read(path: Path) -> str:
    """Return the text of a small file; empty if there is none that can be read."""
    try:
        return read_text(path, _LARGEST)
    except SourceError:
        return ""


def module_at(folder: Path, name: str) -> Path | None:
    """Return what a dotted name is below a source folder: a file,
    or a folder that is a package without a file. Without a name it is the package, or the module, itself.

    As for the interpreter, a package goes before a module of its name, and both before such a folder.
    """
    place = folder.joinpath(*name.split(".")) if name else folder
    if is_file(place / INIT):
        return place / INIT
    if name and is_file(module := place.with_name(f"{place.name}.py")):
        return module
    return place if is_folder(place) or (not name and is_file(place)) else None
