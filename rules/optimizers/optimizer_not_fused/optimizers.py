"""The optimizers of torch that a file makes: of which class, for which parameters, in which form.

Which releases have which form was read off their sources and documentation: ``fused`` came with torch 1.13
(Adam), 2.0 (AdamW), 2.3 (SGD) and 2.13 (Adagrad on GPUs), and fused kernels for the CPU with 2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.conventions import names_accelerator
from torchlint.semantics.evidence import Evidence, evidence, named_accelerators
from torchlint.semantics.identifiers import identifiers, imports, options
from torchlint.semantics.lexicon import Role, has, words
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_LEGACY = "_multi_tensor"
FUSED_SINCE = {"Adam": "1.13", "AdamW": "2.0", "SGD": "2.3", "Adagrad": "2.13"}
"""The first release in which a class has a fused kernel for GPUs."""

TAKES_FUSED_SINCE = {"Adam": "1.13", "AdamW": "2.0", "SGD": "2.3", "Adagrad": "2.4"}
"""The first release in which a class has the parameter: that of ``Adagrad`` was for the CPU alone at first.
``python -m benchmarks.apis`` reads it from the releases."""

_FUSED_ON_CPU_SINCE = "2.4"
_MULTI_TENSOR = frozenset(
    {
        *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
        *("RMSprop", "Rprop", "SGD"),
    }
)
# What steps the parameters itself, in its own way, or on devices that have no fused kernels.
_OTHER_ENGINES = ("torch_xla", "torch_npu", "torch_directml", "higher", "deepspeed", "colossalai")
# What puts models and batches on devices.
_PLACING = ("accelerate", "lightning", "pytorch_lightning", "torch.distributed")
# One of these is in the text of a file that does, or that names a device.
_SPEAKING = ("accelerat", "cuda", "device", "lightning", "torch.distributed")


@dataclass(frozen=True, slots=True)
class MadeOptimizer:
    """A call that makes an optimizer of torch which has a multi-tensor form.

    ``legacy`` if it is one of the private ``torch.optim._multi_tensor``.
    """

    call: cst.Call
    name: str
    legacy: bool
    module: Module

    @property
    def fusible_since(self) -> str | None:
        """The first release in which this class has a fused kernel for GPUs; None if none has."""
        return FUSED_SINCE.get(self.name)

    @property
    def fusible_anywhere(self) -> bool:
        """Whether all releases that may run the program have the fused form, for GPUs and for the CPU."""
        since, target = self.fusible_since, self.module.target
        return since is not None and target.at_least(since) and target.at_least(_FUSED_ON_CPU_SINCE)

    @property
    def steps_in_one_pass(self) -> bool:
        """Whether the multi-tensor form already is a single operation: ``SGD`` of the learning rate alone."""
        if self.name != "SGD":
            return False
        found = (self.module.argument(self.call, name) for name in ("momentum", "weight_decay"))
        return all(argument.constant == 0 for argument in found)

    @property
    def loses_first_momentum(self) -> bool:
        """Whether a first step that a scaler leaves out leaves the momentum of a fused ``SGD`` undefined.

        The fused kernel is called all the same, and returns without a look at the buffers that were made for
        it; the next step takes what lies in them for the momentum. So it is up to torch 2.13 at least.
        """
        if self.name != "SGD" or self.module.argument(self.call, "momentum").constant == 0:
            return False
        return _may_scale_loss(self.module)

    @property
    def differentiable(self) -> bool:
        """Whether steps may be differentiated, for which only the form of single tensors will do."""
        argument = self.module.argument(self.call, "differentiable")
        return not argument.absent and argument.constant is not False

    @property
    def on_accelerator(self) -> bool:
        """Whether it steps the parameters of models that the file puts on an accelerator."""
        module = self.module
        if evidence(module) is not Evidence.ACCELERATOR or module.tree.mentions("sparse=True"):
            return False
        given = module.argument(self.call, "params").node
        if imports(module, _OTHER_ENGINES) or given is None:
            return False
        return self._of_models(given)

    def _of_models(self, given: cst.BaseExpression) -> bool:
        """Return whether parameters are, or may be, those of a model that is not on the CPU."""
        value = self.module.value(given)
        places = {value.device, value.item.device if value.item is not None else Device.UNKNOWN}
        if value.kind is Kind.TENSOR or Device.CPU in places:
            return False
        if Device.ACCELERATOR not in places and not any(
            map(_names_device, (self.module, *self.module.companions(*_SPEAKING)))
        ):
            return False
        return not isinstance(given, (cst.List, cst.Tuple)) or any(
            isinstance(element, cst.StarredElement)
            or not isinstance(element.value, (cst.Name, cst.Attribute, cst.Subscript))
            for element in given.elements
        )


@remembered
def _may_scale_loss(module: Module) -> bool:
    """Return whether something scales the loss, or may:
    a step whose gradients are infinite is left out then.
    """
    names = identifiers(module) | options(module)
    if "Accelerator" in names or any(_speaks_of_scaling(name) for name in names):
        return True
    # ``args.amp``
    return "amp" in names and any(
        attribute.attr.value == "amp" and module.qualified(attribute) is None
        for attribute in module.tree.nodes(cst.Attribute)
    )


def _speaks_of_scaling(name: str) -> bool:
    said = set(words(name))
    return has(name, Role.SCALER, Role.FLOAT16) or {"mixed", "precision"} <= said or {"amp"} < said


@remembered
def _names_device(module: Module) -> bool:
    """Return whether a file speaks of devices otherwise than to put one thing where another is."""
    if named_accelerators(module) or imports(module, _PLACING):
        return True
    # What asks tensors where they are, to put others there, goes wherever they go.
    asking = {attribute.attr for attribute in module.tree.attributes_by_name.get("device", ())}
    asking |= {
        argument.keyword
        for argument in module.tree.nodes(cst.Arg)
        if argument.keyword is not None
        and last_name(argument.value) == "device"
        and isinstance(argument.value, cst.Attribute)
    }
    return any(
        has(name.value, Role.ACCELERATOR) or names_accelerator(name.value) or "device" in words(name.value)
        for name in module.tree.nodes(cst.Name)
        if name not in asking
    )


def made_optimizer(module: Module, call: cst.Call) -> MadeOptimizer | None:
    """Return the optimizer of torch with a multi-tensor form that a call makes."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value not in _MULTI_TENSOR:
        return None
    dotted = module.qualified(call.func)
    if dotted is None:
        # A class by another name: ``make = torch.optim.Adam``. What evaluates names is asked last.
        if not isinstance(call.func, cst.Name) or not _may_hold_parameters(call):
            return None
        value = module.value(call.func)
        if value.kind is not Kind.CLASS or value.definition is not None:
            return None
        dotted = value.cls
    package, _, name = (dotted or "").rpartition(".")
    if name not in _MULTI_TENSOR or not (package + ".").startswith("torch.optim."):
        return None
    return MadeOptimizer(call, name, is_multi_tensor(module, call.func), module)


def _may_hold_parameters(call: cst.Call) -> bool:
    """Return whether the first argument is called after parameters, or picks some."""
    name = last_name(call.args[0].value) or "" if call.args else ""
    return "param" in name or name == "filter"


def is_multi_tensor(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a class is spelt as one of the private ``torch.optim._multi_tensor``."""
    root = node
    while isinstance(root, cst.Attribute):
        if root.attr.value == _LEGACY:
            return True
        root = root.value
    return isinstance(root, cst.Name) and any(
        _LEGACY in (binding.imported or "") for binding in module.bindings(root)
    )
