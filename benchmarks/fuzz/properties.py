"""What must hold of torchlint on any text, and of a program of the grammar before and after its fixes.

A property is a function that gives what is wrong, one sentence each. The invariants of a file are those that
the fixtures of rules are held to as well (`torchlint.testing.invariants`); those of time and of running
programs are here.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import torch

from benchmarks.fuzz import execution
from torchlint import reading, registry
from torchlint.checker import CRASH, SYNTAX_ERROR, check
from torchlint.fixer import Fixed, fix
from torchlint.options import LintSettings
from torchlint.source import Source, SourceError
from torchlint.suppressions import read_lines
from torchlint.target import LIBRARIES as KNOWN
from torchlint.target import TORCH, Target
from torchlint.testing import invariants

PATH = Path("fuzzed.py")
SECONDS, SECONDS_A_BYTE = 0.5, 0.25e-3
"""The time of the processor that a check may take: the programs of the fixtures take a tenth of it."""
FIX_FACTOR = 10
"""How many times as long fixing may take: it checks once a round."""

ROUNDING = frozenset({"TL202", "TL401", "TL403", "TL404", "TL406"})
"""Rules whose safe fixes keep the arithmetic but for the order of rounding, as their pages say."""
MENDING = frozenset({"TL308", "TL409", "TL705"})
"""Rules whose safe fixes make a program do what it says and did not do: it is meant to compute otherwise."""
CRASHING = frozenset({"TL105", "TL901"})
"""Rules whose safe fixes let a program run that ended with an error."""
_TARGET = re.compile(rf"target-({'|'.join((TORCH, *KNOWN))})=(\S+)")
_COMMENTS = frozenset({"TL002", "TL003"})
_GRAPH = re.compile(r",\s+(grad_fn=<\w+>|requires_grad=True)")
"""What a printed tensor says of its graph, which is what fixes take away that let go of graphs."""
TOLERANCE = 1e-7
"""How far results in double precision may be off where fixes round in another way, relative."""

RELEASE = ".".join(torch.__version__.split(".")[:2])
"""The release of torch that programs are run with."""
LIBRARIES = {"accelerate": "1.0", "torchaudio": "2.5", "torchvision": "0.20", "transformers": "5.0"}
"""The releases of libraries around torch for which programs are fixed; stand-ins take their place."""

Property = Callable[[str], Iterator[str]]


@cache
def settings(unsafe: bool = True, without: frozenset[str] = frozenset(), target: str = "") -> LintSettings:
    """Return all rules there are, with all of their fixes, or the safe ones only,
    but for those of some rules.
    """
    rules = registry.rules()
    return LintSettings(
        rules=tuple(sorted(rules)),
        fixable=frozenset(rules) - without,
        unsafe_fixes=unsafe,
        target=Target.parse(target, "fuzz") if target else Target.unknown(),
        libraries={
            name: Target.parse(release, "fuzz", name)
            for name, release in (LIBRARIES if target else {}).items()
        },
    )


def said(text: str) -> LintSettings:
    """Return all rules and fixes, for the releases that the first line names, as it does in fixtures."""
    given = dict(_TARGET.findall(text.partition("\n")[0]))
    targets = {name: Target.parse(it, "fuzz", name) for name, it in given.items()}
    torch_given = targets.pop(TORCH, Target.unknown())
    return dataclasses.replace(settings(), target=torch_given, libraries=targets)


def held(text: str) -> Iterator[str]:
    """Yield the invariants of every file: with safe fixes only, and with all."""
    try:
        source = reading.from_bytes(text.encode("utf-8"), PATH)
    except (SourceError, UnicodeEncodeError):
        return
    try:
        wanted = said(text)
    except ValueError:
        wanted = settings()
    yield from invariants(source, wanted)
    yield from (
        item.message
        for item in fix(source, dataclasses.replace(wanted, unsafe_fixes=False)).diagnostics
        if item.code == CRASH
    )


def held_today(text: str) -> Iterator[str]:
    """Yield the invariants of every file of a project that names the newest releases."""
    try:
        source = reading.from_bytes(text.encode("utf-8"), PATH)
    except (SourceError, UnicodeEncodeError):
        return
    yield from invariants(source, settings(target=RELEASE))


def without_layout(text: str) -> Iterator[str]:
    """Yield a program has the same findings however it is laid out, but for what its comments say."""
    silent = _silent(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plain = ast.unparse(ast.parse(silent))
        except (SyntaxError, ValueError, RecursionError):
            return
    own, other = _codes(silent), _codes(plain)
    if own is not None and other is not None and own != other:
        yield f"laid out otherwise, it has {dict(other - own)} more and {dict(own - other)} less"


def _silent(text: str) -> str:
    """Return ``text`` with comments that say nothing."""
    for comment in reversed(read_lines(Source(PATH, text)).comments):
        text = f"{text[: comment.span.start]}#{text[comment.span.end :]}"
    return text


def _codes(text: str) -> Counter[str] | None:
    """Return the rules that find something, and how often; None if the text cannot be read."""
    wanted = dataclasses.replace(settings(), ignore_noqa=True)
    found = Counter(item.code for item in check(Source(PATH, text), wanted))
    # Suppressions are comments; what LibCST does not read is no matter of layout.
    return None if SYNTAX_ERROR in found else Counter({c: n for c, n in found.items() if c not in _COMMENTS})


def quick(text: str) -> Iterator[str]:
    """Check that checking and fixing take time in proportion to the text."""
    source = Source(PATH, text)
    limit = SECONDS + SECONDS_A_BYTE * len(text.encode("utf-8", "surrogatepass"))
    for name, work, factor in (("check", check, 1), ("fix", fix, FIX_FACTOR)):
        start = time.process_time()
        work(source, settings())
        taken = time.process_time() - start
        if taken > limit * factor:
            yield f"{name}: {taken:.1f} s for {len(text)} characters, more than {limit * factor:.1f} s"


def same_results(text: str) -> Iterator[str]:
    """Check that safe fixes keep what a program of the grammar computes and prints.

    Those that round as before keep it to the bit. With the others, the program is run in double precision,
    where the order of rounding does not matter.
    """
    original = _original(text)
    if original is None:
        return
    exact = _fixed(text, unsafe=False, without=ROUNDING | MENDING)
    if exact.text != text:
        yield from _told(exact, _differences(original, execution.run(exact.text)))
    rounded = _fixed(text, unsafe=False, without=MENDING)
    if rounded.text == exact.text:
        return
    before = execution.run(text, double=True)
    if not before.error:
        after = execution.run(rounded.text, double=True)
        found = list(_differences(before, after, TOLERANCE))
        # Adam makes much of a gradient that is zero but for rounding: such a program tells nothing.
        if found and not list(_differences(before, execution.run(text, double=True, nudged=True), TOLERANCE)):
            yield from _told(rounded, found)


def still_runs(text: str) -> Iterator[str]:
    """Check that with all fixes, unsafe ones too, a program that ran still runs."""
    if _original(text) is None:
        return
    fixed = _fixed(text, unsafe=True, without=frozenset())
    if fixed.text != text and (error := execution.run(fixed.text).error):
        yield from _told(fixed, [f"the program ends with {error}"])


def mended(text: str) -> Iterator[str]:
    """Yield a program that ends with an error that a safe fix is about ends with it no more."""
    error = execution.run(text).error
    if error is None:
        return
    others = frozenset(registry.rules()) - CRASHING
    fixed = _fixed(text, unsafe=False, without=others)
    if fixed.text != text and execution.run(fixed.text).error == error:
        yield from _told(fixed, [f"the program still ends with {error}"])


def _original(text: str) -> execution.Outcome | None:
    """Return what a program does; None if it raises or does not end."""
    try:
        outcome = execution.run(text)
    except execution.TooLongError:
        return None
    return None if outcome.error else outcome


def _fixed(text: str, unsafe: bool, without: frozenset[str]) -> Fixed:
    """Return what the fixes make of it for the release of torch that it is run with."""
    return fix(Source(PATH, text), settings(unsafe, without, RELEASE))


def _told(fixed: Fixed, found: Iterator[str] | list[str]) -> Iterator[str]:
    for item in found:
        yield f"after the fixes of {', '.join(sorted(fixed.applied))}: {item}"


def _differences(
    before: execution.Outcome, after: execution.Outcome, tolerance: float = 0.0
) -> Iterator[str]:
    if after.error:
        yield f"the program ends with {after.error}"
        return
    yield from execution.differences(before.results, after.results, tolerance)
    for name, state in before.states.items():
        other = after.states.get(name, {})
        # A bias that a norm takes off again may go (TL401).
        gone = {key for key in state.keys() - other.keys() if tolerance and key.endswith("bias")}
        kept = {key: value for key, value in state.items() if key not in gone}
        yield from execution.differences(kept, other, tolerance, f"the state of {name}")
    if not tolerance and _GRAPH.sub("", before.printed) != _GRAPH.sub("", after.printed):
        yield f"it prints {after.printed[:200]!r} instead of {before.printed[:200]!r}"


ANY: tuple[Property, ...] = (held, quick, without_layout)
LAID_OUT: tuple[Property, ...] = (held, quick)
TODAY: tuple[Property, ...] = (held_today, quick)
RUN: tuple[Property, ...] = (same_results, still_runs, mended)
PROGRAM: tuple[Property, ...] = (*ANY, *RUN)
