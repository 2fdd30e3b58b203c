"""The interface of the expression evaluator, as the parts that it uses see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import libcst as cst

from torchlint.semantics.classes import Classes
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.names import Binding, Names
from torchlint.semantics.values import Value
from torchlint.syntax import SyntaxTree


class Evaluator(Protocol):
    """What its parts, each for one sort of expression, ask of the evaluator."""

    tree: SyntaxTree
    names: Names
    classes: Classes
    fixpoint: Fixpoint[Any, Any]
    grad_off: Callable[[cst.CSTNode], bool]

    def value(self, node: cst.CSTNode) -> Value:
        """Return what an expression can be."""

    def binding(self, binding: Binding) -> Value:
        """Return what one definition binds its name to."""

    def attribute(self, base: Value, attr: str) -> Value:
        """Return the value of ``base.attr``."""

    def iterated(self, value: Value) -> Value:
        """Return what ``for x in value`` gives ``x``."""

    def element(self, value: Value, index: int | None = None) -> Value:
        """Return the value of ``value[index]``."""

    def held_under(self, base: Value, key: cst.BaseExpression) -> Value | None:
        """Return what a dict has under a key; None if that is not known."""

    def returned(self, function: Function) -> Value:
        """Return what a function of the file returns."""

    def instance(self, definition: cst.ClassDef) -> Value:
        """Return an instance of a class of the file."""
