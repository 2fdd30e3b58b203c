"""TL308 requires-grad-typo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, replace, unsafe
from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind, dotted_text
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Graph, Kind, Value

# How people spell the parts of `requires_grad`, which one or no underscore joins.
_FIRST = """
reqires reqiures reqries require required requires requieres requiers requirs requre requres requries reuqires
"""
_SECOND = "grad Grad gard grd gad gradd gradient"
_MISSPELT = frozenset(
    f"{first}{joint}{second}{plural}{end}"
    for first in _FIRST.split()
    for second in _SECOND.split()
    for joint, plural, end in product(("", "_"), ("", "s"), ("", "_"))
) - {"requires_grad"}
# Objects that hold what they like: the instance itself, and the context of an autograd function.
_OWN = frozenset({"self", "cls", "ctx"})


@rule(
    "TL308",
    "requires-grad-typo",
    severity=ERROR,
    fix="safe",
    measured=False,
    on=cst.Attribute,
    mentions=(
        "torch",
        # Every beginning of `_MISSPELT`, and the name of the method where it is not called.
        (
            "require_g|require_G|requireg|requireG|required_g|required_G|requiredg|requiredG|requiresg|requiresG"
            "|requires_G|requires_ga|requires_grd|requires_grads|requires_gradd|requires_gradient"
            "|requre|reqries|requries|requiers|requieres|requirs|reqires|reqiures|reuqires"
            "|requires_grad_ |requires_grad_\t|requires_grad_=|requires_grad_)|requires_grad_\\"
        ),
    ),
    named={cst.Attribute: _MISSPELT},
)
def requires_grad_typo(node: cst.Attribute, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds misspellings of `requires_grad` on a tensor, parameter or module: `p.require_grad = False`,
    `p.requires_gard`, `p.required_grad`, and `p.requires_grad_ = False`, which hides the method of that name.
    Both assignments and reads are reported.

    The rule ignores names that the file itself defines, as an attribute of a class, an argument or a
    configuration field.

    ## Why is this bad?
    Python allows setting any attribute on a tensor or module. The misspelled attribute is stored, and PyTorch
    never reads it: parameters that should be frozen are still trained, with memory for their gradients and
    optimizer state, and inputs that should have a gradient get none.

    ## Example
    ```python
    for p in backbone.parameters():
        p.require_grad = False
    ```

    ## Use instead
    ```python
    for p in backbone.parameters():
        p.requires_grad = False
    ```

    ## Fix safety
    Safe where a tensor without a graph is set to not require a gradient, which changes nothing. Otherwise
    unsafe: the program then does what it says, which is not what it did. Parameters that were trained are
    frozen, a backward pass finds none that needs a gradient, or torch rejects the assignment (integer tensors
    cannot require gradients).

    Setting `requires_grad` on a module has no effect either, so `conv.require_grad = False` becomes
    `conv.requires_grad_(False)`, which is unsafe. There is no fix where a computed tensor is set to not
    require a gradient: that takes `detach()`.

    ## References
    - [Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html)
    - [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """
    name = node.attr.value
    if name not in _MISSPELT:
        return
    assignment = _assignment(module, node)
    if assignment is None and (name == "requires_grad_" or module.tree.is_called(node)):
        return
    owner = module.value(node.value)
    if not _takes_gradients(module, node.value, owner, assignment) or _is_own_name(module, name, owner):
        return
    if name == "requires_grad_":
        message = "assigning to `requires_grad_` only hides the method of that name; use `requires_grad`"
    elif assignment is not None:
        message = f"PyTorch ignores the attribute `{name}`; use `requires_grad`"
    else:
        message = f"PyTorch defines no attribute `{name}`; use `requires_grad`"
    fix = _respelt(module, node, owner, assignment)
    yield Finding(node, message, fix=fix, remedy=_remedy(module, node, owner, assignment))


def _assignment(module: Module, node: cst.Attribute) -> cst.Assign | None:
    """Return the statement that sets an attribute."""
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    return statement if isinstance(statement, cst.Assign) else None


def _takes_gradients(
    module: Module, owner: cst.BaseExpression, value: Value, assignment: cst.Assign | None
) -> bool:
    """Return whether something is a tensor or a module, or set like one and nothing that the file shows."""
    if isinstance(owner, cst.Name) and owner.value in _OWN:
        return False
    if value.tensorlike:
        return True
    if value.kind is Kind.MODULE:
        return assignment is not None
    name = last_name(owner)
    spelt = dotted_text(owner)
    if value.kind is not Kind.UNKNOWN or name is None or spelt is None:
        return False
    if any(ends(word, Role.OPTIONS) for word in spelt.split(".")):
        return False
    bindings = module.bindings(owner)
    if assignment is None:
        looped = any(b.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) for b in bindings)
        return looped and ends(name, Role.PARAMETER)
    # An instance of a class of another file may have names of its own.
    made = any(
        isinstance(binding.value, cst.Call) and (last_name(binding.value) or "")[:1].isupper()
        for binding in bindings
    )
    return not made and isinstance(module.value(assignment.value).constant, bool)


def _is_own_name(module: Module, name: str, owner: Value) -> bool:
    """Return whether the file has an attribute of that name,
    or for what may be its own object an argument.
    """
    names, tree = module.names, module.tree
    if any(last_name(set_.target.value) in _OWN for set_ in names.attributes.get(name, ())):
        return True
    if any(name in names.scope_of(cls).bindings for cls in tree.nodes(cst.ClassDef)):
        return True
    if owner.tensorlike:
        return False
    return any(param.name.value == name for param in tree.nodes(cst.Param))


def _respelt(module: Module, node: cst.Attribute, owner: Value, assignment: cst.Assign | None) -> Fix | None:
    message = "Use `requires_grad`"
    if assignment is None:
        return unsafe(module, message, replace(module, node.attr, "requires_grad"), risk=_IN_EFFECT)
    wanted = module.value(assignment.value).constant
    if owner.kind is Kind.MODULE:
        if len(assignment.targets) > 1:
            return None
        code = f"{module.source(node.value)}.requires_grad_({module.source(assignment.value)})"
        return unsafe(module, f"Replace with `{code}`", replace(module, assignment, code), risk=_IN_EFFECT)
    if owner.graph is Graph.ATTACHED and not owner.leaf and wanted is not True:
        return None
    idle = wanted is False and owner.kind is Kind.TENSOR and owner.graph is Graph.DETACHED and not owner.leaf
    risk = None if idle and _all_reached(module, node.attr.value) else _IN_EFFECT
    return graded(module, message, replace(module, node.attr, "requires_grad"), risk=risk)


_IN_EFFECT = "the attribute had no effect so far, so that other parameters may be trained or frozen now"


def _remedy(module: Module, node: cst.Attribute, owner: Value, assignment: cst.Assign | None) -> str:
    tensor = module.source(node.value)
    if assignment is None:
        return "Use `requires_grad`"
    if owner.kind is Kind.MODULE:
        return f"Call `{tensor}.requires_grad_({module.source(assignment.value)})` in a separate statement"
    # Of a computed tensor torch lets nobody switch gradients off.
    return f"Replace with `{tensor} = {tensor}.detach()`"


@remembered
def _all_reached(module: Module, name: str) -> bool:
    """Return whether every use of the name in the file is one that is respelt along."""
    tree = module.tree
    uses = tree.attributes_by_name.get(name, [])
    word = re.compile(rf"\b{name}\b")
    comments = " ".join(tree.text[span.start : span.end] for span in tree.comments)
    if len(word.findall(tree.text)) != len(uses) + len(word.findall(comments)):
        return False
    return all(_is_reached(module, use) for use in uses)


def _is_reached(module: Module, use: cst.Attribute) -> bool:
    assignment, owner = _assignment(module, use), module.value(use.value)
    return owner.leaf or (
        assignment is not None
        and owner.graph is Graph.DETACHED
        and module.value(assignment.value).constant is False
    )
