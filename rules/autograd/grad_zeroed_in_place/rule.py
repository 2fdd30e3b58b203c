from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix, Frequency
from torchlint.fixes import filled_by_callers, graded, replace, set_argument, unsafe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.contexts import is_test
from torchlint.semantics.flow.guards import guards
from torchlint.semantics.iterations import is_parameter
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import MISSING, Kind

from ..clearing import wraps_optimizer
from .coverage import may_change, moves_nothing_by_zeros, reaches_every_parameter, sets_later
from .gradients import Gradients, zeroed_gradient

_SINCE = "1.7"
"""The release from which on ``zero_grad`` sets gradients to None if asked to."""
# Methods of wrappers around optimizers; the ``zero_grad`` of such a class takes what it likes.
_OF_WRAPPERS = frozenset(
    {"backward", "clip_grad_norm", "clip_master_grads", "multiply_grads", "all_reduce_grads"}
)


@rule(
    "TL302",
    "grad-zeroed-in-place",
    severity=WARNING,
    fix="safe",
    on=(cst.Call, cst.AugAssign, cst.Assign),
    named={cst.Call: ("zero_grad", "zero_", "fill_", "mul_")},
    mentions=("grad",),
)
def grad_zeroed_in_place(node: cst.Call | cst.AugAssign | cst.Assign, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds gradients that are filled with zeros instead of being set to None: `zero_grad(set_to_none=False)`,
    `p.grad.zero_()`, `p.grad *= 0` and similar code, with or without a check for None. If the project
    supports torch releases before 2.0, a plain `zero_grad()` gets a note, because it filled gradients with
    zeros there. The note is of low impact if the program may run on later releases as well.

    The rule ignores the `zero_grad` of other classes, gradients of ordinary tensors, code that reads or adds
    to a parameter's gradient before the next backward pass, and code that captures CUDA graphs. The last two
    need the gradient tensor to exist.

    ## Why is this bad?
    Zeroing writes the memory of every gradient, with one kernel per parameter, and the next backward pass
    reads it back to add to it. Setting a gradient to None costs nothing: its memory can be reused in the
    forward pass, and the backward pass writes its result without reading. Optimizers skip parameters whose
    gradient is None.

    ## Example
    ```python
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()
    ```

    ## Use instead
    ```python
    model.zero_grad(set_to_none=True)
    ```

    ## Fix safety
    Passing `set_to_none=True` to an optimizer or module of torch is safe. In the place of an explicit
    False it is only safe if zeros move nothing (`SGD` without momentum and weight decay), or if every
    step certainly reaches the same parameters: with momentum, weight decay or moments, an optimizer moves
    a parameter whose gradient is zero and skips one without. It is unsafe where only the name suggests
    that the object is an optimizer, where a helper reads gradients without checking for None, where the
    program checks for None before the next backward pass, where a model, a layer or a parameter is used
    in some steps only, where a step may skip the backward pass or run it through another model, where a
    loop freezes parameters on the way, where gradients are kept elsewhere or are parts of a buffer, and
    where the argument is a parameter, which callers set.

    Rewriting a loop is unsafe: code that reads the gradient of a parameter that no backward pass reaches
    finds None instead of zeros, and optimizers with momentum or weight decay skip such a parameter instead of
    updating it. The loop becomes the owner's `zero_grad` if it does nothing but clear all of its parameters.
    Otherwise only the statement is replaced, with `p.grad = None`.

    ## References
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [zero_grad](https://docs.pytorch.org/docs/2.13/generated/torch.optim.Optimizer.zero_grad.html)
    """
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "zero_grad":
            if not is_test(module):
                yield from _zero_grad(module, node, node.func.value)
            return
    owner = zeroed_gradient(module, node)
    if (
        owner is None
        or is_test(module)
        or _is_asked_for(module, node)
        or not is_parameter(module, owner)
        or Gradients.of(module).needed_at(node, owner)
    ):
        return
    name = module.source(owner)
    yield Finding(
        node,
        f"zeroing the gradient of `{name}` writes its memory, and the next backward pass reads it back",
        fix=_clear(module, node, owner),
        remedy="Set the gradient to `None`",
        frequency=Frequency.STEP,
    )


def _is_asked_for(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the caller has asked for zeros: ``if set_to_none: … else: p.grad.zero_()``."""
    return any(last_name(guard.test) == "set_to_none" and not guard.holds for guard in guards(module, node))


def _zero_grad(module: Module, call: cst.Call, owner: cst.BaseExpression) -> Iterator[Finding]:
    """Yield `zero_grad` of an optimizer or module of torch that does not set to None."""
    value = module.value(owner)
    if value.kind not in (Kind.OPTIMIZER, Kind.MODULE) or module.callee(call) is not None:
        return
    argument = module.argument(call, "set_to_none")
    setting = None if argument.node is None else module.inference.parameters.constant_in_sight(argument.node)
    asked = setting not in (MISSING, None) and not setting
    by_default = argument.absent and module.target.promises_below("2.0") and module.target.admits(_SINCE)
    if not (asked or by_default) or Gradients.of(module).needed_at(call):
        return
    known = value.cls is not None or value.definition is not None
    if not known and module.inference.clues.used_attributes(owner) & _OF_WRAPPERS:
        return
    if not known and wraps_optimizer(module, owner):
        return
    edits = set_argument(module, call, "set_to_none", "True")
    gradients = Gradients.of(module)
    others = module.companions(*_LAYERED)
    uneven = any(map(_leaves_layers_out, (module, *others))) or any(map(_picks_models, others))
    chosen = filled_by_callers(module, argument.node)
    # Who asks for zeros may count on them; the default changed in 2.0 for everybody.
    same = not asked or moves_nothing_by_zeros(module, owner) or reaches_every_parameter(module, call)
    risk = None
    if not known:
        risk = "only the name suggests that this is an optimizer or a module of torch"
    elif gradients.taken_for_granted(call) or gradients.tells_none(call):
        risk = "code that reads gradients finds None instead of zeros"
    elif chosen:
        risk = "callers of this function choose the argument"
    elif uneven or not same:
        risk = "the optimizer skips parameters without a gradient, but moves those whose gradient is zero"
    if asked:
        message = (
            "`set_to_none=False` fills every gradient with zeros, which the next backward pass reads back"
        )
    else:
        message = "`zero_grad()` fills every gradient with zeros by default in torch releases before 2.0"
    yield Finding(
        call,
        message,
        fix=graded(module, "Pass `set_to_none=True`", edits, risk=risk),
        severity=WARNING if asked else NOTE,
        remedy="Pass `set_to_none=True`",
        frequency=Frequency.STEP,
        # Who installs a release since 2.0 has the default.
        slight="the default since torch 2.0" if not asked and module.target.admits("2.0") else None,
    )


@remembered
def _leaves_layers_out(module: Module) -> bool:
    """Return whether a model of a file runs a layer only if something holds that may differ
    from step to step.

    Or picks one out of several, other than by a loop over all of them.

    An optimizer moves the parameters of the other layers on by momentum and weight decay if their gradients
    are zeros, and leaves them alone if there are none.
    """
    is_self = SelfAttributes.is_self
    return any(
        isinstance(call.func, cst.Attribute)
        and is_self(call.func.value)
        and module.value(call.func).kind is Kind.MODULE
        and any(may_change(module, guard.test) for guard in guards(module, call))
        for call in module.tree.nodes(cst.Call)
    ) or any(
        isinstance(item.value, cst.Attribute)
        and is_self(item.value.value)
        and _is_picked(module, item)
        and not _is_looped_over(module, item)
        for item in module.tree.nodes(cst.Subscript)
    )


_LAYERED = ("forward", "ModuleList", "ModuleDict")


@remembered
def _picks_models(module: Module) -> bool:
    """Return whether a file picks one of several models or layers
    from outside: ``step(models[i], optimizer, x)``.

    In the file of the optimizer the loop around it is looked at.
    """
    return any(
        not (isinstance(item.value, cst.Attribute) and SelfAttributes.is_self(item.value.value))
        and _is_picked(module, item)
        for item in module.tree.nodes(cst.Subscript)
    )


def _is_picked(module: Module, item: cst.Subscript) -> bool:
    """Return whether an item of a container of layers may be another one each time: ``heads[task]``."""
    match item.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index))]:
            if module.value(item.value).kind is not Kind.MODULE or not sets_later(module, item):
                return False
            return not isinstance(module.value(index).constant, (int, str))
    return False


def _is_looped_over(module: Module, item: cst.Subscript) -> bool:
    """Return whether the index of an item is what a loop counts: ``self.layers[i]``."""
    match item.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name() as index))]:
            bindings = module.bindings(index)
            loops = (BindingKind.LOOP, BindingKind.COMPREHENSION)
            return bool(bindings) and all(binding.kind in loops for binding in bindings)
    return False


def _clear(module: Module, node: cst.CSTNode, owner: cst.BaseExpression) -> Fix | None:
    """Return the owner's `zero_grad` instead of a loop that does nothing else,
    or None for this one gradient.
    """
    clearing = Gradients.of(module).clearing_loop(node)
    if clearing is not None and module.target.admits(_SINCE):
        loop, visited = clearing
        argument = "" if module.target.at_least("2.0") else "set_to_none=True"
        code = f"{module.source(visited)}.zero_grad({argument})"
        return unsafe(module, f"Replace the loop with `{code}`", replace(module, loop, code), risk=_NONE)
    code = f"{module.source(owner)}.grad = None"
    statement = module.tree.parent(node) if isinstance(node, cst.Call) else node
    if not isinstance(statement, cst.BaseSmallStatement):
        return None
    return unsafe(module, f"Replace with `{code}`", replace(module, statement, code), risk=_NONE)


_NONE = "code that reads gradients, such as a step with momentum or weight decay, finds None, not zeros"
