"""Histograms over one dim or several: how much falls between each two edges of bins."""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.errors import MissingFeature, ShapeError
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, OptTensor, Tensor
from antorcha.runtime.tensor import Tensor as TensorType

return_types = lazy("antorcha.ops.kinds.return_types")


@composite()
def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: OptTensor = None,
    density: Bool = False,
):  # fmt: skip
    """How many elements (or how much of their ``weight``) fall into each bin, and the bins' edges.

    ``bins`` is a number of equal bins over ``range`` (by default the extremes of the data), or the
    edges themselves, rising. A bin takes its lower edge, the last one its upper edge too; what lies
    outside is not counted. ``density``: divided by the total and by the bins' widths.

    >>> torch.histogram(torch.tensor([1., 2., 1.]), bins=4, range=(0., 3.)).hist
    tensor([0., 2., 1., 0.])
    """
    if weight is not None and weight._layout.shape == input._layout.shape:
        weight = T.reshape(weight, (-1,))
    points = T.reshape(input, (-1, 1))
    hist, edges = _counted("histogram", points, (bins,), range, weight, density)
    return return_types.histogram(hist, edges[0])


@composite(method=False, out=False)
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: OptTensor = None, density: Bool = False
):
    """How many of the points whose coordinates are the last dim of ``input`` fall into each cell of
    a grid, and the grid's edges along each coordinate.

    ``bins`` is a number for all coordinates, a number for each, or the edges for each; ``range``
    holds the lowest and the highest edge of each coordinate, one after the other.

    >>> points = torch.tensor([[0., 1.], [1., 0.], [1., 1.]])
    >>> torch.histogramdd(points, bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    layout = input._layout
    if layout.ndim < 2:
        raise ShapeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got "
            f"{layout.ndim}"
        )
    count = layout.shape[-1]
    each = tuple(bins) if isinstance(bins, (tuple, list)) else (bins,) * count
    if len(each) != count:
        raise ShapeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: "
            f"expected {count}, but got {len(each)}"
        )
    if weight is not None and weight._layout.shape == layout.shape[:-1]:
        weight = T.reshape(weight, (-1,))
    points = T.reshape(input, (-1, count))
    hist, edges = _counted("histogramdd", points, each, range, weight, density)
    return return_types.histogramdd(hist, tuple(edges))


def _counted(
    op: str, points: TensorType, bins: tuple[_Any, ...], range: _Any, weight: _Any, density: bool
) -> tuple[TensorType, list[TensorType]]:
    """The histogram of ``points`` ``(N, D)``, and the edges along each of the D coordinates."""
    layout = points._layout
    if layout.dtype not in (dtypes.float32, dtypes.float64):
        raise MissingFeature(f'{op}: "histogramdd" not implemented for {layout.dtype}')
    _check_weight(layout, weight)
    columns = T.unbind(points.detach(), 1)
    limits = _limits(columns, range)
    edges = [_edges(op, k, column, bins[k], limits[k]) for k, column in enumerate(columns)]
    shape = [len(edge) - 1 for edge in edges]
    place = T.zeros(layout.shape[0], dtype=dtypes.int64, device=layout.device)
    inside = T.ones(layout.shape[0], dtype=dtypes.bool_, device=layout.device)
    for column, edge, n in zip(columns, edges, shape, strict=True):
        column = T.contiguous(column)
        after = T.searchsorted(T.contiguous(edge), column, right=True)
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        place = place * n + T.clamp(after - 1, 0, n - 1)  # the last edge belongs to the last bin
    amount = T.full_layout((), 1, layout.dtype, layout.device) if weight is None else weight
    amount = T.where(inside, amount, T.zeros_like(amount))
    hist = T.zeros(math.prod(shape), dtype=layout.dtype, device=layout.device)
    hist = T.reshape(T.index_add(hist, 0, place, amount), shape)
    if density:
        hist = hist / hist.sum()
        for k, edge in enumerate(edges):
            hist = hist / T.reshape(T.diff(edge), [-1 if d == k else 1 for d in _dims(shape)])
    return hist, edges


def _dims(shape: list[int]) -> list[int]:
    return [d for d, _ in enumerate(shape)]


def _check_weight(layout: _Any, weight: _Any) -> None:
    if weight is None:
        return
    if weight._layout.shape != layout.shape[:-1]:
        raise ShapeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{list(layout.shape)} and weight with shape {list(weight._layout.shape)}"
        )
    if weight._layout.dtype is not layout.dtype:
        raise ShapeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({layout.dtype}), and "
            f"weight({weight._layout.dtype})"
        )


def _limits(columns: tuple[TensorType, ...], range: _Any) -> list[tuple[float, float] | None]:
    """The lowest and the highest edge of each coordinate, where they are given."""
    if range is None:
        return [None] * len(columns)
    if len(range) != 2 * len(columns):
        raise ShapeError(
            f"torch.histogramdd: for a {len(columns)}-dimensional histogram range should have "
            f"{2 * len(columns)} elements, but got {len(range)}"
        )
    return [(float(range[2 * k]), float(range[2 * k + 1])) for k, _ in enumerate(columns)]


def _edges(
    op: str, dim: int, column: TensorType, bins: _Any, limits: tuple[float, float] | None
) -> TensorType:
    """The edges of the bins along a coordinate."""
    layout = column._layout
    if isinstance(bins, TensorType):
        if bins._layout.ndim != 1:
            raise ShapeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got "
                f"{bins._layout.ndim} dimensions in the bins tensor for dimension {dim}"
            )
        if bins._layout.dtype is not layout.dtype:
            raise ShapeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {layout.dtype} and bins for dimension {dim} with dtype "
                f"{bins._layout.dtype}"
            )
        count = bins._layout.shape[0] - 1
    else:
        count = to_int(op, "bins", bins)
    if count < 1:
        raise ShapeError(f"torch.{op}(): bins must be > 0, but got {count} for dimension {dim}")
    if isinstance(bins, TensorType):
        return T.clone(bins)  # type: ignore[no-any-return]
    low, high = limits or _extremes(column)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ShapeError(
            f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite"
        )
    if low > high:
        raise ShapeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for "
            f"dimension {dim}"
        )
    if low == high:  # a range in which there is nothing is widened, as in NumPy
        low, high = low - 0.5, high + 0.5
    return T.linspace(  # type: ignore[no-any-return]
        low, high, count + 1, dtype=layout.dtype, device=layout.device
    )


def _extremes(column: TensorType) -> tuple[float, float]:
    if not column._layout.numel:
        return 0.0, 1.0
    low, high = T.aminmax(column)
    return float(low), float(high)


@histogram.errors
def _(make):
    yield (make(3), 0), {}, RuntimeError, "bins must be > 0"
    yield (make.ints((3,), 4), 2), {}, NotImplementedError, "not implemented for torch.int64"
    yield (make(3), 3), {"range": (2.0, 1.0)}, RuntimeError, "min should not exceed max"
    yield (make(3), 3), {"weight": make(2)}, RuntimeError, "the same shape"


@histogramdd.errors
def _(make):
    yield (make(3), (2,)), {}, RuntimeError, "at least 2 dimensions"
    yield (make(3, 2), (2,)), {}, RuntimeError, "innermost dimension"
    yield (make(3, 2), 2), {"range": (0.0, 1.0)}, RuntimeError, "should have 4 elements"
