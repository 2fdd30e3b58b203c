"""What a shell offers where a rule, a config key or a config file is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

# Every command names these functions, and none but a shell's question calls them.
if TYPE_CHECKING:
    from torchlint.rule import Rule


class _Bash(BashComplete):
    """Takes ``--flag=value`` for what it is: to bash the equals sign is a word of its own."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and what there is of that."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


class _Joined(ShellComplete):
    """Offers ``--flag=value`` as a whole to shells to which it is one word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return what the word may become."""
        flag, equals, value = incomplete.partition("=")
        if not (equals and flag.startswith("--")):
            return super().get_completions(args, incomplete)
        # The option goes to the words before, by which the default command is recognised.
        return [
            CompletionItem(f"{flag}={item.value}", item.type, item.help) if item.type == "plain" else item
            for item in super().get_completions([*args, flag], value)
        ]


class _Zsh(_Joined, ZshComplete):
    pass


class _Fish(_Joined, FishComplete):
    # Values may hold commas.
    source_template = FishComplete.source_template.replace("string split", "string split --max 1")


for _shell in (_Bash, _Zsh, _Fish):
    add_completion_class(_shell)


def rule_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the codes and names of rules, for one rule."""
    return _matching(incomplete, _described(_rules()).items())


def selectors(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return codes, names and ``ALL``, behind the last comma of a list."""
    return _in_list(incomplete)


def selectors_by_glob(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return selectors behind the colon of ``GLOB:RULE``; a glob is the user's own, or a file's name."""
    glob, colon, rest = incomplete.rpartition(":")
    if not colon:
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(f"{glob}:{item.value}", item.type, item.help) for item in _in_list(rest)]


def config_keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return every key that ``torchlint config`` explains."""
    from torchlint import options

    said = {options.key(name): setting.help for name, setting in options.settings().items()}
    return _matching(incomplete, {**said, "extend": options.EXTEND.help}.items())


def config_values(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return a config file, or the key of ``KEY = VALUE``."""
    from torchlint import options

    if "=" in incomplete:
        return []
    keys = ((f"{key}=", options.settings()[name].help) for key, name in options.config_keys().items())
    return [CompletionItem(incomplete, type="file"), *(_matching(incomplete, keys) if incomplete else ())]


def _in_list(incomplete: str) -> list[CompletionItem]:
    """Return what the word behind the last comma may become; the words before it stay,
    and are not offered again.
    """
    from torchlint.selectors import ALL

    before, comma, last = incomplete.rpartition(",")
    taken = set(before.split(","))
    rules = {ALL: "every rule", **_described(_rules())}
    return [
        CompletionItem(f"{before}{comma}{item.value}", item.type, item.help)
        for item in _matching(last, rules.items())
        if item.value not in taken
    ]


def _described(rules: Mapping[str, Rule]) -> dict[str, str]:
    """Return codes and names of rules, each with what else there is to say in a few words."""
    return {
        **{code: rule.name for code, rule in rules.items()},
        **{rule.name: f"{code}, {rule.severity.value}" for code, rule in rules.items()},
    }


def _rules() -> Mapping[str, Rule]:
    from torchlint import registry

    try:
        return registry.catalogue()
    except registry.RegistryError:
        # A shell has no place for what is wrong; the command says it when it is run.
        return {}


def _matching(incomplete: str, said: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    folded = incomplete.casefold()
    return [CompletionItem(word, help=text) for word, text in said if word.casefold().startswith(folded)]
