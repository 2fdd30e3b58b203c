"""What variables are conventionally called, for places where nothing else tells what they are.

Conventions come last: after assignments, annotations, the calls in the file and how a variable is used. Other
frameworks imitate the interface of torch (`nn.Module`, `optimizer.step()`, `loss.backward()`) and its
conventions, so that only the imports tell whose modules a file has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
from packaging.requirements import InvalidRequirement, Requirement

from torchlint.semantics.lexicon import Role, begins, ends, has, words
from torchlint.semantics.names import BindingKind, Names, dotted_text

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
    """Return whether a name is one of the host, as are ``batch_sizes`` of a packed sequence."""
    return has(name, Role.HOST, Role.CPU) or name == "batch_sizes"


def is_noise_level(attribute: str, owner: str) -> bool:
    """Return whether an attribute is a table of noise levels, which schedulers keep on the host."""
    return begins(attribute, Role.NOISE_LEVEL) and ends(owner, Role.SCHEDULER)


ACCELERATORS = frozenset({"cuda", "mps", "xpu", "npu", "hpu", "xla", "musa", "mlu"})


def names_accelerator(text: str) -> bool:
    """Return whether a string names an accelerator, as ``torch.device`` takes it: ``cuda:0``."""
    return text.partition(":")[0] in ACCELERATORS


def uses_model(name: str) -> bool:
    """Return whether a method of this name is called from outside to use the model."""
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
    """Return whether a name such as ``TORCH_GREATER_EQUAL_2_0`` is true of newer releases."""
    said = {*words(name)}
    newer, older = not said.isdisjoint(_NEWER_WORDS), not said.isdisjoint(_OLDER_WORDS)
    return None if newer is older else newer


# --- frameworks whose names are like torch's ----------------------------------------------------------------

# Libraries that are built on torch and do not say so in their names.
_BUILT_ON_TORCH = frozenset(
    {"accelerate", "allennlp", "apex", "bitsandbytes", "captum", "catalyst", "colossalai", "composer"}
    | {"deepspeed", "detectron2", "dgl", "diffusers", "e3nn", "fairscale", "fairseq", "fastai", "flair"}
    | {"ignite", "kornia", "lightning", "litgpt", "megatron", "mmcv", "mmdet", "mmengine", "mmseg", "monai"}
    | {"nemo", "open_clip", "peft", "pyro", "segmentation_models_pytorch", "sentence_transformers", "skorch"}
    | {"speechbrain", "stable_baselines3", "tianshou", "timm", "transformers", "trl", "ultralytics", "vllm"}
    | {"xformers"}
)
# What is imported to read images or logs beside torch.
_BESIDE_TORCH = frozenset({"cv2"})


def of_other_framework(names: Names) -> bool:
    """Return whether a file imports another framework, and neither torch nor anything that is built on it."""
    roots = _roots(names)
    if any("torch" in root or root in _BUILT_ON_TORCH for root in roots):
        return False
    if not roots & (OTHER_FRAMEWORKS - _BESIDE_TORCH) and not any(map(_stands_in, _imported(names))):
        return False
    # A star import of another file of the project brings what that file imports.
    own_stars = any(module.partition(".")[0] not in OTHER_FRAMEWORKS for module in names.star_modules)
    return not (own_stars and names.reads("torch") and "torch" not in names.module_scope.bindings)


def other_module(dotted: str) -> bool:
    """Return whether a base class is the module of another framework: `megengine.module.Module`."""
    root, _, rest = dotted.partition(".")
    if not root or "torch" in root or root in _BUILT_ON_TORCH:
        return False
    return root in OTHER_FRAMEWORKS or (rest.rpartition(".")[2] == "Module" and root != "builtins")


def imports_torch(names: Names) -> bool:
    """Return whether a file imports torch, or a library that says in its name that it belongs to it."""
    return any("torch" in root for root in _roots(names))


def uses_torch(names: Names) -> bool:
    """Return whether a file imports torch, or a library that is built on it."""
    return imports_torch(names) or not _BUILT_ON_TORCH.isdisjoint(_roots(names))


def _roots(names: Names) -> set[str]:
    """Return the packages that a file imports anything of, anywhere."""
    dotted = [*(dotted for dotted, _ in _imported(names)), *names.star_modules]
    return {name.partition(".")[0] for name in dotted}


def _imported(names: Names) -> Iterator[tuple[str, str]]:
    """Yield all that a file imports, by its whole name, and what it is called."""
    for binding in names.by_node.values():
        if binding.kind is BindingKind.IMPORT and binding.imported:
            dotted = binding.imported
            if isinstance(binding.node, cst.ImportAlias) and binding.node.asname is None:
                # ``import torch.nn`` binds ``torch``.
                whole = dotted_text(binding.node.name) or ""
                dotted = whole if whole.startswith(f"{dotted}.") else dotted
            yield dotted, binding.name


def _stands_in(imported: tuple[str, str]) -> bool:
    """Return whether a package is imported in torch's place: ``import needle as torch``."""
    dotted, name = imported
    if dotted.startswith("."):
        return False
    return name == "torch" or dotted.partition(".")[2] in ("nn", "nn.functional")
