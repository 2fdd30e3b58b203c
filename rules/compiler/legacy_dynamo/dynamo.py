"""TorchDynamo's entry point of before torch 2.0, and how ``torch.compile`` says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes import Edits, add_argument, remove_import, replace, spell
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.spellings import start_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


_INSIDE = ("torch._dynamo", "torch._dynamo.eval_frame", "torchdynamo")
_OPTIMIZE = frozenset(f"{place}.optimize" for place in _INSIDE)
_ASSERTING = frozenset(f"{place}.optimize_assert" for place in _INSIDE)
_RENAMED = {"backend": "backend", "nopython": "fullgraph", "disable": "disable", "dynamic": "dynamic"}


def is_legacy(module: Module, call: cst.Call) -> bool:
    """Return whether a call is ``torch._dynamo.optimize(...)`` or its like."""
    return module.qualified(call.func) in _OPTIMIZE | _ASSERTING


def came_with_torch(module: Module, call: cst.Call) -> bool:
    """Return whether what a call runs is part of torch, which has ``torch.compile`` then;
    it once was apart.
    """
    return (module.qualified(call.func) or "").startswith("torch.")


def compiled_instead(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits that put ``torch.compile`` in place of a legacy call,
    and drop an import that nobody needs.

    None where what the call gives is a context manager, or takes what ``torch.compile`` does not.
    """
    own = _one(module, call)
    binding = _import(module, call)
    if own is None or binding is None or binding.imported == "torch":
        return own
    calls = [_legacy_call(module, read) for read in module.uses(binding)]
    everywhere = [_one(module, other) if other is not None else None for other in calls]
    if None in everywhere:
        return own  # the import is still needed
    rewritten = [edit for edits in everywhere for edit in edits or ()]
    spelling = spell(module, "torch.compile", call)
    statement = module.tree.parent(binding.node)
    if spelling is not None and spelling.edits and isinstance(statement, cst.Import):
        if binding.scope is module.names.module_scope and len(statement.names) == 1:
            # The import of torch that is missing takes the place of this one.
            rewritten = [edit for edit in rewritten if edit not in spelling.edits]
            dropped = replace(module, statement, "import torch")
            return (*dropped, *rewritten) if dropped is not None else None
    if statement is not None and _is_needed(module, statement):
        dropped = replace(module, statement, "import torch._dynamo")
    else:
        dropped = remove_import(module, binding.node)
    return (*dropped, *rewritten) if dropped is not None else None


def _is_needed(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether no other import loads ``torch._dynamo``,
    into which the file reaches by the name of torch.
    """
    tree = module.tree
    for other in tree.nodes(cst.Import, cst.ImportFrom):
        if other is not statement and "torch._dynamo" in module.source(other):
            return False
    if not isinstance(statement, (cst.Import, cst.ImportFrom)) or isinstance(statement.names, cst.ImportStar):
        return False
    return len(statement.names) == 1 and any(
        node.attr.value == "_dynamo"
        and module.qualified(node) == "torch._dynamo"
        and tree.enclosing(node, cst.Import, cst.ImportFrom) is None
        for node in tree.nodes(cst.Attribute)
    )


def _import(module: Module, call: cst.Call) -> Binding | None:
    """Return the import that brings the name at the start of what is called."""
    root = start_of(call.func, cst.Attribute)
    bindings = module.bindings(root)
    found = bindings[0] if len(bindings) == 1 else None
    return found if found is not None and found.kind is BindingKind.IMPORT else None


def _legacy_call(module: Module, read: cst.CSTNode) -> cst.Call | None:
    """Return the legacy call whose function is spelt from this name on."""
    while isinstance(above := module.tree.parent(read), cst.Attribute):
        read = above
    return above if isinstance(above, cst.Call) and above.func is read and is_legacy(module, above) else None


def _one(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits of one call, but for its import."""
    spelling = spell(module, "torch.compile", call)
    arguments = _arguments(module, call)
    if spelling is None or arguments is None or _is_context(module, call):
        return None
    if module.qualified(call.func) in _ASSERTING:
        arguments = [*arguments, "fullgraph=True"]
    function = module.tree.parent(call)
    if isinstance(function, cst.Call) and function.func is call:
        # ``optimize(backend)(function)``: the function goes in front of the arguments.
        if len(function.args) != 1 or function.args[0].star or function.args[0].keyword is not None:
            return None
        renamed = replace(module, call, spelling.text)
        keyword, _, value = ", ".join(arguments).partition("=")
        added: Edits | None = ()
        if arguments:
            added = add_argument(module, function, value, keyword=keyword, keyword_only=True)
        return renamed + added + spelling.edits if renamed is not None and added is not None else None
    code = f"{spelling.text}({', '.join(arguments)})"
    if len(module.source(call).splitlines()) == 1:
        whole = replace(module, call, code)
        return whole + spelling.edits if whole is not None else None
    return None


def _arguments(module: Module, call: cst.Call) -> list[str] | None:
    """Return what a call passes, as ``torch.compile`` names it."""
    found: list[str] = []
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else "backend" if not position else ""
        if arg.star or name not in _RENAMED:
            return None
        found.append(f"{_RENAMED[name]}={module.source(arg.value)}")
    return found


def _is_context(module: Module, call: cst.Call) -> bool:
    """Return whether what a call gives is, or may be, entered by ``with``."""
    match module.tree.parent(call):
        case cst.Call(func=func):
            return func is not call
        case cst.Decorator():
            return False
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            binding = module.binding_of(name)
            return binding is None or not all(map(module.tree.is_called, module.uses(binding)))
    return True
