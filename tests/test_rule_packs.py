"""A rule pack from its first file to its use, as docs/rule-packs.md shows it: built, installed and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import lint
from torchlint import options, registry, schema, testing

ROOT = Path(__file__).resolve().parents[1]
_FILE = re.compile(r"<!-- file: (?P<path>\S+) -->\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

PROGRAM = """\
from lab import checkpoints

state = checkpoints.read("model.pt")
"""


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the page tells its reader to make."""
    folder = tmp_path_factory.mktemp("torchlint-lab")
    for file in _FILE.finditer((ROOT / "docs" / "rule-packs.md").read_text(encoding="utf-8")):
        path = folder / file["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"], encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def site(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the wheel of the pack is installed."""
    built, target = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("site")
    _python("-m", "build", "--wheel", "--no-isolation", "--outdir", built, pack)
    (wheel,) = built.glob("*.whl")
    _python("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
    return target


def _python(*arguments: str | Path) -> None:
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(autouse=True)
def work(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project beside which the pack is installed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "load.py").write_text(PROGRAM, encoding="utf-8")
    _forget()
    yield root
    _forget()


def _forget() -> None:
    registry.forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchlint_lab"]:
        del sys.modules[name]


def found(*args: str) -> list[str]:
    return [item["code"] for item in json.loads(lint(*args, "--output-format", "json").stdout)]


def test_its_rules_are_listed_and_explained() -> None:
    assert {"LAB101", "LAB201"} < {line.split()[0] for line in lint("rule", "--all").stdout.splitlines()}
    page = lint("rule", "slow-checkpoint-reader").stdout
    assert page.startswith("# slow-checkpoint-reader (LAB101)\n\nReported as a warning. Its fix is safe")
    assert "The lab's handbook, page 12" in page
    assert "It is opt-in: select it by its code" in lint("rule", "LAB201").stdout


def test_its_rules_are_off_until_they_are_selected() -> None:
    assert found() == []
    for selector in ("LAB", "LAB1", "LAB101", "slow-checkpoint-reader", "ALL"):
        assert found("--select", selector) == ["LAB101"]
    assert found("--select", "LAB201") == []


def test_the_config_selects_them(work: Path) -> None:
    (work / "pyproject.toml").write_text('[tool.torchlint]\nselect = ["LAB"]\n', encoding="utf-8")
    assert found() == ["LAB101"]
    (work / "pyproject.toml").write_text(
        '[tool.torchlint]\nextend-select = ["LAB"]\nper-file-ignores = { "load.py" = ["LAB1"] }\n',
        encoding="utf-8",
    )
    assert found() == []
    assert "LAB101" not in lint("--show-settings").stdout
    assert "TL002, TL003" in lint("--show-settings").stdout


def test_its_fixes_are_applied(work: Path) -> None:
    assert lint("--select", "LAB", "--fix").exit_code == 0
    assert (work / "load.py").read_text(encoding="utf-8") == PROGRAM.replace("read(", "read_mapped(")


@pytest.mark.parametrize(
    "comment",
    [
        *("# noqa: LAB101", "# noqa: slow-checkpoint-reader", "# noqa"),
        *("# torchlint: ignore[LAB101]", "# torchlint: ignore[slow-checkpoint-reader]"),
    ],
)
def test_its_findings_are_suppressed(work: Path, comment: str) -> None:
    text = PROGRAM.rstrip() + f"  {comment}\n"
    (work / "load.py").write_text(text, encoding="utf-8")
    assert found("--select", "LAB,TL") == []
    assert found("--select", "LAB,TL", "--ignore-noqa") == ["LAB101"]


def test_a_suppression_of_nothing_is_reported(work: Path) -> None:
    text = "x = 1  # noqa: LAB101\ny = 2  # torchlint: ignore[LAB201]\n"
    (work / "load.py").write_text(text, encoding="utf-8")
    assert found("--select", "LAB,TL") == ["TL002"]
    assert found("--select", "ALL") == ["TL002", "TL002"]
    # Whoever does not run the rule cannot know whether the comment is of use.
    assert found() == []
    lint("--select", "ALL", "--fix")
    assert (work / "load.py").read_text(encoding="utf-8") == "x = 1\ny = 2\n"


@pytest.mark.parametrize("name", options.FORMATS)
def test_every_format_has_its_findings(name: str) -> None:
    result = lint("--select", "LAB", "--output-format", name)
    assert result.exit_code == 1, result.output
    assert "LAB101" in result.stdout and "copies the whole checkpoint" in result.stdout


def test_editors_and_shells_offer_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    words = schema.document(registry.catalogue())["definitions"]["rule"]["anyOf"][0]["enum"]
    assert {"LAB", "LAB1", "LAB101", "progress-shown-every-step"} <= set(words)
    monkeypatch.setenv("COMP_WORDS", "torchlint --select TL1,LAB")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TORCHLINT_COMPLETE", "bash_complete")
    assert lint().stdout.split() == ["plain,TL1,LAB101", "plain,TL1,LAB201"]


def test_its_fixtures_run(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert testing.main([str(pack / "fixtures")]) == 0
    told = capsys.readouterr().out
    assert told == "4 fixtures, 0 problems\n"
    assert told in (ROOT / "docs" / "rule-packs.md").read_text(encoding="utf-8")


def test_a_fixture_that_lies_is_noticed(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "LAB101_slow_checkpoint_reader"
    folder.mkdir()
    for path in (pack / "fixtures" / folder.name).iterdir():
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "good.py").write_text(PROGRAM, encoding="utf-8")
    assert testing.main([str(folder)]) == 1
    assert "good.py:3: found LAB101 fix=safe" in capsys.readouterr().out
    (folder / "good.py").unlink()
    assert testing.main([str(folder)]) == 1
    assert "LAB101: a rule needs a bad and a good fixture" in capsys.readouterr().out


def test_the_version_names_the_packs() -> None:
    assert "\nrule pack torchlint-lab 1.0 (lab: torchlint_lab)\n" in lint("version", "-v").stdout
    told = json.loads(lint("version", "--output-format", "json").stdout)
    (named,) = told["rule_packs"]
    assert named == {"name": "lab", "module": "torchlint_lab", "distribution": "torchlint-lab 1.0"}


def test_worker_processes_know_the_pack(work: Path) -> None:
    for number in range(2):
        long = PROGRAM + f"# {'x' * 100}\n" * 2000
        (work / f"load_{number}.py").write_text(long, encoding="utf-8")
    arguments = ["--select", "LAB", "--output-format", "concise", "-q", "--jobs", "2"]
    run = subprocess.run(
        [sys.executable, "-m", "torchlint", *arguments], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert run.stdout.count("LAB101") == 3


BROKEN = '''
from torchlint.rule import WARNING, rule

@rule("LAB301", "broken-rule", severity=WARNING, fix="none", on=object)
def broken_rule(node, module):
    """## What it does

    Finds nothing.
    """
    yield from ()
'''


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BROKEN + "import no_such_module_anywhere\n", "no_such_module_anywhere"),
        (BROKEN + "1 / 0\n", "ZeroDivisionError"),
        (BROKEN + "def (\n", "SyntaxError"),
        (BROKEN + "x = '\udcff'\n", "torchlint_lab.broken"),
        (BROKEN.replace("LAB301", "TL202"), "two rules are called `TL202`"),
        (BROKEN.replace("broken-rule", "item-in-hot-loop"), "two rules are called `item-in-hot-loop`"),
        (BROKEN.replace("LAB301", "lab301"), "`lab301` is not a valid code"),
        (BROKEN.replace("broken-rule", "Broken rule"), "`Broken rule` is not a valid name"),
        (BROKEN.replace('fix="none"', 'fix="maybe"'), "`maybe`"),
        (BROKEN.replace("on=object", 'on=object, mentions="torch"'), "`mentions` is one string"),
        (BROKEN.replace("=WARNING", "='warning'"), "its severity is"),
    ],
)
def test_a_pack_that_is_broken_is_named(
    site: Path, text: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = site / "torchlint_lab" / "broken.py"
    module.write_text(text, encoding="utf-8", errors="surrogateescape")
    try:
        result = lint("--select", "LAB")
    finally:
        module.unlink()
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "rule pack `lab` (torchlint-lab 1.0)" in result.stderr
    assert "failed" not in result.stderr and result.stdout == ""
