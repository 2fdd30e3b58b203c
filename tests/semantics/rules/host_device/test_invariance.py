"""Transfers of what stays the same, and of what was copied from the device just before."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "what stays the same": """
        import numpy as np
        import torch
        from torch import nn

        device = torch.device("cuda")
        TABLE = torch.zeros(4)
        COUNTS = torch.zeros(4)


        def train(loader, given: torch.Tensor):
            model = nn.Linear(4, 4)
            other = nn.Linear(4, 4).to(device)
            fixed, array = torch.ones(4), np.ones(4)
            counted, grown = torch.zeros(4), torch.zeros(4)
            graded = torch.zeros(4, requires_grad=True)
            for step, x in enumerate(loader):
                x = x.to(device)  #: x.to(device) => again=no
                out = other(x)
                model.to(device)  #: model.to(device) => again=module
                use(fixed.to(device))  #: fixed.to(device) => again=tensor
                use(fixed.float().cuda())  #: fixed.float().cuda() => again=tensor
                use(fixed[0].to(device))  #: fixed[0].to(device) => again=tensor
                use(fixed[step].to(device))  #: fixed[step].to(device) => again=no
                use(torch.from_numpy(array).to(device))  #: torch.from_numpy(array).to(device) => again=tensor
                use(given.to(device))  #: given.to(device) => again=no
                use(counted.to(device))  #: counted.to(device) => again=no
                counted[step] = 1
                use(grown.to(device))  #: grown.to(device) => again=no
                grown.add_(1)
                use(graded.to(device))  #: graded.to(device) => again=no
                use(fixed.to("cpu"))  #: fixed.to("cpu") => again=no
                if step % 100 == 0:
                    use(fixed.to(device))  #: fixed.to(device) => again=no
                helper(out)


        def helper(out):
            use(TABLE.to(device))  #: TABLE.to(device) => again=tensor
            use(COUNTS.to(device))  #: COUNTS.to(device) => again=no
            COUNTS[0] += 1


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mean = torch.zeros(3)
                self.seen = torch.zeros(3)
                self.register_buffer("std", torch.ones(3))

            def forward(self, x):
                x = x - self.mean.to(x.device)  #: self.mean.to(x.device) => again=tensor
                x = x / self.std.to(x.device)  #: self.std.to(x.device) => again=no
                self.seen = self.seen + 1
                return x * self.seen.to(x.device)  #: self.seen.to(x.device) => again=no
    """,
    "round trips": """
        import numpy as np
        import scipy.ndimage
        import torch

        device = torch.device("cuda")


        def sample(model, x):
            x = x.to(device)
            for _ in range(10):
                y = model(x)
                use(y.cpu().to(device))  #: y.cpu().to(device) => back=yes
                array = y.cpu().numpy()
                other = np.sort(array + 1)[0]
                use(torch.from_numpy(other).to(device))  #: torch.from_numpy(other).to(device) => back=yes
                use(torch.tensor(array, device=device))  #: torch.tensor(array, device=device) => back=yes
                use(torch.tensor(array))  #: torch.tensor(array) => back=no
                found = scipy.ndimage.label(array)
                use(torch.tensor(found).to(device))  #: torch.tensor(found).to(device) => back=no
                z = np.zeros(3)
                use(torch.from_numpy(z).to(device))  #: torch.from_numpy(z).to(device) => back=no
                x = y.to(device)  #: y.to(device) => back=no
    """,
}


def test_invariance(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
