"""How large the project is, and how its modules hang together."""

from __future__ import annotations

import ast

from benchmarks.architecture.sources import (
    FACADE,
    MODEL,
    RULES,
    Code,
    Measured,
    Place,
    Sources,
    below,
    components,
    reached,
)


def lines_of_model(sources: Sources) -> Measured:
    """Return lines of the modules in ``torchlint/semantics``, blank ones and comments included."""
    places = [Place(code.path, 0, f"{code.lines} lines") for code in sources.model]
    lines = sum(code.lines for code in sources.model)
    return Measured(lines, _thousands(lines), {}, tuple(sorted(places)))


def modules_of_model(sources: Sources) -> Measured:
    """Return modules in ``torchlint/semantics``: files,
    those of packages (``__init__.py``) only if they hold code.

    A docstring is no code.
    """
    found = [code for code in sources.model if not code.is_package or _has_code(code)]
    return Measured(len(found), str(len(found)), {}, tuple(Place(code.path, 0) for code in found))


def lines_of_all(sources: Sources) -> Measured:
    """Return lines of ``torchlint/`` and ``rules/`` together,
    without the bench cases in ``rules/*/cases``.
    """
    places = [Place(code.path, 0, f"{code.lines} lines") for code in sources.modules.values()]
    lines = sum(code.lines for code in sources.modules.values())
    rules = sum(code.lines for name, code in sources.modules.items() if below(name, RULES))
    parts = {"torchlint": lines - rules, "rules": rules}
    return Measured(lines, _thousands(lines), parts, tuple(sorted(places)))


def import_cycle(sources: Sources) -> Measured:
    """Return modules in the largest import cycle: the largest strongly connected component of all imports.

    Those at any depth and those for types are included; 0 if there is no cycle. Python's import of the
    packages around a module is not counted.
    """
    cycles = [component for component in components(sources.graph) if len(component) > 1]
    largest = max(cycles, key=len, default=set())
    places = tuple(sorted(Place(sources.modules[name].path, 0) for name in largest))
    return Measured(len(largest), str(len(largest)), {"cycles": len(cycles)}, places)


def facade_members(sources: Sources) -> Measured:
    """Return public members of the class ``Module``: what its body defines,
    and what is assigned on ``self``.
    """
    code = sources.modules.get(FACADE)
    found: dict[str, Place] = {}
    for cls in code.tree.body if code is not None else ():
        if code is None or not isinstance(cls, ast.ClassDef) or cls.name != "Module":
            continue
        for statement in cls.body:
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.setdefault(name, code.place(statement, name))
                case ast.Assign(targets=targets):
                    for target in targets:
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, code.place(statement, target.id))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    found.setdefault(name, code.place(statement, name))
        for node in ast.walk(cls):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    found.setdefault(name, code.place(node, name))
    places = tuple(sorted(place for name, place in found.items() if not name.startswith("_")))
    return Measured(len(places), str(len(places)), {}, places)


def serving_one_rule(sources: Sources) -> Measured:
    """Return modules of the model that serve exactly one rule, with their lines.

    A rule is a module ``rules/<family>/<rule>.py`` that declares one, or a folder
    ``rules/<family>/<rule>/`` in which a module does. It is served by what it reaches over imports (for
    types, too), through other modules of the model and through what the family shares, but not through the
    façade: what the façade reaches serves every rule. What the rest of ``torchlint`` reaches without
    a rule serves the linter as a whole. Neither is counted, nor is what nobody reaches.
    """
    graph = sources.graph

    def through(name: str) -> bool:
        return name != FACADE

    everybody = reached(graph, {FACADE} & graph.keys(), lambda _: True)
    engine = {name for name in graph if not below(name, MODEL) and not below(name, RULES)}
    everybody |= reached(graph, engine, lambda name: through(name) and not below(name, RULES))
    rules: dict[str, set[str]] = {}
    for name, code in sources.modules.items():
        parts = name.split(".")
        if parts[0] == RULES and len(parts) > 2 and _declares_rule(code):
            rules.setdefault(".".join(parts[:3]), set())
    entries = {rule: {name for name in sources.modules if below(name, rule)} for rule in rules}
    served: dict[str, set[str]] = {}
    for rule, start in entries.items():
        for name in reached(graph, start, through):
            if below(name, MODEL) and name not in everybody:
                served.setdefault(name, set()).add(rule)
    found = {name: next(iter(by)) for name, by in served.items() if len(by) == 1}
    lines = sum(sources.modules[name].lines for name in found)
    places = [
        Place(sources.modules[name].path, 0, f"{sources.modules[name].lines} lines, for {rule}")
        for name, rule in found.items()
    ]
    shown = f"{len(found)} ({_thousands(lines)} lines)" if found else "0"
    return Measured(len(found), shown, {"lines": lines}, tuple(sorted(places)))


def _declares_rule(code: Code) -> bool:
    return any(
        isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "rule"
        for function in code.functions
        for mark in function.decorator_list
    )


def _has_code(code: Code) -> bool:
    return any(not isinstance(s, ast.Expr) or not isinstance(s.value, ast.Constant) for s in code.tree.body)


def _thousands(number: int) -> str:
    return f"{number / 1000:.1f} k" if number >= 1000 else str(number)
