"""Stand-ins for libraries around torch that the fuzzer's programs import, and that need not be installed.

They take arguments under old and new names and say what they were told, under the new ones: a program whose
arguments were renamed well computes the same with them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn

_RENAMED = {
    "evaluation_strategy": "eval_strategy",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "no_cuda": "use_cpu",
    "push_to_hub_token": "hub_token",
    "tokenizer": "processing_class",
    "torch_dtype": "dtype",
    "use_auth_token": "token",
    "logging_dir": "project_dir",
}
# Arguments that became a value of another one: its name, and its values for True and False.
_VALUES: dict[str, tuple[str, Any, Any]] = {
    "adafactor": ("optim", "adafactor", None),
    "tpu_metrics_debug": ("debug", "tpu_metrics_debug", None),
    "group_by_length": ("train_sampling_strategy", "group_by_length", None),
    "include_inputs_for_metrics": ("include_for_metrics", ["inputs"], None),
    "fp16": ("mixed_precision", "fp16", None),
    "pretrained": ("weights", "IMAGENET1K_V1", None),
}


def _told(options: dict[str, Any], kept: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return what arguments say, under their new names, without those that say nothing;
    ``kept`` are as they are.
    """
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name in _VALUES and name not in kept:
            name, on, off = _VALUES[name]
            value = on if value else off
        found[_RENAMED.get(name, name)] = value
    return {name: str(value) for name, value in sorted(found.items()) if value is not None}


class _Arguments:
    """``TrainingArguments``, where ``fp16`` is still a name."""

    def __init__(self, output_dir: str = "", **options: Any) -> None:
        self._told = _told({"output_dir": output_dir, **options}, frozenset({"fp16"}))

    def __getattr__(self, name: str) -> Any:
        told: dict[str, Any] = self.__dict__["_told"]
        return told.get(_RENAMED.get(name, name))

    def to_dict(self) -> dict[str, Any]:
        return self._told


class _Described:
    def __init__(self, *values: Any, **options: Any) -> None:
        self.values, self.options = values, options

    def described(self) -> list[Any]:
        values = [
            item.described() if isinstance(item, _Described) else type(item).__name__ for item in self.values
        ]
        return [type(self).__name__, values, _told(self.options)]


class _Trainer(_Described):
    def __init__(self, model: Any = None, args: Any = None, **options: Any) -> None:
        super().__init__(model, args, **options)


class _Accelerator:
    def __init__(self, **options: Any) -> None:
        self.mixed_precision = _told(options).get("mixed_precision")


class _Pretrained(nn.Module):  # type: ignore[misc]
    def __init__(self, name: str, **options: Any) -> None:
        super().__init__()
        self.options = {"name": name, **options}

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> _Pretrained:
        return cls(name, **options)

    def to_bettertransformer(self) -> _Pretrained:
        return self

    def described(self) -> dict[str, Any]:
        return _told(self.options)


def _pipeline(task: str, **options: Any) -> _Pretrained:
    return _Pretrained(task, **options)


class _Compose(_Described):
    def __init__(self, steps: Any) -> None:
        super().__init__(*steps)


class _ConvertImageDtype(_Described):
    def described(self) -> list[Any]:
        return _ToDtype(self.values[0] if self.values else torch.float32, scale=True).described()


class _ToDtype(_Described):
    pass


def _model(name: str) -> Any:
    def make(*given: Any, progress: bool = True, **options: Any) -> _Pretrained:
        options |= dict(zip(("pretrained",), given, strict=True)) if given else {}
        return _Pretrained(name, progress=progress, **options)

    return make


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


def _modules() -> dict[str, ModuleType]:
    transformers = _module(
        "transformers",
        TrainingArguments=_Arguments,
        Seq2SeqTrainingArguments=_Arguments,
        Trainer=_Trainer,
        AutoModel=_Pretrained,
        AutoModelForCausalLM=_Pretrained,
        AutoTokenizer=_Pretrained,
        pipeline=_pipeline,
    )
    models = _module(
        "torchvision.models", **{name: _model(name) for name in ("resnet18", "resnet34", "resnet50", "vgg16")}
    )
    made = {name: type(name, (_Described,), {}) for name in ("ToTensor", "ToImage", "Identity")}
    v2 = _module(
        "torchvision.transforms.v2",
        Compose=_Compose,
        ConvertImageDtype=_ConvertImageDtype,
        ToDtype=_ToDtype,
        **made,
    )
    transforms = _module("torchvision.transforms", v2=v2)
    torchvision = _module(
        "torchvision",
        models=models,
        transforms=transforms,
        disable_beta_transforms_warning=lambda: None,
        __version__="0.20",
    )
    found = (
        transformers,
        _module("accelerate", Accelerator=_Accelerator),
        torchvision,
        models,
        transforms,
        v2,
    )
    return {module.__name__: module for module in found}


@contextlib.contextmanager
def importable() -> Iterator[None]:
    """Make the stand-ins what programs import within the block."""
    made = _modules()
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
