"""TL415: sizes that tensor cores cannot tile."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .widths import What, off_grid


@rule(
    "TL415",
    "misaligned-dimension",
    severity=NOTE,
    fix="none",
    on=cst.Module,
    mentions=("torch", "Linear(|Embedding|Conv|DataLoader("),
    advice=True,
    lasting=True,
)
def misaligned_dimension(file: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds sizes of 64 and more that are not multiples of 8, where they are the width between two layers
    (`Linear`, convolutions, `Embedding`) or the batch size of a `DataLoader`. For vocabularies of at least
    1024 tokens that an output layer scores, it is a warning. The rule ignores sizes that the data determines
    (the input features of the first layer, the classes of the last), and files that load pretrained weights,
    whose sizes are fixed.

    ## Why is this bad?

    Tensor cores multiply tiles. If a dimension is not a multiple of 8 (in half precision), the library
    chooses other kernels, which load the operands element by element instead of in aligned blocks. The
    product with the vocabulary is often the largest of a language model.

    ## Example

    ```python
    self.embedding = nn.Embedding(50257, 768)
    self.lm_head = nn.Linear(768, 50257, bias=False)
    ```

    ## Use instead

    ```python
    self.embedding = nn.Embedding(50264, 768)  # 50257 tokens, padded to a multiple of 8
    self.lm_head = nn.Linear(768, 50264, bias=False)
    ```

    ## Fix safety

    There is no fix: a model with different sizes is a different model, and code that reads its scores has to
    know which of them are padding.

    ## References

    - [NVIDIA: matrix multiplication background](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    for one in off_grid(module):
        remedy = f"Change it to `{one.padded}`, here and in the adjacent layers of that size"
        if one.what is What.VOCABULARY:
            tiled = f", or to `{one.tiled}`, a multiple of 64" if one.tiled != one.padded else ""
            remedy = f"Pad it to `{one.padded}`{tiled}, in every layer of that size"
            message = (
                f"a vocabulary of {one.size} is not a multiple of 8, which fast tensor core kernels need; "
                f"pad it to {one.padded}"
            )
        elif one.what is What.BATCH:
            remedy = f"Change it to `{one.size - one.size % 8}` or `{one.padded}`"
            message = (
                f"a batch size of {one.size} is not a multiple of 8, which fast tensor core kernels need; "
                f"use {one.size - one.size % 8} or {one.padded}"
            )
        else:
            message = (
                f"a width of {one.size} {one.what.value} is not a multiple of 8, which fast tensor core "
                f"kernels need; use {one.padded}"
            )
        related = () if module.tree.contains(one.call, one.number) else ((one.call, "used here"),)
        yield Finding(one.number, message, severity=_SEVERITY.get(one.what), related=related, remedy=remedy)


_SEVERITY = {What.VOCABULARY: WARNING}
