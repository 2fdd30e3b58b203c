"""Gives programs an odd layout, in which they stay the same: comments, brackets, breaks, tabs, line ends.

Most of it comes where fixes are made: beside the calls and names that rules speak about.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from random import Random


def dressed(text: str, random: Random) -> str:
    """Return ``text`` in an odd layout, and still the same program: comments, semicolons, tabs, line ends."""
    before = _meaning(text)
    for dressing in (
        *(brackets, breaks, _comments, _semicolons, _tabs, _blank_lines, _one_line_blocks, _spaces, _end),
        _newlines,
    ):
        if random.random() < 0.3:
            changed = dressing(text, random)
            if _meaning(changed) == before:
                text = changed
    return text


def within_lines(text: str, random: Random) -> str:
    """Return ``text`` with two lots of brackets and breaks, and its lines otherwise as they are."""
    for _ in range(2):
        text = random.choice((brackets, breaks))(text, random)
    return text


def _meaning(text: str) -> str | None:
    """Return what two texts have in common that are the same program; None if it is none."""
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return None


_COMMENTS = (
    "# why",
    "# noqa",
    "# type: ignore",
    "# torchlint: ignore[TL202]",
    "# noqa: TL201, E501",
    "# fmt: skip",
    "# ✓ ångström",
    "#",
    "# torchlint: disable[TL301]",
)


def _by_line(change: Callable[[str], str], text: str) -> str:
    """Change lines, but for those where that makes another program: within longer strings, say."""
    lines = text.split("\n")
    made = [change(line) for line in lines]
    return "\n".join(_kept(lines, made, _meaning(text)))


def _kept(lines: list[str], made: list[str], meaning: str | None) -> list[str]:
    """Return ``made`` in place of ``lines``, halved until it means the same."""

    def tried(first: int, last: int) -> None:
        changed = [number for number in range(first, last) if made[number] != lines[number]]
        if not changed:
            return
        before = lines[first:last]
        lines[first:last] = made[first:last]
        if _meaning("\n".join(lines)) == meaning:
            return
        lines[first:last] = before
        if len(changed) > 1:
            middle = changed[len(changed) // 2]
            tried(first, middle)
            tried(middle, last)

    tried(0, len(lines))
    return lines


def _comments(text: str, random: Random) -> str:
    def change(line: str) -> str:
        if random.random() > 0.08:
            return line
        comment = random.choice(_COMMENTS)
        indent = line[: len(line) - len(line.lstrip())]
        return random.choice((f"{line}  {comment}", f"{indent}{comment}\n{line}", f"{line} {comment}"))

    return _by_line(change, text)


def _semicolons(text: str, random: Random) -> str:
    joined: list[str] = []
    for line in text.split("\n"):
        before = joined[-1] if joined else ""
        alike = before.strip() and len(before) - len(before.lstrip()) == len(line) - len(line.lstrip())
        if alike and _is_simple(before) and _is_simple(line) and random.random() < 0.1:
            joined[-1] = f"{before}; {line.strip()}"
        else:
            joined.append(line)
    return "\n".join(joined)


def _is_simple(line: str) -> bool:
    try:
        statements = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return False
    return bool(statements) and "#" not in line and not any(hasattr(item, "body") for item in statements)


def _tabs(text: str, random: Random) -> str:
    unit = random.choice(("\t", "  ", "   ", "        "))
    return re.sub(r"^(?:    )+", lambda match: unit * (len(match[0]) // 4), text, flags=re.MULTILINE)


def _blank_lines(text: str, random: Random) -> str:
    return _by_line(
        lambda line: (
            line + random.choice(("\n", "\n\n\n", "\n    ", "\n\f")) if random.random() < 0.1 else line
        ),
        text,
    )


def _one_line_blocks(text: str, random: Random) -> str:
    """Return ``if a:`` and its only statement in one line."""

    def join(match: re.Match[str]) -> str:
        return f"{match[1]} {match[2]}" if random.random() < 0.5 else match[0]

    return re.sub(r"^([ ]*(?:if|for|while|with) [^\n#]*:)\n[ ]+([^\n#]+)$", join, text, flags=re.MULTILINE)


def _spaces(text: str, random: Random) -> str:
    def change(line: str) -> str:
        if random.random() > 0.15:
            return line
        ways = (
            lambda: line.replace("(", "( ").replace(")", " )"),
            lambda: line + "   ",
            lambda: line.replace(", ", ","),
            lambda: line.replace(" = ", "="),
            lambda: line.replace(" = ", " = \\\n        ", 1),
            lambda: line.replace("(", "(\n", 1),
            lambda: line.replace(", ", ",  # and\n", 1),
            lambda: re.sub(r"= (.*)$", r"= (\1)", line),
            lambda: re.sub(r"\)$", ",)", line),
        )
        return random.choice(ways)()

    return _by_line(change, text)


def _end(text: str, random: Random) -> str:
    return random.choice((text.rstrip("\n"), text + "\n\n", text + "# the end", text + "    "))


def _newlines(text: str, random: Random) -> str:
    return text.replace("\n", random.choice(("\r\n", "\r\n", "\r")))


# --- within lines ----------------------------------------------------------------------------------------

# Beside these words, places are taken more often.
_TOUCHED = re.compile(
    r"item|\bto\b|cuda|cpu|grad|Loader|Linear|Conv|Norm|[tT]ensor|zeros|ones|rand|total|loss|log|exp|softmax|amp|"
    r"no_grad|eval|forward|append|pretrained|strategy|optim|empty_cache|anomaly|cholesky|qr|init|compile|dynamo"
)


def _offsets(text: str) -> list[int]:
    """Return where each line begins."""
    found = [0]
    for line in text.split("\n"):
        found.append(found[-1] + len(line) + 1)
    return found


def _chosen(places: list[tuple[int, int]], text: str, random: Random) -> list[tuple[int, int]]:
    """Return one to twelve places that do not overlap, last first;
    rather those beside words that fixes touch.
    """

    def weight(place: tuple[int, int]) -> int:
        return 8 if _TOUCHED.search(text, max(0, place[0] - 8), min(len(text), place[1] + 12)) else 1

    if not places:
        return []
    wanted = random.choices(places, [weight(place) for place in places], k=random.randint(1, 12))
    found: list[tuple[int, int]] = []
    for start, end in sorted(set(wanted), reverse=True):
        if not found or end <= found[-1][0]:
            found.append((start, end))
    return found


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return ``text`` after those edits, given last first, that leave the program what it is."""
    meaning = _meaning(text)
    if meaning is None:
        return text
    for start, end, new in edits:
        changed = text[:start] + new + text[end:]
        if _meaning(changed) == meaning:
            text = changed
    return text


def brackets(text: str, random: Random) -> str:
    """Return expressions in brackets that they do not need, some of them over several lines."""
    ways = (
        ("(", ")"),
        ("((", "))"),
        ("( ", " )"),
        ("(\n", "\n)"),
        ("(", "  # so\n)"),
        ("(  # so\n    ", ")"),
    )
    edits = []
    for start, end in _chosen(list(_expressions(text)), text, random):
        left, right = random.choice(ways)
        edits.append((start, end, left + text[start:end] + right))
    return _edited(text, edits)


def _expressions(text: str) -> Iterator[tuple[int, int]]:
    starts, lines = _offsets(text), text.split("\n")

    def offset(row: int, column: int) -> int:
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    try:
        nodes: list[ast.AST] = [ast.parse(text)] if "\r" not in text else []
    except (SyntaxError, ValueError, RecursionError):
        return
    while nodes:
        node = nodes.pop()
        # The places of what is within an f-string are not known to every interpreter.
        if not isinstance(node, ast.JoinedStr):
            nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None:
            yield offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)


def breaks(text: str, random: Random) -> str:
    """Return lines that end early: in brackets, with a comment or none, and elsewhere with a backslash."""
    inside = (
        "\n",
        "\n\n        ",
        "  # why\n",
        "\t",
        "  ",
        " \\\n",
        "  # torchlint: ignore[TL999]\n",
        "\n#\n",
    )
    outside = (" \\\n    ", "  ", "\t", "\\\n")
    depths = dict(_gaps(text))
    return _edited(
        text,
        [
            (start, end, random.choice(inside if depths[start, end] else outside))
            for start, end in _chosen(list(depths), text, random)
        ],
    )


def _gaps(text: str) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the places between two tokens of a line, and how many brackets they are in."""
    if "\r" in text:
        return
    starts, depth, quoted, last = _offsets(text), 0, 0, None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            if last is not None and not quoted and token.string.strip() and text[last:start].strip() == "":
                if "\n" not in text[last:start]:
                    yield (last, start), depth
            kind = tokenize.tok_name[token.type]
            quoted += (kind == "FSTRING_START") - (kind == "FSTRING_END")
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
            # A line begins with its indentation, which is no gap.
            last = end if token.string.strip() and token.type != tokenize.COMMENT else None
    except (tokenize.TokenError, SyntaxError, IndexError):
        return
