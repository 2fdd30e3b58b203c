"""TL512: `torch.compile` where it is called again and again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .recompilation import repeated_compilation


@rule(
    "TL512",
    "compile-in-loop",
    severity=WARNING,
    fix="none",
    on=(cst.Call, cst.Decorator),
    mentions=("torch", "compile"),
    remedy="Compile it once, at the set-up, and keep the result",
)
def compile_in_loop(node: cst.Call | cst.Decorator, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.compile` of the same function or model in each round of a loop, in `forward`, in the `step`
    of an optimizer, and in functions that are called at every step: as a call, as `model.compile()`, and as
    the decorator of a function that is defined there. Loops over several models or layers, which compile
    each of them once, are left alone, and so is what is compiled behind a guard and kept.

    ## Why is this bad?

    Each call makes a new wrapper, with options and a context of its own that are set up once more, and the
    compiled code has to be found again by its guards. That takes far longer than to call a function that is
    compiled already. And where the function closes over other things each time, or has a backend of its own,
    nothing fits: everything is compiled again.

    ## Example

    ```python
    def forward(self, x):
        return torch.compile(self.block)(x)
    ```

    ## Use instead

    ```python
    def __init__(self):
        super().__init__()
        self.block = torch.compile(Block())


    def forward(self, x):
        return self.block(x)
    ```

    ## Fix safety

    There is no fix: where a program has its set-up, the author knows.

    ## References

    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [torch.compile: recompilation](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.recompilation.html)
    """
    if isinstance(node, cst.Call) and not isinstance(node.func, (cst.Attribute, cst.Name, cst.Call)):
        return
    found = repeated_compilation(module, node)
    if found is None:
        return
    if isinstance(found.given, cst.FunctionDef):
        what = f"`{found.given.name.value}()`"
    else:
        what = f"`{module.source(found.given)}`" if len(module.source(found.given)) <= 40 else "a function"
    if found.hot is not None:
        often, related = when(module, found.hot), trail(found.hot)
    else:
        assert found.loop is not None
        often, related = "in every round of the loop", ((found.loop, "the loop compiles the same each time"),)
    yield Finding(
        node,
        f"`torch.compile` wraps {what} anew {often}; compile it once, at the set-up, and keep the result",
        related=related,
    )
