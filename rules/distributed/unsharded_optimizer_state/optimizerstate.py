"""The state that an optimizer keeps beside the parameters, and whether each rank keeps all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.evidence import is_test
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
_SPARED = re.compile(
    r"ZeroRedundancy|\bZeRO\b|zero_?(?:stage|optimi)|deepspeed|\bOSS\b|Sharded|fully_shard|FSDP|8bit|bitsandbytes"
    r"|bnb\.|lora|peft|adapter|linear_?prob|freeze|requires_grad\s*=\s*False|requires_grad_\(False\)|galore"
    r"|\.requires_grad\b(?!_)|DistributedFusedAdam|DistributedOptimizer",
    re.IGNORECASE,
)
# Networks of a size at which their state matters.
_LARGE = re.compile(
    r"from_pretrained|from_config|transformer|attention|\bgpt|llama|bert|\bt5|bart|\blm\b|language_?model|unet"
    r"|diffusion|\bdit\b|\bvit|swin|\bclip\b|decoder_?layer|encoder_?layer",
    re.IGNORECASE,
)
_SHARDING = (Wrapping.FSDP, Wrapping.FULLY_SHARD, Wrapping.DEEPSPEED, Wrapping.PREPARED)
_WRAPPED = "torch.nn.parallel.DistributedDataParallel"


def whole_state(call: cst.Call, module: Module) -> Wrapper | None:
    """What wraps the model whose Adam state an optimizer keeps on each rank, whole.

    None for a second optimizer of the file, for one of a small model or of a part of it, and where anything
    may spread the state already.
    """
    if not _makes_adam(call, module) or is_test(module) or module.tree.matches(_SPARED):
        return None
    parallelism = Parallelism.of(module)
    wrappers = [w for w in parallelism.wrapped_by(Wrapping.DDP) if w.name == _WRAPPED]
    if not wrappers or parallelism.wrapped_by(*_SHARDING) or parallelism.frameworks:
        return None
    if not module.tree.matches(_LARGE) or not Backpropagation.of(module).happens:
        return None
    if call is not _first_adam(module):
        return None
    given = call.args[0].value if call.args and not call.args[0].star else None
    if given is None:
        return None
    return next((w for w in wrappers if _are_parameters(module, given, w)), None)


@remembered
def _first_adam(module: Module) -> cst.Call | None:
    """The first optimizer of its kind by where it stands."""
    made = (call for call in module.tree.nodes(cst.Call) if _makes_adam(call, module))
    return min(made, key=module.tree.standing, default=None)


def _makes_adam(call: cst.Call, module: Module) -> bool:
    name = last_name(call.func) or ""
    if not any(word in name for word in ("Adam", "LAMB")):
        return False
    return module.qualified(call.func) in _ADAM_LIKE


def _are_parameters(module: Module, given: cst.BaseExpression, wrapper: Wrapper) -> bool:
    """Whether parameters are, or are picked from, those of the model that a wrapper is given."""
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
    """Whether a model is the one that a wrapper is given, or is that wrapper."""
    if wrapper in Parallelism.of(module).wraps(model).wrappers:
        return True
    if isinstance(model, cst.Attribute) and model.attr.value == "module":
        if wrapper in Parallelism.of(module).wraps(model.value).wrappers:
            return True
    return wrapper.model is not None and module.source(wrapper.model) == module.source(model)
