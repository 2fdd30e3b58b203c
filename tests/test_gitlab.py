"""The template for GitLab CI: its script, with the variables that GitLab sets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "torchlint.gitlab-ci.yml"
JOB: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))["torchlint"]

NOTE = '#!/bin/sh\nprintf "%s " "${0##*/}" "$@" >>"$NOTED"; echo >>"$NOTED"\n'


def ran(folder: Path, **variables: str) -> list[str]:
    """The commands of the job as they are run, each with its words; nothing is installed or linted."""
    for name in ("python", "torchlint"):
        program = folder / name
        program.write_text(NOTE)
        program.chmod(0o755)
    noted = folder / "noted"
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "NOTED": str(noted)}
    environment |= {name: str(value) for name, value in JOB["variables"].items()}
    environment |= {"TORCHLINT_PACKAGE": "git+https://example.org/torchlint@v1"} | variables
    script = "\n".join(JOB["script"])
    subprocess.run(["sh", "-eu", "-c", script], cwd=folder, env=environment, check=True, capture_output=True)
    return noted.read_text().splitlines()


REPORT = "torchlint check --exit-zero --output-format gitlab --output-file gl-code-quality-report.json -- . "


def test_a_merge_request_reports_everything_and_fails_on_what_it_changes(tmp_path: Path) -> None:
    assert ran(tmp_path, CI_MERGE_REQUEST_DIFF_BASE_SHA="abc") == [
        "python -m pip install --quiet git+https://example.org/torchlint@v1 ",
        REPORT,
        "torchlint check --no-fix --changed-since abc -- . ",
    ]


@pytest.mark.parametrize("variables", [{}, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": ""}])
def test_the_default_branch_only_reports(tmp_path: Path, variables: dict[str, str]) -> None:
    assert ran(tmp_path, **variables)[1:] == [REPORT]


def test_no_package_of_that_name_is_installed_from_an_index(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        ran(tmp_path, TORCHLINT_PACKAGE="")
    assert b"set it to git+URL@TAG" in failed.value.stderr
    assert not (tmp_path / "noted").exists()


def test_variables_are_never_run(tmp_path: Path) -> None:
    evil = "$(touch x); `touch x` * -o"
    words = ran(tmp_path, TORCHLINT_SRC=evil, TORCHLINT_PACKAGE=evil, CI_MERGE_REQUEST_DIFF_BASE_SHA=evil)

    assert [line.count(evil) for line in words] == [1, 1, 2]
    assert not (tmp_path / "x").exists()


def test_the_report_is_kept_whatever_the_outcome() -> None:
    assert JOB["artifacts"]["when"] == "always"
    assert JOB["artifacts"]["reports"]["codequality"] in JOB["script"][1].split()
