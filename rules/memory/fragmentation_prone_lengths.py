"""TL604: batches of varying length can fragment device memory."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.identifiers import identifiers, named, speaks_of
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.loaders import ROUNDING_OPTIONS, Loaders, pads_to_longest
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name


@rule(
    "TL604",
    "fragmentation-prone-lengths",
    severity=NOTE,
    fix="none",
    on=cst.Call,
    mentions=("torch", "collate_fn", "DataLoader"),
    opt_in=True,
    remedy="Set `PYTORCH_CUDA_ALLOC_CONF` to `expandable_segments:True`, or pad to a few fixed lengths",
    lasting=True,
)
def fragmentation_prone_lengths(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loaders that feed an accelerator and whose collate function pads each batch to its longest item.
    The rule ignores programs that sort by length, pad to a fixed length or to multiples, or use expandable
    segments.

    ## Why is this bad?

    Allocation sizes then change from step to step. Cached blocks from earlier steps are too small for a
    longer batch, or are split for a shorter one. Reserved memory grows beyond what is in use, and an
    allocation can fail although enough memory is free in total.

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

    before the first use of CUDA. Alternatively, use fewer distinct lengths: pad to multiples of 64, for
    example, or group items of similar length into buckets. Running the longest batch first reserves enough
    memory for all others.

    ## Fix safety

    There is no fix: which sequence lengths the model should see is a decision for the author.

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
        "padding each batch to its longest item varies allocation sizes and can fragment device memory",
        related=((padded, "padded here"),),
    )


def spares_fragments(module: Module) -> bool:
    """Return whether the file sorts by length, pads to few lengths,
    or configures the allocator for such batches.
    """
    if module.tree.mentions("expandable_segments") or not ROUNDING_OPTIONS.isdisjoint(identifiers(module)):
        return True
    if speaks_of(module, Role.LENGTH_GROUPING, Role.EMPTYING):
        return True
    return any(_sorts_by_length(module, call) for call in module.tree.nodes(cst.Call))


def _sorts_by_length(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``sorted(texts, key=len)``, ``items.sort(key=lambda item: len(item["ids"]))``."""
    if last_name(call.func) not in ("sort", "sorted", "argsort"):
        return False
    return any(has(name, Role.LENGTH) for arg in call.args for name in named(module, arg.value))
