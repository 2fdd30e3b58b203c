"""Lines whose change in a later release plainly removes a wait for the device, and which of them are found.

Each was read in the difference of two releases of a package with an engine for inference or training:
``.item()`` or a copy is gone, a copy no longer blocks, a list is no longer sent. ``found`` has the rules that
reported something there when the table was last written; what is missed has its ``cause`` instead. The table
has places only: `score` finds the lines again in a package at hand.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from benchmarks.corpus.findings import diagnostics
from benchmarks.corpus.packages import Package

FILE = Path(__file__).with_name("removed.tsv")
KINDS = ("branch", "copy", "data", "item", "mask", "number", "pageable", "read", "shape", "store", "sync")
"""What waits: a decision by a tensor, a blocking copy to the device, a list or array, ``.item()``, a boolean
mask, one number, a ``non_blocking`` copy from pageable memory, ``.cpu()`` or ``.tolist()``, a shape that
depends on data, a stored number, an explicit synchronization."""
RULES = "TL103,TL2,TL513"
"""What speaks of waits: blocking copies of batches, the rules of host and device, broken compiled graphs."""
COLUMNS = ("package", "version", "later", "path", "first", "last", "kind", "found", "cause")


@dataclass(frozen=True, slots=True)
class Removed:
    """One place, rows ``first`` to ``last`` of a file of the earlier release."""

    package: str
    version: str
    later: str
    path: str
    first: int
    last: int
    kind: str
    found: str
    cause: str


def removed(file: Path = FILE) -> list[Removed]:
    """Return every row of the table.

    Raises:
        ValueError: the file has other columns, a kind is none of `KINDS`, or a place is both found and missed
            for a cause.
    """
    with file.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream, delimiter="\t")
        if tuple(next(rows, ())) != COLUMNS:
            raise ValueError(f"{file.name}: the columns must be {', '.join(COLUMNS)}")
        places = [
            Removed(package, version, later, path, int(first), int(last), kind, found, cause)
            for package, version, later, path, first, last, kind, found, cause in rows
        ]
    for each in places:
        place = f"{file.name}, {each.path}:{each.first}"
        if each.kind not in KINDS:
            raise ValueError(f"{place}: a kind must be one of {', '.join(KINDS)}")
        if each.found and each.cause:
            raise ValueError(f"{place}: what is found is not missed for a cause")
    return places


def write(places: Iterable[Removed], file: Path = FILE) -> None:
    """Write the table."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, delimiter="\t", lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows(map(astuple, places))


def releases(places: Iterable[Removed], folder: Path) -> list[Package]:
    """Return the releases that the places are in, as they are (or will be) unpacked under a folder."""
    found = dict.fromkeys((each.package, each.version) for each in places)
    return [Package(name, version, folder / f"{name}-{version}") for name, version in found]


def score(places: Sequence[Removed], folder: Path) -> Iterator[tuple[Package, list[Removed]]]:
    """Yield the places of each release that lies in a folder (``trl-0.17.0``), with what is found there now.

    One release after the other, each as a whole project, of which only the files with places are linted.
    """
    for release in releases(places, folder):
        root = release.folder.resolve()
        if not root.is_dir():
            continue
        here = [e for e in places if (e.package, e.version) == (release.name, release.version)]
        paths = [root / path for path in dict.fromkeys(each.path for each in here)]
        items = diagnostics(root, ["--select", RULES, "--impact", "low", "--jobs", "1"], paths=paths)
        rows: dict[Path, list[tuple[int, str]]] = {}
        for item in items:
            rows.setdefault(Path(item["filename"]), []).append((item["location"]["row"], item["code"]))
        scored: list[Removed] = []
        for each in here:
            codes = sorted({c for row, c in rows.get(root / each.path, ()) if each.first <= row <= each.last})
            scored.append(replace(each, found=" ".join(codes), cause="" if codes else each.cause))
        yield release, scored


def renewed(places: Iterable[Removed], scored: Iterable[Removed]) -> list[Removed]:
    """Return all places of the table, those that were scored as they are found now."""
    anew = {(each.package, each.version, each.path, each.first): each for each in scored}
    return [anew.get((each.package, each.version, each.path, each.first), each) for each in places]


def recall(places: Sequence[Removed]) -> dict[str, tuple[int, int]]:
    """Return how many places of each kind are found, and how many there are; ``all`` comes last."""
    of = Counter(each.kind for each in places)
    hits = Counter(each.kind for each in places if each.found)
    return {kind: (hits[kind], of[kind]) for kind in sorted(of)} | {"all": (hits.total(), of.total())}
