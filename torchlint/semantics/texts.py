"""What is printed, logged or formatted, and where that shows whether a tensor has a graph.

The text of a tensor names its graph: ``tensor(0.7, grad_fn=<MeanBackward0>)``. A tensor that is saved with
its graph differs from one without, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SHOWING_FUNCTIONS = frozenset({"builtins.print", "builtins.str", "builtins.repr", "builtins.format"})
_SHOWING_METHODS = frozenset(
    {"critical", "debug", "error", "exception", "format", "info", "log", "print", "set_description"}
    | {"set_postfix", "set_postfix_str", "warn", "warning", "write", "writelines", "writerow", "writerows"}
)
_LOGARITHMS = ("torch.", "numpy.", "math.", "cmath.")
_CONTAINERS = (Kind.LIST, Kind.TUPLE, Kind.DICT)
_SAVING = ("torch.save", "pickle.dump", "pickle.dumps")
_AS_TEXT = re.compile(r"%[-+ #0-9.*]*[sra]")


def shown(module: Module) -> Iterator[cst.BaseExpression | None]:
    """Yield what is printed or made a text; None for what the file does not spell: ``net.apply(print)``."""
    for call in module.tree.nodes(cst.Call):
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value in _SHOWING_METHODS
        raised = isinstance(module.tree.parent(call), cst.Raise)
        called = module.qualified(call.func) or ""
        if (method and not called.startswith(_LOGARITHMS)) or raised or called in _SHOWING_FUNCTIONS:
            yield from (argument.value for argument in call.args)
    for part in module.tree.nodes(cst.FormattedStringExpression):
        if part.conversion or not part.format_spec:  # which no model takes
            yield part.expression
    for operation in module.tree.nodes(cst.BinaryOperation):
        if isinstance(operation.operator, cst.Modulo) and module.value(operation.left).kind not in (
            Kind.NUMBER,
            Kind.TENSOR,
        ):
            yield operation.right
    for statement in module.tree.nodes(cst.Assert):
        if statement.msg is not None:
            yield statement.msg
    for name in module.tree.nodes(cst.Name):
        if module.qualified(name) in _SHOWING_FUNCTIONS and _is_handed_on(module, name):
            yield None


def _is_handed_on(module: Module, name: cst.Name) -> bool:
    """Return whether a function may be called out of sight: it is no type that something is compared with."""
    parent = module.tree.parent(name)
    if isinstance(parent, cst.Arg):
        call = module.tree.parent(parent)
        asks = isinstance(call, cst.Call) and module.qualified(call.func) == "builtins.isinstance"
        chosen = parent.keyword is not None and parent.keyword.value in ("type", "dtype")
        return parent.value is name and not asks and not chosen
    return isinstance(
        parent, (cst.Assign, cst.NamedExpr, cst.Element, cst.DictElement, cst.Return, cst.Param)
    )


@remembered
def texts_of_graphs(module: Module) -> list[cst.BaseExpression]:
    """Return the expressions that are shown or saved, and hold a tensor with its graph, in source order."""
    carries = Backpropagation.of(module).carries_graph
    saved = (c.args[0].value for c in module.tree.nodes(cst.Call) if c.args and _saves(module, c))
    return sorted(filter(carries, (*_as_texts(module), *saved)), key=module.tree.order.__getitem__)


def _saves(module: Module, call: cst.Call) -> bool:
    return module.qualified(call.func) in _SAVING


def _as_texts(module: Module) -> Iterator[cst.BaseExpression]:
    """Yield what is shown as it is: neither as a number, ``"%.3f" % loss``, nor with a format."""
    for node in shown(module):
        if node is None or module.value(node).kind in (Kind.STRING, Kind.NUMBER):
            continue
        if isinstance(node, cst.BinaryOperation) and module.value(node.left).kind is Kind.STRING:
            continue  # what is formatted is looked at by itself
        parent = module.tree.parent(node)
        # A tensor without dimensions is formatted as the number that it holds.
        if isinstance(parent, cst.FormattedStringExpression) and not parent.conversion:
            if module.value(node).kind not in _CONTAINERS and has_no_dimension(module, node) is not False:
                continue
        template: object = None
        if isinstance(parent, cst.BinaryOperation):
            template = module.value(parent.left).constant
        elif isinstance(parent, cst.Arg) and isinstance(call := module.tree.parent(parent), cst.Call):
            template = module.value(call.args[0].value).constant
            if isinstance(template, str) and "%" not in template:
                template = None
        if not isinstance(template, str) or _AS_TEXT.search(template):
            yield node
