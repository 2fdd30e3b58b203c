"""What the elements of a tensor have to be for a fused function of torch to take them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.elements import may_hold
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.module import Module
from torchlint.semantics.tensordtypes import NOT_FLOATING


def whole(module: Module, x: cst.BaseExpression) -> bool:
    """Whether ``x`` is seen to be whole numbers, or no tensor: only the operations one by one take it."""
    return may_hold(module, x, NOT_FLOATING)


def complex_numbers(module: Module) -> bool:
    """Whether the file writes complex numbers, or names what torch or NumPy makes them with.

    Not every release has the fused functions for them.
    """
    return bool(module.tree.nodes(cst.Imaginary)) or any(
        name in ("polar", "fft", "ifft", "fft2", "stft") or "complex" in name for name in identifiers(module)
    )
