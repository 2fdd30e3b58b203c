"""The command line as a user meets it: real runs over real files, with a small rule pack of its own.

The pack keeps these tests independent of what the shipped rules find: `bad()` has a safe fix, `worse()` an
unsafe one, `hint()` is a note without a fix, `rare()` needs to be selected, `crash()` breaks its rule.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from packaging.requirements import Requirement

import torchlint
from tests.conftest import install, lint
from torchlint import cli, installation, links, options, registry, runner, schema, toml
from torchlint.commands import build, check, progress, terminal

PACK = '''
import libcst as cst
from torchlint.diagnostics import Applicability, Edit, Fix
from torchlint.rule import ERROR, NOTE, WARNING, Finding, rule


def _named(call, name):
    return isinstance(call.func, cst.Name) and call.func.value == name


def _renamed(call, module, name, grade):
    risk = "it is worse" if grade is Applicability.UNSAFE else None
    return Fix(f"Use `{name}`", (Edit(module.tree.span(call.func), name),), grade, risk=risk)


@rule("ZZ101", "bad-called", severity=WARNING, fix="safe", on=cst.Call, mentions=("bad",))
def bad_called(call, module):
    """## What it does

    Finds `bad()`. Always.

    ## Why is this bad?

    It is called so.
    """
    if _named(call, "bad"):
        yield Finding(call, "`bad` is called", fix=_renamed(call, module, "good", Applicability.SAFE))


@rule("ZZ102", "worse-called", severity=ERROR, fix="unsafe", on=cst.Call, mentions=("worse",))
def worse_called(call, module):
    """## What it does

    Finds `worse()`.
    """
    if _named(call, "worse"):
        yield Finding(call, "`worse` is called", fix=_renamed(call, module, "better", Applicability.UNSAFE))


@rule("ZZ201", "hint-called", severity=NOTE, fix="none", on=cst.Call, mentions=("hint",))
def hint_called(call, module):
    """## What it does

    Finds `hint()`.
    """
    if _named(call, "hint"):
        yield Finding(call, "`hint` is called")


@rule("ZZ301", "rare-called", severity=WARNING, fix="none", on=cst.Call, mentions=("rare",), opt_in=True,
      remedy="Call `common()`")
def rare_called(call, module):
    """## What it does

    Finds `rare()`.
    """
    if _named(call, "rare"):
        yield Finding(call, "`rare` is called")


@rule("ZZ901", "rule-that-crashes", severity=WARNING, fix="none", on=cst.Call, mentions=("crash",))
def rule_that_crashes(call, module):
    """## What it does

    Breaks.
    """
    if _named(call, "crash"):
        raise RuntimeError("boom")
    yield from ()
'''
ALL = "bad()\nworse()\nhint()\nrare()\n"


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the rule pack as if it were installed."""
    root = tmp_path_factory.mktemp("pack")
    (root / "zz_cli_pack.py").write_text(PACK)
    install(root, "zz_cli_pack", "zz_cli_pack")
    return root


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Path) -> Iterator[Path]:
    """A project that selects the pack's rules, and an environment that says nothing."""
    for name in [name for name in os.environ if name.startswith("TORCHLINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHLINT_NO_CACHE", "1")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(pack))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pack), os.environ.get("PYTHONPATH", "")]))
    root = tmp_path / "work"
    root.mkdir()
    (root / "torchlint.toml").write_text('select = ["ZZ"]\n')
    monkeypatch.chdir(root)
    registry.forget()
    yield root
    registry.forget()


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)


def spawn(*args: str, **how: object) -> subprocess.CompletedProcess[str]:
    """Run the command line as users do."""
    command = [sys.executable, "-m", "torchlint", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)  # type: ignore[call-overload, no-any-return]


def codes(result: Result) -> list[str]:
    return [item["code"] for item in json.loads(result.stdout)]


# --- commands ----------------------------------------------------------------------------------------


def test_check_is_the_default_command() -> None:
    write(a="bad()\n")
    spelled = lint("check", "--output-format", "concise", "a.py")
    assert spelled.stdout.startswith("a.py:1:1: ZZ101 [*] `bad` is called\n")
    for args in (["a.py"], []):
        result = lint(*args, "--output-format", "concise")
        assert (result.stdout, result.exit_code) == (spelled.stdout, 1)


def test_options_of_every_command_may_come_first() -> None:
    write(a="bad()\n")
    assert lint("-q", "--color", "never", "check", "--output-format=concise", "a.py").stdout == (
        "a.py:1:1: ZZ101 [*] `bad` is called\n"
    )
    assert lint("--config", "fail-on = 'error'", "check").exit_code == 0
    assert lint("-v", "version").stdout.startswith(f"torchlint {torchlint.__version__}\n")


def test_a_file_called_like_a_command_is_spelled_with_its_directory() -> None:
    Path("rule").write_text("bad()\n")
    assert lint("./rule").exit_code == 1
    assert lint("rule").exit_code == 2


def test_a_misspelt_command_is_not_taken_for_a_path() -> None:
    result = lint("chekc", "a.py")
    assert result.exit_code == 2
    assert "there is no command and no file `chekc`; did you mean `check`?" in result.stderr


def test_an_option_that_is_spelt_as_a_command() -> None:
    write(a="bad()\n")
    result = lint("fix", "a.py")
    assert result.exit_code == 2
    assert "there is no command and no file `fix`; did you mean `--fix`?" in result.stderr


def test_a_command_that_is_spelt_as_an_option() -> None:
    result = lint("--explain", "ZZ101")
    assert result.exit_code == 2
    assert "unknown option `--explain`; `torchlint explain` is a command" in result.stderr


@pytest.mark.parametrize("args", [["--version"], ["-V"], ["version"]])
def test_the_version(args: list[str]) -> None:
    assert spawn(*args).stdout == f"torchlint {torchlint.__version__}\n"
    assert lint(*args).stdout == f"torchlint {torchlint.__version__}\n"


def test_the_version_as_json() -> None:
    told = json.loads(lint("version", "--output-format", "json").stdout)
    assert (told["version"], [pack["name"] for pack in told["rule_packs"]]) == (torchlint.__version__, ["zz"])


@pytest.mark.parametrize(
    ("args", "absent"),
    [
        (["--version"], {"libcst", "yaml", "rich", "click", "pathspec"}),
        (["--help"], {"libcst", "yaml", "rich", "pathspec", "torchlint.options", "torchlint.rule"}),
        (["check", "--help"], {"libcst", "yaml", "rich", "pathspec"}),
        (["rule", "ZZ101"], {"libcst", "yaml", "rich"}),
        (["config"], {"libcst", "yaml", "rich"}),
        (["--show-files"], {"libcst", "yaml", "rich"}),
        (["--isolated", "clean.py"], {"libcst", "yaml", "rich", "pathspec", "subprocess"}),
        (["rule", "TL202", "--output-format", "json"], {"libcst", "yaml", "rich"}),
        (["--isolated", "--output-format", "sarif", "clean.py"], {"libcst", "yaml", "rich"}),
    ],
)
def test_start_up_imports_only_what_is_needed(args: list[str], absent: set[str]) -> None:
    write(clean="x = 1\n")
    code = (
        "import sys\nfrom torchlint.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
    assert not absent & set(run.stderr.split())


def test_the_program_ends_when_all_is_done_and_takes_nothing_apart() -> None:
    code = """
import atexit, threading, time, torchlint.cli

class Left:
    def __del__(self):
        print("taken apart")

def late():
    time.sleep(0.1)
    print("thread")

def main():
    atexit.register(print, "registered")
    threading.Thread(target=late).start()
    print("output")
    raise SystemExit(3)

left = Left()
torchlint.cli.main = main
torchlint.cli.run()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout.splitlines() == ["output", "thread", "registered"]


def test_a_program_that_fails_says_so_as_ever() -> None:
    code = "import torchlint.cli\ntorchlint.cli.main = lambda: 1 / 0\ntorchlint.cli.run()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["help"], ["-q", "help"]])
def test_help_names_the_commands_and_the_default(args: list[str]) -> None:
    told = lint(*args)
    assert told.exit_code == 0
    for name in ("check", "rule", "explain", "config", "version"):
        assert f"\n  {name} " in told.stdout
    assert "default command" in told.stdout


def test_help_on_a_command() -> None:
    assert lint("help", "rule").stdout == lint("rule", "--help").stdout
    assert lint("help", "chekc").exit_code == 2


def test_help_of_check_has_headings_and_every_flag() -> None:
    told = lint("check", "--help").stdout
    for heading in ("Fixing:", "Reporting:", "Rule selection:", "Files:", "Running:"):
        assert f"\n{heading}\n" in told
    for flag in (
        *("--fix", "--unsafe-fixes", "--diff", "--show-fixes", "--fix-only", "--select", "--ignore"),
        *("--extend-select", "--per-file-ignores", "--fixable", "--unfixable", "--target-torch"),
        *("--output-format", "--statistics", "--exit-zero", "--fail-on", "--exit-non-zero-on-fix"),
        *("--output-file", "--jobs", "--isolated", "--config", "--quiet", "--verbose", "--silent", "--color"),
        *("--exclude", "--extend-exclude", "--respect-gitignore", "--force-exclude", "--ignore-noqa"),
        *("--show-files", "--show-settings", "--stdin-filename"),
    ):
        assert flag in told


def test_the_families_of_rules_are_listed() -> None:
    lines = lint("linter").stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["TL0", "TL1", "TL2"]
    assert lines[-1].split() == ["ZZ", "Rule", "pack", "zz_cli_pack", "5", "rules"]
    families = json.loads(lint("linter", "--output-format", "json").stdout)
    listed = [code for family in families for code in family["rules"]]
    assert listed == list(registry.catalogue())
    assert {"prefix": "TL1", "name": "Input pipeline"}.items() <= families[1].items()


@pytest.mark.parametrize("command", ["rule", "explain"])
@pytest.mark.parametrize("name", ["ZZ101", "zz101", "bad-called"])
def test_a_rule_is_explained(command: str, name: str) -> None:
    told = lint(command, name)
    assert told.exit_code == 0
    assert told.stdout.startswith("# bad-called (ZZ101)\n\nReported as a warning. Its fix is safe")
    assert "## Why is this bad?\n\nIt is called so.\n" in told.stdout
    assert "\n\nManual fix: Call `common()`.\n\n## What it does" in lint("rule", "ZZ301").stdout


def test_a_rule_is_explained_in_colour_to_a_terminal() -> None:
    told = lint("--color", "always", "rule", "ZZ101").stdout
    assert "\x1b[" in told
    assert "Why is this bad?" in told


def test_a_rule_as_json() -> None:
    rule = json.loads(lint("rule", "ZZ301", "--output-format", "json").stdout)
    assert (rule["code"], rule["name"], rule["severity"], rule["fix"], rule["opt_in"]) == (
        *("ZZ301", "rare-called", "warning", "none"),
        True,
    )
    assert (rule["summary"], rule["remedy"]) == ("Finds `rare()`.", "Call `common()`")
    assert (rule["url"], rule["measured"]) == (None, [])
    both = json.loads(lint("rule", "ZZ101", "ZZ102", "--output-format", "json").stdout)
    assert [rule["code"] for rule in both] == ["ZZ101", "ZZ102"]


def test_a_rule_as_json_has_everything() -> None:
    rule = json.loads(lint("rule", "TL202", "--output-format", "json").stdout)
    assert rule["what"].startswith("Finds tensors on the accelerator")
    assert rule["why"].startswith("The host launches kernels ahead of the device")
    (bad,), (good,) = rule["bad"], rule["good"]
    assert ".item()" in bad and ".item()" not in good
    assert bad in rule["example"] and good in rule["use_instead"]
    assert rule["fix_safety"].startswith("The fix accumulates the tensor instead of the number")
    assert {"title", "url"} == set(rule["references"][0])
    assert all(reference["url"].startswith("https://") for reference in rule["references"])
    measured = {effect["size"]: effect for effect in rule["measured"]}
    assert measured["small"]["syncs"]["after"] < measured["small"]["syncs"]["before"]
    assert measured["large"]["machine"].startswith("NVIDIA")


def test_a_rule_tells_what_it_was_measured_to_be_worth() -> None:
    page = lint("rule", "TL202").stdout
    assert "\n## Measured\n\nOn NVIDIA H200" in page
    assert "\n* small: " in page
    assert page.endswith(".\n")


def test_every_rule_as_json_is_complete() -> None:
    for rule in json.loads(lint("rule", "--all", "--output-format", "json").stdout):
        if not rule["code"].startswith("ZZ"):
            assert rule["what"] and rule["why"] and rule["fix_safety"] and rule["references"], rule["code"]
            assert rule["bad"] or rule["code"].startswith("TL0"), rule["code"]


def test_all_rules_are_listed() -> None:
    lines = lint("rule", "--all").stdout.splitlines()
    assert any(line.split()[:3] == ["ZZ101", "bad-called", "warning"] for line in lines)
    assert any(line.split()[:4] == ["TL311", "inference-under-no-grad", "note,", "opt-in"] for line in lines)
    assert sum(", opt-in " in line.partition("fix:")[0] for line in lines) == sum(
        rule.opt_in for rule in registry.catalogue().values()
    )
    listed = [rule["code"] for rule in json.loads(lint("rule", "--all", "--output-format", "json").stdout)]
    assert listed == sorted(listed) == list(registry.catalogue())
    assert len(lines) == len(listed)


def test_the_list_of_rules_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.commands.rule.is_terminal", lambda stream: True)
    monkeypatch.setattr("torchlint.commands.terminal.Terminal.width", 80)
    lines = lint("rule", "--all").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:3] == ["ZZ101", "bad-called", "warning"] for line in lines)
    assert len(lines) > 2 * len(registry.catalogue()) - 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["rule", "ZZ1O1"], "unknown rule `ZZ1O1`; did you mean `ZZ101`?"),
        (["rule"], "pass the code or name of a rule, or --all"),
        (["rule", "ZZ101", "--all"], "pass the code or name of a rule, or --all"),
        (["config", "slect"], "unknown config key `slect`; did you mean `select`?"),
        (["config", "trget"], "unknown config key `trget`; did you mean `target-torch`?"),
        (["config", "formt"], "did you mean `output-format`?"),
        (["config", "ignroe"], "did you mean `ignore`?"),
        (["config", "notes"], "unknown config key `notes`; `torchlint config` lists them"),
        (["config", "zzzzzz"], "`torchlint config` lists them"),
    ],
)
def test_asking_for_what_is_not_there(args: list[str], told: str) -> None:
    result = lint(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_config_keys_are_listed_and_explained() -> None:
    listed = lint("config").stdout
    for key in ("select", "per-file-ignores", "target-torch", "fail-on", "extend"):
        assert f"\n{key} " in listed
    told = lint("config", "fail-on").stdout
    assert "Choices: note, warning, error\n" in told
    assert 'Default: "warning"\n' in told
    assert '    fail-on = "note"\n' in told
    assert json.loads(lint("config", "workers", "--output-format", "json").stdout)["default"] == 4
    assert {item["key"] for item in json.loads(lint("config", "--output-format", "json").stdout)} >= {
        "fix",
        "extend",
    }


def test_what_only_the_command_line_takes_is_explained_too() -> None:
    told = lint("config", "jobs").stdout
    assert "Only set by: `--jobs`, `TORCHLINT_JOBS`\n" in told
    assert "Example: torchlint --jobs N\n" in told and "pyproject.toml" not in told
    assert "\njobs " not in lint("config").stdout
    assert "Read from: the config file closest to the source file\n" in lint("config", "workers").stdout
    assert "Read from: the config file closest to the working directory\n" in lint("config", "fix").stdout
    for name in options.settings():
        assert lint("config", options.key(name)).exit_code == 0


def test_the_schema_has_the_rules_of_packs() -> None:
    document = json.loads(lint("schema").stdout)
    assert {"ZZ101", "bad-called", "ZZ1", "TL202"} <= set(document["definitions"]["rule"]["anyOf"][0]["enum"])
    assert document == schema.document(registry.catalogue())


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("torchlint ru", 1, {"rule"}),
        ("torchlint --fail", 1, {"--fail-on"}),
        ("torchlint check --fail", 2, {"--fail-on"}),
        ("torchlint --fail-on ", 2, {"note", "warning", "error"}),
        ("torchlint --vers", 1, {"--version"}),
        ("torchlint rule ZZ1", 2, {"ZZ101", "ZZ102"}),
        ("torchlint explain zz2", 2, {"ZZ201"}),
        ("torchlint rule worse", 2, {"worse-called"}),
        ("torchlint config extend-se", 2, {"extend-select"}),
        ("torchlint config job", 2, {"jobs"}),
        ("torchlint generate-shell-completion ", 2, {"bash", "zsh", "fish"}),
        ("torchlint check --select ZZ3", 3, {"ZZ301"}),
        ("torchlint --select = ZZ3", 3, {"ZZ301"}),
        ("torchlint --ignore rare", 2, {"rare-called"}),
        ("torchlint --per-file-ignores tests/**:ZZ9", 2, {"tests/**:ZZ901"}),
        ("torchlint --config required", 2, {"required", "required-version="}),
        ("torchlint verify a.py --select ZZ3", 4, {"ZZ301"}),
        ("torchlint bench ZZ3", 2, {"ZZ301"}),
        ("torchlint gen", 1, {"generate-shell-completion"}),
    ],
)
def test_shells_complete_commands_and_options(
    words: str, at: int, offered: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(at))
    monkeypatch.setenv("_TORCHLINT_COMPLETE", "bash_complete")
    told = lint().stdout
    assert {line.partition(",")[2] for line in told.split()} - {""} == offered


@pytest.mark.parametrize(
    ("shell", "offered"), [("zsh", "plain\nZZ301\nrare-called\n"), ("fish", "plain,ZZ301")]
)
def test_shells_that_show_more_say_what_a_code_means(
    shell: str, offered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "torchlint rule ZZ3")
    monkeypatch.setenv("COMP_CWORD", "2" if shell == "zsh" else "ZZ3")
    monkeypatch.setenv("_TORCHLINT_COMPLETE", f"{shell}_complete")
    told = lint().stdout
    assert told.startswith(offered)


@pytest.mark.parametrize(
    ("shell", "offered"), [("zsh", "plain\n--select=ZZ301\n"), ("fish", "plain,--select=ZZ301\t")]
)
def test_a_value_behind_an_equals_sign_is_completed(
    shell: str, offered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "torchlint --select=ZZ3")
    monkeypatch.setenv("COMP_CWORD", "1" if shell == "zsh" else "--select=ZZ3")
    monkeypatch.setenv("_TORCHLINT_COMPLETE", f"{shell}_complete")
    assert lint().stdout.startswith(offered)


def test_a_list_is_completed_behind_its_last_comma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "torchlint --select ZZ101,bad-called,ZZ1")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TORCHLINT_COMPLETE", "bash_complete")
    assert lint().stdout == "plain,ZZ101,bad-called,ZZ102\n"


def test_nothing_is_completed_with_a_pack_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    @cache
    def broken() -> None:
        raise registry.RegistryError("broken")

    monkeypatch.setattr(registry, "catalogue", broken)
    monkeypatch.setenv("COMP_WORDS", "torchlint rule ZZ")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TORCHLINT_COMPLETE", "bash_complete")
    result = lint()
    assert (result.stdout.strip(), result.exit_code) == ("", 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_reads_to_complete(shell: str) -> None:
    told = lint("generate-shell-completion", shell).stdout
    assert f"_TORCHLINT_COMPLETE={shell}_complete" in told
    assert ('string split --max 1 "," $completion' in told) is (shell == "fish")
    assert told.rstrip().endswith({"bash": "_setup;", "zsh": "fi", "fish": '_completion)";'}[shell])


def test_the_login_shell_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/local/bin/zsh")
    assert lint("generate-shell-completion").stdout == lint("generate-shell-completion", "zsh").stdout


@pytest.mark.parametrize(
    ("shell", "reason"), [("/bin/tcsh", "no script for `tcsh`"), ("", "SHELL is not set")]
)
def test_another_login_shell_is_told_of(shell: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", shell)
    told = lint("generate-shell-completion")
    assert told.exit_code == 2
    assert reason in told.stderr and "bash, zsh, fish" in told.stderr


def test_bash_completes() -> None:
    """Bash itself reads the script, and asks the function that it defines as it does at the TAB key."""
    program = Path("torchlint")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchlint "$@"\n')
    program.chmod(0o755)
    script = lint("generate-shell-completion", "bash").stdout
    asked = 'COMP_WORDS=(torchlint "--select" = ZZ10); COMP_CWORD=3; _torchlint_completion ./torchlint\n'
    told = subprocess.run(
        ["bash", "--norc", "-c", f'{script}\n{asked}\necho "${{COMPREPLY[*]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["ZZ101", "ZZ102"]


# --- exit codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "args", "status"),
    [
        ("x = 1\n", [], 0),
        ("bad()\n", [], 1),
        ("bad()\n", ["--exit-zero"], 0),
        ("bad()\n", ["-e"], 0),
        ("bad()\n", ["--fix"], 0),
        ("bad()\n", ["--fix", "--exit-non-zero-on-fix"], 1),
        ("x = 1\n", ["--fix", "--exit-non-zero-on-fix"], 0),
        ("bad()\nworse()\n", ["--fix"], 1),
        ("bad()\nworse()\n", ["--fix", "--unsafe-fixes"], 0),
        ("bad()\nworse()\n", ["--fix-only"], 0),
        ("bad()\n", ["--fix-only", "--exit-non-zero-on-fix"], 1),
        ("bad()\n", ["--diff"], 1),
        ("x = 1\n", ["--diff"], 0),
        ("worse()\n", ["--diff"], 0),
        ("worse()\n", ["--diff", "--unsafe-fixes"], 1),
        ("hint()\n", [], 0),
        ("hint()\n", ["--fail-on", "note"], 1),
        ("bad()\n", ["--fail-on", "error"], 0),
        ("worse()\n", ["--fail-on", "error"], 1),
        ("def (\n", [], 1),
        ("def (\n", ["--exit-zero"], 0),
        ("def (\n", ["--fail-on", "error"], 1),
        ("def (\n", ["--fix-only"], 1),
        ("def (\n", ["--diff"], 1),
        ("crash()\n", [], 2),
        ("crash()\n", ["--exit-zero"], 2),
        ("bad()\n", ["--statistics"], 1),
        ("bad()\n", ["-q"], 1),
        ("bad()\n", ["-s"], 1),
    ],
)
def test_exit_codes_of_a_file(text: str, args: list[str], status: int) -> None:
    write(a=text)
    assert lint(*args, "a.py").exit_code == status


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--fal-on", "note"], "unknown option `--fal-on`; did you mean `--fail-on`?"),
        (["-x"], "unknown option `-x`\n"),
        (["--foo"], "unknown option `--foo`\n"),
        (["--formt", "json"], "unknown option `--formt`; did you mean `--output-format`?"),
        (["--fix=yes"], "--fix"),
        (
            ["--fail-on", "notes"],
            "--fail-on: `notes` is none of `note`, `warning`, `error`; did you mean `note`?",
        ),
        (
            ["--output-format", "xml"],
            "--output-format: `xml` is none of `full`, `concise`, `grouped`, `json`, ",
        ),
        (["--output-format", "sraif"], "did you mean `sarif`?"),
        (["--report", "sraif=x"], "--report: `sraif` is none of `full`, "),
        (["--select", "ZZ1O1"], "unknown rule selector `ZZ1O1`; did you mean `ZZ101`?"),
        (["--ignore", "bad-caled"], "did you mean `bad-called`?"),
        (["--fixable", "QQ"], "unknown rule selector `QQ`"),
        (["--per-file-ignores", "a.py"], "expects GLOB:RULE"),
        (["--per-file-ignores", "a.py:QQ"], "unknown rule selector `QQ`"),
        (["--target-torch", "new"], "`new` is not a PyTorch version"),
        (["--config", "missing.toml"], "`--config missing.toml` is neither a file nor TOML"),
        (["--config", "slect = ['ZZ']"], "unknown key `slect`; did you mean `select`?"),
        (["--isolated", "--config", "torchlint.toml"], "cannot be combined with `--isolated`"),
        (["--jobs", "-1"], "--jobs: `-1` is less than 0"),
        (["--jobs", "many"], "--jobs: `many` is not a whole number"),
        (["-", "a.py"], "cannot be combined with other paths"),
        (["--fix", ""], "empty path"),
        (["--color", "sometimes"], "--color: `sometimes` is none of `auto`, `always`, `never`"),
        (["-o", "no/such/dir/report"], "cannot write no/such/dir/report"),
    ],
)
@pytest.mark.parametrize("zero", [[], ["--exit-zero"]])
def test_misuse_is_explained_and_exits_with_2(args: list[str], told: str, zero: list[str]) -> None:
    write(a="bad()\n")
    result = lint(*args, *zero)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_value_of_the_environment_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "sraif")
    told = lint("a.py").stderr
    assert told.startswith("error: TORCHLINT_OUTPUT_FORMAT: `sraif` is none of `full`, ")
    assert "; did you mean `sarif`?\n" in told


@pytest.mark.parametrize(
    "args",
    [
        ["check", "--selct", "ZZ"],
        ["check", "--output-format", "xml"],
        ["check", "--update-baseline"],
        ["rule"],
        ["verify"],
        ["chekc"],
    ],
)
def test_misuse_points_to_the_help(args: list[str]) -> None:
    command = f"torchlint {args[0]}".removesuffix(" chekc")
    assert lint(*args).stderr.endswith(f"\n\nTry `{command} --help`.\n")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["verify"], "missing argument `SCRIPT`\n"),
        (["check", "--output-file"], "option `--output-file` requires an argument\n"),
        (["graph", "nowhere"], "PATH: path `nowhere` does not exist\n"),
    ],
)
def test_what_click_says_of_misuse_has_the_marks_of_other_messages(args: list[str], told: str) -> None:
    assert lint(*args).stderr.startswith(f"error: {told}")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["check", "--staged"], "is not in a git working tree"),
        (["check", "--changed-since", "main"], "is not in a git working tree"),
        (["check", "--baseline", "none.json"], "no such file"),
        (["check", "--config", "none.toml"], "neither a file nor TOML"),
        (["rule", "ZZ1O1"], "did you mean `ZZ101`?"),
        (["bench", "ZZ1O1"], "did you mean `ZZ101`?"),
        (["verify", "none.py"], "none.py: no such file"),
        (["verify", "."], ".: is a directory; `verify` runs a script"),
        (["verify", "a.ipynb"], "a.ipynb: not a notebook"),
    ],
)
def test_what_no_help_would_mend_does_not_point_to_it(args: list[str], told: str) -> None:
    Path("a.ipynb").write_text("{}")
    result = lint(*args)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "--help" not in result.stderr


def test_a_config_that_cannot_be_followed_exits_with_2() -> None:
    Path("torchlint.toml").write_text("\nselct = ['ZZ']\n")
    result = lint()
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {Path.cwd()}/torchlint.toml, line 2: unknown key `selct`; did you mean `select`?\n"
        "  |\n2 | selct = ['ZZ']\n  | ^^^^^\n"
    )


def test_the_config_of_another_project_within_does_not_matter_unless_its_files_are_asked_for() -> None:
    Path("setup.py").write_text("")
    Path("a.py").write_text("import torch\n")
    inner = Path("vendored")
    inner.mkdir()
    (inner / "b.py").write_text("import torch\n")
    config = inner / "torchlint.toml"
    config.write_text("selct = ['ZZ']\n")
    assert lint("a.py").exit_code == 2  # It is the same project so far.
    (inner / "pyproject.toml").write_text("")
    assert (lint("a.py").exit_code, lint(str(inner / "b.py")).exit_code) == (0, 2)
    config.write_text("selct = [\n")
    assert (lint("a.py").exit_code, lint(".").exit_code) == (0, 2)


def test_a_directory_without_programs_is_told() -> None:
    result = lint()
    assert (result.exit_code, result.stdout) == (0, "All checks passed!\n")
    assert result.stderr == "warning: No Python files found under the given path(s)\n"


def test_a_missing_file_is_a_finding() -> None:
    write(a="bad()\n")
    result = lint("missing.py", "a.py", "--output-format", "concise")
    assert result.exit_code == 1
    assert "missing.py:1:1: " in result.stdout
    assert "a.py:1:1: ZZ101" in result.stdout


def test_a_rule_that_crashes_is_named_and_the_others_go_on() -> None:
    write(a="crash()\nbad()\n")
    result = lint("--output-format", "concise")
    assert result.exit_code == 2
    assert "TL000" in result.stdout
    assert "ZZ901" in result.stdout
    assert "a.py:2:1: ZZ101" in result.stdout


def test_an_internal_error_exits_with_2_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(check, "discover", fail)
    result = lint()
    assert result.exit_code == 2
    assert "failed: RuntimeError: boom" in result.stderr
    assert "Traceback" not in result.stderr
    monkeypatch.setenv("TORCHLINT_BACKTRACE", "1")
    assert lint().exit_code == 2


# --- selection and config ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ([], ["ZZ101", "ZZ102", "ZZ201"]),
        (["--select", "ZZ101"], ["ZZ101"]),
        (["--select", "bad-called,ZZ2"], ["ZZ101", "ZZ201"]),
        (["--select", "ZZ1", "--select", "ZZ2"], ["ZZ101", "ZZ102", "ZZ201"]),
        (["--select", "ZZ301"], ["ZZ301"]),
        (["--select", "ZZ3"], []),
        (["--select", "ALL"], ["ZZ101", "ZZ102", "ZZ201", "ZZ301"]),
        (["--extend-select", "rare-called"], ["ZZ101", "ZZ102", "ZZ201", "ZZ301"]),
        (["--ignore", "ZZ1"], ["ZZ201"]),
        (["--ignore", "ZZ1", "--extend-select", "ZZ102"], ["ZZ102", "ZZ201"]),
        (["--per-file-ignores", "a.py:ZZ1"], ["ZZ201"]),
        (["--per-file-ignores", "a.py:ZZ101,ZZ201,b.py:ZZ102"], ["ZZ102"]),
        (["--per-file-ignores", "!a.py:ZZ1"], ["ZZ101", "ZZ102", "ZZ201"]),
        (["--config", "select = ['ZZ2']"], ["ZZ201"]),
        (["--isolated"], []),
        (["--isolated", "--select", "ZZ2"], ["ZZ201"]),
    ],
)
def test_rules_are_selected(args: list[str], found: list[str]) -> None:
    write(a=ALL)
    assert codes(lint("--output-format", "json", *args)) == found


@pytest.mark.parametrize("args", [["--select", ""], ["--ignore", "ALL"], ["--config", "select = []"]])
def test_a_run_without_rules_is_told(args: list[str]) -> None:
    write(a=ALL)
    result = lint(*args)
    assert (result.exit_code, result.stderr) == (0, "warning: no rules are selected\n")


def test_fixable_and_unfixable() -> None:
    write(a=ALL)
    lint("--fix", "--unsafe-fixes", "--unfixable", "ZZ101")
    assert Path("a.py").read_text() == "bad()\nbetter()\nhint()\nrare()\n"
    lint("--fix", "--unsafe-fixes", "--fixable", "bad-called")
    assert Path("a.py").read_text() == "good()\nbetter()\nhint()\nrare()\n"


def test_a_fix_that_may_not_be_offered_is_not_marked() -> None:
    write(a="bad()\n")
    assert "[*]" not in lint("--unfixable", "ZZ101").stdout


def test_the_config_regrades_fixes() -> None:
    write(a=ALL)
    Path("torchlint.toml").write_text(
        "select = ['ZZ']\nextend-safe-fixes = ['ZZ102']\nextend-unsafe-fixes = ['ZZ101']\n"
    )
    lint("--fix")
    assert Path("a.py").read_text() == "bad()\nbetter()\nhint()\nrare()\n"


def test_ignore_noqa_disobeys_comments() -> None:
    write(a="bad()  # noqa: ZZ101\n")
    assert lint().exit_code == 0
    assert lint("--ignore-noqa").exit_code == 1


def test_environment_variables_stand_in_for_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    write(a="bad()\n")
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "json")
    assert codes(lint()) == ["ZZ101"]
    assert lint("--output-format", "concise").stdout.startswith("a.py:1:1:")
    monkeypatch.setenv("TORCHLINT_OUTPUT_FILE", "report.json")
    assert lint().stdout == ""
    assert json.loads(Path("report.json").read_text())[0]["code"] == "ZZ101"
    monkeypatch.setenv("TORCHLINT_TARGET_TORCH", "2.4")
    assert "target torch: >=2.4 (" in lint("--show-settings").stdout
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "xml")
    assert lint().exit_code == 2


def test_show_files_lists_what_would_be_checked() -> None:
    write(b="bad()\n", a="bad()\n")
    Path("build").mkdir()
    Path("build/c.py").write_text("bad()\n")
    assert lint("--show-files").stdout == f"{Path.cwd()}/a.py\n{Path.cwd()}/b.py\n"
    assert lint("--show-files", "--exclude", "a.py").stdout == (
        f"{Path.cwd()}/b.py\n{Path.cwd()}/build/c.py\n"
    )
    assert lint("--show-files", "--extend-exclude", "a.py,b.py").stdout == ""
    result = lint("--show-files", "a.py", "missing.py")
    assert (result.stdout, result.exit_code) == (f"{Path.cwd()}/a.py\n", 1)
    assert "missing.py does not exist\n" in result.stderr


def test_show_settings_tells_where_they_come_from() -> None:
    write(a="bad()\n")
    Path("requirements.txt").write_text("torch>=2.1\n")
    told = lint("--show-settings", "--fail-on", "note", "a.py").stdout
    assert f"# Settings of {Path.cwd()}/a.py\n# config: {Path.cwd()}/torchlint.toml\n" in told
    assert "# rules: ZZ101, ZZ102, ZZ201, ZZ901\n" in told
    assert f"# target torch: >=2.1.0 ({Path('requirements.txt').absolute()})\n" in told
    assert 'fail-on = "note"\n' in told


def test_show_settings_is_toml_with_every_key() -> None:
    Path("torchlint.toml").write_text(
        "extend = 'base.toml'\ntarget-torch = '2.1.0'\nper-file-ignores = { 'tests/*' = ['ZZ1'] }\n"
    )
    Path("base.toml").write_text("extend-exclude = ['é\\*']\nworkers = 9\n")
    told = lint("--show-settings", "-o", "report.txt").stdout
    said = toml.loads(told)
    # Nothing can be said in TOML of what has no value.
    absent = {key for key in options.config_keys() if f"\n# {key} is not given\n" in told}
    assert absent == {"baseline", "cache-dir"} and set(said) == set(options.config_keys()) - absent
    assert said["per-file-ignores"] == {"tests/*": ["ZZ1"]}
    assert (said["extend-exclude"], said["workers"], said["target-torch"]) == (["é\\*"], 9, ">=2.1.0")
    assert said["extend-per-file-ignores"] == {}
    here = Path.cwd()
    heading = f"# Settings of {here}/*.py\n# config: {here}/torchlint.toml\n# extends: {here}/base.toml\n"
    assert told.startswith(heading)
    for name in options.settings():
        assert f"\n{options.key(name)} = " in told or f" {options.key(name)} " in told
    Path("torchlint.toml").write_text(told)
    again = lint("--show-settings", "-o", "report.txt").stdout
    assert again == "".join(line for line in told.splitlines(True) if not line.startswith("# extends"))


def test_verbose_says_what_is_done() -> None:
    write(a="bad()\n")
    result = lint("-v")
    assert "debug: 1 files to check\n" in result.stderr
    assert f"config {Path.cwd()}/torchlint.toml, 4 rules, target torch " in result.stderr
    assert "debug" not in result.stdout


def test_verbose_names_patterns_that_match_no_file() -> None:
    write(bad="bad()\n")
    result = lint("--verbose", "--per-file-ignores", "bad.py:ZZ101,test/**:ZZ101")
    assert "`test/**` matches none of these files" in result.stderr
    assert "`bad.py` matches" not in result.stderr


def test_verbose_shows_where_a_rule_crashed() -> None:
    write(a="crash()\n")
    result = lint("-v", "-j", "1")
    assert "RuntimeError: boom" in result.stderr
    assert "Traceback" in result.stderr
    assert "Traceback" not in lint("-j", "1").stderr


# --- fixing ------------------------------------------------------------------------------------------


def test_fix_writes_safe_fixes_only_unless_asked() -> None:
    write(a=ALL)
    result = lint("--fix", "--output-format", "concise")
    assert Path("a.py").read_text() == "good()\nworse()\nhint()\nrare()\n"
    assert result.stdout == (
        "a.py:2:1: ZZ102 `worse` is called\n"
        "a.py:3:1: ZZ201 `hint` is called\n"
        "Found 3 problems (1 fixed, 2 remaining).\n"
        "1 unsafe fix available with `--fix --unsafe-fixes`.\n"
        "For more information about a rule, run `torchlint rule ZZ102`.\n"
    )
    assert lint("--fix", "--unsafe-fixes", "-q").stdout.startswith("ZZ201 ")
    assert Path("a.py").read_text() == "good()\nbetter()\nhint()\nrare()\n"


def test_without_fix_nothing_is_written() -> None:
    write(a=ALL)
    before = Path("a.py").stat()
    lint()
    lint("--diff")
    after = Path("a.py").stat()
    assert (before.st_mtime_ns, before.st_ino, Path("a.py").read_text()) == (
        after.st_mtime_ns,
        after.st_ino,
        ALL,
    )


def test_fix_in_the_config_can_be_switched_off() -> None:
    write(a="bad()\n")
    Path("torchlint.toml").write_text("select = ['ZZ']\nfix = true\n")
    assert lint("--no-fix").exit_code == 1
    assert Path("a.py").read_text() == "bad()\n"
    assert lint().exit_code == 0
    assert Path("a.py").read_text() == "good()\n"


def test_an_end_of_file_inside_is_no_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object, **__: object) -> None:
        raise EOFError("too short")

    write(a="bad()\n")
    monkeypatch.setattr(runner, "run", ends)
    command = build(cli._COMMANDS, cli._DEFAULT)
    result = CliRunner().invoke(command, [], prog_name="torchlint")
    assert (result.exit_code, "failed: EOFError: too short" in result.stderr) == (2, True)


@pytest.mark.parametrize("key", ["fix", "fix-only"])
@pytest.mark.parametrize("extended", [False, True])
def test_fix_in_the_config_changes_nothing_on_a_build_server(key: str, extended: bool) -> None:
    write(a="bad()\n")
    Path("base.toml" if extended else "torchlint.toml").write_text(f"select = ['ZZ']\n{key} = true\n")
    if extended:
        Path("torchlint.toml").write_text("extend = 'base.toml'\n")
    machines = set(options.FORMATS) - {"full", "concise", "grouped"}
    assert {"sarif", "gitlab", "junit", "github", "rdjson", "azure", "pylint", "json"} <= machines
    ways = [*(("--output-format", name) for name in sorted(machines)), ("--report", "sarif=report.sarif")]
    for flags in (*ways, ("--no-fix",), ("--no-fix", "--output-format", "concise")):
        result = lint(*flags)
        assert (result.exit_code, Path("a.py").read_text()) == (1, "bad()\n"), flags
        assert "ZZ101" in result.stdout
    # The text of standard input is not fixed either, but reported.
    assert "ZZ101" in lint("-", "--output-format", "json", stdin="bad()\n").stdout
    told = lint("-v", "--output-format", "github").stderr
    assert f"`{key}` of {Path.cwd() / ('base.toml' if extended else 'torchlint.toml')} is ignored" in told
    # What the command line says is done in every format.
    for flags in (("--fix",), ("--config", "fix = true"), ("--fix-only",)):
        Path("a.py").write_text("bad()\n")
        assert lint("--output-format", "sarif", *flags).exit_code == 0
        assert Path("a.py").read_text() == "good()\n"
    Path("a.py").write_text("bad()\n")
    assert lint("--no-fix", "--fix-only").exit_code == 0
    assert Path("a.py").read_text() == "good()\n"
    Path("a.py").write_text("bad()\n")
    assert lint("--output-format", "grouped").exit_code == 0
    assert Path("a.py").read_text() == "good()\n"


def test_diff_prints_a_patch_and_nothing_else() -> None:
    write(a=ALL, b="x = 1\n", c="bad()\n")
    result = lint("--diff")
    assert result.stdout == (
        "--- a.py\n+++ a.py\n@@ -1,4 +1,4 @@\n-bad()\n+good()\n worse()\n hint()\n rare()\n"
        "--- c.py\n+++ c.py\n@@ -1 +1 @@\n-bad()\n+good()\n"
    )
    assert result.stderr == (
        "Would fix 2 problems (1 additional fix available with `--unsafe-fixes`).\n"
        "  ZZ102 unsafe: it is worse\n"
    )
    assert lint("--diff", "--unsafe-fixes").stderr == "Would fix 3 problems.\n  ZZ102 unsafe: it is worse\n"
    assert lint("--diff", "-q").stderr == ""


def test_a_diff_writes_nothing_with_fix_either() -> None:
    write(a="bad()\n")
    result = lint("--fix", "--diff")
    assert (result.stdout, result.exit_code) == ("--- a.py\n+++ a.py\n@@ -1 +1 @@\n-bad()\n+good()\n", 1)
    assert Path("a.py").read_text() == "bad()\n"


def test_a_file_that_is_no_python_by_its_name_is_checked_with_a_warning() -> None:
    for name in ("notes.txt", "script", "a.pyi", "b.ipy"):
        Path(name).write_text("bad()\n")
    result = lint("notes.txt", "script", "a.pyi", "b.ipy", "--extension", "ipy:python", "-q")
    assert result.stdout.count("ZZ101") == 4
    assert result.stderr.count("is checked as Python") == 1
    assert "notes.txt is checked as Python, although its name ends in .txt\n" in result.stderr


def test_the_diff_can_be_applied_as_a_patch() -> None:
    write(a=ALL)
    patch = lint("--diff").stdout
    subprocess.run(["patch", "-p0"], input=patch, text=True, check=True, capture_output=True)
    assert Path("a.py").read_text() == "good()\nworse()\nhint()\nrare()\n"


def test_show_fixes_lists_them() -> None:
    write(a="bad()\nbad()\n")
    assert lint("--fix", "--show-fixes").stdout == (
        "Fixed 2 problems:\n- a.py:\n    2 × ZZ101 (bad-called)\n\nFound 2 problems (2 fixed, 0 remaining).\n"
    )


def test_fix_only_reports_nothing_that_is_left() -> None:
    write(a=ALL)
    result = lint("--fix-only")
    assert Path("a.py").read_text() == "good()\nworse()\nhint()\nrare()\n"
    assert (result.stdout, result.exit_code) == ("", 0)
    assert result.stderr == (
        "Fixed 1 problem (1 additional fix available with `--unsafe-fixes`).\n  ZZ102 unsafe: it is worse\n"
    )


def test_a_file_that_cannot_be_parsed_is_told_where_findings_are_not() -> None:
    write(a="def (\n")
    result = lint("--diff")
    assert result.stdout == ""
    assert "a.py:1:" in result.stderr


def test_line_ends_and_byte_order_mark_survive() -> None:
    Path("a.py").write_bytes(b"\xef\xbb\xbfbad()\r\nworse()\r\n# \xc3\xa9")
    lint("--fix")
    assert Path("a.py").read_bytes() == b"\xef\xbb\xbfgood()\r\nworse()\r\n# \xc3\xa9"


# --- standard input ----------------------------------------------------------------------------------


def test_standard_input_is_checked_under_its_name() -> None:
    result = lint("-", "--stdin-filename", "pkg/a.py", "--output-format", "json", stdin="\nbad()\n")
    assert result.exit_code == 1
    found = json.loads(result.stdout)[0]
    assert (found["filename"], found["location"]) == (f"{Path.cwd()}/pkg/a.py", {"row": 2, "column": 1})


def test_a_name_of_standard_input_is_no_path_and_goes_with_none() -> None:
    assert lint("--stdin-filename", "a.py", stdin="bad()\n").stdout.startswith("ZZ101 ")
    write(b="bad()\n")
    result = lint("--stdin-filename", "a.py", "b.py", stdin="bad()\n")
    assert result.exit_code == 2
    assert "--stdin-filename names standard input and cannot be combined with paths" in result.stderr


def test_standard_input_without_a_name() -> None:
    result = lint("-", stdin="bad()\n")
    assert result.exit_code == 1
    assert " --> -:1:1\n  |\n1 | bad()\n  | ^^^^^\n" in result.stdout


def test_the_fixed_text_of_standard_input_has_standard_output_for_itself() -> None:
    result = lint("-", "--fix", stdin=b"bad()\r\nworse()\r\n")
    assert result.stdout_bytes == b"good()\r\nworse()\r\n"
    assert "ZZ102" in result.stderr
    assert "Found 2 problems (1 fixed, 1 remaining).\n" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("text", [b"def (\n", b"\xff\xfe", b"", b"x = 1"])
def test_standard_input_that_needs_no_fix_or_cannot_get_one_comes_back_unchanged(text: bytes) -> None:
    assert lint("-", "--fix", stdin=text).stdout_bytes == text


def test_the_diff_of_standard_input() -> None:
    result = lint("-", "--diff", "--stdin-filename", "a.py", stdin="bad()\n")
    assert result.stdout == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-bad()\n+good()\n"
    assert result.exit_code == 1


def test_per_file_ignores_and_excludes_see_the_name_of_standard_input() -> None:
    args = ("-", "--stdin-filename", "gen/a.py")
    assert lint(*args, "--per-file-ignores", "gen/**:ZZ", stdin="bad()\n").exit_code == 0
    assert lint(*args, "--extend-exclude", "gen", stdin="bad()\n").exit_code == 1
    excluded = lint(*args, "--extend-exclude", "gen", "--force-exclude", "--fix", stdin="bad()\n")
    assert (excluded.exit_code, excluded.stdout) == (0, "bad()\n")


# --- the report --------------------------------------------------------------------------------------


def test_the_full_report() -> None:
    write(a="x = 1\nbad()\n")
    assert lint().stdout == (
        "ZZ101 [*] `bad` is called\n"
        " --> a.py:2:1\n"
        "  |\n"
        "1 | x = 1\n"
        "2 | bad()\n"
        "  | ^^^^^\n"
        "  |\n"
        "impact: medium\n"
        "help: Use `good`\n"
        "  |\n"
        "1 | x = 1\n"
        "  - bad()\n"
        "2 + good()\n"
        "  |\n"
        "\n"
        "Found 1 warning.\n"
        "[*] 1 fixable with `--fix`.\n"
        "For more information about a rule, run `torchlint rule ZZ101`.\n"
    )


def test_quiet_prints_findings_only_and_silent_nothing() -> None:
    write(a="bad()\n")
    quiet = lint("-q", "--output-format", "concise")
    assert (quiet.stdout, quiet.stderr) == ("a.py:1:1: ZZ101 [*] `bad` is called\n", "")
    silent = lint("-s")
    assert (silent.stdout, silent.stderr, silent.exit_code) == ("", "", 1)


def test_codes_are_links_in_a_terminal_that_follows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        train="import torch\n\nfor batch in loader:\n    loss = model(batch.cuda())\n    loss.backward()\n"
        "    optimizer.step()\n    optimizer.zero_grad()\n    torch.cuda.empty_cache()\n"
    )
    monkeypatch.setattr(links, "declared", lambda: {"documentation": "https://example.org/docs"})
    page = "https://example.org/docs/rules/TL601/"
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    for name in ("full", "concise", "grouped"):
        told = lint("--isolated", "--select", "TL601", "--output-format", name).stdout
        assert f"\x1b]8;;{page}\x1b\\TL601\x1b]8;;\x1b\\" in told
        assert "For more information" not in told
    monkeypatch.delenv("FORCE_HYPERLINK")
    told = lint("--isolated", "--select", "TL601", "--output-format", "concise").stdout
    assert "\x1b" not in told and page not in told


@pytest.mark.parametrize(
    ("environ", "followed"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"VTE_VERSION": "7800"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"VTE_VERSION": "3405"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "dumb", "VTE_VERSION": "7800"}, False),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "iTerm.app"}, False),
        ({"CI": "true", "TERM_PROGRAM": "vscode"}, False),
    ],
)
def test_which_terminals_follow_links(environ: dict[str, str], followed: bool) -> None:
    assert terminal._follows_links(environ) is followed


def test_machine_formats_end_without_a_summary() -> None:
    write(a="bad()\n")
    assert codes(lint("--output-format", "json")) == ["ZZ101"]
    lines = lint("--output-format", "json-lines").stdout.splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["bad-called"]
    github = lint("--output-format", "github").stdout
    assert github.startswith(f"::warning title=torchlint (ZZ101),file={Path.cwd()}/a.py,line=1,col=1,")
    assert github.count("\n") == 1


def test_json_carries_all_that_tools_for_ruff_read() -> None:
    write(a="bad()\n")
    found = json.loads(lint("--output-format", "json").stdout)[0]
    assert set(found) == {
        *("cell", "code", "end_location", "filename", "fix", "location", "message", "name", "noqa_row"),
        *("severity", "url", "help", "related", "impact", "impact_reason", "frequency", "advice"),
    }
    assert found["fix"]["edits"] == [
        {"content": "good", "location": {"row": 1, "column": 1}, "end_location": {"row": 1, "column": 4}}
    ]
    assert (found["noqa_row"], found["cell"]) == (1, None)


def test_statistics() -> None:
    write(a="bad()\nbad()\nworse()\n")
    assert lint("--statistics", "-q").stdout == "2\tZZ101\t[*] bad-called\n1\tZZ102\t[ ] worse-called\n"
    assert [item["count"] for item in json.loads(lint("--statistics", "--output-format", "json").stdout)] == [
        2,
        1,
    ]


def test_every_format_is_written_by_its_renderer() -> None:
    write(a="bad()\nhint()\n")
    for name in options.FORMATS:
        result = lint("--output-format", name, "--isolated", "--select", "ZZ")
        assert result.exit_code == 1
        assert "ZZ101" in result.stdout, name
    sarif = json.loads(lint("--output-format", "sarif").stdout)["runs"][0]
    enabled = [rule["id"] for rule in sarif["tool"]["driver"]["rules"]]
    assert enabled == sorted(enabled) and "ZZ102" in enabled and "ZZ301" not in enabled
    assert sarif["results"][0]["ruleId"] == "ZZ101"


def test_documents_follow_what_fails_the_run() -> None:
    write(a="hint()\n")
    assert "<skipped " in lint("--output-format", "junit").stdout
    assert "<failure " in lint("--output-format", "junit", "--fail-on", "note").stdout


@pytest.mark.parametrize("variable", ["CI_PROJECT_DIR", "GITHUB_WORKSPACE", None])
def test_trackers_know_files_by_their_place_in_the_checkout(
    variable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    checkout = Path.cwd().parent
    if variable is None:
        (checkout / ".git").mkdir()
    else:
        monkeypatch.setenv(variable, str(checkout))
    write(a="bad()\n")
    (issue,) = json.loads(lint("--output-format", "gitlab").stdout)
    assert issue["location"]["path"] == "work/a.py"
    run = json.loads(lint("--output-format", "sarif").stdout)["runs"][0]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "work/a.py"
    assert run["results"][0]["partialFingerprints"] == {"torchlint/v2": issue["fingerprint"]}


def test_json_lines_are_written_as_each_file_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time a file is checked, the findings of those before it can be read."""
    write(a="bad()\nworse()\n", b="", c="bad()\n", d="hint()\n")
    Path("a").mkdir()
    Path("a", "z.py").write_text("worse()\n")
    seen: dict[str, list[str]] = {}
    treat = runner._treat

    def watched(item: Any, *rest: Any) -> Any:
        lines = Path("out.jsonl").read_text().splitlines()
        name = item.path.relative_to(Path.cwd()).as_posix()
        seen[name] = [Path(json.loads(line)["filename"]).name for line in lines]
        return treat(item, *rest)

    monkeypatch.setattr(runner, "_treat", watched)
    assert lint("--output-format", "json-lines", "-o", "out.jsonl").stdout == ""
    assert seen == {
        "a.py": [],
        "a/z.py": ["a.py", "a.py"],
        "b.py": ["a.py", "a.py", "z.py"],
        "c.py": ["a.py", "a.py", "z.py"],
        "d.py": ["a.py", "a.py", "z.py", "c.py"],
    }
    streamed = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert streamed == json.loads(lint("--output-format", "json").stdout)
    printed = lint("--output-format", "json-lines").stdout
    assert printed == Path("out.jsonl").read_text()


def test_json_lines_tell_of_the_fixed_text() -> None:
    write(a="bad()\nworse()\n")
    (line,) = lint("--fix", "--output-format", "json-lines").stdout.splitlines()
    assert json.loads(line)["code"] == "ZZ102"
    assert Path("a.py").read_text() == "good()\nworse()\n"
    assert lint("--diff", "--output-format", "json-lines").stdout == ""


def test_json_lines_of_standard_input() -> None:
    (line,) = lint("--output-format", "json-lines", "-", stdin="bad()\n").stdout.splitlines()
    assert json.loads(line)["code"] == "ZZ101"


def test_a_stream_that_cannot_be_written_ends_the_run_before_it_starts() -> None:
    write(a="bad()\n")
    result = lint("--fix", "--output-format", "json-lines", "-o", "missing/out.jsonl")
    assert result.exit_code == 2
    assert "cannot write missing/out.jsonl" in result.stderr
    assert Path("a.py").read_text() == "bad()\n"


@pytest.mark.parametrize("name", options.FORMATS)
def test_statistics_are_text_or_json_or_refused(name: str) -> None:
    write(a="bad()\nbad()\n")
    result = lint("--statistics", "-q", "--output-format", name)
    if name in ("sarif", "gitlab", "junit", "rdjson", "markdown"):
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"--statistics does not support {name}" in result.stderr
    elif name.startswith("json"):
        told = json.loads(result.stdout)
        assert (told[0] if name == "json" else told)["count"] == 2
    else:
        assert result.stdout == "2\tZZ101\t[*] bad-called\n"


def test_the_report_goes_to_a_file() -> None:
    write(a="bad()\n")
    result = lint("-o", "report.txt", "--output-format", "concise", "--color", "auto")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert Path("report.txt").read_text() == (
        "a.py:1:1: ZZ101 [*] `bad` is called\nFound 1 warning.\n[*] 1 fixable with `--fix`.\n"
        "For more information about a rule, run `torchlint rule ZZ101`.\n"
    )


def test_findings_are_sorted_whatever_the_jobs() -> None:
    for number in range(12):
        write(**{f"f{number:02}": "hint()\nbad()\nworse()\n" * (number % 3 + 1)})
    one = spawn("--output-format", "json", "-j", "1")
    two = spawn("--output-format", "json", "-j", "2")
    assert (one.stdout, one.returncode) == (two.stdout, two.returncode)
    places = [(item["filename"], item["location"]["row"]) for item in json.loads(one.stdout)]
    assert places == sorted(places)
    assert len(places) == 72


# --- colour, pipes and signals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "variables", "colored"),
    [
        ([], {}, False),
        ([], {"CI": "1"}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": ""}, False),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe(
    args: list[str], variables: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="bad()\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in lint(*args).stdout) is colored


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_on_a_terminal(
    variables: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="bad()\n")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in _on_a_terminal("-q", "a.py")) is colored


def _on_a_terminal(*args: str) -> str:
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", *args], stdout=follower, stderr=follower, stdin=subprocess.DEVNULL
    )
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    process.wait()
    return b"".join(parts).decode()


def test_machine_formats_are_never_coloured() -> None:
    write(a="bad()\n")
    for name in ("json", "json-lines", "github"):
        assert "\x1b" not in lint("--color", "always", "--output-format", name).stdout


def test_a_reader_that_leaves_early_is_no_error() -> None:
    write(a="bad()\n" * 4000)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", "-q", "--output-format", "concise"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert told == b""


@pytest.mark.parametrize(
    ("redirect", "status", "told"),
    [
        (">/dev/full", 2, "error: cannot write the output: No space left on device\n"),
        (">&-", 1, ""),
        ("- <&-", 2, "error: cannot read `-`: standard input is closed\n"),
    ],
)
def test_streams_that_are_full_or_closed(redirect: str, status: int, told: str) -> None:
    write(a="bad()\n")
    run = subprocess.run(
        f"'{sys.executable}' -m torchlint {redirect}", shell=True, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (status, told)


def test_errors_heed_the_colour_that_is_wanted() -> None:
    assert lint("--select", "QQ", "--color", "always").stderr.startswith("\x1b[31m\x1b[1merror\x1b[0m: ")
    assert lint("--color=always", "--select", "QQ").stderr.startswith("\x1b[")
    assert lint("--select", "QQ").stderr.startswith("error: ")


def test_ctrl_c_ends_the_run_quietly_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert out == b""


def test_a_name_that_is_not_text_is_shown_somehow() -> None:
    Path("d").mkdir()
    Path("d", os.fsdecode(b"a\xff.py")).write_text("bad()\n")
    for name in ("full", "json"):
        run = subprocess.run(
            [sys.executable, "-m", "torchlint", "--output-format", name, "d"],
            capture_output=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr
        assert b"ZZ101" in run.stdout
        assert b"Traceback" not in run.stderr


def test_a_terminal_without_unicode_gets_escapes() -> None:
    write(a='bad("é日")\n')
    run = subprocess.run(
        [sys.executable, "-m", "torchlint"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert run.returncode == 1
    assert b'bad("\\xe9\\u65e5")' in run.stdout


def test_no_progress_bar_where_nobody_watches() -> None:
    write(a="bad()\n")
    assert spawn().stderr == ""


@pytest.mark.parametrize(
    ("patience", "enabled", "done", "shown"),
    [(0.0, True, 1, True), (0.0, True, 2, False), (0.0, False, 1, False), (1000.0, True, 1, False)],
)
def test_the_progress_bar_appears_when_a_run_is_long(
    patience: float, enabled: bool, done: int, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", patience)
    bar = progress.Progress(2, enabled=enabled)
    bar(done, 2)
    with bar:
        if enabled and not patience:
            assert bar._timer is not None
            bar._timer.join(30)
        assert (bar._shown is not None) is shown
        if bar._shown is not None:
            bar(2, 2)
            assert [(task.completed, task.total) for task in bar._shown[0].tasks] == [(2, 2)]


def test_a_report_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = lint("report", str(tmp_path), "--output", str(tmp_path / "report"))
    assert result.exit_code == 2
    assert result.stderr == (
        "error: a report requires jinja2, which is not installed; run `pip install 'jinja2>=3.1'`\n"
    )


@pytest.mark.parametrize("extra", ["dask", "lsp", "report", "verify", "watch"])
def test_an_extra_is_installed_by_its_requirements(extra: str) -> None:
    command = shlex.split(installation.install_command(extra))
    assert command[:2] == ["pip", "install"]
    assert all(Requirement(item).name != "torchlint" for item in command[2:])


def test_no_command_installs_an_unknown_extra() -> None:
    with pytest.raises(ValueError, match="no extra nothing"):
        installation.install_command("nothing")


# --- server --------------------------------------------------------------------------------------------


def test_the_server_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls", None)
    result = lint("server")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: the language server requires pygls, which is not installed; "
        "run `pip install 'lsprotocol>=2025.0' 'pygls>=2.0'`\n"
    )


def test_only_the_server_imports_its_libraries() -> None:
    code = (
        "import sys, torchlint.cli, torchlint.commands.server\n"
        "print({'pygls', 'lsprotocol'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# --- notebooks -----------------------------------------------------------------------------------------


def book(*sources: str) -> str:
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    cells.insert(1, {"cell_type": "markdown", "source": ["bad()"]})
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}, indent=1, ensure_ascii=False) + "\n"


def test_notebooks_are_checked_like_programs() -> None:
    write(a="bad()\n")
    Path("b.ipynb").write_text(book("%pwd\nbad()", "x = !ls\nhint()\nbad(x)"), encoding="utf-8")
    result = lint("--output-format", "concise")
    assert result.stdout.splitlines()[:4] == [
        "a.py:1:1: ZZ101 [*] `bad` is called",
        "b.ipynb:cell 1:2:1: ZZ101 [*] `bad` is called",
        "b.ipynb:cell 3:2:1: ZZ201 `hint` is called",
        "b.ipynb:cell 3:3:1: ZZ101 [*] `bad` is called",
    ]
    found = json.loads(lint("b.ipynb", "--output-format", "json").stdout)
    assert [(item["cell"], item["location"]["row"]) for item in found] == [(1, 2), (3, 2), (3, 3)]
    edit = found[2]["fix"]["edits"][0]
    assert (edit["cell"], edit["location"], edit["end_location"]) == (
        3,
        {"column": 1, "row": 3},
        {"column": 4, "row": 3},
    )
    assert "  cell 3:2:1 ZZ201" in lint("b.ipynb", "--output-format", "grouped").stdout


def test_the_full_format_shows_the_lines_of_the_cell() -> None:
    Path("b.ipynb").write_text(book("x = 1\ny = 2", "%pwd\nbad()\n!ls\nz"), encoding="utf-8")
    assert lint("b.ipynb").stdout.startswith(
        "ZZ101 [*] `bad` is called\n"
        " --> b.ipynb:cell 3:2:1\n"
        "  |\n"
        "1 | %pwd\n"
        "2 | bad()\n"
        "  | ^^^^^\n"
        "3 | !ls\n"
        "4 | z\n"
        "  |\n"
        "impact: medium\n"
        "help: Use `good`\n"
        " ::: cell 3\n"
        "  |\n"
        "1 | %pwd\n"
        "  - bad()\n"
        "2 + good()\n"
        "3 | !ls\n"
        "  |\n"
    )


def test_a_notebook_on_standard_input_is_fixed() -> None:
    text = book("x = 'é'", "bad()  # ←")
    result = lint("-", "--fix", "--stdin-filename", "x.ipynb", stdin=text)
    assert (result.stdout, result.exit_code) == (text.replace('"bad()  # ←"', '"good()  # ←"'), 0)
    shown = lint("-", "--diff", "--stdin-filename", "x.ipynb", stdin=text)
    assert shown.stdout == (
        "--- x.ipynb:cell 3\n+++ x.ipynb:cell 3\n@@ -1 +1 @@\n-bad()  # ←\n+good()  # ←\n"
    )
    assert Path("x.ipynb").exists() is False


def test_broken_json_is_a_finding_and_stays_as_it_is() -> None:
    Path("b.ipynb").write_text('{"cells": [\n}', encoding="utf-8")
    result = lint("b.ipynb", "--fix")
    assert result.stdout.startswith(
        "TL001 the notebook is not valid JSON: expecting value\n --> b.ipynb:2:1\n\n"
    )
    assert (result.exit_code, Path("b.ipynb").read_text(encoding="utf-8")) == (1, '{"cells": [\n}')
