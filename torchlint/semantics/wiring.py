"""Which layer or function of a model feeds which.

A *layer* is what a constructor call such as ``nn.Conv2d(...)`` makes. It is followed from there through
names, attributes of the class and of its bases and subclasses in the file, containers, lists filled by
code, factories and wrappers to every place where it is applied; the *result* of an application is followed
through nested calls, rebinding and helper methods to whatever takes it next. Each such taker is a
``Consumer``. A use that cannot be followed is a consumer without a name, so that a question such as "does
everything behind this convolution normalise it" is never answered on half of the evidence.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.attributes import SEQUENTIAL, may_be_same
from torchlint.semantics.biases import Biases
from torchlint.semantics.layers import (
    FILLING_METHODS,
    LISTS,
    MODULE_LIST,
    PLAIN_ATTRIBUTES,
    RETURNS_SELF,
    WRAPPERS,
    Layers,
    same,
)
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding
from torchlint.semantics.operations import Operations
from torchlint.semantics.sequences import START, Filling, Step, argument_steps, literal_steps


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
    """Where a layer or a result was followed to."""

    consumers: tuple[Consumer, ...]


_SOMETHING = Consumer(None, None)
_Search = Generator[Consumer, None, bool]

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


class Wiring(Part):
    """The layers of one file and what they feed; everything is worked out on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self.layers = Layers(module)
        self.attributes = self.layers.attributes
        self.biases = Biases(module, self.attributes)
        self.operations = Operations(module)
        self._visiting: set[tuple[str, cst.CSTNode]] = set()
        self._steps: dict[cst.Call, tuple[list[Step], dict[cst.CSTNode, int], bool]] = {}

    def after_layer(self, call: cst.Call) -> Trail:
        """All that takes what the layer made by ``call`` computes."""
        return self._trail(self._after_object(call))

    def after_result(self, call: cst.Call) -> Trail:
        """All that takes the result of ``call``, a function applied to tensors."""
        return self._trail(self._after_output(call))

    def _trail(self, search: Iterator[Consumer]) -> Trail:
        self._visiting = set()
        consumers = tuple(dict.fromkeys(search))
        return Trail(consumers or (_SOMETHING,))

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
                calls = self.layers.calls_of_enclosing(parent)
                if calls is None:
                    yield node
                else:
                    for call in calls:
                        yield from self._places(call)
            case cst.Attribute() if node is parent.value and parent.attr.value in RETURNS_SELF:
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
            case cst.Arg() if (name := self.attributes.registered_name(parent)) is not None:
                if self.attributes.is_sequential_class(self.tree.enclosing(node, cst.ClassDef)):
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
        elif isinstance(target, cst.Attribute) and self.attributes.self_class(target) is not None:
            if self.attributes.is_sequential_class(self.attributes.self_class(target)):
                yield node
            yield from self._reads_of_attribute(target, target.attr.value)
        else:
            yield node

    def _reads_of_attribute(self, at: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
        """The places of ``self.<name>``, as set at ``at``; ``name`` may have ``*`` for parts made by code."""
        owner = self.attributes.enclosing_class(at)
        if owner is None:
            return
        for read in self.attributes.self_reads(owner, name):
            yield from self._places(read)
        for call, wanted in self.attributes.getattrs(owner):
            if may_be_same(name, wanted):
                yield from self._places(call)
        if "*" not in name:
            family = self.attributes.family(owner)
            for attribute in self.attributes.foreign_reads(name):
                above = self.tree.parent(attribute)
                # ``model.conv.bias`` outside of the class: whose attribute it is cannot be seen.
                bias = isinstance(above, cst.Attribute) and above.attr.value == "bias"
                apart = self._taken_apart(attribute) and self.attributes.may_belong(attribute, family)
                if bias or apart:
                    yield attribute

    def _taken_apart(self, attribute: cst.Attribute) -> bool:
        """Whether code outside of a class applies or watches one of its layers: ``model.conv(x)``."""
        above = self.tree.parent(attribute)
        if isinstance(above, cst.Attribute) and above.value is attribute:
            return above.attr.value.startswith("register_")
        return isinstance(above, cst.Call) and above.func is attribute

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
        if name in PLAIN_ATTRIBUTES or name in FILLING_METHODS:
            return
        if name == "bias" and self.biases.bias_guarded(attribute):
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
            or name in RETURNS_SELF
            or name in ("state_dict", "zero_grad")
        ):
            return
        else:
            yield _SOMETHING

    def _after_argument(self, argument: cst.Arg, place: cst.BaseExpression) -> Iterator[Consumer]:
        call = self.tree.parent(argument)
        assert isinstance(call, cst.Call)
        name = self.layers.called(call)
        if name == SEQUENTIAL or self.attributes.fills_own_sequence(call):
            yield from self._after_step(place, call)
        elif name in _HARMLESS_FUNCTIONS or name in (
            "builtins.enumerate",
            "builtins.zip",
            "builtins.reversed",
        ):
            return
        elif self.layers.is_filling(call):
            yield from self._after_member(place)
        else:
            yield _SOMETHING

    # ------------------------------------------------------------------ sequences

    def _after_step(self, node: cst.BaseExpression, call: cst.Call) -> Iterator[Consumer]:
        """What comes behind an argument of ``nn.Sequential(...)``, and what reads it out of there."""
        steps, places, known = self._argument_steps(call)
        index = places[node]
        if self._is_rearranged(call):
            yield _SOMETHING
            return
        yield from self._exposed(call, index if known else None, len(steps))
        if not (yield from self._first_of(steps[index + 1 :])):
            yield from self._after_end_of(call)

    def _argument_steps(self, call: cst.Call) -> tuple[list[Step], dict[cst.CSTNode, int], bool]:
        """The arguments of a call as steps, the number of each, and whether each is one step."""
        found = self._steps.get(call)
        if found is None:
            steps = argument_steps(call.args)
            places: dict[cst.CSTNode, int] = {step.node: i for i, step in enumerate(steps)}
            found = self._steps[call] = steps, places, not any(step.many for step in steps)
        return found

    def _is_rearranged(self, call: cst.Call) -> bool:
        """Whether layers are taken out of a sequence, or replaced, after it is made."""
        owner = self.layers.owner_of(call)
        filling = self.layers.filling(owner) if owner is not None else None
        return filling is not None and filling.broken

    def _after_end_of(self, call: cst.Call) -> Iterator[Consumer]:
        """What comes behind the last argument of a container: what is added later, or what it feeds."""
        if self.attributes.fills_own_sequence(call):
            last = call.args[-1].value if call.args else None
            yield from self._follow(self.layers.own_sequence(call), last, None)
            return
        owner = self.layers.owner_of(call)
        filling = self.layers.filling(owner) if owner is not None else None
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
        containers = self.layers.containers_of(node)
        if containers is None:
            yield _SOMETHING
            return
        lists = [c for c in containers if self.layers.called(c) == MODULE_LIST]
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
        holder = self.layers.holder(node)
        match holder:
            case cst.List() | cst.Tuple() | cst.Dict():
                steps = literal_steps(holder) or []
                index = next((i for i, step in enumerate(steps) if step.node is node), None)
                owner = self.layers.assigned_list(holder)
                filling = self.layers.filling(owner) if owner is not None else None
                if index is None or (filling is not None and filling.broken):
                    yield _SOMETHING
                elif not (yield from self._first_of(steps[index + 1 :])):
                    yield from self._after_list(holder)
            case cst.ListComp():
                yield from self._heads(node)
                yield from self._after_list(holder)
            case cst.Call() if self.layers.is_filling(holder):
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
        elif isinstance(target, cst.Attribute) and self.attributes.is_sequential_class(
            self.attributes.self_class(target)
        ):
            yield from self._follow(self.layers.own_sequence(target), node, None)
        else:
            yield _SOMETHING

    def _after_filling_call(self, node: cst.BaseExpression, call: cst.Call) -> Iterator[Consumer]:
        if isinstance(call.func, cst.Attribute):
            yield from self._after_filled(call.func.value, node)
        else:  # setattr(self, name, node)
            yield from self._follow(self.layers.own_sequence(call), node, None)

    def _after_filled(self, owner: cst.BaseExpression, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What comes behind ``node``, which code puts at the end of ``owner``."""
        if isinstance(owner, cst.Name) and self.attributes.is_self(owner):
            yield from self._follow(self.layers.own_sequence(owner), node, None)
            return
        filling = self.layers.filling(owner)
        made = self.layers.made(owner)
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
                name = self.layers.called(call)
                if parent.star == "*" and (name == SEQUENTIAL or self.attributes.fills_own_sequence(call)):
                    steps = argument_steps(call.args)
                    index = next(i for i, step in enumerate(steps) if step.node is node)
                    if not (yield from self._first_of(steps[index + 1 :])):
                        yield from self._after_end_of(call)
                elif name == SEQUENTIAL or self.attributes.fills_own_sequence(call):
                    yield from self._after_end_of(call)
                elif name in LISTS:
                    yield from self._after_list(call)
                elif name == "builtins.len":
                    return
                elif self.layers.is_filling(call):
                    yield from self._after_filling_call(node, call)
                else:
                    yield _SOMETHING
            case cst.StarredElement() | cst.Element():
                yield from self._after_in_list(node)
            case cst.AugAssign():
                yield from self._after_filled(parent.target, node)
            case cst.Subscript() if self.layers.only_looks_at(parent, node):
                return
            case cst.BinaryOperation(operator=cst.Add()) if parent.left is node:
                if not (yield from self._first_of([Step(parent.right, many=True)])):
                    yield from self._after_list(parent)
            case cst.BinaryOperation(operator=cst.Add()):
                target = self.layers.assigned_list(parent)
                if target is not None and same(parent.left, target):
                    yield from self._after_filled(target, node)
                else:
                    yield from self._after_list(parent)
            case cst.Assign() if isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
                yield from self._after_filled(parent.targets[0].target, node)
            case cst.IfExp():
                yield from self._after_list(parent)
            case cst.Return():
                calls = self.layers.calls_of_enclosing(parent)
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
                filling = self.layers.filling(node)
                if filling is not None and not filling.broken:
                    return (yield from self._first_filled(filling, node))
            case cst.Call():
                name = self.layers.called(node)
                if name in LISTS and not node.args:
                    return False
                if name in LISTS or name == SEQUENTIAL:
                    return (yield from self._first_of_container(node))
                returned = self.layers.returned(node)
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
            if literal_steps(argument) is not None or self.layers.is_list(argument):
                return (yield from self._first_of_list(argument))
        return (yield from self._first_of(argument_steps(call.args)))

    def _heads(self, node: cst.BaseExpression) -> Iterator[Consumer]:
        """What an input given to the layer ``node`` meets first, one answer for each layer it can be."""
        if not self._once("head", node):
            return
        layers = self.layers.makers(node)
        if layers is None:
            yield _SOMETHING
        else:
            for layer in layers:
                yield from self._head_of_call(layer)
        self._visiting.discard(("head", node))

    def _head_of_call(self, call: cst.Call) -> Iterator[Consumer]:
        name = self.layers.called(call)
        if name == SEQUENTIAL:
            owner = self.layers.owner_of(call)
            filling = self.layers.filling(owner) if owner is not None else None
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

    # ------------------------------------------------------------------ elements read out of containers

    def _exposed(self, container: cst.Call, index: int | None, count: int) -> Iterator[Consumer]:
        """What is done with the element at ``index`` of a container that is read element by element."""
        if not self._once("exposed", container):
            return
        seen = self._visiting
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
        self._visiting |= seen

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
                case cst.Attribute() if parent.attr.value in FILLING_METHODS:
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
        holder = self.layers.holder(node)
        if isinstance(holder, (cst.List, cst.Tuple)):
            steps = literal_steps(holder) or []
            index = next((i for i, step in enumerate(steps) if step.node is node), None)
            outer = self.tree.parent(holder)
            whole = isinstance(outer, cst.Arg) and self.layers.called(self.tree.parent(outer)) == MODULE_LIST
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
            name = self.layers.called(call)
            if name == "builtins.enumerate" and call.args[0] is parent:
                path = (1, *path)
            elif name == "builtins.zip":
                path = (call.args.index(parent), *path)
            elif name not in ("builtins.reversed", "builtins.list", "builtins.tuple"):
                return None
            node = call

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
        calls = None if named else self.layers.calls_of_enclosing(statement)
        if not calls:
            yield _SOMETHING
        for call in calls or ():
            yield from self._after_output(call)

    def _taken_as_argument(self, argument: cst.Arg, node: cst.BaseExpression) -> Iterator[Consumer]:
        call = self.tree.parent(argument)
        assert isinstance(call, cst.Call)
        first = call.args[0] is argument and not argument.star
        given = first if argument.keyword is None else argument.keyword.value in _INPUT_KEYWORDS
        name = self.layers.called(call)
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
        method = isinstance(call.func, cst.Attribute) and self.attributes.is_self(call.func.value)
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

    # ------------------------------------------------------------------ functions

    def _wraps(self, argument: cst.Arg) -> bool:
        """Whether the argument is the layer that a wrapper hands back."""
        call = self.tree.parent(argument)
        return (
            isinstance(call, cst.Call) and call.args[0] is argument and self.layers.called(call) in WRAPPERS
        )

    def _is_length(self, argument: cst.Arg) -> bool:
        return self.layers.called(self.tree.parent(argument)) == "builtins.len"

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


def _target(target: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression | None:
    """The target at ``path`` of a loop's unpacking."""
    for step in path:
        if not isinstance(target, (cst.Tuple, cst.List)) or step >= len(target.elements):
            return None
        target = target.elements[step].value
    return target


def _integer(subscript: cst.Subscript) -> int | None:
    """The index of ``layers[2]`` or ``layers[-1]``."""
    index = subscript.slice[0].slice if len(subscript.slice) == 1 else None
    value = index.value if isinstance(index, cst.Index) else None
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        return -int(value.expression.value, 0) if isinstance(value.expression, cst.Integer) else None
    return int(value.value, 0) if isinstance(value, cst.Integer) else None
