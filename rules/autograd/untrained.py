"""Models that are made, loaded or copied and never trained: teachers, target networks, frozen extractors.

Their passes stand in the middle of training, and what they give is a target or an input. A model counts only
if all of it is shown: what makes it, that it has parameters, whose parameters every optimizer gets, and that
the model is handed to nobody who might train it. In one file models are told apart by their names, in a
program of several by the calls that make them. By its name alone nothing is a teacher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import libcst as cst

from torchlint.semantics.api.families import LAYERS_WITHOUT_PARAMETERS
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.layers import RETURNS_SELF
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import AttributeBinding, Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Path, Source, Through, every, onward, returns, traced
from torchlint.semantics.spellings import is_none, last_name
from torchlint.semantics.values import Graph, Kind, Value

_PARAMETERS = frozenset({"parameters", "named_parameters"})
# What hands on the parameters that it is given.
_PASSING_ON = frozenset(
    {"builtins.list", "builtins.filter", "builtins.tuple", "itertools.chain", "itertools.chain.from_iterable"}
)
_COPIES = frozenset({"copy.deepcopy", "copy.copy"})
_WRAPPERS = frozenset(
    {
        "torch.compile",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
    }
)
_LIBRARIES = ("torchvision.models.", "timm.create_model", "torch.hub.load")
# Members of a model that are asked for by who trains it.
_TRAINING = frozenset({"zero_grad", "backward", "step", "fit", "training_step", "requires_grad_"})
# What gradients are read for, other than by an optimizer.
_BY_HAND = frozenset({"grad", "retain_grad", "register_hook", "register_full_backward_hook"})
_OF_HOST = frozenset(
    {Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE, Kind.NDARRAY, Kind.DEVICE, Kind.DTYPE}
)


class Untrained(Part):
    """The models of one file that no optimizer ever sees."""

    def runs(self, call: cst.Call) -> bool:
        """Return whether a call is a pass of such a model over what has no graph,
        so that autograd is of no use.
        """
        return self._is_pass(call) and all(every(self._has_no_graph(each.value)) for each in call.args)

    def _is_pass(self, call: cst.Call) -> bool:
        """Return whether a call is a pass of such a model."""
        module = self.module
        if not call.args or module.qualified(call.func) is not None:
            return False
        if module.value(call.func).kind not in (Kind.MODULE, Kind.UNKNOWN):
            return False
        return (bool(self._trained) and every(self._is(call.func))) or self._is_of_program(call.func)

    # ------------------------------------------------------------------ in several files

    @cached_property
    def trains_elsewhere(self) -> bool:
        """Whether another file of the program computes gradients."""
        return any(Backpropagation.of(each).passes for each in self.module.companions(".backward("))

    def _is_of_program(self, model: cst.BaseExpression) -> bool:
        """Return whether a model is made somewhere in the program, has parameters,
        and no optimizer gets them.
        """
        made = _makers(self.module, model) if self.link is not None else frozenset()
        if not made or not all(one is not None and every(_has_parameters(self.module, one)) for one in made):
            return False
        trained = trained_makers(self.module)
        return trained is not None and bool(trained) and _with_given(self.module, made).isdisjoint(trained)

    @traced(Through.PARAMETERS)
    def _is(self, model: cst.CSTNode, path: Path) -> bool | None:
        """Return whether this is such a model, under its own name or that of a parameter."""
        match model:
            case cst.Param(name=cst.Name(name)):
                return False if name in self._trained else None
            case cst.Name(name):
                bindings = self.module.bindings(model)
                if bindings and all(binding.kind is BindingKind.PARAMETER for binding in bindings):
                    return None
                return name not in self._trained and self._is_kept_apart(name, owned=False)
            case cst.Attribute(value=cst.Name(), attr=cst.Name(name)):
                return name not in self._trained and self._is_kept_apart(name, owned=True)
            case _:
                return False

    # ------------------------------------------------------------------ what is trained

    @cached_property
    def _trained(self) -> frozenset[str]:
        """The names of all models whose parameters an optimizer gets; none if this cannot be told of each."""
        module = self.module
        if not Backpropagation.of(module).passes or self.tree.mentions("add_param_group"):
            return frozenset()
        if not _BY_HAND.isdisjoint(self.tree.attributes_by_name):
            return frozenset()
        found: set[str] = set()
        for call in self.tree.nodes(cst.Call):
            word = last_name(call.func) or ""
            if not word[:1].isupper() and "opt" not in word.lower():
                continue
            given = self.optimized(call)
            for model in self.owners(given) if given is not None else ():
                names = self._names_of(model) if model else None
                if names is None:
                    return frozenset()
                found |= names
        return frozenset(found)

    def optimized(self, call: cst.Call) -> cst.BaseExpression | None:
        """Return what a call that makes an optimizer gets, of whatever library;
        the call itself if this is open.
        """
        dotted = self.module.qualified(call.func) or ""
        if dotted.startswith("torch.optim.lr_scheduler."):
            return None
        if dotted.startswith("torch.optim."):
            return self.module.argument(call, "params").node or call
        given = next((a.value for a in call.args if last_name(a.value) in _PARAMETERS), None)
        if given is not None:
            return given
        if self.module.callee(call) is not None or not isinstance(
            self.tree.parent(call), (cst.Assign, cst.Return)
        ):
            return None
        made = "opt" in (last_name(call.func) or "").lower() or self.module.value(call).kind is Kind.OPTIMIZER
        return call if made else None

    @traced(Through.PARAMETERS | Through.RETURNS)
    def owners(
        self, given: cst.CSTNode, path: Path
    ) -> cst.BaseExpression | list[Source] | Literal[False] | None:
        """Return the models that parameters belong to; False if one of them cannot be told."""
        match given:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in _PARAMETERS:
                return owner
            case cst.Call() if self.module.qualified(given.func) in _PASSING_ON:
                parts = [a.value for a in given.args if not isinstance(a.value, cst.Lambda)]
            case cst.Call() if self.module.callee(given) is not None:
                return None
            case cst.List() | cst.Tuple():
                parts = [element.value for element in given.elements]
            case cst.Dict():
                parts = [e.value for e in given.elements if isinstance(e, cst.DictElement) and _is_params(e)]
            case cst.BinaryOperation(operator=cst.Add()):
                parts = [given.left, given.right]
            case cst.ListComp() | cst.GeneratorExp():
                parts = [given.for_in.iter]
            case cst.Param():
                return None
            case cst.Name():
                bindings = self.module.bindings(given)
                if bindings and all(binding.kind is BindingKind.PARAMETER for binding in bindings):
                    return None
                plain = all(b.kind is BindingKind.ASSIGN and not b.path for b in bindings)
                filled = any(self._is_filled(binding) for binding in bindings)
                parts = [b.value for b in bindings if b.value is not None] if plain and not filled else []
            case _:
                parts = []
        return onward(*parts) or False

    def _is_filled(self, binding: Binding) -> bool:
        """Return whether a list of parameters is filled after it is made."""
        return any(isinstance(self.tree.parent(use), cst.Attribute) for use in self.module.uses(binding))

    @solved(frozenset())
    def _names_of(self, model: cst.BaseExpression) -> frozenset[str] | None:
        """Return the names that a model goes by: also what callers pass for a parameter;
        None if it has no name.

        A part (``net.head.parameters()``) says nothing of the rest, so that the whole counts as trained.
        """
        found: set[str] = set()
        while isinstance(model, cst.Attribute):
            found.add(model.attr.value)
            model = model.value
        if not isinstance(model, cst.Name):
            return None
        if model.value == "self":
            return frozenset(found) or None  # all of what the object holds
        found.add(model.value)
        for binding in self.module.bindings(model):
            function = binding.scope.node
            if binding.kind is BindingKind.LOOP:
                return None
            if binding.kind is not BindingKind.PARAMETER:
                continue
            if not isinstance(function, cst.FunctionDef):
                return None
            for caller in self.module.callers(function):
                given = self.module.argument(caller, binding.name).node
                names = self._names_of(given) if given is not None else None
                if names is None:
                    return None
                found |= names
        return frozenset(found)

    # ------------------------------------------------------------------ what is not

    @remembered
    def _is_kept_apart(self, name: str, *, owned: bool) -> bool:
        """Return whether all that goes by a name is made here, has parameters, and is handed to nobody.

        ``owned``: the name is that of an attribute.
        """
        made = list(self._made(name, owned))
        makers = [value for value in made if not self._passes_on(value, name)]
        if not makers or not all(isinstance(maker, cst.Call) for maker in makers):
            return False
        if any(self._is_another(maker) for maker in makers):
            return False
        uses = list(self._reads(name, owned))
        if not any(self._shows_parameters(maker) for maker in makers) and not any(
            attr in ("load_state_dict", *_PARAMETERS) for _, attr in uses
        ):
            return False
        if any(attr in _TRAINING for _, attr in uses):
            return False
        return all(attr is not None or self._is_harmless(read, name) for read, attr in uses)

    def _made(self, name: str, owned: bool) -> Iterator[cst.BaseExpression | None]:
        """Yield all values that a name or attribute is given anywhere; None for one that is unpacked."""
        bindings: list[Binding | AttributeBinding] = []
        if owned:
            bindings += self.module.names.attributes.get(name, ())
        else:
            for read in self.module.names.reads(name):
                bindings += (b for b in self.module.bindings(read) if b.kind is not BindingKind.PARAMETER)
        for binding in dict.fromkeys(bindings):
            plain = binding.kind is BindingKind.ASSIGN and not binding.path
            value = binding.value if plain else None
            if not is_none(value):
                yield value

    def _passes_on(self, value: cst.BaseExpression | None, name: str) -> bool:
        """Return whether a value is the same model again: wrapped, or moved."""
        match value:
            case cst.Call(args=[cst.Arg(value=inner), *_]) if self.module.qualified(value.func) in _WRAPPERS:
                return last_name(inner) == name
            case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Attribute() as owner)):
                return last_name(owner) == name
            case _:
                return False

    def _is_another(self, maker: cst.BaseExpression | None) -> bool:
        """Return whether it is ``net.cuda()``: a model that goes by another name as well,
        under which it may be trained.
        """
        while isinstance(maker, cst.Call) and isinstance(maker.func, cst.Attribute):
            if maker.func.attr.value not in RETURNS_SELF:
                return False
            maker = maker.func.value
        return isinstance(maker, (cst.Name, cst.Attribute))

    def _shows_parameters(self, maker: cst.BaseExpression | None) -> bool:
        """Return whether what makes a model shows that it has parameters:
        it makes one that is trained as well.
        """
        while isinstance(maker, cst.Call):
            dotted = self.module.qualified(maker.func) or ""
            if dotted in _COPIES or dotted.startswith(_LIBRARIES) or dotted.endswith(".from_pretrained"):
                return True
            if dotted.rpartition(".")[2] in self._made_for_training or (
                isinstance(maker.func, cst.Name) and maker.func.value in self._made_for_training
            ):
                return True
            # ``Net().to(device).eval()``
            maker = maker.func.value if isinstance(maker.func, cst.Attribute) else None
        return False

    @cached_property
    def _made_for_training(self) -> frozenset[str]:
        """The names of the functions and classes that make the models which are trained."""
        found = set()
        for name in self._trained:
            for value in (*self._made(name, False), *self._made(name, True)):
                while isinstance(value, cst.Call):
                    if isinstance(value.func, cst.Name):
                        found.add(value.func.value)
                    value = value.func.value if isinstance(value.func, cst.Attribute) else None
        return frozenset(found)

    def _reads(self, name: str, owned: bool) -> Iterator[tuple[cst.CSTNode, str | None]]:
        """Yield where a model of this name is read, and the member that it is asked for there."""
        reads: list[cst.CSTNode] = []
        if owned:
            attributes = self.tree.attributes_by_name.get(name, ())
            reads += (n for n in attributes if not isinstance(self.tree.parent(n), cst.AssignTarget))
        else:
            reads += self.module.names.reads(name)
        for read in reads:
            parent = self.tree.parent(read)
            owned = isinstance(parent, cst.Attribute) and parent.value is read
            yield read, parent.attr.value if isinstance(parent, cst.Attribute) and owned else None

    def _is_harmless(self, read: cst.CSTNode, name: str) -> bool:
        """Return whether a use of a model as a value trains nothing: it is called, wrapped,
        copied or shown.
        """
        parent = self.tree.parent(read)
        match parent:
            case cst.Call() if parent.func is read:
                return True
            case cst.Comparison() | cst.ComparisonTarget() | cst.If() | cst.BooleanOperation():
                return True
            case cst.Element():
                display = self.tree.parent(parent)
                return isinstance(self.tree.parent(display), cst.For) if display is not None else False
            case cst.Arg():
                call = self.tree.parent(parent)
                if not isinstance(call, cst.Call):
                    return False
                around = self.tree.parent(call)
                dotted = self.module.qualified(call.func)
                if dotted in _COPIES or isinstance(around, cst.Expr):
                    return True
                if isinstance(self.module.callee(call), cst.FunctionDef):
                    return True
                return isinstance(around, cst.Assign) and self._passes_on(call, name)
            case _:
                return False

    # ------------------------------------------------------------------ what goes in

    @traced(Through.OPERANDS)
    def _has_no_graph(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        """Return whether this certainly has no graph but that of other such models."""
        value = self.module.value(node)
        if _is_bare(value):
            return True
        match node:
            case cst.Call():
                return self._computed_from(node)
            case cst.Subscript():
                return onward(node.value)
            case cst.List() | cst.Tuple() if not path:
                return onward(*(element.value for element in node.elements)) or True
            case cst.Attribute():
                return value.kind is Kind.UNKNOWN and self._is_setting(node)
            case _:
                return None

    def _computed_from(self, call: cst.Call) -> list[Source] | bool:
        """Return what a pass, a function of torch or a method of a tensor is given; True for nothing,
        else False.
        """
        arguments = [argument.value for argument in call.args]
        if self._is_pass(call):
            return onward(*arguments)
        if not (self.module.qualified(call.func) or "").startswith("torch."):
            if not isinstance(call.func, cst.Attribute) or not self.module.value(call.func.value).tensorlike:
                return False
            arguments.append(call.func.value)
        return onward(*arguments) or True

    def _is_setting(self, node: cst.Attribute) -> bool:
        """Return whether it is ``self.max_action``: what a constructor was given,
        and is no tensor of this file.
        """
        assigned = self.module.names.attributes.get(node.attr.value, ())
        return bool(assigned) and all(
            isinstance(a.value, cst.Name)
            and all(b.kind is BindingKind.PARAMETER for b in self.module.bindings(a.value))
            for a in assigned
        )


# --- the models of a program ----------------------------------------------------------------------------


@remembered
def trained_makers(module: Module) -> frozenset[cst.CSTNode] | None:
    """Return the calls that make the models which the optimizers of a program get, and the parts of these.

    None if this cannot be told of an optimizer, or if gradients are asked for by others.
    """
    around = (module, *module.companions("ptim", "arameters", *sorted(_BY_HAND)))
    if any(each.tree.mentions("add_param_group") or _asks_by_hand(each) for each in around):
        return None
    found: dict[cst.CSTNode, None] = {}
    for each in around:
        for call in each.tree.nodes(cst.Call):
            given = Untrained.of(each).optimized(call)
            for model in Untrained.of(each).owners(given) if given is not None else ():
                made = _makers(each, model) if isinstance(model, cst.CSTNode) else _OPEN
                if None in made:
                    return None
                found.update(dict.fromkeys(one for one in made if one is not None))
    waiting = list(found)
    for maker in waiting:
        new = [part for part in _parts(module.home(maker), maker) if part not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return frozenset(found)


_OPEN: frozenset[cst.CSTNode | None] = frozenset((None,))


def _asks_by_hand(module: Module) -> bool:
    attributes = (node for word in _BY_HAND for node in module.tree.attributes_by_name.get(word, ()))
    return any(module.qualified(node) is None for node in attributes)


def _parts(module: Module, maker: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the calls that make what a model may hold: what it is given,
    and what its class or its maker makes.
    """
    if not isinstance(maker, cst.Call):
        return
    yield from _given(module, maker)
    classes = (one.definition for one in module.value(maker).each)
    lines = (
        member.node
        for one in classes
        if isinstance(one, cst.ClassDef)
        for member in module.classes.info(one).lineage
    )
    for body in (*lines, *module.callees(maker)):
        home = module.home(body)
        yield from home.tree.nodes_within(body, cst.Call)


def _with_given(module: Module, made: Iterable[cst.CSTNode | None]) -> set[cst.CSTNode]:
    """Return the calls that make models, with those that make what these are given,
    and may be wrapped around.
    """
    found = dict.fromkeys(one for one in made if one is not None)
    waiting = list(found)
    for maker in waiting:
        new = [one for one in _given(module.home(maker), maker) if one not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return set(found)


def _given(module: Module, maker: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the calls that make what a call is given, unless it copies that."""
    if isinstance(maker, cst.Call) and module.qualified(maker.func) not in _COPIES:
        for argument in maker.args:
            yield from (one for one in _makers(module, argument.value) if one is not None)


@traced(Through.RETURNS | Through.PARAMETERS)
def _makers(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | list[Source] | None:
    """Return the outermost calls that can have made a model,
    each of which makes another one whenever it runs.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in RETURNS_SELF:
            return onward(owner, path=path)
        case cst.Call(args=[first, *_]) if module.qualified(node.func) in _WRAPPERS:
            return onward(first.value, path=path)
        case cst.Call() if not path and _makes_anew(module, node):
            return node
        case _:
            return None


@solved(True)
def _makes_anew(module: Module, value: cst.CSTNode) -> bool:
    """Return whether an expression gives something that nobody else has: what it makes,
    or a function for it.
    """
    match value:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in RETURNS_SELF:
            return _makes_anew(module, owner)
        case cst.Call():
            if module.value(value.func).kind is Kind.CLASS:
                return True
            functions = module.callees(value)
            exits = [one for function in functions for one in returns(module, function)]
            if functions:
                return bool(exits) and all(_makes_anew(module, one) for one in exits)
            return module.value(value).kind is Kind.MODULE or _chosen_in(module, value) is not None
        case cst.IfExp():
            return _makes_anew(module, value.body) and _makes_anew(module, value.orelse)
        case cst.Name():
            bindings = module.bindings(value)
            around = module.function(value)
            return bool(bindings) and all(
                binding.kind is BindingKind.ASSIGN
                and not binding.path
                and binding.scope.node is around
                and binding.value is not None
                and _makes_anew(module, binding.value)
                for binding in bindings
            )
        case _:
            return False


def _chosen_in(module: Module, call: cst.Call) -> str | None:
    """Return the library of which ``getattr(library, name)(…)`` calls something."""
    match call.func:
        case cst.Call(func=cst.Name("getattr"), args=[owner, *_]):
            return module.qualified(owner.value)
        case _:
            return None


@traced(Through.RETURNS)
def _has_parameters(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether what a call makes certainly has parameters."""
    if not isinstance(node, cst.Call) or path:
        return None
    dotted = module.qualified(node.func) or ""
    if dotted in _COPIES or dotted.startswith(_LIBRARIES) or dotted.endswith(".from_pretrained"):
        return True
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in RETURNS_SELF:
        return onward(node.func.value)
    if (library := _chosen_in(module, node)) is not None:
        return f"{library}.".startswith(_LIBRARIES)
    made = module.value(node)
    if made.kind is not Kind.MODULE or not isinstance(made.definition, cst.ClassDef):
        return None
    for member in module.classes.info(made.definition).lineage:
        home = module.home(member.node)
        for call in home.tree.nodes_within(member.node, cst.Call):
            layer = home.qualified(call.func) or ""
            if layer.startswith("torch.nn.") and layer.rpartition(".")[2][:1].isupper():
                if layer not in LAYERS_WITHOUT_PARAMETERS:
                    return True
    return False


def _is_bare(value: Value) -> bool:
    """Return whether a value has no graph for certain."""
    return value.kind in _OF_HOST or (value.tensorlike and value.graph is Graph.DETACHED)


def _is_params(pair: cst.DictElement) -> bool:
    return isinstance(pair.key, cst.SimpleString) and pair.key.evaluated_value == "params"
