"""The messages of the protocol that the server answers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from torchlint.server import actions, jobs, preferences
from torchlint.server.documents import file_of
from torchlint.server.projects import is_setting
from torchlint.server.reports import hover
from torchlint.server.service import DEBOUNCE, Service
from torchlint.server.worker import WorkerError


def serve(configs: Sequence[str] = (), *, isolated: bool = False) -> None:
    """Talk to an editor on standard input and output until it says goodbye.

    ``configs`` and ``isolated`` are those of the command line; see `Resolver`.
    """
    service = create(configs, isolated=isolated)
    try:
        service.start_io()
    finally:
        service.worker.stop()


def create(configs: Sequence[str] = (), *, isolated: bool = False) -> Service:
    """Return a server that knows its answers."""
    service = Service(configs, isolated=isolated)
    service.feature(types.INITIALIZE)(_initialize)
    service.feature(types.INITIALIZED)(_initialized)
    service.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    service.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_typed)
    service.feature(types.TEXT_DOCUMENT_DID_SAVE)(_saved)
    service.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    service.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(_notebook_opened)
    service.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(_notebook_typed)
    service.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(_notebook_saved)
    service.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(_notebook_closed)
    service.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_files_changed)
    service.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(_preferences_changed)
    service.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(_folders_changed)
    offered = types.CodeActionOptions(code_action_kinds=actions.KINDS, resolve_provider=True)
    service.feature(types.TEXT_DOCUMENT_CODE_ACTION, offered)(_actions)
    service.feature(types.CODE_ACTION_RESOLVE)(_resolved)
    service.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    return service


# --- the session ---------------------------------------------------------------------------------------


def _initialize(service: Service, params: types.InitializeParams) -> None:
    service.worker.warm_up()
    service.protocol.open_documents()
    service.projects.prefer(params.initialization_options)
    service.use_folders()
    # Who asks for findings gets them whenever it asks, and not only for what is saved.
    service.pulls = service.can("text_document.diagnostic") and not service.projects.preferences.on_save
    if service.pulls:
        options = types.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False, identifier="torchlint"
        )
        service.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(_pulled)


async def _initialized(service: Service, _: types.InitializedParams) -> None:
    await service.watch()
    await service.ask_preferences()
    service.recheck()


def _files_changed(service: Service, params: types.DidChangeWatchedFilesParams) -> None:
    changes = [(change, file_of(change.uri)) for change in params.changes]
    if any(file is None or is_setting(file) for _, file in changes):
        service.projects.reload()
    elif any(
        change.type is types.FileChangeType.Created
        or (
            (change.type is types.FileChangeType.Deleted or service.documents.program(change.uri) is None)
            and service.projects.concerns(file)
        )
        for change, file in changes
        if file is not None
    ):
        service.projects.look_again()
    else:
        # What is open counts, and not what was saved of it.
        return
    service.recheck()


async def _preferences_changed(service: Service, params: types.DidChangeConfigurationParams) -> None:
    if preferences.concern(params.settings):
        service.projects.prefer(params.settings)
    else:
        await service.ask_preferences()
        service.projects.reload()
    service.recheck()


def _folders_changed(service: Service, _: types.DidChangeWorkspaceFoldersParams) -> None:
    service.use_folders()
    service.recheck()


# --- texts and notebooks ----------------------------------------------------------------------------------


def _opened(service: Service, params: types.DidOpenTextDocumentParams) -> None:
    _settled(service, params.text_document.uri)


def _typed(service: Service, params: types.DidChangeTextDocumentParams) -> None:
    _edited(service, params.text_document.uri)


def _saved(service: Service, params: types.DidSaveTextDocumentParams) -> None:
    _settled(service, params.text_document.uri)


def _closed(service: Service, params: types.DidCloseTextDocumentParams) -> None:
    service.closed(params.text_document.uri)


def _notebook_opened(service: Service, params: types.DidOpenNotebookDocumentParams) -> None:
    _settled(service, params.notebook_document.uri)


def _notebook_typed(service: Service, params: types.DidChangeNotebookDocumentParams) -> None:
    _edited(service, params.notebook_document.uri)


def _notebook_saved(service: Service, params: types.DidSaveNotebookDocumentParams) -> None:
    _settled(service, params.notebook_document.uri)


def _notebook_closed(service: Service, params: types.DidCloseNotebookDocumentParams) -> None:
    service.closed(params.notebook_document.uri)


def _settled(service: Service, uri: str) -> None:
    if not service.watches:
        service.projects.reload()
    service.changed(uri, 0)


def _edited(service: Service, uri: str) -> None:
    if service.projects.preferences.on_save:
        service.dismiss(uri)
    else:
        service.changed(uri, DEBOUNCE)


async def _pulled(
    service: Service, params: types.DocumentDiagnosticParams
) -> types.RelatedFullDocumentDiagnosticReport:
    checked = await service.checked(params.text_document.uri)
    found = service.reports(checked).get(params.text_document.uri, []) if checked else []
    return types.RelatedFullDocumentDiagnosticReport(found)


# --- what can be done about findings -----------------------------------------------------------------------


async def _actions(service: Service, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    checked = await service.checked(uri)
    if checked is None or checked.settings is None:
        return []
    only = params.context.only and [getattr(kind, "value", kind) for kind in params.context.only]
    found: list[types.CodeAction] = []
    if actions.wanted(types.CodeActionKind.QuickFix.value, only):
        places = service.places(checked.program)
        span = places.span(uri, params.range)
        if span is not None:
            found += actions.quick_fixes(
                checked.diagnostics, span, places, service.places_in, versioned=service.versioned
            )
    kind = actions.FIX_NOTEBOOK if checked.program.source.in_cells else actions.FIX_ALL
    all_wanted = service.projects.preferences.fix_all and actions.wanted(kind, only)
    # Working out the edits takes several checks: too long for who only looks what could be done.
    if all_wanted and (only or service.can_resolve_edits) and any(map(actions.safe, checked.diagnostics)):
        offer = actions.fix_all(uri, kind)
        found.append(offer if service.can_resolve_edits else await _with_edit(service, offer, uri))
    return found


async def _resolved(service: Service, action: types.CodeAction) -> types.CodeAction:
    data: Any = action.data
    known = isinstance(data, dict) and "uri" in data and not action.edit
    return await _with_edit(service, action, data["uri"]) if known else action


async def _with_edit(service: Service, offer: types.CodeAction, uri: str) -> types.CodeAction:
    """Return the offer of all fixes with the edits that make them."""
    checked = await service.checked(uri)
    if checked is not None and checked.settings is not None:
        with contextlib.suppress(WorkerError):
            edits = await service.worker.do(
                jobs.fix,
                *(checked.program.source, checked.settings, checked.around),
                service.projects.scope(checked.program.file),
            )
            places = service.places(checked.program)
            offer.edit = actions.change(edits, places, versioned=service.versioned)
    return offer


async def _hover(service: Service, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    checked = await service.checked(uri)
    if checked is None:
        return None
    places = service.places(checked.program)
    offset = places.offset(uri, params.position)
    return None if offset is None else hover(offset, checked.diagnostics, places)
