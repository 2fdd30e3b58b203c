"""What the code of a file names: its identifiers, its options on the command line, and what it imports.

Comments, docstrings and other text are no code: they name nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, onward, sole, traced
from torchlint.semantics.spellings import keywords
from torchlint.semantics.values import MISSING

_OPTION = re.compile(r"-{0,2}[A-Za-z_][\w.-]{0,40}")


@remembered
def identifiers(module: Module) -> frozenset[str]:
    """Return all names of variables, attributes, parameters, functions, classes and imports in the code."""
    return frozenset(module.tree.names_by_name)


def speaks_of(module: Module, *roles: Role) -> bool:
    """Return whether an identifier in the code, or an option that a string spells, has one of these roles."""
    return any(has(name, *roles) for name in identifiers(module) | options(module))


@remembered
def options(module: Module) -> frozenset[str]:
    """Return the strings of one word in the code: options, and keys of configurations."""
    texts = (string.raw_value for string in module.tree.nodes(cst.SimpleString))
    return frozenset(text for text in texts if _OPTION.fullmatch(text))


def named(module: Module, node: cst.CSTNode) -> Iterator[str]:
    """Yield the identifiers and the strings of one word inside a node, such as a condition."""
    for inner in module.tree.descendants(node):
        if isinstance(inner, cst.Name):
            yield inner.value
        elif isinstance(inner, cst.SimpleString) and _OPTION.fullmatch(inner.raw_value):
            yield inner.raw_value


def imports(module: Module, packages: Iterable[str]) -> bool:
    """Return whether the file imports one of these packages or modules, or something of them."""
    return any(is_below(dotted, packages) for dotted in imported(module))


@remembered
def imported(module: Module) -> frozenset[str]:
    """Return the full names of what the file imports, wherever it does."""
    found: set[str] = set(module.names.star_modules)
    for plain in module.tree.nodes(cst.Import):
        found.update(module.source(alias.name) for alias in plain.names)
    for statement in module.tree.nodes(cst.ImportFrom):
        if statement.relative or statement.module is None or isinstance(statement.names, cst.ImportStar):
            continue
        package = module.source(statement.module)
        found.update(f"{package}.{module.source(alias.name)}" for alias in statement.names)
    return frozenset(found)


def is_below(dotted: str, packages: Iterable[str]) -> bool:
    """Return whether a dotted name is one of these packages, or something of them."""
    return any(dotted == package or dotted.startswith(f"{package}.") for package in packages)


_SWITCHES = {"store_true": False, "store_false": True}


def setting_default(module: Module, node: cst.Attribute) -> cst.BaseExpression | None:
    """Return the default of the option, or of the field of a dataclass, that an attribute reads."""
    default = option_default(module, node.attr.value)
    return default if default is not None else _field_default(module, node)


def _field_default(module: Module, node: cst.Attribute) -> cst.BaseExpression | None:
    """Return the default of an annotated field, where the class of the instance that has it is known."""
    definition = module.value(node.value).definition
    if not isinstance(definition, cst.ClassDef):
        return None
    for each in module.home(definition).classes.info(definition).lineage:
        for line in each.node.body.body:
            match line:
                case cst.SimpleStatementLine(
                    body=[cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as default)]
                ) if name == node.attr.value:
                    return default
    return None


def option_default(module: Module, name: str) -> cst.BaseExpression | None:
    """Return the default of ``add_argument("--num-workers", default=4)``,
    if the program has one of that name.

    Where several files have one, they must agree.
    """
    own = _option_defaults(module, name)
    if own:
        return own[0] if len(own) == 1 else None
    found = [
        default for other in module.companions("add_argument") for default in _option_defaults(other, name)
    ]
    alike = {repr(module.value(default).constant) for default in found}
    return found[0] if len(alike) == 1 else None


def outcome_by_default(module: Module, test: cst.BaseExpression) -> bool | None:
    """Return how a test of settings comes out unless somebody sets them otherwise; None if that is open."""
    return sole(_outcome_by_default(module, test))


@traced(Through.RETURNS | Through.PARAMETERS)
def _outcome_by_default(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    if isinstance(node, cst.Param) and node.default is not None and not path:
        return onward(node.default)  # nobody is seen to pass anything
    if path or not isinstance(node, cst.BaseExpression):
        return None
    if isinstance(node, cst.Attribute):
        default = setting_default(module, node)
        return _switch_default(module, node.attr.value) if default is None else onward(default)
    constant = module.value(node).constant
    return None if constant is MISSING else bool(constant)


def _switch_default(module: Module, name: str) -> bool | None:
    """Return what ``add_argument("--compile", action="store_true")`` says of an option that is not given.

    None if the program has no such option of that name, or some that differ.
    """
    options = _options(module, name)
    if not options:
        options = [given for other in module.companions("add_argument") for given in _options(other, name)]
    actions = [given.get("action") for given in options]
    found = {_SWITCHES.get(str(module.value(action).constant)) if action else None for action in actions}
    return found.pop() if len(found) == 1 else None


def _option_defaults(module: Module, name: str) -> list[cst.BaseExpression]:
    """Return the defaults of the options of a name in one file."""
    return [given["default"] for given in _options(module, name) if "default" in given]


@remembered
def _options(module: Module, name: str) -> list[dict[str, cst.BaseExpression]]:
    """Return the keywords with which one file adds options of a name."""
    found: list[dict[str, cst.BaseExpression]] = []
    for call in module.tree.nodes(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add_argument":
            continue
        flags = [
            flag.lstrip("-").replace("-", "_")
            for arg in call.args
            if arg.keyword is None and isinstance(flag := module.value(arg.value).constant, str)
        ]
        given = keywords(call)
        if "dest" in given:
            flags = [str(module.value(given["dest"]).constant)]
        if name in flags:
            found.append(given)
    return found
