"""Whether backward passes run through a value, and whether they free its graph."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation, Flow
from torchlint.semantics.module import Module
from torchlint.semantics.names import Binding
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import start_of


def freed(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a backward pass that keeps no graph runs through a tensor that ``node`` is made of.

    A step in another file may have run it: ``losses.append(train_step(model, batch))``.
    """
    if _runs_through(module, node, _freeing(module)):
        return True
    others = (each.module for each in Backpropagation.of(module).everywhere if each.module is not module)
    return any(_runs_through(module, node, _freeing(other)) for other in others)


def retained(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a backward pass that keeps the graph runs through a tensor that ``node`` is made of,
    and none that frees it.
    """
    return not freed(module, node) and _runs_through(module, node, _retaining(module))


def _runs_through(module: Module, node: cst.BaseExpression, passed: Flow) -> bool:
    """Return whether the backward passes whose roots ``passed`` leads to run through a tensor
    that ``node`` is made of.
    """
    gradients = Backpropagation.of(module)
    for part in gradients.live(node):
        if isinstance(part, cst.Name) and any(b in passed.places for b in module.bindings(part)):
            if gradients.is_loss(part) or gradients.is_attached(part):
                return True
        elif isinstance(part, (cst.Attribute, cst.Subscript)):
            # ``runner.outputs["loss"]``, of which another method backpropagates it
            start = start_of(part, cst.Subscript)
            if isinstance(start, cst.Attribute) and start.attr.value in passed.places:
                if gradients.is_attached(part):
                    return True
    flow = gradients.flow([node])
    # What a helper computes is backpropagated in it, or for its calls that are.
    backpropagated = not flow.own_calls.isdisjoint(passed.calls)
    _, containers = gradients.losses
    return any(
        isinstance(key, Binding)
        and key in (passed.places if backpropagated or key in flow.own else passed.own)
        and (gradients.is_attached(key) or key in containers)
        for key in flow.places
    )


@remembered
def _freeing(module: Module) -> Flow:
    """Return what leads to the backward passes that free the graph."""
    gradients = Backpropagation.of(module)
    roots = [root for backward in gradients.passes if not backward.retains for root in backward.roots]
    return gradients.flow([*roots, *gradients.framework_roots])


@remembered
def _retaining(module: Module) -> Flow:
    """Return what leads to the backward passes that keep the graph."""
    gradients = Backpropagation.of(module)
    return gradients.flow(
        root for backward in gradients.passes if backward.retains for root in backward.roots
    )
