"""What ``bench`` and ``verify`` share: the options about measuring, the progress, the reports."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint.commands.terminal import OutputError, Terminal
from torchlint.installation import install_command

if TYPE_CHECKING:
    from torchlint.verify.measure import Settings
    from torchlint.verify.results import Results
    from torchlint.verify.runs import Run


def parameters(budget: float | str) -> list[click.Parameter]:
    """Return the options that both commands take.

    ``budget`` is the default of ``--budget``, or says what it is where it depends on the other arguments.
    """
    path = click.Path(path_type=Path, dir_okay=False)
    return [
        click.Option(
            ["--device"],
            default="auto",
            metavar="DEVICE",
            help="The device: cpu, cuda, cuda:1 or mps; by default the best available.",
        ),
        click.Option(
            ["--steps"],
            type=click.IntRange(min=2),
            metavar="N",
            help="Steps to time in each process; by default blocks of at least 10 steps and 250 ms, until "
            "the verdict is clear or the time is up.",
        ),
        click.Option(
            ["--warmup"],
            type=click.IntRange(min=0),
            metavar="N",
            help="Number of warm-up steps; by default 10 to 40 within half a second, or 4 if they are long.",
        ),
        click.Option(
            ["--replicates"],
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of fresh processes per variant; by default 2, and more where processes "
            "differ until the verdicts are clear.",
        ),
        click.Option(
            ["--budget"],
            type=click.FloatRange(min=1),
            default=None if isinstance(budget, str) else budget,
            show_default=budget if isinstance(budget, str) else True,
            metavar="SECONDS",
            help="Time limit of the measurement; skipped variants are reported.",
        ),
        click.Option(
            ["--tolerance"],
            type=click.FloatRange(min=0),
            default=1e-3,
            show_default=True,
            metavar="SHARE",
            help="Maximum relative difference of results.",
        ),
        click.Option(
            ["--seed"],
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            metavar="N",
            help="Random seed of the program and of the order of variants.",
        ),
        click.Option(
            ["--json", "json_file"],
            type=path,
            metavar="FILE",
            help="Write all measurements to this file, including raw times.",
        ),
        click.Option(
            ["--html", "html_file"],
            type=path,
            metavar="FILE",
            help="Write an HTML report to this file: a single page that works offline.",
        ),
    ]


@contextmanager
def requirements(options: Mapping[str, Any], *files: Path | None) -> Iterator[None]:
    """Turn a missing library, a system that cannot do it and a program that fails into errors for people.

    What the reports want is asked for first: nobody should wait for a measurement that cannot be kept.
    ``files`` are those that are written beside the reports of the ``options``.

    Raises:
        commands.Failure: one of them.
        OutputError: a file cannot be written.
    """
    from torchlint.commands import Failure, not_installed

    wanted = ["numpy"]
    wanted += ["cattrs"] if options["json_file"] else []
    wanted += ["jinja2", "matplotlib"] if options["html_file"] else []
    for name in wanted:
        if importlib.util.find_spec(name) is None:
            raise not_installed("measuring", name, "verify")
    for path in filter(None, (options["json_file"], options["html_file"], *files)):
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            missing = "there is no such folder" if not path.parent.exists() else "permission denied"
            raise OutputError(f"cannot write {path}: {missing}")

    try:
        from torchlint.verify import processes
    except ImportError as error:
        raise not_installed("measuring", str(error.name), "verify") from error
    if not processes.SUPPORTED:
        raise Failure("measuring is not supported on this system; use Linux or macOS")
    try:
        yield
    except processes.Failure as error:
        absent = "torch" in error.reason and "No module" in error.reason
        hint = f"; run `{install_command('verify')}`" if absent else ""
        raise Failure(f"{error.reason}{hint}") from error
    except ImportError as error:
        raise not_installed("measuring", str(error.name), "verify") from error


def settings(parameters: dict[str, Any], budget: float) -> Settings:
    """Return how to measure, from the options that ``parameters`` made."""
    from torchlint.verify.measure import Settings
    from torchlint.verify.plan import Wishes

    wishes = Wishes(parameters["steps"], parameters["warmup"], parameters["replicates"])
    return Settings(
        device=parameters["device"],
        wishes=wishes,
        budget=parameters["budget"] or budget,
        tolerance=parameters["tolerance"],
        seed=parameters["seed"],
    )


def measured(run: Run, measure: Callable[[], None]) -> Results:
    """Return the results of ``measure``, or what is known of them when Ctrl-C or SIGTERM ends it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measure()
    except KeyboardInterrupt:
        return run.results(interrupted=True)
    return run.results()


def tell(terminal: Terminal, results: Results, parameters: dict[str, Any]) -> None:
    """Print the table, and write the files that were asked for.

    Raises:
        OutputError: a file cannot be written.
    """
    import sys

    from torchlint.render import measurements
    from torchlint.verify.results import dump

    width = terminal.width if sys.stdout.isatty() else 110
    terminal.out(measurements.render(results, width, color=terminal.colored(sys.stdout)))
    if parameters["json_file"]:
        terminal.save(parameters["json_file"], dump(results))
    if parameters["html_file"]:
        from torchlint.verify.report import render

        terminal.save(parameters["html_file"], render(results))


@contextmanager
def watching(terminal: Terminal) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on standard error; with ``--verbose``, a line for each thing done."""
    if terminal.quiet or terminal.silent or not terminal.interactive:
        told = [""]

        def tell(text: str, share: float) -> None:
            if text != told[-1]:
                told.append(text)
                terminal.debug(text)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)
