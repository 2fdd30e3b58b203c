"""The corpus benchmark judges the linter: it must notice a fix that breaks a program, and count honestly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from benchmarks.corpus import findings, fixes, packages, readings, removed, reports, tally
from benchmarks.corpus.findings import Finding
from benchmarks.corpus.packages import Package

BEFORE = b"import torch\n\nx = torch.zeros(3).cuda()\ny = 1\n"
AFTER = b'import torch\n\nx = torch.zeros(3, device="cuda")\ny = 1\n'


def edit(start: tuple[int, int], end: tuple[int, int], content: str) -> dict[str, Any]:
    def location(place: tuple[int, int]) -> dict[str, int]:
        return {"row": place[0], "column": place[1]}

    return {"content": content, "location": location(start), "end_location": location(end)}


# torch.zeros(3).cuda(): a keyword put in, a call cut off.
EDITS = [edit((3, 18), (3, 18), ', device="cuda"'), edit((3, 19), (3, 26), "")]


class Linter:
    """Stands in for torchlint: declares edits for known texts, and writes what ``passes`` hold, in turn."""

    def __init__(
        self, edits: dict[bytes, list[dict[str, Any]]], passes: list[bytes], code: str = "TL201"
    ) -> None:
        self.edits, self.passes, self.code = edits, list(passes), code

    def __call__(self, folder: Path, options: Iterable[str] = ()) -> list[dict[str, Any]]:
        path = folder / "module.py"
        if "--fix" in options and self.passes:
            path.write_bytes(self.passes.pop(0))
        edits = self.edits.get(path.read_bytes())
        fix = {"applicability": "safe", "edits": edits} if edits else None
        return [{"code": self.code, "filename": str(path), "message": "made on the host", "fix": fix}]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., fixes.Outcome]:
    def run(before: bytes, linter: Linter) -> fixes.Outcome:
        folder = tmp_path / "package-1.0"
        folder.mkdir()
        (folder / "module.py").write_bytes(before)
        monkeypatch.setattr(fixes, "diagnostics", linter)
        outcome = fixes.check(Package("package", "1.0", folder), tmp_path / "fixed", ())
        assert (folder / "module.py").read_bytes() == before
        return outcome

    return run


def test_a_fix_that_does_what_it_declares_is_exact(check: Callable[..., fixes.Outcome]) -> None:
    outcome = check(BEFORE, Linter({BEFORE: EDITS}, [AFTER]))
    assert outcome.clean
    assert (outcome.files, outcome.changed, outcome.exact, outcome.by_lines) == (1, 1, 1, 0)


@pytest.mark.parametrize(
    "encode", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"\n", b"\r\n")]
)
def test_marks_and_newlines_that_are_kept_are_exact(
    check: Callable[..., fixes.Outcome], encode: Callable[[bytes], bytes]
) -> None:
    outcome = check(encode(BEFORE), Linter({encode(BEFORE): EDITS}, [encode(AFTER)]))
    assert outcome.clean
    assert outcome.exact == 1


def test_a_report_keeps_what_it_says_of_other_packages(tmp_path: Path) -> None:
    report = tmp_path / "results" / "fixcheck.json"
    for name, changed in (("b", 1), ("a", 2), ("b", 3)):
        reports.record(fixes.Outcome(name, "1.0", files=9, changed=changed).as_json(), report)
    entries = json.loads(report.read_text(encoding="utf-8"))
    assert [(entry["package"], entry["changed"]) for entry in entries] == [("a", 2), ("b", 3)]
    assert str(tmp_path) not in report.read_text(encoding="utf-8")


def test_what_a_second_round_of_fixes_changes_is_exact_too(check: Callable[..., fixes.Outcome]) -> None:
    second = [edit((4, 5), (4, 6), "2")]
    after = AFTER.replace(b"y = 1", b"y = 2")
    outcome = check(BEFORE, Linter({BEFORE: EDITS, AFTER: second}, [after]))
    assert outcome.clean
    assert outcome.exact == 1


def test_other_choices_among_overlapping_fixes_are_compared_by_lines(
    check: Callable[..., fixes.Outcome],
) -> None:
    outcome = check(BEFORE, Linter({BEFORE: EDITS}, [AFTER.replace(b"zeros(3,", b"ones(3,")]))
    assert outcome.clean
    assert (outcome.exact, outcome.by_lines) == (0, 1)


def test_a_line_changed_outside_the_edits_is_a_problem(check: Callable[..., fixes.Outcome]) -> None:
    outcome = check(BEFORE, Linter({BEFORE: EDITS}, [AFTER.replace(b"y = 1", b"y = 2")]))
    assert outcome.changed_outside_edits == ["module.py: lines [4]"]


@pytest.mark.parametrize(
    ("before", "after"),
    [(BEFORE.replace(b"\n", b"\r\n"), AFTER), (b"\xef\xbb\xbf" + BEFORE, AFTER)],
    ids=["newlines", "byte order mark"],
)
def test_lost_newlines_and_marks_are_a_problem(
    check: Callable[..., fixes.Outcome], before: bytes, after: bytes
) -> None:
    assert not check(before, Linter({before: EDITS}, [after])).clean


def test_a_fix_that_breaks_the_syntax_is_a_problem(check: Callable[..., fixes.Outcome]) -> None:
    broken = b'import torch\n\nx = torch.zeros(3, device="cuda"\ny = 1\n'
    assert check(BEFORE, Linter({BEFORE: EDITS}, [broken])).does_not_compile == ["module.py"]


def test_a_file_that_never_compiled_is_not_held_against_the_fix(check: Callable[..., fixes.Outcome]) -> None:
    outcome = check(BEFORE + b"print 1\n", Linter({BEFORE + b"print 1\n": EDITS}, [AFTER + b"print 1\n"]))
    assert outcome.clean


def test_a_second_pass_that_changes_something_is_a_problem(check: Callable[..., fixes.Outcome]) -> None:
    outcome = check(BEFORE, Linter({BEFORE: EDITS}, [AFTER, AFTER + b"z = 3\n"]))
    assert outcome.changed_by_second_pass == ["module.py"]


def test_a_crash_of_a_rule_is_a_problem(check: Callable[..., fixes.Outcome]) -> None:
    assert check(BEFORE, Linter({}, [], code="TL000")).crashes == ["module.py: made on the host"]


def finding(path: str, line: int) -> Finding:
    return Finding("package", "1.0", path, line, line, "TL202", "warning", "a message", "none")


def test_a_sample_stays_the_same_when_findings_come_and_go() -> None:
    found = [finding(f"module{number}.py", number) for number in range(1, 101)]
    drawn = findings.sample(found, 20)
    assert drawn == findings.sample(found[::-1], 20)
    others = [item for item in found if item not in drawn[:5]]
    assert findings.sample(others, 15) == drawn[5:]
    assert drawn != found[:20]


def test_findings_survive_being_written(tmp_path: Path) -> None:
    found = [finding("a.py", 1), finding("b.py", 2)]
    findings.write(tmp_path / "findings.json", found[::-1])
    assert findings.read(tmp_path / "findings.json") == found


def test_an_excerpt_shows_the_definitions_around_a_finding(tmp_path: Path) -> None:
    body = "".join(f"        a{number} = {number}\n" for number in range(9))
    (tmp_path / "module.py").write_text(
        f"class A:\n    def f(self):\n{body}        x.item()\n", encoding="utf-8"
    )
    lines = list(findings.excerpt(finding("module.py", 12), tmp_path, before=1, after=1))
    assert [line.split(maxsplit=1)[0] for line in lines] == ["1", "2", "11", "12"]
    assert lines[0].endswith("class A:")
    assert lines[-1] == "    12 >         x.item()"


def test_precision_is_summed_over_packages(tmp_path: Path) -> None:
    rows = "package,version,read,true,false,why\na,1,10,9,1,a list\nb,2,10,10,0,\n"
    (tmp_path / "TL202.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "TL203.csv").write_text("package,version,read,true,false,why\na,1,0,0,0,\n", encoding="utf-8")
    (row,) = tally.precision(tmp_path)
    assert (row.rule, row.packages, row.read, row.true, row.share) == ("TL202", 2, 20, 19, 0.95)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("package,version,read,true,false,why\na,1,10,9,2,x\n", "10 read are not 9 true \\+ 2 false"),
        ("package,version,read,true\na,1,10,9\n", "the columns must be"),
    ],
)
def test_a_tally_that_does_not_add_up_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "TL202.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        tally.precision(tmp_path)


def test_the_tally_of_the_repository_adds_up() -> None:
    assert all(entry.read > 0 or entry.why for entry in tally.entries())


def test_every_package_is_pinned_once(tmp_path: Path) -> None:
    pinned = packages.pinned(tmp_path)
    assert len({package.name for package in pinned}) == len(pinned) >= 10
    assert all(package.folder == tmp_path / f"{package.name}-{package.version}" for package in pinned)


def _readings(folder: Path, *rows: str) -> Path:
    file = folder / "readings.tsv"
    lines = ["\t".join(readings.COLUMNS), *(row.replace("|", "\t") for row in rows)]
    file.write_text("".join(line + "\n" for line in lines))
    return file


def test_readings_are_counted_by_rule_and_by_what_both_readers_settled(tmp_path: Path) -> None:
    file = _readings(
        tmp_path,
        "a|1.0|a/x.py:3|TL202|warning|high|change|change||",
        "a|1.0|a/x.py:9|TL202|warning|medium|change|true|true|once an epoch",
        "b|2.0|y.py:1|TL301|warning|high|wrong|wrong||no model",
        "b|2.0|y.py:7|TL301|warning|high|change|||read by one person",
    )
    found = readings.readings(file)
    assert readings.tally(found) == readings.Tally(change=2, true=1, wrong=1, agreed=2)
    assert readings.by_rule(found)["TL202"] == readings.Tally(change=1, true=1, wrong=0, agreed=1)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("a|1.0|x.py:3|TL202|warning|high|change|true||", "a verdict must be"),
        ("a|1.0|x.py:3|TL202|warning|high|perhaps|perhaps||", "a verdict must be"),
        ("a|1.0|x.py:3|TL202|warning|high|true|true|change|", "nothing is left to settle"),
        ("a|1.0|x.py:3|TL202|warning|high|true||change|", "nothing is left to settle"),
    ],
)
def test_readings_that_say_nothing_clear_are_refused(tmp_path: Path, row: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        readings.readings(_readings(tmp_path, row))


def test_findings_that_were_read_are_looked_for_again_in_the_packages_at_hand(tmp_path: Path) -> None:
    loop = """
        import torch

        def train(model, loader, optimizer):
            model.cuda()
            for x, y in loader:
                loss = model(x.cuda(), y.cuda())
                loss.backward()
                optimizer.step()
                print(loss.item())
        """
    source = tmp_path / "some-tool-1.0" / "tool" / "loop.py"
    source.parent.mkdir(parents=True)
    source.write_text(dedent(loop).strip() + "\n", encoding="utf-8")
    found = readings.readings(
        _readings(
            tmp_path,
            "Some_Tool|1.0|some-tool-1.0/tool/loop.py:9|TL202|warning|high|change|||",
            "Some_Tool|1.0|tool/loop.py:4|TL202|warning|high|wrong|||",
            "Some_Tool|1.0|tool/gone.py:4|TL202|warning|high|wrong|||",
            "other|2.0|other.py:1|TL202|warning|high|true|||",
        )
    )
    ((release, standing),) = readings.again(found, tmp_path)
    assert (release.name, release.version) == ("some-tool", "1.0")
    assert [(each.place, where) for each, where in standing] == [
        ("some-tool-1.0/tool/loop.py:9", readings.DEFAULT),
        ("tool/loop.py:4", readings.GONE),
    ]


def test_waits_that_maintainers_removed_are_scored_anew_in_the_packages_at_hand(tmp_path: Path) -> None:
    source = (
        "import torch\n\n\n"
        "def prune(logits: torch.Tensor):\n"
        "    longest = logits.max().item()\n"
        "    return longest, torch.zeros(3, device=logits.device)\n"
    )
    (tmp_path / "engine-1.0").mkdir()
    (tmp_path / "engine-1.0" / "sampler.py").write_text(source, encoding="utf-8")
    table = tmp_path / "removed.tsv"
    removed.write(
        [
            removed.Removed("engine", "1.0", "1.1", "sampler.py", 4, 5, "item", "", "not seen to be hot"),
            removed.Removed("engine", "1.0", "1.1", "sampler.py", 6, 6, "read", "TL203", ""),
            removed.Removed("absent", "1.0", "1.1", "sampler.py", 5, 5, "item", "", ""),
        ],
        table,
    )
    places = removed.removed(table)
    ((release, found),) = removed.score(places, tmp_path)
    assert (release.name, release.version) == ("engine", "1.0")
    assert removed.renewed(places, found) == [*found, places[2]]
    assert [(each.first, each.found, each.cause) for each in found] == [(4, "TL202", ""), (6, "", "")]
    assert removed.recall(found) == {"item": (1, 1), "read": (0, 1), "all": (1, 2)}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [("a|1|2|x.py|3|3|wait||", "a kind must be"), ("a|1|2|x.py|3|3|item|TL202|not hot", "what is found")],
)
def test_removed_waits_that_say_nothing_clear_are_refused(tmp_path: Path, row: str, complaint: str) -> None:
    file = tmp_path / "removed.tsv"
    file.write_text("\n".join(line.replace("|", "\t") for line in ("|".join(removed.COLUMNS), row)) + "\n")
    with pytest.raises(ValueError, match=complaint):
        removed.removed(file)


def test_the_table_of_removed_waits_is_whole() -> None:
    places = removed.removed()
    assert len({each.package for each in places}) >= 5
    assert len(set(places)) == len(places) >= 150
    assert all(each.first <= each.last and each.version != each.later for each in places)
