"""Words for the edits that spare a wait: what a rule advises where it cannot make the edit itself.

Each is a part of a sentence, or a whole one without a full stop, with code in backticks that names the
reader's own variables where they are short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.synchronisation import written_arguments
from torchlint.semantics.throttling import FUNCTIONS

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_SHORT, _LONG = 40, 60


def code_of(module: Module, node: cst.CSTNode, otherwise: str) -> str:
    """The source of ``node`` in backticks if it is short and on one line; else ``otherwise``."""
    code = module.source(node)
    return f"`{code}`" if len(code) <= _SHORT and "\n" not in code and "`" not in code else otherwise


def now_and_then(hot: Hot) -> str:
    """When to do what waits: "where `i % 100 == 0`", by the loop's own counter."""
    return f"where `{counter_of(hot)} % 100 == 0`"


def counter_of(hot: Hot) -> str:
    """The variable that counts the rounds of a hot loop; ``step`` where none does."""
    match hot.loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            return name
        case cst.For(target=cst.Name(value=name), iter=cst.Call(func=cst.Name(value="range"))) if name != "_":
            return name
    return "step"


def without_graph(module: Module, tensor: cst.BaseExpression, *, copied: bool = False) -> str:
    """What keeps a tensor without its graph, "`loss.detach()`"; a copy if the tensor is written to later."""
    code = module.source(tensor)
    if not isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) and not tensor.lpar:
        code = f"({code})"
    if not code.endswith((".detach()", ".data")):
        code += ".detach()"
    if copied:
        code += ".clone()"
    return f"`{code}`" if len(code) <= _LONG and "\n" not in code else "the tensor, with `.detach()`,"


def runs_as_function(hot: Hot) -> bool:
    """Whether a place is hot because its function is called at every step, by code that is not seen."""
    return isinstance(hot.loop, FUNCTIONS)


def in_forward(hot: Hot) -> bool:
    """Whether a place is hot because it belongs to a forward pass."""
    return isinstance(hot.loop, cst.FunctionDef) and hot.loop.name.value == "forward"


def shown(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a value is made in the text or chart that its own statement writes out for people."""
    for outer in module.tree.ancestors(node):
        match outer:
            case cst.FormattedString():
                return True
            case cst.BinaryOperation(operator=cst.Modulo(), left=cst.SimpleString()):
                return True
            case cst.Call():
                if any(_holds(module, part, node) for part in written_arguments(module, outer)):
                    return True
            case cst.BaseSmallStatement() | cst.BaseStatement():
                return False
    return False


def decides(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a value is part of the condition of a statement or of a ternary."""
    child: cst.CSTNode = node
    for outer in module.tree.ancestors(node):
        if isinstance(outer, (cst.If, cst.While, cst.IfExp, cst.Assert)) and child is outer.test:
            return True
        if isinstance(outer, (cst.BaseSmallStatement, cst.BaseStatement)):
            return False
        child = outer
    return False


def small_statement(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """The ``return``, assignment or expression that ``node`` is part of; a compound statement if in none."""
    for outer in module.tree.ancestors(node):
        if isinstance(outer, (cst.BaseSmallStatement, cst.BaseStatement)):
            return outer
    return node


def _holds(module: Module, part: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    return part is node or any(outer is part for outer in module.tree.ancestors(node))
