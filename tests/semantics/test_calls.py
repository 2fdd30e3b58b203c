"""What a call passes to each parameter: given, absent or unknown."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.semantics.calls import (
    BoundCall,
    Default,
    Parameter,
    ParameterKind,
    bind,
    parse_signature,
    signature_of_function,
)

PLAIN = ("a, b=2, *, c=None",)
VARIADIC = ("*size, out=None", "size, *, out=None")
OPEN = ("a, *rest, k=0, **others",)
STRICT = ("a, /, b=1",)
RANGE = ("end, *, d=None", "start, end, step=1, *, d=None")
TO = (
    "device: device | str | number | none = None, dtype: dtype | none = None, non_blocking: bool = False",
    "dtype: dtype, non_blocking: bool = False",
    "other: tensor, non_blocking: bool = False",
)


def parsed(code: str) -> cst.Call:
    node = cst.parse_expression(code)
    assert isinstance(node, cst.Call)
    return node


def shown(bound: BoundCall, name: str) -> str:
    """``absent``, ``unknown``, or the expressions given."""
    argument = bound.get(name)
    assert [argument.given, argument.absent, argument.unknown].count(True) == 1
    if argument.given:
        return " ".join(cst.Module([]).code_for_node(node) for node in argument.nodes)
    return argument.presence.value


@pytest.mark.parametrize(
    ("signature", "code", "name", "expected"),
    [
        (PLAIN, "f(1)", "a", "1"),
        (PLAIN, "f(1)", "b", "absent"),
        (PLAIN, "f(1, 2)", "b", "2"),
        (PLAIN, "f(b=2, a=1)", "a", "1"),
        (PLAIN, "f(1, c=3)", "c", "3"),
        (PLAIN, "f(1)", "nothing", "absent"),
        (PLAIN, "f(*x)", "a", "unknown"),
        (PLAIN, "f(*x)", "c", "absent"),
        (PLAIN, "f(1, *x)", "a", "1"),
        (PLAIN, "f(1, *x)", "b", "unknown"),
        (PLAIN, "f(*x, 1)", "b", "unknown"),
        (PLAIN, "f(*x, b=1)", "b", "1"),
        (PLAIN, "f(**x)", "a", "unknown"),
        (PLAIN, "f(1, **x)", "a", "1"),
        (PLAIN, "f(1, **x)", "b", "unknown"),
        (PLAIN, "f(1, **x)", "nothing", "absent"),
        (PLAIN, "f(1, c=3, **x)", "c", "3"),
        (PLAIN, "f(1, **{'b': 5})", "b", "5"),
        (PLAIN, "f(1, **{'b': 5})", "c", "absent"),
        (PLAIN, "f(1, **dict(c=5))", "c", "5"),
        (PLAIN, "f(1, **{k: 5})", "b", "unknown"),
        (PLAIN, "f(1, **{**x})", "b", "unknown"),
        (PLAIN, "f(1, **dict(x))", "b", "unknown"),
        (PLAIN, "f(*(1, 2))", "b", "2"),
        (PLAIN, "f(*[1])", "b", "absent"),
        (PLAIN, "f(*[1, *x])", "b", "unknown"),
        (PLAIN, "f(1, newer=2)", "newer", "2"),
        (PLAIN, "f(1, newer=2)", "b", "absent"),
        (PLAIN, "f(1, 2, 3)", "c", "absent"),
        (STRICT, "f(1, **x)", "a", "1"),
        (STRICT, "f(**x)", "b", "unknown"),
        (OPEN, "f(1, 2, 3)", "rest", "2 3"),
        (OPEN, "f(1)", "rest", "absent"),
        (OPEN, "f(1, *x)", "rest", "unknown"),
        (OPEN, "f(1, z=3)", "z", "3"),
        (OPEN, "f(1)", "z", "absent"),
        (OPEN, "f(1, **x)", "z", "unknown"),
        (VARIADIC, "f(2, 3)", "size", "2 3"),
        (VARIADIC, "f(2)", "size", "2"),
        (VARIADIC, "f((2, 3))", "size", "(2, 3)"),
        (VARIADIC, "f(size=(2, 3))", "size", "(2, 3)"),
        (VARIADIC, "f(*x)", "size", "unknown"),
        (VARIADIC, "f(*x)", "out", "absent"),
        (RANGE, "f(5)", "end", "5"),
        (RANGE, "f(5)", "start", "absent"),
        (RANGE, "f(0, 5)", "end", "5"),
        (RANGE, "f(0, 5)", "start", "0"),
        (RANGE, "f(0, 5, 2)", "step", "2"),
        (RANGE, "f(0, end=5)", "start", "0"),
        (RANGE, "f(end=5)", "end", "5"),
        (RANGE, "f(*x)", "d", "absent"),
        (RANGE, "f(0, 5, d=1)", "d", "1"),
        (TO, "f('cuda')", "device", "'cuda'"),
        (TO, "f('cuda')", "dtype", "absent"),
        (TO, "f(0)", "device", "0"),
        (TO, "f(x)", "device", "unknown"),
        (TO, "f(x)", "non_blocking", "absent"),
        (TO, "f(x, non_blocking=True)", "non_blocking", "True"),
        (TO, "f(x, True)", "non_blocking", "True"),
        (TO, "f(x, y)", "non_blocking", "unknown"),
        (TO, "f(x, y, True)", "device", "x"),
        (TO, "f(device=x)", "device", "x"),
        (TO, "f(dtype=x)", "device", "absent"),
        (TO, "f(other=x)", "device", "absent"),
        (TO, "f(t, True)", "other", "t"),
        (TO, "f(half, True)", "dtype", "half"),
        (TO, "f(half)", "device", "absent"),
    ],
)
def test_binding(signature: tuple[str, ...], code: str, name: str, expected: str) -> None:
    def classify(node: cst.BaseExpression) -> str | None:
        from torchlint.semantics.calls import literal_kind

        known = {"t": "tensor", "half": "dtype"}
        return (
            known.get(node.value)
            if isinstance(node, cst.Name) and node.value in known
            else literal_kind(node)
        )

    bound = bind(parsed(code), parse_signature(*signature), classify=classify)
    assert shown(bound, name) == expected


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [
        ("f(k=1)", "k", "1"),
        ("f(k=1)", "j", "absent"),
        ("f()", "j", "absent"),
        ("f(1)", "j", "unknown"),
        ("f(1, k=2)", "k", "2"),
        ("f(*x)", "j", "unknown"),
        ("f(**x)", "j", "unknown"),
    ],
)
def test_binding_without_a_signature(code: str, name: str, expected: str) -> None:
    assert shown(bind(parsed(code), None), name) == expected


@pytest.mark.parametrize(
    ("preset", "code", "name", "expected"),
    [
        ("partial(f, 1)", "g(2)", "a", "1"),
        ("partial(f, 1)", "g(2)", "b", "2"),
        ("partial(f, 1)", "g()", "b", "absent"),
        ("partial(f, c=3)", "g(1)", "c", "3"),
        ("partial(f, c=3)", "g(1, c=4)", "c", "4"),
        ("partial(f, **x)", "g(1)", "c", "unknown"),
        ("partial(f, *x)", "g(1)", "b", "unknown"),
    ],
)
def test_binding_through_a_partial(preset: str, code: str, name: str, expected: str) -> None:
    bound = bind(parsed(code), parse_signature(*PLAIN), presets=[parsed(preset)])
    assert shown(bound, name) == expected


def test_an_argument_knows_its_place() -> None:
    call = parsed("f(1, c=3)")
    bound = bind(call, parse_signature(*PLAIN))
    given = bound.get("c")
    assert given.arg is call.args[1]
    assert given.index == 1
    assert given.node is call.args[1].value
    assert given.default is None
    assert bound.get("b").default == 2
    assert bound.parameter(call.args[0]) == "a"
    assert list(bound.given) == ["a", "c"]


def test_a_value_from_a_literal_mapping_has_no_argument_to_edit() -> None:
    given = bind(parsed("f(1, **{'b': 5})"), parse_signature(*PLAIN)).get("b")
    assert given.node is not None
    assert given.arg is None
    assert given.index is None


def test_an_argument_behind_a_star_has_no_known_parameter() -> None:
    call = parsed("f(*x, 1)")
    assert bind(call, parse_signature(*PLAIN)).parameter(call.args[1]) is None


def test_several_values_of_one_parameter_are_no_single_node() -> None:
    given = bind(parsed("f(2, 3)"), parse_signature(*VARIADIC)).get("size")
    assert given.node is None
    assert len(given.nodes) == 2


def function(code: str) -> cst.FunctionDef:
    node = cst.parse_statement(code)
    assert isinstance(node, cst.FunctionDef)
    return node


def test_the_signature_of_a_function() -> None:
    declared = signature_of_function(function("def f(p, /, a, b=-1, *r, c, d=None, e=x, **k): pass"))
    kind = ParameterKind
    assert declared.parameters == (
        Parameter("p", kind.POSITIONAL_ONLY),
        Parameter("a", kind.POSITIONAL),
        Parameter("b", kind.POSITIONAL, -1),
        Parameter("r", kind.VAR_POSITIONAL),
        Parameter("c", kind.KEYWORD_ONLY),
        Parameter("d", kind.KEYWORD_ONLY, None),
        Parameter("e", kind.KEYWORD_ONLY, Default.OPAQUE),
        Parameter("k", kind.VAR_KEYWORD),
    )


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("def f(self, x): pass", ["x"]),
        ("def f(self, /, x): pass", ["x"]),
        ("def f(*args): pass", ["args"]),
        ("def f(): pass", []),
    ],
)
def test_a_bound_method_has_no_first_parameter(code: str, names: list[str]) -> None:
    assert [p.name for p in signature_of_function(function(code), bound=True)] == names


def test_the_signature_of_a_lambda() -> None:
    node = cst.parse_expression("lambda x, y=1: x")
    assert isinstance(node, cst.Lambda)
    assert [(p.name, p.default) for p in signature_of_function(node)] == [("x", Default.REQUIRED), ("y", 1)]


def test_a_written_signature_is_read_like_a_function() -> None:
    text = "p, /, a, b=-1, *r, c, d=None, e=x, **k"
    assert parse_signature(text) == signature_of_function(function(f"def f({text}): pass"))


def test_the_first_overload_with_a_parameter_answers_for_it() -> None:
    signature = parse_signature(*RANGE)
    step = signature.get("step")
    assert step is not None
    assert step.default == 1
    assert signature.get("nothing") is None
