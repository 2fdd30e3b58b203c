"""The interface of the expression evaluator, as the parts that it uses see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

import libcst as cst

from torchlint.effort import Effort
from torchlint.semantics.classes import Classes
from torchlint.semantics.declared import Declared
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.linked import Target
from torchlint.semantics.names import Binding, Names
from torchlint.semantics.values import UNKNOWN, Value
from torchlint.syntax import SyntaxTree

Each = TypeVar("Each")

FEW = 8
"""The join of more values than these is computed once for all places that ask for it."""


class Evaluator(Protocol):
    """What its parts, each for one sort of expression, ask of the evaluator."""

    tree: SyntaxTree
    names: Names
    classes: Classes
    effort: Effort
    fixpoint: Fixpoint[Any, Any]
    declared: Declared | None
    grad_off: Callable[[cst.CSTNode], bool]

    def value(self, node: cst.CSTNode) -> Value:
        """Return what an expression can be."""

    def binding(self, binding: Binding) -> Value:
        """Return what one definition binds its name to."""

    def imported(self, node: cst.CSTNode, target: Target) -> Value:
        """Return what an import brings from another file of the project."""

    def proven(self, node: cst.Name | cst.Attribute, value: Value = UNKNOWN) -> Value | None:
        """Return what ``isinstance`` proves something to be where it is read."""

    def attribute(self, base: Value, attr: str) -> Value:
        """Return the value of ``base.attr``."""

    def iterated(self, value: Value) -> Value:
        """Return what ``for x in value`` gives ``x``."""

    def element(self, value: Value, index: int | None = None) -> Value:
        """Return the value of ``value[index]``."""

    def unpacked(self, value: Value, path: Sequence[int | None]) -> Value:
        """Return what assigning a value gives the target at ``path``, as in `Binding.path`."""

    def held_under(self, base: Value, key: cst.BaseExpression) -> Value | None:
        """Return what a dict has under a key; None if that is not known."""

    def called(self, node: cst.Call) -> Value:
        """Return what a call runs."""

    def call_of(self, callee: Value, node: cst.Call) -> Value:
        """Return what calling ``callee`` at ``node`` gives."""

    def returned(self, function: Function) -> Value:
        """Return what a function of the file returns."""

    def instance(self, definition: cst.ClassDef) -> Value:
        """Return an instance of a class of the file."""

    def joined(
        self, question: str, node: cst.CSTNode, parts: Collection[Each], value: Callable[[Each], Value]
    ) -> Value:
        """Return the join of the values of some parts; that of many is computed once for all who ask."""

    def once(self, question: str, node: cst.CSTNode, work_out: Callable[[], Value]) -> Value:
        """Return an answer that many places ask for, worked out once for each question and node."""


class EvaluatorPart:
    """A part of the evaluator, for one sort of expression of one file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.value = evaluator.value
        self.tree = evaluator.tree
        self.names = evaluator.names
        self.link = evaluator.names.link
        self.classes = evaluator.classes
        self.effort = evaluator.effort
        self.fixpoint = evaluator.fixpoint
