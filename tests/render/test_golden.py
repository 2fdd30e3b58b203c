"""Every machine format of the same findings, as it is kept under ``golden``.

A file that is missing there is written, and the test fails: delete one to have it made anew, and read it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint import links
from torchlint.render import azure, concise, github, gitlab, grouped, junit, markdown, pylint, rdjson, sarif
from torchlint.render import json as as_json
from torchlint.render.report import Report

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
    monkeypatch.setattr(links, "_urls", dict)
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


def test_every_format_has_its_golden_file() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == set(FORMATS)
