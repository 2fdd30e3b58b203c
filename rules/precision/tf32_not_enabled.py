"""TL502: float32 products run without the tensor cores, since nothing lets them use TF32."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import insert_after_imports, replace, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.program import Precision, Program
from torchlint.semantics.releasechecks import ReleaseChecks

from .backendflags import CUDNN_TF32, MATMUL_TF32, BackendFlags, Write
from .tensorcores import multiplies_matrices, profits_from_tensor_cores


@rule(
    "TL502",
    "tf32-not-enabled",
    severity=NOTE,
    fix="unsafe",
    on=cst.Module,
    mentions=("torch", "backward|allow_tf32"),
    advice=True,
    lasting=True,
)
def tf32_not_enabled(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that train a model in float32 on an accelerator and never set whether matrix products may
    use TF32, with `torch.set_float32_matmul_precision`, `allow_tf32` or `fp32_precision`. There is one
    finding per program, at its import of torch. If every release that may run the file is 2.9 or newer,
    assignments to `allow_tf32`, which is deprecated since 2.9, get a note as well.

    The rule ignores what TL501 ignores, apart from TF32: other precisions, frameworks, tiny networks, graph
    networks, reinforcement learning agents, code that depends on full precision. It also ignores purely
    convolutional networks, because cuDNN may use TF32 by default, and releases before 1.12, in which TF32 was
    on.

    ## Why is this bad?

    Since torch 1.12, float32 matrix products do not use tensor cores by default. With TF32 they do, on Ampere
    and later GPUs: inputs are rounded to a mantissa of ten bits, and sums stay in float32. Most networks
    train equally well.

    ## Example

    ```python
    import torch

    model = Transformer().cuda()
    ```

    ## Use instead

    ```python
    import torch

    torch.set_float32_matmul_precision("high")

    model = Transformer().cuda()
    ```

    ## Fix safety

    Unsafe: results change in the last digits. The line is added after the imports. Where a release before
    1.12 may run the file, which lacks the function, the fix sets `torch.backends.cuda.matmul.allow_tf32`. A
    deprecated flag for matrix products is replaced with the function, which is not deprecated. There is no
    fix for the flag of cuDNN. Change all places of a program at once: torch refuses to report the state of
    TF32 if both interfaces have set it to different values.

    ## References

    - [torch.set_float32_matmul_precision](https://docs.pytorch.org/docs/2.15/generated/torch.set_float32_matmul_precision.html)
    - [TensorFloat-32 on Ampere and later devices](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
    - [The switches are deprecated](https://github.com/pytorch/pytorch/pull/158209)
    - [Transformers, efficient training on a single GPU: TF32](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if module.target.at_least("2.9"):
        for write in BackendFlags.of(module).own_writes:
            if write.switch not in (MATMUL_TF32, CUDNN_TF32) or write.value is None:
                continue
            if not ReleaseChecks.of(module).over(write.node):
                yield _deprecated(module, write)
    program = Program.of(module)
    if program.torch_import is None or not module.target.admits("1.12"):
        return
    if program.training is None or program.precision is not Precision.SINGLE:
        return
    if not profits_from_tensor_cores(module) or not multiplies_matrices(module):
        return
    if module.target.at_least("1.12"):
        name, form = "torch.set_float32_matmul_precision", '{}("high")'
        advice = f"call `{form.format(name)}`"
    else:
        name, form = MATMUL_TF32, "{} = True"
        advice = f"set `{form.format(name)}`"
    edits = insert_after_imports(module, f"\n{form}", name)
    yield Finding(
        program.torch_import,
        f"float32 matrix products do not use tensor cores; {advice}",
        fix=unsafe(module, f"Allow TF32 with `{form.format(name)}`", edits, risk=_ROUNDED),
        remedy=f"{advice[0].upper()}{advice[1:]} before training starts",
        related=((program.training.backward, "the model is trained here"),),
    )


def _deprecated(module: Module, write: Write) -> Finding:
    """Return the note on a spelling of the switch that a later one replaces, which makes nothing faster."""
    if write.switch == CUDNN_TF32:
        instead = 'torch.backends.cudnn.conv.fp32_precision = "tf32"'
        code = _given(instead, write)
        return Finding(
            write.node,
            f"`allow_tf32` is deprecated since torch 2.9; set `{code}`",
            remedy=f"Set `{code}` instead",
            slight="this spelling makes nothing slower",
        )
    instead = _given('torch.set_float32_matmul_precision("high")', write)
    fix = None
    spelling = spell(module, "torch.set_float32_matmul_precision", write.node)
    assign = write.node
    single = isinstance(assign, cst.Assign) and len(assign.targets) == 1 and assign.value is write.given
    if spelling is not None and single:
        call = instead.replace("torch.set_float32_matmul_precision", spelling.text)
        edits = replace(module, write.node, call)
        fix = unsafe(module, f"Replace with `{call}`", edits, spelling.edits, risk=_BOTH)
    return Finding(
        write.node,
        f"`allow_tf32` is deprecated since torch 2.9; call `{instead}`",
        fix=fix,
        remedy=f"Call `{instead}` instead",
        slight="this spelling makes nothing slower",
    )


def _given(code: str, write: Write) -> str:
    """Return the code for a switch that is turned on, or the one for a switch that is turned off."""
    return code.replace("high", "highest").replace("tf32", "ieee") if write.value is False else code


_ROUNDED = "matrix products have 10 bits of mantissa instead of 23, so that results change"
_BOTH = "torch refuses to report the state of TF32 if another place sets the old flag"
