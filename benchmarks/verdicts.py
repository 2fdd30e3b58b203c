"""What ``torchlint verify`` says of real programs, and what it spends its time on.

Usage: ``python benchmarks/verdicts.py LABEL [--budget SECONDS] [--programs NAME ...] [--scripts FILE]``

Runs ``verify`` on the programs of ``fixtures/programs`` and on the scripts that FILE names, and writes the
verdict of each variant under LABEL into ``benchmarks/results/verdicts.json``, beside what other labels have
there: the half-width of its interval, the share of the budget that was spent in timed steps, and the share of
the variants whose lines ran. ``--folder`` keeps what each run printed, its results and its page.

``--compare ONE OTHER`` measures nothing: of two such folders, of two machines, it says in
``benchmarks/results/machines.json`` how often the intervals of the same fix overlap.

FILE is TOML: a table for each script, with the ``folder`` that it is started in (relative to FILE) and the
``command`` behind ``torchlint verify``; ``python_path``, if any, is a list of folders to import from. What it
names is not part of this repository: unpack a source distribution anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from torchlint.verify import stats
from torchlint.verify.results import ORIGINAL, Interval, Measurement, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "verdicts.json"
MACHINES = ROOT / "benchmarks" / "results" / "machines.json"
PROGRAMS = ROOT / "fixtures" / "programs"
EPOCHS = "100000"
"""For programs that can be told how long to train: by themselves they end before a budget is used up."""
LENGTHS = {
    "actor_critic": ("EPISODES = 30", "EPISODES = 100000"),
    "diffusion": ("epochs=4", "epochs=100000"),
    "gpt": ("samples=320", "samples=10000000"),
    "metric_learning": ("epochs=3", "epochs=100000"),
    "speech_ctc": ("epoch in range(3)", "epoch in range(100000)"),
}
"""What says how long the others train, and what does in the copies that are measured."""
UNDECIDED = frozenset({"UNFIT", "UNCLEAR", "UNMEASURED", "REJECTED"})
"""What is no verdict on the time or on what the device works."""
UNREACHED = "NOT REACHED"
NARROW = 0.05
"""The half-width that an interval should have at most."""
GRACE = 120.0
"""Seconds beyond its budget after which a run is given up."""


@dataclass(frozen=True)
class Program:
    """What is measured: the words behind ``torchlint verify``, and the folder to start in."""

    name: str
    command: tuple[str, ...]
    folder: Path
    python_path: tuple[str, ...] = ()


def own(names: Sequence[str], folder: Path) -> list[Program]:
    """Return programs of this repository, each in a folder of its own:
    a process gets a copy of its project.
    """
    found = []
    for name in names:
        place = folder / name
        place.mkdir()
        text = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8").replace(*LENGTHS.get(name, ("", "")), 1)
        (place / f"{name}.py").write_text(text, encoding="utf-8")
        option = next((word for word in ("--epochs", "--num-train-epochs") if f'"{word}"' in text), None)
        command = (f"{name}.py", *(("--", option, EPOCHS) if option else ()))
        found.append(Program(name, command, place))
    return found


def given(file: Path) -> list[Program]:
    """Return the programs that a file names."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Program(
            name,
            tuple(table["command"]),
            file.parent / table["folder"],
            tuple(str((file.parent / entry).resolve()) for entry in table.get("python_path", ())),
        )
        for name, table in tables.items()
    ]


def measured(program: Program, budget: float, kept: Path, more: Sequence[str]) -> dict[str, Any] | None:
    """Return what one run of ``verify`` wrote as JSON; None if it wrote nothing."""
    out = kept / f"verify-{program.name}.json"
    options = ["--isolated", "--budget", f"{budget:g}", "--json", str(out)]
    options += ["--html", str(kept / f"{program.name}.html"), *more]
    environment = dict(os.environ)
    entries = [*program.python_path, *filter(None, [environment.get("PYTHONPATH")])]
    if entries:
        environment["PYTHONPATH"] = os.pathsep.join(entries)
    began = time.monotonic()
    with (kept / f"{program.name}.txt").open("w", encoding="utf-8") as printed:
        command = [sys.executable, "-m", "torchlint", "verify", *options, *program.command]
        try:
            ended = subprocess.run(
                command,
                cwd=program.folder,
                env=environment,
                check=False,
                stdout=printed,
                stderr=subprocess.STDOUT,
                timeout=budget + GRACE,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = None
    taken = time.monotonic() - began
    if not out.exists():
        return None
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return {**found, "status": ended, "taken": taken}


def half_width(interval: Mapping[str, float] | None) -> float | None:
    """Return half the width of an interval, relative to its ratio."""
    return None if interval is None else (interval["high"] - interval["low"]) / (2 * interval["ratio"])


def summary(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what became of the time, and what was said of each variant."""
    measurement = results["measurements"][0]
    blocks = measurement["blocks"]
    timed = sum(block["wall"] for block in blocks)
    original = measurement["examinations"][0]
    agreements = {item["variant"]: item["sameness"]["agreement"] for item in measurement["examinations"]}
    variants = {}
    for comparison in measurement["comparisons"]:
        name = comparison["variant"]
        measure = "work" if comparison["verdict"].endswith("DEVICE WORK") else "wall"
        shown = comparison[measure]
        own_blocks = [block for block in blocks if block["variant"] == name]
        variants[name] = {
            "verdict": comparison["verdict"],
            "reason": comparison["reason"],
            "results": agreements.get(name, ""),
            "ratio": None if shown is None else round(shown["ratio"], 4),
            "half_width": None if shown is None else round(half_width(shown) or 0.0, 4),
            "processes": len({block["replicate"] for block in own_blocks}),
            "steps": sum(block["steps"] for block in own_blocks),
        }
    noise = measurement["noise"]
    return {
        "status": results["status"],
        "seconds": round(results["taken"], 1),
        "timed_share": round(timed / results["seconds"], 3),
        "startup_seconds": round(original["startup_seconds"] or 0.0, 2),
        "step_milliseconds": round(1e3 * (original["step_seconds"] or 0.0), 2),
        "again": None
        if noise is None
        else [round(noise["wall"][key], 4) for key in ("ratio", "low", "high")],
        "fit": noise and noise["fit"],
        "spent": measurement.get("spent", {}),
        "variants": variants,
    }


def overall(programs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the summary row: how many of the variants that were reached have a verdict,
    and how narrow it is.
    """
    variants = [item for program in programs.values() for item in program.get("variants", {}).values()]
    reached = [item for item in variants if item["verdict"] != UNREACHED]
    decided = [item for item in reached if item["verdict"] not in UNDECIDED]
    widths = sorted(item["half_width"] for item in decided if item["half_width"] is not None)
    shares = [item["timed_share"] for item in programs.values() if "timed_share" in item]
    return {
        "programs": len(programs),
        "failed": sum("variants" not in item for item in programs.values()),
        "variants": len(variants),
        "reached": len(reached),
        "decided": len(decided),
        "decided_share": round(len(decided) / len(reached), 3) if reached else None,
        "narrow_share": round(sum(width <= NARROW for width in widths) / len(widths), 3) if widths else None,
        "median_half_width": median(widths) if widths else None,
        "largest_half_width": widths[-1] if widths else None,
        "median_timed_share": median(shares) if shares else None,
    }


def compared(one: Path, other: Path) -> dict[str, Any]:
    """Return how far the results of two folders agree: of each fix both intervals,
    and whether they overlap.
    """
    programs: dict[str, Any] = {}
    counts = {measure: [0, 0] for measure in ("wall", "work")}
    for file in sorted(one.glob("verify-*.json")):
        if not (other / file.name).exists():
            continue
        sides = [_intervals(load(folder / file.name).measurements[0]) for folder in (one, other)]
        for name in sides[0].keys() & sides[1].keys():
            for measure, count in counts.items():
                first, second = (side[name][measure] for side in sides)
                if first is None or second is None:
                    continue
                overlap = first.low <= second.high and second.low <= first.high
                count[0] += overlap
                count[1] += 1
                program = programs.setdefault(file.stem.removeprefix("verify-"), {})
                program.setdefault(name, {})[measure] = {
                    "intervals": [[round(item.low, 4), round(item.high, 4)] for item in (first, second)],
                    "overlap": overlap,
                }
    summary = {measure: {"overlap": both, "of": all_} for measure, (both, all_) in counts.items()}
    return {
        "summary": summary,
        "programs": {name: dict(sorted(found.items())) for name, found in programs.items()},
    }


def _intervals(measurement: Measurement) -> dict[str, dict[str, Interval | None]]:
    """Return the intervals of a program's fixes, also those that are not shown beside their verdicts."""
    return {
        item.variant: {
            "wall": stats.interval(measurement.blocks, ORIGINAL, item.variant),
            "work": stats.interval(measurement.windows, ORIGINAL, item.variant, "device"),
        }
        for item in measurement.comparisons
    }


def main() -> None:
    """Measure, print a line for each program, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("label")
    parser.add_argument("--budget", type=float, default=120.0)
    known_programs = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    parser.add_argument("--programs", nargs="*", default=known_programs, choices=[*known_programs, []])
    parser.add_argument("--scripts", type=Path)
    parser.add_argument("--only", nargs="+", help="of the scripts, these")
    parser.add_argument("--folder", type=Path, help="where to keep what each run wrote")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.compare:
        agreeing = {"label": arguments.label, **compared(*arguments.compare)}
        MACHINES.write_text(json.dumps(agreeing, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(agreeing["summary"]))
        return
    known = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    label = known.setdefault(arguments.label, {"programs": {}})
    with tempfile.TemporaryDirectory() as folder:
        kept = (arguments.folder or Path(folder) / "kept").resolve()
        kept.mkdir(parents=True, exist_ok=True)
        programs = own(arguments.programs, Path(folder))
        if arguments.scripts:
            scripts = given(arguments.scripts.resolve())
            programs += [item for item in scripts if not arguments.only or item.name in arguments.only]
        for program in programs:
            results = measured(program, arguments.budget, kept, ["--device", arguments.device])
            command = " ".join(program.command)
            found: dict[str, Any] = {"command": command, "budget": arguments.budget}
            if results is None:
                found["failed"] = (kept / f"{program.name}.txt").read_text("utf-8")[-600:]
            else:
                machine = results["machine"]
                label["machine"] = machine["gpu"] or machine["processor"]
                label["torch"] = machine["torch"]
                found |= summary(results)
            label["programs"][program.name] = found
            label["summary"] = overall(label["programs"])
            arguments.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            print(program.name, _line(found), flush=True)
    print(json.dumps(label["summary"]))


def _line(found: Mapping[str, Any]) -> str:
    """Return one program in a line."""
    if "variants" not in found:
        return f"failed: {found['failed']}"
    told = [
        f"{name} {item['verdict']}"
        + ("" if item["ratio"] is None else f" {item['ratio']:.3f}±{100 * item['half_width']:.1f}%")
        for name, item in found["variants"].items()
    ]
    return (
        f"{found['seconds']:.0f} s, {found['timed_share']:.0%} timed, step {found['step_milliseconds']} ms, "
        f"again {found['again']}: {'; '.join(told)}"
    )


if __name__ == "__main__":
    main()
