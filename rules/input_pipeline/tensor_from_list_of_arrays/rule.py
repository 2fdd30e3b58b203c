"""TL108: a tensor is made from a list of NumPy arrays, element by element."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import graded, replace, spell
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .lists import FROM_LISTS, same_through_one_array, tensor_from_list


@rule(
    "TL108",
    "tensor-from-list-of-arrays",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: FROM_LISTS},
    mentions=("torch", "tensor|Tensor|asarray", "numpy|cv2"),
    remedy="Convert the list with `numpy.array(…)` first",
)
def tensor_from_list_of_arrays(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.tensor`, `torch.as_tensor`, `torch.asarray`, `torch.Tensor` and legacy constructors such as
    `torch.FloatTensor` called on a list, or a list of lists, of NumPy arrays.

    ## Why is this bad?

    Every element is extracted as a Python object and written to the tensor separately. PyTorch itself warns
    that this is "extremely slow". `np.array(list)` copies whole arrays, and the tensor is then made with a
    single copy.

    ## Example

    ```python
    targets = torch.tensor([sample.numpy() for sample in samples], dtype=torch.float32)
    ```

    ## Use instead

    ```python
    targets = torch.tensor(np.array([sample.numpy() for sample in samples]), dtype=torch.float32)
    ```

    ## Fix safety

    Safe if the tensor has the same dtype and values either way. The fix is unsafe in these cases: the dtype
    follows from the arrays and the list may be empty (an empty list makes a float32 tensor, an empty array a
    float64 tensor) or may mix dtypes, which NumPy and PyTorch promote differently; floats may be truncated to
    integers, or integers may not fit the requested dtype, for which only the list raises; the arrays may hold
    Python objects; or the program catches the error that arrays of different shapes raise. Arrays without
    elements keep their shape, while a list loses all dimensions after the first zero.

    ## References

    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    - [The warning, and the issue that led to it](https://github.com/pytorch/pytorch/issues/13918)
    """
    data = tensor_from_list(module, call)
    if data is None or is_test(module):
        return
    node, arrays = data
    spelling = spell(module, "numpy.array", call)
    fix = None
    if spelling is not None:
        risk = None
        if not same_through_one_array(module, call, arrays):
            risk = "the dtype may be another if the list is empty or mixes dtypes"
        elif any(module.tree.handlers(call)):
            risk = "arrays of different shapes raise another error than the one that is caught here"
        fix = graded(
            module,
            f"Convert the list with `{spelling.text}` first",
            spelling.edits,
            replace(module, node, f"{spelling.text}({module.source(node)})"),
            risk=risk,
        )
    yield Finding(
        call,
        "a list of NumPy arrays is converted element by element as Python objects, which is slow",
        fix=fix,
    )
