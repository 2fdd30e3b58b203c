"""What calls and attributes return: facts about PyTorch (and NumPy, as its neighbour) as data.

The lists were taken from the type stubs and the behaviour of torch 2.13 (``torch/_C/__init__.pyi``,
``torch/_C/_VariableFunctions.pyi``, ``torch/nn/functional.pyi``), together with the names that older
releases still supported here knew; ``tests/semantics/api/test_results.py`` compares them with the
stubs and with what the calls really return.  What synchronises is stated by the CUDA semantics notes
(https://docs.pytorch.org/docs/stable/notes/cuda.html, "Asynchronous execution"), by the warnings of
``torch.cuda.set_sync_debug_mode`` and, for output shapes that depend on data, by the "data-dependent
output" tag in ATen's ``native_functions.yaml``.

Neither torch nor LibCST is imported.  A name that is missing is unknown; it is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, TypeAlias, Union, cast

Kind: TypeAlias = Literal[
    "tensor",  # torch.Tensor
    "tensors",  # a sequence of tensors whose length is not known here: unpacking or indexing gives tensors
    "number",  # a Python int, float or complex: a host value
    "bool",
    "string",
    "none",
    "shape",  # torch.Size: a tuple of host integers
    "list",  # a list on the host, of anything
    "tuple",  # a tuple on the host, of anything
    "dict",
    "ndarray",
    "ndarrays",  # a tuple of NumPy arrays
    "ndarray_or_number",  # depends on axis or dtype; host memory either way
    "storage",
    "dtype",
    "device",
    "finfo",  # torch.finfo and torch.iinfo: every attribute is a host value
    "generator",
    "module",
    "optimizer",
    "scheduler",
    "scaler",
    "loader",
    "dataset",
    "sampler",
    "parameters",  # an iterator over parameters
    "distribution",  # torch.distributions.Distribution
    "packed",  # torch.nn.utils.rnn.PackedSequence
    "context",  # a context manager or decorator
    "stream",
    "event",
    "handle",  # of a hook or of a collective under way
    "function",
    "object",  # something on the host that no rule asks about
    "same",  # whatever the first argument is (for a method: the receiver)
    "unknown",
]
"""What a call or attribute gives, seen from the host."""

Result: TypeAlias = Union[Kind, tuple["Result", ...], "Depends"]
"""A kind, a tuple with one result an element, or a choice by one argument."""


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT: Final = _Mark("ABSENT")
"""For `Depends.choose`: the argument is provably not passed."""
TENSOR: Final = _Mark("TENSOR")
"""For `Depends.choose`: the argument is a tensor."""
UNKNOWN: Final = _Mark("UNKNOWN")
"""For `Depends.choose`: nothing is known about the argument."""


@dataclass(frozen=True, slots=True)
class Depends:
    """A result that one argument decides.

    ``argument`` is its keyword, ``position`` its index among the positional arguments of the call (the
    receiver of a method not counted), None if it is keyword-only.  The result is ``given`` if it is
    passed and neither None nor False, ``tensor`` (where set) if it is a tensor, else ``absent``.
    """

    argument: str
    position: int | None
    given: Result
    absent: Result
    tensor: Result | None = None

    def choose(self, argument: object) -> Result:
        """Return the result for an argument: a constant, or ABSENT, TENSOR or UNKNOWN.

        Where UNKNOWN leaves only sequences of tensors and tensors, the result is ``"tensors"``, as
        indexing and unpacking give a tensor whichever it is.
        """
        if argument is UNKNOWN:
            outcomes = (
                (self.given, self.absent) if self.tensor is None else (self.given, self.absent, self.tensor)
            )
            return "tensors" if all(_only_tensors(outcome) for outcome in outcomes) else "unknown"
        if argument is TENSOR and self.tensor is not None:
            return self.tensor
        return self.absent if argument is ABSENT or argument is None or argument is False else self.given


def _only_tensors(result: Result) -> bool:
    if isinstance(result, tuple):
        return all(element == "tensor" for element in result)
    if isinstance(result, Depends):
        return _only_tensors(result.given) and _only_tensors(result.absent)
    return result in ("tensor", "tensors")


def _shifted(result: Result) -> Result:
    """Return the result of a method as that of the function that takes the tensor first."""
    if not isinstance(result, Depends):
        return result
    position = None if result.position is None else result.position + 1
    return replace(result, position=position, given=_shifted(result.given), absent=_shifted(result.absent))


def _words(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from text.split()


def _all(result: Result, *texts: str) -> dict[str, Result]:
    return dict.fromkeys(_words(*texts), result)


def _listed(text: str) -> dict[str, Result]:
    """Read lists of names, each behind the label of what they return (``number: ndim nbytes``)."""
    entries: dict[str, Result] = {}
    result: Result = "unknown"
    for word in text.split():
        if word.endswith(":"):
            result = _LABELS.get(word[:-1], cast(Kind, word[:-1]))
        else:
            entries[word] = result
    return entries


_PAIR: Final = ("tensor", "tensor")
_TRIPLE: Final = ("tensor", "tensor", "tensor")
_LABELS: Mapping[str, Result] = {"pair": _PAIR, "triple": _TRIPLE, "numbers": ("number", "number")}
_BY_DIMENSION: Final = Depends("dim", 0, given=_PAIR, absent="tensor", tensor="tensor")

# --- methods of tensors -----------------------------------------------------------------------------

# Both torch.Tensor.<name> and torch.<name>, the tensor first; returns one tensor.
_ELEMENTWISE = """
abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin
asinh atan atan2 atanh bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor ceil clamp clamp_max clamp_min clip clone conj conj_physical copysign cos cosh deg2rad detach
digamma div divide eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac
gcd ge greater greater_equal gt hardshrink heaviside hypot i0 igamma igammac isclose isfinite isinf isnan
isneginf isposinf isreal lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2
logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply mvlgamma nan_to_num ne
neg negative nextafter not_equal polygamma positive pow prelu rad2deg reciprocal relu remainder resolve_conj
resolve_neg round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan tanh true_divide
trunc xlogy
"""
ELEMENTWISE: Final = frozenset(_ELEMENTWISE.split())
"""Functions and methods that compute each element of their result by itself."""

_REDUCING = """
all amax amin any argmax argmin corrcoef count_nonzero cov dist hash_tensor histc logsumexp mean nanmean
nanquantile nansum norm prod quantile std sum trace var
"""
_SHAPING = """
adjoint as_strided as_strided_scatter broadcast_to diag diag_embed diagflat diagonal diagonal_scatter
flatten flip fliplr flipud gather index_add index_copy index_fill index_put index_reduce index_select
masked_fill masked_scatter masked_select moveaxis movedim narrow narrow_copy permute put ravel
repeat_interleave reshape roll rot90 scatter scatter_add scatter_reduce select select_scatter slice_inverse
slice_scatter squeeze swapaxes swapdims t take take_along_dim tile transpose tril triu unflatten unsqueeze
argwhere nonzero_static
"""
_ALGEBRA = """
addbmm addmm addmv addr argsort baddbmm bincount bmm cholesky cholesky_inverse cholesky_solve cross cumprod
cumsum det diff dot ger inner inverse istft kron log_softmax logcumsumexp logdet lu_solve matmul matrix_exp
matrix_power mm msort multinomial mv orgqr ormqr outer pinverse renorm smm softmax sspaddmm stft vdot
int_repr q_per_channel_scales q_per_channel_zero_points
"""
_METHODS_ONLY = """
bfloat16 bool byte ccol_indices cfloat cdouble chalf char coalesce col_indices contiguous cpu crow_indices
cuda dequantize double expand expand_as float half hpu indices int ipu long mtia new new_empty
new_empty_strided new_full new_ones new_tensor new_zeros pin_memory repeat reshape_as resize resize_as
row_indices short sparse_mask sum_to_size to to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc
to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr type_as unfold values view view_as where xpu
as_subclass align_as align_to refine_names rename
"""
# In-place methods with no out-of-place method of the same name; the others are derived below.
_IN_PLACE_ONLY = """
apply_ cauchy_ copy_ exponential_ fill_ fill_diagonal_ geometric_ log_normal_ map2_ map_ normal_ random_
rename_ requires_grad_ resize_ resize_as_ resize_as_sparse_ set_ share_memory_ sparse_resize_
sparse_resize_and_clear_ uniform_ zero_
"""
_IN_PLACE = """
abs_ absolute_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ arccos_ arccosh_ arcsin_
arcsinh_ arctan2_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan2_ atan_ atanh_ baddbmm_ bernoulli_
bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ ceil_ clamp_
clamp_max_ clamp_min_ clip_ conj_physical_ copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_ detach_ digamma_
div_ divide_ eq_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ fix_ float_power_ floor_ floor_divide_ fmod_ frac_
gcd_ ge_ greater_ greater_equal_ gt_ heaviside_ hypot_ i0_ igamma_ igammac_ index_add_ index_copy_
index_fill_ index_put_ index_reduce_ lcm_ ldexp_ le_ lerp_ less_ less_equal_ lgamma_ log10_ log1p_ log2_
log_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ masked_fill_ masked_scatter_ mul_
multiply_ mvlgamma_ nan_to_num_ ne_ neg_ negative_ nextafter_ not_equal_ polygamma_ pow_ put_ rad2deg_
reciprocal_ relu_ remainder_ renorm_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sgn_ sigmoid_ sign_
sin_ sinc_ sinh_ sqrt_ square_ squeeze_ sub_ subtract_ swapaxes_ swapdims_ t_ tan_ tanh_ transpose_ tril_
triu_ true_divide_ trunc_ unsqueeze_ xlogy_
"""

_UNIQUE: Final = Depends(
    "return_inverse",
    1,
    given=Depends("return_counts", 2, given=_TRIPLE, absent=_PAIR),
    absent=Depends("return_counts", 2, given=_PAIR, absent="tensor"),
)
_UNIQUE_CONSECUTIVE: Final = Depends(
    "return_inverse",
    0,
    given=Depends("return_counts", 1, given=_TRIPLE, absent=_PAIR),
    absent=Depends("return_counts", 1, given=_PAIR, absent="tensor"),
)

# Shared by torch.Tensor.<name> and torch.<name>; not (always) one tensor.
_SHARED_OTHERS: dict[str, Result] = {
    **_listed("""
    pair: aminmax cummax cummin frexp geqrf histogram kthvalue mode qr slogdet sort topk
        triangular_solve eig lstsq solve symeig
    tensors: chunk dsplit hsplit split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split
        unsafe_split_with_sizes vsplit
    bool: allclose equal is_complex is_conj is_distributed is_floating_point is_inference is_neg
        is_nonzero is_same_size is_signed
    number: numel q_per_channel_axis q_scale q_zero_point
"""),
    **_all(_BY_DIMENSION, "max min median nanmedian"),
    "svd": _TRIPLE,
    "lu": Depends("get_infos", 1, given=_TRIPLE, absent=_PAIR),
    "nonzero": Depends("as_tuple", None, given="tensors", absent="tensor"),
    "unique": _UNIQUE,
    "unique_consecutive": _UNIQUE_CONSECUTIVE,
}

TENSOR_METHODS: Mapping[str, Result] = {
    **_listed("""
    number: data_ptr const_data_ptr dense_dim dim element_size get_device item ndimension nelement
        sparse_dim storage_offset __len__ __int__ __float__ __index__ __complex__
    bool: is_coalesced is_contiguous is_pinned is_set_to is_shared __bool__ __contains__
    none: backward record_stream retain_grad reinforce
    handle: register_hook register_post_accumulate_grad_hook
    storage: storage untyped_storage
    object: qscheme storage_type
    tuple: dim_order
    ndarray: numpy __array__
    list: tolist
"""),
    **_all("tensor", _ELEMENTWISE, _REDUCING, _SHAPING, _ALGEBRA, _METHODS_ONLY, _IN_PLACE_ONLY, _IN_PLACE),
    **_SHARED_OTHERS,
    "size": Depends("dim", 0, given="number", absent="shape"),
    "stride": Depends("dim", 0, given="number", absent="tuple"),
    "type": Depends("dtype", 0, given="tensor", absent="string"),
}
"""Method of ``torch.Tensor`` → what it returns. A tensor stays on the receiver's device unless
`METHOD_DEVICES` or the method's own arguments (``to``, ``new_*``) say otherwise."""

TENSOR_ATTRIBUTES: Mapping[str, Result] = _listed("""
    tensor: data grad T mT H mH real imag
    bool: is_cpu is_cuda is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_nested
        is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu requires_grad retains_grad
    number: itemsize nbytes ndim output_nr _version
    object: grad_fn layout
    dtype: dtype grad_dtype
    tuple: names
    shape: shape
    device: device
    string: name
""")
"""Attribute of ``torch.Tensor`` → what it is; ``grad`` may also be None. Only `DETACHED_ATTRIBUTES` are
tensors without a graph."""

BATCH_ATTRIBUTES: Mapping[str, Result] = _listed("""
    number: batch_size num_graphs num_nodes num_edges num_faces num_features num_node_features
        num_edge_features
""")
"""Attribute of the batches of torch_geometric, torchtext and their like → what it is, if no tensor."""

MASKS_OF_NODES: Final = frozenset({"test_mask", "train_mask", "val_mask"})
"""Attributes of the graphs of torch_geometric that say which nodes belong to a split: booleans."""

FEATURES_OF_GRAPHS: Final = frozenset({"dstdata", "edata", "ndata", "srcdata"})
"""Attributes of the graphs of dgl that hold tensors by their names, where the graph is."""

DETACHED_ATTRIBUTES: Final = frozenset({"data", "grad"})
"""Attributes of a tensor that are tensors outside its graph (``grad`` unless it was made with
``create_graph=True``)."""

METHOD_DEVICES: Mapping[str, Literal["cpu", "accelerator"]] = {
    "cpu": "cpu",
    "pin_memory": "cpu",
    "cuda": "accelerator",
    "hpu": "accelerator",
    "ipu": "accelerator",
    "mtia": "accelerator",
    "xpu": "accelerator",
    # Those that extensions of torch add under the names of their devices.
    "mlu": "accelerator",
    "musa": "accelerator",
    "npu": "accelerator",
}
"""Methods of tensors and modules that name the device of their result."""

MOVES_TO_ACCELERATOR: Final = frozenset(name for name, place in METHOD_DEVICES.items() if place != "cpu")
"""The ones that name an accelerator: ``x.cuda()``, ``x.npu()``."""

METHOD_DTYPES: Mapping[str, str] = {
    **dict.fromkeys(
        _words("""
    all any bool eq ge greater greater_equal gt isclose isfinite isinf isnan isneginf isposinf
    isreal le less less_equal logical_and logical_not logical_or logical_xor lt ne not_equal signbit
"""),
        "torch.bool",
    ),
    **dict.fromkeys(
        _words("argmax argmin argsort argwhere count_nonzero long multinomial nonzero"), "torch.int64"
    ),
    "bfloat16": "torch.bfloat16",
    "byte": "torch.uint8",
    "char": "torch.int8",
    "double": "torch.float64",
    "float": "torch.float32",
    "half": "torch.float16",
    "int": "torch.int32",
    "short": "torch.int16",
}
"""Methods (and ``torch.`` functions of the same names) whose result has one dtype whatever the operand
has."""

LAYOUT_METHODS: Final = frozenset(
    _words("""
    clone contiguous detach expand expand_as flatten flip movedim narrow permute pin_memory ravel repeat
    repeat_interleave reshape reshape_as roll select squeeze swapaxes swapdims t tile transpose
    unflatten unsqueeze view view_as index_select gather masked_select take requires_grad_
""")
)
"""Methods whose result has the dtype of the receiver, and its numbers as they are."""

TENSOR_ONLY_METHODS: Final = frozenset(
    _words(
        # What NumPy, pandas, JAX, TensorFlow, PIL, modules, optimizers and Accelerate do not have, and
        # what is no usual name for a submodule either (`self.relu(x)` says nothing about `self`).
        """
    addbmm addcdiv addcmul addmm addmv amax amin baddbmm bitwise_not bmm byte clamp clamp_max
    clamp_min contiguous count_nonzero cummax cummin data_ptr detach diag_embed element_size
    expand_as index_add index_copy index_fill index_put index_reduce index_select is_floating_point
    isfinite isinf isnan kthvalue logcumsumexp logical_and logical_not logical_or logical_xor
    logsumexp long masked_fill masked_scatter masked_select movedim nan_to_num ndimension nelement
    new_empty new_full new_ones new_tensor new_zeros numel repeat_interleave reshape_as retain_grad
    rsqrt scatter_add scatter_reduce swapdims take_along_dim tril triu type_as unsqueeze
    untyped_storage view_as cauchy_ copy_ exponential_ fill_ fill_diagonal_ geometric_ log_normal_
    map2_ map_ normal_ random_ resize_ resize_as_ set_ uniform_ zero_
""",
        _IN_PLACE,
    )
)
"""Methods whose call proves that a receiver of which nothing else is known is a torch tensor.

``backward``, ``cpu``, ``cuda``, ``to``, ``half``, ``float``, ``requires_grad_``, ``numpy``, ``item``,
``size``, ``view`` and ``permute`` are not here: other things have them too. Nothing is proved about
``self`` and ``cls``."""

ARRAY_METHODS: Final = frozenset(
    _words(
        """
    all any argmax argmin argsort clip conj cumprod cumsum diagonal dot flatten item max mean min nonzero prod
    ravel repeat reshape round squeeze std sum swapaxes take tolist trace transpose var view
        """
    )
)
"""Methods of tensors that NumPy's arrays have too: on an accelerator, they prove a torch tensor."""

TENSOR_ONLY_KEYWORDS: Final = frozenset({"as_tuple", "keepdim", "dim"})
"""Keywords that prove a torch tensor when passed to one of `TENSOR_METHODS` on an otherwise unknown
receiver (NumPy says ``axis`` and ``keepdims``); ``dim`` only with an integer, as xarray takes strings."""

TENSOR_ONLY_ATTRIBUTES: Final = frozenset({"grad_fn", "is_cuda", "requires_grad"})
"""Attributes whose reading proves that an otherwise unknown object is a torch tensor or parameter."""

GRAPHLESS_METHODS: Final = frozenset(
    _words("""
    all any argmax argmin argsort argwhere bool byte char count_nonzero data_ptr detach detach_ eq
    ge greater greater_equal gt hash_tensor histc int isclose isfinite isinf isnan isneginf isposinf
    isreal le less less_equal logical_and logical_not logical_or logical_xor long lt multinomial ne
    new_empty new_empty_strided new_full new_ones new_tensor new_zeros nonzero nonzero_static
    not_equal short signbit bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor
""")
)
"""Methods of tensors (and ``torch.`` functions of the same names) whose result never has a graph, although
the operands may. ``round``, ``floor``, ``sign`` and ``bernoulli`` are not here: they keep a graph with zero
gradients."""

GRAPHLESS_ELEMENTS: Mapping[str, frozenset[int]] = {
    name: frozenset({1})
    for name in _words("cummax cummin frexp kthvalue max median min mode nanmedian sort topk")
}
"""Elements of a tuple result that never have a graph (indices, integers): method or function name → their
numbers."""

# --- functions --------------------------------------------------------------------------------------

_TORCH_ONLY = """
adaptive_avg_pool1d affine_grid_generator alpha_dropout avg_pool1d batch_norm bilinear
binary_cross_entropy_with_logits binomial block_diag bucketize cartesian_prod cat cdist celu chain_matmul
channel_shuffle column_stack combinations complex concat concatenate constant_pad_nd conv1d conv2d conv3d
conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution cosine_embedding_loss
cosine_similarity ctc_loss cumulative_trapezoid dropout dsmm dstack einsum embedding
fake_quantize_per_channel_affine fake_quantize_per_tensor_affine feature_alpha_dropout feature_dropout fill
frobenius_norm grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru_cell hinge_embedding_loss hsmm
hspmm hstack imag instance_norm isin kl_div layer_norm margin_ranking_loss max_pool1d max_pool2d max_pool3d
norm_except_dim nuclear_norm pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson poisson_nll_loss
polar quantize_per_channel quantize_per_tensor real rms_norm rnn_relu_cell rnn_tanh_cell row_stack rrelu
rsub saddmm searchsorted segment_reduce selu spmm stack tensordot threshold trapezoid trapz
triplet_margin_loss vander view_as_complex view_as_real vstack
"""

FACTORIES: Final = frozenset(
    f"torch.{name}"
    for name in _words("""
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_quantized
    empty_strided eye full hamming_window hann_window kaiser_window linspace logspace normal ones
    rand randint randn randperm range scalar_tensor sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor
    tril_indices triu_indices zeros fft.fftfreq fft.rfftfreq nested.nested_tensor
    signal.windows.bartlett signal.windows.blackman signal.windows.cosine signal.windows.exponential
    signal.windows.gaussian signal.windows.general_cosine signal.windows.general_hamming
    signal.windows.hamming signal.windows.hann signal.windows.kaiser signal.windows.nuttall
""")
)
"""Functions that make a tensor on the device of ``device=``, else on the default device. Without
``device=``, ``as_tensor``, ``asarray`` and ``sparse_*`` keep the device of a tensor they are given;
``normal`` that of tensor means or deviations (and has no ``device=`` then)."""

LIKE_FACTORIES: Final = frozenset(
    f"torch.{name}"
    for name in _words("empty_like full_like ones_like rand_like randint_like randn_like zeros_like")
)
"""Functions that make a tensor on the device of their first argument, unless ``device=`` is given."""

NEW_FACTORIES: Final = frozenset(_words("new_empty new_empty_strided new_full new_ones new_tensor new_zeros"))
"""Methods that make a tensor on the device of their receiver, unless ``device=`` is given."""

RANDOM_FACTORIES: Final = frozenset(
    f"torch.{name}" for name in _words("normal rand rand_like randint randint_like randn randn_like randperm")
)
"""Factories that draw from the random stream of their device; all of them take ``generator=`` in some
version."""

LEGACY_CONSTRUCTORS: Mapping[str, str] = {
    "torch.BFloat16Tensor": "torch.bfloat16",
    "torch.BoolTensor": "torch.bool",
    "torch.ByteTensor": "torch.uint8",
    "torch.CharTensor": "torch.int8",
    "torch.DoubleTensor": "torch.float64",
    "torch.FloatTensor": "torch.float32",
    "torch.HalfTensor": "torch.float16",
    "torch.IntTensor": "torch.int32",
    "torch.LongTensor": "torch.int64",
    "torch.ShortTensor": "torch.int16",
}
"""Constructors by sizes or data, on the CPU, with their dtype; those of the same names in ``torch.cuda``
make the tensor on the current CUDA device. ``torch.Tensor`` itself has the default dtype."""

HOST_TYPES: Final = frozenset({*LEGACY_CONSTRUCTORS, "torch.Tensor"})
"""Types for which ``x.type(…)`` gives a tensor on the CPU; ``torch.Tensor`` only by default."""

HOST_FACTORIES: Final = frozenset(
    _words(
        """
    torch.from_numpy torch.frombuffer torch.from_file torch.get_rng_state torch.random.get_rng_state
    torch.cuda.get_rng_state torch.Tensor torchaudio.load torchvision.io.read_image
    torchvision.io.decode_image torchvision.io.read_file torchvision.transforms.functional.to_tensor
    torchvision.transforms.functional.pil_to_tensor
""",
        *LEGACY_CONSTRUCTORS,
    )
)
"""Functions whose tensors are in host memory whatever the default device is."""

_FUNCTIONAL = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid alpha_dropout avg_pool1d avg_pool2d
avg_pool3d batch_norm bilinear celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d cosine_similarity dropout dropout1d dropout2d dropout3d elu elu_ embedding
embedding_bag feature_alpha_dropout fold gelu glu grid_sample group_norm grouped_mm gumbel_softmax
hardshrink hardsigmoid hardswish hardtanh hardtanh_ instance_norm interpolate layer_norm leaky_relu
leaky_relu_ linear local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d max_unpool1d
max_unpool2d max_unpool3d mish normalize one_hot pad pairwise_distance pdist pixel_shuffle pixel_unshuffle
prelu relu relu6 relu_ rms_norm rrelu rrelu_ scaled_dot_product_attention scaled_mm selu selu_ sigmoid silu
softmax softmin softplus softshrink softsign tanh tanhshrink threshold threshold_ unfold upsample
upsample_bilinear upsample_nearest
"""

FUNCTIONAL_LOSSES: Final = frozenset(
    f"torch.nn.functional.{name}"
    for name in _words(
        """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
    ctc_loss gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss linear_cross_entropy
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss triplet_margin_with_distance_loss
"""
    )
)
"""Functions that return a 0-d tensor unless ``reduction="none"``."""

_LINALG = """
cholesky cond cross det diagonal eigvals eigvalsh householder_product inv ldl_solve lu_solve matmul
matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv solve solve_triangular svdvals tensorinv
tensorsolve vander vecdot vector_norm
"""
_FFT = """
fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn
rfft rfft2 rfftn
"""
_SPECIAL = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc
gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l
legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi round scaled_modified_bessel_k0
scaled_modified_bessel_k1 sinc softmax spherical_bessel_j0 xlog1py xlogy zeta
"""
_INIT = """
constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ normal_ ones_ orthogonal_ sparse_ trunc_normal_
uniform_ xavier_normal_ xavier_uniform_ zeros_
"""


def _within(namespace: str, entries: Mapping[str, Result]) -> dict[str, Result]:
    return {f"{namespace}.{name}": result for name, result in entries.items()}


_TORCH: dict[str, Result] = {
    **_listed("""
    tensor: abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_
        as_strided_ asin_ asinh_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_
        conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_ embedding_renorm_ erf_ erfc_ exp2_ exp_
        expm1_ feature_alpha_dropout_ feature_dropout_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_
        lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_
        relu_ round_ rrelu_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_
        trunc_ xlogy_ zero_ Tensor
    tensors: meshgrid broadcast_tensors gradient unravel_index
    pair: std_mean var_mean native_dropout lobpcg adaptive_max_pool1d gru rnn_relu rnn_tanh lstm_cell
    triple: lstm svd_lowrank pca_lowrank lu_unpack native_layer_norm native_group_norm
        native_batch_norm
    bool: can_cast is_autocast_enabled is_autocast_cache_enabled is_grad_enabled
        is_inference_mode_enabled is_storage is_tensor is_anomaly_enabled is_vulkan_available
        cudnn_is_acceptable set_flush_denormal are_deterministic_algorithms_enabled
        is_deterministic_algorithms_warn_only_enabled
    number: get_num_interop_threads get_num_threads initial_seed seed get_deterministic_debug_mode
    string: get_float32_matmul_precision typename
    dtype: get_default_dtype promote_types result_type get_autocast_dtype get_autocast_gpu_dtype
    device: device get_default_device
    finfo: finfo iinfo
    generator: Generator manual_seed
    context: no_grad enable_grad inference_mode set_grad_enabled autocast
    none: save set_default_device set_default_dtype set_default_tensor_type
        set_deterministic_debug_mode set_float32_matmul_precision
        set_num_interop_threads set_num_threads set_printoptions set_rng_state set_warn_always
        use_deterministic_algorithms
    function: vmap
    same: compile
    unknown: load
    shape: Size
"""),
    **_all(
        "tensor",
        _ELEMENTWISE,
        _REDUCING,
        _SHAPING,
        _ALGEBRA,
        _TORCH_ONLY,
        "dequantize resize_as_ resize_as_sparse_",
    ),
    **{name: _shifted(result) for name, result in _SHARED_OTHERS.items()},
    **_all(Depends("tensors", 1, given="tensors", absent="tensor"), "atleast_1d atleast_2d atleast_3d"),
    "where": Depends("input", 1, given="tensor", absent="tensors"),
    "histogramdd": ("tensor", "tensors"),
    "embedding_bag": ("tensor", "tensor", "tensor", "tensor"),
}


def _pools() -> Iterator[tuple[str, Result]]:
    for size in "123":
        yield f"max_pool{size}d", Depends("return_indices", 6, given=_PAIR, absent="tensor")
        yield f"adaptive_max_pool{size}d", Depends("return_indices", 2, given=_PAIR, absent="tensor")
        yield f"max_pool{size}d_with_indices", _PAIR
        yield f"adaptive_max_pool{size}d_with_indices", _PAIR
    for size in "23":
        yield f"fractional_max_pool{size}d", Depends("return_indices", 4, given=_PAIR, absent="tensor")
        yield f"fractional_max_pool{size}d_with_indices", _PAIR


_WORK: Final = Depends("async_op", None, given="handle", absent="none")

FUNCTIONS: Mapping[str, Result] = {
    **_listed("""
    tensor: torch.nn.parameter.Parameter torch.autograd.Variable torchvision.ops.nms
        torchvision.ops.batched_nms torchvision.ops.box_iou torchvision.ops.box_convert
        torchvision.ops.box_area torchvision.ops.clip_boxes_to_image torchvision.ops.deform_conv2d
        torchvision.ops.generalized_box_iou torchvision.ops.masks_to_boxes torchvision.ops.roi_align
        torchvision.ops.roi_pool torchvision.ops.sigmoid_focal_loss torchvision.utils.make_grid
        einops.einsum torch.distributions.kl_divergence torch.distributions.kl.kl_divergence
    tensors: torch.autograd.grad timm.utils.accuracy timm.utils.metrics.accuracy
    none: torch.autograd.backward torch.mps.synchronize torch.xpu.synchronize torch.mps.empty_cache
        torch.xpu.empty_cache torch.optim.swa_utils.update_bn torchvision.utils.save_image
    bool: torch.backends.mps.is_available torch.backends.mps.is_built torch.xpu.is_available
        torch.mps.is_available torch.mtia.is_available torch.backends.cudnn.is_available
    number: torch.xpu.device_count torch.mps.device_count torch.backends.cudnn.version
        torch.random.initial_seed
    context: torch.random.fork_rng torch.amp.autocast torch.cpu.amp.autocast
        torch.amp.autocast_mode.autocast
    scaler: torch.amp.GradScaler torch.amp.grad_scaler.GradScaler torch.cpu.amp.GradScaler
        torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler
    module: torch.jit.load torch.optim.swa_utils.AveragedModel torch.fx.GraphModule
        torch.jit.ScriptModule torch.distributed.fsdp.FullyShardedDataParallel
        torch.nn.parallel.DistributedDataParallel torch.nn.parallel.DataParallel
        torch.distributed.fsdp.FSDPModule timm.create_model timm.models.create_model
        torchvision.models.get_model
    same: torch.jit.script torch.jit.trace torch.jit.freeze torch.jit.optimize_for_inference
        torch.quantization.convert torch.quantization.prepare torch.ao.quantization.convert
        copy.deepcopy einops.rearrange einops.repeat einops.reduce
    unknown: torch.hub.load
    dict: torch.hub.load_state_dict_from_url
    scheduler: torch.optim.swa_utils.SWALR transformers.get_scheduler
        diffusers.optimization.get_scheduler
    optimizer: torch.distributed.optim.ZeroRedundancyOptimizer transformers.AdamW
        transformers.Adafactor timm.optim.create_optimizer timm.optim.create_optimizer_v2
"""),
    "triton.cdiv": Depends("x", 0, given="number", absent="number", tensor="tensor"),
    **_within("torch", _TORCH),
    **dict.fromkeys(FACTORIES | LIKE_FACTORIES | HOST_FACTORIES, "tensor"),
    **dict.fromkeys((name.replace("torch.", "torch.cuda.") for name in LEGACY_CONSTRUCTORS), "tensor"),
    **_within(
        "torch.nn.functional",
        {
            **_all("tensor", _FUNCTIONAL),
            **dict(_pools()),
        },
    ),
    **dict.fromkeys(FUNCTIONAL_LOSSES, "tensor"),
    "torch.nn.functional.multi_head_attention_forward": _PAIR,
    **_within(
        "torch.linalg",
        {
            **_listed("""
    pair: cholesky_ex eig eigh inv_ex ldl_factor lu_factor qr slogdet solve_ex
    triple: ldl_factor_ex lu lu_factor_ex svd
"""),
            **_all("tensor", _LINALG),
            "lstsq": ("tensor", "tensor", "tensor", "tensor"),
        },
    ),
    **_within("torch.fft", _all("tensor", _FFT)),
    **_within("torch.special", _all("tensor", _SPECIAL)),
    **_within(
        "torch.nn.init",
        {
            **_all("tensor", _INIT),
            "calculate_gain": "number",
        },
    ),
    **_within(
        "torch.nn.utils",
        {
            **_listed("""
    tensor: clip_grad_norm_ clip_grad_norm get_total_norm parameters_to_vector rnn.pad_sequence
        rnn.unpad_sequence
    none: clip_grad_value_ clip_grads_with_norm_ vector_to_parameters
    same: spectral_norm weight_norm remove_spectral_norm remove_weight_norm
        parametrizations.spectral_norm parametrizations.weight_norm parametrizations.orthogonal
    packed: rnn.pack_padded_sequence rnn.pack_sequence rnn.PackedSequence
    module: fuse_conv_bn_eval fuse_linear_bn_eval skip_init
"""),
            "rnn.pad_packed_sequence": _PAIR,
        },
    ),
    **_within("torch.nn", _all("tensor", "Parameter UninitializedParameter Buffer UninitializedBuffer")),
    **_within("torch.autograd", _all("context", "set_detect_anomaly detect_anomaly no_grad enable_grad")),
    **_within(
        "torch.func", _all("function", "grad grad_and_value vmap jacfwd jacrev hessian vjp jvp linearize")
    ),
    **_within(
        "torch.cuda",
        _listed("""
    bool: is_available is_initialized is_bf16_supported is_tf32_supported can_device_access_peer
        is_current_stream_capturing
    number: current_device device_count max_memory_allocated max_memory_cached max_memory_reserved
        memory_allocated memory_cached memory_reserved memory_usage utilization temperature power_draw
        clock_rate initial_seed get_sync_debug_mode get_per_process_memory_fraction device_memory_used
    string: get_device_name memory_summary list_gpu_processes get_allocator_backend
    numbers: get_device_capability mem_get_info
    dict: memory_stats memory_stats_as_nested_dict
    list: get_arch_list memory_snapshot get_rng_state_all
    stream: Stream ExternalStream current_stream default_stream
    context: stream device device_of graph use_mem_pool amp.autocast
    none: empty_cache init ipc_collect manual_seed manual_seed_all reset_max_memory_allocated
        reset_max_memory_cached reset_peak_memory_stats seed seed_all set_device set_rng_state
        set_stream set_per_process_memory_fraction set_sync_debug_mode synchronize
    event: Event
    object: get_device_properties
    scaler: amp.GradScaler
"""),
    ),
    **_within(
        "torch.accelerator",
        _listed("""
    bool: is_available
    number: current_device_idx current_device_index device_count max_memory_allocated
        max_memory_reserved memory_allocated memory_reserved
    none: empty_cache set_device_idx set_device_index set_stream synchronize reset_peak_memory_stats
    device: current_accelerator
    stream: current_stream
    dict: memory_stats
"""),
    ),
    **_within("torch.random", _all("generator", "manual_seed")),
    **_within(
        "torch.distributed",
        {
            **_listed("""
    number: get_rank get_world_size get_global_rank get_group_rank get_node_local_rank recv
    bool: is_available is_initialized is_gloo_available is_mpi_available is_nccl_available
        is_torchelastic_launched is_backend_available
    string: get_backend
    handle: irecv isend
    none: all_gather_object broadcast_object_list gather_object init_process_group
        destroy_process_group monitored_barrier send
    object: new_group
    same: fsdp.fully_shard
"""),
            **_all(
                _WORK,
                """
    all_gather all_gather_into_tensor all_reduce all_reduce_coalesced all_to_all all_to_all_single
    barrier broadcast gather reduce reduce_scatter reduce_scatter_tensor scatter
""",
            ),
        },
    ),
    **_within(
        "torch.utils.data",
        _listed("""
    loader: DataLoader dataloader.DataLoader
    dataset: Dataset IterableDataset TensorDataset ConcatDataset ChainDataset StackDataset Subset
        dataset.Dataset dataset.IterableDataset dataset.TensorDataset dataset.ConcatDataset
        dataset.Subset
    sampler: Sampler BatchSampler RandomSampler SequentialSampler SubsetRandomSampler
        WeightedRandomSampler DistributedSampler distributed.DistributedSampler sampler.Sampler
        sampler.BatchSampler sampler.RandomSampler sampler.SequentialSampler
        sampler.SubsetRandomSampler sampler.WeightedRandomSampler
    list: random_split
    object: get_worker_info
"""),
    ),
    "torchaudio.load": ("tensor", "number"),
}
"""Function or class, fully qualified → what calling it returns; ask through `function_result`, which also
knows the families of names (every class of ``torch.optim`` …) and other spellings of the same function."""

_FAMILY_PATTERNS: tuple[tuple[str, Kind], ...] = (
    (r"torch\.nn\.(modules\.\w+\.|parallel\.|attention\.\w+\.)?[A-Z]\w*", "module"),
    (r"torch\.ao\.nn\.[\w.]+\.[A-Z]\w*", "module"),
    (r"torch\.optim\.lr_scheduler\._?[A-Z]\w*", "scheduler"),
    (r"torch\.optim\.(\w+\.)?[A-Z]\w*", "optimizer"),
    (r"torch\.distributions\.(\w+\.)?[A-Z]\w*(?<!Transform)", "distribution"),
    (r"torchvision\.datasets\.(\w+\.)?[A-Z]\w*", "dataset"),
    (r"torchvision\.models\.(\w+\.)*(?!get_|list_)[a-z]\w*", "module"),
    (r"torchvision\.models\.(\w+\.)*[A-Z]\w*(?<!Weights)", "module"),
    (r"torchaudio\.functional\.[a-z]\w*", "tensor"),
    (r"segmentation_models_pytorch\.[A-Z]\w*", "module"),
    (r"transformers\.(\w+\.)*get_\w+_schedule(_with_\w+)?", "scheduler"),
    (
        r"(transformers|diffusers)\.(\w+\.)*(?!DataCollator|Flax|TF)[A-Z]\w*(Model|For[A-Z]\w*)(\.from_\w+)?",
        "module",
    ),
    (r"diffusers\.(\w+\.)*(Autoencoder\w+|AsymmetricAutoencoderKL|VQModel)(\.from_\w+)?", "module"),
)
_FAMILIES = tuple((re.compile(pattern), kind) for pattern, kind in _FAMILY_PATTERNS)

_SPELLINGS: tuple[tuple[str, str], ...] = (
    ("torch.functional.", "torch."),
    ("torch._C._nn.", "torch.nn.functional."),
    ("torch._C._VariableFunctions.", "torch."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.nn.utils.clip_grad.", "torch.nn.utils."),
    ("torch.nn.utils.convert_parameters.", "torch.nn.utils."),
    ("torch.cuda.memory.", "torch.cuda."),
    ("torch.cuda.random.", "torch.cuda."),
    ("torch.cuda.amp.grad_scaler.", "torch.cuda.amp."),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
    ("torch.distributed.distributed_c10d.", "torch.distributed."),
)


def canonical(qualified: str) -> str:
    """Return the documented name of a function that is also importable from the module that implements it."""
    for prefix, public in _SPELLINGS:
        if qualified.startswith(prefix):
            return public + qualified[len(prefix) :]
    return qualified


@cache
def function_result(qualified: str) -> Result | None:
    """Return what calling the function or class of this qualified name returns, if it is known."""
    name = canonical(qualified)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name.startswith("torch.Tensor."):
        method = TENSOR_METHODS.get(name.removeprefix("torch.Tensor."))
        return None if method is None else _shifted(method)
    for namespace, members, otherwise in _HOST_NAMESPACES:
        if name.startswith(namespace):
            return members.get(name.removeprefix(namespace), otherwise)
    for family, kind in _FAMILIES:
        if family.fullmatch(name):
            return kind
    return None


GRAPHLESS_FUNCTIONS: Final = frozenset(
    (
        *(f"torch.{name}" for name in GRAPHLESS_METHODS - {"detach_"} if name in _TORCH),
        *(FACTORIES - {"torch.as_tensor", "torch.asarray"}),
        *LIKE_FACTORIES,
        *HOST_FACTORIES,
        *_words("""
    torch.isin torch.searchsorted torch.bucketize torch.nn.functional.one_hot
    torch.nn.utils.clip_grad_norm_ torch.nn.utils.clip_grad_norm torch.nn.utils.get_total_norm
    torch.linalg.matrix_rank torchvision.ops.nms
    torchvision.ops.batched_nms torchvision.utils.make_grid torch.detach_ torch.autograd.grad
    timm.utils.accuracy timm.utils.metrics.accuracy
"""),
    )
)
"""Functions whose tensors never have a graph, although their operands may (factories: unless
``requires_grad=True``; ``torch.autograd.grad``: unless ``create_graph=True``)."""

# --- the host's own libraries -----------------------------------------------------------------------

NUMPY_VIEWS: Final = frozenset(
    f"numpy.{name}"
    for name in _words("""
    array_split asanyarray asarray ascontiguousarray atleast_1d atleast_2d atleast_3d broadcast_to diag
    expand_dims flip fliplr flipud frombuffer moveaxis ravel reshape rollaxis split squeeze swapaxes transpose
""")
)
"""Functions of NumPy whose result can be in the memory of what they are given."""

NUMPY_TYPES: Final = frozenset(
    f"numpy.{name}"
    for name in _words("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64")
)
"""Types of NumPy's numbers, which make a number of a number and an array of an array."""

_NUMPY: dict[str, Result] = {"where": Depends("x", 1, given="ndarray", absent="ndarrays")} | _listed("""
    ndarray: arange array asarray ascontiguousarray asanyarray append argsort argwhere array_split
        atleast_1d atleast_2d atleast_3d bincount block broadcast_to column_stack concatenate copy
        cumprod cumsum diag diff dstack empty empty_like expand_dims eye fft.fft flip fliplr flipud
        frombuffer fromfile fromiter full full_like gradient histogram hstack identity indices interp
        isin linspace logspace moveaxis ndarray ones ones_like outer pad random.choice
        random.permutation random.rand random.randn ravel repeat reshape roll rollaxis rot90 sort
        split squeeze stack swapaxes tile transpose tri tril triu unique vstack zeros zeros_like
        random.normal random.uniform random.randint random.random random.random_sample
        random.standard_normal
    ndarrays: diag_indices diag_indices_from mask_indices nonzero tril_indices tril_indices_from triu_indices
        triu_indices_from
    bool: allclose array_equal iscomplexobj isscalar issubdtype bool_
    number: ndim size
    none: save savez savez_compressed savetxt random.seed random.shuffle set_printoptions seterr
    unknown: load loadtxt genfromtxt vectorize memmap fromfunction apply_along_axis random.RandomState
        random.default_rng random.get_state errstate printoptions lib.format.open_memmap
    list: meshgrid
    tuple: shape
    object: dtype
    string: array2string
""")
_RANDOM: dict[str, Result] = _listed("""
    number: random uniform randint randrange gauss normalvariate betavariate triangular getrandbits
        expovariate
    list: sample choices
    none: seed shuffle setstate
""")
_TIME: dict[str, Result] = _listed("""
    number: time perf_counter monotonic process_time time_ns perf_counter_ns monotonic_ns
    string: strftime ctime asctime
    none: sleep
""")
_MATH: dict[str, Result] = _listed("""
    bool: isnan isinf isfinite isclose
    numbers: modf frexp
""")

# namespace, its exceptions, what everything else in it returns
_HOST_NAMESPACES: tuple[tuple[str, Mapping[str, Result], Result | None], ...] = (
    ("numpy.", _NUMPY, "ndarray_or_number"),
    ("math.", _MATH, "number"),
    ("random.", _RANDOM, None),
    ("time.", _TIME, None),
)

# --- methods and attributes of the other objects ----------------------------------------------------

METHODS: Mapping[str, Mapping[str, Result]] = {
    "tensor": TENSOR_METHODS,
    "module": _listed("""
    same: apply bfloat16 cpu cuda double eval float half ipu mtia requires_grad_ share_memory to
        to_empty train type xpu
    parameters: parameters buffers named_parameters named_buffers
    unknown: children modules named_children named_modules
    none: add_module compile register_buffer register_module register_parameter set_submodule
        zero_grad
    dict: state_dict
    object: load_state_dict
    tensor: get_buffer get_parameter
    module: get_submodule
    string: extra_repr
    handle: register_backward_hook register_forward_hook register_forward_pre_hook
        register_full_backward_hook register_full_backward_pre_hook
    context: no_sync join summon_full_params
"""),
    "optimizer": _listed("""
    none: zero_grad add_param_group load_state_dict consolidate_state_dict
    dict: state_dict
    handle: register_step_post_hook register_step_pre_hook
    unknown: step
"""),
    "scheduler": _listed("""
    none: step load_state_dict print_lr
    dict: state_dict
    list: get_last_lr get_lr
"""),
    "scaler": _listed("""
    none: update unscale_ load_state_dict set_growth_factor set_backoff_factor set_growth_interval
    number: get_scale get_growth_factor get_backoff_factor get_growth_interval
    bool: is_enabled
    dict: state_dict
    same: scale
    unknown: step
"""),
    "distribution": _listed("""
    tensor: cdf entropy enumerate_support icdf log_prob perplexity rsample sample sample_n
    distribution: expand
"""),
    "ndarray": _listed("""
    ndarray: argsort astype byteswap clip conj copy cumprod cumsum diagonal flatten newbyteorder ravel
        repeat reshape squeeze swapaxes take transpose view
    ndarray_or_number: all any argmax argmin dot max mean min prod ptp round std sum trace var
    none: fill itemset partition put resize setfield setflags sort tofile
    list: tolist
    number: item searchsorted
    tuple: nonzero
    object: tobytes tostring dumps
"""),
    "event": _listed("""
    none: record synchronize wait
    bool: query
    number: elapsed_time
"""),
    "stream": _listed("""
    none: synchronize wait_event wait_stream
    bool: query
    event: record_event
"""),
    "shape": _listed("""
    number: numel count index
"""),
    "generator": _listed("""
    number: initial_seed seed
    generator: manual_seed clone_state
    tensor: get_state
"""),
    "packed": _listed("""
    packed: to cuda cpu float half double long int
    bool: is_pinned
"""),
    "storage": _listed("""
    number: data_ptr size nbytes element_size
    storage: cpu cuda clone
"""),
}
"""Kind of the receiver → its methods → what they return (``"same"``: the receiver)."""

ATTRIBUTES: Mapping[str, Mapping[str, Result]] = {
    "tensor": TENSOR_ATTRIBUTES,
    "module": _listed("""
    bool: training
"""),
    "optimizer": _listed("""
    list: param_groups
    dict: state defaults
"""),
    "scheduler": _listed("""
    number: last_epoch
    list: base_lrs
    optimizer: optimizer
"""),
    "distribution": _listed("""
    tensor: loc logits mean mode probs rate scale stddev variance concentration
    shape: batch_shape event_shape
    distribution: base_dist
"""),
    "ndarray": _listed("""
    ndarray: T real imag flat
    number: itemsize nbytes ndim size
    tuple: shape strides
    object: dtype
"""),
    "device": _listed("""
    string: type
    number: index
"""),
    "finfo": _listed("""
    number: bits eps max min tiny resolution smallest_normal
    string: dtype
"""),
    "packed": _listed("""
    tensor: data batch_sizes sorted_indices unsorted_indices
"""),
    "loader": _listed("""
    dataset: dataset
    sampler: sampler batch_sampler
    number: batch_size num_workers prefetch_factor timeout
    bool: pin_memory drop_last persistent_workers
"""),
}
"""Kind of the object → its attributes → what they are."""

GRAPHLESS_DISTRIBUTION_METHODS: Final = frozenset({"enumerate_support", "sample", "sample_n"})
"""Methods of a distribution whose tensors have no graph; ``rsample``, ``log_prob`` and ``entropy`` keep
it."""

_RECURRENT_STATE: Final = ("tensor", "tensor")

MODULE_RESULTS: Mapping[str, Result] = {
    "torch.nn.LSTM": ("tensor", _RECURRENT_STATE),
    "torch.nn.GRU": _PAIR,
    "torch.nn.RNN": _PAIR,
    "torch.nn.LSTMCell": _PAIR,
    "torch.nn.MultiheadAttention": _PAIR,
    "torch.nn.AdaptiveLogSoftmaxWithLoss": _PAIR,
    "torch.nn.Identity": "same",
    "torch.nn.ModuleList": "unknown",
    "torch.nn.ModuleDict": "unknown",
    "torch.nn.ParameterList": "unknown",
    "torch.nn.ParameterDict": "unknown",
    "torch.nn.Module": "unknown",
    "torch.nn.Sequential": "unknown",  # what its last module returns
    "torch.nn.DataParallel": "unknown",  # what the wrapped module returns
    "torch.nn.parallel.DistributedDataParallel": "unknown",
    "torch.optim.swa_utils.AveragedModel": "unknown",
}
"""Module class → what calling an instance returns; every other class of ``torch.nn`` gives one tensor
(pooling with ``return_indices=True`` two)."""


def module_result(qualified: str) -> Result | None:
    """Return what calling an instance of this class of ``torch.nn`` returns; None for other classes."""
    name = re.sub(r"^torch\.nn\.modules\.\w+\.", "torch.nn.", qualified)
    if name in MODULE_RESULTS:
        return MODULE_RESULTS[name]
    return (
        "tensor" if re.fullmatch(r"torch\.nn\.[A-Z]\w*", name) and function_result(name) == "module" else None
    )


NN_LOSSES: Final = frozenset(
    f"torch.nn.{name}"
    for name in _words("""
    BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss
    HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss
    MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss
    SmoothL1Loss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss
""")
)
"""Criteria: calling an instance gives a 0-d tensor, unless it was made with ``reduction="none"``."""

# --- synchronisation --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sync:
    """Why a call on an accelerator tensor makes the host wait for the device, and under which condition.

    ``reason`` is ``read`` (one value is read back), ``copy`` (the data moves to host memory), ``shape`` (the
    size or the range of the result depends on the data) or ``check`` (an error flag is read back).
    ``absent`` are arguments (keyword, position; see `Depends`) without which only the call waits, ``tensor``
    is one that must be a tensor, ``host`` one that must name the CPU.
    """

    reason: Literal["read", "copy", "shape", "check"]
    absent: tuple[tuple[str, int | None], ...] = ()
    tensor: tuple[str, int | None] | None = None
    host: tuple[str, int | None] | None = None


_READS, _COPIES, _SHAPES, _CHECKS = Sync("read"), Sync("copy"), Sync("shape"), Sync("check")

METHOD_SYNCS: Mapping[str, Sync] = {
    **dict.fromkeys(
        _words("item is_nonzero equal allclose __bool__ __int__ __float__ __index__ __complex__"), _READS
    ),
    **dict.fromkeys(_words("cpu numpy tolist __array__"), _COPIES),
    "to": Sync("copy", host=("device", 0)),
    **dict.fromkeys(
        _words("nonzero argwhere masked_select unique unique_consecutive bincount to_sparse to_sparse_csr"),
        _SHAPES,
    ),
    "repeat_interleave": Sync("shape", absent=(("output_size", None),), tensor=("repeats", 0)),
    **dict.fromkeys(_words("cholesky inverse matrix_exp pinverse svd"), _CHECKS),
    "histc": Sync("shape", absent=(("min", 1), ("max", 2))),
}
"""Methods of an accelerator tensor that wait for the device (``to`` unless ``non_blocking=True``).

So do ``bool()``, ``int()``, ``float()``, ``if``, and indexing or slicing with a 0-d integer tensor
(``read``), ``x[mask]``, ``x[mask] = tensor`` and ``x[mask] = device_scalar`` (``shape``), but neither
``x[mask] = 0.0`` nor ``x[indices] = tensor``. What goes to the device through pageable memory waits as well:
``x[0, 0] = 1.0`` (while ``x[0] = 1.0`` fills), ``x[indices] = 1.0``, ``x[[0, 2]]``. ``masked_fill`` reads a
value that is a tensor of the device. All of it was measured: benchmarks/waits.py has the calls,
benchmarks/results/syncs.json what they did."""

FUNCTION_SYNCS: Mapping[str, Sync] = {
    **dict.fromkeys(_words("torch.is_nonzero torch.equal torch.allclose"), _READS),
    **dict.fromkeys(
        _words("""
    torch.nonzero torch.argwhere torch.masked_select torch.unique torch.unique_consecutive
    torch.bincount torch.combinations torch.isin torchvision.ops.nms torchvision.ops.batched_nms
"""),
        _SHAPES,
    ),
    "torch.where": Sync("shape", absent=(("input", 1),)),
    "torch.repeat_interleave": Sync("shape", absent=(("output_size", None),), tensor=("repeats", 1)),
    "torch.sparse_coo_tensor": Sync("shape", absent=(("size", 2),)),
    "torch.nn.functional.one_hot": Sync("read", absent=(("num_classes", 1),)),
    "torch.histc": Sync("shape", absent=(("min", 2), ("max", 3))),
    "torch.full": Sync("read", tensor=("fill_value", 1)),
    **dict.fromkeys(
        _words("""
    torch.linalg.cholesky torch.linalg.eig torch.linalg.eigh torch.linalg.eigvals
    torch.linalg.eigvalsh torch.linalg.inv torch.linalg.lstsq torch.linalg.pinv torch.linalg.solve
    torch.linalg.svd torch.linalg.svdvals torch.inverse torch.cholesky torch.svd torch.linalg.cond
    torch.linalg.ldl_factor torch.linalg.lu_factor torch.linalg.matrix_exp torch.linalg.matrix_rank
    torch.linalg.tensorinv torch.lobpcg torch.matrix_exp torch.pca_lowrank
    torch.pinverse torch.svd_lowrank
"""),
        _CHECKS,
    ),
    **dict.fromkeys(_words("numpy.asarray numpy.array numpy.ascontiguousarray numpy.asanyarray"), _COPIES),
}
"""Functions that wait for the device when given an accelerator tensor. So do the constructors of
``torch.distributions`` unless ``validate_args=False``, and ``torch.tensor`` of a list with device scalars."""

SIZED_BY_SCALARS: Final = frozenset(
    _words("""
    torch.arange torch.empty torch.eye torch.linspace torch.logspace torch.ones torch.rand torch.randint
    torch.randn torch.randperm torch.zeros
""")
)
"""Factories that read every device scalar among their sizes and bounds."""

READING_SCALARS: Final = frozenset(_words("chunk expand narrow repeat roll split topk"))
"""Methods (and ``torch.`` functions of the same names) that read every device scalar among their sizes and
places."""

READING_FILL: Final = frozenset(_words("full full_like new_full index_fill masked_fill masked_fill_"))
"""Methods and ``torch.`` functions that read the device scalar which they fill in."""

READING_ARGUMENTS: Mapping[str, tuple[str, int | None]] = {
    **dict.fromkeys(_words("add add_ sub_"), ("alpha", None)),
    **dict.fromkeys(_words("addcmul addcmul_ addcdiv_"), ("value", None)),
    "torch.nn.functional.leaky_relu": ("negative_slope", 1),
    "torch.nn.functional.dropout": ("p", 1),
}
"""Methods (and ``torch.`` functions of the same names), and functions by their full names, that take one
argument as a number: a device scalar there is read. With each its name and its place, as in `Depends`."""

UNCHECKED_TWINS: Mapping[str, str] = {
    "torch.cholesky": "torch.linalg.cholesky_ex",
    "torch.inverse": "torch.linalg.inv_ex",
    "torch.linalg.cholesky": "torch.linalg.cholesky_ex",
    "torch.linalg.inv": "torch.linalg.inv_ex",
    "torch.linalg.lu_factor": "torch.linalg.lu_factor_ex",
    "torch.linalg.solve": "torch.linalg.solve_ex",
}
"""Functions that look whether they have succeeded, and what does the same without. Those with methods of the
same name are in ``torch`` itself."""

CHECKED_DISTRIBUTIONS: Final = frozenset(
    _words("""
    Bernoulli Beta Binomial Categorical Cauchy ContinuousBernoulli Dirichlet Exponential Gamma Geometric
    Gumbel HalfNormal Kumaraswamy Laplace LogNormal LogisticNormal LowRankMultivariateNormal Multinomial
    MultivariateNormal NegativeBinomial Normal OneHotCategorical Pareto Poisson RelaxedBernoulli
    RelaxedOneHotCategorical StudentT Uniform VonMises Weibull
""")
)
"""Classes of ``torch.distributions`` that look at their parameters when made, if not told otherwise."""

EXPLICIT_SYNCS: Final = frozenset(
    _words("""
    torch.cuda.synchronize torch.accelerator.synchronize torch.xpu.synchronize torch.mps.synchronize
    torch.mtia.synchronize torch.cpu.synchronize
""")
)
"""Functions that wait for the device and do nothing else; so do ``synchronize()`` of a stream and of an
event."""
