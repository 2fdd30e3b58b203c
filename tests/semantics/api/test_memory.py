"""Each name of the tables is called, and its result looked at: it may share no memory with what was given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from torchlint.semantics.api.memory import READING_FUNCTIONS, READING_METHODS

X, Y = torch.tensor([[0.5, 0.25], [0.75, 0.1]]), torch.tensor([[0.3, 0.6], [0.2, 0.9]])
ROW, COUNTS, FLAGS = (
    torch.tensor([0.5, 0.25]),
    torch.tensor([1, 0]),
    torch.tensor([[True, False], [True, True]]),
)
SERIES, IMAGE, VOLUME = torch.rand(1, 2, 4), torch.rand(1, 2, 4, 4), torch.rand(1, 2, 4, 4, 4)
GRID = torch.rand(1, 4, 4, 2)

# What may be given, from the usual to the rare: a call is made with the first that the function accepts.
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (X,),
    (X, Y),
    (X, 0),
    (X, X, Y),
    ([X, Y],),
    (ROW,),
    (ROW, Y[0]),
    (COUNTS,),
    (COUNTS, COUNTS),
    (FLAGS, FLAGS),
    (X, FLAGS, 0.0),
    (X, FLAGS, Y),
    (X, FLAGS),
    (X, 0, COUNTS),
    (X, 0, COUNTS.expand(2, 2)),
    (X, 0, COUNTS, Y),
    (X, 0, COUNTS, 1.0),
    (X, 0, COUNTS.expand(2, 2), Y),
    (X, (0,)),
    (X, (1, 1)),
    (X, 1, 0, 1.0),
    (X, ROW, ROW),
    (X, X.expand(1, 2, 2), X.expand(1, 2, 2)),
    (X.expand(1, 2, 2), X.expand(1, 2, 2)),
    (X.expand(1, 2, 2), X.expand(1, 2, 2), X.expand(1, 2, 2)),
    (torch.rand(3), torch.rand(3)),
    (X, 1),
    (FLAGS, X, Y),
    (SERIES, torch.rand(2, 2, 2)),
    (IMAGE, torch.rand(2, 2, 2, 2)),
    (VOLUME, torch.rand(2, 2, 2, 2, 2)),
    (X, Y, torch.rand(2, 2, 2)),
    (IMAGE, GRID),
    (IMAGE, 2),
    (SERIES, (0, 0)),
    (COUNTS, X),
    (X, (2,)),
    (X, COUNTS),
    (X.log(), COUNTS),
    (X, Y, torch.tensor([1.0, -1.0])),
    (torch.rand(4, 1, 3).log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])),
    (X, Y, ROW),
    (X, COUNTS.expand(2, 2)),
    (X, ROW),
    (ROW, X, Y[0]),
    (ROW.sum(),),
    (X, (2,), 1.0),
)


REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError)


def _tensors(item: object) -> Iterator[torch.Tensor]:
    if isinstance(item, torch.Tensor):
        yield item
    elif isinstance(item, (list, tuple)):
        for inner in item:
            yield from _tensors(inner)


def _address(tensor: torch.Tensor) -> int:
    address: int = tensor.untyped_storage().data_ptr()
    return address


BEFORE = {id(tensor): tensor.clone() for arguments in ARGUMENTS for tensor in _tensors(arguments)}


def _called(function: Callable[..., Any]) -> tuple[tuple[Any, ...], Any] | None:
    """The first of the arguments that a function takes, and what it returns."""
    for arguments in ARGUMENTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return arguments, function(*arguments)
        except (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError):
            continue
    return None


def _check(function: Callable[..., Any]) -> None:
    found = _called(function)
    assert found is not None, "no arguments fit"
    arguments, result = found
    given = {_address(tensor) for tensor in _tensors(arguments)}
    assert not any(_address(tensor) in given for tensor in _tensors(result) if tensor.numel())
    for tensor in _tensors(arguments):
        assert torch.equal(tensor, BEFORE[id(tensor)])


@pytest.mark.parametrize("name", sorted(READING_METHODS))
def test_method(name: str) -> None:
    _check(getattr(torch.Tensor, name))


@pytest.mark.parametrize("name", sorted(READING_FUNCTIONS - {"torch.save"}))
def test_function(name: str) -> None:
    function: Any = torch
    for part in name.split(".")[1:]:
        function = getattr(function, part)
    _check(function)


def test_what_is_not_to_be_in_the_tables() -> None:
    assert {"view", "to", "float", "detach", "squeeze", "add_", "contiguous"}.isdisjoint(READING_METHODS)
    assert {"torch.squeeze", "torch.as_tensor", "torch.nn.functional.dropout"}.isdisjoint(READING_FUNCTIONS)
