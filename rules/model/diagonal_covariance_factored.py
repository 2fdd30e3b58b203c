"""TL418: a covariance matrix that is diagonal is factored as if it were not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.constancy import unwritten
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import given_as
from torchlint.semantics.values import Kind

_NORMAL = frozenset(
    {
        "torch.distributions.MultivariateNormal",
        "torch.distributions.multivariate_normal.MultivariateNormal",
    }
)
_FACTORS = frozenset({"torch.linalg.cholesky", "torch.cholesky", "torch.linalg.cholesky_ex"})
_MATRICES = {"covariance_matrix": 1, "precision_matrix": 2, "scale_tril": 3}
_DIAGONAL = frozenset({"diag", "diag_embed", "eye"})
# What leaves a diagonal matrix diagonal: moves, casts, and batches of it.
_KEEPING = frozenset(
    {"clone", "contiguous", "cpu", "cuda", "detach", "double", "expand", "expand_as", "float", "half"}
    | {"repeat", "sqrt", "to", "type_as", "unsqueeze", "requires_grad_"}
)
_ONCE = frozenset({"__init__", "reset_parameters"})


@rule(
    "TL418",
    "diagonal-covariance-factored",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("MultivariateNormal|cholesky", "diag|eye"),
    remedy="Use `Independent(Normal(mean, std), 1)`, with the square roots of the diagonal as `std`",
)
def diagonal_covariance_factored(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `MultivariateNormal` whose covariance, precision or scale is made by `torch.diag`,
    `torch.diag_embed` or `torch.eye`, and `torch.linalg.cholesky` of such a matrix: directly, through
    variables, attributes and functions, with or without a factor.

    The rule ignores distributions that are made once: at the level of a module, or in a constructor.

    ## Why is this bad?

    The dimensions are independent, but torch makes matrices of zeros, factors each of them, waits for the
    device to tell whether that worked, and solves a triangular system for each `log_prob`. That is cubic in
    the number of dimensions, where a product for each of them would do.

    ## Example

    ```python
    covariance = torch.diag_embed(std**2)
    distribution = MultivariateNormal(mean, covariance)
    ```

    ## Use instead

    ```python
    distribution = Independent(Normal(mean, std), 1)
    ```

    ## Fix safety

    There is no fix, because other code may ask the distribution for its covariance matrix, or for its
    divergence from another one.

    ## References

    - [torch.distributions.independent.Independent](https://docs.pytorch.org/docs/stable/distributions.html)
    """
    name = module.qualified(call.func)
    function = module.function(call)
    if name is None or is_test(module):
        return
    if not isinstance(function, cst.FunctionDef) or function.name.value in _ONCE:
        return
    slight = "not in a hot loop" if places.hot(module, call) is None else None
    if name in _NORMAL:
        given = [given_as(call, matrix, place) for matrix, place in _MATRICES.items()]
        matrices = [node for node in given if node is not None]
        if len(matrices) == 1 and every(_is_diagonal(module, matrices[0])):
            yield Finding(
                call,
                "`MultivariateNormal` factors a diagonal matrix; the dimensions are independent",
                slight=slight,
            )
    elif name in _FACTORS and call.args and every(_is_diagonal(module, call.args[0].value)):
        yield Finding(
            call,
            f"`{name}` factors a diagonal matrix, whose factor is the square root of it",
            remedy="Take the square root of the diagonal",
            slight=slight,
        )


@traced(Through.PARAMETERS | Through.RETURNS | Through.ITEMS)
def _is_diagonal(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a matrix is made diagonal, and stays so."""
    if path:
        return None
    match node:
        case cst.Name() if not unwritten(module, node):
            return False
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            return every(_is_diagonal(module, left)) or every(_is_diagonal(module, right))
        case cst.BinaryOperation(operator=cst.Add(), left=left, right=right):
            return onward(left, right)
        case cst.BinaryOperation(operator=cst.Divide(), left=left):
            return onward(left)
        case cst.Call(func=cst.Attribute(attr=cst.Name(method), value=owner)):
            dotted = module.qualified(node.func)
            if dotted is not None:
                return True if dotted.startswith("torch.") and method in _DIAGONAL else None
            if method in ("diag", "diag_embed"):
                return module.value(owner).kind is Kind.TENSOR or None
            return onward(owner) if method in _KEEPING else None
        case cst.Call():
            dotted = module.qualified(node.func) or ""
            return True if dotted.startswith("torch.") and dotted[6:] in _DIAGONAL else None
    return None
