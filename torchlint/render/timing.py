"""Where the time of a run went, as a table for people: what took longest first."""

from __future__ import annotations

from collections.abc import Mapping

from torchlint.rule import Rule


def render(seconds: Mapping[str, float], rules: Mapping[str, Rule]) -> str:
    """Return one line a rule or part of the work, with its seconds of CPU time and its share of all of them.

    The times of all workers are added up.
    """
    total = sum(seconds.values())
    names = {key: f"{key} {rules[key].name}" if key in rules else key for key in seconds}
    width = max(map(len, [*names.values(), "Total"]), default=0)
    ranked = sorted(seconds.items(), key=lambda item: (-item[1], item[0]))
    rows = [(names[key], spent) for key, spent in ranked] + [("Total", total)]
    lines = [f"{'Rule':<{width}}  CPU seconds   Share"]
    lines += [f"{name:<{width}}  {spent:>11.3f}  {_share(spent, total):>6}" for name, spent in rows]
    return "\n".join(lines) + "\n"


def _share(spent: float, total: float) -> str:
    return f"{100 * spent / total:.1f} %" if total else "-"
