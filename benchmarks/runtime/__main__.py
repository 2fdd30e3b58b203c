"""The command line of the run-time benchmark; see the package's docstring."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

RESULTS = Path(__file__).parents[1] / "results"


@click.group()
def main() -> None:
    """Hold torchlint's predictions of waits against libraries that run on a GPU."""


@main.command()
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--library", "names", multiple=True, help="Only this library; may be repeated.")
@click.option(
    "-j", "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="all processors"
)
@click.option(
    "--rehearse", is_flag=True, help="Run everything on the CPU, where nothing can be seen to wait."
)
@click.option(
    "--seconds", type=click.FloatRange(0), help="Look at no more of a library than fits into this time."
)
def observe(output: Path, names: Sequence[str], jobs: int, rehearse: bool, seconds: float | None) -> None:
    """Run the subjects, and write which lines ran and which made the host wait."""
    import torch

    from benchmarks.runtime import observe as observing

    device = "cpu" if rehearse else "cuda"
    observed: dict[str, Any] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": "cpu" if rehearse else observing.device_name(),
        "libraries": {},
    }
    for library in observing.libraries(names):
        # In a process of its own: some libraries use the device as soon as they are imported.
        with ProcessPoolExecutor(1, get_context("spawn")) as executor:
            seen = executor.submit(observing.observe, library, device, jobs, seconds).result()
        observed["libraries"][library] = seen
        waited = sum(map(len, seen["waited"].values()))
        click.echo(f"{library}: {len(seen['subjects'])} subjects, {waited} lines waited")
        output.write_text(json.dumps(observed) + "\n", encoding="utf-8")


@main.command()
@click.argument("observed", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--packages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The folder with the packages of the same releases.",
)
@click.option("--alone", is_flag=True, help="Judge each file by itself, without the package around it.")
@click.option("--details", is_flag=True, help="Print every line on which the two sides differ.")
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path))
def compare(observed: Path, packages: Path, alone: bool, details: bool, output: Path | None) -> None:
    """Lint the same releases, and count the lines that both sides have, or one."""
    from benchmarks.runtime.compare import compare as joined

    seen = json.loads(observed.read_text(encoding="utf-8"))
    lines = list(joined(seen, packages, alone=alone))
    click.echo(f"{'':30}{'subjects':>9}{'waited':>8}{'predicted':>11}{'said only':>11}")
    rows: dict[str, Any] = {}
    for library, found in seen["libraries"].items():
        counts = Counter(line.status for line in lines if line.library == library)
        rows[library] = {
            "version": found["version"],
            "subjects": len({name.split()[0] for name in found["subjects"]}),
            "waited": counts["both"] + counts["seen"],
            "predicted": counts["both"],
            "said_only": counts["said"],
        }
    rows["all"] = {
        key: sum(row[key] for row in rows.values())
        for key in ("subjects", "waited", "predicted", "said_only")
    }
    for name, row in rows.items():
        click.echo(
            f"{name:30}{row['subjects']:9d}{row['waited']:8d}{row['predicted']:11d}{row['said_only']:11d}"
        )
    if details:
        for line in lines:
            if line.status != "both":
                codes = ",".join(line.codes) or "-"
                click.echo(f"{line.status:5} {codes:6} {line.library}/{line.file}:{line.row}: {line.text}")
    if output is not None:
        about = {key: seen[key] for key in ("torch", "python", "device")}
        keys = ("library", "file", "row", "status", "codes")
        places = [{key: getattr(line, key) for key in keys} for line in lines]
        told = json.dumps({**about, "alone": alone, "table": rows, "lines": places}, indent=1)
        output.write_text(told + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.runtime")
