"""Contexts in which speed does not matter.

Unit tests, branches for debugging, plots, lessons, benchmarks, conversions of checkpoints, and code for
the CPU or for old releases of torch. What the program does there decides (its imports, its guards, the calls
of a function and of those that it calls); a name helps only where that leaves it open. A function that is
only called at places of one context is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeGuard

import libcst as cst

from torchlint.semantics.api.families import DRAWING_LIBRARIES, TEST_LIBRARIES, WALL_CLOCKS
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import FUNCTIONS, Function
from torchlint.semantics.inference import Inference
from torchlint.semantics.lexicon import Role, begins, has, names_model, names_test_case
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind, Names
from torchlint.semantics.phases import is_training_step, training_steps
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.values import Device, Kind
from torchlint.syntax import SyntaxTree
from torchlint.uncommented import PROSE, may_have_prose


class Context(IdentityEnum):
    """What a place is there for, or where it runs, if its speed is of little account."""

    TEST = "test"
    """Unit tests, and programs that only see whether a model runs, with data made up for it."""
    DEBUG = "debug"
    """Runs only where somebody looks for a mistake."""
    PLOTTING = "plotting"
    """Draws for people to look at."""
    TEACHING = "teaching"
    """A cell of a notebook, or a tutorial, that shows how something works."""
    BENCHMARK = "benchmark"
    """Measures or profiles something."""
    CONVERSION = "conversion"
    """Turns a checkpoint or a model into another format, once."""
    HOST_ONLY = "host_only"
    """Runs only where there is no accelerator."""
    OLD_RELEASE = "old_release"
    """Runs only with releases that lack something."""

    @property
    def measures(self) -> bool:
        """Whether the place is there to take times, which it has to take right."""
        return self is Context.BENCHMARK


class _Act(IdentityEnum):
    """Something that a piece of a program does which tells what it is there for."""

    TRAINS = "trains"
    DATA = "data"
    PARSES = "parses"
    LOADS = "loads"
    SAVES = "saves"
    EXPORTS = "exports"
    MEASURES = "measures"
    READS_CLOCK = "reads_clock"
    DRAWS = "draws"
    CHECKS = "checks"
    MAKES_UP = "makes_up"
    RUNS_OFTEN = "runs_often"


_WORKING: Final = frozenset({_Act.TRAINS, _Act.DATA})
"""What no benchmark, plot or conversion does."""
_SERIOUS: Final = _WORKING | {_Act.PARSES, _Act.LOADS}
"""What no program does that only sees whether a model runs."""

_PURPOSES = frozenset({_Act.EXPORTS, _Act.SAVES, _Act.MEASURES, _Act.READS_CLOCK, _Act.DRAWS})
"""One of these is done by whatever converts, measures or draws."""

_PARSING = frozenset({"ArgumentParser", "parse_args", "parse_known_args"})
_FITTING = frozenset({"fit", "train", "learn", "fit_one_cycle"})
_LOADING = frozenset(
    {
        "torch.load",
        "torch.jit.load",
        "safetensors.torch.load_file",
        "safetensors.safe_open",
        "tensorflow.train",
    }
    | {"torch.hub.load_state_dict_from_url", "tensorflow.train.load_checkpoint", "pickle.load", "numpy.load"}
)
_LOADING_NAMES = frozenset({"from_pretrained", "load_state_dict_from_url", "hf_hub_download", "load_file"})
_SAVING = frozenset({"torch.save", "safetensors.torch.save_file", "torch.jit.save", "torch.export.save"})
_EXPORTING = frozenset({"torch.onnx.export", "torch.onnx.dynamo_export", "torch.export.export"})
_MEASURING = frozenset(
    {
        "timeit.timeit",
        "timeit.repeat",
        "timeit.Timer",
        "torch.utils.benchmark.Timer",
        "triton.testing.do_bench",
    }
    | {"torch.utils.benchmark.Compare", "triton.testing.perf_report"}
)
_PROFILING = frozenset(
    {"torch.profiler.profile", "torch.autograd.profiler.profile", "torch.autograd.profiler.emit_nvtx"}
)
_NOT_DRAWING = frozenset(
    {"use", "close", "switch_backend", "ion", "ioff", "get_cmap", "set_style", "set_theme", "rc", "rcParams"}
)
_AXES = frozenset({"ax", "axs", "axes", "axarr"})
_MAKING_UP = frozenset(
    {f"torch.{name}" for name in ("rand", "randn", "randint", "ones", "zeros", "empty", "full", "arange")}
    | {"torch.tensor", "torch.Tensor", "torch.FloatTensor", "torchsummary.summary", "torchinfo.summary"}
    | {"thop.profile", "ptflops.get_model_complexity_info"}
)
_COMPARING = ("assert_allclose", "assert_close")
_PARTS_OF_TUTORIAL = 3


COLD: Final = frozenset(Context) - {Context.TEACHING, Context.OLD_RELEASE}
"""The contexts in which a place is not hot, whichever loop it stands in."""


_BY_PURPOSE: Final = frozenset({Context.PLOTTING, Context.TEACHING, Context.BENCHMARK, Context.CONVERSION})
"""The contexts of places whose purpose is another than that of a function that they call."""


def context(module: Module, node: cst.CSTNode) -> Context | None:
    """Return what a place is there for, if that makes its speed of little account."""
    return Contexts.of(module).context(node)


def is_test(module: Module) -> bool:
    """Return whether the file as a whole holds unit tests."""
    return Contexts.of(module).is_test


def imports_test_library(names: Names) -> bool:
    """Return whether a file imports what unit tests are written with."""
    bindings = (binding for found in names.module_scope.bindings.values() for binding in found)
    return any((binding.imported or "").partition(".")[0] in TEST_LIBRARIES for binding in bindings)


def stays_on_host(tree: SyntaxTree, inference: Inference, definition: cst.ClassDef) -> bool:
    """Return whether a class sets its attribute ``device`` to the CPU, and never to anything else."""
    devices = [
        inference.value(assign.value).device
        for assign in tree.nodes_within(definition, cst.Assign)
        for target in assign.targets
        if isinstance(target.target, cst.Attribute) and target.target.attr.value.lstrip("_") == "device"
    ]
    return bool(devices) and all(device is Device.CPU for device in devices)


class Contexts(Part):
    """The contexts of one file."""

    @cached_property
    def is_test(self) -> bool:
        """Whether the file imports what unit tests are written with."""
        return imports_test_library(self.module.names)

    @cached_property
    def trains(self) -> bool:
        """Whether the file has a step of training at all."""
        return bool(training_steps(self.module))

    @remembered
    def context(self, node: cst.CSTNode) -> Context | None:
        """Return the context of a node: its own, or that of the code around it."""
        if self.is_test:
            return Context.TEST
        if self._is_tutorial:
            return Context.TEACHING
        found = self._guarded(node) or self._in_region(node)
        if found is not None:
            return found
        root = self.module.flow.root(node)
        return self._of_function(root) if isinstance(root, FUNCTIONS) else self._of_script(node)

    def _guarded(self, node: cst.CSTNode) -> Context | None:
        """Return the context of the branch of its function that a node stands in."""
        throttling = Throttling.of(self.module)
        if throttling.on_host(node):
            return Context.HOST_ONLY
        if throttling.debugs(node):
            return Context.DEBUG
        if ReleaseChecks.of(self.module).is_for_older(node):
            return Context.OLD_RELEASE
        return None

    # ------------------------------------------------------------------ functions and scripts

    @solved(None)
    def _of_function(self, function: Function) -> Context | None:
        """Return the context of all that a function does."""
        owner = self.module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
        if owner is not None and stays_on_host(self.tree, self.module.inference, owner):
            return Context.HOST_ONLY
        if isinstance(function, cst.FunctionDef) and self._tests(function):
            return Context.TEST
        if owner is not None and names_test_case(owner.name.value):
            return Context.TEST
        return (
            self._purpose(function, function.name.value if isinstance(function, cst.FunctionDef) else "")
            or self.context(function)  # where it is defined
            or self._of_callers(function)
        )

    def _of_callers(self, function: Function) -> Context | None:
        """Return the context that all calls of a function share, itself aside.

        What tries a model out says nothing of the model.
        """
        owner = self.module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
        if owner is not None and self.module.classes.info(owner).kind is Kind.MODULE:
            return None
        calls = [call for call in self.module.callers(function) if not self.tree.contains(function, call)]
        found = [self.context(call) for call in calls]
        if not found or None in found or len(set(found)) > 1:
            return None
        if found[0] in _BY_PURPOSE and not self._acts(function).isdisjoint(_WORKING):
            return None  # ``plt.plot(train(model, loader))``
        return None if found[0] is Context.TEST and _required(function) else found[0]

    def _of_script(self, node: cst.CSTNode) -> Context | None:
        """Return the context of a place outside of functions: that of its cell, or of the script."""
        if self.module.in_notebook:
            return self._of_cell(self.module.position(node).cell)
        main = self._main
        if main is not None and self.tree.contains(main, node) and self._tries_model(main):
            return Context.TEST
        return self._purpose(self.tree.root, "")

    @cached_property
    def _main(self) -> cst.If | None:
        """What runs only if the file is started as a program."""
        for branch in self.tree.nodes(cst.If):
            test = branch.test
            if isinstance(test, cst.Comparison) and last_name(test.left) == "__name__":
                return branch
        return None

    def _tries_model(self, main: cst.If) -> bool:
        """Return whether a program only sees whether it runs: ``model(torch.rand(1, 3, 224, 224))``."""
        acts = self._acts_in(main, self.tree.nodes(cst.Call))
        return _Act.MAKES_UP in acts and acts.isdisjoint(_SERIOUS)

    def _tests(self, function: cst.FunctionDef) -> bool:
        """Return whether a function is a unit test: it checks something, or makes up the data,
        and is given none.

        In a file that test runners look into, either is enough. By any other name, a function only tries
        something out if it checks what it gets for made-up data, and returns nothing. What compares tensors
        with expected ones as `torch.testing` does is a test by any name, and whatever it is given.
        """
        if self._compares_as_tests_do(function):
            return True
        if _required(function):
            return False
        named, bare = function.name.value.startswith("test_"), function.name.value.strip("_") == "test"
        answers = any(each.value is not None for each in self.tree.within(function, self._returns))
        if not named and answers:
            return False
        if not (named or bare or self._makes_up_data):
            return False
        acts = self._acts(function)
        checks = bool(self.tree.nodes_within(function, cst.Assert)) or _Act.CHECKS in acts
        if not named:
            if bare and checks and self._goes_through_nothing(function, acts):
                return True  # A test of an example, not the test of a model.
            return checks and _Act.MAKES_UP in acts and acts.isdisjoint(_SERIOUS)
        if _Act.DATA in acts:
            return checks and self._is_collected
        return checks or _Act.MAKES_UP in acts or self._is_collected

    def _compares_as_tests_do(self, function: cst.FunctionDef) -> bool:
        """Return whether a function, or one in it, calls what raises where tensors differ,
        and does no other work.
        """
        return any(
            (self.module.qualified(call.func) or "").startswith("torch.testing.assert_")
            for name in _COMPARING
            for call in self.tree.within(function, self.tree.calls_by_name.get(name, ()))
        ) and self._acts(function).isdisjoint(_WORKING)

    def _goes_through_nothing(self, function: cst.FunctionDef, acts: frozenset[_Act]) -> bool:
        """Return whether a function goes through no data but what it makes up, for several models maybe."""
        if not self.tree.nodes_within(function, cst.For):
            return True
        return _Act.MAKES_UP in acts and acts.isdisjoint(_SERIOUS - {_Act.TRAINS})

    @cached_property
    def _makes_up_data(self) -> bool:
        return any(map(self._makes_up, self.tree.nodes(cst.Call)))

    def _makes_up(self, call: cst.Call) -> bool:
        """Return whether a call makes a tensor of spelt sizes: ``torch.rand(1, 3, 224, 224)``."""
        if self.module.qualified(call.func) not in _MAKING_UP:
            return False
        sizes = [arg for arg in call.args if arg.keyword is None]
        parts = (part for size in sizes for part in self.tree.descendants(size))
        unknown = [part for part in parts if isinstance(part, (cst.Name, cst.Attribute, cst.Call))]
        return bool(sizes) and all(isinstance(part, cst.Name) and self._is_number(part) for part in unknown)

    def _is_number(self, name: cst.Name) -> bool:
        """Return whether a name stands for an integer here, whatever a function is called with."""
        given = any(binding.kind is BindingKind.PARAMETER for binding in self.module.bindings(name))
        return not given and isinstance(self.module.value(name).constant, int)

    @property
    def _returns(self) -> Sequence[cst.Return]:
        return self.tree.nodes(cst.Return)

    @property
    def _is_collected(self) -> bool:
        """Whether test runners look into the file, going by its name."""
        name = "" if self.module.path is None else self.module.path.stem
        return name.startswith("test_") or name.endswith("_test")

    def _purpose(self, root: Function | cst.Module, name: str) -> Context | None:
        """Return what a function of some name, or a script, is there for, by what it does."""
        if self._telling.isdisjoint(_PURPOSES):
            return None
        acts = self._acts(root)
        if not acts.isdisjoint(_WORKING):
            return None
        if _Act.EXPORTS in acts or {_Act.LOADS, _Act.SAVES} <= acts:
            return None if _Act.RUNS_OFTEN in acts and _Act.EXPORTS not in acts else Context.CONVERSION
        if _Act.MEASURES in acts or (_Act.READS_CLOCK in acts and begins(name, Role.MEASUREMENT)):
            return Context.BENCHMARK
        draws = _Act.DRAWS in acts and _Act.RUNS_OFTEN not in acts and root is not self.tree.root
        return Context.PLOTTING if draws else None

    @cached_property
    def _telling(self) -> frozenset[_Act]:
        """What the calls of the file do by what they are called."""
        return frozenset(act for call in self.tree.nodes(cst.Call) for act in self._named_acts(call))

    @solved(frozenset())
    def _acts(self, root: Function | cst.Module) -> frozenset[_Act]:
        """Return what a function does, or a script, by itself and in the functions that it calls."""
        function = None if root is self.tree.root else root
        calls = self.module.calls_in(function)  # type: ignore[arg-type]
        acts = self._acts_of(calls)
        loops = (loop for loop in self.tree.nodes(cst.For) if self.module.function(loop) is function)
        return acts | {_Act.DATA} if any(map(self._goes_over_data, loops)) else acts

    def _acts_in(self, part: cst.CSTNode, calls: Sequence[cst.Call]) -> frozenset[_Act]:
        """Return what a part of a program does, functions that it defines included."""
        acts = self._acts_of(self.tree.within(part, calls))
        loops = self.tree.nodes_within(part, cst.For)
        return acts | {_Act.DATA} if any(map(self._goes_over_data, loops)) else acts

    def _acts_of(self, calls: Iterable[cst.Call]) -> frozenset[_Act]:
        acts: set[_Act] = set()
        for call in calls:
            acts.update(self._done_by(call))
            for callee in self.module.callees(call):
                if not self.tree.is_elsewhere(callee):
                    acts |= self._acts(callee)
                elif Contexts.of(self.module.home(callee)).trains:
                    acts.add(_Act.TRAINS)
        return frozenset(acts)

    def _goes_over_data(self, loop: cst.For) -> bool:
        """Return whether a loop goes over the batches of a loader."""
        iterated = (
            [loop.iter, *(arg.value for arg in loop.iter.args)]
            if isinstance(loop.iter, cst.Call)
            else [loop.iter]
        )
        return any(
            self.module.value(part).kind is Kind.LOADER or has(last_name(part), Role.LOADER)
            for part in iterated
        )

    @remembered
    def _done_by(self, call: cst.Call) -> tuple[_Act, ...]:
        """Return what one call does, without the function of the file that it may run."""
        acts = list(self._named_acts(call))
        if self._makes_up(call):
            acts.append(_Act.MAKES_UP)
        name = last_name(call.func) or ""
        if is_training_step(self.module, call) or (
            not self.module.callees(call) and self._trains_elsewhere(call, name)
        ):
            acts.append(_Act.TRAINS)
        if self.module.value(call).kind is Kind.LOADER:
            acts.append(_Act.DATA)
        if self.module.flow.loops(call) and self._runs_model(call):
            acts.append(_Act.RUNS_OFTEN)
        return tuple(acts)

    def _named_acts(self, call: cst.Call) -> Iterator[_Act]:
        """Yield what a call does by what it is called."""
        name, qualified = last_name(call.func) or "", self.module.qualified(call.func) or ""
        if name in _PARSING:
            yield _Act.PARSES
        if qualified in _LOADING or name in _LOADING_NAMES:
            yield _Act.LOADS
        if qualified in _SAVING or name == "save_pretrained":
            yield _Act.SAVES
        if qualified in _EXPORTING or qualified.startswith("coremltools."):
            yield _Act.EXPORTS
        if qualified in _MEASURING:
            yield _Act.MEASURES
        if qualified in WALL_CLOCKS or qualified == "torch.cuda.Event":
            yield _Act.READS_CLOCK
        if self._draws(call):
            yield _Act.DRAWS
        if name.startswith("assert") or qualified.startswith(("torch.testing.", "numpy.testing.")):
            yield _Act.CHECKS

    def _trains_elsewhere(self, call: cst.Call, name: str) -> bool:
        """Return whether a call trains in unseen code: ``trainer.fit(model)``, ``train_epoch(model)``."""
        if self.module.callees(call):
            return False
        if isinstance(call.func, cst.Attribute):
            return name in _FITTING and (name != "train" or has(last_name(call.func.value), Role.TRAINER))
        return begins(name, Role.TRAINING) and self.module.value(call.func).kind is not Kind.CLASS

    def _runs_model(self, call: cst.Call) -> bool:
        if self.module.value(call.func).kind is Kind.MODULE:
            return True
        return self.module.value(call.func).kind is Kind.UNKNOWN and names_model(last_name(call.func) or "")

    # ------------------------------------------------------------------ parts of functions

    def _in_region(self, node: cst.CSTNode) -> Context | None:
        """Return the context of a loop, block or call around a node that is there for one purpose."""
        flow = self.module.flow
        statement = flow.statement(node)
        for around in self.tree.ancestors(node):
            if around is statement or isinstance(around, FUNCTIONS):
                break
            if isinstance(around, cst.Call) and (
                self._draws(around) or begins(last_name(around.func), Role.PLOTTING)
            ):
                return Context.PLOTTING
        loops = [loop for loop in (statement, *flow.loops(node)) if isinstance(loop, cst.For)]
        branches = (statement, *(branch.construct for branch in flow.branches(node))) if self._drawing else ()
        blocks = [block for block in (*loops, *branches) if isinstance(block, (cst.For, cst.If))]
        if self._drawing and any(map(self._is_drawn, blocks)):
            return Context.PLOTTING
        if any(map(self._is_timed, loops)):
            return Context.BENCHMARK
        profiled = any(
            isinstance(item.item, cst.Call)
            and self.module.qualified(item.item.func) in _PROFILING
            and self._is_profile(item)
            for item in flow.contexts(node)
        )
        return Context.BENCHMARK if profiled else None

    def _is_profile(self, item: cst.WithItem) -> bool:
        """Return whether what a profiler records is no training and no pass over data."""
        block = self.tree.parent(item)
        return block is not None and self._acts_in(block, self.tree.nodes(cst.Call)).isdisjoint(_WORKING)

    @remembered
    def _is_drawn(self, block: cst.For | cst.If) -> bool:
        """Return whether each run of a loop, or of a branch, draws something, and trains nothing;
        nor does what draws go through data.
        """
        body = block.body
        drawing = any(
            not self.module.flow.is_conditional(call, within=block)
            for call in self.tree.within(body, self._drawing)
        )
        if not drawing:
            return False
        acts = self._acts_in(body, self.tree.nodes(cst.Call))
        if isinstance(block, cst.If):
            # ``if __name__ == "__main__":`` evaluates, and draws what comes of it.
            return acts.isdisjoint(_WORKING)
        return _Act.TRAINS not in acts and not self._goes_over_data(block)

    @cached_property
    def _drawing(self) -> list[cst.Call]:
        """The calls that draw something."""
        return [call for call in self.tree.nodes(cst.Call) if self._draws(call)]

    @cached_property
    def _imports_drawing(self) -> bool:
        return any(self.tree.mentions(library) for library in DRAWING_LIBRARIES)

    @remembered
    def _draws(self, call: cst.Call) -> bool:
        """Return whether a call adds something to a plot."""
        if not self._imports_drawing:
            return False
        name, qualified = last_name(call.func), self.module.qualified(call.func)
        if name in _NOT_DRAWING:
            return False
        if qualified is not None:
            library, _, rest = qualified.partition(".")
            return library in DRAWING_LIBRARIES and not rest.startswith(("cm.", "colors."))
        if not isinstance(call.func, cst.Attribute):
            return False
        base = start_of(call.func, cst.Attribute, cst.Subscript)
        return isinstance(base, cst.Name) and (base.value in _AXES or self._is_of_plot(base))

    def _is_of_plot(self, name: cst.Name) -> bool:
        """Return whether a variable is a part of a plot: ``fig, ax = plt.subplots()``."""
        return any(
            isinstance(binding.value, cst.Call)
            and (self.module.qualified(binding.value.func) or "").partition(".")[0] in DRAWING_LIBRARIES
            for binding in self.module.bindings(name)
        )

    @remembered
    def _is_timed(self, loop: cst.For) -> bool:
        """Return whether a loop does the same in each round, which a clock is read for."""
        iterated = loop.iter.args[0].value if _is_wrapped(loop.iter) else loop.iter
        if not isinstance(iterated, cst.Call) or last_name(iterated.func) not in ("range", "trange"):
            return False
        root = self.module.function(loop)
        readings = [call for call in self.module.calls_in(root) if _reads_clock(self.module, call)]
        if len(readings) < 2:
            return False
        order, inside = self.tree.order, self.tree.within(loop.body, readings)
        beside = [call for call in readings if self.module.flow.loops(call) == self.module.flow.loops(loop)]
        around = any(order[call] < order[loop] for call in beside) and any(
            order[call] > self.tree.last(loop) for call in beside
        )
        if not around and len(inside) < 2:
            return False
        return self._rounds_are_alike(loop)

    def _rounds_are_alike(self, loop: cst.For) -> bool:
        """Return whether all rounds of a loop compute the same: none hands on or counts anything."""
        tree = self.tree
        if any(tree.nodes_within(loop.body, kind) for kind in (cst.For, cst.While)):
            return False
        calls = tree.nodes_within(loop.body, cst.Call)
        if not self._acts_of(calls).isdisjoint(_WORKING) or any(last_name(c.func) == "next" for c in calls):
            return False
        return not any(self._changes(loop, name) for name in tree.nodes_within(loop.body, cst.Name))

    def _changes(self, loop: cst.For, name: cst.Name) -> bool:
        """Return whether a variable read in a loop comes from the round before, or counts the rounds."""
        if not self.module.names.is_read(name):
            return False
        bindings = self.module.bindings(name)
        within = [binding for binding in bindings if self.tree.contains(loop, binding.node)]
        if any(binding.kind is BindingKind.LOOP for binding in within):
            return not isinstance(self.tree.parent(name), (cst.Comparison, cst.ComparisonTarget))
        counted = any(binding.kind is BindingKind.AUGMENT for binding in bindings)
        return 0 < len(within) < len(bindings) and not counted

    # ------------------------------------------------------------------ lessons

    @cached_property
    def _is_tutorial(self) -> bool:
        """Whether a script is a tutorial of which a web page is made, with prose between its blocks."""
        if self.module.in_notebook or not may_have_prose(self.tree.text):
            return False
        return self.tree.code.count(PROSE) >= _PARTS_OF_TUTORIAL

    @remembered
    def _of_cell(self, cell: int | None) -> Context | None:
        """Return the context of a cell of a notebook, by all that is in it."""
        calls = [call for call in self.tree.nodes(cst.Call) if self.module.position(call).cell == cell]
        acts = self._acts_of(calls)
        if not acts.isdisjoint(_WORKING):
            return None
        if any(self._draws(call) for call in calls):
            return Context.PLOTTING
        shows = any(
            last_name(call.func) == "print" and any(_is_shape(arg.value) for arg in call.args)
            for call in calls
        )
        return Context.TEACHING if _Act.MAKES_UP in acts or shows else None


def _required(function: Function) -> bool:
    """Return whether callers have to give a function something."""
    given = function.params.params
    return any(param.default is None and param.name.value not in ("self", "cls") for param in given)


def _is_shape(node: cst.BaseExpression) -> bool:
    """Return whether it is ``x.shape``, ``x.size()``."""
    asked = node.func if isinstance(node, cst.Call) else node
    return isinstance(asked, cst.Attribute) and asked.attr.value in ("shape", "size")


def _is_wrapped(iterable: cst.BaseExpression) -> TypeGuard[cst.Call]:
    """Return whether a loop goes over ``tqdm(range(n))`` or the like."""
    return isinstance(iterable, cst.Call) and last_name(iterable.func) == "tqdm" and bool(iterable.args)


def _reads_clock(module: Module, call: cst.Call) -> bool:
    """Return whether a call reads a clock of the host, or marks a moment of the device."""
    return module.qualified(call.func) in WALL_CLOCKS or last_name(call.func) in ("record", "elapsed_time")
