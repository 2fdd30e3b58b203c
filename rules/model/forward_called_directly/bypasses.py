"""Calls of a module's ``forward`` that pass over what calling the module does around it.

``nn.Module.__call__`` runs the hooks; FSDP, DDP, pruning, weight norm and profilers work through those and
through what replaces ``__call__``. Code that stands in for ``__call__`` itself has to call ``forward``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.comments import Topic, says
from torchlint.semantics.conventions import OTHER_FRAMEWORKS
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MODULE, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.classes import ClassInfo
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

# Libraries whose models are no modules of torch, or compute something else when they are called.
_OTHER_CALL = OTHER_FRAMEWORKS | {"gpytorch", "botorch", "pyro", "skorch"}


@dataclass(frozen=True, slots=True)
class Bypass:
    """A module whose ``forward`` is called, and whether it is certain that calling it runs no other code.

    ``plain``: its class is one of torch, or of this file with such bases only, and so ``__call__`` is that of
    ``nn.Module``.
    """

    receiver: cst.BaseExpression
    plain: bool


def bypass(module: Module, call: cst.Call) -> Bypass | None:
    """Return the module whose ``forward`` a call runs without ``__call__``; None where that is no slip."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "forward":
        return None
    receiver = func.value
    if module.qualified(func) is not None or _is_own(module, receiver):
        return None
    if _replaces_forward(module) or _stands_in(module, call, receiver):
        return None
    value = module.value(receiver)
    if value.kind is Kind.UNKNOWN and _made_by_module(module, receiver) and call.args:
        value = MODULE
    if value.kind is not Kind.MODULE or value.receiver is not None:
        return None
    plain = _plain(module, value)
    if plain is None or (not plain and not _shown(module, call, receiver, value)):
        return None
    return None if says(module, call, Topic.BYPASS) else Bypass(receiver, plain)


def _is_own(module: Module, receiver: cst.BaseExpression) -> bool:
    """Return whether it is ``self.forward`` and ``super().forward``."""
    if isinstance(receiver, cst.Call):
        return module.qualified(receiver.func) == "builtins.super"
    if not isinstance(receiver, cst.Name):
        return False
    return receiver.value in ("self", "cls") or module.classes.instance_class(receiver) is not None


def _replaces_forward(module: Module) -> bool:
    """Return whether the file puts another ``forward`` into modules that exist, or tells TorchScript of one.

    Objects of ``torch.classes``, which may take the place of modules there, cannot be called.
    """
    if module.tree.mentions("jit.interface") or module.tree.mentions("torch.classes"):
        return True
    if any(b.kind is not BindingKind.DECLARE for b in module.names.attributes.get("forward", ())):
        return True
    return any(
        isinstance(argument.value, cst.SimpleString) and argument.value.evaluated_value == "forward"
        for call in module.tree.calls_by_name.get("setattr", ())
        for argument in call.args[1:2]
    )


def _stands_in(module: Module, call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """Return whether the call is made by what takes the place of ``__call__``,
    or hands on to what it wraps.
    """
    function = module.function(call)
    while function is not None:
        if isinstance(function, cst.FunctionDef):
            name = function.name.value
            if name == "__call__" or has(name, Role.STAND_IN) or _for_torchscript(module, function):
                return True
        if _hands_on(module, function, call, receiver):
            return True
        function = module.function(function)
    owner = module.tree.enclosing(call, cst.ClassDef)
    return owner is not None and module.classes.info(owner).method("__call__") is not None


def _hands_on(module: Module, function: Function, call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """Return whether a function passes what it is given to the module that its object wraps.

    ``def forward(self, *args, **kwargs): return self.module.forward(*args, **kwargs)``
    """
    params = function.params
    stars = {p.name.value for p in (params.star_arg, params.star_kwarg) if isinstance(p, cst.Param)}
    if any(a.star and isinstance(a.value, cst.Name) and a.value.value in stars for a in call.args):
        return True
    return (
        isinstance(function, cst.FunctionDef)
        and function.name.value == "forward"
        and isinstance(receiver, cst.Attribute)
        and _wraps(module, receiver)
    )


def _wraps(module: Module, receiver: cst.Attribute) -> bool:
    """Return whether ``self.module`` is what the constructor was given, and the only module of its object."""
    owner = module.classes.instance_class(receiver.value)
    if owner is None:
        return False
    if has(owner.name.value, Role.WRAPPER):
        return True
    info = module.classes.info(owner)
    given = _assigned(module, info, receiver.attr.value)
    if not given or not all(_from_parameter(module, value) for value in given):
        return False
    return not any(
        module.value(value).kind is Kind.MODULE
        for name in module.names.attributes
        if name != receiver.attr.value
        for value in _assigned(module, info, name)
    )


def _assigned(module: Module, info: ClassInfo, name: str) -> list[cst.BaseExpression]:
    """Return what the methods of a class set as an attribute of ``self``."""
    bindings = module.classes.attribute_bindings(info, name)
    return [binding.value for binding in bindings if binding.value is not None]


def _from_parameter(module: Module, value: cst.BaseExpression) -> bool:
    """Return whether something is a parameter, or what a function made of one: ``freeze(model)``."""
    while isinstance(value, cst.Call) and value.args and not _makes_instance(value):
        value = value.args[0].value
    if not isinstance(value, cst.Name):
        return False
    return any(binding.kind is BindingKind.PARAMETER for binding in module.bindings(value))


def _makes_instance(call: cst.Call) -> bool:
    return (last_name(call.func) or "")[:1].isupper()


def _plain(module: Module, value: Value) -> bool | None:
    """Return whether ``__call__`` is that of ``nn.Module``: False where it may be,
    None where it is another.
    """
    if isinstance(value.definition, cst.ClassDef):
        info = module.classes.info(value.definition)
        if info.method("__call__") is not None or any(map(_calls_otherwise, info.bases)):
            return None
        # A type that TorchScript knows by its methods cannot be called.
        return None if _for_torchscript(module, value.definition) else not info.opaque
    if value.cls is None:
        return False
    return None if _calls_otherwise(value.cls) else value.cls.startswith("torch.nn.")


def _for_torchscript(module: Module, definition: cst.FunctionDef | cst.ClassDef) -> bool:
    made = [
        d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in definition.decorators
    ]
    return any((module.qualified(node) or "").startswith("torch.jit.") for node in made)


def _calls_otherwise(dotted: str) -> bool:
    return dotted.partition(".")[0] in _OTHER_CALL


def _made_by_module(module: Module, receiver: cst.BaseExpression) -> bool:
    """Return whether ``self.encoder`` is of a class of another file, and a part of a module."""
    if not isinstance(receiver, cst.Attribute):
        return False
    owner = module.classes.instance_class(receiver.value)
    if owner is None or module.classes.info(owner).kind is not Kind.MODULE:
        return False
    made = _assigned(module, module.classes.info(owner), receiver.attr.value)
    return bool(made) and all(isinstance(value, cst.Call) and _makes_instance(value) for value in made)


def _shown(module: Module, call: cst.Call, receiver: cst.BaseExpression, value: Value) -> bool:
    """Return whether the file shows, by more than a name, that something is a module of torch."""
    if value.definition is not None or value.cls is not None or value.origin is not None:
        return True
    owner = module.classes.instance_class(receiver.value) if isinstance(receiver, cst.Attribute) else None
    if isinstance(receiver, cst.Attribute) and owner is not None:
        set_here = _assigned(module, module.classes.info(owner), receiver.attr.value)
        if not set_here or any(_of_other_library(module, value) for value in set_here):
            return False
    imported = {
        (b.imported or "").partition(".")[0]
        for bindings in module.names.module_scope.bindings.values()
        for b in bindings
    }
    # The networks of OpenCV are told their input first.
    others = imported & (_OTHER_CALL if module.tree.mentions("setInput") else _OTHER_CALL - {"cv2"})
    return bool(call.args) and "torch" in imported and not others


def _of_other_library(module: Module, value: cst.BaseExpression) -> bool:
    """Return whether it is ``cv2.dnn.readNetFromONNX(path)``."""
    return isinstance(value, cst.Call) and _calls_otherwise(module.qualified(value.func) or "")
