"""The commands, and the group that runs ``check`` where no command is named."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from torchlint import __version__
from torchlint.commands import mistakes
from torchlint.commands.terminal import FLAGS, VALUED, OutputError, Terminal, prepare_streams
from torchlint.installation import install_command

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells report a process that SIGINT ended."""

_HELP = ("--help", "-h", "--version", "-V")


class Failure(click.ClickException):
    """Ends the run with status 2 and a message that needs no look at the source."""

    exit_code = 2

    def show(self, file: Any = None, color: str = "auto") -> None:
        """Print ``error: message`` on standard error."""
        from torchlint.render.report import visible_lines

        terminal = Terminal(color)
        word = click.style("error", fg="red", bold=True) if terminal.colored(sys.stderr) else "error"
        terminal.err(f"{word}: {visible_lines(self.message)}\n")


def not_installed(what: str, module: str, extra: str) -> Failure:
    """Return the failure that says that ``what`` requires a module of an extra, and how to install it."""
    return Failure(f"{what} requires {module}, which is not installed; run `{install_command(extra)}`")


class Group(click.Group):
    """Imports a command when it is asked for, and runs the default one where none is named."""

    def __init__(self, lazy: Mapping[str, tuple[str, str]], default: str, **attrs: Any) -> None:
        super().__init__(**attrs)
        self._lazy = lazy
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands, in the order of their declaration."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, imported now."""
        if cmd_name not in self._lazy:
            return None
        command: click.Command = importlib.import_module(self._lazy[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, from their one-line descriptions, so that none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self._lazy.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command first: options that all commands share may come before it."""
        # While a shell completes the first word, it may yet become the name of a command.
        completing = ctx.resilient_parsing and not args
        return super().parse_args(ctx, args if completing else self._arranged(args, ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what the first word may become: a command, or what the default command takes."""
        default = self.get_command(ctx, self._default)
        assert default is not None
        own = super().shell_complete(ctx, incomplete)
        return [*own, *default.shell_complete(click.Context(default, ctx), incomplete)]

    def _arranged(self, args: list[str], ctx: click.Context) -> list[str]:
        at = 0
        while at < len(args) and args[at].startswith("-"):
            if args[at] in FLAGS or args[at].startswith(tuple(f"{name}=" for name in VALUED)):
                at += 1
            elif args[at] in VALUED:
                at += 2
            else:
                break
        word = args[at] if at < len(args) else ""
        if word in self._lazy:
            return [word, *args[:at], *args[at + 1 :]]
        if word in _HELP:
            return [word]
        if word == "help" and not os.path.lexists(word):
            return [*args[at + 1 :], "--help"]
        if word.isidentifier() and not os.path.lexists(word):
            from torchlint.options import did_you_mean, key, settings

            switches = {key(name) for name, setting in settings().items() if setting.cli}
            hint = f"; did you mean `--{word}`?" if word in switches else did_you_mean(word, self._lazy)
            if hint:
                raise click.UsageError(f"there is no command and no file `{word}`{hint}", ctx)
        return [self._default, *args]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and turn every outcome into an exit status: 2 for misuse and internal errors."""
        prepare_streams()
        failure = None
        try:
            status = super().main(args, prog_name, complete_var, False, **extra) or 0
        except click.UsageError as error:
            failure = Failure(mistakes.told(error))
        except click.ClickException as error:
            failure = Failure(error.format_message())
        except OutputError as error:
            failure = Failure(str(error))
        except (click.Abort, KeyboardInterrupt) as error:
            status = INTERRUPTED
            # For click the end of its input is an interrupt; here nobody is asked anything.
            if isinstance(error.__cause__, EOFError):
                failure = _failure(error.__cause__)
        except Exception as error:
            failure = _failure(error)
        if failure is not None:
            failure.show(color=_color(sys.argv[1:] if args is None else args))
            status = failure.exit_code
        if standalone_mode:
            sys.exit(status)
        return status


def _failure(error: Exception) -> Failure:
    """Return what is told of an exception: the mistake of somebody else, or torchlint's own."""
    # Imported here, so that `--help` need not.
    from torchlint.config import ConfigError
    from torchlint.registry import RegistryError
    from torchlint.runner import PoolError

    told = isinstance(error, (ConfigError, RegistryError, PoolError))
    return Failure(str(error)) if told else _crash(error)


def _crash(error: Exception) -> Failure:
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    if os.environ.get("TORCHLINT_BACKTRACE"):
        traceback.print_exception(error)
        hint = "please report it with the lines above"
    else:
        hint = "please report it; TORCHLINT_BACKTRACE=1 shows the details"
    return Failure(f"torchlint {__version__} failed: {type(error).__name__}: {error} ({where}); {hint}")


def _color(arguments: Sequence[str]) -> str:
    """Return what ``--color`` says, for an error that came before or instead of reading the arguments."""
    said = [word for word in ("always", "never") if f"--color={word}" in arguments]
    pairs = pairwise(arguments)
    said += [value for flag, value in pairs if flag == "--color" and value in ("always", "never")]
    return said[-1] if said else "auto"


def build(lazy: Mapping[str, tuple[str, str]], default: str) -> Group:
    """Return the whole command line as a click group."""
    group = Group(
        lazy,
        default,
        name="torchlint",
        help="Finds the lines that make PyTorch programs slow, and fixes them.",
        subcommand_metavar="[COMMAND] [ARGS]...",
        epilog=(
            "`torchlint [PATH]…` is short for `torchlint check [PATH]…`; `torchlint check --help` "
            "lists its options."
        ),
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    click.version_option(
        __version__, "-V", "--version", prog_name="torchlint", message="%(prog)s %(version)s"
    )(group)
    return group
