"""A check takes time in proportion to the file, whatever it looks like.

Time is told by a busy machine; what is counted here are calls, of Python and of C, which are the same in
every run: one question asked of each pair of places makes sixteen times as many of four times the text.
"""

from __future__ import annotations

import cProfile
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth import measuring
from benchmarks.growth.measuring import Sample
from benchmarks.growth.shapes import DOUBLING, HEAD, MODEL, SHAPES, Shape, doubled
from torchlint import parsing
from torchlint.checker import CRASH, GIVEN_UP, check
from torchlint.effort import Effort
from torchlint.source import Source

# How many there are in the smaller text of what a shape is about; the larger one has four times as many.
SIZES = {
    "calls_in_loop": 25,
    "calls_after_step": 12,
    "loops_in_function": 6,
    "loops_at_top_level": 5,
    "branches_in_loop": 20,
    "throttled_in_loop": 10,
    "varied_loop": 4,
    "tries_in_loop": 6,
    "comprehensions": 8,
    "training_functions": 5,
    "chain_of_calls": 20,
    "handed_everywhere": 4,
    "chain_of_results": 15,
    "callers_of_one_function": 12,
    "lambdas": 8,
    "operations": 12,
    "mutated_globals": 12,
    "modules": 6,
    "methods": 12,
    "assignments_to_attribute": 12,
    "inheritance": 12,
    "mesh_of_methods": 60,
    "chain_of_methods_called": 12,
    "classes_of_classes": 12,
    "deep_sequential": 15,
    "filled_sequential": 12,
    "blocks": 3,
    "datasets": 6,
    "loaders": 6,
    "literal_of_tensors": 100,
    "sum_of_terms": 60,
    "chain_of_methods": 60,
    "sum_of_strings": 15,
    "sum_of_numbers": 40,
    "chain_of_attributes": 60,
    "conditions": 20,
    "conditions_of_numbers": 25,
    "elif_chain": 80,  # from 65 on, its layers are wide enough for TL415 to look at them
    "elif_in_loop": 6,
    "elif_of_tensors": 10,
    "assignments_to_name": 20,
    "assignments_at_top_level": 15,
    "augmented_name": 20,
    "decorators": 12,
    "reads_of_name": 30,
    "filled_list": 12,
    "entries": 10,
    "imports": 25,
    "aliases": 15,
    "attributes_of_name": 12,
    "optimizers": 5,
    "without_grad": 8,
    "grad_switches": 8,
    "autocast_switches": 6,
    "suppressed": 15,
    "one_line": 15,
    **{f"chain_of_{name}": 20 for name in DOUBLING},
    "settings_below_calls": 12,
    "loaders_below_calls": 12,
    "loaders_handed_down": 12,
    "waits_below_calls": 12,
    "tuples_of_tuples": 20,
    "items_added_up": 15,
    "plain_assignments": 500,
}
MOST = 5.0
"""How many times as many calls four times the text may take."""


def calls(shape: Shape, n: int) -> int:
    source = Source(Path("grown.py"), shape.make(n))
    profile = cProfile.Profile()
    profile.enable()
    found = check(source, measuring.settings())
    profile.disable()
    assert not any(diagnostic.code == CRASH for diagnostic in found)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.fixture
def in_one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A profile sees the thread that it was started in; nothing here is nested very deeply."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)

    def at_once(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    monkeypatch.setattr(parsing, "on_deep_stack", at_once)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("in_one_thread")
@pytest.mark.parametrize("name", SIZES)
def test_four_times_the_text_takes_four_times_the_work(name: str) -> None:
    shape, n = SHAPES[name], SIZES[name]
    calls(shape, 2)  # what is imported and remembered for good
    assert calls(shape, 4 * n) <= MOST * calls(shape, n)


STARTS = ("loss", "loss.item()", "model(x)", "[]", "y.cpu().numpy()", "0.1", "model", "loader")
ENDS = (
    "print(a$.item())",
    "if a$ > 0:\n    total = float(a$)",
    "F.cross_entropy(a$, y)",
    "DataLoader(a$, pin_memory=a$, num_workers=4)",
    "torch.optim.Adam(a$, lr=a$)",
    "weights = F.softmax(x @ a$.transpose(-2, -1) / a$ + a$, dim=-1) @ a$",
    "torch.tensor(a$).to(device)",
    "with a$:\n    model(x)",
)


@pytest.mark.parametrize("line", DOUBLING.values(), ids=DOUBLING)
def test_two_ways_to_each_place_take_no_longer_than_one(line: str) -> None:
    most = Effort.worth(0).most // 40
    for start in STARTS:
        for end in ENDS:
            source = Source(Path("grown.py"), doubled(30, line, start, end))
            effort = Effort()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(Effort, "worth", lambda characters, effort=effort: effort)
                found = check(source, measuring.settings())
            assert not any(diagnostic.code == CRASH for diagnostic in found)
            assert effort.spent < most, (start, end)


CIRCLES = {
    "a list that is put into itself": """
        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                layers = [nn.Linear(3, 3)]
                layers.extend(layers)
                self.layers = layers

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
    """,
    "dictionaries that are put into one another": """
        def load(dataset):
            first = {"pin_memory": True}
            second = {"num_workers": 2}
            first.update(second)
            second.update(first)
            return DataLoader(dataset, **first)
    """,
    "attributes that are one another": """
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = self.factor
                self.factor = self.scale

            def forward(self, q, k, v):
                return F.softmax(q @ k.transpose(-2, -1) / self.scale, dim=-1) @ v
    """,
    "a result that is unpacked again": """
        def attend(loader):
            attention = nn.MultiheadAttention(3, 3)
            both = attention(loader, loader, loader)
            for _ in loader:
                both = both
            return both[0]
    """,
    "loaders that wrap one another": """
        from tqdm import tqdm

        def train(loader):
            while loader:
                first = tqdm(second)
                second = tqdm(first)
                for x in first:
                    print(model(x.to(device)).sum().item())
    """,
}


@pytest.mark.parametrize("program", CIRCLES.values(), ids=CIRCLES)
def test_circles_come_to_an_end(program: str) -> None:
    source = Source(Path("circle.py"), HEAD + MODEL + textwrap.dedent(program))
    assert not any(diagnostic.code in (CRASH, GIVEN_UP) for diagnostic in check(source, measuring.settings()))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_grow(name: str) -> None:
    shape = SHAPES[name]
    small, large = shape.make(1), shape.make(2)
    assert len(small) < len(large)
    for text in (small, large):
        assert not parsing.breaks(text)


def test_a_sample_tells_where_the_time_goes() -> None:
    taken = measuring.samples(Shape("calls", 4, SHAPES["calls_in_loop"].make), scale=0.5, limit=60)
    assert [sample.n for sample in taken] == [2, 4, 8]
    assert taken[-1].findings > taken[0].findings > 0
    assert set(taken[0].parts) >= {"TL202", "outline"}


def test_a_shape_that_takes_too_long_is_given_up() -> None:
    assert len(measuring.samples(SHAPES["elif_chain"], scale=0.1, limit=0)) == 1


def test_the_exponent_is_that_of_the_characters() -> None:
    taken = [
        Sample(1, 1000, 1.0, {"TL101": 0.5, "TL102": 0.01}, 0),
        Sample(4, 4000, 16.0, {"TL101": 2.0, "TL102": 0.015}, 0),
    ]
    assert measuring.exponent(taken) == pytest.approx(2)
    assert measuring.exponent(taken, "TL101") == pytest.approx(1)
    assert measuring.exponent(taken, "TL102") is None, "too short to tell"
    ((part, seconds, growth),) = measuring.dominating(taken)
    assert (part, seconds, growth) == ("TL101", 2.0, measuring.exponent(taken, "TL101"))
