"""Whether a file, or a place in it, ever runs on an accelerator: what host–device rules ask first."""

from __future__ import annotations

import enum

import libcst as cst

from torchlint.semantics.api.results import MOVES_TO_ACCELERATOR, TENSOR_METHODS
from torchlint.semantics.compilation import compiled
from torchlint.semantics.contexts import imports_test_library, stays_on_host
from torchlint.semantics.conventions import ACCELERATORS, names_accelerator
from torchlint.semantics.declared import is_declared
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.inference import Inference
from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.module import Module, Part
from torchlint.semantics.names import Names, all_parameters
from torchlint.semantics.remembered import remembered
from torchlint.semantics.serving import (
    applies_operator,
    is_of_engine,
    operations,
    stands_in_elsewhere,
)
from torchlint.semantics.spellings import is_place_of_model, last_name
from torchlint.semantics.values import Device, Kind
from torchlint.syntax import SyntaxTree

# Packages whose presence means that some framework places the model and the batches.
_FRAMEWORKS = (
    "accelerate",
    "lightning",
    "deepspeed",
    "apex",
    "horovod",
    "fairscale",
    "colossalai",
    "transformers.Trainer",
    "transformers.TrainingArguments",
    "transformers.Seq2SeqTrainer",
    "transformers.Seq2SeqTrainingArguments",
    "torch.distributed",
    "torch.nn.parallel",
    "torch.cuda",
    "torch.xpu",
    "torch.mps",
    "torch.accelerator",
    # What runs on accelerators only.
    "flash_attn",
    "habana_frameworks",
    "sglang",
    "torch_mlu",
    "torch_musa",
    "torch_npu",
    "torch_xla",
    "triton",
    "vllm",
)
# One of these stands in the text of every file that shows an accelerator.
_PLACING = (
    *sorted(ACCELERATORS),
    *("device", ".to", "distributed", "parallel", "Trainer", "TrainingArguments"),
    *(name for name in _FRAMEWORKS if "." not in name),
)
_ASKING_ONLY = frozenset(
    {"is_available", "manual_seed", "manual_seed_all", "device_count", "is_bf16_supported"}
)
_COMPUTING = frozenset({"torch", "torch.linalg", "torch.nn.functional"})
# Data that this file fetches itself, or takes to be in host memory.
_SHOWING_PLACE = ("loader", "from_numpy", "np.asarray", "'cpu'", '"cpu"')


class Evidence(enum.Enum):
    """What a file shows about where it runs."""

    ACCELERATOR = "accelerator"
    """Something is moved to, made on or asked of an accelerator, if only conditionally."""
    LIBRARY = "library"
    """Nothing of the sort, but the file defines modules for others to place and run."""
    CPU = "cpu"
    """It trains or runs its own models and never names a device but the CPU."""


def accelerated(module: Module) -> bool:
    """Return whether a file ever runs on an accelerator, or defines modules that others will run on one.

    So does a file of a program that runs on one, unless it feeds a model with batches that stay on the host.
    """
    return _Shown.of(module).accelerated or _companion_accelerated(module)


def evidence(module: Module) -> Evidence:
    """Return what a file, or the program that it is part of, shows about where it runs."""
    own = _Shown.of(module).evidence
    return Evidence.ACCELERATOR if own is not Evidence.ACCELERATOR and _companion_accelerated(module) else own


def placed_by_callers(module: Module) -> bool:
    """Return whether nothing shows where a file runs, while it has functions for the tensors of others."""
    return not accelerated(module) and _takes_tensors(module)


def perhaps_accelerated(module: Module) -> bool:
    """Return whether a file runs on an accelerator, or may as well be given tensors that are on one."""
    return accelerated(module) or _takes_tensors(module)


@remembered
def _takes_tensors(module: Module) -> bool:
    """Return whether a function of a file takes tensors: they are annotated so, or it has torch compute.

    What runs by itself, is a test, makes loaders or speaks of host memory shows where its tensors are.
    """
    tree, names, annotations = module.tree, module.names, module.inference.annotations
    if tree.mentions("__main__") or imports_test_library(names) or _shows_place(tree):
        return False
    for function in tree.nodes(cst.FunctionDef):
        for binding in map(names.by_node.get, all_parameters(function.params)):
            declared = annotations.of_binding(binding) if binding is not None else None
            if declared is not None and declared.kind is Kind.TENSOR:
                return True
    computing = (call for name in TENSOR_METHODS for call in tree.calls_by_name.get(name, ()))
    return any(
        call.args
        and (names.qualified(call.func) or "").rpartition(".")[0] in _COMPUTING
        and tree.enclosing(call, cst.FunctionDef) is not None
        for call in computing
    )


@remembered
def _companion_accelerated(module: Module) -> bool:
    if _feeds_own_batches(module):
        return False
    companions = module.companions(*_PLACING)
    return any(_Shown.of(other).evidence is Evidence.ACCELERATOR for other in companions)


def for_accelerator(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a place may run on an accelerator: the file may, or the place is in compiled code.

    What is compiled is made to be fast, and by others than the file itself if it names no device.
    """
    return accelerated(module) or compiled(module, node)


def on_device(module: Module, node: cst.CSTNode) -> bool:
    """Return whether an expression is a tensor that lives on an accelerator where this file has one.

    A tensor whose place the file does not show counts if the file as a whole runs on one.
    """
    return for_accelerator(module, node) and _is_off_host(module, node)


def perhaps_there(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a place may run on an accelerator, be it that its callers only know."""
    return perhaps_accelerated(module) or compiled(module, node)


def perhaps_on_device(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a tensor may live on an accelerator, be it that callers only know."""
    return perhaps_there(module, node) and _is_off_host(module, node)


def _is_off_host(module: Module, node: cst.CSTNode) -> bool:
    if module.inference.parameters.is_plain(node):
        return False
    value = module.value(node)
    return value.tensorlike and value.device is not Device.CPU


class _Shown(Part):
    """What one file shows, computed when first asked."""

    @cached_property
    def accelerated(self) -> bool:
        # That modules are defined for others is told without evaluating anything, most of the time.
        if _defined_for_others(self.tree, self.module.names, self.module.inference):
            return True
        if operations(self.module):
            return True
        functions = self.tree.nodes(cst.FunctionDef)
        if any(is_of_engine(self.module, function) for function in functions):
            return True
        if self.evidence is not Evidence.CPU:
            return True
        return any(
            applies_operator(self.module, function) or stands_in_elsewhere(self.module, function)
            for function in functions
        )

    @cached_property
    def evidence(self) -> Evidence:
        return _weighed(self.module)


def _weighed(module: Module) -> Evidence:
    """Weigh the calls, keywords, strings and imports of a file."""
    tree, names, inference = module.tree, module.names, module.inference
    if named_accelerators(module) or _imports_framework(tree, names) or _moves(tree, names, inference):
        return Evidence.ACCELERATOR
    if _has_declared_names(module):
        return Evidence.ACCELERATOR
    if tree.mentions("parameters") and any(map(is_place_of_model, tree.nodes(cst.Attribute))):
        return Evidence.ACCELERATOR
    return Evidence.LIBRARY if _defined_for_others(tree, names, inference) else Evidence.CPU


def _moves(tree: SyntaxTree, names: Names, inference: Inference) -> bool:
    for call in tree.nodes(cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute):
            name = func.attr.value
            if name in MOVES_TO_ACCELERATOR and len(call.args) <= 2:
                return True
            if name in ("to", "to_device", "move_to_device") and call.args:
                argument = call.args[0]
                value = inference.value(argument.value)
                if value.kind in (Kind.DEVICE, Kind.STRING) and value.device is Device.ACCELERATOR:
                    return True
        for arg in call.args:
            if isinstance(arg.value, cst.Name) and arg.value.value == "device":
                # Handed on to whoever places the model.
                value = inference.value(arg.value)
                if value.kind is Kind.DEVICE and value.device is Device.ACCELERATOR:
                    return True
            if arg.keyword is not None and arg.keyword.value in ("device", "map_location", "device_ids"):
                value = inference.value(arg.value)
                if value.kind in (Kind.DEVICE, Kind.STRING) and value.device is Device.ACCELERATOR:
                    return True
        dotted = names.qualified(func)
        if dotted == "torch.device":
            value = inference.value(call)
            if value.device is Device.ACCELERATOR:
                return True
        elif dotted is not None and ends(last_name(func), Role.SENDING):
            # ``batch = batch_to_device(batch)``, of another file
            given = [inference.value(arg.value) for arg in call.args]
            places = [value for value in given if value.kind in (Kind.DEVICE, Kind.STRING)]
            if given and not any(value.device is Device.CPU for value in places):
                return True
    return False


def _has_declared_names(module: Module) -> bool:
    """Return whether the configuration declares tensors of the file to be on an accelerator."""
    patterns = (*module.settings.device_names, *module.settings.known_async_helpers)
    return bool(patterns) and any(
        is_declared(module.names, node, patterns)
        for node in module.tree.nodes(cst.Name, cst.Attribute)
        if isinstance(node, (cst.Name, cst.Attribute))
    )


@remembered
def named_accelerators(module: Module) -> frozenset[str]:
    """Return the strings of a file that name an accelerator: ``cuda``, ``cuda:1``."""
    texts = (string.raw_value for string in module.tree.nodes(cst.SimpleString))
    return frozenset(filter(names_accelerator, texts))


def _imports_framework(tree: SyntaxTree, names: Names) -> bool:
    for bindings in names.module_scope.bindings.values():
        for binding in bindings:
            dotted = names.bound_name(binding) if binding.imported is not None else None
            if dotted is not None and dotted.startswith(_FRAMEWORKS):
                return True
    for attribute in tree.nodes(cst.Attribute):
        dotted = names.qualified(attribute)
        if dotted is not None and dotted.startswith(_FRAMEWORKS):
            last = dotted.rpartition(".")[2]
            if last not in _ASKING_ONLY and dotted not in _FRAMEWORKS:
                return True
    return False


def _defined_for_others(tree: SyntaxTree, names: Names, inference: Inference) -> bool:
    """Return whether the file defines modules and neither trains nor runs them itself."""
    modules = [node for node in tree.nodes(cst.ClassDef) if inference.classes.info(node).kind is Kind.MODULE]
    if imports_test_library(names):  # what a test defines is there for that test
        return False
    if not modules:
        return _trains_given_model(tree, names) or _goes_by_given_tensors(tree, inference)
    if _goes_over_loaders(tree, inference):
        return False
    for attribute in tree.attributes_by_name.get("backward", ()):
        if isinstance(tree.parent(attribute), cst.Call):
            owner = tree.enclosing(attribute, cst.ClassDef)
            if owner is None or stays_on_host(tree, inference, owner):
                return False
            kind = inference.classes.info(owner).kind
            if kind is not Kind.OBJECT and (kind is not Kind.MODULE or _is_made(tree, inference, owner)):
                return False
    guard = any(
        isinstance(node.left, cst.Name) and node.left.value == "__name__"
        for node in tree.nodes(cst.Comparison)
    )
    return not guard or not _runs_model(tree, inference)


def _goes_over_loaders(tree: SyntaxTree, inference: Inference) -> bool:
    """Return whether a file takes batches from loaders itself, and nothing in it speaks of a device."""
    if not tree.mentions("DataLoader") or any(map(tree.mentions, (".to(", ".cuda(", "device"))):
        return False
    return any(
        inference.value(loop.iter).kind is Kind.LOADER
        for loop in tree.nodes(cst.For, cst.CompFor)
        if isinstance(loop, (cst.For, cst.CompFor))
    )


def _feeds_own_batches(module: Module) -> bool:
    """Return whether a file makes the loaders itself whose batches it takes, and nobody moves those."""
    tree, qualified = module.tree, module.names.qualified
    if not _goes_over_loaders(tree, module.inference):
        return False
    calls = tree.nodes(cst.Call)
    made = any(qualified(call.func) == "torch.utils.data.DataLoader" for call in calls)
    return made and not any(ends(last_name(call.func), Role.SENDING) for call in calls)


def _goes_by_given_tensors(tree: SyntaxTree, inference: Inference) -> bool:
    """Return whether what others run makes its tensors where those are that it is given: ``device=x.device``.

    Nobody writes that for the processor alone. What trains by itself, or makes loaders, shows where it does.
    """
    if not tree.mentions(".device") or tree.mentions("__main__") or tree.mentions("DataLoader("):
        return False
    if tree.mentions(".backward(") and _shows_place(tree):
        return False
    for call in tree.nodes(cst.Call):
        for position, arg in enumerate(call.args):
            if arg.keyword is None:
                moves = (
                    isinstance(call.func, cst.Attribute) and call.func.attr.value == "to" and position == 0
                )
            else:
                moves = arg.keyword.value == "device"
            if moves and tree.enclosing(call, cst.FunctionDef) is not None:
                value = inference.value(arg.value)
                if value.kind is Kind.DEVICE and value.device is not Device.CPU:
                    return True
    return False


def _shows_place(tree: SyntaxTree) -> bool:
    """Return whether the file makes loaders, or speaks of host memory.

    ``x.numpy()`` does, while ``x.cpu().numpy()`` has tensors that may be elsewhere.
    """
    if any(map(tree.mentions_in_any_case, _SHOWING_PLACE)) and _speaks_of_place(tree):
        return True
    return any(map(_takes_from_host, tree.calls_by_name.get("numpy", ())))


def _speaks_of_place(tree: SyntaxTree) -> bool:
    """Return whether the code does, and not only what is written about it in docstrings and comments."""
    if any("loader" in name.lower() or name in ("from_numpy", "asarray") for name in tree.names_by_name):
        return True
    return any(text.raw_value == "cpu" for text in tree.nodes(cst.SimpleString))


def _takes_from_host(call: cst.Call) -> bool:
    """Return whether a call of ``numpy()`` takes a tensor that it does not copy to the host itself."""
    owner: cst.BaseExpression = call
    while isinstance(owner, cst.Call) and isinstance(owner.func, cst.Attribute):
        if owner.func.attr.value == "cpu":
            return False
        owner = owner.func.value
    return True


def _trains_given_model(tree: SyntaxTree, names: Names) -> bool:
    """Return whether a class optimizes a model that it is given, and gets its data from others as well.

    Whoever makes the model and the data puts both on a device. A loader would show what is not moved.
    """
    if tree.mentions("__main__") or _shows_place(tree):
        return False
    if tree.mentions(".step(") and _steps_given_optimizer(tree, names):
        return True
    if not tree.mentions(".backward("):
        return False
    for call in tree.nodes(cst.Call):
        match call:
            case cst.Call(
                args=[cst.Arg(value=cst.Call(func=cst.Attribute(value=cst.Name() as model, attr=method))), *_]
            ) if method.value == "parameters" and (names.qualified(call.func) or "").startswith(
                "torch.optim."
            ):
                bindings = names.bindings(model)
                if bindings and all(
                    isinstance(binding.node, cst.Param)
                    and tree.enclosing(binding.node, cst.ClassDef) is not None
                    for binding in bindings
                ):
                    return True
    return False


def _steps_given_optimizer(tree: SyntaxTree, names: Names) -> bool:
    """Return whether a class steps an optimizer, and the file makes neither one nor layers of a model."""
    steps = any(
        attribute.attr.value == "step"
        and ends(last_name(attribute.value), Role.OPTIMIZER)
        and isinstance(tree.parent(attribute), cst.Call)
        and tree.enclosing(attribute, cst.ClassDef) is not None
        for attribute in tree.nodes(cst.Attribute)
    )
    if not steps:
        return False
    made = (names.qualified(call.func) or "" for call in tree.nodes(cst.Call))
    return not any(name.startswith("torch.optim.") or _is_layer(name) for name in made)


def _is_layer(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name.startswith("torch.nn.") and last[:1].isupper() and not last.endswith("Loss")


def _is_made(tree: SyntaxTree, inference: Inference, definition: cst.ClassDef) -> bool:
    """Return whether the file makes an instance of a class that it defines."""
    return any(
        inference.value(call.func).definition is definition
        for call in tree.nodes(cst.Call)
        if isinstance(call.func, cst.Name) and call.func.value == definition.name.value
    )


def _runs_model(tree: SyntaxTree, inference: Inference) -> bool:
    """Return whether the file trains: it builds an optimizer, in no class that only others use."""
    for call in tree.nodes(cst.Call):
        if isinstance(tree.parent(call), cst.Assign) and inference.value(call).kind is Kind.OPTIMIZER:
            owner = tree.enclosing(call, cst.ClassDef)
            if owner is None or _is_made(tree, inference, owner):
                return True
    return False


def default_dtype_changes(module: Module) -> bool:
    """Return whether a program or a test changes the dtype, or device, that tensors get by default."""
    words = ("set_default_dtype", "set_default_tensor_type")
    return module.mentions(*words) or (module.link is not None and module.link.has_anywhere(words))


def default_device_changes(module: Module) -> bool:
    """Return whether a program or a test changes the device of tensors made without one:
    for good, or for what runs in a ``with`` statement.
    """
    lasting = ("set_default_device", "set_default_tensor_type")
    words = (*lasting, "with torch.device", "with device", "with self.device")
    return module.mentions(*words) or (module.link is not None and module.link.has_anywhere(words))
