"""TL311 inference-under-no-grad."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import replace, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .nogradregions import NoGradRegions


@rule(
    "TL311",
    "inference-under-no-grad",
    severity=NOTE,
    fix="unsafe",
    on=(cst.With, cst.Decorator),
    mentions=("torch", "no_grad"),
    opt_in=True,
)
def inference_under_no_grad(node: cst.With | cst.Decorator, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds `torch.no_grad()` around code that only evaluates a model or predicts with it, where
    `torch.inference_mode()` would do, if every torch release that may run the file has it (since 1.9).

    The rule ignores code whose results may be used in autograd later: code that trains or is called by
    training code, teachers and targets, functions that return tensors to code in other files (unless they are
    called after evaluation), writes to weights and attributes, and code that uses `enable_grad`,
    `requires_grad_` or `backward`.

    ## Why is this bad?
    `no_grad` records no graph, but still gives each tensor a version counter and tracks views, in case
    autograd uses it later. Inference mode skips both, which saves host time in every operation.

    ## Example
    ```python
    @torch.no_grad()
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Use instead
    ```python
    @torch.inference_mode()
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Fix safety
    Unsafe: tensors created in inference mode can never be used in autograd. Other code that uses one, for
    example a model that caches tables between calls, fails when it is trained later.

    ## References
    - [Autograd mechanics: inference mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode)
    - [torch.inference_mode](https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html)
    """
    if not module.target.at_least("1.9") or is_test(module):
        return
    if isinstance(node, cst.Decorator):
        function = module.tree.parent(node)
        if not isinstance(function, cst.FunctionDef):
            return
        held, body = node.decorator, function.body
    else:
        held, body = node.items[0].item, node.body
        for item in node.items:
            if _is_no_grad(module, item.item):
                held = item.item
    if not _is_no_grad(module, held) or not NoGradRegions.of(module).only_infers(body):
        return
    switch = held.func if isinstance(held, cst.Call) else held
    spelling = spell(module, "torch.inference_mode", node)
    fix = None
    if spelling is not None:
        code = spelling.text if isinstance(held, cst.Call) else f"{spelling.text}()"
        fix = unsafe(
            module,
            f"Use `{spelling.text}()`",
            replace(module, switch, code),
            spelling.edits,
            risk="tensors made in inference mode raise an error if autograd needs them later",
        )
    yield Finding(
        held,
        "`torch.no_grad()` still tracks views and tensor versions; use `torch.inference_mode()`",
        fix=fix,
        remedy="Use `torch.inference_mode()`",
    )


def _is_no_grad(module: Module, node: cst.BaseExpression) -> bool:
    return module.qualified(node.func if isinstance(node, cst.Call) else node) == "torch.no_grad"
