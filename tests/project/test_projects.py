"""Small projects of several files, each checked as a whole, as a user would: what is found, and where.

A project is a folder ``fixtures/projects/<topic>/<name>``. Comments such as ``# expect: TL202`` mark its
findings as they do in the fixtures of the rules, those of every rule, in whichever file they stand. In a
project whose name begins with ``bad`` a finding, or the grade of its fix, follows from what several files say
together; in one that begins with ``good`` another file says why there is nothing to find where there seems
to be.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint import registry
from torchlint.commands.check import command
from torchlint.testing import Case

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures" / "projects"
NAMES = sorted(path.relative_to(PROJECTS).as_posix() for path in PROJECTS.glob("*/*") if path.is_dir())
# As old as the oldest release that all of them would run with.
TARGET = "2.3"

# What follows from several files together and is not found yet, or is found although another file speaks
# against it.
WAITING: frozenset[str] = frozenset(
    {
        "checkpoint_elsewhere/bad_imported_for_export",
        "composition/bad_parts_handed_over",
        "dataset_on_device/bad_device_passed_in",
        "dataset_on_device/bad_items_on_device",
        "device_elsewhere/bad_base_class",
        "device_elsewhere/bad_dataclass_config",
        "device_elsewhere/bad_module_constant",
        "device_elsewhere/bad_parser",
        "device_elsewhere/good_cpu_config",
        "evaluation_without_torch/bad_evaluate",
        "evaluation_without_torch/bad_package",
        "frozen_elsewhere/good_frozen",
        "hot_helpers/bad_metric_in_utils",
        "hot_helpers/bad_reexported",
        "hot_helpers/bad_two_files_deep",
        "import_forms/bad_conditional",
        "import_forms/bad_cycle",
        "import_forms/bad_name_clash",
        "import_forms/bad_relative_and_star",
        "import_forms/bad_src_layout",
        "inheritance/bad_dataset_base",
        "inheritance/bad_loop_in_base",
        "inheritance/good_hooks_once",
        "loader_factory/bad_factories",
        "loader_factory/bad_options_elsewhere",
        "meters/bad_metric_logger",
        "model_forward/bad_called_in_a_loop",
        "model_forward/bad_softmax_last",
        "model_forward/good_cpu_model",
        "no_grad_elsewhere/good_callers_off",
        "no_grad_elsewhere/good_helper_needs_gradients",
        "no_grad_elsewhere/good_result_backpropagated",
        "seeds_and_flags/bad_conflict",
        "seeds_and_flags/bad_nothing_set",
        "seeds_and_flags/good_deterministic",
        "seeds_and_flags/good_set_elsewhere",
        "wrapped_elsewhere/bad_compiled",
        "wrapped_elsewhere/bad_ddp",
        "wrapped_elsewhere/bad_ddp_plain_loader",
        "wrapped_elsewhere/bad_fsdp",
        "wrapped_elsewhere/good_wrapped",
    }
)

Place = tuple[str, int, str, str]
"""File, row, code and severity."""


def wanted(project: Path) -> list[tuple[Place, str | None]]:
    """What the comments of a project ask for, with the grade of the fix where they name one."""
    return [
        (
            (
                path.relative_to(project).as_posix(),
                item.row,
                item.code,
                item.severity or registry.catalogue()[item.code].severity.value,
            ),
            item.fix,
        )
        for path in sorted(project.rglob("*.py"))
        for item in Case(path).expectations
    ]


def found(project: Path) -> list[tuple[Place, str]]:
    """What a check of the folder reports, every rule being on, with the grade of the fix."""
    options = ("--isolated", "--select", "ALL", "--target-torch", TARGET, "--jobs", "1")
    result = CliRunner().invoke(command, [*options, "--output-format", "json", str(project)])
    assert result.exit_code in (0, 1), result.output
    return [
        (
            (
                Path(item["filename"]).relative_to(project).as_posix(),
                item["location"]["row"],
                item["code"],
                item["severity"],
            ),
            item["fix"]["applicability"] if item["fix"] else "none",
        )
        for item in json.loads(result.stdout)
    ]


def differences(project: Path) -> list[str]:
    """What is wanted and not found, and what is found and not wanted."""
    missing, unexpected = [], found(project)
    for place, fix in wanted(project):
        same = [item for item in unexpected if item[0] == place and fix in (None, item[1])]
        if same:
            unexpected.remove(same[0])
        else:
            missing.append((place, fix))
    return [
        f"{file}:{row}: {code}[{severity}] fix={fix or 'any'} {verdict}"
        for verdict, items in (("is missing", missing), ("is found", unexpected))
        for (file, row, code, severity), fix in items
    ]


@pytest.mark.parametrize("name", NAMES)
def test_project(name: str, tmp_path: Path) -> None:
    """On a copy, so that the files around the fixtures are no part of the project."""
    project = tmp_path / "project"
    shutil.copytree(PROJECTS / name, project)
    different = differences(project)
    if name in WAITING:
        assert different, f"{name} is as it should be: it no longer waits"
    else:
        assert not different, "\n".join(different)


def test_what_waits_exists() -> None:
    assert set(NAMES) >= WAITING


@pytest.mark.parametrize("name", NAMES)
def test_bad_projects_expect_something(name: str) -> None:
    project = PROJECTS / name
    kind = project.name.partition("_")[0]
    assert kind in ("bad", "good")
    assert kind == "good" or wanted(project)
    assert 2 <= len([path for path in project.rglob("*.py") if path.read_text(encoding="utf-8")]) <= 8


def test_every_topic_has_both_kinds() -> None:
    topics: dict[str, set[str]] = {}
    for name in NAMES:
        topic, _, project = name.partition("/")
        topics.setdefault(topic, set()).add(project.partition("_")[0])
    assert all(kinds == {"bad", "good"} for kinds in topics.values()), topics
