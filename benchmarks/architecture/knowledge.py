"""Where the model remembers, what it guesses from names, and what it says."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterator

from benchmarks.architecture.sources import (
    API,
    COMMENTS,
    FACADE,
    LEXICON,
    Code,
    FunctionNode,
    Measured,
    Place,
    Sources,
    below,
    counted,
    own,
)

# --- memory ------------------------------------------------------------------------------------------------

_CACHES = {"cache", "lru_cache"}
_KEEPERS = {"remembered", "solved"}
_CONSTANTS = {"str", "str | None", "type", "type[Any]"}
_OF_CONSTANTS = "functions of text"


def memories(sources: Sources) -> Measured:
    """Return styles of memory that the model and the rules use, of these five:

    - ``cached_property`` of functools, or a class of that name, with the table in which it keeps the answers;
    - ``cache`` or ``lru_cache`` of functools;
    - the fixpoint: ``fixpoint.ask(…)``, or a decorator from a module named ``fixpoint``, or one named
      ``remembered`` or ``solved`` from a module that keeps its answers in the tables of a fixpoint, in
      nothing of its own; and the tables of the module ``fixpoint`` itself;
    - ``remembered`` or ``solved`` from any other module;
    - dictionaries filled by hand: a function that looks a key up in an attribute or a global (``get``,
      ``in``, a subscript) and stores something under the same key there. Counting (``+=``) is none, and
      neither is a table of the function around, which ends with its call.

    Listed apart, and no style: ``cache`` on a function of the module level that is given nothing but text or
    a class, by its annotations. What it says is the same in every file, whatever was asked before, so that
    it remembers nothing about programs.
    """
    found: dict[str, list[Place]] = {}
    for code in sources.model_and_rules:
        for style, place in _memories(sources, code):
            found.setdefault(style, []).append(place)
    parts = {style: len(places) for style, places in sorted(found.items())}
    apart = parts.pop(_OF_CONSTANTS, 0)
    shown = f"{len(parts)} ({', '.join(f'{style} {count}' for style, count in parts.items())})"
    if apart:
        shown += f"; apart: {_OF_CONSTANTS} {apart}"
    places = tuple(sorted(place for places in found.values() for place in places))
    return Measured(
        len(parts), shown if found else "0", parts | ({_OF_CONSTANTS: apart} if apart else {}), places
    )


def _memories(sources: Sources, code: Code) -> Iterator[tuple[str, Place]]:
    for function in code.functions:
        for mark in function.decorator_list:
            target = mark.func if isinstance(mark, ast.Call) else mark
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            origin = code.imported.get(name, ("", ""))[0]
            style = None
            if name == "cached_property":
                style = "cached_property"
            elif name in _CACHES:
                style = _OF_CONSTANTS if _takes_constants(code, function) else "functools.cache"
            elif origin.endswith(".fixpoint"):
                style = "fixpoint"
            elif name in _KEEPERS:
                front = sources.modules.get(origin)
                style = "fixpoint" if front is not None and _keeps_in_fixpoint(front) else "remembered"
            if style:
                yield style, code.place(function, f"{style}: {function.name}")
        owner = next((node for node in code.around(function) if isinstance(node, ast.ClassDef)), None)
        style = "fixpoint" if code.name.endswith(".fixpoint") else "dictionaries"
        if owner is not None and owner.name == "cached_property":
            style = "cached_property"
        for table in _tables(code, function):
            yield style, code.place(function, f"dictionary {table}: {function.name}")
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=asked, attr="ask")):
                if ast.unparse(asked).rpartition(".")[2].lstrip("_") == "fixpoint":
                    yield "fixpoint", code.place(node, "fixpoint: ask")


def _keeps_in_fixpoint(code: Code) -> bool:
    """Return whether what a module stores, if anything, is stored in an attribute of a fixpoint,
    which it asks.
    """
    stored = [
        ast.unparse(node.value)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    asked = any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "fixpoint.ask"
        for node in ast.walk(code.tree)
    )
    set_aside = any(
        isinstance(node, (ast.Dict, ast.DictComp, ast.Global, ast.Nonlocal)) for node in ast.walk(code.tree)
    )
    return asked and not set_aside and all(table.startswith("fixpoint.") for table in stored)


def _takes_constants(code: Code, function: FunctionNode) -> bool:
    """Return whether a function of the module level is given texts and classes only."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [part.annotation for part in parameters if part is not None]
    plain = bool(annotations) and all(
        part is not None and ast.unparse(part) in _CONSTANTS for part in annotations
    )
    return plain and function in code.tree.body


def _tables(code: Code, function: FunctionNode) -> set[str]:
    """Return the attributes and globals in which a function looks the key up under
    which it stores something.
    """
    around = [f for f in code.around(function) if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
    local = {
        node.id
        for scope in (function, *around)
        for node in own(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    # ``found = self._known``, ``table = TABLE``: the table by another name.
    aliases = {
        node.targets[0].id: ast.unparse(node.value)
        for node in own(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Attribute)
    }
    looked: set[tuple[str, str]] = set()
    stored: set[tuple[str, str]] = set()
    added: set[ast.AST] = {n.target for n in own(function) if isinstance(n, ast.AugAssign)}
    for node in own(function):
        match node:
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_]):
                looked.add((ast.unparse(table), ast.unparse(key)))
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[table]):
                looked.add((ast.unparse(table), ast.unparse(key)))
            case ast.Subscript(value=table, slice=key, ctx=ast.Load()):
                looked.add((ast.unparse(table), ast.unparse(key)))
            case ast.Subscript(value=table, slice=key, ctx=ast.Store()) if node not in added:
                stored.add((ast.unparse(table), ast.unparse(key)))
    tables = {aliases.get(table, table) for table, _ in looked & stored}
    return {table for table in tables if table.partition(".")[0].partition("[")[0] not in local}


# --- names -------------------------------------------------------------------------------------------------

_MATCHING = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_SYNTAX = re.compile(r"\(\?P?[<=!:][^)>]*>|\(\?[aiLmsux]+[:)]|\\[A-Za-z]")
_WORD = re.compile(r"[A-Za-z]{3,}")


def patterns(sources: Sources) -> Measured:
    """Return patterns that guess from users' names, in the model and the rules,
    but for the lexicon and ``api``.

    The module for comments is no such place either: what it reads is prose, and never a name.

    Regular expressions whose text has an English word: three or more letters that are no syntax of patterns,
    no keyword or built-in of Python, and belong to no dotted name of a library (``torch\\.nn``). Those that
    are only ever applied to ``qualified(…)`` names ask for libraries, and do not count.

    And sets of words at the top level of a module, most of which are neither names of Python nor of torch
    (the signatures in ``api`` tell), that are compared with a name which the user chose: ``.name.value`` of
    a definition or parameter, the ``name`` of a binding, or ``last_name(…)``.
    """
    known = _library_names(sources)
    places: list[Place] = []
    evaluations = sets = 0
    for code in sources.model_and_rules:
        if _exempt(code) or below(code.name, COMMENTS):
            continue
        for node, text in _regexes(sources, code):
            words = _words(text)
            if words and not _applied_to_library_names(code, node):
                places.append(code.place(node, text))
                evaluations += bool(re.search(r"(?i)eval", text))
        for name, words in _sets(code):
            if sum(word not in known for word in words) * 2 > len(words) and _compared_with_users(code, name):
                places.append(code.place(code.constants[name], f"{name}: {', '.join(sorted(words))}"))
                evaluations += any("eval" in word for word in words)
                sets += 1
    found = counted(places)
    if not places:
        return found
    shown = f"{len(places) - sets} regexes, {sets} sets; eval in {evaluations}"
    return Measured(found.value, shown, {**found.parts, "sets": sets, "eval": evaluations}, found.places)


def regular_expressions(sources: Sources) -> Measured:
    """Return calls of ``re.compile`` in the model, outside of the lexicon and ``api``.

    A pattern that is given to ``re.search`` and the like directly counts as well: it is compiled, too.
    """
    places = [
        code.place(node, text if _is_compile(node) else f"given directly: {text}")
        for code in sources.model
        if not _exempt(code)
        for node, text in _regexes(sources, code)
    ]
    found = counted(places)
    direct = sum(place.what.startswith("given directly: ") for place in places)
    shown = found.shown + (f", {direct} without `compile`" if direct else "")
    return Measured(found.value, shown, {**found.parts, "without compile": direct}, found.places)


def _exempt(code: Code) -> bool:
    return below(code.name, LEXICON) or below(code.name, API)


def _is_compile(call: ast.Call) -> bool:
    return getattr(call.func, "attr", getattr(call.func, "id", "")) == "compile"


def _regexes(sources: Sources, code: Code) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls of functions of ``re`` that are given a pattern, and what is written of it."""
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[pattern, *_]):
                if name in _MATCHING:
                    text = _written(sources, code, pattern)
                    if text or name == "compile":
                        yield node, text


def _written(sources: Sources, code: Code, node: ast.AST) -> str:
    """Return the text that an expression spells, as far as it does; constants of modules are looked up."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            found = sources.constant(code, name)
            is_pattern = found is None or _is_regex(found[1])
            return "" if found is None or is_pattern else _written(sources, found[0], found[1])
        case _:
            return "".join(_written(sources, code, child) for child in ast.iter_child_nodes(node))


def _is_regex(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"


def _words(text: str) -> set[str]:
    """Return the words of a pattern: no syntax, no keywords, no parts of dotted names."""
    bare = _CLASS.sub(" ", text)
    bare = re.sub(r"[\w|)(?:*+]*\w\)?[*+?]?\\\.(?:[\w(]+\\\.)*\w*", " ", bare)
    bare = _SYNTAX.sub(" ", bare)
    python = {*keyword.kwlist, *dir(builtins)}
    return {word for word in _WORD.findall(bare) if word not in python}


def _applied_to_library_names(code: Code, node: ast.Call) -> bool:
    """Return whether a compiled pattern is used, and always on what ``qualified(…)`` says."""
    parent = code.parents.get(node)
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return False
    name = parent.targets[0].id
    given = [
        call.args[0]
        for call in ast.walk(code.tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == name
        and call.args
    ]
    return bool(given) and all(_comes_from(code, argument, _is_qualified) for argument in given)


def _is_qualified(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="qualified" | "class_of" | "base_constructed")):
            return True
        case ast.Attribute(attr="imported" | "bases"):
            return True
    return False


def _comes_from(code: Code, node: ast.AST, is_source: Callable[[ast.AST], bool]) -> bool:
    """Return whether an expression has a source in it,
    or a local name that is assigned one in the function.
    """
    if any(is_source(inner) for inner in ast.walk(node)):
        return True
    function = next((n for n in code.around(node) if isinstance(n, ast.FunctionDef)), None)
    if function is None:
        return False
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    for inner in ast.walk(function):
        match inner:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                if any(is_source(part) for part in ast.walk(value)):
                    return True
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if name in names:
                if any(is_source(part) for part in ast.walk(value)):
                    return True
            case ast.comprehension(target=ast.Name(id=name), iter=value) if name in names:
                if any(is_source(part) for part in ast.walk(value)):
                    return True
    return False


def _sets(code: Code) -> Iterator[tuple[str, set[str]]]:
    """Yield the constants that are sets or tuples of plain words."""
    for name, value in code.constants.items():
        inner = value.args[0] if isinstance(value, ast.Call) and value.args else value
        if isinstance(inner, (ast.Set, ast.Tuple, ast.List)) and inner.elts:
            words = {
                part.value
                for part in inner.elts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            if len(words) == len(inner.elts) and all(re.fullmatch(r"[A-Za-z_]\w*", word) for word in words):
                yield name, words


def _compared_with_users(code: Code, name: str) -> bool:
    for node in ast.walk(code.tree):
        match node:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=table)]):
                if table == name and _comes_from(code, left, _is_users):
                    return True
            case (
                ast.Compare(left=left, comparators=[ast.Name(id=table)])
                | ast.BinOp(left=left, op=ast.BitAnd(), right=ast.Name(id=table))
            ):
                if table == name and _comes_from(code, left, _is_users):
                    return True
    return False


def _is_users(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Attribute(attr="name"), attr="value"):
            return True
        case ast.Attribute(value=ast.Name(id="binding"), attr="name"):
            return True
        case ast.Call(func=ast.Name(id="last_name")):
            return True
    return False


def _library_names(sources: Sources) -> set[str]:
    """Return the names of Python's built-ins and their methods,
    and each part of the dotted names in ``api``.
    """
    found = set(dir(builtins))
    for kind in (str, bytes, list, dict, set, tuple, int, float, complex, object, type):
        found |= set(dir(kind))
    for code in sources.model:
        if below(code.name, API):
            for node in ast.walk(code.tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= set(re.findall(r"\w+", node.value))
    return found


# --- prose -------------------------------------------------------------------------------------------------

_EDITING = {"Edit", "Fix"}
_FIXING = {"safe", "unsafe"}
_FUNCTION_WORDS = frozenset(
    {*("a", "an", "the", "of", "to", "at", "by", "no", "on", "it", "its", "that", "this", "once", "which")}
    | {*("be", "are", "has", "have", "does", "than", "so", "into", "what", "each", "every", "all")}
)


def prose(sources: Sources) -> Measured:
    """Return modules of the model that build edits or message prose; ``api``, which holds texts as data,
    is none.

    They import `Edit` or `Fix` of ``torchlint.diagnostics``, or ``torchlint.fixes``; call ``safe(…)``
    or ``unsafe(…)`` of a module, or a method of the façade whose result is annotated as edits or a fix; or
    spell prose: a string of three words or more, the parts of an f-string taken together, one of them an
    article, a preposition or the like ("the", "of"; no keyword of Python, which code has, too).
    Documentation, patterns, keys of the fixpoint, values of the members of an enumeration (the words of the
    lexicon among them), lists over several lines and what is raised or asserted are no prose.
    """
    places: list[Place] = []
    modules = 0
    fixing = _FIXING | _edit_methods(sources)
    for code in sources.model:
        if below(code.name, API):
            continue
        found = [*_editing(code, fixing), *_sentences(code)]
        modules += bool(found)
        places += found
    sentences = sum(1 for place in places if place.what.startswith("prose"))
    parts = {"edits": len(places) - sentences, "sentences": sentences}
    return Measured(modules, str(modules), parts, tuple(sorted(places)))


def _edit_methods(sources: Sources) -> set[str]:
    facade = sources.modules.get(FACADE)
    return {
        function.name
        for function in (facade.functions if facade is not None else ())
        if function.returns is not None and re.search(r"\b(Edits?|Fix)\b", ast.unparse(function.returns))
    }


def _editing(code: Code, fixing: set[str]) -> Iterator[Place]:
    for node in ast.walk(code.tree):
        match node:
            case ast.ImportFrom(module="torchlint.diagnostics", names=names):
                used = {alias.name for alias in names} & _EDITING
                if used:
                    yield code.place(node, f"imports {', '.join(sorted(used))}")
            case ast.ImportFrom(module=str(source)) if below(source, "torchlint.fixes"):
                yield code.place(node, "imports torchlint.fixes")
            case ast.ImportFrom(module="torchlint", names=names):
                if any(alias.name == "fixes" for alias in names):
                    yield code.place(node, "imports torchlint.fixes")
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in fixing:
                if ast.unparse(owner).rpartition(".")[2] in {"module", "self"}:
                    yield code.place(node, f"calls {name}")


def _sentences(code: Code) -> Iterator[Place]:
    silent: set[ast.AST] = set(code.strings_of_documentation)
    for node in ast.walk(code.tree):
        match node:
            case ast.Raise() | ast.Assert():
                silent |= set(ast.walk(node))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"))):
                silent |= set(ast.walk(node))
            case ast.Call(func=ast.Attribute(attr="ask" | "mentions" | "matches" | "split")):
                silent |= set(ast.walk(node))
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                silent |= set(ast.walk(annotation))
            case ast.JoinedStr():
                silent |= {part for part in node.values if isinstance(part, ast.Constant)}
            case ast.ClassDef(bases=bases) if any(ast.unparse(base).endswith("Enum") for base in bases):
                members = [part.value for part in node.body if isinstance(part, ast.Assign)]
                silent |= {inner for value in members for inner in ast.walk(value)}
    for node in ast.walk(code.tree):
        if node in silent:
            continue
        match node:
            case ast.Constant(value=str(text)):
                pass
            case ast.JoinedStr(values=values):
                text = "".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in values)
            case _:
                continue
        words = re.findall(r"(?<![\w.])[a-z]+(?!\w)", text.lower())
        if "\n" not in text and len(words) >= 3 and not _FUNCTION_WORDS.isdisjoint(words):
            yield code.place(node, f"prose: {text}")
