"""What libraries deprecated, renamed or removed, as data: one table for every rule that asks for it.

A row is about a name (``torch.cuda.amp.autocast``), a parameter of it (``transformers.TrainingArguments``,
``no_cuda``) or one value of a parameter (``optim="adamw_hf"``). ``benchmarks/apis.py`` reads the releases of
the libraries and checks what each row claims of them; ``benchmarks/results/apis.json`` has what it saw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from torchlint.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """One name, parameter or value that a library gave up, and what takes its place.

    ``symbol`` is the dotted name as ``names.canonical`` spells it, ``argument`` the parameter, ``value`` the
    string that it is given. What is replaced is the last of these that is not empty, and ``replacement`` is
    of the same kind: a dotted name, a parameter of the same symbol, a value of the same parameter.

    ``deprecated`` and ``removed`` are the first minor releases that warn and that lack it; None if none does.
    A row with neither is about a private name that has a public twin. ``since`` is the first release that has
    the replacement; None if every release has it that is looked at.

    ``adds`` is an argument that calls of the replacement take in front of the others, as code: ``"cuda"``, or
    by keyword, ``device_type="cuda"``. ``switched_on`` is the code of what the replacement is given where the
    parameter was True; ``switched_off`` where it was False, if that is known to be as good as nothing. With
    ``exact`` the replacement means the same with the same arguments by keyword; else it is advice. ``note``
    says in words what to do instead, where there is no single name for that.

    ``witness`` is the name whose presence tells that of a value, or of what is made at run time. ``source``
    is the page or the file of the library that says so.
    """

    symbol: str
    argument: str = ""
    value: str = ""
    deprecated: str | None = None
    removed: str | None = None
    replacement: str | None = None
    since: str | None = None
    adds: str = ""
    switched_on: str = ""
    switched_off: str = ""
    exact: bool = False
    note: str = ""
    witness: str = ""
    source: str = ""

    @property
    def package(self) -> str:
        """The package that the symbol is part of, as the package index names it."""
        return self.symbol.partition(".")[0]

    @property
    def private(self) -> bool:
        """Whether this is about a name that was never public."""
        return self.deprecated is None and self.removed is None

    def is_removed(self, target: Target) -> bool:
        """Whether every release that may run the program lacks it."""
        return self.removed is not None and target.at_least(self.removed)

    def is_deprecated(self, target: Target) -> bool:
        """Whether every release that may run the program warns of it, or lacks it."""
        return any(target.at_least(release) for release in (self.deprecated, self.removed) if release)

    def is_replaceable(self, target: Target) -> bool:
        """Whether every release that may run the program has the replacement."""
        return self.replacement is not None and (self.since is None or target.at_least(self.since))


def _amp(symbol: str, replacement: str, since: str, adds: str) -> Upgrade:
    return Upgrade(
        symbol=symbol,
        deprecated="2.4",
        replacement=replacement,
        since=since,
        adds=adds,
        exact=True,
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
        source="https://docs.pytorch.org/docs/2.0/dynamo/get-started.html",
    ),
)


def _renamed(
    old: str, new: str, *, at: str | None = None, removed: str | None = None, on: str = "", off: str = ""
) -> Upgrade:
    """A parameter that means the same under another name, or switches between two of the other's values."""
    return Upgrade(
        symbol="",
        argument=old,
        deprecated=at,
        removed=removed,
        replacement=new,
        since=at or removed,
        switched_on=on,
        switched_off=off,
        exact=True,
    )


def _dropped(name: str, note: str, *, at: str | None = None, removed: str | None = None) -> Upgrade:
    """A parameter that has no equal; the note says what to do instead."""
    return Upgrade(symbol="", argument=name, deprecated=at, removed=removed, note=note)


def _of(symbol: str, source: str, *rows: Upgrade) -> tuple[Upgrade, ...]:
    """The rows of what takes these parameters."""
    return tuple(replace(row, symbol=symbol, source=source) for row in rows)


_MIGRATION = "https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md"

TRANSFORMERS: Final = (
    *_of(
        "transformers.TrainingArguments",
        _MIGRATION,
        _renamed("per_gpu_train_batch_size", "per_device_train_batch_size", at="4.0", removed="5.0"),
        _renamed("per_gpu_eval_batch_size", "per_device_eval_batch_size", at="4.0", removed="5.0"),
        _renamed("evaluation_strategy", "eval_strategy", at="4.41", removed="4.51"),
        _renamed("no_cuda", "use_cpu", at="4.32", removed="5.0"),
        _renamed("push_to_hub_token", "hub_token", at="4.11", removed="5.0"),
        _renamed("xpu_backend", "ddp_backend", at="4.29", removed="4.32"),
        _renamed("torchdynamo", "torch_compile_backend", at="4.26", removed="5.0"),
        _renamed("warmup_ratio", "warmup_steps", at="5.0", removed="5.15"),
        _renamed("gradient_checkpointing", "activation_checkpointing", at="5.23"),
        _renamed("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs", at="5.23"),
        _renamed("adafactor", "optim", at="4.16", removed="5.0", on='"adafactor"'),
        _renamed("tpu_metrics_debug", "debug", at="4.0", removed="5.0", on='"tpu_metrics_debug"'),
        _renamed("group_by_length", "train_sampling_strategy", removed="5.2", on='"group_by_length"'),
        _renamed(
            "include_inputs_for_metrics", "include_for_metrics", at="4.46", removed="5.0", on='["inputs"]'
        ),
        _dropped("push_to_hub_model_id", "name the repository in `hub_model_id`", at="4.11", removed="5.0"),
        _dropped("push_to_hub_organization", "put it into `hub_model_id`", at="4.11", removed="5.0"),
        _dropped("fp16_backend", "torch's autocast is the only one left", at="4.13", removed="5.0"),
        _dropped("half_precision_backend", "torch's autocast is the only one left", removed="5.0"),
        _dropped("fp16_opt_level", "it belonged to apex, which is no longer used", removed="5.0"),
        _dropped("sharded_ddp", "use `fsdp` or `deepspeed`", at="4.31", removed="4.35"),
        _dropped("use_mps_device", "the device is used where there is one", at="4.31", removed="5.0"),
        _dropped("fsdp_min_num_params", "put it into `fsdp_config`", at="4.27", removed="5.0"),
        _dropped("fsdp_transformer_layer_cls_to_wrap", "put it into `fsdp_config`", at="4.27", removed="5.0"),
        _dropped("dispatch_batches", "put it into `accelerator_config`", at="4.38", removed="4.51"),
        _dropped("split_batches", "put it into `accelerator_config`", at="4.38", removed="4.51"),
        _dropped("use_ipex", "it has no replacement", at="4.53", removed="4.57"),
        _dropped("jit_mode_eval", "it has no replacement", removed="5.0"),
        _dropped("past_index", "it has no replacement", removed="5.0"),
        _dropped("ray_scope", "it has no replacement", removed="5.0"),
        _dropped("mp_parameters", "it has no replacement", removed="5.0"),
        _dropped("tpu_num_cores", "it has no replacement", removed="5.0"),
        _dropped("use_legacy_prediction_loop", "it has no replacement", removed="5.0"),
        _dropped("overwrite_output_dir", "the trainer never asked for it", removed="5.0"),
        _dropped("save_safetensors", "checkpoints are always in that format", removed="5.0"),
        _dropped("include_tokens_per_second", "use `include_num_input_tokens_seen`", removed="5.0"),
        _dropped("logging_dir", "set `TENSORBOARD_LOGGING_DIR`", at="5.0", removed="5.15"),
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
    *_of(
        "transformers.Trainer",
        _MIGRATION,
        _renamed("tokenizer", "processing_class", at="4.46", removed="5.0"),
    ),
    *_of(
        "transformers.Seq2SeqTrainer",
        _MIGRATION,
        _renamed("tokenizer", "processing_class", at="4.46", removed="5.0"),
    ),
    *_of("transformers.pipeline", _MIGRATION, _renamed("torch_dtype", "dtype", at="4.56")),
    *_of(
        "transformers.PreTrainedModel.from_pretrained",
        _MIGRATION,
        _renamed("torch_dtype", "dtype", at="4.56"),
        _renamed("use_auth_token", "token", at="4.31", removed="5.0"),
        _dropped("load_in_8bit", "use `quantization_config`", at="4.38", removed="5.0"),
        _dropped("load_in_4bit", "use `quantization_config`", at="4.38", removed="5.0"),
    ),
)

ACCELERATE: Final = _of(
    "accelerate.Accelerator",
    "https://github.com/huggingface/accelerate/releases",
    _renamed("fp16", "mixed_precision", at="0.6", removed="0.16", on='"fp16"', off="None"),
    _renamed("logging_dir", "project_dir", at="0.16", removed="0.20"),
    _dropped("dispatch_batches", "put it into `dataloader_config`", removed="1.0"),
    _dropped("even_batches", "put it into `dataloader_config`", removed="1.0"),
    _dropped("use_seedable_sampler", "put it into `dataloader_config`", removed="1.0"),
)

UPGRADES: Final = (*TORCH, *TRANSFORMERS, *ACCELERATE)
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
