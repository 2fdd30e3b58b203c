"""What loops do to each of the parameters that they go over."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import libcst as cst
import pytest

from torchlint.rules.optimizers.per_parameter_update_loop.updates import Change, runs_every_step, update_loop
from torchlint.semantics.module import Module

BODIES = {
    # moving averages
    "q.mul_(d).add_(p, alpha=1 - d)": Change.AVERAGE,
    "q.data *= d; q.data += (1 - d) * p.data": Change.AVERAGE,
    "q.lerp_(p, d)": Change.AVERAGE,
    "q.sub_((1 - d) * (q - p))": Change.AVERAGE,
    "q.data = d * q.data + (1 - d) * p.data": Change.AVERAGE,
    "old, new = q.data, p.data; q.data = mix(old, new)": Change.AVERAGE,
    "torch.lerp(q, p, d, out=q)": Change.AVERAGE,
    "q.data[:] = d * q[:].data[:] + (1 - d) * p[:].data[:]": Change.AVERAGE,
    "q.add_(p)": None,
    "r = q.data * d + p.data": None,
    # steps along the gradient
    "p.data.add_(p.grad, alpha=-d)": Change.STEP,
    "p.data = p.data - d * p.grad": Change.STEP,
    "p -= d * p.grad; p.grad.zero_()": Change.STEP,
    "grad = p.grad.data; p.data.sub_(d * grad)": Change.STEP,
    "q.add_(p.grad.abs())": None,
    "p.data.add_(p.grad + torch.randn_like(p), alpha=-d)": None,
    # gradients and weights
    "p.grad.data.clamp_(-d, d)": Change.CLIP,
    "p.grad.data = torch.clamp(p.grad.data, -d, d)": Change.CLIP,
    "p.data.clamp_(-d, d)": Change.CLAMP,
    "p.grad /= d": Change.SCALE,
    "p.grad.mul_(1 / d)": Change.SCALE,
    "p.data.mul_(d)": None,
    "total += p.grad.norm() ** 2": Change.NORM,
    "n = p.grad.norm(2); total += n.item() ** 2": Change.NORM,
    "total += p.norm(2)": None,
    "norms.append(torch.norm(p.grad.detach()))": Change.NORM,
    "names.append(p.shape)": None,
    # copies
    "q.data.copy_(p.data)": Change.COPY,
    "q.data = p.data.clone()": Change.COPY,
    "q.data = p.data": None,
    "q.copy_(vector[: q.numel()].view_as(q))": None,
    # what no call could stand for
    "torch.distributed.all_reduce(p.grad); p.grad /= d": None,
    "q.lerp_(p, d); print(q)": None,
    "nn.init.normal_(p)": None,
    "p.grad.zero_()": None,
}


@pytest.mark.parametrize("body", BODIES)
def test_what_is_done_to_each(body: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(
        "import torch\nfrom torch import nn\n"
        "for p, q in zip(model.parameters(), other.parameters()):\n" + indent(body, "    ") + "\n"
    )
    found = update_loop(module, next(iter(module.tree.nodes(cst.For))))
    assert (found.change if found is not None else None) is BODIES[body]


ITERABLES = {
    "zip(a.parameters(), b.parameters())": True,
    "zip(list(a.parameters()), self.shadow_params)": True,
    "zip(a.state_dict().values(), b.state_dict().values(), strict=True)": True,
    "zip(params, target_params)": True,
    "zip((p for p in a.parameters() if p.requires_grad), b.parameters())": True,
    "zip([w, b], [v, c])": False,
    "zip(inputs, outputs)": False,
    "zip(range(4), range(4))": False,
}


@pytest.mark.parametrize("iterable", ITERABLES)
def test_what_is_gone_over(iterable: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"for p, q in {iterable}:\n    q.lerp_(p, 0.1)\n")
    assert (update_loop(module, next(iter(module.tree.nodes(cst.For)))) is not None) is ITERABLES[iterable]


FUNCTIONS = {
    "def update(a, b):": True,
    "def __init__(a, b):": False,
    "def reset(a, b):": False,
    "def update(a, b, step):\n    if step % 100: return": False,
}


@pytest.mark.parametrize("header", FUNCTIONS)
def test_an_average_that_other_files_take_is_taken_every_step(
    header: str, semantic_model: Callable[[str], Module]
) -> None:
    module = semantic_model(
        f"{header}\n    for p, q in zip(a.parameters(), b.parameters()):\n        q.lerp_(p, 0.1)\n"
    )
    found = update_loop(module, next(iter(module.tree.nodes(cst.For))))
    assert found is not None and runs_every_step(module, found.loop, found.change) is FUNCTIONS[header]
