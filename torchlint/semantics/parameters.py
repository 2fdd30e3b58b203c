"""What parameters can be: by their annotation, what the callers pass, and what frameworks hand to hooks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import libcst as cst

from torchlint.semantics.annotations import Annotations
from torchlint.semantics.callgraph import CallGraph, is_abstract
from torchlint.semantics.clues import PLACE_OR_MOVE
from torchlint.semantics.conventions import LENGTHS_NAME, goes_over_data
from torchlint.semantics.evaluator import Evaluator, EvaluatorPart
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import Role, ends, names_device, names_loss
from torchlint.semantics.names import Binding, BindingKind, Store, dotted_text, words_of_stores
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import is_none, keywords, last_name, start_of
from torchlint.semantics.values import (
    BATCH,
    BOOL,
    BOTTOM,
    MISSING,
    TENSOR,
    UNKNOWN,
    Definition,
    Device,
    Graph,
    Kind,
    Value,
    chosen_device,
    defined,
    dict_item,
    each_of,
    filled_in,
    join,
    without_constants,
)

_PASSING_ON = frozenset({"builtins", "functools", "contextlib", "abc", "typing", "torch"})
"""Libraries whose decorators pass on the arguments that they get."""
_DEFAULTS = ("__defaults__", "__kwdefaults__")
_PLAIN = frozenset({Kind.BOOL, Kind.NUMBER, Kind.STRING})
# The hooks of a LightningModule that get a batch; the trainer moves it and sets the grad mode.
_LIGHTNING_STEPS = frozenset({"training_step", "validation_step", "test_step", "predict_step"})


class Parameters(EvaluatorPart):
    """The parameters of the functions of one file."""

    def __init__(self, evaluator: Evaluator, annotations: Annotations, callgraph: CallGraph) -> None:
        super().__init__(evaluator)
        self.annotations = annotations
        self.callgraph = callgraph

    @staticmethod
    def counterpart(module: Any) -> Parameters:
        """Return the parameters of a module."""
        found: Parameters = module.inference.parameters
        return found

    def alternatives(self, binding: Binding) -> Iterator[Value]:
        """Yield what the calls of a function give one of its parameters, or an item of its keywords."""
        if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
            function = binding.scope.node
            if isinstance(function, cst.FunctionDef) and not binding.node.star:
                for call in self.callgraph.callers(function):
                    argument = self.callgraph.bound_to(call, function).get(binding.name)
                    if argument.node is not None:
                        yield self.value(argument.node)
            elif isinstance(function, cst.FunctionDef) and binding.node.star == "**":
                yield from self._keywords(function)
        match binding.value:
            case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("items" | "values"))):
                if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
                    for keywords in self.names.bindings(owner):
                        if isinstance(keywords.node, cst.Param) and keywords.node.star == "**":
                            yield from self.alternatives(keywords)

    def _keywords(self, function: cst.FunctionDef) -> Iterator[Value]:
        """Yield what calls of a function pass by names that it does not declare: its ``**kwargs``."""
        params = function.params
        declared = {param.name.value for param in (*params.params, *params.kwonly_params)}
        for call in self.callgraph.callers(function):
            for argument in call.args:
                if argument.star == "**":
                    yield dict_item(self.value(argument.value))
                elif argument.keyword is not None and argument.keyword.value not in declared:
                    yield self.value(argument.value)

    def is_open(self, binding: Binding) -> bool:
        """Return whether it is open what a definition binds, so that a conventional name may tell."""
        if binding.kind is BindingKind.PARAMETER:
            function = binding.scope.node
            constructor = isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
            if constructor and names_loss(binding.name):
                return False  # it is given a loss to compute later, or a switch
            if isinstance(binding.node, cst.Param) and self._may_lack(binding, binding.node.default):
                return False
            if isinstance(binding.node, cst.Param) and self._is_of_library(binding, binding.node.default):
                return False
            return self.annotations.of_binding(binding) is None
        if binding.kind is BindingKind.ASSIGN and self._may_lack(binding, binding.value):
            return False
        if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Attribute):
            # ``zero_out_loss = opt.zero_out_loss``: what options hold are numbers, words and switches.
            owner = dotted_text(binding.value.value) or ""
            return not ends(owner, Role.OPTIONS)
        if self.names.link is not None and names_loss(binding.name) and _is_made(binding.value):
            return False  # what computes a loss, which other files are handed
        if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Call):
            # ``avg_val_loss, scores = validate_model(…)``: what runs over a whole set returns a mean.
            return not goes_over_data(last_name(binding.value.func))
        if binding.kind is BindingKind.LOOP:
            # What is kept for a report are numbers.
            match binding.value:
                case cst.Call(func=cst.Attribute(value=records)) if ends(last_name(records), Role.RECORD):
                    return False
        return binding.kind in (BindingKind.ASSIGN, BindingKind.LOOP, BindingKind.WITH, BindingKind.WALRUS)

    def _is_of_library(self, binding: Binding, default: cst.BaseExpression | None) -> bool:
        """Return whether a parameter gets what a library has under a name: ``loader=default_loader``."""
        values = [self.of(binding), UNKNOWN if default is None else self.value(default)]
        return any(value.kind is Kind.UNKNOWN and value.cls not in (None, BOTTOM.cls) for value in values)

    def _may_lack(self, binding: Binding, value: cst.BaseExpression | None) -> bool:
        """Return whether it is ``val_loss = None``: what is put there, if anything, may be no tensor."""
        named = binding.name != "loss" and names_loss(binding.name)
        return named and is_none(value) and not self._computed_by_part(binding)

    def _computed_by_part(self, binding: Binding) -> bool:
        """Return whether a part of a module gives the same variable elsewhere: ``loss = self.aux(x)``."""
        for other in binding.scope.bindings.get(binding.name, ()):
            match other.value:
                case cst.Call(func=cst.Attribute(value=cst.Name() as owner)):
                    definition = self.classes.instance_class(owner)
                    if definition is not None and self.classes.info(definition).kind is Kind.MODULE:
                        return True
        return False

    def is_plain(self, node: cst.CSTNode) -> bool:
        """Return whether an expression is a parameter that is declared as a number, a flag or a text.

        It is no tensor whatever its callers pass, so that they need not be computed to tell.
        """
        if not isinstance(node, cst.Name) or self.evaluator.declared is not None:
            return False
        bindings = self.names.bindings(node)
        return bool(bindings) and all(map(self._is_declared_plain, bindings))

    def _is_declared_plain(self, binding: Binding) -> bool:
        if binding.kind is not BindingKind.PARAMETER:
            return False
        declared = self.annotations.of_binding(binding)
        return declared is not None and declared.kind in _PLAIN and not self.is_one_of_set(binding)

    def of(self, binding: Binding) -> Value:
        """Return what a parameter can be, by its annotation, what the project passes, and its use.

        Where others may call the function, that is no constant, even if all calls in sight pass the same.
        ``constant_in_sight`` tells which one these pass.
        """
        param, function = binding.node, binding.scope.node
        assert isinstance(param, cst.Param) and isinstance(function, (cst.FunctionDef, cst.Lambda))
        if isinstance(function, cst.FunctionDef):
            owner = self.classes.owner(function)
            if owner is not None and self.classes.self_name(function) == binding.name:
                return self.evaluator.instance(owner)
            if owner is not None and self.classes.class_name(function) == binding.name:
                return self._own_class(owner)
        if isinstance(param.star, str) and param.star:
            if param.star == "**":
                return without_constants(self._given_by_name(function))
            return without_constants(Value(Kind.TUPLE, item=self._given_besides(function, param)))
        declared = self.annotations.of_binding(binding)
        named = names_device(binding.name)
        if (declared is None or declared.kind is Kind.NUMBER) and self.is_one_of_set(binding):
            passed = self._passed(function, binding.name, param)
            if passed is None or passed.kind is not Kind.NUMBER:
                return TENSOR.on(Device.ACCELERATOR)
        if declared is not None and declared.host and self._called_variously(function) and not named:
            return declared
        passed = self._passed(function, binding.name, param)
        if passed is not None and (
            self.has_other_users(self.classes.owner(function) or function) or self._is_wrapped(function)
        ):
            passed = without_constants(passed)
        agreed = self._agreed(declared, passed, named)
        if agreed is not None:
            return agreed
        if isinstance(function, cst.FunctionDef) and (declared is None or self._speaks_of_tensors(param)):
            given = self._hook_parameter(function, binding.name, param)
            if given.known:
                return given
        if isinstance(function, cst.Lambda):
            mapped = self._mapped(function, param)
            if mapped is BOTTOM or mapped.known:
                return mapped
        if named and (passed is None or passed.may_be(Kind.DEVICE)):
            return Value(Kind.DEVICE, device=Device.ACCELERATOR)
        if passed is BOTTOM:
            return passed
        if param.default is not None and self.value(param.default).kind is Kind.BOOL:
            # A switch, whatever its name suggests: ``return_loss=False``.
            return BOOL
        return passed if passed is not None else UNKNOWN

    @remembered
    def is_one_of_set(self, binding: Binding) -> bool:
        """Return whether a parameter of a method is one of what the class keeps on the device for its users:
        ``timestep`` where ``set_timesteps(…)`` makes ``self.timesteps`` there.

        Whoever goes through them hands on what they are, whatever the method declares.
        """
        if binding.kind is not BindingKind.PARAMETER:
            return False
        if self.link is not None and self.tree.is_elsewhere(binding.node):
            return self.counterpart(self.link.home(binding.node)).is_one_of_set(binding)
        owner = self.classes.owner(binding.scope.node)
        if owner is None:
            return False
        several = f"{binding.name}s"
        setter = self.classes.info(owner).methods.get(f"set_{several}")
        if setter is None:
            return False
        made = [
            self.value(each.value)
            for each in self.classes.assigned(owner, several)
            if each.value is not None and not each.path and self.tree.contains(setter, each.target)
        ]
        return any(value.kind is Kind.TENSOR and value.device is Device.ACCELERATOR for value in made)

    def has_other_users(self, definition: Definition | None) -> bool:
        """Return whether code that the project does not show may use a function or class."""
        if self.link is None or not isinstance(definition, (cst.FunctionDef, cst.ClassDef)):
            return True
        home = self.link.home(definition) if self.tree.is_elsewhere(definition) else self
        return not self.shows_users(home, definition.name.value)

    def shows_users(self, home: Any, name: str) -> bool:
        """Return whether the project shows all code that may use a name of the top level of a module."""
        link = self.link
        return link is not None and link.shows_users(home, name) and link.shows_programs(home)

    @remembered
    def is_replaced(self, definition: Definition | None, attr: str, *, container: bool = False) -> bool:
        """Return whether the project shows an heir of a class with an attribute of its own in place of one,
        or code that gives an object another one.
        """
        if not isinstance(definition, cst.ClassDef):
            return False
        family = self.classes.heirs(definition)
        if any(heir is not definition and self.classes.has_own(heir, attr) for heir in family):
            return True
        if self.classes.info(definition).method("__getattribute__") is not None:
            return True
        return self.is_given(definition, attr, container=container)

    @remembered
    def is_given(self, definition: Definition, attr: str, *, container: bool = False) -> bool:
        """Return whether code of the project gives a class, or an object of it, another attribute, or puts
        something into the ``container`` that it is.
        """
        family = self.classes.heirs(definition) if isinstance(definition, cst.ClassDef) else (definition,)
        words = words_of_stores(attr, container=container)
        return any(
            home._may_be_of(store, family)
            for home in self.in_sight(words)
            for store in home._stores_from_outside(attr, container)
        )

    @remembered
    def _stores_from_outside(self, attr: str, container: bool) -> tuple[Store, ...]:
        """Return what may set an attribute, but for the methods of classes that set their own."""
        return tuple(
            store
            for store in self.names.stores(attr, container=container)
            if not store.plain or self.classes.instance_class(store.owner) is None
        )

    def _is_wrapped(self, function: Function) -> bool:
        """Return whether a decorator may pass a function other arguments than those that callers write."""
        decorators = function.decorators if isinstance(function, cst.FunctionDef) else ()
        return any(
            (self.names.qualified(made.func if isinstance(made, cst.Call) else made) or "").partition(".")[0]
            not in _PASSING_ON
            for made in (each.decorator for each in decorators)
        )

    @remembered
    def _has_other_defaults(self, function: cst.FunctionDef) -> bool:
        """Return whether code of the project gives a function other defaults:
        ``step.__defaults__ = (2,)``.
        """
        return any(
            home._may_be_of(store, (function,))
            for home in self.in_sight(_DEFAULTS)
            for name in _DEFAULTS
            for store in home.names.stores(name, container=True)
            if store.name is not None
        )

    def in_sight(self, words: tuple[str, ...]) -> list[Parameters]:
        """Return the parameters of this file, and of those of its programs with one of some words."""
        others = () if self.link is None else self.link.companions(self, words)
        return [self, *map(self.counterpart, others)]

    def _may_be_of(self, store: Store, family: Collection[Definition]) -> bool:
        """Return whether what is set may be an attribute of one of some definitions, or of an instance.

        Where the name is computed only what is known to be one of them counts: most of such code fills in
        what a parser has read.
        """
        own = self.classes.instance_class(store.owner)
        if own is not None:
            return own in family
        value = self.value(store.owner)
        if value.definitions:
            return not value.definitions.isdisjoint(family)
        if value.cls is not None:
            return False
        if store.name is None:
            return value.origin is None and (value.kind is Kind.OBJECT or _may_have_attributes(value))
        return value.kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.MODULE)

    def may_be_made_by(self, store: Store, made: cst.CSTNode) -> bool:
        """Return whether what is set may be an attribute of what a call makes."""
        if self.classes.instance_class(store.owner) is not None:
            return False
        value = self.value(store.owner)
        if value.origin is not None:
            return value.origin is made
        if store.name is None:
            return value.kind is Kind.OBJECT or _may_have_attributes(value)
        return value.kind in (Kind.UNKNOWN, Kind.OBJECT)

    def constant_in_sight(self, node: cst.CSTNode) -> object:
        """Return the constant that an expression is; of a parameter, the one that all calls in sight pass."""
        bindings = self.names.bindings(node)
        if not bindings or any(not isinstance(binding.node, cst.Param) for binding in bindings):
            return self.value(node).constant
        return join(map(self._passed_for, bindings)).constant

    def _passed_for(self, binding: Binding) -> Value:
        param, function = binding.node, binding.scope.node
        if not isinstance(param, cst.Param) or not isinstance(function, (cst.FunctionDef, cst.Lambda)):
            return UNKNOWN
        return (None if param.star else self._passed(function, binding.name, param)) or UNKNOWN

    def _agreed(self, declared: Value | None, passed: Value | None, named_device: bool) -> Value | None:
        """Return what a parameter is by its annotation and its calls; None if both leave it open."""
        if passed is not None and passed is not BOTTOM and passed.known:
            if declared is None:
                return passed
            fits = declared.kind is passed.kind or not declared.known
            # ``decay: torch.Tensor``, which all that is seen calls with a number.
            promised = declared.tensorlike and passed.kind is Kind.NUMBER
            if fits or promised or (passed.kind is Kind.MODULE and self._leaves_open(declared)):
                return filled_in(passed, declared)
        if declared is None or not declared.known:
            return None
        if declared.tensorlike and passed is not None and passed is not BOTTOM:
            return declared.on(passed.device)
        if named_device and passed is None and declared.kind in (Kind.STRING, Kind.DEVICE):
            return declared.on(Device.ACCELERATOR)
        return declared

    def _mapped(self, function: cst.Lambda, param: cst.Param) -> Value:
        """Return what a lambda gets from ``filter(lambda p: …, parameters)``, ``map`` or ``sorted``."""
        call = self.tree.call_given(function)
        if call is None:
            return UNKNOWN
        if keywords(call).get("key") is function:
            return self._handed_to_key(call)
        if call.args[0].value is not function:
            return UNKNOWN
        position = function.params.params.index(param) + 1 if param in function.params.params else 0
        if not position or position >= len(call.args) or any(a.star for a in call.args):
            return UNKNOWN
        if self.names.qualified(call.func) not in ("builtins.filter", "builtins.map"):
            return UNKNOWN
        return self.evaluator.iterated(self.value(call.args[position].value))

    def _handed_to_key(self, call: cst.Call) -> Value:
        """Return what ``sorted(items, key=…)``, ``max``, ``min`` and ``items.sort`` hand to ``key``."""
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "sort":
            items = self.value(call.func.value)
            return self.evaluator.iterated(items) if items.kind is Kind.LIST else UNKNOWN
        if self.names.qualified(call.func) not in ("builtins.sorted", "builtins.max", "builtins.min"):
            return UNKNOWN
        single = len([arg for arg in call.args if arg.keyword is None]) == 1 and not call.args[0].star
        return self.evaluator.iterated(self.value(call.args[0].value)) if single else UNKNOWN

    def _called_variously(self, function: cst.CSTNode) -> bool:
        """Return whether so many calls may run a function that they will not agree on one constant."""
        if not isinstance(function, cst.FunctionDef):
            return False
        owner = self.classes.owner(function)
        name = (
            owner.name.value
            if owner is not None and function.name.value == "__init__"
            else function.name.value
        )
        return len(self.tree.calls_by_name.get(name, ())) > 1

    def _speaks_of_tensors(self, param: cst.Param) -> bool:
        """Return whether an unknown annotation names a tensor in some way: ``Float[Tensor, "b c"]``."""
        return param.annotation is not None and "Tensor" in self.tree.source(param.annotation.annotation)

    def _passed(self, function: Function, name: str, param: cst.Param) -> Value | None:
        """Return the join of what the calls in this file pass for a parameter; None if nothing calls it."""
        found: list[Value] = []
        sites = self.callgraph.callers(function)
        for argument in [each for call in sites for each in self.callgraph.passed(call, function, name)]:
            if argument.node is not None:
                found.append(self.value(argument.node))
            elif argument.unknown:
                return UNKNOWN
            elif param.default is not None:
                default = self.value(param.default)
                other = isinstance(function, cst.FunctionDef) and self._has_other_defaults(function)
                found.append(without_constants(default) if other else default)
        if isinstance(function, cst.FunctionDef) and not sites and self._is_only_parameter(function, param):
            found += map(defined, self.callgraph.decorated(function))
        if found:
            return join(found)
        if not sites and param.default is not None:
            default = self.value(param.default)
            if (chosen := chosen_device(default)) is not None:
                return chosen
            if default.kind is Kind.TENSOR:
                return TENSOR  # wherever that of a caller is
            # A default of None or of an empty string says nothing about what callers pass.
            if default.kind in (Kind.NUMBER, Kind.BOOL, Kind.DTYPE) or default.device is not Device.UNKNOWN:
                return default._replace(constant=MISSING, literal=False)
        return None

    def _is_only_parameter(self, function: cst.FunctionDef, param: cst.Param) -> bool:
        """Return whether a function, or method, takes just this one."""
        given = function.params.params[self.classes.self_name(function) is not None :]
        return len(given) == 1 and given[0] is param

    def _given_besides(self, function: Function, param: cst.Param) -> Value | None:
        """Return what the calls pass that ``*args`` takes; None if nothing is known of it."""
        found: list[Value] = []
        for call in self.callgraph.callers(function):
            given = self.callgraph.bound_to(call, function).given.get(param.name.value)
            found += map(self.value, given.nodes if given is not None else ())
            found += (self.evaluator.iterated(self.value(a.value)) for a in call.args if a.star == "*")
        return join(found) if found else None

    def _given_by_name(self, function: Function) -> Value:
        """Return the dict of what the calls pass that ``**kwargs`` takes."""
        fields: dict[str, list[Value]] = {}
        others: list[Value] = []
        for call in self.callgraph.callers(function):
            bound = self.callgraph.bound_to(call, function)
            named = {each.name for each in bound.signature or ()}
            for name, given in bound.given.items():
                if name not in named:
                    fields.setdefault(name, []).extend(map(self.value, given.nodes))
            others += (dict_item(self.value(a.value)) for a in call.args if a.star == "**")
        item = each_of([*(value for values in fields.values() for value in values), *others])
        joined = {name: join(values) for name, values in fields.items()}
        known = tuple(sorted((name, value) for name, value in joined.items() if value.known))
        return Value(Kind.DICT, item=item, fields=known)

    def _hook_parameter(self, function: cst.FunctionDef, name: str, param: cst.Param) -> Value:
        """Return parameters that a framework fills: batches of a Lightning step, the inputs of a forward."""
        owner = self.classes.owner(function)
        if owner is None:
            return UNKNOWN
        info = self.classes.info(owner)
        if info.kind is not Kind.MODULE:
            return UNKNOWN
        if info.lightning and function.name.value in _LIGHTNING_STEPS:
            return BATCH._replace(graph=Graph.DETACHED) if name == "batch" else UNKNOWN
        if function.name.value == "forward" and param.default is None:
            if ends(name, *LENGTHS_NAME) and self._moves_input(function, name):
                return BATCH._replace(part=True, device=Device.CPU)
            return BATCH._replace(part=True)
        return UNKNOWN

    def _moves_input(self, function: cst.FunctionDef, name: str) -> bool:
        """Return whether a function moves some of what it gets to the device itself, and not ``name``.

        What is asked where it is, or copied to the host, comes from the device as well.
        """
        parameters = {p.name.value for p in (*function.params.params, *function.params.kwonly_params)}
        moved: set[str] = set()
        for node in self.tree.descendants(function.body):
            match node:
                case cst.Attribute(value=cst.Name(asked), attr=cst.Name(attr)) if asked == name:
                    if attr in PLACE_OR_MOVE:
                        return False
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("cuda" | "to"))):
                    root = start_of(owner, cst.Attribute, cst.Subscript)
                    moved.update({root.value} & parameters if isinstance(root, cst.Name) else ())
        return bool(moved) and name not in moved

    def _own_class(self, owner: cst.ClassDef) -> Value:
        """Return the class that its class methods get; unknown if heirs are of another kind: of a mixin."""
        kind = self.classes.info(owner).kind
        alike = all(self.classes.info(heir).kind is kind for heir in self.classes.heirs(owner))
        return Value(Kind.CLASS, definition=owner) if alike else UNKNOWN

    def _leaves_open(self, declared: Value) -> bool:
        """Return whether a declared class is a protocol, of which models need not be instances."""
        if declared.kind is not Kind.OBJECT:
            return False
        definition = declared.definition
        if not isinstance(definition, cst.ClassDef):
            return False
        return any(map(is_abstract, self.classes.info(definition).methods.values()))


def _may_have_attributes(value: Value) -> bool:
    """Return whether something that is one of several is an object or a class in some cases."""
    return value.among is not None and not value.among.isdisjoint((Kind.OBJECT, Kind.CLASS, Kind.MODULE))


def _is_made(value: cst.BaseExpression | None) -> bool:
    """Return whether a table makes it of nothing to compute with: ``LOSSES.get(name)(**options)``."""
    match value:
        case cst.Call(func=cst.Call(), args=args):
            return all(arg.keyword is not None or arg.star == "**" for arg in args)
        case _:
            return False
