"""Arguments bound by signature: what a call passes to each parameter, and what cannot be known.

A parameter is *given* (the call spells its value), *absent* (the call provably leaves it to its default) or
*unknown* (``*args`` or ``**kwargs`` may hold it, or several overloads disagree). Rules must treat the three
differently: unknown is neither present nor absent.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import libcst as cst


class ParameterKind(enum.Enum):
    """How a parameter takes its arguments, as the language has it."""

    POSITIONAL_ONLY = "positional only"
    POSITIONAL = "positional or keyword"
    VAR_POSITIONAL = "*"
    KEYWORD_ONLY = "keyword only"
    VAR_KEYWORD = "**"

    @property
    def by_position(self) -> bool:
        """Whether one positional argument fills it."""
        return self in (ParameterKind.POSITIONAL_ONLY, ParameterKind.POSITIONAL)

    @property
    def by_keyword(self) -> bool:
        """Whether a keyword argument of its name fills it."""
        return self in (ParameterKind.POSITIONAL, ParameterKind.KEYWORD_ONLY)


class Default(enum.Enum):
    """What stands for a default value that is no constant."""

    REQUIRED = "required"
    """There is none: the parameter must be given."""
    OPAQUE = "opaque"
    """There is one, but it is not a literal."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name, how it is filled, its default, and what it ``accepts``.

    ``accepts`` are words of :func:`literal_kind` and tells overloads apart; empty means anything.
    """

    name: str
    kind: ParameterKind = ParameterKind.POSITIONAL
    default: object = Default.REQUIRED
    accepts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a callable in order; ``overloads`` are the other ways in which it may be called."""

    parameters: tuple[Parameter, ...]
    overloads: tuple[Signature, ...] = ()

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def get(self, name: str) -> Parameter | None:
        """Return the parameter of this name in the first overload that has one."""
        for signature in (self, *self.overloads):
            for parameter in signature.parameters:
                if parameter.name == name:
                    return parameter
        return None

    @property
    def without_first(self) -> Signature:
        """The signature of a method as its caller sees it: without ``self`` or ``cls``."""
        first = self.parameters[0] if self.parameters else None
        kept = self.parameters[1:] if first is not None and first.kind.by_position else self.parameters
        return Signature(kept, tuple(overload.without_first for overload in self.overloads))


class Presence(enum.Enum):
    """Whether a call passes a parameter."""

    GIVEN = "given"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call passes for one parameter.

    ``nodes`` are the value expressions: one, or any number for a ``*`` parameter. ``arg`` is the argument to
    edit and ``index`` its place in the call; both are None where the value has no argument of its own (it
    comes out of a literal ``**{...}`` or ``*(...)``, or is not given). ``default`` is what is used if absent.
    """

    presence: Presence
    nodes: tuple[cst.BaseExpression, ...] = ()
    arg: cst.Arg | None = None
    index: int | None = None
    default: object = field(default=Default.REQUIRED, compare=False)

    @property
    def given(self) -> bool:
        """Whether the call spells a value."""
        return self.presence is Presence.GIVEN

    @property
    def absent(self) -> bool:
        """Whether the call provably passes none, so that the default is used."""
        return self.presence is Presence.ABSENT

    @property
    def unknown(self) -> bool:
        """Whether nothing can be said."""
        return self.presence is Presence.UNKNOWN

    @property
    def node(self) -> cst.BaseExpression | None:
        """The value expression, if there is exactly one."""
        return self.nodes[0] if len(self.nodes) == 1 else None


_UNKNOWN = Argument(Presence.UNKNOWN)
_ABSENT = Argument(Presence.ABSENT)

Classify = Callable[[cst.BaseExpression], "str | None"]
Resolve = Callable[[cst.BaseExpression], "cst.BaseExpression | Unpacked"]


def literal_kind(node: cst.BaseExpression) -> str | None:
    """Return what a literal is, in the words of ``Parameter.accepts``; None for anything else."""
    match node:
        case cst.Integer() | cst.Float() | cst.UnaryOperation(expression=cst.Integer() | cst.Float()):
            return "number"
        case cst.SimpleString() | cst.ConcatenatedString() | cst.FormattedString():
            return "str"
        case cst.Name(value="True" | "False") | cst.Comparison():
            return "bool"
        case cst.Name(value="None"):
            return "none"
        case cst.Tuple() | cst.List():
            return "size"
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What ``*args`` and ``**kwargs`` of a function hold in one call of it."""

    positional: tuple[cst.BaseExpression, ...]
    keywords: Mapping[str, cst.BaseExpression]


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call with its arguments laid against the signatures that admit it."""

    call: cst.Call
    signature: Signature | None
    _bindings: tuple[_Binding, ...] = field(repr=False)

    def get(self, name: str) -> Argument:
        """Return what the call passes for a parameter; unknown where overloads that fit disagree."""
        first = self._bindings[0].get(name)
        return first if all(other.get(name) == first for other in self._bindings[1:]) else _UNKNOWN

    def parameter(self, argument: cst.Arg) -> str | None:
        """Return the name of the parameter that ``argument`` fills; None if it is unknown."""
        names = {binding.names.get(argument) for binding in self._bindings}
        return names.pop() if len(names) == 1 else None

    @property
    def unpacked(self) -> Unpacked | None:
        """What goes into ``*args`` and ``**kwargs`` of the callee; None if not all of it is known."""
        return self._bindings[0].unpacked if len(self._bindings) == 1 else None

    @property
    def given(self) -> Mapping[str, Argument]:
        """All parameters that the call surely gives, by name."""
        first, *others = self._bindings
        return {
            name: argument
            for name, argument in first.given.items()
            if all(other.given.get(name) == argument for other in others)
        }


@dataclass(frozen=True, slots=True)
class _Given:
    """One value passed by a call, before it is known to which parameter it goes."""

    node: cst.BaseExpression
    arg: cst.Arg | None
    index: int | None


@dataclass(slots=True)
class _Passed:
    """The values that a call passes, those of ``functools.partial`` before its own."""

    positional: list[_Given] = field(default_factory=list)
    keywords: dict[str, _Given] = field(default_factory=dict)
    star: bool = False  # more positional values, how many is not known
    double_star: bool = False  # more keyword values, which is not known
    adrift: list[cst.Arg] = field(default_factory=list)  # positional ones behind a star
    resolve: Resolve = lambda node: node  # what stands for a variable that is unpacked

    def add(self, arguments: Sequence[cst.Arg], offset: int) -> None:
        for index, argument in enumerate(arguments, start=offset):
            given = _Given(argument.value, argument, index)
            if argument.keyword is not None:
                self.keywords[argument.keyword.value] = given
            elif argument.star == "**":
                self._add_mapping(self.resolve(argument.value))
            elif argument.star == "*":
                self._add_sequence(self.resolve(argument.value))
            elif self.star:
                self.adrift.append(argument)
            else:
                self.positional.append(given)

    def _add_sequence(self, value: cst.BaseExpression | Unpacked) -> None:
        if isinstance(value, Unpacked):
            self.positional += [_Given(node, None, None) for node in value.positional]
            return
        elements = value.elements if isinstance(value, (cst.List, cst.Tuple)) else None
        if elements is None or self.star or not all(isinstance(e, cst.Element) for e in elements):
            self.star = True
        else:
            self.positional += [_Given(element.value, None, None) for element in elements]

    def _add_mapping(self, value: cst.BaseExpression | Unpacked) -> None:
        pairs = value.keywords if isinstance(value, Unpacked) else _literal_pairs(value)
        if pairs is None:
            self.double_star = True
            return
        for name, node in pairs.items():
            self.keywords[name] = _Given(node, None, None)


def _literal_pairs(value: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
    """Return the keywords in ``{"name": value}`` or ``dict(name=value)``; None if some are open."""
    pairs: dict[str, cst.BaseExpression] = {}
    match value:
        case cst.Dict(elements=elements):
            for element in elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                key = element.key.evaluated_value
                if not isinstance(key, str):
                    return None
                pairs[key] = element.value
        case cst.Call(func=cst.Name(value="dict"), args=arguments):
            for argument in arguments:
                if argument.keyword is None:
                    return None
                pairs[argument.keyword.value] = argument.value
        case _:
            return None
    return pairs


class _Binding:
    """One signature filled with the values that a call passes."""

    __slots__ = ("given", "names", "_maybe", "_parameters", "_open", "fits")

    def __init__(self, passed: _Passed, signature: Signature | None, classify: Classify) -> None:
        self.given: dict[str, Argument] = {}
        self.names: dict[cst.Arg, str | None] = {}
        self._maybe: set[str] = set()
        self._parameters = {p.name: p for p in signature.parameters} if signature is not None else {}
        # Without a signature, a positional argument may be anything.
        self._open = signature is None and bool(passed.positional or passed.star or passed.double_star)
        self.fits = True
        parameters = signature.parameters if signature is not None else ()
        slots = [p for p in parameters if p.kind.by_position]
        self._fill_positions(passed, slots, parameters)
        self._fill_keywords(passed, parameters, known=signature is not None)
        self._leave_open(passed, slots, parameters)
        for name, argument in self.given.items():
            accepts = self._parameters[name].accepts if name in self._parameters else None
            if accepts and not all(classify(node) in (None, *accepts) for node in argument.nodes):
                self.fits = False

    def get(self, name: str) -> Argument:
        if name in self.given:
            return self.given[name]
        if self._open or name in self._maybe:
            return _UNKNOWN
        parameter = self._parameters.get(name)
        if parameter is not None:
            return Argument(Presence.ABSENT, default=parameter.default)
        takes_any = any(p.kind is ParameterKind.VAR_KEYWORD for p in self._parameters.values())
        return _UNKNOWN if takes_any and "**" in self._maybe else _ABSENT

    @property
    def unpacked(self) -> Unpacked | None:
        """What goes into the parameters with stars; None if not all of it is known."""
        stars = [p for p in self._parameters.values() if p.kind is ParameterKind.VAR_POSITIONAL]
        if "**" in self._maybe or any(star.name in self._maybe for star in stars):
            return None
        positional = tuple(
            node for star in stars if star.name in self.given for node in self.given[star.name].nodes
        )
        others = {name: each for name, each in self.given.items() if name not in self._parameters}
        return Unpacked(positional, {name: each.nodes[0] for name, each in others.items()})

    def _fill_positions(
        self, passed: _Passed, slots: list[Parameter], parameters: Sequence[Parameter]
    ) -> None:
        for given, slot in zip(passed.positional, slots, strict=False):
            self._give(slot.name, given)
        rest = passed.positional[len(slots) :]
        variadic = next((p for p in parameters if p.kind is ParameterKind.VAR_POSITIONAL), None)
        if rest and variadic is None:
            self.fits = False
        elif rest and variadic is not None:
            single = rest[0] if len(rest) == 1 else _Given(rest[0].node, None, None)
            nodes = tuple(given.node for given in rest)
            self.given[variadic.name] = Argument(Presence.GIVEN, nodes, single.arg, single.index)
            self.names.update({given.arg: variadic.name for given in rest if given.arg is not None})
        if passed.star and variadic is not None:
            self.given.pop(variadic.name, None)
            self._maybe.add(variadic.name)

    def _fill_keywords(self, passed: _Passed, parameters: Sequence[Parameter], *, known: bool) -> None:
        takes_any = any(p.kind is ParameterKind.VAR_KEYWORD for p in parameters)
        for name, given in passed.keywords.items():
            parameter = self._parameters.get(name)
            if name in self.given or (
                known and not takes_any and (parameter is None or not parameter.kind.by_keyword)
            ):
                self.fits = False
            self._give(name, given)

    def _leave_open(self, passed: _Passed, slots: list[Parameter], parameters: Sequence[Parameter]) -> None:
        """Mark what stars may hold, and refuse a signature whose required parameters nothing fills."""
        if passed.star:
            self._maybe.update(slot.name for slot in slots[len(passed.positional) :])
            for argument in passed.adrift:
                self.names[argument] = None
        if passed.double_star:
            self._maybe.update(p.name for p in parameters if p.kind.by_keyword)
            self._maybe.add("**")
        for parameter in parameters:
            if (
                parameter.default is Default.REQUIRED
                and (parameter.kind.by_position or parameter.kind.by_keyword)
                and parameter.name not in self.given
                and parameter.name not in self._maybe
            ):
                self.fits = False

    def _give(self, name: str, given: _Given) -> None:
        parameter = self._parameters.get(name)
        default = parameter.default if parameter is not None else Default.REQUIRED
        self.given[name] = Argument(Presence.GIVEN, (given.node,), given.arg, given.index, default)
        if given.arg is not None:
            self.names[given.arg] = name


def bind(
    call: cst.Call,
    signature: Signature | None,
    *,
    presets: Sequence[cst.Call] = (),
    classify: Classify = literal_kind,
    resolve: Resolve | None = None,
    unpacked: Unpacked | None = None,
) -> BoundCall:
    """Lay the arguments of ``call`` against ``signature``.

    ``presets`` are the ``functools.partial(f, ...)`` calls around the callable, innermost first: their
    arguments come before the call's own. ``classify`` says what an expression is, in the words of
    ``Parameter.accepts``, so that overloads which take the same number of arguments can be told apart;
    ``resolve`` gives the literal behind a variable that is unpacked with a star, if it has one, and
    ``unpacked`` is what all stars of the call hold, where that is known. Where no overload fits, each is
    bound as far as it goes: the table may be older than the program.
    """
    if unpacked is not None:
        passed = _Passed(resolve=lambda _: unpacked)
    else:
        passed = _Passed() if resolve is None else _Passed(resolve=resolve)
    for preset in presets:
        passed.add(preset.args[1:], 1)
    passed.add(call.args, 0)
    if signature is None:
        return BoundCall(call, None, (_Binding(passed, None, classify),))
    bindings = [_Binding(passed, overload, classify) for overload in (signature, *signature.overloads)]
    fitting = tuple(binding for binding in bindings if binding.fits)
    return BoundCall(call, signature, fitting or tuple(bindings))


def either(ways: Sequence[BoundCall]) -> BoundCall:
    """Return a call that is bound in several ways, as one of which only that is known in which they agree."""
    first, *_ = ways
    return BoundCall(first.call, first.signature, tuple(each for way in ways for each in way._bindings))


def signature_of_function(function: cst.FunctionDef | cst.Lambda, *, bound: bool = False) -> Signature:
    """Return the signature of a ``def`` or ``lambda``; ``bound`` leaves out ``self`` or ``cls``."""
    declared = function.params
    parameters = [_declared(p, ParameterKind.POSITIONAL_ONLY) for p in declared.posonly_params]
    parameters += [_declared(p, ParameterKind.POSITIONAL) for p in declared.params]
    if isinstance(declared.star_arg, cst.Param):
        parameters.append(_declared(declared.star_arg, ParameterKind.VAR_POSITIONAL))
    parameters += [_declared(p, ParameterKind.KEYWORD_ONLY) for p in declared.kwonly_params]
    if declared.star_kwarg is not None:
        parameters.append(_declared(declared.star_kwarg, ParameterKind.VAR_KEYWORD))
    signature = Signature(tuple(parameters))
    return signature.without_first if bound else signature


def _declared(parameter: cst.Param, kind: ParameterKind) -> Parameter:
    if kind in (ParameterKind.VAR_POSITIONAL, ParameterKind.VAR_KEYWORD) or parameter.default is None:
        return Parameter(parameter.name.value, kind)
    return Parameter(parameter.name.value, kind, _constant(parameter.default))


def _constant(node: cst.BaseExpression) -> object:
    match node:
        case cst.Name(value="None"):
            return None
        case cst.Name(value="True" | "False" as word):
            return word == "True"
        case cst.Integer() | cst.Float() | cst.SimpleString():
            return node.evaluated_value
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() | cst.Float() as number):
            return -number.evaluated_value
        case _:
            return Default.OPAQUE


@cache
def parse_signature(*texts: str) -> Signature:
    """Return the signature that ``texts`` write down, one overload each, in the notation of a ``def``.

    An annotation names what the parameter accepts (``device: device | str | none = None``).

    Raises:
        SyntaxError: a text is no list of parameters.
    """
    first, *others = (Signature(tuple(_parameters(text))) for text in texts)
    return Signature(first.parameters, tuple(others))


def _parameters(text: str) -> Iterator[Parameter]:
    function = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    declared = function.args
    by_position = [
        *((arg, ParameterKind.POSITIONAL_ONLY) for arg in declared.posonlyargs),
        *((arg, ParameterKind.POSITIONAL) for arg in declared.args),
    ]
    required = len(by_position) - len(declared.defaults)
    for index, (arg, kind) in enumerate(by_position):
        yield _written(arg, kind, declared.defaults[index - required] if index >= required else None)
    if declared.vararg is not None:
        yield _written(declared.vararg, ParameterKind.VAR_POSITIONAL, None)
    for arg, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
        yield _written(arg, ParameterKind.KEYWORD_ONLY, default)
    if declared.kwarg is not None:
        yield _written(declared.kwarg, ParameterKind.VAR_KEYWORD, None)


def _written(arg: ast.arg, kind: ParameterKind, default: ast.expr | None) -> Parameter:
    value: object = Default.REQUIRED
    if default is not None:
        try:
            value = ast.literal_eval(default)
        except ValueError:
            value = Default.OPAQUE
    accepts = ast.unparse(arg.annotation).replace(" ", "").split("|") if arg.annotation is not None else ()
    return Parameter(arg.arg, kind, value, frozenset(accepts))
