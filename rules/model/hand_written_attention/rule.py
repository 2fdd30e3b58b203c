"""TL402: attention computed step by step where one kernel does it all."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .attention import as_one_call, attention, has_fused_form, spelt_steps

_PRODUCTS = ("matmul", "bmm", "einsum", "mm")


@rule(
    "TL402",
    "hand-written-attention",
    severity=WARNING,
    fix="unsafe",
    on=(cst.BinaryOperation, cst.Call),
    mentions=("oftmax", "@|matmul|bmm|einsum"),
    remedy="Call `scaled_dot_product_attention` in the place of these steps",
)
def hand_written_attention(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds attention that is written out: scores of queries and keys, softmax over the keys, and a product with
    the values, with whatever scale, mask, cast, reshape and dropout between them, in the spellings `@`,
    `matmul`, `bmm` and `einsum`. Weights that are returned, kept or looked at are left alone, and so is a
    class that has a fused form beside the written one.

    ## Why is this bad?

    Each step writes the whole matrix of scores to memory and reads it back, and autograd keeps several of
    them: memory grows with the square of the length. `scaled_dot_product_attention` (since torch 2.0) has
    kernels that never store it.

    ## Example

    ```python
    scores = q @ k.transpose(-2, -1) * self.scale
    weights = self.dropout(scores.softmax(dim=-1))
    x = weights @ v
    ```

    ## Use instead

    ```python
    x = F.scaled_dot_product_attention(
        q, k, v, dropout_p=self.dropout.p if self.dropout.training else 0.0, scale=self.scale
    )
    ```

    ## Fix safety

    The fix is offered only where every argument maps exactly, and only if every release that may run the
    program has the function (2.0; 2.1 where `scale` is needed). It is unsafe: the kernels sum in another
    order and draw dropout from another stream, they have no second derivative, and a row in which the mask
    hides every key need not give `nan` as softmax does. A mask that is provably the causal one, a triangle of
    ones or of minus infinities from the first query and key on, becomes `is_causal=True`, for which there are
    faster kernels. A mask that is filled in with a large finite number has no exact counterpart.

    The one call does not run the layers for softmax and dropout, and no weights are left: hooks on those
    layers, which other files may register to show attention maps or to change them, are not called any more,
    and a subclass of another file that puts other layers in their place has no effect. Where the file itself
    hooks into layers, no fix is offered.

    ## References

    - [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if isinstance(node, cst.BinaryOperation):
        if not isinstance(node.operator, cst.MatrixMultiply):
            return
    else:
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if not isinstance(name, cst.Name) or not name.value.endswith(_PRODUCTS):
            return
    if not module.target.admits("2.0"):
        return
    found = attention(module, node)
    if found is None or has_fused_form(module, node):
        return
    steps = ", ".join(dict.fromkeys(spelt_steps(found)))
    yield Finding(
        node,
        f"attention is written out, and each step ({steps}) stores the whole matrix of scores; "
        "`scaled_dot_product_attention` is one kernel",
        fix=as_one_call(module, found),
        related=((found.scores.node, "the scores"), (found.softmax.node, "the weights")),
    )
