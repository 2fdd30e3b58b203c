"""Forward passes that training code makes beside its steps: samples to look at, checks on other data."""

from __future__ import annotations

from bisect import bisect_left

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.flow.graph import Decision, Loop
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind, Scope
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import is_none, last_name
from torchlint.semantics.values import MISSING

_OTHER_DATA = (Role.EVALUATION, Role.TEST, Role.HELD_OUT)
# Functions of other files that may backpropagate what they are given.
_TRAINS = (Role.TRAINING, Role.LEARNING, Role.STEP, Role.BACKPROPAGATION, Role.PENALTY)


class MonitoringPasses(Part):
    """The forward passes of one file that are no part of a training step, though training makes them."""

    def holds(self, call: cst.Call) -> bool:
        """Return whether a forward pass in training code is made now and then, and never backpropagated."""
        if phase(self.module, call) is not Phase.TRAINING or Backpropagation.of(self.module).reaches(call):
            return False
        if not (self._takes_other_data(call) or self._follows_eval(call) or self._is_beside_steps(call)):
            return False
        return not self._is_handed_to_training(call)

    def asked_before_training(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return what a loop asks before it backpropagates, if it also runs where the answer is no.

        ``phase == "train"`` in a loop over the phases, ``train`` of a function that is called without.
        """
        loop = next(
            (loop for loop in self.module.flow.loops(call) if isinstance(loop, (cst.For, cst.While))), None
        )
        if loop is None:
            return None
        passes = [b.call for b in Backpropagation.of(self.module).passes if self.tree.contains(loop, b.call)]
        branches = {self._asked_before(backward, loop) for backward in passes}
        branch = branches.pop() if len(branches) == 1 else None
        if branch is None or self.tree.contains(branch.construct, call):
            return None
        if self.tree.order[branch.construct] < self.tree.order[call]:
            return None
        return branch.test if self._is_answered_no(branch.test, loop) else None

    def _asked_before(self, backward: cst.Call, loop: cst.CSTNode) -> Decision | None:
        """Return the question about the mode whose yes leads to ``backward``."""
        for branch in self.module.flow.branches(backward, within=loop):
            match branch:
                case Decision(
                    cst.Name()
                    | cst.Comparison(
                        left=cst.Name(),
                        comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.IsNot())],
                    ),
                    True,
                    cst.If(),
                ):
                    return branch
                case _:
                    pass
        return None

    def _is_answered_no(self, test: cst.BaseExpression, loop: cst.CSTNode) -> bool:
        match test:
            case cst.Comparison(
                left=cst.Name() as asked, comparisons=[cst.ComparisonTarget(cst.IsNot(), comparator=expected)]
            ):
                return is_none(expected) and self._is_passed_or_left_out(asked)
            case cst.Comparison(
                left=cst.Name() as asked, comparisons=[cst.ComparisonTarget(comparator=expected)]
            ):
                answer = self.module.value(expected).constant
            case cst.Name() as asked:
                answer = True
            case _:
                return False
        for binding in self.module.bindings(asked):
            constants: list[object] = []
            if binding.kind is BindingKind.LOOP and not self.tree.contains(loop, binding.node):
                if isinstance(binding.value, (cst.List, cst.Tuple)):
                    constants = [self.module.value(item.value).constant for item in binding.value.elements]
            elif binding.kind is BindingKind.PARAMETER and isinstance(binding.scope.node, cst.FunctionDef):
                callers = self.module.callers(binding.scope.node)
                # Where a call leaves it out, that is the default.
                constants = [self.module.argument(caller, binding.name).constant for caller in callers]
            known = [constant for constant in constants if constant is not MISSING]
            # ``set_grad_enabled`` takes nothing but True and False.
            alike = all(type(constant) is type(answer) for constant in known)
            if alike and answer in known and any(constant != answer for constant in known):
                return True
            if not constants and binding.kind is BindingKind.PARAMETER and self._switches_by(test):
                return True
        return False

    def _is_passed_or_left_out(self, asked: cst.Name) -> bool:
        """Return whether some calls pass an object for a parameter, and others None, or nothing if that is
        its default: ``run_epoch(model, loader, optimizer=None)``.
        """
        match self.module.bindings(asked):
            # Set to something else in the loop, it would tell nothing yet where the pass is made.
            case [Binding(kind=BindingKind.PARAMETER, scope=Scope(node=cst.FunctionDef() as function))]:
                callers = self.module.callers(function)
                given = [self.module.argument(caller, asked.value) for caller in callers]
                passed = any(each.node is not None and each.constant is MISSING for each in given)
                return passed and any(each.constant is None for each in given)
        return False

    def _switches_by(self, test: cst.BaseExpression) -> bool:
        """Return whether the function puts a model into one mode or the other by the same question.

        ``model.train(mode == "train")``: whoever wrote that, asks for both.
        """
        function = self.module.function(test)
        asked = self.tree.source(test)
        for node in self.tree.descendants(function.body) if function is not None else ():
            match node:
                case cst.Call(func=cst.Attribute(attr=cst.Name("train")), args=[cst.Arg(value=mode)]):
                    if self.tree.source(mode) == asked:
                        return True
                case cst.If(test=again, orelse=cst.Else(body=rest)) if self.tree.source(again) == asked:
                    if any(self._evaluates(inner) for inner in self.tree.descendants(rest)):
                        return True
                case _:
                    pass
        return False

    def _evaluates(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name("eval")), args=[]):
                return True
            case _:
                return False

    def _takes_other_data(self, call: cst.Call) -> bool:
        """Return whether it is ``model(x_test)``: data that is called after what nothing is trained on."""
        names = (last_name(argument.value) for argument in call.args)
        return any(name is not None and has(name, *_OTHER_DATA) for name in names)

    def _follows_eval(self, call: cst.Call) -> bool:
        """Return whether it is ``model.eval()`` some statements above ``model(x)``,
        with no ``model.train()`` in between.
        """
        statement = self.tree.statement(call)
        block = self.tree.parent(statement)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return False
        positions, modes = self._switches(block).get(self.tree.source(call.func), ([], []))
        above = bisect_left(positions, self.tree.position(statement))
        return above > 0 and modes[above - 1] == "eval"

    @remembered
    def _switches(self, block: cst.IndentedBlock | cst.Module) -> dict[str, tuple[list[int], list[str]]]:
        """Return the statements of a block that put a model into a mode: where they stand in it,
        for each model.
        """
        known: dict[str, tuple[list[int], list[str]]] = {}
        for position, statement in enumerate(block.body):
            match statement:
                case cst.SimpleStatementLine(
                    body=[cst.Expr(value=cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(mode))))]
                ) if mode in ("eval", "train"):
                    positions, modes = known.setdefault(self.tree.source(owner), ([], []))
                    positions.append(position)
                    modes.append(mode)
                case _:
                    pass
        return known

    def _is_beside_steps(self, node: cst.CSTNode) -> bool:
        """Return whether a place is run in few iterations of a loop that trains,
        or once beside such a loop.
        """
        gradients = Backpropagation.of(self.module)
        loop = next((loop for loop in self.module.flow.loops(node) if gradients.steps(loop)), None)
        if loop is not None:
            return not self._trains_directly(loop) or self._is_interlude(node, loop)
        function = self.module.function(node)
        return isinstance(function, cst.FunctionDef) and self.only_beside_steps(function)

    @solved(False)
    def only_beside_steps(self, function: cst.FunctionDef) -> bool:
        """Return whether every call of a function
        that computes no gradients is beside the steps of a training.

        A function that calls itself shows nothing by that.
        """
        callers = self.module.callers(function)
        return (
            bool(callers)
            and not Backpropagation.of(self.module).computes_gradients(function.body)
            and all(self._is_beside_steps(call) for call in callers)
        )

    def _trains_directly(self, holder: cst.CSTNode) -> bool:
        """Return whether a loop or function computes gradients each time round,
        and not in loops inside of it.
        """
        return Backpropagation.of(self.module).of_passes.each_round(holder)

    def _is_interlude(self, node: cst.CSTNode, loop: Loop) -> bool:
        """Return whether a branch without a training step, taken in few iterations of the loop,
        holds ``node``.
        """
        if not places.throttled_in(self.module, node, loop):
            return False
        for branch in self.module.flow.branches(node, within=loop):
            condition = branch.construct
            if not isinstance(condition, cst.If):
                continue
            taken = condition.body if self.tree.contains(condition.body, node) else condition.orelse
            if (
                taken is not None
                and not isinstance(taken, cst.If)
                and not places.throttled_in(self.module, condition, loop)
            ):
                return not Backpropagation.of(self.module).computes_gradients(taken)
        return False

    def _is_handed_to_training(self, call: cst.Call) -> bool:
        """Return whether the result goes to code of another file that may backpropagate it."""
        return any(map(self._is_argument_of_training, with_reads(self.module, call)))

    def _is_argument_of_training(self, node: cst.CSTNode) -> bool:
        for around in self.tree.ancestors(node):
            if isinstance(around, cst.BaseStatement):
                return False
            if isinstance(around, cst.Call) and self.module.callee(around) is None:
                name = last_name(around.func)
                if name is not None and has(name, *_TRAINS):
                    return True
        return False


def with_reads(module: Module, call: cst.Call) -> list[cst.CSTNode]:
    """Return a call and the reads of the variable that its result is assigned to."""
    reads: list[cst.CSTNode] = [call]
    match module.tree.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding = module.binding_of(target)
            reads += module.uses(binding) if binding is not None else []
    return reads
