"""Which functions run at every step of a server or of a generation loop, although no loop is in sight.

An engine calls its model runner, the runner its metadata builders, sampler and proposer, by interfaces that
lead out of a file. What the configuration declares (``hot``, ``cold``) comes first, then what a class is for,
by the interface that it implements. What runs once (loading, warming up, capturing graphs) is cold, whatever
it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.lexicon import Role, asks, begins, denotes, has
from torchlint.semantics.linked import MOST_USERS
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module


class _Method(NamedTuple):
    """A method that an engine calls at every step."""

    classes: tuple[str, ...]
    """What the names of its classes, or of their bases, end with."""
    only: bool = False
    """Whether nothing else has a method of this name; others are given tensors in an engine."""
    of_engine: bool = True
    """Whether it is an engine that calls it, not a pipeline or a model."""


_METHODS: dict[str, _Method] = {
    **dict.fromkeys(
        (
            "execute_model",
            "sample_tokens",
            "take_draft_token_ids",
            "prepare_for_decode",
            "prepare_for_extend",
        ),
        _Method(("",), only=True),
    ),
    "build": _Method(("MetadataBuilder",), only=True),
    "sample": _Method(("Sampler", "Runner")),
    "propose": _Method(("Proposer", "Speculator"), only=True),
    **dict.fromkeys(
        ("step", "add_noise", "get_velocity", "scale_noise"),
        _Method(("Scheduler", "SchedulerMixin"), of_engine=False),
    ),
    "__call__": _Method(("LogitsProcessor", "LogitsWarper", "StoppingCriteria")),
    "apply": _Method(("LogitsProcessor",)),
    "update_state": _Method(("LogitsProcessor",), only=True),
    "forward": _Method(("",)),
}
_ON_LOGITS = frozenset({"__call__", "apply"})
_NAMES = re.compile(r"[A-Za-z_]\w*")


def may_serve(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether ``serves`` may hold of a function, going by its names alone: a cheap question."""
    if _method(function) is not None or _declared(module).hot:
        return True
    return works_on_step(module, function)


@remembered
def serves(module: Module, function: Function) -> bool:
    """Return whether a function runs at every step of a server, by what is declared of it or by its role."""
    if not isinstance(function, cst.FunctionDef):
        return False
    if _is_among(module, function, hot=True):
        return True
    if runs_once(module, function):
        return False
    return works_on_step(module, function) or _has_role(module, function)


def _has_role(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function is the method of a class by which an engine calls it at every step."""
    owner = module.classes.owner(function)
    method = _method(function)
    if owner is None or method is None:
        return False
    if _is_protocol(module, function) or module.classes.info(owner).kind is Kind.MODULE:
        return False
    names = (owner.name.value, *((last_name(base.value) or "") for base in owner.bases))
    if not any(name.endswith(method.classes) for name in names):
        return False
    # A scheduler of learning rates steps as well; one of a sampler is given what the model predicts.
    return method.only or _takes_tensors(module, function)


def steps_engine(module: Module, function: Function) -> bool:
    """Return whether an engine for inference runs a function at each of its steps: what gets the batch of a
    step, what an engine calls by the interface of a class, and what is declared to be hot.
    """
    if not isinstance(function, cst.FunctionDef):
        return False
    if _is_among(module, function, hot=True) or is_of_engine(module, function):
        return True
    method = _method(function)
    return method is not None and method.of_engine and _has_role(module, function)


def is_of_pass(module: Module, function: Function) -> bool:
    """Return whether a function is a part of a model's pass: a method of a module, or a function of no
    class, that is given what flows through one, what stands in for it, or what torch runs as an operator.
    """
    if not isinstance(function, cst.FunctionDef):
        return False
    if function.name.value in operations(module) or applies_operator(module, function):
        return True
    if _is_for_other_class(module, function):
        return True
    owner = module.classes.owner(function)
    apart = owner is not None and module.classes.info(owner).kind is not Kind.MODULE
    return not apart and works_on_step(module, function)


def is_step(module: Module, function: Function) -> bool:
    """Return whether a function ``serves`` as more than a part of a model's pass,
    whatever loops there are in it.

    What an engine does in a step may run a model several times, to draft tokens, say.
    """
    if not isinstance(function, cst.FunctionDef) or not serves(module, function):
        return False
    part = works_on_step(module, function) and not is_of_engine(module, function)
    return not part or _has_role(module, function)


def _method(function: cst.FunctionDef) -> _Method | None:
    """Return the method of an engine that a function has the name of."""
    name = function.name.value
    return _METHODS.get("step" if name.startswith("step_") else name)


@remembered
def works_on_step(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function is given the batch of a step, or is a method of one,
    or a part of a model's pass.

    Whoever calls it, by whatever interface, does so at a step, and torch runs what it has as an operator.
    What processes logits is given those that the model has just computed.
    """
    if is_of_engine(module, function) or function.name.value in operations(module):
        return True
    if stands_in_elsewhere(module, function):
        return True
    if function.name.value in _ON_LOGITS and _has_role(module, function):
        return True
    if _is_for_other_class(module, function) or applies_operator(module, function):
        return True
    if _is_own_helper(module, function) or begins(function.name.value, Role.INITIALIZATION):
        return False  # Whether its callers do, they say themselves.
    return not _is_protocol(module, function) and any(
        asks(param.name.value, Role.PASS_INPUT) and _is_of_tensors(module, param)
        for param in (*function.params.params, *function.params.kwonly_params)
    )


@remembered
def operations(module: Module) -> frozenset[str]:
    """Return the functions that torch has as operators or in the place of its own, for models to run."""
    if not any(map(module.tree.mentions, _OF_OPERATIONS)):
        return frozenset()
    made = {
        function.name.value
        for function in module.tree.nodes(cst.FunctionDef)
        if any(_registers(module, decorator.decorator) for decorator in function.decorators)
    }
    given = (_given_as_operation(call) for call in module.tree.nodes(cst.Call))
    put = (_put_into_torch(module, node) for node in module.tree.nodes(cst.Assign))
    return frozenset(made | {node.value for node in (*given, *put) if isinstance(node, cst.Name)})


def _is_for_other_class(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function in another one is made to be the ``forward`` of a class
    that is defined elsewhere, or of one of its instances.
    """
    match function:
        case cst.FunctionDef(name=name, params=cst.Parameters(params=[first, *_])):
            if first.name.value != "self" or _holder(module, function) is not None:
                return False
            within = module.function(function) is not None
            return within and (name.value == "forward" or name.value in _made_forward(module))
    return False


@remembered
def _made_forward(module: Module) -> frozenset[str]:
    """Return the functions of a file that become the ``forward`` of what it is given:
    ``setattr(module, "forward", f.__get__(module))`` and ``module.forward = f``.
    """
    found: set[str] = set()
    for use in module.tree.nodes(cst.Assign, cst.Call):
        match use:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name("forward")))], value=value
            ):
                found.update(_bound(module, value))
            case cst.Call(
                func=cst.Name("setattr"), args=[_, cst.Arg(value=cst.SimpleString() as name), given]
            ) if name.raw_value == "forward":
                found.update(_bound(module, given.value))
    return frozenset(found)


def _bound(module: Module, method: cst.BaseExpression) -> Iterator[str]:
    """Yield the name of the function that is bound to an instance: ``MethodType(f, x)``, ``f.__get__(x)``."""
    assigned = module.names.assignment(method)
    if isinstance(method, cst.Name):
        yield method.value
    match method if assigned is None else assigned.value:
        case cst.Call(func=cst.Attribute(value=cst.Name(function), attr=cst.Name("__get__"))):
            yield function
        case cst.Call(func=func, args=[cst.Arg(value=cst.Name(function)), _]) if (
            last_name(func) == "MethodType"
        ):
            yield function


@solved(nothing=False)
def applies_operator(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function is an operator of models: one that hands tensors that it is given
    to an autograd ``Function``, or to another such operator.
    """
    if _holder(module, function) is not None or not any(
        _is_of_tensors(module, param) for param in function.params.params
    ):
        return False
    if begins(function.name.value, Role.TEST) or _is_protocol(module, function):
        return False
    return any(
        _passes_on(module, call, function) and _is_operator(module, call)
        for call in module.calls_in(function)
        if not module.flow.loops(call)
    )


def _is_operator(module: Module, call: cst.Call) -> bool:
    """Return whether a call applies an autograd ``Function``, or calls what does."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "apply":
        made = module.value(call.func.value).definition
        info = module.classes.info(made) if isinstance(made, cst.ClassDef) else None
        return info is not None and info.inherits("torch.autograd.Function")
    callee = module.callee(call)
    return isinstance(callee, cst.FunctionDef) and applies_operator(module, callee)


def _passes_on(module: Module, call: cst.Call, function: cst.FunctionDef) -> bool:
    """Return whether a call is given a parameter of the function that it is in."""
    return any(
        isinstance(arg.value, cst.Name)
        and any(
            binding.kind is BindingKind.PARAMETER and binding.scope.node is function
            for binding in module.bindings(arg.value)
        )
        for arg in call.args
    )


_OF_OPERATIONS = ("torch.library", "Library(", "direct_register_custom_op", "functional")


def _registers(module: Module, decorator: cst.BaseExpression) -> bool:
    """Return whether it is ``@torch.library.custom_op(…)``."""
    name = module.qualified(decorator.func if isinstance(decorator, cst.Call) else decorator)
    return name in ("torch.library.custom_op", "torch.library.triton_op")


def _given_as_operation(call: cst.Call) -> cst.BaseExpression | None:
    """Return the function that a call registers as an operation: ``library.impl(name, f, "CUDA")``."""
    match last_name(call.func), call.args:
        case "direct_register_custom_op", _:
            return given_as(call, "op_func", 1)
        case "impl", [_, cst.Arg(value=function), cst.Arg(value=cst.SimpleString() as key)]:
            return None if key.raw_value in ("Meta", "CPU") else function
    return None


def _put_into_torch(module: Module, assigned: cst.Assign) -> cst.BaseExpression | None:
    """Return the function that an assignment puts in the place of one of torch: ``F.linear = function``."""
    match assigned.targets:
        case [cst.AssignTarget(target=cst.Attribute() as target)] if isinstance(assigned.value, cst.Name):
            name = module.qualified(target) or ""
            return assigned.value if name.startswith("torch.nn.functional.") else None
    return None


@remembered
def _put_into_models(module: Module) -> dict[str, list[cst.Name]]:
    """Return the functions that assignments of a file put in the place of those of libraries of models,
    by name: ``modeling_llama.apply_rotary_pos_emb = rotate``.
    """
    found: dict[str, list[cst.Name]] = {}
    for node in module.tree.nodes(cst.Assign):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(attr=replaced) as target)],
                value=cst.Name() as function,
            ) if (module.qualified(target) or "").startswith(_OF_MODELS) and not asks(
                replaced.value, Role.ENGINE_START
            ):
                found.setdefault(function.value, []).append(function)
    return found


_OF_MODELS = ("diffusers.", "sglang.", "transformers.", "vllm.")
"""Where the functions are that models run where they are given tensors."""


def stands_in_elsewhere(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function that is given tensors is put in the place of one of a library of models,
    in its own file or in one that imports it.
    """
    if _holder(module, function) is not None or not any(
        _is_of_tensors(module, param) for param in function.params.params
    ):
        return False
    name = function.name.value
    link, written = module.link, f"= {name}"
    users = [] if link is None else link.users(module, (name,), most=MOST_USERS, written=written)
    return any(
        user.value(given).definition is function
        for user in (module, *users)
        for given in _put_into_models(user).get(name, ())
    )


def _is_own_helper(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function is there for its file or class alone, which calls it."""
    name = function.name.value
    return name.startswith("_") and not name.endswith("__") and bool(module.callers(function))


def is_part_of_step(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a function around a place is one that ``works_on_step``."""
    function = module.function(node)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and works_on_step(module, function):
            return True
        function = module.function(function)
    return False


@remembered
def is_of_engine(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether a function gets the batch of a step, or is a method of one or of a backend."""
    name = function.name.value
    if name.startswith("__") or _is_protocol(module, function):
        return False
    holder = _holder(module, function)
    if holder is not None:
        if denotes(holder.name.value, Role.ENGINE_STEP):
            return True
        if denotes(holder.name.value, Role.ATTENTION_BACKEND) and _takes_tensors(module, function):
            return True
    for param in (*function.params.params, *function.params.kwonly_params):
        written = "" if param.annotation is None else module.source(param.annotation.annotation)
        if any(denotes(name, Role.ENGINE_STEP) for name in (param.name.value, *_NAMES.findall(written))):
            return True
    return False


def is_made_each_step(module: Module, function: Function | None) -> bool:
    """Return whether a function is a method of what an engine makes anew for each step."""
    holder = _holder(module, function) if isinstance(function, cst.FunctionDef) else None
    return holder is not None and denotes(holder.name.value, Role.ENGINE_STEP)


def _holder(module: Module, function: cst.FunctionDef) -> cst.ClassDef | None:
    """Return the class in whose body a function is defined."""
    block = module.tree.parent(function)
    holder = module.tree.parent(block) if block is not None else None
    return holder if isinstance(holder, cst.ClassDef) else None


@remembered
def runs_once(module: Module, function: Function) -> bool:
    """Return whether a function, or one around it, is declared cold, or runs before an engine serves."""
    within: Function | None = function
    while within is not None:
        if isinstance(within, cst.FunctionDef):
            if _is_among(module, within, hot=True):
                return False
            name = within.name.value
            rehearses = has(name, Role.REHEARSAL) or begins(name, Role.CALIBRATION)
            if asks(name, Role.ENGINE_START) or rehearses:
                return True
            if _is_among(module, within, hot=False):
                return True
        within = module.function(within)
    return False


class _Declared(NamedTuple):
    """The patterns of functions that the configuration has for a file."""

    hot: tuple[str, ...]
    cold: tuple[str, ...]


@remembered
def _declared(module: Module) -> _Declared:
    return _Declared(_of_file(module, module.settings.hot), _of_file(module, module.settings.cold))


def _of_file(module: Module, patterns: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return what follows ``::`` in the patterns whose glob matches the file, ``*`` where nothing does."""
    found: dict[str, None] = {}
    for root, pattern in patterns:
        files, mark, functions = pattern.rpartition("::")
        files = files if mark else functions
        if files in ("", "**", "…") or _matches(module.path, root, files):
            found[functions if mark else "*"] = None
    return tuple(found)


def _matches(path: PurePath | None, root: str, files: str) -> bool:
    if path is None:
        return False
    inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    # Reading patterns takes a library that most runs have no use for.
    from torchlint import globs

    return bool(globs.spec([files]).match_file(inside))


def _is_among(module: Module, function: cst.FunctionDef, *, hot: bool) -> bool:
    home = module.home(function)
    patterns = _declared(home).hot if hot else _declared(home).cold
    if not patterns:
        return False
    owner = home.classes.owner(function)
    name = function.name.value if owner is None else f"{owner.name.value}.{function.name.value}"
    return any(
        fnmatchcase(name, pattern) or (owner is not None and owner.name.value == pattern)
        for pattern in patterns
    )


def _takes_tensors(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether an annotation of a parameter speaks of tensors, or its name of what a model predicts."""
    params = (*function.params.params, *function.params.kwonly_params)
    return any(
        # Unlike one of learning rates, a scheduler of noise levels is given what a model predicts.
        asks(param.name.value, Role.NOISE_PREDICTION) or _is_of_tensors(module, param)
        for param in params
    )


def _is_of_tensors(module: Module, param: cst.Param) -> bool:
    """Return whether the annotation of a parameter names a class of tensors: ``list[torch.LongTensor]``."""
    written = "" if param.annotation is None else module.source(param.annotation.annotation)
    return any(name.endswith(("Tensor", "Tensors")) for name in _NAMES.findall(written))


def _is_protocol(module: Module, function: cst.FunctionDef) -> bool:
    return any((last_name(d.decorator) or "").startswith("abstract") for d in function.decorators)
