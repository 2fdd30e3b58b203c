"""What the linter calls a wait is what a GPU was seen to wait for."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.waits import WAITS, Row, behaviour, program, rows
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.semantics.api import results
from torchlint.source import Source
from torchlint.target import Target

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "syncs.json"
# The state of a logger and of a scaler while a program runs.
UNSEEN = {'quiet.info("%s", s): the level is off', "scaler.get_scale(), before anything was scaled"}
REFUSED = {
    *("x.numpy()", "np.asarray(x)", "np.array(x)", "np.ascontiguousarray(x)", "np.asanyarray(x)"),
    *("np.array(scalars)", "np.asarray(scalars)", "np.max(scalars)", "np.mean(scalars)", "np.sum(scalars)"),
    "np.stack(vectors)",
}
CODES = ("TL202", "TL203", "TL204", "TL205", "TL206", "TL207", "TL210", "TL212")
ROWS = {row.name: row for row in rows()}


@cache
def measured() -> dict[str, dict[str, Any]]:
    """What the newest torch release that was measured did, by the name of the row."""
    held: list[dict[str, Any]] = json.loads(RESULT.read_text(encoding="utf-8"))["rows"]
    newest = max((row["torch"] for row in held), key=lambda version: [*map(int, re.findall(r"\d+", version))])
    return {row["name"]: row for row in held if row["torch"] == newest}


@cache
def found() -> dict[str, list[str]]:
    """What the linter says of each row, put into a loop that trains."""
    text, owners = program(list(ROWS.values()))
    said: dict[str, list[str]] = {}
    settings = LintSettings(rules=CODES, target=Target.parse("2.11"))
    for item in check(Source(Path("rows.py"), text), settings):
        said.setdefault(owners[item.start.row].name, []).append(item.message)
    return said


def test_every_row_was_measured() -> None:
    known = {name: row.code for name, row in ROWS.items()}
    assert {name: row["code"] for name, row in measured().items()}.items() <= known.items()


def waited(name: str) -> bool:
    """Whether a row waits; one that was not measured yet does what its table expects."""
    return bool(measured()[name]["waited"]) if name in measured() else ROWS[name].expected == WAITS


@pytest.mark.parametrize("name", sorted(measured()))
def test_the_tables_say_what_was_measured(name: str) -> None:
    seen = measured()[name]
    assert seen["expected"] == ROWS[name].expected
    if "No module named" in (seen["raises"] or ""):
        assert ROWS[name].kind == "torchvision"
    else:
        assert behaviour(seen) == ROWS[name].expected


def test_the_linter_speaks_of_waits_only_where_one_was_measured() -> None:
    wrong = {
        name: said
        for name, said in found().items()
        if not waited(name) and any(re.search("wait|asks", message) for message in said)
    }
    assert set(wrong) <= UNSEEN


def test_what_raises_is_called_that() -> None:
    refused = {name for name, said in found().items() if any("raises" in message for message in said)}
    assert refused == REFUSED
    assert all(measured()[name]["raises"] for name in refused)


def _called(row: Row) -> set[str]:
    """The names that the code of a row calls, without what stands before the last dot, and with it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(row.code)):
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            for short, full in SHORT.items():
                text = re.sub(rf"^{re.escape(short)}\.", f"{full}.", text)
            names |= {text, text.rpartition(".")[2]}
    return names


SHORT = {"F": "torch.nn.functional", "L": "torch.linalg", "D": "torch.distributions", "np": "numpy"}
CALLED = {row.name: _called(row) for row in ROWS.values()}


def waiting(name: str) -> list[str]:
    return [row for row, names in CALLED.items() if name in names and waited(row)]


@pytest.mark.parametrize("name", sorted(n for n in results.FUNCTION_SYNCS if not n.startswith("numpy.")))
def test_each_function_of_the_facts_waits_in_some_row(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize("name", sorted(n for n in results.METHOD_SYNCS if not n.startswith("__")))
def test_each_method_of_the_facts_waits_in_some_row(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize("name", sorted(results.SIZED_BY_SCALARS))
def test_each_factory_reads_its_sizes(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize("name", sorted(results.READING_SCALARS | results.READING_FILL))
def test_each_method_reads_its_numbers(name: str) -> None:
    assert waiting(name)


@pytest.mark.parametrize(("name", "twin"), sorted(results.UNCHECKED_TWINS.items()))
def test_each_unchecked_twin_goes_on(name: str, twin: str) -> None:
    assert waiting(name)
    assert not waiting(twin) and any(twin in names for names in CALLED.values())


# What a person would be told of by no rule before: each of these is told of now.
HIDDEN = {
    *("v[n]", "x[n, 0]", "x[0, n]", "v[n] = 1.0", "x.narrow(0, 0, n)", "v.topk(n)", "F.pad(v, (0, n))"),
    *("torch.full((2,), s)", "torch.full_like(v, s)", "v.new_full((2,), s)", "v.masked_fill(m, s)"),
    *("torch.tensor(scalars)", "torch.tensor(1.0, device=device)", "L.inv(x)", "x.inverse()"),
    *("torch.normal(v, v)", "range(n)", "v[:n]", "torch.linspace(s, 1, 5, device=device)", "s in v"),
}


def test_hidden_waits_are_found() -> None:
    assert {name for name in HIDDEN if not found().get(name)} == set()
    assert all(waited(name) for name in HIDDEN)


@pytest.mark.parametrize("name", sorted(results.CHECKED_DISTRIBUTIONS))
def test_each_distribution_checks_its_parameters(name: str) -> None:
    assert waiting(f"torch.distributions.{name}")
