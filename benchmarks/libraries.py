"""Reads released libraries from their wheels, without importing them: which names there are, and what is
said of them.

A wheel is downloaded with pip; its ``.py`` and ``.pyi`` files are kept as an archive of their own, one for
each minor release, and the rest is dropped. Names are followed through imports and base classes.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.version import Version

from torchlint.releases import RELEASES, minor

_DEPTH = 40
_MACS = ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_10_9_x86_64")
"""Wheels of torch for this platform bring no CUDA libraries along."""

_OLD = {"torch": Version("2.0"), "torchvision": Version("0.15")}
"""The first releases that have wheels for Python 3.11; those before are read as for Python 3.8."""

_WARNS = re.compile(
    r"deprecat|will be removed|is removed|was renamed|no longer|now calls|now removed", re.IGNORECASE
)
_ITSELF = re.compile(r"^\W*(warning::\W*)?(this|[\w.]*deprecated?)(\b|_)|^_make_deprecate", re.IGNORECASE)


def releases(package: str) -> list[str]:
    """Return the minor releases of a package that are looked at, oldest first."""
    return list(dict.fromkeys(minor(version) for version in RELEASES[package]))


def archive(package: str, release: str, folder: Path) -> Path:
    """Return where the Python files of a minor release are kept."""
    return folder / f"{package}-{release}.zip"


def fetch(package: str, release: str, folder: Path) -> Path:
    """Return the archive with the Python files of the first patch of a minor release, downloaded if need be.

    Raises:
        subprocess.CalledProcessError: pip could not get it.
    """
    kept_as = archive(package, release, folder)
    if kept_as.exists():
        return kept_as
    folder.mkdir(parents=True, exist_ok=True)
    python = "3.8" if Version(release) < _OLD.get(package, Version("0")) else "3.11"
    platforms = [word for platform in _MACS for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", python, *platforms]
    with tempfile.TemporaryDirectory() as place:
        wanted = [f"{package}=={release}.0", f"{package}=={release}.*"]
        got = [subprocess.run([*command, "--dest", place, wanted[0]], capture_output=True)]
        if got[0].returncode:  # not every minor release has a patch 0 that still can be had
            subprocess.run([*command, "--dest", place, wanted[1]], check=True)
        (wheel,) = Path(place).iterdir()
        slim = Path(place, kept_as.name)
        with zipfile.ZipFile(wheel) as full, zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as kept:
            for name in full.namelist():
                if name.endswith((".py", ".pyi")):
                    kept.writestr(name, full.read(name))
        shutil.move(slim, kept_as)
    return kept_as


@dataclass(frozen=True)
class Found:
    """Where a name or parameter is defined, and the words by which the library gives it up, if it does.

    What ``raises`` is a stand-in that says what became of a function.
    """

    where: str
    mark: str | None = None
    raises: bool = False


@dataclass(frozen=True)
class _Definition:
    """A statement that binds a name, and the module it stands in."""

    module: str
    node: ast.AST


class Library:
    """One release of a library."""

    def __init__(self, archive: Path) -> None:
        self._zip = zipfile.ZipFile(archive)
        self._texts: dict[str, str | None] = {}
        self._trees: dict[str, ast.Module | None] = {}

    # ------------------------------------------------------------------ questions

    def symbol(self, dotted: str, named: str = "") -> Found | None:
        """Return what the library has under a dotted name;
        None if nothing. Its words may name it otherwise.
        """
        found = self._resolve(dotted)
        if found is None:
            return None
        named = named or dotted.rpartition(".")[2]
        # The comments of what is written in C++ are kept apart from its declaration.
        texts = [*_said(found.node), *self._documented(dotted)]
        return Found(self._place(found), _mark(texts, named, own=True), _only_raises(found.node))

    def argument(self, dotted: str, name: str) -> Found | None:
        """Return the parameter of a function or class, however it takes it;
        None if it takes none of that name.
        """
        found = self._resolve(dotted)
        if found is None:
            return None
        if isinstance(found.node, ast.ClassDef):
            return self._argument_of_class(found, name, set())
        return self._argument_of_function(found, name)

    def mentions(self, dotted: str, value: str) -> bool:
        """Return whether the module that defines a name has a string with this value."""
        found = self._resolve(dotted)
        tree = self._tree(found.module) if found is not None else None
        return tree is not None and value in _strings(tree)

    def modules(self, package: str) -> Iterator[tuple[str, ast.Module]]:
        """Yield the modules of a package that are written in Python, by name."""
        for file in sorted(self._files):
            if file.startswith(f"{package}/") and file.endswith(".py"):
                module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                # What is in templates is no Python.
                with contextlib.suppress(SyntaxError):
                    yield module, ast.parse(self._zip.read(file).decode("utf-8", "replace"))

    def is_package(self, module: str) -> bool:
        """Return whether a module has others below it."""
        return self._is_package(module)

    # ------------------------------------------------------------------ parameters

    def _argument_of_class(self, owner: _Definition, name: str, seen: set[ast.AST]) -> Found | None:
        assert isinstance(owner.node, ast.ClassDef)
        if owner.node in seen:
            return None
        seen.add(owner.node)
        body = {item.name: item for item in owner.node.body if isinstance(item, ast.FunctionDef)}
        for method in ("__init__", "__new__", "__call__"):
            if method in body:
                found = self._argument_of_function(_Definition(owner.module, body[method]), name)
                if found is not None:
                    return found
        for item in owner.node.body:
            if isinstance(item, ast.AnnAssign) and ast.unparse(item.target) == name:
                after = [text for each in ("__post_init__",) if each in body for text in _said(body[each])]
                said = _mark(_said(item), name, own=True) or _mark(after, name)
                return Found(self._place(_Definition(owner.module, item)), said)
        for base in owner.node.bases:
            above = self._resolve_in(owner.module, ast.unparse(base), _DEPTH)
            if above is not None and isinstance(above.node, ast.ClassDef):
                found = self._argument_of_class(above, name, seen)
                if found is not None:
                    return found
        return None

    def _argument_of_function(self, owner: _Definition, name: str) -> Found | None:
        function = owner.node
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        arguments = function.args
        named = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        # ``@deprecate_kwarg("old", new_name="new")`` and ``kwargs.pop("old", None)``.
        words = {each.value for each in ast.walk(function) if isinstance(each, ast.Constant)}
        if name not in named and not (name in words and _decorated_for(function, name)):
            if arguments.kwarg is None or name not in words:
                return None
        return Found(self._place(owner), _mark(_said(function), name) or _default_says_so(arguments, name))

    # ------------------------------------------------------------------ names

    def _resolve(self, dotted: str) -> _Definition | None:
        return self._lookup(dotted.split("."), _DEPTH)

    def _lookup(self, parts: list[str], depth: int) -> _Definition | None:
        """Return what a dotted name stands for: a module, or what a module binds."""
        if depth == 0:
            return None
        for count in range(len(parts), 0, -1):
            module = ".".join(parts[:count])
            tree = self._tree(module)
            if tree is not None:
                found = self._inside(_Definition(module, tree), parts[count:], depth)
                if found is not None:
                    return found
        return None

    def _resolve_in(self, module: str, name: str, depth: int) -> _Definition | None:
        """Return what a name means to the code of a module."""
        tree = self._tree(module)
        if tree is None or not re.fullmatch(r"[\w.]+", name):
            return None
        return self._inside(_Definition(module, tree), name.split("."), depth) or self._lookup(
            name.split("."), depth - 1
        )

    def _inside(self, owner: _Definition, parts: list[str], depth: int) -> _Definition | None:
        """Return what ``parts`` are inside of a module or class."""
        if not parts:
            return owner
        if depth == 0:
            return None
        found = self._member(owner, parts[0], depth - 1)
        return self._inside(found, parts[1:], depth - 1) if found is not None else None

    def _member(self, owner: _Definition, name: str, depth: int) -> _Definition | None:
        node = owner.node
        if not isinstance(node, (ast.Module, ast.ClassDef)):
            return None
        stars: list[str] = []
        for statement in _statements(node.body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if statement.name == name:
                    return _Definition(owner.module, statement)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    if bound == name:
                        found = self._lookup((alias.name if alias.asname else bound).split("."), depth)
                        return found or _Definition(owner.module, statement)
            elif isinstance(statement, ast.ImportFrom):
                source = self._source(owner.module, statement)
                for alias in statement.names:
                    if alias.name == "*":
                        stars.append(source)
                    elif (alias.asname or alias.name) == name:
                        if f"{source}.{alias.name}" != f"{owner.module}.{name}":
                            found = self._lookup([*source.split("."), alias.name], depth)
                            return found or _Definition(owner.module, statement)
            elif name in _assigned(statement):
                return _Definition(owner.module, statement)
        for source in stars:
            tree = self._tree(source) if self._may_bind(source, name) else None
            if tree is not None and source != owner.module:
                found = self._inside(_Definition(source, tree), [name], depth)
                if found is not None:
                    return found
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                above = self._resolve_in(owner.module, ast.unparse(base), depth)
                found = self._inside(above, [name], depth) if above is not None else None
                if found is not None:
                    return found
        elif owner.module == "torch":
            return self._lookup(["torch", "_C", "_VariableFunctions", "_VariableFunctionsClass", name], depth)
        return None

    def _source(self, module: str, statement: ast.ImportFrom) -> str:
        """Return the absolute name of the module that a ``from`` import names."""
        if not statement.level:
            return statement.module or ""
        parts = module.split(".")
        up = statement.level - (1 if self._is_package(module) else 0)
        parts = parts[: len(parts) - up]
        return ".".join([*parts, statement.module] if statement.module else parts)

    # ------------------------------------------------------------------ files

    @cached_property
    def _files(self) -> set[str]:
        return set(self._zip.namelist())

    def _file(self, module: str) -> str | None:
        path = module.replace(".", "/")
        candidates = (f"{path}/__init__.py", f"{path}.py", f"{path}/__init__.pyi", f"{path}.pyi")
        return next((name for name in candidates if name in self._files), None)

    def _is_package(self, module: str) -> bool:
        file = self._file(module)
        return file is not None and "__init__" in file

    def _text(self, module: str) -> str | None:
        if module not in self._texts:
            file = self._file(module)
            text = self._zip.read(file).decode("utf-8", "replace") if file is not None else None
            self._texts[module] = text
        return self._texts[module]

    def _tree(self, module: str) -> ast.Module | None:
        if module not in self._trees:
            text = self._text(module)
            self._trees[module] = ast.parse(text) if text is not None else None
        return self._trees[module]

    def _may_bind(self, module: str, name: str) -> bool:
        """Return whether a star import of a module can bring a name: what the text alone tells."""
        text = self._text(module)
        return text is not None and (name in text or "import *" in text)

    def _place(self, found: _Definition) -> str:
        line = getattr(found.node, "lineno", 1)
        return f"{self._file(found.module)}:{line}"

    def _documented(self, dotted: str) -> list[str]:
        """Return what ``torch/_torch_docs.py`` and ``torch/_tensor_docs.py`` say of a name."""
        return [
            text for docs in ("torch._torch_docs", "torch._tensor_docs") for text in self._docs(docs, dotted)
        ]

    def _docs(self, module: str, dotted: str) -> Iterator[str]:
        tree = self._tree(module) if dotted.startswith("torch.") else None
        for statement in tree.body if tree is not None else ():
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or len(call.args) < 2:
                continue
            if ast.unparse(call.args[0]) == dotted:
                yield " ".join(_strings(call.args[1]))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body that may run when it is loaded,
    the newest definition of a name first.
    """
    for statement in reversed(body):
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for part in ("finalbody", "orelse", "body"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)
        else:
            yield statement


def _assigned(statement: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    parts = [p for t in targets for p in (t.elts if isinstance(t, (ast.Tuple, ast.List)) else [t])]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _decorated_for(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Return whether a decorator of a function names a parameter."""
    return any(name in _strings(decorator) for decorator in function.decorator_list)


def _strings(node: ast.AST) -> list[str]:
    """Return the strings in a node; the pieces of one in braces belong together."""
    found: list[str] = []
    inner: set[int] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            inner |= {id(part) for part in ast.walk(each)} - {id(each)}
            parts = [str(p.value) if isinstance(p, ast.Constant) else "{}" for p in each.values]
            found.append("".join(parts))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inner:
            found.append(each.value)
    return found


def _said(node: ast.AST) -> list[str]:
    """Return what a definition says of itself: decorators, the docstring, what is in calls that warn,
    comments of fields. Of a class, its own and that of the methods that make it."""
    if isinstance(node, ast.ClassDef):
        made = [
            each
            for each in node.body
            if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__", "__post_init__")
        ]
        docstring = ast.get_docstring(node)
        texts = [ast.unparse(decorator) for decorator in node.decorator_list]
        return [*texts, *([docstring] if docstring else []), *(text for each in made for text in _said(each))]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        texts = [ast.unparse(decorator) for decorator in node.decorator_list]
        # ``warn_deprecated("vmap")`` says no more than this.
        texts += [text for each in ast.walk(node) for text in _deprecating(each)]
        return [*texts, *(text for statement in node.body for text in _strings(statement))]
    return [*_deprecating(getattr(node, "value", node)), *_strings(node)]


def _default_says_so(arguments: ast.arguments, name: str) -> str | None:
    """Return ``verbose="deprecated"``: the default of a parameter that is given up; None for any other."""
    positional = [*arguments.posonlyargs, *arguments.args]
    given = [
        *zip(reversed(positional), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for parameter, default in given:
        if parameter.arg == name and isinstance(default, ast.Constant) and default.value == "deprecated":
            return f'{name}="deprecated"'
    return None


def _deprecating(node: ast.AST) -> list[str]:
    """Return a call of a function that is there to give something up, as it is spelt."""
    if isinstance(node, ast.Call) and "deprecat" in ast.unparse(node.func):
        return [ast.unparse(node)]
    return []


def _only_raises(node: ast.AST) -> bool:
    """Return whether a function does nothing but raise, and says that it was removed."""
    if not isinstance(node, ast.FunctionDef):
        return False
    last = node.body[-1]
    returns = any(isinstance(each, ast.Return) for each in ast.walk(node))
    return not returns and isinstance(last, ast.Raise) and "now removed" in " ".join(_strings(last))


def _mark(texts: list[str], named: str, *, own: bool = False) -> str | None:
    """Return the sentence that gives up ``named``, or that says "this" where the texts are its own; None if
    there is none."""
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`])|\n\s*\n", text):
            # "using `EvaluationStrategy` for `evaluation_strategy` is deprecated" is about a value.
            names_it = re.search(rf"(?<!for `)\b{re.escape(named)}\b", sentence)
            if _WARNS.search(sentence) and (names_it or (own and _ITSELF.match(sentence))):
                return " ".join(sentence.split())[:160]
    return None
