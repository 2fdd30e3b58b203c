"""Modules that an ``nn.Module`` keeps in a plain list or dict, where torch does not find them.

What is assigned to an attribute is registered if it is a module, and only then. A list is filled and read in
many ways; each of them is looked at, since any may register what it holds, or show that nobody wants it
registered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import DROPOUTS, LAYERS_WITH_PARAMETERS
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.conventions import OTHER_FRAMEWORKS
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.layers import MODULE_LIST, RETURNS_SELF, SEQUENTIAL, WRAPPERS
from torchlint.semantics.lexicon import Role, denotes, has
from torchlint.semantics.names import AttributeBinding, BindingKind, ScopeKind, unpacked
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.sources import (
    Item,
    Path,
    Source,
    Through,
    every,
    onward,
    put_into,
    sole,
    some,
    traced,
)
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

if TYPE_CHECKING:
    from torchlint.semantics.classes import ClassInfo
    from torchlint.semantics.module import Module

_COPY = "copy.deepcopy"
MODULE_DICT = "torch.nn.ModuleDict"
_CONTAINERS = frozenset({SEQUENTIAL, MODULE_LIST, MODULE_DICT})
# What has parameters, buffers or a behaviour of its own in training.
_WITH_STATE = LAYERS_WITH_PARAMETERS | DROPOUTS | {"torch.nn.RReLU"}
_LIBRARIES_WITH_STATE = (
    *("torch_geometric.nn.", "dgl.nn.", "torchvision.models.", "timm.", "transformers.", "torchmetrics."),
    *("torch.nn.quantized.", "torch.nn.qat.", "torch.nn.intrinsic."),
)
_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict"})
_DISPLAYS = (cst.List, cst.Tuple, cst.ListComp, cst.Dict, cst.DictComp)
_FILLING = frozenset({"append", "extend", "insert", "update", "setdefault"})
_REGISTERING = frozenset({"add_module", "register_module", "setattr", "__setattr__"})
# What is asked of the modules by code that looks after them itself, or keeps them out of training.
_BY_HAND = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "eval", "train", "requires_grad_"}
)
_OWN_METHODS = frozenset(
    {"parameters", "named_parameters", "_apply", "to", "cuda", "state_dict", "load_state_dict", "train"}
    | {"named_modules", "modules", "children", "named_children", "__setattr__"}
)
# Calls that answer a question about a collection, and those that go through it.
_ASKING = frozenset(f"builtins.{name}" for name in ("len", "range", "print", "isinstance", "bool"))
_HARMLESS_LIBRARIES = ("builtins.", "copy.", "itertools.", "math.", "numpy.", "torch.")
_GOING_THROUGH = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "reversed", "iter", "list"))
# What `nn.ModuleList` and `nn.ModuleDict` lack, and what tells them from a list or dict.
_ONLY_OF_LIST = frozenset({"clear", "copy", "count", "index", "remove", "reverse", "sort"})
_ONLY_OF_DICT = frozenset({"copy", "fromkeys", "get", "popitem", "setdefault"})
_BY_TYPE = frozenset({"builtins.isinstance", "builtins.type"})


def _is_with_state(name: str) -> bool:
    """Return whether a class of a library has parameters, buffers or a behaviour of its own in training."""
    return name in _WITH_STATE or name.startswith(_LIBRARIES_WITH_STATE)


@dataclass(frozen=True, slots=True)
class Hidden:
    """A list or dict of modules in an attribute.

    ``keys`` are those of a dict, None where the file does not show them all. ``only_modules``: everything in
    it is a module, and this is the only place that makes it. ``needs_builtin``: something is done with it
    that ``nn.ModuleList`` or ``nn.ModuleDict`` cannot do.
    """

    made: cst.BaseExpression
    mapping: bool
    keys: tuple[object, ...] | None
    only_modules: bool
    needs_builtin: bool


def hidden_modules(module: Module, target: cst.Attribute, value: cst.BaseExpression) -> Hidden | None:
    """Return the modules that ``self.target = value`` keeps from being registered; None if there are none."""
    if not _may_be_collection(value) or _apart(target.attr.value):
        return None
    owner = module.classes.instance_class(target.value)
    if owner is None or not _leaves_it_to_torch(module, owner):
        return None
    return _Attribute(module, module.classes.info(owner), target, value).hidden()


@remembered
def _leaves_it_to_torch(module: Module, owner: cst.ClassDef) -> bool:
    """Return whether a class is a module of torch that leaves it to torch to find the modules in it."""
    info = module.classes.info(owner)
    if info.kind is not Kind.MODULE or any(info.method(name) is not None for name in _OWN_METHODS):
        return False
    return not any(base.partition(".")[0] in OTHER_FRAMEWORKS for base in info.bases)


def _may_be_collection(value: cst.BaseExpression) -> bool:
    return isinstance(value, (*_DISPLAYS, cst.Call, cst.Name, cst.BinaryOperation))


def _apart(name: str) -> bool:
    """Return whether something is called after copies and teachers, which are not trained."""
    return has(name.lower().removesuffix("s"), Role.COPY)


def _is_display(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    return isinstance(node, _DISPLAYS)


class _Attribute:
    """One attribute of a module class, and all that the file does with it."""

    def __init__(
        self, module: Module, info: ClassInfo, target: cst.Attribute, value: cst.BaseExpression
    ) -> None:
        self.module, self.tree, self.info = module, module.tree, info
        self.target, self.value, self.name = target, value, target.attr.value
        self.attributes = SelfAttributes.of(module)
        self.family = self.attributes.family(info.node)

    def hidden(self) -> Hidden | None:
        """Return what is hidden in the attribute."""
        shape = sole(self._shapes(self.value))
        if shape is None:
            return None
        members = self._members(Source(self.value, (Item.ANY,)))
        members += [
            member
            for read in self.reads
            for put in put_into(self.module, read)
            for member in self._members(put)
        ]
        made = [member for member in members if every(self._newly_made(member))]
        if not any(some(self._has_state(member)) for member in made):
            return None
        others = [binding for binding in self.bindings if binding.target is not self.target]
        if any(not self._is_plain(binding) for binding in others) or self._cared_for(made):
            return None
        elsewhere = [binding for binding in others if binding.kind is BindingKind.ASSIGN]
        mapping = shape == "dict"
        return Hidden(
            self.value,
            mapping,
            self._keys() if mapping else None,
            only_modules=len(made) == len(members)
            and not elsewhere
            and shape != "nested"
            and not self._filled_later(),
            needs_builtin=any(self._needs_builtin(read, mapping) for read in self.reads),
        )

    # ------------------------------------------------------------------ the attribute

    @property
    def bindings(self) -> list[AttributeBinding]:
        """The assignments to the attribute in the class and its family."""
        return [
            binding
            for binding in self.module.names.attributes.get(self.name, ())
            if self.attributes.self_class(binding.target) in self.family
        ]

    @property
    def reads(self) -> list[cst.Attribute]:
        """The reads of the attribute through ``self``."""
        return self.attributes.self_reads(self.info.node, self.name)

    def _is_plain(self, binding: AttributeBinding) -> bool:
        """Return whether another assignment leaves the attribute a plain list or dict, or nothing."""
        if binding.kind is BindingKind.AUGMENT:
            return True
        value = binding.value
        if value is None or binding.path:
            return binding.kind is BindingKind.DECLARE
        if self.module.value(value).kind is Kind.NONE:
            return True
        return _may_be_collection(value) and sole(self._shapes(value)) is not None

    # ------------------------------------------------------------------ what it holds

    @traced(Through.RETURNS)
    def _shapes(self, node: cst.CSTNode, path: Path) -> str | list[Source] | None:
        """Return which plain collection a value is: ``list``, ``dict``, or ``nested`` for a list of lists."""
        if path:
            return None
        match node:
            case cst.Dict() | cst.DictComp():
                return "dict"
            case cst.List() | cst.Tuple():
                parts = [element.value for element in node.elements]
                return "nested" if any(map(_is_display, parts)) else "list"
            case cst.ListComp():
                return "nested" if _is_display(node.elt) else "list"
            case cst.BinaryOperation(operator=cst.Add() | cst.Multiply()):
                return onward(node.left)
            case cst.Call():
                made = self.module.qualified(node.func)
                return "list" if made in _LISTS else "dict" if made in _DICTS else None
            case _:
                return None

    def _members(self, items: Source) -> list[cst.BaseExpression]:
        """Return the expressions that make the items of a list or dict, and those of what lies in it."""
        found = [node for node in self._made_items(items) if node is not None]
        return sorted(found, key=self.tree.order.__getitem__)

    @traced(Through.ITEMS | Through.RETURNS)
    def _made_items(self, node: cst.CSTNode, path: Path) -> cst.BaseExpression | list[Source] | None:
        if path or not isinstance(node, cst.BaseExpression):
            return None
        return onward(node, path=(Item.ANY,)) if _is_display(node) else node

    def _uses(self, name: cst.Name) -> list[cst.Name]:
        """Return the reads of a local variable, wherever its definition reaches."""
        found: dict[cst.Name, None] = {}
        for binding in self.module.bindings(name):
            for use in self.module.uses(binding):
                found[use] = None
        return list(found)

    # ------------------------------------------------------------------ modules

    @traced(Through.RETURNS)
    def _newly_made(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        """Return whether an expression makes a new module, which nothing else holds yet."""
        match node:
            case cst.Name() if any(
                b.scope.kind is not ScopeKind.FUNCTION for b in self.module.bindings(node)
            ):
                return False
            case cst.Attribute():
                return False  # ``{"key": self.k_proj}``: the attribute registers it, here or in a base class
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(method))) if method in RETURNS_SELF:
                return onward(inner, path=path)
            case cst.Call(args=[cst.Arg(value=inner), *_]) if self.module.qualified(node.func) in WRAPPERS:
                return onward(inner, path=path)
            case cst.Call() if not path and self._makes_instance(node):
                return True
            case _:
                return None

    def _makes_instance(self, call: cst.Call) -> bool:
        word = last_name(call.func) or ""
        value = self.module.value(call)
        if value.kind is Kind.MODULE:
            named = self.module.qualified(call.func) or ""
            return word[:1].isupper() or named.startswith(("torchvision.models.", "timm.", _COPY))
        return value.kind is Kind.UNKNOWN and self._looks_like_layer(call)

    def _looks_like_layer(self, call: cst.Call) -> bool:
        """Return whether a class of another file is named as layers are,
        and its instances called in ``forward``.
        """
        word = last_name(call.func) or ""
        return (
            word[:1].isupper()
            and denotes(word, Role.LAYER)
            and any(self.tree.is_called(element) for read in self.reads for element in self._elements(read))
        )

    @traced(Through.RETURNS)
    def _has_state(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        """Return whether a module that an expression makes has parameters or buffers, or acts on the mode."""
        if not isinstance(node, cst.Call) or path:
            return None
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in RETURNS_SELF:
            return onward(node.func.value)
        name = self.module.qualified(node.func) or ""
        if name in _CONTAINERS:
            starred = any(argument.star for argument in node.args)
            return True if starred else onward(*(argument.value for argument in node.args))
        if name == _COPY and node.args:
            return onward(node.args[0].value)
        if name in WRAPPERS or _is_with_state(name):
            return True
        definition = self.module.value(node).definition
        if isinstance(definition, cst.ClassDef):
            info = self.module.classes.info(definition)
            return self._class_has_state(info) or onward(*self._parts(info))
        return True if not name.startswith("torch.") and self._looks_like_layer(node) else None

    def _class_has_state(self, info: ClassInfo) -> bool:
        if info.opaque or any(map(_is_with_state, info.bases)):
            return True
        for call in self._calls(info):
            name = self.module.qualified(call.func) or ""
            registered = last_name(call.func) in ("register_buffer", "register_parameter")
            if registered or name == "torch.nn.Parameter" or _is_with_state(name):
                return True
        return False

    def _parts(self, info: ClassInfo) -> Iterator[cst.Call]:
        """Yield the calls in a class that make modules of other classes of the file."""
        for call in self._calls(info):
            made = self.module.value(call)
            if made.kind is Kind.MODULE and isinstance(made.definition, cst.ClassDef):
                yield call

    def _calls(self, info: ClassInfo) -> Iterator[cst.Call]:
        for ancestor in info.lineage:
            yield from (node for node in self.tree.descendants(ancestor.node) if isinstance(node, cst.Call))

    # ------------------------------------------------------------------ what becomes of them

    def _elements(self, collection: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Return the expressions that stand for elements of a collection where it is read: indexed,
        or iterated.
        """
        return sinks(self.module, Standing(collection, (None,)), _element)

    def _cared_for(self, made: list[cst.BaseExpression]) -> bool:
        """Return whether the modules are registered in another way, or kept apart on purpose."""
        locals_ = [name for name in (self.value, *made) if isinstance(name, cst.Name)]
        collections: list[cst.BaseExpression] = [*self.reads]
        elements: list[cst.BaseExpression] = []
        for name in locals_:
            for use in self._uses(name):
                (collections if name is self.value else elements).append(use)
        for collection in collections:
            elements += self._elements(collection)
        if any(self._is_registered(node) for node in (*collections, *elements)):
            return True
        if any(self._by_hand(element) for element in elements) or self._by_hand_outside():
            return True
        if self._is_wrapped_to_hide() or self._frozen(made):
            return True
        called = [element for element in elements if self.tree.is_called(element)]
        return bool(called) and all(grad(self.module, element) is Grad.OFF for element in called)

    def _is_registered(self, node: cst.BaseExpression) -> bool:
        """Return whether a use of a module, or of a collection, hands it to something that registers it."""
        child: cst.CSTNode = node
        for ancestor in self.tree.ancestors(node):
            if isinstance(ancestor, cst.Call) and child is not ancestor.func:
                if self._registers(ancestor):
                    return True
                if self.module.qualified(ancestor.func) in _ASKING:
                    return False
            if isinstance(ancestor, cst.Assign) and child is ancestor.value:
                parts = (part for target in ancestor.targets for part, _ in unpacked(target.target))
                return any(self._keeps(part, ancestor.value) for part in parts)
            if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
            # What a method of the module gives is another thing, but ``values`` of a dict gives the modules.
            if isinstance(ancestor, cst.Attribute) and ancestor.attr.value != "values":
                return False
            if isinstance(ancestor, cst.Call) and ancestor.func is node:
                return False
            child = ancestor
        return False

    def _registers(self, call: cst.Call) -> bool:
        if last_name(call.func) in _REGISTERING:
            return True
        name = self.module.qualified(call.func)
        if name in _CONTAINERS:
            function = self.module.function(call)
            return not (isinstance(function, cst.FunctionDef) and function.name.value == "forward")
        if name is not None and name.startswith(_HARMLESS_LIBRARIES):
            return False
        if isinstance(call.func, cst.Attribute):
            filled = call.func.value
            if call.func.attr.value in _FILLING:
                # ``self.registered.append(conv)`` beside the plain list.
                own = isinstance(filled, cst.Attribute) and filled.attr.value == self.name
                return not own and not (isinstance(filled, cst.Name) and isinstance(self.value, cst.Name))
        function = self.module.callee(call)
        if isinstance(function, cst.FunctionDef):
            return self._may_register(function)
        # A function of another file, or a method of a base there, may do anything.
        inside = self.tree.enclosing(call, cst.FunctionDef)
        return inside is not None and inside.name.value == "__init__"

    def _may_register(self, function: cst.FunctionDef) -> bool:
        """Return whether a function of the file registers modules, which may be those that it is given."""
        calls = (node for node in self.tree.descendants(function.body) if isinstance(node, cst.Call))
        return any(
            last_name(call.func) in _REGISTERING or self.module.qualified(call.func) in _CONTAINERS
            for call in calls
        )

    def _keeps(self, target: cst.CSTNode, value: cst.BaseExpression) -> bool:
        """Return whether an assignment to another attribute keeps modules,
        not their number or what they compute.
        """
        if isinstance(target, cst.Subscript):  # ``self._modules[name] = layer``
            target = target.value
        if not isinstance(target, cst.Attribute) or target.attr.value == self.name:
            return False
        kind = self.module.value(value).kind
        return kind not in (Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.TENSOR, Kind.SHAPE)

    def _by_hand(self, element: cst.BaseExpression) -> bool:
        parent = self.tree.parent(element)
        return isinstance(parent, cst.Attribute) and parent.value is element and parent.attr.value in _BY_HAND

    def _outside(self) -> list[cst.Attribute]:
        """Return the reads of an attribute of that name of anything but ``self``."""
        reads = self.attributes.attribute_reads.get(self.name, ())
        return [read for read in reads if self.attributes.self_class(read) is None]

    def _by_hand_outside(self) -> bool:
        return any(self._by_hand(element) for read in self._outside() for element in self._elements(read))

    def _is_wrapped_to_hide(self) -> bool:
        """Return whether it is ``self.teacher = [Teacher()]``,
        which is only ever taken out again: ``self.teacher[0]``.
        """
        single = isinstance(self.value, (cst.List, cst.Tuple)) and len(self.value.elements) == 1
        return single and all(map(self._takes_only, self.reads))

    def _takes_only(self, read: cst.Attribute) -> bool:
        """Return whether a read takes the one element out: ``self.vgg[0]``, ``(vgg,) = self.vgg``."""
        parent = self.tree.parent(read)
        match parent:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
                return self.module.value(index).constant == 0
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() | cst.List() as target)]):
                return len(target.elements) == 1
            case _:
                return False

    def _frozen(self, made: list[cst.BaseExpression]) -> bool:
        """Return whether the modules are put into evaluation mode, or frozen, as they are made."""
        return any(
            isinstance(node, cst.Attribute) and node.attr.value in ("eval", "requires_grad_")
            for member in made
            for node in self.tree.descendants(member)
        )

    # ------------------------------------------------------------------ what a fix needs to know

    def _filled_later(self) -> bool:
        """Return whether a variable gets more elements after it became the attribute,
        which a copy would lack.
        """
        if not isinstance(self.value, cst.Name):
            return False
        order = self.tree.order
        return any(
            order[use] > order[self.value] and any(put_into(self.module, use))
            for use in self._uses(self.value)
        )

    def _keys(self) -> tuple[object, ...] | None:
        """Return the keys of a dict that is made at once, if the file shows them all."""
        if not isinstance(self.value, cst.Dict) or any(map(self._fills, self.reads)):
            return None
        found: list[object] = []
        for entry in self.value.elements:
            key = self.module.value(entry.key).constant if isinstance(entry, cst.DictElement) else MISSING
            if key is MISSING:
                return None
            found.append(key)
        return tuple(found)

    def _fills(self, read: cst.Attribute) -> bool:
        return any(put_into(self.module, read))

    def _needs_builtin(self, read: cst.Attribute, mapping: bool) -> bool:
        """Return whether a use asks for what ``nn.ModuleList``
        or ``nn.ModuleDict`` lacks: ``layers.reverse()``.
        """
        parent = self.tree.parent(read)
        match parent:
            case cst.Attribute(attr=cst.Name("pop")):
                call = self.tree.parent(parent)
                return isinstance(call, cst.Call) and len(call.args) != 1
            case cst.Attribute(attr=cst.Name(name)):
                return name in (_ONLY_OF_DICT if mapping else _ONLY_OF_LIST)
            case cst.BinaryOperation(operator=cst.Add()):
                # A list takes no `ModuleList` behind it; another attribute is taken for one as well.
                return mapping or (parent.right is read and not isinstance(parent.left, cst.Attribute))
            case cst.BinaryOperation():
                return True
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator), *_]):
                return isinstance(operator, (cst.Equal, cst.NotEqual))
            case cst.ComparisonTarget(operator=operator):
                return isinstance(operator, (cst.Equal, cst.NotEqual))
            case cst.AugAssign():
                return not isinstance(parent.operator, cst.AddAssign)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice())]):
                return isinstance(self.tree.parent(parent), (cst.AssignTarget, cst.AugAssign))
            case cst.Arg():
                call = self.tree.parent(parent)
                called = self.module.qualified(call.func) if isinstance(call, cst.Call) else None
                return called in _BY_TYPE
            case _:
                return False


def registered_in_time(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether modules can be registered by a statement:
    the constructor of ``nn.Module`` has run before.
    """
    function = module.tree.enclosing(statement, cst.FunctionDef)
    if function is None or function.name.value != "__init__":
        return True
    order = module.tree.order
    return any(
        isinstance(node, cst.Call) and last_name(node.func) == "__init__" and order[node] < order[statement]
        for node in module.tree.descendants(function.body)
    )


def _element(module: Module, use: Use) -> Verdict[cst.BaseExpression]:
    """Return the element of a collection that stands where it is used; the collection itself goes on."""
    if not use.path:
        # What a loop gives its variable stands nowhere but under that name.
        return ONWARD if use.kind in (UseKind.ASSIGNED, UseKind.UNPACKED) else use.node
    match use.kind:
        case UseKind.ITEM if isinstance(use.by, cst.Subscript) and not _is_slice(use.by):
            return use.by, ONWARD
        case UseKind.ITEM | UseKind.ITERATED | UseKind.ASSIGNED:
            return ONWARD
        case UseKind.ARGUMENT if module.qualified(use.call.func) in _GOING_THROUGH:
            return ONWARD
        case UseKind.METHOD if use.name == "values":
            return ONWARD
        case UseKind.METHOD if use.name == "items":
            return Standing(use.call, (None, 1))
        case UseKind.METHOD if use.name == "get":
            return use.call, Standing(use.call)
    return ()


def _is_slice(item: cst.Subscript) -> bool:
    return any(isinstance(part.slice, cst.Slice) for part in item.slice)
