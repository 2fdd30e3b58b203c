"""How ``accelerate launch`` would start a program: accelerate itself is asked, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchlint.verify.worker.job import visible

_ASKING = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "from torchlint.verify.worker.launch import main; main()"
)
_PATIENCE = 180.0
"""Seconds in which accelerate has to answer: it imports torch."""


@dataclass(frozen=True)
class Launch:
    """What a launcher starts."""

    program: str
    """A file, or the name of a ``module``."""
    module: bool
    arguments: tuple[str, ...]
    ranks: int
    """How many processes there are."""
    variables: Mapping[str, str]
    """What they find in their environment beside the user's variables."""

    @property
    def on_cpu(self) -> bool:
        """Whether accelerate keeps the program on the processor."""
        return self.variables.get("ACCELERATE_USE_CPU") == "True"

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Let all processes that are started meanwhile find the variables.

        Some count from when a process starts, such as the number of threads: those that are copied later must
        have them already.
        """
        before = dict(os.environ)
        os.environ.update(self.variables)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    @property
    def told(self) -> str:
        """How the program is started, in words."""
        parts = [f"{self.ranks} processes" if self.ranks > 1 else "one process"]
        precision = self.variables.get("ACCELERATE_MIXED_PRECISION", "no")
        if precision != "no":
            parts.append(f"mixed precision {precision}")
        backend = self.variables.get("ACCELERATE_DYNAMO_BACKEND", "NO")
        if backend.upper() != "NO":
            parts.append(f"compiled with {backend.lower()}")
        return f"the program was started as `accelerate launch` does: {', '.join(parts)}"


def accelerate(words: Sequence[str], device: str) -> Launch:
    """Return what ``accelerate launch WORDS`` starts, on a ``device`` as in ``Job.device``.

    Raises:
        ValueError: accelerate is not installed, refuses the words, or starts what cannot be measured.
    """
    with tempfile.TemporaryDirectory(prefix="torchlint-") as folder:
        answer = Path(folder) / "answer.json"
        try:
            asked = subprocess.run(
                [sys.executable, "-c", _ASKING, str(answer), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                timeout=_PATIENCE,
                env={**os.environ, **visible(device)},
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"accelerate launch: no answer within {_PATIENCE:.0f} s") from None
        if not answer.exists():
            # Its parser has said why; after --help, it has said much else.
            said = asked.stdout.strip().rpartition("error: ")[2].splitlines()[-1:]
            reason = said[0] if said and asked.returncode else "these options start no program"
            raise ValueError(f"accelerate launch: {reason}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if "failed" in found:
        raise ValueError(f"accelerate launch: {found['failed']}")
    return Launch(
        found["program"], bool(found["module"]), tuple(found["arguments"]), found["ranks"], found["variables"]
    )
