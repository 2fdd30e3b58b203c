"""The process in which files are checked: it answers, is given up, and dies without taking anybody along."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchlint.server import worker as worker_module
from torchlint.server.worker import Worker, WorkerError

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEEDS = """
import os, sys, time

def whoami(pulse):
    return os.getpid()

def endless(started, pulse):
    open(started, "w").close()
    while True:
        pulse()
        time.sleep(0.001)

def spin(started, pulse):
    with open(started, "w") as file:
        file.write(str(os.getpid()))
    while True:
        pass

def stuck(pulse):
    time.sleep(600)

def die(pulse):
    os._exit(3)

def fail(pulse):
    raise ValueError("a reason")

def chatter(pulse):
    print("not for the editor")
    return sys.stdin.read()
"""


@pytest.fixture(scope="module")
def deeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A module that the process can import, too: it gets the path of this one."""
    folder = tmp_path_factory.mktemp("deeds")
    (folder / "torchlint_test_deeds.py").write_text(DEEDS)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("torchlint_test_deeds")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def worker(deeds: Any) -> Iterator[Worker]:
    worker = Worker()
    worker.warm_up()
    yield worker
    worker.stop()


async def test_work_is_done_in_one_other_process(worker: Worker, deeds: Any) -> None:
    first, second = await asyncio.gather(worker.do(deeds.whoami), worker.do(deeds.whoami))
    assert first == second != os.getpid()


async def test_what_nobody_wants_any_more_ends(worker: Worker, deeds: Any, tmp_path: Path) -> None:
    started = tmp_path / "started"
    running = asyncio.create_task(worker.do(deeds.endless, str(started)))
    queued = asyncio.create_task(worker.do(deeds.endless, str(started)))
    while not started.exists():
        await asyncio.sleep(0.001)
    queued.cancel()
    running.cancel()
    before = time.monotonic()
    assert await worker.do(deeds.whoami) != os.getpid()
    assert time.monotonic() - before < 5
    assert running.cancelled() and queued.cancelled()


async def test_a_failure_is_told_and_no_end(worker: Worker, deeds: Any) -> None:
    process = await worker.do(deeds.whoami)
    with pytest.raises(WorkerError, match="it failed with ValueError: a reason"):
        await worker.do(deeds.fail)
    assert await worker.do(deeds.whoami) == process


async def test_what_is_printed_does_not_reach_the_editor(
    worker: Worker, deeds: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await worker.do(deeds.chatter) == ""
    assert "not for the editor" not in capfd.readouterr().out


async def test_a_death_is_told_and_survived(worker: Worker, deeds: Any) -> None:
    process = await worker.do(deeds.whoami)
    with pytest.raises(WorkerError, match="the process that checks files died"):
        await worker.do(deeds.die)
    assert await worker.do(deeds.whoami) != process


async def test_what_takes_for_ever_is_ended(
    worker: Worker, deeds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await worker.do(deeds.whoami)
    with monkeypatch.context() as patched:
        patched.setattr(worker_module, "PATIENCE", 0.1)
        with pytest.raises(WorkerError, match="no answer within 0 seconds"):
            await worker.do(deeds.stuck)
    assert await worker.do(deeds.whoami) != process
    with pytest.raises(ProcessLookupError):
        for _ in range(500):
            os.kill(process, 0)
            await asyncio.sleep(0.01)


OWNER = """
import asyncio, importlib, os, sys

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    deeds = importlib.import_module("torchlint_test_deeds")
    from torchlint.server.worker import Worker
    asyncio.run(Worker().do(deeds.spin, sys.argv[2]))
"""


async def test_the_process_ends_with_the_server_whatever_it_does(deeds: Any, tmp_path: Path) -> None:
    script, started = tmp_path / "owner.py", tmp_path / "started"
    script.write_text(OWNER)
    folder = str(Path(deeds.__file__).parent)
    owner = await asyncio.create_subprocess_exec(sys.executable, str(script), folder, str(started))
    for _ in range(600):
        if started.exists() and started.read_text():
            break
        assert owner.returncode is None
        await asyncio.sleep(0.1)
    owner.kill()
    await owner.wait()
    worker = Path("/proc", started.read_text(), "stat")
    for _ in range(600):
        # One that nobody waits for stays in the list, as `Z`.
        if not worker.exists() or worker.read_text().rpartition(") ")[2][0] in "ZX":
            break
        await asyncio.sleep(0.1)
    else:
        os.kill(int(started.read_text()), 9)
        pytest.fail("the process goes on")
