"""How many threads the libraries of the host use: where a file says so, and who still reads it.

The OpenMP runtime of torch's wheels for Linux (libgomp) reads its variables when it is loaded, which is when
torch is imported, and MKL reads its own then, too. OpenBLAS, which NumPy brings, reads them when NumPy is
imported. Tried with torch 2.13 and NumPy 2.4: ``OMP_NUM_THREADS``, ``OMP_PROC_BIND``, ``GOMP_CPU_AFFINITY``
and ``MKL_NUM_THREADS``, set between the import and the first operation, changed nothing, and neither did
``OPENBLAS_NUM_THREADS`` after NumPy. What is set after NumPy and before torch, torch reads. Intel's runtime
(2026.2, preloaded) reads its ``KMP_*`` variables when torch calls it first, while it is imported: set just
before, ``KMP_BLOCKTIME`` and ``KMP_SETTINGS`` were obeyed, and set just after, they were not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.environmentvariables import (
    Setting,
    found_before,
    imports_numpy,
    imports_torch,
    inherited_by_others,
    is_main_guard,
    settings,
    settings_above,
)
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.phases import evaluated_only

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_READ_BY_TORCH = frozenset(
    {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "OMP_DYNAMIC", "OMP_SCHEDULE"}
    | {"GOMP_CPU_AFFINITY", "MKL_NUM_THREADS"}
)
_READ_BY_NUMPY = "OPENBLAS_NUM_THREADS"
_OF_INTEL = "KMP_"
# It is asked whenever a second runtime is loaded, by any later import.
_READ_LATER = "KMP_DUPLICATE_LIB_OK"
# Libraries with an OpenMP runtime of their own, for which a file may set its variables.
_OWN_RUNTIMES = ("onnxruntime", "openvino", "tensorflow")
# Ways to start processes that read the environment anew, beside those of the standard library.
_PROCESSES = ("dask", "joblib")
_STARTING = ("Pool", "Executor", "launch", "VecEnv", "VectorEnv", "ParallelEnv")


def unread_settings(module: Module, node: cst.Assign | cst.Call) -> Iterator[tuple[Setting, cst.CSTNode]]:
    """Yield the variables that a statement sets too late for this process,
    each with the import that was too early.

    Those that other processes get are left out, and those beside which the file tells torch itself.
    """
    for setting in settings(module, node):
        by_torch = _is_read_by_torch(setting.variable)
        if not by_torch and setting.variable != _READ_BY_NUMPY:
            continue
        if _for_others(module) or _is_told(module) or _may_run_elsewhere(module, node):
            return
        if by_torch and imports(module, _OWN_RUNTIMES):
            return
        if any(above.variable == setting.variable for above in settings_above(module, setting)):
            continue
        imported = found_before(module, node, imports_torch if by_torch else imports_numpy)
        if imported is not None:
            yield setting, imported


def _is_read_by_torch(variable: str) -> bool:
    """Return whether a runtime that torch loads reads a variable, and no later."""
    return variable in _READ_BY_TORCH or (variable.startswith(_OF_INTEL) and variable != _READ_LATER)


def trains_with_one_thread(module: Module, call: cst.Call) -> bool:
    """Return whether a call leaves one thread to the operations of a program that trains on the CPU.

    Beside an accelerator the host has little to compute, and of several processes each may have a core of
    its own: both are left out, and so is what is not said of every run.
    """
    if module.qualified(call.func) != "torch.set_num_threads" or not call.args:
        return False
    if module.value(call.args[0].value).constant != 1 or accelerated(module):
        return False
    if not Backpropagation.of(module).happens or _for_others(module) or _may_run_elsewhere(module, call):
        return False
    flow = module.flow
    if evaluated_only(module, call):
        return False
    if any(flow.tries(call, outward=True)) or any(flow.alternatives(call, outward=True)):
        return False
    return all(is_main_guard(branch.construct) for branch in flow.branches(call, outward=True))


def _for_others(module: Module) -> bool:
    """Return whether the file starts other processes, which read what it sets."""
    if inherited_by_others(module) or imports(module, _PROCESSES):
        return True
    return any(start in name for name in identifiers(module) for start in _STARTING)


def _is_told(module: Module) -> bool:
    """Return whether the file sets the number of threads where torch looks at any time."""
    return "set_num_threads" in module.tree.calls_by_name


def _may_run_elsewhere(module: Module, node: cst.CSTNode) -> bool:
    """Return whether only code of other files calls the function around,
    which may start processes afterwards.
    """
    function = module.function(node)
    return function is not None and not module.callers(function)
