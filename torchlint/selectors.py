"""Which rules a selector stands for, and which rules several layers of selectors leave enabled.

A selector is a code (``TL202``), a prefix of codes (``TL2``, ``TL``), a rule's name (``item-in-hot-loop``)
or ``ALL``. Opt-in rules are off unless their code, their name or ``ALL`` selects them; a prefix does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from torchlint.options import closest, did_you_mean
from torchlint.rule import Rule

ALL = "ALL"
_EXACT = 1000


class UnknownSelectorError(ValueError):
    """A selector that stands for no rule; the message names it and the closest that does."""

    def __init__(self, selector: str, rules: Mapping[str, Rule]) -> None:
        known = [ALL, *rules, *(rule.name for rule in rules.values())]
        hint = "" if is_number(selector, rules) else did_you_mean(selector, known)
        hint = hint or among(selector, rules) or "; `torchlint rule --all` lists the rules"
        super().__init__(f"unknown rule selector `{selector}`{hint}")
        self.selector = selector


def is_number(word: str, rules: Collection[str]) -> bool:
    """Return whether a word that is no code has nothing wrong but its digits, or is a code of another tool.

    Of the codes that are like it, none is likelier than another to be what was meant.
    """
    parts = _NUMBERED.fullmatch(word.upper())
    if parts is None or parts[0] in rules:
        return False
    prefixes = {found[1]: len(found[2]) for code in rules if (found := _NUMBERED.fullmatch(code))}
    if parts[1] in prefixes:
        return len(parts[2]) <= prefixes[parts[1]]
    return closest(parts[1], prefixes) is None


_NUMBERED = re.compile(r"([A-Z]+)([0-9]+)")


def among(word: str, rules: Iterable[str]) -> str:
    """Return the codes of the family that an unknown one seems to be of, in a message; nothing if none."""
    start = re.match("[A-Z]+[0-9]", word.upper())
    family = sorted(code for code in rules if start and code.startswith(start[0]))
    return f"; the rules of `{start[0]}` are `{family[0]}` to `{family[-1]}`" if start and family else ""


@dataclass(frozen=True)
class Selection:
    """The selectors of one layer: a config file, or the command line. None where it does not say."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()


def specificity(selector: str, rules: Mapping[str, Rule]) -> int:
    """Return how narrow a selector is: ``ALL`` 0, a prefix its length, a code or name above every prefix."""
    if selector == ALL:
        return 0
    if selector in rules or not re.fullmatch(r"[A-Z]+\d*", selector):
        return _EXACT
    return len(selector)


def expand(selector: str, rules: Mapping[str, Rule], *, opt_in: bool = True) -> frozenset[str]:
    """Return the codes that ``selector`` stands for; without ``opt_in`` a prefix leaves opt-in rules out.

    Raises:
        UnknownSelectorError: it stands for none.
    """
    if selector == ALL:
        return frozenset(rules)
    if selector in rules:
        return frozenset({selector})
    named = [code for code, rule in rules.items() if rule.name == selector]
    if named:
        return frozenset(named)
    prefix = re.fullmatch(r"([A-Z]+)\d*", selector)
    covered = [
        code
        for code in rules
        if prefix and code.startswith(selector) and re.match(r"[A-Z]*", code).group() == prefix.group(1)  # type: ignore[union-attr]
    ]
    if not covered:
        raise UnknownSelectorError(selector, rules)
    return frozenset(code for code in covered if opt_in or not rules[code].opt_in)


def expand_all(selectors: Iterable[str], rules: Mapping[str, Rule]) -> frozenset[str]:
    """Return the codes that any of the selectors stands for, opt-in rules included.

    Raises:
        UnknownSelectorError: one stands for none.
    """
    return frozenset().union(*(expand(selector, rules) for selector in selectors))


def enabled(layers: Sequence[Selection], rules: Mapping[str, Rule]) -> tuple[str, ...]:
    """Return the codes that the layers leave enabled, later layers over earlier ones.

    A layer with ``select`` starts afresh, the others adjust. Within a layer the more specific selector
    wins, and ``ignore`` wins between equals. An empty ``select`` keeps what the same layer ignores ignored.

    Raises:
        UnknownSelectorError: a selector stands for no rule.
    """
    codes: frozenset[str] = frozenset()
    for layer in layers:
        chosen = (*(layer.select or ()), *layer.extend_select)
        verdicts = _verdicts(chosen, layer.ignore, rules, lambda s: expand(s, rules, opt_in=False))
        codes = _apply(codes if layer.select is None else frozenset(), verdicts)
    return tuple(sorted(codes))


def fixable(layers: Sequence[Selection], rules: Mapping[str, Rule]) -> frozenset[str]:
    """Return the codes whose fixes may be offered; all of them unless a layer says otherwise.

    Raises:
        UnknownSelectorError: a selector stands for no rule.
    """
    codes = frozenset(rules)
    for layer in layers:
        verdicts = _verdicts(layer.fixable or (), layer.unfixable, rules, lambda s: expand(s, rules))
        codes = _apply(codes if layer.fixable is None else frozenset(), verdicts)
    return codes


def _verdicts(
    chosen: Iterable[str],
    refused: Iterable[str],
    rules: Mapping[str, Rule],
    expand_chosen: Callable[[str], frozenset[str]],
) -> dict[str, bool]:
    steps = [(specificity(selector, rules), True, expand_chosen(selector)) for selector in chosen]
    steps += [(specificity(selector, rules), False, expand(selector, rules)) for selector in refused]
    # A refusal comes after a choice of the same specificity: False sorts behind True here.
    steps.sort(key=lambda step: (step[0], not step[1]))
    return {code: on for _, on, codes in steps for code in codes}


def _apply(codes: frozenset[str], verdicts: Mapping[str, bool]) -> frozenset[str]:
    on = {code for code, verdict in verdicts.items() if verdict}
    return (codes | on) - (verdicts.keys() - on)
