"""Python numbers that are sent to the device, and which numbers are Python's own."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "what is sent": """
        import torch
        from torch import tensor as t

        device = torch.device("cuda")
        x = torch.rand(4, device=device)
        n = 3
        a = torch.tensor(0.5, device=device)  #: torch.tensor(0.5, device=device) => sends=()
        b = torch.tensor([n], device=device)  #: torch.tensor([n], device=device) => sends=(1,)
        c = torch.tensor([0.5] * n, device=device)  #: torch.tensor([0.5] * n, device=device) => sends=(n,)
        d = t(n).to(device)  #: t(n) => sends=()
        e = torch.as_tensor((True,)).cuda()  #: torch.as_tensor((True,)) => sends=(1,)
        f = x.new_tensor(1.0)  #: x.new_tensor(1.0) => sends=()
        g = torch.tensor(data=1.0, device=x.device)  #: torch.tensor(data=1.0, device=x.device) => sends=()
        h = torch.tensor(0.5)  #: torch.tensor(0.5) => sends=no
        i = torch.tensor(0.5, device="cpu")  #: torch.tensor(0.5, device="cpu") => sends=no
        j = torch.tensor(0.5, device=None).to(device)  #: torch.tensor(0.5, device=None) => sends=()
        k = torch.tensor([0.5, 1.0], device=device)  #: torch.tensor([0.5, 1.0], device=device) => sends=no
        l = torch.tensor(x, device=device)  #: torch.tensor(x, device=device) => sends=no
        m = torch.tensor(0.5, pin_memory=True).cuda()  #: torch.tensor(0.5, pin_memory=True) => sends=no
        o = torch.full((), 0.5, device=device)  #: torch.full((), 0.5, device=device) => sends=no
        p = torch.tensor(*[1], device=device)  #: torch.tensor(*[1], device=device) => sends=no
        q = x.cpu().new_tensor(1.0)  #: x.cpu().new_tensor(1.0) => sends=no
        r = x.cpu().new_tensor(1.0, device=device)  #: x.cpu().new_tensor(1.0, device=device) => sends=()
    """,
    "numbers of Python": """
        import math
        import time

        import numpy as np
        import torch


        def numbers(x: torch.Tensor, given: float, steps):
            a = 1 + math.pi
            use(a)  #: a => python=yes
            b = np.float64(0.5)
            use(b)  #: b => python=no
            use(given)  #: given => python=no
            use(float(given))  #: float(given) => python=yes
            use(given * 2)  #: given * 2 => python=no
            use(x.shape[0] - 1)  #: x.shape[0] - 1 => python=yes
            use(x.size(0) / len(x))  #: x.size(0) / len(x) => python=yes
            use(x.sum().item())  #: x.sum().item() => python=yes
            use(x.sum())  #: x.sum() => python=no
            use(time.time())  #: time.time() => python=yes
            use(-np.pi if a else True)  #: -np.pi if a else True => python=yes
            use(torch.finfo(torch.float32).eps)  #: torch.finfo(torch.float32).eps => python=yes
            use(max(1, len(x)))  #: max(1, len(x)) => python=yes
            use(max(1, given))  #: max(1, given) => python=no
            use(not given)  #: not given => python=yes
            for i in range(3):
                use(i)  #: i => python=yes
            for j, item in enumerate(steps):
                use(j, item)  #: j => python=yes; item => python=no
            total = 0
            total += i
            use(total)  #: total => python=yes
            total += given
            use(total)  #: total => python=no
            use(steps)  #: steps => python=no
    """,
}


def test_scalars(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
