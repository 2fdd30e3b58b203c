"""What feeds what in a model: containers, lists filled by code, attributes, factories, helper methods."""

from __future__ import annotations

from collections.abc import Callable

PROGRAMS = {
    "sequences": """
        import torch.nn as nn

        net = nn.Sequential(
            nn.Conv2d(3, 8, 3),  #: nn.Conv2d(3, 8, 3) => feeds=BatchNorm2d
            nn.BatchNorm2d(8),  #: nn.BatchNorm2d(8) => feeds=ReLU
            nn.ReLU(),  #: nn.ReLU() => feeds=Linear
            nn.Sequential(nn.Linear(8, 8), nn.Tanh()),  #: nn.Tanh() => feeds=?; nn.Linear(8, 8) => feeds=Tanh
        )


        def build(depth, wide):
            layers = [nn.Linear(4, 8)]  #: nn.Linear(4, 8) => feeds=Dropout,ReLU,Sigmoid
            if wide:
                layers.append(nn.Dropout())  #: nn.Dropout() => feeds=ReLU,Sigmoid
            for _ in range(depth):
                layers += [
                    nn.ReLU(),  #: nn.ReLU() => feeds=Linear
                    nn.Linear(8, 8),  #: nn.Linear(8, 8) => feeds=ReLU,Sigmoid
                ]
            layers.append(nn.Sigmoid())  #: nn.Sigmoid() => feeds=?
            return nn.Sequential(*layers)


        def early(short):
            layers = [nn.Linear(1, 2)]  #: nn.Linear(1, 2) => feeds=?,Tanh
            if short:
                return nn.Sequential(*layers)
            layers.extend([nn.Tanh(), nn.Linear(2, 1)])  #: nn.Tanh() => feeds=Linear
            return nn.Sequential(*layers)


        def broken():
            layers = [nn.Linear(1, 2), nn.ReLU()]
            layers.insert(1, nn.Tanh())  #: nn.Tanh() => feeds=?
            return nn.Sequential(*layers)


        def looked_at():
            layers = [nn.Linear(1, 2), nn.ReLU()]  #: nn.Linear(1, 2) => feeds=ReLU
            nn.init.zeros_(layers[0].weight)
            others = [nn.Linear(2, 3), nn.ReLU()]  #: nn.Linear(2, 3) => feeds=?
            nn.init.zeros_(others[0].bias)
            return nn.Sequential(*layers), nn.Sequential(*others)


        def branch(kind):
            return nn.Sequential(
                nn.Linear(1, 2),  #: nn.Linear(1, 2) => feeds=ReLU,Tanh
                nn.ReLU() if kind else nn.Tanh(),
            )
    """,
    "attributes": """
        import torch.nn as nn
        import torch.nn.functional as F


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(1, 2)  #: nn.Linear(1, 2) => feeds=relu
                self.second = nn.Linear(2, 3)  #: nn.Linear(2, 3) => feeds=BatchNorm1d,Dropout
                self.norm = nn.BatchNorm1d(3)  #: nn.BatchNorm1d(3) => feeds=?
                self.drop = nn.Dropout()
                self.unused = nn.Linear(4, 5)  #: nn.Linear(4, 5) => feeds=?
                layers = [nn.Linear(3, 3) for _ in range(2)]  #: nn.Linear(3, 3) => feeds=gelu
                self.some = nn.ModuleList(layers)
                self.read = nn.Linear(5, 6)  #: nn.Linear(5, 6) => feeds=?,tanh

            def helper(self, x):
                return self.second(x)

            def forward(self, x):
                x = F.relu(self.first(x))  #: F.relu(self.first(x)) => feeds=Linear
                y = self.helper(x)
                z = self.norm(y) + self.drop(y)
                for layer in self.some:
                    z = F.gelu(layer(z))
                return F.tanh(self.read(z)), self.read.bias


        def make():
            return nn.Linear(6, 7)  #: nn.Linear(6, 7) => feeds=ReLU,Tanh


        pair = nn.Sequential(make(), nn.ReLU()), nn.Sequential(make(), nn.Tanh())
    """,
}


def test_consumers(expectation: Callable[[], None]) -> None:
    """Each expectation of the programs above holds."""
    expectation()
