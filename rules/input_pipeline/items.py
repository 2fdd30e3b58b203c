"""What the items of a loader are, and whether worker processes would have anything to do with them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.lexicon import name_tokens
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module, Part

from .datasets import Datasets


class Items(Part):
    """The items of the loaders of one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)
        self.datasets = Datasets.of(module)

    def in_memory(self, call: cst.Call) -> bool:
        """Return whether the data is there already, so that fetching a batch is only picking rows."""
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.in_memory(node)

    def in_sequences(self, call: cst.Call) -> bool:
        """Return whether the data is a list, a tensor, a `TensorDataset`, whose rows are picked at once."""
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.is_plain_rows(node)

    def _of_few_items(self, call: cst.Call) -> bool:
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.has_few_items(node)

    def on_accelerator(self, call: cst.Call) -> bool:
        """Return whether the dataset or the collate function hands out tensors that are on an accelerator."""
        collate = self.module.argument(call, "collate_fn").node
        definition = self.module.value(collate).definition if collate is not None else None
        if definition is not None and self.datasets.moves(definition):
            return True
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.on_accelerator(node)

    def _ignores_workers(self, call: cst.Call) -> bool:
        """Return whether what the loader reads is, on some path,
        an iterable dataset that knows of no workers.
        """
        node = self.loaders.dataset(call)
        made: list[cst.BaseExpression | None] = [node]
        if isinstance(node, cst.Name):
            made += [binding.value for binding in self.module.names.bindings(node) if not binding.path]
        definitions = [self.module.value(value).definition for value in made if value is not None]
        return any(isinstance(d, cst.ClassDef) and self.datasets.ignores_workers(d) for d in definitions)

    def yields_raw_items(self, call: cst.Call) -> bool:
        """Return whether items come out as the dataset has them, in a list: ``collate_fn=list``,
        or none at all.
        """
        dataset = self.loaders.dataset(call)
        if isinstance(dataset, cst.List) and not dataset.elements:
            return True
        collate = self.module.argument(call, "collate_fn").node
        if isinstance(collate, cst.Lambda) and isinstance(collate.body, cst.Name):
            return True
        return collate is not None and self.module.qualified(collate) in ("builtins.list", "builtins.tuple")

    def yields_tokens(self, call: cst.Call) -> bool:
        """Return whether an item of a loader, or of a trainer, is the tokens of a text: quickly made,
        few bytes.
        """
        node = self.loaders.dataset(call)
        if node is not None and self.datasets.has_tokens(node):
            return True
        return name_tokens(self.loaders.keys_read(call)) and not self.module.tree.mentions("pixel_values")

    def yields_table_rows(self, call: cst.Call) -> bool:
        """Return whether an item of a loader is a few rows of a table that is in memory: few bytes."""
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.has_table_rows(node)

    def slight(self, call: cst.Call) -> str | None:
        """Return why it matters little how batches are loaded, if it does."""
        if self.yields_tokens(call):
            return "the items are tokens, which are small and quickly loaded"
        if self.yields_table_rows(call):
            return "the items are rows of a table, which are small and quickly loaded"
        return "goes through the data once" if self.loaders.only_collected(call) else None

    def idle_workers(self, call: cst.Call) -> bool:
        """Return whether worker processes would have nothing to do, or could not do it."""
        return (
            self.in_memory(call)
            or self._of_few_items(call)
            or self.on_accelerator(call)
            or self._ignores_workers(call)
            or self.yields_raw_items(call)
            or self.loaders.only_sampled(call)
            or self._one_batch(call)
            or self._plays(call)
            or self._loads_ahead(call)
        )

    def _loads_ahead(self, call: cst.Call) -> bool:
        """Return whether the dataset has workers of its own, whose processes a worker must not have."""
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.loads_ahead(node)

    def _plays(self, call: cst.Call) -> bool:
        node = self.loaders.dataset(call)
        return node is not None and self.datasets.plays(node)

    def _one_batch(self, call: cst.Call) -> bool:
        """Return whether it is ``batch_size=len(dataset)``, also by way of a variable."""
        size = self.module.argument(call, "batch_size").node
        held = self.module.names.assignment(size) if size is not None else None
        size = size if held is None else held.value
        dataset = self.loaders.dataset(call)
        if not isinstance(size, cst.Call) or dataset is None or len(size.args) != 1:
            return False
        same = self.module.source(size.args[0].value) == self.module.source(dataset)
        return same and self.module.qualified(size.func) == "builtins.len"


def made_like(module: Module, call: cst.Call) -> str | None:
    """Return the code of the loader whose data, and other arguments, a loader is made with:
    ``train_loader`` of ``DataLoader(train_loader.dataset, batch_size=train_loader.batch_size)``.
    """
    read: dict[str, set[str]] = {}
    for arg in call.args:
        for node in module.tree.descendants(arg.value):
            if isinstance(node, cst.Attribute) and isinstance(node.value, (cst.Name, cst.Attribute)):
                read.setdefault(module.source(node.value), set()).add(node.attr.value)
    return next((owner for owner, names in read.items() if "dataset" in names and names & _ARGUMENTS), None)


_ARGUMENTS = frozenset({"batch_sampler", "batch_size", "collate_fn", "drop_last", "sampler"})
