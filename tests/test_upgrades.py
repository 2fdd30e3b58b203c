"""What was brought to a newer name does the same: programs are run before and after their fix."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from torchlint.fixer import fix
from torchlint.options import LintSettings
from torchlint.source import Source
from torchlint.target import Target

SCALER = "result = (type(s).__mro__[-2], s.is_enabled(), s.state_dict(), s._device)"
STATE = (
    "result = (torch.is_autocast_enabled(DEVICE), torch.get_autocast_dtype(DEVICE), "
    "torch.is_autocast_cache_enabled())"
)

PROGRAMS = {
    "cpu, all arguments by position": f"""
import torch
with torch.cpu.amp.autocast(True, torch.float16, False):
    {STATE.replace("DEVICE", '"cpu"')}
""",
    "cpu, no arguments": f"""
import torch
from torch.cpu.amp import autocast
with autocast():
    {STATE.replace("DEVICE", '"cpu"')}
""",
    "cuda, off": f"""
import torch
from torch.cuda import amp
with amp.autocast(False):
    {STATE.replace("DEVICE", '"cuda"')}
""",
    "cuda, a partial function": f"""
from functools import partial
import torch
mixed = partial(torch.cuda.amp.autocast, dtype=torch.bfloat16)
with mixed(enabled=False):
    {STATE.replace("DEVICE", '"cuda"')}
""",
    "a decorated function": """
import torch
from torch.cpu.amp import autocast as mixed
@mixed(dtype=torch.bfloat16)
def f(x):
    return (x @ x).dtype
result = f(torch.ones(2, 2))
""",
    "a scaler of the cpu": f"""
import torch
s = torch.cpu.amp.GradScaler(8.0, growth_interval=3)
{SCALER}
""",
    "a scaler of a GPU, by position": f"""
import torch
from torch.cuda.amp import GradScaler
s = GradScaler(8.0, 2.0, 0.5, 3, False)
{SCALER}
""",
    "functions of autograd": """
import torch
from torch.cuda.amp import custom_bwd, custom_fwd
class Square(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    @custom_bwd
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
x = torch.tensor([3.0], requires_grad=True)
Square.apply(x).backward()
result = x.grad.tolist()
""",
    "functions of autograd with a type": """
import torch
from torch.cuda.amp import custom_fwd
class Same(torch.autograd.Function):
    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x):
        return x + 1
result = Same.apply(torch.tensor([3.0], dtype=torch.float16)).dtype
""",
    "dynamo, at once": """
import torch
import torch._dynamo as dynamo
net = torch.nn.Linear(2, 2)
compiled = dynamo.optimize("eager")(net)
result = (type(compiled).__name__, torch.equal(compiled(torch.ones(2)), net(torch.ones(2))))
""",
    "dynamo, later": """
import torch
from torch._dynamo import optimize
wrap = optimize("eager", nopython=True)
@optimize(backend="eager", dynamic=False)
def g(x):
    return x + 1
result = wrap(lambda x: g(x) * 2)(torch.ones(2)).tolist()
""",
    "dynamo, switched off": """
import torch
f = torch._dynamo.optimize("eager", disable=True)(lambda x: x + 1)
result = f(torch.ones(1)).tolist()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_afterwards(name: str) -> None:
    codes = ("TL507", "TL514")
    settings = LintSettings(
        rules=codes, fixable=frozenset(codes), unsafe_fixes=True, target=Target.parse("2.4")
    )
    fixed = fix(Source(Path("program.py"), PROGRAMS[name]), settings)
    assert fixed.applied and not fixed.diagnostics
    assert run(fixed.text) == run(PROGRAMS[name])
    assert "FutureWarning" not in warned(fixed.text)


def run(program: str) -> Any:
    """What a program puts into ``result``."""
    names: dict[str, Any] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, "program", "exec"), names)
    return names["result"]


def warned(program: str) -> set[str]:
    """The kinds of warnings that a program gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "program", "exec"), {"__name__": "program"})
    return {warning.category.__name__ for warning in caught}
