"""``torchlint config``: the keys that a config file may hold."""

from __future__ import annotations

import json
from typing import Any

import click

from torchlint import options
from torchlint.commands import Failure, completion
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.options import Setting


def _described() -> dict[str, dict[str, Any]]:
    """Return what is said of each option, by key; those that a config file may hold come first."""
    defaults = options.defaults()
    said = {
        options.key(name): (setting, options.plain(name, defaults[name]))
        for name, setting in options.settings().items()
    }
    said["extend"] = (options.EXTEND, None)
    return {
        key: {
            "key": key,
            "section": setting.section.value,
            "help": setting.help,
            "type": setting.kind.value,
            "default": default,
            "choices": list(setting.choices),
            "config": setting.config,
            "flag": f"--{key}" if setting.cli else None,
            "env": setting.env or None,
            "per_file": setting.per_file,
            "example": setting.example or _on_the_command_line(key, setting),
        }
        for key, (setting, default) in sorted(said.items(), key=lambda item: not item[1][0].config)
    }


def _on_the_command_line(key: str, setting: Setting) -> str:
    return f"torchlint --{key}" + (f" {setting.metavar}" if setting.metavar else "")


def _run(
    key: str | None, output_format: str, verbose: bool, quiet: bool, silent: bool, color: str, **_: object
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    described = _described()
    if key is not None and key not in described:
        hint = options.did_you_mean(key, described) or "; `torchlint config` lists them"
        raise Failure(f"unknown config key `{key}`{hint}")
    if output_format == "json":
        keys = [item for item in described.values() if item["config"]]
        terminal.out(json.dumps(described[key] if key else keys, indent=2) + "\n")
    elif key is not None:
        terminal.out(_page(described[key]))
    else:
        for section in options.Section:
            inside = [
                item for item in described.values() if item["config"] and item["section"] == section.value
            ]
            if inside:
                width = max(len(item["key"]) for item in described.values())
                terminal.out(f"# {section.value}\n")
                terminal.out("".join(f"{item['key']:<{width}}  {item['help']}\n" for item in inside) + "\n")


def _page(item: dict[str, Any]) -> str:
    flag, env = item["flag"], item["env"]
    given = [f"`{name}`" for name in (flag, env) if name]
    lines = [
        item["help"],
        "",
        f"Value: {item['type']}",
        *([f"Choices: {', '.join(item['choices'])}"] if item["choices"] else []),
        f"Default: {json.dumps(item['default'])}" if item["default"] not in (None, "") else "Default: none",
    ]
    if not item["config"]:
        return "\n".join([*lines, f"Only set by: {', '.join(given)}", "", f"Example: {item['example']}", ""])
    decides = "the source file" if item["per_file"] else "the working directory"
    lines += [
        *([f"Also set by: {', '.join(given)}"] if given else []),
        f"Read from: the config file closest to {decides}",
        "",
        "Example, in pyproject.toml:",
        "",
        "    [tool.torchlint]",
        f"    {item['example']}",
        "",
    ]
    return "\n".join(lines)


command = click.Command(
    "config",
    callback=_run,
    help="List the keys of a config file, or explain KEY (or another option).",
    params=[
        click.Argument(["key"], required=False, metavar="[KEY]", shell_complete=completion.config_keys),
        click.Option(["--output-format"], type=Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
