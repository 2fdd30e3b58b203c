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
    remedy="Compile it once during setup, and reuse the result",
)
def compile_in_loop(node: cst.Call | cst.Decorator, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.compile` applied to the same function or model in every iteration of a loop, in `forward`, in
    the `step` of an optimizer, and in functions that are called in every step: as a call, as
    `model.compile()`, or as the decorator of a nested function. The rule ignores loops that compile several
    models or layers once each, and code that compiles behind a check and keeps the result.

    ## Why is this bad?

    Each call creates a new wrapper, sets up its options and context again, and has to look up the compiled
    code by its guards. That takes far longer than calling a function that is already compiled. If the
    function closes over different objects each time, or each wrapper has its own backend, no compiled code
    matches and everything is compiled again.

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

    There is no fix: only the author knows where the setup of the program is.

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
        often, related = "in every iteration", ((found.loop, "every iteration compiles the same code"),)
    yield Finding(
        node,
        f"`torch.compile` wraps {what} again {often}; compile it once during setup",
        related=related,
    )
