"""The call graph: which function a call runs, and which calls run a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeAlias

import libcst as cst

from torchlint.semantics import calls
from torchlint.semantics.api import results
from torchlint.semantics.api.frameworks import PROGRESS_BARS
from torchlint.semantics.dependencies import Table, cached_property
from torchlint.semantics.evaluator import Evaluator
from torchlint.semantics.fixpoint import MANY, Answers
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import names_model
from torchlint.semantics.linked import MOST_USERS
from torchlint.semantics.names import AttributeBinding, Binding, BindingKind, ScopeKind, dotted_text
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import BOTTOM, MOST_ALTERNATIVES, Kind, Value

Decorated: TypeAlias = "cst.ClassDef | cst.FunctionDef"


@dataclass(frozen=True, slots=True)
class Run:
    """A call that may run a function which it does not name.

    ``presets`` are the calls of ``partial`` that the function is bound by. With ``key``, a parameter of the
    function around the call, it runs it where that is one of ``words``.
    """

    call: cst.Call
    presets: tuple[cst.Call, ...] = ()
    key: Binding | None = None
    words: frozenset[str] = frozenset()

    def or_else(self, other: Run) -> Run:
        """Return what is true of the call if either of the two is how it runs the function."""
        if self.key is None or self.key is not other.key:
            return self if self.key is None else other
        return replace(self, words=self.words | other.words)


_OF_ENGINES = ("execute_model", "forward_batch")
"""One of these stands in the text of a file that runs the steps of an inference engine."""
_OPEN = frozenset({Kind.UNKNOWN, Kind.MODULE})
"""The kinds of what is not known, or by its name only."""
_CALLERS: Answers[list[cst.Call]] = Answers(nothing=[], unknown=[])


class CallGraph:
    """The calls and functions of one file."""

    answers_for_all = frozenset(
        {"callee", "callees", "candidates", "is_settled", "dispatches", "naming", "standing_for", "word"}
    )

    def __init__(self, evaluator: Evaluator) -> None:
        self.tree = evaluator.tree
        self.names = evaluator.names
        self.classes = evaluator.classes
        self.fixpoint = evaluator.fixpoint
        self._value = evaluator.value
        self._attribute = evaluator.attribute
        self.link = evaluator.names.link
        self.handed_on: Callable[[Function], tuple[Run, ...]] = lambda function: ()
        """The calls that run a function which is handed on as a value; the façade supplies it."""

    @staticmethod
    def counterpart(module: Any) -> CallGraph:
        """Return the call graph of a module."""
        graph: CallGraph = module.inference.callgraph
        return graph

    def callee(self, call: cst.Call) -> Function | None:
        """Return the function that a call runs, such as a module's ``forward``; None if there are several."""
        found = self.callees(call)
        return found[0] if len(found) == 1 else None

    def callees(self, call: cst.Call) -> tuple[Function, ...]:
        """Return the functions of the project one of which a call runs, in a fixed order;
        none for any other.
        """
        run = [each for one in self._named_by(call) for each in self._standing_in(one)]
        if None in run:
            return ()
        return tuple(sorted({each for each in run if each is not None}, key=self.tree.order.__getitem__))

    def callees_or_abstract(self, call: cst.Call) -> tuple[Function, ...]:
        """Return the ``callees``, and the methods without a body in whose place they are run."""
        found = self.callees(call)
        return (*found, *(each for each in self._named_by(call) if each is not None and each not in found))

    def _named_by(self, call: cst.Call) -> list[Function | None]:
        """Return the functions of the project that a call names, whatever stands in for them."""
        if self.names.qualified(call.func) is not None:
            return []
        called = self._value(call.func)
        ways = called.each
        if called.kind in _OPEN and not called.definitions and called is not BOTTOM:
            # The kinds of what it may be differ, as those of a function and of an object that is called do.
            assigned = map(self._value, self.assigned_to(call.func))
            ways = [each for one in assigned if one.kind is not Kind.NONE for each in one.each] or ways
        return [run for one in ways for run in self.forwards(one) or (self.run_by(one),)]

    def assigned_to(self, func: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
        """Return what a variable, or an attribute of ``self``, is assigned, where that is several things and
        all that it can be.
        """
        bindings: Sequence[Binding | AttributeBinding] = ()
        match func:
            case cst.Name():
                bindings = self.names.bindings(func)
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(attr)):
                own = self.classes.instance_class(owner)
                if own is not None and self.classes.info(own).method(attr) is None:
                    bindings = self.classes.attribute_bindings(self.classes.info(own), attr)
        if not 1 < len(bindings) <= MOST_ALTERNATIVES:
            return ()
        values = [b.value for b in bindings if b.kind is BindingKind.ASSIGN and not b.path]
        found = tuple(value for value in values if value is not None)
        return found if len(found) == len(bindings) else ()

    def _standing_in(self, function: Function | None) -> Sequence[Function | None]:
        """Return the function itself, or the methods of heirs that stand in for one without a body."""
        if isinstance(function, cst.FunctionDef) and is_abstract(function):
            return self.overriding(function) or (function,)
        return (function,)

    @remembered
    def overriding(self, method: cst.FunctionDef) -> tuple[cst.FunctionDef, ...]:
        """Return the methods with a body that heirs of its class define in its place."""
        owner = self.classes.owner(method)
        if owner is None:
            return ()
        heirs = self.classes.heirs(owner, most=MOST_USERS)
        own = (self.classes.info(heir).methods.get(method.name.value) for heir in heirs)
        return tuple(each for each in own if each is not None and not is_abstract(each))

    def is_settled(self, call: cst.Call) -> bool:
        """Return whether the answer for a call holds, whatever else is asked."""
        return self.fixpoint.knows(call.func) or self.names.qualified(call.func) is not None

    def run_by(self, value: Value) -> Function | None:
        """Return the function of the project that runs when something is called."""
        if value is BOTTOM:
            return None
        if value.kind is Kind.FUNCTION and isinstance(value.definition, (cst.FunctionDef, cst.Lambda)):
            return value.definition
        if isinstance(value.definition, cst.ClassDef):
            info = self.classes.info(value.definition)
            if value.kind is Kind.CLASS:
                return info.method("__init__")
            if value.kind is Kind.MODULE:
                return info.method("forward") or info.method("__call__")
            return info.method("__call__")
        return None

    def forwards(self, value: Value) -> tuple[cst.FunctionDef, ...]:
        """Return the ``forward`` that heirs define where the class of a module has none."""
        owner = value.definition
        if value.kind is not Kind.MODULE or not isinstance(owner, cst.ClassDef) or self.run_by(value):
            return ()
        found = (self.classes.info(heir).method("forward") for heir in self.classes.heirs(owner))
        return () if self.classes.info(owner).opaque else tuple(dict.fromkeys(filter(None, found)))

    def callers(self, function: cst.CSTNode) -> list[cst.Call]:
        """Return the calls in this file that run a function of this file, in source order."""
        found: list[cst.Call] = self.fixpoint.ask(("callers", function), self._find_callers, _CALLERS)
        return found

    def _find_callers(self, question: tuple[str, cst.CSTNode]) -> list[cst.Call]:
        _, function = question
        overridden = self._overridden(function)
        graphs = self._graphs(function)
        if overridden and self.link is not None:
            homes = (self.counterpart(self.link.home(method)) for method in overridden)
            graphs = list(dict.fromkeys([*graphs, *homes]))
        found = [
            call
            for graph in graphs
            for pool in graph.candidates(function)
            for call in pool.of((function, *overridden), graph)
            if function in graph.callees(call) or (overridden and graph.dispatches(call, overridden))
        ]
        if isinstance(function, cst.FunctionDef) and self.classes.owner(function) is not None:
            named = {call: way for graph in graphs for call, way in graph.naming(function).items()}
            # What runs the method there runs others for other calls.
            found = [call for call in found if call not in named.values()] + list(named)
        if isinstance(function, (cst.FunctionDef, cst.Lambda)):
            found += (run.call for run in self.handed_on(function))
        return sorted(dict.fromkeys(found), key=self.tree.order.__getitem__)

    @remembered
    def _graphs(self, function: cst.CSTNode) -> Sequence[CallGraph]:
        """Return the call graphs of the files that may use a function, this one first."""
        return list(dict.fromkeys([self, *map(self.counterpart, self._users(function))]))

    def references(self, function: Function) -> list[cst.BaseExpression]:
        """Return where a function is named as a value, and not called; a lambda names itself."""
        if isinstance(function, cst.Lambda):
            return [function]
        name = function.name.value
        if self.classes.owner(function) is None:
            binding = self.names.by_node.get(function)
            reads = [*self.names.uses(binding), *self.names.uses_elsewhere(binding)] if binding else []
            return [read for read in reads if not self.tree.is_called(read)]
        return [
            read for graph in self._graphs(function) for read in graph.read_as_values(name).get(function, ())
        ]

    @remembered
    def read_as_values(self, name: str) -> dict[Function, list[cst.BaseExpression]]:
        """Return where this file reads methods of a name without a call, by what each may be."""
        found: dict[Function, list[cst.BaseExpression]] = {}
        for read in self.tree.attributes_by_name.get(name, ()):
            if not self.tree.is_called(read):
                for function in self.standing_for(read):
                    found.setdefault(function, []).append(read)
        return found

    def standing_for(self, node: cst.BaseExpression) -> tuple[Function, ...]:
        """Return the functions of the project that an expression may be, or run as an instance."""
        run = [each for one in self._value(node).each for each in self._standing_in(self.run_by(one))]
        return tuple(dict.fromkeys(each for each in run if each is not None))

    def word(self, node: cst.BaseExpression) -> str | None:
        """Return the text that an expression is, or the name of a constant of a class: ``Event.STEP``."""
        if not isinstance(node, (cst.SimpleString, cst.Name, cst.Attribute)):
            return None
        constant = self._value(node).constant
        if isinstance(constant, str):
            return constant
        if isinstance(node, cst.Attribute) and self._value(node.value).kind is Kind.CLASS:
            return dotted_text(node)
        return None

    def ruled_out(self, call: cst.Call, way: cst.Call, function: Function) -> bool:
        """Return whether what a call passes rules out that ``way``, a call in the function
        that it runs, runs another ``function`` then.
        """
        around = self._around(way)
        if not isinstance(around, (cst.FunctionDef, cst.Lambda)):
            return False
        run = next((each for each in self.handed_on(function) if each.call is way), None)
        if run is None:
            return False
        bound = self.bound_to(call, around)
        if run.key is not None and run.key.scope.node is around:
            passed = bound.get(run.key.name)
            word = None if passed.node is None else self.word(passed.node)
            if word is not None and word not in run.words:
                return True
        handed = None if isinstance(around, cst.Lambda) else self._parameter_of(around, way.func)
        if handed is None:
            return False
        passed = bound.get(handed)
        definitions = frozenset() if passed.node is None else self._value(passed.node).definitions
        return bool(definitions) and function not in definitions

    def naming(self, method: cst.FunctionDef) -> dict[cst.Call, cst.Call]:
        """Return the calls in this file that run a method by its name, ``self.call("on_step")``, and how."""
        named = self._calls_by_text.get(method.name.value, ())
        return {call: way for call in named if (way := self._way_to(call, method)) is not None}

    @cached_property
    def _calls_by_text(self) -> dict[str, list[cst.Call]]:
        """The calls of this file that are given a literal text, by the text."""
        found: dict[str, list[cst.Call]] = {}
        for text in self.tree.nodes(cst.SimpleString):
            assert isinstance(text, cst.SimpleString)
            call = self.tree.call_given(text)
            if call is not None:
                found.setdefault(str(text.evaluated_value), []).append(call)
        return found

    def _way_to(self, call: cst.Call, method: Function) -> cst.Call | None:
        """Return the call in what a call runs that runs the method whose name it is given."""
        naming = [argument for argument in call.args if _is_name_of(argument.value, method)]
        runner = self.callee(call) if naming else None
        if not isinstance(runner, cst.FunctionDef) or not isinstance(method, cst.FunctionDef):
            return None
        name = self.bound_to(call, runner).parameter(naming[0])
        return self.running(runner, name, method) if name is not None else None

    def running(self, runner: cst.FunctionDef, name: str, method: cst.FunctionDef) -> cst.Call | None:
        """Return the call in a function of what ``getattr(x, name)`` gives it, if that may be a method."""
        for call in self.tree.nodes_within(runner, cst.Call):
            given = self.names.assignment(call.func)
            match call.func if given is None else given.value:
                case cst.Call(func=cst.Name("getattr"), args=[owner, asked, *_]) if (
                    self._parameter_of(runner, asked.value) == name
                ):
                    chosen = self._attribute(self._value(owner.value), method.name.value)
                    if any(method in self._standing_in(self.run_by(one)) for one in chosen.each):
                        return call
        return None

    @remembered
    def dispatched(self, function: cst.FunctionDef, most: int = MOST_USERS) -> tuple[cst.Call, ...]:
        """Return calls of other files, in a project of any size, that may run a function.

        Among them those of a method that it stands in for, whatever they are made through. They are neither
        all that there are, nor does each of them run it.
        """
        name = function.name.value
        special = name == "forward" or (name.startswith("__") and name != "__call__")
        if self.link is None or special:
            return ()
        methods = (function, *self._overridden(function))
        graphs = {
            graph: None
            for method in methods
            for module in self.counterpart(self.link.home(method))._users(method, most)
            if (graph := self.counterpart(module)).tree is not self.tree
        }
        found = (
            call
            for graph in graphs
            for pool in graph.candidates(function)
            for call in pool.of(methods, graph)
            # ``super().method()`` runs that of a base, and none that stands in for it.
            if not set(methods[:1] if _is_of_super(call) else methods).isdisjoint(graph.callees(call))
        )
        return tuple(sorted(found, key=self.tree.order.__getitem__))

    @remembered
    def asked_of_models(self, method: cst.FunctionDef) -> tuple[cst.Call, ...]:
        """Return calls in the files of an engine that may run a method of a module by its name:
        ``self.model.embed(tokens)``, whichever model that is.
        """
        owner, name = self.classes.owner(method), method.name.value
        if self.link is None or owner is None or name == "forward" or name.startswith("_"):
            return ()
        if self.classes.info(owner).kind is not Kind.MODULE:
            return ()
        words = f"model.{name}(", f'model, "{name}"'
        graphs = map(self.counterpart, self.link.speaking(words, _OF_ENGINES))
        return tuple(call for graph in graphs for call in graph.made_on_models(name))

    def made_on_models(self, name: str) -> Iterator[cst.Call]:
        """Yield the calls in this file of a method of what is called a model, and is not known as any;
        also of what ``getattr(model, name)`` has given a variable.
        """
        for call in self.tree.calls_by_name.get(name, ()):
            if isinstance(call.func, cst.Attribute) and self._is_some_model(call.func.value):
                yield call
        for got in self._calls_by_text.get(name, ()):
            match got, self.tree.parent(got):
                case (
                    cst.Call(func=cst.Name("getattr"), args=[cst.Arg(value=model), *_]),
                    cst.Assign(targets=[cst.AssignTarget(target=cst.Name(variable))]),
                ) if self._is_some_model(model):
                    for call in self.tree.calls_by_name.get(variable, ()):
                        given = self.names.assignment(call.func)
                        if given is not None and given.value is got:
                            yield call

    def _is_some_model(self, node: cst.BaseExpression) -> bool:
        """Return whether it is what is called a model, and nothing shows which one it is."""
        if not names_model(last_name(node)):
            return False
        value = self._value(node)
        return value.definition is None and value.kind in (Kind.UNKNOWN, Kind.MODULE)

    def _users(self, function: cst.CSTNode, most: int = 0) -> Sequence[Any]:
        """Return the modules of other files that may run a function; of a library as ``Link.users``."""
        if self.link is None or not isinstance(function, cst.FunctionDef):
            return ()
        owner = self.classes.owner(function)
        if owner is None:
            # What is defined in a function leaves it by other names.
            inner = self.names.scope(function).kind is ScopeKind.FUNCTION
            return () if inner else self.link.users(self, (function.name.value,), most=most)
        name = function.name.value
        heirs = self.classes.heirs(owner)
        # Who makes and uses an instance of an heir need not know the class that it inherits from.
        families = dict.fromkeys([self.link.home(owner), *map(self.link.home, heirs)])
        makers = tuple(sorted({owner.name.value, *(heir.name.value for heir in heirs)}))
        if name == "__init__":
            found = (self.link.users(family, makers) for family in families)
        elif name in ("forward", "__call__"):
            # Calls of an instance do not name it.
            found = (self.link.users(family, makers, instances=(), most=most) for family in families)
        else:
            words = (f".{name}(",) if most else (name,)
            found = (self.link.users(family, words, instances=words, most=most) for family in families)
        return list(dict.fromkeys([*families, *chain.from_iterable(found)]))

    def decorated(self, function: cst.FunctionDef) -> tuple[Decorated, ...]:
        """Return the classes and functions of the project that a function is given as their decorator."""
        return tuple(definition for _, definition in self.decorators(function))

    @remembered
    def decorators(self, function: cst.FunctionDef) -> tuple[tuple[cst.BaseExpression, Decorated], ...]:
        """Return the decorators of the project that a function is, with what they decorate.

        Or one that encloses it makes it a decorator: ``@register("name")``.
        """
        maker = function
        while isinstance(outer := self.names.scope(maker).node, cst.FunctionDef):
            maker = outer
        graphs = [self, *map(self.counterpart, self._users(maker))]
        return tuple(
            (decorator, definition)
            for graph in dict.fromkeys(graphs)
            for decorator, definition in graph._decorators.get(maker.name.value, ())
            if self._value(decorator).definition is function
        )

    @cached_property
    def _decorators(self) -> dict[str, list[tuple[cst.BaseExpression, Decorated]]]:
        """The decorators of this file by the names that they go by, with what they decorate."""
        found: dict[str, list[tuple[cst.BaseExpression, Decorated]]] = {}
        for definition in self.tree.nodes(cst.ClassDef, cst.FunctionDef):
            assert isinstance(definition, (cst.ClassDef, cst.FunctionDef))
            for each in definition.decorators:
                made = each.decorator.func if isinstance(each.decorator, cst.Call) else each.decorator
                found.setdefault(last_name(made) or "", []).append((each.decorator, definition))
        return found

    @cached_property
    def _instance_calls(self) -> _Pool:
        """The calls that may be made to an instance, ``model(x)`` or ``self.head(x)``."""
        return _Pool([call for call in self.tree.nodes(cst.Call) if self._may_call_instance(call)])

    @remembered
    def _pool(self, name: str) -> _Pool:
        """Return the calls of what goes by a name."""
        return _Pool(list(self.tree.calls_by_name.get(name, ())))

    def _overridden(self, function: cst.CSTNode) -> set[cst.CSTNode]:
        """Return the methods of other classes of the file in whose place this one may run."""
        owner = self.classes.owner(function)
        if owner is None or not isinstance(function, cst.FunctionDef):
            return set()
        ancestors = self.classes.info(owner).lineage[1:]
        named = (info.methods.get(function.name.value) for info in ancestors)
        return {method for method in named if method is not None}

    def dispatches(self, call: cst.Call, methods: set[cst.CSTNode]) -> bool:
        """Return whether a call of one of these methods is made through ``self`` or ``cls``,
        which may be an heir.
        """
        func = call.func
        if isinstance(func, cst.Attribute):
            through_self = self.classes.instance_class(func.value) is not None
        else:
            around = self._around(call)
            maker = self.classes.class_name(around) if isinstance(around, cst.FunctionDef) else None
            through_self = isinstance(func, cst.Name) and func.value == maker
        named = self._named_by(call) if through_self else []
        return len(named) == 1 and named[0] in methods

    def candidates(self, function: cst.CSTNode) -> list[_Pool]:
        """Return the calls of this file that could run a function of any file, by the names it goes by."""
        names: set[str] = set()
        if isinstance(function, cst.FunctionDef):
            names.add(function.name.value)
            owner = self.classes.owner(function)
            if owner is not None and function.name.value == "__init__":
                names.update(c.name.value for c in self.classes.heirs(owner))
                names.update(*map(self._aliases, sorted(names)))
                names.update(self._names_in_class_methods(owner))
            elif owner is not None and function.name.value in ("forward", "__call__"):
                return [self._instance_calls]
            else:
                names.update(self._aliases(function.name.value))
        else:
            holder = self.tree.parent(function)
            if isinstance(holder, cst.Assign):
                for target in holder.targets:
                    if isinstance(target.target, cst.Name):
                        names.add(target.target.value)
                    elif isinstance(target.target, cst.Attribute):
                        names.add(target.target.attr.value)
            elif isinstance(holder, cst.Call) and holder.func is function:
                return [_Pool([holder])]
        return [*(self._pool(name) for name in names), self._chosen_calls]

    def _names_in_class_methods(self, owner: cst.ClassDef) -> Iterator[str]:
        """Yield what class methods of a class and of its ancestors call the class: ``cls``."""
        for info in self.classes.info(owner).lineage:
            for method in info.methods.values():
                name = self.classes.class_name(method)
                if name is not None:
                    yield name

    @cached_property
    def _chosen_calls(self) -> _Pool:
        """The calls of what a table has, or ``getattr(x, name)`` gives: ``TASKS[name](x)``."""
        calls_found = self.tree.nodes(cst.Call)
        return _Pool([call for call in calls_found if isinstance(call.func, (cst.Subscript, cst.Call))])

    @remembered
    def _aliases(self, name: str) -> frozenset[str]:
        """Return further names that functions or classes of this name go by: of variables,
        attributes, parameters.

        They get them by plain assignment (``self.update = self.update_one``), ``partial``, as an argument, as
        a default, or as the result of the function that defines them. Many functions may share the name:
        ``inner`` in every decorator.
        """
        found: set[str] = set()
        makers: set[str] = set()
        for read in (*self.names.reads(name), *self.tree.attributes_by_name.get(name, ())):
            holder = self.tree.parent(read)
            if isinstance(holder, cst.Param):
                found.add(holder.name.value)
            elif isinstance(holder, cst.Return):
                maker = self.names.scope(holder).node
                if isinstance(maker, cst.FunctionDef):
                    makers.add(maker.name.value)
            elif isinstance(holder, cst.Arg):
                call = self.tree.parents[holder]
                received = self._received_as(call, holder)
                if received is not None and received not in found:
                    found.add(received)
                    found.update(self._kept_as(received))
                holder = self.tree.parent(call)
            if isinstance(holder, cst.Assign):
                found.update(_assigned_names(holder))
        if self.link is not None:
            found.update(self.names.names_of_import(name))
        for word in makers:
            found.update(self._names_of_results(word))
        return frozenset(found)

    def _received_as(self, call: cst.CSTNode, argument: cst.Arg) -> str | None:
        """Return the parameter of a function of this file that an argument may become."""
        if argument.keyword is not None:
            return argument.keyword.value
        return self._parameter_at(call, argument) if isinstance(call, cst.Call) else None

    @remembered
    def _kept_as(self, name: str) -> frozenset[str]:
        """Return the names and attributes that a name is plainly assigned to."""
        holders = map(self.tree.parent, self.names.reads(name))
        kept = (_assigned_names(holder) for holder in holders if isinstance(holder, cst.Assign))
        return frozenset(chain.from_iterable(kept))

    def _parameter_at(self, call: cst.Call, argument: cst.Arg) -> str | None:
        word = last_name(call.func)
        for function in self._functions_by_name.get(word or "", ()):
            positional = [param.name.value for param in function.params.params]
            if self.classes.binds_first(function):
                positional = positional[1:]
            index = next((i for i, given in enumerate(call.args) if given is argument), len(positional))
            if index < len(positional):
                return positional[index]
        return None

    @cached_property
    def _functions_by_name(self) -> dict[str, list[cst.FunctionDef]]:
        """The functions of the file by the name that they are called by, constructors by their class's."""
        found: dict[str, list[cst.FunctionDef]] = {}
        for function in self.tree.nodes(cst.FunctionDef):
            owner = self.classes.owner(function) if function.name.value == "__init__" else None
            found.setdefault((owner or function).name.value, []).append(function)
        return found

    def _names_of_results(self, maker: str) -> Iterator[str]:
        """Yield the names given to what functions of a name return: ``report = make_reporter()``."""
        for call in self.tree.calls_by_name.get(maker, ()):
            holder = self.tree.parent(call)
            if isinstance(holder, cst.Assign):
                yield from _assigned_names(holder)

    def _may_call_instance(self, call: cst.Call) -> bool:
        """Return whether a call may be of a module instance: of a variable or ``self.x``."""
        func = call.func
        if isinstance(func, cst.Name):
            if func.value in self._defined:
                return False
            return self.names.qualified(func) is None
        if isinstance(func, cst.Attribute):
            if func.attr.value in ("forward", "__call__"):
                return True
            if not isinstance(func.value, cst.Name):
                return False
            # ``self.norm(x)`` is no method of a tensor.
            return func.attr.value not in results.TENSOR_METHODS or func.value.value == "self"
        return isinstance(func, (cst.Subscript, cst.Call))

    @cached_property
    def _defined(self) -> frozenset[str]:
        """The names of the functions and classes that the file defines."""
        functions = (d.name.value for d in self.tree.nodes(cst.FunctionDef))
        return frozenset((*functions, *(d.name.value for d in self.tree.nodes(cst.ClassDef))))

    def bound_to(self, call: cst.Call, function: Function) -> calls.BoundCall:
        """Return the arguments of a call bound to the parameters of a function of this file."""
        callee = self._value(call.func)
        if callee.definition is not function and (run := self._way_to(call, function)) is not None:
            runner = self.callee(call)
            assert isinstance(runner, cst.FunctionDef)
            return self.run_with(run, function, self.bound_to(call, runner).unpacked)
        if callee.definition is function:
            return self._bound(call, function, callee.presets, callee.named_by_class)
        presets: tuple[cst.Call, ...] = ()
        if not callee.definitions:
            presets = next((run.presets for run in self.handed_on(function) if run.call is call), ())
        return self._bound(call, function, presets, callee.named_by_class)

    def run_with(self, call: cst.Call, function: Function, held: calls.Unpacked | None) -> calls.BoundCall:
        """Return a call bound to a function, where the stars that it hands on, if any, hold this."""
        unpacked = held if self._hands_on_stars(call) is not None else None
        return calls.bind(call, self._signature(function), unpacked=unpacked)

    def passed(self, call: cst.Call, function: Function, name: str) -> tuple[calls.Argument, ...]:
        """Return what a call passes for a parameter, also by ``*args, **kwargs`` that are handed on."""
        argument = self.bound_to(call, function).get(name)
        if not argument.unknown:
            return (argument,)
        return tuple(bound.get(name) for bound in self.laid_out(call, function))

    def laid_out(self, call: cst.Call, function: Function) -> list[calls.BoundCall]:
        """Return a call bound to a function, once for each way to fill the stars that it hands on."""
        # One answer for all functions that a call names: only what is handed on may be ruled out.
        handed = any(run.call is call for run in self.handed_on(function))
        held = self.held_by_stars(call, function if handed else None)
        if not held or self._value(call.func).presets:
            return [self.bound_to(call, function)]
        return [self.run_with(call, function, each) for each in held]

    @solved(())
    def held_by_stars(self, call: cst.Call, function: Function | None) -> tuple[calls.Unpacked | None, ...]:
        """Return what ``*args`` and ``**kwargs`` hold that a call hands on, for each call of the function
        around it; to one ``function`` that it runs, if that is asked.

        None where that is not known, or where they hold too much that differs; nothing if there are none, or
        it unpacks something else as well.
        """
        around = self._hands_on_stars(call)
        if around is None:
            return ()
        callers = [caller for caller in self.callers(around) if not self.tree.contains(around, caller)]
        if function is not None:
            callers = [caller for caller in callers if not self.ruled_out(caller, call, function)]
        found: list[calls.Unpacked | None] = []
        for bound in (bound for caller in callers for bound in self.laid_out(caller, around)):
            if bound.unpacked not in found:
                found.append(bound.unpacked)
            if len(found) > MANY:
                return (None,)
        return tuple(found)

    @remembered
    def _hands_on_stars(self, call: cst.Call) -> cst.FunctionDef | None:
        """Return the function whose ``*args`` and ``**kwargs``, and no others, a call unpacks."""
        around = self._around(call)
        unpacked = [argument.value for argument in call.args if argument.star]
        if not unpacked or not isinstance(around, cst.FunctionDef):
            return None
        declared = (around.params.star_arg, around.params.star_kwarg)
        stars = {star.name.value for star in declared if isinstance(star, cst.Param)}
        return around if all(self._parameter_of(around, each) in stars for each in unpacked) else None

    def _around(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return what makes the scope that a node is in, or that its comprehension is in."""
        scope = self.names.scope(node)
        while scope.kind is ScopeKind.COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        return scope.node

    @remembered
    def _bound(
        self, call: cst.Call, function: Function, presets: tuple[cst.Call, ...], named_by_class: bool
    ) -> calls.BoundCall:
        signature = self._signature(function, named_by_class)
        return calls.bind(call, signature, presets=presets, resolve=self.literal)

    @remembered
    def _signature(self, function: Function, named_by_class: bool = False) -> calls.Signature:
        bound = self.classes.binds_first(function, named_by_class=named_by_class)
        return calls.signature_of_function(function, bound=bound)

    @remembered
    def applied(self, function: cst.FunctionDef) -> tuple[str, str] | None:
        """Return the parameters of which a function applies one to the tensors in the other, at any depth.

        ``apply(f, x)`` returns ``f(x)`` for a tensor, and for a container what it makes of its parts; or a
        function defined in it does so, which it hands ``x`` to.
        """
        if not any(self._parameter_of(function, call.func) for call in self._returned_calls(function, True)):
            return None
        for call in self._returned_calls(function):
            given = self._given_alone(function, call)
            if given is None:
                continue
            applied = self._parameter_of(function, call.func) or self._applied_within(function, call)
            if applied is not None:
                return applied, given
        return None

    @remembered
    def shown_progress(self, function: cst.FunctionDef) -> str | None:
        """Return the parameter that all that a function returns is a progress bar around."""
        around = {
            self._parameter_of(function, bar.args[0].value)
            if isinstance(bar, cst.Call) and bar.args and self.names.qualified(bar.func) in PROGRESS_BARS
            else None
            for bar in self._all_returned(function)
        }
        return around.pop() if len(around) == 1 else None

    @remembered
    def sent(self, function: cst.FunctionDef) -> str | None:
        """Return the parameter of which a function returns a copy on the device, or of each of its parts,
        where it does not return it as it is: ``return x.cuda() if available else x``.
        """
        copied: set[str | None] = set()
        kept: set[str | None] = set()
        for returned in self._all_returned(function):
            ways = (returned.body, returned.orelse) if isinstance(returned, cst.IfExp) else (returned,)
            for way in ways:
                parameter = self._copied(function, way)
                (kept if parameter is None else copied).add(parameter or self._parameter_of(function, way))
        return copied.pop() if len(copied) == 1 and kept <= copied else None

    def _copied(self, function: cst.FunctionDef, node: cst.BaseExpression | None) -> str | None:
        """Return the parameter of which an expression is a copy on the device, or a list of copies."""
        match node:
            case cst.ListComp(
                elt=cst.Call(func=cst.Attribute(value=cst.Name(part), attr=cst.Name("cuda"))),
                for_in=cst.CompFor(target=cst.Name(target), iter=parts, inner_for_in=None),
            ) if part == target:
                return self._parameter_of(function, parts)
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("cuda"))):
                return self._parameter_of(function, owner)
        return None

    def _all_returned(self, function: cst.FunctionDef) -> list[cst.BaseExpression | None]:
        """Return what a function returns, in source order."""
        statements = self.tree.nodes_within(function, cst.Return)
        return [each.value for each in statements if self.names.scope(each).node is function]

    def _given_alone(self, function: cst.FunctionDef, call: cst.Call) -> str | None:
        """Return the parameter of a function that is the only argument of a call."""
        return self._parameter_of(function, call.args[0].value) if len(call.args) == 1 else None

    def _applied_within(self, function: cst.FunctionDef, call: cst.Call) -> str | None:
        """Return the parameter of a function that one defined in it applies to what a call gives it."""
        inner = self.callee(call)
        if not isinstance(inner, cst.FunctionDef) or not self.tree.contains(function, inner):
            return None
        for deeper in self._returned_calls(inner):
            applied = self._parameter_of(function, deeper.func)
            if applied is not None and self._given_alone(inner, deeper) is not None:
                return applied
        return None

    def _returned_calls(self, function: cst.FunctionDef, within: bool = False) -> Iterator[cst.Call]:
        """Yield the calls whose results a function, or one ``within`` it, returns as they are."""
        for statement in self.tree.nodes_within(function, cst.Return):
            if isinstance(statement.value, cst.Call):
                if within or self.names.scope(statement).node is function:
                    yield statement.value

    def _parameter_of(self, function: cst.FunctionDef, node: cst.BaseExpression | None) -> str | None:
        """Return the parameter of a function that an expression is, if it can be nothing else."""
        if not isinstance(node, cst.Name):
            return None
        bindings = self.names.bindings(node)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return None
        return bindings[0].name if bindings[0].scope.node is function else None

    def literal(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Return the dict or list display that an expression stands for,
        if it can be no other and stays unchanged.

        That is one with a name, one in a dict of settings (``config["loader"]``), or what a function returns.
        """
        match node:
            case cst.Name():
                binding = self.names.assignment(node)
                value = binding.value if binding is not None else None
                displayed = isinstance(value, (cst.Dict, cst.List, cst.Tuple, cst.Call))
                if binding is None or value is None or not displayed:
                    return node
                unpacked = all(self._is_unpacked(read) for read in self.names.uses(binding))
                return value if unpacked else node
            case cst.Subscript():
                return self._entry(node) or node
            case cst.Call():
                function = self._function_named(node.func)
                display = self.returned_display(function) if function is not None else None
                return display or node
            case _:
                return node

    def _is_unpacked(self, node: cst.BaseExpression) -> bool:
        holder = self.tree.parent(node)
        return isinstance(holder, cst.Arg) and bool(holder.star)

    def _entry(self, node: cst.Subscript) -> cst.BaseExpression | None:
        """Return the dict in a dict of the module level that is read: ``config["loader"]``."""
        named, keys = _keyed(node)
        binding = self._only_definition(named)
        return self.kept_entry(binding, keys) if keys and binding is not None else None

    @remembered
    def kept_entry(self, binding: Binding, keys: tuple[str, ...]) -> cst.Dict | None:
        """Return the dict at some keys of a dict, if no code changes it or hands it on."""
        if binding.scope is not self.names.module_scope or binding.path:
            return None
        found = binding.value
        for key in keys:
            if not isinstance(found, cst.Dict):
                return None
            entries = [each for each in found.elements if not _is_keyed(each, None)]
            if len(entries) < len(found.elements):
                return None
            found = next((each.value for each in reversed(entries) if _is_keyed(each, key)), None)
        reads = (*self.names.uses(binding), *self.names.uses_elsewhere(binding))
        kept = all(self.counterpart_of(read).leaves(read, keys) for read in reads)
        return found if isinstance(found, cst.Dict) and kept else None

    def counterpart_of(self, node: cst.CSTNode) -> CallGraph:
        """Return the call graph of the file that a node belongs to."""
        return self if self.link is None else self.counterpart(self.link.home(node))

    def leaves(self, read: cst.BaseExpression, keys: tuple[str, ...]) -> bool:
        """Return whether a read of a dict leaves what it has at some keys as it is."""
        whole, taken = read, 0
        while isinstance(around := self.tree.parent(whole), cst.Subscript) and around.value is whole:
            key = _key(around)
            if key is None:
                return False
            whole, taken = around, taken + 1
            if taken <= len(keys) and key != keys[taken - 1]:
                return True  # It is of another entry.
        if isinstance(around, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            return False
        return taken > len(keys) or self._is_unpacked(whole)

    def _only_definition(self, node: cst.BaseExpression) -> Binding | None:
        """Return the only definition of a name, or of what another file of the project defines."""
        found = self.names.bindings(node)
        if len(found) != 1 or found[0].kind is BindingKind.IMPORT:
            target = self.names.imported(node)
            found = target if isinstance(target, tuple) else ()
        return found[0] if len(found) == 1 else None

    def _function_named(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        """Return the function that a name stands for, by names alone."""
        binding = self._only_definition(node)
        function = binding.node if binding is not None else None
        return function if isinstance(function, cst.FunctionDef) and not function.decorators else None

    @remembered
    def returned_display(self, function: cst.FunctionDef) -> cst.Tuple | cst.Dict | None:
        """Return the tuple or dict that a function makes anew and returns, whatever it is called with."""
        own = [
            statement
            for statement in self.tree.nodes_within(function, cst.Return, cst.Yield)
            if self.names.scope(statement).node is function
        ]
        match own:
            case [cst.Return(value=cst.Tuple() | cst.Dict() as display)] if function.asynchronous is None:
                return display
        return None


def _keyed(node: cst.BaseExpression) -> tuple[cst.BaseExpression, tuple[str, ...]]:
    """Return what is indexed and the keys, if all of them are spelt out: ``config["data"]["loader"]``."""
    keys: list[str] = []
    while isinstance(node, cst.Subscript):
        key = _key(node)
        if key is None:
            return node, ()
        keys.insert(0, key)
        node = node.value
    return node, tuple(keys)


def _key(node: cst.Subscript) -> str | None:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString(evaluated_value=str(key))))]:
            return key
    return None


def _is_keyed(element: cst.BaseDictElement, key: str | None) -> bool:
    """Return whether an element of a dict display has a key; with None, one that is not spelt out."""
    match element:
        case cst.DictElement(key=cst.SimpleString(evaluated_value=str(own))):
            return own == key
    return key is None


def _is_of_super(call: cst.Call) -> bool:
    """Return whether a call is one of a base class: ``super().method()``."""
    match call.func:
        case cst.Attribute(value=cst.Call(func=cst.Name("super"))):
            return True
    return False


def _is_name_of(node: cst.BaseExpression, function: Function) -> bool:
    """Return whether a literal text is the name of a function."""
    if not isinstance(node, cst.SimpleString) or not isinstance(function, cst.FunctionDef):
        return False
    return bool(node.evaluated_value == function.name.value)


def is_abstract(function: cst.FunctionDef) -> bool:
    """Return whether the body only holds a place for what heirs define: ``...``, ``pass`` or ``raise``."""
    for statement in function.body.body:
        parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        for part in parts:
            empty = isinstance(part, cst.Expr) and isinstance(
                part.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)
            )
            if not empty and not isinstance(part, (cst.Pass, cst.Raise)):
                return False
    return True


class _Pool:
    """Calls, sorted by what they run once that is settled, so that no later question goes through them."""

    def __init__(self, calls_found: list[cst.Call]) -> None:
        self._open = calls_found
        self._rests = Table()
        self._settled: dict[cst.CSTNode, list[cst.Call]] = {}

    def of(self, functions: Iterable[cst.CSTNode], graph: CallGraph) -> list[cst.Call]:
        """Return the calls known to run one of some functions, and those of which it is not known yet."""
        with self._rests.asked():
            return self._sorted(functions, graph)

    def _sorted(self, functions: Iterable[cst.CSTNode], graph: CallGraph) -> list[cst.Call]:
        run: dict[cst.Call, tuple[Function, ...]] = {}
        for call in tuple(self._open):
            found = graph.callees_or_abstract(call)  # which may lead back here
            if graph.is_settled(call):
                run[call] = found
        waiting, self._open = self._open, []
        for call in waiting:
            if call not in run and not graph.is_settled(call):
                self._open.append(call)
            else:
                for callee in run[call] if call in run else graph.callees_or_abstract(call):
                    self._settled.setdefault(callee, []).append(call)
        known = dict.fromkeys(call for function in functions for call in self._settled.get(function, ()))
        return [*known, *self._open]


def _assigned_names(statement: cst.Assign) -> Iterator[str]:
    """Yield the last words of what an assignment gives its value to."""
    for target in statement.targets:
        if isinstance(target.target, (cst.Name, cst.Attribute)):
            yield last_name(target.target) or ""
