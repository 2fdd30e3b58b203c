"""Tensor types of before dtypes: what makes a tensor by them, and what else they are used for."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "constructors and casts": """
        import torch
        from torch import FloatTensor as FT

        Either = torch.cuda.LongTensor if torch.cuda.is_available() else torch.LongTensor
        Other = torch.LongTensor if torch.cuda.is_available() else list
        device = torch.device("cuda")
        x = torch.zeros(3, device=device)
        a = torch.FloatTensor([1])  #: torch.FloatTensor([1]) => legacy=torch.FloatTensor moves=no
        b = FT(3)  #: FT(3) => legacy=torch.FloatTensor
        c = torch.cuda.ByteTensor(3)  #: torch.cuda.ByteTensor(3) => legacy=torch.cuda.ByteTensor moves=no
        d = torch.Tensor(3)  #: torch.Tensor(3) => legacy=torch.Tensor
        e = Either(3)  #: Either(3) => legacy=torch.cuda.LongTensor
        f = Other(3)  #: Other(3) => legacy=no
        g = torch.tensor(3)  #: torch.tensor(3) => legacy=no
        h = isinstance(x, torch.FloatTensor)  #: isinstance(x, torch.FloatTensor) => legacy=no
        i = x.type(torch.FloatTensor)  #: x.type(torch.FloatTensor) => legacy=no cast=torch.FloatTensor
        j = x.type("torch.cuda.HalfTensor")  #: x.type("torch.cuda.HalfTensor") => cast=torch.cuda.HalfTensor
        k = x.type(torch.float16)  #: x.type(torch.float16) => cast=no
        l = x.type()  #: x.type() => cast=no
        m = torch.FloatTensor([1]).cuda()  #: torch.FloatTensor([1]) => moves=no
        n = torch.FloatTensor(3).zero_().view(1, 3).to(device)  #: torch.FloatTensor(3) => moves=yes
        o = torch.FloatTensor(3)  #: torch.FloatTensor(3) => moves=yes
        p = o.to(device)
        q = torch.FloatTensor(3)  #: torch.FloatTensor(3) => moves=no
        r = q.to(device) + q
        s = torch.FloatTensor(3).to(torch.float64)  #: torch.FloatTensor(3) => moves=no
    """,
}


def test_legacy(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
