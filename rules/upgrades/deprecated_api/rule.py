"""TL902: what the releases of torch and its libraries that run the program warn of."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import safe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.upgrading import GIVEN_UP, only_names

from ..givenup import arguments_given_up, dropped_or_renamed, moved, said_of, slight
from ..uses import guarded, uses_of_given_up
from .reductions import legacy_reduction


@rule(
    "TL902",
    "deprecated-api",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=(cst.Attribute, cst.ImportFrom, cst.Call),
    named={cst.Attribute: GIVEN_UP},
    mentions=(
        "torch",
        (
            "cholesky|.qr|import qr|symeig|chain_matmul|matrix_rank|_solve|.solve|import solve|.lu|"
            "import lu|lstsq|.eig|import eig|.svd|import svd|rfft|ifft|.ger|import ger|.range|"
            "import range|init.uniform(|init.normal(|init.constant(|init.eye(|init.dirac(|init.sparse(|"
            "nn.init import|xavier_uniform(|xavier_normal(|kaiming_uniform(|kaiming_normal(|orthogonal(|"
            "clip_grad_norm|memory_cached|reset_max_memory|.upsample|upsample_|import upsample|"
            "Upsampling|NLLLoss2d|DataParallelCPU|functional_call|functorch|jit.script|jit.trace|"
            "jit.save|jit.load|jit.freeze|jit.optimize|torch.jit import|assert_allclose|weight_norm|"
            "sdp_kernel|tensor_type|impl_abstract|distributed.checkpoint|_deterministic|nvprof|"
            "EnforceUnique|verbose=|resample=|fillcolor=|range=|.Scale|import Scale|RandomSizedCrop|"
            "Kinetics400|get_image_size|audio_backend|apply_codec|quantization|size_average|reduce=|"
            "_multigpu|distributed.nn|_coalesced|elastic.metrics|broadcast_buffers|dynamic_dim|"
            "export_for_|_pt2e|XNNPACK|jit.quantized|jit import quantized|strict_fusion|"
            "script_if_tracing|pin_memory_device|with_modules|traceable|Container|spectral_norm|"
            "grad_variables|read_video|write_video|torchvision.io|read_image|read_file|write_file|_jpeg|"
            "_png|decode_|ImageReadMode|ops.misc|SqueezeExcitation|functional_tensor|sox_effects|.scale|"
            "import scale|reduce_op"
        ),
    ),
)
def deprecated_api(node: cst.Attribute | cst.ImportFrom | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds functions, classes and parameters of torch, torchvision and torchaudio that are deprecated in every
    release that the project supports, including `size_average` and `reduce` of losses. The releases are those
    that the project declares, or otherwise the installed ones; if neither is known, the rule reports nothing.
    Names in annotations and in `isinstance` are ignored. Names that only the documentation deprecates,
    without a warning, are reported as notes. Mixed precision, Dynamo and trainer arguments have separate
    rules.

    Code that is only reached behind a version check is ignored: either branch of a test of
    `torch.__version__` or `hasattr(torch, …)`, code after an early `return`, `try` blocks with their
    handlers, and functions used only in such places.

    ## Why is this bad?

    Deprecated functions print warnings, and a later release may remove them: `torch.qr` and `torch.cholesky`
    warned for years before torch 2.14 removed them.

    ## Example

    ```python
    from torch.nn.init import xavier_uniform

    xavier_uniform(layer.weight)
    q, r = torch.qr(a, some=False)
    product = torch.chain_matmul(a, b, torch.ger(u, v))
    ```

    ## Use instead

    ```python
    from torch.nn.init import xavier_uniform_

    xavier_uniform_(layer.weight)
    q, r = torch.linalg.qr(a, mode="complete")
    product = torch.linalg.multi_dot([a, b, torch.outer(u, v)])
    ```

    ## Fix safety

    Safe: the fix is offered if the replacement behaves the same with the arguments of this call. Removing
    `verbose=True` is unsafe if a supported release still prints, and so are `nn.Upsample` and
    `nn.NLLLoss` in place of the classes for two dimensions: a printed model shows the class. Imported
    names are renamed together with the import and all other uses; a new import is added only if
    necessary. There is no fix if a name is exported in `__all__`, if another file uses it by way of this
    one, if arguments are hidden in `*args` or `**kwargs`, if a supported release lacks the replacement,
    or if the results differ, as for `torch.svd`.

    ## References

    - [torch.linalg](https://docs.pytorch.org/docs/stable/linalg.html)
    - [Migrating from functorch to torch.func](https://docs.pytorch.org/docs/stable/func.migrating.html)
    - [TorchScript is deprecated](https://docs.pytorch.org/docs/stable/jit.html)
    - [TorchFix](https://github.com/pytorch-labs/torchfix)
    """
    if isinstance(node, cst.Call):
        yield from _reduced(module, node)
        for given in arguments_given_up(module, node):
            target = module.target_of(given.row.package)
            if given.row.is_deprecated(target) and not given.row.is_removed(target):
                if not guarded(module, node, given.row):
                    yield Finding(
                        given.node,
                        said_of(module, given.row),
                        fix=dropped_or_renamed(module, node, given),
                        remedy=given.row.remedy,
                        slight=slight(module, node, given.row),
                    )
        return
    for use, row in uses_of_given_up(module, node):
        target = module.target_of(row.package)
        if row.private or not row.is_deprecated(target) or row.is_removed(target):
            continue
        if isinstance(use, cst.ImportAlias) or only_names(module, use) or guarded(module, use, row):
            continue
        yield Finding(
            use,
            said_of(module, row),
            fix=moved(module, use, row),
            severity=NOTE if row.quiet else None,
            remedy=row.remedy,
            slight=slight(module, use, row),
        )


def _reduced(module: Module, call: cst.Call) -> Iterator[Finding]:
    """Yield what losses took before `reduction`, of which every release warns."""
    for legacy in legacy_reduction(module, call):
        assert legacy.arg.keyword is not None
        name, wanted = legacy.arg.keyword.value, legacy.reduction
        new = f'`reduction="{wanted}"`' if wanted is not None else "`reduction`"
        fix = safe(module, f"Use {new}", legacy.edits) if legacy.edits is not None else None
        yield Finding(legacy.arg, f"`{name}` is deprecated; use {new}", fix=fix, remedy=f"Use {new} only")
