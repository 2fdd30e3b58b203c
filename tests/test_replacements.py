"""What was brought from a given up name to its replacement computes the same, bit for bit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from torchlint.fixer import fix
from torchlint.options import LintSettings
from torchlint.source import Source
from torchlint.target import Target

CODES = ("TL902", "TL903")
A = "torch.manual_seed(0); a = torch.randn(4, 4); s = a @ a.T + torch.eye(4); b = torch.randn(4, 2)\n"

PROGRAMS = {
    "qr": "result = [torch.qr(a), torch.qr(b, False), torch.qr(b, some=False), torch.qr(input=b, some=True)]",
    "qr, imported and nested": "from torch import qr\nresult = qr(qr(b, some=False)[0])",
    "cholesky": "u = True; result = [torch.cholesky(s, u), torch.cholesky(s, upper=False)]",
    "cholesky of no symmetry": "s[0, 3] += 1; result = [torch.cholesky(s), torch.cholesky(s, upper=True)]",
    "chain_matmul": "result = torch.chain_matmul(a, torch.chain_matmul(s, a), b)",
    "lu and lu_solve": "f, p = torch.lu(a); result = [f, p, torch.lu_solve(b, f, p)]",
    "triangular_solve": """
x, _ = torch.triangular_solve(b, a)
y = torch.triangular_solve(b, a, False)[0]
z = torch.triangular_solve(b, a.expand(3, 4, 4), upper=False, unitriangular=True).solution
result = [x, y, z]
""",
    "range": "result = [torch.range(0, 5), torch.range(1, 9, 2, dtype=torch.int64), torch.range(5, 1, -2)]",
    "ger": "from torch import ger\nresult = list(map(ger, a, s))",
    "upsampling": """
import torch.nn.functional as F
x = torch.randn(1, 2, 4, 4)
result = [
    F.upsample(x, scale_factor=2),
    F.upsample(x, (8, 8), mode="bilinear"),
    F.upsample_nearest(x, scale_factor=3),
    F.upsample_bilinear(x, size=(7, 7)),
    torch.nn.UpsamplingBilinear2d(scale_factor=2)(x),
    torch.nn.UpsamplingNearest2d((6, 6))(x),
]
""",
    "initialisation": """
from torch.nn.init import kaiming_normal, xavier_uniform as xu
from torch import nn
layer = nn.Linear(4, 4)
kaiming_normal(layer.weight, nonlinearity="relu")
w = layer.weight.clone()
xu(layer.weight, gain=2)
nn.init.constant(layer.bias, 3)
result = [w, layer.weight, layer.bias]
""",
    "clipping": """
from torch.nn.utils import clip_grad_norm
p = torch.nn.Parameter(a)
p.sum().backward()
result = [clip_grad_norm([p], 1.0), p.grad]
""",
    "functorch": """
import functorch
from functorch import grad, vmap
f = lambda x: (x**3).sum()
result = [vmap(grad(f))(a), functorch.jacrev(functorch.jacfwd(f))(b), functorch.vmap(f, in_dims=1)(a)]
""",
    "stateless": """
from torch.nn.utils.stateless import functional_call
layer = torch.nn.Linear(4, 2)
result = functional_call(layer, {"weight": b.T}, (a,))
""",
    "a scheduler of one's own": """
from torch.optim.lr_scheduler import _LRScheduler, StepLR
class Half(_LRScheduler):
    def get_lr(self):
        return [group["lr"] / 2 for group in self.optimizer.param_groups]
optimizer = torch.optim.SGD([torch.nn.Parameter(a)], lr=1.0)
scheduler = Half(optimizer)
result = [scheduler.get_last_lr(), StepLR(optimizer, 1).get_last_lr()]
""",
    "private helpers": """
from torch.utils.data._utils.collate import default_collate
@torch._dynamo.disable
def f(x):
    return x + 1
torch._dynamo.reset()
result = [default_collate([a, s]), f(a)]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_the_same_afterwards(name: str) -> None:
    program = f"import torch\n{A}{PROGRAMS[name]}\n"
    # A class in another's place is printed as another, so the fix is unsafe; what it computes is the same.
    target = Target.parse("2.13")
    settings = LintSettings(rules=CODES, fixable=frozenset(CODES), target=target, unsafe_fixes=True)
    fixed = fix(Source(Path("program.py"), program), settings)
    assert fixed.applied and not fixed.diagnostics
    assert _same(_run(fixed.text), _run(program))


def _run(program: str) -> Any:
    names: dict[str, Any] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, "program", "exec"), names)
    return names["result"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return bool(one.dtype == other.dtype) and torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
