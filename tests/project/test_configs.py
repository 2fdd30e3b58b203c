"""Configuration files that programs read: which they are, what they say together, and runs over them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import lint as run
from torchlint.documents import OPAQUE, Document, Row, Scalar, Table, is_document
from torchlint.options import Options
from torchlint.project.configs import Configs, named_by
from torchlint.project.layout import Layouts
from torchlint.reading import read

pytestmark = pytest.mark.usefixtures("work")

pytestmark = pytest.mark.usefixtures("work")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "projects" / "configs"

PROGRAM = """\
    import json, os, sys, yaml
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    def main():
        {reading}
        for images, labels in DataLoader(ImageFolder("/data"), {arguments}):
            model(images.to("cuda", non_blocking=True))
    """


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a project."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(dedent(text).encode())
    return folder


def configs(folder: Path, *programs: str) -> Configs:
    """The configuration files of a project."""
    files = [folder / name for name in programs]
    return Configs(folder, named_by(files, folder, {path for path in folder.rglob("*") if is_document(path)}))


def plain(entry: object) -> object:
    """An entry as data."""
    match entry:
        case Table():
            return {key: plain(value) for key, value in entry.items.items()}
        case Row():
            return [plain(item) for item in entry.items]
        case Scalar():
            return "?" if entry.value is OPAQUE else entry.value
        case _:
            return None


# --- which files they are --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ('open("config.yaml")', ["config.yaml"]),
        ("open('conf/train.yml')", ["conf/train.yml"]),
        ('Path("conf") / "train.yml"', ["conf/train.yml"]),
        ('os.path.join(os.path.dirname(__file__), "conf", "deep", "x.json")', []),
        ('os.path.join(here, "conf/deep", "x.json")', ["conf/deep/x.json"]),
        ('open("../config.yaml")', []),
        ('open("nothing.yaml")', []),
        ('open("/config.yaml")', []),
        ('print("see config.yaml and more")', []),
        ("open('src/../config.yaml')", ["config.yaml"]),
        ("config_yaml = 1", []),
    ],
)
def test_a_program_names_its_files(tmp_path: Path, code: str, named: list[str]) -> None:
    folder = lay(
        tmp_path, {"config.yaml": "a: 1", "conf/train.yml": "", "conf/deep/x.json": "{}", "run.py": code}
    )
    found = configs(folder, "run.py").files
    assert found == {folder / name for name in named}


def test_files_are_looked_for_from_the_folders_above(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"config.yaml": "", "a/b/run.py": 'open("config.yaml")'})
    found = configs(folder, "a/b/run.py")
    assert found.find(folder / "a/b/run.py", "config.yaml", beside=False) == folder / "config.yaml"
    assert found.find(folder / "a/b/run.py", "config.yaml", beside=True) is None
    assert found.readers(folder / "config.yaml") == [folder / "a/b/run.py"]
    lay(tmp_path, {"a/config.yaml": ""})
    # Where it is started decides.
    assert configs(folder, "a/b/run.py").find(folder / "a/b/run.py", "config.yaml", beside=False) is None


def test_a_file_of_data_is_none(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"a.json": "[" + "1, " * 500_000 + "1]", "run.py": 'open("a.json")'})
    found = configs(folder, "run.py")
    assert found.document(folder / "a.json") is None


# --- Hydra -----------------------------------------------------------------------------------------------

HYDRA = '@hydra.main(version_base=None, config_path="conf", config_name="train")\ndef main(cfg): ...'


def composed(folder: Path, files: Mapping[str, str]) -> object:
    lay(folder, {"run.py": HYDRA, **{f"conf/{name}": text for name, text in files.items()}})
    found = configs(folder, "run.py")
    path = found.composed(folder / "run.py", "conf", "train")
    return None if path is None else plain(found.entry(path, (), hydra=True))


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        ({"train.yaml": "a: 1"}, {"a": 1}),
        ({"train.yaml": ""}, {}),
        (
            {"train.yaml": "defaults: [data: x, _self_]\na: 1", "data/x.yaml": "b: 2"},
            {"a": 1, "data": {"b": 2}},
        ),
        (
            {"train.yaml": "defaults: [base, _self_]\na: {b: 1}", "base.yaml": "a: {b: 0, c: 2}"},
            {"a": {"b": 1, "c": 2}},
        ),
        ({"train.yaml": "defaults: [_self_, base]\na: 1", "base.yaml": "a: 0"}, {"a": 0}),
        # Releases differ in what comes last.
        ({"train.yaml": "defaults: [base]\na: 1\nb: 2", "base.yaml": "a: 0"}, {"a": "?", "b": 2}),
        (
            {"train.yaml": "defaults: [data: [x, y]]", "data/x.yaml": "a: 1", "data/y.yaml": "b: 2"},
            {"data": {"a": 1, "b": 2}},
        ),
        (
            {"train.yaml": "defaults: [data@test: x, _self_]", "data/x.yaml": "a: 1"},
            {"test": {"a": 1}},
        ),
        (
            {"train.yaml": "defaults: [data: x]", "data/x.yaml": "# @package _global_\na: 1"},
            {"a": 1},
        ),
        (
            {
                "train.yaml": "defaults: [data: x]",
                "data/x.yaml": "defaults: [loader: fast, _self_]",
                "data/loader/fast.yaml": "workers: 8",
            },
            {"data": {"loader": {"workers": 8}}},
        ),
        ({"train.yaml": "defaults: [data: null, optional data: gone]\na: 1"}, {"a": 1}),
        ({"train.yaml": "defaults: [override hydra/launcher: x, _self_]\na: 1"}, {"a": 1}),
        ({"train.yaml": "defaults: [data: gone]"}, None),
        ({"train.yaml": "defaults: [schema]"}, None),
        ({"train.yaml": "defaults: [override data: x]", "data/x.yaml": ""}, None),
        ({"train.yaml": "defaults: [data: '${oc.env:DATA}']"}, None),
        ({"train.yaml": "defaults: [data: '???']"}, None),
        ({"train.yaml": "defaults: [train]"}, None),
        ({"train.yaml": "defaults: x"}, None),
        ({"train.yaml": "- a"}, None),
        ({"train.yaml": "a: ["}, None),
        ({"other.yaml": "a: 1"}, None),
    ],
)
def test_a_defaults_list_is_composed(tmp_path: Path, files: dict[str, str], whole: object) -> None:
    assert composed(tmp_path, files) == whole


def test_the_files_of_the_defaults_list_are_those_that_are_read(tmp_path: Path) -> None:
    files = {"train.yaml": "defaults: [data: x]", "data/x.yaml": "a: 1", "data/y.yaml": "a: 0"}
    composed(tmp_path, files)
    assert configs(tmp_path, "run.py").files == {tmp_path / "conf/train.yaml", tmp_path / "conf/data/x.yaml"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: ${b}\nb: 1", 1),
        ("a: ${b.c}\nb: {c: 1}", 1),
        ("a: ${b}\nb: ${c}\nc: 1", 1),
        ("a: ${a}", None),
        ("a: ${b}", None),
        ("a: x${b}\nb: 1", None),
        ("a: ${oc.env:HOME}", None),
        ("a: ${.b}\nb: 1", None),
    ],
)
def test_interpolations(tmp_path: Path, text: str, value: object) -> None:
    folder = lay(tmp_path, {"config.yaml": text, "run.py": 'OmegaConf.load("config.yaml")'})
    found = configs(folder, "run.py").entry(folder / "config.yaml", ("a",), resolved=True)
    assert plain(found) == value
    assert found is None or (isinstance(found, Scalar) and found.shared)


# --- runs ------------------------------------------------------------------------------------------------


def lint(*arguments: str | Path, stdin: bytes | None = None) -> str:
    """What a run prints."""
    words = [*arguments, "--isolated", "--target-torch", "2.3", "--select", "TL1,TL0", "-j", "1"]
    return run(*words, stdin=stdin).stdout


def found(*arguments: str | Path, stdin: bytes | None = None) -> list[str]:
    """The findings of a run: file, row and column, code, and the grade of the fix."""
    return sorted(
        "{}:{}:{} {} {}".format(
            Path(item["filename"]).name,
            item["location"]["row"],
            item["location"]["column"],
            item["code"],
            item["fix"]["applicability"] if item["fix"] else "none",
        )
        for item in json.loads(lint(*arguments, "--output-format", "json", stdin=stdin))
    )


def program(arguments: str, reading: str) -> str:
    """A program with one loader."""
    return dedent(PROGRAM).format(reading=reading, arguments=arguments)


READ = "cfg = yaml.safe_load(open('config.yaml'))"
PINNED = "pin_memory=True"


@pytest.mark.parametrize(
    ("reading", "argument"),
    [
        (READ, "num_workers=cfg['workers']"),
        (READ, "num_workers=int(cfg['workers'])"),
        (READ, "num_workers=cfg.get('workers', 4)"),
        (READ, "num_workers=cfg['data']['workers']"),
        (READ, "**cfg['loader']"),
        ("import omegaconf; cfg = omegaconf.OmegaConf.load('config.yaml')", "num_workers=cfg.data.workers"),
        (
            "from omegaconf import OmegaConf as O; cfg = O.merge(O.load('config.yaml'), O.from_cli())",
            "num_workers=cfg.data.workers",
        ),
        (f"{READ}; import argparse; cfg = argparse.Namespace(**cfg)", "num_workers=cfg.workers"),
        (
            "cfg = yaml.load(open(os.path.join(os.path.dirname(__file__), 'config.yaml')))",
            "num_workers=cfg['workers']",
        ),
        (
            "from pathlib import Path; cfg = yaml.load((Path(__file__).parent / 'config.yaml').read_text())",
            "num_workers=cfg['workers']",
        ),
    ],
)
def test_values_are_followed_to_their_file(work: Path, reading: str, argument: str) -> None:
    text = "workers: 0\ndata: {workers: 0}\nloader: {num_workers: 0}\n"
    lay(work, {"run.py": program(f"{argument}, {PINNED}", reading), "config.yaml": text})
    row = 3 if "loader" in argument else 2 if "data" in argument else 1
    assert [item for item in found("--no-cache", work) if "TL101" in item] == [
        f"config.yaml:{row}:{text.splitlines()[row - 1].index('0') + 1} TL101 unsafe"
    ]


@pytest.mark.parametrize(
    ("reading", "argument"),
    [
        (f"{READ}; cfg['workers'] = len(sys.argv)", "num_workers=cfg['workers']"),
        (f"{READ}; cfg.update(workers=8)", "num_workers=cfg['workers']"),
        (f"{READ}; setattr(cfg, 'workers', 8)", "num_workers=cfg['workers']"),
        (f"{READ}; cfg.workers = 8", "num_workers=cfg.workers"),
        ("cfg = yaml.safe_load(open(sys.argv[1]))", "num_workers=cfg['workers']"),
        ("cfg = yaml.safe_load(open('other.yaml'))", "num_workers=cfg['workers']"),
        (READ, "num_workers=cfg['gone']"),
        (READ, "num_workers=cfg.get('gone', 0)"),
        (READ, "num_workers=cfg['workers'] + 4"),
        (READ, "**cfg['loader'], **cfg['more']"),
        (f"{READ} if sys.argv else yaml.safe_load(open('eight.yaml'))", "num_workers=cfg['workers']"),
    ],
)
def test_what_is_not_known_is_not_found(work: Path, reading: str, argument: str) -> None:
    files = {"config.yaml": "workers: 0\nloader: {}\nmore: {num_workers: 0}\n", "eight.yaml": "workers: 8\n"}
    lay(work, {"run.py": program(f"{argument}, {PINNED}", reading), **files})
    assert not [item for item in found("--no-cache", work) if "yaml" in item]


PROJECT = {
    "run.py": program(f"num_workers=cfg['workers'], {PINNED}", READ),
    "config.yaml": "workers: 0  # few\n",
    "unread.yaml": "workers: 0\n",
}
FINDING = ["config.yaml:1:10 TL101 unsafe"]


def test_a_finding_is_the_same_whichever_way_its_file_is_asked_for(work: Path) -> None:
    lay(work, PROJECT)
    config = work / "config.yaml"
    assert found("--no-cache") == FINDING
    assert found("--no-cache", "config.yaml") == FINDING
    assert found("--no-cache", "run.py", "config.yaml") == FINDING
    assert found("--no-cache", "run.py") == []
    assert found("--no-cache", "unread.yaml") == []
    assert found("--no-cache", "-", "--stdin-filename", "config.yaml", stdin=config.read_bytes()) == FINDING
    assert found("--no-cache", "-", "--stdin-filename", "config.yaml", stdin=b"workers: 4") == []
    assert found("--no-project", ".") == found("--no-project", "config.yaml") == []
    assert found() == found() == FINDING == found("config.yaml")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=work, check=True)
    config.write_text("workers: 4\n")
    assert found("--no-cache", "--staged") == FINDING
    assert found("--no-cache") == []


def test_a_folder_brings_the_files_in_it_that_are_not_excluded(work: Path) -> None:
    lay(
        work,
        {
            "run.py": PROJECT["run.py"].replace("config.yaml", "conf/config.yaml"),
            "conf/config.yaml": "workers: 0",
        },
    )
    assert found("--no-cache", "conf") == FINDING
    assert found("--no-cache", "--extend-exclude", "conf/*.yaml") == []
    assert found("--no-cache", "--extend-exclude", "conf", ".") == []
    lay(work, {"src/other.py": "x = 1"})
    assert found("--no-cache", "src") == []
    assert "config.yaml" in lint("--show-files", ".") and "unread" not in lint("--show-files", ".")


def test_the_places_that_use_a_value_are_told(work: Path) -> None:
    lay(work, PROJECT)
    (item,) = json.loads(lint("--no-cache", "config.yaml", "--output-format", "json"))
    (place,) = item["related"]
    assert Path(place["filename"]).name == "run.py" and "`workers` is used here" in place["message"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_fix_keeps_all_other_bytes(work: Path, newline: str, mark: bytes) -> None:
    lay(work, PROJECT)
    text = "# ä\nroot:   x # one\nworkers:   0   # two\n\n\nlast: [1,2]".replace("\n", newline)
    (work / "config.yaml").write_bytes(mark + text.encode())
    lint("--no-cache", "--fix", "config.yaml")
    assert (work / "config.yaml").read_bytes() == mark + text.encode()
    lint("--no-cache", "--fix", "--unsafe-fixes", ".")
    assert (work / "config.yaml").read_bytes() == mark + text.replace(":   0", ":   4").encode()
    assert found("--no-cache") == []


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("bad_*")))
def test_fixes_end_their_findings(work: Path, name: str) -> None:
    shutil.copytree(FIXTURES / name, work, dirs_exist_ok=True)
    before = {path: Document(read(path)) for path in work.rglob("*") if is_document(path)}
    assert [item for item in found("--no-cache") if "unsafe" in item or "safe" in item]
    # What a fix brings up in another file is for the next run.
    for _ in range(2):
        lint("--no-cache", "--fix", "--unsafe-fixes")
    assert [item for item in found("--no-cache") if not item.endswith("none")] == []
    after = {path: path.read_text() for path in before}
    assert any(text != before[path].source.text for path, text in after.items())
    for path, text in after.items():
        # Every line that was there still is, but for one value.
        left = [line.partition(":")[0] for line in text.splitlines()]
        assert all(line.partition(":")[0] in left for line in before[path].source.text.splitlines())
    lint("--no-cache", "--fix", "--unsafe-fixes")
    assert after == {path: path.read_text() for path in before}


def test_what_two_programs_read_or_one_uses_twice_is_unsafe_to_change(work: Path) -> None:
    reading = program("**cfg['loader']", READ)
    lay(work, {"run.py": reading, "config.yaml": "loader:\n  num_workers: 4\n"})
    assert found("--no-cache") == ["config.yaml:1:1 TL102 safe"]
    lay(work, {"other.py": "open('config.yaml')"})
    assert found("--no-cache") == ["config.yaml:1:1 TL102 unsafe"]
    (work / "other.py").unlink()
    lay(work, {"run.py": reading + "    print(cfg['loader'])\n"})
    assert found("--no-cache") == ["config.yaml:1:1 TL102 unsafe"]
    lay(work, {"run.py": reading, "config.yaml": "loader: &a\n  num_workers: 4\nmore: *a\n"})
    assert found("--no-cache") == ["config.yaml:1:1 TL102 unsafe"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("workers: 0  # noqa", []),
        ("workers: 0  # noqa: TL101", []),
        ("# torchlint: ignore[TL101]\nworkers: 0", []),
        ("# torchlint: file-ignore[TL101]\nroot: x\nworkers: 0", []),
        ("root: '# noqa: TL101'\nworkers: 0", ["config.yaml:2:10 TL101 unsafe"]),
        ("workers: 4  # noqa: TL101", ["config.yaml:1:21 TL002 safe"]),
        ("workers: 4  # noqa: TL999", ["config.yaml:1:21 TL003 none"]),
    ],
)
def test_comments_suppress(work: Path, text: str, left: list[str]) -> None:
    lay(work, {**PROJECT, "config.yaml": text})
    assert found("--no-cache") == left


def test_comments_are_added_to_yaml_and_not_to_json(work: Path) -> None:
    lay(work, PROJECT)
    lint("--add-noqa=", "--no-cache", ".")
    assert (work / "config.yaml").read_text() == "workers: 0  # few  # noqa: TL101\n"
    assert found("--no-cache") == []
    lay(work, {"run.py": PROJECT["run.py"].replace(".yaml", ".json"), "config.json": '{"workers": 0}'})
    lint("--add-noqa=", "--no-cache", ".")
    assert (work / "config.json").read_text() == '{"workers": 0}'


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        b"workers: \xe4",
        b"workers: 0\x00",
        b"a: [",
        b"\t- x",
        b"a: 1\n---\nb: 2",
        b"",
        b"&a [*a]",
    ],
)
def test_a_file_that_cannot_be_read_is_passed_over(work: Path, data: bytes) -> None:
    lay(work, PROJECT)
    (work / "config.yaml").write_bytes(data)
    assert found("--no-cache") == found("--no-cache", "config.yaml") == []
    lint("--no-cache", "--fix", "--unsafe-fixes", ".")
    assert (work / "config.yaml").read_bytes() == data


def test_a_file_that_is_not_there_is_reported(work: Path) -> None:
    lay(work, PROJECT)
    assert found("gone.yaml") == ["gone.yaml:1:1 TL001 none"]


def test_what_was_remembered_holds_while_all_is_as_it_was(work: Path) -> None:
    lay(work, {**PROJECT, "helpers.py": "x = 1\n"})
    assert found() == FINDING == found()
    steps: list[tuple[dict[str, str], list[str]]] = [
        ({"config.yaml": "workers: 4\n"}, []),
        ({"config.yaml": "root: x\nworkers: 0\n"}, ["config.yaml:2:10 TL101 unsafe"]),
        ({"run.py": PROJECT["run.py"].replace("'workers'", "'more'")}, []),
        ({"config.yaml": "more: 0\n"}, ["config.yaml:1:7 TL101 unsafe"]),
        ({"helpers.py": "open('config.yaml')\n"}, ["config.yaml:1:7 TL101 unsafe"]),
        (
            {"run.py": PROJECT["run.py"].replace("config.yaml", "unread.yaml")},
            ["unread.yaml:1:10 TL101 unsafe"],
        ),
    ]
    for files, expected in steps:
        lay(work, files)
        assert found() == expected == found("--no-cache") == found()
    (work / "unread.yaml").unlink()
    assert found() == []


def test_the_layout_tells_the_files_of_a_project(work: Path) -> None:
    lay(work, PROJECT)
    layouts = Layouts(lambda _: Options())
    layout = layouts.of(work / "config.yaml")
    assert layout is not None and layout is layouts.of(work / "run.py")
    assert layout.documents == (work / "config.yaml",)
    assert layouts.of(work / "unread.yaml") is None
