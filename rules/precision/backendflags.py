"""The switches of torch's backends that a file sets: cuDNN's search, determinism, TF32.

They are global: what counts is which values they have when the work begins, whoever wrote them. A file sets
them by assignment, in pairs or chains as well, by functions, or for the length of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.module import Part
from torchlint.semantics.values import MISSING

BENCHMARK = "torch.backends.cudnn.benchmark"
DETERMINISTIC = "torch.backends.cudnn.deterministic"
DETERMINISTIC_ALGORITHMS = "torch.use_deterministic_algorithms"
MATMUL_TF32 = "torch.backends.cuda.matmul.allow_tf32"
CUDNN_TF32 = "torch.backends.cudnn.allow_tf32"

_ASSIGNED = frozenset({BENCHMARK, DETERMINISTIC, MATMUL_TF32, CUDNN_TF32})
_SETTERS = {
    "torch.use_deterministic_algorithms": "mode",
    "torch.set_deterministic": "d",  # before torch 1.8
}
_TRAINERS = frozenset(
    {
        "lightning.Trainer",
        "lightning.pytorch.Trainer",
        "lightning.pytorch.trainer.Trainer",
        "pytorch_lightning.Trainer",
        "pytorch_lightning.trainer.Trainer",
    }
)


@dataclass(frozen=True, slots=True)
class Write:
    """A switch gets a value: ``value`` is True or False, or None where the file does not tell.

    ``node`` is the assignment or call, ``given`` the expression of the value. ``block`` is the call of a
    block (``cudnn.flags(...)``) or of a trainer, for whose length it holds; else None.
    """

    switch: str
    value: bool | None
    node: cst.CSTNode
    given: cst.BaseExpression
    block: cst.Call | None = None


class BackendFlags(Part):
    """What one file makes of the switches."""

    @cached_property
    def writes(self) -> tuple[Write, ...]:
        """All places that set a switch, in source order, and those in other files of the program."""
        others = (
            () if self.link is None else self.link.companions(self, ("backends", "determin", "benchmark"))
        )
        found = [write for each in (self, *map(BackendFlags.of, others)) for write in each.own_writes]
        return tuple(sorted(found, key=lambda write: self.tree.order[write.node]))

    @cached_property
    def own_writes(self) -> list[Write]:
        """The places of this file that set a switch."""
        return [*self._assignments(), *self._calls()]

    def writes_of(self, *switches: str) -> list[Write]:
        """Return the places that set one of these switches."""
        return [write for write in self.writes if write.switch in switches]

    # ------------------------------------------------------------------ where they are set

    def _assignments(self) -> Iterator[Write]:
        for assign in self.tree.nodes(cst.Assign):
            for target in assign.targets:
                yield from self._assigned(assign, target.target, assign.value)
        for annotated in self.tree.nodes(cst.AnnAssign):
            if annotated.value is not None:
                yield from self._assigned(annotated, annotated.target, annotated.value)

    def _assigned(
        self, assign: cst.CSTNode, target: cst.BaseExpression, value: cst.BaseExpression
    ) -> Iterator[Write]:
        match target, value:
            case cst.Attribute(), _:
                switch = self.module.qualified(target)
                if switch in _ASSIGNED:
                    yield Write(switch, self._constant(value), assign, value)
            case cst.Tuple() | cst.List(), cst.Tuple() | cst.List() if len(target.elements) == len(
                value.elements
            ):
                for inner, given in zip(target.elements, value.elements, strict=True):
                    yield from self._assigned(assign, inner.value, given.value)
            case cst.Tuple() | cst.List(), _:
                for inner in target.elements:
                    switch = self.module.qualified(inner.value)
                    if switch in _ASSIGNED:
                        yield Write(switch, None, assign, value)
            case _:
                pass

    def _calls(self) -> Iterator[Write]:
        for call in self.tree.nodes(cst.Call):
            name = self.module.qualified(call.func)
            if name in _SETTERS:
                given = next(
                    (arg for arg in call.args if arg.keyword is None or arg.keyword.value == _SETTERS[name]),
                    None,
                )
                if given is not None and not given.star:
                    value = self._constant(given.value)
                    yield Write(DETERMINISTIC_ALGORITHMS, value, call, given.value)
            elif name == "torch.backends.cudnn.flags" or name in _TRAINERS:
                for arg in call.args:
                    keyword = arg.keyword.value if arg.keyword is not None else ""
                    switch = f"torch.backends.cudnn.{keyword}"
                    if switch in _ASSIGNED:
                        yield Write(switch, self._constant(arg.value), call, arg.value, call)

    def _constant(self, node: cst.BaseExpression) -> bool | None:
        constant = self.module.value(node).constant
        return None if constant is MISSING or constant is None else bool(constant)

    # ------------------------------------------------------------------ what holds in the end

    @cached_property
    def conflict(self) -> tuple[Write, Write] | None:
        """cuDNN's search turned on and results asked to be repeatable, on one way through the program.

        Both must be what holds in the end: what is set again behind, on every way that leads through both,
        does not count, nor do places of which only one can be run.
        """
        searches = [write for write in self.writes_of(BENCHMARK) if write.value]
        repeatable = [
            write for write in self.writes_of(DETERMINISTIC, DETERMINISTIC_ALGORITHMS) if write.value
        ]
        for search in searches:
            for repeat in repeatable:
                if self._meet(search, repeat):
                    return search, repeat
        return None

    def _meet(self, one: Write, other: Write) -> bool:
        if one.block is not None or other.block is not None:
            return one.block is other.block
        function = self._common(one, other)
        if function is False:
            return False
        places = {write: self._place(write, function) for write in self.writes if write.block is None}
        here, there = places[one], places[other]
        if here is None or there is None or not self._compatible(here, there):
            return False
        switches = {one.switch: one, other.switch: other}
        for write, place in places.items():
            later = switches.get(write.switch)
            if later is None or write is later or place is None or write.value is True:
                continue
            if self._order(write, place) < self._order(later, places[later]):
                continue
            # Whatever lies on the way of either, behind what it changes, has the last word.
            if self._always(place, here) or self._always(place, there):
                return False
        return True

    def _order(self, write: Write, place: cst.CSTNode | None) -> tuple[int, int]:
        order = self.tree.order
        return (order[place] if place is not None else 0, order[write.node])

    def _common(self, one: Write, other: Write) -> Function | bool | None:
        """Return the function (None: the module) in which both happen, directly or by a call;
        False if none.
        """
        theirs = self._homes(other)
        for home in self._homes(one):
            if home in theirs:
                return home
        return False

    def _homes(self, write: Write) -> list[Function | None]:
        """Return the functions in which a write happens, its own first, then those that call it."""
        found = [self.module.function(write.node)]
        seen: set[Function | None] = set(found)
        for home in found:
            for call in self.module.callers(home) if home is not None else ():
                caller = self.module.function(call)
                if caller not in seen:
                    seen.add(caller)
                    found.append(caller)
        return found

    def _place(self, write: Write, function: Function | bool | None) -> cst.CSTNode | None:
        """Return the node in the code of ``function`` by which the program gets to a write,
        the first if several.
        """
        waiting: list[cst.CSTNode] = [write.node]
        seen: set[object] = set()
        for node in waiting:
            home = self.module.function(node)
            if home is function:
                return node
            if home is not None and home not in seen:
                seen.add(home)
                waiting.extend(self.module.callers(home))
        return None

    def _compatible(self, one: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Return whether one run gets to both, since one of them is not run without the other."""
        return self._always(one, other) or self._always(other, one)

    def _always(self, place: cst.CSTNode, other: cst.CSTNode) -> bool:
        """Return whether what leads to ``other`` leads to ``place``, too, before or behind it."""
        flow = self.module.flow
        return place is other or flow.certainly_before(place, other) or flow.certainly_after(other, place)
