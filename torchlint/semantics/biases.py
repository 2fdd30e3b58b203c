"""Code that takes biases or norms for granted, which decides whether a bias may go."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.names import BindingKind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


_VISITED = frozenset({BindingKind.LOOP, BindingKind.PARAMETER, BindingKind.COMPREHENSION})


def _tests(around: cst.CSTNode, child: cst.CSTNode) -> list[cst.BaseExpression]:
    """The conditions under which the ``child`` of a node is evaluated."""
    if isinstance(around, (cst.If, cst.IfExp)):
        return [around.test] if child is around.body else []
    if isinstance(around, (cst.ListComp, cst.SetComp, cst.GeneratorExp)) and child is around.elt:
        loop: cst.CompFor | None = around.for_in
        found: list[cst.BaseExpression] = []
        while loop is not None:
            found += [condition.test for condition in loop.ifs]
            loop = loop.inner_for_in
        return found
    return []


class Biases:
    """Where one file reads the biases of layers, and whether it freezes its norms."""

    def __init__(self, module: Module, attributes: SelfAttributes) -> None:
        self.module, self.tree, self.names = module, module.tree, module.names
        self.attributes = attributes

    def bias_needed(self, layer: str) -> bool:
        """Whether code that visits layers one by one takes for granted that ``layer`` has a bias.

        Args:
            layer: the dotted name of the class.
        """
        for attribute in self.attributes.attribute_reads.get("bias", ()):
            owner = attribute.value
            if (
                not isinstance(owner, cst.Name)
                or self.attributes.is_self(owner)
                or self.bias_guarded(attribute)
            ):
                continue
            kinds = {binding.kind for binding in self.names.bindings(owner)}
            if kinds & _VISITED and self._may_be(owner, attribute, layer):
                return True
        return self._looked_up

    @cached_property
    def _looked_up(self) -> bool:
        """Whether a bias is taken out of a dict of parameters: ``state["0.bias"]``."""
        return any(
            isinstance(element.slice, cst.Index)
            and isinstance(element.slice.value, cst.SimpleString)
            and str(element.slice.value.evaluated_value).endswith(".bias")
            for element in self.tree.nodes(cst.SubscriptElement)
        )

    def _may_be(self, owner: cst.Name, at: cst.CSTNode, layer: str) -> bool:
        """Whether the tests around ``at`` admit that ``owner`` is a layer of this class."""
        child: cst.CSTNode = at
        word = next((w for w in ("Conv", "Linear") if w in layer), layer)
        for ancestor in self.tree.ancestors(at):
            for test in _tests(ancestor, child):
                text = self.tree.source(test)
                tests = [
                    node
                    for node in self.tree.descendants(test)
                    if isinstance(node, cst.Call)
                    and self.module.qualified(node.func) == "builtins.isinstance"
                ]
                named = tests or "find(" in text or "__name__" in text or re.search(r"['\"]", text)
                if named and "not " not in text:
                    return word in text or not re.search(r"Norm|Conv|Linear|Embedding|LSTM|GRU", text)
            child = ancestor
        return True

    @cached_property
    def norms_frozen(self) -> bool:
        """Whether some code keeps norms in evaluation mode, so that they no longer take a mean away."""
        for call in self.tree.nodes(cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "eval" or call.args:
                continue
            owner = self.tree.source(func.value)
            if re.search(r"(^|\.|_)(bn|norm|batch_?norm)\w*$", owner, re.IGNORECASE):
                return True
            child: cst.CSTNode = call
            for ancestor in self.tree.ancestors(call):
                if isinstance(ancestor, cst.If) and child is ancestor.body:
                    if re.search(r"norm|\bbn", self.tree.source(ancestor.test), re.IGNORECASE):
                        return True
                child = ancestor
        return False

    def bias_guarded(self, attribute: cst.Attribute) -> bool:
        """Whether ``x.bias`` is only asked for, or stands where it is known not to be None."""
        if self._asks_for_none(self.tree.parent(attribute)):
            return True
        wanted = self.tree.source(attribute)
        child: cst.CSTNode = attribute
        for ancestor in self.tree.ancestors(attribute):
            for test in _tests(ancestor, child):
                if re.search(rf"(?<![\\w.]){re.escape(wanted)}(?![\\w.])", self.tree.source(test)):
                    return True
            if isinstance(ancestor, cst.Try) and child is ancestor.body:
                return True
            child = ancestor
        return False

    def _asks_for_none(self, node: cst.CSTNode | None) -> bool:
        return (
            isinstance(node, cst.Comparison)
            and len(node.comparisons) == 1
            and isinstance(node.comparisons[0].operator, (cst.Is, cst.IsNot))
        )
