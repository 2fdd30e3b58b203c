"""Calls that look at what they are given, or at what they have done, and make the host wait for the answer.

Distributions check their parameters when they are made, and the values whose probability they give;
``clip_grad_norm_`` checks the norm if told to; ``torch.normal`` the deviations, and with them each sample of
a ``Normal``; functions of linear algebra whether they have succeeded. Which of them wait was measured on a
GPU (benchmarks/results/syncs.json).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import (
    CHECKED_DISTRIBUTIONS,
    FUNCTION_SYNCS,
    METHOD_SYNCS,
    UNCHECKED_TWINS,
)
from torchlint.semantics.evidence import perhaps_accelerated
from torchlint.semantics.spellings import given_as
from torchlint.semantics.synchronisation import may_be_on_device
from torchlint.semantics.values import Device, Kind

from ..waits import waiting_place

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DISTRIBUTION = re.compile(r"torch\.distributions\.(?:\w+\.)?([A-Z]\w*)")
_VARIANCE_LOSSES = frozenset({"torch.nn.functional.gaussian_nll_loss", "torch.nn.GaussianNLLLoss"})


@dataclass(frozen=True, slots=True)
class Check:
    """What a call synchronizes for, as the words after "to", and the edit that avoids it.

    ``advice``: whether the check may be left out is for the author to say. ``needed``: nothing that does the
    same leaves it out.
    """

    purpose: str
    remedy: str
    advice: bool = False
    needed: bool = False


def check_of(module: Module, call: cst.Call) -> Check | None:
    """Return what ``call`` checks on the device while the host waits; None if it checks nothing there."""
    qualified = module.qualified(call.func) or ""
    distribution = _DISTRIBUTION.fullmatch(qualified)
    if distribution is not None and distribution[1] in CHECKED_DISTRIBUTIONS:
        checked = any(may_be_on_device(module, arg.value) for arg in call.args)
        return _OF_PARAMETERS if checked and _validates(module, call) else None
    if qualified == "torch.nn.utils.clip_grad_norm_" and perhaps_accelerated(module):
        return _OF_NORM if module.argument(call, "error_if_nonfinite").constant is True else None
    if qualified == "torch.normal":
        deviations = given_as(call, "std", 1)
        drawn = deviations is not None and may_be_on_device(module, deviations)
        return _OF_DEVIATIONS if drawn else None
    if qualified:
        return _of_function(module, call, qualified)
    if isinstance(call.func, cst.Attribute):
        found = _of_method(module, call, call.func)
        if found is not None:
            return found
    return _of_loss(module, call, None)


def factorizes(module: Module, call: cst.Call) -> bool:
    """Return whether a normal distribution is made that factorizes a covariance
    which was computed just for it.

    ``torch.linalg.cholesky`` synchronizes to see whether it has succeeded, whatever else is validated. What
    an object keeps could be factorized once.
    """
    if not (module.qualified(call.func) or "").endswith(".MultivariateNormal"):
        return False
    given = (given_as(call, "covariance_matrix", 1), given_as(call, "precision_matrix", 2))
    return any(matrix is not None and not isinstance(matrix, cst.Attribute) for matrix in given)


def _of_function(module: Module, call: cst.Call, qualified: str) -> Check | None:
    twin, sync = UNCHECKED_TWINS.get(qualified), FUNCTION_SYNCS.get(qualified)
    if twin is None and (sync is None or sync.reason != "check"):
        return _of_loss(module, call, qualified)
    if any(module.tree.handlers(call)):
        return None  # what fails is seen to
    given = call.args and not call.args[0].star
    if not given or not may_be_on_device(module, call.args[0].value):
        return None
    return _OF_DECOMPOSITION if twin is None else _of_success(twin)


def _of_loss(module: Module, call: cst.Call, qualified: str | None) -> Check | None:
    # Which class an object is costs more to know than any other question here.
    if not module.tree.mentions("aussian"):
        return None
    variances = given_as(call, "var", 2)
    if variances is None or (qualified or module.value(call.func).cls) not in _VARIANCE_LOSSES:
        return None
    return _OF_VARIANCES if may_be_on_device(module, variances) else None


def _of_method(module: Module, call: cst.Call, func: cst.Attribute) -> Check | None:
    name = func.attr.value
    twin = None if call.args else UNCHECKED_TWINS.get(f"torch.{name}")
    if twin is not None:
        return _of_success(twin) if may_be_on_device(module, func.value) else None
    sync = METHOD_SYNCS.get(name)
    if sync is not None and sync.reason == "check" and not call.args:
        return _OF_DECOMPOSITION if may_be_on_device(module, func.value) else None
    if name not in ("log_prob", "sample"):
        return None
    made = _made_by(module, func.value)
    if made is None:
        return None
    call_of, cls = made
    if name == "sample":
        # What has no tensors for parameters draws on the host.
        there = perhaps_accelerated(module) and module.value(func.value).device is not Device.CPU
        drawn = cls == "Normal" and there and any(may_be_on_device(module, a.value) for a in call_of.args)
        return _OF_SAMPLE if drawn else None
    asked = given_as(call, "value", 0)
    if asked is None or not may_be_on_device(module, asked) or not _validates(module, call_of):
        return None
    # A distribution that is made at every step is told there to check nothing.
    reported = check_of(module, call_of) is not None and waiting_place(module, call_of) is not None
    return None if reported else _OF_VALUE


def _made_by(module: Module, node: cst.BaseExpression) -> tuple[cst.Call, str] | None:
    """Return the call that made a distribution, and the name of its class."""
    value = module.value(node)
    if value.kind is not Kind.OBJECT or not isinstance(value.origin, cst.Call):
        return None
    found = _DISTRIBUTION.fullmatch(module.qualified(value.origin.func) or "")
    return (value.origin, found[1]) if found is not None and found[1] in CHECKED_DISTRIBUTIONS else None


def _validates(module: Module, made: cst.Call) -> bool:
    """Return whether a distribution checks what it is given, as they do unless told otherwise."""
    if any(arg.star for arg in made.args) or given_as(made, "validate_args", None) is not None:
        return False
    return not module.tree.mentions("set_default_validate_args")


def _of_success(twin: str) -> Check:
    remedy = f"Use `{twin}(…)`, which returns an error code instead of raising"
    return Check("check for errors", remedy, advice=True)


_OF_DECOMPOSITION = Check(
    "check for errors",
    "Decompose several matrices in one batched call, or keep the result while the matrix stays the same",
    advice=True,
    needed=True,
)
_OF_PARAMETERS = Check("validate its parameters", "Pass `validate_args=False`")
_OF_VALUE = Check("validate its argument", "Create the distribution with `validate_args=False`")
_OF_DEVIATIONS = Check(
    "validate `std`", "Scale and shift standard normal samples instead: `… + … * torch.randn_like(…)`"
)
_OF_SAMPLE = Check("validate `scale`", "Draw with `.rsample().detach()` instead")
_OF_NORM = Check("check that the norm is finite", "Remove `error_if_nonfinite=True`")
_OF_VARIANCES = Check(
    "validate the variances",
    "Compute the loss without validation: `0.5 * (torch.log(…) + (…) ** 2 / …).mean()`",
    advice=True,
)
