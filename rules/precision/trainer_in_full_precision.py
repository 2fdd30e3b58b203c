"""TL516: a trainer of Transformers that is left in full precision, or caches beside checkpointing."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import spelt
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.configured import configured
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .trainers import cache_beside_checkpointing, left_in_full_precision


@rule(
    "TL516",
    "trainer-in-full-precision",
    severity=NOTE,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("import:transformers", "TrainingArguments|use_cache"),
    configured=True,
    advice=True,
)
def trainer_in_full_precision(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `TrainingArguments` of Transformers for a training run that sets none of `bf16`, `fp16` and `tf32`,
    where nothing else in the file sets the precision: no model in a smaller dtype, no TF32, no DeepSpeed or
    Accelerate configuration. Arguments of a trainer that only evaluates are ignored. If the arguments come
    from a configuration file, the finding is there. The rule also finds `use_cache=True` for a model with
    gradient checkpointing.

    ## Why is this bad?

    By default the trainer computes in float32: matrix products do not use the fast tensor core kernels, and
    activations take twice the memory. The cache of keys and values is for generation. A model with gradient
    checkpointing cannot use it, and turns it off with a warning.

    ## Example

    ```python
    args = TrainingArguments("out", per_device_train_batch_size=16, learning_rate=2e-5)
    ```

    ## Use instead

    ```python
    args = TrainingArguments("out", per_device_train_batch_size=16, learning_rate=2e-5, bf16=True)
    ```

    On GPUs before Ampere, use `fp16=True`. `tf32=True` keeps float32 everywhere except in matrix products, on
    Ampere and newer GPUs.

    ## Fix safety

    There is no fix: the right precision depends on the GPU and on the model.

    ## References

    - [Transformers: mixed precision training](https://huggingface.co/docs/transformers/en/mixed_precision_training)
    - [Transformers: GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    - [Transformers: gradient checkpointing](https://huggingface.co/docs/transformers/en/grad_checkpointing)
    """
    if is_test(module):
        return
    if left_in_full_precision(module, call):
        setting = configured(module, call, "bf16")
        code = "bf16=True" if setting is None else spelt(setting, True)
        yield Finding(
            call.func,
            f"the trainer runs in float32: none of `bf16`, `fp16` and `tf32` is set; add `{code}`",
            remedy=f"Add `{code}`",
            at=setting,
        )
    cache = cache_beside_checkpointing(module, call)
    if cache is not None:
        yield Finding(
            cache,
            "a key-value cache does not work with gradient checkpointing; use `use_cache=False`",
            remedy="Use `use_cache=False`",
        )
