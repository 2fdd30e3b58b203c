"""Runs fixtures on the CPU as if it had an accelerator: what NumPy and the host may not touch, they do not.

Tensors that are sent to ``cuda``, or made there, are `OnDevice`: they compute as all others do, and so does
what is computed from them, but they say that they are on the accelerator, and refuse what torch refuses
there: to become an array, to be the lengths of packed sequences, to be mixed with tensors of the host.

What a fixture defines is called with arguments that are made up by the names and annotations of the
parameters. Not every fixture can be run so; what can be, is also run after its advice was followed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch
import torch._dynamo  # optimizers import it when first used, which is slow
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

_SECONDS = 2
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)


# --- the accelerator --------------------------------------------------------------------------------------


class OnDevice(torch.Tensor):  # type: ignore[misc]
    """A tensor that pretends to be on the accelerator."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if func == torch.Tensor.device.__get__:
            return torch.device("cuda", 0)
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if name == "_pack_padded_sequence" and isinstance(args[1], OnDevice):
            raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor")
        mixed = [
            leaf for leaf in tree_leaves((args, kwargs or {})) if type(leaf) is torch.Tensor and leaf.dim()
        ]
        if mixed and name not in _MIXING:
            raise RuntimeError("Expected all tensors to be on the same device")
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return tree_map(lambda leaf: sent(leaf) if type(leaf) is torch.Tensor else leaf, result)

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.dim() == 0 else str(self), spec)


# What takes tensors of both places, or none.
_MIXING = frozenset(
    {"__getitem__", "__setitem__", "copy_", "__set__", "__get__", "_pack_padded_sequence", "set_", "type_as"}
    | {"to", "backward", "lstm", "gru", "index_put_", "_foreach_norm"}
)


def sent(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor on the accelerator."""
    return tensor if isinstance(tensor, (OnDevice, nn.Parameter)) else tensor.as_subclass(OnDevice)


class Accelerator(TorchFunctionMode):  # type: ignore[misc]
    """Sends to the accelerator what is to go there, and brings to the host what is to go back."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return sent(args[0])
        if name == "cpu" or (name == "to" and _names(args[1:], kwargs, "cpu")):
            host = args[0].as_subclass(torch.Tensor) if isinstance(args[0], OnDevice) else args[0]
            rest = [arg for arg in args[1:] if not _is_place(arg)]
            return host.to(*rest) if rest and name == "to" else host
        there = _names(args if name == "to" else (), kwargs, "cuda")
        if there:
            kwargs.pop("device", None)
            args = [arg for arg in args if not _is_place(arg)]
            if name == "to" and len(args) == 1 and not kwargs:
                return sent(args[0])
        result = func(*args, **kwargs)
        return sent(result) if there and isinstance(result, torch.Tensor) else result


def _is_place(value: object) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] in _PLACES)


_PLACES = frozenset({"cuda", "cpu"})


def _names(args: Sequence[Any], kwargs: dict[str, Any], place: str) -> bool:
    named = [arg for arg in (*args, kwargs.get("device")) if _is_place(arg)]
    return any(str(each).startswith(place) for each in named)


def _pretend() -> None:
    """Have torch say that there is an accelerator, and wait for it without any."""
    torch.set_num_threads(1)
    for name in ("synchronize", "empty_cache", "manual_seed", "manual_seed_all", "set_device"):
        setattr(torch.cuda, name, lambda *args, **kwargs: None)
    torch.cuda.Event = torch.cuda.Stream = MagicMock
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1

    def moved(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        for part in module.modules():
            for key, buffer in part._buffers.items():
                part._buffers[key] = sent(buffer) if buffer is not None else None
        return module

    nn.Module.cuda = moved
    nn.Module.to = moved


# --- what fixtures import and are given -------------------------------------------------------------------


class _Imported(nn.Module):  # type: ignore[misc]
    """A model, criterion or any other class of a module that is not there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        if not given:
            return sent(torch.rand(4, 8, requires_grad=True))
        first = given[0].float()
        return self.layer(first) if first.shape[-1:] == (8,) else first + self.layer.bias.sum()


class _Stub(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made: Any = type(name, (_Imported,), {}) if name[:1].isupper() else MagicMock(name=name)
        setattr(self, name, made)
        return made


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports an empty module where a fixture imports one that is not there, and no other code does."""

    def __init__(self, text: str) -> None:
        self.roots = set(_IMPORTED.findall(text))

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in self.roots:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _whole(*shape: int) -> torch.Tensor:
    return torch.randint(1, 4, shape)


# By words in the names of parameters; the first that fits counts.
_MADE: tuple[tuple[str, Callable[[], Any]], ...] = (
    ("device", lambda: torch.device("cuda")),
    ("lengths|labels|target|index|indices|ids|tokens|counts", lambda: sent(_whole(4))),
    ("optimizer|opt", lambda: torch.optim.SGD([nn.Parameter(torch.zeros(8))], lr=0.1)),
    ("criterion|loss_fn|loss_function", lambda: lambda *given: given[0].float().mean()),
    ("model|net|network|encoder|decoder|generator|critic|policy|actor|backbone|module", _Imported),
    ("mask", lambda: sent(torch.rand(4, 8) > 0.5)),
    ("count|steps|epochs|size|width|dim|channels|classes|heads|n|k|depth|atoms|rows|columns", lambda: 8),
    ("stop|blank|step|epoch|ignore", lambda: 2),
    ("threshold|eps|scale|alpha|beta|gamma|lr|rate|temperature|limit", lambda: 0.5),
    ("path|name|root|folder", lambda: "nowhere"),
)


def _batches(kind: int) -> list[Any]:
    x, y = torch.rand(4, 8), _whole(4)
    named = {"x": x, "y": y, "input_ids": _whole(4, 8), "labels": y}
    return [[(x, y), (x, torch.rand(4, 8)), x, named][kind]] * 2


_KINDS = 4


def _argument(parameter: inspect.Parameter, kind: int) -> Any:
    """What a parameter is given; ``kind`` says what the batches of a loader are."""
    name, annotation = parameter.name, str(parameter.annotation)
    if "list[int]" in annotation:
        return [3, 2, 2, 1]
    if annotation in ("int", "float", "bool", "str"):
        return {"int": 8, "float": 0.5, "bool": True, "str": "text"}[annotation]
    words = name.lower().split("_")
    if any(word in ("loader", "loaders", "batches", "dataset", "data", "dataloader") for word in words):
        return _batches(kind)
    for names, make in _MADE:
        if name in names.split("|") or words[-1] in names.split("|"):
            return make()
    return sent(torch.rand(4, 8))


def _arguments(function: Callable[..., Any], kind: int) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty:
            continue
        value = _argument(parameter, kind)
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


# --- running ----------------------------------------------------------------------------------------------


def _called(scope: dict[str, Any]) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """What a fixture defines, by its name: functions and methods, to be run with made up arguments."""
    for name, value in list(scope.items()):
        if getattr(value, "__module__", None) != scope["__name__"]:
            continue
        if inspect.isfunction(value):
            yield name, partial(_call, value)
        elif inspect.isclass(value):
            for method, function in vars(value).items():
                if not inspect.isfunction(function) or (method.startswith("__") and method != "__call__"):
                    continue

                def run(kind: int, cls: type = value, method: str = method) -> Any:
                    return _call(getattr(_call(cls, kind), method), kind)

                yield f"{name}.{method}", run


def _call(function: Callable[..., Any], kind: int) -> Any:
    args, kwargs = _arguments(function, kind)
    return function(*args, **kwargs)


def run(path: Path) -> dict[str, dict[int, str]]:
    """Run what a fixture defines: by function and kind of batches, what was raised; empty where it ran.

    The module itself goes by the name "". Each is run in a process of its own, a fork of this one.
    """
    found: dict[str, dict[int, str]] = {}
    for name, kind, raised in _in_process(path):
        found.setdefault(name, {})[kind] = raised
    return found


def _in_process(path: Path) -> list[tuple[str, int, str]]:
    with tempfile.TemporaryDirectory() as folder:
        return _forked(path, folder)


def _forked(path: Path, folder: str) -> list[tuple[str, int, str]]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as results:
            code = compile(path.read_text(), str(path), "exec")
            stubs = _Stubs(path.read_text())
            os.chdir(folder)  # some write files
            _run_here(code, stubs, results)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as results:
        lines = results.readlines()
    os.waitpid(child, 0)
    return [tuple(json.loads(line)) for line in lines]


def _run_here(code: types.CodeType, stubs: _Stubs, results: Any) -> None:
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _give_up)
    sys.meta_path.append(stubs)
    _pretend()
    scope: dict[str, Any] = {"__name__": "fixture"}
    module = types.ModuleType("fixture")
    sys.modules["fixture"] = module
    scope = vars(module)

    def tried(name: str, kind: int, work: Callable[[], Any]) -> None:
        torch.manual_seed(0)
        signal.alarm(_SECONDS)
        try:
            with Accelerator():
                work()
            raised = ""
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}"[:300]
        finally:
            signal.alarm(0)
        print(json.dumps([name, kind, raised]), file=results, flush=True)

    tried("", 0, lambda: exec(code, scope))
    for (name, work), kind in itertools.product(list(_called(scope)), range(_KINDS)):
        tried(name, kind, partial(work, kind))


def _give_up(*_: object) -> None:
    raise TimeoutError("it does not end")
