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

    Finds double precision (`float64`) on its way to an accelerator: NumPy arrays that are of double precision
    because nobody asked for another (`np.zeros`, `np.linspace`, `np.random.rand`, lists of floats), made into
    tensors and moved or registered as they are; models and batches cast by `.double()`; and
    `torch.set_default_dtype(torch.float64)`.

    ## Why is this bad?

    Every number takes twice the memory and twice the bandwidth, and most accelerators compute much slower in
    double than in single precision, without their matrix units. A single tensor is enough: what it is added
    to or multiplied by becomes double as well, silently, and so does all that follows. MPS has no double
    precision and raises.

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

    Tables that need the digits (a noise schedule, say) are worked out in double precision on the host and
    cast before they are moved, not after.

    Left alone are arrays of which the file does not show the dtype, `.double()` in the middle of a
    computation, which is mostly there for the sake of the digits, double precision that is an option
    (`if args.double:`), and models in files that do linear algebra or solve differential equations.

    ## Fix safety

    There is no fix: results change in the last digits of single precision.

    ## References

    * [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    * [Tensor attributes: type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """
    if is_test(module):
        return
    found = doubled(module, call)
    if found is None:
        return
    elsewhere = [] if found.made in (None, call) else [(found.made, "made of a float64 array here")]
    remedy = as_spelt(module, call, _remedy(module, call, found.cause))
    yield Finding(call, _MESSAGES[found.cause], related=tuple(elsewhere), remedy=remedy)


_TAKING_DTYPES = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})


def _remedy(module: Module, call: cst.Call, cause: Cause) -> str:
    """Where to have single precision instead, by how double precision came about."""
    if cause is Cause.ARRAY:
        if module.qualified(call.func) in _TAKING_DTYPES:
            return "Ask for single precision as it is made: `dtype=torch.float32`"
        return "Cast it with `.float()` before it moves"
    if cause is Cause.DEFAULT:
        return f"Remove `{inline(module, call)}`"
    if cause is Cause.MODULE:
        return f"Remove `{_cast(module, call)}` and cast what it is given with `.float()`"
    return f"Remove `{_cast(module, call)}`"


def _cast(module: Module, call: cst.Call) -> str:
    """The part of a call that asks for double precision: ``.double()``, ``dtype=torch.float64``."""
    for arg in call.args:
        if module.value(arg.value).kind is Kind.DTYPE or isinstance(arg.value, cst.Attribute):
            code = inline(module, arg.value)
            if code.endswith(("double", "float64")):
                return f"{arg.keyword.value}={code}" if arg.keyword is not None else code
    return f".{call.func.attr.value}()" if isinstance(call.func, cst.Attribute) else inline(module, call)


_COST = "slow on most accelerators, and an error on MPS"
_MESSAGES = {
    Cause.ARRAY: f"this tensor is float64, as its array is: {_COST}; cast it before it moves (`.float()`)",
    Cause.MODULE: f"a model in float64 is {_COST}; cast what it is given to float32 instead",
    Cause.INPUT: f"all that is computed from a float64 tensor is float64: {_COST}; leave the cast out",
    Cause.DEFAULT: f"all tensors that are made without a dtype are float64: {_COST}",
}
