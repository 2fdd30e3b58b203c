"""What the comments of a program speak of.

A comment shows what its author knows: that a copy spares memory, that the host waits on purpose. It says
nothing of what the program does, and so it can only keep a rule from telling somebody what they know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final

import libcst as cst

from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.source import NEWLINE


class Topic(Enum):
    """What a comment can be about, by the words and phrases that show it; ``*`` stands for any ending."""

    MEMORY = "memory, mem, vram, ram, oom, offload*, off load*, fragment*"
    """The memory of a device, and how to spare it."""

    SPARING = (
        "accelerator memory, device memory, gpu memory, cuda memory, save memory, saves memory, saving memory"
        ", spare memory, limit memory, reduce memory, avoid memory, free memory, save the memory"
        ", saves the memory, spare the memory, limit the memory, reduce the memory, free the memory"
        ", limit peak memory, reduce peak memory, gpu oom, cuda oom, avoid oom, offload*, off load*"
    )
    """Less memory of the device is used than might be."""

    HOST = "on cpu, on the cpu, on the host, in numpy, with numpy"
    """Something is computed on the host."""

    WAITING = "sync, syncs, synced, syncing, synchroni*, unsync, unsynced, unsynchroni*"
    """The host waits for a device."""

    CHANGE = "todo, fixme, xxx, hack, avoid, slow"
    """The author wants to change it."""

    BYPASS = (
        "hook, hooks, bypass*, __call__, skip*, direct, directly, recurs*"
        ", on purpose, intentional*, deliberate*"
    )
    """Something that usually happens is left out on purpose."""

    REASON = "need*, requir*, because, otherwise, without, error*"
    """Why something has to be as it is."""

    UNUSED = "unused, dynamic*, some param*, not all"
    """A part of a model takes no part in some passes."""

    REPEATING = "determin*, nondetermin*, reproduc*, repeatab*, seed*"
    """A program computes the same each time it runs."""

    SYSTEM = "windows, win32, macos, darwin, mac, nccl"
    """What some machines lack, and others have."""

    PRETRAINED = "pretrained, pre trained, glove, word2vec, fasttext"
    """Weights that somebody else has trained."""

    SPARSE = "sparse"
    """Most elements are zero, and are not stored."""

    LOGITS = "binary_cross_entropy_with_logits, bcewithlogits*, with logits, from logits"
    """The loss of logits, which somebody has thought of."""

    DEPRECATION = "deprecated"
    """Something is kept for its callers only."""


_WORD: Final = re.compile(r"\w+")
_FOR_TOOLS: Final = re.compile(r"\b(fmt|isort|yapf)\s*:\s*\w+")
"""What a comment says to formatters: ``# fmt: skip``."""


def says(module: Module, node: cst.CSTNode, *topics: Topic) -> bool:
    """Return whether a comment at the statement of a node speaks of one of these topics."""
    return any(speaks_of(comment, *topics) for comment in at(module, node))


def says_inside(module: Module, node: cst.CSTNode, *topics: Topic) -> bool:
    """Return whether a comment inside a node, such as a function, speaks of one of these topics."""
    return any(speaks_of(comment, *topics) for comment in inside(module, node))


@remembered
def documents(module: Module, *topics: Topic) -> bool:
    """Return whether a docstring of the file speaks of one of these topics."""
    return any(
        speaks_of(string.raw_value, *topics)
        for string in module.tree.nodes(cst.SimpleString)
        if isinstance(module.tree.parent(string), cst.Expr)
    )


def speaks_of(text: str, *topics: Topic) -> bool:
    """Return whether a text, such as a comment or a docstring, speaks of one of these topics."""
    spoken = _spoken(text)
    return any(phrase in spoken for phrase in _phrases(topics))


def begins_with(text: str, *topics: Topic) -> bool:
    """Return whether the first words of a text are about one of these topics: ``# Deprecated: use …``."""
    return _spoken(text).startswith(tuple(_phrases(topics)))


def _spoken(text: str) -> str:
    """Return the words of a text in lower case, with a space in front of and behind each."""
    return f" {' '.join(_WORD.findall(_FOR_TOOLS.sub('', text).lower()))} "


def _phrases(topics: tuple[Topic, ...]) -> Iterator[str]:
    """Yield what is looked for among the words of a text."""
    for topic in topics:
        for entry in topic.value.split(", "):
            yield f" {entry[:-1]}" if entry.endswith("*") else f" {entry} "


def at(module: Module, node: cst.CSTNode) -> list[str]:
    """Return the comments at the statement of a node, with their signs.

    They stand in it or behind it, in a compound statement before its block; above it; or above the simple
    statements that it directly follows, because such a comment is about all of these.
    """
    tree, statement = module.tree, module.tree.statement(node)
    block = tree.parent(statement)
    if isinstance(block, (cst.IndentedBlock, cst.Module)):
        over = _over_statements(module, block)[tree.position(statement)]
    else:
        over = tree.lines_above(statement)
    start, end = tree.span(statement).start, _end_of_head(module, statement)
    return [*_between(module, start, end), *filter(None, over)]


def above(module: Module, node: cst.CSTNode) -> list[str]:
    """Return the comments in the lines directly above the statement of a node, the nearest first."""
    lines = module.tree.lines_above(module.tree.statement(node))
    return lines[: lines.index("")] if "" in lines else lines


def inside(module: Module, node: cst.CSTNode) -> list[str]:
    """Return the comments inside a node, and behind it on its last line."""
    span = module.tree.span(node)
    return _between(module, span.start, _line_end(module, span.end))


def _end_of_head(module: Module, statement: cst.CSTNode) -> int:
    """Return where a simple statement's last line ends, or the block of a compound statement begins."""
    match statement:
        case cst.Match(cases=[cst.MatchCase(body=body), *_]):
            return module.tree.span(body.body[0]).start
        case cst.BaseCompoundStatement(body=cst.BaseSuite(body=[first, *_])):
            return module.tree.span(first).start
        case _:
            return _line_end(module, module.tree.span(statement).end)


def _line_end(module: Module, offset: int) -> int:
    found = NEWLINE.search(module.tree.text, offset)
    return found.start() if found is not None else len(module.tree.text)


def _between(module: Module, start: int, end: int) -> list[str]:
    text = module.tree.text
    return [text[each.start : each.end] for each in module.tree.comments_between(start, end)]


@remembered
def _over_statements(module: Module, block: cst.IndentedBlock | cst.Module) -> list[list[str]]:
    """Return what stands above each statement of a block, or above those that it directly follows."""
    over: list[list[str]] = []
    before: cst.CSTNode | None = None
    for statement in block.body:
        above = module.tree.lines_above(statement)
        pair = (before, statement)
        follows = not above and all(isinstance(each, cst.SimpleStatementLine) for each in pair)
        over.append(over[-1] if follows else above)
        before = statement
    return over
