"""Asks accelerate what ``accelerate launch`` would start, without starting it; runs in a process of its own.

Nothing here knows accelerate's options or what they do to the environment: its own parser reads the words and
its configuration file, and its own launchers make the environment. What they would run is only noted.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_OTHERS = {
    "deepspeed_launcher": "DeepSpeed",
    "tpu_launcher": "TPUs",
    "tpu_pod_launcher": "TPUs",
    "sagemaker_launcher": "SageMaker",
}
"""What starts programs in ways that cannot be measured."""


class UnsupportedError(Exception):
    """What the words ask for cannot be measured."""


def main() -> None:
    """Write to the file of the first argument what the others would start, or why that is not known."""
    answer, *words = sys.argv[1:]
    sys.argv = ["accelerate launch", *words]
    try:
        found = launched(words)
    except ImportError as error:
        found = {"failed": f"{error.name} is not installed"}
    except UnsupportedError as error:
        found = {"failed": f"a program that runs with {error} cannot be measured"}
    except (AssertionError, OSError, RuntimeError, TypeError, ValueError) as error:
        found = {"failed": " ".join(str(error).split()) or type(error).__name__}
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


def launched(words: Sequence[str]) -> dict[str, Any]:
    """Return the program that ``accelerate launch WORDS`` starts, its processes, and the variables they get.

    Raises:
        ImportError: accelerate is not installed.
        UnsupportedError: the program cannot be measured.
        ValueError: accelerate refuses the words or its configuration; it may raise other errors, too.
        SystemExit: its parser refuses them, and has said so.
    """
    import torch.distributed.run as torchrun
    from accelerate.commands import launch

    found: dict[str, Any] = {}
    several = launch.multi_gpu_launcher

    def note(environment: dict[str, str], ranks: int) -> None:
        new = {name: str(value) for name, value in environment.items() if os.environ.get(name) != value}
        found.update(ranks=ranks, variables=new)

    def single(arguments: Namespace) -> None:
        _supported(arguments)
        note(launch.prepare_simple_launcher_cmd_env(arguments)[1], 1)

    def multiple(arguments: Namespace) -> None:
        _supported(arguments)
        before = dict(os.environ)

        def run(chosen: Namespace) -> None:
            inside = dict(os.environ)
            os.environ.clear()
            os.environ.update(before)
            note(inside, int(chosen.nproc_per_node))

        torchrun.run = run
        several(arguments)

    arguments = launch.launch_command_parser().parse_args(words)
    found.update(
        program=arguments.training_script, module=arguments.module, arguments=arguments.training_script_args
    )
    launchers = {name: _refusing(what) for name, what in _OTHERS.items()}
    for name, launcher in {**launchers, "simple_launcher": single, "multi_gpu_launcher": multiple}.items():
        setattr(launch, name, launcher)
    launch.launch_command(arguments)
    return found


def _refusing(what: str) -> Callable[..., None]:
    """Return a launcher that only says what it is for."""

    def launcher(*_: object) -> None:
        raise UnsupportedError(what)

    return launcher


def _supported(arguments: Namespace) -> None:
    """Refuse what the usual launchers do beside starting processes of this machine.

    Raises:
        UnsupportedError: they are asked to.
    """
    asked = {
        "FSDP": getattr(arguments, "use_fsdp", False),
        "Megatron-LM": getattr(arguments, "use_megatron_lm", False),
        "several machines": (arguments.num_machines or 1) > 1,
        "mpirun": getattr(arguments, "mpirun_hostfile", None) is not None,
        "`--no_python`": arguments.no_python,
    }
    for what, is_asked in asked.items():
        # With --cpu, accelerate ignores how GPUs would be used.
        if is_asked and not (arguments.cpu and what in ("FSDP", "Megatron-LM")):
            raise UnsupportedError(what)
