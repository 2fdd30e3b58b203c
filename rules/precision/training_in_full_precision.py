"""TL501: a program trains in float32 all through, where tensor cores would do most of the work."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.program import Precision, Program

from .tensorcores import profits_from_tensor_cores


@rule(
    "TL501",
    "training-in-full-precision",
    severity=NOTE,
    fix="none",
    on=cst.Module,
    mentions=("torch", "backward"),
    advice=True,
    lasting=True,
)
def training_in_full_precision(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that train a model on an accelerator entirely in float32: no autocast, no model in bfloat16
    or float16, no option for it, no TF32. There is one finding per program, at its training loop.

    The rule ignores files that only define models or functions for other files, programs where a framework
    selects the precision (Lightning, Accelerate, Trainer, DeepSpeed, fastai …), tiny networks, graph
    networks, reinforcement learning agents that wait for their environment, and code that depends on full
    precision: double precision, complex numbers, linear algebra, second derivatives.

    ## Why is this bad?

    Tensor cores multiply bfloat16 or float16 matrices many times faster than float32 ones. Activations of
    half the size take half the memory, and half the time to read and write. Under autocast the weights stay
    in float32, and so do the operations that need the precision.

    ## Example

    ```python
    for images, labels in loader:
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    for images, labels in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    ```

    On devices without bfloat16 (before Ampere), use `torch.float16` with a `torch.amp.GradScaler`, which
    keeps small gradients from underflowing.

    ## Fix safety

    There is no fix: the results change, and the author has to verify that the model still trains well.

    ## References

    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Transformers, efficient training on a single GPU: mixed precision](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    program = Program.of(module)
    training = program.steps
    if training is None or program.precision is not Precision.SINGLE or not module.target.admits("1.6"):
        return
    if not profits_from_tensor_cores(module):
        return
    # Where nothing is known of the releases, older ones than that are not worth the longer advice.
    unknown = module.target.lower is None and module.target.admits("1.10")
    if unknown or module.target.at_least("1.10"):
        how = 'run the model and the loss under `torch.autocast("cuda", dtype=torch.bfloat16)`'
    else:
        how = "run the model and the loss under `torch.cuda.amp.autocast()`, with a `GradScaler` for the loss"
    yield Finding(
        _head(training.loop),
        "training entirely in float32 leaves half-precision tensor cores unused; use autocast",
        remedy=f"R{how[1:]}",
    )


def _head(loop: cst.For | cst.While | cst.FunctionDef) -> cst.BaseExpression:
    """Return what stands in the first line of a loop, or of a function that an engine calls."""
    match loop:
        case cst.For():
            return loop.iter
        case cst.While():
            return loop.test
        case _:
            return loop.name
