"""The command line of the comparison with other linters; see the package's docstring."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import platformdirs

from benchmarks import speed
from benchmarks.corpus.packages import fetch, pinned
from benchmarks.peers import environments, rounds, trees
from benchmarks.peers.contenders import Contender, contenders
from benchmarks.peers.environments import Environment
from benchmarks.peers.rounds import Plan, Series

RESULTS = Path(__file__).parents[1] / "results" / "peers.json"
_CACHE = Path(platformdirs.user_cache_dir("torchlint"))
_NAMES = click.Choice([contender.name for contender in contenders()])


@click.command()
@click.option(
    "--tree",
    "names",
    multiple=True,
    default=("timm",),
    show_default=True,
    metavar="NAME",
    help="A package of the corpus; fetched if need be. May be repeated.",
)
@click.option("--rounds", "count", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "--slow-rounds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Rounds of what is slow at its first run.",
)
@click.option(
    "--slow",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    help="Seconds of wall time that make it so.",
)
@click.option(
    "--limit",
    type=click.FloatRange(1),
    default=600,
    show_default=True,
    help="Seconds after which a run is stopped.",
)
@click.option("--only", type=_NAMES, multiple=True, help="Only this tool; may be repeated.")
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    default=_CACHE / "corpus",
    show_default="the user's cache folder",
    help="Where the packages of the corpus lie.",
)
@click.option(
    "--environments",
    "homes",
    type=click.Path(file_okay=False, path_type=Path),
    default=_CACHE / "peers",
    show_default="the user's cache folder",
    help="Where the virtual environments of the peers lie.",
)
@click.option(
    "--json", "output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=False
)
def main(
    names: Sequence[str],
    count: int,
    slow_rounds: int,
    slow: float,
    limit: float,
    only: Sequence[str],
    corpus: Path,
    homes: Path,
    output: Path,
) -> None:
    """Install the peers and measure them and torchlint on the same files; writes JSON."""
    chosen = [contender for contender in contenders() if not only or contender.name in only]
    plan = Plan(rounds=count, slow_rounds=slow_rounds, slow=slow, limit=limit)
    installed = {contender.name: _installed(contender, homes) for contender in chosen}
    started = datetime.now(timezone.utc)
    machine = {**speed.machine(), "load_average_at_start": round(os.getloadavg()[0], 2)}
    with tempfile.TemporaryDirectory() as scratch:
        measured = [_tree(_package(name, corpus), chosen, installed, plan, Path(scratch)) for name in names]
    result = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(timezone.utc) - started).total_seconds()),
        "machine": machine,
        "rounds": {"all": count, "slow": slow_rounds, "slow_beyond_seconds": slow, "limit_seconds": limit},
        "tools": [_tool(contender, installed[contender.name]) for contender in chosen],
        "trees": measured,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _package(name: str, corpus: Path) -> Path:
    found = [package for package in pinned(corpus) if package.name == name]
    if not found:
        raise click.BadParameter(f"no package of the corpus: {name}", param_hint="--tree")
    if not found[0].folder.is_dir():
        corpus.mkdir(parents=True, exist_ok=True)
        fetch(corpus, {name})
    return found[0].folder


def _installed(contender: Contender, homes: Path) -> Environment | str:
    """Return the environment of a tool, or why there is none."""
    if contender.kind != "peer":
        return Environment(Path(sys.executable), {})
    click.echo(f"{contender.name}: installing", err=True)
    try:
        return environments.install(contender.name, environments.pins()[contender.name], homes)
    except (RuntimeError, OSError) as error:
        click.echo(f"{contender.name}: {error}", err=True)
        return f"not installed: {error}"


def _tool(contender: Contender, installed: Environment | str) -> dict[str, Any]:
    version = {
        "peer": environments.pins().get(contender.name),
        "torchlint": metadata.version("torchlint"),
        "reference": metadata.version("libcst") if contender.name.startswith("libcst") else None,
    }[contender.kind]
    return {
        "name": contender.name,
        "kind": contender.kind,
        "version": version,
        "packages": {} if isinstance(installed, str) else installed.packages,
        "error": installed if isinstance(installed, str) else None,
    }


def _tree(
    package: Path,
    chosen: Sequence[Contender],
    installed: dict[str, Environment | str],
    plan: Plan,
    scratch: Path,
) -> dict[str, Any]:
    """Return what was measured on one package."""
    paths = trees.mentioning(package)
    place = scratch / package.name
    copies = {
        every: trees.copied(package, paths, every, place / f"every-{every}" / package.name)
        for every in sorted({1} | {contender.every for contender in chosen})
    }
    all_series: list[Series] = []
    for contender in chosen:
        environment = installed[contender.name]
        if isinstance(environment, Environment):
            all_series += rounds.series_of(contender, copies[contender.every], environment.python)
    started = time.perf_counter()

    def report(series: Series, number: int) -> None:
        told = f"{time.perf_counter() - started:6.0f} s  round {number + 1}  {series.contender.name}"
        told += f", {series.processes}, {series.state}: "
        usage = series.runs[-1] if series.error is None else None
        told += f"{usage.cpu:.2f} s CPU, {usage.wall:.2f} s" if usage else str(series.error)
        click.echo(told, err=True)

    rounds.measure(all_series, plan, place, report)
    whole = copies[1]
    return {
        "name": whole.name,
        "files": whole.files,
        "bytes": whole.bytes,
        "series": [series.as_json() for series in all_series],
    }


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.peers")
