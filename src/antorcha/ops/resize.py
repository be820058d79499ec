"""``nn.functional.interpolate``: images resampled to another size.

Every mode works one dim at a time: each result is a weighted sum of a few elements of the dim (its
*taps*). Which taps and what weights follow from the two sizes alone and are worked out on the host,
in float32 as PyTorch does, where rounding decides which element is the nearest. The gradient is the
same with each weight turned round: each element has the results for taps that it went into.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import Array, np
from antorcha.core.loops import dense_strides
from antorcha.core.shapes import contiguous_strides, suggests_channels_last
from antorcha.core.structs import struct
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.lang.kernels import Resample
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, OptFloat, Str, Tensor
from antorcha.ops.memory import in_format_of
from antorcha.runtime.memory import layout as L
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
        return in_format_of(_resampled(input, sizes, scales, mode, False, False), layout)
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


@kernel(function=False, method=False, out=False, outlined=False, batching="images")
def resample(input: Tensor, dim: Int, size: Int, mode: Str, align: Bool, antialias: Bool,
             back: Bool, scale: OptFloat = None):  # fmt: skip
    """One dim (counted from the end) of images resampled to ``size`` elements; with ``back``
    what the results' gradient says of the elements: ``size`` of them."""
    n, dtype = input.shape[dim], input.dtype
    sizes = (size, n) if back else (n, size)
    filter = _filter(*sizes, mode, align, scale, antialias, _kind_of(dtype))
    places, weights = filter.places, filter.weights
    if back:
        places, weights = _transposed(places, weights, size)
    shape = list(input.shape)
    shape[dim] = size
    whole = contiguous_strides(shape) if input.contiguous else dense_strides(shape, input.strides)
    what = Resample(dim + input.ndim, places, weights)
    return Planned(what, [L.layout(tuple(shape), tuple(whole), dtype, input.device)])


@resample.derivative
def _(g, input_layout, dim, mode, align, antialias, back, scale):
    dtype, n = input_layout.dtype, input_layout.shape[dim]
    wide = dtypes.float32 if dtype.itemsize < 4 else dtype  # in which sums are worked out
    found = T.resample(
        _dense(T.to_dtype(g, wide) if wide is not dtype else g),
        dim, n, mode, align, antialias, not back, scale,
    )  # fmt: skip
    return T.to_dtype(found, dtype) if wide is not dtype else found


@resample.samples
def _(make):
    yield make(2, 3, 5), -1, 7, "linear", False, False, False
    yield make(2, 3, 7), -1, 5, "linear", False, False, True
    yield make(2, 5, 3), -2, 9, "bicubic", True, False, False
    yield make(2, 5, 3), -2, 2, "nearest", False, False, False
    yield make(2, 2, 3), -2, 5, "nearest", False, False, True, 2.4
    yield make(2, 3, 9), -1, 4, "bilinear", False, True, False


def _resampled(
    input: _Any, sizes: list[int], scales: list[_Any], mode: str, align: bool, antialias: bool
) -> _Any:
    """One dim after the other, the last one first."""
    layout = input._layout
    of_bytes = layout.dtype is dtypes.int32 and mode not in NEAREST
    input = _dense(input)
    for k in reversed(range(len(sizes))):
        n, wanted, scale = layout.shape[k + 2], sizes[k], scales[k]
        if wanted == n and not antialias and (scale in (None, 1.0) or mode in NEAREST):
            continue
        input = T.resample(input, k - len(sizes), wanted, mode, align, antialias, False, scale)
        if of_bytes:
            filter = _filter(n, wanted, mode, align, scale, antialias, "bytes")
            rounded = T.add(input, 1 << (filter.precision - 1))
            input = T.clamp(T.bitwise_right_shift(rounded, filter.precision), 0, 255)
    return input


def _dense(x: _Any) -> _Any:
    """The images in one piece, in channels_last if that is how they lie."""
    layout = x._layout
    if layout.contiguous:
        return x
    last = suggests_channels_last(layout.shape, layout.strides)
    form = ("channels_last" if layout.ndim == 4 else "channels_last_3d") if last else "contiguous"
    return T.contiguous(x, form)


def _filtered(
    input: _Any, sizes: list[int], scales: list[_Any], mode: str, align: bool, antialias: bool
) -> _Any:
    """Resampled in a type that holds the sums, by modes that add and multiply."""
    dtype = input._layout.dtype
    if dtype.kind not in "fc" and not (dtype is dtypes.uint8 and input._layout.ndim == 4):
        raise MissingFeature(
            "interpolate: mode {mode!r} is not implemented for {0.dtype}; cast the input to float",
            reason="needs float", op="interpolate", operands=(input._layout,), mode=mode,
        )  # fmt: skip
    if dtype is dtypes.uint8:
        wide = dtypes.int32
    else:
        wide = dtypes.float32 if dtype.itemsize < 4 else dtype
    x = input if wide is dtype else T.to_dtype(input, wide)
    x = _resampled(x, sizes, scales, mode, align, antialias)
    return x if wide is dtype else T.to_dtype(x, dtype)


@struct
class Filter:
    """The taps of each result: their places and weights, (taps, results); no weights where the one
    tap is copied. ``precision``: bits of the fraction, where the weights are integers."""

    places: Array
    weights: Array | None
    precision: int = 0


def _kind_of(dtype: _Any) -> str:
    """In what places and weights are worked out: float64, float32, or integers for bytes."""
    return "bytes" if dtype is dtypes.int32 else "double" if dtype.name == "float64" else "single"


@lru_cache(maxsize=64)
def _filter(
    n: int, wanted: int, mode: str, align: bool, scale: float | None, antialias: bool, kind: str
) -> Filter:
    """Where ``wanted`` results of ``n`` elements come from."""
    if mode in NEAREST:
        f = np.float64 if kind == "double" else np.float32
        return Filter(_nearest(f, n, wanted, scale, mode == "nearest-exact"), None)
    f = np.float32 if kind == "single" else np.float64
    step = _step(f, n, wanted, scale, align)
    if antialias:
        places, weights = _wide_taps(f, n, wanted, step, mode)
    else:
        places, weights = _taps(f, n, wanted, step, mode, align)
    if kind != "bytes":
        return Filter(places, weights)
    return Filter(places, *_fixed_point(places, weights))


def _transposed(places: Array, weights: Array | None, n: int) -> tuple[Array, Array]:
    """The filter that gives each of n elements the results that it went into: -1 is none."""
    taps, results = places.shape
    if weights is None:
        weights = np.ones_like(places, np.float64)
    there = places.T.ravel() >= 0
    at, weight = places.T.ravel()[there], weights.T.ravel()[there]  # in the order of the results
    result = np.repeat(np.arange(results), taps)[there]
    order = np.argsort(at, kind="stable")
    at = at[order]
    starts = np.searchsorted(at, np.arange(n))
    rank = np.arange(len(at)) - starts[at]  # among what its element went into
    most = int(rank.max(initial=0)) + 1
    back = np.full((most, n), -1, np.int64)
    shares = np.zeros((most, n), weights.dtype)
    back[rank, at], shares[rank, at] = result[order], weight[order]
    return back, shares


def _nearest(f: _Any, n: int, wanted: int, scale: float | None, exact: bool) -> Array:
    at: _Any = np.arange(wanted)
    step = _step(f, n, wanted, scale, False)
    if exact:
        at = ((at + 0.5) * np.float64(step) - 0.5).astype(f)  # one rounding, as fma's
        at = np.maximum(at, f(0)) + f(0.5)
    else:
        at = at.astype(f) * step
    places: Array = np.minimum(np.floor(at.astype(np.float32)).astype(np.int64), n - 1)
    return places[None]


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
    return np.where(places < last, places, -1), weights.astype(f)


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
