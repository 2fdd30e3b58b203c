"""TL518: a program runs its model operation by operation."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import insert_after, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.checkpoints import loads_weights
from torchlint.semantics.module import Module
from torchlint.semantics.program import Program, Trained


@rule(
    "TL518",
    "model-not-compiled",
    severity=NOTE,
    fix="unsafe",
    on=cst.Module,
    mentions=("torch", "backward|grad|inference_mode"),
    opt_in=True,
    advice=True,
    lasting=True,
)
def model_not_compiled(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that train a model on an accelerator, or run one again and again without autograd, and
    compile nothing. One finding is made for a program, where its model is put on the device.

    Silent where anything is compiled, traced, scripted or exported, where a framework runs the loop or hooks
    into the layers, for agents that wait for their environment, for classes that other files train by, and
    if no release from 2.0 on may run the file.

    ## Why is this bad?

    Without a compiler, each operation is launched by itself, and reads and writes all of its tensors. A
    compiled model has its chains of pointwise operations in one kernel each, and fewer launches for the host
    to make.

    ## Example

    ```python
    model = Net().to(device)
    ```

    ## Use instead

    ```python
    model = Net().to(device)
    model.compile()
    ```

    ## Fix safety

    Unsafe: compiling takes its time at the first steps and for each new shape, some code cannot be compiled,
    and results change in their last digits. The fix compiles in place (`Module.compile`, since torch 2.1), so
    that the keys of checkpoints stay; for 2.0 it is `model = torch.compile(model)`, and none is offered there
    if the file loads or saves weights. None is offered for `nn.DataParallel`, which compiled models do not
    go with, nor for a model that is made anew in each round of a loop.

    ## References

    - [torch.nn.Module.compile](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile)
    - [Introduction to torch.compile](https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html)
    - [Where to apply torch.compile](https://docs.pytorch.org/docs/stable/compile/programming_model.where_to_apply_compile.html)
    - [Module.compile leaves the state dict alone](https://github.com/meta-pytorch/tnt/pull/441)
    """
    program = Program.of(module)
    training = program.training if module.target.admits("2.0") else None
    if training is None and program.inference is None:
        return
    if not module.target.admits("2.0") or program.compiles or program.framework:
        return
    if training is not None:
        function = module.function(training.loop)
        if not training.started and function is not None and module.classes.owner(function) is not None:
            return
        models = training.models
    elif program.inference is not None:
        models = (program.inference,)
    else:
        return
    if program.waits_for_environment or program.hooks_into_models:
        return
    if any(isinstance(model.node, cst.Name) and model.node.value == "self" for model in models):
        return
    placed = program.put_on_device(models[0])
    yield Finding(
        placed or models[0].node,
        "the model runs operation by operation; compile it with "
        + (
            "`torch.compile`"
            if module.target.admits_below("2.1")
            else f"`{module.source(models[0].node)}.compile()`"
        ),
        fix=_fix(module, models),
        remedy=_remedy(module, models[0]),
    )


def _remedy(module: Module, model: Trained) -> str:
    if module.target.admits_below("2.1"):
        done = "run what `torch.compile` makes of it, and save the weights of the model itself"
    else:
        done = f"compile it with `{module.source(model.node)}.compile()`"
    if _replicated(module):
        return f"Run a process for each device with `DistributedDataParallel`, and {done}"
    return done[0].upper() + done[1:]


def _fix(module: Module, models: tuple[Trained, ...]) -> Fix | None:
    if not module.target.at_least("2.0") or _replicated(module):
        return None
    edits = [_compile(module, model) for model in models]
    return unsafe(module, "Compile the model", *edits)


def _replicated(module: Module) -> bool:
    """Whether `nn.DataParallel` stands in the file, which compiled models do not go with."""
    return "DataParallel(" in module.tree.text.replace("DistributedDataParallel(", "")


def _compile(module: Module, model: Trained) -> tuple[Edit, ...] | None:
    placed = Program.of(module).put_on_device(model)
    if placed is None or module.flow.loops(placed):
        return None
    statement = module.tree.statement(placed)
    spelt = module.source(model.node)
    if module.target.at_least("2.1"):
        return insert_after(module, statement, f"{spelt}.compile()")
    spelling = spell(module, "torch.compile", placed)
    if spelling is None or spelling.edits or loads_weights(module) or module.tree.mentions("state_dict"):
        return None
    return insert_after(module, statement, f"{spelt} = {spelling.text}({spelt})")
