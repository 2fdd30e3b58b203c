"""Config files: where they are, what they may say, and the settings that a file ends up with.

The config closest to a file decides, alone; ``extend`` names a file to start from. Within one directory
``.torchlint.toml`` counts before ``torchlint.toml`` before ``[tool.torchlint]`` of ``pyproject.toml``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torchlint import __version__, options, selectors, target
from torchlint.diagnostics import Severity
from torchlint.files import absolute, matches
from torchlint.options import Kind, LintSettings, Options, did_you_mean
from torchlint.rule import Rule
from torchlint.selectors import Selection, UnknownSelectorError
from torchlint.source import SourceError, is_file, is_folder, read_bytes

_LONGEST_CHAIN, _LONGEST_LINE = 20, 200
FILE_NAMES = (".torchlint.toml", "torchlint.toml", "pyproject.toml")
COMMAND_LINE = "the command line"
_LARGEST = 1_000_000


class ConfigError(Exception):
    """A config file or a flag says something that torchlint cannot follow; the message is for people."""


@dataclass(frozen=True)
class Layer:
    """What one source says: converted values by field name of `Options`.

    ``origin`` names the source for people; ``path`` and ``text`` are the file's, to point into it.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    origin: str = COMMAND_LINE
    path: Path | None = None
    text: str = ""

    @property
    def selection(self) -> Selection:
        """The rule selectors of this layer."""
        values = self.values
        return Selection(
            select=values.get("select"),
            extend_select=values.get("extend_select", ()),
            ignore=values.get("ignore", ()),
            fixable=values.get("fixable"),
            unfixable=values.get("unfixable", ()),
        )

    def error(self, key: str, message: str) -> ConfigError:
        """Return a `ConfigError` that points at ``key`` in the file, or names it where there is no file."""
        if self.path is None:
            return ConfigError(f"{message} (`{key}` from {self.origin})")
        return ConfigError(_pointed(self.path, self.text, key, message))


# --- reading one file ---------------------------------------------------------------------------------


def read(path: Path) -> tuple[Layer, ...] | None:
    """Return the layers of a config file, those it extends first;
    None for a pyproject.toml that has no table.

    Raises:
        ConfigError: the file, or one it extends, cannot be read or followed.
    """
    return _read(path, ())


def _read(path: Path, seen: tuple[Path, ...]) -> tuple[Layer, ...] | None:
    path = absolute(path)
    if path in seen:
        chain = " → ".join(str(item) for item in (*seen, path))
        raise ConfigError(f"config files extend each other in a cycle: {chain}")
    try:
        text = read_bytes(path, _LARGEST).decode("utf-8-sig")
    except SourceError as error:
        raise ConfigError(f"cannot read {path}: {error.reason.partition(': ')[2]}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8") from error
    if path.name == "pyproject.toml" and "torchlint" not in text:
        return None
    from torchlint import toml

    try:
        document: Any = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise _syntax_error(path, text, error) from error
    if path.name == "pyproject.toml":
        tool = document.get("tool")
        document = tool.get("torchlint") if isinstance(tool, dict) else None
        if document is None:
            return None
        if not isinstance(document, dict):
            raise ConfigError(_pointed(path, text, "torchlint", "`tool.torchlint` must be a table"))
    layer = Layer({}, f"`{path}`", path, text)
    base: tuple[Layer, ...] = ()
    if "extend" in document:
        base = _extended(layer, document.pop("extend"), (*seen, path))
    return (*base, Layer(_values(document, layer, path.parent), layer.origin, path, text))


def _extended(layer: Layer, value: object, seen: tuple[Path, ...]) -> tuple[Layer, ...]:
    if not isinstance(value, str):
        raise layer.error("extend", f"`extend` must be {Kind.PATH.value} to another config file")
    if len(seen) > _LONGEST_CHAIN:
        raise layer.error("extend", f"more than {_LONGEST_CHAIN} config files extend each other")
    path = seen[-1].parent / Path(os.path.expandvars(value)).expanduser()
    # Told as it is written: what a variable holds is not for everybody who reads the log of a build.
    if not is_file(path):
        raise layer.error("extend", f"`extend` names {_cut(value)}, which is not a file")
    layers = _read(path, seen)
    if layers is None:
        raise layer.error("extend", f"`extend` names {_cut(value)}, which has no `[tool.torchlint]` table")
    return layers


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"


def inline(text: str, root: Path) -> Layer:
    """Return the layer of one ``--config 'KEY = VALUE'``.

    Raises:
        ConfigError: it is not TOML, or no known key.
    """
    origin = f"`--config {text}`"
    from torchlint import toml

    try:
        document = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise ConfigError(
            f'`--config {text}` is neither a file nor TOML such as `fail-on = "note"`: {error}'
        ) from error
    layer = Layer({}, origin)
    if "extend" in document:
        raise ConfigError("`extend` only works in config files; use `--config FILE`")
    return Layer(_values(document, layer, root), origin)


def table(document: Mapping[str, Any], origin: str, root: Path) -> Mapping[str, Any]:
    """Return the values by field name of a table of config keys that ``origin`` gives,
    for instance an editor.

    Globs are relative to ``root``.

    Raises:
        ConfigError: it has an unknown key, or a value that cannot be followed.
    """
    return _values(document, Layer({}, origin), root)


def _values(document: Mapping[str, Any], layer: Layer, root: Path) -> Mapping[str, Any]:
    known = options.config_keys()
    values = {}
    for key, value in document.items():
        name = known.get(key)
        if name is None:
            raise layer.error(key, f"unknown key `{key}`{_hint(key, value)}") from None
        try:
            values[name] = options.convert(name, value, root)
        except ValueError as error:
            raise layer.error(key, f"invalid value for `{key}`: {error}") from None
    return values


def _hint(key: str, value: object) -> str:
    """Return what may have been meant by a key that does not exist."""
    if key == "tool" and isinstance(value, dict):
        return "; in this file keys are at the top level, without `[tool.torchlint]`"
    if key in _TABLES_OF_RUFF and isinstance(value, dict):
        return f"; torchlint has no subtables: move the keys of `{key}` to the top level"
    if key in map(options.key, options.settings()):
        return f"; it can only be set with `--{key}`"
    return did_you_mean(key, [*options.config_keys(), "extend"]) or "; `torchlint config` lists all keys"


_TABLES_OF_RUFF = frozenset({"lint", "format"})
_HEADER = re.compile(r"\s*\[+([^\[\]]+)\]")
_ASSIGNED = re.compile(r"\s*([\w\-.\"' ]+?)\s*=")


def _pointed(path: Path, text: str, key: str, message: str) -> str:
    """Return ``FILE, line N: message`` and the line with ``key`` underlined, if it is found in the text.

    TOML readers keep no positions. Other tools of a pyproject.toml have keys of the same names, so the
    table around a line is followed.
    """
    wanted = [*(["tool", "torchlint"] if path.name == "pyproject.toml" else []), key]
    if key == "torchlint":
        wanted.pop()
    table: list[str] = []
    for row, line in enumerate(text.splitlines(), 1):
        header, assigned = _HEADER.match(line), _ASSIGNED.match(line)
        if header:
            table = _parts(header.group(1))
        found = header or assigned
        if found and (table if header else [*table, *_parts(found.group(1))])[: len(wanted)] == wanted:
            start = line.find(key, found.start(1))
            return f"{path}, line {row}: {message}" + _caret(line, row, start, start + len(key))
    return f"{path}: {message}"


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _caret(line: str, row: int, start: int, end: int) -> str:
    gutter = " " * len(str(row))
    first = max(0, min(start, len(line) - _LONGEST_LINE))
    cut = line[first : first + _LONGEST_LINE]
    shown = ("…" if first else "") + cut.replace("\t", " ") + ("…" if first + len(cut) < len(line) else "")
    start, end = start - first + bool(first), min(end, first + _LONGEST_LINE) - first + bool(first)
    return f"\n{gutter} |\n{row} | {shown}\n{gutter} | {' ' * start}{'^' * max(1, end - start)}"


def _syntax_error(path: Path, text: str, error: ValueError) -> ConfigError:
    match = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error))
    if match is None:
        return ConfigError(f"{path} is not valid TOML: {error}")
    row, column = int(match.group(2)), int(match.group(3))
    lines = text.splitlines()
    line = lines[row - 1] if row <= len(lines) else ""
    return ConfigError(
        f"{path}, line {row}: not valid TOML: {match.group(1)}" + _caret(line, row, column - 1, column)
    )


# --- the settings of a place --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Settings:
    """Layers resolved: the options, and the rules that they leave enabled.

    ``layers`` come lowest priority first. Raises `ConfigError` on first use of what cannot be resolved.
    """

    layers: tuple[Layer, ...]
    rules: Mapping[str, Rule]

    @cached_property
    def options(self) -> Options:
        """Every option: the highest layer that gives it wins, but ``extend-…`` options add up."""
        values: dict[str, Any] = {}
        for layer in self.layers:
            for name, value in layer.values.items():
                adds = name.startswith("extend_")
                values[name] = (*values.get(name, ()), *value) if adds else value
        return Options(**values)

    def origin(self, name: str) -> Layer | None:
        """Return the layer that gives this field of `Options`; None where it has its default."""
        return next((layer for layer in reversed(self.layers) if name in layer.values), None)

    @property
    def files(self) -> tuple[Path, ...]:
        """The config files behind these settings, the deciding one last."""
        return tuple(layer.path for layer in self.layers if layer.path is not None)

    @cached_property
    def enabled(self) -> tuple[str, ...]:
        """The codes of the enabled rules, before per-file ignores."""
        return selectors.enabled(self._selections, self.rules)

    @cached_property
    def _selections(self) -> list[Selection]:
        self._check_selectors()
        default = Selection(select=options.DEFAULT_SELECT)
        return [default, *(layer.selection for layer in self.layers)]

    def _check_selectors(self) -> None:
        settings = options.settings()
        for layer in self.layers:
            for name, value in layer.values.items():
                kind = settings[name].kind
                if kind in (Kind.RULES_BY_PATTERN, Kind.RULES_BY_MARKER):
                    named = [selector for _, chosen in value for selector in chosen]
                elif kind is Kind.SEVERITIES:
                    named = [selector for selector, _ in value]
                elif kind is Kind.SEVERITIES_BY_PATTERN:
                    named = [selector for _, severities in value for selector, _ in severities]
                elif kind is Kind.RULES:
                    named = list(value)
                else:
                    continue
                for selector in named:
                    try:
                        selectors.expand(selector, self.rules)
                    except UnknownSelectorError as error:
                        key = options.key(name)
                        if layer.path is None:
                            raise ConfigError(f"{error} (in `{key}` from {layer.origin})") from None
                        raise layer.error(key, f"{error} (in `{key}`)") from None

    @cached_property
    def _common(self) -> LintSettings:
        chosen = self.options
        return LintSettings(
            rules=self.enabled,
            fixable=selectors.fixable(self._selections, self.rules),
            unsafe_fixes=chosen.unsafe_fixes,
            workers=chosen.workers,
            max_file_size=chosen.max_file_size,
            extend_safe_fixes=selectors.expand_all(chosen.extend_safe_fixes, self.rules),
            extend_unsafe_fixes=selectors.expand_all(chosen.extend_unsafe_fixes, self.rules),
            ignore_noqa=chosen.ignore_noqa,
            hot=tuple((pattern.root.as_posix(), pattern.text) for pattern in chosen.hot),
            cold=tuple((pattern.root.as_posix(), pattern.text) for pattern in chosen.cold),
            markers=tuple(
                (word, tuple(sorted(selectors.expand_all(named, self.rules))))
                for word, named in chosen.suppression_markers
            ),
            reasons=chosen.require_suppression_reason,
            allowed_sync_contexts=chosen.allowed_sync_contexts,
            host_names=chosen.host_names,
            device_names=chosen.device_names,
            known_async_helpers=chosen.known_async_helpers,
            extension=chosen.extension,
        )

    @cached_property
    def _made(self) -> dict[tuple[Any, ...], LintSettings]:
        return {}

    def _targets(self, directory: Path) -> tuple[target.Target, ...]:
        """Return the detected targets of torch and of the other libraries, looked for once a directory."""
        known = self._detected.get(directory)
        if known is None:
            torch = self.options.target_torch or target.detect(directory)
            others = (target.detect(directory, name, torch) for name in target.LIBRARIES)
            known = self._detected[directory] = (torch, *others)
        return known

    @cached_property
    def _detected(self) -> dict[Path, tuple[target.Target, ...]]:
        return {}

    def lint(self, path: Path) -> LintSettings:
        """Return what the checker needs for the file at ``path``; equal settings are one object."""
        chosen, common = self.options, self._common
        off = frozenset[str]().union(
            *(
                selectors.expand_all(named, self.rules)
                for pattern, named in (*chosen.per_file_ignores, *chosen.extend_per_file_ignores)
                if matches(pattern, path)
            )
        )
        found, *others = self._targets(path if is_folder(path) else path.parent)
        severities = self._severities(path)
        key = off, severities, found, *others
        if key not in self._made:
            self._made[key] = replace(
                common,
                rules=tuple(code for code in common.rules if code not in off),
                target=found,
                libraries=dict(zip(target.LIBRARIES, others, strict=True)),
                severities=severities,
            )
        return self._made[key]

    def _severities(self, path: Path) -> tuple[tuple[str, Severity], ...]:
        """Return the codes that get another severity in the file at ``path``, with that."""
        chosen, found = self.options, dict[str, Severity]()
        by_pattern = (named for pattern, named in chosen.per_file_severity if matches(pattern, path))
        for table in (chosen.severity, *by_pattern):
            for selector, severity in sorted(table, key=lambda i: selectors.specificity(i[0], self.rules)):
                found |= dict.fromkeys(selectors.expand(selector, self.rules), Severity(severity))
        return tuple(sorted(found.items(), key=lambda item: item[0]))


class Resolver:
    """Finds the settings of any place from the flags, the ``--config`` values and the files around it.

    ``given`` is what the command line says; ``configs`` the values of ``--config`` in order; with
    ``isolated`` no config file is looked for. Globs of the command line are relative to ``directory``.

    Raises:
        ConfigError: a ``--config`` value cannot be followed.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        given: Mapping[str, Any] | None = None,
        configs: Sequence[str] = (),
        *,
        isolated: bool = False,
        directory: Path | None = None,
    ) -> None:
        self.rules = rules
        self.directory = directory or Path.cwd()
        self.isolated = isolated
        self._inline: list[Layer] = []
        self._file: tuple[Layer, ...] | None = None
        for value in configs:
            self._add(value)
        self._given = Layer(given or {})
        self._by_config: dict[Path | None, Settings] = {}
        self._configs: dict[Path, Path | None] = {}
        self.run = self.settings(self.directory)
        self._check_version(self.run)

    def _add(self, value: str) -> None:
        path = self.directory / Path(value).expanduser()
        if not is_file(path):
            if "=" not in value:
                raise ConfigError(f'`--config {value}` is neither a file nor TOML such as `fail-on = "note"`')
            self._inline.append(inline(value, self.directory))
            return
        if self.isolated:
            raise ConfigError(f"`--config {value}` names a file and cannot be combined with `--isolated`")
        if self._file is not None:
            raise ConfigError("`--config` accepts only one file")
        layers = read(path)
        if layers is None:
            raise ConfigError(f"{path} has no `[tool.torchlint]` table")
        self._file = layers

    def settings(self, directory: Path) -> Settings:
        """Return the settings of the files in ``directory``.

        Raises:
            ConfigError: the closest config file cannot be followed.
        """
        config = None if self.isolated or self._file is not None else self._closest(directory)
        settings = self._by_config.get(config)
        if settings is None:
            layers = self._file or (read(config) if config else None) or ()
            settings = Settings((*layers, *self._inline, self._given), self.rules)
            self._check_version(settings)
            self._by_config[config] = settings
        return settings

    def lint(self, path: Path) -> LintSettings:
        """Return what the checker needs for the file at ``path``."""
        return self.settings(path.absolute().parent).lint(path.absolute())

    def _closest(self, directory: Path) -> Path | None:
        """Return the config file that decides for ``directory``, the user's own where no project has one."""
        if directory not in self._configs:
            found = next(_configs_in(directory), None)
            if found is None:
                at_top = directory.parent == directory
                found = user_config() if at_top else self._closest(directory.parent)
            self._configs[directory] = found
        return self._configs[directory]

    def _check_version(self, settings: Settings) -> None:
        required = settings.options.required_version
        if not required:
            return
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            admitted = SpecifierSet(required if required[0] in "<>=!~" else f"=={required}")
        except InvalidSpecifier:
            raise ConfigError(f"`required-version` must be a version specifier, not `{required}`") from None
        if not admitted.contains(__version__, prereleases=True):
            raise ConfigError(f"this project requires torchlint {required}; this is {__version__}")


def _configs_in(directory: Path) -> Iterator[Path]:
    for name in FILE_NAMES:
        path = directory / name
        if is_file(path) and (name != "pyproject.toml" or read(path) is not None):
            yield path


def user_config() -> Path | None:
    """Return the user's own config file, which counts where no project has one."""
    from platformdirs import user_config_path

    path = user_config_path("torchlint", appauthor=False) / "torchlint.toml"
    return path if is_file(path) else None
