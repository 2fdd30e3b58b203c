"""How long the sequences of a batch are made: as long as the longest of them, or as somebody has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.identifiers import identifiers, named, speaks_of
from torchlint.semantics.lexicon import Role, ends, has, names_tokenizer
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_COLLATORS = frozenset(
    f"transformers.{name}"
    for name in (
        "DataCollatorForSeq2Seq",
        "DataCollatorForTokenClassification",
        "DataCollatorWithPadding",
    )
)
_FILLING = frozenset({"zeros", "ones", "full", "empty", "pad", "new_zeros", "new_full", "zeros_like"})
_FIXED = frozenset({"pad_to_multiple_of", "pad_to_multiple"})


def spares_fragments(module: Module) -> bool:
    """Return whether the file sorts by length, pads to few lengths,
    or configures the allocator for such batches.
    """
    if module.tree.mentions("expandable_segments") or not _FIXED.isdisjoint(identifiers(module)):
        return True
    if speaks_of(module, Role.LENGTH_GROUPING, Role.EMPTYING):
        return True
    return any(_sorts_by_length(module, call) for call in module.tree.nodes(cst.Call))


def _sorts_by_length(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``sorted(texts, key=len)``, ``items.sort(key=lambda item: len(item["ids"]))``."""
    if last_name(call.func) not in ("sort", "sorted", "argsort"):
        return False
    return any(has(name, Role.LENGTH) for arg in call.args for name in named(module, arg.value))


def pads_to_longest(module: Module, collate: cst.BaseExpression) -> cst.CSTNode | None:
    """Return where a collate function pads the items of a batch to the longest of them;
    None if it may not.
    """
    made = module.value(collate)
    definition = made.definition
    if isinstance(definition, cst.ClassDef) and made.kind is not Kind.CLASS:
        definition = module.classes.info(definition).method("__call__")
    if isinstance(definition, (cst.FunctionDef, cst.Lambda)):
        return _pads(module, definition)
    for call in _makers(module, collate):
        if module.qualified(call.func) in _COLLATORS and _dynamic(module, call):
            return call
    return None


def _makers(module: Module, node: cst.BaseExpression) -> list[cst.Call]:
    """Return the calls that make what an expression stands for."""
    if isinstance(node, cst.Name):
        bound = [binding.value for binding in module.bindings(node) if not binding.path]
        return [value for value in bound if isinstance(value, cst.Call)]
    return [node] if isinstance(node, cst.Call) else []


@solved(None)
def _pads(module: Module, function: cst.FunctionDef | cst.Lambda) -> cst.CSTNode | None:
    """Return where a function pads to the longest, itself or in another function of the file."""
    calls = [node for node in module.tree.descendants(function.body) if isinstance(node, cst.Call)]
    if any(_lengths_are_few(module, call) for call in calls) or _rounds(module, function):
        return None
    for call in calls:
        if module.qualified(call.func) == "torch.nn.utils.rnn.pad_sequence" or _tokenizes(module, call):
            return call
        callee = module.callee(call)
        inner = _pads(module, callee) if isinstance(callee, cst.FunctionDef) else None
        if inner is not None:
            return call
    longest = next((call for call in calls if _is_longest(call)), None)
    fills = any(last_name(call.func) in _FILLING for call in calls)
    return longest if fills else None


def _rounds(module: Module, function: cst.FunctionDef | cst.Lambda) -> bool:
    """Return whether a function computes multiples: ``-length % 64``, ``(length + 63) // 64 * 64``."""
    return any(
        isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Modulo, cst.FloorDivide))
        for node in module.tree.descendants(function.body)
    )


def _lengths_are_few(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``padding="max_length"``, ``pad_to_multiple_of=8``,
    ``math.ceil(longest / 64) * 64``.
    """
    if module.qualified(call.func) == "math.ceil":
        return True
    return any(_keyword(arg) in _FIXED or _pads_to(module, arg, "max_length") for arg in call.args)


def _tokenizes(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``tokenizer(texts, padding=True)`` and ``tokenizer.pad(batch)``."""
    if any(_pads_to(module, arg, True) or _pads_to(module, arg, "longest") for arg in call.args):
        return True
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    tokenizer = owner is not None and names_tokenizer(last_name(owner))
    return (
        tokenizer and last_name(call.func) == "pad" and not any(_keyword(a) == "padding" for a in call.args)
    )


def _dynamic(module: Module, call: cst.Call) -> bool:
    """Return whether a collator of transformers is left to pad to the longest,
    as it does unless told otherwise.
    """
    if any(argument.star for argument in call.args) or _lengths_are_few(module, call):
        return False
    return not any(_keyword(arg) == "padding" and not _pads_to(module, arg, True) for arg in call.args)


def _keyword(argument: cst.Arg) -> str | None:
    return argument.keyword.value if argument.keyword is not None else None


def _pads_to(module: Module, argument: cst.Arg, how: object) -> bool:
    return _keyword(argument) == "padding" and module.value(argument.value).constant == how


def _is_longest(call: cst.Call) -> bool:
    """Return whether it is ``max(len(x) for x in batch)``, ``max(lengths)``."""
    if not isinstance(call.func, cst.Name) or call.func.value != "max" or len(call.args) != 1:
        return False
    match call.args[0].value:
        case cst.GeneratorExp(elt=measured) | cst.ListComp(elt=measured):
            names = (measured.func,) if isinstance(measured, cst.Call) else (measured,)
            if isinstance(measured, cst.Subscript):
                names = (measured.value,)
            return any(last_name(name) in ("len", "size", "shape") for name in names)
        case cst.Name(value=name):
            return ends(name, Role.LENGTH)
        case _:
            return False
