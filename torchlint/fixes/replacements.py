"""How a file is brought from a name that a library gave up to the one that takes its place.

The table ``api/upgrades.py`` says what replaces what; the calls of such a name, its references and
its imports are rewritten together, so that no name is left unused or undefined.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.arguments import add_argument, insert_argument
from torchlint.fixes.callforms import ALTERNATIVES, FORMS
from torchlint.fixes.expressions import replace
from torchlint.fixes.imports import remove_import, spell
from torchlint.fixes.layout import Edits
from torchlint.fixes.statements import insert_after
from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.api.upgrades import SYMBOLS, Upgrade
from torchlint.semantics.names import Binding, ScopeKind, canonical
from torchlint.semantics.spellings import is_none
from torchlint.semantics.upgrading import last_part, only_names, root_of, upgrade_at

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

Import = cst.Import | cst.ImportFrom
# The modules of which all is given up; what else a row names stands beside what stays.
_MODULES = frozenset(
    row.symbol.rpartition(".")[0] for row in SYMBOLS.values() if row.owner in ("TL507", "TL514")
)
# Where importing the package does not load the place that a name has moved to.
_NOT_LOADED = ("torch.distributed.tensor.", "torch.distributed.fsdp.", "torch.distributed.checkpoint.")
# Parameters that the replacement calls otherwise, or does not take.
_OTHER_KEYWORDS = {
    "torch.nn.utils.stateless.functional_call": frozenset({"parameters_and_buffers"}),
    "torch.library.impl_abstract": frozenset({"qualname"}),
    "torch.utils._pytree._register_pytree_node": frozenset({"typ", "to_str_fn", "maybe_from_str_fn"}),
    "torch.set_deterministic": frozenset({"d"}),
}
_TYPE_QUESTIONS = frozenset({"builtins.isinstance", "builtins.issubclass"})


def upgraded(module: Module, node: cst.BaseExpression) -> Edits | None:
    """Return the edits that bring a use of a name to its replacement; None if they cannot be made.

    A name that was imported from the old place is imported from the new one, and all its uses are rewritten
    with it, those of other names that the same statement imports as well. The calls must be such that the
    replacement can take what they pass.
    """
    asked = _asked_for_type(module, node)
    edits = _upgraded(module, node)
    return _together(edits, asked) if edits is not None else None


def _asked_for_type(module: Module, node: cst.BaseExpression) -> Edits | None:
    """Return the edits where the file asks for the type of what was given up, ``isinstance(s, torch.a.Old)``.

    What the replacement makes is no ``Old``; what ``Old`` makes, which was made of the replacement, is one of
    those. None where the question is asked by an imported name, which other edits may move or not.
    """
    row, found = upgrade_at(module, node), list[Edit]()
    if row is None or row.replacement is None:
        return ()
    for call in module.tree.nodes(cst.Call):
        if module.qualified(call.func) not in _TYPE_QUESTIONS or len(call.args) != 2:
            continue
        for part in module.tree.descendants(call.args[1]):
            if not isinstance(part, (cst.Name, cst.Attribute)):
                continue
            other = upgrade_at(module, part)
            # An import is moved with all its names, whichever of them is looked at.
            if other is None or other.replacement is None or _parent(other.symbol) != _parent(row.symbol):
                continue
            package = other.replacement.partition(".")[0]
            if isinstance(part, cst.Attribute) and module.qualified(root_of(part)) == package:
                spelt = root_of(part).value + other.replacement[len(package) :]
                found.extend(replace(module, part, spelt) or ())
            elif other is row and module.bindings(root_of(part)) != module.bindings(root_of(node)):
                return None
    return tuple(found)


def _upgraded(module: Module, node: cst.BaseExpression) -> Edits | None:
    row = upgrade_at(module, node)
    root = root_of(node)
    bindings = [binding for binding in module.bindings(root) if not is_none(binding.value)]
    # ``import torch`` and ``import torch.utils.data`` bind the same name to the same package.
    if row is None or row.replacement is None or len({binding.imported for binding in bindings}) > 1:
        return None
    binding = bindings[0] if bindings else None
    if binding is not None and binding.imported is None:
        return None
    if binding is not None and _is_old(binding):
        statement = module.tree.parent(binding.node) if len(bindings) == 1 else None
        return _with_import(module, statement) if isinstance(statement, Import) else None
    if binding is not None and binding.imported and "." in binding.imported and _is_for_this(module, binding):
        return None
    package = row.replacement.partition(".")[0]
    arguments = _arguments(module, node, row)
    if isinstance(node, cst.Attribute) and module.qualified(root) == package:
        return _together(replace(module, node, root.value + row.replacement[len(package) :]), arguments)
    spelling = spell(module, row.replacement, node)
    if spelling is None:
        return None
    return _together(replace(module, node, spelling.text), spelling.edits, arguments)


def brought(module: Module, node: cst.CSTNode, row: Upgrade) -> Edits | None:
    """Return the edits that bring a use of a name to its replacement, wherever that is;
    None if they cannot be made.

    A name that is imported from its module is renamed with its import and all its other uses at once. An
    import of which nothing would be left is dropped.
    """
    if row.replacement is None or not isinstance(node, (cst.Name, cst.Attribute, cst.ImportAlias)):
        return None
    if isinstance(node, cst.ImportAlias):
        unread = module.binding_of(node)
        if unread is None or not (_stays(row) or node.asname is not None):
            return None
        edits = _imported_anew(module, unread, row)
        return edits if edits is not None and _is_sound(edits) else None
    bindings = [binding for binding in module.bindings(root_of(node)) if not is_none(binding.value)]
    if not bindings or len({binding.imported for binding in bindings}) > 1 or bindings[0].imported is None:
        return None
    binding = bindings[0]
    if isinstance(node, cst.Name):
        edits = _imported_anew(module, binding, row) if len(bindings) == 1 else None
    else:
        edits = _otherwise(module, node, row) or _use(
            module, node, row, _spelt(module, node, row.replacement)
        )
        kept = f"{row.replacement}.".startswith(f"{binding.imported}.")
        if edits is not None and not kept and _is_for_this(module, binding):
            # Where some use has to stay, the import stays, too.
            all_of_them = _without_import(module, binding) if len(bindings) == 1 else None
            edits = all_of_them if all_of_them is not None and _is_sound(all_of_them) else edits
    return edits if edits is not None and _is_sound(edits) else None


def _is_sound(edits: Edits) -> bool:
    """Return whether no edit lies in another one."""
    ordered = sorted(set(edits))
    return all(one.span.end <= other.span.start for one, other in itertools.pairwise(ordered))


def _spelt(module: Module, node: cst.Attribute, new: str) -> tuple[str, Edits] | None:
    """Return how to write a name where another one stands, with the import that this needs."""
    root = root_of(node)
    package = new.partition(".")[0]
    loaded = not new.startswith(_NOT_LOADED)
    if module.qualified(root) == package and loaded:
        return root.value + new[len(package) :], ()
    spelling = spell(module, new, node)
    if spelling is None or (not loaded and spelling.text == new):
        return None
    return spelling.text, spelling.edits


def _otherwise(module: Module, node: cst.Attribute, row: Upgrade) -> Edits | None:
    """Return the edits that call another function than usual, if that fits."""
    call = module.tree.parent(node)
    if row.rewrite not in ALTERNATIVES or not isinstance(call, cst.Call) or call.func is not node:
        return None
    new, form = ALTERNATIVES[row.rewrite]
    around, spelt = form(module, call), _spelt(module, node, new)
    if around is None or spelt is None:
        return None
    return _together(replace(module, node, spelt[0]), spelt[1], around)


def _use(
    module: Module, node: cst.BaseExpression, row: Upgrade, spelt: tuple[str, Edits] | None
) -> Edits | None:
    """Return the edits of one use: its name, its arguments, and an import."""
    if spelt is None:
        return None
    text, imported = spelt
    renamed = replace(module, node, text) if module.source(node) != text else ()
    parent = module.tree.parent(node)
    call = parent if isinstance(parent, cst.Call) and parent.func is node else None
    if isinstance(parent, cst.Index) or (isinstance(parent, cst.DictElement) and parent.key is node):
        return None  # another function is another key
    if row.owner == "TL514":
        # Its arguments have other names, too, which the fix of that rule writes.
        return None
    if row.rewrite:
        return _together(renamed, imported, FORMS[row.rewrite](module, call) if call is not None else None)
    foreign = _OTHER_KEYWORDS.get(row.symbol)
    if foreign is not None:
        if call is None or any(arg.star == "**" for arg in call.args):
            return None
        if any(arg.keyword is not None and arg.keyword.value in foreign for arg in call.args):
            return None
    if row.adds and call is None:
        return None
    return _together(renamed, imported, _arguments(module, node, row))


def _imported_anew(module: Module, binding: Binding, row: Upgrade) -> Edits | None:
    """Return a name that a statement imports, from its new place, with all its uses."""
    statement = module.tree.parent(binding.node)
    if not isinstance(statement, cst.ImportFrom) or isinstance(statement.names, cst.ImportStar):
        return None
    every = [(bound, SYMBOLS.get(canonical(bound.imported or ""))) for bound in _bound(module, statement)]
    rows = [other for _, other in every if other is not None and _stays(other)]
    target = module.target_of(row.package)
    together = (
        len(rows) == len(statement.names)
        and len({_parent(other.replacement or "") for other in rows}) == 1
        and all(other.is_replaceable(target) for other in rows)
        and statement.module is not None
    )
    if together:
        assert statement.module is not None
        parts = [_read_anew(module, bound, other) for bound, other in every if other is not None]
        return _together(replace(module, statement.module, _parent(row.replacement or "")), *parts)
    alias = binding.node
    assert isinstance(alias, cst.ImportAlias)
    place, new = _parent(row.replacement or ""), last_part(row.replacement or "")
    line = f"from {place} import {new}" + (f" as {binding.name}" if alias.asname is not None else "")
    if statement.module is not None and module.source(statement.module) == place:
        moved = replace(module, alias.name, new)
    elif len(statement.names) == 1:
        moved = replace(module, statement, line)
    else:
        moved = _together(remove_import(module, alias), insert_after(module, statement, line))
    return _together(moved, _read_anew(module, binding, row))


def _stays(row: Upgrade) -> bool:
    """Return whether a name keeps its last part, so that its uses stay as they are."""
    return last_part(row.symbol) == last_part(row.replacement or "")


def _read_anew(module: Module, binding: Binding, row: Upgrade) -> Edits | None:
    """Return the edits of all that is read of an imported name; None if not all can be found."""
    if not _sole(module, binding) or binding.name in _exported(module):
        return None
    alias = binding.node
    assert isinstance(alias, cst.ImportAlias)
    new = binding.name if alias.asname is not None else last_part(row.replacement or "")
    if (new != binding.name or row.adds or row.rewrite) and _is_handed_out(module, binding):
        return None
    uses = module.uses(binding)
    if new != binding.name:
        scopes = [module.names.lookup(new, use) for use in uses]
        if any(scope is not None for scope in scopes) or new in binding.scope.bindings:
            return None
        # An annotation in quotes may mean it, too.
        quoted = re.compile(rf"\b{binding.name}\b")
        if any(
            quoted.search(text.value) for text in module.tree.nodes(cst.SimpleString) if len(text.quote) == 1
        ):
            return None
    if any(upgrade_at(module, use) is not row for use in uses):
        return None
    return _together(*(_use(module, use, row, (new, ())) for use in uses))


def _without_import(module: Module, binding: Binding) -> Edits | None:
    """Return the edits of all uses of a module that nothing else needs, and the removal of its import."""
    if _is_handed_out(module, binding):
        return None
    parts: list[Edits | None] = []
    added: Edits = ()
    package = ""
    for read in module.uses(binding):
        for above in module.tree.ancestors(read):
            row = upgrade_at(module, above)
            if row is not None:
                break
        else:
            return None
        assert isinstance(above, cst.Attribute)
        if row.replacement is None or not row.is_replaceable(module.target_of(row.package)):
            return None
        spelt = _spelt(module, above, row.replacement)
        if spelt is None or spelt[0].startswith(f"{binding.name}."):
            return None
        text, added = spelt
        package = row.replacement.partition(".")[0]
        parts.append(_use(module, above, row, (text, ())))
    statement = module.tree.parent(binding.node)
    if added and isinstance(statement, cst.Import) and len(statement.names) == 1:
        # The import that is missing takes the place of the one that nobody needs.
        return _together(replace(module, statement, f"import {package}"), *parts)
    if not _sole(module, binding):
        return None
    return _together(remove_import(module, binding.node), added, *parts)


def _is_old(binding: Binding) -> bool:
    """Return whether an import names something that was given up, or the module that has it."""
    dotted = canonical(binding.imported or "")
    return dotted in SYMBOLS or dotted in _MODULES


def _is_for_this(module: Module, binding: Binding) -> bool:
    """Return whether an import of a package is there for names that were given up only,
    and would be left unused.
    """
    return all(
        any(upgrade_at(module, above) is not None for above in module.tree.ancestors(read))
        for read in module.uses(binding)
    )


def _together(*parts: Edits | None) -> Edits | None:
    found: list[Edit] = []
    for part in parts:
        if part is None:
            return None
        found.extend(part)
    return tuple(found)


def _with_import(module: Module, statement: Import) -> Edits | None:
    """Return an import of old names, of the new ones instead, with all that is read of it."""
    uses = list(_uses(module, statement))
    rows = [upgrade_at(module, use) for use in uses]
    moved = _moved(module, statement, [row for row in rows if row is not None])
    if moved is None or None in rows:
        return None
    return _together(
        moved, *(_arguments(module, use, row) for use, row in zip(uses, rows, strict=True) if row)
    )


def _uses(module: Module, statement: Import) -> Iterator[cst.BaseExpression]:
    """Yield what is read of the names that an import binds, as attributes where it binds a module."""
    for binding in _bound(module, statement):
        for read in module.uses(binding):
            above = module.tree.parent(read)
            of_module = canonical(binding.imported or "") in _MODULES
            yield above if of_module and isinstance(above, cst.Attribute) else read


def _bound(module: Module, statement: Import) -> list[Binding]:
    """Return the names that an import binds; none for a star."""
    aliases = () if isinstance(statement.names, cst.ImportStar) else statement.names
    return [binding for alias in aliases for binding in [module.binding_of(alias)] if binding is not None]


def _moved(module: Module, statement: Import, rows: list[Upgrade]) -> Edits | None:
    """Return the edit that makes an import name the new place;
    None if not all of what it names has moved there.
    """
    bound = _bound(module, statement)
    names = [canonical(binding.imported or "") for binding in bound]
    rows = rows + [SYMBOLS[name] for name in names if name in SYMBOLS]
    places = {_parent(row.replacement or "") for row in rows}
    if len(places) != 1 or any(last_part(row.symbol) != last_part(row.replacement or "") for row in rows):
        return None
    if _imports_all_of_old(module):
        return None
    exported = _exported(module)
    if any(binding.name in exported or not _sole(module, binding) for binding in bound):
        return None
    takes_more = any(row.adds or row.rewrite for row in rows)
    if takes_more and any(_is_handed_out(module, binding) for binding in bound):
        return None
    (place,) = places
    if isinstance(statement, cst.ImportFrom) and all(name in SYMBOLS for name in names):
        return replace(module, statement.module, place) if statement.module is not None else None
    if len(names) > 1 or names[0] not in _MODULES:
        return None
    if isinstance(statement, cst.Import):
        return replace(module, statement.names[0].name, place)
    # ``from torch.cuda import amp`` names the module last.
    if statement.module is None or last_part(names[0]) != last_part(place):
        return None
    return replace(module, statement.module, _parent(place))


def _imports_all_of_old(module: Module) -> bool:
    """Return whether a star brings the old names in once more: ``from torch.cuda.amp import *``."""
    return any(
        isinstance(statement.names, cst.ImportStar)
        and statement.module is not None
        and module.source(statement.module) in _MODULES
        for statement in module.tree.nodes(cst.ImportFrom)
    )


def _sole(module: Module, binding: Binding) -> bool:
    """Return whether nothing but an import, and a None where it fails, gives a variable its meaning."""
    return binding.scope.kind is not ScopeKind.CLASS and all(
        other is binding or is_none(other.value) for other in binding.scope.bindings[binding.name]
    )


def _is_handed_out(module: Module, binding: Binding) -> bool:
    """Return whether another file of the project, a test among them,
    may use an imported name by way of this one.
    """
    return (
        module.link is not None
        and binding.scope.kind is ScopeKind.MODULE
        and module.link.is_used(module, binding.name)
    )


def _exported(module: Module) -> set[str]:
    """Return the strings that the file lists in ``__all__``."""
    found: set[str] = set()
    for binding in module.names.module_scope.bindings.get("__all__", ()):
        if isinstance(binding.value, (cst.List, cst.Tuple)):
            for element in binding.value.elements:
                if isinstance(element.value, cst.SimpleString):
                    found.add(str(element.value.evaluated_value))
    return found


def _arguments(module: Module, node: cst.BaseExpression, row: Upgrade) -> Edits | None:
    """Return the edits that make what is around a renamed use pass what the replacement takes."""
    if not row.adds or only_names(module, node):
        return ()
    keyword, equals, code = row.adds.partition("=")
    match module.tree.parent(node):
        case cst.Call(func=func) as call if func is node:
            if equals:
                return add_argument(module, call, code, keyword=keyword, keyword_only=True)
            return _in_front(module, call, 0, row)
        case cst.Decorator() if equals:
            end = module.tree.outer_span(node).end
            return (Edit(Span(end, end), f"({row.adds})"),)
        case cst.Arg() as arg if not equals and arg.keyword is None and not arg.star:
            partial = module.tree.parent(arg)
            if isinstance(partial, cst.Call) and partial.args[0] is arg:
                if module.qualified(partial.func) == "functools.partial":
                    return _in_front(module, partial, 1, row)
    return None


def _in_front(module: Module, call: cst.Call, start: int, row: Upgrade) -> Edits | None:
    """Give a call the added argument before those from ``start`` on, and those their names if they move."""
    before, after = SIGNATURES.get(row.symbol), SIGNATURES.get(canonical(row.replacement or ""))
    if before is None or after is None:
        return None
    old = [parameter.name for parameter in before]
    new = [parameter.name for parameter in after]
    named: dict[int, str] = {}
    if new[1 : len(old) + 1] != old:
        for position, arg in enumerate(call.args[start:]):
            if arg.star == "*" or (arg.keyword is None and not arg.star and position >= len(old)):
                return None
            if arg.keyword is None and not arg.star:
                named[start + position] = old[position]
    first = insert_argument(module, call, start, row.adds, keyword=named.pop(start, ""))
    return first + tuple(
        Edit(Span(at, at), f"{name}=")
        for index, name in named.items()
        for at in [module.tree.span(call.args[index]).start]
    )


def _parent(dotted: str) -> str:
    return dotted.rpartition(".")[0]
