"""A server and an editor that talks to it, shared by the tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

# What is of low impact is shown here, too.
COMMAND = [sys.executable, "-m", "torchlint", "server", "--config", "impact = 'low'"]


@dataclass
class Editor:
    """What an editor knows: the texts that it has open, their versions, and what it was told of each."""

    client: LanguageClient
    folder: Path
    texts: dict[str, str] = field(default_factory=dict)
    published: dict[str, list[types.PublishDiagnosticsParams]] = field(default_factory=dict)
    last_version: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    units: str = "utf-16-le"
    registered: list[types.Registration] = field(default_factory=list)

    def _version(self) -> int:
        self.last_version += 1
        return self.last_version

    def uri(self, name: str) -> str:
        """The URI of a file in the folder."""
        return (self.folder / name).as_uri()

    def open(self, uri: str, text: str, language: str = "python") -> None:
        """Open a text."""
        self.texts[uri] = text
        item = types.TextDocumentItem(uri, language, self._version(), text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def replace(self, uri: str, text: str) -> int:
        """Replace a whole text; return the new version."""
        self.texts[uri] = text
        return self._change(uri, types.TextDocumentContentChangeWholeDocument(text))

    def type(self, uri: str, where: types.Range, text: str) -> int:
        """Type over a range of a text; return the new version."""
        return self._change(uri, types.TextDocumentContentChangePartial(where, text))

    def _change(self, uri: str, change: types.TextDocumentContentChangeEvent) -> int:
        version = self._version()
        identifier = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        return version

    def save(self, uri: str) -> None:
        """Say that a text was saved."""
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        """Close a text."""
        del self.texts[uri]
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        )

    async def told(self, uri: str, after: int = 0, *, within: float = 20) -> list[types.Diagnostic]:
        """What is published for a URI as message number ``after`` (from 0), awaited if need be."""
        async with self.news:
            await asyncio.wait_for(
                self.news.wait_for(lambda: len(self.published.get(uri, ())) > after), within
            )
        return list(self.published[uri][after].diagnostics)

    async def actions(
        self, uri: str, where: types.Range, *only: types.CodeActionKind | str
    ) -> list[types.CodeAction]:
        """The actions offered for a range."""
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri),
                where,
                types.CodeActionContext([], only=list(only) or None),
            )
        )
        return [action for action in found or [] if isinstance(action, types.CodeAction)]

    def applied(self, uri: str, edit: types.WorkspaceEdit | None) -> str:
        """The text after an edit."""
        assert edit is not None
        if edit.document_changes:
            (change,) = edit.document_changes
            assert isinstance(change, types.TextDocumentEdit)
            assert change.text_document.uri == uri
            edits: Any = change.edits
        else:
            assert edit.changes is not None
            edits = edit.changes[uri]
        return applied(self.texts[uri], edits, self.units)


def applied(text: str, edits: Any, units: str = "utf-16-le") -> str:
    """A text with the edits made as an editor makes them, which counts columns in the units of a codec."""
    width = len("x".encode(units))
    lines = [f"{line}\n" for line in text.split("\n")]

    def offset(place: types.Position) -> int:
        before = sum(map(len, lines[: place.line]))
        line = lines[place.line] if place.line < len(lines) else ""
        return before + len(line.encode(units)[: width * place.character].decode(units))

    spans = sorted((offset(edit.range.start), offset(edit.range.end), edit.new_text) for edit in edits)
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text


@asynccontextmanager
async def launched(
    folder: Path, client_name: str = "visual-studio-code", options: Any = None, *flags: str
) -> AsyncIterator[Editor]:
    """An editor with the capabilities of a real one, that has one folder open."""
    capabilities = client_capabilities(client_name)
    client = await ClientServerConfig([*COMMAND, *flags]).start()
    assert isinstance(client, LanguageClient)
    editor = Editor(client, folder)

    # The one that comes with the client keeps the last message only.
    client.protocol.fm.features.pop(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)  # type: ignore[untyped-decorator]
    async def published(params: types.PublishDiagnosticsParams) -> None:
        async with editor.news:
            editor.published.setdefault(params.uri, []).append(params)
            editor.news.notify_all()

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)  # type: ignore[untyped-decorator]
    def registered(params: types.RegistrationParams) -> None:
        editor.registered += params.registrations

    await client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
            initialization_options=options,
        )
    )
    yield editor
    await client.shutdown_session()
    await client.stop()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def launch() -> Callable[..., AbstractAsyncContextManager[Editor]]:
    """Starts a server for an editor; see `launched`."""
    return launched


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """VS Code with an empty folder open; tests use files of their own."""
    async with launched(tmp_path_factory.mktemp("project")) as editor:
        yield editor
