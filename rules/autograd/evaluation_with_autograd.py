from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import add_decorator, dissolve_in, graded, spell, wrap, wrap_with
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.flow.guards import guards
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Graph, Kind

from .nogradregions import NoGradRegions, Region

_SUSPENDED = "Wrap only the forward pass in `with torch.no_grad():`, and yield or await outside the block"


@rule(
    "TL301",
    "evaluation-with-autograd",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("torch|accelerate|import:transformers",),
    remedy="Wrap the forward pass in `with torch.no_grad():`",
)
def evaluation_with_autograd(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds forward passes that autograd records although no backward pass uses their results: in functions that
    evaluate, validate, test, predict, generate or sample, after `.eval()`, over a validation or test loader,
    and beside the steps of a training loop (samples drawn now and then, data that nothing is trained on).
    Calls of a helper that training also uses count, and so do loops over `["train", "val"]`, and methods of a
    model that decode tokens one by one. There is one finding per function or loop.

    It also finds forward passes, in training itself, of a model that is never trained: a teacher, a target
    network, a frozen feature extractor. The file has to show that it creates the model, that no optimizer
    gets its parameters, and that its input has no graph. In files that train, it also finds passes whose
    graph is dropped: everything that is done with the result ends in `detach()`, `item()`, a comparison,
    indices (`argmax`) or a sample of a distribution, as where an agent acts or a target is computed.

    The rule ignores code where autograd is off in any way (a decorator, a `with` block,
    `torch.set_grad_enabled(False)`, all callers in the file, the hooks of Lightning and Trainer), models
    whose parameters are frozen, code that asks for gradients itself, and adversarial or attribution code.

    ## Why is this bad?
    `.eval()` only changes the behavior of layers such as dropout and batch norm. While autograd is on, each
    operation still creates a graph node and saves its inputs for a backward pass that never runs. That costs
    host time in every operation, and memory for all activations of the batch, so evaluation needs a smaller
    batch than it could use.

    ## Example
    ```python
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Use instead
    ```python
    @torch.no_grad()
    def evaluate(model, loader):
        model.eval()
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum()
    ```

    ## Fix safety
    A function that only evaluates gets the decorator `@torch.no_grad()`, below its other decorators.
    Elsewhere the loop, or the adjacent forward passes, are wrapped in `with torch.no_grad():`, or in
    `with torch.set_grad_enabled(phase == "train"):` where one loop trains and validates. Existing
    `with torch.no_grad():` blocks inside or directly next to the wrapped code are merged into it, unless that
    would drop a comment: then there is no fix.

    The fix is safe unless a tensor may leave the file with its graph, and be used in a backward pass
    elsewhere: it is returned by a function that other files may call (not nested, no leading underscore),
    stored in an attribute, put into a container of the caller, or passed to a callback of the caller. Values
    returned as Python numbers have no graph, and nothing imports a notebook.

    The fix is also unsafe for generator functions, for a model that is never trained (its parameters no
    longer get a `.grad`), where a model keeps a tensor with its graph for a later forward or backward pass,
    where the program reads `requires_grad` or `grad_fn` of a tensor or gives a `TransformerEncoder` a padding
    mask, whose outputs differ without autograd, and where a tensor is printed with its graph. There is no fix
    where the code to wrap contains `yield` or `await`, because the consumer would run without autograd, and
    none for functions compiled with `torch.jit.script`.

    ## References
    - [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """
    region = NoGradRegions.of(module).recorded(call)
    if region is None:
        return
    model = f"`{module.source(call.func)}`"
    what = f"{model} is never trained" if region.untrained else f"{model} runs for evaluation"
    if region.dropped:
        what = f"this result of {model} is never backpropagated"
    yield Finding(
        call,
        f"{what}, but autograd records its graph and saves its activations",
        fix=_without_autograd(module, region),
        remedy=_SUSPENDED if any(_suspends(module, part) for part in _code(region)) else None,
    )


def _code(region: Region) -> tuple[cst.CSTNode, ...]:
    """Return the code to run without autograd."""
    return region.statements if region.function is None else (region.function.body,)


def _without_autograd(module: Module, region: Region) -> Fix | None:
    if region.function is not None:
        function = region.function
        suspends = _suspends(module, function.body)
        if function.asynchronous is not None or _is_scripted(module, function):
            return None
        spelling = spell(module, "torch.no_grad", function)
        if spelling is None:
            return None
        risk = _risk(module, region)
        if risk is None and suspends:
            risk = "a generator runs between its steps with the grad mode of whoever resumes it"
        if risk is None and module.mentions(*_LOOKS_INTO_FUNCTIONS):
            risk = "the program inspects its functions, and finds the decorated one"
        decorator = add_decorator(module, function, f"{spelling.text}()")
        needless = dissolve_in(module, (function.body,), lambda block: _is_off(module, block, function))
        told = f"Add `@{spelling.text}()`"
        return graded(module, told, decorator, needless, spelling.edits, risk=risk)
    if not region.statements or any(_suspends(module, statement) for statement in region.statements):
        return None
    if region.training is not None:
        spelling = spell(module, "torch.set_grad_enabled", region.statements[0])
        argument = module.source(region.training)
    else:
        spelling = spell(module, "torch.no_grad", region.statements[0])
        argument = ""
    if spelling is None:
        return None
    header = f"with {spelling.text}({argument}):"
    if region.training is not None:
        wrapped = wrap(module, region.statements, header)
    else:
        around = module.function(region.statements[0])
        wrapped = wrap_with(module, region.statements, header, lambda block: _is_off(module, block, around))
    return graded(module, f"Wrap in `{header}`", wrapped, spelling.edits, risk=_risk(module, region))


def _risk(module: Module, region: Region) -> str | None:
    """Return what could miss the graph that a region no longer records."""
    if region.escapes:
        return "a result leaves this code, and may be backpropagated through elsewhere"
    if _kept_for_training(module):
        return "the program keeps results for a later backward pass, or depends on whether they have a graph"
    return None


def _is_off(module: Module, block: cst.With, function: cst.CSTNode | None) -> bool:
    """Return whether a block of this function only switches autograd off,
    which nothing in the file switches on.
    """
    if module.tree.mentions("enable_grad") or module.tree.mentions("set_grad_enabled"):
        return False
    match block.items:
        case [cst.WithItem(item=cst.Call(args=[]) as context, asname=None)] if block.asynchronous is None:
            pass
        case _:
            return False
    return module.function(block) is function and module.qualified(context.func) == "torch.no_grad"


def _suspends(module: Module, node: cst.CSTNode) -> bool:
    """Return whether code between may run, or the mode may leak, while this code is suspended."""
    return any(
        isinstance(inner, (cst.Yield, cst.Await)) and module.function(inner) is module.function(node)
        for inner in module.tree.descendants(node)
    )


# Of a decorated function these are those of the wrapper.
_LOOKS_INTO_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")


def _kept_for_training(module: Module) -> bool:
    return _keeps_for_training(module) or _leaves_graph(module)


@remembered
def _keeps_for_training(module: Module) -> bool:
    """Return whether a model of the program computes something with a graph only
    if it has not kept it before.

    What it keeps in an evaluation, a pass of training may then find.
    """
    return any(map(_keeps_graph, (module, *module.companions("is None", "hasattr(self", " not in self."))))


@remembered
def _keeps_graph(module: Module) -> bool:
    return any(
        any(_names_attribute(module, guard.test, name) for guard in guards(module, target))
        for name, target in _kept_with_graph(module)
    )


@remembered
def _kept_with_graph(module: Module) -> list[tuple[str, cst.Attribute]]:
    """Return the attributes in which classes of a file keep tensors with a graph, with their names."""
    return [
        (name, binding.target)
        for name, bindings in module.names.attributes.items()
        for binding in bindings
        if binding.value is not None
        and SelfAttributes.is_self(binding.target.value)
        and module.value(binding.value).kind is Kind.TENSOR
        and module.value(binding.value).graph is Graph.ATTACHED
    ]


@remembered
def _leaves_graph(module: Module) -> bool:
    """Return whether a pass leaves a tensor in a model that a backward pass runs through later.

    Where it is read behind a pass of the same function, it is what that pass left.
    """
    return any(
        any(_reads_first(each, name) for each in (module, *module.companions(f".{name}")))
        and Backpropagation.of(owner).feeds(target)
        for owner in (module, *module.companions("Module"))
        for name, target in _kept_with_graph(owner)
    )


def _reads_first(module: Module, name: str) -> bool:
    """Return whether a function reads an attribute of a model before it runs one."""
    for read in module.tree.attributes_by_name.get(name, ()):
        if SelfAttributes.is_self(read.value) or isinstance(module.tree.parent(read), cst.AssignTarget):
            continue
        calls = module.calls_in(module.function(read))
        order = module.tree.order
        if not any(module.value(c.func).kind is Kind.MODULE and order[c] < order[read] for c in calls):
            return True
    return False


def _names_attribute(module: Module, test: cst.BaseExpression, name: str) -> bool:
    return any(
        (isinstance(node, cst.Attribute) and node.attr.value == name)
        or (isinstance(node, cst.SimpleString) and node.raw_value == name)
        for node in module.tree.descendants(test)
    )


def _is_scripted(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether TorchScript compiles a function: it knows no decorators of Python."""
    if any((module.qualified(d.decorator) or "").startswith("torch.jit.") for d in function.decorators):
        return True
    binding = module.binding_of(function)
    for use in module.uses(binding) if binding is not None else ():
        call = module.tree.call_given(use)
        if call is not None and (module.qualified(call.func) or "").startswith("torch.jit."):
            return True
    return False
