"""What is done by hand that a flow kernel does once: evaluating expressions, climbing to branches, bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from benchmarks.architecture.sources import (
    KERNEL,
    Code,
    FunctionNode,
    Measured,
    Place,
    Sources,
    below,
    counted,
    own,
    recursions,
)

KINDS_OF_AN_INTERPRETER = 4

# Too general to tell expressions apart.
_ANY_EXPRESSION = {"BaseExpression", "BaseAssignTargetExpression", "BaseDelTargetExpression"}
_EXPRESSIONS = {
    name
    for name, kind in vars(cst).items()
    if isinstance(kind, type) and issubclass(kind, cst.BaseExpression) and name not in _ANY_EXPRESSION
}
_BRANCHES = {
    *("If", "Else", "IfExp", "BooleanOperation", "Match", "MatchCase"),
    *("For", "While", "CompFor", "CompIf", "ListComp", "SetComp", "DictComp", "GeneratorExp"),
    *("Try", "TryStar", "ExceptHandler", "ExceptStarHandler", "Finally", "With"),
}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


# --- interpreters ------------------------------------------------------------------------------------------


def interpreters(sources: Sources) -> Measured:
    """Return hand-made interpreters: recursive functions that tell 4 or more kinds of expressions apart.

    In the model and the rules. A function is recursive if it mentions itself, or functions of its module
    that lead back to it; these are one interpreter together. The kinds are classes of LibCST that are
    expressions: in the patterns of ``match`` (those of what is matched, not of its parts), in ``isinstance``
    and in ``type(x) is``; tuples in constants are looked up. Those of ``BaseExpression`` itself, and in
    patterns within patterns, do not count.
    """
    places = []
    for code in sources.model_and_rules:
        for group in recursions(code):
            kinds = set().union(*(_distinguished(sources, code, function) for function in group))
            if len(kinds) >= KINDS_OF_AN_INTERPRETER:
                names = ", ".join(dict.fromkeys(function.name for function in group))
                places.append(code.place(group[0], f"{names} ({len(kinds)} kinds)"))
    return counted(places)


def _distinguished(sources: Sources, code: Code, function: FunctionNode) -> set[str]:
    found: set[str] = set()
    for node in own(function):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                found |= sources.kinds(code, kinds)
            case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=[kinds]):
                found |= sources.kinds(code, kinds)
            case ast.match_case(pattern=pattern):
                for alternative in _alternatives(pattern):
                    found |= sources.kinds(code, alternative.cls)
    return found & _EXPRESSIONS


def _alternatives(pattern: ast.pattern) -> Iterator[ast.MatchClass]:
    match pattern:
        case ast.MatchClass():
            yield pattern
        case ast.MatchOr(patterns=patterns) | ast.MatchSequence(patterns=patterns):
            for part in patterns:
                yield from _alternatives(part)
        case ast.MatchAs(pattern=ast.pattern() as inner):
            yield from _alternatives(inner)


# --- climbs ------------------------------------------------------------------------------------------------


def climbs(sources: Sources) -> Measured:
    """Return climbs to branches, outside of the flow kernel, in the model and the rules.

    Either a loop or comprehension over ``ancestors(…)`` or ``edges(…)``, or a ``while`` loop or a recursive
    function that asks for ``parent(…)``, which names a branch of the control flow: classes of LibCST for
    conditions, loops, ``try``, ``with``, ``match``, comprehensions or Boolean operators, also by a constant.
    And ``enclosing(…)`` or ``climb(…)`` with such a class, which is the same loop in the tree's hands: these
    are counted apart, as ``asked of the tree``.
    """
    places: list[Place] = []
    asked: list[Place] = []
    for code in sources.model_and_rules:
        if below(code.name, KERNEL):
            continue
        stepping = {f for group in recursions(code) for f in group}
        seen: set[ast.AST] = set()
        for node in ast.walk(code.tree):
            if isinstance(node, (ast.For, *_COMPREHENSIONS)):
                iterables = [node.iter] if isinstance(node, ast.For) else [g.iter for g in node.generators]
                if any(_calls(part, "ancestors", "edges") for part in iterables):
                    if _names_branch(sources, code, node):
                        places.append(code.place(node, "over ancestors"))
                        seen.add(node)
            elif (
                isinstance(node, ast.While) and _calls(node, "parent") and _names_branch(sources, code, node)
            ):
                places.append(code.place(node, "steps through parents"))
                seen.add(node)
            elif isinstance(node, ast.Call) and _calls_directly(node, "enclosing", "climb"):
                if sources.kinds(code, node) & _BRANCHES:
                    asked.append(code.place(node, "asked of the tree"))
        for function in sorted(stepping, key=lambda f: f.lineno):
            if any(inner in seen for inner in ast.walk(function)):
                continue
            if any(_calls_directly(n, "parent") for n in own(function)):
                if any(_names_branch(sources, code, n) for n in function.body):
                    places.append(code.place(function, f"{function.name} steps through parents"))
    found = counted(places)
    shown = found.shown + (f", {len(asked)} asked of the tree" if asked else "")
    parts = {**found.parts, "asked of the tree": len(asked)}
    return Measured(found.value + len(asked), shown, parts, tuple(sorted([*places, *asked])))


def _calls_directly(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _calls(node: ast.AST, *names: str) -> bool:
    return any(_calls_directly(inner, *names) for inner in ast.walk(node))


def _names_branch(sources: Sources, code: Code, node: ast.AST) -> bool:
    return bool(sources.kinds(code, node) & _BRANCHES)


# --- bounds ------------------------------------------------------------------------------------------------


def bounds(sources: Sources) -> Measured:
    """Return private bounds: integers that end a recursion or a loop, in the model and the rules.

    A bound is an integer constant of a module, or a positive default of a parameter that is written out,
    used in one of these ways:

    - it is compared with a counter: what the module counts (``depth + 1`` passed on to a function of the
      module or in a queue, ``steps += 1``), or, in a loop or a recursive function, the ``len(…)`` of
      a collection that the module fills;
    - a counter starts from it: it is given for a parameter that is counted (``hops - 1`` is passed on), is
      its default, stands in a tuple that a function puts into a queue, or is assigned to a counter;
    - ``for _ in range(…)`` goes over it;
    - it is given for a parameter ``depth``, ``hops``, ``limit`` or ``rounds``, of another module, too.
    """
    found = [bound for code in sources.model_and_rules for bound in _bounds(code)]
    sizes = [size for _, size in found]
    result = counted(
        [place for place, _ in found], least=min(sizes, default=0), greatest=max(sizes, default=0)
    )
    shown = f"{result.shown}, from {min(sizes)} to {max(sizes)}" if found else "0"
    return Measured(result.value, shown, result.parts, result.places)


_PARAMETERS_OF_OTHERS = {"depth", "hops", "limit", "rounds"}


def _is_int(node: ast.AST | None) -> bool:
    """Return whether an expression is an integer that is written out,
    also as a choice of two or a product.
    """
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int()):
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _is_int(body) and _is_int(orelse)
        case ast.BinOp(left=left, right=right):
            return (_is_int(left) or isinstance(left, ast.Name)) and (
                _is_int(right) or isinstance(right, ast.Name)
            )
    return False


def _bounds(code: Code) -> Iterator[tuple[Place, int]]:
    """Yield the bounds of a module, with the least of the integers that each is."""
    constants = {name: value for name, value in code.constants.items() if _is_int(value)}
    used: set[str] = set()
    recursive = {function for group in recursions(code) for function in group}
    counters = _counters(code)
    counting = _counting(code, counters)
    filled = _filled(code)
    for node in ast.walk(code.tree):
        match node:
            case ast.Compare(left=left, comparators=[right]):
                for one, other in ((left, right), (right, left)):
                    grows = _grows(other, filled) and _in_loop_or_recursion(code, node, recursive)
                    if _text(other) in counters or grows:
                        used |= _constants_in(one, constants)
            case ast.comprehension(target=target, iter=over) | ast.For(target=target, iter=over):
                match target, over:
                    case ast.Name(id="_"), ast.Call(func=ast.Name(id="range"), args=[end]):
                        used |= _constants_in(end, constants)
            case ast.Call():
                called = _called(node)
                if called in counting:
                    for argument in node.args:
                        used |= _constants_in(argument, constants)
                for keyword in node.keywords:
                    if keyword.arg in {*_PARAMETERS_OF_OTHERS, *counting.get(called or "", ())}:
                        used |= _constants_in(keyword.value, constants)
            case ast.Assign(targets=targets, value=value) if any(_text(t) in counters for t in targets):
                used |= _constants_in(value, constants)
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _text(target) in counters:
                used |= _constants_in(value, constants)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any(isinstance(inner, ast.Call) and _queues(inner) for inner in own(node)):
                    for inner in own(node):
                        if isinstance(inner, ast.Tuple) and isinstance(inner.ctx, ast.Load):
                            used |= {n.id for n in inner.elts if isinstance(n, ast.Name)} & constants.keys()
                for parameter, default in _defaults(node):
                    if parameter in counting.get(node.name, ()) and node in recursive:
                        used |= _constants_in(default, constants)
                        match default:
                            case ast.Constant(value=int(number)) if number > 0 and _is_int(default):
                                yield code.place(node, f"{node.name}({parameter}={number})"), number
    for name in used:
        value = constants[name]
        numbers = [
            n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, int)
        ]
        yield code.place(value, f"{name} = {_text(value)}"), min(numbers)


def _counters(code: Code) -> set[str]:
    """Return the names and attributes that are counted: ``n += 1``, ``n = n + 1``, and ``n ± 1`` passed on.

    Passed on is what a function of the module is given, and what a tuple in a queue holds.
    """
    named = {function.name for function in code.functions}
    found: set[str] = set()
    for node in ast.walk(code.tree):
        match node:
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub(), value=ast.Constant(value=1)):
                found.add(_text(target))
            case ast.Call(args=arguments, keywords=keywords) if _called(node) in named or _queues(node):
                for part in (*arguments, *(keyword.value for keyword in keywords)):
                    found |= {_text(counter) for counter in _stepped(part)}
            case ast.Assign(targets=[target], value=value):
                targets = {
                    _text(part) for part in (target.elts if isinstance(target, ast.Tuple) else [target])
                }
                found |= {_text(counter) for counter in _stepped(value)} & targets
    return found


def _called(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def _queues(call: ast.Call) -> bool:
    """Return whether a call puts a tuple into a queue or a stack."""
    return _called(call) in {"append", "appendleft"} and isinstance(call.args[0], ast.Tuple)


def _stepped(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what an expression, or a part of the tuple that it is, counts one step on."""
    match node:
        case ast.BinOp(
            left=ast.Name() | ast.Attribute() as left, op=ast.Add() | ast.Sub(), right=ast.Constant(1)
        ):
            yield left
        case ast.Tuple(elts=parts):
            for part in parts:
                yield from _stepped(part)


def _counting(code: Code, counters: set[str]) -> dict[str, set[str]]:
    """Return the functions that have parameters which are counted, with these."""
    found: dict[str, set[str]] = {}
    for function in code.functions:
        given = function.args
        parameters = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        if parameters & counters:
            found.setdefault(function.name, set()).update(parameters & counters)
    return found


def _filled(code: Code) -> set[str]:
    """Return the collections that the module adds to."""
    found: set[str] = set()
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr="append" | "add" | "appendleft" | "extend")):
                found.add(_text(owner))
            case ast.Subscript(value=owner, ctx=ast.Store()):
                found.add(_text(owner))
            case ast.BinOp(op=ast.BitOr(), left=ast.Name(id=name), right=ast.Set()):
                found.add(name)
            case ast.Tuple(elts=[ast.Starred(value=ast.Name(id=name)), *_]):
                found.add(name)
            case ast.AugAssign(target=target, op=ast.BitOr() | ast.Add()):
                found.add(_text(target))
    return found


def _grows(node: ast.AST, filled: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[of]):
            return _text(of) in filled
    return False


def _in_loop_or_recursion(code: Code, node: ast.AST, recursive: set[FunctionNode]) -> bool:
    for around in code.around(node):
        if isinstance(around, _LOOPS):
            return True
        if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return around in recursive
    return False


def _constants_in(node: ast.AST, constants: dict[str, ast.expr]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in constants}


def _defaults(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    behind = positional[len(positional) - len(given.defaults) :]
    yield from ((arg.arg, default) for arg, default in zip(behind, given.defaults, strict=True))
    for arg, maybe in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if maybe is not None:
            yield arg.arg, maybe


def _text(node: ast.AST) -> str:
    return ast.unparse(node)
