"""TL403: the weights that `nn.MultiheadAttention` returns are computed for nobody."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import graded, set_argument
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.module import Module
from torchlint.semantics.names import words_of_stores
from torchlint.semantics.values import Kind, Value

from ..causality import Triangle, causal
from ..unpacking import used_parts

_ATTENTION = "torch.nn.MultiheadAttention"
_OUTPUT = frozenset({0})
_BEYOND_FIRST_DERIVATIVES = (
    *("create_graph", "gradgradcheck", "torch.func", "functorch", "forward_ad", "autograd.functional"),
    *("hessian", "jvp", "hvp"),
)


@rule(
    "TL403",
    "attention-weights-unused",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("MultiheadAttention",),
    remedy="Pass `need_weights=False`",
)
def attention_weights_unused(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds calls of `nn.MultiheadAttention` that leave `need_weights` at its default, `True`, and discard the
    weights: `out, _ = attn(x, x, x)`, `attn(x, x, x)[0]`, or a variable that nothing reads. Subclasses
    without their own `forward` count. Files that register forward hooks are ignored, because the hooks may
    read the weights.

    ## Why is this bad?

    The weights are a matrix of queries by keys for every head. To return them, torch writes them to memory
    and averages them over the heads. It then cannot use the fused kernels of `scaled_dot_product_attention`,
    which never store that matrix.

    ## Example

    ```python
    attended, _ = self.attention(x, x, x)
    ```

    ## Use instead

    ```python
    attended, _ = self.attention(x, x, x, need_weights=False)
    ```

    ## Fix safety

    The output is the same except for rounding. The fix is unsafe where the layer may have dropout, because
    the fused kernels draw different random numbers from the same seed, in programs that compute second or
    forward derivatives, which not every fused kernel supports, where a mask is passed that is not causal (for
    a query from which all keys are hidden, the output is NaN with the weights and 0 without them), and where
    the program registers forward hooks, replaces the `forward` of a layer, or puts another layer in the place
    of this one.

    ## References

    - [torch.nn.MultiheadAttention](https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html)
    """
    if not module.argument(call, "need_weights").absent:
        return
    attention = module.value(call.func)
    if attention.kind is not Kind.MODULE or attention.cls != _ATTENTION:
        return
    if isinstance(attention.definition, cst.ClassDef):
        own = module.classes.info(attention.definition)
        if own.method("forward") is not None or own.method("__call__") is not None:
            return
    if used_parts(module, call, 2) != _OUTPUT or module.tree.mentions("register_forward_hook"):
        return
    risk = None
    if module.mentions("forward_hook", ".forward = ") or _may_be_replaced(module, call.func):
        risk = "a hook, or another layer in the place of this one, may need the weights"
    elif module.mentions(*_BEYOND_FIRST_DERIVATIVES):
        risk = "not every fused kernel has the second or forward derivatives that the program computes"
    elif _may_drop(module, attention):
        risk = "the fused kernels draw different random numbers for dropout from the same seed"
    elif _may_hide_all(module, call):
        risk = "where a mask hides all keys from a query, the output is 0 instead of NaN"
    yield Finding(
        call,
        "returning attention weights that nothing reads rules out fused kernels; pass `need_weights=False`",
        fix=graded(
            module,
            "Pass `need_weights=False`",
            set_argument(module, call, "need_weights", "False"),
            risk=risk,
        ),
    )


def _may_be_replaced(module: Module, layer: cst.BaseExpression) -> bool:
    """Return whether the program puts a layer of its own in the place from outside of the class:
    ``block.attn = Local()``.
    """
    if not isinstance(layer, cst.Attribute):
        return False
    name = layer.attr.value
    return any(
        not SelfAttributes.is_self(store.owner)
        and (store.name is not None or each.value(store.owner).kind is Kind.MODULE)
        for each in (module, *module.companions(*words_of_stores(name)))
        for store in each.names.stores(name)
    )


def _may_hide_all(module: Module, call: cst.Call) -> bool:
    """Return whether a mask may hide all keys from a query: the output is NaN with the weights, 0 without."""
    for name in ("key_padding_mask", "attn_mask"):
        mask = module.argument(call, name)
        if mask.absent or (mask.node is not None and module.value(mask.node).kind is Kind.NONE):
            continue
        if mask.node is None or causal(module, mask.node) not in (Triangle.HIDDEN, Triangle.BIAS):
            return True
    return False


def _may_drop(module: Module, attention: Value) -> bool:
    """Return whether a layer may have been made with dropout, which it has not by default."""
    makers = [attention.origin] if isinstance(attention.origin, cst.Call) else []
    if isinstance(attention.definition, cst.ClassDef):
        init = module.classes.info(attention.definition).method("__init__")
        if init is not None:
            calls = module.tree.nodes_within(init, cst.Call)
            makers = [call for call in calls if module.base_constructed(call) == _ATTENTION]
    dropouts = [module.argument(maker, "dropout") for maker in makers]
    return not dropouts or any(not each.absent and each.constant not in (0, 0.0) for each in dropouts)
