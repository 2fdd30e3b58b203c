"""Projects that mean ill: nothing of theirs is run, obeyed, echoed raw or waited for."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import util
from pathlib import Path

import pytest
from click.testing import Result

from tests.conftest import lint as run
from torchlint import options, target, toml
from torchlint.config import Resolver
from torchlint.diagnostics import Diagnostic
from torchlint.options import LintSettings
from torchlint.registry import rules
from torchlint.render import full
from torchlint.render.report import Report
from torchlint.runner import Mode, run_text
from torchlint.target import Target, detect

PROGRAM = """\
import torch


def train(loader, model, optimizer):
    for batch in loader:
        optimizer.zero_grad()
        model(batch.cuda()).sum().backward()
        optimizer.step()
        torch.cuda.empty_cache()
"""
FILLER = "# " + "x" * 98 + "\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, in which the tests run."""
    for name in [name for name in os.environ if name.startswith("TORCHLINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHLINT_NO_CACHE", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def lint(*args: str) -> Result:
    """Run the command line in this process; a failure of torchlint itself is one of the test."""
    result = run(*args)
    assert "please report it" not in result.stderr
    return result


# --- nothing is run ----------------------------------------------------------------------------------------

# A trap under each name leaves a mark when it is imported. Those of the standard library are what torchlint,
# its workers or multiprocessing import; `python -m` looks for the first before torchlint is there to care.
OWN = ("torchlint", "runpy", "pkgutil", "importlib", "types", "contextlib", "warnings")
TRAPS = (
    *("torch", "rules", "libcst", "click", "rich", "packaging", "pathspec", "platformdirs", "tomli", "yaml"),
    *("sitecustomize", "usercustomize", "conftest", "setup", "noxfile", "evil_pack", "evil_backend"),
    *("socket", "signal", "selectors", "struct", "pickle", "multiprocessing", "threading", "tokenize", "ast"),
    *("dataclasses", "typing", "re", "difflib", "concurrent", "tomllib", "logging", "json", "subprocess"),
)
PYPROJECT = """\
[build-system]
requires = []
build-backend = "evil_backend"
backend-path = ["."]

[project]
name = "evil"
version = "1"
dependencies = ["torch>=2.1"]

[project.entry-points."torchlint.rules"]
evil = "evil_pack"
"""
# Watches what the interpreter does, from before torchlint is imported to the end.
WATCHED = """
import json, os, sys

project, log = os.path.realpath(sys.argv.pop(1)), sys.argv.pop(1)
quiet = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
         "pty.spawn", "ctypes.dlopen", "socket.connect", "socket.bind", "socket.getaddrinfo",
         "socket.gethostbyname", "urllib.Request", "webbrowser.open", "os.putenv", "os.remove", "os.rename"}
seen, events = [], set()

def inside(name):
    known = isinstance(name, str) and not name.startswith("<")
    return known and os.path.realpath(name).startswith(project + os.sep)

def watch(event, args):
    events.add(event)
    if event in quiet:
        seen.append([event, repr(args)])
    elif event == "exec" and (inside(args[0].co_filename) or args[0].co_filename == "<text>"):
        seen.append([event, args[0].co_filename])
    elif event == "compile" and inside(args[1]):
        seen.append([event, args[1]])
    elif event == "import" and (inside(args[1]) or args[0].partition(".")[0] in ("torch", "evil_pack")):
        seen.append([event, args[0]])
    elif event == "open" and inside(args[0]) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append([event, args[0]])

sys.addaudithook(watch)
from torchlint.cli import main
try:
    main()
finally:
    with open(log, "w") as file:
        json.dump({"seen": seen, "events": sorted(events)}, file)
"""


@pytest.fixture
def traps(project: Path) -> Path:
    """A project full of them; the file that they would leave a mark in."""
    marks = project.parent / "marks"
    trap = f"open({str(marks)!r}, 'a').write(__name__ + ' ' + __file__ + '\\n')\n"
    for name in (*TRAPS, *OWN):
        Path(f"{name}.py").write_text(trap + PROGRAM)
    for name in ("package", "numpy", "encodings"):
        Path(name).mkdir()
        Path(name, "__init__.py").write_text(trap + PROGRAM)
    Path("evil.pth").write_text(f"import sys; {trap}")
    Path("evil-1.dist-info").mkdir()
    Path("evil-1.dist-info", "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    Path("evil-1.dist-info", "entry_points.txt").write_text("[torchlint.rules]\nevil = evil_pack\n")
    Path("evil.egg-info").mkdir()
    Path("evil.egg-info", "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    Path("evil.egg-info", "entry_points.txt").write_text("[torchlint.rules]\nevil = evil_pack\n")
    Path("pyproject.toml").write_text(PYPROJECT)
    Path("torchlint.toml").write_text('output-format = "concise"\n')
    Path("tool.cfg").write_text("[pytest]\naddopts = -p evil_pack\n")
    # Enough for a pool, and an encoding that is looked up by a name of the project's.
    for number in range(4):
        Path(f"p{number}.py").write_text(trap + PROGRAM + FILLER * 800)
    Path("coded.py").write_text(f"# coding: evil_pack\n{trap}")
    return marks


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TORCHLINT"))}
    return {**kept, "TORCHLINT_NO_CACHE": "1"}


def test_nothing_of_a_project_is_imported_or_executed(traps: Path, tmp_path: Path) -> None:
    script, log = tmp_path / "watched.py", tmp_path / "log.json"
    script.write_text(WATCHED)
    done = subprocess.run(
        [sys.executable, "-B", script, Path.cwd(), log, "check", "-j", "1"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("TL601") >= len(TRAPS)
    told = json.loads(log.read_text())
    # The hook sees: a linter imports, compiles and opens.
    assert {"import", "exec", "compile", "open"} <= set(told["events"])
    assert told["seen"] == []
    assert not traps.exists()


@pytest.mark.parametrize(
    "command",
    [["-c", "from torchlint.cli import main; main()"], ["-m", "torchlint"]],
    ids=["worker processes", "python -m"],
)
def test_no_process_of_a_run_imports_from_the_working_directory(traps: Path, command: list[str]) -> None:
    if "-m" in command:
        # What Python itself looks for there can only be helped by `python -P`.
        for name in OWN:
            Path(f"{name}.py").unlink()
    elif sys.version_info >= (3, 11):
        command = ["-P", *command]
    else:
        command = [str(Path(sys.executable).with_name("torchlint"))]
    python = [] if command[0].startswith(os.sep) else [sys.executable]
    done = subprocess.run(
        [*python, *command, "-j", "2"], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("TL601") >= len(TRAPS)
    assert not traps.exists(), traps.read_text()


def test_what_starts_the_workers_is_safe_and_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchlint import runner

    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    flags = util._args_from_interpreter_flags  # type: ignore[attr-defined]
    with runner._safe_path():
        told = util._args_from_interpreter_flags()  # type: ignore[attr-defined]
        assert os.environ.get("PYTHONSAFEPATH") == "1" or "-I" in told
    assert "PYTHONSAFEPATH" not in os.environ
    # Where the environment is not heard, a flag says it.
    monkeypatch.setattr(runner, "sys", type("", (), {"version_info": (3, 10)}))
    with runner._safe_path():
        assert "-I" in util._args_from_interpreter_flags()  # type: ignore[attr-defined]
    assert util._args_from_interpreter_flags is flags  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["plugins", "load-plugins", "rules-path", "rule-packs", "import", "python"])
def test_a_config_names_no_code(key: str, project: Path) -> None:
    Path("evil_pack.py").write_text(f"open({str(project / 'mark')!r}, 'w')")
    Path("torchlint.toml").write_text(f'{key} = ["evil_pack"]\n')
    result = lint(".")
    assert (result.exit_code, f"unknown key `{key}`" in result.stderr) == (2, True)
    assert not Path("mark").exists()


def test_no_kind_of_option_is_code() -> None:
    kinds = {setting.kind.name for setting in options.settings().values()}
    texts = {"BOOL", "INTEGER", "STRING", "PATH", "REPORTS", "CHOICE", "TARGET", "VERSION"}
    rules = {"RULES", "RULES_BY_PATTERN", "RULES_BY_MARKER", "SEVERITIES", "SEVERITIES_BY_PATTERN"}
    assert kinds <= {*texts, *rules, "PATTERNS", "NAMES", "FOLDERS", "LANGUAGES"}
    # Where a report or a cache is written is not for a project to say.
    assert not options.settings()["output_file"].config


# --- nothing is waited for ---------------------------------------------------------------------------------


def test_what_is_no_file_is_neither_read_nor_waited_for() -> None:
    Path("a.py").write_text(PROGRAM)
    for name in (".gitignore", "pyproject.toml", "setup.py", "uv.lock", "pipe.py"):
        os.mkfifo(name)
    Path(".ignore").symlink_to("/dev/zero")
    Path("requirements.txt").symlink_to("/dev/zero")
    Path("zero.py").symlink_to("/dev/zero")
    Path("loop.py").symlink_to("loop.py")
    Path("up").symlink_to("..")
    Path(".git", "info").mkdir()
    os.mkfifo(".git/info/exclude")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.py")
        result = lint("--output-format", "concise", ".", "zero.py", "pipe.py", "s.py", "/dev/zero")
    told = sorted(line.partition(" ")[2] for line in result.stdout.splitlines() if "TL001" in line)
    assert [text.partition(": ")[2] for text in told] == [
        "it is a device",
        "it is a device",
        "it is a pipe",
        "it is a socket",
    ]
    assert "a.py:9:9: TL601" in result.stdout
    assert "loop.py is a broken symbolic link, and was not checked" in result.stderr
    named = lint("--output-format", "concise", "loop.py")
    assert (named.exit_code, named.stdout.partition(" TL001 ")[0]) == (1, "loop.py:1:1:")


def test_a_name_that_is_too_long_for_the_system_is_that_of_no_file() -> None:
    name = "a" * 5_000
    result = lint("--output-format", "concise", f"{name}.py", "--config", f"{name}.toml", "--isolated")
    assert (result.exit_code, "is neither a file nor TOML" in result.stderr) == (2, True)
    result = lint("--output-format", "concise", f"{name}.py", f"{name}/b.py")
    assert result.stdout.count("TL001 cannot read the file: file name too long") == 2
    assert Resolver(rules()).lint(Path(f"/{name}/b.py")).rules


def test_a_config_that_is_no_file_is_none() -> None:
    os.mkfifo("torchlint.toml")
    Path("a.py").write_text(PROGRAM)
    assert lint("a.py").exit_code == 1


def test_a_directory_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(PROGRAM)
    Path("closed").mkdir()
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = lint("--output-format", "concise")
    assert "TL601" in result.stdout
    assert "closed: Permission denied" in result.stderr


def test_a_file_that_is_too_large_is_told_and_not_read() -> None:
    with Path("large.py").open("wb") as file:
        file.truncate(50_000_000)
    Path("a.py").write_text(PROGRAM)
    result = lint("--output-format", "concise")
    assert result.exit_code == 1
    told = "cannot read the file: it has 50000000 bytes; the limit is 5000000"
    assert f"large.py:1:1: TL001 {told}" in result.stdout
    assert "a.py:9:9: TL601" in result.stdout
    Path("n.ipynb").write_bytes(b"{}" + b" " * 5_000_000)
    assert "not a notebook" in lint("--output-format", "concise", "n.ipynb").stdout
    with Path("n.ipynb").open("wb") as notebook:
        notebook.truncate(50_000_001)
    assert "the limit is 50000000" in lint("--output-format", "concise", "n.ipynb").stdout
    Path("torchlint.toml").write_text("max-file-size = 100")
    assert lint("--output-format", "concise", "a.py").stdout.startswith("a.py:1:1: TL001 cannot read")
    assert "TL601" in lint("--output-format", "concise", "--max-file-size", "0", "a.py").stdout


def test_a_file_that_is_too_large_is_not_read_to_be_shown() -> None:
    # More than any memory holds; on the disk it takes nothing.
    with Path("large.py").open("wb") as file:
        file.truncate(2**43)
    for name in options.FORMATS:
        result = lint("--output-format", name)
        assert (result.exit_code, f"it has {2**43} bytes" in result.stdout) == (1, True), name


# Regular files by name: one has no end, but only a superuser may read it; the other says to be empty.
MADE_UP = [name for name in ("/proc/kmsg", "/proc/self/environ") if os.access(name, os.R_OK)]


@pytest.mark.parametrize("made_up", MADE_UP)
@pytest.mark.parametrize(
    "name",
    [
        *("b.py", "b.ipynb", "torchlint.toml", "pyproject.toml", ".gitignore", ".ignore", "baseline.json"),
        *("requirements.txt", "uv.lock", "setup.py", "setup.cfg", "environment.yml", ".git/info/exclude"),
    ],
)
def test_what_the_kernel_makes_up_is_not_waited_for(name: str, made_up: str) -> None:
    Path("a.py").write_text(PROGRAM)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).symlink_to(made_up)
    command = [sys.executable, "-m", "torchlint", "check", "--output-format", "concise"]
    command += ["--baseline", name] if name == "baseline.json" else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    told, told_of = done.stdout + done.stderr, name.rpartition("/")[2]
    why = "its size does not match the size reported by the system"
    if name.endswith((".toml", ".json")):
        assert (done.returncode, told_of in told, why in told) == (2, True, True)
        return
    assert (done.returncode, "a.py:9:9: TL601" in done.stdout) == (1, True)
    # Declarations that cannot be read are not heeded, as those that are too large.
    heard = name not in ("requirements.txt", "uv.lock", "setup.cfg", "environment.yml")
    assert (told_of in told, why in told) == (heard, heard)


# --- declarations and config that are bombs ----------------------------------------------------------------

UNKNOWN = Target.unknown()
BOMBS = {
    "deep.toml": ("pyproject.toml", "torch = " + "[" * 20_000),
    "digits.toml": ("pyproject.toml", "torch = " + "9" * 20_000),
    "dotted.toml": ("pyproject.toml", "torch" + ".a" * 20_000 + " = 1"),
    "large.toml": ("pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]\n' + "#" * 2_000_000),
    "caret": ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^.5"'),
    "caret digits": ("pyproject.toml", f'[tool.poetry.dependencies]\ntorch = "^{"9" * 20_000}"'),
    "poetry": ("pyproject.toml", f'[tool.poetry.dependencies]\ntorch = "{"1" * 100_000}!"'),
    "poetry or": ("pyproject.toml", f'[tool.poetry.dependencies]\ntorch = "{"1||" * 100_000}"'),
    "deep marker": ("requirements.txt", "torch; " + "(" * 20_000),
    "deep short marker": ("requirements.txt", "torch; " + "(" * 900),
    "version": ("requirements.txt", "torch>=" + "9" * 20_000),
    "specifiers": ("requirements.txt", "torch" + ",".join(f">=1.{i}" for i in range(20_000))),
    "conda": ("environment.yml", "- pytorch 1 " + "w" * 100_000 + "!"),
    "conda short": ("environment.yml", "- pytorch 1 " + "w" * 900 + "!"),
    "spaces": ("environment.yml", "- pytorch" + " " * 100_000 + "!"),
    "setup.py": ("setup.py", "torch = " + "(" * 100_000),
    "setup.cfg": ("setup.cfg", "[options]\ninstall_requires =\n" + " torch>=9!\n" * 20_000),
    "lock": ("uv.lock", '"torch": {' + '"version": "==' * 20_000),
    "Pipfile": ("Pipfile", "[packages]\ntorch = " + "{" * 20_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_declaration_that_is_a_bomb_declares_nothing(name: str) -> None:
    file, text = BOMBS[name]
    Path(file).write_text(text)
    started = time.process_time()
    found = detect(Path.cwd() / "a.py")
    assert time.process_time() - started < 3
    assert found == target.installed() or found.lower is None


def test_of_countless_declarations_some_are_read() -> None:
    Path("requirements.txt").write_text("".join(f"torch>=2.{number}\n" for number in range(50_000)))
    started = time.process_time()
    assert str(detect(Path.cwd() / "a.py").lower) == "2.0.0"
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = " + "[" * 20_000, "not valid TOML: it is nested too deeply"),
        ("workers = " + "9" * 20_000, "not valid TOML: Exceeds the limit"),
        ("a" + ".b" * 5_000 + " = 1", "not valid TOML: it has a key of too many parts"),
        ("per-file-ignores" + ".a" * 400 + " = 1", "a table whose `a` is a table whose `a`"),
        ("#" * 2_000_000, "it has 2000000 bytes; the limit is 1000000"),
    ],
)
def test_a_config_that_is_a_bomb_is_refused(text: str, told: str) -> None:
    Path("torchlint.toml").write_text(text)
    result = lint(".")
    assert result.exit_code == 2
    assert told in result.stderr
    with pytest.raises(toml.TOMLDecodeError):
        toml.loads("x = " + "[" * 20_000)


def test_wildcards_of_a_project_take_time_in_proportion() -> None:
    Path("a" * 200 + ".py").write_text(PROGRAM)
    bomb = "*a" * 60 + "*b"
    Path(".gitignore").write_text(f"{bomb}\n")
    Path("torchlint.toml").write_text(
        f'extend-exclude = ["{bomb}"]\nper-file-ignores = {{"{bomb}" = ["TL601"]}}\n'
    )
    started = time.process_time()
    assert "TL601" in lint("--output-format", "concise").stdout
    assert time.process_time() - started < 3


@pytest.mark.parametrize("pattern", ["[z-a]", "a["])
def test_a_pattern_of_a_config_that_is_none_is_refused(pattern: str) -> None:
    Path("a.py").write_text(PROGRAM)
    Path("torchlint.toml").write_text(f'extend-exclude = ["{pattern}"]\n')
    result = lint("--output-format", "concise")
    assert ("TL601" in result.stdout, result.exit_code) == (False, 2)
    assert pattern in result.stderr and "FutureWarning" not in result.stderr


def test_a_class_of_characters_by_name_is_a_set_like_any_other() -> None:
    Path("a.py").write_text(PROGRAM)
    Path("torchlint.toml").write_text('extend-exclude = ["[[:alpha:]]x"]\n')
    result = lint("--output-format", "concise")
    assert ("TL601" in result.stdout, result.exit_code) == (True, 1)
    assert "FutureWarning" not in result.stderr


def test_a_chain_of_configs_is_followed_so_far(project: Path) -> None:
    for number in range(200):
        Path(f"c{number}.toml").write_text(f'extend = "c{number + 1}.toml"\n')
    Path("torchlint.toml").write_text('extend = "c0.toml"\n')
    result = lint(".")
    assert (result.exit_code, "more than 20 config files extend each other" in result.stderr) == (2, True)
    Path("c18.toml").write_text("")
    assert lint(".").exit_code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'extend = "{"a" * 5_000}"', "which is not a file"),
        ('extend = "a\\u0000b"', "which is not a file"),
        ("max-file-size = 0x" + "f" * 100_000, "invalid value for `max-file-size`: it is larger than"),
        ("select = 0x" + "f" * 100_000, "rule names or ALL, found a number\n"),
        (f'select = "{"a" * 100_000}"', "rule names or ALL, found a string (`aaa"),
        (
            f"extend-exclude = {[f'a{number}' for number in range(1_001)]}",
            "it has 1001 patterns, but at most 1000 are",
        ),
        ("[per-file-ignores]\n" + "".join(f"a{n} = []\n" for n in range(1_001)), "it has 1001 patterns"),
    ],
)
def test_values_beyond_measure_are_refused(text: str, told: str) -> None:
    Path("torchlint.toml").write_text(text)
    result = lint(".")
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
    assert len(result.stderr) < 2_000


def test_a_config_tells_nobody_what_a_variable_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    Path("torchlint.toml").write_text('extend = "$A_TOKEN/x.toml"\n')
    result = lint(".")
    assert "`extend` names $A_TOKEN/x.toml, which is not a file" in result.stderr
    assert "secret" not in result.stderr
    Path("secret").mkdir()
    Path("secret", "x.toml").write_text("")
    assert lint(".").exit_code == 0


def test_a_baseline_that_is_a_bomb_is_told(project: Path) -> None:
    Path("a.py").write_text(PROGRAM)
    with Path("b.json").open("wb") as file:
        file.truncate(40_000_000)
    result = lint("--baseline", "b.json", ".")
    assert (result.exit_code, "it has 40000000 bytes; the limit is 32000000" in result.stderr) == (2, True)
    entry = {
        "code": "TL601",
        "path": "\x1b" + "a" * 10_000,
        "line": "\x1b[31m\n::error::",
        "fingerprint": "\ud800",
    }
    odd = [entry, {**entry, "path": "\0"}, {**entry, "path": "../" * 2_000}]
    Path("b.json").write_text(json.dumps({"version": 2, "findings": odd}))
    result = lint("--baseline", "b.json", "--update-baseline", ".")
    assert result.exit_code == 0, result.stderr
    assert_tame(result.stdout + result.stderr)
    assert {item["path"] for item in json.loads(Path("b.json").read_text())["findings"]} == {"a.py"}


def notebook(*sources: str | list[str]) -> str:
    about: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": []}
    cells = [{**about, "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (lambda: notebook(*["x = 1"] * 10_001), "the notebook has more than 10000 cells"),
        (lambda: notebook(["x = 1\n"] * 200_001), "the notebook has more than 200000 keys, cells and lines"),
        (lambda: notebook("x = 1\n" * 1_000_000), "characters of code; the limit is 5000000"),
        (lambda: notebook("")[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
    ids=["cells", "lines", "code", "nested"],
)
def test_a_notebook_that_is_a_bomb_is_told(text: Callable[[], str], told: str) -> None:
    Path("a.ipynb").write_text(text())
    started = time.process_time()
    result = lint("--output-format", "concise", "a.ipynb")
    assert time.process_time() - started < 8
    assert (result.exit_code, told in result.stdout) == (1, True), result.stdout


# --- nothing is echoed raw ---------------------------------------------------------------------------------

NAMES = (
    "a\n::error::b.py",
    "\u2028::error::b.py",
    "\u2066\x85b.py",
    "::error::c.py",
    "\x1b[31md\x9b.py",
    "\u202ee.py",
    "##vso[f]##[g].py",
    "-h.py",
)


def assert_tame(text: str) -> None:
    """Nothing in ``text`` drives a terminal or a build server."""
    assert [char for char in text if char != "\n" and not char.isprintable()] == []
    for line in text.split("\n"):
        assert "##[" not in line and "##vso[" not in line
        assert not line.lstrip().startswith("::")


@pytest.mark.parametrize("name", ["full", "concise", "grouped", "pylint", "json", "sarif", "junit", "rdjson"])
def test_names_of_files_command_nothing(name: str) -> None:
    for file in (*NAMES, os.fsdecode(b"z\xff.py")):
        Path(file).write_text(PROGRAM.replace("batch.cuda()", "batch.cuda('##vso[a]##[b]\x1b[31m\u202e')"))
    result = lint("--output-format", name)
    assert result.exit_code == 1
    assert result.stdout.count("TL601") >= len(NAMES)
    assert_tame(result.stdout + result.stderr)
    assert_tame(lint("--show-files").stdout)
    assert_tame(lint("--show-settings").stdout)


def test_what_cannot_be_read_is_told_tamely() -> None:
    folder = Path("x\n::error::y\x1b[31m")
    folder.mkdir()
    (folder / "a.py").write_text(PROGRAM)
    (folder / "torchlint.toml").write_text('"\\u001b[31m##[x]" = 1\n')
    result = lint(str(folder))
    assert (result.exit_code, result.stdout) == (2, "")
    assert_tame(result.stderr)
    (folder / "torchlint.toml").write_text("::error::\x1b[31m##vso[x]\n")
    assert_tame(lint(str(folder)).stderr)
    (folder / "torchlint.toml").unlink()
    result = lint("--verbose", str(folder))
    assert "config none" in result.stderr
    assert_tame(result.stderr)


def test_a_diff_is_tame_on_a_terminal_and_exact_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text("x = '\x1b[31m'\nx = 1  # noqa: TL202\n'''\n::error::\n'''\n")
    exact = lint("--diff").stdout
    assert "\x1b[31m" in exact and "\n ::error::" in exact
    monkeypatch.setattr("torchlint.commands.check.is_terminal", lambda stream: True)
    shown = lint("--diff", "--color", "never").stdout
    assert_tame(shown)
    assert "-x = 1  # noqa: TL202" in shown


# --- time in proportion ------------------------------------------------------------------------------------

RULES = LintSettings(rules=("TL001", "TL002", "TL003", "TL202"), fixable=frozenset({"TL002"}))
LONG: dict[str, Callable[[int], str]] = {
    "unused": lambda n: "x = 1  # noqa: TL202\n" * n,
    "ignores": lambda n: "# torchlint: ignore[TL202]\nx = 1\n" * n,
    "blocks": lambda n: "# torchlint: disable[TL202]\n# torchlint: enable[TL202]\n" * n,
    "same word": lambda n: "# torchlint: ignore[" + "a," * n + "]",
    "words": lambda n: "# torchlint: ignore[" + ",".join(f"TL9O{i}" for i in range(n)) + "]",
    "prose": lambda n: "# noqa: " + ", ".join(f"zz-{i}" for i in range(n)),
    "long word": lambda n: "# noqa: TL" + "9" * n * 20,
    "hashes": lambda n: "# " + "#" * n * 20 + " noqa",
    "spaces": lambda n: "# noqa" + " " * n * 20 + ":\n# torchlint" + " " * n * 20 + ": \t" + " " * n * 20,
    "brackets": lambda n: "# torchlint: ignore[" + "[" * n * 20,
}


@pytest.mark.parametrize("name", LONG)
def test_suppressions_take_time_in_proportion(name: str) -> None:
    text = LONG[name](3_000)
    started = time.process_time()
    result, _ = run_text(text.encode(), Path("a.py"), RULES, Mode())
    assert time.process_time() - started < 4
    assert {item.code for item in result.diagnostics} <= {"TL002", "TL003"}


@pytest.mark.parametrize("filler", ["x = 1; ", "x = 'é'; "])
def test_thousands_of_findings_in_one_line_are_shown_in_time(filler: str) -> None:
    text = filler * 20_000 + "# torchlint: ignore[" + "a," * 400 + "]"
    result, source = run_text(text.encode(), Path("a.py"), RULES, Mode())
    found: tuple[Diagnostic, ...] = result.diagnostics
    started = time.process_time()
    shown = full.render(Report(found, lambda path: source))
    assert time.process_time() - started < 4
    assert shown.count("TL003 ") == len(found) == 400
    assert "\n  | " in shown and max(map(len, shown.splitlines())) < 200


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 2_900 + "]" * 2_900,
        "x = a" + ".b" * 5_000,
        "x = " + "lambda: " * 5_000 + "1",
        ("x = a" + ".b" * 1_000 + "\n") * 50,
    ],
)
def test_what_is_nested_beyond_measure_is_refused_at_once(text: str) -> None:
    from torchlint.parsing import UnreadableError, on_deep_stack, parse

    started = time.process_time()
    with pytest.raises(UnreadableError, match="nested too deeply"):
        on_deep_stack(parse, text)
    assert time.process_time() - started < 4
