"""Whether what the linter says of deprecated and removed names is true: read from the releases themselves.

    python -m benchmarks.apis [--folder PLACE] [--only TEXT] [--held]

For each row of ``torchlint/semantics/api/upgrades.py`` every minor release of its package is looked at, and
nothing is imported. A name or parameter is ``there``, ``deprecated`` if the library's own words say so, or
``gone``, and its replacement is there or not. The wheels are downloaded with pip (the Python files of all
releases that are known take 700 MB), or, with ``--held``, only those are looked at that lie in the folder:
the result says which, and its rows are as true for the releases between as the sources of the table are.
Exits with 1 if a release is otherwise than its row says.

It also lists what the table lacks (``"missing"`` in the result): public names that a release no longer has,
and what the newest one gives up in its own words.

Parameters whose first release a rule waits for are looked up in that release and in the one before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import platformdirs

from benchmarks.libraries import Found, Library, archive, fetch, releases
from benchmarks.missing import PACKAGES, missing
from torchlint.releases import RELEASES
from torchlint.rules.optimizers.optimizer_not_fused.optimizers import TAKES_FUSED_SINCE
from torchlint.semantics.api.upgrades import UPGRADES, Upgrade

RESULTS = Path(__file__).parent / "results" / "apis.json"
THERE, DEPRECATED, GONE = "there", "deprecated", "gone"

Entry = dict[str, Any]

ARRIVALS = tuple(
    ("torch", f"torch.optim.{name}", "fused", since) for name, since in TAKES_FUSED_SINCE.items()
)
"""Package, function or class, parameter, and the release that it came with."""


def key(row: Upgrade) -> dict[str, str]:
    """Return what a row is about, as the result file holds it."""
    parts = {"symbol": row.symbol, "argument": row.argument, "value": row.value}
    return {name: text for name, text in parts.items() if text}


def look_at(row: Upgrade, libraries: dict[str, Library]) -> Entry:
    """Return what the releases have of a row: its states from release to release,
    with the places that show them.
    """
    states: dict[str, str] = {}
    evidence: dict[str, str] = {}
    replaced: str | None = None
    last = None
    for release, library in libraries.items():
        found = _find(row, library)
        state = GONE if found is None or found.raises else DEPRECATED if found.mark else THERE
        if state != last:
            states[release] = last = state
            evidence[release] = _shown(found)
        if replaced is None and row.replacement is not None and _has_replacement(row, library):
            replaced = release
    return {"state": states, "replacement": replaced, "evidence": evidence}


def _find(row: Upgrade, library: Library) -> Found | None:
    if row.witness:
        symbol, _, argument = row.witness.partition(":")
        named = row.symbol.rpartition(".")[2]
        return library.argument(symbol, argument) if argument else library.symbol(symbol, named)
    return library.argument(row.symbol, row.argument) if row.argument else library.symbol(row.symbol)


def _has_replacement(row: Upgrade, library: Library) -> bool:
    assert row.replacement is not None
    if ":" in row.witness:
        return library.argument(row.witness.partition(":")[0], row.replacement) is not None
    if row.value:
        return library.mentions(row.symbol, row.replacement)
    if row.argument:
        return library.argument(row.symbol, row.replacement) is not None
    return library.symbol(row.replacement) is not None


def _shown(found: Found | None) -> str:
    return "" if found is None else f"{found.where}: {found.mark}" if found.mark else found.where


def contradictions(entry: Entry, row: Upgrade, known: list[str]) -> Iterator[str]:
    """Yield in which ways a result is not what a row claims.

    A name may be missing from the oldest releases; what counts is from when on it is deprecated or gone.
    Where not all releases were looked at, a claim is held against the first of them that it is about.
    """
    states: dict[str, str] = entry["state"]
    seen_at: list[str] = entry.get("looked_at", known)

    def first_seen(release: str | None) -> str | None:
        since = known.index(release) if release is not None else len(known)
        return next((each for each in seen_at if known.index(each) >= since), None)

    if len(seen_at) < len(known) and all(state == GONE for state in states.values()):
        if row.removed is None or first_seen(row.removed) != seen_at[0]:
            yield "no release has it"
        return
    first = next((release for release, state in states.items() if state != GONE), None)
    if first is None:
        yield "no release has it"
        return
    for state, claimed in ((DEPRECATED, row.deprecated), (GONE, row.removed)):
        later = [r for r, s in states.items() if s == state and known.index(r) >= known.index(first)]
        seen = later[0] if later else None
        claimed = first_seen(claimed)
        if claimed is not None and known.index(claimed) < known.index(first):
            claimed = first
        at_once = state == DEPRECATED and claimed is not None and claimed == first_seen(row.removed)
        # A private name may be warned of as well.
        if seen != claimed and not at_once and not (state == DEPRECATED and (row.quiet or row.private)):
            yield f"{state} since {seen}, not {claimed}"
    # What moved to another package is not to be seen in the releases of this one.
    if row.replacement is not None and (row.argument or row.replacement.startswith(f"{row.package}.")):
        there, claimed = entry["replacement"], first_seen(row.since or known[0])
        if claimed is None:
            return
        # A parameter may have been there before, and have come to mean the same only later.
        if (
            there is None
            or known.index(there) > known.index(claimed)
            or (there != claimed and not row.argument)
        ):
            yield f"`{row.replacement}` is there since {there}, not {claimed}"


def arrival(package: str, symbol: str, argument: str, since: str, folder: Path) -> Entry:
    """Return whether a parameter is there in the release that it came with, as is said,
    and in the one before.
    """
    known = releases(package)
    entry: Entry = {"symbol": symbol, "argument": argument, "state": {}, "evidence": {}}
    for release in known[known.index(since) - 1 : known.index(since) + 1]:
        found = Library(fetch(package, release, folder)).argument(symbol, argument)
        entry["state"][release] = GONE if found is None else THERE
        entry["evidence"][release] = _shown(found)
    return entry


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("torchlint")) / "apis",
    show_default="the user's cache folder",
    help="Where the releases lie.",
)
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS)
@click.option("--held", is_flag=True, help="Look only at the releases that lie in the folder.")
@click.option("--only", default="", help="Rows whose symbol or argument holds this text.")
def main(folder: Path, output: Path, held: bool, only: str) -> None:
    """Check the table of upgrades against the releases of the libraries."""
    known_rows: dict[str, Entry] = {}
    arrived: dict[str, Entry] = {}
    if output.exists():
        earlier = json.loads(output.read_text("utf-8"))
        known_rows = {json.dumps(key_of(entry)): entry for entry in earlier["rows"]}
        arrived = {json.dumps(key_of(entry)): entry for entry in earlier.get("arrivals", ())}
    wrong = 0
    entries: list[Entry] = []
    libraries: dict[str, dict[str, Library]] = {}
    for row in UPGRADES:
        if row.package not in RELEASES:
            continue
        known = releases(row.package)
        before = known_rows.get(json.dumps(key(row)))
        in_full = before is not None and held and "looked_at" not in before
        if before is not None and (in_full or only not in f"{row.symbol} {row.argument} {row.value}"):
            entries.append(before)
            continue
        if row.package not in libraries:
            libraries[row.package] = {
                r: Library(fetch(row.package, r, folder))
                for r in known
                if not held or archive(row.package, r, folder).exists()
            }
        if not libraries[row.package] and before is not None:
            entries.append(before)
            continue
        entry = {**key(row), **look_at(row, libraries[row.package])}
        if len(libraries[row.package]) < len(known):
            entry["looked_at"] = list(libraries[row.package])
        entries.append(entry)
        for reason in contradictions(entry, row, known):
            wrong += 1
            click.echo(f"{' '.join(key(row).values())}: {reason}")
    arrivals: list[Entry] = []
    for package, symbol, argument, since in ARRIVALS:
        before = arrived.get(json.dumps({"symbol": symbol, "argument": argument}))
        if before is None or (not held and only in f"{symbol} {argument}"):
            before = arrival(package, symbol, argument, since, folder)
        arrivals.append(before)
        if list(before["state"].values()) != [GONE, THERE] or since not in before["state"]:
            wrong += 1
            click.echo(f"{symbol} {argument}: {before['state']}, not since {since}")
    lines = ",\n".join(f"  {json.dumps(entry)}" for entry in entries)
    came = ",\n".join(f"  {json.dumps(entry)}" for entry in arrivals)
    looked_at = json.dumps({name: releases(name) for name in RELEASES})
    lacking = _lacking(folder, output)
    text = (
        f'{{"releases": {looked_at},\n "missing": {lacking},\n "rows": [\n{lines}\n],\n'
        f' "arrivals": [\n{came}\n]}}\n'
    )
    output.write_text(text, encoding="utf-8")
    click.echo(f"{len(entries)} rows, {wrong} contradictions")
    sys.exit(1 if wrong else 0)


def _lacking(folder: Path, output: Path) -> str:
    """Return what the table lacks, of the releases in the folder;
    what was held before where there is none.
    """
    before = json.loads(output.read_text("utf-8")).get("missing", {}) if output.exists() else {}
    found: dict[str, Any] = {}
    for package in PACKAGES:
        held = {r: archive(package, r, folder) for r in releases(package)}
        there = {r: Library(place) for r, place in held.items() if place.exists()}
        found[package] = missing(there, package) if there else before.get(package, {})
        names = sum(len(names) for names in found[package].get("gone", {}).values())
        warned = len(found[package].get("deprecated", []))
        click.echo(f"{package}: of {names} names that went and {warned} that are deprecated, nothing is said")
    return json.dumps(found)


def key_of(entry: Entry) -> dict[str, str]:
    """Return what an entry of the result file is about."""
    return {name: entry[name] for name in ("symbol", "argument", "value") if name in entry}


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.apis")
