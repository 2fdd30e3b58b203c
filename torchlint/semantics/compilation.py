"""Which code ``torch.compile`` compiles, and which is captured in a CUDA graph.

The compiler is given functions and modules. It follows their calls into the functions of the file, but not
into those that it is told to leave alone, and code that asks whether it is being compiled knows what it does.

A graph is captured of what runs in ``torch.cuda.graph``, and of what is made graphed. Kernels are recorded
and nothing runs: whatever makes the host wait for the device, or copies from pageable memory, fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.api.compiler import ASKS_COMPILER, DISABLERS
from torchlint.semantics.api.frameworks import COMPILERS
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.flow.guards import guards
from torchlint.semantics.identifiers import outcome_by_default
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.reach import ways_in
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import given_as, keywords, last_name, parts_of_display
from torchlint.semantics.values import Kind, Value

Maker: TypeAlias = "cst.Call | cst.Decorator"

# Decorators of torch and functools that the compiler does not look behind.
_KEPT_OUT = frozenset({"custom_op", "allow_in_graph", "lru_cache", "cache"})
_COMPILING = frozenset({"compile", "optimize"})
_RENAMED = re.compile(r"torch\.compile *$", re.MULTILINE)
# Lightning unwraps a compiled module and compiles these methods of it.
_LIGHTNING_METHODS = ("forward", "training_step", "validation_step", "test_step", "predict_step")


@dataclass(frozen=True, slots=True)
class Region:
    """How a piece of code comes to be compiled.

    ``maker`` is the call or decorator that has ``entry`` compiled, and ``path`` are the calls that lead from
    there to the code, outermost first; empty if it stands in ``entry`` itself.
    """

    entry: Function
    maker: Maker
    path: tuple[cst.Call, ...] = ()


def compiled(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is inside a function or module that ``torch.compile`` compiles by default."""
    region = Compilation.of(module).region(node)
    if region is None:
        return False
    home = module.home(region.maker)
    asked = guards(home, region.maker)
    return not any(outcome_by_default(home, guard.test) is (not guard.holds) for guard in asked)


class Compilation(Part):
    """The compiled code of one file, whichever file of its programs has it compiled."""

    def region(self, node: cst.CSTNode) -> Region | None:
        """Return how the code at a node comes to be compiled, on the shortest way; None if it is not."""
        if not self.entries:
            return None
        function = self.module.function(node)
        return self._reach(function) if function is not None else None

    @remembered
    def _reach(self, function: Function) -> Region | None:
        for current, way in ways_in(self.module, function, self._left_alone):
            maker = self.entries.get(current)
            if maker is not None:
                return Region(current, maker, way)
        return None

    @remembered
    def _left_alone(self, function: Function) -> bool:
        """Return whether a function is kept from the compiler, or asks whether it is compiled."""
        disabling = (self, *map(Compilation.of, self.module.companions("disable", "allow_in_graph")))
        if any(function in each._disabled for each in disabling):
            return True
        return any(
            isinstance(part, (cst.Name, cst.Attribute)) and ASKS_COMPILER.search(last_name(part) or "")
            for part in self.tree.descendants(function.body)
        )

    @cached_property
    def _disabled(self) -> set[Function]:
        """The functions that decorators or calls of the file keep the compiler out of."""
        found: set[Function] = set()
        for decorator in self.tree.nodes(cst.Decorator):
            holder = self.tree.parent(decorator)
            made = decorator.decorator
            made = made.func if isinstance(made, cst.Call) else made
            qualified = self.module.qualified(made) or ""
            if isinstance(holder, cst.FunctionDef) and qualified not in COMPILERS:
                if DISABLERS.search(qualified) or self._keeps_out(made):
                    found.add(holder)
        for call in self.tree.nodes(cst.Call):
            if call.args and DISABLERS.search(self.module.qualified(call.func) or ""):
                found.update(self._run_by(self.module.value(call.args[0].value)))
        return found

    def _keeps_out(self, decorator: cst.BaseExpression) -> bool:
        """Return whether a decorator keeps the compiler out, by its body or, unseen, by its name."""
        name = last_name(decorator)
        made = self.module.value(decorator).definition
        if not isinstance(made, cst.FunctionDef):
            return name in _KEPT_OUT or has(name, Role.COMPILATION)
        home = self.module.home(made)
        return any(
            DISABLERS.search(home.qualified(part) or "") or last_name(part) in _KEPT_OUT
            for part in home.tree.descendants(made)
            if isinstance(part, (cst.Name, cst.Attribute))
        )

    # ------------------------------------------------------------------ what is given to the compiler

    @cached_property
    def entries(self) -> dict[Function, Maker]:
        """The functions of the program that are compiled, with the call or decorator that has them compiled.

        What the file itself has compiled goes first.
        """
        found = dict(self._own_entries)
        for other in map(Compilation.of, self.module.companions("compile", "dynamo")):
            for function, maker in other._own_entries.items():
                found.setdefault(function, maker)
        return found

    @cached_property
    def _own_entries(self) -> dict[Function, Maker]:
        """What the file itself has compiled."""
        found: dict[Function, Maker] = {}
        if not self.tree.mentions("compile") and not self.tree.mentions("dynamo"):
            return found
        for call in self.tree.nodes(cst.Call):
            given = self.given(call)
            if given is not None:
                for function in self._run_by(self.module.value(given)):
                    found.setdefault(function, call)
        for decorator in self.tree.nodes(cst.Decorator):
            holder = self.given(decorator)
            if isinstance(holder, cst.FunctionDef):
                found.setdefault(holder, decorator)
            elif isinstance(holder, cst.ClassDef):
                for function in self._methods(holder):
                    found.setdefault(function, decorator)
        return found

    def given(self, node: cst.Call | cst.Decorator) -> cst.CSTNode | None:
        """Return what a call or decorator has compiled: an expression, or the function or class below it.

        ``torch.compile(model)``, ``torch.compile(mode=…)(f)``, ``model.compile()``.
        """
        if isinstance(node, cst.Decorator):
            return self.tree.parent(node) if self._compiles(node.decorator) else None
        func = node.func
        if last_name(func) not in _COMPILING and not self._renamed:
            return None  # by far the most calls
        if isinstance(func, cst.Call):
            makes = self._compiles(func) and node.args and _given(func) is None
            return node.args[0].value if makes else None
        if self.module.qualified(func) in COMPILERS:
            return None if self._switched_off(node) else _given(node)
        if isinstance(func, cst.Attribute) and func.attr.value == "compile" and not self._switched_off(node):
            # A method of the project may get something else ready: ``self.compile(optimizer, loss)``.
            own = self.module.value(func).definition is not None
            return func.value if not own and self.module.value(func.value).kind is Kind.MODULE else None
        return None

    @cached_property
    def _renamed(self) -> bool:
        """Whether the file may call a compiler by another name."""
        imported = any(self.tree.mentions(f"{name} as ") for name in _COMPILING)
        return imported or (self.tree.mentions("torch.compile") and self.tree.matches(_RENAMED))

    def _compiles(self, made: cst.BaseExpression) -> bool:
        """Return whether a decorator, or what stands in for one, is a compiler, with options or without."""
        if isinstance(made, cst.Call):
            if self._switched_off(made):
                return False
            partial = self.module.qualified(made.func) == "functools.partial" and made.args
            made = made.args[0].value if partial else made.func
        return self.module.qualified(made) in COMPILERS

    def _switched_off(self, call: cst.Call) -> bool:
        disabled = keywords(call).get("disable")
        return disabled is not None and self.module.value(disabled).constant is True

    def _run_by(self, value: Value) -> Iterator[Function]:
        """Yield the functions of the file that run when something is called."""
        if isinstance(value.definition, cst.ClassDef):
            yield from self._methods(value.definition)
        elif value.definition is not None:
            yield value.definition

    def _methods(self, cls: cst.ClassDef) -> Iterator[Function]:
        info = self.module.classes.info(cls)
        names = _LIGHTNING_METHODS if info.lightning else ("forward",)
        methods = [method for name in names if (method := info.method(name)) is not None]
        called = info.method("__call__")
        yield from methods or ([called] if called is not None else [])


def _given(call: cst.Call) -> cst.BaseExpression | None:
    """Return what a compiler is given: the first argument, or ``model=``."""
    return given_as(call, "model", 0)


CAPTURING = frozenset({"torch.cuda.graph", "torch.cuda.graphs.graph"})
"""Context managers in which a stream is captured."""
GRAPHING = frozenset({"torch.cuda.make_graphed_callables", "torch.cuda.graphs.make_graphed_callables"})
"""Functions that capture what they are given."""
_WORDS = ("cuda.graph", "make_graphed_callables")
_ASKING = "is_current_stream_capturing"


@dataclass(frozen=True, slots=True)
class CapturedRegion:
    """How a place comes to be captured: by what, and through which calls from there, the outermost first."""

    maker: cst.Call
    path: tuple[cst.Call, ...] = ()


class Capture(Part):
    """The captured code of one file, whichever file of its programs captures it."""

    def region(self, node: cst.CSTNode) -> CapturedRegion | None:
        """Return how a node comes to be captured, on the shortest way; None if it is not, or only at times.

        A place below a condition may be left out while the stream is captured.
        """
        if not self._captures:
            return None
        found = self._reach(node)
        return found if found is not None and self._surely_runs(node, found) else None

    @cached_property
    def _captures(self) -> bool:
        """Whether anything in the programs of the file captures a graph."""
        return self.module.mentions(*_WORDS)

    def _reach(self, node: cst.CSTNode) -> CapturedRegion | None:
        maker = self._around(node)
        if maker is not None:
            return CapturedRegion(maker)
        function = self.module.function(node)
        return self._reached(function) if function is not None else None

    def _around(self, node: cst.CSTNode) -> cst.Call | None:
        """Return the context manager, entered in its function, that captures what a node does."""
        for item in self.module.flow.contexts(node):
            made = item.item
            if isinstance(made, cst.Call) and self.module.qualified(made.func) in CAPTURING:
                return made
        return None

    @remembered
    def _reached(self, function: Function) -> CapturedRegion | None:
        """Return how what a function does comes to be captured, by its callers."""
        for current, way in ways_in(self.module, function, self._asks):
            maker = Capture.of(self.module.home(current))._graphed.get(current)
            if maker is not None:
                return CapturedRegion(maker, way)
            for call in self.module.callers(current):
                maker = Capture.of(self.module.home(call))._around(call)
                if maker is not None:
                    return CapturedRegion(maker, (call, *way))
        return None

    def _asks(self, function: Function) -> bool:
        """Return whether a function asks if it is being captured, and so knows what it does."""
        return _ASKING in self.module.home(function).tree.names_in(function.body)

    def _surely_runs(self, node: cst.CSTNode, region: CapturedRegion) -> bool:
        for place in (node, *region.path):
            home = self.module.home(place)
            flow = home.flow
            entered = (item for item in flow.contexts(place) if item.item is region.maker)
            block = next(map(home.tree.parent, entered), None)
            handled = any(not isinstance(chosen, cst.MatchCase) for chosen in flow.alternatives(place))
            if handled or flow.is_conditional(place, block):
                return False
        return True

    @cached_property
    def _graphed(self) -> dict[Function, cst.Call]:
        """The functions of the program that are made graphed, with the calls that do so."""
        found = dict(self._own_graphed)
        for other in map(Capture.of, self.module.companions("make_graphed_callables")):
            for function, maker in other._own_graphed.items():
                found.setdefault(function, maker)
        return found

    @cached_property
    def _own_graphed(self) -> dict[Function, cst.Call]:
        found: dict[Function, cst.Call] = {}
        for call in self.tree.calls_by_name.get("make_graphed_callables", ()):
            if not call.args or call.args[0].star or self.module.qualified(call.func) not in GRAPHING:
                continue
            for graphed in parts_of_display(call.args[0].value):
                function = self.module.inference.callgraph.run_by(self.module.value(graphed))
                if function is not None:
                    found.setdefault(function, call)
        return found


def captured(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is captured in a CUDA graph, surely and not only at times."""
    return Capture.of(module).region(node) is not None
