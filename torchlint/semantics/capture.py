"""Which code is captured in a CUDA graph: what runs in ``torch.cuda.graph``, and what is made graphed.

While a stream is captured, kernels are recorded and nothing runs. Whatever makes the host wait for the
device, or copies from pageable memory, fails.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import FUNCTIONS, Function
from torchlint.semantics.module import Module, Part
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

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
        """How a node comes to be captured, on the shortest way; None if it is not, or only at times.

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
        """The context manager, entered in its function, that captures what a node does."""
        for item in self.module.flow.contexts(node):
            made = item.item
            if isinstance(made, cst.Call) and self.module.qualified(made.func) in CAPTURING:
                return made
        return None

    @remembered
    def _reached(self, function: Function) -> CapturedRegion | None:
        """How what a function does comes to be captured, by its callers."""
        waiting: deque[tuple[Function, tuple[cst.Call, ...]]] = deque([(function, ())])
        seen: set[Function] = {function}
        while waiting:
            current, path = waiting.popleft()
            home = Capture.of(self.module.home(current))
            if home._asks(current):
                continue
            maker = home._graphed.get(current)
            if maker is not None:
                return CapturedRegion(maker, path)
            for call in self.module.callers(current):
                around = Capture.of(self.module.home(call))
                maker = around._around(call)
                if maker is not None:
                    return CapturedRegion(maker, (call, *path))
                outer = around.module.function(call)
                if outer is not None and outer not in seen:
                    seen.add(outer)
                    waiting.append((outer, (call, *path)))
        return None

    def _asks(self, function: Function) -> bool:
        """Whether a function asks if it is being captured, and so knows what it does."""
        return any(
            isinstance(part, cst.Name) and part.value == _ASKING
            for part in self.tree.descendants(function.body)
        )

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
            given = call.args[0].value
            each = (
                [element.value for element in given.elements]
                if isinstance(given, (cst.Tuple, cst.List))
                else [given]
            )
            for callable_ in each:
                function = _run_by(self.module, callable_)
                if function is not None:
                    found.setdefault(function, call)
        return found


def _run_by(module: Module, node: cst.BaseExpression) -> Function | None:
    """The function that runs when a function, or an instance of a module, is called."""
    value = module.value(node)
    definition = value.definition
    if isinstance(definition, cst.ClassDef) and value.kind is Kind.MODULE:
        return module.home(definition).classes.info(definition).method("forward")
    return definition if isinstance(definition, FUNCTIONS) else None


def captured(module: Module, node: cst.CSTNode) -> bool:
    """Whether a node is captured in a CUDA graph, surely and not only at times."""
    return Capture.of(module).region(node) is not None
