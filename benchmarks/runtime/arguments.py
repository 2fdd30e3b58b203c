"""Arguments for functions and constructors that nobody described: by the names of their parameters.

A *scene* is a consistent set of inputs, such as a batch of images with their labels. A callable is tried with
each scene; what a scene has no value for must have a default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

_BATCH, _CLASSES, _WIDTH, _LENGTH, _SIDE = 4, 5, 32, 16, 32

OPTIONS: Mapping[str, Any] = {
    "dim": _WIDTH,
    "dims": _WIDTH,
    "num_classes": _CLASSES,
    "num_labels": _CLASSES,
    "classes": _CLASSES,
    "image_size": _SIDE,
    "img_size": (_SIDE, _SIDE),
    "patch_size": 8,
    "depth": 2,
    "heads": 2,
    "num_heads": 2,
    "mlp_dim": 64,
    "dim_head": 16,
    "channels": 3,
    "in_channels": 3,
    "out_channels": 3,
    "spatial_dims": 2,
    "kernel_size": 3,
    "sigma": (1.0, 1.0),
    "codebook_size": 16,
    "num_quantizers": 2,
    "embedding_size": _WIDTH,
    "features": _WIDTH,
    "in_features": _WIDTH,
    "out_features": _WIDTH,
    "hidden_size": _WIDTH,
    "input_size": _WIDTH,
    "n_neurons": _WIDTH,
    "levels": [4, 4, 4],
    "task": "multiclass",
    "num_tokens": 16,
    "max_seq_len": _LENGTH,
    "threshold": 0.5,
    "size": (24, 24),
    "dsize": (24, 24),
    "window_size": 5,
    "p": 1.0,
    "degrees": 30.0,
    "padding": 1,
    "stride": 2,
    "alpha": 0.5,
    "gamma": 2.0,
    "beta": 0.5,
    "eps": 1e-6,
    "height": _SIDE,
    "width": _SIDE,
    "max_val": 1.0,
    "data_range": 1.0,
    "num_outputs": 1,
    "k": 2,
    "top_k": 2,
    "n": 4,
    "factor": 1.5,
    "angle": 30.0,
    "margin": 0.1,
    "scale": 2.0,
    "temperature": 0.5,
    "weight": None,
    "reduction": "mean",
}
"""Options by the name of the parameter; an input of the scene comes first."""


def _images(device: str) -> dict[str, Any]:
    image = torch.rand(_BATCH, 3, _SIDE, _SIDE, device=device)
    labels = torch.randint(0, 2, (_BATCH, 3, _SIDE, _SIDE), device=device)
    names = ("input", "image", "img", "images", "x", "img1", "preds", "input1", "y_pred", "tensor", "data")
    others = ("target", "img2", "other", "input2", "y_true", "src2", "image2")
    return {
        **dict.fromkeys(names, image),
        **dict.fromkeys(others, torch.rand_like(image)),
        "mask": labels[:, :1].bool(),
        "kernel": torch.rand(3, 3, device=device),
        "M": torch.eye(3, device=device).repeat(_BATCH, 1, 1),
    }


def _segmentation(device: str) -> dict[str, Any]:
    logits = torch.randn(_BATCH, _CLASSES, _SIDE, _SIDE, device=device)
    labels = torch.randint(0, _CLASSES, (_BATCH, _SIDE, _SIDE), device=device)
    return {
        **dict.fromkeys(("input", "preds", "y_pred", "pred", "x"), logits.softmax(1)),
        **dict.fromkeys(("target", "y_true", "y", "labels"), labels),
    }


def _one_hot(device: str) -> dict[str, Any]:
    logits = torch.randn(_BATCH, _CLASSES, _SIDE, _SIDE, device=device)
    hard = torch.zeros_like(logits).scatter_(1, logits.argmax(1, keepdim=True), 1.0)
    return {
        **dict.fromkeys(("input", "preds", "y_pred", "pred"), hard),
        **dict.fromkeys(("target", "y_true", "y", "labels"), hard.roll(1, 0)),
    }


def _classes(device: str) -> dict[str, Any]:
    logits = torch.randn(_BATCH * 4, _CLASSES, device=device)
    labels = torch.randint(0, _CLASSES, (_BATCH * 4,), device=device)
    return {
        **dict.fromkeys(("input", "preds", "y_pred", "logits", "x", "probabilities"), logits.softmax(1)),
        **dict.fromkeys(("target", "y_true", "labels", "targets", "y"), labels),
        "embeddings": torch.randn(_BATCH * 4, _WIDTH, device=device),
        "indexes": torch.arange(_BATCH * 4, device=device) % 4,
    }


def _binary(device: str) -> dict[str, Any]:
    scores = torch.rand(_BATCH * 4, device=device)
    labels = (torch.rand(_BATCH * 4, device=device) > 0.5).long()
    return {
        **dict.fromkeys(("input", "preds", "y_pred", "x"), scores),
        **dict.fromkeys(("target", "y_true", "labels"), labels),
        "groups": labels,
        "indexes": torch.arange(_BATCH * 4, device=device) % 4,
    }


def _labels(device: str) -> dict[str, Any]:
    scores = torch.rand(_BATCH * 4, _CLASSES, device=device)
    return {
        **dict.fromkeys(("input", "preds", "y_pred"), scores),
        **dict.fromkeys(("target", "y_true"), (scores.roll(1, 0) > 0.5).long()),
    }


def _numbers(device: str) -> dict[str, Any]:
    values = torch.rand(_BATCH * 4, device=device)
    return {
        **dict.fromkeys(("input", "preds", "x", "p"), values),
        **dict.fromkeys(("target", "y", "q"), values.roll(1)),
    }


def _sequences(device: str) -> dict[str, Any]:
    rows = torch.randn(_BATCH, _LENGTH, _WIDTH, device=device)
    names = ("x", "input", "tokens", "inputs", "query", "src", "queries", "key", "value", "predictions")
    return {
        **dict.fromkeys(names, rows),
        **dict.fromkeys(("tgt", "context", "targets"), rows.flip(0)),
        "mask": torch.ones(_BATCH, _LENGTH, dtype=torch.bool, device=device),
        "lengths": torch.ones(_BATCH, device=device),
        "wav_lens": torch.ones(_BATCH, device=device),
        "length": torch.ones(_BATCH, device=device),
    }


def _tokens(device: str) -> dict[str, Any]:
    ids = torch.randint(0, 16, (_BATCH, _LENGTH), device=device)
    return dict.fromkeys(("x", "input_ids", "tokens", "ids", "seq", "labels"), ids)


def _waves(device: str) -> dict[str, Any]:
    wave = torch.randn(_BATCH, 8000, device=device)
    return {
        **dict.fromkeys(("x", "wav", "waveform", "waveforms", "preds", "input", "signal", "source"), wave),
        **dict.fromkeys(("target", "estimate_source"), wave.roll(1, 0)),
        **dict.fromkeys(("lengths", "wav_len", "wav_lens"), torch.ones(_BATCH, device=device)),
        "fs": 8000,
    }


def _points(device: str) -> dict[str, Any]:
    points = torch.rand(_BATCH, 8, 2, device=device)
    names = ("points", "points1", "pts1", "points_src", "x1", "kp1", "points_1", "x", "input", "lafs")
    return {
        **dict.fromkeys(names, points),
        **dict.fromkeys(("points2", "pts2", "points_dst", "x2", "kp2", "points_2"), points.flip(1)),
        "boxes": torch.tensor([[[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]], device=device),  # noqa: TL213
        "H": torch.eye(3, device=device).repeat(_BATCH, 1, 1),
        "trans_01": torch.eye(3, device=device).repeat(_BATCH, 1, 1),
        "quaternion": torch.rand(_BATCH, 4, device=device),
        "desc1": torch.rand(8, 16, device=device),
        "desc2": torch.rand(8, 16, device=device),
    }


def _volumes(device: str) -> dict[str, Any]:
    volume = torch.rand(2, 1, _SIDE, _SIDE, _SIDE, device=device)
    names = ("x", "input", "img", "volume", "image", "y_pred")
    return {**dict.fromkeys(names, volume), "target": volume.flip(0), "y": (volume > 0.5).float()}


SCENES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    function.__name__.lstrip("_"): function
    for function in (
        _images,
        _segmentation,
        _one_hot,
        _classes,
        _binary,
        _labels,
        _numbers,
        _sequences,
        _tokens,
        _waves,
        _points,
        _volumes,
    )
}


def filled(function: Callable[..., Any], scene: Mapping[str, Any], *, inputs: int = 0) -> dict[str, Any]:
    """Return keyword arguments for each parameter that has no default.

    The first ``inputs`` parameters may have any name: they get the first inputs of the scene.

    Raises:
        LookupError: the scene and the options have no value for a parameter.
    """
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    tensors = iter([value for value in scene.values() if isinstance(value, Tensor)])
    given: dict[str, Any] = {}
    for index, parameter in enumerate(parameters):
        if parameter.name in scene:
            given[parameter.name] = scene[parameter.name]
        elif parameter.default is not parameter.empty:
            continue
        elif parameter.name in OPTIONS:
            given[parameter.name] = OPTIONS[parameter.name]
        elif index < inputs:
            given[parameter.name] = next(tensors)
        else:
            raise LookupError(parameter.name)
    return given


def options(constructor: Callable[..., Any]) -> dict[str, Any]:
    """Return keyword arguments for the parameters of a constructor that have no default.

    Raises:
        LookupError: there is none for a parameter.
    """
    return filled(constructor, {})


def scenes(device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every scene, made anew on a device."""
    for name, make in SCENES.items():
        yield name, make(device)
