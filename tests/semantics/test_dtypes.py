"""The dtypes of arrays and of the tensors that are made of them, held against NumPy and torch themselves."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import numpy as np
import pytest
import torch

from torchlint.semantics.module import Module
from torchlint.semantics.tensordtypes import DEFAULT

# Names that the expressions below use.
SETUP = """
import numpy as np
import torch
wide = np.linspace(0, 1, 6)
single = np.zeros(6, dtype=np.float32)
half = np.ones(6, "float16")
whole = np.array([1, 2, 3], dtype=np.int64)
small = np.array([1, 2, 3]).astype(np.uint8)
tensor = torch.from_numpy(wide)
image = torch.zeros(6, dtype=torch.float32)
mask = torch.zeros(6) > 0.5
steps = torch.arange(4)
bytes = torch.zeros(4, dtype=torch.uint8)
plain = torch.rand(2, 4)
"""

# What the file shows.
KNOWN = (
    "np.zeros(3)",
    "np.zeros((2, 3), float)",
    "np.zeros(3, np.float32)",
    "np.zeros(3, dtype='uint8')",
    "np.zeros(3, dtype=None)",
    "np.ones(3, dtype=np.double)",
    "np.eye(3)",
    "np.hanning(8)",
    "np.array([0.5, 1])",
    "np.array([[0.5, 1.0], [1.0, 2.0]])",
    "np.array([wide, wide])",
    "np.asarray(single)",
    "np.arange(0, 1, 0.1)",
    "np.arange(3.0)",
    "np.random.rand(3)",
    "np.random.normal(0, 1, 3)",
    "np.random.uniform(size=3)",
    "np.random.randint(0, 5, (3,))",
    "np.random.randint(0, 5, 3) / 5",
    "np.stack([wide, wide])",
    "np.concatenate((single, single))",
    "np.zeros_like(single)",
    "np.append(1.0, wide)",
    "np.append(wide[1:], 0.0)",
    "np.sqrt(wide)",
    "np.sin(single)",
    "np.exp(whole)",
    "np.cumprod(1.0 - wide)",
    "np.clip(single, 0, 1)",
    "np.maximum(wide, single)",
    "np.abs(whole)",
    "single * 2.5",
    "half / 2",
    "single + single",
    "single * wide",
    "whole / 2",
    "whole * 0.5",
    "small // 2",
    "small * small",
    "-wide",
    "2.0 ** wide",
    "wide > 0.5",
    "wide.reshape(2, 3).T",
    "wide[1:]",
    "wide[2]",
    "wide.copy()",
    "wide.mean()",
    "whole.mean()",
    "single.std()",
    "single.max()",
    "wide.astype(np.float32)",
    "single.astype('float64')",
    "whole.astype(int)",
    "tensor.numpy()",
    "image.numpy()",
    "tensor",
    "torch.from_numpy(single)",
    "torch.from_numpy(wide[2:])",
    "torch.tensor(wide)",
    "torch.as_tensor(whole)",
    "torch.tensor(wide, dtype=torch.float32)",
    "torch.from_numpy(wide > 0.5)",
    "torch.zeros_like(tensor)",
    "torch.DoubleTensor([1, 2])",
    "tensor.float()",
    "image.double()",
    "tensor.reshape(2, 3).T",
    "tensor[1:]",
    "tensor[0]",
    "tensor.clone().unsqueeze(0)",
    "tensor * 2",
    "1 - tensor",
    "tensor + tensor",
    "tensor.to('cpu')",
    "tensor.to(torch.float32)",
    "tensor.to('cpu', torch.float16)",
    "tensor.to(dtype=torch.bfloat16)",
    "tensor.to(image)",
    "tensor.type(torch.float32)",
    "tensor.type(torch.FloatTensor)",
    "tensor.detach()",
    "mask",
    "mask[1:]",
    "mask.to('cpu')",
    "mask.to(torch.int64)",
    "~mask",
    "steps",
    "torch.arange(0, 10, 2)",
    "torch.arange(4.0)",
    "torch.arange(0, 1, 0.1)",
    "torch.arange(4, dtype=torch.float)",
    "torch.arange(4, dtype=torch.half)",
    "torch.zeros(3)",
    "torch.zeros(3, dtype=int)",
    "torch.zeros(3, dtype=float)",
    "torch.zeros(3, dtype=torch.long)",
    "torch.ones(3, dtype=None)",
    "torch.linspace(0, 1, 3)",
    "torch.randn(2, 2)",
    "torch.full((2,), 1)",
    "torch.full((2,), fill_value=1.5)",
    "torch.full((2,), True)",
    "torch.tensor([0.5, 1.5])",
    "torch.tensor([[1, 2], [3, 4]])",
    "torch.tensor([1, 2.5])",
    "torch.tensor([True, False])",
    "torch.tensor(3)",
    "torch.randperm(4)",
    "torch.randint(0, 4, (2,))",
    "torch.ones_like(steps)",
    "steps.new_zeros(2)",
    "steps + 1",
    "steps * 0.5",
    "steps / 2",
    "steps // 2",
    "-steps",
    "steps * steps",
    "steps * plain",
    "mask[:4] * plain",
    "mask[:4] * steps",
    "mask + 1",
    "mask & mask",
    "bytes + 1",
    "bytes * steps.byte()",
    "bytes.sum()",
    "mask.sum(0)",
    "mask.cumsum(0)",
    "plain.sum(1)",
    "steps.sum(dtype=torch.float64)",
    "plain.mean()",
    "steps.float().mean()",
    "torch.exp(tensor)",
    "torch.exp(steps)",
    "steps.sigmoid()",
    "steps.log()",
    "steps.clamp(min=1)",
    "steps.clamp(max=1.5)",
    "torch.clamp(plain, 0, 1)",
    "torch.maximum(steps, steps)",
    "torch.div(steps, 2)",
    "torch.mul(steps, 2)",
    "plain.argmax(1)",
    "plain.nonzero()",
    "plain.topk(2).indices",
    "plain.topk(2)[0]",
    "plain.max(1)[1]",
    "plain.max(1).values",
    "torch.sort(steps)[0]",
    "plain.long()",
    "torch.bincount(steps)",
    "torch.nn.functional.one_hot(steps)",
    "torch.nn.functional.relu(steps)",
    "torch.softmax(plain, 1)",
    "torch.softmax(plain, 1, dtype=torch.float64)",
    "torch.cat([steps, steps])",
    "torch.stack([plain, plain])",
    "torch.cat([steps, plain[0]])",
    "torch.cat((steps, mask[:2]))",
    "steps.unsqueeze(0)",
    "torch.flatten(steps)",
    "steps.chunk(2)[0]",
    "steps[1:]",
    "steps.masked_fill(steps > 1, 0)",
    "plain.eq(plain)",
    "torch.isnan(plain)",
    "torch.where(plain > 0.5, 1, 0)",
    "torch.where(mask, image, image)",
    "abs(steps)",
    "sum(mask)",
    "sum(plain)",
    "max(steps)",
    "steps.to(plain)",
    "steps.type_as(plain)",
    "plain.to(torch.int)",
    "plain.add_(1)",
)
# What it does not show, or what is not followed.
UNKNOWN = (
    "np.load",
    "np.array(given)",
    "np.array([given, 1.0])",
    "np.arange(n)",
    "np.random.normal()",
    "np.random.rand()",
    "np.random.choice(given, 3)",
    "np.zeros(3, dtype=given)",
    "np.zeros(*given)",
    "single.astype(given)",
    "single * given",
    "single + whole",
    "tensor + given",
    "tensor * image",
    "tensor.to(given)",
    "torch.tensor(wide[2])",
    "torch.tensor(wide.mean())",
    "torch.tensor(given)",
    "torch.tensor([given, 1])",
    "torch.full((2,), given)",
    "torch.arange(n)",
    "torch.zeros(*given)",
    "torch.zeros(3, **given)",
    "torch.zeros(3, dtype=given)",
    "torch.exp(given)",
    "steps * n",
    "steps.sum(dtype=given)",
    "torch.exp(image.half())",
)


def dtype_of(code: str, semantic_model: Callable[[str], Module]) -> str | None:
    """The dtype that the model gives an expression after ``SETUP``."""
    module = semantic_model(f"{SETUP}\nresult = {code}\n")
    assign = list(module.tree.nodes(cst.Assign))[-1]
    return module.value(assign.value).dtype


@pytest.mark.parametrize("code", KNOWN)
def test_dtype_is_what_numpy_and_torch_give(code: str, semantic_model: Callable[[str], Module]) -> None:
    scope: dict[str, object] = {}
    exec(SETUP, scope)
    result = eval(code, scope)
    assert isinstance(result, (np.ndarray, np.generic, torch.Tensor))
    found = dtype_of(code, semantic_model)
    assert (str(torch.get_default_dtype()) if found == DEFAULT else found) == str(result.dtype)


@pytest.mark.parametrize("code", UNKNOWN)
def test_nothing_is_said_of_what_is_not_shown(code: str, semantic_model: Callable[[str], Module]) -> None:
    assert dtype_of(code, semantic_model) is None
