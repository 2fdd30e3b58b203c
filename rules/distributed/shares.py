"""Which share of the data each process of a program gets, and in which order.

``DistributedSampler`` gives each process its share, in an order that is drawn anew only if it is told the
epoch. Without it a loader yields all of the data in every process. Nothing is said where a framework may see
to that, where the data may come in shares already, or where others get hold of the loader or its sampler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.epochs import repeated_epochs
from torchlint.semantics.evidence import is_test
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.holders import LIBRARIES
from torchlint.semantics.iterations import Iterations
from torchlint.semantics.loaders import ITERABLE, Loaders
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import evaluated_only
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

from .parallelism import SAMPLER, Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SEVERAL = (Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD, Wrapping.DEEPSPEED)
# Frameworks that leave the data to the program, unless it asks them in these words.
_ON_REQUEST = {
    "deepspeed": re.compile(r"training_data|deepspeed_io"),
    "ignite": re.compile(r"auto_dataloader"),
    "horovod": re.compile(r"(?!)"),
    "torchx": re.compile(r"(?!)"),
    "megatron": re.compile(r""),
}
_SETTING = re.compile(r"set\w*epoch", re.IGNORECASE)
# What decides whether there are several processes, or which of them this is.
_ABOUT_PROCESSES = re.compile(
    r"dist|ddp|rank|world|gpu|parallel|local|multi|sampler|launch|single|main_process|master|nproc|device|fsdp|slurm"
    r"|horovod|hvd|deepspeed|zero",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r"rank|world|shard|replica|split_by|by_node|partition|process|distributed", re.IGNORECASE
)
_SEEDED = re.compile(r"seed[^\r\n]*rank|rank[^\r\n]*seed", re.IGNORECASE)
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
_MAP_STYLE = re.compile(r"torchvision\.datasets\.|torch\.utils\.data\.(TensorDataset|Subset)$")
_RANDOM = "torch.utils.data.RandomSampler"
_HOPS = 3


def _shared_elsewhere(module: Module) -> bool:
    """Whether a framework hands each process its share of the data, or may do so."""
    return any(
        framework not in _ON_REQUEST or module.tree.matches(_ON_REQUEST[framework])
        for framework in Parallelism.of(module).frameworks
    )


# --- samplers that are not told the epoch -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SameOrder:
    """A sampler that draws the same order in each epoch: the loader that has it, and the loop over epochs."""

    loader: cst.Call
    loop: cst.For | cst.While


def same_order(call: cst.Call, module: Module) -> SameOrder | None:
    """The epochs for which the sampler that a call makes draws the same order every time."""
    loaders = Loaders.of(module)
    if module.class_of(call) != SAMPLER or loaders.constant(call, "shuffle") is not True:
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
        if call not in samplers(loader, module) or loaders.debugging(loader):
            continue
        for place, loop in repeated_epochs(module, loader):
            if not isinstance(place, cst.For) or evaluated_only(module, place):
                continue
            if Backpropagation.of(module).computes_gradients(place) and not _handed_out(call, loader, module):
                return SameOrder(loader, loop)
    return None


def samplers(loader: cst.Call, module: Module) -> tuple[cst.Call, ...]:
    """The calls that can have made the sampler of a loader, that of its batch sampler included."""
    found: list[cst.Call] = []
    for name in ("sampler", "batch_sampler"):
        node = module.argument(loader, name).node
        for made in _made(node, module) if node is not None else ():
            found.append(made)
            inner = module.argument(made, "sampler").node
            found += _made(inner, module) if inner is not None else ()
    return tuple(found)


def _made(node: cst.BaseExpression, module: Module) -> list[cst.Call]:
    """The calls that can have made what an expression is."""
    branches: list[cst.BaseExpression] = [node]
    if isinstance(node, cst.IfExp):
        branches = [node.body, node.orelse]
    elif isinstance(node, cst.Name):
        bindings = module.bindings(node)
        if all(b.kind is BindingKind.ASSIGN and not b.path and b.value is not None for b in bindings):
            branches = [value for b in bindings if (value := b.value) is not None and value is not node]
    found: list[cst.Call] = []
    for branch in branches:
        if branch is not node and isinstance(branch, cst.IfExp):
            found += _made(branch, module)
            continue
        origin = branch if _is_sampler_call(branch, module) else module.value(branch).origin
        if isinstance(origin, cst.Call) and origin not in found:
            found.append(origin)
    return found


def _is_sampler_call(node: cst.BaseExpression, module: Module) -> bool:
    return isinstance(node, cst.Call) and module.value(node).kind is Kind.SAMPLER


def _tells_epoch(module: Module) -> bool:
    """Whether anything in the file is told an epoch: ``set_epoch``, even as text, or ``sampler.epoch``."""
    if module.tree.matches(_SETTING):
        names = module.tree.nodes(cst.Name)
        if any(_SETTING.search(name.value) for name in names):
            return True
        if any(_SETTING.search(text.raw_value) for text in module.tree.nodes(cst.SimpleString)):
            return True
    return any(
        attribute.attr.value == "epoch" and "sampler" in module.source(attribute.value)
        for attribute in module.tree.nodes(cst.Attribute)
    )


def _handed_out(sampler: cst.Call, loader: cst.Call, module: Module) -> bool:
    """Whether other files get hold of a loader or its sampler, and may tell it the epoch."""
    for call in module.tree.nodes(cst.Call):
        if not call.args or call is loader or Loaders.of(module).makes_loader(call):
            continue
        if last_name(call.func) in _HARMLESS or (module.qualified(call.func) or "").startswith(LIBRARIES):
            continue
        if not any(_is_one_of(argument.value, sampler, loader, module) for argument in call.args):
            continue
        if module.callee(call) is None:
            return True
    return False


def _is_one_of(node: cst.BaseExpression, sampler: cst.Call, loader: cst.Call, module: Module) -> bool:
    if isinstance(node, (cst.Tuple, cst.List)):
        return any(_is_one_of(element.value, sampler, loader, module) for element in node.elements)
    if not isinstance(node, (cst.Name, cst.Attribute, cst.Call)) or node is sampler:
        return False
    return loader in Loaders.of(module).sources(node).calls or (
        not isinstance(node, cst.Call) and sampler in _made(node, module)
    )


# --- loaders without a sampler -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholeData:
    """A loader that yields all of the data in every process: what wraps the model that is trained on it."""

    wrapper: Wrapper
    shuffled: bool


def whole_data(call: cst.Call, module: Module) -> WholeData | None:
    """The wrapped model that is trained, in every process, on all that the loader made by a call yields."""
    loaders = Loaders.of(module)
    if not loaders.makes_loader(call) or not Parallelism.of(module).wrapped_by(*_SEVERAL):
        return None
    random = _draws_at_random(call, module)
    if not (random or _left_out(call, "sampler", module)) or not _left_out(call, "batch_sampler", module):
        return None
    shuffled = random or loaders.constant(call, "shuffle") is True
    if is_test(module) or _shared_elsewhere(module) or module.tree.matches(_SEEDED):
        return None
    if not shuffled and not _counted(call, module):
        return None
    if _depends(call, module) or _comes_in_shares(call, module) or loaders.debugging(call):
        return None
    trained: list[Wrapper] = []
    for loop in module.tree.nodes(cst.For):
        sources = loaders.sources(loop.iter)
        if call not in sources.calls or not sources.complete or evaluated_only(module, loop):
            continue
        if _depends(loop, module):
            continue
        others = (made for other in sources.calls for made in samplers(other, module))
        if any(module.class_of(made) != _RANDOM for made in others):
            continue
        trained += _trained(loop, module)
    first = min(trained, key=lambda wrapper: module.tree.standing(wrapper.call), default=None)
    return WholeData(first, shuffled) if first is not None else None


def _left_out(call: cst.Call, name: str, module: Module) -> bool:
    argument = module.argument(call, name)
    return argument.absent or Loaders.of(module).constant(call, name) is None


def _draws_at_random(call: cst.Call, module: Module) -> bool:
    """``sampler=RandomSampler(data)``, whatever else is the case: it knows of no other processes."""
    node = module.argument(call, "sampler").node
    made = Loaders.of(module).data.made(node) if node is not None else None
    if not isinstance(made, cst.Call) or _depends(made, module):
        return False
    return module.class_of(made) == _RANDOM


def _trained(loop: cst.For, module: Module) -> Iterator[Wrapper]:
    """What wraps, for several processes, models that a loop runs and computes gradients of."""
    if not Backpropagation.of(module).computes_gradients(loop):
        return
    functions = Iterations.of(module).iteration(loop).functions
    for forward in Parallelism.of(module).forwards():
        if module.tree.contains(loop, forward) or module.function(forward) in functions:
            wraps = Parallelism.of(module).wraps(forward.func).by(*_SEVERAL)
            if wraps and grad(module, forward) is not Grad.OFF and not evaluated_only(module, forward):
                yield from wraps


def _counted(call: cst.Call, module: Module) -> bool:
    """Whether the items of a dataset certainly have numbers, and each process goes through those in order."""
    shuffle = module.argument(call, "shuffle")
    node = Loaders.of(module).dataset(call)
    if node is None or not (shuffle.absent or Loaders.of(module).constant(call, "shuffle") is False):
        return False
    value = module.value(node)
    if isinstance(value.definition, cst.ClassDef):
        info = module.classes.info(value.definition)
        return info.method("__getitem__") is not None and not info.inherits(ITERABLE)
    return value.cls is not None and _MAP_STYLE.match(value.cls) is not None


def _depends(node: cst.CSTNode, module: Module) -> bool:
    """Whether a node may only run in one process, or only if there is one.

    A condition around it says so, or one that leaves its function before.
    """
    if any(_ABOUT_PROCESSES.search(module.source(d.test)) for d in module.flow.branches(node)):
        return True
    function = module.function(node)
    if function is None:
        return False
    for branch in module.tree.descendants(function.body):
        if isinstance(branch, cst.If) and not module.tree.contains(branch, node):
            if _ABOUT_PROCESSES.search(module.source(branch.test)) and _decides(branch, module):
                return True
    return False


def _decides(branch: cst.If, module: Module) -> bool:
    """Whether a branch makes loaders or samplers of its own, or returns."""
    return any(
        isinstance(inner, cst.Return)
        or (isinstance(inner, cst.Call) and module.value(inner).kind in (Kind.LOADER, Kind.SAMPLER))
        for inner in module.tree.descendants(branch)
    )


def _comes_in_shares(call: cst.Call, module: Module) -> bool:
    """Whether the dataset of a loader may hold the share of this process only."""
    node = Loaders.of(module).dataset(call)
    return node is None or any(_SHARED.search(text) for text in _told_of(module, node, _HOPS))


@remembered
def _told_of(module: Module, node: cst.BaseExpression, hops: int) -> tuple[str, ...]:
    """What the file says of how a value is made."""
    return tuple(dict.fromkeys(_telling(node, module, hops)))


def _telling(node: cst.BaseExpression, module: Module, hops: int) -> Iterator[str]:
    yield module.source(node)
    definition = module.value(node).definition
    if definition is not None:
        yield module.source(definition)
    if not hops:
        return
    for name in module.tree.descendants(node):
        if isinstance(name, cst.Name) and module.names.is_read(name):
            for binding in module.bindings(name):
                if binding.value is not None:
                    yield from _told_of(module, binding.value, hops - 1)
        if isinstance(name, cst.Call):
            callee = module.callee(name)
            if callee is not None:
                yield module.source(callee)
