"""Which layer or function of a model feeds which.

A *layer* is what a constructor call such as ``nn.Conv2d(...)`` makes. It is followed from there through
names, attributes of the class and of its bases and subclasses in the file, containers, lists filled by
code, factories and wrappers to every place where it is applied; the *result* of an application is followed
through nested calls, rebinding and helper methods to whatever takes it next. Each such taker is a
``Consumer``. A use that cannot be followed is a consumer without a name, so that a question such as "does
everything behind this convolution normalise it" is never answered on half of the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import AttributeBinding, Binding, BindingKind
from torchlint.semantics.sequences import START, Filling, Step, argument_steps, literal_steps, trace

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


@dataclass(frozen=True, slots=True)
class Consumer:
    """What takes the result of a layer or of a call.

    ``name`` is the dotted name of the class of the layer, or of the function, and ``call`` the call that
    makes the layer or is the function's; both None where the taker is something else or out of sight.
    """

    name: str | None
    call: cst.Call | None


@dataclass(frozen=True, slots=True)
class Trail:
    """Where a layer or a result was followed to.

    ``factories`` are the functions of the file that hand the layer out: other files may call them too.
    """

    consumers: tuple[Consumer, ...]
    factories: tuple[cst.FunctionDef, ...]


_SOMETHING = Consumer(None, None)
_Search = Generator[Consumer, None, bool]

_SEQUENTIAL = "torch.nn.Sequential"
_MODULE_LIST = "torch.nn.ModuleList"
# Functions that hand back the layer given to them, changed in place.
_WRAPPERS = frozenset(
    {
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "torch.nn.utils.skip_init",
    }
)
# Methods of a module that return the module itself.
_RETURNS_SELF = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "apply", "requires_grad_"}
)
# Attributes of a layer whose reading has nothing to do with what it computes.
_PLAIN_ATTRIBUTES = frozenset(
    {
        "weight",
        "in_channels",
        "out_channels",
        "in_features",
        "out_features",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "training",
        "register_forward_pre_hook",
        "extra_repr",
        "__class__",
    }
)
# What is asked of a tensor without using its elements.
_METADATA = frozenset(
    {
        "shape",
        "size",
        "dim",
        "ndim",
        "device",
        "dtype",
        "is_cuda",
        "requires_grad",
        "numel",
        "stride",
        "is_contiguous",
        "layout",
    }
)
_HARMLESS_FUNCTIONS = frozenset(
    {"builtins.print", "builtins.isinstance", "builtins.type", "builtins.id", "builtins.repr", "builtins.len"}
)
_INPUT_KEYWORDS = frozenset({"input", "x", "inputs", "X"})
_LISTS = frozenset({"builtins.list", "builtins.tuple", "collections.OrderedDict", "builtins.dict"})
_FILLING_METHODS = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class Dataflow:
    """The layers of one file and what they feed; everything is worked out on demand."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree, self.names = module, module.tree, module.names
        self._fillings: dict[tuple[cst.CSTNode, str], Filling] = {}
        self._families: dict[cst.ClassDef, tuple[cst.ClassDef, ...]] = {}
        self._visiting: set[tuple[str, cst.CSTNode]] = set()
        self._factories: dict[cst.FunctionDef, None] = {}

    def after_layer(self, call: cst.Call) -> Trail:
        """All that takes what the layer made by ``call`` computes."""
        return self._trail(self._after_object(call))

    def after_result(self, call: cst.Call) -> Trail:
        """All that takes the result of ``call``, a function applied to tensors."""
        return self._trail(self._after_output(call))

    def _trail(self, search: Iterator[Consumer]) -> Trail:
        self._visiting, self._factories = set(), {}
        consumers = tuple(dict.fromkeys(search))
        return Trail(consumers or (_SOMETHING,), tuple(self._factories))

    # ------------------------------------------------------------------ objects: where a layer goes

    def _once(self, kind: str, node: cst.CSTNode) -> bool:
        """Whether this step is taken for the first time; following a loop once is enough."""
        key = (kind, node)
        if key in self._visiting:
            return False
        self._visiting.add(key)
        return True

    def _places(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The expressions that hold the object ``node``, each where something is done with it.

        Names, attributes, returns and wrappers are followed; what does not come back is left out, so a
        caller looks at every place that it gets.
        """
        if not self._once("place", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Assign() | cst.AnnAssign() | cst.NamedExpr():
                targets = (
                    [target.target for target in parent.targets]
                    if isinstance(parent, cst.Assign)
                    else [parent.target]
                )
                for target in targets:
                    yield from self._held(target, node)
                if isinstance(parent, cst.NamedExpr):
                    yield from self._places(parent)
            case cst.Element() if (pair := self._unpacked(parent)) is not None:
                yield from self._held(pair, node)
            case cst.IfExp() if node is not parent.test:
                yield from self._places(parent)
            case cst.Return():
                calls = self._calls_of_enclosing(parent)
                if calls is None:
                    yield node
                else:
                    for call in calls:
                        yield from self._places(call)
            case cst.Attribute() if node is parent.value and parent.attr.value in _RETURNS_SELF:
                outer = self.tree.parent(parent)
                if isinstance(outer, cst.Call) and outer.func is parent:
                    if not isinstance(self.tree.parent(outer), cst.Expr):
                        yield from self._places(outer)
                else:
                    yield node
            case cst.Arg() if self._wraps(parent):
                wrapper = self.tree.parent(parent)
                assert isinstance(wrapper, cst.Call)
                yield from self._places(wrapper)
            case cst.Arg() if (name := self._registered_name(parent)) is not None:
                if self._is_sequential_class(self.tree.enclosing(node, cst.ClassDef)):
                    yield node
                yield from self._reads_of_attribute(parent, name)
            case _:
                yield node

    def _held(self, target: cst.BaseExpression, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The places of an object that is assigned to ``target``."""
        if isinstance(target, cst.Name):
            binding = self.names.by_node.get(target)
            uses = self.names.uses(binding) if binding is not None else []
            for use in uses:
                yield from self._places(use)
        elif isinstance(target, cst.Attribute) and self._self_class(target) is not None:
            if self._is_sequential_class(self._self_class(target)):
                yield node
            yield from self._reads_of_attribute(target, target.attr.value)
        else:
            yield node

    def _reads_of_attribute(self, at: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
        """The places of ``self.<name>``, as set at ``at``; ``name`` may have ``*`` for parts made by code."""
        owner = self._enclosing_class(at)
        if owner is None:
            return
        pattern = _name_pattern(name)
        for read in self._self_reads(owner):
            if pattern.fullmatch(read.attr.value):
                yield from self._places(read)
        for call, wanted in self._getattrs(owner):
            if _may_be_same(name, wanted):
                yield from self._places(call)
        if "*" not in name:
            # ``model.conv.bias`` outside of the class: whose attribute it is cannot be seen.
            for attribute in self._attribute_reads.get(name, ()):
                if not self._is_own(attribute):
                    above = self.tree.parent(attribute)
                    if isinstance(above, cst.Attribute) and above.attr.value == "bias":
                        yield attribute

    def _after_object(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What takes the results of the layer or container that ``node`` makes or holds."""
        if ("place", node) in self._visiting:
            return
        found = list(self._taken_from(node))
        # A layer that is never applied in this file may be applied by another one.
        yield from found or [_SOMETHING]

    def _taken_from(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        for place in self._places(node):
            yield from self._after_place(place)

    def _after_place(self, place: cst.BaseExpression) -> Iterator[Consumer]:
        parent = self.tree.parent(place)
        match parent:
            case cst.Call() if parent.func is place:
                yield from self._after_output(parent)
            case cst.Attribute() if parent.value is place:
                yield from self._after_attribute(parent)
            case cst.Arg():
                yield from self._after_argument(parent, place)
            case cst.Element() | cst.DictElement() | cst.ListComp() | cst.StarredElement():
                yield from self._after_member(place)
            case cst.Assign():
                yield from self._after_stored(place)
            case cst.Comparison() | cst.Expr() | cst.Assert():
                return
            case cst.If() if parent.test is place:
                return
            case cst.Subscript() | cst.For() | cst.CompFor():
                # A container read element by element speaks in ``_exposed``; its own output is not used.
                return
            case _:
                yield _SOMETHING

    def _after_attribute(self, attribute: cst.Attribute) -> Iterator[Consumer]:
        name = attribute.attr.value
        if name in _PLAIN_ATTRIBUTES or name in _FILLING_METHODS:
            return
        if name == "bias" and self.bias_guarded(attribute):
            return
        outer = self.tree.parent(attribute)
        if name == "forward" and isinstance(outer, cst.Call) and outer.func is attribute:
            yield from self._after_output(outer)
        elif (
            name
            in (
                "modules",
                "children",
                "named_modules",
                "named_children",
                "parameters",
                "named_parameters",
            )
            or name in _RETURNS_SELF
            or name in ("state_dict", "zero_grad")
        ):
            return
        else:
            yield _SOMETHING

    def _after_argument(self, argument: cst.Arg, place: cst.BaseExpression) -> Iterator[Consumer]:
        call = self.tree.parent(argument)
        assert isinstance(call, cst.Call)
        name = self.called(call)
        if name == _SEQUENTIAL or self._fills_own_sequence(call):
            yield from self._after_step(place, call)
        elif name in _HARMLESS_FUNCTIONS or name in (
            "builtins.enumerate",
            "builtins.zip",
            "builtins.reversed",
        ):
            return
        elif self._is_filling(call):
            yield from self._after_member(place)
        else:
            yield _SOMETHING

    # ------------------------------------------------------------------ sequences

    def _after_step(self, node: cst.BaseExpression, call: cst.Call) -> Iterator[Consumer]:
        """What comes behind an argument of ``nn.Sequential(...)``, and what reads it out of there."""
        steps = argument_steps(call.args)
        index = next(i for i, step in enumerate(steps) if step.node is node)
        known = not any(step.many for step in steps)
        yield from self._exposed(call, index if known else None, len(steps))
        if not (yield from self._first_of(steps[index + 1 :])):
            yield from self._after_end_of(call)

    def _after_end_of(self, call: cst.Call) -> Iterator[Consumer]:
        """What comes behind the last argument of a container: what is added later, or what it feeds."""
        if self._fills_own_sequence(call):
            last = call.args[-1].value if call.args else None
            yield from self._follow(self._own_sequence(call), last, None)
            return
        owner = self._owner_of(call)
        filling = self._filling(owner) if owner is not None else None
        if filling is not None and len(filling.steps) > 1:
            yield from self._follow(filling, call, call)
        else:
            yield from self._after_object_again(call)

    def _after_object_again(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """As ``_after_object``, for an object whose places have been looked at for another question."""
        if self._once("object", node):
            seen = self._visiting
            self._visiting = {key for key in seen if key[0] != "place"}
            yield from self._after_object(node)
            self._visiting = seen | self._visiting

    def _follow(
        self, filling: Filling, node: cst.CSTNode | None, container: cst.Call | None
    ) -> Iterator[Consumer]:
        """What comes behind ``node`` in a list filled by code."""
        if filling.broken or node not in filling.after:
            yield _SOMETHING
            return
        for option in filling.following(node):
            if isinstance(option, Step):
                if not (yield from self._first_of([option])) and self._once("behind", option.node):
                    yield from self._follow(filling, option.node, container)
            elif option.read is not None:
                yield from self._after_list(option.read)
            elif container is not None:
                yield from self._after_object_again(container)
            else:
                yield _SOMETHING

    def _after_member(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What comes behind ``node``, an element of a list or of what fills a container."""
        containers = self._containers_of(node)
        if containers is None:
            yield _SOMETHING
            return
        lists = [c for c in containers if self.called(c) == _MODULE_LIST]
        if lists and len(lists) == len(containers):
            for container in lists:
                yield from self._after_element(node, container)
            return
        if lists:
            yield _SOMETHING
            return
        for container in containers:
            yield from self._exposed(container, None, 0)
        yield from self._after_in_list(node)

    def _after_in_list(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What comes behind an element (or a list put into another), by the order of the list."""
        holder = self._holder(node)
        match holder:
            case cst.List() | cst.Tuple() | cst.Dict():
                steps = literal_steps(holder) or []
                index = next((i for i, step in enumerate(steps) if step.node is node), None)
                if index is None:
                    yield _SOMETHING
                elif not (yield from self._first_of(steps[index + 1 :])):
                    yield from self._after_list(holder)
            case cst.ListComp():
                yield from self._heads(node)
                yield from self._after_list(holder)
            case cst.Call() if self._is_filling(holder):
                yield from self._after_filling_call(node, holder)
            case cst.Assign():
                owner = holder.targets[0].target
                assert isinstance(owner, cst.Subscript)
                yield from self._after_filled(owner.value, node)
            case _:
                yield _SOMETHING

    def _after_stored(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """``layers["conv"] = node`` or, in a sequence class, ``self.conv = node``."""
        parent = self.tree.parent(node)
        assert isinstance(parent, cst.Assign)
        target = parent.targets[0].target
        if isinstance(target, cst.Subscript):
            yield from self._after_member(node)
        elif isinstance(target, cst.Attribute) and self._is_sequential_class(self._self_class(target)):
            yield from self._follow(self._own_sequence(target), node, None)
        else:
            yield _SOMETHING

    def _after_filling_call(self, node: cst.BaseExpression, call: cst.Call) -> Iterator[Consumer]:
        if isinstance(call.func, cst.Attribute):
            yield from self._after_filled(call.func.value, node)
        else:  # setattr(self, name, node)
            yield from self._follow(self._own_sequence(call), node, None)

    def _after_filled(self, owner: cst.BaseExpression, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What comes behind ``node``, which code puts at the end of ``owner``."""
        if isinstance(owner, cst.Name) and self._is_self(owner):
            yield from self._follow(self._own_sequence(owner), node, None)
            return
        filling = self._filling(owner)
        made = self._made(owner)
        container = made[0] if made is not None and len(made) == 1 and isinstance(made[0], cst.Call) else None
        if filling is None:
            yield _SOMETHING
        else:
            yield from self._follow(filling, node, container)

    def _after_list(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What comes behind the last element of the list ``node``."""
        if not self._once("list", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                call = self.tree.parent(parent)
                assert isinstance(call, cst.Call)
                name = self.called(call)
                if parent.star == "*" and (name == _SEQUENTIAL or self._fills_own_sequence(call)):
                    steps = argument_steps(call.args)
                    index = next(i for i, step in enumerate(steps) if step.node is node)
                    if not (yield from self._first_of(steps[index + 1 :])):
                        yield from self._after_end_of(call)
                elif name == _SEQUENTIAL or self._fills_own_sequence(call):
                    yield from self._after_end_of(call)
                elif name in _LISTS:
                    yield from self._after_list(call)
                elif name == "builtins.len":
                    return
                elif self._is_filling(call):
                    yield from self._after_filling_call(node, call)
                else:
                    yield _SOMETHING
            case cst.StarredElement() | cst.Element():
                yield from self._after_in_list(node)
            case cst.AugAssign():
                yield from self._after_filled(parent.target, node)
            case cst.BinaryOperation(operator=cst.Add()) if parent.left is node:
                if not (yield from self._first_of([Step(parent.right, many=True)])):
                    yield from self._after_list(parent)
            case cst.BinaryOperation(operator=cst.Add()):
                target = self._assigned_list(parent)
                if target is not None and _same(parent.left, target):
                    yield from self._after_filled(target, node)
                else:
                    yield from self._after_list(parent)
            case cst.Assign() if isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
                yield from self._after_filled(parent.targets[0].target, node)
            case cst.IfExp():
                yield from self._after_list(parent)
            case cst.Return():
                calls = self._calls_of_enclosing(parent)
                if not calls:
                    yield _SOMETHING
                for call in calls or ():
                    yield from self._after_list(call)
            case _:
                yield _SOMETHING

    # ------------------------------------------------------------------ heads: what a layer starts with

    def _first_of(self, steps: Iterable[Step]) -> _Search:
        """Yield what an input given to these elements meets first; return whether it meets any."""
        for step in steps:
            if step.many:
                if (yield from self._first_of_list(step.node)):
                    return True
            else:
                yield from self._heads(step.node)
                return True
        return False

    def _first_of_list(self, node: cst.BaseExpression) -> _Search:
        """As ``_first_of`` for a list; False also if it may be empty."""
        steps = literal_steps(node)
        if steps is not None:
            return (yield from self._first_of(steps))
        match node:
            case cst.ListComp() | cst.GeneratorExp():
                yield from self._heads(node.elt)
                return False
            case cst.IfExp():
                first = yield from self._first_of_list(node.body)
                second = yield from self._first_of_list(node.orelse)
                return first and second
            case cst.BinaryOperation(operator=cst.Add()):
                if (yield from self._first_of_list(node.left)):
                    return True
                return (yield from self._first_of_list(node.right))
            case cst.Name():
                filling = self._filling(node)
                if filling is not None and not filling.broken:
                    return (yield from self._first_filled(filling, node))
            case cst.Call():
                name = self.called(node)
                if name in _LISTS and not node.args:
                    return False
                if name in _LISTS or name == _SEQUENTIAL:
                    return (yield from self._first_of_container(node))
                returned = self._returned(node)
                if returned:
                    always = True
                    for value in returned:
                        always = (yield from self._first_of_list(value)) and always
                    return always
            case _:
                pass
        yield _SOMETHING
        return True

    def _first_filled(self, filling: Filling, read: cst.BaseExpression | None) -> _Search:
        always, key = True, None
        queue: list[cst.CSTNode | None] = [START]
        seen: set[cst.CSTNode | None] = set()
        while queue:
            key = queue.pop()
            if key in seen:
                continue
            seen.add(key)
            for option in filling.following(key):
                if isinstance(option, Step):
                    if not (yield from self._first_of([option])):
                        queue.append(option.node)
                elif option.read is read:
                    always = False
        return always

    def _first_of_container(self, call: cst.Call) -> _Search:
        if len(call.args) == 1 and not call.args[0].star:
            argument = call.args[0].value
            if literal_steps(argument) is not None or self._is_list(argument):
                return (yield from self._first_of_list(argument))
        return (yield from self._first_of(argument_steps(call.args)))

    def _heads(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What an input given to the layer ``node`` meets first, one answer for each layer it can be."""
        if not self._once("head", node):
            return
        layers = self._layers(node)
        if layers is None:
            yield _SOMETHING
        else:
            for layer in layers:
                yield from self._head_of_call(layer)
        self._visiting.discard(("head", node))

    def _head_of_call(self, call: cst.Call) -> Iterator[Consumer]:
        name = self.called(call)
        if name == _SEQUENTIAL:
            owner = self._owner_of(call)
            filling = self._filling(owner) if owner is not None else None
            found = yield from self._first_of_container(call)
            if not found:
                if (
                    filling is None
                    or filling.broken
                    or (not call.args and len(filling.steps) < 2)
                    or not (yield from self._first_after(filling, call))
                ):
                    yield _SOMETHING
        elif name is not None and name.startswith("torch."):
            yield Consumer(name, call)
        else:
            yield _SOMETHING

    def _first_after(self, filling: Filling, call: cst.Call) -> _Search:
        always = True
        for option in filling.following(call):
            if isinstance(option, Step):
                always = (yield from self._first_of([option])) and always
            else:
                always = False
        return always

    # ------------------------------------------------------------------ what an expression holds

    def _layers(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.Call] | None:
        """The constructor calls that can have made the layer ``node``; None if some are out of sight."""
        if depth > 12:
            return None
        match node:
            case cst.Call():
                return self._layers_of_call(node, depth)
            case cst.IfExp():
                return self._all_layers([node.body, node.orelse], depth)
            case cst.Name():
                bindings = self.names.bindings(node)
                if not bindings:
                    return None
                found: list[cst.Call] = []
                for binding in bindings:
                    layers = self._layers_of_binding(binding, depth)
                    if layers is None:
                        return None
                    found += layers
                return found
            case cst.Attribute() if self._self_class(node) is not None:
                values = self._attribute_values(node, node.attr.value)
                return self._all_layers(values, depth) if values else None
            case cst.Subscript():
                if any(isinstance(element.slice, cst.Slice) for element in node.slice):
                    return None
                members = self._members(node.value)
                return self._all_layers(members, depth) if members else None
            case _:
                return None

    def _all_layers(self, nodes: Iterable[cst.BaseExpression], depth: int) -> list[cst.Call] | None:
        found: list[cst.Call] = []
        for node in nodes:
            layers = self._layers(node, depth + 1)
            if layers is None:
                return None
            found += layers
        return list(dict.fromkeys(found))

    def _layers_of_call(self, call: cst.Call, depth: int) -> list[cst.Call] | None:
        name = self.called(call)
        if name in _WRAPPERS and call.args:
            return self._layers(call.args[0].value, depth + 1)
        if name == "builtins.getattr" and len(call.args) == 2 and self._is_self(call.args[0].value):
            wanted = _pattern_of(call.args[1].value)
            values = self._attribute_values(call, wanted) if wanted.strip("*") else []
            return self._all_layers(values, depth) if values else None
        if name is not None:
            return [call]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _RETURNS_SELF:
            return self._layers(call.func.value, depth + 1)
        returned = self._returned(call)
        return self._all_layers(returned, depth) if returned else None

    def _layers_of_binding(self, binding: Binding, depth: int) -> list[cst.Call] | None:
        if binding.value is None:
            return None
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
            container = self._iterated(binding.value, binding.path)
            members = self._members(container) if container is not None else None
            return self._all_layers(members, depth) if members else None
        if binding.kind in (BindingKind.ASSIGN, BindingKind.WALRUS):
            value = _part(binding.value, binding.path)
            return self._layers(value, depth + 1) if value is not None else None
        return None

    def _members(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression] | None:
        """The elements of a container or list, in no order; None if some are out of sight."""
        if depth > 8:
            return None
        steps = literal_steps(node)
        if steps is not None:
            return self._flat(steps, depth)
        match node:
            case cst.ListComp() | cst.GeneratorExp():
                return [node.elt]
            case cst.BinaryOperation(operator=cst.Add()):
                return self._flat([Step(node.left, True), Step(node.right, True)], depth)
            case cst.BinaryOperation(operator=cst.Multiply()) if literal_steps(node.left) is not None:
                return self._members(node.left, depth + 1)
            case cst.Subscript():
                sliced = any(isinstance(element.slice, cst.Slice) for element in node.slice)
                return self._members(node.value, depth + 1) if sliced else None
            case cst.Call():
                name = self.called(node)
                if name in (_MODULE_LIST, _SEQUENTIAL) or name in _LISTS:
                    if len(node.args) == 1 and not node.args[0].star and name != _SEQUENTIAL:
                        return self._members(node.args[0].value, depth + 1)
                    return self._flat(argument_steps(node.args), depth)
                returned = self._returned(node)
                return self._flat([Step(v, True) for v in returned], depth) if returned else None
            case cst.Name() | cst.Attribute():
                made = self._made(node)
                if made is None:
                    return None
                found = self._flat([Step(value, True) for value in made], depth)
                added = self._added(node)
                if found is None or added is None:
                    return None
                more = self._flat(added, depth)
                return None if more is None else found + more
            case _:
                return None

    def _flat(self, steps: Iterable[Step], depth: int) -> list[cst.BaseExpression] | None:
        found: list[cst.BaseExpression] = []
        for step in steps:
            if not step.many:
                found.append(step.node)
                continue
            members = self._members(step.node, depth + 1)
            if members is None:
                return None
            found += members
        return found

    def _made(self, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
        """The expressions assigned to a name or attribute; None if another kind of binding counts."""
        if isinstance(node, cst.Attribute):
            if self._self_class(node) is None:
                return None
            return self._attribute_values(node, node.attr.value) or None
        if not isinstance(node, cst.Name):
            return None
        own = self.names.by_node.get(node)
        found: list[cst.BaseExpression] = []
        for binding in (own,) if own is not None else self.names.bindings(node):
            if binding.kind is BindingKind.AUGMENT:
                found += [b.value for b in self._plain_bindings(binding) if b.value is not None]
                continue
            if binding.kind is not BindingKind.ASSIGN or binding.path or binding.value is None:
                return None
            if not (isinstance(binding.value, cst.BinaryOperation) and _same(binding.value.left, node)):
                found.append(binding.value)
        return list(dict.fromkeys(found)) or None

    @staticmethod
    def _plain_bindings(binding: Binding) -> list[Binding]:
        return [
            b
            for b in binding.scope.bindings[binding.name]
            if b.kind is BindingKind.ASSIGN and not b.path and b.value is not None
        ]

    def _added(self, owner: cst.BaseExpression) -> list[Step] | None:
        """What code puts into a list or container after it was made; None if some of it is out of sight."""
        if isinstance(owner, cst.Name):
            filling = self._filling(owner)
            if filling is None:
                return None
            made = self._made(owner) or []
            return [step for step in filling.steps if step.node not in made]
        assert isinstance(owner, cst.Attribute)
        found: list[Step] = []
        holder = self._self_class(owner)
        for read in self._self_reads(holder) if holder is not None else ():
            if read.attr.value != owner.attr.value:
                continue
            above = self.tree.parent(read)
            if isinstance(above, cst.AugAssign) and above.target is read:
                found.append(Step(above.value, True))
            call = self.tree.parent(above) if isinstance(above, cst.Attribute) else None
            if (
                not isinstance(call, cst.Call)
                or not isinstance(above, cst.Attribute)
                or call.func is not above
            ):
                continue
            if above.attr.value in _FILLING_METHODS and call.args:
                found.append(Step(call.args[-1].value, above.attr.value == "extend"))
        return found

    # ------------------------------------------------------------------ elements read out of containers

    def _exposed(self, container: cst.Call, index: int | None, count: int) -> Iterator[Consumer]:
        """What is done with the element at ``index`` of a container that is read element by element."""
        if not self._once("exposed", container):
            return
        seen, factories = self._visiting, dict(self._factories)
        self._visiting = {key for key in seen if key[0] != "place"}
        for place in list(self._places(container)):
            parent = self.tree.parent(place)
            if isinstance(parent, cst.Subscript) and parent.value is place:
                wanted = _integer(parent)
                if index is not None and wanted is not None and wanted % max(count, 1) != index:
                    continue
                yield from self._taken_from(parent)
            elif isinstance(parent, (cst.For, cst.CompFor, cst.Arg)) and self._loop_uses(place) is not None:
                if self._applied_in_order(place) is None:
                    for use in self._loop_uses(place) or ():
                        yield from self._taken_from(use)
        self._visiting, self._factories = seen | self._visiting, factories

    def _after_element(self, node: cst.BaseExpression, container: cst.Call) -> Iterator[Consumer]:
        """What takes the results of an element of a ``ModuleList``."""
        if self._once("element", node):
            yield from list(self._taken_from_element(node, container)) or [_SOMETHING]

    def _taken_from_element(self, node: cst.BaseExpression, container: cst.Call) -> Iterator[Consumer]:
        for place in list(self._places(container)):
            parent = self.tree.parent(place)
            match parent:
                case cst.Subscript() if parent.value is place:
                    yield from self._after_subscript(parent, node)
                case cst.Attribute() if parent.attr.value in _FILLING_METHODS:
                    continue
                case cst.Comparison() | cst.AugAssign():
                    continue
                case cst.Arg() if self._is_length(parent):
                    continue
                case cst.For() | cst.CompFor() | cst.Arg():
                    yield from self._after_iteration(place, node)
                case _:
                    yield _SOMETHING

    def _after_subscript(self, subscript: cst.Subscript, node: cst.BaseExpression) -> Iterator[Consumer]:
        if any(isinstance(element.slice, cst.Slice) for element in subscript.slice):
            yield from self._after_iteration(subscript, node)
        else:
            yield from self._taken_from(subscript)

    def _after_iteration(self, read: cst.BaseExpression, node: cst.BaseExpression) -> Iterator[Consumer]:
        output = self._applied_in_order(read)
        if output is not None:
            # ``for layer in self.layers: x = layer(x)``
            loop_read = output.args[0].value
            statement = self.tree.parent(output)
            assert isinstance(statement, cst.Assign)
            binding = self.names.by_node[statement.targets[0].target]
            yield from self._after_in_list_until(node, binding, loop_read)
            return
        uses = self._loop_uses(read)
        if uses is None:
            yield _SOMETHING
        for use in uses or ():
            yield from self._taken_from(use)

    def _after_in_list_until(
        self, node: cst.BaseExpression, binding: Binding, loop_read: cst.BaseExpression
    ) -> Iterator[Consumer]:
        holder = self._holder(node)
        if isinstance(holder, (cst.List, cst.Tuple)):
            steps = literal_steps(holder) or []
            index = next((i for i, step in enumerate(steps) if step.node is node), None)
            outer = self.tree.parent(holder)
            whole = isinstance(outer, cst.Arg) and self.called(self.tree.parent(outer)) == _MODULE_LIST
            if index is not None and whole:
                if not (yield from self._first_of(steps[index + 1 :])):
                    for use in self.names.uses(binding):
                        if use is not loop_read:
                            yield from self._after_output(use)
                return
        yield _SOMETHING

    def _applied_in_order(self, read: cst.BaseExpression) -> cst.Call | None:
        """The call in ``for layer in read: x = layer(x)``, if that is all that the loop does."""
        loop = self.tree.parent(read)
        if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
            return None
        body = loop.body.body
        line = body[0] if len(body) == 1 else None
        statement = (
            line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line
        )
        match statement:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=result))],
                value=cst.Call(
                    func=cst.Name(value=layer), args=[cst.Arg(value=cst.Name(value=given))]
                ) as call,
            ) if layer == loop.target.value and result == given:
                return call
            case _:
                return None

    def _loop_uses(self, read: cst.BaseExpression) -> list[cst.Name] | None:
        """The reads of the loop variable that stands for the elements of ``read``; None if there is none."""
        path: tuple[int, ...] = ()
        node: cst.CSTNode = read
        while True:
            parent = self.tree.parent(node)
            if isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node:
                target = _target(parent.target, path)
                binding = self.names.by_node.get(target) if isinstance(target, cst.Name) else None
                return self.names.uses(binding) if binding is not None else None
            call = self.tree.parent(parent) if isinstance(parent, cst.Arg) else None
            if not isinstance(call, cst.Call) or not isinstance(parent, cst.Arg):
                return None
            name = self.called(call)
            if name == "builtins.enumerate" and call.args[0] is parent:
                path = (1, *path)
            elif name == "builtins.zip":
                path = (call.args.index(parent), *path)
            elif name not in ("builtins.reversed", "builtins.list", "builtins.tuple"):
                return None
            node = call

    def _iterated(self, node: cst.BaseExpression, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
        """The container whose elements a loop over ``node`` gives to the target at ``path``."""
        if isinstance(node, cst.Call):
            name = self.called(node)
            if name == "builtins.enumerate" and path[:1] == (1,) and node.args:
                return self._iterated(node.args[0].value, path[1:])
            if name == "builtins.zip" and path and path[0] is not None and path[0] < len(node.args):
                return self._iterated(node.args[path[0]].value, path[1:])
            if name in ("builtins.reversed", "builtins.list", "builtins.tuple") and node.args:
                return self._iterated(node.args[0].value, path)
        return node if not path else None

    # ------------------------------------------------------------------ outputs: where a result goes

    def _after_output(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What takes the tensor ``node``."""
        if not self._once("output", node):
            return
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                yield from self._taken_as_argument(parent, node)
            case cst.Assign() | cst.AnnAssign() | cst.NamedExpr():
                targets = (
                    [target.target for target in parent.targets]
                    if isinstance(parent, cst.Assign)
                    else [parent.target]
                )
                for target in targets:
                    binding = self.names.by_node.get(target) if isinstance(target, cst.Name) else None
                    if binding is None:
                        yield _SOMETHING
                        continue
                    for use in self.names.uses(binding):
                        yield from self._after_output(use)
                if isinstance(parent, cst.NamedExpr):
                    yield from self._after_output(parent)
            case cst.Attribute() if parent.value is node:
                outer = self.tree.parent(parent)
                if parent.attr.value in _METADATA:
                    return
                if parent.attr.value == "contiguous" and isinstance(outer, cst.Call):
                    yield from self._after_output(outer)
                else:
                    yield _SOMETHING
            case cst.IfExp() if node is not parent.test:
                yield from self._after_output(parent)
            case cst.Return():
                yield from self._after_return(parent)
            case cst.Expr() | cst.Del():
                return
            case _:
                yield _SOMETHING

    def _after_return(self, statement: cst.Return) -> Iterator[Consumer]:
        function = self.tree.enclosing(statement, cst.FunctionDef, cst.Lambda)
        named = isinstance(function, cst.FunctionDef) and function.name.value in ("forward", "__call__")
        calls = None if named else self._calls_of_enclosing(statement)
        if not calls:
            yield _SOMETHING
        for call in calls or ():
            yield from self._after_output(call)

    def _taken_as_argument(self, argument: cst.Arg, node: cst.BaseExpression) -> Iterator[Consumer]:
        call = self.tree.parent(argument)
        assert isinstance(call, cst.Call)
        first = call.args[0] is argument and not argument.star
        given = first if argument.keyword is None else argument.keyword.value in _INPUT_KEYWORDS
        name = self.called(call)
        if name in ("builtins.print", "builtins.len"):
            return
        if name is not None and name.startswith("torch.nn.functional."):
            yield Consumer(name, call) if given else _SOMETHING
            return
        function = self.module.callee(call) if name is None else None
        if isinstance(function, cst.FunctionDef) and self._is_helper(call, function):
            yield from self._into_helper(argument, call, function)
        elif given and name is None:
            yield from self._heads(call.func)
        else:
            yield _SOMETHING

    def _is_helper(self, call: cst.Call, function: cst.FunctionDef) -> bool:
        """Whether the call names the function itself (and is not a module whose ``forward`` it is)."""
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else None
        if isinstance(call.func, cst.Name):
            name = call.func.value
        return name == function.name.value

    def _into_helper(
        self, argument: cst.Arg, call: cst.Call, function: cst.FunctionDef
    ) -> Iterator[Consumer]:
        parameters = [*function.params.posonly_params, *function.params.params]
        method = isinstance(call.func, cst.Attribute) and self._is_self(call.func.value)
        if argument.keyword is not None:
            wanted = [p for p in parameters if p.name.value == argument.keyword.value]
        else:
            position = call.args.index(argument) + (1 if method else 0)
            wanted = parameters[position : position + 1]
        binding = self.names.by_node.get(wanted[0]) if wanted else None
        if binding is None or argument.star:
            yield _SOMETHING
            return
        for use in self.names.uses(binding):
            yield from self._after_output(use)

    # ------------------------------------------------------------------ containers that hold a list

    def _containers_of(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.Call] | None:
        """The constructor calls of the containers that an element or list ends up in."""
        if depth > 12:
            return None
        holder = self._holder(node)
        if isinstance(holder, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)):
            return self._containers_of_list(holder, depth + 1)
        if isinstance(holder, cst.Call) and self._is_filling(holder):
            if not isinstance(holder.func, cst.Attribute):
                return []
            return self._containers_of_owner(holder.func.value, depth + 1)
        if isinstance(holder, cst.Assign):
            target = holder.targets[0].target
            return (
                self._containers_of_owner(target.value, depth + 1)
                if isinstance(target, cst.Subscript)
                else None
            )
        return None

    def _containers_of_owner(self, owner: cst.BaseExpression, depth: int) -> list[cst.Call] | None:
        if self._is_self(owner):
            return []
        made = self._made(owner)
        if made is None:
            return None
        found: list[cst.Call] = []
        for value in made:
            name = self.called(value)
            if name in (_SEQUENTIAL, _MODULE_LIST) and isinstance(value, cst.Call):
                found.append(value)
            else:
                filling = self._filling(owner)
                if filling is None or not filling.ends:
                    return None
                for read in filling.ends:
                    containers = self._containers_of_list(read, depth + 1)
                    if containers is None:
                        return None
                    found += containers
        return list(dict.fromkeys(found))

    def _containers_of_list(self, node: cst.BaseExpression, depth: int) -> list[cst.Call] | None:
        if depth > 12:
            return None
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                call = self.tree.parent(parent)
                assert isinstance(call, cst.Call)
                name = self.called(call)
                if name in (_SEQUENTIAL, _MODULE_LIST):
                    return [call]
                if self._fills_own_sequence(call) or name == "builtins.len":
                    return []
                if name in _LISTS:
                    return self._containers_of_list(call, depth + 1)
                if self._is_filling(call) and isinstance(call.func, cst.Attribute):
                    return self._containers_of_owner(call.func.value, depth + 1)
                return None
            case cst.StarredElement() | cst.Element():
                holder = self._holder(node)
                if isinstance(holder, (cst.List, cst.Tuple)):
                    return self._containers_of_list(holder, depth + 1)
                return None
            case cst.AugAssign():
                return self._containers_of_owner(parent.target, depth + 1)
            case cst.BinaryOperation(operator=cst.Add()) | cst.IfExp():
                return self._containers_of_list(parent, depth + 1)
            case cst.Assign() if isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
                return self._containers_of_owner(parent.targets[0].target, depth + 1)
            case cst.Return():
                calls = self._calls_of_enclosing(parent)
                if not calls:
                    return None
                found: list[cst.Call] = []
                for call in calls:
                    containers = self._containers_of_list(call, depth + 1)
                    if containers is None:
                        return None
                    found += containers
                return list(dict.fromkeys(found))
            case _:
                return None

    def _holder(self, node: cst.BaseExpression) -> cst.CSTNode | None:
        """The list, call or assignment that takes ``node`` in; the pair in ``("name", node)`` is skipped."""
        parent = self.tree.parent(node)
        if isinstance(parent, (cst.Element, cst.StarredElement)):
            holder = self.tree.parent(parent)
            outer = self.tree.parent(holder) if holder is not None else None
            if isinstance(holder, cst.Tuple) and isinstance(outer, cst.Element):
                name = holder.elements[0].value
                if len(holder.elements) == 2 and isinstance(name, (cst.SimpleString, cst.FormattedString)):
                    return self.tree.parent(outer)
            return holder
        if isinstance(parent, (cst.Arg, cst.DictElement, cst.StarredDictElement)):
            return self.tree.parent(parent)
        return parent

    # ------------------------------------------------------------------ fillings

    def _filling(self, owner: cst.BaseExpression) -> Filling | None:
        """How code fills the list or container behind a name or attribute."""
        match owner:
            case cst.Name():
                bound = self.names.by_node.get(owner)
                scope = bound.scope if bound is not None else self.names.lookup(owner.value, owner)
                if scope is None or any(
                    b.kind not in (BindingKind.ASSIGN, BindingKind.AUGMENT) or b.path
                    for b in scope.bindings[owner.value]
                ):
                    return None
                body = getattr(scope.node, "body", None)
                body = scope.node if isinstance(scope.node, cst.Module) else body
                name = owner.value

                def owns(node: cst.CSTNode) -> bool:
                    if not isinstance(node, cst.Name) or node.value != name:
                        return False
                    return node in self.names.by_node or self.names.is_read(node)

            case cst.Attribute() if self._self_class(owner) is not None:
                function = self.tree.enclosing(owner, cst.FunctionDef)
                if function is None:
                    return None
                body, name = function.body, f"self.{owner.attr.value}"
                attribute = owner.attr.value

                def owns(node: cst.CSTNode) -> bool:
                    return (
                        isinstance(node, cst.Attribute)
                        and node.attr.value == attribute
                        and self._is_self(node.value)
                    )

            case _:
                return None
        if not isinstance(body, (cst.IndentedBlock, cst.Module)):
            return None
        key = (body, name)
        if key not in self._fillings:
            made = self._made(owner) or []
            container = any(self.called(value) in (_SEQUENTIAL, _MODULE_LIST) for value in made)
            self._fillings[key] = trace(self.tree, body, owns, container=container)
        return self._fillings[key]

    def _own_sequence(self, at: cst.CSTNode) -> Filling:
        """The order of the layers that the constructor of a sequence class registers."""
        function = self.tree.enclosing(at, cst.FunctionDef)
        assert function is not None
        key = (function.body, "self")
        if key not in self._fillings:
            self._fillings[key] = trace(self.tree, function.body, self._is_self, container=True)
        return self._fillings[key]

    def _is_filling(self, call: cst.CSTNode | None) -> bool:
        """Whether the call puts an argument at the end of a list or container."""
        if not isinstance(call, cst.Call):
            return False
        if isinstance(call.func, cst.Name):
            return call.func.value == "setattr" and len(call.args) == 3 and self._is_self(call.args[0].value)
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _FILLING_METHODS

    def _owner_of(self, call: cst.Call) -> cst.BaseExpression | None:
        """The name or attribute that a container is assigned to."""
        parent = self.tree.parent(call)
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, (cst.Name, cst.Attribute)):
                return target
        return None

    def _assigned_list(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        parent = self.tree.parent(node)
        if isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
            return parent.targets[0].target
        return None

    def _is_list(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)):
            return True
        if isinstance(node, cst.Call):
            return self.called(node) in _LISTS
        if isinstance(node, cst.Name):
            made = self._made(node)
            return bool(made) and all(self._is_list(value) for value in made or ())
        return False

    # ------------------------------------------------------------------ classes and attributes

    def _enclosing_class(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The class whose ``self`` a method around ``node`` has."""
        function = self.tree.enclosing(node, cst.FunctionDef)
        while function is not None:
            above = self.tree.parent(self.tree.parent(function) or function)
            if isinstance(above, cst.ClassDef):
                return above
            function = self.tree.enclosing(function, cst.FunctionDef)
        return None

    def _is_self(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and node.value == "self"

    def _self_class(self, attribute: cst.CSTNode | None) -> cst.ClassDef | None:
        """The class of ``self`` in ``self.x``; None for any other expression."""
        if isinstance(attribute, cst.Attribute) and self._is_self(attribute.value):
            return self._enclosing_class(attribute)
        return None

    def _family(self, owner: cst.ClassDef) -> tuple[cst.ClassDef, ...]:
        """The class with its bases and subclasses in this file: they share what is set on ``self``."""
        found = self._families.get(owner)
        if found is None:
            classes = self.module.classes
            related = dict.fromkeys(info.node for info in classes.info(owner).lineage)
            related.update(dict.fromkeys(classes.heirs(owner)))
            found = self._families[owner] = tuple(related)
        return found

    def _is_sequential_class(self, definition: cst.ClassDef | None) -> bool:
        """Whether a class is ``nn.Sequential`` but for its constructor."""
        if definition is None:
            return False
        qualified = [self.module.qualified(base.value) for base in definition.bases]
        if _SEQUENTIAL not in qualified:
            return False
        methods = {
            statement.name.value
            for statement in definition.body.body
            if isinstance(statement, cst.FunctionDef)
        }
        return not methods & {"forward", "__call__", "__getitem__", "__iter__"}

    def _fills_own_sequence(self, call: cst.CSTNode | None) -> bool:
        """Whether the call is ``super().__init__(layers...)`` of a sequence class."""
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return False
        owner = call.func.value
        is_super = (
            isinstance(owner, cst.Call) and isinstance(owner.func, cst.Name) and owner.func.value == "super"
        )
        if call.func.attr.value != "__init__" or not is_super:
            return False
        return self._is_sequential_class(self._enclosing_class(call))

    @cached_property
    def _attribute_reads(self) -> dict[str, list[cst.Attribute]]:
        """Every attribute expression by name, the targets of assignments left out."""
        found: dict[str, list[cst.Attribute]] = {}
        targets = {b.target for bindings in self.names.attributes.values() for b in bindings}
        for attribute in self.tree.nodes(cst.Attribute):
            if attribute not in targets or isinstance(self.tree.parent(attribute), cst.AugAssign):
                found.setdefault(attribute.attr.value, []).append(attribute)
        return found

    def _is_own(self, attribute: cst.Attribute) -> bool:
        return self._is_self(attribute.value)

    @cached_property
    def _reads_by_class(self) -> dict[cst.ClassDef, list[cst.Attribute]]:
        found: dict[cst.ClassDef, list[cst.Attribute]] = {}
        for attributes in self._attribute_reads.values():
            for attribute in attributes:
                owner = self._self_class(attribute)
                if owner is not None:
                    found.setdefault(owner, []).append(attribute)
        return found

    def _self_reads(self, owner: cst.ClassDef) -> list[cst.Attribute]:
        """The reads of attributes of ``self`` in a class and its family."""
        return [read for member in self._family(owner) for read in self._reads_by_class.get(member, ())]

    @cached_property
    def _set_by_name(self) -> list[tuple[cst.ClassDef, str, cst.BaseExpression]]:
        """``setattr(self, name, value)``, ``self.add_module(name, value)``: class, pattern and value."""
        found = []
        for call in self.tree.nodes(cst.Call):
            argument = call.args[-1] if call.args else None
            name = self._registered_name(argument) if argument is not None else None
            owner = self._enclosing_class(call) if name is not None else None
            if name is not None and owner is not None and argument is not None:
                found.append((owner, name, argument.value))
        return found

    def _registered_name(self, argument: cst.Arg) -> str | None:
        """The attribute under which ``self`` gets the argument, with ``*`` for what code makes of it."""
        call = self.tree.parent(argument)
        if not isinstance(call, cst.Call) or not call.args or call.args[-1] is not argument:
            return None
        if isinstance(call.func, cst.Name) and call.func.value == "setattr" and len(call.args) == 3:
            return _pattern_of(call.args[1].value) if self._is_self(call.args[0].value) else None
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value in ("add_module", "register_module")
            and self._is_self(call.func.value)
            and len(call.args) == 2
        ):
            return _pattern_of(call.args[0].value)
        return None

    def _attribute_values(self, at: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
        """All that is ever set as attribute ``name`` of ``self``; empty if some of it is out of sight."""
        owner = self._enclosing_class(at)
        if owner is None:
            return []
        family = self._family(owner)
        found: list[cst.BaseExpression] = []
        pattern = _name_pattern(name)
        for attribute, bindings in self.names.attributes.items():
            if not pattern.fullmatch(attribute):
                continue
            for binding in bindings:
                if self._self_class(binding.target) not in family:
                    continue
                value = _assigned_value(binding)
                if value is None:
                    return []
                found.append(value)
        for holder, registered, value in self._set_by_name:
            if holder in family and _may_be_same(registered, name):
                found.append(value)
        return found

    def _getattrs(self, owner: cst.ClassDef) -> list[tuple[cst.Call, str]]:
        """The calls ``getattr(self, name)`` of a class and its family, with the pattern of the name."""
        family = self._family(owner)
        return [(call, name) for call, name in self._getattr_calls if self._enclosing_class(call) in family]

    @cached_property
    def _getattr_calls(self) -> list[tuple[cst.Call, str]]:
        found = []
        for call in self.tree.nodes(cst.Call):
            if isinstance(call.func, cst.Name) and call.func.value == "getattr" and len(call.args) >= 2:
                if self._is_self(call.args[0].value):
                    found.append((call, _pattern_of(call.args[1].value)))
        return found

    # ------------------------------------------------------------------ functions

    def called(self, call: cst.CSTNode | None) -> str | None:
        """The dotted name of the very class or function of a library that a call calls, partials included."""
        if not isinstance(call, cst.Call):
            return None
        name = self.module.qualified(call.func)
        if name is None and isinstance(call.func, cst.Name):
            value = self.module.value(call.func)
            if value.presets and value.definition is None:
                name = value.cls
        return name

    def _calls_of_enclosing(self, statement: cst.Return) -> list[cst.Call] | None:
        """The calls of the function that returns here; None if it is unknown who calls it."""
        function = self.tree.enclosing(statement, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef):
            return None
        calls = list(self.module.callers(function))
        if calls:
            self._factories[function] = None
        return calls or None

    def _returned(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        """What the function of this file that ``call`` runs returns; None if it is not one."""
        function = self.module.value(call.func).definition
        if isinstance(function, cst.Lambda):
            return [function.body]
        if not isinstance(function, cst.FunctionDef):
            return None
        found = [
            node.value
            for node in self.tree.descendants(function.body)
            if isinstance(node, cst.Return)
            and node.value is not None
            and self.tree.enclosing(node, cst.FunctionDef, cst.Lambda) is function
        ]
        return found or None

    def _wraps(self, argument: cst.Arg) -> bool:
        """Whether the argument is the layer that a wrapper hands back."""
        call = self.tree.parent(argument)
        return isinstance(call, cst.Call) and call.args[0] is argument and self.called(call) in _WRAPPERS

    def _is_length(self, argument: cst.Arg) -> bool:
        return self.called(self.tree.parent(argument)) == "builtins.len"

    def _unpacked(self, element: cst.Element) -> cst.BaseExpression | None:
        """The target of an element in ``self.a, self.b = first, second``."""
        values = self.tree.parent(element)
        statement = self.tree.parent(values) if isinstance(values, cst.Tuple) else None
        if not isinstance(values, cst.Tuple) or not isinstance(statement, cst.Assign):
            return None
        if statement.value is not values or len(statement.targets) != 1:
            return None
        targets = statement.targets[0].target
        if isinstance(targets, cst.Tuple) and len(targets.elements) == len(values.elements):
            return targets.elements[values.elements.index(element)].value
        return None

    # ------------------------------------------------------------------ biases and norms

    def bias_needed(self, layer: str) -> bool:
        """Whether code that visits layers one by one takes for granted that ``layer`` has a bias.

        Args:
            layer: the dotted name of the class.
        """
        for attribute in self._attribute_reads.get("bias", ()):
            owner = attribute.value
            if not isinstance(owner, cst.Name) or self._is_self(owner) or self.bias_guarded(attribute):
                continue
            kinds = {binding.kind for binding in self.names.bindings(owner)}
            if kinds & {BindingKind.LOOP, BindingKind.PARAMETER} and self._may_be(owner, attribute, layer):
                return True
        return False

    def _may_be(self, owner: cst.Name, at: cst.CSTNode, layer: str) -> bool:
        """Whether the tests around ``at`` admit that ``owner`` is a layer of this class."""
        child: cst.CSTNode = at
        word = next((w for w in ("Conv", "Linear") if w in layer), layer)
        for ancestor in self.tree.ancestors(at):
            if isinstance(ancestor, (cst.If, cst.IfExp)) and child is ancestor.body:
                text = self.tree.source(ancestor.test)
                tests = [
                    node
                    for node in self.tree.descendants(ancestor.test)
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
            if isinstance(ancestor, (cst.If, cst.IfExp)) and child is ancestor.body:
                if re.search(rf"(?<![\\w.]){re.escape(wanted)}(?![\\w.])", self.tree.source(ancestor.test)):
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


def _part(value: cst.BaseExpression, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
    """The part of an assigned expression that a target in an unpacking gets, where the file shows it."""
    for step in path:
        if not isinstance(value, (cst.Tuple, cst.List)) or step is None or step >= len(value.elements):
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.elements):
            return None
        value = value.elements[step].value
    return value


def _assigned_value(binding: AttributeBinding) -> cst.BaseExpression | None:
    if binding.kind is not BindingKind.ASSIGN or binding.value is None:
        return None
    return _part(binding.value, binding.path)


def _target(target: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression | None:
    """The target at ``path`` of a loop's unpacking."""
    for step in path:
        if not isinstance(target, (cst.Tuple, cst.List)) or step >= len(target.elements):
            return None
        target = target.elements[step].value
    return target


def _same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    """Whether two names or attributes are spelt the same."""
    return left.deep_equals(right)


def _integer(subscript: cst.Subscript) -> int | None:
    """The index of ``layers[2]`` or ``layers[-1]``."""
    index = subscript.slice[0].slice if len(subscript.slice) == 1 else None
    value = index.value if isinstance(index, cst.Index) else None
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        return -int(value.expression.value, 0) if isinstance(value.expression, cst.Integer) else None
    return int(value.value, 0) if isinstance(value, cst.Integer) else None


def _pattern_of(name: cst.BaseExpression) -> str:
    """The name that an expression spells, with ``*`` for every part that code makes."""
    if isinstance(name, cst.SimpleString) and isinstance(name.evaluated_value, str):
        return name.evaluated_value
    if isinstance(name, cst.FormattedString):
        parts = [p.value if isinstance(p, cst.FormattedStringText) else "*" for p in name.parts]
        return re.sub(r"\*+", "*", "".join(parts))
    if isinstance(name, cst.BinaryOperation) and isinstance(name.operator, cst.Add):
        return re.sub(r"\*+", "*", _pattern_of(name.left) + _pattern_of(name.right))
    if isinstance(name, cst.BinaryOperation) and isinstance(name.operator, cst.Modulo):
        return re.sub(r"%\w", "*", _pattern_of(name.left))
    if (
        isinstance(name, cst.Call)
        and isinstance(name.func, cst.Attribute)
        and name.func.attr.value == "format"
    ):
        return re.sub(r"\{[^}]*\}", "*", _pattern_of(name.func.value))
    return "*"


def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in name.split("*")))


def _may_be_same(first: str, second: str) -> bool:
    """Whether two names, each perhaps with ``*`` in it, can be one."""
    if "*" in first and "*" in second:
        start, end = first.split("*")[0], first.split("*")[-1]
        other_start, other_end = second.split("*")[0], second.split("*")[-1]
        starts = start.startswith(other_start) or other_start.startswith(start)
        return starts and (end.endswith(other_end) or other_end.endswith(end))
    if "*" in first:
        return _name_pattern(first).fullmatch(second) is not None
    return _name_pattern(second).fullmatch(first) is not None
