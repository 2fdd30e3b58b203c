"""TL604: batches of ever new lengths leave holes in the memory of the device."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.padding import pads_to_longest, spares_fragments


@rule(
    "TL604",
    "fragmentation-prone-lengths",
    severity=NOTE,
    fix="none",
    on=cst.Call,
    mentions=("torch", "collate_fn", "DataLoader"),
    opt_in=True,
    remedy="Set `PYTORCH_CUDA_ALLOC_CONF` to `expandable_segments:True`, or pad to few lengths",
    lasting=True,
)
def fragmentation_prone_lengths(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a loader that feeds an accelerator and whose collate function pads each batch to the longest of its
    own items. Programs that sort by length, pad to one length or to multiples, or that ask for expandable
    segments are left alone.

    ## Why is this bad?

    Each step then asks the allocator for tensors of other sizes. Blocks that an earlier step has left in the
    cache are too small for a longer batch or are split for a shorter one, so that more and more memory is
    reserved than used, until an allocation fails though enough is free in pieces.

    ## Example

    ```python
    def collate(batch):
        return pad_sequence(batch, batch_first=True)


    loader = DataLoader(texts, batch_size=32, collate_fn=collate)
    ```

    ## Use instead

    ```python
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    ```

    before the first use of CUDA, or batches of few lengths: padded to multiples of 64, say, or drawn from
    buckets of similar length. A first step with the longest batch reserves what all others need.

    ## Fix safety

    There is no fix: which lengths a model should see is for the author to say.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics: environment variables of the allocator](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-envvars)
    """
    if is_test(module) or not Loaders.of(module).makes_loader(call) or spares_fragments(module):
        return
    collate = module.argument(call, "collate_fn").node
    drawn = module.argument(call, "batch_sampler")
    if collate is None or not drawn.absent or not Loaders.of(module).feeds_accelerator(call):
        return
    padded = pads_to_longest(module, collate)
    if padded is None:
        return
    yield Finding(
        call,
        "each batch is padded to its own longest item, so that every step asks for memory of other sizes",
        related=((padded, "padded here"),),
    )
