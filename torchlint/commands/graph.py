"""``torchlint graph``: the files of a project, what each of them is, and what it imports from the others."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint import registry
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.config import Resolver
from torchlint.files import absolute, discover
from torchlint.project.graph import node
from torchlint.project.index import Index
from torchlint.project.roots import root_of, source_folders
from torchlint.render.graph import FORMATS


def _run(
    paths: tuple[Path, ...],
    output_format: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    color: str,
    **_: object,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    resolver = Resolver(registry.catalogue(), {}, (), isolated=False, directory=Path.cwd())

    def found(under: tuple[Path, ...]) -> tuple[Path, ...]:
        discovery = discover(under, lambda place: resolver.settings(place).options)
        for warning in discovery.warnings:
            terminal.warn(warning)
        return discovery.files

    wanted: dict[Path, list[Path]] = {}
    for file in found(tuple(map(absolute, paths or (Path(),)))):
        wanted.setdefault(root_of(file), []).append(file)
    if not wanted:
        terminal.warn("No Python files found under the given path(s)")
    for root, files in wanted.items():
        index = Index(source_folders(root), found((root,)))
        terminal.out(FORMATS[output_format](root, [node(index, file) for file in files]))


command = click.Command(
    "graph",
    callback=_run,
    help="Show the files under PATHS, what torchlint takes each of them for, and what it imports from other "
    "files of its project. Nothing is executed.",
    params=[
        click.Argument(["paths"], nargs=-1, type=click.Path(path_type=Path, exists=True)),
        click.Option(
            ["--output-format"],
            type=Choice(list(FORMATS)),
            default="text",
            show_default=True,
            help="Text to read, JSON, or a picture for Graphviz or Mermaid.",
        ),
        *shared_parameters(),
    ],
)
