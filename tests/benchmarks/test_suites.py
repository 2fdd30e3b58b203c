"""The benchmark that runs packages' own tests says which fix lost which test, and tells luck apart."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.suites import packages
from benchmarks.suites.judging import Judge, Verdict
from benchmarks.suites.packages import Suite
from torchlint.target import Target

_MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x))
"""
# What stands for torch while the toy package's tests run: importing the real one takes most of the time.
_TORCH = """
from torch import nn
"""
_NN = """
class Module:
    training = True

    def named_parameters(self):
        for name, layer in vars(self).items():
            for part in layer.parts:
                yield f"{name}.{part}", None


class Conv2d(Module):
    def __init__(self, *sizes, bias=True):
        self.parts = ["weight", "bias"] if bias else ["weight"]


class BatchNorm2d(Module):
    def __init__(self, size):
        self.parts = ["weight", "bias"]
"""
_TESTS = """
import pathlib

from model import Block


def test_is_a_module():
    assert Block().training


def test_names_its_parameters():
    assert [name for name, _ in Block().named_parameters()] == [
        "conv.weight", "conv.bias", "norm.weight", "norm.bias"
    ]


def test_fails_anyway():
    assert not Block().training


def test_passes_the_first_time_only():
    ran = pathlib.Path("{ran}")
    times = int(ran.read_text()) if ran.exists() else 0
    ran.write_text(str(times + 1))
    assert times == 0
"""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    """What the fixes do to the tests of a toy package."""
    folder = tmp_path_factory.mktemp("suites")
    sources, stand_in = folder / "sources", folder / "copies" / "stand-in" / "torch"
    sources.mkdir()
    (sources / "model.py").write_text(_MODEL, encoding="utf-8")
    # The test counts its runs outside of the copies.
    (sources / "test_model.py").write_text(_TESTS.format(ran=folder / "ran"), encoding="utf-8")
    stand_in.mkdir(parents=True)
    (stand_in / "__init__.py").write_text(_TORCH, encoding="utf-8")
    (stand_in / "nn.py").write_text(_NN, encoding="utf-8")
    suite = Suite("toy", "1", ("test_model.py",), (), (".", "../stand-in"), {}, {})
    judge = Judge(Path(sys.executable), Target.parse("2.13"), folder / "copies", 1, 120, lambda _: None)
    return judge.judge(suite, sources)


def test_a_test_that_an_unsafe_fix_loses_is_named_with_its_rule(verdict: Verdict) -> None:
    assert (verdict.before.passed, verdict.before.failed) == (3, 1)
    assert verdict.safe is not None and verdict.unsafe is not None
    assert verdict.safe.lost == []
    (lost,) = verdict.unsafe.lost
    assert lost.test == "test_model.py::test_names_its_parameters"
    assert lost.rules == ["TL401"]
    assert "conv.weight" in lost.said


def test_a_test_that_fails_when_it_is_run_again_is_not_lost(verdict: Verdict) -> None:
    assert verdict.safe is not None and verdict.unsafe is not None
    assert verdict.safe.unstable == []  # no safe fix changes the package, so that nothing was run
    assert verdict.unsafe.unstable == ["test_model.py::test_passes_the_first_time_only"]


def test_a_lost_test_needs_a_reason(verdict: Verdict) -> None:
    assert verdict.unsafe is not None
    (problem,) = verdict.problems
    assert "test_names_its_parameters is lost to TL401, and nothing says why" in problem
    (lost,) = verdict.unsafe.lost
    explained = replace(verdict.unsafe, lost=[replace(lost, reason="the bias is a key of the state")])
    assert replace(verdict, unsafe=explained).problems == []
    # No reason is good enough for a safe fix.
    assert replace(verdict, safe=explained, unsafe=explained).problems != []


def test_every_pinned_suite_can_be_read() -> None:
    suites = packages.pinned()
    assert len({suite.name for suite in suites}) == len(suites) >= 7
    assert all(suite.tests for suite in suites)
