"""``nn.functional.interpolate``: images resampled to another size.

Every mode works one dim at a time: each result is a weighted sum of a few elements of the dim (its
*taps*). Which taps and what weights follow from the two sizes alone and are worked out on the host,
in float32 as PyTorch does, where rounding decides which element is the nearest.
"""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Str, Tensor
from antorcha.ops.memory import constant, in_format_of
from antorcha.runtime.memory.layout import Layout

MOST_PLACES = 1 << 24
"""Along a dim: the place that each result comes from is listed on the host."""
LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
NEAREST = ("nearest", "nearest-exact")
ANTIALIASED = ("bilinear", "bicubic", "lanczos")
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


@composite(method=False, out=False, namespace="nn.functional")
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: Str = "nearest",
    align_corners: Bool = None, recompute_scale_factor: Bool = None, antialias: Bool = False,
):  # fmt: skip
    """Resamples the dims after the second to another size, or by a factor.

    Args:
        input (Tensor): ``(N, C, ...)`` with 1 to 3 spatial dims
        size (int or tuple, optional): the output's spatial sizes
        scale_factor (float or tuple, optional): multiplies the input's; give one of the two
        mode (str): ``'nearest'``, ``'nearest-exact'``, ``'linear'`` (1 spatial dim),
            ``'bilinear'`` and ``'bicubic'`` (2), ``'trilinear'`` (3), ``'area'``, or
            ``'lanczos'`` (2, only with ``antialias``)
        align_corners (bool, optional): do the outermost elements, and not their outer edges, lie
            on each other? For the linear and cubic modes
        recompute_scale_factor (bool, optional): work out the scale from the two sizes, which
            ``scale_factor`` only rounds to
        antialias (bool): widen the filter when shrinking (``'bilinear'``, ``'bicubic'``)

    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), size=4, mode='linear')
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueRangeError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if recompute_scale_factor and size is not None:
        raise ValueRangeError(
            "interpolate: recompute_scale_factor is not meaningful with an explicit size."
        )
    layout = input._layout
    sizes, scales = _sizes(layout, size, scale_factor, bool(recompute_scale_factor))
    if antialias and not (mode in ANTIALIASED and layout.ndim == 4):
        raise ValueRangeError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    _check_mode(mode, layout.ndim, align_corners, antialias)
    spatial = tuple(layout.shape[2:])
    if min(*sizes, *spatial) <= 0 or max(sizes) > MOST_PLACES:
        raise ShapeError(
            f"interpolate: Input and output sizes should be greater than 0, and no output size "
            f"above {MOST_PLACES}, but got input {spatial} and output {tuple(sizes)}"
        )
    if mode == "area":
        pool = (T.adaptive_avg_pool1d, T.adaptive_avg_pool2d, T.adaptive_avg_pool3d)[
            layout.ndim - 3
        ]
        return pool(input, tuple(sizes))
    if mode in NEAREST:
        return in_format_of(_nearest(input, sizes, scales, mode == "nearest-exact"), input._layout)
    return _filtered(input, sizes, scales, mode, bool(align_corners), antialias)


def _sizes(
    layout: Layout, size: _Any, scale_factor: _Any, recompute: bool
) -> tuple[list[int], list[float | None]]:
    """The output's spatial sizes, and the scales that were given."""
    dims = layout.ndim - 2
    if (size is None) == (scale_factor is None):
        few = "either size or scale_factor should be defined"
        many = "only one of size or scale_factor should be defined"
        raise ValueRangeError(f"interpolate: {few if size is None else many}")
    given = size if size is not None else scale_factor
    values = list(given) if isinstance(given, (tuple, list)) else [given] * dims
    if len(values) != dims:
        what = "output size" if size is not None else "scale_factor"
        raise ValueRangeError(
            f"interpolate: Input and {what} must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {list(layout.shape[2:])} and {what} of {given}."
        )
    if size is not None:
        if not all([hasattr(v, "__index__") for v in values]):
            raise ArgumentError(
                "interpolate: expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                f"Tuple[int, int, int], but got size {given!r}"
            )
        return [int(v) for v in values], [None] * dims
    sizes = [math.floor(float(n) * float(f)) for n, f in zip(layout.shape[2:], values, strict=True)]
    return sizes, [None] * dims if recompute else [float(v) for v in values]


def _check_mode(mode: str, ndim: int, align_corners: bool | None, antialias: bool) -> None:
    if mode in LINEAR and 3 <= ndim <= 5 and LINEAR[mode] != ndim:
        raise MissingFeature(f"Got {ndim}D input, but {mode} mode needs {LINEAR[mode]}D input")
    if mode == "lanczos" and ndim == 4:
        if align_corners:
            raise ValueRangeError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueRangeError("Lanczos mode requires antialias=True")
        return
    if not 3 <= ndim <= 5 or not (
        mode in (*NEAREST, *LINEAR, "area") or (mode == "bicubic" and ndim == 4)
    ):
        raise MissingFeature(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
            f"{MODES} (got {mode})"
        )


def _nearest(input: _Any, sizes: list[int], scales: list[_Any], exact: bool) -> _Any:
    for k, wanted in enumerate(sizes):
        n = input._layout.shape[k + 2]
        if wanted != n:
            f = _real(input._layout.dtype)
            at = np.arange(wanted)
            step = _step(f, n, wanted, scales[k], False)
            if exact:
                at = ((at + 0.5) * np.float64(step) - 0.5).astype(f)  # one rounding, as fma's
                at = np.maximum(at, f(0)) + f(0.5)
            else:
                at = at.astype(f) * step
            at = np.minimum(np.floor(at.astype(np.float32)).astype(np.int64), n - 1)
            input = T.index_select(input, k + 2, constant(at, input._layout.device))
    return input


def _real(dtype: _Any) -> _Any:
    """The type in which places and weights are worked out."""
    return np.float64 if dtype.name == "float64" else np.float32


def _filtered(
    input: _Any, sizes: list[int], scales: list[_Any], mode: str, align: bool, antialias: bool
) -> _Any:
    """One dim after the other: the sum of each result's taps times their weights."""
    layout = input._layout
    if layout.dtype.kind not in "fc" and not (layout.dtype is dtypes.uint8 and layout.ndim == 4):
        raise MissingFeature(
            "interpolate: mode {mode!r} is not implemented for {0.dtype}; cast the input to float",
            reason="needs float", op="interpolate", operands=(layout,), mode=mode,
        )  # fmt: skip
    of_bytes = layout.dtype is dtypes.uint8
    if of_bytes:
        wide, f = dtypes.int32, np.float64
    else:
        wide = dtypes.float32 if layout.dtype.itemsize < 4 else layout.dtype
        f = _real(wide)
    x = T.to_dtype(input, wide) if wide is not layout.dtype else input
    for k in reversed(range(len(sizes))):
        n = layout.shape[k + 2]
        if sizes[k] == n and not antialias and scales[k] in (None, 1.0):
            continue
        step = _step(f, n, sizes[k], scales[k], align)
        if antialias:
            places, weights = _wide_taps(f, n, sizes[k], step, mode)
        else:
            places, weights = _taps(f, n, sizes[k], step, mode, align)
        if of_bytes:
            weights, precision = _fixed_point(places, weights)
            x = T.add(_weighted(x, k + 2, places, weights), 1 << (precision - 1))
            x = T.clamp(T.bitwise_right_shift(x, precision), 0, 255)
        else:
            x = _weighted(x, k + 2, places, weights)
    return x if wide is layout.dtype else T.to_dtype(x, layout.dtype)


def _step(f: _Any, n: int, wanted: int, scale: float | None, align: bool) -> _Any:
    """How far apart in the input neighbouring results lie."""
    if align:
        return f(n - 1) / f(wanted - 1) if wanted > 1 else f(0)
    return f(1.0 / scale) if scale else f(n) / f(wanted)


def _taps(f: _Any, n: int, wanted: int, step: _Any, mode: str, align: bool) -> _Any:
    """Each result's places in the input and their weights: (taps, results)."""
    i = np.arange(wanted, dtype=f)
    at = i * step if align else (i + f(0.5)) * step - f(0.5)
    if mode != "bicubic":
        at = np.maximum(at, f(0))
    low = np.floor(at)
    t = at - low
    low = low.astype(np.int64)
    if mode == "bicubic":
        places = np.stack([low + k for k in (-1, 0, 1, 2)])
        weights = np.stack([cubic(abs(t - k), -0.75) for k in (-1, 0, 1, 2)])
    else:
        places, weights = np.stack([low, low + 1]), np.stack([1 - t, t])
    return np.clip(places, 0, n - 1), weights.astype(f)


def cubic(x: _Any, a: float) -> _Any:
    """Keys' cubic convolution kernel at distances ``x`` (Keys, "Cubic convolution interpolation for
    digital image processing", 1981)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _lanczos(x: _Any) -> _Any:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


# of a filter for antialiasing: how far it reaches, and its value at a distance
FILTERS: dict[str, tuple[float, _Any]] = {
    "bilinear": (1.0, lambda x: np.maximum(1 - x, 0)),
    "bicubic": (2.0, lambda x: cubic(x, -0.5)),
    "lanczos": (3.0, _lanczos),
}


def _wide_taps(f: _Any, n: int, wanted: int, step: _Any, mode: str) -> _Any:
    """As ``_taps``, with a filter as wide as a result is in the input."""
    reach, value = FILTERS[mode]
    grow = max(step, f(1))
    support = f(reach) * grow
    center = (np.arange(wanted, dtype=f) + f(0.5)) * step
    first = np.maximum((center - support + f(0.5)).astype(np.int64), 0)
    last = np.minimum((center + support + f(0.5)).astype(np.int64), n)
    places = first + np.arange(max(int((last - first).max()), 1))[:, None]
    weights = value(abs(places - center + f(0.5)) / grow)
    weights = np.where(places < last, weights, 0)
    total = weights.sum(0)
    weights = weights / np.where(total == 0, 1, total)
    return np.clip(places, 0, n - 1), weights.astype(f)


def _fixed_point(places: _Any, weights: _Any) -> tuple[_Any, int]:
    """Weights for bytes, as Pillow and PyTorch take them: integers, and the bits of their fraction.

    The most bits with which the largest weight fits in 16. At an edge several taps read one place;
    their weights are one weight before it is rounded.
    """
    weights = weights.copy()
    for k in range(1, len(places)):
        same = places[k] == places[k - 1]
        weights[k] += np.where(same, weights[k - 1], 0)
        weights[k - 1] = np.where(same, 0, weights[k - 1])
    largest = float(weights.max(initial=0.0))
    precision = 0
    while precision < 22 and int(0.5 + largest * (1 << (precision + 1))) < 1 << 15:
        precision += 1
    scaled = weights * (1 << precision)
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32), precision


def _weighted(x: _Any, dim: int, places: _Any, weights: _Any) -> _Any:
    device, shape = x._layout.device, [1] * x._layout.ndim
    shape[dim] = -1
    total = None
    for at, weight in zip(places, weights, strict=True):
        part = T.mul(
            T.index_select(x, dim, constant(np.ascontiguousarray(at), device)),
            constant(np.ascontiguousarray(weight).reshape(shape), device),
        )
        total = part if total is None else T.add(total, part)
    return total


@interpolate.samples
def _(make):
    yield (make(2, 3, 4), 7)
    yield (make(2, 3, 4), 7), {"mode": "linear"}
    yield (make(1, 2, 4, 5), (3, 7)), {"mode": "bilinear", "align_corners": True}
    yield (make(1, 2, 4, 5),), {"scale_factor": 1.7, "mode": "bicubic"}
    yield (make(1, 1, 9, 8), (4, 3)), {"mode": "bilinear", "antialias": True}
    yield (make(1, 1, 3, 4, 2), 5), {"mode": "trilinear"}
    yield (make(1, 2, 4, 5), 3), {"mode": "area"}
    yield (make(2, 3, 4),), {}, ValueError, "either size or scale_factor"
    yield (make(2, 3, 4), 2, 2), {}, ValueError, "only one of size"
    yield (make(2, 3, 4), (2, 3)), {}, ValueError, "same number of spatial"
    yield (make(2, 3, 4), 2), {"mode": "bilinear"}, NotImplementedError, "needs 4D input"
    yield (make(2, 3, 4), 2), {"align_corners": True}, ValueError, "align_corners"
    yield (make(2, 3, 4), 0), {}, RuntimeError, "greater than 0"


@composite(method=False, out=False, namespace="nn.functional")
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: Str = "nearest",
    align_corners: Bool = None,
):  # fmt: skip
    """The old name of :func:`interpolate`."""
    return T.interpolate(input, size, scale_factor, mode, align_corners)


@composite(method=False, out=False, namespace="nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None):
    """The old name of :func:`interpolate` with ``mode='nearest'``."""
    return T.interpolate(input, size, scale_factor)


@composite(method=False, out=False, namespace="nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None):
    """The old name of :func:`interpolate` with ``mode='bilinear', align_corners=True``."""
    return T.interpolate(input, size, scale_factor, "bilinear", True)
