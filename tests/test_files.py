"""Which files a run is about."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from torchlint import files
from torchlint.files import Discovery, discover, matches, repository
from torchlint.options import Options, Pattern


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory inside a repository, and a home without ignore files."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    return root


def touch(*paths: str, text: str = "") -> None:
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


def patterns(*texts: str) -> tuple[Pattern, ...]:
    return tuple(Pattern(text, Path.cwd()) for text in texts)


def found(*paths: str, options: Options | None = None, **how: Any) -> list[str]:
    result = search(*paths, options=options, **how)
    return [path.relative_to(Path.cwd()).as_posix() for path in result.files]


def search(*paths: str, options: Options | None = None, **how: Any) -> Discovery:
    return discover([Path(path) for path in paths or (".",)], lambda _: options or Options(), **how)


def test_a_directory_is_searched_for_programs_in_order() -> None:
    touch("b.py", "a.py", "pkg/c.pyw", "pkg/sub/d.py", "readme.md", "stub.pyi", "data.ipynb", "py")
    assert found() == ["a.py", "b.py", "data.ipynb", "pkg/c.pyw", "pkg/sub/d.py"]


def test_the_usual_directories_are_left_out() -> None:
    touch("a.py", ".venv/x.py", "build/x.py", "src/__pycache__/x.py", "src/node_modules/x.py", ".git/x.py")
    assert found() == ["a.py"]


def test_exclude_replaces_the_usual_ones_and_extend_exclude_does_not() -> None:
    touch("a.py", "build/x.py", "gen/x.py", "gen_pb2.py")
    assert found(options=Options(exclude=patterns("gen", "*_pb2.py"))) == ["a.py", "build/x.py"]
    assert found(options=Options(extend_exclude=patterns("gen/", "*_pb2.py"))) == ["a.py"]


def test_a_negated_pattern_takes_back_in() -> None:
    touch("gen/x.py", "gen/keep.py")
    assert found(options=Options(exclude=patterns("gen/*", "!gen/keep.py"))) == ["gen/keep.py"]


def test_include_decides_which_files_of_a_directory_count() -> None:
    touch("a.py", "b.pyi", "c.txt")
    assert found(options=Options(extend_include=patterns("*.pyi"))) == ["a.py", "b.pyi"]
    assert found(options=Options(include=patterns("*.txt"))) == ["c.txt"]


def test_a_file_that_is_named_is_kept_whatever_it_is() -> None:
    touch("build/x.py", "script", "c.txt")
    assert found("build/x.py", "script", "c.txt", "missing.py") == [
        "build/x.py",
        "c.txt",
        "missing.py",
        "script",
    ]


def test_force_exclude_leaves_out_what_is_named() -> None:
    touch("build/x.py", "gen/y.py", "ignored.py", "a.py")
    touch(".gitignore", text="ignored.py\n")
    options = Options(extend_exclude=patterns("gen"))
    named = ("build/x.py", "gen/y.py", "ignored.py", "a.py", "build")
    assert found(*named, options=options, force_exclude=True) == ["a.py"]
    assert found(*named, options=options, force_exclude=True, respect_gitignore=False) == [
        "a.py",
        "ignored.py",
    ]


def test_an_excluded_directory_that_is_named_is_searched() -> None:
    touch("build/x.py", "build/deep/y.py", "ignored/z.py", "ignored/.venv/x.py")
    touch(".gitignore", text="ignored/\n")
    assert found("build") == ["build/deep/y.py", "build/x.py"]
    assert found("ignored") == ["ignored/z.py"]


def test_one_path_named_twice_is_one_file() -> None:
    touch("pkg/a.py")
    assert found("pkg/a.py", "./pkg/a.py", "pkg", "pkg/../pkg/a.py") == ["pkg/a.py"]


def test_ignore_files_are_honoured_from_the_repository_down() -> None:
    touch("a.py", "out/x.py", "pkg/tmp_x.py", "pkg/keep/tmp_y.py", "pkg/local.py", "excluded.py")
    touch(".gitignore", text="/out\ntmp_*.py\n# comment\n\n")
    touch("pkg/.gitignore", text="local.py\n!keep/tmp_y.py\n")
    touch(".git/info/exclude", text="excluded.py\n")
    assert found() == ["a.py", "pkg/keep/tmp_y.py"]
    assert found("pkg") == ["pkg/keep/tmp_y.py"]
    assert found("pkg", respect_gitignore=False) == ["pkg/keep/tmp_y.py", "pkg/local.py", "pkg/tmp_x.py"]


def test_dot_ignore_and_the_users_own_ignore_file_count_too() -> None:
    touch("a.py", "b.py", "c.py")
    touch(".ignore", text="b.py\n")
    touch(f"{os.environ['XDG_CONFIG_HOME']}/git/ignore", text="c.py\n")
    assert found() == ["a.py"]


def test_outside_a_repository_ignore_files_above_do_not_count(work: Path) -> None:
    (work / ".git").rmdir()
    touch(".gitignore", text="*.py\n")
    touch("pkg/a.py", "pkg/b.py")
    touch("pkg/.gitignore", text="b.py\n")
    assert found("pkg") == ["pkg/a.py"]


def test_a_project_inside_an_excluded_name_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "build" / "site-packages" / "torchthing"
    root.mkdir(parents=True)
    (root / "a.py").write_text("")
    monkeypatch.chdir(root)
    assert found() == ["a.py"]
    monkeypatch.chdir(tmp_path)
    assert found("build/site-packages/torchthing") == ["build/site-packages/torchthing/a.py"]


def test_links_to_files_count_and_links_to_directories_do_not() -> None:
    touch("real/a.py")
    Path("linked").symlink_to("real")
    Path("b.py").symlink_to("real/a.py")
    Path("loop").symlink_to(".")
    assert found() == ["b.py", "real/a.py"]


def test_a_dangling_link_is_a_warning_and_no_file_unless_it_is_named() -> None:
    Path("dangling.py").symlink_to("nowhere")
    Path("round.py").symlink_to("round.py")
    Path("data.bin").symlink_to("nowhere")
    Path(".#a.py").symlink_to("me@host.123")
    assert found() == []
    assert found("dangling.py") == ["dangling.py"]
    assert search().warnings == tuple(
        f"{Path(name).absolute()} is a broken symbolic link, and was not checked"
        for name in ("dangling.py", "round.py")
    )


def test_a_directory_called_like_a_program_is_searched() -> None:
    touch("x.py/a.py")
    assert found() == ["x.py/a.py"]
    assert found("x.py") == ["x.py/a.py"]


def test_a_pipe_called_like_a_program_is_no_program() -> None:
    os.mkfifo("pipe.py")
    assert found() == []


def test_a_notebook_is_found_like_any_program_but_not_its_checkpoints() -> None:
    touch("a.ipynb", "b/c.ipynb", "b/.ipynb_checkpoints/c-checkpoint.ipynb")
    assert found("a.ipynb") == ["a.ipynb"]
    assert found() == ["a.ipynb", "b/c.ipynb"]


def test_a_directory_that_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    touch("a.py", "locked/b.py")
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = search()
    assert [path.name for path in result.files] == ["a.py"]
    assert result.warnings == (f"cannot read the directory {Path.cwd() / 'locked'}: Permission denied",)


def test_each_directory_has_its_own_options() -> None:
    touch("a_gen.py", "sub/a_gen.py")
    chosen = {Path.cwd() / "sub": Options(exclude=(Pattern("*_gen.py", Path.cwd() / "sub"),))}
    result = discover([Path()], lambda place: chosen.get(place, Options()))
    assert [path.relative_to(Path.cwd()).as_posix() for path in result.files] == ["a_gen.py"]


@pytest.mark.parametrize(
    ("text", "path", "matched"),
    [
        ("#odd.py", "#odd.py", True),
        ("a b.py", "a b.py", True),
        ("[ab].py", "b.py", True),
        ("**/x.py", "deep/down/x.py", True),
        ("docs/**/*.py", "docs/a/b.py", True),
        ("x.py", "yx.py", False),
    ],
)
def test_patterns_are_those_of_gitignore(text: str, path: str, matched: bool) -> None:
    assert matches(Pattern(text, Path.cwd()), Path.cwd() / path) is matched


def test_an_absolute_pattern_below_its_root_is_understood() -> None:
    inside = Path.cwd() / "src" / "a.py"
    assert matches(Pattern(str(inside), Path.cwd()), inside)
    assert not matches(Pattern(str(Path.cwd() / "lib" / "a.py"), Path.cwd()), inside)


def test_the_repository_of_a_folder() -> None:
    touch("a/b/c.py")
    assert repository(Path.cwd()) == repository(Path.cwd() / "a" / "b") == Path.cwd()
    assert repository(Path.cwd().parent) is None


def test_an_ignore_file_with_a_line_that_is_no_pattern_is_heeded() -> None:
    touch("a.py", "b.py")
    touch(".gitignore", text="[z-a]\nb.py\\\nb.py\n")
    assert found() == ["a.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("b.py\n" + "#" * 1_000_000, "it has 1000005 bytes; the limit is 1000000"),
        ("b.py\n" * 10_000, "it has 10001 lines; the limit is 10000"),
    ],
)
def test_an_ignore_file_that_is_a_bomb_is_told_once_and_not_heeded(text: str, told: str) -> None:
    touch("a.py", "b.py")
    touch(".gitignore", text=text)
    result = search(".", "a.py", force_exclude=True)
    assert [path.name for path in result.files] == ["a.py", "b.py"]
    assert result.warnings == (f"{Path.cwd() / '.gitignore'} is ignored: {told}",)


@pytest.mark.parametrize("text", ["build", ".git", "node_modules", "a.b-c", "*.py", "*.tar.gz", "*.ipynb"])
def test_names_match_as_they_do_in_git(text: str) -> None:
    from pathspec import GitIgnoreSpec

    simple, spec = files._spec((text,), "/p"), GitIgnoreSpec.from_lines([text])
    assert not isinstance(simple, GitIgnoreSpec)
    name = text.replace("*", "x")
    for path in (
        *(name, f"{name}/", f"a/{name}", f"a/{name}/", f"a/{name}/b/c.txt", f"x{name}", f"{name}x"),
        *(name.upper(), f"a{name}/b", text[1:], f"a/{text[1:]}/b", "a/b.c", "", "/"),
    ):
        assert simple.match_file(path) == spec.match_file(path), path


@pytest.mark.parametrize("text", ["a/b", "/a", "a/", "!a", "a*", "*", "[ab].py", "#a", " a", "..", "ä"])
def test_other_patterns_are_left_to_the_library(text: str) -> None:
    from pathspec import GitIgnoreSpec

    assert isinstance(files._spec((text,), "/p"), GitIgnoreSpec)
