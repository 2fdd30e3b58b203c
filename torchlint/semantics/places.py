"""Where a node runs: whether its loops are hot, and in how many of their iterations.

A loop is hot when each of its iterations gives the device work: in its body, or in what the body calls
in this file, a module is called, gradients are computed, an optimizer steps. An epoch loop is not: its
work happens in the loop over batches inside it, and what it does besides happens once an epoch. A
function is hot when a hot place calls it, or when a framework calls it every step, as ``forward`` is.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

import libcst as cst

from torchlint.semantics.api.frameworks import (
    ADMINISTRATIVE_METHOD,
    APPLYING_FUNCTIONS,
    HOOK_REGISTRATIONS,
    ITERATION_WRAPPERS,
    LIGHT_OPERATIONS,
    LIGHTNING_BATCH_HOOK,
    LIGHTNING_STEPS,
    METHODS_OF_STEPS,
)
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.contexts import COLD, Contexts, context
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.flow.graph import COMPREHENSIONS, FUNCTIONS, Function, Loop, iterable_of
from torchlint.semantics.flow.guards import Guard, concluded, guards, implied
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, begins, has, names_loader, names_model
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind, all_parameters
from torchlint.semantics.origins import hands_over_model, runs_given_model
from torchlint.semantics.phases import Phase, is_training_step, phase, transforms_sample
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.serving import (
    is_made_each_step,
    is_of_pass,
    is_step,
    runs_once,
    serves,
    steps_engine,
)
from torchlint.semantics.spellings import last_name
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.values import MISSING, Device, Kind, Value


class Cause(enum.Enum):
    """What makes a place hot: what the loop around it does, or what the function around it is."""

    OPTIMIZER_STEP = enum.auto()
    GRADIENTS = enum.auto()
    MODULE_CALL = enum.auto()
    MODULE_METHOD = enum.auto()
    GIVEN_MODEL = enum.auto()
    """The loop calls a function that runs a model which it is given."""
    COMPUTATION = enum.auto()
    """The loop computes something on the device, but no whole step."""
    BATCHES = enum.auto()
    """The loop goes over batches that a model works on."""
    METHOD = enum.auto()
    """The function is a method that runs at every step, such as ``forward``."""
    LIGHTNING = enum.auto()
    HOOK = enum.auto()
    TRAINING_STEP = enum.auto()
    """The function is one step of training, whoever calls it."""
    CALLERS = enum.auto()
    """Code out of sight calls the function, as often as it likes."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a place is hot; ``name`` is that of the function that the cause is about, if it is about one."""

    cause: Cause
    name: str = ""


@dataclass(frozen=True, slots=True)
class Hot:
    """A node runs at every step of ``loop``.

    ``loop`` is the hot loop, or the function that runs every step without a loop in this file.
    ``path`` are the calls (or property reads) that lead from the loop to the function of the node,
    outermost first; empty when the loop is in the same function. ``reason`` says what makes it hot. A
    ``period`` of 2 says that a counter lets the node run at every second step only.
    """

    loop: Loop | Function
    path: tuple[cst.BaseExpression, ...]
    reason: Reason
    period: int = 1


class Heat(enum.IntEnum):
    """How much device work each iteration of a loop does: none, some tensor operations, whole steps."""

    COLD = 0
    WARM = 1
    HOT = 2


@dataclass(slots=True)
class _Work:
    """What a loop or function does each time round.

    ``heat``, ``trains`` and ``reason`` tell of the work outside of inner loops; ``steps`` whether an inner
    loop is one of steps, ``training_steps`` whether it trains, and ``batches`` whether it goes over a
    loader. ``starts``: it makes its own optimizer or loader, so that it is a whole run and no step.
    """

    heat: Heat = Heat.COLD
    trains: bool = False
    reason: Reason = Reason(Cause.BATCHES)
    steps: bool = False
    training_steps: bool = False
    batches: bool = False
    starts: bool = False

    def add(self, other: _Work) -> None:
        """Take in work that is done directly."""
        if (other.heat, other.trains) > (self.heat, self.trains):
            self.heat, self.trains, self.reason = other.heat, other.trains, other.reason

    def add_inner(self, other: _Work) -> None:
        """Take in the loops that something done directly has in it."""
        self.steps = self.steps or other.steps
        self.training_steps = self.training_steps or other.training_steps
        self.batches = self.batches or other.batches


_NO_WORK = _Work()
_START = _Work(starts=True)
_SHORT: Final = 10
"""Loops of fewer rounds than this say nothing of how often the code around them runs."""


_NO_STEP: Final = frozenset({Phase.DATASET, Phase.SETUP})
"""What runs in the workers of a loader, or once."""

# Kinds of values none of which is an instance of another's type.
_APART: Final = frozenset(
    {Kind.DICT, Kind.LIST, Kind.NDARRAY, Kind.NONE, Kind.NUMBER, Kind.STRING, Kind.TENSOR, Kind.TUPLE}
)

_LITERALS = (cst.SimpleString, cst.Integer, cst.Float)
_CONSTANTS = ("None", "True", "False")

# The tests of the branches around a place that ask for a parameter, and how each must come out; and calls of
# what may be one of several functions, with the one that each must run.
_Conditions: TypeAlias = "tuple[tuple[cst.BaseExpression, bool | Function], ...]"

# A function, whether it runs for each item that it yields, and on which conditions.
_Run: TypeAlias = "tuple[Function, bool, _Conditions]"
_Way: TypeAlias = "tuple[_Run, tuple[cst.BaseExpression, ...]]"


def hot(module: Module, node: cst.CSTNode) -> Hot | None:
    """Return how a node runs in every iteration of a loop that does device work; None if it does not."""
    return Places.of(module).hot(node)


def offered(module: Module, node: cst.CSTNode) -> Hot | None:
    """Return the function by which code out of sight runs a node that nothing in sight runs at every step, as
    often as it likes; None if there is none.
    """
    return Places.of(module).offered(node)


def heat(module: Module, loop: Loop) -> Heat:
    """Return how much work for the device each iteration of a loop is."""
    return Places.of(module).heat(loop)


def over_loader(module: Module, loop: Loop) -> bool:
    """Return whether a loop goes over the batches of a loader."""
    return Places.of(module).over_loader(loop)


def over_layers(module: Module, loop: Loop) -> bool:
    """Return whether a loop goes through the parts of a model, or through a few models."""
    return Places.of(module).over_layers(loop)


def computes(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a statement or expression runs a model, computes gradients or steps an optimizer."""
    return Places.of(module).computes(node)


def computes_on_device(module: Module, call: cst.Call) -> bool:
    """Return whether a call gives the device something to compute."""
    return Places.of(module).computes_on_device(call)


def throttled(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node runs only in some iterations of the loop around it."""
    return Places.of(module).throttled(node)


def throttled_in(module: Module, node: cst.CSTNode, loop: Loop | Function) -> bool:
    """Return whether a node runs in few of the iterations of this loop around it, or calls of a function."""
    return Places.of(module).throttled_in(node, loop)


def served(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node runs at a step of a server, in a function of the engine or in what one calls."""
    return Places.of(module).served(node)


def in_engine(module: Module, node: cst.CSTNode) -> bool:
    """Return whether an engine for inference runs a node at its steps: in a function that it calls, in a pass
    of a model, or in what one of these calls.
    """
    return Places.of(module).in_engine(node)


def starts_run(module: Module, function: Function) -> bool:
    """Return whether each call of a function is a run of its own, with its own optimizer or loader."""
    return Places.of(module).starts_run(function)


def main_guarded(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node runs only when the file is run as a script."""
    return Places.of(module).main_guarded(node)


class Places(Part):
    """The places of one file. Everything is computed when first asked, and remembered."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loops = module.flow.loops
        self.names = module.names
        self._throttling = Throttling.of(module)

    # ------------------------------------------------------------------ throttling

    def throttled(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` runs in few of the iterations of the loops around it.

        The loops that count are those from the innermost up to the loop of steps; what restricts an
        epoch does not throttle the steps in it.
        """
        for loop in self.loops(node):
            if self._throttling.between(node, loop):
                return True
            if self.heat(loop) is Heat.HOT:
                return False
        return self._throttling.between(node, self.module.function(node) or self.tree.root)

    def throttled_in(self, node: cst.CSTNode, loop: Loop | Function) -> bool:
        """Return whether ``node`` runs in few of the iterations of this loop, or calls of this function."""
        return self._throttling.between(node, loop)

    # ------------------------------------------------------------------ heat

    def heat(self, loop: Loop) -> Heat:
        """Return how much work for the device each iteration of this loop is."""
        work = self._work_of(loop)
        if work.starts or self._runs_epochs(loop) or _is_written_out(loop):
            return Heat.COLD
        if not work.trains and self.changes_models(loop):
            return Heat.COLD
        if self.over_loader(loop) and not (work.batches and self._over_several(loop)):
            return Heat.HOT if work.steps else work.heat
        if work.heat is Heat.HOT:
            # What is done once beside a loop that trains, or at the end of an epoch, is no step.
            rounds = work.batches or (work.steps and (is_epoch_loop(loop) or self._decodes(loop, work)))
            return Heat.COLD if rounds or (work.training_steps and not work.trains) else Heat.HOT
        return Heat.COLD if work.steps else work.heat

    def _runs_epochs(self, loop: Loop) -> bool:
        """Return whether each round of a loop calls for an epoch: ``while True: self.train_epoch()``."""
        calls = self._held.get(loop, ([], []))[0]
        names = (last_name(call.func) for call in calls) if isinstance(loop, cst.While) else ()
        return any(begins(name, Role.TRAINING) and has(name, Role.EPOCH) for name in names)

    @remembered
    def changes_models(self, loop: Loop) -> bool:
        """Return whether each round of a loop has a model of its own for what runs one.

        That is one of several (``for model in models: report(model)``), or one that the round makes
        (``model = load(path)``).
        """
        if not isinstance(loop, (cst.For, cst.While)) or self.over_loader(loop):
            return False
        models = set(self._models_of_round(loop))
        handed = [
            any(isinstance(each, cst.Name) and each.value in models for each in (call.func, *given))
            for call in self._held.get(loop, ([], []))[0]
            if (done := self._work_of_call(call)) is not None and (done.heat is Heat.HOT or done.steps)
            for given in [[argument.value for argument in call.args]]
        ]
        return bool(models) and bool(handed) and all(handed)

    def _models_of_round(self, loop: cst.For | cst.While) -> Iterator[str]:
        """Yield the names that stand for another model in each round of a loop."""
        if isinstance(loop, cst.For) and not self.loops(loop):
            for part in self.tree.descendants(loop.target):
                if isinstance(part, cst.Name) and names_model(part.value):
                    yield part.value
        for assignment in self.tree.nodes_within(loop.body, cst.Assign):
            made = assignment.value
            if not isinstance(made, cst.Call) or self._holder(assignment) is not loop:
                continue
            for target in assignment.targets:
                for part in self.tree.descendants(target.target):
                    if isinstance(part, cst.Name) and self._is_made_anew(part, made, loop):
                        yield part.value

    def _is_made_anew(self, name: cst.Name, made: cst.Call, loop: Loop) -> bool:
        """Return whether a name that a loop binds stands for a model that is new in each round."""
        if not (names_model(name.value) or self.module.value(name).kind is Kind.MODULE):
            return False
        if any(
            isinstance(inner, cst.Name) and inner.value == name.value for inner in self.tree.descendants(made)
        ):
            return False
        if isinstance(made.func, cst.Attribute) and self.module.value(made.func.value).kind is Kind.MODULE:
            return False
        return all(self.tree.contains(loop, each.node) for each in self.names.bindings(name))

    def _decodes(self, loop: Loop, work: _Work) -> bool:
        """Return whether each round of a loop that evaluates runs a model step by step in an inner loop."""
        if work.trains or work.training_steps or not isinstance(loop, (cst.For, cst.While)):
            return False
        if isinstance(loop, cst.For) and has(_target_name(loop.target), Role.STEP):
            return False  # it is a step itself, of which a part is done in pieces
        if self._carries_on(loop):
            return False
        return phase(self.module, loop.body) is Phase.EVALUATION or grad(self.module, loop.body) is Grad.OFF

    def _carries_on(self, loop: cst.For | cst.While) -> bool:
        """Return whether each round runs a model on what the one before has made: a step of a decoding loop,
        though it may draft several tokens in a loop of its own.
        """
        for assignment in self.tree.nodes_within(loop.body, cst.Assign):
            made = assignment.value
            if not isinstance(made, cst.Call) or self._holder(assignment) is not loop:
                continue
            # What reaches an argument from the same call has come round the loop.
            given = (argument.value for argument in made.args if isinstance(argument.value, cst.Name))
            carried = any(binding.value is made for name in given for binding in self.names.bindings(name))
            work = self._work_of_call(made) if carried else None
            if work is not None and work.heat is Heat.HOT:
                return True
        return False

    @solved(_NO_WORK)
    def _work_of(self, holder: cst.CSTNode) -> _Work:
        """Return what a loop or function does each time round, directly and by what it calls."""
        work = _Work()
        calls, inner = self._held.get(holder, ([], []))
        for call in calls:
            done = self._work_of_call(call)
            if done is None or self._throttling.between(call, holder):
                continue
            if done.starts:
                work.starts = work.starts or done is _START
                work.steps = work.steps or done.heat is Heat.HOT
            else:
                work.add(done)
            work.add_inner(done)
        for loop in inner:
            done = self._work_of(loop)
            if (done.heat is Heat.COLD and not done.steps) or self._throttling.between(loop, holder):
                continue
            if self.over_layers(loop):
                work.add(done)
            elif _is_written_out(loop) or (isinstance(loop, COMPREHENSIONS) and not self.over_loader(loop)):
                work.add(done)
                work.add_inner(done)
            elif self.heat(loop) is Heat.HOT or done.steps:
                work.steps = True
                work.training_steps = work.training_steps or done.trains or done.training_steps
                work.batches = work.batches or self.over_loader(loop)
            work.batches = work.batches or done.batches
        if work.heat is Heat.COLD and not work.steps:
            for call in calls:
                if self.computes_on_device(call) and not self._throttling.between(call, holder):
                    work.add(_Work(Heat.WARM, False, Reason(Cause.COMPUTATION)))
                    break
        return work

    @cached_property
    def _held(self) -> dict[cst.CSTNode, tuple[list[cst.Call], list[Loop]]]:
        """The calls and loops directly in each loop, function and the module."""
        held: dict[cst.CSTNode, tuple[list[cst.Call], list[Loop]]] = {}
        for call in self.tree.nodes(cst.Call):
            held.setdefault(self._holder(call), ([], []))[0].append(call)
        loops: Iterable[Loop] = chain(
            self.tree.nodes(cst.For),
            self.tree.nodes(cst.While),
            self.tree.nodes(cst.ListComp),
            self.tree.nodes(cst.SetComp),
            self.tree.nodes(cst.DictComp),
            self.tree.nodes(cst.GeneratorExp),
        )
        for loop in loops:
            held.setdefault(self._holder(loop), ([], []))[1].append(loop)
        return held

    def _holder(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost loop or function that repeats ``node``, or the module."""
        loops = self.loops(node)
        return loops[0] if loops else self.module.function(node) or self.tree.root

    def _work_of_call(self, call: cst.Call) -> _Work | None:
        """Return the device work of one call; None for none."""
        if is_training_step(self.module, call):
            steps = last_name(call.func) == "step"
            cause = Cause.OPTIMIZER_STEP if steps else Cause.GRADIENTS
            return _Work(Heat.HOT, True, Reason(cause))
        func: cst.BaseExpression = call.func
        called = self.module.value(func)
        made = self.module.value(call).kind if called.kind is Kind.CLASS else None
        if made in (Kind.OPTIMIZER, Kind.LOADER):
            return _START
        if made is Kind.MODULE:
            return None  # what a constructor computes is no step
        # Compiled by a library out of sight, say, it may be something else on one way.
        if called.kind is Kind.MODULE or (called.among is not None and called.may_be(Kind.MODULE)):
            return None if called.device is Device.CPU else _Work(Heat.HOT, False, Reason(Cause.MODULE_CALL))
        functions = self.module.callees(call)
        if functions:
            if any(map(self._is_pass, functions)):
                return _Work(Heat.HOT, False, Reason(Cause.MODULE_METHOD))
            return self._work_of_functions(functions)
        if isinstance(func, cst.Name) and called.kind is Kind.UNKNOWN:
            if runs_given_model(self.module, call) or hands_over_model(self.module, call):
                return _Work(Heat.HOT, False, Reason(Cause.GIVEN_MODEL, func.value))
            func = self._other_name_of(func)
        if isinstance(func, cst.Attribute) and called.kind is not Kind.CLASS:
            owner = self.module.value(func.value)
            if owner.kind is Kind.UNKNOWN and func.attr.value.startswith("forward"):
                owner = self._whole_of(func.value) or owner
            if owner.kind is Kind.MODULE and owner.device is not Device.CPU:
                administers = ADMINISTRATIVE_METHOD.search(func.attr.value) and not self._gets_tensor(call)
                return None if administers else _Work(Heat.HOT, False, Reason(Cause.MODULE_METHOD))
        handed = [function for arg in call.args if (function := self._made_for(arg.value)) is not None]
        return self._work_of_functions(handed) if handed else None

    def _made_for(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        """Return the function made for the one call of a driver that an argument hands over."""
        if not isinstance(node, cst.Name):
            return None
        made = self.module.value(node).definition
        return made if isinstance(made, cst.FunctionDef) and self._is_for_one_call(made) else None

    def _work_of_functions(self, functions: Sequence[Function]) -> _Work | None:
        """Return the device work of a call that may be one of several functions; None for none.

        Where most of them take steps in loops of their own, each is a program by itself, and no step.
        """
        done, stepping, working = _Work(), 0, 0
        for function in functions:
            if not self.module.flow.yields(function):
                work = self._work_of(function)
                done.add(work)
                done.add_inner(work)
                done.starts = done.starts or work.starts
                working += work.steps or work.heat is Heat.HOT
                stepping += work.steps
        if working > 1 and 2 * stepping > working and not done.trains:
            done.heat = Heat.COLD
        return done if done.heat is not Heat.COLD or done.steps else None

    def _whole_of(self, part: cst.BaseExpression) -> Value | None:
        """Return the object that something is an attribute of: ``model`` for ``model.encoder``."""
        return self.module.value(part.value) if isinstance(part, cst.Attribute) else None

    def _other_name_of(self, func: cst.Name) -> cst.BaseExpression:
        """Return the attribute that a variable is another name of: ``act = self.policy.act``."""
        assigned = self.names.assignment(func)
        value = assigned.value if assigned is not None else None
        return value if isinstance(value, cst.Attribute) else func

    def _gets_tensor(self, call: cst.Call) -> bool:
        """Return whether a call is given what is on an accelerator: ``model.get_codes(images)``."""
        given = (self.module.value(argument.value) for argument in call.args)
        return any(value.tensorlike and value.device is Device.ACCELERATOR for value in given)

    def computes_on_device(self, call: cst.Call) -> bool:
        """Return whether the call is an operation of some weight on a tensor of the accelerator."""
        name = last_name(call.func)
        if name is None or name in LIGHT_OPERATIONS:
            return False
        qualified = self.names.qualified(call.func)
        if qualified is None:
            if name not in TENSOR_METHODS:
                return False
        elif not qualified.startswith("torch.") or qualified.startswith(
            ("torch.nn.init.", "torch.distributed.")
        ):
            return False
        result = self.module.value(call)
        if result.kind is not Kind.TENSOR or result.device is not Device.ACCELERATOR:
            return False
        operands = [argument.value for argument in call.args]
        if isinstance(call.func, cst.Attribute):
            operands.append(call.func.value)
        return any(self.module.value(operand).kind is Kind.TENSOR for operand in operands)

    @remembered
    def computes(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` holds a call that gives the device a whole step of work."""
        done = map(self._work_of_call, self.tree.nodes_within(node, cst.Call))
        return any(work is not None and (work.heat is Heat.HOT or work.steps) for work in done)

    def starts_run(self, function: Function) -> bool:
        """Return whether each call of a function is a run of its own, with its own optimizer or loader."""
        return self._work_of(function).starts

    def over_loader(self, loop: Loop) -> bool:
        """Return whether the loop goes over the batches of a loader."""
        return any(map(self._is_loader, iterated(iterable_of(loop))))

    def _over_several(self, loop: Loop) -> bool:
        """Return whether the loop goes through several loaders, and not through the batches of one."""
        parts = iterated(iterable_of(loop))
        return over_entries(loop) or any((last_name(part) or "").endswith("loaders") for part in parts)

    @solved(False)
    def _is_loader(self, node: cst.BaseExpression) -> bool:
        value = self.module.value(node)
        if value.kind is Kind.LOADER:
            return True
        if value.kind is Kind.ITERATOR or value.kind is Kind.UNKNOWN:
            if isinstance(node, cst.Name):
                # ``pbar = tqdm(enumerate(loader))``
                for binding in self.names.bindings(node):
                    if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Call):
                        parts = iterated(binding.value)
                        if any(
                            isinstance(p, (cst.Name, cst.Attribute)) and self._is_loader(p) for p in parts
                        ):
                            return True
            word = last_name(node)
            return word is not None and has(word, Role.LOADER)
        return False

    def over_layers(self, loop: Loop) -> bool:
        """Return whether a loop goes through the parts of a model, all of it one forward pass."""
        for part in iterated(iterable_of(loop)):
            value = self.module.value(part)
            if value.kind is Kind.MODULE or (value.item is not None and value.item.kind is Kind.MODULE):
                return True
        return False

    def _over_parameters(self, loop: Loop) -> bool:
        """Return whether the loop goes through the parameters of a model, as set-up and reports do."""
        for part in iterated(iterable_of(loop)):
            value = self.module.value(part)
            if value.kind is Kind.PARAMETERS or (value.item is not None and value.item.leaf):
                return True
            if any(
                isinstance(name, cst.Name) and name.value in ("state_dict", "named_parameters", "parameters")
                for name in self.tree.descendants(part)
            ):
                return True
        return False

    # ------------------------------------------------------------------ hot places

    @remembered
    def hot(self, node: cst.CSTNode) -> Hot | None:
        """Return the loop of steps, or function, each of whose iterations runs ``node``, if there is one."""
        found, function = self._hot_here(node)
        if (found is None or self._heat_of(found) is not Heat.HOT) and function is not None:
            run = self._run_of(node, function)
            found = self._hot_function(*run) or (None if self._is_ruled_out(*run) else found)
        if found is None:
            return None
        period = self._period(node, found)
        return found if period == 1 else replace(found, period=period)

    def _period(self, node: cst.CSTNode, hot: Hot) -> int:
        """Return in every how many rounds of a hot loop its counters let a node run."""
        periods: list[int] = []
        for place in (*hot.path, node):
            home = self.module.home(place)
            within = hot.loop if not periods else None
            periods.append(Throttling.of(home).period(place, within))
        return max(periods)

    def _is_ruled_out(self, function: Function, _streaming: bool, conditions: _Conditions) -> bool:
        """Return whether no call of a function is one that comes to a place of it, for all that they pass."""
        callers = self.module.callers(function) if conditions else []
        return bool(callers) and all(self._excludes(call, function, conditions) for call in callers)

    def _heat_of(self, hot: Hot) -> Heat:
        """Return whether a hot place is one of steps or only of tensor operations."""
        return Heat.HOT if isinstance(hot.loop, FUNCTIONS) else self.heat(hot.loop)

    def _reason_of(self, loop: Loop) -> Reason:
        """Return why a loop is hot: where no model runs but in the loops in it, by the batches."""
        work = self._work_of(loop)
        inside = work.steps and work.reason.cause is Cause.COMPUTATION and self.over_loader(loop)
        return Reason(Cause.BATCHES) if inside else work.reason

    @remembered
    def _hot_here(self, node: cst.CSTNode) -> tuple[Hot | None, Function | None]:
        """Return the hot loop around ``node`` in its function, and the function if its callers matter."""
        if context(self.module, node) in COLD or self.module.flow.is_dead(node):
            return None, None
        function = self.module.function(node)
        if isinstance(function, cst.FunctionDef) and _is_cached(self.module, function):
            return None, None
        if function is not None and runs_once(self.module, function):
            return None, None
        warm: Hot | None = None
        restricted = False
        around = function or self.tree.root
        for loop in self.loops(node):
            heat = self.heat(loop)
            if heat is Heat.COLD:
                continue
            if self._rarely_reached(node, loop):
                if heat is Heat.HOT and self._work_of(loop).trains and not self._is_short(loop):
                    return None, None  # few steps come to it, however often there are steps
                restricted = True
            elif heat is Heat.HOT and not (self._is_short(loop) and self._rarely_reached(loop, around)):
                return Hot(loop, (), self._reason_of(loop)), None
            elif warm is None and not self._over_parameters(loop):
                warm = Hot(loop, (), self._work_of(loop).reason)
        if self._rarely_reached(node, function or self.tree.root):
            return None, None
        if function is not None and not self.loops(node) and self._beside_decoding(node, function):
            return None, None
        if warm is not None and (restricted or self._work_of(function or self.tree.root).steps):
            # Beside a loop of steps, a loop of a few operations reports on it.
            warm = None
        return warm, function

    def _is_short(self, loop: Loop) -> bool:
        """Return whether a loop has a few rounds that the file spells out: ``range(6)``, ``(0.5, 2.0)``."""
        match iterable_of(loop):
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return len(elements) < _SHORT
            case cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=cst.Integer(value=count))]):
                return int(count, 0) < _SHORT
        return False

    def _rarely_reached(self, node: cst.CSTNode, boundary: cst.CSTNode) -> bool:
        """Return whether ``node`` runs in few of the rounds of ``boundary``,
        and in none of its steps of training.

        ``if step % delay == 0: train(actor)``: where nothing shows the delay, it may be short, and what is
        done beside that training runs at each of its steps.
        """
        if not self._throttling.between(node, boundary):
            return False
        imposing = list(self._throttling.imposed(node, boundary))
        return not imposing or not all(self._trains_under(each, node) for each in imposing)

    def _trains_under(self, holder: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Return whether ``node`` stands in a branch that computes gradients every so many rounds,
        or takes the step for which they were accumulated, however many.

        Where it is known how many, they have to be few, and the loop must not train beside the branch.
        """
        if not isinstance(holder, cst.If) or not self.tree.contains(holder.body, node):
            return False
        if self._throttling.is_of_open_period(holder.test):
            return self._computes_gradients(holder.body, stepping=True)
        if not self._throttling.is_of_learning(holder.test) or not self._computes_gradients(holder.body):
            return False
        loops = self.module.flow.statement_loops(holder)
        around = loops[0] if loops else self.module.function(holder)
        return around is not None and not self._computes_gradients(around.body, beside=holder)

    def _computes_gradients(
        self, body: cst.CSTNode, beside: cst.CSTNode | None = None, *, stepping: bool = False
    ) -> bool:
        """Return whether code trains, perhaps ``beside`` a part of it that counts for nothing.

        With ``stepping``, the step of an optimizer is enough.
        """
        causes = (Cause.GRADIENTS, Cause.OPTIMIZER_STEP) if stepping else (Cause.GRADIENTS,)
        done = [
            self._work_of_call(call)
            for call in self.tree.nodes_within(body, cst.Call)
            if beside is None or not self.tree.contains(beside, call)
        ]
        return any(
            work is not None and (work.training_steps or (work.trains and work.reason.cause in causes))
            for work in done
        )

    def _beside_decoding(self, node: cst.CSTNode, function: Function) -> bool:
        """Return whether ``node`` is reached once for all the steps of a loop beside it that does not train.

        A model that is used step by step, to sample or to decode, waits for itself long enough.
        """
        if phase(self.module, node) is not Phase.EVALUATION or is_step(self.module, function):
            return False
        work = self._work_of(function)
        return work.steps and not (work.trains or work.training_steps or work.batches)

    @remembered
    def _hot_function(self, function: Function, streaming: bool, conditions: _Conditions) -> Hot | None:
        """Return what ``hot`` does, for what a function does when called (or when it yields) on some
        conditions.
        """
        warm: Hot | None = None
        for current, path, here in self._ways((function, streaming, conditions), self._may_be_hot):
            if here is None:
                reason = self._every_step(current)
                if reason is not None:
                    return Hot(current, path, reason)
            else:
                hot = Hot(here.loop, path, here.reason)
                if self._heat_of(here) is Heat.HOT:
                    return hot
                warm = warm or hot
        return warm

    def _ways(
        self, start: _Run, leads_on: Callable[[Function, bool], bool]
    ) -> Iterator[tuple[Function, tuple[cst.BaseExpression, ...], Hot | None]]:
        """Yield the functions that run a function on some conditions, itself first, each with the calls that
        lead from it; and the loops that calls of one stand in, if they do something on the device.

        A function that ``leads_on`` says leads nowhere is passed over. A way by what changes or stores a
        model, which is mostly done once, is taken where there is no other.
        """
        seen: set[_Run] = {start}
        waiting: deque[_Way] = deque([(start, ())])
        at_last: deque[_Way] = deque()
        while waiting or at_last:
            (current, streaming, conditions), path = (waiting or at_last).popleft()
            yield current, path, None
            if transforms_sample(self.module, current):
                continue
            for step, place in self._run_from(current, streaming):
                here, outer = self._hot_here(place)
                if here is None and not (outer and leads_on(outer, self._streams(place, outer))):
                    continue
                if here is not None and phase(self.module, place) is Phase.DATASET:
                    continue  # samples are prepared there, in host memory
                if conditions and self._excludes(step, current, conditions):
                    continue
                onward = path if step is current else (step, *path)
                if here is not None:
                    yield current, onward, here
                if outer is not None:
                    function, streams, before = self._run_of(place, outer)
                    passed_on = self._passed_on(step, current, conditions, outer)
                    key = function, streams, (*before, *passed_on, *self._chosen(step, current))
                    if key not in seen:
                        seen.add(key)
                        if leads_on(outer, key[1]):
                            (at_last if _administers(outer) else waiting).append((key, onward))

    # ------------------------------------------------------------------ what others call

    @remembered
    def offered(self, node: cst.CSTNode) -> Hot | None:
        """Return the function by which code out of sight runs ``node`` as often as it likes, if any."""
        _, function = self._hot_here(node)
        if function is None or not self._may_be_step(node, function):
            return None
        if accelerated(self.module) and self.hot(node) is not None:
            return None
        for current, path, here in self._ways(self._run_of(node, function), self._may_be_offered):
            if here is None and self._is_offered(current):
                assert isinstance(current, cst.FunctionDef)
                return Hot(current, path, Reason(Cause.CALLERS, current.name.value))
        return None

    @solved(False)
    def _may_be_offered(self, function: Function, streaming: bool) -> bool:
        """Return whether some way leads to a function from one that is offered, on whichever conditions."""
        return self._is_offered(function) or any(
            outer is not None and self._may_be_offered(outer, self._streams(place, outer))
            for _, place in self._run_from(function, streaming)
            for _, outer in (self._hot_here(place),)
        )

    def _runs_in_sight(self, holder: cst.ClassDef) -> bool:
        """Return whether a class is a module whose pass is in sight, and not that of a base elsewhere."""
        info = self.module.classes.info(holder)
        return info.kind is not Kind.OBJECT and not (info.opaque and info.method("forward") is None)

    @remembered
    def _is_offered(self, function: Function) -> bool:
        """Return whether a function is there for code out of sight to call with tensors: nothing in sight
        calls it, but for tests and the like, and nothing is given it to run.

        What runs a model or trains one is a program, or a part of one, and says itself how often it does.
        """
        if not isinstance(function, cst.FunctionDef) or self.module.function(function) is not None:
            return False
        if not may_be_offered(function) or self._tests(function) or runs_once(self.module, function):
            return False
        if not self._may_be_step(function.body, function) or transforms_sample(self.module, function):
            return False
        work = self._work_of(function)
        if work.trains or work.starts or work.steps or work.batches:
            return False
        holder = self.module.classes.owner(function)
        if work.heat is Heat.HOT and (
            holder is None or self._runs_in_sight(holder) or any(self._run_from(function, False))
        ):
            return False  # a loss runs parts of its own
        if self.main_guarded(function.body) or self.module.inference.callgraph.references(function):
            return False
        owner = self._public_owner(function)
        return all(
            context(self.module, place) in COLD
            or self._is_inside(place, function)
            or (owner is not None and self._is_inner(place, owner))
            for _, place in self._run_from(function, False)
        )

    def _is_inside(self, place: cst.CSTNode, function: Function) -> bool:
        """Return whether a place is in a function, or in one that is defined there: it calls itself."""
        outer = self.module.function(place)
        while outer is not None and outer is not function:
            outer = self.module.function(outer)
        return outer is function

    def _is_inner(self, place: cst.CSTNode, owner: cst.ClassDef) -> bool:
        """Return whether a place is in a method that only its class calls, or Python: ``self._start(…)``."""
        caller = self.module.function(place)
        own = isinstance(caller, cst.FunctionDef) and self.module.classes.owner(caller) is owner
        return own and isinstance(caller, cst.FunctionDef) and caller.name.value[0] == "_"

    def _may_be_step(self, node: cst.CSTNode, function: Function) -> bool:
        """Return whether a place in a function may be part of a step, as far as its phase tells.

        What a constructor calls, such as ``set_timesteps(…)``, others may call again for each sequence.
        """
        doing = phase(self.module, node)
        return doing not in _NO_STEP or (doing is Phase.SETUP and self._public_owner(function) is not None)

    def _public_owner(self, function: Function) -> cst.ClassDef | None:
        """Return the class of a method that others may call as well, whatever the class does with it."""
        if not isinstance(function, cst.FunctionDef) or begins(function.name.value, Role.MAKING):
            return None
        if function.name.value[0] == "_" or len([*all_parameters(function.params)]) < 2:
            return None
        owner = self.module.classes.owner(function)
        # What modules and optimizers are asked for is known.
        plain = owner is not None and self.module.classes.info(owner).kind is Kind.OBJECT
        return owner if plain else None

    @solved(False)
    def _may_be_hot(self, function: Function, streaming: bool) -> bool:
        """Return whether there is a hot way at all to what a function does, on whichever conditions."""
        if self._every_step(function) is not None:
            return True
        for _, place in self._run_from(function, streaming):
            here, outer = self._hot_here(place)
            if here is not None:
                return True
            if outer is not None and self._may_be_hot(outer, self._streams(place, outer)):
                return True
        return False

    def served(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` is in a function of a server's step, or one that such a function calls."""
        function = self.module.function(node)
        return function is not None and self._is_served(function)

    def in_engine(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` is in a function that an engine or a model's pass comes by."""
        function = self.module.function(node)
        return function is not None and self._is_of_engine(function)

    @solved(False)
    def _is_of_engine(self, function: Function) -> bool:
        """Return whether an engine runs a function at its steps."""
        return not runs_once(self.module, function) and (
            steps_engine(self.module, function)
            or is_of_pass(self.module, function)
            or any(
                outer is not None and self._is_of_engine(outer)
                for outer in (self.module.function(place) for _, place in self._run_from(function, False))
            )
        )

    @solved(False)
    def _is_served(self, function: Function) -> bool:
        """Return whether a server runs a function at its steps."""
        if serves(self.module, function):
            return True
        if runs_once(self.module, function):
            return False
        return any(
            outer is not None and self._is_served(outer)
            for outer in (self.module.function(place) for _, place in self._run_from(function, False))
        )

    @remembered
    def _run_of(self, place: cst.CSTNode, function: Function) -> _Run:
        """Return the run of a function that comes to a place of it."""
        return function, self._streams(place, function), self._conditions(place, function)

    def _conditions(self, node: cst.CSTNode, function: Function) -> _Conditions:
        """Return what is decided on every way to ``node`` by what the function gets for its parameters."""
        flow = self.module.flow
        found: list[tuple[cst.BaseExpression, bool]] = []
        place: cst.CSTNode = node
        while place is not function and place.__class__ is not cst.Module:
            found += (
                (decision.test, decision.holds)
                for decision in flow.decisions(place)
                if any(
                    isinstance(n, cst.Name) and self._is_parameter(n, function)
                    for n in self.tree.descendants(decision.test)
                )
            )
            place = flow.root(place)
        return tuple(found)

    def _passed_on(
        self, call: cst.BaseExpression, function: Function, conditions: _Conditions, outer: Function
    ) -> Iterator[tuple[cst.BaseExpression, bool]]:
        """Yield what is decided by an argument that the caller was given, too: ``f(x, update)``."""
        if not isinstance(call, cst.Call) or self.module.callee(call) is not function:
            return
        for test, truth in conditions:
            if not isinstance(truth, bool):
                continue
            for guard in implied(self.module, test, truth):
                if isinstance(guard.test, cst.Name) and self._is_parameter(guard.test, function):
                    passed = self.module.argument(call, guard.test.value).node
                    if isinstance(passed, cst.Name) and self._is_parameter(passed, outer):
                        yield passed, guard.holds

    def _chosen(
        self, step: cst.BaseExpression, function: Function
    ) -> tuple[tuple[cst.BaseExpression, Function], ...]:
        """Return the condition that a call which may run one of several functions runs this one."""
        handed = self.module.inference.callgraph.handed_on(function)
        return ((step, function),) if any(run.call is step for run in handed) else ()

    def _is_parameter(self, name: cst.Name, function: Function) -> bool:
        bindings = self.names.bindings(name)
        return bool(bindings) and all(
            b.kind is BindingKind.PARAMETER and b.scope.node is function for b in bindings
        )

    def _excludes(self, call: cst.BaseExpression, function: Function, conditions: _Conditions) -> bool:
        """Return whether what a call passes rules out one of the branches."""
        if not isinstance(call, cst.Call):
            return False
        graph = self.module.inference.callgraph
        for way, run in conditions:
            if isinstance(way, cst.Call) and not isinstance(run, bool) and graph.ruled_out(call, way, run):
                return True
        callee, override = self.module.callee(call), None
        if callee is not function:
            override = self._override(function, callee)
            if override is None:
                return False

        # Of calls that are not all that there are, only what they spell out is looked at.
        dispatched = call not in self.module.callers(function)

        def contradicts(guard: Guard) -> bool | None:
            if dispatched and not self._is_spelt_out(call, guard, override):
                return None
            return self._contradicts(call, function, guard, override) or None

        return any(
            concluded(self.module, test, truth, contradicts)
            for test, truth in conditions
            if isinstance(truth, bool)
        )

    def _is_spelt_out(self, call: cst.Call, guard: Guard, override: cst.FunctionDef | None) -> bool:
        """Return whether a call passes a literal for the parameter that a test is about, or nothing."""
        tested = guard.test.left if isinstance(guard.test, cst.Comparison) else guard.test
        if not isinstance(tested, cst.Name):
            return False
        passed = self.module.argument(call, tested.value, override)
        literal = isinstance(passed.node, _LITERALS) or (passed.node and last_name(passed.node) in _CONSTANTS)
        return passed.absent or bool(literal)

    def _override(self, function: Function, callee: Function | None) -> cst.FunctionDef | None:
        """Return a function that a call may run if it is the override of the method that the call names."""
        if not isinstance(function, cst.FunctionDef) or not isinstance(callee, cst.FunctionDef):
            return None
        owned = self.module.classes.owner(function) is not None
        return function if owned and function.name.value == callee.name.value else None

    def _contradicts(
        self, call: cst.Call, function: Function, guard: Guard, override: cst.FunctionDef | None
    ) -> bool:
        """Return whether a test of a parameter comes out otherwise for what a call passes.

        Or so in few rounds only: ``step(x, log=i % 100 == 0)``.
        """
        match guard.test:
            case cst.Name() as name if self._is_parameter(name, function):
                passed = self.module.argument(call, name.value, override)
                if guard.holds and passed.node is not None and self._throttling.rarely_true(passed.node):
                    return True
                return passed.constant is not MISSING and bool(passed.constant) is not guard.holds
            case cst.Comparison(left=cst.Name() as name, comparisons=[comparison]):
                passed = self.module.argument(call, name.value, override)
                expected = self.module.value(comparison.comparator).constant
                same = isinstance(comparison.operator, (cst.Is, cst.Equal))
                differs = isinstance(comparison.operator, (cst.IsNot, cst.NotEqual))
                if not self._is_parameter(name, function) or expected is MISSING or not (same or differs):
                    return False
                if expected is None and passed.node is not None and _is_something(passed.value):
                    return same is guard.holds
                given = passed.constant
                return given is not MISSING and (given == expected) is not (same is guard.holds)
            case cst.Call() if (asked := self.module.inference.type_test(guard.test)) is not None:
                tested, wanted = asked
                if not isinstance(tested, cst.Name) or not self._is_parameter(tested, function):
                    return False
                passed_kind = self.module.argument(call, tested.value, override).value.kind
                if guard.holds:
                    return {passed_kind, wanted.kind} <= _APART and passed_kind is not wanted.kind
                return passed_kind is wanted.kind is Kind.TENSOR
            case _:
                return False

    def _streams(self, node: cst.CSTNode, function: Function) -> bool:
        """Return whether ``node`` runs for each item that a generator function yields."""
        flow = self.module.flow
        yields = flow.yields(function) if function is not None else ()
        return any(self.tree.contains(loop, node) for each in yields for loop in flow.statement_loops(each))

    def _every_step(self, function: Function) -> Reason | None:
        """Return why a function runs every step whoever calls it; None if it does not."""
        if not isinstance(function, cst.FunctionDef):
            return None
        if serves(self.module, function):
            made = phase(self.module, function.body) is Phase.DATASET
            return None if made else Reason(Cause.METHOD, function.name.value)
        owner = self.module.classes.owner(function)
        name = function.name.value
        if owner is not None:
            info = self.module.classes.info(owner)
            if info.kind is Kind.MODULE and name == "forward":
                collates = phase(self.module, function.body) is Phase.DATASET
                return None if collates or self._is_whole_run(function) else Reason(Cause.METHOD, name)
            if info.kind is Kind.MODULE and begins(name, Role.MEDIA_ENCODING):
                return Reason(Cause.METHOD, name)
            if info.lightning and (name in LIGHTNING_STEPS or LIGHTNING_BATCH_HOOK.match(name)):
                return Reason(Cause.LIGHTNING, name)
            for base in info.bases:
                if name in METHODS_OF_STEPS.get(base, ()):
                    return Reason(Cause.METHOD, name)
        elif self._registered(function):
            return Reason(Cause.HOOK)
        if not self._takes_step(function) or self._is_run_here(function):
            return None
        # What an agent observes, it does at every step of its environment, and learns every few of them.
        return Reason(Cause.TRAINING_STEP if self._work_of(function).trains else Cause.METHOD, name)

    def _is_pass(self, function: Function) -> bool:
        """Return whether a function is the ``forward`` of a module, one pass whatever its loops."""
        if not isinstance(function, cst.FunctionDef) or function.name.value != "forward":
            return False
        owner = self.module.classes.owner(function)
        if owner is None or self.module.classes.info(owner).kind is not Kind.MODULE:
            return False
        return not self._is_whole_run(function)

    def _is_whole_run(self, forward: cst.FunctionDef) -> bool:
        """Return whether a ``forward`` is that of a trainer, with a loop of steps or over a loader."""
        if any(map(self.over_loader, self._held.get(forward, ([], []))[1])):
            return True
        if not Contexts.of(self.module).trains:
            return False
        work = self._work_of(forward)
        return work.training_steps and not work.trains

    def _takes_step(self, function: Function) -> bool:
        """Return whether a function steps an optimizer that it is given, in few calls or in all of them.

        One that goes through a model both ways by its name counts as well. Where nothing in the file tells
        how often it runs, each call is a step for the loop of another file. What a test does so, it does
        once.
        """
        if not isinstance(function, cst.FunctionDef) or self._tests(function):
            return False
        both_ways = begins(function.name.value, Role.BOTH_PASSES)
        if not both_ways and not self._steps_optimizer(function):
            return False
        work = self._work_of(function)
        if work.starts or work.batches:
            return False
        return (
            work.trains
            or (both_ways and (work.training_steps or work.heat is Heat.HOT))
            or any(
                not self._rarely_reached(call, function)
                for call in self._held[function][0]
                if (done := self._work_of_call(call)) is not None and done.trains and not done.starts
            )
        )

    def _tests(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is a test, or a method of one."""
        owner = self.module.classes.owner(function)
        tests = owner is not None and owner.name.value.startswith("Test")
        return tests or begins(function.name.value, Role.TEST)

    @solved(False)
    def _is_run_here(self, function: Function) -> bool:
        """Return whether the file itself tells how often it runs a function: in a loop or step,
        once in a run.

        What only other files call, or a lambda that goes to them, runs as often as they like.
        """
        for _, place in self._run_from(function, False):
            caller = self.module.function(place)
            if caller is None or self.loops(place) or self._work_of(caller).starts:
                return True
            if isinstance(caller, cst.FunctionDef) and self._tests(caller):
                return True
            if self._takes_step(caller) or self._is_run_here(caller):
                return True
        return False

    @solved(False)
    def _steps_optimizer(self, function: Function) -> bool:
        """Return whether a function steps an optimizer outside of loops, itself or by what it calls."""
        calls = self._held.get(function, ([], []))[0]
        if any(last_name(call.func) == "step" and is_training_step(self.module, call) for call in calls):
            return True
        callees = (self.module.callee(call) for call in calls)
        return any(callee is not None and self._steps_optimizer(callee) for callee in callees)

    def _run_from(
        self, function: Function, streaming: bool
    ) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
        """Yield where a function is run from: the expression that runs it,
        and the place whose heat it shares.

        Beside the calls: what runs a function without calling it by name, such as ``map``, a decorator
        or the read of a property; and for a generator the loop that draws from it.
        """
        if isinstance(function, cst.FunctionDef) and _is_cached(self.module, function):
            return
        callers = self.module.callers(function)
        for call in callers:
            drawing = self._drawing(call) if streaming else None
            yield call, call if drawing is None else drawing.target
        if isinstance(function, cst.Lambda):
            if self._is_applied(function):
                yield function, function
            return
        for reference in self._references(function):
            given = self.tree.call_given(reference)
            if given is not None and (
                self._is_applied(reference) or self._is_closure(given) or self._is_for_one_call(function)
            ):
                yield given, given
        decorated = self._decorates(function)
        if decorated is not None:
            yield from self._run_from(decorated, False)
        if any(last_name(d.decorator) == "property" for d in function.decorators):
            for read in self._property_reads(function):
                yield read, read
        graph = self.module.inference.callgraph
        for call in graph.dispatched(function):
            if call not in callers:
                yield call, call
        if not callers:
            for call in graph.asked_of_models(function):
                if self.served(call):
                    yield call, call

    def _drawing(self, call: cst.Call) -> cst.For | None:
        """Return the loop that draws from what a call gives, which may stand in another file."""
        return self._drawn_from.get(call)

    @cached_property
    def _drawn_from(self) -> dict[cst.BaseExpression, cst.For]:
        """The calls in the headers of loops, by what they are given too, with the loops."""
        found: dict[cst.BaseExpression, cst.For] = {}
        for loop in self.tree.nodes(cst.For):
            waiting = [loop.iter]
            while waiting:
                part = waiting.pop()
                found[part] = loop
                waiting += (argument.value for argument in part.args) if isinstance(part, cst.Call) else ()
        return found

    def _references(self, function: cst.FunctionDef) -> list[cst.Name]:
        binding = self.names.by_node.get(function)
        return self.names.uses(binding) if binding is not None else []

    def _is_applied(self, node: cst.BaseExpression) -> bool:
        """Return whether a function given as an argument is run there and then."""
        call = self.tree.call_given(node)
        return call is not None and last_name(call.func) in APPLYING_FUNCTIONS

    def _is_closure(self, call: cst.Call) -> bool:
        """Return whether it is ``optimizer.step(closure)``: LBFGS needs the closure to give a number."""
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "step":
            return False
        optimizer = self.module.value(call.func.value)
        return optimizer.kind is Kind.OPTIMIZER and not (optimizer.cls or "").endswith("LBFGS")

    @remembered
    def _is_for_one_call(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is made anew where it runs, for nothing but to be handed over,
        to a driver, say.

        ``forward_backward(forward_step, batches)`` runs it if anything does. What knows it by a name of torch
        or Python says itself when that is.
        """
        if not isinstance(self.module.function(function), cst.FunctionDef):
            return False
        references = self._references(function)
        return bool(references) and all(map(self._is_handed_to_unknown, references))

    def _is_handed_to_unknown(self, reference: cst.Name) -> bool:
        """Return whether something unknown is called with a function, bound to arguments or not."""
        call = self.tree.call_given(reference)
        if call is None:
            return False
        if self.module.qualified(call.func) == "functools.partial":
            return True
        owner = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        if self.module.qualified(call.func) is not None or self.module.callees(call):
            return False
        return self.module.value(owner).kind is Kind.UNKNOWN

    def _registered(self, function: cst.FunctionDef) -> bool:
        for reference in self._references(function):
            call = self.tree.call_given(reference)
            if call is not None and last_name(call.func) in HOOK_REGISTRATIONS:
                return True
        return False

    def _decorates(self, wrapper: cst.FunctionDef) -> cst.FunctionDef | None:
        """Return the function that this one replaces, when it is the wrapper in a decorator used once."""
        decorator = self.module.function(wrapper)
        if not isinstance(decorator, cst.FunctionDef):
            return None
        decorated: list[cst.FunctionDef] = []
        for reference in self._references(decorator):
            parent = self.tree.parent(reference)
            decorator_node = self.tree.parent(parent) if isinstance(parent, cst.Call) else parent
            if isinstance(decorator_node, cst.Decorator):
                function = self.tree.parent(decorator_node)
                if isinstance(function, cst.FunctionDef):
                    decorated.append(function)
        return decorated[0] if len(decorated) == 1 else None

    def _property_reads(self, function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
        owner = self.module.classes.owner(function)
        if owner is None:
            return
        heirs = set(self.module.classes.heirs(owner))
        for attribute in self.tree.attributes_by_name.get(function.name.value, ()):
            cls = self.module.classes.instance_class(attribute.value)
            if (cls or self.module.value(attribute.value).definition) in heirs:
                yield attribute

    # ------------------------------------------------------------------ the main guard

    @remembered
    def main_guarded(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` only runs when the file is the program that was started."""
        if self._below_guard(node):
            return True
        function = self.module.function(node)
        return function is not None and not self._run_outside_main(function)

    @solved(False)
    def _run_outside_main(self, function: Function) -> bool:
        """Return whether a function is run without a guard, at the top level or by a function that is."""
        places: list[cst.CSTNode] = list(self.module.callers(function))
        if isinstance(function, cst.FunctionDef):
            places.extend(self._references(function))
        places = [place for place in places if not self._is_inside(place, function)]
        if not places and (isinstance(function, cst.FunctionDef) or self.module.function(function) is None):
            outers = [self.module.function(function)]
        else:
            outers = [self.module.function(p) for p in places or [function] if not self._below_guard(p)]
        return any(outer is None or self._run_outside_main(outer) for outer in outers)

    def _below_guard(self, node: cst.CSTNode) -> bool:
        return any(_is_main_test(guard) for guard in guards(self.module, node))


# ---------------------------------------------------------------------- conventions

_EPOCH_NAME = (Role.EPOCH, Role.RUN)


def is_epoch_loop(loop: Loop) -> bool:
    """Return whether the target of a loop is named like an epoch, a fold or a seed."""
    if isinstance(loop, cst.While):
        return isinstance(loop.test, cst.Comparison) and has(last_name(loop.test.left), *_EPOCH_NAME)
    word = _target_name(loop.target if isinstance(loop, cst.For) else loop.for_in.target)
    return word is not None and has(word, *_EPOCH_NAME)


def _target_name(target: cst.BaseExpression) -> str | None:
    """Return the name of the first target of a loop."""
    if isinstance(target, cst.Tuple) and target.elements:
        target = target.elements[0].value
    return last_name(target)


def _is_written_out(loop: Loop) -> bool:
    """Return whether a loop stands for statements that are alike: ``for model in (net, ema):``."""
    return isinstance(loop, cst.For) and isinstance(loop.iter, (cst.Tuple, cst.List))


def over_entries(loop: Loop) -> bool:
    """Return whether a loop goes through the entries of a dict: ``for key, value in losses.items()``."""
    iterable = iterable_of(loop)
    return isinstance(iterable, cst.Call) and last_name(iterable.func) in ("items", "values", "keys")


def iterated(node: cst.BaseExpression | None) -> Iterator[cst.BaseExpression]:
    """Yield an iterable, if any, and what is in the wrappers around it (``tqdm(enumerate(loader))``)."""
    if node is not None:
        yield node
    if isinstance(node, cst.Call) and last_name(node.func) in ITERATION_WRAPPERS:
        counts = last_name(node.func) in ("range", "trange")
        for argument in node.args:
            # What ``range`` takes is a number, whatever it is called: only ``len`` leads on.
            if not counts or isinstance(argument.value, cst.Call):
                yield from iterated(argument.value)
    elif isinstance(node, cst.Subscript):
        yield from iterated(node.value)


def _is_cached(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a decorator keeps the results, so that the body runs once for each set of arguments.

    What an object keeps that is made anew for each step of an engine, is computed at each of them.
    """
    names = {last_name(decorator.decorator) for decorator in function.decorators}
    if not names.isdisjoint(("lru_cache", "cache")):
        return True
    return "cached_property" in names and not is_made_each_step(module, function)


def _administers(function: Function) -> bool:
    """Return whether a function changes or stores a model, going by its name."""
    return isinstance(function, cst.FunctionDef) and begins(function.name.value, Role.CONVERSION)


def _is_something(value: Value) -> bool:
    """Return whether a value is known not to be None."""
    return not value.alternatives and value.kind not in (Kind.UNKNOWN, Kind.NONE)


def may_be_offered(function: cst.FunctionDef) -> bool:
    """Return whether code out of sight may call a function with tensors, again and again, going by names:
    a cheap question.

    What Python calls for itself, to print an object or to compare it, is for no step; nor is what gets a
    model or a loader, what prepares or resets something, and what stores or shows something.
    """
    name = function.name.value
    if name.startswith("__"):
        return name == "__call__"
    if begins(name, Role.BEGINNING, Role.CLEARING, Role.SAVING, Role.LOADING, Role.DRAWING):
        return False
    return not any(
        names_model(each.name.value) or names_loader(each.name.value)
        for each in all_parameters(function.params)
    )


def _is_main_test(guard: Guard) -> bool:
    """Return whether the file is known to be the program that was started: ``__name__ == "__main__"``."""
    match guard.test:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]
        ):
            same = cst.Equal if guard.holds else cst.NotEqual
            return isinstance(operator, same) and any(
                isinstance(name, cst.Name)
                and name.value == "__name__"
                and isinstance(text, cst.SimpleString)
                and text.evaluated_value == "__main__"
                for name, text in ((left, right), (right, left))
            )
        case _:
            return False
