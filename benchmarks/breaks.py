"""What breaks the graph of a compiled function, and what has it compiled again: measured.

    python -m benchmarks.breaks [--json benchmarks/results/breaks.json] [--only TEXT]

Each row of ``benchmarks/constructs.py`` is the middle of a module's ``forward``. It is looked at in two ways,
on the CPU and without a backend, since it is the front of the compiler that breaks graphs:

* ``reasons``: why ``torch._dynamo.explain`` says that the graph breaks, empty where it does not;
* ``compilations``: how often ``CALLS`` calls with the same arguments compile something. More often than
  `FEW` times is every time, up to the limit after which the function runs uncompiled.

What the file holds of other torch releases and of rows that are not asked for is kept. Exits with 1 if a row
behaves otherwise than its table says.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounter

from benchmarks.constructs import BREAKS, IMPORTS, RECOMPILES, TRACED, Row, rows

RESULTS = Path(__file__).parent / "results" / "breaks.json"
CALLS, FEW = 12, 3

Seen = dict[str, Any]


def look_at(row: Row) -> Seen:
    """Return what ``explain`` says of a row, and how often it is compiled."""
    made = _module(row)
    with _quiet():
        torch.compiler.reset()
        explained = torch._dynamo.explain(made)(*_inputs())
        counter = CompileCounter()
        torch.compiler.reset()
        compiled = torch.compile(_module(row), backend=counter)
        for _ in range(CALLS):
            compiled(*_inputs())
    torch.compiler.reset()
    reasons = [reason.reason.splitlines()[0] for reason in explained.break_reasons]
    return {"reasons": reasons, "compilations": counter.frame_count}


def behaviour(seen: Seen) -> str:
    """Return what a row does, in the words of the tables."""
    if seen["reasons"]:
        return BREAKS
    return RECOMPILES if seen["compilations"] > FEW else TRACED


def _module(row: Row) -> nn.Module:
    text = IMPORTS + row.module(0).partition("\n\n\nrow_0")[0]
    name = f"<{row.name}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "rows"}
    exec(compile(text, name, "exec"), names)
    module: nn.Module = names["Row0"]()
    return module


def _inputs() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return (
        torch.rand(8, 8, generator=generator),
        torch.rand(64, generator=generator),
        torch.randint(1, 5, (64,), generator=generator),
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Print nothing of what rows print and of what the compiler warns about."""
    logging.disable(logging.CRITICAL)
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def _held(path: Path) -> dict[tuple[str, str], Seen]:
    """Return what a result file holds of rows that the tables still have, by release and name."""
    if not path.exists():
        return {}
    known = {row.name: row.code for row in rows()}
    entries = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {(e["torch"], e["name"]): e for e in entries if known.get(e["name"]) == e["code"]}


@click.command()
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS)
@click.option("--only", default="", help="Rows whose kind or name holds this text.")
def main(output: Path, only: str) -> None:
    """Measure what breaks the graph."""
    held = _held(output)
    wrong = 0
    release = torch.__version__.partition("+")[0]
    for row in rows():
        if only not in row.kind and only not in row.name:
            continue
        seen = look_at(row)
        about = {"kind": row.kind, "name": row.name, "code": row.code, "expected": row.expected}
        held[release, row.name] = {**about, **seen, "torch": release}
        if behaviour(seen) != row.expected:
            wrong += 1
            click.echo(f"{row.kind}: {row.name}: expected {row.expected!r}, {behaviour(seen)!r} {seen}")
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in held.values())
    output.write_text(f'{{"calls": {CALLS},\n "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    click.echo(f"{wrong} rows behave otherwise than their tables say")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.breaks")
