"""What TL513 finds in its fixtures is where the compiler breaks the graph, and nothing else is."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn

from torchlint.dev import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

FOLDER = ROOT / "fixtures" / "TL513_graph_break_in_compiled_region"
FILES = sorted(FOLDER.glob("*.py"))
# Changes of state break nothing: tests/benchmarks/test_breaks.py has what they do.
STATE = re.compile(r"\s*((self\.)?calls \+= 1|SEEN\.append)")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Leave no option behind that a fixture sets, and log nothing."""
    logging.disable(logging.CRITICAL)
    with torch._dynamo.config.patch(capture_scalar_outputs=False):
        yield
    logging.disable(logging.NOTSET)
    torch.compiler.reset()


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"graph_breaks_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def compiled(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """What a fixture has compiled, as it was before."""
    for name, held in list(vars(module).items()):
        value = getattr(held, "model", held)
        if isinstance(value, nn.Module):
            inner = getattr(value, "_orig_mod", value)
            head = _original(getattr(type(inner), "head", None))
            if head is not None:
                yield lambda x, head=head, inner=inner: head(inner, x)
            else:
                yield _original(vars(inner).get("forward")) or inner.forward
        elif name != "torch" and (original := _original(value)) is not None:
            yield original


def _original(value: object) -> Callable[..., Any] | None:
    """The function that a compiled one was made of."""
    disabled = getattr(value, "_torchdynamo_disable", False)
    return None if disabled else getattr(value, "_torchdynamo_orig_callable", None)


def arguments(function: Callable[..., Any]) -> list[Any]:
    """What a fixture's function takes, by the names of its parameters."""
    x = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    known: dict[str, Any] = {"x": x, "mask": x > 0.5, "limit": 1.0, "verbose": False, "a": x, "b": x - 1}
    known |= {"first": x + 1, "second": x + 2, "sizes": [8, 8], "options": SimpleNamespace(any_scale=True)}
    parameters = inspect.signature(function).parameters
    return [known[name] for name in parameters if name in known]


def broken_lines(path: Path) -> set[int]:
    """The lines of a fixture at which the compiler breaks a graph."""
    lines: set[int] = set()
    for function in compiled(load(path)):
        torch.compiler.reset()
        explained = torch._dynamo.explain(function)(*arguments(function))
        for reason in explained.break_reasons:
            lines |= {frame.lineno or 0 for frame in reason.user_stack[-1:] if frame.filename == str(path)}
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_compiler_breaks_the_graph_where_the_rule_says(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    expected = {
        number
        for number, line in enumerate(lines, 1)
        if line.endswith("# expect: TL513") and not STATE.match(line)
    }
    assert broken_lines(path) == expected
