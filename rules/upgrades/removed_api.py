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

    Finds functions, classes and parameters of torch, torchvision and torchaudio that no release supported by
    the project has any more. The releases are those that the project declares, or otherwise the installed
    ones; if neither is known, the rule reports nothing.

    Code that is only reached behind a version check is ignored: either branch of a test of
    `torch.__version__` or `hasattr(torch, …)`, code after an early `return`, `try` blocks with their
    handlers, and functions used only in such places.

    ## Why is this bad?

    The import or the call raises `ImportError`, `AttributeError`, `TypeError` or `RuntimeError`, often in a
    script that has not been run for months, or in a branch that no test covers.

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

    Safe: the fix is offered if the replacement behaves like the last release that had the old name, with the
    arguments of this call. It is unsafe for `torch.solve`, because `torch.linalg.solve` may interpret a batch
    of matrices as a batch of vectors. Imported names are renamed together with the import and all other uses;
    a new import is added only if necessary. There is no fix if a name is exported in `__all__`, if arguments
    are hidden in `*args` or `**kwargs`, or if the results differ.

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
