"""TL501: a program trains in float32 all through, where tensor cores would do most of the work."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.program import Precision, Program


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

    Finds programs that train a model on an accelerator in float32 all through: no autocast, no model in
    bfloat16 or float16, no option for it, no TF32. One finding is made for a program, at its training loop.

    Silent for files that only define models or functions for others, where a framework chooses the precision
    (Lightning, Accelerate, Trainer, DeepSpeed, fastai …), for tiny networks, networks on graphs and agents
    that wait for their environment, and where the work needs its digits: double precision, complex numbers,
    linear algebra, derivatives of derivatives.

    ## Why is this bad?

    Tensor cores multiply matrices of bfloat16 or float16 at many times the rate of float32, and activations
    of half the size take half the memory, and half the time to read and write. Under autocast the weights
    stay in float32, and the operations that need the precision keep it.

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

    Devices without bfloat16 (before Ampere) take `torch.float16`, with a `torch.amp.GradScaler` that keeps
    small gradients from vanishing.

    ## Fix safety

    There is no fix: the results change, and whether the training bears it is for the author to find out.

    ## References

    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Transformers, efficient training on a single GPU: mixed precision](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    program = Program.of(module)
    training = program.steps
    if training is None or program.precision is not Precision.SINGLE:
        return
    if not program.profits_from_tensor_cores:
        return
    # Where nothing is known of the releases, older ones than that are not worth the longer advice.
    unknown = module.target.lower is None and module.target.admits("1.10")
    if unknown or module.target.at_least("1.10"):
        how = 'run the model and the loss under `torch.autocast("cuda", dtype=torch.bfloat16)`'
    else:
        how = "run the model and the loss under `torch.cuda.amp.autocast()`, and scale it with a `GradScaler`"
    yield Finding(
        _head(training.loop),
        f"the steps are trained in float32 all through; {how}",
        remedy=f"R{how[1:]}",
    )


def _head(loop: cst.For | cst.While | cst.FunctionDef) -> cst.BaseExpression:
    """What stands in the first line of a loop, or of a function that an engine calls."""
    match loop:
        case cst.For():
            return loop.iter
        case cst.While():
            return loop.test
        case _:
            return loop.name
