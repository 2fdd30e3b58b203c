"""TL406: logarithms and exponentials in two steps that torch computes in one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import remove_statement, replace, safe, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.layers import runs_layer
from torchlint.semantics.module import Module

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
    `log(1 - sigmoid(x))` on tensors, in every spelling, also where the steps have names. Constructors, which
    compute once, are left alone.

    ## Why is this bad?

    Each step is a kernel of its own that writes a tensor to memory, and the result is wrong where the first
    step loses what the second would need: `softmax` and `sigmoid` round to zero and the logarithm gives
    `-inf`, `exp` overflows, `1 + x` forgets a small `x`. torch has one function for each pair that does not.
    `log_softmax` over many classes is quicker as well. `logsumexp` is not: it takes the maximum away first,
    so that it does not overflow.

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

    The functions are equal; where the results differ, the fused one is nearer to the exact value. The fix
    is unsafe where a small number is added before the logarithm, which it takes out, in files that compute
    with complex numbers, for which not every release has them, and where a layer is not run any more, such as
    `self.softmax(x)`: hooks on it, which other files may register, are not called then.

    No fix is offered where what the function would read may have changed by then (after
    `x = torch.softmax(x, -1)`, if more than the logarithm is computed of it), where a step would be left that
    nothing reads, or one half of a maximum that is taken away before the exponential and added again behind
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
    if fused is not None:
        yield Finding(
            node,
            _WRITTEN_OUT
            if fused.function == "logsumexp"
            else f"`{fused.formula}` takes more kernels than `{fused.function}` and is less exact",
            fix=_fix(module, node, fused),
            remedy=f"Call `{fused.function}` where its argument is at hand",
        )


_WRITTEN_OUT = "`log(sum(exp(x)))` is written out; `logsumexp` is one function, and never overflows"


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
    # Not every release has them for complex numbers.
    exact = all(each.exact for each in family) and not _has_complex_numbers(module)
    hooked = any(
        runs_layer(module, (each.replaced, *each.removed), each.arguments)
        for each in family
        if each.replaced is not None and each.arguments is not None
    )
    grade = safe if exact and not hooked else unsafe
    spelling = spell(module, fused.qualified, node)
    return grade(module, f"Use `{spelling.text if spelling is not None else fused.function}`", *edits)


def _has_complex_numbers(module: Module) -> bool:
    """Whether the file writes complex numbers, or names what torch or NumPy makes them with."""
    return bool(module.tree.nodes(cst.Imaginary)) or any(
        name == "polar" or "complex" in name for name in identifiers(module)
    )
