"""The JSON schema of the configuration, made from the options, for editors and validate-pyproject.

It takes what `torchlint.config` takes and refuses what it refuses, so far as JSON can tell: a misspelt rule
name is let through, since it may be that of a rule pack, and so is ``4.0`` for a whole number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from torchlint import options, toml
from torchlint.diagnostics import Severity
from torchlint.options import EXTEND, Kind, Setting
from torchlint.rule import Rule
from torchlint.selectors import ALL

FILE_NAME = "torchlint.schema.json"
"""The name under which the schema of the built-in rules lies beside this module."""

# The name that it would have in SchemaStore. Nothing is downloaded: it is what references start from.
_ID = "https://json.schemastore.org/torchlint.json"


def get_schema(tool_name: str = "torchlint") -> dict[str, Any]:
    """Return the schema of ``[tool.torchlint]`` as validate-pyproject asks for it, by an entry point."""
    from importlib.resources import files

    text = files("torchlint").joinpath(FILE_NAME).read_text(encoding="utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped


def render(rules: Mapping[str, Rule]) -> str:
    """Return the schema as the text of a file; ``rules`` are those that selectors are offered of."""
    return json.dumps(document(rules), indent=2, ensure_ascii=False) + "\n"


def document(rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Return the schema; editors offer the codes, prefixes and names of ``rules``,
    and take those of other packs.
    """
    defaults, settings = options.defaults(), options.settings()
    properties = {
        key: _property(key, settings[name], options.plain(name, defaults[name]))
        for key, name in options.config_keys().items()
    }
    properties["extend"] = _property("extend", EXTEND, None)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": _ID,
        "title": "torchlint",
        "description": "The table `[tool.torchlint]` of pyproject.toml, or a whole torchlint.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
        "definitions": {"rule": _rule(rules), "glob": _GLOB},
    }


def _property(key: str, setting: Setting, default: Any) -> dict[str, Any]:
    made = {"description": setting.help, **_shape(setting)}
    if default not in (None, ""):
        made["default"] = default
    return {**made, "examples": [toml.loads(setting.example)[key]]}


def _shape(setting: Setting) -> dict[str, Any]:
    if setting.kind is Kind.CHOICE:
        return {"type": "string", "enum": list(setting.choices)}
    return _SHAPES[setting.kind]


def _rule(rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Return a selector: one that is known, or one that may be a rule pack's."""
    prefixes = {code[:end] for code in rules for end in range(_letters(code), len(code))}
    said = {
        ALL: "Every rule, including opt-in rules.",
        **{prefix: f"All rules whose code begins with {prefix}." for prefix in sorted(prefixes)},
        **{code: f"{rule.name}: {rule.summary}" for code, rule in rules.items()},
        **{rule.name: f"{code}: {rule.summary}" for code, rule in rules.items()},
    }
    own = sorted({code[: _letters(code)] for code in rules})
    return {
        "description": "A rule code, a code prefix, a rule name, or ALL.",
        "anyOf": [
            # Even Better TOML shows these texts beside the words that it offers.
            {"enum": list(said), "x-taplo": {"docs": {"enumValues": list(said.values())}}},
            {
                "description": "A code of another rule pack, or a prefix of its codes.",
                "type": "string",
                "pattern": "^[A-Z]+[0-9]*$",
                "not": {"pattern": f"^({'|'.join(own)})[0-9]*$"},
            },
            {
                "description": "The name of a rule of another rule pack.",
                "type": "string",
                "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
                "not": {"pattern": "^[a-z]+[0-9]+$"},
            },
        ],
    }


def _letters(code: str) -> int:
    match = re.match(r"[A-Z]+", code)
    return match.end() if match else 0


# --- versions, as PEP 440 spells them -----------------------------------------------------------------------


def _any_case(pattern: str) -> str:
    """Return ``pattern`` with both cases of each letter:
    the regular expressions of JSON schemas have no flags.
    """
    return re.sub(r"[a-z]", lambda match: f"[{match[0]}{match[0].upper()}]", pattern)


_RELEASE = _any_case("v?") + "([0-9]+!)?[0-9]+([.][0-9]+)*"
_SUFFIX = _any_case(
    "([-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]*)?(-[0-9]+|[-_.]?(post|rev|r)[-_.]?[0-9]*)?"
    "([-_.]?dev[-_.]?[0-9]*)?"
)
_LOCAL = "([+][a-zA-Z0-9]+([-_.][a-zA-Z0-9]+)*)?"
_EQUAL = f"({_RELEASE}[.][*]|{_RELEASE}{_SUFFIX}{_LOCAL})"
_SPECIFIER = (
    f"((==|!=)\\s*{_EQUAL}|(<=|>=|<|>)\\s*{_RELEASE}{_SUFFIX}"
    f"|~=\\s*{_RELEASE.removesuffix('*')}+{_SUFFIX}|===\\s*[^\\s,;)]+)"
)
_MORE = f"(\\s*,\\s*({_SPECIFIER})?)*\\s*"

_GLOB = {
    "description": "A glob pattern in .gitignore syntax.",
    "type": "string",
    # A backslash takes a special character literally; before any other it is meant to separate directories.
    "pattern": "^([^\\\\]|\\\\(?![A-Za-z0-9_.]|\\*\\*)(.|\\n))*$",
}
_RULES = {"type": "array", "items": {"$ref": "#/definitions/rule"}}
_SEVERITIES = {
    "type": "object",
    "propertyNames": {"$ref": "#/definitions/rule"},
    "additionalProperties": {"enum": [severity.value for severity in Severity]},
}
_SHAPES: Mapping[Kind, dict[str, Any]] = {
    Kind.BOOL: {"type": "boolean"},
    Kind.INTEGER: {"type": "integer", "minimum": 0},
    Kind.STRING: {"type": "string"},
    Kind.PATH: {"type": "string"},
    Kind.VERSION: {
        "type": "string",
        "pattern": f"^(|{_SPECIFIER}{_MORE}|\\s*{_EQUAL}{_MORE})$",
    },
    Kind.TARGET: {
        "type": "string",
        "pattern": f"^\\s*(unknown|{_RELEASE}{_SUFFIX}{_LOCAL}|(,\\s*)*{_SPECIFIER}{_MORE})\\s*$",
    },
    Kind.RULES: _RULES,
    Kind.PATTERNS: {"type": "array", "items": {"$ref": "#/definitions/glob"}},
    Kind.RULES_BY_PATTERN: {
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/glob"},
        "additionalProperties": _RULES,
    },
    Kind.RULES_BY_MARKER: {
        "type": "object",
        "propertyNames": {
            "pattern": f"^{options.MARKER}$",
            "not": {"pattern": f"^({'|'.join(map(_any_case, options.TAKEN_MARKERS))})$"},
        },
        "additionalProperties": _RULES,
    },
    Kind.LANGUAGES: {
        "type": "object",
        "propertyNames": {"pattern": f"^(?!({_any_case('ya?ml|json')})$){options.EXTENSION}$"},
        "additionalProperties": {"enum": list(options.LANGUAGES)},
    },
    Kind.SEVERITIES: _SEVERITIES,
    Kind.SEVERITIES_BY_PATTERN: {
        "type": "object",
        "propertyNames": {"$ref": "#/definitions/glob"},
        "additionalProperties": _SEVERITIES,
    },
    Kind.NAMES: {"type": "array", "items": {"type": "string", "pattern": f"^{options.NAME}$"}},
    Kind.FOLDERS: {"type": "array", "items": {"type": "string"}},
}
