"""The properties notice what they are for: each is shown a linter, or a program, that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst
import numpy as np
import pytest
import torch

from benchmarks.fuzz import campaign, execution, properties
from benchmarks.fuzz.execution import differences
from benchmarks.fuzz.reduction import reduced
from torchlint.diagnostics import Applicability, Edit, Fix
from torchlint.options import LintSettings
from torchlint.rule import WARNING, Finding, Rule, rule
from torchlint.semantics.module import Module

UseRules = Callable[..., LintSettings]
PROGRAM = """\
import torch
old = torch.ones(2)
results = {"sum": old.sum(), "text": "a"}
net = torch.nn.Linear(1, 1)
print(old)
"""


def replacing(new: str, grade: Applicability = Applicability.SAFE, code: str = "XX101") -> Rule:
    """A rule whose fix puts another expression in the place of ``torch.ones(2)``."""

    @rule(code, "old-name", severity=WARNING, fix="safe", on=cst.Call)
    def check(call: cst.Call, module: Module) -> Iterator[Finding]:
        if module.source(call) == "torch.ones(2)":
            yield Finding(call, "an old call", Fix("Go", (Edit(module.tree.span(call), new),), grade))

    return check


@pytest.fixture
def use(use_rules: UseRules) -> Iterator[UseRules]:
    properties.settings.cache_clear()
    yield use_rules
    properties.settings.cache_clear()


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        ("torch.ones(2) * 1", None),
        ("torch.full((2,), 1.0)", None),
        ("torch.ones(2, requires_grad=True)", None),
        ("torch.ones(2, requires_grad=True) * 1", None),
        ("torch.full((2,), 1.5)", "after the fixes of XX101: results['sum']: Tensor tensor(2.) became"),
        ("torch.full((2,), 1.0 + 1e-6)", "it prints"),
        ("torch.ones(2, dtype=torch.float64)", "dtype torch.float32 became torch.float64"),
        ("torch.rand(2) * 0 + 1", "the state of net['weight']"),
        ("torch.nones(2)", "the program ends with AttributeError"),
    ],
)
def test_a_safe_fix_that_changes_what_is_computed(use: UseRules, new: str, complaint: str | None) -> None:
    use(replacing(new.replace("torch.ones(2) * 1", "1 * torch.ones((2))")))
    found = list(properties.same_results(PROGRAM))
    assert found == [] if complaint is None else any(complaint in item for item in found), found


def test_rounding_is_no_difference_where_a_rule_says_that_it_rounds(use: UseRules) -> None:
    use(replacing("torch.full((2,), 1.0 + 1e-12, dtype=torch.float64)", code="TL202"))
    assert list(properties.same_results(PROGRAM.replace("print(old)", ""))) == []
    use(replacing("torch.full((2,), 1.0 + 1e-3)", code="TL202"))
    properties.settings.cache_clear()
    assert list(properties.same_results(PROGRAM)) != []


def test_an_unsafe_fix_may_compute_otherwise_but_must_run(use: UseRules) -> None:
    use(replacing("torch.zeros(3)", Applicability.UNSAFE))
    assert list(properties.same_results(PROGRAM)) == list(properties.still_runs(PROGRAM)) == []
    properties.settings.cache_clear()
    use(replacing("torch.zeros(3, 0.5)", Applicability.UNSAFE))
    (found,) = properties.still_runs(PROGRAM)
    assert found.startswith("after the fixes of XX101: the program ends with TypeError")


def test_a_fix_that_leaves_the_error_that_it_is_about(use: UseRules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "CRASHING", frozenset({"XX101"}))
    broken = PROGRAM + "torch.gone(old)\n"
    use(replacing("torch.ones((2))"))
    (found,) = properties.mended(broken)
    assert "the program still ends with AttributeError" in found
    properties.settings.cache_clear()
    use(replacing("torch.ones(2)); torch.gone = str; str("))
    assert list(properties.mended(broken)) == list(properties.mended(PROGRAM)) == []


def test_a_rule_that_sees_the_layout(use: UseRules) -> None:
    use(replacing("torch.ones((2))"))
    assert list(properties.without_layout(PROGRAM)) == []
    (found,) = properties.without_layout(PROGRAM.replace("ones(2)", "ones(2  )"))
    assert found == "laid out otherwise, it has {'XX101': 1} more and {} less"
    assert list(properties.without_layout("def f(:\n")) == []


def test_comments_may_change_what_is_found(use: UseRules) -> None:
    @rule("XX102", "comment", severity=WARNING, fix="none", on=cst.Module)
    def check(node: cst.Module, module: Module) -> Iterator[Finding]:
        if "# slow" in module.tree.text:
            yield Finding(node.body[0], "it is slow", remedy="Hurry")

    use(check)
    assert properties._codes("x = 1  # slow\n") == {"XX102": 1}
    assert list(properties.without_layout("x = 1  # slow\n")) == []


def test_the_invariants_are_asked_for_new_releases_too(use: UseRules) -> None:
    use(replacing("torch.ones(("))
    assert any("the fix breaks the program" in item for item in properties.held_today(PROGRAM))


def test_the_invariants_of_fixtures_hold_of_any_text(use: UseRules) -> None:
    use(replacing("torch.ones(("))
    assert any("the fix breaks the program" in item for item in properties.held(PROGRAM))
    assert list(properties.held("def f(:\n")) == []


def test_a_check_that_takes_long_for_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(properties.quick(PROGRAM)) == []
    monkeypatch.setattr(properties, "SECONDS", -1.0)
    assert [item.split(":")[0] for item in properties.quick(PROGRAM)] == ["check", "fix"]


def test_a_program_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "SECONDS", 0.2)
    with pytest.raises(execution.TooLongError):
        execution.run("while True:\n    pass\n")


def test_programs_for_a_gpu_run_on_the_cpu() -> None:
    program = 'import torch\nresults = {"x": torch.ones(1, device="cuda:0").cuda().device.type}\n'
    assert execution.run(program).results == {"x": "cpu"}


@pytest.mark.parametrize(
    ("before", "after", "tolerance", "alike"),
    [
        (1.0, 1.0, 0, True),
        (1.0, 1.0 + 1e-9, 0, False),
        (1.0, 1.0 + 1e-9, 1e-7, True),
        (1.0, 1, 1e-7, False),
        (float("nan"), float("nan"), 0, True),
        (1.0, float("nan"), 1e-3, False),
        (1.0, torch.tensor(1.0), 1e-3, False),
        ([1.0, [2]], [1.0, [3]], 1e-3, False),
        ([1.0], [1.0, 2.0], 0, False),
        ({"a": "x"}, {"a": "y"}, 0, False),
        ({"a": "x"}, {"b": "x"}, 0, False),
        (np.ones(2), np.ones(3), 0, False),
        (torch.ones(2), torch.ones(2), 0, True),
        (None, None, 0, True),
    ],
)
def test_differences(before: object, after: object, tolerance: float, alike: bool) -> None:
    assert (list(differences(before, after, tolerance)) == []) is alike


def test_a_finding_is_made_small() -> None:
    text = "import a\n\n\ndef f(x):\n    if x:\n        y = 1\n        bad(x)\n    return 2\n\n\nf(3)\n"
    assert reduced(text, lambda made: "bad" in made).split() == ["def", "f(x):", "if", "x:", "bad(x)"]
    assert reduced("(\nbad\n(", lambda made: "bad" in made) == "bad\n"


def test_a_process_that_hangs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PATIENCE", 0.01)
    tried = next(campaign.run(seed=0, seconds=60, first=1))
    assert (tried.kind, tried.number) == ("mutants", 1)
    assert [problem.message for problem in tried.problems] == ["it hangs"]
    assert tried.problems[0].text == campaign.text(0, 1)
