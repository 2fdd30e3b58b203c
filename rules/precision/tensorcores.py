"""Whether products of matrices, for which a GPU has tensor cores, are much of the work of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import (
    CONVOLUTION_LAYERS,
    LARGE_LAYERS,
    MATRIX_PRODUCTS,
)
from torchlint.semantics.identifiers import imports
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.program import Program, names_of_network
from torchlint.semantics.remembered import remembered

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.program import Trained

# Work on graphs scatters and gathers; there is little for tensor cores.
_SPARSE = ("torch_geometric", "dgl", "torch_sparse", "torch_scatter", "pykeen", "torchrec")
# Weights of a layer; a perceptron has few layers, and batches of one row an example.
_SMALL = 512 * 512
_SMALL_IN_PERCEPTRON = 1024 * 1024
# A perceptron over these images is for demonstration, however wide an option makes it.
_DIGITS = "MNIST"
_WEIGHTED = {
    "torch.nn.Linear": ("in_features", "out_features"),
    "torch.nn.LSTM": ("input_size", "hidden_size"),
    "torch.nn.GRU": ("input_size", "hidden_size"),
    "torch.nn.RNN": ("input_size", "hidden_size"),
}
# Packages, that of torch's layers aside, that make no networks.
_WITHOUT_NETWORKS = frozenset(
    {
        "torch",
        "builtins",
        "numpy",
        "math",
        "random",
        "collections",
        "itertools",
        "functools",
        "typing",
        "copy",
    }
)
_SEQUENCES = ("torch.nn.Embedding", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


@remembered
def profits_from_tensor_cores(module: Module) -> bool:
    """Return whether products of matrices are much of the work: no environment, no graphs,
    no tiny networks.
    """
    program = Program.of(module)
    training = program.training or program.steps
    if training is None or program.waits_for_environment:
        return False
    if any(imports(each.module, _SPARSE) for each in program.companions):
        return False
    if program.speaks_of(Role.SPARSE_GRAPH):
        return False
    return not all(_is_small(module, model) for model in training.models)


def _is_small(module: Module, model: Trained) -> bool:
    """Return whether all layers of a model are in sight, and none of them is any work for a device."""
    layers = list(Program.of(module).layers(model))
    sizes: list[int] = []
    for call, name in layers:
        if name in LARGE_LAYERS or name.partition(".")[0] not in _WITHOUT_NETWORKS:
            return False
        if name in _WEIGHTED:
            numbers = [module.argument(call, part).constant for part in _WEIGHTED[name]]
            known = [number for number in numbers if isinstance(number, int)]
            if not known:
                if name == "torch.nn.Linear" and module.tree.mentions(_DIGITS):
                    continue
                return False
            # Where one side is not shown (the number of features, or of classes), the other tells.
            sizes.append(known[0] * known[-1])
    plain = all(not name.startswith(_SEQUENCES) for _, name in layers)
    limit = _SMALL_IN_PERCEPTRON if plain else _SMALL
    return bool(sizes) and max(sizes) <= limit and in_sight(module, model)


def in_sight(module: Module, model: Trained) -> bool:
    """Return whether all of a model is code of this file or layers of torch."""
    definition = model.value.definition
    if isinstance(definition, cst.ClassDef):
        return not module.classes.info(definition).opaque
    return (model.value.cls or "").startswith("torch.nn.")


def multiplies_matrices(module: Module) -> bool:
    """Return whether products of matrices may be much of the work of the models that a program trains.

    They are not in networks that convolve all the way to one last layer, whose work cuDNN does.
    """
    training = Program.of(module).training
    return training is not None and not all(_only_convolves(module, model) for model in training.models)


def _only_convolves(module: Module, model: Trained) -> bool:
    names = [name for _, name in Program.of(module).layers(model)]
    multiplies = not MATRIX_PRODUCTS.isdisjoint(names)
    if not CONVOLUTION_LAYERS.keys().isdisjoint(names):
        return in_sight(module, model) and not multiplies
    makers = Program.of(module).makers(model)
    if makers and all(any(map(_convolves_to_the_end, names_of_network(module, call))) for call in makers):
        return True
    # Nothing tells what a network of another file does to images; most convolve.
    if in_sight(module, model) or multiplies:
        return False
    program = Program.of(module)
    if not program.speaks_of(Role.PICTURE):
        return False
    multiplies = program.speaks_of(Role.MULTIPLYING) or imports(module, ("clip",))
    return program.speaks_of(Role.STYLE_TRANSFER) or not multiplies


def _convolves_to_the_end(name: str) -> bool:
    return has(name, Role.FULLY_CONVOLUTIONAL) and not has(name, Role.DETECTION)
