"""What a run costs, beside other linters: a table and a plot, from ``benchmarks/results/peers.json``.

``python -m benchmarks.peers`` writes that file; nothing is measured here, and no peer need be installed.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from xml.sax.saxutils import escape

from torchlint.dev import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
PLOTS = ROOT / "docs"

_WIDTH = 110
_BUSY = 0.5
"""The load average before the measurement from which the reader is told of it."""
_NOTHING = "–"
_HEAD = (
    "| tool | version | CPU time | per MB | to torchlint's | wall time | unchanged files | memory | notes |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


@dataclass(frozen=True)
class Row:
    """One tool on one tree; seconds and MiB, medians but for the memory. None where nothing was measured.

    ``cpu`` is of one process if the tool can be told to use one, ``wall`` of the command as it comes,
    ``warm`` is the CPU time of another run over unchanged files. ``low`` and ``high`` are the least and the
    most of any round, ``size`` is in MB (10⁶ bytes) of what it was given.
    """

    name: str
    version: str
    kind: str
    size: float
    cpu: float | None = None
    low: float | None = None
    high: float | None = None
    wall: float | None = None
    warm: float | None = None
    memory: float | None = None
    note: str = ""

    @property
    def rate(self) -> float | None:
        """Seconds of CPU for a MB of code."""
        return None if self.cpu is None else self.cpu / self.size


def generate() -> Mapping[Path, str]:
    """Return the plots; none if nothing was measured."""
    if not RESULTS.exists():
        return {}
    results = _load()
    return {PLOTS / plot_name(tree["name"]): plot(rows(results, tree)) for tree in results["trees"]}


def summary() -> str:
    """Return the part of README.md; empty if nothing was measured."""
    if not RESULTS.exists():
        return ""
    results = _load()
    parts = ["\n## What a run costs\n", _method(results), *_since(results)]
    for tree in results["trees"]:
        found = rows(results, tree)
        size = f"{tree['files']} files, {tree['bytes'] / 1e6:.1f} MB"
        parts += [
            f"![CPU time for each MB of {tree['name']}](docs/{plot_name(tree['name'])})\n",
            f"The files of {tree['name']} that mention torch ({size}):\n",
            _HEAD + "".join(_cells(row, _ours(found)) for row in found),
        ]
    return "\n".join(parts) + "\n"


def _since(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a later run of ``benchmarks.projects`` says of the same packages, if there was one."""
    path = RESULTS.with_name("projects.json")
    if not path.exists():
        return
    projects = json.loads(path.read_text(encoding="utf-8"))
    for tree in results["trees"]:
        found = projects.get(tree["name"].rpartition("-")[0])
        if found is not None and found["machine"]["commit"] not in (None, results["machine"]["commit"]):
            cold, alone = (found[kind]["cpu_seconds"] for kind in ("cold", "alone"))
            commit = found["machine"]["commit"]
            told = (
                f"At {commit}, torchlint takes {cold:.0f} s of CPU time for {tree['name']} as a project, and "
                f"{alone:.0f} s with `--no-project`."
            )
            yield textwrap.fill(told, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def plot_name(tree: str) -> str:
    """Return the file name of the plot of a tree, the same for every version of the package."""
    return f"peers-{tree.rpartition('-')[0]}.svg"


def orphans() -> list[Path]:
    """Return the plots of trees that the results do not have."""
    return sorted(set(PLOTS.glob("peers-*.svg")) - set(generate()))


def rows(results: Mapping[str, Any], tree: Mapping[str, Any]) -> list[Row]:
    """Return what was measured of each tool on a tree, the quickest first,
    then what could not be measured.
    """
    found = [_row(tool, tree) for tool in results["tools"]]
    return sorted(found, key=lambda row: (row.rate is None, row.rate or 0.0, row.name))


def _load() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return loaded


def _row(tool: Mapping[str, Any], tree: Mapping[str, Any]) -> Row:
    series = [item for item in tree["series"] if item["tool"] == tool["name"]]
    size = (series[0]["bytes"] if series else tree["bytes"]) / 1e6
    version = tool["version"] or ""
    errors = [tool["error"], *(item["error"] for item in series)]
    failure = next((error for error in errors if error), "")
    alone = _of(series, ("one", "default"), "cold")
    if alone is None:
        return Row(tool["name"], version, tool["kind"], size, note=failure or "not measured")
    times = [run["cpu_seconds"] for run in alone["rounds"]]
    usual, warm = _of(series, ("default", "one"), "cold"), _of(series, ("one", "default"), "warm")
    return Row(
        name=tool["name"],
        version=version,
        kind=tool["kind"],
        size=size,
        cpu=median(times),
        low=min(times),
        high=max(times),
        wall=_median(usual, "wall_seconds"),
        warm=_median(warm, "cpu_seconds"),
        memory=max(run["peak_mib"] for run in alone["rounds"]),
        note="; ".join(filter(None, (_part(alone, tree), _several(usual), failure))),
    )


def _of(
    series: Sequence[Mapping[str, Any]], processes: Iterable[str], state: str
) -> Mapping[str, Any] | None:
    """Return the first way of running, in the order of ``processes``, that came to an end."""
    for name in processes:
        for item in series:
            if item["processes"] == name and item["state"] == state and item["rounds"]:
                return item
    return None


def _median(series: Mapping[str, Any] | None, what: str) -> float | None:
    return None if series is None else median(run[what] for run in series["rounds"])


def _part(series: Mapping[str, Any], tree: Mapping[str, Any]) -> str:
    told = f"on {series['files']} of the files" if series["files"] < tree["files"] else ""
    return "; ".join(filter(None, (told, "no setting for one process" if series["several"] else "")))


def _several(series: Mapping[str, Any] | None) -> str:
    return series["several"] if series is not None else ""


def _method(results: Mapping[str, Any]) -> str:
    machine, rounds = results["machine"], results["rounds"]
    slow = (
        f" ({rounds['slow']} of what takes longer than {rounds['slow_beyond_seconds']:.0f} s)"
        if rounds["slow"] < rounds["all"]
        else ""
    )
    load = machine["load_average_at_start"]
    busy = f" The machine was busy with other things (load {load:.1f}): wall times are worth little."
    text = (
        "Each tool with its default rules, all on the same files in one run of `python -m benchmarks.peers`, "
        f"taking turns; {_times(rounds['all'])}{slow} with {machine['processors']} processors, "
        f"Python {machine['python']}, on {results['started'][:10]}, torchlint at {machine['commit']}. CPU "
        "time is that of all processes together, with one process or thread where a setting allows that; "
        "wall time is of the command as it comes, the notes say with what. Caches are empty at first; "
        "*unchanged files* is the CPU time of another run, where there is a cache. Memory is that of the "
        "largest process. "
        "The tools look for different things: this is what a run costs, not what it is worth. "
        "`ast.parse` and `libcst.parse_module` only parse; torch is not installed beside any of them."
        + (busy if load >= _BUSY else "")
    )
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _times(count: int) -> str:
    return "one round" if count == 1 else f"medians of {count} rounds"


def _ours(found: Iterable[Row]) -> float | None:
    return next((row.rate for row in found if row.kind == "torchlint"), None)


def _cells(row: Row, ours: float | None) -> str:
    name = {"reference": f"*{row.name}*", "torchlint": f"**{row.name}**"}.get(row.kind, row.name)
    ratio = _NOTHING if row.rate is None or not ours else f"{_figure(row.rate / ours)} ×"
    cells = (
        name,
        row.version or _NOTHING,
        _seconds(row.cpu),
        _seconds(row.rate),
        ratio,
        _seconds(row.wall),
        _seconds(row.warm),
        _NOTHING if row.memory is None else f"{row.memory:.0f} MiB",
        row.note.replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |\n"


def _seconds(value: float | None) -> str:
    return _NOTHING if value is None else f"{_figure(value)} s"


def _figure(value: float) -> str:
    """Return a number with three figures, and never an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.001 else f"{value:.3f}"


# --- the plot --------------------------------------------------------------------------------------------

# Drawn here and not by Matplotlib: its output differs from release to release, and the generated files are
# compared with what is committed.
_LEFT, _BARS, _TOP, _STEP, _HEIGHT = 170, 470, 34, 26, 16
_COLORS = {"peer": "#8c959f", "reference": "#d1d9e0", "torchlint": "#de5b2c"}
_INK, _MUTED = "#1f2328", "#59636e"
_DARK = """
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .muted { fill: #9198a1 } line { stroke: #f0f6fc }
  .peer { fill: #656c76 } .reference { fill: #3d444d } .torchlint { fill: #f0834f }
}
"""


def plot(found: Sequence[Row]) -> str:
    """Return bars of CPU time for a MB of code, as an SVG document that follows the reader's theme."""
    drawn = [row for row in found if row.rate is not None]
    longest = max((row.high / row.size for row in drawn if row.high is not None), default=1.0)
    height = _TOP + _STEP * len(drawn) + 8
    told = ", ".join(f"{row.name} {_figure(row.rate)} s" for row in drawn if row.rate is not None)
    bars = "".join(_bar(row, number, _BARS / longest) for number, row in enumerate(drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" '
        f'role="img" aria-label="CPU time for a MB of code: {escape(told)}">\n<style>{_DARK}</style>\n'
        f'<g font-family="system-ui, sans-serif" font-size="13">\n<text class="muted" fill="{_MUTED}" '
        f'x="{_LEFT}" y="20">seconds of CPU time for a MB of code, less is better</text>\n'
        f"{bars}</g>\n</svg>\n"
    )


def _bar(row: Row, number: int, scale: float) -> str:
    assert row.rate is not None and row.low is not None and row.high is not None
    top = _TOP + number * _STEP
    baseline = top + _HEIGHT - 3
    length = max(row.rate * scale, 1)
    low, high = (_LEFT + value / row.size * scale for value in (row.low, row.high))
    weight = ' font-weight="600"' if row.kind == "torchlint" else ""
    middle = top + _HEIGHT / 2
    spread = (
        f'<line stroke="{_INK}" x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>\n'
        if high > low
        else ""
    )
    end = max(_LEFT + length, high)
    return (
        f'<text fill="{_INK}" text-anchor="end"{weight} x="{_LEFT - 8}" y="{baseline}">'
        f"{escape(row.name)}</text>\n"
        f'<rect class="{row.kind}" fill="{_COLORS[row.kind]}" x="{_LEFT}" y="{top}" width="{length:.1f}" '
        f'height="{_HEIGHT}"/>\n{spread}'
        f'<text class="muted" fill="{_MUTED}"{weight} x="{end + 6:.1f}" y="{baseline}">'
        f"{_figure(row.rate)}</text>\n"
    )
