"""Code that takes biases or norms for granted, which decides whether a bias may go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.guards import Guard, guards, unchanged
from torchlint.semantics.identifiers import named
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Part
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Through, every, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path


_VISITED = frozenset({BindingKind.LOOP, BindingKind.PARAMETER, BindingKind.COMPREHENSION})


class Biases(Part):
    """Where one file reads the biases of layers, and whether it freezes its norms."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self.attributes = SelfAttributes.of(module)

    def bias_needed(self, layer: str) -> bool:
        """Return whether code that visits layers one by one takes for granted that ``layer`` has a bias.

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
        """Return whether a name stands for a layer that code picks:
        ``getattr(net, name)``, ``net.layers[i]``.
        """
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
        """Return whether a call gets the bias that an argument names, whether there is one or not."""
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
        """Return whether the tests around ``at`` admit that ``owner`` is a layer of this class."""
        return all(self._admits(guard, owner, layer) for guard in guards(self.module, at))

    def _admits(self, guard: Guard, owner: cst.Name, layer: str) -> bool:
        """Return whether the outcome of a test leaves it open that ``owner`` is a layer of this class."""
        test, word = guard.test, next((w for w in ("Conv", "Linear") if w in layer), layer)
        match test:
            case cst.Call(args=[cst.Arg(value=asked), cst.Arg(value=classes)]) if (
                self.module.qualified(test.func) == "builtins.isinstance"
            ):
                if not unchanged(self.module, asked, owner):
                    return True
                if guard.holds:
                    return _may_name(self.tree.source(classes), word)
                parts = [e.value for e in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
                return all(self.module.qualified(part) != layer for part in parts)
        if not self._is_about(test, owner):
            return True
        text = self.tree.source(test)
        by_name = "__name__" in text or "type(" in text or re.search(r"['\"]", text)
        return not by_name or _denies(test) is guard.holds or _may_name(text, word)

    def _is_about(self, test: cst.BaseExpression, owner: cst.Name) -> bool:
        """Return whether a test asks about a layer, about its name,
        or about the name that it was found under.
        """
        ours = self.names.bindings(owner)
        asked = list(self._definitions(test))
        for bindings in tuple(asked):
            for binding in bindings:
                if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    asked += self._definitions(binding.value)
        return any(
            theirs == ours or any(_found_under(name, layer) for name in theirs for layer in ours)
            for theirs in asked
        )

    def _definitions(self, node: cst.BaseExpression) -> Iterator[tuple[Binding, ...]]:
        """Yield the definitions of each name in an expression."""
        for name in self.tree.descendants(node):
            if isinstance(name, cst.Name) and (bindings := self.names.bindings(name)):
                yield bindings

    @cached_property
    def norms_frozen(self) -> bool:
        """Whether some code keeps norms in evaluation mode, so that they no longer take a mean away."""
        for call in self.tree.nodes(cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "eval" or call.args:
                continue
            if has(last_name(func.value), Role.NORMALIZATION):
                return True
            tests = (guard.test for guard in guards(self.module, call) if guard.holds)
            if any(has(name, Role.NORMALIZATION) for test in tests for name in named(self.module, test)):
                return True
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

    @property
    def read(self) -> bool:
        """Whether the file reads the bias of anything, or asks whether there is one."""
        return bool(self.attributes.attribute_reads.get("bias"))

    def bias_guarded(self, attribute: cst.Attribute) -> bool:
        """Return whether ``x.bias`` is only asked for, or stands where it is known not to be None."""
        return self._known_present(attribute, attribute) or False not in verdicts(
            self.module, attribute, self._is_guarded
        )

    def _known_present(self, bias: cst.BaseExpression, at: cst.CSTNode) -> bool:
        """Return whether what was tested before a place says that ``bias`` is not None there."""
        return any(self._says_present(guard, bias) for guard in guards(self.module, at))

    def _says_present(self, guard: Guard, bias: cst.BaseExpression) -> bool:
        match guard.test:
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator, right)]):
                if not isinstance(operator, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
                    return False
                absent = isinstance(operator, (cst.Is, cst.Equal))
                if self.module.value(right).kind is Kind.NONE:
                    return absent is not guard.holds and every(_is_same(self.module, left, bias))
                return False
            case cst.Call(args=[cst.Arg(value=asked), _]) if (
                self.module.qualified(guard.test.func) == "builtins.isinstance"
            ):
                return guard.holds and every(_is_same(self.module, asked, bias))
        return guard.holds and every(_is_same(self.module, guard.test, bias))

    def _is_guarded(self, module: Module, use: Use) -> Verdict[bool]:
        """Return whether a use only asks for None, or stands, by the name that it gives,
        where it is known.
        """
        if isinstance(use.node, cst.Name) and self._known_present(use.node, use.node):
            return True
        match use.kind:
            case UseKind.TESTED:
                return True
            case UseKind.COMPARED if isinstance(use.by, cst.Comparison):
                operator, right = use.by.comparisons[0].operator, use.by.comparisons[0].comparator
                if isinstance(operator, (cst.Is, cst.IsNot)):
                    return True
                asks = isinstance(operator, (cst.Equal, cst.NotEqual)) and use.node is use.by.left
                return asks and module.value(right).kind is Kind.NONE
            case UseKind.CHOICE if isinstance(use.by, cst.BooleanOperation):
                return True if use.by.left is use.node else ONWARD
            case UseKind.ARGUMENT:
                return module.qualified(use.call.func) in ("builtins.isinstance", "builtins.bool")
            case UseKind.ASSIGNED:
                return ONWARD
        return False


@traced(Through.NOTHING)
def _is_same(module: Module, tested: cst.CSTNode, path: Path, bias: cst.BaseExpression) -> bool | None:
    """Return whether what a test asks about is this bias: as ``x.bias``, by ``getattr``, or under a name."""
    match tested:
        case cst.NamedExpr(target=target):
            if isinstance(bias, cst.Name):
                return module.bindings(bias) == (module.binding_of(target),)
            return None
        case cst.Call(args=[cst.Arg(value=owner), cst.Arg(value=name), cst.Arg(value=default)]) if (
            module.qualified(tested.func) == "builtins.getattr"
        ):
            return (
                isinstance(bias, cst.Attribute)
                and module.value(name).constant == bias.attr.value
                and module.value(default).kind is Kind.NONE
                and unchanged(module, owner, bias.value)
            )
        case cst.Name() if not isinstance(bias, cst.Name):
            return None
    return isinstance(tested, cst.BaseExpression) and unchanged(module, tested, bias)


def _found_under(name: Binding, layer: Binding) -> bool:
    """Return whether a loop gives a layer and the name of it: ``for name, layer in net.named_modules()``."""
    pairs = name.value
    if pairs is None or pairs is not layer.value or name.path[:-1] != layer.path[:-1]:
        return False
    while isinstance(pairs, cst.Call) and isinstance(pairs.func, cst.Name) and pairs.args:
        pairs = pairs.args[0].value  # enumerate(…), list(…)
    method = last_name(pairs) or ""
    return isinstance(pairs, cst.Call) and (method.startswith("named_") or method == "items")


_KINDS = ("Norm", "Conv", "Linear", "Embedding", "LSTM", "GRU")
"""What stands in the names of the layers of torch."""


def _may_name(text: str, word: str) -> bool:
    """Return whether what names classes may name this one: unless it names others only."""
    return word in text or not any(kind in text for kind in _KINDS)


def _denies(test: cst.BaseExpression) -> bool:
    """Return whether a comparison is true of what does not have the name in it:
    ``name.find("Conv") == -1``.
    """
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator, right)]):
            negative = isinstance(operator, (cst.NotEqual, cst.IsNot, cst.NotIn))
            if isinstance(operator, (cst.LessThan, cst.LessThanEqual)):
                return True
            return negative is not isinstance(right, cst.UnaryOperation)
    return False
