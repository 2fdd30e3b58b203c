"""What is Python, where it stops being so, and programs that nest deeper than a stack."""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import libcst as cst
import pytest

from torchlint import parsing
from torchlint.diagnostics import Position
from torchlint.parsing import Problem, UnreadableError, on_deep_stack, parse, problem

DEEP = {
    "sum": "x = " + " + ".join(["a"] * 3000),
    "minus": "x = " + "-" * 1000 + "a",
    "not": "x = " + "not " * 1000 + "a",
    "attributes": "x = a" + ".b" * 1000,
    "parentheses": "x = " + "(" * 300 + "a" + ")" * 300,
    "elif": "if a: pass\n" + "elif a: pass\n" * 1500,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_programs_are_read(name: str) -> None:
    text = DEEP[name] + "\n"
    limit = sys.getrecursionlimit()
    tree = on_deep_stack(parse, text)
    names = tree.nodes(cst.Name)
    assert names
    assert sys.getrecursionlimit() == limit


def test_what_is_too_deep_for_the_interpreter_is_no_error() -> None:
    assert problem("x = " + "(" * 300 + "a" + ")" * 300 + "\n") is None
    assert problem("x = " + "not " * 1_500 + "a\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 40_000 + ")" * 40_000,
        "x = " + "-" * 60_000 + "a",
        "x = (\n" + "-\n" * 300_000 + "a)",
        "if a: pass\n" + "elif a: pass\n" * 20_000,
    ],
)
def test_what_no_human_wrote_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError, match="nested too deeply"):
        on_deep_stack(parse, text)
    assert problem(text) is not None


def test_a_large_table_is_not_deep() -> None:
    text = "x = [\n" + "    (1.5, -2.5, 'name'),\n" * 2_500 + "]\n"
    assert len(on_deep_stack(parse, text).nodes(cst.Tuple)) == 2_500


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("x = 1\ny = = 2\nz = 3\nw = 4\n", Position(2, 5)),
        ("x = 1\r\ny = = 2\r\nz = 3\r\n", Position(2, 5)),
        ("with x():\n\n", Position(2, 1)),
        ("with x():\r\n\r\n", Position(2, 1)),
        ("x = 1\ry = = 2\r", Position(2, 5)),
        ("a = 1\nb = foo(1,\nc = 2\nd = 3\n", Position(2, 8)),
        ("\x0cdef f(:\n    pass\n", Position(1, 8)),
        ("s = 'ü'; y = = 2\n", Position(1, 14)),
        ("def f():\nreturn 1\n", Position(2, 1)),
        ('x = """never closed\n\n', Position(1, 5)),
    ],
)
def test_errors_are_where_the_interpreter_says(text: str, start: Position) -> None:
    found = problem(text)
    assert found is not None
    assert found.start == start
    assert found.end > found.start or found.end.row > found.start.row
    assert not found.message.endswith(".") and "\n" not in found.message
    with pytest.raises(UnreadableError) as caught:
        on_deep_stack(parse, text)
    assert caught.value.problem == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "x = 1",
        "# only a comment",
        "\x0c\n",
        "return 1\n",
        "def f(a, a): pass\n",
        "await x\n",
        "x = '\\d'\n",
        "1 is 1\n",
        "from __future__ import braces\n",
    ],
)
def test_what_is_grammatical_is_no_error(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem(text) is None


def test_syntax_newer_than_the_interpreter_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Problem("invalid syntax", Position(1, 1), Position(1, 2))
    monkeypatch.setattr(parsing, "_judge", lambda text: (refused, True))
    assert problem("type X = int\n") is None
    assert len(on_deep_stack(parse, "type X = int\n").nodes(cst.TypeAlias)) == 1


def test_syntax_newer_than_the_parser_is_reported_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_judge", lambda text: (None, True))
    with pytest.raises(UnreadableError) as caught:
        on_deep_stack(parse, "x = 1\nfuture syntax here\n")
    assert caught.value.problem.message == "torchlint's parser does not know this syntax"


def test_a_panic_of_the_parser_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(text: str) -> cst.Module:
        raise PanicException("index out of\nbounds")

    monkeypatch.setattr(cst, "parse_module", panic)
    with pytest.raises(UnreadableError, match="torchlint's parser failed: index out of bounds"):
        on_deep_stack(parse, "x = 1\n")


def test_breaks_is_about_grammar_only() -> None:
    assert parsing.breaks("x = (\n")
    assert not parsing.breaks("return\n")
    assert not parsing.breaks(DEEP["sum"])


# --- the deep stack ----------------------------------------------------------------------------------------


def test_the_deep_stack_returns_and_raises() -> None:
    assert on_deep_stack(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(KeyError):
        on_deep_stack({}.__getitem__, "a")
    with pytest.raises(KeyboardInterrupt):
        on_deep_stack(_raise, KeyboardInterrupt())


def _raise(error: BaseException) -> None:
    raise error


def test_a_deep_stack_within_one_is_the_same() -> None:
    inner, outer = on_deep_stack(lambda: (on_deep_stack(threading.get_ident), threading.get_ident()))
    assert inner == outer != threading.get_ident()


def test_the_surroundings_are_restored() -> None:
    before = (threading.stack_size(), sys.getrecursionlimit(), gc.isenabled(), threading.active_count())

    def recurse(depth: int) -> int:
        return recurse(depth - 1) + 1 if depth else 0

    assert on_deep_stack(recurse, 20_000) == 20_000
    assert before == (
        threading.stack_size(),
        sys.getrecursionlimit(),
        gc.isenabled(),
        threading.active_count(),
    )


def test_a_smaller_stack_is_taken_where_a_large_one_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    stack_size = threading.stack_size

    def refuse(size: int = 0) -> int:
        sizes.append(size)
        if size > 1 << 20:
            raise ValueError("size not valid")
        return stack_size(size)

    monkeypatch.setattr(threading, "stack_size", refuse)
    # A thread that has none yet makes a deep one.
    with ThreadPoolExecutor(1) as other:
        assert other.submit(on_deep_stack, lambda: "done").result() == "done"
    assert sorted(sizes) == sorted([0, 512 << 20, 64 << 20, 0, stack_size()])


def test_a_deep_thread_serves_one_thread_again_and_again() -> None:
    first, second = on_deep_stack(threading.get_ident), on_deep_stack(threading.get_ident)
    assert first == second != threading.get_ident()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(on_deep_stack, threading.get_ident).result() not in (first, threading.get_ident())


def test_a_forked_process_makes_a_deep_thread_of_its_own() -> None:
    on_deep_stack(lambda: None)
    child = os.fork()
    if child == 0:
        os._exit(on_deep_stack(lambda: 7))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_endless_recursion_is_an_error_and_no_crash() -> None:
    def recurse() -> int:
        return recurse() + 1

    with pytest.raises(RecursionError):
        on_deep_stack(recurse)


@pytest.mark.parametrize("start", ["", "import torch\n"])
def test_half_of_a_surrogate_pair_is_told_with_its_place(start: str) -> None:
    text = f"{start}x = '\ud800'\n"
    row = text.count("\n")
    assert problem(text) == Problem(
        "an unpaired surrogate is not a character", Position(row, 6), Position(row, 7)
    )
    with pytest.raises(UnreadableError, match="surrogate"):
        on_deep_stack(parse, text)
