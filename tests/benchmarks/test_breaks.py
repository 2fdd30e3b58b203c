"""What the linter says of compiled code is what the compiler was seen to do."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.constructs import BREAKS, RECOMPILES, TRACED, program, rows
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.semantics.api.compiler import DRAWN_NUMBERS, UNTRACED
from torchlint.source import Source
from torchlint.target import Target

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "breaks.json"
ROWS = {row.name: row for row in rows()}
# What the compiler does and the linter does not say.
SILENT = {
    *("y = str(s)", "y = repr(s)", 'y = "%.3f" % s'),
    *("if v.numpy().max() > 3: v = v + 1", "y = float(v.numpy().max())"),
    # A look-up by a scalar is traced where the scalar is an argument of what is compiled.
    *("y = x[n]", "y = torch.zeros(n)", "y = torch.arange(n)", "y = v.narrow(0, n, 1)"),
}


@cache
def measured() -> dict[str, dict[str, Any]]:
    """What the newest torch release that was measured did, by the name of the row."""
    held: list[dict[str, Any]] = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    newest = max((row["torch"] for row in held), key=lambda version: [*map(int, version.split("."))])
    return {row["name"]: row for row in held if row["torch"] == newest}


@cache
def found() -> dict[str, list[str]]:
    """What the linter says of each row in compiled code."""
    text, owners = program(list(ROWS.values()))
    said: dict[str, list[str]] = {}
    for item in check(
        Source(Path("rows.py"), text), LintSettings(rules=("TL513",), target=Target.parse("2.13"))
    ):
        said.setdefault(owners[item.start.row].name, []).append(item.message)
    return said


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_tables_say_what_was_measured(name: str) -> None:
    seen = measured()[name]
    behaviour = BREAKS if seen["reasons"] else RECOMPILES if seen["compilations"] > 3 else TRACED
    assert (seen["code"], seen["expected"], behaviour) == (ROWS[name].code, ROWS[name].expected, behaviour)
    assert behaviour == ROWS[name].expected


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_linter_says_what_the_compiler_does(name: str) -> None:
    said = found().get(name, [])
    if ROWS[name].expected == TRACED or name in SILENT:
        assert said == []
    elif ROWS[name].expected == BREAKS:
        assert said and all("break" in message for message in said)
    else:
        assert said and all("recompiling" in message for message in said)


@pytest.mark.parametrize("name", sorted(name for name in UNTRACED | DRAWN_NUMBERS.keys()))
def test_each_untraced_function_breaks_in_some_row(name: str) -> None:
    short = name.removeprefix("builtins.").replace("numpy.", "np.")
    assert any(
        re.search(rf"(?<![\w.]){re.escape(short)}\(", row.code) and measured()[row.name]["reasons"]
        for row in ROWS.values()
    )
