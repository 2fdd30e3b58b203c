"""The terminal's form of measurements: one line a variant, then the sentences."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from torchlint.render import measurements
from torchlint.render.snippet import cells
from torchlint.verify import words
from torchlint.verify.results import Interval, SyncReport


def table_line(text: str, start: str) -> str:
    """The one line of the table that begins with ``start``."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"{start} "))
    return re.sub(" +", " ", line)


def test_a_script_is_one_line_a_variant(synthetic: Any) -> None:
    text = measurements.render(synthetic.verify_results(), 80)
    assert text.startswith(
        "Apply TL202:38 (1.30 times as fast) and TL401:11 (208 MiB less memory). TL302:34\n  makes it slower."
    )
    assert (
        "\n\nMeasured on NVIDIA H200, torch 2.11.0+cu130, CUDA 13.0, driver 570.124.06, in 1\n  min" in text
    )
    assert table_line(text, "original").startswith("original 12.")
    assert table_line(text, "original").endswith("ms per step 3.10 GiB 2 212")
    assert (
        table_line(text, "all fixes") == "all fixes moved 1.34 (1.32–1.36) FASTER 3.10→2.77 GiB 2→1 212→187"
    )
    assert table_line(text, "TL202:38") == "TL202:38 identical 1.30 (1.28–1.31) FASTER 3.10 GiB 2→1 212→211"
    assert table_line(text, "TL401:11") == "TL401:11 close 1.01 (0.99–1.02) SAME 3.10→2.90 GiB 2 212→205"
    # A time without interest is not shown, whatever was measured.
    assert table_line(text, "TL201") == "TL201 different – REJECTED 3.10 GiB 2 212"
    assert table_line(text, "TL302") == "TL302 failed – REJECTED – – –"


def test_reasons_notes_and_what_was_left_out_follow(synthetic: Any) -> None:
    text = " ".join(measurements.render(synthetic.verify_results(), 80).split())
    assert "Differences below 3 % count as the same." in text
    assert "TL201:31: The interval reaches from 0.97 to 1.07, over the threshold of 3 %." in text
    assert "TL201, results: The loss at step 3 differs by 41 %" in text
    assert "RuntimeError: element 0 of tensors does not require grad" in text
    assert "The program ended after 640 steps" in text
    assert "TL401 was not timed: the budget of 120 s is spent." in text


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("shape", ["bench_results", "verify_results"])
def test_no_line_is_wider_than_the_terminal(synthetic: Any, shape: str, width: int) -> None:
    text = measurements.render(getattr(synthetic, shape)(), width)
    paths = ("  /opt/venv/",)  # a path is never cut
    assert [line for line in text.splitlines() if cells(line) > width and not line.startswith(paths)] == []


def test_bench_is_one_line_a_size(synthetic: Any) -> None:
    text = measurements.render(synthetic.bench_results(), 80)
    assert table_line(text, "TL202") == "TL202 small identical 1.41 (1.39–1.43) FASTER 3.10→2.82 GiB 2→1 212"
    assert len(re.findall(r"^ +(?:medium|large) ", text, re.MULTILINE)) == 8
    assert "item-in-hot-loop" not in text and "Omitted for lack of space: before." in text
    assert " ".join(text.split()).count("TL201 small, medium, large, results: Random numbers come") == 1
    wide = measurements.render(synthetic.bench_results(), 160)
    assert "TL202  item-in-hot-loop" in wide and "Omitted" not in wide


def test_columns_that_do_not_fit_are_named(synthetic: Any) -> None:
    text = measurements.render(synthetic.verify_results(), 60)
    assert "Omitted for lack of space: peak memory, syncs, kernels." in text
    assert table_line(text, "TL202:38") == "TL202:38 identical 1.30 (1.28–1.31) FASTER"


def test_without_a_gpu_its_columns_are_gone(synthetic: Any) -> None:
    text = measurements.render(synthetic.verify_results(cpu=True), 80)
    header = next(line for line in text.splitlines() if "speed-up" in line)
    assert header.split() == ["results", "speed-up", "verdict"]
    assert "Synchronizing calls are seen on CUDA devices only." in text
    assert "Omitted for lack of space" not in text


def test_an_unfit_machine_shows_no_speed_up(synthetic: Any) -> None:
    text = measurements.render(synthetic.verify_results(fit=False), 80)
    assert "copy of itself" not in text
    assert table_line(text, "all fixes").startswith("all fixes moved – UNFIT ")
    assert "something else is using the machine" in " ".join(text.split())


def test_colour_adds_nothing_but_colour(synthetic: Any) -> None:
    results = synthetic.verify_results()
    colored = measurements.render(results, 80, color=True)
    assert "\x1b[1;32mFASTER" in colored and "\x1b[1;31mREJECTED" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == measurements.render(results, 80)


def test_the_terminal_is_not_driven_by_what_was_measured(synthetic: Any) -> None:
    text = measurements.render(synthetic.hostile_results(), 80)
    assert "\x1b" not in text and "\0" not in text


def test_synchronising_lines_by_what_became_of_the_prediction(synthetic: Any) -> None:
    text = measurements.render_syncs(synthetic.sync_report(), 80)
    confirmed, reached, not_reached, not_predicted = re.split(r"\nPredicted, but|\nObserved, but", text)
    assert (
        "  train.py:38  1 per step, 3.10 ms per step spent waiting, aten::item\n      total += loss.item()\n"
        in confirmed
    )
    assert "    TL202: `loss.item()` synchronizes with the" in confirmed
    assert reached.startswith(" reached without waiting (1)\n")
    assert "  train.py:31\n      noise = torch.randn" in reached and "TL201: the tensor" in reached
    assert not_reached.startswith(" not reached (1)\n")
    assert "  train.py:39  1 per step, 70.0 µs per step spent waiting" in not_predicted
    assert "    during: inference in evaluate()\n" in not_predicted
    assert "8 times, 560 µs spent waiting each time" in not_predicted
    assert (
        "Lines: 1 confirmed, 1 reached without waiting, 1 predicted but not reached, 2\n"
        "  observed but not predicted.\n"
    ) in not_predicted
    assert (
        "Watched until the time was over: start-up 4.10 s, training in train() 9.20 s (50 calls of a model), "
        "inference in evaluate() 2.00 s (8 calls of a model)."
    ) in " ".join(confirmed.split())
    nothing = measurements.render_syncs(SyncReport(steps=50), 80)
    assert "No line was predicted or observed to synchronize with the device." in nothing
    blind = measurements.render_syncs(SyncReport(steps=5, missing=("only available on CUDA",)), 80)
    assert blind == "\nSynchronizing calls in 5 steps\n\nOnly available on CUDA.\n"


def test_nothing_measured_and_interrupted(synthetic: Any) -> None:
    results = replace(synthetic.bench_results(), measurements=(), interrupted=True)
    text = measurements.render(results, 80)
    assert "Nothing was measured." in text and "Interrupted" in text


@pytest.mark.parametrize(
    ("ratio", "low", "high", "shown"),
    [
        (1.0012, 0.9991, 1.0034, "1.001 (0.999–1.003)"),
        (1.32, 1.28, 1.36, "1.32 (1.28–1.36)"),
        (12.4, 12.2, 12.6, "12.4 (12.2–12.6)"),
        (251.3, 248.2, 254.4, "251 (248–254)"),
    ],
)
def test_a_ratio_has_the_figures_that_mean_something(
    ratio: float, low: float, high: float, shown: str
) -> None:
    interval = Interval(ratio, low, high)
    assert f"{words.ratio(interval)} ({words.span(interval)})" == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0124, "12.4 ms"),
        (0.9999, "1.00 s"),
        (0.00007, "70.0 µs"),
        (3e-7, "300 ns"),
        (131.2, "131 s"),
        (0, "0 s"),
    ],
)
def test_times_have_three_figures(value: float, shown: str) -> None:
    assert words.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 B"), (512, "512 B"), (1536, "1.50 KiB"), (3.1 * 1024**3, "3.10 GiB")]
)
def test_sizes_have_three_figures(value: float, shown: str) -> None:
    assert words.size(value) == shown


def test_a_change_names_the_unit_once() -> None:
    assert words.change("3.10 GiB", "2.81 GiB") == "3.10 → 2.81 GiB"
    assert words.change("1.02 GiB", "981 MiB") == "1.02 GiB → 981 MiB"
    assert words.change("2", "2") == "2"
    assert words.change("2", None) == "2 → ?"
    assert words.change(None, None) == words.NOTHING
