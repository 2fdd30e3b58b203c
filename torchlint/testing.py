"""Runs the fixtures of rules, and holds every rule to the same promises; public, for rule packs too.

A folder of fixtures is called ``<CODE>_<rule_name>`` and holds ``bad.py``, ``bad.fixed.py``,
``bad.followed.py``, ``good.py``, and more files of that kind for single topics: ``bad_<topic>.py``,
``bad_<topic>.fixed.py``, ``bad_<topic>.followed.py``, ``good_<topic>.py``.

    value = loss.item()  # expect: TL202                 one finding of the rule starts in this line
    value = loss.item()  # expect: TL202[note] fix=safe  with this severity, and a fix of this grade

A ``bad`` file gives exactly the findings that it expects and becomes its ``.fixed`` twin when all fixes,
unsafe ones too, are applied; without a twin nothing may be fixed. A ``good`` file gives none. Only the rule
of the folder is run. The first line may say otherwise:

    # torchlint-test: target-torch=1.13 target-transformers=4.50 unsafe=false also=TL202,TL203 impact=medium

With ``impact=medium``, the file is about what is shown by default: findings of low impact do not count.

Whoever does what a finding says is rid of it. A fix that is applied alone leaves fewer findings of the rule.
A finding without a fix has a remedy, and what is left when all fixes are applied is done by hand in the
``.followed`` twin: it is what a reader makes of the ``.fixed`` twin, or of the fixture if there is none, who
does to the letter what each help says, and nothing else. The rule finds nothing in it. What the helps tell
to write is compared with it: of each, a piece of code in backticks that was not in the text before stands
there now (``…`` in it is any code), or what "Remove `…`" names at its beginning stands there less often; a
help without either changes something. A finding that no edit of its file ends is marked, with a comment that
says why:

    dist.init_process_group("nccl")  # expect: TL704 follow=outside

``python -m torchlint.testing PATH…`` runs fixtures, and writes the ``.fixed`` twins anew with ``--bless``.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchlint import reading, registry
from torchlint.checker import CRASH, SYNTAX_ERROR, check
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Impact
from torchlint.fixer import Fixed, apply, choose, fix
from torchlint.options import LintSettings
from torchlint.rule import Rule
from torchlint.runner import unified_diff
from torchlint.scope import Scope
from torchlint.source import NEWLINE, Source
from torchlint.suppressions import lines_of
from torchlint.target import LIBRARIES, TORCH, Target

SECTIONS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Fix safety",
    "References",
)
"""The headings of a rule's documentation page, in order."""

_FOLDER = re.compile(r"(?P<code>[A-Z]+[0-9]+)_(?P<name>[a-z0-9_]+)")
_TWIN = re.compile(r"\.(fixed|followed)\.py$")
_HEADER = re.compile(r"#\s*torchlint-test:(?P<options>.*)")
_EXPECT = re.compile(r"#\s*expect:(?P<items>[^#]*)")
_ITEM = re.compile(
    r"(?P<code>[A-Z]+[0-9]+)(?:\[(?P<severity>note|warning|error)\])?(?:\s+fix=(?P<fix>safe|unsafe|none))?"
    r"(?:\s+follow=(?P<follow>outside))?"
)
# How many texts a fixture is made into to see what its fixes do one by one.
_TRIALS = 4


class FixtureError(ValueError):
    """A fixture that is not written as fixtures are; the message says where and how."""


@dataclass(frozen=True)
class Expectation:
    """One finding that a fixture wants in ``row``; None for a severity or grade that it leaves open.

    ``follow`` is "outside" if what ends the finding is no edit of the file.
    """

    row: int
    code: str
    severity: str | None = None
    fix: str | None = None
    follow: str | None = None

    def admits(self, diagnostic: Diagnostic) -> bool:
        """Return whether ``diagnostic`` is what is wanted; the rule's own severity if none is given."""
        severity = self.severity or registry.catalogue()[self.code].severity.value
        return (
            (self.row, self.code) == (diagnostic.start.row, diagnostic.code)
            and diagnostic.severity.value == severity
            and self.fix in (None, _grade(diagnostic))
        )

    def __str__(self) -> str:
        severity = f"[{self.severity}]" if self.severity else ""
        grade = f" fix={self.fix}" if self.fix else ""
        return f"{self.code}{severity}{grade}" + (f" follow={self.follow}" if self.follow else "")


@dataclass(frozen=True)
class Case:
    """One fixture file that is linted: a ``bad`` or a ``good`` one."""

    path: Path

    @property
    def bad(self) -> bool:
        """Whether findings are expected."""
        return self.path.name.startswith("bad")

    @property
    def fixed_path(self) -> Path:
        """Where the text after all fixes is kept."""
        return self.path.with_suffix(".fixed.py")

    @property
    def followed_path(self) -> Path:
        """Where the text is kept that remains if the helps of the other findings are followed too."""
        return self.path.with_suffix(".followed.py")

    @cached_property
    def source(self) -> Source:
        """The file."""
        return reading.read(self.path)

    @cached_property
    def rule(self) -> Rule:
        """The rule that the folder is named after.

        Raises:
            FixtureError: there is no such rule.
        """
        match = _FOLDER.fullmatch(self.path.parent.name)
        rule = registry.catalogue().get(match["code"]) if match else None
        if match is None or rule is None or rule.name.replace("-", "_") != match["name"]:
            raise FixtureError(f"{self.path.parent}: the folder is not called <CODE>_<rule_name>")
        return rule

    @cached_property
    def settings(self) -> LintSettings:
        """The rule alone, with all of its fixes, unless the first line says otherwise.

        Raises:
            FixtureError: the first line cannot be understood.
        """
        unsafe, also, targets = True, (), {TORCH: Target.unknown()}
        header = _HEADER.search(self.source.line(1))
        for option in header["options"].split() if header else ():
            key, _, value = option.partition("=")
            library = key.removeprefix("target-")
            if library in (TORCH, *LIBRARIES) and library != key and value:
                try:
                    targets[library] = Target.parse(value, "fixture", library)
                except ValueError as error:
                    raise FixtureError(f"{self.path}:1: {error}") from error
            elif key == "unsafe" and value in ("true", "false"):
                unsafe = value == "true"
            elif key == "also" and value:
                also = tuple(value.split(","))
            elif option == "impact=medium":
                continue
            else:
                raise FixtureError(f"{self.path}:1: cannot understand `{option}`")
        code = self.rule.code
        return LintSettings(
            rules=tuple(sorted({code, *also})),
            fixable=frozenset({code}),
            unsafe_fixes=unsafe,
            target=targets.pop(TORCH),
            libraries=targets,
        )

    @cached_property
    def least(self) -> Impact:
        """The impact from which on findings count: any, unless the first line says otherwise."""
        header = _HEADER.search(self.source.line(1))
        return Impact.MEDIUM if header and "impact=medium" in header["options"].split() else Impact.LOW

    @cached_property
    def expectations(self) -> tuple[Expectation, ...]:
        """What the comments of the file ask for.

        Raises:
            FixtureError: a comment cannot be understood.
        """
        return _expectations(self.source)


def _expectations(source: Source) -> tuple[Expectation, ...]:
    found: list[Expectation] = []
    for comment in lines_of(source).comments:
        for match in _EXPECT.finditer(comment.text):
            for text in match["items"].split(","):
                item = _ITEM.fullmatch(text.strip())
                if item is None or item["code"] not in registry.catalogue():
                    raise FixtureError(f"{source.path}:{comment.row}: cannot understand `{text.strip()}`")
                found.append(Expectation(comment.row, **item.groupdict()))
    return tuple(found)


def cases(*places: Path) -> list[Case]:
    """Return the fixtures that are, or lie below, ``places``, sorted by path."""
    found = set()
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            path = path.with_name(_TWIN.sub(".py", path.name))
            in_fixtures = place.is_file() or _FOLDER.fullmatch(path.parent.name)
            if in_fixtures and re.fullmatch(r"(bad|good)(_\w+)?\.py", path.name) and path.exists():
                found.add(path)
    return [Case(path) for path in sorted(found)]


def problems(case: Case) -> list[str]:
    """Return everything in which the rule does not do what the fixture wants or what every rule promises."""
    try:
        return list(_problems(case))
    except FixtureError as error:
        return [str(error)]


def invariants(source: Source, settings: LintSettings) -> list[str]:
    """Return what holds of every file, whatever is in it, and does not hold of this one.

    No rule fails; the screen changes no finding; messages keep to their form; each fix is no better than its
    rule declares, changes something, nothing outside of its edits, and breaks no program; so do all fixes
    together, and a second pass changes nothing; and a file with CR LF and a byte order mark has the same
    findings and fixes.
    """
    return list(_broken_invariants(source, settings, check(source, settings), fix(source, settings)))


def rule_problems(rule: Rule) -> list[str]:
    """Return what is amiss with the documentation page of a rule."""
    found = []
    titles = tuple(re.findall(r"^## (.+)$", rule.page, re.MULTILINE))
    if titles != SECTIONS:
        found.append(f"{rule.code}: the page has the sections {titles}, not {SECTIONS}")
    bodies = re.split(r"^## .+$", rule.page, flags=re.MULTILINE)[1:]
    found += [
        f"{rule.code}: the section `{title}` is empty"
        for title, body in zip(titles, bodies, strict=True)
        if not body.strip()
    ]
    return found


def folder_problems(folder: Sequence[Case]) -> list[str]:
    """Return what is amiss with the fixtures of one rule taken together: its best fix must be among them."""
    rule = folder[0].rule
    grades = {
        _grade(diagnostic) for case in folder for diagnostic in _own(case, check(case.source, case.settings))
    }
    found = []
    if not any(case.bad for case in folder) or all(case.bad for case in folder):
        found.append(f"{rule.code}: a rule needs a bad and a good fixture")
    if rule.fix not in grades:
        found.append(f"{rule.code}: it declares fix={rule.fix!r}, but its fixtures have {sorted(grades)}")
    return found


def bless(case: Case) -> bool:
    """Write the ``.fixed`` twin of a bad fixture as the fixes make it now; return whether it changed.

    A twin that would be equal to the fixture is removed.
    """
    if not case.bad:
        return False
    source, twin = case.source, case.fixed_path
    data = source.encode(fix(source, case.settings, Scope(impact=case.least)).text)
    if data == source.encode(source.text):
        existed = twin.exists()
        twin.unlink(missing_ok=True)
        return existed
    if twin.exists() and twin.read_bytes() == data:
        return False
    twin.write_bytes(data)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run fixtures from the command line; returns the exit status: 0 all well, 1 problems, 2 misuse."""
    parser = argparse.ArgumentParser(
        prog="python -m torchlint.testing", description="Run the fixtures of rules."
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a fixture or a folder of them")
    parser.add_argument("--bless", action="store_true", help="write the fixed twins as the fixes make them")
    given = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What fixtures hold need not be in the encoding of the terminal.
        sys.stdout.reconfigure(errors="backslashreplace")
    chosen = cases(*given.paths)
    if not chosen:
        parser.error("no fixtures there")
    found: list[str] = []
    for case in chosen:
        try:
            if given.bless and bless(case):
                print(f"{case.fixed_path}: blessed")
        except FixtureError:
            # Reported with the other problems of the fixture.
            pass
        found += problems(case)
    for rule in {case.rule.code: case.rule for case in chosen if _has_rule(case)}.values():
        found += rule_problems(rule)
    # Nothing can be said of a folder of which only some fixtures are asked for.
    whole = cases(*(path for path in given.paths if path.is_dir()))
    for folder in sorted({case.path.parent for case in whole if _has_rule(case)}):
        found += folder_problems([case for case in whole if case.path.parent == folder])
    print("\n".join([*found, f"{len(chosen)} fixtures, {len(found)} problems"]))
    return 1 if found else 0


def _has_rule(case: Case) -> bool:
    try:
        return bool(case.rule)
    except FixtureError:
        return False


# --- what every fixture is held to -----------------------------------------------------------------------


def _problems(case: Case) -> Iterator[str]:
    if case.bad and not case.expectations:
        yield f"{case.path}: a bad fixture expects something"
    if not case.bad and case.expectations:
        yield f"{case.path}: a good fixture expects nothing"
    everything = check(case.source, case.settings)
    diagnostics = _own(case, everything)
    yield from (f"{_where(item)}: {item.message}" for item in everything if item.code == SYNTAX_ERROR)
    yield from _against_expectations(case.path, case, case.expectations, diagnostics)
    scope = Scope(impact=case.least)
    fixed = fix(case.source, case.settings, scope)
    yield from _against_twin(case, fixed)
    yield from _broken_invariants(case.source, case.settings, everything, fixed, scope)
    yield from _after_each_fix(case, diagnostics)
    yield from _after_following(case, fixed)


def _broken_invariants(
    source: Source,
    settings: LintSettings,
    diagnostics: Sequence[Diagnostic],
    fixed: Fixed,
    scope: Scope | None = None,
) -> Iterator[str]:
    yield from (f"{_where(item)}: {item.message}" for item in diagnostics if item.code == CRASH)
    unscreened = check(source, settings, screen=False)
    # What only LibCST cannot read is not held against a file in which no rule would fire.
    unread = any(item.code == SYNTAX_ERROR for item in unscreened) and _compiles(source.text)
    if unscreened != diagnostics and not unread:
        yield f"{source.path}: the findings change when every rule sees the file"
    for diagnostic in diagnostics:
        # No rule words what the interpreter says of a text that is no program.
        if diagnostic.code not in (CRASH, SYNTAX_ERROR):
            yield from (f"{_where(diagnostic)}: {text}" for text in _message_problems(diagnostic))
            yield from (f"{_where(diagnostic)}: {text}" for text in _fix_problems(source, diagnostic))
    yield from _after_fixing(source, settings, fixed, scope)
    yield from _with_other_bytes(source, settings, diagnostics, fixed, scope)


def _own(case: Case, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [each for each in diagnostics if each.code == case.rule.code and each.impact >= case.least]


def _against_expectations(
    path: Path, case: Case, expectations: Sequence[Expectation], diagnostics: Sequence[Diagnostic]
) -> Iterator[str]:
    left = list(diagnostics)
    # What says most is matched first, lest a vague expectation takes what an exact one needs.
    wanted = [item for item in expectations if item.code == case.rule.code]
    for expectation in sorted(wanted, key=lambda item: (item.fix is None, item.severity is None)):
        match = next((item for item in left if expectation.admits(item)), None)
        if match is None:
            yield f"{path}:{expectation.row}: expected {expectation}, not found"
        else:
            left.remove(match)
    for item in left:
        severity = "" if item.severity is case.rule.severity else f"[{item.severity.value}]"
        yield f"{_where(item)}: found {item.code}{severity} fix={_grade(item)}: {item.message}"


def _message_problems(diagnostic: Diagnostic) -> Iterator[str]:
    texts = [diagnostic.message, *(remark for _, remark in diagnostic.related)]
    if diagnostic.help is None:
        yield f"it does not say which edit satisfies the rule: {diagnostic.message!r}"
    else:
        texts += [diagnostic.help, *([diagnostic.fix.risk] if diagnostic.fix and diagnostic.fix.risk else [])]
        if not diagnostic.help[:1].isupper():
            yield f"the help does not begin with a capital: {diagnostic.help!r}"
    for text in texts:
        if not text or text != text.strip() or "\n" in text or text.endswith((".", "!", ":")):
            yield f"not one sentence without a full stop: {text!r}"


def _fix_problems(source: Source, diagnostic: Diagnostic) -> Iterator[str]:
    offered = diagnostic.fix
    if offered is None:
        return
    rule = registry.catalogue()[diagnostic.code]
    declared = Applicability[rule.fix.upper()] if rule.fix != "none" else Applicability.DISPLAY
    if offered.applicability > declared:
        yield f"the fix is {offered.applicability.label}, the rule declares {rule.fix!r}"
    if (offered.applicability is Applicability.UNSAFE) != bool(offered.risk):
        yield f"an unsafe fix has a reason, and no other fix: {offered.message!r}, {offered.risk!r}"
    if offered.risk and (offered.risk[:1].isupper() or len(offered.risk) > _LONGEST_RISK):
        yield f"not a few words in lower case: {offered.risk!r}"
    text = source.text
    try:
        changed = apply(text, offered.edits)
    except ValueError as error:
        yield f"the edits overlap: {error}"
        return
    if changed == text:
        yield "the fix changes nothing"
    if not _keeps_the_rest(text, changed, offered.edits):
        yield "the fix changes text outside of its edits"
    if not _keeps_gaps(text, changed, offered.edits):
        yield f"the fix leaves more blank lines than there were: {offered.message!r}"
    if _compiles(text) and not _compiles(changed):
        yield f"the fix breaks the program: {offered.message!r}"


_LONGEST_RISK = 100


def _keeps_the_rest(before: str, after: str, edits: Sequence[Edit]) -> bool:
    """Return whether the text between edits is found unchanged, in order, between their contents."""
    at_before = at_after = 0
    for edit in edits:
        kept = before[at_before : edit.span.start]
        if after[at_after : at_after + len(kept)] != kept:
            return False
        at_before, at_after = edit.span.end, at_after + len(kept) + len(edit.content)
    return after[at_after:] == before[at_before:]


def _keeps_gaps(before: str, after: str, edits: Sequence[Edit]) -> bool:
    """Return whether no more blank lines stand together where an edit was made than did before,
    or than one.
    """
    moved = 0
    places: list[list[int]] = []  # before and after; one for edits with nothing but white space between them
    for edit in sorted(edits):
        start, end = edit.span.start, edit.span.end
        if not places or before[places[-1][1] : start].strip():
            places.append([start, end, start + moved, 0])
        moved += len(edit.content) - (end - start)
        places[-1][1], places[-1][3] = end, end + moved
    return all(
        _gap(after, new_start, new_end) <= max(1, _gap(before, start, end))
        for start, end, new_start, new_end in places
    )


def _gap(text: str, start: int, end: int) -> int:
    """Return how many blank lines stand together, at most, between two places and around them."""
    while start and text[start - 1].isspace():
        start -= 1
    while end < len(text) and text[end].isspace():
        end += 1
    return max((len(NEWLINE.findall(run)) - 1 for run in re.findall(r"\s+", text[start:end])), default=0)


def _against_twin(case: Case, fixed: Fixed) -> Iterator[str]:
    twin = case.fixed_path
    if twin.exists():
        wanted = reading.read(twin)
        if fixed.text != wanted.text:
            yield f"{twin}: the fixes make something else:\n{unified_diff(wanted, fixed.text)}".rstrip()
    elif fixed.text != case.source.text:
        made = unified_diff(case.source, fixed.text)
        yield f"{case.path}: it is fixed, but has no {twin.name}:\n{made}".rstrip()


def _after_fixing(source: Source, settings: LintSettings, fixed: Fixed, scope: Scope | None) -> Iterator[str]:
    for item in fixed.diagnostics:
        if item.code == CRASH:
            yield f"{source.path}: {item.message}"
    if _compiles(source.text) and not _compiles(fixed.text):
        yield f"{source.path}: the fixed text is no program"
    again = fix(source.with_text(fixed.text), settings, scope)
    if again.text != fixed.text or again.applied:
        yield f"{source.path}: a second pass changes something again"


def _with_other_bytes(
    source: Source,
    settings: LintSettings,
    diagnostics: Sequence[Diagnostic],
    fixed: Fixed,
    scope: Scope | None,
) -> Iterator[str]:
    """Yield the same program with CR LF and a byte order mark: same findings,
    and all bytes kept by the fix.
    """
    if source.encoding != "utf-8":
        # The byte order mark would contradict the cookie.
        return
    data = b"\xef\xbb\xbf" + _crlf(source.text).encode("utf-8")
    other = reading.from_bytes(data, source.path)
    if other.encode(other.text) != data:
        yield f"{source.path}: CR LF or the byte order mark is lost"
    seen = [_place_and_message(item) for item in check(other, settings)]
    if seen != [_place_and_message(item) for item in diagnostics]:
        yield f"{source.path}: the findings change with CR LF"
    after = fix(other, settings, scope)
    if after.text != _crlf(fixed.text):
        yield f"{source.path}: the fix changes with CR LF:\n{after.text!r}"
    if Counter(after.applied) != Counter(fixed.applied):
        yield f"{source.path}: other fixes are made with CR LF"


def _after_each_fix(case: Case, diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    """Check that each fix ends its own finding, whatever becomes of the others.

    Of many fixes those are tried together that lie far from each other, so that no file is checked more than
    a few times.
    """
    fixable = [item for item in diagnostics if item.fix is not None and item.fix.edits]
    for first in range(min(_TRIALS, len(fixable))):
        tried = choose(fixable[first::_TRIALS], case.source.text)
        edits = [edit for item in tried if item.fix is not None for edit in item.fix.edits]
        try:
            after = case.source.with_text(apply(case.source.text, edits))
        except ValueError:
            # Said of the fix already.
            continue
        left = _own(case, check(after, case.settings))
        if len(left) > len(diagnostics) - len(tried):
            done = ", ".join(f"{item.start.row}: {item.help!r}" for item in tried)
            yield f"{case.path}: {len(left)} of {len(diagnostics)} findings are left after {done}"


def _after_following(case: Case, fixed: Fixed) -> Iterator[str]:
    """Yield what is left after all fixes goes away in the twin where the helps are followed."""
    start = case.source.with_text(fixed.text)
    left = _to_follow(case, fixed.diagnostics, _expectations(start))
    path = case.followed_path
    if not left or not path.exists():
        if left:
            yield f"{case.path}: it has findings without a fix, but no {path.name}"
        if path.exists():
            yield f"{path}: nothing is left to follow"
        return
    followed = reading.read(path)
    if not _compiles(followed.text):
        yield f"{path}: it is no program"
    found, expectations = check(followed, case.settings), _expectations(followed)
    yield from _against_expectations(path, case, expectations, _own(case, found))
    for item in _to_follow(case, found, expectations):
        yield f"{path}:{item.start.row}: it is still found: {item.message}"
    for told in dict.fromkeys(item.help for item in left if item.help):
        if not _done(told, start.text, followed.text):
            yield f"{path}: this is not done to the letter: {told!r}"


def _to_follow(
    case: Case, diagnostics: Sequence[Diagnostic], expectations: Sequence[Expectation]
) -> list[Diagnostic]:
    """Return the findings to be dealt with by hand: those without a fix,
    unless what ends them lies outside.
    """
    outside = [item for item in expectations if item.follow]
    return [
        item
        for item in _own(case, diagnostics)
        if (item.fix is None or item.fix.applicability is Applicability.DISPLAY)
        and not any(known.admits(item) for known in outside)
    ]


def _done(told: str, before: str, after: str) -> bool:
    """Return whether ``after`` shows that the help was followed, as far as the code in it tells."""
    named = re.findall(r"`([^`]+)`", told)
    removed = re.match(r"Remove `([^`]+)`", told)
    if removed is not None and _count(removed[1], after) < _count(removed[1], before):
        return True
    new = [code for code in named if not _count(code, before)]
    if new:
        return any(_count(code, after) for code in new)
    return removed is None and after != before


def _count(code: str, text: str) -> int:
    """Return how often the code of a help stands in a text, however laid out; ``…`` stands for any code."""
    tokens = re.findall(r"\w+|…|\S", code)
    pattern = r"\s*".join(".*?" if token == "…" else re.escape(token) for token in tokens)
    return len(re.findall(pattern, text, re.DOTALL))


def _place_and_message(diagnostic: Diagnostic) -> tuple[object, ...]:
    return (diagnostic.code, diagnostic.start, diagnostic.end, diagnostic.message, _grade(diagnostic))


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _grade(diagnostic: Diagnostic) -> str:
    return diagnostic.fix.applicability.label if diagnostic.fix is not None else "none"


def _where(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.path}:{diagnostic.start.row}"


def _compiles(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<fixture>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
