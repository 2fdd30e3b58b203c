"""Whether a program is written for another framework than torch, as far as its imports tell.

Frameworks imitate the interface of torch: `nn.Module`, `optimizer.step()`, `loss.backward()`. Conventions of
naming hold for all of them, so that only the imports tell whose modules a file has.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.conventions import OTHER_FRAMEWORKS
from torchlint.semantics.names import BindingKind, Names, dotted_text

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
    """Return whether a package has torch's place in a file:
    ``import needle as torch``, ``import needle.nn``.
    """
    dotted, name = imported
    if dotted.startswith("."):
        return False
    return name == "torch" or dotted.partition(".")[2] in ("nn", "nn.functional")
