"""What a run reports, fixes and counts by impact, and what becomes of advice: real runs with a pack of rules.

``low()``, ``plain()`` and ``broken()`` are of low, medium and high impact; all but the last have a safe fix.
``program()`` and ``other()`` bring up advice, the first with a safe fix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import Result

from tests.conftest import install, lint
from torchlint import registry

PACK = """
import libcst as cst
from torchlint.diagnostics import Applicability, Edit, Fix
from torchlint.rule import ERROR, NOTE, WARNING, Finding, rule


def _found(call, module, name, message, fixes=True, **how):
    if isinstance(call.func, cst.Name) and call.func.value == name:
        edits = (Edit(module.tree.span(call.func), "good"),)
        fix = Fix("Use `good`", edits, Applicability.SAFE) if fixes else None
        yield Finding(call, message, fix, **how)


@rule("ZR101", "low-called", severity=WARNING, fix="safe", on=cst.Call, mentions=("low",))
def low_called(call, module):
    yield from _found(call, module, "low", "`low` is called", slight="it is called once")


@rule("ZR102", "plain-called", severity=WARNING, fix="safe", on=cst.Call, mentions=("plain",))
def plain_called(call, module):
    yield from _found(call, module, "plain", "`plain` is called")


@rule("ZR103", "broken-called", severity=ERROR, fix="none", on=cst.Call, mentions=("broken",), measured=False)
def broken_called(call, module):
    yield from _found(call, module, "broken", "`broken` is called", fixes=False)


@rule("ZR104", "program-at-rest", severity=WARNING, fix="safe", on=cst.Call, advice=True)
def program_at_rest(call, module):
    yield from _found(call, module, "program", "the program rests")


@rule("ZR105", "other-program", severity=NOTE, fix="none", on=cst.Call, mentions=("other",), advice=True)
def other_program(call, module):
    yield from _found(call, module, "other", "the program could be another", fixes=False)


@rule("ZR106", "advice-of-no-account", severity=NOTE, fix="none", on=cst.Call, advice=True)
def advice_of_no_account(call, module):
    yield from _found(call, module, "faint", "hardly worth it", fixes=False, slight="it is faint")
"""
ALL = "low()\nplain()\nbroken()\nprogram()\nother()\nfaint()\n"


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the rule pack as if it were installed."""
    root = tmp_path_factory.mktemp("pack")
    (root / "zz_reported_pack.py").write_text(PACK)
    install(root, "zz_reported_pack", "zz_reported_pack")
    return root


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Path) -> Iterator[Path]:
    """A project that selects the pack's rules, with one file that has something of every kind."""
    for name in [name for name in os.environ if name.startswith("TORCHLINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TORCHLINT_NO_CACHE", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(pack))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pack), os.environ.get("PYTHONPATH", "")]))
    root = tmp_path / "work"
    root.mkdir()
    (root / "torchlint.toml").write_text('select = ["ZR", "TL002"]\n')
    (root / "a.py").write_text(ALL)
    monkeypatch.chdir(root)
    registry.forget()
    yield root
    registry.forget()


def concise(*args: str) -> Result:
    return lint(*args, "--output-format", "concise")


def found(*args: str) -> list[dict[str, Any]]:
    """The entries of JSON."""
    entries: list[dict[str, Any]] = json.loads(lint(*args, "--output-format", "json").stdout)
    return entries


def codes(*args: str) -> list[str]:
    return [entry["code"] for entry in found(*args)]


def write(text: str) -> None:
    Path("a.py").write_text(text)


def read() -> str:
    return Path("a.py").read_text()


# --- impact ----------------------------------------------------------------------------------------------


def test_findings_of_low_impact_are_counted_and_not_shown() -> None:
    write("low()\nlow()\nplain()\nbroken()\n")
    assert concise().stdout == (
        "a.py:3:1: ZR102 [*] `plain` is called\n"
        "a.py:4:1: ZR103 `broken` is called\n"
        "Found 1 error, 1 warning.\n"
        "[*] 1 fixable with `--fix`.\n"
        "For more information about a rule, run `torchlint rule ZR102`.\n"
        "2 findings of low impact are not shown; `--impact low` shows them.\n"
    )


def test_with_low_impact_nothing_is_hidden() -> None:
    write("low()\nplain()\n")
    told = concise("--impact", "low").stdout
    assert told.startswith("a.py:1:1: ZR101 [*] `low` is called\n")
    assert "not shown" not in told


def test_with_high_impact_the_others_are_counted() -> None:
    write("low()\nplain()\nbroken()\n")
    told = concise("--impact", "high").stdout
    assert told.startswith("a.py:3:1: ZR103 `broken` is called\nFound 1 error.\n")
    assert "2 findings of low or medium impact are not shown" in told


def test_a_config_says_which_impact_is_reported() -> None:
    write("low()\nplain()\n")
    Path("torchlint.toml").write_text('select = ["ZR"]\nimpact = "low"\n')
    assert codes() == ["ZR101", "ZR102"]
    assert codes("--impact", "high") == []


@pytest.mark.parametrize(("impact", "status"), [("low", 1), ("medium", 0), ("high", 0)])
def test_what_is_hidden_fails_no_run(impact: str, status: int) -> None:
    write("low()\n")
    result = concise("--impact", impact)
    assert result.exit_code == status
    if not status:
        assert result.stdout.startswith("All checks passed!\n1 finding of low")


@pytest.mark.parametrize(
    ("impact", "fixed"),
    [("low", "good()\ngood()\n"), ("medium", "low()\ngood()\n"), ("high", "low()\nplain()\n")],
)
def test_only_what_is_reported_is_fixed(impact: str, fixed: str) -> None:
    write("low()\nplain()\n")
    assert ("-plain()" in lint("--diff", "--impact", impact).stdout) is (impact != "high")
    lint("--fix", "--impact", impact)
    assert read() == fixed


@pytest.mark.parametrize("arguments", [("--fix",), ()])
def test_standard_input_goes_by_impact_too(arguments: tuple[str, ...]) -> None:
    told = lint("-", *arguments, stdin="low()\nplain()\n")
    if arguments:
        assert told.stdout == "low()\ngood()\n"
    else:
        assert "1 finding of low impact is not shown" in told.stdout


def test_what_is_remembered_holds_for_every_impact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCHLINT_NO_CACHE")
    monkeypatch.setenv("TORCHLINT_CACHE_DIR", str(tmp_path / "cache"))
    first = [codes("--impact", impact) for impact in ("medium", "low", "high")]
    assert first == [
        ["ZR102", "ZR103", "ZR104", "ZR105"],
        ["ZR101", "ZR102", "ZR103", "ZR104", "ZR105", "ZR106"],
        ["ZR103"],
    ]

    def fails(*_: object, **__: object) -> None:
        raise AssertionError("a file is checked again")

    monkeypatch.setattr("torchlint.checker.check", fails)
    assert [codes("--impact", impact) for impact in ("medium", "low", "high")] == first


def test_a_run_that_fixes_nothing_remembers_what_it_does_not_show(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TORCHLINT_NO_CACHE")
    monkeypatch.setenv("TORCHLINT_CACHE_DIR", str(tmp_path / "cache"))
    write("low()\n")
    lint("--fix")
    assert read() == "low()\n"
    assert codes("--impact", "low") == ["ZR101"]


def test_a_comment_for_what_is_hidden_has_its_use() -> None:
    write("low()  # noqa: ZR101\nplain()  # noqa: ZR101\n")
    assert [(entry["code"], entry["location"]["row"]) for entry in found()] == [("ZR102", 2), ("TL002", 2)]


def test_comments_are_added_for_what_is_reported() -> None:
    write("low()\nplain()\nprogram()\n")
    lint("--add-noqa")
    assert read() == "low()\nplain()  # noqa: ZR102\nprogram()\n"


def test_a_baseline_holds_findings_of_any_impact() -> None:
    lint("--baseline", "b.json", "--update-baseline")
    assert codes("--baseline", "b.json", "--impact", "low") == []
    # What a run does not report is no reason to take it out.
    told = lint("--baseline", "b.json", "--update-baseline", "--impact", "high").stdout
    assert told == "Wrote 6 findings (0 added, 0 removed) to b.json.\n"
    write(f"{ALL}low()\nplain()\n")
    told = concise("--baseline", "b.json").stdout
    assert told.startswith("a.py:8:1: ZR102 [*] `plain` is called\nFound 1 warning not in the baseline.\n")
    assert "1 finding of low impact is not shown" in told
    assert "Advice" not in told


def test_formats_say_the_impact() -> None:
    write("low()\nplain()\nbroken()\n")
    arguments = ("--impact", "low", "--output-format")
    assert [(entry["impact"], entry["frequency"], entry["advice"]) for entry in found("--impact", "low")] == [
        ("low", None, False),
        ("medium", None, False),
        ("high", None, False),
    ]
    (run,) = json.loads(lint(*arguments, "sarif").stdout)["runs"]
    slight = "it is called once"
    assert [(result["rank"], result["properties"]) for result in run["results"]] == [
        (10.0, {"impact": "low", "impactReason": slight}),
        (50.0, {"impact": "medium"}),
        (90.0, {"impact": "high"}),
    ]
    issues = json.loads(lint(*arguments, "gitlab").stdout)
    assert [issue["severity"] for issue in issues] == ["info", "minor", "critical"]
    told = lint("--impact", "low").stdout
    assert [line for line in told.splitlines() if line.startswith("impact")] == [
        f"impact: low, {slight}",
        "impact: medium",
        "impact: high",
    ]
    counts = json.loads(lint("--statistics", *arguments, "json").stdout)
    assert [(count["code"], count["impact"]) for count in counts] == [
        ("ZR101", {"high": 0, "medium": 0, "low": 1}),
        ("ZR102", {"high": 0, "medium": 1, "low": 0}),
        ("ZR103", {"high": 1, "medium": 0, "low": 0}),
    ]


@pytest.mark.parametrize("many", [10, 11])
def test_of_many_findings_those_that_matter_most_are_named(many: int) -> None:
    write("plain()\n" * (many - 2) + "broken()\nbroken()\n")
    told = concise().stdout
    assert ("most:" in told) is (many == 11)
    if many == 11:
        # One of each rule, and only such as are of high impact.
        assert "1 that matters most:\n  a.py:10:1: ZR103 `broken` is called\n[*]" in told


# --- advice ----------------------------------------------------------------------------------------------

BLOCK = (
    "Advice for a.py:\n"
    "  4:1 ZR104 the program rests\n"
    "  5:1 ZR105 the program could be another\n"
    "  `torchlint verify --select ZR104 a.py` measures the fixes on this machine\n"
)


@pytest.mark.parametrize("name", ["full", "concise", "grouped"])
def test_people_are_told_advice_behind_the_findings(name: str) -> None:
    told = lint("--output-format", name).stdout
    findings, advice = told.split("\nAdvice")
    assert "ZR104" not in findings and "ZR102" in findings
    assert f"Advice{advice}" == (
        f"{BLOCK}  `torchlint advise a.py` shows what to change\n\n"
        "Found 1 error, 1 warning.\n[*] 1 fixable with `--fix`.\n"
        "For more information about a rule, run `torchlint rule ZR102`.\n"
        "1 finding of low impact is not shown; `--impact low` shows it.\n"
    )


def test_advice_of_one_rule_takes_one_line() -> None:
    write("program()\nprogram()\nprogram()\n")
    assert "  1:1 ZR104 the program rests (and 2 more)\n" in concise().stdout


def test_advice_neither_fails_a_run_nor_is_it_followed() -> None:
    write("program()\n")
    assert lint("--fix").exit_code == 0
    assert lint("--diff").exit_code == 0
    assert read() == "program()\n"


def test_json_says_what_is_advice() -> None:
    assert [(entry["code"], entry["advice"]) for entry in found()] == [
        ("ZR102", False),
        ("ZR103", False),
        ("ZR104", True),
        ("ZR105", True),
    ]
    lines = lint("--output-format", "json-lines").stdout.splitlines()
    assert [json.loads(line)["advice"] for line in lines] == [False, False, True, True]


@pytest.mark.parametrize(
    "name", ["github", "gitlab", "sarif", "junit", "rdjson", "pylint", "azure", "markdown"]
)
def test_other_formats_leave_advice_out_unless_it_is_wanted(name: str) -> None:
    told = lint("--output-format", name).stdout
    assert "ZR102" in told
    body = told if name != "sarif" else json.dumps(json.loads(told)["runs"][0]["results"])
    assert "ZR104" not in body
    wanted = lint("--output-format", name, "--advice", "on").stdout
    assert "ZR104" in wanted and "ZR105" in wanted


def test_advice_may_be_left_out() -> None:
    write("program()\n")
    assert "ZR104" in concise().stdout
    result = concise("--advice", "off")
    assert (result.stdout, result.exit_code) == ("All checks passed!\n", 0)


def test_advice_that_is_wanted_is_treated_as_findings_are() -> None:
    write("program()\n")
    result = concise("--advice", "on")
    assert result.stdout.startswith("a.py:1:1: ZR104 [*] the program rests\nFound 1 warning.\n")
    assert result.exit_code == 1
    lint("--advice", "on", "--fix")
    assert read() == "good()\n"


def test_statistics_count_findings() -> None:
    assert "ZR104" not in lint("--statistics").stdout
    assert "ZR104" in lint("--statistics", "--advice", "on").stdout


def test_further_reports_have_a_place_for_advice_or_none() -> None:
    lint("--report", "json=a.json", "--report", "junit=a.xml")
    assert [entry["code"] for entry in json.loads(Path("a.json").read_text())][-1] == "ZR105"
    assert len(list(ET.parse("a.xml").iter("testcase"))) == 2


def test_advise_tells_advice_and_nothing_else() -> None:
    result = concise("advise")
    assert result.stdout == (
        f"{BLOCK}  `torchlint advise --fix a.py` applies the fixes\n\n"
        "2 pieces of advice.\n1 piece of advice of low impact is not shown; `--impact low` shows it.\n"
    )
    assert result.exit_code == 0


def test_advise_shows_in_full_what_to_change() -> None:
    told = lint("advise").stdout
    assert told.startswith("Advice for a.py:\n\nZR104 [*] the program rests\n --> a.py:4:1\n")
    assert "4 + good()\n" in told
    assert "ZR102" not in told


def test_advise_follows_advice_and_fixes_nothing_else() -> None:
    assert "-program()\n+good()\n" in lint("advise", "--diff").stdout
    told = concise("advise", "--fix").stdout
    assert read() == ALL.replace("program()", "good()")
    assert "1 piece of advice, 1 more followed.\n" in told


def test_advise_in_the_formats_of_machines() -> None:
    assert codes("advise") == ["ZR104", "ZR105"]
    assert "ZR104" in lint("advise", "--output-format", "github").stdout
    assert "ZR102" not in lint("advise", "--output-format", "github").stdout


def test_advise_without_any() -> None:
    write("plain()\n")
    result = lint("advise")
    assert (result.stdout, result.exit_code) == ("No advice.\n", 0)


def test_advise_says_what_it_cannot_read() -> None:
    write("program(\n")
    result = concise("advise")
    assert "TL001" in result.stdout


def test_a_comment_suppresses_advice() -> None:
    write("program()  # noqa: ZR104\n")
    assert lint("advise").stdout == "No advice.\n"


def test_a_notebook_is_not_to_be_measured() -> None:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "program()\n"}
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    Path("a.py").unlink()
    Path("n.ipynb").write_text(json.dumps(notebook))
    assert concise("advise").stdout == (
        "Advice for n.ipynb:\n  cell 1:1:1 ZR104 the program rests\n"
        "  `torchlint advise --fix n.ipynb` applies the fixes\n\n1 piece of advice.\n"
    )


def test_the_help_of_advise_leaves_out_what_is_about_findings() -> None:
    told = lint("advise", "--help").stdout
    assert "--impact" in told and "--fix" in told
    assert "--baseline" not in told and "--watch" not in told
