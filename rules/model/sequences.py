"""The order in which code fills a list or a container: what may come right after what.

``layers = []``, ``layers.append(...)``, ``layers += [...]``, ``net.add_module(...)`` are followed through
branches and loops, so that "the element after this one" is answered with every element that some path
puts there, and with the places where the list is used if some path puts nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import libcst as cst

from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.definitions import ReachingDefinitions


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is put at the end: one element, or all the elements of ``node`` (``many``)."""

    node: cst.BaseExpression
    many: bool


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more is put behind: the list is read at ``read``, or (None) the filling code is over."""

    read: cst.BaseExpression | None


@dataclass(slots=True)
class Filling:
    """What may follow each step of one list; ``START`` stands for the empty list.

    ``broken``: elements are taken out, moved or put in front, so that nothing is known.
    """

    after: dict[cst.CSTNode | None, dict[Step | End, None]] = field(default_factory=dict)
    broken: bool = False

    def following(self, node: cst.CSTNode | None) -> tuple[Step | End, ...]:
        """Return the steps and ends that may come right after the step of ``node``, in source order."""
        return tuple(self.after.get(node, ()))

    @property
    def steps(self) -> list[Step]:
        """Everything that is ever put in, in no order that means anything."""
        found = {step: None for options in self.after.values() for step in options if isinstance(step, Step)}
        return list(found)

    @property
    def ends(self) -> list[cst.BaseExpression]:
        """Every place where the list is read."""
        found = {
            step.read: None for options in self.after.values() for step in options if isinstance(step, End)
        }
        return [read for read in found if read is not None]


START = None
"""The key of ``Filling.after`` for the empty list."""

_APPENDING = {"append": 0, "add_module": 1, "register_module": 1}
_REORDERING = frozenset(
    {"insert", "pop", "remove", "clear", "reverse", "sort", "update", "move_to_end", "popitem", "__setitem__"}
)

_STATEMENTS = (
    *(cst.BaseSuite, cst.BaseStatement, cst.BaseSmallStatement, cst.Else, cst.Finally, cst.MatchCase),
    *(cst.ExceptHandler, cst.ExceptStarHandler),
)


def trace(
    flow: ControlFlow, body: cst.CSTNode, owns: Callable[[cst.CSTNode], bool], *, container: bool
) -> Filling:
    """Follow the filling of one list through a function body.

    Args:
        owns: whether an expression stands for the list in question.
        container: the list is a module that holds layers: it ends where the function ends and reading it
            says nothing, while a plain list ends where it is read. Attributes set on it are its elements.
    """
    return _Tracer(flow, owns, container).run(body)


@dataclass(frozen=True, slots=True)
class _Put:
    """Steps that are put at the end one after the other; ``afresh`` if what was there before is gone."""

    place: cst.CSTNode
    steps: tuple[Step, ...]
    afresh: bool = False


class _Tracer:
    """Finds what is put into one list, and where it is read.

    The last step that was taken before a place is the definition of a variable that reaches it.
    """

    def __init__(self, flow: ControlFlow, owns: Callable[[cst.CSTNode], bool], container: bool) -> None:
        self.flow, self.tree, self.owns, self.container = flow, flow.tree, owns, container
        self.filling = Filling()
        self.events: list[_Put | cst.BaseExpression] = []
        """What is put in, and the expressions that read the list, in source order."""

    def run(self, body: cst.CSTNode) -> Filling:
        """Return what may follow what in the list."""
        self._collect(body)
        root = self.flow.root(body)
        nothing = _Put(root, ())
        puts = [nothing, *(event for event in self.events if isinstance(event, _Put))]
        last = ReachingDefinitions(self.flow, root, {"last": [(put.place, put) for put in puts]})
        for event in self.events:
            if not isinstance(event, _Put):
                self._link(last.reaching("last", event), End(event))
                continue
            before = [nothing] if event.afresh else last.reaching("last", event.place)
            for step in event.steps:
                self._link(before, step)
                before = [_Put(event.place, (step,))]
        if self.container:
            self._link(last.at_end("last"), End(None))
        return self.filling

    def _link(self, before: Iterable[_Put], step: Step | End) -> None:
        for put in before:
            end = put.steps[-1].node if put.steps else START
            self.filling.after.setdefault(end, {})[step] = None

    def _put(self, place: cst.CSTNode, node: cst.BaseExpression, *, many: bool, afresh: bool = False) -> None:
        self.events.append(_Put(place, (Step(node, many),), afresh))

    # ------------------------------------------------------------------ statements

    def _collect(self, body: cst.CSTNode) -> None:
        stack = [body]
        while stack:
            node = stack.pop()
            match node:
                case cst.FunctionDef() | cst.ClassDef():
                    # Code that runs at another time must leave the list alone.
                    if not self.container and any(self.owns(inner) for inner in self.tree.descendants(node)):
                        self.filling.broken = True
                    continue
                case cst.BaseSmallStatement():
                    self._small(node)
                    continue
                case cst.If() | cst.While():
                    self._reads(node.test)
                case cst.For():
                    self._reads(node.iter)
                case cst.With():
                    for item in node.items:
                        self._reads(item)
                case _:
                    pass
            stack.extend(part for part in reversed(self.tree.parts(node)) if isinstance(part, _STATEMENTS))

    def _small(self, node: cst.BaseSmallStatement) -> None:
        match node:
            case cst.Assign():
                self._assign([target.target for target in node.targets], node.value, node)
            case cst.AnnAssign() if node.value is not None:
                self._assign([node.target], node.value, node)
            case cst.AugAssign() if self.owns(node.target):
                self._reads(node.value)
                if not isinstance(node.operator, cst.AddAssign):
                    self.filling.broken = True
                self._put(node, node.value, many=True)
            case cst.Del():
                if any(
                    isinstance(n, cst.Subscript) and self.owns(n.value) for n in self.tree.descendants(node)
                ):
                    self.filling.broken = True
                self._reads(node)
            case cst.Expr(value=cst.Call() as call) if self._call(call):
                pass
            case _:
                self._reads(node)

    def _assign(
        self, targets: list[cst.BaseExpression], value: cst.BaseExpression, node: cst.CSTNode
    ) -> None:
        for target in targets:
            if self.owns(target):
                if isinstance(value, cst.BinaryOperation) and self.owns(value.left):
                    if not isinstance(value.operator, cst.Add):
                        self.filling.broken = True
                    self._reads(value.right)
                    self._put(node, value.right, many=True)
                else:
                    self._reads(value)
                    self._put(node, value, many=True, afresh=True)
                return
            if isinstance(target, cst.Subscript) and self.owns(target.value):
                self._reads(value)
                key = target.slice[0].slice
                if not isinstance(key, cst.Index) or isinstance(key.value, (cst.Integer, cst.UnaryOperation)):
                    self.filling.broken = True
                self._put(node, value, many=False)
                return
            if self.container and isinstance(target, cst.Attribute) and self.owns(target.value):
                # Modules are registered in the order in which they are set; numbers and flags are not.
                if isinstance(value, cst.Call):
                    self._put(node, value, many=False)
                return
        self._reads(node)

    def _call(self, call: cst.Call) -> bool:
        """Take up a call of a method of the list; whether it is one."""
        function = call.func
        if isinstance(function, cst.Name) and function.value == "setattr" and len(call.args) == 3:
            if self.container and self.owns(call.args[0].value):
                self._put(call, call.args[2].value, many=False)
                return True
            return False
        if not isinstance(function, cst.Attribute):
            return False
        if not self.owns(function.value):
            if self.container and _is_super_init(function):
                if call.args:
                    steps = tuple(Step(argument.value, argument.star == "*") for argument in call.args)
                    self.events.append(_Put(call, steps))
                return True
            return False
        method = function.attr.value
        if method in _APPENDING and len(call.args) > _APPENDING[method]:
            value = call.args[_APPENDING[method]].value
            self._reads(value)
            self._put(call, value, many=False)
        elif method == "extend" and len(call.args) == 1:
            self._reads(call.args[0].value)
            self._put(call, call.args[0].value, many=True)
        elif method in _REORDERING:
            self.filling.broken = True
        return True

    def _reads(self, node: cst.CSTNode) -> None:
        if not self.container:
            for inner in self.tree.descendants(node):
                if self.owns(inner) and isinstance(inner, cst.BaseExpression):
                    self.events.append(inner)


def _is_super_init(function: cst.Attribute) -> bool:
    owner = function.value
    return (
        function.attr.value == "__init__"
        and isinstance(owner, cst.Call)
        and isinstance(owner.func, cst.Name)
        and owner.func.value == "super"
    )


def literal_steps(node: cst.BaseExpression) -> list[Step] | None:
    """Return the elements of a list, tuple or dictionary display, in order; None for anything else."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return [
            Step(_second(element.value), isinstance(element, cst.StarredElement)) for element in node.elements
        ]
    if isinstance(node, cst.Dict):
        return [Step(element.value, isinstance(element, cst.StarredDictElement)) for element in node.elements]
    return None


def argument_steps(arguments: Iterable[cst.Arg]) -> list[Step]:
    """Return the positional arguments of a call as steps."""
    return [Step(argument.value, argument.star == "*") for argument in arguments]


def _second(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the layer of a ``("name", layer)`` pair,
    as in the list that an ordered dictionary is made of.
    """
    if isinstance(node, cst.Tuple) and len(node.elements) == 2:
        name, layer = node.elements
        if isinstance(name.value, (cst.SimpleString, cst.FormattedString)):
            return layer.value
    return node
