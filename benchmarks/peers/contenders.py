"""Who is measured, and how each is run.

In commands and variables ``{tree}`` is the folder to check, ``{cache}`` a folder for what the tool keeps
between runs, ``{bin}`` the programs of the tool's virtual environment and ``{python}`` its interpreter; the
references and torchlint have the interpreter that measures.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks import speed

_EACH = """
import sys
from pathlib import Path
{imports}
for path in Path(sys.argv[1]).rglob("*.py"):
    {parse}(path.read_bytes())
"""


@dataclass(frozen=True, slots=True)
class Contender:
    """A tool, or a reference that does less than any tool could.

    ``alone`` and ``alone_variables`` are what makes it use one process and thread; None if nothing does.
    ``several`` says what it uses by itself, empty if that is one process. ``caches`` if a second run over the
    same files may be quicker. It gets every ``every``-th file only. Of a ``finished`` run the exit status is
    between 0 and that.
    """

    name: str
    command: tuple[str, ...]
    alone: tuple[str, ...] | None = ()
    alone_variables: Mapping[str, str] = field(default_factory=dict)
    several: str = ""
    caches: bool = False
    every: int = 1
    finished: int = 1
    variables: Mapping[str, str] = field(default_factory=dict)
    kind: str = "peer"


_A_PROCESSOR = "a process for each processor"


def contenders() -> list[Contender]:
    """Return all of them, in the order in which the first round runs them."""
    return [*_references(), _torchlint(), *PEERS]


def _references() -> list[Contender]:
    return [
        Contender(
            "ast.parse",
            ("{python}", "-c", _EACH.format(imports="import ast", parse="ast.parse"), "{tree}"),
            kind="reference",
        ),
        Contender("libcst.parse_module", ("{python}", "-c", speed.PARSE, "{tree}"), kind="reference"),
    ]


def _torchlint() -> Contender:
    command = ("{python}", "-m", "torchlint", "check", "--isolated", "--no-respect-gitignore", "{tree}")
    told = subprocess.run(
        [sys.executable, "-m", "torchlint", "check", "--help"], capture_output=True, text=True, check=True
    )
    caches = "--cache-dir" in told.stdout
    return Contender(
        "torchlint",
        (*command, "--cache-dir", "{cache}") if caches else command,
        alone=("--jobs", "1"),
        several=_A_PROCESSOR,
        caches=caches,
        kind="torchlint",
    )


PEERS = (
    Contender(
        "ruff",
        ("{bin}/ruff", "check", "--isolated", "--cache-dir", "{cache}", "{tree}"),
        alone_variables={"RAYON_NUM_THREADS": "1"},
        several="a thread for each processor",
        caches=True,
    ),
    Contender(
        "pyrefly",
        ("{bin}/pyrefly", "check", "{tree}"),
        alone=("--threads", "1"),
        several="as many threads as it thinks fit",
    ),
    Contender("flake8", ("{bin}/flake8", "--isolated", "{tree}"), alone=("-j", "1"), several=_A_PROCESSOR),
    # Its inference makes it slow: a part of the files will do.
    Contender(
        "pylint",
        ("{bin}/pylint", "--rcfile=/dev/null", "--recursive=y", "{tree}"),
        every=6,
        finished=31,  # a bit for each kind of message
        variables={"PYLINTHOME": "{cache}"},
    ),
    Contender(
        "torch-preflight",
        ("{bin}/torch-preflight", "check", "{tree}"),
        alone=("--jobs", "1"),
        several=_A_PROCESSOR,
    ),
    Contender(
        "torchfix",
        ("{python}", "-m", "torchfix", "{tree}"),
        alone=("--jobs", "1"),
        several=_A_PROCESSOR,
    ),
    Contender("fixit", ("{bin}/fixit", "lint", "{tree}"), alone=None, several=_A_PROCESSOR),
)
