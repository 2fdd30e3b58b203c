"""Measured speed-ups drawn for the documentation site: the ratio and its 95 % interval on an axis.

The figures are HTML elements placed by percentages, with the colours of the site's theme, so that they fit a
phone and are legible in light and dark; what they show also stands beside them as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from torchlint.effects import Effect
from torchlint.rule import Rule

STYLE = """\
.speedups { font-size: 0.65rem; line-height: 1.2rem; margin: 1em 0; }
.speedup { align-items: center; display: grid; gap: 0 0.6rem; grid-template-columns: 4.5rem 1fr 8rem; }
.speedups.rules .speedup { grid-template-columns: 14rem 1fr 8rem; }
.speedup .axis { background: var(--md-code-bg-color); height: 0.8rem; position: relative; }
.speedup .axis > * { bottom: 0; position: absolute; top: 0; }
.speedup .same { background: var(--md-default-fg-color--light); width: 1px; }
.speedup .interval { background: #90a4ae; }
.speedup .faster { background: #2e7d32; }
.speedup .slower { background: #c62828; }
.speedup .ratio { background: var(--md-default-fg-color); margin-left: -1px; width: 2px; }
.speedup.ticks .axis span { color: var(--md-default-fg-color--light); position: absolute; translate: -50%; }
.speedup.ticks .axis { background: none; height: 1.2rem; }
@media (max-width: 44em) {
  .speedup, .speedups.rules .speedup { grid-template-columns: 1fr 8rem; }
  .speedup > :first-child { grid-column: 1 / -1; }
}
"""
_LOW, _HIGH = 0.5, 32.0
"""The ends of the axis, which is logarithmic: half as fast is as far from the same as twice as fast."""
_TICKS = (0.5, 1, 2, 4, 8, 16, 32)


def by_size(effects: Sequence[Effect]) -> str:
    """Return what was measured of one rule, a row for each size and machine; empty if no ratio was."""
    timed = [effect for effect in effects if effect["speedup"] is not None]
    several = len({effect["machine"] for effect in timed}) > 1
    rows = []
    for effect in timed:
        told = f"{effect['machine'].partition(',')[0]}, " if several else ""
        rows.append(_row(escape(f"{told}{effect['size'] or 'case'}"), effect))
    return _figure(rows, "rules" if several else "")


def over_all(rules: Iterable[Rule], effects: Mapping[str, Sequence[Effect]]) -> str:
    """Return the size in which each rule gains most, the largest gain first;
    rules without a ratio are left out.
    """
    best = []
    for rule in rules:
        timed = [effect for effect in effects.get(rule.code, ()) if effect["speedup"] is not None]
        if timed:
            best.append((rule, max(timed, key=lambda effect: effect["speedup"]["low"])))
    best.sort(key=lambda item: (-item[1]["speedup"]["low"], item[0].code))
    rows = [
        _row(f'<a href="../rules/{rule.code}/">{rule.code}</a> {escape(rule.name)}', effect)
        for rule, effect in best
    ]
    return _figure(rows, "rules")


def _figure(rows: Sequence[str], kind: str) -> str:
    if not rows:
        return ""
    ticks = "".join(f'<span style="left: {_place(tick):.1f}%">{tick:g}×</span>' for tick in _TICKS)
    axis = f'<div class="speedup ticks" aria-hidden="true"><span></span><div class="axis">{ticks}</div></div>'
    return f'<div class="{f"speedups {kind}".strip()}">\n{"".join(rows)}{axis}\n</div>\n'


def _row(label: str, effect: Effect) -> str:
    interval = effect["speedup"]
    begin, end, at = (_place(interval[key]) for key in ("low", "high", "ratio"))
    kind = {"FASTER": "interval faster", "SLOWER": "interval slower"}.get(effect["verdict"], "interval")
    marks = (
        f'<i class="same" style="left: {_place(1):.1f}%"></i>'
        f'<i class="{kind}" style="left: {begin:.1f}%; width: {max(end - begin, 0.5):.1f}%"></i>'
        f'<i class="ratio" style="left: {at:.1f}%"></i>'
    )
    ratio, low, high = (_number(interval[key]) for key in ("ratio", "low", "high"))
    return (
        f'<div class="speedup"><span>{label}</span><div class="axis" aria-hidden="true">{marks}</div>'
        f"<span>{ratio}× ({low}–{high})</span></div>\n"
    )


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _place(ratio: float) -> float:
    """Return where a ratio stands on the axis, in percent of its length;
    what is beyond an end stands there.
    """
    inside = min(max(ratio, _LOW), _HIGH)
    return 100 * math.log(inside / _LOW) / math.log(_HIGH / _LOW)
