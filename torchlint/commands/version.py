"""``torchlint version``."""

from __future__ import annotations

import json

import click

from torchlint import __version__
from torchlint.commands.terminal import Terminal, shared_parameters


def _run(output_format: str, verbose: bool, quiet: bool, silent: bool, color: str, **_: object) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    if output_format == "json":
        terminal.out(json.dumps({"version": __version__}) + "\n")
    else:
        terminal.out(f"torchlint {__version__}\n")


command = click.Command(
    "version",
    callback=_run,
    help="Print the version.",
    params=[
        click.Option(["--output-format"], type=click.Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
