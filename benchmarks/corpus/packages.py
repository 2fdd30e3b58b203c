"""The pinned packages: what they are, where they lie, and how they get there."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

PINNED = Path(__file__).with_name("packages.txt")


@dataclass(frozen=True, order=True, slots=True)
class Package:
    """One package of the corpus and the folder with its ``.py`` files."""

    name: str
    version: str
    folder: Path


def pinned(folder: Path) -> list[Package]:
    """Return the packages of packages.txt, as they are (or will be) unpacked under a folder."""
    packages = []
    for line in PINNED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "-")):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            name = canonicalize_name(requirement.name)
            packages.append(Package(name, specifier.version, folder / f"{name}-{specifier.version}"))
    return sorted(packages)


def fetch(folder: Path, only: Collection[str] = ()) -> None:
    """Download what is missing of the pinned packages, and unpack it.

    Raises:
        subprocess.CalledProcessError: pip could not get a package.
    """
    lines = PINNED.read_text(encoding="utf-8").splitlines()
    options = [word for line in lines if line.startswith("--") for word in line.split()]
    get([package for package in pinned(folder) if not only or package.name in only], folder, options)


def get(packages: Iterable[Package], folder: Path, options: Sequence[str] = ()) -> None:
    """Download what is missing of some packages with pip, without dependencies, and unpack the ``.py`` files.

    With a ``pyproject.toml`` beside them, which a wheel leaves out, a package is one project, as it is in the
    repository that it was built from.

    Raises:
        subprocess.CalledProcessError: pip could not get a package.
    """
    missing = [package for package in packages if not package.folder.is_dir()]
    if not missing:
        return
    downloads = folder / "downloads"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    # One by one: two versions of the same package cannot be asked for at once.
    for package in missing:
        wanted = f"{package.name}=={package.version}"
        subprocess.run([*command, "--dest", str(downloads), *options, wanted], check=True)
    archives = {_identity(path): path for path in downloads.iterdir()}
    for package in missing:
        unfinished = package.folder.with_name(f"{package.folder.name}.partial")
        for path, data in _sources(archives[package.name, package.version]):
            target = unfinished / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        metadata = f'[project]\nname = "{package.name}"\nversion = "{package.version}"\n'
        (unfinished / "pyproject.toml").write_text(metadata, encoding="utf-8")
        unfinished.rename(package.folder)


def _identity(archive: Path) -> tuple[str, str]:
    if archive.suffix == ".whl":
        name, version, *_ = parse_wheel_filename(archive.name)
    else:
        name, version = parse_sdist_filename(archive.name)
    return str(name), str(version)


def _sources(archive: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the Python files of a wheel or sdist, with paths relative to its root."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py") and ".." not in name:
                    yield PurePosixPath(name), wheel.read(name)
        return
    with tarfile.open(archive) as sdist:
        for member in sdist:
            contents = sdist.extractfile(member) if member.isfile() else None
            if contents is not None and member.name.endswith(".py") and ".." not in member.name:
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), contents.read()
