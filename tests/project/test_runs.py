"""Runs over projects, as users start them: the same findings whichever way a file is asked for."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import lint as run
from torchlint import cli, runner
from torchlint.cache import Cache
from torchlint.commands import build
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings, Options
from torchlint.project import index, layout, records
from torchlint.project.layout import Layouts
from torchlint.runner import Mode
from torchlint.source import Source
from torchlint.store import Store

pytestmark = pytest.mark.usefixtures("work")

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
CONFIGURED = {
    "train.py": """\
        import hydra
        import torch
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        @hydra.main(version_base=None, config_path="conf", config_name="train")
        def main(cfg):
            model = torch.nn.Linear(4, 4).cuda()
            for images, labels in DataLoader(ImageFolder("/data"), **cfg.data.loader):
                print(model(images.to("cuda", non_blocking=True)).sum())

        if __name__ == "__main__":
            main()
        """,
    "conf/train.yaml": "defaults:\n  - data: images\n  - _self_\n",
    "conf/data/images.yaml": "loader:\n  batch_size: 64\n",
}
# Two programs with a library that moves batches and backpropagates for them.
LIBRARY = {
    "engine.py": """\
        class Engine:
            def __init__(self, device, scaler=None):
                self.device = device
                self.scaler = scaler

            def move(self, batch):
                for name, tensor in batch.items():
                    batch[name] = tensor.to(self.device)

            def backward(self, loss):
                if self.scaler is not None:
                    loss = self.scaler.scale(loss)
                loss.backward()
        """,
    "train.py": """\
        import torch
        import torch.nn.functional as F
        from torch.utils.data import DataLoader

        from engine import Engine

        def train(dataset):
            engine = Engine(torch.device("cuda"))
            model = torch.nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for batch in DataLoader(dataset, batch_size=64, num_workers=4):
                engine.move(batch)
                optimizer.zero_grad()
                output = model(batch["x"])
                loss = F.mse_loss(output, batch["y"])
                engine.backward(loss)
                optimizer.step()
        """,
    "other.py": """\
        from engine import Engine
        from helper import scaled

        def tune(model, batch, device):
            engine = Engine(device)
            engine.move(batch)
            engine.backward(scaled(model(batch)))
        """,
    "helper.py": "def scaled(loss):\n    return loss.mean() * 2\n",
}
PROJECTS = {"training": TRAINING, "package": PACKAGE, "configured": CONFIGURED}


def lay(folder: Path, files: dict[str, str]) -> list[Path]:
    """Write the files of a project; those that may have findings."""
    from textwrap import dedent

    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text))
    return sorted(folder / name for name in files if name.endswith((".py", ".yaml")))


def lint(*arguments: str | Path, stdin: str | None = None) -> str:
    """What a run over findings of any impact prints."""
    return run(*arguments, "--impact", "low", stdin=stdin).stdout


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
    alone = [item for item in found("--no-cache", "--no-project", work) if "journal.py" in item]
    # How often it runs is not known there.
    assert {json.loads(item)["impact"] for item in alone} == {"low"}
    assert whole == sorted(item for file in files for item in found("--no-cache", file))
    assert whole == found("--no-cache", *reversed(files))
    assert whole == found(work) == found(work)


def test_a_library_of_many_programs_is_as_if_it_was_not_seen(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(work, LIBRARY)
    alone = {
        name: found("--no-cache", "--no-project", "--select", "TL102,TL301", work / name) for name in LIBRARY
    }
    monkeypatch.setattr(index, "MOST_COMPANIONS", 2)
    together = {name: found("--no-cache", "--select", "TL102,TL301", work / name) for name in LIBRARY}
    assert together == alone
    assert any("TL102" in item for item in alone["train.py"])
    assert not any("TL301" in item for item in alone["train.py"])


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


def test_verbose_names_what_is_not_found_in_the_project(work: Path) -> None:
    lay(
        work,
        {
            "pyproject.toml": "",
            **TRAINING,
            "shop/__init__.py": "",
            "shop/main.py": "from .missing import step\nfrom . import other\nimport torch, yaml\n",
            "broken.py": "from journal import report\ndef f(:\n",
        },
    )
    told = _told("--verbose", "--no-cache", "--isolated", "shop/main.py", "train.py")
    assert (
        f"debug: {work / 'shop' / 'main.py'}:1: not found in the project: from .missing import step\n" in told
    )
    assert f"debug: {work / 'shop' / 'main.py'}:2: not found in the project: from . import other\n" in told
    assert "yaml" not in told
    assert f"debug: {work / 'broken.py'} cannot be parsed" in told
    assert "not found" not in _told("--verbose", "--no-cache", "--isolated", "train.py")
    assert "not found" not in _told("--no-cache", "--isolated", "shop/main.py")


def _told(*arguments: str | Path) -> str:
    """What a run says on standard error."""
    command = build(cli._COMMANDS, cli._DEFAULT)
    return CliRunner().invoke(command, list(map(str, arguments)), prog_name="torchlint").stderr


@pytest.mark.parametrize("damaged", ["", "def f(:\n", "\0"])
def test_what_a_file_that_cannot_be_read_would_show_is_not_found(work: Path, damaged: str) -> None:
    """Neither what it would call, nor what it would hand on; what else there is is found all the same."""
    lay(work, TRAINING)
    whole = found("--no-cache", work)
    assert any("journal.py" in item and "TL202" in item for item in whole)
    train = work / "train.py"
    train.write_text(damaged + train.read_text() if damaged else "")
    left = found("--no-cache", work)
    assert not [item for item in left if "journal.py" in item]
    assert {json.loads(item)["code"] for item in left} - {"TL001"} == {
        json.loads(item)["code"] for item in whole if "network.py" in json.loads(item)["filename"]
    }


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


@pytest.fixture
def settings() -> Iterator[LintSettings]:
    """A rule that looks through calls into other files."""
    yield LintSettings(rules=("TL001", "TL202", "TL303"), fixable=frozenset({"TL303"}))


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
    for edited, more, expected in (
        ("alone.py", "", [file.name for file in files]),
        ("alone.py", "", []),
        ("alone.py", "# more\n", ["alone.py"]),
        ("alone.py", "y = x\n", ["alone.py"]),
        ("journal.py", "# more\n", ["journal.py"]),
        ("journal.py", "more = 1\n", ["journal.py", "network.py", "train.py"]),
    ):
        (work / edited).write_text(f"{(work / edited).read_text()}{more}")
        del checked[:]
        _checked(files, settings, Cache(Store(tmp_path / "store"), work, "code"))
        assert checked == expected


def test_only_what_a_fix_may_concern_is_checked_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "import torch\n"
    files = lay(
        work,
        {
            "parts.py": f"{head}def product(a, b):\n    return torch.ger(a, b)\n",
            "names.py": f"{head}import parts\nNAMES = ['ger']\n",
            "train.py": f"{head}from parts import product\n"
            "def train(model, loader):\n"
            "    for a, b in loader:\n"
            "        model(a.cuda()).mean().backward()\n"
            "        print(product(a.cuda(), b.cuda()).sum().item())\n",
        },
    )
    checked: list[str] = []
    treated = runner._treated

    def watched(item: runner._Item, *rest: object) -> runner._Outcome:
        checked.append(item.path.name)
        return treated(item, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "_treated", watched)
    settings = LintSettings(rules=("TL202", "TL902"), fixable=frozenset({"TL902"}))
    layouts = Layouts(lambda _: Options())
    list(runner.run(files, lambda _: settings, Mode(fix=True), 1, None, None, layouts.of))
    assert "torch.outer(a, b)" in (work / "parts.py").read_text()
    # Of the three, the program alone calls what was fixed.
    assert checked == ["names.py", "parts.py", "train.py", "train.py"]


# --- what others may import --------------------------------------------------------------------------------


ENGINE = """\
import torch
from torch.autograd import Variable


def validate(model, loader):
    model.eval()
    total = 0
    for batch in loader:
        total = total + model(Variable(batch.cuda())).mean()
    return total
"""
MAIN = """\
import torch
from app.engine import validate


def main(loader):
    print(validate(torch.nn.Linear(4, 4).cuda(), loader).item())
"""
METADATA = "[build-system]\nrequires = ['setuptools']\n"


@pytest.mark.parametrize(
    ("files", "others"),
    [
        ({}, False),
        ({"pyproject.toml": "[tool.ruff]\n"}, False),
        ({"pyproject.toml": METADATA}, True),
        ({"setup.py": "from setuptools import setup\nsetup()\n"}, True),
        ({"setup.cfg": "[metadata]\nname = app\n"}, True),
        ({"pyproject.toml": METADATA + "[tool.uv]\npackage = false\n"}, False),
        ({"pyproject.toml": METADATA, "torchlint.toml": "project-kind = 'application'\n"}, False),
        ({"torchlint.toml": "project-kind = 'library'\n"}, True),
        ({"pyproject.toml": "[tool.x]\ny = 'app.engine:validate'\nz = 'app.engine:Variable'\n"}, True),
        ({"use.py": "from app.engine import validate, Variable\nvalidate.__name__\n"}, True),
        ({"use.py": "import app.engine as e\nw = 'Variable'\ngetattr(e, w)(e)\n"}, True),
        ({"use.py": "from app.engine import *\nprint(Variable, validate)\n"}, True),
        ({"use.py": "from app import engine\nprint(engine.Variable, engine.validate)\n"}, True),
        ({"use.py": "import sys\nm = sys.modules['app.engine']\n"}, True),
        ({"use.py": "exec('from app.engine import *')\n"}, True),
        ({"use.py": "import importlib\nm = importlib.import_module('app.' + str(3))\n"}, True),
        ({"use.py": "from hydra.utils import instantiate\n"}, True),
        ({"lib/use.py": "from engine import validate\n"}, True),
        ({"use.py": "import json\nprint(json)\n"}, False),
    ],
)
def test_what_code_out_of_sight_may_use_is_not_changed_without_being_asked(
    work: Path, files: dict[str, str], others: bool
) -> None:
    """A decorator on a public function, and an import that a fix leaves without a use."""
    lay(work, {"app/__init__.py": "", "app/engine.py": ENGINE, "app/main.py": MAIN, **files})
    engine = work / "app" / "engine.py"
    said = lint("--fix", "--select", "TL301,TL310", work)
    after = engine.read_text()
    assert "Variable(" not in after, said
    assert ("@torch.no_grad()" not in after) is others
    assert ("import Variable" in after) is others


def test_stray_modules_above_a_project_are_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a folder with modules in it has too many folders, the root is the next one below."""
    monkeypatch.setattr(layout, "MOST_FOLDERS_UNMARKED", 5)
    for number in range(6):
        (tmp_path / f"project{number}" / "utils").mkdir(parents=True)
    stray = tmp_path / "stray.py"
    train, helper = tmp_path / "project0" / "train.py", tmp_path / "project0" / "utils" / "helper.py"
    for path in (stray, train, helper):
        path.touch()
    for order in ((stray, helper, train), (train, stray, helper)):
        layouts = Layouts(lambda _: Options())
        found = {path: layouts.of(path) for path in order}
        assert found[stray] is None
        assert layouts.given_up == [tmp_path]
        project = found[train]
        assert project is not None
        assert project is found[helper]
        assert (project.root, project.files) == (train.parent, (train, helper))


def test_a_package_among_many_is_a_project_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the folder above it has too many folders, as that of all that is installed."""
    monkeypatch.setattr(layout, "MOST_FOLDERS_UNMARKED", 5)
    for number in range(6):
        lay(tmp_path, {f"package{number}/__init__.py": "", f"package{number}/parts/__init__.py": ""})
    (tmp_path / "package0-1.0.dist-info").mkdir()
    package = tmp_path / "package0"
    layouts = Layouts(lambda _: Options())
    found = layouts.of(package / "parts" / "__init__.py")
    assert found is not None
    assert found is layouts.of(package / "__init__.py")
    assert (found.root, found.files) == (
        package,
        (package / "__init__.py", package / "parts" / "__init__.py"),
    )
    assert found.library
    assert not layouts.given_up


def test_a_package_among_many_knows_its_files_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is imported from the folder above it, which is not looked at."""
    monkeypatch.setattr(layout, "MOST_FOLDERS_UNMARKED", 2)
    for number in range(3):
        (tmp_path / f"other{number}").mkdir()
    train = MATCHING.replace("from helpers", "from package.helpers")
    report = "def report(loss):\n    print(loss.item())\n"
    lay(tmp_path, {"package/__init__.py": "", "package/train.py": train, "package/helpers.py": report})
    assert "helpers.py:2:" in lint("--select", "TL202", "--output-format", "concise", tmp_path / "package")


def test_the_classes_of_a_long_table_are_not_followed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The join of more than a few tells nothing, and each would lead to its own file."""
    from torchlint.project.program import Program

    read: list[str] = []
    module = Program.module

    def noting(program: Program, file: Path) -> object:
        read.append(file.name)
        return module(program, file)

    monkeypatch.setattr(Program, "module", noting)
    names = [f"net{number}" for number in range(20)]
    net = "import torch\nclass N{}(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    nets = {f"{name}.py": net.format(name) for name in names}
    table = "".join(f"from {name} import N{name}\n" for name in names)
    table += f"TABLE = [{', '.join(f'({name!r}, N{name})' for name in names)}]\n"
    train = """\
        import torch
        from table import TABLE

        def train(name, loader):
            for key, kind in TABLE:
                model = kind().cuda()
            for x in loader:
                loss = model(x.cuda())
                loss.backward()
                print(loss.item())
        """
    lay(work, {**nets, "table.py": table, "train.py": train})
    assert "TL202" in lint("--select", "TL202", "--no-cache", work / "train.py")
    assert {"table.py", "train.py"} <= set(read)
    assert not any(name.startswith("net") for name in read)


MATCHING = """\
    import torch
    from helpers import report

    def train(model, loader, optimizer):
        model.cuda()
        for batch in loader:
            loss = model(batch.cuda()).mean()
            loss.backward()
            optimizer.step()
            match batch.ndim:
                case 2:
                    report(loss)
    """


def test_a_file_that_cannot_be_outlined_knows_the_others(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its full tree stands among the others: nothing is built for it alone."""
    from torchlint.project.project import Project

    lay(work, {"train.py": MATCHING, "helpers.py": "def report(loss):\n    print(loss.item())\n"})
    monkeypatch.delattr(Project, "apart")
    (item,) = map(json.loads, found("helpers.py", "--select", "TL202"))
    assert item["related"][0]["filename"].endswith("train.py")
    assert found("train.py", "--select", "TL202") == []


def test_imports_are_looked_up_where_the_configuration_says(work: Path) -> None:
    """With a cache, a run notices that the setting has changed."""
    report = "def report(loss):\n    print(loss.item())\n"
    training = {"train.py": TRAINING["train.py"], "network.py": TRAINING["network.py"]}
    lay(
        work,
        {**training, "tools/python/journal.py": f"class Meter:\n    pass\n\n\n{report}", ".git/HEAD": ""},
    )
    assert json.loads(lint("--select", "TL202", "--output-format", "json", work)) == []
    lay(work, {"torchlint.toml": 'src = ["tools/python"]\n'})
    (only,) = json.loads(lint("--select", "TL202", "--output-format", "json", work))
    assert only["filename"].endswith("journal.py")
