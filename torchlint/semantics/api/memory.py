"""Which functions of torch leave alone what they are given, and answer in memory of their own.

What returns a view, or now and then the very tensor that it was given (``torch.squeeze``, ``x.float()``,
``F.dropout`` in evaluation), is in neither table: its result is as good as the tensor. The tests call each
name, and look at the memory.
"""

from __future__ import annotations

from typing import Final

from torchlint.semantics.api.results import FUNCTIONAL_LOSSES

# Both torch.Tensor.<name> and torch.<name>.
_SHARED = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin aminmax any
arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan atan2 atanh
baddbmm bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm ceil clamp clamp_max clamp_min clip
clone copysign cos cosh count_nonzero cross cummax cummin cumprod cumsum deg2rad diff digamma dist div
divide dot eq equal erf erfc exp exp2 expm1 flip fliplr flipud floor floor_divide fmax fmin fmod frac gather
ge greater greater_equal gt histc index_add index_copy index_fill index_select inner isclose isfinite isinf
isnan kron kthvalue le less less_equal lerp lgamma log log10 log1p log2 log_softmax logaddexp logcumsumexp
logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill masked_scatter masked_select
matmul maximum mean median minimum mm mode mul multinomial multiply mv nan_to_num nanmean nanmedian nansum
ne neg negative nonzero norm not_equal numel outer pow prod quantile rad2deg reciprocal remainder renorm
repeat_interleave roll round rsqrt scatter scatter_add sgn sigmoid sign sin sinc sinh softmax sort sqrt
square std sub subtract sum take take_along_dim tan tanh tile topk trace tril triu true_divide trunc unique
var vdot xlogy
"""
_METHODS = """
data_ptr dim element_size get_device item ndimension nelement new_empty new_full new_ones new_tensor
new_zeros repeat size stride tolist
"""
_TORCH = """
cat cdist column_stack concat concatenate dstack empty_like full_like hstack isin ones_like rand_like
randn_like row_stack save searchsorted stack std_mean tensor tensordot var_mean vstack where zeros_like
"""
_FUNCTIONAL = """
bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu
embedding gelu grid_sample group_norm hardsigmoid hardtanh interpolate layer_norm leaky_relu linear
log_softmax logsigmoid normalize one_hot pad pairwise_distance relu relu6 scaled_dot_product_attention selu
sigmoid silu softmax softmin softplus softsign tanh
"""

READING_METHODS: Final = frozenset([*_SHARED.split(), *_METHODS.split()])
"""Methods of tensors that change nothing, and whose result has memory of its own, or is no tensor."""

READING_FUNCTIONS: Final = frozenset(
    [
        *(f"torch.{name}" for name in (*_SHARED.split(), *_TORCH.split())),
        *(f"torch.nn.functional.{name}" for name in _FUNCTIONAL.split()),
        *FUNCTIONAL_LOSSES,
    ]
)
"""Functions of which that is true for all tensors they are given: without ``out=``, ``inplace=`` and the
``max_norm=`` of an embedding."""

WRITTEN_PARAMETERS: Final = frozenset({"running_mean", "running_var", "out"})
"""Parameters of functions of torch that are written to."""
