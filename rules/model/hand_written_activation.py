"""TL404: activation functions computed step by step that torch has as one function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, remove_statement, replace, spell
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.api.frameworks import SCRIPTERS
from torchlint.semantics.compilation import compiled
from torchlint.semantics.constancy import same_later
from torchlint.semantics.flow.graph import FUNCTIONS, Function
from torchlint.semantics.formulas import CURVES, Activation, Formula, activation, argument
from torchlint.semantics.layers import runs_layer
from torchlint.semantics.module import Module
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Through, some, traced

from .elements import HOOKED, complex_numbers, observed, whole
from .fallbacks import known_to_author
from .formulas import one_line, removable

_TITLES = {
    Formula.GELU: "GELU",
    Formula.TANH_GELU: "tanh GELU",
    Formula.QUICK_GELU: "quick GELU",
    Formula.SILU: "SiLU",
    Formula.HARD_SWISH: "hard swish",
    Formula.MISH: "Mish",
}


@rule(
    "TL404",
    "hand-written-activation",
    severity=WARNING,
    fix="safe",
    on=(cst.BinaryOperation, cst.Call),
    named={cst.Call: ("mul", "mul_", "multiply", "multiply_", "div", "div_")},
    mentions=("torch", "sigmoid|Sigmoid|erf|tanh|Tanh|relu6|ReLU6|clamp|clip|softplus|Softplus"),
)
def hand_written_activation(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds hand-written GELU (with `erf` or `tanh`), SiLU (`x * sigmoid(x)`), hard swish and Mish, with the
    factors in any order and with or without names for intermediate results. The quick GELU
    (`x * sigmoid(1.702 * x)`), which has no fused function in torch, gets a note unless it is compiled. The
    rule ignores whole numbers, which the function does not take, and items of a dataset, such as labels,
    which may be whole numbers. It also ignores fallbacks for older releases (in `except ImportError`, or
    behind `hasattr`), code that documents that it avoids the function, and functions compiled with
    `torch.jit.script`, which fuses the operations.

    ## Why is this bad?

    Every operation is a kernel that reads and writes a whole tensor, and autograd saves the intermediate
    results for the backward pass. The function of torch is one kernel in each direction, and saves only its
    input.

    ## Example

    ```python
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
    ```

    ## Use instead

    ```python
    return F.gelu(x)
    ```

    ## Fix safety

    The formulas are equivalent, and the fix is safe. It is unsafe where a constant has fewer digits than
    float32, in files with complex numbers, which the function may not take, where the program traces the
    functions that it calls or replaces them, and where one of the operations is a layer, such as
    `self.sigmoid(x)`: hooks on it, which other files may register, are no longer called. The fix is only
    offered if every release that may run the program has the function (`mish` since 1.9,
    `approximate="tanh"` since 1.12), and where the operations have no comments.

    ## References

    - [PyTorch performance tuning guide: fuse operations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.nn.functional.gelu](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html)
    """
    if isinstance(node, cst.BinaryOperation):
        if not isinstance(node.operator, (cst.Multiply, cst.Divide)):
            return
    else:
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if not isinstance(name, cst.Name) or name.value.rstrip("_") not in ("mul", "multiply", "div"):
            return
    found = activation(module, node)
    if found is None or ReleaseChecks.of(module).over(node) or _differentiates(module, node):
        return
    if scripted(module, node) or whole(module, found.x):
        return
    title = _TITLES[found.formula]
    if found.function is None:
        if compiled(module, node):
            return
        spelling = spell(module, "torch.compile", node)
        yield Finding(
            node,
            f"hand-written {title} launches a kernel per operation; `torch.compile` fuses them into one",
            severity=NOTE,
            remedy=f"Compile it with `{spelling.text if spelling is not None else 'torch.compile'}`",
        )
        return
    function = found.function.rpartition(".")[2]
    if not module.target.admits(found.since):
        return
    if known_to_author(module, node, function):
        return
    slight = None
    if module.target.promises_below(found.since):
        # They would have to be given up.
        slight = "releases without the function are supported"
    elif _of_function(module, node) is not None:
        # Who differentiates it by hand would have to give up the whole class.
        slight = "part of a `torch.autograd.Function`"
    yield Finding(
        node,
        f"hand-written {title} launches a kernel and stores a result per operation; use `F.{function}`",
        fix=_fix(module, node, found),
        remedy=f"Replace these operations with `{function}(…{found.options and ', '}{found.options})`",
        slight=slight,
    )


def _differentiates(module: Module, node: cst.CSTNode) -> bool:
    """Return whether this is part of a derivative: `x * sigmoid(x)` activates nothing there."""
    method = _of_function(module, node)
    return method is not None and method.name.value == "backward"


def _of_function(module: Module, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the method of a ``torch.autograd.Function`` that a node belongs to."""
    method = module.function(node)
    owner = module.classes.owner(method) if isinstance(method, cst.FunctionDef) else None
    if owner is None or not module.classes.info(owner).inherits("torch.autograd.Function"):
        return None
    return method if isinstance(method, cst.FunctionDef) else None


def _fix(module: Module, node: cst.BaseExpression, found: Activation) -> Fix | None:
    assert found.function is not None
    gone = [removable(module, name) for name in found.names]
    code = argument(module, found.x)
    spelling = spell(module, found.function, node)
    if spelling is None or None in gone or not one_line(code):
        return None
    statements = list(dict.fromkeys(statement for statement in gone if statement is not None))
    if not same_later(module, found.x, node, statements):
        return None
    if found.since != "1.7" and not module.target.at_least(found.since):
        return None
    arguments = ", ".join(part for part in (code, found.options) if part)
    risk = None
    if not found.exact:
        risk = "a constant here has fewer digits than the one of the function"
    elif complex_numbers(module):
        risk = "the function may not take complex numbers"
    elif runs_layer(module, (node, *statements), code) or observed(module, *CURVES):
        risk = HOOKED
    return graded(
        module,
        f"Use `{spelling.text}`",
        replace(module, node, f"{spelling.text}({arguments})"),
        spelling.edits,
        *(remove_statement(module, statement) for statement in statements),
        risk=risk,
    )


def scripted(module: Module, node: cst.CSTNode) -> bool:
    """Return whether TorchScript compiles the function that a node is in,
    and with it fuses its pointwise steps.
    """
    if not module.tree.mentions("script"):
        return False
    function, seen = module.function(node), set[Function]()
    waiting = [function] if function is not None else []
    while waiting:
        current = waiting.pop()
        if current in _given_to_scripting(module):
            return True
        seen.add(current)
        callers = (module.function(call) for call in module.callers(current))
        waiting += [outer for outer in callers if outer is not None and outer not in seen]
    return False


@remembered
def _given_to_scripting(module: Module) -> frozenset[Function]:
    """Return the functions that a decorator or a call of the file has scripted,
    and the methods of such classes.
    """
    found: list[cst.CSTNode | None] = []
    for decorator in module.tree.nodes(cst.Decorator):
        if some(_is_scripter(module, decorator.decorator)):
            found.append(module.tree.parent(decorator))
    for call in module.tree.nodes(cst.Call):
        if call.args and module.qualified(call.func) in SCRIPTERS:
            found.append(module.value(call.args[0].value).definition)
    methods = (
        method
        for holder in found
        if isinstance(holder, cst.ClassDef)
        for method in module.classes.info(holder).methods.values()
    )
    return frozenset(holder for holder in (*found, *methods) if isinstance(holder, FUNCTIONS))


@traced(Through.NOTHING)
def _is_scripter(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a name is ``torch.jit.script``, in some branch at least: ``fuse = torch.jit.script``."""
    name = module.qualified(node) if not path else None
    return name in SCRIPTERS if name is not None else None
