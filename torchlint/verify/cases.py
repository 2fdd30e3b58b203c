"""The bench cases: small programs in the bad form, from which torchlint's own fixer makes the good form.

The case of a rule stands beside the rule's module, in ``cases/<rule_name>.py``; that holds for rule packs as
for the rules of torchlint. A rule without a case claims neither speed nor memory: its finding is an error, or
concerns the linter itself. Cases import torch, so nothing here imports them; they are read as text.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.registry import catalogue
from torchlint.rule import Rule

SETUP = "setup"
"""The function of a case that makes the state of the program: ``setup(device, size)``."""
STEP = "step"
"""The function of a case that runs one step in the bad form: ``step(state)``."""
STEP_FIXED = "step_fixed"
"""The same step in the good form, where the rule has no fix that could make it."""
FIXED = "_fixed"
"""How the name of a file ends that has the whole good form, where the rule has no fix and what it finds
stands outside of ``step``: ``cases/<rule_name>_fixed.py``."""


@dataclass(frozen=True)
class Case:
    """The program that shows what one rule is worth."""

    code: str
    name: str
    path: Path
    text: str
    sizes: tuple[str, ...]
    """The keys of ``SIZES``, from launch-bound to compute-bound."""
    has_step_fixed: bool
    """Whether the good form is a function of the case itself, and not made by the fixer."""
    good: str = ""
    """The good form, where it stands in a file of its own; it has the same functions."""
    ranks: int = 1
    """How many processes the program has, as ``torchrun --nproc-per-node`` would start them."""
    ranks_fixed: int = 1
    """The same of the good form, whose file may say otherwise."""
    compared: tuple[str, ...] = ()
    """Which kinds of results are compared (``parameter``, ``loss`` …); all if it does not say."""
    tolerance: float = 0.0
    """What the results may differ by, where the case says that more is to be expected than the default."""
    rounded: str = ""
    """Why the good form rounds differently, if it does; else it computes the same bit for bit on the CPU."""


def cases(codes: Sequence[str] | None = None) -> list[Case]:
    """Return the cases of the rules ``codes``, or of all rules, in the order of the codes.

    A rule that claims neither speed nor memory has none, and is passed over.

    Raises:
        ValueError: a code is not that of a rule, or a case is not written as cases are.
        OSError: a case cannot be read.
    """
    known = catalogue()
    unknown = [code for code in codes or () if code not in known]
    if unknown:
        raise ValueError(f"no rule has the code `{unknown[0]}`")
    wanted = [rule for code, rule in known.items() if codes is None or code in codes]
    return [read(rule, path) for rule in wanted if (path := case_path(rule)) is not None]


def case_path(rule: Rule) -> Path | None:
    """Return the file with the case of a rule; None if the rule claims neither speed nor memory."""
    spec = importlib.util.find_spec(rule.check.__module__)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    file = Path(spec.origin)
    family = file.parent.parent if rule.has_folder else file.parent
    path = family / "cases" / f"{rule.name.replace('-', '_')}.py"
    return path if path.is_file() else None


def read(rule: Rule, path: Path) -> Case:
    """Return the case of ``rule`` that stands in ``path``.

    Raises:
        ValueError: it lacks ``setup``, ``step`` or ``SIZES``, or is not valid Python.
        OSError: the file cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    tree, functions = _parsed(text, path)
    ranks = int(_constant(tree, "RANKS", 1))
    beside = path.with_name(f"{path.stem}{FIXED}.py")
    good = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    ranks_fixed = int(_constant(_parsed(good, beside)[0], "RANKS", 1)) if good else ranks
    return Case(
        code=rule.code,
        name=rule.name,
        path=path,
        text=text,
        sizes=_sizes(tree, path),
        has_step_fixed=STEP_FIXED in functions,
        good=good,
        ranks=ranks,
        ranks_fixed=ranks_fixed,
        compared=tuple(_constant(tree, "COMPARED", ())),
        tolerance=float(_constant(tree, "TOLERANCE", 0.0)),
        rounded=str(_constant(tree, "ROUNDED", "")),
    )


def fixed_text(case: Case) -> str:
    """Return the case in its good form, as the fixer makes it with the safe
    and unsafe fixes of the case's own rule.

    A case with ``step_fixed`` has its good form in its own text, which is returned as it is; another may have
    it in a file beside.

    Raises:
        ValueError: the fixer leaves the case unchanged.
    """
    if case.has_step_fixed or case.good:
        return case.good or case.text
    # Here and not above: the fixer brings LibCST, which listing the cases has no need of.
    from torchlint.fixer import fix
    from torchlint.options import LintSettings
    from torchlint.source import Source
    from torchlint.target import installed

    # What is measured runs on the torch that is installed, and on no other.
    settings = LintSettings(
        rules=(case.code,), fixable=frozenset({case.code}), unsafe_fixes=True, target=installed()
    )
    fixed = fix(Source(case.path, case.text), settings)
    if fixed.text == case.text:
        raise ValueError(f"{case.path}: the fixer leaves the case unchanged")
    return fixed.text


def _parsed(text: str, path: Path) -> tuple[ast.Module, set[str]]:
    """Return the program of a case, and the names of its functions."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{path}: {error}") from error
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in (SETUP, STEP):
        if name not in functions:
            raise ValueError(f"{path}: a case defines `{name}`")
    return tree, functions


def _constant(tree: ast.Module, name: str, default: Any) -> Any:
    """Return what is assigned to a name such as ``TOLERANCE``, a literal; ``default`` without one."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    return default


def _sizes(tree: ast.Module, path: Path) -> tuple[str, ...]:
    """Return the keys of the dictionary ``SIZES``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            if [ast.unparse(target) for target in node.targets] == ["SIZES"]:
                keys = [ast.literal_eval(key) for key in node.value.keys if isinstance(key, ast.Constant)]
                if keys and len(keys) == len(node.value.keys) and all(isinstance(key, str) for key in keys):
                    return tuple(keys)
    raise ValueError(f"{path}: a case has its sizes as the keys of a dictionary `SIZES`")
