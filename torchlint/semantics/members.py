"""Member access: what ``x.attr`` is, by what a class and the code around it set there.

Of tensors, batches and what else libraries make, the tables of `torchlint.semantics.api.results` tell it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, reduce
from typing import Any

import libcst as cst

from torchlint.semantics.annotations import Annotations
from torchlint.semantics.api import results
from torchlint.semantics.callgraph import CallGraph
from torchlint.semantics.classes import ClassInfo, is_property
from torchlint.semantics.clues import Clues
from torchlint.semantics.containers import Containers
from torchlint.semantics.conventions import is_noise_level, says_host
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evaluator import FEW, Evaluator, EvaluatorPart
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.lexicon import Role, denotes, names_loss
from torchlint.semantics.library import DISTRIBUTION_METHODS, Library
from torchlint.semantics.names import AttributeBinding, Binding, BindingKind, dotted_text, words_of_stores
from torchlint.semantics.parameters import Parameters
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import is_place_of_model
from torchlint.semantics.tensordtypes import NOT_FLOATING
from torchlint.semantics.values import (
    BOTTOM,
    DTYPE,
    MISSING,
    MODULE,
    NUMBER,
    SHAPE,
    TENSOR,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    field,
    join,
    placed_as,
    solid,
    without_constants,
)

_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
_INSTANCES = frozenset({Kind.OBJECT, Kind.MODULE, Kind.DATASET, Kind.SAMPLER})
_OF_ANYTHING = {"ndim": NUMBER, "shape": SHAPE}
"""What these attributes are of whatever has them, so that it need not be computed."""
# What heirs, or callers, put where a class has ``None``; in other files its name tells.
_PUT_THERE_LATER = frozenset({Kind.MODULE, Kind.LOADER, Kind.OPTIMIZER, Kind.DEVICE})
_CONTAINERS = (Kind.DICT, Kind.LIST)
_PAIR_FIELDS = ("values", "indices")


class Members(EvaluatorPart):
    """The member access of one file."""

    answers_for_all = frozenset({"access"})

    def __init__(
        self,
        evaluator: Evaluator,
        flow: ControlFlow,
        library: Library,
        annotations: Annotations,
        callgraph: CallGraph,
        clues: Clues,
        parameters: Parameters,
        containers: Containers,
    ) -> None:
        super().__init__(evaluator)
        self.flow = flow
        self.library = library
        self.annotations = annotations
        self.callgraph = callgraph
        self.clues = clues
        self.parameters = parameters
        self.containers = containers

    @staticmethod
    def counterpart(module: Any) -> Members:
        """Return the member access of a module."""
        found: Members = module.inference.members
        return found

    def access(self, node: cst.Attribute) -> Value:
        """Return what ``x.attr`` is, by what ``x`` is, by its use, and by its name last."""
        result = self._attribute_alone(node)
        if result.kind is Kind.UNKNOWN and result.device is Device.UNKNOWN and says_host(node.attr.value):
            return result.on(Device.CPU)
        if not result.tensorlike or result.device is Device.CPU:
            return result
        if (shown := self.evaluator.proven(node, result)) is not None:
            return shown
        if says_host(node.attr.value) or (
            result.device is Device.UNKNOWN and self.clues.is_attribute_read_as_array(node)
        ):
            return result.on(Device.CPU).kept_in(Memory.EITHER)
        left = self._left_on_host(node) if result.device is Device.ACCELERATOR else None
        return result if left is None else left

    def _left_on_host(self, node: cst.Attribute) -> Value | None:
        """Return what ``self.x`` is where all other methods of a class leave it on the host in the end, be it
        that one of them has had it on the device: ``self.x = x.to(device)``, … ``self.x = self.x.to("cpu")``.
        """
        owner, function = self.tree.enclosing(node, cst.ClassDef), self.tree.enclosing(node, cst.FunctionDef)
        if owner is None or function is None or not isinstance(node.value, cst.Name):
            return None
        left = self._left_in_the_end(owner, node.attr.value)
        if self.classes.self_name(function) != node.value.value or any(
            self.tree.enclosing(each.target, cst.FunctionDef) is function for each in left
        ):
            return None
        values = [self.value(each.value) for each in left if each.value is not None]
        return join(values) if values and all(value.device is Device.CPU for value in values) else None

    @remembered
    def _left_in_the_end(self, owner: cst.ClassDef, attr: str) -> list[AttributeBinding]:
        """Return the assignments to an attribute that none behind it in the same block takes the place of,
        before another method could see it; none if all are such.
        """
        info = self.classes.info(owner)
        stores = self.classes.attribute_bindings(info, attr)
        if any(self.tree.is_elsewhere(store.target) for store in stores):
            return []
        last: dict[cst.CSTNode | None, AttributeBinding] = {}
        replaced: list[AttributeBinding] = []
        for store in stores:
            block = self.tree.parent(self.tree.statement(store.target))
            if block in last and not self._is_read_between(info, last[block].target, store.target):
                replaced.append(last[block])
            last[block] = store
        return [store for store in stores if store not in replaced] if replaced else []

    def _is_read_between(self, info: ClassInfo, first: cst.Attribute, second: cst.Attribute) -> bool:
        """Return whether a method that reads an attribute is called between two assignments to it."""
        reads = self.tree.attributes_by_name.get(first.attr.value, ())
        for call in self.tree.between(first, second, cst.Call):
            if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name):
                method = info.method(call.func.attr.value)
                if method is not None and self.tree.holds(method, reads):
                    return True
        return False

    def _attribute_alone(self, node: cst.Attribute) -> Value:
        dotted = self.names.qualified(node)
        if dotted is not None:
            return self.library.named(dotted)
        if self.link is not None and (target := self.names.imported(node)) is not None:
            return self.evaluator.imported(node, target)
        attr = node.attr.value
        if attr in _OF_ANYTHING and attr not in self._own_attributes:
            return _OF_ANYTHING[attr]
        if (owner := self.class_of_super(node.value)) is not None:
            return self.inherited(owner, attr) or UNKNOWN
        base = self.value(node.value)
        if base is BOTTOM:
            return base
        result = self.attribute(base, attr, node)
        if result.constant is not MISSING and self._is_chosen(base, attr, node.value):
            result = result._replace(constant=MISSING, literal=False)
        elif base.kind in _INSTANCES and isinstance(base.definition, cst.ClassDef):
            # What the class has, or its constructor sets, an heir or whoever holds the object may replace.
            made, kind = base.definition, without_constants(result, replaced=True)
            if kind != result and self.parameters.is_replaced(
                made, attr, container=result.kind in _CONTAINERS
            ):
                result = kind
            elif kind != result and base.origin is None and self.parameters.has_other_users(made):
                result = without_constants(result)
        elif base.kind is Kind.CLASS and isinstance(base.definition, cst.ClassDef):
            made, kind = base.definition, without_constants(result, replaced=True)
            named = self._names_class(node.value)
            changed = self.parameters.is_given if named else self.parameters.is_replaced
            if kind != result and changed(made, attr, container=result.kind in _CONTAINERS):
                result = kind
            elif kind != result and (result.kind is Kind.BOOL or not named):
                result = without_constants(result) if self.parameters.has_other_users(made) else result
        if result.kind is Kind.NONE and base.kind is Kind.OBJECT:
            # ``self.model = None`` keeps the place for what heirs in other files, or callers, put there.
            later = self.clues.by_name(attr, node)
            return later if later.kind in _PUT_THERE_LATER else result
        if result.kind is Kind.DEVICE and result.device is Device.UNKNOWN and is_place_of_model(node):
            return result.on(Device.ACCELERATOR)
        if result.kind is Kind.LOADER and base.kind is Kind.OBJECT:
            # ``data.loader = accelerator.prepare(data.loader)``
            prepared = self._assigned_as(dotted_text(node) or "")
            return prepared if prepared.device is Device.ACCELERATOR else result
        if result is BOTTOM or result.known:
            return result
        if is_noise_level(attr, dotted_text(node.value) or ""):
            return TENSOR.on(Device.CPU)
        if base.kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.MODULE):
            return self._unknown_attribute(node, base, result)
        return result

    def _unknown_attribute(self, node: cst.Attribute, base: Value, unknown: Value) -> Value:
        """Return what assignments elsewhere, the use of an attribute or its name say of it."""
        attr = node.attr.value
        assigned = self._assigned_elsewhere(node)
        if assigned.known:
            return assigned
        if attr == "forward" and base.kind is Kind.MODULE:
            return base  # to call it is to call the module
        shown = self.clues.by_use(node)
        if shown.known:
            shown = placed_as(shown, unknown)
            if shown.device is Device.UNKNOWN and shown.tensorlike and self.clues.may_be_picture(node):
                return shown.on(Device.CPU)
            return shown
        if base.kind is Kind.MODULE and "item" in self.clues.used_attributes(node):
            return TENSOR  # a parameter or a buffer
        if attr == "data" and self._asked_as_tensor(node):
            return TENSOR
        if attr == "shape":
            return SHAPE
        if attr == "dtype" or attr.endswith("_dtype"):
            return DTYPE
        if attr == "grad" and base.kind is Kind.UNKNOWN and not self.tree.is_called(node):
            return TENSOR.attached(Graph.DETACHED)
        if attr in results.METHOD_DEVICES and self.tree.is_called(node):
            return unknown  # a method that moves, and no device
        if names_loss(attr):
            return unknown  # ``self.stft_loss`` is a criterion or a switch as often as a tensor
        return placed_as(self.clues.by_name(attr, node, unknown), unknown)

    def _names_class(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression is a class by its name, and not ``cls``, which may be an heir."""
        if isinstance(node, cst.Name):
            return all(b.kind is not BindingKind.PARAMETER for b in self.names.bindings(node))
        return isinstance(node, cst.Attribute) and node.attr.value != "__class__"

    def _is_chosen(self, base: Value, attr: str, owner: cst.BaseExpression) -> bool:
        """Return whether whoever makes an object that is only promised chooses what it has under a name."""
        if base.kind is not Kind.OBJECT or base.origin is not None:
            return False
        own = self.classes.instance_class(owner)
        if own is not None:
            # What stands beside a field is only its default.
            constructed = self.classes.info(own).method("__init__") is not None
            return not constructed and self.classes.parameter_behind(own, attr) is not None
        classes = (one for one in base.definitions if isinstance(one, cst.ClassDef))
        return any(self.classes.parameter_behind(one, attr) is not None for one in classes)

    def _asked_as_tensor(self, node: cst.Attribute) -> bool:
        """Return whether it is ``layer.alpha.data.item()``, a method of tensors asked of ``data``."""
        asked = self.tree.parent(node)
        return (
            isinstance(asked, cst.Attribute)
            and asked.value is node
            and asked.attr.value in ("item", "cpu", "cuda", "detach", "clone", "copy_", "fill_", "zero_")
        )

    @cached_property
    def _own_attributes(self) -> frozenset[str]:
        """Those names of `_OF_ANYTHING` that this file uses for attributes of its own."""
        classes = [self.names.scope_of(definition) for definition in self.tree.nodes(cst.ClassDef)]
        return frozenset(
            attr
            for attr in _OF_ANYTHING
            if attr in self.names.attributes or any(attr in scope.bindings for scope in classes)
        )

    def attribute(self, base: Value, attr: str, node: cst.CSTNode | None = None) -> Value:
        """Return the value of ``base.attr``."""
        if base.alternatives:
            # Whoever asks for what some of them lack knows that it is none of those.
            having = [one for one in base.each if not self._lacks(one, attr)]
            joined = join(self.attribute(one, attr, node) for one in having or base.each)
            inherited = joined.kind is Kind.FUNCTION and (joined.cls or "").startswith(".")
            return joined._replace(receiver=base) if inherited else joined
        if attr in results.FEATURES_OF_GRAPHS and base.device is Device.ACCELERATOR:
            return Value(Kind.BATCH, device=base.device, graph=Graph.DETACHED)
        match base.kind:
            case Kind.TENSOR | Kind.BATCH if attr == "device":
                return Value(Kind.DEVICE, device=base.device)
            case Kind.TENSOR:
                return self._attribute_of_tensor(base, attr)
            case Kind.BATCH:
                return self._attribute_of_batch(base, attr)
            case Kind.TUPLE if attr in _PAIR_FIELDS and base.elements and len(base.elements) == 2:
                # What max, sort, topk and their like return along a dimension.
                return base.elements[_PAIR_FIELDS.index(attr)]
            case Kind.LOADER | Kind.OPTIMIZER | Kind.SCHEDULER | Kind.SCALER | Kind.NDARRAY | Kind.DEVICE:
                if base.kind is Kind.NDARRAY and attr == "shape":
                    return SHAPE
                if base.kind is Kind.NDARRAY and attr == "T":
                    return base
                fact = results.ATTRIBUTES.get(base.kind.value, {}).get(attr)
                if fact is not None:
                    return self.library.from_fact(fact, (base,))
                return self._member(base, attr)
            case Kind.ACCELERATOR:
                if attr == "device":
                    return Value(Kind.DEVICE, device=Device.ACCELERATOR)
                return self._method(base, attr)
            case Kind.OBJECT | Kind.TUPLE if (held := field(base, attr)) is not None:
                known = base.origin is not None and not self._is_set_outside(attr, base.origin)
                return held if known else without_constants(held)._replace(literal=False)
            case Kind.MODULE | Kind.DATASET | Kind.OBJECT | Kind.SAMPLER:
                return self._member(base, attr)
            case Kind.CLASS if isinstance(base.definition, cst.ClassDef):
                method = self.classes.info(base.definition).method(attr)
                if method is not None:
                    return Value(Kind.FUNCTION, definition=method, receiver=base)
                return self._class_attribute(self.classes.info(base.definition), attr)
            case Kind.STRING | Kind.NUMBER | Kind.LIST | Kind.TUPLE | Kind.DICT | Kind.SHAPE:
                return self._method(base, attr)
            case _ if attr in results.MASKS_OF_NODES and base.device is Device.ACCELERATOR:
                return Value(Kind.TENSOR, device=base.device, dtype="torch.bool")
            case _:
                return UNKNOWN

    def _attribute_of_tensor(self, base: Value, attr: str) -> Value:
        fact = results.TENSOR_ATTRIBUTES.get(attr)
        if fact is None:
            return self._method(base, attr)
        if fact != "tensor":
            return self.library.from_fact(fact, (base,))
        graph = Graph.DETACHED if attr in results.DETACHED_ATTRIBUTES else base.graph
        dtype = base.dtype if attr in ("T", "mT", "data") else None
        taken = Value(Kind.TENSOR, device=base.device, graph=graph, dtype=dtype)
        return taken.kept_in(base.memory) if attr == "data" else taken

    def _attribute_of_batch(self, base: Value, attr: str) -> Value:
        # ``items`` and ``keys`` are those of a dict of them; no batch has a field of that name.
        if attr in results.TENSOR_METHODS or attr in DISTRIBUTION_METHODS or attr in ("items", "keys"):
            return self._method(base, attr)
        if attr in ("meta", "metadata"):
            return UNKNOWN  # what is known of a picture besides its pixels stays on the host
        fact = results.TENSOR_ATTRIBUTES.get(attr) or results.BATCH_ATTRIBUTES.get(attr)
        if fact is not None and attr not in ("T", "data", "name", "names"):
            return self.library.from_fact(fact, (base,))
        part = self.evaluator.element(base)
        masks = attr in results.MASKS_OF_NODES and part.kind is Kind.TENSOR
        return part._replace(dtype="torch.bool") if masks else part

    def _lacks(self, base: Value, attr: str) -> bool:
        """Return whether an object or a model certainly has nothing under a name."""
        made = base.definition
        if not isinstance(made, cst.ClassDef) or base.kind not in (Kind.OBJECT, Kind.MODULE):
            return False
        inherited = attr in results.METHODS["module"] or attr in results.ATTRIBUTES["module"]
        return not (base.kind is Kind.MODULE and inherited) and self.classes.lacks(made, attr)

    def _method(self, base: Value, name: str) -> Value:
        """Return a bound method that no definition in this file has; the call computes what it returns."""
        return Value(Kind.FUNCTION, receiver=base, cls=f".{name}")

    def _member(self, base: Value, attr: str) -> Value:
        """Return an attribute of an instance: of its class in the project first, then of the library."""
        if isinstance(base.definition, cst.ClassDef):
            info = self.classes.info(base.definition)
            own = self._instance_attribute(info, attr, base)
            if own is not None and own.kind is Kind.NONE:
                own = self._put_there_by_heirs(base.definition, attr, base) or own
            if own is not None:
                return self._as_made(base, attr, own)
            if base.kind is Kind.MODULE and info.lightning:
                if attr == "device":
                    return Value(Kind.DEVICE, device=Device.ACCELERATOR)
                if attr in ("trainer", "logger", "hparams"):
                    return UNKNOWN
            # A mixin or abstract base asks for what its heirs in this file define.
            heirs = map(self.classes.info, self.classes.heirs(base.definition))
            defined = [self._instance_attribute(heir, attr, base) for heir in heirs]
            if any(own is not None for own in defined):
                return join(own for own in defined if own is not None)
        receiver = self.library.receiver(base)
        fact = results.ATTRIBUTES.get(receiver, {}).get(attr)
        if fact is not None:
            return self.library.from_fact(fact, (base,))
        if attr in results.METHODS.get(receiver, {}):
            return self._method(base, attr)
        return self._attribute_of_module(base, attr) if base.kind is Kind.MODULE else UNKNOWN

    def _attribute_of_module(self, base: Value, attr: str) -> Value:
        """Return what many modules have under a name, where nothing shows what this one has."""
        match attr:
            case "weight" | "bias" | "in_proj_weight" | "running_mean" | "running_var":
                graph = Graph.DETACHED if attr.startswith("running") else Graph.ATTACHED
                return Value(Kind.TENSOR, device=base.device, graph=graph, leaf=graph is Graph.ATTACHED)
            case "module":
                return base
            case "device":
                return Value(Kind.DEVICE, device=base.device)
            case "generate":
                return self._method(base, attr)
            case "items" | "values" if self._is_module_dict(base):
                return self._method(base, attr)
        return UNKNOWN

    def _as_made(self, base: Value, attr: str, own: Value) -> Value:
        """Return an attribute of an instance as the call that made the instance sets it."""
        call, definition = base.origin, base.definition
        if base.kind is not Kind.OBJECT or not isinstance(call, cst.Call):
            return own
        assert isinstance(definition, cst.ClassDef)
        parameter = self.classes.parameter_behind(definition, attr)
        if parameter is None or own is BOTTOM:
            return own
        if self.evaluator.called(call).definition is not definition or self._is_set_outside(attr, call):
            return own._replace(constant=MISSING, literal=False)
        name, place = parameter
        plain = [argument for argument in call.args if argument.keyword is None]
        given = next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)
        if given is None and place is not None and place < len(plain):
            given = plain[place]
        if any(argument.star for argument in call.args):
            return own._replace(constant=MISSING, literal=False)
        if given is None:
            return own if place is not None or not plain else own._replace(constant=MISSING, literal=False)
        passed = self.value(given.value)
        return passed if passed is BOTTOM or passed.known else own._replace(constant=MISSING, literal=False)

    def _is_set_outside(self, attr: str, made: cst.CSTNode) -> bool:
        """Return whether code sets an attribute of an object that a call makes, or may, from outside."""
        home = self.counterpart(self.link.home(made)) if self.link is not None else self
        return any(
            each.may_be_made_by(store, made)
            for part in {self, home}
            for each in part.parameters.in_sight(words_of_stores(attr))
            for store in each.names.stores(attr)
        )

    def _put_there_by_heirs(self, definition: cst.ClassDef, attr: str, base: Value) -> Value | None:
        """Return what heirs of a class have where it only keeps the place, ``config = None``;
        None if that is nothing of one kind that is made to be put there.
        """
        heirs = map(self.classes.info, self.classes.heirs(definition))
        defined = [self._instance_attribute(heir, attr, base) for heir in heirs]
        put = join(one for one in defined if one is not None and one.kind is not Kind.NONE)
        return put if put.kind is Kind.OBJECT or put.kind in _PUT_THERE_LATER else None

    def _is_module_dict(self, module: Value) -> bool:
        if isinstance(module.definition, cst.ClassDef):
            return self.classes.info(module.definition).inherits("torch.nn.ModuleDict")
        return module.cls == "torch.nn.ModuleDict"

    def _instance_attribute(self, info: ClassInfo, attr: str, base: Value) -> Value | None:
        """Return what ``self.attr`` is by the assignments and methods of a class; None if it has none."""
        if self.link is not None and self.tree.is_elsewhere(info.node):
            return self.counterpart(self.link.home(info.node))._instance_attribute(info, attr, base)
        method = info.method(attr)
        assigned = self.classes.attribute_bindings(info, attr)
        if method is not None:
            bound = self._bound_method(method, base)
            if assigned and bound.kind is Kind.FUNCTION and not all(_wraps(each, attr) for each in assigned):
                # ``self.update = self.update_one``: the method only says how it is called.
                standing = self._assigned_to_attribute(assigned)
                if standing is BOTTOM or (standing.kind is Kind.FUNCTION and standing.definition is not None):
                    return standing
            return bound
        # What only adds to what is there says nothing of it.
        if any(b.value is not None and b.kind is not BindingKind.AUGMENT for b in assigned):
            work_out = partial(self._assigned_to_attribute, assigned)
            many = len(assigned) > FEW
            joined = self.evaluator.once(f"attribute {attr}", info.node, work_out) if many else work_out()
            if joined is not BOTTOM and joined.kind is Kind.LIST:
                return self.containers.with_items(info, attr, joined)
            if joined is not BOTTOM and joined.kind is Kind.MODULE and joined.device is Device.UNKNOWN:
                joined = self.containers.with_items(info, attr, joined)
                return joined.on(base.device) if base.device is Device.CPU else joined
            if joined == UNKNOWN:
                return self._declared_field(info, attr)
            return joined
        shared = self._class_attribute(info, attr)
        if shared.known:
            return shared
        if attr == "accelerator" and any(map(info.inherits, _TRAINERS)):
            return Value(Kind.ACCELERATOR)  # what a trainer has since it was built on Accelerate
        return self._registered(info, attr)

    def _assigned_to_attribute(self, bindings: Iterable[AttributeBinding]) -> Value:
        """Return what the assignments to an attribute, one of which does more than add to it, make of it."""
        found: list[Value] = []
        added: list[Value] = []
        promised: list[Value] = []
        for assigned in bindings:
            if assigned.value is None:
                continue
            value = self.value(assigned.value)
            if assigned.kind is BindingKind.AUGMENT:
                added.append(value)
                continue
            if assigned.kind is BindingKind.LOOP:
                value = self.evaluator.iterated(value)
            value = self.evaluator.unpacked(value, assigned.path)
            if value.kind in (Kind.UNKNOWN, Kind.NONE) and not assigned.path:
                holder = self.tree.parent(assigned.target)
                if isinstance(holder, cst.AnnAssign):
                    # None stands for what is filled in later.
                    declared = self.annotations.promised(holder.annotation.annotation)
                    if declared.known:
                        promised.append(declared)
                        continue
            found.append(value)
        # What is filled in says more than what is announced, if that is all there is.
        filled = join(found)
        found += [value for value in promised if filled is BOTTOM or filled.kind is not value.kind]
        if found and added:
            # Any method may come first: what all of them leave is the sum.
            found.append(reduce(self.library.operate, added, join(found)))
        return join(found)

    def _class_attribute(self, info: ClassInfo, attr: str) -> Value:
        for ancestor in info.lineage:
            self.effort.spent += 1
            bindings = self.names.scope_of(ancestor.node).bindings.get(attr)
            if bindings:
                return join(map(self._field, bindings))
        return UNKNOWN

    def _declared_field(self, info: ClassInfo, attr: str) -> Value:
        """Return what an annotation in the body of a class promises of an attribute."""
        for ancestor in info.lineage:
            self.effort.spent += 1
            for binding in self.names.scope_of(ancestor.node).bindings.get(attr, ()):
                return self.annotations.of_binding(binding) or UNKNOWN
        return UNKNOWN

    def _field(self, binding: Binding) -> Value:
        """Return what a binding in a class body makes of an attribute; None stands for what is filled in."""
        value = self.evaluator.binding(binding)
        if value.kind is not Kind.NONE:
            return value
        declared = self.annotations.of_binding(binding)
        return value if declared is None or not declared.known else declared

    def _registered(self, info: ClassInfo, attr: str) -> Value | None:
        """Return buffers, parameters and submodules that are registered by name."""
        for node in self._registrations.get(attr, ()):
            if self.tree.enclosing(node, cst.ClassDef) in {a.node for a in info.lineage}:
                method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
                if method == "register_modules":
                    return self._part_of_pipeline(node, attr)
                if method == "add_module":
                    return self.value(node.args[1].value) if len(node.args) > 1 else MODULE
                leaf = method == "register_parameter"
                graph = Graph.ATTACHED if leaf else Graph.DETACHED
                given = self.value(node.args[1].value).dtype if len(node.args) > 1 else None
                # What is of floating-point numbers is cast with the module: ``model.half()``.
                dtype = given if given in NOT_FLOATING else None
                return Value(Kind.TENSOR, graph=graph, leaf=leaf, dtype=dtype)
        return None

    def _part_of_pipeline(self, registration: cst.Call, attr: str) -> Value:
        """Return what a pipeline of diffusers registers by a name: what it is given, promised, or called."""
        given = next(a.value for a in registration.args if a.keyword is not None and a.keyword.value == attr)
        value = self.value(given)
        if value.known:
            return value
        promised = ""
        for binding in self.names.bindings(given):
            if isinstance(binding.node, cst.Param) and binding.node.annotation is not None:
                promised = self.tree.source(binding.node.annotation.annotation)
        is_model = denotes(attr, Role.DIFFUSION) or promised.strip("'\"").endswith("Model")
        return MODULE if is_model else UNKNOWN

    @cached_property
    def _registrations(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            match call:
                case cst.Call(
                    func=cst.Attribute(
                        attr=cst.Name(
                            "register_buffer" | "register_parameter" | "add_module" | "register_module"
                        )
                    ),
                    args=[cst.Arg(value=cst.SimpleString() as name), *_],
                ):
                    found.setdefault(str(name.evaluated_value), []).append(call)
                case cst.Call(func=cst.Attribute(attr=cst.Name("register_modules"))):
                    for argument in call.args:
                        if argument.keyword is not None:
                            found.setdefault(argument.keyword.value, []).append(call)
        return found

    def _assigned_elsewhere(self, node: cst.Attribute) -> Value:
        """Return the value of ``args.device`` where the file assigns it under the same spelling.

        Of a parameter also after such an assignment in the files of all its callers.
        """
        spelt = dotted_text(node)
        assigned = self._assigned_as(spelt) if spelt is not None else UNKNOWN
        if assigned.known or self.link is None or not isinstance(node.value, cst.Name):
            return assigned
        bindings = self.names.bindings(node.value)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return assigned
        attr = node.attr.value
        owned = attr in self.names.attributes and self.classes.instance_class(node.value) is not None
        if owned or not self.link.has_anywhere((f".{attr} = ",)):
            return assigned  # by the class itself, or by nobody
        return self._assigned_by_callers(bindings[0], attr)

    def _assigned_as(self, spelt: str) -> Value:
        """Return what the file assigns to an attribute that is spelt so."""
        assigned = self._assignments_by_spelling.get(spelt)
        if assigned is None:
            return UNKNOWN
        found = solid(self.evaluator.joined("spelt", assigned[0].target, assigned, self._assigned_value))
        if found.device is Device.CPU and found.kind in (Kind.STRING, Kind.DEVICE):
            # ``if not torch.cuda.is_available(): args.device = "cpu"``: it was something else before.
            return UNKNOWN if all(self._builds_on_former(each, spelt) for each in assigned) else found
        return found

    def _builds_on_former(self, assignment: AttributeBinding, spelt: str) -> bool:
        """Return whether an assignment leaves what an attribute was before, or makes something of that:
        ``args.device = torch.device(args.device)``.
        """
        if any(isinstance(branch.construct, cst.If) for branch in self.flow.branches(assignment.target)):
            return True
        return assignment.value is not None and any(
            isinstance(part, cst.Attribute) and dotted_text(part) == spelt
            for part in self.tree.descendants(assignment.value)
        )

    @solved(UNKNOWN)
    def _assigned_by_callers(self, binding: Binding, attr: str) -> Value:
        """Return the device that all callers assign to an attribute of what they pass for a parameter."""
        function = binding.scope.node
        if not isinstance(function, cst.FunctionDef):
            return UNKNOWN
        calls = self.callgraph.callers(function)
        found = [self._assigned_to_argument(call, function, binding.name, attr) for call in calls]
        devices = all(v.kind in (Kind.STRING, Kind.DEVICE) and v.device is not Device.UNKNOWN for v in found)
        return join(found) if found and devices else UNKNOWN

    def _assigned_to_argument(self, call: cst.Call, function: cst.FunctionDef, name: str, attr: str) -> Value:
        given = self.callgraph.bound_to(call, function).get(name).node
        spelt = dotted_text(given) if given is not None else None
        if given is None or spelt is None or self.link is None:
            return UNKNOWN
        home = self.counterpart(self.link.home(call)) if self.tree.is_elsewhere(call) else self
        assigned = home._assigned_as(f"{spelt}.{attr}")
        passed = home.names.bindings(given)
        if assigned.known or len(passed) != 1 or passed[0].kind is not BindingKind.PARAMETER:
            return assigned
        return home._assigned_by_callers(passed[0], attr)

    def _assigned_value(self, binding: AttributeBinding) -> Value:
        assert binding.value is not None
        return self.evaluator.unpacked(self.value(binding.value), binding.path)

    @cached_property
    def _assignments_by_spelling(self) -> dict[str, list[AttributeBinding]]:
        """The plain assignments to attributes by how they are spelt, in the order in which they stand."""
        found: dict[str, list[AttributeBinding]] = {}
        for bindings in self.names.attributes.values():
            for binding in bindings:
                if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    spelt = dotted_text(binding.target)
                    if spelt is not None:
                        found.setdefault(spelt, []).append(binding)
        return found

    def class_of_super(self, node: cst.BaseExpression) -> cst.ClassDef | None:
        """Return the class around ``super()``; None for any other expression."""
        if not isinstance(node, cst.Call) or self.names.qualified(node.func) != "builtins.super":
            return None
        return self.tree.enclosing(node, cst.ClassDef)

    def inherited(self, owner: cst.ClassDef, attr: str) -> Value | None:
        """Return what ``super().attr`` is in a class, by the methods of its bases; None if it has none."""
        for parent in self.classes.info(owner).parents:
            method = parent.method(attr)
            if method is not None:
                return self._bound_method(method, self.evaluator.instance(owner))
        return None

    def _bound_method(self, method: cst.FunctionDef, instance: Value) -> Value:
        """Return a method of an instance, or what it returns if it is a property."""
        if is_property(method):
            return self.evaluator.returned(method)
        return Value(Kind.FUNCTION, definition=method, receiver=instance)


def _wraps(assigned: AttributeBinding, name: str) -> bool:
    """Return whether an assignment puts around a method what calls it:
    ``self.update = counted(self.update)``.
    """
    match assigned.value:
        case cst.Call(args=args):
            return any(isinstance(a.value, cst.Attribute) and a.value.attr.value == name for a in args)
    return False
