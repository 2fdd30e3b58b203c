"""What ``torch.tensor`` copies without need: who writes to the array or the tensor, and where it stands."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "arrays": """
        import numpy as np
        import torch
        from torch import nn


        def run(count, sink, **options):
            shared = np.zeros(3)
            sorted_later = np.zeros(3)
            for _ in range(count):
                a = torch.tensor(np.ones(3))  #: torch.tensor(np.ones(3)) => copied=array
                b = torch.tensor(shared)  #: torch.tensor(shared) => copied=array
                c = torch.tensor(sorted_later)  #: torch.tensor(sorted_later) => copied=no
                x = np.ones(3)
                d = torch.tensor(x, dtype=torch.float32)  #: torch.tensor(x, dtype=torch.float32) => copied=no
                e = torch.tensor(x, dtype=float)  #: torch.tensor(x, dtype=float) => copied=array
                f = torch.tensor(x, **options)  #: torch.tensor(x, **options) => copied=no
                g = torch.tensor(x, device="cuda")  #: torch.tensor(x, device="cuda") => copied=no
                h = torch.tensor(np.ones(3)).cuda()  #: torch.tensor(np.ones(3)) => copied=no
                i = nn.Parameter(torch.tensor(shared))  #: torch.tensor(shared) => copied=no
                j = torch.tensor(shared)  #: torch.tensor(shared) => copied=no
                j[0] = 1
                k = torch.tensor(shared).add_(1)  #: torch.tensor(shared) => copied=no
                sink(a, b, c, d, e, f, g, h, i, j, k)
            sorted_later.sort()
            return torch.tensor(np.ones(3))  #: torch.tensor(np.ones(3)) => copied=no
    """,
    "tensors": """
        import torch


        def run(given, flag):
            made = torch.zeros(3)
            torch.tensor(made)  #: torch.tensor(made) => copied=tensor
            torch.tensor(made * 2, device="cuda")  #: torch.tensor(made * 2, device="cuda") => copied=tensor
            torch.tensor(given)  #: torch.tensor(given) => copied=no
            torch.tensor(made.shape)  #: torch.tensor(made.shape) => copied=no
            torch.tensor(made.item())  #: torch.tensor(made.item()) => copied=no
            either = made if flag else 0
            torch.tensor(either)  #: torch.tensor(either) => copied=no
            if not torch.is_tensor(made):
                made = torch.tensor(made)  #: torch.tensor(made) => copied=no
            return made
    """,
}


def test_copies(expectation: Callable[[], None]) -> None:
    """One expectation of one program."""
    expectation()
