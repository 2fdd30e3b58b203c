"""The documentation site is built without a warning, and has what is found in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint import effects, links
from torchlint.dev import ROOT, site, speedups
from torchlint.registry import catalogue


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_rule_has_a_page_with_badges(built: Path) -> None:
    for code in catalogue():
        page = (built / "rules" / code / "index.html").read_text(encoding="utf-8")
        assert 'class="badge' in page, code
    listed = (built / "rules" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{code}/"' in listed for code in catalogue())
    assert '<span class="badge measured">measured</span>' in listed
    assert '<span class="badge high">up to high impact</span>' in listed


def test_measured_speed_ups_are_drawn(built: Path) -> None:
    page = (built / "rules" / "TL202" / "index.html").read_text(encoding="utf-8")
    drawn = page.partition('id="measured"')[2]
    timed = [effect for effect in effects.of("TL202") if effect["speedup"] is not None]
    assert timed
    assert drawn.count('<div class="speedup">') == len(timed)
    untimed = next(code for code in catalogue() if not effects.of(code))
    assert 'class="speedup' not in (built / "rules" / untimed / "index.html").read_text(encoding="utf-8")


def test_the_page_of_all_speed_ups_goes_from_the_largest_to_the_least(built: Path) -> None:
    page = (built / "worth" / "index.html").read_text(encoding="utf-8")
    listed = re.findall(r'href="../rules/(TL\d+)/">TL\d+</a> [\w-]+</span>', page)
    timed = {
        code: max(e["speedup"]["low"] for e in effects.of(code) if e["speedup"] is not None)
        for code in catalogue()
        if any(e["speedup"] is not None for e in effects.of(code))
    }
    assert listed == sorted(timed, key=lambda code: (-timed[code], code))


@pytest.mark.parametrize(
    ("ratio", "place"), [(0.5, 0.0), (0.1, 0.0), (1.0, 100 / 6), (4.0, 50.0), (32.0, 100.0), (99.0, 100.0)]
)
def test_the_axis_is_logarithmic(ratio: float, place: float) -> None:
    effect = {
        "machine": "GPU",
        "size": "small",
        "verdict": "FASTER",
        "speedup": {"ratio": ratio, "low": ratio, "high": ratio},
    }
    assert f'<i class="ratio" style="left: {place:.1f}%">' in speedups.by_size([effect])


def test_the_guide_to_verify_shows_a_report(built: Path) -> None:
    guide = (built / "verify" / "index.html").read_text(encoding="utf-8")
    (shown,) = re.findall(r'<iframe [^>]*src="([^"]+)"', guide)
    page = (built / "verify" / shown).read_text(encoding="utf-8")
    assert "<title>torchlint verify: gpt.py</title>" in page
    assert "pictures/verify.png" not in guide
    assert "verify.png" in (built / "index.html").read_text(encoding="utf-8")


def test_guides_are_searched(built: Path) -> None:
    index = json.loads((built / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"", "getting-started/", "adopting/", "faq/", "editors/", "rules/TL202/"} <= found


def test_the_first_page_is_the_readme_without_the_rules(built: Path) -> None:
    page = (built / "index.html").read_text(encoding="utf-8")
    assert "What it looks like" in page
    assert page.count("rules/TL2") < 20 + len(catalogue())  # the menu has each once
    assert "begin rules" not in page


@pytest.mark.parametrize(
    ("link", "made"),
    [
        ("[a](configuration.md#b)", "[a](configuration.md#b)"),
        ("[`a`](../templates/x.yml#L2)", "[`a`](https://example.org/t/blob/HEAD/templates/x.yml#L2)"),
        ("[a](https://example.org)", "[a](https://example.org)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_links_out_of_the_site(link: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "declared", lambda: {"repository": "https://example.org/t/"})
    assert site._LINK.sub(lambda found: site._led(found, "gitlab.md"), link) == made
    monkeypatch.setattr(links, "declared", dict)
    told = site._LINK.sub(lambda found: site._led(found, "gitlab.md"), "see [`a`](../templates/x.yml)")
    assert told == "see `a`"
