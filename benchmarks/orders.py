"""Programs whose definitions stand in another order, and what torchlint says otherwise of them.

Functions, classes and methods that follow one another change places, as far as nothing can notice: what a
decorator, a default, an annotation, a base or the body of a class evaluates stays behind what it needs, and
names that are bound twice stay where they are. The same is found in such a program, each finding in the
line that has moved: with the same message, help and related places, and with a fix of the same grade that
makes the same edits.

``python -m benchmarks.orders [PATH…] [--orders N]`` tries this on files and folders, the fixtures and
programs of torchlint if none is named, and prints what differs; the status is 1 if anything does. The first
order is the reverse one, the others are shuffled. `tests/test_orders.py` runs a part of it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from torchlint import reading, registry
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic, Span
from torchlint.options import LintSettings
from torchlint.source import Source, SourceError
from torchlint.target import LIBRARIES, TORCH, Target

ROOT = Path(__file__).resolve().parents[1]
PLACES = (ROOT / "fixtures",)
ORDERS = 3
"""How many orders are tried: the first is the reverse one, the others are shuffled."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_TARGET = re.compile(rf"target-({'|'.join((TORCH, *LIBRARIES))})=(\S+)")
_LINE = re.compile(r"\bline (\d+)\b")


# --- other orders ----------------------------------------------------------------------------------------


def reordered(text: str, order: int) -> tuple[str, list[int]]:
    """Return ``text`` with its definitions in another order, and for each of its lines the row it had before.

    Order 0 is the reverse one, as far as there is one; the others are shuffled.
    """
    lines = text.split("\n")
    tree = ast.parse(text)
    # The last line may be the last of a definition, which is followed by another one now.
    rows = _block(tree, tree.body, 1, len(lines) + 1, Random(order) if order else None, _postponed(tree))
    return "\n".join(lines[row - 1] for row in rows), rows


def _block(
    holder: ast.Module | ast.ClassDef,
    body: Sequence[ast.stmt],
    first: int,
    end: int,
    random: Random | None,
    postponed: bool,
) -> list[int]:
    """Return the rows from ``first`` to ``end``, which hold these statements, in another order."""
    pinned = {name for name, number in _bound(holder).items() if number > 1}
    found: list[int] = []
    run: list[tuple[_Definition, list[int]]] = []
    row = first
    for number, statement in enumerate(body):
        top = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        last = statement.end_lineno or statement.lineno
        following = body[number + 1] if number + 1 < len(body) else None
        alone = top >= row and (following is None or following.lineno > last) and last < end
        if not isinstance(statement, _Definition) or not alone or statement.name in pinned:
            found += _put(run, random, postponed)
            run = []
            found += range(row, max(row, last + 1))
            row = max(row, last + 1)
            continue
        if not run:
            # What stands above the first definition is about the file, or about all of them.
            found += range(row, top)
            row = top
        rows = list(range(row, last + 1))
        if isinstance(statement, ast.ClassDef) and statement.body[0].lineno > statement.lineno:
            start = statement.lineno + 1
            inner = _block(statement, statement.body, start, last + 1, random, postponed)
            rows = [*range(row, start), *inner]
        run.append((statement, rows))
        row = last + 1
    return [*found, *_put(run, random, postponed), *range(row, end)]


def _bound(holder: ast.Module | ast.ClassDef) -> Counter[str]:
    """Return how often each name may be bound in a module or class, or from within it."""
    found: Counter[str] = Counter()
    waiting: list[ast.AST] = list(holder.body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] += 1
                # Functions of a module may bind its names.
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Global):
                        found.update(inner.names)
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ExceptHandler(name=str(name)):
                found[name] += 1
            case ast.alias(name=name, asname=other):
                found[other or name.partition(".")[0]] += 1
        waiting += ast.iter_child_nodes(node)
    return found


def _put(run: Sequence[tuple[_Definition, list[int]]], random: Random | None, postponed: bool) -> list[int]:
    """Return the rows of definitions that follow one another, each behind those that it needs."""
    names = {definition.name: number for number, (definition, _) in enumerate(run)}
    needed: list[set[int]] = []
    for number, (definition, _) in enumerate(run):
        read, called = _evaluated(definition, postponed)
        needs = {names[name] for name in (read | called) if name in names} - {number}
        # What runs now may run any of those before it.
        needed.append(set(range(number)) if called & names.keys() else {n for n in needs if n < number})
    waiting = list(range(len(run)))
    found: list[int] = []
    while waiting:
        free = [number for number in waiting if not needed[number] & set(waiting)]
        chosen = free[-1] if random is None else random.choice(free)
        waiting.remove(chosen)
        found += run[chosen][1]
    return found


def _evaluated(definition: _Definition, postponed: bool) -> tuple[set[str], set[str]]:
    """Return the names that are read when a definition is executed, and those of what may be run then."""
    read: list[ast.AST] = []
    run: list[ast.AST] = list(definition.decorator_list)
    if isinstance(definition, ast.ClassDef):
        read += definition.bases
        run += [keyword.value for keyword in definition.keywords]
        for statement in definition.body:
            if isinstance(statement, _Definition):
                inner_read, inner_run = _evaluated(statement, postponed)
                read += [ast.Name(name) for name in inner_read]
                run += [ast.Name(name) for name in inner_run]
            elif isinstance(statement, ast.AnnAssign) and postponed:
                run += [statement.value] if statement.value is not None else []
            else:
                run.append(statement)
    else:
        arguments = definition.args
        run += [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]
        if not postponed:
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
            read += [arg.annotation for arg in every if arg.annotation is not None]
            read += [definition.returns] if definition.returns is not None else []
    return _names(read), _names(run)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _postponed(tree: ast.Module) -> bool:
    """Return whether annotations are not evaluated."""
    return any(
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.names)
        for statement in tree.body
    )


# --- what is found in them -------------------------------------------------------------------------------


def settings(text: str) -> LintSettings:
    """Return all rules and fixes, for the releases that the first line names, as it does in fixtures."""
    rules = registry.catalogue()
    given = dict(_TARGET.findall(text.partition("\n")[0]))
    targets = {name: Target.parse(release, "orders", name) for name, release in given.items()}
    return LintSettings(
        rules=tuple(sorted(rules)),
        fixable=frozenset(rules),
        unsafe_fixes=True,
        target=targets.pop(TORCH, Target.unknown()),
        libraries=targets,
    )


def differences(text: str, orders: Iterable[int] = range(ORDERS)) -> Iterator[str]:
    """Yield what is found in a program and not in the same one in other orders, or the other way round."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff").rstrip("\n") + "\n"
    with_rows: dict[str, list[int]] = {}
    for order in orders:
        made, rows = reordered(text, order)
        if made != text:
            with_rows.setdefault(made, rows)
    if not with_rows:
        return
    wanted = settings(text)
    own = _told(text, list(range(1, text.count("\n") + 2)), wanted)
    for made, rows in with_rows.items():
        other = _told(made, rows, wanted)
        yield from (f"lost: {finding}" for finding in sorted((own - other).elements()))
        yield from (f"new: {finding}" for finding in sorted((other - own).elements()))


def _told(text: str, rows: Sequence[int], wanted: LintSettings) -> Counter[str]:
    """Return all that is said of a text, with the rows that its lines had before."""
    source = Source(Path("program.py"), text)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def row(number: int) -> int:
        return rows[number - 1] if number <= len(rows) else number

    def place(span: Span) -> str:
        start, end = source.position(span.start), source.position(span.end)
        if span.end > span.start and end.column == 1:
            # With the end of the line before, which may be the last of a definition.
            return f"{row(start.row)}:{start.column}-{row(end.row - 1)}:end"
        return f"{row(start.row)}:{start.column}-{row(end.row)}:{end.column}"

    def told(finding: Diagnostic) -> str:
        parts = [
            f"{row(finding.start.row)}:{finding.start.column}-{row(finding.end.row)}:{finding.end.column}"
        ]
        parts += [finding.code, finding.severity.value, finding.message, finding.help or ""]
        parts += sorted(f"({row(p.row)}:{p.column} {remark})" for p, remark in finding.related)
        if finding.fix is not None:
            parts.append(finding.fix.applicability.label)
            parts += sorted(f"{place(edit.span)}={edit.content!r}" for edit in finding.fix.edits)
        return _LINE.sub(lambda match: f"line {row(int(match[1]))}", " ".join(parts))

    return Counter(told(finding) for finding in check(source, wanted))


# --- the command line ------------------------------------------------------------------------------------


def texts(places: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the Python programs that are, or lie below, some places."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            try:
                text = reading.read(path).text
                ast.parse(text)
            except (SourceError, SyntaxError, ValueError, RecursionError, OSError):
                continue
            yield path, text


def main(arguments: Sequence[str] | None = None) -> int:
    """Try files; returns the exit status: 0 nothing differs, 1 something does."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders", description="Try other orders.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", default=PLACES)
    parser.add_argument("--orders", type=int, default=ORDERS, metavar="N", help="how many orders are tried")
    given = parser.parse_args(arguments)
    tried = found = 0
    for path, text in texts(given.paths):
        tried += 1
        for difference in differences(text, range(given.orders)):
            found += 1
            print(f"{path}: {difference}", flush=True)
    print(f"{tried} programs, {found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
