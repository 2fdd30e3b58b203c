"""TL216 synchronization-in-graph-capture."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.compilation import Capture
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.synchronisation import (
    asking_function,
    conversion,
    explicit_wait,
    host_copy,
    only_on_failure,
    shape_wait,
    truth_tests,
    written_out,
)
from torchlint.semantics.values import Kind, Memory

from .data import sent_data
from .indices import host_index, listed_indices, stored_tensor
from .remedies import inline
from .scalars import sent_scalar
from .sending import copied_from_host, goes_on
from .stores import stored_number


@rule(
    "TL216",
    "synchronization-in-graph-capture",
    severity=ERROR,
    fix="none",
    measured=False,
    on=(
        *(cst.Call, cst.Subscript, cst.If, cst.While, cst.IfExp, cst.CompIf, cst.Assert, cst.FormattedString),
        *(cst.UnaryOperation, cst.BooleanOperation, cst.Comparison),
    ),
    mentions=("torch", "cuda.graph|make_graphed_callables"),
    remedy="Move it out of the captured code",
)
def synchronization_in_graph_capture(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds code that cannot be captured in a CUDA graph: in `with torch.cuda.graph(…)` blocks, in functions and
    modules that `torch.cuda.make_graphed_callables` is given, and in what these call. That is what
    synchronizes with the device (`.item()`, `.cpu()`, `print(tensor)`, branches on tensors, data-dependent
    shapes, `synchronize()`), and what copies from pageable memory: `torch.tensor(…, device=…)`,
    `.to(device)`, indices in host memory, and numbers that are stored in single elements.

    The rule ignores copies from pinned memory with `non_blocking=True`, code below a condition, and functions
    that check `torch.cuda.is_current_stream_capturing()`. In code that `torch.compile` compiles, with
    `mode="reduce-overhead"` too, such operations break the graph instead, which TL513 reports.

    ## Why is this bad?

    While a stream is captured, kernels are recorded and none runs. The host cannot wait for a result, and
    memory that is not pinned cannot be copied from: PyTorch raises an error ("operation not permitted when
    stream is capturing", "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU
    tensor is pinned"). All of these forms were tried (H100, torch 2.11).

    ## Example

    ```python
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        lengths = torch.tensor(sizes, device="cuda")
        logits = model(tokens, lengths)
        best = logits.max().item()
    ```

    ## Use instead

    ```python
    lengths = torch.zeros(len(sizes), dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = model(tokens, lengths)
        best = logits.max()

    lengths.copy_(torch.tensor(sizes))
    graph.replay()
    print(best.item())
    ```

    ## Fix safety

    There is no fix: what replaces the operation depends on where its inputs come from.

    ## References

    - [CUDA semantics: CUDA graphs, constraints](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs)
    - [torch.cuda.make_graphed_callables](https://docs.pytorch.org/docs/stable/generated/torch.cuda.make_graphed_callables.html)
    """
    if not accelerated(module) or only_on_failure(module, node):
        return
    region = Capture.of(module).region(node)
    if region is None:
        return
    for place, what, remedy in _broken(module, node):
        message = f"{what}, which fails during CUDA graph capture"
        related = ((region.maker, "captured here"), *((call, "called here") for call in region.path))
        yield Finding(place, message, related=related, remedy=remedy)


_READ_LATER = "Keep the result in a tensor, and read it after `replay()`"
_COPY_BEFORE = "Create the tensor before the capture, and copy new data to it before `replay()`"


def _broken(module: Module, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, str, str]]:
    """Yield what of evaluating ``node`` itself cannot be captured: the place, a clause, and what to do."""
    if isinstance(node, cst.Call) and (found := _broken_call(module, node)) is not None:
        yield node, *found
    elif isinstance(node, (cst.Call, cst.Subscript)) and _depends_on_data(module, node):
        remedy = "Keep the shape fixed, and mask elements with `torch.where`"
        yield node, "this data-dependent shape synchronizes with the device", remedy
    elif isinstance(node, cst.Subscript):
        yield from _broken_index(module, node)
    elif isinstance(node, cst.FormattedString):
        if written_out(module, node) is not None:
            yield node, "formatting this tensor synchronizes with the device", _READ_LATER
    elif not isinstance(node, cst.Call):
        remedy = "Use `torch.where`, or decide outside the captured code"
        for tensor in truth_tests(module, node):
            yield tensor, "branching on this tensor synchronizes with the device", remedy


def _depends_on_data(module: Module, node: cst.Call | cst.Subscript) -> bool:
    """Return whether a shape depends on data; what is filled through a mask, `x[mask] = 0`, has none."""
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    if isinstance(statement, cst.Assign) and module.value(statement.value).kind is not Kind.TENSOR:
        return False
    return shape_wait(module, node)


def _broken_call(module: Module, call: cst.Call) -> tuple[str, str] | None:
    if explicit_wait(module, call):
        return f"`{module.source(call.func)}()` blocks the host", "Synchronize after the captured code"
    if conversion(module, call) is not None or host_copy(module, call) is not None:
        return f"`{_called(module, call)}` synchronizes with the device", _READ_LATER
    if written_out(module, call) is not None:
        return f"`{_called(module, call)}` synchronizes with the device", _READ_LATER
    if asking_function(module, call) is not None:
        return (
            f"`{_called(module, call)}` synchronizes with the device",
            "Use `torch.maximum` or `torch.where`",
        )
    scalar = sent_scalar(module, call)
    if scalar is not None:
        number = inline(module, scalar.number)
        remedy = f"Fill on the device: `torch.full({scalar.size}, {number}, device=…)`"
        return f"`{_called(module, call)}` copies from pageable memory", remedy
    if sent_data(module, call) is not None:
        return f"`{_called(module, call)}` copies from pageable memory", _COPY_BEFORE
    source = copied_from_host(module, call)
    memory = Memory.UNKNOWN if source is None else module.value(source).memory
    if source is None or memory is Memory.EITHER:
        return None
    if memory is not Memory.PINNED:
        return "this host-to-device copy is from pageable memory", _COPY_BEFORE
    if goes_on(module, call):
        return None
    return "this copy blocks the host", "Copy with `non_blocking=True`"


def _called(module: Module, call: cst.Call) -> str:
    """Return the call in short: `.item()` of whatever, `torch.tensor()`."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return f".{call.func.attr.value}()"
    return f"{module.source(call.func)}()"


def _broken_index(module: Module, node: cst.Subscript) -> Iterator[tuple[cst.CSTNode, str, str]]:
    store = stored_number(module, node)
    if store is not None:
        remedy = "Fill on the device with `fill_` or `index_fill_`"
        yield store.number, "storing this number copies it from pageable memory", remedy
        return
    stored = stored_tensor(module, node)
    if stored is not None:
        yield stored, "this host-to-device copy is from pageable memory", _COPY_BEFORE
        return
    listed = listed_indices(module, node)
    index = listed if listed is not None else host_index(module, node)
    if index is not None:
        yield (
            index,
            "this index is copied from pageable memory",
            "Create the index on the device before the capture",
        )
