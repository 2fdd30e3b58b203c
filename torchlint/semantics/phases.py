"""What a place is for: training, evaluation, a forward pass, loading data, or setting up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.api.results import TENSOR_ATTRIBUTES, TENSOR_METHODS
from torchlint.semantics.conventions import uses_model
from torchlint.semantics.dependencies import Table, cached_property
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import Decision, Function
from torchlint.semantics.flow.guards import Guard, concluded
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, asks, begins, denotes, ends, has, names_loader, names_model
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import all_parameters, dotted_text
from torchlint.semantics.reach import components
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import is_none, last_name
from torchlint.semantics.values import MISSING, Kind


class Phase(IdentityEnum):
    """What the code around a place does; UNKNOWN where it serves several ends or none is shown."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    FORWARD = "forward"
    DATASET = "dataset"
    SETUP = "setup"
    UNKNOWN = "unknown"


def _evaluates(name: str | None) -> bool:
    """Return whether a function of this name measures how good a model is."""
    return (
        begins(name, Role.EVALUATION, Role.HELD_OUT)
        or ends(name, Role.EVALUATION)
        or (
            begins(name, Role.TEST)
            and asks(name, Role.TEST, Role.EPOCH, Role.ITERATION, Role.MODEL, Role.FUNCTION)
        )
        or (
            begins(name, Role.COMPUTING, Role.MAKING)
            and (ends(name, Role.SCORE) or (ends(name, Role.LOSS) and has(name, Role.EVALUATION, Role.TEST)))
        )
    )


def _infers(name: str | None) -> bool:
    """Return whether a model is used by this name; parts of a forward pass may have it, too."""
    return (
        begins(name, Role.GENERATION, Role.SAMPLING, Role.DECODING, Role.PREDICTION, Role.INFERENCE)
        or denotes(name, Role.GENERATION, Role.SAMPLING, Role.PREDICTION, Role.INFERENCE)
    ) and not has(name, Role.TEST, Role.SIZE, Role.TYPE, Role.BATCH, Role.NOISE)


def _names_model_or_data(name: str | None) -> bool:
    """Return whether a parameter of this name is a model, or a loader."""
    return names_model(name) or names_loader(name)


_TRAIN_FLAG = (Role.TRAINING, Role.BACKPROPAGATION)
_EVAL_FLAG = (Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.INFERENCE, Role.PREDICTION)
_EVAL_TEXT = (Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.PREDICTION, Role.INFERENCE)


def _names_evaluation_data(name: str | None) -> bool:
    """Return whether this is data that a model is measured on."""
    return (
        has(name, Role.EVALUATION, Role.TEST, Role.HELD_OUT)
        and ends(name, Role.LOADER, Role.DATASET, Role.DATA, Role.EVALUATION, Role.TEST, Role.HELD_OUT)
        and has(name, Role.LOADER, Role.DATASET, Role.DATA)
    )


def _flags_optimizer(name: str | None) -> bool:
    """Return whether this is an optimizer, or says which."""
    return ends(name, Role.OPTIMIZER) or (begins(name, Role.OPTIMIZER) and ends(name, Role.INDEX))


_OPTIMIZER = (Role.OPTIMIZER, Role.SCALER)
_LIGHTNING = {
    "training_step": Phase.TRAINING,
    "configure_optimizers": Phase.SETUP,
    "setup": Phase.SETUP,
    "optimizer_step": Phase.TRAINING,
    "backward": Phase.TRAINING,
}
_LIGHTNING_EVALUATES = ("validation_", "test_", "predict_")
_LIGHTNING_TRAINS = (
    *("train_", "training_", "before_optimizer_", "before_zero_", "after_backward_", "before_backward_"),
)
_HOOKS = {
    ("transformers.Trainer", "compute_loss"): Phase.UNKNOWN,
    ("transformers.Trainer", "training_step"): Phase.TRAINING,
    ("transformers.Trainer", "prediction_step"): Phase.EVALUATION,
    ("torch.autograd.Function", "forward"): Phase.FORWARD,
    ("torch.autograd.Function", "backward"): Phase.FORWARD,
    ("torch.optim.Optimizer", "step"): Phase.TRAINING,
}


def _collates(name: str | None) -> bool:
    """Return whether a function of this name runs in the workers of a loader."""
    return begins(name, Role.COLLATION) or (
        has(name, Role.COLLATION) and ends(name, Role.COLLATION, Role.FUNCTION, Role.BATCH)
    )


_PLAIN = frozenset(
    {Kind.TENSOR, Kind.BATCH, Kind.NDARRAY, Kind.NUMBER, Kind.BOOL, Kind.STRING, Kind.NONE, Kind.SHAPE}
)
# What such a function is for does not change with what it does in between.
_SETTLED = frozenset({Phase.FORWARD, Phase.DATASET, Phase.SETUP})
_BRANCHING: frozenset[type] = frozenset({cst.If, cst.IfExp})


class _Switch(NamedTuple):
    """A call that puts a module into a mode, with its place in the file."""

    place: int
    call: cst.Call
    phase: Phase


_place = attrgetter("place")


def phase(module: Module, node: cst.CSTNode) -> Phase:
    """Return what the program is doing when a node runs: training, evaluation, a forward …"""
    return Phases.of(module).phase(node)


def evaluated_only(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the code around a node rules out that it runs while a model is trained."""
    phases = Phases.of(module)
    return phases.phase(node) is Phase.EVALUATION or phases.ruled_out_of_training(node)


def transforms_sample(module: Module, function: Function) -> bool:
    """Return whether a function is that of a transform, which a data set applies to each of its samples."""
    return isinstance(function, cst.FunctionDef) and Phases.of(module).transforms_sample(function)


class Phases(Part):
    """The phases of one file, computed on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._functions: dict[Function, Phase] = {}
        self._handed_on: dict[Function, frozenset[Phase]] = {}
        """What the phase of a function means for those that it calls."""
        self._rests = Table()

    def phase(self, node: cst.CSTNode) -> Phase:
        """Return what ``node`` is run for."""
        function = self.module.function(node)
        hooked = self._hooked(function) if function is not None else None
        if hooked is not None and hooked in _SETTLED:
            return hooked
        local = self._shown(node)
        if local is not None:
            return local
        return self._of_function(function) if function is not None else Phase.SETUP

    def ruled_out_of_training(self, node: cst.CSTNode) -> bool:
        """Return whether a branch around ``node`` in its function is taken for evaluation only."""
        return any(
            self._implied(decision) is Phase.EVALUATION for decision in self.module.flow.branches(node)
        )

    # ------------------------------------------------------------------ inside a function

    def _local(self, node: cst.CSTNode) -> tuple[Phase | None, Function | None]:
        """Return what the statements around ``node`` within its function show, and that function."""
        function = self.module.function(node)
        settled = function is not None and self._hooked(function) in _SETTLED
        return None if settled else self._shown(node), function

    @remembered
    def _shown(self, node: cst.CSTNode) -> Phase | None:
        """Return what the branches and loops around a node, and the mode switches before it, show."""
        flow, order = self.module.flow, self.tree.order
        branch = next(flow.branches(node, kinds=_BRANCHING), None)
        loop = next(iter(flow.statement_loops(node)), None)
        around: cst.CSTNode | None = branch.construct if branch is not None else loop
        if branch is not None and loop is not None and order[loop] > order[branch.construct]:
            around = loop
        switched = self._switched(node, order[around] if around is not None else -1)
        if switched is not None or around is None:
            return switched
        shown = self._shown_by(loop) if branch is None or around is loop else self._implied(branch)
        return shown or self._shown(around)

    def _shown_by(self, loop: cst.CSTNode | None) -> Phase | None:
        trains = self._trains(loop) if loop is not None else None
        if trains is not None:
            return Phase.TRAINING if trains else Phase.UNKNOWN
        evaluates = isinstance(loop, cst.For) and self._over_evaluation_data(loop)
        return Phase.EVALUATION if evaluates else None

    @remembered
    def _implied(self, decision: Decision) -> Phase | None:
        """Return the phase in which alone a test comes out so."""
        return concluded(self.module, decision.test, decision.holds, self._told)

    def _told(self, guard: Guard) -> Phase | None:
        test, truth = guard.test, guard.holds
        match test:
            case cst.Comparison() if len(test.comparisons) == 1:
                return self._compared(test, truth)
            case cst.Name() | cst.Attribute():
                word = test.attr.value if isinstance(test, cst.Attribute) else test.value
                if asks(word, *_TRAIN_FLAG) or _flags_optimizer(word):
                    return Phase.TRAINING if truth else Phase.EVALUATION
                return Phase.EVALUATION if truth and asks(word, *_EVAL_FLAG) else None
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="startswith")), args=[argument]):
                return self._texts([argument.value], truth)
            case _:
                return None

    def _compared(self, test: cst.Comparison, truth: bool) -> Phase | None:
        left, operator, right = test.left, test.comparisons[0].operator, test.comparisons[0].comparator
        match operator:
            case cst.NotEqual() | cst.IsNot() | cst.NotIn():
                truth = not truth
            case cst.Equal() | cst.Is() | cst.In():
                pass
            case _:
                return None
        if is_none(right):
            word = last_name(left)
            if word is not None and _flags_optimizer(word):
                return Phase.EVALUATION if truth else Phase.TRAINING
            return None
        if isinstance(operator, (cst.In, cst.NotIn)) and isinstance(right, (cst.List, cst.Tuple, cst.Set)):
            return self._texts([element.value for element in right.elements], truth)
        return self._texts([left, right], truth)

    def _texts(self, options: Iterable[cst.CSTNode], truth: bool) -> Phase | None:
        """Return the phase that a mode is in which is (or is not) one of these literals."""
        words = [word for word in map(_text, options) if word is not None]
        if words and all(begins(word, Role.TRAINING) for word in words):
            return Phase.TRAINING if truth else Phase.EVALUATION
        if words and all(begins(word, *_EVAL_TEXT) for word in words):
            return Phase.EVALUATION if truth else None
        return None

    def _over_evaluation_data(self, loop: cst.For) -> bool:
        for node in self.tree.descendants(loop.iter):
            if isinstance(node, cst.Name) and _names_evaluation_data(node.value):
                return True
            if isinstance(node, cst.Subscript) and begins(last_name(node), *_EVAL_TEXT):
                return True
        return False

    # ------------------------------------------------------------------ train() and eval()

    def _modes(self, function: Function | None) -> list[_Switch]:
        """Return the calls in a function that put a module into a mode, by place."""
        return self._switches.get(function, [])

    @cached_property
    def _switches(self) -> dict[Function | None, list[_Switch]]:
        found: dict[Function | None, list[_Switch]] = {}
        for call in self.tree.nodes(cst.Call):
            phase = self._switch(call)
            if phase is not None:
                switch = _Switch(self.tree.order[call], call, phase)
                found.setdefault(self.module.function(call), []).append(switch)
        return found

    def _switch(self, call: cst.Call) -> Phase | None:
        if not isinstance(call.func, cst.Attribute) or len(call.args) > 1:
            return None
        method = call.func.attr.value
        if method not in ("train", "eval") or (method == "eval" and call.args):
            return None
        if self._is_own_part(call.func.value, call):
            return None
        receiver = self.module.value(call.func.value)
        if receiver.kind is not Kind.MODULE:
            word = last_name(call.func.value)
            made = method == "eval" and isinstance(call.func.value, cst.Call)
            if receiver.kind is not Kind.UNKNOWN or (word is None and not made):
                return None
            if method == "train" and (word == "self" or ends(word, Role.TRAINER)):
                return None
        if method == "eval":
            return Phase.EVALUATION
        if not call.args:
            return Phase.TRAINING
        constant = self.module.value(call.args[0].value).constant
        if constant is MISSING:
            return Phase.UNKNOWN
        return Phase.TRAINING if constant else Phase.EVALUATION

    def _is_own_part(self, receiver: cst.BaseExpression, call: cst.Call) -> bool:
        """Return whether a module switches a part of its own, as it does to one that it does not train.

        What else it computes there may be trained all the same.
        """
        function = self.module.function(call)
        owner = self.module.classes.owner(function) if function is not None else None
        if (
            owner is None
            or not isinstance(function, cst.FunctionDef)
            or not isinstance(receiver, cst.Attribute)
        ):
            return False
        info = self.module.classes.info(owner)
        if info.kind is not Kind.MODULE or info.lightning:
            return False
        if self.module.classes.self_name(function) != dotted_text(receiver.value):
            return False
        name = function.name.value
        return not (self._infers(function) or _evaluates(name) or begins(name, Role.TRAINING))

    def _switched(self, node: cst.CSTNode, after: int) -> Phase | None:
        """Return the mode in which the statements in front of ``node`` leave the model, from a place on."""
        function, order = self.module.function(node), self.tree.order
        modes = self._modes(function)
        if not modes:
            return None
        end = bisect_left(modes, order[self.module.flow.statement(node)], key=_place)
        while end and modes[end - 1].place > after:
            last = modes[end - 1]
            block, statement = self.module.flow.common_block(last.call, node)
            if self.tree.contains(statement, node):
                if isinstance(statement, cst.SimpleStatementLine):
                    return self._left_by(last, node, block)
                end -= 1  # in another part of the statement that holds the node
                continue
            start = bisect_left(modes, order[statement], key=_place)
            match statement:
                case cst.If():
                    if last.phase is Phase.TRAINING and statement.orelse is None:
                        return Phase.TRAINING
                    alike = all(switch.phase is last.phase for switch in modes[start:end])
                    return last.phase if alike and statement.orelse is not None else Phase.UNKNOWN
                case cst.For() | cst.While():
                    if last.phase is Phase.EVALUATION:
                        return Phase.EVALUATION
                    end = bisect_left(modes, order[block], key=_place)
                case cst.FunctionDef() | cst.ClassDef():
                    end = start
                case _:
                    return self._left_by(last, node, block)
        return None

    def _left_by(self, switch: _Switch, node: cst.CSTNode, block: cst.CSTNode) -> Phase:
        """Return the mode behind a switch that is always made.

        The model that ``eval()`` was called on may not be the one that is trained below it in the block.
        """
        if switch.phase is not Phase.EVALUATION:
            return switch.phase
        function, order = self.module.function(node), self.tree.order
        certain = sorted(order[call] for call, sure in self._training(function) if sure)
        later = bisect_left(certain, order[node])
        # What begins below the node ends with the block, or stands below it.
        if later == len(certain) or certain[later] > self.tree.last(block):
            return switch.phase
        places = range(switch.place + 1, certain[later])
        if any(each.place in places for each in self._modes(function) if each.phase is Phase.TRAINING):
            return switch.phase
        subject = node.func if isinstance(node, cst.Call) else None
        same = subject is not None and dotted_text(subject) == dotted_text(_receiver(switch.call))
        return switch.phase if same else Phase.TRAINING

    # ------------------------------------------------------------------ training steps

    def _training(self, holder: cst.CSTNode | None) -> list[tuple[cst.Call, bool]]:
        """Return the calls in a loop or function (None: the module) that train,
        directly or in what they call.

        With each: whether it does so whatever the mode is (False below ``if training:``).
        """
        holder = holder if holder is not None else self.tree.root
        return [step for phases in self._of_trainers for step in phases._steps.get(holder, ())]

    @cached_property
    def _of_trainers(self) -> list[Phases]:
        """What is known of the files whose steps of training may be called from this one, and of itself."""
        return [self, *map(Phases.of, self.module.companions("backward", ".step("))]

    @cached_property
    def _steps(self) -> dict[cst.CSTNode, list[tuple[cst.Call, bool]]]:
        """By loop, function or root of a file: the steps of this file that it comes to."""
        flow, found = self.module.flow, dict[cst.CSTNode, list[tuple[cst.Call, bool]]]()
        waiting: list[tuple[cst.Call, bool]] = [(call, True) for call in training_steps(self.module)]
        seen: set[tuple[Function, bool]] = set()
        while waiting:
            call, certain = waiting.pop()
            branches = flow.branches(call, kinds=_BRANCHING)
            modal = [each.construct for each in branches if self._implied(each) is not None]
            for loop in flow.loops(call):
                sure = certain and not any(self.tree.contains(loop, branch) for branch in modal)
                found.setdefault(loop, []).append((call, sure))
            function = self.module.function(call)
            certain = certain and not modal
            holder = function if function is not None else self.module.home(call).tree.root
            found.setdefault(holder, []).append((call, certain))
            if function is not None and (function, certain) not in seen and not self._is_forward(function):
                seen.add((function, certain))
                waiting.extend((caller, certain) for caller in self.module.callers(function))
        return found

    def _is_forward(self, function: Function) -> bool:
        return isinstance(function, cst.FunctionDef) and function.name.value == "forward"

    def _trains(self, holder: cst.CSTNode) -> bool | None:
        """Return whether a loop or function trains: certainly, in some modes (False), or never (None)."""
        steps = self._training(holder)
        return any(certain for _, certain in steps) if steps else None

    # ------------------------------------------------------------------ functions

    def _of_function(self, function: Function) -> Phase:
        known = self._functions.get(function)
        if known is not None:
            self._rests.note()
            return known
        with self._rests.asked():
            for members in components(function, self._asked_for, self._functions):
                self._decide(members)
            return self._functions[function]

    def _asked_for(self, function: Function) -> list[Function]:
        """Return the functions whose phases one has, if it shows none itself."""
        return [] if self._own_phase(function) is not None else self._run_in(function)[1]

    def _decide(self, members: Sequence[Function]) -> None:
        """Give functions that call one another in circles the phases of all that calls them from outside."""
        own = self._own_phase(members[0])
        found = {own} if own is not None else set()
        for function in members if own is None else ():
            shown, outers = self._run_in(function)
            found.update(shown, *(self._handed_on[outer] for outer in outers if outer not in members))
        phases = frozenset(found)
        if len(found) > 1:
            # What the module level does once beside it does not change what a helper is for.
            found.discard(Phase.SETUP)
        common = next(iter(found)) if len(found) == 1 else Phase.UNKNOWN
        evaluates = len(found) < 2 and common in (Phase.UNKNOWN, Phase.SETUP)
        for function in members:
            infers = self._infers(function)
            phase = self._functions[function] = Phase.EVALUATION if infers and evaluates else common
            self._handed_on[function] = frozenset({phase}) if infers and evaluates else phases

    @remembered
    def _run_in(self, function: Function) -> tuple[set[Phase], list[Function]]:
        """Return the phases in which the known places call a function, and its other callers."""
        around = [self._local(place) for place in self._places(function)]
        shown = {local or Phase.SETUP for local, outer in around if local is not None or outer is None}
        outers = dict.fromkeys(outer for local, outer in around if local is None and outer is not None)
        return shown, list(outers)

    def _infers(self, function: Function) -> bool:
        """Return whether a function goes by the name of what models do when they are used."""
        if not isinstance(function, cst.FunctionDef):
            return False
        name = function.name.value
        owner = self.module.classes.owner(function)
        if owner is not None and self.module.classes.info(owner).kind is Kind.MODULE:
            return uses_model(name)
        return _infers(name)

    def _places(self, function: Function) -> list[cst.CSTNode]:
        """Return where a function runs as far as the file shows: its calls, or the place of a nested one."""
        calls: list[cst.CSTNode] = list(self.module.callers(function))
        if not calls and (isinstance(function, cst.Lambda) or self.module.function(function) is not None):
            return [function]
        return calls

    def _own_phase(self, function: Function) -> Phase | None:
        """Return what the function itself shows; None if its callers decide."""
        if isinstance(function, cst.Lambda):
            return None
        hooked = self._hooked(function)
        if hooked is not None:
            return hooked
        trains = self._trains(function)
        if trains is not None:
            return Phase.TRAINING if trains else Phase.UNKNOWN
        named = self._named(function)
        return None if named is None or self._refutes(function, named) else named

    def _named(self, function: cst.FunctionDef) -> Phase | None:
        """Return what a function is for by its name."""
        name = function.name.value
        if _evaluates(name):
            return Phase.EVALUATION
        if begins(name, Role.TEST) and any(_names_model_or_data(p) for p in _parameter_names(function)):
            return Phase.EVALUATION
        return Phase.TRAINING if begins(name, Role.TRAINING) else None

    def _refutes(self, function: cst.FunctionDef, named: Phase) -> bool:
        """Return whether the calls of a function, all of which are seen, speak against what its name says.

        What only runs in evaluation mode, or with autograd off, trains nothing; what is given tensors and
        numbers alone has no model to evaluate.
        """
        callers = self.module.callers(function)
        if not callers:
            return False
        if named is Phase.TRAINING:
            return all(
                self._shown(call) is Phase.EVALUATION or grad(self.module, call) is Grad.OFF
                for call in callers
            )
        return self.module.classes.owner(function) is None and self._computes_only(function)

    def _computes_only(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is given tensors and numbers, and calls no model."""
        bindings = (self.module.names.by_node.get(each) for each in all_parameters(function.params))
        given = [self.module.inference.parameters.of(each) for each in bindings if each is not None]
        if not given or not all(value.kind in _PLAIN for value in given):
            return False
        return not any(
            isinstance(node, cst.Call) and self.module.value(node.func).kind is Kind.MODULE
            for node in self.tree.descendants(function.body)
        )

    @remembered
    def _hooked(self, function: Function) -> Phase | None:
        """Return the phase that a framework, or the function's role, prescribes."""
        if not isinstance(function, cst.FunctionDef):
            return Phase.DATASET if function in self._collate_functions else None
        name = function.name.value
        owner = self.module.classes.owner(function)
        if owner is None:
            return Phase.DATASET if self._collates(function) else None
        info = self.module.classes.info(owner)
        if name == "__init__":
            return Phase.SETUP
        for base in info.bases:
            phase = _HOOKS.get((base, name))
            if phase is not None:
                return phase
        if info.lightning:
            if name in _LIGHTNING:
                return _LIGHTNING[name]
            if name.removeprefix("on_").startswith(_LIGHTNING_EVALUATES):
                return Phase.EVALUATION
            if name.removeprefix("on_").startswith(_LIGHTNING_TRAINS):
                return Phase.TRAINING
        if name in ("__call__", "forward") and has(owner.name.value, Role.COLLATION):
            return Phase.DATASET
        if self.transforms_sample(function):
            return Phase.DATASET
        if info.kind is Kind.MODULE and name == "forward" and self._trains(function) is None:
            return Phase.FORWARD
        if name in ("__getitem__", "__getitems__", "__iter__", "__next__", "__len__"):
            if info.kind in (Kind.DATASET, Kind.SAMPLER):
                return Phase.DATASET
            if info.opaque and name == "__getitem__" and "__len__" in info.methods:
                return Phase.DATASET
        if self._collates(function):
            return Phase.DATASET
        return None

    def _collates(self, function: cst.FunctionDef) -> bool:
        """Return whether a function runs in the workers of a loader: it is given to one,
        or called after that.

        What is only called after it has to take something that may be a list of samples, or the number of
        a worker.
        """
        if function in self._collate_functions:
            return True
        if not _collates(function.name.value):
            return False
        receiver = self.module.classes.self_name(function)
        given = next((each for each in all_parameters(function.params) if each.name.value != receiver), None)
        bound = self.module.names.by_node.get(given) if given is not None else None
        return bound is not None and not any(sinks(self.module, bound, _is_no_list))

    @remembered
    def transforms_sample(self, function: cst.FunctionDef) -> bool:
        """Return whether a method takes the fields of one sample and gives it back changed, for a data set.

        Its class is a transform by name, or by that of a base. Layers and flows that are called so as well
        take tensors.
        """
        owner = self.module.classes.owner(function)
        if owner is None or function.name.value not in ("__call__", "forward"):
            return False
        nodes = [each.node for each in self.module.classes.info(owner).lineage]
        bases = (last_name(base.value) or "" for node in nodes for base in node.bases)
        if not any(name.endswith("Transform") for name in (*(node.name.value for node in nodes), *bases)):
            return False
        receiver = self.module.classes.self_name(function)
        given = [each for each in all_parameters(function.params) if each.name.value != receiver]
        if len(given) != 1:
            return False
        sample = given[0].name.value

        def is_sample(node: cst.CSTNode | None) -> bool:
            return isinstance(node, cst.Name) and node.value == sample

        returns = self.tree.nodes_within(function, cst.Return)
        if not any(is_sample(each.value) for each in returns):
            return False
        bound = self.module.names.by_node.get(given[0])
        if bound is not None and self.module.inference.parameters.of(bound).kind is Kind.DICT:
            return True
        lookups = self.tree.nodes_within(function, cst.Subscript)
        return any(is_sample(each.value) and _is_field(each) for each in lookups)

    @cached_property
    def _collate_functions(self) -> set[cst.CSTNode]:
        """The functions of this file given to a loader as ``collate_fn`` or ``worker_init_fn``."""
        found: set[cst.CSTNode] = set()
        for argument in self.tree.nodes(cst.Arg):
            keyword = argument.keyword
            if keyword is not None and keyword.value in ("collate_fn", "worker_init_fn"):
                definition = self.module.value(argument.value).definition
                if isinstance(definition, cst.ClassDef):
                    definition = self.module.classes.info(definition).method("__call__")
                if definition is not None:
                    found.add(definition)
        return found


_NO_METHODS_OF_LISTS = frozenset({*dir(dict), *TENSOR_METHODS, *TENSOR_ATTRIBUTES} - {*dir(list)})


def _is_no_list(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use shows that something is a tensor or a dictionary."""
    match use.kind:
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.ATTRIBUTE | UseKind.METHOD:
            return use.name in _NO_METHODS_OF_LISTS
        case UseKind.ITEM if isinstance(use.by, cst.Subscript):
            indices = (each.slice for each in use.by.slice)
            return any(isinstance(each, cst.Index) and _text(each.value) is not None for each in indices)
    return False


_STEPS = frozenset({"backward", "manual_backward", "step"})


@remembered
def training_steps(module: Module) -> list[cst.Call]:
    """Return the calls that compute gradients for training or step an optimizer, in source order."""
    calls = module.tree.spelt(cst.Call, _STEPS, module.names.renamed)
    return [call for call in calls if isinstance(call, cst.Call) and is_training_step(module, call)]


def is_training_step(module: Module, call: cst.Call) -> bool:
    """Return whether a call computes gradients for training or steps an optimizer."""
    func = call.func
    if not isinstance(func, cst.Attribute):
        return module.names.qualified(func) == "torch.autograd.backward"
    method = func.attr.value
    if method in ("backward", "manual_backward"):
        return not module.callees(call)
    if method == "step":
        stepped = module.value(func.value)
        if stepped.kind in (Kind.OPTIMIZER, Kind.SCALER):
            return True
        word = last_name(func.value)
        return stepped.kind is Kind.UNKNOWN and word is not None and ends(word, *_OPTIMIZER)
    return False


def _is_field(node: cst.Subscript) -> bool:
    """Return whether something is looked up by a field's name: ``sample["image"]``, ``s[Keys.IMAGE]``."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index))]:
            return isinstance(index, (cst.SimpleString, cst.Attribute))
    return False


def _receiver(call: cst.Call) -> cst.CSTNode:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def _text(node: cst.CSTNode) -> str | None:
    """Return a string literal, or the member of an enumeration of modes."""
    if isinstance(node, cst.SimpleString):
        text = node.evaluated_value
        return text if isinstance(text, str) else None
    if isinstance(node, cst.Attribute) and node.attr.value.isupper():
        return node.attr.value
    return None


def _parameter_names(function: cst.FunctionDef) -> Iterator[str]:
    for parameter in (
        *function.params.posonly_params,
        *function.params.params,
        *function.params.kwonly_params,
    ):
        yield parameter.name.value
