"""``torchlint rule``: what a rule finds, why it matters and how it is fixed."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import click

from torchlint import effects, impact, links, registry
from torchlint.commands import Failure, completion
from torchlint.commands.mistakes import Choice
from torchlint.commands.terminal import Terminal, is_terminal, shared_parameters
from torchlint.render import page
from torchlint.rule import Rule
from torchlint.selectors import UnknownSelectorError

_SECTIONS = {
    "what": "What it does",
    "why": "Why is this bad?",
    "example": "Example",
    "use_instead": "Use instead",
    "fix_safety": "Fix safety",
}
"""The keys of the sections of a page, which are given in Markdown, and their titles."""
_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def _run(
    names: tuple[str, ...],
    every: bool,
    output_format: str,
    verbose: bool,
    quiet: bool,
    silent: bool,
    color: str,
    **_: object,
) -> None:
    terminal = Terminal(color, verbose, quiet, silent)
    rules = registry.catalogue()
    if every == bool(names):
        raise click.UsageError("pass the code or name of a rule, or --all")
    chosen = list(rules.values()) if every else [_find(name, rules) for name in names]
    if output_format == "json":
        described = [_described(rule) for rule in chosen]
        terminal.out(json.dumps(described if every or len(chosen) > 1 else described[0], indent=2) + "\n")
    elif every:
        terminal.out(_table(chosen, terminal.width if is_terminal(sys.stdout) else None))
    else:
        text = "\n".join(page.render(rule) for rule in chosen)
        terminal.out(_rendered(text) if terminal.colored(sys.stdout) else text)


def _find(name: str, rules: Any) -> Rule:
    for rule in rules.values():
        if name in (rule.code, rule.name) or name.upper() == rule.code:
            found: Rule = rule
            return found
    raise Failure(str(UnknownSelectorError(name, rules)).replace("rule selector", "rule", 1))


def _described(rule: Rule) -> dict[str, Any]:
    sections = rule.sections
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "fix": rule.fix,
        "opt_in": rule.opt_in,
        "advice": rule.advice,
        "worth": worth.label if (worth := impact.worth(rule)) is not None else None,
        "impact": impact.explained(rule, effects.of(rule.code)),
        "remedy": rule.remedy,
        "summary": rule.summary,
        **{key: sections.get(title) for key, title in _SECTIONS.items()},
        "bad": _code(sections.get("Example", "")),
        "good": _code(sections.get("Use instead", "")),
        "references": [
            {"title": title, "url": url} for title, url in _LINK.findall(sections.get("References", ""))
        ],
        "measured": list(effects.of(rule.code)),
        "url": links.page(rule),
        "explanation": rule.page,
    }


def _code(section: str) -> list[str]:
    """Return the programs in a section of a page."""
    return _PROGRAM.findall(section)


def _table(rules: list[Rule], columns: int | None) -> str:
    """Return a line for each rule; within so many columns, what it finds is wrapped below."""
    rows = [
        (
            rule.code,
            rule.name,
            f"{rule.severity.value}{', opt-in' if rule.opt_in else ''}",
            f"fix: {rule.fix}",
            rule.summary,
        )
        for rule in rules
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    heads = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) for row in rows]
    if columns is None:
        return "".join(f"{head}  {row[4]}\n" for head, row in zip(heads, rows, strict=True))
    import textwrap

    indent = " " * (widths[0] + 2)
    told = (textwrap.fill(row[4], columns, initial_indent=indent, subsequent_indent=indent) for row in rows)
    return "".join(f"{head.rstrip()}\n{about}\n" for head, about in zip(heads, told, strict=True))


def _rendered(markdown: str) -> str:
    """Return the page as rich shows Markdown in a terminal."""
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    stream = io.StringIO()
    Console(file=stream, force_terminal=True, legacy_windows=False).print(Markdown(markdown))
    return stream.getvalue()


command = click.Command(
    "rule",
    callback=_run,
    help="Explain rules by code or name.",
    params=[
        click.Argument(["names"], nargs=-1, metavar="[CODE|NAME]...", shell_complete=completion.rule_names),
        click.Option(["--all", "every"], is_flag=True, help="List all rules."),
        click.Option(
            ["--output-format"], type=Choice(["text", "json"]), default="text", help="The output format."
        ),
        *shared_parameters(),
    ],
)
