"""Data loaders: which calls make them, what data they read, and where their batches go.

A loader is traced from its constructor to the loops over it, and each value that stands for a batch or a
part of one back to the loaders that it can come from: through names, attributes of ``self``, parameters
and the calls that fill them, ``enumerate``, ``zip``, ``iter``/``next`` and progress bars. Where a trail
leaves the file it is incomplete, and says so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.api.families import HOST_PACKAGES, is_training_arguments
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.configured import instantiated, parses_file
from torchlint.semantics.contexts import is_test
from torchlint.semantics.datasets import Datasets
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evidence import accelerated, on_device
from torchlint.semantics.flow.guards import implied
from torchlint.semantics.lexicon import Role, asks_for_accelerator, has, names_criterion, names_tokenizer
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind, all_parameters
from torchlint.semantics.origins import leads_outside
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import (
    Field,
    Item,
    Path,
    Source,
    Through,
    every,
    onward,
    returns,
    some,
    traced,
)
from torchlint.semantics.spellings import last_name
from torchlint.semantics.trainers import parses_training_arguments
from torchlint.semantics.transfers import copied_in, transferred
from torchlint.semantics.usage import receivers
from torchlint.semantics.values import MISSING, Device, Kind, Memory
from torchlint.semantics.wholeprogram import calls_shown, imported_by_nobody, users_shown

ITERABLE = "torch.utils.data.IterableDataset"
LOADER = "torch.utils.data.DataLoader"
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
_CASTS = frozenset({"float", "double", "half", "bfloat16", "int", "long", "short", "bool", "type"})
# Functions of torch that make tensors of the arrays that a collate function has left alone.
_OF_ARRAYS = frozenset({"from_numpy", "as_tensor"})
# What gives another name to the same memory.
_SHARING = frozenset({"numpy", "data", "detach", "view", "flatten", "squeeze", "unsqueeze", "T", "t"})
# Functions whose result lies in the memory of their first argument, or is made of it on the host.
_SAME_MEMORY = frozenset({"torch.autograd.Variable", "torch.from_numpy", "torch.as_tensor"})
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


@dataclass(frozen=True, slots=True)
class Transfer:
    """A blocking copy of a part of a batch; ``tensor`` if that part certainly is one."""

    moved: cst.BaseExpression
    tensor: bool


# What sorts items into lists and dictionaries, and leaves them as they are.
_REGROUPING = frozenset({"append", "dict", "enumerate", "extend", "items", "keys", "len", "list"}) | {
    *("range", "tuple", "values", "zip")
}


class Loaders(Part):
    """The loaders of one file; everything is worked out on demand."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names
        self.data = Datasets.of(module)

    # ------------------------------------------------------------------ constructors

    @remembered
    def makes_loader(self, call: cst.Call) -> bool:
        """Whether a call has the constructor of a torch ``DataLoader`` run with its arguments.

        That is a call of the class, of a local subclass that leaves the constructor alone, of a
        ``functools.partial`` of either, ``super().__init__(...)`` in a subclass, and
        ``hydra.utils.instantiate`` of a configuration that says so.
        """
        made = self.module.class_of(call) or self.module.base_constructed(call)
        return (made or instantiated(self.module, call)) in _LOADERS

    @cached_property
    def constructors(self) -> tuple[cst.Call, ...]:
        """All calls of the file that make a loader, in source order."""
        return tuple(call for call in self.tree.nodes(cst.Call) if self.makes_loader(call))

    # ------------------------------------------------------------------ arguments

    def workers(self, call: cst.Call) -> int | None:
        """How many worker processes a loader has, where that is certain; 1 also for "at least one"."""
        argument = self.module.argument(call, "num_workers")
        if argument.absent:
            return 0
        constant, node = argument.constant, argument.node
        if isinstance(constant, int) and (not self._from_parameter(node) or self._left_to_default(node)):
            return int(constant)
        if isinstance(node, cst.Call) and self.module.qualified(node.func) in PROCESSOR_COUNTS:
            return 1
        return None

    def pinned(self, call: cst.Call) -> bool | None:
        """Whether the batches of a loader are in pinned memory; None where that is open."""
        argument = self.module.argument(call, "pin_memory")
        if argument.absent:
            return False
        if isinstance(argument.constant, bool) and not self._from_parameter(argument.node):
            return argument.constant
        return None

    def _pinned_for_copies(self, call: cst.Call) -> bool | None:
        """As ``pinned``, for a run on an accelerator.

        That is what ``pin_memory=torch.cuda.is_available()`` and ``**({"pin_memory": True} if cuda else {})``
        ask for.
        """
        certain = self.pinned(call)
        if certain is not None:
            return certain
        argument = self.module.argument(call, "pin_memory")
        if not argument.unknown:
            return True if argument.node is not None and self._asks_for_cuda(argument.node) else None
        options = (argument.value for argument in call.args if argument.star == "**")
        ends = (_is_true(self.module, Source(mapping, ("pin_memory",))) for mapping in options)
        return True if every(frozenset[bool | None]().union(*ends)) else None

    def _asks_for_cuda(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is true on an accelerator only, if the program may use it."""
        return any(guard.holds and self._is_cuda(guard.test) for guard in implied(self.module, node, True))

    def _is_cuda(self, test: cst.BaseExpression) -> bool:
        match test:
            case cst.Call():
                return self.module.qualified(test.func) == "torch.cuda.is_available"
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]):
                sides = (self.module.value(side).constant for side in (test.left, right))
                return any(isinstance(side, str) and side.startswith("cuda") for side in sides)
            case cst.Name():
                # What the callers of a function ask for.
                return self._from_parameter(test) and asks_for_accelerator(test.value) is True
            case _:
                return False

    def _from_parameter(self, node: cst.BaseExpression | None) -> bool:
        """Whether a value is that of a parameter: callers of other files may pass another one."""
        return isinstance(node, cst.Name) and any(
            binding.kind is BindingKind.PARAMETER for binding in self.names.bindings(node)
        )

    def _left_to_default(self, node: cst.BaseExpression | None) -> bool:
        """Whether a value is that of a parameter that no call gives, and all calls are in sight."""
        bindings = self.names.bindings(node) if isinstance(node, cst.Name) else []
        return bool(bindings) and all(map(self._given_by_nobody, bindings))

    def _given_by_nobody(self, binding: Binding) -> bool:
        function, module = binding.scope.node, self.module
        if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
            return False
        calls = module.callers(function)
        passed = chain.from_iterable(
            module.inference.callgraph.passed(call, function, binding.name) for call in calls
        )
        if not calls or not all(argument.absent for argument in passed):
            return False
        owner = module.classes.owner(function)
        if owner is not None and function.name.value == "__init__":
            return users_shown(module, owner)
        return calls_shown(module, function)

    # ------------------------------------------------------------------ data

    def dataset(self, call: cst.Call) -> cst.BaseExpression | None:
        """The dataset that a loader is given, or the trainer that is given these arguments."""
        if self.is_trainer_arguments(call):
            trainers = receivers(self.module, call)
            given = (self.module.argument(trainer, "train_dataset").node for trainer in trainers)
            return next((dataset for dataset in given if dataset is not None), None)
        return self.module.argument(call, "dataset").node

    def in_memory(self, call: cst.Call) -> bool:
        """Whether the data is there already, so that fetching a batch is only picking rows."""
        node = self.dataset(call)
        return node is not None and self.data.in_memory(node)

    def _of_few_items(self, call: cst.Call) -> bool:
        node = self.dataset(call)
        return node is not None and self.data.has_few_items(node)

    def on_accelerator(self, call: cst.Call) -> bool:
        """Whether the dataset or the collate function hands out tensors that are on an accelerator."""
        collate = self.module.argument(call, "collate_fn").node
        definition = self.module.value(collate).definition if collate is not None else None
        if definition is not None and self.data.moves(definition):
            return True
        node = self.dataset(call)
        return node is not None and self.data.on_accelerator(node)

    def _ignores_workers(self, call: cst.Call) -> bool:
        """Whether what the loader reads is, on some path, an iterable dataset that knows of no workers."""
        node = self.dataset(call)
        made: list[cst.BaseExpression | None] = [node]
        if isinstance(node, cst.Name):
            made += [binding.value for binding in self.names.bindings(node) if not binding.path]
        definitions = [self.module.value(value).definition for value in made if value is not None]
        return any(isinstance(d, cst.ClassDef) and self.data.ignores_workers(d) for d in definitions)

    def yields_raw_items(self, call: cst.Call) -> bool:
        """Whether items come out as the dataset has them, in a list: ``collate_fn=list``, or none at all."""
        dataset = self.dataset(call)
        if isinstance(dataset, cst.List) and not dataset.elements:
            return True
        collate = self.module.argument(call, "collate_fn").node
        if isinstance(collate, cst.Lambda) and isinstance(collate.body, cst.Name):
            return True
        return collate is not None and self.module.qualified(collate) in ("builtins.list", "builtins.tuple")

    def regroups_items(self, call: cst.Call) -> bool:
        """Whether the ``collate_fn`` puts the parts of items into lists that are moved nowhere as they are.

        Tensors in a list would be pinned.
        """
        if any(call in each._moved_in_place for each in self._movers):
            return False
        collate = self.module.argument(call, "collate_fn").node
        function = self.module.value(collate).definition if collate is not None else None
        if not isinstance(function, cst.FunctionDef):
            return False
        home = self.module.home(function)
        calls = home.tree.within(function.body, home.tree.nodes(cst.Call))
        return all(last_name(call.func) in _REGROUPING for call in calls)

    def yields_own_objects(self, call: cst.Call) -> bool:
        """Whether batches may be objects of a class that says nothing of pinning: it leaves those alone."""
        collate = self.module.argument(call, "collate_fn").node
        return collate is not None and some(_makes_own_objects(self.module, collate))

    def yields_arrays(self, call: cst.Call) -> bool:
        """Whether batches hold arrays, which the file turns into tensors itself: those cannot be pinned."""
        return any(
            call in self._copied_from(made).calls for each in self._movers for made in each._made_of_arrays
        )

    @cached_property
    def _made_of_arrays(self) -> list[cst.BaseExpression]:
        """The transfers of batches whose arrays are turned into tensors on the way."""
        return [moved for moved in self._transfers if _is_array_made_tensor(moved)]

    def evaluates_one_by_one(self, call: cst.Call) -> bool:
        """Whether a loader yields single items in order: batches of evaluation, which are small."""
        size = self.module.argument(call, "batch_size")
        return (
            (size.absent or (size.constant == 1 and not self._from_parameter(size.node)))
            and all(self.module.argument(call, name).absent for name in ("batch_sampler", "sampler"))
            and not self.module.argument(call, "shuffle").constant
        )

    def declines_workers(self, call: cst.Call) -> bool:
        """Whether a loader is given no workers by a function that is told how many there should be."""
        given = self.module.argument(call, "num_workers")
        function = self.module.function(call)
        if given.constant != 0 or not isinstance(function, cst.FunctionDef):
            return False
        return not self._from_parameter(given.node) and any(
            parameter.name.value == "num_workers" for parameter in all_parameters(function.params)
        )

    def yields_tokens(self, call: cst.Call) -> bool:
        """Whether an item of a loader, or of a trainer, is the tokens of a text: quickly made, few bytes."""
        node = self.dataset(call)
        return node is not None and self.data.has_tokens(node)

    def duplicated(self, call: cst.Call) -> cst.FunctionDef | None:
        """The ``__iter__`` of the loader's dataset if every worker process would yield all of it."""
        node = self.dataset(call)
        definition = self.module.value(node).definition if node is not None else None
        return self.data.unsharded(definition) if isinstance(definition, cst.ClassDef) else None

    def idle_workers(self, call: cst.Call) -> bool:
        """Whether worker processes would have nothing to do, or could not do it."""
        return (
            self.in_memory(call)
            or self._of_few_items(call)
            or self.on_accelerator(call)
            or self._ignores_workers(call)
            or self.yields_raw_items(call)
            or self.only_sampled(call)
            or self._one_batch(call)
            or self._plays(call)
        )

    def _plays(self, call: cst.Call) -> bool:
        node = self.dataset(call)
        return node is not None and self.data.plays(node)

    def _one_batch(self, call: cst.Call) -> bool:
        """``batch_size=len(dataset)``, also by way of a variable."""
        size = self.module.argument(call, "batch_size").node
        held = self.module.names.assignment(size) if isinstance(size, cst.Name) else None
        size = size if held is None else held.value
        dataset = self.dataset(call)
        if not isinstance(size, cst.Call) or dataset is None or len(size.args) != 1:
            return False
        same = self.module.source(size.args[0].value) == self.module.source(dataset)
        return same and self.module.qualified(size.func) == "builtins.len"

    # ------------------------------------------------------------------ trainers

    def is_trainer_arguments(self, call: cst.Call) -> bool:
        """Whether a call makes the ``TrainingArguments`` of Transformers or of what builds on it."""
        name = self.module.qualified(call.func)
        made = name is not None and is_training_arguments(name)
        return made or parses_training_arguments(self.module, call)

    def trainer_works_alone(self, call: cst.Call) -> bool:
        """Whether a trainer is told, or left by default, to load its batches in its own process."""
        absent = self.module.argument(call, "dataloader_num_workers").absent and not parses_file(call)
        return absent or self.constant(call, "dataloader_num_workers") == 0

    def trains_on_host(self, call: cst.Call) -> bool:
        """Whether the trainer is told, or may be told behind ``**kwargs``, to leave the accelerator alone."""
        given = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        return any(
            name in given and self.module.value(given[name]).constant is not False
            for name in ("use_cpu", "no_cuda")
        )

    # ------------------------------------------------------------------ conflicts

    def conflicts(self, call: cst.Call) -> Iterator[Conflict]:
        """The arguments that make the constructor, or the first iteration, raise."""
        yield from self._worker_conflicts(call)
        yield from self._sampler_conflicts(call)
        if self.constant(call, "batch_size") is None and self.constant(call, "drop_last") is True:
            yield Conflict("drop_last", Refusal.NO_BATCHES, idle=True)
        if self._is_iterable(call):
            if self.constant(call, "shuffle") is True:
                yield Conflict("shuffle", Refusal.ITERABLE_DATASET, idle=False)
            for name in ("sampler", "batch_sampler"):
                if self._sampler(call, name) is not None:
                    yield Conflict(name, Refusal.ITERABLE_DATASET, idle=False)

    def _worker_conflicts(self, call: cst.Call) -> Iterator[Conflict]:
        if self.workers(call) != 0:
            return
        prefetch = self.constant(call, "prefetch_factor")
        timeout = self.constant(call, "timeout")
        context = self.constant(call, "multiprocessing_context")
        refused = {
            "persistent_workers": self.constant(call, "persistent_workers") is True,
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
        shuffled = self.constant(call, "shuffle") is True
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
        size = self.constant(call, "batch_size")
        if isinstance(size, int) and size != 1:
            same = isinstance(batches, cst.Call) and self.constant(batches, "batch_size") == size
            yield Conflict("batch_size", Refusal.BATCH_SAMPLER, idle=same)
        if self.constant(call, "drop_last") is True:
            same = isinstance(batches, cst.Call) and self.constant(batches, "drop_last") is True
            yield Conflict("drop_last", Refusal.BATCH_SAMPLER, idle=same)

    def _sampler(self, call: cst.Call, name: str) -> cst.BaseExpression | None:
        """What makes the sampler given for a parameter, if it certainly is one and not None."""
        argument = self.module.argument(call, name)
        made = self.data.made(argument.node) if argument.node is not None else None
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
        """Whether ``shuffle`` asks nothing, such as ``not distributed``, that may go with the sampler."""
        node = self.module.argument(call, "shuffle").node
        made = self.data.made(node) if node is not None else None
        return not isinstance(made, (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison))

    def _sometimes_sampled(self, call: cst.Call) -> bool:
        """``sampler=DistributedSampler(data) if distributed else None``, in one expression or in branches."""
        node = self.module.argument(call, "sampler").node
        made = self.data.made(node) if node is not None else None
        branches: list[cst.BaseExpression | None] = []
        if isinstance(made, cst.IfExp):
            branches = [made.body, made.orelse]
        elif isinstance(node, cst.Name):
            bindings = self.names.bindings(node)
            if all(b.kind is BindingKind.ASSIGN and not b.path for b in bindings):
                branches = [b.value for b in bindings]
        if self._chosen_by_case(call, branches):
            return False
        return any(
            isinstance(branch, cst.Call) and self.module.value(branch).kind is Kind.SAMPLER
            for branch in branches
        )

    def _chosen_by_case(self, call: cst.Call, values: Sequence[cst.BaseExpression | None]) -> bool:
        """Whether a condition around a call may go with the one that decides between values."""
        return any(
            value is None or not self.tree.contains(decision.construct, value)
            for decision in self.module.flow.branches(call)
            for value in values
        )

    def _sampler_of(self, batches: cst.BaseExpression) -> cst.BaseExpression | None:
        """The sampler that a batch sampler draws from."""
        node = self.module.argument(batches, "sampler").node if isinstance(batches, cst.Call) else None
        return self.data.made(node) if node is not None else None

    def _is_random(self, sampler: cst.BaseExpression) -> bool:
        """Whether a sampler draws at random, so that shuffling is what it does anyway."""
        if not isinstance(sampler, cst.Call):
            return False
        name = (self.module.class_of(sampler) or "").rpartition(".")[2]
        if name == "DistributedSampler":
            return self.constant(sampler, "shuffle") is True
        return name in ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")

    def _is_iterable(self, call: cst.Call) -> bool:
        node = self.dataset(call)
        definition = self.module.value(node).definition if node is not None else None
        return isinstance(definition, cst.ClassDef) and self.module.classes.info(definition).inherits(
            ITERABLE
        )

    # ------------------------------------------------------------------ transfers

    @cached_property
    def pinning_asked_for(self) -> bool:
        """Whether the program asks a loader or a tensor whether memory is pinned."""
        others = map(Loaders.of, self.module.companions("is_pinned", ".pin_memory"))
        return self._asks_whether_pinned or any(other._asks_whether_pinned for other in others)

    @cached_property
    def _asks_whether_pinned(self) -> bool:
        for attribute in self.tree.nodes(cst.Attribute):
            if attribute.attr.value == "is_pinned":
                return True
            if (
                attribute.attr.value == "pin_memory"
                and self.module.value(attribute.value).kind is Kind.LOADER
            ):
                return True
        return False

    def blocking_transfer(self, call: cst.Call) -> Transfer | None:
        """The part of a batch that a call copies to the accelerator while the host waits without need.

        It waits without need if the batch is in pinned memory, or if another part of the same batch is
        sent without waiting: then its author knows that it is. All parts of a batch are treated alike: one
        copy that has to wait also waits for the others, which are in the same stream, and so none is found
        beside it.
        """
        found = self._unneeded_wait(call)
        if found is None:
            return None
        for batch in self._batches_behind(found.moved):
            for other in self._copies_of[batch]:
                alike = self._unneeded_wait(other)
                if alike is None and _waits(self.module, other) is True:
                    return None
                if alike is not None and not alike.tensor:
                    found = Transfer(found.moved, tensor=False)
        return found

    @remembered
    def _unneeded_wait(self, call: cst.Call) -> Transfer | None:
        """As ``blocking_transfer``, for a call by itself."""
        moved = transferred(self.module, call) or copied_in(self.module, call)
        if moved is None or not self.pinning_helps or _waits(self.module, call) is not True:
            return None
        if "mps" in self.tree.source(call) or self._written_to(moved):
            return None
        sources = self.batch_sources(moved)
        if sources.known:
            if not all(self._pinned_for_copies(loader) for loader in sources.calls):
                return None
        elif self.module.value(moved).memory is Memory.PAGEABLE or self._sent_ahead.isdisjoint(
            self._batches_behind(moved)
        ):
            return None
        tensor = self.module.value(moved).kind is Kind.TENSOR
        if sources.known:
            collated = all(self._collates_tensors(loader) for loader in sources.calls)
            if sources.whole and not collated:
                return None
            tensor = tensor or collated
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda":
            tensor = True
        return Transfer(moved, tensor)

    def _sends(self, call: cst.Call) -> cst.BaseExpression | None:
        """What a call sends to the accelerator, if it sends anything."""
        return transferred(self.module, call) or copied_in(self.module, call) or self._sent(call)

    @cached_property
    def _copies_of(self) -> dict[cst.CSTNode, list[cst.Call]]:
        """By batch, as `_batches_behind` tells them: the calls that send a part of it to the accelerator."""
        found: dict[cst.CSTNode, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            moved = self._sends(call)
            for batch in self._batches_behind(moved) if moved is not None else ():
                found.setdefault(batch, []).append(call)
        return found

    def _batches_behind(self, node: cst.BaseExpression) -> frozenset[cst.CSTNode]:
        """What identifies the batches that a tensor on the host is a part of, or is computed from.

        Those are the expressions that a loop goes over, or from which ``next`` takes a batch.
        """
        return frozenset(end for end in self._taken_from(node) if end is not None)

    @traced(Through.ITEMS)
    def _taken_from(self, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
        match node:
            case _ if path[:1] == (Item.EACH,):
                return onward(node) if any(self._taken_from(Source(node))) else node
            case cst.Subscript(value=owner) | cst.Attribute(value=owner):
                return onward(owner)
            case cst.Call(func=cst.Name("next")):
                return node
            case cst.Call(func=cst.Attribute(value=owner)) if self.module.qualified(node.func) is None:
                # What has been sent is there already.
                return onward(owner) if transferred(self.module, node) is None else []
            case cst.Call(args=[cst.Arg(value=given, star=""), *_]) if (
                self.module.qualified(node.func) in _SAME_MEMORY
            ):
                return onward(given)
            case _:
                return None

    def _collates_tensors(self, loader: cst.Call) -> bool:
        """Whether what a loader yields has plain tensors wherever it has something to move."""
        made = self.module.value(loader).definition
        if isinstance(made, cst.ClassDef) and self.module.classes.info(made).method("__iter__") is not None:
            return False
        argument = self.module.argument(loader, "collate_fn")
        if self.constant(loader, "batch_size") is None:
            return False
        if argument.absent or argument.constant is None:
            return True
        definition = self.module.value(argument.node).definition if argument.node is not None else None
        if isinstance(definition, cst.Lambda):
            return not self._makes_objects(definition.body)
        if not isinstance(definition, cst.FunctionDef):
            return False
        return not any(
            self._makes_objects(node.value)
            for node in self.tree.descendants(definition.body)
            if isinstance(node, cst.Return) and node.value is not None
        )

    def _makes_objects(self, node: cst.BaseExpression) -> bool:
        """Whether an expression holds instances of classes of some library or of the user."""
        for inner in self.tree.descendants(node):
            if isinstance(inner, cst.Call):
                name = self.module.qualified(inner.func)
                if name is None or not name.startswith(("torch.", "builtins.", "numpy.")):
                    return not isinstance(inner.func, cst.Attribute) or inner.func.attr.value[:1].isupper()
        return False

    @cached_property
    def _sent_ahead(self) -> set[cst.CSTNode]:
        """The batches of which some part is sent without waiting."""
        found: set[cst.CSTNode] = set()
        for call in self.tree.nodes(cst.Call):
            if any(a.keyword is not None and a.keyword.value == "non_blocking" for a in call.args):
                moved = transferred(self.module, call)
                if moved is not None and _waits(self.module, call) is False:
                    found |= self._batches_behind(moved)
        return found

    def _written_to(self, moved: cst.BaseExpression) -> bool:
        """Whether the host changes the memory in place, which a copy under way would notice."""
        if not isinstance(moved, cst.Name):
            return False
        return any(True in verdicts(self.module, binding, _writes) for binding in self.names.bindings(moved))

    # ------------------------------------------------------------------ where batches go

    def destination(self, call: cst.Call) -> Destination:
        """Where the batches of the loader made by ``call`` go, as far as the program shows it."""
        if self.only_sampled(call):
            return Destination.SAMPLE
        if any(call in each._moved_on for each in self._movers):
            return Destination.ACCELERATOR
        if not any(call in each._looped_over or call in each._sampled for each in self._users):
            return Destination.ELSEWHERE if self._given_to_others(call) else Destination.HOST
        escaped = any(each._escapes(name) for each in self._users for name in each._named.get(call, ()))
        return Destination.ELSEWHERE if escaped else Destination.HOST

    @remembered
    def _given_to_others(self, call: cst.Call) -> bool:
        """Whether code that is not seen may iterate a loader that no loop of the program goes over."""
        if self.module.base_constructed(call) is not None or self._may_be_imported(call):
            return True
        return bool(verdicts(self.module, call, _goes_out_of_sight))

    def _may_be_imported(self, call: cst.Call) -> bool:
        """Whether a loader is a variable of a module that only other files can be meant to use."""
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
    def _movers(self) -> list[Loaders]:
        """What is known of the files that may move batches of the file's loaders, first of itself."""
        return [self, *map(Loaders.of, self.module.companions(*_MOVING))]

    @cached_property
    def _moved_on(self) -> frozenset[cst.Call]:
        """The loaders of which a part of a batch is moved to an accelerator."""
        sources = (self._copied_from(transfer) for transfer in self._transfers)
        return frozenset(call for found in sources for call in found.calls)

    def moved_as_copies(self, call: cst.Call) -> bool:
        """Whether only copies of batches, in memory of their own, are moved to an accelerator."""
        moved = any(call in each._moved_on for each in self._movers)
        return moved and not any(call in each._moved_in_place for each in self._movers)

    @cached_property
    def _moved_in_place(self) -> frozenset[cst.Call]:
        """The loaders of which a part of a batch may be moved out of the memory that it was loaded into."""
        sources = (self._copied_from(transfer, Copying.PERHAPS) for transfer in self._transfers)
        return frozenset(call for found in sources for call in found.calls)

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

    def only_sampled(self, call: cst.Call) -> bool:
        """Whether each loader that ``call`` makes is only asked for one batch, as to look at it."""
        if any(call in each._looped_over for each in self._users):
            return False
        taken = [(each, node) for each in self._users for node in each._sampled.get(call, ())]
        return bool(taken) and not any(
            not self.tree.contains(loop, call)
            for each, node in taken
            for loop in each.module.flow.loops(node)
        )

    def only_collected(self, call: cst.Call) -> bool:
        """Whether a loader is gone through once, to keep all its batches: ``[x.cuda() for x in loader]``."""
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
        """Whether batches are sent to an accelerator, by what the file does or else by its evidence."""
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
    def _transfers(self) -> list[cst.BaseExpression]:
        calls = self.tree.nodes(cst.Call)
        moved = map(self._sends, calls)
        return [node for node in moved if node is not None]

    def _sent(self, call: cst.Call) -> cst.BaseExpression | None:
        """What arrives on an accelerator otherwise: ``x.type(Tensor)``, ``buffer.copy_(x)``."""
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
        """``torch.cuda.FloatTensor``, or a name for it where the file finds an accelerator."""
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
            for call in self.tree.nodes(cst.Call)
            if isinstance(call.func, cst.Name) and call.func.value == "next" and call.args
        ]

    def _escapes(self, name: cst.Name) -> bool:
        """Whether a part of a batch is handed to something that this file does not show."""
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
        """Whether each part of a batch of several is given to a model, and read nowhere else."""
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
        argument = self.tree.parent(use)
        call = self.tree.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or names_criterion(last_name(call.func)):
            return False
        return self.module.value(call.func).kind is Kind.MODULE

    def _is_host_method(self, call: cst.Call) -> bool:
        func = call.func
        if not isinstance(func, cst.Attribute):
            return False
        if func.attr.value in ("append", "extend", "add", "add_", "copy_"):
            return True
        made = self.data.made(func.value)
        dotted = self.module.qualified(made.func) if isinstance(made, cst.Call) else None
        return dotted is not None and dotted.partition(".")[0] in HOST_PACKAGES

    # ------------------------------------------------------------------ trails back

    def sources(self, node: cst.BaseExpression) -> Sources:
        """The loaders that iterating ``node`` reads from."""
        return self._of_portion(node, (Portion.LOADER,))

    def batch_sources(self, node: cst.BaseExpression) -> Sources:
        """The loaders that a batch, or a part of one in the same memory, comes from."""
        return self._of_portion(node, (Portion.BATCH, Portion.PART))

    def _copied_from(self, node: cst.BaseExpression, copying: Copying = Copying.ALWAYS) -> Sources:
        """The loaders whose batches a tensor on the host is, or was copied or converted from."""
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
        """The loader that a value comes from, through what copies it at most so."""
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
        """What a call gives parts of: loaders by way of progress bars, batches by way of views."""
        if transferred(self.module, call) is not None:
            return []  # It is no longer in the memory of the host.
        name, dotted = last_name(call.func), self.module.qualified(call.func)
        first = call.args[0].value if call.args and not call.args[0].star else None
        if name in _TRANSPARENT or (name == "enumerate" and not path):
            return onward(first, path=path[1:] if path[:1] == (Item.ENTERED,) else path) if first else None
        if isinstance(call.func, cst.Attribute) and dotted is None:
            owner = call.func.value
            if name in ("next", "__next__"):
                return onward(owner, path=(Item.EACH, *path))
            if name in ("get", "pop") and self.module.value(owner).kind not in (Kind.DICT, Kind.LIST):
                return onward(owner, path=(Item.ANY, *path))
            if name in _VIEWS or name in ("set_description", "__iter__") or (copying and name in _CASTS):
                return onward(owner, path=path)
        if first is None:
            return None
        if dotted in ("torch.autograd.Variable", "torch.Tensor.view") or dotted in LEGACY_CONSTRUCTORS:
            return onward(first, path=path)  # Given a tensor, they name it anew.
        if copying and (dotted in _SAME_MEMORY or name in _OF_ARRAYS):
            return onward(first, path=path)
        if copying is Copying.ALWAYS and dotted in _JOINING:
            # A store of samples that grows is no batch.
            each = Source(first, (Item.EACH, *path))
            return [each] if None not in self._behind(each, copying) else None
        return None

    # ------------------------------------------------------------------ small things

    # ------------------------------------------------------------------ circumstances

    def debugging(self, call: cst.Call) -> bool:
        """Whether a loader is made for a debugging or overfitting run, or for a test, only."""
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
        """Whether a name, or a text that one is compared with, says that a run is for debugging."""
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

    def spawnable(self, call: cst.Call) -> bool:
        """Whether worker processes that are spawned, not forked, could be given what they need.

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
            if not isinstance(inner, cst.Name) or inner in seen or not self.names.is_read(inner):
                continue
            seen.add(inner)
            for binding in self.names.bindings(inner):
                if isinstance(binding.node, (cst.FunctionDef, cst.ClassDef)):
                    if self.module.function(binding.node) is not None:
                        return False
                elif binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    if len(seen) < 200 and not self._picklable(binding.value, seen):
                        return False
        return True

    def constant(self, call: cst.Call, name: str) -> object:
        """The constant that a loader gets for a parameter; ``MISSING`` if it is not certain."""
        argument = self.module.argument(call, name)
        if argument.given and (self._from_parameter(argument.node) or self._may_be_none(argument.node)):
            return MISSING
        return argument.constant

    def may_shuffle(self, call: cst.Call) -> bool:
        """Whether a loader or sampler shuffles, at least for one of those who call a factory."""
        node = self.module.argument(call, "shuffle").node
        if node is None:
            return self.constant(call, "shuffle") is True
        return some(_is(self.module, node, True))

    def _may_be_none(self, node: cst.BaseExpression | None) -> bool:
        """Whether one of several values is None: ``2 if workers > 0 else None``."""
        branches: list[cst.BaseExpression | None] = [node]
        if isinstance(node, cst.Name):
            branches = [b.value for b in self.names.bindings(node) if b.kind is BindingKind.ASSIGN]
        if isinstance(node, cst.Name) and len(branches) > 1:
            return any(b is not None and self.module.value(b).kind is Kind.NONE for b in branches)
        return any(
            isinstance(b, cst.IfExp) and Kind.NONE in {self.module.value(x).kind for x in (b.body, b.orelse)}
            for b in branches
        )


def _goes_out_of_sight(module: Module, use: Use) -> Verdict[bool]:
    """Whether a use gives a loader to code that this file does not show."""
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
    """``processor(text=batch)``, ``tokenizer(batch)``: whether tensors are made of an argument, a text."""
    keyword = argument.keyword.value if argument.keyword is not None else None
    return keyword in ("text", "texts") or names_tokenizer(last_name(call.func))


def _waits(module: Module, call: cst.Call) -> bool | None:
    """Whether ``x.to(...)`` or ``x.cuda(...)`` is a blocking copy; None where that is open."""
    if any(argument.star for argument in call.args):
        return None
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "non_blocking":
            constant = module.value(argument.value).constant
            return not constant if isinstance(constant, bool) else None
    positional = [argument for argument in call.args if argument.keyword is None]
    flags = [
        argument for argument in positional[1:] if isinstance(module.value(argument.value).constant, bool)
    ]
    if flags or len(positional) > 2:
        return False if flags and module.value(flags[0].value).constant is True else None
    return True


def _is_array_made_tensor(node: cst.BaseExpression) -> bool:
    """Whether a batch, which holds arrays, is turned into tensors on its way to the device."""
    while True:
        match node:
            case cst.Call(func=cst.Attribute(attr=cst.Name("from_numpy"))):
                return True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name in _CASTS:
                node = owner
            case _:
                return False


@traced(Through.ITEMS)
def _is_true(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    constant = module.value(node).constant if not path else MISSING
    return constant is True if constant is not MISSING else None


@traced(Through.PARAMETERS)
def _is(module: Module, node: cst.CSTNode, path: Path, wanted: object) -> bool | None:
    """Whether a value is a constant, or the answer to a question for one: ``split == "train"``."""
    match node:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=right)]
        ) if wanted is True and (asked := module.value(right).constant) is not MISSING:
            return some(_is(module, left, asked))
        case cst.BaseExpression() if not path:
            constant = module.value(node).constant
            return None if constant is MISSING else constant == wanted
        case _:
            return None


def _portion(path: Path) -> Portion | None:
    """What a part of a loader is."""
    if not path or path == (Item.ENTERED,):
        return Portion.LOADER
    if path[0] is not Item.EACH:
        return None
    return Portion.BATCH if len(path) == 1 else Portion.PART


def _writes(module: Module, use: Use) -> Verdict[bool]:
    """Whether a use of a tensor changes its memory, through it or through an array that shares it."""
    match use.kind:
        case UseKind.METHOD if use.name not in _SHARING:
            return use.name.endswith("_") and not use.name.endswith("__") and use.name != "requires_grad_"
        case UseKind.ATTRIBUTE if use.name not in _SHARING:
            return False
        case UseKind.METHOD | UseKind.ATTRIBUTE | UseKind.ASSIGNED:
            return ONWARD
        case UseKind.SET | UseKind.AUGMENTED:
            return not isinstance(use.by, cst.Attribute)
        case _:
            return False


@traced(Through.NOTHING)
def _makes_own_objects(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Whether a collate function gives objects of a class of its own without a method ``pin_memory``."""
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
