"""Expands the grammar of PyTorch-shaped programs, spells PyTorch in one of its ways, and lays the text out.

All choices come from one ``random.Random``: a seeded one, or hypothesis's, which makes programs small again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random

GRAMMAR = Path(__file__).with_name("grammar.txt")
START = "<program>"
PLACE = re.compile(r"<([a-z_]+)(?::([^<>\n]*))?>")
_ALONE = re.compile(r"^([ \t]*)<([a-z_]+)(?::([^<>\n]*))?>[ \t]*$", re.MULTILINE)
# Beyond this depth of a branch the shortest production is taken, so that every program comes to an end.
_DEEPEST = 7


def program(random: Random) -> str:
    """A program, with LF at the end of each line; `dressed` gives it an odd layout."""
    text = _expand(START, random, 0)
    text = re.sub(r"\n[ \t]*(?=\n)", "\n", text).strip("\n") + "\n"
    return respelt(text, random)


@cache
def productions() -> dict[str, list[str]]:
    """What each name may become, as ``grammar.txt`` has it."""
    text = re.sub(r"^###.*\n", "", GRAMMAR.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {}
    for section in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, body = section.split("\n", 1)
        found[name] = [choice.strip("\n") for choice in re.split(r"^--$", body, flags=re.MULTILINE)]
    return found


def _expand(text: str, random: Random, depth: int) -> str:
    def block(match: re.Match[str]) -> str:
        indent, name, argument = match.groups()
        made = _expand(_production(name, argument, random, depth), random, depth + 1).strip("\n")
        return "\n".join(indent + line if line else line for line in made.split("\n"))

    def inline(match: re.Match[str]) -> str:
        name, argument = match.groups()
        return _expand(_production(name, argument, random, depth), random, depth + 1)

    return PLACE.sub(inline, _ALONE.sub(block, text))


def _production(name: str, argument: str | None, random: Random, depth: int) -> str:
    choices = productions()[name]
    chosen = random.choice(choices) if depth < _DEEPEST else min(choices, key=len)
    return chosen if argument is None else chosen.replace("$", argument)


# --- spelling --------------------------------------------------------------------------------------------

# An import of the grammar, what it may be instead, and how names are then spelt.
_IMPORTS: dict[str, Sequence[tuple[str, str, str]]] = {
    "import torch.nn as nn": [
        ("import torch.nn as nn", r"\bnn\.", "nn."),
        ("from torch import nn", r"\bnn\.", "nn."),
        ("import torch.nn", r"(?<!torch\.)\bnn\.", "torch.nn."),
        ("import torch.nn as N", r"(?<!torch\.)\bnn\.", "N."),
        (
            "from torch import nn\nfrom torch.nn import Linear, Module",
            r"(?<!torch\.)\bnn\.(?=(Linear|Module)\b)",
            "",
        ),
    ],
    "import torch.nn.functional as F": [
        ("import torch.nn.functional as F", r"\bF\.", "F."),
        ("from torch.nn import functional as F", r"\bF\.", "F."),
        ("import torch.nn.functional", r"\bF\.", "torch.nn.functional."),
        (
            "import torch.nn.functional as F\nfrom torch.nn.functional import softmax",
            r"\bF\.(?=softmax\b)",
            "",
        ),
    ],
    "from torch import optim": [
        ("from torch import optim", r"\boptim\.", "optim."),
        ("import torch.optim as optim", r"\boptim\.", "optim."),
        ("import torch.optim", r"(?<!torch\.)\boptim\.(?=[A-Z])", "torch.optim."),
        ("from torch.optim import *", r"(?<!torch\.)\boptim\.(?=[A-Z])", ""),
    ],
    "from torch.utils.data import DataLoader, TensorDataset": [
        ("from torch.utils.data import DataLoader, TensorDataset", r"\bDataLoader\b", "DataLoader"),
        ("from torch.utils.data import TensorDataset, DataLoader as Loader", r"\bDataLoader\b", "Loader"),
        (
            "import torch.utils.data as data\nfrom torch.utils.data import TensorDataset",
            r"\bDataLoader\b",
            "data.DataLoader",
        ),
        (
            "from torch.utils import data\nTensorDataset = data.TensorDataset",
            r"\bDataLoader\b",
            "data.DataLoader",
        ),
    ],
}
_MOVES = (
    (".to(device)", 12),
    (".to(device=device)", 1),
    (".cuda()", 2),
    (".to(device, non_blocking=True)", 1),
    (".to(torch.device(device))", 1),
    (".to('cuda')", 1),
)


def respelt(text: str, random: Random) -> str:
    """``text`` with each import in one of its ways, and names to match; some programs move tensors oddly."""
    for line, ways in _IMPORTS.items():
        imported, pattern, name = random.choice(ways)
        if line in text:
            before, after = text.split(line, 1)
            after = re.sub(pattern, lambda _, name=name: name, after)  # type: ignore[misc]
            text = before + imported + after
    if random.random() < 0.3:
        moves, weights = zip(*_MOVES, strict=True)
        text = re.sub(r"\.to\(device\)", lambda _: str(random.choices(moves, weights)[0]), text)
    if random.random() < 0.2:
        text = re.sub(r"\btorch\b(?=\.(?!(?:nn|optim|utils|cuda|autograd|backends)\b))", "th", text)
        text = text.replace("import torch\n", "import torch\nimport torch as th\n", 1)
    return text


# --- layout ----------------------------------------------------------------------------------------------


def dressed(text: str, random: Random) -> str:
    """``text`` in an odd layout, and still the same program: comments, semicolons, tabs, line ends."""
    dressings = (_comments, _semicolons, _tabs, _blank_lines, _one_line_blocks, _spaces, _end, _newlines)
    for dressing in dressings:
        if random.random() < 0.25:
            changed = dressing(text, random)
            if _same(text, changed):
                text = changed
    return text


def _same(before: str, after: str) -> bool:
    try:
        return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError):
        return False


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
    """Change the lines that are no part of a longer string or bracket, one by one."""
    lines = text.split("\n")
    for number in range(len(lines)):
        changed = [*lines[:number], change(lines[number]), *lines[number + 1 :]]
        if changed[number] != lines[number] and _same("\n".join(lines), "\n".join(changed)):
            lines = changed
    return "\n".join(lines)


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
    """``if a:`` and its only statement in one line."""

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
