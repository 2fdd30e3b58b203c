"""What a measuring process is told to do. Standard library only: both sides of the pipe read this."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

ANCHOR = "torchlint begins"
"""The event of a recording that tells which moment of the profile is which of Python's clock."""


@dataclass(frozen=True)
class Job:
    """One run of one variant.

    ``task`` is ``examine`` (results and evidence, nothing timed), ``train`` (the losses of its steps),
    ``watch`` (where the whole program waits for the device), ``record`` (the timeline
    of some steps), ``time`` (runs blocks when told to) or
    ``machine`` (describes the machine, and runs nothing).
    ``form`` says what ``path`` is: a ``script`` to be run as ``__main__``; a ``module`` (the dotted name of
    a script with relative imports); an ``entry`` (the name of the module whose ``function`` is called again
    and again; each call is a step); or a ``case`` with ``setup(device, size)`` and ``function`` (``step`` or
    ``step_fixed``). ``folder`` is the working directory, ``search`` what stands first on ``sys.path``.
    """

    task: str
    form: str
    path: str
    folder: str
    search: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    function: str = ""
    device: str = "auto"
    size: str = ""
    rank: int = 0
    """Which of the processes of its program this is."""
    ranks: int = 1
    """How many processes the program has: with more than one they are a process group of torch's."""
    meeting: str = ""
    """The file through which the processes of a program find each other."""
    seed: int = 0
    scratch: str = ""
    """A folder for output and temporary files."""
    steps_by: str = "auto"
    """``optimizer``, ``forward``, or ``auto`` while it is not known yet which of them the program has."""

    # For ``train`` only.
    shift: int = 0
    """What is added to the seeds that the program sets."""
    train_steps: int = 0

    # For ``watch`` only.
    watch_seconds: float = 0.0
    """How long the program runs at most."""

    # For ``record`` only.
    timeline: str = ""
    """Where the timeline is written."""
    lead_steps: int = 0
    """The steps before the first that is recorded, at least 1."""
    recorded_steps: int = 1

    # For ``examine`` only.
    trace: str = ""
    """Where the original's run writes its results, and the others read them."""
    role: str = "compared"
    """``reference``: this run writes ``trace``, and the others start from the state in it and compare with
    it. ``perturbed``: this run starts a rounding error away from that state. Or ``compared``."""
    compared: tuple[str, ...] = ()
    """The kinds of results that are compared: ``loss``, ``gradient``, ``output``, ``result``, ``parameter``.
    All, if there are none; fewer where the work is shared out among processes in another way."""
    compare_steps: int = 8
    evidence_steps: int = 5
    project: str = ""
    """The folder to which source lines are reported relatively."""
    original: str = ""
    """The user's own folder, of which ``project`` is a copy; empty if there is none."""

    def as_json(self) -> dict[str, Any]:
        """Return a form that ``Job(**form)`` reads back."""
        return asdict(self)

    @staticmethod
    def from_json(form: dict[str, Any]) -> Job:
        """Return the inverse of ``as_json``, whose tuples JSON has made lists."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in form.items()
        }
        return Job(**fields)


def visible(device: str) -> dict[str, str]:
    """Return the variables by which a program finds the device that was asked for, and no other."""
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return {"CUDA_VISIBLE_DEVICES": ""}
    return {"CUDA_VISIBLE_DEVICES": number} if kind == "cuda" and number else {}
