"""Where the threads of a program run while it is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from torchlint.verify import measure

_PROGRAM = """
import json, os, threading
from torchlint.verify.worker.pinning import pin

usual = sorted(os.sched_getaffinity(0))
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
pin(())
free = sorted(os.sched_getaffinity(0))
pin(usual[:1])
reader, writer = os.pipe()
if not os.fork():
    os.write(writer, json.dumps(sorted(os.sched_getaffinity(0))).encode())
    os._exit(0)
os.wait()
found = {
    "usual": usual,
    "free": free,
    "main": sorted(os.sched_getaffinity(0)),
    "thread": sorted(os.sched_getaffinity(thread.native_id)),
    "child": json.loads(os.read(reader, 1000)),
}
stop.set()
print(json.dumps(found))
"""


def test_the_threads_of_a_program_stay_where_they_are_put_and_its_processes_do_not() -> None:
    ended = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    found = json.loads(ended.stdout)
    assert found["free"] == found["usual"]
    assert found["main"] == found["thread"] == found["usual"][:1]
    assert found["child"] == found["usual"]


def test_all_variants_of_a_replicate_get_the_same_two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    assert [measure._pair(number) for number in range(3)] == [(4, 5), (2, 3), (4, 5)]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert measure._pair(0) == ()
