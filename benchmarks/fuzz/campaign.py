"""The long run: one program after another in a process of its own, which is ended if it hangs or dies.

Number ``n`` of a seed is always the same program, so that a finding can be made again.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from benchmarks.fuzz import grammar, layout, mutations, properties, syntax
from benchmarks.fuzz.properties import Property
from benchmarks.fuzz.reduction import reduced
from torchlint.checker import check
from torchlint.source import Source

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0
"""Seconds without a word after which a process is taken to hang, however busy the machine is."""
SYNTAX_BATCH = 20

KINDS: tuple[tuple[str, tuple[Property, ...]], ...] = (
    ("programs run", properties.RUN),
    ("mutants", properties.ANY),
    ("programs checked", properties.ANY),
    ("mutants", properties.TODAY),
    ("programs run", properties.RUN),
    ("mutants", properties.ANY),
    ("programs run", properties.RUN),
    ("syntax", properties.ANY),
    ("programs run", properties.RUN),
    ("programs checked", properties.TODAY),
    ("fixtures laid out", properties.LAID_OUT),
    ("fixtures laid out", properties.LAID_OUT),
)
"""What is made in turn, and what must hold of it."""


@dataclass(frozen=True)
class Problem:
    """A property that does not hold; ``text`` is the program, made small where that was possible."""

    kind: str
    number: int
    property: str
    message: str
    text: str


@dataclass(frozen=True)
class Tried:
    """What became of one program: how long it took, the rules that found something, and the problems."""

    kind: str
    number: int
    size: int
    seconds: float
    codes: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


@dataclass
class Tally:
    """What a run has tried so far."""

    programs: Counter[str] = field(default_factory=Counter)
    size: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    slowest: list[tuple[float, str, int, int]] = field(default_factory=list)

    def add(self, tried: Tried) -> None:
        """Count one more."""
        self.programs[tried.kind] += 1
        self.size[tried.kind] += tried.size
        self.seconds[tried.kind] += tried.seconds  # type: ignore[assignment]
        self.codes.update(tried.codes)
        self.problems += tried.problems
        self.slowest.append((round(tried.seconds, 2), tried.kind, tried.number, tried.size))
        self.slowest = sorted(self.slowest, reverse=True)[:10]


def kind(number: int) -> tuple[str, tuple[Property, ...]]:
    """Return what the program of a number is, and what must hold of it."""
    return KINDS[number % len(KINDS)]


def text(seed: int, number: int) -> str:
    """Return the program of a number, always the same one of a seed."""
    random = Random(f"{seed}/{number}")
    name, _ = kind(number)
    if name == "mutants":
        files = seeds()
        return mutations.mutated(random.choice(files), random, files)
    if name == "fixtures laid out":
        return layout.within_lines(random.choice(bad_fixtures()), random)
    if name == "syntax":
        batch, place = divmod(number // len(KINDS), SYNTAX_BATCH)
        sources = _syntax(seed * 10_000 + batch)
        return sources[place % len(sources)]
    made = grammar.program(random)
    # Half of those that are run are laid out oddly, too.
    return layout.dressed(made, random) if name == "programs checked" or random.random() < 0.5 else made


@cache
def seeds() -> tuple[str, ...]:
    """Return the files that are mutated: the fixtures of all rules, and the training programs,
    which weigh more.
    """
    folder = ROOT / "fixtures"
    programs = set((folder / "programs").rglob("*.py"))
    files = sorted(folder.rglob("*.py"))
    return tuple(
        path.read_bytes().decode("utf-8") for path in files for _ in range(5 if path in programs else 1)
    )


@cache
def bad_fixtures() -> tuple[str, ...]:
    """Return the files in which a rule finds something, as it promises to."""
    files = sorted((ROOT / "fixtures").glob("TL*/bad*.py"))
    return tuple(path.read_bytes().decode() for path in files if "." not in path.stem)


@cache
def _syntax(number: int) -> list[str]:
    return syntax.sources(number, SYNTAX_BATCH)


def examined(seed: int, number: int) -> Tried:
    """Return what becomes of the program of a number."""
    name, wanted = kind(number)
    made = text(seed, number)
    start = time.monotonic()
    problems = [
        Problem(name, number, prop.__name__, message, made)
        for prop in wanted
        for message in _broken(prop, made)
    ]
    seconds = time.monotonic() - start
    codes = frozenset(
        item.code
        for target in ("", properties.RELEASE)
        for item in check(Source(properties.PATH, made), properties.settings(target=target))
    )
    return Tried(name, number, len(made), seconds, codes, tuple(_small(problems, wanted)))


def _broken(prop: Property, made: str) -> list[str]:
    try:
        return list(prop(made))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return [f"it raises {type(error).__name__} in {place.name}: {error}"]


def _small(problems: list[Problem], wanted: tuple[Property, ...]) -> Iterator[Problem]:
    """Yield the first problem of each property, with a small program."""
    for prop in wanted:
        first = next((item for item in problems if item.property == prop.__name__), None)
        if first is not None:
            small = reduced(first.text, lambda made, prop=prop: bool(_broken(prop, made)))  # type: ignore[misc]
            # What shows once only is kept as it was.
            message, *_ = [*_broken(prop, small), f"once only: {first.message}"]
            yield Problem(first.kind, first.number, first.property, message, small)


# --- two processes ---------------------------------------------------------------------------------------


def run(seed: int, seconds: float, first: int = 0) -> Iterator[Tried]:
    """Try programs for some time, from number ``first`` on; gives each one when it is done."""
    end = time.monotonic() + seconds
    context = multiprocessing.get_context("spawn")
    number = first
    while time.monotonic() < end:
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(theirs, seed, number), daemon=True)
        process.start()
        theirs.close()
        try:
            for tried in _heard(mine, end):
                number = tried.number + 1
                yield tried
        except (EOFError, TimeoutError) as error:
            what = "it hangs" if isinstance(error, TimeoutError) else "the process dies"
            made = text(seed, number)
            problem = Problem(kind(number)[0], number, "quick", what, made)
            yield Tried(kind(number)[0], number, len(made), PATIENCE, problems=(problem,))
            number += 1
        finally:
            process.kill()
            process.join()
            mine.close()


def _heard(connection: Connection, end: float) -> Iterator[Tried]:
    while time.monotonic() < end:
        if not connection.poll(PATIENCE):
            raise TimeoutError
        yield connection.recv()


def _work(connection: Connection, seed: int, first: int) -> None:
    for number in count(first):
        connection.send(examined(seed, number))
