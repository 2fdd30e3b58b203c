"""What libraries deprecated, renamed or removed, as data: one table for every rule that asks for it.

A row is about a name (``torch.cuda.amp.autocast``), a parameter of it (``transformers.TrainingArguments``,
``no_cuda``) or one value of a parameter (``optim="adamw_hf"``). ``benchmarks/apis.py`` reads the releases of
the libraries and checks what each row claims of them; ``benchmarks/results/apis.json`` has what it saw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from torchlint.semantics.api.changes import Upgrade, dropped, of, renamed
from torchlint.semantics.api.upgrades_domains import ROWS as _DOMAIN_LIBRARIES
from torchlint.semantics.api.upgrades_subsystems import ROWS as _SUBSYSTEMS
from torchlint.semantics.api.upgrades_torch import ROWS as _TORCH

__all__ = ["ARGUMENTS", "SYMBOLS", "UPGRADES", "Upgrade"]


def _amp(symbol: str, replacement: str, since: str, adds: str) -> Upgrade:
    return Upgrade(
        symbol=symbol,
        deprecated="2.4",
        replacement=replacement,
        since=since,
        adds=adds,
        exact=True,
        owner="TL507",
        source="https://docs.pytorch.org/docs/2.4/amp.html",
    )


TORCH: Final = (
    _amp("torch.cuda.amp.autocast", "torch.amp.autocast", "1.12", '"cuda"'),
    _amp("torch.cuda.amp.GradScaler", "torch.amp.GradScaler", "2.3", '"cuda"'),
    _amp("torch.cuda.amp.custom_fwd", "torch.amp.custom_fwd", "2.4", 'device_type="cuda"'),
    _amp("torch.cuda.amp.custom_bwd", "torch.amp.custom_bwd", "2.4", 'device_type="cuda"'),
    _amp("torch.cpu.amp.autocast", "torch.amp.autocast", "1.12", '"cpu"'),
    _amp("torch.cpu.amp.GradScaler", "torch.amp.GradScaler", "2.3", '"cpu"'),
    Upgrade(
        symbol="torch._dynamo.optimize",
        replacement="torch.compile",
        since="2.0",
        exact=True,
        owner="TL514",
        source="https://docs.pytorch.org/docs/2.0/dynamo/get-started.html",
    ),
)


_MIGRATION = "https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md"

TRANSFORMERS: Final = (
    *of(
        "transformers.TrainingArguments",
        _MIGRATION,
        renamed(
            "per_gpu_train_batch_size",
            "per_device_train_batch_size",
            at="4.0",
            removed="5.0",
            unset_by_none=True,
        ),
        renamed(
            "per_gpu_eval_batch_size",
            "per_device_eval_batch_size",
            at="4.0",
            removed="5.0",
            unset_by_none=True,
        ),
        renamed("evaluation_strategy", "eval_strategy", at="4.41", removed="4.51", unset_by_none=True),
        renamed("no_cuda", "use_cpu", at="4.32", removed="5.0"),
        renamed("push_to_hub_token", "hub_token", at="4.11", removed="5.0"),
        renamed("xpu_backend", "ddp_backend", at="4.29", removed="4.32"),
        renamed("torchdynamo", "torch_compile_backend", at="4.26", removed="5.0"),
        renamed("warmup_ratio", "warmup_steps", at="5.0", removed="5.15"),
        renamed("gradient_checkpointing", "activation_checkpointing", at="5.23"),
        renamed("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs", at="5.23"),
        renamed("adafactor", "optim", at="4.16", removed="5.0", on='"adafactor"'),
        renamed("tpu_metrics_debug", "debug", at="4.0", removed="5.0", on='"tpu_metrics_debug"'),
        renamed("group_by_length", "train_sampling_strategy", removed="5.2", on='"group_by_length"'),
        renamed(
            "include_inputs_for_metrics", "include_for_metrics", at="4.46", removed="5.0", on='["inputs"]'
        ),
        dropped("push_to_hub_model_id", "name the repository in `hub_model_id`", at="4.11", removed="5.0"),
        dropped("push_to_hub_organization", "set it in `hub_model_id`", at="4.11", removed="5.0"),
        dropped("fp16_backend", "only the autocast of torch remains", at="4.13", removed="5.0"),
        dropped("half_precision_backend", "only the autocast of torch remains", removed="5.0"),
        dropped("fp16_opt_level", "apex is no longer supported", removed="5.0"),
        dropped("sharded_ddp", "use `fsdp` or `deepspeed`", at="4.31", removed="4.35"),
        dropped("use_mps_device", "MPS is used whenever it is available", at="4.31", removed="5.0"),
        dropped("fsdp_min_num_params", "set it in `fsdp_config`", at="4.27", removed="5.0"),
        dropped("fsdp_transformer_layer_cls_to_wrap", "set it in `fsdp_config`", at="4.27", removed="5.0"),
        dropped("dispatch_batches", "set it in `accelerator_config`", at="4.38", removed="4.51"),
        dropped("split_batches", "set it in `accelerator_config`", at="4.38", removed="4.51"),
        dropped("use_ipex", "it has no replacement", at="4.53", removed="4.57"),
        dropped("jit_mode_eval", "it has no replacement", removed="5.0"),
        dropped("past_index", "it has no replacement", removed="5.0"),
        dropped("ray_scope", "it has no replacement", removed="5.0"),
        dropped("mp_parameters", "it has no replacement", removed="5.0"),
        dropped("tpu_num_cores", "it has no replacement", removed="5.0"),
        dropped("use_legacy_prediction_loop", "it has no replacement", removed="5.0"),
        dropped("overwrite_output_dir", "the trainer never used it", removed="5.0"),
        dropped("save_safetensors", "checkpoints always use safetensors", removed="5.0"),
        dropped("include_tokens_per_second", "use `include_num_input_tokens_seen`", removed="5.0"),
        dropped("logging_dir", "set `TENSORBOARD_LOGGING_DIR`", at="5.0", removed="5.15"),
        Upgrade(
            symbol="",
            argument="optim",
            value="adamw_hf",
            removed="4.50",
            replacement="adamw_torch",
            since="4.16",
            witness="transformers.training_args.OptimizerNames.ADAMW_HF",
        ),
    ),
    *of(
        "transformers.Trainer",
        _MIGRATION,
        renamed("tokenizer", "processing_class", at="4.46", removed="5.0"),
    ),
    *of(
        "transformers.Seq2SeqTrainer",
        _MIGRATION,
        renamed("tokenizer", "processing_class", at="4.46", removed="5.0"),
    ),
    *of("transformers.pipeline", _MIGRATION, renamed("torch_dtype", "dtype", at="4.56")),
    *of(
        "transformers.PreTrainedModel.from_pretrained",
        _MIGRATION,
        renamed("torch_dtype", "dtype", at="4.56"),
        renamed("use_auth_token", "token", at="4.31", removed="5.0"),
        dropped("load_in_8bit", "use `quantization_config`", at="4.38", removed="5.0"),
        dropped("load_in_4bit", "use `quantization_config`", at="4.38", removed="5.0"),
    ),
)

ACCELERATE: Final = of(
    "accelerate.Accelerator",
    "https://github.com/huggingface/accelerate/releases",
    renamed("fp16", "mixed_precision", at="0.6", removed="0.16", on='"fp16"', off="None"),
    renamed("logging_dir", "project_dir", at="0.16", removed="0.20"),
    dropped("dispatch_batches", "set it in `dataloader_config`", removed="1.0"),
    dropped("even_batches", "set it in `dataloader_config`", removed="1.0"),
    dropped("use_seedable_sampler", "set it in `dataloader_config`", removed="1.0"),
)

UPGRADES: Final = (*TORCH, *_TORCH, *_SUBSYSTEMS, *_DOMAIN_LIBRARIES, *TRANSFORMERS, *ACCELERATE)
"""All rows."""


def _grouped(rows: Iterable[Upgrade]) -> Mapping[str, tuple[Upgrade, ...]]:
    groups: defaultdict[str, list[Upgrade]] = defaultdict(list)
    for row in rows:
        groups[row.symbol].append(row)
    return {symbol: tuple(group) for symbol, group in groups.items()}


SYMBOLS: Final[Mapping[str, Upgrade]] = {row.symbol: row for row in UPGRADES if not row.argument}
"""The rows about names themselves, by name."""

ARGUMENTS: Final = _grouped(row for row in UPGRADES if row.argument)
"""The rows about parameters and their values, by the name of what takes them."""
