"""What torch gave up around the model: distributed training, export, quantization, data, profiling."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from torchlint.semantics.api.changes import Upgrade, dropped, of, renamed

_RELEASES = "https://github.com/pytorch/pytorch/releases/tag/v"
_DOCS = "https://docs.pytorch.org/docs/stable/"


def _gone(symbol: str, removed: str, note: str, *, at: str | None = None) -> Upgrade:
    """Return a name that has no equal."""
    return Upgrade(
        symbol=f"torch.{symbol}",
        deprecated=at,
        removed=removed,
        note=note,
        source=f"{_RELEASES}{removed}.0",
    )


def _same(symbol: str, removed: str, new: str, *, at: str | None = None, since: str | None = None) -> Upgrade:
    """Return a name that means the same under another one."""
    return Upgrade(
        symbol=f"torch.{symbol}",
        deprecated=at,
        removed=removed,
        replacement=f"torch.{new}",
        since=since,
        exact=True,
        source=f"{_RELEASES}{removed}.0",
    )


def _warned(symbol: str, at: str, note: str, source: str) -> Upgrade:
    """Return a name that every release still has."""
    return Upgrade(symbol=f"torch.{symbol}", deprecated=at, note=note, source=_DOCS + source)


def _distributed() -> tuple[Upgrade, ...]:
    layouts = "use `ColwiseParallel` and `RowwiseParallel` with input and output layouts"
    laid_out = (
        "make_input_replicate_1d make_input_reshard_replicate make_input_shard_1d "
        "make_input_shard_1d_last_dim make_output_replicate_1d make_output_reshard_tensor "
        "make_output_shard_1d make_output_tensor make_sharded_output_tensor"
    )
    coalesced = "put the calls into one batch, or concatenate the tensors"
    return (
        _gone("distributed.pipeline.sync.Pipe", "2.4", "use `torch.distributed.pipelining`"),
        *(
            _gone(f"distributed.{name}_multigpu", "2.2", "use one process per device", at="1.13")
            for name in ("all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter")
        ),
        Upgrade(
            symbol="torch.distributed.reduce_op",
            deprecated="1.8",
            replacement="torch.distributed.ReduceOp",
            exact=True,
            witness="torch.distributed.distributed_c10d._reduce_op",
            source=f"{_DOCS}distributed.html",
        ),
        _gone("distributed.tensor.parallel.style.PairwiseParallel", "2.2", layouts),
        *(_gone(f"distributed.tensor.parallel.style.{name}", "2.2", layouts) for name in laid_out.split()),
        _same(
            "distributed.fsdp.wrap.default_auto_wrap_policy",
            "1.12",
            "distributed.fsdp.wrap.size_based_auto_wrap_policy",
            since="1.12",
        ),
        _gone(
            "distributed.pipelining.ScheduleFlexibleInterleaved1F1B",
            "2.6",
            "use `ScheduleInterleaved1F1B`",
        ),
        *(
            _warned(
                f"distributed.nn.functional.{name}",
                "2.12",
                "use the function of `torch.distributed._functional_collectives` that the warning names",
                "distributed.html",
            )
            for name in ("all_gather", "all_reduce", "all_to_all_single", "broadcast", "reduce_scatter")
        ),
        *(
            _warned(f"distributed.{name}", "1.13", coalesced, "distributed.html")
            for name in ("all_gather_coalesced", "all_reduce_coalesced")
        ),
        _warned("distributed.elastic.metrics.profile", "1.7", "use `prof`", "elastic/metrics.html"),
        _warned(
            "distributed.elastic.metrics.publish_metric", "1.7", "use `put_metric`", "elastic/metrics.html"
        ),
        *of(
            "torch.nn.parallel.DistributedDataParallel",
            f"{_DOCS}generated/torch.nn.parallel.DistributedDataParallel.html",
            replace(
                renamed("broadcast_buffers", "forward_sync_buffers", at="2.13"),
                exact=False,
                note="which still synchronizes buffers at the start",
            ),
        ),
    )


def _exported() -> tuple[Upgrade, ...]:
    quantized = "use `torchao.quantization.pt2e`"
    no_longer = "use `torch.ao.nn.quantized.dynamic` instead"
    layers = "Linear LinearFP16 RNNCellBase RNNCell LSTMCell GRUCell RNNBase LSTM GRU"
    return (
        _gone("export.dynamic_dim", "2.5", "use `torch.export.Dim`", at="2.2"),
        *(
            _gone(f"export.constrain_as_{kind}", "2.2", "use `torch._check_is_size` or `torch._check`")
            for kind in ("size", "value")
        ),
        _gone("export.export_for_inference", "2.8", "call `run_decompositions()` on what `export` returns"),
        Upgrade(
            symbol="torch.export.export_for_training",
            deprecated="2.9",
            removed="2.11",
            replacement="torch.export.export",
            since="2.1",
            note="which does the same since 2.9",
            source=f"{_RELEASES}2.9.0",
        ),
        *(
            _gone(f"ao.quantization.quantize_pt2e.{name}", "2.11", quantized, at="2.8")
            for name in ("prepare_pt2e", "prepare_qat_pt2e", "convert_pt2e")
        ),
        *(
            _gone(f"ao.quantization.quantizer.{name}", "2.11", quantized, at=at)
            for at, name in (
                ("2.7", "xnnpack_quantizer.XNNPACKQuantizer"),
                (None, "xnnpack_quantizer.get_symmetric_quantization_config"),
                (None, "x86_inductor_quantizer.X86InductorQuantizer"),
                (None, "x86_inductor_quantizer.get_default_x86_inductor_quantization_config"),
                (None, "xpu_inductor_quantizer.XPUInductorQuantizer"),
                (None, "composable_quantizer.ComposableQuantizer"),
                (None, "embedding_quantizer.EmbeddingQuantizer"),
            )
        ),
        *(
            _warned(f"jit.quantized.Quantized{name}", "1.12", no_longer, "jit.html")
            for name in layers.split()
        ),
        *(
            _warned(f"jit.quantized.quantize_{name}_modules", "1.7", no_longer, "jit.html")
            for name in ("linear", "rnn_cell", "rnn")
        ),
        *(
            _warned(f"jit.{name}", "2.11", "`torch.compile` and `torch.export` read plain Python", "jit.html")
            for name in ("script_if_tracing", "strict_fusion")
        ),
    )


def _data_and_tools() -> tuple[Upgrade, ...]:
    return (
        _gone("utils.data.BufferedShuffleDataset", "1.9", "shuffle in the dataset itself"),
        *of(
            "torch.utils.data.DataLoader",
            f"{_DOCS}data.html",
            replace(dropped("pin_memory_device", "the current accelerator is used", at="2.9"), quiet=True),
        ),
        _same("profiler.ExecutionGraphObserver", "2.1", "profiler.ExecutionTraceObserver", since="2.1"),
        *(
            row
            for name in ("profiler.profile", "autograd.profiler.profile")
            for row in of(
                f"torch.{name}",
                f"{_DOCS}profiler.html",
                replace(dropped("with_modules", "it has no replacement", at="2.14"), quiet=True),
            )
        ),
        _gone("cuda.profiler.init", "2.11", "use `torch.profiler`, or run under `nsys`"),
        _gone("cuda.memory.MemPoolContext", "2.8", "use `torch.cuda.use_mem_pool`"),
        _gone("nn.attention.flex_attention.create_nested_block_mask", "2.10", "it has no replacement"),
        _gone("functional.align_tensors", "2.13", "it was never implemented"),
    )


def _basics() -> tuple[Upgrade, ...]:
    return (
        _same("Assert", "1.8", "_assert", since="1.8"),
        _same("autocast_mode.autocast", "1.12", "autocast", since="1.10"),
        _gone("autograd.gradcheck.zero_gradients", "1.9", "set `x.grad = None`"),
        _gone("autograd.function.traceable", "2.4", "it had no effect", at="2.3"),
        _gone("optim.functional.adam", "1.8", "call the optimizer's `step()`"),
        _warned("nn.Container", "1.7", "use `nn.Module`", "nn.html"),
        *of(
            "torch.autograd.backward",
            f"{_DOCS}generated/torch.autograd.backward.html",
            renamed("grad_variables", "grad_tensors", at="1.7"),
        ),
    )


ROWS: Final = (*_distributed(), *_exported(), *_data_and_tools(), *_basics())
