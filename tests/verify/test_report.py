"""The HTML page: whole, self-contained, escaped, legible in both themes and at both widths."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torchlint.render import measurements
from torchlint.report.records import Finding, Record, Shelf, slug
from torchlint.report.site import Site
from torchlint.verify import report, words
from torchlint.verify.report import figures
from torchlint.verify.report.axis import Axis
from torchlint.verify.report.listing import annotate, changed_files, parse_diff, to_original
from torchlint.verify.results import (
    ORIGINAL,
    TOGETHER,
    Agreement,
    AppliedFix,
    Comparison,
    Curve,
    Examination,
    Interval,
    Line,
    Machine,
    Measurement,
    Results,
    Roles,
    Variant,
    Verdict,
)

VOID = {"meta", "br", "link", "img", "input", "hr", "base"}
ALLOWED = """
html head meta title style body header main section div span h1 h2 h3 h4 p a ul li dl dt dd strong br code pre
table caption thead tbody tr th td details summary figure figcaption
svg g defs path use rect text tspan clippath
"""


@dataclass
class Page(HTMLParser):
    """What a page is made of."""

    open: list[str] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    text: list[tuple[str, str]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def row(self, start: str) -> list[str]:
        """The cells of the first table row that begins with a text."""
        found = next(cells for cells in self.rows if cells and " ".join(cells[0].split()).startswith(start))
        return [" ".join(cell.split()) for cell in found]


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


@cache
def rendered(synthetic: ModuleType, shape: str) -> str:
    """Each page is made once."""
    makers: dict[str, Any] = {
        "verify": synthetic.verify_results,
        "bench": synthetic.bench_results,
        "cpu": lambda: synthetic.verify_results(cpu=True),
        "unfit": lambda: synthetic.verify_results(fit=False),
        "hostile": synthetic.hostile_results,
    }
    return report.render(makers[shape]())


SHAPES = ["verify", "bench", "cpu", "unfit", "hostile"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_is_whole_and_needs_nothing_else(synthetic: ModuleType, shape: str) -> None:
    html = rendered(synthetic, shape)
    page = parse(html)
    assert set(page.tags) <= set(ALLOWED.split())
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        if name.rpartition(":")[2] in ("href", "src", "action", "data", "poster", "srcset"):
            assert value.startswith("#"), (tag, name, value)
        if name == "style":
            assert not re.search(r"url\((?!#)", value), value
    styles = "".join(text for tag, text in page.text if tag == "style")
    assert styles and "url(" not in styles and "@import" not in styles
    policies = [value for _, name, value in page.attributes if name == "content" and "-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


@pytest.mark.parametrize("shape", SHAPES)
def test_identifiers_are_unique_and_links_lead_somewhere(synthetic: ModuleType, shape: str) -> None:
    page = parse(rendered(synthetic, shape))
    names = Counter(value for _, name, value in page.attributes if name == "id")
    assert [name for name, count in names.items() if count > 1] == []
    wanted = {
        match
        for _, name, value in page.attributes
        for match in re.findall(r"^#(.+)|url\(#([^)]+)\)", value)
        for match in match
        if match and name != "content"
    }
    assert wanted <= set(names)


def test_nothing_of_the_user_is_markup(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "hostile")
    page = parse(html)
    assert not {"script", "img"} & set(page.tags)
    text = "".join(text for _, text in page.text)
    for place in (
        "train.py",
        "Set the gradients to None",
        "The program ended after 640 steps",
        "def main():",
    ):
        assert re.search(
            re.escape("<script>alert(1)</script>") + r"[^<]*<img[^<]*" + re.escape(place), text
        ), place
    assert "{{ 7*7 }}" in text and "49" not in re.findall(r"\{\{.*?\}\}", text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)


@pytest.mark.parametrize("shape", SHAPES)
def test_headings_form_an_outline_and_tables_have_headers(synthetic: ModuleType, shape: str) -> None:
    html = rendered(synthetic, shape)
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", html)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
        assert 'scope="col"' in table and 'scope="row' in table
    for drawing in re.findall(r"<svg[^>]*>", html):
        assert "aria-label=" in drawing or 'aria-hidden="true"' in drawing


def test_the_verdicts_stand_in_one_row_each(synthetic: ModuleType) -> None:
    page = parse(rendered(synthetic, "verify"))
    assert page.row("all fixes") == [
        "all fixesTL201, TL202, TL302, TL401",
        "▲ FASTER",
        "1.34 (1.32–1.36)",
        "stream moved",
        page.row("all fixes")[4],
        "3.10 → 2.77 GiB",
        "2 → 1",
        "212 → 187",
    ]
    assert re.fullmatch(r"12\.\d → 9\.\d\d ms", page.row("all fixes")[4])
    assert page.row("TL202:38")[0] == (
        "TL202:38 item-in-hot-loopAccumulate the tensor, and read it after the loop"
    )
    assert page.row("TL201:31")[1:4] == ["? UNCLEAR", "1.02 (0.97–1.07)", "stream moved"]
    rejected = page.row("TL302 grad-zeroed-in-placeSet")
    assert rejected[1:] == ["× REJECTED", "–", "failed", "–", "–", "–", "–"]


def test_what_was_not_measured_stands_in_one_row(synthetic: ModuleType) -> None:
    results = synthetic.verify_results()
    (found,) = results.measurements
    names = ("TL301", "TL501", "TL503")
    unreached = tuple(Comparison(name, Verdict.UNREACHED, "nothing that it changes ran") for name in names)
    more = replace(
        found,
        variants=(*found.variants, *(Variant(name, (name,)) for name in names)),
        comparisons=(*found.comparisons, *unreached),
    )
    page = parse(report.render(replace(results, measurements=(more,))))
    titles = [cells[0] for cells in page.rows]
    assert "TL301, TL501 and TL503" in titles and "TL501 tf32" not in " ".join(titles)
    assert page.row("TL301, TL501 and TL503")[1] == "– NOT REACHED"
    assert page.row("TL401 bias")[1] == "– UNMEASURED", "its memory is known"


def test_without_a_fix_there_is_nothing_to_measure(synthetic: ModuleType) -> None:
    bare = replace(synthetic.verify_results(), measurements=(Measurement("train.py"),))
    assert measurements.render(bare, 80).startswith("There is no fix to measure.\n")
    assert '<p class="lead">There is no fix to measure.</p>' in report.render(bare)
    stopped = replace(bare, interrupted=True)
    assert measurements.render(stopped, 80).startswith("Measured on")
    assert '<p class="lead">Nothing was measured.</p>' in report.render(stopped)


@pytest.mark.parametrize("shape", ["verify", "bench", "unfit"])
def test_what_occurs_is_explained(synthetic: ModuleType, shape: str) -> None:
    html = rendered(synthetic, shape)
    text = " ".join("".join(text for _, text in parse(html).text).split())
    for verdict in Verdict:
        assert (words.VERDICTS[verdict] in text) == (f"{verdict.value}</span></td>" in html), verdict
    assert words.AGREEMENTS[Agreement.DIFFERENT] in text
    assert words.AGREEMENTS[Agreement.UNCHECKED] in text


def test_the_outcome_is_told_in_a_sentence(synthetic: ModuleType) -> None:
    leads = {
        shape: " ".join(re.findall(r'<p class="lead">(.*?)</p>', rendered(synthetic, shape))[0].split())
        for shape in SHAPES
    }
    assert leads["verify"].startswith(
        "Apply TL202:38 (1.30 times as fast) and TL401:11 (208 MiB less memory)."
    )
    assert (
        "With all 4 fixes the program runs 1.34 (95 % interval 1.32–1.36) times as fast." in leads["verify"]
    )
    assert leads["verify"].endswith(
        "→ 2.77 GiB. Separately: 1 FASTER, 1 SAME, 1 SLOWER, 1 UNCLEAR, 2 REJECTED, 1 UNMEASURED."
    )
    assert leads["unfit"].startswith("Apply TL302:34 (151 MiB less memory) and TL401:11")
    assert "This machine does not reproduce the program&#39;s own time" in leads["unfit"]
    assert leads["bench"] == (
        "12 measurements: 5 FASTER, 2 SAME, 1 SLOWER, 1 UNCLEAR, 1 UNFIT, 1 REJECTED, 1 UNMEASURED."
    )


def test_the_speed_up_is_the_headline(synthetic: ModuleType) -> None:
    told = {
        shape: re.findall(r'<p class="headline"><strong>(.*?)</strong> (.*?)</p>', rendered(synthetic, shape))
        for shape in SHAPES
    }
    assert told["verify"] == [("1.34×", "as fast with all fixes")]
    assert told["bench"] == told["unfit"] == []


def test_without_a_speed_up_the_outcome_says_why() -> None:
    fixes = tuple(
        AppliedFix(code, "a-rule", "Read it after the loop", "safe", "train.py", row)
        for code, row in (("TL202", 3), ("TL302", 5))
    )
    variants = (Variant(ORIGINAL), Variant(TOGETHER, ("TL202", "TL302"), fixes))

    def told(verdict: Verdict) -> str:
        found = Measurement(
            "train.py",
            variants=variants,
            examinations=(Examination(ORIGINAL), Examination(TOGETHER)),
            comparisons=(Comparison(TOGETHER, verdict, "the time was up"),),
        )
        machine = Machine("cuda")
        page = report.render(Results("verify", "0", "2026-01-01T00:00:00+00:00", 1.0, machine, (found,)))
        return " ".join(page.replace("\N{NO-BREAK SPACE}", " ").split())

    assert "It is unclear whether the program is faster with both fixes." in told(Verdict.UNCLEAR)
    assert "The program with both fixes was not timed." in told(Verdict.UNMEASURED)


def test_a_variant_leads_to_its_diff(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "verify")
    (anchor,) = re.findall(r'<a href="#([^"]*)">TL202:38</a>', html)
    assert f'<h3 id="{anchor}">TL202:38</h3>' in html


def test_what_is_true_of_several_variants_is_said_once(synthetic: ModuleType) -> None:
    html = " ".join(rendered(synthetic, "verify").split())
    assert "<strong>all fixes, TL201:31 (results):</strong> Random numbers come from" in html
    results = synthetic.bench_results()
    unfit = tuple(item for item in results.measurements if item.noise is not None and not item.noise.fit)
    chapter = report.render(replace(results, measurements=unfit)).split("Rule by rule")[1]
    assert chapter.count("something else is using the machine.") == 1


def test_messages_show_code_as_code_and_fixes_of_fixes_as_such(synthetic: ModuleType) -> None:
    results = synthetic.verify_results()
    (found,) = results.measurements
    original, again, together, *others = found.variants
    fixes = (
        replace(together.fixes[0], message="Set `a < b`, or `c`"),
        replace(together.fixes[1], message="Odd `mark"),
        replace(together.fixes[2], message="", row=0),
    )
    changed = replace(
        found,
        variants=(original, again, replace(together, fixes=fixes), *others),
        notes=("Raise it with `--budget SECONDS`.",),
    )
    html = report.render(replace(results, measurements=(changed,)))
    assert "Raise it with <code>--budget SECONDS</code>." in html
    assert "TL201: Set <code>a &lt; b</code>, or <code>c</code> (line 31)" in html
    assert "TL202: Odd `mark (line 38)" in html
    assert "TL302: only after the other fixes" in html


def test_figures_that_nobody_saw_take_no_column(synthetic: ModuleType) -> None:
    with_gpu, without = parse(rendered(synthetic, "verify")), parse(rendered(synthetic, "cpu"))
    assert len(with_gpu.row("all fixes")) == 8 and len(without.row("all fixes")) == 5
    assert len(with_gpu.row("original again")) == 8 and len(without.row("original again")) == 5
    assert with_gpu.row("original again")[1:3] == ["fit", "1.002 (0.994–1.009)"]


def test_bench_has_a_chapter_for_each_rule_and_a_part_for_each_size(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "bench")
    page = parse(html)
    assert page.row("TL202")[:4] == ["TL202item-in-hot-loop", "small", "▲ FASTER", "1.41 (1.39–1.43)"]
    chapters = html.split('<details class="chapter">')[1:]
    assert len(chapters) == 4
    for chapter in chapters:
        assert chapter.count('<section class="part"') == 3
        # The diff is the same at every size.
        assert chapter.count('<pre class="diff">') == 1
        assert chapter.count("The fix is the one shown for small.") == 2


def test_the_source_is_annotated_with_what_the_fixes_left(synthetic: ModuleType) -> None:
    page = parse(rendered(synthetic, "verify"))
    lines = {cells[0]: cells for cells in page.rows if cells[0].isdigit()}
    assert lines["38"] == ["38", "TL202", "1 → 0", "3.10 ms", "            total += loss.item()"]
    assert lines["39"] == ["39", "", "1 → 1", "70.0 µs", "            if loss > 100:"]
    assert lines["31"][1:4] == ["TL201", "", ""] and lines["30"][1:4] == ["", "", ""]
    assert any(cells[0].endswith("site-packages/torch/optim/sgd.py:101") for cells in page.rows)
    html = rendered(synthetic, "verify")
    assert '<span class="del" data-row="38">-            total += loss.item()\n</span>' in html
    assert '<span class="add" data-row="38">+            total += loss.detach()\n</span>' in html


def test_predicted_and_seen_waits_are_joined(synthetic: ModuleType) -> None:
    page = parse(rendered(synthetic, "verify"))
    titles = [
        "Confirmed: predicted and observed",
        "Predicted, but reached without waiting",
        "Predicted, but not reached",
        "Observed, but not predicted",
    ]
    assert [cells[0] for cells in page.rows if cells[0] in titles] == titles
    assert "50 steps of the original were observed." in rendered(synthetic, "verify")
    assert any(cells[:4] == ["train.py:31", "TL201", "0", "–"] for cells in page.rows)


def test_without_a_gpu_the_page_says_what_was_not_seen(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "cpu")
    assert "Synchronizing calls are seen on CUDA devices only." in html
    assert "Where the host synchronizes" not in html and "Peak memory of a step" not in html
    assert page_figures(html) == 2


def page_figures(html: str) -> int:
    """The number of drawings."""
    return html.count("<figure>")


def test_a_figure_says_in_words_what_it_shows(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "verify")
    assert page_figures(html) == 3
    assert re.search(r'aria-label="Step times; medians: original 12\.\d ms, original again 12\.', html)
    assert 'aria-label="Peak memory: original 3.10 GiB, all fixes 2.77 GiB' in html
    assert "2 blocks are excluded from the statistics, marked with a cross" in html


def test_figures_tell_their_values_on_hover(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "verify")
    times, course, memory, *_ = html.split("<figure>")[1:]
    told = re.compile(r'<g><title>([^<]*)</title><path [^>]*fill="transparent"')
    assert (
        "original: median 12.5 ms, quartiles 12.4 ms and 12.6 ms, 60 blocks in 5 processes"
        in told.findall(times)
    )
    rounds = told.findall(course)
    assert len(rounds) == 60 and all(text.startswith("original 1") for text in rounds)
    assert "told: " not in html and told.findall(memory) == []
    (found,) = synthetic.verify_results().measurements
    seen = replace(found.examinations[0].evidence, roles=Roles(weights=1 << 30, when="forward pass"))
    known = replace(found, examinations=(replace(found.examinations[0], evidence=seen),))
    drawing = figures.memory(known, [ORIGINAL], "m1")
    assert drawing is not None and "weights 1.00 GiB" in told.findall(drawing.svg)


def test_a_single_replicate_is_not_called_several(synthetic: ModuleType) -> None:
    results = synthetic.verify_results()
    (found,) = results.measurements
    assert "rounds of 1 replicate<" not in report.render(results)
    once = replace(found, blocks=tuple(block for block in found.blocks if block.replicate == 0))
    assert "rounds of 1 replicate<" in report.render(replace(results, measurements=(once,)))


def test_the_same_results_give_the_same_page(synthetic: ModuleType) -> None:
    assert report.render(synthetic.verify_results()) == rendered(synthetic, "verify")


def test_little_is_enough_for_a_page(synthetic: ModuleType) -> None:
    results = synthetic.verify_results()
    (found,) = results.measurements
    nothing = report.render(replace(results, measurements=(), interrupted=True))
    assert "Nothing was measured." in nothing and "Interrupted." in nothing
    parse(nothing)
    for few in (
        replace(found, comparisons=(), blocks=(), noise=None),
        replace(found, blocks=found.blocks[:1], syncs=None),
        replace(found, examinations=(), variants=(), source=""),
        replace(found, blocks=tuple(replace(block, discarded="throttled") for block in found.blocks)),
    ):
        page = parse(report.render(replace(results, measurements=(few,))))
        assert page.tags["h1"] == 1
    only_syncs = replace(found, comparisons=(), blocks=(), noise=None, variants=(), examinations=())
    html = report.render(replace(results, measurements=(only_syncs,)))
    assert "1 confirmed, 1 reached without waiting, 1 predicted, not reached, 2 seen, not predicted." in html
    assert "training in train() 9.20 s" in html


def test_the_report_can_be_imported_without_what_it_draws_with() -> None:
    code = (
        "import sys, torchlint.verify.report, torchlint.render.measurements\n"
        "print(sorted({'jinja2', 'markupsafe', 'matplotlib', 'numpy', 'cattrs', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# --- the scale -------------------------------------------------------------------------------------------


def test_half_and_double_are_equally_far_from_one() -> None:
    axis = Axis.around([Interval(0.5, 0.5, 0.5), Interval(2.0, 2.0, 2.0)], 0.03)
    assert axis.at(1.0) == pytest.approx(50, abs=0.01)
    assert axis.at(2.0) - axis.at(1.0) == pytest.approx(axis.at(1.0) - axis.at(0.5), abs=0.02)


@pytest.mark.parametrize("ratio", [0.4, 0.93, 1.001, 1.34, 2.6, 12.0, 251.0])
def test_ticks_are_few_and_apart_and_one_is_among_them(ratio: float) -> None:
    axis = Axis.around([Interval(ratio, ratio * 0.99, ratio * 1.01)], 0.03)
    ticks = axis.ticks()
    assert "1" in [tick.text for tick in ticks] and 1 <= len(ticks) <= 6
    assert all(after.at - before.at >= 16 for before, after in pairwise(ticks))
    assert axis.beyond(ratio) == (ratio > 5)
    assert 0 <= axis.at(ratio) <= 100
    assert len(ticks) >= 2 or ratio < 1.1


# --- program text ----------------------------------------------------------------------------------------

DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1,4 +1,6 @@
 import torch
+import os
+import sys
 a = 1
---b
+++c
 d = 2
@@ -20,3 +22,2 @@
 x
-y
 z
--- a/other.py
+++ b/other.py
@@ -1 +1 @@
-p
+q
"""


def test_lines_of_a_diff_have_their_numbers(synthetic: ModuleType) -> None:
    html = rendered(synthetic, "verify")
    first = html.partition('<pre class="diff">')[2].partition("</pre>")[0]
    removed = re.search(r'<span class="del" data-row="(\d+)">-( *)(.*)\n', first)
    assert removed is not None
    assert synthetic.SCRIPT.splitlines()[int(removed[1]) - 1].strip() in removed[3].replace("&#39;", "'")
    assert re.search(r'<span class="hunk" data-row="">@@', first)


def test_a_diff_is_read_by_its_counts() -> None:
    lines = parse_diff(DIFF)
    assert changed_files(DIFF) == ["train.py", "other.py"]
    assert Counter(line.kind for line in lines) == {"file": 4, "hunk": 3, "same": 5, "add": 4, "del": 3}
    assert [(line.kind, line.text) for line in lines if "b" in line.text and line.kind == "del"] == [
        ("del", "---b")
    ]


@pytest.mark.parametrize(
    ("row", "original"),
    [(1, 1), (2, None), (3, None), (4, 2), (5, 3), (6, 4), (10, 8), (22, 20), (23, 22), (40, 39)],
)
def test_rows_of_the_fixed_file_are_found_in_the_original(row: int, original: int | None) -> None:
    assert to_original(parse_diff(DIFF), "train.py", row) == original


def test_a_file_that_the_diff_does_not_touch_keeps_its_rows() -> None:
    assert to_original(parse_diff(DIFF), "model.py", 7) == 7
    assert to_original(parse_diff(DIFF), "other.py", 1) == 1


def test_a_long_program_is_shown_around_its_marks() -> None:
    source = "".join(f"line{number}\n" for number in range(1, 201))
    waits = [Line("a.py", 100, 1.0, 0.001, "aten::item"), Line("a.py", 100, 0.5, 0.002, "aten::nonzero")]
    shown = annotate(source, [], waits, [(150, Line("a.py", 151, 2.0))])
    assert [line.row for line in shown] == [0, *range(97, 104), 0, *range(147, 154), 0]
    marked = {line.row: line for line in shown if line.marked}
    assert marked.keys() == {100, 150}
    assert (marked[100].before, marked[100].after, marked[100].what) == (
        1.5,
        0.0,
        "aten::item, aten::nonzero",
    )
    assert marked[100].seconds == pytest.approx(0.003)
    assert (marked[150].before, marked[150].after) == (None, 2.0)
    assert annotate(source, [], [], None) == []


# --- as it is seen ---------------------------------------------------------------------------------------

# Every text that is shown, with the contrast between its colour and what lies behind it.
FAINT = """
(() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const parse = text => [...numbers(text), 1].slice(0, 4);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.closest('svg') ? style.fill : style.color);
    let back = [255, 255, 255, 1];
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color[3] === 1) { back = color; break; }
    }
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)}: ${node.data.trim().slice(0, 40)}`);
  }
  return [seen, faint];
})()
"""

# What is wider than the page although nothing around it scrolls.
WIDE = """
[...document.querySelectorAll('main *, header *')].filter(element => {
  const box = element.getBoundingClientRect();
  if (!box.width || element.closest('.scroll, pre, .hidden, svg')) return false;
  return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
}).map(element => element.outerHTML.slice(0, 80))
"""


def load_browser() -> ModuleType:
    """``browser.py`` beside this file; the tests are no package."""
    spec = importlib.util.spec_from_file_location("torchlint_browser", Path(__file__).with_name("browser.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    module = load_browser()
    program = module.find()
    if program is None:
        pytest.skip(f"no Chromium on PATH ({', '.join(module.NAMES)}): nobody looked at the page")
    with module.launch(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.mark.parametrize(
    ("shape", "dark", "width"),
    [
        *(
            (shape, dark, width)
            for shape in ("verify", "bench")
            for dark in (False, True)
            for width in (390, 1280)
        ),
        ("hostile", False, 390),
    ],
)
def test_the_page_in_a_browser(
    synthetic: ModuleType, chromium: Any, tmp_path: Path, shape: str, dark: bool, width: int
) -> None:
    path = tmp_path / f"{shape}.html"
    path.write_text(rendered(synthetic, shape), encoding="utf-8")
    looked_at(chromium, path, tmp_path, dark=dark, width=width)


@pytest.mark.parametrize("page", ["index.html", f"repositories/{slug('team/a')}.html"])
@pytest.mark.parametrize(("dark", "width"), [(False, 390), (True, 390), (False, 1280), (True, 1280)])
def test_the_site_in_a_browser(chromium: Any, tmp_path: Path, page: str, dark: bool, width: int) -> None:
    """The pages of `torchlint report`, which have the same look."""
    site = Site(Shelf(tmp_path / "site"))
    kinds = product(("high", "medium", "low"), ("safe", ""), (False, True))
    found = tuple(
        Finding(
            *(
                "TL202",
                "item-in-hot-loop",
                "`loss.item()` waits",
                "Keep `loss`",
                "warning",
                impact,
                advice,
                fix,
            ),
            *("a.py", None, 3, 5, 3, 1, ("for x in y:", "    z", "    loss.item()  # " + "long " * 40)),
        )
        for impact, fix, advice in kinds
    )
    site.add(Record("team/a", "/src/team/a", "2026-01-01", 1.0, found * 3))
    site.add(Record("other/b", "/src/other/b", "2026-01-01", 1.0, error="there is no such folder"))
    site.finish()
    looked_at(chromium, tmp_path / "site" / page, tmp_path, dark=dark, width=width, texts=100)


def looked_at(chromium: Any, path: Path, folder: Path, *, dark: bool, width: int, texts: int = 200) -> None:
    """A page is whole and legible, and fits."""
    chromium.open(path, width=width, dark=dark)
    assert chromium.complaints() == []
    assert chromium.requests() == [path.as_uri()]
    chromium.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true; })")
    assert chromium.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert chromium.evaluate(WIDE) == []
    seen, faint = chromium.evaluate(FAINT)
    assert seen > texts
    assert faint == []
    page, ink = chromium.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (sum(map(int, re.findall(r"\d+", page))) < sum(map(int, re.findall(r"\d+", ink)))) == dark
    chromium.screenshot(folder / "page.png", whole=False)
    assert (folder / "page.png").stat().st_size > 20_000


def test_the_original_is_among_the_figures(synthetic: ModuleType) -> None:
    (found,) = synthetic.verify_results().measurements
    assert words.step_seconds(found, ORIGINAL) == pytest.approx(0.0125, rel=0.05)


def test_losses_are_drawn_of_what_only_rounds_otherwise(synthetic: ModuleType) -> None:
    results = synthetic.verify_results()
    (found,) = results.measurements
    names = (ORIGINAL, TOGETHER)
    curves = tuple(
        Curve(name, seed, tuple(1 / (step + 1 + seed) for step in range(100)))
        for seed in range(3)
        for name in names
    )
    html = report.render(replace(results, measurements=(replace(found, curves=curves),)))
    assert page_figures(html) == 4
    assert "Losses of the original and of all fixes (dashed), trained from 3 seeds each." in html
    failed = tuple(replace(item, losses=()) for item in curves if item.variant == TOGETHER)
    html = report.render(replace(results, measurements=(replace(found, curves=(*curves[::2], *failed)),)))
    assert page_figures(html) == 3, "nothing can be drawn beside the original"
