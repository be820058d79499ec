"""``torch.gradient``: slopes of sampled functions by finite differences."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.shapes import normalize_dims
from antorcha.errors import ShapeError
from antorcha.ops.kinds.params import to_ints, to_real
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Int, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


@composite(method=False, out=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: Int = 1):
    """The slopes of a function of which ``input`` has samples, along each dim (or ``dim``): a tuple
    of tensors. Inside by central differences, at the edges by differences of ``edge_order``.

    ``spacing`` says how far apart the samples are: one number, a number for each dim, or a tensor
    of coordinates for each dim.

    >>> torch.gradient(torch.tensor([1., 2., 4., 7.]))
    (tensor([1.0000, 1.5000, 2.5000, 3.0000]),)
    """
    layout = input._layout
    dims = range(layout.ndim) if dim is None else to_ints("gradient", "dim", dim)
    along = normalize_dims(tuple(dims), layout.ndim, op="gradient")
    if edge_order not in (1, 2):
        raise ShapeError(
            f"gradient: torch.gradient only supports edge_order=1 and edge_order=2, got "
            f"{edge_order}."
        )
    steps = _steps(spacing, along, dim is None)
    for d in along:
        if layout.shape[d] < edge_order + 1:
            raise ShapeError(
                "gradient: torch.gradient expected each dimension size to be at least "
                f"edge_order+1 = {edge_order + 1}, but dimension {d} is {layout.shape[d]}"
            )
    slopes = [
        _by_coordinates(input, d, step, edge_order)
        if isinstance(step, TensorType) and step._layout.ndim
        else _by_step(input, d, step, edge_order)
        for d, step in zip(along, steps, strict=True)
    ]
    return tuple(slopes)


def _steps(spacing: _Any, along: tuple[int, ...], all_dims: bool) -> list[_Any]:
    """The step, or the coordinates, along each dim."""
    if spacing is None:
        return [1] * len(along)
    if not isinstance(spacing, (tuple, list)):
        return [to_real("gradient", "spacing", spacing)] * len(along)
    if len(spacing) != len(along):
        which = "'self.dim()'" if all_dims else "'dim'"
        raise ShapeError(
            f"gradient: torch.gradient expected spacing to be unspecified, a scalar, or a list of "
            f"length equal to {which} = {len(along)}, but got a list of length {len(spacing)}"
        )
    return [*spacing]


def _by_step(input: TensorType, d: int, step: _Any, edge_order: int) -> TensorType:
    """The slope along a dim of samples that lie equally far apart."""
    n = input._layout.shape[d]
    f = [T.slice(input, d, k, k + 1) for k in (0, 1, 2, n - 3, n - 2, n - 1) if 0 <= k < n]
    inside = (T.slice(input, d, 2) - T.slice(input, d, 0, n - 2)) / (2 * step)
    if edge_order == 1:
        first, last = (f[1] - f[0]) / step, (f[-1] - f[-2]) / step
    else:
        first = (-1.5 * f[0] + 2 * f[1] - 0.5 * f[2]) / step
        last = (1.5 * f[-1] - 2 * f[-2] + 0.5 * f[-3]) / step
    return T.cat((first, inside, last), d)  # type: ignore[no-any-return]


def _by_coordinates(input: TensorType, d: int, at: TensorType, edge_order: int) -> TensorType:
    """The slope along a dim of samples at given coordinates."""
    layout = input._layout
    n = layout.shape[d]
    if tuple(at._layout.shape) != (n,):
        raise ShapeError(
            f"gradient: torch.gradient expected the coordinates of dimension {d} to be a tensor of "
            f"{n} elements, but got shape {tuple(at._layout.shape)}"
        )
    gaps = T.reshape(T.diff(at), [-1 if k == d else 1 for k in range(layout.ndim)])
    one, two = T.slice(gaps, d, 0, n - 2), T.slice(gaps, d, 1)
    inside = (
        -two / (one * (one + two)) * T.slice(input, d, 0, n - 2)
        + (two - one) / (one * two) * T.slice(input, d, 1, n - 1)
        + one / (two * (one + two)) * T.slice(input, d, 2)
    )
    edges = [_edge(input, gaps, d, order, edge_order) for order in ((0, 1, 2), (-1, -2, -3))]
    return T.cat((edges[0], inside, edges[1]), d)  # type: ignore[no-any-return]


def _edge(
    input: TensorType, gaps: TensorType, d: int, order: tuple[int, int, int], edge_order: int
) -> _Any:
    """The slope at an edge, from the samples and the gaps nearest to it."""
    f = [T.narrow(input, d, k, 1) for k in order[: edge_order + 1]]
    one = T.narrow(gaps, d, order[0], 1)
    sign = 1 if order[0] == 0 else -1
    if edge_order == 1:
        return sign * (f[1] - f[0]) / one
    two = T.narrow(gaps, d, order[1], 1)
    return sign * (
        -(2 * one + two) / (one * (one + two)) * f[0]
        + (one + two) / (one * two) * f[1]
        - one / (two * (one + two)) * f[2]
    )


@gradient.samples
def _(make):
    yield (make(5, 4),)
    yield (make(5, 4),), {"dim": 0, "spacing": 2.0, "edge_order": 2}
    yield (make(4),), {"dim": (0,), "spacing": (make(4, low=1, high=2).cumsum(0).detach(),)}
    yield (make(1, 3),), {}, RuntimeError, "at least edge_order+1"
    yield (make(3, 3),), {"edge_order": 3}, RuntimeError, "edge_order=1 and edge_order=2"
    yield (make(3, 3),), {"spacing": (1.0,)}, RuntimeError, "a list of length 1"
