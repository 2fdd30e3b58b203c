"""The figures of the page, drawn by Matplotlib as inline SVG whose colours follow the page's theme."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Any

from torchlint.verify import words
from torchlint.verify.results import AGAIN, ORIGINAL, Block, Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

WIDTH = 340
"""In CSS pixels: what fits on a phone. A figure is scaled up a little where there is room."""

_DPI = 72  # one unit of the SVG is then one point of Matplotlib's
_FONT = 12
_POINTS = 40
"""The points of a curve."""
_LONGEST = 28
"""Characters of a variant's name that fit beside its figure."""

# Matplotlib has no notion of a theme: each role is drawn in a colour of its own, and the colour is then
# replaced by the page's variable for the role.
_ROLES = {
    "ink": "#010203",
    "muted": "#010204",
    "grid": "#010205",
    "original": "#010206",
    "again": "#010207",
    "fixed": "#010208",
    "surface": "#010209",
}
_SHADES = {
    "weights": 1.0,
    "gradients": 0.84,
    "optimizer state": 0.68,
    "buffers": 0.54,
    words.ACTIVATIONS: 0.4,
    words.WORKSPACE: 0.2,
    words.REST: 0.25,
}
"""How strongly the parts of the memory are drawn."""
_TOLD = "told: "
"""What begins the identifier of a part that says something on hover, until it is embedded."""
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_COLOR = re.compile("|".join(_ROLES.values()))
_VARIABLES = {color: f"var(--{role})" for role, color in _ROLES.items()}


@dataclass(frozen=True)
class Drawing:
    """A figure: its SVG, and in words what it shows."""

    svg: str
    caption: str


def step_times(measurement: Measurement, variants: Sequence[str], name: str) -> Drawing | None:
    """Return the time of a step in every block, a lane a process, with median and quartiles;
    None without blocks.

    ``name`` begins every identifier of the figure, so that no two figures of a page share one.
    """
    times = {variant: _lanes(measurement.blocks, variant) for variant in variants}
    times = {variant: lanes for variant, lanes in times.items() if lanes}
    if not times:
        return None
    everything = [value for lanes in times.values() for lane in lanes for value in lane]
    unit, scale = _time_unit(median(everything))
    low, high = _range([[value for lane in lanes for value in lane] for lanes in times.values()])
    beyond = sum(not low <= value <= high for value in everything)
    row = 46
    height = 34 + row * len(times)

    def draw(figure: Figure) -> None:
        axes = _axes(figure, height, bottom=34)
        axes.set_xlim(low / scale, high / scale)
        axes.set_ylim(len(times) * row, 0)
        for number, (variant, lanes) in enumerate(times.items()):
            color = _color(variant)
            top = number * row
            values = [value / scale for lane in lanes for value in lane]
            _caption(axes, top + 12, _short(measurement, variant), f"{words.seconds(median(values) * scale)}")
            lane_height = 22 / len(lanes)
            xs: list[float] = []
            ys: list[float] = []
            for index, lane in enumerate(lanes):
                y = top + 16 + index * lane_height
                for value in lane:
                    x = value / scale
                    xs += [x, x, float("nan")]
                    ys += [y + 0.5, y + max(lane_height - 0.5, 1.5), float("nan")]
            axes.plot(xs, ys, color=color, linewidth=1.3, alpha=0.8, solid_capstyle="butt")
            middle = median(values)
            axes.plot([middle, middle], [top + 14, top + 42], color=_ROLES["ink"], linewidth=1.6)
            told = f"{words.label(measurement, variant)}: median {words.seconds(middle * scale)}"
            if len(values) > 3:
                first, _, third = quantiles(values, n=4)
                axes.plot([first, third], [top + 41, top + 41], color=color, linewidth=3)
                told += f", quartiles {words.seconds(first * scale)} and {words.seconds(third * scale)}"
            told += f", {len(values)} blocks in {len(lanes)} {'process' if len(lanes) == 1 else 'processes'}"
            _tell(axes, (low / scale, top), (high - low) / scale, row, told)
        axes.set_xlabel(f"{unit} per step")

    blocks = len(everything)
    caption = (
        f"Step time in {blocks} blocks. Each tick is a block, each lane a process; the long mark is the "
        "median, the bar below it the interquartile range."
    )
    if beyond:
        caption += f" {_blocks(beyond)} beyond the axis."
    medians = {
        variant: median([value for lane in lanes for value in lane]) for variant, lanes in times.items()
    }
    summary = ", ".join(
        f"{words.label(measurement, variant)} {words.seconds(middle)}" for variant, middle in medians.items()
    )
    return Drawing(_svg(draw, height, name, f"Step times; medians: {summary}"), caption)


def course(measurement: Measurement, variant: str, name: str) -> Drawing | None:
    """Step times in the order of the rounds, for the original, its copy and one variant."""
    shown = [
        item for item in (ORIGINAL, AGAIN, variant) if any(b.variant == item for b in measurement.blocks)
    ]
    used = [block for block in measurement.blocks if block.variant in shown and block.steps > 0]
    if len(shown) < 2:
        return None
    # Replicates follow each other along the axis, with one place left free between them.
    replicates = sorted({block.replicate for block in used})
    begins: dict[int, int] = {}
    place = 0
    for replicate in replicates:
        begins[replicate] = place
        place += max(block.round for block in used if block.replicate == replicate) + 2
    kept = [block.wall / block.steps for block in used if block.discarded is None]
    if not kept:
        return None
    unit, scale = _time_unit(median(kept))
    low, high = _range(
        [[b.wall / b.steps for b in used if b.variant == item and b.discarded is None] for item in shown]
    )
    height = 200

    def draw(figure: Figure) -> None:
        axes = _axes(figure, height, bottom=34, left=40, top=40)
        axes.set_xlim(-1, place - 1)
        axes.set_ylim(low / scale, high / scale)
        axes.yaxis.set_visible(True)
        axes.grid(axis="y", color=_ROLES["grid"], linewidth=1)
        for begin in list(begins.values())[1:]:
            axes.axvline(begin - 1, color=_ROLES["grid"], linewidth=1)
        for item in shown:
            points = sorted(
                (begins[block.replicate] + block.round, block.replicate, block.wall / block.steps / scale)
                for block in used
                if block.variant == item and block.discarded is None
            )
            xs: list[float] = []
            ys: list[float] = []
            last = None
            for x, replicate, y in points:
                if last is not None and replicate != last:
                    xs.append(float("nan"))
                    ys.append(float("nan"))
                xs.append(x)
                ys.append(y)
                last = replicate
            dashes = (2, 1.5) if item == AGAIN else (None, None)
            axes.plot(xs, ys, color=_color(item), linewidth=1.6, dashes=dashes)
        for x, told in _rounds_told(measurement, shown, used, begins).items():
            _tell(axes, (x - 0.5, low / scale), 1, (high - low) / scale, told)
        thrown = [
            (begins[block.replicate] + block.round, block.wall / block.steps / scale)
            for block in used
            if block.discarded is not None
        ]
        if thrown:
            axes.plot(*zip(*thrown, strict=True), "x", color=_ROLES["ink"], markersize=5, clip_on=True)
        at = 4.0
        for item in shown:
            dashes = (2, 1.5) if item == AGAIN else (None, None)
            axes.plot(
                [at, at + 16],
                [height - 9] * 2,
                color=_color(item),
                linewidth=2,
                dashes=dashes,
                transform=None,
                clip_on=False,
            )
            text = _short(measurement, item, 16)
            axes.text(at + 20, height - 13, text, color=_ROLES["ink"], transform=None, fontsize=_FONT)
            at += 32 + 6.6 * len(text)
        axes.set_xlabel(_rounds(len(replicates)))
        axes.xaxis.set_ticks([])
        axes.set_title(f"{unit}", loc="left", fontsize=_FONT, color=_ROLES["muted"], x=-0.12, y=1.0)

    thrown = sum(block.discarded is not None for block in used)
    caption = "Step times in the order of measurement, which shows drift and bursts."
    if thrown:
        reason = next(block.discarded for block in used if block.discarded is not None)
        caption += f" {_blocks(thrown)} excluded from the statistics, marked with a cross ({reason})."
    return Drawing(_svg(draw, height, name, "Step times over the course of the measurement"), caption)


def memory(measurement: Measurement, variants: Sequence[str], name: str) -> Drawing | None:
    """Draw the peak memory of a step, allocated and reserved; None where nothing was counted."""
    peaks = []
    for variant in variants:
        seen = words.evidence(measurement, variant)
        if seen.peak_allocated is not None:
            peaks.append((variant, seen.peak_allocated, seen.peak_reserved))
    if not peaks:
        return None
    most = max(max(allocated, reserved or 0) for _, allocated, reserved in peaks) or 1
    row = 32
    parts = {variant: words.memory_parts(measurement, variant) for variant, *_ in peaks}
    legend = {name for found in parts.values() for name, value in found if value}
    # The long names are on the right, where there is room for them.
    right = (words.ACTIVATIONS, words.WORKSPACE, words.REST, words.CACHE)
    columns = [
        [name for name in _SHADES if name in legend and name not in right],
        [name for name in right if name in legend],
    ]
    below = 18 * max(map(len, columns))
    height = 8 + row * len(peaks) + below

    def draw(figure: Figure) -> None:
        axes = _axes(figure, height, bottom=2 + below)
        axes.spines["bottom"].set_visible(False)
        axes.xaxis.set_visible(False)
        axes.set_xlim(0, most * 1.002)
        axes.set_ylim(len(peaks) * row + 4, 0)
        for number, (variant, allocated, reserved) in enumerate(peaks):
            top = number * row
            _caption(axes, top + 12, _short(measurement, variant), words.size(allocated))
            if reserved is not None:
                axes.barh(
                    top + 20,
                    reserved,
                    height=8,
                    facecolor="none",
                    edgecolor=_color(variant),
                    linewidth=1,
                )
            if not parts[variant]:
                axes.barh(top + 20, allocated, height=8, color=_color(variant))
            left = 0
            for name, value in parts[variant]:
                if value and name != words.CACHE:
                    _part(axes, left, top + 20, value, _color(variant), name)
                    _tell(axes, (left, top + 16), value, 8, f"{name} {words.size(value)}")
                    left += value
        for x, column in zip((4, 132), columns, strict=True):
            for number, name in enumerate(column):
                y = below - 18 * (number + 1) + 4
                axes.add_patch(_key(x, y, name))
                axes.text(x + 16, y, name, color=_ROLES["ink"], transform=None, fontsize=_FONT)

    caption = "Peak memory of a step as reported by torch: allocated memory is filled"
    caption += " and told apart by what it is for" if legend else ""
    caption += ", reserved memory is outlined." if any(item[2] is not None for item in peaks) else "."
    said = words.memory_told(measurement, ORIGINAL)
    caption += f" {words.label(measurement, ORIGINAL).capitalize()}: {said}" if legend and said else ""
    summary = ", ".join(f"{words.label(measurement, item[0])} {words.size(item[1])}" for item in peaks)
    return Drawing(_svg(draw, height, name, f"Peak memory: {summary}"), caption)


def _part(axes: Axes, left: float, y: float, value: float, color: str, name: str) -> None:
    """Draw a part of a bar, set apart from the next by the colour of the page."""
    edge = _ROLES["surface"]
    axes.barh(y, value, left=left, height=8, color=color, alpha=_SHADES[name], edgecolor=edge, linewidth=0.8)


def _key(x: float, y: float, name: str) -> Rectangle:
    """Return the square of a part in the legend."""
    from matplotlib.patches import Rectangle

    if name == words.CACHE:
        return Rectangle(
            (x, y), 10, 10, transform=None, facecolor="none", edgecolor=_ROLES["ink"], clip_on=False
        )
    shade = _SHADES[name]
    return Rectangle(
        (x, y), 10, 10, transform=None, color=_ROLES["ink"], alpha=shade, linewidth=0, clip_on=False
    )


def losses(measurement: Measurement, variant: str, name: str) -> Drawing | None:
    """Return how the original and a variant train, a line for each seed; None where nobody looked."""
    curves = [
        (item.variant, _smoothed([loss for loss in item.losses if isfinite(loss)]))
        for item in measurement.curves
        if item.variant in (ORIGINAL, variant)
    ]
    curves = [(item, curve) for item, curve in curves if len(curve) > 1]
    if {item for item, _ in curves} != {ORIGINAL, variant}:
        return None
    height = 180
    seeds = sum(item == ORIGINAL for item, _ in curves)
    steps = max(len(item.losses) for item in measurement.curves if item.variant == ORIGINAL)

    def draw(figure: Figure) -> None:
        axes = _axes(figure, height, bottom=34, left=40, top=20)
        axes.yaxis.set_visible(True)
        axes.grid(axis="y", color=_ROLES["grid"], linewidth=1)
        for item, curve in curves:
            at = [steps * (place + 0.5) / len(curve) for place in range(len(curve))]
            dashes = (None, None) if item == ORIGINAL else (2, 1.5)
            axes.plot(at, curve, color=_color(item), linewidth=1.6, dashes=dashes)
        axes.set_xlabel("step")
        axes.set_title("loss", loc="left", fontsize=_FONT, color=_ROLES["muted"], x=-0.12, y=1.0)

    label = words.label(measurement, variant)
    caption = f"Losses of the original and of {label} (dashed), trained from {seeds} seeds each."
    return Drawing(_svg(draw, height, name, f"Losses of the original and of {label}"), caption)


def _smoothed(curve: Sequence[float]) -> list[float]:
    """Return the means of so many parts of a curve as can be told apart in a figure."""
    count = min(len(curve), _POINTS)
    edges = [len(curve) * number // count for number in range(count + 1)] if count else []
    return [fmean(curve[first:last]) for first, last in pairwise(edges)]


def _rounds_told(
    measurement: Measurement, shown: Sequence[str], used: Sequence[Block], begins: Mapping[int, int]
) -> dict[int, str]:
    """Return what each round took, by its place on the axis."""
    told: dict[int, list[str]] = {}
    for item in shown:
        for block in used:
            if block.variant == item and block.discarded is None:
                taken = f"{words.label(measurement, item)} {words.seconds(block.wall / block.steps)}"
                told.setdefault(begins[block.replicate] + block.round, []).append(taken)
    return {x: ", ".join(found) for x, found in told.items()}


# --- pieces ----------------------------------------------------------------------------------------------


def _axes(figure: Figure, height: int, *, bottom: int, left: int = 4, top: int = 4) -> Axes:
    """Return axes with nothing but a line below, ``bottom`` units above the lower edge of the figure."""
    axes = figure.add_axes(
        (left / WIDTH, bottom / height, (WIDTH - left - 4) / WIDTH, (height - bottom - top) / height)
    )
    axes.patch.set_visible(False)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_ROLES["muted"])
    axes.yaxis.set_visible(False)
    axes.tick_params(colors=_ROLES["muted"], labelsize=_FONT, length=3, width=1)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.label.set_color(_ROLES["muted"])
    axes.xaxis.label.set_fontsize(_FONT)
    axes.locator_params(axis="x", nbins=5)
    return axes


def _tell(axes: Axes, corner: tuple[float, float], width: float, height: float, text: str) -> None:
    """Let a part of a figure say something on hover."""
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(corner, width, height, color=_ROLES["ink"], alpha=0, zorder=9, gid=_TOLD + _printable(text))
    )


def _caption(axes: Axes, y: float, left: str, right: str) -> None:
    """Write the name of a row on the left and its figure on the right, on a line above it."""
    transform = axes.get_yaxis_transform()
    axes.text(0, y, left, color=_ROLES["ink"], fontsize=_FONT, transform=transform)
    axes.text(
        1, y, right, color=_ROLES["ink"], fontsize=_FONT, ha="right", weight="bold", transform=transform
    )


def _color(variant: str) -> str:
    return _ROLES[{ORIGINAL: "original", AGAIN: "again"}.get(variant, "fixed")]


def _short(measurement: Measurement, variant: str, longest: int = _LONGEST) -> str:
    text = _printable(words.label(measurement, variant))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _printable(text: str) -> str:
    """Return a text without control characters: XML has no place for them."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def _lanes(blocks: Sequence[Block], variant: str) -> list[list[float]]:
    """Return the step times of the blocks that count, by replicate."""
    lanes: dict[int, list[float]] = {}
    for block in blocks:
        if block.variant == variant and block.steps > 0 and block.discarded is None:
            lanes.setdefault(block.replicate, []).append(block.wall / block.steps)
    return [lanes[replicate] for replicate in sorted(lanes)]


def _range(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the ends of an axis that shows each group but for its most distant values."""
    ends = []
    for group in filter(None, groups):
        middle = median(group)
        spread = median(abs(value - middle) for value in group) or middle * 0.002
        inside = [value for value in group if abs(value - middle) <= 12 * spread]
        ends += [min(inside), max(inside)]
    low, high = min(ends), max(ends)
    room = (high - low) * 0.04 or high * 0.01
    return max(0.0, low - room), high + room


def _time_unit(seconds: float) -> tuple[str, float]:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return unit, scale
    return "µs", 1e-6


def _rounds(replicates: int) -> str:
    """Return what the axis of the rounds is called."""
    if replicates == 1:
        return "rounds of 1 replicate"
    return f"rounds of {replicates} replicates (one after the other)"


def _blocks(count: int) -> str:
    return "One block is" if count == 1 else f"{count} blocks are"


def _svg(draw: Callable[[Figure], None], height: int, name: str, title: str) -> str:
    """Return what ``draw`` draws, as an SVG element for the inside of a page."""
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": _FONT,
        "path.simplify": False,
        "text.parse_math": False,
        "axes.formatter.useoffset": False,
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(WIDTH / _DPI, height / _DPI), dpi=_DPI)
        figure.patch.set_visible(False)
        draw(figure)
        stream = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=metadata)
    return _embed(stream.getvalue(), name, title)


def _embed(document: str, name: str, title: str) -> str:
    """Return an SVG document as an element of a page: themed, short,
    and with no name that another figure has.
    """
    root = ET.fromstring(document)
    referred = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", document))
    for parent in list(root.iter()):
        for child in list(parent):
            # The style sheet would apply to the whole page, the metadata to nothing.
            if child.tag.endswith(("}style", "}metadata")):
                parent.remove(child)
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        if element.get("id", "").startswith(_TOLD):
            told = ET.Element("title")
            told.text = element.attrib.pop("id").removeprefix(_TOLD)
            for area in element:
                # Without any filling it could not be hovered over.
                area.attrib.pop("style")
                area.set("fill", "transparent")
            element.insert(0, told)
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            key = key.rpartition("}")[2]
            if key == "id":
                if value not in referred:
                    continue
                value = f"{name}-{value}"
            elif key == "href" and value.startswith("#"):
                value = f"#{name}-{value[1:]}"
            elif key == "style" and element.tag == "text":
                value = _text_style(value)
            value = value.replace("url(#", f"url(#{name}-")
            value = _COLOR.sub(lambda found: _VARIABLES[found[0]], value)
            element.set(key, _NUMBER.sub(lambda found: f"{float(found[0]):.1f}", value))
        if element.text is not None and not element.text.strip():
            element.text = None
        element.tail = None
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-label", title)
    return ET.tostring(root, encoding="unicode")


def _text_style(style: str) -> str:
    """Return the style of a text without its font family: the page has one."""
    return "; ".join(_without_family(style))


def _without_family(style: str) -> Iterator[str]:
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            size = re.search(r"[\d.]+px", value)
            yield f"font-size: {size[0] if size else f'{_FONT}px'}"
            if "bold" in value or re.search(r"\b[67]00\b", value):
                yield "font-weight: 600"
        elif key:
            yield f"{key}: {value}"
