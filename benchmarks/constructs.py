"""What may break the graph of a compiled function, as data: what is compiled, and what is expected of it.

Each line of a table is a statement, or a few behind each other with ``;;`` between them; ``  # `` introduces
the name of the row, which is the code itself where none is given. ``benchmarks/breaks.py`` compiles the rows
and writes what it saw; ``tests/benchmarks/test_breaks.py`` holds the tables, the result and the linter
together. Nothing here imports torch.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

BREAKS, RECOMPILES, TRACED = "breaks", "recompiles", "traced"
"""What is expected: the graph breaks, every call compiles again, or it is all one graph compiled once."""

IMPORTS = """
import copy, functools, json, logging, math, os, random, sys, time, warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger("rows")
calls = 0
outputs = []
seen = {"calls": 0}
latest = None
net = nn.Linear(8, 8)
"""

FRAME = """
class Row{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.share = 0.0
        self.outputs = []
        self.latest = None
        self.register_buffer("counter", torch.zeros(()))

    def forward(self, x: torch.Tensor, v: torch.Tensor, i: torch.Tensor):
        v = v.sin()
        s = v.sum()
        m = v > 0.5
        t = s > 0
        n = i[0]
{code}
        return v.cos()


row_{number} = torch.compile(Row{number}())
"""
"""The module around a row: a matrix, a vector and whole numbers come in, a mask and scalars are made."""


@dataclass(frozen=True)
class Row:
    """One construct: its code, and what is expected of it in a compiled ``forward``."""

    kind: str
    name: str
    code: str
    expected: str

    def module(self, number: int) -> str:
        """Return the text of a module whose ``forward`` has the construct in its middle."""
        return FRAME.format(number=number, code=textwrap.indent(self.code, " " * 8))


def rows() -> list[Row]:
    """Return all rows; no two have the same name."""
    return list(_all_rows())


def program(asked: list[Row]) -> tuple[str, dict[int, Row]]:
    """Return a file with a compiled module for each row, and the row that each line of it belongs to."""
    text = IMPORTS
    owners: dict[int, Row] = {}
    for number, row in enumerate(asked):
        start = text.count("\n")
        text += row.module(number)
        owners.update(dict.fromkeys(range(start + 1, text.count("\n") + 1), row))
    return text, owners


def _all_rows() -> Iterator[Row]:
    for kind, tables in _TABLES.items():
        for expected, text in tables.items():
            for line in text.strip().splitlines():
                code, _, name = line.strip().partition("  # ")
                code = code.strip()
                yield Row(kind, name.strip() or code, "\n".join(code.split(" ;; ")), expected)


_TABLES: dict[str, dict[str, str]] = {
    "numbers": {
        BREAKS: """
            y = s.item()
            y = v.tolist()
            y = i.tolist()
            y = float(s)
            y = int(s)
            y = bool(t)
            y = complex(s)
            y = bool((v > 0).all())
            y = m.any().item()
            y = x[0, 0].item()
            y = s.detach().cpu().item()
            y = v.numpy().max().item()
            y = float(v.numpy().max())
            y = v.cpu().numpy().tolist()
            y = torch.tensor(3).item()
            y = math.sqrt(s)
            y = math.exp(s)
            y = f"{s.item():.3f}"
            y = [float(a) for a in v]
            y = {int(a): 1 for a in i}
            for k in range(n): v = v + 1
            y = x[n]
        """,
        TRACED: """
            y = int(v.shape[0])
            y = float(v.size(0))
            y = math.sqrt(v.shape[-1])
            y = s * 2.0
            y = len(v)
        """,
    },
    "text": {
        BREAKS: """
            print("forward")
            print(s)
            print(v.shape)
            print(f"{v.shape}", flush=True)
            print(s.item())
            y = str(s)
            y = repr(s)
            y = "%.3f" % s
            logger.info("forward")
            logger.debug("%s", s)
            logger.warning("forward")
            logger.log(10, "forward")
            logging.info("forward")
            logging.warning("forward")
            logging.debug("forward")
            logging.error("forward")
            logging.exception("forward")
            logging.critical("forward")
            logging.log(10, "forward")
            logger.error("forward")
            logger.exception("forward")
            logger.critical("forward")
            warnings.warn("forward")
            sys.stdout.write("forward")
        """,
        TRACED: """
            y = f"{s}"
            y = f"{s:.3f}"
            y = "{}".format(s)
            y = str(v.shape)
            y = "%d" % v.shape[0]
            if calls > 0: print("never")
        """,
    },
    "branches": {
        BREAKS: """
            if s > 0: v = v + 1
            if t: v = v + 1
            if s: v = v + 1
            if s == 3: v = v + 1
            if (v > 0).all(): v = v + 1
            if m.any(): v = v + 1
            if not m.any(): v = v + 1
            if v.sum() > 0 and v.mean() > 0: v = v + 1
            if s.item() > 0: v = v + 1
            if torch.isnan(v).any(): raise ValueError("nan")
            if i.max() >= 5: raise ValueError("label")
            if v.numpy().max() > 3: v = v + 1
            while s > 10: s = s / 2
            while (v > 100).any(): v = v / 2
            y = 1 if t else 2
            v = v if s > 0 else -v
            y = t and s
            y = not t
            y = not m.any()
            y = 0 < s < 1
            y = 3 in i
            y = [k for k in v if k > 0]
            y = any(m)
            y = all(m)
            y = sorted(v)
            y = torch.equal(v, v + 1)
            y = torch.allclose(v, v + 1)
            y = torch.is_nonzero(s)
            y = torch.any(m) and torch.all(m)
        """,
        TRACED: """
            assert s > 0
            assert (v > 0).all(), "negative"
            assert torch.isfinite(v).all()
            if s is None: v = v + 1
            if v.shape[0] > 3: v = v + 1
            if v.dim() == 1: v = v + 1
            if v.numel() == 0: v = v + 1
            if len(v) > 2: v = v + 1
            if v.is_cuda: v = v + 1
            if v.requires_grad: v = v + 1
            if self.training: v = v + 1
            if v.dtype == torch.float32: v = v + 1
            y = max(v)
            y = max(s, s + 1)
            y = min(s, 3)
            y = sum(v)
            y = n in (1, 2)
            y = s == 3
            y = v == v
            for a in v: y = a + 1
            v = torch.where(t, v, v + 1)
        """,
    },
    "shapes": {
        BREAKS: """
            y = v.nonzero()
            y = torch.nonzero(m)
            y = torch.nonzero(m, as_tuple=True)
            y = torch.where(m)
            y = torch.argwhere(m)
            y = v[m]
            y = v[~m]
            y = v[v > 0.5]
            y = x[m[:8]]
            v[m] += 1
            y = torch.masked_select(v, m)
            y = torch.unique(i)
            y = i.unique()
            y = torch.unique_consecutive(i)
            y = torch.bincount(i)
            y = i.bincount()
            y = torch.repeat_interleave(v, i)
            y = v.repeat_interleave(i)
            y = F.one_hot(i)
            y = v[:n]
            y = x[:, : i.max()]
            y = torch.zeros(n)
            y = torch.arange(n)
            y = v.narrow(0, n, 1)
        """,
        TRACED: """
            v[m] = 0
            v[v > 0.5] = 1.0
            y = F.one_hot(i, 8)
            y = v.repeat_interleave(2)
            y = v.masked_fill(m, 0)
            y = torch.where(m, v, 0)
            y = x[i]
        """,
    },
    "numpy": {
        BREAKS: """
            y = np.random.rand()
            y = np.random.uniform()
            y = np.random.uniform(0, 1)
            y = np.random.normal()
            y = np.random.randint(0, 3)
            y = np.random.choice(3)
            y = np.random.permutation(3)
            y = np.random.default_rng()
            y = np.unique(v.numpy())
            y = np.bincount(i.numpy())
            y = np.interp(v.numpy(), [0, 1], [0, 1])
            y = np.digitize(v.numpy(), [0, 1])
            y = np.array2string(v.numpy())
            np.save("/dev/null", v.numpy())
        """,
        TRACED: """
            y = v.numpy()
            y = v.detach().cpu().numpy()
            y = np.asarray(v)
            y = np.mean(v.numpy())
            y = np.linalg.norm(v.numpy())
            y = np.sqrt(2.0)
            y = np.prod(v.shape)
            y = torch.from_numpy(np.ones(3))
            y = np.random.randn(3)
            y = np.random.normal(size=3)
        """,
    },
    "host": {
        BREAKS: """
            y = time.time()
            y = time.perf_counter()
            y = time.monotonic()
            y = time.time_ns()
            time.sleep(0.0)
            y = random.random()
            y = random.choice([1, 2])
            y = random.sample([1, 2], 1)
            y = random.gauss(0, 1)
            random.shuffle([1, 2])
            random.seed(0)
            y = open("/dev/null")
            y = os.path.exists("rows")
            y = os.getcwd()
            y = json.dumps({"a": 1})
            y = copy.deepcopy(v)
            y = copy.deepcopy(net)
            torch.save(v, "/dev/null")
            torch.manual_seed(0)
        """,
        TRACED: """
            y = random.uniform(0, 1)
            y = random.randint(0, 3)
            y = os.environ.get("ROWS")
            y = os.path.join("a", "b")
            y = copy.deepcopy([1, 2])
        """,
    },
    "state": {
        RECOMPILES: """
            self.calls += 1
            self.calls = self.calls + 1
            self.outputs.append(s)
            self.outputs.append(1)
            self.outputs.extend([s, s])
            self.outputs += [s]
            global calls ;; calls += 1
            global calls ;; calls = calls + 1
            outputs.append(s)
            outputs.append(v.shape[0])
            seen["calls"] += 1
        """,
        TRACED: """
            self.latest = s
            self.counter += 1
            self.outputs = [] ;; self.outputs.append(s)
            global latest ;; latest = s
            seen["shape"] = v.shape[0]
            y = [] ;; y.append(s)
        """,
    },
}
