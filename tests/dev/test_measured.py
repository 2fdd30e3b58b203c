"""The documentation of what was measured: made from results files, absent without them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from torchlint.dev import __main__ as command
from torchlint.dev import measured, pages, readme
from torchlint.verify.results import Interval, Results, Verdict, dump


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of results in an otherwise empty checkout."""
    folder = tmp_path / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (tmp_path / "README.md").write_text(
        "a\n<!-- begin measured -->\nold\n<!-- end -->\nb\n", encoding="utf-8"
    )
    monkeypatch.setattr(measured, "RESULTS", folder)
    monkeypatch.setattr(measured, "PAGE", tmp_path / "docs" / "measured.md")
    monkeypatch.setattr(measured, "DATA", tmp_path / "torchlint" / "effects.json")
    monkeypatch.setattr(pages, "DIRECTORY", tmp_path / "docs" / "rules")
    monkeypatch.setattr(readme, "README", tmp_path / "README.md")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "GENERATORS", (pages.generate, readme.generate, measured.generate))
    return folder


def put(folder: Path, name: str, results: Results) -> None:
    """Keep results."""
    (folder / f"{name}.json").write_text(dump(results), encoding="utf-8")


def test_without_results_there_is_nothing_to_tell(kept: Path) -> None:
    assert measured.generate() == {}
    assert measured.summary() == ""
    assert measured.section([], "TL202") == ""
    assert command.main(["generate"]) == 0
    assert readme.README.read_text(encoding="utf-8") == "a\n<!-- begin measured -->\n<!-- end -->\nb\n"
    assert not measured.PAGE.exists()
    assert "## Measured" not in (pages.DIRECTORY / "TL202.md").read_text(encoding="utf-8")


def test_the_documents_are_written_and_then_current(
    kept: Path, synthetic: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kept, "bench-a", synthetic.bench_results())
    put(kept, "verify-train", synthetic.verify_results())
    assert command.main(["generate", "--check"]) == 1
    assert command.main(["generate"]) == 0
    assert "docs/measured.md" in capsys.readouterr().out
    assert command.main(["generate", "--check"]) == 0
    page = (pages.DIRECTORY / "TL202.md").read_text(encoding="utf-8")
    assert page.endswith(
        "\n## Measured\n\nOn NVIDIA H200, torch 2.11.0+cu130, 2026-11-21, by `torchlint bench TL202`:\n\n"
        "* small: FASTER 1.41 (1.39–1.43); results identical; peak memory 3.10 → 2.82 GiB; synchronizing "
        "calls per step 2 → 1.\n"
        "* medium: UNCLEAR 1.03 (0.98–1.08); results identical; synchronizing calls per step 2 → 1.\n"
        "* large: SAME 1.01 (1.00–1.02); results identical; synchronizing calls per step 2 → 1.\n"
    )
    assert "## Measured" not in (pages.DIRECTORY / "TL105.md").read_text(encoding="utf-8")


def test_the_readme_has_a_line_for_each_rule(kept: Path, synthetic: ModuleType) -> None:
    put(kept, "bench-a", synthetic.bench_results())
    text = measured.summary()
    assert (
        "| [TL302](docs/rules/TL302.md) | grad-zeroed-in-place | FASTER 1.22 (1.21–1.23) "
        "| SAME 1.01 (1.00–1.02) | SLOWER 0.94 (0.93–0.95) | small: 3.10 → 2.82 GiB |\n"
    ) in text
    assert "| UNFIT | REJECTED | UNMEASURED |" in text
    told = " ".join(text.split())
    assert "Faster at some size: TL201, TL202, TL302. Slower at some size: TL302." in told
    assert "No faster, but with less memory: TL401." in told
    assert "REJECTED: The fix changes the results, or the fixed program fails" in told
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 110


def test_a_rule_that_gains_nothing_is_named(kept: Path, synthetic: ModuleType) -> None:
    results = synthetic.bench_results()
    same = tuple(item for item in results.measurements if item.subject == "TL302" and item.size == "medium")
    put(kept, "bench-a", replace(results, measurements=same))
    text = measured.summary()
    assert "| SAME 1.01 (1.00–1.02) | same |" in text
    assert (
        "No fix is faster at any size. The same time and the same memory at every size: TL302."
        in " ".join(text.split())
    )


def test_the_latest_counts_and_the_others_show_that_it_repeats(kept: Path, synthetic: ModuleType) -> None:
    first = synthetic.bench_results()
    later = synthetic.bench_results(1, started="2026-11-22T08:00:00+00:00")
    moved = tuple(
        replace(
            item,
            comparisons=tuple(replace(found, wall=Interval(1.5, 1.48, 1.52)) for found in item.comparisons),
        )
        if (item.subject, item.size) == ("TL202", "small")
        else item
        for item in later.measurements
    )
    # The name of the file does not matter, the time of the measurement does.
    put(kept, "bench-a", replace(later, measurements=moved))
    put(kept, "bench-b", first)
    page = measured.generate()[measured.PAGE]
    (row,) = re.findall(r"^\| \[TL202\].*\| small \|.*FASTER.*$", page, re.MULTILINE)
    assert "| identical | FASTER 1.50 (1.48–1.52) |" in row
    assert "The intervals overlap in 8 of 9 comparisons." in " ".join(page.split())
    assert "| small | 1.41 (1.39–1.43), 2026-11-21 | 1.50 (1.48–1.52), 2026-11-22 | no |" in page
    assert "2026-11-22, by `torchlint bench TL202`" in measured.section(measured.load("bench"), "TL202")


def test_what_a_machine_was_unfit_for_replaces_nothing(kept: Path, synthetic: ModuleType) -> None:
    first = synthetic.bench_results()
    later = synthetic.bench_results(1, started="2026-11-22T08:00:00+00:00")
    unfit = tuple(
        replace(
            item,
            comparisons=tuple(replace(found, verdict=Verdict.UNFIT, wall=None) for found in item.comparisons),
        )
        for item in later.measurements
    )
    put(kept, "bench-a", first)
    put(kept, "bench-b", replace(later, measurements=unfit))
    section = measured.section(measured.load("bench"), "TL202")
    assert "2026-11-21, by `torchlint bench TL202`" in section
    assert "UNFIT" not in section


def test_machines_are_not_mixed(kept: Path, synthetic: ModuleType) -> None:
    put(kept, "bench-a", synthetic.bench_results())
    put(kept, "bench-b", replace(synthetic.bench_results(), machine=synthetic.LAPTOP))
    page = measured.generate()[measured.PAGE]
    assert "## The rules, on NVIDIA H200, torch 2.11.0+cu130\n" in page
    assert "## The rules, on CPU, torch 2.13.0+cpu\n" in page
    assert "## Measured again" not in page
    section = measured.section(measured.load("bench"), "TL202")
    assert section.count("by `torchlint bench TL202`") == 2


def test_programs_have_a_line_for_each_variant(kept: Path, synthetic: ModuleType) -> None:
    put(kept, "verify-train", synthetic.verify_results())
    page = measured.generate()[measured.PAGE]
    assert "## Whole programs, on NVIDIA H200" in page and "## The rules" not in page
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 8 and all(line.count("|") == 9 for line in rows)
    assert rows[0].startswith("| `train.py` | all fixes | stream moved | FASTER 1.34 (1.32–1.36) | 12.")
    assert rows[1].startswith("|  | TL202:38 | identical | FASTER 1.30 (1.28–1.31) | 12.")
    assert rows[6] == "|  | TL302 | failed | REJECTED | – | – | – | – |"


def test_it_is_said_whether_programs_repeat_on_another_machine(kept: Path, synthetic: ModuleType) -> None:
    first = synthetic.verify_results()
    put(kept, "verify-train", first)
    assert "on two machines" not in measured.generate()[measured.PAGE]
    put(kept, "verify-train-again", replace(synthetic.verify_results(1), started="2020-01-01T00:00:00+00:00"))
    told = " ".join(measured.generate()[measured.PAGE].split())
    again = re.search(
        r"two machines of the same kind: `train.py`\. Of each fix, .* overlap in (\d+) of (\d+)", told
    )
    assert again is not None and int(again[2]) > 3
    (kept / "verify-train-again.json").unlink()
    machine = replace(first.machine, gpu="NVIDIA H100")
    put(kept, "verify-train-h100", replace(synthetic.verify_results(1), machine=machine))
    told = " ".join(measured.generate()[measured.PAGE].split())
    same = re.search(r"intervals of the speed-up overlap in (\d+) of (\d+) cases", told)
    assert same is not None and int(same[1]) == int(same[2]) > 3 and "Apart:" not in told
    (measurement,) = first.measurements
    slower = tuple(
        replace(block, wall=2 * block.wall) if block.variant == "together" else block
        for block in measurement.blocks
    )
    put(
        kept,
        "verify-train-h100",
        replace(first, machine=machine, measurements=(replace(measurement, blocks=slower),)),
    )
    told = " ".join(measured.generate()[measured.PAGE].split())
    assert f"overlap in {int(same[2]) - 1} of {same[2]} cases" in told
    assert re.search(r"\| `train.py` \| all fixes \| time \| 0\.67\S* \(.*?\) \| 1\.34\S* \(", told)


def test_programs_of_several_ranks_have_tables_of_their_own(kept: Path, synthetic: ModuleType) -> None:
    results = synthetic.bench_results()
    alone = [item for item in results.measurements if item.subject != "TL202"]
    several = [replace(item, ranks=2) for item in results.measurements if item.subject == "TL202"]
    on_processor = [replace(item, device="cpu") for item in several[:1]]
    put(kept, "bench-a", replace(results, measurements=(*alone, *several[1:], *on_processor)))
    page = measured.generate()[measured.PAGE]
    assert "## The rules, on NVIDIA H200, torch" in page
    assert "## The rules, on 2 × NVIDIA H200, torch" in page
    # What ran on the processor is no figure of a GPU.
    assert f"## The rules, on 2 ranks on {results.machine.processor}, torch" in page
    summary = " ".join(measured.summary().split())
    assert "On 2 × NVIDIA H200, torch 2.11.0+cu130, where the slowest rank counts: " in summary
    assert "2 ranks on" not in summary
    assert summary.count("| [TL202]") == 1


def moved(results: Results, subject: str, size: str, wall: Interval) -> Results:
    """Results in which one case has another ratio."""
    measurements = tuple(
        replace(item, comparisons=tuple(replace(found, wall=wall) for found in item.comparisons))
        if (item.subject, item.size) == (subject, size)
        else item
        for item in results.measurements
    )
    return replace(results, measurements=measurements)


def test_machines_are_pooled_where_one_figure_is_shown(kept: Path, synthetic: ModuleType) -> None:
    first = synthetic.bench_results()
    again = moved(
        replace(
            first, started="2026-11-22T08:00:00+00:00", machine=replace(first.machine, gpu="NVIDIA H100")
        ),
        "TL302",
        "small",
        Interval(1.5, 1.48, 1.52),
    )
    put(kept, "bench-a", first)
    put(kept, "bench-b", again)
    told = " ".join(measured.summary().split())
    assert "Measured on NVIDIA H200 and NVIDIA H100, torch 2.11.0+cu130:" in told
    (row,) = re.findall(r"\| \[TL302\].*?\| small:", told)
    ratio, low, high = map(float, re.findall(r"\| FASTER (\S+) \((\S+)–(\S+)\)", row)[0])
    # Machines that contradict each other leave an interval that reaches from one to the other, and further.
    assert 1.3 < ratio < 1.4 and low < 1.22 and high > 1.5


def test_another_program_is_not_pooled_with_the_one_before(kept: Path, synthetic: ModuleType) -> None:
    first = synthetic.bench_results()
    later = moved(first, "TL302", "small", Interval(2.0, 1.98, 2.02))
    rewritten = tuple(replace(item, source="changed") for item in later.measurements)
    put(kept, "bench-a", first)
    put(kept, "bench-b", replace(later, started="2026-11-22T08:00:00+00:00", measurements=rewritten))
    assert "FASTER 2.00 (1.98–2.02)" in measured.summary()


def test_a_run_is_held_against_what_is_published(
    kept: Path, synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = synthetic.bench_results()
    put(kept, "bench-a", first)
    run = tmp_path / "run.json"
    again = replace(first, started="2026-11-23T08:00:00+00:00")
    run.write_text(dump(again), encoding="utf-8")
    assert command.main(["contradicted", str(run)]) == 0
    run.write_text(dump(moved(again, "TL302", "small", Interval(1.5, 1.48, 1.52))), encoding="utf-8")
    assert command.main(["contradicted", str(run)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "No published figure is contradicted.",
        "TL302 small: published 1.22 (1.21–1.23), here 1.50 (1.48–1.52)",
    ]
    run.write_text(dump(replace(again, measurements=())), encoding="utf-8")
    assert command.main(["contradicted", str(run)]) == 2
