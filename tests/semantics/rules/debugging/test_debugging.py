"""Which aids for debugging stay switched on."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.debugging.launch_blocking_left_on.debugging import aids_left_on
from torchlint.semantics.module import Module


def switched_on(module: Module) -> list[str]:
    """The names of all aids that a program leaves on."""
    nodes: list[cst.Assign | cst.Call] = [*module.tree.nodes(cst.Assign), *module.tree.nodes(cst.Call)]
    nodes.sort(key=module.tree.order.__getitem__)
    return [found.name for node in nodes for found in aids_left_on(module, node)]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', ["CUDA_LAUNCH_BLOCKING"]),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "0"', []),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = ""', []),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = value', []),
        (
            'os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nprint(os.environ.get("CUDA_LAUNCH_BLOCKING"))',
            ["CUDA_LAUNCH_BLOCKING"],
        ),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nos.environ["CUDA_LAUNCH_BLOCKING"] = old', []),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nos.environ.pop("CUDA_LAUNCH_BLOCKING", None)', []),
        ('os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"', ["TORCH_DISTRIBUTED_DEBUG"]),
        ('os.environ["TORCH_DISTRIBUTED_DEBUG"] = "OFF"', []),
        ('os.environ["AMD_SERIALIZE_KERNEL"] = "0"', []),
        ('os.environ["TORCHDYNAMO_VERBOSE"] = "1"', []),
        ("torch.cuda.set_sync_debug_mode(1)", ["set_sync_debug_mode"]),
        ('torch.cuda.set_sync_debug_mode(debug_mode="error")', ["set_sync_debug_mode"]),
        ("torch.cuda.set_sync_debug_mode(0)", []),
        ("torch.cuda.set_sync_debug_mode(mode)", []),
        ("torch.cuda.set_sync_debug_mode(1)\nwork()\ntorch.cuda.set_sync_debug_mode(0)", []),
        ('torch.zeros(8, device="cuda")\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"', []),
        ('if debug:\n    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', []),
        ('def reproducible():\n    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', []),
        ('def main():\n    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', ["CUDA_LAUNCH_BLOCKING"]),
    ],
)
def test_what_stays_on(semantic_model: Callable[[str], Module], code: str, names: list[str]) -> None:
    assert switched_on(semantic_model(f"import os\nimport torch\n{code}\n")) == names
