"""What comes of a tensor where it is used, and which tensors began without sharing their memory."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.semantics.module import Module
from torchlint.semantics.sharing import Fate, fate, fresh

HEAD = """
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def fill(tensor):
    tensor[0] = 1


def look(tensor, times=2):
    return tensor.sum() * times


class Net(nn.Module):
    def forward(self, x, bias):
        return x + bias


criterion = nn.CrossEntropyLoss()
x = torch.rand(3)
w = torch.ones(3)
"""

USES = {
    "print(w.shape, w.dtype, w.sum(), len(w))": Fate.READ,
    "y = x * w + -w": Fate.READ,
    "y = w > 0": Fate.READ,
    "y = F.cross_entropy(x, x, weight=w)": Fate.READ,
    "y = criterion(x, w)": Fate.READ,
    "y = torch.cat([x, w])": Fate.READ,
    "y = torch.where(x > 0, w, x)": Fate.READ,
    "x[0] = w": Fate.READ,
    "x += w": Fate.READ,
    "x.copy_(w)": Fate.READ,
    "y = x[w]": Fate.READ,
    "print(f'{w}')": Fate.READ,
    "y = look(w)": Fate.READ,
    "net = Net()\ny = net(x, w)": Fate.READ,
    "y = w.view(1, 3).to('cuda').float()\nprint(y + 1)": Fate.READ,
    "a, b = w, x\nprint(a + b)": Fate.READ,
    "for row in w:\n    print(row + 1)": Fate.READ,
    "y = F.relu(w)": Fate.READ,
    "y = F.relu(w, inplace=False)": Fate.READ,
    "y = F.embedding(x, w)": Fate.READ,
    "y = F.batch_norm(x, None, None, weight=w)": Fate.HELD,
    "y = F.relu(w, inplace=x)": Fate.HELD,
    "y = F.embedding(x, w, max_norm=1.0)": Fate.HELD,
    "kept = [w]": Fate.HELD,
    "kept = {'w': w}": Fate.HELD,
    "unknown(w)": Fate.HELD,
    "p = nn.Parameter(w)": Fate.HELD,
    "x.kept = w": Fate.HELD,
    "def f():\n    return w": Fate.HELD,
    "y = (lambda: w)()": Fate.HELD,
    "y = torch.broadcast_tensors(w, x)": Fate.HELD,
    "y = w.numpy()": Fate.READ,
    "y = w.numpy()\ny[0] = 1": Fate.WRITTEN,
    "w[0] = 1": Fate.WRITTEN,
    "w[0][1] += 1": Fate.WRITTEN,
    "w.data += 1": Fate.WRITTEN,
    "w.requires_grad = True": Fate.WRITTEN,
    "w.requires_grad_()": Fate.WRITTEN,
    "w.view(-1).add_(1)": Fate.WRITTEN,
    "y = torch.unsqueeze(w, 0)\ny += 1": Fate.WRITTEN,
    "y = z = w\nz.mul_(2)": Fate.WRITTEN,
    "a, b = w, x\na.mul_(2)": Fate.WRITTEN,
    "for row in w:\n    row.zero_()": Fate.WRITTEN,
    "if (y := w.to('cuda')) is not None:\n    y.zero_()": Fate.WRITTEN,
    "fill(w)": Fate.WRITTEN,
    "fill(w.view(3))": Fate.WRITTEN,
    "torch.add(x, x, out=w)": Fate.WRITTEN,
    "nn.init.ones_(w)": Fate.WRITTEN,
    "dist.all_reduce(w)": Fate.WRITTEN,
    "F.relu(w, inplace=True)": Fate.WRITTEN,
    "F.dropout(w, 0.5, True, True)": Fate.WRITTEN,
    "F.batch_norm(x, w, x, training=True)": Fate.WRITTEN,
    "F.batch_norm(x, running_mean=x, running_var=w)": Fate.WRITTEN,
}


@pytest.mark.parametrize("use", USES)
def test_fate(use: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(HEAD + use + "\n")
    (binding,) = module.names.module_scope.bindings["w"]
    assert fate(module, binding) is USES[use]


MADE = {
    "torch.ones(3)": True,
    "torch.tensor([1.0])": True,
    "torch.tensor(array)": True,
    "torch.rand_like(given)": True,
    "given + 1": True,
    "given.sum(0)": True,
    "torch.ones(3).view(1, 3).float()": True,
    "torch.FloatTensor([1, 2])": True,
    "torch.FloatTensor(2, 3)": True,
    "torch.from_numpy(np.ones(3))": True,
    "torch.from_numpy(array)": True,
    "torch.from_numpy(written)": False,
    "torch.as_tensor(given)": False,
    "torch.from_numpy(np.asarray(given))": False,
    "given": False,
    "given.view(-1)": False,
    "given[0]": False,
    "torch.squeeze(given)": False,
    "unknown()": False,
}


@pytest.mark.parametrize("made", MADE)
def test_fresh(made: str, semantic_model: Callable[[str], Module]) -> None:
    program = (
        f"{HEAD}array = np.ones(3)\nwritten = np.ones(3)\nwritten[0] = 2\ndef f(given):\n    y = {made}\n"
    )
    module = semantic_model(program)
    (statement,) = (
        node
        for node in module.tree.nodes(cst.Assign)
        if isinstance(node.targets[0].target, cst.Name) and node.targets[0].target.value == "y"
    )
    assert fresh(module, statement.value) is MADE[made]
