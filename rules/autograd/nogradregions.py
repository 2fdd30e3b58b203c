"""Forward passes that autograd records for nothing, and the smallest code around them to switch it off."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.api.families import LAYERS_WITHOUT_PARAMETERS, NAMESPACES
from torchlint.semantics.api.results import FACTORIES
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.checkpoints import loads_weights
from torchlint.semantics.classes import hands_on_everything
from torchlint.semantics.contexts import is_test
from torchlint.semantics.conventions import OTHER_FRAMEWORKS, uses_torch
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import iterable_of
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.iterations import Iterations
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.lexicon import Role, begins, denotes, ends, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind, all_parameters, dotted_text
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.repetition import frequency
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Path, Source, Through, onward, put_into, traced
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.texts import texts_of_graphs
from torchlint.semantics.values import Graph, Kind, Value, item_of
from torchlint.semantics.wholeprogram import calls_shown

from .dropped import drops_graph
from .monitoringpasses import MonitoringPasses, with_reads
from .retention import handed_in, kept
from .untrained import Untrained, trained_makers

_NO_MODEL = (Role.LOSS, Role.CRITERION, Role.METRIC, Role.TRANSFORM, Role.PREPROCESSING)
_MAKES = (Role.MAKING, Role.LOADING, Role.SAVING, Role.VERB)
# What modules are asked for, and hardly anything else that is called like one.
_MODULE_MEMBERS = frozenset(
    {
        "eval",
        "train",
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "modules",
        "training",
    }
    | {"to", "cuda", "half", "module", "requires_grad_"}
)
_DATA = (Role.LOADER, Role.BATCH, Role.DATASET, Role.DATA)


def _acts(name: str | None) -> bool:
    """Return whether a function of this name chooses what is done in an environment."""
    return ends(name, Role.ACTION) and begins(
        name, Role.ACTION, Role.MAKING, Role.CHOOSING, Role.COMPUTING, Role.SAMPLING, Role.BEST
    )


_FILLING = frozenset({"append", "appendleft", "extend", "insert", "add", "put", "setdefault"})
# What is asked of a result that only its shape matters of.
_OF_SHAPES = frozenset({"shape", "size", "dim", "ndim", "numel", "dtype", "device", "type"})
_JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.stack"})
_TOKENS = "torch.int64"
_SCORES = (Role.EVALUATION, Role.TEST, Role.HELD_OUT)
_SWITCHES_ON = frozenset(
    {"torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.grad", "torch.inference_mode"}
)
# What the code of files names that are for more than using a model, or for other runtimes.
_TRAINING = frozenset({"step", "requires_grad", "requires_grad_", "train", "onnx", "jit"})
# Code that wants gradients of its input, or may.
_NEEDS_GRADIENTS = (Role.INPUT_GRADIENT, Role.GUIDANCE)


@dataclass(frozen=True, slots=True)
class Region:
    """The code to run without autograd: a whole ``function``, or a run of sibling ``statements``.

    ``escapes``: a tensor with its graph leaves it for code that this file does not show. ``training``: what
    the code asks before it trains, if it runs for training as well; then autograd must stay on for that.
    ``untrained``: the pass is part of training, but its model is not; no statements if it cannot stand alone.
    ``dropped``: the file trains, but drops the graph of this pass.
    """

    function: cst.FunctionDef | None
    statements: tuple[cst.CSTNode, ...]
    escapes: bool
    training: cst.BaseExpression | None = None
    untrained: bool = False
    dropped: bool = False


# What makes something else than a module with parameters.
_MAKERS_WITHOUT = ("torchaudio.transforms.", "torchvision.transforms.", "math.", "numpy.", "builtins.")


def _has_no_parameters(module: Module, definition: cst.ClassDef) -> bool:
    """Return whether a class holds nothing that autograd would record for: a metric, a spectrogram."""
    info = module.home(definition).classes.info(definition)
    starts = [each.methods["__init__"] for each in info.lineage if "__init__" in each.methods]
    if info.opaque or info.bases != ("torch.nn.Module",) or not starts:
        return False
    return all(_makes_no_parameters(module.home(start), start) for start in starts)


def _makes_no_parameters(module: Module, start: cst.FunctionDef) -> bool:
    """Return whether an ``__init__`` neither makes parameters nor is given a module."""
    for call in module.tree.nodes_within(start, cst.Call):
        name = module.qualified(call.func) or ""
        if name in LAYERS_WITHOUT_PARAMETERS or name.startswith(_MAKERS_WITHOUT):
            continue
        made = module.value(call)
        if made.host or made.kind is Kind.DEVICE:
            continue
        if made.kind is Kind.TENSOR and not made.leaf:
            continue
        if last_name(call.func) not in ("__init__", "register_buffer"):
            return False
    # What it is given may be a module, too. What it hands on to its bases, they are asked about.
    return hands_on_everything(start) or all(
        _is_plain(module, param) for param in list(all_parameters(start.params))[1:]
    )


def _is_plain(module: Module, param: cst.Param) -> bool:
    """Return whether an argument is a number or a text, by its annotation or its default."""
    if param.annotation is not None:
        return module.source(param.annotation.annotation) in ("bool", "float", "int", "str")
    plain = (Kind.BOOL, Kind.NUMBER, Kind.STRING)
    return param.default is not None and module.value(param.default).kind in plain


@remembered
def _differentiates(module: Module) -> bool:
    """Return whether the forward pass of a module of the file takes gradients itself, as of an energy."""
    gradients = Backpropagation.of(module)
    return any(
        gradients.steps(function.body)
        for function in module.tree.nodes(cst.FunctionDef)
        if function.name.value == "forward" and module.classes.owner(function) is not None
    )


class NoGradRegions(Part):
    """The evaluation code of one file."""

    def recorded(self, call: cst.Call) -> Region | None:
        """Return what to put under ``no_grad`` because of the forward pass ``call``;
        None if it is none or meant.

        Of several in the same code only the first one is told.
        """
        if not self._evaluates(call):
            if not self._trains:
                return self._of_untrained(call) or self._of_dropped(call) if self._trains_in_program else None
            return self._of_untrained(call) or self._of_dropped(call) or self._in_both_modes(call)
        function = self.module.function(call)
        if is_test(self.module):
            return None
        if self._is_test(function, call) or self._is_of_test(function):
            return None
        if isinstance(function, cst.Lambda) or (function is not None and self._is_callback(function)):
            return None
        if self._wants_gradients(function) or self._runs_frozen(call) or self._is_differentiated(call):
            return None
        region = self._region(call, function)
        if region is None:
            return self._of_dropped(call) if self._trains else None
        for part in region.statements if region.function is None else (region.function.body,):
            for inner in self.tree.descendants(part):
                if isinstance(inner, cst.Call) and self._evaluates(inner):
                    return region if inner is call else None
        return None

    def only_infers(self, body: cst.BaseSuite) -> bool:
        """Return whether code with autograd off runs a model for evaluation,
        and nothing of it meets autograd again.

        Weights and attributes that are written inside, and what is handed to training, would.
        """
        function = self.module.function(body)
        if isinstance(function, cst.Lambda) or self._wants_gradients(function):
            return False
        gradients = Backpropagation.of(self.module)
        if gradients.computes_gradients(body) or not self._unused(body):
            return False
        if function is not None and (gradients.reaches(function) or self._hands_out(function)):
            return False
        passes = False
        for inner in self.tree.descendants(body):
            if isinstance(inner, (cst.Yield, cst.Await)) or self._writes_tensor(inner):
                return False
            if isinstance(inner, cst.Call):
                if self.module.qualified(inner.func) in _SWITCHES_ON:
                    return False
                if self._is_forward_pass(inner):
                    if self._is_tried_again(inner) or self._is_differentiated(inner):
                        return False
                    if phase(self.module, inner) is not Phase.EVALUATION:
                        return False
                    passes = True
        return passes

    def gives_away(self, function: cst.FunctionDef) -> bool:
        """Return whether code that this file does not show may get a tensor with its graph
        from a function.
        """
        return self._escapes(function, function.body)

    def _is_tried_again(self, call: cst.Call) -> bool:
        """Return whether a handler runs the same model once more: some compute gradients of their own."""
        spelt = self.tree.source(call.func)
        around = next(self.module.flow.tries(call), None)
        return around is not None and any(
            isinstance(inner, cst.Call) and self.tree.source(inner.func) == spelt
            for handler in around.handlers
            for inner in self.tree.descendants(handler)
        )

    @remembered
    def _hands_out(self, function: cst.FunctionDef) -> bool:
        """Return whether what a function computes may reach training: embeddings, samples, reference scores.

        What is called after evaluation gives scores.
        """
        if has(function.name.value, *_SCORES):
            return False
        callers = self.module.callers(function)
        if has(function.name.value, Role.COPY):
            return True
        if callers and all(phase(self.module, call) is Phase.EVALUATION for call in callers):
            return False
        return any(
            isinstance(inner, cst.Return)
            and inner.value is not None
            and self.module.function(inner) is function
            and not self._is_of_host(self.module.value(inner.value))
            for inner in self.tree.descendants(function.body)
        )

    def _is_of_host(self, value: Value) -> bool:
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
            item = item_of(value)
            return item is not None and self._is_of_host(item)
        return value.host and not value.tensorlike

    def _writes_tensor(self, node: cst.CSTNode) -> bool:
        """Return whether a statement keeps a tensor in an attribute, or changes one of an object in place."""
        match node:
            case cst.Assign():
                stored = self.module.value(node.value)
                held = stored.tensorlike or stored.kind is Kind.UNKNOWN
                return held and any(isinstance(t.target, cst.Attribute) for t in node.targets)
            case cst.AugAssign(target=cst.Attribute() as target):
                return self.module.value(target).kind in (Kind.TENSOR, Kind.UNKNOWN)
            case cst.Call(func=cst.Attribute(attr=cst.Name(name), value=owner)):
                written = name.endswith("_") and not name.endswith("__")
                return written and (isinstance(owner, cst.Attribute) or self.module.value(owner).leaf)
            case _:
                return False

    @cached_property
    def _trains(self) -> bool:
        """Whether the file backpropagates at all: without that it has no model beside those it trains."""
        return bool(Backpropagation.of(self.module).passes)

    def _of_untrained(self, call: cst.Call) -> Region | None:
        """Return the statement of a pass, in training, of a model that the file makes and never trains."""
        if not self._trains_around(call, Phase.TRAINING) or not Untrained.of(self.module).runs(call):
            return None
        statement = self.tree.statement(call)
        statements = (statement,) if self._stands_alone(call, statement) else ()
        return Region(None, statements, escapes=True, untrained=True)

    @cached_property
    def _trains_in_program(self) -> bool:
        """Whether this file, or another one of the program, computes gradients."""
        return self._trains or Untrained.of(self.module).trains_elsewhere

    def _of_dropped(self, call: cst.Call) -> Region | None:
        """Return the code of a pass whose graph the program drops, beside training or in the middle of it."""
        if not self._drops_graph(call):
            return None
        function = self.module.function(call)
        if isinstance(function, cst.FunctionDef) and self._drops_all(function):
            first = next(filter(self._drops_graph, self._calls_of(function)))
            return Region(function, (), escapes=False, dropped=True) if first is call else None
        statement = self.tree.statement(call)
        block = self.tree.parent(statement)
        siblings: list[cst.CSTNode] = [statement]
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            siblings = list(block.body)
        place = siblings.index(statement)
        if self._dropped_in(statement)[0] is not call or (place and self._is_dropped(siblings[place - 1])):
            # It is told, or wrapped, with what comes before.
            return None
        statements = tuple(itertools.takewhile(self._is_dropped, siblings[place:]))
        # Where autocast keeps weights that it has cast without autograd, they get no gradient later.
        return Region(None, statements, escapes=True, dropped=True)

    @remembered
    def _dropped_in(self, statement: cst.CSTNode) -> list[cst.Call]:
        """Return the passes in a statement whose graph is dropped, the outer before the inner."""
        calls = (node for node in self.tree.descendants(statement) if isinstance(node, cst.Call))
        return list(filter(self._drops_graph, calls))

    @remembered
    def _is_dropped(self, statement: cst.CSTNode) -> bool:
        """Return whether a statement only runs such a pass."""
        passes = self._dropped_in(statement) if isinstance(statement, cst.SimpleStatementLine) else []
        return bool(passes) and self._stands_alone(passes[0], statement)

    @remembered
    def _drops_graph(self, call: cst.Call) -> bool:
        if self._trains_around(call, Phase.EVALUATION):
            passes = self._is_forward_pass(call)
        else:
            passes = self._trains_around(call, Phase.TRAINING, Phase.UNKNOWN) and self._runs_model(call)
        if not passes:
            return False
        return drops_graph(self.module, call) and not Backpropagation.of(self.module).reaches(call)

    @remembered
    def _drops_all(self, function: cst.FunctionDef) -> bool:
        """Return whether a function computes nothing with a graph that it uses, stores or hands out."""
        nodes = list(self.tree.descendants(function.body))
        if Backpropagation.of(self.module).computes_gradients(function.body):
            return False
        if any(map(self._writes_tensor, nodes)) or not all(map(self._returns_data, nodes)):
            return False
        passes = filter(self._runs_model, self._calls_of(function))
        return all(map(self._drops_graph, passes)) and not self._escapes(function, function.body)

    def _returns_data(self, node: cst.CSTNode) -> bool:
        """Return whether a node returns no tensor that may have a graph."""
        if not isinstance(node, cst.Return) or node.value is None:
            return not isinstance(node, cst.Yield)
        parts = [e.value for e in node.value.elements] if isinstance(node.value, cst.Tuple) else [node.value]
        return all(map(self._is_data, parts))

    def _is_data(self, node: cst.BaseExpression) -> bool:
        """Return whether a value is of the host, without a graph, or a container of such values."""
        value = self.module.value(node)
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
            return not Backpropagation.of(self.module).carries_graph(node)
        return self._is_of_host(value) or (value.tensorlike and value.graph is Graph.DETACHED)

    def _calls_of(self, function: cst.FunctionDef) -> Sequence[cst.Call]:
        return self.tree.nodes_within(function.body, cst.Call)

    def _trains_around(self, call: cst.Call, *phases: Phase) -> bool:
        """Return whether a call in training, with autograd on,
        may be a pass of a model that needs none of it.
        """
        module = self.module
        if not call.args or phase(module, call) not in phases:
            return False
        if module.qualified(call.func) is not None or has(last_name(call.func), *_NO_MODEL):
            return False
        function = module.function(call)
        if isinstance(function, cst.Lambda) or grad(module, call) is not Grad.ON or is_test(module):
            return False
        if self._is_switched_on(call) or self._wants_gradients(function) or self._runs_frozen(call):
            return False
        return not self._is_differentiated(call)

    def _stands_alone(self, call: cst.Call, statement: cst.CSTNode) -> bool:
        """Return whether a statement computes nothing with a graph beside a pass that needs none."""
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            return False
        inside = {call, *self.tree.descendants(call)}
        for inner in self.tree.descendants(statement):
            if inner in inside or not isinstance(inner, (cst.Name, cst.Call)) or self._is_target(inner):
                continue
            if isinstance(inner, cst.Call) and self.tree.contains(inner, call):
                continue
            value = self.module.value(inner)
            if value.kind is Kind.UNKNOWN or (value.tensorlike and value.graph is not Graph.DETACHED):
                named = isinstance(inner, cst.Name) and isinstance(
                    self.tree.parent(inner), (cst.Attribute, cst.Arg)
                )
                if not named or value.tensorlike:
                    return False
        return True

    def _in_both_modes(self, call: cst.Call) -> Region | None:
        """Return the statement of a forward pass that a loop makes for training and for validation alike."""
        if phase(self.module, call) is not Phase.UNKNOWN:
            return None
        training = MonitoringPasses.of(self.module).asked_before_training(call)
        if training is None or not self._is_forward_pass(call):
            return None
        function = self.module.function(call)
        if isinstance(function, cst.Lambda) or grad(self.module, call) is not Grad.ON:
            return None
        if self._is_switched_on(call) or self._wants_gradients(function) or self._runs_frozen(call):
            return None
        if self._is_differentiated(call):
            return None
        statement = self.tree.statement(call)
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        loop = self.module.flow.loops(call)[0]
        first = next(
            inner
            for inner in self.tree.descendants(loop)
            if isinstance(inner, cst.Call)
            and self._is_forward_pass(inner)
            and MonitoringPasses.of(self.module).asked_before_training(inner) is not None
        )
        escapes = Backpropagation.of(self.module).asked_for or (
            function is not None and self._escapes(function, statement)
        )
        return Region(None, (statement,), escapes, training) if first is call else None

    def _is_test(self, function: cst.CSTNode | None, call: cst.Call) -> bool:
        """Return whether a function is a unit test, or tries a model out once."""
        if not isinstance(function, cst.FunctionDef) or not function.name.value.startswith("test"):
            return False
        if function in Iterations.of(self.module).processes:
            return False
        if is_test(self.module):
            return True
        if not self.module.flow.loops(call):
            return not self._is_called_on_trained(function, call)
        # ``pytest`` needs no import; what it runs gets nothing to work on, and asserts.
        inside = self.tree.descendants(function.body)
        return not function.params.params and any(isinstance(node, cst.Assert) for node in inside)

    def _is_called_on_trained(self, function: cst.FunctionDef, call: cst.Call) -> bool:
        """Return whether a program that trains calls a function itself,
        for a model that is made outside of it.
        """
        root = start_of(call.func, cst.Attribute)
        if not isinstance(root, cst.Name) or not self.module.callers(function):
            return False
        scope = self.module.names.lookup(root.value, root)
        outside = scope is not None and scope is self.module.names.module_scope
        outside = outside or self.module.classes.instance_class(root) is not None
        return outside and Backpropagation.of(self.module).computes_gradients(self.tree.root)

    def _is_of_test(self, function: cst.CSTNode | None) -> bool:
        """Return whether unit tests call a function, and nothing else does."""
        callers = self.module.callers(function) if isinstance(function, cst.FunctionDef) else []
        around = [self.module.function(caller) for caller in callers]
        return bool(around) and all(
            isinstance(outer, cst.FunctionDef)
            and outer.name.value.startswith("test_")
            and outer not in Iterations.of(self.module).processes
            and not self.module.callers(outer)
            for outer in around
        )

    def _is_callback(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is called from elsewhere, in the mode on there.

        One made in another function, or a private one that is handed on; the file calls neither itself.
        """
        if self.module.callers(function) or function in Iterations.of(self.module).processes:
            # An engine calls what it is made with as it is.
            return False
        name = function.name.value
        return self.module.function(function) is not None or (
            name.startswith("_") and not name.endswith("__") and self._is_handed_on(name)
        )

    def _is_handed_on(self, name: str) -> bool:
        """Return whether a method or function of this name is used as a value: ``run = self._run``."""
        attributes = self.tree.attributes_by_name.get(name, ())
        return any(not self.tree.is_called(read) for read in (*attributes, *self.module.names.reads(name)))

    # ------------------------------------------------------------------ forward passes

    def _evaluates(self, call: cst.Call) -> bool:
        """Return whether a call is the forward pass of a model, made for evaluation with autograd on.

        So is the call of a helper that makes the pass, if training calls the helper as well.
        """
        module = self.module
        # What a place is for is a cheaper question than what is called there, and answers most calls.
        if not call.args or module.qualified(call.func) is not None:
            return False
        current = phase(module, call)
        if current in (Phase.SETUP, Phase.UNKNOWN) and self._is_of_inference_script(call):
            current = Phase.EVALUATION
        if current in (Phase.UNKNOWN, Phase.TRAINING) and self._only_acts(module.function(call)):
            current = Phase.EVALUATION
        if current in (Phase.UNKNOWN, Phase.SETUP) and self._serves(call):
            current = Phase.EVALUATION
        if current not in (Phase.EVALUATION, Phase.TRAINING) or grad(module, call) is not Grad.ON:
            return False
        if not self._passes(call) and not (current is Phase.EVALUATION and self._is_part_pass(call)):
            return False
        if current is Phase.TRAINING and not MonitoringPasses.of(self.module).holds(call):
            return False
        if self._is_switched_on(call):
            return False
        return module.value(call).graph is not Graph.DETACHED and not self._proves_no_graph(call)

    @remembered
    def _passes(self, call: cst.Call) -> bool:
        """Return whether a call runs a model, by itself or in a helper."""
        return self._is_forward_pass(call) or self._is_shared_pass(call) or self._is_learnt_through(call)

    def _only_acts(self, function: cst.CSTNode | None) -> bool:
        """Return whether a function chooses actions for an environment, and gives nothing else to anyone.

        What it returns is in host memory. One that keeps the probabilities of its actions learns by them.
        """
        if not isinstance(function, cst.FunctionDef) or not _acts(function.name.value):
            return False
        return self._hands_out_actions(function)

    @remembered
    def _hands_out_actions(self, function: cst.FunctionDef) -> bool:
        returns = False
        for inner in self.tree.descendants(function.body):
            match inner:
                case cst.Return(value=value) if value is not None:
                    returns = True
                    if not self._is_of_host(self.module.value(value)):
                        return False
                case cst.Call(func=cst.Attribute(attr=cst.Name(name))) if name in _FILLING:
                    if not all(self._is_of_host(self.module.value(arg.value)) for arg in inner.args):
                        return False
                case cst.Yield():
                    return False
                case _ if self._writes_tensor(inner):
                    return False
        return returns

    def _serves(self, call: cst.Call) -> bool:
        """Return whether a function of a file that trains nothing runs a model,
        and hands out nothing with a graph.

        The file itself has put the model into evaluation mode, for good: at its own level, or in the
        constructor of the class that keeps it.
        """
        function = self.module.function(call)
        if not isinstance(function, cst.FunctionDef) or not self._set_to_evaluation:
            return False
        model, owner = call.func, self.module.classes.owner(function)
        if owner is not None and self.module.classes.info(owner).kind is Kind.MODULE:
            return False
        home = owner if isinstance(model, cst.Attribute) else None
        if isinstance(model, cst.Name) and self.module.names.lookup(model.value, model) is not (
            self.module.names.module_scope
        ):
            return False
        # Whether the file trains is asked last, since all that it calls has to be known for that.
        if (self.tree.source(model), home) not in self._set_to_evaluation or not self._sets_up_for_use:
            return False
        if self._is_of_serving_program(owner or function):
            return True
        return not self._returns_graph(function) and not self._escapes(function, function.body)

    @remembered
    def _is_of_serving_program(self, definition: cst.ClassDef | cst.FunctionDef) -> bool:
        """Return whether other files use what this one defines, all of them seen,
        and none computes gradients.
        """
        name = definition.name.value
        if self.link is None or not self.link.is_used(self.module, name):
            return False
        if not self.link.shows_users(self.module, name):
            return False
        around = self.module.companions("backward", "autograd", "ptim")
        return not any(NoGradRegions.of(each)._trains_or_exports for each in around)

    @cached_property
    def _sets_up_for_use(self) -> bool:
        """Whether the file puts models into evaluation mode, and neither trains nor exports anything."""
        if Backpropagation.of(self.module).passes or not self.tree.mentions("eval"):
            return False
        return not self._trains_or_exports

    @cached_property
    def _set_to_evaluation(self) -> frozenset[tuple[str, cst.ClassDef | None]]:
        """What is put into evaluation mode where the file is imported, or an object of a class is made."""
        found = set()
        for call in self.tree.calls_by_name.get("eval", ()):
            if not isinstance(call.func, cst.Attribute) or call.args:
                continue
            function = self.module.function(call)
            owner = None
            if function is not None:
                if not isinstance(function, cst.FunctionDef) or function.name.value != "__init__":
                    continue
                owner = self.module.classes.owner(function)
            found.add((self.tree.source(call.func.value), owner))
            match self.tree.parent(call):
                case cst.Assign(targets=[cst.AssignTarget(target=target)]):
                    found.add((self.tree.source(target), owner))
                case _:
                    pass
        return frozenset(found)

    def _is_of_inference_script(self, call: cst.Call) -> bool:
        """Return whether a call is at the level of the module, or in a function that is only called from
        there, in a file that loads weights and trains nothing.

        The model has to be of a class that is known, or one that is given weights here: wrappers see to the
        grad mode themselves.
        """
        function = self.module.function(call)
        if function is not None and self.module.classes.owner(function) is not None:
            return False  # which is told at once, and whether the file trains is not
        if not self._loads_for_use:
            return False
        model = self.module.value(call.func)
        definition = model.definition
        if model.kind is Kind.FUNCTION and definition and self.module.classes.owner(definition) is None:
            return False
        known = model.cls is not None or model.definition is not None
        if not known and self.tree.source(call.func) not in self._given_weights:
            return False
        if not self._is_of_script(call):
            return False
        # Whether the file trains leads to all that it calls, which only counts if this is a pass.
        return (self._passes(call) or self._is_part_pass(call)) and not self._trains_or_exports

    @solved(nothing=False)
    def _is_of_script(self, node: cst.CSTNode) -> bool:
        """Return whether a node is at the level of the module,
        or in a function that is called, and only from there.
        """
        function = self.module.function(node)
        if not isinstance(function, cst.FunctionDef) or self.module.classes.owner(function) is not None:
            return function is None
        callers = self.module.callers(function)
        return bool(callers) and all(map(self._is_of_script, callers))

    @cached_property
    def _given_weights(self) -> frozenset[str]:
        """What ``load_state_dict`` of the file is called on."""
        calls = self.tree.calls_by_name.get("load_state_dict", ())
        return frozenset(
            self.tree.source(call.func.value) for call in calls if isinstance(call.func, cst.Attribute)
        )

    @cached_property
    def _trains_or_exports(self) -> bool:
        """Whether the code names what trains models, or turns them into another format."""
        for name, nodes in self.tree.names_by_name.items():
            tells = name in _TRAINING or name.endswith("Trainer") or has(name, Role.OPTIMIZER, Role.EXPORT)
            if tells and name not in self._options and not all(map(self._is_no_use, nodes)):
                return True
        return Backpropagation.of(self.module).computes_gradients(self.tree.root)

    def _is_no_use(self, name: cst.Name) -> bool:
        """Return whether it is ``MNIST(root, train=False)``, or an import of what may be used or not."""
        parent = self.tree.parent(name)
        if isinstance(parent, cst.Attribute):
            parent = self.tree.parent(parent)
        if isinstance(parent, cst.ImportAlias):
            return True
        return isinstance(parent, cst.AsName) or (isinstance(parent, cst.Arg) and parent.keyword is name)

    @cached_property
    def _options(self) -> frozenset[str]:
        """The variables that hold what is given on the command line: ``opt = parser.parse_args()``."""
        parsed = (call for name in NAMESPACES for call in self.tree.calls_by_name.get(name, ()))
        assigned = (self.tree.parent(call) for call in parsed)
        return frozenset(
            target.target.value
            for statement in assigned
            if isinstance(statement, cst.Assign)
            for target in statement.targets
            if isinstance(target.target, cst.Name)
        )

    @cached_property
    def _loads_for_use(self) -> bool:
        """Whether the file loads weights, and has no backward pass of its own."""
        return not Backpropagation.of(self.module).passes and loads_weights(self.module)

    def _is_forward_pass(self, call: cst.Call) -> bool:
        """Return whether a call runs a model, and no copy of one: copies are often frozen elsewhere."""
        return not has(last_name(self._model_run(call)), Role.COPY) and self._runs_model(call)

    def _model_run(self, call: cst.Call) -> cst.BaseExpression:
        """Return the model of ``model(x)``, ``model.forward(x)`` and ``model.encode(x)``."""
        match call.func:
            case cst.Attribute(value=model, attr=cst.Name(name)) if name == "forward" or self._computes(call):
                return model
            case _:
                return call.func

    def _computes(self, call: cst.Call) -> bool:
        """Return whether a call is of a method of a model of the project that computes
        with its parameters.
        """
        method = self.module.callee(call)
        owner = self.module.classes.owner(method) if isinstance(method, cst.FunctionDef) else None
        if owner is None or self.module.classes.info(owner).kind is not Kind.MODULE:
            return False
        assert isinstance(call.func, cst.Attribute)
        if self.module.classes.instance_class(call.func.value) is not None:
            return False
        result = self.module.value(call)
        return result.tensorlike and result.graph is Graph.ATTACHED

    def _runs_model(self, call: cst.Call) -> bool:
        """Return whether a call runs a model that has parameters, and not only to try it out."""
        module = self.module
        model = self._model_run(call)
        name = last_name(model)
        if name is None or not call.args or module.qualified(model) is not None:
            return False
        if begins(name, *_MAKES) or has(name, *_NO_MODEL):
            return False
        value = module.value(model)
        if value.kind is not Kind.MODULE or value.cls in LAYERS_WITHOUT_PARAMETERS:
            return False
        return self._shown_module(model, value) and not self._tries_out(call)

    def _is_part_pass(self, call: cst.Call) -> bool:
        """Return whether a call runs a part of a model of another file: ``self.model.decoder(z)``.

        The name tells that it is a layer and no method, and the model was put into evaluation mode here.
        """
        part = call.func
        if not isinstance(part, cst.Attribute) or not denotes(part.attr.value, Role.MODEL_PART):
            return False
        value, model = self.module.value(part), self.module.value(part.value)
        if value.kind is not Kind.UNKNOWN or model.kind is not Kind.MODULE or model.definition is not None:
            return False
        return "eval" in self.module.inference.clues.used_attributes(part.value)

    def _is_shared_pass(self, call: cst.Call) -> bool:
        """Return whether a call runs a function, made for training too, that computes a forward pass."""
        callee = self.module.callee(call)
        if not isinstance(callee, cst.FunctionDef) or Backpropagation.of(self.module).reaches(call):
            return False
        return self._shares(callee)

    def _is_learnt_through(self, call: cst.Call) -> bool:
        """Return whether a call is of a method of a model of another file
        that training differentiates elsewhere.
        """
        spelt = self.tree.source(call.func)
        return spelt in self._differentiated and not Backpropagation.of(self.module).reaches(call)

    @cached_property
    def _differentiated(self) -> frozenset[str]:
        """The methods of models that the file backpropagates through, as they are spelt."""
        module = self.module
        return frozenset(
            self.tree.source(call.func)
            for call in self.tree.nodes(cst.Call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value not in RETURNS_SELF
            # What a model makes to begin with, such as an empty state, is no pass.
            if not begins(call.func.attr.value, *_MAKES)
            if call.args and module.qualified(call.func) is None
            if module.callee(call) is None and module.value(call.func.value).kind is Kind.MODULE
            if grad(module, call) is Grad.ON and Backpropagation.of(module).reaches(call)
        )

    @remembered
    def _shares(self, function: cst.FunctionDef) -> bool:
        module = self.module
        if not Backpropagation.of(module).reaches(function) or self._is_callback(function):
            return False
        if self._wants_gradients(function) or Backpropagation.of(module).computes_gradients(function.body):
            return False
        return any(
            isinstance(inner, cst.Call)
            and module.function(inner) is function
            and grad(module, inner) is Grad.ON
            and self._is_forward_pass(inner)
            and not self._runs_frozen(inner)
            for inner in self.tree.descendants(function.body)
        )

    def _shown_module(self, model: cst.BaseExpression, value: Value) -> bool:
        """Return whether more than its name shows that something is a module.

        Wrappers that are called ``model`` (pipelines, ONNX sessions) see to the grad mode themselves, and
        what a file without torch calls a policy may be any function.
        """
        known = value.cls is not None or value.definition is not None or value.origin is not None
        if known or self.module.inference.clues.used_attributes(model) & _MODULE_MEMBERS:
            return True
        if not isinstance(model, cst.Attribute):
            return uses_torch(self.module.names)
        assigned = self.module.names.attributes.get(model.attr.value, ())
        return any(isinstance(a.value, cst.Call) and self._makes_module(a.value) for a in assigned)

    def _makes_module(self, call: cst.Call) -> bool:
        """Return whether a call makes a model of a library, all of whose models are modules."""
        match call.func:
            case cst.Attribute(value=cst.Call() as made, attr=cst.Name(method)) if method in RETURNS_SELF:
                return self._makes_module(made)
            case _:
                dotted = self.module.qualified(call.func) or ""
        if dotted.startswith("transformers.Auto") and dotted.endswith(".from_pretrained"):
            return self.module.value(call).kind is Kind.MODULE
        return dotted.startswith(("torchvision.models.", "timm.create_model", "torch.hub.load"))

    def _tries_out(self, call: cst.Call) -> bool:
        """Return whether a made-up input is tried out: to warm up, to count operations,
        to see what shape comes.
        """
        parent = self.tree.parent(call)
        inspected = False not in verdicts(self.module, call, _inspects)
        if self.module.flow.loops(call):
            return inspected and not isinstance(parent, (cst.Expr, cst.Assign))
        return inspected or isinstance(parent, cst.Expr) or self._is_demonstration(call)

    def _is_demonstration(self, call: cst.Call) -> bool:
        """Return whether a file that defines a model shows, when it is run by itself, that the model runs.

        Nothing was loaded or trained, and what goes in is random.
        """
        if self.module.function(call) is not None or Backpropagation.of(self.module).passes:
            return False
        branches = (branch.construct for branch in self.module.flow.branches(call))
        script = next(branches, None) if places.main_guarded(self.module, call) else self.tree.root
        if script is None or any(map(self._loads, self.tree.descendants(script))):
            return False
        return any(self._is_random(argument.value) for argument in call.args)

    def _loads(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and (
            node.value == "weights" or has(node.value, Role.LOADING, Role.CHECKPOINT)
        )

    @solved(False)
    def _is_random(self, node: cst.BaseExpression) -> bool:
        """Return whether random numbers, or a constant, are all that a value is made from."""
        for inner in self.tree.descendants(node):
            if isinstance(inner, cst.Call):
                made = self.module.qualified(inner.func) or ""
                if made in FACTORIES or made.startswith("numpy.random."):
                    return True
            for binding in self.module.bindings(inner):
                if binding.value is not None and self._is_random(binding.value):
                    return True
        return False

    def _is_switched_on(self, call: cst.Call) -> bool:
        """Return whether autograd is meant: switched on around a forward pass, or what failed without it.

        ``except RuntimeError:`` runs models again that compute gradients of their own.
        """
        flow = self.module.flow
        tried = (self.tree.parent(handler) for handler in flow.alternatives(call))
        if any(isinstance(t, cst.Try) and self._runs_without(t.body, call) for t in tried):
            return True
        managers = (item.item.func for item in flow.contexts(call) if isinstance(item.item, cst.Call))
        switches = ("torch.enable_grad", "torch.set_grad_enabled")
        return any(self.module.qualified(manager) in switches for manager in managers)

    def _runs_without(self, body: cst.CSTNode, call: cst.Call) -> bool:
        """Return whether the same model runs in a block with autograd off."""
        spelt = self.tree.source(call.func)
        return any(
            isinstance(inner, cst.Call)
            and self.tree.source(inner.func) == spelt
            and grad(self.module, inner) is Grad.OFF
            for inner in self.tree.descendants(body)
        )

    def _proves_no_graph(self, call: cst.Call) -> bool:
        """Return whether ``.numpy()`` of the result, which raises for a tensor with a graph,
        shows there is none.
        """
        return any("numpy" in self._methods_on(read) for read in with_reads(self.module, call))

    def _methods_on(self, node: cst.CSTNode) -> list[str]:
        """Return the methods called on a tensor one after the other, as far as ``detach``."""
        methods: list[str] = []
        while True:
            call = self.tree.method_call(node)
            method = last_name(call.func) if call is not None else None
            if call is None or method is None or method in ("detach", "item", "argmax", "tolist"):
                return methods
            methods.append(method)
            node = call

    @remembered
    def _switches_mode(self, function: cst.FunctionDef) -> bool:
        """Return whether a function puts a model into evaluation mode."""
        return any(
            isinstance(call.func, cst.Attribute) and call.func.attr.value == "eval" and not call.args
            for call in self.tree.nodes_within(function.body, cst.Call)
        )

    @remembered
    def _wants_gradients(self, function: cst.FunctionDef | None) -> bool:
        """Return whether a function goes along the graph, or its name, or that of its class,
        speaks of gradients.
        """
        if function is None:
            return False
        if any(isinstance(n, cst.Name) and n.value == "grad_fn" for n in self.tree.descendants(function)):
            return True
        if self._is_of_other_framework(function) or self._says_so(function):
            return True
        owner = self.module.classes.owner(function)
        names = [function.name.value] + ([owner.name.value] if owner is not None else [])
        return any(has(name, *_NEEDS_GRADIENTS) for name in names)

    def _is_differentiated(self, call: cst.Call) -> bool:
        """Return whether a forward pass is given an attribute that its class wants gradients of,
        or takes gradients.

        ``self.x.requires_grad_()``: who is handed the outputs differentiates them with respect to it. A model
        that nothing shows may be any of the program.
        """
        if Backpropagation.of(self.module).steps(call):
            return True
        if not self.module.value(self._model_run(call)).definitions:
            if any(map(_differentiates, (self.module, *self.module.companions("autograd")))):
                return True
        owner = self.tree.enclosing(call, cst.ClassDef)
        given = {dotted_text(arg.value) for arg in call.args if isinstance(arg.value, cst.Attribute)}
        return owner is not None and any(
            isinstance(asked.func, cst.Attribute)
            and not asked.args
            and dotted_text(asked.func.value) in given
            and self.tree.enclosing(asked, cst.ClassDef) is owner
            for asked in self.tree.calls_by_name.get("requires_grad_", ())
        )

    def _says_so(self, function: cst.FunctionDef) -> bool:
        """Return whether it is ``preprocess(x, no_grad=False)``."""
        return self.tree.mentions("no_grad=False") and any(
            isinstance(arg, cst.Arg)
            and arg.keyword is not None
            and arg.keyword.value == "no_grad"
            and self.module.value(arg.value).constant is False
            for arg in self.tree.descendants(function.body)
        )

    def _is_of_other_framework(self, function: cst.FunctionDef) -> bool:
        """Return whether a function works on the arrays of another library,
        in a file that uses torch as well.
        """
        if not self._other_frameworks:
            return False
        names = self.tree.names_in(function)
        return not names.isdisjoint(self._other_frameworks)

    @cached_property
    def _other_frameworks(self) -> frozenset[str]:
        """The names under which the file imports libraries whose models are no modules of torch."""
        bindings = (b for found in self.module.names.module_scope.bindings.values() for b in found)
        return frozenset(
            b.name for b in bindings if (b.imported or "").partition(".")[0] in OTHER_FRAMEWORKS - {"cv2"}
        )

    def _runs_frozen(self, call: cst.Call) -> bool:
        return self.is_frozen(self._model_run(call))

    def is_frozen(self, model: cst.BaseExpression) -> bool:
        """Return whether a model has no parameters, or gradients are turned off for all,
        in the file by its name.
        """
        definition = self.module.value(model).definition
        if isinstance(definition, cst.ClassDef) and _has_no_parameters(self.module, definition):
            return True
        if isinstance(model, cst.Call):
            return self._wraps_frozen(model)
        name = last_name(model)
        if name is not None and name in self._frozen:
            return True
        bindings = self.module.bindings(model)
        if bindings and all(
            isinstance(b.value, cst.Call) and not b.path and self._wraps_frozen(b.value) for b in bindings
        ):
            return True
        return self._is_frozen_elsewhere(model)

    def _wraps_frozen(self, call: cst.Call) -> bool:
        """Return whether a module is made from models whose parameters the file freezes,
        and from no other.
        """
        models = [a.value for a in call.args if self.module.value(a.value).kind is Kind.MODULE]
        return bool(models) and all(last_name(model) in self._frozen for model in models)

    def _is_frozen_elsewhere(self, model: cst.BaseExpression) -> bool:
        """Return whether the program turns gradients off for all parameters of a model, under another name
        or in another file.

        It goes by the calls that make the model, and only where those are out of sight by its name.
        """
        others = () if self.link is None else self.link.companions(self, ("requires_grad", "detach_"))
        regions = (self, *map(type(self).counterpart, others))
        if not any(each._freezing for each in regions):
            return False
        if self._is_told_to_freeze(model, frozenset().union(*(each._freezing_methods for each in regions))):
            return True
        makers = self._makers(model)
        if makers and None not in makers:
            frozen = frozenset[cst.CSTNode | None]().union(*(each._makers_of_frozen for each in regions))
            if makers <= self._makers_of_frozen:
                return True
            # What an optimizer gets is frozen in part, or has got adapters.
            return makers <= frozen and makers.isdisjoint(trained_makers(self.module) or ())
        name = last_name(model)
        return any(name in each._frozen for each in regions)

    def _is_told_to_freeze(self, model: cst.BaseExpression, methods: frozenset[cst.FunctionDef]) -> bool:
        """Return whether the file calls a method of a model that turns its gradients off:
        ``encoder.freeze()``.
        """
        name = last_name(model)
        return name is not None and any(
            isinstance(call.func, cst.Attribute)
            and last_name(call.func.value) == name
            and self.module.callee(call) is method
            for method in methods
            for call in self.tree.calls_by_name.get(method.name.value, ())
        )

    @cached_property
    def _freezing_methods(self) -> frozenset[cst.FunctionDef]:
        """The methods that turn gradients off for an object, or for a model that it holds, and for no part of
        it on again.
        """
        methods = (
            function
            for node, model in self._freezing
            if isinstance(function := self.module.function(node), cst.FunctionDef)
            and self.module.classes.owner(function) is not None
            and self.module.source(model).startswith("self")
        )
        return frozenset(method for method in methods if not self._turns_on(method))

    def _turns_on(self, method: cst.FunctionDef) -> bool:
        return any(
            isinstance(target.target, cst.Attribute)
            and target.target.attr.value == "requires_grad"
            and self.module.value(assign.value).constant is not False
            for assign in self.tree.nodes_within(method, cst.Assign)
            for target in assign.targets
        )

    @traced(Through.RETURNS | Through.PARAMETERS)
    def _makers(self, node: cst.CSTNode, path: Path) -> cst.Call | list[Source] | None:
        """Return the calls that can have made a model."""
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in RETURNS_SELF:
                return onward(owner, path=path)
            case cst.Call() if not path:
                callee = self.module.callee(node)
                makes = not isinstance(callee, cst.FunctionDef) or callee.name.value == "__init__"
                return node if makes else None
            case _:
                return None

    @cached_property
    def _makers_of_frozen(self) -> frozenset[cst.CSTNode | None]:
        """The calls that make models for whose parameters this file turns gradients off."""
        models = (model for _, model in self._freezing)
        return frozenset[cst.CSTNode | None]().union(*map(self._makers, models)) - {None}

    @cached_property
    def _frozen(self) -> set[str]:
        """The names of models for whose parameters the file turns gradients off."""
        return {name for node, model in self._freezing for name in self._names_at(node, model)}

    @cached_property
    def _freezing(self) -> list[tuple[cst.CSTNode, cst.BaseExpression]]:
        """Where the file turns gradients off for all parameters of a model, and of which."""
        found: list[tuple[cst.CSTNode, cst.BaseExpression]] = []
        for call in self.tree.nodes(cst.Call):
            match call:
                case cst.Call(
                    func=cst.Attribute(attr=cst.Name("requires_grad_"), value=owner), args=[argument]
                ):
                    if self.module.value(argument.value).constant is False:
                        found.append((call, self._model_of(owner)))
                case cst.Call(func=cst.Attribute(attr=cst.Name("detach_"), value=owner), args=[]):
                    # ``for parameter in teacher.parameters(): parameter.detach_()``
                    model = self._model_of(owner)
                    if model is not owner and not self._picks_parameters(call):
                        found.append((call, model))
                case _:
                    pass
        for assign in self.tree.nodes(cst.Assign):
            match assign.targets[0].target:
                case cst.Attribute(attr=cst.Name("requires_grad"), value=owner):
                    constant = self.module.value(assign.value).constant
                    if constant is False and not self._picks_parameters(assign):
                        found.append((assign, self._model_of(owner)))
                case _:
                    pass
        return found

    def _picks_parameters(self, node: cst.CSTNode) -> bool:
        """Return whether a loop does ``node`` for some of the parameters it visits:
        ``if "head" not in name: …``.
        """
        loop = next(iter(self.module.flow.statement_loops(node)), None)
        return loop is not None and any(self.module.flow.branches(node, within=loop))

    def _model_of(self, owner: cst.BaseExpression) -> cst.BaseExpression:
        """Return the model that ``owner`` is, or whose parameters the loop around it visits."""
        if isinstance(owner, cst.Name):
            for binding in self.module.bindings(owner):
                match binding.value:
                    case cst.Call(
                        func=cst.Attribute(attr=cst.Name("parameters" | "named_parameters"), value=model)
                    ) if binding.kind is BindingKind.LOOP:
                        return model
                    case _:
                        pass
        return owner

    def _names_at(self, node: cst.CSTNode, model: cst.BaseExpression) -> Iterator[str]:
        """Yield the names of a model, including those that the statement which freezes it assigns."""
        yield from self._names(model)
        # ``self.net = make().eval().requires_grad_(False)``
        for around in self.tree.ancestors(node):
            if isinstance(around, cst.Assign):
                for target in around.targets:
                    yield from self._names(target.target)
            if isinstance(around, cst.BaseStatement):
                return

    def _names(self, node: cst.BaseExpression) -> Iterator[str]:
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        name = last_name(node)
        if name is not None:
            yield name

    # ------------------------------------------------------------------ regions

    def _region(self, call: cst.Call, function: cst.FunctionDef | None) -> Region | None:
        gradients = Backpropagation.of(self.module)
        if function is not None:
            if gradients.reaches(function):
                return None
            whole = not gradients.computes_gradients(function.body)
            if whole and not self.is_evident(call, function):
                return None
            if whole and self._only_evaluates(function):
                if not self._unused(function.body):
                    return None
                return Region(function, (), self._escapes(function, function.body))
        statements = self._statements(call)
        if not statements or not all(self._unused(statement) for statement in statements):
            return None
        if self._needed_behind(statements):
            return None
        escapes = gradients.asked_for or any(
            self._shows_graph(s) or (function is not None and self._escapes(function, s)) for s in statements
        )
        return Region(None, statements, escapes)

    def _needed_behind(self, statements: tuple[cst.CSTNode, ...]) -> bool:
        """Return whether code behind some statements asks what they compute for its graph."""
        targets = (node for s in statements for node in self.tree.descendants(s) if self._is_target(node))
        for target in targets:
            binding = self.module.binding_of(target)
            for use in self.module.uses(binding) if binding is not None else ():
                around = self.tree.parent(use)
                if isinstance(around, cst.Attribute) and around.attr.value in (
                    "retain_grad",
                    "register_hook",
                ):
                    return True
                call = self.tree.parent(around) if isinstance(around, cst.Arg) else None
                if not isinstance(call, cst.Call) or any(self.tree.contains(s, use) for s in statements):
                    continue
                gradients = Backpropagation.of(self.module)
                if any(gradients.computes_gradients(each.body) for each in self.module.callees(call)):
                    return True
        return False

    def _only_evaluates(self, function: cst.FunctionDef) -> bool:
        """Return whether evaluation is all that a function without gradients is for."""
        if phase(self.module, _first_statement(function)) is Phase.EVALUATION:
            return True
        if MonitoringPasses.of(self.module).only_beside_steps(function):
            return True
        return any(
            isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "eval"
            and self._is_passed(call.func.value)
            for statement in function.body.body
            if isinstance(statement, cst.SimpleStatementLine)
            for call in self.tree.descendants(statement)
        )

    def _is_passed(self, node: cst.BaseExpression) -> bool:
        """Return whether a model comes from outside of the function that puts it into evaluation mode."""
        root = start_of(node, cst.Attribute)
        return isinstance(root, cst.Name) and all(
            binding.kind is BindingKind.PARAMETER for binding in self.module.bindings(root)
        )

    @remembered
    def is_evident(self, node: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether more than a name of many meanings (``predict``, ``evaluate``) speaks for evaluation.

        A method of a module runs in the mode of its callers, so that it must be evident of all of them,
        unless it decodes: of the tokens that it hands out nobody can have gradients. A function that returns
        what one forward pass gives may be part of a training step of another file.
        """
        if self._switches_mode(function):
            return True
        owner = self.module.classes.owner(function)
        if owner is not None and self.module.classes.info(owner).kind is Kind.MODULE:
            if self._decodes(node, function):
                return True
            # Where a result with its graph gets to the callers, they are told of it.
            evident = self._evident_of_callers(function) if not self._returns_graph(function) else []
            return bool(evident) and all(evident)
        if self._over_data(node):
            return True
        # One pass for its effects alone warms up, counts operations or fills lazy modules.
        alone = isinstance(self.tree.parent(node), cst.Expr)
        if not alone and not self._returns_graph(function) and not self._escapes(function, function.body):
            return True
        return any(self._evident_of_callers(function))

    def _decodes(self, node: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a forward pass is run for one token after the other, or in front of those that are,
        and tokens are all that is kept.
        """
        if Backpropagation.of(self.module).asked_for or not self._runs_by_token(node, function):
            return False
        returned = [
            inner.value
            for inner in self.tree.descendants(function.body)
            if isinstance(inner, cst.Return) and inner.value is not None
        ]
        return all(map(self._is_of_tokens, returned)) and not self._stores_graph(function.body)

    def _runs_by_token(self, node: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        """Return whether a forward pass, or a later one of the same function, is run for each token."""
        if frequency(self.module, node) is Frequency.TOKEN:
            return True
        return any(
            frequency(self.module, call) is Frequency.TOKEN and self._evaluates(call)
            for call in self.tree.nodes_within(function.body, cst.Call)
        )

    def _is_of_tokens(self, node: cst.BaseExpression) -> bool:
        """Return whether a tensor has no graph, or is the prompt with what was drawn from it:
        whole numbers.
        """
        if not Backpropagation.of(self.module).carries_graph(node):
            return True
        bindings = self.module.bindings(node)
        made = [binding.value for binding in bindings if binding.value is not None]
        return bool(made) and all(map(self._joins_tokens, made))

    def _joins_tokens(self, node: cst.BaseExpression) -> bool:
        """Return whether it is ``torch.cat((tokens, drawn), dim=1)``."""
        match node:
            case cst.Call(args=[cst.Arg(value=cst.Tuple() | cst.List() as parts), *_]):
                kinds = {self.module.value(part.value).dtype for part in parts.elements}
                return self.module.qualified(node.func) in _JOINING and _TOKENS in kinds <= {None, _TOKENS}
            case _:
                return False

    @solved(False)
    def _evident_of_callers(self, function: cst.FunctionDef) -> list[bool]:
        """Return whether more than a name speaks for evaluation where each of the callers runs a function."""
        beside_steps = MonitoringPasses.of(self.module).holds
        callers = [(caller, self.module.function(caller)) for caller in self.module.callers(function)]
        return [
            self.is_evident(caller, outer)
            if isinstance(outer, cst.FunctionDef)
            else self._over_data(caller) or beside_steps(caller)
            for caller, outer in callers
        ]

    def _over_data(self, node: cst.CSTNode) -> bool:
        """Return whether one of the loops around ``node`` goes over batches of data."""
        iterables = map(iterable_of, self.module.flow.loops(node))
        return any(
            isinstance(part, (cst.Name, cst.Attribute))
            and (self.module.value(part).kind is Kind.LOADER or ends(last_name(part), *_DATA))
            for iterable in iterables
            if iterable is not None
            for part in self.tree.descendants(iterable)
        )

    def _statements(self, call: cst.Call) -> tuple[cst.CSTNode, ...]:
        """Return the outermost loop around a forward pass that asks for no gradients,
        else the passes beside it.
        """
        gradients = Backpropagation.of(self.module)
        loops = self.module.flow.statement_loops(call)
        for loop in reversed(loops):
            if not gradients.computes_gradients(loop):
                return (loop,)
        first = self.tree.statement(call)
        block = self.tree.parent(first)
        if not isinstance(block, (cst.IndentedBlock, cst.Module)) or gradients.computes_gradients(first):
            return ()
        siblings: list[cst.CSTNode] = list(block.body)
        place = siblings.index(first)
        before, after = reversed(siblings[:place]), siblings[place + 1 :]
        return (*reversed(self._passes_among(before)), first, *self._passes_among(after))

    def _passes_among(self, siblings: Iterable[cst.CSTNode]) -> list[cst.CSTNode]:
        """Return the plain statements next in line,
        as far as the last one with a forward pass for evaluation.
        """
        run: list[cst.CSTNode] = []
        pending: list[cst.CSTNode] = []
        for statement in siblings:
            if not isinstance(statement, cst.SimpleStatementLine):
                break
            if Backpropagation.of(self.module).computes_gradients(statement):
                break
            pending.append(statement)
            if self._has_pass(statement):
                run += pending
                pending = []
        return run

    @remembered
    def _has_pass(self, node: cst.CSTNode) -> bool:
        return any(
            isinstance(inner, cst.Call) and self._evaluates(inner) for inner in self.tree.descendants(node)
        )

    @remembered
    def _unused(self, node: cst.CSTNode) -> bool:
        """Return whether nothing that is assigned in ``node`` is ever backpropagated."""
        gradients = Backpropagation.of(self.module)
        for inner in self.tree.descendants(node):
            target = inner if isinstance(inner, (cst.Name, cst.Attribute)) else None
            if target is not None and self._is_target(target) and gradients.reaches(target):
                # Batches reach a loss by the forward pass of training, wherever else the model gets some.
                given = self.module.value(target)
                if given.graph is not Graph.DETACHED or given.leaf:
                    return False
            if isinstance(inner, (cst.Call, cst.Assign, cst.AugAssign)) and not self._stores_no_graph(inner):
                if any(gradients.feeds(place) for place in self._filled_places(inner)):
                    return False
        return True

    def _stores_no_graph(self, node: cst.Call | cst.Assign | cst.AugAssign) -> bool:
        """Return whether all that a statement or call puts somewhere is data of the host, or has no graph."""
        stored = [argument.value for argument in node.args] if isinstance(node, cst.Call) else [node.value]
        values = [self.module.value(value) for value in stored]
        return bool(values) and all(
            self._is_of_host(value)
            or (value.kind is Kind.TENSOR and value.graph is Graph.DETACHED and not value.leaf)
            for value in values
        )

    def _filled_places(self, node: cst.Call | cst.Assign | cst.AugAssign) -> Iterator[cst.BaseExpression]:
        """Yield the containers and the names of other scopes that a statement or call puts something into."""
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _FILLING:
                yield node.func.value
            return
        targets = (
            [target.target for target in node.targets] if isinstance(node, cst.Assign) else [node.target]
        )
        for target in targets:
            if isinstance(target, cst.Subscript) or (
                isinstance(target, cst.Name) and self._is_shared(target)
            ):
                yield target

    def _is_shared(self, name: cst.Name) -> bool:
        """Return whether a name that is assigned belongs to a scope around: ``global``, ``nonlocal``."""
        binding = self.module.binding_of(name)
        return binding is not None and self.module.names.scope(name) is not binding.scope

    def _is_target(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Name):
            return node in self.module.names.by_node
        return isinstance(node, cst.Attribute) and isinstance(
            self.tree.parent(node), (cst.AssignTarget, cst.AugAssign)
        )

    @remembered
    def _escapes(self, function: cst.FunctionDef, node: cst.CSTNode) -> bool:
        """Return whether a tensor with its graph leaves ``function`` for code that the file does not show."""
        gradients = Backpropagation.of(self.module)
        if gradients.asked_for:
            return True
        return self._hands_out_graph(function) or self._stores_graph(node) or self._shows_graph(node)

    def _shows_graph(self, node: cst.CSTNode) -> bool:
        """Return whether a tensor with its graph is shown as text, which differs without the graph."""
        return self.tree.holds(node, texts_of_graphs(self.module))

    def _stores_graph(self, node: cst.CSTNode) -> bool:
        """Return whether a tensor with its graph is put where code outside of the function may find it."""
        gradients = Backpropagation.of(self.module)
        for inner in self.tree.descendants(node):
            if isinstance(inner, cst.Assign) and gradients.carries_graph(inner.value):
                if any(self._leaves(target.target) for target in inner.targets):
                    return True
            if isinstance(inner, cst.Call) and self._calls_back(inner):
                return True
            if isinstance(inner, (cst.Call, cst.AugAssign)):
                for item in kept(self.module, inner):
                    if self._is_outside(item.place) and gradients.carries_graph(item.stored):
                        return True
        return False

    def _is_shown_behind(self, call: cst.Call) -> bool:
        """Return whether the function around a call, or the file,
        shows the text of a tensor with its graph.
        """
        home = self.module.home(call)
        around = home.function(call)
        return any(home.function(text) is around for text in texts_of_graphs(home))

    @solved(False)
    def _hands_out_graph(self, function: cst.FunctionDef) -> bool:
        """Return whether code that the file does not show may get a tensor with its graph from a function."""
        if not self._returns_graph(function):
            return False
        callers = self.module.callers(function)
        if not callers or self._is_value(function):
            return True
        if self._is_public(function) and not calls_shown(self.module, function):
            return True
        if any(self._is_shown_behind(call) for call in callers):
            return True
        around = {self.module.function(call) for call in callers} - {function, None}
        return any(not isinstance(outer, cst.FunctionDef) or self._hands_out_graph(outer) for outer in around)

    def _is_public(self, function: cst.FunctionDef) -> bool:
        """Return whether other files may call a function or method:
        no underscore or function keeps it from them.
        """
        if self.module.in_notebook or self.module.function(function) is not None:
            return False
        names = [function.name.value]
        names += [node.name.value for node in self.tree.ancestors(function) if isinstance(node, cst.ClassDef)]
        return not any(name.startswith("_") and not name.endswith("__") for name in names)

    def _leaves(self, target: cst.BaseExpression) -> bool:
        """Return whether what is assigned here can be read outside of the function."""
        if isinstance(target, cst.Name):
            return self._is_shared(target)
        return isinstance(target, (cst.Attribute, cst.Subscript)) and self._is_outside(target)

    def _calls_back(self, call: cst.Call) -> bool:
        """Return whether a function that was passed in, and gives nothing back,
        gets a tensor with its graph.
        """
        func = call.func
        if not isinstance(self.tree.parent(call), cst.Expr) or not isinstance(func, cst.Name):
            return False
        passed = any(binding.kind is BindingKind.PARAMETER for binding in self.module.bindings(func))
        carries = Backpropagation.of(self.module).carries_graph
        return passed and any(carries(argument.value) for argument in call.args)

    def _is_value(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is handed on, so that not all of its callers are known."""
        binding = self.module.binding_of(function)
        uses = self.module.uses(binding) if binding is not None else []
        return not all(map(self.tree.is_called, uses))

    @remembered
    def _returns_graph(self, function: cst.FunctionDef) -> bool:
        """Return whether a tensor with its graph is returned or yielded."""
        return any(
            isinstance(given := each.value, cst.BaseExpression)
            and any(Backpropagation.of(self.module).carries_graph(v) for v in self._held(given))
            for each in self.module.flow.exits(function)
        )

    def _held(self, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """Yield an expression, and what is put into the containers that it is made of."""
        waiting, seen = [value], set[cst.BaseExpression]()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            match node:
                case cst.Tuple() | cst.List() | cst.Set():
                    waiting.extend(element.value for element in node.elements)
                case cst.Dict():
                    waiting.extend(element.value for element in node.elements)
                case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                    waiting.append(node.elt)
                case cst.DictComp():
                    waiting.append(node.value)
                case cst.Name():
                    bindings = self.module.bindings(node)
                    waiting.extend(b.value for b in bindings if b.value is not None and not b.path)
                    uses = (use for binding in bindings for use in self.module.uses(binding))
                    put = (source.node for use in uses for source in put_into(self.module, use))
                    waiting.extend(each for each in put if isinstance(each, cst.BaseExpression))
                case _:
                    pass

    def _is_outside(self, place: cst.BaseExpression) -> bool:
        """Return whether a container is an attribute, or was passed to the function."""
        return isinstance(start_of(place, cst.Subscript), cst.Attribute) or handed_in(self.module, place)


def _inspects(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use of a result, or of parts of it, only asks for shape and type: ``y[0].size()``."""
    match use.kind:
        case UseKind.ASSIGNED | UseKind.UNPACKED | UseKind.ITEM | UseKind.ITERATED:
            return ONWARD
        case UseKind.ATTRIBUTE | UseKind.METHOD:
            return use.name in _OF_SHAPES
        case UseKind.ARGUMENT:
            asked = module.qualified(use.call.func)
            return asked in ("builtins.len", "builtins.type", "builtins.isinstance")
    return False


def _first_statement(function: cst.FunctionDef) -> cst.CSTNode:
    """Return the first statement of a function behind its docstring."""
    body = function.body.body
    first = body[0]
    match first:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]) if len(body) > 1:
            return body[1]
        case _:
            return first
