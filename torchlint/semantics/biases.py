"""Code that takes biases or norms for granted, which decides whether a bias may go."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.values import Kind

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
            bindings = self.names.bindings(owner)
            visited = any(binding.kind in _VISITED or self._is_picked(binding) for binding in bindings)
            if visited and self._may_be(owner, attribute, layer):
                return True
        return self._looked_up

    def _is_picked(self, binding: Binding) -> bool:
        """Whether a name stands for a layer that code picks: ``getattr(net, name)``, ``net.layers[i]``."""
        match binding.value:
            case cst.Call(func=func) if not binding.path:
                return self.module.qualified(func) == "builtins.getattr"
            case cst.Subscript():
                return not binding.path
        return False

    @cached_property
    def _looked_up(self) -> bool:
        """Whether a bias is taken by its name: ``state["0.bias"]``, ``getattr(conv, "bias").zero_()``."""
        for string in self.tree.nodes(cst.SimpleString):
            text = string.evaluated_value
            if not isinstance(text, str) or not text.endswith("bias"):
                continue
            around = self.tree.parent(string)
            if isinstance(around, cst.Index):
                if text.endswith(".bias"):
                    return True
            elif isinstance(around, cst.Arg):
                call = self.tree.parent(around)
                if isinstance(call, cst.Call) and self._takes(call, around, text):
                    return True
        return False

    def _takes(self, call: cst.Call, name: cst.Arg, text: str) -> bool:
        """Whether a call gets the bias that an argument names, whether there is one or not."""
        function = self.module.qualified(call.func) or ""
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "get_parameter":
            return True
        if function == "builtins.getattr" and text == "bias" and len(call.args) == 2:
            target = self.tree.parent(call)
            return isinstance(target, cst.Attribute)
        if function.startswith(("torch.nn.utils.", "torch.ao.")):
            return text == "bias" or text.endswith(".bias")
        return False

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

    @cached_property
    def norms_replaced(self) -> bool:
        """Whether some code puts other layers into finished models: ``setattr(net, name, nn.Identity())``."""
        for call in self.tree.nodes(cst.Call):
            if self.module.qualified(call.func) == "builtins.setattr" and len(call.args) == 3:
                if self.attributes.is_self(call.args[0].value):
                    continue
                if self.module.value(call.args[2].value).kind is Kind.MODULE:
                    return True
        for assign in self.tree.nodes(cst.Assign):
            match assign.targets[0].target:
                case cst.Subscript(value=cst.Attribute(attr=cst.Name("_modules"), value=owner)):
                    if not self.attributes.is_self(owner):
                        return True
                case _:
                    pass
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
