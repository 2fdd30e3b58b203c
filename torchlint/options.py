"""What a run can be told: the settings of one file."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchlint.target import Target


@dataclass(frozen=True)
class LintSettings:
    """What the checker and the fixer need to know to treat one file.

    ``rules`` are the enabled codes, sorted. A fix is offered only for the codes in ``fixable``; those in
    ``extend_safe_fixes`` have their unsafe fixes graded safe, those in ``extend_unsafe_fixes`` their safe
    fixes graded unsafe. ``workers`` is the number of loader workers that fixes write. With ``ignore_noqa``
    suppression comments are not obeyed.
    """

    rules: tuple[str, ...] = ()
    fixable: frozenset[str] = frozenset()
    unsafe_fixes: bool = False
    target: Target = field(default_factory=Target.unknown)
    workers: int = 4
    extend_safe_fixes: frozenset[str] = frozenset()
    extend_unsafe_fixes: frozenset[str] = frozenset()
    ignore_noqa: bool = False
