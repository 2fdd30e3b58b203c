"""The trainers of Transformers and Accelerate: which calls take the arguments that their releases renamed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.upgrades import ARGUMENTS, Upgrade

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

TRAINING_ARGUMENTS = "transformers.TrainingArguments"
_TRAINING_ARGUMENTS = re.compile(
    r"transformers\.(?:Seq2Seq)?TrainingArguments"
    r"|trl\.(?:\w+\.)*(?:BCO|CPO|DPO|GKD|GRPO|KTO|Nash|ORPO|OnlineDPO|PRM|Reward|RLOO|SFT|XPO)\w*Config"
    r"|sentence_transformers\.(?:\w+\.)*(?:SentenceTransformer|SparseEncoder|CrossEncoder)TrainingArguments"
)
"""``TrainingArguments`` and the classes that inherit all of its parameters."""

_MODEL = re.compile(r"transformers\.(?:AutoModel\w*|PreTrainedModel|\w+(?:Model|LMHeadModel|For[A-Z]\w+))")
_LOADING = "transformers.PreTrainedModel.from_pretrained"


def taker(module: Module, call: cst.Call) -> str | None:
    """What takes the arguments of a call, by its name in the table of upgrades; None if it is none of that.

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
    definition = module.value(call.func).definition
    if not isinstance(definition, cst.ClassDef):
        return None
    return _inherited(module, definition) if _leaves_constructor(module, definition) else None


def _leaves_constructor(module: Module, definition: cst.ClassDef) -> bool:
    return module.classes.info(definition).method("__init__") is None


def _inherited(module: Module, definition: cst.ClassDef) -> str | None:
    """The name in the table of the class that a class of the file inherits from, if it is no mixture."""
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
    if _TRAINING_ARGUMENTS.fullmatch(dotted):
        return TRAINING_ARGUMENTS
    owner, _, method = dotted.rpartition(".")
    if method == "from_pretrained" and _MODEL.fullmatch(owner):
        return _LOADING
    return dotted if dotted in ARGUMENTS else None


def given_up(module: Module, call: cst.Call) -> Iterator[tuple[cst.Arg, Upgrade]]:
    """The arguments of a call, by keyword, that some release deprecates or lacks, each with its row."""
    name = taker(module, call)
    rows = ARGUMENTS.get(name, ()) if name is not None else ()
    own = _own_fields(module, call) if rows else frozenset()
    for arg in call.args:
        for row in rows:
            if arg.keyword is not None and arg.keyword.value == row.argument and row.argument not in own:
                if not row.value or module.value(arg.value).constant == row.value:
                    yield arg, row


def _own_fields(module: Module, call: cst.Call) -> frozenset[str]:
    """The fields that a class of the file adds to those that it inherits."""
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
