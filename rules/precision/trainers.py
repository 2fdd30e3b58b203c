"""The trainers of Transformers and Accelerate: what takes their arguments, and what they say of precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.families import is_pretrained_class, is_training_arguments
from torchlint.semantics.api.upgrades import ARGUMENTS
from torchlint.semantics.configured import parses_training_arguments, settings_of
from torchlint.semantics.flow.graph import Decision
from torchlint.semantics.identifiers import identifiers
from torchlint.semantics.remembered import remembered
from torchlint.semantics.upgrading import Given

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

TRAINING_ARGUMENTS = "transformers.TrainingArguments"
_LOADING = "transformers.PreTrainedModel.from_pretrained"


def taker(module: Module, call: cst.Call) -> str | None:
    """Return what takes the arguments of a call, by its name in the table of upgrades;
    None if it is none of that.

    A class of the file counts as the library class that it inherits from, unless it has a constructor of its
    own; what such a constructor hands on with ``super().__init__(...)`` counts, too.
    """
    dotted = module.qualified(call.func)
    if dotted is not None:
        return _in_table(dotted)
    match call.func:
        case cst.Attribute(value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__")):
            owner = module.tree.enclosing(call, cst.ClassDef)
            parents = module.classes.info(owner).parents if owner is not None else ()
            if owner is None or any(parent.method("__init__") is not None for parent in parents):
                return None
            return _inherited(module, owner)
    heirs = _heirs(module)
    definition = module.value(call.func).definition if heirs else None
    return heirs.get(definition) if isinstance(definition, cst.ClassDef) else None


@remembered
def _heirs(module: Module) -> dict[cst.ClassDef, str]:
    """Return the classes of the file that leave their constructor to a class in the table, with its name."""
    found: dict[cst.ClassDef, str] = {}
    for definition in module.tree.nodes(cst.ClassDef):
        name = _inherited(module, definition)
        if name is not None and module.classes.info(definition).method("__init__") is None:
            found[definition] = name
    return found


def _inherited(module: Module, definition: cst.ClassDef) -> str | None:
    """Return the name in the table of the class that a class of the file inherits from,
    if it is no mixture.
    """
    names = [name for base in module.classes.info(definition).bases for name in [_in_table(base)]]
    return names[0] if len(names) == 1 and len(definition.bases) == 1 else None


def _in_table(dotted: str) -> str | None:
    package, _, rest = dotted.partition(".")
    if package == "transformers":
        # ``transformers.training_args.TrainingArguments``; a method keeps its class.
        names = rest.split(".")
        while len(names) > 1 and names[0][:1].islower():
            del names[0]
        dotted = f"{package}.{'.'.join(names)}"
    if is_training_arguments(dotted):
        return TRAINING_ARGUMENTS
    owner, _, method = dotted.rpartition(".")
    if method == "from_pretrained" and is_pretrained_class(owner):
        return _LOADING
    return dotted if package in ("transformers", "accelerate") and dotted in ARGUMENTS else None


def given_up(module: Module, call: cst.Call) -> Iterator[Given]:
    """Yield the arguments of a call, given by keyword or in a dictionary of the file, that were given up."""
    taken_by = taker(module, call)
    rows = ARGUMENTS.get(taken_by, ()) if taken_by is not None else ()
    own = _own_fields(module, call) if rows else frozenset()
    for node, name in _named(module, call) if rows else ():
        spelt = name.value if isinstance(name, cst.Name) else name.evaluated_value
        for row in rows:
            if spelt == row.argument and spelt not in own:
                if not row.value or module.value(node.value).constant == row.value:
                    yield Given(node, name, row)


def _named(
    module: Module, call: cst.Call
) -> Iterator[tuple[cst.Arg | cst.DictElement, cst.Name | cst.SimpleString]]:
    """Yield what a call passes by name, ``**options`` included where the file shows the dictionary."""
    for arg in call.args:
        if arg.keyword is not None:
            yield arg, arg.keyword
        elif arg.star == "**":
            options = arg.value
            if isinstance(options, cst.Name):
                options = _unpacked_first(module, options) or options
            if isinstance(options, cst.Dict):
                for element in options.elements:
                    if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
                        yield element, element.key
            elif isinstance(options, cst.Call) and module.qualified(options.func) == "builtins.dict":
                yield from ((inner, inner.keyword) for inner in options.args if inner.keyword is not None)


def _unpacked_first(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    """Return the value of a variable, asked at the first call that it is passed to,
    and None at the others.
    """
    bindings = module.bindings(name)
    if len(bindings) != 1 or bindings[0].path:
        return None
    passed = [use for use in module.uses(bindings[0]) if isinstance(module.tree.parent(use), cst.Arg)]
    return bindings[0].value if passed and passed[0] is name else None


def _own_fields(module: Module, call: cst.Call) -> frozenset[str]:
    """Return the fields that a class of the file adds to those that it inherits."""
    definition = module.value(call.func).definition
    if not isinstance(definition, cst.ClassDef):
        return frozenset()
    return frozenset(
        statement.target.value
        for info in module.classes.info(definition).lineage
        for line in info.node.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for statement in line.body
        if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name)
    )


# --- precision --------------------------------------------------------------------------------------------

_REDUCED = frozenset({"bf16", "fp16", "tf32"})
_DECIDED_ELSEWHERE = _REDUCED | {"deepspeed", "use_cpu", "no_cuda", "parallelism_config", "jit_mode_eval"}
_OF_TRAINING = frozenset(
    {
        *(
            "gradient_accumulation_steps",
            "learning_rate",
            "lr_scheduler_type",
            "max_steps",
            "num_train_epochs",
        ),
        *("optim", "per_device_train_batch_size", "per_gpu_train_batch_size", "warmup_steps", "weight_decay"),
    }
)
_SMALL_TYPES = frozenset({"torch.bfloat16", "torch.float16"})
_QUANTIZED = frozenset({"load_in_8bit", "load_in_4bit", "quantization_config"})
_TF32 = frozenset(
    {"allow_tf32", "set_float32_matmul_precision", "fp32_precision", "float32_matmul_precision"}
)


def left_in_full_precision(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes training arguments that leave the precision at float32,
    and nothing else sets it.

    The configurations of TRL choose bfloat16 by themselves. Unknown is what ``**kwargs`` may hold, and what a
    configuration of DeepSpeed says.
    """
    dotted = module.qualified(call.func) or ""
    parsed = parses_training_arguments(module, call)
    if dotted.startswith("trl.") or not (parsed or taker(module, call) == TRAINING_ARGUMENTS):
        return False
    if _is_handed_on(call) or _stands_in(module, call):
        return False
    settings = settings_of(module, call)
    given = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    given |= settings.items.keys() if settings is not None else set()
    if not (given & _OF_TRAINING or _trains(module)):
        return False
    if (
        (settings is None and (parsed or any(arg.star for arg in call.args)))
        or given & _DECIDED_ELSEWHERE
        or _own_fields(module, call) & _REDUCED
    ):
        return False
    return not _reduces(module)


@remembered
def _reduces(module: Module) -> bool:
    """Return whether the file asks for a shorter type anywhere."""
    if not _REDUCED.isdisjoint(module.names.attributes) or not _TF32.isdisjoint(identifiers(module)):
        return True
    if "mixed_precision" in identifiers(module):
        return True
    return any(_has_small_weights(module, other) for other in module.tree.nodes(cst.Call))


def _stands_in(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes what callers may pass themselves:
    ``if arguments is None: arguments = …``.
    """
    for decision in module.flow.decisions(call):
        match decision:
            case Decision(
                cst.Comparison(
                    left=cst.Name() as name,
                    comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None"))],
                ),
                True,
            ) | Decision(cst.Name() as name, False, cst.BooleanOperation()):
                if any(isinstance(binding.node, cst.Param) for binding in module.bindings(name)):
                    return True
            case _:
                pass
    return False


def _trains(module: Module) -> bool:
    """Return whether the file runs the training of a trainer; others only evaluate by one."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "train"
        and "trainer" in module.source(call.func.value).lower()
        for call in module.tree.nodes(cst.Call)
    )


def _is_handed_on(call: cst.Call) -> bool:
    """Return whether a constructor hands on what it is given: who calls it decides."""
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__"


def _has_small_weights(module: Module, call: cst.Call) -> bool:
    """Return whether a call loads or casts a model to a type of 16 bits or less."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if name in ("half", "bfloat16"):
        return not call.args
    for arg in call.args:
        keyword = arg.keyword.value if arg.keyword is not None else ""
        if keyword in _QUANTIZED:
            return True
        if keyword in ("torch_dtype", "dtype") or (name == "to" and not keyword):
            if module.qualified(arg.value) in _SMALL_TYPES or keyword == "torch_dtype":
                return True
    return False


# --- checkpointing and the cache of generation ------------------------------------------------------------

_CHECKPOINTING = frozenset({"gradient_checkpointing", "activation_checkpointing"})


def cache_beside_checkpointing(module: Module, call: cst.Call) -> cst.Arg | None:
    """Return the argument by which a call asks for the cache of generation
    where activations are checkpointed.
    """
    asked = next((arg for arg in call.args if _is_on(module, arg, "use_cache")), None)
    if asked is None:
        return None
    name = taker(module, call)
    if name == TRAINING_ARGUMENTS:
        return asked if _turns_on_checkpointing(module, call) else None
    if name != _LOADING:
        return None
    return asked if any(_turns_on_checkpointing(module, c) for c in module.tree.nodes(cst.Call)) else None


def _turns_on_checkpointing(module: Module, call: cst.Call) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "gradient_checkpointing_enable":
        return True
    on = any(_is_on(module, arg, name) for arg in call.args for name in _CHECKPOINTING)
    return on and taker(module, call) == TRAINING_ARGUMENTS


def _is_on(module: Module, arg: cst.Arg, name: str) -> bool:
    return arg.keyword is not None and arg.keyword.value == name and module.value(arg.value).constant is True
