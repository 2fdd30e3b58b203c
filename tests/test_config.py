"""Config files: which one counts, what it may say, what is said of one that cannot be followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from torchlint import config, options
from torchlint.config import ConfigError, Resolver
from torchlint.diagnostics import Severity
from torchlint.rule import Rule
from torchlint.target import Target


def _check(node: object, module: object) -> Iterator[object]:
    yield from ()


RULES: Mapping[str, Rule] = {
    code: Rule(code, name, Severity.WARNING, "safe", (), (), code == "TL311", _check)  # type: ignore[arg-type]
    for code, name in (
        ("TL101", "loader-without-workers"),
        ("TL102", "loader-without-pinned-memory"),
        ("TL202", "item-in-hot-loop"),
        ("TL311", "inference-under-no-grad"),
    )
}
DEFAULT = ("TL101", "TL102", "TL202")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, and a home of its own with no config in it."""
    user = tmp_path / "home"
    user.mkdir()
    monkeypatch.setattr(config, "user_config", lambda: next(iter(user.glob("torchlint.toml")), None))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return user


def resolver(*configs: str, isolated: bool = False, **given: Any) -> Resolver:
    return Resolver(RULES, given, configs, isolated=isolated)


def write(path: str, text: str) -> Path:
    file = Path.cwd() / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def pyproject(text: str) -> str:
    return f"[project]\nname = 'x'\n\n[tool.torchlint]\n{text}"


def rules_at(path: str, found: Resolver | None = None) -> tuple[str, ...]:
    return (found or resolver()).lint(Path.cwd() / path).rules


# --- which file counts -------------------------------------------------------------------------------


def test_without_a_file_the_defaults_hold() -> None:
    assert rules_at("a.py") == DEFAULT
    assert resolver().run.options == options.Options()


@pytest.mark.parametrize("name", ["torchlint.toml", ".torchlint.toml"])
def test_a_file_of_its_own_holds_the_keys_at_the_top(name: str) -> None:
    write(name, 'select = ["TL1"]')
    assert rules_at("deep/down/a.py") == ("TL101", "TL102")


def test_pyproject_holds_them_in_its_table() -> None:
    write("pyproject.toml", pyproject('select = ["TL1"]'))
    assert rules_at("a.py") == ("TL101", "TL102")


def test_a_pyproject_without_the_table_is_passed_over() -> None:
    write("pyproject.toml", pyproject('select = ["TL202"]'))
    write("inner/pyproject.toml", "[tool.other]\nx = 'torchlint'\n")
    assert rules_at("inner/a.py") == ("TL202",)


def test_in_one_directory_the_hidden_file_counts_first() -> None:
    write("pyproject.toml", pyproject('select = ["TL101"]'))
    write("torchlint.toml", 'select = ["TL102"]')
    assert rules_at("a.py") == ("TL102",)
    write(".torchlint.toml", 'select = ["TL202"]')
    assert rules_at("a.py") == ("TL202",)


def test_the_closest_file_decides_alone() -> None:
    write("torchlint.toml", 'ignore = ["TL101"]\nworkers = 9')
    write("inner/torchlint.toml", 'ignore = ["TL102"]')
    found = resolver()
    assert rules_at("inner/a.py", found) == ("TL101", "TL202")
    assert found.lint(Path.cwd() / "inner/a.py").workers == 4
    assert rules_at("other/a.py", found) == ("TL102", "TL202")


def test_extend_starts_from_another_file() -> None:
    write("torchlint.toml", 'select = ["TL1"]\nworkers = 9\nextend-exclude = ["a"]')
    write("inner/torchlint.toml", 'extend = "../torchlint.toml"\nignore = ["TL102"]\nextend-exclude = ["b"]')
    found = resolver()
    assert rules_at("inner/a.py", found) == ("TL101",)
    assert found.lint(Path.cwd() / "inner/a.py").workers == 9
    patterns = found.settings(Path.cwd() / "inner").options.extend_exclude
    assert [(pattern.text, pattern.root) for pattern in patterns] == [
        ("a", Path.cwd()),
        ("b", Path.cwd() / "inner"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extend = "missing.toml"', "`extend` names"),
        ('extend = "torchlint.toml"', "in a cycle"),
        ("extend = 3", "`extend` must be a path"),
        ('extend = "pyproject.toml"', "has no `[tool.torchlint]` table"),
    ],
)
def test_an_extend_that_leads_nowhere_is_refused(text: str, message: str) -> None:
    write("pyproject.toml", "[project]\nname = 'x'")
    write("torchlint.toml", text)
    with pytest.raises(ConfigError) as caught:
        resolver()
    assert message in str(caught.value)


def test_the_users_own_file_counts_where_no_project_has_one(home: Path) -> None:
    (home / "torchlint.toml").write_text('select = ["TL202"]')
    assert rules_at("a.py") == ("TL202",)
    write("torchlint.toml", 'select = ["TL101"]')
    assert rules_at("a.py") == ("TL101",)


# --- the command line --------------------------------------------------------------------------------


def test_the_command_line_counts_before_the_file() -> None:
    write("torchlint.toml", 'select = ["TL1"]\nignore = ["TL101"]\nfail-on = "note"\nfix = true')
    found = resolver(select=("TL101",), fix=False)
    assert rules_at("a.py", found) == ("TL101",)
    assert (found.run.options.fail_on, found.run.options.fix) == ("note", False)


def test_what_the_command_line_adds_is_added_to_the_file() -> None:
    write("torchlint.toml", 'select = ["TL1"]')
    assert rules_at("a.py", resolver(extend_select=("TL311",))) == ("TL101", "TL102", "TL311")
    assert rules_at("a.py", resolver(ignore=("TL101",))) == ("TL102",)


def test_inline_config_counts_before_files_and_behind_flags() -> None:
    write("torchlint.toml", 'fail-on = "note"\nworkers = 2\nselect = ["TL1"]')
    found = resolver('fail-on = "error"', "workers = 3", fail_on="warning")
    assert found.run.options.fail_on == "warning"
    assert (found.run.options.workers, rules_at("a.py", found)) == (3, ("TL101", "TL102"))


def test_a_config_file_that_is_named_replaces_those_around_the_files() -> None:
    write("torchlint.toml", 'select = ["TL1"]')
    write("inner/torchlint.toml", 'select = ["TL102"]')
    write("ci.toml", 'select = ["TL202"]')
    assert rules_at("inner/a.py", resolver("ci.toml")) == ("TL202",)


def test_isolated_looks_for_no_file() -> None:
    write("torchlint.toml", 'select = ["TL1"]')
    assert rules_at("a.py", resolver(isolated=True)) == DEFAULT
    assert rules_at("a.py", resolver('select = ["TL202"]', isolated=True)) == ("TL202",)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "torchlint.toml",
            "[tool.torchlint]\nfix = true\n",
            "keys are at the top level, without `[tool.torchlint]`",
        ),
        (
            "pyproject.toml",
            "[tool.torchlint.lint]\nselect = []\n",
            "move the keys of `lint` to the top level",
        ),
        ("pyproject.toml", "[tool.torchlint]\nexclude = ['src\\gen']\n", "separate directories with `/`"),
        ("pyproject.toml", "[tool.torchlint]\nexclude = ['src\\**']\n", "separate directories with `/`"),
    ],
)
def test_habits_of_other_tools_are_answered(name: str, text: str, message: str) -> None:
    write(name, text)
    with pytest.raises(ConfigError) as caught:
        resolver()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("configs", "isolated", "message"),
    [
        (("missing.toml",), False, "neither a file nor TOML"),
        (("fail-on = note",), False, "neither a file nor TOML"),
        (("ci.toml", "ci.toml"), False, "only one file"),
        (("ci.toml",), True, "cannot be combined with `--isolated`"),
        (('extend = "ci.toml"',), False, "`extend` only works in config files"),
        (('selct = ["TL1"]',), False, "unknown key `selct`; did you mean `select`?"),
        (("workers = -1",), False, "expected a non-negative integer"),
        (("pyproject.toml",), False, "has no `[tool.torchlint]` table"),
    ],
)
def test_a_config_flag_that_cannot_be_followed(
    configs: tuple[str, ...], isolated: bool, message: str
) -> None:
    write("ci.toml", "")
    write("pyproject.toml", "")
    with pytest.raises(ConfigError) as caught:
        resolver(*configs, isolated=isolated)
    assert message in str(caught.value)


# --- what a file may say -----------------------------------------------------------------------------


def test_an_unknown_key_is_pointed_at() -> None:
    file = write("pyproject.toml", pyproject("fix = true\nselct = ['TL1']\n"))
    with pytest.raises(ConfigError) as caught:
        resolver()
    assert str(caught.value) == (
        f"{file}, line 6: unknown key `selct`; did you mean `select`?\n  |\n6 | selct = ['TL1']\n  | ^^^^^"
    )


@pytest.mark.parametrize(
    ("text", "row", "marks"),
    [
        ("[tool.ruff.lint]\nselect = ['E']\n[tool.torchlint]\nselect = 'TL'\n", 4, "^^^^^^"),
        ("[tool]\nruff.select = 1\ntorchlint.select = 'TL'\n", 3, "          ^^^^^^"),
        ("tool.torchlint.select = 'TL'\n", 1, "               ^^^^^^"),
        ('[tool."torchlint"]\n"select"= 1\n', 2, " ^^^^^^"),
        ("[tool.torchlint.select]\nx = 1\n", 1, "                ^^^^^^"),
    ],
)
def test_the_key_of_another_tool_is_not_pointed_at(text: str, row: int, marks: str) -> None:
    file = write("pyproject.toml", text)
    with pytest.raises(ConfigError) as caught:
        resolver()
    told = str(caught.value).splitlines()
    assert told[0].startswith(f"{file}, line {row}: invalid value for `select`")
    assert told[-1] == f"  | {marks}"


@pytest.mark.parametrize("text", ["[tool]\ntorchlint = 3\n", "[[tool.torchlint]]\nfix = true\n"])
def test_a_torchlint_that_is_no_table_is_refused(text: str) -> None:
    write("pyproject.toml", text)
    with pytest.raises(ConfigError, match=r", line \d: `tool.torchlint` must be a table\n"):
        resolver()


def test_a_key_far_from_all_others_is_refused_without_a_guess() -> None:
    write("torchlint.toml", "zzzzzz = 1")
    with pytest.raises(
        ConfigError, match=r"line 1: unknown key `zzzzzz`; `torchlint config` lists all keys\n"
    ):
        resolver()


def test_an_unknown_table_is_pointed_at() -> None:
    write("torchlint.toml", "fix = true\n[linter]\nx = 1")
    with pytest.raises(
        ConfigError, match=r", line 2: unknown key `linter`.*\n  \|\n2 \| \[linter\]\n  \|  \^{6}$"
    ):
        resolver()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fix = 1", "invalid value for `fix`: expected true or false, found a number (`1`)"),
        (
            "select = 'TL1'",
            "expected a list of rule codes, code prefixes, rule names or ALL, found a string (`TL1`)",
        ),
        ("select = ['TL1', 2]", "found a list with a number (`2`) in it"),
        ("workers = true", "found a boolean (`true`)"),
        ("fail-on = 'notes'", "`notes` is none of `note`, `warning`, `error`; did you mean `note`?"),
        ("output-format = 'xml'", "`xml` is none of `full`, `concise`"),
        ("target-torch = 'new'", "`new` is not a PyTorch version"),
        ("target-torch = 2.1", 'expected a version such as "2.1"'),
        ("per-file-ignores = ['a']", "expected a table that maps glob patterns to lists of rules"),
        ("per-file-ignores = {'a' = 'TL1'}", "found a table whose `a` is a string (`TL1`)"),
        ("diff = true", "unknown key `diff`"),
    ],
)
def test_a_value_of_the_wrong_kind_is_explained_and_pointed_at(text: str, message: str) -> None:
    write("torchlint.toml", f"\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        resolver()
    assert message in str(caught.value)
    assert ", line 2: " in str(caught.value)


def test_a_file_that_is_no_toml_is_pointed_at() -> None:
    file = write("torchlint.toml", "fix = true\nselect = [TL1]\n")
    with pytest.raises(ConfigError) as caught:
        resolver()
    told = str(caught.value)
    assert told.startswith(f"{file}, line 2: not valid TOML: ")
    assert "\n  |\n2 | select = [TL1]\n  |           ^" in told


def test_a_file_that_is_not_utf8_is_named() -> None:
    (Path.cwd() / "torchlint.toml").write_bytes(b"fix = \xff")
    with pytest.raises(ConfigError, match=r"cannot read .*torchlint\.toml: it is not UTF-8"):
        resolver()


@pytest.mark.parametrize(
    "key",
    ["select", "ignore", "extend-select", "fixable", "unfixable", "extend-safe-fixes", "extend-unsafe-fixes"],
)
def test_an_unknown_selector_is_pointed_at(key: str) -> None:
    write("torchlint.toml", f"{key} = ['TL1', 'TL2O2']\n")
    with pytest.raises(ConfigError) as caught:
        rules_at("a.py")
    told = str(caught.value)
    assert f"unknown rule selector `TL2O2`; did you mean `TL202`? (in `{key}`)\n" in told
    assert ", line 1: " in told


@pytest.mark.parametrize("pattern", ["tests/**", "a.py"])
def test_an_unknown_selector_of_per_file_ignores_is_pointed_at(pattern: str) -> None:
    write("torchlint.toml", f"[per-file-ignores]\n'{pattern}' = ['TL9']\n")
    with pytest.raises(ConfigError, match=r", line 1: unknown rule selector `TL9`.*`per-file-ignores`"):
        rules_at("a.py")


@pytest.mark.parametrize(("required", "fits"), [(">=0.1", True), ("0.0.1", False), (">=99", False)])
def test_the_required_version_is_required(required: str, fits: bool) -> None:
    write("torchlint.toml", f"required-version = '{required}'")
    if fits:
        assert rules_at("a.py") == DEFAULT
    else:
        with pytest.raises(ConfigError, match=f"requires torchlint {required}"):
            resolver()


def test_a_required_version_that_is_none_is_refused() -> None:
    write("torchlint.toml", "required-version = 'newest'")
    with pytest.raises(ConfigError, match="must be a version specifier, not `newest`"):
        resolver()


# --- the settings of a file --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "off"),
    [
        ("tests/**", "tests/a.py", True),
        ("tests/**", "tests/deep/a.py", True),
        ("tests/*", "tests/a.py", True),
        ("tests", "tests/a.py", True),
        ("tests/**", "src/a.py", False),
        ("__init__.py", "src/pkg/__init__.py", True),
        ("*_test.py", "src/x_test.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "lib/src/a.py", False),
        ("/a.py", "a.py", True),
        ("./a.py", "a.py", True),
        ("/a.py", "src/a.py", False),
        ("!src/**", "src/a.py", False),
        ("!src/**", "tests/a.py", True),
    ],
)
def test_per_file_ignores(pattern: str, path: str, off: bool) -> None:
    write("torchlint.toml", f"per-file-ignores = {{ '{pattern}' = ['TL1', 'item-in-hot-loop'] }}")
    assert rules_at(path) == (() if off else DEFAULT)


def test_patterns_are_relative_to_the_file_that_holds_them() -> None:
    write("inner/torchlint.toml", "per-file-ignores = { '/a.py' = ['ALL'] }")
    assert rules_at("inner/a.py") == ()
    assert rules_at("a.py") == DEFAULT


def test_per_file_ignores_that_extend_add_up() -> None:
    write("torchlint.toml", "per-file-ignores = { 'a.py' = ['TL1'] }")
    write(
        "inner/torchlint.toml", "extend = '../torchlint.toml'\nextend-per-file-ignores = { 'a.py' = ['TL2'] }"
    )
    assert rules_at("inner/a.py") == ()


def test_the_target_of_the_config_counts_before_the_declarations() -> None:
    write("requirements.txt", "torch>=2.4\n")
    assert resolver().lint(Path.cwd() / "a.py").target == Target.parse(">=2.4")
    write("torchlint.toml", "target-torch = '1.13'")
    assert resolver().lint(Path.cwd() / "a.py").target == Target.parse("1.13")
    assert resolver(target_torch=Target.parse("2.1")).lint(Path.cwd() / "a.py").target == Target.parse("2.1")


def test_the_most_specific_selector_and_the_last_glob_decide_a_severity() -> None:
    write(
        "torchlint.toml",
        'severity = { "TL202" = "note", "TL1" = "error" }\n'
        'per-file-severity = { "engine/**" = { "TL311" = "error" }, "engine/old/*" = { "ALL" = "note" } }\n',
    )
    found = resolver()

    def severity(path: str, code: str) -> Severity | None:
        return dict(found.lint(Path.cwd() / path).severities).get(code)

    assert severity("a.py", "TL202") is Severity.NOTE
    assert severity("a.py", "TL101") is Severity.ERROR
    assert severity("a.py", "TL311") is None
    assert severity("engine/a.py", "TL311") is Severity.ERROR
    assert severity("engine/a.py", "TL202") is Severity.NOTE
    assert {severity("engine/old/a.py", code) for code in RULES} == {Severity.NOTE}


@pytest.mark.parametrize(
    "text",
    [
        'severity = { "TL2O2" = "error" }',
        'per-file-severity = { "a.py" = { "TL2O2" = "error" } }',
        'suppression-markers = { "ok" = ["TL2O2"] }',
    ],
)
def test_unknown_selectors_of_severities_and_markers_are_pointed_at(text: str) -> None:
    write("torchlint.toml", text)
    with pytest.raises(ConfigError, match="line 1: unknown rule selector `TL2O2`"):
        resolver().lint(Path.cwd() / "a.py")


def test_fix_grades_reach_the_settings() -> None:
    write(
        "torchlint.toml",
        "unfixable = ['TL2']\nextend-safe-fixes = ['loader-without-workers']\n"
        "extend-unsafe-fixes = ['TL2']\nunsafe-fixes = true\nworkers = 8\n",
    )
    lint = resolver().lint(Path.cwd() / "a.py")
    assert lint.fixable == {"TL101", "TL102", "TL311"}
    assert lint.extend_safe_fixes == {"TL101"}
    assert lint.extend_unsafe_fixes == {"TL202"}
    assert (lint.unsafe_fixes, lint.workers, lint.ignore_noqa) == (True, 8, False)


def test_files_with_the_same_settings_share_them() -> None:
    found = resolver()
    assert found.lint(Path.cwd() / "a.py") is found.lint(Path.cwd() / "deep/b.py")


# --- the dataclass is the one source -----------------------------------------------------------------


def test_every_option_is_described_and_every_key_has_a_valid_example() -> None:
    for name, setting in options.settings().items():
        assert setting.help.endswith("."), name
        assert setting.cli or setting.config, name
        if setting.config:
            layer = config.inline(setting.example, Path.cwd())
            assert list(layer.values) == [name]


def test_the_default_of_every_choice_is_one_of_them() -> None:
    for name, setting in options.settings().items():
        if setting.choices:
            assert options.defaults()[name] in setting.choices
