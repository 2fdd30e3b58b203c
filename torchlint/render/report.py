"""The outcome of a run, and the small questions that every format asks about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from torchlint.diagnostics import Applicability, Diagnostic, Edit, Impact, Position, Risks, Severity
from torchlint.source import line_starts

if TYPE_CHECKING:
    from torchlint.rule import Rule
    from torchlint.source import Part

STDIN = Path("-")
"""The path of findings in standard input that was given no name."""

Color = str
# OSC 8, the escape sequence that begins a link, and with an empty address ends it.
_LINK, _END = "\x1b]8;;", "\x1b\\"
_IN_URLS = "/:?#[]@!$&'()*+,;=%~"
_ANSI: Mapping[str, int] = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36}


class Text(Protocol):
    """What the formats need of a source file."""

    @property
    def text(self) -> str:
        """The decoded text."""

    def position(self, offset: int) -> Position:
        """Return the row and column of a character offset."""

    def locate(self, offset: int) -> Position:
        """Return the same as people are told it: within its cell in a notebook."""

    def part(self, cell: int | None) -> Part | None:
        """Return the text of a cell of a notebook; of any other file the whole, for None."""

    @property
    def stored(self) -> str:
        """The text that the file holds: the JSON of a notebook, ``text`` of any other file."""

    def in_file(self, offset: int) -> Position:
        """Return the row and column of a character offset in what the file holds."""

    def edits_in_file(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return what these edits of ``text`` change in what the file holds."""


@dataclass(frozen=True)
class Report:
    """What a run found, ready to be shown.

    ``diagnostics`` are what remains, sorted. ``applied`` counts the fixes of each file by code. Other
    fixes have brought up ``later`` of them, and made another ``settled`` findings needless.
    ``source`` gives the text of a file that has findings, None if it cannot be read. ``enabled`` are the
    codes that were looked for. Paths are shown relative to ``root``; trackers of findings know files
    relative to ``project``, ``root`` if that is None. A finding less severe than ``fail_on`` fails no run.
    With ``hyperlinks`` the codes are links, for a terminal that follows them.
    ``width`` is the number of columns that a snippet may take. ``advice`` is told beside the findings, or is
    all that is wanted (``alone``). Another ``hidden`` findings are of less impact than the ``least`` one that
    is reported. Where only new findings are, ``restriction`` says which: ``on changed lines``. ``risks`` say
    why fixes that were made are unsafe.
    """

    diagnostics: tuple[Diagnostic, ...]
    source: Callable[[Path], Text | None]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    enabled: frozenset[str] = frozenset()
    applied: Mapping[Path, Counter[str]] = field(default_factory=dict)
    unsafe_fixes: bool = False
    root: Path = field(default_factory=Path.cwd)
    project: Path | None = None
    fail_on: Severity = Severity.WARNING
    color: bool = False
    hyperlinks: bool = False
    width: int = 160
    later: int = 0
    settled: int = 0
    advice: tuple[Diagnostic, ...] = ()
    alone: bool = False
    hidden: int = 0
    least: Impact = Impact.LOW
    restriction: str = ""
    risks: Risks = field(default_factory=Counter)

    @property
    def whole(self) -> Report:
        """The same with the advice among the findings."""
        if not self.advice:
            return self
        every = sorted((*self.diagnostics, *self.advice), key=lambda item: item.sort_key)
        return replace(self, diagnostics=tuple(every), advice=())

    def fixable(self, diagnostic: Diagnostic) -> bool:
        """Return whether ``--fix``, with the unsafe fixes if this run counts them, would fix it."""
        if diagnostic.fix is None or not diagnostic.fix.edits or diagnostic.fix.withheld:
            return False
        least = Applicability.UNSAFE if self.unsafe_fixes else Applicability.SAFE
        return diagnostic.fix.applicability >= least

    def shown(self, path: Path) -> str:
        """Return the path as people read it: relative to ``root`` if it lies below,
        control characters visible.

        A line that begins with it is never a command of GitHub Actions, ``::error::…``.
        """
        text = visible(str(path.relative_to(self.root) if path.is_relative_to(self.root) else path))
        return f"./{text}" if text.lstrip().startswith("::") else text

    def absolute(self, path: Path) -> str:
        """Return the path as programs read it."""
        return str(path) if path == STDIN else str(self.root / path)

    def text(self, path: Path) -> str | None:
        """Return the text of a file that has findings, None if it cannot be read."""
        source = self.source(path)
        return None if source is None else source.text

    def stored(self, path: Path) -> str | None:
        """Return what a file holds, in which `in_file` counts; None if it cannot be read."""
        source = self.source(path)
        return None if source is None else source.stored

    def in_file(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a finding as formats without cells show it: where the JSON of a notebook has the line.

        The message names the cell, and the line in it. What an editor holds stands at the start.
        """
        if diagnostic.cell is None:
            return diagnostic
        source, span = self.source(diagnostic.path), diagnostic.span
        start = end = Position(1, 1)
        if source is not None:
            start, end = source.in_file(span.start), source.in_file(span.end)
        related = tuple((self._in_file(diagnostic.path, place), told) for place, told in diagnostic.related)
        message = f"cell {diagnostic.cell}, line {diagnostic.start.row}: {diagnostic.message}"
        return replace(diagnostic, start=start, end=end, noqa_row=start.row, message=message, related=related)

    def _in_file(self, path: Path, place: Position) -> Position:
        """Return a place in a cell as one of the file; any other place as it is."""
        source = self.source(place.path or path)
        part = None if source is None or place.cell is None else source.part(place.cell)
        if source is None or part is None:
            return place
        rows = line_starts(part.text)
        offset = rows[min(place.row, len(rows)) - 1] + place.column - 1
        found = source.in_file(part.start + min(offset, len(part.text)))
        return replace(found, cell=place.cell, path=place.path)

    def tracked(self, path: Path) -> str:
        """Return the path as trackers of findings know it: relative to the project, with slashes."""
        from torchlint.fingerprints import relative

        return relative(path, self.project or self.root)

    def url(self, diagnostic: Diagnostic) -> str | None:
        """Return where the rule is documented; None as long as that has no known address."""
        from torchlint import links

        return links.explaining(diagnostic, self.rules)

    def code(self, diagnostic: Diagnostic) -> str:
        """Return the code of a finding as terminals show it: coloured, and a link where they follow links."""
        text = self.paint(visible(diagnostic.code), severity_color(diagnostic.severity), bold=True)
        url = self.url(diagnostic) if self.hyperlinks else None
        return text if url is None else f"{_LINK}{quote(url, safe=_IN_URLS)}{_END}{text}{_LINK}{_END}"

    def paint(self, text: str, color: Color = "", *, bold: bool = False) -> str:
        """Return ``text`` in a colour, if this report is coloured."""
        return paint(text, color, bold=bold) if self.color else text


def paint(text: str, color: Color = "", *, bold: bool = False) -> str:
    """Return ``text`` between the escape sequences for a colour."""
    codes = [str(code) for code in ((1,) if bold else ()) + ((_ANSI[color],) if color else ())]
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text


def severity_color(severity: Severity) -> Color:
    """Return the colour that a severity has in every human format."""
    return {Severity.NOTE: "cyan", Severity.WARNING: "yellow", Severity.ERROR: "red"}[severity]


def visible(text: str) -> str:
    """Return ``text`` with control characters replaced by visible ones,
    so that no program drives the terminal.

    Nor does it drive a build server that reads the log: Azure Pipelines obeys ``##vso[…]`` anywhere in a
    line, GitHub Actions ``##[…]``. The bracket becomes one that looks alike; a line stays as long as it is.
    """
    if not text.isprintable():
        text = "".join(_visible(char) if not char.isprintable() else char for char in text)
    return _LOGGING_COMMAND.sub(r"\1⟦", text) if "##" in text else text


_LOGGING_COMMAND = re.compile(r"(##(?:vso)?)\[", re.IGNORECASE)


def visible_lines(text: str) -> str:
    """Return the same for a text of several lines,
    none of which is a command of GitHub Actions, ``::error::…``.
    """
    return "\n".join(_COMMAND.sub(r"\1∷", visible(line)) for line in text.split("\n"))


_COMMAND = re.compile(r"^(\s*)::")


def _visible(char: str) -> str:
    point = ord(char)
    if point < 0x20:
        return chr(0x2400 + point)
    if point in (0x2028, 0x2029):  # which some take for the end of a line
        return "\u2424"
    return "\u2421" if point == 0x7F else char if char.isspace() and point >= 0xA0 else "\ufffd"


def plural(count: int, noun: str) -> str:
    """Return ``1 fix``, ``2 fixes``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith('x') else 's'}"


def spot(diagnostic: Diagnostic) -> str:
    """Return ``row:column`` of a finding; ``cell 3:row:column`` in a notebook."""
    cell = "" if diagnostic.cell is None else f"cell {diagnostic.cell}:"
    return f"{cell}{diagnostic.start.row}:{diagnostic.start.column}"


def headline(report: Report, diagnostic: Diagnostic, message: str | None = None) -> str:
    """Return ``TL202 [*] message``, as the human formats begin; ``message`` in the place of the finding's."""
    mark = f"[{report.paint('*', 'cyan')}] " if report.fixable(diagnostic) else ""
    return f"{report.code(diagnostic)} {mark}{visible(diagnostic.message if message is None else message)}"


def reason(diagnostic: Diagnostic) -> str:
    """Return the message as formats show it that show the help as well: without advice that the help repeats.

    Formats of one line a finding have no help, so that messages end with the advice in short: ``…; use
    `F.silu` ``.
    """
    told, semicolon, advice = diagnostic.message.rpartition("; ")
    if not semicolon or told.count("`") % 2 or diagnostic.help is None:
        return diagnostic.message
    again = diagnostic.help.casefold()
    pieces = advice.casefold().split("`")
    code, words = pieces[1::2], set(_WORD.findall(" ".join(pieces[::2]))) - _IN_ANY_ADVICE
    repeated = all(part in again for part in code) and words <= set(_WORD.findall(again))
    return told if repeated and (code or words) else diagnostic.message


_WORD = re.compile(r"\w+")
_IN_ANY_ADVICE = frozenset(
    {
        "a",
        "add",
        "an",
        "and",
        "call",
        "drop",
        "first",
        "in",
        "instead",
        "it",
        "itself",
        "make",
        "of",
        "or",
        "pass",
    }
    | {"put", "set", "that", "the", "them", "to", "try", "use", "which", "with", "write"}
)
