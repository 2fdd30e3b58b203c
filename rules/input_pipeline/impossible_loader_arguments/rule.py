"""TL105: arguments of `DataLoader` that raise when combined."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import configure, safe, spelt, unset_argument
from torchlint.rule import ERROR, WARNING, Finding, rule
from torchlint.semantics.configured import configured
from torchlint.semantics.contexts import is_test
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import MISSING

from .conflicts import Conflict, Conflicts, Refusal

_CAUGHT = re.compile(r"\b(ValueError|AssertionError|Exception|BaseException)\b")


@rule(
    "TL105",
    "impossible-loader-arguments",
    severity=ERROR,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=("DataLoader",),
    configured=True,
)
def impossible_loader_arguments(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds arguments of `DataLoader` that cannot be combined: options of worker processes without workers
    (`persistent_workers`, `prefetch_factor`, `timeout`, `multiprocessing_context`), `sampler` with `shuffle`,
    `batch_sampler` with `batch_size`, `shuffle`, `sampler` or `drop_last`, `batch_size=None` with
    `drop_last`, and an `IterableDataset` with `shuffle` or a sampler. Unit tests are ignored, since they may
    check that the call raises. Options of worker processes in a configuration file that the program reads are
    reported there as a warning, since the command line may ask for workers.

    ## Why is this bad?

    The constructor raises `ValueError`. A `timeout` without workers fails an assertion when the loader is
    iterated.

    ## Example

    ```python
    DataLoader(dataset, num_workers=0, persistent_workers=True)
    ```

    ## Use instead

    ```python
    DataLoader(dataset, num_workers=0)
    ```

    ## Fix safety

    Safe if the argument is redundant: options of workers without workers, `shuffle=True` next to a sampler
    that draws at random, and a `batch_size` or `drop_last` that the batch sampler already has. The fix
    removes it. There is no fix if the two arguments contradict each other, or if the program catches the
    error or asserts that it is raised. In a configuration file the fix is unsafe: the option may be meant for
    runs with workers.

    ## References

    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """
    # Unit tests see to it that such calls raise.
    if not Loaders.of(module).makes_loader(call) or is_test(module):
        return
    yield from _configured(module, call)
    conflicts = list(Conflicts.of(module).conflicts(call))
    for conflict in conflicts:
        # What it is for is not certain if another of the arguments is the wrong one.
        fix = _fix(module, call, conflict) if all(other.idle for other in conflicts) else None
        yield Finding(call, _message(conflict), fix=fix, remedy=_remedy(module, call, conflict))


def _configured(module: Module, call: cst.Call) -> Iterator[Finding]:
    """Yield the options of workers that a configuration file asks for where it asks for no workers."""
    workers = configured(module, call, "num_workers")
    if workers is None or workers.value not in (0, MISSING):
        return
    for name, idle in _IDLE.items():
        setting = configured(module, call, name)
        if setting is None or not isinstance(setting.value, (bool, int, float)) or setting.value <= 0:
            continue
        # Before 2.0 the default was 2, and null was none.
        if name == "prefetch_factor" and not module.target.at_least("2.0"):
            continue
        yield Finding(
            call,
            _message(Conflict(name, Refusal.NO_WORKERS, idle=True)),
            severity=WARNING,
            fix=configure(setting, idle, risk="the option may be meant for runs with workers"),
            remedy=f"Set `{spelt(setting, idle)}`",
            at=setting,
        )


_IDLE: Mapping[str, object] = {"persistent_workers": False, "prefetch_factor": None, "timeout": 0}
"""What options of workers are where there are none."""


def _message(conflict: Conflict) -> str:
    name = conflict.argument
    match conflict.refusal:
        case Refusal.NO_WORKERS:
            return f"`{name}` requires worker processes, but `num_workers` is 0"
        case Refusal.NO_BATCHES:
            return "`batch_size=None` disables batching, which rules out `drop_last`"
        case Refusal.ITERABLE_DATASET:
            return f"`DataLoader` does not accept `{name}` with an `IterableDataset`"
        case Refusal.SAMPLER if conflict.sometimes:
            return f"`{name}=True` raises whenever `sampler` is not `None`"
        case Refusal.BATCH_SAMPLER if name != "shuffle":
            return f"`{name}` and `batch_sampler` are mutually exclusive"
        case Refusal.SAMPLER:
            return f"`{name}=True` and `sampler` are mutually exclusive"
        case Refusal.BATCH_SAMPLER:
            return f"`{name}=True` and `batch_sampler` are mutually exclusive"


def _is_expected(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the program counts on the error: it is caught, or asserted, here or in a caller."""
    open_nodes, seen = [node], {node}
    while open_nodes:
        place = open_nodes.pop()
        home = module.home(place)
        if any(_catches(home, handler) for handler in home.tree.handlers(place)) or any(
            _asserts_or_suppresses(home, item) for item in home.flow.contexts(place)
        ):
            return True
        function = home.function(place)
        if function is None:
            continue
        # Who runs it later, or by another name, may catch it: `attempt(make_loader, dataset)`.
        if _runs_elsewhere(home, function) and any(map(_catches_at_all, _program(module))):
            return True
        calls = home.callers(function)
        open_nodes += (call for call in calls if call not in seen)
        seen.update(calls)
    return False


def _program(module: Module) -> Iterator[Module]:
    yield module
    yield from module.companions("except", "suppress", "aises")


def _catches(module: Module, handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    return handler.type is None or _CAUGHT.search(module.source(handler.type)) is not None


def _asserts_or_suppresses(module: Module, item: cst.WithItem) -> bool:
    text = module.source(item.item)
    return "raises" in text.lower() or ("suppress" in text and _CAUGHT.search(text) is not None)


@remembered
def _catches_at_all(module: Module) -> bool:
    """Return whether anything in a file may catch the error, or assert that it is raised."""
    tree = module.tree
    return (
        any(_catches(module, handler) for handler in tree.nodes(cst.ExceptHandler))
        or any(_catches(module, handler) for handler in tree.nodes(cst.ExceptStarHandler))
        or any(_asserts_or_suppresses(module, item) for item in tree.nodes(cst.WithItem))
        or any("raises" in name.lower() for name in tree.calls_by_name)
    )


def _runs_elsewhere(module: Module, function: Function) -> bool:
    """Return whether a function may run where no call of it shows: handed on, decorated, a property,
    a coroutine or a generator.
    """
    if isinstance(function, cst.Lambda):
        return not module.tree.is_called(function)
    if function.asynchronous is not None or module.tree.nodes_within(function, cst.Yield):
        return True
    if any(module.source(each.decorator) not in _WRAPPING for each in function.decorators):
        return True
    binding = module.binding_of(function)
    reads: list[cst.CSTNode] = list(module.tree.attributes_by_name.get(function.name.value, ()))
    if binding is not None:
        reads += [*module.uses(binding), *module.names.uses_elsewhere(binding)]
    return not all(module.home(read).tree.is_called(read) for read in reads)


_WRAPPING = ("staticmethod", "classmethod")


def _fix(module: Module, call: cst.Call, conflict: Conflict) -> Fix | None:
    if _is_expected(module, call):
        return None
    return safe(module, f"Remove `{conflict.argument}`", unset_argument(module, call, conflict.argument))


def _remedy(module: Module, call: cst.Call, conflict: Conflict) -> str:
    sampler = module.argument(call, "sampler").node
    if conflict.sometimes and isinstance(sampler, (cst.Name, cst.Attribute)):
        return f"Set `shuffle={module.source(sampler)} is None`"
    return f"Remove `{conflict.argument}`"
