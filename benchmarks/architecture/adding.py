"""Which files whoever adds a rule has to touch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from benchmarks.architecture.sources import RULES, Measured, Place, Sources, below

SCAFFOLD = "torchlint.dev.scaffold"
# What names all rules because it was measured or recorded, which nobody does for one new rule.
RECORDS = ("benchmarks/results", "benchmarks/corpus")
TEXTS = {".py", ".md", ".json", ".toml", ".txt", ".yaml", ".yml", ".csv", ".lock"}
NEARLY_ALL = 0.95


def files_for_a_rule(sources: Sources) -> Measured:
    """Return files that an author touches by hand to add a rule, besides the rule, its fixtures and its case.

    - what ``new-rule`` writes: the keys of the table ``files`` in ``torchlint/dev/scaffold.py``, the line in
      the changelog included; an ``__init__.py`` is made only where a folder is new;
    - the bench case in ``rules/<family>/cases``, or the line that says why there is none;
    - every other file that names nearly all rules (95 of 100) by their codes, and so has to name the new one.
      Recorded results and the rules' own files do not count;
    - the rule's own page, ``docs/rules/<code>.md``, if each rule has one.

    A file is generated if ``torchlint/dev`` mentions its name; these are told, and not counted.
    """
    codes = _codes(sources)
    made = _scaffolded(sources)
    generated_names = _generated_names(sources)
    by_hand: list[Place] = []
    generated: list[Place] = []
    for path in _texts(sources.root):
        if path.relative_to(sources.root).as_posix() in made:
            continue
        named = set(re.findall(r"\bTL[0-9]{3}\b", path.read_text(encoding="utf-8", errors="replace")))
        if codes and len(named & codes) >= NEARLY_ALL * len(codes):
            place = Place(path.relative_to(sources.root).as_posix(), 0)
            (generated if path.name in generated_names else by_hand).append(place)
    if codes and all((sources.root / "docs" / "rules" / f"{code}.md").exists() for code in codes):
        generated.append(Place("docs/rules/<code>.md", 0))
    own = [Place(path, 0, "written by new-rule") for path in made]
    if any((sources.root / RULES).glob("*/cases/*.py")):
        own.append(Place("rules/<family>/cases/<rule>.py", 0, "unless the rule says measured=False"))
    total = len(own) + len(by_hand) + len(generated)
    shown = f"{total}: {len(own)} of the rule, {len(by_hand)} more by hand, {len(generated)} generated"
    places = (
        *own,
        *(Place(place.path, 0, "by hand") for place in sorted(by_hand)),
        *(Place(place.path, 0, "generated") for place in sorted(generated)),
    )
    parts = {"of the rule": len(own), "by hand": len(by_hand), "generated": len(generated)}
    return Measured(len(by_hand), shown, parts, places)


def _codes(sources: Sources) -> set[str]:
    """Return the codes that ``@rule("TL…", …)`` declares."""
    return {
        mark.args[0].value
        for name, code in sources.modules.items()
        if below(name, RULES)
        for function in code.functions
        for mark in function.decorator_list
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "rule"
        if mark.args and isinstance(mark.args[0], ast.Constant) and isinstance(mark.args[0].value, str)
    }


def _scaffolded(sources: Sources) -> list[str]:
    """Return the paths that ``new-rule`` writes, as far as the scaffold spells them."""
    code = sources.modules.get(SCAFFOLD)
    found: list[str] = []
    folders: dict[str, str] = {}
    for node in ast.walk(code.tree) if code is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id="files")], value=ast.Dict(keys=keys)):
                found += [_path(key, folders) for key in keys if key is not None]
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Div()) as value):
                folders[name] = _path(value, folders)
    return found


def _path(node: ast.expr, folders: dict[str, str]) -> str:
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return "/".join(part for part in (_path(left, folders), _path(right, folders)) if part)
        case ast.Name(id="root"):
            return ""
        case ast.Name(id=name):
            return folders.get(name, f"<{name}>")
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                _path(v.value, folders) if isinstance(v, ast.FormattedValue) else _path(v, folders)
                for v in values
            )
    return "?"


def _generated_names(sources: Sources) -> set[str]:
    """Return the names of files that the generators mention."""
    return {
        node.value.rpartition("/")[2]
        for name, code in sources.modules.items()
        if below(name, "torchlint.dev") or name == "torchlint.schema"
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value
    }


def _texts(root: Path) -> list[Path]:
    """Return the files that people write, but for rules, fixtures,
    recorded results and what is hidden or built.
    """
    found = []
    for top in sorted(root.iterdir()):
        if top.name.startswith(".") or top.name in {RULES, "fixtures", "build", "dist", "shared"}:
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            relative = path.relative_to(root).as_posix()
            recorded = any(relative.startswith(f"{folder}/") for folder in RECORDS)
            if path.suffix in TEXTS and path.is_file() and not recorded:
                found.append(path)
    return found
