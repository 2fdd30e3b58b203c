"""Records what a program computes in its first steps, and compares it with what another run recorded.

The original's run writes a trace: the state from which it starts, and the results of its steps. A variant's
run starts from that state, so that a fix that draws fewer random numbers while the model is built still
computes the same: every module that the program calls from outside any other gets, at its first call, the
parameters and buffers that the original's module of the same number had, matched by name, and the streams
of random numbers are put where the original's were. A perturbed run of the original starts a rounding error
away from there: what becomes of that in its results is what no fix can be blamed for.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import is_lazy
from torch.optim import optimizer as optimizers

from torchlint.verify.worker import device, sharding
from torchlint.verify.worker.losses import Losses, in_backward
from torchlint.verify.worker.programs import tensors

FLOOR = 1e-3
"""The share of the largest tensor of its kind below which a tensor's own size is too small to compare with:
a gradient that is zero but for rounding differs from itself by anything."""
GRADIENT_STEPS = 2
"""How many steps' gradients are kept."""
SAMPLE = 64
"""How many numbers it takes to speak of their mean and spread."""
MOST_ELEMENTS = 1 << 16
"""How much of one tensor is kept; of larger ones, elements at even distances."""


class Trace:
    """The results of one run, by what they are: ``loss of step 3``, ``gradient of 0.fc.weight, step 1``."""

    def __init__(self, path: Path, steps: int, role: str, kinds: Sequence[str] = ()) -> None:
        self._kinds = kinds
        self._path, self._wanted = path, steps
        self._reference = None if role == "reference" else torch.load(path, mmap=True, weights_only=False)
        self._perturbed = role == "perturbed"
        self.roots: list[torch.nn.Module] = []
        """The modules that the program calls from outside of any other."""
        self.optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        """Those that stepped and are still there."""
        self._names: dict[int, str] = {}
        self._starts: list[dict[str, Any]] = []
        self._found: dict[str, torch.Tensor] = {}
        self._places: dict[str, str] = {}
        self._streams: dict[str, Any] = {}
        self._depth = 0
        self._step = 1
        self._handles: list[Any] = []
        self._losses = Losses(self._keep_loss)
        self._compile = torch.compile
        self._initialize: Callable[..., Any] = LazyModuleMixin._infer_parameters
        self._tf32 = (True, False)

    # --- recording --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the program through torch's global hooks until ``finish``."""
        self._watch_modules(self._enters, self._leaves)
        self._handles.append(optimizers.register_optimizer_step_pre_hook(self._before_step))
        self._watch_compiling()
        self._losses.start()
        self._isolate_layers()
        self._watch_lazy_layers()
        # Ten bits of mantissa would make every other order of summation look like a change.
        self._tf32 = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    def began(self, state: Any) -> None:
        """Take the program's own state before its first step, where the program is one that has it."""
        found = tensors(state)
        self._synchronize_start([(name, tensor) for name, tensor in found])
        self._names |= {id(tensor): name for name, tensor in found}

    def returned(self, result: Any) -> None:
        """Take what the program's step returned."""
        if self._step <= self._wanted:
            for name, tensor in tensors(result):
                self._keep(f"result {name} of step {self._step}".replace("  ", " "), tensor)

    def boundary(self) -> bool:
        """Take note of the end of a step; return whether more are wanted."""
        if self._step <= self._wanted:
            self._step += 1
            if self._step > self._wanted:
                self.finish()
        return self._step <= self._wanted

    def finish(self) -> None:
        """Stop following, and keep the parameters as they are now."""
        if not self._handles:
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._losses.stop()
        torch.compile = self._compile
        LazyModuleMixin._infer_parameters = self._initialize
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = self._tf32
        for number, root in enumerate(self.roots):
            # Not the buffers: the running mean of a batch norm holds what a bias in front of it added, and
            # the outputs are the same without either.
            for name, tensor in sharding.parameters(root):
                self._keep(f"{number}.{name} after {self._step - 1} steps", tensor)
        self._streams = device.streams()
        if self._reference is None:
            torch.save(
                {
                    "starts": self._starts,
                    "found": self._found,
                    "places": self._places,
                    "streams": self._streams,
                    "names": set(self._names.values()),
                },
                self._path,
            )

    def _enters(self, module: torch.nn.Module, arguments: Any) -> None:
        if in_backward():
            return
        self._depth += 1
        if self._depth > 1 or any(module is root for root in self.roots):
            return
        number = len(self.roots)
        self.roots.append(module)
        state = sharding.state(module)
        self._names |= {id(tensor): f"{number}.{name}" for name, tensor in state}
        self._synchronize_start(state)

    def _leaves(self, module: torch.nn.Module, arguments: Any, result: Any) -> None:
        if in_backward():
            return
        self._depth -= 1
        if self._depth == 0 and self._step <= self._wanted:
            for name, tensor in tensors(result):
                self._keep(self._fresh(f"output {name} of step {self._step}".replace("  ", " ")), tensor)

    def _before_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        self.optimizers.add(optimizer)
        if self._step > min(GRADIENT_STEPS, self._wanted):
            return
        if any(map(sharding.flattened, self.roots)):
            return
        for group in optimizer.param_groups:
            for number, parameter in enumerate(group["params"]):
                if parameter.grad is not None:
                    name = self._names.get(id(parameter), f"parameter {number} of the optimizer")
                    self._keep(f"gradient of {name}, step {self._step}", parameter.grad)

    def _watch_modules(self, enters: Callable[..., Any], leaves: Callable[..., Any]) -> None:
        self._handles += [
            modules.register_module_forward_pre_hook(enters),
            modules.register_module_forward_hook(leaves, always_call=True),
        ]

    def _watch_compiling(self) -> None:
        """Keep the hooks out of what is compiled: there they would become part of the graph.

        Only a program that compiles pays for it, since telling the compiler means importing it.
        """

        def compile_(*arguments: Any, **keywords: Any) -> Any:
            torch.compile = self._compile
            if self._handles:
                for handle in self._handles[:2]:
                    handle.remove()
                del self._handles[:2]
                disable = torch.compiler.disable
                self._watch_modules(disable(self._enters), disable(self._leaves))
            return self._compile(*arguments, **keywords)

        torch.compile = compile_

    def _keep_loss(self, loss: torch.Tensor) -> None:
        if self._step <= self._wanted:
            self._keep(self._fresh(f"loss of step {self._step}"), loss)

    def _isolate_layers(self) -> None:
        """Let every layer draw its first values from a stream of its own, seeded by one number.

        A layer that a fix takes a bias from draws fewer numbers, and would shift all that is drawn later.
        """
        seen: set[type] = set()
        for layer in (item for item in vars(torch.nn).values() if isinstance(item, type)):
            for owner in layer.__mro__:
                if "reset_parameters" in vars(owner) and owner not in seen:
                    seen.add(owner)
                    owner.reset_parameters = _isolated(owner.reset_parameters)  # type: ignore[attr-defined]

    def _watch_lazy_layers(self) -> None:
        """Let a layer that gets its parameters in its first call start where the original's did."""

        def initialize(layer: Any, *arguments: Any, **keywords: Any) -> None:
            self._initialize(layer, *arguments, **keywords)
            if self._handles:
                self._synchronize_start(sharding.state(layer))

        LazyModuleMixin._infer_parameters = initialize

    def _fresh(self, key: str) -> str:
        number, name = 2, key
        while name in self._found:
            name, number = f"{key} ({number})", number + 1
        return name

    def _keep(self, key: str, tensor: torch.Tensor) -> None:
        if self._kinds and _kind(key) not in self._kinds:
            return
        tensor = sharding.whole(tensor.detach())
        if tensor.is_sparse or tensor.is_quantized or tensor.is_meta:
            return
        self._places[key] = tensor.device.type
        if tensor.numel() > MOST_ELEMENTS:
            tensor = tensor.flatten()[:: tensor.numel() // MOST_ELEMENTS]
        self._found[key] = tensor.to("cpu", copy=True)

    def _synchronize_start(self, state: list[tuple[str, torch.Tensor]]) -> None:
        """Keep this start of the original, or take over the one that the original had here."""
        state = [(name, tensor) for name, tensor in state if not is_lazy(tensor)]
        if self._reference is None:
            kept = {name: sharding.whole(tensor.detach()).to("cpu", copy=True) for name, tensor in state}
            self._starts.append({"state": kept, "streams": device.streams()})
            return
        number = len(self._starts)
        self._starts.append({})
        if number >= len(self._reference["starts"]):
            return
        start = self._reference["starts"][number]
        with torch.no_grad():
            for name, tensor in state:
                theirs = start["state"].get(name)
                if theirs is not None and theirs.shape == tensor.shape and theirs.dtype == tensor.dtype:
                    sharding.fill(tensor, perturbed(theirs) if self._perturbed else theirs)
        device.restore_streams(start["streams"])

    # --- comparing --------------------------------------------------------------------------------------

    def compare(self) -> dict[str, Any]:
        """Return how this run's results differ from the reference's.

        ``differences`` has, for each result, the norm of the difference over the norm of the original's
        (over a share of the largest norm of its kind, where that is more); infinite where shapes or the
        places of NaN differ. Results of parameters that only the original has are left out.
        """
        if self._reference is None:
            return {"steps": self._step - 1, "bitwise": True, "streams_differ": False, "kinds_agree": True}
        # Several runs are compared at once: threads would only get into each other's way.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._compared(self._reference)
        finally:
            torch.set_num_threads(threads)

    def _compared(self, reference: dict[str, Any]) -> dict[str, Any]:
        theirs, places = reference["found"], reference["places"]
        gone = reference["names"] - set(self._names.values())
        shared = [key for key in theirs if key in self._found]
        missing = [key for key in theirs if key not in self._found and not _about(key, gone)]
        missing += [key for key in self._found if key not in theirs]
        sizes: dict[str, float] = {}
        for key in shared:
            sizes[_kind(key)] = max(sizes.get(_kind(key), 0.0), _norm(theirs[key]))
        differences = {
            key: _difference(theirs[key], self._found[key], FLOOR * sizes[_kind(key)]) for key in shared
        }
        differences |= dict.fromkeys(missing, math.inf)
        kinds = all(
            theirs[key].shape == self._found[key].shape
            and theirs[key].dtype == self._found[key].dtype
            and places[key] == self._places[key]
            for key in shared
        )
        return {
            "steps": self._step - 1,
            "bitwise": not missing and all(_same(theirs[key], self._found[key]) for key in shared),
            "streams_differ": device.tensor_streams_differ(self._streams, reference["streams"]),
            "kinds_agree": kinds and not missing,
            "moments": max((_moments(theirs[key], self._found[key]) for key in shared), default=0.0),
            "coarsest": _coarsest(reference["found"]),
            "differences": {key: value for key, value in differences.items() if value},
        }


def perturbed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor with the last bit of its elements moved, up and down in turn.

    Whole numbers are left alone: no rounding made them, and a label of 1 must not become more than 1.
    """
    if not tensor.is_floating_point():
        return tensor
    signs = torch.ones_like(tensor)
    signs.view(-1)[::2] = -1
    moved = tensor * (1 + signs * torch.finfo(tensor.dtype).eps)
    return torch.where(tensor == tensor.round(), tensor, moved)


def _isolated(reset: Callable[[Any], None]) -> Callable[[Any], None]:
    def reset_parameters(layer: Any) -> None:
        seed = int(torch.randint(1 << 62, ()))
        states = device.streams()
        torch.manual_seed(seed)
        reset(layer)
        device.restore_streams(states)

    return reset_parameters


def _kind(key: str) -> str:
    if key.startswith(("loss", "gradient", "output", "result")):
        return key.split()[0]
    return "parameter"


def _about(key: str, names: set[str]) -> bool:
    """Return whether a result is one of a parameter or buffer among ``names``."""
    return any(word.strip(",") in names for word in key.split())


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(torch.nan_to_num(_wide(tensor)))) if tensor.numel() else 0.0


def _difference(theirs: torch.Tensor, ours: torch.Tensor, floor: float) -> float:
    if theirs.shape != ours.shape:
        return math.inf
    one, other = _wide(theirs), _wide(ours)
    if not torch.equal(torch.isfinite(one), torch.isfinite(other)):
        return math.inf
    gap = _norm(torch.nan_to_num(one, posinf=0, neginf=0) - torch.nan_to_num(other, posinf=0, neginf=0))
    return gap / max(_norm(one), floor, 1e-30) if gap else 0.0


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(torch.equal(torch.nan_to_num(one), torch.nan_to_num(other)))


def _moments(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return how far mean and spread are apart, in standard deviations of the original;
    0 for a few numbers.
    """
    if min(one.numel(), other.numel()) < SAMPLE:
        return 0.0
    a, b = torch.nan_to_num(_wide(one)).flatten(), torch.nan_to_num(_wide(other)).flatten()
    spread = max(float(a.std()), 1e-30)
    return max(abs(float(a.mean() - b.mean())), abs(float(a.std() - b.std()))) / spread


def _coarsest(found: dict[str, torch.Tensor]) -> float:
    """Return the relative step between numbers of the coarsest type among the results."""
    floating = [tensor.dtype for tensor in found.values() if tensor.is_floating_point()]
    return max((torch.finfo(dtype).eps for dtype in floating), default=0.0)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return torch.view_as_real(tensor.to(torch.complex128))
    return tensor.to(torch.float64)
