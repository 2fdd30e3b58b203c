"""The signature table against the installed torch: parameter names, order and defaults."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from torchlint.semantics.api import signatures
from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.calls import Default, ParameterKind, Signature


def names_of(table: dict[str, dict[str, Any]]) -> list[str]:
    """The qualified names of one of the module's tables."""
    return [prefix + name for prefix, family in table.items() for names in family for name in names.split()]


def found(qualified: str) -> Any:
    """The object of torch that a dotted name reaches."""
    head, *rest = qualified.split(".")
    for index in range(len(rest), -1, -1):
        try:
            module = importlib.import_module(".".join([head, *rest[:index]]))
        except ImportError:
            continue
        return functools.reduce(getattr, rest[index:], module)
    raise AssertionError(f"{qualified} is not in torch")


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: ParameterKind.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.POSITIONAL,
    inspect.Parameter.VAR_POSITIONAL: ParameterKind.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.KEYWORD_ONLY,
    inspect.Parameter.VAR_KEYWORD: ParameterKind.VAR_KEYWORD,
}


def default_of(value: object) -> object:
    if value is inspect.Parameter.empty:
        return Default.REQUIRED
    return value if value is None or isinstance(value, (bool, int, float, str, tuple)) else Default.OPAQUE


@pytest.mark.parametrize("qualified", names_of(signatures._PYTHON))
def test_a_python_function_is_as_torch_declares_it(qualified: str) -> None:
    target = found(qualified)
    owner = found(qualified.rpartition(".")[0])
    parameters = list(inspect.signature(target).parameters.values())
    if inspect.isclass(owner) and inspect.isfunction(target):
        parameters = parameters[1:]
    declared = [(p.name, KINDS[p.kind], default_of(p.default)) for p in parameters]
    written = [(p.name, p.kind, p.default) for p in SIGNATURES[qualified]]
    opaque = {name for name, _, default in written if default is Default.OPAQUE or default is Ellipsis}
    assert [(n, k, None if n in opaque else d) for n, k, d in written] == [
        (n, k, None if n in opaque else d) for n, k, d in declared
    ]


@functools.cache
def stubs() -> dict[str, list[ast.FunctionDef]]:
    """The functions and tensor methods declared in the stubs that torch ships, by qualified name."""
    folder = Path(torch.__file__).parent / "_C"
    functions: dict[str, list[ast.FunctionDef]] = {}
    for file, owner, prefix in (
        ("_VariableFunctions.pyi", None, "torch."),
        ("__init__.pyi", "TensorBase", "torch.Tensor."),
        ("_nn.pyi", None, "torch.nn.functional."),
    ):
        tree = ast.parse((folder / file).read_text(encoding="utf-8"))
        body = tree.body
        if owner is not None:
            body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner).body
        for node in body:
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(prefix + node.name, []).append(node)
    for name, declared in list(functions.items()):
        if name.startswith("torch.") and name.count(".") == 1:
            functions.setdefault(f"torch.nn.functional.{name[6:]}", declared)
    return functions


# Here the stubs depart from what torch itself accepts; these are called instead, below.
DOCUMENTED_ONLY = frozenset(
    {
        "torch.tensor",
        "torch.Tensor.requires_grad_",
        "torch.nn.functional.gelu",
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.Tensor.type",
        "torch.nn.functional.max_pool1d",
        "torch.nn.functional.max_pool2d",
        "torch.nn.functional.max_pool3d",
    }
)
NATIVE = [
    name
    for name in names_of(signatures._NATIVE)
    if name.startswith(("torch.Tensor.", "torch.nn.functional."))
    or (name.count(".") == 1 and not name.endswith("Tensor"))
]


def positions(signature: Signature) -> tuple[str, ...]:
    return tuple(p.name for p in signature if p.kind.by_position or p.kind is ParameterKind.VAR_POSITIONAL)


@pytest.mark.parametrize("qualified", [name for name in NATIVE if name not in DOCUMENTED_ONLY])
def test_a_native_function_is_as_the_stubs_declare_it(qualified: str) -> None:
    declared = stubs()[qualified]
    keywords: set[str] = set()
    orders: set[tuple[str, ...]] = set()
    for node in declared:
        arguments = node.args
        order = [arg.arg for arg in arguments.posonlyargs + arguments.args if arg.arg != "self"]
        if arguments.vararg is not None:
            order.append(arguments.vararg.arg)
        orders.add(tuple(order))
        keywords.update(order, (arg.arg for arg in arguments.kwonlyargs))
    for signature in (SIGNATURES[qualified], *SIGNATURES[qualified].overloads):
        assert {p.name for p in signature} <= keywords
        assert positions(signature) in orders


def test_torch_accepts_what_its_stubs_say_otherwise() -> None:
    tensor = torch.zeros(1, 1, 2, 2)
    functional = torch.nn.functional
    require_grad: Any = tensor.requires_grad_
    require_grad(requires_grad=False)
    functional.gelu(tensor, approximate="tanh")
    for dimensions in (1, 2, 3):
        pool = getattr(functional, f"max_pool{dimensions}d")
        pool(torch.zeros([2] * (2 + dimensions)), 1, 1, 0, 1, False, False)
    functional.scaled_dot_product_attention(tensor, tensor, tensor, None, 0.0, False, scale=1.0)
    torch.tensor(1, dtype=None, device=None, requires_grad=False, pin_memory=False)
    with pytest.raises(TypeError):
        torch.tensor(1, torch.float64)
    with pytest.raises(TypeError):
        functional.gelu(tensor, "tanh")
    with pytest.raises(TypeError):
        functional.scaled_dot_product_attention(tensor, tensor, tensor, None, 0.0, False, 1.0)


def test_every_written_signature_can_be_read() -> None:
    assert all(len(SIGNATURES[name].parameters) >= 0 for name in SIGNATURES)
    assert len(SIGNATURES) > 350


@pytest.mark.parametrize("name", names_of(signatures._NATIVE))
def test_a_native_name_exists(name: str) -> None:
    assert name.startswith("torch.cuda.") or callable(found(name))
