"""From text to diagnostics: the screen, the places, failing rules, suppressions and regrading."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from torchlint import registry
from torchlint.checker import check, describe
from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Severity, Span
from torchlint.effort import is_too_large
from torchlint.options import LintSettings
from torchlint.parsing import on_deep_stack
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.source import Source

PATH = Path("folder/a.py")
UseRules = Callable[..., LintSettings]


@rule("XX101", "call-of-bad", severity=WARNING, fix="safe", on=cst.Call, mentions=("bad",))
def call_of_bad(call: cst.Call, module: Module) -> Iterator[Finding]:
    """Finds calls of ``bad``; the fix calls ``good``."""
    if isinstance(call.func, cst.Name) and call.func.value == "bad":
        edits = (Edit(module.tree.span(call.func), "good"),)
        yield Finding(call, "a bad call", Fix("Call `good`", edits, Applicability.SAFE))


@rule("XX102", "bad-statement", severity=WARNING, fix="none", on=(cst.For, cst.FunctionDef, cst.Pass))
def bad_statement(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """Finds statements."""
    if isinstance(node, cst.FunctionDef):
        yield Finding(node.name, "a function", severity=NOTE, related=((node.params, "its parameters"),))
    else:
        yield Finding(node, "a statement")


@rule("XX103", "failing-rule", severity=WARNING, fix="none", on=cst.Name, mentions=("bad|worse",))
def failing_rule(node: cst.Name, module: Module) -> Iterator[Finding]:
    """Finds one name, and fails at the next."""
    if node.value == "worse":
        raise LookupError("no such\nthing.")
    yield Finding(node, "a name")


def found(text: str, settings: LintSettings, **options: Any) -> list[str]:
    return [
        f"{item.start.row}:{item.start.column} {item.code} {item.message}"
        for item in check(Source(PATH, text), settings, **options)
    ]


def test_findings_are_placed_and_sorted(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad, bad_statement)
    text = "def f(a,\n      b): pass\n\x0cfor x in bad(1):\r\n    y = (bad(\r\n      2), bad(3))"
    diagnostics = check(Source(PATH, text), settings)
    assert [(item.start, item.end, item.code, item.noqa_row) for item in diagnostics] == [
        (Position(1, 5), Position(1, 6), "XX102", 2),
        (Position(2, 11), Position(2, 15), "XX102", 2),
        (Position(3, 2), Position(5, 18), "XX102", 3),
        (Position(3, 11), Position(3, 17), "XX101", 3),
        (Position(4, 10), Position(5, 9), "XX101", 5),
        (Position(5, 11), Position(5, 17), "XX101", 5),
    ]
    first = diagnostics[0]
    assert (first.name, first.severity, first.path) == ("bad-statement", Severity.NOTE, PATH)
    assert first.related == ((Position(1, 7), "its parameters"),)
    assert all(
        text[item.span.start : item.span.end].startswith("bad(")
        for item in diagnostics
        if item.code == "XX101"
    )


@pytest.mark.parametrize(
    ("text", "noqa_row"),
    [
        ("@deco(\n  bad(),\n)\ndef f(): ...\n", 3),
        ("@deco\n@deco(bad())\n@deco\nclass A: ...\n", 2),
        ("if x:\n    ...\nelif (\n  bad()\n):\n    ...\n", 5),
        ("try:\n    ...\nexcept (\n  bad(),\n  a,\n):\n    ...\n", 6),
        ("try:\n    ...\nexcept* bad():\n    ...\n", 3),
        ("with (\n  a,\n  bad() as b,\n):\n    ...\n", 4),
        ("match bad():\n    case 1 if bad(\n    ): ...\n", 3),
        ("while x: y = bad(\n)\n", 2),
        ("try: ...\nfinally: bad()\n", 2),
        ("for a in b: ...\nelse: bad()\n", 2),
        ("x = 1; y = bad(); z = '''\n'''\n", 2),
        ("x = bad() + \\\n  1\n", 2),
        ("def f(\n  a=bad(),\n): ...\n", 3),
        ("class A(bad()):\n    ...\n", 1),
        ("x = f'''\n{bad()}\n'''\n", 3),
        ("lambda: (\n  bad())\n", 2),
    ],
)
def test_the_row_for_a_noqa(use_rules: UseRules, text: str, noqa_row: int) -> None:
    settings = use_rules(call_of_bad)
    assert {item.noqa_row for item in check(Source(PATH, text), settings)} >= {noqa_row}
    lines = text.split("\n")
    lines[noqa_row - 1] += "  # noqa: XX101"
    assert len(found("\n".join(lines), settings)) < len(found(text, settings))


def test_the_screen_keeps_rules_from_files_that_do_not_mention_them(use_rules: UseRules) -> None:
    seen: list[str] = []

    @rule("XX104", "nosy", severity=WARNING, fix="none", on=cst.Module, mentions=("torch", "a|b"))
    def nosy(node: cst.Module, module: Module) -> Iterator[Finding]:
        """Sees files."""
        seen.append(module.tree.text)
        yield from ()

    settings = use_rules(nosy)
    texts = ["torch.a", "torch", "b", "torch\nb"]
    for text in texts:
        found(text, settings)
    assert seen == ["torch.a", "torch\nb"]
    seen.clear()
    for text in texts:
        found(text, settings, screen=False)
    # Only what a rule is about is no matter of time.
    assert seen == [text for text in texts if "torch" in text]


def test_a_screened_file_does_not_load_libcst() -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom torchlint import registry\n"
        "from torchlint.checker import check\nfrom torchlint.options import LintSettings\n"
        "from torchlint.source import Source\n"
        "settings = LintSettings(rules=tuple(registry.catalogue()))\n"
        "texts = ['', 'x = 1\\n', 'import os\\nprint(os)  # noqa: E501\\n', 'x = 1  # noqa: TL202\\n']\n"
        "print([len(check(Source(Path('a.py'), text), settings)) for text in texts], 'libcst' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[0, 0, 0, 1] False"


# --- rules that fail ---------------------------------------------------------------------------------------


def test_a_failing_rule_is_reported_and_the_others_go_on(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad, failing_rule)
    assert found("bad()\nworse\nbad()\n", settings) == [
        "1:1 XX103 a name",
        "1:1 XX101 a bad call",
        "2:1 TL000 rule XX103 (failing-rule) failed in a.py with LookupError: no such thing",
        "3:1 XX101 a bad call",
    ]


def test_a_failing_rule_makes_no_suppression_unused(use_rules: UseRules) -> None:
    settings = use_rules(failing_rule)
    assert [line.split()[1] for line in found("worse\nbad  # noqa: XX103\n", settings)] == ["TL000"]
    text = "good\nbad  # noqa: XX103\n1  # noqa: XX103\n"
    assert [line.split()[1] for line in found(text, settings)] == ["XX103", "TL002"]


@pytest.mark.parametrize("error", [RecursionError(), AssertionError(), KeyError("x"), MemoryError()])
def test_whatever_a_rule_raises(use_rules: UseRules, error: Exception) -> None:
    @rule("XX104", "raising", severity=WARNING, fix="none", on=cst.Module)
    def raising(node: cst.Module, module: Module) -> Iterator[Finding]:
        """Raises."""
        if node.body:
            raise error
        yield Finding(node, "a module")

    (line,) = found("x = 1\n", use_rules(raising))
    assert line.startswith(f"1:1 TL000 rule XX104 (raising) failed in a.py with {type(error).__name__}")


def test_a_finding_at_a_node_of_no_file(use_rules: UseRules) -> None:
    @rule("XX104", "lost", severity=WARNING, fix="none", on=cst.Pass)
    def lost(node: cst.Pass, module: Module) -> Iterator[Finding]:
        """Reports a node that it made itself."""
        yield Finding(cst.Name("made"), "a name")

    (line,) = found("pass\n", use_rules(lost))
    assert line.startswith("1:1 TL000 rule XX104 (lost) failed in a.py with KeyError")


def test_garbage_collection_is_as_before(use_rules: UseRules) -> None:
    settings = use_rules(failing_rule)
    for text in ("bad\n", "worse\n", "bad = (\n"):
        assert gc.isenabled()
        found(text, settings)
        assert gc.isenabled()
    gc.disable()
    try:
        found("bad\n", settings)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["actor_critic", "dcgan", "gpt", "image_classifier"])
def test_a_checked_file_is_gone_without_a_search_for_garbage(name: str) -> None:
    """Nodes that hold one another would all wait for the collector, which takes its time for so many."""
    program = Path(__file__).parents[1] / "fixtures" / "programs" / f"{name}.py"
    source = Source(program, program.read_text(encoding="utf-8"))
    settings = LintSettings(rules=tuple(registry.catalogue()))
    gc.collect()
    before = _functions_held()
    gc.disable()
    try:
        found = check(source, settings)
        left = _functions_held() - before
    finally:
        gc.enable()
    assert found
    assert left == 0


def _functions_held() -> int:
    return sum(isinstance(each, (cst.ClassDef, cst.FunctionDef)) for each in gc.get_objects())


# --- bad texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mention", ["", "bad\n"])
def test_syntax_errors_are_reported_whether_a_rule_wants_the_file_or_not(
    use_rules: UseRules, mention: str
) -> None:
    settings = use_rules(call_of_bad)
    text = f"{mention}x = 1\nx = = 2  # noqa\n# torchlint: file-ignore[TL001]\n"
    row = text.split("\n").index("x = = 2  # noqa") + 1
    assert found(text, settings) == [f"{row}:5 TL001 invalid syntax"]
    assert found(text, replace(settings, rules=("XX101",))) == [f"{row}:5 TL001 invalid syntax"]
    (diagnostic,) = check(Source(PATH, text), settings)
    assert (diagnostic.name, diagnostic.severity) == ("syntax-error", Severity.ERROR)
    assert text[diagnostic.span.start : diagnostic.span.end] == "="


def test_a_literal_that_only_libcst_can_read(use_rules: UseRules) -> None:
    @rule("XX104", "evaluating", severity=WARNING, fix="none", on=cst.SimpleString)
    def evaluating(node: cst.SimpleString, module: Module) -> Iterator[Finding]:
        """Evaluates strings."""
        yield Finding(node, f"a string of {len(node.evaluated_value)}")

    settings = use_rules(evaluating)
    assert found("x = 'abc'\n", settings) == ["1:5 XX104 a string of 3"]
    (line,) = found("x = 'abc'\ny = '\\u20'\n", settings)
    place, _, rest = line.partition(" ")
    # The column is told differently by different interpreters.
    assert place.startswith("2:")
    assert rest.startswith("TL001 (unicode error) 'unicodeescape' codec can't decode bytes")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", []),
        ("\n", []),
        ("bad()", ["1:1"]),
        ("\x0c", []),
        ("\x0cbad()\n", ["1:2"]),
        ("if x:\n    y\n\x0c\n    bad()\n", ["4:5"]),
        ("def f():\n    '''\x0c'''\n\x0c    bad()\n\x0cbad()\n", ["3:6", "4:2"]),
        ("def f():\n\x0c    bad()\n    bad()\r\n\x0c    # c\n    bad()\n", ["2:6", "3:5", "5:5"]),
        ("if x:\n\x0c    bad()\r\x0c\r\r", ["2:6"]),
        ("a\r\nbad()\r\n", ["2:1"]),
        ("a\nb\r\nbad()\rbad()\n", ["3:1", "4:1"]),
        ("bad()\r", ["1:1"]),
        ("x = '\u2028'; bad()\n", ["1:10"]),
        ("x = '😀ü'; bad()\n", ["1:11"]),
        ("\tbad()\n".replace("\t", ""), ["1:1"]),
        ("if x:\n\tbad()\n        # c\n", ["2:2"]),
        ("x = (  # c\n\\\nbad()\n)\n", ["3:1"]),
    ],
)
def test_odd_layout(use_rules: UseRules, text: str, places: list[str]) -> None:
    settings = use_rules(call_of_bad)
    diagnostics = check(Source(PATH, text), settings)
    assert [f"{item.start.row}:{item.start.column}" for item in diagnostics] == places
    assert all(text[item.span.start : item.span.end] == "bad()" for item in diagnostics)


class Recursive:
    """Recurses as LibCST's code generator does: by calls with ``**``, which some interpreters limit."""

    def call(self, depth: int, **rest: int) -> int:
        return self.call(depth - 1, **rest) + 1 if depth else 0


@pytest.fixture(scope="module")
def recurses_deeply() -> bool:
    """Whether this interpreter lets three thousand such calls happen: Python 3.12 began with less."""
    try:
        return on_deep_stack(Recursive().call, 3_100) == 3_100
    except RecursionError:
        return False


@pytest.mark.parametrize(("terms", "tail"), [(400, " + a"), (400, ".b"), (400, "()"), (3_000, " + a")])
def test_three_thousand_terms(use_rules: UseRules, recurses_deeply: bool, terms: int, tail: str) -> None:
    settings = use_rules(call_of_bad)
    text = "x = bad()" + tail * terms + "\n"
    reachable = terms < 1_000 or recurses_deeply
    expected = "1:5 XX101 a bad call" if reachable else "1:1 TL001 the program is nested too deeply"
    assert found(text, settings) == [expected]


def test_a_failure_is_described_without_the_tree_below_a_node() -> None:
    node = cst.parse_expression("[" * 50 + "]" * 50)
    assert describe(KeyError(node)) == "KeyError: <List>"
    assert describe(ValueError("a\nb.")) == "ValueError: a b"
    assert describe(RecursionError()) == "RecursionError"
    assert len(describe(ValueError("x " * 1_000))) <= 200


def test_deep_nesting(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad)
    indented = "".join(" " * depth + "if a:\n" for depth in range(90)) + " " * 90 + "bad()\n"
    assert found(indented, settings) == ["91:91 XX101 a bad call"]
    calls = "x = " + "bad(" * 150 + ")" * 150 + "\n"
    assert len(found(calls, settings)) == 150
    assert found("bad\nx = " + "(" * 40_000 + ")" * 40_000 + "\n", settings) == [
        "1:1 TL001 the program is nested too deeply"
    ]


# --- suppressions ------------------------------------------------------------------------------------------


def test_suppressed_findings_are_gone(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad, bad_statement)
    text = (
        "bad()  # noqa\nbad()  # noqa: XX101\nbad()  # torchlint: ignore[call-of-bad]\npass  # noqa: xx102\n"
    )
    assert found(text, settings) == []
    assert len(found(text, replace(settings, ignore_noqa=True))) == 4


def test_unused_and_invalid_suppressions(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad)
    text = "good()  # noqa: XX101\ngood()  # torchlint: ignore[XX999]\n"
    both = [
        "1:17 TL002 unused suppression of `XX101`",
        "2:29 TL003 unknown rule `XX999`",
    ]
    assert [line.split(";")[0] for line in found(text, settings)] == both
    assert found(text, replace(settings, rules=("TL002", "XX101"))) == both[:1]
    assert [line.split(";")[0] for line in found(text, replace(settings, rules=("TL003",)))] == both[1:]
    assert found(text, replace(settings, rules=("TL002",))) == []
    assert found(text, replace(settings, ignore_noqa=True)) == []


def test_remarks_about_suppressions_can_be_suppressed(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad)
    assert found("good()  # noqa: XX101, TL002\n", settings) == []
    assert found("# torchlint: file-ignore[unused-suppression]\ngood()  # noqa: XX101\n", settings) == []
    assert found("good()  # torchlint: ignore[XX999, TL003]\n", settings) == []


# --- fixes -------------------------------------------------------------------------------------------------


def grade(settings: LintSettings, text: str = "bad()\n") -> Applicability | None:
    (diagnostic,) = check(Source(PATH, text), settings)
    return diagnostic.fix.applicability if diagnostic.fix else None


def test_fixes_are_regraded(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad)
    code = frozenset({"XX101"})
    unsafe = replace(settings, extend_unsafe_fixes=code)
    assert grade(settings) is Applicability.SAFE
    assert grade(unsafe) is Applicability.UNSAFE
    assert grade(replace(unsafe, extend_safe_fixes=code)) is Applicability.UNSAFE
    assert grade(replace(settings, extend_safe_fixes=code)) is Applicability.SAFE
    assert grade(replace(settings, fixable=frozenset())) is None


def test_a_finding_says_which_edit_ends_it(use_rules: UseRules) -> None:
    @rule("XX104", "call-of-worse", severity=WARNING, fix="none", on=cst.Call, remedy="Call `better`")
    def call_of_worse(call: cst.Call, module: Module) -> Iterator[Finding]:
        """Finds calls of ``worse``, and tells those without arguments something else."""
        if isinstance(call.func, cst.Name) and call.func.value == "worse":
            yield Finding(call, "a worse call", remedy=None if call.args else "Remove the call")

    settings = use_rules(call_of_bad, call_of_worse)
    said = check(Source(PATH, "bad()\nworse(1)\nworse()\n"), settings)
    assert [item.help for item in said] == ["Call `good`", "Call `better`", "Remove the call"]
    # What may not be fixed is told all the same.
    (told,) = check(Source(PATH, "bad()\n"), replace(settings, fixable=frozenset()))
    assert (told.fix, told.help) == (None, "Call `good`")


def test_code_of_several_lines_is_told_in_one(use_rules: UseRules) -> None:
    @rule("XX104", "call-quoted", severity=WARNING, fix="safe", on=cst.Call)
    def call_quoted(call: cst.Call, module: Module) -> Iterator[Finding]:
        """Finds calls and quotes them; the fix is offered where there is an argument."""
        code = module.source(call)
        edits = (Edit(module.tree.span(call), "good"),)
        fix = Fix(f"Replace `{code}`", edits, Applicability.SAFE) if call.args else None
        yield Finding(call, f"`{code}` is a call", fix, remedy=f"Remove `{code}`")

    text = "bad(1,\r\n    2)\nbad(\n)\n"
    said = check(Source(PATH, text), use_rules(call_quoted))
    assert [item.message for item in said] == ["`bad(1, 2)` is a call", "`bad( )` is a call"]
    assert [item.help for item in said] == ["Replace `bad(1, 2)`", "Remove `bad( )`"]


def test_an_unsafe_fix_can_be_graded_safe(use_rules: UseRules) -> None:
    @rule("XX104", "unsafe", severity=WARNING, fix="unsafe", on=cst.Pass)
    def unsafe(node: cst.Pass, module: Module) -> Iterator[Finding]:
        """Finds pass."""
        yield Finding(node, "a pass", Fix("Go", (Edit(module.tree.span(node), "..."),), Applicability.UNSAFE))

    settings = use_rules(unsafe)
    assert grade(settings, "pass\n") is Applicability.UNSAFE
    assert grade(replace(settings, extend_safe_fixes=frozenset({"XX104"})), "pass\n") is Applicability.SAFE


def test_the_same_finding_is_reported_once(use_rules: UseRules) -> None:
    @rule("XX104", "stutter", severity=WARNING, fix="none", on=cst.Pass)
    def stutter(node: cst.Pass, module: Module) -> Iterator[Finding]:
        """Says everything twice."""
        yield Finding(node, "a pass")
        yield Finding(node, "a pass")

    assert found("pass\n", use_rules(stutter)) == ["1:1 XX104 a pass"]


def test_unknown_codes_in_the_settings_are_no_matter(use_rules: UseRules) -> None:
    settings = use_rules(call_of_bad)
    assert found("bad()\n", replace(settings, rules=("NO001", "XX101"))) == ["1:1 XX101 a bad call"]


def test_a_diagnostic_for_a_finding_is_plain_data(use_rules: UseRules) -> None:
    (diagnostic,) = check(Source(PATH, "bad()\n"), use_rules(call_of_bad))
    assert diagnostic == Diagnostic(
        code="XX101",
        name="call-of-bad",
        message="a bad call",
        severity=Severity.WARNING,
        path=PATH,
        span=Span(0, 5),
        start=Position(1, 1),
        end=Position(1, 6),
        fix=Fix("Call `good`", (Edit(Span(0, 3), "good"),), Applicability.SAFE),
        noqa_row=1,
    )


@pytest.mark.parametrize("options", [{}, {"screen": False}, {"outline": False}], ids=str)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize(
    ("end", "refused"),
    [("\\\n", True), ("\n  \\\n", True), ("\\", True), ("\\\n\n", False), ("  # \\\n", False)],
    ids=repr,
)
def test_a_backslash_at_the_end_is_judged_alike_with_every_newline(
    end: str, refused: bool, newline: str, options: dict[str, bool], use_rules: UseRules
) -> None:
    """The interpreter runs no such file, though it compiles such a text if its newlines are CR LF."""
    settings = use_rules(call_of_bad)
    for start in ("x = 1", "bad()"):
        told = found((start + end).replace("\n", newline), settings, **options)
        assert [item.split()[1] for item in told] == (
            ["TL001"] if refused else ["XX101"] if start == "bad()" else []
        )


# --- rules that would take too long ------------------------------------------------------------------------


@rule("XX106", "endless-rule", severity=WARNING, fix="none", on=cst.Name, mentions=("bad|worse",))
def endless_rule(node: cst.Name, module: Module) -> Iterator[Finding]:
    """Finds one name, and never comes to an end at another."""
    yield Finding(node, "a name")
    while node.value == "worse":
        module.value(node)


def test_a_rule_that_takes_too_many_steps_is_given_up_with_a_note(
    use_rules: UseRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchlint.effort._AT_LEAST", 10_000)
    settings = use_rules(endless_rule, call_of_bad)
    text = "bad()\nworse\nbad()  # noqa: XX106\n"
    for options in ({}, {"outline": False}, {"screen": False}):
        assert found(text, settings, **options) == [
            "1:1 TL004 XX106 was not checked: this file takes too many steps to analyze",
            "1:1 XX101 a bad call",
            "3:1 XX101 a bad call",
        ]
    (note, *_) = check(Source(PATH, text), settings)
    assert (note.severity, note.name) == (Severity.NOTE, "unfinished-analysis")
    rules = tuple(code for code in settings.rules if code != "TL004")
    assert [line.split()[1] for line in found(text, replace(settings, rules=rules))] == ["XX101", "XX101"]
    assert [line.split()[1] for line in found("bad()\n", settings)] == ["XX106", "XX101"]


def test_one_rule_leaves_steps_for_the_others(use_rules: UseRules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.effort._AT_LEAST", 10_000)
    many = []
    for number in range(20):
        code = f"XX2{number:02}"
        declared = rule(code, f"endless-{number}", severity=WARNING, fix="none", on=cst.Name)
        many.append(declared(endless_rule.check))
    (note, *others) = found("worse\n", use_rules(*many, call_of_bad))
    assert note.startswith(
        "1:1 TL004 20 rules, among them XX200, XX201, XX202, XX203, XX204, XX205, were not"
    )
    assert others == []


@pytest.mark.parametrize(
    ("part", "counted"),
    [
        ("x = y\n", 2),
        ("x;", 1),
        ('"a b c", ', 1),
        ("[[], ()]; ", 3),
        ("# one two\n", 0),
        ('"""one "two" \\""" three"""\n', 1),
        ('f"{a}{b}";', 4),
        ("...;", 1),
    ],
)
def test_a_program_is_measured_by_its_words(part: str, counted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.effort._MOST_WORDS", 10 * counted)
    assert is_too_large(part * 11) is (counted > 0)
    assert not is_too_large(part * 10)


def test_a_file_that_is_too_large_is_not_parsed(use_rules: UseRules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlint.effort._MOST_WORDS", 10)
    settings = use_rules(call_of_bad)
    (line,) = found("bad()\n" * 20, settings)
    assert line == "1:1 TL004 XX101 was not checked: this file is too large to analyze"
    assert found("bad()\n", settings) == ["1:1 XX101 a bad call"]
