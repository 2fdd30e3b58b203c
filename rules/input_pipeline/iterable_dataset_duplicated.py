"""TL106: every worker process yields the whole iterable dataset."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module

from .datasets import Datasets


@rule(
    "TL106",
    "iterable-dataset-duplicated",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("DataLoader", "IterableDataset"),
    remedy="Use `get_worker_info()` in `__iter__` to yield every `num_workers`-th item, starting at `id`",
)
def iterable_dataset_duplicated(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds an `IterableDataset` in this file whose `__iter__` does not call `get_worker_info()`, passed to a
    `DataLoader` with workers.

    ## Why is this bad?

    Each worker process iterates over its own copy of the dataset. Unless `__iter__` splits the data between
    them, every worker yields all of it: with four workers an epoch contains each sample four times, metrics
    count each sample four times, and no error is raised.

    ## Example

    ```python
    class Lines(IterableDataset):
        def __iter__(self):
            with open(self.path) as lines:
                yield from lines


    loader = DataLoader(Lines("train.txt"), num_workers=4)
    ```

    ## Use instead

    ```python
    class Lines(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            with open(self.path) as lines:
                yield from itertools.islice(lines, first, None, step)
    ```

    ## Fix safety

    There is no fix: how to split the data is a decision for the author.

    ## References

    - [torch.utils.data: iterable-style datasets with several workers](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset)
    """
    loaders = Loaders.of(module)
    if not loaders.makes_loader(call) or not loaders.workers(call):
        return
    if not module.argument(call, "worker_init_fn").absent:
        return
    dataset = loaders.dataset(call)
    definition = module.value(dataset).definition if dataset is not None else None
    method = Datasets.of(module).unsharded(definition) if isinstance(definition, cst.ClassDef) else None
    if method is not None:
        yield Finding(
            call,
            "every worker yields the whole dataset: `__iter__` does not use `get_worker_info()`",
            related=((method.name, "yields the same items in every worker"),),
        )
