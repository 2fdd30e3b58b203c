"""TL201 tensor-created-on-host."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Applicability, Edit, Fix, Frequency
from torchlint.fixes import Edits, cut_off, graded, remove_statement
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.repetition import frequency
from torchlint.semantics.sources import some
from torchlint.semantics.spellings import last_name
from torchlint.semantics.tensordtypes import WHOLE
from torchlint.semantics.transfers import MOVING_METHODS, Move, move_to_accelerator

from .factories import Factory, created_on, factory, takes_no_data
from .remedies import as_spelt
from .sending import by_async_helper, moved_on_condition
from .sizes import holds_nothing, of_data

_FLOATS = frozenset({"torch.float", "torch.float32", "torch.half", "torch.float16", "torch.bfloat16"})
_SINGLE = frozenset({"torch.float", "torch.float32"})
# A number that does not fit raises where a tensor is made, but not where one is cast.
_ROOMY = _SINGLE | {"torch.int", "torch.int32", "torch.long", "torch.int64", "torch.bool"}
_STEPPED = frozenset({"torch.linspace", "torch.logspace", "torch.arange"})
_ROUNDING = frozenset({"ceil", "floor", "round", "trunc"})
_DOUBLES = frozenset({"torch.double", "torch.float64"})


@rule(
    "TL201",
    "tensor-created-on-host",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: MOVING_METHODS},
    mentions=("torch", ".to(|.cuda(|.hpu(|.ipu(|.mlu(|.mtia(|.musa(|.npu(|.xpu(|.type"),
    remedy="Create the tensor with `device=…`, and remove the move",
    follows=("TL208",),
    synchronizes=True,
)
def tensor_created_on_host(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors of zeros, ones, a constant, steps or random numbers that are created in host memory and
    then moved to an accelerator, either at once or before any other use. Views, casts, `tril`, `triu` and
    arithmetic with numbers in between do not count as a use.

    The rule ignores tensors created from data, such as lists, arrays and Python numbers. For these,
    `device=` does not avoid the copy: `torch.tensor(data, device=device)` still creates the tensor in host
    memory, and its copy blocks the host even where `.to(device, non_blocking=True)` would not. A single
    number that is copied to the device in every step is reported as TL210.

    ## Why is this bad?

    The host allocates and fills the tensor, copies it to the device from pageable memory, and waits for the
    copy. With `device=`, a kernel fills the tensor on the device, without a copy and without
    synchronization.

    ## Example

    ```python
    mask = torch.zeros(batch, length).cuda()
    noise = torch.randn(batch, 128).to(device)
    ```

    ## Use instead

    ```python
    mask = torch.zeros(batch, length, device="cuda")
    noise = torch.randn(batch, 128, device=device)
    ```

    ## Fix safety

    Safe: the tensor has the same contents, dtype and device. Only the last digits of fractional steps
    (`linspace`) may differ, because the device rounds them differently. The fix is unsafe

    - for random tensors. The device has its own random number generator, so a given seed produces different
      numbers, for this tensor and for everything drawn on the host afterwards. A file cannot show that
      nothing is seeded, because the code that imports or starts it may do so under any name (`set_seed(0)`,
      `Trainer(seed=0)`);
    - for division and powers before the move, and for arithmetic with anything but zeros, ones and `arange`,
      where the last digits may differ;
    - for steps in fractions that become whole numbers at once (`torch.linspace(0, 7, 50).long()`), where the
      last digit decides between two of them;
    - for a tensor that is expanded before it moves, because only the copy can be written to;
    - with `requires_grad`, because the moved tensor was not a leaf of the autograd graph and the new one is;
    - for `.cuda(index)` if the file does not show that `index` is a number: `None` means the current device;
    - where a call passes a tensor or a dtype for what the function calls the device;
    - if a comment would be lost with the statement that moves the tensor.

    There is no fix for tensors that are moved under a condition (`if cuda: x = x.cuda()`), for calls with
    `out=` or `memory_format=`, or if the device is only known after the tensor is created.

    ## References

    - [PyTorch performance tuning guide: create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics: best practices](https://docs.pytorch.org/docs/stable/notes/cuda.html#best-practices)
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in MOVING_METHODS:
        return
    tensor = call.func.value
    value = _only_value(module, tensor) if isinstance(tensor, cst.Name) else tensor
    # How the tensor was made is mostly a question of spelling, and asked before where it moves.
    made = factory(module, value) if value is not None else None
    if made is None or not takes_no_data(module, made):
        return
    move = move_to_accelerator(module, call)
    if move is None or not accelerated(module) or phase(module, call) is Phase.DATASET:
        return
    if by_async_helper(module, call) or _is_thrown_away(module, call) or holds_nothing(module, made.call):
        return
    if not move.shown and phase(module, call) is Phase.SETUP:  # parameters are on the host as yet
        return
    if isinstance(tensor, cst.Name):
        yield from _moved_later(module, made, move, tensor)
    else:
        fix = _fix(module, made, move, _without_suffix(module, call))
        message, remedy, little = _message(module, made), _remedy(module, made, move), _slight(module, made)
        yield Finding(tensor, message, fix, remedy=remedy, frequency=_OFTEN, slight=little)


_OFTEN = Frequency.BATCH
"""How often a tensor of the size of a batch is made, unless something shows how often the place runs."""


def _slight(module: Module, made: Factory) -> str | None:
    """Return why little is at stake: nothing shows that it runs again and again.

    A size that is read from a tensor is that of a batch, of which there are many.
    """
    if frequency(module, made.call) is not Frequency.UNKNOWN:
        return None
    sized = made.name.endswith("_like") or any(
        some(of_data(module, part))
        for each in made.call.args
        for part in module.tree.descendants(each.value)
        if isinstance(part, cst.BaseExpression)
    )
    return None if sized else "how often it runs is not known"


def _is_thrown_away(module: Module, call: cst.Call) -> bool:
    """Return whether nothing is done with what is moved:
    ``_ = torch.zeros(1).to(device)`` tries a device out.
    """
    match module.tree.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="_"))]):
            return True
    return False


def _message(module: Module, made: Factory) -> str:
    name = module.tree.source(made.call.func)
    return f"`{name}` creates a CPU tensor that is then copied to the device; pass `device=`"


def _only_value(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    """Return what a variable is given by the one definition that it has."""
    bindings = module.bindings(name)
    return bindings[0].value if len(bindings) == 1 and not bindings[0].path else None


def _moved_later(module: Module, made: Factory, move: Move, name: cst.Name) -> Iterator[Finding]:
    """Yield ``noise = torch.randn(…)`` whose only use is ``noise.to(device)`` in the same block."""
    (binding,) = module.bindings(name)
    if binding.value is None:
        return
    tree = module.tree
    first, second = tree.statement(binding.node), tree.statement(move.call)
    if module.uses(binding) != [name]:
        if moved_on_condition(module, binding, name):
            related = ((move.call, "moved here, only under a condition"),)
            message = _message(module, made)
            little = _slight(module, made)
            yield Finding(
                binding.value,
                message,
                related=related,
                remedy=_FOR_EACH_CONDITION,
                frequency=_OFTEN,
                slight=little,
            )
        return
    if tree.parent(first) is not tree.parent(second) or isinstance(second, cst.BaseCompoundStatement):
        return
    if not isinstance(tree.parent(binding.node), cst.AssignTarget) or not _only_name(module, first):
        return
    edits = _remove_move(module, move, name)
    fix = None if edits is None or not known_before(module, move, first) else _fix(module, made, move, edits)
    if fix is not None and _has_comment(module, second):
        fix = fix.lowered(Applicability.UNSAFE, "a comment goes with the statement that moves the tensor")
    related = ((move.call, "moved here"),)
    remedy, little = _remedy(module, made, move), _slight(module, made)
    message = _message(module, made)
    yield Finding(
        binding.value, message, fix, related=related, remedy=remedy, frequency=_OFTEN, slight=little
    )


_FOR_EACH_CONDITION = (
    "Choose the device once, create the tensor there with `device=device`, and remove the move"
)


def _remedy(module: Module, made: Factory, move: Move) -> str:
    """Return what to write where the fix cannot tell how or where."""
    device = f"device={' '.join(move.code.split())}"
    if made.legacy:
        options = f"dtype={LEGACY_CONSTRUCTORS.get(made.name, 'torch.float32')}, {device}"
        return as_spelt(module, made.call, f"Use `torch.empty(…, {options})`")
    return f"Create the tensor with `{device}`, where the device is known, and remove the move"


def _only_name(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a statement gives its value one name, and no attribute of a class:
    ``a = b = …`` does not.
    """
    assigned = [
        part
        for part in getattr(statement, "body", ())
        if isinstance(part, cst.Assign) and len(part.targets) > 1
    ]
    block = module.tree.parent(statement)
    return not assigned and not isinstance(block and module.tree.parent(block), cst.ClassDef)


def _remove_move(module: Module, move: Move, name: cst.Name) -> Edits | None:
    """Return the edits that drop the move: the whole statement if it does nothing else."""
    match module.tree.parent(move.call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))]) as statement:
            if target == name.value:
                return remove_statement(module, statement)
    return _without_suffix(module, move.call)


def _has_comment(module: Module, statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine) and module.tree.comment_behind(statement) is not None
    )


def _without_suffix(module: Module, call: cst.Call) -> Edits | None:
    """Take ``.to(…)`` off what it is called on; None if a comment stands in it."""
    assert isinstance(call.func, cst.Attribute)
    return cut_off(module, call.func.value, call)


def _fix(module: Module, made: Factory, move: Move, removal: Edits | None) -> Fix | None:
    if removal is None or not move.fixable:
        return None
    dtype = move.dtype_code
    if dtype is not None and not _same_in(module, made, move, dtype):
        # The cast stays, on the device.
        suffix = module.tree.span(move.call).end
        if len(removal) != 1 or removal[0].content or removal[0].span.end != suffix:
            return None
        gap = module.tree.text[removal[0].span.start : suffix].partition(".")[0]  # a line of its own
        removal, dtype = (Edit(removal[0].span, f"{gap}.to({dtype})"),), None
    creation = created_on(module, made, move.code, dtype)
    message = f"Create the tensor with `device={move.code}`"
    risk = None
    if made.random:
        risk = "the device draws different random numbers than the host from the same seed"
    elif made.leaf:
        risk = "the tensor becomes a leaf of the autograd graph, which the moved one was not"
    elif made.overlapping:
        risk = "the elements of an expanded tensor share memory, and cannot be written to one by one"
    elif made.rounded:
        risk = "the device may round the last digits differently"
    elif _cuts_steps(module, made, move):
        risk = "the device rounds the last digits differently, which may change whole numbers made of them"
    elif not move.certain:
        risk = "the argument may be something other than a device"
    return graded(module, message, creation, removal, risk=risk)


def _cuts_steps(module: Module, made: Factory, move: Move) -> bool:
    """Return whether steps in fractions, which the device rounds in another way,
    are made whole numbers at once.
    """
    if made.name == "torch.arange":
        given = [module.argument(made.call, name).constant for name in ("start", "end", "step")]
        if not any(isinstance(number, float) and not number.is_integer() for number in given):
            return False
    elif made.name not in _STEPPED:
        return False
    return any(_is_whole(module, node) for start in (made.call, move.call) for node in _chain(module, start))


def _is_whole(module: Module, node: cst.Call) -> bool:
    dtype = module.value(node).dtype or ""
    return f"torch.{dtype.removeprefix('torch.')}" in WHOLE or last_name(node.func) in _ROUNDING


def _chain(module: Module, call: cst.Call) -> Iterator[cst.Call]:
    """Yield a call, and those of methods on its result, one behind the other."""
    node: cst.CSTNode | None = call
    while isinstance(node, cst.Call):
        yield node
        attribute = module.tree.parent(node)
        node = module.tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None


def _same_in(module: Module, made: Factory, move: Move, dtype: str) -> bool:
    """Return whether making the tensor in ``dtype`` gives what casting it to ``dtype`` gave."""
    if made.cast:
        return False
    if made.constant:
        return True
    name = (module.qualified(move.dtype) if move.dtype is not None else None) or dtype
    literal = name.startswith("torch.") and name not in _DOUBLES
    if made.legacy:
        return literal and not made.random
    if any(arg.keyword is not None and arg.keyword.value == "dtype" for arg in made.call.args):
        return False
    if made.name in ("torch.full", "torch.full_like"):
        fill = module.argument(made.call, "fill_value").constant
        whole = isinstance(fill, (int, float)) and float(fill).is_integer()
        fits = name in _ROOMY or (isinstance(fill, (int, float)) and 0 <= fill <= 127)
        return (whole and fits) or (literal and name in _SINGLE)
    if made.name in _STEPPED:
        # The steps are computed in the dtype that is asked for.
        return name in _SINGLE
    return name in _FLOATS and made.name != "torch.randperm"


def known_before(module: Module, move: Move, statement: cst.CSTNode) -> bool:
    """Return whether what a move names is known at a statement in front of it, and the same there."""
    order = module.tree.order
    start = order[statement]
    for part in (move.device, move.dtype, move.other):
        for node in () if part is None else module.tree.descendants(part):
            if isinstance(node, cst.Call) and module.qualified(node.func) != "torch.device":
                return False
            if isinstance(node, cst.Attribute) and _set_between(module, node, start):
                return False
            if isinstance(node, cst.Name):
                if any(order[binding.node] > start for binding in module.bindings(node)):
                    return False
    return True


def _set_between(module: Module, attribute: cst.Attribute, start: int) -> bool:
    """Return whether an attribute is given a value behind the place ``start`` and before it is read."""
    order = module.tree.order
    end = order[attribute]
    return any(
        start < order[binding.target] < end
        for binding in module.names.attributes.get(attribute.attr.value, ())
    )
