"""Whether a file is all of the program that has a model, and whether that program would notice other state.

The state of a model is its parameters, buffers and modules, with their names: what ``state_dict`` has keys
for. A change of it is noticed by whoever saves, loads, lists, counts, names or shows any of it, in this file
or in another. Both questions are answered by what is known to do no harm; anything else counts as noticing.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.checkpoints import loads_weights
from torchlint.semantics.contexts import is_test
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.texts import shown
from torchlint.semantics.values import MISSING, Kind
from torchlint.semantics.wholeprogram import trains_on_import

from .parameters import counts_parameters

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Libraries whose functions neither keep a model of torch nor look into it, but for those named below.
_LIBRARIES = frozenset(
    {
        *(
            "torch",
            "torchvision",
            "torchaudio",
            "numpy",
            "scipy",
            "pandas",
            "sklearn",
            "skimage",
            "matplotlib",
        ),
        *("seaborn", "PIL", "cv2", "imageio", "tqdm", "gym", "gymnasium", "h5py", "yaml", "requests"),
    }
)
# Modules of the standard library that store objects, look into them, or run code out of sight.
_REVEALING_MODULES = frozenset(
    {
        *(
            "code",
            "codeop",
            "copyreg",
            "ctypes",
            "dbm",
            "gc",
            "importlib",
            "inspect",
            "marshal",
            "pdb",
            "pickle",
        ),
        *("pickletools", "pprint", "pydoc", "reprlib", "runpy", "shelve", "unittest", "doctest", "zipimport"),
    }
)
_REVEALING_FUNCTIONS = (
    *("torch.save", "torch.load", "torch.jit", "torch.onnx", "torch.export", "torch.hub", "torch.package"),
    *("torch.fx", "torch.func", "torch.ao", "torch.quantization", "torch.distributed.checkpoint"),
    *("torch.nn.utils.parameters_to_vector", "torch.nn.utils.vector_to_parameters", "torch.nn.utils.prune"),
    *(
        "torch.nn.utils.stateless",
        "torch.utils.flop_counter",
        "torch.utils.mobile_optimizer",
        "torch.utils.hooks",
    ),
    *("torch.nn.modules.module.register", "torchvision.models.feature_extraction"),
    *("operator.attrgetter", "operator.methodcaller", "builtins.vars", "builtins.dir", "builtins.eval"),
    *("builtins.exec", "builtins.compile", "builtins.__import__", "builtins.globals", "builtins.locals"),
    "builtins.breakpoint",
)
_REVEALING_ATTRIBUTES = frozenset(
    {
        *("state_dict", "load_state_dict", "named_parameters", "named_buffers", "named_modules"),
        *(
            "named_children",
            "buffers",
            "get_parameter",
            "get_buffer",
            "get_submodule",
            "_parameters",
            "_buffers",
        ),
        *(
            "_modules",
            "save",
            "save_model",
            "save_weights",
            "save_checkpoint",
            "save_pretrained",
            "save_state",
        ),
        *(
            "push_to_hub",
            "from_pretrained",
            "dump",
            "dumps",
            "export",
            "to_onnx",
            "script",
            "trace",
            "summary",
        ),
        *("add_graph", "extra_repr", "register_forward_hook", "register_forward_pre_hook"),
        *("register_full_backward_hook", "register_module_forward_hook", "register_state_dict_pre_hook"),
    }
)
# Names with two underscores at both ends that say nothing of what an object holds.
_PLAIN_DUNDERS = frozenset(
    {
        *("__init__", "__name__", "__class__", "__version__", "__file__", "__doc__", "__len__", "__iter__"),
        *("__getitem__", "__call__", "__enter__", "__exit__"),
    }
)
_WITHOUT_MODELS = frozenset(
    {
        *(Kind.TENSOR, Kind.BATCH, Kind.NDARRAY, Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE),
        *(Kind.DEVICE, Kind.DTYPE, Kind.GENERATOR),
    }
)
_CLIPPING = frozenset(
    f"torch.nn.utils.{prefix}{name}"
    for prefix in ("", "clip_grad.")
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grad_value")
)
_CHAINING = frozenset({"builtins.list", "builtins.filter", "builtins.tuple", "itertools.chain"})
# What may be done with one parameter as with any other.
_TREATING_ALIKE = frozenset({"requires_grad", "requires_grad_", "grad", "device", "dtype", "is_cuda"})


def state_unobserved(module: Module, node: cst.CSTNode) -> bool:
    """Return whether nobody would notice other parameters,
    buffers or modules in the model that ``node`` belongs to.

    That is so if the file is the whole program (`seen_whole`), trains the model by itself, and does nothing
    with the state of any model but run it, move it, and hand all parameters to optimizers.
    """
    return seen_whole(module, node) and not _observes_state(module)


def seen_whole(module: Module, node: cst.CSTNode) -> bool:
    """Return whether no other file of the project can have to do with what ``node`` makes.

    The file is a script that trains, imports nothing but libraries, and is imported by no other: it would
    train again when it is imported, or ``node`` is below its ``__main__`` test, outside of all functions and
    classes. Notebooks are none, since people run their cells as they like, and magics run other files.
    """
    if module.in_notebook or is_test(module) or not Backpropagation.of(module).passes:
        return False
    if not _stands_alone(module) or (module.link is not None and module.link.is_imported(module)):
        return False
    if module.tree.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef) is None:
        return places.main_guarded(module, node) or trains_on_import(module)
    return trains_on_import(module)


@remembered
def _stands_alone(module: Module) -> bool:
    """Return whether all code of the program is in this file or in libraries that leave models alone."""
    if module.names.star_modules or "__all__" in module.names.module_scope.bindings:
        return False
    for statement in module.tree.nodes(cst.ImportFrom):
        if statement.relative or statement.module is None:
            return False
        if not _is_plain_library(module.source(statement.module)):
            return False
    for plain in module.tree.nodes(cst.Import):
        if not all(_is_plain_library(module.source(alias.name)) for alias in plain.names):
            return False
    return all(
        module.names.lookup(call.func.value, call) is not None or hasattr(builtins, call.func.value)
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Name)
    )


def _is_plain_library(dotted: str) -> bool:
    root = dotted.partition(".")[0]
    return root in _LIBRARIES or (root in sys.stdlib_module_names and root not in _REVEALING_MODULES)


@remembered
def _observes_state(module: Module) -> bool:
    """Return whether the file may save, load, list, count, name or show the state of a model."""
    if loads_weights(module) or counts_parameters(module):
        return True
    return any(
        asks(module)
        for asks in (_names_revealing, _reveals_by_call, _shows_model, _tells_parameters, _tells_groups)
    )


def _names_revealing(module: Module) -> bool:
    """Return whether anything is used that gives or takes the state of a model, under whatever name."""
    for attribute in module.tree.nodes(cst.Attribute):
        name = attribute.attr.value
        if name.startswith("__") and name.endswith("__") and name not in _PLAIN_DUNDERS:
            return True
        if name in _REVEALING_ATTRIBUTES and not _is_plain_save(module, attribute):
            return True
        if name == "state" and module.value(attribute.value).kind is Kind.OPTIMIZER:
            return True
        if _is_revealing(module.qualified(attribute)):
            return True
    return any(
        _is_revealing(module.qualified(name))
        for name in module.tree.nodes(cst.Name)
        if not isinstance(module.tree.parent(name), (cst.Attribute, cst.Arg))
        or name is getattr(module.tree.parent(name), "value", None)
    )


def _is_revealing(dotted: str | None) -> bool:
    return dotted is not None and any(
        dotted == name or dotted.startswith((f"{name}.", f"{name}_")) for name in _REVEALING_FUNCTIONS
    )


def _is_plain_save(module: Module, attribute: cst.Attribute) -> bool:
    """Return whether it is ``json.dump(history, file)``: written as text, in which no model can be."""
    return (module.qualified(attribute) or "").startswith(("json.", "yaml."))


def _reveals_by_call(module: Module) -> bool:
    """Return whether an attribute is asked for by a name that is none, or not a harmless one, in the text."""
    for call in module.tree.nodes(cst.Call):
        if module.qualified(call.func) not in ("builtins.getattr", "builtins.setattr", "builtins.delattr"):
            continue
        name = module.value(call.args[1].value).constant if len(call.args) > 1 else MISSING
        if not isinstance(name, str) or name in _REVEALING_ATTRIBUTES or name.startswith("_"):
            return True
        if name in ("parameters", "param_groups", "bias"):
            return True
    return False


def _shows_model(module: Module) -> bool:
    """Return whether a model may be printed or made a text: its layers are listed there,
    with their arguments.
    """
    return any(node is None or _may_hold_model(module, node) for node in shown(module))


def _may_hold_model(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a value may be a model, or an object or a container with one in it."""
    pending = [node]
    while pending:
        node = pending.pop()
        match node:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                pending += (element.value for element in elements)
            case cst.IfExp(body=body, orelse=orelse):
                pending += (body, orelse)
            case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
                pending += (left, right)
            case cst.BinaryOperation() | cst.Comparison() | cst.UnaryOperation() | cst.FormattedString():
                continue
            case _ if module.value(node).kind not in _WITHOUT_MODELS:
                return True
    return False


def _tells_parameters(module: Module) -> bool:
    """Return whether ``parameters()`` goes anywhere but to an optimizer,
    or to what treats all of them alike.
    """
    for attribute in module.tree.nodes(cst.Attribute):
        if attribute.attr.value != "parameters":
            continue
        call = module.tree.method_call(attribute.value)
        if call is None:
            return True
        if False in verdicts(module, call, _goes_alike):
            return True
    return False


def _goes_alike(module: Module, use: Use) -> Verdict[bool]:
    """Return whether all parameters of a model are treated alike where they are used."""
    match use.kind, use.by:
        case UseKind.ARGUMENT, cst.Call(func=func) as call:
            name = module.qualified(func) or ""
            if name == "builtins.next":
                asked = module.tree.parent(call)
                return isinstance(asked, cst.Attribute) and asked.attr.value in _TREATING_ALIKE
            if name in _CHAINING:
                return Standing(call)
            return name in _CLIPPING or module.value(call).kind is Kind.OPTIMIZER
        case UseKind.OPERAND, cst.BinaryOperation(operator=cst.Add()):
            return ONWARD
        case UseKind.ELEMENT, cst.Dict() if isinstance(use.part, cst.DictElement):
            return module.value(use.part.key).constant == "params"
        case UseKind.ITERATED, cst.For(target=cst.Name() as target):
            binding = module.binding_of(target)
            uses = module.uses(binding) if binding is not None else []
            return all(_treated_alike(module, read) for read in uses)
        case UseKind.ASSIGNED, name:
            binding = module.binding_of(name)
            return ONWARD if binding is not None and module.uses(binding) else False
    return False


def _treated_alike(module: Module, use: cst.Name) -> bool:
    above = module.tree.parent(use)
    if not isinstance(above, cst.Attribute) or above.attr.value not in _TREATING_ALIKE:
        return False
    statement = module.tree.parent(above)
    if isinstance(statement, cst.AssignTarget):  # ``p.grad = None``
        return True
    if isinstance(statement, cst.Call):  # ``p.requires_grad_(False)``
        return isinstance(module.tree.parent(statement), cst.Expr)
    return False


def _tells_groups(module: Module) -> bool:
    """Return whether the groups of an optimizer are used
    for more than their options: ``group["lr"] = lr``.
    """
    for attribute in module.tree.nodes(cst.Attribute):
        if attribute.attr.value != "param_groups":
            continue
        parent = module.tree.parent(attribute)
        match parent:
            case cst.Subscript() if parent.value is attribute:
                groups: list[cst.BaseExpression] = [parent]
            case cst.For(target=cst.Name() as target) if parent.iter is attribute:
                binding = module.binding_of(target)
                groups = [*module.uses(binding)] if binding is not None else []
            case _:
                return True
        if not all(_asks_option(module, group) for group in groups):
            return True
    return False


def _asks_option(module: Module, group: cst.BaseExpression) -> bool:
    above = module.tree.parent(group)
    if not isinstance(above, cst.Subscript) or above.value is not group:
        return False
    name = last_name(above)
    return name is not None and name != "params"
