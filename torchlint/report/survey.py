"""Checks repositories: each in a process of its own, several at a time, here or on a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import torchlint
from torchlint import reading
from torchlint.render.snippet import expand, split_lines
from torchlint.report.records import Finding, Record
from torchlint.source import SourceError

_ERROR = "error: "
_CONTEXT = 2
_LONGEST = 12
"""Lines of a finding that are kept; what spans more is cut off."""


@dataclass(frozen=True)
class Wish:
    """How to check a repository: further arguments of ``check``, and how long it may take in seconds."""

    arguments: tuple[str, ...] = ()
    limit: float = 600


def survey(name: str, folder: str, wish: Wish) -> Record:
    """Check the repository in a folder; whatever goes wrong is told in the record."""
    now = datetime.now(timezone.utc).isoformat()
    started = time.perf_counter()
    findings: tuple[Finding, ...] = ()
    error = ""
    try:
        findings = tuple(_findings(_checked(folder, wish), Path(folder)))
    except subprocess.TimeoutExpired:
        error = f"the check took longer than {wish.limit:g} s"
    except (OSError, ValueError) as failure:
        error = str(failure)
    return Record(name, folder, now, round(time.perf_counter() - started, 3), findings, error)


def _checked(folder: str, wish: Wish) -> list[dict[str, Any]]:
    """Return the findings in a folder, as ``check`` writes them.

    Raises:
        ValueError: it writes none; the message is its own.
        OSError, subprocess.TimeoutExpired: it cannot be run to its end.
    """
    if not Path(folder).is_dir():
        raise ValueError("there is no such folder")
    everything = ("--output-format", "json", "--impact", "low", "--advice", "on", "--no-fix", "--exit-zero")
    run = subprocess.run(
        [sys.executable, "-m", "torchlint", "check", *everything, "--jobs", "1", *wish.arguments, folder],
        # Not in the repository, whose modules Python would take for its own.
        cwd=Path(torchlint.__file__).parents[1],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=wish.limit,
        check=False,
    )
    try:
        found = json.loads(run.stdout)
    except ValueError:
        told = run.stderr.strip().splitlines()
        # What follows an error shows its place.
        errors = [line for line in told if line.startswith(_ERROR)] or told[-1:]
        ended = f"the check ended with status {run.returncode}"
        raise ValueError(errors[0].removeprefix(_ERROR) if errors else ended) from None
    return list(found)


def _findings(found: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[Finding]:
    @cache
    def lines(path: str, cell: int | None) -> list[str]:
        try:
            part = reading.read(Path(path), notebook=cell is not None).part(cell)
        except SourceError:
            return []
        return [] if part is None else split_lines(part.text)

    for item in found:
        path, fix = Path(item["filename"]), item["fix"]
        row, last = item["location"]["row"], item["end_location"]["row"]
        text = lines(item["filename"], item["cell"])
        first = max(row - _CONTEXT, 1)
        shown = text[first - 1 : min(last, row + _LONGEST) + _CONTEXT]
        yield Finding(
            code=item["code"],
            name=item["name"],
            message=item["message"],
            help=item["help"] or "",
            severity=item["severity"],
            impact=item["impact"],
            advice=item["advice"],
            fix=fix["applicability"] if fix and fix["applicability"] != "display" else "",
            file=(path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix(),
            cell=item["cell"],
            row=row,
            column=item["location"]["column"],
            last=last,
            first=first,
            lines=tuple(map(expand, shown)),
        )


# --- many repositories ------------------------------------------------------------------------------------


def surveyed(
    folders: Mapping[Path, str], wish: Wish, jobs: int, engine: str, start: Callable[..., Record] = survey
) -> Iterator[Record]:
    """Yield the records of repositories, given by folder with their names, as they get ready.

    Raises:
        ImportError: the engine is not installed.
    """
    with _executor(engine, jobs) as executor:
        futures = {
            executor.submit(start, name, str(folder), wish): (folder, name)
            for folder, name in folders.items()
        }
        try:
            for future in as_completed(futures):
                folder, name = futures[future]
                try:
                    yield future.result()
                except Exception as error:  # of the engine: a machine that is gone, for example
                    now = datetime.now(timezone.utc).isoformat()
                    yield Record(name, str(folder), now, 0.0, error=f"{type(error).__name__}: {error}")
        finally:
            for future in futures:
                future.cancel()


@contextmanager
def _executor(engine: str, jobs: int) -> Iterator[Executor]:
    if engine == "local":
        # A thread only waits for the process that checks.
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as threads:
            yield threads
        return
    from distributed import Client

    # The scheduler is the one that Dask is configured for, or else one on this machine.
    here = {} if _scheduler() else {"n_workers": jobs or os.cpu_count() or 1, "threads_per_worker": 1}
    with Client(**here) as client:  # type: ignore[no-untyped-call]
        yield client.get_executor()


def _scheduler() -> Any:
    import dask.config

    return dask.config.get("scheduler-address", None)
