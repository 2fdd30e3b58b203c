"""``torchlint check``: find, show and fix."""

from __future__ import annotations

import glob
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchlint import options, reading, registry, stopwatch
from torchlint.commands import Failure, caching, completion
from torchlint.commands.adoption import Adoption
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import WINDOWS, Terminal, is_terminal, shared_parameters
from torchlint.config import ConfigError, Resolver, Settings
from torchlint.diagnostics import UNTREATED, Diagnostic, Risks, Severity
from torchlint.files import Discovery, absolute, discover, matches, repository
from torchlint.options import Kind, LintSettings, Options, Section, Setting
from torchlint.project.layout import Layouts
from torchlint.render.report import STDIN, Report, visible, visible_lines
from torchlint.rule import Rule
from torchlint.scope import Advice
from torchlint.source import exists, is_folder

if TYPE_CHECKING:
    from torchlint.runner import Result
    from torchlint.source import Source

_DASH = Path("-")
_HUMAN = ("full", "concise", "grouped")
_CRASH = "TL000"
# The formats of machines in which an entry says that it is advice.
_TELLS_ADVICE = ("json", "json-lines")
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
        completed = {Kind.RULES: completion.selectors, Kind.RULES_BY_PATTERN: completion.selectors_by_glob}
        attrs["shell_complete"] = completed.get(setting.kind)
        return _Option(names, **{"multiple": True, "metavar": f"{word},…", **attrs, "default": ()})
    if setting.kind in (Kind.LANGUAGES, Kind.REPORTS):
        return _Option(names, **{"multiple": True, **attrs, "default": ()})
    kinds: dict[Kind, Any] = {
        Kind.STRING: click.STRING,
        Kind.CHOICE: Choice(setting.choices),
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


class Command(click.Command):
    """Shows the options under headings, and lets those stand alone whose value is optional."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give an option without its optional value an empty one, so that it takes no path for it."""
        alone = {f"--{options.key(name)}" for name, setting in options.settings().items() if setting.optional}
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(
            ctx, [f"{word}=" if word in alone else word for word in args[:end]] + args[end:]
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options for each heading, the shared ones last."""
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
    """Return the options that the command line or the environment sets, by field name.

    Raises:
        click.UsageError: a value cannot be read.
    """
    given: dict[str, Any] = {}
    for name, setting in options.settings().items():
        value = parameters.get(name)
        if value is None or value == ():
            continue
        try:
            if setting.kind in (Kind.RULES, Kind.PATTERNS):
                words = [word.strip() for text in value for word in text.split(",") if word.strip()]
                value = options.convert(name, words, directory)
            elif setting.kind is Kind.RULES_BY_PATTERN:
                value = options.convert(name, _by_pattern(name, value), directory)
            elif setting.kind is Kind.LANGUAGES:
                value = options.convert(name, _languages(name, value), directory)
            elif setting.kind is Kind.TARGET:
                value = options.convert(name, value, directory)
        except ValueError as error:
            raise click.UsageError(f"--{options.key(name)}: {error}") from None
        given[name] = value
    return given


def _by_pattern(name: str, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Return ``GLOB:RULE[,RULE…][,GLOB:RULE…]`` as a table."""
    table: dict[str, list[str]] = {}
    pattern = ""
    for part in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        before, colon, rule = part.rpartition(":")
        if colon:
            pattern = before
        if not pattern or not rule:
            raise click.UsageError(
                f"--{options.key(name)} expects GLOB:RULE, such as `tests/**:TL2`, not `{part}`"
            )
        table.setdefault(pattern, []).append(rule)
    return table


def _languages(name: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Return ``EXTENSION:LANGUAGE[,EXTENSION:LANGUAGE…]`` as a table."""
    table: dict[str, str] = {}
    for part in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        suffix, colon, language = part.partition(":")
        if not colon:
            raise click.UsageError(
                f"--{options.key(name)} expects EXTENSION:LANGUAGE, such as `ipy:ipynb`, not `{part}`"
            )
        table[suffix] = language
    return table


# --- the run -----------------------------------------------------------------------------------------


@dataclass
class _Outcome:
    """What all files of a run gave together, in which advice is what ``advice`` says."""

    advice: Advice
    diagnostics: list[Diagnostic] = field(default_factory=list)
    enabled: frozenset[str] = frozenset()
    applied: dict[Path, Counter[str]] = field(default_factory=dict)
    diffs: dict[Path, str] = field(default_factory=dict)
    sources: dict[Path, Source] = field(default_factory=dict)
    settings: Mapping[Path, LintSettings] = field(default_factory=dict)
    known: dict[Path, frozenset[str]] = field(default_factory=dict)
    silenced: int = 0
    later: int = 0
    settled: int = 0
    hidden: int = 0
    risks: Risks = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Take in what came of one file."""
        self.diagnostics += result.diagnostics
        self.known[result.path] = result.known
        self.silenced += result.silenced
        self.later += result.later.total()
        self.settled += result.settled.total()
        self.hidden += result.hidden
        self.risks.update(result.risks)
        self.seconds.update(result.seconds)
        if result.applied:
            self.applied[result.path] = result.applied
        if result.diff:
            self.diffs[result.path] = result.diff

    @property
    def fixed(self) -> int:
        """The number of fixes applied, or with ``--diff`` found applicable."""
        return sum(sum(counts.values()) for counts in self.applied.values())


def _run(**parameters: Any) -> None:
    if parameters["watch"] and not (parameters["show_files"] or parameters["show_settings"]):
        _watch(**parameters)
    else:
        check(**parameters)


def _watch(paths: tuple[Path, ...], configs: tuple[str, ...], isolated: bool, **parameters: Any) -> None:
    """Check whenever something changes, until interrupted."""
    from torchlint.commands import watch

    if _DASH in paths:
        raise click.UsageError("`-` (standard input) cannot be watched")
    shared = {name: parameters[name] for name in ("color", "verbose", "quiet", "silent")}
    terminal, directory, rules = Terminal(**shared), Path.cwd(), registry.catalogue()
    given = _given(parameters, directory)
    places = tuple(absolute(path) for path in paths or (Path(),))

    def others() -> list[Path]:
        try:
            resolver = Resolver(rules, given, configs, isolated=isolated, directory=directory)
            settings = [resolver.settings(place if place.is_dir() else place.parent) for place in places]
        except ConfigError:
            return watch.deciding(places, ())
        elsewhere = [file for file in memory.surroundings if not _is_below(file, places)]
        return watch.deciding(places, [*elsewhere, *(file for found in settings for file in found.files)])

    memory = watch.Memory(places)
    click.get_current_context().obj = memory
    watch.follow(
        lambda: check(paths=paths, configs=configs, isolated=isolated, **parameters),
        terminal,
        watch.rounds(places, others, memory),
    )


def _is_below(file: Path, places: tuple[Path, ...]) -> bool:
    """Return whether a file is in one of these folders, or beside one of these files."""
    return any(file.is_relative_to(place) or file.parent == place.parent for place in places)


def check(
    paths: tuple[Path, ...],
    configs: tuple[str, ...],
    isolated: bool,
    color: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    *,
    alone: bool = False,
    **parameters: Any,
) -> None:
    """Check what is at ``paths`` with the options in ``parameters``, report, and exit.

    With ``alone``, only advice is reported and followed.

    Raises:
        click.exceptions.Exit: always, with the exit status.
        click.UsageError, Failure: the options contradict each other or cannot be followed.
    """
    terminal = Terminal(color, verbose, quiet, silent)
    directory = Path.cwd()
    memory = caching.Memory.of(terminal, parameters.get("cache_dir"), off=bool(parameters.get("no_cache")))
    rules = memory.catalogue()
    resolver = Resolver(rules, _given(parameters, directory), configs, isolated=isolated, directory=directory)
    chosen = _chosen(resolver.run, terminal)
    terminal.debug(f"{len(resolver.run.enabled)} of {len(rules)} rules selected")
    if not resolver.run.enabled:
        terminal.warn("no rules are selected")
    if _DASH in paths and len(paths) > 1:
        raise click.UsageError("`-` reads standard input and cannot be combined with other paths")
    if chosen.stdin_filename and not paths:
        paths = (_DASH,)
    if chosen.stdin_filename and _DASH not in paths:
        raise click.UsageError("--stdin-filename names standard input and cannot be combined with paths")
    if chosen.statistics and chosen.output_format not in _STATISTICS:
        raise click.UsageError(
            f"--statistics does not support {chosen.output_format}; "
            f"use --output-format {', '.join(_STATISTICS)}"
        )

    about = Adoption(chosen, directory, stdin=_DASH in paths, alone=alone)
    reports = _reports(chosen)
    started = time.perf_counter()
    if _DASH in paths:
        if chosen.show_files or chosen.show_settings:
            _show(terminal, resolver, (chosen.stdin_filename or STDIN,), chosen)
            return
        with terminal.listening():
            outcome = _check_stdin(terminal, resolver, chosen, about, memory)
    else:
        layouts = _layouts(resolver, chosen, about)
        found = _discovered(paths or (Path(),), resolver, chosen, layouts)
        for warning in found.warnings:
            terminal.warn(warning)
        files = about.narrowed(found.files, terminal.warn)
        if chosen.show_files or chosen.show_settings:
            missing = [path for path in files if not exists(path)]
            for path in missing:
                terminal.warn(f"{path} does not exist")
            _show(terminal, resolver, tuple(path for path in files if path not in missing), chosen)
            raise click.exceptions.Exit(int(bool(missing)))
        if not found.files:
            terminal.warn("No Python files found under the given path(s)")
        with terminal.listening():
            outcome = _check_files(terminal, resolver, chosen, files, about, memory, layouts)
    terminal.debug(f"done in {time.perf_counter() - started:.2f} s")
    remarks = about.conclude(outcome, lambda path: resolver.lint(path).rules, _sources(outcome))
    if not (_streams(chosen) and _DASH not in paths):
        _tell(terminal, chosen, rules, outcome, directory, remarks, reports, stdin=_DASH in paths)
    if chosen.timing:
        from torchlint.render import timing

        terminal.err(timing.render(outcome.seconds, rules))
    raise click.exceptions.Exit(_status(chosen, outcome))


def _chosen(settings: Settings, terminal: Terminal) -> Options:
    """Return the options of a run, in which a config file makes no check of a build server change files.

    Who asks for a format of machines, or for `--no-fix`, wants to be told of everything and nothing written.
    """
    chosen = settings.options
    layers = {name: settings.origin(name) for name in ("fix", "fix_only")}
    by_config = {name: layer.path for name, layer in layers.items() if layer is not None and layer.path}
    switched_off = layers["fix"] is not None and "fix" not in by_config and not chosen.fix
    formats = {chosen.output_format, *(text.partition("=")[0] for text in chosen.report)}
    if not by_config or not (switched_off or formats - set(_HUMAN)):
        return chosen
    for name, path in by_config.items():
        terminal.debug(f"`{options.key(name)}` of {path} is ignored in this run")
    return replace(
        chosen,
        fix=chosen.fix and "fix" not in by_config,
        fix_only=chosen.fix_only and "fix_only" not in by_config,
    )


def _discovered(paths: Sequence[Path], resolver: Resolver, chosen: Options, layouts: Layouts) -> Discovery:
    """Return the files to check, with the configuration files that the code of their projects reads."""

    def among(places: Sequence[Path], *, force_exclude: bool) -> Discovery:
        return discover(
            places,
            lambda place: resolver.settings(place).options,
            respect_gitignore=chosen.respect_gitignore,
            force_exclude=force_exclude,
        )

    found = among(paths, force_exclude=chosen.force_exclude)
    folders = [absolute(path) for path in paths if is_folder(path)]
    if not folders:
        return found
    documents = among(layouts.documents_below(folders, found.files), force_exclude=True)
    return Discovery(
        tuple(dict.fromkeys((*found.files, *documents.files))),
        tuple(dict.fromkeys((*found.warnings, *documents.warnings))),
    )


def _check_files(
    terminal: Terminal,
    resolver: Resolver,
    chosen: Options,
    files: tuple[Path, ...],
    about: Adoption,
    memory: caching.Memory,
    layouts: Layouts,
) -> _Outcome:
    from torchlint import runner
    from torchlint.commands.progress import Progress

    # In the order in which findings are shown, so that those of a file can be shown as soon as it is done.
    files = tuple(sorted(files, key=str))
    settings = {path: resolver.lint(path) for path in files}
    _debug_settings(terminal, resolver, settings)
    outcome = _Outcome(
        about.advice,
        enabled=frozenset().union(*(lint.rules for lint in settings.values())),
        sources=dict(about.sources(files)),
        settings=settings,
    )
    mode = runner.Mode(
        *(chosen.writes, chosen.diff, chosen.add_noqa, about.scopes(files), chosen.timing),
        *(about.impact, about.advice),
    )
    watched = terminal.interactive and not (terminal.quiet or terminal.silent)
    with (
        Progress(len(files), enabled=watched) as progress,
        _told_at_once(terminal, chosen, resolver.rules, outcome) as tell,
    ):
        known = None if chosen.timing else memory.results(resolver.run, resolver.directory, files)
        for result in _runner()(files, settings, mode, chosen.jobs, progress, known, layouts.of):
            outcome.add(result)
            tell(result.diagnostics)
    _debug_projects(terminal, layouts, files)
    outcome.diagnostics.sort(key=lambda item: item.sort_key)
    return outcome


def _layouts(resolver: Resolver, chosen: Options, about: Adoption) -> Layouts:
    """Return the projects around the files that are asked for: what they exclude is no part of them."""
    return Layouts(
        lambda place: resolver.settings(place).options,
        respect_gitignore=chosen.respect_gitignore,
        content=about.content,
    )


def _debug_projects(terminal: Terminal, layouts: Layouts, files: Collection[Path]) -> None:
    """Tell what of the projects around some files was not looked at."""
    if not terminal.verbose:
        return
    from torchlint.project import graph

    for root in layouts.given_up:
        terminal.debug(
            f"{root} has too many files or folders for a project; its files are checked individually"
        )
    for layout in layouts.found:
        index = layout.index()
        for file in sorted(index.unreadable - layout.lent):
            terminal.debug(f"{file} cannot be parsed, so other files are checked without it")
        for file in sorted(layout.members.intersection(files) - index.unreadable - layout.lent):
            for each in graph.unresolved(index, file):
                terminal.debug(f"{file}:{each.row}: not found in the project: {each.statement}")
            for name, place in layout.elsewhere:
                if row := graph.row_of_import(index, file, name):
                    terminal.debug(f"{file}:{row}: {name} is installed from {place}, which is not analyzed")


def _runner() -> Callable[..., Iterator[Result]]:
    """Return what checks many files: with ``--watch`` it remembers those that have not changed."""
    from torchlint import runner

    memory = click.get_current_context().obj
    return runner.run if memory is None else memory.run


def _streams(chosen: Options) -> bool:
    """Return whether findings are told file by file: one line of this format says nothing of the others."""
    other = chosen.statistics or chosen.diff or chosen.fix_only
    at_the_end = chosen.update_baseline or chosen.report
    return chosen.output_format == "json-lines" and not (other or at_the_end)


@contextmanager
def _told_at_once(
    terminal: Terminal, chosen: Options, rules: Mapping[str, Rule], outcome: _Outcome
) -> Iterator[Callable[[tuple[Diagnostic, ...]], None]]:
    """Yield a function that prints the findings of a file, in a format that streams;
    else it prints nothing.
    """
    if not _streams(chosen):
        yield lambda _: None
        return
    renderer, directory = _renderer(chosen), Path.cwd()
    with terminal.sink(chosen.output_file) as write:

        def tell(diagnostics: tuple[Diagnostic, ...]) -> None:
            if diagnostics:
                found = sorted(diagnostics, key=lambda item: item.sort_key)
                write(renderer(_report(chosen, rules, outcome, found, directory).whole))

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
    for chosen in {resolver.settings(path.parent): None for path in settings}:
        own = chosen.options
        by_pattern = (*own.per_file_ignores, *own.extend_per_file_ignores, *own.per_file_severity)
        for pattern in dict.fromkeys(pattern for pattern, _ in by_pattern):
            if not any(matches(pattern, path) for path in settings):
                terminal.debug(f"`{pattern.text}` matches none of these files")


def _check_stdin(
    terminal: Terminal, resolver: Resolver, chosen: Options, about: Adoption, memory: caching.Memory
) -> _Outcome:
    """Check standard input; with a fixing option the fixed text goes to standard output."""
    from torchlint import runner
    from torchlint.source import SourceError

    path = absolute(chosen.stdin_filename) if chosen.stdin_filename else STDIN
    if sys.stdin is None:
        raise Failure("cannot read `-`: standard input is closed")
    data = sys.stdin.buffer.read()
    outcome = _Outcome(about.advice)
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
    scopes = about.scopes([path])
    mode = runner.Mode(chosen.writes, chosen.diff, scopes=scopes, impact=about.impact, advice=about.advice)
    known = None if chosen.timing else memory.results(resolver.run, resolver.directory)
    layouts = _layouts(resolver, chosen, about)
    layout = layouts.of(path) if chosen.stdin_filename else None
    with stopwatch.recording() as outcome.seconds:
        result, source = runner.run_text(data, path, settings, mode, known, layout)
    _debug_projects(terminal, layouts, (path,))
    if chosen.writes:
        fixed = data
        if source is not None and result.applied:
            try:
                fixed = source.to_bytes()
            except SourceError as error:
                terminal.warn(f"the fixes cannot be written: {error.reason}")
                result, source = runner.run_text(data, path, settings, mode.looking, layout=layout)
        terminal.out(fixed)
    outcome.add(result)
    outcome.diagnostics.sort(key=lambda item: item.sort_key)
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
    concluding: str,
    reports: Mapping[Path, str],
    *,
    stdin: bool,
) -> None:
    """Print the report, where the options want it, and write the further ones."""
    # The fixed text of standard input has standard output for itself.
    aside = stdin and chosen.writes
    stream = sys.stderr if aside else sys.stdout
    colored = terminal.color == "always" if chosen.output_file else terminal.colored(stream)
    report = replace(
        _report(chosen, rules, outcome, outcome.diagnostics, directory),
        color=colored,
        hyperlinks=not chosen.output_file and terminal.hyperlinks(stream),
        width=terminal.width,
    )
    untreated = tuple(item for item in outcome.diagnostics if item.code in UNTREATED)
    text, remarks = _body(chosen, report, outcome), _remarks(chosen, report, terminal, concluding)
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
    for path, name in reports.items():
        further = replace(chosen, output_format=name, statistics=False)
        terminal.save(path, _rendered(further, replace(report, color=False, hyperlinks=False)))


def _report(
    chosen: Options,
    rules: Mapping[str, Rule],
    outcome: _Outcome,
    diagnostics: Sequence[Diagnostic],
    directory: Path,
) -> Report:
    """Return what the formats get of these findings."""
    apart = outcome.advice is not Advice.COUNTED
    return Report(
        diagnostics=tuple(item for item in diagnostics if not (apart and item.advice)),
        advice=tuple(item for item in diagnostics if apart and item.advice),
        alone=outcome.advice is Advice.ALONE,
        hidden=outcome.hidden,
        least=chosen.least,
        source=_sources(outcome),
        rules=rules,
        enabled=outcome.enabled,
        applied=outcome.applied,
        later=outcome.later,
        settled=outcome.settled,
        unsafe_fixes=chosen.unsafe_fixes,
        root=directory,
        project=_project(directory),
        fail_on=Severity(chosen.fail_on),
        restriction=_restriction(chosen),
        risks=outcome.risks,
    )


def _restriction(chosen: Options) -> str:
    """Return which findings count, where not all do."""
    if chosen.changed_since is not None or chosen.staged:
        return "on changed lines"
    if chosen.baseline is not None and not chosen.ignore_baseline and not chosen.update_baseline:
        return "not in the baseline"
    return ""


def _project(directory: Path) -> Path:
    """Return the folder that trackers of findings know files relative to: the checkout of a CI job,
    a repository.
    """
    named = (os.environ.get(name) for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"))
    checkouts = (Path(name).resolve() for name in named if name)
    inside = next((path for path in checkouts if directory.is_relative_to(path)), None)
    return inside or repository(directory) or directory


def _body(chosen: Options, report: Report, outcome: _Outcome) -> str:
    """Return the findings, in the format wanted; the diff, if that is wanted."""
    if chosen.diff:
        from torchlint.render import patch

        diffs = [diff for _, diff in sorted(outcome.diffs.items())]
        # Who reads it on a terminal applies no patch, which would have every byte of the lines.
        watched = is_terminal(sys.stdout) and not chosen.output_file
        return "".join(patch.paint_diff(report, visible_lines(diff) if watched else diff) for diff in diffs)
    if chosen.fix_only:
        return ""
    return _rendered(chosen, report)


def _rendered(chosen: Options, report: Report) -> str:
    """Return the report in a format, with the advice if that has a place for it
    or nothing else is asked for.
    """
    renderer = _renderer(chosen)
    if chosen.statistics or not report.advice:
        return renderer(report.whole if report.alone else report)
    if chosen.output_format in _HUMAN:
        from torchlint.render import advice

        told = renderer(report)
        told += "\n" if told and not told.endswith("\n\n") else ""
        return told + advice.render(report, detailed=report.alone and chosen.output_format == "full")
    return renderer(report.whole if report.alone or chosen.output_format in _TELLS_ADVICE else report)


def _renderer(chosen: Options) -> Callable[[Report], str]:
    """Return the format's function; its module is imported now."""
    from importlib import import_module

    name = chosen.output_format
    module, function = ("statistics", _STATISTICS[name]) if chosen.statistics else _RENDERERS[name]
    renderer: Callable[[Report], str] = getattr(import_module(f"torchlint.render.{module}"), function)
    return renderer


def _reports(chosen: Options) -> Mapping[Path, str]:
    """Return the formats of the further reports, by the file that each is written to."""
    wanted = {}
    for text in chosen.report:
        name, equals, path = text.partition("=")
        if not (equals and path):
            raise click.UsageError(f"--report expects FORMAT=FILE, such as `json=report.json`, not `{text}`")
        if name not in options.FORMATS:
            raise click.UsageError(f"--report: {options.none_of(name, options.FORMATS)}")
        wanted[Path(path)] = name
    return wanted


def _remarks(chosen: Options, report: Report, terminal: Terminal, concluding: str) -> str:
    """Return what follows the findings: the fixes made, the totals. Nothing in a machine's format."""
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
        return told + summary.render_fix_only(report, written=not chosen.diff) + concluding
    put_away = chosen.update_baseline or chosen.add_noqa is not None
    if put_away and not (report.diagnostics or report.applied):
        # What was found is told by what became of it; that all checks passed would be wrong.
        return told + concluding
    return told + summary.render(report) + concluding


def _sources(outcome: _Outcome) -> Callable[[Path], Source | None]:
    """Return the texts of files with findings, each read once and only the last one kept."""
    from functools import lru_cache

    from torchlint.source import SourceError, is_notebook, most_bytes

    @lru_cache(maxsize=1)
    def source(path: Path) -> Source | None:
        if path in outcome.sources:
            return outcome.sources[path]
        try:
            settings = outcome.settings.get(path)
            if settings is None:
                return reading.read(path)
            notebook = is_notebook(path, settings.extension)
            return reading.read(path, most_bytes(notebook, settings.max_file_size), notebook=notebook)
        except SourceError:
            return None

    return source


def _status(chosen: Options, outcome: _Outcome) -> int:
    """Return the exit status: 2 if torchlint itself failed, 1 if something is left to do, else 0."""
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
    counted = [item for item in outcome.diagnostics if outcome.advice is Advice.COUNTED or not item.advice]
    return int(any(item.severity.rank >= least for item in counted))


def _show(terminal: Terminal, resolver: Resolver, files: tuple[Path, ...], chosen: Options) -> None:
    """Print the files that would be checked, or the settings of the first of them."""
    if chosen.show_files:
        terminal.out("".join(f"{visible(str(path))}\n" for path in files))
        return
    path = files[0] if files else Path.cwd() / "*.py"
    terminal.out(_settings_page(path, resolver.settings(path.parent), resolver.lint(path)))


def _settings_page(path: Path, settings: Settings, lint: LintSettings) -> str:
    deciding, *extended = reversed(settings.files or (Path("none"),))
    lines = [f"# Settings of {visible(str(path))}", f"# config: {visible(str(deciding))}"]
    lines += [f"# extends: {visible(str(file))}" for file in extended]
    lines.append(f"# rules: {', '.join(lint.rules) or 'none'}")
    for name, target in {"torch": lint.target, **lint.libraries}.items():
        lines.append(f"# target {name}: {target} ({visible(target.origin)})")
    for section in Section:
        lines += ["", f"# {section.value}"]
        for name, setting in options.settings().items():
            if setting.section is section:
                lines.append(_settings_line(name, setting, getattr(settings.options, name)))
    return "\n".join(lines) + "\n"


def _settings_line(name: str, setting: Setting, value: object) -> str:
    """Return ``key = value`` as a config file may say it, commented out where none may or nothing is said."""
    if value is None:
        return f"# {options.key(name)} is not given"
    flag_only = "" if setting.config else "# command line only: "
    return f"{flag_only}{options.key(name)} = {_toml(options.plain(name, value))}"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{_toml(name)} = {_toml(item)}" for name, item in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    # What JSON and TOML write differently, tables and null, is out of the way.
    return json.dumps(value, ensure_ascii=False)


def _paths(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[Path, ...]:
    if "" in value:
        # An unset variable of a script, which must not turn into the working directory.
        raise click.UsageError("empty path")
    return tuple(Path(text) for given in value for text in _expanded(given))


def _expanded(text: str) -> list[str]:
    """Return the files that a pattern stands for where the shell leaves that to programs."""
    if not WINDOWS or not re.search(r"[*?[]", text) or os.path.lexists(text):
        return [text]
    # Not `Path.glob`, which takes no absolute patterns.
    return sorted(glob.glob(text, recursive=True)) or [text]  # noqa: PTH207


def parameters(names: Iterable[str]) -> list[click.Parameter]:
    """Return the paths, these options, and what all commands take."""
    settings = options.settings()
    return [
        click.Argument(["paths"], nargs=-1, metavar="[PATH]...", callback=_paths),
        *(_parameter(name, settings[name]) for name in names),
        *shared_parameters(),
    ]


command = Command(
    "check",
    callback=_run,
    help="Check the Python files and notebooks in PATH, a file or a directory, and the configuration "
    "files that they read. Without PATH, check the working directory; with `-`, standard input.\n\n"
    "Exits with 0 if nothing is found or everything was fixed, with 1 if warnings or errors remain "
    "(see --fail-on), or with 2 on invalid usage or an internal error.",
    params=parameters(name for name, setting in options.settings().items() if setting.cli),
)
