"""What a command takes: CPU and wall time, and memory, with all the processes that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launcher.py")
_TOLD = 2000
"""Characters that are kept of what a command says."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one command took: seconds of CPU and of wall time, and MiB.

    CPU time is user and system time of the process and of all that it waited for; ``memory`` is the largest
    resident set of any one of them. ``status`` is its exit status, ``lines`` how much it wrote to standard
    output, ``told`` the end of what it wrote to standard error, or else to standard output.
    """

    cpu: float
    wall: float
    memory: float
    status: int
    expired: bool
    lines: int
    told: str


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    limit: float = 0,
) -> Usage:
    """Run a command in a fresh process, in ``folder``, and end it after ``limit`` seconds, if that is not 0.

    Raises:
        RuntimeError: the command could not be started.
    """
    with tempfile.TemporaryDirectory() as scratch:
        report, output, errors = (Path(scratch) / name for name in ("report", "output", "errors"))
        with output.open("wb") as out, errors.open("wb") as err:
            subprocess.run(
                [sys.executable, "-I", "-S", str(_LAUNCHER), str(limit), str(report), *command],
                env=os.environ if environment is None else environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                check=False,
            )
        complaint, text = errors.read_bytes(), output.read_bytes()
        told = (complaint.strip() or text.strip())[-_TOLD:].decode(errors="replace")
        if not report.exists():
            raise RuntimeError(f"{command[0]} could not be started: {told}")
        cpu, wall, memory, status, expired = report.read_text(encoding="utf-8").split()
    scale = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, else in KiB
    return Usage(
        cpu=float(cpu),
        wall=float(wall),
        memory=int(memory) * scale / 2**20,
        status=int(status),
        expired=expired == "1",
        lines=text.count(b"\n"),
        told=told,
    )
