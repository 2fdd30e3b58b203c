"""Runs that remember, as a user meets them: the same bytes in every format, and nothing out of date."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import install, lint
from torchlint import checker, installation, options, registry, store
from torchlint.store import Store

ROOT = Path(__file__).resolve().parents[1]
BAD = (ROOT / "fixtures" / "TL601_cache_emptied_in_loop" / "bad.py").read_text()
PACK = '''
import libcst as cst
from torchlint.rule import WARNING, Finding, rule
from zz_remembered.words import WORD


@rule("ZZ101", "word-called", severity=WARNING, fix="none", on=cst.Call)
def word_called(call, module):
    """## What it does

    Finds calls of the word.
    """
    if isinstance(call.func, cst.Name) and call.func.value == WORD:
        yield Finding(call, "called MESSAGE")
'''


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty project, and a cache of the user's own that is empty too."""
    for name in [name for name in os.environ if name.startswith("TORCHLINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("torchlint.commands.caching.default_directory", lambda: tmp_path / "cache")
    monkeypatch.setattr("torchlint.commands.clean.default_directory", lambda: tmp_path / "cache")
    monkeypatch.setattr(registry, "_known", None)
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    forget()
    yield root
    monkeypatch.undo()
    forget()


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were checked rather than remembered."""
    names: list[str] = []
    check = checker.check

    def watched(source, settings, **how):  # type: ignore[no-untyped-def]
        names.append(source.path.name)
        return check(source, settings, **how)

    monkeypatch.setattr(checker, "check", watched)
    return names


def forget() -> None:
    """What this process knows of the rules: as if a new one started."""
    for name in [name for name in sys.modules if name.startswith("zz_remembered")]:
        del sys.modules[name]
    registry.forget()


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)


def test_a_second_run_says_the_same_in_every_format(checked: list[str]) -> None:
    write(a=BAD, b="x = 1\n", c="# torchlint: ignore[TL601]\n" + BAD.replace("\n", "\r\n"))
    lint("--isolated")
    for name in options.FORMATS:
        args = ("--isolated", "--output-format", name)
        fresh = lint(*args, "--no-cache")
        del checked[:]
        again = lint(*args)
        assert checked == []
        assert (fresh.output, fresh.exit_code) == (again.output, 1) == (again.output, again.exit_code)


@pytest.mark.parametrize("flag", ["--diff", "--statistics", "--fix", "--fix-only"])
def test_a_second_run_does_the_same(flag: str) -> None:
    lint_of = {}
    for known in (False, True):
        write(a=BAD, b="x = 1\n")
        if known:
            lint("--isolated")
        result = lint("--isolated", flag, *([] if known else ["--no-cache"]))
        lint_of[known] = (result.output, result.exit_code, Path("a.py").read_bytes())
    assert lint_of[True] == lint_of[False]


@pytest.mark.parametrize(
    "change",
    [
        *(["--ignore", "TL601"], ["--select", "ALL"], ["--unfixable", "TL601"], ["--target-torch", "1.9"]),
        *(["--ignore-noqa"], ["--unsafe-fixes"], ["--config", "workers = 7"]),
        *(["--config", "extend-unsafe-fixes = ['TL601']"], ["--per-file-ignores", "a.py:TL601"]),
    ],
)
def test_other_options_are_not_served_from_it(checked: list[str], change: list[str]) -> None:
    write(a=BAD)
    for args in ([], change):
        fresh = lint("--isolated", "--no-cache", *args)
        del checked[:]
        first = lint("--isolated", *args)
        assert checked == ["a.py"]
        assert first.output == fresh.output == lint("--isolated", *args).output
        assert checked == ["a.py"]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("torch", "torch>=1.9", "torch>=2.4"), ("transformers", "transformers>=4.1", "transformers>=4.50")],
)
def test_other_declarations_are_not_served_from_it(
    checked: list[str], monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    from torchlint import target

    write(a=BAD)
    for expected, text in (["a.py"], before), ([], before), (["a.py"], after):
        target._declared.cache_clear()
        target._files.cache_clear()
        Path("requirements.txt").write_text(f"{text}\n")
        del checked[:]
        lint()
        assert checked == expected


def test_another_installed_release_is_not_served_from_it(
    checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchlint import target

    write(a=BAD)
    lint("--isolated")
    del checked[:]
    monkeypatch.setattr(target, "installed", lambda package="torch": target.Target.parse("1.8", "installed"))
    lint("--isolated")
    assert checked == ["a.py"]


def test_other_code_of_a_rule_pack_is_not_served_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str]
) -> None:
    site = tmp_path / "site"
    package = site / "zz_remembered"
    (package / "rules").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("WORD = 'bad'\n")
    (package / "rules" / "__init__.py").write_text(PACK.replace("MESSAGE", "one"))
    monkeypatch.syspath_prepend(str(site))
    write(a="bad(worse())\n")

    def found() -> str:
        forget()
        return lint("--isolated", "--select", "ZZ", "--output-format", "concise", "-q").stdout

    forget()
    assert lint("--isolated", "--select", "ZZ").exit_code == 2
    metadata = install(site, "zz_remembered", "zz_remembered.rules")
    assert found() == "a.py:1:1: ZZ101 called one\n"
    assert found() == "a.py:1:1: ZZ101 called one\n"
    assert checked == ["a.py"]
    (package / "rules" / "__init__.py").write_text(PACK.replace("MESSAGE", "two, more"))
    assert found() == "a.py:1:1: ZZ101 called two, more\n"
    # What the rules import is code of the pack as well.
    (package / "words.py").write_text("WORD = 'worse'\n")
    assert found() == "a.py:1:5: ZZ101 called two, more\n"
    shutil.rmtree(metadata)
    forget()
    assert lint("--isolated", "--select", "ZZ").exit_code == 2


def test_the_code_of_torchlint_is_known_by_what_it_holds() -> None:
    code = installation.Code.of(())
    names = {name for name, _ in code.files}
    assert {"torchlint/checker.py", "torchlint/semantics/module.py", "libcst"} <= names
    assert "torchlint.rules/memory/cache_emptied_in_loop.py" in names
    assert not any("__pycache__" in name or "/cases/" in name for name in names)
    moved = installation.Code(tuple((name, path) for name, path in code.files if name != "libcst"))
    assert code.digest == installation.Code.of(()).digest != moved.digest


def test_a_catalogue_that_was_remembered_is_the_catalogue(tmp_path: Path) -> None:
    fresh = registry.catalogue()
    for _ in range(2):
        forget()
        known = registry.known(Store(tmp_path / "cache"))
        assert registry.catalogue() is known.catalogue
        assert dict(known.catalogue) == dict(fresh)
        facts = ("page", "summary", "remedy", "mentions")
        for code, rule in fresh.items():
            assert [getattr(known.catalogue[code], name) for name in facts] == [
                getattr(rule, name) for name in facts
            ]
            assert known.catalogue[code].check.__module__ == rule.check.__module__
    assert registry._remembered(Store(tmp_path / "cache").load(name_of(tmp_path / "cache")), "else") is None


def name_of(folder: Path) -> str:
    (path,) = folder.glob("catalogue-*.json")
    return path.stem


def test_checkouts_that_lie_elsewhere_have_a_file_each(tmp_path: Path, checked: list[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(BAD)
        lint("--isolated", str(tmp_path / name))
    assert len(list((tmp_path / "cache").rglob("results-*"))) == 2
    del checked[:]
    lint("--isolated", str(tmp_path / "one"))
    assert checked == []


@pytest.mark.parametrize("marker", [".git", "pyproject.toml"])
def test_a_file_is_known_from_a_run_on_its_project_wherever_either_is_started(
    tmp_path: Path, checked: list[str], marker: str
) -> None:
    inner = tmp_path / "elsewhere" / "package" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "elsewhere" / marker).touch()
    (inner.parent / "first.py").write_text(BAD)
    (inner / "second.py").write_text(BAD)
    lint(str(tmp_path / "elsewhere"))
    assert sorted(checked) == ["first.py", "second.py"]
    lint(str(inner / "second.py"))
    assert sorted(checked) == ["first.py", "second.py"]


def test_the_cache_is_not_in_the_project(work: Path, tmp_path: Path) -> None:
    write(a="x = 1\n")
    lint()
    assert sorted(path.name for path in work.iterdir()) == ["a.py"]
    kinds = sorted(path.name.partition("-")[0] for path in (tmp_path / "cache").glob("*.json"))
    assert kinds == ["catalogue", "faces", "facts", "results"]


@pytest.mark.parametrize("how", ["flag", "environment", "config"])
def test_the_folder_may_be_named(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str], how: str
) -> None:
    write(a="x = 1\n")
    args = []
    if how == "flag":
        args = ["--cache-dir", ".torchlint_cache"]
    elif how == "environment":
        monkeypatch.setenv("TORCHLINT_CACHE_DIR", ".torchlint_cache")
    else:
        Path("torchlint.toml").write_text('cache-dir = ".torchlint_cache"\n')
    lint(*args)
    assert checked == ["a.py"]
    lint(*args)
    assert checked == ["a.py"]
    assert len(list((work / ".torchlint_cache").glob("results-*.json"))) == 1
    assert not list((tmp_path / "cache").glob("results-*"))
    assert "a.py" in (shown := lint("--show-files").stdout) and ".torchlint_cache" not in shown
    cleaned = lint("clean", *args)
    assert cleaned.stdout.startswith("Deleted ") and cleaned.exit_code == 0
    assert not (work / ".torchlint_cache").exists()


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_nothing_need_be_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str], how: str
) -> None:
    write(a="x = 1\n")
    if how == "environment":
        monkeypatch.setenv("TORCHLINT_NO_CACHE", "1")
    for _ in range(2):
        lint(*(["-n"] if how == "flag" else []))
    assert checked == ["a.py", "a.py"]
    assert not (tmp_path / "cache").exists()


def test_a_folder_of_something_else_is_left_alone_and_the_run_goes_on(work: Path, checked: list[str]) -> None:
    write(a="x = 1\n")
    result = lint("--cache-dir", ".")
    assert "it contains other files; results are not cached" in result.stderr
    assert (result.exit_code, checked) == (0, ["a.py"])
    assert sorted(path.name for path in work.iterdir()) == ["a.py"]
    refused = lint("clean", "--cache-dir", ".")
    assert (refused.exit_code, "it contains other files" in refused.stderr) == (2, True)
    assert Path("a.py").exists()


def test_a_cache_that_came_with_the_repository_is_not_believed(work: Path, checked: list[str]) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    write(a=BAD)
    Path("torchlint.toml").write_text('cache-dir = ".torchlint_cache"\n')
    lint()
    (path,) = (work / ".torchlint_cache").glob("results-*.json")
    forge(path)
    # Whoever writes to a folder that the user names is believed.
    assert lint("--cache-dir", ".torchlint_cache").exit_code == 0
    subprocess.run(["git", "add", "-f", ".torchlint_cache"], check=True)
    for args in ((), ("--cache-dir", ".torchlint_cache")):
        result = lint(*args)
        assert (result.exit_code, "git tracks files in it" in result.stderr) == (1, True)


def forge(path: Path) -> None:
    """Write the results of a run anew, as if nothing had been found."""
    entries = json.loads(path.read_bytes().partition(b"\n")[2])
    Store(path.parent).save(path.stem, {key: [1, [], *rest] for key, (_, _, *rest) in entries.items()})


def test_a_cache_that_a_project_ships_is_not_believed(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: list[str]
) -> None:
    write(a=BAD)
    Path("torchlint.toml").write_text('cache-dir = ".torchlint_cache"\n')
    lint()
    (path,) = (work / ".torchlint_cache").glob("results-*.json")
    key = tmp_path / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    genuine = path.read_bytes()
    forge(path)
    del checked[:]
    assert (lint().exit_code, checked) == (1, ["a.py"])
    # What this machine has written is believed, also where somebody unpacks it once more.
    path.write_bytes(genuine)
    assert (lint().exit_code, checked) == (1, ["a.py"])
    # What another one has written is not: nobody but the user knows the key.
    path.write_bytes(genuine)
    key.unlink()
    assert (lint().exit_code, checked) == (1, ["a.py", "a.py"])
    # Nor what is named by a config that the command line names.
    Path("torchlint.toml").rename("other.toml")
    forge(path)
    assert lint("--config", "other.toml").exit_code == 1


@pytest.mark.parametrize("where", ["..", "../elsewhere", "absolute", "link", ".", ""])
def test_a_project_makes_no_cache_outside_of_it(
    work: Path, tmp_path: Path, checked: list[str], where: str
) -> None:
    write(a=BAD)
    outside = tmp_path / "elsewhere"
    if where == "link":
        Path("link").symlink_to(tmp_path)
    told = {"absolute": str(outside), "link": "link/elsewhere"}.get(where, where)
    config = Path("torchlint.toml")
    config.write_text(f"cache-dir = '{told}'\n")
    before = sorted(path.name for path in work.iterdir())
    for expected in (["a.py"], ["a.py"]):
        result = lint()
        assert f"`cache-dir` of {work / config} names a folder that is not below it" in result.stderr
        assert "`--cache-dir` and TORCHLINT_CACHE_DIR may; it is ignored" in result.stderr
        # What is remembered is in the user's own cache, as without.
        assert (result.exit_code, checked) == (1, expected)
    assert sorted(path.name for path in work.iterdir()) == before
    assert not outside.exists() and (tmp_path / "cache").exists()
    refused = lint("clean")
    assert (refused.exit_code, "is not below it" in refused.stderr) == (2, True)
    assert lint("--no-cache").stderr == ""
    # The user may: by an option, a variable, or the config that is the user's own.
    assert lint("--cache-dir", str(outside)).stderr == "" and outside.exists()
    assert "Deleted" in lint("clean", "--cache-dir", str(outside)).stdout
    assert lint("--config", f"cache-dir = '{outside}'").stderr == "" and outside.exists()
    config.unlink()


def test_the_users_own_config_may_name_any_folder(tmp_path: Path, checked: list[str]) -> None:
    write(a=BAD)
    outside, config = tmp_path / "elsewhere", tmp_path / "home" / "torchlint" / "torchlint.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"cache-dir = '{outside}'\n")
    for _ in range(2):
        result = lint()
        assert (result.exit_code, result.stderr, checked) == (1, "", ["a.py"])
    assert outside.exists() and not (tmp_path / "key").exists()


def test_a_config_that_is_extended_names_a_folder_of_its_own_place(work: Path, checked: list[str]) -> None:
    Path("torchlint.toml").write_text("cache-dir = '.torchlint_cache'\n")
    Path("sub").mkdir()
    Path("sub/a.py").write_text(BAD)
    Path("sub/torchlint.toml").write_text("extend = '../torchlint.toml'\n")
    os.chdir("sub")
    for _ in range(2):
        result = lint()
        assert (result.exit_code, result.stderr, checked) == (1, "", ["a.py"])
    assert (work / ".torchlint_cache").exists()


def test_where_no_key_can_be_kept_a_project_names_no_cache(
    monkeypatch: pytest.MonkeyPatch, checked: list[str]
) -> None:
    write(a=BAD)
    Path("torchlint.toml").write_text('cache-dir = ".torchlint_cache"\n')
    monkeypatch.setattr("torchlint.commands.caching.own_key", lambda path: b"")
    result = lint()
    assert "the user's cache folder is not writable; results are not cached" in result.stderr
    assert (result.exit_code, Path(".torchlint_cache").exists()) == (1, False)


def test_a_cache_that_cannot_be_written_is_no_more_than_a_word(
    monkeypatch: pytest.MonkeyPatch, checked: list[str]
) -> None:
    write(a=BAD)
    expected = lint("--no-cache")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "_make", refuse)
    for _ in range(2):
        result = lint()
        assert (result.output, result.exit_code) == (expected.output, expected.exit_code)
    assert "nothing was cached" in lint("-v").stderr


def test_cleaning_an_empty_cache_says_so() -> None:
    assert lint("clean").stdout.startswith("Deleted 0 files")
    assert lint("clean", "-q").stdout == ""


def test_timing_names_what_took_long(checked: list[str]) -> None:
    write(a=BAD, b="x = 1\n")
    lint("--isolated")
    del checked[:]
    result = lint("--isolated", "--timing", "--output-format", "json")
    assert checked == ["a.py", "b.py"]
    assert result.stdout == lint("--isolated", "--output-format", "json").stdout
    head, *rows, total = result.stderr.splitlines()
    assert head.split() == ["Rule", "CPU", "seconds", "Share"]
    assert any(row.startswith("TL601 cache-emptied-in-loop ") for row in rows)
    seconds = [float(row.split()[-3]) for row in rows]
    assert seconds == sorted(seconds, reverse=True)
    assert total.split()[0] == "Total" and total.endswith("100.0 %")
    assert abs(float(total.split()[1]) - sum(seconds)) < 0.001 * len(rows)


def test_what_is_known_needs_neither_the_parser_nor_the_terminal_library(work: Path, tmp_path: Path) -> None:
    write(a=BAD, b="x = 1\n")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path)}
    command = [sys.executable, "-X", "importtime", "-m", "torchlint", "--isolated"]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        for _ in range(2)
    ]
    listed = [[line.rpartition("|")[2].strip() for line in run.stderr.splitlines()] for run in runs]
    loaded = list(map(set, listed))
    # Whoever imports comes behind: LibCST takes twice as long unless it is by this module.
    assert listed[0][listed[0].index("libcst") + 1] == "torchlint.nodes"
    never = {"libcst", "rich", "importlib.metadata", "multiprocessing", "torchlint.checker"}
    never |= {"pathspec", "subprocess", "tomllib", "torchlint.suppressions"}
    assert never & loaded[1] == set()
    assert runs[0].stdout == runs[1].stdout


# --- what a run is about ---------------------------------------------------------------------------------

TWICE = BAD + BAD.replace("import torch\n", "").replace("def ", "def other_")


def test_a_baseline_is_held_against_what_is_remembered(checked: list[str]) -> None:
    write(a=BAD, b="x = 1\n")
    lint("--isolated", "--baseline", "known.json", "--update-baseline")
    assert sorted(checked) == ["a.py", "b.py"]
    plain = lint("--isolated")
    fresh = lint("--isolated", "--baseline", "known.json", "--no-cache")
    del checked[:]
    held = lint("--isolated", "--baseline", "known.json")
    assert checked == []
    assert (held.output, held.exit_code) == (fresh.output, 0)
    assert plain.exit_code == 1
    # And the other way round: what a run with a baseline finds is all that there is.
    write(a=TWICE)
    fresh = lint("--isolated", "--no-cache")
    known = lint("--isolated", "--baseline", "known.json")
    del checked[:]
    assert lint("--isolated").output == fresh.output != known.output
    assert lint("--isolated", "--baseline", "known.json").output == known.output
    assert checked == []


def test_changed_lines_are_picked_from_what_is_remembered(
    git: Any, checked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(git.top)
    git.commit(a=BAD)
    git.write("a.py", TWICE)
    git("add", "a.py")
    git.write("a.py", TWICE + "x = 1\n")
    for args in (["--changed-since", "HEAD"], ["--staged"], []):
        fresh = lint("--isolated", *args, "--no-cache")
        first = lint("--isolated", *args)
        del checked[:]
        again = lint("--isolated", *args)
        assert checked == []
        assert (again.output, again.exit_code) == (fresh.output, 1) == (first.output, first.exit_code)
    diff = ["--isolated", "--diff", "--changed-since", "HEAD"]
    assert lint(*diff).output == lint(*diff, "--no-cache").output != lint("--isolated", "--diff").output


def test_a_text_on_standard_input_may_be_that_of_a_known_file(checked: list[str]) -> None:
    write(a=BAD)
    args = ("-", "--isolated", "--stdin-filename", "a.py")
    fresh = lint(*args, "--no-cache", stdin=BAD)
    lint("--isolated")
    del checked[:]
    assert lint(*args, stdin=BAD).output == fresh.output != ""
    assert checked == []
    lint(*args, stdin=TWICE)
    lint(*args, stdin=TWICE)
    assert checked == ["a.py", "a.py"], "what is typed is not remembered"


def test_rules_that_were_given_up_are_remembered_and_told_by_workers_alike(checked: list[str]) -> None:
    # In a function, whose statements the index of the project need not go through.
    too_large = "import torch\ndef f():\n" + " x = y\n" * 140_000
    silenced = too_large.replace("torch\n", "torch  # noqa: TL004\n") + "z = x.item()  # noqa: TL303\n"
    write(a=too_large, b=silenced, c=BAD)
    args = ("--isolated", "--output-format", "concise")
    fresh = lint(*args, "--no-cache", "-j", "1")
    notes = [line for line in fresh.output.splitlines() if ": TL004" in line]
    assert [line.split(":")[0] for line in notes] == ["a.py"]
    assert "TL002" not in fresh.output
    assert lint(*args, "--no-cache", "-j", "2").output == fresh.output
    assert lint(*args).output == fresh.output
    del checked[:]
    assert lint(*args).output == fresh.output
    assert checked == []
    assert "TL004" not in lint(*args, "--select", "TL601").output
