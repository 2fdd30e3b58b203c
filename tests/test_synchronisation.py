"""What the findings of synchronising code say: how often it is reached, and from where."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.source import Source

HEAD = """\
import torch

model = torch.nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def messages(program: str, *codes: str, newline: str = "\n") -> list[str]:
    source = Source(Path("train.py"), (HEAD + dedent(program)).replace("\n", newline))
    return [f"{item.start.row}: {item.message}" for item in check(source, LintSettings(rules=codes))]


WAITS = "synchronizes with the device"

PATHS = {
    "in the loop itself": (
        """
        def train(loader):
            for x in loader:
                loss = model(x.cuda()).sum()
                loss.backward()
                loss.item()
        """,
        f"10: `loss.item()` {WAITS} in every iteration",
    ),
    "one call away": (
        """
        def report(loss: torch.Tensor):
            print(loss.item())


        def train(loader):
            for x in loader:
                loss = model(x.cuda()).sum()
                loss.backward()
                report(loss)
        """,
        f"7: `loss.item()` {WAITS} in every iteration (called from `train()`, line 14)",
    ),
    "two calls away": (
        """
        def number(loss: torch.Tensor):
            return loss.item()


        def report(loss):
            print(number(loss))


        def train(loader):
            for x in loader:
                loss = model(x.cuda()).sum()
                loss.backward()
                report(loss)
        """,
        f"7: `loss.item()` {WAITS} in every iteration (called from `train()`, line 18, through `report()`)",
    ),
    "from the top of the file": (
        """
        def report(loss: torch.Tensor):
            print(loss.item())


        for x in torch.utils.data.DataLoader([]):
            loss = model(x.cuda()).sum()
            loss.backward()
            report(loss)
        """,
        f"7: `loss.item()` {WAITS} in every iteration (called from line 13)",
    ),
    "at every second step": (
        """
        def train(loader):
            for step, x in enumerate(loader):
                loss = model(x.cuda()).sum()
                loss.backward()
                if step % 2 == 0:
                    print(loss.item())
        """,
        f"11: `loss.item()` {WAITS} every 2 iterations",
    ),
    "at every second step, one call away": (
        """
        def report(loss: torch.Tensor):
            print(loss.item())


        def train(loader):
            for step, x in enumerate(loader):
                loss = model(x.cuda()).sum()
                loss.backward()
                if (step + 1) % 2 == 0:
                    report(loss)
        """,
        f"7: `loss.item()` {WAITS} every 2 iterations (called from `train()`, line 15)",
    ),
    "in every second epoch": (
        """
        def train(loader):
            for epoch in range(10):
                if epoch % 2 == 0:
                    for x in loader:
                        loss = model(x.cuda()).sum()
                        loss.backward()
                        print(loss.item())
        """,
        f"12: `loss.item()` {WAITS} in every iteration",
    ),
    "from forward": (
        """
        class Net(torch.nn.Module):
            def forward(self, x):
                return x * self.limit(x)

            def limit(self, x):
                return x.amax().item()
        """,
        f"11: `x.amax().item()` {WAITS} in every forward pass (called from `forward()`, line 8)",
    ),
}


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_the_message_says_from_where(name: str, newline: str) -> None:
    program, message = PATHS[name]
    assert messages(program, "TL202", newline=newline) == [message]
