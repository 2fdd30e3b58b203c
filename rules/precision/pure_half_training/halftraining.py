"""Models that are cast to float16 as a whole and trained so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.identifiers import identifiers, imports, speaks_of
from torchlint.semantics.iterations import Iterations, Subject
from torchlint.semantics.lexicon import Role, has, words
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What keeps weights in float32 beside those of the model, or scales the loss.
_LIBRARIES = (
    *("accelerate", "apex", "bitsandbytes", "colossalai", "deepspeed", "fairscale", "lightning", "megatron"),
    *("peft", "pytorch_lightning"),
)
_HELPING = frozenset({"convert_weights", "convert_models", "FP16_Optimizer", "FP16Optimizer"})
_MASTER = frozenset({"master", "stochastic"})
_HALF = frozenset({"torch.float16", "torch.half"})
_PASSING_ON = frozenset({"cuda", "to", "train", "eval", "requires_grad_", "share_memory"})
_WRAPPERS = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.compile"})


def trained_in_half(module: Module, call: cst.Call) -> cst.Call | None:
    """Return the optimizer of torch for the parameters of a model that ``call`` casts to float16,
    if it is trained.

    ``call`` is ``model.half()``, ``model.to(torch.float16)``, or what loads weights in float16,
    ``Model.from_pretrained(name, torch_dtype=torch.float16)``. None where something keeps the small numbers.
    """
    loads = _loads_in_half(module, call)
    if not (loads or _casts_to_half(module, call)) or _is_helped(module):
        return None
    assert isinstance(call.func, cst.Attribute)
    # What is not known for a module is one if an optimizer takes its `parameters()`, as is asked below.
    owner = Kind.MODULE if loads else module.value(call.func.value).kind
    if owner not in (Kind.MODULE, Kind.UNKNOWN) or evaluated_only(module, call):
        return None
    if not Backpropagation.of(module).passes or _trained_before(module, call):
        return None
    model = _what_holds_it(module, call)
    if model.place is None or _cast_back(module, model):
        return None
    for made in module.tree.nodes(cst.Call):
        value = module.value(made)
        if value.kind is Kind.OPTIMIZER and value.origin is made and _is_of_torch(module, made):
            given = module.argument(made, "params").node
            if given is not None and _takes_parameters(module, given, model):
                return made
    return None


@remembered
def _is_helped(module: Module) -> bool:
    """Return whether something keeps small numbers, by weights in float32, a scaled loss,
    or trains a part.
    """
    if imports(module, _LIBRARIES) or speaks_of(module, Role.SCALER, Role.ADAPTATION):
        return True
    names = identifiers(module)
    if not names.isdisjoint(_HELPING) or any(map(_keeps_small_numbers, names)):
        return True
    return any(_is_copy(call) for call in module.tree.nodes(cst.Call))


def _keeps_small_numbers(name: str) -> bool:
    """Return whether it is ``loss_scale``, ``master_params``."""
    return (has(name, Role.LOSS) and has(name, Role.RATIO)) or not _MASTER.isdisjoint(words(name))


def _is_copy(call: cst.Call) -> bool:
    """Return whether it is ``weight.data.float()``, ``weight.grad.float()``: a copy in float32."""
    match call.func:
        case cst.Attribute(value=cst.Attribute(attr=cst.Name("data" | "grad")), attr=cst.Name("float")):
            return True
        case _:
            return False


def _trained_before(module: Module, call: cst.Call) -> bool:
    """Return whether the function has all its training behind it where it casts the model."""
    function, order = module.function(call), module.tree.order
    steps = [
        order[node]
        for node in module.tree.nodes(cst.Call)
        if module.function(node) is function and Backpropagation.of(module).steps(node)
    ]
    return bool(steps) and max(steps) < order[call]


def _casts_to_half(module: Module, call: cst.Call) -> bool:
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("half")), args=[]):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name("to"))):
            values = [module.value(arg.value) for arg in call.args]
            return any(value.kind is Kind.DTYPE and value.cls in _HALF for value in values)
        case _:
            return False


def _loads_in_half(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``Model.from_pretrained(name, torch_dtype=torch.float16)``;
    ``dtype`` is its name since 4.56.
    """
    if not (isinstance(call.func, cst.Attribute) and call.func.attr.value == "from_pretrained"):
        return False
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value in ("torch_dtype", "dtype"):
            value = module.value(arg.value)
            return value.constant == "float16" or (value.kind is Kind.DTYPE and value.cls in _HALF)
    return False


def _is_of_torch(module: Module, made: cst.Call) -> bool:
    return (module.value(made).cls or "").startswith("torch.optim.")


def _what_holds_it(module: Module, call: cst.Call) -> Subject:
    """Return the variable or attribute that holds the model: that which the result is assigned to,
    or the owner.
    """
    whole: cst.CSTNode = call
    parent = module.tree.parent(whole)
    while True:
        outer = module.tree.parent(parent) if parent is not None else None
        if not isinstance(outer, cst.Call):
            break
        wraps = isinstance(parent, cst.Arg) and parent is outer.args[0]
        if not (
            (isinstance(parent, cst.Attribute) and parent.attr.value in _PASSING_ON)
            or (wraps and module.qualified(outer.func) in _WRAPPERS)
        ):
            break
        whole, parent = outer, module.tree.parent(outer)
    match parent:
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return Iterations.of(module).subject(target, ())
        case _:
            owner: cst.BaseExpression = call
            while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
                owner = owner.func.value
            return Iterations.of(module).subject(owner, ())


def _takes_parameters(module: Module, given: cst.BaseExpression, model: Subject) -> bool:
    """Return whether the parameters that an optimizer gets are all those of a model."""
    match given:
        case cst.Call(func=cst.Attribute(attr=cst.Name("parameters"), value=owner), args=[]):
            return Iterations.of(module).subject(owner, ()).is_certainly(model)
        case cst.Call(func=cst.Name("list"), args=[cst.Arg(value=inner)]):
            return _takes_parameters(module, inner, model)
        case _:
            return False


def _cast_back(module: Module, model: Subject) -> bool:
    """Return whether the model is cast to another dtype somewhere: then it is for evaluation only."""
    for call in module.tree.nodes(cst.Call):
        match call:
            case cst.Call(func=cst.Attribute(attr=cst.Name("float" | "bfloat16" | "double"), value=owner)):
                if Iterations.of(module).subject(owner, ()).is_certainly(model):
                    return True
            case _:
                pass
    return False
