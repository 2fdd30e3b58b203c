"""Trees of texts that are typed: the same as those of the whole text, whatever is typed where."""

from __future__ import annotations

import random
from pathlib import Path

import libcst as cst
import pytest

from torchlint import config, parsing, registry
from torchlint.checker import check
from torchlint.reparsing import Reparser, _Patchwork
from torchlint.source import Source
from torchlint.syntax import SyntaxTree

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted((ROOT / "fixtures" / "programs").glob("*.py"))
# What people type, paste and delete, sound or not.
TYPED = (
    *("x", " ", "\n", "\n\n", "#", "# a comment\n", "    ", "    # indented\n", "\\\n", '"', '"""', "(", ")"),
    *("else:\n    pass\n", "@decorator\n", "def f():\n    return 1\n", "if x:\n  y\n", "x = 1; y = 2\n"),
    *("\r", "\x0c", "\t", "\r\n", "class A:\n    # inside\n\n    x = 1\n\n    # behind\n", "😋", "\n    "),
)


def same(patched: SyntaxTree, whole: SyntaxTree) -> None:
    """Check that two trees are alike in every node and every place."""
    assert patched.root.deep_equals(whole.root)
    assert patched.root.code == whole.root.code
    assert len(patched.order) == len(whole.order)
    for mine, theirs in zip(patched.order, whole.order, strict=True):
        assert type(mine) is type(theirs)
        assert patched.span(mine) == whole.span(theirs)
        assert patched.order[mine] == whole.order[theirs]
        holder, other = patched.parent(mine), whole.parent(theirs)
        assert (holder is None) == (other is None)
        if holder is not None and other is not None:
            assert patched.order[holder] == whole.order[other]
    assert patched._by_type.keys() == whole._by_type.keys()
    for kind, nodes in patched._by_type.items():
        assert [patched.order[node] for node in nodes] == [whole.order[node] for node in whole._by_type[kind]]
    assert patched.comments == whole.comments


def typed(text: str, chance: random.Random) -> str:
    """The text after an edit at some place, which replaces a few characters or lines, or none."""
    start = chance.randrange(len(text) + 1)
    if chance.random() < 0.5:
        start = text.rfind("\n", 0, start) + 1
    end = min(len(text), start + chance.choice((0, 0, 0, 1, 5, 60)))
    return text[:start] + chance.choice(TYPED) + text[end:]


@pytest.mark.parametrize("path", PROGRAMS[:4], ids=lambda path: path.stem)
def test_whatever_is_typed(path: Path) -> None:
    def type_on() -> int:
        chance = random.Random(path.stem)
        text = path.read_text(encoding="utf-8")
        reparser, patched = Reparser(), 0
        reparser.parse(text)
        for _ in range(35):
            changed = typed(text, chance)
            try:
                whole = parsing.parse(changed)
            except parsing.UnreadableError:
                with pytest.raises(parsing.UnreadableError):
                    reparser.parse(changed)
                continue
            tree = reparser.parse(changed)
            if not is_kept(whole):
                assert not isinstance(tree, _Patchwork)
            else:
                same(tree, whole)
            if isinstance(tree, _Patchwork):
                text, patched = changed, patched + 1
            else:
                # A text that has to be parsed as a whole has to be for ever.
                reparser.parse(text)
        return patched

    assert parsing.on_deep_stack(type_on) >= 3


def is_kept(tree: SyntaxTree) -> bool:
    """Whether LibCST gives the text of a tree again, which it does not with all indentation."""
    try:
        tree.span(tree.root)
    except ValueError:
        return False
    return True


TEXT = """\
# Above.

import a  # beside

# About f.
@decorator
def f():
    return 1
    # Inside, at the end.

# About b.
b = f(
    1)


class C:

    x = 1
"""


@pytest.mark.parametrize(
    ("before", "after", "parsed"),
    [
        ("import a", "import aa", "# Above.\n\nimport aa  # beside\n"),
        ("    1)", "    2)", "\n# About f.\n@decorator\ndef f():"),
        ("    x = 1", "    x = 2", "\n\nclass C:\n\n    x = 2\n"),
    ],
)
def test_only_what_changed_is_parsed(
    before: str, after: str, parsed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit() -> None:
        reparser = Reparser()
        reparser.parse(TEXT)
        texts: list[str] = []
        parse = parsing.parse

        def remembered(text: str) -> SyntaxTree:
            texts.append(text)
            return parse(text)

        monkeypatch.setattr(parsing, "parse", remembered)
        tree = reparser.parse(TEXT.replace(before, after))
        assert len(texts) == 1 and texts[0].startswith(parsed) and len(texts[0]) < len(TEXT)
        same(tree, parse(TEXT.replace(before, after)))

    parsing.on_deep_stack(edit)


def test_a_node_of_no_tree_has_no_place() -> None:
    def ask() -> None:
        reparser = Reparser()
        reparser.parse(TEXT)
        with pytest.raises(KeyError):
            reparser.parse(TEXT).span(cst.Name("x"))

    parsing.on_deep_stack(ask)


def test_the_findings_are_those_of_the_whole_text() -> None:
    """While a statement is typed, key by key, at the end of a training loop."""
    text = (ROOT / "fixtures" / "programs" / "image_classifier.py").read_text(encoding="utf-8")
    settings = config.Resolver(registry.catalogue(), isolated=True).lint(ROOT / "any.py")
    at = text.index("loss.backward()")
    reparser = Reparser()
    for typed_so_far in ("", "l", "loss.item()\n            ", "x = 1 # noqa\n            ", "(", "@"):
        source = Source(Path("any.py"), text[:at] + typed_so_far + text[at:])
        found = check(source, settings, outline=False, parse=reparser.parse)
        assert found == check(source, settings)
        assert found
