"""``torchlint generate-shell-completion``: what a shell has to read to complete torchlint's words."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters

_VARIABLE = "_TORCHLINT_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


def _run(shell: str | None, verbose: bool, quiet: bool, silent: bool, color: str, **_: object) -> None:
    made = get_completion_class(shell or _own_shell())
    assert made is not None
    completion = made(click.Command("torchlint"), {}, "torchlint", _VARIABLE)
    # Not `source()`: for bash that asks the bash in the PATH for its version, which need not be the reader's.
    Terminal(color, verbose, quiet, silent).out(completion.source_template % completion.source_vars() + "\n")


def _own_shell() -> str:
    """Return the shell that the user logs in with, as the variable SHELL names it.

    Raises:
        click.UsageError: it is none that there is a script for.
    """
    named = PurePath(os.environ.get("SHELL", "")).name
    if named in _SHELLS:
        return named
    reason = f"there is no script for `{named}` (from SHELL)" if named else "SHELL is not set"
    raise click.UsageError(f"{reason}; name one of {', '.join(_SHELLS)}", click.get_current_context())


command = click.Command(
    "generate-shell-completion",
    callback=_run,
    help="Print the completion script for SHELL, for commands, options, rules and config keys. Without "
    "SHELL, for the login shell that the environment variable SHELL names.",
    epilog='bash and zsh: eval "$(torchlint generate-shell-completion bash)" in ~/.bashrc, likewise zsh in '
    "~/.zshrc. fish: torchlint generate-shell-completion fish > ~/.config/fish/completions/torchlint.fish",
    params=[click.Argument(["shell"], type=Choice(_SHELLS), required=False), *shared_parameters()],
)
