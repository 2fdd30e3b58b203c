"""TL311 inference-mode."""

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
    "inference-mode",
    severity=NOTE,
    fix="unsafe",
    on=(cst.With, cst.Decorator),
    mentions=("torch", "no_grad"),
    opt_in=True,
)
def inference_mode(node: cst.With | cst.Decorator, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds `torch.no_grad()` around code that evaluates or predicts with a model and nothing else, where
    `torch.inference_mode()` would do, if the torch releases that may run the file have it (1.9).

    Silent where what is computed may meet autograd again: code that trains, or is called by it; teachers and
    targets; functions that return tensors to code that the file does not show, unless they are called after
    evaluation; weights and attributes that are written; `enable_grad`, `requires_grad_`, `backward`.

    ## Why is this bad?
    `no_grad` records no graph, but each tensor still gets a version counter and the tracking of views, in
    case it meets autograd later. Inference mode leaves these out as well, which saves host time in every
    operation.

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
    Unsafe: tensors made in inference mode can never take part in autograd. Code elsewhere that gets hold of
    one, a model that keeps tables of its own from one call to the next for example, fails when it is trained
    later.

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
        fix = unsafe(module, f"Use `{spelling.text}()`", replace(module, switch, code), spelling.edits)
    yield Finding(
        held,
        "nothing in here meets autograd again: `inference_mode` also leaves out version counters and views",
        fix=fix,
        remedy="Use `torch.inference_mode()`",
    )


def _is_no_grad(module: Module, node: cst.BaseExpression) -> bool:
    return module.qualified(node.func if isinstance(node, cst.Call) else node) == "torch.no_grad"
