"""What a library changed about one name, parameter or value: the form of the rows in ``upgrades.py``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchlint.target import OLDEST, Target

# What a distribution holds beside the package of its own name.
_PART_OF = {"functorch": "torch"}
# What a note begins with that says what to do; others say why there is nothing to do.
_DOING = ("use", "put", "set", "name", "call", "print", "profile", "give", "describe", "shuffle")
_CLAUSES = ("which", "whose", "under which")
_OLDEST = {"torch": OLDEST, "torchvision": "0.8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """One name, parameter or value that a library gave up, and what takes its place.

    ``symbol`` is the dotted name as ``names.canonical`` spells it, ``argument`` the parameter, ``value`` the
    string that it is given. What is replaced is the last of these that is not empty, and ``replacement`` is
    of the same kind: a dotted name, a parameter of the same symbol, a value of the same parameter.

    ``deprecated`` and ``removed`` are the first minor releases that warn and that lack it; None if none does.
    A row with neither is about a private name that has a public twin. ``since`` is the first release that has
    the replacement; None if every release has it that is looked at.

    ``adds`` is an argument that calls of the replacement take in front of the others, as code: ``"cuda"``, or
    by keyword, ``device_type="cuda"``. ``switched_on`` is the code of what the replacement is given where the
    parameter was True; ``switched_off`` where it was False, if that is known to be as good as nothing. With
    ``unset_by_none`` the parameter was left out by None, which the replacement takes for a value. With
    ``exact`` the replacement means the same with the same arguments by keyword; else it is advice. ``note``
    says in words what to do instead, where there is no single name for that.

    ``rewrite`` names how a call is brought to the replacement, where its arguments change by more than that
    (``semantics/callforms.py``). ``quiet`` rows are those of which the documentation speaks, but no warning.
    With ``renames_state`` the replacement keeps its parameters under other names in the state dict, with
    ``retypes`` it makes instances of another class, which printing a model shows.
    ``owner`` is the code of the rule that reports the row, where that is not one of the rules about upgrades.

    ``witness`` is the name whose presence tells that of a value, or of what is made at run time. ``source``
    is the page or the file of the library that says so.
    """

    symbol: str
    argument: str = ""
    value: str = ""
    deprecated: str | None = None
    removed: str | None = None
    replacement: str | None = None
    since: str | None = None
    adds: str = ""
    switched_on: str = ""
    switched_off: str = ""
    unset_by_none: bool = False
    exact: bool = False
    note: str = ""
    rewrite: str = ""
    quiet: bool = False
    renames_state: bool = False
    retypes: bool = False
    owner: str = ""
    witness: str = ""
    source: str = ""

    @property
    def package(self) -> str:
        """The package that the symbol is part of, as the package index names it."""
        root = self.symbol.partition(".")[0]
        return _PART_OF.get(root, root)

    @property
    def private(self) -> bool:
        """Whether this is about a name that was never public."""
        return any(part.startswith("_") for part in self.symbol.split("."))

    @property
    def remedy(self) -> str:
        """The edit that does without it, in the form of the message of a fix."""
        if self.replacement is None:
            if self.note.partition(" ")[0] in _DOING:
                return self.note[0].upper() + self.note[1:]
            return f"Remove `{self.argument or self.symbol.rpartition('.')[2]}`"
        new = f'{self.argument}="{self.replacement}"' if self.value else self.replacement
        if self.switched_on:
            new += f"={self.switched_on}"
        between = ", " if self.note.startswith(_CLAUSES) else " " if self.note else ""
        return f"Use `{new}`{between}{self.note}"

    def is_removed(self, target: Target) -> bool:
        """Return whether every release that may run the program lacks it."""
        return self.removed is not None and target.at_least(self.removed)

    def is_deprecated(self, target: Target) -> bool:
        """Return whether every release that may run the program warns of it, or lacks it."""
        # An unknown target stands for any release from the oldest on.
        if self.deprecated is not None and self.deprecated == _OLDEST.get(self.package):
            return target.admits(self.deprecated)
        return any(target.at_least(release) for release in (self.deprecated, self.removed) if release)

    def is_replaceable(self, target: Target) -> bool:
        """Return whether every release that may run the program has the replacement."""
        return self.replacement is not None and (self.since is None or target.at_least(self.since))


def renamed(
    old: str,
    new: str,
    *,
    at: str | None = None,
    removed: str | None = None,
    on: str = "",
    off: str = "",
    unset_by_none: bool = False,
) -> Upgrade:
    """Return a parameter of another name, or one that switches between two values of the other."""
    return Upgrade(
        symbol="",
        argument=old,
        deprecated=at,
        removed=removed,
        replacement=new,
        since=at or removed,
        switched_on=on,
        switched_off=off,
        unset_by_none=unset_by_none,
        exact=True,
    )


def dropped(name: str, note: str, *, at: str | None = None, removed: str | None = None) -> Upgrade:
    """Return a parameter that has no equal; the note says what to do instead."""
    return Upgrade(symbol="", argument=name, deprecated=at, removed=removed, note=note)


def of(symbol: str, source: str, *rows: Upgrade) -> tuple[Upgrade, ...]:
    """Return the rows of what takes these parameters."""
    return tuple(replace(row, symbol=symbol, source=source) for row in rows)
