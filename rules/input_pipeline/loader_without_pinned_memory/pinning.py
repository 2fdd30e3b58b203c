"""Whether the batches of a loader can be pinned, and who would notice."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.loaders import CASTS, Copying, Loaders
from torchlint.semantics.module import Module, Part
from torchlint.semantics.sources import (
    Path,
    Source,
    Through,
    onward,
    returns,
    some,
    traced,
)
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

# What sorts items into lists and dictionaries, and leaves them as they are.
_REGROUPING = frozenset({"append", "dict", "enumerate", "extend", "items", "keys", "len", "list"}) | {
    *("range", "tuple", "values", "zip")
}


class Pinning(Part):
    """What one file shows of the memory of its batches."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)

    def moved_as_copies(self, call: cst.Call) -> bool:
        """Return whether only copies of batches, in memory of their own, are moved to an accelerator."""
        return any(call in each.moved_on for each in self.loaders.movers) and not self._moved_in_place(call)

    def _moved_in_place(self, call: cst.Call) -> bool:
        """Return whether parts of a loader's batches may be moved out of the memory they were loaded into."""
        return any(call in Pinning.of(each.module)._loaded_and_moved for each in self.loaders.movers)

    @cached_property
    def _loaded_and_moved(self) -> frozenset[cst.Call]:
        """The loaders of which the file may move a part of a batch as it was loaded."""
        sources = (self.loaders.copied_from(each, Copying.PERHAPS) for each in self.loaders.transfers)
        return frozenset(call for found in sources for call in found.calls)

    def regroups_items(self, call: cst.Call) -> bool:
        """Return whether the ``collate_fn`` puts the parts of items into lists that are moved nowhere
        as they are.

        Tensors in a list would be pinned.
        """
        if self._moved_in_place(call):
            return False
        collate = self.module.argument(call, "collate_fn").node
        function = self.module.value(collate).definition if collate is not None else None
        if not isinstance(function, cst.FunctionDef):
            return False
        home = self.module.home(function)
        calls = home.tree.nodes_within(function.body, cst.Call)
        return all(last_name(call.func) in _REGROUPING for call in calls)

    def yields_own_objects(self, call: cst.Call) -> bool:
        """Return whether batches may be objects of a class that says nothing of pinning:
        it leaves those alone.
        """
        collate = self.module.argument(call, "collate_fn").node
        return collate is not None and some(_makes_own_objects(self.module, collate))

    def yields_arrays(self, call: cst.Call) -> bool:
        """Return whether batches hold arrays, which the file turns into tensors itself:
        those cannot be pinned.
        """
        return any(
            call in self.loaders.copied_from(made).calls
            for each in self.loaders.movers
            for made in Pinning.of(each.module)._made_of_arrays
        )

    @cached_property
    def _made_of_arrays(self) -> list[cst.BaseExpression]:
        """The transfers of batches whose arrays are turned into tensors on the way."""
        return [moved for moved in self.loaders.transfers if _is_array_made_tensor(moved)]

    def evaluates_one_by_one(self, call: cst.Call) -> bool:
        """Return whether a loader yields single items in order: batches of evaluation, which are small."""
        size = self.module.argument(call, "batch_size")
        return (
            (size.absent or (size.constant == 1 and not self.loaders.from_parameter(size.node)))
            and all(self.module.argument(call, name).absent for name in ("batch_sampler", "sampler"))
            and not self.module.argument(call, "shuffle").constant
        )

    @cached_property
    def pinning_asked_for(self) -> bool:
        """Whether the program asks a loader or a tensor whether memory is pinned."""
        others = map(Pinning.of, self.module.companions("is_pinned", ".pin_memory"))
        return self._asks_whether_pinned or any(other._asks_whether_pinned for other in others)

    @cached_property
    def _asks_whether_pinned(self) -> bool:
        named = self.tree.attributes_by_name
        return "is_pinned" in named or any(
            self.module.value(attribute.value).kind is Kind.LOADER
            for attribute in named.get("pin_memory", ())
        )


def _is_array_made_tensor(node: cst.BaseExpression) -> bool:
    """Return whether a batch, which holds arrays, is turned into tensors on its way to the device."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name("from_numpy"))):
                return True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name in CASTS:
                node = owner
            case _:
                return False


@traced(Through.NOTHING)
def _makes_own_objects(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a collate function gives objects of a class of its own without a method
    ``pin_memory``.
    """
    if isinstance(node, cst.Param) and node.default is not None:
        return onward(node.default)
    if not isinstance(node, (cst.Name, cst.Attribute, cst.Lambda)):
        return None
    function = module.value(node).definition
    if not isinstance(function, cst.FunctionDef):
        return None
    made = [module.value(each).definition for each in returns(module, function)]
    return bool(made) and all(
        isinstance(each, cst.ClassDef) and _is_left_alone(module.classes.info(each)) for each in made
    )


def _is_left_alone(info: ClassInfo) -> bool:
    return info.kind is Kind.OBJECT and not info.node.bases and info.method("pin_memory") is None
