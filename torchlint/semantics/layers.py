"""Which constructor calls can have made a layer, what holds it, and in which order containers are filled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import SEQUENTIAL, SelfAttributes, part_of, pattern_of
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sequences import Filling, Step, argument_steps, literal_steps, trace
from torchlint.semantics.values import Kind
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

MODULE_LIST = "torch.nn.ModuleList"
# Functions that hand back the layer given to them, changed in place.
WRAPPERS = frozenset(
    {
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "torch.nn.utils.skip_init",
    }
)
# Methods of a module that return the module itself.
RETURNS_SELF = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "apply", "requires_grad_"}
)
# Attributes of a layer whose reading has nothing to do with what it computes.
PLAIN_ATTRIBUTES = frozenset(
    {
        "weight",
        "in_channels",
        "out_channels",
        "in_features",
        "out_features",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "training",
        "register_forward_pre_hook",
        "extra_repr",
        "__class__",
    }
)
LISTS = frozenset({"builtins.list", "builtins.tuple", "collections.OrderedDict", "builtins.dict"})
FILLING_METHODS = frozenset({"append", "extend", "insert", "add_module", "register_module"})


class Layers:
    """The layers of one file and the lists and containers that they are put into."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree, self.names = module, module.tree, module.names
        self.attributes = SelfAttributes.of(module)
        self._fillings: dict[tuple[cst.CSTNode, str], Filling] = {}

    # ------------------------------------------------------------------ what an expression holds

    @remembered
    def makers(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.Call] | None:
        """The constructor calls that can have made the layer ``node``; None if some are out of sight."""
        if depth > 12:
            return None
        match node:
            case cst.Call():
                return self._layers_of_call(node, depth)
            case cst.IfExp():
                return self._all_layers([node.body, node.orelse], depth)
            case cst.Name():
                bindings = self.names.bindings(node)
                if not bindings:
                    return None
                found: list[cst.Call] = []
                for binding in bindings:
                    layers = self._layers_of_binding(binding, depth)
                    if layers is None:
                        return None
                    found += layers
                return list(dict.fromkeys(found))
            case cst.Attribute() if self.attributes.self_class(node) is not None:
                values = self.attributes.attribute_values(node, node.attr.value)
                return self._all_layers(values, depth) if values else None
            case cst.Subscript():
                if any(isinstance(element.slice, cst.Slice) for element in node.slice):
                    return None
                members = self._members(node.value)
                return self._all_layers(members, depth) if members else None
            case _:
                return None

    def _all_layers(self, nodes: Iterable[cst.BaseExpression], depth: int) -> list[cst.Call] | None:
        found: list[cst.Call] = []
        for node in nodes:
            layers = self.makers(node, depth + 1)
            if layers is None:
                return None
            found += layers
        return list(dict.fromkeys(found))

    def _layers_of_call(self, call: cst.Call, depth: int) -> list[cst.Call] | None:
        name = self.called(call)
        if name in WRAPPERS and call.args:
            return self.makers(call.args[0].value, depth + 1)
        if name == "builtins.getattr" and len(call.args) == 2 and self.attributes.is_self(call.args[0].value):
            wanted = pattern_of(call.args[1].value)
            values = self.attributes.attribute_values(call, wanted) if wanted.strip("*") else []
            return self._all_layers(values, depth) if values else None
        if name is not None:
            return [call]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in RETURNS_SELF:
            return self.makers(call.func.value, depth + 1)
        returned = self.returned(call)
        return self._all_layers(returned, depth) if returned else None

    def _layers_of_binding(self, binding: Binding, depth: int) -> list[cst.Call] | None:
        if binding.value is None:
            return None
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
            container = self._iterated(binding.value, binding.path)
            members = self._members(container) if container is not None else None
            return self._all_layers(members, depth) if members else None
        if binding.kind in (BindingKind.ASSIGN, BindingKind.WALRUS):
            value = part_of(binding.value, binding.path)
            return self.makers(value, depth + 1) if value is not None else None
        return None

    @remembered
    def _members(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression] | None:
        """The elements of a container or list, in no order; None if some are out of sight."""
        if depth > 8:
            return None
        steps = literal_steps(node)
        if steps is not None:
            return self._flat(steps, depth)
        match node:
            case cst.ListComp() | cst.GeneratorExp():
                return [node.elt]
            case cst.BinaryOperation(operator=cst.Add()):
                return self._flat([Step(node.left, True), Step(node.right, True)], depth)
            case cst.BinaryOperation(operator=cst.Multiply()) if literal_steps(node.left) is not None:
                return self._members(node.left, depth + 1)
            case cst.Subscript():
                sliced = any(isinstance(element.slice, cst.Slice) for element in node.slice)
                return self._members(node.value, depth + 1) if sliced else None
            case cst.Call():
                name = self.called(node)
                if name in (MODULE_LIST, SEQUENTIAL) or name in LISTS:
                    if len(node.args) == 1 and not node.args[0].star and name != SEQUENTIAL:
                        return self._members(node.args[0].value, depth + 1)
                    return self._flat(argument_steps(node.args), depth)
                returned = self.returned(node)
                return self._flat([Step(v, True) for v in returned], depth) if returned else None
            case cst.Name() | cst.Attribute():
                made = self.made(node)
                if made is None:
                    return None
                found = self._flat([Step(value, True) for value in made], depth)
                added = self._added(node)
                if found is None or added is None:
                    return None
                more = self._flat(added, depth)
                return None if more is None else list(dict.fromkeys(found + more))
            case _:
                return None

    def _flat(self, steps: Iterable[Step], depth: int) -> list[cst.BaseExpression] | None:
        found: list[cst.BaseExpression] = []
        for step in steps:
            if not step.many:
                found.append(step.node)
                continue
            members = self._members(step.node, depth + 1)
            if members is None:
                return None
            found += members
        return list(dict.fromkeys(found))

    def made(self, node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
        """The expressions assigned to a name or attribute; None if another kind of binding counts."""
        if isinstance(node, cst.Attribute):
            if self.attributes.self_class(node) is None:
                return None
            return self.attributes.attribute_values(node, node.attr.value) or None
        if not isinstance(node, cst.Name):
            return None
        own = self.names.by_node.get(node)
        found: list[cst.BaseExpression] = []
        for binding in (own,) if own is not None else self.names.bindings(node):
            if binding.kind is BindingKind.AUGMENT:
                found += [b.value for b in self._plain_bindings(binding) if b.value is not None]
                continue
            if binding.kind is not BindingKind.ASSIGN or binding.path or binding.value is None:
                return None
            if not (isinstance(binding.value, cst.BinaryOperation) and same(binding.value.left, node)):
                found.append(binding.value)
        return list(dict.fromkeys(found)) or None

    @staticmethod
    def _plain_bindings(binding: Binding) -> list[Binding]:
        return [
            b
            for b in binding.scope.bindings[binding.name]
            if b.kind is BindingKind.ASSIGN and not b.path and b.value is not None
        ]

    def _added(self, owner: cst.BaseExpression) -> list[Step] | None:
        """What code puts into a list or container after it was made; None if some of it is out of sight."""
        if isinstance(owner, cst.Name):
            filling = self.filling(owner)
            if filling is None:
                return None
            made = self.made(owner) or []
            return [step for step in filling.steps if step.node not in made]
        assert isinstance(owner, cst.Attribute)
        found: list[Step] = []
        holder = self.attributes.self_class(owner)
        reads = self.attributes.self_reads(holder, owner.attr.value) if holder is not None else ()
        for read in reads:
            above = self.tree.parent(read)
            if isinstance(above, cst.AugAssign) and above.target is read:
                found.append(Step(above.value, True))
            call = self.tree.parent(above) if isinstance(above, cst.Attribute) else None
            if (
                not isinstance(call, cst.Call)
                or not isinstance(above, cst.Attribute)
                or call.func is not above
            ):
                continue
            if above.attr.value in FILLING_METHODS and call.args:
                found.append(Step(call.args[-1].value, above.attr.value == "extend"))
        return found

    # ------------------------------------------------------------------ elements read out of containers

    def _iterated(self, node: cst.BaseExpression, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
        """The container whose elements a loop over ``node`` gives to the target at ``path``."""
        if isinstance(node, cst.Call):
            name = self.called(node)
            if name == "builtins.enumerate" and path[:1] == (1,) and node.args:
                return self._iterated(node.args[0].value, path[1:])
            if name == "builtins.zip" and path and path[0] is not None and path[0] < len(node.args):
                return self._iterated(node.args[path[0]].value, path[1:])
            if name in ("builtins.reversed", "builtins.list", "builtins.tuple") and node.args:
                return self._iterated(node.args[0].value, path)
        return node if not path else None

    # ------------------------------------------------------------------ containers that hold a list

    def containers_of(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.Call] | None:
        """The constructor calls of the containers that an element or list ends up in."""
        if depth > 12:
            return None
        holder = self.holder(node)
        if isinstance(holder, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)):
            return self._containers_of_list(holder, depth + 1)
        if isinstance(holder, cst.Call) and self.is_filling(holder):
            if not isinstance(holder.func, cst.Attribute):
                return []
            return self._containers_of_owner(holder.func.value, depth + 1)
        if isinstance(holder, cst.Assign):
            target = holder.targets[0].target
            return (
                self._containers_of_owner(target.value, depth + 1)
                if isinstance(target, cst.Subscript)
                else None
            )
        return None

    @remembered
    def _containers_of_owner(self, owner: cst.BaseExpression, depth: int) -> list[cst.Call] | None:
        if self.attributes.is_self(owner):
            return []
        made = self.made(owner)
        if made is None:
            return None
        found: list[cst.Call] = []
        for value in made:
            name = self.called(value)
            if name in (SEQUENTIAL, MODULE_LIST) and isinstance(value, cst.Call):
                found.append(value)
            else:
                filling = self.filling(owner)
                if filling is None or not filling.ends:
                    return None
                for read in filling.ends:
                    containers = self._containers_of_list(read, depth + 1)
                    if containers is None:
                        return None
                    found += containers
        return list(dict.fromkeys(found))

    @remembered
    def _containers_of_list(self, node: cst.BaseExpression, depth: int) -> list[cst.Call] | None:
        if depth > 12:
            return None
        parent = self.tree.parent(node)
        match parent:
            case cst.Arg():
                call = self.tree.parent(parent)
                assert isinstance(call, cst.Call)
                name = self.called(call)
                if name in (SEQUENTIAL, MODULE_LIST):
                    return [call]
                if self.attributes.fills_own_sequence(call) or name == "builtins.len":
                    return []
                if name in LISTS:
                    return self._containers_of_list(call, depth + 1)
                if self.is_filling(call) and isinstance(call.func, cst.Attribute):
                    return self._containers_of_owner(call.func.value, depth + 1)
                return None
            case cst.StarredElement() | cst.Element():
                holder = self.holder(node)
                if isinstance(holder, (cst.List, cst.Tuple)):
                    return self._containers_of_list(holder, depth + 1)
                return None
            case cst.AugAssign():
                return self._containers_of_owner(parent.target, depth + 1)
            case cst.Subscript() if self.only_looks_at(parent, node):
                return []
            case cst.BinaryOperation(operator=cst.Add()) | cst.IfExp():
                return self._containers_of_list(parent, depth + 1)
            case cst.Assign() if isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
                return self._containers_of_owner(parent.targets[0].target, depth + 1)
            case cst.Return():
                calls = self.calls_of_enclosing(parent)
                if not calls:
                    return None
                found: list[cst.Call] = []
                for call in calls:
                    containers = self._containers_of_list(call, depth + 1)
                    if containers is None:
                        return None
                    found += containers
                return list(dict.fromkeys(found))
            case _:
                return None

    def only_looks_at(self, element: cst.Subscript, node: cst.BaseExpression) -> bool:
        """Whether an element of the list ``node`` is asked for what does not matter to what it computes.

        ``nn.init.xavier_uniform_(layers[0].weight)``
        """
        asked = self.tree.parent(element)
        return (
            element.value is node
            and isinstance(asked, cst.Attribute)
            and asked.value is element
            and asked.attr.value in PLAIN_ATTRIBUTES
        )

    def holder(self, node: cst.BaseExpression) -> cst.CSTNode | None:
        """The list, call or assignment that takes ``node`` in; the pair in ``("name", node)`` is skipped."""
        parent = self.tree.parent(node)
        if isinstance(parent, (cst.Element, cst.StarredElement)):
            holder = self.tree.parent(parent)
            outer = self.tree.parent(holder) if holder is not None else None
            if isinstance(holder, cst.Tuple) and isinstance(outer, cst.Element):
                name = holder.elements[0].value
                if len(holder.elements) == 2 and isinstance(name, (cst.SimpleString, cst.FormattedString)):
                    return self.tree.parent(outer)
            return holder
        if isinstance(parent, (cst.Arg, cst.DictElement, cst.StarredDictElement)):
            return self.tree.parent(parent)
        return parent

    # ------------------------------------------------------------------ fillings

    def filling(self, owner: cst.BaseExpression) -> Filling | None:
        """How code fills the list or container behind a name or attribute."""
        match owner:
            case cst.Name():
                bound = self.names.by_node.get(owner)
                scope = bound.scope if bound is not None else self.names.lookup(owner.value, owner)
                if scope is None or any(
                    b.kind not in (BindingKind.ASSIGN, BindingKind.AUGMENT) or b.path
                    for b in scope.bindings[owner.value]
                ):
                    return None
                body = getattr(scope.node, "body", None)
                body = scope.node if isinstance(scope.node, cst.Module) else body
                name = owner.value

                def owns(node: cst.CSTNode) -> bool:
                    if not isinstance(node, cst.Name) or node.value != name:
                        return False
                    return node in self.names.by_node or self.names.is_read(node)

            case cst.Attribute() if self.attributes.self_class(owner) is not None:
                function = self.tree.enclosing(owner, cst.FunctionDef)
                if function is None:
                    return None
                body, name = function.body, f"self.{owner.attr.value}"
                attribute = owner.attr.value

                def owns(node: cst.CSTNode) -> bool:
                    return (
                        isinstance(node, cst.Attribute)
                        and node.attr.value == attribute
                        and self.attributes.is_self(node.value)
                    )

            case _:
                return None
        if not isinstance(body, (cst.IndentedBlock, cst.Module)):
            return None
        key = (body, name)
        if key not in self._fillings:
            made = self.made(owner) or []
            container = any(self.called(value) in (SEQUENTIAL, MODULE_LIST) for value in made)
            self._fillings[key] = trace(self.tree, body, owns, container=container)
        return self._fillings[key]

    def own_sequence(self, at: cst.CSTNode) -> Filling:
        """The order of the layers that the constructor of a sequence class registers."""
        function = self.tree.enclosing(at, cst.FunctionDef)
        assert function is not None
        key = (function.body, "self")
        if key not in self._fillings:
            self._fillings[key] = trace(self.tree, function.body, self.attributes.is_self, container=True)
        return self._fillings[key]

    def is_filling(self, call: cst.CSTNode | None) -> bool:
        """Whether the call puts an argument at the end of a list or container."""
        if not isinstance(call, cst.Call):
            return False
        if isinstance(call.func, cst.Name):
            return (
                call.func.value == "setattr"
                and len(call.args) == 3
                and self.attributes.is_self(call.args[0].value)
            )
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in FILLING_METHODS

    def owner_of(self, call: cst.Call) -> cst.BaseExpression | None:
        """The name or attribute that a container is assigned to."""
        parent = self.tree.parent(call)
        if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            target = parent.targets[0].target
            if isinstance(target, (cst.Name, cst.Attribute)):
                return target
        return None

    def assigned_list(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        parent = self.tree.parent(node)
        if isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, (cst.Name, cst.Attribute)):
            return parent.targets[0].target
        return None

    def is_list(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)):
            return True
        if isinstance(node, cst.Call):
            return self.called(node) in LISTS
        if isinstance(node, cst.Name):
            made = self.made(node)
            return bool(made) and all(self.is_list(value) for value in made or ())
        return False

    # ------------------------------------------------------------------ functions

    def called(self, call: cst.CSTNode | None) -> str | None:
        """The dotted name of the very class or function of a library that a call calls, partials included."""
        if not isinstance(call, cst.Call):
            return None
        name = self.module.qualified(call.func)
        if name is None and isinstance(call.func, cst.Name) and self.tree.mentions("partial"):
            value = self.module.value(call.func)
            if value.presets and value.definition is None:
                name = value.cls
        return name

    def calls_of_enclosing(self, statement: cst.Return) -> list[cst.Call] | None:
        """The calls of the function that returns here; None if it is unknown who calls it."""
        function = self.tree.enclosing(statement, cst.FunctionDef, cst.Lambda)
        if not isinstance(function, cst.FunctionDef):
            return None
        return list(self.module.callers(function)) or None

    def returned(self, call: cst.Call) -> list[cst.BaseExpression] | None:
        """What the function of this file that ``call`` runs returns; None if it is not one."""
        function = self.module.value(call.func).definition
        if isinstance(function, cst.Lambda):
            return [function.body]
        if not isinstance(function, cst.FunctionDef):
            return None
        found = [
            node.value
            for node in self.tree.descendants(function.body)
            if isinstance(node, cst.Return)
            and node.value is not None
            and self.tree.enclosing(node, cst.FunctionDef, cst.Lambda) is function
        ]
        return found or None


def same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    """Whether two names or attributes are spelt the same."""
    return alike(left, right)


def runs_layer(module: Module, nodes: Iterable[cst.CSTNode], kept: str) -> bool:
    """Whether code runs a layer, which may have hooks, other than in the text that is ``kept``."""
    return any(
        isinstance(call, cst.Call)
        and isinstance(call.func, (cst.Name, cst.Attribute, cst.Subscript))
        and module.value(call.func).kind is Kind.MODULE
        and module.tree.source(call) not in kept
        for node in nodes
        for call in module.tree.descendants(node)
    )
