"""What a file does if it is a program of its own: which models it trains on an accelerator, how precisely.

Advice on a program as a whole is for the file that trains: that has the loop, and makes the model or is the
one that is started. Functions and classes that other files use to train something are none. The precision is
what the file shows of it: an option that asks for another, even in a configuration, is an answer, and so is
work that needs all the digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import ATTENTION, CONVOLUTIONS, MODELS_BY_NAME
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.evidence import Evidence, evidence
from torchlint.semantics.flow.graph import Function, StatementLoop
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.identifiers import imports, is_below, named, speaks_of
from torchlint.semantics.iterations import Act, Iterations
from torchlint.semantics.layers import RETURNS_SELF, ReachedLayers
from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.module import Part
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.remembered import solved
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.sources import Path, Source, Through, onward, returns, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.usage import method_call
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# They choose the precision, the device and the loop themselves, or by a configuration outside of the file.
_FRAMEWORKS = (
    *("accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "fastai", "deepspeed", "apex"),
    *("composer", "colossalai", "catalyst", "mmcv", "mmengine", "detectron2", "torchtune", "speechbrain"),
    *("fairscale", "megatron", "transformer_engine", "bitsandbytes", "unsloth", "keras", "torchtnt"),
    *("transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.TrainingArguments", "trl"),
    *("transformers.Seq2SeqTrainingArguments", "skorch", "poutyne"),
)
# Neither CUDA nor its libraries.
_OTHER_DEVICES = ("torch_xla", "torch_npu", "habana_frameworks", "intel_extension_for_pytorch", "torch_mlu")
# Programs that wait for an environment more than for their small networks.
_ENVIRONMENTS = (
    *("gym", "gymnasium", "gym3", "procgen", "pettingzoo", "envpool", "dm_control", "dm_env", "brax"),
    *("minigrid", "isaacgym", "stable_baselines3", "tianshou", "torchrl", "pfrl", "atari_py", "ale_py"),
    *("supersuit", "d4rl", "metaworld", "unityagents", "mlagents_envs", "crafter", "nasim"),
)
_LEARNT_BY_REWARD = frozenset(
    {"reward", "rewards", "advantages", "episode", "episodes", "replay_buffer", "epsilon_greedy", "n_actions"}
)
# They hook into the layers and the gradients of a model.
_HOOKING = ("opacus", "backpack", "higher", "learn2learn")
# Work that is done in full or double precision for a reason.
_EXACTING = (
    *("gpytorch", "botorch", "pyro", "torchdiffeq", "torchsde", "e3nn", "opacus", "learn2learn", "higher"),
    *("backpack", "ase", "torchani", "functorch", "deepxde", "numpyro", "geomloss", "ot"),
    *("torch.linalg", "torch.fft", "torch.func", "torch.autograd.functional", "torch.autograd.gradcheck"),
    *("torch.autograd.grad", "torch.optim.LBFGS", "torch.float64", "torch.double", "torch.complex"),
    *("torch.cfloat", "torch.cdouble", "torch.cholesky", "torch.svd", "torch.symeig", "torch.DoubleTensor"),
    *(
        "torch.cuda.DoubleTensor",
        "torch.inverse",
        "torch.det",
        "torch.lobpcg",
        "torch.stft",
        "torch.view_as_complex",
    ),
)
_IDENTIFIER = re.compile(r"-{0,2}[A-Za-z_][\w.-]*")
# ``args.precision``; a metric of this name is called with, or beside, others.
_CHOSEN = frozenset({"dtype", "precision"})
_PARTS = frozenset({"parameters", "named_parameters"})
_COMPILERS = (
    *("torch.compile", "torch._dynamo", "torchdynamo", "torch.compiler", "torch.onnx", "torch.export"),
    *("torch.jit.script", "torch.jit.trace", "torch.cuda.CUDAGraph", "torch.cuda.graph", "functorch.compile"),
    *("torch.cuda.make_graphed_callables", "onnx", "onnxruntime", "tensorrt", "torch_tensorrt", "torch2trt"),
)
# In what programs call their options and functions for it; one of them stands in the text of all that do it.
_COMPILING = ("dynamo", "tensorrt", "onnx", "torchscript", "cudagraph", "aot_module", "cuda_graph")
_MENTIONED = ("compile", "jit", "cuda.graph", "trt", "graphed", "torch.export", *_COMPILING)
_WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.compile",
    }
)
_WRAPPER_NAMES = frozenset({"DataParallel", "DistributedDataParallel", "DDP", "convert_sync_batchnorm"})
_CRITERION = (Role.LOSS, Role.CRITERION, Role.METRIC, Role.PENALTY)


class Precision(IdentityEnum):
    """In which precision a program computes, as far as its file shows."""

    SINGLE = "single"
    """Nothing says anything else than float32 all through."""
    CHOSEN = "chosen"
    """The file names another precision for it, always or as an option, or a framework sees to it."""
    TF32 = "tf32"
    """It says whether float32 may use TF32; nothing else is named."""
    EXACTING = "exacting"
    """What it computes needs its digits: double precision, derivatives of derivatives, solvers."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model that a program trains: how the file calls it there, and what is known of it."""

    node: cst.BaseExpression
    value: Value


@dataclass(frozen=True, slots=True)
class Training:
    """The training of a program: the innermost loop of its steps, a backward pass of it, and the models.

    The loop may be the function that an engine calls for each step.
    """

    loop: StatementLoop | cst.FunctionDef
    backward: cst.Call
    models: tuple[Trained, ...]
    started: bool
    """Whether running or importing the file starts it; else another file does."""


class Program(Part):
    """What one file does when it is run, computed on demand."""

    # ------------------------------------------------------------------ what it runs

    @cached_property
    def training(self) -> Training | None:
        """The training of models on an accelerator that this very file makes; None if there is none.

        The loop may stand in another file of the program.
        """
        if self.link is None:
            return self.steps
        if is_test(self.module):
            return None
        for found in self.trainings:
            models = [self._known_here(owned) for owned in self._owned(found)]
            own = [model for model in models if model is not None]
            if own and len(own) == len(models):
                return replace(found, models=tuple(own))
        return None

    @cached_property
    def trainings(self) -> list[Training]:
        """The trainings of the programs that the file is part of, first those that it backpropagates."""
        files = (self.module, *self.module.companions("backward"))
        return [found for each in files for found in Program.of(each).backpropagated]

    @cached_property
    def companions(self) -> list[Program]:
        """What is known of all files of the programs that the file is part of, first of itself."""
        others = () if self.link is None else self.link.companions(self)
        return [self, *map(Program.of, others)]

    def _owned(self, training: Training) -> list[tuple[Trained, cst.CSTNode]]:
        """Return the models that are trained, each with the call that brings it in, if that is known."""
        return [(model, next(iter(self._gotten_from(model)), model.node)) for model in training.models]

    def _gotten_from(self, model: Trained) -> list[cst.Call]:
        """Return the calls that a model comes from, also through parameters, but not what they call."""
        calls = (call for call in self._given(model.node) if call is not None)
        return sorted(calls, key=self.tree.order.__getitem__)

    @traced(Through.PARAMETERS)
    def _given(self, node: cst.CSTNode, path: Path) -> cst.Call | list[Source] | None:
        if not isinstance(node, cst.Call):
            return None
        method = method_call(self.module, node)
        return onward(method[0], path=path) if method is not None and method[1] in RETURNS_SELF else node

    def _known_here(self, owned: tuple[Trained, cst.CSTNode]) -> Trained | None:
        """Return a model by the name that it gets where the file makes it; None if another file does."""
        model, maker = owned
        if self.tree.is_elsewhere(maker):
            return None
        if not self.tree.is_elsewhere(model.node):
            return model
        holder = self.tree.parent(maker)
        while isinstance(holder, (cst.Attribute, cst.Call, cst.Arg)):
            holder = self.tree.parent(holder)
        match holder:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() as named)]):
                # What a model is given to may be a trainer.
                return Trained(named, model.value) if self.module.value(named).kind is Kind.MODULE else None
            case _:
                return None

    @cached_property
    def steps(self) -> Training | None:
        """The training whose loop stands in this file; its backward pass may stand in another."""
        here = (found for found in self.trainings if not self.tree.is_elsewhere(found.loop))
        return next(here, None)

    @cached_property
    def backpropagated(self) -> list[Training]:
        """The trainings whose backward passes stand in this file; the loop may stand in another."""
        found: list[Training] = []
        passes = Backpropagation.of(self.module).passes
        if not passes or not self._on_gpu:
            return found
        for backward in sorted(passes, key=lambda backward: self.tree.standing(backward.call)):
            hot = places.hot(self.module, backward.call)
            loop = hot.loop if hot is not None else None
            if not isinstance(loop, StatementLoop) and loop not in Iterations.of(self.module).processes:
                continue
            assert isinstance(loop, (cst.For, cst.While, cst.FunctionDef))
            models = tuple(self._trained(loop))
            if not models or not self._steps(loop):
                continue
            started = self._is_run(loop)
            if started or self._makes(models):
                found.append(Training(loop, backward.call, models, started))
        return found

    @cached_property
    def inference(self) -> Trained | None:
        """A model of its own that a program which trains none runs again and again on an accelerator."""
        if not self._on_gpu:
            return None
        files = (self.module, *self.module.companions("backward"))
        if any(Backpropagation.of(each).happens for each in files):
            return None
        repeated = [
            call
            for call in self.tree.nodes(cst.Call)
            if isinstance(call.func, (cst.Name, cst.Attribute)) and may_repeat(self.module, call)
        ]
        for call in sorted(repeated, key=self.tree.standing):
            value = self.module.value(call.func)
            if value.kind is not Kind.MODULE or value.receiver is not None or not call.args:
                continue
            if grad(self.module, call) is not Grad.OFF or phase(self.module, call) is Phase.FORWARD:
                continue
            model = Trained(call.func, value)
            if self.makers(model) and self._is_run(call) and places.hot(self.module, call) is not None:
                return model
        return None

    @cached_property
    def _on_gpu(self) -> bool:
        module = self.module
        if is_test(module) or imports(module, _OTHER_DEVICES):
            return False
        if evidence(module) is not Evidence.ACCELERATOR:
            return False
        own = any(map(self.tree.mentions, ("cuda", "device")))
        return own or bool(module.companions("cuda", "device"))

    @property
    def waits_for_environment(self) -> bool:
        """Whether it learns from an environment, whose steps take longer than those of its networks."""
        return any(each._waits_here for each in self.companions)

    @cached_property
    def _waits_here(self) -> bool:
        if imports(self.module, _ENVIRONMENTS):
            return True
        return (
            any(
                call.func.attr.value == "step" and has(last_name(call.func.value), Role.ENVIRONMENT)
                for call in self.tree.nodes(cst.Call)
                if isinstance(call.func, cst.Attribute)
            )
            or len(_LEARNT_BY_REWARD & self._words) > 1
        )

    @cached_property
    def framework(self) -> bool:
        """Whether a framework runs the loop, or is told outside of the file how to."""
        return any(imports(each.module, _FRAMEWORKS) for each in self.companions)

    @cached_property
    def hooks_into_models(self) -> bool:
        """Whether a library takes part in the layers of the models, for gradients of single samples or so."""
        return any(imports(each.module, _HOOKING) for each in self.companions)

    @cached_property
    def compiles(self) -> bool:
        """Whether anything is compiled, traced, exported or captured."""
        return any(each._compiles_here for each in self.companions)

    @cached_property
    def _compiles_here(self) -> bool:
        if not any(map(self.tree.mentions_in_any_case, _MENTIONED)):
            return False
        if imports(self.module, _COMPILERS) or any(map(self._is_compiler, self.tree.nodes(cst.Attribute))):
            return True
        return any(
            word == "use_compile" or word.endswith("_compile") or any(part in word for part in _COMPILING)
            for word in (text.lower().replace("-", "_") for text in self._words)
        )

    def _is_compiler(self, attribute: cst.Attribute) -> bool:
        """Return whether ``torch.compile`` or the like is named, or something is told to compile."""
        dotted = self.module.qualified(attribute)
        if dotted is not None:
            return is_below(dotted, _COMPILERS)
        return attribute.attr.value == "compile" and isinstance(self.tree.parent(attribute), cst.Call)

    # ------------------------------------------------------------------ what is trained

    def _trained(self, loop: StatementLoop | cst.FunctionDef) -> Iterator[Trained]:
        """Yield the models whose parameters optimizers get, else those whose results are backpropagated."""
        found: dict[str, Trained] = {}
        parts = [part for part in self.tree.nodes(cst.Attribute) if part.attr.value in _PARTS]
        for attribute in sorted(filter(self._is_optimized, parts), key=self.tree.standing):
            value = self.module.value(attribute.value)
            spelt = self.module.source(attribute.value)
            if value.kind is Kind.MODULE and not has(spelt, Role.COPY):
                found.setdefault(spelt, Trained(attribute.value, value))
        if not found:
            for call in self.forward_passes(loop):
                spelt = self.module.source(call.func)
                if not has(spelt, Role.COPY) and Backpropagation.of(self.module).reaches(call):
                    found.setdefault(spelt, Trained(call.func, self.module.value(call.func)))
        yield from found.values()

    def forward_passes(self, loop: StatementLoop | cst.FunctionDef) -> Iterator[cst.Call]:
        """Yield the calls of models in each iteration of a loop; losses are none."""
        for event in Iterations.of(self.module).iteration(loop).of(Act.FORWARD):
            call, subject = event.node, event.subject
            if not isinstance(call, cst.Call) or subject is None or subject.value.kind is not Kind.MODULE:
                continue
            name = subject.value.cls or ""
            if not name.endswith("Loss") and not has(last_name(call.func), *_CRITERION):
                yield call

    def _is_optimized(self, attribute: cst.Attribute) -> bool:
        """Return whether ``model.parameters`` is (part of) what an optimizer is made with."""
        for parent in self.tree.ancestors(attribute):
            if isinstance(parent, cst.Call) and parent.func is not attribute:
                if self.module.value(parent).kind is Kind.OPTIMIZER:
                    return True
            if isinstance(parent, (cst.Assign, cst.AnnAssign)):
                target = parent.targets[0].target if isinstance(parent, cst.Assign) else parent.target
                binding = self.module.binding_of(target)
                uses = self.module.uses(binding) if binding is not None else []
                return any(self._is_given_to_optimizer(use) for use in uses)
            if isinstance(parent, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                return False
        return False

    def _is_given_to_optimizer(self, use: cst.Name) -> bool:
        call = self.tree.call_given(use)
        return call is not None and self.module.value(call).kind is Kind.OPTIMIZER

    def _steps(self, loop: StatementLoop | cst.FunctionDef) -> bool:
        """Return whether the iterations of a loop, or of one around it, change parameters, even by hand."""
        around = [
            loop,
            *(outer for outer in self.module.flow.loops(loop) if isinstance(outer, StatementLoop)),
        ]
        if any(Iterations.of(self.module).iteration(one).of(Act.STEP) for one in around):
            return True
        return any(
            isinstance(node, cst.For) and last_name(node.iter) in _PARTS
            for node in self.tree.descendants(loop.body)
        )

    def _makes(self, models: tuple[Trained, ...]) -> bool:
        """Return whether the file shows the calls that make the models, for nothing but to train them.

        Methods that others override make what others want.
        """
        made = [self.makers(model) for model in models]
        return all(calls and not any(map(self._is_hook, calls)) for calls in made)

    def _is_hook(self, call: cst.Call) -> bool:
        function = self.module.function(call)
        owner = self.module.classes.owner(function) if function is not None else None
        if owner is not None and self.module.classes.info(owner).opaque:
            return True
        return isinstance(call.func, cst.Attribute) and self.module.source(call.func.value) == "self"

    def makers(self, model: Trained) -> list[cst.Call]:
        """Return the calls that make a model, as far as the file shows; those of what wraps it left out."""
        made = (call for call in self.made(model.node) if call is not None)
        return sorted(made, key=self.tree.order.__getitem__)

    @traced(Through.RETURNS | Through.PARAMETERS)
    def made(self, node: cst.CSTNode, path: Path) -> cst.Call | list[Source] | None:
        """Return the calls that make a model; what only wraps or moves it is none."""
        match node:
            case cst.Call():
                return self._made_by(node, path)
            case cst.Attribute() if SelfAttributes.of(self.module).self_class(node) is None:
                origin = self.module.value(node).origin
                return origin if isinstance(origin, cst.Call) else None
            case _:
                return None

    def _made_by(self, call: cst.Call, path: Path) -> cst.Call | list[Source]:
        dotted = self.module.qualified(call.func)
        if call.args and (dotted in _WRAPPERS or last_name(call.func) in _WRAPPER_NAMES):
            return onward(call.args[0].value, path=path)
        if isinstance(call.func, cst.Attribute) and dotted is None and call.func.attr.value in RETURNS_SELF:
            return onward(call.func.value, path=path)
        function = self.module.value(call.func).definition
        if not isinstance(function, (cst.FunctionDef, cst.Lambda)) or self.tree.is_elsewhere(function):
            return call
        returned = returns(self.module, function)
        return onward(*returned, path=path) if returned else call

    def put_on_device(self, model: Trained) -> cst.Call | None:
        """Return the call that puts a model on the device, in a statement or its assignment."""
        spelt = self.module.source(model.node)
        moving = [
            call
            for call in self.tree.nodes(cst.Call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "cuda")
        ]
        for call in sorted(moving, key=self.tree.standing):
            assert isinstance(call.func, cst.Attribute)
            statement = self.tree.parent(call)
            while isinstance(statement, (cst.Attribute, cst.Call)):
                statement = self.tree.parent(statement)
            match statement:
                case cst.Expr():
                    named: cst.BaseExpression = call.func.value
                case cst.Assign(targets=[cst.AssignTarget(target=named)]):
                    pass
                case _:
                    continue
            if self.module.source(named) == spelt and self._in_same_place(named, model.node):
                return call
        return None

    def _in_same_place(self, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
        """Return whether two spellings of a variable or attribute, which are the same, mean the same."""
        if isinstance(one, cst.Name) and isinstance(other, cst.Name):
            return self.module.names.lookup(one.value, one) is self.module.names.lookup(other.value, other)
        return self.tree.enclosing(one, cst.ClassDef) is self.tree.enclosing(other, cst.ClassDef)

    def _is_run(self, node: cst.CSTNode) -> bool:
        """Return whether running or importing the file gets to ``node``, by calls or functions handed on."""
        function = self.module.function(node)
        return function is None or self._comes_to_run(function)

    @solved(False)
    def _comes_to_run(self, function: Function) -> bool:
        """Return whether anything that runs calls a function, or hands it on."""
        return any(map(self._is_run, self._uses(function)))

    def _uses(self, function: Function) -> Iterator[cst.CSTNode]:
        yield from self.module.callers(function)
        if isinstance(function, cst.Lambda):
            yield function.params
            return
        binding = self.module.binding_of(function)
        if binding is not None:
            yield from self.module.uses(binding)
        owner = self.module.classes.owner(function)
        made = self.module.binding_of(owner) if owner is not None else None
        for use in self.module.uses(made) if made is not None else ():
            call = self.tree.parent(use)
            if isinstance(call, cst.Call) and call.func is use:
                yield call

    # ------------------------------------------------------------------ where it is set up

    @cached_property
    def imports_end(self) -> cst.CSTNode | None:
        """The statement at the top level behind which the imports at the head of the file are done.

        Only docstrings, assignments and the like stand between the imports of a head, and no code of the
        program has run before it ends.
        """
        last: cst.CSTNode | None = None
        for statement in self.tree.root.body:
            if isinstance(statement, cst.SimpleStatementLine):
                if any(isinstance(small, (cst.Import, cst.ImportFrom)) for small in statement.body):
                    last = statement
            elif isinstance(statement, (cst.Try, cst.If)) and self._imports_something(statement):
                last = statement
            else:
                break
        return last

    def _imports_something(self, statement: cst.CSTNode) -> bool:
        """Return whether a condition or ``try`` is there for its imports, and runs nothing of the program."""
        nodes = list(self.tree.descendants(statement))
        if not any(isinstance(node, (cst.Import, cst.ImportFrom)) for node in nodes):
            return False
        definitions = (cst.FunctionDef, cst.ClassDef, cst.For, cst.While)
        return not any(
            isinstance(node, definitions) or (isinstance(node, cst.Name) and node.value == "__name__")
            for node in nodes
        )

    @cached_property
    def torch_import(self) -> cst.CSTNode | None:
        """The import of torch at the top level, where advice on its settings is given.

        That is ``import torch`` itself, else the first of something of it.
        """
        found: list[tuple[bool, cst.CSTNode]] = []
        for binding in chain.from_iterable(self.module.names.module_scope.bindings.values()):
            dotted = binding.imported
            if dotted is not None and is_below(dotted, ("torch",)):
                statement = self.tree.enclosing(binding.node, cst.Import, cst.ImportFrom)
                if statement is not None:
                    found.append((dotted != "torch", statement))
        order = self.tree.order
        return min(found, key=lambda item: (item[0], order[item[1]]))[1] if found else None

    # ------------------------------------------------------------------ how precisely it computes

    @cached_property
    def precision(self) -> Precision:
        """In which precision it computes, as far as the file shows."""
        chosen = "half" in self._words or self.speaks_of(Role.REDUCED_PRECISION)
        if self.framework or chosen or any(each._leaves_precision_open for each in self.companions):
            return Precision.CHOSEN
        if any(each._is_exacting for each in self.companions):
            return Precision.EXACTING
        return Precision.TF32 if self.speaks_of(Role.TENSOR_FLOAT) else Precision.SINGLE

    def speaks_of(self, *roles: Role) -> bool:
        """Return whether a name or word of the file has one of these roles where that matters to training."""
        return any(has(text, *roles) for text in self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The words of all files of the program."""
        return frozenset().union(*(each._own_words for each in self.companions))

    @cached_property
    def _own_words(self) -> frozenset[str]:
        """Names and strings of one word, those in other trainings that nobody calls left out."""
        aside = self._other_trainings
        found: set[str] = set()
        for name in self.tree.nodes(cst.Name):
            if name.value not in found and not self._is_in(name, aside):
                found.add(name.value)
        for string in self.tree.nodes(cst.SimpleString):
            text = string.raw_value
            if len(text) < 40 and _IDENTIFIER.fullmatch(text) and not self._is_in(string, aside):
                found.add(text)
        return frozenset(found)

    @cached_property
    def _other_trainings(self) -> list[cst.FunctionDef]:
        """The functions with training loops of their own that nothing in the file gets to."""
        if self.steps is None:
            return []
        own = self.module.function(self.steps.loop)
        found: list[cst.FunctionDef] = []
        for backward in Backpropagation.of(self.module).passes:
            function = self.module.function(backward.call)
            if isinstance(function, cst.FunctionDef) and function is not own and function not in found:
                if not any(True for _ in self._uses(function)):
                    found.append(function)
        return found

    def _is_in(self, node: cst.CSTNode, functions: list[cst.FunctionDef]) -> bool:
        return any(self.tree.contains(function, node) for function in functions)

    @cached_property
    def _leaves_precision_open(self) -> bool:
        """Whether an option of the program says in which precision it computes."""
        if not speaks_of(self.module, Role.RETRIEVAL_METRIC):
            for attribute in self.tree.nodes(cst.Attribute):
                if attribute.attr.value in _CHOSEN and ends(
                    self.module.source(attribute.value), Role.OPTIONS
                ):
                    return True
            for string in self.tree.nodes(cst.SimpleString):
                if string.raw_value.lstrip("-") in _CHOSEN:
                    return True
        for call in self.tree.nodes(cst.Call):
            # ``model.to(device, dtype)``
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "type"):
                if any(last_name(arg.value) == "dtype" for arg in call.args):
                    if self.module.value(call.func.value).kind is Kind.MODULE:
                        return True
        return False

    @cached_property
    def _is_exacting(self) -> bool:
        if imports(self.module, _EXACTING) or self.speaks_of(Role.SECOND_DERIVATIVE):
            return True
        for attribute in self.tree.nodes(cst.Attribute):
            dotted = self.module.qualified(attribute)
            if dotted is not None and is_below(dotted, _EXACTING):
                return True
            if attribute.attr.value == "double" and self.module.value(attribute.value).kind is Kind.MODULE:
                return True
        return any(
            arg.keyword is not None
            and arg.keyword.value == "create_graph"
            and self.module.value(arg.value).constant is not False
            for arg in self.tree.nodes(cst.Arg)
        )

    # ------------------------------------------------------------------ its layers

    def layers(self, model: Trained) -> Iterator[tuple[cst.Call, str]]:
        """Yield the calls that make the layers of a model, as far as the file shows, each with what it calls.

        Layers that no forward pass gets to are left out.
        """
        waiting: list[cst.CSTNode] = []
        for node in (model.value.definition, model.value.origin, *self.makers(model)):
            if node is not None and node not in waiting:
                waiting.append(node)
        seen: set[cst.CSTNode] = set(waiting)
        for current in waiting:
            if isinstance(current, cst.ClassDef):
                for part in self.module.classes.info(current).lineage:
                    seen.update((part.node, *part.methods.values()))
            for call in self._calls_in(current):
                dotted = self.module.qualified(call.func)
                if dotted is not None:
                    yield call, dotted
                    continue
                inner = self.module.value(call.func).definition
                if inner is not None and inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)

    def _calls_in(self, maker: cst.CSTNode) -> Iterator[cst.Call]:
        """Yield the calls in the class, function or expression that makes (part of) a model."""
        if isinstance(maker, cst.ClassDef):
            yield from self._reached.calls(maker)
        else:
            yield from (node for node in self.tree.descendants(maker) if isinstance(node, cst.Call))

    @cached_property
    def _reached(self) -> ReachedLayers:
        return ReachedLayers(self.module)


# --- convolutional networks over images -------------------------------------------------------------------

_SEGMENTATION = "segmentation_models_pytorch."


def convolutional(module: Module, model: Trained, *, volumes: bool = True) -> bool:
    """Return whether a model is a convolutional network over images, or, with ``volumes``, over volumes."""
    layers = list(Program.of(module).layers(model))
    if layers:
        names = [name for _, name in layers]
        dimensions = [CONVOLUTIONS.get(name, 0) for name in names]
        count = sum(number > 1 for number in dimensions)
        if not volumes and 3 in dimensions:
            return False
        # One convolution beside attention makes patches of an image.
        if count == 1 and (not ATTENTION.isdisjoint(names) or _attends(module, model)):
            return False
        if count:
            return "torch.nn.Embedding" not in names or count > 4
        return any(_is_network(module, call) for call, _ in layers)
    return any(_is_network(module, call) for call in Program.of(module).makers(model))


def _attends(module: Module, model: Trained) -> bool:
    definition = model.value.definition
    return definition is not None and any(has(name, Role.ATTENTION) for name in named(module, definition))


def _is_network(module: Module, call: cst.Call) -> bool:
    """Return whether what a call makes goes by the name of a convolutional network."""
    if isinstance(call.func, cst.Subscript) and isinstance(call.func.value, cst.Attribute):
        # ``torchvision.models.__dict__[arch]()``: nearly all of them are convolutional networks.
        table = call.func.value
        return table.attr.value == "__dict__" and module.qualified(table.value) == "torchvision.models"
    dotted = module.qualified(call.func) or ""
    if dotted.startswith(_SEGMENTATION):
        return "mit_b" not in module.source(call)
    if dotted.startswith("torchvision.models.detection."):
        return False
    return any(map(_sounds_convolutional, names_of_network(module, call)))


def names_of_network(module: Module, call: cst.Call) -> list[str]:
    """Return the names by which a call says which network it makes."""
    if module.qualified(call.func) in MODELS_BY_NAME:
        constants = [module.value(arg.value).constant for arg in call.args[:2]]
        return [text.partition(".")[0] for text in constants if isinstance(text, str)]
    return [last_name(call.func) or ""]


def _sounds_convolutional(name: str) -> bool:
    return has(name, Role.FULLY_CONVOLUTIONAL, Role.CONVOLUTIONAL) and not has(name, Role.NOT_CONVOLUTIONAL)
