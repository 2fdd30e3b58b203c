"""A virtual environment for each peer, with the version that ``pins.txt`` names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PINS = Path(__file__).with_name("pins.txt")


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter and what is installed beside it; ``packages`` are versions by name."""

    python: Path
    packages: dict[str, str]


def pins() -> dict[str, str]:
    """Return the version of each peer by its name.

    Raises:
        ValueError: a peer is not pinned to one version.
    """
    found: dict[str, str] = {}
    for line in PINS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        requirement = Requirement(line)
        versions = [item.version for item in requirement.specifier if item.operator == "=="]
        if len(versions) != 1:
            raise ValueError(f"{PINS.name}: {line} is not pinned to one version")
        found[canonicalize_name(requirement.name)] = versions[0]
    return found


def install(name: str, version: str, folder: Path) -> Environment:
    """Return a virtual environment below ``folder`` with one peer; made anew if it is not complete.

    Raises:
        RuntimeError: pip failed; the message is the end of what it said.
    """
    home = folder / f"{name}-{version}"
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    complete = home / "complete"
    if not complete.exists():
        shutil.rmtree(home, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(home)])
        _do([str(python), "-m", "pip", "install", "--quiet", f"{name}=={version}"])
        complete.touch()
    listed = _do([str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"])
    packages: dict[str, str] = {
        name: item["version"]
        for item in json.loads(listed)
        if (name := canonicalize_name(item["name"])) not in ("pip", "setuptools")
    }
    return Environment(python, packages)


def _do(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise RuntimeError(" ".join(errors) or done.stderr.strip()[-500:] or f"{command} failed")
    return done.stdout
