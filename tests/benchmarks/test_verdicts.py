"""What is kept of the runs of ``verify`` on real programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import verdicts
from torchlint.verify.results import dump


def interval(ratio: float, half: float) -> dict[str, float]:
    return {"ratio": ratio, "low": ratio * (1 - half), "high": ratio * (1 + half)}


def results(*comparisons: dict[str, object]) -> dict[str, object]:
    """One run as its JSON has it, with two blocks of half a second."""
    block = {"variant": "TL201", "replicate": 0, "steps": 10, "wall": 0.5}
    measurement = {
        "blocks": [block, {**block, "replicate": 1}],
        "examinations": [
            {
                "variant": "original",
                "sameness": {"agreement": "identical"},
                "startup_seconds": 1.0,
                "step_seconds": 0.01,
            }
        ],
        "comparisons": list(comparisons),
        "noise": {"wall": interval(1.0, 0.01), "fit": True},
    }
    return {"measurements": [measurement], "seconds": 2.0, "taken": 2.5, "status": 0}


def compared(name: str, verdict: str, **more: object) -> dict[str, object]:
    return {"variant": name, "verdict": verdict, "reason": "", "wall": None, "work": None, **more}


def test_a_run_is_summed_up() -> None:
    found = verdicts.summary(
        results(
            compared("TL201", "FASTER", wall=interval(1.2, 0.02)),
            compared("TL301", "SAME DEVICE WORK", work=interval(1.0, 0.06)),
            compared("TL401", "NOT REACHED"),
            compared("TL501", "UNFIT"),
        )
    )
    assert found["timed_share"] == 0.5
    assert found["variants"]["TL201"]["processes"] == 2
    assert found["variants"]["TL201"]["half_width"] == pytest.approx(0.02)
    row = verdicts.overall({"one": found, "two": {"failed": "it has no steps"}})
    assert (row["programs"], row["failed"], row["variants"], row["reached"]) == (2, 1, 4, 3)
    assert row["decided"] == 2
    assert row["decided_share"] == pytest.approx(2 / 3, abs=1e-3)
    assert row["narrow_share"] == 0.5


def test_scripts_are_named_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "scripts.toml"
    file.write_text('[one]\nfolder = "a"\ncommand = ["train.py", "--", "--fast"]\npython_path = ["b"]\n')
    (program,) = verdicts.given(file)
    assert program.command == ("train.py", "--", "--fast")
    assert program.folder == tmp_path / "a" and program.python_path == (str(tmp_path / "b"),)


def test_programs_of_the_repository_are_told_to_go_on(tmp_path: Path) -> None:
    found = {item.name: item.command for item in verdicts.own(["dcgan", "gpt"], tmp_path)}
    assert found == {"dcgan": ("dcgan.py", "--", "--epochs", verdicts.EPOCHS), "gpt": ("gpt.py",)}


def test_what_is_kept_says_what_was_found() -> None:
    for label in json.loads(verdicts.RESULTS.read_text("utf-8")).values():
        assert label["summary"] == verdicts.overall(label["programs"])


def test_two_machines_agree_where_their_intervals_overlap(tmp_path: Path, synthetic: Any) -> None:
    for number, name in enumerate(("one", "other")):
        (tmp_path / name).mkdir()
        written = dump(synthetic.verify_results(number))
        (tmp_path / name / "verify-train.json").write_text(written, encoding="utf-8")
    found = verdicts.compared(tmp_path / "one", tmp_path / "other")
    assert found["summary"]["wall"]["of"] == len(found["programs"]["train"]) > 3
    assert 0 < found["summary"]["wall"]["overlap"] <= found["summary"]["wall"]["of"]
    assert verdicts.compared(tmp_path / "one", tmp_path)["summary"]["wall"]["of"] == 0


def test_what_is_kept_of_two_machines_adds_up() -> None:
    kept = json.loads(verdicts.MACHINES.read_text("utf-8"))
    for measure, count in kept["summary"].items():
        told = [
            item[measure]
            for program in kept["programs"].values()
            for item in program.values()
            if measure in item
        ]
        assert count == {"overlap": sum(item["overlap"] for item in told), "of": len(told)}
