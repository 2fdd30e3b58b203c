"""Calls of `torch.compile` that are made again and again for the same thing.

Compiling belongs to the set-up. What looks like repetition and is none: a loop over the models or layers of a
program, which are compiled one by one; a call behind a guard that keeps what it made; a function whose
results are cached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.compilation import Compilation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.sinks import Standing, Use, UseKind, Verdict, sinks
from torchlint.semantics.spellings import last_name, start_of
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_SETUP = frozenset({"__init__", "__post_init__", "__new__", "setup", "configure_model"})
_DISPLAYS = (cst.Dict, cst.DictComp, cst.List, cst.Tuple, cst.ListComp)
_RESETS = ("compiler.reset(", "_dynamo.reset(")


@dataclass(frozen=True, slots=True)
class Repeated:
    """A compilation that is asked for in each round of a hot place, or of a plain loop."""

    given: cst.CSTNode
    hot: Hot | None
    loop: cst.For | cst.While | None


def repeated_compilation(module: Module, node: cst.Call | cst.Decorator) -> Repeated | None:
    """Return where the call or decorator ``node`` compiles the same thing again and again, if it does."""
    given = Compilation.of(module).given(node)
    if given is None or is_test(module):
        return None
    functions = [function for function in [module.function(node)] if function is not None]
    hot = places.hot(module, node)
    if hot is not None:
        functions += [function for call in hot.path if (function := module.function(call)) is not None]
    if any(isinstance(f, cst.FunctionDef) and f.name.value in _SETUP for f in functions):
        return None
    if places.throttled(module, node) or _kept(module, node):
        return None
    loops = module.flow.statement_loops(node)
    if loops:
        return _in_loop(module, node, given, loops[0], hot)
    if hot is None or _resets(module, module.function(node)) or not _same_on_the_way(module, given, hot):
        return None
    return Repeated(given, hot, None)


def _in_loop(
    module: Module,
    node: cst.Call | cst.Decorator,
    given: cst.CSTNode,
    loop: cst.For | cst.While,
    hot: Hot | None,
) -> Repeated | None:
    if _resets(module, loop):
        return None
    if isinstance(given, (cst.FunctionDef, cst.Lambda)):
        # What is defined there closes over what the loop has; only steps make many of the same.
        return Repeated(given, hot, loop) if hot is not None else None
    if any(_changes(module, part, node, loop) for part in module.tree.descendants(node)):
        return None
    return Repeated(given, hot, loop)


def _resets(module: Module, holder: cst.CSTNode | None) -> bool:
    """Return whether a loop or function throws away what was compiled,
    as one that measures the compiler does.
    """
    return holder is not None and any(reset in module.source(holder) for reset in _RESETS)


def _changes(module: Module, part: cst.CSTNode, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
    """Return whether a part of what is compiled, or of how, may be another one in each round of a loop."""
    tree = module.tree
    if isinstance(part, cst.Call):
        return part is not node
    statement = tree.statement(node)
    if isinstance(part, cst.Name) and isinstance(tree.parent(part), (cst.Attribute, cst.Arg)):
        parent = tree.parent(part)
        if (isinstance(parent, cst.Attribute) and parent.attr is part) or (
            isinstance(parent, cst.Arg) and parent.keyword is part
        ):
            return False
    targets: Iterator[cst.CSTNode] = iter(())
    if isinstance(part, cst.Name):
        targets = (binding.node for binding in module.bindings(part))
    elif isinstance(part, cst.Attribute):
        bound = module.names.attributes.get(part.attr.value, ())
        targets = (binding.target for binding in bound if alike(binding.target, part))
    return any(tree.contains(loop, target) and not tree.contains(statement, target) for target in targets)


def _same_on_the_way(module: Module, given: cst.CSTNode, hot: Hot) -> bool:
    """Return whether the calls that lead to a function do not hand it another thing in each round."""
    path_is_of_steps = isinstance(hot.loop, FUNCTIONS) or not hot.path or _of_steps(module, hot.loop)
    if not path_is_of_steps:
        return False
    root = start_of(given, cst.Attribute)
    if not isinstance(root, cst.Name):
        return not isinstance(root, cst.Call)
    bindings = module.bindings(root)
    if any(isinstance(b.value, cst.Call) and not b.path and b.value is not given for b in bindings):
        return False  # what was made just before is another one each time
    if not hot.path or not any(isinstance(b.node, cst.Param) for b in bindings) or root.value == "self":
        return True
    call = hot.path[-1]
    passed = module.argument(call, root.value).node if isinstance(call, cst.Call) else None
    if passed is None or not isinstance(hot.loop, (cst.For, cst.While)):
        return False
    return not any(_changes(module, part, call, hot.loop) for part in module.tree.descendants(passed))


def _of_steps(module: Module, loop: cst.CSTNode) -> bool:
    """Return whether a loop goes over batches or trains; others may go over what is compared or measured."""
    if not isinstance(loop, (cst.For, cst.While)):
        return False
    return places.over_loader(module, loop) or phase(module, loop.body) is Phase.TRAINING


# --- guards -----------------------------------------------------------------------------------------


def _kept(module: Module, node: cst.Call | cst.Decorator) -> bool:
    """Return whether a condition lets the call through, and what it makes is kept beyond the condition.

    ``if self._fast is None: self._fast = torch.compile(…)``, ``if key not in cache: cache[key] = …``.
    """
    tests = list(_tests(module, node))
    if not tests:
        return False
    targets = _targets(module, node)
    if any(not isinstance(target, cst.Name) for target in targets):
        return True
    function = module.function(node)
    for target in targets:
        binding = module.binding_of(target)
        if binding is None or (binding.scope.node is not function and function is not None):
            return True
        name = last_name(target)
        mentioned = (part for test in tests for part in module.tree.descendants(test))
        if any(isinstance(part, cst.Name) and part.value == name for part in mentioned):
            return True
    return False


def _tests(module: Module, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Return the conditions around ``node`` in its function."""
    return (decision.test for decision in module.flow.branches(node))


def _targets(module: Module, node: cst.Call | cst.Decorator) -> list[cst.CSTNode]:
    """Return what the compiled thing is assigned to, if it is assigned at once."""
    if isinstance(node, cst.Decorator):
        return []
    if isinstance(node.func, cst.Attribute) and module.qualified(node.func) is None:
        return [node.func]
    return list(sinks(module, node, _assigned))


def _assigned(module: Module, use: Use) -> Verdict[cst.CSTNode]:
    """Return the target that is assigned a value, or what holds it;
    ``cache.update({...})`` keeps it as well.
    """
    match use.kind:
        case UseKind.ELEMENT:
            return Standing(use.by) if isinstance(use.by, _DISPLAYS) else ()
        case UseKind.ASSIGNED | UseKind.STORED | UseKind.UNPACKED:
            return use.by
        case UseKind.ARGUMENT:
            func = use.call.func
            keeps = isinstance(func, cst.Attribute) and func.attr.value in ("update", "setdefault", "append")
            return func.value if keeps and isinstance(func, cst.Attribute) else ()
    return ()
