"""How many dimensions tensors have, by what makes them."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "factories and parts": """
        import torch

        def task(x: torch.Tensor, n: int, shape, rows: list[int]):
            a = torch.zeros(n)
            b = torch.zeros(n, 3)
            c = torch.zeros((n, 3))
            d = torch.zeros(shape)
            print(a)  #: a => rank=1
            print(b)  #: b => rank=2
            print(c)  #: c => rank=2
            print(d)  #: d => rank=None
            print(torch.full((n,), 0))  #: torch.full((n,), 0) => rank=1
            print(torch.full((), 0))  #: torch.full((), 0) => rank=0
            print(torch.full(shape, 0))  #: torch.full(shape, 0) => rank=None
            print(torch.arange(n))  #: torch.arange(n) => rank=1
            print(torch.tensor([1, n]))  #: torch.tensor([1, n]) => rank=1
            print(torch.tensor(rows))  #: torch.tensor(rows) => rank=1
            print(torch.tensor(3))  #: torch.tensor(3) => rank=0
            print(torch.zeros_like(b))  #: torch.zeros_like(b) => rank=2
            print(b[0])  #: b[0] => rank=1
            print(b[:, 0])  #: b[:, 0] => rank=1
            print(b[:n])  #: b[:n] => rank=2
            print(b[None])  #: b[None] => rank=3
            print(b[a.long()])  #: b[a.long()] => rank=2
            print(b[b > 0])  #: b[b > 0] => rank=None
            print(a.view(n, 1))  #: a.view(n, 1) => rank=2
            print(a.unsqueeze(0))  #: a.unsqueeze(0) => rank=2
            print(b.flatten())  #: b.flatten() => rank=1
            print(b * 2)  #: b * 2 => rank=2
            print(-b)  #: -b => rank=2
            print(torch.unique(b))  #: torch.unique(b) => rank=1
            print(torch.unique(b, dim=0))  #: torch.unique(b, dim=0) => rank=None
            print(b.unique())  #: b.unique() => rank=1
            print(b > 2)  #: b > 2 => rank=2
            print(b.argmax(1))  #: b.argmax(1) => rank=1
            values, indices = b.topk(2)
            print(indices)  #: indices => rank=2
            print(x)  #: x => rank=None
    """,
    "attributes and functions": """
        import torch
        from torch import nn

        def empty(n):
            return torch.empty(n, 4)

        class Cache(nn.Module):
            def __init__(self, n: int):
                super().__init__()
                self.lengths = torch.zeros(n, device="cuda")
                self.table = empty(n)
                self.register_buffer("mask", torch.zeros(n, n))
                self.either = torch.zeros(n)

            def reset(self, n: int):
                self.either = torch.zeros(n, n)
                print(self.lengths)  #: self.lengths => rank=1
                print(self.table)  #: self.table => rank=2
                print(self.mask)  #: self.mask => rank=2
                print(self.either)  #: self.either => rank=None

        print(empty(3))  #: empty(3) => rank=2
    """,
}


def test_dimensions(expectation: Callable[[], None]) -> None:
    expectation()
