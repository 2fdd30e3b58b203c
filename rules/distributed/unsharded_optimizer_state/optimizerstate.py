"""The state that an optimizer keeps beside the parameters, and whether each rank keeps all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.identifiers import identifiers, imports, speaks_of
from torchlint.semantics.lexicon import Role
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name

from ..parallelism import Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Two numbers for each parameter.
_ADAM_LIKE = frozenset(
    {f"torch.optim.{name}" for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam")}
    | {f"apex.optimizers.{name}" for name in ("FusedAdam", "FusedLAMB")}
    | {"transformers.AdamW", "transformers.optimization.AdamW"}
)
# What spreads or shortens the state, or trains a few of the parameters.
_SPARING_LIBRARIES = (
    *("bitsandbytes", "deepspeed", "fairscale", "galore_torch", "peft", "torch.distributed.fsdp"),
    *("torch.distributed._composable", "torch.distributed.optim"),
)
_SPARING = frozenset(
    {"ZeroRedundancyOptimizer", "DistributedFusedAdam", "DistributedOptimizer", "OSS", "ZeRO", "zero_stage"}
    | {"zero_optimization", "load_in_8bit", "load_in_4bit"}
)
# What loads networks of a size at which their state matters.
_LOADING = frozenset({"from_pretrained", "from_config"})
_SHARDING = (Wrapping.FSDP, Wrapping.FULLY_SHARD, Wrapping.DEEPSPEED, Wrapping.PREPARED)
_WRAPPED = "torch.nn.parallel.DistributedDataParallel"


def whole_state(module: Module, call: cst.Call) -> Wrapper | None:
    """Return what wraps the model whose Adam state an optimizer keeps on each rank, whole.

    None for a second optimizer of the file, for one of a small model or of a part of it, and where anything
    may spread the state already.
    """
    if not _makes_adam(module, call) or is_test(module) or _spares(module):
        return None
    parallelism = Parallelism.of(module)
    wrappers = [w for w in parallelism.wrapped_by(Wrapping.DDP) if w.name == _WRAPPED]
    if not wrappers or parallelism.wrapped_by(*_SHARDING) or parallelism.frameworks:
        return None
    if not _is_large(module) or not Backpropagation.of(module).happens:
        return None
    if call is not _first_adam(module):
        return None
    given = call.args[0].value if call.args and not call.args[0].star else None
    if given is None:
        return None
    return next((w for w in wrappers if _are_parameters(module, given, w)), None)


@remembered
def _spares(module: Module) -> bool:
    """Return whether anything may keep the state small: it is spread or quantised,
    or few parameters have any.
    """
    return (
        imports(module, _SPARING_LIBRARIES)
        or not _SPARING.isdisjoint(identifiers(module))
        or speaks_of(module, Role.ADAPTATION)
    )


@remembered
def _is_large(module: Module) -> bool:
    """Return whether the file makes networks of a size at which their state matters."""
    return not _LOADING.isdisjoint(identifiers(module)) or speaks_of(module, Role.TRANSFORMER)


@remembered
def _first_adam(module: Module) -> cst.Call | None:
    """Return the first optimizer of its kind by where it stands."""
    made = (call for call in module.tree.nodes(cst.Call) if _makes_adam(module, call))
    return min(made, key=module.tree.standing, default=None)


def _makes_adam(module: Module, call: cst.Call) -> bool:
    name = last_name(call.func) or ""
    if not any(word in name for word in ("Adam", "LAMB")):
        return False
    return module.qualified(call.func) in _ADAM_LIKE


def _are_parameters(module: Module, given: cst.BaseExpression, wrapper: Wrapper) -> bool:
    """Return whether parameters are, or are picked from, those of the model that a wrapper is given."""
    waiting, seen = [given], {given}
    while waiting:
        for node in module.tree.descendants(waiting.pop()):
            match node:
                case cst.Call(
                    func=cst.Attribute(value=owner, attr=cst.Name("parameters" | "named_parameters"))
                ):
                    if _is_wrapped(module, owner, wrapper):
                        return True
                case cst.Name() if module.names.is_read(node):
                    binding = module.names.assignment(node)
                    if binding is not None and binding.value is not None and binding.value not in seen:
                        seen.add(binding.value)
                        waiting.append(binding.value)
                case _:
                    pass
    return False


def _is_wrapped(module: Module, model: cst.BaseExpression, wrapper: Wrapper) -> bool:
    """Return whether a model is the one that a wrapper is given, or is that wrapper."""
    if wrapper in Parallelism.of(module).wraps(model).wrappers:
        return True
    if isinstance(model, cst.Attribute) and model.attr.value == "module":
        if wrapper in Parallelism.of(module).wraps(model.value).wrappers:
            return True
    return wrapper.model is not None and module.source(wrapper.model) == module.source(model)
