"""Whether a text is Python, where it stops being so, and a parse that survives what is deeply nested.

LibCST reads the programs; the interpreter's own parser, which is ten times quicker, judges those that no
rule needs to see, and says where an error stands, since LibCST's line is not reliable.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from torchlint.diagnostics import Position, Span
from torchlint.source import NEWLINE, with_line_feeds

if TYPE_CHECKING:
    from torchlint.syntax import SyntaxTree

Result = TypeVar("Result")

# LibCST's parser and code generator recurse with the nesting of the program; 3000 levels take more than
# the 8 MiB that a main thread has. The memory is reserved only, and used as far as the recursion goes.
# Less is taken where so much may not be reserved.
_STACK_SIZES = (512 << 20, 64 << 20, 0)
_RECURSION_LIMIT = 100_000
DEEPEST_QUESTIONS = 500 if sys.version_info[:2] == (3, 12) else 3000
"""How many questions to the model may wait for one another, which takes some thirty calls for each.

No program that people write comes near this depth; a lower limit that some do reach makes the answers depend
on which question was asked first, and deeper chains are solved in steps of this length. The first releases of
Python 3.12 allow 1,500 calls within one another that go through C, such as ``any()`` of a generator, whatever
the recursion limit is.
"""
# Where no human being has written: LibCST takes time in the square of the nesting, ten seconds and more
# beyond this sum of squares, and memory in the square of that of brackets. The interpreter takes 200.
_MOST_WORK = 10_000_000
_DEEPEST_BRACKETS = 500
_LARGE_FILE, _LONG_STATEMENT, _SHALLOW, _MANY_LINES = 400_000, 600, 50, 200
# As many lines in a row begin, or end, within an expression.
_BEGUN_LINES = re.compile(
    rf"^(?:[ \t]*(?:[-+*/.(\[{{~%&|^]|(?:not|lambda|and|or)\b)[^\n]*\n){{{_MANY_LINES}}}", re.MULTILINE
)
_ENDED_LINES = re.compile(
    rf"^(?:[^\n]*(?:[-+*/.(\[{{~%&|^\\]|\b(?:not|and|or|else|if|in))[ \t]*\n){{{_MANY_LINES}}}", re.MULTILINE
)
_COSTLY = frozenset({"lambda", "if"})
_BRACKET = re.compile(r"[()\[\]{}]")
_STATEMENT = re.compile(r"[\r\n]+(?=(?!el(?:se|if)\b)[A-Za-z_@])")
_NESTING = re.compile(r"[-+*/.(\[{~@%&|^,]|\b(?:not|lambda|if|elif|and|or|await|for)\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text cannot be read: one sentence without a full stop, and the place."""

    message: str
    start: Position
    end: Position


TOO_DEEP = Problem("the program is nested too deeply", Position(1, 1), Position(1, 2))


class UnreadableError(Exception):
    """A text that LibCST cannot read; ``problem`` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def problem(text: str) -> Problem | None:
    """Return why neither this interpreter nor LibCST can read ``text``; None if one of them can.

    A program that is too new for the interpreter is no error, as long as LibCST knows its syntax.
    """
    found, sure = _judge(text)
    if found is None and sure:
        return None
    try:
        on_deep_stack(parse, text)
    except UnreadableError as error:
        return error.problem
    return None


def parse(text: str) -> SyntaxTree:
    """Return the syntax tree of ``text``; to be called on a deep stack.

    Raises:
        UnreadableError: ``text`` is no Python, or LibCST cannot read it.
    """
    import libcst as cst

    from torchlint.syntax import SyntaxTree

    if _is_too_deep(text):
        raise UnreadableError(TOO_DEEP)
    try:
        return SyntaxTree(text)
    except cst.ParserSyntaxError as error:
        found, sure = _judge(text)
        place = Position(max(error.raw_line, 1), max(error.raw_column + 1, 1))
        if found is None and sure:
            found = _problem_at("torchlint's parser does not know this syntax", place)
        raise UnreadableError(found or _problem_at("invalid syntax", place)) from error
    except RecursionError as error:
        raise UnreadableError(TOO_DEEP) from error
    except UnicodeEncodeError as error:
        # An editor, or a cookie such as `unicode_escape`, may give what no file in UTF-8 can hold.
        before = NEWLINE.split(text[: error.start])
        place = Position(len(before), len(before[-1]) + 1)
        raise UnreadableError(_problem_at("an unpaired surrogate is not a character", place)) from error
    except BaseException as error:
        # A panic of the native parser is raised as a class that no `except Exception` catches.
        if type(error).__name__ != "PanicException":
            raise
        reason = f"torchlint's parser failed: {' '.join(str(error).split())}"
        raise UnreadableError(_problem_at(reason, Position(1, 1))) from error


def comments(text: str) -> list[Span] | None:
    """Return where the comments of ``text`` are, if only LibCST can tell.

    None if the standard library's tokenizer can be trusted, which is quicker. It cannot where the syntax is
    newer than the interpreter: there, a quote within an f-string may look like its end.
    """
    if not breaks(text):
        return None
    try:
        return on_deep_stack(lambda: parse(text).comments)
    except (UnreadableError, RecursionError):
        return None


def refusal(text: str) -> Problem | None:
    """Return why the interpreter refuses ``text``; None if it does not, or cannot tell."""
    return _judge(text)[0]


def breaks(text: str) -> bool:
    """Return whether the interpreter refuses ``text``; False where it cannot tell."""
    return refusal(text) is not None


def on_deep_stack(function: Callable[..., Result], *args: object) -> Result:
    """Return what ``function(*args)`` returns or raises, run on a thread whose stack holds deep recursion.

    Meanwhile the recursion limit is up and no garbage is collected.
    """
    if threading.current_thread().name == _DEEP_NAME:
        return function(*args)
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(function(*args))
        except BaseException as error:
            failure.append(error)

    with _surroundings:
        _deep_thread().do(body)
    if failure:
        raise failure.pop()
    return outcome.pop()


class _DeepThread:
    """A thread with a deep stack that does one thing after another for the thread that made it.

    A new one for each file would touch fresh memory each time, at an eighth of the time of a parse and more.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        _start(partial(_serve, self._work))

    def do(self, body: Callable[[], None]) -> None:
        """Run ``body``, which raises nothing, and wait for its end."""
        done = threading.Event()

        def work() -> None:
            body()
            done.set()

        self._work.put(work)
        done.wait()

    def __del__(self) -> None:
        self._work.put(None)


def _serve(work: SimpleQueue[Callable[[], None] | None]) -> None:
    while (item := work.get()) is not None:
        item()
        # What it has closed over need not live until the next.
        del item


def _deep_thread() -> _DeepThread:
    """Return the deep thread of this thread; a process that was forked has none of its parent's."""
    thread: _DeepThread | None = getattr(_own, "thread", None)
    if thread is None or thread.process != os.getpid():
        thread = _own.thread = _DeepThread()
    return thread


_own = threading.local()


def _start(body: Callable[[], None]) -> threading.Thread:
    """Return a running thread with the largest stack that can be had.

    Raises:
        RuntimeError: no thread can be started at all.
    """
    with _stack_size_lock:
        before = threading.stack_size()
        try:
            for size in _STACK_SIZES:
                thread = threading.Thread(target=body, name=_DEEP_NAME, daemon=True)
                try:
                    threading.stack_size(size)
                    thread.start()
                except (RuntimeError, ValueError):
                    if size == _STACK_SIZES[-1]:
                        raise
                else:
                    break
        finally:
            threading.stack_size(before)
    return thread


_DEEP_NAME = "torchlint-deep-stack"
_stack_size_lock = threading.Lock()


class _Surroundings:
    """What the interpreter is told while any deep stack is in use, and is told back afterwards.

    The recursion limit is up. Garbage is not collected: syntax trees are large, hold no garbage, and would
    be searched for it again and again, at a third of the time for a usual file.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit = 0
        self._collecting = False

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit, self._collecting = sys.getrecursionlimit(), gc.isenabled()
                sys.setrecursionlimit(max(self._limit, _RECURSION_LIMIT))
                gc.disable()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setrecursionlimit(self._limit)
                if self._collecting:
                    gc.enable()


_surroundings = _Surroundings()


def _judge(text: str) -> tuple[Problem | None, bool]:
    """Return what the interpreter says against ``text``, and whether it could tell."""
    # A text with CR LF may end in a backslash and be told another place of its end; no such file may be run.
    code = with_line_feeds(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Three times as quick as ``ast.parse``, which makes Python objects of the tree.
            compile(code, "<text>", "exec", dont_inherit=True)
            return None, True
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        # ``compile`` also refuses what is grammatical, such as a return outside a function.
        try:
            ast.parse(code)
            return None, True
        except SyntaxError as error:
            return _from_syntax_error(error), True
        except (ValueError, RecursionError, MemoryError):
            return None, False


def _from_syntax_error(error: SyntaxError) -> Problem:
    message = " ".join(error.msg.split()).rstrip(".")
    start = Position(max(error.lineno or 1, 1), max(error.offset or 1, 1))
    end = Position(max(error.end_lineno or 0, 0), max(error.end_offset or 0, 0))
    return Problem(message, start, max(end, Position(start.row, start.column + 1)))


def _problem_at(message: str, place: Position) -> Problem:
    return Problem(message, place, Position(place.row, place.column + 1))


def _is_too_deep(text: str) -> bool:
    """Return whether LibCST would take minutes, or gigabytes,
    for expressions that no human being has nested so.
    """
    if not _may_be_deep(text):
        return False
    if _bracketed(text) > _DEEPEST_BRACKETS and not isinstance(_syntax(text), ast.Module):
        return True
    if sum(count**2 for count in map(_nesting, _STATEMENT.split(text)) if count > 0) <= _MOST_WORK:
        return False
    # A long table looks alike; the interpreter can tell.
    tree = _syntax(text)
    return not isinstance(tree, ast.Module) or _work(tree) > _MOST_WORK


def _may_be_deep(text: str) -> bool:
    """Return whether a look at the lines leaves open how deeply ``text`` is nested: long ones,
    or many in a row.
    """
    return (
        len(text) > _LARGE_FILE
        or text.count("elif") > _MANY_LINES
        or max(map(len, text.split("\n"))) > _LONG_STATEMENT
        or _BEGUN_LINES.search(text) is not None
        or _ENDED_LINES.search(text) is not None
    )


def _nesting(statement: str) -> int:
    """Return how deeply a statement may be nested at most, lambdas and conditions counted twice."""
    if len(statement) < _LONG_STATEMENT:
        return 0
    return sum(2 if match[0] in _COSTLY else 1 for match in _NESTING.finditer(statement))


def _bracketed(text: str) -> int:
    """Return how deeply brackets are nested in ``text``, or look so:
    those in strings and comments count too.
    """
    depth = deepest = 0
    if text.count("(") + text.count("[") + text.count("{") > _DEEPEST_BRACKETS:
        for match in _BRACKET.finditer(text):
            depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
            deepest = max(deepest, depth)
    return deepest


def _syntax(text: str) -> ast.Module | None:
    """Return the interpreter's tree of ``text``, if it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(with_line_feeds(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _work(tree: ast.Module) -> int:
    """Return the squares of how deeply expressions are nested, added up over the statements."""
    deepest: dict[ast.AST, int] = {}
    stack: list[tuple[ast.AST, ast.AST, int]] = [(tree, tree, 0)]
    while stack:
        node, statement, depth = stack.pop()
        if isinstance(node, ast.stmt):
            statement, depth = node, 0
        depth += 2 if isinstance(node, (ast.Lambda, ast.IfExp)) else 1
        deepest[statement] = max(deepest.get(statement, 0), depth)
        stack += [(child, statement, depth) for child in ast.iter_child_nodes(node)]
    return sum(depth**2 for depth in deepest.values() if depth > _SHALLOW)
