"""Normalisation: layer_norm, rms_norm, group_norm, batch_norm, instance_norm, local_response_norm.

layer_norm and rms_norm are row programs: a row is read once from memory. The others find a mean
and a deviation for each channel (or group), then apply them in one pass. Gradients go the same
ways: sums of the gradient and of its product with the normalised input, then one pass.

Where a second derivative is asked for, the first one is written in plain ops, which derive further.
"""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha import dtypes
from antorcha.errors import ArgumentError, DtypeError, MissingFeature, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.ops.opaque import opaque
from antorcha.ops.pointwise import pointwise
from antorcha.ops.record import T, composite
from antorcha.ops.reduction import Fold, reduction
from antorcha.ops.rows import Row, rows
from antorcha.ops.types import (
    Bool,
    Dims,
    Float,
    Int,
    Ints,
    Number,
    OptTensor,
    Tensor,
)
from antorcha.runtime import layout as L

F = "nn.functional."


class NormError(ShapeError, ValueRangeError):
    """Too few values to normalise; PyTorch raises ValueError."""


def _wide(dtype: _Any) -> _Any:
    """The dtype in which statistics are kept."""
    return dtypes.float32 if dtype.itemsize == 2 else dtype


def _dense(t: _Any) -> _Any:
    return t if t is None or t._layout.contiguous else T.contiguous(t)


def _floats_only(op: str, lay: _Any) -> None:
    if lay.dtype.kind != "f":
        raise MissingFeature(f"{op}: not implemented for {lay.dtype}; cast the input to float")


# ------------------------------------------------------------------------------------- layer_norm
def _check_shape(op: str, lay: _Any, shape: tuple[int, ...], **params: _Any) -> None:
    if not shape:
        raise ShapeError(
            f"{op}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )
    if tuple(lay.shape[lay.ndim - len(shape) :]) != tuple(shape) or lay.ndim < len(shape):
        wanted = ", ".join(["*", *[str(s) for s in shape]])
        raise ShapeError(
            f"{op}: Given normalized_shape={list(shape)}, expected input with shape [{wanted}], "
            f"but got input of size{list(lay.shape)}"
        )
    for name, each in params.items():
        if each is not None and tuple(each._layout.shape) != tuple(shape):
            raise ShapeError(
                f"{op}: Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {list(each._layout.shape)} and normalized_shape = {list(shape)}"
            )


def _rows_of(lay: _Any, length: int) -> _Any:
    """A contiguous tensor's layout as a matrix of rows."""
    return L.contiguous((lay.numel // max(length, 1), length), lay.dtype, lay.device)


def _row(lay: _Any) -> _Any:
    return L.contiguous((1, lay.numel), lay.dtype, lay.device)


def _column(lay: _Any) -> _Any:
    return L.contiguous((lay.numel, 1), lay.dtype, lay.device)


def _norm_row(fn: _Any, input: _Any, shape: _Any, params: _Any, saved: int) -> Row:
    """A Row of a normalisation over the last dims ``shape``, with ``saved`` values kept a row."""
    length = math.prod(shape)
    flat = _rows_of(input, length)
    acc = _wide(input.dtype)
    lead = (*input.shape[: input.ndim - len(shape)], *[1] * len(shape))
    ins = [(flat, acc), *[(_row(p), acc) for p in params if p is not None]]
    shown = [(tuple(input.shape), input.dtype), *[(lead, acc)] * saved]
    outs = [(tuple(flat.shape), input.dtype), *[((flat.shape[0], 1), acc)] * saved]
    return Row(fn, 1, tuple(flat.shape), ins, outs, shown)


@rows(method=False, out=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: OptTensor, bias: OptTensor, eps: Float
):
    """layer_norm of a contiguous input: (result, mean, 1 / deviation).

    >>> torch.native_layer_norm(torch.tensor([1., 3.]), (2,), None, None, 0.0)[0]
    tensor([-1.,  1.])
    """

    def row(x, *params):
        given = list(params)
        mean = E.mean(x)
        centred = x - mean
        rstd = E.rsqrt(E.mean(centred * centred) + eps)
        y = centred * rstd
        y = y if weight is None else y * given.pop(0)
        y = y if bias is None else y + given.pop(0)
        return y, mean, rstd

    return _norm_row(row, input, normalized_shape, (weight, bias), 2)


@native_layer_norm.derivative
def _(g, input, normalized_shape, weight, bias_layout, eps, out1, out2, needs, create):
    g = T.contiguous(g[0])
    lead = input._layout.ndim - len(normalized_shape)
    dims = tuple(range(lead))
    if create:
        return _layer_norm_gradients(g, input, weight, bias_layout, eps, dims)
    dx = dw = db = None
    if needs[0]:
        dx = T.layer_norm_backward(g, input, out1, out2, weight, normalized_shape)
    if len(needs) > 1 and (needs[1] or needs[2]):
        db, dw = T.norm_sums(g, input, out1, out2, dims) if lead else (g, (input - out1) * out2 * g)
    return dx, dw if weight is not None else None, db if bias_layout is not None else None


def _layer_norm_gradients(g, x, weight, bias, eps, dims):
    """The gradients in plain ops."""
    inner = tuple(range(len(dims), x._layout.ndim))
    centred = x - T.mean(x, inner, True)
    rstd = T.rsqrt(T.mean(centred * centred, inner, True) + eps)
    xhat = centred * rstd
    scaled = g if weight is None else g * weight
    shared = T.mean(scaled, inner, True) + xhat * T.mean(scaled * xhat, inner, True)
    dw = db = None
    if weight is not None:
        dw = T.sum(g * xhat, dims) if dims else g * xhat
    if bias is not None:
        db = T.sum(g, dims) if dims else g
    return rstd * (scaled - shared), dw, db


@rows(function=False, method=False, out=False)
def layer_norm_backward(
    g: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: OptTensor, shape: Ints
):
    """The gradient of layer_norm's input, a row at a time."""

    def row(g, x, mean, rstd, *weights):
        xhat = (x - mean) * rstd
        scaled = g * weights[0] if weights else g
        return rstd * (scaled - E.mean(scaled) - xhat * E.mean(scaled * xhat))

    length = math.prod(shape)
    acc = _wide(input.dtype)
    flat = _rows_of(input, length)
    ins = [(_rows_of(g, length), acc), (flat, acc), (_column(mean), acc), (_column(rstd), acc)]
    ins += [] if weight is None else [(_row(weight), acc)]
    full = tuple(flat.shape)
    return Row(row, 1, full, ins, [(full, input.dtype)], [(tuple(input.shape), input.dtype)])


@reduction("same", function=False, method=False, out=False)
def norm_sums(g: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dim: Dims = None):
    """The sums of ``g`` and of ``g`` times the normalised input: bias and weight's gradients."""
    acc = _wide(input.dtype)
    return Fold(
        start=(0, 0),
        lift=lambda g, x, mean, rstd, i: (
            E.cast(g, acc), E.cast(g, acc) * ((E.cast(x, acc) - mean) * rstd)
        ),
        merge=lambda a, b, c, d: (a + c, b + d), state=(acc, acc), outs=(acc, acc), acc=acc,
    )  # fmt: skip


@composite(method=False, out=False, aliases=(F + "layer_norm",))
def layer_norm(
    input: Tensor, normalized_shape: Ints, weight: OptTensor = None, bias: OptTensor = None,
    eps: Float = 1e-5, cudnn_enable: Bool = True,
):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, ``normalized_shape``.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html.

    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.], [2., 2.]]), (2,))
    tensor([[-1.0000,  1.0000],
            [ 0.0000,  0.0000]])
    """
    lay = input._layout
    _floats_only("layer_norm", lay)
    _check_shape("layer_norm", lay, normalized_shape, weight=weight, bias=bias)
    given = [_dense(p) for p in (weight, bias)]
    return T.native_layer_norm(_dense(input), normalized_shape, *given, eps)[0]


@layer_norm.samples
def _(make):
    yield make(3, 5), (5,)
    yield make(2, 3, 4), (3, 4), make(3, 4), make(3, 4)
    yield make(2, 3, 4), (4,), make(4), None, 1e-3


@layer_norm.errors
def _(make):
    yield (make(4, 6), (4,)), {}, RuntimeError, "expected input with shape [*, 4]"
    yield (make(4, 6), (6,), make(5)), {}, RuntimeError, "weight of shape [5]"
    yield (make(4, 6), ()), {}, RuntimeError, "at least 1-dimensional"


# --------------------------------------------------------------------------------------- rms_norm
@rows(function=False, method=False, out=False, node="mul")
def rms_norm_rows(input: Tensor, normalized_shape: Ints, weight: OptTensor, eps: Float):
    """rms_norm of a contiguous input: (result, 1 / root mean square)."""

    def row(x, *weights):
        r = E.rsqrt(E.mean(x * x) + eps)
        return (x * r * weights[0] if weights else x * r), r

    return _norm_row(row, input, normalized_shape, (weight,), 1)


@rms_norm_rows.derivative
def _(g, input, normalized_shape, weight, eps, out1, needs, create):
    g = T.contiguous(g[0])
    lead = input._layout.ndim - len(normalized_shape)
    inner = tuple(range(lead, input._layout.ndim))
    dx = dw = None
    if create:
        r = T.rsqrt(T.mean(input * input, inner, True) + eps)
        scaled = g if weight is None else g * weight
        dx = r * scaled - input * (r * r * r) * T.mean(scaled * input, inner, True)
        out1 = r
    elif needs[0]:
        dx = T.rms_norm_backward(g, input, out1, weight, normalized_shape)
    if weight is not None and needs[1]:
        dw = g * (input * out1)
        dw = T.sum(dw, tuple(range(lead))) if lead else dw
    return dx, dw


@rows(function=False, method=False, out=False)
def rms_norm_backward(g: Tensor, input: Tensor, scale: Tensor, weight: OptTensor, shape: Ints):
    """The gradient of rms_norm's input, a row at a time."""

    def row(g, x, r, *weights):
        scaled = g * weights[0] if weights else g
        return r * scaled - x * (r * r * r) * E.mean(scaled * x)

    length = math.prod(shape)
    acc = _wide(input.dtype)
    flat = _rows_of(input, length)
    ins = [(_rows_of(g, length), acc), (flat, acc), (_column(scale), acc)]
    ins += [] if weight is None else [(_row(weight), acc)]
    full = tuple(flat.shape)
    return Row(row, 1, full, ins, [(full, input.dtype)], [(tuple(input.shape), input.dtype)])


@composite(method=False, out=False, aliases=(F + "rms_norm",))
def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: OptTensor = None, eps: Float = None
):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dims; eps defaults to the dtype's.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html.

    >>> torch.nn.functional.rms_norm(torch.tensor([3., 4.]), (2,))
    tensor([0.8485, 1.1314])
    """
    lay = input._layout
    _floats_only("rms_norm", lay)
    _check_shape("rms_norm", lay, normalized_shape, weight=weight)
    eps = dtypes.finfo(_wide(lay.dtype)).eps if eps is None else eps
    return T.rms_norm_rows(_dense(input), normalized_shape, _dense(weight), eps)[0]


@rms_norm.samples
def _(make):
    yield make(3, 5), (5,)
    yield make(2, 3, 4), (3, 4), make(3, 4), 1e-3


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
    g: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, scale: Tensor, sum_g: Tensor,
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


def _applied(x, mean, rstd, weight, bias):
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


@opaque(method=False)
def native_batch_norm(
    input: Tensor, weight: OptTensor, bias: OptTensor, running_mean: OptTensor,
    running_var: OptTensor, training: Bool, momentum: Number, eps: Float,
):
    """batch_norm as (result, mean, 1 / deviation); when training it updates the running statistics.

    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0]
    tensor([[-1.],
            [ 1.]])
    """
    lay = input._layout
    nd = lay.ndim
    wide = _widened(input)
    if training:
        var, mean = T.var_mean(wide, (0, *range(2, nd)), correction=0)
        count = lay.numel // max(lay.shape[1], 1)
        for kept, value, factor in (
            (running_mean, mean, 1.0), (running_var, var, count / max(count - 1, 1)),
        ):  # fmt: skip
            if kept is not None:
                T.running_average_(kept, value, float(momentum), float(factor))
    else:
        mean, var = _widened(running_mean), _widened(running_var)
    rstd = T.rsqrt(var + eps)
    params = [_along(_widened(t), nd) for t in (mean, rstd, weight, bias)]
    return _applied(input, *params), mean, rstd


@native_batch_norm.derivative
def _(g, input, weight, bias_layout, running_mean, running_var, training, eps, out1, out2,
      needs, create):  # fmt: skip
    g = g[0]
    nd = input._layout.ndim
    dims = (0, *range(2, nd))
    x, dy = _widened(input), _widened(g)
    scale = _along(_widened(weight), nd)
    if create:
        if training:
            mean = T.mean(x, dims, True)
            rstd = T.rsqrt(T.mean((x - mean) * (x - mean), dims, True) + eps)
        else:
            mean = _along(running_mean, nd)
            rstd = T.rsqrt(_along(running_var, nd) + eps)
        xhat = (x - mean) * rstd
        scaled = dy if scale is None else dy * scale
        dx = rstd * scaled
        if training:
            shared = T.mean(scaled, dims, True) + xhat * T.mean(scaled * xhat, dims, True)
            dx = rstd * (scaled - shared)
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
        dx, dw if weight is not None else None, db if bias_layout is not None else None, None, None
    )


def _check_channels(op: str, lay: _Any, **given: _Any) -> None:
    channels = lay.shape[1] if lay.ndim > 1 else 0
    for name, each in given.items():
        if each is not None and each._layout.numel != channels:
            raise ShapeError(
                f"{op}: {name} should contain {channels} elements not {each._layout.numel} (input "
                f"has shape {list(lay.shape)})"
            )
        if each is not None and each._layout.dtype is not lay.dtype and not (
            lay.dtype.itemsize == 2 and each._layout.dtype is dtypes.float32
        ):  # fmt: skip
            raise DtypeError(
                f"{op}: mixed dtype (CPU): all inputs must share same datatype, but the input is "
                f"{lay.dtype} and {name} is {each._layout.dtype}"
            )


@composite(method=False, namespace="nn.functional", out=False)
def batch_norm(
    input: Tensor, running_mean: OptTensor, running_var: OptTensor, weight: OptTensor = None,
    bias: OptTensor = None, training: Bool = False, momentum: Float = 0.1, eps: Float = 1e-5,
):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` with one mean and variance a channel (dim 1).

    When ``training`` they are those of the batch, and the running ones move towards them by
    ``momentum`` (the variance without bias); otherwise the running ones are used. See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html.

    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    lay = input._layout
    if training:
        _enough_values("batch_norm", lay, lay.numel // max(lay.shape[1] if lay.ndim > 1 else 1, 1))
        if eps <= 0:
            raise ValueRangeError(
                f"batch_norm: batch_norm eps must be positive during training, but got {eps}"
            )
    elif running_mean is None or running_var is None:
        missing = "running_mean" if running_mean is None else "running_var"
        raise ShapeError(f"batch_norm: {missing} must be defined in evaluation mode")
    _check_channels(
        "batch_norm", lay, running_mean=running_mean, running_var=running_var, weight=weight,
        bias=bias,
    )
    _floats_only("batch_norm", lay)
    if lay.ndim < 2:
        raise ShapeError(f"batch_norm: expected at least 2D input, got shape {list(lay.shape)}")
    if not lay.numel:
        return T.clone(input)
    return T.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )[0]


def _enough_values(op: str, lay: _Any, count: int) -> None:
    if count == 1 and lay.numel:
        raise NormError(
            f"{op}: Expected more than 1 value per channel when training, got input size "
            f"{list(lay.shape)}"
        )


@batch_norm.samples
def _(make):
    yield make(4, 3), None, None, None, None, True
    yield make(4, 3, 5), None, None, make(3), make(3), True
    yield make(4, 3, 2, 2), make(3), make(3, low=0.5), make(3), make(3)


@batch_norm.errors
def _(make):
    yield (make(4, 3), None, None), {}, RuntimeError, "must be defined in evaluation mode"
    yield (make(4, 3), make(2), make(3)), {}, RuntimeError, "running_mean should contain 3"
    yield (make(1, 3), None, None, None, None, True), {}, ValueError, "more than 1 value"


# -------------------------------------------------------------------------------------- group_norm
def _grouped(t: _Any, groups: int) -> _Any:
    """(N, C, ..) as (N, groups, channels of a group, rest)."""
    shape = t._layout.shape
    n, c = shape[:2]
    return T.reshape(t, (n, groups, c // groups, math.prod(shape[2:])))


@opaque(method=False)
def native_group_norm(
    input: Tensor, weight: OptTensor, bias: OptTensor, N: Int, C: Int, HxW: Int, group: Int,
    eps: Float,
):
    """group_norm as (result, mean, 1 / deviation).

    >>> torch.native_group_norm(torch.tensor([[1., 3.]]), None, None, 1, 2, 1, 1, 0.0)[0]
    tensor([[-1.,  1.]])
    """
    x = _widened(_grouped(input, group))
    var, mean = T.var_mean(x, (2, 3), correction=0, keepdim=True)
    rstd = T.rsqrt(var + eps)
    shape = (1, group, C // max(group, 1), 1)
    params = [None if p is None else T.reshape(_widened(p), shape) for p in (weight, bias)]
    y = _applied(x, mean, rstd, *params)
    made = T.reshape(y, tuple(input._layout.shape))
    made = made if made._layout.dtype is input._layout.dtype else T.to_dtype(
        made, input._layout.dtype
    )
    kept = [T.reshape(t, (N, group)) for t in (mean, rstd)]
    return made, *kept


@native_group_norm.derivative
def _(g, input, weight, bias_layout, group, eps, out1, out2, create):
    lay = input._layout
    x, dy = _widened(_grouped(input, group)), _widened(_grouped(g[0], group))
    n, _, per, rest = x._layout.shape
    count = max(per * rest, 1)
    if create:
        mean = T.mean(x, (2, 3), True)
        rstd = T.rsqrt(T.mean((x - mean) * (x - mean), (2, 3), True) + eps)
    else:
        mean, rstd = [T.view(t, (n, group, 1, 1)) for t in (out1, out2)]
    if create:
        sum_gx = T.sum(dy * ((x - mean) * rstd), 3, True)
        sum_g = T.sum(dy, 3, True)
    else:
        sum_g, sum_gx = [
            T.view(s, (n, group, per, 1)) for s in T.norm_sums(dy, x, mean, rstd, (3,))
        ]
    w = None if weight is None else T.reshape(_widened(weight), (1, group, per, 1))
    shares = [
        T.sum(s if w is None else s * w, (2,), True) * (1 / count) for s in (sum_g, sum_gx)
    ]
    scaled = dy if w is None else dy * w
    if create:
        dx = rstd * (scaled - shares[0] - (x - mean) * rstd * shares[1])
    else:
        dx = T.norm_gradient(scaled, x, mean, rstd, rstd, *shares)
    dx = T.reshape(dx, tuple(lay.shape))
    channels = (lay.shape[1],)
    dw = None if weight is None else T.reshape(T.sum(sum_gx, 0), channels)
    db = None if bias_layout is None else T.reshape(T.sum(sum_g, 0), channels)
    return dx, dw, db


@composite(method=False, out=False, aliases=(F + "group_norm",))
def group_norm(
    input: Tensor, num_groups: Int, weight: OptTensor = None, bias: OptTensor = None,
    eps: Float = 1e-5, cudnn_enabled: Bool = True,
):
    """Normalises groups of channels of each sample; then ``weight`` and ``bias`` a channel.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.group_norm.html.

    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 2., 2.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    lay = input._layout
    if lay.ndim < 2:
        raise ShapeError(
            f"group_norm: Expected at least 2 dimensions for input tensor but received {lay.ndim}"
        )
    if num_groups <= 0 or lay.shape[1] % num_groups:
        raise ShapeError(
            "group_norm: Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {list(lay.shape)} and num_groups={num_groups}"
        )
    _floats_only("group_norm", lay)
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and tuple(each._layout.shape) != (lay.shape[1],):
            raise ShapeError(
                f"group_norm: Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {list(each._layout.shape)} and input "
                f"of shape {list(lay.shape)}"
            )
    n, c = lay.shape[:2]
    rest = math.prod(lay.shape[2:])
    return T.native_group_norm(input, weight, bias, n, c, rest, num_groups, eps)[0]


@group_norm.samples
def _(make):
    yield make(2, 6), 3
    yield make(2, 4, 3, 2), 2, make(4), make(4)


@group_norm.errors
def _(make):
    yield (make(2, 6), 4), {}, RuntimeError, "divisible by num_groups"
    yield (make(2, 6), 3, make(5)), {}, RuntimeError, "weight of shape [5]"


# --------------------------------------------------------------------------- made of the others
@composite(method=False, namespace="nn.functional", out=False)
def instance_norm(
    input: Tensor, running_mean: OptTensor = None, running_var: OptTensor = None,
    weight: OptTensor = None, bias: OptTensor = None, use_input_stats: Bool = True,
    momentum: Float = 0.1, eps: Float = 1e-5,
):
    """Normalises each channel of each sample: batch_norm of a batch of one.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html.

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

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.local_response_norm.html.

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 1, 1), 1, 1.0, 1.0, 1.0)
    tensor([[[0.5000]]])
    """
    lay = input._layout
    if lay.ndim < 3:
        raise NormError(
            f"local_response_norm: Expected 3D or higher dimensionality input (got {lay.ndim} "
            "dimensions)"
        )
    if size < 1:
        raise ArgumentError(f"local_response_norm: size must be at least 1, got {size}")
    if not lay.numel:
        return input
    n, c = lay.shape[:2]
    squares = T.reshape(input * input, (n, 1, c, math.prod(lay.shape[2:])))
    zeros = [
        T.zeros((n, 1, m, squares._layout.shape[3]), dtype=lay.dtype, device=lay.device)
        for m in (size // 2, (size - 1) // 2)
    ]
    padded = T.cat([zeros[0], squares, zeros[1]], 2)
    mean = T.reshape(T.avg_pool2d(padded, (size, 1), 1), tuple(lay.shape))
    return input / T.pow(mean * alpha + k, beta)


@local_response_norm.samples
def _(make):
    yield make(2, 5, 4), 3
    yield make(2, 5, 2, 2), 2, 0.5, 0.5, 2.0
