"""TL402: attention computed step by step where one kernel does it all."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .attention import PRODUCTS, as_one_call, attention, has_fused_form
from .extent import biased_by_queries, is_small


@rule(
    "TL402",
    "hand-written-attention",
    severity=WARNING,
    fix="unsafe",
    on=(cst.BinaryOperation, cst.Call),
    named={cst.Call: PRODUCTS},
    mentions=("oftmax", "@|matmul|bmm|einsum"),
    remedy="Replace these operations with `scaled_dot_product_attention`",
)
def hand_written_attention(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds attention written as separate operations: scores of queries and keys, a softmax over the keys, and a
    product with the values, with any scale, mask, cast, reshape and dropout in between, written with `@`,
    `matmul`, `bmm` or `einsum`. The rule ignores weights that are returned, stored or otherwise used, and
    classes that also have a fused version.

    ## Why is this bad?

    Each operation writes the full matrix of scores to memory and reads it back, and autograd saves several
    copies of it: memory grows with the square of the sequence length. `scaled_dot_product_attention` (since
    torch 2.0) has kernels that never store this matrix.

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

    The fix is only offered where every argument maps exactly, and only if every release that may run the
    program has the function (2.0, or 2.1 where `scale` is needed). It is unsafe: the kernels sum in a
    different order and draw dropout from a different random stream, some have no second derivative, and a row
    in which the mask hides every key may not give `nan` as softmax does. A mask that is provably causal, a
    triangle of ones or of minus infinity that starts at the first query and key, becomes `is_causal=True`,
    which enables faster kernels. A mask filled with a large finite number has no exact equivalent.

    The fused call does not run the layers for softmax and dropout, and returns no weights. Hooks on those
    layers, which other files may register to plot or modify attention maps, are no longer called, and a
    subclass in another file that replaces those layers has no effect. If the file itself registers hooks,
    there is no fix.

    ## References

    - [torch.nn.functional.scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        return
    # What has a fused form as well, as most models do, is told by its words.
    if not module.target.admits("2.0") or has_fused_form(module, node):
        return
    found = attention(module, node)
    if found is None:
        return
    slight = "the score matrix is small" if is_small(module, found) else None
    if biased_by_queries(module, found):
        slight = "a bias is as large as the scores"
    if module.target.promises_below("2.0"):
        # They would have to be given up.
        slight = "releases without the function are supported"
    yield Finding(
        node,
        "hand-written attention stores the full score matrix in memory; use `scaled_dot_product_attention`",
        fix=as_one_call(module, found),
        slight=slight,
        related=((found.scores.node, "the attention scores"), (found.softmax.node, "the attention weights")),
    )
