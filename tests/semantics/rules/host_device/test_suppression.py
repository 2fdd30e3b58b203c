"""Loops that drop boxes which overlap with a better one."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.host_device.suppression import suppresses
from torchlint.semantics.module import Module

PROGRAM = """
import torch
from torchvision.ops import box_iou

def overlap(a, b):
    shared = torch.minimum(a, b)
    return shared / (a + b - shared)

def loop(order, boxes, scores, threshold, weights):
    kept = []
    while {test}:
        i = {first}
        kept.append(i)
        {body}
"""


@pytest.mark.parametrize(
    ("test", "body", "expected"),
    [
        ("len(order) > 0", "order = order[1:][overlap(boxes[i], boxes[order[1:]]) <= threshold]", True),
        ("order.numel()", "order = order[box_iou(boxes[i], boxes[order])[0] < threshold]", True),
        ("order.numel()", "order = order[(boxes[order] / boxes[i]).le(threshold)]", True),
        ("order.size(0)", "order = order[torch.where(torch.div(boxes, 2) < 1)[0]]", True),
        ("order.size(0)", "order = order[(boxes / 2 < 1).nonzero().squeeze() + 1]", True),
        ("order.size(0)", "order = order[~(overlap(boxes, scores) > threshold)]", True),
        ("len(order) > 0", "last = order[-1]; order = order[boxes[order] / boxes[last] <= 1]", True),
        # Something else empties it, or is emptied.
        ("len(order) > 0", "order = order[1:]", False),
        ("len(order) > 0", "order = order[boxes[order] <= threshold]", False),
        ("len(kept) < 3", "order = order[boxes[order] / 2 <= threshold]", False),
        # Scores are lowered, boxes averaged.
        ("order.numel()", "scores *= 0.5; order = order[overlap(boxes, scores) <= threshold]", False),
        ("order.numel()", "boxes[0] = boxes * weights; order = order[overlap(boxes, scores) < 1]", False),
    ],
)
def test_suppresses(test: str, body: str, expected: bool, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(PROGRAM.format(test=test, body=body, first="order[0]"))
    (loop,) = module.tree.nodes(cst.While)
    assert suppresses(module, loop) is expected


def test_sampling_with_rejection_is_none(semantic_model: Callable[[str], Module]) -> None:
    body = "order = order[boxes[order] / scores[order] < weights]"
    module = semantic_model(PROGRAM.format(test="len(order) > 0", body=body, first="len(order)"))
    (loop,) = module.tree.nodes(cst.While)
    assert not suppresses(module, loop)
