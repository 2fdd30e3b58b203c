"""What names mean: imports, aliases, shadowing, scopes and the definitions that reach a read."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.semantics.module import Module

PROGRAMS = {
    "import forms": """
        import torch
        import torch as th
        import torch.nn.functional as F
        import torch.utils.data
        from torch import nn as N, no_grad
        from torch.utils.data import DataLoader as DL
        from torch.utils.data.dataloader import DataLoader
        from torch.nn import Linear
        from torch.optim.adam import Adam
        from torchmetrics.metric import Metric
        import numpy as np

        torch.no_grad()  #: torch.no_grad => qualified=torch.no_grad; torch => qualified=torch
        th.no_grad()  #: th.no_grad => qualified=torch.no_grad
        no_grad()  #: no_grad => qualified=torch.no_grad
        F.relu(1)  #: F.relu => qualified=torch.nn.functional.relu
        torch.utils.data.Dataset()  #: torch.utils.data.Dataset => qualified=torch.utils.data.Dataset
        DL([])  #: DL => qualified=torch.utils.data.DataLoader
        DataLoader([])  #: DataLoader => qualified=torch.utils.data.DataLoader
        N.Linear(1, 1)  #: N.Linear => qualified=torch.nn.Linear
        Linear(1, 1)  #: Linear => qualified=torch.nn.Linear
        torch.nn.modules.conv.Conv2d(1, 1, 1)  #: torch.nn.modules.conv.Conv2d => qualified=torch.nn.Conv2d
        Adam([])  #: Adam => qualified=torch.optim.Adam
        Metric()  #: Metric => qualified=torchmetrics.Metric
        torch.autograd.no_grad()  #: torch.autograd.no_grad => qualified=torch.no_grad
        torch.autograd.grad_mode.no_grad()  #: torch.autograd.grad_mode.no_grad => qualified=torch.no_grad
        np.asarray(1)  #: np.asarray => qualified=numpy.asarray
        print(1)  #: print => qualified=builtins.print
        unknown(1)  #: unknown => qualified=none
        torch.cuda.empty_cache()  #: torch.cuda.empty_cache => qualified=torch.cuda.empty_cache
    """,
    "aliases by assignment": """
        import torch
        from torch import nn

        Conv = nn.Conv2d
        Layer = Conv
        cuda = torch.cuda
        Conv(1, 1, 1)  #: Conv => qualified=torch.nn.Conv2d
        Layer(1, 1, 1)  #: Layer => qualified=torch.nn.Conv2d
        cuda.synchronize()  #: cuda.synchronize => qualified=torch.cuda.synchronize


        def f(big):
            Block = nn.Conv2d if big else nn.Conv3d
            Block(1, 1, 1)  #: Block => qualified=none
            here = torch.zeros
            here(1)  #: here => qualified=torch.zeros
            here = torch.ones
            here(1)  #: here => qualified=torch.ones
            if big:
                there = torch.zeros
            else:
                there = torch.ones
            there(1)  #: there => qualified=none
            same = torch.zeros
            if big:
                same = torch.zeros
            same(1)  #: same => qualified=torch.zeros


        class Holder:
            Layer = nn.Linear
            made = Layer(1, 1)  #: Layer => qualified=torch.nn.Linear

            def build(self):
                return Layer(1, 1, 1)  #: Layer => qualified=torch.nn.Conv2d
    """,
    "shadowing and the user's own": """
        import torch
        from torch.utils.data import DataLoader

        from mine import Dataset as Data
        from .local import no_grad


        class DataLoader:
            pass


        DataLoader([])  #: DataLoader => qualified=none
        no_grad()  #: no_grad => qualified=.local.no_grad
        Data()  #: Data => qualified=mine.Dataset


        def f(torch):
            return torch.zeros(1)  #: torch.zeros => qualified=none


        def g():
            torch = object()
            return torch.zeros(1)  #: torch.zeros => qualified=none


        def h():
            return torch.zeros(1)  #: torch.zeros => qualified=torch.zeros


        def print(x):
            return x


        print(1)  #: print => qualified=none
        [torch for torch in (1, 2)]  #: torch => qualified=none
        torch.ones(1)  #: torch.ones => qualified=torch.ones
        lambda torch: torch.ones(1)  #: torch.ones => qualified=none


        def k():
            for torch in range(3):
                torch.zeros(1)  #: torch.zeros => qualified=none
    """,
    "conditional and guarded imports": """
        try:
            import torch
        except ImportError:
            torch = None

        try:
            from torch.amp import autocast
        except ImportError:
            from torch.cuda.amp import autocast

        try:
            from apex.optimizers import FusedAdam as Adam
        except ImportError:
            from torch.optim import Adam

        if True:
            from torch import nn
        else:
            from torch import nn

        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from torch import Tensor

        torch.zeros(1)  #: torch.zeros => qualified=torch.zeros
        autocast()  #: autocast => qualified=none
        Adam([])  #: Adam => qualified=none
        nn.Linear(1, 1)  #: nn.Linear => qualified=torch.nn.Linear
        Tensor(1)  #: Tensor => qualified=torch.Tensor


        def f():
            import torch.nn.functional as F
            from torch import ones
            x = ones(1)  #: ones => qualified=torch.ones
            return F.relu(x)  #: F.relu => qualified=torch.nn.functional.relu


        ones(1)  #: ones => qualified=none
    """,
    "star imports": """
        from torch.nn import *
        from torch.nn.functional import *
        from mine import *

        Conv2d(1, 1, 1)  #: Conv2d => qualified=torch.nn.Conv2d
        relu(1)  #: relu => qualified=torch.nn.functional.relu
        NotThere(1)  #: NotThere => qualified=none
        Linear = make()
        Linear(1, 1)  #: Linear => qualified=none


        def f(Dropout):
            return Dropout(0.5)  #: Dropout => qualified=none
    """,
    "what a star import brings along": """
        from mine.network import *

        torch.zeros(1)  #: torch.zeros => qualified=torch.zeros
        nn.Linear(1, 1)  #: nn.Linear => qualified=torch.nn.Linear
        F.relu(x)  #: F.relu => qualified=torch.nn.functional.relu
        nn.Mine(1)  #: nn.Mine => qualified=none
        F.rotate(x)  #: F.rotate => qualified=none
        optim = make()
        optim.Adam(x)  #: optim.Adam => qualified=none
    """,
    "what nothing brings along": """
        from mine.network import Network

        torch.zeros(1)  #: torch.zeros => qualified=none
    """,
    "reaching definitions": """
        def f(c, d):
            x = 1
            use(x)  #: x => bindings=2
            x = 2
            use(x)  #: x => bindings=4
            if c:
                x = 3
            use(x)  #: x => bindings=4,7
            if c:
                x = 4
            else:
                x = 5
            use(x)  #: x => bindings=10,12
            for i in d:
                use(x)  #: x => bindings=10,12,16
                x = i
            use(x)  #: x => bindings=10,12,16
            while True:
                x = 6
                if c:
                    break
            use(x)  #: x => bindings=19
            try:
                x = 7
                risky()
            except ValueError:
                x = 8
            use(x)  #: x => bindings=24,27
            if c:
                x = 9
                return x
            use(x)  #: x => bindings=24,27
            x += 1
            use(x)  #: x => bindings=33
            del x
            use(x)  #: x => bindings=none
            x, (y, *z) = d
            use(x, y, z)  #: x => bindings=37; y => bindings=37; z => bindings=37


        def g(c):
            with open(c) as file:
                use(file)  #: file => bindings=42
            if (n := len(c)) > 10:
                use(n)  #: n => bindings=44
            use(n)  #: n => bindings=44
            [last := i for i in c]
            use(last)  #: last => bindings=47
            match c:
                case [first, *rest]:
                    use(first, rest)  #: first => bindings=50; rest => bindings=50
                case {"a": a, **others}:
                    use(a, others)  #: a => bindings=52; others => bindings=52
                case int() as number:
                    use(number)  #: number => bindings=54
    """,
    "definitions and jumps": """
        def carried(c, d):
            x = 1
            while c:
                use(x)  #: x => bindings=2,6
                if d:
                    x = 2
                    continue
                if c(x):
                    break
                return x
            use(x)  #: x => bindings=2,6


        def left(c, d):
            for y in d:
                last = y
                if c:
                    break
            else:
                last = None
            use(last)  #: last => bindings=16,20
            while d:
                while c:
                    before = use(before)  #: before => bindings=24
                    if d:
                        break


        def asserted(c):
            if c == 1:
                x = 1
            elif c == 2:
                x = 2
            else:
                x = 3
                assert False
            return x  #: x => bindings=31,33


        def at_once(c, d):
            key, d[key] = c  #: key#2 => bindings=41
            x = 1
            x += x if d else 2  #: x#2 => bindings=42
            y = (y := 2)
            use(y)  #: y => bindings=44
            import a.b, a.c
            use(a)  #: a => bindings=46


        def caught(c):
            x = 1
            try:
                x = risky()
            except ValueError:
                use(x)  #: x => bindings=51
            finally:
                use(x)  #: x => bindings=51,53
            match c:
                case [x, 1]:
                    pass
                case _:
                    use(x)  #: x => bindings=51,53


        for number in range(3):
            class A:
                if number:
                    use(z)  #: z => bindings=none
                z = 1
                use(z)  #: z => bindings=69
    """,
    "scopes": """
        import torch

        x = 1


        def f():
            use(x)  #: x => bindings=3,12


        def g():
            global x
            x = 2


        def h():
            y = 1

            def inner():
                nonlocal y
                y = 2
                use(y)  #: y => bindings=16,20
                return lambda: y  #: y => bindings=16,20
            use(y)  #: y => bindings=16
            return inner


        class C:
            x = 3
            use(x)  #: x => bindings=28
            rows = [x for x in range(3)]  #: x => bindings=30

            def method(self):
                return x  #: x => bindings=3,12

            def torch(self):
                return torch.zeros(1)  #: torch.zeros => qualified=torch.zeros


        async def k(stream):
            async for item in stream:
                use(item)  #: item => bindings=40
            async with stream as s:
                use(s)  #: s => bindings=42
            return [i async for i in stream]  #: i => bindings=44


        def default(value=x):  #: x => bindings=3
            def value2(other=value):  #: value => bindings=47
                return other  #: other => bindings=48
            return value2
    """,
}


def test_names(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("x = 1\nread(x)", "1"),
        ("x: int = f()\nread(x)", "f()"),
        ("x = 1\nif y:\n    x = 2\nread(x)", None),
        ("x, y = f()\nread(x)", None),
        ("x: int\nread(x)", None),
        ("for x in y:\n    read(x)", None),
        ("def f(x):\n    read(x)", None),
        ("read(x)", None),
    ],
)
def test_the_one_assignment_that_reaches_a_read(
    program: str, value: str | None, semantic_model: Callable[[str], Module]
) -> None:
    module = semantic_model(program + "\n")
    (call,) = (c for c in module.tree.nodes(cst.Call) if module.source(c.func) == "read")
    name = call.args[0].value
    assert isinstance(name, cst.Name)
    found = module.names.assignment(name)
    assert (None if found is None or found.value is None else module.source(found.value)) == value
