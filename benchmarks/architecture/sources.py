"""The modules that are measured, parsed, and what several measures ask of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import libcst as cst

MODEL = "torchlint.semantics"
FACADE = "torchlint.semantics.module"
KERNEL = "torchlint.semantics.flow"
LEXICON = "torchlint.semantics.lexicon"
COMMENTS = "torchlint.semantics.comments"
API = "torchlint.semantics.api"
RULES = "rules"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def below(name: str, package: str) -> bool:
    """Return whether a module is a package or in it."""
    return name == package or name.startswith(f"{package}.")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something was counted; line 0 is the file as a whole."""

    path: str
    line: int
    what: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}  {self.what}" if self.what else where


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one measure.

    Attributes:
        value: what is compared with what is wanted.
        shown: the same as the table shows it, with what else belongs to it.
        parts: further numbers, by name.
        places: what was counted.
    """

    value: int
    shown: str
    parts: Mapping[str, int | str]
    places: tuple[Place, ...]


def counted(places: list[Place], **parts: int) -> Measured:
    """Return the number of places, and of the modules that have them."""
    modules = len({place.path for place in places})
    shown = f"{len(places)} in {modules} modules" if places else "0"
    return Measured(len(places), shown, {"modules": modules, **parts}, tuple(sorted(places)))


class Code:
    """One module: its name, text and syntax tree."""

    def __init__(self, name: str, path: str, text: str) -> None:
        self.name = name
        self.path = path
        self.text = text
        self.tree = ast.parse(text, path)

    @property
    def lines(self) -> int:
        """How many lines the file has, blank ones and comments included."""
        return len(self.text.splitlines())

    def place(self, node: ast.AST, what: str = "") -> Place:
        """Return where a node stands."""
        return Place(self.path, getattr(node, "lineno", 1), what)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node with the one that holds it."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that hold a node, from the inside out."""
        found = self.parents.get(node)
        while found is not None:
            yield found
            found = self.parents.get(found)

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """What the module assigns to each name at its top level."""
        found: dict[str, ast.expr] = {}
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):
                found.update((t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name))
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                if statement.value is not None:
                    found[statement.target.id] = statement.value
        return found

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """The names bound by ``from module import name``, with the module and the name there."""
        return {
            alias.asname or alias.name: (origin, alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for origin in [self._origin(node)]
            for alias in node.names
        }

    @property
    def is_package(self) -> bool:
        """Whether this is an ``__init__.py``."""
        return self.path.endswith("__init__.py")

    def _origin(self, node: ast.ImportFrom) -> str:
        """Return the module that a ``from`` import names, relative ones resolved."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def imports(self) -> Iterator[str]:
        """Yield the dotted names of all imports, those for types included; ``from a import b`` as ``a.b``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{self._origin(node)}.{alias.name}" for alias in node.names)

    @cached_property
    def functions(self) -> list[FunctionNode]:
        """All functions, methods and nested ones included."""
        return [n for n in ast.walk(self.tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]

    @cached_property
    def strings_of_documentation(self) -> set[ast.AST]:
        """The strings that stand alone as statements."""
        return {
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.JoinedStr))
        }


class Sources:
    """The modules of ``torchlint/`` and ``rules/`` below a root.

    Bench cases, ``rules/*/cases``, are programs that are measured, no part of the linter: they are left out.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Code] = {}
        for top in ("torchlint", "rules"):
            for path in sorted((root / top).rglob("*.py")):
                relative = path.relative_to(root)
                if relative.parts[0] == "rules" and "cases" in relative.parts[:-1]:
                    continue
                parts = relative.with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                self.modules[name] = Code(name, relative.as_posix(), path.read_text(encoding="utf-8"))

    @cached_property
    def model(self) -> list[Code]:
        """The modules of the semantic model."""
        return [code for name, code in self.modules.items() if below(name, MODEL)]

    @cached_property
    def model_and_rules(self) -> list[Code]:
        """The modules of the semantic model and of the rules: what moves from one to the other counts."""
        return [code for name, code in self.modules.items() if below(name, MODEL) or below(name, RULES)]

    def resolve(self, dotted: str) -> str | None:
        """Return the module that an imported dotted name is, or is defined in; None if it is none of these.

        The folder ``rules/`` is imported as ``torchlint.rules``.
        """
        if below(dotted, f"torchlint.{RULES}"):
            dotted = dotted.removeprefix("torchlint.")
        while dotted:
            if dotted in self.modules:
                return dotted
            dotted = dotted.rpartition(".")[0]
        return None

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Which of the modules each module imports, those for types only included."""
        return {
            name: {found for dotted in code.imports() if (found := self.resolve(dotted)) not in (None, name)}
            for name, code in self.modules.items()
        }

    def constant(self, code: Code, name: str) -> tuple[Code, ast.expr] | None:
        """Return the value of a constant at the top level of a module,
        or of the one that it is imported from.
        """
        if name in code.constants:
            return code, code.constants[name]
        origin = code.imported.get(name)
        other = self.modules.get(self.resolve(origin[0]) or "") if origin else None
        if origin is None or other is None or origin[1] not in other.constants:
            return None
        return other, other.constants[origin[1]]

    def kinds(self, code: Code, node: ast.AST, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return the classes of LibCST that an expression names,
        also by constants that hold tuples of them.
        """
        match node:
            case ast.Attribute(value=ast.Name(id="cst" | "libcst" | "nodes"), attr=attr):
                return {attr} if _node_class(attr) else set()
            case ast.Name(id=name) if name not in seen:
                if code.imported.get(name, ("", ""))[0] == "libcst":
                    return {code.imported[name][1]}
                found = self.constant(code, name)
                return self.kinds(found[0], found[1], seen | {name}) if found else set()
            case ast.Lambda() | ast.Name():
                return set()
            case _:
                inner = (self.kinds(code, child, seen) for child in ast.iter_child_nodes(node))
                return set().union(*inner)


def _node_class(name: str) -> bool:
    return isinstance(getattr(cst, name, None), type)


def components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph, single nodes included.

    R. Tarjan, Depth-first search and linear graph algorithms, 1972, with a stack of its own.
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    is_open: set[str] = set()
    found: list[set[str]] = []
    for start in graph:
        if start in numbers:
            continue
        numbers[start] = lowest[start] = len(numbers)
        open_.append(start)
        is_open.add(start)
        work = [(start, iter(sorted(graph[start])))]
        while work:
            node, following = work[-1]
            for other in following:
                if other not in numbers:
                    numbers[other] = lowest[other] = len(numbers)
                    open_.append(other)
                    is_open.add(other)
                    work.append((other, iter(sorted(graph.get(other, ())))))
                    break
                if other in is_open:
                    lowest[node] = min(lowest[node], numbers[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    component: set[str] = set()
                    while node not in component:
                        component.add(open_.pop())
                    is_open -= component
                    found.append(component)
    return found


def reached(graph: Mapping[str, set[str]], start: set[str], through: Callable[[str], bool]) -> set[str]:
    """Return what some modules reach, themselves included, going on from those that ``through`` lets by."""
    found = set(start)
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in start and not through(node):
            continue
        for other in graph.get(node, ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


# --- recursion ---------------------------------------------------------------------------------------------


def own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of functions and classes that it defines."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def recursions(code: Code) -> list[list[FunctionNode]]:
    """Return the functions of a module that call themselves,
    each group of those that call one another as one.

    A function calls what it mentions: a function of the module or around it by its name, a method of its
    own class (or of any class of the module, if that one has none of this name) by ``self`` or ``cls``.
    """
    functions = {f"{index}": function for index, function in enumerate(code.functions)}
    names = {function: key for key, function in functions.items()}
    by_holder: dict[tuple[ast.AST, str], str] = {}
    methods: dict[str, set[str]] = {}
    for key, function in functions.items():
        holder = next(
            n for n in code.around(function) if isinstance(n, (ast.Module, ast.ClassDef, *_FUNCTIONS))
        )
        by_holder[holder, function.name] = key
        if isinstance(holder, ast.ClassDef):
            methods.setdefault(function.name, set()).add(key)
    graph: dict[str, set[str]] = {}
    for function in code.functions:
        holders = [function, *(n for n in code.around(function) if not isinstance(n, ast.ClassDef))]
        cls = next((n for n in code.around(function) if isinstance(n, ast.ClassDef)), None)
        called: set[str] = set()
        for node in own(function):
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    found = next((by_holder[h, name] for h in holders if (h, name) in by_holder), None)
                    called |= {found} if found else set()
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                    mine = by_holder.get((cls, name)) if cls is not None else None
                    called |= {mine} if mine else methods.get(name, set())
        graph[names[function]] = called
    return [
        sorted((functions[key] for key in component), key=lambda function: function.lineno)
        for component in components(graph)
        if len(component) > 1 or any(key in graph[key] for key in component)
    ]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
