"""What variables are conventionally called, for places where nothing else tells what they are.

Conventions come last: after assignments, annotations, the calls in the file and how a variable is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement

from torchlint.semantics.lexicon import Role, begins, ends, has, words

# Functions that make what they are called after: ``build_criterion``.
MAKER_NAME = (Role.MAKING, Role.CHOOSING, Role.LOADING)
# Libraries beside torch whose models are written in the same words.
OTHER_FRAMEWORKS = frozenset(
    {"caffe", "chainer", "cv2", "equinox", "flax", "haiku", "jax", "jittor", "keras", "megengine"}
    | {"mindspore", "mlx", "mxnet", "oneflow", "paddle", "tensorflow", "tinygrad", "MNN", "ncnn", "openvino"}
)
# What is called with a batch as a model or a loss is, though nothing tells what it is: ``self.net_g(x)``.
CALLED_MODULE_NAME = (Role.MODEL, Role.POLICY, Role.CRITERION, Role.MODEL_PART)

# Collate functions make these, and loops that move a batch often leave them out.
LENGTHS_NAME = (Role.LENGTH, Role.MAGNITUDE)


def goes_over_data(name: str | None) -> bool:
    """Return whether a function of this name runs over a whole data set, and not over one batch."""
    return (begins(name, Role.EVALUATION, Role.TEST, Role.TRAINING) or has(name, Role.EPOCH)) and not has(
        name, Role.ITERATION, Role.BATCH
    )


def says_host(name: str) -> bool:
    """Return whether this is called after the host;
    the ``batch_sizes`` of a packed sequence are always there.
    """
    return has(name, Role.HOST, Role.CPU) or name == "batch_sizes"


def is_noise_level(attribute: str, owner: str) -> bool:
    """Return whether an attribute is a table of noise levels,
    which diffusion schedulers keep in host memory.
    """
    return begins(attribute, Role.NOISE_LEVEL) and ends(owner, Role.SCHEDULER)


ACCELERATORS = frozenset({"cuda", "mps", "xpu", "npu", "hpu", "xla", "musa", "mlu"})


def names_accelerator(text: str) -> bool:
    """Return whether a string names an accelerator, as ``torch.device`` takes it: ``cuda:0``."""
    return text.partition(":")[0] in ACCELERATORS


def uses_model(name: str) -> bool:
    """Return whether a method of this name is called from outside to use the model;
    what decodes may be a part.
    """
    return not name.startswith("_") and begins(name, Role.GENERATION, Role.SAMPLING, Role.PREDICTION)


# --- releases of libraries --------------------------------------------------------------------------

_TORCH_WORDS = frozenset({"torch", "pytorch", "torchvision", "torchaudio", "functorch"})
_LIBRARY_WORDS = {"tv": "torch", "ta": "torch", "pt": "torch", "transformer": "transformers"}
_LIBRARY_WORDS |= {"accelerate": "accelerate", "lightning": "lightning", "pl": "lightning"}
_RELEASE_WORDS = frozenset({"version", "ver", "major", "minor", "release", "legacy"})
_ORDER_WORDS = frozenset(
    {"greater", "ge", "gt", "lt", "le", "gte", "lte", "less", "least", "newer", "older", "after", "before"}
    | {"since", "old", "new", "plus", "than", "above", "below"}
)
# What a machine has, whichever release there is.
_HARDWARE_WORDS = frozenset(
    {"npu", "xla", "tpu", "mlu", "musa", "xpu", "mps", "hpu", "cuda", "gpu", "sdaa", "rocm", "hip"}
    | {"neuron", "neuroncore", "device", "cpu", "nvlink"}
)
_OTHER_LIBRARIES = frozenset(
    {"apex", "triton", "wandb", "xformer", "flash", "deepspeed", "bnb", "bitsandbyte", "timm", "diffuser"}
    | {"tensorboard", "mlflow", "horovod", "fairscale", "peft", "onnx", "tensorrt", "matplotlib", "numpy"}
    | {
        "scipy",
        "panda",
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
_HAS = frozenset({"has", "have", "support"})
_ASKING = frozenset({"require", "required", "requirement", "check", "compare"})
_ASKING |= frozenset({"version", "satisfy", "available", "min", "minimum", "cache"})
_REQUIRED = frozenset({"torch", "pytorch", "torchvision", "torchaudio", "transformers", "accelerate"})


def release_by_name(name: str) -> str | None:
    """Return the library whose release a name speaks of, ``TORCH_2_0`` or ``has_native_amp``;
    None for other names.

    The library is empty where the name does not say which it is.
    """
    said = [*words(name)]
    if said[:2] == ["py", "torch"]:
        said[:2] = ["pytorch"]
    at = next((i for i, word in enumerate(said) if word in _TORCH_WORDS or word in _LIBRARY_WORDS), None)
    if at is not None:
        library = _LIBRARY_WORDS.get(said[at], "torch")
        spelt_out = said[at] in _TORCH_WORDS or said[at] not in ("tv", "ta", "pt", "pl") or name.isupper()
        rest = said[:at] + said[at + 1 :]
        if not _RELEASE_WORDS.isdisjoint(rest):
            return library
        numbered = len(said) > at + 1 and said[at + 1].isdigit() and said[at + 1] != "1"
        numbered = numbered or (len(said) > at + 2 and said[at + 1].isdigit() and said[at + 2].isdigit())
        if spelt_out and (numbered or not _ORDER_WORDS.isdisjoint(rest)):
            return library
        # ``is_torch_sdpa_available`` asks what torch has, ``is_torch_npu_available`` what the machine has.
        asks = rest[:1] in (["is"], ["has"]) and "available" in rest
        if asks and spelt_out and not {*rest} & _HARDWARE_WORDS and {*rest} - {"is", "has", "available"}:
            return library
    what = {*said[1:]}
    if said and said[0] in _HAS and what and not what & (_HARDWARE_WORDS | _OTHER_LIBRARIES | _TORCH_WORDS):
        return "" if name.isupper() or name.lstrip("_").startswith("has_native") else None
    return None


def asked_by_name(function: str, texts: Sequence[str]) -> str | None:
    """Return the library whose release a function asks for, ``is_torch_version("<", "2.0")``;
    None if for none.

    ``texts`` are the strings that it is given, among which the library may be.
    """
    said = {*words(function)}
    if "version" in said and (named := said & _TORCH_WORDS.union(_LIBRARY_WORDS)):
        return _LIBRARY_WORDS.get(min(named), "torch")
    if said.isdisjoint(_ASKING):
        return None
    for text in texts:
        try:
            asked = Requirement(text)
        except InvalidRequirement:
            continue
        # ``module_available("torch")`` asks for no release.
        if asked.name in _REQUIRED and (asked.specifier or said & {"version", "compare"} or len(texts) > 1):
            return asked.name
    return None


_NEWER_WORDS = frozenset(
    {"greater", "ge", "gt", "gte", "least", "newer", "after", "since", "new", "plus", "above"}
)
_OLDER_WORDS = frozenset({"less", "lt", "le", "lte", "older", "before", "old", "legacy", "below"})


def newer_by_name(name: str) -> bool | None:
    """Return whether ``TORCH_GREATER_EQUAL_2_0`` and the like are true of newer releases;
    None if not clear.
    """
    said = {*words(name)}
    newer, older = not said.isdisjoint(_NEWER_WORDS), not said.isdisjoint(_OLDER_WORDS)
    return None if newer is older else newer
