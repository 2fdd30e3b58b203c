"""Questions across files: a question about a node is answered by the module that the node belongs to.

A value may come from another file together with the definition that made it. Callers need not know: the parts
of a linked module forward a further question about that node to the node's own module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol, TypeVar

import libcst as cst

from torchlint.diagnostics import Position
from torchlint.documents import Entry
from torchlint.syntax import RANK_SHIFT, SyntaxTree

Class = TypeVar("Class")

MOST_USERS = 24
"""Of what more files than these may use only the calls in its own file are looked for."""
Target = tuple[Any, ...] | Path | str
"""What an import brings: definitions of another file of the project, or such a file itself (a folder for a
package without ``__init__.py``), or by way of such a file something of a library, by its dotted name."""


class Link(Protocol):
    """What connects the modules of one project; its implementation knows where files lie."""

    def close(self) -> None:
        """Forget everything that was computed."""

    def home(self, node: cst.CSTNode) -> Any:
        """Return the module of the file that a node belongs to."""

    def defines(self, module: Any, binding: Any) -> bool:
        """Return whether an import brings a function, class or file of the project under its own name."""

    def speaks(self, module: Any, binding: Any, word: str) -> bool | None:
        """Return whether the text of the file that an import brings, or brings a definition of, has a word;
        None for what is not of the project.
        """

    def is_imported(self, module: Any) -> bool:
        """Return whether another file of the project imports a module, or what it defines."""

    def shows_users(self, module: Any, name: str) -> bool:
        """Return whether only files of the project can use a name of the top level of a module."""

    def shows_programs(self, module: Any) -> bool:
        """Return whether the programs that a module is part of are looked at as a whole,
        or no other file uses what it defines.
        """

    def is_used(self, module: Any, name: str) -> bool:
        """Return whether a file of the project, or a test, may use a top-level name of a module."""

    def patched(self) -> frozenset[str]:
        """Return the names that files of the project replace: ``mock.patch("a.b.Name")``."""

    def fails_on_warnings(self) -> bool:
        """Return whether the tests of the project are configured to turn warnings into errors."""

    def is_tested(self, module: Any, name: str) -> bool:
        """Return whether a test may use a name of the top level of a module."""

    def place(self, node: cst.CSTNode) -> Position:
        """Return where a node begins, with its file."""

    def file(self, module: Any) -> Path:
        """Return the file of a module."""

    def module(self, file: Path) -> Any:
        """Return the module of a file; None for one that cannot be read."""

    def imported(self, module: Any, binding: Any) -> Target | None:
        """Return what an import brings from the project; None if it is of a library, or not found."""

    def at(self, module: Any, name: str) -> Target | None:
        """Return the file or package that a dotted name is for imports in a module."""

    def member(self, file: Path, name: str) -> Target | None:
        """Return what a file or package of the project has under a name; None if nothing is known of it."""

    def starred(self, module: Any, name: str) -> Target | None:
        """Return what a star import of a module brings from the project under a name."""

    def companions(self, module: Any, words: tuple[str, ...] = ()) -> Sequence[Any]:
        """Return the other modules of the programs that a module is part of, in a fixed order.

        With ``words``, those that have one of them in their text.
        """

    def is_companion(self, module: Any, other: Any) -> bool:
        """Return whether another module is among the `companions` of a module."""

    def users(
        self,
        module: Any,
        words: tuple[str, ...],
        *,
        instances: tuple[str, ...] | None = None,
        heirs: bool = False,
        most: int = 0,
        written: str = "",
    ) -> Sequence[Any]:
        """Return the modules that may use what a module defines, in a fixed order, without itself.

        Those of what imports it with one of some words in their text, if there are any, and those with one of
        ``instances`` of what an instance may be handed to, unless that is None. With ``heirs``, those that
        define a class with such a base, and those with ``written`` in their code. In a library of which
        several files are users there are none, unless ``most`` says of how many there may be some.
        """

    def names(self, module: Any, word: str, *, instances: bool = False) -> bool:
        """Return whether the text of a module that may use another has a word.

        With ``instances``, any module of its programs, since an instance is handed on.
        """

    def speaking(self, words: tuple[str, ...], among: tuple[str, ...]) -> Sequence[Any]:
        """Return the modules of the project whose text has one of some words, ``among`` those that have one
        of others, in a fixed order; none if there are many.
        """

    def has_anywhere(self, words: tuple[str, ...]) -> bool:
        """Return whether the text of any file of the project, a test among them, has one of some words."""

    def configuration(self, module: Any, name: str, *, beside: bool) -> Path | None:
        """Return the configuration file that a module names, relative to it if ``beside``."""

    def composed(self, module: Any, folder: str, name: str) -> Path | None:
        """Return the primary configuration that Hydra composes for a module; None if it is not known."""

    def entry(self, file: Path, keys: Sequence[str | int], *, hydra: bool, resolved: bool) -> Entry | None:
        """Return what stands behind some keys in a configuration file; None if nothing plain does.

        ``hydra`` asks for what its defaults list makes of it, ``resolved`` for what interpolations refer to.
        """

    def readers(self, file: Path) -> int:
        """Return how many files of the project name a configuration file."""


def handing_on(kind: type[Class]) -> type[Class]:
    """Return the same class, but that its public methods hand questions about nodes of other files on.

    The class has ``tree``, and ``counterpart(module)``, which gives the object that answers for a module.
    The names in its ``answers_for_all`` are those of methods that answer for every file themselves. Of a
    class that ``hands_everything_on`` the private methods do as well. As ``alone`` it has the class itself.
    """
    made: type[Class] = _handing_on(kind)  # type: ignore[arg-type]
    return made


@cache
def _handing_on(kind: type[Any]) -> Any:
    own: frozenset[str] = getattr(kind, "answers_for_all", frozenset())
    whole: bool = getattr(kind, "hands_everything_on", False)
    methods: dict[str, Callable[..., Any]] = {}
    for base in reversed(kind.__mro__[:-1]):
        for name, function in vars(base).items():
            private = name.startswith("__" if whole else "_")
            if isinstance(function, FunctionType) and not private and name not in own:
                methods[name] = _handed_on(name, function)
    for name in ("counterpart", "close"):
        methods.pop(name, None)
    return type(f"Linked{kind.__name__}", (kind,), {**methods, "alone": kind})


_TAKES_MORE = CO_VARARGS | CO_VARKEYWORDS
# What no question is about.
_PLAIN = frozenset({"str", "str | None", "int", "bool", "Value", "Path", "Kind"})


def _handed_on(name: str, function: FunctionType) -> Callable[..., Any]:
    """Return a method that hands questions on; itself if it is told of no node."""
    code = function.__code__
    parameters = code.co_varnames[1 : code.co_argcount]
    told = (i for i, each in enumerate(parameters) if function.__annotations__.get(each) not in _PLAIN)
    place = next(told, None)
    if place is None:
        return function

    more = function.__defaults__ or code.co_kwonlyargcount or code.co_flags & _TAKES_MORE
    alone = code.co_argcount == 2 and not more
    if alone and _is_node(function.__annotations__.get(parameters[0], "")):
        # Most questions are of this form, and are asked a million times.
        @wraps(function)
        def asked_of_node(self: Any, node: Any, /) -> Any:
            tree = self.tree
            if tree.order.get(node, tree.first) >> RANK_SHIFT != tree.rank:
                return getattr(self.counterpart(self.link.home(node)), name)(node)
            return function(self, node)

        return asked_of_node

    if alone:

        @wraps(function)
        def asked_of(self: Any, argument: Any, /) -> Any:
            way = _WAYS[argument.__class__]
            if way is not None:
                node = argument.node if way else argument
                tree = self.tree
                if tree.order.get(node, tree.first) >> RANK_SHIFT != tree.rank:
                    return getattr(self.counterpart(self.link.home(node)), name)(argument)
            return function(self, argument)

        return asked_of

    if code.co_argcount == 3 and not more:

        @wraps(function)
        def asked_of_two(self: Any, first: Any, second: Any, /) -> Any:
            argument = second if place else first
            way = _WAYS[argument.__class__]
            if way is not None:
                node = argument.node if way else argument
                tree = self.tree
                if tree.order.get(node, tree.first) >> RANK_SHIFT != tree.rank:
                    return getattr(self.counterpart(self.link.home(node)), name)(first, second)
            return function(self, first, second)

        return asked_of_two

    @wraps(function)
    def asked(self: Any, *arguments: Any, **options: Any) -> Any:
        if place < len(arguments):
            argument = arguments[place]
            way = _WAYS[argument.__class__]
            if way is not None:
                node = argument.node if way else argument
                tree = self.tree
                if tree.order.get(node, tree.first) >> RANK_SHIFT != tree.rank:
                    home = self.counterpart(self.link.home(node))
                    return getattr(home, name)(*arguments, **options)
        return function(self, *arguments, **options)

    return asked


def _is_node(annotation: str) -> bool:
    """Return whether a parameter with an annotation is nothing but a node, if anything."""
    return all(each.startswith("cst.") or each in ("Function", "None") for each in annotation.split(" | "))


class _Ways(dict[type, "bool | None"]):
    """How an argument of a type leads to a node: False if it is one, True if it has one, None if neither."""

    def __missing__(self, kind: type) -> bool | None:
        way = None
        if issubclass(kind, cst.CSTNode):
            way = False
        elif kind.__name__ in _WITH_NODE and kind.__module__.startswith("torchlint.semantics."):
            way = True
        self[kind] = way
        return way


_WAYS = _Ways()
_WITH_NODE = frozenset({"Binding", "Scope", "ClassInfo"})


def elsewhere(tree: SyntaxTree, argument: Any) -> cst.CSTNode | None:
    """Return the node of another file that an argument is, or is about; None for other arguments."""
    way = _WAYS[argument.__class__]
    if way is None:
        return None
    node: cst.CSTNode = argument.node if way else argument
    return node if tree.order.get(node, tree.first) >> RANK_SHIFT != tree.rank else None
