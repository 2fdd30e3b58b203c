"""The command line; see the package's docstring."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import click

from benchmarks.growth import measuring, megabyte
from benchmarks.growth.measuring import Sample
from benchmarks.growth.shapes import SHAPES

RESULTS = Path(__file__).resolve().parents[1] / "results" / "growth.json"
MEGABYTE_RESULTS = RESULTS.with_name("growth-megabyte.json")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(SHAPES)), metavar="[SHAPE]...")
@click.option("--scale", default=1.0, show_default=True, help="How many times as large as usual.")
@click.option("--limit", default=60.0, show_default=True, help="Seconds that a check may take.")
@click.option(
    "--json",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the results; without it, those of all shapes replace the ones that are kept.",
)
@click.option("--megabyte", "large", is_flag=True, help="Check one megabyte of each shape, once.")
def main(names: tuple[str, ...], scale: float, limit: float, path: Path | None, large: bool) -> None:
    """Measure how the time of a check grows with the size of the file."""
    about = {"machine": f"{platform.machine()}, Python {platform.python_version()}"}
    if large:
        shapes = _megabytes(names or tuple(SHAPES), limit)
        path = path or (None if names else MEGABYTE_RESULTS)
        _write(path, {**about, "shapes": shapes})
        return
    measuring.sample(SHAPES["blocks"], 1)  # what is imported first is no time of any shape
    told: dict[str, Any] = {}
    for name in names or SHAPES:
        taken = measuring.samples(SHAPES[name], scale, limit)
        told[name] = _told(taken)
        click.echo(_line(name, taken))
    if path is None and not names:
        path = RESULTS
    _write(path, {**about, "scale": scale, "shapes": told})


def _megabytes(names: tuple[str, ...], limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        taken = megabyte.measure(SHAPES[name], limit=limit)
        found[name] = {
            "characters": taken.characters,
            "seconds": round(taken.seconds, 2),
            "mib": round(taken.memory),
            "rules_given_up": taken.given_up,
            "finished": taken.finished,
        }
        ended = "" if taken.finished else "  not finished"
        click.echo(
            f"{name:26} {taken.seconds:7.2f} s {taken.memory:5.0f} MiB {taken.given_up:3} TL004{ended}"
        )
    return found


def _write(path: Path | None, told: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _told(taken: list[Sample]) -> dict[str, Any]:
    return {
        "exponent": _rounded(measuring.exponent(taken)),
        "sizes": [
            {
                "n": item.n,
                "characters": item.characters,
                "seconds": round(item.seconds, 3),
                "findings": item.findings,
            }
            for item in taken
        ],
        "dominating": [
            {"part": part, "seconds": round(seconds, 3), "exponent": _rounded(growth)}
            for part, seconds, growth in measuring.dominating(taken)
        ],
    }


def _line(name: str, taken: list[Sample]) -> str:
    seconds = " ".join(f"{item.seconds:7.2f}" for item in taken)
    parts = ", ".join(
        f"{part} {taken:.2f} s" + ("" if growth is None else f" ^{growth:.1f}")
        for part, taken, growth in measuring.dominating(taken)
    )
    growth = measuring.exponent(taken)
    return f"{name:26} {seconds:23} ^{growth or 0:.2f}  {parts}"


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


if __name__ == "__main__":
    main()
