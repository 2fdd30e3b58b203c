"""Which torch calls make the host wait for the GPU: the facts of the semantic model, measured.

    python -m benchmarks.syncs --json benchmarks/results/syncs.json [--only TEXT] [--missing]

Each row of ``benchmarks/waits.py`` is run in a process of its own kind, with operands made anew each time and
twice beforehand, as first calls initialise libraries. It is looked at in three ways:

* ``reports``: how often ``torch.cuda.set_sync_debug_mode("warn")`` reports it. Not every wait is reported: an
  explicit ``synchronize`` is not, nor is a copy for which the driver itself waits.
* ``waited``: a kernel that runs for ``SLEEP_MS`` or longer is queued before the call. If it is over when the
  call returns, the host has waited. This is what counts.
* ``runtime``: the waits and copies of the CUDA runtime that the profiler sees within the call.

``raises`` is the error, if the call raises one. What the file already holds of other torch releases and of
rows that are not asked for is kept. Exits with 1 if a row behaves otherwise than its table says.
``--rehearse`` runs the rows on the CPU, where nothing can be seen but that they run.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType
from typing import Any

import click
import torch

from benchmarks.waits import IMPORTS, RAISES, Row, behaviour, rows

RESULTS = Path(__file__).parent / "results" / "syncs.json"
SLEEP_MS = 40.0
TIMEOUT = 120.0
"""Seconds after which a row is given up, with the process that it hangs in."""

_REPORT = "called a synchronizing CUDA operation"
_RUNTIME = re.compile(r"^(cuda|cu|hip)\w*(Synchronize|Memcpy)\w*$")
_CHUNK = 40
"""Rows that one profile covers."""

Seen = dict[str, Any]
_LOOKS = ("reports", "waited", "host_ms", "raises", "runtime")


# --- in the measuring process -----------------------------------------------------------------------


def look_at(chunk: Sequence[Row], device: str) -> list[Seen]:
    """Return what each row of a chunk does on a device, in the order of the chunk."""
    seen = [_examine(row, device) for row in chunk]
    if device == "cuda":
        for entry, runtime in zip(seen, _profile(chunk), strict=True):
            entry["runtime"] = runtime
    return seen


def _examine(row: Row, device: str) -> Seen:
    code = compile(row.code, row.name, "exec")
    error: Exception | None = None
    for _ in range(2):
        names = _prepared(row, device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            error = _run(code, names)
    seen: Seen = {**dict.fromkeys(_LOOKS), "raises": _spelt(error)}
    if device == "cuda":
        names = _prepared(row, device)
        with _reports() as reports:
            started = time.perf_counter()
            _run(code, names)
            alone = (time.perf_counter() - started) * 1e3
        seen["reports"] = reports["count"]
        seen["waited"], seen["host_ms"] = _timed(row, code, alone)
    return seen


def _prepared(row: Row, device: str) -> dict[str, Any]:
    """Return the names that a row uses, freshly made, with nothing left to do for the device."""
    names: dict[str, Any] = {"device": torch.device(device)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(IMPORTS + row.preparation(), f"preparation of {row.name}", "exec"), names)
    if device == "cuda":
        torch.cuda.synchronize()
    return names


def _run(code: CodeType, names: dict[str, Any]) -> Exception | None:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
    except Exception as error:
        return error
    return None


def _spelt(error: Exception | None) -> str | None:
    if error is None:
        return None
    return f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"


@contextlib.contextmanager
def _reports() -> Iterator[dict[str, int]]:
    """Count the synchronising operations that torch reports in the block, under ``count``."""
    found = {"count": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
    found["count"] = sum(_REPORT in str(warning.message) for warning in caught)


def _timed(row: Row, code: CodeType, alone: float) -> tuple[bool, float]:
    """Return whether a kernel queued before the call is over when it returns,
    and how long the call took in ms.

    ``alone`` is how long the call takes with nothing queued.
    """
    names = _prepared(row, "cuda")
    over = torch.cuda.Event()
    torch.cuda._sleep(int(max(SLEEP_MS, 5 * alone) * _cycles_a_ms()))
    over.record()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        _run(code, names)
        waited = over.query()
        taken = (time.perf_counter() - started) * 1e3
    torch.cuda.synchronize()
    return waited, round(taken, 2)


_clock: list[float] = []


def _cycles_a_ms() -> float:
    """Return cycles of the sleeping kernel in one millisecond."""
    if not _clock:
        for _ in range(2):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            torch.cuda._sleep(20_000_000)
            end.record()
            end.synchronize()
            _clock[:] = [20_000_000 / start.elapsed_time(end)]
    return _clock[0]


def _profile(chunk: Sequence[Row]) -> list[dict[str, int] | None]:
    """Return how often each row calls what waits or copies in the CUDA runtime;
    None where nothing was seen.
    """
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    try:
        with torch.profiler.profile(activities=activities) as profile:
            for number, row in enumerate(chunk):
                names = _prepared(row, "cuda")
                code = compile(row.code, row.name, "exec")
                with torch.profiler.record_function(f"row {number}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _run(code, names)
                torch.cuda.synchronize()
    except Exception as error:
        click.echo(f"no profile: {error}", err=True)
        return [None] * len(chunk)
    events = list(profile.events() or ())
    calls = [event for event in events if _RUNTIME.match(event.name)]
    found: list[dict[str, int] | None] = [None] * len(chunk)
    for event in events:
        match = re.fullmatch(r"row (\d+)", event.name)
        if match is not None and calls and event.device_type == torch.autograd.DeviceType.CPU:
            within = event.time_range
            found[int(match[1])] = dict(
                Counter(c.name for c in calls if within.start <= c.time_range.start <= within.end)
            )
    return found


# --- in the process that asks -----------------------------------------------------------------------


class _Process:
    """A process that looks at rows, one chunk after another."""

    def __init__(self, device: str) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, device), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, chunk: list[Row]) -> list[Seen] | str:
        """Return what the rows do, or why there is no answer; after that the process is gone."""
        self._connection.send(chunk)
        answered = self._connection.poll(TIMEOUT)
        with contextlib.suppress(EOFError):
            if answered:
                answer: list[Seen] | str = self._connection.recv()
                if not isinstance(answer, str):
                    return answer
                self.end()
                return answer
        self.end()
        return "the process died" if answered else f"no end after {TIMEOUT:.0f} s"

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(connection: Connection, device: str) -> None:
    while True:
        chunk = connection.recv()
        try:
            connection.send(look_at(chunk, device))
        except Exception as error:
            connection.send(_spelt(error) or "")


def measure(asked: list[Row], device: str) -> Iterator[tuple[Row, Seen]]:
    """Look at each row, in processes that are replaced when one of their rows breaks them."""
    waiting = [asked[start : start + _CHUNK] for start in range(0, len(asked), _CHUNK)]
    process = _Process(device)
    while waiting:
        chunk = waiting.pop(0)
        answer = process.ask(chunk)
        if not isinstance(answer, str):
            yield from zip(chunk, answer, strict=True)
            continue
        process = _Process(device)
        if len(chunk) > 1:
            # The half that is not to blame goes through; the other is halved again.
            waiting[:0] = [chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]]
        else:
            yield chunk[0], {**dict.fromkeys(_LOOKS), "raises": answer}
    process.end()


Key = tuple[str, str]


def _held(path: Path) -> tuple[dict[str, Any], dict[Key, Seen]]:
    """Return the machines of a result file by torch release, and its rows by release and name.

    Rows that the tables no longer have, or have with other code, are left out.
    """
    if not path.exists():
        return {}, {}
    held = json.loads(path.read_text(encoding="utf-8"))
    known = {row.name: row for row in rows()}
    kept: dict[Key, Seen] = {}
    for entry in held.get("rows", []):
        row = known.get(entry["name"])
        if row is not None and row.code == entry["code"]:
            kept[entry["torch"], row.name] = {**entry, **_about(row)}
    return held.get("machines", {}), kept


def _about(row: Row) -> Seen:
    return {"kind": row.kind, "name": row.name, "code": row.code, "expected": row.expected}


def _write(path: Path, machines: dict[str, Any], entries: Iterable[Seen]) -> None:
    """Write a result file with one line a row."""
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"machines": {json.dumps(machines)},\n "rows": [\n{lines}\n]}}\n', encoding="utf-8")


@click.command()
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS)
@click.option("--only", default="", help="Rows whose kind or name holds this text.")
@click.option("--missing", is_flag=True, help="Rows that the file does not hold for this torch release.")
@click.option("--rehearse", is_flag=True, help="Run the rows on the CPU, and write nothing.")
@click.option("--update", is_flag=True, help="Run nothing: bring the file up to date with the tables.")
def main(output: Path, only: str, missing: bool, rehearse: bool, update: bool) -> None:
    """Measure which calls wait for the GPU."""
    machines, held = _held(output)
    if update:
        _write(output, machines, held.values())
        return
    asked = [row for row in rows() if only in row.kind or only in row.name]
    if rehearse:
        _rehearse([row for row in asked if not row.needs_cuda])
        return
    if missing:
        asked = [row for row in asked if (torch.__version__, row.name) not in held]
    measured: list[Seen] = []
    for row, seen in measure(asked, "cuda"):
        measured.append({**_about(row), **seen, "torch": torch.__version__})
        held[torch.__version__, row.name] = measured[-1]
    machines[torch.__version__] = {"cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}
    _write(output, machines, held.values())
    wrong = [entry for entry in measured if behaviour(entry) != entry["expected"]]
    for entry in wrong:
        found = behaviour(entry) or "was not seen"
        more = f" ({entry['raises']})" if entry["raises"] else ""
        click.echo(f"{entry['kind']}: {entry['name']}: expected {entry['expected']!r}, {found!r}{more}")
    unseen = [entry["name"] for entry in measured if entry["waited"] and not entry["reports"]]
    click.echo(f"waits that the debug mode does not report: {'; '.join(unseen) or 'none'}")
    click.echo(f"{len(measured) - len(wrong)} of {len(measured)} calls behave as their tables say")
    sys.exit(1 if wrong else 0)


def _rehearse(asked: list[Row]) -> None:
    """Run rows on the CPU and tell which of them raise against expectation."""
    count = 0
    for row, seen in measure(asked, "cpu"):
        count += 1
        if seen["raises"] and row.expected != RAISES:
            click.echo(f"{row.kind}: {row.name}: {seen['raises']}")
    click.echo(f"{count} rows")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.syncs")
