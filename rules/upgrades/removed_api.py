"""TL901: what the releases of torch and its libraries that run the program no longer have."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.upgrading import GIVEN_UP

from .givenup import arguments_given_up, dropped_or_renamed, moved, said_of
from .uses import guarded, uses_of_given_up


@rule(
    "TL901",
    "removed-api",
    severity=ERROR,
    fix="safe",
    measured=False,
    on=(cst.Attribute, cst.ImportFrom, cst.Call),
    named={cst.Attribute: GIVEN_UP},
    mentions=(
        "torch",
        (
            "cholesky|.qr|import qr|symeig|matrix_rank|.solve|import solve|lstsq|.eig|import eig|rfft|"
            "ifft|_deterministic|_six|_accumulate|verbose=|resample=|fillcolor=|range=|.Scale|"
            "import Scale|RandomSizedCrop|functional_tensor|load_state_dict_from_url|model_urls|"
            "ConvBNReLU|Kinetics400|ToImageTensor|BoundingBox|datapoints|torchaudio|pipeline.sync|"
            "_multigpu|PairwiseParallel|_1d|reshard_|make_output_tensor|make_sharded_output|"
            "default_auto_wrap|ScheduleFlexible|dynamic_dim|constrain_as_|export_for_|_pt2e|_quantizer|"
            ".quantizer|Quantizer|BufferedShuffle|ExecutionGraph|cuda.profiler|profiler.init|"
            "MemPoolContext|nested_block_mask|align_tensors|.Assert|import Assert|autocast_mode|"
            "zero_gradients|traceable|optim.functional|read_video|write_video|segmentation.segmentation|"
            "ops.misc|SqueezeExcitation|ConvBNActivation|models.mobilenet|functional_pil|.scale|"
            "import scale|ToImagePIL|ConvertDtype|_image_tensor|_image_pil|bounding_box|convert_dtype|"
            "spatial_size|is_simple_tensor"
        ),
    ),
)
def removed_api(node: cst.Attribute | cst.ImportFrom | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds functions, classes and parameters of torch, torchvision and torchaudio that every release which may
    run the program lacks. The releases are those that the project declares, or else those installed; nothing
    is found where neither is known.

    What is only reached under a check of the release or of what it has is left alone: in either branch of a
    question for `torch.__version__` or `hasattr(torch, …)`, behind an early `return`, in `try` with its
    handlers, and in functions that are used in such places only.

    ## Why is this bad?

    The import or the call raises, often in a script that is run again after months, or in the one branch that
    no test runs: `ImportError`, `AttributeError`, `TypeError`, or a `RuntimeError` that says what to use.

    ## Example

    ```python
    values, vectors = torch.symeig(covariance, eigenvectors=True)
    scheduler = ReduceLROnPlateau(optimizer, verbose=True)
    ```

    ## Use instead

    ```python
    values, vectors = torch.linalg.eigh(covariance, UPLO="U")
    scheduler = ReduceLROnPlateau(optimizer)
    ```

    ## Fix safety

    Safe: it is offered where the replacement says the same as the last release that had the old name, with
    the arguments that the call passes. It is unsafe for `torch.solve`, since `torch.linalg.solve` may take a
    batch of matrices for one of vectors. Names that are imported from their module are renamed with the
    import and all other uses; an import is added only where none serves. No fix is offered where a name is
    exported in `__all__`, where arguments are hidden in `*args` or `**kwargs`, and where the results differ.

    ## References

    - [torch.linalg](https://docs.pytorch.org/docs/stable/linalg.html)
    - [Releases of PyTorch](https://github.com/pytorch/pytorch/releases)
    - [Releases of torchvision](https://github.com/pytorch/vision/releases)
    - [torchaudio: what was removed in 2.9](https://github.com/pytorch/audio/issues/3902)
    """
    if isinstance(node, cst.Call):
        for given in arguments_given_up(module, node):
            if given.row.is_removed(module.target_of(given.row.package)):
                if not guarded(module, node, given.row):
                    yield Finding(
                        given.node,
                        said_of(module, given.row),
                        fix=dropped_or_renamed(module, node, given),
                        remedy=given.row.remedy,
                    )
        return
    for use, row in uses_of_given_up(module, node):
        if row.is_removed(module.target_of(row.package)) and not guarded(module, use, row):
            yield Finding(use, said_of(module, row), fix=moved(module, use, row), remedy=row.remedy)
