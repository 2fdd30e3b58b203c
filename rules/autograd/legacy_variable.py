"""TL310 legacy-variable."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.rule import ERROR, NOTE, Finding, rule
from torchlint.semantics.api.results import FACTORIES, HOST_FACTORIES
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.module import Module
from torchlint.semantics.places import Grad
from torchlint.semantics.values import MISSING, Graph, Kind

_VARIABLE = "torch.autograd.Variable"
_PARAMETERS = ("data", "requires_grad", "volatile")
# What may be put before ``.detach()`` or in the place of a call without parentheses.
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
# What is asked or done of a variable that must not reach the tensor it was made of.
_ASKED = frozenset(
    {"requires_grad", "requires_grad_", "grad", "retain_grad", "volatile", "register_hook", "resize_", "set_"}
    | {"resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_"}
)
# What a function that is given the variable may do so.
_CHANGES = re.compile(
    r"requires_grad|retain_grad|register_hook|\.(?:resize|squeeze|unsqueeze|transpose|set|t)\w*_\("
)
_HOPS = 3


@rule(
    "TL310",
    "legacy-variable",
    severity=NOTE,
    fix="safe",
    on=(cst.Call, cst.Subscript, cst.Assign),
    mentions=("torch", "Variable|volatile|.data[0]"),
)
def legacy_variable(node: cst.Call | cst.Subscript | cst.Assign, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds what is left of the time before torch 0.4, when tensors and variables were different things:
    `torch.autograd.Variable(x)`; the option `volatile=True`; and `loss.data[0]`, where a loss has no
    dimension to index. Other libraries' and the file's own `Variable` are left alone, and so are annotations
    and `isinstance(x, Variable)`.

    A plain `Variable(x)` is advice. `volatile=True` is an error where autograd is on, and so is `[0]` on a
    tensor without dimensions.

    ## Why is this bad?
    A `Variable` is a tensor: the call costs host time, and hides that it cuts the tensor off from its graph,
    as `detach()` does. `volatile=True` used to switch autograd off. It has had no effect since torch 0.4, so
    that the evaluation records a graph and keeps all activations. `loss.data[0]` raises an `IndexError`.

    ## Example
    ```python
    for images, labels in loader:
        images = Variable(images.cuda())
        loss = criterion(model(images), labels)
        total += loss.data[0]
    ```

    ## Use instead
    ```python
    for images, labels in loader:
        images = images.cuda()
        loss = criterion(model(images), labels)
        total += loss.item()
    ```

    ## Fix safety
    Safe: what takes the place of `Variable(x)` is exactly what it gives. That is `x` where the file shows
    that it has no graph and that nobody could tell the two apart: neither is told to need a gradient, asked
    for one, given another size or handed back. Else it is `x.detach()`; `requires_grad=True` becomes
    `.requires_grad_()`. Unsafe where `requires_grad=` may be no bool, and where a `try` around it may be
    there for what is no tensor. The import is left to tools that remove unused ones. `loss.data[0]` becomes
    `loss.item()`: safe for a loss of torch, unsafe where only the name and a `backward()` tell that it is one
    number. No fix for `volatile=True`, since it takes a `with torch.no_grad():` around what follows.

    ## References
    - [Variable (deprecated)](https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated)
    - [PyTorch 0.4.0 migration guide](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
    """
    if isinstance(node, cst.Subscript):
        yield from _indexed(node, module)
    elif isinstance(node, cst.Assign):
        yield from _set_volatile(node, module)
    elif module.qualified(node.func) == _VARIABLE:
        yield from _made(node, module)


_IGNORED = (
    "`volatile` has had no effect since torch 0.4, so that autograd records this; use `torch.no_grad()`"
)


def _made(call: cst.Call, module: Module) -> Iterator[Finding]:
    given = _arguments(call)
    volatile = given.get("volatile") if given is not None else None
    if volatile is not None and module.value(volatile).constant is not False:
        if module.grad(call) is not Grad.OFF:
            yield Finding(call, _IGNORED, severity=ERROR)
            return
    fix = _without(call, given, module) if given is not None else None
    yield Finding(call, "`Variable` has been a tensor since torch 0.4; the call only detaches", fix=fix)


def _arguments(call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What a `Variable` is made with; None if that is not clear."""
    given: dict[str, cst.BaseExpression] = {}
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else ""
        if not name and position < len(_PARAMETERS):
            name = _PARAMETERS[position]
        if arg.star or name not in _PARAMETERS:
            return None
        given[name] = arg.value
    return given if "data" in given else None


def _without(call: cst.Call, given: dict[str, cst.BaseExpression], module: Module) -> Fix | None:
    """What gives the same tensor without the call."""
    data = given["data"]
    value = module.value(data)
    if value.known and not value.tensorlike:
        return None
    code = module.source(data)
    told = given.get("requires_grad")
    constant = module.value(told).constant if told is not None else False
    fresh = _is_fresh(data, module)
    apart = constant is False and not _may_be_told_apart(call, data, module)
    plain = fresh or (apart and _has_no_graph(data, module))
    if (not plain or constant is not False) and not isinstance(data, _TIGHT):
        code = f"({code})"
    if not plain:
        code += ".detach()"
    if constant is True:
        code += ".requires_grad_()"
    elif constant is not False and told is not None:
        code += f".requires_grad_({module.source(told)})"
    if not data.lpar and not isinstance(data, _TIGHT) and code == module.source(data):
        code = f"({code})" if not _stands_alone(call, module) or "\n" in code else code
    match module.tree.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]) as statement if name == code:
            return module.safe("Remove the statement", module.remove_statement(statement))
    # `requires_grad_(1)` raises, and so does `detach` of what is no tensor, but in another way.
    switch = told is None or isinstance(constant, bool) or module.value(told).kind is Kind.BOOL
    sure = switch and (fresh or not _is_tried(call, module))
    make = module.safe if sure else module.unsafe
    return make("Use the tensor itself", module.replace(call, code))


def _stands_alone(call: cst.Call, module: Module) -> bool:
    parent = module.tree.parent(call)
    return isinstance(parent, (cst.Arg, cst.Assign, cst.AnnAssign, cst.Element, cst.Return, cst.Expr))


def _has_no_graph(data: cst.BaseExpression, module: Module) -> bool:
    return module.value(data).graph is Graph.DETACHED and not module.value(data).leaf


def _is_fresh(data: cst.BaseExpression, module: Module) -> bool:
    """Whether an expression makes a tensor object that has no graph and that nothing else holds."""
    if isinstance(data, cst.Attribute) and data.attr.value == "data":
        owner = module.value(data.value)
        return owner.tensorlike or not owner.known
    if module.value(data).graph is not Graph.DETACHED:
        return False
    if isinstance(data, (cst.BinaryOperation, cst.UnaryOperation)):
        return True
    while isinstance(data, cst.Call):
        name = module.qualified(data.func)
        if name is not None:
            if name in ("torch.as_tensor", "torch.asarray"):
                # A tensor comes back as it is.
                given = module.value(data.args[0].value) if data.args else None
                return given is not None and given.known and not given.tensorlike
            return name in FACTORIES or name in HOST_FACTORIES or name == "torch.from_numpy"
        if not isinstance(data.func, cst.Attribute):
            return False
        data = data.func.value
    return False


def _may_be_told_apart(call: cst.Call, data: cst.BaseExpression, module: Module) -> bool:
    """Whether it may matter that a variable and the tensor it was made of are two objects.

    It does where either is told to need a gradient, is asked for one, changes its size or gets an attribute.
    """
    reads: list[cst.CSTNode] = [call]
    if isinstance(data, cst.Name):
        reads += [use for b in module.bindings(data) for use in module.uses(b) if use is not data]
    return any(_is_noticed(read, module) for read in reads)


def _is_noticed(read: cst.CSTNode, module: Module, hops: int = _HOPS) -> bool:
    """Whether what a tensor is used for here depends on which object it is, or changes the object."""
    parent = module.tree.parent(read)
    match parent:
        case cst.Attribute():
            outer = module.tree.parent(parent)
            if isinstance(outer, cst.AssignTarget):
                return True
            return parent.attr.value in _ASKED or (
                parent.attr.value == "data" and _is_noticed(parent, module, hops)
            )
        case cst.Assign():
            return any(_is_noticed_later(target.target, module, hops) for target in parent.targets)
        case cst.AnnAssign() if parent.value is read:
            return _is_noticed_later(parent.target, module, hops)
        case cst.Element():
            target = _unpacked_to(parent, module)
            return target is None or _is_noticed_later(target, module, hops)
        case cst.Arg():
            user = module.tree.parent(parent)
            if not isinstance(user, cst.Call):
                return False
            if module.qualified(user.func) == "builtins.id":
                return True
            function = module.callee(user)
            return (
                isinstance(function, cst.FunctionDef) and _CHANGES.search(module.source(function)) is not None
            )
        case cst.ComparisonTarget():
            return isinstance(parent.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        case cst.Comparison():
            operators = (target.operator for target in parent.comparisons)
            return any(isinstance(o, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for o in operators)
        case cst.Return() | cst.Yield() | cst.DictElement():
            return True
    return False


def _is_noticed_later(target: cst.BaseExpression, module: Module, hops: int) -> bool:
    if not isinstance(target, cst.Name):
        return True
    binding = module.binding_of(target)
    if binding is None or hops <= 0:
        return True
    return any(_is_noticed(use, module, hops - 1) for use in module.uses(binding))


def _unpacked_to(element: cst.Element, module: Module) -> cst.BaseExpression | None:
    """``x`` for the first of ``x, y = Variable(x), Variable(y)``; None for other lists and tuples."""
    display = module.tree.parent(element)
    match module.tree.parent(display) if isinstance(display, cst.Tuple) else None:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() as target)]) if isinstance(
            display, cst.Tuple
        ):
            if len(target.elements) == len(display.elements):
                return target.elements[list(display.elements).index(element)].value
    return None


def _is_tried(call: cst.BaseExpression, module: Module) -> bool:
    """Whether the function catches what the call may raise."""
    child: cst.CSTNode = call
    for parent in module.tree.ancestors(call):
        if isinstance(parent, cst.Try) and child is parent.body and parent.handlers:
            return True
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return False
        child = parent
    return False


def _set_volatile(node: cst.Assign, module: Module) -> Iterator[Finding]:
    for target in node.targets:
        owner = target.target
        if not isinstance(owner, cst.Attribute) or owner.attr.value != "volatile":
            continue
        wanted = module.value(node.value).constant
        if wanted is True or wanted is MISSING:
            if module.value(owner.value).kind is Kind.TENSOR and module.grad(node) is not Grad.OFF:
                yield Finding(owner, _IGNORED, severity=ERROR)


def _indexed(node: cst.Subscript, module: Module) -> Iterator[Finding]:
    """`loss.data[0]`, read."""
    match node:
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name("data"), value=owner),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer("0")))],
        ):
            pass
        case _:
            return
    parent = module.tree.parent(node)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del, cst.Attribute, cst.Subscript)):
        if not (isinstance(parent, cst.AugAssign) and parent.value is node):
            return
    scalar = has_no_dimension(module, owner)
    if scalar is False or _is_tried(node, module):
        return
    code = f"{module.source(owner)}.item()"
    make = module.safe if scalar else module.unsafe
    fix = make(f"Replace by `{code}`", module.replace(node, code))
    name = module.source(owner)
    message = (
        f"`{name}` is one number without a dimension, so that `[0]` raises an IndexError since torch 0.5"
    )
    yield Finding(node, message, fix=fix, severity=ERROR)
