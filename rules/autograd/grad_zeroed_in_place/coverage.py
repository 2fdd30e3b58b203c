"""Whether a step treats gradients of zeros as it treats none: it moves nothing by them, or there are none."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.reach import gathered
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import MISSING, Kind

_PLAIN = frozenset({Kind.NUMBER, Kind.BOOL, Kind.STRING, Kind.NONE, Kind.SHAPE, Kind.DEVICE, Kind.DTYPE})
_ASSIGNING = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.With)
# What a branch may call: it follows from a loss, or says what there is.
_REPORTING = frozenset(
    {"step", "backward", "scale", "unscale_", "update", "zero_grad", "item", "append", "write", "mean"}
    | {"set_postfix", "set_description", "debug", "info", "warning", "log", "add_scalar", "format"}
)
_OF_MODELS = frozenset({"train", "eval", "zero_grad", "parameters", "named_parameters", "state_dict"})
_THROUGH = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "len", "reversed", "isinstance"))
# Groups of parameters may have a momentum or a decay of their own, from the start or later.
_REGROUPED = ("add_param_group", *(f"{q}{name}{q}" for q in "'\"" for name in ("momentum", "weight_decay")))
_HARMLESS = ("builtins.", "math.", "torch.is")
_DIVERTING = (cst.While, cst.Match, cst.Try, cst.TryStar, cst.Break, cst.Continue, cst.Yield)
_CONSTANTS = frozenset({"None", "True", "False"})


def moves_nothing_by_zeros(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether gradients of zeros leave parameters as they are: `SGD` has no momentum, nor a decay.

    ``owner`` is the optimizer, or the model, which any optimizer of the file may move.
    """
    if module.value(owner).kind is Kind.OPTIMIZER:
        return _is_plain(module, module.value(owner).origin)
    made = [call for call in module.tree.nodes(cst.Call) if module.value(call).kind is Kind.OPTIMIZER]
    elsewhere = module.companions("optim")
    return bool(made) and not elsewhere and all(_is_plain(module, call) for call in made)


def _is_plain(module: Module, made: cst.CSTNode | None) -> bool:
    if not isinstance(made, cst.Call):
        return False
    home = module.home(made)
    if home.value(made).cls not in ("torch.optim.SGD", "torch.optim.sgd.SGD"):
        return False
    if home.tree.nodes_within(made, cst.Dict) or home.mentions(*_REGROUPED):
        return False
    asked = [home.argument(made, name) for name in ("momentum", "weight_decay")]
    return all(given.absent or given.constant == 0 for given in asked)


def reaches_every_parameter(module: Module, call: cst.Call) -> bool:
    """Return whether each step certainly computes a gradient of the same parameters as any other.

    ``call`` clears them. Only what is straight counts: one place that clears, no condition that a model or a
    loss depends on, models of torch, or of the program with nothing but the same layers in each pass.
    """
    if len(module.tree.calls_by_name.get("zero_grad", ())) > 1 or module.companions("zero_grad"):
        return False
    if module.mentions("requires_grad", "set_grad_enabled", "add_param_group"):
        return False
    region: cst.CSTNode | None = next(iter(module.flow.loops(call)), module.function(call))
    if not isinstance(region, (cst.For, cst.While, cst.FunctionDef)):
        return False
    if not _is_straight(module, region.body):
        return False
    return all(map(_all_alike, (module, *module.companions("Module"))))


def _is_straight(module: Module, region: cst.CSTNode) -> bool:
    """Return whether nothing in a region, or in functions that it leads to, decides what is computed."""

    def look(body: cst.CSTNode) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
        home = module.home(body)
        onward: list[cst.CSTNode] = []
        for node in home.tree.descendants(body):
            if _stays(home, node):
                continue
            callee = home.callee(node) if isinstance(node, cst.Call) else None
            if callee is None:
                return [node], []
            onward.append(callee.body)
        return [], onward

    return not gathered(region, look, {})


def _stays(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a part of an iteration does not decide by itself what is computed in it."""
    match node:
        case cst.IfExp(body=one, orelse=other) | cst.BooleanOperation(left=one, right=other):
            return _is_test(module, node) or all(module.value(side).kind in _PLAIN for side in (one, other))
        case cst.If() | cst.Match() | cst.Try() | cst.TryStar():
            return all(_only_reports(module, inner) for inner in module.tree.descendants(node))
        case cst.For() | cst.While() | cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
            return not any(
                _may_run_model(module, inner) for inner in module.tree.nodes_within(node, cst.Call)
            )
        case cst.Subscript():
            constant = all(_is_constant(module, element.slice) for element in node.slice)
            return constant or module.value(node.value).kind in (Kind.TENSOR, Kind.NDARRAY)
        case cst.Call():
            return _is_known(module, node)
    return True


def _is_test(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is a test, or an operand of one: its outcome is used for nothing else."""
    match module.flow.condition(node):
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) | cst.Assert(test=test):
            return any(node is part for part in _operands(test))
    return False


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield a test, and what it puts together by its operators."""
    pending = [test]
    while pending:
        part = pending.pop()
        yield part
        match part:
            case cst.BooleanOperation(left=left, right=right):
                pending += (right, left)
            case cst.UnaryOperation(expression=inner):
                pending.append(inner)


def _is_constant(module: Module, index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and module.value(index.value).constant is not MISSING


def _only_reports(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a part of a branch leaves what is computed behind it as it is."""
    if isinstance(node, (cst.Name, cst.Attribute)) and module.value(node).kind is Kind.MODULE:
        return False
    if isinstance(node, cst.AugAssign) or (isinstance(node, cst.Assign) and len(node.targets) == 1):
        return module.value(node.value).kind in _PLAIN
    if isinstance(node, cst.Call):
        named = isinstance(node.func, cst.Attribute) and node.func.attr.value in _REPORTING
        qualified = module.qualified(node.func) or ""
        return named or (
            qualified.startswith(("builtins.", "math.", "torch.is")) and "getattr" not in qualified
        )
    return not isinstance(node, _ASSIGNING)


def _may_run_model(module: Module, call: cst.Call) -> bool:
    """Return whether a call runs a model or a backward pass, or a function of the program, which may."""
    return (
        module.value(call.func).kind is Kind.MODULE
        or module.callee(call) is not None
        or (isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward")
    )


def _is_known(module: Module, call: cst.Call) -> bool:
    """Return whether the same parameters take part in a call each time, if any do.

    A function of the program is not known by the call: that depends on what it does.
    """
    called = module.value(call.func)
    if called.kind is Kind.MODULE:
        return called.definition is not None or (called.cls or "").startswith("torch.nn.")
    if (qualified := module.qualified(call.func)) is not None:
        return qualified != "builtins.getattr" and not qualified.startswith("random.")
    if isinstance(call.func, cst.Attribute):
        owner = module.value(call.func.value)
        if (
            call.func.attr.value in _REPORTING
            or owner.tensorlike
            or owner.kind in (Kind.OPTIMIZER, Kind.SCALER, Kind.SCHEDULER)
        ):
            return True
        if owner.kind is Kind.MODULE and call.func.attr.value in _OF_MODELS:
            return True
    return module.callee(call) is None and all(
        not argument.star and module.value(argument.value).kind in _PLAIN for argument in call.args
    )


# --- models -------------------------------------------------------------------------------------------------


@remembered
def _all_alike(module: Module) -> bool:
    """Return whether the models of a file run the same layers in each pass."""
    return all(
        _runs_the_same(module, method)
        for definition in module.tree.nodes(cst.ClassDef)
        if module.classes.info(definition).kind is Kind.MODULE
        for name, method in module.classes.info(definition).methods.items()
        if name != "__init__"
    )


def _runs_the_same(module: Module, method: cst.FunctionDef) -> bool:
    return not any(_may_differ(module, node) for node in module.tree.descendants(method.body))


def _may_differ(module: Module, node: cst.CSTNode) -> bool:
    match node:
        case cst.If(test=test) | cst.IfExp(test=test) | cst.CompIf(test=test):
            return may_change(module, test)
        case (
            cst.While() | cst.Match() | cst.Try() | cst.TryStar() | cst.Break() | cst.Continue() | cst.Yield()
        ):
            return True
        case cst.BooleanOperation():
            return not _is_test(module, node)
        case cst.Subscript(value=owner) if module.value(owner).kind not in (Kind.TENSOR, Kind.SHAPE):
            return not all(_is_settled(module, element.slice) for element in node.slice)
        case cst.Attribute() if module.value(node).kind is Kind.MODULE:
            return not _is_run(module, node)
        case cst.Call(func=cst.Call() | cst.IfExp()):
            return True
        case cst.Call(func=func):
            return (module.qualified(func) or "").startswith(("random.", "builtins.getattr"))
    return False


def _is_settled(module: Module, index: cst.BaseSlice) -> bool:
    """Return whether the index of a layer is a constant, or what a loop over all of them counts."""
    if isinstance(index, cst.Slice):
        bounds = (index.lower, index.upper, index.step)
        return all(bound is None or isinstance(module.value(bound).constant, int) for bound in bounds)
    assert isinstance(index, cst.Index)
    if isinstance(index.value, cst.Name):
        bindings = module.bindings(index.value)
        loops = (BindingKind.LOOP, BindingKind.COMPREHENSION)
        if bindings and all(binding.kind in loops for binding in bindings):
            return True
    return isinstance(module.value(index.value).constant, (int, str))


def _is_run(module: Module, layer: cst.Attribute) -> bool:
    """Return whether a layer is called, gone through or asked for a part of it where it is named."""
    match module.tree.parent(layer):
        case cst.Call(func=func):
            return func is layer
        case cst.Attribute() | cst.Subscript() | cst.For() | cst.CompFor():
            return True
        case cst.Arg() as argument:
            call = module.tree.parents[argument]
            return isinstance(call, cst.Call) and module.qualified(call.func) in _THROUGH
    return False


def may_change(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether a test asks about more than constants and attributes
    that `__init__` alone sets on ``self``.
    """
    for name in module.tree.nodes_within(test, cst.Name):
        holder = module.tree.parent(name)
        if isinstance(holder, cst.Attribute) and holder.attr is name:
            if any(
                sets_later(module, target.target) for target in module.names.attributes.get(name.value, ())
            ):
                return True
        elif isinstance(holder, cst.Arg) and holder.keyword is name:
            continue
        elif not SelfAttributes.is_self(name):
            if name.value not in _CONSTANTS and module.qualified(name) is None:
                return True
    calls = module.tree.nodes_within(test, cst.Call)
    return not all((module.qualified(call.func) or "").startswith("builtins.") for call in calls)


def sets_later(module: Module, target: cst.CSTNode) -> bool:
    """Return whether an assignment stands outside of ``__init__``."""
    function = module.function(target)
    return not isinstance(function, cst.FunctionDef) or function.name.value != "__init__"
