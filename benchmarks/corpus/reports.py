"""A report in JSON that is put together package by package, maybe over some time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def record(outcome: Mapping[str, Any], report: Path) -> None:
    """Write how one package went into a report, in place of what that says of the package.

    The entry has the key ``package``, and gets the revision of torchlint.
    """
    known = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
    others = [entry for entry in known if entry["package"] != outcome["package"]]
    entry = {**outcome, "revision": _revision()}
    report.parent.mkdir(parents=True, exist_ok=True)
    entries = sorted([*others, entry], key=lambda item: str(item["package"]))
    report.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def _revision() -> str | None:
    """Return the commit of the working tree; None outside of one."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or None
