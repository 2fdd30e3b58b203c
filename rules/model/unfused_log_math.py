"""TL406: logarithms and exponentials in two steps that torch computes in one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.model.logmath import Fused, fused_form
from torchlint.semantics.module import Module

_COMPLEX = re.compile(r"complex|\b\d+(\.\d*)?j\b|\bpolar\(")


@rule(
    "TL406",
    "unfused-log-math",
    severity=WARNING,
    fix="safe",
    on=(cst.BinaryOperation, cst.Call),
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
    is unsafe where a small number is added before the logarithm, which it takes out, and in files that
    compute with complex numbers, for which not every release has them.

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
            f"`{fused.formula}` takes more kernels than `{fused.function}` and is less exact",
            fix=_fix(module, node, fused),
            remedy=f"Call `{fused.function}` where its argument is at hand",
        )


def _fix(module: Module, node: cst.BaseExpression, fused: Fused) -> Fix | None:
    spelling = module.spell(fused.qualified, node)
    if spelling is None or fused.arguments is None:
        return None
    # Not every release has them for complex numbers.
    exact = fused.exact and not module.tree.matches(_COMPLEX)
    grade = module.safe if exact else module.unsafe
    code = f"{spelling.text}({fused.arguments})"
    gone = (module.remove_statement(statement) for statement in fused.removed)
    return grade(f"Use `{spelling.text}`", module.replace(node, code), spelling.edits, *gone)
