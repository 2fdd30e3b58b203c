"""The program to be measured, in the form that the job names."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from torchlint.verify.worker import sharding
from torchlint.verify.worker.boundary import Boundary
from torchlint.verify.worker.copies import Imports
from torchlint.verify.worker.device import seed
from torchlint.verify.worker.job import Job
from torchlint.verify.worker.steps import Steps


class Program:
    """Runs until it ends or its boundary stops it.

    ``found_by`` says, once known, what its steps are. ``began`` is told the state of a program whose steps
    are calls before the first of them, ``returned`` what each of them returned.
    """

    def __init__(
        self,
        job: Job,
        device: str,
        boundary: Boundary,
        began: Callable[[Any], None] = lambda state: None,
        returned: Callable[[Any], None] = lambda result: None,
    ) -> None:
        self._job, self._device, self._boundary = job, device, boundary
        self._began, self._returned = began, returned
        self._steps: Steps | None = None

    @property
    def found_by(self) -> str:
        """How steps are found, for people; empty while that is not known."""
        if self._job.form == "case":
            return "calls of step()"
        if self._job.form == "entry":
            return f"calls of {self._job.function}()"
        return self._steps.found_by if self._steps is not None else ""

    def run(self) -> None:
        """Run the program in this process."""
        os.chdir(self._job.folder)
        sys.path[:0] = self._job.search
        if self._job.original:
            Imports(Path(self._job.original), Path(self._job.project)).install()
        sys.argv = [self._job.path, *self._job.arguments]
        seed(self._job.seed)
        if self._job.form == "case":
            self._run_case()
        elif self._job.form == "entry":
            self._run_entry()
        else:
            self._steps = Steps(self._job.steps_by, self._boundary)
            if self._job.form == "module":
                runpy.run_module(self._job.path, run_name="__main__", alter_sys=True)
            else:
                if self._job.path.endswith(".ipynb"):
                    # What IPython shows where a notebook asks for it.
                    builtins.display = lambda *_, **__: None  # type: ignore[attr-defined]
                runpy.run_path(self._job.path, run_name="__main__")

    def _run_case(self) -> None:
        module = _load(Path(self._job.path))
        step = getattr(module, self._job.function)
        state = module.setup(self._device, self._job.size)
        self._began(state)
        while True:
            self._returned(step(state))
            self._boundary()

    def _run_entry(self) -> None:
        module = importlib.import_module(self._job.path)
        function = getattr(module, self._job.function, None)
        if not callable(function):
            raise SystemExit(f"{self._job.path} has no function called `{self._job.function}`")
        self._began(None)
        while True:
            self._returned(function())
            self._boundary()


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def tensors(value: Any, name: str = "") -> list[tuple[str, torch.Tensor]]:
    """Return all tensors in a nest of containers, modules and dataclasses, with where they are,
    in a fixed order.
    """
    found: list[tuple[str, torch.Tensor]] = []
    _collect(value, name, found, set())
    return found


def _collect(value: Any, name: str, found: list[tuple[str, torch.Tensor]], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        found.append((name, value))
    elif isinstance(value, torch.nn.Module):
        found += [(f"{name}.{key}".lstrip("."), item) for key, item in sharding.state(value)]
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(item, f"{name}.{key}".lstrip("."), found, seen)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            _collect(item, f"{name}.{number}".lstrip("."), found, seen)
    elif isinstance(value, float):
        found.append((name, torch.tensor(value, dtype=torch.float64)))
    elif isinstance(value, SimpleNamespace) or dataclasses.is_dataclass(value):
        for key, item in vars(value).items():
            _collect(item, f"{name}.{key}".lstrip("."), found, seen)
