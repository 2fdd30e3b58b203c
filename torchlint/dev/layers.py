"""The layers of the project: which module may import which, and the pictures of them in CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchlint.dev import ROOT

CONTRIBUTING = ROOT / "CONTRIBUTING.md"

# From the top down. A module may import those that stand below it; modules on one line may import each other.
BANDS: Mapping[str, Sequence[Sequence[str]]] = {
    "for contributors": (("torchlint.dev",),),
    "for users": (
        ("torchlint.__main__",),
        ("torchlint.cli",),
        ("torchlint.commands",),
        ("torchlint.server",),
        ("torchlint.ipython",),
        ("torchlint.testing",),
        ("torchlint.report",),
        ("torchlint.render",),
        ("torchlint.environment",),
        ("torchlint.verify",),
        ("torchlint.html",),
    ),
    "many files": (
        ("torchlint.runner",),
        ("torchlint.transactions",),
        ("torchlint.silencing",),
    ),
    "one file": (
        ("torchlint.fixer",),
        ("torchlint.checker",),
        ("torchlint.origins",),
        ("torchlint.scope",),
        ("torchlint.baseline", "torchlint.changes"),
        ("torchlint.fingerprints",),
        ("torchlint.suppressions",),
    ),
    "project": (("torchlint.project",),),
    "what a run is told": (
        ("torchlint.cache",),
        ("torchlint.config", "torchlint.files"),
        ("torchlint.schema",),
        ("torchlint.selectors",),
        ("torchlint.registry",),
        ("torchlint.impact",),
        ("torchlint.effects",),
        ("torchlint.links",),
    ),
    "rules": (
        ("torchlint.rules",),
        ("torchlint.rule",),
        ("torchlint.vocabulary",),
    ),
    "fixes": (
        ("torchlint.messages",),
        ("torchlint.fixes",),
    ),
    "semantic model": (("torchlint.semantics",),),
    "options": (
        ("torchlint.options",),
        ("torchlint.target",),
        ("torchlint.releases",),
    ),
    "syntax": (
        ("torchlint.reparsing",),
        ("torchlint.parsing",),
        ("torchlint.outline",),
        ("torchlint.conversion",),
        ("torchlint.syntax",),
        ("torchlint.nodes",),
    ),
    "text": (
        ("torchlint.store",),
        ("torchlint.linelength",),
        ("torchlint.reading",),
        ("torchlint.scripts",),
        ("torchlint.notebook",),
        ("torchlint.documents",),
        ("torchlint.ipynb",),
        ("torchlint.magics",),
        ("torchlint.source",),
        ("torchlint.imports",),
        ("torchlint.diagnostics",),
        ("torchlint.uncommented",),
    ),
    "helpers": (
        ("torchlint.effort",),
        ("torchlint.orphans",),
        ("torchlint.stopwatch",),
        ("torchlint.installation",),
        ("torchlint.globs",),
        ("torchlint.toml",),
    ),
}
LAYERS = tuple(reversed([layer for band in BANDS.values() for layer in band]))
"""All layers, from the bottom up."""

# The layers of the model, from the bottom: a module imports those of its own and of lower ones only. What is
# not named is a fact of some domain (loaders, optimizers, autograd …), which stands above all of them.
MODEL_LAYERS: Mapping[str, Sequence[str]] = {
    "names": (
        *(
            "conventions",
            "declared",
            "dependencies",
            "enums",
            "fixpoint",
            "flow",
            "lexicon",
            "linked",
            "names",
        ),
        "remembered",
        "spellings",
    ),
    "calls and values": ("api", "calls", "classes", "dtypes", "tensordtypes", "values"),
    "inference": (
        *("annotations", "callgraph", "callresults", "clues", "comments", "containers", "evaluator"),
        *("inference", "library", "members", "module", "parameters"),
    ),
    "places and contexts": (
        *(
            "attributes",
            "compilation",
            "contexts",
            "evidence",
            "gradmode",
            "handedon",
            "identifiers",
            "model",
            "origins",
            "phases",
        ),
        *("places", "reach", "releasechecks", "repetition", "serving", "sinks", "sources", "throttling"),
    ),
}

MODEL = "torchlint.semantics"

_WIDTH = 108
_PART = re.compile(r"(<!-- begin (layers|model) -->\n).*?(<!-- end -->)", re.DOTALL)


# --- modules and what they import --------------------------------------------------------------------------


def module_name(path: Path) -> str:
    """Return the name under which a file of torchlint/ or rules/ is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "rules":
        parts.insert(0, "torchlint")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def below(name: str, package: str) -> bool:
    """Return whether a module is ``package`` or inside it."""
    return name == package or name.startswith(f"{package}.")


def imported(path: Path, *, for_types: bool = False) -> Iterator[tuple[str, int]]:
    """Yield the modules that a file imports, at any depth, and the line of each.

    Those that only type checkers import are included on demand.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only and not for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1] if node.level else ROOT
            folder = folder.joinpath(*(node.module or "").split("."))
            package = module_name(folder)
            # ``from torchlint import registry`` imports the module, not a name of the package.
            for alias in node.names:
                inner = folder / alias.name
                is_module = inner.is_dir() or inner.with_suffix(".py").exists()
                yield (f"{package}.{alias.name}" if is_module else package), node.lineno


# --- the pictures ------------------------------------------------------------------------------------------


def generate() -> Mapping[Path, str]:
    """Return CONTRIBUTING.md with the pictures as they should be."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    pictures = {"layers": house, "model": model}
    return {CONTRIBUTING: _PART.sub(lambda part: f"{part[1]}{pictures[part[2]]()}{part[3]}", text)}


def house() -> str:
    """Return the bands of the project, the one that imports all others on top."""
    rows = [
        (title, ", ".join(name.rpartition(".")[2] for layer in band for name in layer))
        for title, band in BANDS.items()
    ]
    return _boxes(rows)


def model() -> str:
    """Return the layers of the semantic model, facts of domains on top."""
    modules = {_part_of_model(module_name(path)) for path in (ROOT / "torchlint" / "semantics").rglob("*.py")}
    named = {part for layer in MODEL_LAYERS.values() for part in layer}
    layers = {**MODEL_LAYERS, "facts of domains": sorted(modules - named - {""})}
    return _boxes([(title, ", ".join(parts)) for title, parts in reversed(layers.items())])


def _part_of_model(name: str) -> str:
    """Return the module or package of the model that a module belongs to; empty for the model itself."""
    return name.removeprefix(MODEL).removeprefix(".").partition(".")[0]


def _boxes(rows: Sequence[tuple[str, ...]]) -> str:
    """Return one box upon the other; the last cell of a row takes the space
    that the titles before it leave.
    """
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    widths.append(_WIDTH - sum(width + 3 for width in widths) - 4)

    def edge(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * (width + 2) for width in widths) + right + "\n"

    parts = []
    for *titles, text in rows:
        wrapped = textwrap.wrap(text, widths[-1], break_on_hyphens=False)
        lines = [[*([""] * len(titles) if number else titles), line] for number, line in enumerate(wrapped)]
        cells = [[f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)] for line in lines]
        parts.append("".join(f"│ {' │ '.join(line)} │\n" for line in cells))
    drawn = edge("┌", "┬", "┐") + edge("├", "┼", "┤").join(parts) + edge("└", "┴", "┘")
    return f"```text\n{drawn}```\n"
