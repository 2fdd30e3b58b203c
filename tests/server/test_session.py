"""The server as an editor sees it, over its pipes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types

from torchlint import config, fixer, registry
from torchlint.render import page
from torchlint.server.service import DEBOUNCE
from torchlint.source import Source

if TYPE_CHECKING:
    from tests.server.conftest import Editor

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]

# One finding with an unsafe fix, and one with a safe one.
ITEM = "total += loss.item()"
EVALUATION = "for x, y in loader:\n        model(x)"
BAD = """\
import torch
from torch import nn


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return locals()


attention = nn.MultiheadAttention(8, 2)
value, _ = attention(query, key, value)
"""
GOOD = "import torch\n"
UNSAFE, SAFE = "TL202", "TL403"
WHY = "code that reads the total later finds a tensor instead of a number"


def place(text: str, word: str, *, end: bool = False, units: str = "utf-16-le") -> types.Position:
    """Where a word begins or ends, in the units of a codec."""
    offset = text.index(word) + (len(word) if end else 0)
    line = text.count("\n", 0, offset)
    before = text[text.rfind("\n", 0, offset) + 1 : offset]
    return types.Position(line, len(before.encode(units)) // len("x".encode(units)))


def around(text: str, word: str, units: str = "utf-16-le") -> types.Range:
    """The range of a word, in the units of a codec."""
    return types.Range(place(text, word, units=units), place(text, word, end=True, units=units))


def codes(found: Any) -> list[str]:
    return [item.code for item in found]


NAMES = iter(range(1_000))


@pytest.fixture
def uri(editor: Editor) -> Iterator[str]:
    """A file of its own in the editor's folder, closed afterwards."""
    name = editor.uri(f"file_{next(NAMES)}.py")
    yield name
    if name in editor.texts:
        editor.close(name)


# --- findings ---------------------------------------------------------------------------------------------


async def test_findings_are_shown_when_a_text_is_opened(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    found = await editor.told(uri)
    assert codes(found) == [UNSAFE, SAFE]
    item = found[0]
    assert item.data is not None and item.related_information is not None
    assert item.range == around(BAD, "loss.item()")
    assert item.source == "torchlint"
    assert item.code_description is None
    assert item.data["name"] == "item-in-hot-loop"
    assert item.data["fix"]["applicability"] == "unsafe"
    assert item.data["fix"]["unsafeReason"] == WHY
    (related,) = item.related_information
    assert related.location.uri == uri
    assert related.location.range.start == place(BAD, "for x, y")
    assert editor.published[uri][0].version == editor.last_version


OF_LOW_IMPACT = "import torch\n\nx = torch.FloatTensor(3)\nw = torch.zeros(3)\nw.require_grad = True\n"


async def test_what_is_of_low_impact_is_a_hint_and_an_error_an_error(editor: Editor, uri: str) -> None:
    editor.open(uri, OF_LOW_IMPACT)
    found = {item.code: item.severity for item in await editor.told(uri)}
    assert found == {"TL209": types.DiagnosticSeverity.Hint, "TL308": types.DiagnosticSeverity.Error}


async def test_the_editor_says_which_impact_is_shown(launch: Callable[..., Any], tmp_path: Path) -> None:
    async with launch(tmp_path, "visual-studio-code", {"impact": "medium"}) as editor:
        uri = editor.uri("train.py")
        editor.open(uri, OF_LOW_IMPACT)
        assert codes(await editor.told(uri)) == ["TL308"]
        assert await editor.actions(uri, around(OF_LOW_IMPACT, "torch.FloatTensor(3)"), "quickfix") == []
        assert await editor.actions(uri, around(OF_LOW_IMPACT, "w.require_grad"), "quickfix") != []


async def test_what_is_typed_is_checked_once_typing_pauses(editor: Editor, uri: str) -> None:
    editor.open(uri, GOOD)
    assert await editor.told(uri) == []
    for end in range(1, 8):
        version = editor.replace(uri, BAD + "#" * end)
        await asyncio.sleep(DEBOUNCE / 10)
    assert codes(await editor.told(uri, after=1)) == [UNSAFE, SAFE]
    assert [params.version for params in editor.published[uri]][1:] == [version]


async def test_edits_of_a_part_are_followed(editor: Editor, uri: str) -> None:
    """Over a form feed, which ends a line to Python's `str.splitlines` and to no editor."""
    text = "# one \x0c two\n" + BAD.replace("\n", "\r\n")
    editor.open(uri, text)
    assert codes(await editor.told(uri)) == [UNSAFE, SAFE]
    editor.type(uri, around(text, "loss.item()"), "loss.detach()")
    editor.texts[uri] = text.replace("loss.item()", "loss.detach()")
    assert codes(await editor.told(uri, after=1)) == [SAFE]
    await check_fix_all(editor, uri)


async def test_a_saved_text_is_checked_at_once(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    await editor.told(uri)
    editor.replace(uri, GOOD)
    editor.save(uri)
    assert await editor.told(uri, after=1) == []


async def test_a_closed_text_has_no_findings(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    await editor.told(uri)
    editor.close(uri)
    assert await editor.told(uri, after=1) == []


async def test_a_text_that_is_no_program_yet_has_one_finding(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    await editor.told(uri)
    broken = BAD.replace("return locals()", "return (locals()")
    editor.replace(uri, broken)
    (error,) = await editor.told(uri, after=1)
    assert (error.code, error.severity) == ("TL001", types.DiagnosticSeverity.Error)
    assert error.range.start == place(broken, "(locals")
    assert await editor.actions(uri, error.range) == []
    editor.replace(uri, BAD)
    assert codes(await editor.told(uri, after=2)) == [UNSAFE, SAFE]


async def test_a_text_without_a_file_is_checked(editor: Editor) -> None:
    uri = "untitled:Untitled-1"
    editor.open(uri, BAD)
    assert codes(await editor.told(uri)) == [UNSAFE, SAFE]
    editor.close(uri)


async def test_other_languages_and_excluded_files_are_left_alone(editor: Editor) -> None:
    for name, language in (("text.txt", "plaintext"), ("build/generated.py", "python")):
        uri = editor.uri(name)
        editor.open(uri, BAD, language)
        assert await editor.told(uri) == []
        assert await editor.actions(uri, around(BAD, BAD)) == []
        editor.close(uri)


# --- what can be done about them ----------------------------------------------------------------------------


async def test_a_safe_fix_is_preferred(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    kind = types.CodeActionKind.QuickFix
    fix, disable = await editor.actions(uri, around(BAD, "attention(query"), kind)
    assert (fix.kind, fix.is_preferred) == (kind, True)
    assert fix.edit and fix.edit.document_changes
    assert fix.edit.document_changes[0].text_document.version is not None  # type: ignore[union-attr]
    assert codes(fix.diagnostics) == [SAFE]
    assert editor.applied(uri, fix.edit) == BAD.replace("key, value)", "key, value, need_weights=False)")
    assert disable.title == "Disable TL403 for this line"
    assert not disable.is_preferred


async def test_an_unsafe_fix_is_named_so(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    fix, _ = await editor.actions(uri, around(BAD, "loss.item()"), types.CodeActionKind.QuickFix)
    assert fix.title.endswith(f" (unsafe: {WHY})")
    assert fix.is_preferred is False
    assert editor.applied(uri, fix.edit) == BAD.replace("loss.item()", "loss.detach().double()")


async def test_actions_are_of_the_newest_text(editor: Editor, uri: str) -> None:
    editor.open(uri, GOOD)
    assert await editor.told(uri) == []
    editor.replace(uri, BAD)
    fix, _ = await editor.actions(uri, around(BAD, "loss.item()"), types.CodeActionKind.QuickFix)
    assert editor.applied(uri, fix.edit) == BAD.replace("loss.item()", "loss.detach().double()")


async def check_fix_all(editor: Editor, uri: str) -> None:
    """The action that fixes all gives what the fixer gives."""
    (action,) = await editor.actions(uri, types.Range(*[types.Position(0, 0)] * 2), "source.fixAll")
    assert (action.kind, action.edit) == ("source.fixAll.torchlint", None)
    resolved = await editor.client.code_action_resolve_async(action)
    text = editor.texts[uri]
    settings = config.Resolver(registry.catalogue(), isolated=True).lint(editor.folder / "any.py")
    expected = fixer.fix(Source.from_text(text, Path("any.py")), settings).text
    assert editor.applied(uri, resolved.edit) == expected != text
    assert "loss.detach().item" not in expected


async def test_all_safe_fixes_are_made_at_once(editor: Editor, uri: str) -> None:
    text = BAD + "\n\n" + BAD.replace("import torch\n", "").replace("query", "other")
    editor.open(uri, text)
    await check_fix_all(editor, uri)
    nowhere = types.Range(types.Position(0, 0), types.Position(0, 0))
    assert [action.kind for action in await editor.actions(uri, nowhere, "quickfix")] == []
    assert [action.kind for action in await editor.actions(uri, nowhere, "source")] == [
        "source.fixAll.torchlint"
    ]
    assert await editor.actions(uri, nowhere, "source.organizeImports", "refactor") == []


async def test_fixing_all_is_not_offered_for_unsafe_fixes(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD[: BAD.index("attention =")])
    assert codes(await editor.told(uri)) == [UNSAFE]
    assert await editor.actions(uri, around(BAD, ITEM), "source.fixAll") == []


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("", "  # noqa: TL202"),
        ("   ", "  # noqa: TL202"),
        ("  # noqa: E501,TL101", "  # noqa: E501,TL101, TL202"),
        ("  # the total", "  # the total  # noqa: TL202"),
        ("  # noqa: E501  why not", "  # noqa: E501, TL202  why not"),
    ],
)
async def test_a_line_can_be_silenced(editor: Editor, uri: str, comment: str, expected: str) -> None:
    text = BAD.replace(ITEM, f"{ITEM}{comment}")
    editor.open(uri, text)
    _, disable = await editor.actions(uri, around(text, "loss.item()"), "quickfix")
    silenced = editor.applied(uri, disable.edit)
    assert silenced == BAD.replace(ITEM, f"{ITEM}{expected}")
    editor.replace(uri, silenced)
    assert UNSAFE not in codes(await editor.told(uri, after=1))


async def test_a_statement_of_several_lines_is_silenced_at_its_end(editor: Editor, uri: str) -> None:
    text = BAD.replace(ITEM, "total += (\n            loss.item()\n        )")
    editor.open(uri, text)
    _, disable = await editor.actions(uri, around(text, "loss.item()"), "quickfix")
    silenced = editor.applied(uri, disable.edit)
    assert "        )  # noqa: TL202\n" in silenced
    editor.replace(uri, silenced)
    assert UNSAFE not in codes(await editor.told(uri, after=1))


async def hovered(editor: Editor, uri: str, where: types.Position) -> types.Hover | None:
    return await editor.client.text_document_hover_async(
        types.HoverParams(types.TextDocumentIdentifier(uri), where)
    )


async def test_a_finding_shows_its_page(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    shown = await hovered(editor, uri, place(BAD, "loss.item()"))
    assert shown is not None and isinstance(shown.contents, types.MarkupContent)
    assert shown.contents.kind == types.MarkupKind.Markdown
    assert shown.contents.value == page.render(registry.catalogue()[UNSAFE])
    assert shown.range == around(BAD, "loss.item()")
    assert await hovered(editor, uri, place(BAD, "total = 0.0")) is None


async def test_a_code_in_a_comment_shows_its_page(editor: Editor, uri: str) -> None:
    text = BAD.replace(ITEM, f"{ITEM}  # noqa: E501, TL202")
    editor.open(uri, text)
    shown = await hovered(editor, uri, place(text, "TL202"))
    assert shown is not None and isinstance(shown.contents, types.MarkupContent)
    assert shown.contents.value == page.render(registry.catalogue()[UNSAFE])
    assert await hovered(editor, uri, place(text, "E501")) is None


# --- settings ---------------------------------------------------------------------------------------------


def changed(editor: Editor, path: Path) -> None:
    event = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))


async def test_config_files_are_followed_when_they_change(editor: Editor) -> None:
    folder = editor.folder / "configured"
    folder.mkdir()
    path = folder / "torchlint.toml"
    path.write_text('ignore = ["TL202"]\n')
    uri = (folder / "train.py").as_uri()
    editor.open(uri, BAD)
    assert codes(await editor.told(uri)) == [SAFE]

    (watching,) = editor.registered
    globs = [watcher["globPattern"] for watcher in watching.register_options["watchers"]]  # type: ignore[index]
    assert {"**/torchlint.toml", "**/.torchlint.toml", "**/pyproject.toml"} <= set(globs)

    path.write_text("ignore = []\n")
    changed(editor, path)
    assert codes(await editor.told(uri, after=1)) == [UNSAFE, SAFE]

    editor.client.messages.clear()
    path.write_text("ignroe = []\n")
    changed(editor, path)
    assert codes(await editor.told(uri, after=2)) == [UNSAFE, SAFE]
    changed(editor, path)
    assert codes(await editor.told(uri, after=3)) == [UNSAFE, SAFE]
    (message,) = editor.client.messages
    assert message.type == types.MessageType.Error
    assert "unknown key `ignroe`; did you mean `ignore`?" in message.message

    path.write_text('select = ["TL403"]\n')
    changed(editor, path)
    assert codes(await editor.told(uri, after=4)) == [SAFE]
    editor.close(uri)


async def test_the_targets_of_projects_are_looked_up_again(editor: Editor) -> None:
    folder = editor.folder / "targeted"
    folder.mkdir()
    requirements = folder / "requirements.txt"
    requirements.write_text("torch>=1.4\n")
    uri = (folder / "loop.py").as_uri()
    editor.open(uri, "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n")
    assert await editor.told(uri) == []
    requirements.write_text("torch>=2.4\n")
    changed(editor, requirements)
    assert codes(await editor.told(uri, after=1)) == ["TL507"]
    editor.close(uri)


async def test_the_settings_of_the_editor_are_followed(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    await editor.told(uri)

    def configure(**settings: Any) -> None:
        editor.client.workspace_did_change_configuration(
            types.DidChangeConfigurationParams({"torchlint": settings})
        )

    configure(ignore=["TL4"])
    assert codes(await editor.told(uri, after=1)) == [UNSAFE]
    configure(configuration={"select": ["TL4"]}, fixAll=False)
    assert codes(await editor.told(uri, after=2)) == [SAFE]
    assert await editor.actions(uri, around(BAD, BAD), "source.fixAll") == []
    editor.client.messages.clear()
    configure(selct=["TL4"])
    assert codes(await editor.told(uri, after=3)) == [SAFE]
    assert "unknown key `selct` in the editor's settings; did you mean `select`?" in (
        editor.client.messages[0].message
    )
    editor.client.messages.clear()
    others = types.DidChangeConfigurationParams({"pylsp": {"plugins": {}}})
    editor.client.workspace_did_change_configuration(others)
    assert codes(await editor.told(uri, after=4)) == [SAFE]
    configure()
    assert codes(await editor.told(uri, after=5)) == [UNSAFE, SAFE]
    assert editor.client.messages == []


async def test_folders_come_and_go(editor: Editor, tmp_path: Path) -> None:
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams({"torchlint": {"configuration": "nested/mine.toml"}})
    )
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "mine.toml").write_text('select = ["TL202"]\n')
    uri = (tmp_path / "inner" / "train.py").as_uri()
    # Outside of every folder the path of the config file starts beside the text, where there is none.
    editor.open(uri, BAD)
    assert await editor.told(uri) == []
    assert "nested/mine.toml, which is not a file" in editor.client.messages[-1].message
    folder = types.WorkspaceFolder(tmp_path.as_uri(), "other")

    def change(added: list[types.WorkspaceFolder], removed: list[types.WorkspaceFolder]) -> None:
        event = types.WorkspaceFoldersChangeEvent(added, removed)
        editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

    change([folder], [])
    assert codes(await editor.told(uri, after=1)) == [UNSAFE]
    change([], [folder])
    await editor.told(uri, after=2)
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams({"torchlint": {}}))
    assert codes(await editor.told(uri, after=3)) == [UNSAFE, SAFE]
    editor.close(uri)


# --- other editors ------------------------------------------------------------------------------------------

ASTRAL = BAD.replace(ITEM, 'total += ["😋é", loss.item()][1]')


async def test_columns_are_counted_in_utf_16(editor: Editor, uri: str) -> None:
    editor.open(uri, ASTRAL)
    assert (await editor.told(uri))[0].range == around(ASTRAL, "loss.item()")
    editor.type(uri, around(ASTRAL, "loss.item"), "loss.detach().item")
    editor.texts[uri] = text = ASTRAL.replace("loss.item", "loss.detach().item")
    assert (await editor.told(uri, after=1))[0].range == around(text, "loss.detach().item()")
    (disable,) = await editor.actions(uri, around(text, "loss.detach().item()"), "quickfix")
    assert "item()][1]  # noqa: TL202\n" in editor.applied(uri, disable.edit)


async def test_an_editor_that_asks_for_findings(launch: Callable[..., Any], tmp_path: Path) -> None:
    """Neovim: it pulls findings, counts in bytes, takes edits without versions and watches no files."""
    async with launch(tmp_path, "neovim") as neovim:
        neovim.units = "utf-8"
        uri = neovim.uri("train.py")

        async def pulled() -> list[types.Diagnostic]:
            report = await neovim.client.text_document_diagnostic_async(
                types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
            )
            assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
            return list(report.items)

        neovim.open(uri, ASTRAL)
        first, second = await pulled()
        assert first.range == around(ASTRAL, "loss.item()", "utf-8")
        assert second.code == SAFE
        (disable,) = await neovim.actions(uri, first.range, "quickfix")
        assert disable.edit and disable.edit.changes and not disable.edit.document_changes
        silenced = neovim.applied(uri, disable.edit)
        assert "[1]  # noqa: TL202\n" in silenced

        (tmp_path / "torchlint.toml").write_text('ignore = ["TL403"]\n')
        neovim.save(uri)
        assert codes(await pulled()) == [UNSAFE]
        (tmp_path / "torchlint.toml").unlink()
        neovim.save(uri)

        neovim.replace(uri, silenced)
        # Asked three times for texts of which two are gone when they are checked.
        asked = [asyncio.ensure_future(pulled())]
        for text in (ASTRAL + "# more\n", silenced):
            neovim.replace(uri, text)
            asked.append(asyncio.ensure_future(pulled()))
        assert [codes(found) for found in await asyncio.gather(*asked)][-1] == [SAFE]
        assert neovim.published == {}


def test_every_answer_is_known_as_one_of_the_server() -> None:
    """pygls passes the server only to functions whose annotations it can evaluate, and ignores why it cannot.

    In another process, since some versions of Python remember how the names in them were resolved by then.
    """
    program = (
        "import typing; from torchlint.server import features; "
        "found = [f for f in vars(features).values() if getattr(f, '__module__', '') == features.__name__]; "
        "print(len([typing.get_type_hints(f) for f in found]))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > len(("initialize", "open", "change", "close", "pull", "hover"))


async def test_an_editor_that_is_gone_is_not_waited_for(launch: Callable[..., Any], tmp_path: Path) -> None:
    async with launch(tmp_path) as editor:
        # Some seconds of work.
        editor.open(editor.uri("long.py"), "\n".join(BAD.replace("train", f"train{i}") for i in range(60)))
        await asyncio.sleep(0.1)
        before = time.monotonic()
    assert time.monotonic() - before < 10


async def test_a_closed_pipe_ends_the_server() -> None:
    command = [sys.executable, "-m", "torchlint", "server"]
    server = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    said, _ = await asyncio.wait_for(server.communicate(b""), 30)
    assert (said, server.returncode) == (b"", 0)


async def test_an_editor_that_checks_on_save(launch: Callable[..., Any], tmp_path: Path) -> None:
    """Emacs: it counts in characters; and it was told to wait until a text is saved."""
    options = {"lint": {"run": "onSave"}, "select": ["TL202"]}
    async with launch(tmp_path, "emacs", options, "--stdio") as emacs:
        uri = emacs.uri("train.py")
        emacs.open(uri, ASTRAL)
        (found,) = await emacs.told(uri)
        assert found.range == around(ASTRAL, "loss.item()", "utf-32-le")
        emacs.replace(uri, GOOD)
        await asyncio.sleep(2 * DEBOUNCE)
        assert len(emacs.published[uri]) == 1
        emacs.save(uri)
        assert await emacs.told(uri, after=1) == []


async def test_a_question_can_be_taken_back(editor: Editor, uri: str) -> None:
    editor.open(uri, BAD)
    await editor.told(uri)
    editor.replace(uri, BAD * 30)
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(uri), around(BAD, ITEM), types.CodeActionContext([])
    )
    identifier = "asked-and-taken-back"
    answer = editor.client.protocol.send_request_async(  # type: ignore[no-untyped-call]
        types.TEXT_DOCUMENT_CODE_ACTION, params, msg_id=identifier
    )
    asked = asyncio.ensure_future(answer)
    await asyncio.sleep(0.05)
    editor.client.cancel_request(types.CancelParams(identifier))
    with pytest.raises(Exception, match="is canceled"):
        await asyncio.wait_for(asked, 20)
    editor.replace(uri, BAD)
    assert codes(await editor.told(uri, after=1)) == [UNSAFE, SAFE]


# --- notebooks ----------------------------------------------------------------------------------------------

CELLS = (
    ("markdown", "# A *title*"),
    ("python", "%matplotlib inline\nimport torch\nfrom torch import nn"),
    ("python", "%%bash\nls"),
    ("python", "attention = nn.MultiheadAttention(8, 2)\nvalue, _ = attention(query, key, value)"),
    ("python", 'def mean(model, loader):\n    "😋"; return [model(x.cuda()).mean().item() for x in loader]'),
)


def cell_uri(number: int) -> str:
    return f"vscode-notebook-cell:/notebook.ipynb#C{number}"


def cells() -> tuple[list[types.NotebookCell], list[types.TextDocumentItem]]:
    kinds = types.NotebookCellKind
    return [
        types.NotebookCell(kinds.Markup if language == "markdown" else kinds.Code, cell_uri(number))
        for number, (language, _) in enumerate(CELLS)
    ], [
        types.TextDocumentItem(cell_uri(number), language, 1, text)
        for number, (language, text) in enumerate(CELLS)
    ]


async def test_cells_of_a_notebook_are_one_program(editor: Editor) -> None:
    uri = editor.uri("notebook.ipynb")
    structure, texts = cells()
    client = editor.client
    client.notebook_document_did_open(
        types.DidOpenNotebookDocumentParams(
            types.NotebookDocument(uri, "jupyter-notebook", 1, structure), texts
        )
    )
    last, item = cell_uri(3), cell_uri(4)
    (found,) = await editor.told(last)
    assert (found.code, found.range) == (SAFE, around(CELLS[3][1], "attention(query, key, value)"))
    (waiting,) = await editor.told(item)
    assert waiting.code == UNSAFE
    assert waiting.range.start == place(CELLS[4][1], "model(x")
    assert await editor.told(cell_uri(1)) == []
    assert cell_uri(0) not in editor.published

    editor.texts[last], editor.texts[item] = CELLS[3][1], CELLS[4][1]
    fix, disable = await editor.actions(last, found.range, "quickfix")
    fixed = CELLS[3][1].replace("key, value)", "key, value, need_weights=False)")
    assert editor.applied(last, fix.edit) == fixed
    assert editor.applied(last, disable.edit) == f"{CELLS[3][1]}  # noqa: TL403"
    (disable,) = await editor.actions(item, waiting.range, "quickfix")
    assert editor.applied(item, disable.edit) == f"{CELLS[4][1]}  # noqa: TL202"

    (everything,) = await editor.actions(last, found.range, "notebook.source.fixAll")
    assert everything.kind == "notebook.source.fixAll.torchlint"
    resolved = await client.code_action_resolve_async(everything)
    assert editor.applied(last, resolved.edit) == fixed

    shown = await hovered(editor, item, waiting.range.start)
    assert shown is not None and shown.range == waiting.range
    assert await hovered(editor, cell_uri(2), types.Position(0, 0)) is None

    # The cell is edited, and the one behind it goes.
    content = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, last),
        [types.TextDocumentContentChangePartial(around(CELLS[3][1], "value, _ ="), "output, _ =")],
    )
    gone = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(4, 1), did_close=[types.TextDocumentIdentifier(item)]
    )
    change = types.NotebookDocumentCellChanges(structure=gone, text_content=[content])
    client.notebook_document_did_change(
        types.DidChangeNotebookDocumentParams(
            types.VersionedNotebookDocumentIdentifier(2, uri), types.NotebookDocumentChangeEvent(cells=change)
        )
    )
    assert codes(await editor.told(last, after=1)) == [SAFE]
    assert await editor.told(item, after=1) == []
    client.notebook_document_did_save(
        types.DidSaveNotebookDocumentParams(types.NotebookDocumentIdentifier(uri))
    )
    assert codes(await editor.told(last, after=2)) == [SAFE]

    client.notebook_document_did_close(
        types.DidCloseNotebookDocumentParams(
            types.NotebookDocumentIdentifier(uri),
            [types.TextDocumentIdentifier(text.uri) for text in texts[:-1]],
        )
    )
    assert await editor.told(last, after=3) == []


# --- messages that are none -------------------------------------------------------------------------------

HOVER = types.TEXT_DOCUMENT_HOVER
# What an editor sends, and the identifier and the code of the error that it gets.
MALFORMED: list[tuple[str | bytes | dict[str, Any], Any, int]] = [
    ("{", None, -32700),
    (b"\xff\xfe", None, -32700),
    ("[" * 100_000, None, -32700),
    ("[]", None, -32600),
    ("3", None, -32600),
    ("null", None, -32600),
    ({"jsonrpc": "1.0", "id": 1, "method": HOVER, "params": {}}, 1, -32600),
    ({"id": 2, "method": HOVER, "params": {}}, 2, -32600),
    ({"jsonrpc": "2.0", "id": 3, "method": 7}, 3, -32600),
    ({"jsonrpc": "2.0", "id": [4], "method": HOVER, "params": {}}, None, -32600),
    ({"jsonrpc": "2.0", "id": None, "method": HOVER, "params": {}}, None, -32600),
    ({"jsonrpc": "2.0", "id": True, "method": HOVER, "params": {}}, None, -32600),
    ({"jsonrpc": "2.0", "id": "five", "method": "no/such", "params": {}}, "five", -32601),
    ({"jsonrpc": "2.0", "id": 6, "method": "no/such"}, 6, -32601),
    ({"jsonrpc": "2.0", "id": 7, "method": HOVER}, 7, -32602),
    ({"jsonrpc": "2.0", "id": 8, "method": HOVER, "params": None}, 8, -32602),
    ({"jsonrpc": "2.0", "id": 9, "method": HOVER, "params": [1, "x"]}, 9, -32602),
    (
        {
            "jsonrpc": "2.0",
            "id": 10,
            "method": HOVER,
            "params": {"textDocument": {"uri": 3}, "position": {"line": {}, "character": []}},
        },
        10,
        -32602,
    ),
    ({"jsonrpc": "2.0", "id": 11, "method": "initialize", "params": {"capabilities": {}}}, 11, -32600),
]
# To which there is no answer.
UNANSWERED: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {}},
    {"jsonrpc": "2.0", "method": "textDocument/didOpen"},
    {"jsonrpc": "2.0", "method": "no/such"},
    {"jsonrpc": "2.0", "method": ["x"]},
    {"jsonrpc": "2.0", "id": 1, "result": None},
    {"jsonrpc": "2.0", "id": [], "result": None},
    {"jsonrpc": "2.0", "id": 1, "error": {}},
    {"id": 1},
    {},
]


async def test_what_cannot_be_read_gets_an_error_and_the_server_lives_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torchlint", "server"]
    server = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdin=PIPE, stdout=PIPE)
    assert server.stdin is not None and server.stdout is not None
    sent, received = server.stdin, server.stdout

    def send(message: str | bytes | dict[str, Any]) -> None:
        text = json.dumps(message) if isinstance(message, dict) else message
        body = text.encode() if isinstance(text, str) else text
        sent.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def answer() -> Any:
        while True:
            head = await asyncio.wait_for(received.readuntil(b"\r\n\r\n"), 30)
            (length,) = (line for line in head.splitlines() if line.startswith(b"Content-Length: "))
            told = json.loads(await received.readexactly(int(length.partition(b": ")[2])))
            if "id" in told and "method" not in told:
                return told

    def asked(number: int, method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    places = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 0, "character": 0}}
    try:
        send(asked(100, HOVER, **places))
        assert (await answer())["error"]["code"] == -32002
        # What has the name of a part of the protocol is nothing but a setting here.
        options = {"jsonrpc": "2.0", "id": [1]}
        send(asked(101, "initialize", capabilities={}, initializationOptions={"else": options}))
        told = await answer()
        assert (told["id"], "capabilities" in told["result"]) == (101, True)
        for number, (message, identifier, code) in enumerate(MALFORMED, 1_000):
            send(message)
            told = await answer()
            assert (told["id"], told["error"]["code"]) == (identifier, code), message
            assert told["error"]["message"]
            send(asked(number, HOVER, **places))
            assert (await answer()) == {"jsonrpc": "2.0", "id": number, "result": None}
        for number, message in enumerate(UNANSWERED, 2_000):
            send(message)
            send(asked(number, HOVER, **places))
            assert (await answer()) == {"jsonrpc": "2.0", "id": number, "result": None}, message
        send(asked(3_000, "shutdown"))
        assert (await answer())["id"] == 3_000
        send(asked(3_001, HOVER, **places))
        assert (await answer())["error"]["code"] == -32600
        send({"jsonrpc": "2.0", "method": "exit"})
        assert await asyncio.wait_for(server.wait(), 30) == 0
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


# --- what is too large ------------------------------------------------------------------------------------


async def test_a_text_that_is_too_large_is_told_at_once(editor: Editor, uri: str) -> None:
    editor.open(uri, GOOD)
    assert await editor.told(uri) == []
    editor.replace(uri, BAD + "# " + "x" * 6_000_000)
    (found,) = await editor.told(uri, after=1)
    assert (found.code, found.message.partition(": ")[2]) == (
        "TL001",
        f"it has {len(BAD) + 6_000_002} bytes; the limit is 5000000",
    )
    editor.replace(uri, "# " + "é" * 2_600_000)
    (found,) = await editor.told(uri, after=2)
    assert "it has 5200002 bytes" in found.message
    assert await editor.actions(uri, types.Range(types.Position(0, 0), types.Position(0, 1))) == []
    editor.replace(uri, BAD)
    assert codes(await editor.told(uri, after=3)) == [UNSAFE, SAFE]


async def test_what_is_too_large_is_neither_waited_for_nor_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchlint.options import LintSettings
    from torchlint.server.checks import Checks, oversized
    from torchlint.server.documents import Program

    def program(text: str, name: str = "a.py") -> Program:
        return Program("file:///a.py", Source(Path(name), text), {}, None)

    # A worker that is asked for anything fails.
    checks = Checks(None)  # type: ignore[arg-type]
    few = LintSettings(rules=("TL001",), max_file_size=10)
    checked = await checks.of(program("x = 1  # éé"), few)
    (found,) = checked.diagnostics
    assert found.message == "cannot read the file: it has 13 bytes; the limit is 10"
    assert oversized(program("x = 'é'"), few) is None
    assert oversized(program("x" * 10), few) is None
    assert oversized(program("x" * 99), LintSettings()) is None
