"""Models whose parameters are sharded: in how many units, and which optimizers hold what they were before.

A unit of FSDP is gathered as a whole before its forward pass. Where a model is one unit, all of its
parameters are in memory at once, and no communication overlaps with computation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import Binding, BindingKind, unpacked
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

from .parallelism import FSDP, FULLY_SHARD, Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SHARDING = (Wrapping.FSDP, Wrapping.FULLY_SHARD)
_KEEPS_PARAMETERS = frozenset({"parameters", "named_parameters"})
# The release that made ``fully_shard`` public.
_PUBLIC = "2.6"
_WRAPPING_WORDS = ("wrap", "Wrap", "shard", "Shard", "fsdp", "FSDP")
_STRATEGIES = frozenset({"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"})


# --- units ------------------------------------------------------------------------------------------------


def single_unit(module: Module, wrapper: Wrapper) -> bool:
    """Return whether a call shards a whole model that is trained here, and nothing shards any part of it."""
    if wrapper.name not in (FSDP, FULLY_SHARD) or is_test(module):
        return False
    if wrapper.wrapping is Wrapping.FSDP and not _told_nothing(module, wrapper):
        return False
    if not _is_whole(module, wrapper) or not _is_used(module, wrapper) or _is_one_layer(module, wrapper):
        return False
    others = (other for other in Parallelism.of(module).wrapped_by(*_SHARDING) if other is not wrapper)
    return all(_is_whole(module, other) for other in others) and not _wraps_parts(module)


def has_second_generation(module: Module) -> bool:
    """Return whether every release that may run the program has FSDP2 under its public name."""
    return module.target.at_least(_PUBLIC)


def superseded(module: Module, wrapper: Wrapper) -> bool:
    """Return whether a call is the first of FSDP1 in a file that could use ``fully_shard``, and does not."""
    parallelism = Parallelism.of(module)
    if wrapper.name != FSDP or is_test(module) or parallelism.wrapped_by(Wrapping.FULLY_SHARD):
        return False
    if not has_second_generation(module) or module.tree.mentions("fully_shard"):
        return False
    first = next(
        w for w in parallelism.wrapped_by(Wrapping.FSDP) if w.name == FSDP and not single_unit(module, w)
    )
    return first is wrapper


def _told_nothing(module: Module, wrapper: Wrapper) -> bool:
    """Return whether a wrapper has no policy for the parts of its model, and is to shard it at all."""
    policy = Parallelism.of(module).argument(wrapper, "auto_wrap_policy")
    if not policy.absent and not (policy.given and policy.constant is None):
        return False
    strategy = Parallelism.of(module).argument(wrapper, "sharding_strategy")
    # With NO_SHARD it does as DDP does.
    if strategy.absent or strategy.node is None:
        return strategy.absent
    package, _, name = (module.qualified(strategy.node) or "").rpartition(".")
    return package.endswith("ShardingStrategy") and name in _STRATEGIES


def _is_whole(module: Module, wrapper: Wrapper) -> bool:
    """Return whether what is wrapped is a variable of its own, and no part of a model or one of several."""
    owner = module.tree.enclosing(wrapper.call, cst.ClassDef)
    if owner is not None and module.classes.info(owner).inherits("torch.nn.Module"):
        return False
    return wrapper.model is not None and _is_variable(module, wrapper.model)


@solved(True)
def _is_variable(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a model by itself, also where a helper is given it."""
    match node:
        case cst.Name():
            return _has_plain_bindings(module, node)
        case cst.Attribute(value=cst.Name("self")):
            return True
        case cst.Call(func=func):
            return last_name(func) != "get_submodule"
        case _:
            return False


def _has_plain_bindings(module: Module, name: cst.Name) -> bool:
    bindings = module.bindings(name)
    for binding in bindings:
        if binding.kind is BindingKind.PARAMETER:
            calls = module.callers(binding.scope.node)
            given = [module.argument(call, binding.name).node for call in calls]
            if not all(node is not None and _is_variable(module, node) for node in given):
                return False
        elif binding.kind not in (BindingKind.ASSIGN, BindingKind.WALRUS) or not _no_part(binding.value):
            return False
    return bool(bindings)


def _no_part(value: cst.BaseExpression | None) -> bool:
    if isinstance(value, cst.Attribute):
        return last_name(value.value) == "self"
    return not isinstance(value, cst.Subscript)


def _is_used(module: Module, wrapper: Wrapper) -> bool:
    """Return whether the program runs what is wrapped, and computes gradients."""
    computing = (module, *module.companions("backward"))
    if not any(Backpropagation.of(each).happens for each in computing):
        return False
    forwards = Parallelism.of(module).forwards(wrapper)
    return any(grad(module, call) is not Grad.OFF and not evaluated_only(module, call) for call in forwards)


def _is_one_layer(module: Module, wrapper: Wrapper) -> bool:
    """Return whether it is ``FSDP(nn.Linear(10, 10))`` has no parts."""
    inner = Parallelism.of(module).inner(wrapper)
    name = inner.cls or ""
    if inner.definition is not None or name in ("torch.nn.Module", "torch.nn.Sequential"):
        return False
    return name.startswith("torch.nn.") and "Transformer" not in name


def _wraps_parts(module: Module) -> bool:
    """Return whether anything else may shard parts of a model: a function out of sight,
    or ``wrap`` of torch.
    """
    return any(_wraps_parts_here(each) for each in (module, *module.companions(*_WRAPPING_WORDS)))


def _wraps_parts_here(module: Module) -> bool:
    wrapping = {wrapper.call for wrapper in Parallelism.of(module).wrappers}
    for call in module.tree.nodes(cst.Call):
        if call in wrapping or not has(last_name(call.func), Role.WRAPPING):
            continue
        dotted = module.qualified(call.func) or ""
        if dotted.startswith("torch.") and not dotted.startswith("torch.distributed.fsdp.wrap."):
            continue
        if module.callee(call) is None:
            return True
    return False


# --- optimizers -------------------------------------------------------------------------------------------


def sharded_later(module: Module, call: cst.Call) -> Wrapper | None:
    """Return what shards the parameters that an optimizer is made with, after they were taken."""
    wrappers = [
        wrapper for wrapper in Parallelism.of(module).wrapped_by(*_SHARDING) if _replaces(module, wrapper)
    ]
    if not wrappers or is_test(module) or module.value(call).kind is not Kind.OPTIMIZER:
        return None
    if module.value(call).origin is not call or module.callee(call) is not None:
        return None
    for place, made, model in _takings(module, call):
        for wrapper in wrappers:
            for site, wrapped in _sites(module, wrapper):
                home = module.home(site)
                if not _same(module, model, wrapped) or home is not module.home(place):
                    continue
                if home.flow.certainly_before(place, site) and not _made_again(home, made, site):
                    return wrapper
    return None


def _replaces(module: Module, wrapper: Wrapper) -> bool:
    """Return whether a wrapper puts other parameters in the place of those that the model has."""
    if wrapper.wrapping is Wrapping.FULLY_SHARD:
        return True
    if wrapper.name != FSDP:
        return False
    # With `use_orig_params=True` the parameters stay the same objects.
    kept = Parallelism.of(module).argument(wrapper, "use_orig_params")
    return kept.absent or kept.constant is False


def _takings(
    module: Module, optimizer: cst.Call
) -> Iterator[tuple[cst.CSTNode, cst.Call, cst.BaseExpression]]:
    """Yield where the parameters of an optimizer are taken, the call that makes it there, and the model.

    That is also where a helper is given the model that makes the optimizer.
    """
    for place, model in _taken(module, optimizer):
        yield place, optimizer, model
        yield from ((caller, caller, given) for caller, given in _handed(module, model))


def _taken(module: Module, optimizer: cst.Call) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Yield where the parameters of an optimizer are taken, and of which model."""
    for argument in optimizer.args:
        for node in module.tree.descendants(argument.value):
            if isinstance(node, cst.Call):
                match node.func:
                    case cst.Attribute(value=model, attr=cst.Name(word)) if word in _KEEPS_PARAMETERS:
                        yield optimizer, model
                    case _:
                        pass
            elif isinstance(node, cst.Name) and module.names.is_read(node):
                bindings = module.bindings(node)
                value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
                if isinstance(value, (cst.List, cst.ListComp, cst.Dict)) or _is_list(module, value):
                    assert value is not None
                    yield from ((value, model) for model in _asked(module, value))


def _is_list(module: Module, value: cst.BaseExpression | None) -> bool:
    return isinstance(value, cst.Call) and module.qualified(value.func) in ("builtins.list", "builtins.tuple")


def _asked(module: Module, value: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the models whose parameters an expression takes."""
    match value:
        case cst.Call(func=cst.Attribute(value=model, attr=cst.Name(word))) if word in _KEEPS_PARAMETERS:
            yield model
        case _:
            for child in module.tree.parts(value):
                yield from _asked(module, child)


def _sites(module: Module, wrapper: Wrapper) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """Yield where a wrapper is given a model: the call itself, and those of a helper that hands it on."""
    if wrapper.model is None:
        return
    yield wrapper.call, wrapper.model
    yield from _handed(module, wrapper.model)


def _handed(module: Module, model: cst.BaseExpression) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """Yield the calls that hand a helper its model, which may move it first, and what they hand it."""
    waiting, seen = [model], set[Binding]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value in RETURNS_SELF:
                waiting.append(node.func.value)
        for binding in module.bindings(node):
            if binding in seen:
                continue
            seen.add(binding)
            if binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
                waiting.append(binding.value)
            elif binding.kind is BindingKind.PARAMETER:
                for caller in module.callers(binding.scope.node):
                    given = module.argument(caller, binding.name).node
                    if given is not None:
                        yield caller, given


def _same(module: Module, first: cst.BaseExpression, second: cst.BaseExpression) -> bool:
    """Return whether two expressions are one variable, set at the same place,
    or one attribute of ``self``.
    """
    if isinstance(first, cst.Name) and isinstance(second, cst.Name):
        return bool(set(module.bindings(first)) & set(module.bindings(second)))
    if isinstance(first, cst.Attribute) and isinstance(second, cst.Attribute):
        if module.tree.is_elsewhere(second) or module.tree.is_elsewhere(first):
            return False
        one = module.source(first) == module.source(second) and last_name(first.value) == "self"
        return one and module.function(first) is module.function(second)
    return False


def _made_again(module: Module, optimizer: cst.Call, site: cst.CSTNode) -> bool:
    """Return whether the program may make its optimizer anew after a site, or change what it holds."""
    tree, function = module.tree, module.function(site)
    holder = tree.parent(optimizer)
    names = {module.source(t.target) for t in holder.targets} if isinstance(holder, cst.Assign) else set()
    behind = tree.order[site]
    for target in tree.nodes(cst.AssignTarget):
        if (
            tree.order[target] > behind
            and module.function(target) is function
            and tree.parent(target) is not holder
        ):
            if any(module.source(part) in names for part, _ in unpacked(target.target)):
                return True
    for call in tree.nodes(cst.Call):
        if tree.order[call] <= behind or module.function(call) is not function:
            continue
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_param_group":
            return True
        if call is not optimizer and module.value(call).kind is Kind.OPTIMIZER:
            return True
    return tree.mentions("param_groups") and any(
        isinstance(tree.parent(attribute), (cst.AssignTarget, cst.Subscript))
        for attribute in tree.attributes_by_name.get("param_groups", ())
        if tree.order[attribute] > behind
    )
