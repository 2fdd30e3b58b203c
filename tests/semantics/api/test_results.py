"""The facts in ``api/results.py`` against the installed torch: its type stubs and what calls return.

The stubs say what every method and function is declared to return; the calls say what the declared types
leave open (tuples by argument, graphs, dtypes).  A new torch release that changes a fact fails here.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from torchlint.semantics.api import results
from torchlint.semantics.api.results import ABSENT, TENSOR, UNKNOWN, Depends, Result

STUBS = Path(torch.__file__).parent

# Removed from torch before 2.13, or added by a backend of its own (hpu); programs still have them.
REMOVED_METHODS = {"align_as", "align_to", "hpu", "refine_names", "rename", "rename_"}
REMOVED_ATTRIBUTES = {"names"}

DECLARED: Mapping[str, frozenset[str]] = {
    "tensor": frozenset({"Tensor", "S", "Self"}),
    "tensors": frozenset({"tuple[Tensor, ...]", "Sequence[Tensor]", "list[Tensor]"}),
    "number": frozenset({"_int", "_float", "_complex", "Number", "_int | SymInt"}),
    "bool": frozenset({"_bool"}),
    "string": frozenset({"str"}),
    "shape": frozenset({"Size"}),
    "tuple": frozenset({"tuple[_int, ...]"}),
    "list": frozenset({"list"}),
    "none": frozenset({"None"}),
    "ndarray": frozenset({"numpy.ndarray"}),
    "storage": frozenset({"UntypedStorage", "Storage"}),
    "dtype": frozenset({"_dtype", "_dtype | None"}),
    "device": frozenset({"_device"}),
    "object": frozenset({"_qscheme", "Storage", "_layout", "_Node | None"}),
}


def declared_returns(stub: str, owner: str | None) -> dict[str, set[str]]:
    """Name → what its overloads in a stub file are declared to return, unions taken apart."""
    body = ast.parse((STUBS / stub).read_text(encoding="utf-8")).body
    if owner is not None:
        body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == owner).body
    found: defaultdict[str, set[str]] = defaultdict(set)
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            text = ast.unparse(node.returns)
            found[node.name].update([text] if "SymInt" in text else text.split(" | "))
    return found


def outcomes(result: Result) -> Iterator[Result]:
    """Every result that a choice can come to."""
    if isinstance(result, Depends):
        for choice in (result.given, result.absent, result.tensor):
            if choice is not None:
                yield from outcomes(choice)
    else:
        yield result


def agrees(result: Result, declared: str) -> bool:
    if isinstance(result, tuple):
        return declared.startswith(("torch.return_types.", "tuple[Tensor, Tensor"))
    if result == "tensors" and declared.startswith("tuple[Tensor, Tensor"):
        return True
    return declared in DECLARED.get(str(result), ())


def resolve(qualified: str) -> Any:
    return functools.reduce(getattr, qualified.split(".")[1:], torch)


def matches(value: object, result: Result) -> bool:
    """Whether a value that torch returned is what the data say."""
    if isinstance(result, tuple):
        return isinstance(value, tuple) and len(value) == len(result) and all(map(matches, value, result))
    if result == "tensors":
        return isinstance(value, (tuple, list)) and all(
            isinstance(element, torch.Tensor) for element in value
        )
    kinds: dict[str, type | tuple[type, ...]] = {
        "tensor": torch.Tensor,
        "number": (int, float, complex),
        "bool": bool,
        "string": str,
        "none": type(None),
        "shape": torch.Size,
        "list": list,
        "tuple": tuple,
        "ndarray": numpy.ndarray,
        "dtype": torch.dtype,
        "device": torch.device,
        "generator": torch.Generator,
        "storage": (torch.UntypedStorage, torch.TypedStorage),
    }
    return isinstance(value, kinds[str(result)])


@pytest.mark.parametrize(
    ("table", "stub", "owner"),
    [
        (results.TENSOR_METHODS, "_C/__init__.pyi", "TensorBase"),
        (
            {name.removeprefix("torch."): result for name, result in results.FUNCTIONS.items()},
            "_C/_VariableFunctions.pyi",
            None,
        ),
        (
            {
                name.removeprefix("torch.nn.functional."): result
                for name, result in results.FUNCTIONS.items()
                if name.startswith("torch.nn.functional.")
            },
            "nn/functional.pyi",
            None,
        ),
    ],
    ids=["methods", "functions", "functional"],
)
def test_agrees_with_the_type_stubs(table: Mapping[str, Result], stub: str, owner: str | None) -> None:
    declared = declared_returns(stub, owner)
    wrong = {
        name: (result, declared[name])
        for name, result in table.items()
        if name in declared
        and not all(any(agrees(outcome, text) for text in declared[name]) for outcome in outcomes(result))
    }
    assert wrong == {}
    assert len(table.keys() & declared.keys()) > 70


def test_every_public_method_of_a_tensor_is_known() -> None:
    public = {name for name in declared_returns("_C/__init__.pyi", "TensorBase") if not name.startswith("_")}
    assert public - results.TENSOR_METHODS.keys() - results.TENSOR_ATTRIBUTES.keys() == set()


def test_every_public_function_that_returns_a_tensor_is_known_or_internal() -> None:
    # Kernels that torch exposes without documentation.
    internal = (
        "_copy", "backward_elemt", "batch_norm_", "cudnn_", "fbgemm_", "miopen_", "mkldnn_", "native_",
        "quantized_", "quantize_per_tensor_dynamic", "fused_moving_avg", "copy_", "affine_grid_generator",
    )  # fmt: skip
    declared = declared_returns("_C/_VariableFunctions.pyi", None)
    missing = {
        name
        for name, returns in declared.items()
        if returns == {"Tensor"}
        and not name.startswith("_")
        and f"torch.{name}" not in results.FUNCTIONS
        and not any(part in name for part in internal)
    }
    assert missing == set()


def test_every_recorded_method_and_attribute_exists() -> None:
    recorded = results.TENSOR_METHODS.keys() | results.TENSOR_ATTRIBUTES.keys()
    assert {
        name for name in recorded if not hasattr(torch.Tensor, name)
    } == REMOVED_METHODS | REMOVED_ATTRIBUTES


def test_named_functions_exist() -> None:
    removed = {
        "torch.eig", "torch.lstsq", "torch.solve", "torch.symeig", "torch.cuda.memory_cached",
        "torch.cuda.max_memory_cached", "torch.nn.utils.clip_grad_norm", "torch.mps.is_available",
        "torch.nn.functional.linear_cross_entropy", "torch.BFloat16Tensor",
    }  # fmt: skip
    namespaces = ("torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torch.nn.init.")
    missing = set()
    for name in results.FUNCTIONS:
        if name in removed or not (name.count(".") == 1 or name.startswith(namespaces)):
            continue
        if not name.startswith("torch."):
            continue
        try:
            resolve(name)
        except AttributeError:
            missing.add(name)
    assert missing == set()


MATRIX = torch.tensor([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3], [0.2, 0.3, 0.7]])  # positive definite
LONGS = torch.tensor([[2, 1, 0], [0, 1, 2]])
VECTOR = torch.rand(3)
MASK = MATRIX > 0.5

CALLS: list[tuple[str, torch.Tensor, tuple[Any, ...], dict[str, Any]]] = [
    ("size", MATRIX, (), {}),
    ("size", MATRIX, (0,), {}),
    ("size", MATRIX, (), {"dim": 1}),
    ("stride", MATRIX, (), {}),
    ("stride", MATRIX, (0,), {}),
    ("max", MATRIX, (), {}),
    ("max", MATRIX, (0,), {}),
    ("max", MATRIX, (), {"dim": 0}),
    ("max", MATRIX, (MATRIX,), {}),
    ("min", MATRIX, (-1,), {"keepdim": True}),
    ("median", MATRIX, (), {}),
    ("median", MATRIX, (1,), {}),
    ("nanmedian", MATRIX, (1,), {}),
    ("mode", MATRIX, (), {}),
    ("topk", MATRIX, (2,), {}),
    ("kthvalue", MATRIX, (2,), {}),
    ("sort", MATRIX, (), {}),
    ("cummax", MATRIX, (0,), {}),
    ("aminmax", MATRIX, (), {}),
    ("svd", MATRIX, (), {}),
    ("lu", MATRIX, (), {}),
    ("lu", MATRIX, (), {"get_infos": True}),
    ("nonzero", MATRIX, (), {}),
    ("nonzero", MATRIX, (), {"as_tuple": True}),
    ("nonzero", MATRIX, (), {"as_tuple": False}),
    ("unique", LONGS, (), {}),
    ("unique", LONGS, (), {"return_inverse": True}),
    ("unique", LONGS, (), {"return_counts": True}),
    ("unique", LONGS, (True, True, True), {}),
    ("unique_consecutive", LONGS, (), {"return_counts": True}),
    ("unique_consecutive", LONGS, (True,), {}),
    ("type", MATRIX, (), {}),
    ("type", MATRIX, (torch.float64,), {}),
    ("split", MATRIX, (1,), {}),
    ("chunk", MATRIX, (2,), {}),
    ("unbind", MATRIX, (), {}),
    ("tensor_split", MATRIX, (2,), {}),
    ("where", MATRIX, (MASK, MATRIX), {}),
    ("item", VECTOR[0], (), {}),
    ("tolist", VECTOR, (), {}),
    ("numpy", VECTOR, (), {}),
    ("dim", MATRIX, (), {}),
    ("numel", MATRIX, (), {}),
    ("nelement", MATRIX, (), {}),
    ("ndimension", MATRIX, (), {}),
    ("element_size", MATRIX, (), {}),
    ("data_ptr", MATRIX, (), {}),
    ("get_device", MATRIX, (), {}),
    ("is_contiguous", MATRIX, (), {}),
    ("is_floating_point", MATRIX, (), {}),
    ("allclose", MATRIX, (MATRIX,), {}),
    ("equal", MATRIX, (MATRIX,), {}),
    ("untyped_storage", MATRIX, (), {}),
    ("dim_order", MATRIX, (), {}),
    ("unsqueeze", MATRIX, (0,), {}),
    ("norm", MATRIX, (), {}),
    ("add_", MATRIX, (0.0,), {}),
    ("clamp_", MATRIX, (0.0,), {}),
    ("new_zeros", MATRIX, (2,), {}),
    ("to", MATRIX, ("cpu",), {}),
    ("cpu", MATRIX, (), {}),
    ("repeat_interleave", VECTOR, (2,), {}),
    ("bincount", LONGS[0], (), {}),
    ("frexp", MATRIX, (), {}),
    ("slogdet", MATRIX, (), {}),
    ("qr", MATRIX, (), {}),
]


def chosen(result: Result, args: tuple[Any, ...], keywords: dict[str, Any]) -> Result:
    while isinstance(result, Depends):
        argument: object = keywords.get(result.argument, ABSENT)
        if argument is ABSENT and result.position is not None and result.position < len(args):
            argument = args[result.position]
        result = result.choose(TENSOR if isinstance(argument, torch.Tensor) else argument)
    return result


@pytest.mark.parametrize(("name", "receiver", "args", "keywords"), CALLS)
def test_call_gives_what_is_recorded(
    name: str, receiver: torch.Tensor, args: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    expected = chosen(results.TENSOR_METHODS[name], args, keywords)
    assert matches(getattr(receiver, name)(*args, **keywords), expected)
    function = results.function_result(f"torch.{name}")
    if function is not None and name not in ("where", "type"):
        operands = (receiver, *args)
        assert matches(getattr(torch, name)(*operands, **keywords), chosen(function, operands, keywords))


FUNCTION_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("torch.where", (MASK,), {}),
    ("torch.where", (MASK, MATRIX, MATRIX), {}),
    ("torch.atleast_1d", (VECTOR,), {}),
    ("torch.atleast_1d", (VECTOR, VECTOR), {}),
    ("torch.meshgrid", (VECTOR, VECTOR), {"indexing": "ij"}),
    ("torch.broadcast_tensors", (VECTOR, MATRIX), {}),
    ("torch.std_mean", (MATRIX,), {}),
    ("torch.histogramdd", (MATRIX,), {"bins": [2, 2, 2]}),
    ("torch.cat", ([VECTOR, VECTOR],), {}),
    ("torch.einsum", ("ij,jk->ik", MATRIX, MATRIX), {}),
    ("torch.is_tensor", (MATRIX,), {}),
    ("torch.numel", (MATRIX,), {}),
    ("torch.is_grad_enabled", (), {}),
    ("torch.get_default_dtype", (), {}),
    ("torch.device", ("cpu",), {}),
    ("torch.get_rng_state", (), {}),
    ("torch.get_num_threads", (), {}),
    ("torch.typename", (MATRIX,), {}),
    ("torch.cuda.is_available", (), {}),
    ("torch.cuda.device_count", (), {}),
    ("torch.cuda.memory_allocated", (), {}),
    ("torch.distributed.is_available", (), {}),
    ("torch.linalg.norm", (MATRIX,), {}),
    ("torch.linalg.svd", (MATRIX,), {}),
    ("torch.linalg.slogdet", (MATRIX,), {}),
    ("torch.linalg.lstsq", (MATRIX, MATRIX), {}),
    ("torch.linalg.lu_factor_ex", (MATRIX,), {}),
    ("torch.nn.functional.softmax", (MATRIX,), {"dim": -1}),
    ("torch.nn.functional.mse_loss", (MATRIX, MATRIX), {}),
    ("torch.nn.functional.max_pool2d", (torch.rand(1, 1, 4, 4), 2), {}),
    ("torch.nn.functional.max_pool2d", (torch.rand(1, 1, 4, 4), 2), {"return_indices": True}),
    ("torch.nn.functional.adaptive_max_pool1d", (torch.rand(1, 1, 4), 2, True), {}),
    ("torch.nn.functional.one_hot", (LONGS,), {}),
    ("torch.special.expit", (MATRIX,), {}),
    ("torch.fft.rfft", (VECTOR,), {}),
    ("torch.arange", (3,), {}),
    ("torch.zeros_like", (MATRIX,), {}),
    ("torch.nn.init.zeros_", (torch.zeros(2),), {}),
    ("torch.nn.init.calculate_gain", ("relu",), {}),
    ("torch.nn.utils.rnn.pad_sequence", ([VECTOR, VECTOR],), {}),
    ("torch.nn.utils.clip_grad_norm_", ([torch.nn.Parameter(VECTOR.clone())], 1.0), {}),
    ("torch.nn.Parameter", (VECTOR,), {}),
    ("torch.Tensor.numel", (MATRIX,), {}),
    ("torch.Tensor.size", (MATRIX, 0), {}),
    ("torch.FloatTensor", (2,), {}),
    ("torch.Tensor", (2,), {}),
]


@pytest.mark.parametrize(("name", "args", "keywords"), FUNCTION_CALLS)
def test_function_gives_what_is_recorded(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    result = results.function_result(name)
    assert result is not None
    assert matches(resolve(name)(*args, **keywords), chosen(result, args, keywords))


# Functions with operands that no float matrix stands for: integers, quantised tensors, several shapes.
NOT_PROBED = {
    "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "as_strided", "as_strided_scatter",
    "baddbmm", "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "bmm", "diagonal_scatter", "dot", "gcd", "ger",
    "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "int_repr",
    "istft", "lcm", "lerp", "lu_solve", "masked_scatter", "masked_select", "mv", "mvlgamma", "narrow",
    "narrow_copy", "nonzero_static", "orgqr", "ormqr", "outer", "polygamma", "prelu", "put",
    "q_per_channel_scales", "q_per_channel_zero_points", "renorm", "scatter", "scatter_add",
    "scatter_reduce", "select_scatter", "smm", "sspaddmm", "stft", "take", "take_along_dim",
    "unflatten", "vdot",
}  # fmt: skip


def probed(function: Callable[..., Any]) -> bool | None:
    """Whether the result of a function of a matrix that requires grad does; None if no call worked."""
    for args in (
        (),
        (0,),
        (MATRIX,),
        (2.0,),
        (0, 1),
        (MASK, 2.0),
        (0, LONGS),
        ((1, 3, 3),),
        ((0, 1),),
        (2, True),
    ):
        leaf = MATRIX.detach().clone().requires_grad_()
        try:
            result = function(leaf, *args)
        except (TypeError, RuntimeError, IndexError, ValueError):
            continue
        return bool(result.requires_grad)
    return None


@pytest.mark.filterwarnings("ignore")
def test_graphless_methods_are_those_whose_result_does_not_require_grad() -> None:
    names = {
        name
        for name in results.TENSOR_METHODS
        if not name.endswith("_") and results.FUNCTIONS.get(f"torch.{name}") == "tensor"
    }
    requires_grad = {name: probed(getattr(torch, name)) for name in names}
    assert {name for name in names if requires_grad[name] is None} == NOT_PROBED
    graphless = {name for name in names if requires_grad[name] is False}
    assert graphless == (results.GRAPHLESS_METHODS & names) - NOT_PROBED


@pytest.mark.parametrize(
    ("name", "args"),
    [("max", (0,)), ("min", (0,)), ("median", (0,)), ("sort", ()), ("topk", (2,)), ("mode", ()),
     ("cummax", (0,)),
     ("cummin", (0,)), ("kthvalue", (1,)), ("frexp", ()), ("nanmedian", (0,))],
)  # fmt: skip
def test_indices_never_have_a_graph(name: str, args: tuple[Any, ...]) -> None:
    leaf = MATRIX.detach().clone().requires_grad_()
    elements = getattr(leaf, name)(*args)
    detached = {number for number, element in enumerate(elements) if not element.requires_grad}
    assert detached == results.GRAPHLESS_ELEMENTS[name]


def test_attributes_outside_the_graph() -> None:
    leaf = MATRIX.detach().clone().requires_grad_()
    (leaf * 2).sum().backward()
    tensors = {
        name for name, kind in results.TENSOR_ATTRIBUTES.items() if kind == "tensor" and name != "imag"
    }
    detached = {name for name in tensors if not getattr(leaf, name).requires_grad}
    assert detached == results.DETACHED_ATTRIBUTES


@pytest.mark.parametrize("name", sorted(results.METHOD_DTYPES))
def test_fixed_dtype(name: str) -> None:
    dtype = operator.attrgetter(results.METHOD_DTYPES[name].removeprefix("torch."))(torch)
    for args in ((), (MATRIX,), (1,)):
        try:
            result = getattr(MATRIX, name)(*args)
        except TypeError:
            continue
        assert result.dtype == dtype
        return
    raise AssertionError(f"no call of {name} worked")


@pytest.mark.parametrize("name", sorted(results.FACTORIES))
def test_factories_take_a_device(name: str) -> None:
    assert "device" in (resolve(name).__doc__ or "") or name in UNDOCUMENTED_FACTORIES


UNDOCUMENTED_FACTORIES = frozenset(
    {"torch.empty_quantized", "torch.scalar_tensor", "torch.normal", "torch.nested.nested_tensor"}
)


@pytest.mark.parametrize(
    "name",
    sorted(results.NN_LOSSES | results.MODULE_RESULTS.keys()),
)
def test_named_modules_are_modules(name: str) -> None:
    assert issubclass(resolve(name), torch.nn.Module)
    assert results.function_result(name) == "module"


def test_losses_are_complete() -> None:
    losses = {
        f"torch.nn.{name}"
        for name in dir(torch.nn)
        if name.endswith("Loss") and name != "AdaptiveLogSoftmaxWithLoss"
    }
    assert losses <= results.NN_LOSSES


@pytest.mark.parametrize(
    ("module", "args"),
    [
        (torch.nn.LSTM(3, 2), (torch.rand(1, 1, 3),)),
        (torch.nn.GRU(3, 2), (torch.rand(1, 1, 3),)),
        (torch.nn.LSTMCell(3, 2), (torch.rand(1, 3),)),
        (torch.nn.MultiheadAttention(2, 1), (torch.rand(1, 1, 2),) * 3),
        (torch.nn.Linear(3, 2), (torch.rand(1, 3),)),
        (torch.nn.MSELoss(), (VECTOR, VECTOR)),
    ],
)
def test_calling_a_module_gives_what_is_recorded(module: torch.nn.Module, args: tuple[Any, ...]) -> None:
    result = results.module_result(f"torch.nn.{type(module).__name__}")
    assert result is not None
    assert matches(module(*args), result)


def test_methods_of_arrays_are_those_that_tensors_share() -> None:
    assert results.TENSOR_METHODS.keys() >= results.ARRAY_METHODS
    assert all(hasattr(numpy.ndarray, name) for name in results.ARRAY_METHODS)
    assert not any(hasattr(torch.nn.Module, name) for name in results.ARRAY_METHODS)


def test_tensor_only_methods_are_not_shared_with_the_usual_suspects() -> None:
    others: list[object] = [
        numpy.zeros(1), torch.nn.Linear(1, 1), torch.optim.SGD([VECTOR], lr=1), [], "", {}, set(), 1, 1.0,
        torch.utils.data.DataLoader([1]), torch.distributions.Normal(0.0, 1.0), torch.Generator(),
        torch.device("cpu"),
    ]  # fmt: skip
    shared = {
        (name, type(other).__name__)
        for name in results.TENSOR_ONLY_METHODS
        for other in others
        if hasattr(other, name)
    }
    assert shared == set()
    assert results.TENSOR_METHODS.keys() >= results.TENSOR_ONLY_METHODS


@pytest.mark.parametrize(
    ("qualified", "result"),
    [
        ("torch.optim.AdamW", "optimizer"),
        ("torch.optim.adam.Adam", "optimizer"),
        ("torch.optim.lr_scheduler.StepLR", "scheduler"),
        ("torch.nn.modules.conv.Conv2d", "module"),
        ("torch.nn.parallel.DistributedDataParallel", "module"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "tensor"),
        ("torch.functional.einsum", "tensor"),
        ("torch.utils.data.dataloader.DataLoader", "loader"),
        ("torch.distributions.Categorical", "distribution"),
        ("torch.distributions.transforms.TanhTransform", None),
        ("torchvision.models.resnet18", "module"),
        ("torchvision.models.ResNet18_Weights", None),
        ("torchvision.datasets.CIFAR10", "dataset"),
        ("transformers.AutoModelForCausalLM.from_pretrained", "module"),
        ("transformers.BertModel", "module"),
        ("transformers.TFBertModel", None),
        ("transformers.DataCollatorForLanguageModeling", None),
        ("transformers.get_linear_schedule_with_warmup", "scheduler"),
        ("numpy.mean", "ndarray_or_number"),
        ("numpy.load", "unknown"),
        ("math.sqrt", "number"),
        ("time.time", "number"),
        ("random.getstate", None),
        ("torch.load", "unknown"),
        ("torch.no_such_function", None),
        ("mypackage.DataLoader", None),
    ],
)
def test_families_and_spellings(qualified: str, result: Result | None) -> None:
    assert results.function_result(qualified) == result


def test_unknown_argument_leaves_tensors_or_nothing() -> None:
    by_dimension = results.TENSOR_METHODS["max"]
    by_flag = results.TENSOR_METHODS["size"]
    assert isinstance(by_dimension, Depends)
    assert isinstance(by_flag, Depends)
    assert by_dimension.choose(UNKNOWN) == "tensors"
    assert by_flag.choose(UNKNOWN) == "unknown"
