"""Whether a program would notice that one of its models has a parameter less.

Handing all parameters to an optimizer, clipping, freezing or averaging them one by one is the same for any
number of them. Counting them, taking one by its place, writing down their names or adding up their values
is not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.identifiers import named
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Through, onward, traced
from torchlint.semantics.spellings import word_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path, Source

_SOURCES = frozenset({"parameters", "named_parameters", "state_dict"})
_CHILDREN = frozenset({"children", "named_children", "modules", "named_modules"})
# Calls that give what they get, element by element.
_SAME = frozenset(
    {
        "list",
        "tuple",
        "dict",
        "iter",
        "filter",
        "reversed",
        "sorted",
        "set",
        "deepcopy",
        "OrderedDict",
        "chain",
    }
)
_VIEWS = frozenset({"items", "keys", "values"})
_TELLING = frozenset(
    {"len", "sum", "enumerate", "print", "str", "repr", "max", "min", "parameters_to_vector"}
)
# What may be done to each of them without a trace.
_COPIES = frozenset({"data", "grad", "clone", "detach", "cpu", "cuda", "to", "float", "requires_grad"})
_KEEPING = frozenset(
    {"append", "extend", "add", "insert", "update", "write", "info", "debug", "log", "print"}
)
_OBSERVING = frozenset({"register_forward_hook", "register_forward_pre_hook", "create_feature_extractor"})


def _is_state(node: cst.BaseExpression) -> bool:
    """Return whether it is ``net.state_dict()``, or its items or keys."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "state_dict":
            return True
        node = node.func.value
    return False


@remembered
def counts_parameters(module: Module) -> bool:
    """Return whether a model of this file that has one parameter less would show."""
    return _Parameters(module).told_apart()


class _Parameters:
    """What one file does with the parameters of its models as a whole."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree = module, module.tree

    def told_apart(self) -> bool:
        for call in self.tree.nodes(cst.Call):
            func = call.func
            name = word_of(func)
            if name in _OBSERVING:
                return True
            if not isinstance(func, cst.Attribute) or self._is_foreign(func.value):
                continue
            if name in _SOURCES and True in verdicts(self.module, call, self._tells):
                return True
            if name in _CHILDREN and True in verdicts(self.module, call, _takes_by_place):
                return True
        return False

    def _is_foreign(self, owner: cst.BaseExpression) -> bool:
        """Return whether a model is made by a library, so that no layer of this file is in it."""
        origin = self.module.value(owner).origin
        name = self.module.qualified(origin.func) if isinstance(origin, cst.Call) else None
        return name is not None and not name.startswith("torch.nn.")

    # ------------------------------------------------------------------ one collection of parameters

    def _tells(self, module: Module, use: Use) -> Verdict[bool]:
        """Return whether a use of all parameters tells how many there are, or which."""
        match use.kind, use.by:
            case UseKind.ARGUMENT, _:
                return self._tells_as_argument(use)
            case UseKind.METHOD, _ if use.name in _VIEWS:
                return ONWARD
            case ((UseKind.ITEM | UseKind.SET), cst.Subscript(slice=[cst.SubscriptElement(slice=index), *_])):
                return isinstance(index, cst.Slice) or isinstance(
                    index.value if isinstance(index, cst.Index) else None, (cst.Integer, cst.UnaryOperation)
                )
            case UseKind.ITERATED, cst.For(target=target, body=body):
                return self._loop_tells(target, body, stored=_is_state(use.node))
            case UseKind.ITERATED, cst.CompFor() as loop:
                return self._comprehension_tells(loop)
            case UseKind.ASSIGNED, _:
                return ONWARD
            case UseKind.STORED, cst.Subscript(value=owner):
                # ``results["weights"] = [p.detach().clone() for p in net.parameters()]``; a state is a
                # checkpoint, and an optimizer's groups take any number.
                return not _is_state(use.node) and "param" not in self.tree.source(owner)
        return use.kind is UseKind.FORMATTED

    def _tells_as_argument(self, use: Use) -> Verdict[bool]:
        func = use.call.func
        name = word_of(func)
        if name in _TELLING:
            return True
        if name == "zip":
            return any(
                a is not use.argument and False in _goes_along(self.module, a.value) for a in use.call.args
            )
        return Standing(use.call) if name in _SAME else False

    # ------------------------------------------------------------------ one by one

    def _loop_tells(self, target: cst.BaseExpression, body: cst.CSTNode, *, stored: bool) -> bool:
        """Return whether a loop over parameters keeps, counts or writes down something of each.

        ``stored``: it goes over a state, and what is kept of that under its keys is an export.
        """
        names, told = self._visited(target)
        for node in self.tree.descendants(body):
            match node:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())]) if stored:
                    if _of(self.module, node.value, names | told):
                        return True
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                    if _of(self.module, node.value, names):
                        if name not in names and _of(self.module, node.value, {name}):
                            # ``total = total + p.sum()``
                            return True
                        names.add(name)
                case cst.AugAssign(target=cst.Name() | cst.Attribute() | cst.Subscript() as total):
                    if not _of(self.module, total, names) and _of(self.module, node.value, names):
                        return True
                case cst.Call(func=func):
                    word = word_of(func)
                    owner = func.value if isinstance(func, cst.Attribute) else None
                    if word in _KEEPING and not (owner is not None and _of(self.module, owner, names)):
                        shown = names | told if word not in ("append", "extend", "add", "insert") else names
                        if any(_of(self.module, argument.value, shown) for argument in node.args):
                            return True
                case cst.FormattedStringExpression(expression=expression):
                    if _of(self.module, expression, names | told) and self._is_shown(node):
                        return True
                case _:
                    pass
        return False

    def _is_shown(self, node: cst.CSTNode) -> bool:
        """Return whether a text is more than a key to look something up by."""
        return not any(isinstance(around, cst.Subscript) for around in self.tree.ancestors(node))

    def _visited(self, target: cst.BaseExpression) -> tuple[set[str], set[str]]:
        """Return the names that stand for a parameter in a loop, and those that stand for its name."""
        match target:
            case cst.Tuple(elements=[first, second]):
                return self.tree.names_in(second.value), self.tree.names_in(first.value)
            case _:
                return self.tree.names_in(target), set()

    def _comprehension_tells(self, loop: cst.CompFor) -> Verdict[bool]:
        whole = self.tree.parent(loop)
        names, told = self._visited(loop.target)
        if isinstance(whole, cst.DictComp):
            return False in _copies(self.module, whole.value, frozenset(names))
        if not isinstance(whole, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
            return False
        if _of(self.module, whole.elt, told) and not isinstance(whole.elt, cst.Tuple):
            return True
        if False in _copies(self.module, whole.elt, frozenset(names)):
            return not self._is_question(whole)
        return Standing(whole)

    def _is_question(self, whole: cst.CSTNode) -> bool:
        """Return whether it is ``any(p.isnan().any() for p in ...)``: an answer that one parameter less
        leaves as it is.
        """
        call = self.tree.call_given(whole)
        return call is not None and self.module.qualified(call.func) in (
            "builtins.any",
            "builtins.all",
        )


def _takes_by_place(module: Module, use: Use) -> Verdict[bool]:
    """Return whether some of the layers are cut out of a model: ``list(net.children())[:-1]``."""
    match use.kind:
        case UseKind.ARGUMENT:
            func = use.call.func
            return Standing(use.call) if isinstance(func, cst.Name) and func.value in _SAME else False
        case UseKind.ASSIGNED:
            return ONWARD
    return use.kind in (UseKind.ITEM, UseKind.SET)


@traced(Through.NOTHING)
def _goes_along(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether what is zipped with parameters comes from parameters, one each;
    by its name it should fit.
    """
    if any(has(name, Role.PER_PARAMETER) for name in named(module, node)):
        return True
    if isinstance(node, cst.Name):
        return None
    return not isinstance(node, (cst.List, cst.Tuple, cst.ListComp))


@traced(Through.NOTHING)
def _copies(
    module: Module, node: cst.CSTNode, path: Path, names: frozenset[str]
) -> bool | list[Source] | None:
    """Return whether an element is the parameter itself, or a copy of it."""
    match node:
        case cst.Name():
            return True
        case cst.Tuple(elements=elements):
            return onward(*(element.value for element in elements))
        case (
            cst.Attribute(attr=cst.Name(value=name), value=owner)
            | cst.Call(func=cst.Attribute(attr=cst.Name(value=name), value=owner))
        ):
            return onward(owner) if name in _COPIES else False
        case cst.Call(args=arguments):
            # ``zeros_like(p)``, ``Parameter(p.clone())``: one for each.
            return onward(*(a.value for a in arguments if _of(module, a.value, names)))
    return not _of(module, node, names)


def _of(module: Module, node: cst.CSTNode, names: Collection[str]) -> bool:
    """Return whether a value is computed from one of the names; from its gradient does not count.

    The gradient of a bias that changes nothing is zero.
    """
    for inner in module.tree.descendants(node):
        if isinstance(inner, cst.Name) and inner.value in names:
            around = module.tree.parent(inner)
            if isinstance(around, cst.Attribute) and around.attr is inner:
                continue
            if not (isinstance(around, cst.Attribute) and around.attr.value == "grad"):
                return True
    return False
