"""Settings of the environment, moved above what has read them too early."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes.layout import Edits
from torchlint.fixes.statements import insert_before, remove_statement
from torchlint.semantics.environmentvariables import Setting

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def moved_up(module: Module, setting: Setting, used: cst.CSTNode) -> Edits | None:
    """Return the edits that set a variable above what has made torch read it, in the same block.

    None where a comment above it would be left behind, or the line holds more than this.
    """
    parent = module.tree.parent(setting.node)
    statement = module.tree.parent(parent) if isinstance(parent, cst.Expr) else parent
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    if any(module.tree.lines_above(statement)):
        return None
    block = module.tree.parent(statement)
    around = (used, *module.tree.ancestors(used))
    target = next((node for node in around if module.tree.parent(node) is block), None)
    if target is None or not isinstance(setting.value, cst.SimpleString):
        return None
    if not _means_the_same(module, setting, target) or not _is_written_out(setting.node):
        return None
    comment = module.tree.comment_behind(statement)
    code = module.source(setting.node) + (f"  {comment}" if comment is not None else "")
    above = insert_before(module, target, code)
    below = remove_statement(module, setting.node)
    return None if above is None or below is None else (*above, *below)


def _is_written_out(node: cst.Assign | cst.Call) -> bool:
    """Return whether everything that a statement sets is text, which is the same wherever it stands."""
    if isinstance(node, cst.Assign):
        return isinstance(node.value, cst.SimpleString)
    return all(not argument.star and _is_text(argument.value) for argument in node.args)


def _is_text(node: cst.BaseExpression) -> bool:
    """Return whether an expression is a text, or a dictionary of texts."""
    if not isinstance(node, cst.Dict):
        return isinstance(node, cst.SimpleString)
    return all(
        isinstance(element, cst.DictElement) and _is_text(element.key) and _is_text(element.value)
        for element in node.elements
    )


def _means_the_same(module: Module, setting: Setting, at: cst.CSTNode) -> bool:
    """Return whether the name of the environment, as the setting spells it,
    is bound at another place, too.
    """
    node = setting.node
    owners = [node.func] if isinstance(node, cst.Call) else [target.target for target in node.targets]
    for owner in owners:
        named = owner.value if isinstance(owner, cst.Subscript) else owner
        qualified = module.qualified(named)
        if qualified is None or module.names.spelling(qualified, at) != module.source(named):
            return False
    return True
