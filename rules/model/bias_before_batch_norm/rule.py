"""TL401: a layer with a bias in front of a normalisation that subtracts it again."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, set_argument
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.families import (
    BATCH_NORMS,
    CONVOLUTION_FUNCTIONS,
    CONVOLUTIONS,
    INSTANCE_NORMS,
    LINEAR_LAYERS,
)
from torchlint.semantics.checkpoints import PUBLISHED, published
from torchlint.semantics.identifiers import identifiers, imported, options
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

from ..layerorder import called
from .biases import Biases
from .consumers import Consumer, after_layer, after_result
from .evalmode import trains_in_evaluation_mode
from .modelstate import state_unobserved

# Words one of which is in the text of a file that trains.
_TRAINING = (".backward(", "training_step", ".fit(", "Trainer")
# What torch calls the states of its random streams, and the wish for the same results in each run.
_RANDOM_STATES = frozenset(
    {"get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all", "fork_rng"}
    | {"default_generator", "deterministic", "use_deterministic_algorithms", "set_deterministic_debug_mode"}
)


@rule(
    "TL401",
    "bias-before-batch-norm",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("BatchNorm|InstanceNorm|batch_norm|instance_norm", "Conv|Linear|conv"),
    lasting=True,
)
def bias_before_batch_norm(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds convolutions and linear layers with a bias whose output only goes to a batch norm (or instance norm)
    over the same channels. It follows layers through `nn.Sequential`, however it is filled, through
    `self.conv`/`self.bn` in `forward`, `ModuleList` pairs, factories and helper methods.

    Findings are of low impact for linear layers, where the project does not train the model itself, and where
    weights for it are published or it is part of a library: those checkpoints hold the bias.

    ## Why is this bad?

    The norm subtracts the mean of each channel, and with it any constant that the bias added. The bias is a
    parameter without effect: it costs an addition over the whole activation, a reduction in the backward
    pass, and memory for its gradient and optimizer state.

    ## Example

    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    ```

    ## Use instead

    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    ```

    ## Fix safety

    Unsafe: the outputs are the same, but the bias is no longer in the `state_dict`. Checkpoints of the old
    model do not load into the new one, and code that lists, counts or names parameters sees one less. With
    the same seed, layers created after this one get different weights.

    The fix is safe where none of this can be noticed: in a script that creates and trains the model itself,
    that imports only PyTorch and other libraries that leave models alone, that no file can import without
    training again, that sets no seed, and that neither saves, loads, lists, counts, names nor prints the
    state of any model or optimizer. Even there it is unsafe if the script registers hooks or takes a model
    apart, if it evaluates a model that it never trains or trains one in evaluation mode (where the norm does
    not subtract the batch mean), or if it reads or tests any bias.

    There is no fix where code in the file sets the bias of such layers without checking that there is one,
    and none for `F.conv2d`, whose bias is a separate parameter.

    ## References

    - [PyTorch performance tuning guide: disable bias for convolutions directly followed by a batch norm](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    name = called(module, call)
    if name is None:
        return
    functional = name in CONVOLUTION_FUNCTIONS
    if name not in CONVOLUTIONS and name not in LINEAR_LAYERS:
        return
    bias = module.argument(call, "bias")
    if functional and (not bias.given or bias.constant is None):
        return
    if not functional and not bias.absent and not _is_true(bias.node):
        # An expression is somebody's choice.
        return
    consumers = after_result(module, call) if functional else after_layer(module, call)
    biases = Biases.of(module)
    if (
        biases.norms_frozen
        or biases.norms_replaced
        or not all(_cancels(module, norm, call, name) for norm in consumers)
    ):
        return
    layer, norm = name.rpartition(".")[2], consumers[0]
    assert norm.name is not None and norm.call is not None
    yield Finding(
        call,
        f"the bias of this `{layer}` is redundant: the following `{norm.name.rpartition('.')[2]}` cancels it",
        fix=None if functional else _fix(module, call, name),
        related=((norm.call, "the norm subtracts the mean of each channel"),),
        slight=_slight(module, call, name),
        remedy="Pass `bias=None`"
        if functional
        else "Pass `bias=False`, and remove the code that uses this bias",
    )


def _slight(module: Module, call: cst.Call, layer: str) -> str | None:
    """Return why there is little to gain: for a linear layer, and where the program trains no model.

    A bias of a matrix product costs next to nothing, unlike one of a whole activation map. Where others train
    the model, or have, as users of a library do, their checkpoints hold the bias.
    """
    if layer in LINEAR_LAYERS:
        return "the bias of a linear layer costs little"
    if _is_published(module, call) or not _trains_from_scratch(module):
        return "checkpoints from elsewhere may hold the bias"
    return None


def _is_published(module: Module, call: cst.Call) -> bool:
    """Return whether code outside of the project may use the model of a layer."""
    around = [*module.tree.ancestors(call)]
    named = [each for each in around if isinstance(each, (cst.FunctionDef, cst.ClassDef))]
    link = module.link
    return bool(named) and link is not None and not link.shows_users(module, named[-1].name.value)


@remembered
def _trains_from_scratch(module: Module) -> bool:
    """Return whether the program trains the models of a file itself,
    and nobody has published weights for them.
    """
    files = (module, *module.companions(*PUBLISHED))
    return module.mentions(*_TRAINING) and all(map(_fills_models_of_libraries, files))


def _fills_models_of_libraries(module: Module) -> bool:
    """Return whether published weights only go into models that libraries define, in the calls that make
    them: those of a perceptual loss, say.
    """
    tree = module.tree
    weights = sorted(published(module), key=tree.order.__getitem__)
    filled: set[cst.CSTNode] = set()
    for call in tree.nodes(cst.Call) if weights else ():
        inside = tree.within(call, weights)
        if inside and module.qualified(call.func) is not None and module.value(call.func).definition is None:
            filled.update(inside if module.value(call).kind is Kind.MODULE else ())
    return filled.issuperset(weights)


def _is_true(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _cancels(module: Module, norm: Consumer, call: cst.Call, layer: str) -> bool:
    """Return whether what takes the result of the layer subtracts the mean over all but the layer's
    channels.
    """
    if norm.name is None or norm.call is None:
        return False
    if layer in LINEAR_LAYERS:
        return norm.name == "torch.nn.BatchNorm1d" and _same_width(module, norm.call, call)
    if norm.name in BATCH_NORMS:
        return True
    if norm.name in INSTANCE_NORMS:
        tracked = module.argument(norm.call, "track_running_stats")
        return tracked.absent or tracked.constant is False
    if norm.name in ("torch.nn.functional.batch_norm", "torch.batch_norm"):
        training = module.argument(norm.call, "training")
        return training.given and training.constant not in (False, None)
    if norm.name == "torch.nn.functional.instance_norm":
        statistics = module.argument(norm.call, "use_input_stats")
        return statistics.absent or statistics.constant is True
    return False


def _same_width(module: Module, norm: cst.Call, linear: cst.Call) -> bool:
    """Return whether the norm is over the features of the linear layer, not over tokens of a 3-D input."""
    features = module.argument(norm, "num_features")
    outputs = module.argument(linear, "out_features")
    if features.node is None or outputs.node is None:
        return False
    if isinstance(features.constant, int) and isinstance(outputs.constant, int):
        return features.constant == outputs.constant
    return module.source(features.node) == module.source(outputs.node)


def _fix(module: Module, call: cst.Call, layer: str) -> Fix | None:
    if Biases.of(module).bias_needed(layer):
        return None
    risk = None if _unnoticed(module, call) else "checkpoints with the bias no longer load"
    return graded(module, "Pass `bias=False`", set_argument(module, call, "bias", "False"), risk=risk)


def _unnoticed(module: Module, call: cst.Call) -> bool:
    """Return whether the program is the same without the bias, whatever it computes, draws and stores."""
    drawn = not _seeded(module) and _RANDOM_STATES.isdisjoint(identifiers(module))
    return (
        drawn
        and state_unobserved(module, call)
        and not trains_in_evaluation_mode(module)
        and not Biases.of(module).read
    )


@remembered
def _seeded(module: Module) -> bool:
    """Return whether the file seeds a random stream of torch, so that the stream is part of its results.

    Whatever has "seed" in its name counts, but for the streams of Python and NumPy.
    """
    attributes = (
        module.qualified(attribute) or attribute.attr.value
        for name in module.tree.names_by_name
        if "seed" in name.lower()
        for attribute in map(module.tree.parent, module.tree.names_by_name[name])
        if isinstance(attribute, cst.Attribute)
    )
    return any(
        "seed" in spelling.lower() and not spelling.startswith(("random.", "numpy."))
        for spelling in (*imported(module), *options(module), *attributes)
    )
