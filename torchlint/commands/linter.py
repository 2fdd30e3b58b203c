"""``torchlint linter``: the families of rules, and the prefix that selects each."""

from __future__ import annotations

import json

import click

from torchlint import registry
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters


def _run(output_format: str, verbose: bool, quiet: bool, silent: bool, color: str, **_: object) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    families = registry.families()
    if output_format == "json":
        described = [
            {"prefix": family.prefix, "name": family.title, "rules": [rule.code for rule in family.rules]}
            for family in families
        ]
        terminal.out(json.dumps(described, indent=2) + "\n")
        return
    width = max(len(family.prefix) for family in families)
    most = max(len(family.title) for family in families)
    for family in families:
        count = len(family.rules)
        counted = f"{count:>3} {'rule' if count == 1 else 'rules'}"
        terminal.out(f"{family.prefix:>{width}}  {family.title:<{most}}  {counted}\n")


command = click.Command(
    "linter",
    callback=_run,
    help="List the families of rules, those of rule packs included. The prefix selects a family.",
    params=[
        click.Option(["--output-format"], type=Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
