"""Many files: order, processes, writing, diffs, and everything that can be wrong with a file."""

from __future__ import annotations

import codecs
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tests.conftest import install
from torchlint import checker, fixer
from torchlint.diagnostics import Applicability, Edit, Fix
from torchlint.options import LintSettings
from torchlint.rule import WARNING, Finding, rule
from torchlint.runner import Mode, Result, run, run_text, unified_diff
from torchlint.semantics.module import Module
from torchlint.source import Source

UseRules = Callable[..., LintSettings]
CHECK, FIX, DIFF = Mode(), Mode(fix=True), Mode(diff=True)


@rule("XX101", "old-name", severity=WARNING, fix="safe", on=cst.Name, mentions=("old",))
def old_name(node: cst.Name, module: Module) -> Iterator[Finding]:
    """Finds the name ``old``; the fix writes ``new``."""
    if node.value == "old":
        edits = (Edit(module.tree.span(node), "new"),)
        yield Finding(node, "an old name", Fix("Call it `new`", edits, Applicability.SAFE))


@pytest.fixture
def settings(use_rules: UseRules) -> LintSettings:
    return use_rules(old_name)


def treat(path: Path, settings: LintSettings, mode: Mode = CHECK) -> Result:
    (result,) = run([path], {path: settings}, mode)
    return result


def said(result: Result) -> list[tuple[str, str]]:
    return [(item.code, item.message) for item in result.diagnostics]


# --- one file ----------------------------------------------------------------------------------------------


def test_check_writes_nothing(tmp_path: Path, settings: LintSettings) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")
    result = treat(path, settings)
    assert said(result) == [("XX101", "an old name")]
    assert (result.path, result.applied, result.diff, result.written) == (path, Counter(), None, False)
    assert path.read_bytes() == b"old\n"


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"old\n", b"new\n"),
        (b"old", b"new"),
        (b"x\r\nold\r\n", b"x\r\nnew\r\n"),
        (b"x\nold\r\ny\rold", b"x\nnew\r\ny\rnew"),
        (b"x\r\x0cold\r", b"x\r\x0cnew\r"),
        (b"\x0c\nold\n\x0cx\n", b"\x0c\nnew\n\x0cx\n"),
        ("x = 'ü€😀\u2028'; old\n".encode(), "x = 'ü€😀\u2028'; new\n".encode()),
    ],
)
def test_a_fix_changes_its_bytes_only(
    tmp_path: Path, settings: LintSettings, bom: bytes, before: bytes, after: bytes
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(bom + before)
    path.chmod(0o750)
    result = treat(path, settings, FIX)
    assert path.read_bytes() == bom + after
    assert (result.diagnostics, result.applied) == ((), Counter(XX101=before.count(b"old")))
    assert result.written
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-r", "shift_jis", "utf-8", "gb18030"])
def test_a_fix_keeps_the_encoding(tmp_path: Path, settings: LintSettings, encoding: str) -> None:
    word = {"koi8-r": "привет", "shift_jis": "日本", "gb18030": "中文"}.get(encoding, "Grüße")
    text = f"# coding: {encoding}\r\nx = '{word}'; old\r\n"
    path = tmp_path / "a.py"
    path.write_bytes(text.encode(encoding))
    assert treat(path, settings, FIX).written
    assert path.read_bytes() == text.replace("old", "new").encode(encoding)


def test_an_encoding_that_does_not_give_the_same_bytes_back(tmp_path: Path, settings: LintSettings) -> None:
    path = tmp_path / "a.py"
    # UTF-7 can spell the same text in several ways; the codec writes one of them.
    data = b"# coding: utf-7\nx = '+AOQ-+APY-'; old\n"
    path.write_bytes(data)
    result = treat(path, settings, FIX)
    assert said(result) == [
        ("TL001", "cannot write the fixes: the file does not round-trip through utf-7"),
        ("XX101", "an old name"),
    ]
    assert path.read_bytes() == data


def test_a_fixed_file_is_left_alone(tmp_path: Path, settings: LintSettings) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"new\n")
    before = path.stat()
    assert not treat(path, settings, FIX).written
    assert path.stat() == before


def test_fixes_go_through_symbolic_links(tmp_path: Path, settings: LintSettings) -> None:
    target, link = tmp_path / "target.py", tmp_path / "link.py"
    target.write_bytes(b"old\n")
    link.symlink_to("target.py")
    results = list(run([link, target], {link: settings, target: settings}, FIX))
    assert target.read_bytes() == b"new\n"
    assert link.is_symlink()
    assert [result.diagnostics for result in results] == [(), ()]


def test_a_read_only_file_is_reported_with_what_is_left(tmp_path: Path, settings: LintSettings) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")
    path.chmod(0o444)
    result = treat(path, settings, FIX)
    assert said(result) == [
        ("TL001", "cannot write the fixes: the file is read-only"),
        ("XX101", "an old name"),
    ]
    assert (result.applied, result.written) == (Counter(), False)
    assert path.read_bytes() == b"old\n"


def test_a_file_changed_meanwhile_is_left_alone(
    tmp_path: Path, settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")

    def slowly(*arguments: Any) -> tuple[fixer.Fixed, fixer.Course]:
        path.write_bytes(b"old  # somebody is typing\n")
        return resume(*arguments)

    resume = fixer.resume
    monkeypatch.setattr(fixer, "resume", slowly)
    result = treat(path, settings, FIX)
    assert said(result) == [("TL001", "cannot write the fixes: the file changed while it was checked")]
    assert path.read_bytes() == b"old  # somebody is typing\n"


def test_two_names_of_one_file_in_one_run(tmp_path: Path, settings: LintSettings) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_bytes(b"old\n")
    os.link(first, second)
    results = list(run([first, second], {first: settings, second: settings}, FIX))
    assert [said(result) for result in results] == [[], []]
    assert (first.read_bytes(), second.read_bytes()) == (b"new\n", b"new\n")


# --- files that are none -----------------------------------------------------------------------------------


def test_bad_files_are_reported_and_the_others_go_on(tmp_path: Path, settings: LintSettings) -> None:
    contents: dict[str, bytes] = {
        "bytes.py": b"old\nx = '\xff'\n",
        "cookie.py": b"# coding: klingon\nold\n",
        "good.py": b"old\n",
        "nul.py": b"old\0\n",
        "syntax.py": b"old\nx = = 1\n",
        "utf16.py": "old\n".encode("utf-16"),
        "empty.py": b"",
        "unclosed.py": b"old = '''\n",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    names = sorted([*contents, "broken.py", "folder.py", "pipe.py", "missing.py"])
    paths = [tmp_path / name for name in names]
    results = list(run(paths, dict.fromkeys(paths, settings), FIX))
    assert [result.path for result in results] == paths
    assert {
        result.path.name: [
            f"{item.start.row}:{item.start.column} {item.message}" for item in result.diagnostics
        ]
        for result in results
        if result.diagnostics
    } == {
        "broken.py": ["1:1 cannot read the file: it is a broken symbolic link"],
        "bytes.py": ["2:6 byte 0xff is not valid utf-8"],
        "cookie.py": ["1:1 unknown encoding: klingon"],
        "folder.py": ["1:1 cannot read the file: it is a directory"],
        "missing.py": ["1:1 cannot read the file: no such file or directory"],
        "nul.py": ["1:4 the file contains a NUL byte"],
        "pipe.py": ["1:1 cannot read the file: it is a pipe"],
        "syntax.py": ["2:5 invalid syntax"],
        "unclosed.py": ["1:7 unterminated triple-quoted string literal (detected at line 1)"],
        "utf16.py": ["1:1 byte 0xff is not valid utf-8"],
    }
    assert {item.code for result in results for item in result.diagnostics} == {"TL001"}
    for name, data in contents.items():
        assert (tmp_path / name).read_bytes() == (b"new\n" if name == "good.py" else data)


def test_a_failure_of_torchlint_is_one_of_the_file(
    tmp_path: Path, settings: LintSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old\n")

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(checker, "check", fail)
    assert said(treat(path, settings)) == [
        ("TL000", "checking a.py failed with ZeroDivisionError: division by zero")
    ]


# --- texts and diffs ---------------------------------------------------------------------------------------


def test_run_text(settings: LintSettings) -> None:
    path = Path("stdin.py")
    data = codecs.BOM_UTF8 + b"old\r\n"
    result, source = run_text(data, path, settings, CHECK)
    assert source is not None
    assert (len(result.diagnostics), source.encode(source.text)) == (1, data)
    result, source = run_text(data, path, settings, FIX)
    assert source is not None
    assert (result.diagnostics, source.encode(source.text)) == ((), codecs.BOM_UTF8 + b"new\r\n")
    result, source = run_text(b"\xff", path, settings, FIX)
    assert (said(result), source) == ([("TL001", "byte 0xff is not valid utf-8")], None)
    remedy = result.diagnostics[0].remedy
    assert remedy is not None
    assert remedy.startswith("Save the file as UTF-8, or declare its encoding")
    assert (
        run_text(b"\xff", Path("a.ipynb"), settings, CHECK)[0].diagnostics[0].remedy
        == "Save the file as UTF-8"
    )


CHANGES = [
    "old\n",
    "old",
    "x\nold",
    "old\nx",
    "x\r\nold\r\ny\r\n",
    "x\rold\r",
    "\x0cold\n# x\x0by\u2028z\n",
    "a\nb\nc\nd\nold\ne\nf\ng\nh\ni\nj\nk\nl\nold\nm",
]


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("text", CHANGES)
def test_a_diff_is_what_patch_applies(
    tmp_path: Path, settings: LintSettings, monkeypatch: pytest.MonkeyPatch, bom: bytes, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "folder" / "a.py"
    path.parent.mkdir()
    path.write_bytes(bom + text.encode())
    result = treat(path, settings, DIFF)
    assert result.diff is not None
    assert result.applied
    assert not result.written
    assert path.read_bytes() == bom + text.encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=result.diff.encode(), cwd=tmp_path, check=True)
    assert path.read_bytes() == bom + text.replace("old", "new").encode()


def test_the_look_of_a_diff(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    source = Source(tmp_path / "a b" / "c.py", "x\nold")
    assert unified_diff(source, "x\nnew") == (
        "--- a b/c.py\n+++ a b/c.py\n@@ -1,2 +1,2 @@\n x\n-old\n\\ No newline at end of file\n"
        "+new\n\\ No newline at end of file\n"
    )
    assert unified_diff(source, source.text) == ""
    assert unified_diff(Source(Path("/elsewhere/c.py"), "a\n"), "b\n").startswith("--- /elsewhere/c.py\n")


def test_without_applicable_fixes_there_is_no_diff(tmp_path: Path, settings: LintSettings) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"fine\n")
    assert treat(path, settings, DIFF).diff is None


# --- many files, in processes ------------------------------------------------------------------------------

HOT = """\
import torch

model = torch.nn.Linear(4, 1).cuda()


def train(loader, optimizer):
    for features in loader:
        loss = model(features.cuda()).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(loss.item(), {number})
"""


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    """Enough source that a pool is worth it; every file has one finding."""
    filler = "# " + "x" * 98 + "\n"
    paths = []
    for number in range(12):
        path = tmp_path / f"{number:02}.py"
        path.write_text(HOT.replace("{number}", str(number)) + filler * 300)
        paths.append(path)
    return paths


REAL = LintSettings(rules=("TL001", "TL002", "TL202"), fixable=frozenset({"TL002"}))


def test_processes_find_the_same_in_the_same_order(many: list[Path]) -> None:
    told: list[tuple[int, int]] = []
    settings = dict.fromkeys(many, REAL)
    alone = list(run(many, settings, CHECK, jobs=1))
    pooled = list(run(many, settings.__getitem__, CHECK, jobs=2, progress=lambda *now: told.append(now)))
    assert [result.path for result in alone] == many
    assert all(len(result.diagnostics) == 1 for result in alone)
    assert pooled == alone
    assert told == [(number, 12) for number in range(1, 13)]


def test_processes_leave_the_writing_to_the_caller(many: list[Path]) -> None:
    for path in many:
        path.write_text(path.read_text() + "x = 1  # noqa: TL202\n")
    results = run(many, dict.fromkeys(many, REAL), FIX, jobs=2)
    first = next(results)
    assert first.written
    assert first.applied == Counter(TL002=1)
    # Nothing is written before its result is asked for.
    assert many[-1].read_text().endswith("# noqa: TL202\n")
    results.close()  # type: ignore[attr-defined]
    assert many[-1].read_text().endswith("# noqa: TL202\n")
    assert [result.written for result in run(many, dict.fromkeys(many, REAL), FIX, jobs=2)] == [
        False,
        *[True] * 11,
    ]
    assert all(path.read_text().endswith("x = 1\n") for path in many)


def test_results_travel_between_processes(many: list[Path]) -> None:
    (result,) = run(many[:1], dict.fromkeys(many, REAL), CHECK)
    assert pickle.loads(pickle.dumps(result)) == result


PACK = '''
import os
import libcst as cst
from torchlint.rule import WARNING, Finding, rule


@rule("XX101", "fatal", severity=WARNING, fix="none", on=cst.Name, mentions=("die",))
def fatal(node, module):
    """Takes the process down."""
    if node.value == "die":
        os._exit(3)
    if node.value == "stay":
        import time

        open(os.environ["STARTED"], "w").close()
        time.sleep(600)
    if node.value == "compute":
        open(os.environ["STARTED"], "w").close()
        while True:
            pass
    yield Finding(node, "a name")
'''


@pytest.fixture
def pack(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which a rule pack is installed that kills or stops its process."""
    folder = tmp_path / "site"
    install(folder, "fatal_pack", "fatal_pack")
    (folder / "fatal_pack.py").write_text(PACK)
    return {**os.environ, "PYTHONPATH": str(folder), "STARTED": str(tmp_path / "started")}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "torchlint", "check", "--isolated", *map(str, arguments)]


def test_a_worker_that_dies_takes_one_file_with_it(many: list[Path], pack: dict[str, str]) -> None:
    many[5].write_text(many[5].read_text() + "die\n")
    run = subprocess.run(
        command(
            "-j",
            "2",
            "--select",
            "XX101,TL202",
            "--impact",
            "low",
            "--output-format",
            "concise",
            many[0].parent,
        ),
        env=pack,
        cwd=many[0].parent,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in run.stdout.splitlines() if ".py:" in line and "fatal_pack" not in line]
    # What is worth measuring is listed once more, indented.
    lines = [line for line in told if not line.startswith(" ")]
    assert run.returncode == 2
    assert len([line for line in lines if "TL202" in line]) == 11
    assert [line for line in lines if "TL000" in line] == ["05.py:1:1: TL000 the process checking 05.py died"]
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_the_run_quietly(many: list[Path], pack: dict[str, str], jobs: str) -> None:
    for path in many:
        path.write_text(path.read_text() + "stay  # die\n")
    before = {path: path.read_bytes() for path in many}
    process = subprocess.Popen(
        command("-j", jobs, "--fix", "--select", "XX101", many[0].parent),
        env=pack,
        cwd=many[0].parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not Path(pack["STARTED"]).exists():
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    # Far less than the rule would take.
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert {path: path.read_bytes() for path in many} == before
    assert not list(many[0].parent.glob("*.tmp"))


UNSTARTED = """
import os, signal, sys, threading
from multiprocessing import forkserver

ensure, how = forkserver.ForkServer.ensure_running, sys.argv.pop(1)

def end(process):
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)

def killed(self):
    ensure(self)
    if how == "before it is asked":
        end(self._forkserver_pid)
    else:
        os.kill(self._forkserver_pid, signal.SIGSTOP)
        threading.Timer(0.2, end, (self._forkserver_pid,)).start()

def refused(self):
    raise OSError(11, "Resource temporarily unavailable")

forkserver.ForkServer.ensure_running = refused if how == "not at all" else killed
from torchlint.cli import run
run()
"""


@pytest.mark.parametrize("how", ["before it is asked", "while it is asked", "not at all"])
def test_a_run_whose_workers_cannot_be_started_says_so(many: list[Path], how: str) -> None:
    for path in many:
        path.write_text(path.read_text() + "x = 1  # noqa: TL202\n")
    before = {path: path.read_bytes() for path in many}
    flags = ["check", "--isolated", "-j", "2", "--fix"]
    run = subprocess.run(
        [sys.executable, "-c", UNSTARTED, how, *flags, *map(str, many)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    reason = (
        "Resource temporarily unavailable" if how == "not at all" else "the process that starts them died"
    )
    told = f"error: worker processes cannot be started: {reason}; use `--jobs 1` to run without them\n"
    assert (run.returncode, run.stdout, run.stderr) == (2, "", told)
    assert {path: path.read_bytes() for path in many} == before


def living(session: int) -> list[str]:
    """The command lines of the processes of a session that have not ended."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, *fields = (place / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[2]) == session and state not in "ZX":
                found.append((place / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("word", ["stay", "compute"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_process_outlives_the_run(
    many: list[Path], pack: dict[str, str], number: signal.Signals, word: str
) -> None:
    for path in many:
        path.write_text(path.read_text() + f"{word}  # die\n")
    process = subprocess.Popen(
        command("-j", "2", "--select", "XX101", many[0].parent),
        env=pack,
        cwd=many[0].parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not Path(pack["STARTED"]).exists():
        assert process.poll() is None
        time.sleep(0.1)
    # The run, what starts its workers, what looks after their semaphores, and at least one of them.
    assert len(living(process.pid)) >= 4
    os.kill(process.pid, number)
    assert process.wait(60) == -number
    until = time.monotonic() + 60
    while left := living(process.pid):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def test_a_pool_started_from_a_script(many: list[Path]) -> None:
    script = many[0].parent.parent / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom torchlint.options import LintSettings\n"
        "from torchlint.runner import Mode, run\n"
        "if __name__ == '__main__':\n"
        "    paths = [Path(name) for name in sys.argv[1:]]\n"
        "    settings = LintSettings(rules=('TL202',))\n"
        "    print(sum(len(item.diagnostics) for item in run(paths, lambda path: settings, Mode(), 2)))\n"
    )
    done = subprocess.run(
        [sys.executable, script, *many], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "12\n"
