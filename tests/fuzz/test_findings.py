"""What the fuzzer found, made small: programs of which something did not hold, and does now."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import properties

# Texts that any property of any file may be asked of.
TEXTS = {
    "a syntax error at the end of a text with CR LF": "with autocast():\n\n\n",
    "rules that took a file without torch for a program of theirs": """\
for x, y in loader():
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
""",
    "a line of nothing but a backslash, which LibCST drops": """\
import torch
from torch import tensor
\\
def train(model: torch.nn.Module, loader):
    total = torch.zeros(1)
    return tensor(total / len(loader))
""",
    "a program that the interpreter reads, and LibCST does not": """\
def train(config, data):
    for epoch in range(10):
\t        args = TrainingArguments(**options)
    #
""",
    "lines joined by a lone CR": "import torch\r\\\rx = torch.zeros(3).cuda()\r",
    "a seed and a rank in different lines, which end in a lone CR": """\
from torch.utils.data import DataLoader
from torch.distributed.fsdp import fully_shard
torch.manual_seed(0)
loader = DataLoader(dataset, batch_size=4)
def train():
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    net = Net()
    fully_shard(net)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
""".replace("\n", "\r"),
    "white space in front of a bracket": """\
import torch.nn.functional as F
for step, (x, y) in enumerate(loader):
    loss = F.nll_loss(F.softmax(y_hat, dim=1).log \\
(), y)
""",
}
# Programs of the grammar, which are run.
PROGRAMS = {
    "a model whose parameters are kept as results": """\
import torch
from torch import nn

results = {}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(self.first(x))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(4, 6)).sum().backward()
optimizer.step()
results["weights"] = [p.detach().clone() for p in model.parameters()]
""",
    "a total in a dictionary for JSON": """\
import json

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
results = {}


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.item() + total
    results["total"] = json.dumps({"v": total})


model = nn.Linear(6, 3).to(device)
dataset = TensorDataset(torch.randn(8, 6), torch.randint(0, 3, (8,)))
train(model, DataLoader(dataset, 4), torch.optim.Adam(model.parameters()))
""",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text(text: str) -> None:
    for prop in properties.ANY:
        assert list(prop(text)) == []


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program(program: str) -> None:
    for prop in properties.PROGRAM:
        assert list(prop(program)) == []
