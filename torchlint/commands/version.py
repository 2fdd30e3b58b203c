"""``torchlint version``."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from torchlint import __version__, registry
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters


def _run(output_format: str, verbose: bool, quiet: bool, silent: bool, color: str, **_: object) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    if output_format == "json":
        packs = [asdict(pack) for pack in registry.packs()]
        terminal.out(json.dumps({"version": __version__, "rule_packs": packs}) + "\n")
        return
    terminal.out(f"torchlint {__version__}\n")
    for pack in registry.packs() if verbose else ():
        terminal.out(f"rule pack {pack.distribution or 'without a name'} ({pack.name}: {pack.module})\n")


command = click.Command(
    "version",
    callback=_run,
    help="Print the version; with -v also the installed rule packs.",
    params=[
        click.Option(["--output-format"], type=Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
