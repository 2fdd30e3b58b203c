"""TL415: sizes that tensor cores cannot tile."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .widths import What, off_grid


@rule(
    "TL415",
    "dimension-off-tensor-core-grid",
    severity=NOTE,
    fix="none",
    on=cst.Module,
    mentions=("torch", "Linear(|Embedding|Conv|DataLoader("),
)
def dimension_off_tensor_core_grid(file: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds numbers from 64 on that are no multiples of 8, where they are the width between two layers
    (`Linear`, convolutions, `Embedding`) or the size of the batches of a `DataLoader`. It warns of
    vocabularies from 1024 tokens on that a layer scores. What the data gives is left alone: the features that
    the first layer takes, the classes that the last one tells apart. So are files that load pretrained
    weights, whose sizes are given.

    ## Why is this bad?

    Tensor cores multiply tiles. A dimension that is no multiple of 8 (in half precision) makes the library
    choose other kernels, which load the operands element by element instead of in aligned blocks. The product
    with a vocabulary is often the largest of a language model.

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

    There is no fix: a model of another size is another model, and what reads its scores has to know which are
    padding.

    ## References

    - [NVIDIA: matrix multiplication background](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    for one in off_grid(module):
        remedy = f"Make it `{one.padded}`, here and in the layers next to it that are given the size"
        if one.what is What.VOCABULARY:
            tiled = f", or to `{one.tiled}`, a multiple of 64" if one.tiled != one.padded else ""
            remedy = f"Pad it to `{one.padded}`{tiled}, in every layer that is given the size"
            message = (
                f"a vocabulary of {one.size} tokens is no multiple of 8, which tensor cores work on; "
                f"pad it to {one.padded}"
            )
        elif one.what is What.BATCH:
            remedy = f"Make it `{one.size - one.size % 8}` or `{one.padded}`"
            message = (
                f"batches of {one.size} are no multiple of 8, which tensor cores work on; "
                f"make it {one.size - one.size % 8} or {one.padded}"
            )
        else:
            message = (
                f"{one.size} {one.what.value} are no multiple of 8, which tensor cores work on; "
                f"make it {one.padded}"
            )
        related = () if module.tree.contains(one.call, one.number) else ((one.call, "where it is used"),)
        yield Finding(one.number, message, severity=_SEVERITY.get(one.what), related=related, remedy=remedy)


_SEVERITY = {What.VOCABULARY: WARNING}
