"""What it costs to look at whole projects, against the check of the same files one by one.

    python -m benchmarks.projects [--folder FOLDER] [--only timm] [--repetitions 3] [--jobs 1]

The projects are copies of timm and transformers, and a monorepo of accelerate, peft and trl, which import one
another; each package has a ``pyproject.toml``. Of each project it measures, in fresh processes,

* ``cold`` and ``alone``: the first check, with an empty cache, with the project and with ``--no-project``,
  interleaved, and the peak memory of either;
* ``warm``: a check in which nothing has changed since the last run;
* ``one_file``: a check of one file alone that has changed since the last run, which nothing else has;
* ``changed``: a check of everything after that file has changed.

The changed file is the median one by size of those that mention torch. Results are the least of several runs,
as a busy machine only adds to them, and are written as JSON; CPU time is user and system time of the process
and its children.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import platformdirs

from benchmarks.corpus.packages import fetch, pinned
from benchmarks.processes import Usage
from benchmarks.speed import CHECK, machine, run

RESULTS = Path(__file__).parent / "results" / "projects.json"
PROJECTS: Mapping[str, tuple[str, ...]] = {
    "timm": ("timm",),
    "transformers": ("transformers",),
    "monorepo": ("accelerate", "peft", "trl"),
}
"""The projects by name, with the packages of the corpus that they are made of."""


KINDS = ("cold", "alone", "warm", "one_file", "changed")
"""What is measured of each project, in this order."""


def lay_out(folder: Path, packages: Mapping[str, Path]) -> Path:
    """Copy packages into a folder, each with metadata of its own."""
    for name, tree in packages.items():
        shutil.copytree(tree, folder / name)
        (folder / name / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    return folder


def changing(tree: Path) -> Path:
    """Return the file that is changed: the median one of those that mention torch."""
    files = [path for path in tree.rglob("*.py") if b"torch" in path.read_bytes()]
    files.sort(key=lambda path: (path.stat().st_size, path))
    return files[len(files) // 2]


def _least(usages: Sequence[Usage]) -> dict[str, float]:
    return {
        "cpu_seconds": min(usage.cpu for usage in usages),
        "wall_seconds": min(usage.wall for usage in usages),
        "peak_mib": max(usage.memory for usage in usages),
    }


def measure(tree: Path, repetitions: int, jobs: int) -> dict[str, Any]:
    """Return what the report says of one project, in which a file is changed.

    All files are checked by ``jobs`` processes; of the memory, the largest process counts.
    """
    check = [
        *(argument for argument in CHECK if argument != "--no-cache"),
        "--jobs",
        str(jobs),
        "--cache-dir",
    ]
    file = changing(tree)
    usages: dict[str, list[Usage]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="torchlint-projects-") as stores:
        for repetition in range(repetitions):
            store = str(Path(stores, f"store_{repetition}"))
            usages["cold"].append(run([*check, store, str(tree)]))
            usages["alone"].append(run([*check, f"{store}_alone", "--no-project", str(tree)]))
            usages["warm"].append(run([*check, store, str(tree)]))
            for kind, asked in (("one_file", file), ("changed", tree)):
                with file.open("a", encoding="utf-8") as text:
                    text.write(f"# {kind} {repetition}\n")
                usages[kind].append(run([*check, store, str(asked)]))
    found: dict[str, Any] = {kind: _least(each) for kind, each in usages.items()}
    files = list(tree.rglob("*.py"))
    return {
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "changed_file": file.relative_to(tree).as_posix(),
        **found,
        "cold_over_alone": found["cold"]["cpu_seconds"] / found["alone"]["cpu_seconds"],
        "repetitions": repetitions,
        "jobs": jobs,
    }


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("torchlint")) / "corpus",
    show_default="the user's cache folder",
    help="Where the packages of the corpus lie.",
)
@click.option("--only", type=click.Choice(list(PROJECTS)), multiple=True, help="Only these projects.")
@click.option("-r", "--repetitions", type=click.IntRange(1), default=3, show_default=True)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes a check has."
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=False
)
def main(folder: Path, only: tuple[str, ...], repetitions: int, jobs: int, output: Path) -> None:
    """Measure what whole projects cost and write it as JSON; projects left out keep their results."""
    packages = {package.name: package for package in pinned(folder)}
    chosen = only or tuple(PROJECTS)
    missing = {name for project in chosen for name in PROJECTS[project] if not packages[name].folder.is_dir()}
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        fetch(folder, missing)
    results = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    for project in chosen:
        with tempfile.TemporaryDirectory(prefix="torchlint-projects-") as temporary:
            trees = {name: packages[name].folder for name in PROJECTS[project]}
            found = measure(lay_out(Path(temporary), trees), repetitions, jobs)
        results[project] = {**found, "machine": machine()}
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        click.echo(
            f"{project}: cold {found['cold']['cpu_seconds']:.2f} s CPU, "
            f"{found['cold_over_alone']:.2f} times the files one by one; "
            f"{found['cold']['peak_mib']:.0f} MiB; one file {found['one_file']['wall_seconds']:.2f} s, "
            f"one changed {found['changed']['wall_seconds']:.2f} s, "
            f"none changed {found['warm']['wall_seconds']:.2f} s"
        )


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.projects")
