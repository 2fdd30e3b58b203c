"""The contract of a rule: a decorated generator over syntax nodes that asks the semantic model.

    @rule("TL403", "attention-weights-unused", severity=WARNING, fix="safe", on=cst.Call,
          mentions=("MultiheadAttention",))
    def attention_weights_unused(call: cst.Call, module: Module) -> Iterator[Finding]:
        '''What it does …'''

The docstring is the rule's documentation page; its sections are ``## What it does``,
``## Why is this bad?``, ``## Example``, ``## Use instead``, ``## Fix safety`` and ``## References``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from torchlint.diagnostics import Fix, Frequency, Severity
from torchlint.vocabulary import JoinedWords, Vocabulary, Words, parts

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.configured import Configured
    from torchlint.semantics.module import Module

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR

FixKind = Literal["safe", "unsafe", "none"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule yields: the node to underline, one sentence without a full stop, and maybe a fix.

    ``severity`` overrides the rule's own for this place (advice where the rule usually warns), and so does
    ``remedy`` where the right edit depends on the case.
    ``related`` points at other nodes that explain the finding, with a short remark each. What is wrong may be
    ``at`` a place in a configuration file, which the node reads: then it is found in that file, and the fix
    edits it. ``slight`` is why little is at stake here, where the rule knows that it is less than usual, in a
    few words: "impact: low, …". ``frequency`` is how often the place runs by what it does, if nothing shows
    how often it is called.
    """

    node: cst.CSTNode
    message: str
    fix: Fix | None = None
    severity: Severity | None = None
    related: tuple[tuple[cst.CSTNode, str], ...] = ()
    remedy: str | None = None
    at: Configured | None = None
    frequency: Frequency = Frequency.UNKNOWN
    slight: str | None = None


@cache
def _groups(mentions: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], frozenset[str]], ...]:
    """Return the words of each group, and of each word the part that is least likely to be in a text."""
    groups = [tuple(group.split("|")) for group in mentions]
    return tuple((group, frozenset(max(parts(word), key=len) for word in group)) for group in groups)


@dataclass(frozen=True, slots=True)
class Rule:
    """One code of the catalogue.

    ``fix`` is the best applicability that its fixes can have. ``mentions`` feeds the screen in front of the
    parse: each item is a set of words separated by ``|``, and a file is only shown to the rule if it contains
    at least one word of every item: a part of an identifier, or several with other signs, at which they begin
    or end, in any layout; ``import:name`` is an import of that package. The items save time and change no
    finding, but for one with ``torch`` in it: such a rule is about programs that use torch, and takes no
    other file's ``loss.backward()`` for one of theirs. ``remedy`` is the edit that satisfies the rule where
    it offers no fix: an imperative sentence without a full stop, what to write in backticks. ``follows`` are
    the codes of rules whose fixes may bring up a finding of this one that is as safe to fix as any, in the
    same run. What other fixes bring up is left to the user. ``named`` are the names that calls, attributes or
    names have to be spelt with, at their end, for the rule to be asked about them: the other nodes of that
    kind are passed over. Names that the file itself gives to things of libraries are seen through. Like
    ``mentions``, they save time and change no finding. ``measured`` is False if the rule claims neither speed
    nor memory, and so has no bench case: it finds an error or an old spelling, or concerns the linter itself.
    ``configured`` says that its findings may be at places in configuration files. ``advice`` marks a rule
    about the program as a whole and not about a line: see `Diagnostic.advice`. ``lasting``: what it finds is
    set up once and is felt at every step, such as a loader, a layer or a switch, so that it does not matter
    how often the place runs. ``synchronizes``: what it finds makes the host wait for the device, which a
    project may allow in some contexts.
    """

    code: str
    name: str
    severity: Severity
    fix: FixKind
    on: tuple[type, ...]
    mentions: tuple[str, ...]
    opt_in: bool
    check: Callable[[Any, Module], Iterator[Finding]] = field(compare=False)
    remedy: str | None = None
    follows: tuple[str, ...] = ()
    named: Mapping[type, frozenset[str]] = field(default_factory=dict, compare=False)
    measured: bool = True
    configured: bool = False
    advice: bool = False
    lasting: bool = False
    synchronizes: bool = False

    @property
    def has_folder(self) -> bool:
        """Whether the rule is the file ``rule.py`` of a folder of its own, not one file of its family."""
        return self.check.__module__.endswith(".rule")

    @property
    def family(self) -> str:
        """The name of the folder that holds the rules of its kind; empty for a module by itself."""
        parts = self.check.__module__.split(".")
        return "".join(parts[-3:-2] if self.has_folder else parts[-2:-1])

    @property
    def page(self) -> str:
        """The documentation page, in Markdown, without the title."""
        return inspect.cleandoc(self.check.__doc__ or "")

    @property
    def sections(self) -> Mapping[str, str]:
        """The parts of the page by their titles, in Markdown, in their order."""
        parts = re.split(r"^## (.+)$", self.page, flags=re.MULTILINE)[1:]
        return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}

    @property
    def summary(self) -> str:
        """The first sentence of "What it does"."""
        body = self.page.split("## What it does", 1)[-1].strip()
        paragraph = " ".join(body.split("\n\n", 1)[0].split())
        return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]

    def may_fire(self, text: str | Words | JoinedWords) -> bool:
        """Return whether ``text`` contains what the rule needs to find anything.

        For many rules as `Words` of a vocabulary that has those of this one.
        """
        words = Words(text, vocabulary([self])) if isinstance(text, str) else text
        groups = _groups(self.mentions)
        # Most rules are ruled out by parts of words alone.
        for _, signs in groups:
            if words.lack(signs):
                return False
        return all(any(word in words for word in group) for group, _ in groups)

    def concerns(self, text: str | Words | JoinedWords) -> bool:
        """Return whether ``text`` is of the kind of programs that the rule is about,
        whether or not it may fire.
        """
        words = Words(text, vocabulary([self])) if isinstance(text, str) else text
        subjects = [group for group, _ in _groups(self.mentions) if "torch" in group]
        return all(any(word in words for word in group) for group in subjects)


def vocabulary(rules: Iterable[Rule]) -> Vocabulary:
    """Return what these rules look for; for the same rules the same object,
    which remembers what it has seen.
    """
    return _vocabulary(tuple(rule.mentions for rule in rules))


@lru_cache(maxsize=1)
def _vocabulary(mentions: tuple[tuple[str, ...], ...]) -> Vocabulary:
    return Vocabulary(word for each in mentions for group, _ in _groups(each) for word in group)


def rule(
    code: str,
    name: str,
    *,
    severity: Severity,
    fix: FixKind,
    on: type | tuple[type, ...],
    mentions: tuple[str, ...] = (),
    opt_in: bool = False,
    remedy: str | None = None,
    follows: tuple[str, ...] = (),
    named: Mapping[type, Iterable[str]] | None = None,
    measured: bool = True,
    configured: bool = False,
    advice: bool = False,
    lasting: bool = False,
    synchronizes: bool = False,
) -> Callable[[Callable[[Any, Module], Iterator[Finding]]], Rule]:
    """Declare a generator function as a rule; the registry finds it by its type."""

    def declare(check: Callable[[Any, Module], Iterator[Finding]]) -> Rule:
        kinds = on if isinstance(on, tuple) else (on,)
        spelt = {kind: frozenset(names) for kind, names in (named or {}).items()}
        return Rule(
            *(code, name, severity, fix, kinds, mentions, opt_in, check, remedy, follows, spelt, measured),
            configured=configured,
            advice=advice,
            lasting=lasting,
            synchronizes=synchronizes,
        )

    return declare
