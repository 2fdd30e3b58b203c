"""TL405: layer norm and RMS norm computed step by step that torch has as one function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import remove_statement, replace, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.constancy import same_later, unwritten
from torchlint.semantics.formulas import Normalization, argument, as_assigned, normalization
from torchlint.semantics.module import Module
from torchlint.semantics.operations import operations_of
from torchlint.semantics.releasechecks import ReleaseChecks

from .fallbacks import known_to_author, with_fused_kernel
from .formulas import loses_comment, one_line


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
    dimensions, written as separate operations in any of the usual ways. The rule ignores other dimensions,
    sample variances (`unbiased`), an `eps` outside the root, means or variances that other code reads,
    classes whose decorator selects another kernel, functions that call the torch function in another branch,
    and files that deal with ONNX export, which needs the separate operations.

    ## Why is this bad?

    The operations read and write the whole tensor several times, and autograd saves most of the intermediate
    results. `F.layer_norm` and `F.rms_norm` (since torch 2.4) save only the input and at most two numbers per
    row.

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

    Unsafe: the formulas are equivalent, but the functions sum in a different order. The fix is only offered
    where nothing else reads the intermediate results, where the operations have no comments and share one
    dtype, and, for `F.rms_norm`, if every release that may run the program has it. Weight and bias stay where
    they are. Passing them to the function would also fuse them.

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
    if found is None or with_fused_kernel(module, node) or module.tree.mentions_in_any_case("onnx"):
        return
    title, function = ("layer norm", "layer_norm") if found.centred else ("RMS norm", "rms_norm")
    if not found.centred and not module.target.admits("2.4"):
        return
    if known_to_author(module, node, function) or ReleaseChecks.of(module).over(node):
        return
    # Each step has to be what was computed, and of what it was: asked last, for it takes the longest.
    if not all(unwritten(module, name) for name in found.names) or not as_assigned(module, found.names):
        return
    yield Finding(
        node,
        f"hand-written {title} reads and writes the whole tensor for every operation; use `F.{function}`",
        fix=_fix(module, node, found, function),
        remedy=f"Replace these operations with `{function}`",
        # They would have to be given up.
        slight="releases without the function are supported"
        if not found.centred and module.target.promises_below("2.4")
        else None,
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
    fused = f"{spelling.text}({x}, {x}.shape[-{found.dimensions}:], eps={eps})"
    factors = (fused if each is None else module.source(each) for each in found.factors)
    return unsafe(
        module,
        f"Use `{spelling.text}`",
        replace(module, node, " * ".join(factors)),
        spelling.edits,
        *(remove_statement(module, statement) for statement in found.statements),
        risk="results change in the last digits",
    )
