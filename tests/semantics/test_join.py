"""Joining values: neither their order nor how they are grouped changes what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.semantics.module import Module
from torchlint.semantics.values import (
    BATCH,
    BOOL,
    BOTTOM,
    MISSING,
    MODULE,
    NDARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    join,
)

ORIGINS = [cst.Name(name) for name in "ab"]
DEFINITIONS = [cst.ensure_type(cst.parse_statement(f"class {name}: pass"), cst.ClassDef) for name in "AB"]
CUDA = TENSOR.on(Device.ACCELERATOR)
ONE, TWO, ONE_POINT = (NUMBER._replace(constant=number) for number in (1, 2, 1.0))

# One of each sort, and pairs between which the shortcuts of a join decide.
SMALL: tuple[Value, ...] = (
    BOTTOM,
    UNKNOWN,
    UNKNOWN.on(Device.CPU),
    UNKNOWN._replace(among=frozenset({Kind.NUMBER, Kind.LIST})),
    UNKNOWN._replace(among=frozenset({Kind.TENSOR})),
    NONE,
    NONE.on(Device.CPU),
    NUMBER,
    ONE,
    TWO,
    ONE_POINT,
    NUMBER._replace(constant=0.0),
    NUMBER._replace(constant=-0.0),
    NUMBER._replace(literal=True),
    BOOL,
    BOOL._replace(constant=True),
    BOOL._replace(constant=1),
    TENSOR,
    CUDA,
    TENSOR._replace(device=Device.CPU, memory=Memory.PINNED),
    TENSOR._replace(device=Device.CPU, memory=Memory.PAGEABLE),
    TENSOR._replace(device=Device.CPU, graph=Graph.DETACHED, dtype="torch.float64", leaf=True),
    BATCH,
    BATCH._replace(device=Device.ACCELERATOR, part=True),
    STRING,
    STRING._replace(constant="cuda", device=Device.ACCELERATOR),
    Value(Kind.DEVICE, device=Device.CPU),
    NDARRAY,
    MODULE,
    Value(Kind.LIST),
    Value(Kind.LIST, elements=()),
    Value(Kind.LIST, elements=(ONE, TENSOR)),
    Value(Kind.TUPLE, elements=(TWO, BATCH)),
    Value(Kind.TUPLE, elements=(ONE_POINT, TENSOR)),
    Value(Kind.TUPLE, elements=(CUDA,)),
    Value(Kind.LIST, item=TENSOR),
    Value(Kind.ITERATOR, item=NUMBER),
    Value(Kind.OBJECT, definition=DEFINITIONS[0]),
    Value(Kind.OBJECT, definition=DEFINITIONS[1]),
)


CONSTANTS = [MISSING, MISSING, 0, 1, 2, 1.0, 0.0, -0.0, float("nan"), 1j, True, False, "a", None]


def _value(**parts: st.SearchStrategy[object]) -> st.SearchStrategy[Value]:
    # By `st.builds`, the types of all other fields would be gone into, those of syntax trees too.
    return st.fixed_dictionaries(parts).map(lambda given: Value(**given))  # type: ignore[arg-type]


LEAVES = _value(
    kind=st.sampled_from(list(Kind)),
    device=st.sampled_from(list(Device)),
    graph=st.sampled_from(list(Graph)),
    dtype=st.sampled_from([None, "torch.float64", "torch.bool"]),
    cls=st.sampled_from([None, "torch.nn.Linear", ".item"]),
    definition=st.sampled_from([None, *DEFINITIONS]),
    origin=st.sampled_from([None, *ORIGINS]),
    constant=st.sampled_from(CONSTANTS),
    leaf=st.booleans(),
    memory=st.sampled_from(list(Memory)),
    part=st.booleans(),
    literal=st.booleans(),
)


def _containers(parts: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return _value(
        kind=st.sampled_from([Kind.LIST, Kind.TUPLE, Kind.ITERATOR, Kind.DICT, Kind.FUNCTION]),
        elements=st.none() | st.lists(parts, max_size=3).map(tuple),
        item=st.none() | parts,
        receiver=st.none() | parts,
        origin=st.sampled_from([None, *ORIGINS]),
    )


VALUES = st.sampled_from(SMALL) | st.recursive(LEAVES, _containers, max_leaves=5)


def _exactly(value: Value | None) -> object:
    """A value in a form that tells ``1``, ``1.0`` and ``True`` apart."""
    if value is None:
        return None
    parts = value._replace(elements=None, item=None, receiver=None, constant=None, among=None)
    inner = (value.item, value.receiver, *(value.elements or ()))
    among = None if value.among is None else sorted(kind.value for kind in value.among)
    return parts, repr(value.constant), value.elements is None, among, tuple(map(_exactly, inner))


def _is_lattice(a: Value, b: Value, c: Value) -> bool:
    ab = join((a, b))
    grouped = {
        repr(_exactly(found))
        for found in (
            join((a, b, c)),
            join((c, b, a)),
            join((b, c, a)),
            join((ab, c)),
            join((a, join((b, c)))),
            join((join((a, c)), b)),
        )
    }
    return len(grouped) == 1


def test_every_triple_of_small_values_is_joined_to_one_however_it_is_grouped() -> None:
    wrong = [triple for triple in product(SMALL, repeat=3) if not _is_lattice(*triple)]
    assert wrong == []


@settings(max_examples=500, deadline=None)
@given(VALUES, VALUES, VALUES)
def test_joins_are_associative_and_commutative(a: Value, b: Value, c: Value) -> None:
    assert _exactly(join((a, b))) == _exactly(join((b, a)))
    assert _is_lattice(a, b, c)


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES, VALUES)
def test_joins_are_idempotent_and_never_lose_what_they_hold(a: Value, b: Value, c: Value) -> None:
    assert join((a, a)) is a
    assert join(()) is BOTTOM
    assert join((BOTTOM, a)) is a and join((a, BOTTOM)) is a
    assert join((a, UNKNOWN)).kind is Kind.UNKNOWN
    ab = join((a, b))
    assert _exactly(join((a, ab))) == _exactly(ab)
    # What is below another value stays below it, whatever joins both: the fixpoint depends on that.
    lower, upper = join((a, c)), join((ab, c))
    assert _exactly(join((lower, upper))) == _exactly(upper)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_the_order_of_branches_does_not_change_what_a_variable_is(
    semantic_model: Callable[[str], Module], order: tuple[int, ...]
) -> None:
    branches = ["0", "1", "torch.ones(3, device='cuda')"]
    lines = [
        f"    {'el' if place else ''}if mode == {number}:\n        total = {branches[number]}\n"
        for place, number in enumerate(order)
    ]
    module = semantic_model(f"import torch\ndef f(mode):\n{''.join(lines)}    return total\n")
    (read,) = module.names.reads("total")
    assert module.value(read).kind is Kind.TENSOR
    assert module.value(read).device is Device.ACCELERATOR


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_order_of_methods_does_not_change_what_an_attribute_is(
    semantic_model: Callable[[str], Module], order: tuple[int, ...]
) -> None:
    methods = [
        "    def __init__(self):\n        self.total = 0\n",
        "    def add(self, x: torch.Tensor):\n        self.total += x\n",
        "    def count(self, x):\n        self.total += len(x)\n        return self.total\n",
    ]
    body = "".join(methods[number] for number in order)
    module = semantic_model(f"import torch\nclass Sum:\n{body}")
    (read,) = (node for node in module.tree.nodes(cst.Return) if node.value is not None)
    assert read.value is not None and module.value(read.value).kind is Kind.TENSOR
