"""Where the text of a tensor is shown, which names its graph: ``tensor(0.7, grad_fn=<MeanBackward0>)``.

So does a file in which a tensor is saved.
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
from torchlint.semantics.wholeprogram import shown

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_CONTAINERS = (Kind.LIST, Kind.TUPLE, Kind.DICT)
_SAVING = ("torch.save", "pickle.dump", "pickle.dumps")
_AS_TEXT = re.compile(r"%[-+ #0-9.*]*[sra]")


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
