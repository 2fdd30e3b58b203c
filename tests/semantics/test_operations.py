"""What an expression computes, in every spelling that torch has for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from torchlint.semantics.operations import FORMS

PROGRAMS = {
    "spellings": """
        import math

        import numpy as np
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        from einops import einsum as contract
        from torch import einsum


        class Net(nn.Module):
            def __init__(self, p):
                super().__init__()
                self.softmax = nn.Softmax(dim=-1)
                self.drop = nn.Dropout(p)
                self.either = nn.Dropout(p) if p else nn.Identity()
                self.own = Own()

            def forward(self, x, y):
                a = x.softmax(-1)  #: x.softmax(-1) => computes=softmax(x)[dim=-1]
                b = torch.softmax(x, dim=-1)  #: torch.softmax(x, dim=-1) => computes=softmax(x)[dim=-1]
                c = F.softmax(x, -1, 3, torch.float)
                c.sum()  #: c => behind=softmax(x)[_stacklevel=3,dim=-1,dtype=torch.float]
                d = self.softmax(x)  #: self.softmax(x) => computes=softmax(x)[dim=-1]
                e = nn.Softmax(1)(x)  #: nn.Softmax(1)(x) => computes=softmax(x)[dim=1]
                f = self.drop(x)  #: self.drop(x) => computes=dropout(x)[p=p]
                g = self.own(x)  #: self.own(x) => computes=no
                h = F.dropout(x, 0.1, self.training)
                h.sum()  #: h => behind=dropout(x)[p=0.1,training=self.training]
                i = x @ y  #: x @ y => computes=matmul(x,y)
                j = x.matmul(other=y)  #: x.matmul(other=y) => computes=matmul(x,y)
                k = torch.bmm(x, mat2=y)  #: torch.bmm(x, mat2=y) => computes=bmm(x,y)
                l = einsum("ij,kj->ik", x, y)
                l.sum()  #: l => behind=einsum("ij,kj->ik",x,y)
                m = contract(x, y, "i j, k j -> i k")
                m.sum()  #: m => behind=einsum("ij,kj->ik",x,y)
                n = x.mul_(y)  #: x.mul_(y) => computes=mul(x,y)!
                o = torch.true_divide(x, 2)  #: torch.true_divide(x, 2) => computes=div(x,2)
                q = -x  #: -x => computes=neg(x)
                r = np.exp(x)  #: np.exp(x) => computes=no
                s = x.masked_fill(y == 0, -1e9)
                s.sum()  #: s => behind=masked_fill(x)[mask=y==0,value=-1e9]
                t = x.clip(0, 6)  #: x.clip(0, 6) => computes=clamp(x)[max=6,min=0]
                u = torch.exp(*x)  #: torch.exp(*x) => computes=no
                v = self.exp(x)  #: self.exp(x) => computes=no
                return x.mT  #: x.mT => computes=mT(x)

            def exp(self, x):
                return x


        class Own(nn.Softmax):
            def forward(self, x):
                return x
    """,
    "names": """
        import torch


        def chain(x, mask):
            a = torch.exp(x)
            b = a
            c = b + 1  #: b => behind=exp(x)
            c *= 2
            d = c.sum()  #: c => behind=mul(c,2)!
            if mask is not None:
                a = a.log()
            e = a.tanh()  #: a => behind=no
            (f := torch.log(x)).sum()
            g, h = x.exp(), x
            return f + g  #: f => behind=log(x); g => behind=no
    """,
    "numbers": """
        import math

        import numpy as np
        import torch

        HALF = 0.5


        def numbers(x):
            a = math.sqrt(2 / math.pi)  #: a => number=none; math.sqrt(2 / math.pi) => number=0.79788
            b = np.sqrt(2.0)  #: np.sqrt(2.0) => number=1.41421
            c = -1 * 2**0.5  #: -1 * 2**0.5 => number=-1.41421
            d = torch.sqrt(torch.tensor(2.0))  #: torch.sqrt(torch.tensor(2.0)) => number=1.41421
            e = float("-inf")  #: float("-inf") => number=-inf
            f = -float("inf")  #: -float("inf") => number=-inf
            g = 1 / 0  #: 1 / 0 => number=none
            h = x * 2  #: x * 2 => number=none
            return HALF * a  #: HALF => number=0.50000; a => number=0.79788; HALF * a => number=0.39894
    """,
    "same": """
        import torch


        class Net(torch.nn.Module):
            def forward(self, x, y):
                a = x * torch.exp(x)  #: x * torch.exp(x) => alike=yes
                b = (x + 1) * torch.exp(x + 1)  #: (x + 1) * torch.exp(x + 1) => alike=yes
                c = x * torch.exp(y)  #: x * torch.exp(y) => alike=no
                d = self.c(x) * torch.exp(self.c(x))  #: self.c(x) * torch.exp(self.c(x)) => alike=no
                z = x
                e = z * torch.exp(x)  #: z * torch.exp(x) => alike=yes
                g = torch.exp(x)
                x = x + 1
                f = x * g  #: x * g => alike=no
                h = x[..., :2] * torch.exp(x[..., :2])  #: x[..., :2] * torch.exp(x[..., :2]) => alike=yes
                i = x.exp_() * torch.exp(x.exp_())  #: x.exp_() * torch.exp(x.exp_()) => alike=no
                return a
    """,
}


def test_operations(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()


@pytest.mark.parametrize("name", sorted(FORMS))
def test_an_operation_is_one_of_torch(name: str) -> None:
    """Each operation that is read is a function or a method of torch."""
    assert any(hasattr(place, name) for place in (torch, functional, torch.Tensor))


OPTIONS = {
    "softmax": (torch.ones(2, 3), {"dim": -1, "dtype": torch.float64}),
    "log_softmax": (torch.ones(2, 3), {"dim": -1, "dtype": torch.float64}),
    "logsumexp": (torch.ones(2, 3), {"dim": -1, "keepdim": True}),
    "mean": (torch.ones(2, 3), {"dim": -1, "keepdim": True}),
    "sum": (torch.ones(2, 3), {"dim": -1, "keepdim": True}),
    "var": (torch.ones(2, 3), {"dim": -1, "unbiased": False, "keepdim": True}),
    "amax": (torch.ones(2, 3), {"dim": -1, "keepdim": True}),
    "clamp": (torch.ones(2, 3), {"min": 0, "max": 2}),
    "transpose": (torch.ones(2, 3), {"dim0": 0, "dim1": 1}),
    "masked_fill": (torch.ones(2, 3), {"mask": torch.ones(2, 3) > 0, "value": 3.0}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_stand_in_the_order_that_is_read(name: str) -> None:
    """Given by place, an option means what it means by name."""
    tensor, options = OPTIONS[name]
    order = FORMS[name][1].split()[: len(options)]
    assert order == list(options)
    method = getattr(tensor, name)
    by_name = method(**options)
    by_place = method(*options.values()) if "dtype" not in options else method(-1, torch.float64)
    assert torch.equal(by_name, by_place) and by_name.dtype == by_place.dtype
