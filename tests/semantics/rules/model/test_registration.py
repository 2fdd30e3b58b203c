"""Which modules a class keeps where torch does not look, and which calls pass over ``__call__``."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "hidden": """
        from torch import nn
        from torch.nn import LayerNorm as L

        from .blocks import ConvBlock, Tokenizer


        class Net(nn.Module):
            def __init__(self, n, ks):
                super().__init__()
                self.a = [L(n), L(n)]  #: self.a = [L(n), L(n)] => hides=list,modules
                self.b = {k: L(n)}  #: self.b = {k: L(n)} => hides=dict,modules
                self.c = [ConvBlock(n)]  #: self.c = [ConvBlock(n)] => hides=list,modules
                self.d = [L(n), n]  #: self.d = [L(n), n] => hides=list
                self.e = []  #: self.e = [] => hides=list,modules
                self.e.append(L(n))
                self.f = [Tokenizer(n)] * 2  #: self.f = [Tokenizer(n)] * 2 => hides=no
                self.g = [nn.ReLU()]  #: self.g = [nn.ReLU()] => hides=no
                self.h = nn.ModuleList([L(n)])  #: self.h = nn.ModuleList([L(n)]) => hides=no
                self.i = [L(n)]  #: self.i = [L(n)] => hides=no
                self.j = nn.Sequential(*self.i)
                self.k = [layer for layer in self.h]  #: self.k = [layer for layer in self.h] => hides=no
                self.l = [L(n).requires_grad_(False)]  #: self.l = [L(n).requires_grad_(False)] => hides=no
                self.m = len(self.a) + len(self.e)

            def forward(self, x):
                for layer in self.a:
                    x = layer(x)
                for step in self.c:
                    x = step(x)
                for token in self.f:
                    x = token(x)
                return {name: head(x) for name, head in self.b.items()}, self.e, self.d[0](x)
    """,
    "no module": """
        from torch import nn


        class Pool:
            def __init__(self, n):
                self.nets = [nn.Linear(n, n)] * 2  #: self.nets = [nn.Linear(n, n)] * 2 => hides=no
    """,
    "bypasses": """
        import torch
        from torch import nn

        from .layers import Decoder


        class Block(nn.Module):
            def __init__(self, n, given):
                super().__init__()
                self.linear = nn.Linear(n, n)
                self.decoder = Decoder(n)
                self.given = given

            def forward(self, x, **options):
                x = self.linear.forward(x)  #: self.linear.forward(x) => past=plain
                x = self.decoder.forward(x)  #: self.decoder.forward(x) => past=unsure
                x = self.given.forward(x)  #: self.given.forward(x) => past=no
                x = self.linear.forward(x, **options)  #: self.linear.forward(x, **options) => past=no
                return self.forward(x)  #: self.forward(x) => past=no


        class Heir(Block):
            def forward(self, x):
                return super().forward(x)  #: super().forward(x) => past=no


        class Cached(nn.Module):
            def __call__(self, x):
                return x


        def run(model, x, thing):
            Block(2, None).forward(x)  #: Block(2, None).forward(x) => past=plain
            Cached().forward(x)  #: Cached().forward(x) => past=no
            nn.Linear.forward(model, x)  #: nn.Linear.forward(model, x) => past=no
            thing.forward(x)  #: thing.forward(x) => past=no
            return model.forward(x)  #: model.forward(x) => past=unsure


        def new_forward(model, x):
            return model.forward(x)  #: model.forward(x) => past=no
    """,
}


def test_registration(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
