"""``torchlint graph``: the files of a project, what each of them is, and what it imports from the others."""

from __future__ import annotations

from pathlib import Path

import click

from torchlint import registry
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.config import Resolver
from torchlint.files import absolute, discover
from torchlint.options import Options
from torchlint.project.graph import node
from torchlint.project.layout import Layout, Layouts
from torchlint.render.graph import FORMATS
from torchlint.render.report import plural


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

    def options_for(place: Path) -> Options:
        return resolver.settings(place).options

    discovery = discover(tuple(map(absolute, paths or (Path(),))), options_for)
    for warning in discovery.warnings:
        terminal.warn(warning)
    layouts = Layouts(options_for)
    wanted: dict[Path, tuple[Layout, list[Path]]] = {}
    alone = 0
    for file in discovery.files:
        layout = layouts.around(file)
        if file in layout.members:
            wanted.setdefault(layout.root, (layout, []))[1].append(file)
        else:
            alone += 1
    if alone:
        terminal.warn(f"{plural(alone, 'file')} skipped: excluded from the project, or too many files")
    elif not wanted:
        terminal.warn("No Python files found under the given path(s)")
    graphs = []
    for root, (layout, files) in wanted.items():
        index = layout.index()
        graphs.append(FORMATS[output_format](root, [node(index, file) for file in files], index.library))
    terminal.out(("\n" if output_format == "text" else "").join(graphs))


command = click.Command(
    "graph",
    callback=_run,
    help="Show the files under PATH, their roles in the project, and which other files of the project "
    "they import. Nothing is executed.",
    params=[
        click.Argument(
            ["paths"], nargs=-1, type=click.Path(path_type=Path, exists=True), metavar="[PATH]..."
        ),
        click.Option(
            ["--output-format"],
            type=Choice(list(FORMATS)),
            default="text",
            show_default=True,
            help="The output format: text, JSON, or a graph for Graphviz or Mermaid.",
        ),
        *shared_parameters(),
    ],
)
