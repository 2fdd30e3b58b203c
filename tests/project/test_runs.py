"""Runs over projects, as users start them: the same findings whichever way a file is asked for."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import cli, runner
from torchlint.cache import Cache
from torchlint.commands import build
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings, Options
from torchlint.project import index, records
from torchlint.project.layout import Layouts
from torchlint.runner import Mode
from torchlint.source import Source
from torchlint.store import Store

TRAINING = {
    "train.py": """\
        import torch
        from torch.utils.data import DataLoader

        from journal import Meter, report
        from network import Network

        def train(dataset):
            model = Network().cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            meter = Meter()
            history = []
            for images, labels in DataLoader(dataset, batch_size=64):
                loss = model(images.cuda()).sub(labels.cuda()).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                meter.update(loss)
                report(loss)
                history.append(loss)
            return history
        """,
    "journal.py": """\
        class Meter:
            def __init__(self):
                self.total = 0

            def update(self, value):
                self.total += value


        def report(loss):
            print(loss.item())
        """,
    "network.py": """\
        import torch
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 8, 3)
                self.norm = nn.BatchNorm2d(8)

            def forward(self, images):
                return self.norm(self.conv(images)).mean((1, 2, 3))
        """,
}
PACKAGE = {
    "pyproject.toml": "[project]\nname = 'shop'\n",
    "shop/__init__.py": "from .engine import evaluate, step\n",
    "shop/engine.py": """\
        def step(model, batch, losses):
            loss = model(batch).mean()
            loss.backward()
            losses.append(loss)
            return loss

        def evaluate(model, loader):
            total = 0
            for batch in loader:
                total += model(batch).mean().item()
            return total
        """,
    "shop/main.py": """\
        import torch
        from shop import evaluate, step

        def main(loader):
            model = torch.nn.Linear(4, 4).cuda()
            losses = []
            for _ in range(10):
                for batch in loader:
                    loss = step(model, batch.cuda(), losses)
                    print(loss.item())
                evaluate(model, loader)
        """,
}
PROJECTS = {"training": TRAINING, "package": PACKAGE}


def lay(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write the files of a project; those with programs."""
    from textwrap import dedent

    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text))
    return sorted(folder / name for name in files if name.endswith(".py"))


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and no cache or config of the user's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("torchlint.commands.caching.default_directory", lambda: tmp_path / "cache")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def lint(*arguments: str | Path, stdin: str | None = None) -> str:
    """What a run prints."""
    command = build(cli._COMMANDS, cli._DEFAULT)
    result = CliRunner().invoke(command, list(map(str, arguments)), input=stdin, prog_name="torchlint")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout


def found(*arguments: str | Path, stdin: str | None = None) -> list[str]:
    """The findings of a run."""
    objects = json.loads(lint(*arguments, "--isolated", "--output-format", "json", stdin=stdin))
    return sorted(json.dumps(item, sort_keys=True) for item in objects)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_finding_is_the_same_whichever_way_its_file_is_asked_for(work: Path, name: str) -> None:
    files = lay(work, PROJECTS[name])
    whole = found("--no-cache", work)
    assert whole
    assert whole != found("--no-cache", "--no-project", work)
    assert whole == sorted(item for file in files for item in found("--no-cache", file))
    assert whole == sorted(
        item
        for file in files
        for item in found("--no-cache", "-", "--stdin-filename", file, stdin=file.read_text())
    )
    assert whole == found("--no-cache", *reversed(files))
    # And from what earlier runs have left.
    assert whole == found(work) == found(work)
    assert whole == sorted(item for file in files for item in found(file))
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=work, check=True)
    assert whole == found("--no-cache", "--staged")


def test_names_are_followed_in_programs_of_any_size(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = lay(work, TRAINING)
    # That the program runs on an accelerator is not looked for in other files of one that is so large.
    journal = work / "journal.py"
    journal.write_text(f'import torch\n\nDEVICE = torch.device("cuda")\n\n\n{journal.read_text()}')
    monkeypatch.setattr(index, "MOST_COMPANIONS", 1)
    whole = found("--no-cache", work)
    assert [item for item in whole if "journal.py" in item]
    assert not [item for item in found("--no-cache", "--no-project", work) if "journal.py" in item]
    assert whole == sorted(item for file in files for item in found("--no-cache", file))
    assert whole == found("--no-cache", *reversed(files))
    assert whole == found(work) == found(work)


def test_what_is_staged_counts_for_the_other_files(work: Path) -> None:
    files = lay(work, TRAINING)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=work, check=True)
    staged = found("--no-cache", "--staged")
    journal = files[0]
    journal.write_text("def report(loss): ...\nclass Meter:\n    def update(self, loss): ...\n")
    assert staged == found("--no-cache", "--staged") != found("--no-cache", work)


def test_standard_input_without_a_name_is_judged_alone(work: Path) -> None:
    lay(work, TRAINING)
    text = (work / "journal.py").read_text()
    assert found("-", "--stdin-filename", "journal.py", stdin=text)
    assert not found("-", stdin=text)


@pytest.mark.parametrize("config", ["project = false", "exclude = ['journal.py']"])
def test_a_file_that_its_settings_keep_out_is_judged_alone(work: Path, config: str) -> None:
    lay(work, TRAINING)
    assert found("--config", config, "journal.py") == found("--no-project", "journal.py")
    assert found("journal.py") != found("--no-project", "journal.py")


def test_two_projects_of_one_run_stay_apart(work: Path) -> None:
    for name in ("one", "two"):
        lay(work / name, {"pyproject.toml": "", **TRAINING})
    (work / "two" / "train.py").write_text("")
    each = [found("--no-cache", work / name) for name in ("one", "two")]
    assert found("--no-cache", work) == sorted(each[0] + each[1])
    assert not [item for item in each[1] if "journal.py" in item]


@pytest.mark.parametrize("name", PROJECTS)
def test_neither_order_nor_processes_change_a_byte(
    work: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_WORTH_A_POOL", 0)
    files = lay(work, PROJECTS[name])
    arguments = ("--no-cache", "--isolated", "--output-format", "json", "-j")
    alone = lint(*arguments, "1", *files)
    assert lint(*arguments, "2", *files) == alone
    shuffled = list(files)
    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        assert lint(*arguments, "1", *shuffled) == alone


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_fixes_are_those_of_the_texts_at_the_start(
    work: Path, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_WORTH_A_POOL", 0)
    files = lay(work, {**TRAINING, **PACKAGE})
    arguments = ("--no-cache", "--isolated", "--unsafe-fixes", "-j", jobs)
    diffs = {file: lint(*arguments, "--diff", file) for file in files}
    assert sum(map(bool, diffs.values())) > 1
    whole = lint(*arguments, "--diff", work)
    assert all(diff.partition("\n\n")[0] in whole for diff in diffs.values())
    lint(*arguments, "--fix", work)
    after = {file: file.read_text() for file in files}
    for order in (files, files[::-1]):
        lay(work, {**TRAINING, **PACKAGE})
        lint(*arguments, "--fix", *order)
        assert {file: file.read_text() for file in files} == after


# --- what is remembered ------------------------------------------------------------------------------------


HELPERS = (
    "def report(loss):\n    print(loss.item())\n",
    "def report(loss):\n    print(loss.item())\n",
    "from {other} import report\n",
    "from {other} import *\n",
    "def report(:\n",
)
IMPORTS = (
    "from {other} import report",
    "from {other} import *",
    "import {other}\nreport = {other}.report",
    "from {other} import (\n    report,\n)",
    "from {other} \\\n    import report",
)
LOOP = """\
import torch
{imports}

def train(model, loader):
    for batch in loader:
        loss = model(batch.cuda()).mean()
        loss.backward()
        report(loss)
"""
NAMES = ("a", "b", "c", "sub/d", "sub/__init__")
# What an editor changes without a word about imports.
TOGGLED = (
    ("for batch in loader:", "if batch := loader:"),
    ("print(loss.item())", "print(loss)"),
    ("def report(loss)", "def report(loss, *_)"),
    ("report(loss)\n", "report(1)\n"),
)


def _text(chance: random.Random) -> str:
    other = chance.choice(["a", "b", "c", "sub", "sub.d"])
    if chance.random() < 0.5:
        return LOOP.format(imports=chance.choice(IMPORTS).format(other=other))
    return chance.choice(HELPERS).format(other=other)


def _change(work: Path, chance: random.Random) -> None:
    """Edit, add, remove or rename a file."""
    there = [path for name in NAMES if (path := work / f"{name}.py").exists()]
    target = work / f"{chance.choice(NAMES)}.py"
    target.parent.mkdir(exist_ok=True)
    kind = chance.random()
    if kind < 0.1 and there:
        chance.choice(there).unlink()
    elif kind < 0.2 and there:
        chance.choice(there).rename(target)
    elif kind < 0.35 and there:
        chosen = chance.choice(there)
        chosen.write_text(f"# a remark\n{chosen.read_text()}")
    elif kind < 0.7 and there:
        for chosen in there:
            one, other = chance.choice(TOGGLED)
            text = chosen.read_text()
            chosen.write_text(text.replace(one, other) if one in text else text.replace(other, one))
    else:
        target.write_text(_text(chance))


@pytest.fixture
def settings() -> Iterator[LintSettings]:
    """A rule that looks through calls into other files."""
    yield LintSettings(rules=("TL001", "TL202", "TL303"), fixable=frozenset({"TL303"}))


@pytest.mark.parametrize("seed", range(8))
def test_a_warm_answer_is_the_cold_one(work: Path, tmp_path: Path, settings: LintSettings, seed: int) -> None:
    chance = random.Random(seed)
    warm_answers = 0
    for _ in range(40):
        _change(work, chance)
        files = sorted(work.rglob("*.py"))
        asked = files if chance.random() < 0.5 else [file for file in files if chance.random() < 0.5]
        cold = _checked(asked, settings, None)
        known = Cache(Store(tmp_path / "store"), work, "code")
        assert _checked(asked, settings, known) == cold, [file.read_text() for file in files]
        warm_answers += sum(map(len, cold.values()))
    assert warm_answers


def _checked(
    files: list[Path], settings: LintSettings, known: Cache | None
) -> dict[Path, tuple[Diagnostic, ...]]:
    layouts = Layouts(lambda _: Options())
    results = runner.run(files, lambda _: settings, Mode(), 1, None, known, layouts.of)
    return {result.path: result.diagnostics for result in results}


def test_only_files_that_changed_are_read_for_what_they_say_of_themselves(
    work: Path, tmp_path: Path, settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = lay(work, TRAINING)
    read: list[str] = []
    made = records.record

    def watched(source: Source) -> records.Record:
        read.append(source.path.name)
        return made(source)

    monkeypatch.setattr(records, "record", watched)
    for edited, expected in (
        ("", [file.name for file in files]),
        ("journal.py", ["journal.py"]),
        ("", []),
    ):
        if edited:
            (work / edited).write_text(f"{(work / edited).read_text()}# more\n")
        del read[:]
        _checked(files, settings, Cache(Store(tmp_path / "store"), work, "code"))
        assert sorted(read) == expected
    # Nor is what another version of the code has kept.
    _checked(files, settings, Cache(Store(tmp_path / "store"), work, "other"))
    assert sorted(read) == [file.name for file in files]


def test_only_what_a_change_may_concern_is_checked_again(
    work: Path, tmp_path: Path, settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = lay(work, {**TRAINING, "alone.py": "x = 1\n", "other.py": "import alone\n"})
    checked: list[str] = []
    treated = runner._treated

    def watched(item: runner._Item, *rest: object) -> runner._Outcome:
        checked.append(item.path.name)
        return treated(item, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "_treated", watched)
    for edited, expected in (
        ("", [file.name for file in files]),
        ("", []),
        ("alone.py", ["alone.py", "other.py"]),
        ("journal.py", ["journal.py", "network.py", "train.py"]),
    ):
        if edited:
            (work / edited).write_text(f"{(work / edited).read_text()}# more\n")
        del checked[:]
        _checked(files, settings, Cache(Store(tmp_path / "store"), work, "code"))
        assert checked == expected
