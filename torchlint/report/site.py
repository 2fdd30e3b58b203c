"""The pages: an index of all repositories, small however many there are, and a page for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from operator import attrgetter

from torchlint import __version__, html
from torchlint.diagnostics import Impact
from torchlint.registry import families, rule_name
from torchlint.report.records import Finding, Record, Shelf, total, write

_WORST = 50
_RUNS = 30
"""So many runs are kept, and shown."""
IMPACTS = tuple(impact.label for impact in reversed(Impact))


@dataclass(frozen=True)
class Repository:
    """A record without the findings, which are counted in ``totals``."""

    record: Record
    totals: Counter[str]


@dataclass(frozen=True)
class File:
    """A file with findings. ``anchor`` is where the page of its repository shows it."""

    record: Record
    name: str
    anchor: str
    findings: tuple[Finding, ...]

    @property
    def totals(self) -> Counter[str]:
        """How many findings there are of each kind."""
        return total(self.findings)


@dataclass(frozen=True)
class Line:
    """A line of a table: how many findings there are, in how many repositories if that is told.

    ``change`` is by how much the counted ones are more than in the run before; None if that has none.
    """

    title: str
    about: str
    totals: Counter[str]
    repositories: int | None
    change: int | None


def files(record: Record) -> tuple[File, ...]:
    """Return the files of a repository, those with the most at stake first."""
    by_file = sorted(record.findings, key=attrgetter("file"))
    groups = [(name, tuple(found)) for name, found in groupby(by_file, key=attrgetter("file"))]
    ranked = sorted(groups, key=lambda group: (*_rank(total(group[1])), group[0]))
    bare = replace(record, findings=())
    return tuple(File(bare, name, f"f{at}", found) for at, (name, found) in enumerate(ranked, 1))


def _rank(totals: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(-totals.get(impact, 0) for impact in IMPACTS)


class Site:
    """Collects the repositories of one run, writing the page of each, and then writes the index.

    ``shelf`` is where the site is, and where earlier runs are remembered.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._environment = html.environment("torchlint.report")
        self._environment.globals.update(IMPACTS=IMPACTS, version=__version__)
        self._repositories: list[Repository] = []
        self._worst: list[File] = []
        self._earlier = shelf.history
        known = self._earlier[-1]["rules"] if self._earlier else {}
        # A rule that finds nothing any more is told of, too.
        self._rules: dict[str, Counter[str]] = {code: Counter() for code in known}
        self._found_in: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Take in a repository, and write its page."""
        inside, by_code = files(record), _by_code(record.findings)
        lines = sorted((Line(code, rule_name(code), found, 1, None) for code, found in by_code), key=_order)
        page = html.render(
            self._environment,
            "repository.html.jinja",
            title=f"torchlint report: {record.name}",
            record=record,
            totals=record.totals,
            lines=lines,
            files=inside,
        )
        write(self._shelf.folder / "repositories" / f"{record.slug}.html", page)
        for code, found in by_code:
            self._rules.setdefault(code, Counter()).update(found)
            self._found_in[code] += 1
        self._worst = sorted(
            (*self._worst, *(file for file in inside if _counted(file.totals))),
            key=lambda file: (*_rank(file.totals), file.record.name, file.name),
        )[:_WORST]
        self._repositories.append(Repository(replace(record, findings=()), record.totals))

    def finish(self) -> None:
        """Write the index, and remember the run."""
        repositories = sorted(self._repositories, key=lambda item: (*_rank(item.totals), item.record.name))
        totals = _sum(item.totals for item in repositories)
        rules, teams = self._of_rules(), self._of_teams()
        run = {
            "finished": datetime.now(timezone.utc).isoformat(),
            "torchlint": __version__,
            "repositories": len(repositories),
            "totals": dict(totals),
            "rules": {line.title: _counted(line.totals) for line in rules},
            "teams": {line.title: _counted(line.totals) for line in teams},
        }
        history = [*self._earlier, run][-_RUNS:]
        page = html.render(
            self._environment,
            "index.html.jinja",
            title="torchlint report",
            run=run,
            totals=totals,
            repositories=repositories,
            failed=[item.record for item in repositories if item.record.error],
            rules=rules,
            families=self._of_families(),
            teams=teams,
            worst=self._worst,
            history=history,
            most=max(_counted(each["totals"]) for each in history),
        )
        write(self._shelf.folder / "index.html", page)
        self._shelf.remember(history)

    # --- the tables ----------------------------------------------------------------------------------------

    def _change(self, table: str, titles: Sequence[str], totals: Mapping[str, int]) -> int | None:
        if not self._earlier:
            return None
        before = self._earlier[-1][table]
        return _counted(totals) - sum(int(before.get(title, 0)) for title in titles)

    def _of_rules(self) -> list[Line]:
        lines = [
            Line(code, rule_name(code), totals, self._found_in[code], self._change("rules", [code], totals))
            for code, totals in self._rules.items()
        ]
        return sorted(lines, key=_order)

    def _of_families(self) -> list[Line]:
        lines = []
        for family in families():
            codes = [rule.code for rule in family.rules if rule.code in self._rules]
            if codes:
                totals = _sum(self._rules[code] for code in codes)
                change = self._change("rules", codes, totals)
                lines.append(Line(family.prefix, family.title, totals, None, change))
        return lines

    def _of_teams(self) -> list[Line]:
        teams: dict[str, list[Repository]] = {}
        for item in self._repositories:
            teams.setdefault(item.record.team, []).append(item)
        lines = []
        for team, members in teams.items():
            totals = _sum(item.totals for item in members)
            lines.append(Line(team, "", totals, len(members), self._change("teams", [team], totals)))
        return sorted(lines, key=_order)


def _by_code(findings: Iterable[Finding]) -> list[tuple[str, Counter[str]]]:
    ordered = sorted(findings, key=attrgetter("code"))
    return [(code, total(found)) for code, found in groupby(ordered, key=attrgetter("code"))]


def _order(line: Line) -> tuple[int | str, ...]:
    return (*_rank(line.totals), line.title)


def _counted(totals: Mapping[str, int]) -> int:
    return totals.get("counted", 0)


def _sum(totals: Iterable[Counter[str]]) -> Counter[str]:
    return sum(totals, Counter())
