"""What variables are conventionally called, for places where nothing else tells what they are.

Conventions come last: after assignments, annotations, the calls in the file and how a variable is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from torchlint.semantics.lexicon import Role, begins, has

# Functions that make what they are called after: ``build_criterion``.
MAKER_NAME = (Role.MAKING, Role.CHOOSING, Role.LOADING)
# Libraries beside torch whose models are written in the same words.
OTHER_FRAMEWORKS = frozenset(
    {"caffe", "chainer", "cv2", "equinox", "flax", "haiku", "jax", "jittor", "keras", "megengine"}
    | {"mindspore", "mlx", "mxnet", "oneflow", "paddle", "tensorflow", "tinygrad"}
)
# Classes of other runtimes, whatever the variable is called that is annotated with one.
OTHER_RUNTIME_CLASS = re.compile(
    r"^(Onnx|ONNX|ORT[A-Z]|OV[A-Z]|OpenVINO|TensorRT|TRT|Flax|TF[A-Z]|Keras|CoreML)"
)
# What is called with a batch as a model or a loss is, though nothing tells what it is: ``self.net_g(x)``.
CALLED_MODULE_NAME = (Role.MODEL, Role.POLICY, Role.CRITERION, Role.MODEL_PART)

# Collate functions make these, and loops that move a batch often leave them out.
LENGTHS_NAME = (Role.LENGTH, Role.MAGNITUDE)


def goes_over_data(name: str | None) -> bool:
    """Whether a function of this name runs over a whole data set, and not over one batch."""
    return (begins(name, Role.EVALUATION, Role.TEST, Role.TRAINING) or has(name, Role.EPOCH)) and not has(
        name, Role.ITERATION, Role.BATCH
    )


def says_host(name: str) -> bool:
    """Whether this is called after the host; the ``batch_sizes`` of a packed sequence are always there."""
    return has(name, Role.HOST, Role.CPU) or name == "batch_sizes"


# What pipelines of diffusers call the models that they register; beside them stand tokenizers and schedulers.
PIPELINE_MODEL = re.compile(
    r"^(\w+_)?(unet|transformer|vae|controlnet|prior|decoder|movq|vqvae|vqgan|text_encoder|image_encoder"
    r"|vision_encoder|audio_encoder|adapter|denoiser|vocoder|projection_model|language_model)(_\d+|2)?$"
)

# Diffusion schedulers keep their tables of noise levels in host memory.
NOISE_SCHEDULER = re.compile(r"(^|\.|_)scheduler$")
NOISE_LEVEL = re.compile(r"^_?(sigma|alpha|beta|lambda)")


# Strings that name an accelerator, as ``torch.device`` takes them.
ACCELERATOR_STRING = re.compile(r"^(cuda|mps|xpu|npu|hpu|xla|musa|mlu)(:|$)")


def uses_model(name: str) -> bool:
    """Whether a method of this name is called from outside to use the model; what decodes may be a part."""
    return not name.startswith("_") and begins(name, Role.GENERATION, Role.SAMPLING, Role.PREDICTION)


# --- releases of libraries --------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TORCH_WORDS = frozenset({"torch", "pytorch", "torchvision", "torchaudio", "functorch"})
_LIBRARY_WORDS = {"tv": "torch", "ta": "torch", "pt": "torch", "transformers": "transformers"}
_LIBRARY_WORDS |= {"accelerate": "accelerate", "lightning": "lightning", "pl": "lightning"}
_RELEASE_WORDS = frozenset({"version", "versions", "ver", "major", "minor", "release", "legacy"})
_ORDER_WORDS = frozenset(
    {"greater", "ge", "gt", "lt", "le", "gte", "lte", "less", "least", "newer", "older", "after", "before"}
    | {"since", "old", "new", "plus", "than", "above", "below"}
)
# What a machine has, whichever release there is.
_HARDWARE_WORDS = frozenset(
    {"npu", "xla", "tpu", "mlu", "musa", "xpu", "mps", "hpu", "cuda", "gpu", "gpus", "sdaa", "rocm", "hip"}
    | {"neuron", "neuroncore", "device", "devices", "bf16", "tf32", "cpu", "nvlink", "bfloat16"}
)
_OTHER_LIBRARIES = frozenset(
    {"apex", "triton", "wandb", "xformers", "flash", "deepspeed", "bnb", "bitsandbytes", "timm", "diffusers"}
    | {"tensorboard", "mlflow", "horovod", "fairscale", "peft", "onnx", "tensorrt", "matplotlib", "numpy"}
    | {
        "scipy",
        "pandas",
        "sklearn",
        "pil",
        "opencv",
        "cv",
        "tqdm",
        "rich",
        "jax",
        "tensorflow",
        "yaml",
        "h5py",
    }
)
_HAS = frozenset({"has", "have", "supports", "support"})
_ASKING = frozenset({"require", "requires", "required", "requirement", "requirements", "check", "compare"})
_ASKING |= frozenset({"version", "satisfies", "available", "min", "minimum", "min_version", "cache"})
_REQUIREMENT = re.compile(
    r"^\s*(torch|pytorch|torchvision|torchaudio|transformers|accelerate)\s*([<>=!~].*)?$"
)


@cache
def release_by_name(name: str) -> str | None:
    """The library whose release a name speaks of, ``TORCH_2_0`` or ``has_native_amp``; None for other names.

    The library is empty where the name does not say which it is.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if words[:2] == ["py", "torch"]:
        words[:2] = ["pytorch"]
    at = next((i for i, word in enumerate(words) if word in _TORCH_WORDS or word in _LIBRARY_WORDS), None)
    if at is not None:
        library = _LIBRARY_WORDS.get(words[at], "torch")
        spelt_out = words[at] in _TORCH_WORDS or words[at] not in ("tv", "ta", "pt", "pl") or name.isupper()
        rest = words[:at] + words[at + 1 :]
        if not _RELEASE_WORDS.isdisjoint(rest):
            return library
        numbered = len(words) > at + 1 and words[at + 1].isdigit() and words[at + 1] != "1"
        numbered = numbered or (len(words) > at + 2 and words[at + 1].isdigit() and words[at + 2].isdigit())
        if spelt_out and (numbered or not _ORDER_WORDS.isdisjoint(rest)):
            return library
        # ``is_torch_sdpa_available`` asks what torch has, ``is_torch_npu_available`` what the machine has.
        asks = rest[:1] in (["is"], ["has"]) and "available" in rest
        if asks and spelt_out and not {*rest} & _HARDWARE_WORDS and {*rest} - {"is", "has", "available"}:
            return library
    what = {*words[1:]}
    if words and words[0] in _HAS and what and not what & (_HARDWARE_WORDS | _OTHER_LIBRARIES | _TORCH_WORDS):
        return "" if name.isupper() or name.lstrip("_").startswith("has_native") else None
    return None


def asked_by_name(function: str, texts: Sequence[str]) -> str | None:
    """The library whose release a function asks for, ``is_torch_version("<", "2.0")``; None if for none.

    ``texts`` are the strings that it is given, among which the library may be.
    """
    words = {word.lower() for word in _WORD.findall(function)}
    if "version" in words and (named := words & _TORCH_WORDS.union(_LIBRARY_WORDS)):
        return _LIBRARY_WORDS.get(min(named), "torch")
    if words.isdisjoint(_ASKING):
        return None
    for text in texts:
        found = _REQUIREMENT.match(text)
        # ``module_available("torch")`` asks for no release.
        if found is not None and (found[2] or words & {"version", "compare"} or len(texts) > 1):
            return found[1]
    return None


_NEWER_WORDS = frozenset(
    {"greater", "ge", "gt", "gte", "least", "newer", "after", "since", "new", "plus", "above"}
)
_OLDER_WORDS = frozenset({"less", "lt", "le", "lte", "older", "before", "old", "legacy", "below"})


def newer_by_name(name: str) -> bool | None:
    """Whether ``TORCH_GREATER_EQUAL_2_0`` and its like are true of newer releases; None if not clear."""
    words = {word.lower() for word in _WORD.findall(name)}
    newer, older = not words.isdisjoint(_NEWER_WORDS), not words.isdisjoint(_OLDER_WORDS)
    return None if newer is older else newer
