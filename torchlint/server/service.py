"""What the server answers to an editor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from torchlint import __version__, reading
from torchlint.server import projects
from torchlint.server.checks import Checked, Checks, OvertakenError, is_broken, oversized
from torchlint.server.documents import Documents, Places, Program, Text, file_of
from torchlint.server.preferences import SECTION
from torchlint.server.projects import Projects
from torchlint.server.reports import report
from torchlint.server.surroundings import Surroundings
from torchlint.server.worker import Worker
from torchlint.source import SourceError, is_notebook

DEBOUNCE = 0.15
"""How long nothing must be typed before a text is checked, in seconds."""

_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithCells([types.NotebookCellLanguage("python")])], save=True
)
_log = logging.getLogger("torchlint")


class _Protocol(LanguageServerProtocol):
    """The protocol of pygls, but every request is answered: one that cannot be read with an error."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Leave an object of a message as it is: the message is looked at as a whole, below."""
        return data

    def handle_message(self, message: Any) -> None:
        """Handle one message, whatever it is: an object if all is well."""
        if not isinstance(message, dict):
            self.refuse(None, JsonRpcInvalidRequest("a message is an object"))
            return
        method, asked = message.get("method"), message.get("id")
        identifier = asked if type(asked) in (int, str) else None
        try:
            if "method" in message:
                self._admit(message)
            structured = super().structure_message(message)
        except JsonRpcException as error:
            # Nobody waits for an answer to a notification, or for one to an answer.
            if "method" in message and "id" in message:
                # Whatever cannot be made of the message is wrong with it.
                known = type(error) is not JsonRpcInternalError
                self.refuse(identifier, error if known else JsonRpcInvalidParams())
            else:
                _log.warning("a message about %r cannot be read: %s", method, error)
            return
        super().handle_message(structured)

    def _admit(self, message: dict[str, Any]) -> None:
        """Make a request or notification whole.

        Raises:
            JsonRpcException: it is not to be handled.
        """
        method = message["method"]
        if message.get("jsonrpc") != self.VERSION or not isinstance(method, str):
            raise JsonRpcInvalidRequest
        if "id" in message and type(message["id"]) not in (int, str):
            raise JsonRpcInvalidRequest("an identifier is a string or a whole number")
        if self._workspace is None and method not in (types.INITIALIZE, types.EXIT):
            raise JsonRpcServerNotInitialized
        if method != types.EXIT and (self._shutdown or (self._workspace and method == types.INITIALIZE)):
            raise JsonRpcInvalidRequest(f"{method} comes too late")
        if self.get_message_type(method) is None:
            if "id" in message:
                raise JsonRpcMethodNotFound.of(method)
            message.setdefault("params", None)

    def refuse(self, identifier: int | str | None, error: JsonRpcException) -> None:
        """Answer a request with an error; None for one that has no identifier to be known by."""
        told = {"code": error.code, "message": error.message}
        self._send_data({"jsonrpc": self.VERSION, "id": identifier, "error": told})

    def open_documents(self) -> None:
        """Take over the folders of the workspace, and read texts as editors do."""
        self._workspace = Documents.of(self.workspace)


class Service(LanguageServer):
    """One editor's server."""

    protocol: _Protocol

    def __init__(self, configs: Sequence[str] = (), *, isolated: bool = False) -> None:
        super().__init__("torchlint", __version__, notebook_document_sync=_NOTEBOOKS, protocol_cls=_Protocol)
        self.worker = Worker()
        self.checks = Checks(self.worker)
        self.projects = Projects(self._complain, configs, isolated=isolated)
        # Checks that wait for the end of typing.
        self._waiting: dict[str, asyncio.Task[None]] = {}
        # What something else may concern and is to be checked for that, one after another: what is typed
        # meanwhile goes first.
        self._concerned: dict[str, None] = {}
        self._catching_up: asyncio.Task[None] | None = None
        # What is shown of the texts of each program.
        self._shown: dict[str, dict[Text, list[types.Diagnostic]]] = {}
        # Whether the editor asks for findings when it wants them, instead of being told.
        self.pulls = False

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Answer what is no JSON; anything else that goes wrong apart from a request is told to the user."""
        if source is JsonRpcException and isinstance(error, (ValueError, RecursionError)):
            self.protocol.refuse(None, JsonRpcParseError())
        else:
            super().report_server_error(error, source)

    # ------------------------------------------------------------------ what the editor can do

    def can(self, capability: str) -> bool:
        """Return whether the editor has a capability, such as ``workspace.configuration``."""
        return bool(get_capability(self.client_capabilities, capability))

    @property
    def versioned(self) -> bool:
        """Whether the editor takes edits that name the version of the text."""
        return self.can("workspace.workspace_edit.document_changes")

    @property
    def can_resolve_edits(self) -> bool:
        """Whether the editor asks for the edit of an action once it is accepted."""
        resolve = get_capability(self.client_capabilities, "text_document.code_action.resolve_support")
        return resolve is not None and "edit" in resolve.properties

    @property
    def documents(self) -> Documents:
        """What is open."""
        assert isinstance(self.workspace, Documents)
        return self.workspace

    def places_in(self, file: Path) -> Places | None:
        """Return the translation of places in a file, open or not; None for one that cannot be read."""
        uri = file.as_uri()
        program = self.documents.program(uri)
        if program is None:
            try:
                settings = self.projects.settings(file)
                notebook = None if settings is None else is_notebook(file, settings.extension)
                program = Program(uri, reading.read(file, notebook=notebook), {None: Text(uri, None)}, file)
            except SourceError:
                return None
        return self.places(program)

    def places(self, program: Program) -> Places:
        """Return the translation of places in a program, and in what else is open."""
        others = {other.file: other for other in self.documents.programs() if other.file is not None}
        return Places(program, self.workspace.position_codec, others)

    # ------------------------------------------------------------------ checks

    async def checked(self, uri: str) -> Checked | None:
        """Return what there is to show of the newest version of what has this URI; None if it is not open."""
        while (program := self.documents.program(uri)) is not None:
            settings = self.projects.settings(program.file) if program.supported else None
            around = await self._around(program) if settings is not None else None
            if self.documents.program(uri) != program:
                continue
            with contextlib.suppress(OvertakenError):
                checked = await self.checks.of(program, settings, around)
                scope = self.projects.scope(program.file)
                return replace(checked, diagnostics=tuple(scope.sort_out(None, checked.diagnostics).shown))
        return None

    async def _around(self, program: Program) -> Surroundings | None:
        """Return the project around a program, with what else is open of it."""
        if program.file is None:
            return None
        opened = {each.file: each.source.text for each in self.documents.programs() if each.file is not None}
        # Large folders take a while to search.
        layout = await asyncio.to_thread(self.projects.layout, program.file, opened)
        if layout is None:
            return None
        texts = {
            other.file: other.source
            for other in self.documents.programs()
            if other.file in layout.members and other.file != program.file
        }
        return Surroundings(layout, texts, self.projects.generation)

    def changed(self, uri: str, delay: float, *, alone: bool = False) -> None:
        """Check what has this URI in ``delay`` seconds unless it changes before, and show what is found.

        Unless it is checked ``alone``, then so are the other texts that are open of its project.
        """
        self.dismiss(uri)
        if delay and (program := self.documents.program(uri)) is not None:
            # There is nothing to compute, and so nothing to wait for.
            settings = self.projects.settings(program.file) if program.supported else None
            delay = 0 if settings is not None and oversized(program, settings) else delay
        if not self.pulls:
            self._waiting[uri] = task = asyncio.create_task(self._publish(uri, delay, alone=alone))
            task.add_done_callback(_failed)

    def concern(self, uris: Iterable[str]) -> None:
        """Check again what something else may concern, and show what is found if that is another."""
        self._concerned.update(dict.fromkeys(uris))
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = task = asyncio.create_task(self._catch_up())
            task.add_done_callback(_failed)

    async def _catch_up(self) -> None:
        while self._concerned:
            uri = next(iter(self._concerned))
            del self._concerned[uri]
            await self._refresh(uri, only_news=True)

    def dismiss(self, uri: str) -> None:
        """Abandon what is going on about what has this URI."""
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self.checks.abandon(uri)

    def closed(self, uri: str) -> None:
        """Forget what had this URI, and show nothing of it any more."""
        self.dismiss(uri)
        self.checks.forget(uri)
        self._show(uri, {})
        if not self.pulls:
            self.concern(program.uri for program in list(self.documents.programs()))

    async def _publish(self, uri: str, delay: float, *, alone: bool = False) -> None:
        if delay:
            await asyncio.sleep(delay)
        checked = await self._refresh(uri)
        # While a text is no program, what was found with it as one goes on to be shown.
        if alone or checked is None or checked.around is None:
            return
        if not is_broken(checked.diagnostics):
            # What the text has just ceased to name is concerned, too.
            files = checked.around.texts.keys() | checked.around.layout.configurable
            others = [other for other in self.documents.programs() if other.uri != uri]
            self.concern(other.uri for other in others if other.file in files)

    async def _refresh(self, uri: str, *, only_news: bool = False) -> Checked | None:
        """Show what is found in the newest version of what has this URI, unless that is shown already."""
        checked = await self.checked(uri)
        if checked is not None and checked.program == self.documents.program(uri):
            reported = self.reports(checked)
            found = {text: reported.get(text.uri, []) for text in checked.program.texts.values()}
            if not only_news or found != self._shown.get(uri):
                self._show(uri, found)
        return checked

    def reports(self, checked: Checked) -> dict[str, list[types.Diagnostic]]:
        """Return what was found, for the editor, by the URI of the text."""
        places = self.places(checked.program)
        found: dict[str, list[types.Diagnostic]] = {}
        for item in checked.diagnostics:
            uri, shown = report(item, places)
            found.setdefault(uri, []).append(shown)
        return found

    def _show(self, uri: str, found: Mapping[Text, list[types.Diagnostic]]) -> None:
        """Replace what the editor shows of the texts of a program."""
        gone = {text.uri for text in self._shown.pop(uri, {})} - {text.uri for text in found}
        for text in (*found, *(Text(old, None) for old in sorted(gone))):
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(text.uri, found.get(text, []), text.version)
            )
        if found:
            self._shown[uri] = dict(found)

    def recheck(self) -> None:
        """Check everything that is open anew: the settings, or files around it, may be others."""
        if not self.pulls:
            for program in list(self.documents.programs()):
                self.changed(program.uri, 0, alone=True)
        elif self.can("workspace.diagnostics.refresh_support"):
            self.workspace_diagnostic_refresh(None)

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

    @property
    def watches(self) -> bool:
        """Whether the editor says when a file changes on which findings depend."""
        return self.can("workspace.did_change_watched_files.dynamic_registration")

    async def watch(self) -> None:
        """Ask the editor to say when a file changes on which findings depend."""
        if not self.watches:
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


def _failed(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error("a check failed", exc_info=task.exception())
