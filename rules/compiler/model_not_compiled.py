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

    Finds programs that train a model on an accelerator, or run one repeatedly without autograd, and compile
    nothing. There is one finding per program, where its model is moved to the device.

    The rule ignores programs where anything is compiled, traced, scripted or exported, where a framework runs
    the loop, or where code hooks into layers; reinforcement learning agents that wait for their environment;
    classes that other files use for training; and files that no release from 2.0 on may run.

    ## Why is this bad?

    In eager mode, each operation is launched separately, and reads and writes all of its tensors. A compiled
    model runs each chain of pointwise operations as one kernel, with fewer launches from the host.

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

    Unsafe: compilation takes time in the first steps and for each new shape, some code cannot be compiled,
    and results change in the last digits. The fix compiles in place (`Module.compile`, since torch 2.1),
    which keeps the keys of checkpoints. For torch 2.0 it is `model = torch.compile(model)`, and is not
    offered if the file loads or saves weights. There is no fix for `nn.DataParallel`, which does not work
    with compiled models, nor for a model that is created again in each iteration of a loop.

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
        "the model runs in eager mode, operation by operation; compile it with "
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
        done = "run the result of `torch.compile`, and save the state dict of the original model"
    else:
        done = f"compile it with `{module.source(model.node)}.compile()`"
    if _replicated(module):
        return f"Run one process per device with `DistributedDataParallel`, and {done}"
    return done[0].upper() + done[1:]


def _fix(module: Module, models: tuple[Trained, ...]) -> Fix | None:
    if not module.target.at_least("2.0") or _replicated(module):
        return None
    edits = [_compile(module, model) for model in models]
    return unsafe(
        module,
        "Compile the model",
        *edits,
        risk="compilation takes time at first and for new shapes, and results change in the last digits",
    )


def _replicated(module: Module) -> bool:
    """Return whether `nn.DataParallel` stands in the file, which compiled models do not go with."""
    return "DataParallel(" in module.tree.code.replace("DistributedDataParallel(", "")


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
