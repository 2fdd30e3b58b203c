"""What an expression computes: operations on tensors, however they are spelt.

``x.softmax(-1)``, ``torch.softmax(x, dim=-1)``, ``F.softmax(x, -1)``, ``nn.Softmax(-1)(x)`` and
``self.softmax(x)`` are one operation on one operand, and so are ``a * b``, ``torch.mul(a, b)``, ``a.mul_(b)``
and ``a *= b``. A result is followed backwards to what it is made of, through names, as long as each has one
definition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Path, Source, Through, onward, sole, traced
from torchlint.semantics.spellings import keywords, positional
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on tensors.

    Attributes:
        name: its name in torch, without a trailing underscore: ``softmax``, ``matmul``, ``add``.
        node: the expression that computes it, or the statement, if it is an augmented assignment.
        operands: what it is computed of, in the order in which torch takes them; numbers may be among them.
        options: the other arguments by name, as far as they are spelt. Those of a layer are arguments of
            the call that makes it.
        in_place: whether the first operand is overwritten.
        layer: the expression of the layer that computes it (``self.dropout``); None for functions.
    """

    name: str
    node: cst.CSTNode
    operands: tuple[cst.BaseExpression, ...]
    options: Mapping[str, cst.BaseExpression]
    in_place: bool = False
    layer: cst.BaseExpression | None = None


_OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.Add: "add",
    cst.Subtract: "sub",
    cst.Multiply: "mul",
    cst.Divide: "div",
    cst.Power: "pow",
    cst.MatrixMultiply: "matmul",
    cst.AddAssign: "add",
    cst.SubtractAssign: "sub",
    cst.MultiplyAssign: "mul",
    cst.DivideAssign: "div",
    cst.PowerAssign: "pow",
    cst.MatrixMultiplyAssign: "matmul",
}

FORMS: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("matmul", "bmm", "mm"), (2, "")),
    "softmax": (1, "dim dtype"),
    "log_softmax": (1, "dim dtype"),
    "logsumexp": (1, "dim keepdim"),
    **dict.fromkeys(("add", "sub"), (2, "alpha")),
    **dict.fromkeys(("mul", "pow"), (2, "")),
    "div": (2, "rounding_mode"),
    **dict.fromkeys(
        ("exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "square", "sigmoid", "tanh", "erf", "neg"), (1, "")
    ),
    "reciprocal": (1, ""),
    **dict.fromkeys(("relu", "relu6", "hardsigmoid", "silu", "mish", "hardswish", "logsigmoid"), (1, "")),
    "gelu": (1, "approximate"),
    "softplus": (1, "beta threshold"),
    "hardtanh": (1, "min_val max_val"),
    "clamp": (1, "min max"),
    **dict.fromkeys(("mean", "sum"), (1, "dim keepdim dtype")),
    **dict.fromkeys(("var", "std"), (1, "dim unbiased keepdim")),
    **dict.fromkeys(("amax", "amin"), (1, "dim keepdim")),
    "masked_fill": (1, "mask value"),
    "baddbmm": (3, "beta alpha"),
    "dropout": (1, "p training"),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), (1, "dim0 dim1")),
    **dict.fromkeys(("contiguous", "clone", "float", "double", "half", "bfloat16"), (1, "")),
    "type_as": (1, "other"),
    "unsqueeze": (1, "dim"),
    "squeeze": (1, "dim"),
    "linear": (1, "weight bias"),
}
# Those that take any number of arguments, which stay as they are.
_OPEN = frozenset({"view", "reshape", "permute", "to", "type", "max", "expand", "flatten", "einsum", "where"})
_ALIASES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "clip": "clamp",
    "special_expit": "sigmoid",
    "expit": "sigmoid",
    "swapaxes": "transpose",
    "swapdims": "transpose",
}
# ``torch.nn.functional`` has one more argument in between.
_FUNCTIONAL = {
    "softmax": "dim _stacklevel dtype",
    "log_softmax": "dim _stacklevel dtype",
}
_NAMES = frozenset(FORMS) | _OPEN | frozenset(_ALIASES)
_PREFIXES = ("torch.nn.functional.", "torch.Tensor.", "torch.special.", "torch.linalg.", "torch.")
# Methods that nothing but tensors has, or arrays in the same sense.
_OF_TENSORS_ONLY = frozenset(
    {"softmax", "log_softmax", "sigmoid", "masked_fill", "matmul", "bmm", "transpose", "permute", "view"}
    | {"reshape", "contiguous", "unsqueeze", "squeeze", "type_as", "rsqrt"}
)
_DIMENSIONS = frozenset({Kind.NUMBER, Kind.TUPLE, Kind.LIST, Kind.NONE})
# What has methods of its own under these names.
_WITH_OWN_METHODS = frozenset({Kind.NAMESPACE, Kind.MODULE, Kind.OBJECT, Kind.CLASS, Kind.FUNCTION})
# Layers that compute one operation, and which of their own arguments are its options.
_LAYERS = {
    "torch.nn.Softmax": "softmax",
    "torch.nn.LogSoftmax": "log_softmax",
    "torch.nn.Dropout": "dropout",
    "torch.nn.Sigmoid": "sigmoid",
    "torch.nn.Tanh": "tanh",
    "torch.nn.ReLU6": "relu6",
    "torch.nn.Hardsigmoid": "hardsigmoid",
    "torch.nn.LogSigmoid": "logsigmoid",
    "torch.nn.Softplus": "softplus",
    "torch.nn.Identity": "identity",
}
_LAYER_OPTIONS = ("dim", "p", "beta", "threshold")

# Constants that programs build their formulas from.
_CONSTANTS = {
    **dict.fromkeys(("math.pi", "numpy.pi", "torch.pi"), math.pi),
    **dict.fromkeys(("math.e", "numpy.e", "torch.e"), math.e),
    **dict.fromkeys(("math.inf", "numpy.inf", "torch.inf"), math.inf),
}
_SQUARE_ROOTS = frozenset({"math.sqrt", "numpy.sqrt", "torch.sqrt"})
_NUMBER_MAKERS = frozenset({"builtins.float", "torch.tensor", "torch.as_tensor"})


@remembered
def operations_of(module: Module) -> Operations:
    """Return the operations of a file."""
    return Operations(module)


class Operations:
    """The operations of one file; each is computed when it is asked for."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree, self.names = module, module.tree, module.names

    # ------------------------------------------------------------------ one operation

    @remembered
    def of(self, node: cst.CSTNode) -> Operation | None:
        """Return the operation that an expression, or an augmented assignment, spells, if any."""
        match node:
            case cst.BinaryOperation():
                name = _OPERATORS.get(type(node.operator))
                return Operation(name, node, (node.left, node.right), {}) if name is not None else None
            case cst.AugAssign():
                name = _OPERATORS.get(type(node.operator))
                if name is None:
                    return None
                assert isinstance(node.target, cst.BaseExpression)
                return Operation(name, node, (node.target, node.value), {}, in_place=True)
            case cst.UnaryOperation(operator=cst.Minus()):
                return Operation("neg", node, (node.expression,), {})
            case cst.Attribute(attr=cst.Name("T" | "mT" as name)) if self.module.qualified(node) is None:
                return Operation(name, node, (node.value,), {})
            case cst.Call():
                return self._called(node)
            case _:
                return None

    def behind(self, node: cst.BaseExpression) -> Operation | None:
        """Return the operation that computes an expression, also if it has a name with one definition."""
        origin = self.origin(node)
        return self.of(origin) if origin is not None else None

    def origin(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the expression, or augmented assignment, that a name stands for, if it is one only."""
        return sole(self._origins(node)) if isinstance(node, (cst.Name, cst.NamedExpr)) else node

    @traced(Through.NOTHING)
    def _origins(self, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
        match node:
            case cst.NamedExpr():
                return None
            case cst.Name():
                found = [self.definition(binding) for binding in self.names.bindings(node)]
                return onward(found[0]) if len(found) == 1 and found[0] is not None else []
            case _:
                return node

    def definition(self, binding: Binding) -> cst.CSTNode | None:
        """Return what a binding stores, whole: an expression, or the augmented assignment that makes it;
        None where another file puts something else there.
        """
        if binding.kind is BindingKind.AUGMENT:
            parent = self.tree.parent(binding.node)
            return parent if isinstance(parent, cst.AugAssign) else None
        if binding.kind in (BindingKind.ASSIGN, BindingKind.WALRUS) and not binding.path:
            return None if self.module.inference.is_set_elsewhere(binding) else binding.value
        return None

    def _called(self, call: cst.Call) -> Operation | None:
        func = call.func
        last = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", None)
        qualified = self.module.qualified(func)
        if (
            qualified == "einops.einsum"
            and len(call.args) > 1
            and not any(a.star or a.keyword for a in call.args)
        ):
            return Operation("einsum", call, (call.args[-1].value, *(a.value for a in call.args[:-1])), {})
        if qualified is not None:
            prefix = next((p for p in _PREFIXES if qualified.startswith(p)), None)
            name = qualified[len(prefix) :] if prefix is not None else ""
            if name.rstrip("_") not in _NAMES:
                return None
            extra = _FUNCTIONAL.get(name) if prefix == "torch.nn.functional." else None
            return self._bound(call, name, [], extra)
        if isinstance(func, cst.Attribute) and isinstance(last, str) and last.rstrip("_") in _NAMES:
            kind = self.module.value(func.value).kind
            if not (self._of_super(func) or self._of_file(func)) and (
                kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
                or (last in _OF_TENSORS_ONLY and kind not in _WITH_OWN_METHODS)
            ):
                return self._bound(call, last, [func.value], None)
        return self._layer(call)

    @staticmethod
    def _of_super(func: cst.Attribute) -> bool:
        return isinstance(func.value, cst.Name) and func.value.value in ("self", "cls")

    def _of_file(self, func: cst.Attribute) -> bool:
        """Return whether it is a function of the project: ``from mine import functional as F``."""
        if not isinstance(func.value, cst.Name) or self.module.value(func.value).kind is not Kind.UNKNOWN:
            return False
        return any(binding.kind is BindingKind.IMPORT for binding in self.module.bindings(func.value))

    def _layer(self, call: cst.Call) -> Operation | None:
        if len(call.args) != 1 or call.args[0].star or call.args[0].keyword is not None:
            return None
        layer = self.module.value(call.func)
        name = _LAYERS.get(layer.cls or "") if layer.kind is Kind.MODULE else None
        if name is None or layer.definition is not None:
            return None
        options = {}
        if isinstance(layer.origin, cst.Call):
            for option in _LAYER_OPTIONS:
                argument = self.module.argument(layer.origin, option)
                if argument.unknown:
                    continue
                if argument.node is not None:
                    options[option] = argument.node
        return Operation(name, call, (call.args[0].value,), options, layer=call.func)

    def _bound(
        self, call: cst.Call, spelt: str, receiver: list[cst.BaseExpression], parameters: str | None
    ) -> Operation | None:
        """Return the operation of a call of a function or method, its arguments bound by name."""
        in_place = spelt.endswith("_")
        name = _ALIASES.get(spelt.rstrip("_"), spelt.rstrip("_"))
        if any(arg.star for arg in call.args):
            return None
        given, named = [*receiver, *positional(call)], keywords(call)
        if name in _OPEN:
            return Operation(name, call, tuple(given), named, in_place)
        tensors, rest = FORMS[name]
        for keyword in ("input", "other", "mat2", "exponent", "tensor2"):
            if len(given) < tensors and keyword in named:
                given.append(named.pop(keyword))
        if len(given) < tensors:
            return None
        options = dict(named)
        names, further = (parameters or rest).split(), given[tensors:]
        if receiver and len(further) > len(names):
            return None  # a method of the same name that takes something else: ``backend.sigmoid(x)``
        for option, value in zip(names, further, strict=False):
            if option in options or (receiver and not self._may_be(option, value, receiver[0])):
                return None
            options[option] = value
        if "train" in options:
            options["training"] = options.pop("train")
        return Operation(name, call, tuple(given[:tensors]), options, in_place)

    def _may_be(self, option: str, value: cst.BaseExpression, receiver: cst.BaseExpression) -> bool:
        """Return whether a method takes what that of a tensor would: ``backend.softmax(x, 1)`` does not."""
        kind = self.module.value(value).kind
        if option == "dtype":
            return kind in (Kind.DTYPE, Kind.NONE)
        if not option.startswith("dim") or self.module.value(receiver).tensorlike:
            return True
        return kind in _DIMENSIONS

    # ------------------------------------------------------------------ numbers

    def number(self, node: cst.CSTNode | None) -> float | None:
        """Return the Python number that an expression is for certain; also ``math.sqrt(2 / math.pi)``."""
        return self._number(node) if node is not None else None

    @solved(None)
    def _number(self, node: cst.CSTNode) -> float | None:
        match node:
            case cst.Integer() | cst.Float():
                return float(node.evaluated_value)
            case cst.UnaryOperation(operator=cst.Minus()):
                value = self.number(node.expression)
                return -value if value is not None else None
            case cst.BinaryOperation():
                left, right = self.number(node.left), self.number(node.right)
                return _computed(type(node.operator), left, right)
            case cst.Call():
                return self._called_number(node)
            case cst.Name() | cst.Attribute():
                dotted = self.module.qualified(node)
                if dotted in _CONSTANTS:
                    return _CONSTANTS[dotted]
                constant = self.module.value(node).constant
                if isinstance(constant, (int, float)) and not isinstance(constant, bool):
                    return float(constant)
                origin = self.origin(node)
                return self.number(origin) if origin is not node else None
            case _:
                return None

    def _called_number(self, call: cst.Call) -> float | None:
        dotted = self.module.qualified(call.func)
        if not call.args or call.args[0].star or call.args[0].keyword is not None:
            return None
        first = call.args[0].value
        if dotted == "builtins.float" and isinstance(first, cst.SimpleString):
            text = first.evaluated_value
            return (
                {"inf": math.inf, "-inf": -math.inf}.get(text.strip().lower())
                if isinstance(text, str)
                else None
            )
        if dotted in _NUMBER_MAKERS:
            return self.number(first)
        value = (
            self.number(first) if dotted in _SQUARE_ROOTS or dotted in ("math.pow", "builtins.pow") else None
        )
        if value is None:
            return None
        if dotted in _SQUARE_ROOTS:
            return math.sqrt(value) if value >= 0 and len(call.args) == 1 else None
        power = self.number(call.args[1].value) if len(call.args) == 2 else None
        return _computed(cst.Power, value, power)

    def integer(self, node: cst.CSTNode | None) -> int | None:
        """Return the whole number that an expression is for certain."""
        value = self.number(node)
        return int(value) if value is not None and math.isfinite(value) and value == int(value) else None

    # ------------------------------------------------------------------ sameness

    def same(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Return whether two expressions, evaluated one soon after the other, give the same.

        They are spelt alike, every name in them has the same definitions, and they call nothing but
        what gives the same again.
        """
        if first is second:
            return True
        if self._text(first) != self._text(second):
            return self._same_origin(first, second)
        ours, theirs = list(self.read_names(first)), list(self.read_names(second))
        if len(ours) != len(theirs):
            return False
        if any(self.names.bindings(a) != self.names.bindings(b) for a, b in zip(ours, theirs, strict=True)):
            return False
        return self.repeatable(first)

    def _text(self, node: cst.CSTNode) -> list[object]:
        """Return what an expression is made of, without spaces and brackets around it."""
        found: list[object] = []
        for part in self.tree.descendants(node):
            if isinstance(part, (cst.Name, cst.Integer, cst.Float, cst.SimpleString)):
                found.append(part.value)
            elif isinstance(part, cst.Slice):
                # ``x[:n]`` and ``x[n:]`` have the same parts.
                found.append((part.lower is None, part.upper is None, part.step is None))
            elif isinstance(part, _MEANING):
                found.append(type(part))
        return found

    def _same_origin(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Return whether one is another name of the other: ``y = x``."""
        if not isinstance(first, cst.Name) or not isinstance(second, cst.Name):
            return False
        one, other = sole(self._named_last(first)), sole(self._named_last(second))
        return one is not None and other is not None and self._equal_names(one, other)

    def _equal_names(self, first: cst.Name, second: cst.Name) -> bool:
        return first.value == second.value and self.names.bindings(first) == self.names.bindings(second)

    @traced(Through.NOTHING)
    def _named_last(self, name: cst.CSTNode, path: Path) -> cst.Name | list[Source] | None:
        if not isinstance(name, cst.Name):
            return None
        bindings = self.names.bindings(name)
        value = self.definition(bindings[0]) if len(bindings) == 1 else None
        return onward(value) if isinstance(value, cst.Name) else name

    def read_names(self, node: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield the names that an expression reads."""
        if isinstance(node, cst.Name):
            yield node
            return
        for found in self.tree.descendants(node):
            if isinstance(found, cst.Name):
                above = self.tree.parent(found)
                if isinstance(above, cst.Attribute) and above.attr is found:
                    continue
                if isinstance(above, cst.Arg) and above.keyword is found:
                    continue
                yield found

    def repeatable(self, node: cst.CSTNode) -> bool:
        """Return whether an expression gives the same twice: at most operations and sizes."""
        for found in self.tree.descendants(node):
            if isinstance(found, (cst.NamedExpr, cst.Await, cst.Yield)):
                return False
            if isinstance(found, cst.Attribute) and self._is_computed(found):
                return False
            if isinstance(found, cst.Subscript) and self.module.value(found.value).kind in _ASKED:
                return False
            if isinstance(found, cst.Call):
                operation = self.of(found)
                if operation is not None:
                    if operation.in_place or operation.layer is not None or operation.name == "dropout":
                        return False
                    continue
                last = found.func.attr.value if isinstance(found.func, cst.Attribute) else None
                if last not in _QUESTIONS and self.module.qualified(found.func) not in _PURE:
                    return False
        return True

    def _is_computed(self, attribute: cst.Attribute) -> bool:
        """Return whether reading an attribute of an object runs a property, or may run ``__getattr__``."""
        owner: cst.CSTNode | None = self.module.classes.instance_class(attribute.value)
        if owner is None:
            held = self.module.value(attribute.value)
            owner = held.definition if held.kind in (Kind.OBJECT, Kind.MODULE) else None
        if not isinstance(owner, cst.ClassDef):
            return False
        info = self.module.classes.info(owner)
        name = attribute.attr.value
        if info.method(name) is not None:
            return not self.tree.is_called(attribute)
        hooked = info.method("__getattribute__") or info.method("__getattr__")
        return hooked is not None and not self.module.classes.attribute_bindings(info, name)

    def at_hand(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression computes nothing, but only looks at what there is."""
        while isinstance(node, (cst.Attribute, cst.Subscript, cst.UnaryOperation)):
            node = node.expression if isinstance(node, cst.UnaryOperation) else node.value
        return isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.Tuple))


# The nodes that make a difference, besides names and literals.
_MEANING = (
    *(
        cst.BaseExpression,
        cst.BaseSlice,
        cst.BaseBinaryOp,
        cst.BaseUnaryOp,
        cst.BaseBooleanOp,
        cst.BaseCompOp,
    ),
    *(cst.Arg, cst.BaseElement, cst.BaseDictElement, cst.SubscriptElement),
)
# What may give another item each time that it is indexed.
_ASKED = frozenset({Kind.OBJECT, Kind.DATASET, Kind.LOADER})
_QUESTIONS = frozenset({"size", "dim", "numel", "ndimension", "item", "abs", "sign", "softmax", "detach"})
_PURE = frozenset({"builtins.len", "builtins.int", "builtins.float", "builtins.abs"}) | _SQUARE_ROOTS


def _computed(operator: type[cst.CSTNode], left: float | None, right: float | None) -> float | None:
    if left is None or right is None:
        return None
    try:
        match operator:
            case cst.Add:
                return left + right
            case cst.Subtract:
                return left - right
            case cst.Multiply:
                return left * right
            case cst.Divide:
                return left / right
            case cst.Power:
                result = left**right
                return result if isinstance(result, float) else None
            case _:
                return None
    except (ArithmeticError, ValueError):
        return None
