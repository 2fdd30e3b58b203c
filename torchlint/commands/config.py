"""``torchlint config``: the keys that a config file may hold."""

from __future__ import annotations

import json
from typing import Any

import click

from torchlint import options
from torchlint.commands import Failure
from torchlint.commands.terminal import Terminal, shared_parameters
from torchlint.options import Kind

_EXTEND: dict[str, Any] = {
    "key": "extend",
    "section": options.Section.RUNNING.value,
    "help": "Another config file to start from; what this file says wins.",
    "type": Kind.PATH.value,
    "default": None,
    "choices": [],
    "flag": None,
    "env": None,
    "example": 'extend = "../pyproject.toml"',
}


def _described() -> dict[str, dict[str, Any]]:
    """What is said of each key, by key."""
    defaults = options.defaults()
    found = {
        key: {
            "key": key,
            "section": setting.section.value,
            "help": setting.help,
            "type": setting.kind.value,
            "default": options.plain(defaults[name]),
            "choices": list(setting.choices),
            "flag": f"--{key}" if setting.cli else None,
            "env": setting.env or None,
            "example": setting.example,
        }
        for key, name in options.config_keys().items()
        for setting in [options.settings()[name]]
    }
    return {**found, "extend": _EXTEND}


def _run(
    key: str | None, output_format: str, verbose: bool, quiet: bool, silent: bool, color: str, **_: object
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    described = _described()
    if key is not None and key not in described:
        hint = options.did_you_mean(key, described) or "; `torchlint config` lists them"
        raise Failure(f"unknown config key `{key}`{hint}")
    if output_format == "json":
        terminal.out(json.dumps(described[key] if key else list(described.values()), indent=2) + "\n")
    elif key is not None:
        terminal.out(_page(described[key]))
    else:
        for section in options.Section:
            inside = [item for item in described.values() if item["section"] == section.value]
            if inside:
                width = max(len(item["key"]) for item in described.values())
                terminal.out(f"# {section.value}\n")
                terminal.out("".join(f"{item['key']:<{width}}  {item['help']}\n" for item in inside) + "\n")


def _page(item: dict[str, Any]) -> str:
    given = [f"`{item['flag']}`"] if item["flag"] else []
    given += [f"`{item['env']}`"] if item["env"] else []
    lines = [
        item["help"],
        "",
        f"Value: {item['type']}",
        *([f"Choices: {', '.join(item['choices'])}"] if item["choices"] else []),
        f"Default: {json.dumps(item['default'])}" if item["default"] not in (None, "") else "Default: none",
        *([f"Also given by: {', '.join(given)}"] if given else []),
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
    help="List the keys that a config file may hold, or explain KEY.",
    params=[
        click.Argument(["key"], required=False, metavar="[KEY]"),
        click.Option(["--output-format"], type=click.Choice(["text", "json"]), default="text"),
        *shared_parameters(),
    ],
)
