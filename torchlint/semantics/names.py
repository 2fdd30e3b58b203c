"""Scopes, bindings and reaching definitions: what a name means at the place where it is read.

Three questions are answered, each on demand and each remembered:

* ``bindings(name)``: the definitions that can reach this read, by the structure of the statements
  around it (a later assignment in the same loop counts, one in the other branch does not);
* ``uses(binding)``: the reads that a definition reaches;
* ``qualified(node)``: the dotted name in the library that a name or attribute stands for, through
  every form of import and alias; None where it is ambiguous, shadowed or the user's own.
"""

from __future__ import annotations

import builtins
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter

import libcst as cst

from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.flow.graph import Comprehension
from torchlint.syntax import SyntaxTree

_BUILTINS = frozenset(dir(builtins))
# LibCST's node classes are abstract base classes, on which ``isinstance`` is slow: the hot paths of this
# file ask for exact types.
_COMPREHENSIONS = frozenset({cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp})
_DEFINITIONS = frozenset({cst.FunctionDef, cst.ClassDef, cst.Lambda})
_DOTTED: frozenset[type] = frozenset({cst.Name, cst.Attribute})
MANY = 64
"""How many definitions that reach a read are told apart; where there are more, one stands for all of them."""
_LIMIT = 2 * MANY
_LONGEST = 50
_BLOCKS: frozenset[type] = frozenset(
    {cst.IndentedBlock, cst.Module, cst.SimpleStatementLine, cst.SimpleStatementSuite}
)


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


# What files call the libraries that every file of a project imports.
_BROUGHT_ALONG = {"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}


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

    def __init__(self, tree: SyntaxTree, known: Callable[[str], bool] = lambda name: False) -> None:
        self.tree = tree
        self._known = known
        self.module_scope = Scope(tree.root, ScopeKind.MODULE, None)
        self._scopes: dict[cst.CSTNode, Scope] = {tree.root: self.module_scope}
        self._order = tree.order
        self._begins, self._scopes_from = [0], [self.module_scope]
        self._reaching: dict[cst.CSTNode, tuple[Binding, ...]] = {}
        self._uses: dict[Binding, list[cst.Name]] = {}
        self._read_from: dict[str, dict[Scope, list[cst.Name]]] = {}
        self._flows: dict[tuple[Scope, str], _Flow] = {}
        self._definitions: dict[tuple[Scope, str], tuple[Binding, ...]] = {}
        self._too_many: dict[tuple[Scope, str], tuple[Binding, ...]] = {}
        self._governed: dict[Binding, range] = {}
        self._qualified: dict[cst.CSTNode, str] = {}
        """The dotted names that were asked for; empty for what stands for nothing of a library."""
        self._dotted: dict[tuple[Scope, str], bool] = {}
        self._pending: set[cst.CSTNode] = set()
        self.star_modules: list[str] = []
        self.attributes: dict[str, list[AttributeBinding]] = {}
        self.by_node: dict[cst.CSTNode, Binding] = {}
        self.renamed: set[str] = set()
        """What the file calls things that may be of libraries, and end with another name there."""
        self._dotted_spellings: set[str] = set()
        """What the file calls things of libraries, if only somewhere: the names that can be qualified."""
        self._named_after: dict[str, list[Binding]] = {}
        """Plain assignments of names and attributes, by the name that those begin with."""
        self._divide()
        self._bind_all()
        self._find_spellings()

    # ------------------------------------------------------------------ scopes

    def scope(self, node: cst.CSTNode) -> Scope:
        """The scope in which ``node`` is evaluated.

        Defaults, decorators, annotations and base classes belong to the scope around the definition,
        and so does the first iterable of a comprehension.
        """
        return self._scopes_from[bisect_right(self._begins, self._order.get(node, 0)) - 1]

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope that a function, lambda, class, comprehension or the module makes."""
        return self._scopes[node]

    def _divide(self) -> None:
        """Find out at which number of a node which scope begins to reign: each reigns over an interval."""
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
        reigning = [(len(order), self.module_scope)]
        for begin, whole, maker in inner:
            while reigning[-1][0] < begin:
                self._begins.append(reigning.pop()[0] + 1)
                self._scopes_from.append(reigning[-1][1])
            # The first iterable of a comprehension is evaluated where the comprehension stands.
            scope = reigning[-2][1] if maker is None else Scope(maker, _kind_of(maker), reigning[-1][1])
            if maker is not None:
                self._scopes[maker] = scope
            self._begins.append(begin)
            self._scopes_from.append(scope)
            reigning.append((tree.last(whole), scope))
        for end, _ in reversed(reigning[1:]):
            self._begins.append(end + 1)
            reigning.pop()
            self._scopes_from.append(reigning[-1][1])

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
            case _:
                pass

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

    # ------------------------------------------------------------------ reading

    @cached_property
    def reads(self) -> Mapping[str, list[cst.Name]]:
        """Every name that is read, by spelling, in source order."""
        return _Reads(self)

    def is_read(self, name: cst.Name) -> bool:
        """Whether this name node loads a variable; the target of ``x += 1`` both loads and stores."""
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

    def bindings(self, name: cst.Name) -> tuple[Binding, ...]:
        """The definitions that can reach this read, in source order; empty for builtins and unknowns."""
        self.tree.effort.spent += 1
        found = self._reaching.get(name)
        if found is None:
            self.tree.effort.spend(0)
            found = self._reaching[name] = self.bindings_at(name.value, name)
        return found

    def assignment(self, name: cst.Name) -> Binding | None:
        """The assignment ``x = value`` if no other definition can reach this read; its ``value`` is given."""
        found = self.bindings(name)
        if len(found) != 1 or found[0].kind is not BindingKind.ASSIGN or found[0].path:
            return None
        return found[0] if found[0].value is not None else None

    def bindings_at(self, name: str, at: cst.CSTNode) -> tuple[Binding, ...]:
        """The definitions of ``name`` that a read at ``at`` would see.

        Within the scope that binds it the flow of control decides; a function or lambda that reads a
        name of a scope around it may run at any time and sees all its definitions. Where there are more
        than ``MANY`` of them, one of that kind stands for all definitions.
        """
        scope = self.lookup(name, at)
        if scope is None:
            return ()
        candidates = scope.bindings[name]
        if len(candidates) == 1 and (candidates[0].kind in _UNMOVED or self._governs(candidates[0], at)):
            return tuple(candidates)
        here: Scope | None = self.scope(at)
        while here is not scope and here is not None and here.kind is ScopeKind.COMPREHENSION:
            here = here.parent
        if here is scope and scope.kind is not ScopeKind.COMPREHENSION:
            flow = self._flows.get((scope, name))
            if flow is None:
                flow = self._flows[scope, name] = _Flow(self.tree, scope, name)
            found = flow.reaching(at)
            if found is not None:
                return tuple(found) if len(found) < 2 else tuple(sorted(found, key=self._place))
        every = self.definitions(scope, name)
        return every if len(every) <= MANY else self._in_place_of_all(scope, name)

    def loop(self, binding: Binding) -> cst.For | Comprehension | None:
        """The loop or comprehension whose target a definition is; None for all other definitions."""
        if binding.kind is BindingKind.COMPREHENSION:
            return binding.scope.node  # type: ignore[return-value]
        if binding.kind is BindingKind.LOOP and binding.value is not None:
            return self.tree.parents[binding.value]  # type: ignore[return-value]
        return None

    def definitions(self, scope: Scope, name: str) -> tuple[Binding, ...]:
        """All definitions of a name in a scope, deletions left out, in source order.

        The same tuple each time, so that what is found out of all of them is found out once.
        """
        found = self._definitions.get((scope, name))
        if found is None:
            bindings = [b for b in scope.bindings.get(name, ()) if b.kind is not BindingKind.DELETE]
            found = self._definitions[scope, name] = tuple(sorted(bindings, key=self._place))
        return found

    def _in_place_of_all(self, scope: Scope, name: str) -> tuple[Binding, ...]:
        """What stands for all definitions of a name in a scope where too many of them reach a read."""
        found = self._too_many.get((scope, name))
        if found is None:
            first = self.definitions(scope, name)[0]
            found = self._too_many[scope, name] = (Binding(name, first.node, scope, BindingKind.MANY),)
        return found

    def _place(self, binding: Binding) -> int:
        return self._order[binding.node]

    def _governs(self, binding: Binding, at: cst.CSTNode) -> bool:
        """Whether the only definition of a name stands above ``at``, in a block around it."""
        governed = self._governed.get(binding)
        if governed is None:
            governed = self._governed[binding] = self._find_governed(binding)
        return self._order[at] in governed

    def _find_governed(self, binding: Binding) -> range:
        """The numbers of the nodes that stand below ``x = value`` in its block; none for others."""
        parents = self.tree.parents
        if binding.kind is BindingKind.ASSIGN:
            assignment = parents[parents[binding.node]]
            line = parents.get(assignment)
            block = parents.get(line) if line.__class__ is cst.SimpleStatementLine else None
            if assignment.__class__ is cst.Assign and block is not None:
                return range(self.tree.last(assignment) + 1, self.tree.last(block) + 1)
        return range(0)

    def lookup(self, name: str, at: cst.CSTNode) -> Scope | None:
        """The scope in which ``name`` is bound, as seen from ``at``; None if no scope binds it."""
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
        """The reads that this definition reaches, in source order, nested scopes included."""
        found = self._uses.get(binding)
        if found is None:
            self._find_uses(binding.scope, binding.name)
            found = self._uses.setdefault(binding, [])
        self.tree.effort.spend(len(found))
        return found

    def _find_uses(self, scope: Scope, name: str) -> None:
        """Find the reads of all definitions of a name; what all of them reach is one list for all."""
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
        for binding in every:
            own = of_some.get(binding)
            if own is not None and of_all:
                own = sorted((*own, *of_all), key=self._order.__getitem__)
            self._uses[binding] = of_all if own is None else own
        if too_many is not every:
            self._uses[too_many[0]] = of_all

    def _reads_of(self, name: str) -> dict[Scope, list[cst.Name]]:
        """The reads of a spelling, in source order, by the scope that binds it for them."""
        found = self._read_from.get(name)
        if found is None:
            found = self._read_from[name] = {}
            for read in self.reads.get(name, ()):
                scope = self.lookup(name, read)
                if scope is not None:
                    found.setdefault(scope, []).append(read)
        return found

    # ------------------------------------------------------------------ dotted names

    def qualified(self, node: cst.CSTNode) -> str | None:
        """The library's dotted name for a name or attribute; builtins are ``builtins.print``.

        Spellings of one thing are brought to its public one (``torch.utils.data.dataloader.DataLoader``
        is ``torch.utils.data.DataLoader``). None: ambiguous, shadowed, computed or the user's own.
        """
        known = self._qualified.get(node)
        if known is not None:
            return known or None
        if node.__class__ is cst.Name:
            if not self.may_be_qualified(node.value):
                return None
        elif node.__class__ is not cst.Attribute:
            return None
        if node in self._pending:
            return None
        self._pending.add(node)
        try:
            result: str | None = None
            if isinstance(node, cst.Name):
                result = self._qualified_name(node)
            elif isinstance(node, cst.Attribute):
                base = self.qualified(node.value)
                if base is not None:
                    result = canonical(f"{base}.{node.attr.value}")
        finally:
            self._pending.discard(node)
        self._qualified[node] = result or ""
        return result

    def may_be_qualified(self, spelling: str) -> bool:
        """Whether a name spelt so can stand for anything of a library, going by the whole file."""
        return spelling in self._dotted_spellings or spelling in _BUILTINS or bool(self.star_modules)

    def _qualified_name(self, name: cst.Name) -> str | None:
        scope = self.lookup(name.value, name)
        if scope is not None:
            if not self._may_be_dotted(name.value, scope):
                return None
            # ``except ImportError: thing = None`` leaves the import as the only meaning.
            bindings = self.bindings(name)
            answers = {self.bound_name(binding) for binding in bindings if not _is_none(binding.value)}
            return answers.pop() if len(answers) == 1 else None
        for module in self.star_modules:
            dotted = canonical(f"{module}.{name.value}")
            if self._known(dotted):
                return dotted
        if name.value in _BUILTINS:
            return f"builtins.{name.value}"
        return self._brought_along(name) if self.star_modules else None

    def _brought_along(self, name: cst.Name) -> str | None:
        """What a name means that only a star import of another file of the project can have brought in.

        ``from modeling.deeplab import *`` brings the imports of that file: ``torch``, ``nn``.
        """
        library = _BROUGHT_ALONG.get(name.value)
        if library is None or name.value == library:
            return library
        asked = self.tree.parent(name)
        if not isinstance(asked, cst.Attribute) or asked.value is not name or not self.tree.mentions("torch"):
            return None
        return library if self._known(f"{library}.{asked.attr.value}") else None

    def _may_be_dotted(self, name: str, scope: Scope) -> bool:
        """Whether any definition of a name gives it a dotted name, whichever of them reach the read."""
        found = self._dotted.get((scope, name))
        if found is None:
            found = self._dotted[scope, name] = any(
                _gives_dotted(binding) and not _is_none(binding.value) for binding in scope.bindings[name]
            )
        return found

    def bound_name(self, binding: Binding) -> str | None:
        """The dotted name that a definition makes its name stand for, if it does."""
        if not _gives_dotted(binding):
            return None
        if binding.imported is not None:
            return canonical(binding.imported)
        return self.qualified(binding.value) if binding.value is not None else None

    def spelling(self, qualified: str, at: cst.CSTNode) -> str | None:
        """How code at ``at`` can spell a dotted name with the imports that the file has.

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
        """Whether an import of the module level has been made whenever code at ``at`` runs."""
        later = self.tree.order[binding.node] > self.tree.order[at]
        always = self.tree.parents[self.tree.statement(binding.node)] is self.tree.root
        return always and not (later and self.scope(at) is self.module_scope)


def _kind_of(maker: cst.CSTNode) -> ScopeKind:
    """The kind of scope that a node makes."""
    if maker.__class__ is cst.ClassDef:
        return ScopeKind.CLASS
    return ScopeKind.COMPREHENSION if maker.__class__ in _COMPREHENSIONS else ScopeKind.FUNCTION


def _first_word(value: cst.CSTNode | None) -> str:
    """The name that a chain of attributes begins with; empty if it begins with no name."""
    while isinstance(value, cst.Attribute):
        value = value.value
    return value.value if isinstance(value, cst.Name) else ""


def _gives_dotted(binding: Binding) -> bool:
    """Whether a definition makes its name stand for another, by an import or a plain assignment."""
    if binding.kind is BindingKind.IMPORT:
        return binding.imported is not None
    return binding.kind is BindingKind.ASSIGN and not binding.path and binding.value.__class__ in _DOTTED


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


class _Reads(Mapping[str, list[cst.Name]]):
    """The names that are read, by spelling; which of them are is found out when a spelling is asked for."""

    def __init__(self, names: Names) -> None:
        self._is_read = names.is_read
        self._spelt: dict[str, list[cst.Name]] = {}
        self._read: dict[str, list[cst.Name]] = {}
        for name in names.tree.nodes(cst.Name):
            self._spelt.setdefault(name.value, []).append(name)

    def __getitem__(self, spelling: str) -> list[cst.Name]:
        found = self._read.get(spelling)
        if found is None:
            found = self._read[spelling] = [name for name in self._spelt[spelling] if self._is_read(name)]
        if not found:
            raise KeyError(spelling)
        return found

    def __iter__(self) -> Iterator[str]:
        return (spelling for spelling in self._spelt if spelling in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Where definitions of a name may stand, unless it is bound by a walrus.
_FLOWING: frozenset[type] = _BLOCKS | {
    *(cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.ExceptHandler, cst.ExceptStarHandler),
    *(cst.MatchCase, cst.FunctionDef, cst.Lambda, cst.ClassDef),
}


def _stay(node: cst.CSTNode, _: frozenset[type]) -> cst.CSTNode:
    return node


class _Flow:
    """Which of several definitions of one name reach a place, by the structure of the statements.

    ``_after`` tells what comes out at the end of a statement: the definitions that may have been the
    last one, and whether what held before the statement is certainly gone. ``jumps_leave`` says whether
    ``break`` and ``continue`` count as leaving: they do for the rest of the loop's body, and they do not
    for what the loop leaves behind.
    """

    def __init__(self, tree: SyntaxTree, scope: Scope, name: str) -> None:
        self.tree = tree
        self.within: dict[cst.CSTNode, list[Binding]] = {}
        self._statements: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        """Those statements of each block that bind the name, in source order."""
        self._left: dict[tuple[cst.CSTNode, bool], tuple[list[Binding], bool]] = {}
        self._rounds: dict[cst.CSTNode, list[Binding]] = {}
        self._walrus = any(b.kind is BindingKind.WALRUS for b in scope.bindings[name])
        """Whether expressions, and the tests of conditions, may bind the name."""
        parents, within = tree.parents, self.within
        for binding in sorted(scope.bindings[name], key=lambda b: tree.order[b.node]):
            child: cst.CSTNode = binding.node
            within.setdefault(child, []).append(binding)
            node = parents.get(child)
            # No search goes on beyond what makes the scope.
            while node is not None and child is not scope.node:
                if node.__class__ is cst.If and not self._walrus:
                    node = tree.climb(node, _FLOWING)  # the first of a chain of ``elif``
                within.setdefault(node, []).append(binding)
                if node.__class__ in _BLOCKS:
                    statements = self._statements.setdefault(node, [])
                    if not statements or statements[-1] is not child:
                        statements.append(child)
                child, node = node, parents.get(node)

    def reaching(self, use: cst.CSTNode) -> list[Binding] | None:
        """The definitions that may be the last one before ``use``, deletions left out; None if too many."""
        found: list[Binding] = []
        parents, within = self.tree.parents, self.within
        climb = self.tree.climb if not self._walrus else _stay
        child = climb(use, _FLOWING)
        parent = parents.get(child)
        while parent is not None:
            # Whatever else does not hold a definition of the name has nothing to tell of it.
            if (parent in within or parent.__class__ in _DEFINITIONS) and self._step(child, parent, found):
                break
            if len(found) > _LIMIT and _are_too_many(found):
                return None
            child = parent if parent.__class__ is not cst.If else climb(parent, _FLOWING)
            parent = parents.get(child)
        distinct = dict.fromkeys(b for b in found if b.kind is not BindingKind.DELETE)
        return list(distinct) if len(distinct) <= MANY else None

    def _step(self, child: cst.CSTNode, parent: cst.CSTNode, found: list[Binding]) -> bool:
        """Take up what reaches ``child`` from inside ``parent``; whether all that came before is dead."""
        match parent:
            case cst.IndentedBlock() | cst.Module() | cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                return self._before(parent, found, jumps_leave=True, end=child)
            case cst.For() if child is parent.body:
                if self._take(parent.target, found):
                    return True
                found.extend(self._around(parent.body))
            case cst.For() if child is parent.orelse:
                found.extend(self._around(parent.body))
                self._take(parent.target, found)
            case cst.While():
                if child is not parent.test and self._take(parent.test, found):
                    return True
                found.extend(self._around(parent.body))
            case cst.If() if child is not parent.test:
                return self._take(parent.test, found)
            case cst.With():
                stop = next((i for i, item in enumerate(parent.items) if item is child), len(parent.items))
                return any(self._take(item, found) for item in reversed(parent.items[:stop]))
            case cst.Try() | cst.TryStar() if child is not parent.body:
                if child is parent.orelse:
                    return self._before(parent.body, found, jumps_leave=True)
                found.extend(self.within.get(parent.body, ()))
                if child is parent.finalbody:
                    for handler in parent.handlers:
                        found.extend(self.within.get(handler, ()))
                    if parent.orelse is not None:
                        found.extend(self.within.get(parent.orelse, ()))
            case cst.ExceptHandler() | cst.ExceptStarHandler() if child is parent.body:
                return parent.name is not None and self._take(parent.name, found)
            case cst.MatchCase() if child is not parent.pattern:
                return self._take(parent.pattern, found)
            case cst.FunctionDef() | cst.Lambda() if child is parent.body:
                self._take(parent.params, found)
                # Only a definition of the scope that reads it ends the search; a lambda or a
                # comprehension passes on to the function around it.
                return True
            case cst.ClassDef() if child is parent.body:
                return True
            case cst.BaseExpression():
                # Inside one expression only a walrus further left can have bound the name.
                before = [
                    b
                    for b in self.within.get(parent, ())
                    if b.kind is BindingKind.WALRUS
                    and not self.tree.contains(child, b.node)
                    and self.tree.order[b.node] < self.tree.order[child]
                ]
                found.extend(before[-1:])
            case _:
                pass
        return False

    def _take(self, node: cst.CSTNode, found: list[Binding]) -> bool:
        last = self.within.get(node, [])[-1:]
        found.extend(last)
        return bool(last)

    def _before(
        self,
        block: cst.CSTNode,
        found: list[Binding],
        *,
        jumps_leave: bool,
        end: cst.CSTNode | None = None,
    ) -> bool:
        """Take up what the statements of a block leave behind, those above ``end`` if it is given."""
        statements, order = self._statements.get(block), self.tree.order
        if statements is None:
            return False
        last = len(statements)
        if end is not None:
            last = bisect_left(statements, order[end], key=order.__getitem__)
        for number in range(last - 1, -1, -1):
            live, kills = self._after(statements[number], jumps_leave)
            found.extend(live)
            if kills:
                return True
            if len(found) > _LIMIT and _are_too_many(found):
                return False
        return False

    def _around(self, body: cst.BaseSuite) -> list[Binding]:
        """What a whole iteration of a loop may leave behind for the next one, or for after the loop."""
        if body not in self.within:
            return []
        known = self._rounds.get(body)
        if known is None:
            known = self._rounds[body] = self._block(body, jumps_leave=False)[0]
        return known

    def _block(self, body: cst.BaseSuite, jumps_leave: bool) -> tuple[list[Binding], bool]:
        if leaves(body, jumps_leave=jumps_leave):
            return [], True
        found: list[Binding] = []
        return found, self._before(body, found, jumps_leave=jumps_leave)

    def _after(self, node: cst.CSTNode, jumps_leave: bool) -> tuple[list[Binding], bool]:
        known = self._left.get((node, jumps_leave))
        if known is None:
            known = self._left[node, jumps_leave] = self._find_after(node, jumps_leave)
        return known

    def _find_after(self, node: cst.CSTNode, jumps_leave: bool) -> tuple[list[Binding], bool]:
        match node:
            case cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                found: list[Binding] = []
                return found, self._before(node, found, jumps_leave=jumps_leave)
            case cst.If():
                return self._after_if(node, jumps_leave)
            case cst.For() | cst.While():
                return self._after_loop(node, jumps_leave)
            case cst.With():
                live, kills = self._block(node.body, jumps_leave)
                if not kills:
                    kills = any(self._take(item, live) for item in reversed(node.items))
                return live, kills
            case cst.Try() | cst.TryStar():
                return self._after_try(node, jumps_leave)
            case cst.Match():
                return self._after_match(node, jumps_leave)
            case cst.FunctionDef() | cst.ClassDef():
                own = [b for b in self.within.get(node, []) if b.node is node]
                return own, bool(own)
            case _:
                last = self.within.get(node, [])[-1:]
                return last, bool(last)

    def _after_if(self, node: cst.If, jumps_leave: bool) -> tuple[list[Binding], bool]:
        chain = [node]
        while isinstance(chain[-1].orelse, cst.If):
            chain.append(chain[-1].orelse)
        live: list[Binding] = []
        kills = False
        if chain[-1].orelse is not None:
            live, kills = self._block(chain[-1].orelse.body, jumps_leave)
        for test in reversed(chain):
            branch, branch_kills = self._block(test.body, jumps_leave)
            live = branch + live
            _are_too_many(live)
            kills = kills and branch_kills
            tested = self.within.get(test.test, [])[-1:]
            if tested and not kills:
                live, kills = live + tested, True
        return live, kills

    def _after_loop(self, node: cst.For | cst.While, jumps_leave: bool) -> tuple[list[Binding], bool]:
        live = list(self._around(node.body))
        self._take(node.target if isinstance(node, cst.For) else node.test, live)
        # ``while True`` is only left from inside, so what its body binds first has been bound.
        kills = isinstance(node, cst.While) and _is_true(node.test) and self._block(node.body, False)[1]
        if node.orelse is not None:
            other, other_kills = self._block(node.orelse.body, jumps_leave)
            return live + other, kills or other_kills
        return live, kills and bool(live)

    def _after_try(self, node: cst.Try | cst.TryStar, jumps_leave: bool) -> tuple[list[Binding], bool]:
        live, kills = self._block(node.body, jumps_leave)
        if node.orelse is not None:
            after, after_kills = self._block(node.orelse.body, jumps_leave)
            live = after if after_kills else live + after
            kills = kills or after_kills
        for handler in node.handlers:
            caught, caught_kills = self._block(handler.body, jumps_leave)
            live = live + caught
            if not caught_kills:
                # What the body bound before it failed is still there after this handler.
                live = live + self.within.get(node.body, [])
                kills = False
        if node.finalbody is not None:
            last, last_kills = self._block(node.finalbody.body, jumps_leave)
            live, kills = (last, True) if last_kills else (live + last, kills)
        return live, kills

    def _after_match(self, node: cst.Match, jumps_leave: bool) -> tuple[list[Binding], bool]:
        live: list[Binding] = []
        total, all_kill = False, True
        for case in node.cases:
            branch, kills = self._block(case.body, jumps_leave)
            if not kills:
                kills = self._take(case.pattern, branch)
            live += branch
            all_kill = all_kill and kills
            catch_all = isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None
            total = total or (catch_all and case.guard is None)
        return live, total and all_kill


def _are_too_many(found: list[Binding]) -> bool:
    """Whether more definitions were found than are told apart; what is there twice is dropped."""
    if len(found) > _LIMIT:
        found[:] = list(dict.fromkeys(found))[: _LIMIT + 1]
    return len(found) > MANY


def leaves(body: cst.BaseSuite, *, jumps_leave: bool = True) -> bool:
    """Whether control certainly does not run off the end of this block.

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
    """The names, attributes and items that an assignment to ``target`` sets, with the path of each."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        yield target, ()
        return
    count = len(target.elements)
    starred = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), count)
    for index, element in enumerate(target.elements):
        step = index if index < starred else None if index == starred else index - count
        for part, path in unpacked(element.value):
            yield part, (step, *path)


def all_parameters(params: cst.Parameters) -> Iterator[cst.Param]:
    """Every parameter of a function in the order of its signature, ``*args`` and ``**kwargs`` included."""
    yield from params.posonly_params
    yield from params.params
    if isinstance(params.star_arg, cst.Param):
        yield params.star_arg
    yield from params.kwonly_params
    if params.star_kwarg is not None:
        yield params.star_kwarg


def dotted_text(node: cst.CSTNode) -> str | None:
    """``a.b.c`` for a chain of plain attributes of usual length; None for anything else."""
    if type(node) is cst.Name:  # most often
        return node.value
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
        if len(parts) > _LONGEST:
            return None
    if type(node) is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def _dotted(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    assert isinstance(node, cst.Name)
    return node.value


def _is_none(value: cst.BaseExpression | None) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"


def _is_true(test: cst.BaseExpression) -> bool:
    return (isinstance(test, cst.Name) and test.value == "True") or (
        isinstance(test, cst.Integer) and test.value != "0"
    )


# Modules whose members are public under a shorter name.
_MOVED_PREFIXES = (
    ("lightning.pytorch.", "lightning."),
    ("pytorch_lightning.", "lightning."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.autograd.variable.", "torch.autograd."),
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
)
_MOVED = {
    "pytorch_lightning": "lightning",
    "lightning.pytorch": "lightning",
    "torch_geometric.data.DataLoader": "torch_geometric.loader.DataLoader",
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
    """The public name of a library member, whichever of its modules it was reached through."""
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
