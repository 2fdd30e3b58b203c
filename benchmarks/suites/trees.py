"""Copies of a package's sources with torchlint's fixes in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from torchlint.target import Target

_MADE = re.compile(r"^ +(\d+) × (TL\d+)\b", re.MULTILINE)
_CHANGED = re.compile(r"^- .+:$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed copy, how often each rule was applied in it, and how many files that changed."""

    tree: Path
    applied: Counter[str]
    files: int


def fixed(
    sources: Path, tree: Path, *, target: Target, unsafe: bool, only: Collection[str] | None = None
) -> Fixed:
    """Copy ``sources`` to ``tree`` and fix the copy as a project, by the command that users run.

    Args:
        target: the releases of torch that may run the tests.
        only: the rules whose fixes are made; all that are on by default without them.

    Raises:
        RuntimeError: torchlint failed.
    """
    if tree.exists():
        shutil.rmtree(tree)
    shutil.copytree(sources, tree, symlinks=True)
    command = [
        *(sys.executable, "-m", "torchlint", "check", "--fix-only", "--show-fixes", "--exit-zero"),
        *(
            "--isolated",
            "--no-cache",
            "--no-respect-gitignore",
            "--jobs",
            "1",
            "--impact",
            "low",
            "--advice",
            "on",
        ),
        *("--target-torch", str(target)),
        *(["--unsafe-fixes"] if unsafe else []),
        *([] if only is None else ["--fixable", ",".join(sorted(only))]),
        ".",
    ]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, encoding="utf-8", check=False)
    told = done.stdout + done.stderr
    if done.returncode or "TL000" in told:
        raise RuntimeError(f"torchlint failed on {sources.name}:\n{told[-2000:]}")
    applied: Counter[str] = Counter()
    for count, code in _MADE.findall(told):
        applied[code] += int(count)
    return Fixed(tree, applied, len(_CHANGED.findall(told)))
