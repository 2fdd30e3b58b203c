"""Comments that silence findings, found by the tokenizer and never inside a string.

x = loss.item()  # noqa: TL202
x = loss.item()  # torchlint: ignore[TL202]
# torchlint: ignore[item-in-hot-loop]      (above a statement: all of its lines, or of its header)
# torchlint: disable[TL202] … # torchlint: enable[TL202]      (up to the end of the file without one)
# torchlint: file-ignore[TL202]
# gpu-sync-ok: the scheduler needs it      (a marker that the project declares; where `ignore` may stand)
"""

from __future__ import annotations

import enum
import io
import re
import tokenize
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

from torchlint import parsing
from torchlint.diagnostics import UNTREATED, Applicability, Diagnostic, Edit, Fix, Span
from torchlint.documents import Document, is_document
from torchlint.options import closest, did_you_mean
from torchlint.rule import Rule
from torchlint.selectors import among, is_number
from torchlint.source import Source, blank_lines_before, past_blank_lines, with_line_feeds

UNUSED, INVALID = "TL002", "TL003"

Markers: TypeAlias = "tuple[tuple[str, tuple[str, ...]], ...]"
"""Words of a project that suppress rules as the first of a comment, each with the codes of the rules."""

_NOQA = re.compile(r"#\s*noqa(?![\w-])(?P<colon>\s*:)?", re.IGNORECASE)
_OWN = re.compile(r"#\s*torchlint\s*:\s*(?P<verb>[a-z][\w-]*)\s*(?P<open>\[)?", re.IGNORECASE)
_WORD = re.compile(r"[^\s,\[\]#]+")
# What other tools read, and what says nothing to people.
_FOR_TOOLS = re.compile(
    r"\s*((fmt|isort|mypy|noqa|nosec|pragma|pylint|pyright|ruff|torchlint|type|yapf)\b(?=\s*[:;,]|\s*$))",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*,\s*|\s+")
_CODE = re.compile(r"[A-Za-z]+[0-9]+")
# With letters among the digits: an O for a 0 is the likeliest slip.
_OWN_CODE = re.compile(r"TL[0-9][0-9A-Z]*", re.IGNORECASE)
_MANY_ROWS, _MANY_MISTAKES = 100, 200
# The number of what a directive without entries is used for.
_EVERYTHING = -1
# Tokens that belong to no statement.
_BETWEEN = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


class Verb(enum.Enum):
    """What a directive asks for."""

    NOQA = "noqa"
    IGNORE = "ignore"
    DISABLE = "disable"
    ENABLE = "enable"
    FILE_IGNORE = "file-ignore"
    MARKER = "marker"


@dataclass(frozen=True)
class Comment:
    """A comment, and whether it has its line for itself."""

    span: Span
    row: int
    text: str
    own_line: bool


@dataclass(frozen=True)
class Entry:
    """One item of a directive's list; ``code`` is None if it names no rule."""

    text: str
    span: Span
    code: str | None


@dataclass
class Directive:
    """One suppression: what it names, where it reaches, and which of its entries were of use.

    ``first`` and ``last`` are the rows that it covers; ``ends`` are the last rows of those entries of a
    ``disable`` that are enabled again. A ``trailing`` one covers what starts in its row, and whatever a
    statement that ends there reports. The ``marker`` is the word of the project that stands for the entries,
    and ``meant`` the rule that a ``noqa`` without a colon is followed by.
    """

    verb: Verb
    comment: Comment
    span: Span
    entries: tuple[Entry, ...]
    marker: str = ""
    meant: str = ""
    first: int = 0
    last: int = 0
    trailing: bool = False
    ends: dict[int, int] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    @property
    def blanket(self) -> bool:
        """Whether it silences everything: ``# noqa`` without a list."""
        return self.verb is Verb.NOQA and not self.entries

    @property
    def concerns(self) -> bool:
        """Whether it suppresses rules of torchlint, as far as its text, or what it was of use for, tells."""
        named = bool(self.used) if self.blanket else any(entry.code for entry in self.entries)
        return named and self.verb is not Verb.ENABLE

    @property
    def has_reason(self) -> bool:
        """Whether its comment goes on in words for people."""
        behind = self.comment.text[self.span.end - self.comment.span.start :]
        return any(re.search(r"\w", part) and not _FOR_TOOLS.match(part) for part in behind.split("#"))

    @cached_property
    def by_code(self) -> Mapping[str | None, list[int]]:
        """The numbers of the entries that name a rule, by its code."""
        numbers: defaultdict[str | None, list[int]] = defaultdict(list)
        for number, entry in enumerate(self.entries):
            numbers[entry.code].append(number)
        return numbers

    def reaches(self, diagnostic: Diagnostic, number: int = -1) -> bool:
        """Return whether the directive, or its entry ``number``, covers the place of ``diagnostic``."""
        row = diagnostic.start.row
        if self.trailing:
            return self.first in (row, diagnostic.noqa_row)
        return self.first <= row <= self.ends.get(number, self.last)


@dataclass(frozen=True)
class Mistake:
    """A directive that cannot be obeyed: one sentence, the part that is wrong, and what to write instead."""

    message: str
    span: Span
    row: int
    remedy: str


@dataclass(frozen=True)
class Lines:
    """The comments of a text and the rows of its logical lines, as far as the tokenizer can read it."""

    comments: tuple[Comment, ...]
    logical: tuple[tuple[int, int], ...]
    # Rows on which a token of a statement starts.
    code: tuple[int, ...]
    # Rows at whose end a comment may stand: not inside of a string, nor before a backslash.
    ends: frozenset[int] = frozenset()


def read_lines(source: Source, spans: Iterable[Span] | None = None) -> Lines:
    """Return the comments and logical lines of ``source``; stops at the first thing that is no token.

    ``spans`` says where the comments are if the tokenizer is not to be trusted with them.
    """
    comments: list[Comment] = []
    logical: list[tuple[int, int]] = []
    code: list[int] = []
    ends: set[int] = set()
    first = 0
    try:
        for token in tokenize.generate_tokens(_normalised(source, 1).readline):
            row, column = token.start
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                ends.add(row)
            if token.type == tokenize.COMMENT:
                start = source.line_starts[row - 1] + column
                comments.append(_comment(source, Span(start, start + len(token.string))))
            elif token.type == tokenize.NEWLINE:
                if first:
                    logical.append((first, row))
                first = 0
            elif token.type not in _BETWEEN:
                first = first or row
                if not code or code[-1] != row:
                    code.append(row)
    except (tokenize.TokenError, SyntaxError):
        pass
    if spans is not None:
        comments = [_comment(source, span) for span in spans]
    return Lines(tuple(comments), tuple(logical), tuple(code), frozenset(ends))


def lines_of(source: Source) -> Lines:
    """Return the comments and logical lines of a program or a configuration file."""
    if not is_document(source.path):
        return read_lines(source, parsing.comments(source.text))
    document = Document(source)
    spans = document.comments
    comments = tuple(_comment(source, span) for span in spans)
    if document.is_json or document.root is None:
        return Lines(comments, (), ())
    starts = {comment.row: comment.span.start for comment in comments}
    rows = [
        row
        for row, start in enumerate(source.line_starts, start=1)
        if source.text[start : starts.get(row, start + len(source.line(row)))].strip()
    ]
    ends = frozenset(range(1, len(source.line_starts) + 1)) - document.inner_rows
    return Lines(comments, tuple((row, row) for row in rows), tuple(rows), ends)


def _comment(source: Source, span: Span) -> Comment:
    place = source.position(span.start)
    own_line = not source.line(place.row)[: place.column - 1].strip()
    return Comment(span, place.row, source.text[span.start : span.end], own_line)


def logical_line_end(source: Source, row: int) -> int:
    """Return the last row of the logical line that begins in ``row``."""
    try:
        for token in tokenize.generate_tokens(partial(next, _lines_from(source, row), "")):
            if token.type == tokenize.NEWLINE:
                return row + token.start[0] - 1
    except (tokenize.TokenError, SyntaxError):
        pass
    return row


def _normalised(source: Source, row: int) -> io.StringIO:
    """Return the text from ``row`` on with every newline as LF: positions in rows and columns stay."""
    text = source.text[source.line_starts[row - 1] :]
    return io.StringIO(with_line_feeds(text))


def _lines_from(source: Source, row: int) -> Iterator[str]:
    """Yield the same line by line: who wants one statement of a long program need not copy the rest."""
    for number in range(row, len(source.line_starts) + 1):
        yield source.line(number) + ("\n" if number < len(source.line_starts) else "")


class _Reader:
    """Reads comments: what they ask for, and what of that cannot be obeyed."""

    def __init__(self, rules: Mapping[str, Rule], markers: Markers) -> None:
        self.directives: list[Directive] = []
        self.mistakes: list[Mistake] = []
        self._rules = rules
        self._markers = {word.lower(): codes for word, codes in markers}
        words = "|".join(re.escape(word) for word, _ in markers)
        self._marked = re.compile(rf"#\s*(?P<word>{words})(?![\w-])", re.IGNORECASE) if markers else None

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {rule.name: code for code, rule in self._rules.items()}

    def read(self, comment: Comment) -> None:
        """Take what a comment asks for."""
        at = 0
        for match in _NOQA.finditer(comment.text):
            if match.start() >= at:
                at = self._read_noqa(comment, match)
        at = 0
        for match in _OWN.finditer(comment.text):
            if match.start() >= at:
                at = self._read_own(comment, match)
        for match in self._marked.finditer(comment.text) if self._marked is not None else ():
            span = Span(comment.span.start + match.start(), comment.span.start + match.end())
            word = match["word"]
            entries = (Entry(word, span, code) for code in self._markers[word.lower()])
            self.directives.append(Directive(Verb.MARKER, comment, span, tuple(entries), word))

    def _read_noqa(self, comment: Comment, match: re.Match[str]) -> int:
        """Take the codes and names after ``noqa:`` up to the first other word; return where that is.

        The list is shared with other tools and often followed by a reason in prose, so that only what
        looks like a code of torchlint, or like the name of one of its rules, is judged.
        """
        base = comment.span.start
        end = match.end()
        if match["colon"] is None:
            span = Span(base + match.start(), base + end)
            word = _WORD.match(comment.text[end:].lstrip())
            meant = word[0] if word is not None and self._resolve(word[0]) else ""
            self.directives.append(Directive(Verb.NOQA, comment, span, (), meant=meant))
            return end
        entries: list[Entry] = []
        at = match.end()
        while True:
            gap = _SEPARATOR.match(comment.text, at)
            word = _WORD.match(comment.text, gap.end() if gap else at)
            if word is None:
                break
            code = self._resolve(word[0])
            span = Span(base + word.start(), base + word.end())
            own = _OWN_CODE.fullmatch(word[0]) is not None
            if code is None and not own and not _CODE.fullmatch(word[0]):
                if "-" in word[0] and closest(word[0], self._by_name) and not entries:
                    self._unknown(word[0], span, comment, self._by_name)
                break
            if code is None and own:
                self._unknown(word[0], span, comment)
            entries.append(Entry(word[0], span, code))
            at = end = word.end()
        if entries:
            span = Span(base + match.start(), base + end)
            self.directives.append(Directive(Verb.NOQA, comment, span, tuple(entries)))
        return end

    def _read_own(self, comment: Comment, match: re.Match[str]) -> int:
        base = comment.span.start
        verbs = [verb.value for verb in Verb if verb not in (Verb.NOQA, Verb.MARKER)]
        word = match["verb"].lower()
        span = Span(base + match.start("verb"), base + match.end("verb"))
        if word not in verbs:
            rest = comment.text[match.end() :].lstrip()
            # Prose may begin with the name of the tool; only what looks like a directive is judged.
            if match["open"] or not rest or rest.startswith((":", "#")):
                hint = did_you_mean(word, verbs) or f"; use one of {', '.join(f'`{verb}`' for verb in verbs)}"
                meant = closest(word, verbs)
                remedy = f"Use `{meant}`" if meant else "Use `ignore[…]` with the rules in brackets"
                self._mistake(f"unknown directive `{match['verb']}`{hint}", span, comment, remedy)
            return match.end()
        close = comment.text.find("]", match.end()) if match["open"] else -1
        if close < 0:
            remedy = f"Use `{word}[…]` with the rules in brackets"
            self._mistake(
                f"`{word}` requires rules in brackets, as in `{word}[TL202]`", span, comment, remedy
            )
            return match.end()
        entries = []
        for item in _WORD.finditer(comment.text, match.end(), close):
            code = self._resolve(item[0])
            place = Span(base + item.start(), base + item.end())
            if code is None:
                self._unknown(item[0], place, comment)
            entries.append(Entry(item[0], place, code))
        whole = Span(base + match.start(), base + close + 1)
        if entries:
            self.directives.append(Directive(Verb(word), comment, whole, tuple(entries)))
        else:
            remedy = "List a rule in the brackets, or remove the comment"
            self._mistake(f"`{word}[]` lists no rules", whole, comment, remedy)
        return close + 1

    def _resolve(self, text: str) -> str | None:
        code = text.upper()
        return code if code in self._rules else self._by_name.get(text.lower())

    def _unknown(self, text: str, span: Span, comment: Comment, known: Iterable[str] | None = None) -> None:
        known = [*self._rules, *self._by_name] if known is None else known
        # Who has so many of them wrong has made no slips.
        slip = len(self.mistakes) < _MANY_MISTAKES and not is_number(text, self._rules)
        meant = closest(text, known) if slip else None
        hint = f"; did you mean `{meant}`?" if meant else among(text, self._rules)
        remedy = f"Use `{meant}`" if meant else "Use the code or name of a rule, or remove the comment"
        self._mistake(f"unknown rule `{text}`{hint}", span, comment, remedy)

    def _mistake(self, message: str, span: Span, comment: Comment, remedy: str) -> None:
        self.mistakes.append(Mistake(message, span, comment.row, remedy))


def may_matter(
    source: Source, rules: Mapping[str, Rule], found: Collection[Diagnostic], markers: Markers = ()
) -> bool:
    """Return whether comments of ``source`` may silence something of what was found, or deserve a remark.

    Most directives are for other tools. To see that takes no tokenizer: at worst a string looks like one.
    """
    reader = _Reader(rules, markers)
    for comment in _may_be_comments(source, markers):
        reader.read(comment)
    rows = {row for diagnostic in found for row in (diagnostic.start.row, diagnostic.noqa_row)}
    return bool(reader.mistakes) or any(
        directive.comment.row in rows if directive.blanket else any(entry.code for entry in directive.entries)
        for directive in reader.directives
    )


def _may_be_comments(source: Source, markers: Markers) -> Iterator[Comment]:
    """Yield the lines that may hold directives, each from its first sign of a comment on."""
    # The expression alone takes many times as long, and most files have neither word. Bytes are quicker to
    # be had in lower case than text beyond ASCII.
    folded = source.text.encode("utf-8", "surrogatepass").lower()
    words = [word.lower() for word, _ in markers]
    if not any(word.encode() in folded for word in ("noqa", "torchl", *words)):
        return
    may_suppress = re.compile("|".join((r"noqa|torchlint\s*:", *words)), re.IGNORECASE)
    for row in sorted({source.position(word.start()).row for word in may_suppress.finditer(source.text)}):
        start = source.line_starts[row - 1]
        end = start + len(source.line(row))
        sign = source.text.find("#", start, end)
        if sign >= 0:
            yield _comment(source, Span(sign, end))


class Suppressions:
    """All suppression comments of one file, and which of them were of use."""

    def __init__(self, source: Source, rules: Mapping[str, Rule], markers: Markers = ()) -> None:
        reader = _Reader(rules, markers)
        self.directives, self.mistakes = reader.directives, reader.mistakes
        self._source = source
        if any(_may_be_comments(source, markers)):
            lines = lines_of(source)
            for comment in lines.comments:
                reader.read(comment)
            self._place(lines)

    # ------------------------------------------------------------------ reach

    def _place(self, lines: Lines) -> None:
        end_of_file = len(self._source.line_starts)
        for directive in self.directives:
            row = directive.comment.row
            directive.first, directive.last = row, end_of_file
            if directive.verb is Verb.FILE_IGNORE:
                directive.first = 1
            elif directive.verb in (Verb.IGNORE, Verb.MARKER) and directive.comment.own_line:
                directive.first, directive.last = self._below(row, lines)
            elif directive.verb in (Verb.IGNORE, Verb.MARKER, Verb.NOQA):
                directive.trailing = True
        self._close()

    def _below(self, row: int, lines: Lines) -> tuple[int, int]:
        """Do what `_below` does, except that a comment at the end of a cell is not about the next one."""
        first, last = _below(row, lines)
        starts = self._source.line_starts
        cells = {self._source.locate(starts[number - 1]).cell for number in (row, first)}
        return (first, last) if len(cells) == 1 else (row, row)

    def _close(self) -> None:
        """End the blocks that an ``enable`` ends; its entries are used by that."""
        opened: defaultdict[str | None, list[tuple[Directive, int]]] = defaultdict(list)
        for directive in sorted(self.directives, key=lambda item: item.comment.row):
            row = directive.comment.row
            for number, entry in enumerate(directive.entries):
                if directive.verb is Verb.DISABLE:
                    opened[entry.code].append((directive, number))
                elif directive.verb is Verb.ENABLE:
                    pending = opened[entry.code]
                    above = [item for item in pending if item[0].comment.row < row]
                    for disable, place in above:
                        disable.ends[place] = row - 1
                        directive.used.add(number)
                    opened[entry.code] = pending[len(above) :]

    @cached_property
    def _reach(self) -> tuple[Mapping[int, list[Directive]], list[Directive]]:
        """The directives that may cover what starts in a row, by row, and those that cover many rows."""
        rows: defaultdict[int, list[Directive]] = defaultdict(list)
        wide: list[Directive] = []
        for directive in self.directives:
            if directive.verb is Verb.ENABLE:
                continue
            last = max(
                (directive.ends.get(n, directive.last) for n in range(len(directive.entries))), default=0
            )
            covered = range(directive.first, (directive.first if directive.trailing else last) + 1)
            if len(covered) > _MANY_ROWS:
                wide.append(directive)
                continue
            for row in covered:
                rows[row].append(directive)
        return rows, wide

    # ------------------------------------------------------------------ use

    def apply(self, diagnostics: Collection[Diagnostic], *, blanket: bool = True) -> list[Diagnostic]:
        """Return the diagnostics that nothing suppresses; remembers which directives were of use.

        Without ``blanket`` only what names their rule suppresses them.
        """
        return [diagnostic for diagnostic in diagnostics if not self._suppresses(diagnostic, blanket)]

    def _suppresses(self, diagnostic: Diagnostic, blanket: bool) -> bool:
        if diagnostic.code in UNTREATED:
            return False
        found = False
        rows, wide = self._reach
        near = {diagnostic.start.row, diagnostic.noqa_row}
        for directive in chain(wide, *(rows.get(row, ()) for row in near)):
            if not directive.reaches(diagnostic):
                continue
            if directive.blanket and blanket:
                directive.used.add(_EVERYTHING)
                found = True
            for number in directive.by_code.get(diagnostic.code, ()):
                if directive.reaches(diagnostic, number):
                    directive.used.add(number)
                    found = True
                    # A code given twice is needed once.
                    break
        return found

    def unused(self, judged: Collection[str]) -> Iterator[tuple[str, Span, Fix]]:
        """Yield message, place and removal of every part of a directive that suppressed nothing.

        Only the codes in ``judged`` are: those of rules that ran, and ran to their end.
        """
        for directive in self.directives:
            idle = [
                number
                for number, entry in enumerate(directive.entries)
                if number not in directive.used
                and entry.code in judged
                and entry.code not in (UNUSED, INVALID)
            ]
            if not idle or (directive.marker and directive.used):
                continue
            entries = directive.entries
            if directive.marker:
                # It stands for all of its rules: none of those that ran needs it.
                idle = list(range(len(entries)))
            names = ", ".join(dict.fromkeys(f"`{entries[number].text}`" for number in idle))
            if directive.verb is Verb.ENABLE:
                told, advice = f"`enable` of {names} has no matching `disable`", "Remove the `enable`"
            else:
                of = "" if directive.marker else "of "
                told, advice = f"unused suppression {of}{names}", "Remove the unused suppression"
            place = entries[idle[0]].span if len(idle) == 1 else directive.span
            yield told, place, Fix(advice, (self._removal(directive, idle),), Applicability.SAFE)

    def without_reason(self) -> Iterator[Mistake]:
        """Yield the directives that suppress rules of torchlint and do not say why."""
        for directive in self.directives:
            if directive.concerns and not directive.has_reason:
                text = self._source.text[directive.span.start : directive.span.end]
                remedy = f"Give the reason: `{text}{':' if directive.marker else ''} …`"
                yield Mistake(
                    "this suppression gives no reason", directive.span, directive.comment.row, remedy
                )

    def without_colon(self) -> Iterator[Mistake]:
        """Yield the bare ``noqa`` that suppress something, and are followed by a rule as if that were all."""
        for directive in self.directives:
            if directive.meant and directive.concerns:
                message = f"`noqa` without a colon suppresses every rule, not only `{directive.meant}`"
                remedy = f"Write `# noqa: {directive.meant}`"
                yield Mistake(message, directive.span, directive.comment.row, remedy)

    def _removal(self, directive: Directive, idle: list[int]) -> Edit:
        left = set(idle)
        kept = [entry.text for number, entry in enumerate(directive.entries) if number not in left]
        if kept:
            listed = Span(directive.entries[0].span.start, directive.entries[-1].span.end)
            return Edit(listed, ", ".join(kept))
        return _remove_from_comment(self._source, directive.comment, directive.span)


def _below(row: int, lines: Lines) -> tuple[int, int]:
    """Return the rows of the statement below a comment in ``row``; inside of a statement,
    of the next code.
    """
    at = bisect_right(lines.logical, row, key=lambda span: span[0])
    if at and lines.logical[at - 1][1] > row:
        code = bisect_right(lines.code, row)
        below = lines.code[code] if code < len(lines.code) else row
        return below, below
    return lines.logical[at] if at < len(lines.logical) else (row, row)


def _remove_from_comment(source: Source, comment: Comment, span: Span) -> Edit:
    """Take ``span`` out of a comment, and the comment out of the text if nothing else is in it."""
    before = source.text[comment.span.start : span.start].rstrip()
    after = source.text[span.end : comment.span.end].lstrip(" \t,;:-–—")
    if before and after:
        return Edit(comment.span, f"{before}  {after if after.startswith('#') else '# ' + after}")
    if before:
        return Edit(Span(comment.span.start + len(before), comment.span.end), "")
    if after:
        return Edit(comment.span, after if after.startswith("#") else f"# {after}")
    line_start = source.line_starts[comment.row - 1]
    if comment.own_line:
        end = source.line_starts[comment.row] if comment.row < len(source.line_starts) else comment.span.end
        # Where lines without anything on them stand above and below, it leaves those of one side.
        above = blank_lines_before(source.text, line_start) if line_start else len(source.text)
        return Edit(Span(line_start, past_blank_lines(source.text, end, above)), "")
    code_end = line_start + len(source.text[line_start : comment.span.start].rstrip())
    return Edit(Span(code_end, comment.span.end), "")
