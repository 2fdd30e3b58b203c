"""TL517: arguments of trainers that newer releases renamed or removed."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, replace, safe, unsafe, unset_argument
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.upgrades import Upgrade
from torchlint.semantics.module import Module
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.upgrading import Given
from torchlint.semantics.values import Kind

from .trainers import TRAINING_ARGUMENTS, given_up

# Expressions that stand in a conditional one as they are.
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


@rule(
    "TL517",
    "renamed-trainer-argument",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=(
        "import:transformers|import:accelerate|import:trl",
        "TrainingArguments|Trainer|from_pretrained|pipeline|Accelerator|Config",
    ),
)
def renamed_trainer_argument(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds arguments of `TrainingArguments`, `Trainer`, `from_pretrained` and `pipeline` of Transformers, of
    classes that inherit from them, and of `Accelerator`, that are deprecated or removed in every release that
    may run the program. The releases are those that the project declares, or else the installed ones. If
    neither is known, nothing is reported.

    ## Why is this bad?

    A deprecated argument warns at every start. A removed one raises a `TypeError`, often in a script that is
    run again after months. Several of the renamed arguments determine how fast training is: the precision,
    the device, the batch size.

    ## Example

    ```python
    args = TrainingArguments("out", evaluation_strategy="epoch", no_cuda=False, per_gpu_train_batch_size=8)
    trainer = Trainer(model, args, tokenizer=tokenizer)
    accelerator = Accelerator(fp16=True)
    ```

    ## Use instead

    ```python
    args = TrainingArguments("out", eval_strategy="epoch", use_cpu=False, per_device_train_batch_size=8)
    trainer = Trainer(model, args, processing_class=tokenizer)
    accelerator = Accelerator(mixed_precision="fp16")
    ```

    ## Fix safety

    Safe: the new name means the same in every release that may run the program. It is unsafe next to or
    inside `**kwargs`, which may already contain the new name, where the file later reads the attribute of
    that name, which is then renamed too, and for an optimizer that is replaced by a different one. Where a
    release still takes the old name, it is also unsafe if another place in the program reads that name, and
    for a value that may be None, which meant the default. There is
    no fix for arguments without a successor, for arguments that became a value of another one unless they are
    True or False, where the new name is passed as well, and where the old name is read from the arguments of
    a trainer.

    ## References

    - [TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
    - [Transformers: migration guide of version 5](https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md)
    - [Accelerate: Accelerator](https://huggingface.co/docs/accelerate/package_reference/accelerator)
    """
    for given in given_up(module, call):
        row = given.row
        target = module.target_of(row.package)
        if not row.is_deprecated(target) or ReleaseChecks.of(module).over(call, row.package):
            continue
        name = f'{row.argument}="{row.value}"' if row.value else row.argument
        since = f"{row.package} {row.removed if row.is_removed(target) else row.deprecated}"
        what = "was removed in" if row.is_removed(target) else "is deprecated since"
        message = f"`{name}` {what} {since}; {_advice(row)}"
        yield Finding(given.node, message, fix=_fix(module, call, given), remedy=row.remedy)


def _advice(row: Upgrade) -> str:
    if row.replacement is None:
        return row.note
    return f"u{row.remedy[1:]}"


def _fix(module: Module, call: cst.Call, given: Given) -> Fix | None:
    row = given.row
    if row.replacement is None or not row.is_replaceable(module.target_of(row.package)):
        return None
    message = f"Use `{row.replacement}`"
    if row.value:
        edits = replace(module, given.value, f'"{row.replacement}"')
        return unsafe(module, message, edits, risk="it is a different optimizer, which trains differently")
    if any(other.keyword is not None and other.keyword.value == row.replacement for other in call.args):
        return None
    if isinstance(given.name, cst.SimpleString):
        quote = given.name.quote
        edits = replace(module, given.name, f"{quote}{row.replacement}{quote}")
    else:
        edits = replace(module, given.name, row.replacement)
    if row.switched_on:
        wanted = module.value(given.value).constant
        if wanted is False and given.node in call.args:
            return safe(module, f"Remove `{row.argument}`", unset_argument(module, call, row.argument))
        code = row.switched_on
        if wanted is not True:
            if not row.switched_off or not isinstance(given.value, _TIGHT):
                return None
            code = f"{code} if {module.source(given.value)} else {row.switched_off}"
        value = replace(module, given.value, code)
        edits = edits + value if edits is not None and value is not None else None
    reads, elsewhere = _read_later(module, call, row.argument)
    if elsewhere or (reads and row.switched_on):
        return None
    for read in reads:
        attribute = replace(module, read.attr, row.replacement)
        edits = edits + attribute if edits is not None and attribute is not None else None
    hidden = any(other.star == "**" for other in call.args)
    risk = None
    if reads:
        risk = "the attribute of that name is renamed, too"
    elif hidden:
        risk = "`**` may pass the new name already"
    elif not row.exact:
        risk = "the new argument does not mean quite the same"
    elif not row.is_removed(module.target_of(row.package)):
        if row.unset_by_none and module.value(given.value).kind in (Kind.UNKNOWN, Kind.NONE):
            risk = "where the value is `None`, the default is no longer used"
        elif row.symbol == TRAINING_ARGUMENTS and _reads(module, row.argument, given.name):
            risk = "the program reads the argument by its old name"
    return graded(module, message, edits, risk=risk)


def _read_later(module: Module, call: cst.Call, name: str) -> tuple[list[cst.Attribute], bool]:
    """Return the attributes of an argument's name that the file reads of what the call makes.

    The second result tells whether it may do so elsewhere, of the arguments that a trainer has.
    """
    reads: list[cst.Attribute] = []
    for read in module.tree.nodes(cst.Attribute):
        if read.attr.value != name:
            continue
        match read.value:
            case cst.Name() as owner:
                made = [binding.value for binding in module.bindings(owner)]
                if call in made:
                    if len(made) > 1:
                        return [], True
                    reads.append(read)
            case cst.Attribute(attr=cst.Name("args" | "training_args")):
                return [], True
    return reads, False


def _reads(module: Module, name: str, given: cst.CSTNode) -> bool:
    """Return whether a file of the program may read an argument under a name that is ``given`` in a call.

    What only hands on an option of the same name, ``TrainingArguments(no_cuda=options.no_cuda)``, does not.
    """
    for each in (module, *module.companions(name)):
        tree = each.tree
        for read in tree.nodes(cst.Attribute):
            argument = tree.parent(read) if read.attr.value == name else None
            if argument is None:
                continue
            keyword = argument.keyword if isinstance(argument, cst.Arg) else None
            if keyword is None or keyword.value != name:
                return True
        strings = tree.nodes(cst.SimpleString)
        if any(string is not given and string.evaluated_value == name for string in strings):
            return True
    return False
