from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import add_decorator, dissolve_in, safe, spell, unsafe, wrap, wrap_with
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .nogradregions import NoGradRegions, Region


@rule(
    "TL301",
    "evaluation-with-autograd",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("torch|accelerate|import:transformers",),
    remedy="Compute the pass, and nothing that suspends the function, in a block `with torch.no_grad():`",
)
def evaluation_with_autograd(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds forward passes whose results are never backpropagated, though autograd records them: in functions
    that evaluate, validate, test, predict, generate or sample, after `.eval()`, over a validation or test
    loader, and in training code beside its steps: samples drawn once in a while, data that nothing is trained
    on. The call of a helper that training shares counts as well, and so does a loop over `["train", "val"]`.
    One finding is made for each function or loop.

    So are the passes, in training itself, of a model that is never trained: a teacher, a target network, a
    frozen extractor. The file has to show that it makes the model, that no optimizer gets its parameters, and
    that what goes in has no graph.

    Silent where autograd is off in any way (a decorator, a `with` block, `torch.set_grad_enabled(False)`, all
    callers in the file, the hooks of Lightning and Trainer), where the model's parameters are frozen, where
    the code asks for gradients itself, and in adversarial or attribution code.

    ## Why is this bad?
    `.eval()` changes what dropout and batch normalisation do, and nothing else. With autograd on, each
    operation makes a graph node and saves its inputs for a backward pass that never comes. That costs host
    time in every operation, and memory for all activations of the batch, so that evaluation needs a smaller
    batch than it could have.

    ## Example
    ```python
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Use instead
    ```python
    @torch.no_grad()
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Fix safety
    A function that does nothing but evaluate gets the decorator `@torch.no_grad()`, below the decorators it
    has; elsewhere the loop, or the forward passes beside each other, go into a `with torch.no_grad():` block,
    or into `with torch.set_grad_enabled(phase == "train"):` where one loop trains and validates. Blocks
    `with torch.no_grad():` that stand in it, or right before or behind it, become part of it; no fix where a
    comment would go with one of them.
    Safe, unless a tensor with its graph may get out of the file: a function returns it that other files may
    call, because its name has no leading underscore and it stands in no other function; it is kept in an
    attribute, put into a container of the caller or given to its callback. Those might backpropagate it. What
    is returned as numbers of Python has no graph, and a notebook has no importers. Unsafe too for a generator
    function, for a model that is never trained, whose parameters have no `.grad` any more, and where the file
    asks a tensor for `requires_grad` or `grad_fn`. No fix where the code to be wrapped holds a `yield` or
    `await`: its consumer would run without autograd; and none for a function that is compiled by
    `torch.jit.script`.

    ## References
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """
    region = NoGradRegions.of(module).recorded(call)
    if region is None:
        return
    model = module.source(call.func)
    why = "is never trained" if region.untrained else "runs for evaluation"
    yield Finding(
        call,
        f"`{model}` {why}, but autograd records it and keeps its activations",
        fix=_without_autograd(module, region),
    )


def _without_autograd(module: Module, region: Region) -> Fix | None:
    if region.function is not None:
        function = region.function
        suspends = _suspends(module, function.body)
        if function.asynchronous is not None or _is_scripted(module, function):
            return None
        spelling = spell(module, "torch.no_grad", function)
        if spelling is None:
            return None
        make = unsafe if region.escapes or suspends else safe
        decorator = add_decorator(module, function, f"{spelling.text}()")
        needless = dissolve_in(module, (function.body,), lambda block: _is_off(module, block, function))
        return make(module, f"Add `@{spelling.text}()`", decorator, needless, spelling.edits)
    if not region.statements or any(_suspends(module, statement) for statement in region.statements):
        return None
    if region.training is not None:
        spelling = spell(module, "torch.set_grad_enabled", region.statements[0])
        argument = module.source(region.training)
    else:
        spelling = spell(module, "torch.no_grad", region.statements[0])
        argument = ""
    if spelling is None:
        return None
    make = unsafe if region.escapes else safe
    header = f"with {spelling.text}({argument}):"
    if region.training is not None:
        wrapped = wrap(module, region.statements, header)
    else:
        around = module.function(region.statements[0])
        wrapped = wrap_with(module, region.statements, header, lambda block: _is_off(module, block, around))
    return make(module, f"Wrap in `{header}`", wrapped, spelling.edits)


def _is_off(module: Module, block: cst.With, function: cst.CSTNode | None) -> bool:
    """Whether a block of this function only switches autograd off, which nothing in the file switches on."""
    if module.tree.mentions("enable_grad") or module.tree.mentions("set_grad_enabled"):
        return False
    match block.items:
        case [cst.WithItem(item=cst.Call(args=[]) as context, asname=None)] if block.asynchronous is None:
            pass
        case _:
            return False
    return module.function(block) is function and module.qualified(context.func) == "torch.no_grad"


def _suspends(module: Module, node: cst.CSTNode) -> bool:
    """Whether code between may run, or the mode may leak, while this code is suspended."""
    return any(
        isinstance(inner, (cst.Yield, cst.Await)) and module.function(inner) is module.function(node)
        for inner in module.tree.descendants(node)
    )


def _is_scripted(module: Module, function: cst.FunctionDef) -> bool:
    """Whether TorchScript compiles a function: it knows no decorators of Python."""
    if any((module.qualified(d.decorator) or "").startswith("torch.jit.") for d in function.decorators):
        return True
    binding = module.binding_of(function)
    for use in module.uses(binding) if binding is not None else ():
        arg = module.tree.parent(use)
        call = module.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if isinstance(call, cst.Call) and (module.qualified(call.func) or "").startswith("torch.jit."):
            return True
    return False
