"""``torchlint bench``: what the fixes of rules are worth here, measured on each rule's own case."""

from __future__ import annotations

from typing import Any

import click

from torchlint import registry, selectors
from torchlint.commands import INTERRUPTED, Failure, completion
from torchlint.commands.measuring import measured, parameters, requirements, settings, tell, watching
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters

_SIZES = ("small", "medium", "large")
_SECONDS = 7.5
"""The budget of one case in one size, where nobody gives one for all."""


def _run(
    names: tuple[str, ...],
    sizes: tuple[str, ...],
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    configs: tuple[str, ...],
    isolated: bool,
    **options: Any,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    rules = registry.catalogue()
    try:
        wanted = selectors.expand_all(names, rules) if names else frozenset(rules)
    except selectors.UnknownSelectorError as error:
        raise Failure(str(error)) from None
    with requirements(options):
        from torchlint.verify.cases import cases
        from torchlint.verify.runs import Run

        found = cases(sorted(wanted))
        for code in sorted(wanted - {case.code for case in found}) if names else ():
            terminal.warn(f"{code} has no effect on speed or memory, and no benchmark")
        if not found:
            raise Failure("none of these rules has a benchmark")
        with watching(terminal) as progress:
            count = sum(not sizes or size in sizes for case in found for size in case.sizes)
            run = Run("bench", settings(options, _SECONDS * count), progress)
            results = measured(run, lambda: run.bench(found, sizes))
        tell(terminal, results, options)
        if results.interrupted:
            raise click.exceptions.Exit(INTERRUPTED)
        raise click.exceptions.Exit(int(_refuted(results)))


def _refuted(results: Any) -> bool:
    """Return whether a case failed, or its fix changed the results or made it slower."""
    from torchlint.verify.results import Verdict

    bad = (Verdict.REJECTED, Verdict.SLOWER)
    return any(
        not measurement.comparisons or any(item.verdict in bad for item in measurement.comparisons)
        for measurement in results.measurements
    )


command = click.Command(
    "bench",
    callback=_run,
    help="Measure the effect of the fix of each rule on this machine. For each RULE (a code, a prefix or "
    "a name; by default all) a small program is run before and after torchlint's fix, in three "
    "sizes.\n\nExits with 0, with 1 if a fix changes the results or makes the program slower, or with "
    "2 if nothing could be measured.",
    params=[
        click.Argument(["names"], nargs=-1, metavar="[RULE]...", shell_complete=completion.rule_names),
        click.Option(
            ["--size", "sizes"],
            multiple=True,
            type=Choice(_SIZES),
            help="Only run this size. May be repeated.",
        ),
        *parameters(f"{_SECONDS:g} per case and size"),
        *shared_parameters(),
    ],
)
