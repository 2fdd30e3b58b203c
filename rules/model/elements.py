"""What has to hold for one function of torch to take the place of several."""

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


def observed(module: Module, *functions: str) -> bool:
    """Whether the program looks at, or replaces, the single functions of torch that it calls.

    Args:
        module: the file that calls them.
        functions: the names of the functions that would no longer be called.
    """
    if module.mentions("__torch_function__", "__torch_dispatch__", "saved_tensors_hooks", "symbolic_trace"):
        return True
    return any(
        (each.qualified(target.target.value) or "").partition(".")[0] == "torch"
        for each in module.companions(*(f".{name} = " for name in functions))
        for name in functions
        for target in each.names.attributes.get(name, ())
    )
