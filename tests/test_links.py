"""Addresses come from the project's metadata alone."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import Message

import pytest

from torchlint import links
from torchlint.dev import ROOT
from torchlint.diagnostics import Severity
from torchlint.registry import catalogue
from torchlint.rule import Rule
from torchlint.toml import loads


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    links.declared.cache_clear()
    yield
    links.declared.cache_clear()


def _check(node: object, module: object) -> Iterator[object]:
    yield from ()


def test_what_the_project_declares_is_what_is_linked() -> None:
    declared = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    assert {name.lower(): url for name, url in declared.items()} == links.declared()


def test_pages_lie_below_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Message()
    metadata["Project-URL"] = "Homepage, https://example.org/torchlint"
    metadata["Project-URL"] = "Documentation, https://example.org/torchlint/docs/"
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: metadata)
    assert links.home() == "https://example.org/torchlint"
    rule = catalogue()["TL202"]
    assert links.page(rule) == "https://example.org/torchlint/docs/rules/TL202/"
    theirs = Rule("ZZ1", "their-rule", Severity.NOTE, "none", (), (), False, _check)  # type: ignore[arg-type]
    assert links.page(theirs) is None


def test_the_repository_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = Message()
    metadata["Project-URL"] = "Repository, https://example.org/torchlint"
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: metadata)
    assert links.home() == "https://example.org/torchlint"
    assert links.page(catalogue()["TL202"]) == "https://example.org/torchlint/blob/HEAD/docs/rules/TL202.md"


def test_without_an_address_there_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: Message())
    assert links.home() is None
    assert links.page(catalogue()["TL202"]) is None
