"""What rules say of how much is at stake at a place: less than usual where a change would gain little."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.checker import check
from torchlint.diagnostics import Impact
from torchlint.options import LintSettings
from torchlint.source import Source
from torchlint.target import Target

# The code of the rule, what the case is about, a program with one finding, and whether little is at stake.
CASES: list[tuple[str, str, bool, str]] = []


def case(code: str, name: str, low: bool, text: str) -> None:
    CASES.append((code, name, low, dedent(text)))


case(
    "TL902",
    "a format that other programs load",
    True,
    """\
    import torch

    def export(model, path):
        torch.jit.script(model).save(path)
    """,
)
case(
    "TL902",
    "a library takes its place",
    True,
    """\
    import torch
    from torch import nn

    def smaller(model):
        return torch.quantization.quantize_dynamic(model, {nn.Linear})
    """,
)
case(
    "TL902",
    "other names in the state dict",
    True,
    """\
    from torch import nn
    from torch.nn.utils import weight_norm

    def layer(width):
        return weight_norm(nn.Conv2d(width, width, 3))
    """,
)
case(
    "TL902",
    "a parameter that does something else",
    True,
    """\
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model):
        return DistributedDataParallel(model, broadcast_buffers=False)
    """,
)
case(
    "TL902",
    "a name that has another",
    False,
    """\
    import torch.nn.functional as F

    def larger(x):
        return F.upsample(x, scale_factor=2)
    """,
)
case(
    "TL902",
    "a parameter that does nothing",
    False,
    """\
    import torch.nn.functional as F

    def loss(x, y):
        return F.mse_loss(x, y, size_average=False)
    """,
)

case(
    "TL507",
    "a function that is kept for its callers",
    True,
    """\
    import torch

    # Deprecated: kept for compatibility
    def autocast(enabled):
        return torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "a function that warns of itself",
    True,
    """\
    import torch
    import warnings

    def autocast(enabled):
        warnings.warn("use torch.autocast", DeprecationWarning)
        return torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "a name that has another",
    False,
    """\
    import torch

    def autocast(enabled):
        return torch.cuda.amp.autocast(enabled)
    """,
)
case(
    "TL507",
    "apex is optional",
    True,
    """\
    try:
        from apex import amp
    except ImportError:
        amp = None

    def prepare(model, optimizer):
        return amp.initialize(model, optimizer)
    """,
)
case(
    "TL507",
    "apex is required",
    False,
    """\
    from apex import amp

    def prepare(model, optimizer):
        return amp.initialize(model, optimizer)
    """,
)
case(
    "TL903",
    "a class that is kept for its callers",
    True,
    """\
    from torch.optim.lr_scheduler import _LRScheduler

    class Warmup(_LRScheduler):
        \"\"\"Deprecated: use LinearLR.\"\"\"
    """,
)


@pytest.mark.parametrize(
    ("code", "low", "text"),
    [(code, low, text) for code, _, low, text in CASES],
    ids=[f"{c}-{n}" for c, n, *_ in CASES],
)
def test_little_is_at_stake_where_a_change_gains_little(code: str, low: bool, text: str) -> None:
    settings = LintSettings(rules=(code,), target=Target.parse("2.14"))
    (found,) = check(Source(Path("a.py"), text), settings)
    assert (found.impact is Impact.LOW) is low
