"""What of each library is run: its public modules and functions, and a few loops that are no single call."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.runtime import arguments

LIBRARIES: Mapping[str, Sequence[str]] = {
    "diffusers": ("diffusers.schedulers",),
    "gpytorch": ("gpytorch.kernels",),
    "kornia": (
        "kornia.augmentation",
        "kornia.color",
        "kornia.contrib",
        "kornia.core.ops",
        "kornia.enhance",
        "kornia.feature",
        "kornia.filters",
        "kornia.geometry",
        "kornia.geometry.bbox",
        "kornia.geometry.calibration",
        "kornia.geometry.camera",
        "kornia.geometry.conversions",
        "kornia.geometry.depth",
        "kornia.geometry.epipolar",
        "kornia.geometry.homography",
        "kornia.geometry.linalg",
        "kornia.geometry.subpix",
        "kornia.geometry.transform",
        "kornia.losses",
        "kornia.metrics",
        "kornia.morphology",
    ),
    "monai": (
        "monai.losses",
        "monai.metrics",
        "monai.networks.blocks",
        "monai.networks.layers",
        "monai.networks.nets",
        "monai.transforms",
        "monai.transforms.utils",
    ),
    "pytorch_metric_learning": (
        "pytorch_metric_learning.distances",
        "pytorch_metric_learning.losses",
        "pytorch_metric_learning.miners",
        "pytorch_metric_learning.reducers",
        "pytorch_metric_learning.regularizers",
    ),
    "segmentation_models_pytorch": (
        "segmentation_models_pytorch",
        "segmentation_models_pytorch.losses",
        "segmentation_models_pytorch.metrics",
    ),
    "speechbrain": ("speechbrain.nnet", "speechbrain.lobes.features", "speechbrain.processing"),
    "torchmetrics": (
        "torchmetrics",
        "torchmetrics.classification",
        "torchmetrics.clustering",
        "torchmetrics.functional",
        "torchmetrics.functional.audio",
        "torchmetrics.functional.classification",
        "torchmetrics.functional.clustering",
        "torchmetrics.functional.image",
        "torchmetrics.functional.nominal",
        "torchmetrics.functional.pairwise",
        "torchmetrics.functional.regression",
        "torchmetrics.functional.retrieval",
        "torchmetrics.functional.segmentation",
        "torchmetrics.regression",
        "torchmetrics.segmentation",
    ),
    "vector_quantize_pytorch": ("vector_quantize_pytorch",),
    "vit_pytorch": ("vit_pytorch",),
    "x_transformers": ("x_transformers",),
    "botorch": (
        "botorch.models.kernels",
        "botorch.test_functions",
        "botorch.utils",
        "botorch.utils.multi_objective",
        "botorch.utils.probability",
    ),
    "colt5_attention": ("colt5_attention",),
    "denoising_diffusion_pytorch": ("denoising_diffusion_pytorch",),
    "e3nn": ("e3nn.math", "e3nn.nn", "e3nn.o3"),
    "entmax": ("entmax",),
    "linear_operator": ("linear_operator.functions", "linear_operator.operators", "linear_operator.utils"),
    "local_attention": ("local_attention",),
    "perceiver_pytorch": ("perceiver_pytorch",),
    "performer_pytorch": ("performer_pytorch",),
    "piq": ("piq",),
    "pypose": ("pypose", "pypose.basics", "pypose.function", "pypose.module"),
    "pyro": ("pyro.distributions", "pyro.nn", "pyro.ops"),
    "reformer_pytorch": ("reformer_pytorch",),
    "roma": ("roma",),
    "segment_anything": ("segment_anything.modeling",),
    "torchcrf": ("torchcrf",),
    "asteroid_filterbanks": ("asteroid_filterbanks",),
    "auraloss": ("auraloss.freq", "auraloss.perceptual", "auraloss.time", "auraloss.utils"),
    "deepctr_torch": ("deepctr_torch.layers", "deepctr_torch.models"),
    "effdet": (
        "effdet.anchors",
        "effdet.efficientdet",
        "effdet.loss",
        "effdet.object_detection",
        "effdet.soft_nms",
    ),
    "egnn_pytorch": ("egnn_pytorch",),
    "equiformer_pytorch": ("equiformer_pytorch", "equiformer_pytorch.utils"),
    "FrEIA": ("FrEIA.modules",),
    "geoopt": ("geoopt.layers", "geoopt.linalg", "geoopt.manifolds"),
    "lightly": (
        "lightly.loss",
        "lightly.models.modules",
        "lightly.models.utils",
        "lightly.utils",
        "lightly.utils.benchmarking",
    ),
    "neuralop": ("neuralop.layers", "neuralop.losses", "neuralop.models"),
    "nflows": ("nflows.distributions", "nflows.nn.nets", "nflows.transforms", "nflows.utils"),
    "nnAudio": ("nnAudio.features", "nnAudio.utils"),
    "normflows": (
        "normflows.distributions",
        "normflows.flows",
        "normflows.flows.neural_spline",
        "normflows.nets",
        "normflows.transforms",
        "normflows.utils",
    ),
    "open_clip": ("open_clip.loss", "open_clip.model", "open_clip.modified_resnet", "open_clip.transformer"),
    "pytorch_tabnet": (
        "pytorch_tabnet.metrics",
        "pytorch_tabnet.multitask",
        "pytorch_tabnet.sparsemax",
        "pytorch_tabnet.tab_network",
    ),
    "pytorch_toolbelt": (
        "pytorch_toolbelt.inference",
        "pytorch_toolbelt.losses",
        "pytorch_toolbelt.modules",
        "pytorch_toolbelt.utils",
    ),
    "routing_transformer": ("routing_transformer", "routing_transformer.routing_transformer"),
    "se3_transformer_pytorch": ("se3_transformer_pytorch", "se3_transformer_pytorch.utils"),
    "super_image": ("super_image.models",),
    "soft_moe_pytorch": ("soft_moe_pytorch",),
    "st_moe_pytorch": ("st_moe_pytorch", "st_moe_pytorch.st_moe_pytorch"),
    "torch_harmonics": ("torch_harmonics", "torch_harmonics.examples"),
    "torchani": ("torchani", "torchani.aev", "torchani.nn", "torchani.potentials", "torchani.utils"),
    "torchjd": ("torchjd.aggregation", "torchjd.linalg", "torchjd.scalarization"),
    "zuko": ("zuko.distributions", "zuko.flows", "zuko.nn", "zuko.transforms"),
}
"""The packages, by the name that they are imported by, with the modules whose public names are run.

Of a package, the modules in it are looked through as well if it exports nothing itself.
"""

Run = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """One call to make.

    ``name`` is the dotted name of what is called, with the scene that its inputs are from. ``prepare`` makes
    everything on a device and gives the call; it raises if the subject cannot be called so.
    """

    name: str
    prepare: Callable[[str], Run]


def subjects(library: str) -> Iterator[Subject]:
    """Yield the subjects of one library, whether or not they can be called."""
    seen: set[Any] = set()
    for dotted in LIBRARIES[library]:
        for module in _modules(dotted):
            for name, value in sorted(vars(module).items()):
                if name.startswith("_") or not (getattr(value, "__module__", "") or "").startswith(library):
                    continue
                if not (inspect.isclass(value) or inspect.isfunction(value)) or value in seen:
                    continue
                seen.add(value)
                yield from _of(f"{value.__module__}.{name}", value)


def _modules(dotted: str) -> Iterator[ModuleType]:
    """Yield a module, and those of a package that are to be looked through."""
    module = importlib.import_module(dotted)
    yield module
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        try:
            yield importlib.import_module(f"{dotted}.{info.name}")
        except Exception:  # an extra that is not installed
            continue


def _of(name: str, value: Any) -> Iterator[Subject]:
    methods = [inspect.getattr_static(value, name, None) for name in ("set_timesteps", "step")]
    if None not in methods:
        yield Subject(f"{name} sampling", lambda device: _sampling(value, device))
        return
    for scene in arguments.SCENES:
        if inspect.isfunction(value):
            yield Subject(f"{name} {scene}", _call_of(value, scene))
        elif any("__call__" in vars(base) for base in value.__mro__):
            yield Subject(f"{name} {scene}", _module_of(value, scene))


def _call_of(function: Callable[..., Any], scene: str) -> Callable[[str], Run]:
    def prepare(device: str) -> Run:
        given = _inputs(function, scene, device)
        return lambda: function(**given)

    return prepare


def _module_of(cls: type[Any], scene: str) -> Callable[[str], Run]:
    def prepare(device: str) -> Run:
        made = cls(**arguments.options(cls))
        if isinstance(made, nn.Module):
            made.to(device)
        call = made.update if hasattr(made, "update") and hasattr(made, "compute") else None
        forward = call or getattr(made, "forward", None) or type(made).__call__.__get__(made)
        given = _inputs(forward, scene, device)

        def run() -> None:
            for training in (True, False):
                if isinstance(made, nn.Module):
                    made.train(training)
                with torch.set_grad_enabled(training):
                    result = made(**given)
                if training:
                    _backward(result)
            if call is not None:
                made.compute()

        return run

    return prepare


def _inputs(function: Callable[..., Any], scene: str, device: str) -> dict[str, Any]:
    """Return keyword arguments of a scene, among them a tensor."""
    given = arguments.filled(function, arguments.SCENES[scene](device), inputs=2)
    if not any(isinstance(value, Tensor) for value in given.values()):
        raise LookupError("no tensor among its arguments")
    return given


def _backward(result: Any) -> None:
    """Compute gradients of the first output that has any."""
    outputs = (
        result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else (result,)
    )
    for output in outputs:
        if isinstance(output, Tensor) and output.requires_grad:
            output.float().sum().backward()
            return


def _sampling(cls: type[Any], device: str) -> Run:
    """Return a sampling loop with a scheduler of diffusers, and a stand-in for the model."""
    scheduler = cls()

    def run() -> None:
        try:
            scheduler.set_timesteps(5, device=device)
        except TypeError:
            scheduler.set_timesteps(5)
        sample = torch.randn(2, 3, 16, 16, device=device) * getattr(scheduler, "init_noise_sigma", 1.0)
        for step in scheduler.timesteps:
            model_input = scheduler.scale_model_input(sample, step)
            sample = scheduler.step(model_input * 0.1, step, sample).prev_sample
        noise = torch.randn_like(sample)
        steps = scheduler.timesteps[:2].to(device)
        if hasattr(scheduler, "add_noise"):
            scheduler.add_noise(sample, noise, steps)

    return run
