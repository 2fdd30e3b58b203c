"""Loops that only collect host copies of tensors, to be joined afterwards: one copy could serve them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import cut_off, replace, spell, unsafe
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

# What joins the list, and the function of torch that does the same to tensors.
_JOINS = {
    "torch.cat": "torch.cat",
    "torch.concat": "torch.concat",
    "torch.concatenate": "torch.concatenate",
    "torch.stack": "torch.stack",
    "torch.vstack": "torch.vstack",
    "torch.hstack": "torch.hstack",
    "numpy.concatenate": "torch.cat",
    "numpy.stack": "torch.stack",
    "numpy.vstack": "torch.vstack",
}
# Methods that give views of a part of a tensor, and those that give views of the whole.
_TAKE_PARTS = frozenset(
    {"chunk", "diagonal", "hsplit", "narrow", "select", "split", "tensor_split", "unbind", "unfold", "vsplit"}
)
_KEEP_MEMORY = frozenset(
    {"T", "contiguous", "data", "detach", "expand", "flatten", "mT", "movedim", "permute", "real", "reshape"}
    | {"squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "view_as"}
)


def collect_on_device(module: Module, copy: cst.Call, tensor: cst.BaseExpression) -> Fix | None:
    """Return the fix that collects ``tensor`` itself and copies the joined result; None for any other loop.

    The copy (with the ``.numpy()`` behind it, if there is one) must be all that goes into a list that starts
    out empty, gets nothing else, and is read by one join after the loop.
    """
    item, as_array = _with_numpy(module, copy)
    collector = _collector(module, item)
    if collector is None:
        return None
    uses = [use for use in module.uses(collector) if not _is_append(module, use, item)]
    if len(uses) != 1:
        return None
    join = module.tree.parent(module.tree.parent(uses[0]) or uses[0])
    if not isinstance(join, cst.Call) or not join.args or join.args[0].value is not uses[0]:
        return None
    name = module.qualified(join.func)
    if name not in _JOINS or name.startswith("numpy.") != as_array or _shares_loop(module, join, item):
        return None
    edits = _joined_on_device(module, join, name, as_array)
    return unsafe(
        module,
        "Copy once after the loop",
        _kept(module, tensor, item),
        edits,
        risk="the results of all iterations are in device memory at once",
    )


def _kept(module: Module, tensor: cst.BaseExpression, item: cst.Call) -> tuple[Edit, ...] | None:
    """Return the edits that collect ``tensor`` for ``item``, with memory of its own."""
    cut = cut_off(module, tensor, item)
    if cut is None or not (changed_later(module, tensor) or some(_takes_part(module, tensor))):
        return cut
    end = module.tree.span(tensor).end
    return (Edit(Span(end, end), ".clone()"), *cut) if module.tree.takes_dot(tensor) else None


@traced(Through.ITEMS)
def _takes_part(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor is seen to be a view of a part of another one,
    all of whose memory it would keep.
    """
    if path and module.value(node).kind is Kind.TENSOR:
        return True  # its rows, one by one
    match node:
        case cst.Subscript():
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(name))) if name in _TAKE_PARTS:
            return True
        case (
            cst.Call(func=cst.Attribute(attr=cst.Name(name), value=owner))
            | cst.Attribute(attr=cst.Name(name), value=owner)
        ) if name in _KEEP_MEMORY and not path:
            return onward(owner)
        case _:
            return None


def _with_numpy(module: Module, copy: cst.Call) -> tuple[cst.Call, bool]:
    call = module.tree.method_call(copy)
    if call is not None and last_name(call.func) == "numpy" and not call.args:
        return call, True
    return copy, False


def _collector(module: Module, item: cst.Call) -> Binding | None:
    """Return the only binding of the list into which ``item`` goes."""
    parent = module.tree.parent(item)
    if isinstance(parent, cst.Arg):
        append = module.tree.parent(parent)
        match append:
            case cst.Call(
                func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value="append")), args=[_]
            ):
                bindings = module.bindings(name)
                return bindings[0] if len(bindings) == 1 and _starts_empty(module, bindings[0]) else None
    if isinstance(parent, cst.ListComp) and parent.elt is item and len(_generators(parent)) == 1:
        match module.tree.parent(parent):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
                return module.binding_of(name)
    return None


def _generators(comprehension: cst.ListComp) -> list[cst.CompFor]:
    found = [comprehension.for_in]
    while found[-1].inner_for_in is not None:
        found.append(found[-1].inner_for_in)
    return found


def _starts_empty(module: Module, binding: Binding) -> bool:
    """Return whether it is ``outs = []`` or one place of ``outs, labels = [], []``."""
    value: cst.BaseExpression | None = binding.value
    for step in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or step is None or step >= len(value.elements):
            return False
        value = value.elements[step].value
    if isinstance(value, cst.List):
        return not value.elements
    return isinstance(value, cst.Call) and not value.args and module.qualified(value.func) == "builtins.list"


def _is_append(module: Module, use: cst.Name, item: cst.Call) -> bool:
    attribute = module.tree.parent(use)
    call = module.tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
    return isinstance(call, cst.Call) and bool(call.args) and call.args[0].value is item


def _shares_loop(module: Module, join: cst.Call, item: cst.Call) -> bool:
    """Return whether the innermost loop that collects also joins."""
    loop = next(iter(module.flow.loops(item)), None)
    return loop is None or module.tree.contains(loop, join)


def _joined_on_device(module: Module, join: cst.Call, name: str, as_array: bool) -> tuple[Edit, ...] | None:
    end = module.tree.span(join).end
    if not as_array:
        return (Edit(Span(end, end), ".cpu()"),)
    spelling = spell(module, _JOINS[name], join)
    renamed = replace(module, join.func, spelling.text) if spelling is not None else None
    if spelling is None or renamed is None:
        return None
    edits = (
        *renamed,
        *spelling.edits,
        Edit(Span(end, end), ".cpu().numpy()"),
    )
    for arg in join.args[1:]:
        keyword = arg.keyword
        if keyword is None:
            continue
        if keyword.value != "axis" or name == "numpy.vstack":
            return None
        edits = (*edits, *(replace(module, keyword, "dim") or ()))
    return edits
