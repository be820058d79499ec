"""layer_norm and rms_norm: row programs. A row is read from memory once, forward and backward.

Where a second derivative is asked for, the first one is written in plain ops, which derive further.
"""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.errors import MissingFeature, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.reduction import Folding, reduction
from antorcha.ops.kinds.rows import Row, rows
from antorcha.ops.kinds.types import Bool, Dims, Float, Ints, OptTensor, Shape, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

F = "nn.functional."


def _wide(dtype: dtypes.dtype) -> dtypes.dtype:
    """The dtype in which statistics are kept."""
    return dtypes.float32 if dtype.itemsize == 2 else dtype


def _dense(t: _Any) -> _Any:
    return t if t is None or t._layout.contiguous else T.contiguous(t)


def floats_only(op: str, layout: Layout) -> None:
    if layout.dtype.kind != "f":
        raise MissingFeature.of_dtype(op, layout.dtype, "cast the input to float")


# ------------------------------------------------------------------------------------- layer_norm
def _check_shape(op: str, layout: Layout, shape: tuple[int, ...], **params: _Any) -> None:
    if not shape:
        raise ShapeError(
            f"{op}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )
    if tuple(layout.shape[layout.ndim - len(shape) :]) != tuple(shape) or layout.ndim < len(shape):
        wanted = ", ".join(["*", *[str(s) for s in shape]])
        raise ShapeError(
            "{op}: Given normalized_shape={normalized}, expected input with shape [{wanted}], "
            "but got input of size{got}",
            reason="last sizes", op=op, operands=(layout,), normalized=list(shape), wanted=wanted,
            got=list(layout.shape),
        )  # fmt: skip
    for name, each in params.items():
        if each is not None and tuple(each._layout.shape) != tuple(shape):
            raise ShapeError(
                f"{op}: Expected {name} to be of same shape as normalized_shape, but got {name} of "
                f"shape {list(each._layout.shape)} and normalized_shape = {list(shape)}"
            )


def _rows_of(layout: Layout, length: int) -> Layout:
    """A contiguous tensor's layout as a matrix of rows."""
    return L.contiguous((layout.numel // max(length, 1), length), layout.dtype, layout.device)


def _row(layout: Layout) -> Layout:
    return L.contiguous((1, layout.numel), layout.dtype, layout.device)


def _column(layout: Layout) -> Layout:
    return L.contiguous((layout.numel, 1), layout.dtype, layout.device)


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


def _gradient_row(fn: _Any, g: _Any, input: _Any, shape: _Any, saved: _Any, weight: _Any) -> Row:
    """A Row of the gradient of such an input, from the values ``saved`` for each row."""
    length = math.prod(shape)
    flat = _rows_of(input, length)
    operands = [_rows_of(g, length), flat, *[_column(s) for s in saved]]
    operands += [] if weight is None else [_row(weight)]
    acc = _wide(input.dtype)
    full = tuple(flat.shape)
    ins = [(each, acc) for each in operands]
    return Row(fn, 1, full, ins, [(full, input.dtype)], [(tuple(input.shape), input.dtype)])


@rows(function=False, method=False, out=False, node="native_layer_norm")
def layer_norm_rows(
    input: Tensor, normalized_shape: Ints, weight: OptTensor, bias: OptTensor, eps: Float
):
    """layer_norm of a contiguous input: (result, mean, 1 / deviation)."""

    def row(x: E.Expr, *params: E.Expr) -> tuple[E.Expr, ...]:
        given = list(params)
        mean = E.mean(x)
        centred = x - mean
        rstd = E.rsqrt(E.mean(centred * centred) + eps)
        y = centred * rstd
        y = y if weight is None else y * given.pop(0)
        y = y if bias is None else y + given.pop(0)
        return y, mean, rstd

    return _norm_row(row, input, normalized_shape, (weight, bias), 2)


@layer_norm_rows.derivative
def _(g, input, normalized_shape, weight, bias_layout, eps, out1, out2, needs, create):
    if g[0] is None:  # (the statistics are constants)
        return None, None, None
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


@layer_norm_rows.batches
def _(batch, run, input, normalized_shape, weight, bias, eps):
    x = T.contiguous(batch.whole(input))
    if not batch.has(weight) and not batch.has(bias):
        return run(x, normalized_shape, weight, bias, eps)
    result, *saved = run(x, normalized_shape, None, None, eps)
    result = batch.example(result)
    result = result if weight is None else T.mul(result, weight)
    return result if bias is None else T.add(result, bias), *saved


def normalised(x: _Any, dims: tuple[int, ...], eps: float) -> tuple[_Any, _Any]:
    """The input normalised over dims, and 1 / deviation, in plain ops."""
    centred = x - T.mean(x, dims, True)
    rstd = T.rsqrt(T.mean(centred * centred, dims, True) + eps)
    return centred * rstd, rstd


def input_gradient(g: _Any, xhat: _Any, rstd: _Any, dims: tuple[int, ...]) -> _Any:
    """The gradient of what was normalised over dims to ``xhat``, from that of ``xhat``."""
    shared = T.mean(g, dims, True) + xhat * T.mean(g * xhat, dims, True)
    return rstd * (g - shared)


def _layer_norm_gradients(
    g: Tensor, x: Tensor, weight: OptTensor, bias: OptTensor, eps: float, dims: tuple[int, ...]
) -> tuple[Tensor, OptTensor, OptTensor]:
    """The gradients in plain ops."""
    inner = tuple(range(len(dims), x._layout.ndim))
    xhat, rstd = normalised(x, inner, eps)
    scaled = g if weight is None else g * weight
    dw = db = None
    if weight is not None:
        dw = T.sum(g * xhat, dims) if dims else g * xhat
    if bias is not None:
        db = T.sum(g, dims) if dims else g
    return input_gradient(scaled, xhat, rstd, inner), dw, db


@rows(function=False, method=False, out=False)
def layer_norm_backward(
    g: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: OptTensor, shape: Shape
):
    """The gradient of layer_norm's input, a row at a time."""

    def row(g: E.Expr, x: E.Expr, mean: E.Expr, rstd: E.Expr, *weights: E.Expr) -> E.Expr:
        xhat = (x - mean) * rstd
        scaled = g * weights[0] if weights else g
        return rstd * (scaled - E.mean(scaled) - xhat * E.mean(scaled * xhat))

    return _gradient_row(row, g, input, shape, (mean, rstd), weight)


@reduction("same", function=False, method=False, out=False)
def norm_sums(g: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, dim: Dims = None):
    """The sums of ``g`` and of ``g`` times the normalised input: bias and weight's gradients."""
    acc = _wide(input.dtype)
    return Folding(
        start=(0, 0),
        lift=lambda g, x, mean, rstd, i: (
            E.cast(g, acc), E.cast(g, acc) * ((E.cast(x, acc) - mean) * rstd)
        ),
        merge=lambda a, b, c, d: (a + c, b + d), state=(acc, acc), outs=(acc, acc), acc=acc,
    )  # fmt: skip


@composite(method=False, out=False, page=False)
def native_layer_norm(
    input: Tensor, normalized_shape: Ints, weight: OptTensor, bias: OptTensor, eps: Float
):
    """layer_norm as (result, mean, 1 / deviation); only the result has a gradient.

    >>> torch.native_layer_norm(torch.tensor([1., 3.]), (2,), None, None, 0.0)[0]
    tensor([-1.,  1.])
    """
    floats_only("native_layer_norm", input._layout)
    _check_shape("native_layer_norm", input._layout, normalized_shape, weight=weight, bias=bias)
    given = [_dense(p) for p in (weight, bias)]
    result, *saved = T.layer_norm_rows(_dense(input), normalized_shape, *given, eps)
    dtype = statistics_dtype(input, given)
    return result, *[shown_statistic(each, dtype) for each in saved]


def statistics_dtype(input: _Any, params: _Any) -> _Any:
    """Of a mean that a ``native_.._norm`` gives: float32 where a half's parameters are float32."""
    dtype = input._layout.dtype
    wider = [p._layout.dtype for p in params if p is not None and p._layout.dtype is not dtype]
    return wider[0] if wider else dtype


def shown_statistic(value: _Any, dtype: _Any) -> _Any:
    """A mean or deviation as the user sees it, without a gradient."""
    value = value.detach()
    return value if value._layout.dtype is dtype else T.to_dtype(value, dtype)


@composite(method=False, out=False, aliases=(F + "layer_norm",))
def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: OptTensor = None,
    bias: OptTensor = None,
    eps: Float = 1e-5,
    cudnn_enable: Bool = True,
):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims, ``normalized_shape``.

    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.], [2., 2.]]), (2,))
    tensor([[-1.0000,  1.0000],
            [ 0.0000,  0.0000]])
    """
    layout = input._layout
    floats_only("layer_norm", layout)
    _check_shape("layer_norm", layout, normalized_shape, weight=weight, bias=bias)
    given = [_dense(p) for p in (weight, bias)]
    return T.layer_norm_rows(_dense(input), normalized_shape, *given, eps)[0]


@layer_norm.samples
def _(make):
    yield make(3, 5), (5,)
    yield make(2, 3, 4), (3, 4), make(3, 4), make(3, 4)
    yield make(2, 3, 4), (4,), make(4), None, 1e-3
    yield (make(4, 6), (4,)), {}, RuntimeError, "expected input with shape [*, 4]"
    yield (make(4, 6), (6,), make(5)), {}, RuntimeError, "weight of shape [5]"
    yield (make(4, 6), ()), {}, RuntimeError, "at least 1-dimensional"


# --------------------------------------------------------------------------------------- rms_norm
@rows(function=False, method=False, out=False, node="mul")
def rms_norm_rows(input: Tensor, normalized_shape: Ints, weight: OptTensor, eps: Float):
    """rms_norm of a contiguous input: (result, 1 / root mean square)."""

    def row(x: E.Expr, *weights: E.Expr) -> tuple[E.Expr, ...]:
        r = E.rsqrt(E.mean(x * x) + eps)
        return (x * r * weights[0] if weights else x * r), r

    return _norm_row(row, input, normalized_shape, (weight,), 1)


@rms_norm_rows.derivative
def _(g, input, normalized_shape, weight, eps, out1, needs, create):
    if g[0] is None:
        return None, None
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


@rms_norm_rows.batches
def _(batch, run, input, normalized_shape, weight, eps):
    x = T.contiguous(batch.whole(input))
    if not batch.has(weight):
        return run(x, normalized_shape, weight, eps)
    result, *saved = run(x, normalized_shape, None, eps)
    return T.mul(batch.example(result), weight), *saved


@rows(function=False, method=False, out=False)
def rms_norm_backward(g: Tensor, input: Tensor, scale: Tensor, weight: OptTensor, shape: Shape):
    """The gradient of rms_norm's input, a row at a time."""

    def row(g: E.Expr, x: E.Expr, r: E.Expr, *weights: E.Expr) -> E.Expr:
        scaled = g * weights[0] if weights else g
        return r * scaled - x * (r * r * r) * E.mean(scaled * x)

    return _gradient_row(row, g, input, shape, (scale,), weight)


@composite(method=False, out=False, aliases=(F + "rms_norm",))
def rms_norm(input: Tensor, normalized_shape: Ints, weight: OptTensor = None, eps: Float = None):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last dims; eps defaults to the dtype's.

    >>> torch.nn.functional.rms_norm(torch.tensor([3., 4.]), (2,))
    tensor([0.8485, 1.1314])
    """
    layout = input._layout
    if layout.dtype.kind != "c":
        floats_only("rms_norm", layout)
    _check_shape("rms_norm", layout, normalized_shape, weight=weight)
    eps = dtypes.finfo(_wide(layout.dtype)).eps if eps is None else eps
    if layout.dtype.kind == "c":
        inner = tuple(range(layout.ndim - len(normalized_shape), layout.ndim))
        input = T.contiguous(input)
        result = input * T.rsqrt(T.mean(T.square(input), inner, True) + eps)
        return result if weight is None else result * weight
    return T.rms_norm_rows(_dense(input), normalized_shape, _dense(weight), eps)[0]


@rms_norm.samples
def _(make):
    yield make(3, 5), (5,)
    yield make(2, 3, 4), (3, 4), make(3, 4), 1e-3
