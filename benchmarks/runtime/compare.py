"""Hold what was seen at run time against what torchlint says of the same lines."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.findings import torchlint
from torchlint.verify.predictions import predicts_wait


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a library, and how the two sides agree on it.

    ``status`` is ``both``, ``seen`` (it waited, and nothing was said), or ``said`` (it ran and did not wait).
    What Python may leave out while the line runs, such as the right side of an ``and``, is no ``said``.
    """

    library: str
    file: str
    row: int
    status: str
    codes: tuple[str, ...]
    text: str


def compare(observed: Mapping[str, Any], folder: Path, *, alone: bool = False) -> Iterator[Line]:
    """Yield every line that waited, and every finding whose lines ran.

    ``folder`` holds the packages, by the names that they are imported by. What did not run is passed over.
    With ``alone``, each file is judged by itself.

    Raises:
        RuntimeError: torchlint broke.
    """
    for library, seen in observed["libraries"].items():
        release = observed.get("torch", "unknown").partition("+")[0]
        files = sorted({*seen["waited"], *seen["ran"]})
        if not files:
            continue
        how = ["--target-torch", release, *(["--no-project"] if alone else [])]
        said = _said(folder / library, files, how)
        for file, rows in seen["waited"].items():
            lines = _lines(folder / library / file)
            for row in rows:
                codes = tuple(code for start, end, _, code in said.get(file, ()) if start <= row <= end)
                yield Line(library, file, row, "both" if codes else "seen", codes, lines[row - 1].strip())
        for file, findings in said.items():
            ran, waited = set(seen["ran"].get(file, ())), set(seen["waited"].get(file, ()))
            lines = _lines(folder / library / file)
            optional = _optional("\n".join(lines))
            for start, end, column, code in findings:
                rows = set(range(start, end + 1))
                left_out = any(first <= (start, column) < last for first, last in optional)
                if rows & ran and not rows & waited and not left_out:
                    yield Line(library, file, start, "said", (code,), lines[start - 1].strip())


def _said(
    folder: Path, files: Iterable[str], how: Iterable[str]
) -> dict[str, list[tuple[int, int, int, str]]]:
    """Return the findings in some files that predict a wait: by file first and last row, column, and code."""
    options = (*how, "--exit-zero", "--output-format", "json", "--select", "TL1,TL2", "--impact", "low")
    run = torchlint([*options, *(folder / file for file in files)])
    found: dict[str, list[tuple[int, int, int, str]]] = {}
    stores: dict[str, dict[tuple[int, int], int]] = {}
    for item in json.loads(run.stdout):
        if predicts_wait(item["code"], item["message"]):
            file = str(Path(item["filename"]).relative_to(folder))
            if file not in stores:
                stores[file] = _stores((folder / file).read_text(encoding="utf-8"))
            row, end = item["location"]["row"], item["end_location"]["row"]
            column = item["location"]["column"] - 1
            row = min(row, stores[file].get((row, column), row))
            found.setdefault(file, []).append((row, end, column, item["code"]))
    return found


def _stores(text: str) -> dict[tuple[int, int], int]:
    """Return where the values of assignments to items begin (row and column), with the row that Python says
    to be at when it stores them: that of the target.
    """
    return {
        (node.value.lineno, node.value.col_offset): target.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript)
    }


def _optional(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the expressions that a line may run without, each from where to where (row and column)."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.BoolOp(values=[_, *others]):
                found += others
            case ast.IfExp(body=body, orelse=other):
                found += [body, other]
    return [((e.lineno, e.col_offset), (e.end_lineno or 0, e.end_col_offset or 0)) for e in found]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")
