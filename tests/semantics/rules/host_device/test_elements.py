"""Lists of device tensors that are read one by one."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "who reads one by one": """
        import numpy as np
        import torch

        device = torch.device("cuda")
        s = torch.rand((), device=device)
        h = torch.rand(())
        both = [s, s]
        first, second = [], []
        for i in range(3):
            first.append(s * i)
            second.append(h * i)
        a = torch.tensor([s, s])  #: torch.tensor([s, s]) => reads=2
        b = torch.tensor((s, 0.5))  #: torch.tensor((s, 0.5)) => reads=2
        c = torch.tensor([0.5, 1.0])  #: torch.tensor([0.5, 1.0]) => reads=no
        d = torch.tensor([h, h])  #: torch.tensor([h, h]) => reads=no
        e = torch.tensor(s)  #: torch.tensor(s) => reads=no
        f = torch.tensor(both)  #: torch.tensor(both) => reads=some
        g = torch.as_tensor(first)  #: torch.as_tensor(first) => reads=some
        i = torch.tensor(second)  #: torch.tensor(second) => reads=no
        j = torch.tensor([s * k for k in range(3)])  #: torch.tensor([s * k for k in range(3)]) => reads=some
        k = torch.FloatTensor([s])  #: torch.FloatTensor([s]) => reads=1
        l = torch.stack([s, s])  #: torch.stack([s, s]) => reads=no
        m = np.mean(first)  #: np.mean(first) => reads=some
        n = np.mean(second)  #: np.mean(second) => reads=no
        o = max(first)  #: max(first) => reads=some
        p = max(s, s)  #: max(s, s) => reads=no
        q = sorted([s, s])  #: sorted([s, s]) => reads=2
        r = sum(first)  #: sum(first) => reads=no
        t = torch.tensor([*both, s])  #: torch.tensor([*both, s]) => reads=some
        u = torch.tensor({"a": s})  #: torch.tensor({"a": s}) => reads=no
        v = torch.tensor(data=[s])  #: torch.tensor(data=[s]) => reads=no
    """,
    "on the host": """
        import torch

        s = torch.rand(())
        a = torch.tensor([s, s])  #: torch.tensor([s, s]) => reads=no
    """,
}


def test_elements(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
