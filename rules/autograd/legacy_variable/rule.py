"""TL310 legacy-variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, remove_statement, replace
from torchlint.rule import ERROR, NOTE, Finding, rule
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module
from torchlint.semantics.names import dotted_text
from torchlint.semantics.values import MISSING, Graph, Kind

from .identity import is_fresh, may_be_told_apart

_VARIABLE = "torch.autograd.Variable"
_PARAMETERS = ("data", "requires_grad", "volatile")
# What may be put before ``.detach()`` or in the place of a call without parentheses.
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


@rule(
    "TL310",
    "legacy-variable",
    severity=NOTE,
    fix="safe",
    measured=False,
    on=(cst.Call, cst.Subscript, cst.Assign),
    mentions=("torch", "Variable|volatile|.data[0]"),
    remedy="Use the tensor itself, with `.detach()` if it may have an autograd graph",
)
def legacy_variable(node: cst.Call | cst.Subscript | cst.Assign, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds remnants of the time before torch 0.4, when tensors and variables were different types:
    `torch.autograd.Variable(x)`, the option `volatile=True`, and `loss.data[0]`, which indexes a 0-dim loss.
    The rule ignores a `Variable` of another library or of the file itself, annotations, and
    `isinstance(x, Variable)`.

    A plain `Variable(x)` gets a note. `volatile=True` is an error where autograd is on, and so is `[0]` on a
    0-dim tensor.

    ## Why is this bad?
    `Variable(x)` returns a tensor. The call costs host time and hides that the result is detached from its
    graph, as with `detach()`. `volatile=True` used to turn autograd off. It has had no effect since torch
    0.4: evaluation records a graph and saves all activations. `loss.data[0]` raises an `IndexError`.

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
    Safe: the replacement is exactly what `Variable(x)` returns. That is `x` where the file shows that it
    has no graph and that the program cannot tell the two apart: neither is set to require a gradient, asked
    for a gradient, resized or returned. Otherwise, and in a custom backward pass, it is `x.detach()`, and
    `requires_grad=True` becomes `.requires_grad_()`. The fix is unsafe where `requires_grad=` may not be a
    bool, where a surrounding `try` may be there for arguments that are not tensors, and where the program has
    classes of tensors of its own, of which `Variable` makes plain ones.

    A statement that would only assign names to themselves, such as `x, y = Variable(x), Variable(y)`, is
    removed. The import of `Variable` is removed with its last use, unless another file may import the name
    from this one. `loss.data[0]` becomes `loss.item()`: safe for a loss of torch, unsafe where only the name
    and a call of `backward()` suggest that it is a scalar. There is no fix for `volatile=True`, because the
    code that follows needs a `with torch.no_grad():` block.

    ## References
    - [Variable (deprecated)](https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated)
    - [PyTorch 0.4.0 migration guide](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
    """
    if isinstance(node, cst.Subscript):
        yield from _indexed(module, node)
    elif isinstance(node, cst.Assign):
        yield from _set_volatile(module, node)
    elif module.qualified(node.func) == _VARIABLE:
        yield from _made(module, node)


_IGNORED = "`volatile` has no effect since torch 0.4, so autograd records this; use `torch.no_grad()`"


def _made(module: Module, call: cst.Call) -> Iterator[Finding]:
    given = _arguments(call)
    volatile = given.get("volatile") if given is not None else None
    if volatile is not None and module.value(volatile).constant is not False:
        if grad(module, call) is not Grad.OFF:
            remedy = "Use the tensor itself, and wrap the computation in `with torch.no_grad():`"
            yield Finding(call, _IGNORED, severity=ERROR, remedy=remedy)
            return
    told, remedy = "a detached tensor, like `.detach()`", ""
    wanted = _wanted(call, given)
    differentiated = None if wanted is None else module.value(wanted).constant
    if wanted is not None and differentiated is not False:
        setting = "" if differentiated is True else dotted_text(wanted) or "…"
        told = f"what `.detach().requires_grad_({setting})` does"
        remedy = f"Use `.detach().requires_grad_({setting})` instead"
    yield Finding(
        call,
        f"`Variable` is obsolete since torch 0.4: it returns {told}",
        fix=_without(module, call),
        remedy=remedy or None,
    )


def _wanted(call: cst.Call, given: dict[str, cst.BaseExpression] | None) -> cst.BaseExpression | None:
    """Return what a `Variable` gets for `requires_grad`, beside other arguments that are not clear, too."""
    if given is not None:
        return given.get("requires_grad")
    named = (arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "requires_grad")
    return next((arg.value for arg in named), None)


def _arguments(call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """Return what a `Variable` is made with; None if that is not clear."""
    given: dict[str, cst.BaseExpression] = {}
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else ""
        if not name and position < len(_PARAMETERS):
            name = _PARAMETERS[position]
        if arg.star or name not in _PARAMETERS:
            return None
        given[name] = arg.value
    return given if "data" in given else None


@dataclass(frozen=True, slots=True)
class _Instead:
    """The code that gives the same tensor as a `Variable`, and whether that is certain."""

    code: str
    sure: bool


def _without(module: Module, call: cst.Call) -> Fix | None:
    """Return what gives the same tensor without the call; where names then get themselves,
    without the statement.
    """
    instead = _instead(module, call)
    if instead is None:
        return None
    statement = module.tree.parent(call)
    if isinstance(statement, cst.Element):
        statement = module.tree.parent(module.tree.parent(statement) or statement)
    if isinstance(statement, cst.Assign):
        needless = _renewed(module, statement)
        if needless is not None:
            risk = None if all(each.sure for each in needless) else _NO_TENSOR
            return graded(module, "Remove the statement", remove_statement(module, statement), risk=risk)
    risk = None if instead.sure else _NO_TENSOR
    return graded(module, "Use the tensor itself", replace(module, call, instead.code), risk=risk)


_NO_TENSOR = "the code may rely on `Variable` to convert or reject other values"


def _renewed(module: Module, statement: cst.Assign) -> list[_Instead] | None:
    """Return what takes the place of the calls by which a statement sets names to themselves;
    None if it does not.

    ``x, y = Variable(x), Variable(y)``
    """
    if len(statement.targets) != 1:
        return None
    match statement.targets[0].target, statement.value:
        case (cst.Tuple() | cst.List()) as names, (cst.Tuple() | cst.List()) as values:
            targets: list[cst.BaseExpression] = [each.value for each in names.elements]
            sources: list[cst.BaseExpression] = [each.value for each in values.elements]
            if any(isinstance(each, cst.StarredElement) for each in (*names.elements, *values.elements)):
                return None
        case name, value:
            targets, sources = [name], [value]
    if len(targets) != len(sources):
        return None
    needless: list[_Instead] = []
    for target, source in zip(targets, sources, strict=True):
        if not isinstance(target, cst.Name):
            return None
        if isinstance(source, cst.Call) and module.qualified(source.func) == _VARIABLE:
            instead = _instead(module, source)
            if instead is None or instead.code != target.value:
                return None
            needless.append(instead)
        elif not (isinstance(source, cst.Name) and source.value == target.value):
            return None
    return needless


_SUBCLASSING = ("as_subclass", "_make_subclass", "_make_wrapper_subclass")


def _instead(module: Module, call: cst.Call) -> _Instead | None:
    given = _arguments(call)
    if given is None:
        return None
    data = given["data"]
    value = module.value(data)
    if value.known and not value.tensorlike:
        return None
    code = module.source(data)
    told = given.get("requires_grad")
    constant = module.value(told).constant if told is not None else False
    fresh = is_fresh(module, data)
    apart = constant is False and not may_be_told_apart(module, call, data)
    plain = (fresh or (apart and _has_no_graph(module, data))) and not _in_backward(module, call)
    if (not plain or constant is not False) and not isinstance(data, _TIGHT):
        code = f"({code})"
    if not plain:
        code += ".detach()"
    if constant is True:
        code += ".requires_grad_()"
    elif constant is not False and told is not None:
        code += f".requires_grad_({module.source(told)})"
    if not module.tree.takes_dot(data) and code == module.source(data):
        code = f"({code})" if not _stands_alone(module, call) or "\n" in code else code
    # `requires_grad_(1)` raises, and so does `detach` of what is no tensor, but in another way.
    switch = told is None or isinstance(constant, bool) or module.value(told).kind is Kind.BOOL
    sure = switch and (fresh or not any(module.tree.handlers(call)))
    # `Variable` makes a plain tensor of one of a class of the program's own.
    sure = sure and not module.mentions(*_SUBCLASSING)
    return _Instead(code, sure)


def _stands_alone(module: Module, call: cst.Call) -> bool:
    parent = module.tree.parent(call)
    return isinstance(parent, (cst.Arg, cst.Assign, cst.AnnAssign, cst.Element, cst.Return, cst.Expr))


def _has_no_graph(module: Module, data: cst.BaseExpression) -> bool:
    return module.value(data).graph is Graph.DETACHED and not module.value(data).leaf


def _in_backward(module: Module, call: cst.Call) -> bool:
    """Return whether the call is in a custom backward pass, which has a graph under ``create_graph=True``."""
    function = module.tree.enclosing(call, cst.FunctionDef)
    return isinstance(function, cst.FunctionDef) and function.name.value == "backward"


def _set_volatile(module: Module, node: cst.Assign) -> Iterator[Finding]:
    for target in node.targets:
        owner = target.target
        if not isinstance(owner, cst.Attribute) or owner.attr.value != "volatile":
            continue
        wanted = module.value(node.value).constant
        if wanted is True or wanted is MISSING:
            if module.value(owner.value).kind is Kind.TENSOR and grad(module, node) is not Grad.OFF:
                remedy = "Remove the assignment, and wrap the computation in `with torch.no_grad():`"
                yield Finding(owner, _IGNORED, severity=ERROR, remedy=remedy)


def _indexed(module: Module, node: cst.Subscript) -> Iterator[Finding]:
    """Yield `loss.data[0]`, read."""
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
    if scalar is False or any(module.tree.handlers(node)):
        return
    code = f"{module.source(owner)}.item()"
    name = module.source(owner)
    risk = None if scalar else "fails if the tensor has more than one element"
    fix = graded(module, f"Replace with `{code}`", replace(module, node, code), risk=risk)
    message = f"`{name}` is a 0-dim tensor, so indexing it with `[0]` raises an `IndexError`"
    yield Finding(node, message, fix=fix, severity=ERROR)
