"""Telling a sampler the epoch: where in a loop over epochs, and by which names that certainly stand there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit
from torchlint.fixes import insert_before
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.spellings import last_name

from ..shares import SameOrder, samplers

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_COUNTS = frozenset({"builtins.range"})
_BARS = frozenset({"tqdm", "trange", "track"})


def telling_epoch(module: Module, sampler: cst.Call, found: SameOrder) -> tuple[Edit, ...] | None:
    """Return the edits that tell a sampler the epoch at the start of each;
    None if a name for either is missing.
    """
    loop = found.loop
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        return None
    epoch = _counter(module, loop)
    named = _name_of(module, sampler, loop) or _loader_of(module, sampler, found)
    if epoch is None or named is None or named.partition(".")[0] == epoch:
        return None
    return insert_before(module, loop.body.body[0], f"{named}.set_epoch({epoch})")


def _counter(module: Module, loop: cst.For) -> str | None:
    """Return the variable of a loop that counts: over ``range``, with or without a progress bar."""
    if not isinstance(loop.target, cst.Name) or not loop.target.value.strip("_"):
        return None
    iterated = loop.iter
    while isinstance(iterated, cst.Call):
        if module.qualified(iterated.func) in _COUNTS:
            return loop.target.value
        word = last_name(iterated.func)
        if word == "trange" and (module.qualified(iterated.func) or "").startswith("tqdm."):
            return loop.target.value
        if word not in _BARS or not iterated.args or iterated.args[0].star or module.callee(iterated):
            return None
        iterated = iterated.args[0].value
    return None


def _name_of(module: Module, made: cst.Call, loop: cst.For) -> str | None:
    """Return the variable, or attribute of ``self``, that certainly holds in a loop what a call made."""
    match module.tree.parent(made):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding = module.binding_of(target)
            return target.value if binding is not None and _stands(module, binding, loop) else None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as attribute)]):
            return module.source(attribute) if _is_kept(module, attribute, loop) else None
        case _:
            return None


def _stands(module: Module, binding: Binding, loop: cst.For) -> bool:
    """Return whether a variable certainly has the value of its only definition in a loop of the same
    function.
    """
    if (
        binding.kind is not BindingKind.ASSIGN
        or binding.path
        or len(binding.scope.bindings[binding.name]) > 1
    ):
        return False
    if module.names.scope(loop) is not binding.scope or binding.name in binding.scope.globals:
        return False
    return _comes_first(module, binding.node, loop)


def _comes_first(module: Module, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
    """Return whether a statement stands in the block of a loop, or in one around it, and before."""
    statement = module.tree.statement(node)
    block = module.tree.parent(statement)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or not module.tree.contains(block, loop):
        return False
    return (
        not module.tree.contains(loop, statement) and module.tree.order[statement] < module.tree.order[loop]
    )


def _is_kept(module: Module, attribute: cst.Attribute, loop: cst.For) -> bool:
    """Return whether ``self.sampler`` is set once, always,
    before any other method of the class can run the loop.
    """
    maker, function = module.function(attribute), module.function(loop)
    owner = module.tree.enclosing(attribute, cst.ClassDef)
    if not isinstance(maker, cst.FunctionDef) or owner is None or last_name(attribute.value) != "self":
        return False
    if len(module.names.attributes.get(attribute.attr.value, ())) > 1:
        return False
    if module.tree.statement(attribute) not in maker.body.body:
        return False
    if function is maker:
        return _comes_first(module, attribute, loop)
    if maker.name.value != "__init__" or not isinstance(function, cst.FunctionDef):
        return False
    if any(
        module.classes.info(heir).methods.get("__init__")
        for heir in module.classes.heirs(owner)
        if heir is not owner
    ):
        return False
    first = function.params.params[:1]
    is_method = (
        module.tree.enclosing(function, cst.ClassDef) is owner and module.classes.owner(function) is owner
    )
    return is_method and bool(first) and first[0].name.value == "self"


def _loader_of(module: Module, sampler: cst.Call, found: SameOrder) -> str | None:
    """Return ``loader.sampler``, if that is the sampler of the call on every way that makes the loader."""
    given = module.argument(found.loader, "sampler").node
    if given is None or samplers(module, found.loader) != (sampler,) or _may_be_none(module, given):
        return None
    for target in module.tree.nodes(cst.AssignTarget):
        assigned = module.tree.parent(target)
        if not isinstance(target.target, cst.Name) or not isinstance(assigned, cst.Assign):
            continue
        sources = Loaders.of(module).sources(assigned.value)
        binding = module.binding_of(target.target)
        if sources.complete and sources.calls == (found.loader,) and binding is not None:
            if _is_loader(module, assigned.value, found.loader) and _stands(module, binding, _loop(found)):
                return f"{target.target.value}.sampler"
    return None


def _loop(found: SameOrder) -> cst.For:
    assert isinstance(found.loop, cst.For)
    return found.loop


def _is_loader(module: Module, value: cst.BaseExpression, loader: cst.Call) -> bool:
    """Return whether an expression is the loader itself, and no iterator over it."""
    if value is loader:
        return True
    callee = module.callee(value) if isinstance(value, cst.Call) else None
    return isinstance(callee, cst.FunctionDef) and callee.name.value != "__init__"


def _may_be_none(module: Module, given: cst.BaseExpression) -> bool:
    if isinstance(given, cst.Call):
        return False
    bindings = module.bindings(given)
    return len(bindings) != 1 or not isinstance(bindings[0].value, cst.Call) or bool(bindings[0].path)
