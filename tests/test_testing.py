"""The fixture runner itself: it accepts good rules, and notices every way in which a rule can be wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from torchlint.diagnostics import Applicability, Edit, Fix, Span
from torchlint.options import LintSettings
from torchlint.rule import NOTE, WARNING, Finding, Rule, rule
from torchlint.semantics.module import Module
from torchlint.testing import Case, bless, cases, folder_problems, main, problems, rule_problems

UseRules = Callable[..., LintSettings]
PAGE = "\n\n".join(
    f"## {title}\nText."
    for title in ("What it does", "Why is this bad?", "Example", "Use instead", "Fix safety", "References")
)


def old_name(
    *,
    new: str = "new",
    message: str = "an old name",
    title: str = "Call it `new`",
    grade: Applicability = Applicability.SAFE,
    risk: str | None = None,
    mentions: tuple[str, ...] = (),
    at: Callable[[Span], tuple[Span, ...]] = lambda span: (span,),
) -> Rule:
    """A rule that finds the name ``old`` and replaces it; right, unless told otherwise."""

    @rule("XX101", "old-name", severity=WARNING, fix="safe", on=cst.Name, mentions=mentions)
    def check(node: cst.Name, module: Module) -> Iterator[Finding]:
        if node.value == "old":
            edits = tuple(Edit(span, new) for span in at(module.tree.span(node)))
            severity = NOTE if isinstance(module.tree.parent(node), cst.Arg) else None
            yield Finding(node, message, Fix(title, edits, grade, risk=risk), severity)

    check.check.__doc__ = PAGE
    return check


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "XX101_old_name"
    folder.mkdir()
    return folder


def case(folder: Path, text: str, fixed: str | None = None, name: str = "bad.py") -> Case:
    path = folder / name
    path.write_bytes(text.encode())
    if fixed is not None:
        path.with_suffix(".fixed.py").write_bytes(fixed.encode())
    return Case(path)


GOOD = "old  # expect: XX101 fix=safe\nf(old, old)  # expect: XX101[note], XX101[note] fix=safe\n"


def test_a_good_rule(use_rules: UseRules, folder: Path) -> None:
    use_rules(old_name())
    bad = case(folder, GOOD, GOOD.replace("old", "new"))
    good = case(folder, "new = 'old'\n", name="good.py")
    crlf = case(
        folder, GOOD.replace("\n", "\r\n"), GOOD.replace("old", "new").replace("\n", "\r\n"), "bad_crlf.py"
    )
    for item in (bad, good, crlf):
        assert problems(item) == []
    assert folder_problems([bad, good]) == []
    assert rule_problems(old_name()) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("old\n", "a bad fixture expects something"),
        ("old  # expect: XX101 fix=unsafe\n", "expected XX101 fix=unsafe, not found"),
        ("old  # expect: XX101[error]\n", "expected XX101[error], not found"),
        ("old  # expect: XX101, XX101\n", "bad.py:1: expected XX101, not found"),
        ("f(old)  # expect: XX101\n", "found XX101[note] fix=safe: an old name"),
        ("old  # expect: XX101\nold\n", "bad.py:2: found XX101 fix=safe: an old name"),
        ("(\n  old  # expect: XX101\n)  # expect: XX101\n", "bad.py:3: expected XX101, not found"),
        ("old  # expect: XX999\n", "bad.py:1: cannot understand `XX999`"),
        ("old  # expect: XX101 fix=perhaps\n", "cannot understand `XX101 fix=perhaps`"),
        ("# torchlint-test: unsafe=maybe\nold  # expect: XX101\n", "cannot understand `unsafe=maybe`"),
        ("# torchlint-test: target-torch=x\nold  # expect: XX101\n", "bad.py:1: "),
        ("old = (  # expect: XX101\n", "bad.py:1: '(' was never closed"),
        ("old  # expect: XX101\n", "it is fixed, but has no bad.fixed.py"),
    ],
)
def test_a_fixture_that_does_not_hold(use_rules: UseRules, folder: Path, text: str, complaint: str) -> None:
    use_rules(old_name())
    assert any(complaint in problem for problem in problems(case(folder, text)))


def test_a_good_fixture_that_is_not(use_rules: UseRules, folder: Path) -> None:
    use_rules(old_name())
    found = problems(case(folder, "old  # expect: XX101\n", name="good.py"))
    assert any("a good fixture expects nothing" in problem for problem in found)
    found = problems(case(folder, "old\n", name="good_topic.py"))
    assert any("found XX101 fix=safe" in problem for problem in found)


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (old_name(message="an old name."), "not one sentence without a full stop: 'an old name.'"),
        (old_name(message=" an old name"), "not one sentence without a full stop: ' an old name'"),
        (old_name(title="call it new"), "the help does not begin with a capital: 'call it new'"),
        (old_name(new="old"), "the fix changes nothing"),
        (old_name(new="(("), "the fix breaks the program"),
        (old_name(new="a\n\n\nb"), "the fix leaves more blank lines than there were"),
        (old_name(new="old, new"), "do not converge"),
        (old_name(new="'\n'"), "the fix breaks the program"),
        (old_name(new="(\nnew)"), "the fix changes with CR LF"),
        (old_name(mentions=("absent",)), "the findings change when every rule sees the file"),
        (old_name(at=lambda span: (span, Span(span.start, span.end + 1))), "the edits overlap"),
        (old_name(new="older"), "bad.fixed.py: the fixes make something else"),
    ],
)  # fmt: skip
def test_a_rule_that_breaks_its_promises(
    use_rules: UseRules, folder: Path, made: Rule, complaint: str
) -> None:
    use_rules(made)
    found = problems(case(folder, "old  # expect: XX101\n", "new  # expect: XX101\n"))
    assert any(complaint in problem for problem in found), found


def test_a_fix_better_than_declared(use_rules: UseRules, folder: Path) -> None:
    @rule("XX101", "old-name", severity=WARNING, fix="unsafe", on=cst.Name)
    def boastful(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Declares an unsafe fix and offers a safe one."""
        if node.value == "old":
            edits = (Edit(module.tree.span(node), "new"),)
            yield Finding(node, "an old name", Fix("Go", edits, Applicability.SAFE))

    use_rules(boastful)
    bad = case(folder, "old  # expect: XX101\n", "new  # expect: XX101\n")
    assert problems(bad) == [f"{bad.path}:1: the fix is safe, the rule declares 'unsafe'"]
    good = case(folder, "", name="good.py")
    assert any("declares fix='unsafe'" in problem for problem in folder_problems([bad, good]))


def test_a_rule_without_good_fixtures(use_rules: UseRules, folder: Path) -> None:
    use_rules(old_name())
    bad = case(folder, GOOD)
    assert folder_problems([bad]) == ["XX101: a rule needs a bad and a good fixture"]


def test_a_rule_that_crashes(use_rules: UseRules, folder: Path) -> None:
    @rule("XX101", "old-name", severity=WARNING, fix="none", on=cst.Name)
    def crashing(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Fails."""
        yield Finding(node, "a name")
        raise LookupError("nothing there")

    use_rules(crashing)
    found = problems(case(folder, "old  # expect: XX101\n"))
    assert any("failed in bad.py with LookupError: nothing there" in problem for problem in found)


# --- what a finding says, followed to the letter ---------------------------------------------------------


def slow_call(remedy: str | None = "Call `quick(…, n=1)`") -> Rule:
    """A rule without a fix that finds calls of ``slow``."""

    @rule("XX101", "old-name", severity=WARNING, fix="none", on=cst.Call, remedy=remedy)
    def check(call: cst.Call, module: Module) -> Iterator[Finding]:
        if isinstance(call.func, cst.Name) and call.func.value == "slow":
            yield Finding(call, "a slow call")

    check.check.__doc__ = PAGE
    return check


SLOW = "a = slow(1)  # expect: XX101\nb = slow(2)  # expect: XX101 follow=outside\n"
QUICK = SLOW.replace("slow(1)  # expect: XX101", "quick(1,\n  n = 1)")


@pytest.mark.parametrize(
    ("text", "remedy", "followed", "complaint"),
    [
        (SLOW, "Call `quick(…, n=1)`", QUICK, None),
        (SLOW, "Remove `slow(1)`", QUICK, None),
        (SLOW, "Speed it up", QUICK, None),
        (SLOW.splitlines()[1], "Speed it up", None, None),
        (SLOW, None, QUICK, "it does not say which edit satisfies the rule: 'a slow call'"),
        (SLOW, "Call `quick()`.", QUICK, "not one sentence without a full stop"),
        (SLOW, "call `quick()`", QUICK, "the help does not begin with a capital"),
        (SLOW, "Call `quick()`", None, "it has findings without a fix, but no bad.followed.py"),
        (SLOW.splitlines()[1], "Call `quick()`", QUICK, "bad.followed.py: nothing is left to follow"),
        (SLOW, "Call `quick()`", QUICK + "(", "bad.followed.py: it is no program"),
        (SLOW, "Call `quicker()`", QUICK, "this is not done to the letter: 'Call `quicker()`'"),
        (SLOW, "Remove `slow(2)`", QUICK, "this is not done to the letter: 'Remove `slow(2)`'"),
        (SLOW, "Call `quick()`", SLOW, "bad.followed.py:1: it is still found: a slow call"),
        (SLOW, "Call `quick()`", QUICK + "slow(3)\n", "bad.followed.py:4: found XX101 fix=none: a slow call"),
        (SLOW, "Call `quick()`", "", "bad.followed.py: this is not done to the letter"),
    ],
)
def test_following_a_remedy(
    use_rules: UseRules,
    folder: Path,
    text: str,
    remedy: str | None,
    followed: str | None,
    complaint: str | None,
) -> None:
    use_rules(slow_call(remedy))
    bad = case(folder, text)
    if followed is not None:
        bad.followed_path.write_text(followed)
    found = problems(bad)
    if complaint is None:
        assert found == []
    else:
        assert any(complaint in problem for problem in found), found


def test_a_fix_that_only_helps_another_finding(use_rules: UseRules, folder: Path) -> None:
    @rule("XX101", "old-name", severity=WARNING, fix="safe", on=cst.Name)
    def crossed(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Finds ``one`` and ``two``; the fix of one of them is what the other needs."""
        other = next((name for name in module.tree.nodes(cst.Name) if name.value == "two"), None)
        if node.value == "one" and other is not None:
            edits = (Edit(module.tree.span(other), "three"),)
            yield Finding(node, "a name", Fix("Say `three`", edits, Applicability.SAFE))
        elif node.value == "two":
            edits = (Edit(module.tree.span(node), "(two)"),)
            yield Finding(node, "a name", Fix("Say `three`", edits, Applicability.SAFE))

    use_rules(crossed)
    bad = case(folder, "one  # expect: XX101\ntwo  # expect: XX101\n")
    found = problems(bad)
    assert any("2 of 2 findings are left after 2: 'Say `three`'" in problem for problem in found), found
    assert not any("left after 1:" in problem for problem in found)


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        (PAGE.replace("## Example\nText.\n\n", ""), "the page has the sections"),
        (PAGE.replace("Example", "Use instead", 1), "the page has the sections"),
        (PAGE.replace("## Example\nText.", "## Example"), "the section `Example` is empty"),
        ("", "the page has the sections ()"),
    ],
)
def test_a_page_that_is_not_complete(page: str, complaint: str) -> None:
    made = old_name()
    made.check.__doc__ = page
    assert any(complaint in problem for problem in rule_problems(made))


def test_options_of_a_fixture(use_rules: UseRules, folder: Path) -> None:
    use_rules(old_name(grade=Applicability.UNSAFE, risk="it is another name"))
    line = "# torchlint-test: unsafe=false target-torch=1.13 also=TL002,TL003\n"
    bad = case(folder, f"{line}old  # expect: XX101 fix=unsafe\n")
    assert bad.settings.rules == ("TL002", "TL003", "XX101")
    assert bad.settings.target.admits_below("2.0")
    assert problems(bad) == []


# --- collecting, blessing and the command line -----------------------------------------------------------


def test_which_files_are_fixtures(folder: Path) -> None:
    twins = ("bad.fixed.py", "bad_a.followed.py")
    for name in ("bad.py", "bad_a.py", *twins, "good.py", "notes.py", "badly.py", "bad.txt"):
        (folder / name).write_text("")
    (folder.parent / "bad.py").write_text("")
    names = ["bad.py", "bad_a.py", "good.py"]
    assert [item.path for item in cases(folder.parent)] == [folder / name for name in names]
    assert cases(folder, folder.parent) == cases(folder.parent)
    given = [folder / name for name in ("good.py", *twins)]
    assert [item.path.name for item in cases(*given)] == [
        "bad.py",
        "bad_a.py",
        "good.py",
    ]


def test_bless(use_rules: UseRules, folder: Path) -> None:
    use_rules(old_name())
    bad = case(folder, "old\r\n", "stale")
    assert bless(bad)
    assert bad.fixed_path.read_bytes() == b"new\r\n"
    assert not bless(bad)
    done = case(folder, "new\n", "stale", name="bad_done.py")
    assert bless(done)
    assert not done.fixed_path.exists()
    assert not bless(done)
    assert not bless(case(folder, "old\n", name="good.py"))


def test_the_command(use_rules: UseRules, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use_rules(old_name())
    bad = case(folder, GOOD)
    assert main([str(bad.path)]) == 1
    assert capsys.readouterr().out.endswith("1 fixtures, 1 problems\n")
    assert main([str(folder)]) == 1
    assert capsys.readouterr().out.endswith(
        "XX101: a rule needs a bad and a good fixture\n1 fixtures, 2 problems\n"
    )
    case(folder, "new\n", name="good.py")
    assert main(["--bless", str(folder)]) == 0
    assert capsys.readouterr().out == f"{bad.fixed_path}: blessed\n2 fixtures, 0 problems\n"
    misplaced = folder.parent / "XX999_nothing"
    misplaced.mkdir()
    case(misplaced, "old\n")
    assert main(["--bless", str(misplaced)]) == 1
    assert "the folder is not called <CODE>_<rule_name>" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main([str(folder / "absent")])
    assert caught.value.code == 2


def test_the_module_is_a_command() -> None:
    fixtures = Path(__file__).resolve().parents[1] / "fixtures" / "TL003_invalid_suppression"
    done = subprocess.run(
        [sys.executable, "-m", "torchlint.testing", fixtures], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 fixtures, 0 problems\n", "")
