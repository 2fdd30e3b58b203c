"""What IPython adds to Python, hidden behind text that parses and is as long.

A masked cell has its characters where they were, so that a place in it is a place in the cell. What counts as
a magic is what IPython's input transformer takes for one: it stands where a statement begins or behind an
assignment, and never inside a string or brackets.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from torchlint.diagnostics import Span

# Below these the rest of the cell is Python that runs in the notebook. `%%python` and the like run it in a
# process of its own.
_TRANSPARENT = (
    "capture debug heat ipytest lprun memit mprun prun pyinstrument scalene snakeviz time timeit torchlint "
    "wandb"
)
# The magics that are called without a percent sign where the line is no Python.
_AUTOMAGIC = (
    "alias alias_magic autoawait autocall automagic bookmark cat cd clear code_wrap colors conda config cp "
    "debug dhist dirs doctest_mode edit env gui history killbgscripts less load load_ext loadpy logoff logon "
    "logstart logstate logstop ls lsmagic macro magic mamba man matplotlib micromamba mkdir more mv notebook "
    "page pastebin pdb pdef pdoc pfile pinfo pinfo2 pip popd pprint precision prun psearch psource pushd pwd "
    "pycat pylab quickref recall rehashx reload_ext rerun reset reset_selective rm rmdir run save sc set_env "
    "sx system tb time timeit unalias unload_ext uv who who_ls whos xdel xmode"
)
# A cell without any of this is not read by the character.
_SUSPECT = re.compile(r"(?:^|\r)[ \t\f]*[%!?,;/]|\?|=[ \t]*[%!]", re.MULTILINE)
_EMPTY_LINES = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*[ \t\f]*(?:#[^\r\n]*\Z)?")
_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:\r\n|\r|\n))*")
_CELL_MAGIC = re.compile(r"%%(\w+)(?!\w*\?)[^\r\n]*")
_PROMPT = re.compile(r">>>(?: |$)|In \[\d+\]: ", re.MULTILINE)
_INDENT = (" ", "\t")
_WORD = re.compile(r"\w+")
_LINE_MAGIC = re.compile(r"[ \t\f]*(?=[%!?,;/])")
_TIME = re.compile(r"%time[ \t]+(?=[A-Za-z_(\[])")
_ASSIGNED = re.compile(r"(?<![=!<>+\-*/%&|^@:])=[ \t]*(?=!(?!=)|%[A-Za-z_])")
# The rest of the line, with the lines that a backslash joins to it.
_REST = re.compile(r"(?:\\(?:\r\n|\r|\n)|[^\r\n])*")
_LINE = re.compile(r"[^\r\n]+")
TOKEN = re.compile(
    r"""(?P<space>[ \t\f]+|\\(?:\r\n|\r|\n))
    |(?P<comment>\#[^\r\n]*)
    |(?P<newline>\r\n|\r|\n)
    |(?P<string>(?i:[bfrtu]{0,2})
        (?:'''(?:[^\\']|\\.|'(?!''))*(?:'''|\Z)
        |\"{3}(?:[^\\"]|\\.|"(?!""))*(?:\"{3}|\Z)
        |'(?:\\(?:\r\n|.)|[^'\\\r\n])*'?
        |"(?:\\(?:\r\n|.)|[^"\\\r\n])*"?))
    |(?P<word>\w+)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
"""A token of Python, of one kind: any text is a row of them."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A cell as Python: ``text`` is as long as the cell, and differs from it in the ``spans`` only.

    It is ``indented`` if its code begins with white space, which IPython takes off.
    """

    text: str
    spans: tuple[Span, ...] = ()
    indented: bool = False


def mask(cell: str) -> Masked | None:
    """Return the cell with everything masked that IPython does not hand to Python;
    None if that is all of it.
    """
    begin = _first_code(cell)
    if _PROMPT.match(cell, begin):
        return None
    spans: list[Span] = []
    body = 0
    while found := _CELL_MAGIC.match(cell, begin):
        if found[1] not in _TRANSPARENT.split():
            return None
        spans.append(Span(*found.span()))
        body = found.end()
        begin = body + _first_code(cell[body:])
    if spans or _SUSPECT.search(cell):
        spans += _magics(cell, begin if spans else 0)
    text = _filled(cell, spans)
    word = _WORD.match(cell, begin)
    if word and word[0] in _AUTOMAGIC.split() and not parses(text):
        return None
    return Masked(text, tuple(spans), _is_indented(text[body:]))


def _is_indented(body: str) -> bool:
    """Return whether the first line of ``body``, and the first that is no comment, begin with white space."""
    begin, blank = _first_code(body), _BLANK_LINES.match(body)
    first = body[blank.end() : blank.end() + 1] if blank else ""
    return begin < len(body) and body[begin - 1 : begin] in _INDENT and first in _INDENT


def _first_code(cell: str) -> int:
    """Return where the first line stands that is neither empty nor a comment, behind its indentation."""
    found = _EMPTY_LINES.match(cell)
    return found.end() if found else 0


def _magics(cell: str, at: int) -> Iterator[Span]:
    """Yield the places of magics, shell lines and questions from ``at`` on, where a statement begins."""
    depth, start, last, assigned = 0, -1, "", False
    while at < len(cell):
        if start < 0 and (line := _LINE_MAGIC.match(cell, at)):
            span = _line_magic(cell, line.end())
            yield span
            # What stands behind `%time` is a statement.
            start = span.start if span.end < len(cell) and cell[span.end] not in "\r\n" else -1
            at, last, assigned = span.end, "", False
            continue
        token = TOKEN.match(cell, at)
        assert token is not None
        kind, end = token.lastgroup, token.end()
        if kind == "newline" and depth == 0:
            if last == "?" and start >= 0:
                yield Span(start, at)
            start, last, assigned = -1, "", False
        elif kind == "other" and token[0] == "=" and depth == 0 and start >= 0 and not assigned:
            if found := _ASSIGNED.match(cell, at):
                end = _rest(cell, found.end())
                yield Span(found.end(), end)
            # Only the first assignment of a line may be one of a magic.
            assigned = cell[end : end + 1] != "=" and cell[at - 1] not in "=!<>"
        if kind not in ("space", "comment", "newline"):
            start = at if start < 0 else start
            last = token[0]
        elif kind == "comment":
            last = ""
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        at = end
    if last == "?" and start >= 0 and depth == 0:
        yield Span(start, len(cell))


def _line_magic(cell: str, start: int) -> Span:
    """Return what is to be masked of a line that begins with an escape."""
    end = _rest(cell, start)
    time = _TIME.match(cell, start)
    if time and parses(cell[time.end() : end]):
        return Span(start, time.end())
    return Span(start, end)


def _rest(cell: str, start: int) -> int:
    found = _REST.match(cell, start)
    return found.end() if found else start


def _filled(cell: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for span in spans:
        parts += [cell[at : span.start], _filler(cell, span)]
        at = span.end
    return "".join([*parts, cell[at:]])


def _filler(cell: str, span: Span) -> str:
    """Return something of the same length, with the same newlines, that parses where a magic stood."""
    before = cell[max(cell.rfind("\n", 0, span.start), cell.rfind("\r", 0, span.start)) + 1 : span.start]
    joined = span.end < len(cell) and cell[span.end] not in "\r\n"
    first = True

    def fill(line: re.Match[str]) -> str:
        nonlocal first
        size, whole = len(line[0]), first
        first = False
        if not whole:
            return " " * size
        if joined:
            return "0;".ljust(size)
        if before.strip():
            # A name that nothing binds, for a value that nothing is known of.
            return "_" * size
        # A comment is no statement that a new import would have to stand above; a block needs a statement.
        return ("pass" if size >= 4 else "0").ljust(size) if before else "#" * size

    return _LINE.sub(fill, cell[span.start : span.end])


def parses(text: str) -> bool:
    """Return whether a text is Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
