"""Double precision that reaches an accelerator: what brings it there, and whether that may be meant.

Arrays of NumPy are of double precision unless they are asked for another, and the tensors made of them keep
that. Who writes ``.double()`` means it, more often than not: what is computed in double precision and cast
back, on purpose, is left alone, and what a whole program is slowed down by is not: a model, its input, the
default.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.evidence import Evidence, accelerated, evidence, on_device
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import last_name, last_words
from torchlint.semantics.transfers import Move, move_to_accelerator, on_host
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DOUBLE = "torch.float64"
_MAKERS = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray"})
_KEEPERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"})
_DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_DOUBLE_TYPES = frozenset({"torch.DoubleTensor", "torch.cuda.DoubleTensor"})
_CASTING_METHODS = frozenset({"double", "to", "type"})
_METHODS = _CASTING_METHODS | {"cuda", "register_buffer"}

DOUBLING = _METHODS | last_words(_MAKERS | _KEEPERS | _DEFAULTS)
"""What the calls are named that may bring double precision to an accelerator."""
# What is done in double precision because the digits are needed.
_EXACTING = frozenset(
    {"LBFGS", "cholesky", "cholesky_inverse", "cholesky_solve", "eig", "eigh", "gradcheck", "gradgradcheck"}
    | {"inverse", "linalg", "odeint", "odeint_adjoint", "svd"}
)
_EXACTING_PACKAGES = ("botorch", "e3nn", "gpytorch", "pyro", "torchdiffeq", "torchsde")


class Cause(enum.Enum):
    """What brings double precision to an accelerator."""

    ARRAY = "array"
    """A tensor made of an array of double precision."""
    MODULE = "module"
    """A module that is cast to double precision."""
    INPUT = "input"
    """A batch, or what a model is given, that is cast to double precision."""
    DEFAULT = "default"
    """The default dtype."""


@dataclass(frozen=True, slots=True)
class Doubled:
    """How double precision reaches an accelerator, and the call that made a tensor of an array."""

    cause: Cause
    made: cst.Call | None = None


def doubled(module: Module, call: cst.Call) -> Doubled | None:
    """Return how ``call`` brings double precision to an accelerator, unless that seems to be meant;
    else None.
    """
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value in _METHODS and module.qualified(func) is None:
        if not accelerated(module):
            return None
        if func.attr.value == "register_buffer":
            made = _of_array(module, call.args[1].value) if len(call.args) > 1 else None
        else:
            made = _moved(module, call)
        return Doubled(Cause.ARRAY, made) if made is not None else _cast(module, call)
    qualified = module.qualified(func)
    if qualified in _MAKERS:
        sent = _sends(module, call) and accelerated(module) and _of_array(module, call) is call
        return Doubled(Cause.ARRAY, call) if sent else None
    if qualified in _KEEPERS and call.args and accelerated(module) and not _stays(module, call):
        made = _of_array(module, call.args[0].value)
        return Doubled(Cause.ARRAY, made) if made is not None else None
    if qualified in _DEFAULTS and _is_double(module, call) and evidence(module) is Evidence.ACCELERATOR:
        meant = _is_option(module, call) or _is_exacting(module) or _default_changes_back(module, call)
        return None if meant else Doubled(Cause.DEFAULT)
    return None


# --- arrays -----------------------------------------------------------------------------------------


def _of_array(module: Module, tensor: cst.BaseExpression) -> cst.Call | None:
    """Return the call that made a tensor of an array of double precision, and nothing has changed that."""
    value = module.value(tensor)
    made = value.origin
    if value.kind is not Kind.TENSOR or value.dtype != _DOUBLE or not isinstance(made, cst.Call):
        return None
    if module.qualified(made.func) not in _MAKERS or module.argument(made, "dtype").given:
        return None
    return made


def _stays(module: Module, parameter: cst.Call) -> bool:
    """Return whether a parameter is a plain variable outside of modules, which nothing moves with a module:
    ``.to(device)`` would make another tensor of it.
    """
    target = module.tree.parent(parameter)
    names = isinstance(target, cst.Assign) and all(isinstance(e.target, cst.Name) for e in target.targets)
    function = module.function(parameter)
    owner = module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    return names and (owner is None or module.classes.info(owner).kind is not Kind.MODULE)


def _moved(module: Module, call: cst.Call) -> cst.Call | None:
    """Return what ``_of_array`` does, for the tensor that a call moves to the accelerator as it is."""
    assert isinstance(call.func, cst.Attribute)
    move = move_to_accelerator(module, call)
    if move is None or _casts(move):
        return None
    return _of_array(module, call.func.value)


def _casts(move: Move) -> bool:
    return move.dtype is not None or move.dtype_code is not None or move.other is not None


def _sends(module: Module, call: cst.Call) -> bool:
    """Return whether a factory is told to make its tensor on the accelerator."""
    device = module.argument(call, "device")
    if device.node is None or device.constant is None:
        return False
    return not on_host(module, device.node)


# --- casts ------------------------------------------------------------------------------------------


def _cast(module: Module, call: cst.Call) -> Doubled | None:
    """Return a cast of a model, or of what it is given, to double precision."""
    assert isinstance(call.func, cst.Attribute)
    owner = call.func.value
    if call.func.attr.value not in _CASTING_METHODS or not _casts_to_double(module, call):
        return None
    kind = module.value(owner).kind
    if kind is Kind.MODULE:
        cause = Cause.MODULE
        if evidence(module) is not Evidence.ACCELERATOR or _is_self(owner) or _cast_back(module, owner):
            return None
    elif on_device(module, owner) or _comes_from_loader(module, owner):
        cause = Cause.INPUT
        if not _is_input(module, call) or _casts_a_module(module):
            return None
    else:
        return None
    meant = _is_option(module, call) or _is_exacting(module)
    return None if meant else Doubled(cause)


def _casts_to_double(module: Module, call: cst.Call) -> bool:
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "double":
        return not call.args
    return _is_double(module, call)


def _is_double(module: Module, call: cst.Call) -> bool:
    """Return whether one of the arguments is the dtype or tensor type of double precision."""
    for arg in call.args:
        value = module.value(arg.value)
        if value.kind is Kind.DTYPE and value.cls == _DOUBLE:
            return True
        named = value.constant if isinstance(value.constant, str) else value.cls
        if named in _DOUBLE_TYPES:
            return True
    return False


def _is_self(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Name(value="self") | cst.Call(func=cst.Name(value="super")):
            return True
        case _:
            return False


def _cast_back(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether the same module is cast to another dtype as well."""
    spelt = module.source(owner)
    for call in module.tree.nodes(cst.Call):
        func = call.func
        if not isinstance(func, cst.Attribute) or module.source(func.value) != spelt:
            continue
        if func.attr.value in ("float", "half", "bfloat16"):
            return True
    return False


@solved(False)
def _comes_from_loader(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a tensor is part of a batch of a loader, moved or not."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="to" | "cuda"))):
            return _comes_from_loader(module, owner)
        case cst.Name():
            return any(_binds_batch(module, binding) for binding in module.bindings(node))
        case cst.Subscript():
            return _comes_from_loader(module, node.value)
        case _:
            return False


def _binds_batch(module: Module, binding: Binding) -> bool:
    loop = module.names.loop(binding)
    if isinstance(loop, cst.For):
        return places.over_loader(module, loop)
    if binding.kind is BindingKind.ASSIGN and binding.value is not None:
        return _comes_from_loader(module, binding.value)
    return False


def _is_input(module: Module, call: cst.Call) -> bool:
    """Return whether a tensor is a batch of a loader, or goes into a model or loss."""
    assert isinstance(call.func, cst.Attribute)
    if _comes_from_loader(module, call.func.value):
        return True
    node: cst.CSTNode = call
    parent = module.tree.parent(node)
    while isinstance(parent, cst.Attribute) and parent.attr.value in ("to", "cuda", "unsqueeze", "view"):
        outer = module.tree.parent(parent)
        if not isinstance(outer, cst.Call):
            return False
        node, parent = outer, module.tree.parent(outer)
    if not isinstance(parent, cst.Arg):
        return False
    taker = module.tree.parent(parent)
    return isinstance(taker, cst.Call) and module.value(taker.func).kind is Kind.MODULE


def _casts_a_module(module: Module) -> bool:
    """Return whether a module is cast to double precision somewhere: its input follows."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in _CASTING_METHODS
        and module.value(call.func.value).kind is Kind.MODULE
        and _casts_to_double(module, call)
        for call in module.tree.nodes(cst.Call)
    )


# --- what is meant ------------------------------------------------------------------------------------


def _is_option(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it was chosen: ``if args.double: …``,
    or a function or class whose subject is precision.
    """
    branches = module.flow.branches(node, outward=True)
    if any(has(module.source(branch.test), Role.DOUBLE) for branch in branches):
        return True
    return any(
        isinstance(around, (cst.FunctionDef, cst.ClassDef)) and has(around.name.value, Role.DOUBLE)
        for around in module.tree.ancestors(node)
    )


def _is_exacting(module: Module) -> bool:
    """Return whether the file does what takes double precision: linear algebra,
    differential equations, checks.
    """
    return imports(module, _EXACTING_PACKAGES) or not _EXACTING.isdisjoint(identifiers(module))


def _default_changes_back(module: Module, call: cst.Call) -> bool:
    """Return whether the default is set to something else as well."""
    return any(
        other is not call and last_name(other.func) in ("set_default_dtype", "set_default_tensor_type")
        for other in module.tree.nodes(cst.Call)
    )
