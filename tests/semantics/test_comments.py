"""Which comments belong to a statement, and what they speak of, in the full tree and in the outline."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.outline import Outline
from torchlint.semantics import comments
from torchlint.semantics.comments import Topic, speaks_of
from torchlint.semantics.model import build
from torchlint.semantics.module import Module
from torchlint.syntax import SyntaxTree

PROGRAM = dedent(
    """
    # far above

    # above
    first()  # behind first
    second(
        1,  # within second
    )  # behind second

    third()
    # over the pair
    fourth()
    fifth("# no comment")
    if sixth():  # behind the test
        # first in the block
        seventh()
        with eighth():
            pass  # in the block
    ninth()
    while tenth(): eleventh()  # behind the suite


    def function():
        # about all of it
        thirteenth()

        # of the next
        fourteenth()  # at the very end"""
)


@pytest.fixture(scope="module", params=[SyntaxTree, Outline])
def module(request: pytest.FixtureRequest) -> Module:
    return build(request.param(PROGRAM), LintSettings())


def _call(module: Module, name: str) -> cst.Call:
    return module.tree.calls_by_name[name][0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first", ["behind first", "above", "far above"]),
        ("second", ["within second", "behind second", "above", "far above"]),
        ("third", []),
        ("fourth", ["over the pair"]),
        ("fifth", ["over the pair"]),
        ("sixth", ["behind the test", "first in the block"]),
        ("seventh", ["first in the block"]),
        ("eighth", []),
        ("ninth", []),
        ("tenth", []),
        ("eleventh", ["behind the suite"]),
        ("thirteenth", ["about all of it"]),
        ("fourteenth", ["at the very end", "of the next"]),
    ],
)
def test_comments_at_a_statement(module: Module, name: str, expected: list[str]) -> None:
    assert comments.at(module, _call(module, name)) == [f"# {text}" for text in expected]


def test_comments_at_a_match() -> None:
    program = "match first():  # behind\n    case 1:\n        # in the case\n        pass\n        # later\n"
    module = build(SyntaxTree(program), LintSettings())
    assert comments.at(module, _call(module, "first")) == ["# behind", "# in the case"]


def test_only_what_stands_directly_above_is_above(module: Module) -> None:
    assert comments.above(module, _call(module, "first")) == ["# above"]
    assert comments.above(module, _call(module, "third")) == []


def test_comments_inside_a_node(module: Module) -> None:
    (function,) = module.tree.nodes(cst.FunctionDef)
    assert comments.inside(module, function) == ["# about all of it", "# of the next", "# at the very end"]


@pytest.mark.parametrize(
    ("topic", "spoken", "silent"),
    [
        (
            Topic.MEMORY,
            "# saves memory; # OOM otherwise; # CPU-offload; # off-load; # against fragmentation",
            "# memorize; # random; # broom",
        ),
        (
            Topic.WAITING,
            "# sync; # syncs here; # unsynced; # synchronises; # Synchronization point; # unsynchronized",
            "# async; # syncope",
        ),
        (Topic.CHANGE, "# todo: faster; # fixme(me); # slow", "# slowly; # todos"),
        (Topic.BYPASS, "# on purpose; # skips hooks; # no __call__ here", "# fmt: skip; # redirect"),
        (Topic.REASON, "# needed by the loss; # because of it; # requires a graph", "# see above"),
        (Topic.REPEATING, "# reproducible; # for determinism; # seeded above", "# receding; # product"),
        (Topic.SYSTEM, "# Windows has no other; # no NCCL there", "# a window"),
        (
            Topic.SPARING,
            "# saves memory; # offloaded; # to avoid OOM; # spare the memory; # GPU memory is short",
            "# the memory bank; # memory",
        ),
        (
            Topic.PRETRAINED,
            "# a pretrained model; # of pre-trained BERT; # GloVe",
            "# trained; # pretraining",
        ),
        (Topic.UNUSED, "# some parameters; # not all heads; # dynamic depth", "# all of them"),
    ],
)
def test_what_a_comment_speaks_of(topic: Topic, spoken: str, silent: str) -> None:
    assert [text for text in spoken.split("; ") if not speaks_of(text, topic)] == []
    assert [text for text in silent.split("; ") if text != "" and speaks_of(text, topic)] == []


@pytest.mark.parametrize("tree", [SyntaxTree, Outline])
def test_docstrings_are_read_and_other_texts_are_not(tree: type[SyntaxTree]) -> None:
    program = 'def f():\n    """Spares GPU memory."""\n    print("pretrained")\n'
    module = build(tree(program), LintSettings())
    assert comments.documents(module, Topic.SPARING)
    assert not comments.documents(module, Topic.PRETRAINED)
