"""What torch deprecated, renamed or removed, beside mixed precision and Dynamo, which older rules report.

Left out is what was taken back: ``nn.functional.tanh`` and ``sigmoid`` no longer warn since 1.13, nor do
``distributed.all_gather_into_tensor`` and ``reduce_scatter_tensor`` since 2.15. And ``torch.norm``, of which
the documentation alone says that it may be removed some day, and which every other model calls.
"""

from __future__ import annotations

from typing import Final

from torchlint.semantics.api.changes import Upgrade, dropped, of

_DOCS = "https://docs.pytorch.org/docs/stable/generated/"
_RELEASES = "https://github.com/pytorch/pytorch/releases/tag/v"


def _linear_algebra() -> tuple[Upgrade, ...]:
    def row(name: str, new: str, since: str, at: str, removed: str | None = None, note: str = "") -> Upgrade:
        return Upgrade(
            symbol=f"torch.{name}",
            deprecated=at,
            removed=removed,
            replacement=f"torch.linalg.{new}",
            since=since,
            exact=not note,
            note=note,
            rewrite=name if not note or name == "solve" else "",
            source=f"{_DOCS}torch.{name}.html",
        )

    return (
        row("cholesky", "cholesky", "1.8", "1.9", "2.14"),
        row("qr", "qr", "1.8", "1.8", "2.14"),
        row("symeig", "eigh", "1.8", "1.9", "2.0"),
        row("chain_matmul", "multi_dot", "1.9", "1.9"),
        row("matrix_rank", "matrix_rank", "1.8", "1.8", "1.13"),
        row("triangular_solve", "solve_triangular", "1.11", "1.11"),
        row("lu_solve", "lu_solve", "1.13", "1.13"),
        Upgrade(
            symbol="torch.lu",
            deprecated="1.13",
            replacement="torch.linalg.lu_factor",
            since="1.11",
            exact=True,
            rewrite="lu",
            witness="torch.functional._lu_impl",
            source=f"{_DOCS}torch.lu.html",
        ),
        row("solve", "solve", "1.8", "1.9", "1.12", "which takes `A` first and returns only the solution"),
        row("lstsq", "lstsq", "1.9", "1.9", "1.13", "which takes `A` first and returns residuals separately"),
        row("eig", "eig", "1.9", "1.9", "1.13", "which returns complex tensors"),
        Upgrade(
            symbol="torch.svd",
            deprecated="1.9",
            replacement="torch.linalg.svd",
            since="1.8",
            quiet=True,
            note="which returns `Vh` and takes `full_matrices=False` instead of `some=True`",
            source=f"{_DOCS}torch.svd.html",
        ),
        *(
            Upgrade(
                symbol=f"torch.{name}",
                deprecated="1.7",
                removed="1.8",
                replacement=f"torch.fft.{new}",
                since="1.7",
                note=f"which {does} complex tensors",
                source=f"{_RELEASES}1.8.0",
            )
            for name, new, does in (
                ("rfft", "rfftn", "returns"),
                ("irfft", "irfftn", "takes"),
                ("ifft", "ifftn", "takes and returns"),
            )
        ),
    )


def _moved(old: str, new: str, since: str, source: str, **more: object) -> Upgrade:
    """Return a name that means the same in another place."""
    return Upgrade(
        symbol=f"torch.{old}",
        replacement=f"torch.{new}",
        since=since,
        exact=True,
        source=source,
        **more,  # type: ignore[arg-type]
    )


def _renamed_long_ago() -> tuple[Upgrade, ...]:
    """Return names that warn in every release that is looked at, and have a twin in all of them."""
    in_place = (
        "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal "
        "orthogonal sparse"
    )
    return (
        *(
            Upgrade(
                symbol=f"torch.nn.init.{name}",
                deprecated="1.7",
                replacement=f"torch.nn.init.{name}_",
                exact=True,
                source="https://docs.pytorch.org/docs/stable/nn.init.html",
            )
            for name in in_place.split()
        ),
        *(
            Upgrade(
                symbol=f"torch.{old}",
                deprecated="1.7",
                replacement=f"torch.{new}",
                adds=adds,
                exact=True,
                source=f"{_DOCS}torch.{old}.html",
            )
            for old, new, adds in (
                ("nn.utils.clip_grad_norm", "nn.utils.clip_grad_norm_", ""),
                ("cuda.memory_cached", "cuda.memory_reserved", ""),
                ("cuda.max_memory_cached", "cuda.max_memory_reserved", ""),
                ("cuda.reset_max_memory_allocated", "cuda.reset_peak_memory_stats", ""),
                ("cuda.reset_max_memory_cached", "cuda.reset_peak_memory_stats", ""),
                ("nn.functional.upsample", "nn.functional.interpolate", ""),
                ("nn.functional.upsample_nearest", "nn.functional.interpolate", ""),
                (
                    "nn.functional.upsample_bilinear",
                    "nn.functional.interpolate",
                    'mode="bilinear", align_corners=True',
                ),
                ("nn.parallel.DistributedDataParallelCPU", "nn.parallel.DistributedDataParallel", ""),
            )
        ),
        *(
            Upgrade(
                symbol=f"torch.nn.{old}",
                deprecated="1.7",
                replacement="torch.nn.Upsample",
                adds=adds,
                exact=True,
                quiet=True,
                retypes=True,
                source=f"{_DOCS}torch.nn.{old}.html",
            )
            for old, adds in (
                ("UpsamplingNearest2d", 'mode="nearest"'),
                ("UpsamplingBilinear2d", 'mode="bilinear", align_corners=True'),
            )
        ),
        Upgrade(
            symbol="torch.nn.NLLLoss2d",
            deprecated="1.7",
            replacement="torch.nn.NLLLoss",
            exact=True,
            retypes=True,
            source=f"{_DOCS}torch.nn.NLLLoss2d.html",
        ),
        Upgrade(
            symbol="torch.ger",
            deprecated="1.7",
            replacement="torch.outer",
            exact=True,
            quiet=True,
            source=f"{_DOCS}torch.ger.html",
        ),
        Upgrade(
            symbol="torch.range",
            deprecated="1.7",
            replacement="torch.arange",
            exact=True,
            rewrite="range",
            note="which excludes the end",
            source=f"{_DOCS}torch.range.html",
        ),
    )


_FUNC = "https://docs.pytorch.org/docs/stable/func.migrating.html"


def _functorch() -> tuple[Upgrade, ...]:
    same = "vmap grad grad_and_value vjp jvp jacrev jacfwd hessian functionalize"
    gone = {
        "make_functional": "use `torch.func.functional_call` with a dictionary of the parameters",
        "make_functional_with_buffers": (
            "use `torch.func.functional_call` with a dictionary of the parameters and buffers"
        ),
        "combine_state_for_ensemble": "use `torch.func.stack_module_state`",
    }
    return (
        *(
            Upgrade(
                symbol=f"functorch.{name}",
                deprecated="2.0",
                replacement=f"torch.func.{name}",
                since="2.0",
                exact=True,
                source=_FUNC,
            )
            for name in same.split()
        ),
        *(
            Upgrade(symbol=f"functorch.{name}", deprecated="2.0", note=note, source=_FUNC)
            for name, note in gone.items()
        ),
        _moved("nn.utils.stateless.functional_call", "func.functional_call", "2.0", _FUNC, deprecated="2.0"),
        _moved("_vmap_internals.vmap", "vmap", "2.0", _FUNC),
    )


_TORCHSCRIPT = "https://docs.pytorch.org/docs/stable/jit.html"
_QUANTIZATION = "https://docs.pytorch.org/docs/stable/quantization.html"


def _given_up() -> tuple[Upgrade, ...]:
    """Return names that have no equal: the notes say what to do."""
    script = "use `torch.compile` for speed and `torch.export` for deployment"
    saved = "use `torch.export.save` and `torch.export.load` for exported programs"
    return (
        *(
            Upgrade(symbol=f"torch.jit.{name}", deprecated=since, note=note, source=_TORCHSCRIPT)
            for names, since, note in (
                ("script trace script_method", "2.10", script),
                ("save load", "2.10", saved),
                ("freeze optimize_for_inference", "2.11", "`torch.compile` does not need it"),
            )
            for name in names.split()
        ),
        Upgrade(
            symbol="torch.testing.assert_allclose",
            deprecated="1.12",
            replacement="torch.testing.assert_close",
            since="1.9",
            note="which has other default tolerances and also compares dtypes and devices",
            source=f"{_DOCS}torch.testing.html",
        ),
        Upgrade(
            symbol="torch.nn.utils.weight_norm",
            deprecated="2.1",
            replacement="torch.nn.utils.parametrizations.weight_norm",
            since="2.1",
            note="which renames the parameters in the state dict",
            renames_state=True,
            source=f"{_DOCS}torch.nn.utils.weight_norm.html",
        ),
        Upgrade(
            symbol="torch.backends.cuda.sdp_kernel",
            deprecated="2.3",
            replacement="torch.nn.attention.sdpa_kernel",
            since="2.3",
            note="which takes a list of backends",
            source="https://docs.pytorch.org/docs/stable/backends.html",
        ),
        Upgrade(
            symbol="torch.set_default_tensor_type",
            deprecated="2.3",
            replacement="torch.set_default_dtype",
            note="and `torch.set_default_device`",
            source=f"{_DOCS}torch.set_default_tensor_type.html",
        ),
        Upgrade(
            symbol="torch.library.impl_abstract",
            deprecated="2.4",
            replacement="torch.library.register_fake",
            since="2.4",
            exact=True,
            source="https://docs.pytorch.org/docs/stable/library.html",
        ),
        *(
            Upgrade(
                symbol=f"torch.distributed.checkpoint.{old}",
                deprecated="2.2",
                replacement=f"torch.distributed.checkpoint.{new}",
                since="2.2",
                note="which takes its other arguments by keyword",
                source="https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",
            )
            for old, new in (("load_state_dict", "load"), ("save_state_dict", "save"))
        ),
        *(
            Upgrade(
                symbol=f"torch.{place}quantization.{name}",
                deprecated="2.8",
                note="use `torchao.quantization`",
                source="https://github.com/pytorch/pytorch/pull/153892",
            )
            for place in ("", "ao.")
            for name in ("quantize_dynamic", "quantize_qat", "prepare", "prepare_qat", "convert")
        ),
        *(
            Upgrade(
                symbol=f"torch.ao.quantization.quantize_fx.{name}",
                deprecated="2.8",
                note="use the PT2E quantization of torchao",
                source="https://github.com/pytorch/pytorch/pull/153892",
            )
            for name in ("prepare_fx", "prepare_qat_fx", "convert_fx")
        ),
        *(
            Upgrade(
                symbol=f"torch.ao.quantization.get_default_{kind}qconfig_dict",
                deprecated="1.13",
                replacement=f"torch.ao.quantization.get_default_{kind}qconfig_mapping",
                since="1.13",
                note="which returns a `QConfigMapping`",
                source=_QUANTIZATION,
            )
            for kind in ("", "qat_")
        ),
        *(
            Upgrade(
                symbol=f"torch.{old}",
                deprecated="1.8",
                removed="1.10",
                replacement=f"torch.{new}",
                since="1.8",
                exact=True,
                source=f"{_RELEASES}1.10.0",
            )
            for old, new in (
                ("set_deterministic", "use_deterministic_algorithms"),
                ("is_deterministic", "are_deterministic_algorithms_enabled"),
            )
        ),
        *(
            Upgrade(
                symbol=f"torch.autograd.profiler.{name}",
                deprecated="2.15",
                note="use `torch.profiler` instead",
                source=f"{_RELEASES}2.15.0",
            )
            for name in ("load_nvprof", "parse_nvprof_trace", "EnforceUnique")
        ),
    )


def _private() -> tuple[Upgrade, ...]:
    compiler = "https://docs.pytorch.org/docs/stable/torch.compiler_api.html"
    tensors = "https://docs.pytorch.org/docs/stable/distributed.tensor.html"
    sharded = "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html"
    collected = "https://docs.pytorch.org/docs/stable/data.html"
    scheduler = "https://docs.pytorch.org/docs/stable/optim.html"
    collective = "https://docs.pytorch.org/docs/stable/distributed.html"
    six = f"{_RELEASES}2.0.0"
    return (
        *(
            _moved(f"_dynamo.{name}", f"compiler.{name}", "2.1", compiler)
            for name in ["allow_in_graph", "assume_constant_result", "disable", "list_backends", "reset"]
        ),
        _moved("_utils.is_compiling", "compiler.is_compiling", "2.3", compiler, deprecated="2.3"),
        *(
            _moved(f"utils.data._utils.collate.{name}", f"utils.data.{name}", "1.11", collected)
            for name in ("default_collate", "default_convert")
        ),
        _moved("optim.lr_scheduler._LRScheduler", "optim.lr_scheduler.LRScheduler", "2.0", scheduler),
        *(
            _moved(f"distributed._tensor.{name}", f"distributed.tensor.{name}", "2.5", tensors)
            for name in ["DTensor", "Shard", "Replicate", "distribute_tensor", "distribute_module"]
        ),
        *(
            _moved(f"distributed._composable.fsdp.{name}", f"distributed.fsdp.{name}", "2.6", sharded)
            for name in (
                "fully_shard",
                "FSDPModule",
                "MixedPrecisionPolicy",
                "OffloadPolicy",
                "CPUOffloadPolicy",
            )
        ),
        _moved("distributed._all_gather_base", "distributed.all_gather_into_tensor", "1.13", collective),
        _moved("distributed._reduce_scatter_base", "distributed.reduce_scatter_tensor", "1.13", collective),
        _moved("utils._pytree._register_pytree_node", "utils._pytree.register_pytree_node", "2.2", compiler),
        _moved("_six.inf", "inf", "1.7", six, removed="2.0"),
        *(
            Upgrade(symbol=f"torch._six.{name}", removed=removed, note=note, source=six)
            for name, removed, note in (
                ("string_classes", "2.0", "use `(str, bytes)`"),
                ("int_classes", "1.9", "use `int`"),
                ("container_abcs", "1.9", "use `collections.abc`"),
                ("PY3", "1.8", "every release requires Python 3"),
            )
        ),
        Upgrade(
            symbol="torch._utils._accumulate",
            removed="2.3",
            note="use `itertools.accumulate`",
            source="https://github.com/JaidedAI/EasyOCR/issues/1243",
        ),
    )


_SCHEDULERS: Final = (
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
)


def _arguments() -> tuple[Upgrade, ...]:
    note = "print `scheduler.get_last_lr()` instead"
    return tuple(
        row
        for name in _SCHEDULERS
        for row in of(
            f"torch.optim.lr_scheduler.{name}",
            "https://github.com/pytorch/pytorch/pull/147301",
            dropped("verbose", note, at="2.2", removed="2.7"),
        )
    )


ROWS: Final = (
    *_linear_algebra(),
    *_renamed_long_ago(),
    *_functorch(),
    *_given_up(),
    *_private(),
    *_arguments(),
)
