"""The same findings whichever way a file is asked for: on every project of the fixtures."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
import pytest_asyncio
from lsprotocol import types

from tests.project.test_projects import (
    NAMES,
    PROJECTS,
    SPLIT_TRAINER,
    TARGET,
    files_of,
    torchlint,
)
from tests.server.conftest import Editor, launched

if TYPE_CHECKING:
    from tests.conftest import Git

pytestmark = pytest.mark.asyncio(loop_scope="session")

SELECT = ("--select", "ALL")
SEVERITIES = {
    types.DiagnosticSeverity.Hint: "hint",
    types.DiagnosticSeverity.Information: "note",
    types.DiagnosticSeverity.Warning: "warning",
    types.DiagnosticSeverity.Error: "error",
}
EMPTY = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
Found = list[dict[str, Any]]


def checked(project: Path, *arguments: str | Path) -> Found:
    """What a run says of a project, without the edits of fixes."""
    found = json.loads(torchlint(*SELECT, *map(str, arguments), "--output-format", "json"))
    return ordered(
        {
            "file": Path(item["filename"]).relative_to(project).as_posix(),
            "place": (item["cell"], *location(item["location"]), *location(item["end_location"])),
            **{key: item[key] for key in ("code", "message")},
            # An editor has hints for what is of low impact.
            "severity": "hint" if item["impact"] == "low" else item["severity"],
            "fix": item["fix"] and (item["fix"]["message"], item["fix"]["applicability"]),
            "related": [
                (
                    Path(there["filename"]).relative_to(project).as_posix(),
                    there["cell"],
                    *location(there["location"]),
                    there["message"],
                )
                for there in item["related"]
            ],
        }
        for item in found
    )


def location(place: dict[str, int]) -> tuple[int, int]:
    return place["row"], place["column"]


def ordered(found: Iterable[dict[str, Any]]) -> Found:
    return sorted(found, key=lambda item: (item["file"], str(item["place"]), item["code"]))


# --- an editor ---------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """VS Code, told what the runs are told."""
    options = {
        "configuration": {"target-torch": TARGET},
        "select": ["ALL"],
        "impact": "low",
        "advice": True,
    }
    folder = tmp_path_factory.mktemp("editor").resolve()
    async with launched(folder, "visual-studio-code", options, "--isolated") as editor:
        yield editor


def cell_uri(path: Path, number: int) -> str:
    return f"vscode-notebook-cell:{path}#{number}"


class Opened:
    """The files of a project as texts in an editor, the cells of notebooks among them."""

    def __init__(self, editor: Editor, project: Path, texts: dict[Path, str]) -> None:
        self.editor, self.project = editor, project
        self.places: dict[str, tuple[str, int | None]] = {}
        self.files = list(texts)
        for path, text in texts.items():
            name = path.relative_to(project).as_posix()
            if path.suffix != ".ipynb":
                editor.open(path.as_uri(), text, "python" if path.suffix == ".py" else path.suffix[1:])
                self.places[path.as_uri()] = name, None
            else:
                self._open_notebook(path, name, json.loads(text)["cells"])

    def _open_notebook(self, path: Path, name: str, cells: Sequence[Any]) -> None:
        structure, texts = [], []
        for number, cell in enumerate(cells, start=1):
            code = cell["cell_type"] == "code"
            uri = cell_uri(path, number)
            kind = types.NotebookCellKind.Code if code else types.NotebookCellKind.Markup
            structure.append(types.NotebookCell(kind, uri))
            language = "python" if code else "markdown"
            texts.append(types.TextDocumentItem(uri, language, 1, "".join(cell["source"])))
            if code:
                self.places[uri] = name, number
        notebook = types.NotebookDocument(path.as_uri(), "jupyter-notebook", 1, structure)
        self.editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, texts))

    async def found(self, expected: Found) -> Found:
        """What is shown of all texts in the end: what is expected, or that after a while."""
        for uri in self.places:
            await self.editor.told(uri)
        for _ in range(200):
            if self._shown() == expected:
                break
            await asyncio.sleep(0.05)
        return self._shown()

    def _shown(self) -> Found:
        return ordered(
            self._item(uri, item)
            for uri in self.places
            for item in self.editor.published[uri][-1].diagnostics
        )

    def _item(self, uri: str, item: types.Diagnostic) -> dict[str, Any]:
        name, cell = self.places[uri]
        fix = item.data["fix"] if item.data else None
        return {
            "file": name,
            "place": (cell, *self._there(item.range.start), *self._there(item.range.end)),
            "code": item.code,
            "message": item.message,
            "severity": SEVERITIES[item.severity or types.DiagnosticSeverity.Error],
            "fix": fix and (fix["message"], fix["applicability"]),
            "related": [
                (
                    *self.places[unquote(there.location.uri)],
                    *self._there(there.location.range.start),
                    there.message,
                )
                for there in item.related_information or ()
            ],
        }

    @staticmethod
    def _there(place: types.Position) -> tuple[int, int]:
        return place.line + 1, place.character + 1

    def close(self) -> None:
        for path in self.files:
            if path.suffix != ".ipynb":
                self.editor.close(path.as_uri())
            else:
                identifier = types.NotebookDocumentIdentifier(path.as_uri())
                cells = [
                    types.TextDocumentIdentifier(uri)
                    for uri in self.places
                    if uri.startswith(cell_uri(path, 0)[:-1])
                ]
                self.editor.client.notebook_document_did_close(
                    types.DidCloseNotebookDocumentParams(identifier, cells)
                )


# --- all ways ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*NAMES, SPLIT_TRAINER.name])
async def test_a_finding_is_the_same_whichever_way_its_file_is_asked_for(
    name: str, editor: Editor, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = git.top
    fixture = SPLIT_TRAINER if name == SPLIT_TRAINER.name else PROJECTS / name
    shutil.copytree(fixture, project, ignore=shutil.ignore_patterns("*.fixed.py"), dirs_exist_ok=True)
    monkeypatch.chdir(project)
    git("add", ".")
    files = [*files_of(project)]
    whole = checked(project, ".")
    assert ordered(item for file in files for item in checked(project, file)) == whole

    # What is staged counts, and what is open in an editor, whatever the files hold by now.
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    for path in files:
        path.write_text(json.dumps(EMPTY) if path.suffix == ".ipynb" else "", encoding="utf-8")
    assert checked(project, ".") == []
    assert checked(project, "--force-exclude", "--no-fix", "--staged", *files) == whole
    if (project / "torchlint.toml").exists():
        return  # The editor is started without any configuration.
    opened = Opened(editor, project, texts)
    assert await opened.found(whole) == whole
    opened.close()
