"""What git says of a change becomes lines of files, in real repositories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from torchlint import changes
from torchlint.changes import Changed, ChangesError, Rows

LINES = "".join(f"line {number}\n" for number in range(1, 10))


def rows(found: changes.Changes) -> dict[str, Rows | None]:
    """The changed lines by the name of the file."""
    return {path.relative_to(found.top).as_posix(): changed.rows for path, changed in found.files.items()}


def test_the_lines_that_differ_from_where_the_branch_began(git: Any) -> None:
    git.commit(a=LINES, b=LINES, gone=LINES, same=LINES)
    git("switch", "--quiet", "--create", "topic")
    git.commit(a=LINES.replace("line 3\n", "3\nand more\n"))
    git("switch", "--quiet", "main")
    git.commit(same="changed on the other branch\n" + LINES)
    git("switch", "--quiet", "topic")
    git("rm", "--quiet", "gone.py")
    git("add", git.write("staged.py", "1\n2\n").name)
    git.write("b.py", LINES.replace("line 9\n", "9"))
    git.write("new/untracked.py", LINES)

    assert rows(changes.since("main", git.top)) == {
        "a.py": ((3, 4),),
        "b.py": ((9, 9),),
        "staged.py": ((1, 2),),
        "new/untracked.py": None,
    }


def test_lines_taken_out_touch_no_line_and_lines_put_in_touch_theirs(git: Any) -> None:
    git.commit(a=LINES)
    git.write(
        "a.py", LINES.replace("line 2\n", "").replace("line 8\n", "line 8\n+++ b/other.py\n@@ -1 +1 @@\n")
    )

    assert rows(changes.since("HEAD", git.top)) == {"a.py": ((8, 9),)}


def test_a_renamed_file_is_compared_with_its_old_self(git: Any) -> None:
    git.commit(old=LINES, moved=LINES + "and one more\n")
    git("mv", "old.py", "new.py")
    git("mv", "moved.py", "elsewhere.py")
    git.write("new.py", LINES.replace("line 5", "five"))

    assert rows(changes.since("HEAD", git.top)) == {"new.py": ((5, 5),), "elsewhere.py": ()}


ODD = (
    "with space.py",
    "tab\there.py",
    "new\nline.py",
    'quote".py',
    "back\\slash.py",
    "grüße.py",
    "-dash.py",
    "b/c.py",
)


def test_names_of_every_kind(git: Any) -> None:
    names = [*ODD, os.fsdecode(b"byte-\xff.py")]
    for name in names:
        git.write(name, LINES)
    git.commit()
    for name in names:
        git.write(name, LINES + "more\n")

    assert rows(changes.since("HEAD", git.top)) == dict.fromkeys(names, ((10, 10),))


def test_what_has_no_lines_to_compare_counts_as_a_whole_or_not_at_all(git: Any) -> None:
    git.write(".gitattributes", "opaque.py -diff\n")
    binary, script = git.write("binary.py", b"a\0b\n"), git.write("script.py", LINES)
    git.commit(opaque=LINES)
    binary.write_bytes(b"a\0c\n")
    script.chmod(0o755)
    git.write("opaque.py", LINES + "more\n")

    expected = {"binary.py": None, "opaque.py": None, "script.py": ()}
    assert rows(changes.since("HEAD", git.top)) == expected


def test_line_ends_of_windows(git: Any) -> None:
    text = LINES.replace("\n", "\r\n")
    git("config", "core.autocrlf", "false")
    git.commit(a=text)
    git.write("a.py", text.replace("line 4\r\n", "4\r\n"))

    assert rows(changes.since("HEAD", git.top)) == {"a.py": ((4, 4),)}


HOSTILE = (
    ("diff.noprefix", "true"),
    ("diff.mnemonicPrefix", "true"),
    ("diff.relative", "true"),
    ("diff.context", "5"),
    ("diff.interHunkContext", "50"),
    ("diff.external", "touch ran; false"),
    ("diff.py.textconv", "touch ran; cat"),
    ("diff.py.command", "touch ran; false"),
    ("core.fsmonitor", "touch ran; false"),
    ("core.pager", "touch ran; cat"),
    ("pager.diff", "touch ran; cat"),
    ("color.ui", "always"),
    ("diff.submodule", "log"),
    ("diff.orderFile", "nowhere"),
    ("diff.colorMoved", "zebra"),
    ("diff.wsErrorHighlight", "all"),
    ("diff.suppressBlankEmpty", "true"),
    ("filter.py.clean", "touch ran; cat"),
    ("filter.py.smudge", "touch ran; cat"),
    ("filter.py.process", "touch ran; false"),
    ("filter.py.required", "true"),
    ("filter.a=b\u00e9.c.clean", "touch ran; cat"),
    ("core.hooksPath", "hooks"),
    ("core.sshCommand", "touch ran; false"),
    ("core.alternateRefsCommand", "touch ran; false"),
    ("credential.helper", "!touch ran; false"),
    ("alias.diff", "!touch ran"),
    ("gpg.program", "touch ran"),
    ("log.showSignature", "true"),
)


def test_no_setting_of_the_repository_runs_a_program_or_changes_the_answer(
    git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    git.write(".gitattributes", "*.py diff=py filter=py\nc.py filter=a=b\u00e9.c\n")
    hook = git.write("hooks/post-index-change", "#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    git.commit(a=LINES)
    inner = git.write("inner/b.py", LINES).parent
    git.commit()
    for key, value in HOSTILE:
        git("config", key, value)
    for name, value in {"GIT_EXTERNAL_DIFF": "touch ran; false", "GIT_DIFF_OPTS": "--unified=4"}.items():
        monkeypatch.setenv(name, value)
    git.write("a.py", LINES.replace("line 2\n", "2\n").replace("line 6\n", "6\n"))
    git.write("inner/b.py", "0\n" + LINES)
    git.write("c.py", LINES)
    found = {"a.py": ((2, 2), (6, 6)), "inner/b.py": ((1, 1),), "c.py": None}

    assert rows(changes.since("HEAD", inner)) == found
    # What has not changed and looks as if it had is compared, too.
    os.utime(git.top / ".gitattributes", (1, 1))
    quiet = [f"{key}=" for key, _ in HOSTILE if key.startswith(("filter", "core"))]
    settings = [part for key in quiet for part in ("-c", key)]
    git(*settings, "-c", "filter.py.required=false", "-c", "core.hooksPath=/dev/null", "add", "--all")
    (git.top / "ran").unlink(missing_ok=True)
    assert rows(changes.staged(inner)) == {**found, "c.py": ((1, 9),)}
    assert rows(changes.since("HEAD", inner)) == {**found, "c.py": ((1, 9),)}
    assert not list(git.top.rglob("ran"))


def test_a_filter_of_the_users_own_is_kept(git: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (key, value) in enumerate({"filter.py.clean": "sed s/user/cleaned/", "a.b": "c"}.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    git.write(".gitattributes", "*.py filter=py\n")
    git.commit(a=LINES + "user\n")
    git("config", "filter.other.clean", "touch ran; cat")
    os.utime(git.top / "a.py", (1, 1))
    assert rows(changes.since("HEAD", git.top)) == {}
    git.write("a.py", LINES + "user\nmore\n")
    assert rows(changes.since("HEAD", git.top)) == {"a.py": ((11, 11),)}


def test_nothing_is_fetched(git: Any) -> None:
    """An object that a partial clone lacks is not asked for where its config says."""
    git.commit(a=LINES)
    blob = git("rev-parse", "HEAD:a.py")
    (git.top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "remote.origin.url": "ext::touch ran",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "protocol.ext.allow": "always",
    }.items():
        git("config", key, value)
    git.write("a.py", "more\n" + LINES)
    with pytest.raises(ChangesError, match="torchlint does not fetch objects: run"):
        changes.since("HEAD", git.top)
    assert not list(git.top.rglob("ran"))


def test_a_git_that_does_not_answer_is_not_waited_for(git: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    git.commit(a=LINES)
    os.mkfifo(git.top / "pipe")
    git("config", "core.excludesFile", str(git.top / "pipe"))
    monkeypatch.setattr(changes, "_PATIENCE", 0.5)
    with pytest.raises(ChangesError, match=r"`git diff` did not finish within 0.5 seconds"):
        changes.since("HEAD", git.top)


@pytest.mark.parametrize(
    "ref", ["--output=written", "-h", "nowhere", "origin/main", "", "main --output=written", ":a.py"]
)
def test_what_names_no_commit_is_refused_and_never_an_option(git: Any, ref: str) -> None:
    git.commit(a=LINES)

    with pytest.raises(ChangesError, match="is not a commit"):
        changes.since(ref, git.top)
    assert sorted(path.name for path in git.top.iterdir()) == [".git", "a.py"]


def test_tags_are_commits_too(git: Any) -> None:
    git.commit(a=LINES)
    git("tag", "--annotate", "--message", "a tag", "v1")
    git.commit(a=LINES + "more\n")

    assert rows(changes.since("v1", git.top)) == {"a.py": ((10, 10),)}


def test_no_common_ancestor(git: Any) -> None:
    git.commit(a=LINES)
    git("switch", "--quiet", "--orphan", "other")
    git.commit(b=LINES)

    with pytest.raises(ChangesError, match=r"^`main` and HEAD have no common ancestor$"):
        changes.since("main", git.top)


def test_a_shallow_clone_says_what_to_fetch(git: Any, tmp_path: Path) -> None:
    git.commit(a=LINES)
    git("switch", "--quiet", "--create", "topic")
    git.commit(a=LINES + "more\n")
    git("switch", "--quiet", "main")
    git.commit(b=LINES)
    clone = type(git)(tmp_path / "clone")
    url = git.top.as_uri()
    git("clone", "--quiet", "--depth=1", "--branch=topic", "--no-single-branch", url, str(clone.top))

    with pytest.raises(
        ChangesError, match=r"no common ancestor in this shallow clone.*git fetch.*fetch-depth: 0"
    ):
        changes.since("origin/main", clone.top)
    clone("fetch", "--quiet", "--unshallow")
    assert rows(changes.since("origin/main", clone.top)) == {"a.py": ((10, 10),)}


def test_outside_of_a_working_tree(git: Any, tmp_path: Path) -> None:
    for directory in (tmp_path, git.top / ".git"):
        with pytest.raises(ChangesError, match="is not in a git working tree"):
            changes.since("HEAD", directory)


def test_without_git(git: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(git.top))

    with pytest.raises(ChangesError, match="`git` was not found"):
        changes.staged(git.top)


def test_worktrees_submodules_and_nested_repositories(git: Any, tmp_path: Path) -> None:
    git.commit(a=LINES)
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", git.top.as_uri(), "sub")
    git.commit()
    git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "tree"))
    tree = type(git)(Path(os.path.realpath(tmp_path / "tree")))
    tree.write("a.py", LINES + "more\n")
    nested = tree.write("nested/n.py", LINES).parent
    type(git)(nested)("init", "--quiet")
    git.write("sub/a.py", "changed\n")

    assert rows(changes.since("main", tree.top)) == {"a.py": ((10, 10),)}
    assert rows(changes.since("main", git.top)) == {}


def test_files_are_found_through_links(git: Any, tmp_path: Path) -> None:
    git.commit(a=LINES)
    git.write("a.py", LINES + "more\n")
    link = tmp_path / "link"
    link.symlink_to(git.top, target_is_directory=True)
    (git.top / "alias.py").symlink_to("a.py")
    found = changes.since("HEAD", link)

    assert found.of(link / "a.py") == found.of(link / "alias.py") == Changed(((10, 10),))
    assert found.of(link / "b.py") is None
    assert [found.covers(path) for path in (link / "x" / "b.py", tmp_path / "b.py")] == [True, False]


def test_what_is_staged_is_told_from_what_is_not(git: Any) -> None:
    git.commit(a=LINES, b=LINES, c=LINES, gone=LINES)
    for name in ("a.py", "b.py", "gone.py"):
        git.write(name, LINES.replace("line 1\n", "staged\n"))
    git("add", "--all")
    git.write("b.py", LINES.replace("line 9\n", "not staged\n"))
    git.write("c.py", LINES.replace("line 9\n", "not staged\n"))
    git.write("untracked.py", LINES)
    (git.top / "gone.py").unlink()
    found = changes.staged(git.top)
    content = LINES.replace("line 1\n", "staged\n").encode()

    assert found.files == {
        git.top / "a.py": Changed(((1, 1),)),
        git.top / "b.py": Changed(((1, 1),), content),
        git.top / "gone.py": Changed(((1, 1),), content),
    }
    assert found.missing == (git.top / "gone.py",)


def test_a_first_commit_is_staged(git: Any) -> None:
    git.write("a.py", LINES)
    git("add", "a.py")

    assert rows(changes.staged(git.top)) == {"a.py": ((1, 9),)}


def test_in_a_conflict_the_marks_are_lines_and_nothing_is_staged(git: Any) -> None:
    git.commit(a=LINES, b=LINES)
    git("switch", "--quiet", "--create", "topic")
    git.commit(a=LINES.replace("line 5", "ours"))
    git("switch", "--quiet", "main")
    git.commit(a=LINES.replace("line 5", "theirs"))
    with pytest.raises(AssertionError):
        git("merge", "topic")

    assert rows(changes.since("HEAD", git.top)) == {"a.py": ((5, 5), (7, 9))}
    assert rows(changes.staged(git.top)) == {"a.py": None}
