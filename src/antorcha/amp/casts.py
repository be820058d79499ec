"""What autocast does to a call: in which dtype each op runs, and the casts of its arguments.

An op on no list runs as it is called. The lists are those of PyTorch (aten/src/ATen/
autocast_mode.cpp and .h); the CPU and GPUs have their own. Only floating-point tensors on a device
whose autocast is on are cast, float64 never; an op that is on a list runs its own parts without
autocast. In-place and ``out=`` forms are not cast.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes, modes
from antorcha.core.hooks import hooks
from antorcha.errors import ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

LOWER = (
    "addbmm", "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linalg_vecdot", "linear", "lstm",
    "matmul", "mm", "prelu", "rnn_relu", "rnn_tanh", "scaled_dot_product_attention",
)  # fmt: skip
"""Ops that run in the region's dtype."""

FLOAT32 = (
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cdist", "cholesky", "cholesky_inverse", "cholesky_solve",
    "cosine_embedding_loss", "cross_entropy", "ctc_loss", "fft_fft", "fft_fft2", "fft_fftn",
    "fft_hfft", "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_ihfft", "fft_irfft", "fft_irfft2",
    "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn", "fractional_max_pool2d",
    "fractional_max_pool3d", "geqrf", "grid_sample", "grid_sampler", "hinge_embedding_loss",
    "huber_loss", "inverse", "kl_div", "l1_loss", "linalg_cholesky", "linalg_cholesky_ex",
    "linalg_cond", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh",
    "linalg_householder_product", "linalg_inv", "linalg_inv_ex", "linalg_lstsq",
    "linalg_matrix_rank", "linalg_qr", "linalg_solve", "linalg_svd", "linalg_svdvals",
    "linalg_tensorinv", "linalg_tensorsolve", "lu_solve", "margin_ranking_loss", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mirrored_pad", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nanquantile", "nll_loss", "orgqr", "ormqr", "pinverse",
    "poisson_nll_loss", "polar", "prod", "qr", "quantile", "smooth_l1_loss",
    "soft_margin_loss", "stft", "svd", "trace",
    "triangular_solve", "triplet_margin_loss", "view_as_complex",
)  # fmt: skip
"""Ops that run in float32."""

WIDEST = ("cat", "index_copy", "stack")
"""Ops that run in float32 where one of their tensors is float32, else in the region's dtype."""


GPU_LOWER = (
    *LOWER, "addmv", "addr", "chain_matmul", "einsum", "gru_cell", "linalg_multi_dot", "lstm_cell",
    "mv", "rnn_relu_cell", "rnn_tanh_cell",
)  # fmt: skip
GPU_FLOAT32 = (
    "acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosh", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1",
    "group_norm", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "layer_norm",
    "linalg_matrix_norm", "linalg_vector_norm", "log", "log10", "log1p", "log2", "log_softmax",
    "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "nll_loss", "norm", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal", "renorm", "rsqrt",
    "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan",
    "triplet_margin_loss",
)  # fmt: skip
GPU_WIDEST = (
    "addcdiv", "addcmul", "atan2", "bilinear", "cat", "cross", "dot", "grid_sample", "grid_sampler",
    "index_put", "scatter_add", "stack", "tensordot", "vdot",
)  # fmt: skip


class _AutocastState(threading.local):
    """A thread's settings. Whether a device's autocast is on is a bit of its mode."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """The settings of a new thread."""
        self.enabled: dict[str, bool] = {}  # of other devices
        self.dtypes: dict[str, dtypes.dtype] = {}
        self.lower = dtypes.bfloat16  # the CPU's dtype
        self.caching = True
        self.nesting = 0
        self.cache: dict[Any, tuple[Tensor, int, Tensor]] = {}
        self.device = "cpu"  # whose lists the op that is being cast follows


state = _AutocastState()
BITS = {"cpu": modes.AUTOCAST_CPU, "cuda": modes.AUTOCAST_CUDA, "mps": modes.AUTOCAST_MPS}
"""Devices whose ops are cast: their bits of a thread's mode."""
_BFLOAT16 = ("cpu", "hpu", "xla")  # whose default is not float16


def eligible(value: Any) -> bool:
    """Is it a tensor that autocast casts?"""
    if not isinstance(value, Tensor):
        return False
    layout = value._layout
    return (
        layout.dtype.kind == "f"
        and layout.dtype is not dtypes.float64
        and layout.device.type == state.device
    )


def lower_dtype(device: str) -> dtypes.dtype:
    """The dtype that ops run in under autocast on a type of device."""
    if device == "cpu":
        return state.lower
    default = dtypes.bfloat16 if device in _BFLOAT16 else dtypes.float16
    return state.dtypes.get(device, default)


def cast(value: Any, dtype: dtypes.dtype) -> Any:
    """An argument with its tensors in ``dtype``, those that are cast at all."""
    if type(value) in (tuple, list):
        return type(value)([cast(each, dtype) for each in value])
    if not eligible(value) or value._layout.dtype is dtype:
        return value
    weight = value._rg and value._fn is None and value._base is None
    if not (weight and state.caching and dtype is lower_dtype(state.device)):
        return T.to_dtype(value, dtype)
    if value._layout.dtype is not dtypes.float32:
        return T.to_dtype(value, dtype)
    return _cached(value, dtype)


def _cached(weight: Tensor, dtype: dtypes.dtype) -> Tensor:
    """A weight is cast once in a region; again where it was written to, or where the other cast was
    not recorded (PyTorch goes on with what it has)."""
    key = id(weight), dtype, modes.state.word & modes.PLAIN
    version = weight._storage.version
    found = state.cache.get(key)
    if found is not None and found[1] == version:
        return found[2]
    result: Tensor = T.to_dtype(weight, dtype)
    state.cache[key] = weight, version, result
    return result


def _widest(args: Any, found: dtypes.dtype) -> dtypes.dtype:
    """float32 if one of the tensors is, else what was found so far."""
    for value in args:
        if type(value) in (tuple, list):
            found = _widest(value, found)
        elif eligible(value):
            have = value._layout.dtype
            if dtypes.float32 in (have, found):
                found = dtypes.float32
            elif have is not found:
                raise ShapeError(
                    f"Unexpected floating ScalarType in at::autocast::prioritize: {have}, in a "
                    f"region of {found}"
                )
    return found


def _lower(args: Any) -> dtypes.dtype:
    return lower_dtype(state.device)


def _float32(args: Any) -> dtypes.dtype:
    return dtypes.float32


def _of_state(args: Any) -> dtypes.dtype:
    """The dtype of a recurrent layer's state, which is its second argument or, where the first two
    are packed data, the third."""
    for value in args[1:3]:
        if eligible(value):
            return value._layout.dtype  # type: ignore[no-any-return]
    return lower_dtype(state.device)


def _averaged(args: Any) -> dtypes.dtype:
    """Images and volumes are normalized by ``avg_pool3d``, sequences by ``avg_pool2d``."""
    return dtypes.float32 if args[0]._layout.ndim > 3 else args[0]._layout.dtype


Policy = Callable[[Any], dtypes.dtype]
POLICIES: dict[str, Policy] = {
    **dict.fromkeys(LOWER, _lower),
    **dict.fromkeys(FLOAT32, _float32),
    "gru": _of_state,
    "local_response_norm": _averaged,
    **dict.fromkeys(WIDEST, lambda args: _widest(args, lower_dtype(state.device))),
}
GPU_POLICIES: dict[str, Policy] = {
    **dict.fromkeys(GPU_LOWER, _lower),
    **dict.fromkeys(GPU_FLOAT32, _float32),
    "gru": _of_state,
    **dict.fromkeys(GPU_WIDEST, lambda args: _widest(args, lower_dtype(state.device))),
}


def _device_of(args: Any) -> str:
    """The type of device that a call runs on: a GPU if one of its tensors is there."""
    for value in args:
        found = "cpu"
        if type(value) in (tuple, list):
            found = _device_of(value)
        elif isinstance(value, Tensor):
            found = value._layout.device.type
        if found in ("cuda", "mps"):
            return found
    return "cpu"


def autocast(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Any) -> Any:
    """``run(args, kwargs)``, with the arguments cast as the op's list says."""
    device = _device_of((*args, *kwargs.values()))
    policy = (POLICIES if device == "cpu" else GPU_POLICIES).get(op.name)
    if policy is None or not modes.state.word & BITS[device]:
        return run(args, kwargs)
    word = modes.set_word(modes.state.word & ~modes.AUTOCAST)
    state.device = device
    try:
        dtype = policy((*args, *kwargs.values()))
        args = tuple([cast(each, dtype) for each in args])
        return run(args, {name: cast(each, dtype) for name, each in kwargs.items()})
    finally:
        modes.set_word(word)


hooks.autocast = autocast
