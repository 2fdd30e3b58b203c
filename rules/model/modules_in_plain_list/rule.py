"""TL409: modules in a plain list or dict, which torch never registers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, safe, spell, unsafe
from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.wholeprogram import state_unobserved

from .keys import may_be_key
from .registration import Hidden, hidden_modules, registered_in_time


@rule(
    "TL409",
    "modules-in-plain-list",
    severity=ERROR,
    fix="safe",
    measured=False,
    on=(cst.Assign, cst.AnnAssign),
    mentions=("nn", "Module", "self."),
)
def modules_in_plain_list(statement: cst.Assign | cst.AnnAssign, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds layers that an `nn.Module` keeps in a plain list, tuple or dict: in one written out, in a
    comprehension, or in one that code fills. Modules that are registered beside it (`add_module`, `setattr`,
    `nn.Sequential(*layers)`), that have nothing to register (activations, pooling) or that the class looks
    after by itself are left alone, and so are those that are frozen, called without gradients or wrapped to
    hide them.

    ## Why is this bad?

    `nn.Module` registers modules that are attributes, and does not look into lists. What is in there is not
    among the `parameters()` that the optimizer gets and so is never trained, stays on the CPU in `.to()`, in
    training mode in `.eval()`, and is missing in the `state_dict`.

    ## Example

    ```python
    self.layers = [nn.Linear(64, 64) for _ in range(4)]
    ```

    ## Use instead

    ```python
    self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])
    ```

    ## Fix safety

    Unsafe: the modules are among the keys of `state_dict` from then on, so that checkpoints of the old model
    lack some, and whoever lists or counts parameters sees more of them.

    The fix is safe in a script that makes and trains the model itself, that imports nothing but PyTorch and
    other libraries that leave models alone, that no file can import without training once more, and that
    neither saves, loads, lists, counts, names nor prints the state of any model or optimizer. It is unsafe
    there, too, where the list is used for more than indexing, iterating and filling, where a script with
    `DistributedDataParallel` never runs what is in it, and where the keys of a dict are not all in sight.

    None is offered if something in it may be no module, where the list is assigned in several places or
    something is asked of it that `nn.ModuleList` lacks, as `reverse()` is, and before `super().__init__()`.

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
        f"modules in a plain {plain} are not registered, and so neither trained, moved nor saved; "
        f"`nn.{container}` registers them",
        fix=_fix(module, hidden, statement, container),
        remedy=_remedy(module, hidden, statement, container),
    )


def _remedy(module: Module, hidden: Hidden, statement: cst.CSTNode, container: str) -> str:
    if not registered_in_time(module, statement):
        return f"Keep them in an `nn.{container}`, behind `super().__init__()`"
    if not all(map(may_be_key, hidden.keys or ())):
        return f"Keep them in an `nn.{container}`, under keys that may be names of attributes"
    if not hidden.only_modules:
        return f"Keep them in an `nn.{container}`, and nothing else beside them"
    return f"Keep them in an `nn.{container}`"


def _fix(module: Module, hidden: Hidden, statement: cst.CSTNode, container: str) -> Fix | None:
    spelling = spell(module, f"torch.nn.{container}", hidden.made)
    if spelling is None or not hidden.only_modules or not registered_in_time(module, statement):
        return None
    if hidden.needs_builtin or not all(map(may_be_key, hidden.keys or ())):
        return None
    known = hidden.known and (not hidden.mapping or hidden.keys is not None)
    plain = known and hidden.plainly_used
    grade = safe if plain and state_unobserved(module, statement) else unsafe
    made = module.source(hidden.made)
    if isinstance(hidden.made, cst.Tuple) and not module.tree.parentheses(hidden.made):
        made = f"({made})"
    return grade(
        module,
        f"Use `{spelling.text}`",
        replace(module, hidden.made, f"{spelling.text}({made})"),
        spelling.edits,
    )
