"""The server as an editor sees it, over its pipes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from torchlint.registry import catalogue
from torchlint.render import page

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]

BAD = """\
import torch
from torch import nn


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


async def test_x(editor) -> None:
    uri = editor.uri("a.py")
    editor.open(uri, BAD)
    found = await editor.told(uri)
    print(found)
    print(await editor.actions(uri, found[0].range))
    assert 0
