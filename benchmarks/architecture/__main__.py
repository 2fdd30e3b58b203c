"""The command line; see the package's docstring."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks.architecture import adding, flow, knowledge, layers
from benchmarks.architecture.sources import Measured, Sources

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "architecture.json"


@dataclass(frozen=True, slots=True)
class Measure:
    """A row of the table: what is measured, by which function, and how much of it is wanted at most."""

    name: str
    what: str
    function: Callable[[Sources], Measured]
    wanted: int
    note: str = ""

    @property
    def aim(self) -> str:
        """What is wanted, as the table shows it."""
        return self.note or ("0" if not self.wanted else f"at most {self.wanted:,}")


MEASURES = (
    Measure("model-lines", "lines in torchlint/semantics", layers.lines_of_model, 28_000),
    Measure("model-modules", "modules in torchlint/semantics", layers.modules_of_model, 80),
    Measure("lines", "lines in torchlint/ and rules/, bench cases apart", layers.lines_of_all, 70_000),
    Measure("cycle", "modules in one import cycle", layers.import_cycle, 0),
    Measure("facade", "public members of Module", layers.facade_members, 35, "about 35"),
    Measure("one-rule", "modules of the model that serve exactly one rule", layers.serving_one_rule, 0),
    Measure("interpreters", "hand-made interpreters of expressions", flow.interpreters, 14),
    Measure("climbs", "climbs to branches outside of the flow kernel", flow.climbs, 0),
    Measure("bounds", "private bounds", flow.bounds, 1, "one"),
    Measure("memories", "styles of memory", knowledge.memories, 2, "2: cached_property, fixpoint"),
    Measure(
        "patterns", "patterns that guess from users' names", knowledge.patterns, 0, "0 outside of the lexicon"
    ),
    Measure("prose", "modules of the model that build edits or prose", knowledge.prose, 0),
    Measure(
        "expressions",
        "regular expressions in the model, lexicon and api apart",
        knowledge.regular_expressions,
        40,
    ),
    Measure(
        "adding",
        "files touched to add a rule",
        adding.files_for_a_rule,
        0,
        "the rule, fixtures, case; the rest generated",
    ),
)


@click.command()
@click.option(
    "--details", type=click.Choice([measure.name for measure in MEASURES]), help="Print what is counted."
)
@click.option(
    "--root",
    default=ROOT,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another checkout to measure; nothing is written unless --json says where.",
)
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the results."
)
def main(details: str | None, root: Path, path: Path | None) -> None:
    """Measure how torchlint is built, beside what is wanted."""
    sources = Sources(root)
    if details is not None:
        measure = next(measure for measure in MEASURES if measure.name == details)
        for place in measure.function(sources).places:
            click.echo(place)
        return
    results = {measure.name: measure.function(sources) for measure in MEASURES}
    table = Table("name", "what", "today", "wanted", box=None)
    for measure in MEASURES:
        table.add_row(measure.name, measure.what, results[measure.name].shown, measure.aim)
    Console(width=None if Console().is_terminal else 180, highlight=False).print(table)
    if path is None and root == ROOT:
        path = RESULTS
    if path is not None:
        path.write_text(json.dumps(told(results), indent=1) + "\n", encoding="utf-8")


def told(results: dict[str, Measured]) -> dict[str, Any]:
    """Return the results as they are written."""
    return {
        measure.name: {
            "what": measure.what,
            "today": results[measure.name].value,
            "wanted": measure.wanted,
            "shown": results[measure.name].shown,
            **({"parts": dict(results[measure.name].parts)} if results[measure.name].parts else {}),
        }
        for measure in MEASURES
    }


if __name__ == "__main__":
    main()
