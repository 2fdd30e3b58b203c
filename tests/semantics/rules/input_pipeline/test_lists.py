"""Which expressions are NumPy arrays, which lists hold them, and when one array makes the same tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import libcst as cst
import numpy as np
import pytest
import torch

from torchlint.rules.input_pipeline.tensor_from_list_of_arrays.lists import (
    same_through_one_array,
    tensor_from_list,
)
from torchlint.semantics.module import Module

PROGRAMS = {
    "arrays": """
        import cv2
        import numpy as np
        import torch


        def made(x, path: str, given: np.ndarray):
            a = np.zeros(3)  #: np.zeros(3) => array=float64
            b = np.array([1, 2], dtype=np.int32)  #: np.array([1, 2], dtype=np.int32) => array=int32
            c = np.zeros(3, "uint8")  #: np.zeros(3, "uint8") => array=uint8
            d = np.array(x)  #: np.array(x) => array=?,objects
            e = np.arange(10)  #: np.arange(10) => array=?
            f = cv2.imread(path)  #: cv2.imread(path) => array=?
            g = given  #: given => array=?,objects
            h = x.numpy()  #: x.numpy() => array=?
            t = torch.zeros(3, dtype=torch.float32)
            i = t.numpy()  #: t.numpy() => array=float32
            j = np.random.rand(3)  #: np.random.rand(3) => array=float64
            k = np.random.normal(size=3)  #: np.random.normal(size=3) => array=float64
            n = np.random.choice(10, 3)  #: np.random.choice(10, 3) => array=?,objects
            o = np.random.uniform(0, 1, 5)  #: np.random.uniform(0, 1, 5) => array=float64
            l = np.stack([a, a])  #: np.stack([a, a]) => array=?
            m = np.array([x, None], dtype=object)  #: np.array([x, None], dtype=object) => array=?,objects
            return a, b, c, d, e, f, g, h, i, j, k, l, m, n, o


        def derived(x, flag):
            a = np.zeros((3, 3), dtype=np.float32)
            b = a.reshape(-1).copy()  #: a.reshape(-1).copy() => array=float32
            c = a.astype(np.int64)  #: a.astype(np.int64) => array=int64
            d = a[1:, ::2]  #: a[1:, ::2] => array=float32
            e = a * 2 + 1  #: a * 2 + 1 => array=?
            f = -a.T  #: -a.T => array=float32
            g = np.exp(a)  #: np.exp(a) => array=?
            h = a if flag else b  #: a if flag else b => array=float32
            i = a.mean(axis=0, keepdims=True)  #: a.mean(axis=0, keepdims=True) => array=?
            j = helper(x)  #: helper(x) => array=float64
            k = annotated(x)  #: annotated(x) => array=?,objects
            b += 1
            return [b, c, d, e, f, g, h, i, j, k]  #: b => array=float32


        def helper(x):
            if x:
                return np.ones(3)
            return np.zeros(3)


        def annotated(x) -> np.ndarray:
            return x.load()


        class Holder:
            def __init__(self):
                self.rows = np.zeros((5, 5))
                self.both = np.zeros(3)

            def other(self, x):
                self.both = x
                return self.rows  #: self.rows => array=float64

            def unclear(self):
                return self.both  #: self.both => array=no
    """,
    "tables": """
        import pandas as pd
        import torch


        def tables(path, options, x):
            table = pd.read_csv(path)
            a = table.values  #: table.values => array=?,objects
            b = table["a"].values.astype("float32")  #: table["a"].values.astype("float32") => array=float32
            c = table.to_numpy()  #: table.to_numpy() => array=?,objects
            d = options.values()  #: options.values() => array=no
            e = torch.topk(x, 3).values  #: torch.topk(x, 3).values => array=no
            best = torch.max(x, 0)
            f = best.values  #: best.values => array=no
            return a, b, c, d, e, f
    """,
    "scalars and unknowns": """
        import random

        import numpy as np
        import torch


        def scalars(x, flag):
            a = np.zeros((3, 3))
            b = a[0]  #: a[0] => array=no
            c = a.mean()  #: a.mean() => array=no
            d = np.mean(a, axis=0)  #: np.mean(a, axis=0) => array=no
            e = np.sqrt(5)  #: np.sqrt(5) => array=no
            f = np.random.rand()  #: np.random.rand() => array=no
            g = np.float32(1)  #: np.float32(1) => array=no
            h = np.random.choice(x)  #: np.random.choice(x) => array=no
            i = a if flag else x  #: a if flag else x => array=no
            j = a * torch.ones(3)  #: a * torch.ones(3) => array=no
            k = sometimes(x)  #: sometimes(x) => array=no
            l = drawn()  #: drawn() => array=no
            m = a.tolist()  #: a.tolist() => array=no
            return b, c, d, e, f, g, h, i, j, k, l, m


        def sometimes(x):
            if x:
                return None
            return np.zeros(3)


        def drawn():
            yield np.zeros(3)
            return np.zeros(3)
    """,
    "lists": """
        import numpy as np


        def lists(xs, more):
            a = [np.zeros(3), np.ones(3)]  #: [np.zeros(3), np.ones(3)] => arrays=2,filled,alike
            b = [x.numpy() for x in xs]  #: [x.numpy() for x in xs] => arrays=1,alike
            c = []
            for x in xs:
                c.append(np.array(x))
            d = tuple(c)  #: c => arrays=1,alike
            e = (np.zeros(3), np.arange(3))  #: (np.zeros(3), np.arange(3)) => arrays=2,filled
            f = [[np.zeros(3)], [np.ones(3)]]  #: [[np.zeros(3)], [np.ones(3)]] => arrays=2,filled,alike
            g = [row[::2] for row in a]  #: [row[::2] for row in a] => arrays=1,alike
            h = []  #: [] => arrays=no
            i = [*more, np.zeros(3)]  #: [*more, np.zeros(3)] => arrays=no
            j = [np.zeros(3), 1]  #: [np.zeros(3), 1] => arrays=no
            k = [np.zeros(3)]
            k.extend(more)
            l = tuple(k)  #: k => arrays=no
            m = [np.zeros(3)]
            m.clear()
            n = tuple(m)  #: m => arrays=1,alike
            o = more  #: more => arrays=no
            p = [np.zeros(3)]
            p[0] = more
            q = tuple(p)  #: p => arrays=no
            return a, b, d, e, f, g, h, i, j, l, n, o, q
    """,
}


def test_arrays(expectation: Callable[[], None]) -> None:
    """One expectation of one program."""
    expectation()


CONSTRUCTORS = (
    "torch.tensor({})",
    "torch.as_tensor({})",
    "torch.asarray({})",
    "torch.tensor({}, dtype=torch.float32)",
    "torch.tensor({}, dtype=torch.int64)",
    "torch.tensor({}, dtype=torch.uint8)",
    "torch.Tensor({})",
    "torch.FloatTensor({})",
    "torch.HalfTensor({})",
    "torch.LongTensor({})",
    "torch.IntTensor({})",
    "torch.BoolTensor({})",
)
LISTS = (
    "[np.array([1.5, -2.0]), np.zeros(2)]",
    "[np.array([1e300, np.nan], dtype=np.float64)]",
    "[np.array([2**40, 2]), np.array([0, 1])]",
    "[np.array([2**40, 2], dtype=np.int64)]",
    "[np.array([300, -2], dtype=np.int16)]",
    "[np.array([1, 2], dtype=np.uint8), np.array([-1, 2], dtype=np.int8)]",
    "[np.array([1, 2], dtype=np.int64), np.array([1.5, 2], dtype=np.float32)]",
    "[np.array([1, 2.5], dtype=object)]",
    "[np.array([True, False], dtype=bool)]",
    "[torch.ones(2).numpy(), torch.zeros(2, dtype=torch.float64).numpy()]",
    "[np.array([1, 2], dtype='>i4')]",
    "[np.zeros(2) for _ in range(0)]",
    "[np.zeros(2) for _ in range(2)]",
)


@pytest.mark.parametrize(("constructor", "arrays"), list(product(CONSTRUCTORS, LISTS)))
def test_what_is_called_the_same_is_the_same(
    constructor: str, arrays: str, semantic_model: Callable[[str], Module]
) -> None:
    module = semantic_model(f"import numpy as np\nimport torch\n{constructor.format(arrays)}\n")
    call = next(
        c for c in module.tree.nodes(cst.Call) if (module.qualified(c.func) or "").startswith("torch.")
    )
    found = tensor_from_list(module, call)
    assert found is not None
    if same_through_one_array(module, call, found[1]):
        expected = outcome(constructor.format(arrays))
        if isinstance(
            expected, torch.Tensor
        ):  # what raises whatever the values are is in no program that runs
            result = outcome(constructor.format(f"np.array({arrays})"))
            assert isinstance(result, torch.Tensor)
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


def test_most_are_called_the_same(semantic_model: Callable[[str], Module]) -> None:
    same = 0
    for constructor, arrays in product(CONSTRUCTORS, LISTS[:5]):
        module = semantic_model(f"import numpy as np\nimport torch\n{constructor.format(arrays)}\n")
        (call,) = (c for c in module.tree.nodes(cst.Call) if "torch." in (module.qualified(c.func) or ""))
        found = tensor_from_list(module, call)
        assert found is not None
        same += same_through_one_array(module, call, found[1])
    assert same > len(CONSTRUCTORS) * 5 / 2


def outcome(code: str) -> object:
    """What an expression evaluates to; the exception if it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(code, {"np": np, "torch": torch})
        except (TypeError, ValueError, RuntimeError) as error:
            return error
