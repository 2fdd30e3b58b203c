"""The weights of torchvision's builders, read from the source of the installed release."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

from torchlint.rules.upgrades.torchvision_pretrained.weights import PRETRAINED, PRETRAINED_BACKBONE, QUANTIZED


def _declared() -> dict[str, dict[str, str]]:
    """What ``handle_legacy_interface`` is told of each builder."""
    spec = find_spec("torchvision")
    assert spec is not None and spec.origin is not None
    models = Path(spec.origin).parent / "models"
    found: dict[str, dict[str, str]] = {}
    for path in models.rglob("*.py"):
        place = path.relative_to(models).parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "handle_legacy_interface":
                    assert isinstance(node, ast.FunctionDef)
                    name = f"{place[0]}.{node.name}" if len(place) > 1 else node.name
                    found[name] = {
                        keyword.arg: ast.unparse(keyword.value.elts[1])
                        for keyword in mark.keywords
                        if keyword.arg is not None and isinstance(keyword.value, ast.Tuple)
                    }
    return found


def test_the_table_is_that_of_torchvision() -> None:
    plain = {
        name: weights
        for name, weights in _declared().items()
        if not name.startswith("quantization.") and "lambda" not in weights["weights"]
    }
    assert plain.keys() <= PRETRAINED.keys()
    assert {
        name: None if w["weights"] == "None" else w["weights"].split(".")[1] for name, w in plain.items()
    } == {name: PRETRAINED[name] for name in plain}
    with_backbone = {n: w for n, w in _declared().items() if "weights_backbone" in w}
    assert {n: w["weights_backbone"].split(".")[1] for n, w in with_backbone.items()} == PRETRAINED_BACKBONE


def test_what_is_chosen_at_run_time_is_chosen_as_the_table_says() -> None:
    chosen = {name: w["weights"] for name, w in _declared().items() if "lambda" in w["weights"]}
    for name, code in chosen.items():
        family, _, builder = name.partition(".")
        if family == "quantization":
            assert f".{QUANTIZED[builder]} if kwargs.get('quantize', False)" in code
            assert code.endswith(f".{PRETRAINED[builder]}")
        else:
            assert str(PRETRAINED[name]) in code
    assert {f"quantization.{name}" for name in QUANTIZED} <= chosen.keys()
