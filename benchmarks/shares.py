"""How much of its time ``torchlint verify`` spends in timed steps, on programs of ``fixtures/programs``.

Usage: ``python benchmarks/shares.py LABEL [--python PYTHON] [--budget SECONDS] [--programs NAME ...]``

Runs ``verify`` on the CPU with the torchlint of PYTHON, and writes what it did with its time under LABEL into
``benchmarks/results/shares.json``, beside what other labels have there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "shares.json"
PROGRAMS = ("dcgan", "segmentation_amp", "tabular_autoencoder")
"""They can be told how long to train; the others end sooner than a budget is used up."""
EPOCHS = "100000"
ORIGINAL, AGAIN = "original", "again"


def measured(python: str, program: str, budget: float) -> dict[str, Any]:
    """What one run of ``verify`` wrote as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        # In a folder of its own: each process would get a copy of this repository else.
        script = Path(shutil.copy(ROOT / f"fixtures/programs/{program}.py", folder))
        command = [python, "-m", "torchlint", "verify", script.name]
        command += ["--device", "cpu", "--isolated", "--budget", f"{budget:g}", "--json", str(out)]
        command += ["--", "--epochs", EPOCHS]
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """What became of the time: the timed share, and for each variant its blocks, steps and verdict."""
    measurement = results["measurements"][0]
    blocks = measurement["blocks"]
    timed = sum(block["wall"] for block in blocks)
    original = measurement["examinations"][0]
    variants = {}
    for comparison in measurement["comparisons"]:
        name, wall = comparison["variant"], comparison["wall"]
        own = [block for block in blocks if block["variant"] == name]
        variants[name] = {
            "verdict": comparison["verdict"],
            "interval": None if wall is None else [round(wall[key], 4) for key in ("ratio", "low", "high")],
            "processes": len({block["replicate"] for block in own}),
            "blocks": len(own),
            "steps": sum(block["steps"] for block in own),
        }
    return {
        "seconds": results["seconds"],
        "timed_seconds": round(timed, 1),
        "share": round(timed / results["seconds"], 3),
        "startup_seconds": round(original["startup_seconds"] or 0.0, 2),
        "step_milliseconds": round(1e3 * (original["step_seconds"] or 0.0), 2),
        "variants": variants,
    }


def main() -> None:
    """Measure, print a line for each program, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("label")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS))
    given = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    own = known.setdefault(given.label, {})
    for program in given.programs:
        results = measured(given.python, program, given.budget)
        own[program] = {
            "budget": given.budget,
            "torch": results["machine"]["torch"],
            "processor": results["machine"]["processor"],
            "processors": len(os.sched_getaffinity(0)),
            "threads": os.environ.get("OMP_NUM_THREADS", ""),
            "load": round(os.getloadavg()[0], 1),
            **summary(results),
        }
        print(program, own[program]["share"], own[program]["variants"], flush=True)
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
