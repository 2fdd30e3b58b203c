"""TL904: checkpoints that are loaded with all the code that they bring."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.checkpoints import STORED
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import given_as

from ..uses import stands_in
from .pickled import loads_object, saved_as, saves, saves_objects


@rule(
    "TL904",
    "unsafe-checkpoint-load",
    severity=WARNING,
    fix="unsafe",
    measured=False,
    on=cst.Call,
    mentions=("torch", ".load(|import load|, load"),
    named={cst.Call: ("load",)},
    remedy="Pass `weights_only=True`, which requires torch 1.13",
)
def unsafe_checkpoint_load(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.load` without `weights_only` in projects that support torch releases before 2.6. The rule
    ignores files that the same function saved before, tests, and code behind a check of the torch version or
    of the parameters of `torch.load`, or in a `try` that catches `TypeError`.

    Findings are of low impact for checkpoints that the program saves itself and for data that the package
    brings along.

    ## Why is this bad?

    A checkpoint is a pickle file. Before torch 2.6, loading it executes whatever code its author put there.
    In torch 2.6 the default changed to `weights_only=True`, so the same call behaves differently there: a
    checkpoint that contains more than tensors and plain containers fails to load.

    ## Example

    ```python
    state = torch.load("checkpoint.pt", map_location="cpu")
    ```

    ## Use instead

    ```python
    state = torch.load("checkpoint.pt", map_location="cpu", weights_only=True)
    ```

    ## Fix safety

    Unsafe: `weights_only=True` loads tensors, numbers, strings, `None`, and dictionaries, lists and tuples of
    them. A checkpoint with objects of other classes, such as a whole model, can only be loaded with
    `weights_only=False`, or after `torch.serialization.add_safe_globals`.

    There is no fix if the file saves such an object, alone or in a dictionary (a model, an optimizer, an
    `argparse.Namespace`, a NumPy array, an instance of a class), if it saves nothing and another file of the
    program does, or if it uses the loaded value as one (`model = torch.load(path); model.eval()`,
    `checkpoint["args"].lr`). There is also no fix if the project supports releases before 1.13, which do not
    have the argument, or next to `**kwargs`.

    ## References

    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [torch 2.6: the default of weights_only](https://dev-discuss.pytorch.org/t/bc-breaking-change-torch-load-is-being-flipped-to-use-weights-only-true-by-default-in-the-nightlies-after-137602/2573)
    """
    if (
        not module.target.admits_below("2.6")
        or not module.target.admits("1.13")
        or module.qualified(call.func) != "torch.load"
        or is_test(module)
    ):
        return
    if not module.argument(call, "weights_only").absent or module.argument(call, "pickle_module").given:
        return
    if _is_own(module, call) or stands_in(module, call):
        return
    message = "`torch.load` can run arbitrary code unless `weights_only=True`, the default since torch 2.6"
    if loads_object(module, call) or saves_objects(module):
        yield Finding(call, message, remedy=_OBJECTS)
        return
    fix = None
    objects = not saves(module) and any(map(saves_objects, module.companions(*_SAVING)))
    if not objects and module.target.at_least("1.13"):
        edits = set_argument(module, call, "weights_only", "True")
        risk = "a checkpoint with objects of other classes, such as a whole model, no longer loads"
        fix = unsafe(module, "Pass `weights_only=True`", edits, risk=risk)
    own = _resumes(module) or _is_named_as_saved(module, call) or _is_shipped(module, call)
    slight = "loads what the program itself saves" if own else None
    yield Finding(call, message, fix=fix, slight=slight, remedy=_OBJECTS if objects else None)


_OBJECTS = (
    "Save a state dict and plain values instead of whole objects, and pass `weights_only=True`; pass "
    "`weights_only=False` only if you trust the file"
)


@remembered
def _resumes(module: Module) -> bool:
    """Return whether what is loaded is, as far as can be told, what the program has saved in another run.

    It saves such checkpoints, and the file has no names for what others have put up somewhere.
    """
    saved = saves(module) or module.mentions(*_SAVING)
    return bool(saved) and not _speaks_of_others(module, module.tree.root)


def _speaks_of_others(module: Module, around: cst.CSTNode) -> bool:
    """Return whether what others have put up somewhere has a name in a function or file."""
    names = {node.value.lower() for node in module.tree.nodes_within(around, cst.Name)}
    return any(word in name for name in names for word in _OF_OTHERS)


def _is_named_as_saved(module: Module, call: cst.Call) -> bool:
    """Return whether the file saves under the name that is loaded, or the same class does,
    and where that is done no other origin is named.
    """
    loaded, function = module.argument(call, "f").node, module.function(call)
    if loaded is None or function is None or _speaks_of_others(module, function):
        return False
    owner = module.tree.enclosing(call, cst.ClassDef)
    if owner is not None and module.tree.within(owner, saved_as(module).get(module.source(loaded), [])):
        return True
    saved = (given_as(save, "f", 1) for save in saves(module))
    names = _file_names(module, loaded) - {None}
    return any(names & _file_names(module, place) for place in saved if place is not None)


@traced(Through.OPERANDS)
def _file_names(module: Module, node: cst.CSTNode, path: Path) -> str | list[Source] | None:
    """Return the file names that a place is put together from: ``os.path.join(folder, "last.pt")``."""
    match node:
        case cst.SimpleString():
            return node.raw_value if node.raw_value.endswith(STORED) else None
        case cst.FormattedString():
            text = module.source(node)
            return text if text.rstrip("'\"").endswith(STORED) else None
        case cst.Call(args=args):
            return onward(*(arg.value for arg in args))
    return None


_SAVING = ("torch.save(", "accelerator.save(")
_OF_OTHERS = ("download", "_hub", "url", "pretrain")


def _is_shipped(module: Module, call: cst.Call) -> bool:
    """Return whether what is loaded comes with the package: it lies beside the file,
    or among its resources.
    """
    loaded = module.argument(call, "f").node
    return loaded is not None and some(_lies_in_package(module, loaded))


@traced(Through.OPERANDS)
def _lies_in_package(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    match node:
        case cst.Name("__file__"):
            return True
        case cst.Call(func=func, args=args):
            if (module.qualified(func) or "").startswith(_RESOURCES):
                return True
            owner = [func.value] if isinstance(func, cst.Attribute) else []
            return onward(*owner, *(arg.value for arg in args))
        case cst.Attribute(value=owner) | cst.Subscript(value=owner):
            return onward(owner)
    return None


_RESOURCES = (
    "inspect.getfile",
    "importlib.resources.",
    "importlib_resources.",
    "pkg_resources.",
    "pkgutil.get_data",
)


def _is_own(module: Module, call: cst.Call) -> bool:
    """Return whether the function around, or the program, has saved what is loaded: the same name or buffer.

    Where it saves only later, it resumes from what lies there.
    """
    loaded = module.argument(call, "f").node
    function = module.tree.enclosing(call, cst.FunctionDef)
    if loaded is None:
        return False
    scope = module.tree.root if function is None else function
    before = module.tree.order[call]
    for save in module.tree.within(scope, saved_as(module).get(module.source(loaded), [])):
        if module.tree.order[save] > before:
            return False
        if function is not None or module.tree.enclosing(save, cst.FunctionDef) is None:
            return True
    return False
