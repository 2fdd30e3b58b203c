"""What type annotations promise of parameters, variables and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from torchlint.semantics.api.families import is_of_other_runtime
from torchlint.semantics.evaluator import Evaluator
from torchlint.semantics.library import TENSOR_TYPES, Library
from torchlint.semantics.names import Binding
from torchlint.semantics.values import (
    BOOL,
    MODULE,
    NDARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Kind,
    Value,
    join,
)

_WORDS = {
    "Tensor": TENSOR,
    "Module": MODULE,
    "int": NUMBER,
    "float": NUMBER,
    "bool": BOOL,
    "str": STRING,
    "DataLoader": Value(Kind.LOADER),
    "Optimizer": Value(Kind.OPTIMIZER),
    "ndarray": NDARRAY,
}


class Annotations:
    """The annotations of one file."""

    def __init__(self, evaluator: Evaluator, library: Library) -> None:
        self.tree = evaluator.tree
        self.names = evaluator.names
        self.link = evaluator.names.link
        self._value = evaluator.value
        self._binding = evaluator.binding
        self._library = library

    @staticmethod
    def counterpart(module: Any) -> Annotations:
        """Return the annotations of a module."""
        found: Annotations = module.inference.annotations
        return found

    def of_binding(self, binding: Binding) -> Value | None:
        """Return what the annotation of a parameter or variable promises; None if it has none."""
        holder: cst.CSTNode | None = binding.node
        if not isinstance(holder, cst.Param):
            holder = self.tree.parent(binding.node)
        if not isinstance(holder, (cst.Param, cst.AnnAssign)) or holder.annotation is None:
            return None
        return self.promised(holder.annotation.annotation)

    def others(self, binding: Binding, excluded: Value) -> Value | None:
        """Return what the annotation of a parameter promises of it where it is none of one of its types.

        That is a tensor for ``images: Tensor | DataLoader`` that is no loader; None if no type is excluded.
        """
        if not isinstance(binding.node, cst.Param) or binding.node.annotation is None:
            return None
        types = list(self._types(binding.node.annotation.annotation))
        left = [each for each in types if each.kind is not excluded.kind]
        return join(left) if left and len(left) < len(types) and excluded.known else None

    def _types(self, node: cst.BaseExpression) -> Iterator[Value]:
        """Yield the types of which an annotation promises one."""
        match node:
            case cst.BinaryOperation(operator=cst.BitOr()):
                yield from self._types(node.left)
                yield from self._types(node.right)
            case cst.Subscript() if (self.names.qualified(node.value) or "").endswith(("Union", "Optional")):
                for element in node.slice:
                    if isinstance(element.slice, cst.Index):
                        yield from self._types(element.slice.value)
            case _:
                yield self.promised(node)

    def promised(self, node: cst.BaseExpression) -> Value:
        """Return what a type annotation promises; strings, ``Optional`` and ``X | None`` are seen through."""
        match node:
            case cst.SimpleString():
                text = node.evaluated_value
                if not isinstance(text, str):
                    return UNKNOWN
                word = _WORDS.get(text.rpartition(".")[2].strip("'\""), UNKNOWN)
                return word if word.known else self._class_named(text)
            case cst.BinaryOperation(operator=cst.BitOr()):
                return _either(list(self._types(node)))
            case cst.Subscript():
                return self._generic(node)
            case cst.Name(value="None"):
                return NONE
            case cst.Name() | cst.Attribute():
                value = self._value(node)
                if value.kind is Kind.CLASS:
                    return self._library.instance_of(value, None)
                dotted = self.names.qualified(node) or ""
                if is_of_other_runtime(dotted.rpartition(".")[2]):
                    return Value(Kind.OBJECT, cls=dotted)
                return TENSOR_TYPES.get(dotted, UNKNOWN)
            case _:
                return UNKNOWN

    def _class_named(self, text: str) -> Value:
        """Return an instance of the class that a string names, so that it may be defined further down."""
        value = self._global(text)
        return self._library.instance_of(value, None) if value.kind is Kind.CLASS else UNKNOWN

    def _global(self, text: str) -> Value:
        bindings = self.names.module_scope.bindings.get(text, ())
        return self._binding(bindings[0]) if len(bindings) == 1 else UNKNOWN

    def _class(self, node: cst.BaseExpression) -> Value:
        """Return the class that an annotation names, in quotes or not."""
        quoted = node.evaluated_value if isinstance(node, cst.SimpleString) else None
        value = self._global(quoted) if isinstance(quoted, str) else self._value(node)
        return value if value.kind is Kind.CLASS else UNKNOWN

    def _generic(self, node: cst.Subscript) -> Value:
        package, _, head = (self.names.qualified(node.value) or "").rpartition(".")
        if head in ("Type", "type") and isinstance(node.slice[0].slice, cst.Index):
            return self._class(node.slice[0].slice.value)
        inner = [
            self.promised(element.slice.value)
            for element in node.slice
            if isinstance(element.slice, cst.Index)
        ]
        if package == "jaxtyping" or head == "Annotated":
            return inner[0] if inner else UNKNOWN  # ``Float[Tensor, "batch 3"]``
        if head in ("Optional", "Union", "Final", "ClassVar") and inner:
            return _either(inner)
        if head in ("List", "list", "Sequence", "Iterable", "Iterator", "Set", "set", "Collection") and inner:
            kind = Kind.ITERATOR if head in ("Iterable", "Iterator") else Kind.LIST
            return Value(kind, item=inner[0] if inner[0].known else None)
        if head in ("Tuple", "tuple") and inner:
            last = node.slice[-1].slice
            if isinstance(last, cst.Index) and isinstance(last.value, cst.Ellipsis):
                return Value(Kind.TUPLE, item=inner[0])
            return Value(Kind.TUPLE, elements=tuple(inner))
        if head in ("Dict", "dict", "Mapping", "OrderedDict", "DefaultDict") and len(inner) == 2:
            return Value(Kind.DICT, item=inner[1] if inner[1].known else None)
        outer = self.promised(node.value)
        of_project = isinstance(outer.definition, cst.ClassDef)  # ``Unit[Batch]`` is an instance of ``Unit``
        return outer if of_project or outer.kind in (Kind.LOADER, Kind.DATASET) else UNKNOWN


def _either(types: Sequence[Value]) -> Value:
    """Return what is one of several types.

    Of an object that may be a list of such objects as well (``Agent | list[Agent]``), whoever asks for an
    attribute knows that it is one; what it holds is the same.
    """
    one = join(each for each in types if each.kind not in _CONTAINERS)
    held = [each.item for each in types if each.kind in _CONTAINERS]
    alike = (item is not None and item.definition is one.definition for item in held)
    if held and one.kind in (Kind.MODULE, Kind.OBJECT) and one.definition is not None and all(alike):
        return one._replace(item=one)
    return join(types)


_CONTAINERS = frozenset({Kind.DICT, Kind.ITERATOR, Kind.LIST, Kind.TUPLE})
