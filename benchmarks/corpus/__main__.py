"""The command line of the corpus benchmark; see the package's docstring."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import platformdirs

from benchmarks.corpus import (
    comparison,
    findings,
    fixes,
    packages,
    readings,
    removed,
    report,
    reports,
    soundness,
    tally,
    versions,
)
from benchmarks.corpus.comparison import Comparison
from benchmarks.corpus.packages import Package
from benchmarks.corpus.versions import Version

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(platformdirs.user_cache_dir("torchlint")) / "corpus",
    show_default="the user's cache folder",
    help="Where the packages lie.",
)
_ONLY = click.option(
    "--package", "only", multiple=True, metavar="NAME", help="Only this package; may be repeated."
)
_TREE = click.option(
    "--tree",
    "trees",
    multiple=True,
    metavar="NAME=PATH",
    help="Also this folder of Python files, as if it were a package; may be repeated.",
)
_SELECT = click.option(
    "--select", metavar="RULES", help="Only these rules, as torchlint's --select takes them."
)
_JOBS = click.option(
    "-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Worker processes."
)


def _chosen(folder: Path, only: Sequence[str], trees: Sequence[str]) -> list[Package]:
    """Return the packages a command works on: the named ones and the extra trees,
    or all that are unpacked.
    """
    known = [package for package in packages.pinned(folder) if package.folder.is_dir()]
    unknown = set(only) - {package.name for package in known}
    if unknown:
        raise click.BadParameter(
            f"not unpacked in {folder}: {', '.join(sorted(unknown))}", param_hint="--package"
        )
    extra = [
        Package(name, "local", Path(path))
        for name, path in (tree.split("=", 1) for tree in trees if "=" in tree)
    ]
    if len(extra) != len(trees):
        raise click.BadParameter("give NAME=PATH", param_hint="--tree")
    return [package for package in known if package.name in only or not (only or extra)] + extra


def _options(select: str | None, jobs: int) -> list[str]:
    return ["--jobs", str(jobs), *(["--select", select] if select else [])]


def _run_with(version: Version, given: Sequence[str], shared: Sequence[str]) -> Version:
    """Return the version with options of its own, by which it is also named, and those of both."""
    return replace(version, name=" ".join((version.name, *given)), options=(*shared, *given))


def _report(text: str) -> None:
    click.echo(text, err=True)


@click.group()
def main() -> None:
    """Judge torchlint on real packages: how true its findings are, and that its fixes hold."""


@main.command()
@_FOLDER
@_ONLY
def fetch(folder: Path, only: Sequence[str]) -> None:
    """Download the pinned packages with pip and unpack their Python files."""
    folder.mkdir(parents=True, exist_ok=True)
    packages.fetch(folder, only)
    for package in _chosen(folder, only, ()):
        click.echo(f"{package.name} {package.version}: {sum(1 for _ in package.folder.rglob('*.py'))} files")


@main.command()
@_FOLDER
@_ONLY
@_TREE
@_SELECT
@_JOBS
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Default: FOLDER/findings.json."
)
def lint(
    folder: Path,
    only: Sequence[str],
    trees: Sequence[str],
    select: str | None,
    jobs: int,
    output: Path | None,
) -> None:
    """Lint the packages and write what is found as JSON."""
    found = findings.lint(_chosen(folder, only, trees), _options(select, jobs), _report)
    folder.mkdir(parents=True, exist_ok=True)
    findings.write(output or folder / "findings.json", found)
    for code, count in sorted(Counter(item.code for item in found).items()):
        by_package = Counter(item.package for item in found if item.code == code)
        click.echo(f"{code} {count:6d}  " + ", ".join(f"{name} {n}" for name, n in by_package.most_common()))


@main.command()
@_FOLDER
@_ONLY
@_TREE
@click.argument("rules", nargs=-1)
@click.option(
    "-n", "--count", type=click.IntRange(1), default=20, show_default=True, help="Findings of each rule."
)
@click.option(
    "--skip", type=click.IntRange(0), default=0, help="Leave out this many at the start of the order."
)
@click.option("--severity", multiple=True, help="Only findings of this severity; may be repeated.")
@click.option(
    "--before", type=click.IntRange(0), default=8, show_default=True, help="Lines shown before each."
)
@click.option("--after", type=click.IntRange(0), default=4, show_default=True, help="Lines shown after each.")
@click.option("-i", "--input", "source", type=click.Path(dir_okay=False, exists=True, path_type=Path))
def sample(
    folder: Path,
    only: Sequence[str],
    trees: Sequence[str],
    rules: Sequence[str],
    count: int,
    skip: int,
    severity: Sequence[str],
    before: int,
    after: int,
    source: Path | None,
) -> None:
    """Show findings of RULES (default: of every rule) to be read by hand, with the lines around them."""
    found = findings.read(source or folder / "findings.json")
    folders = {package.name: package.folder for package in _chosen(folder, only, trees)}
    for code in rules or sorted({item.code for item in found}):
        candidates = [
            item
            for item in found
            if item.code == code and item.package in folders and (not severity or item.severity in severity)
        ]
        click.echo(f"===== {code}: {len(candidates)} findings")
        for number, item in enumerate(findings.sample(candidates, skip + count)[skip:], skip + 1):
            click.echo(f"\n----- {code} #{number}  {item.package} {item.version}  {item.path}:{item.line}")
            click.echo(f"      {item.severity}, fix {item.fix}: {item.message}")
            for line in findings.excerpt(item, folders[item.package], before, after):
                click.echo(line)


@main.command()
@_FOLDER
@_ONLY
@_TREE
@_SELECT
@_JOBS
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: FOLDER/fixes.json. What it says of other packages stays.",
)
def fixcheck(
    folder: Path,
    only: Sequence[str],
    trees: Sequence[str],
    select: str | None,
    jobs: int,
    output: Path | None,
) -> None:
    """Fix copies of the packages and check every byte of them.

    Every file must compile, a second pass must change nothing, and the bytes outside the declared edits must
    be the same. Exits with 1 if anything is wrong.
    """
    outcomes = []
    report = output or folder / "fixes.json"
    for package in _chosen(folder, only, trees):
        outcome = fixes.check(package, folder / "fixed", _options(select, jobs))
        outcomes.append(outcome)
        reports.record(outcome.as_json(), report)
        click.echo(
            f"{package.name} {package.version}: {outcome.files} files, {outcome.changed} changed "
            f"({outcome.exact} exactly as declared, {outcome.by_lines} compared by lines)"
        )
        for problem in ("crashes", "does_not_compile", "changed_outside_edits", "changed_by_second_pass"):
            for text in getattr(outcome, problem):
                click.echo(f"  {problem.replace('_', ' ')}: {text}")
    if not all(outcome.clean for outcome in outcomes):
        sys.exit(1)


@main.command()
@_FOLDER
@_ONLY
@_TREE
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: FOLDER/soundness.json. What it says of other packages stays.",
)
def sound(folder: Path, only: Sequence[str], trees: Sequence[str], output: Path | None) -> None:
    """Check every file that mentions torch with and without the screen and the outline.

    The diagnostics, their places and their fixes must be the same. Exits with 1 if they are not.
    """
    settings = soundness.everything()
    outcomes = []
    for package in _chosen(folder, only, trees):
        paths = soundness.mentioning(package.folder)
        outcome = soundness.check(package, paths, settings, _report)
        outcomes.append(outcome)
        reports.record(outcome.as_json(), output or folder / "soundness.json")
        click.echo(
            f"{package.name} {package.version}: {outcome.files} files, {outcome.spared} rules spared one, "
            f"{outcome.diagnostics} diagnostics, {len(outcome.differences)} differences"
        )
    if any(outcome.differences for outcome in outcomes):
        sys.exit(1)


@main.command()
@_FOLDER
@_ONLY
@_TREE
@_SELECT
@_JOBS
@click.option(
    "--before",
    required=True,
    metavar="VERSION",
    help="A commit, a folder, a wheel, or a release on the index.",
)
@click.option(
    "--after", default=str(versions.ROOT), metavar="VERSION", help="Likewise; default: this checkout."
)
@click.option(
    "--before-option",
    "before_options",
    multiple=True,
    metavar="OPTION",
    help="Give this to the check of the version before: --before-option=--no-project; may be repeated.",
)
@click.option(
    "--after-option", "after_options", multiple=True, metavar="OPTION", help="Likewise for the one after."
)
@click.option(
    "--examples", type=click.IntRange(0), default=3, show_default=True, help="Of each kind and rule."
)
@click.option("--code", is_flag=True, help="Show how fixed files differ, with the lines of the package.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report there."
)
@click.option("--json", "data", type=click.Path(dir_okay=False, path_type=Path), help="And this as JSON.")
def compare(
    folder: Path,
    only: Sequence[str],
    trees: Sequence[str],
    select: str | None,
    jobs: int,
    before: str,
    after: str,
    before_options: Sequence[str],
    after_options: Sequence[str],
    examples: int,
    code: bool,
    output: Path | None,
    data: Path | None,
) -> None:
    """Show what one version of torchlint finds and fixes, and another one does not, as Markdown.

    Exits with 0 if both do the same, with 1 if anything differs, with 2 if a version broke.
    """
    chosen = _chosen(folder, only, trees)
    try:
        first, second = (
            _run_with(versions.prepare(asked, folder / "versions"), given, _options(select, jobs))
            for asked, given in ((before, before_options), (after, after_options))
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    done: list[Comparison] = []
    broken: list[str] = []
    text = ""
    with tempfile.TemporaryDirectory() as workspace:
        for package in chosen:
            try:
                found = comparison.compare(package, first, second, Path(workspace))
                done.append(found)
                _report(f"{package.name} {package.version}: {'differs' if found else 'the same'}")
            except RuntimeError as error:
                broken.append(f"{package.name}: {error}")
                _report(broken[-1])
            # After each package: what is interrupted has told of those before.
            text = report.markdown(first, second, done, broken, examples, code)
            if output is not None:
                output.write_text(text, encoding="utf-8")
            if data is not None:
                told = report.as_json(first, second, done, broken)
                data.write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
    if output is None:
        click.echo(text, nl=False)
    sys.exit(2 if broken else int(any(done)))


@main.command()
@click.option(
    "--readings",
    "where",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=readings.FILE,
    show_default="benchmarks/corpus/readings.tsv",
    help="The table that was filled in by hand.",
)
def read(where: Path) -> None:
    """How many findings two people would act on, by rule and in all."""
    found = readings.readings(where)
    click.echo(f"{'':7}{'read':>6}{'change':>9}{'true':>7}{'wrong':>8}{'agreed':>9}")
    for name, row in {**readings.by_rule(found), "all": readings.tally(found)}.items():
        shares = (f"{part / row.read:.0%}" for part in (row.change, row.true, row.wrong, row.agreed))
        change, true, wrong, agreed = shares
        click.echo(f"{name:7}{row.read:6d}{change:>9}{true:>7}{wrong:>8}{agreed:>9}")
    packages_read = len({each.package for each in found})
    click.echo(f"{len(found)} findings in {packages_read} packages")


@main.command()
@_FOLDER
@click.option("--download", is_flag=True, help="Get the releases that are missing with pip.")
@click.option(
    "--package", "only", multiple=True, metavar="NAME", help="Only releases of this package; may be repeated."
)
@click.option("--lost", is_flag=True, help="Also list what was to change and is not reported by default.")
def reread(folder: Path, download: bool, only: Sequence[str], lost: bool) -> None:
    """Where the findings stand today that people have read, in the releases that lie in a folder.

    One release after the other: some 600, most of them in a few seconds.
    """
    read = [each for table in readings.tables() for each in readings.readings(table)]
    read = [each for each in read if not only or each.package in only]
    if download:
        folder.mkdir(parents=True, exist_ok=True)
        for release in readings.releases(read, folder):
            try:
                packages.get([release], folder)
            except subprocess.CalledProcessError:
                _report(f"not there: {release.name}-{release.version}")
    standing: list[tuple[readings.Reading, str]] = []
    for release, here in readings.again(read, folder):
        counts = Counter(where for _, where in here)
        _report(f"{release.name}-{release.version}: {counts[readings.DEFAULT]} of {len(here)} by default")
        standing += here
    click.echo(f"{'':20}{'read':>6}{'change':>9}{'true':>7}{'wrong':>8}")
    for family, chosen in (("TL2", True), ("others", False)):
        for where in readings.STANDINGS:
            rows = [e for e, now in standing if now == where and e.rule.startswith("TL2") is chosen]
            row = readings.tally(rows)
            shares = (f"{part / (row.read or 1):.0%}" for part in (row.change, row.true, row.wrong))
            change, true, wrong = shares
            click.echo(f"{family:9}{where:11}{row.read:6d}{change:>9}{true:>7}{wrong:>8}")
    if lost:
        for each, now in standing:
            if each.verdict == readings.CHANGE and now != readings.DEFAULT:
                click.echo(f"{each.package}-{each.version} {each.place} {each.rule} {now}: {each.why}")


@main.command()
@_FOLDER
@click.option("--download", is_flag=True, help="Get the releases that are missing with pip.")
@click.option("--update", is_flag=True, help="Write what is found now into the table, release by release.")
@click.option(
    "--package", "only", multiple=True, metavar="NAME", help="Only releases of this package; may be repeated."
)
@click.option(
    "--after", metavar="RELEASE", help="Go on after this release (trl-0.17.0), where a run was interrupted."
)
def waits(folder: Path, download: bool, update: bool, only: Sequence[str], after: str | None) -> None:
    """How many of the waits are found that maintainers removed, in the packages that lie in a folder.

    One release after the other: each takes a minute or two of a processor's time.
    """
    table = removed.removed()
    known = [f"{each.name}-{each.version}" for each in removed.releases(table, folder)]
    if after is not None and after not in known:
        raise click.BadParameter(f"none of the releases: {', '.join(known)}", param_hint="--after")
    wanted = set(known[known.index(after) + 1 :] if after is not None else known)
    places = [
        each
        for each in table
        if f"{each.package}-{each.version}" in wanted and (not only or each.package in only)
    ]
    if download:
        folder.mkdir(parents=True, exist_ok=True)
        packages.get(removed.releases(places, folder), folder)
    found: list[removed.Removed] = []
    for release, scored in removed.score(places, folder):
        hits = sum(1 for each in scored if each.found)
        _report(f"{release.name}-{release.version}: {hits} of {len(scored)}")
        found += scored
        if update:
            removed.write(removed.renewed(table, found))
    click.echo(f"{'':9}{'found':>6}{'of':>5}")
    for kind, (hits, count) in removed.recall(found).items():
        click.echo(f"{kind:9}{hits:6d}{count:5d}{hits / (count or 1):8.0%}")
    if absent := {f"{each.package}-{each.version}" for each in places} - {
        f"{each.package}-{each.version}" for each in found
    }:
        _report(f"not there: {', '.join(sorted(absent))}")


@main.command()
@click.option("--tally", "where", type=click.Path(file_okay=False, path_type=Path), default=tally.FOLDER)
@click.option(
    "--fail-under", type=click.FloatRange(0, 100), default=0, help="Exit with 1 if a rule is below this %."
)
def table(where: Path, fail_under: float) -> None:
    """Print the precision of every rule, from the findings read by hand."""
    rows = tally.precision(where)
    click.echo("rule    packages   read   true  precision")
    for row in rows:
        click.echo(f"{row.rule:7} {row.packages:8d} {row.read:6d} {row.true:6d}    {row.share:6.1%}")
    if any(100 * row.share < fail_under for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.corpus")
