"""Packages of other projects that an environment has as editable installations."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchlint import cli
from torchlint.commands import build
from torchlint.options import Options
from torchlint.project.exposure import Exposure
from torchlint.project.layout import Layout, Layouts

FIXTURES = Path(__file__).parents[2] / "fixtures" / "projects"
SITE = ".venv/lib/python3.12/site-packages"
PTH = f"{SITE}/__editable__.engine-1.0.pth"
FINDER = f"{SITE}/__editable___engine_1_0_finder.py"
HOOK = "import __editable___engine_1_0_finder; __editable___engine_1_0_finder.install()"
REPOSITORY = {
    ".git/HEAD": "",
    ".venv/pyvenv.cfg": "",
    "app/pyproject.toml": "",
    "app/train.py": """import torch
from engine.loop import measured
from torch.utils.data import DataLoader


def main(dataset, optimizer):
    model = torch.nn.Linear(3, 3).cuda()
    for images in DataLoader(dataset, num_workers=2):
        optimizer.zero_grad()
        model(images.cuda()).mean().backward()
        optimizer.step()
        result = measured(images)
        print(result.item())
""",
    "engine/pyproject.toml": "",
    "engine/src/engine/__init__.py": "",
    "engine/src/engine/loop.py": """import torch

from .parts import Part


def measured(images):
    return torch.nn.functional.relu(images.cuda()).mean()
""",
    "engine/src/engine/parts.py": "class Part: ...\n",
}


@pytest.fixture(autouse=True)
def work(work: Path) -> Path:
    """A repository of two projects, and no cache or config of the user's own."""
    lay(work, REPOSITORY)
    return work


def lay(folder: Path, files: Mapping[str, str]) -> None:
    """Write files, with ``{work}`` for their folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("{work}", str(folder)))


def around(file: Path) -> Layout:
    """The layout of the project of a file."""
    return Layouts(lambda _: Options()).around(file)


def leads(file: Path, name: str) -> str | None:
    """Where a name of a file is defined, as ``path:name``, or ``path`` for a whole file."""
    place = around(file).index().definition(file, name)
    if place is None:
        return None
    path = place.file.relative_to(Path.cwd()).as_posix()
    return path if place.definition is None else f"{path}:{place.definition.name}"


def run(*arguments: str) -> Result:
    """A run over findings of any impact."""
    words = [*arguments, "--impact", "low"]
    return CliRunner().invoke(build(cli._COMMANDS, cli._DEFAULT), words, prog_name="torchlint")


def check(*arguments: str | Path) -> tuple[list[str], str]:
    """The codes of the findings of a run, with the names of their files, and what it prints besides."""
    result = run("check", *map(str, arguments), "--select", "TL202", "--output-format", "json")
    found = [f"{Path(item['filename']).name}:{item['code']}" for item in json.loads(result.stdout)]
    return found, result.stderr


@pytest.mark.parametrize(
    ("installed", "name", "expected"),
    [
        ({}, "measured", None),
        ({PTH: "{work}/engine/src\n"}, "measured", "engine/src/engine/loop.py:measured"),
        ({PTH: "# of a tool\n\n../../../../engine/src"}, "measured", "engine/src/engine/loop.py:measured"),
        ({PTH: "{work}/engine/gone\n"}, "measured", None),
        ({PTH: "import sys; sys.path.append('{work}/engine/src')\n"}, "measured", None),
        (
            {PTH: HOOK, FINDER: "MAPPING: dict[str, str] = {'engine': '{work}/engine/src/engine'}\n"},
            *("measured", "engine/src/engine/loop.py:measured"),
        ),
        # The folder of a package may have another name, and what is mapped may be a single module.
        (
            {
                FINDER: "MAPPING = {'renamed': '{work}/engine/src/engine'}\n",
                "app/train.py": "from renamed import loop",
            },
            *("loop", "engine/src/engine/loop.py"),
        ),
        (
            {
                FINDER: "MAPPING: dict[str, str] = {'tools': '{work}/engine/tools'}\n",
                "engine/tools.py": "def tool(): ...",
                "app/train.py": "from tools import tool",
            },
            *("tool", "engine/tools.py:tool"),
        ),
        (
            {PTH: "{work}/engine/src", "engine/src/tools.py": "n = 1", "app/train.py": "from tools import n"},
            *("n", "engine/src/tools.py:n"),
        ),
        (
            {FINDER: "MAPPING = {name: place for name, place in PAIRS}\n"},
            *("measured", None),
        ),
        ({FINDER: "MAPPING = {'': '/', 'engine': 'engine/src/engine', 'a\\0': '\\0'}\n"}, "measured", None),
        # A package of the project itself goes before an installed one.
        (
            {PTH: "{work}/engine/src\n", "app/engine/loop.py": "def measured(images): ..."},
            *("measured", "app/engine/loop.py:measured"),
        ),
        # What is installed may import from other installations.
        (
            {
                PTH: "{work}/engine/src\n{work}/base/src\n",
                "base/setup.py": "",
                "base/src/base/__init__.py": "def measured(images): ...",
                "engine/src/engine/loop.py": "from base import measured",
            },
            *("measured", "base/src/base/__init__.py:measured"),
        ),
        # In a project of its own, whose metadata does not say where its packages are.
        (
            {PTH: "{work}/app/lib\n", "app/lib/engine/loop.py": "def measured(images): ..."},
            *("measured", "app/lib/engine/loop.py:measured"),
        ),
    ],
)
def test_imports_lead_to_where_packages_are_installed_from(
    work: Path, installed: Mapping[str, str], name: str, expected: str | None
) -> None:
    lay(work, installed)
    assert leads(work / "app/train.py", name) == expected


def test_only_what_is_imported_is_read(work: Path) -> None:
    lay(work, {PTH: "{work}/engine/src\n"})
    assert {file.name for file in around(work / "app/train.py").lent} == {
        "__init__.py",
        "loop.py",
        "parts.py",
    }
    lay(work, {"app/train.py": "import torch\n"})
    assert not around(work / "app/train.py").lent


def test_another_project_may_use_what_it_lends(work: Path) -> None:
    """Its tests and scripts are not among the files."""
    lay(work, {PTH: "{work}/engine/src\n", "app/helpers.py": "def measured(): ..."})
    exposure = Exposure(around(work / "app/train.py").index())
    assert exposure.is_open(work / "engine/src/engine/loop.py", "measured")
    assert not exposure.is_open(work / "app/helpers.py", "measured")


def test_findings_follow_the_environment_also_from_the_cache(work: Path) -> None:
    """What is found in a file is the same whether or not the other project is checked with it."""
    assert check("app")[0] == []
    lay(work, {PTH: "{work}/engine/src\n"})
    assert check("app")[0] == ["train.py:TL202"]
    assert check(".")[0] == ["train.py:TL202"]
    loop = "def measured(images):\n    return images.cpu().mean()\n"
    lay(work, {"engine/src/engine/loop.py": loop})
    assert check("app")[0] == check("app", "--no-cache")[0] == []
    lay(work, {"engine/src/engine/loop.py": REPOSITORY["engine/src/engine/loop.py"]})
    assert check("app")[0] == ["train.py:TL202"]
    (work / PTH).unlink()
    assert check("app")[0] == []


def test_a_fix_does_not_change_what_another_project_may_use_otherwise(work: Path) -> None:
    """In one project both files would be changed."""
    program = FIXTURES / "two_files" / "bad_sigmoid_layer"
    texts = {name: (program / f"{name}.py").read_text() for name in ("critics", "objectives", "train")}
    lay(work, {PTH: "{work}/engine/src\n", "engine/src/critics.py": texts.pop("critics")})
    lay(work, {f"app/{name}.py": text for name, text in texts.items()})
    result = run("check", "--select", "TL408", "--unsafe-fixes", "--output-format", "json", "--isolated")
    (found,) = json.loads(result.stdout)
    assert found["fix"] is None


@pytest.mark.parametrize(
    ("place", "others"),
    [
        ("../outside", {}),
        (".venv/src/engine", {}),
        ("vendored", {".gitignore": "vendored\n"}),
        ("vendored", {"torchlint.toml": 'exclude = ["vendored"]\n'}),
    ],
)
def test_what_is_not_looked_at_is_told(work: Path, place: str, others: Mapping[str, str]) -> None:
    folder = Path(os.path.normpath(work / place))
    lay(folder, {"engine/loop.py": REPOSITORY["engine/src/engine/loop.py"], "pyproject.toml": ""})
    lay(work, {PTH: f"{folder}\n", **others})
    found, said = check("app", "--verbose")
    assert found == []
    assert f"train.py:2: engine is installed from {folder / 'engine'}, which is not analyzed" in said
    assert "is installed from" not in check("app")[1]
