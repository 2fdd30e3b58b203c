"""TL107: worker processes of a loader are to put tensors on the accelerator."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module

from .workercode import (
    ITEM_METHODS,
    STARTED_AFRESH,
    holds_accelerator,
    reaches_accelerator,
    starts_afresh,
    worker_code,
)


@rule(
    "TL107",
    "device-tensor-in-dataset",
    severity=ERROR,
    fix="none",
    measured=False,
    on=(cst.Call, cst.Subscript),
    mentions=("Dataset|DataLoader", "cuda|xpu|npu|hpu|ccelerator"),
    remedy="Keep the tensor on the CPU here, and move the batch in the loop over the loader",
)
def device_tensor_in_dataset(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds tensors that are created on an accelerator or moved to one in `__getitem__` or `__iter__` of a
    dataset, in a collate function, or in functions called from there, if a loader in the file runs them in
    worker processes or pins its batches. It also finds items that are taken there from a tensor that the
    dataset keeps on an accelerator. If the file has no loader for such a dataset, the finding is a warning.
    The default of a command-line option for the device counts as well.

    ## Why is this bad?

    On Linux, workers are forked, and a process forked after CUDA was initialized cannot use CUDA: "Cannot
    re-initialize CUDA in forked subprocess". With `pin_memory=True` the loader raises even without workers,
    since only CPU tensors can be pinned. Even where it works, samples are copied one at a time, and the
    training process waits for each copy.

    ## Example

    ```python
    class Images(Dataset):
        def __getitem__(self, index):
            return self.images[index].to("cuda")


    loader = DataLoader(Images(), batch_size=64, num_workers=4)
    ```

    ## Use instead

    ```python
    class Images(Dataset):
        def __getitem__(self, index):
            return self.images[index]


    for images in DataLoader(Images(), batch_size=64, num_workers=4, pin_memory=True):
        images = images.to("cuda", non_blocking=True)
    ```

    ## Fix safety

    There is no fix: the batches have to be moved where they are used, which may be in another file.

    ## References

    - [Multiprocessing best practices: CUDA in multiprocessing](https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing)
    - [torch.utils.data: single- and multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
    """
    if isinstance(node, cst.Subscript):
        around = module.function(node) if isinstance(node.value, cst.Attribute) else None
        named = isinstance(around, cst.FunctionDef) and around.name.value in ITEM_METHODS
        if not named or not holds_accelerator(module, node.value):
            return
    elif module.function(node) is None or not reaches_accelerator(module, node):
        return
    use = worker_code(module, node)
    if use is None or is_test(module) or any(map(module.tree.mentions, STARTED_AFRESH)):
        return
    if "get_worker_info" in module.source(use.function) or starts_afresh(module):
        return
    loader = use.forked(module)
    if loader is not None:
        message = "this runs in forked `DataLoader` workers, which cannot use CUDA"
        if Loaders.of(module).workers(loader) == 0:
            message = "`DataLoader` cannot pin tensors that are already on the device"
        remedy = None
        if isinstance(node, cst.Subscript):
            kept = module.source(node.value)
            remedy = f"Keep `{kept}` on the CPU, and move the batch in the loop over the loader"
        yield Finding(node, message, related=((loader, "the loader"),), remedy=remedy)
    elif not use.loaders and isinstance(node, cst.Call):
        yield Finding(
            node,
            "forked `DataLoader` workers cannot run this, because they cannot use CUDA",
            severity=WARNING,
        )
