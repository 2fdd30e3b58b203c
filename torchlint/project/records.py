"""What one file tells the others of its project: what it imports, defines and exports.

A record is made from the interpreter's own parse of the file and from nothing else, so that it can be kept as
long as the file stays the same.
"""

from __future__ import annotations

import ast
import enum
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Any

from torchlint.source import Source, with_line_feeds
from torchlint.store import number_of, text_of

STAR = "*"


class Standing(enum.IntEnum):
    """When an import runs."""

    ALWAYS = 0
    CONDITIONAL = 1
    """In a branch, or in a ``try`` that goes on without it."""
    LATER = 2
    """When the function that it stands in is called."""
    TYPES = 3
    """Never: below ``if TYPE_CHECKING``."""


class DefinitionKind(enum.IntEnum):
    """What the top level of a file makes."""

    FUNCTION = 0
    CLASS = 1
    VARIABLE = 2


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import statement brings.

    ``import a.b`` has the module ``a.b`` and no name, and binds ``a``. ``from ..a import b as c`` has the
    module ``a`` at level 2 and the name ``b``, and binds ``c``. ``from a import *`` has the name `STAR` and
    binds nothing that it spells; neither does ``importlib.import_module("a")``, which has no name.
    """

    module: str
    level: int
    name: str | None
    bound: str | None
    row: int
    standing: Standing


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class or variable of the top level."""

    name: str
    kind: DefinitionKind
    row: int


@dataclass(frozen=True, slots=True)
class Record:
    """What a file tells of itself.

    ``exported`` is its ``__all__``, None if it has none or one that is computed. A file ``guards_main`` if
    it compares ``__name__``; it ``acts`` if importing it does more than define and set up: it loops, or calls
    what it defines or imports. It ``loads_by_name`` if it imports modules, or runs code, that it has as a
    text. It is not ``readable`` if it is no program. What it has ``patched`` are the dotted names of what it
    puts something else in the place of, as tests do: ``mock.patch("package.module.Name")``.
    """

    imports: tuple[Import, ...] = ()
    definitions: tuple[Definition, ...] = ()
    exported: tuple[str, ...] | None = None
    guards_main: bool = False
    acts: bool = False
    loads_by_name: bool = False
    readable: bool = True
    patched: tuple[str, ...] = ()

    def leads_as(self, other: Record) -> bool:
        """Return whether the same names lead to the same places, wherever in the file they stand."""
        return self.leading == other.leading

    @property
    def leading(self) -> tuple[Any, ...]:
        """All that says where names lead."""
        imports = [(each.module, each.level, each.name, each.bound, each.standing) for each in self.imports]
        definitions = [(made.name, made.kind) for made in self.definitions]
        return imports, definitions, self.exported, self.loads_by_name, self.readable, self.patched

    def definition(self, name: str) -> Definition | None:
        """Return the last definition of a name at the top level."""
        return next((made for made in reversed(self.definitions) if made.name == name), None)


def stored(record: Record) -> list[Any]:
    """Return a record as JSON can hold it."""
    return [
        [[e.module, e.level, e.name, e.bound, e.row, int(e.standing)] for e in record.imports],
        [[made.name, int(made.kind), made.row] for made in record.definitions],
        None if record.exported is None else list(record.exported),
        list(record.patched),
        *map(int, (record.guards_main, record.acts, record.loads_by_name, record.readable)),
    ]


def restored(document: Any) -> Record:
    """Return what `stored` was given.

    Raises:
        TypeError, ValueError: it is something else.
    """
    imports, definitions, exported, patched, *flags = document
    guards_main, acts, loads_by_name, readable = flags
    for each in flags:
        if each not in (0, 1):
            raise ValueError("expected a flag")
    return Record(
        tuple(_restored_import(*each) for each in imports),
        tuple(
            Definition(text_of(name), DefinitionKind(kind), number_of(row)) for name, kind, row in definitions
        ),
        None if exported is None else tuple(map(text_of, exported)),
        bool(guards_main),
        bool(acts),
        bool(loads_by_name),
        bool(readable),
        tuple(map(text_of, patched)),
    )


def _restored_import(module: Any, level: Any, name: Any, bound: Any, row: Any, standing: Any) -> Import:
    return Import(
        text_of(module),
        number_of(level),
        None if name is None else text_of(name),
        None if bound is None else text_of(bound),
        number_of(row),
        Standing(standing),
    )


class Records:
    """The records of earlier runs, ``known`` as they were `stored`; those made since are added to ``new``."""

    def __init__(self, known: Mapping[str, Any], new: dict[str, Any]) -> None:
        self._known, self._new = known, new
        self._met: dict[str, Record] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Records, (self._known, self._new)

    def of(self, source: Source) -> Record:
        """Return the record of a file."""
        key = sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if key not in self._met:
            self._met[key] = self._restored(key) or self._made(key, source)
        return self._met[key]

    def _restored(self, key: str) -> Record | None:
        for known in (self._new, self._known):
            if key in known:
                with suppress(TypeError, ValueError):
                    return restored(known[key])
        return None

    def _made(self, key: str, source: Source) -> Record:
        found = record(source)
        self._new[key] = stored(found)
        return found


def leading(records: Iterable[Record]) -> Iterator[object]:
    """Yield what each of a project's files has to do with where the imports of any of them lead,
    rows left out.

    Of what it defines that are the names that some file imports; a name that is asked for in another way is
    looked up in the file that has it, or has not.
    """
    records = list(records)
    asked = {_HOOK}
    for each in records:
        for statement in each.imports:
            asked.update(name for name in (statement.name, statement.bound) if name is not None)
    for each in records:
        imports, definitions, *others = each.leading
        yield imports, [(name, kind) for name, kind in definitions if name in asked], *others


def record(source: Source) -> Record:
    """Return the record of a file; of one that the interpreter refuses, that it is not readable.

    Only what the record is made of is parsed, so that a mistake within a function may go unnoticed.
    """
    text = with_line_feeds(source.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for code in (skeleton(text), text):
            try:
                made = _Reader(_INNER.search(code) is not None).record(ast.parse(code))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            loads = made.loads_by_name or any(each.search(text) for each in _BY_NAME)
            return replace(made, loads_by_name=loads, patched=_patched(text))
    return Record(readable=False)


def _patched(text: str) -> tuple[str, ...]:
    """Return the names of what a text replaces, in order;
    the last part alone where the rest is an expression.
    """
    found: set[str] = set()
    if "patch" in text or "setattr" in text or ".spy" in text:
        for owner, _, name in chain.from_iterable(each.findall(text) for each in _REPLACEMENTS):
            if owner.partition(".")[0] not in ("self", "cls"):
                found.add(name)
        for arguments in _SEVERAL.findall(text):
            found.update(_KEYWORD.findall(arguments))
        for variable in _NAMED.findall(text):
            found.update(re.findall(rf"""\b{variable}\s*=\s*["']([\w.]+)["']""", text))
    return tuple(sorted(found))


def skeleton(text: str) -> str:
    """Return a program without the bodies of those functions and classes that import nothing, rows kept.

    It may be no program any more where ``text`` is laid out as nobody does, a header at the left margin, say;
    where it is one, it has the same record. To parse the bodies takes ten times as long as all the rest.
    """
    if "\f" in text:
        return text  # which begins a line at the left margin, and looks like the indentation of one
    without = "\n" + _COMMENT_OR_STRING.sub(_emptied, text)
    kept: list[str] = []
    done = 0
    opened: re.Match[str] | None = None
    for line in _MARGIN.finditer(without):
        if opened is not None:
            kept += without[done : opened.start()], _shortened(opened, without[opened.start() : line.start()])
            done, opened = line.start(), None
        if line[1]:
            opened = line
    if opened is not None:
        kept += without[done : opened.start()], _shortened(opened, without[opened.start() :])
        done = len(without)
    kept.append(without[done:])
    return "".join(kept)[1:]


def _emptied(found: re.Match[str]) -> str:
    """Return a string over several lines without what it says;
    what is left of it stands in one logical line.
    """
    string = found[0]
    if string[0] == "#":
        return ""
    return '""' + "\\\n" * string.count("\n") + " " if "\n" in string else string


def _shortened(opening: re.Match[str], code: str) -> str:
    """Return a function or class of the left margin, without its body unless that imports something.

    Nothing is taken from one with unbalanced brackets either, which may be no program.
    """
    if "import" in code or code.count("(") != code.count(")"):
        return code
    header = f"class {opening[2]}:0" if opening[1] == "class" else f"{opening[1]} {opening[2]}():0"
    return f"\n{header}" + "\n" * (code.count("\n") - 1)


class _Reader:
    """Reads the tree of one file, each node once."""

    def __init__(self, imports_inside: bool) -> None:
        self._imports_inside = imports_inside
        self._imports: list[Import] = []
        self._definitions: list[Definition] = []
        self._exported: list[str] | None = None
        self._at_once: list[str] = []
        self._lazy = _LazyExports()
        self._guards_main = self._loops = self._loads_by_name = False

    def record(self, tree: ast.Module) -> Record:
        """Return the record of the file that has this tree."""
        self._suite(tree.body, Standing.ALWAYS)
        self._imports += self._lazy.imports()
        own = {made.name for made in self._definitions if made.kind is not DefinitionKind.VARIABLE}
        own.update(each.bound for each in self._imports if each.bound is not None)
        return Record(
            imports=tuple(self._imports),
            definitions=tuple(self._definitions),
            exported=None if self._exported is None else tuple(self._exported),
            guards_main=self._guards_main,
            loads_by_name=self._loads_by_name,
            acts=self._loops or not own.isdisjoint(name.partition(".")[0] for name in self._at_once),
        )

    def _suite(self, body: Sequence[ast.stmt], standing: Standing) -> None:
        """Read statements of the module's own scope."""
        for statement in body:
            if isinstance(statement, _TRIES):
                attempted = Standing.CONDITIONAL if statement.handlers else Standing.ALWAYS
                self._suite([*statement.body, *statement.orelse], max(standing, attempted))
                for handler in statement.handlers:
                    self._suite(handler.body, max(standing, Standing.CONDITIONAL))
                self._suite(statement.finalbody, standing)
            else:
                self._statement(statement, standing)

    def _statement(self, statement: ast.stmt, standing: Standing) -> None:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._definitions.append(Definition(name, DefinitionKind.FUNCTION, statement.lineno))
                if name == _HOOK:
                    self._lazy.hook(statement)
                self._inside(statement)
            case ast.ClassDef(name=name):
                self._definitions.append(Definition(name, DefinitionKind.CLASS, statement.lineno))
                self._inside(statement)
            case ast.Import() | ast.ImportFrom():
                self._import(statement, standing)
            case ast.If(test=test, body=body, orelse=orelse):
                self._inside(test)
                self._guards_main |= _asks_for_main(test)
                types = Standing.TYPES if _asks_for_types(test) else Standing.CONDITIONAL
                self._suite(body, max(standing, types))
                self._suite(orelse, max(standing, Standing.CONDITIONAL))
            case ast.With(items=items, body=body):
                for item in items:
                    self._inside(item)
                self._suite(body, standing)
            case ast.For() | ast.While():
                self._loops = True
                self._inside(statement)
            case _:
                self._assign(statement)
                self._inside(statement)

    def _assign(self, statement: ast.stmt) -> None:
        """Take down what a plain statement binds, and what it calls for the sake of calling."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._define(target, value)
                    self._lazy.assign(target, value)
            case ast.AnnAssign(target=target, value=value):
                self._define(target, value)
                if value is not None:
                    self._lazy.assign(target, value)
            case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                self._export(value)
            case ast.Expr(value=ast.Call(func=func)) if (name := dotted(func)) is not None:
                self._at_once.append(name)

    def _define(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._definitions.append(Definition(name, DefinitionKind.VARIABLE, target.lineno))
                if name == "__all__" and value is not None:
                    self._exported = []
                    self._export(value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    self._define(element, None)
            case ast.Starred(value=inner):
                self._define(inner, None)

    def _export(self, value: ast.expr) -> None:
        """Add to ``__all__``; what is computed makes all of it unknown."""
        try:
            names = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            names = None
        if self._exported is not None and isinstance(names, (list, tuple)):
            self._exported += [name for name in names if isinstance(name, str)]
        else:
            self._exported = None

    def _inside(self, node: ast.AST) -> None:
        """Read the imports below a node, which run with the function that they stand in."""
        if not self._imports_inside:
            return
        pending: list[Any] = [node]
        while pending:
            current = pending.pop()
            kind = current.__class__
            if kind is ast.Call:
                self._call(current)
            elif kind in _IMPORTS:
                self._import(current, Standing.LATER)
                continue
            for name in kind._fields:
                value = getattr(current, name, None)
                if value.__class__ is list:
                    pending += [item for item in value if item.__class__ not in _PLAIN]
                elif value.__class__ not in _PLAIN:
                    pending.append(value)

    def _call(self, call: ast.Call) -> None:
        if dotted(call.func) not in _IMPORTERS:
            return
        match call.args:
            case [ast.Constant(value=str(module)), *_]:
                path = module.lstrip(".")
                level = len(module) - len(path)
                self._imports.append(Import(path, level, None, None, call.lineno, Standing.LATER))
            case _:
                self._loads_by_name = True

    def _import(self, statement: ast.Import | ast.ImportFrom, standing: Standing) -> None:
        bound: str | None
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                bound = alias.asname or alias.name.partition(".")[0]
                made = Import(alias.name, 0, None, bound, statement.lineno, standing)
            else:
                bound = None if alias.name == STAR else alias.asname or alias.name
                module = statement.module or ""
                made = Import(module, statement.level, alias.name, bound, statement.lineno, standing)
            self._imports.append(made)


class _LazyExports:
    """What a module imports when it is asked for a name, by ``__getattr__`` or another object in its place.

    The names stand in tables, ``{"Net": ".modeling"}`` or ``{"modeling": ["Net"]}``, or in imports of the
    hook itself.
    """

    def __init__(self) -> None:
        self._tables: list[ast.Dict] = []
        self._inside: list[ast.ImportFrom] = []
        self._hooked = self._relative = False

    def hook(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Read the ``__getattr__`` of the module."""
        self._hooked = True
        for node in ast.walk(function):
            match node:
                case ast.ImportFrom():
                    self._inside.append(node)
                case ast.JoinedStr(values=[first, *_]) | ast.BinOp(left=first, op=ast.Add()):
                    self._relative |= _is_own_name(first)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Read an assignment of the top level."""
        match target, value:
            case _, ast.Dict():
                self._tables.append(value)
            case ast.Subscript(value=ast.Name(), slice=ast.Constant() as key), ast.List() | ast.Tuple():
                self._tables.append(ast.Dict([key], [value]))
            case ast.Subscript(value=replaced, slice=ast.Name("__name__")), ast.Call():
                if dotted(replaced) == "sys.modules":
                    self._made_by(value)
            case ast.Tuple(elts=[ast.Name(id=name), *_]), ast.Call() if name == _HOOK:
                self._made_by(value)
            case ast.Name(id=name), ast.Call() if name == _HOOK:
                self._made_by(value)

    def _made_by(self, call: ast.Call) -> None:
        """Take down the tables that a helper is given, which are of modules below the package."""
        self._hooked = self._relative = True
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        self._tables += (each for each in given if isinstance(each, ast.Dict))

    def imports(self) -> Iterator[Import]:
        """Yield what other files can import from the module in this way."""
        if not self._hooked:
            return
        for table in self._tables:
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from self._entry(key.value, value, key.lineno)
        for statement in self._inside:
            for alias in statement.names:
                module, bound = statement.module or "", alias.asname or alias.name
                yield _lazy_import("." * statement.level + module, alias.name, bound, statement.lineno)

    def _entry(self, key: str, value: ast.expr, row: int) -> Iterator[Import]:
        try:
            entry = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            return
        match entry:
            case str():
                module, _, name = entry.partition(":")
                if not name and module.endswith(f".{key}"):
                    module = module.removesuffix(f".{key}")
                yield _lazy_import(self._from(module), name or key, key, row)
            case [str(module), str(name)] if name == key or module.startswith("."):
                yield _lazy_import(self._from(module), name, key, row)
            case list() | tuple() if all(isinstance(name, str) for name in entry):
                for name in entry:
                    yield _lazy_import(self._from(key), name, name, row)

    def _from(self, module: str) -> str:
        return f".{module}" if self._relative and not module.startswith(".") else module


def _lazy_import(module: str, name: str, bound: str, row: int) -> Import:
    path = module.lstrip(".")
    return Import(path, len(module) - len(path), name, bound, row, Standing.CONDITIONAL)


def _is_own_name(part: ast.expr) -> bool:
    """Return whether a text that is put together begins with a dot,
    or with the name of the package itself.
    """
    match part:
        case ast.FormattedValue(value=inner):
            return _is_own_name(inner)
        case ast.Constant(value=str(text)):
            return text.startswith(".")
        case ast.BinOp(left=left):
            return _is_own_name(left)
    return dotted(part) in ("__name__", "__package__", "__spec__.parent")


# What is in the text of a file that imports anything elsewhere than in a line of its own at the left margin.
_INNER = re.compile(
    r"^[ \t]+(?:from|import)\b|[;:][ \t]*(?:from|import)\b|import_module|__import__", re.MULTILINE
)
_COMMENT_OR_STRING = re.compile(
    r'''#[^\n]*|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'''
    r"""|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"""
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'""",
    re.DOTALL,
)
# ``patch("a.b.Name")`` of `unittest.mock` and pytest-mock, ``setattr("a.b.Name", …)`` of the monkeypatch of
# pytest, ``patch.object(b, "Name")``, ``setattr(b, "Name", …)`` and ``spy(b, "Name")``; ``f"{PATH}.Name"``,
# ``PATH + ".Name"``.
# Each begins with a word, which is looked for several times as fast as what a word may begin at.
_REPLACEMENTS = tuple(
    re.compile(
        rf"""{word}(?<!\w{word}){more}\s*\(\s*(?:(?:target\s*=\s*)?([\w.]+)\s*[,+]\s*)?"""
        r"""(?:(?:target|attribute)\s*=\s*)?[rf]?(["'])(?:\{[\w.]+\})?\.?([\w.]+)\2"""
    )
    for word, more in (("patch", r"(?:\.object)?"), ("setattr", ""), ("spy", ""))
)
_NAMED = re.compile(r"patch(?<!\wpatch)\s*\(\s*([A-Za-z_]\w*)\s*[,)]")
_SEVERAL = re.compile(r"""patch\.multiple(?<!\wpatch\.multiple)\s*\(\s*[\w."']+\s*,([^()]*)""")
_KEYWORD = re.compile(r"(\w+)\s*=[^=]")
# A line that begins at the left margin, with what it defines. A closing bracket belongs to the line before.
_MARGIN = re.compile(r"\n(?![\s)\]}\\])(?:(class|async[ \t]+def|def)[ \t]+(\w+))?")
# What runs code, or finds modules, by texts.
_BY_NAME = tuple(
    re.compile(pattern)
    for pattern in (
        r"sys\.modules\b(?<!\wsys\.modules)",
        r"exec(?<![\w.]exec)[ \t]*\(",
        r"eval(?<![\w.]eval)[ \t]*\(",
    )
)
# ``ast.TryStar`` is new in Python 3.11.
_TRIES: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_HOOK = "__getattr__"
_IMPORTERS = frozenset({"importlib.import_module", "import_module", "__import__"})
_IMPORTS = frozenset({ast.Import, ast.ImportFrom})
# What fields of the interpreter's nodes hold that no call and no import can stand in.
_PLAIN = frozenset(
    {str, int, float, complex, bytes, bool, type(None), type(...), ast.Load, ast.Store, ast.Del}
)


def dotted(expression: ast.expr) -> str | None:
    """Return ``a.b.c`` as text; None for any other expression."""
    parts, node = list[str](), expression
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def _asks_for_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            sides = (left, right)
            return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return False


def _asks_for_types(test: ast.expr) -> bool:
    return dotted(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING")
