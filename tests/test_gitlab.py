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

NOTE = """\
#!/bin/sh
printf '%s ' "${0##*/}" "$@" >>"$NOTED"; echo >>"$NOTED"
[ "${0##*/}" != mktemp ] || echo /tmp/source
"""
URL = "https://example.org/torchlint"


def ran(folder: Path, **variables: str) -> list[str]:
    """The commands of the job as they are run, each with its words; nothing is installed or linted."""
    for name in ("git", "mktemp", "python", "torchlint"):
        program = folder / name
        program.write_text(NOTE)
        program.chmod(0o755)
    noted = folder / "noted"
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "NOTED": str(noted)}
    environment |= {name: str(value) for name, value in JOB["variables"].items()}
    environment |= {"TORCHLINT_REPOSITORY": URL, "TORCHLINT_REF": "v1"} | variables
    script = "\n".join(JOB["script"])
    subprocess.run(["sh", "-eu", "-c", script], cwd=folder, env=environment, check=True, capture_output=True)
    return noted.read_text().splitlines()


REPORT = "torchlint check --exit-zero --output-format gitlab --output-file gl-code-quality-report.json -- . "

INSTALLED = [
    "mktemp -d ",
    "git init --quiet /tmp/source ",
    f"git -C /tmp/source fetch --quiet --depth 1 --end-of-options {URL} v1 ",
    "git -C /tmp/source checkout --quiet FETCH_HEAD ",
    "python -m pip install --quiet --require-hashes --requirement /tmp/source/action/requirements.txt ",
    "python -m pip install --quiet --no-index --no-deps --no-build-isolation /tmp/source ",
]


def test_a_merge_request_reports_everything_and_fails_on_what_it_changes(tmp_path: Path) -> None:
    assert ran(tmp_path, CI_MERGE_REQUEST_DIFF_BASE_SHA="abc") == [
        *INSTALLED,
        REPORT,
        "torchlint check --no-fix --changed-since abc -- . ",
    ]


@pytest.mark.parametrize("variables", [{}, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": ""}])
def test_the_default_branch_only_reports(tmp_path: Path, variables: dict[str, str]) -> None:
    assert ran(tmp_path, **variables) == [*INSTALLED, REPORT]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("TORCHLINT_REPOSITORY", b"set it to the address of the repository of torchlint"),
        ("TORCHLINT_REF", b"set it to a tag or a commit of torchlint"),
    ],
)
def test_nothing_is_installed_without_a_source(tmp_path: Path, name: str, said: bytes) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        ran(tmp_path, **{name: ""})
    assert said in failed.value.stderr
    assert "pip" not in (tmp_path / "noted").read_text()


def test_variables_are_never_run(tmp_path: Path) -> None:
    evil = "$(touch x); `touch x` * -o"
    named = {"TORCHLINT_SRC": evil, "TORCHLINT_REPOSITORY": evil, "TORCHLINT_REF": evil}
    words = ran(tmp_path, **named, CI_MERGE_REQUEST_DIFF_BASE_SHA=evil)

    assert [line.count(evil) for line in words] == [0, 0, 2, 0, 0, 0, 1, 2]
    assert not (tmp_path / "x").exists()


def test_the_report_is_kept_whatever_the_outcome() -> None:
    assert JOB["artifacts"]["when"] == "always"
    (report,) = [line for line in JOB["script"] if "--output-format gitlab" in line]
    assert JOB["artifacts"]["reports"]["codequality"] in report.split()
