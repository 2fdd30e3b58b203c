"""Programs as `accelerate launch` starts them; a stand-in answers where accelerate need not be installed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from torchlint.commands.verify import command
from torchlint.verify.launch import Launch
from torchlint.verify.worker.launch import UnsupportedError, launched, main


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What of accelerate is asked, with launchers that set variables as the real ones do."""
    import torch.distributed.run as torchrun

    launch = ModuleType("accelerate.commands.launch")

    def launch_command_parser() -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser()
        for name in ("multi_gpu", "module", "cpu", "no_python", "use_deepspeed", "use_fsdp"):
            parser.add_argument(f"--{name}", action="store_true")
        parser.add_argument("--num_processes", type=int)
        parser.add_argument("--num_machines", type=int)
        parser.add_argument("training_script")
        parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
        return parser

    def prepare_simple_launcher_cmd_env(arguments: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
        return [], {**os.environ, "ACCELERATE_MIXED_PRECISION": "bf16"}

    def multi_gpu_launcher(arguments: argparse.Namespace) -> None:
        os.environ["ACCELERATE_DYNAMO_BACKEND"] = "INDUCTOR"
        torchrun.run(argparse.Namespace(nproc_per_node=str(arguments.num_processes)))

    def launch_command(arguments: argparse.Namespace) -> None:
        name = "deepspeed" if arguments.use_deepspeed else "simple"
        name = "multi_gpu" if arguments.multi_gpu or arguments.use_fsdp else name
        getattr(launch, f"{name}_launcher")(arguments)

    vars(launch).update({made.__name__: made for made in (launch_command_parser, launch_command)})
    vars(launch).update(
        multi_gpu_launcher=multi_gpu_launcher,
        prepare_simple_launcher_cmd_env=prepare_simple_launcher_cmd_env,
    )
    commands = ModuleType("accelerate.commands")
    vars(commands)["launch"] = launch
    for name, module in (("accelerate", ModuleType("accelerate")), ("accelerate.commands", commands)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(torchrun, "run", torchrun.run)
    return launch


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("words", "program", "module", "arguments", "ranks", "variables"),
    [
        (
            ["--num_processes", "1", "train.py", "--epochs", "3"],
            "train.py",
            False,
            ["--epochs", "3"],
            1,
            {"ACCELERATE_MIXED_PRECISION": "bf16"},
        ),
        (
            ["--multi_gpu", "--num_processes", "2", "--module", "pkg.train"],
            "pkg.train",
            True,
            [],
            2,
            {"ACCELERATE_DYNAMO_BACKEND": "INDUCTOR"},
        ),
    ],
)
def test_accelerate_says_what_it_would_start(
    words: list[str],
    program: str,
    module: bool,
    arguments: list[str],
    ranks: int,
    variables: dict[str, str],
) -> None:
    before = dict(os.environ)
    assert launched(words) == {
        "program": program,
        "module": module,
        "arguments": arguments,
        "ranks": ranks,
        "variables": variables,
    }
    assert dict(os.environ) == before


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("--use_deepspeed", "DeepSpeed"),
        ("--use_fsdp", "FSDP"),
        ("--num_machines=2", "several machines"),
        ("--no_python", "`--no_python`"),
    ],
)
def test_what_cannot_be_measured_is_refused(option: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        launched([option, "train.py"])


def test_accelerate_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.setattr(sys, "argv", ["-c", str(tmp_path / "answer.json"), "train.py"])
    main()
    assert "accelerate" in (said := (tmp_path / "answer.json").read_text()) and "is not installed" in said


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command starts, with what accelerate says given."""
    from torchlint.verify import subjects

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import torch\n", encoding="utf-8")
    found: dict[str, Any] = {}

    def asked(words: tuple[str, ...], device: str) -> Launch:
        found.update(words=words, asked_of=device)
        variables = {"ACCELERATE_USE_CPU": "True", "ACCELERATE_MIXED_PRECISION": "bf16"}
        return Launch("train.py", False, ("--epochs", "3"), 2, variables)

    class Watched(subjects.Script):
        def __init__(self, workspace: Any, arguments: Any, **options: Any) -> None:
            found.update(options, arguments=arguments, precision=os.environ["ACCELERATE_MIXED_PRECISION"])
            raise ValueError("seen")

    monkeypatch.setattr("torchlint.verify.launch.accelerate", asked)
    monkeypatch.setattr(subjects, "Script", Watched)
    return found


def run(*arguments: str) -> None:
    """Run the command in this process."""
    command.main(["--isolated", *arguments], standalone_mode=False)


def test_the_command_in_front_of_a_program_is_recognised(
    started: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    with pytest.raises(click.ClickException, match="seen"):
        run("--budget", "9", "accelerate", "launch", "--mixed_precision", "bf16", "train.py", "--epochs", "3")
    assert started["words"] == ("--mixed_precision", "bf16", "train.py", "--epochs", "3")
    assert started["asked_of"] == "auto" and started["device"] == "cpu"
    assert (started["ranks"], started["arguments"]) == (2, ("--epochs", "3"))
    assert started["precision"] == "bf16" and "ACCELERATE_MIXED_PRECISION" not in os.environ
    assert started["started"].startswith("the program was started as `accelerate launch` does: 2 processes")


def test_words_of_the_program_are_its_own(started: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    with pytest.raises(click.ClickException, match="seen"):
        run("train.py", "--", "accelerate", "launch")
    assert started["arguments"] == ("accelerate", "launch") and "words" not in started


@pytest.mark.usefixtures("started")
def test_the_number_of_processes_is_said_once() -> None:
    with pytest.raises(click.UsageError, match="`--nproc` cannot be combined with `accelerate launch`"):
        run("--nproc", "2", "accelerate", "launch", "train.py")
