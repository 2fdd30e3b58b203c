"""What one iteration of a training loop does: backward passes, steps, clearing of gradients, changes of mode.

An iteration is gone through in source order, into the functions of the file that it calls. Each event says
what it is done to (an optimizer, a model) and by which calls the program got there, so that rules can ask
for the order of things, and for what is missing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.flow.graph import FUNCTIONS, Function, Loop, StatementLoop, iterable_of
from torchlint.semantics.lexicon import Role, ends, has, names_optimizer
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind, Scope
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind, Value

Path = tuple[cst.Call, ...]
# What is gone through once in an iteration, and not step by step.
_PARTS = frozenset({Kind.OPTIMIZER, Kind.MODULE})


def _clears_gradients(name: str | None) -> bool:
    """Return whether a function of this name clears gradients."""
    return has(name, Role.CLEARING) and has(name, Role.GRADIENT)


# Members that code of interest asks for, and roles of what else it names.
_OF_INTEREST = frozenset({"step", "grad", "eval", "train", "training"})
_OF_INTEREST_BY_ROLE = (Role.BACKPROPAGATION, Role.CLEARING, Role.OPTIMIZER)
# Methods that change a gradient in place and leave it as long as it was, or make it longer.
_KEEPING_IN_PLACE = frozenset({"add_", "clamp_", "clip_", "div_", "nan_to_num_", "requires_grad_", "detach_"})


def _runs_once(name: str) -> bool:
    """Return whether a function of this name is called once."""
    return name.startswith("__") or has(
        name, Role.TEST, Role.DEBUGGING, Role.PROFILING, Role.MAKING, Role.ONCE, Role.WARMUP
    )


_METHODS_OF_INSTANCES = frozenset({"forward", "__call__", "__init__", "__enter__", "__exit__"})


class Act(enum.Enum):
    """What an event does."""

    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"
    CLEAR = "clear"
    TRAIN = "train"
    EVAL = "eval"


@dataclass(frozen=True, slots=True)
class Subject:
    """What something is done to.

    ``place`` is the variable or attribute that holds it, as the code of the loop names it, whatever the
    functions on the way call it: the scope, then the names. None if that cannot be told. ``value`` is what
    is known of it.
    """

    node: cst.BaseExpression
    value: Value
    place: tuple[object, ...] | None

    def is_certainly(self, other: Subject) -> bool:
        """Return whether the two are the same thing."""
        return self.place is not None and self.place == other.place


@dataclass(frozen=True, slots=True)
class Event:
    """An act in an iteration.

    ``path`` are the calls that lead from the loop to it, outermost first; ``loops`` the loops around it
    within the iteration, of whichever function, innermost first. Loops over optimizers, models or parameters
    are none.
    """

    act: Act
    node: cst.CSTNode
    subject: Subject | None
    path: Path
    loops: tuple[cst.CSTNode, ...]

    @property
    def outermost(self) -> cst.CSTNode:
        """The node in the code of the loop itself from which the program gets to the event."""
        return self.path[0] if self.path else self.node


class _Step(NamedTuple):
    """A node that does something in every iteration that gets there, or that leads elsewhere.

    ``foreign`` says that it is a call of functions that the file does not show; ``bodies`` are the functions
    of interest that it runs, ``given`` those that it is given.
    """

    node: cst.CSTNode
    act: Act | None
    subject: cst.BaseExpression | None = None
    foreign: bool = False
    bodies: Sequence[Function] = ()
    given: Sequence[Function] = ()


@dataclass(slots=True)
class Iteration:
    """What happens in one iteration of a loop, in source order.

    ``loop`` is a function where other files, or a framework, call it again and again. ``foreign`` are the
    calls of functions that the file does not show, with the way to them. ``functions`` are the functions gone
    through. ``complete`` is False if some were left out: where each of ``n`` functions calls the next one
    twice, there are more ways than can be gone.
    """

    loop: StatementLoop | cst.FunctionDef
    events: list[Event] = field(default_factory=list)
    foreign: list[tuple[cst.Call, Path]] = field(default_factory=list)
    functions: set[cst.CSTNode] = field(default_factory=set)
    complete: bool = True
    _index: tuple[int, dict[tuple[Act, cst.CSTNode | None], list[Event]]] = field(
        default=(0, {}), repr=False, compare=False
    )
    """The events of each kind, and of each kind at each node, as of so many events."""

    def of(self, *acts: Act) -> list[Event]:
        """Return the events of some kinds."""
        if len(acts) > 1:
            return [event for event in self.events if event.act in acts]
        return self.at(None, acts[0])

    def at(self, node: cst.CSTNode | None, act: Act) -> list[Event]:
        """Return the events of one kind at a node, or anywhere."""
        count, found = self._index
        if count != len(self.events):
            found = {}
            for event in self.events:
                found.setdefault((event.act, None), []).append(event)
                found.setdefault((event.act, event.node), []).append(event)
            self._index = len(self.events), found
        return found.get((act, node), [])


class Iterations(Part):
    """The iterations of the loops of one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._visits = 0

    # ------------------------------------------------------------------ which loops

    def running(self, node: cst.CSTNode) -> list[Iteration]:
        """Return the iterations of the innermost loops that run ``node``, itself or by calls of its function.

        A loop that goes through optimizers, models or parameters does not count.
        """
        return [self.iteration(loop) for loop in self._search(node, all_around=False)]

    def around(self, node: cst.CSTNode) -> list[Iteration]:
        """Return what ``running`` does, with the loops around the innermost ones, the inner first."""
        return [self.iteration(loop) for loop in self._search(node, all_around=True)]

    def _search(self, node: cst.CSTNode, *, all_around: bool) -> Iterable[StatementLoop]:
        found: dict[StatementLoop, None] = {}
        seen: set[cst.CSTNode] = set()
        waiting = [node]
        for current in waiting:
            loops = list(self._loops(current))
            if not all_around and loops:
                loops = loops[:1]
            found.update((loop, None) for loop in loops if isinstance(loop, StatementLoop))
            function = self.module.function(current)
            if (loops and not all_around) or function is None or function in seen:
                continue
            seen.add(function)
            waiting.extend(self.module.callers(function))
        return found

    def entered(self, node: cst.CSTNode) -> list[Iteration]:
        """Return what the functions do that run ``node``,
        and that other files or a framework call for each step.

        These are the methods of a class that nothing in the file calls, and the functions that an engine is
        made with; and only if no loop of the file, and no code of the module itself, leads to them.
        """
        found: dict[cst.FunctionDef, None] = {}
        seen: set[cst.CSTNode] = set()
        waiting = [node]
        for current in waiting:
            function = self.module.function(current)
            if not isinstance(function, cst.FunctionDef):
                return []
            if function in seen:
                continue
            seen.add(function)
            callers = self.module.callers(function)
            waiting.extend(callers)
            if not callers:
                if not self._is_entered(function):
                    return []
                found[function] = None
        return [self.iteration(function) for function in found]

    def _is_entered(self, function: cst.FunctionDef) -> bool:
        if _runs_once(function.name.value):
            return False
        return self.module.classes.owner(function) is not None or function in self.processes

    @cached_property
    def processes(self) -> set[cst.CSTNode]:
        """The functions that an engine of ignite calls for each batch."""
        given = [
            self.module.value(call.args[0].value).definition
            for call in self.tree.nodes(cst.Call)
            if call.args and (last_name(call.func) or "").endswith("Engine")
            if (self.module.qualified(call.func) or "").startswith("ignite.")
        ]
        return {function for function in given if function is not None}

    @cached_property
    def clearings(self) -> set[cst.CSTNode]:
        """All places of the file that clear gradients, or may do so by their name."""
        calls = (c for c in self.tree.nodes(cst.Call) if self._clears(c, last_name(c.func) or ""))
        return {*calls, *filter(self._is_written, self.tree.attributes_by_name.get("grad", ()))}

    @remembered
    def iteration(self, loop: StatementLoop | cst.FunctionDef) -> Iteration:
        """Return what an iteration of this loop does."""
        found = Iteration(loop)
        self._visits = 0
        if not isinstance(loop, cst.FunctionDef):
            # A generator may do its part between two iterations.
            self._walk(found, loop.test if isinstance(loop, cst.While) else loop.iter, (), ())
        self._walk(found, loop.body, (), ())
        return found

    def _loops(self, node: cst.CSTNode) -> Iterator[Loop]:
        """Yield the loops around a node, but for those through optimizers, models or parameters."""
        for loop in self.module.flow.loops(node):
            iterable = iterable_of(loop)
            if iterable is None or not some(self._are_parts(iterable)):
                yield loop

    @traced(Through.NOTHING)
    def _are_parts(self, iterable: cst.CSTNode, path: object) -> bool | list[Source]:
        """Return whether these are optimizers, models or parameters, and no steps."""
        for part in self.tree.descendants(iterable):
            word = last_name(part) if not isinstance(part, cst.Call) else None
            if word in ("parameters", "named_parameters", "param_groups", "modules", "named_modules"):
                return True
            if word is not None and word.endswith("s") and ends(word, Role.OPTIMIZER, Role.MODEL):
                return True
        value = self.module.value(iterable)
        item = value.item or (value.elements[0] if value.elements else None)
        if value.kind is Kind.PARAMETERS or (item is not None and item.kind in _PARTS):
            return True
        # ``grads = [p.grad for p in parameters]``
        bindings = self.module.bindings(iterable)
        lists = (binding.value for binding in bindings)
        return onward(*(made.for_in.iter for made in lists if isinstance(made, cst.ListComp)))

    # ------------------------------------------------------------------ going through

    def _walk(
        self, iteration: Iteration, node: cst.CSTNode, path: Path, around: tuple[cst.CSTNode, ...]
    ) -> None:
        for step in self._steps(node):
            if step.act is not None:
                self._add(iteration, step.act, step.node, step.subject, path, around)
            if isinstance(step.node, cst.Call):
                self._go_through(iteration, step.node, step, path, around)

    @remembered
    def _steps(self, node: cst.CSTNode) -> list[_Step]:
        """Return what below a node does anything in an iteration, or leads elsewhere, in source order."""
        steps: list[_Step] = []
        for inner in self.tree.descendants(node):
            match inner:
                case cst.Call():
                    act, subject = self._act(inner) or (None, None)
                    step = _Step(inner, act, subject, *self._run_by(inner))
                    if act is not None or step.foreign or step.bodies or step.given:
                        steps.append(step)
                case cst.Attribute(attr=cst.Name("grad")) if self._is_written(inner):
                    steps.append(_Step(inner, Act.CLEAR))
                case cst.Attribute(attr=cst.Name("training")) if self._is_target(inner):
                    steps.append(_Step(inner, Act.TRAIN, inner.value))
        return steps

    def _run_by(self, call: cst.Call) -> tuple[bool, list[Function], list[Function]]:
        """Return whether it is unknown what a call runs, and the functions of interest that it may run."""
        callees = self.module.callees(call)
        bodies: list[Function] = [*callees, *self._entered(call)] if callees else []
        given: list[Function] = []
        # Calls that look at the function they are given do not run it.
        if call.args and not (has(last_name(call.func), Role.SAVING, Role.LOGGING) or self._looks(call)):
            # ``optimizer.step(closure)``
            found = (self._given_function(argument.value) for argument in call.args)
            given = [function for function in found if function is not None]
        interesting = self._is_of_interest
        return not callees, [*filter(interesting, bodies)], [*filter(interesting, given)]

    def _go_through(
        self, iteration: Iteration, call: cst.Call, step: _Step, path: Path, around: tuple[cst.CSTNode, ...]
    ) -> None:
        if step.foreign:
            iteration.foreign.append((call, path))
        given = (function for function in step.given if not self.tree.contains(iteration.loop, function))
        for function in (*step.bodies, *given):
            if self._visits >= MANY:
                iteration.complete = False
            elif all(function not in self.module.callees(earlier) for earlier in path):
                self._visits += 1
                iteration.functions.add(function)
                loops = (*self._loops_within(iteration, call, path), *around)
                self._walk(iteration, function.body, (*path, call), loops)

    def _entered(self, call: cst.Call) -> list[Function]:
        """Return what runs at both ends of a ``with`` statement over an instance of a class of the file."""
        definition = self.module.value(call).definition
        if not isinstance(self.tree.parent(call), cst.WithItem) or not isinstance(definition, cst.ClassDef):
            return []
        info = self.module.classes.info(definition)
        methods = (info.method(name) for name in ("__enter__", "__exit__"))
        return [method for method in methods if method is not None]

    def _looks(self, call: cst.Call) -> bool:
        dotted = self.module.qualified(call.func) or ""
        return dotted == "builtins.isinstance" or dotted.startswith("inspect.")

    def _given_function(self, node: cst.BaseExpression) -> Function | None:
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return None
        value = self.module.value(node)
        definition = value.definition if value.kind is Kind.FUNCTION else None
        return definition if isinstance(definition, (cst.FunctionDef, cst.Lambda)) else None

    def _add(
        self,
        iteration: Iteration,
        act: Act,
        node: cst.CSTNode,
        subject: cst.BaseExpression | None,
        path: Path,
        around: tuple[cst.CSTNode, ...],
    ) -> None:
        about = self.subject(subject, path) if subject is not None else None
        loops = (*self._loops_within(iteration, node, path), *around)
        iteration.events.append(Event(act, node, about, path, loops))

    def _loops_within(self, iteration: Iteration, node: cst.CSTNode, path: Path) -> Iterator[cst.CSTNode]:
        """Yield the loops around a node in its function, up to the loop of the iteration."""
        for loop in self._loops(node):
            if loop is iteration.loop:
                return
            yield loop

    @solved(False)
    def _is_of_interest(self, function: Function) -> bool:
        """Return whether a function does anything of interest, or calls one in any file that does."""
        if function in self._of_interest:
            return True
        return self.link is not None and any(
            self._is_of_interest(callee)
            for call in self.module.calls_in(function)
            for callee in self.module.callees(call)
        )

    @cached_property
    def _of_interest(self) -> set[cst.CSTNode]:
        """The functions that contain anything of interest, or call one that does, going by names."""
        called: dict[str, set[cst.CSTNode]] = {}
        for call in self.tree.nodes(cst.Call):
            function = self.module.function(call)
            if function is not None:
                for named in (call.func, *(argument.value for argument in call.args)):
                    called.setdefault(last_name(named) or "", set()).add(function)
        found: set[cst.CSTNode] = set()
        for part in self.tree.nodes(cst.Name):
            if part.value in _OF_INTEREST or has(part.value, *_OF_INTEREST_BY_ROLE):
                function = self.module.function(part)
                while function is not None and function not in found:
                    found.add(function)
                    function = self.module.function(function)
        waiting = list(found)
        while waiting:
            current = waiting.pop()
            names = [current.name.value] if isinstance(current, cst.FunctionDef) else []
            if not _METHODS_OF_INSTANCES.isdisjoint(names) and self.module.classes.owner(current) is not None:
                # By whatever name the instance goes.
                names = list(called)
            for name in names:
                new = called.get(name, set()) - found
                found |= new
                waiting.extend(new)
        return found

    # ------------------------------------------------------------------ acts

    def _act(self, call: cst.Call) -> tuple[Act, cst.BaseExpression | None] | None:
        """Return what a call does, and to what."""
        if call in self._backwards:
            return Act.BACKWARD, self._backwards[call]
        name = last_name(call.func)
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        if name is not None and self._clears(call, name):
            return Act.CLEAR, owner if name == "zero_grad" else None
        if self.module.qualified(call.func) is not None:
            return None
        if self.module.value(call.func).kind is Kind.MODULE:
            return Act.FORWARD, call.func
        if owner is None:
            return None
        if name == "step" or (name is not None and name.startswith("step_and")):
            return self._step(call, owner)
        if name == "eval" and not call.args:
            return Act.EVAL, owner
        if name == "train" and len(call.args) <= 1:
            off = bool(call.args) and self.module.value(call.args[0].value).constant is False
            return Act.EVAL if off else Act.TRAIN, owner
        return None

    def _clears(self, call: cst.Call, name: str) -> bool:
        if name == "setattr" and len(call.args) == 3:
            return self.module.value(call.args[1].value).constant == "grad"
        # ``optimizer.second_step(zero_grad=True)``
        asked = any(
            argument.keyword is not None and argument.keyword.value == "zero_grad" for argument in call.args
        )
        return asked or _clears_gradients(name)

    def _step(self, call: cst.Call, owner: cst.BaseExpression) -> tuple[Act, cst.BaseExpression] | None:
        kind = self.module.value(owner).kind
        if kind is Kind.OPTIMIZER:
            return Act.STEP, owner
        scales = kind is Kind.SCALER or (kind is Kind.UNKNOWN and "scaler" in (last_name(owner) or ""))
        if scales and call.args:
            return Act.STEP, call.args[0].value
        # ``self.optimizer["generator"]``
        holder = last_name(owner.value) if isinstance(owner, cst.Subscript) else None
        named = (holder or last_name(owner) or "").removesuffix("s")
        if kind is Kind.UNKNOWN and names_optimizer(named):
            return Act.STEP, owner
        return None

    @cached_property
    def _backwards(self) -> dict[cst.Call, cst.BaseExpression | None]:
        """The calls that add to the gradients of parameters, with the loss."""
        return {
            backward.call: backward.losses[0] if backward.losses else None
            for backward in Backpropagation.of(self.module).passes
            if self.module.qualified(backward.call.func) != "torch.autograd.grad"
        }

    def _is_target(self, node: cst.CSTNode) -> bool:
        return isinstance(self.tree.parent(node), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))

    def _is_written(self, gradient: cst.Attribute) -> bool:
        """Return whether a gradient is set, deleted or changed in place, perhaps by a function."""
        whole: cst.CSTNode = gradient
        parent = self.tree.parent(whole)
        while parent is not None and gradient_owner(parent) is not None and parent is not whole:
            whole, parent = parent, self.tree.parent(parent)
        match parent:
            case cst.AssignTarget() | cst.Del():
                return True
            case cst.AugAssign(target=target, operator=cst.DivideAssign()) if target is whole:
                # Averaged over several devices, or over the batches of a step.
                return False
            case cst.AugAssign(target=target):
                return target is whole
            case cst.Subscript(value=value) if value is whole:
                return self._is_target(parent)
            case cst.Attribute(attr=cst.Name(method)) if method.endswith("_"):
                return method not in _KEEPING_IN_PLACE and not self._averages(parent)
            case cst.Arg():
                call = self.tree.parent(parent)
                name = last_name(call.func) if isinstance(call, cst.Call) else None
                return name is not None and (name.endswith("_") or name == "append")
            case _:
                return False

    def _averages(self, method: cst.Attribute) -> bool:
        """Return whether a method multiplies by the inverse of a number: ``p.grad.mul_(1.0 / n)``."""
        match self.tree.parent(method):
            case cst.Call(func=func, args=[cst.Arg(value=cst.BinaryOperation(operator=cst.Divide()))]):
                return func is method and method.attr.value == "mul_"
            case _:
                return False

    # ------------------------------------------------------------------ subjects

    def subject(self, node: cst.BaseExpression, path: Path) -> Subject:
        """Return what an expression stands for in a function that the calls of ``path`` lead to."""
        return Subject(node, self.module.value(node), self._place(node, path))

    def _place(self, node: cst.BaseExpression, path: Path) -> tuple[object, ...] | None:
        """Return what variable or attribute an expression is for the code at the beginning of a path."""
        parts: tuple[object, ...] = ()
        known: tuple[object, ...] | None = None
        seen: set[tuple[cst.CSTNode, Path]] = set()
        while True:
            node, further = self._taken_apart(node)
            parts = further + parts
            scope = self.module.names.lookup(node.value, node) if isinstance(node, cst.Name) else None
            if scope is None or not isinstance(node, cst.Name) or (node, path) in seen:
                return known
            seen.add((node, path))
            name = node.value
            begun = _begun(self.module, scope, name)
            if begun is None or (begun.kind is not BindingKind.PARAMETER and begun.value is None):
                return (scope, name, *parts)
            path = self._path_to(scope, path)
            if begun.kind is not BindingKind.PARAMETER:
                known = (scope, name, *parts)
                given = begun.value
            elif not path or not isinstance(scope.node, FUNCTIONS):
                # A parameter of the function that has the loop.
                owner = self.module.classes.owner(scope.node)
                return (owner, "", *parts) if self._is_self(scope.node, name) else (scope, name, *parts)
            else:
                given, path = self._given(path[-1], scope.node, name), path[:-1]
            if given is None:
                return known
            node = given

    def _taken_apart(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, tuple[object, ...]]:
        """Return what an expression is an attribute or item of, with the names and keys in between."""
        parts: list[object] = []
        while True:
            match node:
                case cst.Attribute(attr=cst.Name(name)):
                    # What a wrapper for several devices wraps counts as the wrapper.
                    parts += [name] if name != "module" else []
                    node = node.value
                case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=index))]) if (
                    key := self.module.value(index).constant
                ) is not MISSING:
                    parts.append(("item", key))
                    node = node.value
                case cst.Call(
                    func=cst.Attribute(attr=cst.Name("to" | "cuda" | "train" | "eval"), value=owner)
                ):
                    node = owner
                case _:
                    return node, tuple(reversed(parts))

    def _path_to(self, scope: Scope, path: Path) -> Path:
        """Return the part of a path that leads to the function of a scope."""
        for length in range(len(path), -1, -1):
            if length == 0 or scope.node in self.module.callees(path[length - 1]):
                return path[:length]
        return ()

    def _given(self, call: cst.Call, function: Function, name: str) -> cst.BaseExpression | None:
        """Return what a call gives for a parameter of a function; for ``self`` the owner of the method."""
        if not self._is_self(function, name):
            return self.module.call(call).get(name).node
        if self.module.value(call.func).kind in (Kind.MODULE, Kind.OBJECT):
            # ``model(x)`` runs the ``forward`` of the model.
            return call.func
        return call.func.value if isinstance(call.func, cst.Attribute) else None

    def _is_self(self, function: cst.CSTNode, name: str) -> bool:
        return isinstance(function, cst.FunctionDef) and self.module.classes.self_name(function) == name


def bound_in(module: Module, loop: cst.CSTNode, place: tuple[object, ...] | None) -> bool:
    """Return whether the variable at the root of a place is bound anew in each iteration of a loop."""
    if place is None or len(place) < 2 or not isinstance(place[0], Scope):
        return False
    bindings: list[Binding] = place[0].bindings.get(str(place[1]), [])
    return any(module.tree.contains(loop, binding.node) for binding in bindings)


@remembered
def _begun(module: Module, scope: Scope, name: str) -> Binding | None:
    """Return the parameter, or the one assignment of another name or attribute,
    that a name stands for all along.

    What it is rebound to is what it was, moved or wrapped.
    """
    bindings = scope.bindings.get(name, ())
    for binding in bindings:
        if binding.kind is BindingKind.PARAMETER:
            return binding
    first = [binding for binding in bindings if not _wraps_itself(binding)]
    if len(first) != 1 or first[0].kind is not BindingKind.ASSIGN or first[0].path:
        return None
    return first[0] if isinstance(first[0].value, (cst.Name, cst.Attribute)) else None


def _wraps_itself(binding: Binding) -> bool:
    """Return whether it stays the same model: ``model = DataParallel(model)``, ``model = model.cuda()``."""
    match binding.value:
        case cst.Call(func=cst.Attribute(value=cst.Name(name))) if name == binding.name:
            return True
        case cst.Call(args=[cst.Arg(value=cst.Name(name)), *_]):
            return name == binding.name
        case _:
            return False


def gradient_owner(node: cst.CSTNode) -> cst.BaseExpression | None:
    """Return ``p`` in ``p.grad``, ``p.grad.data`` and ``p.grad.detach()``; None for anything else."""
    match node:
        case cst.Attribute(attr=cst.Name("grad")):
            return node.value
        case cst.Attribute(attr=cst.Name("data"), value=inner):
            return gradient_owner(inner)
        case cst.Call(func=cst.Attribute(attr=cst.Name("detach"), value=inner)):
            return gradient_owner(inner)
        case _:
            return None


def is_parameter(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a parameter of a module, or one that an optimizer steps."""
    if module.value(node).leaf:
        return True
    # ``p -= lr * p.grad`` leaves ``p`` the parameter that the loop visits.
    return any(
        binding.value is not None
        and (is_parameter_group(binding.value) or module.inference.binding(binding).leaf)
        for binding in visits(module, node)
    )


def visits(module: Module, node: cst.BaseExpression) -> list[Binding]:
    """Return the loops around a name that bind it."""
    scope = module.names.lookup(node.value, node) if isinstance(node, cst.Name) else None
    if scope is None or not isinstance(node, cst.Name):
        return []
    loops = module.flow.loops(node)
    return [
        binding
        for binding in scope.bindings.get(node.value, ())
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION)
        and any(module.tree.contains(loop, binding.node) for loop in loops)
    ]


def is_parameter_group(iterable: cst.BaseExpression) -> bool:
    """Return whether what a loop goes over is the parameters of a group: ``group["params"]``."""
    match iterable:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(evaluated_value="params")))]
        ):
            return True
        case _:
            return False


# --- who holds an optimizer or a model ----------------------------------------------------------------------

# What functions of other files do with an optimizer without clearing anything, going by their names.
HARMLESS = (
    Role.SCHEDULER,
    Role.SAVING,
    Role.LOADING,
    Role.CHECKPOINT,
    Role.LOGGING,
    Role.EVALUATION,
    Role.HELD_OUT,
    Role.TEST,
    Role.COPY,
    Role.SCORE,
    Role.METRIC,
    Role.DRAWING,
    Role.FILE,
    Role.SAMPLING,
    Role.RECORD,
    Role.PROGRESS,
    Role.LOSS,
    Role.CRITERION,
    Role.PREDICTION,
    Role.LENGTH,
    Role.MAGNITUDE,
    Role.DEVICE,
    Role.COUNT,
    Role.CLIPPING,
    Role.DECAY,
    Role.WATCHING,
    Role.STOPPING,
    Role.PARAMETERS,
    Role.PURE,
)
# Kinds of objects that hold no optimizer and no model.
HOLD_NO_MODEL = frozenset(
    {
        *(Kind.TENSOR, Kind.BATCH, Kind.LOADER, Kind.DATASET, Kind.SAMPLER, Kind.SCHEDULER, Kind.SCALER),
        *(Kind.ACCELERATOR, Kind.NDARRAY, Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE),
        *(Kind.CLASS, Kind.DEVICE, Kind.DTYPE, Kind.GENERATOR),
    }
)
# Parameters of a function that may hold everything, by their names.
_HOLDERS = (Role.CONTEXT, Role.TRAINER, Role.OPTIMIZER)
# Functions whose results are data, whatever they are given.
_DATA = (Role.DATA, Role.LOADER, Role.BATCH, Role.DATASET, Role.DEVICE)
LIBRARIES = (
    "torch.",
    "builtins.",
    "numpy.",
    "math.",
    "random.",
    "os.",
    "time.",
    "tqdm.",
    "logging.",
    "json.",
    "apex.",
)


def holds_optimizer(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is, or may be an object that holds, an optimizer or parameters."""
    return some(_holds(module, node, (Kind.OPTIMIZER, Kind.PARAMETERS)))


def holds_model(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a model, its parameters or an optimizer, or may hold one."""
    return some(_holds(module, node, (Kind.OPTIMIZER, Kind.PARAMETERS, Kind.MODULE)))


@traced(Through.ITEMS)
def _holds(
    module: Module, node: cst.CSTNode, path: object, kinds: tuple[Kind, ...]
) -> bool | list[Source] | None:
    """Return whether this is of one of these kinds, by what it was made with, and by its name last.

    An object may hold whatever it was made with; which part of it is asked for makes no difference.
    """
    kind = module.value(node).kind
    if kind in kinds or kind in HOLD_NO_MODEL or kind is Kind.MODULE:
        return kind in kinds
    match node:
        case cst.Param():
            return ends(node.name.value, *_HOLDERS)
        case cst.Tuple() | cst.List() | cst.Set() | cst.Dict():
            return onward(*(element.value for element in node.elements))
        case cst.Call():
            if has(last_name(node.func), *HARMLESS, *_DATA):
                return False
            return onward(*(argument.value for argument in node.args))
        case cst.Attribute(attr=cst.Name(name)):
            assigned = module.names.attributes.get(name, ())
            if not assigned:
                return ends(name, *_HOLDERS)
            return onward(*(binding.value for binding in assigned if binding.value is not None))
        case cst.Subscript():
            return onward(node.value)
        case _:
            return None
