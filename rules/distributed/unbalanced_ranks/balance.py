"""Whether the ranks get batches that take equally long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.identifiers import identifiers, named, speaks_of
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.loaders import Loaders, pads_to_longest
from torchlint.semantics.program import Program
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name

from ..parallelism import SAMPLER, Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SEVERAL = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD)


@dataclass(frozen=True, slots=True)
class Unbalanced:
    """A loader of batches of any length, on which ranks train that wait for one another in each step."""

    wrapper: Wrapper
    padded: cst.CSTNode


def unbalanced(module: Module, call: cst.Call) -> Unbalanced | None:
    """Return how the loader that a call makes has the ranks wait for whichever got the longest items."""
    wrappers = Parallelism.of(module).wrapped_by(*_SEVERAL)
    if not wrappers or not Loaders.of(module).makes_loader(call) or Parallelism.of(module).frameworks:
        return None
    if is_test(module) or _balances(module):
        return None
    collate = module.argument(call, "collate_fn").node
    if collate is None or not module.argument(call, "batch_sampler").absent:
        return None
    if Loaders.of(module).constant(call, "batch_size") == 1 or not _is_drawn_at_random(module, call):
        return None
    padded = pads_to_longest(module, collate)
    if padded is None:
        return None
    for loop in module.tree.nodes(cst.For):
        if call in Loaders.of(module).sources(loop.iter).calls and Backpropagation.of(
            module
        ).computes_gradients(loop):
            for forward in Program.of(module).forward_passes(loop):
                found = Parallelism.of(module).wraps(forward.func).by(*_SEVERAL)
                if found:
                    return Unbalanced(found[0], padded)
    return None


@remembered
def _balances(module: Module) -> bool:
    """Return whether the file puts items of like length together,
    or copes with ranks that have fewer batches.
    """
    if "Join" in identifiers(module) or speaks_of(module, Role.BUCKETING):
        return True
    return any(
        "sort" in (last_name(call.func) or "")
        and any(has(name, Role.LENGTH) for argument in call.args for name in named(module, argument))
        for call in module.tree.nodes(cst.Call)
    )


def _is_drawn_at_random(module: Module, call: cst.Call) -> bool:
    """Return whether items are drawn regardless of their lengths: by torch's own sampler, or by none."""
    sampler = module.argument(call, "sampler")
    if sampler.absent or sampler.node is None:
        return sampler.absent
    choices = [sampler.node]
    if isinstance(sampler.node, cst.IfExp):
        choices = [sampler.node.body, sampler.node.orelse]
    values = [module.value(choice) for choice in choices]
    return any(value.cls == SAMPLER for value in values)
