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

import re
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
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# ``KMP_DUPLICATE_LIB_OK`` is asked whenever a second runtime is loaded, by any later import.
_OF_TORCH = (
    "OMP_(?:NUM_THREADS|PROC_BIND|PLACES|WAIT_POLICY|DYNAMIC|SCHEDULE)|GOMP_CPU_AFFINITY|MKL_NUM_THREADS"
    r"|KMP_(?!DUPLICATE_LIB_OK)\w+"
)
_READ_BY_TORCH = re.compile(_OF_TORCH)
_READ_BY_NUMPY = re.compile("OPENBLAS_NUM_THREADS")
_READ = re.compile(f"{_OF_TORCH}|OPENBLAS_NUM_THREADS")
# Ways to start processes that read the environment anew, beside those of the standard library.
_PROCESSES = re.compile(r"\w*Pool\w*\(|\w*Executor\b|\bjoblib\b|\bdask\b|launch|VecEnv|VectorEnv|ParallelEnv")


def unread_settings(module: Module, node: cst.Assign | cst.Call) -> Iterator[tuple[Setting, cst.CSTNode]]:
    """The variables that a statement sets too late for this process, each with the import that was too early.

    Those that other processes get are left out, and those beside which the file tells torch itself.
    """
    for setting in settings(module, node, _READ):
        if _for_others(module) or _is_told(module) or _may_run_elsewhere(module, node):
            return
        by_torch = _READ_BY_TORCH.fullmatch(setting.variable) is not None
        same = re.compile(re.escape(setting.variable))
        if any(settings_above(module, setting, same)):
            continue
        imported = found_before(module, node, imports_torch if by_torch else imports_numpy)
        if imported is not None:
            yield setting, imported


def trains_with_one_thread(module: Module, call: cst.Call) -> bool:
    """Whether a call leaves one thread to the operations of a program that trains on the CPU.

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
    return inherited_by_others(module) or module.tree.matches(_PROCESSES)


def _is_told(module: Module) -> bool:
    """Whether the file sets the number of threads where torch looks at any time."""
    return any(last_name(call.func) == "set_num_threads" for call in module.tree.nodes(cst.Call))


def _may_run_elsewhere(module: Module, node: cst.CSTNode) -> bool:
    """Whether only code of other files calls the function around, which may start processes afterwards."""
    function = module.function(node)
    return function is not None and not module.callers(function)
