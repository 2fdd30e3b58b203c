"""`verify` and `bench` as a user meets them, with what a measurement found given instead of measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from click.testing import CliRunner, Result

from torchlint import cli
from torchlint.commands import build
from torchlint.verify.results import (
    ORIGINAL,
    TOGETHER,
    Agreement,
    Comparison,
    Examination,
    Machine,
    Measurement,
    Results,
    Sameness,
    SyncReport,
    SyncRow,
    SyncStatus,
    Variant,
    Verdict,
)
from torchlint.verify.timeline import Recording

# Line ends of Windows, tabs, a comment at the end of a line that a fix changes, and no last newline.
TRAIN = (
    "import torch\r\n"
    "from torch import nn\r\n"
    "\r\n"
    "model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\r\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\r\n"
    "while True:\r\n"
    "\tloss = model(torch.randn(2, 3, 8, 8)).square().mean()\r\n"
    "\toptimizer.zero_grad(set_to_none=False)  # zéros\r\n"
    "\tloss.backward()\r\n"
    "\toptimizer.step()"
)
ZEROED = TRAIN.replace("set_to_none=False", "set_to_none=True")
BIASED = TRAIN.replace("nn.Conv2d(3, 8, 3)", "nn.Conv2d(3, 8, 3, bias=False)")

STEP = Recording(
    "before", 3, found={"events": [], "spans": [["train.py", 8, 1.0, 2.0]], "steps": [[0.0, 9.0]]}
)
FASTER = (Agreement.IDENTICAL, Verdict.FASTER, None)
LEANER = (Agreement.CLOSE, Verdict.SAME, 1.4)
Outcomes = dict[str, tuple[Agreement, Verdict, float | None]]


def torchlint(*arguments: str) -> Result:
    """Run the command line in this process."""
    command = build(cli._COMMANDS, cli._DEFAULT)
    result = CliRunner().invoke(command, list(arguments), prog_name="torchlint")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of a user, who stands in its folder."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_bytes(TRAIN.encode())
    script.with_suffix(".ipynb").write_text("{}", encoding="utf-8")
    return script


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says what the next measurement finds of each variant: results, time, and the ratio of peak memory."""

    def give(outcomes: Outcomes, *, interrupted: bool = False) -> None:
        measurement = Measurement(
            "train.py",
            variants=(Variant(ORIGINAL), *(Variant(name, ("TL302",)) for name in outcomes)),
            examinations=tuple(
                Examination(name, sameness=Sameness(agreement))
                for name, (agreement, _, _) in outcomes.items()
            ),
            comparisons=tuple(
                Comparison(name, verdict, "", memory=memory)
                for name, (_, verdict, memory) in outcomes.items()
            ),
        )
        results = Results(
            "verify",
            "0",
            "2026-01-01T00:00:00+00:00",
            1.0,
            Machine("cpu"),
            (measurement,),
            interrupted=interrupted,
        )
        monkeypatch.setattr("torchlint.commands.verify.measured", lambda run, measure: results)

    return give


@pytest.mark.parametrize(
    ("outcomes", "expected", "named"),
    [
        (
            {TOGETHER: FASTER, "TL302": FASTER, "TL401": LEANER},
            BIASED.replace("=False)  #", "=True)  #"),
            "TL302, TL401",
        ),
        (
            {TOGETHER: FASTER, "TL302": FASTER, "TL401": (Agreement.CLOSE, Verdict.SLOWER, 2.0)},
            ZEROED,
            "TL302",
        ),
        (
            {TOGETHER: FASTER, "TL302": (Agreement.IDENTICAL, Verdict.SAME, 1.0), "TL401": LEANER},
            BIASED,
            "TL401",
        ),
        (
            {TOGETHER: FASTER, "TL302": (Agreement.STREAM_MOVED, Verdict.FASTER, 2.0), "TL401": FASTER},
            BIASED,
            "TL401",
        ),
        (
            {TOGETHER: FASTER, "TL302:8": FASTER, "TL401:4": (Agreement.CLOSE, Verdict.UNCLEAR, None)},
            ZEROED,
            "TL302:8",
        ),
    ],
)
def test_apply_writes_what_kept_the_results_and_was_faster_or_leaner(
    outcomes: Outcomes, expected: str, named: str, train: Path, found: Any
) -> None:
    found(outcomes)
    run = torchlint("verify", "--apply", "--isolated", str(train))
    assert run.exit_code == 0
    assert f"Applied to {train}: {named}\n" in run.stdout
    assert train.read_bytes() == expected.encode()


@pytest.mark.parametrize(
    "outcomes",
    [
        {
            TOGETHER: FASTER,
            "TL302": (Agreement.IDENTICAL, Verdict.SAME, 1.0),
            "TL401": (Agreement.CLOSE, Verdict.UNFIT, None),
        },
        {TOGETHER: (Agreement.DIFFERENT, Verdict.REJECTED, 2.0)},
        {
            TOGETHER: (Agreement.FAILED, Verdict.REJECTED, None),
            "TL302": (Agreement.UNCHECKED, Verdict.FASTER, None),
        },
        {},
    ],
)
def test_apply_writes_nothing_where_no_fix_has_proved_its_worth(
    outcomes: Outcomes, train: Path, found: Any
) -> None:
    found(outcomes)
    run = torchlint("verify", "--apply", "--isolated", str(train))
    assert "No fixes were applied" in run.stdout
    assert train.read_bytes() == TRAIN.encode()


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ((Verdict.SAME, Verdict.SAME), 0),
        ((Verdict.UNFIT, Verdict.FASTER), 0),
        ((Verdict.UNCLEAR, Verdict.UNCLEAR), 0),
        ((Verdict.UNREACHED, Verdict.UNREACHED), 0),
        ((Verdict.SLOWER, Verdict.FASTER), 1),
        ((Verdict.REJECTED, Verdict.UNFIT), 1),
        ((Verdict.UNFIT, Verdict.UNFIT), 2),
        ((Verdict.UNMEASURED, Verdict.UNFIT), 2),
    ],
)
def test_the_status_tells_whether_anything_was_measured(
    verdicts: tuple[Verdict, Verdict], status: int, train: Path, found: Any
) -> None:
    found(
        {
            name: (Agreement.IDENTICAL, item, 1.0)
            for name, item in zip((TOGETHER, "TL302"), verdicts, strict=True)
        }
    )
    run = torchlint("verify", "--isolated", str(train))
    assert run.exit_code == status
    assert (status == 2) == run.stdout.startswith("Nothing could be measured.")


def test_apply_after_ctrl_c_writes_nothing(train: Path, found: Any) -> None:
    found({TOGETHER: FASTER, "TL302": FASTER}, interrupted=True)
    assert torchlint("verify", "--apply", "--isolated", str(train)).exit_code == 130
    assert train.read_bytes() == TRAIN.encode()


def test_apply_does_not_overwrite_what_was_edited_meanwhile(
    train: Path, monkeypatch: pytest.MonkeyPatch, found: Any
) -> None:
    found({TOGETHER: FASTER})
    from torchlint.verify import judge

    def proven(measurement: Measurement) -> set[str]:
        train.write_text("edited = True\n", encoding="utf-8")
        return {"TL302"}

    monkeypatch.setattr(judge, "proven", proven)
    run = torchlint("verify", "--apply", "--isolated", str(train))
    assert run.exit_code == 2
    assert "cannot be written" in run.stderr
    assert train.read_text(encoding="utf-8") == "edited = True\n"


@pytest.mark.parametrize("module", ["numpy", "cattrs", "jinja2", "matplotlib"])
def test_what_is_not_installed_is_said_before_anything_is_measured(
    module: str, train: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for command in (("verify", str(train)), ("bench", "TL302")):
        run = torchlint(*command, "--isolated", "--device", "cpu", "--json", "a.json", "--html", "a.html")
        assert run.exit_code == 2
        assert f"requires {module}, which is not installed; run `pip install 'cattrs>=" in run.stderr
        assert run.stdout == ""


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("raise ImportError(\"No module named 'torch'\", name='torch')", "numpy 'torch>=2.3'`"),
        ("__version__ = '1.13.1+cu117'", "torch 1.13.1+cu117 is too old"),
        ("__version__ = '2.2'", "measuring requires torch 2.3 or newer"),
    ],
)
def test_a_torch_that_is_missing_or_too_old_is_explained(
    version: str, said: str, train: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "torch.py").write_text(f"{version}\n", encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'other'}:{root}")
    run = torchlint("verify", "--isolated", str(train))
    assert run.exit_code == 2
    assert said in run.stderr
    assert "\n" not in run.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.py", "--link", "nowhere"], "`nowhere` to link to does not exist"),
        (
            ["train.py", "--apply", "--syncs"],
            "`--apply` cannot be combined with `--syncs`, which measures no fixes",
        ),
        (["train.py", "--report-unpredicted", "a.md"], "`--report-unpredicted` requires `--syncs`"),
        (["missing.py"], "missing.py"),
        (["."], "is a directory"),
        (["train.py", "--select", "TL999"], "TL999"),
        (["train.py", "--device", "tpu"], "use cpu, cuda or mps"),
        (["train.py", "--steps", "1"], "--steps"),
        (["train.py", "--syncs", "--trace", "a.json"], "cannot be combined with `--syncs`"),
        (["train.py", "--trace", "missing/a.json"], "there is no such folder"),
        (["-m", "package.missing"], "no module package.missing in this folder"),
        ([], "SCRIPT"),
        (["train.ipynb"], "train.ipynb"),
        (["train.py", "--epochs", "3"], "follow `--`: `verify train.py -- --epochs …`"),
    ],
)
def test_a_wrong_call_is_explained(arguments: list[str], said: str, train: Path) -> None:
    run = torchlint("verify", "--isolated", *arguments)
    assert run.exit_code == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_what_follows_two_dashes_is_the_programs(
    train: Path, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchlint.verify import subjects

    given: list[tuple[str, ...]] = []

    class Watched(subjects.Script):
        def __init__(self, workspace: Any, arguments: Any, **options: Any) -> None:
            given.append(tuple(arguments))
            super().__init__(workspace, arguments, **options)

    monkeypatch.setattr(subjects, "Script", Watched)
    found({})
    torchlint("verify", "--isolated", str(train), "--", "--steps", "3", "--select", "a", "--", "-v")
    assert given == [("--steps", "3", "--select", "a", "--", "-v")]


def test_the_report_of_an_interrupted_run_is_written(train: Path, found: Any) -> None:
    found({TOGETHER: FASTER}, interrupted=True)
    run = torchlint("verify", "--isolated", str(train), "--json", "a.json", "--html", "a.html")
    assert run.exit_code == 130
    from torchlint.verify.results import load

    assert load(Path("a.json")).interrupted
    assert "<html" in Path("a.html").read_text(encoding="utf-8")


def test_waits_that_were_not_predicted_are_written_with_the_lines_around_them(
    train: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(*rows: SyncRow) -> Result:
        syncs = SyncReport(5, rows)
        results = Results(
            "verify",
            "0",
            "",
            1.0,
            Machine("cuda", gpu="H200", torch="2.11.0"),
            (Measurement("train.py", syncs=syncs),),
        )
        monkeypatch.setattr("torchlint.commands.verify.measured", lambda run, measure: results)
        return torchlint("verify", "--isolated", "train.py", "--syncs", "--report-unpredicted", "a.md")

    confirmed = SyncRow("train.py", 8, SyncStatus.CONFIRMED, ("TL201",), per_step=1.0)
    assert "a.md was not written" in seen(confirmed).stdout
    assert not Path("a.md").exists()
    elsewhere = SyncRow("torch/optim/adam.py", 3, SyncStatus.NOT_PREDICTED, per_step=1.0)
    run = seen(
        confirmed, SyncRow("train.py", 9, SyncStatus.NOT_PREDICTED, per_step=2.0, what="item"), elsewhere
    )
    assert run.exit_code == 0
    told = Path("a.md").read_text(encoding="utf-8")
    assert "torch 2.11.0, H200" in told
    assert told.count("## ") == 1
    assert "## train.py:9, 2 per step (item)" in told
    assert "\n> \tloss.backward()\n  \toptimizer.step()\n```\n" in told


@pytest.mark.parametrize(
    ("recordings", "written", "said"),
    [
        ((STEP, replace(STEP, name="after")), ["before", "after"], ""),
        ((STEP, Recording("after", missing="there are no fixes")), ["before"], "lacks the step after: there"),
        ((Recording("before", missing="the time was up"),), None, "was not written: before: the time was up"),
        ((), None, "was not written: the run ended before a step was recorded"),
    ],
    ids=["both", "one", "none", "interrupted"],
)
def test_what_a_trace_lacks_is_said_and_changes_no_status(
    recordings: tuple[Recording, ...],
    written: list[str] | None,
    said: str,
    train: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(run: Any, measure: Any) -> Results:
        run.recordings, run.fixed = recordings, {PurePosixPath("train.py"): ZEROED}
        return Results("verify", "0", "", 1.0, Machine("cpu"), (Measurement("train.py"),))

    monkeypatch.setattr("torchlint.commands.verify.measured", measured)
    run = torchlint("verify", "--isolated", "train.py", "--trace", "a.json")
    assert run.exit_code == 0
    assert f"a.json {said}" in run.stdout if said else "a.json" not in run.stdout
    if written is None:
        assert not Path("a.json").exists()
        return
    told = json.loads(Path("a.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [item["args"]["name"] for item in told if item["name"] == "process_name"] == written
    marked = [item["pid"] for item in told if item["name"].startswith("TL302")]
    assert marked == [1], "only the original has what was found there"


def test_a_report_that_cannot_be_written_is_said_before_anything_is_measured(train: Path) -> None:
    run = torchlint("verify", "--isolated", str(train), "--json", "nowhere/a.json")
    assert run.exit_code == 2
    assert "cannot write nowhere/a.json" in run.stderr
    assert run.stdout == ""


def test_fixes_that_make_the_program_slower_end_with_1(train: Path, found: Any) -> None:
    found({TOGETHER: (Agreement.IDENTICAL, Verdict.SLOWER, None)})
    assert torchlint("verify", "--isolated", str(train)).exit_code == 1
