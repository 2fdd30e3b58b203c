"""Where numbers go that are read from the device: to files, plots and environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import DRAWING_LIBRARIES, WRITERS
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.spellings import last_name, word_of
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def _environment(name: str | None) -> bool:
    """Return whether something of this name is a simulation in which an agent acts."""
    return has(name, Role.ENVIRONMENT) or ends(name, Role.WORLD)


def steps_environment(module: Module, call: cst.Call) -> bool:
    """Return whether ``call`` hands an action, or something to show, to an environment: ``env.step(…)``."""
    if not isinstance(call.func, cst.Attribute):
        return False
    owner = call.func.value
    name = word_of(owner)
    steps = call.func.attr.value in ("step", "step_async", "act") and _environment(name)
    if not steps and not ends(name, Role.ENVIRONMENT):
        return False
    # What an object is takes longer to find out than what it is called.
    return module.value(owner).kind not in (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER, Kind.MODULE)


def streams(module: Module, call: cst.Call) -> bool:
    """Return whether ``call`` gives tokens to what hands them on at once: ``streamer.put(tokens)``."""
    if not isinstance(call.func, cst.Attribute) or not ends(word_of(call.func.value), Role.STREAMER):
        return False
    return module.value(call.func.value).kind is not Kind.MODULE


WRITING = (Role.SAVING, Role.DRAWING, Role.EXPORT)


def writes_out(module: Module, call: cst.Call) -> bool:
    """Return whether ``call`` saves, plots or writes what it is given.

    What goes on with a picture computes it: ``colors = model.render_rays(origins)``.
    """
    name = last_name(call.func) or ""
    if begins(name, Role.RENDERING) and not isinstance(module.tree.parent(call), cst.Expr):
        return False
    if name == "scatter":
        return _draws_points(module, call)
    return name in WRITERS or begins(name, *WRITING) or _writes_to_resource(module, call)


def _draws_points(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``plt.scatter(x, y)``, ``ax.scatter(x, y)``,
    but not ``torch_scatter.scatter`` and ``x.scatter(…)``.
    """
    qualified = module.qualified(call.func)
    if qualified is not None:
        return qualified.partition(".")[0] in DRAWING_LIBRARIES
    return isinstance(call.func, cst.Attribute) and not module.value(call.func.value).tensorlike


def _writes_to_resource(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``out = ArrayFile("x.npy")``, ``out.append(x)``: what is opened by a path, or
    entered, is no list.
    """
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return False
    if call.func.attr.value not in ("append", "add", "add_item", "put", "push", "store", "extend"):
        return False
    if ends(call.func.value.value, Role.FILE) and not module.value(call.func.value).known:
        return True
    bindings = module.bindings(call.func.value)
    return bool(bindings) and all(
        binding.value is not None
        and not module.value(binding.value).known
        and (binding.kind is BindingKind.WITH or _opened(module, binding.value))
        for binding in bindings
    )


def _opened(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a class of a library is made of text."""
    if not isinstance(node, cst.Call) or not node.args or module.qualified(node.func) is None:
        return False
    return (last_name(node.func) or "")[:1].isupper() and _is_path(module, node.args[0].value)


def _is_path(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _is_path(module, node.left) or _is_path(module, node.right)
    if isinstance(node, cst.Call) and last_name(node.func) in ("join", "Path"):
        return True
    return module.value(node).kind is Kind.STRING
