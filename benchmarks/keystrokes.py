"""How long an editor waits for the language server after a keystroke.

    python -m benchmarks.keystrokes [--keystrokes 60]

A client types into a file of 1000 lines, over the pipes of a real server, and waits after each keystroke
until the findings of that version are shown. Of two files:

* ``mixed``: torchvision's ``resnet.py`` and, below it, the training program ``image_classifier.py``;
* ``dense``: training programs only, one below the other, with a finding on every twelfth line;

and of a ``project``: the training program in a file of its own, beside torchvision's models in some fifteen
others, of which it imports one. What is typed is the program; the model is open as well. The same program is
typed ``without_project``, as a file that is part of none.

Reported are the milliseconds from a change to its findings, less the pause that the server waits for in case
more is typed, and those from asking for the actions at a finding to the answer. Written as JSON.
"""

from __future__ import annotations

import ast
import asyncio
import json
import platform
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import metadata, util
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from torchlint.server.service import DEBOUNCE

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "keystrokes.json"
PROGRAMS = ROOT / "fixtures" / "programs"
LINES = 1000
LIMIT = 100
"""What a keystroke may take in the mixed file, in milliseconds."""
# Typed at the end of a function of the program, key by key; every prefix is a program.
TYPED = "accuracy_of_the_batch"


def mixed() -> str:
    """Return models and a training program, as they stand in one file of many projects."""
    resnet = (_models() / "resnet.py").read_text(encoding="utf-8")
    program = (PROGRAMS / "image_classifier.py").read_text(encoding="utf-8")
    return f"{_beginning(resnet, LINES - program.count(chr(10)))}{program}"


def _models() -> Path:
    spec = util.find_spec("torchvision")
    assert spec is not None and spec.submodule_search_locations, "torchvision is not installed"
    return Path(spec.submodule_search_locations[0], "models")


def _beginning(text: str, lines: int) -> str:
    """Return the statements of a text that end within so many lines."""
    ends = [statement.end_lineno or 0 for statement in ast.parse(text).body]
    last = max(end for end in ends if end <= lines - 2)
    return "\n".join([*text.split("\n")[:last], *[""] * (lines - last)])


def dense() -> str:
    """Return training programs, each with names of its own, up to 1000 lines."""
    text = ""
    for path in sorted(PROGRAMS.glob("*.py")):
        text += _renamed(path) + "\n\n"
        if text.count("\n") >= LINES:
            break
    return text


def laid(folder: Path) -> tuple[Path, Path]:
    """Lay the project in a folder; the program that is typed, and the model that it trains."""
    models = _models()
    (folder / "pyproject.toml").touch()
    (folder / "zoo").mkdir()
    for path in models.glob("*.py"):
        shutil.copy(path, folder / "zoo")
    text = (PROGRAMS / "image_classifier.py").read_text(encoding="utf-8")
    text = text.replace("import torch\n", "import torch\nfrom zoo.resnet import resnet18\n", 1)
    text = text.replace("model = Net()", "model = resnet18(num_classes=NUM_CLASSES)", 1)
    (folder / "train.py").write_text(text, encoding="utf-8")
    return folder / "train.py", folder / "zoo" / "resnet.py"


def _renamed(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            text = re.sub(rf"(?<![\w.]){node.name}\b(?!\s*=[^=])", f"{node.name}_{path.stem}", text)
    return text


class Editor:
    """A client into whose text is typed; what else is open in it are ``others``."""

    def __init__(self, text: str, path: Path, others: Sequence[Path] = ()) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.uri, self.folder = path.as_uri(), path.parent
        self.text, self.others = text, others
        self.version = 1
        self.shown: dict[int, tuple[float, Sequence[types.Diagnostic]]] = {}
        self.news = asyncio.Event()

    async def start(self) -> None:
        """Start the server and open the text."""
        # pygls marks what it is given, and methods cannot be marked.
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._published))
        await self.client.start_io(sys.executable, "-m", "torchlint", "server", "--isolated")
        resolve = types.ClientCodeActionResolveOptions(["edit"])
        actions = types.CodeActionClientCapabilities(resolve_support=resolve)
        capabilities = types.ClientCapabilities(
            text_document=types.TextDocumentClientCapabilities(code_action=actions)
        )
        await self.client.initialize_async(
            types.InitializeParams(capabilities, root_uri=self.folder.as_uri())
        )
        self.client.initialized(types.InitializedParams())
        texts = {path.as_uri(): path.read_text(encoding="utf-8") for path in self.others}
        for uri, text in {**texts, self.uri: self.text}.items():
            item = types.TextDocumentItem(uri, "python", self.version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        if params.uri == self.uri and params.version is not None:
            self.shown[params.version] = time.perf_counter(), params.diagnostics
            self.news.set()

    async def findings(self) -> tuple[float, Sequence[types.Diagnostic]]:
        """Return when the findings of the newest version were shown, and what they are."""
        while self.version not in self.shown:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)
        return self.shown[self.version]

    def press(self, line: int, column: int, key: str) -> float:
        """Type a key; return when."""
        self.version += 1
        place = types.Position(line, column)
        change = types.TextDocumentContentChangePartial(types.Range(place, place), key)
        identifier = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        pressed = time.perf_counter()
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        return pressed

    async def ask(self, where: types.Range) -> tuple[float, Sequence[Any]]:
        """Return how long it takes to learn what can be done at a place, and what."""
        asked = time.perf_counter()
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(self.uri), where, types.CodeActionContext([]))
        )
        return time.perf_counter() - asked, found or []

    async def stop(self) -> None:
        """Say goodbye."""
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()  # type: ignore[no-untyped-call]


def keys(text: str, count: int) -> Iterator[tuple[int, int, str]]:
    """Yield line, column and character of keystrokes that type statements at the end of a training loop."""
    line = next(number for number, line in enumerate(text.split("\n")) if ".backward()" in line)
    row = text.split("\n")[line]
    indent = row[: len(row) - len(row.lstrip())]
    done = 0
    while done < count:
        yield line, 0, f"{indent}{TYPED[0]}\n"
        for at, key in enumerate(TYPED[1:], 1):
            yield line, len(indent) + at, key
        done += len(TYPED)


async def measure(
    text: str, count: int, path: Path = ROOT / "typed.py", others: Sequence[Path] = ()
) -> dict[str, Any]:
    """Type into a text; the milliseconds that each keystroke and each question took."""
    editor = Editor(text, path, others)
    await editor.start()
    _, found = await editor.findings()
    opened = len(found)
    typed: list[float] = []
    asked: list[float] = []
    # The first keystrokes find the caches of the machine empty.
    warm_up = len(TYPED)
    for number, (line, column, key) in enumerate(keys(text, count + warm_up)):
        pressed = editor.press(line, column, key)
        shown, found = await editor.findings()
        assert found, "findings were lost"
        took, actions = await editor.ask(found[0].range)
        assert actions, "nothing can be done about the first finding"
        if number >= warm_up:
            typed.append(1000 * (shown - pressed - DEBOUNCE))
            asked.append(1000 * took)
    await editor.stop()
    return {
        "lines": text.count("\n"),
        "findings": opened,
        "keystroke_ms": summary(typed),
        "code_action_ms": summary(asked),
    }


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Return median and 95th percentile, and what they are of."""
    return {
        "median": round(statistics.median(values), 1),
        "p95": round(statistics.quantiles(values, n=20)[-1], 1),
        "all": [round(value, 1) for value in values],
    }


@click.command(help=__doc__)
@click.option("--keystrokes", default=60, show_default=True)
def main(keystrokes: int) -> None:
    """Measure, print and write."""
    texts = {"mixed": mixed(), "dense": dense()}
    results: dict[str, Any] = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: metadata.version(name) for name in ("libcst", "pygls", "torchvision")},
        "debounce_ms": round(1000 * DEBOUNCE),
        "limit_ms": LIMIT,
    }
    with TemporaryDirectory() as folder:
        program, model = laid(Path(folder).resolve())
        runs = {name: measure(text, keystrokes) for name, text in texts.items()}
        text = program.read_text(encoding="utf-8")
        runs["project"] = measure(text, keystrokes, program, [model])
        runs["without_project"] = measure(text, keystrokes)
        for name, run in runs.items():
            results[name] = asyncio.run(run)
    for name in runs:
        measured = results[name]
        for what in ("keystroke_ms", "code_action_ms"):
            print(f"{name}: {what} median {measured[what]['median']}, p95 {measured[what]['p95']}")
    results["met"] = results["mixed"]["keystroke_ms"]["median"] < LIMIT
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
