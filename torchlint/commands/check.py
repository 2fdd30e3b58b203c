"""``torchlint check``: find, show and fix."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint import options, stopwatch
from torchlint.commands import caching
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.config import Resolver, Settings
from torchlint.diagnostics import Diagnostic, Severity
from torchlint.files import absolute, discover, repository
from torchlint.options import Kind, LintSettings, Options, Section, Setting
from torchlint.render.report import STDIN, UNTREATED, Report
from torchlint.rule import Rule

if TYPE_CHECKING:
    from torchlint.source import Source

_DASH = Path("-")
_HUMAN = ("full", "concise", "grouped")
_CRASH = "TL000"
# The modules under torchlint.render and the functions of the formats; one is imported when it is needed.
_RENDERERS = {
    **{name: (name, "render") for name in options.FORMATS},
    "json-lines": ("json", "render_lines"),
}
# The formats that counts by rule can be shown in: text, or JSON that is not of somebody else's shape.
_STATISTICS = {
    **dict.fromkeys(("full", "concise", "grouped", "github", "pylint", "azure"), "render"),
    "json": "render_json",
    "json-lines": "render_json_lines",
}


# --- parameters, made from the options dataclass --------------------------------------------------------


def _parameter(name: str, setting: Setting) -> _Option:
    flag = f"--{options.key(name)}"
    names = [*([setting.short] if setting.short else []), flag, name]
    attrs: dict[str, Any] = {"help": setting.help, "default": None, "section": setting.section}
    if setting.env:
        attrs |= {"envvar": setting.env, "show_envvar": True}
    if setting.metavar:
        attrs["metavar"] = setting.metavar
    if setting.kind is Kind.BOOL:
        names = names if setting.switch else [f"{flag}/--no-{options.key(name)}", name]
        return _Option(names, is_flag=True, **attrs)
    if setting.kind in (Kind.RULES, Kind.PATTERNS, Kind.RULES_BY_PATTERN):
        word = "RULE" if setting.kind is Kind.RULES else "GLOB"
        return _Option(names, **{"multiple": True, "metavar": f"{word},…", **attrs, "default": ()})
    kinds: dict[Kind, Any] = {
        Kind.CHOICE: click.Choice(setting.choices),
        Kind.INTEGER: click.IntRange(min=0),
        Kind.PATH: click.Path(path_type=Path),
        Kind.TARGET: click.STRING,
    }
    return _Option(names, type=kinds[setting.kind], **attrs)


class _Option(click.Option):
    """An option that knows its heading in the help."""

    def __init__(self, names: list[str], section: Section, **attrs: Any) -> None:
        super().__init__(names, **attrs)
        self.section = section


class _Command(click.Command):
    """Shows the options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list of options for each heading, the shared ones last."""
        headings: dict[str, list[tuple[str, str]]] = {section.value: [] for section in Section}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                section = parameter.section if isinstance(parameter, _Option) else Section.RUNNING
                headings[section.value].append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records, col_max=34)


def _given(parameters: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The options that the command line or the environment sets, by field name.

    Raises:
        click.UsageError: a value cannot be read.
    """
    given: dict[str, Any] = {}
    for name, setting in options.settings().items():
        value = parameters.get(name)
        if value is None or value == ():
            continue
        if setting.kind in (Kind.RULES, Kind.PATTERNS):
            words = [word.strip() for text in value for word in text.split(",") if word.strip()]
            value = options.convert(name, words, directory)
        elif setting.kind is Kind.RULES_BY_PATTERN:
            value = options.convert(name, _by_pattern(name, value), directory)
        elif setting.kind is Kind.TARGET:
            try:
                value = options.convert(name, value, directory)
            except ValueError as error:
                raise click.UsageError(f"--{options.key(name)}: {error}") from None
        given[name] = value
    return given


def _by_pattern(name: str, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """``GLOB:RULE[,RULE…][,GLOB:RULE…]`` as a table."""
    table: dict[str, list[str]] = {}
    pattern = ""
    for part in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        before, colon, rule = part.rpartition(":")
        if colon:
            pattern = before
        if not pattern or not rule:
            raise click.UsageError(
                f"--{options.key(name)} takes GLOB:RULE, such as `tests/**:TL2`, not `{part}`"
            )
        table.setdefault(pattern, []).append(rule)
    return table


# --- the run -----------------------------------------------------------------------------------------


@dataclass
class _Outcome:
    """What all files of a run gave together."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    enabled: frozenset[str] = frozenset()
    applied: dict[Path, Counter[str]] = field(default_factory=dict)
    diffs: dict[Path, str] = field(default_factory=dict)
    sources: dict[Path, Source] = field(default_factory=dict)
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def fixed(self) -> int:
        """The number of fixes applied, or with ``--diff`` found applicable."""
        return sum(sum(counts.values()) for counts in self.applied.values())


def _run(
    paths: tuple[Path, ...],
    configs: tuple[str, ...],
    isolated: bool,
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    **parameters: Any,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    directory = Path.cwd()
    memory = caching.Memory.of(terminal, parameters["cache_dir"], off=bool(parameters["no_cache"]))
    rules = memory.catalogue()
    resolver = Resolver(rules, _given(parameters, directory), configs, isolated=isolated, directory=directory)
    chosen = resolver.run.options
    terminal.debug(f"{len(resolver.run.enabled)} of {len(rules)} rules selected")
    if not resolver.run.enabled:
        terminal.warn("no rules are selected")
    if _DASH in paths and len(paths) > 1:
        raise click.UsageError("`-` reads standard input and cannot be combined with other paths")
    if chosen.statistics and chosen.output_format not in _STATISTICS:
        raise click.UsageError(
            f"--statistics has no form in {chosen.output_format}; "
            f"it is printed with --output-format {', '.join(_STATISTICS)}"
        )

    started = time.perf_counter()
    if _DASH in paths:
        if chosen.show_files or chosen.show_settings:
            _show(terminal, resolver, (chosen.stdin_filename or STDIN,), chosen)
            return
        with terminal.listening():
            outcome = _check_stdin(terminal, resolver, chosen)
    else:
        found = discover(
            paths or (Path(),),
            lambda place: resolver.settings(place).options,
            respect_gitignore=chosen.respect_gitignore,
            force_exclude=chosen.force_exclude,
        )
        for warning in found.warnings:
            terminal.warn(warning)
        if chosen.show_files or chosen.show_settings:
            _show(terminal, resolver, found.files, chosen)
            return
        if not found.files:
            terminal.warn("No Python files found under the given path(s)")
        with terminal.listening():
            outcome = _check_files(terminal, resolver, chosen, found.files, memory)
    terminal.debug(f"done in {time.perf_counter() - started:.2f} s")
    if not (_streams(chosen) and _DASH not in paths):
        _tell(terminal, chosen, rules, outcome, directory, stdin=_DASH in paths)
    if chosen.timing:
        from torchlint.render import timing

        terminal.err(timing.render(outcome.seconds, rules))
    raise click.exceptions.Exit(_status(chosen, outcome))


def _check_files(
    terminal: Terminal,
    resolver: Resolver,
    chosen: Options,
    files: tuple[Path, ...],
    memory: caching.Memory,
) -> _Outcome:
    from torchlint import runner
    from torchlint.commands.progress import Progress

    # In the order in which findings are shown, so that those of a file can be shown as soon as it is done.
    files = tuple(sorted(files, key=str))
    settings = {path: resolver.lint(path) for path in files}
    _debug_settings(terminal, resolver, settings)
    outcome = _Outcome(enabled=frozenset().union(*(lint.rules for lint in settings.values())))
    mode = runner.Mode(fix=chosen.writes, diff=chosen.diff, timing=chosen.timing)
    watched = terminal.interactive and not (terminal.quiet or terminal.silent)
    with (
        Progress(len(files), enabled=watched) as progress,
        _told_at_once(terminal, chosen, resolver.rules, outcome) as tell,
    ):
        known = None if chosen.timing else memory.results(chosen.cache_dir, resolver.directory)
        for result in runner.run(files, settings, mode, chosen.jobs, progress, known):
            outcome.diagnostics += result.diagnostics
            tell(result.diagnostics)
            outcome.seconds.update(result.seconds)
            if result.applied:
                outcome.applied[result.path] = result.applied
            if result.diff:
                outcome.diffs[result.path] = result.diff
    outcome.diagnostics.sort(key=lambda item: item.sort_key)
    return outcome


def _streams(chosen: Options) -> bool:
    """Whether findings are told file by file: one line of this format says nothing of the others."""
    return chosen.output_format == "json-lines" and not (chosen.statistics or chosen.diff or chosen.fix_only)


@contextmanager
def _told_at_once(
    terminal: Terminal, chosen: Options, rules: Mapping[str, Rule], outcome: _Outcome
) -> Iterator[Callable[[tuple[Diagnostic, ...]], None]]:
    """A function that prints the findings of a file, in a format that streams; else it prints nothing."""
    if not _streams(chosen):
        yield lambda _: None
        return
    renderer, directory = _renderer(chosen), Path.cwd()
    with terminal.sink(chosen.output_file) as write:

        def tell(diagnostics: tuple[Diagnostic, ...]) -> None:
            if diagnostics:
                found = sorted(diagnostics, key=lambda item: item.sort_key)
                write(renderer(_report(chosen, rules, outcome, found, directory)))

        yield tell


def _debug_settings(terminal: Terminal, resolver: Resolver, settings: Mapping[Path, LintSettings]) -> None:
    if not terminal.verbose:
        return
    terminal.debug(f"{len(settings)} files to check")
    told = set()
    for path, lint in settings.items():
        config = resolver.settings(path.parent).files
        line = (
            f"config {config[-1] if config else 'none'}, {len(lint.rules)} rules, "
            f"target torch {lint.target} ({lint.target.origin})"
        )
        if line not in told:
            told.add(line)
            terminal.debug(f"{path}: {line}")


def _check_stdin(terminal: Terminal, resolver: Resolver, chosen: Options) -> _Outcome:
    """Check standard input; with a fixing option the fixed text goes to standard output."""
    from torchlint import runner
    from torchlint.source import SourceError

    path = absolute(chosen.stdin_filename) if chosen.stdin_filename else STDIN
    if sys.stdin is None:
        raise click.UsageError("standard input is closed; `-` reads it")
    data = sys.stdin.buffer.read()
    outcome = _Outcome()
    if chosen.stdin_filename and chosen.force_exclude:
        found = discover(
            (path,),
            lambda place: resolver.settings(place).options,
            respect_gitignore=chosen.respect_gitignore,
            force_exclude=True,
        )
        if not found.files:
            if chosen.writes:
                terminal.out(data)
            return outcome
    settings = resolver.lint(path)
    _debug_settings(terminal, resolver, {path: settings})
    outcome.enabled = frozenset(settings.rules)
    mode = runner.Mode(fix=chosen.writes, diff=chosen.diff)
    with stopwatch.recording() as outcome.seconds:
        result, source = runner.run_text(data, path, settings, mode)
    if chosen.writes:
        fixed = data
        if source is not None and result.applied:
            try:
                fixed = source.encode(source.text)
            except SourceError as error:
                terminal.warn(f"the fixes cannot be written: {error.reason}")
                result, source = runner.run_text(data, path, settings, runner.Mode())
        terminal.out(fixed)
    outcome.diagnostics = sorted(result.diagnostics, key=lambda item: item.sort_key)
    if result.applied:
        outcome.applied[path] = result.applied
    if result.diff:
        outcome.diffs[path] = result.diff
    if source is not None:
        outcome.sources[path] = source
    return outcome


# --- what is said of it --------------------------------------------------------------------------------


def _tell(
    terminal: Terminal,
    chosen: Options,
    rules: Mapping[str, Rule],
    outcome: _Outcome,
    directory: Path,
    *,
    stdin: bool,
) -> None:
    """Print the report, where the options want it."""
    # The fixed text of standard input has standard output for itself.
    aside = stdin and chosen.writes
    stream = sys.stderr if aside else sys.stdout
    colored = terminal.color == "always" if chosen.output_file else terminal.colored(stream)
    report = replace(
        _report(chosen, rules, outcome, outcome.diagnostics, directory), color=colored, width=terminal.width
    )
    untreated = tuple(item for item in outcome.diagnostics if item.code in UNTREATED)
    text, remarks = _body(chosen, report, outcome), _remarks(chosen, report, terminal)
    if chosen.diff or chosen.fix_only:
        from torchlint.render import concise

        terminal.err(
            concise.render(replace(report, diagnostics=untreated, color=terminal.colored(sys.stderr)))
        )
        # What follows a diff must not get into a patch.
        if not terminal.quiet:
            terminal.err(remarks)
        remarks = ""
    if chosen.output_file:
        terminal.save(chosen.output_file, text + remarks)
    elif aside:
        terminal.err(text + remarks)
    else:
        terminal.out(text + remarks)


def _report(
    chosen: Options,
    rules: Mapping[str, Rule],
    outcome: _Outcome,
    diagnostics: Sequence[Diagnostic],
    directory: Path,
) -> Report:
    """What the formats get of these findings."""
    return Report(
        diagnostics=tuple(diagnostics),
        source=_sources(outcome),
        rules=rules,
        enabled=outcome.enabled,
        applied=outcome.applied,
        unsafe_fixes=chosen.unsafe_fixes,
        root=directory,
        project=_project(directory),
        fail_on=Severity(chosen.fail_on),
    )


def _project(directory: Path) -> Path:
    """The folder that trackers of findings know files relative to: the checkout of a CI job, a repository."""
    named = (os.environ.get(name) for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"))
    checkouts = (Path(name).resolve() for name in named if name)
    inside = next((path for path in checkouts if directory.is_relative_to(path)), None)
    return inside or repository(directory) or directory


def _body(chosen: Options, report: Report, outcome: _Outcome) -> str:
    """The findings, in the format wanted; the diff, if that is wanted."""
    if chosen.diff:
        from torchlint.render import patch

        return "".join(patch.paint_diff(report, diff) for _, diff in sorted(outcome.diffs.items()))
    if chosen.fix_only:
        return ""
    return _renderer(chosen)(report)


def _renderer(chosen: Options) -> Callable[[Report], str]:
    """The format's function; its module is imported now."""
    from importlib import import_module

    name = chosen.output_format
    module, function = ("statistics", _STATISTICS[name]) if chosen.statistics else _RENDERERS[name]
    renderer: Callable[[Report], str] = getattr(import_module(f"torchlint.render.{module}"), function)
    return renderer


def _remarks(chosen: Options, report: Report, terminal: Terminal) -> str:
    """What follows the findings: the fixes made, the totals. Nothing in a machine's format."""
    from torchlint.render import summary

    told = ""
    if chosen.output_format not in _HUMAN and not (chosen.diff or chosen.fix_only):
        return told
    if chosen.show_fixes and report.applied:
        told += summary.render_fixes(report, written=not chosen.diff)
        told += "" if terminal.quiet else "\n"
    if terminal.quiet:
        return told
    if chosen.diff or chosen.fix_only:
        return told + summary.render_fix_only(report, written=not chosen.diff)
    return told + summary.render(report)


def _sources(outcome: _Outcome) -> Callable[[Path], Source | None]:
    """The texts of files with findings, each read once and only the last one kept."""
    from functools import lru_cache

    from torchlint.source import Source, SourceError

    @lru_cache(maxsize=1)
    def source(path: Path) -> Source | None:
        if path in outcome.sources:
            return outcome.sources[path]
        try:
            return Source.read(path)
        except SourceError:
            return None

    return source


def _status(chosen: Options, outcome: _Outcome) -> int:
    """The exit status: 2 if torchlint itself failed, 1 if something is left to do, else 0."""
    if any(item.code == _CRASH for item in outcome.diagnostics):
        return 2
    if chosen.exit_zero:
        return 0
    if chosen.exit_non_zero_on_fix and outcome.fixed:
        return 1
    if chosen.diff or chosen.fix_only:
        untreated = any(item.code in UNTREATED for item in outcome.diagnostics)
        return int(untreated or (chosen.diff and bool(outcome.diffs)))
    least = Severity(chosen.fail_on).rank
    return int(any(item.severity.rank >= least for item in outcome.diagnostics))


def _show(terminal: Terminal, resolver: Resolver, files: tuple[Path, ...], chosen: Options) -> None:
    """The files that would be checked, or the settings of the first of them."""
    if chosen.show_files:
        terminal.out("".join(f"{path}\n" for path in files))
        return
    path = files[0] if files else Path.cwd()
    terminal.out(_settings_page(path, resolver.settings(path.parent), resolver.lint(path)))


def _settings_page(path: Path, settings: Settings, lint: LintSettings) -> str:
    lines = [f"# Settings of {path}", f"# config: {settings.files[-1] if settings.files else 'none'}"]
    lines.append(f"# rules: {', '.join(lint.rules) or 'none'}")
    for name, target in {"torch": lint.target, **lint.libraries}.items():
        lines.append(f"# target {name}: {target} ({target.origin})")
    for name in options.settings():
        value = options.plain(getattr(settings.options, name))
        lines.append(f"{options.key(name)} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _paths(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[Path, ...]:
    if "" in value:
        # An unset variable of a script, which must not turn into the working directory.
        raise click.UsageError("a path is empty")
    return tuple(Path(text) for text in value)


command = _Command(
    "check",
    callback=_run,
    help="Find problems in the Python files at PATH, a file or a directory; the working directory without "
    "one, standard input with `-`.\n\nExits with 0 if nothing is found or all was fixed, with 1 if findings "
    "remain, with 2 on misuse or an internal error.",
    params=[
        click.Argument(["paths"], nargs=-1, metavar="[PATH]...", callback=_paths),
        *(_parameter(name, setting) for name, setting in options.settings().items() if setting.cli),
        *shared_parameters(),
    ],
)
