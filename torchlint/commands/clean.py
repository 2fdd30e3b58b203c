"""``torchlint clean``: delete what earlier runs remembered."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint import options, registry
from torchlint.commands import caching
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.config import Resolver
from torchlint.store import Store, StoreError, default_directory


def _run(
    cache_dir: Path | None,
    configs: tuple[str, ...],
    isolated: bool,
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    given = {} if cache_dir is None else {"cache_dir": cache_dir}
    settings = Resolver(registry.catalogue(), given, configs, isolated=isolated).run
    layer = settings.origin("cache_dir")
    if layer is not None and caching.of_project(layer) and caching.outside(layer):
        raise click.ClickException(caching.refusal(layer))
    directory = settings.options.cache_dir or default_directory()
    if directory is None:
        raise click.ClickException("the user's cache folder was not found; pass --cache-dir")
    try:
        count, size = Store(directory.absolute()).clear()
    except StoreError as error:
        raise click.ClickException(str(error)) from None
    if not quiet:
        files = "file" if count == 1 else "files"
        terminal.out(f"Deleted {count} {files} ({_amount(size)}) from {directory}\n")


def _amount(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"


_CACHE_DIR = options.settings()["cache_dir"]

command = click.Command(
    "clean",
    callback=_run,
    help="Delete the cache of all projects. The next run checks every file again.",
    params=[
        click.Option(
            ["--cache-dir"],
            type=click.Path(path_type=Path),
            metavar=_CACHE_DIR.metavar,
            envvar=_CACHE_DIR.env,
            show_envvar=True,
            help=_CACHE_DIR.help,
        ),
        *shared_parameters(),
    ],
)
