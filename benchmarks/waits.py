"""Calls that may make the host wait for an accelerator, as data: what is measured, and what is expected.

Each line of a table is one call, or a few statements behind each other; ``  # `` introduces the name of the
row, which is the code itself where none is given. ``benchmarks/syncs.py`` runs the rows on a GPU and writes
what it saw; ``tests/benchmarks/test_syncs.py`` holds the tables, the result and the linter's facts together.
Nothing here imports torch.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

WAITS, GOES_ON, RAISES = "waits", "goes on", "raises"
"""What is expected of a call: the host waits, the host goes on, or torch refuses a tensor of the device."""

IMPORTS = """
import bisect, copy, functools, io, logging, math, operator, pickle, random, statistics, struct
import numpy as np
import torch
import torch.distributions as D
import torch.linalg as L
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
"""

OPERANDS = {
    "v": "torch.rand(64, device=device)",
    "x": "torch.rand(8, 8, device=device) + 8 * torch.eye(8, device=device)",
    "spd": "x @ x.T",
    "i": "torch.randint(0, 5, (64,), device=device)",
    "m": "v > 0.5",
    "rows": "x[0] > -1.0",
    "w": "torch.masked_select(v, m)",
    "s": "v.sum()",
    "z": "v[0]",
    "n": "torch.tensor([3, 2], device=device)[0]",
    "t": "s > 0",
    "scalars": "[v.sum(), v.mean(), v.min()]",
    "vectors": "[v, v + 1]",
    "h": "torch.zeros(64)",
    "big": "torch.zeros(16, 1024, 1024)",
    "big_device": "torch.zeros(16, 1024, 1024, device=device)",
    "indices": "torch.tensor([0, 2])",
    "n_host": "len([1, 2, 3])",
    "array": "np.zeros(64, dtype=np.float32)",
    "p": "torch.rand(64, device=device, requires_grad=True)",
    "net": "nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to(device)",
    "image": "torch.rand(2, 3, 8, 8, device=device)",
    "buffer": "io.BytesIO()",
}
"""The names that rows use, each with what it is made by; later ones may use earlier ones."""


@dataclass(frozen=True)
class Row:
    """One call to be measured.

    ``needs_cuda``: it makes no sense on the CPU, so that a rehearsal leaves it out.
    """

    kind: str
    name: str
    code: str
    setup: str
    expected: str
    needs_cuda: bool = False

    def operands(self) -> list[str]:
        """Return the names of `OPERANDS` that the code and its set-up use,
        in the order in which they are made.
        """
        used = _names(self.setup) | _names(self.code)
        for name in reversed(OPERANDS):
            if name in used:
                used |= _names(OPERANDS[name])
        return [name for name in OPERANDS if name in used]

    def preparation(self) -> str:
        """Return the statements that make what the code uses."""
        lines = [f"{name} = {OPERANDS[name]}" for name in self.operands()]
        return "\n".join([*lines, self.setup]).strip()


@cache
def _names(code: str) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name))


def rows() -> list[Row]:
    """Return all rows; no two have the same name."""
    return list(_all_rows())


def program(measured: list[Row]) -> tuple[str, dict[int, Row]]:
    """Return a file with each row in a loop that trains, and the row that each line of it belongs to."""
    lines = IMPORTS.strip().splitlines()
    owners: dict[int, Row] = {}
    for number, row in enumerate(measured):
        lines += ["", "", f"def row_{number}(model, loader, optimizer):", '    device = torch.device("cuda")']
        lines += textwrap.indent(row.preparation(), "    ").splitlines()
        lines += [
            "    for inputs in loader:",
            "        optimizer.zero_grad()",
            "        model(inputs).sum().backward()",
            "        optimizer.step()",
        ]
        for line in textwrap.indent(row.code, "        ").splitlines():
            lines.append(line)
            owners[len(lines)] = row
    return "\n".join(lines) + "\n", owners


def behaviour(entry: Mapping[str, Any]) -> str | None:
    """Return what a measured row does, in the words of the tables; None where that was not seen."""
    if entry["waited"]:
        return WAITS
    if entry["raises"] is not None:
        return RAISES
    return None if entry["waited"] is None else GOES_ON


def _all_rows() -> Iterator[Row]:
    for kind, setup, needs_cuda, tables in _TABLES:
        for expected, text in tables.items():
            for line in text.strip().splitlines():
                code, _, name = line.strip().partition("  # ")
                code = code.strip()
                yield Row(kind, name.strip() or code, _lines(code), setup.strip(), expected, needs_cuda)


def _lines(code: str) -> str:
    """Return ``if t: pass`` on two lines, so that it can follow another statement."""
    return ast.unparse(ast.parse(code))


_TABLES: list[tuple[str, str, bool, dict[str, str]]] = [
    (
        "numbers",
        "",
        False,
        {
            WAITS: """
                s.item()
                v.tolist()
                float(s)
                int(s)
                int(n)
                bool(t)
                complex(s)
                s.detach().cpu().item()
                math.sqrt(s)
                math.isnan(s)
                math.isclose(s, s)
                math.fsum(v)
                operator.index(n)
                range(n)
                list(range(n))
                torch.Size(i)
                torch.Size([n, 2])
                [0] * n  # [0] * n (a list)
                "-" * n
                struct.pack("f", s)
                random.sample(range(9), n)
                [e.item() for e in scalars]
            """,
            GOES_ON: """
                len(v)
                s * 2 + 1
                abs(s)
                pow(s, 2)
                s // 1
                slice(None, n)
                hash(v)
                {s: 1}  # a device scalar as key of a dictionary
                set(v)
                list(v)
                list(zip(v, v))
                [e for e in v]
                list(enumerate(v))
                v.shape
                v.size(0)
                v.numel()
                v.dtype
                v.device
                v.is_cuda
                v.requires_grad
                s.dim()
                v.data_ptr()
                v.is_contiguous()
                isinstance(v, torch.Tensor)
                torch.is_tensor(v)
                torch.result_type(v, 1.0)
                v.detach()
                v.clone()
                v.data
            """,
            RAISES: """
                round(s)
                round(s, 2)
                statistics.mean(scalars)
            """,
        },
    ),
    (
        "truth",
        "",
        False,
        {
            WAITS: """
                if t: pass
                if s > 0: pass
                if m.any(): pass
                if not t: pass
                if t and s: pass
                if t or s: pass
                if torch.isnan(s): pass
                if torch.isfinite(v).all(): pass
                if torch.isclose(v, v).all(): pass
                while s > 1e9: pass
                assert t
                1 if t else 2
                not t
                t and s
                0 < s < 1
                s == s == s
                [e for e in v if e > 0]
                list(filter(None, v))
                any(m)
                all(v > -1)
                max(v)
                min(v)
                max(z, s)
                max(s, 0.0)
                min(s, z, 1.0)
                max(scalars)
                min(scalars)
                max(scalars, key=float)
                functools.reduce(max, scalars)
                sorted(v)
                sorted(scalars)
                scalars.sort()
                any(e > 0 for e in scalars)
                all([e > 0 for e in scalars])
                s in v
                3 in i
                s not in v
                s in [z, s]
                scalars.index(scalars[2])
                scalars.count(s)
                scalars.remove(scalars[2])
                scalars == [e + 0 for e in scalars]
                bisect.bisect([0.0, 1.0], s)
                torch.equal(x, x + 0)
                x.equal(x + 0)
                torch.allclose(x, x)
                x.allclose(x)
                torch.is_nonzero(s)
                s.is_nonzero()
                torch._assert(t, "text")
                torch.testing.assert_close(v, v)
            """,
            GOES_ON: """
                s > 0
                s == s
                s != s
                s is None
                if s is None: pass
                if v.shape[0] > 3: pass
                if v.is_cuda: pass
                if len(v): pass
                if v.numel(): pass
                sum(v)
                sum(scalars)
                sum(scalars) / len(scalars)
                torch.isnan(v).any()
                torch.isfinite(v).all()
                torch.isclose(v, v)
                torch.eq(v, v)
                torch.maximum(z, s)
                v.any()
                v.max()
                v.max(0)
                torch._assert_async(t)
            """,
        },
    ),
    (
        "text",
        """
quiet = logging.getLogger("quiet")
quiet.setLevel(logging.ERROR)
quiet.handlers = [logging.StreamHandler(io.StringIO())]
quiet.propagate = False
""",
        False,
        {
            WAITS: """
                print(s)
                print(v)
                print("loss", s)
                str(s)
                repr(v)
                format(s, ".3f")
                f"{s}"
                f"{s:.3f}"
                f"{v}"
                "{}".format(s)
                "{:.3f}".format(s)
                "%s" % s
                "%.3f" % s
                "%d" % n
                "%s %s" % (1, s)
                "".join([str(s)])
                quiet.info(f"{s}")  # quiet.info(f"{s}"): the text is made although the level is off
                quiet.error("%s", s)
            """,
            GOES_ON: """
                quiet.info("%s", s)  # quiet.info("%s", s): the level is off
                print(v.shape)
                f"{v.shape} {v.device}"
                str(net)
            """,
        },
    ),
    (
        "copies to the host",
        "pinned = h.pin_memory() if torch.cuda.is_available() else torch.zeros(64)",
        False,
        {
            WAITS: """
                x.cpu()
                x.detach().cpu()
                x.to("cpu")
                x.to(device="cpu")
                x.to(torch.device("cpu"))
                x.to("cpu", torch.float64)
                x.to("cpu", non_blocking=False)
                v.to(h)
                x.type(torch.FloatTensor)
                x.type("torch.FloatTensor")
                x.cpu().numpy()
                v.cpu().tolist()
                h.copy_(v)
                h[:] = v
                pinned.copy_(v)
                h.copy_(v, non_blocking=True)
                x.numpy(force=True)
                v.untyped_storage().cpu()
                net.cpu()
                net.to("cpu")
                {k: e.cpu() for k, e in net.state_dict().items()}
                torch.save(v, buffer)
                torch.save(net.state_dict(), buffer)
                pickle.dumps(v)
            """,
            GOES_ON: """
                x.to("cpu", non_blocking=True)
                big_device.to("cpu", non_blocking=True)
                pinned.copy_(v, non_blocking=True)
                copy.copy(v)
                copy.deepcopy(v)
                copy.deepcopy(net)
                net.state_dict()
                copy.deepcopy(net.state_dict())
                net.load_state_dict(net.state_dict())
                net.parameters()
                torch.nn.utils.parameters_to_vector(net.parameters())
                v.share_memory_()
                v.element_size()
                torch.utils.dlpack.to_dlpack(v)
            """,
        },
    ),
    (
        "NumPy",
        "",
        False,
        {
            RAISES: """
                x.numpy()
                np.asarray(x)
                np.array(x)
                np.ascontiguousarray(x)
                np.asanyarray(x)
                np.array(scalars)
                np.asarray(scalars)
                np.mean(scalars)
                np.sum(scalars)
                np.max(scalars)
                np.stack(vectors)
                np.concatenate(vectors)
                np.sum(v)
                np.mean(v)
                np.max(v)
                np.min(v)
                np.prod(v)
                np.std(v)
                np.exp(v)
                np.sqrt(s)
                np.log(v)
                np.abs(v)
                np.isnan(v)
                np.allclose(v, v)
                np.where(m, v, 0)
                np.float32(s)
                np.linalg.norm(v)
                np.median(v)
                np.unique(v)
                np.dot(v, v)
                np.histogram(v)
                np.from_dlpack(v)
                v.__array__()
                array + v
                np.argmax(v)
                np.cumsum(v)
                np.clip(v, 0, 1)
                np.round(v)
                np.reshape(v, (8, 8))
            """,
            GOES_ON: """
                np.shape(v)
                np.ndim(v)
                np.isscalar(s)
            """,
            WAITS: """
                np.float64(s)
            """,
        },
    ),
    (
        "copies to the device",
        "pinned = h.pin_memory() if torch.cuda.is_available() else torch.zeros(64)",
        False,
        {
            WAITS: """
                h.to(device)
                h.cuda(device) if device.type == "cuda" else h.to(device)  # h.cuda(device)
                torch.zeros(3).to(device)
                big.to(device)
                pinned.to(device)
                h.to(device, torch.float64)
                torch.from_numpy(array).to(device)
                torch.as_tensor(array, device=device)
                torch.tensor(array, device=device)
                torch.tensor(1.0, device=device)
                torch.tensor([1.0, 2.0], device=device)
                torch.tensor(1.0).to(device)
                torch.as_tensor([1.0], device=device)
                torch.asarray([1.0], device=device)
                v.new_tensor([1.0])
                v.copy_(h)
                v[:] = h  # v[:] = h, a tensor of the host
                v[indices]  # v[indices], a tensor of the host
                v[[0, 2]]
                v[np.array([0, 2])]
                x[[0, 1]] = 1.0
                x[:, [1, 0]]
                x[torch.randperm(8)]
                x[i[:3], 0] = 1.0
                nn.Linear(8, 8).to(device)
                big.to(device, non_blocking=True)
                v[0] = 1.0
                torch.where(m, v, torch.tensor(0.0))  # torch.where with a scalar tensor of the host
                x[0, 0] = 1.0
                torch.tensor([1.0, 2.0]).to(device)
                torch.tensor([1.0], device=device)
                torch.tensor([n_host, 2], device=device)
                torch.cat([h, h]).to(device)
                torch.stack([h, h]).to(device)
                v[:3] = h[:3]
                big_device.copy_(big, non_blocking=True)
                x[array[:3].astype(np.int64)]
            """,
            GOES_ON: """
                h.to(device, non_blocking=True)
                pinned.to(device, non_blocking=True)
                v.copy_(h, non_blocking=True)
                v.copy_(pinned, non_blocking=True)
                torch.tensor(1.0).to(device, non_blocking=True)
                torch.tensor([1.0, 2.0]).to(device, non_blocking=True)
                torch.from_numpy(array).to(device, non_blocking=True)
                torch.cat([h, h]).to(device, non_blocking=True)
                torch.full((), 1.0, device=device)
                torch.full((3,), 1.0, device=device)
                torch.full_like(v, 1.0)
                torch.scalar_tensor(1.0, device=device)
                torch.zeros(3, device=device)
                torch.ones_like(v)
                torch.empty(3, device=device)
                torch.arange(9, device=device)
                torch.linspace(0, 1, 5, device=device)
                torch.eye(3, device=device)
                torch.randn(5, device=device)
                torch.randint(0, 9, (5,), device=device)
                torch.randperm(64, device=device)
                torch.randperm(100000, device=device)
                torch.randperm(64).to(device, non_blocking=True)
                v.new_full((2,), 1.0)
                v.new_zeros(3)
                v.fill_(1.0)
                v[3:5] = 1.0
                v[3]
                v[3:5]
                v[None]
                v * torch.tensor(2.0)  # v times a scalar tensor of the host
                v + 1.0
                net.to(device)  # net.to(device), where it is already
                v.to(device)  # v.to(device), where it is already
                nn.Linear(8, 8, device=device)
                x[0] = 1.0
                x[:, 0] = 1.0
                v[0].fill_(1.0)
                x.flip(1)
                x.index_fill_(0, i[:3], 1.0)
            """,
        },
    ),
    (
        "pinned memory",
        "pinned = torch.zeros(64).pin_memory()\nbig_pinned = torch.zeros(4096, 4096).pin_memory()",
        True,
        {
            WAITS: """
                pinned.to(device)  # pinned.to(device), blocking
                big_pinned.to(device)
                big_pinned.cuda()
                torch.cuda.FloatTensor([1.0])
                h.pin_memory().to(device)
                big_pinned[:, :2048].to(device, non_blocking=True)
            """,
            GOES_ON: """
                h.pin_memory()
                big_pinned[:512].to(device, non_blocking=True)
                pinned[::2].to(device, non_blocking=True)
                torch.tensor([1.0, 2.0], pin_memory=True).to(device, non_blocking=True)
                torch.tensor([1.0, 2.0]).pin_memory().to(device, non_blocking=True)
                v[:3].copy_(pinned[:3], non_blocking=True)
                pinned.to(device, non_blocking=True)  # pinned.to(device, non_blocking=True), pinned before
                big_pinned.to(device, non_blocking=True)
                big_pinned.cuda(non_blocking=True)
                h.pin_memory().to(device, non_blocking=True)
                torch.cuda.FloatTensor(3)
            """,
        },
    ),
    (
        "sizes of pageable copies",
        """
kb32, mb1, mb16 = torch.zeros(8192), torch.zeros(262144), torch.zeros(4194304)
to = torch.zeros(4194304, device=device)
""",
        False,
        {
            WAITS: """
                kb32.to(device)
                to.copy_(mb16)
                mb16.to(device, non_blocking=True)
                to.copy_(mb16, non_blocking=True)
                torch.from_numpy(mb16.numpy()).to(device, non_blocking=True)  # a large array, non_blocking
                torch.cat([mb16, mb16]).to(device, non_blocking=True)
            """,
            GOES_ON: """
                kb32.to(device, non_blocking=True)
                mb1.to(device, non_blocking=True)
                to[: 1 << 18].copy_(mb1, non_blocking=True)
                torch.from_numpy(kb32.numpy()).to(device, non_blocking=True)  # a small array, non_blocking
                mb16[:64].to(device, non_blocking=True)
                kb32.to(device, torch.float16, non_blocking=True)
                kb32[::2].to(device, non_blocking=True)
            """,
        },
    ),
    (
        "numbers that are stored",
        "zero = torch.zeros((), device=device)\nwhole = torch.zeros(8, dtype=torch.int64, device=device)",
        False,
        {
            WAITS: """
                v[5] = 1.0
                whole[5] = 1
                x[0][1] = 1.0
                x[2, 3] = True
                x[i[:3]] = 1.0
                v[indices] = 1.0
                v[[0, 2]] = 1.0
                x[:, [0, 2]] = 1.0
                x[:, i[:3]] = 1.0
            """,
            GOES_ON: """
                x[5] = 1.0
                x[:, 5] = 1.0
                v[5:6] = 1.0
                v[5].fill_(1.0)
                x[2, 3].fill_(1.0)
                v[5] = zero
                x[2, 3] = zero
                x[i[:3]] = zero
                x[i[:3], i[:3]] = zero
                v.index_fill_(0, i[:3], 1.0)
                x.index_fill_(1, i[:3], 1.0)
                v[m] = 1.0
                x[rows] = 1.0
            """,
        },
    ),
    (
        "indexing",
        "",
        False,
        {
            WAITS: """
                v[n]
                x[n, 0]
                x[0, n]
                v[:n]
                v[n:]
                v[n:n + 2]
                v[::n]
                v[n] = 1.0
                v[:n] = 0.0
                v[i[0]]
                v[m]
                v[v > 0.5]
                v[~m]
                x[rows]
                x[:, rows]
                x[rows, 0]
                v[t]
                v[m] = w
                v[m] = v[m] * 2
                v[m] += 1
                v[m] = s  # v[m] = s, a device scalar
                v[m.nonzero()]
                v.index_put_((m,), w)
                v.index_put((m,), w)
                v[i] = 1.0
                v.masked_fill(m, s)
                v.index_fill(0, i, s)
                v.masked_fill_(m, v.amin())
            """,
            GOES_ON: """
                v[i]
                v[i[:1]]
                x[i, i]
                v[i] = v + 1
                v[i] += 1
                v[m] = 0.0
                v[m] = 1
                x[rows] = 0.0
                x[:, rows] = 0.0
                v[m] = torch.tensor(0.0)  # v[m] = a scalar tensor of the host
                v.masked_fill(m, 0.0)
                v.masked_fill_(m, 0.0)
                v.masked_scatter(m, v)
                torch.where(m, v, v)
                torch.where(m, v, s)
                torch.where(m, v, 0.0)
                v.index_select(0, i)
                v.gather(0, i)
                v.take(i)
                v.index_fill(0, i, 1.0)
                v.index_add(0, i, v)
                v.index_copy(0, i, v)
                v.index_put((i,), v)
                v.scatter(0, i, v)
                v.scatter_add(0, i, v)
                v.scatter_reduce(0, i, v, "sum")
                torch.take_along_dim(v, i)
                x.select(0, 1)
                v[0] = s
                v[3:5] = s
                v[i] = s
            """,
        },
    ),
    (
        "device scalars as arguments",
        "",
        False,
        {
            WAITS: """
                torch.full((2,), s)
                torch.full((2,), s, device=device)
                torch.full_like(v, s)
                v.new_full((2,), s)
                torch.linspace(s, 1, 5, device=device)
                torch.logspace(s, 1, 5, device=device)
                torch.arange(n)
                torch.arange(n, device=device)
                torch.zeros(n)
                torch.zeros(n, 3)
                torch.zeros((n, 3), device=device)
                torch.ones(n, device=device)
                torch.rand(n, device=device)
                torch.randn(n, device=device)
                torch.empty(n, device=device)
                torch.eye(n, device=device)
                torch.randperm(n, device=device)
                torch.randint(0, n, (3,), device=device)
                torch.tensor([s, s])
                torch.tensor(scalars)
                torch.tensor(scalars, device=device)
                torch.as_tensor(scalars)
                torch.FloatTensor(scalars)
                torch.add(v, v, alpha=s)
                v.add_(v, alpha=s)
                v.sub_(v, alpha=s)
                torch.addcmul(v, v, v, value=s)
                v.addcmul_(v, v, value=s)
                v.addcdiv_(v, v + 1, value=s)
                F.leaky_relu(v, s)
                F.dropout(v, t * 0.5)
                torch.roll(v, n)
                torch.narrow(x, 0, n, 1)
                x.narrow(0, 0, n)
                v.split(n)
                v.chunk(n)
                v.topk(n)
                v.repeat(n)
                s.expand(n)
                F.pad(v, (0, n))
                F.one_hot(i, n + 3)
                x.sum(n - 3)
                torch.manual_seed(n)
            """,
            GOES_ON: """
                torch.tensor(s)
                torch.as_tensor(s)
                v.fill_(s)
                v.clamp(min=s)
                torch.clamp(v, z, s)
                v ** s
                v.mul_(s)
                torch.lerp(v, v, s)
                torch.stack(scalars)
                torch.stack(scalars).mean()
                torch.cat(vectors)
                v / s
                F.softmax(v / s, 0)
            """,
            RAISES: """
                v.tensor_split(i[:2].sort().values)
            """,
        },
    ),
    (
        "sizes that depend on data",
        "total = int(i.sum())\nbounds = torch.arange(5.0, device=device)",
        False,
        {
            WAITS: """
                v.nonzero()
                torch.nonzero(v)
                torch.nonzero(v, as_tuple=True)
                v.argwhere()
                torch.argwhere(v)
                torch.where(m)
                torch.where(v > 0.5)[0]
                v.masked_select(m)
                torch.masked_select(v, m)
                v.unique()
                torch.unique(v)
                torch.unique(v, return_inverse=True)
                torch.unique(x, dim=0)
                i.unique_consecutive()
                torch.unique_consecutive(i)
                i.bincount()
                torch.bincount(i)
                i.bincount(minlength=9)
                torch.bincount(i, weights=v)
                v.histc()
                v.histc(4)
                torch.histc(v)
                v.repeat_interleave(i)
                torch.repeat_interleave(v, i)
                torch.repeat_interleave(i)
                F.one_hot(i)
                F.one_hot(i, num_classes=-1)
                torch.combinations(v[:5])
                torch.isin(i, i)
                x.to_sparse()
                x.to_sparse_csr()
                torch.sparse_coo_tensor(i[None], v)
                torch.sparse_coo_tensor(i[None], v, (64,)).coalesce()
                torch.cov(x)
                torch.corrcoef(x)
            """,
            GOES_ON: """
                v.repeat_interleave(2)
                torch.repeat_interleave(v, 2)
                v.repeat_interleave(i, output_size=total)
                torch.repeat_interleave(v, i, output_size=total)
                F.one_hot(i, 9)
                F.one_hot(i, num_classes=9)
                v.histc(4, 0.0, 1.0)
                torch.histc(v, 4, 0.0, 1.0)
                torch.nonzero_static(v, size=3)
                torch.count_nonzero(v)
                torch.searchsorted(bounds, v)
                torch.bucketize(v, bounds)
                torch.cartesian_prod(v[:3], v[:3])
                torch.isin(i, 3)
                torch.sparse_coo_tensor(i[None], v, (64,))
                torch.tril_indices(4, 4, device=device)
                torch.block_diag(x, x)
                torch.bernoulli(v)
                torch.multinomial(v, 3)
                v.multinomial(3, replacement=True)
                torch.poisson(v)
                v.sort()
                v.argsort()
                torch.sort(v, stable=True)
                v.topk(3)
                v.kthvalue(3)
                v.msort()
                v.median()
                v.nanmedian()
                v.mode()
                v.quantile(0.5)
                v.nanquantile(0.5)
                v.quantile(z)
                v.nanmean()
                v.nansum()
                v.cumsum(0)
                v.cummax(0)
                v.logcumsumexp(0)
                v.std()
                v.norm()
                v.argmax()
                torch.aminmax(v)
                torch.diff(v)
                torch.trapezoid(v)
                v.flip(0)
                v.bernoulli()
            """,
            RAISES: """
                torch.histogram(v, 4)
            """,
        },
    ),
    (
        "linear algebra",
        "factor = torch.linalg.cholesky(spd)",
        False,
        {
            WAITS: """
                L.cholesky(spd)
                L.inv(x)
                L.solve(x, x)
                L.eigh(spd)
                L.eigvalsh(spd)
                L.eig(x)
                L.eigvals(x)
                L.svd(x)
                L.svdvals(x)
                L.lstsq(x, x)
                L.pinv(x)
                L.matrix_rank(x)
                L.matrix_exp(x)
                L.matrix_norm(x, 2)
                L.matrix_norm(x, "nuc")
                L.norm(x, 2)
                L.cond(x)
                L.matrix_power(x, -1)
                L.tensorinv(x.view(2, 4, 8))
                L.ldl_factor(spd)
                L.lu_factor(x)
                torch.inverse(x)
                torch.cholesky(spd)
                torch.svd(x)
                torch.pinverse(x)
                torch.matrix_exp(x)
                torch.lobpcg(spd, 1)
                torch.svd_lowrank(x)
                torch.pca_lowrank(x)
                x.inverse()
                x.pinverse()
                x.matrix_exp()
                x.svd()
                spd.cholesky()
                L.ldl_factor_ex(spd)
            """,
            GOES_ON: """
                L.cholesky_ex(spd)
                L.inv_ex(x)
                L.solve_ex(x, x)
                L.lu_factor_ex(x)
                L.solve_triangular(factor, x, upper=False)
                L.qr(x)
                L.det(x)
                L.slogdet(x)
                L.lu(x)
                L.matrix_power(x, 3)
                L.matrix_norm(x)
                L.vector_norm(x)
                L.norm(x)
                L.multi_dot([x, x, x])
                L.householder_product(x, x[0])
                x.det()
                x.logdet()
                x.slogdet()
                x.lu()
                x.geqrf()
                x.qr()
                factor.cholesky_inverse()
                torch.cholesky_solve(x, factor)
                torch.einsum("ij,jk->ik", x, x)
                torch.fft.fft(v)
                torch.stft(v, 16, return_complex=True)
                torch.cdist(x, x)
                torch.pdist(x)
            """,
        },
    ),
    (
        "layers and losses",
        """
targets = torch.arange(8, device=device)
embedding = torch.rand(10, 8, device=device)
offsets = torch.arange(0, 64, 8, device=device)
grid = torch.rand(2, 4, 4, 2, device=device)
spectrum = torch.stft(v, 16, return_complex=True)
window = torch.ones(16, device=device)
norm = nn.BatchNorm1d(8).to(device)
averaging = nn.BatchNorm1d(8, momentum=None).to(device)
attention = nn.MultiheadAttention(8, 2, batch_first=True).to(device)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).to(device).eval()
lstm = nn.LSTM(8, 8, batch_first=True).to(device)
sequence = torch.rand(2, 4, 8, device=device)
padding = torch.tensor([[False, False, False, True], [False, False, True, True]], device=device)
log_probs = torch.rand(9, 2, 5, device=device).log_softmax(-1)
letters = torch.tensor([[1, 2], [2, 3]], device=device)
host_letters = torch.tensor([1, 2, 2, 3], dtype=torch.int32)
host_nine = torch.tensor([9, 9], dtype=torch.int32)
host_two = torch.tensor([2, 2], dtype=torch.int32)
lengths = torch.tensor([4, 2])
device_lengths = torch.tensor([4, 2], device=device)
two = torch.tensor([2, 2], device=device)
nine = torch.tensor([9, 9], device=device)
packed = pack_padded_sequence(sequence, lengths, batch_first=True)
adaptive = nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4]).to(device)
""",
        False,
        {
            WAITS: """
                F.gaussian_nll_loss(v, v, v + 1)
                nn.GaussianNLLLoss()(v, v, v + 1)
                averaging(x)  # batch norm with momentum=None, which averages
                adaptive(x, targets)  # nn.AdaptiveLogSoftmaxWithLoss
                F.ctc_loss(log_probs, letters, nine, two)  # F.ctc_loss, lengths on the device
                pack_padded_sequence(sequence, lengths, batch_first=True, enforce_sorted=False)
                torch.istft(spectrum, 16, window=window)
                torch.normal(v, v)
                F.ctc_loss(log_probs, letters, (9, 9), (2, 2))  # F.ctc_loss, lengths as tuples
                F.ctc_loss(log_probs, letters, host_nine, host_two)  # F.ctc_loss, lengths on the host
                F.ctc_loss(log_probs, host_letters, host_nine, host_two)  # F.ctc_loss, labels on the host
                torch.nested.nested_tensor([x, x[:4]], layout=torch.jagged)
                torch.nested.as_nested_tensor([x, x[:4]], layout=torch.jagged)
                torch.nested.nested_tensor([x, x[:4]]).to_padded_tensor(0.0)
            """,
            GOES_ON: """
                net(x)
                net(x).sum().backward()
                torch.autograd.grad(net(x).sum(), list(net.parameters()))
                norm(x)
                attention(sequence, sequence, sequence)
                attention(sequence, sequence, sequence, key_padding_mask=padding)
                lstm(sequence)
                lstm(packed)
                F.scaled_dot_product_attention(sequence, sequence, sequence)
                F.cross_entropy(x, targets)
                F.cross_entropy(x, targets, label_smoothing=0.1)
                F.cross_entropy(x, targets, ignore_index=3)
                F.binary_cross_entropy(v, v)
                F.mse_loss(v, v)
                F.kl_div(x, x)
                F.embedding(i, embedding)
                F.embedding_bag(i, embedding, offsets)
                F.grid_sample(image, grid)
                F.affine_grid(torch.rand(2, 2, 3, device=device), [2, 3, 4, 4])
                F.interpolate(image, scale_factor=2)
                F.max_pool2d(image, 2, return_indices=True)
                F.gumbel_softmax(x)
                F.dropout(x)
                F.normalize(x)
                pack_padded_sequence(sequence, lengths, batch_first=True)
                pad_packed_sequence(packed, batch_first=True)
                pad_sequence([v, v[:9]])
                nn.init.normal_(x)
                nn.init.trunc_normal_(x)
                nn.init.orthogonal_(x)
                torch.nested.nested_tensor([v, v[:9]])
                torch.nested.as_nested_tensor([v, v[:9]])
                torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
                F.embedding(i, embedding, max_norm=1.0)
            """,
            RAISES: """
                pack_padded_sequence(sequence, device_lengths, batch_first=True)
            """,
        },
    ),
    (
        "transformer layers",
        """
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 1).to(device).eval()
sequence = torch.rand(2, 4, 8, device=device)
padding = torch.tensor([[False, False, False, True], [False, False, True, True]], device=device)
no_grad = torch.no_grad()
""",
        False,
        {
            WAITS: """
                with no_grad: encoder(sequence, src_key_padding_mask=padding)  # TransformerEncoder, padded
            """,
            GOES_ON: """
                with no_grad: encoder(sequence)  # TransformerEncoder
            """,
        },
    ),
    (
        "distributions",
        """
normal = D.Normal(v, v + 1)
unchecked = D.Normal(v, v + 1, validate_args=False)
categorical = D.Categorical(probs=v)
factor = torch.linalg.cholesky(spd)
""",
        False,
        {
            WAITS: """
                D.Normal(v, v + 1)
                D.Categorical(probs=v)
                D.Categorical(logits=v)
                D.Bernoulli(probs=v)
                D.Bernoulli(logits=v)
                D.Beta(v + 1, v + 1)
                D.Uniform(v, v + 1)
                D.OneHotCategorical(probs=v)
                D.Laplace(v, v + 1)
                D.LogNormal(v, v + 1)
                D.HalfNormal(v + 1)
                D.Cauchy(v, v + 1)
                D.Gumbel(v, v + 1)
                D.StudentT(v + 1)
                D.Gamma(v + 1, v + 1)
                D.Exponential(v + 1)
                D.Poisson(v + 1)
                D.Geometric(v.clamp(0.1, 0.9))
                D.Binomial(9, v)
                D.NegativeBinomial(v + 1, v.clamp(0.1, 0.9))
                D.Dirichlet(x)
                D.Multinomial(9, probs=v)
                D.VonMises(v, v + 1)
                D.Weibull(v + 1, v + 1)
                D.Pareto(v + 1, v + 1)
                D.Kumaraswamy(v + 1, v + 1)
                D.ContinuousBernoulli(v.clamp(0.1, 0.9))
                D.RelaxedBernoulli(z, v)
                D.RelaxedOneHotCategorical(z, v)
                D.LogisticNormal(v, v + 1)
                D.LowRankMultivariateNormal(v[:8], x, v[:8] + 1)
                D.MultivariateNormal(v[:8], covariance_matrix=spd)
                D.MultivariateNormal(v[:8], scale_tril=factor)
                D.MultivariateNormal(v[:8], covariance_matrix=spd, validate_args=False)
                normal.log_prob(v)
                categorical.log_prob(i)
                categorical.sample().item()
                normal.sample()
                unchecked.sample()
            """,
            GOES_ON: """
                D.Normal(v, v + 1, validate_args=False)
                D.Categorical(probs=v, validate_args=False)
                D.Categorical(logits=v, validate_args=False)
                D.Bernoulli(probs=v, validate_args=False)
                D.Laplace(v, v + 1, validate_args=False)
                D.Beta(v + 1, v + 1, validate_args=False)
                D.MultivariateNormal(v[:8], scale_tril=factor, validate_args=False)
                D.Independent(normal, 1)
                normal.rsample()
                normal.entropy()
                unchecked.log_prob(v)
                categorical.sample()
                categorical.entropy()
                categorical.probs
                D.kl_divergence(normal, unchecked)
                unchecked.rsample()
            """,
        },
    ),
    (
        "gradients and scaling",
        """
parameters = list(net.parameters())
sgd = optim.SGD(parameters, lr=0.1)
net(x).sum().backward()
scaler = torch.amp.GradScaler(device.type)
scaled = torch.amp.GradScaler(device.type)
scaled.scale(net(x).sum()).backward()
scaled.unscale_(sgd)
vector = torch.nn.utils.parameters_to_vector(parameters)
""",
        False,
        {
            WAITS: """
                clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
                clip_grad_norm_(parameters, 1.0).item()
                scaled.step(sgd)
                scaled.get_scale()
                scaled.state_dict()
            """,
            GOES_ON: """
                clip_grad_norm_(parameters, 1.0)
                clip_grad_norm_(parameters, 1.0, error_if_nonfinite=False)
                clip_grad_norm_(parameters, 1.0, foreach=False)
                clip_grad_value_(parameters, 1.0)
                torch.nn.utils.get_total_norm([e.grad for e in parameters])
                scaler.scale(s)
                scaler.is_enabled()
                scaled.update()
                sgd.zero_grad()
                sgd.step()
                sgd.state_dict()
                net.zero_grad()
                [e.grad for e in parameters]
                torch.nn.utils.vector_to_parameters(vector, parameters)
                scaler.get_scale()  # scaler.get_scale(), before anything was scaled
                scaler.state_dict()  # scaler.state_dict(), before anything was scaled
            """,
        },
    ),
    (
        "unscaling",
        """
parameters = list(net.parameters())
sgd = optim.SGD(parameters, lr=0.1)
scaler = torch.amp.GradScaler(device.type)
scaler.scale(net(x).sum()).backward()
fused = optim.AdamW(parameters, fused=True)
""",
        False,
        {
            WAITS: """
                scaler.step(sgd)  # scaler.step(sgd), not unscaled before
            """,
            GOES_ON: """
                scaler.unscale_(sgd)
                scaler.step(fused)  # scaler.step(fused): a fused optimizer looks itself
            """,
        },
    ),
    (
        "optimizers",
        """
parameters = [p]
p.grad = v.clone()
rate = torch.tensor(0.1, device=device)
plateau = optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(parameters, lr=0.1))
sgd = optim.SGD(parameters, lr=0.1, momentum=0.9)
adam = optim.Adam(parameters)
adam_loop = optim.Adam(parameters, foreach=False)
adam_fused = optim.Adam(parameters, fused=True)
adamw = optim.AdamW(parameters)
adagrad = optim.Adagrad(parameters)
adadelta = optim.Adadelta(parameters)
adamax = optim.Adamax(parameters)
asgd = optim.ASGD(parameters)
nadam = optim.NAdam(parameters)
radam = optim.RAdam(parameters)
rmsprop = optim.RMSprop(parameters)
rprop = optim.Rprop(parameters)
adafactor = optim.Adafactor(parameters) if hasattr(optim, "Adafactor") else sgd
lbfgs = optim.LBFGS(parameters, max_iter=1)
closure = lambda: (p * p).sum()
cosine = optim.lr_scheduler.CosineAnnealingLR(sgd, 10)
averaged = optim.swa_utils.AveragedModel(net)
""",
        False,
        {
            WAITS: """
                lbfgs.step(closure)
                plateau.step(s)
                float(rate)  # float(rate), a learning rate that is a tensor
                asgd.step()
                adafactor.step()
            """,
            GOES_ON: """
                sgd.step()  # sgd.step(), momentum
                adam.step()
                adam_loop.step()
                adam_fused.step()
                adamw.step()
                adagrad.step()
                adadelta.step()
                adamax.step()
                nadam.step()
                radam.step()
                rmsprop.step()
                rprop.step()
                adam.zero_grad()
                adam.state_dict()
                copy.deepcopy(adam.state_dict())
                adam.load_state_dict(adam.state_dict())
                cosine.step()
                cosine.get_last_lr()
                plateau.step(1.0)
                averaged.update_parameters(net)
            """,
        },
    ),
    (
        "optimizers for CUDA",
        """
parameters = [p]
p.grad = v.clone()
rate = torch.tensor(0.1, device=device)
adam = optim.Adam(parameters, capturable=True)
adam_rate = optim.Adam(parameters, lr=rate, capturable=True)
adam_rate_fused = optim.Adam(parameters, lr=rate, fused=True)
sgd_rate = optim.SGD(parameters, lr=rate, foreach=False)
sgd_rate_fused = optim.SGD(parameters, lr=rate, fused=True)
sgd_rate_foreach = optim.SGD(parameters, lr=rate)
cosine = optim.lr_scheduler.CosineAnnealingLR(adam_rate, 10)
""",
        True,
        {
            WAITS: """
                float(adam_rate.param_groups[0]["lr"])
                sgd_rate.step()  # SGD with a rate on the device, one parameter at a time
                sgd_rate_foreach.step()  # SGD with a rate on the device
            """,
            GOES_ON: """
                adam.step()  # Adam, capturable
                adam_rate.step()  # Adam with a rate on the device, capturable
                adam_rate_fused.step()  # Adam with a rate on the device, fused
                sgd_rate_fused.step()  # SGD with a rate on the device, fused
                cosine.step()  # a scheduler of a rate on the device
            """,
        },
    ),
    (
        "random state",
        "state = torch.get_rng_state()\ngenerator = torch.Generator(device=device)",
        False,
        {
            GOES_ON: """
                torch.manual_seed(0)
                torch.get_rng_state()
                torch.set_rng_state(state)
                generator.manual_seed(0)
                generator.get_state()
                torch.rand(9, device=device, generator=generator)
            """,
        },
    ),
    (
        "debugging",
        "anomaly = torch.autograd.detect_anomaly(check_nan=True)",
        False,
        {
            WAITS: """
                with anomaly: (p * p).sum().backward()  # backward under detect_anomaly
            """,
            GOES_ON: """
                (p * p).sum().backward()  # backward
            """,
        },
    ),
    (
        "loading",
        "torch.save(v, buffer)\nbuffer.seek(0)",
        False,
        {
            WAITS: """
                torch.load(buffer)  # torch.load of a device tensor
                torch.load(buffer, map_location=device)
            """,
            GOES_ON: """
                torch.load(buffer, map_location="cpu")  # torch.load to the host
            """,
        },
    ),
    (
        "CUDA",
        """
start = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
done = torch.cuda.Event(enable_timing=True)
done.record()
done.synchronize()
late = torch.cuda.Event(enable_timing=True)
side = torch.cuda.Stream()
state = torch.cuda.get_rng_state()
""",
        True,
        {
            WAITS: """
                torch.cuda.synchronize()
                torch.cuda.synchronize(device)
                torch.accelerator.synchronize()
                torch.cuda.current_stream().synchronize()
                torch.cuda.default_stream().synchronize()
                end.record(); end.synchronize()  # event.synchronize()
            """,
            GOES_ON: """
                end.record()
                end.query()
                side.wait_stream(torch.cuda.current_stream())
                torch.cuda.current_stream().query()
                torch.cuda.current_stream().wait_event(done)
                torch.cuda.memory_allocated()
                torch.cuda.max_memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.mem_get_info()
                torch.cuda.memory_stats()
                torch.cuda.get_device_properties(0)
                torch.cuda.is_available()
                torch.cuda.set_device(0)
                torch.cuda.get_rng_state()
                torch.cuda.set_rng_state(state)
                torch.cuda.manual_seed_all(0)
                torch.cuda.nvtx.range_push("x"); torch.cuda.nvtx.range_pop()
                torch.cuda.empty_cache()  # torch.cuda.empty_cache(), with nothing cached
            """,
        },
    ),
    (
        "cached memory",
        """
kept = torch.empty(64 * 1024 * 1024, device=device)
del kept
""",
        True,
        {
            WAITS: """
                torch.cuda.empty_cache()  # torch.cuda.empty_cache(), with something cached
            """,
        },
    ),
    (
        "torchvision",
        "import torchvision\nboxes = torch.rand(64, 4, device=device)\nboxes[:, 2:] += 1",
        True,
        {
            WAITS: """
                torchvision.ops.nms(boxes, v, 0.5)
                torchvision.ops.batched_nms(boxes, v, i, 0.5)
            """,
            GOES_ON: """
                torchvision.ops.box_iou(boxes, boxes)
            """,
        },
    ),
]
"""Kind, set-up beyond `OPERANDS`, whether a GPU is needed, and the calls by what is expected of them."""
