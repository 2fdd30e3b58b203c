"""Expands the grammar of PyTorch-shaped programs, and spells PyTorch in one of its ways.

All choices come from one ``random.Random``: a seeded one, or hypothesis's, which makes programs small again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

GRAMMAR = tuple(Path(__file__).with_name(name) for name in ("grammar.txt", "topics.txt"))
START = "<program>"
PLACE = re.compile(r"<([a-z_]+)(?::([^<>\n]*))?>")
_ALONE = re.compile(r"^([ \t]*)<([a-z_]+)(?::([^<>\n]*))?>[ \t]*$", re.MULTILINE)
# Beyond this depth of a branch the shortest production is taken, so that every program comes to an end.
_DEEPEST = 7


def program(random: Random) -> str:
    """Return a program, with LF at the end of each line; `layout.dressed` gives it an odd layout."""
    return respelt(expanded(START, random), random)


def expanded(text: str, random: Random) -> str:
    """Return ``text`` with a production in each of its places."""
    return re.sub(r"\n[ \t]*(?=\n)", "\n", _expand(text, random, 0)).strip("\n") + "\n"


@cache
def productions() -> dict[str, list[str]]:
    """Return what each name may become, as ``grammar.txt`` and ``topics.txt`` have it."""
    found = {}
    for path in GRAMMAR:
        text = re.sub(r"^###.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
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

_LOADER = r"(?<!class )\bDataLoader\b"
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
        ("import torch.optim", r"(?<!torch\.)\boptim\.(?=\w+[.(])", "torch.optim."),
        ("from torch.optim import *\nfrom torch import optim", r"(?<!torch\.)\boptim\.(?=[A-Z])", ""),
    ],
    "from torch.utils.data import DataLoader, TensorDataset": [
        (
            "from torch.utils.data import DataLoader, TensorDataset",
            _LOADER,
            "DataLoader",
        ),
        (
            "from torch.utils.data import TensorDataset, DataLoader as Loader",
            _LOADER,
            "Loader",
        ),
        (
            "import torch.utils.data as data\nfrom torch.utils.data import TensorDataset",
            _LOADER,
            "data.DataLoader",
        ),
        (
            "from torch.utils import data\nTensorDataset = data.TensorDataset",
            _LOADER,
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
    """Return ``text`` with each import in one of its ways, and names to match;
    some programs move tensors oddly.
    """
    for line, ways in _IMPORTS.items():
        imported, pattern, name = random.choice(ways)
        if line in text:
            before, after = text.split(line, 1)
            after = re.sub(pattern, lambda _, name=name: name, after)  # type: ignore[misc]
            text = before + imported + after
    if random.random() < 0.3:
        moves, weights = zip(*_MOVES, strict=True)
        text = re.sub(r"\.to\(device\)", lambda _: str(random.choices(moves, weights)[0]), text)
    imported, name, share = random.choices(_TORCH, [12, 2, 2, 1, 1])[0]
    text = text.replace("\nimport torch\n", f"\n{imported}\n", 1)
    return _named(text, name, share, random) if name != "torch" else text


# How torch itself is imported, its name, and how many of the lines that use it use that name.
_TORCH = (
    ("import torch", "torch", 0),
    ("import torch\nimport torch as th", "th", 0.7),
    ("import torch as tch", "tch", 1),
    ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch", 0),
    ("import torch, sys as system\nif torch.__version__:\n    T = torch", "T", 0.3),
)
_IMPORTS_SOMETHING = re.compile(r"\s*(?:import|from)\b")


def _named(text: str, name: str, share: float, random: Random) -> str:
    """Return ``text`` with torch called ``name`` in a share of the lines behind its import."""

    def line(code: str) -> str:
        if _IMPORTS_SOMETHING.match(code) or random.random() > share:
            return code
        return re.sub(r"""(?<!['".\w])torch(?=\.)""", name, code)

    head, found, body = text.partition(f" as {name}\n" if f" as {name}\n" in text else f"{name} = torch\n")
    return head + found + "\n".join(map(line, body.split("\n")))
