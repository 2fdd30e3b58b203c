"""Tensor types of before dtypes, ``torch.cuda.FloatTensor`` and the like: their names, and what they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.spellings import last_words

from .factories import given_sizes

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

ON_CUDA = {name.replace("torch.", "torch.cuda."): dtype for name, dtype in LEGACY_CONSTRUCTORS.items()}
"""The dtypes of the types of tensors on an accelerator."""
DTYPES: dict[str, str | None] = {**LEGACY_CONSTRUCTORS, **ON_CUDA, "torch.Tensor": None}
"""The dtypes of all types; None where the default decides."""
LEGACY_NAMES = last_words(DTYPES) | {"type"}
"""What the calls are named that make, or cast to, a legacy tensor type."""


def copies_to_device(module: Module, call: cst.Call) -> bool:
    """Return whether ``call`` makes a tensor of data by a type of an accelerator,
    at least where there is one.
    """
    names = module.names.either_qualified(call.func)
    if not all(name in DTYPES for name in names) or not any(name in ON_CUDA for name in names):
        return False
    return given_sizes(module, call) is False
