"""Which settings of the number of threads nobody reads."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.debugging.threads_configured_too_late.threads import unread_settings
from torchlint.semantics.module import Module

OMP = 'os.environ["OMP_NUM_THREADS"] = "1"'


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (f"import torch\n{OMP}", ["OMP_NUM_THREADS"]),
        (f"from torch import nn\n{OMP}", ["OMP_NUM_THREADS"]),
        (f"{OMP}\nimport torch", []),
        (f"{OMP}\nimport torch\n{OMP}", []),
        (f"import numpy\n{OMP}\nimport torch", []),
        ('import numpy\nos.environ["OPENBLAS_NUM_THREADS"] = "1"\nimport torch', ["OPENBLAS_NUM_THREADS"]),
        ('import torch\nos.environ["OPENBLAS_NUM_THREADS"] = "1"\nimport numpy', []),
        ('import torch\nos.environ["KMP_AFFINITY"] = "compact"', ["KMP_AFFINITY"]),
        ('import torch\nos.environ["KMP_DUPLICATE_LIB_OK"] = "TRUE"', []),
        (f"import torch\n{OMP}\nworker = Process(target=f)", []),
        (f"import torch\n{OMP}\ntorch.set_num_threads(1)", []),
        (f"import torch\ndef f():\n    {OMP}", []),
        (f"import torch\ndef f():\n    {OMP}\nf()", ["OMP_NUM_THREADS"]),
        (f"if fast:\n    import torch\n{OMP}", []),
        (f"def f():\n    import torch\n{OMP}", []),
    ],
)
def test_what_nobody_reads(semantic_model: Callable[[str], Module], code: str, names: list[str]) -> None:
    module = semantic_model(f"import os\n{code}\n")
    nodes: list[cst.Assign | cst.Call] = [*module.tree.nodes(cst.Assign), *module.tree.nodes(cst.Call)]
    assert [setting.variable for node in nodes for setting, _ in unread_settings(module, node)] == names
