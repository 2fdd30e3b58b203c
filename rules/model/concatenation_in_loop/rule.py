"""TL411: a tensor that grows by concatenation in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.flow.graph import StatementLoop
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import frequency
from torchlint.semantics.sources import Path, Through, every, traced
from torchlint.semantics.spellings import last_name, last_words
from torchlint.semantics.values import Device, Kind

from .growth import CONCATENATIONS, Growth, collected, grown

_DATA = frozenset({Kind.TENSOR, Kind.BATCH, Kind.LOADER, Kind.DATASET})


@rule(
    "TL411",
    "concatenation-in-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: last_words(CONCATENATIONS)},
    mentions=("torch", "cat|hstack|vstack|dstack|column_stack|row_stack", "for |while "),
)
def concatenation_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds tensors that a loop extends with `t = torch.cat([t, x])`, in any spelling, in variables, attributes
    and items, itself or through a method that it calls. The rule ignores loops that read the tensor, where a
    list does not help (token-by-token decoding, caches, sliding windows), and loops of a few iterations.

    Findings are of low impact in loops that do not go through data: over modules, over what a caller lists,
    such as prompts, up to a number that a constructor is given, such as heads, and in `while` loops that fill
    a tensor up to a size. Loops over batches, over parts of a tensor and up to a size go through data.
    Findings are also of low impact in loops without a model or other work for the device, if the pieces are
    in host memory or the code is not known to run at every step.

    ## Why is this bad?

    Every iteration copies everything collected so far, so the work grows with the square of the number of
    iterations. Each result is an allocation of a different size, and autograd keeps a node for every copy.

    ## Example

    ```python
    features = torch.empty(0, 512, device=device)
    for images in loader:
        features = torch.cat([features, model(images.to(device))])
    ```

    ## Use instead

    ```python
    features = []
    for images in loader:
        features.append(model(images.to(device)))
    features = torch.cat(features)
    ```

    ## Fix safety

    The fix collects the pieces in a new list and concatenates them after the loop. It is offered where the
    loop neither reads the tensor nor queries its size, where a single function holds it, and where no piece
    is a view of a tensor that is modified. It is unsafe: an exception in the loop leaves the tensor as it was
    before the loop, and pieces whose shapes do not match only fail at the end.

    ## References

    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    """
    growth = grown(module, call)
    if growth is None:
        return
    yield Finding(
        call,
        f"every iteration copies all of `{module.source(growth.target)}` to append to it; "
        f"call `{module.source(call.func)}` once after the loop",
        fix=collected(module, growth),
        remedy=f"Collect the pieces in a list, and call `{module.source(call.func)}` once after the loop",
        related=((growth.loops[0], "it grows in this loop"),),
        slight=_slight(module, growth),
    )


def _slight(module: Module, growth: Growth) -> str | None:
    """Return why there is little to gain, as beside a decoding step, which adds one element to a sequence.

    Nor is there much where no loop goes through data, since what is listed or configured is few, or where the
    loop has no other work for the device.
    """
    if not any(_goes_through_data(module, growth, loop) for loop in growth.loops):
        return "the loop has few iterations"
    often = frequency(module, growth.call)
    if often is Frequency.TOKEN:
        return "little compared with a decoding step"
    idle = all(places.heat(module, loop) is places.Heat.COLD for loop in growth.loops)
    on_host = module.value(growth.call).device is Device.CPU
    return "the loop is not hot" if idle and (on_host or often is not Frequency.STEP) else None


def _goes_through_data(module: Module, growth: Growth, loop: StatementLoop) -> bool:
    """Return whether the data says how many rounds a loop has: batches, parts of a tensor,
    numbers up to a size.
    """
    if isinstance(loop, cst.While):
        return not _fills_up(module, growth, loop)
    if places.over_loader(module, loop):
        return True
    return not places.over_layers(module, loop) and any(
        _counts_data(module, part) or not {value.kind, value.item and value.item.kind}.isdisjoint(_DATA)
        for part in places.iterated(loop.iter)
        for value in (module.value(part),)
    )


def _counts_data(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an iterable counts to what is no setting
    and no length of a list: ``range(1, x.shape[1])``.
    """
    if not isinstance(node, cst.Call) or module.qualified(node.func) != "builtins.range":
        return False
    return not all(
        last_name(arg.value) == "len" or every(_is_configured(module, arg.value)) for arg in node.args
    )


def _fills_up(module: Module, growth: Growth, loop: cst.While) -> bool:
    """Return whether a loop adds as much as is missing, piece by piece: ``while mask.shape[1] < n``."""
    target = module.source(growth.target)
    return any(module.source(part) == target for part in module.tree.descendants(loop.test))


@traced(Through.PARAMETERS | Through.OPERANDS)
def _is_configured(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a number is a constant, or a parameter of a constructor:
    no length and no size of data.
    """
    match node:
        case cst.Integer():
            return True
        case cst.Param():
            function = module.tree.enclosing(node, cst.FunctionDef)
            return True if function is not None and function.name.value == "__init__" else None
        case cst.Call() | cst.Subscript():
            return False
    return None
