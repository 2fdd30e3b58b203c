"""What a Python has installed, and what its torch says of itself and of the devices it sees."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ASKED = Path(__file__).with_name("asked.py")
_SECONDS = 120.0
"""How long importing torch and waking a driver may take on a cold machine."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that torch sees: its CUDA ``capability``, ``memory`` in bytes and ``address`` on the bus."""

    name: str
    capability: tuple[int, int] | None = None
    memory: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Torch:
    """The torch of an interpreter. ``cuda`` and ``hip`` are what it is built with, ``cudnn`` what it loads.

    ``matmul`` is the precision of products of float32 matrices in a new process, ``threads`` how many
    threads an operation on the CPU uses, ``openmp`` the file names of the OpenMP libraries it loads.
    """

    version: str
    cuda: str | None = None
    hip: str | None = None
    cudnn: str | None = None
    matmul: str | None = None
    threads: int | None = None
    openmp: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python: ``torch`` is None where it is not installed, or where ``problem`` says why it cannot tell."""

    path: str
    python: str | None = None
    torch: Torch | None = None
    problem: str | None = None


def ask(path: str | None = None, environ: Mapping[str, str] | None = None) -> Interpreter:
    """Ask a Python, by default this one, for its torch, in a process of its own.

    Nothing of the project is imported: modules are looked for where the interpreter has them installed and
    beside ``asked.py``, not in the working directory.
    """
    python = path or sys.executable
    command = [python, str(_ASKED)]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environ
        )
        answer = json.loads(run.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return Interpreter(python, problem=f"it did not respond within {_SECONDS:.0f} seconds")
    except OSError as error:
        return Interpreter(python, problem=f"it cannot be started: {error.strerror}")
    except (ValueError, IndexError):
        last = (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
        return Interpreter(python, problem=last)
    torch = answer.get("torch")
    return Interpreter(
        python, answer["python"], _torch(torch) if torch is not None else None, answer.get("problem")
    )


def _torch(answer: Mapping[str, object]) -> Torch:
    known = dict(answer)
    devices = known.pop("devices")
    openmp = known.pop("openmp")
    assert isinstance(devices, list) and isinstance(openmp, list)
    return Torch(
        **known,  # type: ignore[arg-type]  # asked.py answers with the fields of Torch
        openmp=tuple(openmp),
        devices=tuple(
            Device(**{**device, "capability": tuple(device["capability"]) if device["capability"] else None})
            for device in devices
        ),
    )
