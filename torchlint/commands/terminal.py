"""What every command shares: the options about the run itself, colour, and the two output streams."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from torchlint.commands import completion
from torchlint.commands.mistakes import Choice

FLAGS = frozenset(
    {"--isolated", "-q", "--quiet", "-s", "--silent", "-v", "--verbose"},
)
"""Shared options without a value; they may come before the command."""

VALUED = frozenset({"--config", "--color"})
"""Shared options with a value; they may come before the command."""


def shared_parameters() -> list[click.Parameter]:
    """Return the options that every command takes."""
    return [
        click.Option(
            ["--config", "configs"],
            multiple=True,
            metavar="FILE|KEY=VALUE",
            shell_complete=completion.config_values,
            help="A config file to use instead of those found automatically, or a key and value in TOML, "
            "which override every file. May be repeated.",
        ),
        click.Option(["--isolated"], is_flag=True, help="Ignore all config files."),
        click.Option(
            ["--color"],
            type=Choice(["auto", "always", "never"]),
            default="auto",
            help="When to color the output; auto respects NO_COLOR and FORCE_COLOR.",
        ),
        click.Option(["-v", "--verbose"], is_flag=True, help="Print details to standard error."),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print findings only."),
        click.Option(["-s", "--silent"], is_flag=True, help="Print nothing; only set the exit status."),
    ]


def absolute_config(config: str) -> str:
    """Return a ``--config`` value as it is understood in any folder."""
    path = Path(config).expanduser()
    return str(path.absolute()) if path.is_file() else config


WINDOWS = os.name == "nt"


def prepare_streams() -> None:
    """Make standard output and standard error take all that may be written to them, as it is.

    A name or a source line that the encoding lacks must not end the run. On Windows text is UTF-8 whatever
    the code page, and a line ends as in the program: a patch must.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
            if WINDOWS:
                reconfigure(encoding="utf-8", newline="\n")


# Standard output and standard error as Windows numbers them, and the switch of its consoles.
_HANDLES = (-11, -12)
_PROCESS_ESCAPES = 0x4


def _understands_escapes() -> bool:
    """Return whether the console can show colours; on Windows it has to be told to, and old ones cannot."""
    if not WINDOWS:
        return True
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    understood = False
    for number in _HANDLES:
        handle, mode = kernel.GetStdHandle(number), ctypes.c_ulong()
        if kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            understood = bool(kernel.SetConsoleMode(handle, mode.value | _PROCESS_ESCAPES))
            if not understood:
                return False
    return understood


class OutputError(Exception):
    """What a run has to say cannot be written where it is wanted."""


def _follows_links(environ: Mapping[str, str]) -> bool:
    """Return whether the environment is that of a terminal that is known to follow links (OSC 8).

    The others print the sequence as it is, or part of it.
    """
    if "CI" in environ or environ.get("TERM") == "dumb" or environ.get("TERM", "").startswith("screen"):
        return False
    version = environ.get("VTE_VERSION", "")
    return (
        (version.isdecimal() and int(version) >= 5000)
        or environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or environ.get("TERM") in _LINKING_TERMS
        or any(name in environ for name in ("DOMTERM", "KONSOLE_VERSION", "WT_SESSION"))
    )


_LINKING_PROGRAMS = frozenset({"Hyper", "WezTerm", "ghostty", "iTerm.app", "terminology", "vscode"})
_LINKING_TERMS = frozenset({"alacritty", "foot", "xterm-ghostty", "xterm-kitty"})


@dataclass
class Terminal:
    """Standard output and standard error of one run, and how much may be said on them.

    ``color`` is ``auto``, ``always`` or ``never``. A reader that closes the pipe early ends the output
    and not the run: the exit status stays what it would have been.
    """

    color: str = "auto"
    verbose: bool = False
    quiet: bool = False
    silent: bool = False

    def colored(self, stream: TextIO) -> bool:
        """Return whether colour goes to ``stream``: the flag decides, then NO_COLOR, FORCE_COLOR,
        the terminal.
        """
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        return bool(os.environ.get("FORCE_COLOR")) or (is_terminal(stream) and _understands_escapes())

    def hyperlinks(self, stream: TextIO) -> bool:
        """Return whether the terminal behind ``stream`` follows links: FORCE_HYPERLINK decides,
        then what it is.
        """
        forced = os.environ.get("FORCE_HYPERLINK")
        if forced:
            return forced != "0"
        return self.color != "never" and is_terminal(stream) and _follows_links(os.environ)

    @property
    def width(self) -> int:
        """The number of columns for source lines: the terminal's, 160 where there is none."""
        import shutil

        return max(40, shutil.get_terminal_size().columns) if is_terminal(sys.stdout) else 160

    @property
    def interactive(self) -> bool:
        """Whether somebody watches standard error."""
        return is_terminal(sys.stderr)

    def out(self, text: str | bytes) -> None:
        """Write to standard output."""
        if not self.silent:
            _write(sys.stdout, text)

    def err(self, text: str) -> None:
        """Write to standard error."""
        if not self.silent:
            _write(sys.stderr, text)

    def clear(self) -> None:
        """Empty the screen, if standard output is one."""
        if not self.silent and is_terminal(sys.stdout):
            click.clear()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Print what torchlint's modules log in this process if ``--verbose`` asks for it,
        tracebacks of rules too.
        """
        if not self.verbose:
            yield
            return
        import logging

        logger, handler = logging.getLogger("torchlint"), logging.StreamHandler(sys.stderr)

        class Formatter(logging.Formatter):
            def format(self, record: logging.LogRecord) -> str:
                from torchlint.render.report import visible_lines

                return visible_lines(super().format(record))

        handler.setFormatter(Formatter("debug: %(message)s"))
        level = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)

    def warn(self, message: str) -> None:
        """Print a warning on standard error."""
        self._say("warning", "yellow", message)

    def debug(self, message: str) -> None:
        """Print what is going on on standard error, with ``--verbose``."""
        if self.verbose:
            self._say("debug", "blue", message)

    def _say(self, word: str, color: str, message: str) -> None:
        from torchlint.render.report import visible_lines

        head = click.style(word, fg=color, bold=True) if self.colored(sys.stderr) else word
        self.err(f"{head}: {visible_lines(message)}\n")

    def save(self, path: Path, text: str) -> None:
        """Write a report to a file.

        Raises:
            OutputError: the file cannot be written.
        """
        with self.sink(path) as write:
            write(text)

    @contextmanager
    def sink(self, path: Path | None) -> Iterator[Callable[[str], None]]:
        """Yield a function that writes the next part of a report at once, to a file or to standard output.

        Raises:
            OutputError: the file cannot be written.
        """
        if path is None:
            yield self.out
            return
        with self._written(path):
            file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")

        def write(text: str) -> None:
            with self._written(path):
                file.write(text)
                file.flush()

        try:
            yield write
        finally:
            with self._written(path):
                file.close()

    @staticmethod
    @contextmanager
    def _written(path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from error


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody watches what is written to ``stream``."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _write(stream: TextIO | None, text: str | bytes) -> None:
    if stream is None:  # closed by whoever started the process
        return
    try:
        if isinstance(text, bytes):
            stream.flush()
            stream.buffer.write(text)
            stream.buffer.flush()
        else:
            stream.write(text)
            stream.flush()
    except OSError as error:
        # What comes later, and the flush when the process ends, must find a stream that takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Windows calls it an invalid argument if the reader of a pipe has gone.
        if not (isinstance(error, BrokenPipeError) or (WINDOWS and error.errno == errno.EINVAL)):
            raise OutputError(f"cannot write the output: {error.strerror}") from error
