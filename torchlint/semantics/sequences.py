"""The order in which code fills a list or a container: what may come right after what.

``layers = []``, ``layers.append(...)``, ``layers += [...]``, ``net.add_module(...)`` are followed through
branches and loops, so that "the element after this one" is answered with every element that some path
puts there, and with the places where the list is used if some path puts nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import libcst as cst

from torchlint.syntax import SyntaxTree


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
        """The steps and ends that may come right after the step of ``node``, in source order."""
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

_State = dict[cst.CSTNode | None, None]


def trace(
    tree: SyntaxTree, body: cst.CSTNode, owns: Callable[[cst.CSTNode], bool], *, container: bool
) -> Filling:
    """Follow the filling of one list through a function body.

    Args:
        owns: whether an expression stands for the list in question.
        container: the list is a module that holds layers: it ends where the function ends and reading it
            says nothing, while a plain list ends where it is read. Attributes set on it are its elements.
    """
    return _Tracer(tree, owns, container).run(body)


class _Tracer:
    """Abstract execution: the state is the set of steps that may be the last one so far."""

    def __init__(self, tree: SyntaxTree, owns: Callable[[cst.CSTNode], bool], container: bool) -> None:
        self.tree, self.owns, self.container = tree, owns, container
        self.filling = Filling()
        self.jumps: list[_State] = []

    def run(self, body: cst.CSTNode) -> Filling:
        state = self._block(body, {START: None})
        if self.container:
            self._link(state, End(None))
        return self.filling

    def _link(self, state: _State, step: Step | End) -> None:
        for last in state:
            self.filling.after.setdefault(last, {})[step] = None

    def _put(self, state: _State, node: cst.BaseExpression, many: bool) -> _State:
        self._link(state, Step(node, many))
        return {node: None}

    # ------------------------------------------------------------------ statements

    def _block(self, block: cst.CSTNode, state: _State) -> _State:
        body = block.body if hasattr(block, "body") else ()
        for statement in body:
            state = self._statement(statement, state)
        return state

    def _statement(self, node: cst.CSTNode, state: _State) -> _State:
        match node:
            case cst.SimpleStatementLine():
                for small in node.body:
                    state = self._small(small, state)
                return state
            case cst.If():
                self._reads(node.test, state)
                taken = self._block(node.body, dict(state))
                if node.orelse is None:
                    other = state
                elif isinstance(node.orelse, cst.If):
                    other = self._statement(node.orelse, dict(state))
                else:
                    other = self._block(node.orelse.body, dict(state))
                return taken | other
            case cst.For() | cst.While():
                return self._loop(node, state)
            case cst.With():
                for item in node.items:
                    self._reads(item, state)
                return self._block(node.body, state)
            case cst.Try() | cst.TryStar():
                before = dict(state)
                state = self._block(node.body, state)
                if node.orelse is not None:
                    state = self._block(node.orelse.body, state)
                for handler in node.handlers:
                    state = state | self._block(handler.body, dict(before))
                return self._block(node.finalbody.body, state) if node.finalbody is not None else state
            case cst.Match():
                after = dict(state)
                for case in node.cases:
                    after = after | self._block(case.body, dict(state))
                return after
            case cst.FunctionDef() | cst.ClassDef():
                # Code that runs at another time must leave the list alone.
                if not self.container and any(self.owns(inner) for inner in self.tree.descendants(node)):
                    self.filling.broken = True
                return state
            case _:
                return self._small(node, state)

    def _loop(self, node: cst.For | cst.While, state: _State) -> _State:
        self._reads(node.iter if isinstance(node, cst.For) else node.test, state)
        outer, self.jumps = self.jumps, []
        for _ in range(2):
            # The second round links the last step of an iteration with the first of the next one.
            state = state | self._block(node.body, dict(state))
            for jumped in self.jumps:
                state = state | jumped
        self.jumps = outer
        return self._block(node.orelse.body, state) if node.orelse is not None else state

    # ------------------------------------------------------------------ small statements

    def _small(self, node: cst.CSTNode, state: _State) -> _State:
        match node:
            case cst.Return() | cst.Raise():
                self._reads(node, state)
                if self.container and isinstance(node, cst.Return):
                    self._link(state, End(None))
                return {}
            case cst.Continue() | cst.Break():
                self.jumps.append(dict(state))
                return {}
            case cst.Assign():
                return self._assign([target.target for target in node.targets], node.value, node, state)
            case cst.AnnAssign() if node.value is not None:
                return self._assign([node.target], node.value, node, state)
            case cst.AugAssign() if self.owns(node.target):
                self._reads(node.value, state)
                if not isinstance(node.operator, cst.AddAssign):
                    self.filling.broken = True
                return self._put(state, node.value, many=True)
            case cst.Del():
                if any(
                    isinstance(n, cst.Subscript) and self.owns(n.value) for n in self.tree.descendants(node)
                ):
                    self.filling.broken = True
                return self._reads(node, state)
            case cst.Expr(value=cst.Call() as call):
                put = self._call(call, state)
                return put if put is not None else self._reads(node, state)
            case _:
                return self._reads(node, state)

    def _assign(
        self, targets: list[cst.BaseExpression], value: cst.BaseExpression, node: cst.CSTNode, state: _State
    ) -> _State:
        for target in targets:
            if self.owns(target):
                if isinstance(value, cst.BinaryOperation) and self.owns(value.left):
                    if not isinstance(value.operator, cst.Add):
                        self.filling.broken = True
                    self._reads(value.right, state)
                    return self._put(state, value.right, many=True)
                self._reads(value, state)
                return self._put({START: None}, value, many=True)
            if isinstance(target, cst.Subscript) and self.owns(target.value):
                self._reads(value, state)
                key = target.slice[0].slice
                if not isinstance(key, cst.Index) or isinstance(key.value, (cst.Integer, cst.UnaryOperation)):
                    self.filling.broken = True
                return self._put(state, value, many=False)
            if self.container and isinstance(target, cst.Attribute) and self.owns(target.value):
                # Modules are registered in the order in which they are set; numbers and flags are not.
                return self._put(state, value, many=False) if isinstance(value, cst.Call) else state
        return self._reads(node, state)

    def _call(self, call: cst.Call, state: _State) -> _State | None:
        function = call.func
        if isinstance(function, cst.Name) and function.value == "setattr" and len(call.args) == 3:
            if self.container and self.owns(call.args[0].value):
                return self._put(state, call.args[2].value, many=False)
            return None
        if not isinstance(function, cst.Attribute):
            return None
        if not self.owns(function.value):
            if self.container and _is_super_init(function):
                for argument in call.args:
                    state = self._put(state, argument.value, many=argument.star == "*")
                return state
            return None
        method = function.attr.value
        if method in _APPENDING and len(call.args) > _APPENDING[method]:
            value = call.args[_APPENDING[method]].value
            self._reads(value, state)
            return self._put(state, value, many=False)
        if method == "extend" and len(call.args) == 1:
            self._reads(call.args[0].value, state)
            return self._put(state, call.args[0].value, many=True)
        if method in _REORDERING:
            self.filling.broken = True
        return state

    def _reads(self, node: cst.CSTNode, state: _State) -> _State:
        if not self.container:
            for inner in self.tree.descendants(node):
                if self.owns(inner) and isinstance(inner, cst.BaseExpression):
                    self._link(state, End(inner))
        return state


def _is_super_init(function: cst.Attribute) -> bool:
    owner = function.value
    return (
        function.attr.value == "__init__"
        and isinstance(owner, cst.Call)
        and isinstance(owner.func, cst.Name)
        and owner.func.value == "super"
    )


def literal_steps(node: cst.BaseExpression) -> list[Step] | None:
    """The elements of a list, tuple or dictionary display, in order; None for anything else."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return [
            Step(_second(element.value), isinstance(element, cst.StarredElement)) for element in node.elements
        ]
    if isinstance(node, cst.Dict):
        return [Step(element.value, isinstance(element, cst.StarredDictElement)) for element in node.elements]
    return None


def argument_steps(arguments: Iterable[cst.Arg]) -> list[Step]:
    """The positional arguments of a call as steps."""
    return [Step(argument.value, argument.star == "*") for argument in arguments]


def _second(node: cst.BaseExpression) -> cst.BaseExpression:
    """The layer of a ``("name", layer)`` pair, as in the list that an ordered dictionary is made of."""
    if isinstance(node, cst.Tuple) and len(node.elements) == 2:
        name, layer = node.elements
        if isinstance(name.value, (cst.SimpleString, cst.FormattedString)):
            return layer.value
    return node
