"""Which lines of a program run, and whether a fix changes any of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch

from torchlint.render import measurements
from torchlint.verify import report
from torchlint.verify.measure import Pool, Session, Settings
from torchlint.verify.processes import Nurseries
from torchlint.verify.reach import reached
from torchlint.verify.results import ORIGINAL, Machine, Results, Variant, Verdict
from torchlint.verify.subjects import Script
from torchlint.verify.worker.lines import Lines
from torchlint.verify.workspace import Workspace

BEFORE = """\
import torch


def used(x):
    y = x.float()
    return call(
        y,
        1,
    )


def unused(x):
    if x:
        x = x.float()
    return x


if torch:
    used(1)
"""
RAN = {1, 4, 5, 6, 7, 12, 18, 19}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("y = x.float()", "y = x.half()", True),
        ("        1,\n", "        2,\n", True),
        ("        x = x.float()", "        x = x.half()", False),
        ("    if x:\n", "    if not x:\n", False),
        ("def unused", "@torch.no_grad()\ndef unused", False),
        ("def used", "@torch.no_grad()\ndef used", True),
        ("def unused(x):\n", "def unused(x):\n    print()\n", False),
        ("import torch\n", "import torch\nfrom torch import nn\n", True),
        ("import torch\n", "import torch\n\ntorch.set_num_threads(1)\n", True),
        ("    y = x.float()\n", "", True),
        ("        x = x.float()\n", "        pass\n", False),
        ("if torch:\n", "if torch and torch:\n", True),
    ],
)
def test_a_fix_is_reached_where_a_statement_ran_that_it_changes(old: str, new: str, expected: bool) -> None:
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    assert reached(BEFORE, after, RAN) is expected


def test_an_import_that_a_fix_needs_reaches_nothing() -> None:
    after = BEFORE.replace("import torch\n", "import torch\nimport math\n")
    after = after.replace("x = x.float()\n    return x", "x = 1\n    return x")
    assert reached(BEFORE, after, RAN) is False


PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        row = torch.ones(4)
        return row


def never(model):
    model.eval()
    return model


def main():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while True:
        for batch in DataLoader(Rows(), batch_size=8, num_workers=WORKERS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            step += 1
            if step == 30:
                print("late")
            if step < 0:
                never(model)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def examined(tmp_path: Path, scratch: Path, nurseries: Nurseries) -> Callable[[str], Session]:
    """Returns the examination of a program as its user has it."""

    def run(text: str) -> Session:
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        with Pool(Script(Workspace(tmp_path / "train.py", scratch), device="cpu"), nurseries) as pool:
            session = Session(pool, Settings(device="cpu"), Machine("cpu"), scratch)
            session.examine_original()
        return session

    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_the_lines_that_run_are_known_in_loader_workers_too(workers: int, examined: Any) -> None:
    text = PROGRAM.replace("WORKERS", str(workers))
    session = examined(text)
    assert session.examinations[ORIGINAL].steps > 30
    assert session.lines is not None
    ran = {text.splitlines()[row - 1].strip() for row in session.lines["train.py"]}
    assert {"row = torch.ones(4)", "optimizer.step()", 'print("late")', "main()"} <= ran
    assert not {"model.eval()", "return model", "never(model)"} & ran


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_workers=WORKERS", 'num_workers=1, multiprocessing_context="spawn"'),
        ("model = nn.Linear(4, 1)", 'model = torch.compile(nn.Linear(4, 1), backend="eager")'),
        ("model = nn.Linear(4, 1)", "model = torch.jit.script(nn.Linear(4, 1))"),
    ],
    ids=["spawned", "compiled", "scripted"],
)
def test_nothing_is_said_where_lines_run_that_nobody_sees(old: str, new: str, examined: Any) -> None:
    text = PROGRAM.replace(old, new).replace("WORKERS", "0")
    assert examined(text).lines is None


def test_a_fix_that_was_not_reached_is_said_to_be_so_and_not_timed(examined: Any) -> None:
    session = examined(PROGRAM.replace("WORKERS", "0"))
    text = PROGRAM.replace("model.eval()", "model.train(False)")
    before = {"train.py": PROGRAM}
    assert not session.reaches(before, {"train.py": text})
    assert session.reaches(before, {"train.py": text.replace("optimizer.step()", "pass")})
    session.unreached.append(Variant("TL000", ("TL000",)))
    session.examine([])
    (outcome,) = session.measurement().comparisons
    assert outcome.verdict is Verdict.UNREACHED
    steps = session.examinations[ORIGINAL].steps
    assert outcome.reason == f"the lines that it changes did not run in {steps} steps"
    results = Results("verify", "0", "", 1.0, session.machine, (session.measurement(),))
    table = measurements.render(results, 110)
    assert (
        "NOT REACHED" in table and f"TL000: The lines that it changes did not run in {steps} steps." in table
    )
    assert "NOT REACHED" in report.render(results)


WATCHED = """
import os, sys, threading
from pathlib import Path

sys.path.insert(0, {root!r})
from torchlint.verify.worker.lines import Lines

lines = Lines(Path({project!r}), Path({out!r}))
lines.start()
code = compile(Path({project!r}, "program.py").read_text(), {project!r} + "/program.py", "exec")
exec(code)
lines.pause()
exec(code, {{"again": True}})
lines.start()
print(lines.found())
"""


def interpreters() -> list[Any]:
    """This interpreter, and a newer one if there is any, which has ``sys.monitoring``."""
    found = [pytest.param(sys.executable, id="this")]
    for name in filter(shutil.which, ("python3.12", "python3.13")):
        asked = subprocess.run(
            [name, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True
        )
        if asked.returncode == 0:
            found.append(pytest.param(asked.stdout.strip(), id=name))
    return found


@pytest.mark.parametrize("python", interpreters())
def test_lines_are_seen_in_threads_and_forks(python: str, tmp_path: Path) -> None:
    program = """
        import os, threading

        def thread():
            a = 1

        def child():
            b = 2

        def loop():
            for c in range(3):
                if c > 5:
                    d = 4

        one = threading.Thread(target=thread)
        one.start(); one.join()
        if os.fork() == 0:
            child()
            os._exit(0)
        os.wait()
        loop()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program).lstrip(), encoding="utf-8")
    root = str(Path(__file__).resolve().parents[2])
    code = WATCHED.format(root=root, project=str(tmp_path), out=str(tmp_path / "lines"))
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    rows = eval(run.stdout)["program.py"]
    assert {4, 7, 10, 11, 14, 16, 18} <= set(rows)
    assert 12 not in rows


def test_what_was_compiled_before_the_program_hides_none_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseProcess, "start", BaseProcess.start)

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    lines = Lines(tmp_path, tmp_path / "lines")
    lines.start()
    lines.pause()
    assert lines.found() == {}
    torch.compile(lambda x: x + 2, backend="eager")(torch.ones(2))
    assert lines.found() is None
