"""LibCST's node classes, made quicker: they build, check and compare as LibCST has them."""

from __future__ import annotations

import subprocess
import sys

import libcst as cst
import pytest

from torchlint import nodes

TEXT = '''\
@decorated(a, *b, c=1)  # a comment
async def f(x: int = 3, *, y, **z) -> "text":
    """Doc."""
    with open(x) as file, other:
        return [i async for i in file if i not in z][1:2, ...] or (lambda: f"{x!r:>{y}}")
    try:
        del x
    except (A, B) as error:
        raise C from error
    finally:
        global g; assert x <= y != -z
'''

PRINTING = "import libcst, sys; print(libcst.parse_module(sys.argv[1]))"


def test_a_tree_is_the_one_that_libcst_builds_by_itself() -> None:
    plain, quick = (
        subprocess.run([sys.executable, "-c", code, TEXT], capture_output=True, text=True, check=True).stdout
        for code in (PRINTING, f"import torchlint.nodes; {PRINTING}")
    )
    assert quick == plain
    assert len(plain) > len(TEXT)


DECLARED = """
import dataclasses, libcst
for kind in vars(libcst).values():
    if isinstance(kind, type) and issubclass(kind, libcst.CSTNode):
        names = [(field.name, field.init) for field in dataclasses.fields(kind)]
        print(kind.__name__, kind.__dataclass_params__, kind.__match_args__, kind.__slots__, names)
"""


def test_the_classes_are_declared_as_libcst_declares_them() -> None:
    plain, quick = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for code in (DECLARED, f"import torchlint.nodes\n{DECLARED}")
    )
    assert quick == plain
    assert "Name _DataclassParams(" in plain


def test_what_is_left_out_gets_its_default() -> None:
    first, second = cst.Arg(cst.Name("x")), cst.Arg(cst.Name("x"))
    assert first.comma is cst.MaybeSentinel.DEFAULT
    assert first.star == ""
    assert isinstance(first.whitespace_after_star, cst.SimpleWhitespace)
    assert first.whitespace_after_star is not second.whitespace_after_star
    with pytest.raises(TypeError, match="value"):
        cst.Arg()  # type: ignore[call-arg]


def test_a_node_built_by_hand_is_checked() -> None:
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")
    with nodes.unchecked():
        assert cst.Name("").value == ""
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")


def test_checks_are_on_again_behind_a_failure() -> None:
    with pytest.raises(cst.ParserSyntaxError), nodes.unchecked():
        cst.parse_module("x = (")
    with pytest.raises(cst.CSTValidationError):
        cst.Name("")


def test_nodes_differ_by_identity_and_types_by_inheritance() -> None:
    one, other = cst.Name("x"), cst.Name("x")
    assert len({one, other, one}) == 2
    assert isinstance(one, cst.BaseExpression)
    assert not isinstance(one, cst.BaseStatement)
    assert isinstance(cst.Pass(), cst.BaseSmallStatement)
    assert one.deep_equals(other.with_changes())


def test_abstract_classes_stay_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        cst.BaseExpression()  # type: ignore[abstract]
