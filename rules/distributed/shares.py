"""Which share of the data each process of a program gets, and in which order.

``DistributedSampler`` gives each process its share, in an order that is drawn anew only if it is told the
epoch. Without it a loader yields all of the data in every process. Nothing is said where a framework may see
to that, where the data may come in shares already, or where others get hold of the loader or its sampler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.identifiers import identifiers, named, options
from torchlint.semantics.iterations import LIBRARIES, Iterations
from torchlint.semantics.lexicon import Role, has, words
from torchlint.semantics.loaders import ITERABLE, Loaders, repeated_epochs
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.reach import gathered
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Through, some, traced
from torchlint.semantics.spellings import last_name, parts_of_display
from torchlint.semantics.values import MISSING, Kind

from .parallelism import SAMPLER, Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SEVERAL = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD, Wrapping.DEEPSPEED)
# Frameworks that leave the data to the program, unless it asks them in these words.
_ON_REQUEST = {
    "deepspeed": frozenset({"training_data", "deepspeed_io"}),
    "ignite": frozenset({"auto_dataloader"}),
    "horovod": frozenset[str](),
    "torchx": frozenset[str](),
}
_ASKED = tuple(sorted(set().union(*_ON_REQUEST.values())))
# One of these is in the text of each file that gets hold of a loader.
_LOADING = ("oader", "atch", "epoch", "data", "sampler")
_HARMLESS = frozenset(
    {
        "len",
        "enumerate",
        "iter",
        "next",
        "zip",
        "tqdm",
        "trange",
        "print",
        "id",
        "isinstance",
        "type",
        "islice",
        "cycle",
    }
)
_MAP_STYLE = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.Subset"})
# Functions that draw numbers; those of `random` pick data more often than they make them.
_DRAWING = ("torch.rand", "numpy.random.rand", "numpy.random.normal", "numpy.random.uniform")
_RANDOM = "torch.utils.data.RandomSampler"


def _all_with(module: Module, *words: str) -> tuple[Module, ...]:
    """Return the module itself, and those of its programs that have one of some words in their text."""
    return (module, *module.companions(*words))


def _speaks_of(module: Module, words: frozenset[str]) -> bool:
    return not words.isdisjoint(identifiers(module))


def _shared_elsewhere(module: Module) -> bool:
    """Return whether a framework hands each process its share of the data, or may do so."""
    asking = _all_with(module, *_ASKED)
    return any(
        framework not in _ON_REQUEST or any(_speaks_of(each, _ON_REQUEST[framework]) for each in asking)
        for framework in Parallelism.of(module).frameworks
    )


# --- samplers that are not told the epoch -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SameOrder:
    """A sampler that draws the same order in each epoch: the loader that has it, and the loop over epochs."""

    loader: cst.Call
    loop: cst.For | cst.While


def same_order(module: Module, call: cst.Call) -> SameOrder | None:
    """Return the epochs for which the sampler that a call makes draws the same order every time."""
    loaders = Loaders.of(module)
    if module.class_of(call) != SAMPLER or not _may_shuffle(module, call):
        return None
    definition = module.value(call.func).definition
    if (
        isinstance(definition, cst.ClassDef)
        and module.classes.info(definition).method("__iter__") is not None
    ):
        return None
    if is_test(module) or _tells_epoch(module) or _shared_elsewhere(module):
        return None
    for loader in loaders.constructors:
        if call not in samplers(module, loader) or loaders.debugging(loader):
            continue
        for place, loop in repeated_epochs(module, loader):
            if not isinstance(place, cst.For) or evaluated_only(module, place):
                continue
            if Backpropagation.of(module).computes_gradients(place) and not _handed_out(module, call, loader):
                return SameOrder(loader, loop)
    return None


def _may_shuffle(module: Module, call: cst.Call) -> bool:
    """Return whether a loader or sampler shuffles, at least for one of those who call a factory."""
    node = module.argument(call, "shuffle").node
    if node is None:
        return Loaders.of(module).constant(call, "shuffle") is True
    return some(_is(module, node, True))


@traced(Through.PARAMETERS)
def _is(module: Module, node: cst.CSTNode, path: Path, wanted: object) -> bool | None:
    """Return whether a value is a constant, or the answer to a question for one: ``split == "train"``."""
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


def samplers(module: Module, loader: cst.Call) -> tuple[cst.Call, ...]:
    """Return the calls that can have made the sampler of a loader, that of its batch sampler included."""
    found: list[cst.Call] = []
    for name in ("sampler", "batch_sampler"):
        node = module.argument(loader, name).node
        for made in _made(module, node) if node is not None else ():
            found.append(made)
            inner = module.argument(made, "sampler").node
            found += _made(module, inner) if inner is not None else ()
    return tuple(found)


def _made(module: Module, node: cst.BaseExpression) -> list[cst.Call]:
    """Return the calls that can have made what an expression is."""
    found = [made for made in _makers(module, node) if made is not None]
    return sorted(found, key=module.tree.order.__getitem__)


@traced(Through.NOTHING)
def _makers(module: Module, node: cst.CSTNode, path: Path) -> cst.Call | None:
    if path or not isinstance(node, cst.Call):
        return None
    origin = node if module.value(node).kind is Kind.SAMPLER else module.value(node).origin
    return origin if isinstance(origin, cst.Call) else None


def _tells_epoch(module: Module) -> bool:
    """Return whether anything in the program is told an epoch: ``set_epoch``, even as text,
    or ``sampler.epoch``.
    """
    return any(map(_speaks_of_epoch, _all_with(module, "epoch", "Epoch", "EPOCH")))


@remembered
def _speaks_of_epoch(module: Module) -> bool:
    if any({"set", "epoch"} <= set(words(name)) for name in identifiers(module) | options(module)):
        return True
    return any(
        attribute.attr.value == "epoch" and "sampler" in module.source(attribute.value)
        for attribute in module.tree.nodes(cst.Attribute)
    )


def _handed_out(module: Module, sampler: cst.Call, loader: cst.Call) -> bool:
    """Return whether code that is out of sight gets hold of a loader or its sampler,
    and may tell it the epoch.
    """
    return any(_hands_out(each, sampler, loader) for each in _all_with(module, *_LOADING))


def _hands_out(module: Module, sampler: cst.Call, loader: cst.Call) -> bool:
    for call in module.tree.nodes(cst.Call):
        if not call.args or call is loader or Loaders.of(module).makes_loader(call):
            continue
        if last_name(call.func) in _HARMLESS or (module.qualified(call.func) or "").startswith(LIBRARIES):
            continue
        if not any(_is_one_of(module, argument.value, sampler, loader) for argument in call.args):
            continue
        if module.callee(call) is None:
            return True
    return False


def _is_one_of(module: Module, node: cst.BaseExpression, sampler: cst.Call, loader: cst.Call) -> bool:
    parts = parts_of_display(node)
    return any(
        part is not sampler
        and (
            loader in Loaders.of(module).sources(part).calls
            or (not isinstance(part, cst.Call) and sampler in _made(module, part))
        )
        for part in parts
    )


# --- loaders without a sampler -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeData:
    """A loader that yields all of the data in every process: what wraps the model that is trained on it."""

    wrapper: Wrapper
    shuffled: bool


def whole_data(module: Module, call: cst.Call) -> WholeData | None:
    """Return the wrapped model that is trained, in every process,
    on all that the loader made by a call yields.
    """
    loaders = Loaders.of(module)
    if not loaders.makes_loader(call) or not Parallelism.of(module).wrapped_by(*_SEVERAL):
        return None
    random = _draws_at_random(module, call)
    if not (random or _left_out(module, call, "sampler")) or not _left_out(module, call, "batch_sampler"):
        return None
    shuffled = random or loaders.constant(call, "shuffle") is True
    if is_test(module) or _shared_elsewhere(module) or _seeded_apart(module):
        return None
    if not shuffled and not _counted(module, call):
        return None
    if _depends(module, call) or _comes_in_shares(module, call) or _draws_data(module, call):
        return None
    if loaders.debugging(call):
        return None
    trained: list[Wrapper] = []
    for each in _all_with(module, *_LOADING):
        trained += _trained_on(each, call)
    first = min(trained, key=Parallelism.of(module).wrappers.index, default=None)
    return WholeData(first, shuffled) if first is not None else None


def _trained_on(module: Module, call: cst.Call) -> Iterator[Wrapper]:
    """Yield what wraps the models that a file trains on what the loader made by a call yields."""
    for loop in module.tree.nodes(cst.For):
        sources = Loaders.of(module).sources(loop.iter)
        if call not in sources.calls or not sources.complete or evaluated_only(module, loop):
            continue
        if _depends(module, loop):
            continue
        others = (made for other in sources.calls for made in samplers(module, other))
        if any(module.class_of(made) != _RANDOM for made in others):
            continue
        yield from _trained(module, loop)


def _seeded_apart(module: Module) -> bool:
    """Return whether a statement seeds by the rank, so that each process draws in an order of its own."""
    return any(map(_seeds_by_rank, _all_with(module, "seed")))


@remembered
def _seeds_by_rank(module: Module) -> bool:
    seeds, ranks = (
        {module.tree.statement(n) for n in module.tree.nodes(cst.Name) if word in words(n.value)}
        for word in ("seed", "rank")
    )
    return not seeds.isdisjoint(ranks)


def _draws_data(module: Module, call: cst.Call) -> bool:
    """Return whether the data of a loader are random numbers, which each process draws for itself."""
    dataset = module.argument(call, "dataset").node
    if dataset is None:
        return False
    made = _construction(module, dataset)
    if made is None:
        return False
    home = module.home(made)
    definition = home.value(made.func).definition
    if isinstance(definition, cst.ClassDef):
        constructor = home.classes.info(definition).method("__init__")
        return constructor is not None and _holds_draw(module.home(constructor), constructor)
    return bool(made.args) and all(_is_drawn(home, arg.value) for arg in made.args)


def _construction(module: Module, node: cst.BaseExpression) -> cst.Call | None:
    """Return the one call that makes what a name or expression is."""
    if isinstance(node, cst.Name):
        bindings = module.bindings(node)
        value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    else:
        value = node
    return value if isinstance(value, cst.Call) else None


def _is_drawn(module: Module, node: cst.BaseExpression) -> bool:
    made = _construction(module, node)
    return made is not None and _holds_draw(module, made)


def _holds_draw(module: Module, node: cst.CSTNode) -> bool:
    calls = module.tree.nodes_within(node, cst.Call)
    return any((module.qualified(call.func) or "").startswith(_DRAWING) for call in calls)


def _left_out(module: Module, call: cst.Call, name: str) -> bool:
    argument = module.argument(call, name)
    return argument.absent or Loaders.of(module).constant(call, name) is None


def _draws_at_random(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``sampler=RandomSampler(data)``, whatever else is the case:
    it knows of no other processes.
    """
    node = module.argument(call, "sampler").node
    made = Loaders.of(module).made(node) if node is not None else None
    if not isinstance(made, cst.Call) or _depends(module, made):
        return False
    return module.class_of(made) == _RANDOM


def _trained(module: Module, loop: cst.For) -> Iterator[Wrapper]:
    """Yield what wraps, for several processes, models that a loop runs and computes gradients of."""
    if not Backpropagation.of(module).computes_gradients(loop):
        return
    functions = Iterations.of(module).iteration(loop).functions
    for forward in Parallelism.of(module).forwards():
        if module.tree.contains(loop, forward) or module.function(forward) in functions:
            wraps = Parallelism.of(module).wraps(forward.func).by(*_SEVERAL)
            if wraps and grad(module, forward) is not Grad.OFF and not evaluated_only(module, forward):
                yield from wraps


def _counted(module: Module, call: cst.Call) -> bool:
    """Return whether the items of a dataset certainly have numbers,
    and each process goes through those in order.
    """
    shuffle = module.argument(call, "shuffle")
    node = Loaders.of(module).dataset(call)
    if node is None or not (shuffle.absent or Loaders.of(module).constant(call, "shuffle") is False):
        return False
    value = module.value(node)
    if isinstance(value.definition, cst.ClassDef):
        info = module.classes.info(value.definition)
        return info.method("__getitem__") is not None and not info.inherits(ITERABLE)
    name = value.cls or ""
    return name in _MAP_STYLE or name.startswith("torchvision.datasets.")


def _depends(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node may only run in one process, or only if there is one.

    A condition around it says so, or one that leaves its function before; in a program, also one around the
    calls of its function.
    """
    if _depends_by_itself(module, node):
        return True
    if module.link is None:
        return False
    seen: dict[cst.CSTNode, None] = {}
    waiting = [node]
    for place in waiting:
        function = module.function(place)
        if function is None or function in seen:
            continue
        seen[function] = None
        for caller in module.callers(function):
            if _depends_by_itself(module.home(caller), caller):
                return True
            waiting.append(caller)
    return False


def _depends_by_itself(module: Module, node: cst.CSTNode) -> bool:
    module = module.home(node)
    if any(_asks_for_processes(module, branch.test) for branch in module.flow.branches(node)):
        return True
    function = module.function(node)
    if function is None:
        return False
    for branch in module.tree.descendants(function.body):
        if isinstance(branch, cst.If) and not module.tree.contains(branch, node):
            if _asks_for_processes(module, branch.test) and _decides(module, branch):
                return True
    return False


def _asks_for_processes(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether a condition asks whether there are several processes, or which of them this is."""
    return any(
        has(name, Role.DISTRIBUTED, Role.DEVICE) or "sampler" in words(name) for name in named(module, test)
    )


def _decides(module: Module, branch: cst.If) -> bool:
    """Return whether a branch makes loaders or samplers of its own, or returns."""
    return any(
        isinstance(inner, cst.Return)
        or (isinstance(inner, cst.Call) and module.value(inner).kind in (Kind.LOADER, Kind.SAMPLER))
        for inner in module.tree.descendants(branch)
    )


def _comes_in_shares(module: Module, call: cst.Call) -> bool:
    """Return whether the dataset of a loader may hold the share of this process only."""
    node = Loaders.of(module).dataset(call)
    if node is None:
        return True
    told = gathered(node, partial(_told_of, module), {})
    return any(has(name, Role.DISTRIBUTED) for part in told for name in named(module, part))


def _told_of(module: Module, node: cst.BaseExpression) -> tuple[list[cst.CSTNode], list[cst.BaseExpression]]:
    """Return what the file says of how a value is made: the code that makes it,
    and the values that this uses.
    """
    said: list[cst.CSTNode | None] = [node, module.value(node).definition]
    used: list[cst.BaseExpression] = []
    for part in module.tree.descendants(node):
        if isinstance(part, cst.Name) and module.names.is_read(part):
            used += [binding.value for binding in module.bindings(part) if binding.value is not None]
        elif isinstance(part, cst.Call):
            said.append(module.callee(part))
    return [each for each in said if each is not None], used
