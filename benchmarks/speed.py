"""How fast torchlint is and how much memory it takes, against the least that any LibCST linter must do.

    python -m benchmarks.speed [--folder FOLDER] [--repetitions 7]

On the timm wheel of the corpus (fetched if need be) it measures, each in a fresh process and interleaved:

* ``torchlint``: a cold check of the whole package in one process, with every default rule;
* ``parse``: reading every file and calling ``libcst.parse_module`` once on each that mentions torch;

and, interleaved as well, on a copy of it in which nothing has changed since the last run

* ``warm``: a check, and ``changed``: a check after the largest file was changed, or the median one of those
  that mention torch (``changed_median``);
* ``ruff``: ruff's check, with the rules it has by default, also without printing them (``silent``);

and besides these the start-up of ``torchlint --version`` and ``--help``, a cold check in two processes beside
one, and the peak memory of any one process: of these, of a check of the largest file, and of one of 2 MB that
repeats it. CPU time is user and system time of the process and its children; results are medians, written
as JSON. Wall times are worth something on a quiet machine only: the report has the load.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import platformdirs

from benchmarks import processes
from benchmarks.corpus.packages import fetch, pinned
from benchmarks.processes import Usage

RESULTS = Path(__file__).parent / "results" / "speed.json"
PACKAGE = "timm"
CHECK = ["-m", "torchlint", "check", "--isolated", "--no-respect-gitignore", "--no-cache", "--jobs", "1"]
RUFF = ["-m", "ruff", "check", "--isolated", "--no-respect-gitignore"]

PARSE = """
import sys
from pathlib import Path
import libcst
for path in Path(sys.argv[1]).rglob("*.py"):
    data = path.read_bytes()
    if b"torch" in data:
        libcst.parse_module(data)
"""


def run(arguments: Sequence[str]) -> Usage:
    """Run this interpreter with arguments in a fresh process.

    Raises:
        RuntimeError: it did not end with 0 or 1, the exit codes of a finished check.
    """
    # An installed package has its byte code beside it, whatever this shell is told about writing any.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    usage = processes.run([sys.executable, *arguments], environment=environment)
    if usage.status not in (0, 1):
        raise RuntimeError(f"{arguments} exited with {usage.status}: {usage.told}")
    return usage


def imported(arguments: Sequence[str]) -> set[str]:
    """Return the top-level modules that a run of this interpreter imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def measure_warm(tree: Path, largest: Path, median: Path, repetitions: int) -> dict[str, Any]:
    """Return what it takes to check a folder again, beside what ruff takes."""
    with tempfile.TemporaryDirectory(prefix="torchlint-speed-") as folder:
        copy, stores = Path(folder, "tree"), Path(folder, "stores")
        shutil.copytree(tree, copy)
        changing = {
            "changed": copy / largest.relative_to(tree),
            "changed_median": copy / median.relative_to(tree),
        }
        check = [argument for argument in CHECK if argument != "--no-cache"]
        ours = [*check, "--cache-dir", str(stores / "torchlint"), str(copy)]
        theirs = [*RUFF, "--cache-dir", str(stores / "ruff"), str(copy)]
        kinds = {"warm": ours, **dict.fromkeys(changing, ours)}
        kinds |= {"ruff": theirs, "ruff_silent": [*theirs, "--silent"]}
        usages: dict[str, list[Usage]] = {kind: [] for kind in kinds}
        for arguments in kinds.values():
            run(arguments)
        for repetition in range(repetitions):
            for kind, arguments in kinds.items():
                if kind in changing:
                    with changing[kind].open("a", encoding="utf-8") as file:
                        file.write(f"# {repetition}\n")
                usages[kind].append(run(arguments))
        result: dict[str, Any] = {
            f"{kind}_file": {"path": path.relative_to(copy).as_posix(), "bytes": path.stat().st_size}
            for kind, path in changing.items()
        }
        for kind, found in usages.items():
            result[f"{kind}_cpu_seconds"] = statistics.median(usage.cpu for usage in found)
            result[f"{kind}_wall_seconds"] = statistics.median(usage.wall for usage in found)
        for kind in ("ruff", "ruff_silent"):
            ratios = [
                ours.cpu / theirs.cpu for ours, theirs in zip(usages["warm"], usages[kind], strict=True)
            ]
            result[f"warm_over_{kind}"] = statistics.median(ratios)
        result["warm_imports_libcst"] = "libcst" in imported(ours)
        return result


def measure_processes(tree: Path, repetitions: int) -> dict[str, Any]:
    """Return what a cold check of a folder takes in one process and in two: time,
    and the memory of any of them.
    """
    found: dict[int, list[Usage]] = {1: [], 2: []}
    for _ in range(repetitions):
        for jobs, usages in found.items():
            usages.append(run([*CHECK, "--jobs", str(jobs), str(tree)]))
    result: dict[str, Any] = {"tree": tree.name}
    for jobs, usages in found.items():
        result[f"jobs_{jobs}"] = {
            "cpu_seconds": statistics.median(usage.cpu for usage in usages),
            "wall_seconds": statistics.median(usage.wall for usage in usages),
            "peak_mib": max(usage.memory for usage in usages),
        }
    one, two = found[1], found[2]
    result["speedup"] = statistics.median(a.wall / b.wall for a, b in zip(one, two, strict=True))
    return result


def measure_large_file(largest: Path) -> dict[str, Any]:
    """Return the memory that a file of 2 MB takes: five times the largest program of the corpus."""
    text = largest.read_text(encoding="utf-8").replace("from __future__ import annotations\n", "")
    with tempfile.TemporaryDirectory(prefix="torchlint-speed-") as folder:
        path = Path(folder, "large.py")
        path.write_text(f"{text}\n" * round(2_000_000 / len(text)), encoding="utf-8")
        return {"bytes": path.stat().st_size, "peak_mib": run([*CHECK, str(path)]).memory}


def measure(tree: Path, large: Sequence[Path], repetitions: int) -> dict[str, Any]:
    """Return everything that the report says about a folder of Python files."""
    files = sorted(tree.rglob("*.py"))
    mentioning = [path for path in files if b"torch" in path.read_bytes()]
    *_, largest = by_size = sorted(mentioning, key=lambda path: path.stat().st_size)
    check, parse = [*CHECK, str(tree)], ["-c", PARSE, str(tree)]
    version, helped = ["-m", "torchlint", "--version"], ["-m", "torchlint", "--help"]
    for arguments in (check, parse, version, helped):  # byte code and page cache are warm for every kind
        run(arguments)
    checks, parses, versions, helps = [], [], [], []
    for _ in range(repetitions):
        checks.append(run(check))
        parses.append(run(parse))
        versions.append(run(version))
        helps.append(run(helped))
    ratios = [ours.cpu / theirs.cpu for ours, theirs in zip(checks, parses, strict=True)]
    single = run([*CHECK, str(largest)])
    return {
        "tree": {
            "name": tree.name,
            "files": len(files),
            "files_mentioning_torch": len(mentioning),
            "bytes_mentioning_torch": sum(path.stat().st_size for path in mentioning),
        },
        "check_cpu_seconds": statistics.median(usage.cpu for usage in checks),
        "parse_cpu_seconds": statistics.median(usage.cpu for usage in parses),
        "check_over_parse": statistics.median(ratios),
        "check_over_parse_range": [min(ratios), max(ratios)],
        "check_peak_mib": max(usage.memory for usage in checks),
        "largest_file": {
            "path": largest.relative_to(tree).as_posix(),
            "bytes": largest.stat().st_size,
            "peak_mib": single.memory,
        },
        "version_wall_seconds": statistics.median(usage.wall for usage in versions),
        "version_imports_libcst": "libcst" in imported(version),
        "help_wall_seconds": statistics.median(usage.wall for usage in helps),
        "again": measure_warm(tree, largest, by_size[len(by_size) // 2], repetitions),
        "processes": [
            measure_processes(tree, repetitions),
            *(measure_processes(other, 1) for other in large),
        ],
        "large_file": measure_large_file(largest),
        "repetitions": repetitions,
        "raw": {
            "check_cpu_seconds": [usage.cpu for usage in checks],
            "parse_cpu_seconds": [usage.cpu for usage in parses],
            "version_wall_seconds": [usage.wall for usage in versions],
            "help_wall_seconds": [usage.wall for usage in helps],
        },
    }


def machine() -> dict[str, Any]:
    """Return where the numbers come from."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[1] if hasattr(os, "getloadavg") else None,
        "libcst": metadata.version("libcst"),
        "ruff": metadata.version("ruff"),
        "torchlint": metadata.version("torchlint"),
        "commit": commit.stdout.strip() or None,
    }


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("torchlint")) / "corpus",
    show_default="the user's cache folder",
    help="Where the packages of the corpus lie.",
)
@click.option(
    "--tree",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Another folder than timm's.",
)
@click.option(
    "--large",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    multiple=True,
    help="A large package, to be checked once in one process and once in two.",
)
@click.option("-r", "--repetitions", type=click.IntRange(1), default=7, show_default=True)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=False
)
def main(folder: Path, tree: Path | None, large: tuple[Path, ...], repetitions: int, output: Path) -> None:
    """Measure torchlint's speed and memory and write them as JSON."""
    if tree is None:
        (package,) = (package for package in pinned(folder) if package.name == PACKAGE)
        if not package.folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            fetch(folder, {PACKAGE})
        tree = package.folder
    result = {**measure(tree, large, repetitions), "machine": machine()}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    again = result["again"]
    click.echo(
        f"check {result['check_cpu_seconds']:.2f} s CPU, parse {result['parse_cpu_seconds']:.2f} s: "
        f"{result['check_over_parse']:.2f} times\n"
        f"nothing changed: {again['warm_cpu_seconds']:.2f} s CPU, "
        f"{again['warm_over_ruff']:.2f} times ruff's; "
        f"one file changed: {again['changed_median_wall_seconds']:.2f} s, "
        f"the largest: {again['changed_wall_seconds']:.2f} s\n"
        f"--version {1000 * result['version_wall_seconds']:.0f} ms, "
        f"{'imports' if result['version_imports_libcst'] else 'does not import'} libcst\n"
        f"largest file {result['largest_file']['path']}: {result['largest_file']['peak_mib']:.0f} MiB"
    )


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.speed")
