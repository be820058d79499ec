"""Normalisation by channels: batch_norm, group_norm, instance_norm, local_response_norm.

A mean and a deviation are found for each channel (or group), then applied in one pass. Gradients go
the same way: sums of the gradient and of its product with the normalised input, then one pass.
(layer_norm and rms_norm are in ``row_norm``.)

Where a second derivative is asked for, the first one is written in plain ops, which derive further.
"""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.shapes import suggests_channels_last
from antorcha.errors import ArgumentError, DtypeError, ShapeError, ValueRangeError
from antorcha.ops.kinds.custom_vjp import custom_vjp
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import (
    Bool,
    Float,
    Int,
    Number,
    OptTensor,
    Tensor,
)
from antorcha.ops.row_norm import (
    floats_only,
    input_gradient,
    normalised,
    shown_statistic,
    statistics_dtype,
)
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import bare

F = "nn.functional."


class NormError(ShapeError, ValueRangeError):
    """Too few values to normalise; PyTorch raises ValueError."""


# ------------------------------------------------------------------------------- batch_norm
@pointwise(function=False, method=False)
def norm_apply(input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor, bias: Tensor):
    """The input normalised, scaled and shifted."""
    return (input - mean) * (rstd * weight) + bias


@pointwise(function=False, method=False)
def norm_apply_plain(input: Tensor, mean: Tensor, rstd: Tensor):
    """The input normalised."""
    return (input - mean) * rstd


@pointwise(function=False, method=False)
def norm_gradient(
    g: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    scale: Tensor,
    sum_g: Tensor,
    sum_gx: Tensor,
):
    """``scale * (g - mean of g - normalised input * mean of their product)``."""
    return scale * (g - sum_g - (input - mean) * rstd * sum_gx)


@pointwise(inplace=True, function=False, method=False)
def running_average(input: Tensor, value: Tensor, momentum: Number, factor: Number):
    """What a running statistic becomes."""
    return input * (1 - momentum) + value * factor * momentum


def _along(t: _Any, ndim: int) -> _Any:
    """One value a channel, shaped to broadcast along dim 1."""
    if t is None:
        return None
    return T.view(t, (1, t._layout.numel, *[1] * (ndim - 2))) if ndim != 1 else t


def _applied(x: Tensor, mean: Tensor, rstd: Tensor, weight: OptTensor, bias: OptTensor) -> Tensor:
    """The normalised input with what there is of scale and shift; in the input's dtype."""
    if weight is None and bias is None:
        y = T.norm_apply_plain(x, mean, rstd)
    elif weight is None:
        y = T.norm_apply_plain(x, mean, rstd) + bias
    elif bias is None:
        y = T.norm_apply_plain(x, mean, rstd * weight)
    else:
        y = T.norm_apply(x, mean, rstd, weight, bias)
    return y if y._layout.dtype is x._layout.dtype else T.to_dtype(y, x._layout.dtype)


def _widened(t: _Any) -> _Any:
    """Halves as float32."""
    if t is None or t._layout.dtype.itemsize != 2:
        return t
    return T.to_dtype(t, dtypes.float32)


@custom_vjp(
    function=False, method=False, node="native_batch_norm", writes=("running_mean", "running_var")
)
def batch_norm_node(
    input: Tensor,
    weight: OptTensor,
    bias: OptTensor,
    running_mean: OptTensor,
    running_var: OptTensor,
    training: Bool,
    momentum: Number,
    eps: Float,
):
    """batch_norm as (result, mean, 1 / deviation); when training it updates the running statistics.

    The statistics are saved for the gradient: as float32 for halves.
    """
    layout = input._layout
    nd = layout.ndim
    wide = _widened(input)
    if training:
        var, mean = T.var_mean(wide, (0, *range(2, nd)), correction=0)
        count = layout.numel // max(layout.shape[1], 1)
        for kept, value, factor in (
            (running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1)),
        ):  # fmt: skip
            if kept is not None:
                _move_average(kept, value, float(momentum), float(factor))
    else:  # (a copy: backward needs the mean of now, whatever training makes of it until then)
        mean, var = T.clone(_widened(running_mean)), _widened(running_var)
    rstd = T.rsqrt(var + eps)
    params = [_along(_widened(t), nd) for t in (mean, rstd, weight, bias)]
    return _applied(input, *params), mean, rstd


def _move_average(running: _Any, value: _Any, momentum: float, factor: float) -> None:
    """Moves a running statistic without a new version of it: the layer may run again before
    backward, which reads the statistics of its own batch. A user's write is still noticed."""
    version = running._storage.version
    T.running_average_(running, value, momentum, factor)
    running._storage.version = version


@batch_norm_node.batches
def _(batch, run, input, weight, bias, mean, var, training, momentum, eps):
    values = (input, weight, bias, mean, var, training, momentum, eps)
    moved = [t for t in (mean, var) if t is not None] if training else []
    if not all([batch.has(t) and batch.whole(t)._layout.contiguous for t in moved]):
        return batch.one_by_one(run, values)  # they are moved by one example after another
    # the examples' channels beside one another
    n, c, *rest = input._layout.shape
    x = T.reshape(T.movedim(batch.whole(input), 0, 1), (n, batch.size * c, *rest))
    params = [None if t is None else T.reshape(batch.whole(t), (-1,)) for t in values[1:5]]
    result, *saved = run(x, *params, training, momentum, eps)
    result = T.movedim(T.reshape(result, (n, batch.size, c, *rest)), 1, 0)
    return result, *[T.reshape(t, (batch.size, c)) for t in saved]


@batch_norm_node.derivative
def _(g, input, weight, bias_layout, running_mean, running_var, training, eps, out1, out2,
      needs, create):  # fmt: skip
    g = g[0]
    if g is None:  # (the statistics are constants)
        return None, None, None, None, None
    nd = input._layout.ndim
    dims = (0, *range(2, nd))
    x, dy = _widened(input), _widened(g)
    scale = _along(_widened(weight), nd)
    if create:
        scaled = dy if scale is None else dy * scale
        if training:
            xhat, rstd = normalised(x, dims, eps)
            dx = input_gradient(scaled, xhat, rstd, dims)
        else:
            constants = [bare(t._layout, t._storage, t._offset) for t in (out1, out2)]
            mean, rstd = [_along(t, nd) for t in constants]
            xhat = (x - mean) * rstd
            dx = rstd * scaled
        dw = None if weight is None else T.sum(dy * xhat, dims)
        return dx, dw, None if bias_layout is None else T.sum(dy, dims), None, None
    mean, rstd = _along(out1, nd), _along(out2, nd)
    dw = db = dx = None
    if training or needs[1] or needs[2]:
        db, dw = T.norm_sums(dy, x, mean, rstd, dims)
    if needs[0]:
        factor = rstd if scale is None else rstd * scale
        if training:
            count = input._layout.numel // max(input._layout.shape[1], 1)
            shares = [_along(s, nd) * (1 / max(count, 1)) for s in (db, dw)]
            dx = T.norm_gradient(dy, x, mean, rstd, factor, *shares)
        else:
            dx = dy * factor
    return (
        dx,
        dw if weight is not None else None,
        db if bias_layout is not None else None,
        None,
        None,
    )


@composite(method=False, out=False, page=False)
def native_batch_norm(
    input: Tensor,
    weight: OptTensor,
    bias: OptTensor,
    running_mean: OptTensor,
    running_var: OptTensor,
    training: Bool,
    momentum: Number,
    eps: Float,
):
    """batch_norm as (result, mean, 1 / deviation); when training it updates the running statistics.

    Only the result has a gradient. When not training the other two are empty.

    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0]
    tensor([[-1.],
            [ 1.]])
    """
    given = (weight, bias, running_mean, running_var)
    result, mean, rstd = T.batch_norm_node(input, *given, training, momentum, eps)
    dtype = statistics_dtype(input, given)
    if not training:
        return result, *[T.empty((0,), dtype=dtype, device=input._layout.device) for _ in range(2)]
    return result, *[shown_statistic(each, dtype) for each in (mean, rstd)]


def _check_channels(op: str, layout: Layout, **given: _Any) -> None:
    channels = layout.shape[1] if layout.ndim > 1 else 0
    for name, each in given.items():
        if each is not None and each._layout.numel != channels:
            raise ShapeError(
                f"{op}: {name} should contain {channels} elements not {each._layout.numel} (input "
                f"has shape {list(layout.shape)})"
            )
        if each is not None and each._layout.dtype is not layout.dtype and not (
            layout.dtype.itemsize == 2 and each._layout.dtype is dtypes.float32
        ):  # fmt: skip
            raise DtypeError(
                f"{op}: mixed dtype (CPU): all inputs must share same datatype, but the input is "
                f"{layout.dtype} and {name} is {each._layout.dtype}"
            )


@composite(method=False, namespace="nn.functional", out=False)
def batch_norm(
    input: Tensor,
    running_mean: OptTensor,
    running_var: OptTensor,
    weight: OptTensor = None,
    bias: OptTensor = None,
    training: Bool = False,
    momentum: Float = 0.1,
    eps: Float = 1e-5,
):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with a mean and variance a channel (dim 1).

    When ``training`` they are those of the batch, and the running ones move towards them by
    ``momentum`` (the variance without bias); otherwise the running ones are used.

    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    layout = input._layout
    if training:
        _enough_values(
            "batch_norm", layout, layout.numel // max(layout.shape[1] if layout.ndim > 1 else 1, 1)
        )
        if eps <= 0:
            raise ValueRangeError(
                f"batch_norm: batch_norm eps must be positive during training, but got {eps}"
            )
    elif eps < 0:
        raise ValueRangeError(f"batch_norm: batch_norm eps must be non-negative, but got {eps}")
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise ShapeError(f"batch_norm: {missing} must be defined in evaluation mode")
    _check_channels(
        "batch_norm",
        layout,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    floats_only("batch_norm", layout)
    if not layout.numel:
        return T.clone(input)
    if layout.ndim < 2:
        raise ShapeError(f"batch_norm: expected at least 2D input, got shape {list(layout.shape)}")
    input = _in_memory_format(input)
    return T.batch_norm_node(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def _in_memory_format(input: Tensor) -> Tensor:
    """The input as it is or, where it lies in neither memory format, row by row."""
    layout = input._layout
    as_it_is = layout.contiguous or suggests_channels_last(layout.shape, layout.strides)
    return input if as_it_is else T.contiguous(input)


def _enough_values(op: str, layout: Layout, count: int) -> None:
    if count == 1 and layout.numel:
        raise NormError(
            "{op}: Expected more than 1 value per channel when training, got input size {size}",
            reason="one value", op=op, operands=(layout,), size=list(layout.shape),
        )  # fmt: skip


@batch_norm.samples
def _(make):
    yield make(4, 3), None, None, None, None, True
    yield make(4, 3, 5), None, None, make(3), make(3), True
    yield make(4, 3, 2, 2), None, None, None, None, True, 0.1, 1e-3
    yield (make(4, 3), None, None), {}, RuntimeError, "must be defined in evaluation mode"
    yield (make(4, 3), make(2), make(3)), {}, RuntimeError, "running_mean should contain 3"
    yield (make(1, 3), None, None, None, None, True), {}, ValueError, "more than 1 value"


# -------------------------------------------------------------------------------------- group_norm
def _grouped(t: _Any, groups: int) -> _Any:
    """(N, C, ..) as (N, groups, channels of a group, rest)."""
    shape = t._layout.shape
    n, c = shape[:2]
    return T.reshape(t, (n, groups, c // groups, math.prod(shape[2:])))


def _check_groups(shape: tuple[int, ...], n: int, c: int, rest: int, groups: int) -> None:
    if groups <= 0:
        raise ShapeError(
            f"native_group_norm: Expected num groups to be greater than 0, got {groups}"
        )
    if len(shape) < 2 or shape[:2] != (n, c) or math.prod(shape[2:]) != rest or c % groups:
        raise ShapeError(
            f"native_group_norm: an input of shape {shape} does not have N = {n} samples of C = "
            f"{c} channels, in {groups} groups, and HxW = {rest} places"
        )


@custom_vjp(function=False, method=False, node="native_group_norm")
def group_norm_node(
    input: Tensor,
    weight: OptTensor,
    bias: OptTensor,
    N: Int,
    C: Int,
    HxW: Int,
    group: Int,
    eps: Float,
):
    """group_norm as (result, mean, 1 / deviation), these two as float32 for halves."""
    _check_groups(tuple(input._layout.shape), N, C, HxW, group)
    x = _widened(_grouped(input, group))
    var, mean = T.var_mean(x, (2, 3), correction=0, keepdim=True)
    if not input._layout.numel:
        mean = T.zeros_like(mean)  # as PyTorch; the deviation is nan
    rstd = T.rsqrt(var + eps)
    shape = (1, group, C // group, 1)
    params = [None if p is None else T.reshape(_widened(p), shape) for p in (weight, bias)]
    y = _applied(x, mean, rstd, *params)
    result = T.reshape(y, tuple(input._layout.shape))
    result = (
        result
        if result._layout.dtype is input._layout.dtype
        else T.to_dtype(result, input._layout.dtype)
    )
    kept = [T.reshape(t, (N, group)) for t in (mean, rstd)]
    return result, *kept


@group_norm_node.batches
def _(batch, run, input, weight, bias, N, C, HxW, group, eps):
    x = T.flatten(batch.whole(input), 0, 1)
    if not batch.has(weight) and not batch.has(bias):
        found = run(x, weight, bias, batch.size * N, C, HxW, group, eps)
        return [T.unflatten(t, 0, (batch.size, N)) for t in found]
    found = run(x, None, None, batch.size * N, C, HxW, group, eps)
    result, *saved = [batch.example(T.unflatten(t, 0, (batch.size, N))) for t in found]
    shape = (C, *[1] * (input._layout.ndim - 2))
    result = result if weight is None else T.mul(result, T.reshape(weight, shape))
    return result if bias is None else T.add(result, T.reshape(bias, shape)), *saved


@group_norm_node.derivative
def _(g, input, weight, bias_layout, group, eps, out1, out2, create):
    layout = input._layout
    g, g_mean, g_rstd = g
    g = T.zeros_like(input) if g is None else g
    x, dy = _widened(_grouped(input, group)), _widened(_grouped(g, group))
    n, _, per, rest = x._layout.shape
    count = max(per * rest, 1)
    if create:
        xhat, rstd = normalised(x, (2, 3), eps)
        sum_gx = T.sum(dy * xhat, 3, True)
        sum_g = T.sum(dy, 3, True)
    else:
        mean, rstd = [T.view(t, (n, group, 1, 1)) for t in (out1, out2)]
        sum_g, sum_gx = [
            T.view(s, (n, group, per, 1)) for s in T.norm_sums(dy, x, mean, rstd, (3,))
        ]
    w = None if weight is None else T.reshape(_widened(weight), (1, group, per, 1))
    shares = [T.sum(s if w is None else s * w, (2,), True) * (1 / count) for s in (sum_g, sum_gx)]
    scaled = dy if w is None else dy * w
    if create:
        dx = rstd * (scaled - shares[0] - xhat * shares[1])
    else:
        dx = T.norm_gradient(scaled, x, mean, rstd, rstd, *shares)
    if g_mean is not None:
        dx = dx + T.view(g_mean, (n, group, 1, 1)) / count
    if g_rstd is not None:
        xhat = xhat if create else (x - mean) * rstd
        dx = dx - T.view(g_rstd, (n, group, 1, 1)) * rstd * rstd * xhat / count
    dx = T.reshape(dx, tuple(layout.shape))
    channels = (layout.shape[1],)
    dw = None if weight is None else T.reshape(T.sum(sum_gx, 0), channels)
    db = None if bias_layout is None else T.reshape(T.sum(sum_g, 0), channels)
    return dx, dw, db


@composite(method=False, out=False, page=False)
def native_group_norm(
    input: Tensor,
    weight: OptTensor,
    bias: OptTensor,
    N: Int,
    C: Int,
    HxW: Int,
    group: Int,
    eps: Float,
):
    """group_norm as (result, mean, 1 / deviation).

    >>> torch.native_group_norm(torch.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.0)[0]
    tensor([[-1.,  1.]])
    """
    result, *saved = T.group_norm_node(input, weight, bias, N, C, HxW, group, eps)
    dtype = statistics_dtype(input, (weight, bias))
    return result, *[t if t._layout.dtype is dtype else T.to_dtype(t, dtype) for t in saved]


@composite(method=False, out=False, aliases=(F + "group_norm",))
def group_norm(
    input: Tensor,
    num_groups: Int,
    weight: OptTensor = None,
    bias: OptTensor = None,
    eps: Float = 1e-5,
    cudnn_enabled: Bool = True,
):
    """Normalises groups of channels of each sample; then ``weight`` and ``bias`` a channel.

    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 2., 2.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    layout = input._layout
    if layout.ndim < 2:
        raise ShapeError(
            f"group_norm: Expected at least 2 dimensions for input tensor but received "
            f"{layout.ndim}"
        )
    if num_groups <= 0 or layout.shape[1] % num_groups:
        raise ShapeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {list(layout.shape)} and num_groups={num_groups}"
        )
    floats_only("group_norm", layout)
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and tuple(each._layout.shape) != (layout.shape[1],):
            raise ShapeError(
                f"group_norm: Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {list(each._layout.shape)} and input "
                f"of shape {list(layout.shape)}"
            )
    n, c = layout.shape[:2]
    rest = math.prod(layout.shape[2:])
    input = _in_memory_format(input)
    return T.group_norm_node(input, weight, bias, n, c, rest, num_groups, eps)[0]


@group_norm.samples
def _(make):
    yield make(2, 6), 3
    yield make(2, 4, 3, 2), 2, make(4), make(4)
    yield (make(2, 6), 4), {}, RuntimeError, "divisible by num_groups"
    yield (make(2, 6), 3, make(5)), {}, RuntimeError, "weight of shape [5]"


# --------------------------------------------------------------------------- made of the others
@composite(method=False, namespace="nn.functional", out=False)
def instance_norm(
    input: Tensor,
    running_mean: OptTensor = None,
    running_var: OptTensor = None,
    weight: OptTensor = None,
    bias: OptTensor = None,
    use_input_stats: Bool = True,
    momentum: Float = 0.1,
    eps: Float = 1e-5,
):
    """Normalises each channel of each sample: batch_norm of a batch of one.

    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    shape = tuple(input._layout.shape)
    if len(shape) < 2:
        raise ShapeError(f"instance_norm: expected at least 2D input, got shape {list(shape)}")
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise NormError(
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{list(shape)}"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise ShapeError(
            "instance_norm: Expected running_mean and running_var to be defined when "
            "use_input_stats is false"
        )
    n, c = shape[:2]
    given = (running_mean, running_var, weight, bias)
    spread = [None if t is None else T.repeat(t, (n,)) for t in given]
    x = T.reshape(T.contiguous(input), (1, n * c, *shape[2:]))
    y = T.batch_norm(x, *spread, use_input_stats, momentum, eps)
    for kept, wide in zip(given[:2], spread[:2], strict=True):
        if kept is not None and use_input_stats:
            T.copy_(kept, T.mean(T.view(wide, (n, c)), 0))
    return T.view(y, shape)


@instance_norm.samples
def _(make):
    yield (make(2, 3, 4),)
    yield make(2, 3, 2, 2), None, None, make(3), make(3)


@composite(method=False, namespace="nn.functional", out=False)
def local_response_norm(
    input: Tensor, size: Int, alpha: Float = 1e-4, beta: Float = 0.75, k: Float = 1.0
):
    """Divides by a power of the mean square over ``size`` neighbouring channels.

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, 1.0, 1.0, 1.0)
    tensor([[[0.5000]]])
    """
    layout = input._layout
    if layout.ndim < 3:
        raise NormError(
            f"local_response_norm: Expected 3D or higher dimensionality input (got {layout.ndim} "
            "dimensions)"
        )
    if size < 1:
        raise ArgumentError(f"local_response_norm: size must be at least 1, got {size}")
    if not layout.numel:
        return input
    n, c = layout.shape[:2]
    squares = T.reshape(input * input, (n, 1, c, math.prod(layout.shape[2:])))
    zeros = [
        T.zeros((n, 1, m, squares._layout.shape[3]), dtype=layout.dtype, device=layout.device)
        for m in (size // 2, (size - 1) // 2)
    ]
    padded = T.cat([zeros[0], squares, zeros[1]], 2)
    mean = T.reshape(T.avg_pool2d(padded, (size, 1), 1), tuple(layout.shape))
    return input / T.pow(mean * alpha + k, beta)


@local_response_norm.samples
def _(make):
    yield make(2, 5, 4), 3
    yield make(2, 5, 2, 2), 2, 0.5, 0.5, 2.0
