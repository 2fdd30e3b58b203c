"""What a place is there for, where nobody minds how fast it runs.

Unit tests, branches for debugging, plots, lessons, benchmarks, conversions of checkpoints, and code for
the CPU or for old releases of torch. What the program does there decides (its imports, its guards, the calls
of a function and of those that it calls); a name helps only where that leaves it open. A function that is
only called at places of one context is part of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import libcst as cst

from torchlint.semantics.api.families import TEST_LIBRARIES
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import FUNCTIONS, Function
from torchlint.semantics.inference import Inference
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Names
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.throttling import Throttling
from torchlint.semantics.values import Device
from torchlint.syntax import SyntaxTree


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


COLD: Final = frozenset(Context) - {Context.TEACHING, Context.OLD_RELEASE}
"""The contexts in which a place is not hot, whichever loop it stands in."""


def context(module: Module, node: cst.CSTNode) -> Context | None:
    """What a place is there for, if that makes its speed of little account; None for all other code."""
    return Contexts.of(module).context(node)


def is_test(module: Module) -> bool:
    """Whether the file as a whole holds unit tests."""
    return Contexts.of(module).is_test


def imports_test_library(names: Names) -> bool:
    """Whether a file imports what unit tests are written with."""
    bindings = (binding for found in names.module_scope.bindings.values() for binding in found)
    return any((binding.imported or "").partition(".")[0] in TEST_LIBRARIES for binding in bindings)


def stays_on_host(tree: SyntaxTree, inference: Inference, definition: cst.ClassDef) -> bool:
    """Whether a class sets its attribute ``device`` to the CPU, and never to anything else."""
    devices = [
        inference.value(assign.value).device
        for assign in tree.within(definition, tree.nodes(cst.Assign))
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

    @remembered
    def context(self, node: cst.CSTNode) -> Context | None:
        """The context of a node: its own, or that of the function around it."""
        if self.is_test:
            return Context.TEST
        guarded = self._guarded(node)
        if guarded is not None:
            return guarded
        root = self.module.flow.root(node)
        return self._of_function(root) if isinstance(root, FUNCTIONS) else None

    def _guarded(self, node: cst.CSTNode) -> Context | None:
        """The context of the branch of its function that a node stands in."""
        throttling = Throttling.of(self.module)
        if throttling.on_host(node):
            return Context.HOST_ONLY
        if throttling.debugs(node):
            return Context.DEBUG
        if ReleaseChecks.of(self.module).is_for_older(node):
            return Context.OLD_RELEASE
        return None

    @solved(None)
    def _of_function(self, function: Function) -> Context | None:
        """The context of all that a function does."""
        outer = self.tree.parent(function)
        owner = self.module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
        if owner is not None and stays_on_host(self.tree, self.module.inference, owner):
            return Context.HOST_ONLY
        found = self.context(outer) if outer is not None else None
        return found if found is not None else self._of_callers(function)

    def _of_callers(self, function: Function) -> Context | None:
        """The context that all calls of a function share, itself aside."""
        calls = [call for call in self.module.callers(function) if not self.tree.contains(function, call)]
        found = [self.context(call) for call in calls]
        return found[0] if found and None not in found and len(set(found)) == 1 else None
