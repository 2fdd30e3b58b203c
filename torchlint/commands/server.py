"""``torchlint server``: the language server."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint.commands import Failure
from torchlint.commands.terminal import Terminal, shared_parameters

EXTRA = "`pip install 'torchlint[lsp]'` installs it"


def _run(
    configs: tuple[str, ...],
    isolated: bool,
    verbose: bool,
    quiet: bool,
    silent: bool,
    color: str,
    **_: object,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    try:
        import lsprotocol  # noqa: F401
        import pygls  # noqa: F401
    except ImportError as error:
        raise Failure(f"the language server needs {error.name}, which is not installed: {EXTRA}") from error
    from torchlint.server.features import serve

    with terminal.listening():
        serve(tuple(map(_absolute, configs)), isolated=isolated)


def _absolute(config: str) -> str:
    """A ``--config`` value as it is understood in any folder."""
    path = Path(config).expanduser()
    return str(path.absolute()) if path.is_file() else config


command = click.Command(
    "server",
    callback=_run,
    help="Show findings, fixes and the pages of rules in an editor that speaks the Language Server Protocol, "
    "on standard input and output. Editors start it; docs/editors.md says how to tell them.",
    params=[
        click.Option(["--stdio"], is_flag=True, help="Talk on standard input and output, as it always does."),
        *shared_parameters(),
    ],
)
