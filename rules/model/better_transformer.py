"""TL416: models converted to BetterTransformer, of which Transformers has had the kernels itself for long."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import Edits, remove_import, remove_statement, replace, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.releasechecks import ReleaseChecks

_METHOD = "to_bettertransformer"
_FUNCTION = "optimum.bettertransformer.BetterTransformer.transform"
# The first release of Transformers with attention by SDPA of its own, and the one without the method.
_NATIVE, _WITHOUT = "4.36", "5.0"


@rule(
    "TL416",
    "better-transformer",
    severity=NOTE,
    fix="unsafe",
    measured=False,
    on=cst.Call,
    mentions=("to_bettertransformer|BetterTransformer",),
)
def better_transformer(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `model.to_bettertransformer()` and `BetterTransformer.transform(model)` of Optimum. The rule ignores
    branches that check the release, and projects that pin Transformers to a release older than 4.36.

    ## Why is this bad?

    The conversion brought `scaled_dot_product_attention` to models of Transformers, which use it by default
    since Transformers 4.36. For a model that already uses it, the conversion raises an error. Transformers 5
    and Optimum 2 no longer have the conversion. A converted model cannot be saved, and ignores padding during
    training.

    ## Example

    ```python
    model = AutoModel.from_pretrained(name)
    model = model.to_bettertransformer()
    ```

    ## Use instead

    ```python
    model = AutoModel.from_pretrained(name, attn_implementation="sdpa")
    ```

    ## Fix safety

    The fix removes the conversion. It is unsafe: with a release before Transformers 5, a model without SDPA
    attention becomes slower; later ones raise an error, which the program may catch, unless the object is of
    another library or has the method from elsewhere. There is no fix if a copy is requested
    (`keep_original_model`), or if the file converts models back.

    ## References

    - [Transformers: attention by scaled_dot_product_attention](https://huggingface.co/docs/transformers/perf_infer_gpu_one)
    - [Optimum 1.16.1: BetterTransformer is deprecated](https://github.com/huggingface/optimum/releases/tag/v1.16.1)
    """
    model = _converted(module, call)
    if model is None or not module.target_of("transformers").admits(_NATIVE):
        return
    checks = ReleaseChecks.of(module)
    if checks.over(call, "transformers") or checks.asks_for("to_bettertransformer"):
        return
    yield Finding(
        call,
        "BetterTransformer is obsolete: Transformers 4.36 and later use fused attention by default",
        fix=_fix(module, call, model),
        remedy='Remove the conversion, and load the model with `attn_implementation="sdpa"`',
    )


def _converted(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the model that a call converts."""
    match call.func:
        case cst.Attribute(value=model, attr=cst.Name("to_bettertransformer")) if not call.args:
            defined = module.callee(call) is not None or any(
                function.name.value == _METHOD for function in module.tree.nodes(cst.FunctionDef)
            )
            return None if defined else model
        case _ if module.qualified(call.func) == _FUNCTION:
            first = call.args[0] if call.args else None
            plain = first is not None and not first.star
            return first.value if first is not None and plain and _is_model(first) else None
        case _:
            return None


def _is_model(argument: cst.Arg) -> bool:
    return argument.keyword is None or argument.keyword.value == "model"


def _fix(module: Module, call: cst.Call, model: cst.BaseExpression) -> Fix | None:
    kept = [
        arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "keep_original_model"
    ]
    if any(module.value(arg.value).constant is not False for arg in kept) or len(call.args) - len(kept) > 1:
        return None
    if module.tree.mentions("reverse_bettertransformer") or module.tree.mentions("BetterTransformer.reverse"):
        return None
    if module.target_of("transformers").at_least(_WITHOUT):
        risk = "the program may catch the error of the call, or give the object the method"
    else:
        risk = "a model without SDPA attention becomes slower"
    edits = _without(module, call, model), _without_import(module, call)
    return unsafe(module, "Remove the conversion", *edits, risk=risk)


def _without(module: Module, call: cst.Call, model: cst.BaseExpression) -> Edits | None:
    """Return the statement removed where nothing is left of it, else the model in place of the call."""
    statement, name = module.tree.parent(call), module.source(model)
    alone = isinstance(statement, cst.Expr) and isinstance(model, (cst.Name, cst.Attribute))
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        alone = module.source(statement.targets[0].target) == name
    return remove_statement(module, call) if alone else replace(module, call, name)


def _without_import(module: Module, call: cst.Call) -> Edits:
    """Return the edits that remove the import of what is called, if nothing else uses it."""
    name = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(name, cst.Name) or module.qualified(call.func) != _FUNCTION:
        return ()
    for binding in module.bindings(name):
        if binding.imported is not None and len(module.uses(binding)) == 1:
            return remove_import(module, binding.node) or ()
    return ()
