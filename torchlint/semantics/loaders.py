"""Data loaders: what makes them, what data they read, where their batches go, and the loops over epochs.

A loader is traced from its constructor to the loops over it, and each value that stands for a batch or a
part of one back to the loaders that it can come from: through names, attributes of ``self``, parameters
and the calls that fill them, ``enumerate``, ``zip``, ``iter``/``next`` and progress bars. Where a trail
leaves the file it is incomplete, and says so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import HOST_PACKAGES, is_training_arguments
from torchlint.semantics.api.frameworks import PREPARING, PROGRESS_BARS
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.configured import instantiated, parses_training_arguments
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evidence import accelerated, on_device
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import (
    Role,
    begins,
    ends,
    has,
    names_criterion,
    names_tokenizer,
)
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.origins import leads_outside
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import (
    Field,
    Item,
    Path,
    Source,
    Through,
    onward,
    returns,
    sole,
    some,
    traced,
)
from torchlint.semantics.spellings import last_name
from torchlint.semantics.transfers import copied_in, transferred
from torchlint.semantics.usage import receivers
from torchlint.semantics.values import MISSING, Device, Kind
from torchlint.semantics.wholeprogram import imported_by_nobody

ITERABLE = "torch.utils.data.IterableDataset"
LOADER = "torch.utils.data.DataLoader"
# Datasets whose items are those of others: of several ones, and of one.
_PUT_TOGETHER = frozenset({"torch.utils.data.ChainDataset", "torch.utils.data.ConcatDataset"})
_PARTS = _PUT_TOGETHER | {"torch.utils.data.Subset", "torch.utils.data.random_split"}
_OPTIONS = frozenset(parameter.name for parameter in SIGNATURES[LOADER])
# Loaders of other libraries that hand their keywords on to the one above.
_LOADERS = frozenset(
    {LOADER, "torch_geometric.loader.DataLoader", "torchdata.stateful_dataloader.StatefulDataLoader"}
)

# Calls that hand on the items of what they are given, by the name of the function.
_TRANSPARENT = frozenset({"iter", "tqdm", "trange", "list", "tuple", "cycle", "islice", "track", "reversed"})
_TRANSPARENT |= {"progress_bar", "Bar", "alive_it", "islice", "notebook_tqdm", "auto_tqdm", "log_every"}
# Methods of a tensor in host memory whose result shares its memory.
_VIEWS = frozenset(
    {
        "view",
        "reshape",
        "permute",
        "transpose",
        "unsqueeze",
        "squeeze",
        "flatten",
        "detach",
        "contiguous",
        "narrow",
        "movedim",
        "t",
    }
)
# Methods whose result is the same data in another dtype.
CASTS = frozenset({"float", "double", "half", "bfloat16", "int", "long", "short", "bool", "type"})
# Functions of torch that make tensors of the arrays that a collate function has left alone.
_OF_ARRAYS = frozenset({"from_numpy", "as_tensor"})
# Functions whose result lies in the memory of their first argument, or is made of it on the host.
SAME_MEMORY = frozenset({"torch.autograd.Variable", "torch.from_numpy", "torch.as_tensor"})
# Functions that copy several tensors into one.
_JOINING = frozenset({"torch.cat", "torch.concat", "torch.stack", "torch.hstack", "torch.vstack"})
# Words of files that take the batches of loaders, and of those that move them.
USING = ("oader", "atch", "epoch", "data")
_MOVING = (".to(", ".cuda(", ".type(", ".copy_(")
_TRIAL = (Role.DEBUGGING, Role.DUMMY)
PROCESSOR_COUNTS = frozenset(
    {
        "os.cpu_count",
        "multiprocessing.cpu_count",
        "torch.multiprocessing.cpu_count",
        "psutil.cpu_count",
        "os.process_cpu_count",
    }
)


# Functions that ask something of a loader, and iterate nothing.
_ASKING = frozenset(
    f"builtins.{name}" for name in ("len", "print", "type", "isinstance", "repr", "str", "id")
)


class Destination(enum.Enum):
    """Where the batches of a loader go."""

    ACCELERATOR = "accelerator"
    """Some part of a batch is moved to an accelerator."""
    HOST = "host"
    """The loops over it are known, if there are any, and nothing in them moves a batch."""
    SAMPLE = "sample"
    """It is only asked for single batches, outside of loops."""
    ELSEWHERE = "elsewhere"
    """Other files or frameworks consume them."""


class Copying(enum.IntEnum):
    """Whether a tensor was copied in the memory of the host."""

    NEVER = 0
    PERHAPS = 1
    """By a cast, which copies nothing that has the type already."""
    ALWAYS = 2
    """As by ``torch.cat``."""


class Portion(enum.Enum):
    """What a value is of the loader that it comes from."""

    LOADER = "loader"
    BATCH = "batch"
    PART = "part of a batch"


class Behind(NamedTuple):
    """The constructor of the loader that a value comes from, and what the value is of it."""

    loader: cst.Call
    portion: Portion


@dataclass(frozen=True, slots=True)
class Sources:
    """The loader constructors that a value can come from; not ``complete`` if there may be others.

    ``whole`` if it can be all of a batch, just as the loader yields it.
    """

    calls: tuple[cst.Call, ...] = ()
    complete: bool = False
    whole: bool = False

    @property
    def known(self) -> bool:
        """Whether all of them are in this file."""
        return self.complete and bool(self.calls)


class Loaders(Part):
    """The loaders of one file; everything is computed on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names

    # ------------------------------------------------------------------ constructors

    @remembered
    def makes_loader(self, call: cst.Call) -> bool:
        """Return whether a call has the constructor of a torch ``DataLoader`` run with its arguments.

        That is a call of the class, of a local subclass that leaves the constructor alone, of a
        ``functools.partial`` of either, ``super().__init__(...)`` in a subclass, and
        ``hydra.utils.instantiate`` of a configuration that says so.
        """
        made = self.module.class_of(call) or self.module.base_constructed(call)
        return (made or instantiated(self.module, call)) in _LOADERS

    @cached_property
    def constructors(self) -> tuple[cst.Call, ...]:
        """All calls of the file that make a loader, in source order."""
        calls = filter(self._may_make_loader, self.tree.nodes(cst.Call))
        return tuple(call for call in calls if self.makes_loader(call))

    def _may_make_loader(self, call: cst.Call) -> bool:
        """Return whether it is worth asking what a call runs, which may lead to other files.

        A class of another file makes a loader only if the text of that file has the word. A method or an
        attribute counts only if it is given one of the loader's options by keyword.
        """
        match call.func:
            case cst.Name() if (link := self.module.link) is not None:
                bindings = self.names.bindings(call.func)
                if bindings and all(binding.kind is BindingKind.IMPORT for binding in bindings):
                    brought = [link.speaks(self.names, binding, "Loader") for binding in bindings]
                    return None in brought or True in brought
            case cst.Attribute(attr=cst.Name(name)) if (
                name != "__init__" and self.names.qualified(call.func) is None
            ):
                given = {None if arg.keyword is None else arg.keyword.value for arg in call.args}
                return not given.isdisjoint(_OPTIONS) or any(arg.star == "**" for arg in call.args)
        return True

    # ------------------------------------------------------------------ arguments

    def workers(self, call: cst.Call) -> int | None:
        """Return how many worker processes a loader has, where that is certain; 1 also for "at least one"."""
        argument = self.module.argument(call, "num_workers")
        if argument.absent:
            return 0
        constant, node = argument.constant, argument.node
        if isinstance(constant, int) and not self.from_parameter(node):
            return int(constant)
        if isinstance(node, cst.Call) and self.module.qualified(node.func) in PROCESSOR_COUNTS:
            return 1
        return None

    def pinned(self, call: cst.Call) -> bool | None:
        """Return whether the batches of a loader are in pinned memory; None where that is open."""
        argument = self.module.argument(call, "pin_memory")
        if argument.absent:
            return False
        if isinstance(argument.constant, bool) and not self.from_parameter(argument.node):
            return argument.constant
        return None

    def from_parameter(self, node: cst.BaseExpression | None) -> bool:
        """Return whether a value is that of a parameter: callers of other files may pass another one."""
        return isinstance(node, cst.Name) and any(
            binding.kind is BindingKind.PARAMETER for binding in self.names.bindings(node)
        )

    # ------------------------------------------------------------------ data

    def dataset(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return the dataset that a loader is given, or the trainer that is given these arguments."""
        if self.is_trainer_arguments(call):
            trainers = receivers(self.module, call)
            given = (self.module.argument(trainer, "train_dataset").node for trainer in trainers)
            return next((dataset for dataset in given if dataset is not None), None)
        return self.module.argument(call, "dataset").node

    def made(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the one expression that a name or attribute stands for; the node itself if it is neither."""
        found = sole(self._standing_for(node))
        return found if isinstance(found, cst.BaseExpression) else None

    @traced(Through.NOTHING)
    def _standing_for(self, node: cst.CSTNode, path: Path) -> cst.CSTNode | None:
        return None if path or isinstance(node, (cst.Name, cst.Attribute)) else node

    # ------------------------------------------------------------------ trainers

    def is_trainer_arguments(self, call: cst.Call) -> bool:
        """Return whether a call makes the ``TrainingArguments`` of Transformers or of what builds on it."""
        name = self.module.qualified(call.func)
        made = name is not None and is_training_arguments(name)
        return made or parses_training_arguments(self.module, call)

    # ------------------------------------------------------------------ transfers

    def sends(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return what a call sends to the accelerator, if it sends anything."""
        return transferred(self.module, call) or copied_in(self.module, call) or self._sent(call)

    # ------------------------------------------------------------------ where batches go

    def destination(self, call: cst.Call) -> Destination:
        """Return where the batches of the loader made by ``call`` go, as far as the program shows it."""
        if self.only_sampled(call):
            return Destination.SAMPLE
        if any(call in each.moved_on for each in self.movers):
            return Destination.ACCELERATOR
        if any(call in each._prepared for each in self._users):
            return Destination.ACCELERATOR
        if not any(call in each._looped_over or call in each._sampled for each in self._users):
            return Destination.ELSEWHERE if self._given_to_others(call) else Destination.HOST
        escaped = any(each._escapes(name) for each in self._users for name in each._named.get(call, ()))
        return Destination.ELSEWHERE if escaped else Destination.HOST

    @remembered
    def _given_to_others(self, call: cst.Call) -> bool:
        """Return whether code that is not seen may iterate a loader that no loop of the program goes over."""
        if self.module.base_constructed(call) is not None or self._may_be_imported(call):
            return True
        return bool(verdicts(self.module, call, _goes_out_of_sight))

    def _may_be_imported(self, call: cst.Call) -> bool:
        """Return whether a loader is a variable of a module that only other files can be meant to use."""
        return self.module.function(call) is None and not (
            self.module.in_notebook
            or self._loops_over_loaders
            or imported_by_nobody(self.module)
            or places.main_guarded(self.module, call)
        )

    @cached_property
    def _loops_over_loaders(self) -> bool:
        return any(each._looped_over for each in self._users)

    @cached_property
    def _users(self) -> list[Loaders]:
        """What is known of the files that may take batches of the file's loaders, first of itself."""
        return [self, *map(Loaders.of, self.module.companions(*USING))]

    @cached_property
    def movers(self) -> list[Loaders]:
        """What is known of the files that may move batches of the file's loaders, first of itself."""
        return [self, *map(Loaders.of, self.module.companions(*_MOVING))]

    @cached_property
    def moved_on(self) -> frozenset[cst.Call]:
        """The loaders of which a part of a batch is moved to an accelerator."""
        sources = (self.copied_from(transfer) for transfer in self.transfers)
        return frozenset(call for found in sources for call in found.calls)

    @cached_property
    def _prepared(self) -> frozenset[cst.Call]:
        """The loaders that Accelerate or Fabric is given to prepare."""
        return frozenset(
            loader
            for name in PREPARING
            for call in self.tree.calls_by_name.get(name, ())
            if self._prepares(call)
            for argument in call.args
            for loader in self.sources(argument.value).calls
        )

    def _prepares(self, call: cst.Call) -> bool:
        """Return whether Accelerate or Fabric gives back what it is given, and moves batches of loaders."""
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value not in PREPARING:
            return False
        return self.module.value(func.value).kind is Kind.ACCELERATOR

    @cached_property
    def _looped_over(self) -> frozenset[cst.Call]:
        """The loaders that loops go over."""
        return frozenset(call for loop in self._loops for call in self.sources(loop.iter).calls)

    @cached_property
    def _sampled(self) -> dict[cst.Call, list[cst.BaseExpression]]:
        """By its loader: what is asked for a single batch."""
        found: dict[cst.Call, list[cst.BaseExpression]] = {}
        for taken in self._single_batches:
            for call in self.sources(taken).calls:
                found.setdefault(call, []).append(taken)
        return found

    @cached_property
    def _named(self) -> dict[cst.Call, list[cst.Name]]:
        """By its loader: the names of batches."""
        found: dict[cst.Call, list[cst.Name]] = {}
        for name in filter(self.names.is_read, self.tree.nodes(cst.Name)):
            for call in self.batch_sources(name).calls:
                found.setdefault(call, []).append(name)
        return found

    def keys_read(self, call: cst.Call) -> frozenset[str]:
        """Return the keys by which the program reads parts of a loader's batches, nested ones included."""
        found: set[str] = set()
        for each in self._users:
            for name in each._named.get(call, ()):
                for read in (name, *each._rebuilt(name)):
                    item = each.tree.parent(read)
                    while isinstance(item, cst.Subscript):
                        match item.slice:
                            case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]:
                                found.add(str(key.evaluated_value))
                        item = each.tree.parent(item)
        return frozenset(found)

    def _rebuilt(self, batch: cst.Name) -> Sequence[cst.Name]:
        """Return the reads of what holds a batch's parts: ``b = {k: v.cuda() for k, v in batch.items()}``."""
        node: cst.CSTNode | None = batch
        for kind in (cst.Attribute, cst.Call, cst.CompFor, cst.DictComp, cst.Assign):
            node = self.tree.parent(node) if node is not None else None
            if not isinstance(node, kind):
                return ()
        assert isinstance(node, cst.Assign)
        target = node.targets[0].target
        binding = self.module.binding_of(target) if isinstance(target, cst.Name) else None
        return self.module.uses(binding) if binding is not None else ()

    def only_sampled(self, call: cst.Call) -> bool:
        """Return whether each loader that ``call`` makes is only asked for one batch, as to look at it."""
        if any(call in each._looped_over for each in self._users):
            return False
        taken = [(each, node) for each in self._users for node in each._sampled.get(call, ())]
        return bool(taken) and not any(
            not self.tree.contains(loop, call)
            for each, node in taken
            for loop in each.module.flow.loops(node)
        )

    def only_collected(self, call: cst.Call) -> bool:
        """Return whether a loader is read once, to keep its batches: ``[x.cuda() for x in loader]``."""
        collected = [
            each._collects(loop)
            for each in self._users
            for loop in each._loops
            if call in each.sources(loop.iter).calls
        ]
        return bool(collected) and all(collected)

    def _collects(self, loop: cst.For | cst.CompFor) -> bool:
        made = self.tree.parent(loop)
        return isinstance(made, cst.ListComp) and not self.module.flow.loops(made)

    def feeds_accelerator(self, call: cst.Call) -> bool:
        """Return whether batches are sent to an accelerator, as the file does or else suggests."""
        if not accelerated(self.module):
            return False
        destination = self.destination(call)
        return destination is Destination.ACCELERATOR or destination is Destination.ELSEWHERE

    @cached_property
    def pinning_helps(self) -> bool:
        """Whether the accelerator of this file is one that pinned memory is for: not MPS, not XLA."""
        tree = self.tree
        if tree.mentions("torch_xla"):
            return False
        return not tree.mentions("mps") or tree.mentions("cuda")

    @cached_property
    def transfers(self) -> list[cst.BaseExpression]:
        calls = self.tree.nodes(cst.Call)
        moved = map(self.sends, calls)
        return [node for node in moved if node is not None]

    def _sent(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return what arrives on an accelerator otherwise: ``x.type(Tensor)``, ``buffer.copy_(x)``."""
        if not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
            return None
        owner, argument = call.func.value, call.args[0].value
        match call.func.attr.value:
            case "type" if some(self._is_device_type(argument)):
                return owner
            case "copy_" if on_device(self.module, owner):
                return argument
            case _:
                return None

    @traced(Through.NOTHING)
    def _is_device_type(self, node: cst.CSTNode, path: Path) -> bool | None:
        """Return whether a name is a tensor type of CUDA; None for what is not of torch."""
        name = self.module.qualified(node) if not path else None
        return name.startswith("torch.cuda.") if name is not None else None

    @cached_property
    def _loops(self) -> list[cst.For | cst.CompFor]:
        return self.tree.nodes(cst.For, cst.CompFor)

    @cached_property
    def _single_batches(self) -> list[cst.BaseExpression]:
        """The arguments of ``next(...)``."""
        return [
            call.args[0].value
            for call in self.tree.calls_by_name.get("next", ())
            if isinstance(call.func, cst.Name) and call.args
        ]

    def _escapes(self, name: cst.Name) -> bool:
        """Return whether a part of a batch is handed to something that this file does not show."""
        node: cst.CSTNode = name
        parent = self.tree.parent(node)
        while isinstance(
            parent, (cst.Subscript, cst.Index, cst.SubscriptElement, cst.Element, cst.Tuple, cst.List)
        ):
            node, parent = parent, self.tree.parent(parent)
        if isinstance(parent, (cst.Return, cst.Yield)):
            return True
        if isinstance(parent, cst.StarredElement):
            parent = self.tree.parent(parent)
        if not isinstance(parent, cst.Arg):
            return False
        call = self.tree.parent(parent)
        assert isinstance(call, cst.Call)
        if _takes_texts(call, parent):
            return False
        dotted = self.module.qualified(call.func)
        if dotted is not None:
            if dotted.startswith(("builtins.", "torch.", "torchvision.utils.")):
                return dotted.startswith("torch.cuda")
            return dotted.partition(".")[0] not in HOST_PACKAGES
        if self.module.callee(call) is not None:
            return leads_outside(self.module, call)
        callee = self.module.value(call.func)
        if callee.kind is Kind.MODULE:
            # A parallel wrapper sends its inputs to the devices by itself, and so may the model of another
            # file that gets all of a batch as it is: what meets its output elsewhere has to be there, too.
            if callee.cls is not None:
                return "Parallel" in callee.cls
            return (
                callee.definition is None and callee.device is not Device.CPU and self._only_for_models(name)
            )
        return not self._is_host_method(call)

    def _only_for_models(self, name: cst.Name) -> bool:
        """Return whether each part of a batch of several is given to a model, and read nowhere else."""
        for binding in self.names.bindings(name):
            if binding.kind is not BindingKind.LOOP or not binding.path:
                return False
            loop = self.names.loop(binding)
            parts = self.tree.descendants(loop.target) if isinstance(loop, cst.For) else ()
            for part in parts:
                other = self.module.binding_of(part) if isinstance(part, cst.Name) else None
                if other is not None and not all(self._is_given_to_model(u) for u in self.names.uses(other)):
                    return False
        return True

    def _is_given_to_model(self, use: cst.Name) -> bool:
        call = self.tree.call_given(use)
        if call is None or names_criterion(last_name(call.func)):
            return False
        return self.module.value(call.func).kind is Kind.MODULE

    def _is_host_method(self, call: cst.Call) -> bool:
        func = call.func
        if not isinstance(func, cst.Attribute):
            return False
        if func.attr.value in ("append", "extend", "add", "add_", "copy_"):
            return True
        made = self.made(func.value)
        dotted = self.module.qualified(made.func) if isinstance(made, cst.Call) else None
        return dotted is not None and dotted.partition(".")[0] in HOST_PACKAGES

    # ------------------------------------------------------------------ trails back

    def sources(self, node: cst.BaseExpression) -> Sources:
        """Return the loaders that iterating ``node`` reads from."""
        return self._of_portion(node, (Portion.LOADER,))

    def batch_sources(self, node: cst.BaseExpression) -> Sources:
        """Return the loaders that a batch, or a part of one in the same memory, comes from."""
        return self._of_portion(node, (Portion.BATCH, Portion.PART))

    def copied_from(self, node: cst.BaseExpression, copying: Copying = Copying.ALWAYS) -> Sources:
        """Return the loaders whose batches a tensor on the host is, or was copied or converted from."""
        return self._of_portion(node, (Portion.BATCH, Portion.PART), copying)

    def _of_portion(
        self, node: cst.BaseExpression, wanted: tuple[Portion, ...], copying: Copying = Copying.NEVER
    ) -> Sources:
        ends = self._behind(node, copying)
        found = [end for end in ends if end is not None and end.portion in wanted]
        calls = dict.fromkeys(sorted((end.loader for end in found), key=self.tree.order.__getitem__))
        whole = any(end.portion is Portion.BATCH for end in found)
        return Sources(tuple(calls), bool(ends) and len(found) == len(ends), whole)

    @traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
    def _behind(self, node: cst.CSTNode, path: Path, copying: Copying) -> Behind | list[Source] | None:
        """Return the loader that a value comes from, through what copies it at most so."""
        match node:
            case cst.Call() if self.makes_loader(node):
                portion = _portion(path)
                return Behind(node, portion) if portion is not None else None
            case cst.Call():
                return self._handed_on(node, path, copying)
            case cst.Attribute(value=owner, attr=cst.Name(name)) if not SelfAttributes.is_self(owner):
                held = self.module.value(node)
                if held.kind is Kind.LOADER and held.device is Device.ACCELERATOR:
                    return None  # what has prepared it puts its batches there
                return onward(owner, path=(Field(name), *path))
            case cst.Subscript(value=owner, slice=[_, _, *_]):
                return onward(owner, path=(Item.ANY, *path))
            case _:
                return None

    def _handed_on(self, call: cst.Call, path: Path, copying: Copying) -> list[Source] | None:
        """Return what a call gives parts of: loaders by way of progress bars, batches by way of views."""
        if transferred(self.module, call) is not None:
            return []  # It is no longer in the memory of the host.
        name, dotted = last_name(call.func), self.module.qualified(call.func)
        first = call.args[0].value if call.args and not call.args[0].star else None
        if name in _TRANSPARENT or (name == "enumerate" and not path) or self._makes_bar(call):
            return onward(first, path=path[1:] if path[:1] == (Item.ENTERED,) else path) if first else None
        if not path and (passed := self._gone_through(call)) is not None:
            return onward(passed)
        if isinstance(call.func, cst.Attribute) and dotted is None:
            owner = call.func.value
            if self._prepares(call):
                return self._given_back(call, path)
            if name in ("next", "__next__"):
                return onward(owner, path=(Item.EACH, *path))
            if name in ("get", "pop") and self.module.value(owner).kind not in (Kind.DICT, Kind.LIST):
                return onward(owner, path=(Item.ANY, *path))
            if name in _VIEWS or name in ("set_description", "__iter__") or (copying and name in CASTS):
                return onward(owner, path=path)
        if first is None:
            return None
        if dotted in ("torch.autograd.Variable", "torch.Tensor.view") or dotted in LEGACY_CONSTRUCTORS:
            return onward(first, path=path)  # Given a tensor, they name it anew.
        if copying and (dotted in SAME_MEMORY or name in _OF_ARRAYS):
            return onward(first, path=path)
        if copying is Copying.ALWAYS and dotted in _JOINING:
            # A store of samples that grows is no batch.
            each = Source(first, (Item.EACH, *path))
            return [each] if None not in self._behind(each, copying) else None
        return None

    def _given_back(self, call: cst.Call, path: Path) -> list[Source]:
        """Return the loader that comes back from Accelerate or Fabric, but none of its batches:
        ``model, loader = accelerator.prepare(model, loader)``.
        """
        if any(argument.star for argument in call.args):
            return []
        given = [argument.value for argument in call.args]
        if len(given) > 1:
            index, path = path[0] if path else None, path[1:]
            given = given[index : index + 1] if isinstance(index, int) and index >= 0 else []
        return onward(*given, path=path) if _portion(path) is Portion.LOADER else []

    def _makes_bar(self, call: cst.Call) -> bool:
        """Return whether a call makes a progress bar of a class of the project."""
        made = self.module.value(call.func).definition
        return isinstance(made, cst.ClassDef) and self.module.classes.info(made).inherits(*PROGRESS_BARS)

    def _gone_through(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return what an object is made with that it goes through each time it is gone through itself:
        the loader of ``Prefetcher(loader, device)``.
        """
        made = self.module.value(call.func)
        definition = made.definition
        if made.kind is not Kind.CLASS or not isinstance(definition, cst.ClassDef):
            return None
        classes = self.module.classes
        method = classes.info(definition).method("__iter__")
        loops = self.module.home(method).tree.nodes_within(method, cst.For) if method is not None else ()
        for loop in loops:
            for part in _zipped(loop.iter):
                if isinstance(part, cst.Attribute) and SelfAttributes.is_self(part.value):
                    parameter = classes.parameter_behind(definition, part.attr.value)
                    if parameter is not None:
                        return self.module.argument(call, parameter[0]).node
        return None

    # ------------------------------------------------------------------ circumstances

    def debugging(self, call: cst.Call) -> bool:
        """Return whether a loader is made for a debugging or overfitting run, or for a test, only."""
        if self._is_test_file:
            return True
        tests = (branch.test for branch in self.module.flow.branches(call, outward=True) if branch.holds)
        if any(self._speaks_of_trial(test) for test in tests):
            return True
        return any(
            isinstance(around, (cst.FunctionDef, cst.ClassDef)) and has(around.name.value, *_TRIAL)
            for around in self.tree.ancestors(call)
        )

    def _speaks_of_trial(self, test: cst.BaseExpression) -> bool:
        """Return whether a name, or a text that one is compared with, says that a run is for debugging."""
        return any(
            has(node.value, *_TRIAL)
            for node in self.tree.descendants(test)
            if isinstance(node, (cst.Name, cst.SimpleString))
        )

    @cached_property
    def _is_test_file(self) -> bool:
        """Whether the file holds tests: what it imports, or functions of that name that assert something."""
        if is_test(self.module):
            return True
        for statement in self.tree.nodes(cst.Assert):
            function = self.tree.enclosing(statement, cst.FunctionDef)
            if function is not None and function.name.value.startswith("test_"):
                return True
        return False

    def constant(self, call: cst.Call, name: str) -> object:
        """Return the constant that a loader gets for a parameter; ``MISSING`` if it is not certain."""
        argument = self.module.argument(call, name)
        if argument.given and (self.from_parameter(argument.node) or self._may_be_none(argument.node)):
            return MISSING
        return argument.constant

    def _may_be_none(self, node: cst.BaseExpression | None) -> bool:
        """Return whether one of several values is None: ``2 if workers > 0 else None``."""
        branches: list[cst.BaseExpression | None] = [node]
        if isinstance(node, cst.Name):
            branches = [b.value for b in self.names.bindings(node) if b.kind is BindingKind.ASSIGN]
        if isinstance(node, cst.Name) and len(branches) > 1:
            return any(b is not None and self.module.value(b).kind is Kind.NONE for b in branches)
        return any(
            isinstance(b, cst.IfExp) and Kind.NONE in {self.module.value(x).kind for x in (b.body, b.orelse)}
            for b in branches
        )


@traced(Through.ITEMS | Through.PARAMETERS)
def class_behind(module: Module, node: cst.CSTNode, path: Path) -> cst.ClassDef | list[Source] | None:
    """Return the class of the project that a dataset is an instance, or a part of an instance, of."""
    definition = module.value(node).definition if not path else None
    if isinstance(definition, cst.ClassDef):
        return definition
    return whole_of(module, node) if isinstance(node, cst.Call) else None


def whole_of(module: Module, call: cst.Call) -> list[Source] | None:
    """Return the datasets that a dataset is a part of, or is put together from; None for all other calls."""
    name = module.class_of(call) or module.qualified(call.func)
    if not call.args or name not in _PARTS:
        return None
    first = call.args[0].value
    several = name in _PUT_TOGETHER or isinstance(first, (cst.List, cst.Tuple))
    return onward(first, path=(Item.EACH,) if several else ())


def constructors_around(module: Module) -> Iterator[cst.Call]:
    """Yield the calls that make loaders, in the file and in the others of its programs."""
    for each in (module, *module.companions("Loader")):
        yield from Loaders.of(each).constructors


@remembered
def collations(module: Module) -> dict[Function, tuple[cst.Call, ...]]:
    """Return the functions that put batches together, and the calls that make their loaders."""
    found: dict[Function, list[cst.Call]] = {}
    for call in constructors_around(module):
        collate = module.argument(call, "collate_fn").node
        for run in _collating(module, collate) if collate is not None else ():
            if isinstance(run, (cst.FunctionDef, cst.Lambda)):
                found.setdefault(run, []).append(call)
    return {function: tuple(loaders) for function, loaders in found.items()}


@traced(Through.ITEMS | Through.PARAMETERS)
def _collating(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | None:
    """Return the function that runs when what is given as ``collate_fn`` is called."""
    return module.inference.callgraph.run_by(module.value(node)) if not path else None


def collated(module: Module, binding: Binding, path: Path) -> list[Source] | None:
    """Return a part of the items that a collate function is handed: what its datasets return of them.

    None for all other parameters, and where one of the datasets is not of the project.
    """
    function, module = binding.scope.node, module.home(binding.node)
    if not isinstance(function, (cst.FunctionDef, cst.Lambda)) or not path or isinstance(path[0], Field):
        return None
    given = function.params.params[module.classes.owner(function) is not None :]
    loaders = collations(module).get(function, ())
    if not loaders or binding.node not in given[:1] or module.callers(function):
        return None
    found: list[Source] = []
    for call in loaders:
        dataset = module.argument(call, "dataset").node
        for made in class_behind(module, dataset) if dataset is not None else (None,):
            method = module.classes.info(made).method("__getitem__") if made is not None else None
            exits = returns(module, method) if method is not None else ()
            if not exits:
                return None
            found += onward(*exits, path=path[1:])
    return found


def _goes_out_of_sight(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use gives a loader to code that this file does not show."""
    match use.kind:
        case UseKind.ARGUMENT if module.qualified(use.call.func) in _ASKING:
            return ()
        case UseKind.ARGUMENT:
            return ONWARD if module.callee(use.call) is not None else True
        case UseKind.METHOD | UseKind.ATTRIBUTE | UseKind.TESTED | UseKind.FORMATTED | UseKind.COMPARED:
            return ()
        case UseKind.DISCARDED:
            return ()
        case UseKind.ELSEWHERE if isinstance(use.by, (cst.Return, cst.Lambda)):
            function = module.function(use.node)
            return () if function is not None and module.callers(function) else True
        case UseKind.ELSEWHERE | UseKind.ITERATED | UseKind.YIELDED | UseKind.SET | UseKind.OTHER:
            return True
        case _:
            return ONWARD


def _takes_texts(call: cst.Call, argument: cst.Arg) -> bool:
    """Return whether a call makes tensors of a text: ``processor(text=batch)``, ``tokenizer(batch)``."""
    keyword = argument.keyword.value if argument.keyword is not None else None
    return keyword in ("text", "texts") or names_tokenizer(last_name(call.func))


def _portion(path: Path) -> Portion | None:
    """Return what a part of a loader is."""
    if not path or path == (Item.ENTERED,):
        return Portion.LOADER
    if path[0] is not Item.EACH:
        return None
    return Portion.BATCH if len(path) == 1 else Portion.PART


# --- epochs -------------------------------------------------------------------------------------------------
# A loader is followed from the loops over it outwards: through the loops around them, and through the calls
# that hand the loader to the function they are in. A loop that makes the loader anew in each iteration is no
# loop over epochs, and neither is one over the loaders themselves.

_GOING_THROUGH = (
    *(Role.TRAINING, Role.EVALUATION, Role.TEST, Role.HELD_OUT, Role.EPOCH),
    *(Role.PREDICTION, Role.INFERENCE),
)
_COUNTING = frozenset({"range", "trange", "count", "arange", "cycle", "repeat"})


def repeated_epochs(
    module: Module, constructor: cst.Call
) -> Iterator[tuple[cst.CSTNode, cst.For | cst.While]]:
    """Yield where an epoch of a loader begins that a loop makes again and again, with that loop."""
    for each in (module, *module.companions(*USING)):
        for place, iterated in _epochs(each, constructor):
            loop = _around(each, place, iterated, constructor)
            if loop is not None:
                yield place, loop


def _epochs(module: Module, constructor: cst.Call) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Yield where an epoch of a loader begins in one file, and what it goes through.

    That are loops, calls of ``iter``, and functions out of sight that are called as those are which train
    or evaluate.
    """
    loops: list[cst.For | cst.CompFor] = module.tree.nodes(cst.For, cst.CompFor)
    for loop in loops:
        for part in _zipped(loop.iter):
            if _is_made(module, part, constructor):
                yield loop, part
    for call in module.tree.calls_by_name.get("iter", ()):
        if isinstance(call.func, cst.Name) and len(call.args) == 1:
            given = call.args[0].value
            if _is_made(module, given, constructor) and not isinstance(module.tree.parent(call), cst.For):
                yield call, given
    for call in module.tree.nodes(cst.Call):
        if _goes_through(last_name(call.func)) and module.callee(call) is None:
            for argument in call.args:
                named = isinstance(argument.value, (cst.Name, cst.Attribute))
                if named and _is_made(module, argument.value, constructor):
                    yield call, argument.value


def _goes_through(name: str | None) -> bool:
    """Return whether a function of this name goes through the batches of a loader that it is given."""
    return has(name, *_GOING_THROUGH) and not begins(name, Role.MAKING, Role.SAVING)


def _is_made(module: Module, node: cst.BaseExpression, constructor: cst.Call) -> bool:
    return constructor in Loaders.of(module).sources(node).calls


@solved(None)
def _around(
    module: Module, place: cst.CSTNode, iterated: cst.BaseExpression, constructor: cst.Call
) -> cst.For | cst.While | None:
    """Return the innermost loop that runs ``place`` each time round with the same loader."""
    for outer in module.flow.statement_loops(place):
        if _is_over_epochs(module, outer, iterated, constructor):
            return outer
    function = module.function(place)
    if function is None or function is module.function(constructor):
        return None
    parameter = _parameter(module, iterated, function, constructor)
    for caller in module.callers(function):
        given: cst.BaseExpression | None = iterated
        if parameter is not None:
            given = module.argument(caller, parameter.name).node
            if given is None or not _is_made(module, given, constructor):
                continue
        loop = _around(module, caller, given, constructor) if given is not None else None
        if loop is not None:
            return loop
    return None


def _parameter(
    module: Module, iterated: cst.BaseExpression, function: cst.CSTNode, constructor: cst.Call
) -> Binding | None:
    """Return the parameter of ``function`` that the loader comes in by, whatever it is called there.

    What else a bar around it is given is none: ``tqdm(self.loader, desc=f"epoch {epoch}")``.
    """
    seen: dict[cst.CSTNode, None] = {iterated: None}
    waiting: list[cst.CSTNode] = [iterated]
    for given in waiting:
        for node in module.tree.descendants(given):
            if not isinstance(node, cst.Name) or not module.names.is_read(node):
                continue
            for binding in module.bindings(node):
                if binding.kind is BindingKind.PARAMETER and binding.scope.node is function:
                    if binding.name not in ("self", "cls") and _is_made(module, node, constructor):
                        return binding
                elif binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    # ``batches = tqdm(loader)``
                    if binding.scope.node is function and binding.value not in seen:
                        seen[binding.value] = None
                        waiting.append(binding.value)
    return None


def _is_over_epochs(
    module: Module, loop: cst.For | cst.While, iterated: cst.BaseExpression, constructor: cst.Call
) -> bool:
    others = Loaders.of(module).sources(iterated).calls
    if any(module.tree.contains(loop, made) for made in (*_making(module, constructor), *others)):
        return False
    if isinstance(loop, cst.While):
        return True
    if not _counts(module, loop) or _once(module, loop):
        return False
    # ``for i in range(3): for batch in loaders[i]`` goes through each once.
    return _variables(module, loop.target).isdisjoint(_variables(module, iterated))


def _variables(module: Module, node: cst.BaseExpression) -> set[str]:
    """Return the variables and attributes in an expression, as they are written, but no owner of one."""
    parts = (part for part in module.tree.descendants(node) if isinstance(part, (cst.Name, cst.Attribute)))
    return {module.source(part) for part in parts if not isinstance(module.tree.parent(part), cst.Attribute)}


def _counts(module: Module, loop: cst.For) -> bool:
    """Return whether a loop counts, or goes by the name of epochs, instead of taking things one by one."""
    target = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
    if has(last_name(target), Role.EPOCH):
        return True
    iterated = loop.iter
    if isinstance(iterated, cst.Name):
        # ``epochs = trange(3)``
        binding = module.names.assignment(iterated)
        iterated = binding.value if binding is not None and binding.value is not None else iterated
    return any(
        isinstance(node, cst.Call) and last_name(node.func) in _COUNTING
        for node in module.tree.descendants(iterated)
    )


def _once(module: Module, loop: cst.For) -> bool:
    match loop.iter:
        case cst.Call(func=cst.Name(value="range"), args=[only]):
            return module.value(only.value).constant in (0, 1)
        case _:
            return False


@remembered
def _making(module: Module, constructor: cst.Call) -> list[cst.CSTNode]:
    """Return the constructor, and all calls that run it."""
    found: dict[cst.CSTNode, None] = {constructor: None}
    waiting: list[cst.CSTNode] = [constructor]
    while waiting:
        function = module.function(waiting.pop())
        callers = module.callers(function) if function is not None else ()
        waiting += (caller for caller in callers if caller not in found)
        found.update(dict.fromkeys(callers))
    return list(found)


def _zipped(iterated: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what a loop goes through: several things at once under ``zip``."""
    if isinstance(iterated, cst.Call) and last_name(iterated.func) in ("zip", "enumerate", "tqdm"):
        for argument in iterated.args:
            if argument.keyword is None and not argument.star:
                yield from _zipped(argument.value)
    else:
        yield iterated


# --- how long the sequences of a batch are ------------------------------------------------------------------

_COLLATORS = frozenset(
    f"transformers.{name}"
    for name in (
        "DataCollatorForSeq2Seq",
        "DataCollatorForTokenClassification",
        "DataCollatorWithPadding",
    )
)
_FILLING = frozenset({"zeros", "ones", "full", "empty", "pad", "new_zeros", "new_full", "zeros_like"})
ROUNDING_OPTIONS = frozenset({"pad_to_multiple_of", "pad_to_multiple"})
"""Options of collate functions that pad to a multiple, and so to few lengths."""


def pads_to_longest(module: Module, collate: cst.BaseExpression) -> cst.CSTNode | None:
    """Return where a collate function pads a batch to its longest item; None if it may not."""
    function = module.inference.callgraph.run_by(module.value(collate))
    if function is not None:
        return _pads(module, function)
    for call in _makers(module, collate):
        if module.qualified(call.func) in _COLLATORS and _dynamic(module, call):
            return call
    return None


def _makers(module: Module, node: cst.BaseExpression) -> list[cst.Call]:
    """Return the calls that make what an expression stands for."""
    if isinstance(node, cst.Name):
        bound = [binding.value for binding in module.bindings(node) if not binding.path]
        return [value for value in bound if isinstance(value, cst.Call)]
    return [node] if isinstance(node, cst.Call) else []


@solved(None)
def _pads(module: Module, function: cst.FunctionDef | cst.Lambda) -> cst.CSTNode | None:
    """Return where a function pads to the longest, itself or in another function of the file."""
    calls = [node for node in module.tree.descendants(function.body) if isinstance(node, cst.Call)]
    if any(_lengths_are_few(module, call) for call in calls) or _rounds(module, function):
        return None
    for call in calls:
        if module.qualified(call.func) == "torch.nn.utils.rnn.pad_sequence" or _tokenizes(module, call):
            return call
        callee = module.callee(call)
        inner = _pads(module, callee) if isinstance(callee, cst.FunctionDef) else None
        if inner is not None:
            return call
    longest = next((call for call in calls if _is_longest(call)), None)
    fills = any(last_name(call.func) in _FILLING for call in calls)
    return longest if fills else None


def _rounds(module: Module, function: cst.FunctionDef | cst.Lambda) -> bool:
    """Return whether a function computes multiples: ``-length % 64``, ``(length + 63) // 64 * 64``."""
    return any(
        isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Modulo, cst.FloorDivide))
        for node in module.tree.descendants(function.body)
    )


def _lengths_are_few(module: Module, call: cst.Call) -> bool:
    """Return whether it pads to a maximum or a multiple: ``padding="max_length"``, ``math.ceil(n / 64)``."""
    if module.qualified(call.func) == "math.ceil":
        return True
    return any(_keyword(arg) in ROUNDING_OPTIONS or _pads_to(module, arg, "max_length") for arg in call.args)


def _tokenizes(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``tokenizer(texts, padding=True)`` and ``tokenizer.pad(batch)``."""
    if any(_pads_to(module, arg, True) or _pads_to(module, arg, "longest") for arg in call.args):
        return True
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    tokenizer = owner is not None and names_tokenizer(last_name(owner))
    return (
        tokenizer and last_name(call.func) == "pad" and not any(_keyword(a) == "padding" for a in call.args)
    )


def _dynamic(module: Module, call: cst.Call) -> bool:
    """Return whether a collator of transformers pads to the longest, as it does unless told otherwise."""
    if any(argument.star for argument in call.args) or _lengths_are_few(module, call):
        return False
    return not any(_keyword(arg) == "padding" and not _pads_to(module, arg, True) for arg in call.args)


def _keyword(argument: cst.Arg) -> str | None:
    return argument.keyword.value if argument.keyword is not None else None


def _pads_to(module: Module, argument: cst.Arg, how: object) -> bool:
    return _keyword(argument) == "padding" and module.value(argument.value).constant == how


def _is_longest(call: cst.Call) -> bool:
    """Return whether it is ``max(len(x) for x in batch)``, ``max(lengths)``."""
    if not isinstance(call.func, cst.Name) or call.func.value != "max" or len(call.args) != 1:
        return False
    match call.args[0].value:
        case cst.GeneratorExp(elt=measured) | cst.ListComp(elt=measured):
            names = (measured.func,) if isinstance(measured, cst.Call) else (measured,)
            if isinstance(measured, cst.Subscript):
                names = (measured.value,)
            return any(last_name(name) in ("len", "size", "shape") for name in names)
        case cst.Name(value=name):
            return ends(name, Role.LENGTH)
        case _:
            return False
