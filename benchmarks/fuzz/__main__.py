"""The command line of the fuzzer; see the package's docstring."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from benchmarks.fuzz import campaign
from benchmarks.fuzz.campaign import Tally
from torchlint import registry

ROOT = Path(__file__).resolve().parents[2]


@click.command()
@click.option("--minutes", type=float, default=60, show_default=True, help="How long to go on.")
@click.option("--seed", type=int, default=0, show_default=True, help="Which programs are made.")
@click.option("--first", type=int, default=0, show_default=True, help="The number of the first program.")
@click.option(
    "--show", type=int, metavar="NUMBER", help="Write the program of this number, and do nothing else."
)
@click.option(
    "--json",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what was found to this file, behind the runs it has.",
)
def main(minutes: float, seed: int, first: int, show: int | None, path: Path | None) -> None:
    """Try programs that nobody wrote; exits with 1 if a property did not hold of one."""
    if show is not None:
        click.echo(campaign.text(seed, show), nl=False)
        return
    tally = Tally()
    started = datetime.now(timezone.utc)
    about = {"seed": seed, "first": first, "commit": _commit(), "date": started.date().isoformat()}
    earlier = json.loads(path.read_text(encoding="utf-8"))["runs"] if path and path.exists() else []
    for tried in campaign.run(seed, minutes * 60, first):
        tally.add(tried)
        for problem in tried.problems:
            click.echo(f"--- {problem.kind} {problem.number}: {problem.property}: {problem.message}")
            click.echo(problem.text)
        if path and (tried.problems or sum(tally.programs.values()) % 20 == 0):
            elapsed = (datetime.now(timezone.utc) - started).total_seconds()
            _write(path, [*earlier, {**about, **_told(tally, elapsed)}])
    elapsed = (datetime.now(timezone.utc) - started).total_seconds()
    told = _told(tally, elapsed)
    if path:
        _write(path, [*earlier, {**about, **told}])
    click.echo(f"{sum(tally.programs.values())} programs, {len(tally.problems)} problems")
    sys.exit(1 if tally.problems else 0)


def _told(tally: Tally, elapsed: float) -> dict[str, Any]:
    kinds = {
        name: {
            "programs": number,
            "bytes": tally.size[name],
            "seconds": round(tally.seconds[name], 1),
        }
        for name, number in sorted(tally.programs.items())
    }
    return {
        "minutes": round(elapsed / 60, 1),
        "python": platform.python_version(),
        "kinds": kinds,
        "rules": dict(sorted(tally.codes.items())),
        "rules never met": sorted(registry.rules().keys() - tally.codes.keys()),
        "slowest": [
            {"seconds": seconds, "kind": kind, "number": number, "characters": size}
            for seconds, kind, number, size in tally.slowest
        ],
        "problems": [asdict(problem) for problem in tally.problems],
    }


def _write(path: Path, runs: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"runs": runs}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _commit() -> str:
    run = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return run.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
