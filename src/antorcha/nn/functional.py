"""``torch.nn.functional``: the functions behind the layers.

Most are op records, exposed under this name by ``ops`` (see ``record.NAMESPACES``) or shared with
``torch``. What stands here in Python is made of other functions.
See https://docs.pytorch.org/docs/stable/nn.functional.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core import dtypes, modes
from antorcha.core.device import backend
from antorcha.errors import MissingFeature, ShapeError, ValueRangeError, no_such_name, warn
from antorcha.ops.bags import bag_of_each
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY, T

_SHARED = (
    "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear binary_cross_entropy_with_logits "
    "celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "cosine_embedding_loss cosine_similarity ctc_loss embedding_bag group_norm hardshrink "
    "hinge_embedding_loss layer_norm linear logsigmoid margin_ranking_loss one_hot "
    "pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu_ rms_norm "
    "scaled_dot_product_attention selu_ sigmoid tanh threshold_ triplet_margin_loss "
    "elu_ leaky_relu_ hardtanh_ batch_norm instance_norm dropout alpha_dropout "
    "feature_alpha_dropout conv_tbc"
).split()


def _record(name: str) -> Any:
    """The op of that name, from either place; None if there is none."""
    found = NAMESPACES["nn.functional"].get(name, REGISTRY.get(name))
    if found is None and name.endswith("_") and name[:-1] in REGISTRY:
        found = REGISTRY[name[:-1]].inplace
    return found


def _fill_module() -> None:
    names = globals()
    names.update(NAMESPACES["nn.functional"])
    for name in _SHARED:
        found = _record(name)
        if found is not None:
            names.setdefault(name, found)


def padding_row(padding_idx: int | None, rows: int) -> int | None:
    """The row of a table that gets no gradient, counted from the first one."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of ``weight`` that the integers in ``input`` name.

    Args:
        input (LongTensor): row numbers, of any shape
        weight (Tensor): the table ``(rows, columns)``
        padding_idx (int, optional): this row gets no gradient
        max_norm (float, optional): the rows that are taken are first scaled down to it, in place
        norm_type (float): p of that norm. Default: 2
        scale_grad_by_freq (bool): divide a row's gradient by how often it was taken
        sparse (bool): is the gradient of ``weight`` sparse?

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html.

    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if weight.dim() != 2:
        raise ShapeError(f"embedding: 'weight' must be 2-D, not {tuple(weight.shape)}")
    row = padding_row(padding_idx, weight.size(0))
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    return T.embedding(weight, input, -1 if row is None else row, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The sum, mean or maximum of the rows of ``weight`` that each bag of integers names.

    Args:
        input (LongTensor): bags of one size ``(bags, size)``, or all bags joined ``(N)``
        weight (Tensor): the table ``(rows, columns)``
        offsets (LongTensor, optional): where each bag starts in a joined ``input``
        max_norm (float, optional): the rows that are taken are first scaled down to it, in place
        norm_type (float): p of that norm. Default: 2
        scale_grad_by_freq (bool): divide a row's gradient by how often it was taken
        mode (str): ``'sum'``, ``'mean'`` or ``'max'``. Default: ``'mean'``
        sparse (bool): is the gradient of ``weight`` sparse?
        per_sample_weights (Tensor, optional): multiply the rows; only with ``'sum'``
        include_last_offset (bool): does the last offset say where the last bag ends?
        padding_idx (int, optional): this row is left out, and gets no gradient

    A bag of nothing gives zeros.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html.

    >>> table = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([[1, 0]]), table, mode='sum')
    tensor([[4., 6.]])
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    _check_bags(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    row = padding_row(padding_idx, weight.size(0))
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    counts = -1 if row is None else row, scale_grad_by_freq, sparse
    starts = None if input.dim() == 2 else _starts(input, offsets, include_last_offset)
    count = input.size(0) if starts is None else starts.size(0)
    input, weights = input.reshape(-1), per_sample_weights
    if weights is not None:
        weights = weights.reshape(-1).to(weight.dtype)
    if getattr(backend(weight.device), "folds_bags", False) and not modes.batched:
        table = weight if weight.stride(1) == 1 else weight.contiguous()
        if weights is not None:
            return T.weigh_bags(table, input, starts, weights, count, *counts)
        if mode == "max":
            return T.largest_of_bags(table, input, starts, count, counts[0])
        return T.fold_bags(table, input, starts, count, mode, *counts)
    if starts is None:
        starts = T.arange(count, device=input.device) * (input.numel() // max(count, 1))
    rows = T.embedding(weight, input, *counts)
    return T.bags_of(rows, bag_of_each(input, starts), input != counts[0], weights, count, mode)


def _check_bags(
    input: Any, weight: Any, offsets: Any, mode: str, by_freq: bool, sparse: bool, weights: Any
) -> None:
    if weights is not None and input.shape != weights.shape:
        raise ValueRangeError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueRangeError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueRangeError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
            f"fixed length sequences. However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and (offsets is None or offsets.dim() != 1):
        got = " but got None" if offsets is None else ""
        raise ValueRangeError(f"offsets has to be a 1D Tensor{got}")
    if input.dim() not in (1, 2):
        raise ValueRangeError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueRangeError("mode has to be one of sum, mean or max")
    if mode == "max" and by_freq:
        raise ValueRangeError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueRangeError("max mode does not support sparse weights")
    if weights is not None and mode != "sum":
        raise MissingFeature(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )


def _starts(input: Any, offsets: Any, include_last: bool) -> Any:
    """Where each bag begins."""
    count = offsets.numel() - include_last
    if count < 0:
        raise ShapeError("include_last_offset: number of offset should be at least 1")
    if count and input.device.type != "meta":
        first, last = int(offsets[0]), int(offsets[-1])
        if first != 0:
            raise ShapeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                f"from position 0. However, got {first}"
            )
        if last > input.numel():
            raise ShapeError(
                f"offsets[-1] can not be greater than input's length {input.numel()} but got "
                f"offsets[-1] of {last}"
            )
    return offsets[:count].to(dtypes.int64)


def _renormalize(weight: Any, input: Any, max_norm: float, norm_type: float) -> None:
    """Scales the rows of ``weight`` that are taken down to ``max_norm``, in place."""
    with no_grad():
        used = T.unique(input.reshape(-1))
        taken = T.index_select(weight, 0, used)
        norms = T.linalg_vector_norm(taken, norm_type, (1,), True)
        factor = T.where(norms > max_norm, max_norm / (norms + 1e-7), T.ones_like(norms))
        weight.index_copy_(0, used, taken * factor)


# ----------------------------------------------------------------------------------- rearranging
def rrelu_(input: Any, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False) -> Any:
    """:func:`rrelu` in place."""
    return T.rrelu(input, lower, upper, training, True)


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """``(*, C*r^2, H, W)`` to ``(*, C, H*r, W*r)``.

    >>> torch.nn.functional.pixel_shuffle(torch.zeros(1, 9, 4, 4), 3).shape
    torch.Size([1, 1, 12, 12])
    """
    *lead, c, h, w = input.shape
    r = upscale_factor
    if r <= 0 or c % (r * r):
        raise ShapeError(
            f"pixel_shuffle: {c} channels are not divisible by the square of upscale_factor {r}"
        )
    n = len(lead)
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return parts.permute(order).reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """``(*, C, H*r, W*r)`` to ``(*, C*r^2, H, W)``: undoes :func:`pixel_shuffle`.

    >>> torch.nn.functional.pixel_unshuffle(torch.zeros(1, 1, 12, 12), 3).shape
    torch.Size([1, 9, 4, 4])
    """
    *lead, c, h, w = input.shape
    r = downscale_factor
    if r <= 0 or h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: {h} x {w} is not divisible by downscale_factor {r}")
    n = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return parts.permute(order).reshape(*lead, c * r * r, h // r, w // r)


_fill_module()


_PRIVATE = (
    "ScalingType SwizzleType _canonical_mask _get_softmax_dim _in_projection _in_projection_packed "
    "_none_or_dtype _verify_batch_size _verify_spatial_size assert_int_or_pair grouped_mm "
    "scaled_grouped_mm scaled_mm"
).split()
_UTILS = ("_list_with_default", "_pair", "_single", "_triple")
_OVERRIDES = (
    "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic",
)  # fmt: skip
_FROM = {  # files that need this one, or stand higher
    "multi_head_attention_forward": "nn.multihead",
    "linear_cross_entropy": "nn.linear_cross_entropy",
    **dict.fromkeys(_PRIVATE, "nn.functional_private"),
    **dict.fromkeys(_UTILS, "nn.modules.utils"),
    **dict.fromkeys(_OVERRIDES, "overrides"),
}
_MODULES = {"_Reduction": "nn._reduction", "_VF": "_VF", "grad": "nn.grad"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"antorcha.{_MODULES[name]}")
    if name in _FROM:
        found = getattr(importlib.import_module(f"antorcha.{_FROM[name]}"), name)
        globals()[name] = found
        return found
    found = _record(name) if name in _SHARED else None  # ops registered since
    if found is not None:
        return found
    raise no_such_name("torch.nn.functional", name, globals())
