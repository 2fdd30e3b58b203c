"""TL409: modules in a plain list or dict, which torch never registers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, spell, unsafe
from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module

from .keys import may_be_key
from .registration import Hidden, hidden_modules, registered_in_time


@rule(
    "TL409",
    "modules-in-plain-list",
    severity=ERROR,
    fix="unsafe",
    measured=False,
    on=(cst.Assign, cst.AnnAssign),
    mentions=("nn", "Module", "self."),
)
def modules_in_plain_list(statement: cst.Assign | cst.AnnAssign, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds layers that an `nn.Module` stores in a plain list, tuple or dict: a literal, a comprehension, or a
    container that code fills later. The rule ignores modules that are also registered (`add_module`,
    `setattr`, `nn.Sequential(*layers)`), modules with nothing to register (activations, pooling), containers
    that the class handles itself, and modules that are frozen, called without gradients, or wrapped on
    purpose to hide them.

    ## Why is this bad?

    `nn.Module` registers modules that are attributes, but does not look into lists. Modules in a list are not
    among the `parameters()` that the optimizer gets, so they are never trained. `.to()` leaves them on the
    CPU, `.eval()` leaves them in training mode, and they are missing from the `state_dict`.

    ## Example

    ```python
    self.layers = [nn.Linear(64, 64) for _ in range(4)]
    ```

    ## Use instead

    ```python
    self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])
    ```

    ## Fix safety

    Unsafe: the program then does what it says, which is not what it did. The modules are trained, moved and
    switched between training and evaluation with the rest of the model. They also become part of the
    `state_dict`, so checkpoints of the old model lack keys, and code that lists or counts parameters sees
    more of them.

    There is no fix if the container may hold anything but modules, where it is assigned in several places or
    used in a way that `nn.ModuleList` does not support, such as `reverse()`, and before `super().__init__()`.

    ## References

    - [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
    """
    targets = (
        [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
    )
    value = statement.value
    if len(targets) != 1 or not isinstance(targets[0], cst.Attribute) or value is None:
        return
    hidden = hidden_modules(module, targets[0], value)
    if hidden is None:
        return
    plain, container = ("dict", "ModuleDict") if hidden.mapping else ("list", "ModuleList")
    yield Finding(
        value,
        f"modules in a plain {plain} are not registered: not trained, moved or saved; use `nn.{container}`",
        fix=_fix(module, hidden, statement, container),
        remedy=_remedy(module, hidden, statement, container),
    )


def _remedy(module: Module, hidden: Hidden, statement: cst.CSTNode, container: str) -> str:
    if not registered_in_time(module, statement):
        return f"Store them in an `nn.{container}`, after `super().__init__()`"
    if not all(map(may_be_key, hidden.keys or ())):
        return f"Store them in an `nn.{container}`, with keys that have no dots and are not attribute names"
    if not hidden.only_modules:
        return f"Store only the modules in an `nn.{container}`, and everything else separately"
    return f"Store them in an `nn.{container}`"


def _fix(module: Module, hidden: Hidden, statement: cst.CSTNode, container: str) -> Fix | None:
    spelling = spell(module, f"torch.nn.{container}", hidden.made)
    if spelling is None or not hidden.only_modules or not registered_in_time(module, statement):
        return None
    if hidden.needs_builtin or not all(map(may_be_key, hidden.keys or ())):
        return None
    made = module.source(hidden.made)
    if isinstance(hidden.made, cst.Tuple) and not module.tree.parentheses(hidden.made):
        made = f"({made})"
    return unsafe(
        module,
        f"Use `{spelling.text}`",
        replace(module, hidden.made, f"{spelling.text}({made})"),
        spelling.edits,
        risk="the modules are trained, moved and saved with the model from then on",
    )
