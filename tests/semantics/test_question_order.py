"""What the model says of a program does not depend on what it was asked first."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.outline import Outline
from torchlint.parsing import on_deep_stack
from torchlint.semantics import model
from torchlint.semantics.gradmode import grad
from torchlint.semantics.inference import place_of
from torchlint.semantics.module import Module
from torchlint.semantics.values import Kind
from torchlint.syntax import SyntaxTree

PROGRAMS = {
    "a value carried round a loop": """
        import torch

        def smooth(x, steps):
            y = None
            for step in range(steps):
                z = torch.sigmoid(y) if y is not None else x
                y = z.relu() if step else step
                w = y
            return w, y
    """,
    "two variables that are swapped": """
        import torch

        def iterate(a: torch.Tensor, rounds):
            b = 0
            while rounds:
                a, b = b, a + b
                c = a if rounds > 2 else b
                rounds -= 1
            return a, b, c
    """,
    "functions that call each other": """
        import torch

        def even(x, n):
            if n == 0:
                return x.mean()
            return odd(x, n - 1)

        def odd(x, n):
            y = even(x, n - 1)
            return y * 2 if n else None

        def start(n):
            first = even(torch.ones(3), n)
            second = odd(first, n)
            return first, second
    """,
    "a function that only calls itself": """
        def walk(node, loss):
            for child in node.children:
                walk(child, loss)
            total = node.weight.item() + loss.item()
            print(node, loss, total)
    """,
    "functions that hand each other their arguments": """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x, state=None):
                out, state = self.step(x, state)
                return out if out.sum() > 0 else self.again(out, state)

            def again(self, out, state):
                return self.forward(out, state)

            def step(self, x, state):
                if state is None:
                    state = torch.zeros_like(x)
                return self.mix(x, state), x

            def mix(self, a, b):
                c = a + b
                if c.max() > 3:
                    a, b = self.step(b, a)
                return c
    """,
    "attributes made of one another": """
        import torch

        class Average:
            def __init__(self):
                self.total = 0
                self.mean = None
                self.last = self.mean

            def update(self, value):
                self.total = self.total + self.last
                self.mean = self.total / 3
                self.last = self.mean if value is None else value

            def swap(self):
                self.total, self.last = self.last, self.total
                return self.mean

        average = Average()
        for batch in range(3):
            average.update(torch.rand(3))
            average.swap()
    """,
    "a module whose parts call the whole": """
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.inner = Block(depth - 1) if depth else nn.Linear(3, 3)
                self.norm = nn.LayerNorm(3)

            def forward(self, x, mask=None):
                x = x + self.inner(self.norm(x))
                if mask is not None:
                    x = x + self.attend(x, mask)
                return x

            def attend(self, x, mask):
                scores = x @ mask
                return self.inner(scores, mask) if self.norm else self.forward(scores)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block(2) for _ in range(3)])
                self.head = Block(0)

            def forward(self, x):
                for block in self.blocks:
                    x = block(x, self.head(x))
                return x
    """,
    "lists filled with what was read from them": """
        import torch

        def grow(x, n):
            levels = [x]
            kept = []
            for _ in range(n):
                level = levels[-1]
                level = torch.nn.functional.avg_pool2d(level, 2) if n > 1 else level
                levels.append(level)
                kept = kept + [kept]
                pair = (level, pair) if kept else (level, None)
            return torch.stack(levels), kept, pair
    """,
    "grad modes that depend on what is called": """
        import torch

        def evaluate(model, x):
            with torch.no_grad():
                return run(model, x)

        def run(model, x):
            y = model(x)
            z = choose(y)(model, y)
            return y + z

        def choose(y):
            if y.sum() > 0:
                return evaluate
            return train

        def train(model, x):
            torch.set_grad_enabled(x is not None)
            loss = run(model, x).mean()
            loss.backward()
            return loss
    """,
    "a class tested against itself": """
        import torch

        class Scale:
            kind = float

            def apply(self, x):
                if isinstance(x, self.kind):
                    self.kind = type(x)
                    return x
                if isinstance(x, (int, float)):
                    x = self.apply(torch.tensor(x))
                return x * 2

        scale = Scale()
        print(scale.apply(scale.apply(3.0)))
    """,
    "closures handed round": """
        import torch

        def outer(f, x):
            def inner(y):
                return f(y) if y is not x else outer(inner, y)
            g = inner
            for _ in range(3):
                x = g(x)
                g = f if x is None else (lambda z: inner(g(z)))
            return x

        print(outer(torch.relu, torch.ones(3)))
    """,
    "a chain of definitions that is long, and closes": "\n".join(
        [
            "import torch",
            "def chain(x0, n):",
            "    for _ in range(n):",
            *(f"        x{i + 1} = x{i} * {i} if n else x{i // 2}" for i in range(300)),
            "        x0 = x300 if n > 3 else torch.zeros(3)",
            "    return x0, x150",
        ]
    ),
}


def _answers(tree: SyntaxTree, nodes: Sequence[cst.CSTNode]) -> dict[cst.CSTNode, object]:
    """What a fresh model says of each of these nodes, asked in this order."""
    module = model.build(tree, LintSettings())
    found: dict[cst.CSTNode, object] = {}
    for node in nodes:
        match node:
            case cst.Call():
                found[node] = module.value(node), module.callee(node), grad(module, node)
            case cst.FunctionDef():
                found[node] = module.callers(node), module.inference.returned(node)
            case _:
                found[node] = module.value(node)
    return found


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_no_answer_depends_on_the_order_of_the_questions(program: str) -> None:
    on_deep_stack(_compare, SyntaxTree(dedent(program)))


def _compare(tree: SyntaxTree) -> None:
    nodes = [node for node in tree.order if isinstance(node, (cst.BaseExpression, cst.FunctionDef))]
    expected = _answers(tree, nodes)
    orders = [nodes[::-1]]
    for seed in range(6):
        orders.append(random.Random(seed).sample(nodes, len(nodes)))
    for order in orders:
        found = _answers(tree, order)
        assert [tree.source(node) for node in nodes if found[node] != expected[node]] == []


def test_a_value_carried_round_a_loop_is_the_same_wherever_it_is_read(
    semantic_model: Callable[[str], Module],
) -> None:
    module = semantic_model(
        "import torch\n"
        "def power(matrix: torch.Tensor, n):\n"
        "    x = torch.ones(3)\n"
        "    for _ in range(n):\n"
        "        x = matrix @ x\n"
        "        y = x\n"
        "    return x, y\n"
    )
    kinds = {module.value(read).kind for name in ("x", "y") for read in module.names.reads(name)}
    assert kinds == {Kind.TENSOR}


def test_a_node_that_a_question_names_besides_stands_for_its_place() -> None:
    """It would be written out with all that is below it, and an outline leaves out what that asks for."""
    tree = Outline("def f(x):\n    return g((x), x)\n")
    call, first = tree.nodes(cst.Call)[0], tree.nodes(cst.Arg)[0]
    place, label = place_of(tree.order, ("runs", call, (first, frozenset({"b", "a"}), True)))
    assert place == tree.order[call]
    assert label == f"runs[[{tree.order[first]}, ['a', 'b'], True]]"
