"""Which collate functions make a batch as long as its longest item."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.memory.fragmentation_prone_lengths import spares_fragments
from torchlint.semantics.loaders import pads_to_longest
from torchlint.semantics.module import Module

HEAD = """
import math
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import DataCollatorForSeq2Seq, DataCollatorWithPadding, default_data_collator
"""


@pytest.mark.parametrize(
    ("body", "collate", "pads"),
    [
        ("def f(b):\n    return pad_sequence(b)", "f", True),
        ("def g(b):\n    return pad_sequence(b)\ndef f(b):\n    return g(b), 1", "f", True),
        ("", "lambda b: pad_sequence(b, batch_first=True)", True),
        ("def f(b):\n    return tok(b, padding=True)", "f", True),
        ("def f(b):\n    return tok(b, padding='longest')", "f", True),
        ("def f(b):\n    return tokenizer.pad(b)", "f", True),
        ("def f(b):\n    n = max(len(x) for x in b)\n    return torch.zeros(len(b), n)", "f", True),
        ("def f(b):\n    n = max([x.shape[0] for x in b])\n    return F.pad(b[0], (0, n))", "f", True),
        ("class F:\n    def __call__(self, b):\n        return pad_sequence(b)\nf = F()", "f", True),
        ("", "DataCollatorWithPadding(tok)", True),
        ("c = DataCollatorForSeq2Seq(tok, padding=True)", "c", True),
        ("def f(b):\n    return torch.stack(b)", "f", False),
        ("def f(b):\n    return tok(b, padding='max_length')", "f", False),
        ("def f(b):\n    return tok(b, padding=True, pad_to_multiple_of=8)", "f", False),
        ("def f(b):\n    return tokenizer.pad(b, padding='max_length')", "f", False),
        ("def f(b):\n    n = max(len(x) for x in b)\n    return n", "f", False),
        ("def f(b):\n    x = pad_sequence(b)\n    return F.pad(x, (0, -x.shape[1] % 64))", "f", False),
        (
            "def f(b):\n    n = 64 * math.ceil(max(len(x) for x in b) / 64)\n    return torch.zeros(n)",
            "f",
            False,
        ),
        ("", "DataCollatorWithPadding(tok, padding='max_length')", False),
        ("", "DataCollatorWithPadding(tok, pad_to_multiple_of=8)", False),
        ("", "DataCollatorWithPadding(tok, **options)", False),
        ("", "default_data_collator", False),
        ("from elsewhere import f", "f", False),
    ],
)
def test_padding(semantic_model: Callable[[str], Module], body: str, collate: str, pads: bool) -> None:
    module = semantic_model(f"{HEAD}{body}\nloader = DataLoader(data, collate_fn={collate})\n")
    call = next(c for c in module.tree.nodes(cst.Call) if module.source(c.func) == "DataLoader")
    node = module.argument(call, "collate_fn").node
    assert node is not None
    assert (pads_to_longest(module, node) is not None) is pads


@pytest.mark.parametrize(
    ("line", "spares"),
    [
        ("config = 'expandable_segments:True'", True),
        ("data = sorted(data, key=lambda x: len(x))", True),
        ("sampler = BucketSampler(data)", True),
        ("args = dict(group_by_length=True)", True),
        ("data = sorted(data)", False),
        ("max_length = 512", False),
    ],
)
def test_whatspares_fragments(semantic_model: Callable[[str], Module], line: str, spares: bool) -> None:
    assert spares_fragments(semantic_model(f"{HEAD}{line}\n")) is spares
