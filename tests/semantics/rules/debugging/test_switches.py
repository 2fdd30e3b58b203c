"""Which lines only run if somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.rules.debugging.switches import optional
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

HEAD = "import torch\n\nDEBUG = True\n\n"

ASKED_FOR = [
    "if DEBUG:\n    here()",
    "if args.debug and torch.cuda.is_available():\n    here()",
    "if step > 100:\n    pass\nelse:\n    here()",
    "flag and here()",
    "here() if flag else other()",
    "try:\n    go()\nexcept RuntimeError:\n    here()",
    "match mode:\n    case 'debug':\n        here()",
    "switch = lambda: here()",
    "def debug(model):\n    here()",
    "def on():\n    here()\n\nif args.debug:\n    on()",
    "def on():\n    here()\n\ndef both():\n    on()\n\nif args.debug:\n    both()",
]
ALWAYS = [
    "here()",
    "def main():\n    here()",
    "if __name__ == '__main__':\n    here()",
    "if torch.cuda.is_available():\n    here()",
    "if torch.cuda.is_available() and device.type == 'cuda':\n    here()",
    "if torch.cuda.device_count() > 1:\n    here()",
    "if True:\n    here()",
    "if flag(here()):\n    pass",
    "try:\n    here()\nexcept RuntimeError:\n    pass",
    "for batch in loader:\n    here()",
    "def on():\n    here()\n\nif args.debug:\n    on()\non()",
    "def on():\n    here()\n\ndef main():\n    on()",
]


def _answer(program: str, model: Callable[[str], Module]) -> bool:
    module = model(HEAD + dedent(program) + "\n")
    (call,) = (node for node in module.tree.nodes(cst.Call) if last_name(node.func) == "here")
    return bool(optional(module, call))


@pytest.mark.parametrize("program", ASKED_FOR)
def test_an_option_asks_for_it(program: str, semantic_model: Callable[[str], Module]) -> None:
    assert _answer(program, semantic_model)


@pytest.mark.parametrize("program", ALWAYS)
def test_nobody_asks_for_it(program: str, semantic_model: Callable[[str], Module]) -> None:
    assert not _answer(program, semantic_model)
