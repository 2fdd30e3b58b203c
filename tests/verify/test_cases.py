"""Every bench case is found by its own rule, changed by its own fix, and computes the same in both forms."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchlint.checker import check
from torchlint.dev import ROOT
from torchlint.diagnostics import Diagnostic, Severity
from torchlint.options import LintSettings
from torchlint.registry import catalogue
from torchlint.rule import Rule
from torchlint.source import Source
from torchlint.target import installed
from torchlint.verify.cases import FIXED, STEP, Case, case_path, cases, fixed_text, read
from torchlint.verify.measure import Pool, Session, Settings
from torchlint.verify.processes import Nurseries
from torchlint.verify.results import Agreement, Machine
from torchlint.verify.subjects import Bench

CASES = {case.code: case for case in cases()}
RANKED = [code for code, case in CASES.items() if max(case.ranks, case.ranks_fixed) > 1]

A_CASE = "SIZES = {'small': 1}\ndef setup(device, size): ...\ndef step(state): ...\n"


def found(case: Case, text: str) -> list[Diagnostic]:
    """What the rule of a case finds in ``text``."""
    codes = frozenset({case.code})
    settings = LintSettings(rules=(case.code,), fixable=codes, unsafe_fixes=True, target=installed())
    return check(Source(case.path, text), settings)


def measured_rows(case: Case) -> set[int]:
    """The lines of ``step``, and of the classes, of which ``step`` and ``step_fixed`` use a part each."""
    return {
        row
        for node in ast.parse(case.text).body
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node.name == STEP)
        for row in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


# --- which cases there are -------------------------------------------------------------------------------


def test_every_rule_that_claims_speed_or_memory_has_a_case() -> None:
    measured = {code for code, rule in catalogue().items() if rule.measured}
    assert not measured - set(CASES), "write a case, or say `measured=False` in the declaration of the rule"
    assert not set(CASES) - measured, "a rule with a case is measured"
    assert list(CASES) == sorted(CASES)


def test_no_case_lacks_its_rule() -> None:
    files = {path for path in (ROOT / "rules").glob("*/cases/*.py") if path.name != "__init__.py"}
    paths = {case.path.resolve() for case in CASES.values()}
    paths |= {path.with_stem(path.stem + FIXED) for path in paths if CASES[code_of(path)].good}
    assert paths == files


def code_of(path: Path) -> str:
    """The rule that a case is of."""
    return next(case.code for case in CASES.values() if case.path.resolve() == path)


def test_the_good_form_may_stand_beside_the_case(tmp_path: Path) -> None:
    path = tmp_path / "slow_thing.py"
    path.write_text(A_CASE, encoding="utf-8")
    beside = tmp_path / "slow_thing_fixed.py"
    beside.write_text("RANKS = 2\n" + A_CASE, encoding="utf-8")
    case = read(catalogue()["TL202"], path)
    assert (case.ranks, case.ranks_fixed) == (1, 2)
    assert fixed_text(case) == beside.read_text(encoding="utf-8")
    beside.write_text("RANKS = 2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{beside}: a case defines `setup`")):
        read(catalogue()["TL202"], path)


def test_some_are_chosen_by_code() -> None:
    assert [case.code for case in cases(["TL202", "TL105", "TL101"])] == ["TL101", "TL202"]
    with pytest.raises(ValueError, match=r"^no rule has the code `TL999`$"):
        cases(["TL202", "TL999"])


def test_the_case_of_a_rule_pack_stands_beside_its_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pack_with_cases" / "cases"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package.parent / "rules.py").touch()
    (package / "slow_thing.py").write_text(A_CASE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def check(node: object, module: object) -> Iterator[Any]:
        yield from ()

    check.__module__ = "pack_with_cases.rules"
    rule = Rule("XY101", "slow-thing", Severity.WARNING, "none", (), (), False, check)
    path = case_path(rule)
    assert path == package / "slow_thing.py"
    assert read(rule, path) == Case("XY101", "slow-thing", path, A_CASE, ("small",), False)
    assert case_path(Rule("XY102", "other-thing", Severity.WARNING, "none", (), (), False, check)) is None


def test_listing_cases_imports_neither_torch_nor_the_parser() -> None:
    code = "import sys, torchlint.verify.cases as c; c.cases(); print({'torch', 'libcst'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (A_CASE.replace("setup", "prepare"), "a case defines `setup`"),
        (A_CASE.replace("step", "run"), "a case defines `step`"),
        (A_CASE.replace("SIZES", "LENGTHS"), "a case has its sizes as the keys of a dictionary `SIZES`"),
        (A_CASE.replace("'small'", "small"), "a case has its sizes as the keys of a dictionary `SIZES`"),
        (A_CASE.replace("'small': 1", ""), "a case has its sizes as the keys of a dictionary `SIZES`"),
        (A_CASE.replace("):", ")"), "expected ':'"),
    ],
)
def test_what_is_no_case_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "slow_thing.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{path}: {reason}")):
        read(catalogue()["TL202"], path)


# --- what every case keeps to ----------------------------------------------------------------------------


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each case in turn."""
    return CASES[request.param]


def test_the_page_of_a_case_says_what_each_size_is(case: Case) -> None:
    assert case.sizes == ("small", "medium", "large")
    page = ast.get_docstring(ast.parse(case.text)) or ""
    assert re.findall(r"^- (\w+): \d+ \w+", page, re.MULTILINE) == list(case.sizes)


def test_a_case_has_what_its_rule_finds(case: Case) -> None:
    findings = found(case, case.text)
    assert findings and {finding.code for finding in findings} == {case.code}
    expected = {catalogue()[case.code].severity, Severity.WARNING, Severity.ERROR}
    assert {finding.severity for finding in findings} <= expected
    if case.has_step_fixed:
        assert {finding.start.row for finding in findings} <= measured_rows(case)


def test_the_fixer_makes_the_good_form(case: Case) -> None:
    fixed = fixed_text(case)
    compile(fixed, case.path, "exec")
    if case.has_step_fixed or case.good:
        assert fixed == (case.good or case.text)
        # Where there is a fix for what was found, the fix is what is measured.
        assert all(finding.fix is None for finding in found(case, case.text))
        assert not case.good or found(case, fixed) == []
    else:
        assert fixed != case.text and found(case, fixed) == []


def test_a_case_without_anything_to_fix_is_refused() -> None:
    case = CASES["TL202"]
    good = Case(case.code, case.name, case.path, fixed_text(case), case.sizes, False)
    with pytest.raises(ValueError, match=r"the fixer leaves the case unchanged$"):
        fixed_text(good)


# --- both forms compute the same -------------------------------------------------------------------------


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Programs this small only lose by sharing their compute, and tests may run beside each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def switches_put_back() -> Iterator[None]:
    """The good form of a case may turn a switch of torch that holds for the whole process."""
    precision, benchmark = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    yield
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.benchmark = benchmark


@pytest.fixture(params=[code for code in CASES if code not in RANKED])
def alone(request: pytest.FixtureRequest) -> Case:
    """Each case whose program has one process."""
    return CASES[request.param]


@pytest.fixture(params=RANKED)
def ranked(request: pytest.FixtureRequest) -> Case:
    """Each case whose program has several ranks, in one of its forms at least."""
    return CASES[request.param]


@pytest.mark.usefixtures("one_thread", "switches_put_back")
@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy:UserWarning")
def test_both_forms_compute_the_same(
    alone: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = alone
    bad = imported(case.text, tmp_path / "bad_form.py", monkeypatch)
    good = imported(fixed_text(case), tmp_path / "good_form.py", monkeypatch)
    bad_step, good_step = bad.step, good.step_fixed if case.has_step_fixed else good.step

    torch.manual_seed(0)
    before = bad.setup("cpu", "small")
    random = torch.get_rng_state()
    start = {name: value.detach().clone() for name, value in parameters(before).items()}
    expected = [bad_step(before) for _ in range(2)]

    torch.manual_seed(0)
    after = good.setup("cpu", "small")
    trained = parameters(after)
    assert trained.keys() <= start.keys()
    with torch.no_grad():
        for name, value in trained.items():
            value.copy_(start[name])
    torch.set_rng_state(random)
    results = [good_step(after) for _ in range(2)]

    tolerance = {"rtol": 1e-5, "atol": 1e-6} if case.rounded else {"rtol": 0.0, "atol": 0.0}
    torch.testing.assert_close(results, expected, **tolerance)
    wanted = {name: value for name, value in parameters(before).items() if name in trained}
    torch.testing.assert_close(trained, wanted, **tolerance)
    for result in results:
        assert isinstance(result, torch.Tensor) and not result.requires_grad, "`step` detaches its result"
    assert all(result.isfinite().all() for result in expected)
    # One line a batch against one a step.
    if case.code == "TL204":
        assert len(re.findall("^loss tensor", capsys.readouterr().out, re.MULTILINE)) == 2 * (4 + 1)


def test_both_forms_compute_the_same_on_every_rank(ranked: Case, scratch: Path, nurseries: Nurseries) -> None:
    bench = Bench(ranked, scratch, device="cpu")
    with Pool(bench, nurseries) as pool:
        session = Session(pool, Settings(device="cpu", tolerance=1e-5), Machine("cpu"), bench.folder, "small")
        session.examine_original()
        session.examine([bench.variant])
    sameness = session.examinations[bench.variant.name].sameness
    expected = [Agreement.IDENTICAL] + [Agreement.CLOSE] * bool(ranked.rounded)
    assert sameness.agreement in expected, sameness.reason


def imported(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A form of a case as a module, found again by name for as long as the test runs."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def parameters(state: Any) -> dict[str, torch.Tensor]:
    """The parameters of the model in the state of a case."""
    models = [value for value in vars(state).values() if isinstance(value, nn.Module)]
    assert len(models) == 1, "one attribute of the state is the model"
    return dict(models[0].named_parameters())
