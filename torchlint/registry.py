"""Which rules exist: those under ``torchlint.rules``, and those of installed rule packs.

A rule pack is a distribution with an entry point in the group ``torchlint.rules`` that names a module or a
package; every module in it is searched for rules, as the ones under ``torchlint.rules`` are. The rules of a
pack with a prefix of its own are off until that prefix is selected: the default selects ``TL``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from torchlint import installation
from torchlint.diagnostics import Severity
from torchlint.installation import Code, Pack
from torchlint.rule import FixKind, Rule
from torchlint.store import Store
from torchlint.target import LIBRARIES, TORCH

ENTRY_POINT_GROUP = "torchlint.rules"

_BUILT_IN = "torchlint.rules"
# Bench cases live beside the rules and need torch; they are no rules.
_CASES = "cases"
# The module that declares the rule of a folder of its own.
_RULE = "rule"


FAMILIES: Mapping[str, str] = {
    "TL0": "The linter itself",
    "TL1": "Input pipeline",
    "TL2": "Host and device",
    "TL3": "Autograd and the training step",
    "TL4": "The model",
    "TL5": "Precision, kernels, compiler",
    "TL6": "Memory",
    "TL7": "Several GPUs",
    "TL8": "Debugging left on",
    "TL9": "API upgrades",
}
"""The titles of our own families, by what the codes of their rules begin with."""


class RegistryError(Exception):
    """The rules cannot be listed: a rule pack does not load, or two rules share a code or a name."""


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule by its code, in the order of the codes. Imports all rule modules, and so LibCST.

    Raises:
        RegistryError: see there.
    """
    return _collect(rule for module in _modules(_packs()) for rule in _imported(module))


@cache
def catalogue() -> Mapping[str, Rule]:
    """Return the same rules as their files declare them, read without importing LibCST.

    What is needed to list, select, screen and document rules is there; ``on`` and ``named`` are empty and
    ``check`` carries the documentation only. A file whose declarations are not written as constants is
    imported.

    Raises:
        RegistryError: see ``rules``.
    """
    if _known is not None:
        return _known.catalogue
    return _collect(rule for module in _modules(_packs()) for rule in _declared(module))


@dataclass(frozen=True)
class Family:
    """Rules whose codes begin with ``prefix``: a family of ours, or all that a rule pack has under it."""

    prefix: str
    title: str
    rules: tuple[Rule, ...]


def families() -> tuple[Family, ...]:
    """Return all families that have rules, in the order of their codes; a pack is named after its package.

    Raises:
        RegistryError: see ``rules``.
    """
    found: dict[tuple[str, str], list[Rule]] = {}
    for each in catalogue().values():
        letters, home = each.code.rstrip("0123456789"), each.check.__module__
        prefix = each.code[: len(letters) + 1] if home.startswith(f"{_BUILT_IN}.") else letters
        title = FAMILIES.get(prefix) or f"Rule pack {home.partition('.')[0]}"
        found.setdefault((prefix, title), []).append(each)
    return tuple(Family(prefix, title, tuple(members)) for (prefix, title), members in found.items())


def rule_name(code: str) -> str:
    """Return the name of the rule with this code; empty if there is none."""
    found = catalogue().get(code)
    return found.name if found is not None else ""


def rule(code: str) -> Rule:
    """Return the rule of the catalogue with this code, as it runs. Imports its module alone, and so LibCST.

    Raises:
        KeyError: there is no such rule.
        RegistryError: the module does not load.
    """
    declared = catalogue()[code]
    # What was only read for the catalogue visits no nodes.
    return declared if declared.on else _loaded(declared.check, code)


@cache
def _loaded(declared: Callable[..., Any], code: str) -> Rule:
    found = (rule for rule in _imported(declared.__module__) if rule.code == code)
    return next(found, None) or rules()[code]


@dataclass(frozen=True)
class Known:
    """The catalogue, the rule packs, and the digest of all code that has a say in what a rule finds.

    The digest is empty if it is unknown.
    """

    catalogue: Mapping[str, Rule]
    packs: tuple[Pack, ...]
    code: str


_known: Known | None = None


def forget() -> None:
    """Forget which rules there are, as if this process had just started."""
    global _known
    _known = None
    installation.recalled.clear()
    installation.recalled_urls.clear()
    rules.cache_clear()
    catalogue.cache_clear()
    _loaded.cache_clear()


def known(store: Store) -> Known:
    """Return the catalogue as an earlier run left it in ``store``,
    read anew if what is installed has changed.

    In this process nothing is looked for again from then on.

    Raises:
        RegistryError: see ``rules``.
    """
    global _known
    forget()
    places = installation.places()
    name = f"catalogue-{sha256(repr((sys.path, sys.version)).encode()).hexdigest()[:16]}"
    found = _remembered(store.load(name), places)
    if found is None:
        packs = _packs()
        code = Code.of(pack.module for pack in packs)
        state = code.state
        try:
            found = Known(catalogue(), packs, code.digest)
        except OSError:
            return Known(catalogue(), packs, "")
        document = {
            "places": places,
            "state": state,
            "code": found.code,
            "packs": [[pack.name, pack.module, pack.distribution] for pack in packs],
            "versions": installation.versions((TORCH, *LIBRARIES)),
            "urls": installation.urls(),
            "rules": [_written(rule) for rule in found.catalogue.values()],
        }
        store.save(name, document)
    _known = found
    catalogue.cache_clear()
    return found


def _remembered(document: Any, places: str) -> Known | None:
    """Return what a document of the store says, if it is of what is installed now."""
    try:
        if document["places"] != places:
            return None
        packs = tuple(Pack(*pack) for pack in document["packs"])
        if Code.of(pack.module for pack in packs).state != document["state"]:
            return None
        rules = _collect(_restored(*rule) for rule in document["rules"])
        installation.recalled.update(document["versions"])
        installation.recalled_urls.append({str(name): str(url) for name, url in document["urls"].items()})
        return Known(rules, packs, str(document["code"]))
    except (AttributeError, TypeError, ValueError, KeyError, RegistryError):
        return None


def _written(rule: Rule) -> list[Any]:
    facts = [rule.code, rule.name, rule.severity.value, rule.fix, rule.mentions, rule.opt_in, rule.remedy]
    facts += [rule.follows, rule.measured, rule.configured, rule.advice, rule.lasting, rule.synchronizes]
    return [*facts, rule.check.__qualname__, rule.check.__module__, rule.check.__doc__]


def _restored(
    code: str,
    name: str,
    severity: str,
    fix: FixKind,
    mentions: list[str],
    opt_in: bool,
    remedy: str | None,
    follows: list[str],
    measured: bool,
    configured: bool,
    advice: bool,
    lasting: bool,
    synchronizes: bool,
    function: str,
    module: str,
    page: str | None,
) -> Rule:
    check = _documentation(function, module, page)
    return Rule(
        *(code, name, Severity(severity), fix, (), tuple(mentions), opt_in, check, remedy, tuple(follows)),
        measured=measured,
        configured=configured,
        advice=advice,
        lasting=lasting,
        synchronizes=synchronizes,
    )


def _collect(found: Iterator[Rule]) -> Mapping[str, Rule]:
    by_code: dict[str, Rule] = {}
    by_name: dict[str, Rule] = {}
    for rule in found:
        amiss = _amiss(rule)
        if amiss:
            raise RegistryError(f"the rule {_home(rule)} is declared incorrectly: {amiss}")
        for known, key in ((by_code, rule.code), (by_name, rule.name)):
            if key in known:
                raise RegistryError(
                    f"two rules are called `{key}`: {_home(known[key])} and {_home(rule)}; "
                    "a rule pack must use unique codes and names"
                )
            known[key] = rule
    return MappingProxyType(dict(sorted(by_code.items())))


def _amiss(rule: Any) -> str:
    """Return what selectors, suppressions or the screen could make nothing of; empty if all is well.

    Nobody but their authors checks the types of rule packs.
    """
    if not isinstance(rule.code, str) or not re.fullmatch(r"[A-Z]+[0-9]+", rule.code):
        return f"`{rule.code}` is not a valid code: use capital letters, then digits"
    name = r"(?![a-z]+[0-9]+$)[a-z][a-z0-9]*(-[a-z0-9]+)*"
    if not isinstance(rule.name, str) or not re.fullmatch(name, rule.name):
        return f"`{rule.name}` is not a valid name: use lower-case words joined by hyphens"
    if not isinstance(rule.severity, Severity):
        return f"its severity is `{rule.severity!r}`, not NOTE, WARNING or ERROR"
    if rule.fix not in get_args(FixKind):
        return f"its fix is `{rule.fix}`, not one of {', '.join(get_args(FixKind))}"
    if isinstance(rule.mentions, str):
        return "`mentions` is one string; it must be a tuple of them"
    return ""


def _home(rule: Rule) -> str:
    return f"{rule.check.__module__}.{rule.check.__qualname__}{_of_pack(rule.check.__module__)}"


def packs() -> tuple[Pack, ...]:
    """Return the rule packs that are installed, by name; none of them is imported."""
    return installation.packs(ENTRY_POINT_GROUP)


def _of_pack(module: str) -> str:
    """Return `` of the rule pack …`` for a module of one, to be put behind the module's name."""
    owners = [pack for pack in _packs() if f"{module}.".startswith(f"{pack.module}.")]
    return f" of the rule pack {owners[0]}" if owners else ""


def _packs() -> tuple[Pack, ...]:
    return packs() if _known is None else _known.packs


def _modules(packs: Iterable[Pack]) -> Iterator[str]:
    """Yield the names of all modules that may hold rules, none of them imported; packages are."""
    yield from _modules_under(_BUILT_IN)
    for pack in packs:
        try:
            yield from _modules_under(pack.module)
        except Exception as error:
            # Whatever it is: finding the modules of a package runs its ``__init__``.
            raise RegistryError(f"the rule pack {pack} cannot be imported: {error!r}") from error


def _modules_under(name: str) -> Iterator[str]:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {name!r}")
    modules = list(pkgutil.iter_modules(spec.submodule_search_locations or ()))
    if name.startswith(_BUILT_IN) and any(module.name == _RULE for module in modules):
        # What else stands in the folder of a rule is for that rule, and need not be read for the catalogue.
        yield f"{name}.{_RULE}"
        return
    yield name
    for module in modules:
        if module.name == _CASES:
            continue
        inner = f"{name}.{module.name}"
        if module.ispkg:
            yield from _modules_under(inner)
        else:
            yield inner


def _imported(module: str) -> Iterator[Rule]:
    try:
        namespace = vars(importlib.import_module(module))
    except Exception as error:
        if module.startswith(_BUILT_IN):
            raise
        raise RegistryError(
            f"the module `{module}`{_of_pack(module)} cannot be imported: {error!r}"
        ) from error
    for value in namespace.values():
        if isinstance(value, Rule) and value.check.__module__ == module:
            yield value


# A declaration from its decorator to the end of its docstring. Parsing these few lines instead of the
# whole file keeps the listing of a hundred rules far below the cost of importing LibCST.
_DECLARATION = re.compile(r'^@rule\(.*?"""(?:[^"\\]|\\.|"(?!""))*"""', re.MULTILINE | re.DOTALL)


def _declared(module: str) -> Iterator[Rule]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.has_location or not spec.origin.endswith(".py"):
        yield from _imported(module)
        return
    try:
        text = Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        yield from _imported(module)
        return
    declared = len(re.findall(r"^@[\w.]*\brule\(", text, re.MULTILINE))
    if not declared and not re.search(r"\brule as\b|\bRule\(", text):
        return
    try:
        found = [_read(declaration, module) for declaration in _DECLARATION.findall(text)]
    except (SyntaxError, ValueError, TypeError, KeyError):
        found = []
    if found and len(found) == declared:
        yield from found
    else:
        yield from _imported(module)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _read(declaration: str, module: str) -> Rule:
    """Return the rule that ``@rule(CODE, NAME, severity=…, …)`` declares.

    Raises:
        SyntaxError, ValueError, TypeError, KeyError: it is not written with constants.
    """
    (function,) = ast.parse(declaration).body
    if not isinstance(function, ast.FunctionDef):
        raise ValueError("no function is declared")
    (decorator,) = function.decorator_list
    if not isinstance(decorator, ast.Call):
        raise ValueError("no rule is declared")
    given: dict[str, Any] = dict(zip(("code", "name"), map(ast.literal_eval, decorator.args), strict=False))
    for keyword in decorator.keywords:
        if keyword.arg in ("on", "named"):
            continue
        if keyword.arg == "severity":
            given["severity"] = Severity[_last_name(keyword.value)]
        elif keyword.arg is None:
            raise ValueError("declared with **")
        else:
            given[keyword.arg] = ast.literal_eval(keyword.value)
    check = _documentation(function.name, module, ast.get_docstring(function))
    return Rule(on=(), check=check, **{"mentions": (), "opt_in": False, **given})


def _documentation(name: str, module: str, page: str | None) -> Callable[..., Iterator[Any]]:
    def check(node: object, module: object) -> Iterator[Any]:
        raise TypeError(f"{name} was read for its documentation only; registry.rules() has what runs")

    check.__doc__, check.__name__, check.__qualname__, check.__module__ = page, name, name, module
    return check
