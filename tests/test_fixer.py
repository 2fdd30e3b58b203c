"""Fixes are applied to a fixpoint, wait for each other, and never break a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import libcst as cst
import pytest

from torchlint.diagnostics import Applicability, Diagnostic, Edit, Fix, Position, Severity, Span
from torchlint.fixer import MAX_ROUNDS, Fixed, applicable, apply, choose, fix
from torchlint.fixes import remove_statement
from torchlint.options import LintSettings
from torchlint.origins import Moves
from torchlint.rule import WARNING, Finding, FixKind, Rule, rule
from torchlint.semantics.module import Module
from torchlint.source import Source

PATH = Path("a.py")
UseRules = Callable[..., LintSettings]
SAFE, UNSAFE, DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


def diagnostic(*edits: tuple[int, int, str], grade: Applicability = SAFE, code: str = "XX101") -> Diagnostic:
    place = Position(1, 1)
    offered = Fix("Go", tuple(Edit(Span(start, end), text) for start, end, text in edits), grade)
    return Diagnostic(code, "name", "message", Severity.WARNING, PATH, Span(0, 0), place, place, offered)


def calling(code: str, old: str, new: str, grade: Applicability = SAFE) -> Rule:
    """A rule that finds names ``old`` and writes ``new``."""
    declared: FixKind = "safe" if grade is SAFE else "unsafe"

    @rule(code, code.lower(), severity=WARNING, fix=declared, on=cst.Name)
    def rename(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Finds a name."""
        if node.value == old:
            yield Finding(node, "a name", Fix("Go", (Edit(module.tree.span(node), new),), grade))

    return rename


def reading(old: str, new: str, grade: Applicability = SAFE) -> Rule:
    """A rule that finds where the name ``old`` is read, and writes ``new``."""
    declared: FixKind = "safe" if grade is SAFE else "unsafe"

    @rule("XX101", "xx101", severity=WARNING, fix=declared, on=cst.Name)
    def rename(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Finds a name."""
        if node.value == old and module.names.is_read(node):
            yield Finding(node, "a name", Fix("Go", (Edit(module.tree.span(node), new),), grade))

    return rename


def fixed(text: str, settings: LintSettings) -> Fixed:
    return fix(Source(PATH, text), settings)


# --- edits -------------------------------------------------------------------------------------------------


def test_apply() -> None:
    edits = [Edit(Span(4, 5), "Y"), Edit(Span(0, 0), "<"), Edit(Span(6, 6), ">"), Edit(Span(2, 3), "")]
    assert apply("abcdef", [*edits, edits[0]]) == "<abdYf>"
    assert apply("", []) == ""


@pytest.mark.parametrize(
    "spans", [[(0, 2), (1, 3)], [(0, 3), (1, 2)], [(1, 1), (0, 2)], [(0, 9)], [(2, 1)], [(-1, 0)]]
)
def test_edits_that_cannot_be_made(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="cannot be made"):
        apply("abc", [Edit(Span(*span), "x") for span in spans])


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ([(0, 1, "x")], [(2, 3, "y")], True),
        ([(0, 2, "x")], [(1, 3, "y")], False),
        ([(0, 9, "x")], [(2, 3, "y")], False),
        ([(2, 3, "y")], [(0, 9, "x")], False),
        ([(0, 2, "x")], [(2, 3, "y")], False),
        ([(2, 2, "x")], [(2, 2, "y")], False),
        ([(2, 2, "x")], [(2, 4, "y")], False),
        ([(0, 2, "x")], [(2, 2, "y")], False),
        ([(2, 2, "x")], [(2, 2, "x")], True),
        ([(0, 0, "import"), (5, 6, "x")], [(0, 0, "import"), (8, 9, "y")], True),
        ([(0, 0, "import"), (5, 6, "x")], [(0, 0, "other"), (8, 9, "y")], False),
        ([(0, 1, "("), (8, 9, ")")], [(3, 4, "y")], True),
        ([(0, 1, "("), (8, 9, ")")], [(3, 4, "y"), (9, 10, "z")], False),
    ],
)
def test_which_fixes_go_together(
    first: list[tuple[int, int, str]], second: list[tuple[int, int, str]], together: bool
) -> None:
    both = [diagnostic(*first), diagnostic(*second, code="XX102")]
    for order in (both, both[::-1]):
        assert len(choose(order, "")) == (2 if together else 1)
    assert choose(both, "") == choose(both[::-1], "")


SHIFTED = "if a:\n    b()\n    c()\nd()\n"


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ((10, 11, "x"), True),
        ((10, 10, "x\n    "), False),
        ((18, 18, "x\r    "), False),
        ((22, 22, "x\n"), True),
        ((2, 2, "(\n)"), True),
    ],
)
@pytest.mark.parametrize("shift", [((6, 6, "    "), (14, 14, "    ")), ((6, 9, ""), (14, 17, ""))])
def test_lines_are_not_put_in_where_the_indentation_changes(
    shift: tuple[tuple[int, int, str], ...], other: tuple[int, int, str], together: bool
) -> None:
    both = [diagnostic(*shift), diagnostic(other, code="XX102")]
    assert len(choose(both, SHIFTED)) == (2 if together else 1)
    assert choose(both, SHIFTED) == choose(both[::-1], SHIFTED)


@pytest.mark.parametrize(
    ("grade", "unsafe", "expected"),
    [
        (SAFE, False, True),
        (SAFE, True, True),
        (UNSAFE, False, False),
        (UNSAFE, True, True),
        (DISPLAY, True, False),
    ],
)
def test_which_fixes_are_applicable(grade: Applicability, unsafe: bool, expected: bool) -> None:
    settings = LintSettings(fixable=frozenset({"XX101"}), unsafe_fixes=unsafe)
    offered = diagnostic((0, 1, "x"), grade=grade)
    assert applicable(offered, settings) is expected
    assert not applicable(offered, replace(settings, fixable=frozenset()))
    assert not applicable(replace(offered, fix=None), settings)
    assert not applicable(diagnostic(grade=grade), settings)


# --- rounds ------------------------------------------------------------------------------------------------


def test_fixes_are_applied_to_a_fixpoint(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b"), calling("XX102", "b", "c"))
    outcome = fixed("a, a\r\nb\r\n", settings)
    assert outcome.text == "c, c\r\nc\r\n"
    assert outcome.applied == Counter(XX101=2, XX102=3)
    assert outcome.diagnostics == []


def test_unsafe_fixes_need_to_be_asked_for(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b", UNSAFE), calling("XX102", "x", "y"))
    outcome = fixed("a, x\n", replace(settings, unsafe_fixes=False))
    assert (outcome.text, outcome.applied) == ("a, y\n", Counter(XX102=1))
    assert [item.code for item in outcome.diagnostics] == ["XX101"]
    graded = replace(settings, unsafe_fixes=False, extend_safe_fixes=frozenset({"XX101"}))
    assert fixed("a, x\n", graded).text == "b, y\n"
    degraded = replace(settings, unsafe_fixes=False, extend_unsafe_fixes=frozenset({"XX102"}))
    assert fixed("a, x\n", degraded).text == "a, x\n"
    assert fixed("a, x\n", replace(settings, fixable=frozenset({"XX102"}))).text == "a, y\n"


def test_nested_fixes_are_all_made(use_rules: UseRules) -> None:
    @rule("XX101", "nested", severity=WARNING, fix="safe", on=cst.Call)
    def nested(call: cst.Call, module: Module) -> Iterator[Finding]:
        """Rewrites a whole call, so that an inner one is inside of its edit."""
        if isinstance(call.func, cst.Name) and call.func.value == "old":
            code = f"new{module.source(call)[3:]}"
            edits = (Edit(module.tree.span(call), code),)
            yield Finding(call, "a call", Fix("Go", edits, SAFE))

    settings = use_rules(nested)
    outcome = fixed("old(old(1), old(old(2)))\n", settings)
    assert outcome.text == "new(new(1), new(new(2)))\n"
    assert outcome.applied == Counter(XX101=4)
    depth = MAX_ROUNDS - 1
    assert fixed("old(" * depth + ")" * depth + "\n", settings).text == "new(" * depth + ")" * depth + "\n"


def test_a_fix_that_breaks_the_program_is_not_applied(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b"), calling("XX102", "b", "(("), calling("XX103", "c", "d"))
    outcome = fixed("a, c\n", settings)
    assert outcome.text == "b, d\n"
    assert outcome.applied == Counter(XX101=1, XX103=1)
    assert [(item.code, item.message) for item in outcome.diagnostics] == [
        ("TL000", "the fixes of XX102 were not applied: the result is not valid Python"),
        ("XX102", "a name"),
    ]


def test_fixes_that_break_the_program_only_together(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", ""), calling("XX102", "b", ""), calling("XX103", "c", "d"))
    assert fixed("f(a) + [b]; c\n", settings).text == "f() + []; d\n"
    # A bare star needs a parameter behind it.
    outcome = fixed("c\ndef f(*a, b): ...\n", settings)
    assert outcome.text == "d\ndef f(*, b): ...\n"
    assert outcome.diagnostics[0].message == (
        "the fixes of XX102 were not applied: the result is not valid Python"
    )


def test_fixes_that_come_to_no_end(use_rules: UseRules) -> None:
    swapping = use_rules(calling("XX101", "a", "b"), calling("XX102", "b", "a"), calling("XX103", "c", "d"))
    outcome = fixed("a, c\n", swapping)
    assert outcome.text == "a, d\n" or outcome.text == "b, d\n"
    assert outcome.diagnostics[0].code == "TL000"
    assert "do not converge" in outcome.diagnostics[0].message

    growing = use_rules(calling("XX101", "a", "a, a"))
    outcome = fixed("a\n", growing)
    assert (outcome.text, outcome.applied) == ("a\n", Counter())
    assert outcome.diagnostics[0].message == "the fixes of XX101 do not converge, so none was applied"


def test_a_fix_that_changes_nothing(use_rules: UseRules) -> None:
    outcome = fixed("a\n", use_rules(calling("XX101", "a", "a")))
    assert (outcome.text, outcome.applied) == ("a\n", Counter())
    assert outcome.diagnostics[0].message == "the fixes of XX101 have no effect, so none was applied"


def test_a_fix_with_overlapping_edits(use_rules: UseRules) -> None:
    @rule("XX101", "overlapping", severity=WARNING, fix="safe", on=cst.Pass)
    def overlapping(node: cst.Pass, module: Module) -> Iterator[Finding]:
        """Offers edits that cannot be combined."""
        edits = (Edit(Span(0, 3), "a"), Edit(Span(1, 4), "b"))
        yield Finding(node, "a pass", Fix("Go", edits, SAFE))

    outcome = fixed("pass\n", use_rules(overlapping))
    assert outcome.text == "pass\n"
    assert outcome.diagnostics[0].message.startswith("the fixes of XX101 were not applied: an edit of")


def test_a_text_with_a_syntax_error_is_left_alone(use_rules: UseRules) -> None:
    outcome = fixed("a = (\n", use_rules(calling("XX101", "a", "b")))
    assert (outcome.text, [item.code for item in outcome.diagnostics]) == ("a = (\n", ["TL001"])


def test_what_no_edit_touches_stays(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b"))
    text = "# ü\r\n\x0ca  # a\n\ty = '''a\r\r\n'''\r".replace("\ty", "y") + "a ; \\\n  a\n\x0c\n\n# a"
    outcome = fixed(text, settings)
    assert outcome.text == "# ü\r\n\x0cb  # a\ny = '''a\r\r\n'''\rb ; \\\n  b\n\x0c\n\n# a"


def test_suppressed_findings_are_not_fixed(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b"))
    assert fixed("a  # noqa: XX101\na\n", settings).text == "a  # noqa: XX101\nb\n"


def test_unused_suppressions_are_removed_with_the_other_fixes(use_rules: UseRules) -> None:
    settings = use_rules(calling("XX101", "a", "b"), calling("XX102", "b", "c"))
    outcome = fixed(
        "# torchlint: disable[XX101]\nb  # noqa: XX101, E501\n# torchlint: enable[XX101]\n", settings
    )
    assert outcome.text == "c  # noqa: E501\n"
    assert outcome.applied == Counter(TL002=3, XX102=1)
    kept = fixed("b  # noqa: XX101\n", replace(settings, fixable=frozenset()))
    assert kept.text == "b  # noqa: XX101\n"


# --- imports -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import a, b\n\na\na\nb\n", "from torch import b\n\nx\nx\nb\n"),
        ("from torch import b, a\n\na\nb\n", "from torch import b\n\nx\nb\n"),
        ("from torch import a\n\na\na\na\n", "x\nx\nx\n"),
        ("import torch as a\nimport os\na\n", "import os\nx\n"),
        ("import os; from torch import a\na\n", "import os\nx\n"),
        ("from torch import c, \\\n    a\na\nc\n", "from torch import c\nx\nc\n"),
        ("from torch import (\n    a,\n    b,\n)\na\nb\n", "from torch import (\n    b,\n)\nx\nb\n"),
        ("from torch import (\n    b,\n    a,\n)\na\nb\n", "from torch import (\n    b,\n)\nx\nb\n"),
        ("if TYPE_CHECKING:\n    from torch import a\n    b\na\n", "if TYPE_CHECKING:\n    b\nx\n"),
        # What is used elsewhere, or may be: other names of it, strings, comments, code found by name.
        ("from torch import a\n\na\n'a'\n", "from torch import a\n\nx\n'a'\n"),
        ("from torch import a\n\na\n# a\n", "from torch import a\n\nx\n# a\n"),
        ("from torch import a\n\na\neval(z)\n", "from torch import a\n\nx\neval(z)\n"),
        ("from torch import a\n\na\na = 1\n", "from torch import a\n\nx\na = 1\n"),
        (
            "from torch import a\n\na\nfrom torch import a\n",
            "from torch import a\n\nx\nfrom torch import a\n",
        ),
        # Attributes of other things are not that name.
        ("from torch import nn as a\n\na\nb.a\nb.eval(2)\n", "x\nb.a\nb.eval(2)\n"),
        # Imports with effects, on a condition, or with a comment.
        ("import a\n\na\n", "import a\n\nx\n"),
        ("import torch.a\na\n", "import torch.a\nx\n"),
        ("from .torch import a\na\n", "from .torch import a\nx\n"),
        ("from mine import a\na\n", "from mine import a\nx\n"),
        ("from torchvision import a\na\n", "from torchvision import a\nx\n"),
        ("import torchvision\nfrom torchvision import a\na\n", "import torchvision\nx\n"),
        ("from torch import a as a\na\n", "from torch import a as a\nx\n"),
        ("from torch import a  # noqa\na\n", "from torch import a  # noqa\nx\n"),
        (
            "try:\n    from torch import a\n    b\nexcept: b\na\n",
            "try:\n    from torch import a\n    b\nexcept: b\nx\n",
        ),
        ("if b:\n    from torch import a\n    b\na\n", "if b:\n    from torch import a\n    b\nx\n"),
        ("def f():\n    from torch import a\n\n\na\n", "def f():\n    from torch import a\n\n\nx\n"),
        ("from torch.z import a\na\ntorch.z.c\n", "from torch.z import a\nx\ntorch.z.c\n"),
        ("from torch.nn import a\na\ntorch.nn.c\n", "x\ntorch.nn.c\n"),
    ],
)
def test_imports_go_with_their_last_use(use_rules: UseRules, before: str, after: str) -> None:
    done = fixed(before, use_rules(reading("a", "x", UNSAFE)))
    assert done.text == after
    assert done.applied["XX101"] == len(re.findall(r"\bx\b", after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import a\na\n", "from torch import a\nx\n"),
        ("def f():\n    from torch import a\n    a\n", "def f():\n    x\n"),
        ("from torch import b as _a\n_a\n", "x\n"),
    ],
)
def test_safe_fixes_leave_what_other_files_may_import(use_rules: UseRules, before: str, after: str) -> None:
    name = "_a" if "_a" in before else "a"
    assert fixed(before, use_rules(reading(name, "x"))).text == after


def test_a_block_is_not_emptied(use_rules: UseRules) -> None:
    @rule("XX101", "xx101", severity=WARNING, fix="unsafe", on=cst.Expr)
    def remove(node: cst.Expr, module: Module) -> Iterator[Finding]:
        """Finds an expression."""
        yield Finding(node, "a statement", Fix("Go", remove_statement(module, node) or (), UNSAFE))

    alone = "def f():\n    from torch import a\n    a\n"
    assert fixed(alone, use_rules(remove)).text == "def f():\n    from torch import a\n"
    more = "def f():\n    from torch import a\n    a\n    return 2\n"
    assert fixed(more, use_rules(remove)).text == "def f():\n    return 2\n"


def test_imports_of_a_package(use_rules: UseRules) -> None:
    source = Source(Path("package/__init__.py"), "from torch import a\na\n")
    assert fix(source, use_rules(reading("a", "x", UNSAFE))).text == "from torch import a\nx\n"


# --- what is announced -------------------------------------------------------------------------------------


def depending(offered: Applicability | None, follows: tuple[str, ...] = ()) -> Rule:
    """A rule whose fix of ``now`` is ``offered`` at first, and safe as soon as a fix wrote ``done``.

    It finds ``later`` only then.
    """

    @rule("XX201", "depending", severity=WARNING, fix="safe", on=cst.Name, follows=follows)
    def depends(node: cst.Name, module: Module) -> Iterator[Finding]:
        """Finds a name."""
        done = "done" in module.tree.text
        edits = (Edit(module.tree.span(node), "fine"),)
        if node.value == "later" and done:
            yield Finding(node, "a name", Fix("Go", edits, SAFE))
        if node.value == "now":
            grade = SAFE if done else offered
            yield Finding(node, "a name", None if grade is None else Fix("Go", edits, grade))

    return depends


@pytest.mark.parametrize("text", ["a, now\n", "now, a\n", "f(now)\na, a\n"])
@pytest.mark.parametrize(
    ("grade", "unsafe", "fixes"), [(SAFE, False, 1), (UNSAFE, False, 0), (UNSAFE, True, 1), (None, True, 0)]
)
def test_no_fix_becomes_safer_by_another_one(
    use_rules: UseRules, text: str, grade: Applicability | None, unsafe: bool, fixes: int
) -> None:
    settings = replace(use_rules(calling("XX101", "a", "done"), depending(grade)), unsafe_fixes=unsafe)
    outcome = fixed(text, settings)
    assert outcome.applied["XX201"] == fixes
    assert outcome.text.count("now") == 1 - fixes
    left = [item.fix.applicability if item.fix else None for item in outcome.diagnostics]
    assert left == [] if fixes else [grade]
    assert not outcome.later and not outcome.settled


def test_what_a_fix_brings_up_is_left_to_the_user(use_rules: UseRules) -> None:
    rules = (calling("XX101", "a", "done"), depending(SAFE))
    settings = replace(use_rules(*rules), unsafe_fixes=False)
    outcome = fixed("a, later\n", settings)
    assert (outcome.text, outcome.applied) == ("done, later\n", Counter(XX101=1))
    assert [item.fix and item.fix.applicability for item in outcome.diagnostics] == [UNSAFE]
    (left,) = outcome.diagnostics
    assert left.fix is not None and left.fix.risk is not None and not outcome.risks
    outcome = fixed("a, later\n", replace(settings, unsafe_fixes=True))
    assert (outcome.text, outcome.later) == ("done, fine\n", Counter(XX201=1))
    assert outcome.risks == Counter({("XX201", left.fix.risk): 1})


@pytest.mark.parametrize(("code", "text"), [("XX101", "done, fine\n"), ("XX102", "done, later\n")])
def test_what_follows_a_fix_is_fixed_with_it(use_rules: UseRules, code: str, text: str) -> None:
    rules = (calling("XX101", "a", "done"), depending(SAFE, follows=(code,)))
    outcome = fixed("a, later\n", replace(use_rules(*rules), unsafe_fixes=False))
    assert outcome.text == text
    assert outcome.later == (Counter(XX201=1) if "fine" in text else Counter())


def test_what_another_fix_settles_is_counted(use_rules: UseRules) -> None:
    @rule("XX301", "whole", severity=WARNING, fix="safe", on=cst.Call)
    def whole(call: cst.Call, module: Module) -> Iterator[Finding]:
        """Takes a whole call away."""
        yield Finding(call, "a call", Fix("Go", (Edit(module.tree.span(call), "x"),), SAFE))

    outcome = fixed("f(a, a), a\n", use_rules(calling("XX101", "a", "b"), whole))
    assert outcome.text == "x, b\n"
    assert outcome.applied == Counter(XX301=1, XX101=1)
    assert outcome.settled == Counter(XX101=2)
    assert not outcome.later


def test_moves() -> None:
    moves = Moves.none(10).edited([Edit(Span(2, 4), "XYZ"), Edit(Span(6, 6), "--"), Edit(Span(8, 9), "")])
    # 01XYZ45--67 9, of 0123456789
    assert moves.origin(Span(0, 2)) == (Span(0, 2), True)
    assert moves.origin(Span(0, 6)) == (Span(0, 5), True)
    assert moves.origin(Span(2, 5)) == (Span(2, 4), False)
    assert moves.origin(Span(3, 6)) == (Span(2, 5), False)
    assert moves.origin(Span(7, 9)) == (Span(6, 6), False)
    assert moves.origin(Span(9, 12)) == (Span(6, 10), True)
    again = moves.edited([Edit(Span(0, 5), ""), Edit(Span(12, 12), "end")])
    # 45--679end
    assert again.origin(Span(0, 2)) == (Span(4, 6), True)
    assert again.origin(Span(0, 7)) == (Span(4, 10), True)
    assert again.origin(Span(7, 10)) == (Span(10, 10), False)
    assert Moves.none(0).edited([Edit(Span(0, 0), "ab")]).origin(Span(0, 2)) == (Span(0, 0), False)


COPIES_BEHIND_A_WAIT = """\
import torch
from torch import nn

device = torch.device("cuda")
net = nn.Linear(4, 3).to(device)
batches = [(torch.randn(4, 4), torch.randint(0, 3, (4,))) for _ in range(3)]


@torch.no_grad()
def accuracy():
    net.eval()
    correct, seen = 0, 0
    for x, y in batches:
        out = net(x.to(device))
        correct += out.argmax(1).eq(y.to(device)).sum().item()
        seen += y.numel()
    return correct / seen
"""


def test_a_copy_behind_a_wait_that_a_fix_takes_away_is_fixed_in_the_same_run() -> None:
    codes = ("TL202", "TL213")
    settings = LintSettings(rules=codes, fixable=frozenset(codes))
    once = fix(Source(Path("a.py"), COPIES_BEHIND_A_WAIT), settings)
    assert once.text.count("non_blocking=True") == 2
    again = fix(Source(Path("a.py"), once.text), settings)
    assert again.text == once.text
