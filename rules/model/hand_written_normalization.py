"""TL405: layer norm and RMS norm computed step by step that torch has as one function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import remove_statement, replace, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.algebra import argument, loses_comment, one_line
from torchlint.semantics.constancy import same_later
from torchlint.semantics.module import Module
from torchlint.semantics.normalizations import Normalization, as_made, normalization
from torchlint.semantics.operations import operations_of
from torchlint.semantics.releasechecks import ReleaseChecks

from .fallbacks import known_to_author, with_fused_kernel


@rule(
    "TL405",
    "hand-written-normalization",
    severity=WARNING,
    fix="unsafe",
    on=(cst.BinaryOperation, cst.Call),
    named={cst.Call: ("mul", "multiply", "div", "divide")},
    mentions=("torch", "mean(", "sqrt|0.5", "keepdim"),
)
def hand_written_normalization(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds layer norm, `(x - mean) / sqrt(var + eps)`, and RMS norm, `x / sqrt(mean(x²) + eps)`, over the last
    dimensions, with the steps written out in any of the usual ways. Other dimensions, variances of a sample
    (`unbiased`), an `eps` outside of the root, and means or variances that something else reads are left
    alone, and so are classes that a decorator gives another kernel, functions that call the one of torch in
    another branch, and files that have to do with ONNX, which wants the steps.

    ## Why is this bad?

    The steps read and write the whole tensor several times, and autograd keeps most of what they give.
    `F.layer_norm` and `F.rms_norm` (since torch 2.4) keep the input and two numbers a row at most.

    ## Example

    ```python
    variance = x.pow(2).mean(-1, keepdim=True)
    x = x * torch.rsqrt(variance + self.eps)
    ```

    ## Use instead

    ```python
    x = F.rms_norm(x, x.shape[-1:], eps=self.eps)
    ```

    ## Fix safety

    Unsafe: the formulas are equal, but the functions sum in another order. The fix is offered where nothing
    else reads the steps and they have no comments, where all are computed in one type, and `F.rms_norm` only
    if every release that may run the program has it. A weight and bias stay where they are; given to the
    function they cost nothing.

    ## References

    - [torch.nn.functional.layer_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html)
    - [torch.nn.functional.rms_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html)
    - [PyTorch performance tuning guide: fuse operations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if isinstance(node, cst.BinaryOperation):
        if not isinstance(node.operator, (cst.Multiply, cst.Divide)):
            return
    else:
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if not isinstance(name, cst.Name) or name.value not in ("mul", "multiply", "div", "divide"):
            return
    found = normalization(module, node)
    if found is None or with_fused_kernel(module, node) or "onnx" in module.tree.lowered:
        return
    title, function = ("layer norm", "layer_norm") if found.centred else ("RMS norm", "rms_norm")
    if not found.centred and not module.target.admits("2.4"):
        return
    if known_to_author(module, node, function) or ReleaseChecks.of(module).over(node):
        return
    if not as_made(module, found):
        return
    yield Finding(
        node,
        f"{title} is written out, and each step passes over the whole tensor; `F.{function}` is one function",
        fix=_fix(module, node, found, function),
        remedy=f"Call `{function}` in the place of these steps",
    )


def _fix(module: Module, node: cst.BaseExpression, found: Normalization, function: str) -> Fix | None:
    if found.cast or (not found.centred and not module.target.at_least("2.4")):
        return None
    x, eps = argument(module, found.x), argument(module, found.eps)
    spelling = spell(module, f"torch.nn.functional.{function}", node)
    if spelling is None or not operations_of(module).at_hand(found.x) or not one_line(x + eps):
        return None
    if not all(same_later(module, read, node, found.statements) for read in (found.x, found.eps)):
        return None
    for statement in found.statements:
        simple = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
        if not simple or module.tree.contains(statement, node) or loses_comment(module, statement):
            return None
    return unsafe(
        module,
        f"Use `{spelling.text}`",
        replace(module, node, f"{spelling.text}({x}, {x}.shape[-{found.dimensions}:], eps={eps})"),
        spelling.edits,
        *(remove_statement(module, statement) for statement in found.statements),
    )
