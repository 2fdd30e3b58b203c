"""TL309 data-attribute."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import replace, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.api import results
from torchlint.semantics.contexts import is_test
from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module
from torchlint.semantics.sharing import Fate, fate
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import Graph, Kind

# Methods and attributes of which autograd knows nothing: what is asked of the tensor itself as well.
_NO_GRAPH = frozenset(
    {"shape", "size", "dim", "ndim", "ndimension", "numel", "nelement", "dtype", "device", "type", "type_as"}
    | {"is_cuda", "data_ptr", "storage", "untyped_storage", "stride", "is_contiguous", "element_size", "new"}
    | {"get_device", "is_sparse", "layout", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"}
)
# Functions that ask what autograd has no part in, or print the values without a word about the graph.
_ASKING = frozenset({"builtins.isinstance", "builtins.type", "builtins.len", "builtins.id", "builtins.print"})
# Methods whose result shares the memory of the tensor.
_VIEWS = frozenset(
    {"view", "view_as", "t", "transpose", "permute", "squeeze", "unsqueeze", "flatten", "reshape", "expand"}
    | {"narrow", "select", "chunk", "split", "contiguous", "cpu", "cuda", "to", "float", "numpy", "detach"}
)
_HEAD = ("torch.nn.init.", "torch.distributed.", "torch.cuda.comm.", "torch._foreach_")


@rule(
    "TL309",
    "data-attribute",
    severity=NOTE,
    fix="unsafe",
    measured=False,
    on=cst.Attribute,
    named={cst.Attribute: ("data",)},
    mentions=("torch", ".data"),
)
def data_attribute(node: cst.Attribute, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds reads of `.data` on a tensor with a graph, where the values are used outside autograd:
    `outputs.data.max(1)`, `hidden.data`, `loss.data.item()`.

    The rule ignores code that writes to the tensor through `.data` (assignments, in-place methods such as
    `p.data.add_(…)`, `nn.init.*`, collectives, variables that are later modified in place), gradients, code
    where autograd is off, queries of shape or type, and attributes named `data` of anything that is not known
    to be a tensor.

    ## Why is this bad?
    `x.data` shares memory with `x`, but autograd does not track changes made through it. If the values are
    modified later, the backward pass silently computes wrong gradients. With `x.detach()`, it raises an error
    instead. The attribute is a remnant of the time before torch 0.4.

    ## Example
    ```python
    _, predicted = torch.max(outputs.data, 1)
    ```

    ## Use instead
    ```python
    _, predicted = torch.max(outputs.detach(), 1)
    ```

    ## Fix safety
    Unsafe: the values are the same, but if the program modifies them in place outside the file, the backward
    pass may now raise an error.

    ## References
    - [PyTorch 0.4.0 migration guide: what about .data?](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
    - [In-place operations with autograd](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """
    if node.attr.value != "data" or _is_written(module, node):
        return
    owner = node.value
    if isinstance(owner, cst.Attribute) and owner.attr.value in ("grad", "data"):
        return
    if not _may_cut_graph(module, node, owner):
        return
    if (
        is_test(module)
        or module.classes.of_other_framework
        or _is_indexed(module, node)
        or grad(module, node) is Grad.OFF
        or _is_kept_apart(module, node)
        or fate(module, node) is Fate.WRITTEN
    ):
        return
    name = module.source(owner)
    yield Finding(
        node,
        f"autograd does not detect in-place changes to `{name}.data`; use `.detach()`",
        fix=unsafe(
            module,
            "Use `.detach()`",
            replace(module, node, f"{name}.detach()"),
            risk="the backward pass raises an error if the values are changed in place before it",
        ),
        remedy="Use `.detach()`",
    )


def _may_cut_graph(module: Module, node: cst.Attribute, owner: cst.BaseExpression) -> bool:
    """Return whether this is the data of a tensor with a graph, or of what can hardly be anything else.

    ``Variable(x.data)`` and ``x.data.cpu()`` take a tensor; ``.data`` has a purpose there only if that has a
    graph. What a model of another file returns is one tensor if it is asked for what only tensors have.
    """
    value = module.value(owner)
    if value.graph is Graph.DETACHED or value.kind not in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN):
        return False
    parent = module.tree.parent(node)
    asked = parent.attr.value if isinstance(parent, cst.Attribute) else ""
    if value.graph is Graph.ATTACHED:
        if value.kind is Kind.TENSOR:
            return True
        known = module.inference.clues.used_attributes(owner) | {asked}
        return value.kind is Kind.BATCH and bool(known & results.TENSOR_METHODS.keys())
    if asked == "cpu":
        return True
    call = module.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and module.qualified(call.func) == "torch.autograd.Variable"


def _is_indexed(module: Module, node: cst.Attribute) -> bool:
    """Return whether it is `loss.data[0]` of a loss without a dimension, which raises: TL310 has it."""
    parent = module.tree.parent(node)
    one = isinstance(parent, cst.Subscript) and parent.value is node
    return one and has_no_dimension(module, node.value) is not False


def _is_written(module: Module, node: cst.Attribute) -> bool:
    """Return whether the tensor is written through this, or only asked what autograd has no part in."""
    whole: cst.CSTNode = node
    parent = module.tree.parent(whole)
    while isinstance(parent, (cst.Subscript, cst.Attribute, cst.Call)):
        if isinstance(parent, cst.Attribute):
            name = parent.attr.value
            if (
                name in _NO_GRAPH
                or name in results.GRAPHLESS_METHODS
                or (name.endswith("_") and not name.endswith("__"))
            ):
                return True
            if name in ("clone", "cpu", "numpy", "item", "tolist", "copy"):
                return False
        elif isinstance(parent, cst.Subscript) and parent.value is not whole:
            return False
        elif isinstance(parent, cst.Call) and parent.func is not whole:
            break
        whole, parent = parent, module.tree.parent(parent)
    if isinstance(parent, cst.AugAssign):
        return parent.target is whole
    return isinstance(parent, (cst.AssignTarget, cst.AnnAssign, cst.Del, cst.Element)) and _is_target(
        module, whole
    )


def _is_target(module: Module, node: cst.CSTNode) -> bool:
    """Return whether an expression stands on the left of an assignment."""
    for parent in module.tree.ancestors(node):
        if isinstance(parent, (cst.AssignTarget, cst.Del)):
            return True
        if isinstance(parent, cst.AnnAssign):
            return parent.target is node
        if not isinstance(parent, (cst.Element, cst.Tuple, cst.List)):
            return False
    return False


def _is_kept_apart(module: Module, node: cst.Attribute) -> bool:
    """Return whether a statement updates parameters outside of autograd, or a variable does so later.

    ``p.data = q.data``, ``p.data.copy_(q.data)``, ``init.normal_(p.data)``, and ``w = p.data; w.add_(…)``.
    """
    alias = True
    for parent in module.tree.ancestors(node):
        if isinstance(parent, cst.Call):
            qualified, word = module.qualified(parent.func) or "", last_name(parent.func) or ""
            shown = qualified in _ASKING and any(arg.value is node for arg in parent.args)
            graphless = word in results.GRAPHLESS_METHODS or word in ("equal", "allclose")
            if shown or graphless or qualified.startswith(_HEAD) or qualified in results.LIKE_FACTORIES:
                return True
            if word.endswith("_") and not word.endswith("__"):
                return True
            alias = alias and word in _VIEWS and qualified == ""
        elif isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
            alias = False
        elif isinstance(parent, cst.Assign):
            if alias and True in verdicts(module, parent.value, _updates):
                return True
            if any(_is_data(target.target) for target in parent.targets):
                return True
            return _is_written_back(module, parent)
        elif isinstance(parent, cst.AugAssign):
            return _is_data(parent.target)
        elif isinstance(parent, cst.BaseStatement):
            return False
    return False


def _is_written_back(module: Module, statement: cst.Assign) -> bool:
    """Return whether the tensors that a statement reads are replaced in the same function:
    a moving average.
    """
    function = module.function(statement)
    owners = {
        module.source(inner.value)
        for inner in module.tree.descendants(statement.value)
        if isinstance(inner, cst.Attribute) and inner.attr.value == "data"
    }
    return any(
        isinstance(binding.target, cst.Attribute)
        and module.function(binding.target) is function
        and module.source(binding.target.value) in owners
        for binding in module.names.attributes.get("data", ())
    )


def _is_data(target: cst.CSTNode) -> bool:
    """Return whether an assignment writes through `.data`."""
    whole = start_of(target, cst.Subscript)
    return isinstance(whole, cst.Attribute) and whole.attr.value == "data"


def _updates(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use of what was `.data` changes it in place, or writes it through `.data`."""
    match use.kind:
        case UseKind.ASSIGNED | UseKind.UNPACKED | UseKind.ITEM:
            return ONWARD
        case UseKind.AUGMENTED | UseKind.SET:
            return True
        case UseKind.STORED:
            return _is_data(use.by)
        case UseKind.METHOD:
            return use.name.endswith("_") and not use.name.endswith("__")
        case UseKind.ARGUMENT:
            qualified, keyword = module.qualified(use.call.func) or "", use.argument.keyword
            given = keyword is not None and keyword.value == "out"
            return given or qualified.startswith(_HEAD) or qualified.endswith("_")
    return False
