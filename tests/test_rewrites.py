"""Functions that are rewritten compute the same: both forms of the fixtures are run on random tensors.

A fixture ``bad_functions.py`` holds nothing but functions on tensors, and ``bad_functions.fixed.py`` what the
fixes make of them.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

FIXTURES = Path(__file__).parent.parent / "fixtures"
Function = Callable[..., torch.Tensor]


@cache
def functions(code: str) -> dict[str, tuple[Function, Function]]:
    """The functions of a rule's fixture, before and after the fix, by name."""
    (folder,) = FIXTURES.glob(f"{code}_*")
    before, after = (
        {name: value for name, value in runpy.run_path(str(path)).items() if _is_own(value, path)}
        for path in (folder / "bad_functions.py", folder / "bad_functions.fixed.py")
    )
    assert before.keys() == after.keys() and before
    return {name: (before[name], after[name]) for name in before}


def _is_own(value: Any, path: Path) -> bool:
    return callable(value) and getattr(getattr(value, "__code__", None), "co_filename", "") == str(path)


REWRITTEN = ("TL404", "TL405", "TL406", "TL408", "TL411", "TL413")
EVERY = [(code, name) for code in REWRITTEN for name in functions(code)]


def outputs_and_gradients(function: Function, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """What a function gives, and the gradients of a weighted sum of it."""
    leaves = tuple(
        tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs
    )
    result = function(*leaves)
    weights = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape)
    (result * weights.to(result.dtype)).sum().backward()
    gradients = [leaf.grad for leaf in leaves if leaf.requires_grad]
    return [result.detach(), *(gradient for gradient in gradients if gradient is not None)]


def errors(function: Function, inputs: tuple[torch.Tensor, ...], exact: list[torch.Tensor]) -> list[float]:
    """How far a function and its gradients are off, each as a share of the largest exact element."""
    found = outputs_and_gradients(function, inputs)
    return [
        float((a.double() - b).abs().max() / b.abs().max().clamp_min(1e-3))
        for a, b in zip(found, exact, strict=True)
    ]


@pytest.mark.parametrize("name", functions("TL402"))
@pytest.mark.parametrize("seed", range(4))
def test_attention_in_one_call_is_the_attention_that_was_written_out(name: str, seed: int) -> None:
    """Over random shapes and masks, in float64 and bfloat16, with gradients and without dropout."""
    before, after = functions("TL402")[name]
    generator = torch.Generator().manual_seed(seed)
    batch, heads, queries, keys, size = torch.randint(1, 7, (5,), generator=generator).tolist()
    q, k, v = (
        torch.randn(batch, heads, length, size, generator=generator, dtype=torch.float64)
        for length in (queries, keys, keys)
    )
    bias = torch.randn(batch, 1, queries, keys, generator=generator, dtype=torch.float64)
    keep = torch.rand(batch, 1, queries, keys, generator=generator) < 0.6
    keep[..., 0] = True
    inputs = (q, k, v, bias, keep)
    expected = outputs_and_gradients(before, inputs)
    tolerance = 1e-6 if name in CASTS else 1e-12
    assert max(errors(after, inputs, expected)) < tolerance

    # In bfloat16 the one call is about as near to the exact result as the steps were.
    short = tuple(tensor.bfloat16() if tensor.is_floating_point() else tensor for tensor in inputs)
    exact = outputs_and_gradients(before, tuple(t.double() if t.is_floating_point() else t for t in short))
    ours, theirs = errors(after, short, exact), errors(before, short, exact)
    assert all(mine < max(2 * other, 0.05) for mine, other in zip(ours, theirs, strict=True))


# These compute softmax in float32, whatever they are given.
CASTS = {"upcast", "cast_back"}


@pytest.mark.parametrize("name", ["optional_mask", "optional_bias"])
def test_attention_without_its_mask(name: str) -> None:
    before, after = functions("TL402")[name]
    q, k, v = torch.randn(3, 2, 4, 5, 6, dtype=torch.float64)
    assert torch.allclose(before(q, k, v), after(q, k, v), rtol=0, atol=1e-12)


# Norms of rows of two or three elements hardly have a gradient.
@pytest.mark.parametrize(("code", "name"), EVERY)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=st.tuples(*[st.integers(4, 6)] * 3), seed=st.integers(0, 2**16), scale=st.floats(0.1, 2))
def test_formulas_are_equal(
    code: str, name: str, shape: tuple[int, int, int], seed: int, scale: float
) -> None:
    """In float64 the outputs and gradients are the same; in float32 the new form is no less exact."""
    before, after = functions(code)[name]
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    # The backward pass of ``hardsigmoid`` has a sixth with the digits of float32.
    assert max(errors(after, (x,), outputs_and_gradients(before, (x,)))) < 1e-7

    short = (x.float(),)
    exact = outputs_and_gradients(before, (short[0].double(),))
    for mine, other in zip(errors(after, short, exact), errors(before, short, exact), strict=True):
        assert mine < max(4 * other, 1e-3)


def networks(path: Path) -> dict[str, type[torch.nn.Module]]:
    """The modules that a file defines, by name."""
    found = runpy.run_path(str(path))
    return {name: value for name, value in found.items() if isinstance(value, type)}


REGISTERED = networks(FIXTURES / "TL409_modules_in_plain_list" / "bad_networks.fixed.py")


@pytest.mark.parametrize("name", REGISTERED)
def test_registered_modules_compute_what_those_in_a_list_did(name: str) -> None:
    """The outputs are the same to the bit, and every parameter gets a gradient, is moved and is saved."""
    before, after = (
        networks(FIXTURES / "TL409_modules_in_plain_list" / "bad_networks.py")[name],
        REGISTERED[name],
    )
    x = torch.randn(3, 4)
    torch.manual_seed(0)
    hidden = before()
    torch.manual_seed(0)
    registered = after()
    assert torch.equal(hidden(x), registered(x))
    assert not hidden.state_dict() and registered.state_dict()
    registered.double()(x.double()).sum().backward()
    assert any(parameter.grad is not None for parameter in registered.parameters())
    assert {parameter.dtype for parameter in registered.parameters()} == {torch.float64}


@pytest.mark.parametrize("name", [name for name in functions("TL505") if "average" in name])
def test_an_average_in_one_call_is_the_average_of_the_loop(name: str) -> None:
    """Over two steps, in float64: of a module with parameters of all sizes, and buffers that stay."""
    before, after = functions("TL505")[name]
    averages = []
    for function in (before, after):
        torch.manual_seed(0)
        average, model = (
            torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)) for _ in "ab"
        )
        average.double(), model.double()
        for share in (0.25, 0.9):
            function(average, model, share)
        averages.append([value.detach() for value in average.state_dict().values()])
    torch.testing.assert_close(averages[0], averages[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in functions("TL505") if "clip" in name])
def test_gradients_clipped_in_one_call_are_those_of_the_loop(name: str) -> None:
    before, after = functions("TL505")[name]
    clipped = []
    for function in (before, after):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        (100 * model(torch.randn(3, 4))).sum().backward()
        function(model, torch.optim.SGD(model.parameters(), lr=0.1), 0.5)
        clipped.append([parameter.grad for parameter in model.parameters()])
    assert max(float(gradient.abs().max()) for gradient in clipped[0] if gradient is not None) == 0.5
    torch.testing.assert_close(clipped[0], clipped[1], rtol=0, atol=0)
