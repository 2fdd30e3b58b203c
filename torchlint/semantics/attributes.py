"""What the methods of a class set on ``self`` and read from it, by name or by a name that code makes.

``setattr(self, f"conv{i}", ...)`` and ``self.add_module(...)`` count; a class is taken together with its
bases and subclasses in the file, since they share the object.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.module import Part
from torchlint.semantics.names import AttributeBinding, BindingKind
from torchlint.semantics.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


class SelfAttributes(Part):
    """The attributes of ``self`` in the classes of one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names

    def enclosing_class(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class whose ``self`` a method around ``node`` has."""
        function = self.tree.enclosing(node, cst.FunctionDef)
        while function is not None:
            above = self.tree.parent(self.tree.parent(function) or function)
            if isinstance(above, cst.ClassDef):
                return above
            function = self.tree.enclosing(function, cst.FunctionDef)
        return None

    @staticmethod
    def is_self(node: cst.CSTNode) -> bool:
        """Return whether an expression is ``self``, going by its name."""
        return isinstance(node, cst.Name) and node.value == "self"

    def self_class(self, attribute: cst.CSTNode | None) -> cst.ClassDef | None:
        """Return the class of ``self`` in ``self.x``; None for any other expression."""
        if isinstance(attribute, cst.Attribute) and self.is_self(attribute.value):
            return self.enclosing_class(attribute)
        return None

    @remembered
    def family(self, owner: cst.ClassDef) -> tuple[cst.ClassDef, ...]:
        """Return the class with its bases and subclasses in this file: they share what is set on ``self``."""
        classes = self.module.classes
        related = dict.fromkeys(info.node for info in classes.info(owner).lineage)
        return tuple(related | dict.fromkeys(classes.heirs(owner)))

    @cached_property
    def attribute_reads(self) -> dict[str, list[cst.Attribute]]:
        """Every attribute expression by name, the targets of assignments left out."""
        found: dict[str, list[cst.Attribute]] = {}
        targets = {b.target for bindings in self.names.attributes.values() for b in bindings}
        for attribute in self.tree.nodes(cst.Attribute):
            if attribute not in targets or isinstance(self.tree.parent(attribute), cst.AugAssign):
                found.setdefault(attribute.attr.value, []).append(attribute)
        return found

    @cached_property
    def _reads_by_class(self) -> dict[cst.ClassDef, dict[str, list[cst.Attribute]]]:
        found: dict[cst.ClassDef, dict[str, list[cst.Attribute]]] = {}
        for name, attributes in self.attribute_reads.items():
            for attribute in attributes:
                owner = self.self_class(attribute)
                if owner is not None:
                    found.setdefault(owner, {}).setdefault(name, []).append(attribute)
        return found

    def self_reads(self, owner: cst.ClassDef, name: str) -> list[cst.Attribute]:
        """Return the reads of ``self.<name>`` in a class and its family; ``name`` may have ``*`` in it."""
        pattern = name_pattern(name) if "*" in name else None
        found: list[cst.Attribute] = []
        for member in self.family(owner):
            reads = self._reads_by_class.get(member, {})
            if pattern is None:
                found += reads.get(name, ())
            else:
                for other, attributes in reads.items():
                    found += attributes if pattern.fullmatch(other) else ()
        return found

    def foreign_reads(self, name: str) -> list[cst.Attribute]:
        """Return the reads of an attribute of this name that are none of ``self``."""
        return self._foreign_reads.get(name, [])

    @cached_property
    def _foreign_reads(self) -> dict[str, list[cst.Attribute]]:
        found: dict[str, list[cst.Attribute]] = {}
        for name, attributes in self.attribute_reads.items():
            foreign = [attribute for attribute in attributes if not self.is_self(attribute.value)]
            if foreign:
                found[name] = foreign
        return found

    @remembered
    def _bindings(self, name: str) -> dict[cst.ClassDef | None, list[AttributeBinding]]:
        """Return the assignments to an attribute of this name, by the class of whose ``self`` it is one."""
        found: dict[cst.ClassDef | None, list[AttributeBinding]] = {}
        for binding in self.names.attributes.get(name, ()):
            found.setdefault(self.self_class(binding.target), []).append(binding)
        return found

    @cached_property
    def _set_by_name(self) -> dict[cst.ClassDef, list[tuple[str, cst.BaseExpression]]]:
        """``setattr(self, name, value)``, ``self.add_module(name, value)``: by class, pattern and value."""
        found: dict[cst.ClassDef, list[tuple[str, cst.BaseExpression]]] = {}
        for call in self.tree.nodes(cst.Call):
            buffer = isinstance(call.func, cst.Attribute) and call.func.attr.value == "register_buffer"
            argument = call.args[1 if buffer else -1] if len(call.args) > 1 else None
            name = self.registered_name(argument) if argument is not None else None
            owner = self.enclosing_class(call) if name is not None else None
            if name is not None and owner is not None and argument is not None:
                found.setdefault(owner, []).append((name, argument.value))
        return found

    def registered_name(self, argument: cst.Arg) -> str | None:
        """Return the attribute that ``self`` keeps the argument as, with ``*`` for computed parts."""
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call) or not call.args:
            return None
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "register_buffer":
            own = self.is_self(call.func.value) and len(call.args) > 1 and call.args[1] is argument
            return pattern_of(call.args[0].value) if own else None
        if call.args[-1] is not argument:
            return None
        if isinstance(call.func, cst.Name) and call.func.value == "setattr" and len(call.args) == 3:
            return pattern_of(call.args[1].value) if self.is_self(call.args[0].value) else None
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value in ("add_module", "register_module")
            and self.is_self(call.func.value)
            and len(call.args) == 2
        ):
            return pattern_of(call.args[0].value)
        return None

    def attribute_values(self, at: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
        """Return all that is ever set as an attribute of ``self``; empty if some is out of sight."""
        owner = self.enclosing_class(at)
        found: list[cst.BaseExpression] = []
        if owner is None or self.set_outside(owner, name):
            return found
        for binding, value in self.assigned(owner, name) or ():
            if binding is not None:
                part = part_of(value, binding.path) if binding.kind is BindingKind.ASSIGN else None
                if part is None:
                    return []
                value = part
            found.append(value)
        return found

    def assigned(
        self, owner: cst.ClassDef, name: str
    ) -> list[tuple[AttributeBinding | None, cst.BaseExpression]] | None:
        """Return what the class itself sets as attribute ``name`` of its instances;
        None if some is out of sight.

        Each value with its assignment, which may take a part of it; without one for ``setattr`` and the like.
        """
        family = self.family(owner)
        found: list[tuple[AttributeBinding | None, cst.BaseExpression]] = []
        names: Iterable[str] = (name,)
        if "*" in name:
            names = filter(name_pattern(name).fullmatch, self.names.attributes)
        for attribute in names:
            bound = self._bindings(attribute)
            bindings = [binding for member in family for binding in bound.get(member, ())]
            for binding in sorted(bindings, key=lambda b: self.tree.order[b.target]):
                if binding.value is None:
                    return None
                found.append((binding, binding.value))
        registered = [item for member in family for item in self._set_by_name.get(member, ())]
        return [*found, *((None, value) for other, value in registered if may_be_same(other, name))]

    def set_outside(self, owner: cst.ClassDef, name: str) -> list[cst.BaseExpression]:
        """Return the targets of assignments to an attribute that may be one of a class's instances."""
        family = self.family(owner)
        return [b.target for b in self._bindings(name).get(None, ()) if self.may_belong(b.target, family)]

    def may_belong(self, attribute: cst.CSTNode, family: Collection[cst.ClassDef]) -> bool:
        """Return whether ``net.conv``, outside of any class, may be an attribute of these classes."""
        if not isinstance(attribute, cst.Attribute) or self.self_class(attribute) is not None:
            return False
        value = self.module.value(attribute.value)
        if isinstance(value.definition, cst.ClassDef):
            return value.definition in family
        made = self.module.qualified(value.origin.func) if isinstance(value.origin, cst.Call) else None
        return made is None and value.cls is None


def part_of(value: cst.BaseExpression, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
    """Return the part of an assigned expression that a target of an unpacking gets, if it is shown."""
    for step in path:
        if not isinstance(value, (cst.Tuple, cst.List)) or step is None or step >= len(value.elements):
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.elements):
            return None
        value = value.elements[step].value
    return value


def pattern_of(name: cst.BaseExpression) -> str:
    """Return the name that an expression spells, with ``*`` for every part that code makes."""
    spelt: list[str] = []
    pending = [name]
    while pending:
        match pending.pop():
            case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
                pending += (right, left)
            case cst.SimpleString(evaluated_value=str(text)):
                spelt.append(text)
            case cst.FormattedString(parts=parts):
                spelt += [p.value if isinstance(p, cst.FormattedStringText) else "*" for p in parts]
            case cst.BinaryOperation(operator=cst.Modulo(), left=cst.SimpleString(evaluated_value=str(text))):
                spelt.append(re.sub(r"%\w", "*", text))
            case cst.Call(
                func=cst.Attribute(
                    value=cst.SimpleString(evaluated_value=str(text)), attr=cst.Name(value="format")
                )
            ):
                spelt.append(re.sub(r"\{[^}]*\}", "*", text))
            case _:
                spelt.append("*")
    return re.sub(r"\*+", "*", "".join(spelt))


def name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in name.split("*")))


def may_be_same(first: str, second: str) -> bool:
    """Return whether two names, each perhaps with ``*`` in it, can be one."""
    if "*" in first and "*" in second:
        start, end = first.split("*")[0], first.split("*")[-1]
        other_start, other_end = second.split("*")[0], second.split("*")[-1]
        starts = start.startswith(other_start) or other_start.startswith(start)
        return starts and (end.endswith(other_end) or other_end.endswith(end))
    if "*" in first:
        return name_pattern(first).fullmatch(second) is not None
    return name_pattern(second).fullmatch(first) is not None
