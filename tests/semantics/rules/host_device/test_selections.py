"""What becomes of a selection by a mask, or of positions."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.host_device.data_dependent_shape.rule import data_dependent_shape
from torchlint.rules.host_device.selections import Fate, fates, guards, is_pattern
from torchlint.semantics import model
from torchlint.semantics.module import Module
from torchlint.syntax import SyntaxTree

SELECTION, POSITIONS = "x[mask]", "mask.nonzero()"


def build(body: str) -> Module:
    program = f"""
import torch
import torch.nn.functional as F


def f(x: torch.Tensor, y: torch.Tensor, found):
    x, y = x.cuda(), y.cuda()
    mask = x > 0
    {body}
"""
    settings = LintSettings()
    return model.build(SyntaxTree(program), settings)


@pytest.mark.parametrize(
    ("body", "selection", "expected"),
    [
        ("n = x[mask].numel() + 1", SELECTION, {Fate.COUNTED}),
        ("n = len(x[mask])", SELECTION, {Fate.COUNTED}),
        ("n = x[mask].shape[0]", SELECTION, {Fate.COUNTED}),
        ("n = x[mask].sum()", SELECTION, {Fate.SUMMED}),
        ("n = torch.sum(x[mask] == y[mask])", SELECTION, {Fate.SUMMED}),
        ("z = x[mask]; n = z.abs().sum() / z.numel()", SELECTION, {Fate.SUMMED, Fate.COUNTED}),
        ("n = F.cross_entropy(x[mask], y[mask])", SELECTION, {Fate.SUMMED}),
        ("y[mask] = x[mask] * 2", SELECTION, {Fate.WRITTEN_BACK}),
        ("x[mask] -= 1", SELECTION, {Fate.WRITTEN_BACK}),
        ("n = x[mask].mean()", SELECTION, {Fate.KEPT}),
        ("n = x[mask].argmax(dim=1).eq(y[mask]).sum()", SELECTION, {Fate.SUMMED}),
        ("n = y.eq(x[mask].argmax(dim=-1)).sum()", SELECTION, {Fate.SUMMED}),
        ("n = F.softmax(x[mask], dim=1).sum()", SELECTION, {Fate.SUMMED}),
        ("n = x[mask].argmax(dim=0).sum()", SELECTION, {Fate.KEPT}),
        ("n = x[mask].argmax()", SELECTION, {Fate.KEPT}),
        ("return x[mask]", SELECTION, {Fate.KEPT}),
        ("found.append(x[mask])", SELECTION, {Fate.KEPT}),
        ("found['edges'] = x[mask]", SELECTION, {Fate.KEPT}),
        ("n = F.mse_loss(x[mask], y[mask])", SELECTION, {Fate.KEPT}),
        ("n = x[mask].mean() + x[mask].sum()", SELECTION, {Fate.KEPT}),
        ("i = x[mask]; y[i] = 0; n = i.numel()", SELECTION, {Fate.KEPT}),
        ("p = mask.nonzero(); y[p] = 1", POSITIONS, {Fate.WRITTEN_BACK}),
        ("n = x[mask.nonzero()].sum()", POSITIONS, {Fate.SUMMED}),
        ("n = mask.nonzero().numel()", POSITIONS, {Fate.COUNTED}),
        ("return mask.nonzero().squeeze(1)", POSITIONS, {Fate.KEPT}),
        ("edges = torch.cat([mask.nonzero(), y])", POSITIONS, {Fate.KEPT}),
    ],
)
def test_fates(body: str, selection: str, expected: set[Fate]) -> None:
    """Sums, counts and what is written back are the same without a selection, and nothing else is."""
    module = build(body)
    kinds = module.tree.nodes(cst.Subscript) if selection == SELECTION else module.tree.nodes(cst.Call)
    node = next(node for node in kinds if module.source(node) == selection)
    assert fates(module, node) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x[mask] = x[mask] / y[mask]", True),
        ("x[mask] = torch.log(x[mask])", True),
        ("x[mask] = x[mask] / 2", False),
        ("x[mask] = (x[mask] - y.min()) / y.max()", False),
        ("with torch.no_grad(): x[mask] = x[mask] / y[mask]", False),
    ],
)
def test_guards(body: str, expected: bool) -> None:
    """A mask guards a quotient whose divisor it selects, and functions that are infinite somewhere."""
    module = build(body)
    target = module.tree.nodes(cst.AssignTarget)[-1]
    statement = module.tree.parent(target)
    assert isinstance(target.target, cst.Subscript)
    assert isinstance(statement, cst.Assign)
    assert guards(module, target.target, statement.value) is expected


def test_a_view_is_written_to() -> None:
    """To give its name to another tensor would leave the whole as it was."""
    program = """
import torch
from torch import nn


class Fill(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        x, y = x.cuda(), y.cuda()
        row, own = x[:, 0], x * 2
        row[row > 8] = y.mean()
        return row, own, x
"""
    for target, expected in (("row", "`row.copy_(torch.where("), ("own", "`own = torch.where(")):
        module = model.build(
            SyntaxTree(program.replace("row[row > 8]", f"{target}[{target} > 8]")), LintSettings()
        )
        found = [
            finding
            for node in module.tree.nodes(cst.Subscript)
            for finding in data_dependent_shape.check(node, module)
        ]
        assert [expected in (finding.remedy or "") for finding in found] == [True]


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("scores[mask] = self.encode(lengths)", "Use `scores.masked_scatter_(mask, self.encode(lengths))`"),
        ("scores[mask] = lengths.sum()", "Use `scores.copy_(torch.where(mask, …, scores))`"),
        ("scores[mask] = self.token", "Use `scores.copy_(torch.where(mask, …, scores))`"),
        ("scores[mask] = scores[mask].sqrt()", "Use `scores.copy_(torch.where(mask, …, scores))`"),
        ("scores[mask] *= 2", "Use `scores.copy_(torch.where(mask, scores * 2, scores))`"),
        ("for i in range(4): scores[i, : lengths[i]] = 1", "before the loop: `lengths.tolist()`"),
        ("for i, end in enumerate(lengths): scores[i, end:] = 0", "before the loop: `lengths.tolist()`"),
        ("scores[:, : lengths.max()] = 0", "Take the number from a shape"),
    ],
)
def test_remedies(line: str, remedy: str) -> None:
    """The caller's tensor is written to, and the bounds that a loop goes through are read at once."""
    program = f"""
import torch
from torch import nn


class Damp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.encode, self.token = nn.Linear(size, size), nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        self.damp(x.cuda(), lengths.cuda())
        return x

    def damp(self, scores, lengths):
        mask = scores > 8
        {line}
"""
    module = model.build(SyntaxTree(program), LintSettings())
    nodes = module.tree.nodes(cst.Subscript)
    found = [finding for node in nodes for finding in data_dependent_shape.check(node, module)]
    assert [remedy in (finding.remedy or "") for finding in found] == [True]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.eye(len(x), dtype=torch.bool)", True),
        ("~torch.eye(len(x)).bool().to(x.device)", True),
        ("torch.arange(8)[:, None] == torch.arange(8)", True),
        ("torch.arange(8)[y] == torch.arange(8)", False),
        ("torch.triu(torch.ones(8, 8), diagonal=1) > 0", True),
        ("x > 0", False),
        ("torch.rand(8) > 0.5", False),
        ("torch.ones(8).bool()\n    mask[y] = False", False),
    ],
)
def test_masks_that_are_the_same_in_every_step(made: str, expected: bool) -> None:
    module = build(f"mask = {made}\n    z = x[mask]")
    (selection,) = (n for n in module.tree.nodes(cst.Subscript) if module.source(n) == "x[mask]")
    assert is_pattern(module, selection.slice[0].slice.value) is expected  # type: ignore[attr-defined]
