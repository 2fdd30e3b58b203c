"""The libraries that a program imports: known from its first run, imported once for all later ones."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any

import torch

_SETTERS = frozenset({"os", "_collections_abc"})
"""The modules through which a variable of the environment is set."""
_PATIENCE = 30.0
"""Seconds that the trial copy of a process may take to find the device."""


class Libraries:
    """Notes what is imported from outside a project while its program runs.

    Args:
        ours: the folders whose modules are the program's own, and may differ from run to run.
    """

    def __init__(self, ours: Sequence[str]) -> None:
        self._ours = tuple(f"{folder}/" for folder in ours if folder)
        self._before = frozenset(sys.modules)
        self._sets_variables = False

    def start(self) -> None:
        """Watch whether the program sets variables, which a library may read when it is imported."""
        kind: Any = type(os.environ)
        original = kind.__setitem__

        def set_item(environment: Any, key: str, value: str) -> None:
            self._sets_variables |= self._from_program(sys._getframe(1))
            original(environment, key, value)

        kind.__setitem__ = set_item

    def found(self) -> list[tuple[str, str]]:
        """Return names and files of the modules, as they were imported;
        none if the program sets variables.
        """
        if self._sets_variables:
            return []
        found = []
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if name not in self._before and isinstance(spec, ModuleSpec) and spec.name == name:
                file = spec.origin
                if spec.has_location and file and not file.startswith(self._ours):
                    found.append((name, file))
        return found

    def _from_program(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_globals.get("__name__") in _SETTERS:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self._ours)


def load(modules: Iterable[Sequence[str]]) -> bool:
    """Import ``modules``, names with their files, as far as they are found in the same files.

    Returns whether copies of this process can use the device, and lack no thread that a library started.
    """
    elsewhere: set[str] = set()
    with _device_untouched():
        for name, file in modules:
            top = name.partition(".")[0]
            if name in sys.modules or top in elsewhere:
                continue
            try:
                spec = importlib.util.find_spec(name)
            except (ImportError, ValueError, AttributeError):
                spec = None
            if spec is not None and spec.origin == file:
                try:
                    importlib.import_module(name)
                except Exception:
                    return False
            elif name == top:
                elsewhere.add(top)
    return threading.active_count() == 1 and _can_be_copied()


@contextmanager
def _device_untouched() -> Iterator[None]:
    """Let torch look for GPUs without the driver, which would not work in copies any more."""
    name = "PYTORCH_NVML_BASED_CUDA_CHECK"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _can_be_copied() -> bool:
    """Return whether a copy finds the device in working order."""
    pid = os.fork()
    if pid == 0:
        try:
            if torch.cuda.is_available():
                torch.zeros(1, device="cuda")
            os._exit(0)
        except BaseException:
            os._exit(1)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.02)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False
