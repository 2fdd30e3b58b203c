"""``torchlint server``: the language server."""

from __future__ import annotations

import click

from torchlint.commands import not_installed
from torchlint.commands.terminal import Terminal, absolute_config, shared_parameters


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
        raise not_installed("the language server", str(error.name), "lsp") from error
    from torchlint.server.features import serve

    with terminal.listening():
        serve(tuple(map(absolute_config, configs)), isolated=isolated)


command = click.Command(
    "server",
    callback=_run,
    help="Run the language server, which provides findings, fixes and rule pages to editors over "
    "standard input and output. Editors start it; see docs/editors.md.",
    params=[
        click.Option(["--stdio"], is_flag=True, help="Use standard input and output (always on)."),
        *shared_parameters(),
    ],
)
