"""TL513: what `torch.compile` cannot keep in its graph."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import SIZED_BEFOREHAND
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.graphbreaks import Break, Cause, graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.usage import feeds_host_engine

_REMEDIES = {
    Cause.STATE: "Keep it in a tensor, or change it outside the compiled code",
    Cause.NUMBER: "Compute with the tensor itself, or get the number outside the compiled code",
    Cause.DECISION: "Use `torch.where`, or branch outside the compiled code",
    Cause.SHAPE: "Keep the shape fixed, and mask elements with `torch.where`",
    Cause.CALL: "Call it outside the compiled code",
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

    Finds code that breaks the graph of a function or module that the file passes to `torch.compile`, or of a
    function in the file that it calls: tensors converted to Python numbers (`.item()`, `float()`,
    `math.sqrt()`), branches on tensor values, data-dependent shapes (`x[mask]`, `nonzero()`, `unique()`), and
    calls that the compiler leaves to Python: `print`, logging, timers, the `random` module, files, and some
    functions and scalars of NumPy. Counters and lists that change in every call are found as well: they do
    not break the graph, but each call recompiles the code.

    Each of these constructs was tested: `benchmarks/results/breaks.json` records the compiler's answer. What
    the compiler can trace is not reported, even if it looks similar: assertions on tensors, `max(a, b)`, most
    of NumPy, `x[mask] = 0`. The rule also ignores code that checks `torch.compiler.is_compiling()`, functions
    under `torch.compiler.disable`, constructs that an option such as `capture_scalar_outputs` allows, and
    calls that only run under a condition.

    ## Why is this bad?

    The graph ends at the break, Python runs the unsupported code, and a new graph starts after it. Nothing is
    fused across the break, values needed after it are written to memory, and each graph has its own launch
    and guards. With `fullgraph=True` a break is an error. If a Python number or the length of a list changes
    in every call, the code is recompiled until it reaches the limit (`torch._dynamo.config.recompile_limit`),
    and runs uncompiled from then on.

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

    Print, log and measure outside the compiled code. Store counters in a buffer, which is a tensor.

    ## Fix safety

    There is no fix: the replacement depends on what the code does with the value.

    Where this rule reports a place, TL202, TL204, TL205 and TL206 do not: a graph break synchronizes with the
    device too.

    ## References

    - [torch.compile: working with graph breaks](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.graph_breaks_index.html)
    - [torch.compile: recompilation](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html)
    """
    found = graph_break(module, node)
    if found is None:
        return
    region = found.region
    related = ((region.maker, "compiled here"), *((call, "called here") for call in region.path))
    remedy, slight = _REMEDIES[found.cause], None
    if found.cause is Cause.SHAPE and isinstance(found.node, cst.Call):
        remedy = SIZED_BEFOREHAND.get(last_name(found.node.func) or "", remedy)
    function = module.function(node)
    if isinstance(function, cst.FunctionDef) and region.path and _works_on_host(module, function):
        remedy = f"Call `{function.name.value}()` outside of the compiled code"
        slight = "the function works on the host"
    yield Finding(found.node, _message(module, found), related=related, remedy=remedy, slight=slight)


@remembered
def _works_on_host(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function calls libraries that compute on the host:
    its graph would break in any case.
    """
    calls = module.tree.nodes_within(function, cst.Call)
    return any(feeds_host_engine(module, call) for call in calls)


def _message(module: Module, found: Break) -> str:
    graph = _graph(module, found)
    match found.cause:
        case Cause.STATE:
            text = module.source(found.node)
            return f"`{text}` changes in every call, recompiling {graph}; keep it in a tensor"
        case Cause.NUMBER:
            return f"`{_called(module, found.node)}` breaks {graph} to return a Python number; use the tensor"
        case Cause.DECISION:
            return f"branching on the value of this tensor breaks {graph}; use `torch.where`"
        case Cause.SHAPE if isinstance(found.node, cst.Call):
            return f"`{_called(module, found.node)}` returns a data-dependent shape and breaks {graph}"
        case Cause.SHAPE:
            return f"this data-dependent shape breaks {graph}; mask with `torch.where`"
        case Cause.CALL:
            return f"`{_called(module, found.node)}` cannot be traced and breaks {graph}; call it outside"


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
