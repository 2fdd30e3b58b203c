"""Which code runs only under a check of which release of a library there is, or of what that release has.

First the expressions are found that say so: `torch.__version__`, `hasattr(torch, "compile")`, a name that
torch is tried to be asked for. What they say is followed through names, attributes, parameters and results
of functions to the conditions that are made of it. A check is about one library: torch with the
libraries that are released along with it, or another one; the release of Python stands for all of them.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.conventions import asked_by_name, newer_by_name, release_by_name
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.guards import Guard, concluded
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Binding, BindingKind, all_parameters
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import Use, UseKind, sinks
from torchlint.semantics.spellings import last_name
from torchlint.target import TORCH

ANY = ""
"""What a check is about that may concern every library: the release of Python, or one that is not shown."""

# Libraries that are released together: the release of one tells those of the others.
_ALONG_WITH_TORCH = ("torch", "torchvision", "torchaudio", "functorch")
_PARTS = frozenset(
    {"major", "minor", "micro", "release", "public", "base_version", "version", "parameters", "args", "keys"}
    | {"split", "rsplit", "partition", "rpartition", "startswith", "replace", "strip", "lstrip", "groups"}
    | {"group", "kwonlyargs", "kwonly", "co_varnames", "index", "__dict__", "__code__"}
)
_LISTINGS = frozenset({"dir", "vars", "signature", "getfullargspec", "getargspec"})
_IN_ORDER = (cst.Tuple, cst.List, cst.ListComp, cst.GeneratorExp)
_CONVERSIONS = frozenset({"bool", "int", "all", "any"})
_MISSING_PART = frozenset({"AttributeError", "TypeError", "NameError"})
_MISSING_NAME = frozenset({"ImportError", "ModuleNotFoundError"})
_ANY_FAILURE = frozenset({"RuntimeError", "Exception", "BaseException", "NotImplementedError"})
_OLDER, _NEWER = "older", "newer"


class _Says(enum.Enum):
    """What a part of the program says of a release."""

    RELEASE = "release"  # which one it is: a version, or a part of one
    ANSWER = "answer"  # whether it is such a one
    FUNCTION = "function"  # called, it gives one of these


# An attribute that is assigned: the class around, and its name.
_Attribute = tuple[cst.ClassDef | None, str]
_Part = cst.CSTNode | _Attribute


class ReleaseChecks(Part):
    """The checks of releases in a file, and what runs under them."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names = module.names

    def over(self, node: cst.CSTNode, package: str = TORCH) -> bool:
        """Return whether a node is only reached under a check of the release of a library, or of what it has.

        Either branch of the check counts, what follows one that leaves, what is done where a name is missing,
        and functions that are only used in such places.
        """
        family = _family(package)
        if not self._splits_anything(family):
            return False
        if self._is_under(node, family):
            return True
        used_under = self._used_under(family)
        return bool(used_under) and any(around in used_under for around in self.tree.ancestors(node))

    def is_for_older(self, node: cst.CSTNode) -> bool:
        """Return whether a node only runs with releases of torch that are older, or lack something."""
        if not self._splits_anything(TORCH):
            return False
        flow, place = self.module.flow, node
        while True:
            for decision in flow.decisions(place):
                if self._tells(decision.test, TORCH) and (
                    concluded(self.module, decision.test, decision.holds, self._admitted) == _OLDER
                ):
                    return True
            for attempt in self._failed(place):
                if not self._tried(attempt).isdisjoint((TORCH,)):
                    return True
            if place is self.tree.root:
                return False
            place = flow.root(place)

    def _failed(self, node: cst.CSTNode) -> Iterator[cst.Try | cst.TryStar]:
        """Yield the attempts whose failure, that something is not there, leads to a node."""
        for handler in self.module.flow.alternatives(node):
            attempt = self.tree.parent(handler)
            if isinstance(handler, (cst.ExceptHandler, cst.ExceptStarHandler)) and isinstance(
                attempt, (cst.Try, cst.TryStar)
            ):
                if _caught(handler) <= _MISSING_PART | _MISSING_NAME and self.tree.contains(handler, node):
                    yield attempt

    def tries(self, node: cst.CSTNode, *, broadly: bool = False) -> bool:
        """Return whether the code around catches that what ``node`` names is not there, or not like that.

        With ``broadly``, handlers of any failure count, too.
        """
        imports = isinstance(node, (cst.Import, cst.ImportFrom, cst.ImportAlias))
        wanted = _MISSING_PART | (_MISSING_NAME if imports else frozenset())
        wanted |= _ANY_FAILURE if broadly else frozenset()
        flow = self.module.flow
        handlers = (handler for attempt in flow.tries(node, outward=True) for handler in attempt.handlers)
        # One that fails itself has nothing to offer instead.
        return any(_caught(handler) & wanted and not flow.ends_badly(handler) for handler in handlers) or any(
            _suppressed(item) & wanted for item in flow.contexts(node, outward=True)
        )

    def asks_for(self, name: str) -> bool:
        """Return whether the file asks anywhere if something has an attribute of this name."""
        return name in self._asked

    # ------------------------------------------------------------------ what says something of a release

    def _tells(self, node: cst.CSTNode, family: str) -> bool:
        """Return whether an expression is, or holds, one that tells something of a release."""
        return self.tree.holds(node, self._telling(family))

    @remembered
    def _telling(self, family: str) -> list[cst.CSTNode]:
        own, every = self._followed.get(family, set()), self._followed.get(ANY, set())
        return sorted(own | every, key=self.tree.order.__getitem__)

    @cached_property
    def _followed(self) -> dict[str, set[cst.CSTNode]]:
        """By library: all expressions that tell something of its release."""
        found: dict[str, set[cst.CSTNode]] = {}
        seen: set[tuple[_Part, str, _Says]] = set()
        waiting: list[tuple[_Part, str, _Says]] = list(self._sources())
        while waiting:
            node, family, says = waiting.pop()
            if (node, family, says) in seen:
                continue
            seen.add((node, family, says))
            if isinstance(node, tuple):
                waiting.extend((read, family, says) for read in self._attributes.get(node, ()))
                continue
            if says is not _Says.FUNCTION:
                found.setdefault(family, set()).add(node)
            if isinstance(node, cst.BaseExpression):
                waiting.extend((onward, family, now) for onward, now in self._onward(node, says))
        return found

    def _sources(self) -> Iterator[tuple[_Part, str, _Says]]:
        """Yield the expressions that ask for a release themselves, with the library."""
        for attribute in self.tree.nodes(cst.Attribute):
            name = attribute.attr.value
            if name == "__version__":
                qualified = self.module.qualified(attribute.value)
                yield attribute, _family(qualified) if qualified else ANY, _Says.RELEASE
            elif name in ("__dict__", "__all__"):
                if (library := self._library(attribute.value)) is not None:
                    yield attribute, library, _Says.RELEASE
            elif name in ("version_info", "hexversion"):
                if self.module.qualified(attribute.value) == "sys":
                    yield attribute, ANY, _Says.RELEASE
            elif release_by_name(name) is not None and self._is_open_attribute(attribute):
                yield attribute, release_by_name(name) or ANY, _Says.RELEASE
        for alias in self.tree.nodes(cst.ImportAlias):
            binding = self.module.binding_of(alias)
            if binding is not None and (binding.imported or "").endswith(".__version__"):
                library = _family(binding.imported or "")
                yield from ((read, library, _Says.RELEASE) for read in self.module.uses(binding))
        for name in self._names_telling:
            for read in self.names.reads(name):
                if (found := self._by_name(read)) is not None:
                    yield read, found, _Says.RELEASE
        for name, calls in self.tree.calls_by_name.items():
            for call in calls:
                if (asked := self._by_call(name, call)) is not None:
                    yield call, *asked
        attempts: list[cst.Try | cst.TryStar] = [*self.tree.nodes(cst.Try), *self.tree.nodes(cst.TryStar)]
        for attempt in attempts:
            for family in self._tried(attempt):
                suites = [attempt.body, *(handler.body for handler in attempt.handlers)]
                suites += [attempt.orelse.body] if attempt.orelse is not None else []
                yield from ((node, family, says) for node, says in self._set_in(suites))

    @cached_property
    def _names_telling(self) -> list[str]:
        spellings = {name.value for name in self.tree.nodes(cst.Name)}
        return sorted(name for name in spellings if release_by_name(name) is not None)

    def _by_name(self, read: cst.Name) -> str | None:
        """Return the library of whose release a name speaks, where no definition shows what it stands for."""
        dotted = self.module.qualified(read)
        if dotted is not None and dotted.endswith(".__version__"):
            # Another file keeps it under this name.
            return _family(dotted)
        family = release_by_name(read.value)
        if family is None or (dotted is not None and dotted.startswith(_ALONG_WITH_TORCH)):
            return None
        shown = [each for each in self.module.bindings(read) if self._shows(each)]
        return None if shown and len(shown) == len(self.module.bindings(read)) else family

    def _shows(self, binding: Binding) -> bool:
        """Return whether a definition shows what a name has to do with a release, perhaps nothing."""
        if binding.kind in (BindingKind.FUNCTION, BindingKind.CLASS):
            return True
        literal = (cst.SimpleString, cst.Integer, cst.Float, cst.List, cst.Dict, cst.Tuple, cst.Comparison)
        return binding.kind is BindingKind.ASSIGN and isinstance(binding.value, literal)

    def _is_open_attribute(self, attribute: cst.Attribute) -> bool:
        """Return whether no assignment of the file shows what an attribute is, and no library has it."""
        if self.module.qualified(attribute) is not None and self._library(attribute) is not None:
            return False
        own = self.names.attributes.get(attribute.attr.value, ())
        return not any(isinstance(each.value, (cst.SimpleString, cst.Integer, cst.Float)) for each in own)

    def _by_call(self, name: str, call: cst.Call) -> tuple[str, _Says] | None:
        """Return the library whose release, or content, a call asks for."""
        first = call.args[0].value if call.args else None
        if name in ("hasattr", "getattr"):
            library = self._library(first) if first is not None else None
            wanted = call.args[1].value if len(call.args) > 1 else None
            known = name == "hasattr" or (len(call.args) == 3 and isinstance(wanted, cst.SimpleString))
            return (library, _Says.ANSWER) if library is not None and known else None
        if name in _LISTINGS:
            library = self._library(first) if first is not None else None
            return (library, _Says.RELEASE) if library is not None else None
        if name == "find_spec":
            spelt = _text(first)
            return (_family(spelt), _Says.ANSWER) if spelt is not None and "." in spelt else None
        if name in ("python_version", "python_version_tuple"):
            return ANY, _Says.RELEASE
        if name in ("version", "get_distribution", "metadata") and len(call.args) == 1:
            if name == "version" and isinstance(call.func, cst.Attribute):
                owner = last_name(call.func.value) or ""
                if "metadata" not in owner:
                    return None
            spelt = _text(first)
            return (_family(spelt) if spelt is not None else ANY, _Says.RELEASE)
        texts = [text for arg in call.args if (text := _text(arg.value)) is not None]
        about = asked_by_name(name, texts)
        return (_family(about), _Says.ANSWER) if about is not None else None

    def _library(self, node: cst.CSTNode) -> str | None:
        """Return the library that a module, class or function is part of; None if no known one."""
        dotted = self.module.qualified(node)
        if dotted is None or dotted.startswith((".", "builtins.")):
            return None
        return _family(dotted)

    @cached_property
    def _asked(self) -> frozenset[str]:
        """The names for which the file asks with `hasattr`, `getattr`, `in dir(…)` and the like."""
        found: set[str] = set()
        for name in ("hasattr", "getattr", "setattr", "delattr"):
            for call in self.tree.calls_by_name.get(name, ()):
                if len(call.args) > 1 and last_name(call.args[0].value) != "self":
                    found.update(filter(None, (_text(call.args[1].value),)))
        for comparison in self.tree.nodes(cst.Comparison):
            text = _text(comparison.left)
            if text is not None and any(
                isinstance(target.operator, (cst.In, cst.NotIn))
                and self.tree.holds(target.comparator, self._all_telling)
                for target in comparison.comparisons
            ):
                found.add(text)
        return frozenset(found)

    def _onward(self, node: cst.BaseExpression, says: _Says) -> Iterator[tuple[_Part, _Says]]:
        """Return what else tells of an expression: what uses it, and what it is assigned to."""
        return sinks(self.module, node, lambda module, use: tuple(self._told(use, says)))

    def _told(self, use: Use, says: _Says) -> Iterator[tuple[_Part, _Says]]:
        match use.kind:
            case UseKind.COMPARED | UseKind.CHOICE:
                yield use.by, _Says.ANSWER
            case UseKind.TESTED | UseKind.OPERAND if isinstance(use.by, cst.UnaryOperation):
                yield use.by, _Says.ANSWER
            case UseKind.CALLED if says is not _Says.ANSWER:
                yield use.by, _Says.ANSWER if says is _Says.FUNCTION else says
            case UseKind.ARGUMENT:
                yield from ((read, says) for read in self._received(use.call, use.argument))
                converted = says is _Says.RELEASE or last_name(use.call.func) in _CONVERSIONS
                callee = self.module.callee(use.call)
                if converted and (callee is None or self.tree.is_elsewhere(callee)):
                    yield use.call, says
            case UseKind.ATTRIBUTE | UseKind.METHOD if use.name in _PARTS and says is _Says.RELEASE:
                yield use.by, says
            case UseKind.ITEM:
                yield use.by, says
            case UseKind.ELEMENT if isinstance(use.by, _IN_ORDER):
                yield use.by, says
            case UseKind.ITERATED if isinstance(whole := self.tree.parents[use.by], _IN_ORDER):
                yield whole, says
            case UseKind.ASSIGNED | UseKind.UNPACKED | UseKind.STORED:
                lambdas = isinstance(use.node, cst.Lambda)
                parts = self.tree.descendants(use.by)
                yield from self._reads(parts, _Says.FUNCTION if lambdas else says)
            case UseKind.RETURNED if isinstance(use.by, cst.Lambda):
                yield use.by, says
            case UseKind.RETURNED:
                function = self.tree.enclosing(use.by, cst.FunctionDef)
                if function is not None:
                    yield from self._named(function)
            case UseKind.TESTED if isinstance(use.by, cst.IfExp):
                yield use.by, says
            case UseKind.TESTED if isinstance(use.by, cst.If):
                orelse = use.by.orelse
                suites = [use.by.body, *([orelse.body] if isinstance(orelse, cst.Else) else [])]
                yield from self._set_in(suites)

    def _set_in(self, suites: Iterable[cst.BaseSuite]) -> Iterator[tuple[_Part, _Says]]:
        """Yield what is set to True, False or None under a check, and what functions return there."""
        for suite in suites:
            for line in suite.body:
                for statement in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
                    match statement:
                        case cst.Assign(value=cst.Name("True" | "False" | "None")):
                            parts = (each.target for each in statement.targets)
                            yield from self._reads(parts, _Says.ANSWER)
                        case cst.AnnAssign(value=cst.Name("True" | "False" | "None")):
                            yield from self._reads((statement.target,), _Says.ANSWER)
                        case cst.Return(value=cst.Name("True" | "False" | "None")):
                            function = self.tree.enclosing(statement, cst.FunctionDef)
                            if function is not None:
                                yield from self._named(function)

    def _reads(self, targets: Iterable[cst.CSTNode], says: _Says) -> Iterator[tuple[_Part, _Says]]:
        """Yield the reads of names and attributes of the class around that are assigned."""
        for target in targets:
            if isinstance(target, cst.Name) and (binding := self.module.binding_of(target)) is not None:
                yield from ((read, says) for read in self.module.uses(binding))
            elif isinstance(target, cst.Attribute):
                owner = self.tree.enclosing(target, cst.ClassDef)
                yield (owner, target.attr.value), says

    @cached_property
    def _attributes(self) -> dict[_Attribute, list[cst.CSTNode]]:
        """The attributes that are read, by the class around and the name."""
        found: dict[_Attribute, list[cst.CSTNode]] = {}
        for attribute in self.tree.nodes(cst.Attribute):
            if not isinstance(self.tree.parent(attribute), cst.AssignTarget):
                owner = self.tree.enclosing(attribute, cst.ClassDef)
                found.setdefault((owner, attribute.attr.value), []).append(attribute)
        return found

    @cached_property
    def _attributes_by_name(self) -> dict[str, list[cst.CSTNode]]:
        found: dict[str, list[cst.CSTNode]] = {}
        for (_, name), attributes in self._attributes.items():
            found.setdefault(name, []).extend(attributes)
        return found

    def _named(self, function: cst.FunctionDef | cst.ClassDef) -> Iterator[tuple[_Part, _Says]]:
        is_property = any(last_name(each.decorator) == "property" for each in function.decorators)
        says = _Says.ANSWER if is_property else _Says.FUNCTION
        return ((read, says) for read in self._mentions(function))

    def _mentions(self, definition: cst.FunctionDef | cst.ClassDef) -> list[cst.CSTNode]:
        """Return where a function or class is named; a method wherever an attribute is called like it."""
        if isinstance(self.names.scope(definition).node, cst.ClassDef):
            return list(self._attributes_by_name.get(definition.name.value, ()))
        binding = self.names.by_node.get(definition)
        return list(self.module.uses(binding)) if binding is not None else []

    def _received(self, call: cst.Call, arg: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the reads of the parameter that a function of the file gets an argument as."""
        function = self.module.callee(call)
        if not isinstance(arg, cst.Arg) or not isinstance(function, (cst.FunctionDef, cst.Lambda)):
            return
        for parameter in all_parameters(function.params):
            if self.module.argument(call, parameter.name.value).node is arg.value:
                binding = self.names.by_node.get(parameter)
                yield from self.module.uses(binding) if binding is not None else ()

    # ------------------------------------------------------------------ what is tried

    @remembered
    def _tried(self, attempt: cst.Try | cst.TryStar) -> frozenset[str]:
        """Return the libraries of which a ``try`` finds out whether they have what it names.

        That a whole library is tried to be imported tells nothing of its release.
        """
        return frozenset(self._find_tried(attempt))

    def _find_tried(self, attempt: cst.Try | cst.TryStar) -> Iterator[str]:
        caught = frozenset[str]().union(*(_caught(handler) for handler in attempt.handlers))
        if not caught & (_MISSING_NAME | _MISSING_PART | _ANY_FAILURE):
            return
        tree = self.tree
        imports: list[cst.Import | cst.ImportFrom] = [
            *tree.nodes_within(attempt.body, cst.Import),
            *tree.nodes_within(attempt.body, cst.ImportFrom),
        ]
        for statement in imports:
            yield from self._imported_from(statement)
        if caught <= _MISSING_NAME:
            if not imports:
                yield ANY
            return
        used = {self._library(name) for name in self.tree.nodes_within(attempt.body, cst.Name)}
        libraries = {each for each in used if each is not None}
        yield from libraries
        if caught & _MISSING_PART and not libraries:
            yield ANY

    def _imported_from(self, statement: cst.Import | cst.ImportFrom) -> Iterator[str]:
        if isinstance(statement, cst.Import):
            dotted = (self.module.source(alias.name) for alias in statement.names)
            yield from (_family(name) for name in dotted if "." in name)
        elif statement.relative or statement.module is None:
            yield ANY
        else:
            yield _family(self.module.source(statement.module))

    # ------------------------------------------------------------------ what runs under a check

    @remembered
    def _splits_anything(self, family: str) -> bool:
        """Return whether any code of the file may run for some releases only."""
        if self._telling(family):
            return True
        nodes = self.tree.nodes
        attempts: list[cst.Try | cst.TryStar] = [*nodes(cst.Try), *nodes(cst.TryStar)]
        if any(self._is_about(attempt, family) for attempt in attempts):
            return True
        return any(self._is_default(call.args[2], family) for call in nodes(cst.Call) if len(call.args) == 3)

    def _is_under(self, node: cst.CSTNode, family: str) -> bool:
        child: cst.CSTNode = node
        for above in self.tree.ancestors(node):
            if self._splits(above, child, family):
                return True
            child = above
        if not self._telling(family):
            return False
        return self.tree.order[node] > self._marked(family) or self._is_left_to(node, family)

    def _splits(self, above: cst.CSTNode, child: cst.CSTNode, family: str) -> bool:
        """Return whether a part of ``above`` runs only if what is known of a release says so."""
        match above:
            case cst.If(test=test) | cst.IfExp(test=test) | cst.While(test=test) if child is not test:
                return self._tells(test, family)
            case cst.BooleanOperation(left=left) if child is not left:
                return self._tells(left, family)
            case cst.Arg() if child is above.value:
                return self._is_default(above, family)
            case cst.ExceptHandler(body=body) | cst.ExceptStarHandler(body=body) if child is body:
                attempt = self.tree.parent(above)
                return isinstance(attempt, (cst.Try, cst.TryStar)) and self._is_about(attempt, family)
            case cst.Try(orelse=orelse) | cst.TryStar(orelse=orelse) if child is orelse:
                return self._is_about(above, family)
            case cst.Match(subject=subject) if child is not subject:
                return self._tells(subject, family)
            case cst.Subscript(value=value) if child is value:
                return any(self._tells(part, family) for part in above.slice)
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp() | cst.DictComp():
                return any(self._tells(each.test, family) for each in above.for_in.ifs)
            case cst.FunctionDef() | cst.ClassDef() if not isinstance(child, cst.Decorator):
                return any(self._tells(mark, family) for mark in above.decorators)
            case _:
                return False

    def _is_about(self, attempt: cst.Try | cst.TryStar, family: str) -> bool:
        return not self._tried(attempt).isdisjoint((family, ANY))

    def _is_default(self, arg: cst.Arg, family: str) -> bool:
        """Return whether an argument is the default of ``getattr(torch, "name", default)``."""
        call = self.tree.parent(arg)
        if not isinstance(call, cst.Call) or last_name(call.func) != "getattr" or len(call.args) != 3:
            return False
        return call.args[2] is arg and self._library(call.args[0].value) == family

    def _is_left_to(self, node: cst.CSTNode, family: str) -> bool:
        """Return whether a place, or its function, is only reached by what a check lets pass."""
        flow, place = self.module.flow, node
        while True:
            for decision in flow.decisions(place):
                # Who is done with older releases has none of them in mind below.
                if (
                    isinstance(decision.construct, (cst.If, cst.Assert))
                    and not self.tree.contains(decision.construct, place)
                    and self._tells(decision.test, family)
                    and concluded(self.module, decision.test, decision.holds, self._admitted) != _NEWER
                ):
                    return True
            if place is self.tree.root:
                return False
            place = flow.root(place)

    @remembered
    def _marked(self, family: str) -> int:
        """Return where the tests of a file are marked to run only for some releases."""
        marks = self.names.module_scope.bindings.get("pytestmark", ())
        told = (each.node for each in marks if each.value is not None and self._tells(each.value, family))
        return min((self.tree.order[node] for node in told), default=sys.maxsize)

    def _admitted(self, guard: Guard) -> str | None:
        """Return the releases for which a test has its outcome; None if that is not clear."""
        outcome = guard.holds
        match guard.test:
            case cst.Comparison(
                comparisons=[cst.ComparisonTarget(cst.Is() | cst.IsNot() as operator, cst.Name("None"))]
            ):
                return _OLDER if isinstance(operator, cst.Is) is outcome else _NEWER
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator)]):
                below = isinstance(operator, (cst.LessThan, cst.LessThanEqual))
                above = isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual))
                if below or above:
                    told = self.tree.holds(left, self._all_telling)
                    return _NEWER if (below is told) is not outcome else _OLDER
                if isinstance(operator, (cst.In, cst.NotIn)):
                    return _NEWER if isinstance(operator, cst.In) is outcome else _OLDER
                return None
            case cst.Call(func=cst.Name("hasattr")):
                return _NEWER if outcome else _OLDER
            case cst.Name() as name if self.names.assignment(name) is not None:
                return None
            case cst.Name() | cst.Attribute() | cst.Call():
                return self._admitted_by_name(guard.test, outcome)
            case _:
                return None

    def _admitted_by_name(self, test: cst.BaseExpression, outcome: bool) -> str | None:
        newer = newer_by_name(last_name(test) or "")
        return None if newer is None else _NEWER if newer is outcome else _OLDER

    @cached_property
    def _all_telling(self) -> list[cst.CSTNode]:
        every = set[cst.CSTNode]().union(*self._followed.values())
        return sorted(every, key=self.tree.order.__getitem__)

    # ------------------------------------------------------------------ functions used under a check

    @remembered
    def _used_under(self, family: str) -> set[cst.CSTNode]:
        """Return the functions and classes that are only used under a check, or by one another."""
        # A method is used wherever an attribute is called like it: all methods of a name are used together.
        users: dict[_User, list[_User]] = {}
        free: list[_User] = [None]
        checked: list[_User] = []
        nodes = self.tree.nodes
        definitions: list[cst.FunctionDef | cst.ClassDef] = [*nodes(cst.FunctionDef), *nodes(cst.ClassDef)]
        for definition in definitions:
            used: _User = definition
            if isinstance(self.names.scope(definition).node, cst.ClassDef):
                used = definition.name.value
                known = used in users
                users.setdefault(used, []).append(definition)
                if known:
                    continue
            mentions = self._mentions(definition)
            if not mentions:
                free.append(used)
            for mention in mentions:
                if self._is_under(mention, family):
                    checked.append(used)
                else:
                    user = self.tree.enclosing(mention, cst.FunctionDef, cst.ClassDef)
                    users.setdefault(user, []).append(used)
        reached = _reached(free, users)
        return {each for each in _reached(checked, users) if isinstance(each, cst.CSTNode)} - reached


# A function or class, the name of methods, or the code outside of all of them.
_User = cst.CSTNode | str | None


def _reached(start: Iterable[_User], users: dict[_User, list[_User]]) -> set[_User]:
    found = set(start)
    waiting = list(found)
    while waiting:
        for used in users.get(waiting.pop(), ()):
            if used not in found:
                found.add(used)
                waiting.append(used)
    return found


def _family(dotted: str) -> str:
    """Return the library of a dotted name or requirement, one name for all that are released together."""
    root = dotted.partition(".")[0].strip().lower().replace("-", "_")
    return TORCH if root in _ALONG_WITH_TORCH or root == "pytorch" else root


def _text(node: cst.CSTNode | None) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def _caught(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> frozenset[str]:
    """Return the exceptions that a handler names; all of them without any."""
    return frozenset({"BaseException"}) if handler.type is None else _exceptions(handler.type)


def _exceptions(node: cst.BaseExpression) -> frozenset[str]:
    if isinstance(node, cst.Tuple):
        return frozenset[str]().union(*(_exceptions(element.value) for element in node.elements))
    name = last_name(node)
    return frozenset() if name is None else frozenset({name})


def _suppressed(item: cst.WithItem) -> frozenset[str]:
    if isinstance(item.item, cst.Call) and last_name(item.item.func) == "suppress":
        return frozenset[str]().union(*(_exceptions(arg.value) for arg in item.item.args))
    return frozenset()
