"""``grid_sample`` and ``affine_grid``: images sampled at any places, as spatial transformers do."""

from __future__ import annotations

import itertools
import math
from typing import Any as _Any

from antorcha.core import dtypes, modes
from antorcha.core.device import backend
from antorcha.core.hooks import hooks
from antorcha.errors import MissingFeature, ShapeError, ValueRangeError, operand, warn
from antorcha.lang.layer_kernels import GridSample
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, Str, Tensor
from antorcha.runtime.memory.layout import Layout

SAMPLING = ("bilinear", "nearest", "bicubic")
PADDING = ("zeros", "border", "reflection")


def _align(align_corners: bool | None) -> bool:
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details."
        )
    return bool(align_corners)


# ------------------------------------------------------------------------------------ grid_sample
@composite(method=False, out=False, namespace="nn.functional")
def grid_sample(
    input: Tensor, grid: Tensor, mode: Str = "bilinear", padding_mode: Str = "zeros",
    align_corners: Bool = None,
):  # fmt: skip
    """The values of images at the places that ``grid`` lists.

    Args:
        input (Tensor): images ``(N, C, H, W)`` or volumes ``(N, C, D, H, W)``
        grid (Tensor): places ``(N, ..., 2)`` as (x, y), or ``(N, ..., 3)`` as (x, y, z), from -1
            (left, top, front) to 1
        mode (str): ``'bilinear'``, ``'nearest'`` or ``'bicubic'`` (images only)
        padding_mode (str): what lies outside: ``'zeros'``, the ``'border'``, or a ``'reflection'``
        align_corners (bool): are -1 and 1 the centers of the outermost elements, and not their
            outer edges? Default: False

    Jaderberg et al., "Spatial transformer networks" (2015).

    >>> x, place = torch.tensor([[[[1., 2.], [3., 4.]]]]), torch.tensor([[[[0., -1.]]]])
    >>> torch.nn.functional.grid_sample(x, place, align_corners=True)
    tensor([[[[1.5000]]]])
    """
    if mode not in SAMPLING:
        raise ValueRangeError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in PADDING:
        raise ValueRangeError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    kinds = SAMPLING.index(mode), PADDING.index(padding_mode)
    return T.grid_sampler(input, grid, *kinds, _align(align_corners))


@composite(method=False, out=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int, align_corners: Bool
):
    """What ``nn.functional.grid_sample`` runs: the modes are numbers."""
    layout = input._layout
    _check_grid(layout, grid._layout, interpolation_mode)
    if not (0 <= interpolation_mode < 3 and 0 <= padding_mode < 3):
        raise ValueRangeError(
            f"grid_sampler(): interpolation_mode {interpolation_mode} and padding_mode "
            f"{padding_mode} must be 0, 1 or 2"
        )
    wide = layout.dtype if layout.dtype.itemsize >= 4 else dtypes.float32
    x, places = input, grid
    if wide is not layout.dtype:
        x, places = T.to_dtype(input, wide), T.to_dtype(grid, wide)
    own = getattr(backend(layout.device), "samples_grids", False)
    own = own and not modes.duals and not modes.batched
    sample = T.grid_sampled if own else _sampled
    result = sample(x, places, interpolation_mode, padding_mode, align_corners)
    return result if wide is layout.dtype else T.to_dtype(result, layout.dtype)


def _sampled(x: _Any, places: _Any, mode: int, padding: int, align: bool) -> _Any:
    """The same in ops that have derivatives of any order."""
    image = _Image(x, PADDING[padding], align)
    axes = [
        image.unnormalized(T.squeeze(T.narrow(places, -1, k, 1), -1), k)
        for k in range(x._layout.ndim - 2)
    ]
    return (_linear, _nearest, _cubic)[mode](image, axes)


@kernel(
    function=False, method=False, out=False, dense=("input", "grid"),
    node="GridSampler2DBackward0",
)  # fmt: skip
def grid_sampled(
    input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int, align_corners: Bool
):
    """``grid_sampler`` as one kernel."""
    what = GridSample("values", interpolation_mode, padding_mode, align_corners)
    return Planned(what, [((*input.shape[:2], *grid.shape[1:-1]), input.dtype)])


@grid_sampled.derivative
def _(g, input, grid, interpolation_mode, padding_mode, align_corners, needs, create):
    rest = interpolation_mode, padding_mode, align_corners
    if create:
        given = T.clone(input), T.clone(grid)  # where the walk back ends
        wanted = tuple([t for t, need in zip(given, needs, strict=True) if need])
        y = _sampled(*given, interpolation_mode, padding_mode, align_corners)
        found = iter(hooks.gradients(y, wanted, g))
        return [next(found) if need else None for need in needs]
    return (
        T.grid_sampled_images(g, grid, tuple(input._layout.shape[2:]), *rest) if needs[0] else None,
        T.grid_sampled_places(g, input, grid, *rest) if needs[1] else None,
    )


@kernel(function=False, method=False, out=False, dense=("grad", "grid"))
def grid_sampled_images(
    grad: Tensor, grid: Tensor, sizes: Any, interpolation_mode: Int, padding_mode: Int,
    align_corners: Bool,
):  # fmt: skip
    """The gradient of ``grid_sampled``'s images, whose spatial sizes are given."""
    what = GridSample("images", interpolation_mode, padding_mode, align_corners)
    return Planned(what, [((*grad.shape[:2], *sizes), grad.dtype)])


@kernel(function=False, method=False, out=False, dense=("grad", "input", "grid"))
def grid_sampled_places(
    grad: Tensor, input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int,
    align_corners: Bool,
):  # fmt: skip
    """The gradient of ``grid_sampled``'s places."""
    what = GridSample("places", interpolation_mode, padding_mode, align_corners)
    return Planned(what, [(tuple(grid.shape), grid.dtype)])


def _check_grid(layout: Layout, at: _Any, mode: int) -> None:
    what = f"grid_sampler(): input {operand(layout.shape)} and grid {operand(at.shape)}"
    if layout.ndim not in (4, 5) or layout.ndim != at.ndim:
        raise ShapeError(f"{what}: expected 4D or 5D input and grid with same number of dimensions")
    if layout.shape[0] != at.shape[0]:
        raise ShapeError(f"{what}: expected grid and input to have same batch size")
    if at.shape[-1] != layout.ndim - 2:
        raise ShapeError(f"{what}: expected grid to have size {layout.ndim - 2} in last dimension")
    if 0 in layout.shape[2:]:
        raise ShapeError(f"{what}: expected input to have non-empty spatial dimensions")
    if layout.dtype is not at.dtype:
        raise ShapeError(
            f"grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{layout.dtype} and grid has {at.dtype}"
        )
    if layout.dtype.kind != "f":
        raise MissingFeature(
            "grid_sampler(): not implemented for {0.dtype}; cast to float", reason="needs float",
            op="grid_sampler", operands=(layout,),
        )  # fmt: skip
    if mode == 2 and layout.ndim == 5:
        raise ShapeError("grid_sampler(): bicubic interpolation only supports 4D input")


class _Image:
    """The images' planes as rows, and how places outside are meant. Axis 0 is x, the last dim."""

    def __init__(self, x: _Any, padding: str, align: bool) -> None:
        shape = x._layout.shape
        self.sizes = tuple(reversed(shape[2:]))
        self.lead = tuple(shape[:2])  # (N, C)
        self.rows = T.reshape(x, (*self.lead, math.prod(self.sizes)))
        self.padding, self.align = padding, align

    def unnormalized(self, x: _Any, axis: int) -> _Any:
        """From -1 .. 1 to the numbers of elements."""
        n = self.sizes[axis]
        return (x + 1) * ((n - 1) / 2) if self.align else ((x + 1) * n - 1) / 2

    def padded(self, x: _Any, axis: int) -> _Any:
        """Places outside, moved to the border or reflected inside."""
        n = self.sizes[axis]
        if self.padding == "zeros":
            return x
        if self.padding == "reflection":
            low, span = (0.0, n - 1.0) if self.align else (-0.5, float(n))
            x = _reflected(x, low, span)
        inside = T.logical_and(T.gt(x, 0), T.lt(x, n - 1))  # where it moves, as PyTorch has it
        return T.where(inside, x, T.to_dtype(T.gt(x, 0), x._layout.dtype) * (n - 1))

    def at(self, places: list[_Any]) -> tuple[_Any, _Any]:
        """The elements at whole numbers of each axis, (N, C, ...), and which lie inside."""
        index: _Any = None
        inside: _Any = None
        for axis in reversed(range(len(places))):
            place, n = places[axis].detach(), self.sizes[axis]
            within = T.logical_and(T.ge(place, 0), T.le(place, n - 1))
            whole = T.to_dtype(T.where(within, place, T.zeros_like(place)), dtypes.int64)
            index = whole if index is None else index * n + whole
            inside = within if inside is None else T.logical_and(inside, within)
        shape = tuple(index._layout.shape)  # (N, ...)
        count = math.prod(shape[1:])
        flat = T.expand(T.reshape(index, (shape[0], 1, count)), (*self.lead, count))
        return T.reshape(T.gather(self.rows, 2, flat), (*self.lead, *shape[1:])), inside


def _reflected(x: _Any, low: float, span: float) -> _Any:
    """``x`` reflected at ``low`` and ``low + span`` until it lies between."""
    if span == 0:
        return T.zeros_like(x)
    far = T.abs(x - low)
    turns = T.floor(far.detach() / span)
    rest = far - turns * span
    odd = T.eq(T.remainder(turns, 2), 1)
    return T.where(odd, span - rest, rest) + low


def _taken(image: _Image, places: list[_Any], weight: _Any = None) -> _Any:
    """The elements there times their weight; nothing outside."""
    values, inside = image.at(places)
    one = T.ones_like(places[0]) if weight is None else weight
    return values * T.unsqueeze(T.where(inside, one, T.zeros_like(one)), 1)


def _linear(image: _Image, axes: list[_Any]) -> _Any:
    axes = [image.padded(x, k) for k, x in enumerate(axes)]
    low = [T.floor(x.detach()) for x in axes]
    parts = [x - f for x, f in zip(axes, low, strict=True)]
    total = None
    for corner in itertools.product((0, 1), repeat=len(axes)):
        weight = None
        for up, t in zip(corner, parts, strict=True):
            share = t if up else 1 - t
            weight = share if weight is None else weight * share
        part = _taken(image, [f + up for f, up in zip(low, corner, strict=True)], weight)
        total = part if total is None else total + part
    return total


def _nearest(image: _Image, axes: list[_Any]) -> _Any:
    places = [T.round(image.padded(x, k)) for k, x in enumerate(axes)]
    weight = sum(places) * 0 + 1  # the places' gradient is zero, and PyTorch gives it
    return _taken(image, places, weight)


def _cubic(image: _Image, axes: list[_Any]) -> _Any:
    low = [T.floor(x.detach()) for x in axes]
    weights = [_cubic_weights(x - f) for x, f in zip(axes, low, strict=True)]
    total = None
    for row, column in itertools.product(range(4), repeat=2):
        places = [image.padded(f + (k - 1), axis)
                  for axis, (f, k) in enumerate(zip(low, (column, row), strict=True))]  # fmt: skip
        part = _taken(image, places, weights[0][column] * weights[1][row])
        total = part if total is None else total + part
    return total


def _cubic_weights(t: _Any) -> list[_Any]:
    """Of the four elements around a place (Keys, 1981)."""
    a = -0.75

    def near(x: _Any) -> _Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: _Any) -> _Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@grid_sampler.samples
def _(make):
    for padding in range(3):
        yield make(2, 3, 4, 5), make(2, 3, 2, 2) * 1.5, 0, padding, False
    yield make(2, 3, 4, 5), make(2, 3, 2, 2) * 1.5, 2, 0, False
    yield make(2, 3, 4, 5), make(2, 3, 2, 2) * 1.5, 1, 0, True
    yield make(1, 2, 4, 5, 3), make(1, 3, 2, 2, 3), 0, 0, True
    yield (make(2, 3, 4, 5), make(1, 3, 2, 2), 0, 0, True), {}, RuntimeError, "same batch size"
    yield (make(2, 3, 4, 5), make(2, 3, 2, 3), 0, 0, True), {}, RuntimeError, "size 2 in last"


# ------------------------------------------------------------------------------------ affine_grid
@composite(method=False, out=False, namespace="nn.functional")
def affine_grid(theta: Tensor, size: Any, align_corners: Bool = None):
    """The grid that :func:`grid_sample` wants, of affine maps.

    Args:
        theta (Tensor): matrices ``(N, 2, 3)`` for images, ``(N, 3, 4)`` for volumes
        size (torch.Size): of the images to make: ``(N, C, H, W)`` or ``(N, C, D, H, W)``
        align_corners (bool): as in :func:`grid_sample`. Default: False

    >>> identity = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    align, layout, size = _align(align_corners), theta._layout, tuple([int(n) for n in size])
    if layout.dtype.kind != "f":
        raise ValueRangeError(f"Expected theta to have floating point type, but got {layout.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise MissingFeature(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if layout.ndim != 3 or tuple(layout.shape[1:]) != (dims, dims + 1):
        raise ValueRangeError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {layout.shape}."
        )
    if min(size) <= 0:
        raise ValueRangeError(f"Expected non-zero, positive output size. Got {size}")
    return T.affine_grid_generator(theta, size, align)


@composite(method=False, out=False)
def affine_grid_generator(theta: Tensor, size: Any, align_corners: Bool):
    """What ``nn.functional.affine_grid`` runs."""
    layout = theta._layout
    spatial = tuple(size[2:])
    dims = len(spatial)
    if layout.ndim != 3 or tuple(layout.shape) != (size[0], dims, dims + 1):
        raise ShapeError(
            f"affine_grid_generator: expected theta of shape {(size[0], dims, dims + 1)} for size "
            f"{tuple(size)}, got {tuple(layout.shape)}"
        )
    columns = []
    for axis in reversed(range(dims)):
        n = spatial[axis]
        line = T.linspace(-1, 1, n, dtype=layout.dtype, device=layout.device) if n > 1 else (
            T.zeros((1,), dtype=layout.dtype, device=layout.device)
        )  # fmt: skip
        if not align_corners:
            line = line * ((n - 1) / n)
        shape = [1] * dims
        shape[axis] = n
        columns.append(T.expand(T.reshape(line, tuple(shape)), spatial))
    columns.append(T.ones(spatial, dtype=layout.dtype, device=layout.device))
    base = T.reshape(T.stack(columns, -1), (1, -1, dims + 1))
    result = T.matmul(base, T.transpose(theta, 1, 2))  # (N, places, dims)
    return T.reshape(result, (size[0], *spatial, dims))


@affine_grid_generator.samples
def _(make):
    yield make(2, 2, 3), (2, 1, 3, 4), True
    yield make(2, 3, 4), (2, 1, 3, 4, 2), False
    yield (make(2, 3, 3), (2, 1, 3, 4), True), {}, RuntimeError, "expected theta of shape"
