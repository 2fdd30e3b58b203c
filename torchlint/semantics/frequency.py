"""How often a place runs: every decoding step, every training step, every evaluated batch, every epoch, once.

`places.hot` says what runs at every step. Elsewhere the loops around a place tell how often it runs, those
around the calls of its function included: in a loop of steps, a place that is not hot is reached in a few of
them; in a loop whose rounds hold loops of steps, once an epoch. A loop that only computes, and that no step
runs, is told apart: it fits statistics, prepares data, or sets something up. If a function is not seen to be
called, how often it runs cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.flow.graph import Function, Loop
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause, Heat
from torchlint.semantics.remembered import remembered
from torchlint.semantics.serving import is_step
from torchlint.semantics.spellings import last_name

_RUNS_MODEL = frozenset({Cause.MODULE_CALL, Cause.MODULE_METHOD, Cause.GIVEN_MODEL})


def frequency(module: Module, node: cst.CSTNode) -> Frequency:
    """Return how often a program runs a node; of several ways to it, the one that runs most often counts.

    A function that is defined, or its name there, runs as often as it is called.
    """
    return Frequencies.of(module).frequency(_defined(module, node))


def _defined(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """Return the body of the function that a node defines or names where it is defined;
    any other node itself.
    """
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
        """Return whether each round gives a model what an earlier round got from it,
        and nothing is learnt.
        """
        module = self.module
        if not isinstance(loop, (cst.For, cst.While)) or places.over_loader(module, loop):
            return False
        if phase(module, loop.body) is not Phase.EVALUATION and grad(module, loop.body) is not Grad.OFF:
            return False
        calls = self.tree.within(loop, self.tree.nodes(cst.Call))
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
            for loop in self.tree.within(function, self.tree.nodes(cst.For, cst.While))
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
        """Return how often a function is called that nobody is seen to call:
        once an epoch if it goes over data.
        """
        loops = self.tree.within(function.body, self.tree.nodes(cst.For))
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
    """Return whether it is ``env.step(action)``: what a simulation answers is no token,
    and its next state no context.
    """
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value == "step"
        and has(last_name(func.value), Role.ENVIRONMENT)
    )
