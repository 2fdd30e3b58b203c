"""How many repositories ``torchlint report`` checks in a minute.

    python -m benchmarks.report FOLDER… [--jobs 1] [--timeout 300]

checks each folder from scratch, and writes ``results/report.json``: the time of each repository, the sizes of
the pages, and the processor time of all, which counts where other programs share the machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import processes
from torchlint import __version__
from torchlint.report.records import Shelf, names

RESULTS = Path(__file__).with_name("results") / "report.json"


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        used = processes.run(
            [
                *(sys.executable, "-m", "torchlint", "report", "--no-cache", "--isolated", "-o", str(site)),
                *("--jobs", str(chosen.jobs), "--timeout", str(chosen.timeout), *map(str, chosen.folders)),
            ]
        )
        assert used.status in (0, 1), used.told
        shelf = Shelf(site)
        records = [shelf.get(name) for name in names([path.resolve() for path in chosen.folders]).values()]
        known = [record for record in records if record is not None]
        pages = [path.stat().st_size for path in (site / "repositories").iterdir()]
        index = (site / "index.html").stat().st_size
    result = {
        "torchlint": __version__,
        "jobs": chosen.jobs,
        "repositories": len(known),
        "not checked": sorted(f"{record.name}: {record.error}" for record in known if record.error),
        "findings": sum(len(record.findings) for record in known),
        "wall_seconds": round(used.wall, 1),
        "processor_seconds": round(used.cpu, 1),
        "repositories_a_minute": round(60 * len(known) / used.wall, 2),
        "repositories_a_processor_minute": round(60 * len(known) / used.cpu, 2),
        "median_seconds": round(median(record.seconds for record in known), 2),
        "bytes": {"index": index, "largest page": max(pages), "all pages": sum(pages)},
        "seconds": {record.name: record.seconds for record in sorted(known, key=lambda item: item.name)},
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "seconds"}, indent=2))


if __name__ == "__main__":
    main()
