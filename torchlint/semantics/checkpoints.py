"""What is filled from stored weights, and whether a file does so at all: their keys are then its contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_PUBLISHED = frozenset(
    {
        "from_pretrained",
        "load_state_dict_from_url",
        "load_url",
        "load_pretrained",
        "load_model_weights",
        "build_model_with_cfg",
        "register_model",
        "model_urls",
        "model_zoo",
        "hf_hub_download",
        # How a model of MMEngine is filled.
        "init_cfg",
    }
)
_LOADING_THEMSELVES = ("PreTrainedModel", "ModelMixin", "HubMixin")
PUBLISHED = (
    *sorted(_PUBLISHED),
    "pretrained",
    "init_ckpt",
    *_LOADING_THEMSELVES,
    "hub.load",
    "self.load_state_dict",
)
"""Words one of which is in the text of a file that loads weights that somebody else has trained."""
_LOADING = frozenset({"load_state_dict", "load_checkpoint", "load_from_checkpoint", "load_weights"})
_LOADING_FUNCTIONS = frozenset({"torch.load", "safetensors.torch.load_file", "safetensors.torch.load_model"})
STORED = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".tar", ".pkl")
"""How the names of files with weights end."""


@remembered
def loads_weights(module: Module) -> bool:
    """Return whether there is a call that loads weights, an option that asks for them,
    or the address of some.

    A base class that can load itself from a hub counts: that is how its heirs are made.
    """
    tree, names = module.tree, module.names
    if loads_published_weights(module) or any(name.value in _LOADING for name in tree.nodes(cst.Name)):
        return True
    return any(
        dotted in _LOADING_FUNCTIONS
        for call in tree.nodes(cst.Call)
        if (dotted := names.qualified(call.func)) is not None
    )


@remembered
def loads_published_weights(module: Module) -> bool:
    """Return whether the models of a file can be filled with weights that somebody else has trained.

    A function for that is called, an option asks for them, their address is there, a model loads itself, or
    inherits how to.
    """
    return next(published(module), None) is not None


def published(module: Module) -> Iterator[cst.CSTNode]:
    """Yield what says that models are filled with weights that somebody else has trained."""
    tree = module.tree
    for name in tree.nodes(cst.Name):
        if name.value in _PUBLISHED or name.value.startswith("pretrained") or name.value == "init_ckpt":
            yield name
        if name.value.endswith(_LOADING_THEMSELVES):
            yield name
    yield from (each for each in tree.nodes(cst.ClassDef) if _is_loaded_by_heirs(module, each))
    for call in tree.nodes(cst.Call):
        if (module.names.qualified(call.func) or "").startswith("torch.hub.load"):
            yield call
        match call.func:
            case cst.Attribute(value=cst.Name("self"), attr=cst.Name("load_state_dict")):
                yield call
    yield from (text for text in tree.nodes(cst.SimpleString) if is_stored_weights(text.raw_value))


def _is_loaded_by_heirs(module: Module, definition: cst.ClassDef) -> bool:
    """Return whether a class inherits how it is filled with published weights."""
    lineage = module.classes.info(definition).lineage[1:]
    return any(
        "from_pretrained" in info.methods
        or any((last_name(base.value) or "").endswith(_LOADING_THEMSELVES) for base in info.node.bases)
        for info in lineage
    )


def is_stored_weights(text: str) -> bool:
    """Return whether a text is, or ends with, the address of stored weights."""
    return text.endswith(STORED) and ("http://" in text or "https://" in text)
