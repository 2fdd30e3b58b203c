"""Runs a program of the grammar on the CPU, in this process, and keeps what it computed.

What a GPU would do is done by the CPU, loaders work in this process, and layers draw as many random numbers
with a bias as without, so that a program can be run before and after its fixes and be compared.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import signal
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import distributed as dist
from torch import nn
from torch.utils.data import DataLoader, dataloader

from benchmarks.fuzz import stand_ins

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20
"""The processor time that a program may take; those of the grammar take a few hundredths of a second."""


class TooLongError(Exception):
    """A program that did not end in its time."""


@dataclass(frozen=True)
class Outcome:
    """What a program left behind: ``results``, the states of its models, and what it printed.

    ``error`` is how it ended, if it raised.
    """

    results: Mapping[str, Any]
    states: Mapping[str, Mapping[str, Any]]
    printed: str
    error: str | None = None


def run(text: str, *, double: bool = False, nudged: bool = False) -> Outcome:
    """Run a program that leaves what it computed in ``results``; with ``double``, in double precision.

    With ``nudged``, layers start from weights that differ in the last digit.
    """
    _warm_up()
    text = on_cpu(in_double_precision(text) if double else text)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    error = None
    with (
        _comparable(nudged),
        _surroundings(double),
        stand_ins.importable(),
        _alone(),
        # Compiling takes longer than all else together.
        torch._dynamo.config.patch(disable=True),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            with _limit():
                exec(compile(text, "<program>", "exec", dont_inherit=True), namespace)
        except TooLongError:
            raise
        except (Exception, SystemExit) as raised:
            error = f"{type(raised).__name__}: {raised}".split("\n")[0]
    models = {name: value for name, value in namespace.items() if isinstance(value, nn.Module)}
    states = {name: dict(model.state_dict()) for name, model in models.items()}
    return Outcome(dict(namespace.get("results") or {}), states, printed.getvalue(), error)


def on_cpu(text: str) -> str:
    """Return ``text`` with the names of GPUs replaced by the CPU's."""
    text = re.sub(r"""(["'])cuda(?::0)?\1""", r"\1cpu\1", text)
    return re.sub(r"\.cuda\(", ".to('cpu', ", text)


def in_double_precision(text: str) -> str:
    """Return ``text`` with double precision wherever it asks for single."""
    text = re.sub(r"\.float\(\)", ".double()", text)
    return re.sub(r"\bFloatTensor\b", "DoubleTensor", re.sub(r"\bfloat32\b", "float64", text))


def differences(before: Any, after: Any, tolerance: float = 0.0, place: str = "results") -> Iterator[str]:
    """Yield where two results differ: in kind, or in value by more than ``tolerance``, which is relative."""
    if type(before) is not type(after):
        yield f"{place}: {_told(before)} became {_told(after)}"
    elif isinstance(before, Mapping):
        if before.keys() != after.keys():
            yield f"{place}: the keys {sorted(map(str, before))} became {sorted(map(str, after))}"
        for key in before.keys() & after.keys():
            yield from differences(before[key], after[key], tolerance, f"{place}[{key!r}]")
    elif isinstance(before, (list, tuple)):
        if len(before) != len(after):
            yield f"{place}: {len(before)} items became {len(after)}"
        for number, pair in enumerate(zip(before, after, strict=False)):
            yield from differences(*pair, tolerance, f"{place}[{number}]")
    elif isinstance(before, torch.Tensor):
        # Whether it has a graph is what some fixes are about.
        for name in ("dtype", "shape"):
            if getattr(before, name) != getattr(after, name):
                yield f"{place}: {name} {getattr(before, name)} became {getattr(after, name)}"
        if before.shape == after.shape and not _close(
            before.detach().numpy(), after.detach().numpy(), tolerance
        ):
            yield f"{place}: {_told(before)} became {_told(after)}"
    elif isinstance(before, (np.ndarray, np.generic, float)):
        if not _close(before, after, tolerance):
            yield f"{place}: {_told(before)} became {_told(after)}"
    elif before != after and not (tolerance and isinstance(before, str)):
        yield f"{place}: {_told(before)} became {_told(after)}"


def _close(before: Any, after: Any, tolerance: float) -> bool:
    if tolerance == 0:
        return bool(np.array_equal(before, after, equal_nan=np.asarray(before).dtype.kind in "fc"))
    size = max(1.0, float(np.max(np.abs(before), initial=0, where=np.isfinite(before))))
    return bool(np.allclose(before, after, rtol=tolerance, atol=tolerance * size, equal_nan=True))


def _told(value: Any) -> str:
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) < 80 else text[:77] + '...'}"


# --- surroundings ----------------------------------------------------------------------------------------


@cache
def _warm_up() -> None:
    """Import what torch imports with the first optimizer, which takes longer than any program."""
    torch.optim.SGD([torch.zeros(1)])


@contextlib.contextmanager
def _comparable(nudged: bool) -> Iterator[None]:
    """Patch layers and loaders so that programs before and after a fix can be compared."""
    places = (
        (nn.Linear, "reset_parameters"),
        (nn.modules.conv._ConvNd, "reset_parameters"),
        (dataloader._MultiProcessingDataLoaderIter, "_reset"),
        (DataLoader, "__init__"),
    )
    saved = [getattr(owner, name) for owner, name in places]
    runpy.run_path(str(ROOT / "tests" / "draws" / "sitecustomize.py"))
    for owner, name in places[:2]:
        setattr(owner, name, _without_bias(getattr(owner, name), nudged))
    DataLoader.__init__ = _without_workers(saved[-1])
    try:
        yield
    finally:
        for (owner, name), value in zip(places, saved, strict=True):
            setattr(owner, name, value)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Give programs process groups of this process alone, whatever they ask for."""
    initialise: Any = dist.init_process_group

    def init_process_group(*_: Any, **__: Any) -> None:
        initialise("gloo", store=dist.HashStore(), rank=0, world_size=1)

    dist.init_process_group = init_process_group
    try:
        yield
    finally:
        dist.init_process_group = initialise
        if dist.is_initialized():
            dist.destroy_process_group()


def _without_workers(make: Any) -> Any:
    """Return loaders of one process, whatever they are told; what excludes one another is refused as ever."""

    def make_loader(loader: Any, *arguments: Any, **options: Any) -> None:
        make(DataLoader.__new__(DataLoader), *arguments, **options)
        positional = [*arguments[:5], 0, *arguments[6:]] if len(arguments) > 5 else list(arguments)
        off = {"num_workers", "persistent_workers", "prefetch_factor", "timeout", "multiprocessing_context"}
        make(loader, *positional, **{name: value for name, value in options.items() if name not in off})

    return make_loader


def _without_bias(reset: Any, nudged: bool) -> Any:
    """Start biases at zero, where those before a norm stay: its running mean has nothing to learn of them."""

    def reset_parameters(layer: Any) -> None:
        reset(layer)
        if layer.bias is not None:
            with torch.no_grad():
                layer.bias.zero_()
        if nudged:
            with torch.no_grad():
                layer.weight.mul_(1 + 4 * torch.finfo(layer.weight.dtype).eps)

    return reset_parameters


@contextlib.contextmanager
def _surroundings(double: bool) -> Iterator[None]:
    """Give a program the settings of torch as they are at the start, and restore them after it."""
    flags = torch.backends.cudnn
    saved = (flags.benchmark, flags.deterministic, torch.get_float32_matmul_precision())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    torch.manual_seed(0)
    np.random.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(True)
        torch.autograd.set_detect_anomaly(False)
        flags.benchmark, flags.deterministic = saved[:2]
        torch.set_float32_matmul_precision(saved[2])


@contextlib.contextmanager
def _limit() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise TooLongError(f"the program takes more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
