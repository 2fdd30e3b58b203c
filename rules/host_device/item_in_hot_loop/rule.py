"""TL202 item-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.rules.host_device.purpose import (
    below_saving,
    keeps_results,
    not_a_list_yet,
    reads_items,
    slight_wait,
    writes_results,
)
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import CONVERSIONS, conversion, listed_by
from torchlint.semantics.usage import handed_to
from torchlint.semantics.values import Kind

from ..decisions import Outcome, instead, outcome, slight_decision
from ..destinations import steps_environment, writes_out
from ..needs import Need, followed_at_each_step, needed_on_host, only_recorded, shown_at_once
from ..neighbours import beside_staying_wait
from ..numbers import comprehended, gone_through, is_one_of_many, picked_from
from ..remedies import (
    FROM_HOST,
    LENGTHS_FOR_PACKING,
    READ_TOGETHER,
    WITH_OTHERS,
    as_spelt,
    called,
    counter_of,
    counts_rounds,
    decides,
    in_forward,
    inline,
    now_and_then,
    packs_sequences,
    runs_as_function,
    shown,
    steps_to_host,
    tight,
    without_graph,
)
from ..roundtrips import still_on_host
from ..stakes import BESIDE, DECIDES, NEEDED, ON_BAR, RESULTS, behind_wait, in_server, unspared
from ..suppression import SUPPRESSION, first_wait, suppression
from ..waits import waiting_place
from .accumulation import holds_arrays, is_logged, keep_on_device, log_tensor


@rule(
    "TL202",
    "item-in-hot-loop",
    severity=WARNING,
    fix="safe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: CONVERSIONS},
    mentions=(
        "torch|lightning|accelerate",
        "item(|tolist(|float(|int(|bool(|complex(|math|range(|index(|get_scale(|[",
    ),
    remedy="Store `loss.detach()`, and read all values after the loop",
    synchronizes=True,
)
def item_in_hot_loop(call: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors on the accelerator that are converted to Python numbers in every iteration of a hot loop or
    in every forward pass: `.item()`, `.tolist()`, `float()`, `int()`, `bool()` and similar functions,
    `range()` of a tensor, `get_scale()` of a `GradScaler`, and lists, arrays and tensors of the host that are
    indexed with a tensor (`names[label]`, `confusion[label, prediction]`). In compiled code, TL513 reports
    them as graph breaks instead.

    Checks that raise an error or end the program are of low impact, unless they stand in a decoding loop or
    server: they are there on purpose (TL205).

    All reads of an iteration are reported, since the step waits until the last of them is gone. They are of
    low impact next to a synchronization that stays because the host needs its value at once, also in a
    function that is called or in the caller, where a progress bar of an evaluation shows the number, where a
    forward pass only records it, and in functions that the loop of an evaluation calls for each batch.
    Elements of a tensor that are read one by one count wherever they stand: one copy would do for all.

    The finding is a note where the values are needed at once: actions for an environment in reinforcement
    learning, and predictions that are written to a file or processed one by one.

    ## Why is this bad?

    The host launches kernels ahead of the device. To read a number, it has to wait until all work launched
    so far is done. The device then has nothing queued and idles until the host has launched the next
    kernels. The cost depends on what the host could have done in that time: it is high in a loop with many
    synchronizations per step or with data preparation on the host, and low for one number at the end of a
    step in which the host has nothing else to do.

    ## Example

    ```python
    total = 0.0
    for x, y in loader:
        loss = step(x, y)
        total += loss.item()
    print(f"{total / len(loader):.4f}")
    ```

    ## Use instead

    ```python
    total = 0.0
    for x, y in loader:
        loss = step(x, y)
        total += loss.detach().double()
    print(f"{total / len(loader):.4f}")
    ```

    Numbers that are only logged do not have to be read in every step: read them every hundred steps, for
    example. In reinforcement learning, step several environments together, and copy their actions at once.

    ## Fix safety

    The fix accumulates the tensor instead of the number, in a running total or a list. It adds `.detach()`
    unless the tensor has no graph, as under `torch.no_grad()`. Where the total is printed, returned, written
    or passed on after the loop, the fix converts it, with `float(total)` or `int(correct)`, so that the rest
    of the program gets the same type as before. Formatting (`f"{x:.3f}"`) and floating-point arithmetic and
    comparisons that end in it use the tensor itself. The fix is safe if every use of the total is known, or
    if a list is only used in such arithmetic.

    Integers, such as the number of correct predictions, stay exact: they are summed in 64 bits and converted
    back to Python numbers before any arithmetic. Floating-point values are summed in double precision, with
    `loss.detach().double()`, as Python sums its numbers: the total is the same to the last digit. Where a
    device may not have double precision (in a program that does not name CUDA, or names `mps`), they are
    summed in single precision, with `loss.detach().float()`. The last digits of a mean may differ then: from
    the sixth or seventh on for a few thousand terms, earlier for millions of terms without a reset. If there
    was no batch at all, a total that began as `0` becomes `0.0`.

    The fix is unsafe

    - if results computed from two totals are subtracted, as for a variance, because single precision leaves
      few significant digits of nearly equal numbers;
    - if the file does not show whether a tensor holds integers or floating-point values, or what its shape
      is;
    - if a list is returned;
    - if a total in double precision may be on a device without it (`mps`, or the device that Accelerate or
      Lightning selects);
    - for totals in attributes, dictionaries, class bodies or at module level, which other code may read.

    A number that Lightning's `self.log` is given is replaced by its tensor, which it detaches itself. That is
    safe for floating-point values; for integers, Lightning warns that it converts them.

    There is no fix if such a total or a list is printed as it is, plotted, serialized or passed to NumPy, if
    the total is shown in every iteration, if the tensor is modified in place later, or if nothing is
    accumulated.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    """
    if isinstance(call, cst.Subscript):
        yield from _indexed(module, call)
        return
    tensor = conversion(module, call) if may_recur(module, call) else None
    hot = waiting_place(module, call) if tensor is not None else None
    if tensor is None or hot is None or graph_break(module, call):
        return
    message = f"`{called(module, call)}` synchronizes with the device {when(module, hot)}"
    loop = suppression(module, call)
    if loop is not None:
        if first_wait(module, loop) is call:
            yield Finding(call, message, related=trail(hot), remedy=SUPPRESSION)
        return
    if handed_to(module, call, steps_environment):
        yield _wanted(module, call, message, hot, _FOR_ENVIRONMENTS)
        return
    if handed_to(module, call, packs_sequences):
        yield _wanted(module, call, message, hot, LENGTHS_FOR_PACKING)
        return
    wanted = below_saving(module, call) or reads_items(module, call) or writes_results(module, hot)
    if phase(module, call) is not Phase.TRAINING:
        wanted = wanted or handed_to(module, call, writes_out)
    needless = still_on_host(module, tensor)
    severity = NOTE if wanted and not needless else None
    fix = None if needless else log_tensor(module, call, tensor) or keep_on_device(module, call, tensor)
    bounds = not needless and _bounds_sequences(module, call)
    need = None if needless or bounds or fix is not None else _need(module, call)
    if wanted and need is not Need.DECISION:
        need = None
    # Read one by one, the elements wait each by itself, whatever they are needed for and what is beside them.
    single = not is_one_of_many(module, tensor)
    why = BESIDE if single and beside_staying_wait(module, call, hot) else None
    if why is None and not needless:
        if (need is not None or wanted) and single:
            why = NEEDED
        elif below_saving(module, call):
            why = "only runs where results are saved"
        elif not_a_list_yet(module, call):
            why = "only runs for arguments that are not lists yet"
        elif keeps_results(module, call, hot):
            why = RESULTS
        elif followed_at_each_step(module, call):
            why = ON_BAR
        elif fix is None and in_forward(hot) and only_recorded(module, call):
            why = "the forward pass returns numbers"
    little = behind_wait(module, call) or slight_wait(module, call, why)
    advice = _remedy(module, call, tensor, hot, wanted) if need is None else _for_need(module, tensor, need)
    if bounds:
        advice = _BOUND
    if need is Need.DECISION and not in_server(module, call):
        # What ends a decoding loop is read anyway.
        little = little or DECIDES
    what = None if needless or wanted or fix is not None or need is not None else outcome(module, call)
    if what is not None:
        little = little or slight_decision(module, call, what, hot)
    if what is Outcome.CHECK or (what is not None and (in_forward(hot) or runs_as_function(hot))):
        advice = instead(module, call, hot) or advice
    remedy = as_spelt(module, call, FROM_HOST if needless else advice)
    little = little or unspared(module, hot, remedy)
    yield Finding(call, message, fix, severity=severity, related=trail(hot), remedy=remedy, slight=little)


def _wanted(module: Module, call: cst.Call, message: str, hot: Hot, remedy: str) -> Finding:
    """Return the finding of a number that the program needs on the host."""
    little = behind_wait(module, call) or slight_wait(module, call, NEEDED)
    return Finding(call, message, severity=NOTE, related=trail(hot), remedy=remedy, slight=little)


def _indexed(module: Module, node: cst.Subscript) -> Iterator[Finding]:
    """Yield what is indexed in host memory with a tensor on the device, which Python asks for a number."""
    tensor = listed_by(module, node) if may_recur(module, node) else None
    hot = waiting_place(module, node) if tensor is not None else None
    if tensor is None or hot is None or graph_break(module, node):
        return
    items = gone_through(module, tensor)
    what = _INDEXED.get(module.value(node.value).kind, "a list")
    indices = "all indices" if items is None else f"`{tight(module, items)}.tolist()`"
    yield Finding(
        node,
        f"indexing {what} with a tensor synchronizes with the device {when(module, hot)}",
        related=trail(hot),
        remedy=as_spelt(module, node, f"Read {indices} at once before the loop"),
        slight=behind_wait(module, node)
        or slight_wait(module, node, BESIDE if beside_staying_wait(module, node, hot) else None),
    )


_INDEXED = {Kind.NDARRAY: "an array", Kind.TENSOR: "a tensor in host memory"}
_AT_ONCE = "Read all elements at once before the loop"
_FOR_ENVIRONMENTS = "Step several environments together, and copy their actions at once: `.cpu().numpy()`"
# The functions of ``math`` that have a twin of the same name in torch.
_TWINS = frozenset(
    {"ceil", "cos", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2"}
    | {"sin", "sqrt", "tan", "tanh", "trunc"}
)


_OF_BUILTINS = {
    "builtins.max": "torch.maximum",
    "builtins.min": "torch.minimum",
}


def _remedy(module: Module, call: cst.Call, tensor: cst.BaseExpression, hot: Hot, wanted: bool) -> str:
    """Return what to write instead, by what becomes of the number."""
    twin = _of_torch(module, call)
    if twin is not None:
        return f"Compute on the device: `{twin}(…)`"
    if is_logged(module, call):
        return "Log the tensor: Lightning reads it only when it is shown or written"
    kept = without_graph(module, tensor, copied=changed_later(module, tensor))
    if last_name(call.func) == "tolist" and verdicts(module, call, _indexes_tensor) == {True}:
        return "Index with the tensor itself, all elements at once"
    if wanted and runs_as_function(hot):
        return WITH_OTHERS
    if wanted or (_is_key(module, call) and not in_forward(hot)):
        return f"Collect {kept} in a list, and read all values after the loop with one `.tolist()`"
    if last_name(call.func) == "get_scale" or (shown(module, call) and counts_rounds(hot)):
        return f"Read it only every 100 steps, {now_and_then(module, hot)}"
    if in_forward(hot) and only_recorded(module, call):
        return f"Keep {kept} instead, and read it when it is shown or written"
    if in_forward(hot):
        return f"Remove `{steps_to_host(module, call, tensor)}`, and compute with the tensor"
    elements = gone_through(module, tensor)
    if elements is not None:
        return _at_once(module, elements, tensor)
    elements = comprehended(module, tensor)
    # A list of nothing but the elements can hold tensors instead; what they are put together in may be keys.
    if elements is not None and not isinstance(module.tree.parent(call), cst.BaseSimpleComp):
        named = isinstance(tensor, cst.Name)
        return _at_once(module, elements, tensor) if named else f"{_AT_ONCE}, with one `.tolist()`"
    if decides(module, call) and not runs_as_function(hot):
        often = f"{counter_of(module, hot)} % 100 == 0 and …"
        return f"Select on the device with `torch.where(…)`, or test only every 100 steps: `{often}`"
    if _is_state(module, tensor) and not runs_as_function(hot):
        assert isinstance(tensor, cst.Attribute)
        advice, code = "Read it once before the loop, if the loop does not change it", inline(module, call)
        return advice if code == "…" else f"{advice}: `{tensor.attr.value} = {code}`"
    if _is_item(module, tensor):
        return f"{_AT_ONCE}, with one `.tolist()`"
    items = None if runs_as_function(hot) else picked_from(module, tensor)
    if items is not None:
        return _at_once(module, items, tensor)
    if verdicts(module, call, _indexes_tensor) == {True}:
        return f"Remove `{steps_to_host(module, call, tensor)}`, and index with the tensor"
    statement = module.flow.statement(call)
    if isinstance(statement, cst.Return):
        return f"Return {kept}, and read it in the caller only when needed"
    if isinstance(statement, cst.AugAssign):
        if isinstance(statement.value, cst.List):
            return f"Collect {kept} in the list instead, and {_later(module, call)}"
        if holds_arrays(module, statement.target):
            return f"Collect {kept} in a list, and sum the list after the loop"
        total, sign = inline(module, statement.target), inline(module, statement.operator)[:-1]
        later = _SELDOM if shown_at_once(module, call) else "read the total after the loop"
        if _is_compared(module, call):
            return f"Compare the tensor itself, accumulate with `{total} = {total} {sign} …`, and {later}"
        return f"Accumulate {kept} with `{total} = {total} {sign} …`, and {later}"
    if runs_as_function(hot):
        return f"Keep {kept} instead, and {READ_TOGETHER}"
    return f"Store {kept} instead, and {_later(module, call)}"


_SELDOM = "show it only every 100 steps"


def _later(module: Module, call: cst.Call) -> str:
    """Return when to read what is collected."""
    return _SELDOM if shown_at_once(module, call) else "read all values after the loop"


def _need(module: Module, call: cst.Call) -> Need | None:
    return Need.SIZE if module.qualified(call.func) == "builtins.range" else needed_on_host(module, call)


def _for_need(module: Module, tensor: cst.BaseExpression, need: Need) -> str:
    """Return what spares waits where the number is needed on the host at once."""
    items = gone_through(module, tensor)
    if items is not None:
        return _at_once(module, items, tensor)
    if (
        isinstance(tensor, cst.Attribute)
        and isinstance(tensor.value, cst.Name)
        and tensor.value.value == "self"
    ):
        return f"Keep `{inline(module, tensor)}` as a Python number as well, so that it need not be read"
    if need is Need.SIZE and _counts_mask(tensor):
        return "Take the count from the shape of what the mask selects, such as `x[mask].shape[0]`"
    if need is Need.SIZE:
        return "Take it from a shape, or compute it on the host where the batch is made, and pass it along"
    if need is Need.DECISION:
        return f"Check every few iterations, or {READ_TOGETHER}"
    return WITH_OTHERS


def _at_once(module: Module, items: cst.BaseExpression, read: cst.BaseExpression) -> str:
    if isinstance(read, cst.Call):
        # ``row.argmax()`` is computed from an element, which a list would not have.
        whole = tight(module, items)
        return f"Compute it for all of `{whole}` before the loop, and read the results with one `.tolist()`"
    return f"{_AT_ONCE}: `{tight(module, items)}.tolist()`"


def _counts_mask(tensor: cst.BaseExpression) -> bool:
    return last_name(tensor.func) == "sum" if isinstance(tensor, cst.Call) else False


def _is_state(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether it is ``net.mean``, ``self.prior.table``: a buffer of a module,
    by all that is seen of it from outside.
    """
    owner = tensor.value if isinstance(tensor, cst.Attribute) and tensor.attr.value != "data" else None
    if not isinstance(owner, (cst.Name, cst.Attribute)) or module.source(owner) == "self":
        return False
    return module.value(owner).kind is Kind.MODULE


def _is_compared(module: Module, call: cst.Call) -> bool:
    """Return whether a statement adds up how a number compares, and not the number."""
    statement = module.flow.statement(call)
    return any(
        isinstance(outer, cst.Comparison) and module.tree.contains(statement, outer)
        for outer in module.tree.ancestors(call)
    )


def _is_item(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether the innermost loop goes through a list or tensor that ``tensor`` is an element of."""
    loop = next(iter(module.flow.statement_loops(tensor)), None)
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name):
        return False
    gone = isinstance(tensor, cst.Name) and tensor.value == loop.target.value
    return gone and module.value(loop.iter).kind in (Kind.LIST, Kind.TUPLE, Kind.TENSOR)


def _indexes_tensor(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a list of numbers only picks from tensors, which another tensor can do as well."""
    if use.kind in (UseKind.ASSIGNED, UseKind.DISCARDED, UseKind.ITERATED):
        return ONWARD
    if use.kind is UseKind.ARGUMENT and module.qualified(use.call.func) in _SAME_ITEMS:
        return Standing(use.call)
    if use.kind is UseKind.ELEMENT:
        return Standing(use.by) if isinstance(use.by, cst.Tuple) else False
    owner = use.by.value if use.kind is UseKind.INDEX and isinstance(use.by, cst.Subscript) else None
    return owner is not None and not isinstance(use.part, cst.Slice) and module.value(owner).tensorlike


_SAME_ITEMS = frozenset({"builtins.list", "builtins.set", "builtins.sorted", "builtins.tuple"})


def _of_torch(module: Module, call: cst.Call) -> str | None:
    """Return the function of torch that does with tensors what Python does with the number."""
    package, _, name = (module.qualified(call.func) or "").rpartition(".")
    if package == "math" and name in _TWINS:
        return f"torch.{name}"
    outer = module.tree.call_given(call)
    chosen = module.qualified(outer.func) if outer is not None else None
    return _OF_BUILTINS.get(chosen or "")


_BOUND = "Pass a bound that the host knows, such as the padded length: attention takes longer ones as well"


def _bounds_sequences(module: Module, call: cst.Call) -> bool:
    """Return whether a number is the length of the longest of packed sequences, by the name that
    FlashAttention has for it: ``max_seqlen_q``.
    """
    return True in verdicts(module, call, _is_longest)


def _is_longest(module: Module, use: Use) -> Verdict[bool]:
    match use.kind:
        case UseKind.CHOICE:
            return ONWARD
        case UseKind.ARGUMENT if module.qualified(use.call.func) == "builtins.int":
            return Standing(use.call)
        case UseKind.ARGUMENT:
            keyword = use.argument.keyword
            return keyword is not None and keyword.value.startswith(_LONGEST)
        case UseKind.ASSIGNED:
            return isinstance(use.by, cst.Name) and use.by.value.startswith(_LONGEST)
    return False


_LONGEST = "max_seqlen"


def _is_key(module: Module, call: cst.Call) -> bool:
    """Return whether a number is the key of a dictionary, which a tensor cannot stand for."""
    parent = module.tree.parent(call)
    return isinstance(parent, (cst.DictComp, cst.DictElement)) and parent.key is call
