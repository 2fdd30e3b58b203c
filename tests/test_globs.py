"""Patterns match what pathspec says that they match, and take time in proportion to the path."""

from __future__ import annotations

import random
import re
import subprocess
import time
import warnings
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from torchlint import globs, options

PARTS = ("a", "b", "*", "*", "?", "/", "**/", "/**/", "[ab]", "\\*", ".", "!")


def verdict(spec: GitIgnoreSpec, path: str) -> tuple[bool | None, int | None]:
    checked = spec.check_file(path)
    return checked.include, checked.index


def test_patterns_match_what_pathspec_matches() -> None:
    draw = random.Random(5)
    compared = rewritten = 0
    for _ in range(1_200):
        # Two patterns: of those that match, the last one counts, unless it matched a folder above only.
        lines = ["".join(draw.choices(PARTS, k=draw.randrange(1, 9))) for _ in range(2)]
        try:
            theirs = GitIgnoreSpec.from_lines(lines)
        except ValueError:
            continue
        if any(pattern.include is None for pattern in theirs.patterns):
            continue
        ours = globs.spec(lines)
        rewritten += sum(
            (mine.regex and mine.regex.pattern) != (other.regex and other.regex.pattern)
            for mine, other in zip(ours.patterns, theirs.patterns, strict=True)
        )
        for _ in range(12):
            names = (
                "".join(draw.choices("aab.*", k=draw.randrange(1, 5))) for _ in range(draw.randrange(1, 6))
            )
            path = "/".join(names) + draw.choice(["", "/"])
            assert verdict(ours, path) == verdict(theirs, path), (lines, path)
            compared += 1
    assert (compared > 8_000, rewritten > 600) == (True, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a[", "`a[` is not a glob pattern: `[` begins a set such as `[ab]`; write `\\[` for the bracket"),
        ("[z-a].py", "`[` begins a set"),
        ("src/[]", "`[` begins a set"),
        ("", "`` matches nothing: name a file or a directory"),
        ("!", "`!` matches nothing"),
        (" / ", "matches nothing"),
        ("../lib", "so it cannot contain `..`"),
        ("!src/../lib/**", "so it cannot contain `..`"),
        ("*.{py,pyi}", "braces have no meaning; use a pattern for each alternative"),
        ("engine[::*.step", "`[` begins a set"),
    ],
)
def test_a_pattern_that_matches_no_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        options.convert("exclude", [text], Path("/repo"))


@pytest.mark.parametrize(
    "text",
    ["[ab].py", "x[]]", "\\[a", "{{name}}", "\\{a,b\\}", "a..b", "...", "#x", "::f[1]", "a::f[1]"],
)
def test_other_patterns_are_not(text: str) -> None:
    assert options.convert("exclude", [text], Path("/repo"))


BOMBS = {
    "one name": ("a*" * 40 + "b", "a" * 250),
    "two letters": ("*a" * 40 + "*b", "a" * 250),
    "classes": ("*[a-c]" * 60 + "x", "abc" * 80),
    "folders": ("**/a/" * 60 + "b", "a/" * 1_000 + "c"),
    "both": ("**/a*a*/" * 20 + "b", ("a" * 30 + "/") * 60 + "c"),
    "long": ("*a" * 2_000, "a" * 250 + "/" + "b" * 250),
    "negated": ("!" + "*?" * 100 + "b", "a" * 250),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_pattern_takes_time_in_proportion(name: str) -> None:
    pattern, path = BOMBS[name]
    started = time.process_time()
    assert not globs.spec([pattern]).match_file(path)
    assert globs.spec(["a", pattern]).match_file("a")
    assert time.process_time() - started < 1


def test_a_pattern_full_of_wildcards_still_matches() -> None:
    found = globs.spec(["a*a*a*a*a*a*b", "**/x/**/x/**/x/*y*"])
    assert found.match_file("c/" + "a" * 200 + "b")
    assert not found.match_file("c/" + "a" * 5 + "b")
    assert found.match_file("x/1/x/2/3/x/x/_y_/z")
    assert not found.match_file("x/1/x/_y_")


def test_a_line_that_is_no_pattern_matches_nothing_and_spares_the_others() -> None:
    lines = ["[z-a]", "a\\", "#b", "", "!", "/", "x" * 5_000, "*.tmp", "[[:alpha:]]", "[a&&b]"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = globs.spec(lines)
    assert [path for path in ("c", "z", "a.tmp", "x" * 5_000, "&") if found.match_file(path)] == [
        *("a.tmp", "&"),
    ]


def test_names_with_newlines_are_matched() -> None:
    found = globs.spec(["*.tmp", "a*b*c"])
    assert found.match_file("x\ny/z.tmp")
    assert found.match_file("a\nb\nc")


def test_an_expression_of_another_shape_is_left_alone() -> None:
    for expression in (".", "/", "^(?:.+/)?a[^/]*(?:/.*)?$", "^[^/]*|[^/]*[^/]*(", "^a[^/]*[^/]*{2})"):
        assert globs.in_proportion(expression) == expression
        assert globs._tokens("(a)") is None


def test_git_agrees(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    lines = ["a*b*c", "**/x/**/y*z*", "d[!a]*e*", "!abc", "*f*g/"]
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    paths = [
        "abc",
        "aXbXc",
        "1/aXbXc/2",
        "x/y_z_",
        "w/x/1/2/yz",
        "y/yz",
        "d/xee",
        "dxe",
        "1f2g3",
        "fg/1",
        "2/fg/1",
    ]
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=tmp_path,
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=True,
    )
    ours = globs.spec(lines)
    assert [path for path in paths if ours.match_file(path)] == done.stdout.split()
    assert len(done.stdout.split()) == 7
