"""TL904: checkpoints that are loaded with all the code that they bring."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from ..uses import stands_in
from .pickled import loads_object, saved_as, saves_objects


@rule(
    "TL904",
    "unsafe-checkpoint-load",
    severity=WARNING,
    fix="unsafe",
    measured=False,
    on=cst.Call,
    mentions=("torch", ".load(|import load|, load"),
    remedy="Pass `weights_only=True`, which torch has since 1.13",
)
def unsafe_checkpoint_load(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.load` without `weights_only`, where a release of torch older than 2.6 may run the program.
    What the same function saved before it loads it is left alone, and so are tests, and what is only reached
    under a check of the release or of what `torch.load` takes, or where a `TypeError` is caught.

    ## Why is this bad?

    A checkpoint is a pickle, and before torch 2.6 loading one runs whatever code whoever wrote it put there.
    And the program does one thing in the older releases and another one from 2.6 on, where the default became
    `weights_only=True`: a checkpoint that holds more than tensors and containers fails to load there.

    ## Example

    ```python
    state = torch.load("checkpoint.pt", map_location="cpu")
    ```

    ## Use instead

    ```python
    state = torch.load("checkpoint.pt", map_location="cpu", weights_only=True)
    ```

    ## Fix safety

    The fix is unsafe: `weights_only=True` reads tensors, numbers, texts, None, and the dictionaries, lists
    and tuples that hold them. A checkpoint with objects of other classes, such as a whole model, can only be
    loaded with `weights_only=False`, or after `torch.serialization.add_safe_globals`, and what is in it is
    known to whoever saved it.

    No fix is offered where the file itself shows such an object: it saves one anywhere, alone or as part of
    a dictionary (a model, an optimizer, an `argparse.Namespace`, a NumPy array, an instance of a class), or
    uses what it loads as one (`model = torch.load(path); model.eval()`, `checkpoint["args"].lr`). Nor is one
    offered where a release before 1.13, which has no such argument, may run the program, nor beside
    `**kwargs`.

    ## References

    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [torch 2.6: the default of weights_only](https://dev-discuss.pytorch.org/t/bc-breaking-change-torch-load-is-being-flipped-to-use-weights-only-true-by-default-in-the-nightlies-after-137602/2573)
    """
    if (
        not module.target.admits_below("2.6")
        or module.qualified(call.func) != "torch.load"
        or is_test(module)
    ):
        return
    if not module.argument(call, "weights_only").absent or module.argument(call, "pickle_module").given:
        return
    if _is_own(module, call) or stands_in(module, call):
        return
    message = "before torch 2.6, `torch.load` without `weights_only` runs any code that the file holds"
    if loads_object(module, call) or saves_objects(module):
        yield Finding(call, message, remedy=_OBJECTS)
        return
    fix = None
    if module.target.at_least("1.13"):
        edits = set_argument(module, call, "weights_only", "True")
        fix = unsafe(module, "Add `weights_only=True`", edits)
    yield Finding(call, message, fix=fix)


_OBJECTS = (
    "Save `state_dict()` and plain values instead of whole objects, which `weights_only=True` refuses, or "
    "pass `weights_only=False` if nobody else can have written the file"
)


def _is_own(module: Module, call: cst.Call) -> bool:
    """Whether the function around, or the program, has saved what is loaded: the same name or buffer.

    Where it saves only later, it resumes from what lies there.
    """
    loaded = module.argument(call, "f").node
    function = module.tree.enclosing(call, cst.FunctionDef)
    if loaded is None:
        return False
    scope = module.tree.root if function is None else function
    before = module.tree.order[call]
    for save in module.tree.within(scope, saved_as(module).get(module.source(loaded), [])):
        if module.tree.order[save] > before:
            return False
        if function is not None or module.tree.enclosing(save, cst.FunctionDef) is None:
            return True
    return False
