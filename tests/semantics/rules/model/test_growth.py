"""Which concatenations make a tensor longer in each round of a loop that never reads it."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.rules.model.concatenation_in_loop.growth import grown
from torchlint.semantics.module import Module

# What the rounds do: what grows, how many loops it grows in, and how many pieces each round adds.
GROWING = {
    """
    for x in xs:
        t = torch.cat([t, x])
    """: ("t", 1, 1),
    """
    for row in xs:
        for x in row:
            t = torch.cat([t, x, -x], dim=-1)
    """: ("t", 2, 2),
    """
    for row in xs:
        t = torch.empty(0)
        for x in row:
            t = torch.cat([t, x])
        print(t.sum())
    """: ("t", 1, 1),
    """
    while t.size(0) < 100:
        t = torch.cat((t, draw()))
    """: ("t", 1, 1),
    """
    for x in xs:
        self.t = torch.cat([self.t, x])
    """: ("self.t", 1, 1),
    """
    for row in xs:
        for key, x in row.items():
            parts[key] = torch.cat([parts[key], x])
    """: ("parts[key]", 1, 1),
}
OTHERS = [
    "t = torch.cat([t, x])",
    "for x in xs:\n    t = torch.cat([first, x])",
    "for x in xs:\n    t = torch.cat([t, x])\n    print(t)",
    "for x in xs:\n    t = torch.cat([t, f(t)])",
    "for x in xs:\n    t = torch.cat([t, x], out=t)",
    "for x in xs:\n    x = torch.cat([x, t])",
    "for x in xs:\n    t = torch.stack([t, x])",
    "for x in xs:\n    t = g(t)\n    t = torch.cat([t, x])",
    "for key, x in xs:\n    parts[key] = torch.cat([parts[key], x])",
    "for x in xs:\n    parts[0] = torch.cat([parts[0], x])\n    f(parts)",
    "for x in xs:\n    self.t = torch.cat([self.t, x])\n    self.look()",
    "for _ in range(0, 8, 2):\n    t = torch.cat([t, first])",
    "for x in (a, b):\n    t = torch.cat([t, x])",
]
HEAD = "import torch\n\n\ndef go(self, t, first, parts, xs):\n"


def _found(program: str, model: Callable[[str], Module]) -> list[tuple[str, int, int]]:
    body = dedent(program).strip().replace("\n", "\n    ")
    module = model(f"{HEAD}    {body}\n    return t\n")
    growths = (grown(module, call) for call in module.tree.nodes(cst.Call))
    return [(module.source(g.target), len(g.loops), len(g.pieces)) for g in growths if g is not None]


@pytest.mark.parametrize("program", GROWING)
def test_it_grows(program: str, semantic_model: Callable[[str], Module]) -> None:
    assert _found(program, semantic_model) == [GROWING[program]]


@pytest.mark.parametrize("program", OTHERS)
def test_it_is_needed_in_the_loop_or_does_not_grow(
    program: str, semantic_model: Callable[[str], Module]
) -> None:
    assert _found(program, semantic_model) == []
