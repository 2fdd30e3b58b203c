"""The arguments of a loader that exclude one another."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.loaders import ITERABLE, Loaders
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.values import Kind


class Refusal(enum.Enum):
    """What a loader has, or lacks, that makes it refuse an argument."""

    NO_WORKERS = enum.auto()
    NO_BATCHES = enum.auto()
    ITERABLE_DATASET = enum.auto()
    SAMPLER = enum.auto()
    BATCH_SAMPLER = enum.auto()


@dataclass(frozen=True, slots=True)
class Conflict:
    """An argument that a loader refuses beside its others; ``idle`` if it would change nothing anyway.

    ``sometimes`` if it is refused on some paths only, where there is a sampler.
    """

    argument: str
    refusal: Refusal
    idle: bool
    sometimes: bool = False


class Conflicts(Part):
    """The conflicts among the arguments of the loaders of one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)

    def conflicts(self, call: cst.Call) -> Iterator[Conflict]:
        """Yield the arguments that make the constructor, or the first iteration, raise."""
        yield from self._worker_conflicts(call)
        yield from self._sampler_conflicts(call)
        if (
            self.loaders.constant(call, "batch_size") is None
            and self.loaders.constant(call, "drop_last") is True
        ):
            yield Conflict("drop_last", Refusal.NO_BATCHES, idle=True)
        if self._is_iterable(call):
            if self.loaders.constant(call, "shuffle") is True:
                yield Conflict("shuffle", Refusal.ITERABLE_DATASET, idle=False)
            for name in ("sampler", "batch_sampler"):
                if self._sampler(call, name) is not None:
                    yield Conflict(name, Refusal.ITERABLE_DATASET, idle=False)

    def _worker_conflicts(self, call: cst.Call) -> Iterator[Conflict]:
        if self.loaders.workers(call) != 0:
            return
        prefetch = self.loaders.constant(call, "prefetch_factor")
        timeout = self.loaders.constant(call, "timeout")
        context = self.loaders.constant(call, "multiprocessing_context")
        refused = {
            "persistent_workers": self.loaders.constant(call, "persistent_workers") is True,
            # Before 2.0 the default was 2, and giving the default was allowed.
            "prefetch_factor": isinstance(prefetch, int)
            and (prefetch != 2 or self.module.target.admits("2.0")),
            "timeout": isinstance(timeout, (int, float)) and timeout > 0,
            "multiprocessing_context": isinstance(context, str),
        }
        for name, raises in refused.items():
            if raises:
                yield Conflict(name, Refusal.NO_WORKERS, idle=True)

    def _sampler_conflicts(self, call: cst.Call) -> Iterator[Conflict]:
        sampler, batches = self._sampler(call, "sampler"), self._sampler(call, "batch_sampler")
        shuffled = self.loaders.constant(call, "shuffle") is True
        if sampler is not None and shuffled:
            yield Conflict("shuffle", Refusal.SAMPLER, idle=self._is_random(sampler))
        elif shuffled and self._shuffles_always(call) and self._sometimes_sampled(call):
            yield Conflict("shuffle", Refusal.SAMPLER, idle=False, sometimes=True)
        if batches is None:
            return
        if shuffled:
            inner = self._sampler_of(batches)
            yield Conflict(
                "shuffle", Refusal.BATCH_SAMPLER, idle=inner is not None and self._is_random(inner)
            )
        if sampler is not None:
            yield Conflict("sampler", Refusal.BATCH_SAMPLER, idle=False)
        size = self.loaders.constant(call, "batch_size")
        if isinstance(size, int) and size != 1:
            same = isinstance(batches, cst.Call) and self.loaders.constant(batches, "batch_size") == size
            yield Conflict("batch_size", Refusal.BATCH_SAMPLER, idle=same)
        if self.loaders.constant(call, "drop_last") is True:
            same = isinstance(batches, cst.Call) and self.loaders.constant(batches, "drop_last") is True
            yield Conflict("drop_last", Refusal.BATCH_SAMPLER, idle=same)

    def _sampler(self, call: cst.Call, name: str) -> cst.BaseExpression | None:
        """Return what makes the sampler given for a parameter, if it certainly is one and not None."""
        argument = self.module.argument(call, name)
        made = self.loaders.made(argument.node) if argument.node is not None else None
        if isinstance(made, (cst.List, cst.Tuple, cst.ListComp)):
            return made
        if isinstance(made, cst.Call):
            kind = self.module.value(made).kind
            if kind is Kind.SAMPLER or self.module.qualified(made.func) in (
                "builtins.list",
                "builtins.range",
            ):
                return made
        return None

    def _shuffles_always(self, call: cst.Call) -> bool:
        """Return whether ``shuffle`` asks nothing, such as ``not distributed``,
        that may go with the sampler.
        """
        node = self.module.argument(call, "shuffle").node
        made = self.loaders.made(node) if node is not None else None
        return not isinstance(made, (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison))

    def _sometimes_sampled(self, call: cst.Call) -> bool:
        """Return whether it is ``sampler=DistributedSampler(data) if distributed else None``, in one
        expression or in branches.
        """
        node = self.module.argument(call, "sampler").node
        made = self.loaders.made(node) if node is not None else None
        branches: list[cst.BaseExpression | None] = []
        if isinstance(made, cst.IfExp):
            branches = [made.body, made.orelse]
        elif isinstance(node, cst.Name):
            bindings = self.module.names.bindings(node)
            if all(b.kind is BindingKind.ASSIGN and not b.path for b in bindings):
                branches = [b.value for b in bindings]
        if self._chosen_by_case(call, branches):
            return False
        return any(
            isinstance(branch, cst.Call) and self.module.value(branch).kind is Kind.SAMPLER
            for branch in branches
        )

    def _chosen_by_case(self, call: cst.Call, values: Sequence[cst.BaseExpression | None]) -> bool:
        """Return whether a condition around a call may go with the one that decides between values."""
        return any(
            value is None or not self.tree.contains(decision.construct, value)
            for decision in self.module.flow.branches(call)
            for value in values
        )

    def _sampler_of(self, batches: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the sampler that a batch sampler draws from."""
        node = self.module.argument(batches, "sampler").node if isinstance(batches, cst.Call) else None
        return self.loaders.made(node) if node is not None else None

    def _is_random(self, sampler: cst.BaseExpression) -> bool:
        """Return whether a sampler draws at random, so that shuffling is what it does anyway."""
        if not isinstance(sampler, cst.Call):
            return False
        name = (self.module.class_of(sampler) or "").rpartition(".")[2]
        if name == "DistributedSampler":
            return self.loaders.constant(sampler, "shuffle") is True
        return name in ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")

    def _is_iterable(self, call: cst.Call) -> bool:
        node = self.loaders.dataset(call)
        definition = self.module.value(node).definition if node is not None else None
        return isinstance(definition, cst.ClassDef) and self.module.classes.info(definition).inherits(
            ITERABLE
        )
