"""TL511: a chain of pointwise operations that a compiler would make one kernel of."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import add_decorator, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.compilation import compiled
from torchlint.semantics.contexts import is_test
from torchlint.semantics.formulas import activation, normalization
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase

from .chains import pointwise_operations

_CHAIN = 4
"""So many operations behind each other make a chain."""


@rule(
    "TL511",
    "pointwise-chain-uncompiled",
    severity=NOTE,
    fix="unsafe",
    on=cst.FunctionDef,
    mentions=("torch",),
    opt_in=True,
)
def pointwise_chain_uncompiled(function: cst.FunctionDef, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds functions that run four or more pointwise operations on tensors in a row, with nothing in between
    but views, casts and reductions, and that nothing in the file compiles: module-level functions, and the
    `forward` of layers without submodules.

    The rule ignores operations that torch provides as one function (reported by TL404 and TL405), functions
    that have a decorator or are passed to a torch transform, code that prepares data on the host, and files
    that use TorchScript, which does not accept compiled functions.

    ## Why is this bad?

    Each operation is a separate kernel that reads and writes a whole tensor, and saves its input or output
    for the backward pass. Compiled, the chain is a single kernel that reads and writes once.

    ## Example

    ```python
    def charbonnier(x, y, eps):
        return torch.sqrt((x - y) ** 2 + eps * eps) * 0.5
    ```

    ## Use instead

    ```python
    @torch.compile
    def charbonnier(x, y, eps):
        return torch.sqrt((x - y) ** 2 + eps * eps) * 0.5
    ```

    If the model is compiled as a whole, the functions it calls are compiled with it.

    ## Fix safety

    Unsafe: compilation takes time at the first call and for each new shape, and needs a compiler on the
    machine. Results are rounded differently, because intermediate values stay in registers. There is no fix
    where a release before 2.0 may run the file.

    ## References

    - [PyTorch performance tuning guide: fuse operations](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    """
    if function.decorators or not module.target.admits("2.0") or is_test(module):
        return
    if module.tree.mentions("torch.jit"):
        return  # TorchScript takes no compiled functions
    if not _stands_alone(module, function) or pointwise_operations(module, function) < _CHAIN:
        return
    if compiled(module, function.body.body[0]) or _transformed(module, function):
        return
    if phase(module, function.body) is Phase.DATASET or _has_twin(module, function):
        return
    spelling = spell(module, "torch.compile", function)
    yield Finding(
        function.name,
        f"`{function.name.value}()` launches a kernel per pointwise operation; "
        "`torch.compile` fuses them into one",
        fix=_fix(module, function),
        remedy=f"Decorate it with `@{spelling.text if spelling is not None else 'torch.compile'}`",
    )


def _stands_alone(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether it is a function of the module, or the ``forward`` of a layer that holds no other."""
    if module.tree.parent(function) is module.tree.root:
        return True
    owner = module.classes.owner(function)
    if owner is None or function.name.value != "forward" or module.tree.parent(owner) is not module.tree.root:
        return False
    return module.classes.info(owner).inherits("torch.nn.Module")


def _transformed(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether the function is handed to something of torch, a transform or a compiler."""
    binding = module.binding_of(function)
    for use in module.uses(binding) if binding is not None else ():
        call = module.tree.call_given(use)
        if call is not None and (module.qualified(call.func) or "").startswith("torch."):
            return True
    return False


def _has_twin(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a part of it is a function that torch has."""
    for node in module.tree.descendants(function.body):
        if isinstance(node, (cst.BinaryOperation, cst.Call)):
            known = activation(module, node)
            if (known is not None and known.function is not None) or normalization(module, node) is not None:
                return True
    return False


def _fix(module: Module, function: cst.FunctionDef) -> Fix | None:
    spelling = spell(module, "torch.compile", function)
    if spelling is None or not module.target.at_least("2.0"):
        return None
    return unsafe(
        module,
        f"Decorate it with `@{spelling.text}`",
        add_decorator(module, function, spelling.text),
        spelling.edits,
        risk="compilation takes time at first and for new shapes, and results change in the last digits",
    )
