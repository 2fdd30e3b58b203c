"""The rules: found by their files, read without LibCST, the same either way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import install
from torchlint import registry
from torchlint.diagnostics import Severity
from torchlint.registry import RegistryError

PLAIN = '''
import libcst as cst
from torchlint.rule import NOTE, rule

@rule("ZZ101", "plain-declaration", severity=NOTE, fix="safe", on=cst.Call, mentions=("a|b", "c"),
      opt_in=True, remedy="Do " "better")
def plain_declaration(call, module):
    """## What it does

    Finds nothing. Never did.

    ## Why is this bad?

    It is not.
    """
    yield from ()
'''
COMPUTED = '''
import libcst as cst
from torchlint.rule import WARNING, rule

WORDS = ("x", "y")

@rule("ZZ102", "computed-declaration", severity=WARNING, fix="none", on=(cst.Call, cst.Name), mentions=WORDS)
def computed_declaration(node, module):
    """## What it does

    Computes.
    """
    yield from ()
'''


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed rule pack, `zz_rules`, and a registry that knows nothing yet."""
    package = tmp_path / "zz_rules"
    package.mkdir()
    (package / "__init__.py").write_text("")
    install(tmp_path, "zz_rules", "zz_rules")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.forget()
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "zz_rules"]:
        del sys.modules[name]
    registry.forget()


def test_the_catalogue_says_what_the_imported_rules_say() -> None:
    rules, catalogue = registry.rules(), registry.catalogue()
    assert list(rules) == list(catalogue) == sorted(rules)
    for code, rule in rules.items():
        read = catalogue[code]
        facts = ("code", "name", "severity", "fix", "mentions", "opt_in", "page", "summary", "remedy")
        assert {name: getattr(read, name) for name in facts} == {name: getattr(rule, name) for name in facts}


def test_one_rule_is_the_same_as_among_all(pack: Path) -> None:
    (pack / "rules.py").write_text(PLAIN)
    (pack / "more.py").write_text(COMPUTED)
    registry.catalogue.cache_clear()
    for code, rule in registry.rules().items():
        assert registry.rule(code) is rule
    assert {"ZZ101", "ZZ102"} <= registry.rules().keys()
    with pytest.raises(KeyError):
        registry.rule("ZZ999")


def test_a_rule_imports_no_other() -> None:
    code = (
        "import sys; from torchlint import registry; registry.rule('TL403')\n"
        "print(*(n for n, m in sys.modules.items() if '.rules.' in n and not hasattr(m, '__path__')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stdout.split()
    own = "torchlint.rules.model.attention_weights_unused"
    assert f"{own}.rule" in names
    shared = ["torchlint.rules.model.causality", "torchlint.rules.model.unpacking"]
    assert [name for name in names if not name.startswith(own)] == shared


def test_the_catalogue_does_not_import_libcst() -> None:
    code = (
        "import sys; from torchlint import registry; registry.catalogue(); assert 'libcst' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_rule_pack_is_found(pack: Path) -> None:
    (pack / "plain.py").write_text(PLAIN)
    (pack / "computed.py").write_text(COMPUTED)
    rules = registry.rules()
    assert rules["ZZ101"].name == "plain-declaration"
    assert [kind.__name__ for kind in rules["ZZ102"].on] == ["Call", "Name"]
    read = registry.catalogue()
    assert (read["ZZ101"].mentions, read["ZZ101"].opt_in) == (("a|b", "c"), True)
    assert read["ZZ101"].severity is Severity.NOTE
    assert (read["ZZ101"].remedy, read["ZZ102"].remedy) == ("Do better", None)
    assert read["ZZ101"].summary == "Finds nothing."
    assert read["ZZ102"].mentions == ("x", "y")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import NOTE, rule\n\n@rule", "import NOTE, rule as declare\n\n@declare"),
        ("\n@rule", "\nimport torchlint.rule\n\n@torchlint.rule.rule"),
        ('    """## What', '    r"""## What'),
        ('"""', "'''"),
        ("severity=NOTE", '**{"severity": NOTE}'),
    ],
)
def test_other_ways_to_write_a_declaration_are_imported(pack: Path, old: str, new: str) -> None:
    assert old in PLAIN
    (pack / "other.py").write_text(PLAIN.replace(old, new))
    assert registry.catalogue()["ZZ101"].summary == "Finds nothing."


def test_helper_modules_are_not_imported_for_the_catalogue(pack: Path) -> None:
    (pack / "plain.py").write_text(PLAIN)
    (pack / "helper.py").write_text("from torchlint.rule import Finding\nraise RuntimeError('imported')\n")
    assert registry.catalogue()["ZZ101"].code == "ZZ101"


def test_what_was_read_for_its_documentation_cannot_be_run(pack: Path) -> None:
    (pack / "plain.py").write_text(PLAIN)
    with pytest.raises(TypeError, match="documentation only"):
        registry.catalogue()["ZZ101"].check(None, None)  # type: ignore[arg-type]


def test_bench_cases_are_not_imported(pack: Path) -> None:
    (pack / "plain.py").write_text(PLAIN)
    cases = pack / "cases"
    cases.mkdir()
    (cases / "__init__.py").write_text("raise RuntimeError('needs torch')")
    assert "ZZ101" in registry.rules()


def test_a_rule_is_owned_by_the_module_that_declares_it(pack: Path) -> None:
    (pack / "plain.py").write_text(PLAIN)
    (pack / "other.py").write_text("from zz_rules.plain import plain_declaration\n")
    assert "ZZ101" in registry.rules()


@pytest.mark.parametrize("listing", [registry.rules, registry.catalogue])
def test_two_rules_with_one_code_are_an_error(pack: Path, listing: object) -> None:
    (pack / "one.py").write_text(PLAIN)
    (pack / "two.py").write_text(PLAIN.replace("plain", "plainer"))
    with pytest.raises(RegistryError, match="two rules are called `ZZ101`"):
        listing()  # type: ignore[operator]


def test_a_pack_that_does_not_load_is_named(pack: Path) -> None:
    (pack / "broken.py").write_text("from torchlint.rule import Rule\nimport no_such_module_anywhere\n")
    with pytest.raises(RegistryError, match=r"zz_rules\.broken.*no_such_module_anywhere"):
        registry.rules()


def test_a_pack_that_is_not_there_is_named(pack: Path) -> None:
    entry_points = pack.parent / "zz_rules-1.0.dist-info" / "entry_points.txt"
    entry_points.write_text("[torchlint.rules]\nzz = yy_missing\n")
    with pytest.raises(RegistryError, match=r"rule pack `zz`.*yy_missing"):
        registry.catalogue()
