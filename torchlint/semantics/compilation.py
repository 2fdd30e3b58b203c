"""Which code `torch.compile` compiles: the functions and modules that a file gives it, and what they call.

The compiler follows calls into the functions of the file, but not into those that it is told to leave alone,
and code that asks whether it is being compiled knows what it does.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.api.compiler import ASKS_COMPILER, DISABLERS
from torchlint.semantics.api.frameworks import COMPILERS
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module, Part
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind, Value

Maker: TypeAlias = "cst.Call | cst.Decorator"

# Decorators of torch and functools that the compiler does not look behind.
_KEPT_OUT = frozenset({"custom_op", "allow_in_graph", "lru_cache", "cache"})
_COMPILING = frozenset({"compile", "optimize"})
_RENAMED = re.compile(r"torch\.compile *$", re.MULTILINE)
# Lightning unwraps a compiled module and compiles these methods of it.
_LIGHTNING_METHODS = ("forward", "training_step", "validation_step", "test_step", "predict_step")


@dataclass(frozen=True, slots=True)
class Region:
    """How a piece of code comes to be compiled.

    ``maker`` is the call or decorator that has ``entry`` compiled, and ``path`` are the calls that lead from
    there to the code, outermost first; empty if it stands in ``entry`` itself.
    """

    entry: Function
    maker: Maker
    path: tuple[cst.Call, ...] = ()


def compiled(module: Module, node: cst.CSTNode) -> bool:
    """Whether a node is inside a function or module that ``torch.compile`` compiles."""
    return Compilation.of(module).region(node) is not None


class Compilation(Part):
    """The compiled code of one file, whichever file of its programs has it compiled."""

    def region(self, node: cst.CSTNode) -> Region | None:
        """How the code at a node comes to be compiled, on the shortest way; None if it is not."""
        if not self.entries:
            return None
        function = self.module.function(node)
        return self._reach(function) if function is not None else None

    @remembered
    def _reach(self, function: Function) -> Region | None:
        waiting: deque[tuple[Function, tuple[cst.Call, ...]]] = deque([(function, ())])
        seen: set[Function] = {function}
        while waiting:
            current, path = waiting.popleft()
            if self._left_alone(current):
                continue
            maker = self.entries.get(current)
            if maker is not None:
                return Region(current, maker, path)
            for call in self.module.callers(current):
                outer = self.module.function(call)
                if outer is not None and outer not in seen:
                    seen.add(outer)
                    waiting.append((outer, (call, *path)))
        return None

    def _left_alone(self, function: Function) -> bool:
        """Whether the compiler is kept out of a function, or the function asks whether it is compiled."""
        disabling = (self, *map(Compilation.of, self.module.companions("disable", "allow_in_graph")))
        if any(function in each._disabled for each in disabling):
            return True
        return any(
            isinstance(part, (cst.Name, cst.Attribute)) and ASKS_COMPILER.search(last_name(part) or "")
            for part in self.tree.descendants(function.body)
        )

    @cached_property
    def _disabled(self) -> set[Function]:
        """The functions that decorators or calls of the file keep the compiler out of."""
        found: set[Function] = set()
        for decorator in self.tree.nodes(cst.Decorator):
            holder = self.tree.parent(decorator)
            made = decorator.decorator
            made = made.func if isinstance(made, cst.Call) else made
            qualified = self.module.qualified(made) or ""
            if isinstance(holder, cst.FunctionDef) and qualified not in COMPILERS:
                if DISABLERS.search(qualified) or self._keeps_out(made):
                    found.add(holder)
        for call in self.tree.nodes(cst.Call):
            if call.args and DISABLERS.search(self.module.qualified(call.func) or ""):
                found.update(self._run_by(self.module.value(call.args[0].value)))
        return found

    def _keeps_out(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator keeps the compiler out, by its body, or by its name if that is not shown."""
        name = last_name(decorator)
        made = self.module.value(decorator).definition
        if not isinstance(made, cst.FunctionDef):
            return name in _KEPT_OUT or has(name, Role.COMPILATION)
        home = self.module.home(made)
        return any(
            DISABLERS.search(home.qualified(part) or "") or last_name(part) in _KEPT_OUT
            for part in home.tree.descendants(made)
            if isinstance(part, (cst.Name, cst.Attribute))
        )

    # ------------------------------------------------------------------ what is given to the compiler

    @cached_property
    def entries(self) -> dict[Function, Maker]:
        """The functions of the program that are compiled, with the call or decorator that has them compiled.

        What the file itself has compiled goes first.
        """
        found = dict(self._own_entries)
        for other in map(Compilation.of, self.module.companions("compile", "dynamo")):
            for function, maker in other._own_entries.items():
                found.setdefault(function, maker)
        return found

    @cached_property
    def _own_entries(self) -> dict[Function, Maker]:
        """What the file itself has compiled."""
        found: dict[Function, Maker] = {}
        if not self.tree.mentions("compile") and not self.tree.mentions("dynamo"):
            return found
        for call in self.tree.nodes(cst.Call):
            given = self.given(call)
            if given is not None:
                for function in self._run_by(self.module.value(given)):
                    found.setdefault(function, call)
        for decorator in self.tree.nodes(cst.Decorator):
            holder = self.given(decorator)
            if isinstance(holder, cst.FunctionDef):
                found.setdefault(holder, decorator)
            elif isinstance(holder, cst.ClassDef):
                for function in self._methods(holder):
                    found.setdefault(function, decorator)
        return found

    def given(self, node: cst.Call | cst.Decorator) -> cst.CSTNode | None:
        """What a call or decorator has compiled: an expression, or the function or class below it.

        ``torch.compile(model)``, ``torch.compile(mode=…)(f)``, ``model.compile()``.
        """
        if isinstance(node, cst.Decorator):
            return self.tree.parent(node) if self._compiles(node.decorator) else None
        func = node.func
        if last_name(func) not in _COMPILING and not self._renamed:
            return None  # by far the most calls
        if isinstance(func, cst.Call):
            makes = self._compiles(func) and node.args and _given(func) is None
            return node.args[0].value if makes else None
        if self.module.qualified(func) in COMPILERS:
            return None if self._switched_off(node) else _given(node)
        if isinstance(func, cst.Attribute) and func.attr.value == "compile" and not self._switched_off(node):
            return func.value if self.module.value(func.value).kind is Kind.MODULE else None
        return None

    @cached_property
    def _renamed(self) -> bool:
        """Whether the file may call a compiler by another name."""
        imported = any(self.tree.mentions(f"{name} as ") for name in _COMPILING)
        return imported or (self.tree.mentions("torch.compile") and self.tree.matches(_RENAMED))

    def _compiles(self, made: cst.BaseExpression) -> bool:
        """Whether a decorator, or what stands in for one, is a compiler, with options or without."""
        if isinstance(made, cst.Call):
            if self._switched_off(made):
                return False
            partial = self.module.qualified(made.func) == "functools.partial" and made.args
            made = made.args[0].value if partial else made.func
        return self.module.qualified(made) in COMPILERS

    def _switched_off(self, call: cst.Call) -> bool:
        return any(
            arg.keyword is not None
            and arg.keyword.value == "disable"
            and self.module.value(arg.value).constant is True
            for arg in call.args
        )

    def _run_by(self, value: Value) -> Iterator[Function]:
        """The functions of the file that run when something is called."""
        if isinstance(value.definition, cst.ClassDef):
            yield from self._methods(value.definition)
        elif value.definition is not None:
            yield value.definition

    def _methods(self, cls: cst.ClassDef) -> Iterator[Function]:
        info = self.module.classes.info(cls)
        names = _LIGHTNING_METHODS if info.lightning else ("forward",)
        methods = [method for name in names if (method := info.method(name)) is not None]
        called = info.method("__call__")
        yield from methods or ([called] if called is not None else [])


def _given(call: cst.Call) -> cst.BaseExpression | None:
    """What a compiler is given: the first argument, or ``model=``."""
    for position, arg in enumerate(call.args):
        if arg.star:
            return None
        if (arg.keyword is None and position == 0) or (
            arg.keyword is not None and arg.keyword.value == "model"
        ):
            return arg.value
    return None
