"""``torchlint verify``: what the fixes of a script are worth, measured on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from torchlint import registry
from torchlint.commands import INTERRUPTED, Failure, completion, mistakes
from torchlint.commands.measuring import measured, parameters, requirements, settings, tell, watching
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.config import Resolver

if TYPE_CHECKING:
    from torchlint.source import Source
    from torchlint.verify.launch import Launch
    from torchlint.verify.results import Results
    from torchlint.verify.runs import Run

_BUDGET = 120.0


def _run(
    script: Path,
    as_module: bool,
    arguments: tuple[str, ...],
    select: tuple[str, ...],
    unsafe_fixes: bool,
    each_place: bool,
    entry: str,
    links: tuple[str, ...],
    nproc: int,
    apply: bool,
    syncs: bool,
    report_unpredicted: Path | None,
    trace: Path | None,
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    configs: tuple[str, ...],
    isolated: bool,
    **options: Any,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    if _is_launched(str(script), arguments) and not as_module:
        launch = _launched(arguments[1:], options["device"], nproc)
        options["device"] = "cpu" if launch.on_cpu and options["device"] == "auto" else options["device"]
        script, as_module, arguments = Path(launch.program), launch.module, launch.arguments
        nproc, started = launch.ranks, launch.told
        click.get_current_context().with_resource(launch.environment())
    else:
        started = ""
    search: Path | None = None
    module = str(script) if as_module else ""
    if as_module:
        script, search = _found(module)
    if not script.is_file():
        reason = "is a directory; `verify` runs a script" if script.is_dir() else "no such file"
        raise Failure(f"{script}: {reason}")
    if apply and syncs:
        raise click.UsageError("`--apply` cannot be combined with `--syncs`, which measures no fixes")
    if report_unpredicted and not syncs:
        raise click.UsageError("`--report-unpredicted` requires `--syncs`")
    if trace and syncs:
        raise click.UsageError("`--trace` cannot be combined with `--syncs`, which runs no fixes")
    given: dict[str, Any] = {"unsafe_fixes": True} if unsafe_fixes else {}
    if select:
        given["select"] = tuple(word for text in select for word in text.split(","))
    resolver = Resolver(registry.catalogue(), given, configs, isolated=isolated)
    # What is wrong with the configuration is said now, and not when the program has run.
    resolver.lint(script)
    with requirements(options, report_unpredicted, trace):
        from torchlint.source import SourceError
        from torchlint.verify import predictions, variants
        from torchlint.verify.runs import Run
        from torchlint.verify.scratch import Scratch
        from torchlint.verify.subjects import Script
        from torchlint.verify.workspace import Workspace

        def settings_for(source: Source) -> Any:
            return resolver.lint(source.path)

        with Scratch() as folder, watching(terminal) as progress:
            try:
                workspace = Workspace(script, folder, links=links, root=search)
                program = Script(
                    workspace,
                    arguments,
                    device=options["device"],
                    entry=entry,
                    module=module,
                    search=search,
                    ranks=nproc,
                    started=started,
                )
            except SourceError as error:
                raise Failure(f"{script}: {error.reason}") from None
            except ValueError as error:
                raise Failure(str(error)) from None
            run = Run("verify", settings(options, _BUDGET), progress)
            if syncs:
                report = lambda seen, ran, sources: predictions.join(seen, ran, sources, settings_for)  # noqa: E731
                results = measured(run, lambda: run.syncs(program, folder, report))
            else:
                forms = lambda sources: variants.forms(sources, settings_for, each_place=each_place)  # noqa: E731
                results = measured(
                    run,
                    lambda: run.verify(
                        program,
                        folder,
                        forms,
                        traced=trace is not None,
                        drawn=options["html_file"] is not None,
                    ),
                )
            sources = program.sources(run.modules)
        tell(terminal, results, options)
        if report_unpredicted:
            report_of = predictions.unpredicted(results, sources)
            if report_of:
                terminal.save(report_unpredicted, report_of)
            else:
                terminal.out(
                    f"\n{report_unpredicted} was not written: no wait was seen without a prediction.\n"
                )
        if trace:
            _trace(terminal, trace, run, sources, settings_for)
        if apply and not results.interrupted:
            _apply(terminal, results, sources, settings_for)
    if results.interrupted:
        raise click.exceptions.Exit(INTERRUPTED)
    raise click.exceptions.Exit(_status(results))


def _trace(
    terminal: Terminal, path: Path, run: Run, sources: Mapping[PurePosixPath, Source], settings_for: Any
) -> None:
    """Write the timeline of a step, and say what of it is missing."""
    from torchlint.verify import timeline

    lacking = [f"{item.name}: {item.missing}" for item in run.recordings if item.missing]
    if len(lacking) < len(run.recordings):
        by_name = {timeline.BEFORE: sources, timeline.AFTER: run.after(sources)}
        terminal.save(path, timeline.trace(run.recordings, by_name, settings_for))
        for text in lacking:
            terminal.out(f"\n{path} lacks the step {text}.\n")
    else:
        reason = "; ".join(lacking) or "the run ended before a step was recorded"
        terminal.out(f"\n{path} was not written: {reason}.\n")


def _is_launched(script: str, arguments: Sequence[str]) -> bool:
    """Return whether the program is given as it is started by accelerate."""
    return (script, *arguments[:1]) == ("accelerate", "launch")


def _launched(words: Sequence[str], device: str, nproc: int) -> Launch:
    """Return what ``accelerate launch WORDS`` starts."""
    from torchlint.verify.launch import accelerate

    if nproc > 1:
        raise click.UsageError(
            "`--nproc` cannot be combined with `accelerate launch`, whose `--num_processes` says how many "
            "processes there are"
        )
    try:
        return accelerate(words, device)
    except ValueError as error:
        raise Failure(str(error)) from None


def _found(module: str) -> tuple[Path, Path]:
    """Return the file of a module that ``python -m`` would run, and where it is imported from."""
    from torchlint.verify.subjects import module_file

    folders = [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    found = module_file(module, [Path.cwd(), *folders])
    if found is None:
        raise Failure(f"no module {module} in this folder or on PYTHONPATH")
    return found


def _status(results: Results) -> int:
    """Return 1 if the fixes together change the results or make it slower, 2 if nothing could be measured."""
    from torchlint.verify.results import TOGETHER, Verdict

    reports = [measurement.syncs for measurement in results.measurements if measurement.syncs is not None]
    if any(report.missing and not report.rows for report in reports):
        return 2
    found = [item for measurement in results.measurements for item in measurement.comparisons]
    if any(item.variant == TOGETHER and item.verdict in (Verdict.REJECTED, Verdict.SLOWER) for item in found):
        return 1
    return 2 if found and all(item.verdict in (Verdict.UNFIT, Verdict.UNMEASURED) for item in found) else 0


def _apply(
    terminal: Terminal, results: Results, sources: Mapping[PurePosixPath, Source], settings_for: Any
) -> None:
    """Write the fixes that have proved their worth into the user's files."""
    from torchlint.source import SourceError, write_atomically
    from torchlint.verify import judge, variants

    names = judge.proven(results.measurements[0])
    texts = variants.accepted(sources, settings_for, names) if names else {}
    if not texts:
        terminal.out("\nNo fixes were applied: none kept the results and was faster or used less memory.\n")
        return
    for path, text in texts.items():
        source = sources[path]
        try:
            write_atomically(source.path, source.encode(text), source.encode(source.text))
        except SourceError as error:
            raise Failure(f"{source.path} cannot be written: {error.reason}") from None
        terminal.out(f"\nApplied to {source.path}: {', '.join(sorted(names))}\n")


class _Command(click.Command):
    """Says where the program's own options belong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with a hint for an option that is not torchlint's."""
        given = list(args)
        for place, word in enumerate(args):
            if word == "--":
                break
            if _is_launched(word, args[place + 1 : place + 2]):
                # What follows are accelerate's options and those of the program.
                args.insert(place, "--")
                break
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            script = next((word for word in given if word.endswith(".py")), "SCRIPT")
            hint = f"options of the program follow `--`: `verify {script} -- {error.option_name} …`"
            raise click.UsageError(f"{mistakes.message(error)}\n{hint}", ctx) from None


command = _Command(
    "verify",
    callback=_run,
    help="Measure the effect of fixes on a program on this machine. SCRIPT, a file or notebook, is run with "
    "ARGS, both unchanged and with fixes, in copies of its project. The project itself is not modified, "
    "except by --apply; files that the program writes at absolute paths are not redirected.\n\nA step is a "
    "step of the first optimizer, or, in programs that only run inference, a call of the model. All "
    "fixes are measured together, and those of each rule separately.\n\nExits with 0, with 1 if the "
    "fixes change the results or make the program slower, or with 2 if the program fails or nothing "
    "could be measured.\n\nAfter `accelerate launch`, everything is accelerate's or the program's: "
    "`torchlint verify --budget 300 accelerate launch --mixed_precision bf16 train.py ARGS`.",
    params=[
        click.Argument(["script"], type=click.Path(path_type=Path)),
        click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]..."),
        click.Option(
            ["-m", "as_module"],
            is_flag=True,
            help="SCRIPT is the name of a module, which is run as `python -m` does.",
        ),
        click.Option(
            ["--select"],
            multiple=True,
            metavar="RULE,…",
            shell_complete=completion.selectors,
            help="Only measure the fixes of these rules.",
        ),
        click.Option(["--unsafe-fixes"], is_flag=True, help="Also measure unsafe fixes."),
        click.Option(
            ["--each-place"], is_flag=True, help="Measure each fix separately instead of each rule."
        ),
        click.Option(
            ["--entry"],
            default="",
            metavar="[MODULE:]FUNCTION",
            help="A function whose calls count as steps, if no steps are found.",
        ),
        click.Option(
            ["--link", "links"],
            multiple=True,
            metavar="PATH",
            help="A path that the program only reads, to link instead of copying: a large folder of the "
            "project, or data next to it. May be repeated.",
        ),
        click.Option(
            ["--nproc"],
            type=click.IntRange(1),
            default=1,
            metavar="N",
            help="Run the program in N processes, as `torchrun --nproc-per-node N` does; the slowest one "
            "counts.",
        ),
        click.Option(
            ["--apply"],
            is_flag=True,
            help="Apply the fixes that kept the results and were faster or used less memory.",
        ),
        click.Option(
            ["--syncs"],
            is_flag=True,
            help="Instead of timing, run the program once, to its end or until the time limit, and compare "
            "where it synchronizes with the device with what torchlint reports.",
        ),
        click.Option(
            ["--report-unpredicted"],
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="With --syncs, write the lines that waited without being predicted to this file, with the "
            "lines around them, to send them to torchlint's authors.",
        ),
        click.Option(
            ["--trace"],
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write a timeline of one step before and after the fixes to this file, for Perfetto or "
            "chrome://tracing, with torchlint's findings marked where their lines run.",
        ),
        *parameters(_BUDGET),
        *shared_parameters(),
    ],
)
