"""What the editor's own settings say: ``initializationOptions``, or those of a section ``torchlint``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchlint import config
from torchlint.config import ConfigError, Resolver
from torchlint.options import did_you_mean
from torchlint.rule import Rule
from torchlint.source import is_file

SECTION = "torchlint"
_ORIGIN = "the editor's settings"
# How a setting is called in editors, and the config key that it stands for.
_OPTIONS = {name: name for name in ("select", "ignore", "impact", "advice")} | {
    "extendSelect": "extend-select"
}
_KNOWN = ("configuration", *_OPTIONS, "fixAll", "lint")


def concern(given: object) -> bool:
    """Return whether settings that an editor sends are torchlint's:
    some send what they have for other servers.
    """
    return isinstance(given, Mapping) and any(key in given for key in ("settings", SECTION, *_KNOWN))


@dataclass(frozen=True)
class Preferences:
    """The editor's settings.

    ``configuration`` is the path of a config file to use instead of those found, or a table of config keys;
    ``options`` are others by config key. Both win over config files. With ``on_save`` a text is
    checked when it is opened and saved, and not while it is typed. Without ``fix_all`` no fixes are offered
    for all findings at once.
    """

    configuration: str | Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    fix_all: bool = True
    on_save: bool = False

    @classmethod
    def read(cls, given: object) -> Preferences:
        """Return the preferences in what the editor sends; ``settings`` or ``torchlint`` may be around them.

        Raises:
            ConfigError: a setting is unknown or has a value that cannot be followed.
        """
        # An empty table of Lua becomes an empty array in the JSON that Neovim sends.
        if given is None or given == []:
            return cls()
        for around in ("settings", SECTION):
            if isinstance(given, Mapping) and isinstance(given.get(around), Mapping):
                given = given[around]
        if not isinstance(given, Mapping):
            raise ConfigError(f"{_ORIGIN} must be a table")
        for key in given:
            if key not in _KNOWN:
                hint = (
                    did_you_mean(key, _KNOWN) or f"; there are {', '.join(f'`{known}`' for known in _KNOWN)}"
                )
                raise ConfigError(f"unknown key `{key}` in {_ORIGIN}{hint}")
        configuration = given.get("configuration") or {}
        if not isinstance(configuration, (str, Mapping)):
            raise ConfigError(f"`configuration` in {_ORIGIN} must be a path or a table of config keys")
        lint = given.get("lint") or {}
        run = lint.get("run", "onType") if isinstance(lint, Mapping) else None
        if run not in ("onType", "onSave"):
            raise ConfigError(f"`lint.run` in {_ORIGIN} must be `onType` or `onSave`")
        options = {_OPTIONS[key]: given[key] for key in _OPTIONS if given.get(key) is not None}
        if isinstance(options.get("advice"), bool):
            # An editor shows it as it shows findings, or not at all.
            options["advice"] = "on" if options["advice"] else "off"
        return cls(
            configuration,
            options,
            given.get("fixAll") is not False,
            run == "onSave",
        )

    def resolver(
        self,
        rules: Mapping[str, Rule],
        directory: Path,
        configs: Sequence[str] = (),
        *,
        isolated: bool = False,
    ) -> Resolver:
        """Return what finds the settings of files below ``directory``;
        ``configs`` are those of the command line.

        Raises:
            ConfigError: a config file, or what the editor says, cannot be followed.
        """
        inline = {} if isinstance(self.configuration, str) else self.configuration
        given = config.table({**inline, **self.options}, _ORIGIN, directory)
        files: list[str] = []
        if isinstance(self.configuration, str):
            path = directory / Path(self.configuration).expanduser()
            if not is_file(path):
                raise ConfigError(f"`configuration` in {_ORIGIN} names {path}, which is not a file")
            files.append(str(path))
        return Resolver(rules, given, [*configs, *files], isolated=isolated, directory=directory)
