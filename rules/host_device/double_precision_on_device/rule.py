"""TL211 double-precision-on-device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.values import Kind

from ..remedies import as_spelt, inline
from .precision import DOUBLING, Cause, doubled


@rule(
    "TL211",
    "double-precision-on-device",
    severity=NOTE,
    fix="none",
    on=cst.Call,
    named={cst.Call: DOUBLING},
    mentions=("torch", "numpy|double|Double|float64"),
    remedy="Cast to single precision with `.float()`",
    lasting=True,
)
def double_precision_on_device(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds double precision (`float64`) that reaches an accelerator: tensors created from NumPy arrays that
    have the default dtype (`np.zeros`, `np.linspace`, `np.random.rand`, lists of floats) and are moved or
    registered without a cast, models and batches cast with `.double()`, and
    `torch.set_default_dtype(torch.float64)`.

    The rule ignores arrays whose dtype the file does not show, `.double()` in the middle of a computation,
    which usually serves numerical accuracy, double precision that is an option (`if args.double:`), and
    models in files that use linear algebra or solve differential equations.

    ## Why is this bad?

    Every value takes twice the memory and bandwidth. Most accelerators are much slower in double precision
    and cannot use their tensor cores. A single tensor is enough: by type promotion, everything computed from
    it is silently double precision as well. MPS does not support double precision and raises an error.

    ## Example

    ```python
    window = torch.from_numpy(np.hanning(512)).to(device)
    spectrum = torch.fft.rfft(frames * window)
    ```

    ## Use instead

    ```python
    window = torch.from_numpy(np.hanning(512)).float().to(device)
    spectrum = torch.fft.rfft(frames * window)
    ```

    Compute tables that need the accuracy, such as a noise schedule, in double precision on the host, and
    cast them before the transfer.

    ## Fix safety

    There is no fix: results change in the last digits of single precision.

    ## References

    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [Tensor attributes: type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """
    if is_test(module):
        return
    found = doubled(module, call)
    if found is None:
        return
    elsewhere = [] if found.made in (None, call) else [(found.made, "created from a float64 array here")]
    remedy = as_spelt(module, call, _remedy(module, call, found.cause))
    # Nobody sets the default dtype by oversight.
    little = "the program asks for double precision" if found.cause is Cause.DEFAULT else None
    yield Finding(call, _MESSAGES[found.cause], related=tuple(elsewhere), remedy=remedy, slight=little)


_TAKING_DTYPES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})


def _remedy(module: Module, call: cst.Call, cause: Cause) -> str:
    """Return where to have single precision instead, by how double precision came about."""
    if cause is Cause.ARRAY:
        if module.qualified(call.func) in _TAKING_DTYPES:
            return "Create the tensor with `dtype=torch.float32`"
        return "Cast the tensor with `.float()` before the transfer"
    if cause is Cause.DEFAULT:
        return f"Remove `{inline(module, call)}`"
    if cause is Cause.MODULE:
        return f"Remove `{_cast(module, call)}`, and cast the inputs with `.float()`"
    return f"Remove `{_cast(module, call)}`"


def _cast(module: Module, call: cst.Call) -> str:
    """Return the part of a call that asks for double precision: ``.double()``, ``dtype=torch.float64``."""
    for arg in call.args:
        if module.value(arg.value).kind is Kind.DTYPE or isinstance(arg.value, cst.Attribute):
            code = inline(module, arg.value)
            if code.endswith(("double", "float64")):
                return f"{arg.keyword.value}={code}" if arg.keyword is not None else code
    return f".{call.func.attr.value}()" if isinstance(call.func, cst.Attribute) else inline(module, call)


_MESSAGES = {
    Cause.ARRAY: "this tensor is float64, like its NumPy array; float64 is slow on most accelerators",
    Cause.MODULE: "a float64 model is slow on most accelerators and fails on MPS",
    Cause.INPUT: "everything computed from a float64 tensor is float64, which is slow on most accelerators",
    Cause.DEFAULT: "a float64 default dtype is slow on most accelerators and fails on MPS",
}
