"""Collective operations: which calls make the ranks exchange data, over which back end, and what comes of it.

A collective is called by every rank and ends when all of them have got there. Some change a tensor that
they are given (``dist.all_reduce(x)``), some hand back another (``accelerator.gather(x)``, Horovod's and
those that autograd knows); a helper of the file or of the project, ``reduce_tensor(loss)``, is one as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import libcst as cst

from torchlint.semantics.dependencies import Table, cached_property
from torchlint.semantics.identifiers import option_default
from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import BindingKind
from torchlint.semantics.reach import components
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import MISSING, Device, Kind

_DISTRIBUTED = ("torch.distributed.", "torch.distributed.distributed_c10d.")
_RETURNING = (
    "torch.distributed.nn.functional.",
    "torch.distributed.nn.",
    "torch.distributed._functional_collectives.",
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which arguments of a function are sent and which receive, by name and place; and its group."""

    sent: tuple[str, int] | None
    received: tuple[str, int] | None
    group: int | None


# As torch declares them; a test compares the places with those of the installed release.
FUNCTIONS: Final[Mapping[str, _Shape]] = {
    "all_reduce": _Shape(("tensor", 0), ("tensor", 0), 2),
    "reduce": _Shape(("tensor", 0), ("tensor", 0), 3),
    "broadcast": _Shape(("tensor", 0), ("tensor", 0), 2),
    "all_gather": _Shape(("tensor", 1), ("tensor_list", 0), 2),
    "all_gather_into_tensor": _Shape(("input_tensor", 1), ("output_tensor", 0), 2),
    "_all_gather_base": _Shape(("input_tensor", 1), ("output_tensor", 0), 2),
    "gather": _Shape(("tensor", 0), ("gather_list", 1), 3),
    "scatter": _Shape(("scatter_list", 1), ("tensor", 0), 3),
    "reduce_scatter": _Shape(("input_list", 1), ("output", 0), 3),
    "reduce_scatter_tensor": _Shape(("input", 1), ("output", 0), 3),
    "all_to_all": _Shape(("input_tensor_list", 1), ("output_tensor_list", 0), 2),
    "all_to_all_single": _Shape(("input", 1), ("output", 0), 4),
    "all_gather_object": _Shape(("obj", 1), ("object_list", 0), 2),
    "gather_object": _Shape(("obj", 0), ("object_gather_list", 1), 3),
    "broadcast_object_list": _Shape(("object_list", 0), ("object_list", 0), 2),
    "barrier": _Shape(None, None, 0),
    "monitored_barrier": _Shape(None, None, 0),
}
_OBJECTS = frozenset({"all_gather_object", "gather_object", "broadcast_object_list"})
_BARRIERS = frozenset({"barrier", "monitored_barrier", "wait_for_everyone"})
_FUNCTIONAL = frozenset(
    {"all_reduce", "all_gather", "all_gather_tensor", "reduce", "broadcast", "reduce_scatter", "gather"}
    | {"all_to_all", "all_to_all_single", "reduce_scatter_tensor", "all_gather_tensor_autograd"}
)
# Libraries whose functions hand back what they compute.
_LIBRARIES: Final[Mapping[str, frozenset[str]]] = {
    "horovod.torch.": frozenset({"allreduce", "allgather", "broadcast", "alltoall", "reducescatter"}),
    "ignite.distributed.": frozenset({"all_reduce", "all_gather", "broadcast"}),
    "accelerate.utils.": frozenset({"gather", "reduce", "broadcast"}),
    "torch_xla.core.xla_model.": frozenset({"mesh_reduce", "all_reduce", "all_gather"}),
}
_ENGINE_METHODS = frozenset({"gather", "gather_for_metrics", "reduce", "all_gather", "all_reduce"})
_WELL_KNOWN = frozenset(
    {
        "torch",
        "numpy",
        "builtins",
        "functools",
        "einops",
        "tensorflow",
        "jax",
        "operator",
        "itertools",
        "math",
    }
)
_HELPER_STATEMENTS = 30
# One of these is in the text of each file with a helper that exchanges something.
_SPOKEN = ("reduce", "gather", "broadcast", "scatter", "all_to_all", "alltoall")


@dataclass(frozen=True, slots=True)
class Collective:
    """A call at which all ranks meet.

    ``sent`` is what each rank gives, ``received`` the argument that holds the outcome; None if the call
    itself stands for it. ``helper`` is the function of the file that makes the call, if one does.
    """

    call: cst.Call
    name: str
    sent: cst.BaseExpression | None
    received: cst.BaseExpression | None
    group: cst.BaseExpression | None = None
    helper: cst.FunctionDef | None = None

    @property
    def is_barrier(self) -> bool:
        """Whether nothing is exchanged."""
        return self.name in _BARRIERS

    @property
    def of_objects(self) -> bool:
        """Whether Python objects are pickled and sent."""
        return self.name in _OBJECTS


def collective(module: Module, call: cst.Call) -> Collective | None:
    """Return what a call of a library exchanges between the ranks; None if it is no collective operation."""
    name = last_name(call.func)
    if name is None or not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    if isinstance(call.func, cst.Attribute) and name not in _NAMES:
        return None
    dotted = module.qualified(call.func)
    if dotted is None:
        return _of_engine(module, call, name)
    # ``from torch.distributed import all_reduce as reduce_all``
    name = dotted.rpartition(".")[2]
    package = dotted[: -len(name)]
    if package in _DISTRIBUTED and name in FUNCTIONS:
        shape = FUNCTIONS[name]
        group = given_as(call, "group", shape.group)
        sent = given_as(call, *shape.sent) if shape.sent is not None else None
        received = given_as(call, *shape.received) if shape.received is not None else None
        if (shape.sent and sent is None) or (shape.received and received is None):
            return None
        return Collective(call, name, sent, received, group)
    returns = (package in _RETURNING and name in _FUNCTIONAL) or name in _LIBRARIES.get(package, ())
    if returns and call.args and not call.args[0].star:
        return Collective(call, name, call.args[0].value, None, given_as(call, "group", None))
    return None


_NAMES = frozenset(
    {*FUNCTIONS, *_FUNCTIONAL, *_ENGINE_METHODS, *_BARRIERS}.union(*(names for names in _LIBRARIES.values()))
)


def _of_engine(module: Module, call: cst.Call, name: str) -> Collective | None:
    """Return the collective that a method of an engine is, such as ``accelerator.gather(x)``."""
    if not isinstance(call.func, cst.Attribute) or name not in _ENGINE_METHODS | {"wait_for_everyone"}:
        return None
    owner = call.func.value
    if module.value(owner).kind is not Kind.ACCELERATOR and last_name(owner) not in ("accelerator", "fabric"):
        return None
    if name == "wait_for_everyone":
        return Collective(call, name, None, None)
    return Collective(call, name, call.args[0].value, None) if call.args and not call.args[0].star else None


# --- helpers ------------------------------------------------------------------------------------------


class Collectives(Part):
    """The helpers that exchange what they are given between the ranks, as one file calls them."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._communicating: dict[cst.FunctionDef, Collective | None] = {}
        self._rests = Table()

    def reduction(self, call: cst.Call) -> Collective | None:
        """Return a collective operation, or a call of a helper that makes one of what it is given."""
        found = collective(self.module, call)
        name = last_name(call.func)
        if found is not None or name is None or not call.args or call.args[0].star:
            return found
        exchanges = has(name, Role.EXCHANGE)
        if exchanges or name in self._names:
            callee = self.module.callee(call)
            if isinstance(callee, cst.FunctionDef):
                return self._by_helper(call, callee)
        if exchanges and not _is_well_known(self.module, call.func):
            return Collective(call, name, call.args[0].value, None)
        return None

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of the functions that may be such helpers: they call one, or make a collective call."""
        calling: dict[str, set[str]] = {}
        found: set[str] = set()
        for each in (self, *map(Collectives.of, self.module.companions(*_SPOKEN))):
            making, calls = each._named_here
            found |= making
            for name, callers in calls.items():
                calling.setdefault(name, set()).update(callers)
        waiting = list(found)
        while waiting:
            callers = calling.get(waiting.pop(), set()) - found
            found |= callers
            waiting += callers
        return frozenset(found)

    @cached_property
    def _named_here(self) -> tuple[set[str], dict[str, set[str]]]:
        """The names of the file's functions that make a collective call, and for each name its callers."""
        calling: dict[str, set[str]] = {}
        found: set[str] = set()
        for call in self.tree.nodes(cst.Call):
            function = self.module.function(call)
            name = last_name(call.func)
            if isinstance(function, cst.FunctionDef) and name is not None:
                calling.setdefault(name, set()).add(function.name.value)
                if name in _NAMES or collective(self.module, call) is not None:
                    found.add(function.name.value)
        return found, calling

    def _by_helper(self, call: cst.Call, function: cst.FunctionDef) -> Collective | None:
        inner = self.communicates(function)
        if inner is None:
            return None
        returned = [
            node.value
            for node in self.tree.descendants(function.body)
            if isinstance(node, cst.Return) and node.value and self.module.function(node) is function
        ]
        if returned:
            known = self._computed_from(inner, function)
            if not any(self._mentions(value, inner.call, known) for value in returned):
                return None
            return Collective(call, inner.name, call.args[0].value, None, helper=function)
        # What is changed in place has to be what the helper is given.
        received = inner.received
        if not isinstance(received, cst.Name):
            return None
        given = self.module.argument(call, received.value).node
        return None if given is None else Collective(call, inner.name, given, given, helper=function)

    def _computed_from(self, inner: Collective, function: cst.FunctionDef) -> set[str]:
        """Return the variables of a helper that hold the outcome of its collective,
        or what is computed from it.
        """
        known = {inner.received.value} if isinstance(inner.received, cst.Name) else set()
        for node in self.tree.descendants(function.body):
            match node:
                case cst.Assign(targets=targets, value=value):
                    bound = [target.target for target in targets]
                case cst.AugAssign(target=target, value=value) | cst.For(target=target, iter=value):
                    bound = [target]
                case _:
                    continue
            if self._mentions(value, inner.call, known):
                for target in bound:
                    known |= {
                        name.value for name in self.tree.descendants(target) if isinstance(name, cst.Name)
                    }
        return known

    def _mentions(self, node: cst.CSTNode, inner: cst.Call, known: set[str]) -> bool:
        return any(
            part is inner or (isinstance(part, cst.Name) and part.value in known)
            for part in self.tree.descendants(node)
        )

    def communicates(self, function: cst.FunctionDef) -> Collective | None:
        """Return the collective by which a short function exchanges what it is given; None if it does more.

        What goes over parameters or gradients, or runs a model, is no such helper.
        """
        with self._rests.asked():
            if function not in self._communicating:
                for members in components(function, self._helpers_of, self._communicating):
                    self._work_out(members)
            return self._communicating[function]

    def _helpers_of(self, function: cst.FunctionDef) -> Iterator[cst.FunctionDef]:
        """Yield the functions that one may exchange something by."""
        for call in self.tree.nodes_within(function.body, cst.Call):
            callee = self.module.callee(call) if last_name(call.func) in self._names else None
            if isinstance(callee, cst.FunctionDef):
                yield callee

    def _work_out(self, members: Sequence[cst.FunctionDef]) -> None:
        """Ask functions that call one another, in rounds, by what was found in the rounds before."""
        self._communicating.update(dict.fromkeys(members))
        waiting = members
        while waiting:
            asked = {function: self._communicates(function) for function in waiting}
            found = {function: inner for function, inner in asked.items() if inner is not None}
            self._communicating.update(found)
            waiting = [function for function in waiting if function not in found] if found else []

    def _communicates(self, function: cst.FunctionDef) -> Collective | None:
        statements = 0
        found: Collective | None = None
        for node in self.tree.descendants(function.body):
            statements += isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            if statements > _HELPER_STATEMENTS or _does_more(node):
                return None
            if not isinstance(node, cst.Call) or found is not None:
                continue
            inner = collective(self.module, node)
            if inner is None and last_name(node.func) in self._names and node.args and not node.args[0].star:
                callee = self.module.callee(node)
                inner = self._by_helper(node, callee) if isinstance(callee, cst.FunctionDef) else None
            if inner is not None and not inner.is_barrier:
                if isinstance(inner.sent, cst.Attribute):
                    # What it sends is not what it is given.
                    return None
                found = inner
        return found


def _is_well_known(module: Module, func: cst.BaseExpression) -> bool:
    dotted = module.qualified(func)
    if dotted is not None:
        return dotted.partition(".")[0] in _WELL_KNOWN
    # A method of something that the file does not show: ``self.reduce_loss(x)``.
    return not isinstance(func, cst.Name) and module.value(func).receiver is not None


_MORE = frozenset(
    {"parameters", "named_parameters", "grad", "backward", "step", "zero_grad", "buffers", "state_dict"}
)


def _does_more(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Attribute):
        return node.attr.value in _MORE
    return isinstance(node, (cst.Yield, cst.Await))


# --- process groups -----------------------------------------------------------------------------------

_STARTING: Final[Mapping[str, tuple[str, int, int | None]]] = {
    # The name and place of the back end, and the place of the number of ranks.
    "torch.distributed.init_process_group": ("backend", 0, 3),
    "torch.distributed.distributed_c10d.init_process_group": ("backend", 0, 3),
    "torch.distributed.new_group": ("backend", 2, None),
    "torch.distributed.distributed_c10d.new_group": ("backend", 2, None),
    "deepspeed.init_distributed": ("dist_backend", 0, None),
}


@dataclass(frozen=True, slots=True)
class Group:
    """A process group that the file makes, by the back end that it names for it.

    ``backend`` is None where the file does not tell it; ``named`` is the node that names it: the argument, or
    the default of an option. ``alone`` if it has one rank only.
    """

    call: cst.Call
    backend: str | None
    named: cst.BaseExpression | None
    is_default: bool
    alone: bool
    optional: bool

    def is_named_by(self, module: Module, group: cst.BaseExpression | None) -> bool:
        """Return whether a collective whose ``group`` is given like that goes over this group."""
        if self.is_default:
            return group is None or last_name(group) in ("WORLD", "None")
        if group is None:
            return False
        binding = module.names.assignment(group)
        return binding is not None and binding.value is self.call


def groups(module: Module) -> Iterator[Group]:
    """Yield the process groups of a file."""
    for call in module.tree.nodes(cst.Call):
        if last_name(call.func) in ("init_process_group", "new_group", "init_distributed"):
            found = group_made(module, call)
            if found is not None:
                yield found


def group_made(module: Module, call: cst.Call) -> Group | None:
    """Return the process group that a call makes."""
    starting = _STARTING.get(module.qualified(call.func) or "")
    if starting is None:
        return None
    name, place, ranks = starting
    given = given_as(call, name, place)
    if given is None:
        backend, named, optional = None, None, False
    else:
        backend, named, optional = _backend(module, given)
    size = given_as(call, "world_size", ranks) if ranks is not None else None
    alone = size is not None and module.value(size).constant == 1
    is_default = last_name(call.func) != "new_group"
    return Group(call, backend, named, is_default, alone, optional)


@solved((None, None, False))
def _backend(module: Module, node: cst.BaseExpression) -> tuple[str | None, cst.BaseExpression | None, bool]:
    """Return the name of a back end, the node that spells it, and whether an option may name another."""
    constant = module.value(node).constant
    if isinstance(constant, str):
        return constant.lower(), node, False
    match node:
        case cst.Attribute(value=cst.Attribute(attr=cst.Name("Backend")), attr=cst.Name(word)):
            return word.lower(), node, False
        case cst.Attribute(value=owner, attr=cst.Name(word)):
            if module.qualified(node) in (f"torch.distributed.Backend.{word}",):
                return word.lower(), node, False
            if ends(last_name(owner), Role.OPTIONS):
                default = option_default(module, word)
                text = module.value(default).constant if default is not None else MISSING
                if default is not None and isinstance(text, str):
                    return text.lower(), default, True
        case cst.Name():
            bindings = module.bindings(node)
            if len(bindings) == 1:
                return _of_binding(module, node)
    return None, None, False


def _of_binding(module: Module, name: cst.Name) -> tuple[str | None, cst.BaseExpression | None, bool]:
    """Return the back end that a name stands for: assigned once,
    or a parameter that all callers leave alone.
    """
    binding = module.bindings(name)[0]
    if binding.kind is BindingKind.ASSIGN and not binding.path and binding.value is not None:
        return _backend(module, binding.value)
    function = module.function(name)
    if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
        return None, None, False
    callers = module.callers(function)
    given = [module.argument(call, name.value) for call in callers]
    nodes = [argument.node for argument in given]
    if callers and all(argument.given for argument in given):
        found = [_backend(module, node) for node in nodes if node is not None]
        if len(found) == len(given) and len({backend for backend, _, _ in found}) == 1:
            return found[0]
        return None, None, False
    default = next(
        (
            p.default
            for p in (*function.params.params, *function.params.kwonly_params)
            if p.name.value == name.value
        ),
        None,
    )
    if default is not None and callers and all(argument.absent for argument in given):
        return _backend(module, default)
    return None, None, False


def goes_over_accelerator(module: Module, group: Group) -> cst.CSTNode | None:
    """Return a place where tensors of an accelerator go over a group; None if the file shows none."""
    calls: list[cst.Call] = []
    for call in module.tree.nodes(cst.Call):
        found = collective(module, call)
        if found is None or found.sent is None or found.of_objects:
            continue
        if group.is_named_by(module, found.group) and _on_accelerator(module, found.sent):
            calls.append(call)
    return min(calls, key=module.tree.standing, default=None)


def _on_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return value.kind is Kind.TENSOR and value.device is Device.ACCELERATOR
