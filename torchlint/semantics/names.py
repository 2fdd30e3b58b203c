"""Scopes, bindings and reaching definitions: what a name means at the place where it is read.

Three questions are answered, each on demand and each remembered:

* ``bindings(name)``: the definitions that can reach this read, by the flow of control (a later assignment
  in the same loop counts, one in the other branch does not);
* ``uses(binding)``: the reads that a definition reaches;
* ``qualified(node)``: the dotted name in the library that a name or attribute stands for, through
  every form of import and alias; None where it is ambiguous, shadowed or the user's own.
"""

from __future__ import annotations

import builtins
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst

from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.definitions import ReachingDefinitions
from torchlint.semantics.flow.graph import Comprehension, Root
from torchlint.semantics.linked import Link, Target
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import is_none, start_of
from torchlint.syntax import RANK_SHIFT, SyntaxTree

# What every module can read without having bound it.
_BUILTINS = frozenset(dir(builtins)) | {"__file__"}
# LibCST's node classes are abstract base classes, on which ``isinstance`` is slow: the hot paths of this
# file ask for exact types.
_COMPREHENSIONS = frozenset({cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp})
_DOTTED: frozenset[type] = frozenset({cst.Name, cst.Attribute})


class ScopeKind(IdentityEnum):
    """The kinds of scope that Python has."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    COMPREHENSION = "comprehension"


class BindingKind(IdentityEnum):
    """How a name came to be bound."""

    ASSIGN = "assign"
    AUGMENT = "augment"
    DECLARE = "declare"  # an annotation without a value
    LOOP = "loop"
    COMPREHENSION = "comprehension"
    WITH = "with"
    IMPORT = "import"
    PARAMETER = "parameter"
    FUNCTION = "function"
    CLASS = "class"
    WALRUS = "walrus"
    EXCEPT = "except"
    MATCH = "match"
    DELETE = "delete"
    MANY = "many"  # more definitions than are told apart


class _Anything(Container[str]):
    """Holds every name: what a star import of a library may bring."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(eq=False, slots=True)
class Scope:
    """A namespace: the node that makes it, the scope around it, and the names bound in it."""

    node: cst.CSTNode
    kind: ScopeKind
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(eq=False, slots=True)
class Binding:
    """One definition of a name.

    ``value`` is the expression that it comes from: the right side of an assignment, the iterable of a
    loop, the context manager of a ``with``. ``path`` says which part of it: each step is an index into
    a tuple being unpacked (negative behind a starred target), or None for the starred target itself.
    ``imported`` is the dotted name that an import binds.
    """

    name: str
    node: cst.CSTNode
    scope: Scope
    kind: BindingKind
    value: cst.BaseExpression | None = None
    path: tuple[int | None, ...] = ()
    imported: str | None = None


class Store(NamedTuple):
    """A place that sets an attribute of an object, a class or a file, or changes the container that it is.

    ``name`` is None where it is computed; ``plain`` is ``owner.name = value``.
    """

    owner: cst.BaseExpression
    name: str | None
    plain: bool = False


def _written(key: cst.BaseExpression) -> str | None:
    text = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return text if isinstance(text, str) else None


_LOOKING_UP = frozenset({"get", "keys", "values", "items", "copy"})
"""The methods of containers that leave them as they are."""
_CHANGING = frozenset(
    {
        *("update", "setdefault", "pop", "popitem", "clear", "append", "insert", "extend", "remove"),
        *("sort", "reverse", "__setitem__"),
    }
)

# What files call the libraries that every file of a project imports.
_BROUGHT_ALONG = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}


_STORING = (" = ", "=", ":", " +=", " -=", " *=", " |=", ",", " in ")
"""What may follow an attribute that is assigned to."""
_STORING_BY_KEY = ("setattr(", "setattr__(", "__dict__", "vars(")


def words_of_stores(name: str, *, container: bool = False) -> tuple[str, ...]:
    """Return words of which one is in each text that sets an attribute of some name,
    or puts something into the ``container`` that it is.
    """
    return *((f".{name}",) if container else (f".{name}{sign}" for sign in _STORING)), *_STORING_BY_KEY


@dataclass(eq=False, slots=True)
class AttributeBinding:
    """An assignment to an attribute, ``owner.attr = value``; ``path`` as in ``Binding``."""

    target: cst.Attribute
    kind: BindingKind
    value: cst.BaseExpression | None
    path: tuple[int | None, ...] = ()


class Names:
    """The names of one file.

    ``known`` tells whether a dotted name exists in a library that torchlint knows; it decides what a
    star import can have brought in.
    """

    answers_for_all = frozenset({"lookup", "reads_of_import", "scope"})

    def __init__(
        self,
        tree: SyntaxTree,
        flow: ControlFlow,
        known: Callable[[str], bool] = lambda name: False,
        link: Link | None = None,
    ) -> None:
        self.tree, self.flow, self.fixpoint = tree, flow, flow.fixpoint
        self._known = known
        self.link = link
        self.module_scope = Scope(tree.root, ScopeKind.MODULE, None)
        self._scopes: dict[cst.CSTNode, Scope] = {tree.root: self.module_scope}
        self._order = tree.order
        self._begins, self._scopes_from = [tree.first], [self.module_scope]
        self._dotted: set[tuple[Scope, str]] = set()
        """The names with a definition that gives them a dotted name, whichever of them reach a read."""
        self._pending: set[cst.CSTNode] = set()
        self.star_modules: list[str] = []
        self.attributes: dict[str, list[AttributeBinding]] = {}
        self.by_node: dict[cst.CSTNode, Binding] = {}
        self.renamed: set[str] = set()
        """What the file calls things that may be of libraries, and end with another name there."""
        self._dotted_spellings: set[str] = set()
        """What the file calls things of libraries, if only somewhere."""
        self.qualifiable: Container[str]
        """The names that can stand for anything of a library, going by the whole file."""
        self._named_after: dict[str, list[Binding]] = {}
        """Plain assignments of names and attributes, by the name that those begin with."""
        self._divide()
        self._bind_all()
        self._find_spellings()

    # ------------------------------------------------------------------ scopes

    def scope(self, node: cst.CSTNode) -> Scope:
        """Return the scope in which ``node`` is evaluated.

        Defaults, decorators, annotations and base classes belong to the scope around the definition,
        and so does the first iterable of a comprehension.
        """
        number = self._order.get(node, self.tree.first)
        if number >> RANK_SHIFT != self.tree.rank and self.link is not None:
            return self.counterpart(self.link.home(node)).scope(node)
        return self._scopes_from[bisect_right(self._begins, number) - 1]

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """Return the scope that a function, lambda, class, comprehension or the module makes."""
        return self._scopes[node]

    def _divide(self) -> None:
        """Find out at which number of a node which scope begins: each has an interval."""
        tree, order = self.tree, self.tree.order
        inner: list[tuple[int, cst.CSTNode, cst.CSTNode | None]] = []
        definitions: list[cst.FunctionDef | cst.ClassDef | cst.Lambda]
        definitions = [*tree.nodes(cst.FunctionDef), *tree.nodes(cst.ClassDef), *tree.nodes(cst.Lambda)]
        inner.extend((order[node.body], node.body, node) for node in definitions)
        for comprehension in tree.nodes(cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp):
            inner.append((order[comprehension] + 1, comprehension, comprehension))
            outside = comprehension.for_in.iter
            inner.append((order[outside], outside, None))
        inner.sort(key=itemgetter(0))
        enclosing = [(tree.last(tree.root) + 1, self.module_scope)]
        for begin, whole, maker in inner:
            while enclosing[-1][0] < begin:
                self._begins.append(enclosing.pop()[0] + 1)
                self._scopes_from.append(enclosing[-1][1])
            # The first iterable of a comprehension is evaluated where the comprehension stands.
            scope = enclosing[-2][1] if maker is None else Scope(maker, _kind_of(maker), enclosing[-1][1])
            if maker is not None:
                self._scopes[maker] = scope
            self._begins.append(begin)
            self._scopes_from.append(scope)
            enclosing.append((tree.last(whole), scope))
        for end, _ in reversed(enclosing[1:]):
            self._begins.append(end + 1)
            enclosing.pop()
            self._scopes_from.append(enclosing[-1][1])

    @staticmethod
    def counterpart(module: Any) -> Names:
        """Return the names of a module."""
        names: Names = module.names
        return names

    def close(self) -> None:
        """Forget everything; scopes and their bindings hold one another, and by them the tree."""
        for scope in self._scopes.values():
            scope.bindings.clear()
        vars(self).clear()

    # ------------------------------------------------------------------ collecting

    def _bind_all(self) -> None:
        tree = self.tree
        for outer in tree.nodes(cst.Global):
            self.scope(outer).globals.update(item.name.value for item in outer.names)
        for enclosing in tree.nodes(cst.Nonlocal):
            self.scope(enclosing).nonlocals.update(item.name.value for item in enclosing.names)
        for node in tree.nodes(
            cst.Import,
            cst.ImportFrom,
            cst.FunctionDef,
            cst.Lambda,
            cst.ClassDef,
            cst.Assign,
            cst.AnnAssign,
            cst.AugAssign,
            cst.For,
            cst.CompFor,
            cst.WithItem,
            cst.NamedExpr,
            cst.ExceptHandler,
            cst.ExceptStarHandler,
            cst.Del,
            cst.MatchAs,
            cst.MatchStar,
            cst.MatchMapping,
            cst.TypeAlias,
        ):
            self._collect(node)

    def _collect(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Assign():
                for target in node.targets:
                    self._target(target.target, BindingKind.ASSIGN, node.value)
            case cst.AnnAssign():
                kind = BindingKind.ASSIGN if node.value is not None else BindingKind.DECLARE
                self._target(node.target, kind, node.value)
            case cst.AugAssign():
                self._target(node.target, BindingKind.AUGMENT, node.value)
            case cst.For():
                self._target(node.target, BindingKind.LOOP, node.iter)
            case cst.CompFor():
                self._target(node.target, BindingKind.COMPREHENSION, node.iter)
            case cst.NamedExpr():
                self._target(node.target, BindingKind.WALRUS, node.value)
            case cst.WithItem(asname=cst.AsName() as alias):
                self._target(alias.name, BindingKind.WITH, node.item)
            case cst.ExceptHandler(name=cst.AsName() as alias):
                self._target(alias.name, BindingKind.EXCEPT, None)
            case cst.ExceptStarHandler(name=cst.AsName() as alias):
                self._target(alias.name, BindingKind.EXCEPT, None)
            case cst.Del():
                self._target(node.target, BindingKind.DELETE, None)
            case cst.MatchAs(name=cst.Name() as name) | cst.MatchStar(name=cst.Name() as name):
                self._bind(name.value, name, BindingKind.MATCH)
            case cst.MatchMapping(rest=cst.Name() as name):
                self._bind(name.value, name, BindingKind.MATCH)
            case cst.TypeAlias():
                self._bind(node.name.value, node.name, BindingKind.DECLARE)
            case cst.FunctionDef():
                self._bind(node.name.value, node, BindingKind.FUNCTION)
                self._parameters(node, node.params)
            case cst.Lambda():
                self._parameters(node, node.params)
            case cst.ClassDef():
                self._bind(node.name.value, node, BindingKind.CLASS)
            case cst.Import():
                for imported in node.names:
                    dotted = _dotted(imported.name)
                    if imported.asname is not None and isinstance(imported.asname.name, cst.Name):
                        renamed = imported.asname.name.value
                        self._bind(renamed, imported, BindingKind.IMPORT, imported=dotted)
                    else:
                        root = dotted.partition(".")[0]
                        self._bind(root, imported, BindingKind.IMPORT, imported=root)
            case cst.ImportFrom():
                self._import_from(node)

    def _import_from(self, node: cst.ImportFrom) -> None:
        base = "." * len(node.relative) + (_dotted(node.module) if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.star_modules.append(base)
            return
        for alias in node.names:
            name = _dotted(alias.name)
            dotted = f"{base}{name}" if base.endswith(".") else f"{base}.{name}"
            bound = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(bound, cst.Name):
                self._bind(bound.value, alias, BindingKind.IMPORT, imported=dotted)

    def _parameters(self, function: cst.CSTNode, params: cst.Parameters) -> None:
        scope = self.scope_of(function)
        for param in all_parameters(params):
            self._add(Binding(param.name.value, param, scope, BindingKind.PARAMETER))

    def _target(self, target: cst.CSTNode, kind: BindingKind, value: cst.BaseExpression | None) -> None:
        for part, path in unpacked(target):
            if isinstance(part, cst.Name):
                self._bind(part.value, part, kind, value, path)
            elif isinstance(part, cst.Attribute):
                assigned = AttributeBinding(part, kind, value, path)
                self.attributes.setdefault(part.attr.value, []).append(assigned)
                if value.__class__ is cst.IfExp or (value.__class__ is cst.Attribute and not path):
                    self.renamed.add(part.attr.value)

    def _bind(
        self,
        name: str,
        node: cst.CSTNode,
        kind: BindingKind,
        value: cst.BaseExpression | None = None,
        path: tuple[int | None, ...] = (),
        imported: str | None = None,
    ) -> None:
        scope = self.scope(node)
        if kind is BindingKind.WALRUS:
            # A walrus in a comprehension binds in the function around it.
            while scope.kind is ScopeKind.COMPREHENSION and scope.parent is not None:
                scope = scope.parent
        if name in scope.globals:
            scope = scope.module
        elif name in scope.nonlocals:
            outer = scope.parent
            while outer is not None and not (outer.kind is ScopeKind.FUNCTION and name in outer.bindings):
                outer = outer.parent
            scope = outer or scope
        self._add(Binding(name, node, scope, kind, value, path, imported))

    def _add(self, binding: Binding) -> None:
        binding.scope.bindings.setdefault(binding.name, []).append(binding)
        self.by_node[binding.node] = binding
        value = binding.value
        if _gives_dotted(binding) and not is_none(value):
            self._dotted.add((binding.scope, binding.name))
        if binding.imported is not None:
            self._dotted_spellings.add(binding.name)
            if binding.name != binding.imported.rpartition(".")[2]:
                self.renamed.add(binding.name)
        elif _gives_dotted(binding):
            self._named_after.setdefault(_first_word(value), []).append(binding)
        elif value.__class__ is cst.IfExp:
            self.renamed.add(binding.name)

    def _find_spellings(self) -> None:
        """Find what the file calls things of libraries: what it imports, and what is assigned from that."""
        after = self._named_after
        found = [*after] if self.star_modules else [*self._dotted_spellings, *(after.keys() & _BUILTINS)]
        for name in found:
            for binding in after.pop(name, ()):
                value = binding.value
                self._dotted_spellings.add(binding.name)
                if not isinstance(value, cst.Attribute) or value.attr.value != binding.name:
                    self.renamed.add(binding.name)
                found.append(binding.name)
        self.qualifiable = _Anything() if self.star_modules else _BUILTINS | self._dotted_spellings

    # ------------------------------------------------------------------ reading

    @remembered
    def reads(self, spelling: str) -> list[cst.Name]:
        """Return the names spelt so that are read, in source order."""
        return [name for name in self.tree.names_by_name.get(spelling, ()) if self.is_read(name)]

    def is_read(self, name: cst.Name | cst.Attribute) -> bool:
        """Return whether a name or attribute is loaded; the target of ``x += 1`` both loads and stores."""
        parent = self.tree.parents.get(name)
        kind = parent.__class__
        if kind in _NAMING:
            return False
        field = _READING_FIELD.get(kind)
        if field is not None:
            return getattr(parent, field) is name
        if kind in _WRITING_FIELD:
            return parent.target is not name  # type: ignore[union-attr]
        if kind is cst.Element or kind is cst.StarredElement:
            return not self._is_target(parent)  # type: ignore[arg-type]
        return True

    def _is_target(self, element: cst.CSTNode) -> bool:
        child, parent = element, self.tree.parents.get(element)
        while isinstance(parent, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
            child, parent = parent, self.tree.parents.get(parent)
        if isinstance(parent, (cst.For, cst.CompFor)):
            return child is parent.target
        return isinstance(parent, (cst.AssignTarget, cst.Del, cst.AsName))

    @remembered
    def bindings(self, node: cst.CSTNode) -> tuple[Binding, ...]:
        """Return the definitions that can reach the read of a name, in source order.

        There are none of builtins, of what is unknown, and of anything that is no name.
        """
        return self.bindings_at(node.value, node) if isinstance(node, cst.Name) else ()

    def assignment(self, node: cst.CSTNode) -> Binding | None:
        """Return the assignment ``x = value`` if no other definition can reach this read of ``x``."""
        found = self.bindings(node)
        if len(found) != 1 or found[0].kind is not BindingKind.ASSIGN or found[0].path:
            return None
        return found[0] if found[0].value is not None else None

    def bindings_at(self, name: str, at: cst.CSTNode) -> tuple[Binding, ...]:
        """Return the definitions of ``name`` that a read at ``at`` would see.

        Within the scope that binds it the flow of control decides; a function or lambda that reads a
        name of a scope around it may run at any time from its own definition on, and sees all that is in
        force then or defined later. Where there are more than ``MANY`` of them, one of that kind stands for
        all definitions.
        """
        scope = self.lookup(name, at)
        if scope is None:
            starred = self._starred(name) if self.star_modules and self.link is not None else None
            return starred if isinstance(starred, tuple) else ()
        candidates = scope.bindings[name]
        if len(candidates) == 1 and (candidates[0].kind in _UNMOVED or self._governs(candidates[0], at)):
            return tuple(candidates)
        here: Scope | None = self.scope(at)
        while here is not scope and here is not None and here.kind is ScopeKind.COMPREHENSION:
            here = here.parent
        if here is scope and scope.kind is not ScopeKind.COMPREHENSION:
            found = self._reaching_in(_root(scope)).few_reaching((scope, name), at, MANY)
            if found is not None:
                return tuple(found)
        every = self._left_for_closures(scope, name, self._closure(scope, at))
        return every if len(every) <= MANY else self._in_place_of_all(scope, name)

    def _closure(self, scope: Scope, at: cst.CSTNode) -> cst.CSTNode | None:
        """Return the function defined in the code of a scope that a place in it belongs to."""
        here: Scope | None = self.scope(at)
        inner: cst.CSTNode | None = None
        while here is not None and here is not scope:
            inner = here.node if here.kind is ScopeKind.FUNCTION else inner
            here = here.parent
        return inner

    @remembered
    def _left_for_closures(self, scope: Scope, name: str, inner: cst.CSTNode | None) -> tuple[Binding, ...]:
        """Return the definitions of a name that a function inside the scope may see, whenever it runs.

        What has been replaced by the time that the function is defined is none of them.
        """
        every = self.definitions(scope, name)
        if scope.kind is not ScopeKind.FUNCTION or len(every) < 2 or not isinstance(inner, cst.FunctionDef):
            return every
        if self.flow.loops(inner):
            return every
        reaching = self._reaching_in(_root(scope)).few_reaching((scope, name), inner, MANY)
        if reaching is None:
            return every
        order = self._order[inner]
        return tuple(each for each in every if each in reaching or self._place(each) > order) or every

    @remembered
    def _reaching_in(self, root: Root) -> ReachingDefinitions[tuple[Scope, str], Binding]:
        """Return the reaching definitions of a function, a lambda or the module."""
        variables = {
            (inner, name): list(self._defined(inner, bindings, root))
            for inner in self._run_by[root]
            for name, bindings in inner.bindings.items()
            if len(bindings) > 1 or bindings[0].kind not in _UNMOVED
        }
        return ReachingDefinitions(self.flow, root, variables)

    def _defined(
        self, scope: Scope, bindings: list[Binding], root: Root
    ) -> Iterator[tuple[cst.CSTNode, Binding | None]]:
        """Yield where a function binds a name of a scope, also of one around it with ``global``."""
        if scope.kind is ScopeKind.CLASS:
            yield scope.node, None  # another namespace in each iteration of a loop
        for binding in sorted(bindings, key=self._place):
            if binding.kind is BindingKind.PARAMETER or _root(self.scope(binding.node)) is root:
                yield binding.node, None if binding.kind is BindingKind.DELETE else binding

    @cached_property
    def _run_by(self) -> dict[Root, list[Scope]]:
        """The scopes whose code each function, lambda or the module runs: its own, and those of classes."""
        found: dict[Root, list[Scope]] = {}
        for scope in self._scopes.values():
            if scope.kind is not ScopeKind.COMPREHENSION:
                found.setdefault(_root(scope), []).append(scope)
        return found

    def loop(self, binding: Binding) -> cst.For | Comprehension | None:
        """Return the loop or comprehension whose target a definition is; None for all other definitions."""
        if binding.kind is BindingKind.COMPREHENSION:
            return binding.scope.node  # type: ignore[return-value]
        if binding.kind is BindingKind.LOOP and binding.value is not None:
            return self.tree.parents[binding.value]  # type: ignore[return-value]
        return None

    @remembered
    def definitions(self, scope: Scope, name: str) -> tuple[Binding, ...]:
        """Return all definitions of a name in a scope, deletions left out, in source order.

        The same tuple each time, so that what is found out of all of them is found out once.
        """
        bindings = [b for b in scope.bindings.get(name, ()) if b.kind is not BindingKind.DELETE]
        return tuple(sorted(bindings, key=self._place))

    @remembered
    def _in_place_of_all(self, scope: Scope, name: str) -> tuple[Binding, ...]:
        """Return what stands for all definitions of a name in a scope where too many of them reach a read."""
        first = self.definitions(scope, name)[0]
        return (Binding(name, first.node, scope, BindingKind.MANY),)

    def _place(self, binding: Binding) -> int:
        return self._order[binding.node]

    def _governs(self, binding: Binding, at: cst.CSTNode) -> bool:
        """Return whether the only definition of a name stands above ``at``, in a block around it."""
        parents = self.tree.parents
        if binding.kind is BindingKind.ASSIGN:
            assignment = parents[parents[binding.node]]
            line = parents.get(assignment)
            block = parents.get(line) if line.__class__ is cst.SimpleStatementLine else None
            if assignment.__class__ is cst.Assign and block is not None:
                return self.tree.last(assignment) < self._order[at] <= self.tree.last(block)
        return False

    def lookup(self, name: str, at: cst.CSTNode) -> Scope | None:
        """Return the scope in which ``name`` is bound, as seen from ``at``; None if no scope binds it."""
        scope: Scope | None = self.scope(at)
        own = True
        while scope is not None:
            if name in scope.globals:
                return scope.module if name in scope.module.bindings else None
            if name in scope.bindings and (own or scope.kind is not ScopeKind.CLASS):
                return scope
            own = own and scope.kind is ScopeKind.COMPREHENSION
            scope = scope.parent
        return None

    def uses(self, binding: Binding) -> list[cst.Name]:
        """Return the reads that this definition reaches, in source order, nested scopes included."""
        found = self._uses(binding.scope, binding.name).get(binding, [])
        self.tree.effort.spend(len(found))
        return found

    def uses_elsewhere(self, binding: Binding) -> list[cst.BaseExpression]:
        """Return the reads in other files of a definition of the module level: ``utils.helper``."""
        if self.link is None or binding.scope is not self.module_scope:
            return []
        found: list[cst.BaseExpression] = []
        for user in self.link.users(self, (binding.name,)):
            found += self.counterpart(user).reads_of_import(binding)
        return found

    def stores(self, name: str, *, container: bool = False) -> Iterator[Store]:
        """Yield what may set an attribute of some name,
        or put something into the ``container`` that it is.
        """
        for assigned in self.attributes.get(name, ()):
            yield Store(assigned.target.value, name, plain=True)
        for read in self.tree.attributes_by_name.get(name, ()) if container else ():
            if self.may_put(read) and self.is_read(read):
                yield Store(read.value, name)
        for store in self._stores_by_key:
            if store.name is None or store.name == name:
                yield store

    @cached_property
    def _stores_by_key(self) -> list[Store]:
        """What sets attributes by a text, or in the dict in which an object keeps them."""
        found: list[Store] = []
        calls = self.tree.calls_by_name
        for call in (*calls.get("setattr", ()), *calls.get("__setattr__", ())):
            match call:
                case cst.Call(args=[cst.Arg(value=owner), cst.Arg(value=key), _]):
                    found.append(Store(owner, _written(key)))
                case cst.Call(func=cst.Attribute(value=owner), args=[cst.Arg(value=key), _]):
                    found.append(Store(owner, _written(key)))
        kept = ((read, read.value) for read in self.tree.attributes_by_name.get("__dict__", ()))
        listed = ((call, call.args[0].value) for call in calls.get("vars", ()) if len(call.args) == 1)
        for read, owner in (*kept, *listed):
            if self.may_put(read):
                match self.tree.parent(read):
                    case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                        found.append(Store(owner, _written(key)))
                    case _:
                        found.append(Store(owner, None))
        return found

    def may_put(self, read: cst.BaseExpression) -> bool:
        """Return whether a read of a container does more than to look something up."""
        match [*islice(self.tree.ancestors(read), 2)]:
            case [cst.Subscript(value=held), _] if held is read:
                return self._changes(read)
            case [cst.Attribute(value=held, attr=cst.Name(method)), *_] if held is read:
                return method not in _LOOKING_UP
            case [cst.ComparisonTarget() | cst.Comparison() | cst.For() | cst.CompFor(), *_]:
                return False
            case [cst.Arg(star="**") | cst.StarredDictElement(), *_]:
                return False
        return True

    def _changes(self, read: cst.BaseExpression) -> bool:
        """Return whether a read of a container changes it, or one that it holds, right there:
        ``options["loss"]["mean"] = True``, ``sizes.append(2)``.
        """
        node: cst.CSTNode = read
        for outer in self.tree.ancestors(read):
            match outer:
                case cst.Subscript(value=held) if held is node:
                    node = outer
                case cst.AssignTarget() | cst.AugAssign() | cst.AnnAssign() if outer.target is node:
                    return node is not read
                case cst.Del():
                    return node is not read
                case cst.Attribute(value=held, attr=cst.Name(method)) if held is node:
                    return method in _CHANGING and self.tree.is_called(outer)
                case _:
                    return False
        return False

    def reads_of_import(self, binding: Binding) -> list[cst.BaseExpression]:
        """Return the reads in this file of what another one defines."""
        found: list[cst.BaseExpression] = []
        for own in self._imports_by_name.get(binding.name, ()):
            target = self.imported_by(own)
            if isinstance(target, tuple) and binding in target:
                found += self.uses(own)
        if self.star_modules:
            found += (read for read in self.reads(binding.name) if binding in self.bindings(read))
        for attribute in self.tree.attributes_by_name.get(binding.name, ()):
            target = self.imported(attribute)
            if isinstance(target, tuple) and binding in target:
                found.append(attribute)
        return found

    @cached_property
    def _imports_by_name(self) -> dict[str, list[Binding]]:
        """The imports of the file by the name that the other file has for what they bring."""
        found: dict[str, list[Binding]] = {}
        for binding in self.by_node.values():
            if binding.imported is not None:
                found.setdefault(binding.imported.rpartition(".")[2], []).append(binding)
        return found

    def names_of_import(self, name: str) -> set[str]:
        """Return what ``from utils import note as record`` calls what another file calls ``note``."""
        return {binding.name for binding in self._imports_by_name.get(name, ())}

    @remembered
    def _uses(self, scope: Scope, name: str) -> dict[Binding, list[cst.Name]]:
        """Return the reads of each definition of a name; those that all reach are one list for all."""
        every = self.definitions(scope, name)
        too_many = self._in_place_of_all(scope, name) if len(every) > MANY else every
        of_all: list[cst.Name] = []
        of_some: dict[Binding, list[cst.Name]] = {}
        for read in self._reads_of(name).get(scope, ()):
            reaching = self.bindings(read)
            if reaching is every or reaching is too_many:
                of_all.append(read)
            else:
                for binding in reaching:
                    of_some.setdefault(binding, []).append(read)
        found = {too_many[0]: of_all} if too_many is not every else {}
        for binding in every:
            own = of_some.get(binding)
            if own is not None and of_all:
                own = sorted((*own, *of_all), key=self._order.__getitem__)
            found[binding] = of_all if own is None else own
        return found

    @remembered
    def _reads_of(self, name: str) -> dict[Scope, list[cst.Name]]:
        """Return the reads of a spelling, in source order, by the scope that binds it for them."""
        found: dict[Scope, list[cst.Name]] = {}
        for read in self.reads(name):
            scope = self.lookup(name, read)
            if scope is not None:
                found.setdefault(scope, []).append(read)
        return found

    # ------------------------------------------------------------------ dotted names

    def qualified(self, node: cst.CSTNode) -> str | None:
        """Return the library's dotted name for a name or attribute; builtins are ``builtins.print``.

        Spellings of one thing are brought to its public one (``torch.utils.data.dataloader.DataLoader``
        is ``torch.utils.data.DataLoader``). None: ambiguous, shadowed, computed or the user's own.
        """
        if node.__class__ is cst.Name:
            if node.value not in self.qualifiable:
                return None
        elif node.__class__ is not cst.Attribute or not self._may_lead_away(node):
            return None
        return None if node in self._pending else self._dotted_name(node)

    def either_qualified(self, node: cst.BaseExpression) -> list[str | None]:
        """Return the full names of all that an expression may stand for, of which a condition chooses one.

        ``Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor``, or an ``if`` with two assignments.
        """
        found = self.qualified(node)
        if found is not None:
            return [found]
        match node:
            case cst.IfExp():
                ways: list[cst.CSTNode | None] = [node.body, node.orelse]
            case cst.Name():
                ways = list(map(_plainly_bound, self.bindings(node)))
            case cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)):
                ways = list(map(_plainly_bound, self.attributes.get(name, ())))
            case _:
                return [None]
        parts = [
            part
            for way in ways
            for part in ((way.body, way.orelse) if isinstance(way, cst.IfExp) else (way,))
        ]
        return [None if part is None else self.qualified(part) for part in parts]

    @remembered
    def _dotted_name(self, node: cst.CSTNode) -> str | None:
        self._pending.add(node)
        try:
            result: str | None = None
            if isinstance(node, cst.Name):
                result = self._qualified_name(node)
            elif isinstance(node, cst.Attribute):
                base = self.qualified(node.value)
                if base is not None:
                    result = canonical(f"{base}.{node.attr.value}")
                    if self._is_patched(node, result):
                        result = None
                elif self.link is not None:
                    found = self.imported(node)
                    result = None if found is None else self._library_name(found)
        finally:
            self._pending.discard(node)
        return result

    def _is_patched(self, node: cst.Attribute, dotted: str) -> bool:
        """Return whether the file replaces a function that is called: ``torch.load = partial(…)``."""
        assigned = self.attributes.get(node.attr.value)
        if assigned is None or not self.tree.is_called(node):
            return False
        return any(self.qualified(each.target) == dotted for each in assigned)

    def _may_lead_away(self, node: cst.BaseExpression) -> bool:
        """Return whether an attribute may be of a library or another file,
        going by the name that it begins with.

        Most are those of ``self``, and the like: of neither, whatever they are called.
        """
        root: Any = node
        while root.__class__ is cst.Attribute:
            root = root.value
        return root.__class__ is cst.Name and (root.value in self.qualifiable or self._loads_by_name)

    @cached_property
    def _loads_by_name(self) -> bool:
        """Whether names may stand for files of the project that are not imported by a statement."""
        return self.link is not None and any(map(self.tree.mentions, ("import_module", "__import__")))

    def _qualified_name(self, name: cst.Name) -> str | None:
        scope = self.lookup(name.value, name)
        if scope is not None:
            if (scope, name.value) not in self._dotted:
                return None
            # ``except ImportError: thing = None`` leaves the import as the only meaning.
            bindings = self.bindings(name)
            answers = {self.bound_name(binding) for binding in bindings if not is_none(binding.value)}
            return answers.pop() if len(answers) == 1 else None
        if self.link is not None and self.star_modules:
            starred = self._starred(name.value)
            if starred is not None:
                return self._library_name(starred)
        for module in self.star_modules:
            dotted = canonical(f"{module}.{name.value}")
            if self._known(dotted):
                return dotted
        if name.value in _BUILTINS:
            return f"builtins.{name.value}"
        return self._brought_along(name) if self.star_modules else None

    def _brought_along(self, name: cst.Name) -> str | None:
        """Return what a name means that only a star import of another file of the project can have brought
        in.

        ``from modeling.deeplab import *`` brings the imports of that file: ``torch``, ``nn``.
        """
        library = _BROUGHT_ALONG.get(name.value)
        if library is None or name.value == library:
            return library
        asked = self.tree.parent(name)
        if not isinstance(asked, cst.Attribute) or asked.value is not name or not self.tree.mentions("torch"):
            return None
        return library if self._known(f"{library}.{asked.attr.value}") else None

    def bound_name(self, binding: Binding) -> str | None:
        """Return the dotted name that a definition makes its name stand for, if it does."""
        if not _gives_dotted(binding):
            return None
        if binding.imported is not None:
            if self.link is not None and self.link.defines(self, binding):
                return None
            found = None if self.link is None else self.imported_by(binding)
            return canonical(binding.imported) if found is None else self._library_name(found)
        return self.qualified(binding.value) if binding.value is not None else None

    # ------------------------------------------------------------------ other files

    def imported_by(self, binding: Binding) -> Target | None:
        """Return what an import brings from another file of the project."""
        return None if self.link is None else self.link.imported(self, binding)

    def imported(self, node: cst.CSTNode) -> Target | None:
        """Return what a name or attribute, such as ``utils.helper``, stands for in another file."""
        if self.link is None:
            return None
        if isinstance(node, cst.Attribute):
            base = self.imported(node.value) if self._may_lead_away(node) else None
            return self.link.member(base, node.attr.value) if isinstance(base, Path) else None
        if not isinstance(node, cst.Name):
            return None
        bindings = self.bindings(node)
        if len(bindings) > 1:
            # ``plugin = None`` where the import fails: it is used where that did not happen.
            bindings = tuple(binding for binding in bindings if not is_none(binding.value))
        if len(bindings) == 1 and bindings[0].kind is BindingKind.IMPORT:
            return self.imported_by(bindings[0])
        if len(bindings) == 1 and isinstance(bindings[0].value, cst.Call):
            return self._imported_by_name(bindings[0].value)
        return bindings if bindings and self.tree.is_elsewhere(bindings[0].node) else None

    def _imported_by_name(self, call: cst.Call) -> Target | None:
        """Return the file that ``importlib.import_module("utils.meters")`` imports."""
        match call.args:
            case [cst.Arg(value=cst.SimpleString(evaluated_value=str(name)), keyword=None)]:
                if self.link is not None and self.qualified(call.func) in IMPORTERS:
                    return self.link.at(self, name)
        return None

    def _starred(self, name: str) -> Target | None:
        """Return what the star imports of the file bring under a name from other files of the project."""
        assert self.link is not None
        return self.link.starred(self, name)

    def _library_name(self, found: Target) -> str | None:
        """Return the dotted name of the library that another file has for what it imports."""
        if isinstance(found, Path):
            return None
        if isinstance(found, str):
            return canonical(found)
        answers = {self._name_elsewhere(binding) for binding in found if not is_none(binding.value)}
        return answers.pop() if len(answers) == 1 else None

    @solved(None)
    def _name_elsewhere(self, binding: Binding) -> str | None:
        """Return the `bound_name` of a definition in another file, which may lead back here:
        ``from . import plugin``, or ``plugin = None`` where that fails.
        """
        return self.bound_name(binding)

    def spelling(self, qualified: str, at: cst.CSTNode) -> str | None:
        """Return how code at ``at`` can spell a dotted name with the imports that the file has.

        The shortest of the spellings that mean exactly this there; None if no import serves.
        """
        found: list[tuple[int, str]] = []
        for name, target, bindings in self._imported:
            if qualified != target and not qualified.startswith(target + "."):
                continue
            if self.lookup(name, at) is self.module_scope and any(self._is_in_force(b, at) for b in bindings):
                text = name + qualified[len(target) :]
                found.append((len(text), text))
        return min(found)[1] if found else None

    @cached_property
    def _imported(self) -> list[tuple[str, str, list[Binding]]]:
        """The names at the module level that imports bind, and always to the same."""
        found: list[tuple[str, str, list[Binding]]] = []
        for name, bindings in self.module_scope.bindings.items():
            # ``import torch`` and ``import torch.utils.data`` bind the same name to the same package.
            targets = {canonical(binding.imported or "") for binding in bindings}
            if len(targets) == 1 and all(binding.kind is BindingKind.IMPORT for binding in bindings):
                found.append((name, targets.pop(), bindings))
        return found

    def _is_in_force(self, binding: Binding, at: cst.CSTNode) -> bool:
        """Return whether an import of the module level has been made whenever code at ``at`` runs.

        One that stands below may be yet to come: a function can be called before the file is read to its end.
        """
        order = self.tree.order
        return self.tree.parents[self.tree.statement(binding.node)] is self.tree.root and (
            order[binding.node] < order[at]
        )


def _root(scope: Scope) -> Root:
    """Return the function, lambda or module that runs the code of a scope."""
    while scope.kind in _INSIDE and scope.parent is not None:
        scope = scope.parent
    return scope.node  # type: ignore[return-value]


def _kind_of(maker: cst.CSTNode) -> ScopeKind:
    """Return the kind of scope that a node makes."""
    if maker.__class__ is cst.ClassDef:
        return ScopeKind.CLASS
    return ScopeKind.COMPREHENSION if maker.__class__ in _COMPREHENSIONS else ScopeKind.FUNCTION


def _first_word(value: cst.CSTNode | None) -> str:
    """Return the name that a chain of attributes begins with; empty if it begins with no name."""
    start = None if value is None else start_of(value, cst.Attribute)
    return start.value if isinstance(start, cst.Name) else ""


def _gives_dotted(binding: Binding) -> bool:
    """Return whether a definition makes its name stand for another, by an import or a plain assignment."""
    if binding.kind is BindingKind.IMPORT:
        return binding.imported is not None
    return binding.kind is BindingKind.ASSIGN and not binding.path and binding.value.__class__ in _DOTTED


IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__"})
_INSIDE = frozenset({ScopeKind.CLASS, ScopeKind.COMPREHENSION})
_UNMOVED = frozenset(
    {
        BindingKind.IMPORT,
        BindingKind.FUNCTION,
        BindingKind.CLASS,
        BindingKind.PARAMETER,
        BindingKind.COMPREHENSION,
    }
)

# Nodes whose direct name children give or drop a name, and never read one.
_NAMING = frozenset(
    {
        cst.FunctionDef,
        cst.ClassDef,
        cst.ImportAlias,
        cst.ImportFrom,
        cst.Import,
        cst.AsName,
        cst.NameItem,
        cst.AssignTarget,
        cst.Del,
        cst.TypeAlias,
        cst.TypeVar,
        cst.MatchAs,
        cst.MatchStar,
        cst.MatchKeywordElement,
        cst.MatchMapping,
    }
)
# The one field of a node whose name is read; its other names are not variables.
_READING_FIELD: dict[type, str] = {cst.Attribute: "value", cst.Arg: "value", cst.Param: "default"}
_WRITING_FIELD = frozenset({cst.For, cst.CompFor, cst.AnnAssign, cst.NamedExpr})


def leaves(body: cst.BaseSuite, *, jumps_leave: bool = True) -> bool:
    """Return whether control certainly does not run off the end of this block.

    ``jumps_leave``: whether ``break`` and ``continue`` count beside ``return`` and ``raise``.
    """
    if not body.body:
        return False
    last: cst.CSTNode = body.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    if isinstance(last, (cst.Return, cst.Raise)):
        return True
    if isinstance(last, (cst.Continue, cst.Break)):
        return jumps_leave
    if isinstance(last, cst.With):
        return leaves(last.body, jumps_leave=jumps_leave)
    while isinstance(last, cst.If):
        if last.orelse is None or not leaves(last.body, jumps_leave=jumps_leave):
            return False
        last = last.orelse
        if isinstance(last, cst.Else):
            return leaves(last.body, jumps_leave=jumps_leave)
    return False


def unpacked(target: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, tuple[int | None, ...]]]:
    """Yield the names, attributes and items that an assignment to ``target`` sets, with the path of each."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        yield target, ()
        return
    count = len(target.elements)
    starred = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), count)
    for index, element in enumerate(target.elements):
        step = index if index < starred else None if index == starred else index - count
        for part, path in unpacked(element.value):
            yield part, (step, *path)


def _plainly_bound(binding: Binding | AttributeBinding) -> cst.BaseExpression | None:
    """Return what a plain assignment gives a name or an attribute; None for any other binding."""
    plain = binding.kind is BindingKind.ASSIGN and not binding.path
    return binding.value if plain else None


def all_parameters(params: cst.Parameters) -> Iterator[cst.Param]:
    """Yield every parameter of a function in the order of its signature, with ``*args`` and ``**kwargs``."""
    yield from params.posonly_params
    yield from params.params
    if isinstance(params.star_arg, cst.Param):
        yield params.star_arg
    yield from params.kwonly_params
    if params.star_kwarg is not None:
        yield params.star_kwarg


def dotted_text(node: cst.CSTNode) -> str | None:
    """Return ``a.b.c`` for a chain of plain attributes; None for anything else."""
    if type(node) is cst.Name:  # most often
        return node.value
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def _dotted(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    assert isinstance(node, cst.Name)
    return node.value


# Modules whose members are public under a shorter name.
_MOVED_PREFIXES = (
    ("lightning.pytorch.", "lightning."),
    ("pytorch_lightning.", "lightning."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.functional.F.", "torch.nn.functional."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
    ("torch.cuda.amp.grad_scaler.", "torch.cuda.amp."),
    ("torch.amp.autocast_mode.", "torch.amp."),
    ("torch.amp.grad_scaler.", "torch.amp."),
    ("torch.nn.parallel.data_parallel.", "torch.nn.parallel."),
    ("torch.nn.parallel.distributed.", "torch.nn.parallel."),
    ("torch.distributed.fsdp.fully_sharded_data_parallel.", "torch.distributed.fsdp."),
    ("torch.distributed.fsdp._fully_shard.", "torch.distributed.fsdp."),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch._tensor.", "torch."),
    ("torch.optim.optimizer.", "torch.optim."),
    ("torchmetrics.metric.", "torchmetrics."),
)
_MOVED = {
    "pytorch_lightning": "lightning",
    "lightning.pytorch": "lightning",
    "torch_geometric.data.DataLoader": "torch_geometric.loader.DataLoader",
    "torch.functional.F": "torch.nn.functional",
    "torch.tensor.Tensor": "torch.Tensor",
    "torch.nn.functional.Tensor": "torch.Tensor",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.autograd.no_grad": "torch.no_grad",
    "torch.autograd.enable_grad": "torch.enable_grad",
    "torch.autograd.inference_mode": "torch.inference_mode",
    "torch.autograd.set_grad_enabled": "torch.set_grad_enabled",
    "torch.amp.autocast": "torch.autocast",
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.short": "torch.int16",
    "torch.int": "torch.int32",
    "torch.long": "torch.int64",
    "torch.cfloat": "torch.complex64",
    "torch.cdouble": "torch.complex128",
}


@lru_cache(maxsize=1 << 14)
def canonical(dotted: str) -> str:
    """Return the public name of a library member, whichever of its modules it was reached through."""
    if dotted.startswith("torch.nn.modules."):
        last = dotted.rpartition(".")[2]
        return f"torch.nn.{last}" if last[:1].isupper() else dotted
    if dotted.startswith("torch.optim."):
        rest = dotted.split(".")[2:]
        if len(rest) == 2 and rest[0].islower() and rest[0] != "lr_scheduler" and rest[1][:1].isupper():
            dotted = f"torch.optim.{rest[1]}"
    for old, new in _MOVED_PREFIXES:
        if dotted.startswith(old):
            dotted = new + dotted[len(old) :]
    return _MOVED.get(dotted, dotted)
