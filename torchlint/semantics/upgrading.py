"""The names that libraries gave up, of which the table ``api/upgrades.py`` has the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.upgrades import SYMBOLS, Upgrade
from torchlint.semantics.comments import Topic, above, begins_with
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sinks import Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import last_name, last_words, start_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

GIVEN_UP = last_words(SYMBOLS)
"""The last words of the names that were given up."""

_DEPRECATIONS = frozenset({"DeprecationWarning", "FutureWarning", "PendingDeprecationWarning"})


@dataclass(frozen=True)
class Given:
    """An argument that some release deprecates or lacks, and its row of the table.

    ``name`` is what spells its name: a keyword of the call, or the key of a dictionary that it unpacks.
    """

    node: cst.Arg | cst.DictElement
    name: cst.Name | cst.SimpleString
    row: Upgrade

    @property
    def value(self) -> cst.BaseExpression:
        """What is given."""
        return self.node.value


def upgrade_at(module: Module, node: cst.CSTNode) -> Upgrade | None:
    """Return the row of the table for a name or attribute that is read, whole as it is spelt; else None."""
    if isinstance(node, cst.Name):
        if node.value not in module.names.qualifiable or not module.names.is_read(node):
            return None
    elif not isinstance(node, cst.Attribute) or node.attr.value not in GIVEN_UP:
        return None
    dotted = module.qualified(node) or _beside_stand_in(module, node)
    return SYMBOLS.get(dotted) if dotted is not None else None


def _beside_stand_in(module: Module, name: cst.Name | cst.Attribute) -> str | None:
    """Return what a name means for which the file has a definition of its own in ``except`` or ``else``."""
    meanings: set[str | None] = set()
    flow = module.flow
    for binding in module.bindings(name):
        own = binding.kind in (BindingKind.FUNCTION, BindingKind.CLASS)
        node = binding.node
        instead = next(flow.alternatives(node, outward=True), None) is not None or any(
            not decision.holds for decision in flow.branches(node, outward=True)
        )
        if not (own and instead):
            meanings.add(module.names.bound_name(binding))
    return meanings.pop() if len(meanings) == 1 else None


def only_names(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a name is only mentioned, in an annotation, a comparison or a question for types."""
    found = set(sinks(module, node, _is_mention))
    return True in found and False not in found


_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "getattr"})


def _is_mention(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use asks which class or function something is, and does not use it as such."""
    match use.kind:
        case UseKind.INDEX | UseKind.COMPARED | UseKind.CHOICE | UseKind.TESTED:
            return True
        case UseKind.ARGUMENT:
            if isinstance(module.tree.parent(use.call), cst.Decorator):
                return True  # ``@implements(torch.lu)``
            return isinstance(use.call.func, cst.Name) and use.call.func.value in _ASKING
        case UseKind.OTHER if isinstance(use.part, cst.DictElement):
            return use.part.key is use.node  # ``{F.upsample: count_upsample}``
        case UseKind.OPERAND if isinstance(use.by, cst.BinaryOperation):
            return Standing(use.by)
        case UseKind.ELEMENT if isinstance(use.by, cst.Tuple):
            return Standing(use.by)
    return isinstance(use.by, (cst.Annotation, cst.UnaryOperation))


def is_kept_for_callers(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is part of a function or class that is itself deprecated,
    and only kept for its callers.

    A decorator, a comment above it, the beginning of its docstring or a warning in it says so.
    """
    return any(
        _is_deprecated(module, around)
        for around in module.tree.ancestors(node)
        if isinstance(around, (cst.FunctionDef, cst.ClassDef))
    )


def _is_deprecated(module: Module, definition: cst.FunctionDef | cst.ClassDef) -> bool:
    if any("deprecated" in (last_name(each.decorator) or "").lower() for each in definition.decorators):
        return True
    if any(begins_with(text, Topic.DEPRECATION) for text in above(module, definition)):
        return True
    for line in definition.body.body:
        match line:
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() as string)]):
                if begins_with(string.raw_value, Topic.DEPRECATION):
                    return True
            case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]):
                if any(last_name(arg.value) in _DEPRECATIONS for arg in call.args):
                    return True
    return False


def root_of(node: cst.BaseExpression) -> cst.Name:
    """Return the first name of a dotted one."""
    start = start_of(node, cst.Attribute)
    assert isinstance(start, cst.Name)
    return start


def last_part(dotted: str) -> str:
    """Return the last name of a dotted one."""
    return dotted.rpartition(".")[2]
