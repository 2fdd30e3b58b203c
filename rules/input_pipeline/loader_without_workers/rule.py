"""TL101: a loader that loads batches in the training process."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import configure, set_argument, spelt, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.configured import Configured, configured
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.values import MISSING

from ..items import Items, made_like
from ..workercounts import left_to_default
from .workers import Workers


@rule(
    "TL101",
    "loader-without-workers",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("DataLoader|TrainingArguments|from trl|import trl",),
    configured=True,
    lasting=True,
)
def loader_without_workers(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a `DataLoader`, or `TrainingArguments` of Transformers, without worker processes whose batches are
    moved to an accelerator. The number of workers may also come from a configuration file that the program
    reads; the finding is reported there.

    The default of a command-line option counts as well. The rule ignores data that is already in memory,
    loaders in debug runs, functions that are given a number of workers and pass on zero, and datasets that
    workers would duplicate or that return tensors on the accelerator. Findings are of low impact for texts
    that are tokenized, beforehand or one by one, which is quick.

    ## Why is this bad?

    With `num_workers=0`, the default, data is read, decoded, augmented and collated in the training process
    between two steps, while the accelerator is idle. Worker processes prepare the next batches during the
    computation. Start with about four workers per accelerator, and add more as long as throughput improves.

    ## Example

    ```python
    loader = DataLoader(ImageFolder(root), batch_size=64, shuffle=True)
    ```

    ## Use instead

    ```python
    loader = DataLoader(ImageFolder(root), batch_size=64, shuffle=True, num_workers=4)
    ```

    ## Fix safety

    Unsafe: random augmentations draw their numbers in the workers, and where processes are spawned (macOS,
    Windows, and Linux since Python 3.14) the dataset must be importable and picklable. There is no fix where
    the file shows that it is not: a script without `if __name__ == "__main__"`, or a lambda, local function
    or local class used as dataset, transform or collate function. The `workers` setting controls the number
    of workers in the fix.

    ## References

    - [PyTorch performance tuning guide: enable asynchronous data loading and augmentation](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Transformers, efficient training on a single GPU: data preloading](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    - [Data loading and platform-specific behaviors](https://docs.pytorch.org/docs/stable/data.html#platform-specific-behaviors)
    """
    loaders = Loaders.of(module)
    workers = module.settings.workers
    if loaders.is_trainer_arguments(call):
        if isinstance(module.tree.parent(call), cst.Expr):
            return  # No trainer gets them: making them sets the devices up.
        argument = "dataloader_num_workers"
        setting = _setting(module, call, argument)
        if not (setting or Workers.of(module).trainer_works_alone(call)) or Workers.of(module).trains_on_host(
            call
        ):
            return
        message = "the trainer loads batches in its own process"
    elif loaders.makes_loader(call):
        argument = "num_workers"
        setting = _setting(module, call, argument)
        if not (setting or _works_alone(module, call)) or not loaders.feeds_accelerator(call):
            return
        if Items.of(module).idle_workers(call) or Workers.of(module).declines_workers(call):
            return
        message = "`DataLoader` loads batches in the training process"
    else:
        return
    if loaders.debugging(call):
        return
    like = made_like(module, call) if setting is None else None
    number = str(workers) if like is None else f"{like}.{argument}"
    code = f"{argument}={number}" if setting is None else spelt(setting, workers)
    kept = _kept_elsewhere(module, call, argument) if setting is None else ""
    yield Finding(
        call,
        f"{message}, stalling the device; try `{code}`",
        fix=None if kept else _fix(module, call, argument, number, setting),
        remedy=_remedy(module, call, code, kept),
        at=setting,
        slight=Items.of(module).slight(call),
    )


def _works_alone(module: Module, call: cst.Call) -> bool:
    """Return whether a loader has no workers, or none unless somebody asks for some."""
    if Loaders.of(module).workers(call) == 0:
        return True
    return left_to_default(module, module.argument(call, "num_workers").node)


def _setting(module: Module, call: cst.Call, argument: str) -> Configured | None:
    """Return where a configuration file says, or leaves it to the default, that there are no workers."""
    setting = configured(module, call, argument)
    return setting if setting is not None and setting.value in (0, MISSING) else None


def _kept_elsewhere(module: Module, call: cst.Call, argument: str) -> str:
    """Return the object or parameter that holds the number of workers, which the call only hands on;
    else empty.
    """
    node = module.argument(call, argument).node
    handed_on = isinstance(node, cst.Attribute) or (
        isinstance(node, cst.Name)
        and any(binding.kind is BindingKind.PARAMETER for binding in module.bindings(node))
    )
    return module.source(node) if node is not None and handed_on else ""


def _remedy(module: Module, call: cst.Call, code: str, kept: str) -> str:
    remedy = f"Set `{code}` where `{kept}` gets its value" if kept else f"Set `{code}`"
    if not Workers.of(module).spawnable(call):
        remedy += (
            '; where workers are spawned, also run the program under `if __name__ == "__main__":` '
            "and define the dataset and `collate_fn` at module level"
        )
    return remedy


def _fix(
    module: Module, call: cst.Call, argument: str, workers: str, setting: Configured | None
) -> Fix | None:
    if not Workers.of(module).spawnable(call):
        return None
    if setting is not None:
        return configure(setting, int(workers), risk=_RISK)
    told, edits = f"Set `{argument}={workers}`", set_argument(module, call, argument, workers)
    return unsafe(module, told, edits, risk=_RISK)


_RISK = "augmentations draw other random numbers, and spawned workers need a dataset that can be pickled"
