"""How a call of a function that was given up is brought to the form that its replacement takes.

Each form answers with the edits around the name of the function, which is replaced by who asks; None where
the two do not say the same, or where it cannot be seen. What the forms claim was compared with torch 2.13, in
which the old and the new function are both there, and with the documentation of those that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.arguments import add_argument, remove_argument
from torchlint.fixes.expressions import cut_off, replace
from torchlint.fixes.imports import spell
from torchlint.fixes.layout import Edits
from torchlint.semantics.evidence import default_dtype_changes

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

Form = Callable[["Module", cst.Call], Edits | None]


def given(call: cst.Call, *parameters: str) -> dict[str, cst.Arg] | None:
    """Return the arguments of a call by the names of its parameters, in order;
    None if stars hide some of them.
    """
    found: dict[str, cst.Arg] = {}
    for position, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and position >= len(parameters)):
            return None
        found[arg.keyword.value if arg.keyword is not None else parameters[position]] = arg
    return found


def constant(module: Module, arg: cst.Arg | None, default: object) -> object:
    """Return what an argument is, the default if it is absent;
    an object equal to nothing if it is not known.
    """
    if arg is None:
        return default
    match arg.value:
        case cst.Name("True" | "False" | "None" as word):
            return {"True": True, "False": False, "None": None}[word]
    value = module.value(arg.value).constant
    return value if isinstance(value, (bool, int, float, str)) else object()


def _keyword(module: Module, arg: cst.Arg, name: str) -> Edits:
    """Give an argument this keyword, whether it has one or none."""
    if arg.keyword is not None:
        return replace(module, arg.keyword, name) or ()
    at = module.tree.span(arg).start
    return (Edit(Span(at, at), f"{name}="),)


def _matrix(module: Module, arg: cst.Arg) -> Edits:
    """Return the first argument, which ``torch.linalg`` calls ``A``."""
    return _keyword(module, arg, "A") if arg.keyword is not None else ()


def _cholesky(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "upper")
    if found is None or "input" not in found:
        return None
    upper = found.get("upper")
    if upper is None:
        return _matrix(module, found["input"])
    if not module.target.at_least("1.10"):
        return None
    return _matrix(module, found["input"]) + _keyword(module, upper, "upper")


def _qr(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "some")
    if found is None or "input" not in found:
        return None
    edits = _matrix(module, found["input"])
    some = found.get("some")
    if some is None:
        return edits
    match constant(module, some, True):
        case True:
            return edits + remove_argument(module, some)
        case False:
            return (*edits, Edit(module.tree.span(some), 'mode="complete"'))
    return None


def _symeig(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "eigenvectors", "upper")
    if found is None or "input" not in found or "out" in found:
        return None
    vectors, upper = found.get("eigenvectors"), found.get("upper")
    triangle = constant(module, upper, True)
    if vectors is None or constant(module, vectors, False) is not True or triangle not in (True, False):
        return None
    # The lower triangle is what the replacement reads by default.
    kept = 'UPLO="U"' if triangle is True else ""
    edits = _matrix(module, found["input"])
    if upper is None:
        return (*edits, Edit(module.tree.span(vectors), kept))
    if kept:
        edits += (Edit(module.tree.span(upper), kept),)
        return edits + remove_argument(module, vectors)
    both = Span(
        min(module.tree.span(vectors).start, module.tree.span(upper).start),
        max(module.tree.span(vectors).end, module.tree.span(upper).end),
    )
    if list(call.args) != [found["input"], vectors, upper] or "#" in module.tree.text[both.start : both.end]:
        return None
    return (*edits, Edit(Span(module.tree.span(found["input"]).end, both.end), ""))


def _eigenvalues(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits that make ``torch.linalg.eigvalsh`` of ``torch.symeig`` without the vectors."""
    found = given(call, "input", "eigenvectors", "upper")
    if found is None or "input" not in found or "out" in found or "upper" in found:
        return None
    taken, vectors = _solution(module, call), found.get("eigenvectors")
    if taken is None or constant(module, vectors, False) is not False:
        return None
    if vectors is not None:
        return (*taken, *_matrix(module, found["input"]), Edit(module.tree.span(vectors), 'UPLO="U"'))
    added = add_argument(module, call, '"U"', keyword="UPLO", keyword_only=True)
    return (*taken, *_matrix(module, found["input"]), *added) if added is not None else None


def _chain_matmul(module: Module, call: cst.Call) -> Edits | None:
    plain = [arg for arg in call.args if arg.keyword is None]
    if len(plain) < 2 or any(arg.star for arg in call.args) or plain != list(call.args[: len(plain)]):
        return None
    start, end = module.tree.span(plain[0]).start, module.tree.span(plain[-1]).end
    return (Edit(Span(start, start), "["), Edit(Span(end, end), "]"))


def _matrix_rank(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "tol", "symmetric")
    if found is None or "input" not in found:
        return None
    symmetric = found.get("symmetric")
    named = symmetric is not None and symmetric.keyword is not None
    edits = _matrix(module, found["input"])
    return edits + _keyword(module, symmetric, "hermitian") if named and symmetric is not None else edits


def _lu(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "A")
    return () if found is not None and set(found) == {"A"} else None


def _lu_solve(module: Module, call: cst.Call) -> Edits | None:
    if len(call.args) != 3 or any(arg.star or arg.keyword is not None for arg in call.args):
        return None
    right, factors, pivots = call.args
    return _texts(module, (right, factors), (factors, pivots), (pivots, right))


def _solve(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "A")
    if found is None or set(found) != {"input", "A"} or any(arg.keyword is not None for arg in call.args):
        return None
    taken = _solution(module, call)
    swapped = _texts(module, (found["input"], found["A"]), (found["A"], found["input"]))
    return None if taken is None or swapped is None else taken + swapped


def _triangular_solve(module: Module, call: cst.Call) -> Edits | None:
    found = given(call, "input", "A", "upper", "transpose", "unitriangular")
    if found is None or not {"input", "A"} <= set(found) or "out" in found or "transpose" in found:
        return None
    if any(found[name].keyword is not None for name in ("input", "A")):
        return None
    taken = _solution(module, call)
    swapped = _texts(module, (found["input"], found["A"]), (found["A"], found["input"]))
    if taken is None or swapped is None:
        return None
    if "upper" in found:
        return taken + swapped + _keyword(module, found["upper"], "upper")
    first, second = swapped
    return (*taken, first, Edit(second.span, f"{second.content}, upper=True"))


def _texts(module: Module, *moves: tuple[cst.Arg, cst.Arg]) -> Edits | None:
    """Return the edits that put the text of the second argument of each pair where the first one stands."""
    edits = []
    for place, source in moves:
        span = module.tree.span(place)
        text = module.source(source.value)
        if "#" in module.tree.text[span.start : span.end] or "#" in text:
            return None
        edits.append(Edit(module.tree.outer_span(place.value), text))
    return tuple(edits)


def _solution(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits that take the first of a pair of results as it is, where only that is taken."""
    parent = module.tree.parent(call)
    match parent:
        case cst.Attribute(value=value, attr=cst.Name("solution" | "eigenvalues")) if value is call:
            return cut_off(module, call, parent)
        case cst.Subscript(
            value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer("0")))]
        ) if value is call:
            return cut_off(module, call, parent)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[first, second]) as pair)]):
            binding = module.binding_of(second.value)
            if isinstance(first.value, cst.Name) and binding is not None and not module.uses(binding):
                span = module.tree.outer_span(pair)
                if "#" not in module.tree.text[span.start : span.end]:
                    return (Edit(span, first.value.value),)
    return None


def _range(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits that make ``torch.arange`` of ``torch.range`` over whole numbers,
    with the end included.
    """
    numbers = [arg for arg in call.args if arg.keyword is None]
    named = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    if len(numbers) < 2 or any(arg.star for arg in call.args) or set(named) & {"start", "end", "step", "out"}:
        return None
    values = [constant(module, arg, 0) for arg in numbers]
    if any(type(value) is not int for value in values) or not isinstance(numbers[1].value, _LITERAL):
        return None
    step = values[2] if len(values) == 3 else 1
    first, last = values[0], values[1]
    assert isinstance(first, int) and isinstance(last, int) and isinstance(step, int)
    if step == 0 or (last - first) % step:
        return None
    edits: Edits = (Edit(module.tree.outer_span(numbers[1].value), str(last + step)),)
    if "dtype" in named:
        return edits
    dtype = spell(module, "torch.float32", call)
    if dtype is None or default_dtype_changes(module):
        return None
    at = module.tree.span(numbers[-1]).end
    if numbers[-1] is numbers[1]:
        return (Edit(edits[0].span, f"{last + step}, dtype={dtype.text}"), *dtype.edits)
    return (*edits, Edit(Span(at, at), f", dtype={dtype.text}"), *dtype.edits)


_LITERAL = (cst.Integer, cst.UnaryOperation)

FORMS: Final[Mapping[str, Form]] = {
    "cholesky": _cholesky,
    "qr": _qr,
    "symeig": _symeig,
    "chain_matmul": _chain_matmul,
    "matrix_rank": _matrix_rank,
    "lu": _lu,
    "lu_solve": _lu_solve,
    "solve": _solve,
    "triangular_solve": _triangular_solve,
    "range": _range,
}
"""The forms by the names that rows of the table call them by."""

ALTERNATIVES: Final[Mapping[str, tuple[str, Form]]] = {"symeig": ("torch.linalg.eigvalsh", _eigenvalues)}
"""Another function that is called instead, where its form fits."""

UNSAFE: Final = frozenset({"solve"})
"""Those that are right of matrices, but may not be of batches: ``linalg.solve`` may take one for vectors."""
