"""The command line: the commands, the default one, and what every failure exits with.

Start-up is kept cheap: a command's module is imported when it runs, and ``--version`` imports nothing. So is
the end: see `run`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence

from torchlint import __version__

_DEFAULT = "check"
# Where each command lives, and the line that the list of commands shows for it.
_COMMANDS = {
    "check": ("torchlint.commands.check", "Find and fix problems (the default command)"),
    "advise": ("torchlint.commands.advise", "Show what could make whole programs faster or smaller"),
    "verify": ("torchlint.commands.verify", "Measure the effect of fixes on a script"),
    "bench": ("torchlint.commands.bench", "Measure the effect of the fix of each rule"),
    "env": ("torchlint.commands.env", "Show machine settings that affect PyTorch performance"),
    "graph": ("torchlint.commands.graph", "Show the files of a project and what they import from each other"),
    "report": ("torchlint.commands.report", "Write a site about what is found in many repositories"),
    "server": ("torchlint.commands.server", "Run the language server for editors"),
    "rule": ("torchlint.commands.rule", "Explain a rule, or list all of them"),
    "explain": ("torchlint.commands.rule", "Alias of `rule`"),
    "linter": ("torchlint.commands.linter", "List the families of rules"),
    "config": ("torchlint.commands.config", "List the config keys, or explain one"),
    "schema": ("torchlint.commands.schema", "Print the JSON schema of the configuration"),
    "generate-shell-completion": (
        "torchlint.commands.generate_shell_completion",
        "Print the completion script for bash, zsh or fish",
    ),
    "clean": ("torchlint.commands.clean", "Delete the cache"),
    "version": ("torchlint.commands.version", "Print the version"),
}


# A run makes few reference cycles, and many objects that stay: the usual 700 new ones are no reason to search
# them for any.
_NEW_OBJECTS = 100_000


def run() -> None:
    """Run the command line in a process that does nothing else, and end it: the program ``torchlint``.

    At its end the interpreter takes apart object by object what the system takes back at once, and after a
    check that takes as long as a third of it. It does not, once everything has been done that was registered
    for the end of the process, and all output has been written.
    """
    status: int | None = None

    def leave() -> None:
        if status is None:
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            return  # the interpreter says so itself
        os._exit(status)

    # What is registered first is done last.
    atexit.register(leave)
    gc.set_threshold(_NEW_OBJECTS)
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else None
        raise


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit; ``argv`` defaults to the process's arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"torchlint {__version__}")
        return
    from torchlint.commands import build

    build(_COMMANDS, _DEFAULT).main(arguments, prog_name="torchlint")
