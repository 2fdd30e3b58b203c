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
    holds_accelerator,
    reaches_accelerator,
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
    remedy="Leave the tensor in host memory here, and move the batch in the loop over the loader",
)
def device_tensor_in_dataset(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds tensors that are made on an accelerator, or moved to one, in `__getitem__` or `__iter__` of a
    dataset, in a collate function, or in what these call, where a loader of the file runs them in worker
    processes or pins what they hand out; and items taken there out of a tensor that the dataset keeps on an
    accelerator. Where the file has no loader for a dataset that moves its items, it is a warning.

    ## Why is this bad?

    Workers are forked on Linux, and CUDA cannot be used in a process that was forked after CUDA was
    initialised: "Cannot re-initialize CUDA in forked subprocess". With `pin_memory=True` the loader raises
    without any worker, since only tensors in host memory can be pinned. Even where it works, samples are
    copied one at a time, and the training process waits for each.

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

    No fix: the batches have to be moved where they are used, which may be in another file.

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
    if use is None or is_test(module) or module.tree.mentions("spawn") or module.tree.mentions("forkserver"):
        return
    if "get_worker_info" in module.source(use.function):
        return
    loader = use.forked(module)
    if loader is not None:
        message = "this runs in the worker processes of a loader, which were forked and cannot use CUDA"
        if Loaders.of(module).workers(loader) == 0:
            message = "the loader pins what it is handed, which tensors of an accelerator cannot be"
        remedy = None
        if isinstance(node, cst.Subscript):
            kept = module.source(node.value)
            remedy = f"Keep `{kept}` in host memory, and move the batch in the loop over the loader"
        yield Finding(node, message, related=((loader, "the loader"),), remedy=remedy)
    elif not use.loaders and isinstance(node, cst.Call):
        yield Finding(
            node,
            "a loader with worker processes could not run this, since they are forked and cannot use CUDA",
            severity=WARNING,
        )
