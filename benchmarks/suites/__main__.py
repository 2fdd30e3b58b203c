"""The command line of the benchmark; see the package's docstring."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import platformdirs

import torchlint
from benchmarks.corpus import versions
from benchmarks.suites import packages
from benchmarks.suites.judging import Judge
from torchlint.target import Target


def _report(text: str) -> None:
    click.echo(text, err=True)


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("torchlint")) / "suites",
    show_default="the user's cache folder",
    help="Where sources, environment and copies lie.",
)
@click.option("--package", "only", multiple=True, metavar="NAME", help="Only this package; may be repeated.")
@click.option(
    "--json",
    "results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results to this file; those of other packages in it stay.",
)
@click.option("--safe-only", is_flag=True, help="Make the safe fixes only.")
@click.option("--python", type=click.Path(path_type=Path), help="An interpreter that has all requirements.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=2, show_default=True, help="Test processes.")
@click.option(
    "--timeout",
    type=int,
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="For one test; compiling one takes longer where much else runs.",
)
@click.option(
    "--limit", type=float, default=1800, show_default=True, metavar="SECONDS", help="For one run of a suite."
)
def main(
    folder: Path,
    only: Sequence[str],
    results: Path | None,
    safe_only: bool,
    python: Path | None,
    jobs: int,
    timeout: int,
    limit: float,
) -> None:
    """Run packages' own tests before and after the fixes; status 1 if one is lost without a reason."""
    suites = {suite.name: suite for suite in packages.pinned()}
    if unknown := sorted(set(only) - set(suites)):
        raise click.BadParameter(f"not in suites.toml: {', '.join(unknown)}", param_hint="--package")
    folder.mkdir(parents=True, exist_ok=True)
    python = python or packages.interpreter(folder)
    release = _release(python)
    judge = Judge(python, Target.parse(release), folder / "copies", jobs, limit, _report, timeout)
    judge.folder.mkdir(exist_ok=True)
    problems: list[str] = []
    for name in only or suites:
        verdict = judge.judge(suites[name], packages.sources(suites[name], folder), unsafe_too=not safe_only)
        problems += verdict.problems
        if results is not None:
            about = {"torchlint": torchlint.__version__, "commit": versions.described(versions.ROOT)}
            _write(results, {**about, "torch": release, **verdict.as_json()})
    for problem in problems:
        click.echo(problem)
    sys.exit(1 if problems else 0)


def _release(python: Path) -> str:
    """Return the release of torch that an interpreter has, without a local version."""
    told = subprocess.run(
        [python, "-c", "from importlib.metadata import version; print(version('torch'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip().partition("+")[0]


def _write(path: Path, verdict: dict[str, Any]) -> None:
    """Put the result of one package into a results file, in which they are sorted by name."""
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    kept = [entry for entry in known if entry["package"] != verdict["package"]]
    everything = sorted([*kept, verdict], key=lambda entry: str(entry["package"]))
    path.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
