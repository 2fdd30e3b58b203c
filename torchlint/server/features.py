"""The messages of the protocol that the server answers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from torchlint.server import actions, jobs
from torchlint.server.checks import OvertakenError
from torchlint.server.documents import Document
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
    """A server that knows its answers."""
    service = Service(configs, isolated=isolated)
    service.feature(types.INITIALIZE)(_initialize)
    service.feature(types.INITIALIZED)(_initialized)
    service.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    service.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_typed)
    service.feature(types.TEXT_DOCUMENT_DID_SAVE)(_saved)
    service.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
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
            inter_file_dependencies=False, workspace_diagnostics=False, identifier="torchlint"
        )
        service.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)(_pulled)


async def _initialized(service: Service, _: types.InitializedParams) -> None:
    await service.watch()
    await service.ask_preferences()
    service.recheck()


def _files_changed(service: Service, _: types.DidChangeWatchedFilesParams) -> None:
    service.projects.reload()
    service.recheck()


async def _preferences_changed(service: Service, params: types.DidChangeConfigurationParams) -> None:
    if params.settings:
        service.projects.prefer(params.settings)
    else:
        await service.ask_preferences()
        service.projects.reload()
    service.recheck()


def _folders_changed(service: Service, _: types.DidChangeWorkspaceFoldersParams) -> None:
    service.use_folders()
    service.recheck()


# --- texts -----------------------------------------------------------------------------------------------


def _opened(service: Service, params: types.DidOpenTextDocumentParams) -> None:
    document = service.document(params.text_document.uri)
    if document is not None:
        service.changed(document, 0)


def _typed(service: Service, params: types.DidChangeTextDocumentParams) -> None:
    document = service.document(params.text_document.uri)
    if document is not None and not service.projects.preferences.on_save:
        service.changed(document, DEBOUNCE)


def _saved(service: Service, params: types.DidSaveTextDocumentParams) -> None:
    document = service.document(params.text_document.uri)
    if document is not None:
        service.changed(document, 0)


def _closed(service: Service, params: types.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    service.dismiss(uri)
    if not service.pulls:
        service.show(uri, [])


async def _pulled(service: Service, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
    document = service.document(params.text_document.uri)
    found: Sequence[types.Diagnostic] = ()
    if document is not None:
        with contextlib.suppress(OvertakenError):
            found = service.reports(document, await service.checked(document))
    return types.RelatedFullDocumentDiagnosticReport(found)


# --- what can be done about findings -----------------------------------------------------------------------


async def _actions(service: Service, params: types.CodeActionParams) -> list[types.CodeAction]:
    document = service.document(params.text_document.uri)
    if document is None:
        return []
    try:
        checked = await service.checked(document)
    except OvertakenError:
        return []
    if checked.settings is None:
        return []
    only = params.context.only and [getattr(kind, "value", kind) for kind in params.context.only]
    found: list[types.CodeAction] = []
    if actions.wanted(types.CodeActionKind.QuickFix.value, only):
        places = service.places(checked.source)
        found += actions.quick_fixes(
            checked.diagnostics, params.range, places, document, versioned=service.versioned
        )
    all_wanted = service.projects.preferences.fix_all and actions.wanted(actions.FIX_ALL, only)
    if all_wanted and any(map(actions.safe, checked.diagnostics)):
        offer = actions.fix_all(document)
        found.append(offer if service.can_resolve_edits else await _with_edit(service, document, offer))
    return found


async def _resolved(service: Service, action: types.CodeAction) -> types.CodeAction:
    data: Any = action.data
    document = service.document(data["uri"]) if isinstance(data, dict) and "uri" in data else None
    return action if document is None or action.edit else await _with_edit(service, document, action)


async def _with_edit(service: Service, document: Document, offer: types.CodeAction) -> types.CodeAction:
    """The offer of all fixes with the edit that makes them."""
    with contextlib.suppress(OvertakenError, WorkerError):
        checked = await service.checked(document)
        if checked.settings is not None:
            edits = await service.worker.do(jobs.fix, checked.source, checked.settings)
            places = service.places(checked.source)
            offer.edit = actions.change(edits, places, document, versioned=service.versioned)
    return offer


async def _hover(service: Service, params: types.HoverParams) -> types.Hover | None:
    document = service.document(params.text_document.uri)
    if document is None:
        return None
    try:
        checked = await service.checked(document)
    except OvertakenError:
        return None
    return hover(params.position, checked.diagnostics, service.places(checked.source))
