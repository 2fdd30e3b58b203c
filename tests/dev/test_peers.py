"""The table and the plot of what a run costs: what was measured, and what could not be, is in them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from torchlint.dev import peers

MB = 2_000_000


def tool(name: str, kind: str = "peer", error: str | None = None) -> dict[str, Any]:
    return {"name": name, "kind": kind, "version": "1.0", "packages": {}, "error": error}


def series(name: str, cpu: list[float], **other: Any) -> dict[str, Any]:
    rounds = [
        {"cpu_seconds": value, "wall_seconds": value * 2, "peak_mib": 10 * value, "status": 1, "lines": 3}
        for value in cpu
    ]
    usual = {"processes": "one", "several": "", "state": "cold", "files": 8, "bytes": MB, "error": None}
    return {"tool": name, "kind": "peer", "command": name, "rounds": rounds, **usual, **other}


@pytest.fixture
def results() -> dict[str, Any]:
    return {
        "started": "2026-01-02T03:04:05+00:00",
        "machine": {"processors": 2, "python": "3.11.7", "commit": "abcdef0", "load_average_at_start": 0.2},
        "rounds": {"all": 3, "slow": 1, "slow_beyond_seconds": 30.0, "limit_seconds": 600.0},
        "tools": [
            tool("slow<er"),
            tool("ours", "torchlint"),
            tool("base", "reference"),
            tool("gone", error="not installed: no such version"),
            tool("halted"),
            tool("part"),
        ],
        "trees": [
            {
                "name": "tree-1.0",
                "files": 8,
                "bytes": MB,
                "series": [
                    series("slow<er", [80.0], processes="default", several="a thread for each processor"),
                    series("ours", [4.0, 10.0, 3.0]),
                    series("ours", [0.5, 0.25, 0.75], state="warm"),
                    series("ours", [6.0], processes="default", several="a process for each processor"),
                    series("base", [2.0]),
                    series("halted", [], error="stopped after 600 s"),
                    series("part", [3.0], files=2, bytes=MB // 4),
                ],
            }
        ],
    }


def test_rows_are_medians_for_a_mb_and_sorted(results: dict[str, Any]) -> None:
    found = peers.rows(results, results["trees"][0])
    assert [row.name for row in found] == ["base", "ours", "part", "slow<er", "gone", "halted"]
    ours = found[1]
    assert (ours.cpu, ours.low, ours.high, ours.rate) == (4.0, 3.0, 10.0, 2.0)
    assert (ours.wall, ours.warm, ours.memory) == (12.0, 0.5, 100.0)
    assert ours.note == "a process for each processor"
    assert found[2].rate == 6.0 and found[2].note == "on 2 of the files"
    assert found[3].note == "no setting for one process; a thread for each processor"
    assert found[4].rate is None and found[4].note == "not installed: no such version"
    assert found[5].note == "stopped after 600 s"


def test_a_way_that_failed_is_told_beside_those_that_did_not(results: dict[str, Any]) -> None:
    results["trees"][0]["series"][3] |= {"rounds": [], "error": "exit status 2: boom"}
    ours = peers.rows(results, results["trees"][0])[1]
    assert ours.cpu == 4.0 and ours.wall == 8.0
    assert ours.note == "exit status 2: boom"


def test_the_table(results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "RESULTS", tmp_path / "peers.json")
    assert peers.summary() == "" and peers.generate() == {}
    peers.RESULTS.write_text(json.dumps(results), encoding="utf-8")
    text = peers.summary()
    assert "(docs/peers-tree.svg)" in text and "(8 files, 2.0 MB)" in text
    assert "medians of 3 rounds (1 of what takes longer than 30 s) with 2 processors" in " ".join(
        text.splitlines()
    )
    assert "busy" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows[:2] == [
        "| *base* | 1.0 | 2 s | 1 s | 0.5 × | 4 s | – | 20 MiB |  |",
        "| **ours** | 1.0 | 4 s | 2 s | 1 × | 12 s | 0.5 s | 100 MiB | a process for each processor |",
    ]
    assert rows[4] == "| gone | 1.0 | – | – | – | – | – | – | not installed: no such version |"
    assert list(peers.generate()) == [peers.PLOTS / "peers-tree.svg"]


def test_the_reader_is_told_of_a_busy_machine(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "RESULTS", tmp_path / "peers.json")
    results["machine"]["load_average_at_start"] = 6.78
    peers.RESULTS.write_text(json.dumps(results), encoding="utf-8")
    assert "busy with other things (load 6.8)" in " ".join(peers.summary().splitlines())


def test_the_plot_has_a_bar_for_each_that_was_measured(results: dict[str, Any]) -> None:
    found = peers.rows(results, results["trees"][0])
    root = ET.fromstring(peers.plot(found))
    space = "{http://www.w3.org/2000/svg}"
    bars = root.findall(f".//{space}rect")
    assert [bar.get("class") for bar in bars] == ["reference", "torchlint", "peer", "peer"]
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths[3] == pytest.approx(20 * widths[1], rel=0.01) and widths[3] <= 470
    texts = [text.text for text in root.findall(f".//{space}text")]
    assert "slow<er" in texts and "40" in texts and "gone" not in texts
    assert len(root.findall(f".//{space}line")) == 1  # only one was run more than once


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0614, "0.0614"), (4.0, "4"), (27.27, "27.3"), (141.4, "141"), (1234.5, "1234"), (0, "0.000")],
)
def test_figures_have_no_exponent(value: float, told: str) -> None:
    assert peers._figure(value) == told


def test_a_later_run_over_projects_is_told(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "RESULTS", tmp_path / "peers.json")
    peers.RESULTS.write_text(json.dumps(results), encoding="utf-8")
    name = results["trees"][0]["name"]
    costs = {"cold": {"cpu_seconds": 31.4}, "alone": {"cpu_seconds": 10.7}, "machine": {"commit": "abc1234"}}
    projects = tmp_path / "projects.json"
    projects.write_text(json.dumps({name.rpartition("-")[0]: costs}), encoding="utf-8")
    told = (
        f"At abc1234, torchlint takes 31 s of CPU time for {name} as a project, and 11 s with `--no-project`."
    )
    assert told in " ".join(peers.summary().split())
    projects.write_text(json.dumps({"other": costs}), encoding="utf-8")
    assert "abc1234" not in peers.summary()
