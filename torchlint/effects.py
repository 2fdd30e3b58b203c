"""What the fix of each rule was measured to be worth, as shipped in ``effects.json``.

That file is made by ``python -m torchlint.dev generate`` from the results under ``benchmarks/results``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

Effect = Mapping[str, Any]
"""One rule at one size on one kind of machine.

``machine``, ``date``, ``size``, ``verdict`` and ``results`` are words; ``speedup`` is time before over time
after with its 95 % interval, None where the verdict allows no figure; ``seconds``, ``peak_memory`` (bytes),
``syncs``, ``kernels`` and ``collectives`` are of a step, ``before`` and ``after``, None where nobody looked;
``told`` is the outcome in a line.
"""


def of(code: str) -> Sequence[Effect]:
    """Return what was measured of a rule; nothing if it was not."""
    return _all().get(code, ())


def section(code: str, effects: Sequence[Effect]) -> str:
    """Return what was measured of a rule as the last section of its page, in Markdown;
    empty if nothing was.
    """
    by_machine: dict[str, list[Effect]] = {}
    for effect in effects:
        by_machine.setdefault(effect["machine"], []).append(effect)
    parts = []
    for machine, found in by_machine.items():
        items = "".join(f"* {effect['size'] or 'case'}: {effect['told']}.\n" for effect in found)
        days = ", ".join(dict.fromkeys(effect["date"] for effect in found))
        parts.append(f"On {machine}, {days}, by `torchlint bench {code}`:\n\n{items}")
    return "\n## Measured\n\n" + "\n".join(parts) if parts else ""


@cache
def _all() -> Mapping[str, Sequence[Effect]]:
    import json

    found: dict[str, list[Effect]] = json.loads(
        (resources.files("torchlint") / "effects.json").read_text(encoding="utf-8")
    )
    return found
