"""What holds for the whole project: the direction of imports, and that rules, fixtures and docs agree."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from torchlint.checker import check
from torchlint.dev import ROOT, codes, pages, peers
from torchlint.dev.__main__ import GENERATORS
from torchlint.dev.layers import LAYERS, MODEL_LAYERS, below, imported, module_name
from torchlint.diagnostics import Diagnostic
from torchlint.registry import catalogue, rules
from torchlint.rule import Rule
from torchlint.testing import cases

# What the rules may see of the rest of torchlint.
RULES_SEE = (
    *(
        "torchlint.diagnostics",
        "torchlint.fixes",
        "torchlint.messages",
        "torchlint.rule",
        "torchlint.rules",
        "torchlint.semantics",
        "torchlint.syntax",
    ),
    *("torchlint.source", "torchlint.target"),
)
TERMINAL = {"click", "rich"}

SECTIONS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "Fix safety",
    "References",
)


# --- imports ---------------------------------------------------------------------------------------------


def rank(name: str) -> int | None:
    """The layer that a module belongs to; None for the bare package."""
    if name == "torchlint":
        return None
    found = [number for number, layer in enumerate(LAYERS) if any(below(name, part) for part in layer)]
    assert len(found) == 1, f"{name} has no layer: give it its place in torchlint/dev/layers.py"
    return found[0]


ENGINE = sorted((ROOT / "torchlint").rglob("*.py"))
CASE_FILES = sorted((ROOT / "rules").glob("*/cases/*.py"))
RULE_FILES = sorted(set((ROOT / "rules").rglob("*.py")) - set(CASE_FILES))


@pytest.mark.parametrize("path", ENGINE, ids=module_name)
def test_imports_point_downwards(path: Path) -> None:
    name = module_name(path)
    own = rank(name)
    for module, line in imported(path):
        if below(module, "torchlint") and own is not None:
            theirs = rank(module)
            assert theirs is None or theirs <= own, f"{path}:{line}: {name} imports {module}"
        top = module.partition(".")[0]
        if not (below(name, "torchlint.verify.worker") or name == "torchlint.environment.asked"):
            assert top != "torch", f"{path}:{line}: only processes of their own import torch"
        if top in TERMINAL:
            assert below(name, "torchlint.commands") or name == "torchlint.cli", f"{path}:{line}: {module}"


def model_rank(name: str) -> int:
    """The layer of the model that one of its modules belongs to; facts of domains are above all others."""
    part = name.split(".")[2]
    found = [number for number, layer in enumerate(MODEL_LAYERS.values()) if part in layer]
    return found[0] if found else len(MODEL_LAYERS)


MODEL_FILES = [
    path for path in ENGINE if below(module_name(path), "torchlint.semantics") and path.stem != "__init__"
]


@pytest.mark.parametrize("path", MODEL_FILES, ids=module_name)
def test_the_layers_of_the_model_point_downwards(path: Path) -> None:
    name = module_name(path)
    for module, line in imported(path, for_types=True):
        if below(module, "torchlint.semantics") and module != "torchlint.semantics":
            assert model_rank(module) <= model_rank(name), f"{path}:{line}: {name} imports {module}"


def test_every_layer_of_the_model_holds_modules_that_there_are() -> None:
    there = {module_name(path).split(".")[2] for path in MODEL_FILES}
    assert [part for layer in MODEL_LAYERS.values() for part in layer if part not in there] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {module_name(path): path for path in (*ENGINE, *RULE_FILES)}
    graph = {
        name: {module for module, _ in imported(path, for_types=True) if module in modules} - {name}
        for name, path in modules.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("path", ENGINE, ids=module_name)
def test_only_rules_import_by_relative_names(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute"


@pytest.mark.parametrize("path", RULE_FILES, ids=module_name)
def test_rules_see_only_the_model(path: Path) -> None:
    for module, line in imported(path):
        top = module.partition(".")[0]
        seen = any(below(module, part) for part in RULES_SEE)
        assert seen or top == "libcst" or top in sys.stdlib_module_names, f"{path}:{line}: {module}"


# What only a tree with its layout has: whoever asks for it has the file parsed in full.
LAYOUT = {"lpar", "rpar", "leading_lines", "trailing_whitespace", "header", "footer", "comma", "semicolon"}


def test_what_is_remembered_is_remembered_with_the_files_that_it_rests_on() -> None:
    """``functools`` knows of no files: whoever asked second would not be told what the answer depends on."""
    folders = (ROOT / "torchlint" / "semantics", ROOT / "rules")
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        taken = [
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module == "functools"
            for alias in node.names
        ]
        assert "cached_property" not in taken, path


def test_neither_rules_nor_the_model_ask_nodes_for_their_layout() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
        for path in [*RULE_FILES, *(ROOT / "torchlint" / "semantics").rglob("*.py")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in LAYOUT
    ]
    assert found == []


SEMANTICS = sorted((ROOT / "torchlint" / "semantics").glob("*.py"))


def owner(name: str) -> str:
    """The rule, or the family if it belongs to several of its rules, whose module of ``rules/`` this is."""
    path = ROOT / Path(*name.split(".")[1:4])
    return ".".join(name.split(".")[: 4 if (path / "rule.py").exists() else 3])


@pytest.mark.parametrize("path", RULE_FILES, ids=module_name)
def test_rules_see_only_their_own_family(path: Path) -> None:
    own = module_name(path)
    for module, line in imported(path):
        if below(module, "torchlint.rules"):
            theirs = owner(module)
            assert below(own, theirs), f"{path}:{line}: {module} belongs to {theirs}"


def users_in_rules() -> dict[str, set[str]]:
    """The rules that import each module of the model or of ``rules/``, those of a folder as one."""
    users: dict[str, set[str]] = {module_name(path): set() for path in (*SEMANTICS, *RULE_FILES)}
    for path in (*ENGINE, *RULE_FILES):
        name = module_name(path)
        user = name if not below(name, "torchlint.rules") else rule_of(name)
        for module, _ in imported(path):
            if module in users and module != name:
                users[module].add(user)
    return users


def rule_of(name: str) -> str:
    """The folder of a rule that a module of ``rules/`` is in, or else the module itself."""
    whose = owner(name)
    return whose if whose.count(".") == 3 else name


def test_what_only_one_rule_asks_stands_with_the_rule() -> None:
    declared = {rule_of(module_name(path)) for rule in catalogue().values() if (path := rule_file(rule))}
    alone = {
        module: next(iter(by))
        for module, by in users_in_rules().items()
        if len(by) == 1 and next(iter(by)) in declared and rule_of(module) not in by
    }
    assert alone == {}


def test_what_only_one_family_asks_stands_with_the_family() -> None:
    families = {
        module: {owner(user).split(".")[2] for user in by if below(user, "torchlint.rules")}
        for module, by in users_in_rules().items()
        if below(module, "torchlint.semantics") and by and all(below(user, "torchlint.rules") for user in by)
    }
    assert {module: by for module, by in families.items() if len(by) == 1} == {}


@pytest.mark.parametrize("path", CASE_FILES, ids=module_name)
def test_cases_are_programs_of_their_own(path: Path) -> None:
    for module, line in imported(path):
        top = module.partition(".")[0]
        assert top == "torch" or top in sys.stdlib_module_names, f"{path}:{line}: {module}"


def test_what_needs_no_parser_does_not_import_it() -> None:
    code = (
        "import sys, torchlint.cli, torchlint.config, torchlint.files, torchlint.registry, torchlint.target\n"
        "torchlint.registry.catalogue()\n"
        "print(sorted({'libcst', 'torch', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# --- rules, fixtures, docs -------------------------------------------------------------------------------


def stem(rule: Rule) -> str:
    """The name of a rule as files and functions spell it."""
    return rule.name.replace("-", "_")


def rule_file(rule: Rule) -> Path | None:
    """The one file, or the ``rule.py`` of the one folder, under rules/ named after the rule."""
    found = [*(ROOT / "rules").glob(f"*/{stem(rule)}.py"), *(ROOT / "rules").glob(f"*/{stem(rule)}/rule.py")]
    return found[0] if len(found) == 1 else None


ALL_RULES = [pytest.param(rule, id=code) for code, rule in catalogue().items()]
# The linter's own rules are found by the engine, not by a function over nodes of their own file.
OWN_FILE = [pytest.param(rule, id=code) for code, rule in catalogue().items() if not code.startswith("TL0")]


def test_every_promised_rule_exists() -> None:
    declared = {code: codes.Promise.of(rule) for code, rule in rules().items()}
    assert declared == codes.frozen(), "is a rule new? run `make generate`"


def test_the_catalogue_read_without_the_parser_is_the_catalogue() -> None:
    def told(rule: Rule) -> tuple[object, ...]:
        return rule.name, rule.page, rule.mentions, rule.remedy

    assert {code: told(rule) for code, rule in catalogue().items()} == {
        code: told(rule) for code, rule in rules().items()
    }


@pytest.mark.parametrize("rule", OWN_FILE)
def test_a_rule_is_one_file_named_after_it(rule: Rule) -> None:
    path = rule_file(rule)
    assert path is not None, f"rules/<family>/{stem(rule)}.py, or a folder of that name with rule.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    declared = [
        function.name
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        and any(
            isinstance(mark, ast.Call) and ast.unparse(mark.func) == "rule"
            for mark in function.decorator_list
        )
    ]
    assert declared == [stem(rule)]


@pytest.mark.parametrize("rule", OWN_FILE)
def test_a_rule_has_its_fixtures(rule: Rule) -> None:
    directory = ROOT / "fixtures" / f"{rule.code}_{stem(rule)}"
    names = {path.name for path in directory.glob("*.py")}
    assert {"bad.py", "good.py"} <= names
    assert rule.fix == "none" or any(name.endswith(".fixed.py") for name in names)
    for name in names:
        twin = re.sub(r"\.(fixed|followed)\.py$", ".py", name)
        if twin != name:
            assert twin.startswith("bad") and twin in names, f"{name} has no bad twin"
        else:
            assert re.fullmatch(r"(bad|good)(_\w+)?\.py", name), name


def test_no_fixture_lacks_its_rule() -> None:
    known = {f"{rule.code}_{stem(rule)}" for rule in catalogue().values()}
    found = {path.name for path in (ROOT / "fixtures").iterdir() if re.match(r"TL[0-9]{3}_", path.name)}
    assert found <= known


@pytest.mark.parametrize("rule", ALL_RULES)
def test_a_rule_is_documented(rule: Rule) -> None:
    titles = re.findall(r"^## (.+)$", rule.page, re.MULTILINE)
    assert tuple(titles) == SECTIONS
    bodies = re.split(r"^## .+$", rule.page, flags=re.MULTILINE)[1:]
    assert all(body.strip() for body in bodies)
    assert rule.summary.endswith("."), rule.summary
    examples = re.findall(r"```python\n(.*?)```", rule.page, re.DOTALL)
    if not rule.code.startswith("TL0"):
        assert len(examples) >= 2, "an example and what to use instead"
        for example in examples:
            ast.parse(example)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_a_rule_is_named_after_the_bad_pattern(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)
    assert not rule.name.startswith(("no-", "use-", "avoid-", "banned-", "disallow-"))
    assert re.fullmatch(r"TL[0-9]{3}", rule.code)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_a_rule_is_told_of_where_users_look(rule: Rule) -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"`{rule.name}`\s+\({rule.code}[;,) ]", changes), "not in the changelog"
    for path in ("README.md", "docs/rules/README.md"):
        listed = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"\b{rule.code}\b.*\b{rule.name}\b", listed), f"not in {path}: run `make generate`"
    assert rule.name in (ROOT / "docs" / "rules" / f"{rule.code}.md").read_text(encoding="utf-8")


def test_the_command_lists_the_whole_catalogue() -> None:
    command = [sys.executable, "-m", "torchlint", "rule", "--all", "--output-format", "json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found = {rule["code"]: codes.Promise(rule["name"], rule["severity"], rule["fix"]) for rule in listed}
    assert found == codes.frozen()


def test_the_generated_docs_are_current() -> None:
    for generator in GENERATORS:
        for path, text in generator().items():
            assert path.exists() and path.read_text(encoding="utf-8") == text, f"{path}: run `make generate`"
    assert [*pages.orphans(), *peers.orphans()] == []


# --- messages --------------------------------------------------------------------------------------------


@cache
def said(code: str) -> tuple[Diagnostic, ...]:
    """Everything that the fixtures of a rule make it say."""
    directory = ROOT / "fixtures" / f"{code}_{stem(catalogue()[code])}"
    return tuple(
        diagnostic
        for case in cases(directory)
        if case.path.name.startswith("bad")
        for diagnostic in check(case.source, case.settings)
        if diagnostic.code == code
    )


@pytest.mark.parametrize("rule", OWN_FILE)
def test_messages_keep_the_convention(rule: Rule) -> None:
    diagnostics = said(rule.code)
    assert diagnostics
    for diagnostic in diagnostics:
        where = f"{diagnostic.path}:{diagnostic.start.row}: {diagnostic.message}"
        texts = [diagnostic.message, *(remark for _, remark in diagnostic.related)]
        assert diagnostic.help is not None, f"{where}: which edit satisfies the rule?"
        assert diagnostic.help[0].isupper(), f"{where}: {diagnostic.help}"
        texts.append(diagnostic.help)
        for text in texts:
            assert text == text.strip() and "\n" not in text, where
            assert not text.endswith((".", "!", ":")), where
            assert text.count("`") % 2 == 0, where
            # No figure that nobody measured.
            assert not re.search(r"\d\s*(%|percent|x faster|times faster)", text), where


@pytest.mark.parametrize("rule", OWN_FILE)
def test_a_finding_without_a_fix_has_a_remedy(rule: Rule) -> None:
    """Told from the source: a finding is given a fix or a remedy, or the rule has one for all."""
    path = rule_file(rule)
    assert path is not None
    made = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"
    ]
    assert made
    for call in made:
        given = {keyword.arg for keyword in call.keywords}
        fixed = rule.fix != "none" and ("fix" in given or len(call.args) > 2)
        assert rule.remedy or fixed or "remedy" in given, f"{path}:{call.lineno}"


# --- the project itself ----------------------------------------------------------------------------------


def test_nothing_is_left_for_later(project_files: list[Path]) -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX)\b|\bpytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b")
    # No package index has a browser: without one on the machine nobody can look at the report.
    needs_a_browser = ROOT / "tests" / "verify" / "test_report.py"
    for path in project_files:
        if path == needs_a_browser:
            assert len(words.findall(path.read_text(encoding="utf-8"))) == 1
        elif path.suffix in {".py", ".toml", ".md", ".yaml", ""} and path != Path(__file__):
            found = words.search(path.read_text(encoding="utf-8", errors="replace"))
            assert found is None, f"{path}: {found[0] if found else ''}"


def test_torchlint_on_itself_is_clean() -> None:
    """Each file by itself: `make lint` checks them as a project, which takes several times as long, and shows
    what calls the functions that seem to be for others here.
    """
    checked = ["setup.py", "torchlint", "rules", "tests", "benchmarks"]
    run = subprocess.run(
        [sys.executable, "-m", "torchlint", "check", "--no-project", *checked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    low = "3 findings of low impact are not shown; `--impact low` shows them.\n"
    assert (run.returncode, run.stdout) == (0, f"All checks passed!\n{low}")
