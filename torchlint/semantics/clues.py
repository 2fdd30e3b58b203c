"""What a variable must be, going by what is asked of it nearby and by what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import libcst as cst

from torchlint.semantics.api import results
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evaluator import Evaluator
from torchlint.semantics.lexicon import (
    Role,
    ends,
    names_criterion,
    names_device,
    names_loader,
    names_loss,
    names_model,
    names_optimizer,
)
from torchlint.semantics.names import Binding, BindingKind, Scope, dotted_text
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import MODULE, TENSOR, UNKNOWN, Device, Graph, Kind, Value
from torchlint.syntax import SyntaxTree

_FUNCTIONS = (cst.FunctionDef, cst.Lambda)
_LEAVING = frozenset({"to", "type", *results.METHOD_DEVICES})
PLACE_OR_MOVE = frozenset({"cpu", "cuda", "device", "is_cpu", "is_cuda", "to"})
_PICTURES = frozenset({"PIL.Image.Image", "numpy.ndarray"})
_WHOLE = frozenset({"int8", "int16", "int32", "int64", "long", "uint8"})
_ITEMS = frozenset({"items", "keys", "values"})
_OF_SPARSE = frozenset({"coalesce", "indices"})
_MAPPING_METHODS = frozenset({"items", "keys", "values", "get", "update"})
_LIKE_ANOTHER = frozenset({"expand_as", "reshape_as", "type_as", "view_as"})
# The modules whose functions take a tensor first.
_OF_TENSORS = frozenset({"torch.fft", "torch.linalg", "torch.nn.functional", "torch.special"})
_ELEMENTWISE = (
    cst.Equal,
    cst.NotEqual,
    cst.LessThan,
    cst.LessThanEqual,
    cst.GreaterThan,
    cst.GreaterThanEqual,
)
_OPTIMIZER_METHODS = frozenset({"step", "zero_grad"})
_OF_MODULES = frozenset({"load_state_dict", "named_parameters", "parameters", "state_dict"})


@dataclass(slots=True)
class _Used:
    """Where which attributes of a variable are used, the attributes alone, and what they show it to be."""

    places: list[tuple[cst.Attribute, str]] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    shows: Value | None = None


_UNUSED = _Used(shows=UNKNOWN)


@dataclass(slots=True)
class _Takers:
    """Whether torch takes a variable for a tensor, whether it has dimensions, and what else is given it."""

    tensor: bool = False
    array: bool = False
    others: list[cst.BaseExpression] = field(default_factory=list)


class Clues:
    """The clues of one file to what its definitions leave open."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.tree = evaluator.tree
        self.names = evaluator.names
        self.link = evaluator.names.link
        self._value = evaluator.value
        self.fixpoint = evaluator.fixpoint

    @staticmethod
    def counterpart(module: Any) -> Clues:
        """Return the clues of a module."""
        found: Clues = module.inference.clues
        return found

    def used_attributes(self, node: cst.CSTNode) -> set[str]:
        """Return the attributes that a variable is asked for, in its function or, for ``self.x``, class."""
        return self._used(node).attributes

    def is_read_as_array(self, node: cst.Name, bindings: Sequence[Binding]) -> bool:
        """Return whether ``numpy()`` is asked of a variable, which fails for a tensor on a device.

        A variable that is asked where it is, or moved, may be somewhere else elsewhere.
        """
        if not all(binding in self._read_as_arrays for binding in bindings):
            return False
        return self.used_attributes(node).isdisjoint(PLACE_OR_MOVE)

    @cached_property
    def _read_as_arrays(self) -> frozenset[Binding]:
        """The definitions of the variables that are asked for ``numpy()``, without an argument."""
        return frozenset(
            binding
            for read in self._asked_for_arrays
            if isinstance(read, cst.Name)
            for binding in self.names.bindings(read)
        )

    def is_attribute_read_as_array(self, node: cst.Attribute) -> bool:
        """Return whether ``out.tensor`` is read as an array elsewhere in the function."""
        spelt = dotted_text(node)
        reads = self._attributes_read_as_arrays.get(spelt) if spelt is not None else None
        if reads is None or not self.used_attributes(node).isdisjoint(PLACE_OR_MOVE):
            return False
        here = self._root_in_function(node)
        return any(self._root_in_function(read) == here for read in reads)

    @cached_property
    def _attributes_read_as_arrays(self) -> dict[str, list[cst.Attribute]]:
        """The attributes that are asked for ``numpy()``, by spelling."""
        found: dict[str, list[cst.Attribute]] = {}
        for read in self._asked_for_arrays:
            if isinstance(read, cst.Attribute) and (spelt := dotted_text(read)) is not None:
                found.setdefault(spelt, []).append(read)
        return found

    def _root_in_function(self, node: cst.Attribute) -> tuple[cst.CSTNode | None, tuple[Binding, ...]]:
        """Return the function around an attribute, and the definitions of the variable that it belongs to."""
        root = start_of(node, cst.Attribute)
        bindings = self.names.bindings(root)
        return self.tree.enclosing(node, cst.FunctionDef, cst.Lambda), bindings

    @cached_property
    def _asked_for_arrays(self) -> list[cst.BaseExpression]:
        """What ``numpy()`` is asked of, without an argument, and what that is computed from.

        ``(a.tensor - b.tensor).detach().numpy()`` is computed where the operands are.
        """
        found: list[cst.BaseExpression] = []
        waiting: list[cst.BaseExpression] = [
            call.func.value
            for call in self.tree.calls_by_name.get("numpy", ())
            if isinstance(call.func, cst.Attribute) and not call.args
        ]
        for read in waiting:
            match read:
                case cst.Name() | cst.Attribute():
                    found.append(read)
                case cst.BinaryOperation():
                    waiting += (read.left, read.right)
                case cst.UnaryOperation():
                    waiting.append(read.expression)
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if (
                    method in results.TENSOR_METHODS and method not in _LEAVING and method[:4] != "new_"
                ):
                    waiting.append(owner)
        return found

    @cached_property
    def _attributes_of(self) -> dict[str, list[tuple[cst.Attribute, str]]]:
        """By dotted spelling of an owner (``x``, ``self.x``): where which of its attributes is used."""
        found: dict[str, list[tuple[cst.Attribute, str]]] = {}
        for attribute in self.tree.nodes(cst.Attribute):
            spelt = dotted_text(attribute.value)
            if spelt is not None:
                found.setdefault(spelt, []).append((attribute, attribute.attr.value))
        return found

    @cached_property
    def trained_results(self) -> frozenset[tuple[str, str, tuple[int | None, ...]]]:
        """The variables that are backpropagated: name, function whose result it is, place in the result."""
        found = set()
        for attribute in self.tree.nodes(cst.Attribute):
            if attribute.attr.value != "backward" or not isinstance(attribute.value, cst.Name):
                continue
            for binding in self.names.bindings(attribute.value):
                maker = dotted_text(binding.value.func) if isinstance(binding.value, cst.Call) else None
                if maker is not None:
                    found.add((binding.name, maker, binding.path))
        return frozenset(found)

    def has_items(self, name: cst.Name) -> bool:
        """Return whether a variable is asked for its items, keys or values; only sparse tensors have any."""
        if name.value not in self._mappings:
            return False
        asked = self.used_attributes(name)
        return not asked.isdisjoint(_ITEMS) and asked.isdisjoint(_OF_SPARSE)

    @cached_property
    def _mappings(self) -> frozenset[str]:
        """The names that are asked for items, keys or values somewhere in the file."""
        found = self._attributes_of.items()
        return frozenset(spelt for spelt, uses in found if any(attr in _ITEMS for _, attr in uses))

    def _used(self, node: cst.CSTNode) -> _Used:
        """Return what is asked of a variable nearby."""
        spelt = dotted_text(node)
        if spelt is None or spelt not in self._attributes_of:
            return _UNUSED
        home = self._home(spelt, node, isinstance(node, cst.Name))
        if isinstance(node, cst.Name) and isinstance(home, Scope) and self._remade(home, spelt):
            return self._used_before(spelt, home, self.names.bindings(node))
        return self._used_by_home(spelt).get(home) or _UNUSED

    @remembered
    def _used_by_home(self, spelt: str) -> dict[Scope | cst.ClassDef | None, _Used]:
        """Return what is asked of the variables that are spelt so, by where they are bound."""
        found: dict[Scope | cst.ClassDef | None, _Used] = {}
        for use in self._attributes_of[spelt]:
            used = found.setdefault(self._home(spelt, use[0], "." not in spelt), _Used())
            used.places.append(use)
            used.attributes.add(use[1])
        return found

    @remembered
    def _remade(self, home: Scope, name: str) -> frozenset[Binding]:
        """Return the assignments of a function of torch's result to a variable, if there are others."""
        bindings = home.bindings.get(name, [])
        made = frozenset(filter(self._is_made_by_torch, bindings))
        return made if len(made) < len(bindings) else frozenset()

    def _is_made_by_torch(self, binding: Binding) -> bool:
        made = binding.value if binding.kind is BindingKind.ASSIGN and not binding.path else None
        return isinstance(made, cst.Call) and (self.names.qualified(made.func) or "").startswith("torch.")

    @remembered
    def _used_before(self, spelt: str, home: Scope, bindings: tuple[Binding, ...]) -> _Used:
        """Return what is asked of a variable that has the value of some definitions.

        What a function of torch has made of it since (``x = torch.full_like(y, x)``) tells nothing of it.
        """
        remade, found = self._remade(home, spelt).difference(bindings), _Used()
        for use in (self._used_by_home(spelt).get(home) or _UNUSED).places:
            owner = use[0].value if isinstance(use[0], cst.Attribute) else None
            seen = self.names.bindings(owner)
            if not seen or not remade.issuperset(seen):
                found.places.append(use)
                found.attributes.add(use[1])
        return found

    def _home(self, spelt: str, at: cst.CSTNode, simple: bool) -> Scope | cst.ClassDef | None:
        """Return where a variable is bound as seen from a place, or for ``self.x`` the class around it."""
        return self.names.lookup(spelt, at) if simple else self.tree.enclosing(at, cst.ClassDef)

    def taken_as_tensor(self, binding: Binding) -> bool:
        """Return whether a batch is used as no structure can be.

        A function that takes tensors only, or a loss of torch, gets it as it is, or what it is compared with;
        or several of its dimensions are indexed at once.
        """
        takers = self._takers(binding)
        if takers.tensor or takers.array:
            return True
        return any(self._value(func).cls in results.NN_LOSSES for func in takers.others)

    def given_to_torch(self, binding: Binding) -> bool:
        """Return whether a function of torch that takes tensors only gets a variable as it is."""
        return self._takers(binding).tensor

    def has_dimensions(self, binding: Binding) -> bool:
        """Return whether a parameter is used as an array or a tensor alone can be: ``x[:, 0]``."""
        return self._takers(binding).array

    @remembered
    def _takers(self, binding: Binding) -> _Takers:
        """Return what shows a variable to be a tensor, and what else gets it as its first argument."""
        found = _Takers()
        for use in self.names.uses(binding):
            # What a loop goes over may as well be pictures, which are arrays.
            promised = binding.kind is BindingKind.PARAMETER and not self.may_be_picture(use)
            compared = self._comparison_of(use) if promised else None
            if promised and (self._is_cut(use) or (compared and self._is_asked_as_tensor(compared))):
                found.array = True
            given = use if compared is None else compared
            call = self.tree.call_given(given)
            if call is None or call.args[0].value is not given or call.args[0].star:
                continue
            qualified = self.names.qualified(call.func)
            if qualified is not None:
                package, _, name = qualified.rpartition(".")
                method = package == "torch" and name in results.TENSOR_METHODS
                if method or package in _OF_TENSORS or qualified in results.LIKE_FACTORIES:
                    found.tensor = True
            elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _LIKE_ANOTHER:
                found.tensor = True
            elif compared is None and isinstance(call.func, (cst.Name, cst.Attribute)):
                found.others.append(call.func)
        return found

    def is_negated(self, index: cst.BaseExpression) -> bool:
        """Return whether an index of which nothing is known is a mask, as ``~`` is applied to it.

        ``~`` of an integer index counts from the end, but is not written for that.
        """
        named = index
        if isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.BitInvert):
            named = index.expression
        if not isinstance(named, cst.Name) or self._value(named).kind is not Kind.UNKNOWN:
            return False
        return named is not index or not self._negated.isdisjoint(self.names.bindings(named))

    @cached_property
    def _negated(self) -> frozenset[Binding]:
        """The definitions of the variables that ``~`` is applied to."""
        return frozenset(
            binding
            for node in self.tree.nodes(cst.UnaryOperation)
            if isinstance(node.operator, cst.BitInvert) and isinstance(node.expression, cst.Name)
            for binding in self.names.bindings(node.expression)
        )

    @remembered
    def packed_by(self, binding: Binding) -> bool:
        """Return whether a variable is the lengths, on the host, of ``pack_padded_sequence``."""
        if not self.tree.mentions("pack_padded_sequence"):
            return False
        for use in self.names.uses(binding):
            call = self.tree.call_given(use)
            if call is not None and any(argument.value is use for argument in call.args[1:2]):
                if self.names.qualified(call.func) == "torch.nn.utils.rnn.pack_padded_sequence":
                    return True
        return False

    def _is_cut(self, use: cst.Name) -> bool:
        """Return whether several dimensions are indexed at once: ``x[:, i]``, ``x[..., 0]``, ``x[0, :4]``."""
        match self.tree.parent(use):
            case cst.Subscript(value=owner, slice=[_, _, *_] as parts) if owner is use:
                return any(_spans(part.slice) for part in parts)
        return False

    def _comparison_of(self, use: cst.Name) -> cst.Comparison | None:
        """Return the comparison of a variable with one other thing that gives an answer for each element."""
        parent = self.tree.parent(use)
        comparison = self.tree.parent(parent) if isinstance(parent, cst.ComparisonTarget) else parent
        match comparison:
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]) if isinstance(
                operator, _ELEMENTWISE
            ):
                return comparison
        return None

    def _is_asked_as_tensor(self, comparison: cst.Comparison) -> bool:
        """Return whether the answer is asked for what that of numbers does not have: ``(x == 0).any()``."""
        attribute = self.tree.parent(comparison)
        return (
            isinstance(attribute, cst.Attribute)
            and attribute.attr.value in results.TENSOR_METHODS
            and self.tree.is_called(attribute)
        )

    def by_use(self, node: cst.CSTNode) -> Value:
        """Return what a variable must be, given what is asked of it nearby."""
        if self._is_cut_and_copied(node):
            return TENSOR
        used = self._used(node)
        if used.shows is None:
            used.shows = self._shown_by(used)
        return used.shows

    def _shown_by(self, uses: _Used) -> Value:
        used = uses.attributes
        if not used:
            return UNKNOWN
        if "backward" in used and not used & {"step", "zero_grad", "parameters", "eval", "state_dict"}:
            return TENSOR.attached(Graph.ATTACHED)
        if used & results.TENSOR_ONLY_METHODS or used & results.TENSOR_ONLY_ATTRIBUTES:
            return TENSOR
        if any(asked_by_dimension(self.tree.parent(where), self.tree) for where, _ in uses.places):
            return TENSOR
        if "zero_grad" in used and any(attr == "step" or attr.startswith("step_and") for attr in used):
            # ``step_and_update_lr`` is what optimizers with a schedule of their own have.
            return Value(Kind.OPTIMIZER)
        if "param_groups" in used:
            return Value(Kind.OPTIMIZER)
        if used & {"named_parameters", "parameters", "named_modules"} or {"eval", "train"} <= used:
            return MODULE
        if "unscale_" in used or {"scale", "update"} <= used:
            return Value(Kind.SCALER)
        if self._placed_in_place(uses):
            return MODULE
        return UNKNOWN

    def _is_cut_and_copied(self, node: cst.CSTNode) -> bool:
        """Return whether it is ``x[:, 4].cpu()``: arrays have such slices, but are on the host."""
        spelt = dotted_text(node) if self._copied_slices else None
        if spelt is None or spelt not in self._copied_slices:
            return False
        return not isinstance(node, cst.Name) or self.names.lookup(spelt, node) in self._copied_slices[spelt]

    @cached_property
    def _copied_slices(self) -> dict[str, set[Scope | None]]:
        """By variable: where one is bound that slices along several dimensions are copied from."""
        found: dict[str, set[Scope | None]] = {}
        for attribute in self.tree.nodes(cst.Attribute):
            match attribute:
                case cst.Attribute(
                    value=cst.Subscript(value=owner, slice=[_, _, *_] as slices),
                    attr=cst.Name("cpu" | "cuda" | "detach"),
                ) if any(isinstance(part.slice, cst.Slice) for part in slices):
                    spelt = dotted_text(owner)
                    if spelt is not None:
                        found.setdefault(spelt, set()).add(self.names.lookup(spelt, attribute))
        return found

    def _placed_in_place(self, uses: _Used) -> bool:
        """Return whether the file writes ``x.to(device)``,
        ``x.cuda()`` or ``x.eval()`` as a statement of its own.

        Only a module has a use for that; a tensor's ``to`` gives a new tensor. ``trainer.train()`` trains.
        """
        for where, attr in uses.places:
            call = self.tree.parent(where)
            if isinstance(call, cst.Call) and isinstance(self.tree.parent(call), cst.Expr):
                if attr == "train" and ends(last_name(where.value), Role.TRAINER):
                    continue
                if attr in ("to", "cuda") or (attr in ("eval", "train") and not call.args):
                    return True
        return False

    def by_name(self, name: str, node: cst.CSTNode, shown: Value = UNKNOWN) -> Value:
        """Return what a variable of this name conventionally is, of all that it may be as far as is shown."""
        for value in _by_convention(name):
            if not shown.may_be(value.kind):
                continue
            if value.kind is Kind.TENSOR and self.used_attributes(node) & _MAPPING_METHODS:
                continue
            if value.kind is Kind.OPTIMIZER and not self.used_attributes(node) & _OPTIMIZER_METHODS:
                continue
            if value.kind is Kind.MODULE and name in self._factories:
                continue
            return value
        return UNKNOWN

    @cached_property
    def _factories(self) -> frozenset[str]:
        """The variables that make modules when they are called, and so are none themselves.

        What they give is used as one: ``net = network(3).cuda()``, and ``net.parameters()``.
        """
        found: set[str] = set()
        for assign in self.tree.nodes(cst.Assign):
            made = assign.value
            while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
                made = made.func.value
            match made, assign.targets:
                case cst.Call(func=cst.Name(name)), [cst.AssignTarget(target=cst.Name() as net)]:
                    if name != net.value and self.used_attributes(net) & _OF_MODULES:
                        found.add(name)
        return frozenset(found)

    def may_be_picture(self, node: cst.CSTNode) -> bool:
        """Return whether the function asks if this variable is a picture or an array:
        then it is given from outside.

        What is handed in as either lies in host memory, until the function moves it.
        """
        spelt = dotted_text(node) if self._picture_tests else None
        tests = self._picture_tests.get(spelt) if spelt is not None else None
        return tests is not None and self.tree.enclosing(node, *_FUNCTIONS) in tests

    @cached_property
    def _picture_tests(self) -> dict[str, set[cst.CSTNode | None]]:
        """By variable: the functions that ask ``isinstance(x, PIL.Image.Image)`` or for an array."""
        found: dict[str, set[cst.CSTNode | None]] = {}
        for call in self.tree.nodes(cst.Call):
            match call:
                case cst.Call(func=cst.Name("isinstance"), args=[cst.Arg(value=asked), cst.Arg(value=types)]):
                    parts = [e.value for e in types.elements] if isinstance(types, cst.Tuple) else [types]
                    spelt = dotted_text(asked)
                    if spelt is not None and any(self.names.qualified(part) in _PICTURES for part in parts):
                        found.setdefault(spelt, set()).add(self.tree.enclosing(call, *_FUNCTIONS))
        return found


def _spans(part: cst.BaseSlice) -> bool:
    """Return whether a part of an index is one of slices, of which a key of a dictionary has none."""
    return isinstance(part, cst.Slice) or (
        isinstance(part, cst.Index) and isinstance(part.value, cst.Ellipsis)
    )


@lru_cache(maxsize=1 << 12)
def _by_convention(name: str) -> tuple[Value, ...]:
    """Return what a variable of this name can be, the likeliest first."""
    meanings = (
        (names_device(name), Value(Kind.DEVICE, device=Device.ACCELERATOR)),
        (names_loader(name), Value(Kind.LOADER)),
        (names_criterion(name), MODULE),
        (names_loss(name), TENSOR),
        (names_optimizer(name), Value(Kind.OPTIMIZER)),
        (names_model(name), MODULE),
    )
    return tuple(value for match, value in meanings if match)


def asked_by_dimension(call: cst.CSTNode | None, tree: SyntaxTree) -> bool:
    """Return whether a call is spelt as only methods of tensors are: ``x.argmax(dim=1, keepdim=True)``."""
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    if call.func.attr.value not in results.TENSOR_METHODS or tree.mentions("xarray"):
        return False
    if call.func.attr.value == "to" and any(last_name(arg.value) in _WHOLE for arg in call.args):
        return True  # modules are of floating-point numbers
    return any(
        arg.keyword is not None and arg.keyword.value in results.TENSOR_ONLY_KEYWORDS for arg in call.args
    )
