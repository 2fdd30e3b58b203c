"""TL513: what `torch.compile` cannot keep in its graph."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.graphbreaks import Break, Cause, graph_break
from torchlint.semantics.module import Module

_REMEDIES = {
    Cause.STATE: "Keep it in a tensor, or change it outside of what is compiled",
    Cause.NUMBER: "Compute with the tensor itself",
    Cause.DECISION: "Choose with `torch.where`, or decide outside of what is compiled",
    Cause.SHAPE: "Keep the shape, and mask what is left out with `torch.where`",
    Cause.CALL: "Call it outside of what is compiled",
}


@rule(
    "TL513",
    "graph-break-in-compiled-region",
    severity=WARNING,
    fix="none",
    on=(
        cst.Call,
        cst.Subscript,
        cst.If,
        cst.While,
        cst.IfExp,
        cst.CompIf,
        cst.UnaryOperation,
        cst.BooleanOperation,
        cst.Comparison,
        cst.Assign,
        cst.AugAssign,
    ),
    mentions=("torch", "compile|dynamo"),
    lasting=True,
)
def graph_break_in_compiled_region(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds what breaks the graph of a function or module that the file gives to `torch.compile`, and of what
    that calls in the file: tensors that become Python numbers (`.item()`, `float()`, `math.sqrt()`), Python
    decisions by a tensor, sizes that depend on data (`x[mask]`, `nonzero()`, `unique()`), and calls that the
    compiler leaves to Python: `print`, logging, clocks, the `random` module, files, single numbers and some
    functions of NumPy. Counters and lists that change with each call are found as well: they break nothing,
    but the code is compiled again in each call.

    Each of these was tried: `benchmarks/results/breaks.json` has what the compiler said. What it traces is
    not reported, though it may look alike: assertions about tensors, `max(a, b)`, most of NumPy,
    `x[mask] = 0`. Code that asks `torch.compiler.is_compiling()`, functions under
    `torch.compiler.disable`, and what an option such as `capture_scalar_outputs` allows are left alone, and
    calls that only a condition lets through.

    ## Why is this bad?

    The graph ends where it breaks. Python runs what the compiler could not follow, and what comes behind is
    another graph: nothing is fused across the gap, what is needed behind it is written to memory, and each
    piece has its own launch and its own guards. With `fullgraph=True` it is an error. Where a Python number
    or the length of a list changes in each call, the code is compiled until the limit is reached
    (`torch._dynamo.config.recompile_limit`), and runs uncompiled from then on.

    ## Example

    ```python
    @torch.compile
    def step(x, limit):
        norm = x.norm()
        if norm > limit:
            x = x * (limit / norm)
        return F.gelu(x)
    ```

    ## Use instead

    ```python
    @torch.compile
    def step(x, limit):
        norm = x.norm()
        x = torch.where(norm > limit, x * (limit / norm), x)
        return F.gelu(x)
    ```

    Print, log and measure outside of what is compiled. Counters belong into a buffer, which is a tensor.

    ## Fix safety

    There is no fix: what the code does with the number decides what can take its place.

    Where this rule speaks, TL202, TL204, TL205 and TL206 are silent: a broken graph makes the host wait too.

    ## References

    - [torch.compile: working with graph breaks](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.graph_breaks_index.html)
    - [torch.compile: recompilation](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html)
    """
    found = graph_break(module, node)
    if found is None:
        return
    region = found.region
    related = ((region.maker, "compiled here"), *((call, "called here") for call in region.path))
    yield Finding(found.node, _message(module, found), related=related, remedy=_REMEDIES[found.cause])


def _message(module: Module, found: Break) -> str:
    graph = _graph(module, found)
    match found.cause:
        case Cause.STATE:
            text = module.source(found.node)
            return (
                f"`{text}` changes in each call, and {graph} is compiled again for each of its values; "
                "keep it in a tensor, or change it outside of what is compiled"
            )
        case Cause.NUMBER:
            return f"`{_called(module, found.node)}` breaks {graph}: Python needs the number; keep the tensor"
        case Cause.DECISION:
            return f"Python decides by this tensor, which breaks {graph}; choose with `torch.where`"
        case Cause.SHAPE:
            return (
                f"this size depends on the data, which breaks {graph}; keep the shape and mask what is left"
            )
        case Cause.CALL:
            return f"`{_called(module, found.node)}` breaks {graph}: it cannot be traced; call it outside"


def _graph(module: Module, found: Break) -> str:
    entry = found.region.entry
    if not isinstance(entry, cst.FunctionDef):
        return "the graph"
    owner = module.classes.owner(entry)
    name = entry.name.value if owner is None else f"{owner.name.value}.{entry.name.value}"
    return f"the graph of `{name}()`"


def _called(module: Module, node: cst.CSTNode) -> str:
    assert isinstance(node, cst.Call)
    if isinstance(node.func, cst.Attribute) and module.qualified(node.func) is None:
        return f".{node.func.attr.value}()"
    return f"{module.source(node.func)}()"
