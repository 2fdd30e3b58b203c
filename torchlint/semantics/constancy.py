"""Whether an expression would give at another place what it gives where it stands.

A rule that writes ``log_softmax(x)`` where ``log(p)`` stands reads ``x`` later than the program did. That is
right only if nothing in between gives the name another value, or writes to the object that it names, by
whatever name. What may change each variable is computed once for a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import libcst as cst

from torchlint.semantics.api.memory import READING_FUNCTIONS, READING_METHODS, WRITTEN_PARAMETERS
from torchlint.semantics.api.results import TENSOR_METHODS
from torchlint.semantics.flow.graph import COMPREHENSIONS
from torchlint.semantics.names import Binding, BindingKind, Scope, ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sharing import Fate, fate
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import start_of, word_of
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

Variable: TypeAlias = "tuple[Scope, str] | str"
"""A name in its scope, or an attribute by its name alone, whoever's it is."""


class Change(NamedTuple):
    """When a variable, or what it names, may change: behind ``after`` (see ``_moment``), and by what."""

    after: int
    node: cst.CSTNode


_ONCE = (cst.NamedExpr, cst.Await, cst.Yield)
_NO_OBJECTS = frozenset({BindingKind.IMPORT, BindingKind.FUNCTION, BindingKind.CLASS})
_SETUP = frozenset({"__init__", "__post_init__", "__new__"})
_READING_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        *(
            "abs",
            "bool",
            "dict",
            "divmod",
            "enumerate",
            "float",
            "format",
            "getattr",
            "hasattr",
            "hash",
            "id",
        ),
        *("int", "isinstance", "len", "list", "max", "min", "pow", "print", "range", "repr", "reversed"),
        *("round", "set", "str", "sum", "tuple", "type", "zip"),
    )
)
# Methods that keep what they are given, and do not change it.
_KEEPING_METHODS = frozenset({"append"})
# Layers that may answer with the very tensor that they were given, or run others that write to it.
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "DataParallel"})
_PASSING_LAYERS = frozenset({"Identity", "Flatten", "Unflatten"})
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "shuffle", "rrelu")


def same_later(
    module: Module, node: cst.CSTNode, at: cst.CSTNode, without: Sequence[cst.CSTNode] = ()
) -> bool:
    """Return whether ``node``, evaluated where ``at`` stands behind it, gives the same there.

    ``without`` are statements that the fix takes out: what they change is not changed any more. Both places
    stand in one function, ``at`` in the block of ``node`` or further in, but in no loop, ``try`` or ``with``
    that ``node`` is outside of.
    """
    tree = module.tree
    if tree.contains(at, node):
        return True
    if not _follows(module, node, at):
        return False
    if any(isinstance(part, _ONCE) for part in tree.descendants(node)):
        return False
    begin, end = 2 * tree.last(node), 2 * tree.order[at]
    around = [loop for loop in module.flow.loops(at) if isinstance(loop, COMPREHENSIONS)]
    if around:
        end = max(end, *(_moment(module, outer) for outer in around))
    interval = _Interval(module, begin, end, module.function(node), tuple(without))
    return all(interval.keeps(read, at) for read in _reads(module, node)) and interval.in_order(node)


def unwritten(module: Module, name: cst.Name) -> bool:
    """Return whether nothing has written to the object of a name since it was made."""
    bindings = module.bindings(name)
    if len(bindings) != 1 or not _follows(module, bindings[0].node, name):
        return False
    begin, end = _bound_after(module, bindings[0].node), 2 * module.tree.order[name]
    return _Interval(module, begin, end, module.function(name), ()).keeps(name, name)


def _follows(module: Module, node: cst.CSTNode, at: cst.CSTNode) -> bool:
    """Return whether ``at`` runs once at most for each time that ``node`` has run, and after it."""
    tree = module.tree
    if module.function(node) is not module.function(at) or tree.order[at] < tree.last(node):
        return False
    return module.flow.certainly_before(node, at) and _around(module, node) == _around(module, at)


def _around(module: Module, node: cst.CSTNode) -> tuple[list[cst.CSTNode], ...]:
    """Return the loops, ``try`` blocks and context managers that a node stands in."""
    flow = module.flow
    return [*flow.statement_loops(node)], [*flow.tries(node)], [*flow.contexts(node)]


def _moment(module: Module, node: cst.CSTNode) -> int:
    """Return when a node has been evaluated, where the node of number ``n`` begins at ``2 * n``."""
    return 2 * module.tree.last(node) + 1


def _reads(module: Module, node: cst.CSTNode) -> Iterator[cst.Name | cst.Attribute]:
    """Yield the variables that an expression reads, and the attributes."""
    for part in module.tree.descendants(node):
        if isinstance(part, cst.Attribute):
            if module.qualified(part) is None:
                yield part
        elif isinstance(part, cst.Name) and (part is node or module.names.is_read(part)):
            yield part


class _Interval(NamedTuple):
    """The time between two places of one function, without some statements."""

    module: Module
    begin: int
    end: int
    function: Function | None
    without: tuple[cst.CSTNode, ...]

    def keeps(self, read: cst.Name | cst.Attribute, at: cst.CSTNode) -> bool:
        """Return whether a variable, and what it names, stay what they are."""
        if isinstance(read, cst.Attribute):
            if self.module.tree.is_called(read) and read.attr.value not in self.module.names.attributes:
                return True  # what is read is the owner
            return not self._changes(read.attr.value) and not self._gives_away(read)
        names = self.module.names
        scope = names.lookup(read.value, read)
        if scope is None:
            return True
        if names.lookup(read.value, at) is not scope:
            return False
        return not self._changes((scope, read.value))

    def in_order(self, node: cst.CSTNode) -> bool:
        """Return whether the calls of an expression may be made later than those that stand in between."""
        tree = self.module.tree
        calls = [part for part in tree.descendants(node) if isinstance(part, cst.Call)]
        if not any(_acts(self.module, call) for call in calls):
            return True
        return not self._meets(_actions(self.module, self.function))

    def _changes(self, variable: Variable) -> bool:
        leader = _sharing(self.module).get(variable, variable)
        writes = (_writes(self.module, each) for each in self._perhaps_one(leader))
        if any(self._meets(changes) for changes in (_settings(self.module, variable), *writes)):
            return True
        functions = _functions_of_settings(self.module, variable) | _functions_of_writes(self.module, leader)
        elsewhere = any(self._is_elsewhere(function, variable) for function in functions)
        return elsewhere and self._meets(_opaque_calls(self.module, self.function))

    def _perhaps_one(self, leader: Variable) -> set[Variable]:
        """Return what stands for the objects that may be one with those of ``leader``.

        Callers may pass the same tensor for two parameters.
        """
        parameters = _parameters(self.module, self.function)
        group = _groups(self.module).get(leader, [leader])
        if parameters.isdisjoint(group):
            return {leader}
        return {leader, *(_sharing(self.module).get(each, each) for each in parameters)}

    def _meets(self, changes: Sequence[Change]) -> bool:
        """Return whether one of some changes, which are in the order of time, is made in between."""
        for index in range(bisect_right(changes, self.begin, key=_after), len(changes)):
            if changes[index].after >= self.end:
                return False
            if self._during(changes[index]):
                return True
        return False

    def _is_elsewhere(self, function: cst.CSTNode | None, variable: Variable) -> bool:
        """Return whether another function changes a variable, which may be called in between."""
        if function is self.function:
            return False
        if isinstance(variable, str):
            return not (isinstance(function, cst.FunctionDef) and function.name.value in _SETUP)
        # The function, or file, whose own variable it is does not run in between.
        return variable[0].kind is ScopeKind.CLASS or function is not _owner(variable[0])

    def _gives_away(self, read: cst.Attribute) -> bool:
        """Return whether the owner of an attribute is handed to code that the file does not show."""
        root = start_of(read, cst.Attribute)
        if not isinstance(root, cst.Name):
            return False
        calls = _opaque_calls(self.module, self.function)
        for call in calls[
            bisect_right(calls, self.begin, key=_after) : bisect_left(calls, self.end, key=_after)
        ]:
            if self._during(call) and isinstance(call.node, cst.Call):
                given = [arg.value for arg in call.node.args]
                owner = call.node.func.value if isinstance(call.node.func, cst.Attribute) else None
                if any(isinstance(g, cst.Name) and g.value == root.value for g in (*given, owner)):
                    if self.module.value(call.node.func).kind is not Kind.MODULE:
                        return True
        return False

    def _during(self, change: Change) -> bool:
        return (
            self.begin < change.after < self.end
            and self.module.function(change.node) is self.function
            and not any(self.module.tree.contains(gone, change.node) for gone in self.without)
        )


@remembered
def _parameters(module: Module, function: Function | None) -> frozenset[Variable]:
    """Return the parameters of a function, but for ``self``."""
    scope = module.names.scope_of(function) if function is not None else None
    if scope is None:
        return frozenset()
    return frozenset(
        (scope, name)
        for name, bindings in scope.bindings.items()
        if name not in ("self", "cls") and any(each.kind is BindingKind.PARAMETER for each in bindings)
    )


def _owner(scope: Scope) -> cst.CSTNode | None:
    return scope.node if scope.kind is ScopeKind.FUNCTION else None


# --- what may change a variable -----------------------------------------------------------------------


def _after(change: Change) -> int:
    return change.after


@remembered
def _settings(module: Module, variable: Variable) -> list[Change]:
    """Return all that gives a variable another value, in the order of time."""
    found = [Change(_bound_after(module, node), node) for node in _set_at(module, variable)]
    return sorted(found, key=_after)


@remembered
def _writes(module: Module, leader: Variable) -> list[Change]:
    """Return all that may write to what a variable names or shares, in the order of time."""
    found: list[Change] = []
    for other in _groups(module).get(leader, [leader]):
        for read in _reads_of(module, other):
            by = next(sinks(module, read, _written_by), None)
            if by is not None:
                found.append(Change(_moment(module, by), by))
    return sorted(found, key=_after)


@remembered
def _functions_of_settings(module: Module, variable: Variable) -> frozenset[cst.CSTNode | None]:
    return frozenset(module.function(change.node) for change in _settings(module, variable))


@remembered
def _functions_of_writes(module: Module, leader: Variable) -> frozenset[cst.CSTNode | None]:
    return frozenset(module.function(change.node) for change in _writes(module, leader))


def _set_at(module: Module, variable: Variable) -> Iterator[cst.CSTNode]:
    if isinstance(variable, str):
        for assigned in module.names.attributes.get(variable, ()):
            yield assigned.target
        return
    scope, name = variable
    for binding in scope.bindings.get(name, ()):
        if binding.kind not in (BindingKind.DECLARE, BindingKind.PARAMETER):
            yield binding.node


def _bound_after(module: Module, target: cst.CSTNode) -> int:
    """Return when an assignment target has its value: when the statement has computed the rest."""
    tree = module.tree
    parent = tree.parent(target)
    by = parent if isinstance(parent, cst.NamedExpr) else module.flow.statement(target)
    match by:
        case cst.Assign() | cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr():
            return _moment(module, by)
        case cst.For() if tree.contains(by.target, target):
            return 2 * tree.order[by.body]
        case _:
            return 2 * tree.order[target]


def _reads_of(module: Module, variable: Variable) -> Iterator[cst.BaseExpression]:
    if isinstance(variable, str):
        yield from module.tree.attributes_by_name.get(variable, ())
        return
    scope, name = variable
    bindings = scope.bindings.get(name, ())
    if all(binding.kind in _NO_OBJECTS for binding in bindings):
        return
    seen: set[cst.CSTNode] = set()
    for binding in bindings:
        for use in module.uses(binding):
            if use not in seen:
                seen.add(use)
                yield use
        node = binding.node
        if binding.kind is BindingKind.AUGMENT and isinstance(node, cst.Name):
            yield node


_WITHOUT_MEMORY = (Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.SHAPE, Kind.DTYPE, Kind.DEVICE)


def _written_by(module: Module, use: Use) -> Verdict[cst.CSTNode]:
    """Return what may write to an object, or to what shares its memory, right where it is used."""
    match use.kind:
        case UseKind.AUGMENTED:
            return use.by
        case UseKind.SET:
            return module.tree.statement(use.by)
        case UseKind.ATTRIBUTE | UseKind.ITEM | UseKind.CHOICE:
            return ONWARD
        case UseKind.METHOD:
            return _written_by_method(module, use)
        case UseKind.ELEMENT if isinstance(use.by, (cst.List, cst.Tuple, cst.Set, cst.Dict)):
            return Standing(use.by)
        case UseKind.ARGUMENT if _may_write(module, use.call, use.argument):
            return use.call
    return ()


def _written_by_method(module: Module, use: Use) -> Verdict[cst.CSTNode]:
    name = use.name
    if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
        return use.call
    if name in READING_METHODS:
        return ()
    if name in TENSOR_METHODS or name == "astype":
        return ONWARD  # ``x.view(-1)`` is of the memory of ``x``
    kind = module.value(use.node).kind
    return () if kind in _WITHOUT_MEMORY or kind is Kind.MODULE else use.call


def _may_write(module: Module, call: cst.Call, arg: cst.Arg) -> bool:
    """Return whether a call may write to what it is given."""
    func = call.func
    if module.value(arg.value).kind in _WITHOUT_MEMORY:
        return False
    name = module.qualified(func)
    if name is not None and not name.startswith("."):
        return _library_may_write(module, call, arg, name)
    if isinstance(func, cst.Attribute):
        method = func.attr.value
        if method in _KEEPING_METHODS or (method.endswith("_") and method[:-1] in TENSOR_METHODS):
            return False
        if method in TENSOR_METHODS and module.value(func.value).kind in (Kind.TENSOR, Kind.BATCH):
            return False
    if isinstance(module.callee(call), cst.FunctionDef):
        return fate(module, arg.value) is not Fate.READ
    return not _is_plain_layer(module, call)


def _library_may_write(module: Module, call: cst.Call, arg: cst.Arg, name: str) -> bool:
    if name in _READING_BUILTINS or name.startswith("math."):
        return False
    if arg.keyword is not None and arg.keyword.value in WRITTEN_PARAMETERS:
        return True
    if any(other.keyword is not None and other.keyword.value in ("out", "inplace") for other in call.args):
        return True
    if name in READING_FUNCTIONS:
        return name.endswith(".embedding") and not module.argument(call, "max_norm").absent
    function = name.removeprefix("torch.")
    if name.startswith("torch.nn.functional."):
        return name.endswith("_") or not module.argument(call, "inplace").absent
    return not (name.startswith("torch.") and "." not in function and function in TENSOR_METHODS)


def _is_plain_layer(module: Module, call: cst.Call) -> bool:
    """Return whether a call runs a layer of torch that leaves alone what it is given."""
    layer = module.value(call.func)
    if (
        layer.kind is not Kind.MODULE
        or layer.definition is not None
        or not isinstance(layer.origin, cst.Call)
    ):
        return False
    name = (layer.cls or "").removeprefix("torch.nn.")
    if not (layer.cls or "").startswith("torch.nn.") or "." in name or name in _CONTAINERS:
        return False
    return not any(
        arg.star or (arg.keyword and arg.keyword.value == "inplace") for arg in layer.origin.args
    ) and (module.argument(layer.origin, "inplace").absent)


# --- variables of the same memory ----------------------------------------------------------------------


@remembered
def _groups(module: Module) -> dict[Variable, list[Variable]]:
    """Return the variables that may share memory, by the one that stands for all of them."""
    groups: dict[Variable, list[Variable]] = {}
    for variable, leader in _sharing(module).items():
        groups.setdefault(leader, []).append(variable)
    return groups


@remembered
def _sharing(module: Module) -> dict[Variable, Variable]:
    """Return for each variable the one that stands for all that may share memory with it."""
    leaders: dict[Variable, Variable] = {}

    def leader(variable: Variable) -> Variable:
        while (above := leaders.get(variable, variable)) != variable:
            leaders[variable] = leaders.get(above, above)
            variable = above
        return variable

    for variable, value in _assignments(module):
        for root in _roots(module, value):
            one, other = leader(variable), leader(root)
            leaders.setdefault(variable, one)
            leaders.setdefault(root, other)
            if one != other:
                leaders[one] = other
    return {variable: leader(variable) for variable in list(leaders)}


def _assignments(module: Module) -> Iterator[tuple[Variable, cst.BaseExpression]]:
    """Yield all variables and attributes with what they are made of."""
    bindings: list[Binding] = list(module.names.by_node.values())
    for binding in bindings:
        if binding.value is not None and binding.kind is not BindingKind.AUGMENT:
            yield (binding.scope, binding.name), binding.value
    for name, assigned in module.names.attributes.items():
        for each in assigned:
            if each.value is not None and each.kind is not BindingKind.AUGMENT:
                yield name, each.value


def _roots(module: Module, node: cst.BaseExpression) -> Iterator[Variable]:
    """Yield the variables whose memory the value of an expression may have."""
    waiting: list[cst.BaseExpression] = [node]
    while waiting:
        node = waiting.pop()
        match node:
            case cst.Name():
                scope = module.names.lookup(node.value, node)
                if scope is not None:
                    if any(b.kind not in _NO_OBJECTS for b in scope.bindings[node.value]):
                        yield scope, node.value
            case cst.Attribute():
                if module.qualified(node) is None:
                    yield node.attr.value
                    if node.attr.value in ("T", "mT", "H", "mH", "data", "grad", "real", "imag", "values"):
                        waiting.append(node.value)
            case cst.Subscript():
                waiting.append(node.value)
            case cst.NamedExpr():
                waiting.append(node.value)
            case cst.IfExp():
                waiting += [node.body, node.orelse]
            case cst.BooleanOperation():
                waiting += [node.left, node.right]
            case cst.Tuple() | cst.List() | cst.Set():
                waiting += [element.value for element in node.elements]
            case cst.Dict():
                waiting += [element.value for element in node.elements]
            case cst.Call():
                waiting += _handed_on(module, node)


def _handed_on(module: Module, call: cst.Call) -> list[cst.BaseExpression]:
    """Return what a call may answer with, of what it is given."""
    name = module.qualified(call.func)
    given = [arg.value for arg in call.args]
    if name is not None and not name.startswith("."):
        return [] if name in READING_FUNCTIONS or name.startswith("math.") else given
    if isinstance(call.func, cst.Attribute):
        owner, method = call.func.value, call.func.attr.value
        if method in READING_METHODS and module.value(owner).kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
            return []
        if method in TENSOR_METHODS:
            return [owner]
        if _is_plain_layer(module, call):
            passing = (module.value(call.func).cls or "").rpartition(".")[2]
            return given if passing in _PASSING_LAYERS or passing.startswith("Dropout") else []
        return [owner, *given] if not isinstance(owner, cst.Name) or owner.value != "self" else given
    return given


# --- calls in between ---------------------------------------------------------------------------------


@remembered
def _opaque_calls(module: Module, function: Function | None) -> list[Change]:
    """Return the calls of a function that may run other functions of the file, or what it does not show."""
    return _changes_by(module, (call for call in module.calls_in(function) if _is_opaque(module, call)))


def _changes_by(module: Module, calls: Iterable[cst.Call]) -> list[Change]:
    """Return what some calls may change, in the order of time."""
    return sorted((Change(_moment(module, call), call) for call in calls), key=_after)


def _is_opaque(module: Module, call: cst.Call) -> bool:
    name = module.qualified(call.func)
    if name is not None and not name.startswith("."):
        return not name.startswith(("torch.", "builtins.", "math.", "numpy."))
    if isinstance(call.func, cst.Attribute):
        method = call.func.attr.value
        if method.rstrip("_") in TENSOR_METHODS and module.value(call.func.value).kind in (
            Kind.TENSOR,
            Kind.BATCH,
        ):
            return False
    return not _is_plain_layer(module, call)


@remembered
def _actions(module: Module, function: Function | None) -> list[Change]:
    """Return the calls of a function that do more than compute: draw numbers, say, or are unseen."""
    return _changes_by(module, (call for call in module.calls_in(function) if _acts(module, call)))


def _acts(module: Module, call: cst.Call) -> bool:
    func = call.func
    spelt = word_of(func).lower()
    if any(word in spelt for word in _RANDOM) and spelt not in ("normalize", "layer_norm"):
        return True
    name = module.qualified(func)
    if name is not None and not name.startswith("."):
        return not (name in READING_FUNCTIONS or name.startswith(("torch.", "builtins.", "math.", "numpy.")))
    if isinstance(func, cst.Attribute) and spelt in TENSOR_METHODS:
        if module.value(func.value).kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN, Kind.SHAPE):
            return isinstance(func.value, cst.Name) and func.value.value in ("self", "cls")
    layer = module.value(func)
    plain = (layer.cls or "").rpartition(".")[2]
    return not (_is_plain_layer(module, call) and "Dropout" not in plain and "Norm" not in plain)
