"""The JSON schema: it takes the configs that torchlint takes, and refuses those that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
from hypothesis import strategies
from validate_pyproject import api, errors
from validate_pyproject.plugins import PluginWrapper
from validate_pyproject.types import Schema

from torchlint import config, options, schema, toml
from torchlint.config import ConfigError, Resolver
from torchlint.dev import ROOT
from torchlint.options import Kind
from torchlint.registry import catalogue

VALIDATOR = jsonschema.Draft7Validator(schema.document(catalogue()))


@pytest.fixture(scope="module", autouse=True)
def work(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A working directory without a config around it, and with a file to extend."""
    root = tmp_path_factory.mktemp("work")
    (root / "base.toml").write_text("", encoding="utf-8")
    patch = pytest.MonkeyPatch()
    patch.chdir(root)
    patch.setattr(config, "user_config", lambda: None)
    yield
    patch.undo()


def followed(document: dict[str, Any]) -> bool:
    """Whether torchlint can follow a config that says this."""
    path = Path.cwd() / "torchlint.toml"
    lines = [f"{json.dumps(key)} = {_toml(value)}\n" for key, value in document.items()]
    path.write_text("".join(lines), encoding="utf-8")
    assert toml.loads(path.read_text(encoding="utf-8")) == document
    try:
        Resolver(catalogue()).lint(Path.cwd() / "a.py")
    except ConfigError:
        return False
    return True


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


GOOD: list[dict[str, Any]] = [
    {},
    {"extend": "base.toml"},
    {"select": ["ALL"], "ignore": ["TL", "TL2", "TL20", "TL202", "item-in-hot-loop"]},
    {"select": [], "fixable": [], "exclude": [], "per-file-ignores": {}},
    {"per-file-ignores": {"tests/**": ["TL2"], "!src/*.py": [], "*.py": ["ALL"], "a\\ ": ["TL1"]}},
    {"exclude": ["*", "/a", "!b", "[ab]", "a\\*", "a\\\\"]},
    {"workers": 0, "fix": True, "fail-on": "error", "output-format": "json-lines"},
    {"severity": {"TL2": "error", "item-in-hot-loop": "note", "ALL": "warning"}},
    {"per-file-severity": {"engine/**": {"TL2": "error"}, "!a.py": {}}},
    {"extension": {"ipy": "ipynb", "py3": "python", "c++": "python"}},
    {"suppression-markers": {"gpu-sync-ok": ["TL2", "TL513"], "OK_1": []}},
    {"allowed-sync-contexts": ["gpu_sync_allowed", "utils.*", "self.allow_*"], "host-names": []},
    *({"target-torch": text} for text in ("2", "2.1", " 2.1 ", "v2.1.0rc1", "2.6.0+cu124", "unknown")),
    *({"target-torch": text} for text in (">=2.1", ">= 2.1 , < 2.6,", "~=2.1", "==2.*", "===2.1", ",>2")),
    *({"required-version": text} for text in ("", ">=0.0.1", ">=0.0.1,!=0.0.2")),
]
BAD: list[dict[str, Any]] = [
    {"slect": ["TL"]},
    {"extend": 1},
    {"extend": ["base.toml"]},
    {"diff": True},
    {"jobs": 2},
    {"select": "TL"},
    {"select": ["TL", 1]},
    *({"select": [word]} for word in ("", "tl202", "TL2O2", "TL99", "TL2-", "Item-in-loop", "TL202,TL301")),
    {"per-file-ignores": ["TL2"]},
    {"per-file-ignores": {"a.py": "TL2"}},
    {"extend-per-file-ignores": {"a.py": ["TL2O2"]}},
    {"per-file-ignores": {"a\\": ["TL2"]}},
    {"exclude": "build"},
    {"severity": {"TL2": "fatal"}},
    {"severity": {"TL2O2": "error"}},
    {"severity": {"TL2": 1}},
    {"severity": ["TL2"]},
    {"per-file-severity": {"a.py": "error"}},
    {"extension": ["ipy:ipynb"]},
    *({"extension": {suffix: "python"}} for suffix in ("", ".ipy", "*", "a.b", "yml", "JSON")),
    *({"extension": {"ipy": language}} for language in ("notebook", "pyi", 1)),
    {"per-file-severity": {"a\\": {"TL2": "error"}}},
    *({"suppression-markers": {word: ["TL2"]}} for word in ("", "noqa", "NoQA", "torchlint", "a b", "1a")),
    {"suppression-markers": {"ok": "TL2"}},
    *({"allowed-sync-contexts": [word]} for word in ("", "a b", "f()", ".a", "a.", "1a")),
    {"known-async-helpers": "h2d"},
    {"exclude": ["a\\"]},
    {"exclude": ["src\\gen"]},
    {"exclude": ["src\\**"]},
    {"exclude": ["\\\\\\"]},
    {"workers": -1},
    {"workers": 1.5},
    {"workers": "4"},
    {"workers": True},
    {"fix": 1},
    {"fix": "true"},
    {"fail-on": "notes"},
    {"output-format": "xml"},
    *({"target-torch": text} for text in ("", "new", "2.x", ">2.1+cu118", "~=2", ">=2.*", "=>2", "2.1,2.2")),
    {"target-torch": 2.1},
    *({"required-version": text} for text in ("newest", " >=0.1", "=0.1", ",>=0.1")),
    {"required-version": 1},
]  # fmt: skip


@pytest.mark.parametrize("document", GOOD, ids=str)
def test_what_torchlint_follows_is_valid(document: dict[str, Any]) -> None:
    assert followed(document)
    VALIDATOR.validate(document)


@pytest.mark.parametrize("document", BAD, ids=str)
def test_what_torchlint_refuses_is_invalid(document: dict[str, Any]) -> None:
    assert not followed(document)
    assert not VALIDATOR.is_valid(document)


WORDS = strategies.sampled_from(
    ["TL", "TL1", "TL202", "ALL", "item-in-hot-loop", "a/", "*.py", "\\", "note", "full", "2.1", ">=2.1", ""]
)  # fmt: skip
VALUES = strategies.one_of(
    strategies.booleans(),
    strategies.integers(-2, 9),
    WORDS,
    strategies.lists(WORDS | strategies.integers(0, 1), max_size=3),
    strategies.dictionaries(WORDS, WORDS | strategies.lists(WORDS, max_size=2), max_size=2),
)


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
@hypothesis.given(strategies.data())
def test_the_schema_and_torchlint_agree(data: strategies.DataObject) -> None:
    keys = strategies.sampled_from([*options.config_keys(), "unknown"])
    document = {data.draw(keys): data.draw(VALUES)}
    # A name that no rule has may be that of another rule pack: torchlint knows, the schema cannot.
    hypothesis.assume(not {"a", "note", "full"} & _selectors(document))
    assert VALIDATOR.is_valid(document) is followed(document)


def _selectors(document: dict[str, Any]) -> set[str]:
    """The words that stand where selectors are wanted."""
    found: set[str] = set()
    for key, value in document.items():
        kind = options.settings()[options.config_keys()[key]].kind if key != "unknown" else None
        lists = [value] if kind is Kind.RULES else []
        if kind in (Kind.RULES_BY_PATTERN, Kind.RULES_BY_MARKER) and isinstance(value, dict):
            lists = list(value.values())
        if kind is Kind.SEVERITIES and isinstance(value, dict):
            lists = [list(value)]
        found |= {
            word for words in lists if isinstance(words, list) for word in words if isinstance(word, str)
        }
    return found


def test_the_rules_of_other_packs_are_let_through() -> None:
    for word in ("ZZ", "ZZ1", "ZZ101", "TLX1", "rule-of-a-pack"):
        VALIDATOR.validate({"select": [word], "per-file-ignores": {"a.py": [word]}})


def test_an_option_that_is_valid_by_default_is_valid_when_it_is_said() -> None:
    shown = schema.document(catalogue())["properties"]
    for key, item in shown.items():
        VALIDATOR.validate({key: item["examples"][0]})
        if "default" in item:
            VALIDATOR.validate({key: item["default"]})
    assert set(shown) == {*options.config_keys(), "extend"}


def test_the_schema_is_a_schema() -> None:
    document = schema.document(catalogue())
    jsonschema.Draft7Validator.check_schema(document)
    known = document["definitions"]["rule"]["anyOf"][0]
    assert len(known["enum"]) == len(set(known["enum"])) == len(known["x-taplo"]["docs"]["enumValues"])
    assert {"ALL", "TL", "TL2", "TL20", "TL202", "item-in-hot-loop"} <= set(known["enum"])


@pytest.mark.parametrize(
    ("table", "valid"),
    [({"select": ["TL1"], "workers": 8}, True), ({"workers": "8"}, False), ({"selct": ["TL1"]}, False)],
)
def test_validate_pyproject_checks_the_table(table: dict[str, Any], valid: bool) -> None:
    plugin = PluginWrapper("torchlint", lambda tool: Schema(schema.get_schema(tool)))
    validate = api.Validator([plugin])
    document = {"project": {"name": "x", "version": "1"}, "tool": {"torchlint": table}}
    if valid:
        assert validate(document) == document
    else:
        with pytest.raises(errors.ValidationError, match=r"tool\.torchlint"):
            validate(document)


def test_validate_pyproject_finds_the_schema_by_its_entry_point() -> None:
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (named,) = project["entry-points"]["validate_pyproject.tool_schema"].items()
    assert named == ("torchlint", f"{schema.__name__}:{schema.get_schema.__name__}")
    assert schema.get_schema("torchlint") == schema.document(catalogue())
