"""Which places can run more than once: a question of spelling only, asked before any dearer one."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from torchlint.semantics.api.frameworks import LIGHTNING_BATCH_HOOK, LIGHTNING_STEPS, METHODS_OF_STEPS
from torchlint.semantics.names import Names, ScopeKind
from torchlint.syntax import SyntaxTree

_LOOPS = frozenset({cst.For, cst.While, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})
_BODIES = frozenset({cst.FunctionDef, cst.Lambda})


_HOOKS = LIGHTNING_STEPS.union(*METHODS_OF_STEPS.values())


def _is_hook(name: str) -> bool:
    """Whether some framework calls methods of this name at every step, without a call in the file."""
    return name in _HOOKS or LIGHTNING_BATCH_HOOK.match(name) is not None


class Repetition:
    """Whether the places of one file can be run again and again, going by names alone.

    Never wrong about a place that does repeat: a function counts as repeated if anything of its name is
    called at a place that repeats, if it is handed on as a value, or if a framework may call it.
    """

    def __init__(self, tree: SyntaxTree, names: Names) -> None:
        self.tree = tree
        self.names = names
        self._functions: dict[cst.CSTNode, bool] = {}
        self._known: dict[cst.CSTNode, bool] = {}
        self._deciding: set[cst.CSTNode] = set()

    def possible(self, node: cst.CSTNode) -> bool:
        """Whether ``node`` stands in a loop, or in a function that may be called from one."""
        parents, known = self.tree.parents, self._known
        trail: list[cst.CSTNode] = []
        around: cst.CSTNode | None = node
        found = False
        while around is not None:
            if around in known:
                found = known[around]
                break
            trail.append(around)
            around = parents.get(around)
            kind = around.__class__
            if kind in _LOOPS:
                found = True
                break
            if kind in _BODIES and around is not None:
                found = self._function(around)
                break
        if not self._deciding:
            # While a function is being decided on, its own calls count as none: no answer to keep.
            for step in trail:
                known[step] = found
        return found

    def _function(self, function: cst.CSTNode) -> bool:
        found = self._functions.get(function)
        if found is None:
            if function in self._deciding:
                return False  # a function that only calls itself does not repeat
            self._deciding.add(function)
            found = self._repeats(function)
            self._deciding.discard(function)
            if found or not self._deciding:
                self._functions[function] = found
        return found

    def _repeats(self, function: cst.CSTNode) -> bool:
        if not isinstance(function, cst.FunctionDef):
            return True
        name = function.name.value
        scope = self.names.scope(function)
        if scope.kind is ScopeKind.CLASS:
            if name == "__init__":
                assert isinstance(scope.node, cst.ClassDef)
                return self._made_again(scope.node)
            if name.startswith("__") or _is_hook(name) or function.decorators:
                return True
            return self._called_again(name) or name in self._values
        if scope.kind is ScopeKind.FUNCTION or function.decorators:
            return True
        return self._called_again(name) or name in self._values

    def _made_again(self, definition: cst.ClassDef) -> bool:
        """Whether instances of a class, or of an heir, are made at a place that repeats.

        Modules are made in loops while a model is built, never at each step.
        """
        name = definition.name.value
        if any(isinstance(s, cst.FunctionDef) and s.name.value == "forward" for s in definition.body.body):
            return False
        return self._called_again(name) or any(self._called_again(heir) for heir in self._heirs.get(name, ()))

    def _called_again(self, name: str) -> bool:
        return any(self.possible(call) for call in self._calls.get(name, ()))

    @cached_property
    def _calls(self) -> dict[str, list[cst.Call]]:
        """The calls of the file by the last word of what they call."""
        found: dict[str, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            func = call.func
            if func.__class__ is cst.Name:
                found.setdefault(func.value, []).append(call)
            elif func.__class__ is cst.Attribute:
                found.setdefault(func.attr.value, []).append(call)
        return found

    @cached_property
    def _heirs(self) -> dict[str, list[str]]:
        """By the name of a class: the names of the classes that inherit from it, however far down."""
        below: dict[str, list[str]] = {}
        for definition in self.tree.nodes(cst.ClassDef):
            for base in definition.bases:
                value = base.value
                name = value.attr.value if isinstance(value, cst.Attribute) else getattr(value, "value", "")
                below.setdefault(str(name), []).append(definition.name.value)
        found: dict[str, list[str]] = {}
        for name in below:
            waiting, seen = [name], {name}
            while waiting:
                for heir in below.get(waiting.pop(), ()):
                    if heir not in seen:
                        seen.add(heir)
                        waiting.append(heir)
            found[name] = sorted(seen - {name})
        return found

    @cached_property
    def _values(self) -> frozenset[str]:
        """The names of functions that are handed on instead of called: callbacks, table entries, aliases."""
        found: set[str] = set()
        for name, reads in self.names.reads.items():
            for read in reads:
                parent = self.tree.parents.get(read)
                if not (isinstance(parent, cst.Call) and parent.func is read):
                    found.add(name)
                    break
        for attribute in self.tree.nodes(cst.Attribute):
            parent = self.tree.parents.get(attribute)
            if not (isinstance(parent, cst.Call) and parent.func is attribute):
                found.add(attribute.attr.value)
        return frozenset(found)
