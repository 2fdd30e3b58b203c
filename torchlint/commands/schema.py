"""``torchlint schema``: the JSON schema of the configuration."""

from __future__ import annotations

import click

from torchlint import registry
from torchlint.commands.terminal import Terminal, shared_parameters


def _run(verbose: bool, quiet: bool, silent: bool, color: str, **_: object) -> None:
    from torchlint import schema

    Terminal(color, verbose, quiet, silent).out(schema.render(registry.catalogue()))


command = click.Command(
    "schema",
    callback=_run,
    help="Print the JSON schema of the configuration, including installed rule packs, for editors and "
    "validators.",
    params=shared_parameters(),
)
