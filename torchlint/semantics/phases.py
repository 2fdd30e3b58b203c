"""What a place is for: training, evaluation, a forward pass, loading data, or setting up."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from torchlint.semantics.conventions import uses_model
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import FUNCTIONS, LOOPS, Function
from torchlint.semantics.lexicon import Role, asks, begins, denotes, ends, has, names_loader, names_model
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import dotted_text
from torchlint.semantics.reach import components
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind


class Phase(IdentityEnum):
    """What the code around a place does; UNKNOWN where it serves several ends or none is shown."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    FORWARD = "forward"
    DATASET = "dataset"
    SETUP = "setup"
    UNKNOWN = "unknown"


_DEPTH = 20
"""How deep in a condition a mode is looked for."""


def _evaluates(name: str | None) -> bool:
    """Whether a function of this name measures how good a model is."""
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
    """Whether this is what models do when they are used; parts of a forward pass may be called so, too."""
    return (
        begins(name, Role.GENERATION, Role.SAMPLING, Role.DECODING, Role.PREDICTION, Role.INFERENCE)
        or denotes(name, Role.GENERATION, Role.SAMPLING, Role.PREDICTION, Role.INFERENCE)
    ) and not has(name, Role.TEST, Role.SIZE, Role.TYPE, Role.BATCH, Role.NOISE)


def _names_model_or_data(name: str | None) -> bool:
    """Whether a parameter of this name is a model, or a loader."""
    return names_model(name) or names_loader(name)


_TRAIN_FLAG = (Role.TRAINING, Role.BACKPROPAGATION)
_EVAL_FLAG = (Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.INFERENCE, Role.PREDICTION)
_EVAL_TEXT = (Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.PREDICTION, Role.INFERENCE)


def _names_evaluation_data(name: str | None) -> bool:
    """Whether this is data that a model is measured on."""
    return (
        has(name, Role.EVALUATION, Role.TEST, Role.HELD_OUT)
        and ends(name, Role.LOADER, Role.DATASET, Role.DATA, Role.EVALUATION, Role.TEST, Role.HELD_OUT)
        and has(name, Role.LOADER, Role.DATASET, Role.DATA)
    )


def _flags_optimizer(name: str | None) -> bool:
    """Whether this is an optimizer, or says which."""
    return ends(name, Role.OPTIMIZER) or (begins(name, Role.OPTIMIZER) and ends(name, Role.INDEX))


_OPTIMIZER = (Role.OPTIMIZER, Role.SCALER)
_LIGHTNING = {
    "training_step": Phase.TRAINING,
    "configure_optimizers": Phase.SETUP,
    "setup": Phase.SETUP,
    "optimizer_step": Phase.TRAINING,
    "backward": Phase.TRAINING,
}
_LIGHTNING_EVALUATES = re.compile(r"^(?:on_)?(?:validation|test|predict)_")
_LIGHTNING_TRAINS = re.compile(
    r"^(?:on_)?(?:train|training|before_optimizer|before_zero|after_backward|before_backward)_"
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
    """Whether a function of this name runs in the workers of a loader."""
    return begins(name, Role.COLLATION) or (
        has(name, Role.COLLATION) and ends(name, Role.COLLATION, Role.FUNCTION, Role.BATCH)
    )


# What such a function is for does not change with what it does in between.
_SETTLED = frozenset({Phase.FORWARD, Phase.DATASET, Phase.SETUP})
_BLOCKS: frozenset[type] = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite, cst.Module})
_TELLING: frozenset[type] = frozenset(
    {
        cst.If,
        cst.IfExp,
        cst.For,
        cst.While,
        *_BLOCKS,
        *FUNCTIONS,
    }
)


def phase(module: Module, node: cst.CSTNode) -> Phase:
    """What the program is doing when a node runs: training, evaluation, a forward …"""
    return Phases.of(module).phase(node)


def evaluated_only(module: Module, node: cst.CSTNode) -> bool:
    """Whether the code around a node rules out that it runs while a model is trained."""
    phases = Phases.of(module)
    return phases.phase(node) is Phase.EVALUATION or phases.ruled_out_of_training(node)


class Phases(Part):
    """The phases of one file, worked out on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self._phases: dict[cst.CSTNode, Phase] = {}
        self._shown: dict[cst.CSTNode, tuple[Phase | None, Function | None]] = {}
        self._functions: dict[Function, Phase] = {}
        self._prescribed: dict[Function, Phase | None] = {}
        self._runs: dict[Function, tuple[set[Phase], list[Function]]] = {}
        self._handed_on: dict[Function, frozenset[Phase]] = {}
        """What the phase of a function means for those that it calls."""
        self._steps: dict[cst.CSTNode | None, list[tuple[cst.Call, bool]]] | None = None
        self._switches: dict[Function | None, list[tuple[int, cst.Call, Phase]]] | None = None
        self._trained: dict[Function | None, tuple[list[int], list[int]]] = {}
        self._collators: set[cst.CSTNode] | None = None

    def phase(self, node: cst.CSTNode) -> Phase:
        """What ``node`` is run for."""
        found = self._phases.get(node)
        if found is None:
            local, function = self._local(node)
            if local is not None:
                found = local
            else:
                found = self._of_function(function) if function is not None else Phase.SETUP
            self._phases[node] = found
        return found

    def ruled_out_of_training(self, node: cst.CSTNode) -> bool:
        """Whether a branch around ``node`` in its function is taken for evaluation only."""
        return any(
            self._implied(decision.test, decision.holds) is Phase.EVALUATION
            for decision in self.module.flow.branches(node)
        )

    # ------------------------------------------------------------------ inside a function

    def _local(self, node: cst.CSTNode) -> tuple[Phase | None, Function | None]:
        """What the statements around ``node`` within its function show, and that function."""
        known, parents = self._shown, self.tree.parents
        passed: list[cst.CSTNode] = []
        child = node
        # Between a node and what can tell anything of it nothing needs to be asked.
        while (found := known.get(child)) is None:
            parent = parents.get(child)
            if parent is None or parent.__class__ in _TELLING:
                break
            passed.append(child)
            child = parent
        if found is None:
            function = self.module.function(node)
            if function is not None and self._hooked(function) in _SETTLED:
                found = known[child] = (None, function)
            elif self._modes(function):
                # What a switch of modes means depends on the place.
                return self._around(node, function, switched=True)
            else:
                found = self._around(child, function, switched=False)
        known.update(dict.fromkeys(passed, found))
        return found

    def _around(
        self, node: cst.CSTNode, function: Function | None, *, switched: bool
    ) -> tuple[Phase | None, Function | None]:
        """What ``_local`` tells of a node in this function, in which modes are ``switched`` or not."""
        known = self._shown
        passed: list[cst.CSTNode] = []
        found: tuple[Phase | None, Function | None] = (None, None)
        child = node
        for parent in self.tree.ancestors(node):
            if not switched:
                remembered = known.get(child)
                if remembered is not None:
                    found = remembered
                    break
                passed.append(child)
            if parent.__class__ not in _TELLING or (parent.__class__ in _BLOCKS and not switched):
                child = parent
                continue
            phase: Phase | None = None
            match parent:
                case cst.FunctionDef() | cst.Lambda() if child is parent.body:
                    found = (None, function)
                    break
                case cst.If() | cst.IfExp() if child is not parent.test:
                    phase = self._implied(parent.test, child is parent.body)
                case cst.IndentedBlock() | cst.SimpleStatementSuite() | cst.Module():
                    phase = self._switched(child, parent, node, function)
                case cst.For() if child is parent.body:
                    trains = self._trains(parent)
                    if trains is not None:
                        phase = Phase.TRAINING if trains else Phase.UNKNOWN
                    elif self._over_evaluation_data(parent):
                        phase = Phase.EVALUATION
                case cst.While() if child is not parent.orelse:
                    trains = self._trains(parent)
                    if trains is not None:
                        phase = Phase.TRAINING if trains else Phase.UNKNOWN
                case _:
                    pass
            if phase is not None:
                found = (phase, function)
                break
            child = parent
        known.update(dict.fromkeys(passed, found))
        return found

    def _implied(self, test: cst.CSTNode, truth: bool, depth: int = 0) -> Phase | None:
        """The phase in which alone ``test`` is true (or false)."""
        if depth > _DEPTH:
            return None
        match test:
            case cst.UnaryOperation(operator=cst.Not()):
                return self._implied(test.expression, not truth, depth + 1)
            case cst.BooleanOperation() if isinstance(test.operator, cst.And) is truth:
                left = self._implied(test.left, truth, depth + 1)
                return left or self._implied(test.right, truth, depth + 1)
            case cst.BooleanOperation():
                left = self._implied(test.left, truth, depth + 1)
                return left if left is self._implied(test.right, truth, depth + 1) else None
            case cst.Comparison() if len(test.comparisons) == 1:
                return self._compared(test, truth)
            case cst.Name() | cst.Attribute():
                word = test.attr.value if isinstance(test, cst.Attribute) else test.value
                if asks(word, *_TRAIN_FLAG):
                    return Phase.TRAINING if truth else Phase.EVALUATION
                if _flags_optimizer(word):
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
        if isinstance(right, cst.Name) and right.value == "None":
            word = last_name(left)
            if word is not None and _flags_optimizer(word):
                return Phase.EVALUATION if truth else Phase.TRAINING
            return None
        if isinstance(operator, (cst.In, cst.NotIn)) and isinstance(right, (cst.List, cst.Tuple, cst.Set)):
            return self._texts([element.value for element in right.elements], truth)
        return self._texts([left, right], truth)

    def _texts(self, options: Iterable[cst.CSTNode], truth: bool) -> Phase | None:
        """The phase that a mode is in which is (or is not) one of these literals."""
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

    def _modes(self, function: Function | None) -> list[tuple[int, cst.Call, Phase]]:
        """The calls in a function that put a module into a mode, by place."""
        if self._switches is None:
            self._switches = {}
            for call in self.tree.nodes(cst.Call):
                phase = self._switch(call)
                if phase is not None:
                    place = (self.tree.order[call], call, phase)
                    self._switches.setdefault(self.module.function(call), []).append(place)
        return self._switches.get(function, [])

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
        """Whether a module switches a part of its own, as it does to one that it does not train.

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

    def _switched(
        self,
        child: cst.CSTNode,
        block: cst.IndentedBlock | cst.SimpleStatementSuite | cst.Module,
        node: cst.CSTNode,
        function: Function | None,
    ) -> Phase | None:
        """The mode that the statements above ``child`` in its block leave the model in."""
        modes = self._modes(function)
        if not modes:
            return None
        order = self.tree.order
        begin = bisect_left(modes, order[block], key=lambda place: place[0])
        end = bisect_left(modes, order[self._in_line(child, node)], key=lambda place: place[0])
        if begin < end and modes[end - 1][0] >= order[child]:
            return self._left_by(modes[end - 1], node, block, function)
        if begin >= end:
            return None
        while begin < end:
            last = modes[end - 1]
            statement = self._statement_in(block, last[1])
            start = bisect_left(modes, order[statement], key=lambda place: place[0])
            inside = modes[start:end]
            end = start
            match statement:
                case cst.If():
                    if last[2] is Phase.TRAINING and statement.orelse is None:
                        return Phase.TRAINING
                    branches = {place[2] for place in inside}
                    complete = statement.orelse is not None
                    return last[2] if len(branches) == 1 and complete else Phase.UNKNOWN
                case cst.For() | cst.While():
                    return Phase.EVALUATION if last[2] is Phase.EVALUATION else None
                case cst.FunctionDef() | cst.ClassDef():
                    continue
                case _:
                    return self._left_by(last, node, block, function)
        return None

    def _statement_in(self, block: cst.CSTNode, node: cst.CSTNode) -> cst.CSTNode:
        """The statement of a block that holds ``node``."""
        child = node
        for parent in self.tree.ancestors(node):
            if parent is block:
                break
            child = parent
        return child

    def _in_line(self, statement: cst.CSTNode, node: cst.CSTNode) -> cst.CSTNode:
        """The statement of a line, ``a; b``, that holds ``node``."""
        if not isinstance(statement, cst.SimpleStatementLine):
            return statement
        return next((part for part in statement.body if self.tree.contains(part, node)), statement)

    def _left_by(
        self,
        switch: tuple[int, cst.Call, Phase],
        node: cst.CSTNode,
        block: cst.CSTNode,
        function: Function | None,
    ) -> Phase:
        """The mode behind a switch that is always made."""
        if switch[2] is Phase.EVALUATION and self._trained_after(node, switch, block, function):
            return Phase.TRAINING
        return switch[2]

    def _trained_after(
        self,
        node: cst.CSTNode,
        switch: tuple[int, cst.Call, Phase],
        block: cst.CSTNode,
        function: Function | None,
    ) -> bool:
        """Whether the model that ``eval()`` was called on is not the one trained below it in the block."""
        certain, back = self._trained_at(function)
        later = bisect_left(certain, self.tree.order[node])
        # What begins below the node ends with the block, or stands below it.
        if later == len(certain) or certain[later] > self.tree.last(block):
            return False
        between = bisect_right(back, switch[0])
        if between < len(back) and back[between] < certain[later]:
            return False
        subject = node.func if isinstance(node, cst.Call) else None
        return subject is None or dotted_text(subject) != dotted_text(_receiver(switch[1]))

    def _trained_at(self, function: Function | None) -> tuple[list[int], list[int]]:
        """Where a function certainly trains, and where it puts a model into training mode."""
        found = self._trained.get(function)
        if found is None:
            steps = {self.tree.order[call] for call, certain in self._training(function) if certain}
            back = [place for place, _, phase in self._modes(function) if phase is Phase.TRAINING]
            found = self._trained[function] = sorted(steps), back
        return found

    # ------------------------------------------------------------------ training steps

    def _training(self, holder: cst.CSTNode | None) -> list[tuple[cst.Call, bool]]:
        """The calls in a loop or function (None: the module) that train, directly or in what they call.

        With each: whether it does so whatever the mode is (False below ``if training:``).
        """
        if self._steps is None:
            self._steps = {}
            waiting: list[tuple[cst.Call, bool]] = [
                (call, True) for call in self.tree.nodes(cst.Call) if is_training_step(self.module, call)
            ]
            seen: set[tuple[Function, bool]] = set()
            while waiting:
                call, certain = waiting.pop()
                child: cst.CSTNode = call
                for parent in self.tree.ancestors(call):
                    if isinstance(parent, (cst.If, cst.IfExp)) and child is not parent.test:
                        implied = self._implied(parent.test, child is parent.body)
                        certain = certain and implied is None
                    elif isinstance(parent, LOOPS):
                        self._steps.setdefault(parent, []).append((call, certain))
                    elif isinstance(parent, FUNCTIONS) and child is parent.body:
                        self._steps.setdefault(parent, []).append((call, certain))
                        if (parent, certain) not in seen and not self._is_forward(parent):
                            seen.add((parent, certain))
                            waiting.extend((caller, certain) for caller in self.module.callers(parent))
                        break
                    child = parent
                else:
                    self._steps.setdefault(None, []).append((call, certain))
        return self._steps.get(holder, [])

    def _is_forward(self, function: Function) -> bool:
        return isinstance(function, cst.FunctionDef) and function.name.value == "forward"

    def _trains(self, holder: cst.CSTNode) -> bool | None:
        """Whether a loop or function trains: certainly, in some modes only (False), or never (None)."""
        steps = self._training(holder)
        return any(certain for _, certain in steps) if steps else None

    # ------------------------------------------------------------------ functions

    def _of_function(self, function: Function) -> Phase:
        found = self._functions.get(function)
        if found is None:
            for members in components(function, self._asked_for, self._functions):
                self._decide(members)
            found = self._functions[function]
        return found

    def _asked_for(self, function: Function) -> list[Function]:
        """The functions whose phases one has, if it shows none itself."""
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
            self._handed_on[function] = frozenset({phase}) if infers and own is None else phases

    def _run_in(self, function: Function) -> tuple[set[Phase], list[Function]]:
        """The phases in which a function is called, as far as the places show them, and the other callers."""
        found = self._runs.get(function)
        if found is None:
            around = [self._local(place) for place in self._places(function)]
            shown = {local or Phase.SETUP for local, outer in around if local is not None or outer is None}
            outers = dict.fromkeys(outer for local, outer in around if local is None and outer is not None)
            found = self._runs[function] = shown, list(outers)
        return found

    def _infers(self, function: Function) -> bool:
        """Whether a function goes by the name of what models do when they are used."""
        if not isinstance(function, cst.FunctionDef):
            return False
        name = function.name.value
        owner = self.module.classes.owner(function)
        if owner is not None and self.module.classes.info(owner).kind is Kind.MODULE:
            return uses_model(name)
        return _infers(name)

    def _places(self, function: Function) -> list[cst.CSTNode]:
        """Where a function runs as far as the file shows: its calls, or the place of a nested one."""
        calls: list[cst.CSTNode] = list(self.module.callers(function))
        if not calls and (isinstance(function, cst.Lambda) or self.module.function(function) is not None):
            return [function]
        return calls

    def _own_phase(self, function: Function) -> Phase | None:
        """As far as the function itself shows it; None: its callers decide."""
        if isinstance(function, cst.Lambda):
            return None
        hooked = self._hooked(function)
        if hooked is not None:
            return hooked
        trains = self._trains(function)
        if trains is not None:
            return Phase.TRAINING if trains else Phase.UNKNOWN
        name = function.name.value
        if _evaluates(name):
            return Phase.EVALUATION
        if begins(name, Role.TEST) and any(_names_model_or_data(p) for p in _parameter_names(function)):
            return Phase.EVALUATION
        return Phase.TRAINING if begins(name, Role.TRAINING) else None

    def _hooked(self, function: Function) -> Phase | None:
        """The phase that a framework, or the function's role, prescribes."""
        if function not in self._prescribed:
            self._prescribed[function] = self._prescription(function)
        return self._prescribed[function]

    def _prescription(self, function: Function) -> Phase | None:
        if not isinstance(function, cst.FunctionDef):
            return Phase.DATASET if function in self._collate_functions else None
        name = function.name.value
        owner = self.module.classes.owner(function)
        if owner is None:
            if function in self._collate_functions or _collates(name):
                return Phase.DATASET
            return None
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
            if _LIGHTNING_EVALUATES.match(name):
                return Phase.EVALUATION
            if _LIGHTNING_TRAINS.match(name):
                return Phase.TRAINING
        if info.kind is Kind.MODULE and name == "forward" and self._trains(function) is None:
            return Phase.FORWARD
        if name in ("__getitem__", "__getitems__", "__iter__", "__next__", "__len__"):
            if info.kind in (Kind.DATASET, Kind.SAMPLER):
                return Phase.DATASET
            if info.opaque and name == "__getitem__" and "__len__" in info.methods:
                return Phase.DATASET
        if _collates(name) or function in self._collate_functions:
            return Phase.DATASET
        if name == "__call__" and has(owner.name.value, Role.COLLATION):
            return Phase.DATASET
        return None

    @property
    def _collate_functions(self) -> set[cst.CSTNode]:
        """The functions of this file given to a loader as ``collate_fn`` or ``worker_init_fn``."""
        if self._collators is None:
            self._collators = set()
            for argument in self.tree.nodes(cst.Arg):
                keyword = argument.keyword
                if keyword is not None and keyword.value in ("collate_fn", "worker_init_fn"):
                    definition = self.module.value(argument.value).definition
                    if isinstance(definition, cst.ClassDef):
                        definition = self.module.classes.info(definition).method("__call__")
                    if definition is not None:
                        self._collators.add(definition)
        return self._collators


def is_training_step(module: Module, call: cst.Call) -> bool:
    """Whether a call computes gradients for training or steps an optimizer."""
    func = call.func
    if not isinstance(func, cst.Attribute):
        return module.names.qualified(func) == "torch.autograd.backward"
    method = func.attr.value
    if method in ("backward", "manual_backward"):
        return module.callee(call) is None
    if method == "step":
        stepped = module.value(func.value)
        if stepped.kind in (Kind.OPTIMIZER, Kind.SCALER):
            return True
        word = last_name(func.value)
        return stepped.kind is Kind.UNKNOWN and word is not None and ends(word, *_OPTIMIZER)
    return False


def _receiver(call: cst.Call) -> cst.CSTNode:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def _text(node: cst.CSTNode) -> str | None:
    """A string literal, or the member of an enumeration of modes."""
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
