"""Whether a loader could have worker processes, and who decided that it has none."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.configured import parses_file
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind, all_parameters
from torchlint.semantics.spellings import keywords


class Workers(Part):
    """What one file shows of the processes that load its batches."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)

    def declines_workers(self, call: cst.Call) -> bool:
        """Return whether a loader is given no workers by a function that is told how many there should be."""
        given = self.module.argument(call, "num_workers")
        function = self.module.function(call)
        if given.constant != 0 or not isinstance(function, cst.FunctionDef):
            return False
        return not self.loaders.from_parameter(given.node) and any(
            parameter.name.value == "num_workers" for parameter in all_parameters(function.params)
        )

    def trainer_works_alone(self, call: cst.Call) -> bool:
        """Return whether a trainer is told, or left by default, to load its batches in its own process."""
        absent = self.module.argument(call, "dataloader_num_workers").absent and not parses_file(call)
        return absent or self.loaders.constant(call, "dataloader_num_workers") == 0

    def trains_on_host(self, call: cst.Call) -> bool:
        """Return whether the trainer is told, or may be told behind ``**kwargs``,
        to leave the accelerator alone.
        """
        given = keywords(call)
        return any(
            name in given and self.module.value(given[name]).constant is not False
            for name in ("use_cpu", "no_cuda")
        )

    def spawnable(self, call: cst.Call) -> bool:
        """Return whether worker processes that are spawned, not forked, could be given what they need.

        They import the script again, so it must not start its work at the top level without a guard, and
        they get the dataset and the collate function pickled, which lambdas and local definitions are not.
        """
        if self._runs_on_import(call, set()):
            return False
        for name in ("dataset", "collate_fn", "worker_init_fn"):
            node = self.module.argument(call, name).node
            if node is not None and not self._picklable(node, set()):
                return False
        return True

    def _runs_on_import(self, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
        function = self.module.function(node)
        if function is None:
            return not places.main_guarded(self.module, node)
        if function in seen:
            return False
        seen.add(function)
        return any(self._runs_on_import(call, seen) for call in self.module.callers(function))

    def _picklable(self, node: cst.BaseExpression, seen: set[cst.CSTNode]) -> bool:
        for inner in self.tree.descendants(node):
            if isinstance(inner, cst.Lambda):
                return False
            if not isinstance(inner, cst.Name) or inner in seen or not self.module.names.is_read(inner):
                continue
            seen.add(inner)
            for binding in self.module.names.bindings(inner):
                if isinstance(binding.node, (cst.FunctionDef, cst.ClassDef)):
                    if self.module.function(binding.node) is not None:
                        return False
                elif binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    if len(seen) < 200 and not self._picklable(binding.value, seen):
                        return False
        return True
