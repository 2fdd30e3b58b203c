"""What the server answers to an editor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from torchlint import __version__
from torchlint.options import LintSettings
from torchlint.server import projects
from torchlint.server.checks import Checked, Checks, OvertakenError
from torchlint.server.documents import Document, Documents, Places, file_of
from torchlint.server.preferences import SECTION
from torchlint.server.projects import Projects
from torchlint.server.reports import report
from torchlint.server.worker import Worker
from torchlint.source import Source

DEBOUNCE = 0.15
"""How long nothing must be typed before a text is checked, in seconds."""

_LANGUAGE = "python"
_SUFFIXES = (".py", ".pyw")
_log = logging.getLogger("torchlint")


class _Protocol(LanguageServerProtocol):
    def open_documents(self) -> None:
        """Take over the folders of the workspace, and read texts as editors do."""
        self._workspace = Documents.of(self.workspace)


class Service(LanguageServer):
    """One editor's server."""

    protocol: _Protocol

    def __init__(self, configs: Sequence[str] = (), *, isolated: bool = False) -> None:
        super().__init__("torchlint", __version__, protocol_cls=_Protocol)
        self.worker = Worker()
        self.checks = Checks(self.worker)
        self.projects = Projects(self._complain, configs, isolated=isolated)
        # Checks that wait for the end of typing.
        self._waiting: dict[str, asyncio.Task[None]] = {}
        # Whether the editor asks for findings when it wants them, instead of being told.
        self.pulls = False

    # ------------------------------------------------------------------ what the editor can do

    def can(self, capability: str) -> bool:
        """Whether the editor has a capability, such as ``workspace.configuration``."""
        return bool(get_capability(self.client_capabilities, capability))  # type: ignore[call-overload]

    @property
    def versioned(self) -> bool:
        """Whether the editor takes edits that name the version of the text."""
        return self.can("workspace.workspace_edit.document_changes")

    @property
    def can_resolve_edits(self) -> bool:
        """Whether the editor asks for the edit of an action once it is accepted."""
        resolve = get_capability(self.client_capabilities, "text_document.code_action.resolve_support")
        return resolve is not None and "edit" in resolve.properties

    def document(self, uri: str) -> Document | None:
        """The open text with this URI."""
        for document in self.workspace.text_documents.values():
            if document.uri == uri and isinstance(document, Document):
                return document
        return None

    def places(self, source: Source) -> Places:
        """The translation of places in a text."""
        return Places(source, self.workspace.position_codec)

    # ------------------------------------------------------------------ checks

    async def checked(self, document: Document) -> Checked:
        """What is found in the newest version of a text.

        Raises:
            OvertakenError: it was closed.
        """
        while True:
            try:
                return await self.checks.of(document.uri, source_of(document), self._settings(document))
            except OvertakenError:
                if self.document(document.uri) is not document:
                    raise

    def _settings(self, document: Document) -> LintSettings | None:
        named = (document.file or Path()).suffix in _SUFFIXES
        return self.projects.settings(document.file) if named or document.language_id == _LANGUAGE else None

    def changed(self, document: Document, delay: float) -> None:
        """Check a text in ``delay`` seconds unless it changes before, and show what is found."""
        self.dismiss(document.uri)
        if self.pulls:
            return
        self._waiting[document.uri] = task = asyncio.create_task(self._publish(document, delay))
        task.add_done_callback(_failed)

    def dismiss(self, uri: str) -> None:
        """Abandon what is going on about a text."""
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self.checks.forget(uri)

    async def _publish(self, document: Document, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        with contextlib.suppress(OvertakenError):
            checked = await self.checked(document)
            if source_of(document) == checked.source:
                self.show(document.uri, self.reports(document, checked), document.version)

    def reports(self, document: Document, checked: Checked) -> list[types.Diagnostic]:
        """What was found, for the editor."""
        places = self.places(checked.source)
        return [report(item, places, document.uri) for item in checked.diagnostics]

    def show(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        """Replace what the editor shows of a text."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def recheck(self) -> None:
        """Check everything that is open anew: the settings may be others."""
        if self.pulls:
            if self.can("workspace.diagnostics.refresh_support"):
                self.workspace_diagnostic_refresh(None)
            return
        for document in list(self.workspace.text_documents.values()):
            if isinstance(document, Document):
                self.changed(document, 0)

    # ------------------------------------------------------------------ settings

    def use_folders(self) -> None:
        """Take over the folders that are open now."""
        folders = [file_of(uri) for uri in self.workspace.folders] or [file_of(self.workspace.root_uri or "")]
        self.projects.use(filter(None, folders))

    async def ask_preferences(self) -> None:
        """Take over the settings that the editor has for torchlint, if it can be asked for them."""
        if not self.can("workspace.configuration"):
            return
        asked = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
        with contextlib.suppress(Exception):
            (given,) = await self.workspace_configuration_async(asked)
            if given:
                self.projects.prefer(given)

    async def watch(self) -> None:
        """Have the editor say when a file changes on which settings depend."""
        if not self.can("workspace.did_change_watched_files.dynamic_registration"):
            return
        watchers = [types.FileSystemWatcher(glob) for glob in projects.watched()]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = types.Registration(
            "torchlint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options
        )
        with contextlib.suppress(Exception):
            await self.client_register_capability_async(types.RegistrationParams([registration]))

    def _complain(self, message: str) -> None:
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"torchlint: {message}"))


def source_of(document: Document) -> Source:
    """The text of a document as the checker takes it."""
    return Source.from_text(document.source, document.file or Path(document.filename or "untitled"))


def _failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("a check failed", exc_info=task.exception())
