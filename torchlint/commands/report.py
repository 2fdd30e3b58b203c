"""``torchlint report``: a static site about what is found in many repositories."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from torchlint.commands import Failure, not_installed
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, absolute_config, shared_parameters
from torchlint.files import absolute
from torchlint.source import SourceError

_EXTRAS = {"jinja2": "report", "distributed": "dask"}


def _run(
    folders: tuple[Path, ...],
    output: Path,
    jobs: int,
    engine: str,
    resume: bool,
    limit: float,
    no_cache: bool,
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    configs: tuple[str, ...],
    isolated: bool,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    for module in ("jinja2", *(["distributed"] if engine == "dask" else [])):
        if importlib.util.find_spec(module) is None:
            raise not_installed("a report", module, _EXTRAS[module])
    from torchlint.commands.progress import Progress
    from torchlint.report.records import ForeignFolderError, Shelf, names
    from torchlint.report.site import Site
    from torchlint.report.survey import Wish, surveyed

    arguments = [f"--config={absolute_config(config)}" for config in configs]
    arguments += ["--isolated"] if isolated else []
    arguments += ["--no-cache"] if no_cache else []
    wanted = names([*dict.fromkeys(map(absolute, folders))])
    failed = 0
    try:
        shelf = Shelf(absolute(output))
        site = Site(shelf)
    except ForeignFolderError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{output} cannot be written: {error.strerror}") from error
    before = shelf.history[-1]["finished"] if shelf.history else ""
    missing = {}
    for folder, name in wanted.items():
        known = shelf.get(name) if resume else None
        if known is not None and known.checked > before and not known.error:
            site.add(known)
        else:
            missing[folder] = name
    if len(missing) < len(wanted):
        terminal.debug(f"{len(wanted) - len(missing)} repositories are checked already")
    watched = terminal.interactive and not (terminal.quiet or terminal.silent)
    try:
        with Progress(len(wanted), enabled=watched) as progress, terminal.listening():
            surveys = surveyed(missing, Wish(tuple(arguments), limit), jobs, engine)
            for done, record in enumerate(surveys, len(wanted) - len(missing) + 1):
                shelf.put(record)
                site.add(record)
                if record.error:
                    failed += 1
                    terminal.warn(f"{record.folder} was not checked: {record.error}")
                terminal.debug(f"{record.folder}: {record.seconds:.1f} s")
                progress(done, len(wanted))
        site.finish()
    except SourceError as error:
        raise Failure(f"the report in {output} cannot be written: {error}") from None
    if not quiet:
        told = "1 repository" if len(wanted) == 1 else f"{len(wanted)} repositories"
        terminal.out(f"Wrote {output / 'index.html'} about {told}.\n")
    raise click.exceptions.Exit(int(failed > 0))


command = click.Command(
    "report",
    callback=_run,
    help="Write a static site about what is found in many repositories: totals by rule and team and over "
    "time, the files with the most at stake, and a page for each repository. FOLDER is a checkout; the "
    "folder that it is in counts as its team.\n\nExits with 0, with 1 if a repository could not be checked, "
    "which the site says, or with 2 on invalid usage.",
    params=[
        click.Argument(
            ["folders"], nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER..."
        ),
        click.Option(
            ["-o", "--output"],
            required=True,
            type=click.Path(path_type=Path, file_okay=False),
            metavar="FOLDER",
            help="Where the site is written. It is compared with earlier reports in the same folder.",
        ),
        click.Option(
            ["-j", "--jobs"],
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="How many repositories are checked at a time; 0 means one per processor.",
        ),
        click.Option(
            ["--engine"],
            type=Choice(["local", "dask"]),
            default="local",
            help="What runs the checks: processes on this machine, or Dask, which also uses other machines "
            "if DASK_SCHEDULER_ADDRESS names their scheduler and they see the same folders.",
        ),
        click.Option(
            ["--resume"],
            is_flag=True,
            help="Continue a report that was interrupted: keep what it has checked, and check the rest.",
        ),
        click.Option(
            ["--timeout", "limit"],
            type=click.FloatRange(min=0, min_open=True),
            default=600.0,
            metavar="SECONDS",
            help="How long the check of one repository may take (default: 600).",
        ),
        click.Option(["-n", "--no-cache"], is_flag=True, help="Do not use results of earlier checks."),
        *shared_parameters(),
    ],
)
