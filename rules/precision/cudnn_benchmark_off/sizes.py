"""Whether the batches of a program have one shape, as far as its files show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import (
    CROPS,
    RESIZES,
    has_one_size,
)
from torchlint.semantics.identifiers import identifiers, imports, speaks_of
from torchlint.semantics.lexicon import Role, asks
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Libraries for what is as long as it is.
_OF_LENGTHS = ("torchaudio", "librosa", "torchtext")
_RANDOM = frozenset({"torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty"})


def one_size(module: Module) -> bool:
    """Return whether the batches of a program have one shape, as far as its files show.

    What shows it are data sets and crops of one size, an option for the size, or batches that the default
    collation stacks; what speaks against it are sequences, detection and training at several scales.
    """
    files = (module, *module.companions())
    return not any(map(_varies_in_size, files)) and any(map(_shows_size, files))


def _varies_in_size(module: Module) -> bool:
    return speaks_of(module, Role.VARIABLE_SHAPE) or imports(module, _OF_LENGTHS) or _collates(module)


def _shows_size(module: Module) -> bool:
    for call in module.tree.nodes(cst.Call):
        name = module.qualified(call.func) or last_name(call.func) or ""
        last = name.rpartition(".")[2]
        if last in CROPS or has_one_size(name):
            return True
        if last in RESIZES and _names_both_sides(module, call):
            return True
        if name in _RANDOM and len([arg for arg in call.args if arg.keyword is None and not arg.star]) == 4:
            return True
        if Loaders.of(module).makes_loader(call) and _stacks(module, call):
            return True
    return any(asks(name, Role.PICTURE_SIZE) for name in identifiers(module))


def _collates(module: Module) -> bool:
    """Return whether anything is given a function that makes batches of samples."""
    return any(
        argument.keyword is not None
        and argument.keyword.value == "collate_fn"
        and module.value(argument.value).kind is not Kind.NONE
        for argument in module.tree.nodes(cst.Arg)
    )


def _names_both_sides(module: Module, call: cst.Call) -> bool:
    if len([arg for arg in call.args if arg.keyword is None]) > 1:
        return True
    return any(isinstance(arg.value, (cst.Tuple, cst.List)) for arg in call.args)


def _stacks(module: Module, call: cst.Call) -> bool:
    """Return whether a loader puts several items of a data set into a batch by the default collation."""
    if not module.argument(call, "collate_fn").absent or not module.argument(call, "batch_sampler").absent:
        return False
    size = module.argument(call, "batch_size").constant
    return size is MISSING or (isinstance(size, int) and size > 1)
