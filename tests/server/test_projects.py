"""The server over projects: what other files say, open or on the disk, and how their changes are followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from lsprotocol import types

if TYPE_CHECKING:
    from tests.server.conftest import Editor

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]

TRAIN = dedent("""\
    import torch
    from journal import report


    def train(model, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            report(loss)
    """)
JOURNAL = dedent("""\
    def report(loss):
        print(loss.item())
    """)
LOADS = dedent("""\
    import torch
    import yaml
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    config = yaml.safe_load(open("train.yaml"))
    model = torch.nn.Linear(2, 2).cuda()
    loader = DataLoader(ImageFolder("images"), num_workers=config["workers"], pin_memory=True)
    for epoch in range(9):
        for x, y in loader:
            model(x.cuda(non_blocking=True)).sum().backward()
    """)
ROOT = Path(__file__).resolve().parents[2]
FILES = {"pyproject.toml": "", "train.py": TRAIN, "journal.py": JOURNAL}
NAMES = iter(range(1_000))


def write(path: Path, text: str) -> None:
    """Write a file so that its time is another in any case."""
    path.write_text(text, encoding="utf-8")
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000_000 * next(NAMES)))


def lay(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        write(folder / name, text)


@pytest.fixture
def project(editor: Editor) -> Iterator[Path]:
    """A project of its own in the editor's folder; what is open of it is closed afterwards."""
    folder = editor.folder / f"project_{next(NAMES)}"
    lay(folder, FILES)
    yield folder
    for uri in [uri for uri in editor.texts if uri.startswith(folder.as_uri())]:
        editor.close(uri)


def codes(found: Any) -> list[str]:
    """The codes of what is shown by default."""
    return [item.code for item in found if item.data["impact"] != "low"]


def open_file(editor: Editor, path: Path) -> str:
    editor.open(path.as_uri(), path.read_text(encoding="utf-8"))
    return path.as_uri()


def tell(editor: Editor, path: Path, kind: types.FileChangeType = types.FileChangeType.Changed) -> None:
    """Say that a file changed on the disk."""
    event = types.FileEvent(path.as_uri(), kind)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))


async def test_a_finding_may_follow_from_another_file(editor: Editor, project: Path) -> None:
    uri = open_file(editor, project / "journal.py")
    (found,) = await editor.told(uri)
    assert found.code == "TL202" and found.related_information is not None
    places = [item.location for item in found.related_information]
    assert [place.uri for place in places] == [(project / "train.py").as_uri()] * len(places) != []
    assert places[0].range.start.line == TRAIN[: TRAIN.index("for x, y")].count("\n")


async def test_what_is_open_counts_and_not_the_disk(editor: Editor, project: Path) -> None:
    journal = open_file(editor, project / "journal.py")
    assert codes(await editor.told(journal)) == ["TL202"]
    train = open_file(editor, project / "train.py")
    assert await editor.told(train) == []
    # An edit of one text refreshes the other.
    editor.replace(train, TRAIN.replace("report(loss)", "pass"))
    assert codes(await editor.told(journal, after=1)) == []
    editor.replace(train, f'"😋"; {TRAIN}'.replace("loss)\n", "loss)  # so\n"))
    (found,) = await editor.told(journal, after=2)
    assert found.related_information and found.related_information[0].location.uri == train
    # Without it, the disk counts again.
    editor.replace(train, "")
    assert await editor.told(journal, after=3) == []
    editor.close(train)
    assert codes(await editor.told(journal, after=4)) == ["TL202"]


async def test_a_configuration_file_may_be_named_in_what_is_open(editor: Editor, project: Path) -> None:
    write(project / "train.yaml", "workers: 4\n")
    uri = open_file(editor, project / "train.py")
    assert await editor.told(uri) == []
    editor.replace(uri, LOADS)
    assert codes(await editor.told(uri, after=1)) == ["TL104"]
    # No program names it any more, and so nobody knows of workers.
    editor.replace(uri, LOADS.replace("train.yaml", "other.yaml"))
    assert codes(await editor.told(uri, after=2)) == []


async def test_what_rests_on_nothing_new_is_not_told_again(editor: Editor, project: Path) -> None:
    journal, train = (open_file(editor, project / name) for name in ("journal.py", "train.py"))
    await editor.told(journal)
    await editor.told(train)
    editor.replace(train, f"{TRAIN}\nx = 1\n")
    await editor.told(train, after=1)
    editor.replace(journal, f"{JOURNAL}# more\n")
    assert codes(await editor.told(journal, after=1)) == ["TL202"]
    assert len(editor.published[journal]) == 2


async def test_while_a_text_is_no_program_the_others_keep_their_findings(
    editor: Editor, project: Path
) -> None:
    journal, train = (open_file(editor, project / name) for name in ("journal.py", "train.py"))
    assert codes(await editor.told(journal)) == ["TL202"]
    await editor.told(train)
    editor.replace(train, f"{TRAIN}def (:\n")
    assert codes(await editor.told(train, after=1)) == ["TL001"]
    editor.replace(train, TRAIN.replace("report(loss)", "pass"))
    assert codes(await editor.told(train, after=2)) == []
    assert codes(await editor.told(journal, after=1)) == []
    assert len(editor.published[journal]) == 2


async def test_a_file_beside_one_with_an_error_is_checked(editor: Editor, project: Path) -> None:
    write(project / "broken.py", "from journal import report\ndef (:\n")
    write(project / "binary.py", "\0")
    journal = open_file(editor, project / "journal.py")
    assert codes(await editor.told(journal)) == ["TL202"]
    broken = open_file(editor, project / "broken.py")
    assert codes(await editor.told(broken)) == ["TL001"]
    editor.replace(journal, f"{JOURNAL}\n")
    assert codes(await editor.told(journal, after=1)) == ["TL202"]


async def test_changes_on_the_disk_are_followed(editor: Editor, project: Path) -> None:
    journal = open_file(editor, project / "journal.py")
    assert codes(await editor.told(journal)) == ["TL202"]
    write(project / "train.py", TRAIN.replace("report(loss)", "pass"))
    tell(editor, project / "train.py")
    assert codes(await editor.told(journal, after=1)) == []
    write(project / "again.py", TRAIN)
    tell(editor, project / "again.py", types.FileChangeType.Created)
    (found,) = await editor.told(journal, after=2)
    assert found.related_information and found.related_information[0].location.uri.endswith("again.py")
    (project / "again.py").unlink()
    tell(editor, project / "again.py", types.FileChangeType.Deleted)
    assert codes(await editor.told(journal, after=3)) == []


async def test_what_was_saved_is_no_news(editor: Editor, project: Path) -> None:
    """The editor has it already."""
    journal, train = (open_file(editor, project / name) for name in ("journal.py", "train.py"))
    await editor.told(journal)
    await editor.told(train)
    tell(editor, project / "train.py")
    editor.replace(journal, f"{JOURNAL}\n")
    await editor.told(journal, after=1)
    assert len(editor.published[train]) == 1


@pytest.mark.parametrize("way", ["file", "command", "editor"])
async def test_a_project_can_be_left_out_of_account(
    launch: Callable[..., Any], tmp_path: Path, way: str
) -> None:
    lay(tmp_path, {**FILES, "pyproject.toml": "[tool.torchlint]\nproject = false\n" if way == "file" else ""})
    flags = ("--config", "project = false") if way == "command" else ()
    options = {"configuration": {"project": False}} if way == "editor" else None
    async with launch(tmp_path, "visual-studio-code", options, *flags) as editor:
        journal = open_file(editor, tmp_path / "journal.py")
        assert await editor.told(journal) == []


async def test_an_editor_that_asks_is_told_that_files_depend_on_one_another(
    launch: Callable[..., Any], tmp_path: Path
) -> None:
    lay(tmp_path, FILES)
    async with launch(tmp_path, "neovim") as editor:
        journal = open_file(editor, tmp_path / "journal.py")

        async def asked() -> list[str]:
            params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(journal))
            report = await editor.client.text_document_diagnostic_async(params)
            return codes(report.items)

        assert await asked() == ["TL202"]
        train = open_file(editor, tmp_path / "train.py")
        editor.replace(train, TRAIN.replace("report(loss)", "pass"))
        assert await asked() == []
        editor.close(train)
        assert await asked() == ["TL202"]


async def test_all_fixes_are_made_in_view_of_the_project(editor: Editor, project: Path) -> None:
    """The keys of a checkpoint change with a bias, which is safe until another file saves one."""
    fixture = ROOT / "fixtures" / "projects" / "checkpoint_elsewhere" / "good_not_exported"
    lay(project, {path.name: path.read_text(encoding="utf-8") for path in fixture.glob("*.py")})
    fit = open_file(editor, project / "fit.py")
    assert codes(await editor.told(fit)) == ["TL401"]
    whole = types.Range(types.Position(0, 0), types.Position(20, 0))
    (offer,) = await editor.actions(fit, whole, "source.fixAll")
    resolved = await editor.client.code_action_resolve_async(offer)
    assert "bias=False" in editor.applied(fit, resolved.edit)

    export = open_file(editor, project / "export.py")
    await editor.told(export)
    editor.replace(export, "import torch, fit\ntorch.save(fit.model.state_dict(), 'model.pt')\n")
    (found,) = await editor.told(fit, after=1)
    assert found.data is not None and found.data["fix"]["applicability"] == "unsafe"
    assert await editor.actions(fit, whole, "source.fixAll") == []


async def test_configuration_files_are_checked_by_way_of_their_programs(
    editor: Editor, project: Path
) -> None:
    fixture = ROOT / "fixtures" / "projects" / "configs" / "bad_yaml"
    texts = {path.name: path.read_text(encoding="utf-8") for path in fixture.iterdir() if path.is_file()}
    lay(
        project,
        {
            "train.py": texts["train.py"],
            "config.yaml": texts["config.yaml"].replace("workers: 0", "workers: 2"),
        },
    )
    write(project / "unread.yaml", "loader: {num_workers: 8}\n")
    config = open_file(editor, project / "config.yaml")
    assert codes(await editor.told(config)) == ["TL102", "TL104"]
    assert await editor.told(open_file(editor, project / "unread.yaml")) == []
    # What is typed counts.
    editor.replace(config, texts["config.yaml"])
    assert "TL101" in codes(await editor.told(config, after=1))
    # All safe fixes.
    whole = types.Range(types.Position(0, 0), types.Position(40, 0))
    (offer,) = await editor.actions(config, whole, "source.fixAll")
    resolved = await editor.client.code_action_resolve_async(offer)
    assert "  pin_memory: true\n" in editor.applied(config, resolved.edit)
    # So does a program that reads something else by now.
    train = open_file(editor, project / "train.py")
    await editor.told(train)
    editor.replace(train, texts["train.py"].replace("config.yaml", "unread.yaml"))
    assert await editor.told(config, after=2) == []
    # And what the disk says, once nothing is open of it.
    editor.close(train)
    editor.close(config)
    config = open_file(editor, project / "config.yaml")
    assert codes(await editor.told(config)) == ["TL102", "TL104"]


async def test_a_configuration_file_that_changes_on_the_disk(editor: Editor, project: Path) -> None:
    write(project / "train.yaml", "workers: 0\n")
    write(project / "other.json", "{}")
    write(project / "train.py", LOADS)
    train = open_file(editor, project / "train.py")
    assert codes(await editor.told(train)) == []
    write(project / "train.yaml", "workers: 4\n")
    tell(editor, project / "train.yaml")
    assert codes(await editor.told(train, after=1)) == ["TL104"]
    # What no program reads concerns nobody.
    tell(editor, project / "other.json")
    write(project / "train.yaml", "workers: 0\n")
    tell(editor, project / "train.yaml")
    assert codes(await editor.told(train, after=2)) == []
    assert len(editor.published[train]) == 3
