"""The magics ``%torchlint`` and ``%%torchlint`` of IPython and Jupyter.

A cell is checked together with those that ran before it, in the order in which they ran: that is the program.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import UsageError

from torchlint import registry, runner
from torchlint.config import ConfigError, Resolver
from torchlint.diagnostics import Diagnostic, Impact
from torchlint.options import convert, did_you_mean
from torchlint.render import full, summary
from torchlint.render.report import Report
from torchlint.runner import Mode
from torchlint.scope import Advice, Scope
from torchlint.source import Source

_NAME = "notebook.ipynb"


class _Parser(argparse.ArgumentParser):
    """Tells a mistake as IPython does, instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        known = [option for action in self._actions for option in action.option_strings]
        unknown = message.removeprefix("unrecognized arguments: ")
        hint = did_you_mean(unknown.split()[0], known) if unknown != message else ""
        raise UsageError(f"{self.prog}: {message}{hint}")


def _parser(name: str) -> _Parser:
    parser = _Parser(prog=name, add_help=False)
    parser.add_argument("--select", metavar="RULES", help="check these rules only, separated by commas")
    parser.add_argument("--impact", choices=[impact.label for impact in Impact])
    if name.startswith("%%"):
        parser.add_argument("--fix", action="store_true")
        parser.add_argument("--unsafe-fixes", action="store_true")
    return parser


def load(shell: Any) -> None:
    """Register the magics with a running IPython."""
    magics = _Magics(shell)
    shell.register_magic_function(magics.line, "line", "torchlint")
    shell.register_magic_function(magics.cell, "cell", "torchlint")


class _Magics:
    """The two magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def line(self, line: str) -> None:
        """Show what is found in all cells that ran so far.

        Usage: %torchlint [--select RULES] [--impact low|medium|high]
        """
        given = _parser("%torchlint").parse_args(shlex.split(line))
        cells = self._ran()
        report, _ = _checked(cells, given, Scope())
        print(_shown(report), end="")

    def cell(self, line: str, cell: str) -> None:
        """Show what is found in this cell, and run it.

        Usage: %%torchlint [--select RULES] [--impact low|medium|high] [--fix] [--unsafe-fixes]

        With --fix the fixed cell takes the place of this one, and is not run yet.
        """
        given = _parser("%%torchlint").parse_args(shlex.split(line))
        head = f"%%torchlint {line}".rstrip() + "\n"
        cells = self._ran()
        # The history may have the cell already, as it was typed.
        if not (cells and cells[-1].startswith("%%torchlint") and cells[-1].rstrip().endswith(cell.rstrip())):
            cells.append(head + cell)
        row = _row(len(cells))
        report, source = _checked(cells, given, Scope(((row, row),)), fixes=given.fix)
        print(_shown(report), end="")
        if not given.fix:
            self._shell.run_cell(cell)
            return
        part = None if source is None else source.part(len(cells))
        if part is not None and report.applied:
            self._shell.set_next_input(part.text.partition("\n")[2], replace=True)

    def _ran(self) -> list[str]:
        """Return the cells that ran so far, by their numbers from 1 on."""
        return [str(text) for text in self._shell.history_manager.input_hist_raw[1:]]


def _row(number: int) -> int:
    """Return the line of `_book` that holds the cell of a number."""
    return number + 1


def _book(cells: Sequence[str]) -> bytes:
    """Return a notebook of these code cells, each on a line of its own."""
    lines = [
        json.dumps(
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        )
        for cell in cells
    ]
    listed = ",\n".join(lines)
    return f'{{"nbformat": 4, "nbformat_minor": 4, "metadata": {{}}, "cells": [\n{listed}\n]}}'.encode()


def _checked(
    cells: Sequence[str], given: argparse.Namespace, scope: Scope, *, fixes: bool = False
) -> tuple[Report, Source | None]:
    """Return what is found in these cells, as far as ``scope`` says,
    by the settings of the working directory.
    """
    directory, rules = Path.cwd(), registry.catalogue()
    chosen: dict[str, Any] = {name: value for name, value in vars(given).items() if value}
    chosen.pop("fix", None)
    if "select" in chosen:
        words = [word.strip() for word in chosen["select"].split(",") if word.strip()]
        chosen["select"] = convert("select", words, directory)
    try:
        resolver = Resolver(rules, chosen, directory=directory)
        path = directory / _NAME
        settings = resolver.lint(path)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    options = resolver.run.options
    mode = Mode(
        fix=fixes,
        scopes={path: scope},
        impact=options.least,
        advice=Advice(options.advice),
    )
    result, source = runner.run_text(_book(cells), path, settings, mode)
    if fixes and source is not None and not _only_in(source, cells):
        # What the cells above would have to take part in is left to the reader.
        result, source = runner.run_text(_book(cells), path, settings, mode.looking)
    found: list[Diagnostic] = [
        item for item in result.diagnostics if mode.advice is Advice.COUNTED or not item.advice
    ]
    return (
        Report(
            diagnostics=tuple(sorted(found, key=lambda item: item.sort_key)),
            source=lambda _: source,
            rules=rules,
            applied={path: result.applied} if result.applied else {},
            unsafe_fixes=options.unsafe_fixes,
            later=result.later.total(),
            settled=result.settled.total(),
            hidden=result.hidden,
            least=options.least,
        ),
        source,
    )


def _only_in(source: Source, cells: Sequence[str]) -> bool:
    """Return whether nothing but the last of the cells was changed."""
    before = {number: text for number, text in enumerate(cells, start=1) if number < len(cells)}
    return all(part.text == before.get(part.cell or 0, part.text) for part in source.parts)


def _shown(report: Report) -> str:
    """Return the findings and the totals, as terminals show them."""
    return full.render(report) + summary.render(report)
