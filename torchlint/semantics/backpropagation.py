"""Where gradients are computed, and which values they flow back through.

Two questions: what a piece of code does with gradients (``computes_gradients``), and whether something kept
in a name or attribute is ever backpropagated (``feeds``). The answers follow values through names,
attributes, containers and the functions of the file; where in doubt, a value counts as backpropagated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.api.results import NN_LOSSES
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import Role, begins, ends, has, names_criterion
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.origins import leads_outside
from torchlint.semantics.reach import Reach
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.sources import Path, Through, returns, some, traced
from torchlint.semantics.spellings import last_name, start_of, word_of
from torchlint.semantics.values import Graph, Kind, item_of

Place = Binding | str | cst.CSTNode
"""What holds a value: a definition of a name, an attribute (by its name, whatever the object), or the
function that returns it."""

# Methods and attributes behind which no gradient flows.
_CUTS = frozenset(
    {
        *("detach", "detach_", "item", "tolist", "numpy", "data", "grad", "backward"),
        *("shape", "size", "dim", "ndim", "dtype", "device", "argmax", "argmin"),
    }
)
_HOST = frozenset({Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE, Kind.NDARRAY})
_BACKWARD = frozenset({"backward", "manual_backward"})
_FUNCTIONS = frozenset({"torch.autograd.backward", "torch.autograd.grad"})
# One of these is written wherever something computes gradients.
_MENTIONED = ("backward", "autograd", "scaler")
# Calls that ask for gradients of something, or prepare for it.
_PREPARATIONS = frozenset(
    {
        "torch.enable_grad",
        "torch.autograd.backward",
        "torch.autograd.grad",
        "torch.autograd.gradcheck",
        "torch.autograd.gradgradcheck",
    }
)
_PREPARATION_MODULES = (
    *("torch.autograd.functional.", "torch.func.", "functorch.", "captum.", "torchattacks."),
    *("advertorch.attacks.", "foolbox.attacks.", "autoattack.", "cleverhans.", "art.attacks."),
    *("pytorch_grad_cam.", "torchcam.", "zennit."),
)
# Methods of a tensor that raise if it has no graph.
_NEED_GRAPHS = frozenset({"retain_grad", "register_hook"})
_FORWARD_HOOK = "register_forward_"
_QUESTIONS = frozenset({"torch.is_grad_enabled", "torch.is_inference_mode_enabled"})
_ABOUT_GRAPHS = ("grad_fn", "is_leaf", "requires_grad")
_OF_FORWARD = "needs_input_grad"
# What is refused for tensors with a graph, besides methods that write to parameters.
_REFUSED = frozenset({"numpy.array", "numpy.asarray", "copy.deepcopy"})
_IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_")
_REFUSAL = re.compile(r"\b(RuntimeError|Exception|BaseException)\b")
_ENCODERS = frozenset({f"torch.nn.Transformer{part}" for part in ("", "Encoder", "EncoderLayer")})
_ASKING = (*_ABOUT_GRAPHS, _OF_FORWARD, "_enabled", "Transformer")
_FILLING = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "put", "setdefault"})
# Calls into other files that train what they are given, by their names.
_TRAINING = (Role.TRAINING, Role.LEARNING)
_LOOPS = (BindingKind.LOOP, BindingKind.COMPREHENSION)
_FRAMEWORK_STEPS = frozenset({"training_step", "compute_loss"})


@dataclass(frozen=True, slots=True)
class Backward:
    """A call that computes gradients of its ``roots``; ``retains`` if the graph may live on behind it.

    ``losses`` are those of the roots that are surely tensors with a graph, and no engine that handles them.
    """

    call: cst.Call
    roots: tuple[cst.BaseExpression, ...]
    losses: tuple[cst.BaseExpression, ...]
    retains: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """What some values are computed from, however far back.

    ``calls`` are those that lead there. ``own`` and ``own_calls`` leave out what is inside of a function
    that one of the calls runs.
    """

    places: frozenset[Place]
    own: frozenset[Place]
    calls: frozenset[cst.CSTNode]
    own_calls: frozenset[cst.CSTNode]


class Backpropagation(Part):
    """The backward passes of one file, and what they reach, in other files as well."""

    answers_for_all = frozenset({"reaches", "feeds"})

    # ------------------------------------------------------------------ backward passes

    @cached_property
    def passes(self) -> list[Backward]:
        """Every call in the file that computes gradients."""
        if not any(map(self.tree.mentions_in_any_case, _MENTIONED)):
            return []
        found = (self._backward(call) for call in self.tree.nodes(cst.Call))
        return [backward for backward in found if backward is not None]

    @cached_property
    def happens(self) -> bool:
        """Whether the file computes gradients, or returns what a framework backpropagates."""
        return bool(self.passes) or any(True for _ in self.framework_roots)

    def _backward(self, call: cst.Call) -> Backward | None:
        module = self.module
        arguments = tuple(argument.value for argument in call.args if argument.star == "")
        if module.qualified(call.func) in _FUNCTIONS:
            return Backward(call, arguments[:1], (), self._retains(call))
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _BACKWARD:
            callee = module.callee(call)
            if callee is not None and not leads_outside(module, call):
                return None
            kind = module.value(func.value).kind
            hands_on = func.attr.value != "backward" or callee is not None or kind is Kind.ACCELERATOR
            losses = arguments if hands_on else () if arguments else (func.value,)
            return Backward(call, (func.value, *arguments), losses, self._retains(call))
        if arguments and "scaler" in word_of(func).lower() and module.callee(call) is None:
            # ``loss_scaler(loss, optimizer, ...)``: scales, backpropagates and steps.
            return Backward(call, arguments[:1], arguments[:1], False)
        return None

    def _retains(self, call: cst.Call) -> bool:
        for argument in call.args:
            if argument.keyword is not None and argument.keyword.value in ("retain_graph", "create_graph"):
                return self.module.value(argument.value).constant is not False
            if argument.star == "**":
                return True
        return False

    @property
    def framework_roots(self) -> Iterator[cst.BaseExpression]:
        """What hooks return to a framework that backpropagates it."""
        for statement in self.tree.nodes(cst.Return):
            function = self.module.function(statement)
            if (
                statement.value is not None
                and isinstance(function, cst.FunctionDef)
                and function.name.value in _FRAMEWORK_STEPS
                and self.module.classes.owner(function) is not None
            ):
                yield statement.value

    @cached_property
    def calls(self) -> frozenset[cst.Call]:
        """The calls that start the backward passes."""
        return frozenset(backward.call for backward in self.passes)

    def steps(self, node: cst.CSTNode) -> bool:
        """Return whether ``node`` or a function that it calls runs a backward pass."""
        return self.of_passes.holds(node) or self._leads_elsewhere(node, "of_passes")

    @cached_property
    def of_passes(self) -> Reach:
        """The code that leads to backward passes."""
        return Reach(self.module, [backward.call for backward in self.passes])

    # ------------------------------------------------------------------ code that needs autograd

    def computes_gradients(self, node: cst.CSTNode) -> bool:
        """Return whether ``node``, or a function that it calls, asks for gradients in any way."""
        return self._of_gradients.holds(node) or self._leads_elsewhere(node, "_of_gradients")

    def _leads_elsewhere(self, node: cst.CSTNode, reach: str) -> bool:
        """Return whether ``node`` may call a function of any file that leads to what is looked for."""
        calls = self.tree.nodes_within(node, cst.Call)
        return any(self._leads(callee, reach) for call in calls for callee in self.module.callees(call))

    @solved(False)
    def _leads(self, function: Function, reach: str) -> bool:
        if getattr(self, reach).holds(function.body):
            return True
        return self._leads_elsewhere(function.body, reach)

    @cached_property
    def everywhere(self) -> list[Backpropagation]:
        """What is known of the backward passes of all files of the programs that the file is part of."""
        others = () if self.link is None else self.link.companions(self, _MENTIONED)
        found = [self, *map(Backpropagation.of, others)]
        return [each for each in found if each is self or each.passes]

    @cached_property
    def _of_gradients(self) -> Reach:
        marks: list[cst.CSTNode] = [backward.call for backward in self.passes]
        marks.extend(filter(self._prepares, self.tree.nodes(cst.Call, cst.Assign, cst.Attribute)))
        return Reach(self.module, marks)

    def _prepares(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Call():
                dotted = self.module.qualified(node.func) or ""
                if dotted in _PREPARATIONS or _wants_gradients(dotted):
                    return True
                if dotted == "torch.set_grad_enabled" and node.args:
                    return self.module.value(node.args[0].value).constant is not False
                if isinstance(node.func, cst.Attribute) and node.func.attr.value == "adapt":
                    # Learners of few-shot models take gradient steps of their own.
                    return True
                if isinstance(node.func, cst.Attribute) and node.func.attr.value == "requires_grad_":
                    return not (node.args and self.module.value(node.args[0].value).constant is False)
                if isinstance(node.func, cst.Attribute) and node.func.attr.value in _NEED_GRAPHS:
                    return True
                if self._trains_elsewhere(node, dotted) or self._goes_along_graph(node, dotted):
                    return True
                return any(
                    argument.keyword is not None
                    and argument.keyword.value in ("requires_grad", "create_graph")
                    and self.module.value(argument.value).constant is not False
                    for argument in node.args
                )
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("requires_grad")))]):
                return self.module.value(node.value).constant is not False
            case cst.Attribute(attr=cst.Name("grad")):
                return True
            case _:
                return False

    def _trains_elsewhere(self, call: cst.Call, dotted: str) -> bool:
        """Return whether another file gets a module or an optimizer to train: ``fit(head, features)``."""
        if not begins(word_of(call.func), *_TRAINING) or self.module.callee(call) is not None:
            return False
        return not dotted.startswith("torch.") and any(
            self.module.value(argument.value).kind in (Kind.MODULE, Kind.OPTIMIZER, Kind.PARAMETERS)
            for argument in call.args
        )

    def _goes_along_graph(self, call: cst.Call, dotted: str) -> bool:
        """Return whether code out of sight wants gradients, by its name: ``adversary.perturb(images)``."""
        if not call.args or dotted.startswith("torch."):
            return False
        func, last = call.func, word_of(call.func)
        owner = func.value if isinstance(func, cst.Attribute) else None
        if last.endswith("loss"):
            return False
        of_library = self._is_of_library(owner or func)
        named = func if has(last, Role.INPUT_GRADIENT) else None
        if named is None and owner is not None and ends(last_name(owner), Role.INPUT_GRADIENT):
            named = owner
        # What a call runs is asked last: that is dear, and nearly no call has such a name.
        if (named is None and not of_library) or self.module.callee(call) is not None:
            return False
        if of_library or named is None:
            return of_library
        return self.module.value(named).kind in (Kind.UNKNOWN, Kind.OBJECT)

    def _is_of_library(self, node: cst.BaseExpression) -> bool:
        """Return whether an object is an attack of a library: ``atk = torchattacks.PGD(model)``."""
        if not isinstance(node, cst.Name):
            return False
        made = (binding.value for binding in self.module.bindings(node) if not binding.path)
        return any(
            isinstance(value, cst.Call) and _wants_gradients(self.module.qualified(value.func) or "")
            for value in made
        )

    @cached_property
    def asked_for(self) -> bool:
        """Whether a file of the program asks if a tensor has a graph, or if autograd is on, or a hook may.

        A file that catches the error asks, too.
        """
        others = () if self.link is None else self.link.companions(self, _ASKING)
        return any(each._asks for each in (self, *map(Backpropagation.of, others))) or self._hooks_ask

    @cached_property
    def _hooks_ask(self) -> bool:
        """Whether the program has forward hooks, and code that needs the graph of what a module returns."""
        others = () if self.link is None else self.link.companions(self, (_FORWARD_HOOK, *_NEED_GRAPHS))
        trees = [self.tree, *(other.tree for other in others)]
        return any(tree.mentions(_FORWARD_HOOK) for tree in trees) and any(
            name in tree.calls_by_name for tree in trees for name in _NEED_GRAPHS
        )

    @cached_property
    def _asks(self) -> bool:
        if any(map(self._awaits_refusal, self.tree.nodes(cst.Try))):
            return True
        if any(map(self._tells_forward, self.tree.attributes_by_name.get(_OF_FORWARD, ()))):
            return True
        for attribute in self.tree.nodes(cst.Attribute):
            if attribute.attr.value not in _ABOUT_GRAPHS:
                continue
            if isinstance(self.tree.parent(attribute), (cst.AssignTarget, cst.Del)):
                continue
            if attribute.attr.value == "grad_fn":
                return True
            if not self.module.value(attribute.value).leaf and self.carries_graph(attribute.value):
                return True
        names = {self.module.qualified(call.func) for call in self.tree.nodes(cst.Call)}
        # With padding, encoders of torch leave out what is padded if they run without autograd.
        return not names.isdisjoint(_QUESTIONS) or (
            not names.isdisjoint(_ENCODERS) and self.module.mentions("padding_mask")
        )

    def _tells_forward(self, read: cst.Attribute) -> bool:
        """Return whether a forward pass, which autograd may not record, is told what needs a gradient."""
        function = self.module.function(read)
        return not (isinstance(function, cst.FunctionDef) and function.name.value == "backward")

    def _awaits_refusal(self, attempt: cst.Try) -> bool:
        """Return whether a statement may be there to find out that a tensor has a graph."""
        types = (handler.type for handler in attempt.handlers)
        if all(each is not None and not _REFUSAL.search(self.module.source(each)) for each in types):
            return False
        for call in self.tree.nodes_within(attempt.body, cst.Call):
            name = self.module.qualified(call.func)
            if name in _REFUSED:
                return True
            if name is None and isinstance(call.func, cst.Attribute):
                method = call.func.attr.value
                if (method == "numpy" and not call.args) or _IN_PLACE.fullmatch(method):
                    return True
        return False

    # ------------------------------------------------------------------ what they reach

    def feeds(self, place: cst.BaseExpression) -> bool:
        """Return whether what is kept under this name or attribute may take part in a backward pass."""
        kept = set(self._kept_in(place))
        return any(not kept.isdisjoint(each._reached.places) for each in self.everywhere)

    def _kept_in(self, place: cst.BaseExpression) -> Iterable[Place]:
        """Return the definitions that a name may have where something is put into what it holds,
        or the attribute.

        ``log_probs.append(p)`` is none of ``log_probs = torch.cat(log_probs).detach()`` behind the loop.
        """
        name = start_of(place, cst.Subscript)
        reaching = self.module.bindings(name)
        return reaching or self.keys(place)

    def is_loss(self, node: cst.BaseExpression) -> bool:
        """Return whether ``backward`` is called on a name, so that it must be a tensor with a graph.

        So is an item of a container all of whose items are added up for ``backward``.
        """
        if isinstance(node, cst.Subscript):
            return self.holds_losses(node.value)
        if not isinstance(node, cst.Name):
            return False
        bindings = self.module.bindings(node)
        losses, _ = self.losses
        return bool(bindings) and all(b in losses or self.is_summand(b) for b in bindings)

    def is_summand(self, binding: Binding) -> bool:
        """Return whether a loop goes over the items of a container that are added up for ``backward``."""
        if binding.kind not in _LOOPS or binding.value is None:
            return False
        container = _container_of(binding.value, binding.path)
        return container is not None and self.holds_losses(container)

    def holds_losses(self, node: cst.BaseExpression) -> bool:
        """Return whether a name is that of a dict or list whose items are added up for ``backward``."""
        if not isinstance(node, cst.Name):
            return False
        _, containers = self.losses
        bindings = self.module.bindings(node) if containers else ()
        return bool(bindings) and all(binding in containers for binding in bindings)

    @cached_property
    def losses(self) -> tuple[frozenset[Binding], frozenset[Binding]]:
        """The definitions of losses, and of containers of losses.

        Losses are what ``backward`` is called on, and the terms called after one.
        """
        found: set[Binding] = set()
        containers: set[Binding] = set()
        waiting = [(loss, False) for backward in self.passes for loss in backward.losses]
        while waiting:
            node, term = waiting.pop()
            match node:
                case cst.Name():
                    if term and not self._is_called_loss(node):
                        continue
                    for binding in self.module.bindings(node):
                        if binding.kind is BindingKind.ASSIGN and binding not in found:
                            found.add(binding)
                            if binding.value is not None and not binding.path:
                                waiting.append((binding.value, False))
                case cst.BinaryOperation(left=one, right=other):
                    if self.module.value(other).kind is Kind.NUMBER:
                        waiting.append((one, term))
                    elif self.module.value(one).kind is Kind.NUMBER:
                        waiting.append((other, term))
                    elif isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)):
                        # One of the two has the graph, and maybe both.
                        waiting += [(one, True), (other, True)]
                case cst.Call(func=cst.Attribute(attr=cst.Name("scale")), args=[argument]):
                    waiting.append((argument.value, term))
                case cst.Call(args=[argument, *_]) if self.module.qualified(node.func) == "builtins.sum":
                    container = self._summed(argument.value)
                    if container is not None:
                        containers.update(self.module.bindings(container))
                case cst.Call():
                    found.update(self._compared(node))
        return frozenset(found), frozenset(containers)

    def _compared(self, call: cst.Call) -> tuple[Binding, ...]:
        """Return the definitions of the one argument that a criterion can have the graph of its result from.

        ``criterion(prediction, target)`` of which the file knows that the target has no graph.
        """
        criterion = self.module.value(call.func)
        if criterion.kind is not Kind.MODULE or criterion.definition is not None:
            return ()
        if not names_criterion(last_name(call.func)) and criterion.cls not in NN_LOSSES:
            return ()
        given = [argument.value for argument in call.args]
        open_ones = [one for one in given if not self._has_no_graph(one)]
        if len(given) < 2 or len(open_ones) != 1 or not isinstance(open_ones[0], cst.Name):
            return ()
        bindings = self.module.bindings(open_ones[0])
        return bindings if all(binding.kind is BindingKind.ASSIGN for binding in bindings) else ()

    def _has_no_graph(self, node: cst.BaseExpression) -> bool:
        value = self.module.value(node)
        return value.kind in _HOST or (value.tensorlike and value.graph is Graph.DETACHED)

    def _summed(self, summed: cst.BaseExpression) -> cst.Name | None:
        """Return the name of the container whose items ``sum`` adds up, by itself or times their weights.

        Not if a condition picks some, for the others may be reports: all but those that have a weight.
        """
        if not isinstance(summed, (cst.GeneratorExp, cst.ListComp)):
            return _container_of(summed, ())
        loop = summed.for_in
        if loop.inner_for_in is not None or not all(_has_weight(c.test, summed.elt) for c in loop.ifs):
            return None
        terms = (
            (summed.elt.left, summed.elt.right)
            if isinstance(summed.elt, cst.BinaryOperation) and isinstance(summed.elt.operator, cst.Multiply)
            else (summed.elt,)
        )
        for term in terms:
            for binding in self.module.bindings(term):
                if binding.kind is BindingKind.COMPREHENSION and binding.value is not None:
                    return _container_of(binding.value, binding.path)
            if isinstance(term, cst.Subscript) and isinstance(term.value, cst.Name):
                if term.value.value in (last_name(loop.iter), _owner_name(loop.iter)):
                    return term.value
        return None

    def _is_called_loss(self, node: cst.Name) -> bool:
        """Return whether a tensor goes by the name of a loss."""
        value = self.module.value(node)
        return (
            "loss" in node.value.lower() and value.kind is Kind.TENSOR and value.graph is not Graph.DETACHED
        )

    def reaches(self, target: cst.CSTNode) -> bool:
        """Return whether what is assigned or called here, or returned by this function, is backpropagated.

        Unlike ``feeds`` this is about one assignment, not about all that a name is ever given.
        """
        if isinstance(target, cst.Call):
            return any(target in each._reached.calls for each in self.everywhere)
        place: Place
        if isinstance(target, cst.Attribute):
            place = target.attr.value
        elif isinstance(target, (cst.FunctionDef, cst.Lambda)):
            place = target
        else:
            place = self.module.binding_of(target) or target
        return any(place in each._reached.places for each in self.everywhere)

    def carries_graph(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression, as far as the file shows, holds a tensor with its graph."""
        value = self.module.value(node)
        if value.tensorlike:
            return value.graph is not Graph.DETACHED
        item = item_of(value)
        if value.kind in _HOST or (item is not None and item.kind in _HOST):
            return False
        if any(isinstance(inner, cst.Call) and self.is_attached(inner) for inner in self.live(node)):
            return True
        flow = self.flow([node])
        if any(isinstance(key, Binding) and self.is_attached(key) for key in flow.places):
            return True
        # What a container holds, and what an object of another file is made of.
        return any(isinstance(call, cst.Call) and self.is_attached(call) for call in flow.calls)

    def live(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield ``node`` and the nodes below it that gradients can flow back to."""
        waiting = [node]
        while waiting:
            current = waiting.pop()
            if isinstance(current, (cst.Lambda, cst.Comparison)):
                continue
            if isinstance(current, cst.Call) and self._is_cut(current):
                continue
            yield current
            waiting.extend(self._children(current))

    def is_attached(self, place: cst.BaseExpression | Binding) -> bool:
        """Return whether an expression or a definition is a tensor that certainly has a graph."""
        value = (
            self.module.inference.binding(place) if isinstance(place, Binding) else self.module.value(place)
        )
        return value.tensorlike and value.graph is Graph.ATTACHED

    @remembered
    def keys(self, place: cst.BaseExpression) -> AbstractSet[Place]:
        """Return the definitions, or the attribute, that keep an expression or one of its items."""
        start = start_of(place, cst.Subscript)
        if isinstance(start, cst.Attribute):
            return {start.attr.value: None}.keys()
        scope = self.module.names.lookup(start.value, start) if isinstance(start, cst.Name) else None
        if scope is None or not isinstance(start, cst.Name):
            return frozenset()
        of_name: Iterable[Place] = scope.bindings.get(start.value, ())
        return dict.fromkeys(of_name).keys()

    @cached_property
    def _reached(self) -> Flow:
        handed = list(self._backpropagated_elsewhere())
        return self.flow([*self._roots, *handed]) if handed else self._reached_here

    @cached_property
    def _reached_here(self) -> Flow:
        return self.flow(self._roots)

    @property
    def _roots(self) -> list[cst.BaseExpression]:
        """What the backward passes of the file start from."""
        return [*(root for backward in self.passes for root in backward.roots), *self.framework_roots]

    def _backpropagated_elsewhere(self) -> Iterator[cst.BaseExpression]:
        """Yield what the file hands to a function of another file that backpropagates it."""
        for call in self.tree.nodes(cst.Call) if self.link is not None else ():
            if not call.args or self.module.qualified(call.func) is not None:
                continue
            for callee in self.module.callees(call):
                if isinstance(callee, cst.FunctionDef) and self.tree.is_elsewhere(callee):
                    for name in self.backpropagated(callee):
                        yield from self.module.inference.callgraph.bound_to(call, callee).get(name).nodes

    @remembered
    def backpropagated(self, function: cst.FunctionDef) -> tuple[str, ...]:
        """Return the parameters of a function that its own file backpropagates."""
        if not self.passes:
            return ()
        scope = self.module.names.scope_of(function)
        return tuple(
            name
            for name, bindings in scope.bindings.items()
            if any(b.kind is BindingKind.PARAMETER and b in self._reached_here.places for b in bindings)
        )

    def flow(self, roots: Iterable[cst.BaseExpression]) -> Flow:
        """Return what the values of these expressions are computed from, however far back.

        A function that is entered through a call gets what this call gives it, and nothing of what others
        do: a loss computed by a helper in training says nothing about its use in validation.
        """
        places: set[tuple[Place, Function | None]] = set()
        calls: set[tuple[cst.CSTNode, Function | None]] = set()
        waiting: list[tuple[cst.CSTNode, Function | None]] = [(root, None) for root in roots]
        effort = self.tree.effort
        while waiting:
            node, entered = waiting.pop()
            effort.spend(1)
            match node:
                case cst.Name():
                    keys: Iterable[Place] = self.module.bindings(node)
                case cst.Attribute():
                    if node.attr.value in _CUTS or self.module.qualified(node) is not None:
                        continue
                    keys = [node.attr.value]
                    waiting.append((node.value, entered))
                case cst.Call():
                    if self._is_cut(node):
                        continue
                    calls.add((node, entered))
                    waiting.extend((argument.value, entered) for argument in node.args)
                    if isinstance(node.func, cst.Attribute):
                        waiting.append((node.func.value, entered))
                    for callee in self.module.callees(node):
                        if (callee, callee) not in places:
                            places.add((callee, callee))
                            waiting.extend((value, callee) for value in returns(self.module, callee))
                    continue
                case cst.Lambda() | cst.Comparison():
                    continue
                case _:
                    waiting.extend((child, entered) for child in self._children(node))
                    continue
            for key in keys:
                inside = entered if self._is_local(key, entered) else None
                if (key, inside) not in places and (key, None) not in places:
                    places.add((key, inside))
                    waiting.extend((source, inside) for source in self._sources(key, inside is not None))
        return Flow(
            frozenset(place for place, _ in places),
            frozenset(place for place, inside in places if inside is None),
            frozenset(call for call, _ in calls),
            frozenset(call for call, inside in calls if inside is None),
        )

    def _is_local(self, key: Place, function: Function | None) -> bool:
        """Return whether a place is a variable of this function."""
        if function is None or not isinstance(key, Binding):
            return False
        holder = key.scope.node
        return holder is function or (
            not isinstance(holder, (cst.FunctionDef, cst.Lambda)) and self.module.function(holder) is function
        )

    def _is_cut(self, call: cst.Call) -> bool:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _CUTS:
            return True
        value = self.module.value(call)
        return value.kind in _HOST or (value.kind is Kind.TENSOR and value.graph is Graph.DETACHED)

    def _children(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        return iter(self.tree.parts(node))

    @remembered
    def _sources(self, key: Place, entered: bool) -> list[cst.CSTNode]:
        """Return the expressions that a name or attribute gets its value from.

        The parameters of a function that was ``entered`` get theirs from the call that led into it.
        """
        return list(self._find_sources(key, entered))

    def _find_sources(self, key: Place, entered: bool) -> Iterator[cst.CSTNode]:
        if isinstance(key, str):
            for assigned in self.module.names.attributes.get(key, ()):
                if assigned.value is not None:
                    yield assigned.value
            yield from self._filled.get(key, ())
            return
        if not isinstance(key, Binding) or key.kind in (
            BindingKind.IMPORT,
            BindingKind.FUNCTION,
            BindingKind.CLASS,
        ):
            return
        if key.kind is BindingKind.PARAMETER:
            if not entered:
                yield from self._passed(key)
        elif key.value is not None:
            yield key.value
        if key.kind is BindingKind.AUGMENT:
            # What it was before.
            yield key.node
        for use in self.module.uses(key):
            yield from self._filled.get(use, ())
            for parameter in self._received(use):
                yield from (inner for inner in self.module.uses(parameter) if inner in self._filled)

    def _received(self, use: cst.Name) -> Iterator[Binding]:
        """Yield the parameters of a function of the file as which it is given a container."""
        call = self.tree.call_given(use)
        if call is None:
            return
        for callee in self.module.callees(call):
            bound = self.module.inference.callgraph.bound_to(call, callee)
            for name, bindings in self.module.names.scope_of(callee).bindings.items():
                for binding in bindings:
                    if binding.kind is BindingKind.PARAMETER and use in bound.get(name).nodes:
                        yield binding

    def _passed(self, parameter: Binding) -> Iterator[cst.CSTNode]:
        function = self.tree.enclosing(parameter.node, cst.FunctionDef, cst.Lambda)
        if function is None:
            return
        for call in self.module.callers(function):
            yield from self.module.call(call).get(parameter.name).nodes

    @cached_property
    def _filled(self) -> dict[cst.CSTNode | str, list[cst.BaseExpression]]:
        """What is put into containers: by the read of the container's name, or by its attribute."""
        filled: dict[cst.CSTNode | str, list[cst.BaseExpression]] = {}

        def add(owner: cst.CSTNode, values: Iterable[cst.BaseExpression]) -> None:
            while isinstance(owner, (cst.Subscript, cst.Call)):
                if isinstance(owner, cst.Call):
                    # ``groups.setdefault(key, []).append(value)``
                    owner = owner.func.value if isinstance(owner.func, cst.Attribute) else owner.func
                else:
                    owner = owner.value
            key: cst.CSTNode | str = owner.attr.value if isinstance(owner, cst.Attribute) else owner
            filled.setdefault(key, []).extend(values)

        for call in self.tree.nodes(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _FILLING:
                add(call.func.value, (argument.value for argument in call.args))
            elif len(call.args) == 3 and self.module.qualified(call.func) == "builtins.setattr":
                name = self.module.value(call.args[1].value).constant
                if isinstance(name, str):
                    filled.setdefault(name, []).append(call.args[2].value)
        for assign in self.tree.nodes(cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Subscript):
                    add(target.target, [assign.value])
        for augmented in self.tree.nodes(cst.AugAssign):
            if isinstance(augmented.target, cst.Subscript):
                add(augmented.target, [augmented.value])
        return filled


def _container_of(iterable: cst.BaseExpression, path: tuple[object, ...]) -> cst.Name | None:
    """Return the name of the container that a loop goes over: ``x``, ``x.values()``, ``x.items()``."""
    match iterable:
        case cst.Name() if not path:
            return iterable
        case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("values")), args=[]):
            return owner if not path else None
        case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("items")), args=[]):
            return owner if path == (1,) else None
        case _:
            return None


def _has_weight(test: cst.BaseExpression, term: cst.BaseExpression) -> bool:
    """Return whether a condition asks for a weight: ``weights[k] for k in loss if k in weights``."""
    if not isinstance(term, cst.BinaryOperation):
        return False
    factors = {_container_name(term.left), _container_name(term.right)}
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In(), comparator=cst.Name(name))]):
            return name in factors
        case _:
            return False


def _container_name(factor: cst.BaseExpression) -> str | None:
    return last_name(factor.value) if isinstance(factor, cst.Subscript) else None


def _owner_name(iterable: cst.BaseExpression) -> str | None:
    """Return the ``x`` of ``x.keys()``."""
    match iterable:
        case cst.Call(func=cst.Attribute(value=cst.Name(owner), attr=cst.Name("keys"))):
            return owner
        case _:
            return None


def _wants_gradients(dotted: str) -> bool:
    """Return whether something of this full name asks for gradients, unlike what draws or reads."""
    return dotted.startswith(_PREPARATION_MODULES) and ".utils." not in dotted


def may_be_no_tensor(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a value that is a tensor most of the time is a number or None at others.

    ``loss = 0`` before a loop, a function that returns 0.0 on one of its paths. Not if ``backward`` was
    called on it before, in the same block or around it: that would have raised.
    """
    return some(_is_no_tensor(module, node))


@traced(Through.RETURNS)
def _is_no_tensor(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    if path or (isinstance(node, cst.Name) and _backpropagated_before(module, node)):
        return False
    if module.value(node).kind in (Kind.NUMBER, Kind.NONE, Kind.BOOL):
        return True
    callee = module.callee(node) if isinstance(node, cst.Call) else None
    if isinstance(callee, cst.FunctionDef):
        tree = module.home(callee).tree
        returns = (r for r in tree.nodes_within(callee, cst.Return) if r.value is None)
        return any(module.function(statement) is callee for statement in returns) or None
    return None


def _backpropagated_before(module: Module, name: cst.Name) -> bool:
    """Return whether every way to ``name`` leads through a ``backward`` of the same definitions."""
    tree = module.tree
    bindings = set(module.bindings(name))
    for backward in Backpropagation.of(module).passes:
        block = tree.parent(tree.statement(backward.call))
        if block is None or not tree.contains(block, name) or tree.order[backward.call] > tree.order[name]:
            continue
        for root in backward.losses:
            if isinstance(root, cst.Name) and root.value == name.value:
                if set(module.bindings(root)) == bindings:
                    return True
    return False
