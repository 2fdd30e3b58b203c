"""Words for the edits that spare a wait: what a rule advises where it cannot make the edit itself.

Each is a part of a sentence, or a whole one without a full stop, with code in backticks that names the
reader's own variables where they are short.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.names import BindingKind
from torchlint.semantics.places import Cause
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import written_arguments
from torchlint.semantics.values import Graph

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_LONG, _SHORT = 60, 28
_NO_COUNTERS = frozenset({BindingKind.CLASS, BindingKind.FUNCTION, BindingKind.IMPORT})
_TORCH = re.compile(r"(?<![\w.])torch\.(?=\w)")


def inline(module: Module, node: cst.CSTNode) -> str:
    """Return the source of ``node`` on one line; "…" if it is long, or has a comment or a backtick in it."""
    code = " ".join(module.source(node).split())
    return "…" if len(code) > _LONG or "#" in code or "`" in code else code


def tight(module: Module, node: cst.BaseExpression) -> str:
    """Return what ``inline`` does, in parentheses where something binds looser than the dot that follows."""
    code = inline(module, node)
    binds = module.tree.takes_dot(node)
    return code if binds or code == "…" else f"({code})"


def called(module: Module, call: cst.Call) -> str:
    """Return a call as the subject of a message: ``loss.item()``; ``.item()`` if that is long."""
    code = inline(module, call)
    return step_of(module, call) if code == "…" or len(code) > _SHORT else code


def callee(module: Module, call: cst.Call) -> str:
    """Return the function of a call as the subject of a message: ``torch.equal``;
    its last name if that is long.
    """
    code = inline(module, call.func)
    return last_name(call.func) or code if code == "…" or len(code) > _SHORT else code


def step_of(module: Module, call: cst.Call) -> str:
    """Return a call without what it is a method of: ``.cpu()``, ``.to("cpu")``;
    ``np.asarray(…)`` for a function.
    """
    if not isinstance(call.func, cst.Attribute) or module.qualified(call.func) is not None:
        return f"{inline(module, call.func)}(…)"
    words = [f"{arg.keyword.value}=" if arg.keyword is not None else arg.star for arg in call.args]
    given = [word + inline(module, arg.value) for word, arg in zip(words, call.args, strict=True)]
    return f".{call.func.attr.value}({', '.join(given)})"


def steps_to_host(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> str:
    """Return the steps that bring ``tensor`` to the host by way of ``call``:
    ``.cpu().item()``, ``.cpu().numpy()``.

    That is what goes with the step if the tensor stays on the device: without a copy no array can be made.
    """
    if not isinstance(call.func, cst.Attribute) or module.qualified(call.func) is not None:
        return step_of(module, call)
    last = call
    while (following := module.tree.method_call(last)) is not None:
        last = following
        if isinstance(last.func, cst.Attribute) and last.func.attr.value == "numpy":
            call = last
    before, code = inline(module, tensor), inline(module, call)
    steps = code.removeprefix(before)
    return steps if code != "…" and steps.startswith(".") and steps != code else step_of(module, call)


def packs_sequences(module: Module, receiver: cst.Call) -> bool:
    """Return whether a call packs padded sequences, which takes their lengths from host memory alone."""
    return module.qualified(receiver.func) == "torch.nn.utils.rnn.pack_padded_sequence"


LENGTHS_FOR_PACKING = "Keep a copy of the lengths in host memory, and pass it to `pack_padded_sequence(…)`"
"""What to do with a copy of lengths that ``packs_sequences`` gets."""


FROM_HOST = "Use the tensor that the host has sent: keep it under another name when it is moved"
"""What to do with a value that the same function has sent to the device."""


READ_TOGETHER = "read it together with other values, in a single copy"
COPIED_TOGETHER = "copy it together with other results, with one `.cpu()`"
WITH_OTHERS = READ_TOGETHER.capitalize()
"""What to do with a value that the host needs at once."""
DECIDED_ON_HOST = "Decide by a value in host memory, or move the decision off the hot path"
SAME_MASK = "Compute the indices once if the mask stays the same, or give excluded elements zero weight"
SAME_INPUT = "Compute it once if its input stays the same"
"""What is told for want of anything that could take the place of a wait."""


def is_makeshift(remedy: str) -> bool:
    """Return whether a remedy does not say what takes the place of a wait, only where else it could be."""
    general = remedy in (DECIDED_ON_HOST, SAME_INPUT, SAME_MASK)
    return general or remedy.endswith((COPIED_TOGETHER, READ_TOGETHER, WITH_OTHERS))


def as_spelt(module: Module, at: cst.CSTNode, advice: str) -> str:
    """Return ``advice`` with ``torch`` under the name that the file has for it: "`th.stack(…)`"."""
    spelling = module.names.spelling("torch.where", at)
    if spelling is None or not spelling.endswith(".where"):
        return advice
    return _TORCH.sub(spelling.removesuffix("where"), advice)


def now_and_then(module: Module, hot: Hot) -> str:
    """Return when to do what waits: "when `i % 100 == 0`", by the loop's own counter."""
    return f"when `{counter_of(module, hot)} % 100 == 0`"


def counter_of(module: Module, hot: Hot) -> str:
    """Return the variable that counts the rounds of a hot loop; ``step`` where none does,
    if the name is free.
    """
    match hot.loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            return name
        case cst.FunctionDef(params=cst.Parameters(params=[_, _, cst.Param(name=cst.Name(name)), *_])) if (
            hot.reason.cause is Cause.LIGHTNING
        ):
            return name
        case cst.For(target=cst.Name(value=name), iter=cst.Call(func=cst.Name(value="range"))) if name != "_":
            return name
    scope = module.names.lookup("step", hot.loop)
    bound = scope.bindings["step"] if scope is not None else []
    return "round_number" if any(binding.kind in _NO_COUNTERS for binding in bound) else "step"


def has_no_graph(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether a tensor can be kept as it is: it is spelt as detached,
    or made while autograd is off.
    """
    match tensor:
        case (
            cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")))
            | cst.Attribute(attr=cst.Name(value="data"))
        ):
            return True
    return module.value(tensor).graph is Graph.DETACHED


def without_graph(module: Module, tensor: cst.BaseExpression, *, copied: bool = False) -> str:
    """Return what keeps a tensor without its graph, "`loss.detach()`";
    a copy if the tensor is written to later.
    """
    code = tight(module, tensor)
    bare = has_no_graph(module, tensor)
    if code == "…":
        steps = ("" if bare else ".detach()") + (".clone()" if copied else "")
        kind = "the tensor" if bare else "the detached tensor"
        return f"{kind} (`{steps}`)" if steps else kind
    if not bare:
        code += ".detach()"
    return f"`{code}.clone()`" if copied else f"`{code}`"


def runs_as_function(hot: Hot) -> bool:
    """Return whether a place is hot because its function is called at every step,
    by code that is not seen.
    """
    return isinstance(hot.loop, FUNCTIONS)


def counts_rounds(hot: Hot) -> bool:
    """Return whether the code around a hot place can tell its rounds apart: a loop,
    or a step that Lightning numbers.
    """
    return not runs_as_function(hot) or hot.reason.cause is Cause.LIGHTNING


def in_forward(hot: Hot) -> bool:
    """Return whether a place is hot because it belongs to a forward pass."""
    return isinstance(hot.loop, cst.FunctionDef) and hot.loop.name.value == "forward"


def shown(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a value is made in the text or chart that its own statement writes out for people."""
    for outer in module.tree.ancestors(node):
        match outer:
            case cst.FormattedString():
                return True
            case cst.BinaryOperation(operator=cst.Modulo(), left=cst.SimpleString()):
                return True
            case cst.Call():
                if any(_holds(module, part, node) for part in written_arguments(module, outer)):
                    return True
            case cst.BaseSmallStatement() | cst.BaseStatement():
                return False
    return False


def decides(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a value is part of the condition of a statement or of a ternary."""
    return isinstance(module.flow.condition(node), (cst.If, cst.While, cst.IfExp, cst.Assert))


def _holds(module: Module, part: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    return part is node or any(outer is part for outer in module.tree.ancestors(node))
