"""Tensors that are made in host memory: which call makes them, and how it can make them elsewhere.

``factory`` looks through what may stand between the making of a tensor and its use: filling it in place,
views, casts, triangles, arithmetic with numbers, ``Variable``. None of them needs the host.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes import Edits, add_argument, replace, spell
from torchlint.semantics.api.results import FACTORIES, LEGACY_CONSTRUCTORS, LIKE_FACTORIES, RANDOM_FACTORIES
from torchlint.semantics.arrays import array
from torchlint.semantics.evidence import default_dtype_changes
from torchlint.semantics.operations import operations_of
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import keywords
from torchlint.semantics.transfers import move_to_accelerator
from torchlint.semantics.values import Device, Kind
from torchlint.semantics.wholeprogram import passed_by_others

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


# Sparse, nested and quantized tensors, and ``normal`` with tensors of means, have ways of their own.
_EXCLUDED = ("torch.sparse_", "torch.nested.", "torch.empty_quantized", "torch.normal")
_FACTORIES = frozenset(name for name in FACTORIES if not name.startswith(_EXCLUDED))
_FROM_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.scalar_tensor"})
_CONSTANT = frozenset(
    {"torch.zeros", "torch.ones", "torch.empty", "torch.eye", "torch.zeros_like", "torch.ones_like"}
)

_VIEWS = frozenset(
    [
        "contiguous",
        "clone",
        "detach",
        "expand",
        "flatten",
        "permute",
        "repeat",
        "reshape",
        "squeeze",
        "t",
        "tile",
        "transpose",
        "tril",
        "triu",
        "unflatten",
        "unsqueeze",
        "view",
    ]
)
_CASTS = frozenset(["bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short"])
_FILLS = frozenset(["fill_", "zero_"])
_RANDOM_FILLS = frozenset(["normal_", "uniform_", "random_", "bernoulli_", "exponential_"])
_PASSING_ON = _VIEWS | _CASTS | _FILLS | _RANDOM_FILLS
_RETYPING = frozenset(["to", "type"])
_TRIANGLES = frozenset({"torch.tril", "torch.triu"})
# Whether every device rounds the result of an operation on whole numbers in the same way.
_ARITHMETIC = {"neg": True, "add": True, "sub": True, "mul": True, "div": False, "pow": False}


@dataclass(frozen=True, slots=True)
class Factory:
    """A call that makes a tensor in host memory.

    Attributes:
        call: the call that makes it.
        name: its dotted name; ``torch.FloatTensor`` and the like are ``legacy``.
        random: whether its numbers, or those filled in afterwards, come from a random stream.
        leaf: whether autograd was asked to track it before it moves.
        cast: whether its dtype is changed before it moves.
        rounded: whether the device may round what is computed of it before it moves in another way.
        overlapping: whether it is expanded before it moves; then the copy alone has memory for each element.
        writes_elsewhere: whether ``out=`` holds the result.
    """

    call: cst.Call
    name: str
    random: bool = False
    leaf: bool = False
    cast: bool = False
    rounded: bool = False
    overlapping: bool = False
    writes_elsewhere: bool = False

    @property
    def legacy(self) -> bool:
        """Whether it is a constructor by sizes or data, which takes no ``device=``."""
        return self.name == "torch.Tensor" or self.name in LEGACY_CONSTRUCTORS

    @property
    def constant(self) -> bool:
        """Whether its contents are the same in every dtype."""
        return self.name in _CONSTANT

    @property
    def from_data(self) -> bool:
        """Whether it copies data that is given to it."""
        return self.name in _FROM_DATA


def factory(module: Module, node: cst.BaseExpression) -> Factory | None:
    """Return the call that makes the tensor ``node`` in host memory;
    None if it is made elsewhere or unknown.
    """
    if not isinstance(node, cst.Call):
        return _of_arithmetic(module, node)
    qualified = module.qualified(node.func)
    if qualified in _TRIANGLES:
        given = bool(node.args) and node.args[0].keyword is None and not node.args[0].star
        return factory(module, node.args[0].value) if given else None
    if qualified in ("torch.autograd.Variable", "torch.autograd.variable.Variable"):
        return _of_variable(module, node)
    if qualified is not None:
        return _of_call(module, node, qualified)
    if not isinstance(node.func, cst.Attribute):
        return None
    name = node.func.attr.value
    if not (name in _PASSING_ON or name in _RETYPING or name == "requires_grad_"):
        return None
    made = factory(module, node.func.value)
    if made is None:
        return None
    # ``.to(dtype)`` is a move to no other place.
    typed = name in _RETYPING
    if typed and not _casts(module, node):
        return None
    return dataclasses.replace(
        made,
        random=made.random or name in _RANDOM_FILLS,
        leaf=made.leaf or name == "requires_grad_",
        cast=made.cast or typed or name in _CASTS,
        overlapping=(made.overlapping or name == "expand") and name not in ("contiguous", "clone"),
    )


def _casts(module: Module, call: cst.Call) -> bool:
    """Return whether ``.type(…)`` or ``.to(…)`` is given a dtype, and nothing else."""
    return (
        len(call.args) == 1
        and not call.args[0].star
        and (call.args[0].keyword is None or call.args[0].keyword.value == "dtype")
        and module.value(call.args[0].value).kind is Kind.DTYPE
    )


def _of_arithmetic(module: Module, node: cst.BaseExpression) -> Factory | None:
    """Return what makes the tensor of ``-x``, ``~x``, ``1 - x`` or ``x * -1e4``."""
    operation = operations_of(module).of(node)
    if operation is not None and operation.name in _ARITHMETIC:
        operands = [each for each in operation.operands if module.value(each).kind is not Kind.NUMBER]
        exact = _ARITHMETIC[operation.name]
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        operands, exact = [node.expression], True
    else:
        return None
    made = factory(module, operands[0]) if len(operands) == 1 else None
    if made is None:
        return None
    exact = exact and (made.constant or made.name == "torch.arange")
    return dataclasses.replace(made, cast=True, rounded=made.rounded or not exact)


def _of_variable(module: Module, node: cst.Call) -> Factory | None:
    if not node.args or node.args[0].star:
        return None
    made = factory(module, node.args[0].value)
    if made is None or len(node.args) == 1:
        return made
    tracked = any(arg.star or module.value(arg.value).constant not in (False, None) for arg in node.args[1:])
    return dataclasses.replace(made, leaf=made.leaf or tracked)


def _of_call(module: Module, call: cst.Call, qualified: str) -> Factory | None:
    made = Factory(call, qualified, random=qualified in RANDOM_FACTORIES)
    if made.legacy:
        return made if call.args and all(arg.keyword is None for arg in call.args) else None
    if qualified in LIKE_FACTORIES:
        if not call.args or module.value(call.args[0].value).device is not Device.CPU:
            return None
    elif qualified not in _FACTORIES:
        return None
    if qualified in _FROM_DATA and call.args:
        data = module.value(call.args[0].value)
        if data.tensorlike and data.device is not Device.CPU:
            return None
    if any(arg.star == "**" for arg in call.args):
        return None
    given = keywords(call)
    if "generator" in given or _switched_on(module, given.get("pin_memory")):
        return None
    device = given.get("device")
    if device is None:
        if module.value(call).device is Device.ACCELERATOR:
            return None
    elif not _cpu(module, device):
        return None
    return dataclasses.replace(
        made, leaf=_switched_on(module, given.get("requires_grad")), writes_elsewhere="out" in given
    )


def takes_no_data(module: Module, made: Factory) -> bool:
    """Return whether a kernel can make the tensor on its device:
    nothing that lies in host memory goes into it.
    """
    return not made.from_data and (not made.legacy or given_sizes(module, made.call) is True)


def _switched_on(module: Module, node: cst.BaseExpression | None) -> bool:
    return node is not None and module.value(node).constant is not False


def _cpu(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    if isinstance(value.constant, str):
        return value.constant == "cpu"
    return value.kind is Kind.DEVICE and value.device is Device.CPU


@solved(False)
def moved_later(module: Module, made: cst.BaseExpression) -> bool:
    """Return whether the tensor that ``made`` makes is moved to an accelerator at once,
    or before any other use.

    ``factory`` seen from the other end.
    """
    attribute = module.tree.parent(made)
    match attribute:
        case cst.Attribute(attr=cst.Name(value=name)) if attribute.value is made:
            call = module.tree.parent(attribute)
            if not isinstance(call, cst.Call) or call.func is not attribute:
                return False
            if move_to_accelerator(module, call) is not None:
                return True
            passed_on = name in _PASSING_ON
            passed_on = passed_on or (name in ("to", "type") and _casts(module, call))
            return passed_on and moved_later(module, call)
        case cst.Arg():
            call = module.tree.parent(attribute)
            wraps = isinstance(call, cst.Call) and module.qualified(call.func) == "torch.autograd.Variable"
            return wraps and isinstance(call, cst.Call) and moved_later(module, call)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
            binding = module.binding_of(name)
            uses = module.uses(binding) if binding is not None else []
            return len(uses) == 1 and moved_later(module, uses[0])
    return False


# --- making it elsewhere ----------------------------------------------------------------------------


def created_on(module: Module, made: Factory, device: str, dtype: str | None) -> Edits | None:
    """Return the edits that make a factory create its tensor on ``device`` and, if given, in ``dtype``.

    None where that cannot be written with certainty.
    """
    if made.writes_elsewhere:
        return None
    return _modern(module, made, device, dtype) if made.legacy else _placed(module, made, device, dtype)


def _placed(module: Module, made: Factory, device: str, dtype: str | None) -> Edits | None:
    call = made.call
    given = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    edits: Edits = ()
    added = {"device": device} if dtype is None else {"device": device, "dtype": dtype}
    for keyword in tuple(added):
        if keyword in given:
            changed = replace(module, given[keyword].value, added.pop(keyword))
            if changed is None:
                return None
            edits += changed
    if not added:
        return edits
    # One edit for both: two would insert at the same place.
    (keyword, code), *others = added.items()
    code = ", ".join([code, *(f"{name}={text}" for name, text in others)])
    addition = add_argument(module, call, code, keyword=keyword, keyword_only=True)
    return None if addition is None else edits + addition


def _modern(module: Module, made: Factory, device: str, dtype: str | None) -> Edits | None:
    """Return a legacy constructor as ``torch.empty(sizes)`` or ``torch.tensor(data)`` of the same dtype."""
    by_size = given_sizes(module, made.call)
    if by_size is None or default_dtype_changes(module):
        return None
    if dtype is None:
        dtype = LEGACY_CONSTRUCTORS.get(made.name) or (None if by_size else "torch.float32")
    constructor = spell(module, "torch.empty" if by_size else "torch.tensor", made.call)
    spelling = spell(module, dtype, made.call) if dtype is not None and dtype.startswith("torch.") else None
    if constructor is None or constructor.edits or (spelling is not None and spelling.edits):
        return None
    dtype = dtype if spelling is None else spelling.text
    keyword, code = ("device", device) if dtype is None else ("dtype", f"{dtype}, device={device}")
    addition = add_argument(module, made.call, code, keyword=keyword, keyword_only=True)
    renamed = replace(module, made.call.func, constructor.text)
    return None if addition is None or renamed is None else renamed + addition


def given_sizes(module: Module, call: cst.Call) -> bool | None:
    """Return whether a legacy constructor gets sizes (True) or data (False);
    None if the file does not show it.
    """
    given = without_device(call)
    if len(given) > 1:
        return True
    if not given or given[0].star:
        return None
    if given[0].keyword is not None:
        return {"data": False, "size": True}.get(given[0].keyword.value)
    node = given[0].value
    kind = module.value(node).kind
    if isinstance(node, (cst.List, cst.ListComp, cst.Tuple)):
        return False
    if passed_by_others(module, node, promised=True):
        return None
    if kind is Kind.LIST:
        return False
    if kind is Kind.NDARRAY:
        # A whole number of NumPy, such as ``np.prod(shape)``, is a size.
        return False if array(module, node) is not None else None
    if kind is Kind.SHAPE:
        # A torch.Size is a size; the shape of anything else is a tuple, and a tuple is data.
        return True if _is_torch_size(module, node) else None
    return True if kind is Kind.NUMBER else None


def without_device(call: cst.Call) -> list[cst.Arg]:
    """Return the sizes or the data that a legacy constructor is given."""
    return [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "device"]


def _is_torch_size(module: Module, node: cst.BaseExpression) -> bool:
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="shape")):
            return module.value(owner).kind is Kind.TENSOR
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="size")), args=[]):
            return module.value(owner).kind is Kind.TENSOR
    return False
