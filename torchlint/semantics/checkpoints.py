"""Whether a file fills models from stored weights, whose keys are then part of its contract."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.names import Names
from torchlint.syntax import SyntaxTree

_LOADING = frozenset(
    {
        "load_state_dict",
        "from_pretrained",
        "load_state_dict_from_url",
        "load_url",
        "load_checkpoint",
        "load_from_checkpoint",
        "load_pretrained",
        "load_model_weights",
        "load_weights",
        "build_model_with_cfg",
        "register_model",
    }
)
_LOADING_FUNCTIONS = frozenset({"torch.load", "safetensors.torch.load_file", "safetensors.torch.load_model"})
_STORED = re.compile(r"https?://\S+\.(pth|pt|ckpt|bin|safetensors|tar|pkl)$")


def loads_weights(tree: SyntaxTree, names: Names) -> bool:
    """Whether there is a call that loads weights, an option that asks for them, or the address of some.

    A base class that can load itself from a hub counts: that is how its heirs are made.
    """
    for name in tree.nodes(cst.Name):
        if name.value in _LOADING or name.value.startswith("pretrained") or name.value == "init_ckpt":
            return True
        if name.value.endswith(("PreTrainedModel", "ModelMixin", "HubMixin")):
            return True
    for call in tree.nodes(cst.Call):
        dotted = names.qualified(call.func)
        if dotted is not None and (dotted in _LOADING_FUNCTIONS or dotted.startswith("torch.hub.load")):
            return True
    return any(_STORED.search(string.value.strip("rRbBuU'\"")) for string in tree.nodes(cst.SimpleString))
