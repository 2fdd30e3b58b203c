"""`torchlint report`: what is kept of a repository, and what the site says of all, whatever fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from torchlint.commands.report import command
from torchlint.report.records import Finding, Record, Shelf, names, slug
from torchlint.report.site import Site, files
from torchlint.report.survey import Wish, survey, surveyed

BATCHES = """\
def train(model, loader, optimizer, criterion):
    for images, labels in loader:
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
QUICK = Wish(("--isolated", "--no-cache"))


@pytest.fixture
def checkouts(tmp_path: Path) -> Path:
    """Two repositories of one team and one of another."""
    for name, text in {"vision/a": BATCHES, "vision/b": "import torch\n", "speech/a": BATCHES * 2}.items():
        folder = tmp_path / "src" / name
        folder.mkdir(parents=True)
        (folder / "train.py").write_text("import torch\n" + text)
    return tmp_path / "src"


@pytest.fixture
def report(tmp_path: Path, checkouts: Path) -> Callable[..., Result]:
    """Runs the command for all repositories."""

    def run(*options: str, folders: list[Path] | None = None) -> Result:
        chosen = sorted(checkouts.glob("*/*")) if folders is None else folders
        given = [*map(str, chosen), "-o", str(tmp_path / "site"), "--no-cache", "--jobs", "2", *options]
        return CliRunner().invoke(command, given)

    return run


def finding(code: str = "TL202", **given: object) -> Finding:
    place = {"file": "a.py", "cell": None, "row": 1, "column": 1, "last": 1, "first": 1, "lines": ("a",)}
    about = {"severity": "warning", "impact": "high", "advice": False, "fix": "safe"}
    shown = Finding(code, "", "`a` < b", "", **about, **place)  # type: ignore[arg-type]
    return replace(shown, **given)  # type: ignore[arg-type]


# --- one repository --------------------------------------------------------------------------------------


def test_what_is_kept_of_a_finding(checkouts: Path) -> None:
    record = survey("vision/a", str(checkouts / "vision" / "a"), QUICK)
    assert (record.error, record.team) == ("", "vision")
    found = {item.code: item for item in record.findings}
    assert (found["TL302"].file, found["TL302"].row, found["TL302"].fix) == ("train.py", 5, "unsafe")
    assert found["TL302"].first == 3
    assert found["TL302"].lines == tuple(("import torch\n" + BATCHES).splitlines()[2:7])
    assert record.totals["counted"] == record.totals["high"] + record.totals["medium"] > 0


def test_a_cell_is_shown_by_its_own_lines(tmp_path: Path) -> None:
    cells = ["import torch\n", BATCHES]
    notebook = {
        "cells": [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
            for text in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    record = survey("a", str(tmp_path), QUICK)
    shown = next(item for item in record.findings if item.code == "TL302")
    assert (shown.cell, shown.row, shown.lines[shown.row - shown.first]) == (2, 4, BATCHES.splitlines()[3])


def test_modules_of_the_repository_are_not_imported(tmp_path: Path) -> None:
    for name in ("torchlint", "json", "click"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "train.py").write_text("import torch\n" + BATCHES)
    record = survey("a", str(tmp_path), QUICK)
    assert record.error == ""
    assert {item.file for item in record.findings} == {"train.py"}


@pytest.mark.parametrize(
    ("limit", "config", "told"),
    [
        (600.0, "selct = ['TL2']\n", "unknown key `selct`"),
        (0.01, "", "the check took longer than 0.01 s"),
    ],
)
def test_why_a_repository_cannot_be_checked(checkouts: Path, limit: float, config: str, told: str) -> None:
    folder = checkouts / "vision" / "a"
    (folder / "torchlint.toml").write_text(config)
    record = survey("a", str(folder), Wish(limit=limit))
    assert told in record.error
    assert record.findings == ()


def test_there_is_no_such_folder(tmp_path: Path) -> None:
    assert survey("a", str(tmp_path / "none"), QUICK).error == "there is no such folder"


# --- many ------------------------------------------------------------------------------------------------


def test_names_are_as_short_as_they_can_be() -> None:
    paths = [Path("/x/vision/a"), Path("/x/speech/a"), Path("/y/speech/a")]
    assert list(names(paths).values()) == ["vision/a", "x/speech/a", "y/speech/a"]


def test_no_two_names_share_a_file() -> None:
    assert slug("plain-1.0") == "plain-1.0"
    assert len({slug("a/b"), slug("a-b"), slug("a b"), slug("../b")}) == 4
    assert "/" not in slug("../b")


def failing(name: str, folder: str, wish: Wish) -> Record:
    if name == "bad":
        raise ConnectionError("gone")
    return Record(name, folder, "2026-01-01", 0.0)


def test_what_fails_in_the_engine_costs_no_other() -> None:
    folders = {Path(name): name for name in ("one", "bad", "two")}
    found = {record.name: record.error for record in surveyed(folders, QUICK, 2, "local", failing)}
    assert found == {"one": "", "bad": "ConnectionError: gone", "two": ""}


def test_dask_finds_the_same(checkouts: Path) -> None:
    folders = {path: path.parent.name for path in checkouts.glob("*/a")}
    found = [
        {record.name: record.findings for record in surveyed(folders, QUICK, 1, engine)}
        for engine in ("local", "dask")
    ]
    assert found[0] == found[1]
    assert found[0].keys() == {"vision", "speech"}


# --- the site --------------------------------------------------------------------------------------------


def test_the_site_tells_of_all_and_of_time(
    report: Callable[..., Result], checkouts: Path, tmp_path: Path
) -> None:
    (checkouts / "vision" / "b" / "torchlint.toml").write_text("selct = []\n")
    run = report()
    assert run.exit_code == 1
    assert "b was not checked" in run.output
    index = (tmp_path / "site" / "index.html").read_text()
    assert "in 2 repositories" in index
    assert "unknown key `selct`" in index
    (first,) = Shelf(tmp_path / "site").history
    assert first["teams"] == {"vision": 2, "speech": 4}
    assert first["rules"] == {"TL202": 3, "TL302": 3}

    (checkouts / "vision" / "b" / "torchlint.toml").unlink()
    (checkouts / "speech" / "a" / "train.py").write_text("import torch\n")
    assert report().exit_code == 0
    second = Shelf(tmp_path / "site").history[-1]
    assert second["teams"] == {"vision": 2, "speech": 0}
    assert ">-4<" in (tmp_path / "site" / "index.html").read_text()
    page = (tmp_path / "site" / "repositories" / f"{slug('vision/a')}.html").read_text()
    assert "optimizer.zero_grad(set_to_none=False)" in page


def test_an_interrupted_report_goes_on(
    report: Callable[..., Result], checkouts: Path, tmp_path: Path
) -> None:
    assert report().exit_code == 0
    shelf = Shelf(tmp_path / "site")
    every = ("speech/a", "vision/a", "vision/b")
    before = {name: shelf.get(name) for name in every}
    # The next one got as far as this.
    shelf.put(survey("vision/a", str(checkouts / "vision" / "a"), QUICK))
    known = shelf.get("vision/a")
    assert report("--resume").exit_code == 0
    after = {name: shelf.get(name) for name in every}
    assert after["vision/a"] == known
    assert all(after[name] != before[name] for name in every)
    assert shelf.history[-1]["repositories"] == 3


def test_a_rule_that_finds_nothing_any_more_is_told_of(tmp_path: Path) -> None:
    for found in ((finding(), finding("TL302")), (finding(),)):
        site = Site(Shelf(tmp_path / "site"))
        site.add(Record("team/a", "/a", "2026-01-01", 0.0, found))
        site.finish()
    assert ">-1<" in (tmp_path / "site" / "index.html").read_text()


def test_files_are_ranked_by_what_is_at_stake() -> None:
    found = (
        finding(file="low.py", impact="low"),
        finding(file="medium.py", impact="medium"),
        finding(file="medium.py", impact="medium"),
        finding(file="high.py"),
    )
    ranked = files(Record("a", "/a", "2026-01-01", 0.0, found))
    assert [(file.name, file.anchor) for file in ranked] == [
        ("high.py", "f1"),
        ("medium.py", "f2"),
        ("low.py", "f3"),
    ]
    assert all(file.record.findings == () for file in ranked)


def test_the_index_of_a_thousand_repositories_is_small(tmp_path: Path) -> None:
    site = Site(Shelf(tmp_path / "site"))
    for number in range(1000):
        site.add(Record(f"team{number % 20}/{number}", "/a", "2026-01-01", 0.0, (finding(),) * 3))
    site.finish()
    assert (tmp_path / "site" / "index.html").stat().st_size < 500_000
    assert len(list((tmp_path / "site" / "repositories").iterdir())) == 1000


def test_the_levels_of_a_file_are_listed(tmp_path: Path) -> None:
    advice = finding("TL502", impact="medium", advice=True)
    site = Site(Shelf(tmp_path / "site"))
    site.add(
        Record(
            "vision/a",
            "/a",
            "2026-01-01",
            0.0,
            (finding(), advice, finding("TL502", file="b.py", advice=True)),
        )
    )
    site.finish()
    (page,) = (tmp_path / "site" / "repositories").iterdir()
    text = page.read_text()
    assert '<span class="summary">1 high, 1 advice</span>' in text
    assert '<span class="summary">1 advice</span>' in text


def test_what_a_program_says_is_no_markup(tmp_path: Path) -> None:
    hostile = finding(file="<b>.py", lines=("<script>\x1b",), message="`<i>`", help="</code>")
    site = Site(Shelf(tmp_path / "site"))
    site.add(Record("<u>/a", "/<u>", "2026-01-01", 0.0, (hostile,)))
    site.finish()
    for path in (tmp_path / "site").rglob("*.html"):
        page = path.read_text()
        assert not any(tag in page for tag in ("<b>.py", "<script>", "<i>", "<u>", "\x1b"))


def test_a_folder_with_something_else_is_left_alone(
    report: Callable[..., Result], checkouts: Path, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.tex").write_text("")
    run = CliRunner().invoke(command, [str(checkouts / "vision" / "a"), "-o", str(tmp_path / "site")])
    assert run.exit_code != 0
    assert "holds something else than a report" in run.output
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["thesis.tex"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, checkouts: Path) -> None:
    site = tmp_path / "site"
    (site / "records").mkdir(parents=True)
    (site / "index.html").mkdir()
    run = CliRunner().invoke(command, [str(checkouts / "vision" / "a"), "-o", str(site)])
    assert isinstance(run.exception, SystemExit) and run.exit_code not in (0, 1)
    assert f"the report in {site} cannot be written" in run.output
