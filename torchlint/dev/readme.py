"""The generated parts of README.md: the table of the rules, what was measured, what a run costs, real runs.

A generated part stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. A transcript is what the
command after the name prints when it is run on a copy of ``docs/example``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torchlint.dev import ROOT, measured, pages, peers

README = ROOT / "README.md"
EXAMPLE = ROOT / "docs" / "example"

_PART = re.compile(
    r"(<!-- begin (rules|measured|peers|transcript: [^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL
)


def generate() -> Mapping[Path, str]:
    """Return README.md as it should be.

    Raises:
        RuntimeError: a command of a transcript failed; the message has what it printed.
    """
    text = README.read_text(encoding="utf-8")
    return {README: _PART.sub(lambda part: f"{part[1]}{_render(part[2])}{part[3]}", text)}


def _render(name: str) -> str:
    if name == "rules":
        return f"\n{pages.table('docs/rules/')}\n"
    if name == "measured":
        return measured.summary()
    if name == "peers":
        return peers.summary()
    return transcript(name.removeprefix("transcript: "))


def transcript(command: str) -> str:
    """Return the command, as typed, and what it prints, as a fenced block."""
    program, *arguments = shlex.split(command)
    if program != "torchlint":
        raise RuntimeError(f"a transcript shows torchlint, not {program}")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCHLINT_", "FORCE_COLOR"))
    }
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "project"
        shutil.copytree(EXAMPLE, project)
        run = subprocess.run(
            [sys.executable, "-m", "torchlint", *arguments],
            cwd=project,
            env={**environment, "NO_COLOR": "1", "TORCHLINT_NO_CACHE": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    if run.returncode not in (0, 1):
        raise RuntimeError(f"`{command}` exits with {run.returncode}:\n{run.stdout}{run.stderr}")
    body = "\n".join(line.rstrip() for line in run.stdout.rstrip().splitlines())
    return f"```console\n$ {command}\n{body}\n```\n"
