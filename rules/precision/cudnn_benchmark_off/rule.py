"""TL503: cuDNN guesses which algorithm suits a convolution, where it could measure it once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import insert_after_imports, replace, unsafe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.comments import Topic, says
from torchlint.semantics.identifiers import identifiers, options
from torchlint.semantics.lexicon import Role, words
from torchlint.semantics.module import Module
from torchlint.semantics.program import Program, convolutional

from ..backendflags import BENCHMARK, DETERMINISTIC, DETERMINISTIC_ALGORITHMS, BackendFlags
from .sizes import one_size


@rule(
    "TL503",
    "cudnn-benchmark-off",
    severity=NOTE,
    fix="unsafe",
    on=cst.Module,
    mentions=("torch", "backward"),
    remedy="Set `torch.backends.cudnn.benchmark = True` before training starts",
    advice=True,
    lasting=True,
)
def cudnn_benchmark_off(_: cst.Module, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds programs that train a convolutional network on images of a fixed size without
    `torch.backends.cudnn.benchmark = True`. There is one finding per program, at its import of torch. It is a
    warning, at the assignment, where the program sets the flag to False although nothing suggests that its
    results have to be reproducible: it sets no seed and never mentions determinism.

    The rule ignores programs that request deterministic results, make the flag an option, or work on inputs
    of varying size (text, audio, detection, training at several scales); convolutions that no forward pass
    calls; training loops that a framework runs; and reinforcement learning agents that wait for their
    environment.

    ## Why is this bad?

    cuDNN has many algorithms for a convolution, and selects one with a heuristic. With `benchmark` it runs
    them once for each new shape, and keeps the fastest. If the shapes stay the same, that costs a few steps
    at the start. If every batch had a different shape, it would cost that every time.

    ## Example

    ```python
    import torch

    model = resnet50().cuda()
    ```

    ## Use instead

    ```python
    import torch

    torch.backends.cudnn.benchmark = True

    model = resnet50().cuda()
    ```

    ## Fix safety

    Unsafe: another algorithm sums in a different order, and the next run may select yet another one. The line
    is added after the imports, or False becomes True.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.backends.cudnn.benchmark](https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.torch.backends.cudnn.benchmark)
    - [Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html)
    """
    program, flags = Program.of(module), BackendFlags.of(module)
    off = [write for write in flags.writes_of(BENCHMARK) if write.value is False and write.block is None]
    # The switch may be set in a file that trains nothing.
    training = program.training or (next(iter(program.trainings), None) if off else None)
    if training is None or program.framework or program.waits_for_environment:
        return
    if off:
        others = [write for write in flags.writes_of(BENCHMARK) if write.value is not False]
        asked = flags.writes_of(DETERMINISTIC, DETERMINISTIC_ALGORITHMS)
        if module.tree.is_elsewhere(off[0].node) or others or asked or _is_repeatable(module):
            return
        if says(module, off[0].node, Topic.REPEATING):
            return
    elif flags.writes_of(BENCHMARK) or program.speaks_of(Role.DETERMINISM) or "benchmark" in _spoken(module):
        return
    home = module.home(training.loop)
    if not any(convolutional(home, model) for model in training.models) or not one_size(module):
        return
    if off:
        yield Finding(
            off[0].node,
            "`benchmark = False` keeps cuDNN from autotuning these fixed-size convolutions; set it to `True`",
            fix=unsafe(module, "Set it to `True`", replace(module, off[0].given, "True"), risk=_CHOSEN),
            severity=WARNING,
        )
        return
    place = program.torch_import
    if place is None:
        return
    edits = insert_after_imports(module, "\n{} = True", BENCHMARK)
    yield Finding(
        place,
        "cuDNN does not autotune the fixed-size convolutions; set `torch.backends.cudnn.benchmark = True`",
        fix=unsafe(module, f"Set `{BENCHMARK} = True`", edits, risk=_CHOSEN),
        related=((training.backward, "the model is trained here"),),
    )


def _is_repeatable(module: Module) -> bool:
    """Return whether the program seeds its random numbers, or speaks of determinism."""
    if Program.of(module).speaks_of(Role.DETERMINISM):
        return True
    files = (module, *module.companions("seed"))
    return any(word.startswith("seed") for each in files for word in _spoken(each))


def _spoken(module: Module) -> frozenset[str]:
    """Return the words of which the names and options of a file are made."""
    return frozenset(word for name in identifiers(module) | options(module) for word in words(name))


_CHOSEN = "results change in the last digits, and differ from run to run with the algorithm chosen"
