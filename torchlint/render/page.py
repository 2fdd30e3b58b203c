"""The page of a rule as Markdown."""

from __future__ import annotations

from torchlint import effects, impact
from torchlint.rule import Rule

_FIXES = {
    "safe": "Its fix is safe unless noted otherwise.",
    "unsafe": "Its fix is unsafe: it needs `--unsafe-fixes`.",
    "none": "It has no fix.",
}


ADVICE = "It is advice about a program as a whole: `torchlint advise` shows it."


def render(rule: Rule) -> str:
    """Return the page: title, severity, fix, what to do by hand, the documentation, what was measured."""
    facts = f"Reported as {_article(rule.severity.value)}. {_FIXES[rule.fix]}"
    if rule.opt_in:
        facts += " It is opt-in: select it by its code, its name or ALL."
    facts += f"\n\n{impact.explained(rule, effects.of(rule.code))}"
    if rule.advice:
        facts += f" {ADVICE}"
    if rule.remedy is not None:
        facts += f"\n\nManual fix: {rule.remedy}."
    measured = effects.section(rule.code, effects.of(rule.code))
    return f"# {rule.name} ({rule.code})\n\n{facts}\n\n{rule.page}\n{measured}"


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
