"""``torchlint env``: what the machine is set to, what is advised, why, and the command that does it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from torchlint import __version__
from torchlint.commands import Failure
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters

if TYPE_CHECKING:
    from torchlint.environment.advice import Row

_COLORS = {"advice": "yellow", "unknown": "dim", "fine": "green", "fact": ""}


def _run(
    python: str | None,
    output_format: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    color: str,
    **_: object,
) -> None:
    from torchlint.environment.advice import rows
    from torchlint.environment.interpreter import ask
    from torchlint.environment.machine import machine
    from torchlint.environment.system import System

    terminal = Terminal(color, verbose, quiet, silent)
    interpreter = ask(python)
    if python is not None and interpreter.python is None:
        raise Failure(f"cannot ask {python}: {interpreter.problem}")
    found = list(rows(machine(System(), interpreter)))
    if output_format == "json":
        terminal.out(json.dumps(_described(found, interpreter.path), indent=2) + "\n")
    else:
        terminal.out(_table(found, terminal))


def _described(found: list[Row], python: str) -> dict[str, Any]:
    return {
        "torchlint": __version__,
        "python": python,
        "rows": [{**asdict(row), "standing": row.standing.value} for row in found],
    }


def _table(found: list[Row], terminal: Terminal) -> str:
    """Return the table, and below it why each piece of advice is given and how it is followed."""
    import io

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=min(terminal.width, 120),
        force_terminal=terminal.colored(sys.stdout),
        no_color=not terminal.colored(sys.stdout),
        legacy_windows=False,
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Subject", "Now", "Advised"):
        table.add_column(title, overflow="fold")
    advice = [row for row in found if row.advised is not None]
    for row in found:
        style = _COLORS[row.standing.value]
        advised = f"{row.advised} [{advice.index(row) + 1}]" if row.advised is not None else ""
        # Text and no markup: what is read from the machine may hold brackets.
        table.add_row(Text(row.subject), Text(row.now, style=style), Text(advised))
    console.print(table)
    for number, row in enumerate(advice, 1):
        console.print()
        console.print(Text.assemble(f"[{number}] ", (row.subject, "bold"), f": {row.why}"), soft_wrap=True)
        console.print(Text(f"    {row.command}", style="cyan"), soft_wrap=True)
        console.print(Text(f"    {row.source}", style="dim"), soft_wrap=True)
    return stream.getvalue()


command = click.Command(
    "env",
    callback=_run,
    help="Show the settings of this machine that affect PyTorch performance, what is recommended and "
    "why, and the command to change each of them. Nothing is changed. Settings that could not be "
    "read are reported as unknown.",
    params=[
        click.Option(
            ["--python"],
            metavar="PATH",
            help="The Python interpreter whose torch is examined, such as that of your project; by "
            "default the one that runs torchlint.",
        ),
        click.Option(["--output-format"], type=Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
