"""Programs on which the evaluator once failed."""

from __future__ import annotations

import libcst as cst

from torchlint.options import LintSettings
from torchlint.semantics.module import Module
from torchlint.semantics.values import Kind
from torchlint.syntax import SyntaxTree


def _model(program: str) -> Module:
    return Module(SyntaxTree(program), LintSettings())


def test_an_iterator_that_is_its_own_iterable_ends() -> None:
    module = _model(
        "class Counting:\n"
        "    def __iter__(self):\n"
        "        return self\n"
        "    def __next__(self):\n"
        "        return 3\n"
        "for number in Counting():\n"
        "    print(number)\n"
    )
    (read,) = module.names.reads["number"]
    assert module.value(read).kind is Kind.NUMBER


def test_a_list_filled_by_append_hands_on_its_items() -> None:
    module = _model(
        "import torch\n"
        "def pair(x):\n"
        "    found = []\n"
        "    found.append(torch.relu(x))\n"
        "    return found\n"
        "first, second = pair(torch.ones(2))\n"
        "print(second)\n"
    )
    (read,) = module.names.reads["second"]
    assert module.value(read).kind is Kind.TENSOR


def test_every_call_of_a_program_that_feeds_on_itself_is_evaluated() -> None:
    module = _model(
        "import torch\n"
        "def f(x, n):\n"
        "    if n:\n"
        "        return g(x, n)\n"
        "    return x.relu()\n"
        "def g(x, n):\n"
        "    return f(x, n - 1)\n"
        "y = torch.ones(2)\n"
        "while True:\n"
        "    y = f(y, 2)\n"
        "    z = g(y, 2)\n"
    )
    kinds = {module.source(call): module.value(call).kind for call in module.tree.nodes(cst.Call)}
    assert kinds["f(y, 2)"] is Kind.TENSOR
    assert kinds["g(y, 2)"] is Kind.TENSOR
