"""Every machine format of the same findings, as it is kept under ``golden``.

A file that is missing there is written, and the test fails: delete one to have it made anew, and read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlint import links
from torchlint.diagnostics import Position
from torchlint.render import (
    azure,
    concise,
    full,
    github,
    gitlab,
    grouped,
    junit,
    markdown,
    pylint,
    rdjson,
    sarif,
)
from torchlint.render import json as as_json
from torchlint.render.report import Report

ROOT = Path("/repo")
GOLDEN = Path(__file__).parent / "golden"
FORMATS: dict[str, Callable[[Report], str]] = {
    "azure.txt": azure.render,
    "concise.txt": concise.render,
    "github.txt": github.render,
    "gitlab.json": gitlab.render,
    "grouped.txt": grouped.render,
    "json-lines.jsonl": as_json.render_lines,
    "json.json": as_json.render,
    "junit.xml": junit.render,
    "markdown.md": markdown.render,
    "pylint.txt": pylint.render,
    "rdjson.json": rdjson.render,
    "sarif.json": sarif.render,
}


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What releases change stays the same here."""
    monkeypatch.setattr(links, "declared", dict)
    monkeypatch.setattr(sarif, "__version__", "1.2.3")


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_as_it_was(name: str, every: Report) -> None:
    path, told = GOLDEN / name, FORMATS[name](every)
    if not path.exists():
        path.write_text(told, encoding="utf-8", newline="")
        pytest.fail(f"{path} was missing and is written now")
    with path.open(encoding="utf-8", newline="") as file:
        assert told == file.read()


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_of_a_program_drives_the_terminal(name: str, every: Report) -> None:
    told = FORMATS[name](every)
    assert [char for char in told if char != "\n" and not char.isprintable()] == []
    told.encode("utf-8")
    assert told.endswith("\n")


@pytest.mark.parametrize("name", ["azure.txt", "concise.txt", "github.txt", "json-lines.jsonl", "pylint.txt"])
def test_a_finding_is_one_line(name: str, every: Report) -> None:
    assert FORMATS[name](every).count("\n") == len(every.diagnostics)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.endswith((".json", ".xml", ".jsonl"))])
def test_documents_are_the_same_in_every_encoding(name: str, every: Report) -> None:
    assert FORMATS[name](every).isascii()


@pytest.mark.parametrize("name", [*FORMATS, "full"])
def test_nothing_of_a_program_is_a_command_to_a_build_server(name: str, desk: Any) -> None:
    hostile = "##vso[task.setvariable variable=a]b ##VSO[x]y ##[add-mask]c"
    text = f"x = bad('{hostile}')"
    fix = desk.fix(text, ("bad", hostile))
    finding = desk.finding(text, "bad", path=ROOT / f"::error::{hostile}.py", message=hostile, fix=fix)
    aside = replace(finding, path=ROOT / "  ::error::a.py", cell=1, remedy=f"{hostile}\n::error::d", fix=None)
    told = FORMATS.get(name, full.render)(
        desk.report(finding, replace(finding, related=((Position(1, 1), hostile),)), aside)
    )
    own = re.compile(r"^(::|##vso\[task\.logissue )", re.MULTILINE)
    commands = len(own.findall(told))
    assert commands == (3 if name in ("azure.txt", "github.txt") else 0)
    assert len(re.findall(r"##(?:vso)?\[|^\s*::", told, re.IGNORECASE | re.MULTILINE)) == commands
    if name.endswith((".json", ".jsonl")):
        assert hostile in "".join(_strings([json.loads(line) for line in _documents(name, told)]))


def _documents(name: str, told: str) -> list[str]:
    return told.splitlines() if name.endswith(".jsonl") else [told]


def _strings(value: object) -> Iterator[str]:
    """Every string of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def test_every_format_has_its_golden_file() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(FORMATS)
