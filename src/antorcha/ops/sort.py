"""Sorting and selection by rank: sort, topk, kthvalue, median, mode, quantile. One record per op.

NaN counts as the greatest. Results that are elements of the operand send their gradient to the
element at the index. Complex numbers have no order.
"""

from __future__ import annotations

import math

from antorcha.core import dtypes
from antorcha.core.loops import dense_strides
from antorcha.core.shapes import normalize_dim
from antorcha.errors import DtypeError, ShapeError
from antorcha.lang.kernels import Sort
from antorcha.ops.extrema import check_ordered
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.reduction import EmptyReduction
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, Bool, Dim, Int, OptTensor, Str, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


def reduced_shape(input: Layout, d: int, keepdim: bool) -> tuple[int, ...]:
    """The shape after one dim went (or has size 1)."""
    if not input.ndim:
        return ()
    return (*input.shape[:d], *((1,) if keepdim else ()), *input.shape[d + 1 :])


def check_some(op: str, input: Layout, d: int) -> None:
    if input.ndim and input.shape[d] == 0:
        raise EmptyReduction(
            f"{op}(): Expected reduction dim {d} to have non-zero size, but the shape is "
            f"{tuple(input.shape)}"
        )


# -------------------------------------------------------------------------- gradients of selection
@composite(function=False, method=False, out=False)
def put_along(input: Tensor, index: Tensor, dim: Dim, size: Int):
    """Zeros, of ``size`` along ``dim``, with ``input`` added at ``index``: the backward of picking
    elements by index."""
    layout = input._layout
    d = normalize_dim(dim, layout.ndim, op="put_along")
    shape = (*layout.shape[:d], size, *layout.shape[d + 1 :]) if layout.ndim else ()
    zeros = T.full_layout(shape, 0, layout.dtype, layout.device)
    return T.scatter_add_(zeros, d, index, input)


def to_sorted(g: Any, input_layout: Layout, dim: int, out1: Tensor) -> OptTensor:
    """The gradient of sorted values: each goes back to where its value came from."""
    value = g[0] if isinstance(g, tuple) else g
    if value is None:
        return None
    size = input_layout.shape[dim] if input_layout.ndim else 1
    return T.put_along(value, out1, dim, size)


def to_picked(g: Any, input_layout: Layout, dim: int, keepdim: bool, out1: Tensor) -> OptTensor:
    """The gradient of one value picked along a dim."""
    value = g[0] if isinstance(g, tuple) else g
    if value is None:
        return None
    if not input_layout.ndim:
        return value
    if not keepdim:
        d = normalize_dim(dim, input_layout.ndim)
        value, out1 = T.unsqueeze(value, d), T.unsqueeze(out1, d)
    return T.put_along(value, out1, dim, input_layout.shape[dim])


# ------------------------------------------------------------------------------------------- sort
@kernel(returns=return_types.sort)
def sort(input: Tensor, dim: Dim = -1, descending: Bool = False, *, stable: Bool = False):
    """The elements along ``dim`` in order, and where each was, as (values, indices).

    The sort is always stable: equal elements keep their order. NaN is the greatest.

    >>> torch.sort(torch.tensor([3., 1., 2.]))
    torch.return_types.sort(
    values=tensor([1., 2., 3.]),
    indices=tensor([1, 2, 0]))
    """
    check_ordered("sort", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="sort")
    strides = tuple(dense_strides(input.shape, input.strides))
    return Planned(Sort("sort", "sort", d, descending), [
        L.layout(input.shape, strides, dtype, input.device)
        for dtype in (input.dtype, dtypes.int64)
    ])  # fmt: skip


sort.derivative(to_sorted)


@sort.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0, True
    yield (make(5),), {"stable": True}
    yield make(2, 70, 3), 1
    yield make(600), 0, True
    yield (make(3, 4), 2), {}, IndexError, "out of range"


@composite(out=False)
def argsort(input: Tensor, dim: Dim = -1, descending: Bool = False, stable: Bool = False):
    """The indices that sort the elements along ``dim``.

    >>> torch.argsort(torch.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return T.sort(input, dim, descending, stable=stable)[1]


@composite(samples=of_shapes((3, 4)))
def msort(input: Tensor):
    """The elements in order along the first dim.

    >>> torch.msort(torch.tensor([[2, 1], [1, 3]]))
    tensor([[1, 1],
            [2, 3]])
    """
    return T.sort(input, 0)[0]


@kernel(returns=return_types.topk)
def topk(input: Tensor, k: Int, dim: Dim = -1, largest: Bool = True, sorted: Bool = True):
    """The ``k`` greatest (or least) elements along ``dim``, in order, and where they were.

    >>> torch.topk(torch.arange(1., 6.), 3)
    torch.return_types.topk(
    values=tensor([5., 4., 3.]),
    indices=tensor([4, 3, 2]))
    """
    check_ordered("topk", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="topk")
    size = input.shape[d] if input.ndim else 1
    if not 0 <= k <= size:
        raise ShapeError(
            f"topk: selected index k out of range: k is {k}, and dim {d} of shape "
            f"{tuple(input.shape)} has {size} elements"
        )
    shape = (*input.shape[:d], k, *input.shape[d + 1 :]) if input.ndim else ()
    what = Sort("topk", "top", d, descending=largest)
    return Planned(what, [(shape, input.dtype), (shape, dtypes.int64)])


topk.derivative(to_sorted)


@topk.samples
def _(make):
    yield make(3, 4), 2
    yield make(3, 4), 2, 0, False
    yield make(2, 40), 3
    yield make(200, 2), 30, 0
    yield (make(3, 4), 5), {}, RuntimeError, "out of range"


@kernel(returns=return_types.kthvalue)
def kthvalue(input: Tensor, k: Int, dim: Dim = -1, keepdim: Bool = False):
    """The ``k``-th least element along ``dim`` (k starts at 1), and where it was.

    >>> torch.kthvalue(torch.arange(1., 6.), 4)
    torch.return_types.kthvalue(
    values=tensor(4.),
    indices=tensor(3))
    """
    check_ordered("kthvalue", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="kthvalue")
    check_some("kthvalue", input, d)
    size = input.shape[d] if input.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(
            f"kthvalue: selected number k out of range for dimension {d}: k is {k}, and shape "
            f"{tuple(input.shape)} has {size} elements there"
        )
    return picked(Sort("kthvalue", "kth", d, rank=k - 1), input, d, keepdim)


def picked(what: Sort, input: Layout, d: int, keepdim: bool) -> Planned:
    """A plan that picks one element along a dim, and gives its index."""
    shape = reduced_shape(input, d, keepdim)
    return Planned(what, [(shape, input.dtype), (shape, dtypes.int64)])


kthvalue.derivative(to_picked)


@kthvalue.samples
def _(make):
    yield make(3, 4), 2
    yield make(3, 4), 3, 0, True
    yield make(200, 2), 150, 0


# ----------------------------------------------------------------------------------- median, mode
@kernel(function=False, method=False, node="MedianBackward1", returns=return_types.median)
def median_dim(input: Tensor, dim: Dim = -1, keepdim: Bool = False):
    """The lower median along a dim and its index: ``torch.median(input, dim)``."""
    check_ordered("median", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="median")
    check_some("median", input, d)
    return picked(Sort("median", "median", d), input, d, keepdim)


@kernel(function=False, method=False, node="NanmedianBackward1", returns=return_types.nanmedian)
def nanmedian_dim(input: Tensor, dim: Dim = -1, keepdim: Bool = False):
    """The lower median along a dim of what is not NaN, and its index."""
    check_ordered("nanmedian", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="nanmedian")
    check_some("nanmedian", input, d)
    return picked(Sort("nanmedian", "nanmedian", d), input, d, keepdim)


median_dim.derivative(to_picked)
nanmedian_dim.derivative(to_picked)


@kernel(function=False, method=False, node="median", batching="medians")
def median_all(input: Tensor):
    """The lower median of all elements: ``torch.median(input)``."""
    check_ordered("median", input, DtypeError)
    return Planned(Sort("median", "median", None), [((), input.dtype)])


@kernel(function=False, method=False, node="nanmedian", batching="medians")
def nanmedian_all(input: Tensor):
    """The lower median of all elements that are not NaN."""
    check_ordered("nanmedian", input, DtypeError)
    return Planned(Sort("nanmedian", "nanmedian", None), [((), input.dtype)])


def _share_all(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    return T.share(g, input, out, T.count_equal(input, out, None, False))


median_all.derivative(_share_all)
nanmedian_all.derivative(_share_all)


@composite(out_needs="dim")
def median(input: Tensor, dim: Dim = None, keepdim: Bool = False):
    """The median of all elements; with ``dim``, along it, as (values, indices).

    Of an even number of elements it is the lower one in the middle. NaN if any element is.

    >>> torch.median(torch.tensor([4., 1., 3., 2.]))
    tensor(2.)
    """
    return T.median_all(T.contiguous(input)) if dim is None else T.median_dim(input, dim, keepdim)


@composite(out_needs="dim")
def nanmedian(input: Tensor, dim: Dim = None, keepdim: Bool = False):
    """The median of the elements that are not NaN; with ``dim``, along it, as (values, indices).

    >>> torch.nanmedian(torch.tensor([1., float("nan"), 3., 2.]))
    tensor(2.)
    """
    return (
        T.nanmedian_all(T.contiguous(input))
        if dim is None
        else T.nanmedian_dim(input, dim, keepdim)
    )


@median.samples
def _(make):
    yield (make(3, 5),)
    yield make(3, 4), 1
    yield make(3, 4), 0, True
    yield (make(150, 2),)


@nanmedian.samples
def _(make):
    yield (make(3, 5),)
    yield make(3, 4), 1
    yield make(2, 150), 1, True


@kernel(returns=return_types.mode)
def mode(input: Tensor, dim: Dim = -1, keepdim: Bool = False):
    """The commonest value along ``dim`` (the least of them), and its last index.

    >>> torch.mode(torch.tensor([6, 5, 1, 0, 2, 0]))
    torch.return_types.mode(
    values=tensor(0),
    indices=tensor(5))
    """
    check_ordered("mode", input, DtypeError)
    d = normalize_dim(dim, input.ndim, op="mode")
    check_some("mode", input, d)
    return picked(Sort("mode", "mode", d), input, d, keepdim)


mode.derivative(to_picked)


@argsort.samples
@mode.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0, True


# -------------------------------------------------------------------------------------- quantiles
def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str,
    skip_nan: bool,
) -> Tensor:  # fmt: skip
    layout = input._layout
    if layout.dtype.name not in ("float32", "float64"):
        raise DtypeError(
            f"{name}() input tensor must be either float or double dtype, got {layout.dtype}; "
            "use x.float()"
        )
    if layout.numel == 0:
        raise ShapeError(
            f"{name}() input tensor must be non-empty, got shape {tuple(layout.shape)}"
        )
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ShapeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if isinstance(q, TensorType):
        if q._layout.ndim > 1:
            raise ShapeError(f"{name}() q must be a scalar or 1D tensor")
        if q._layout.dtype is not layout.dtype:
            raise DtypeError(f"{name}() q tensor must be same dtype as the input tensor")
        several, wanted = q._layout.ndim == 1, q.tolist()
    else:
        several, wanted = False, float(q)
    fractions = wanted if several else [wanted]
    for each in fractions:
        if not 0 <= each <= 1:
            raise ShapeError(f"{name}() q must be in the range [0, 1] but got {each:g}")
    d = 0 if dim is None else normalize_dim(dim, layout.ndim, op=name)
    flat = T.reshape(input, (-1,)) if dim is None or not layout.ndim else input
    rows = T.sort(T.transpose(flat, d, -1), -1)[0]
    exact: list[Any] = list(fractions)
    if isinstance(q, TensorType) and q.requires_grad:  # the same numbers, with a gradient
        exact = [T.select(T.reshape(q, (-1,)), 0, k) for k in range(len(fractions))]
    result = [
        _at_fraction(rows, each, by, interpolation, skip_nan)
        for each, by in zip(fractions or [0], exact or [0], strict=True)
    ]
    if dim is None or not layout.ndim:
        shape = (1,) * layout.ndim if keepdim else ()
        result = [T.reshape(each, shape) for each in result]
    else:
        result = [T.transpose(each, d, -1) for each in result]
        result = result if keepdim else [T.squeeze(each, d) for each in result]
    # as PyTorch lays it out: the quantiles of one place lie side by side
    out = T.clone(T.stack(result, -1), memory_format="contiguous")
    if not fractions:
        out = T.narrow(out, -1, 0, 0)
    return T.movedim(out, -1, 0) if several else T.squeeze(out, -1)


def _at_fraction(rows: Tensor, q: float, exact: Any, interpolation: str, skip_nan: bool) -> Tensor:
    """The quantile of sorted rows, the last dim kept; ``exact`` is q, or a tensor of it."""
    layout = rows._layout
    last = layout.shape[-1] - 1
    isnan = T.isnan(rows)
    if not skip_nan:
        rank = q * last
        low, high = math.floor(rank), math.ceil(rank)
        if interpolation == "nearest":
            low = high = round(rank)
        low, high = (high, high) if interpolation == "higher" else (low, high)
        first, second = T.narrow(rows, -1, low, 1), T.narrow(rows, -1, high, 1)
        weight = 0.5 if interpolation == "midpoint" and high != low else exact * last - low
        if interpolation in ("linear", "midpoint") and high != low:
            first = first + (second - first) * weight
        # sorted, so one NaN in the row means that its last element is
        return T.where(T.narrow(isnan, -1, last, 1), math.nan, first)
    count = T.sum(T.bitwise_not(isnan), -1, True)
    rank = T.clamp(T.mul(T.to_dtype(count - 1, layout.dtype), exact), 0)
    low, high = T.floor(rank), T.ceil(rank)
    if interpolation == "nearest":
        low = high = T.round(rank)
    if interpolation == "higher":
        low = high
    first = T.gather(rows, -1, T.to_dtype(low, dtypes.int64))
    if interpolation in ("linear", "midpoint"):
        second = T.gather(rows, -1, T.to_dtype(high, dtypes.int64))
        weight = (high - low) * 0.5 if interpolation == "midpoint" else rank - low
        # at weight 0 the second must not spoil the first: it may be NaN, or inf
        first = T.where(weight == 0, first, first + (second - first) * weight)
    return first


@composite()
def quantile(
    input: Tensor, q: Any, dim: Dim = None, keepdim: Bool = False, *, interpolation: Str = "linear"
):
    """The value below which a fraction ``q`` of the elements lies, of all or along ``dim``.

    ``q``: a number, or a 1-D tensor of them, which adds a first dim. ``interpolation``: linear,
    lower, higher, midpoint or nearest. NaN if any element is.

    >>> torch.quantile(torch.tensor([0., 1., 2., 3.]), 0.25)
    tensor(0.7500)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@composite()
def nanquantile(
    input: Tensor, q: Any, dim: Dim = None, keepdim: Bool = False, *, interpolation: Str = "linear"
):
    """``quantile`` of the elements that are not NaN.

    >>> torch.nanquantile(torch.tensor([float("nan"), 1., 2.]), 0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


@quantile.samples
def _(make):
    yield make(3, 5), 0.4
    yield make(3, 5), 0.3, 1
    yield (make(3, 5), 0.3, 0, True), {"interpolation": "midpoint"}
    yield (make(3), 1.5), {}, RuntimeError, "in the range"


@nanquantile.samples
def _(make):
    yield make(3, 5), 0.4, 1
