"""TL406: logarithms and exponentials in two steps that torch computes in one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import graded, remove_statement, replace, spell
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.layers import runs_layer
from torchlint.semantics.module import Module
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.tensordtypes import NARROW, NOT_FLOATING

from ..elements import HOOKED, complex_numbers, may_hold, observed, whole
from ..fallbacks import implements_operator
from .logmath import Fused, fused_form, fused_together


@rule(
    "TL406",
    "unfused-log-math",
    severity=WARNING,
    fix="safe",
    on=(cst.BinaryOperation, cst.Call),
    named={cst.Call: ("log", "sub", "subtract")},
    mentions=("torch", "log(|log (|exp(|exp ("),
)
def unfused_log_math(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `log(softmax(x))`, `log(sum(exp(x), dim))`, `log(1 + x)`, `exp(x) - 1`, `log(sigmoid(x))` and
    `log(1 - sigmoid(x))` on tensors, in every spelling, with or without names for intermediate results.
    Constructors, which run once, are ignored, and so is `log(sigmoid(x))` of whole numbers, which
    `logsigmoid` does not take.

    ## Why is this bad?

    Each operation is a kernel that writes a tensor to memory, and the result is inaccurate where the first
    operation loses what the second one needs: `softmax` and `sigmoid` underflow to zero and the logarithm
    returns `-inf`, `exp` overflows, `1 + x` rounds a small `x` away. For each pair torch has one function
    without this problem. `log_softmax` over many classes is faster as well. `logsumexp` is not: it subtracts
    the maximum first, so that it does not overflow.

    ## Example

    ```python
    log_probs = torch.log(F.softmax(logits, dim=-1))
    total = torch.log(torch.sum(torch.exp(scores), dim=1))
    ```

    ## Use instead

    ```python
    log_probs = torch.log_softmax(logits, dim=-1)
    total = torch.logsumexp(scores, dim=1)
    ```

    ## Fix safety

    The functions are equivalent. Where the results differ, the fused one is more accurate. The fix is
    unsafe where it removes a small number that is added before the logarithm, where the surrounding
    function checks for infinities or NaN (`torch.isinf`, `torch.nan_to_num`), of which there are fewer, for
    whole numbers (`1 + x` may overflow) and for items of a dataset, which may be whole numbers, in files
    with complex numbers, which not every release supports, for `logsigmoid` in programs that transpose
    tensors and depend on their layout (on the CPU its result is always contiguous), where the program traces
    the functions that it calls or replaces them, and where a layer such as `self.softmax(x)` no longer runs:
    hooks on it, which other files may register, are not called.

    There is no fix where the input of the function may have changed by then (after
    `x = torch.softmax(x, -1)`, if other code uses the result too), where an operation would remain that
    nothing reads, or for one half of a maximum that is subtracted before the exponential and added back after
    the logarithm.

    ## References

    - [torch.logsumexp](https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html)
    - [torch.log1p](https://docs.pytorch.org/docs/stable/generated/torch.log1p.html)
    - [TorchFix](https://github.com/pytorch-labs/torchfix), TOR106 to TOR108
    """
    fused = fused_form(module, node)
    function = module.function(node) if fused is not None else None
    if isinstance(function, cst.FunctionDef) and function.name.value == "__init__":
        # Computed once, mostly of a single number.
        return
    if fused is not None and not _without(module, fused) and not implements_operator(module, node):
        yield Finding(
            node,
            _WRITTEN_OUT
            if fused.function == "logsumexp"
            else f"`{fused.formula}` is less accurate than `{fused.function}` and launches more kernels",
            fix=_fix(module, node, fused),
            remedy=f"Call `{fused.function}` where the original input is still available",
            slight=_slight(module, node, fused),
        )


def _slight(module: Module, node: cst.BaseExpression, fused: Fused) -> str | None:
    """Return why there is little to gain: of `log1p` and `expm1` only digits,
    and these only where they are needed.
    """
    if fused.function not in ("log1p", "expm1") or _needs_digits(module, node):
        return None
    return "only small results get more accurate"


def _needs_digits(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether small results matter: a density is computed,
    or a root or a logarithm is taken of them.
    """
    function = module.function(node)
    if isinstance(function, cst.FunctionDef) and function.name.value in _OF_DENSITIES:
        return True
    return True in verdicts(module, node, _magnifies)


def _magnifies(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use makes much of small differences."""
    match use.kind:
        case UseKind.METHOD | UseKind.ARGUMENT:
            name = use.name if use.kind is UseKind.METHOD else last_name(use.call.func)
            return name in _MAGNIFYING
        case UseKind.ASSIGNED:
            return ONWARD
    return False


# Methods of distributions and their transforms, and functions that are steep at zero.
_OF_DENSITIES = frozenset({"log_prob", "log_abs_det_jacobian", "log_cdf", "cdf", "icdf", "entropy"})
_MAGNIFYING = frozenset({"log", "log_", "log2", "log10", "sqrt", "sqrt_", "rsqrt"})

_WRITTEN_OUT = "`log(sum(exp(x)))` is written out; `logsumexp` is one function, and never overflows"


def _without(module: Module, fused: Fused) -> bool:
    """Return whether the function does not take what it would be given."""
    return fused.function == "logsigmoid" and any(whole(module, x) for x in fused.read)


def _overflows(module: Module, fused: Fused) -> bool:
    """Return whether the two steps may compute with whole numbers, where they round, overflow or promote."""
    refused = NARROW if fused.function in ("log1p", "expm1") else NOT_FLOATING
    return fused.function != "log_softmax" and any(may_hold(module, x, refused) for x in fused.read[:1])


def _asks_for_infinities(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the function around a node asks what is infinite or no number,
    of which the fused one makes less.
    """
    function = module.function(node)
    around = function.body if function is not None else module.tree.root
    return not _INFINITIES.isdisjoint(module.tree.names_in(around))


_INFINITIES = frozenset({"isinf", "isposinf", "isneginf", "isfinite", "isnan", "nan_to_num", "nan_to_num_"})
_REORDERING = (
    *(".T)", ".T.", ".T\n", ".mT", ".t()", "transpose(", "permute(", "movedim(", "moveaxis("),
    *("swapaxes(", "swapdims(", "channels_last", "rearrange("),
)
_BY_LAYOUT = (".view(", "stride(", "as_strided(", "is_contiguous", "data_ptr(")
_STEPS = ("log", "softmax", "sigmoid", "exp", "sum")


def _fix(module: Module, node: cst.BaseExpression, fused: Fused) -> Fix | None:
    edits: list[tuple[Edit, ...] | None] = []
    family = fused_together(module, fused)
    for each in family:
        spelling = spell(module, each.qualified, node)
        if spelling is None or each.arguments is None or each.replaced is None:
            return None
        code = f"{spelling.text}({each.arguments})"
        edits += [replace(module, each.replaced, code), spelling.edits]
        edits += [remove_statement(module, statement) for statement in each.removed]
    hooked = any(
        runs_layer(module, (each.replaced, *each.removed), each.arguments)
        for each in family
        if each.replaced is not None and each.arguments is not None
    )
    risk = None
    if not all(each.exact for each in family):
        risk = "the small number added inside the logarithm is dropped, which changes results near zero"
    elif any(_overflows(module, each) for each in family):
        risk = "the values may be whole numbers, which can overflow here"
    elif complex_numbers(module):
        risk = "not every release of torch has the function for complex numbers"
    elif _asks_for_infinities(module, node):
        risk = "the code checks for infinities or NaN, which the function avoids"
    elif hooked or observed(module, *_STEPS):
        risk = HOOKED
    elif fused.function == "logsigmoid" and module.mentions(*_REORDERING) and module.mentions(*_BY_LAYOUT):
        risk = "the result of `logsigmoid` is contiguous where its input is not"
    spelling = spell(module, fused.qualified, node)
    told = f"Use `{spelling.text if spelling is not None else fused.function}`"
    return graded(module, told, *edits, risk=risk)
