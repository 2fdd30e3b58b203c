"""How often the names that users choose are right: precision and recall of the roles of the lexicon.

    python -m benchmarks.lexicon [--json FILE] [PATH …]

The files are analysed with the lexicon silenced, so that what the semantic model knows comes from what they
say and not from what their names suggest. That is compared with what the names would have suggested:

* for roles of values: every variable, parameter and attribute whose kind the model knows; each name counts
  once a file and kind;
* a loss is a tensor that is backpropagated, going by all tensors;
* for roles of functions: every function that does one of these. It trains if a backward pass stands in it,
  and measures or uses a model if it switches autograd off or a model to evaluation mode;
* for roles of what is passed: collate functions are given to loaders, and so on (`GIVEN_TO`).

Of what the name suggests, the part that is so is the precision; of what is so, the part that the name
suggests is the recall. For the other roles the model knows nothing by other means, and the table says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import libcst as cst
from rich.console import Console
from rich.table import Table

from torchlint.options import LintSettings
from torchlint.parsing import on_deep_stack
from torchlint.semantics import clues, lexicon
from torchlint.semantics.api.results import NN_LOSSES
from torchlint.semantics.lexicon import Role
from torchlint.semantics.model import build
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind, Value
from torchlint.syntax import SyntaxTree

CORPUS = Path("~/.cache/torchlint/corpus").expanduser()
RESULTS = Path(__file__).parent / "results" / "lexicon.json"

SETTINGS = LintSettings(rules=())

Question = Callable[[str], bool]


def _ends(role: Role) -> Question:
    return lambda name: lexicon.ends(name, role)


def _begins(role: Role) -> Question:
    return lambda name: lexicon.begins(name, role)


_CRITERIA = frozenset(NN_LOSSES)

KINDS: dict[Role, tuple[Question, Callable[[Value], bool]]] = {
    Role.OPTIMIZER: (lexicon.names_optimizer, lambda value: value.kind is Kind.OPTIMIZER),
    Role.SCHEDULER: (_ends(Role.SCHEDULER), lambda value: value.kind is Kind.SCHEDULER),
    Role.SCALER: (_ends(Role.SCALER), lambda value: value.kind is Kind.SCALER),
    Role.LOADER: (lexicon.names_loader, lambda value: value.kind is Kind.LOADER),
    Role.DATASET: (_ends(Role.DATASET), lambda value: value.kind is Kind.DATASET),
    Role.BATCH: (_ends(Role.BATCH), lambda value: value.kind is Kind.BATCH),
    Role.DEVICE: (lexicon.names_device, lambda value: value.kind is Kind.DEVICE),
    Role.MODEL: (lexicon.names_model, lambda value: value.kind is Kind.MODULE),
    Role.MODEL_PART: (_ends(Role.MODEL_PART), lambda value: value.kind is Kind.MODULE),
    Role.CRITERION: (lexicon.names_criterion, lambda value: value.cls in _CRITERIA),
    Role.TYPE: (_ends(Role.TYPE), lambda value: value.kind is Kind.DTYPE),
    Role.SIZE: (_ends(Role.SIZE), lambda value: value.kind in (Kind.NUMBER, Kind.SHAPE)),
    Role.INDEX: (_ends(Role.INDEX), lambda value: value.kind is Kind.NUMBER),
    Role.ITERATION: (_ends(Role.ITERATION), lambda value: value.kind is Kind.NUMBER),
    Role.EPOCH: (_ends(Role.EPOCH), lambda value: value.kind is Kind.NUMBER),
}
"""The questions about values, and what the model calls what they ask for."""

BROADER = frozenset({Role.MODEL, Role.MODEL_PART, Role.SIZE, Role.INDEX, Role.ITERATION, Role.EPOCH})
"""Roles of which the model knows a wider kind only: of numbers, not which count. They have no recall."""

MADE_BY: dict[Role, tuple[str, ...]] = {
    Role.OPTIONS: ("argparse.", "omegaconf.", "yaml."),
    Role.PROGRESS: ("tqdm.",),
    Role.LOGGING: ("logging.getLogger",),
    Role.CHECKPOINT: ("torch.load",),
    Role.CLOCK: ("time.", "datetime."),
    Role.ENVIRONMENT: ("gym.make", "gymnasium.make"),
    Role.PROFILING: ("torch.profiler.", "cProfile."),
    Role.FILE: ("builtins.open", "h5py.", "lmdb."),
}
"""The questions about variables whose first value a call of a library makes, and the libraries."""

GIVEN_TO: dict[Role, tuple[str, ...]] = {Role.COLLATION: ("collate_fn", "worker_init_fn")}
"""The questions about functions that are given to a call, and the keywords."""

PHASES: dict[Role, tuple[Question, str]] = {
    Role.TRAINING: (_begins(Role.TRAINING), "backward"),
    Role.STEP: (_begins(Role.STEP), "backward"),
    Role.BACKPROPAGATION: (_begins(Role.BACKPROPAGATION), "backward"),
    Role.EVALUATION: (_begins(Role.EVALUATION), "measures"),
    Role.TEST: (_begins(Role.TEST), "measures"),
    Role.PREDICTION: (_begins(Role.PREDICTION), "measures"),
    Role.INFERENCE: (_begins(Role.INFERENCE), "measures"),
    Role.GENERATION: (_begins(Role.GENERATION), "measures"),
    Role.SAMPLING: (_begins(Role.SAMPLING), "measures"),
}
"""The questions about functions, and what such a function does."""

_WITHOUT_GRADIENTS = frozenset({"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled"})


class Counts:
    """How often a name suggests a role, how often it is so, and how often both."""

    def __init__(self) -> None:
        self.suggested: Counter[Role] = Counter()
        self.true: Counter[Role] = Counter()
        self.both: Counter[Role] = Counter()

    def add(self, role: Role, suggested: bool, true: bool) -> None:
        self.suggested[role] += suggested
        self.true[role] += true
        self.both[role] += suggested and true


@contextmanager
def silenced() -> Iterator[None]:
    """Let no name suggest anything."""
    read = lexicon._read
    _forget()
    lexicon._read = lambda name: lexicon._NOTHING  # type: ignore[assignment]
    try:
        yield
    finally:
        lexicon._read = read
        _forget()


def _forget() -> None:
    """Forget the answers that depend on what names suggest, or on their suggesting nothing."""
    for question in (lexicon.names_loss, clues._by_convention):
        question.cache_clear()


def measure(tree: SyntaxTree, counts: Counts) -> None:
    """Count what the names of one file suggest, and what is so."""
    with silenced():
        module = build(tree, SETTINGS)
        values = {(name, value.kind, value.cls): value for name, value in _values(module)}
        losses = set(_backpropagated(module))
        made = set(_made(module))
        given = set(_given(module))
        functions = set(_functions(module))
    for (name, kind, _), value in values.items():
        if kind is Kind.TENSOR:
            counts.add(Role.LOSS, lexicon.names_loss(name), name in losses)
        for role, (question, is_so) in KINDS.items():
            counts.add(role, question(name), is_so(value))
    for name, maker in made:
        for role, libraries in MADE_BY.items():
            counts.add(role, lexicon.ends(name, role), maker.startswith(libraries))
    for name, keyword in given:
        for role, keywords in GIVEN_TO.items():
            counts.add(role, lexicon.has(name, role), keyword in keywords)
    for name, does in functions:
        for role, (question, wanted) in PHASES.items():
            counts.add(role, question(name), wanted in does)


def _values(module: Module) -> Iterator[tuple[str, Value]]:
    """Yield the names of variables, parameters and attributes of known kinds."""
    for node in module.tree.nodes(cst.Name, cst.Attribute):
        if isinstance(module.tree.parent(node), (cst.Attribute, cst.FunctionDef, cst.ClassDef, cst.Arg)) and (
            isinstance(node, cst.Name)
        ):
            continue
        value = module.value(node)
        if value.known and value.kind is not Kind.NONE:
            yield last_name(node) or "", value


def _backpropagated(module: Module) -> Iterator[str]:
    """Yield the names of what is backpropagated."""
    for call in module.tree.nodes(cst.Call):
        match call.func:
            case cst.Attribute(value=(cst.Name() | cst.Attribute()) as loss, attr=cst.Name("backward")):
                yield last_name(loss) or ""


def _made(module: Module) -> Iterator[tuple[str, str]]:
    for node in module.tree.nodes(cst.Assign):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call(func=func)
            ):
                qualified = module.qualified(func)
                if qualified is not None:
                    yield name, qualified


def _given(module: Module) -> Iterator[tuple[str, str]]:
    for node in module.tree.nodes(cst.Arg):
        match node:
            case cst.Arg(keyword=cst.Name(value=keyword), value=cst.Name(value=name)):
                yield name, keyword


def _functions(module: Module) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the functions that do anything with autograd or with modes, and what they do."""
    for function in module.tree.nodes(cst.FunctionDef):
        does: set[str] = set()
        for call in module.tree.within(function, module.tree.nodes(cst.Call)):
            named = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
            if named == "backward":
                does.add("backward")
            elif (named == "eval" and not call.args) or module.qualified(call.func) in _WITHOUT_GRADIENTS:
                does.add("measures")
        if any(module.qualified(mark.decorator) in _WITHOUT_GRADIENTS for mark in function.decorators):
            does.add("measures")
        if does:
            yield function.name.value, frozenset(does)


def table(counts: Counts, files: int) -> dict[str, Any]:
    """Return the results as they are written: the precision and recall of each role, if there is a truth."""
    asked = {Role.LOSS, *KINDS, *MADE_BY, *GIVEN_TO, *PHASES}
    rows: dict[str, Any] = {}
    for role in Role:
        if role not in asked or not counts.true[role]:
            rows[role.name.lower()] = {"truth": None}
            continue
        suggested, true, both = counts.suggested[role], counts.true[role], counts.both[role]
        rows[role.name.lower()] = {
            "truth": true,
            "suggested": suggested,
            "right": both,
            "precision": round(both / suggested, 3) if suggested else None,
            "recall": None if role in BROADER else round(both / true, 3),
        }
    return {"files": files, "roles": rows}


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--json", "path", default=RESULTS, type=click.Path(dir_okay=False, path_type=Path), help="Where to write."
)
def main(paths: tuple[Path, ...], path: Path) -> None:
    """Measure how often the names that users choose are right."""
    counts, files = Counts(), 0
    roots = sorted(paths or CORPUS.iterdir())
    for file in sorted(file for root in roots for file in root.rglob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        if "torch" not in text:
            continue
        try:
            tree = on_deep_stack(SyntaxTree, text)
        except (cst.ParserSyntaxError, RecursionError, ValueError):
            continue
        on_deep_stack(measure, tree, counts)
        files += 1
    results = {"packages": [root.name for root in roots], **table(counts, files)}
    shown = Table("role", "so", "suggested", "precision", "recall", box=None)
    for role, row in results["roles"].items():
        if row["truth"] is None:
            shown.add_row(role, "nothing else tells", "", "", "")
        else:
            shown.add_row(
                role,
                *(
                    str("" if row[key] is None else row[key])
                    for key in ("truth", "suggested", "precision", "recall")
                ),
            )
    Console(highlight=False).print(shown)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
