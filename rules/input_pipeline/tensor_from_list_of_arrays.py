"""TL108: a tensor is made from a list of NumPy arrays, number by number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import replace, safe, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.arrays import FROM_LISTS, same_through_one_array, tensor_from_list
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module


@rule(
    "TL108",
    "tensor-from-list-of-arrays",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: FROM_LISTS},
    mentions=("torch", "tensor|Tensor|asarray", "numpy|cv2"),
    remedy="Make one array of them with `numpy.array(…)`, and a tensor of that",
)
def tensor_from_list_of_arrays(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.tensor`, `torch.as_tensor`, `torch.asarray`, `torch.Tensor` and the likes of
    `torch.FloatTensor` of a list, or a list of lists, of NumPy arrays.

    ## Why is this bad?

    Each number is taken out of its array as a Python object, and put into the tensor by itself. PyTorch
    warns of it at run time ("extremely slow"). `np.array(list)` copies whole arrays, and a tensor is made
    from one array in a single copy.

    ## Example

    ```python
    targets = torch.tensor([sample.numpy() for sample in samples], dtype=torch.float32)
    ```

    ## Use instead

    ```python
    targets = torch.tensor(np.array([sample.numpy() for sample in samples]), dtype=torch.float32)
    ```

    ## Fix safety

    Safe where the tensor has the same dtype and values either way. It is unsafe where the dtype follows
    from the arrays and the list may be empty (an empty list makes a float32 tensor, an empty array a float64
    one) or may hold arrays of several dtypes, which NumPy and PyTorch promote differently; where floats may
    be cut to whole numbers, or whole numbers may not fit the dtype asked for, since the list raises then and
    the array does not; and where arrays may hold Python objects. Arrays that have no items keep their shape,
    of which a list loses what follows the first zero.

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
        grade = safe if same_through_one_array(module, call, arrays) else unsafe
        fix = grade(
            module,
            f"Make one array of them with `{spelling.text}`",
            spelling.edits,
            replace(module, node, f"{spelling.text}({module.source(node)})"),
        )
    yield Finding(call, "the numbers of these arrays are copied one by one, as Python objects", fix=fix)
