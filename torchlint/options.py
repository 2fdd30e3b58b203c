"""What a run can be told: one dataclass is the source of the flags, the config keys and their docs."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from torchlint.diagnostics import Impact, Severity
from torchlint.documents import is_document
from torchlint.target import Target


@dataclass(frozen=True)
class LintSettings:
    """What the checker and the fixer need to know to treat one file.

    ``rules`` are the enabled codes, sorted. A fix is offered only for the codes in ``fixable``; those in
    ``extend_safe_fixes`` have their unsafe fixes graded safe, those in ``extend_unsafe_fixes`` their safe
    fixes graded unsafe. ``libraries`` are the targets of other libraries than torch. ``workers`` is the
    number of loader workers that fixes write. With ``ignore_noqa`` suppression comments are not obeyed.
    A file of more than ``max_file_size`` bytes is not read, unless that is 0. ``hot`` and ``cold`` are
    patterns of functions that run at every step, or seldom: each the root that a glob of files is relative
    to, and the glob with the pattern of functions behind it, ``engine/**::*.execute_model``.
    ``severities`` has the codes whose findings get another severity. ``markers`` are comments of the project
    that suppress findings, each with its codes; if ``reasons`` are required, a suppression without one is
    reported. The other names are dotted patterns: contexts in which the host may wait, names of tensors that
    are on the host or on the device, and functions that copy to the device without blocking. ``extension``
    has the languages of files by their suffixes, which are written without the dot.
    """

    rules: tuple[str, ...] = ()
    fixable: frozenset[str] = frozenset()
    unsafe_fixes: bool = False
    target: Target = field(default_factory=Target.unknown)
    libraries: Mapping[str, Target] = field(default_factory=dict)
    workers: int = 4
    extend_safe_fixes: frozenset[str] = frozenset()
    extend_unsafe_fixes: frozenset[str] = frozenset()
    ignore_noqa: bool = False
    max_file_size: int = 0
    hot: tuple[tuple[str, str], ...] = ()
    cold: tuple[tuple[str, str], ...] = ()
    severities: tuple[tuple[str, Severity], ...] = ()
    markers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reasons: bool = False
    allowed_sync_contexts: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    device_names: tuple[str, ...] = ()
    known_async_helpers: tuple[str, ...] = ()
    extension: tuple[tuple[str, str], ...] = ()


AUTO = "auto"
"""The kind of a project that is told from its build metadata."""


class Kind(enum.Enum):
    """What a value looks like in a config file, and in words for people."""

    BOOL = "true or false"
    INTEGER = "a non-negative integer"
    STRING = "a string"
    VERSION = 'a version such as "0.1", or a range such as ">=0.1"'
    PATH = "a path"
    CHOICE = "one of the listed values"
    TARGET = 'a version such as "2.1", a range such as ">=2.1,<2.6", or "unknown"'
    RULES = "a list of rule codes, code prefixes, rule names or ALL"
    PATTERNS = "a list of glob patterns"
    RULES_BY_PATTERN = "a table that maps glob patterns to lists of rules"
    LANGUAGES = "a table that maps file extensions to `python` or `ipynb`"
    RULES_BY_MARKER = "a table that maps the first word of a comment to a list of rules"
    SEVERITIES = "a table that maps rules to `note`, `warning` or `error`"
    SEVERITIES_BY_PATTERN = "a table that maps glob patterns to tables of rules and severities"
    NAMES = "a list of names, which may be dotted and have the wildcard `*`"
    FOLDERS = "a list of folders"
    REPORTS = "a list of formats, each with a file"


class Section(enum.Enum):
    """The headings of ``check --help``."""

    FIXING = "Fixing"
    REPORTING = "Reporting"
    RULES = "Rule selection"
    FILES = "Files"
    RUNNING = "Running"


@dataclass(frozen=True)
class Setting:
    """What is said of one option besides its default: it makes the flag, the config key and the docs.

    ``config`` and ``cli`` say where it may be given. A ``switch`` is a flag without its ``--no-`` twin.
    ``env`` is the environment variable that stands in for the flag. ``per_file`` options come from the
    config closest to each file, the others from the one closest to the working directory. An ``optional``
    flag may stand without a value; one that it has follows ``=``.
    """

    kind: Kind
    section: Section
    help: str
    example: str = ""
    choices: tuple[str, ...] = ()
    metavar: str = ""
    short: str = ""
    env: str = ""
    config: bool = True
    cli: bool = True
    switch: bool = False
    per_file: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Pattern:
    """A glob in ``.gitignore`` syntax, with the directory that it is relative to."""

    text: str
    root: Path


# Directories that hold other people's code, caches or builds.
EXCLUDED = (
    ".bzr .direnv .eggs .git .git-rewrite .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pytest_cache "
    ".pytype .ruff_cache .svn .torchlint_cache .tox .venv .vscode __pycache__ __pypackages__ _build buck-out "
    "build dist node_modules site-packages venv"
)
INCLUDED = ("*.py", "*.pyw", "*.ipynb")
_ANYWHERE = Path()


def _patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(Pattern(text, _ANYWHERE) for text in texts)


def _says(*args: Any, **kwargs: Any) -> Mapping[str, Setting]:
    return {"setting": Setting(*args, **kwargs)}


FORMATS = (
    *("full", "concise", "grouped", "json", "json-lines", "github", "gitlab", "sarif", "junit", "rdjson"),
    *("pylint", "azure", "markdown"),
)
DEFAULT_SELECT = ("TL",)

_FIX, _REPORT, _RULES, _FILES, _RUN = Section


@dataclass(frozen=True)
class Options:
    """Everything that flags, environment and config files decide, resolved for one place."""

    fix: bool = field(
        default=False,
        metadata=_says(Kind.BOOL, _FIX, "Apply fixes and write the files.", "fix = true"),
    )
    unsafe_fixes: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _FIX,
            "Also apply unsafe fixes, which may change runtime behavior.",
            "unsafe-fixes = true",
        ),
    )
    diff: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _FIX,
            "Print the changes of --fix as a diff and write nothing, even with --fix; exit with 1 if there "
            "are any.",
            config=False,
            switch=True,
        ),
    )
    show_fixes: bool = field(
        default=False,
        metadata=_says(Kind.BOOL, _FIX, "List the fixes that were applied.", "show-fixes = true"),
    )
    fix_only: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _FIX,
            "Apply fixes, and do not report remaining findings. Implies --fix.",
            "fix-only = true",
        ),
    )
    output_format: str = field(
        default="full",
        metadata=_says(
            Kind.CHOICE,
            _REPORT,
            "The output format of findings.",
            'output-format = "concise"',
            choices=FORMATS,
            env="TORCHLINT_OUTPUT_FORMAT",
        ),
    )
    output_file: Path | None = field(
        default=None,
        metadata=_says(
            Kind.PATH,
            _REPORT,
            "Write the report to this file instead of standard output.",
            metavar="FILE",
            short="-o",
            env="TORCHLINT_OUTPUT_FILE",
            config=False,
        ),
    )
    report: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.REPORTS,
            _REPORT,
            "Also write a report in this format to a file. May be repeated.",
            metavar="FORMAT=FILE",
            config=False,
        ),
    )
    statistics: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL, _REPORT, "Print counts by rule instead of findings.", config=False, switch=True
        ),
    )
    fail_on: str = field(
        default="warning",
        metadata=_says(
            Kind.CHOICE,
            _REPORT,
            "The lowest severity that makes the exit status 1. Notes are always shown.",
            'fail-on = "note"',
            choices=("note", "warning", "error"),
        ),
    )
    impact: str = field(
        default=Impact.MEDIUM.label,
        metadata=_says(
            Kind.CHOICE,
            _REPORT,
            "The least impact of findings that are reported, fixed and counted in the exit status.",
            'impact = "low"',
            choices=tuple(impact.label for impact in Impact),
        ),
    )
    advice: str = field(
        default="aside",
        metadata=_says(
            Kind.CHOICE,
            _REPORT,
            "What to do with advice about whole programs: show it after the findings (`aside`), leave it "
            "out (`off`), or treat it as findings (`on`), in all formats, the exit status and --fix.",
            'advice = "off"',
            choices=("aside", "off", "on"),
        ),
    )
    exit_zero: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _REPORT,
            "Exit with 0 even if there are findings.",
            short="-e",
            config=False,
            switch=True,
        ),
    )
    exit_non_zero_on_fix: bool = field(
        default=False,
        metadata=_says(Kind.BOOL, _REPORT, "Exit with 1 if a file was fixed.", config=False, switch=True),
    )
    baseline: Path | None = field(
        default=None,
        metadata=_says(
            Kind.PATH,
            _REPORT,
            "Neither report nor fix the findings listed in this file.",
            'baseline = "torchlint-baseline.json"',
            metavar="FILE",
        ),
    )
    update_baseline: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _REPORT,
            "Add new findings to the baseline, and remove those that were fixed in the checked files.",
            config=False,
            switch=True,
        ),
    )
    ignore_baseline: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL, _REPORT, "Also report the findings listed in the baseline.", config=False, switch=True
        ),
    )
    show_files: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL, _REPORT, "List the files that would be checked.", config=False, switch=True
        ),
    )
    show_settings: bool = field(
        default=False,
        metadata=_says(Kind.BOOL, _REPORT, "Print the settings used for a file.", config=False, switch=True),
    )
    select: tuple[str, ...] = field(
        default=DEFAULT_SELECT,
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Enable only these rules. A prefix such as TL2 or TL does not enable opt-in rules; "
            "their code, their name or ALL does.",
            'select = ["TL1", "TL2", "TL301"]',
            per_file=True,
        ),
    )
    ignore: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Disable these rules. If a rule is both selected and ignored, the more specific selector wins.",
            'ignore = ["TL302", "loader-without-workers"]',
            per_file=True,
        ),
    )
    extend_select: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Enable these rules in addition to the selected ones.",
            'extend-select = ["TL311"]',
            per_file=True,
        ),
    )
    per_file_ignores: tuple[tuple[Pattern, tuple[str, ...]], ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES_BY_PATTERN,
            _RULES,
            "Disable rules in files that match a glob; a leading `!` negates it.",
            'per-file-ignores = { "tests/**" = ["TL2"], "__init__.py" = ["ALL"] }',
            metavar="GLOB:RULE",
            per_file=True,
        ),
    )
    extend_per_file_ignores: tuple[tuple[Pattern, tuple[str, ...]], ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES_BY_PATTERN,
            _RULES,
            "Like per-file-ignores, in addition to those of an extended config file.",
            'extend-per-file-ignores = { "examples/**" = ["TL1"] }',
            metavar="GLOB:RULE",
            per_file=True,
        ),
    )
    severity: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=_says(
            Kind.SEVERITIES,
            _RULES,
            "The severity of the findings of these rules: `note`, `warning` or `error`. The most specific "
            "selector applies.",
            'severity = { "TL2" = "error", "TL202" = "warning" }',
            cli=False,
            per_file=True,
        ),
    )
    per_file_severity: tuple[tuple[Pattern, tuple[tuple[str, str], ...]], ...] = field(
        default=(),
        metadata=_says(
            Kind.SEVERITIES_BY_PATTERN,
            _RULES,
            "Like severity, in files that match a glob. Of several matching globs the last one applies.",
            'per-file-severity = { "engine/**" = { "TL2" = "error" }, "tools/**" = { "ALL" = "note" } }',
            cli=False,
            per_file=True,
        ),
    )
    fixable: tuple[str, ...] = field(
        default=("ALL",),
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Only fix these rules.",
            'fixable = ["TL1", "TL301"]',
            per_file=True,
        ),
    )
    unfixable: tuple[str, ...] = field(
        default=(),
        metadata=_says(Kind.RULES, _RULES, "Never fix these rules.", 'unfixable = ["TL401"]', per_file=True),
    )
    extend_safe_fixes: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Treat the unsafe fixes of these rules as safe.",
            'extend-safe-fixes = ["TL101"]',
            cli=False,
            per_file=True,
        ),
    )
    extend_unsafe_fixes: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES,
            _RULES,
            "Treat the safe fixes of these rules as unsafe.",
            'extend-unsafe-fixes = ["TL301"]',
            cli=False,
            per_file=True,
        ),
    )
    target_torch: Target | None = field(
        default=None,
        metadata=_says(
            Kind.TARGET,
            _RULES,
            "The PyTorch releases that the code supports: 2.1 (and newer), a range, or unknown. By default "
            "those that the project's dependencies allow, else the installed one, else unknown.",
            'target-torch = "2.1"',
            metavar="VERSION",
            env="TORCHLINT_TARGET_TORCH",
            per_file=True,
        ),
    )
    workers: int = field(
        default=4,
        metadata=_says(
            Kind.INTEGER,
            _RULES,
            "The `num_workers` of data loaders that fixes set.",
            "workers = 8",
            cli=False,
            per_file=True,
        ),
    )
    hot: tuple[Pattern, ...] = field(
        default=(),
        metadata=_says(
            Kind.PATTERNS,
            _RULES,
            "Functions that run at every step although no loop shows it, such as those of a server: a glob "
            "of files, `::`, and a pattern of functions (`function`, `Class.method`, `*.method`, `Class`). "
            "Without `::`, all functions of the files.",
            'hot = ["engine/**::*.execute_model", "engine/attention/**::*.build"]',
            cli=False,
            per_file=True,
        ),
    )
    cold: tuple[Pattern, ...] = field(
        default=(),
        metadata=_says(
            Kind.PATTERNS,
            _RULES,
            "Functions that run once or seldom, whatever loops they have: loading, warming up, capturing "
            "graphs, profiling. As `hot`, which comes first where both match.",
            'cold = ["engine/**::*._dummy_run", "tools/**"]',
            cli=False,
            per_file=True,
        ),
    )
    allowed_sync_contexts: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.NAMES,
            _RULES,
            "Context managers and decorators inside which the host may wait for the device: rules about "
            "synchronization report nothing there. One around code that never waits is reported (TL002).",
            'allowed-sync-contexts = ["gpu_sync_allowed"]',
            cli=False,
            per_file=True,
        ),
    )
    host_names: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.NAMES,
            _RULES,
            "Variables and attributes whose tensors are in host memory.",
            'host-names = ["*_cpu", "self.staging.*"]',
            cli=False,
            per_file=True,
        ),
    )
    device_names: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.NAMES,
            _RULES,
            "Variables and attributes whose tensors are on the accelerator. host-names takes precedence.",
            'device-names = ["*_gpu", "self.block_table"]',
            cli=False,
            per_file=True,
        ),
    )
    known_async_helpers: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.NAMES,
            _RULES,
            "Functions that copy data to the device without blocking the host. Copies in their arguments "
            "and bodies are not reported, and the help of other copies suggests the first one.",
            'known-async-helpers = ["async_tensor_h2d"]',
            cli=False,
            per_file=True,
        ),
    )
    suppression_markers: tuple[tuple[str, tuple[str, ...]], ...] = field(
        default=(),
        metadata=_says(
            Kind.RULES_BY_MARKER,
            _RULES,
            "Comments that suppress rules: `# gpu-sync-ok: reason` at the end of a line, or above it.",
            'suppression-markers = { "gpu-sync-ok" = ["TL2"] }',
            cli=False,
            per_file=True,
        ),
    )
    require_suppression_reason: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _RULES,
            "Report suppression comments without a reason (TL003).",
            "require-suppression-reason = true",
            cli=False,
            per_file=True,
        ),
    )
    ignore_noqa: bool = field(
        default=False,
        metadata=_says(Kind.BOOL, _RULES, "Ignore suppression comments.", config=False, switch=True),
    )
    add_noqa: str | None = field(
        default=None,
        metadata=_says(
            Kind.STRING,
            _RULES,
            "Add a suppression comment for every finding, with an optional reason.",
            metavar="[=REASON]",
            config=False,
            optional=True,
        ),
    )
    changed_since: str | None = field(
        default=None,
        metadata=_says(
            Kind.STRING,
            _FILES,
            "Only report and fix lines changed since HEAD branched off this commit. "
            "Uncommitted changes and untracked files count as changed.",
            metavar="REF",
            config=False,
        ),
    )
    staged: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _FILES,
            "Check the files staged in git, and only report lines that differ from HEAD.",
            config=False,
            switch=True,
        ),
    )
    exclude: tuple[Pattern, ...] = field(
        default=_patterns(EXCLUDED.split()),
        metadata=_says(
            Kind.PATTERNS,
            _FILES,
            "Exclude matching files and directories, in .gitignore syntax. Replaces the defaults.",
            'exclude = ["third_party", "*_pb2.py"]',
            per_file=True,
        ),
    )
    extend_exclude: tuple[Pattern, ...] = field(
        default=(),
        metadata=_says(
            Kind.PATTERNS,
            _FILES,
            "Exclude these in addition to those in exclude.",
            'extend-exclude = ["legacy/"]',
            per_file=True,
        ),
    )
    include: tuple[Pattern, ...] = field(
        default=_patterns(INCLUDED),
        metadata=_says(
            Kind.PATTERNS,
            _FILES,
            "The files to check in a directory. Files named on the command line are always checked.",
            'include = ["*.py"]',
            cli=False,
            per_file=True,
        ),
    )
    extend_include: tuple[Pattern, ...] = field(
        default=(),
        metadata=_says(
            Kind.PATTERNS,
            _FILES,
            "Check these in addition to those in include.",
            'extend-include = ["*.pyi"]',
            cli=False,
            per_file=True,
        ),
    )
    extension: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=_says(
            Kind.LANGUAGES,
            _FILES,
            "Check files with these extensions too, as Python (`python`) or as notebooks (`ipynb`).",
            'extension = { "ipy" = "ipynb", "pyt" = "python" }',
            metavar="EXTENSION:LANGUAGE",
            per_file=True,
        ),
    )
    respect_gitignore: bool = field(
        default=True,
        metadata=_says(
            Kind.BOOL,
            _FILES,
            "Exclude files that .gitignore and similar files exclude.",
            "respect-gitignore = false",
        ),
    )
    force_exclude: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _FILES,
            "Exclude files even if they are named on the command line.",
            "force-exclude = true",
        ),
    )
    project: bool = field(
        default=True,
        metadata=_says(
            Kind.BOOL,
            _FILES,
            "Take the other files of a project into account when checking a file.",
            "project = false",
            per_file=True,
        ),
    )
    project_kind: str = field(
        default=AUTO,
        metadata=_says(
            Kind.CHOICE,
            _FILES,
            "Whether code outside the project may use what it exports (`library`), or not (`application`). "
            "With `auto`, the packages of a project with build metadata are a library.",
            'project-kind = "application"',
            choices=(AUTO, "library", "application"),
            per_file=True,
        ),
    )
    src: tuple[str, ...] = field(
        default=(),
        metadata=_says(
            Kind.FOLDERS,
            _FILES,
            "Folders, relative to the root of the project, in which imports are looked up, besides `src` and "
            "those that the build metadata names.",
            'src = ["lib", "tools/python"]',
            cli=False,
            per_file=True,
        ),
    )
    max_file_size: int = field(
        default=5_000_000,
        metadata=_says(
            Kind.INTEGER,
            _FILES,
            "Do not read files larger than this, or notebooks larger than ten times this, and report them "
            "(TL001); 0 means no limit.",
            "max-file-size = 20_000_000",
            metavar="BYTES",
            per_file=True,
        ),
    )
    stdin_filename: Path | None = field(
        default=None,
        metadata=_says(
            Kind.PATH,
            _FILES,
            "Check standard input as the file of this name, as with `-`.",
            metavar="FILE",
            config=False,
        ),
    )
    jobs: int = field(
        default=0,
        metadata=_says(
            Kind.INTEGER,
            _RUN,
            "Number of worker processes; 0 means one per processor.",
            metavar="N",
            short="-j",
            env="TORCHLINT_JOBS",
            config=False,
        ),
    )
    watch: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _RUN,
            "Check again whenever a file changes, until interrupted.",
            short="-w",
            config=False,
            switch=True,
        ),
    )
    no_cache: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _RUN,
            "Neither read nor write the cache.",
            short="-n",
            env="TORCHLINT_NO_CACHE",
            config=False,
            switch=True,
        ),
    )
    cache_dir: Path | None = field(
        default=None,
        metadata=_says(
            Kind.PATH,
            _RUN,
            "The cache directory, instead of the one in the user's cache folder.",
            'cache-dir = ".torchlint_cache"',
            metavar="FOLDER",
            env="TORCHLINT_CACHE_DIR",
        ),
    )
    timing: bool = field(
        default=False,
        metadata=_says(
            Kind.BOOL,
            _RUN,
            "Print the time that each rule takes to standard error. Ignores the cache.",
            config=False,
            switch=True,
        ),
    )
    required_version: str = field(
        default="",
        metadata=_says(
            Kind.VERSION,
            _RUN,
            "Require this version of torchlint.",
            'required-version = ">=0.1"',
            cli=False,
        ),
    )

    @property
    def included(self) -> tuple[Pattern, ...]:
        """The globs of the files to check in a directory."""
        languages = _patterns(f"*.{suffix}" for suffix, _ in self.extension)
        return (*self.include, *self.extend_include, *languages)

    @property
    def least(self) -> Impact:
        """The least impact of what is reported."""
        return next(each for each in Impact if each.label == self.impact)

    @property
    def writes(self) -> bool:
        """Whether files are to be changed."""
        return (self.fix or self.fix_only) and not self.diff


EXTEND = Setting(
    Kind.PATH,
    Section.RUNNING,
    "Another config file to inherit from; values in this file take precedence.",
    'extend = "../pyproject.toml"',
    cli=False,
    per_file=True,
)
"""The one key of a config file that is no option: by the time there are options, it has been followed."""


def settings() -> Mapping[str, Setting]:
    """Return what is said of each field of `Options`, by field name, in order."""
    return {item.name: item.metadata["setting"] for item in fields(Options)}


def defaults() -> Mapping[str, Any]:
    """Return the value of each field of `Options` when nobody says anything."""
    return {item.name: item.default for item in fields(Options)}


def key(name: str) -> str:
    """Return the spelling of a field in flags and config files."""
    return name.replace("_", "-")


def config_keys() -> Mapping[str, str]:
    """Return field names by config key."""
    return {key(name): name for name, setting in settings().items() if setting.config}


_LARGEST = 2**53
"""What every reader of JSON takes for the number that it is."""
_MOST_PATTERNS = 1_000


def convert(name: str, value: object, root: Path) -> Any:
    """Return the value of field ``name`` from what a config file gives; globs are relative to ``root``.

    Raises:
        ValueError: the value has the wrong type or is none of those allowed; the message is for people.
    """
    setting = settings()[name]
    kind = setting.kind
    if kind is Kind.BOOL and isinstance(value, bool):
        return value
    if kind is Kind.INTEGER and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        if value > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST}")
        return value
    if kind in (Kind.STRING, Kind.VERSION) and isinstance(value, str):
        return value
    if kind is Kind.PATH and isinstance(value, str):
        return root / value
    if kind is Kind.CHOICE and isinstance(value, str):
        if value in setting.choices:
            return value
        raise ValueError(none_of(value, setting.choices))
    if kind is Kind.TARGET and isinstance(value, str):
        return Target.parse(value, "target-torch")
    globs = (Kind.PATTERNS, Kind.RULES_BY_PATTERN, Kind.SEVERITIES_BY_PATTERN, Kind.NAMES)
    if kind in globs and isinstance(value, (list, tuple, dict)):
        if len(value) > _MOST_PATTERNS:
            raise ValueError(f"it has {len(value)} patterns, but at most {_MOST_PATTERNS} are allowed")
    if kind in (Kind.RULES, Kind.PATTERNS) and isinstance(value, (list, tuple)) and _is_strings(value):
        return tuple(value) if kind is Kind.RULES else tuple(_pattern(text, root) for text in value)
    if kind is Kind.RULES_BY_PATTERN and isinstance(value, dict) and all(map(_is_strings, value.values())):
        return tuple((_pattern(text, root), tuple(rules)) for text, rules in value.items())
    if kind is Kind.RULES_BY_MARKER and isinstance(value, dict) and all(map(_is_strings, value.values())):
        return tuple((_marker(word), tuple(rules)) for word, rules in value.items())
    if kind is Kind.LANGUAGES and isinstance(value, dict) and _is_strings(list(value.values())):
        return tuple(map(_language, value.items()))
    if kind is Kind.SEVERITIES and isinstance(value, dict):
        return _severities(value)
    if kind is Kind.SEVERITIES_BY_PATTERN and isinstance(value, dict):
        if all(isinstance(severities, dict) for severities in value.values()):
            return tuple((_pattern(text, root), _severities(table)) for text, table in value.items())
    if kind is Kind.NAMES and isinstance(value, list) and _is_strings(value):
        return tuple(map(_name, value))
    if kind is Kind.FOLDERS and isinstance(value, list) and _is_strings(value):
        return tuple(value)
    raise ValueError(f"expected {kind.value}, found {_describe(value)}")


def _pattern(text: str, root: Path) -> Pattern:
    # In .gitignore syntax a backslash takes the next character literally. Before one that has no meaning, or
    # before two stars, it is there to separate directories, and would match nothing.
    if re.fullmatch(r"(?:[^\\]|\\(?![A-Za-z0-9_.]|\*\*).)*", text, re.DOTALL) is None:
        raise ValueError(
            f"`{text}` is not a glob pattern: separate directories with `/`, and use a backslash only to "
            "escape a special character"
        )
    # The pattern of functions behind it, in `hot` and `cold`, is none of files.
    files = text.rpartition("::")[0] or text
    flaw = _flaw(files.removeprefix("!"))
    if flaw:
        raise ValueError(f"`{text}` {flaw}")
    return Pattern(text, root)


def _flaw(glob: str) -> str | None:
    """Return why no file can match a pattern, as far as its text shows."""
    if not glob.strip(" /"):
        return "matches nothing: name a file or a directory"
    if ".." in glob.split("/"):
        return "matches nothing: a glob pattern names what is below its directory, so it cannot contain `..`"
    if re.search(r"(?<!\\)\{[^{}/]*,[^{}/]*\}", glob):
        return "is not a glob pattern: braces have no meaning; use a pattern for each alternative"
    if "[" in glob:
        from torchlint import globs

        if not globs.is_pattern(glob):
            return "is not a glob pattern: `[` begins a set such as `[ab]`; write `\\[` for the bracket"
    return None


MARKER = "[A-Za-z][A-Za-z0-9_-]*"
"""What the first word of a comment that suppresses findings looks like."""
TAKEN_MARKERS = ("noqa", "torchlint")
NAME = r"[A-Za-z_*][A-Za-z0-9_*]*([.][A-Za-z_*][A-Za-z0-9_*]*)*"
"""What a dotted name with wildcards looks like."""


def _marker(word: str) -> str:
    if re.fullmatch(MARKER, word) is None or word.lower() in TAKEN_MARKERS:
        raise ValueError(f"`{word}` cannot be a marker: use one word of letters, digits, `-` and `_`")
    return word


def _name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise ValueError(f"`{text}` is not a name such as `gpu_sync_allowed`, `utils.*` or `self.*_cpu`")
    return text


EXTENSION = "[A-Za-z0-9_+-]+"
"""What a file extension looks like, without its dot."""
LANGUAGES = ("python", "ipynb")


def _language(item: tuple[str, str]) -> tuple[str, str]:
    suffix, language = item
    if re.fullmatch(EXTENSION, suffix) is None:
        raise ValueError(f"`{suffix}` is not a file extension such as `ipy`, without the dot")
    if is_document(Path(f"_.{suffix}")):
        raise ValueError(f"`{suffix}` files are read as configuration files")
    if language not in LANGUAGES:
        raise ValueError(none_of(language, LANGUAGES))
    return item


def _severities(table: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    known = [severity.value for severity in Severity]
    for value in table.values():
        if not isinstance(value, str):
            raise ValueError(f"expected {Kind.SEVERITIES.value}, found {_describe(value)} in it")
        if value not in known:
            raise ValueError(none_of(value, known))
    return tuple((selector, str(value)) for selector, value in table.items())


def _is_strings(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _describe(value: object, depth: int = 3) -> str:
    """Return what a value is, in words; ``depth`` is how many levels of it are looked at."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    kind = names.get(type(value), f"a {type(value).__name__}")
    if depth == 0:
        return kind
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return f"a list with {_describe(odd, depth - 1)} in it" if odd is not None else kind
    if isinstance(value, dict):
        odd_key = next((name for name, item in value.items() if not _is_strings(item)), None)
        if odd_key is None:
            return kind
        return f"a table whose `{odd_key}` is {_describe(value[odd_key], depth - 1)}"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return kind
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{kind} (`{shown if len(shown) <= _LONGEST_WORD else shown[:_LONGEST_WORD] + '…'}`)"


def none_of(word: str, known: Sequence[str]) -> str:
    """Return what is said of a word that is none of those known: all of these, and the closest."""
    return f"`{word}` is none of {', '.join(f'`{item}`' for item in known)}{did_you_mean(word, known)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for the closest known word, or for those with a part like it,
    or nothing.
    """
    known = tuple(known)
    meant = closest(word, known)
    found = [f"`{name}`" for name in ([meant] if meant else _with_part(word, known))]
    if len(found) > 1:
        found = [", ".join(found[:-1]), found[-1]]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _with_part(word: str, known: tuple[str, ...]) -> list[str]:
    """Return the first few known words of several parts that ``word`` is like one part of:
    `loop`, `trget`.
    """
    parts = {part for name in known for part in name.strip("-").split("-")}
    meant = closest(word, sorted(parts)) if len(word) >= _SHORTEST_PART else None
    if meant is None or _ratio(word.casefold(), meant) < _CLOSE_TO_PART:
        return []
    return [name for name in known if meant in name.split("-")][:_MANY]


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that ``word`` is most like, if it is like one."""
    if len(word) > _LONGEST_WORD:
        return None
    return _closest(word, tuple(known))


# One slip is often made in many places of a file.
@lru_cache(maxsize=256)
def _closest(word: str, known: tuple[str, ...]) -> str | None:
    by_folded = {item.casefold(): item for item in known}
    folded = word.casefold()
    # Of words that are equally like it, the one with more of its letters in their places, TL4O1 is TL401,
    # and of those the one that begins like it: TL999 is among TL901 to TL906.
    likeness = {
        item: (_ratio(folded, item), _in_place(folded, item), _at_start(folded, item)) for item in by_folded
    }
    best = max(likeness, key=lambda item: likeness[item], default="")
    return by_folded[best] if best and likeness[best][0] >= _CLOSE else None


_CLOSE = 0.6
"""From which share of common letters on a word may be meant, as ``difflib`` takes it."""
_CLOSE_TO_PART = 0.75
_LONGEST_WORD = 100
_SHORTEST_PART = 4
_MANY = 3
_LOOK_ALIKE = str.maketrans("oil", "011")


def _ratio(word: str, other: str) -> float:
    import difflib

    return difflib.SequenceMatcher(None, other, word).ratio()


def _in_place(word: str, other: str) -> int:
    """Return how many letters look the same in both words at the same place."""
    return sum(map(str.__eq__, word.translate(_LOOK_ALIKE), other.translate(_LOOK_ALIKE)))


def _at_start(word: str, other: str) -> int:
    """Return how many letters both words begin with."""
    return next((at for at, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), 0)


def plain(name: str, value: Any) -> Any:
    """Return the value of field ``name`` as JSON, TOML and people can have it; None where there is none."""
    kind = settings()[name].kind
    if kind is Kind.RULES_BY_PATTERN:
        return {pattern.text: list(rules) for pattern, rules in value}
    if kind is Kind.RULES_BY_MARKER:
        return {word: list(rules) for word, rules in value}
    if kind in (Kind.LANGUAGES, Kind.SEVERITIES):
        return dict(value)
    if kind is Kind.SEVERITIES_BY_PATTERN:
        return {pattern.text: dict(severities) for pattern, severities in value}
    if isinstance(value, tuple):
        return [item.text if isinstance(item, Pattern) else item for item in value]
    return str(value) if isinstance(value, (Path, Target)) else value
