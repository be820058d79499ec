"""Pooling made of other ops: unpooling, the p-norm of windows, and windows at random places."""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T, composite, expose
from antorcha.ops.kinds.types import Any, Bool, Int, OptTensor, Shape, Tensor
from antorcha.ops.memory import constant, in_format_of
from antorcha.ops.pool import F, per_dim
from antorcha.runtime.memory.layout import Layout


# -------------------------------------------------------------------------------------- unpooling
@composite(function=False, method=False, out=False)
def unpooled(input: Tensor, indices: Tensor, size: Shape, nd: Int):
    """Planes of ``size`` with each element of ``input`` at its index, and zeros."""
    layout = input._layout
    lead = tuple(layout.shape[: layout.ndim - nd])
    room = math.prod(size)
    if layout.device.type != "meta" and layout.numel:
        low, high = int(T.min(indices).item()), int(T.max(indices).item())
        if not 0 <= low <= high < room:
            bad = low if low < 0 else high
            raise ShapeError(
                f"max_unpool{nd}d: Found an invalid max index: {bad} (output volumes are of size "
                f"{'x'.join([str(n) for n in size])})"
            )
    flat = T.zeros((*lead, room), dtype=layout.dtype, device=layout.device)
    rows = (*lead, math.prod(layout.shape[layout.ndim - nd :]))
    put = T.scatter(flat, -1, T.reshape(indices, rows), T.reshape(input, rows))
    return T.reshape(put, (*lead, *size))


def _unpool_size(op: str, layout: Layout, given: _Any, output_size: _Any) -> tuple[int, ...]:
    """The planes' size before they were pooled, as asked for within what is possible."""
    kernel, stride, padding = given
    nd = len(kernel)
    usual = [
        (n - 1) * s - 2 * p + k
        for n, s, p, k in zip(
            layout.shape[layout.ndim - nd :], stride, padding, kernel, strict=True
        )
    ]
    if output_size is None:
        size = usual
    else:
        size = list(output_size)
        if len(size) == nd + 2:
            size = size[2:]
        if len(size) != nd:
            raise ValueRangeError(
                f"{op}: output_size should be a sequence containing {nd} or {nd + 2} elements, but "
                f"it has a length of '{len(size)}'"
            )
        for d, (n, u, s) in enumerate(zip(size, usual, stride, strict=True)):
            if not u - s < n < u + s:
                raise ValueRangeError(
                    f'{op}: invalid output_size "{size}" (dim {d} must be between {u - s} and '
                    f"{u + s})"
                )
    if min(size) < 0:
        raise ValueRangeError(
            f"{op}: output_size must contain non-negative spatial dimensions, but got {size}"
        )
    return tuple([int(n) for n in size])


def _max_unpool(nd: int) -> None:
    name = f"max_unpool{nd}d"

    def unpool(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None,
               padding: Any = 0, output_size: Any = None) -> Tensor:  # fmt: skip
        layout = input._layout
        kernel = per_dim(name, "kernel_size", kernel_size, nd)
        step = kernel if stride is None else per_dim(name, "stride", stride, nd)
        pad = per_dim(name, "padding", padding, nd)
        if indices._layout.dtype is not dtypes.int64:
            raise ShapeError(
                f"{name}: elements in indices should be type int64 but got: {indices._layout.dtype}"
            )
        if layout.ndim not in (nd + 1, nd + 2):
            raise ShapeError(
                f"{name}: Input to max_unpooling{nd}d should be a {nd + 1}d or {nd + 2}d Tensor, "
                f"but got {tuple(layout.shape)}"
            )
        if tuple(indices._layout.shape) != tuple(layout.shape):
            raise ShapeError(
                f"{name}: Expected shape of indices to be same as that of the input tensor "
                f"({list(layout.shape)}) but got indices tensor with shape: "
                f"{list(indices._layout.shape)}"
            )
        if min(step) <= 0:
            raise ShapeError(f"{name}: strides should be greater than zero, but got stride: {step}")
        size = _unpool_size(name, layout, (kernel, step, pad), output_size)
        result = T.unpooled(input, indices, size, nd)
        return in_format_of(result, layout) if nd == 2 else result

    shape = (1, *[1] * nd)
    unpool.__doc__ = f"""Puts each value back to the place that ``max_pool{nd}d`` took it from; the
    rest is zero.

    >>> x, i = torch.full({shape}, 5.), torch.full({shape}, 1)
    >>> torch.nn.functional.{name}(x, i, {(*[1] * (nd - 1), 2)}).flatten()
    tensor([0., 5.])
    """
    result = composite(method=False, out=False, name=name, namespace="nn.functional")(unpool)

    @result.samples
    def _(make):
        x = make(1, 2, *[4] * nd)
        values, places = getattr(T, f"max_pool{nd}d")(x.detach(), 2, return_indices=True)
        yield make(*values.shape), places, 2


# ----------------------------------------------------------------------------------------- p-norm
def _lp_pool(nd: int) -> None:
    name = f"lp_pool{nd}d"

    def pool(input: Tensor, norm_type: Any, kernel_size: Any, stride: Any = None,
             ceil_mode: Bool = False) -> Tensor:  # fmt: skip
        kernel = per_dim(name, "kernel_size", kernel_size, nd)
        largest: _Any = getattr(T, f"max_pool{nd}d")
        if norm_type == math.inf:
            return largest(T.abs(input), kernel, stride, 0, 1, ceil_mode)
        if norm_type == -math.inf:
            return T.neg(largest(T.neg(T.abs(input)), kernel, stride, 0, 1, ceil_mode))
        average: _Any = getattr(T, f"avg_pool{nd}d")
        mean = average(T.pow(input, norm_type), kernel, stride, 0, ceil_mode)
        positive = T.mul(T.sign(mean), T.relu(T.abs(mean)))
        return T.pow(T.mul(positive, math.prod(kernel)), 1.0 / norm_type)

    pool.__doc__ = f"""The ``norm_type`` norm of each window: ``(sum of x ** p) ** (1 / p)``.

    >>> x = torch.tensor([3., 4.]).reshape({(1, *[1] * (nd - 1), 2)})
    >>> torch.nn.functional.{name}(x, 2.0, {(*[1] * (nd - 1), 2)}).flatten()
    tensor([5.])
    """
    result = composite(method=False, out=False, name=name, namespace="nn.functional")(pool)

    @result.samples
    def _(make):
        yield make(1, 2, *[4] * nd), 2.0, 2


# ------------------------------------------------------------------------------------- fractional
@composite(function=False, method=False, out=False)
def fractional_windows(input: Tensor, kernel: Shape, size: Shape, samples: Tensor):
    """The maxima of windows whose places each plane's ``samples`` shift, and their indices."""
    layout, nd = input._layout, len(kernel)
    lead, spatial = tuple(layout.shape[: layout.ndim - nd]), tuple(layout.shape[layout.ndim - nd :])
    planes = math.prod(lead)
    shifts = T.reshape(samples, (planes, samples._layout.shape[-1]))
    flat = None  # the index of each window's elements in its plane: (planes, size.., kernel..)
    for axis in range(nd):
        # PyTorch's planes take the samples as (x, y), its volumes as (t, y, x)
        shift = T.narrow(shifts, 1, axis if nd == 3 else 1 - axis, 1)
        starts = _starts(shift, spatial[axis], size[axis], kernel[axis])
        inside = T.arange(kernel[axis], device=layout.device)
        at = T.unsqueeze(starts, 2) + inside  # (planes, results, taps)
        shape = [planes, *[1] * (2 * nd)]
        shape[1 + axis], shape[1 + nd + axis] = size[axis], kernel[axis]
        at = T.reshape(at, tuple(shape))
        flat = at if flat is None else flat * spatial[axis] + at
    flat = T.reshape(flat, (planes, math.prod(size), math.prod(kernel)))
    rows = T.reshape(input, (planes, math.prod(spatial)))
    index = T.reshape(flat, (planes, math.prod(size) * math.prod(kernel)))
    windows = T.reshape(T.gather(rows.detach(), 1, index), tuple(flat._layout.shape))
    best = T.argmax(windows, -1, True)
    places = T.squeeze(T.gather(flat, 2, best), 2)
    values = T.gather(rows, 1, places)
    return T.reshape(values, (*lead, *size)), T.reshape(places, (*lead, *size))


def _starts(shift: Tensor, n: int, wanted: int, taps: int) -> Tensor:
    """Where each plane's windows start along a dim: (planes, wanted)."""
    layout = shift._layout
    end = constant(np.full((1, 1), n - taps, np.int64), layout.device)
    if wanted == 1:
        return T.expand(end, (layout.shape[0], 1))
    alpha = float(layout.dtype.np.type(n - taps) / layout.dtype.np.type(wanted - 1))
    k = T.arange(wanted - 1, dtype=layout.dtype, device=layout.device)
    first = T.to_dtype(T.trunc(shift * alpha), dtypes.int64)
    starts = T.to_dtype(T.trunc((shift + k) * alpha), dtypes.int64) - first
    return T.cat([starts, T.expand(end, (layout.shape[0], 1))], 1)


def _fractional(nd: int) -> None:
    name = f"fractional_max_pool{nd}d"

    def pool(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
             return_indices: Bool = False, _random_samples: OptTensor = None) -> Any:  # fmt: skip
        layout = input._layout
        if output_size is None and output_ratio is None:
            raise ValueRangeError(
                f"{name} requires specifying either an output_size or an output_ratio"
            )
        if layout.ndim not in (nd + 1, nd + 2) or 0 in layout.shape[layout.ndim - nd - 1 :]:
            raise ShapeError(
                f"{name}: Expected {nd + 1}D or {nd + 2}D tensor with non-empty planes, but got "
                f"{tuple(layout.shape)}"
            )
        if layout.dtype.kind != "f":
            raise MissingFeature.of_dtype(name, layout.dtype, "cast to float")
        kernel = per_dim(name, "kernel_size", kernel_size, nd)
        size = _fractional_size(name, nd, layout, output_size, output_ratio)
        for n, k, o in zip(layout.shape[layout.ndim - nd :], kernel, size, strict=True):
            if k <= 0 or o <= 0 or o + k - 1 > n:
                raise ShapeError(
                    f"{name}: pool size {kernel} too large relative to input size "
                    f"{tuple(layout.shape[layout.ndim - nd :])}, or output size {size} not positive"
                )
        planes = (
            1 if layout.ndim == nd + 1 else layout.shape[0],
            layout.shape[layout.ndim - nd - 1],
        )
        drawn = _random_samples
        if drawn is None:
            drawn = T.rand((*planes, nd), dtype=layout.dtype, device=layout.device)
        given = tuple(drawn._layout.shape)
        fits = len(given) == 3 and given[0] >= planes[0] and given[1:] == (planes[1], nd)
        if not fits or drawn._layout.dtype is not layout.dtype:
            raise ShapeError(
                f"{name}: Expect _random_samples of shape {(*planes, nd)} and {layout.dtype}, got "
                f"{given} and {drawn._layout.dtype}"
            )
        drawn = T.narrow(drawn, 0, 0, planes[0])
        both = T.fractional_windows(input, kernel, size, drawn)
        return both if return_indices else both[0]

    pool.__doc__ = f"""The maximum of windows of ``kernel_size`` whose places are drawn at random.

    Args:
        input (Tensor): ``(N, C, ...)`` or ``(C, ...)`` with {nd} spatial dims
        kernel_size (int or tuple): the windows' size
        output_size (int or tuple): how many windows, or
        output_ratio (float or tuple): the same as a part of the input's size
        return_indices (bool): also which element of the plane each maximum was

    Graham, "Fractional max-pooling" (2014).

    >>> torch.nn.functional.{name}(torch.ones({(1, *[5] * nd)}), 2, 3).shape
    torch.Size({[1, *[3] * nd]})
    """
    result = composite(method=False, out=False, name=name, namespace="nn.functional")(pool)

    def with_indices(
        input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: OptTensor = None,
    ) -> Any:  # fmt: skip
        """The same, always with the indices."""
        return result(input, kernel_size, output_size, output_ratio, True, _random_samples)

    expose(f"{F}{name}_with_indices", with_indices)


def _fractional_size(
    op: str, nd: int, layout: Layout, output_size: _Any, output_ratio: _Any
) -> tuple[int, ...]:
    if output_size is not None:
        return per_dim(op, "output_size", output_size, nd)
    given = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * nd
    if len(given) != nd:
        raise ValueRangeError(
            f"{op} requires output_ratio to either be a single number or a tuple of {nd}"
        )
    if not all([isinstance(r, (int, float)) for r in given]):
        raise ArgumentError(f"{op}: output_ratio must be numbers, got {output_ratio!r}")
    spatial = layout.shape[layout.ndim - nd :]
    return tuple([int(n * r) for n, r in zip(spatial, given, strict=True)])


for _nd in (1, 2, 3):
    _max_unpool(_nd)
    _lp_pool(_nd)
for _nd in (2, 3):
    _fractional(_nd)
