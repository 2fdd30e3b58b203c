"""What is filled from a checkpoint that a file loads."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.memory.checkpoint_loaded_on_device import fills_from
from torchlint.semantics.module import Module


@pytest.mark.parametrize(
    ("lines", "filled"),
    [
        (["model.load_state_dict(LOAD)"], "model"),
        (["model.load_state_dict(LOAD['model'], strict=False)"], "model"),
        (["c = LOAD", "model.load_state_dict(c['model'])"], "model"),
        (["c = LOAD['state']", "c = c['model']", "model.load_state_dict(c)"], "model"),
        (["c = LOAD", "model.load_state_dict(c.get('model', c))"], "model"),
        (["with open(path, 'rb') as f:", "    c = LOAD", "model.load_state_dict(c)"], "model"),
        (["if path:", "    c = LOAD", "else:", "    c = {}", "model.load_state_dict(c)"], "model"),
        (["model.load_state_dict({k[7:]: v for k, v in LOAD.items()})"], "model"),
        (["d = {}", "for k, v in LOAD.items():", "    d[k[7:]] = v", "model.load_state_dict(d)"], "model"),
        (["c = LOAD", "d = {}", "for k in c:", "    d[k] = c[k]", "model.load_state_dict(d)"], "model"),
        (["d = model.state_dict()", "d.update(LOAD)", "model.load_state_dict(d)"], "model"),
        (["optimizer.load_state_dict(LOAD)"], "optimizer"),
        (["def read():", "    return LOAD", "model.load_state_dict(read())"], "model"),
        (["def fill(c):", "    model.load_state_dict(c['model'])", "fill(LOAD)"], "model"),
        (
            [
                "class Trainer:",
                "    def __init__(self, path):",
                "        self.saved = LOAD",
                "    def resume(self):",
                "        model.load_state_dict(self.saved['model'])",
            ],
            "model",
        ),
        (["model.load_state_dict(LOAD, assign=False)"], "model"),
        (["model.load_state_dict(LOAD, assign=True)"], None),
        (["scheduler.load_state_dict(LOAD)"], None),
        (["c = LOAD", "print(c['epoch'])"], None),
        (["c = LOAD", "model.load_state_dict(other)"], None),
        (["c = LOAD", "c = {}", "model.load_state_dict(c)"], None),
        (["path = io.BytesIO()", "model.load_state_dict(LOAD)"], None),
        (["host = torch.nn.Linear(2, 2).cpu()", "host.load_state_dict(LOAD)"], None),
    ],
)
def test_what_is_filled(
    semantic_model: Callable[[str], Module], lines: list[str], filled: str | None
) -> None:
    head = [
        "import io",
        "import torch",
        "model = torch.nn.Linear(2, 2).cuda()",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)",
    ]
    module = semantic_model("\n".join([*head, *lines, ""]).replace("LOAD", "torch.load(path)"))
    load = next(c for c in module.tree.nodes(cst.Call) if module.source(c.func) == "torch.load")
    call = fills_from(module, load)
    owner = call.func.value if call is not None and isinstance(call.func, cst.Attribute) else None
    assert (module.source(owner) if owner is not None else None) == filled
