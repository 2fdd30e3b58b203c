"""The packages whose tests are run, and where their sources come from."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.toml import loads

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Suite:
    """One package and which of its tests are run.

    Attributes:
        name: of the project on the package index.
        version: the release whose source distribution is used.
        tests: what pytest is given, relative to the unpacked folder.
        options: further options for pytest.
        paths: folders that go in front of the module path, relative to the unpacked folder.
        left_out: tests (node ids, or their beginnings) that are not run, with the reason.
        lost: why an unsafe fix may lose tests, by the code of the rule.
    """

    name: str
    version: str
    tests: tuple[str, ...]
    options: tuple[str, ...]
    paths: tuple[str, ...]
    left_out: dict[str, str]
    lost: dict[str, str]


def pinned() -> list[Suite]:
    """Return the suites of ``suites.toml``, in its order."""
    table: dict[str, Any] = loads((_HERE / "suites.toml").read_text(encoding="utf-8"))
    return [
        Suite(
            name,
            entry["version"],
            tuple(entry["tests"]),
            tuple(entry.get("options", ())),
            tuple(entry.get("paths", ["."])),
            entry.get("left-out", {}),
            entry.get("lost", {}),
        )
        for name, entry in table.items()
    ]


def sources(suite: Suite, folder: Path) -> Path:
    """Return the unpacked source distribution of a suite below ``folder``; it is downloaded once.

    Raises:
        subprocess.CalledProcessError: the package index does not have it.
    """
    target = folder / "sources" / f"{suite.name}-{suite.version}"
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        # pip builds the metadata of whatever it downloads as sources; of these alone, not of all they need.
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"),
                *("--no-deps", "--no-binary", suite.name, "--dest", scratch),
                f"{suite.name}=={suite.version}",
            ],
            check=True,
        )
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            if hasattr(tarfile, "data_filter"):
                packed.extractall(scratch, filter="data")
            else:
                packed.extractall(scratch)
        (unpacked,) = (path for path in Path(scratch).iterdir() if path.is_dir())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(unpacked, target)
    return target


def interpreter(folder: Path) -> Path:
    """Return the interpreter of the environment in which the tests run; it is made once.

    Raises:
        subprocess.CalledProcessError: the environment could not be made.
    """
    home = folder / "environment"
    python = home / "bin" / "python"
    pins = _HERE / "requirements.txt"
    made_of = home / "requirements.txt"
    if not made_of.is_file() or made_of.read_bytes() != pins.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run(
            [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-r", pins], check=True
        )
        shutil.copy(pins, made_of)
    return python
