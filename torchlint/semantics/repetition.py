"""Which places can run more than once: a syntactic question, asked before any that costs more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from torchlint.semantics.api.frameworks import (
    APPLYING_FUNCTIONS,
    HOOK_REGISTRATIONS,
    LIGHTNING_BATCH_HOOK,
    LIGHTNING_STEPS,
    METHODS_OF_STEPS,
)
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dependencies import Table, cached_property
from torchlint.semantics.flow.control import repeats_part
from torchlint.semantics.flow.graph import FUNCTIONS, LOOPS
from torchlint.semantics.lexicon import Role, begins, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Scope, ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.serving import may_serve
from torchlint.semantics.spellings import last_name

_LOOPS: frozenset[type] = frozenset(LOOPS)
_BODIES: frozenset[type] = frozenset(FUNCTIONS)
# What runs the function that it is given: at once, at every step, or as the closure of an optimizer.
_RUNNERS = APPLYING_FUNCTIONS | HOOK_REGISTRATIONS | {"step"}

# Methods of torch's own objects: of optimizers and schedulers, and of modules.
_OF_TORCH = frozenset({"step", "train"})

_HOOKS = LIGHTNING_STEPS.union(*METHODS_OF_STEPS.values())


def _is_hook(name: str) -> bool:
    """Return whether some framework calls methods of this name at every step, without a call in the file."""
    return name in _HOOKS or LIGHTNING_BATCH_HOOK.match(name) is not None


def may_repeat(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node can run again and again at all: a cheap question to ask first."""
    return Repetition.of(module).may_repeat(node)


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
        handed = scope.kind is ScopeKind.CLASS
        return self._named_elsewhere(name, handed) or any(self._may_run(user) for user in self._users(name))

    def _asked_of_base(self, definition: cst.CSTNode, name: str) -> bool:
        """Return whether a class of another file that this one inherits from has, or calls,
        a method of a name.
        """
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
        """Return whether what uses a function as a value may run it again and again, out of sight.

        An assignment gives it another name, to be called by; a call that does not run it keeps it.
        """
        if isinstance(user, cst.Call):
            return last_name(user.func) in _RUNNERS
        return not isinstance(user, cst.Assign)

    @remembered
    def _users(self, name: str) -> list[cst.CSTNode | None]:
        """Return the calls that are given something of this name,
        and the other nodes that use it as a value.
        """
        parents = self.tree.parents
        known: list[cst.CSTNode | None] = []
        for read in self.names.reads(name):
            parent = parents.get(read)
            if isinstance(parent, cst.Arg):
                known.append(parents.get(parent))
            elif not (isinstance(parent, cst.Call) and parent.func is read):
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
                name = value.attr.value if isinstance(value, cst.Attribute) else getattr(value, "value", "")
                below.setdefault(str(name), []).append(definition.name.value)
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
        found: set[str] = set()
        for attribute in self.tree.nodes(cst.Attribute):
            parent = self.tree.parents.get(attribute)
            if not (isinstance(parent, cst.Call) and parent.func is attribute):
                found.add(attribute.attr.value)
        return frozenset(found)
