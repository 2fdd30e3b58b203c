"""The command line: the commands, the default one, and what every failure exits with.

Start-up is kept cheap: a command's module is imported when it runs, and ``--version`` imports nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torchlint import __version__

_DEFAULT = "check"
# Where each command lives, and the line that the list of commands shows for it.
_COMMANDS = {
    "check": ("torchlint.commands.check", "Find and fix problems (the default command)"),
    "verify": ("torchlint.commands.verify", "Measure what the fixes of a script are worth on this machine"),
    "bench": ("torchlint.commands.bench", "Measure what the fixes of rules are worth on this machine"),
    "env": ("torchlint.commands.env", "Show what this machine is set to, and what PyTorch would like"),
    "server": ("torchlint.commands.server", "Show findings and fixes in an editor (language server)"),
    "rule": ("torchlint.commands.rule", "Explain a rule, or list all of them"),
    "explain": ("torchlint.commands.rule", "Another name for `rule`"),
    "config": ("torchlint.commands.config", "List the config keys, or explain one"),
    "schema": ("torchlint.commands.schema", "Print the JSON schema of the configuration"),
    "generate-shell-completion": (
        "torchlint.commands.generate_shell_completion",
        "Print what bash, zsh or fish needs to complete torchlint's words",
    ),
    "clean": ("torchlint.commands.clean", "Delete what earlier runs remembered"),
    "version": ("torchlint.commands.version", "Print the version"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit; ``argv`` defaults to the process's arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"torchlint {__version__}")
        return
    from torchlint.commands import build

    build(_COMMANDS, _DEFAULT).main(arguments, prog_name="torchlint")
