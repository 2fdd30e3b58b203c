"""How often a place runs: every decoding step, every training step, every evaluated batch, every epoch, once.

Whether it can run more than once at all (`may_repeat`) is a syntactic question, asked before any that costs
more. `places.hot` says what runs at every step. Elsewhere the loops around a place tell how often it runs,
those around the calls of its function included: in a loop of steps, a place that is not hot is reached in a
few of them; in a loop whose rounds hold loops of steps, once an epoch. A loop that only computes, and that no
step runs, is told apart: it fits statistics, prepares data, or sets something up. If a function is not seen
to be called, how often it runs cannot be told.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import chain

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.api.frameworks import (
    APPLYING_FUNCTIONS,
    HOOK_REGISTRATIONS,
    LIGHTNING_BATCH_HOOK,
    LIGHTNING_STEPS,
    METHODS_OF_STEPS,
)
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dependencies import Table, cached_property
from torchlint.semantics.evidence import placed_by_callers
from torchlint.semantics.flow.control import repeats_part
from torchlint.semantics.flow.graph import FUNCTIONS, LOOPS, Function, Loop
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, begins, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind, Scope, ScopeKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause, Heat
from torchlint.semantics.remembered import remembered
from torchlint.semantics.serving import is_step, may_serve
from torchlint.semantics.spellings import last_name, start_of, word_of


class Seldom(enum.Enum):
    """Why a place is not seen to run at every step."""

    FOR_CALLERS = enum.auto()
    """Code out of sight runs it, as often as it likes."""
    SUMS_UP = enum.auto()
    """It computes a metric at the end of an evaluation."""


_LOOPS: frozenset[type] = frozenset(LOOPS)
_BODIES: frozenset[type] = frozenset(FUNCTIONS)
# What runs the function that it is given: at once, at every step, or as the closure of an optimizer.
_RUNNERS = APPLYING_FUNCTIONS | HOOK_REGISTRATIONS | {"step"}

_TABLES = frozenset({"builtins.dict", "builtins.list", "builtins.tuple"})

# Methods of torch's own objects: of optimizers and schedulers, and of modules.
_OF_TORCH = frozenset({"step", "train"})

_HOOKS = LIGHTNING_STEPS.union(*METHODS_OF_STEPS.values())


def _is_hook(name: str) -> bool:
    """Return whether some framework calls methods of this name at every step, without a call in the file."""
    return name in _HOOKS or LIGHTNING_BATCH_HOOK.match(name) is not None


def may_repeat(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node can run again and again at all: a cheap question to ask first."""
    return Repetition.of(module).may_repeat(node)


def may_recur(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node can run again and again for this file or for code out of sight: as cheap."""
    return _Recurrence.of(module).may_repeat(node)


class Repetition(Part):
    """Whether the places of one file can be run again and again, going by names alone.

    Never wrong about a place that does repeat, as far as the file shows: a function counts as repeated if
    anything that goes by its name, or by another that it is given, is called at a place that repeats, if it
    is given to what runs it or kept where calls cannot be told, or if a framework may call it.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self._rests = Table()
        self._functions: dict[cst.CSTNode, bool] = {}
        self._around: dict[cst.CSTNode, cst.CSTNode | None] = {}

    def may_repeat(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` can run again, which nothing in a file of unit tests counts as doing."""
        return not self._is_test and self.possible(node)

    @cached_property
    def _is_test(self) -> bool:
        return is_test(self.module)

    def possible(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` stands in a loop, or in a function that may be called from one."""
        holder = self._holder(node)
        if holder is None or holder.__class__ in _LOOPS:
            return holder is not None
        # Most rules ask it of most nodes: what is known costs one look.
        known = self._functions.get(holder)
        if known is not None:
            self._rests.note()
            return known
        with self._rests.asked():
            return self._repeats(holder)

    def _holder(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the innermost loop or function that runs ``node``; None at the level of the module."""
        parents, known = self.tree.parents, self._around
        trail: list[cst.CSTNode] = []
        step: cst.CSTNode | None = node
        found: cst.CSTNode | None = None
        while step is not None:
            if step in known:
                found = known[step]
                break
            trail.append(step)
            step = parents.get(step)
            kind = step.__class__
            if kind in _LOOPS:
                runs = step is not None and repeats_part(
                    step, trail[-1], trail[-2] if len(trail) > 1 else None
                )
            else:
                runs = kind in _BODIES and trail[-1] is step.body  # type: ignore[union-attr]
            if runs:
                found = step
                break
        for passed in trail:
            if passed.__class__ is not cst.CompFor:  # of which one part repeats and another may not
                known[passed] = found
        return found

    def _repeats(self, function: cst.CSTNode) -> bool:
        """Return whether a function, or one that calls it however indirectly, is run again and again.

        The callers are searched breadth first, each once: functions that call each other in circles have
        more ways between them than anybody could follow.
        """
        known = self._functions
        runs: dict[cst.CSTNode, cst.CSTNode | None] = {function: None}
        waiting = [function]
        words: set[str] = set()
        for current in waiting:
            self.tree.effort.spend(2)
            called = self._called_as(current)
            called_from = [self._called_from(word) for word in called or () if word not in words]
            if known.get(current) or called is None or any(callers is None for callers in called_from):
                # All that it calls on the way down to the function in question repeats with it.
                step: cst.CSTNode | None = current
                while step is not None:
                    known[step] = True
                    step = runs[step]
                return True
            words.update(called)
            for caller in chain.from_iterable(callers or () for callers in called_from):
                # What was found to run once has no caller that repeats.
                if caller not in runs and known.get(caller) is not False:
                    runs[caller] = current
                    waiting.append(caller)
        known.update(dict.fromkeys(waiting, False))
        return False

    def _called_as(self, function: cst.CSTNode) -> list[str] | None:
        """Return the names by which a function is called; None if it certainly repeats, whoever calls it."""
        if not isinstance(function, cst.FunctionDef):
            return None
        name = function.name.value
        scope = self.names.scope(function)
        if scope.kind is ScopeKind.CLASS and name == "__init__":
            assert isinstance(scope.node, cst.ClassDef)
            return self._makers(scope.node)
        return None if self._run_unseen(function, scope) else [name, *self._aliases(name)]

    @remembered
    def _called_from(self, word: str) -> list[cst.CSTNode] | None:
        """Return the functions that call something of a name; None if a loop does."""
        holders = dict.fromkeys(self._holder(call) for call in self.tree.calls_by_name.get(word, ()))
        looped = any(holder.__class__ in _LOOPS for holder in holders)
        return None if looped else [holder for holder in holders if holder is not None]

    def _run_unseen(self, function: cst.FunctionDef, scope: Scope) -> bool:
        """Return whether a function may be run by other means than a call of its name in this file."""
        name = function.name.value
        if scope.kind is ScopeKind.FUNCTION or may_serve(self.module, function):
            return True
        if begins(name, Role.BOTH_PASSES, Role.MEDIA_ENCODING):
            return True
        if scope.kind is ScopeKind.CLASS:
            # An attribute that is only read may be a property.
            if name == "__call__" or _is_hook(name) or name in self._attributes:
                return True
            if self._asked_of_base(scope.node, name):
                return True
        # What steps an optimizer and is not called here may be the step of a loop in another file. What is
        # called `step` or `train` here is, for all its name tells, an optimizer or a module.
        called = name in self.tree.calls_by_name
        if function in self._stepping and (name in _OF_TORCH or not called):
            return True
        if self._stepping and not called and has(name, Role.STEP):
            return True
        made = (each.decorator for each in function.decorators)
        if any(self._is_of_project(each.func if isinstance(each, cst.Call) else each) for each in made):
            return True  # It may keep it for whoever asks for it.
        handed = scope.kind is ScopeKind.CLASS
        return self._named_elsewhere(name, handed) or any(self._may_run(user) for user in self._users(name))

    def _is_of_project(self, func: cst.BaseExpression) -> bool:
        """Return whether what is called is known to be of the project, or makes a container."""
        root = start_of(func, cst.Attribute)
        known = not isinstance(root, cst.Name) or bool(self.names.bindings(root))
        name = self.names.qualified(func)
        return known if name is None else name in _TABLES

    def _asked_of_base(self, definition: cst.CSTNode, name: str) -> bool:
        """Return whether a base class of another file has, or calls, a method of a name."""
        if self.link is None or not isinstance(definition, cst.ClassDef) or not definition.bases:
            return False
        ancestors = self.module.classes.info(definition).lineage[1:]
        return any(
            name in each.methods or name in self.link.home(each.node).tree.calls_by_name
            for each in ancestors
            if self.tree.is_elsewhere(each.node)
        )

    @remembered
    def _named_elsewhere(self, name: str, handed: bool) -> bool:
        """Return whether another file of the project may call something of this name that the file defines.

        What is ``handed`` on with an instance may be called in files that import nothing from this one.
        """
        return self.link is not None and self.link.names(self, name, instances=handed)

    def _may_run(self, user: cst.CSTNode | None) -> bool:
        """Return whether what uses a function as a value may run it again and again by no name of its own.

        An assignment gives it another name, to be called by, unless it puts it into a table. What a call of a
        library does not run, it keeps.
        """
        match user:
            case cst.Assign():
                return any(isinstance(each.target, cst.Subscript) for each in user.targets)
            case cst.Call(func=func) if self.names.qualified(func) == "functools.partial":
                return not isinstance(self.tree.parent(user), cst.Assign)
            case cst.Call(func=func):
                return last_name(func) in _RUNNERS or self._is_of_project(func)
        return True

    @remembered
    def _users(self, name: str) -> list[cst.CSTNode | None]:
        """Return the calls that are given something of this name, and its other uses as a value."""
        parents = self.tree.parents
        known: list[cst.CSTNode | None] = []
        for read in self.names.reads(name):
            parent = parents.get(read)
            if isinstance(parent, cst.Arg):
                known.append(parents.get(parent))
            elif not self.tree.is_called(read):
                known.append(parent)
        return known

    def _aliases(self, name: str) -> Iterator[str]:
        """Yield the further names that a function is given: ``step = partial(train, model)``."""
        self.tree.effort.spend(len(self._users(name)))
        for user in self._users(name):
            assign = self.tree.parents.get(user) if isinstance(user, cst.Call) else user
            for target in assign.targets if isinstance(assign, cst.Assign) else ():
                alias = last_name(target.target)
                if alias is not None:
                    yield alias

    def _makers(self, definition: cst.ClassDef) -> list[str]:
        """Return by which names instances of a class, or of an heir, are made.

        Modules are made in loops while a model is built, never at each step.
        """
        name = definition.name.value
        if any(isinstance(s, cst.FunctionDef) and s.name.value == "forward" for s in definition.body.body):
            return []
        return [name, *self._heirs.get(name, ())]

    @cached_property
    def _stepping(self) -> frozenset[cst.CSTNode]:
        """What calls ``.step(…)`` outside of its loops, and what calls that: functions, among others."""
        waiting, found = ["step"], set[cst.CSTNode]()
        for word in waiting:
            for call in self.tree.calls_by_name.get(word, ()):
                holder = self._holder(call)
                if isinstance(holder, cst.FunctionDef) and holder not in found:
                    found.add(holder)
                    waiting.append(holder.name.value)
        return frozenset(found)

    @cached_property
    def _heirs(self) -> dict[str, list[str]]:
        """By the name of a class: the names of the classes that inherit from it, however far down."""
        below: dict[str, list[str]] = {}
        for definition in self.tree.nodes(cst.ClassDef):
            for base in definition.bases:
                value = base.value.value if isinstance(base.value, cst.Subscript) else base.value
                below.setdefault(word_of(value), []).append(definition.name.value)
        found: dict[str, list[str]] = {}
        for name in below:
            waiting, seen = [name], {name}
            while waiting:
                for heir in below.get(waiting.pop(), ()):
                    if heir not in seen:
                        seen.add(heir)
                        waiting.append(heir)
            found[name] = sorted(seen - {name})
        return found

    @cached_property
    def _attributes(self) -> frozenset[str]:
        """The names of attributes that are used as values instead of called."""
        attributes = self.tree.nodes(cst.Attribute)
        return frozenset(each.attr.value for each in attributes if not self.tree.is_called(each))


class _Recurrence(Repetition):
    """The same, where what nothing in the file calls may be called by code out of sight."""

    def _run_unseen(self, function: cst.FunctionDef, scope: Scope) -> bool:
        called = scope.kind is not ScopeKind.CLASS and any(
            self.module.qualified(call.func)
            is None  # ``torch.nonzero(x)`` calls no function of that name here
            and not self.tree.contains(function, call)  # nor does a function that calls itself
            for call in self.tree.calls_by_name.get(function.name.value, ())
        )
        return (not called and places.may_be_offered(function)) or super()._run_unseen(function, scope)


# --- how often ----------------------------------------------------------------------------------------------

_RUNS_MODEL = frozenset({Cause.MODULE_CALL, Cause.MODULE_METHOD, Cause.GIVEN_MODEL})


def frequency(module: Module, node: cst.CSTNode) -> Frequency:
    """Return how often a program runs a node; of several ways to it, the one that runs most often counts.

    A function that is defined, or its name there, runs as often as it is called.
    """
    return Frequencies.of(module).frequency(_defined(module, node))


def seldom(module: Module, node: cst.CSTNode) -> Seldom | None:
    """Return why a place that is said to wait is not seen to do so at every step; None if it is."""
    hot = places.hot(module, node)
    if hot is None or placed_by_callers(module):
        return Seldom.FOR_CALLERS if places.offered(module, node) is not None else None
    return Seldom.SUMS_UP if any(sums_up_metric(module, place) for place in hot.path) else None


def sums_up_metric(module: Module, place: cst.CSTNode) -> bool:
    """Return whether a metric is computed at a place from what it collected: once, at the end of an
    evaluation.
    """
    function = module.function(place)
    if not isinstance(function, cst.FunctionDef) or function.name.value not in ("compute", "_compute"):
        return False
    owner = module.classes.owner(function)
    return owner is not None and any("Metric" in (last_name(base.value) or "") for base in owner.bases)


def _defined(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """Return the body of the function that a node defines or names; any other node itself."""
    around = module.tree.parent(node)
    if isinstance(node, cst.FunctionDef):
        return node.body
    return around.body if isinstance(around, cst.FunctionDef) and node is around.name else node


class Frequencies(Part):
    """How often the places of one file run."""

    def frequency(self, node: cst.CSTNode) -> Frequency:
        """Return how often ``node`` runs."""
        doing = phase(self.module, node)
        if doing is Phase.DATASET:
            # Workers make the batches of the next steps.
            return Frequency.STEP
        hot = places.hot(self.module, node)
        if hot is None:
            return self._beside_steps(node)
        if hot.reason.cause is Cause.COMPUTATION:
            return Frequency.LOOP
        if doing is not Phase.TRAINING and hot.reason.cause in _RUNS_MODEL and self._feeds_itself(hot.loop):
            return Frequency.TOKEN
        if doing is not Phase.TRAINING and self._decodes(hot.loop):
            # The steps are those of the loop in it: what stands around that runs once for all of them.
            return Frequency.RARELY
        return Frequency.BATCH if doing is Phase.EVALUATION else Frequency.STEP

    # ------------------------------------------------------------------ decoding

    @remembered
    def _feeds_itself(self, loop: Loop | Function) -> bool:
        """Return whether rounds give a model what it gave in an earlier one, and nothing is learnt."""
        module = self.module
        if not isinstance(loop, (cst.For, cst.While)) or places.over_loader(module, loop):
            return False
        if places.over_layers(module, loop):
            return False  # each layer is given what the one before it gave
        if phase(module, loop.body) is not Phase.EVALUATION and grad(module, loop.body) is not Grad.OFF:
            return False
        calls = self.tree.nodes_within(loop, cst.Call)
        if any(_acts(call) for call in calls):
            return False
        return any(places.computes(module, call) and self._is_carried(call, loop) for call in calls)

    def _is_carried(self, call: cst.Call, loop: cst.For | cst.While) -> bool:
        """Return whether a call is given something that the loop makes anew behind it, for its next round."""
        tree = self.tree
        waiting = [name for argument in call.args for name in self._names(argument)]
        seen = {name.value for name in waiting}
        for name in waiting:
            for binding in self.module.bindings(name):
                made = binding.value
                if binding.kind is not BindingKind.ASSIGN or made is None:
                    continue
                if not tree.contains(loop, binding.node):
                    continue
                if tree.contains(made, call):
                    return True
                if tree.order[made] > tree.order[call] and self._comes_from(made, call, loop):
                    return True
                fresh = [each for each in self._names(made) if each.value not in seen]
                seen.update(each.value for each in fresh)
                waiting += fresh
        return False

    def _comes_from(self, made: cst.BaseExpression, call: cst.Call, loop: cst.For | cst.While) -> bool:
        """Return whether a value is computed from what a call gives, by the definitions in a loop."""
        waiting, seen = [made], {made}
        for value in waiting:
            if self.tree.contains(value, call):
                return True
            for name in self._names(value):
                for binding in self.module.bindings(name):
                    before = binding.value
                    if before is not None and before not in seen and self.tree.contains(loop, binding.node):
                        seen.add(before)
                        waiting.append(before)
        return False

    @remembered
    def _decodes(self, function: Loop | Function) -> bool:
        """Return whether a function runs a loop of decoding steps, and is no step of a server itself."""
        if not isinstance(function, cst.FunctionDef) or is_step(self.module, function):
            return False
        return any(
            self.module.function(loop) is function and self._feeds_itself(loop)
            for loop in self.tree.nodes_within(function, cst.For, cst.While)
            if isinstance(loop, (cst.For, cst.While))
        )

    def _names(self, node: cst.CSTNode) -> Iterator[cst.Name]:
        return (each for each in self.tree.descendants(node) if isinstance(each, cst.Name))

    # ------------------------------------------------------------------ what is not hot

    def _beside_steps(self, node: cst.CSTNode) -> Frequency:
        """Return how often a node runs that does not run at every step."""
        around, function = self._by_loops(node), self.module.function(node)
        if function is not None and (around is None or around is Frequency.UNKNOWN):
            beside = self._of_function(function)
            # Loops that give the device nothing to do tell no more than what runs the function.
            return beside if around is None else min(around, beside)
        return Frequency.ONCE if around is None else around

    @remembered
    def _of_function(self, function: Function) -> Frequency:
        """Return how often a function is called that is not called at every step."""
        found: list[Frequency] = []
        waiting, seen = [function], {function}
        for each in waiting:
            callers = self.module.callers(each)
            if places.hot(self.module, each.body) is not None:
                # What does not run at every step of what does, is reached in a few of them.
                found.append(Frequency.RARELY)
            elif not callers:
                once = phase(self.module, each.body) is Phase.SETUP or places.starts_run(self.module, each)
                found.append(Frequency.ONCE if once else self._beside_loops(each))
            for call in callers:
                around, outer = self._by_loops(call), self.module.function(call)
                if around is not None or outer is None:
                    found.append(Frequency.ONCE if around is None else around)
                elif outer not in seen:
                    seen.add(outer)
                    waiting.append(outer)
        return max(found, default=Frequency.UNKNOWN)

    def _beside_loops(self, function: Function) -> Frequency:
        """Return how often a function runs whose callers are unknown: each epoch if it goes over data."""
        loops = self.tree.nodes_within(function.body, cst.For)
        passes = any(
            self.module.function(loop) is function and places.heat(self.module, loop) is Heat.HOT
            for loop in loops
        )
        return Frequency.EPOCH if passes else Frequency.UNKNOWN

    def _by_loops(self, place: cst.CSTNode) -> Frequency | None:
        """Return what the loops around a place in its function say; None if there are none."""
        loops = self.module.flow.loops(place)
        for loop in loops:
            if places.heat(self.module, loop) is not Heat.COLD:
                return Frequency.RARELY
            if places.computes(self.module, loop):
                return Frequency.EPOCH
        return Frequency.UNKNOWN if loops else None


def _acts(call: cst.Call) -> bool:
    """Return whether it is ``env.step(action)``: a simulation answers with neither token nor context."""
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value == "step"
        and has(last_name(func.value), Role.ENVIRONMENT)
    )
