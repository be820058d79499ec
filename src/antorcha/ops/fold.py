"""``nn.functional.unfold`` and ``fold``: sliding blocks of images as columns, and back."""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.errors import ArgumentError, ShapeError
from antorcha.lang.kernels import Unfold
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Ints, Tensor

F = "nn.functional."


def _count(n: int, k: int, d: int, p: int, s: int) -> int:
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def _counts(size: _Any, *geometry: _Any) -> tuple[int, ...]:
    """How many blocks there are along each dim."""
    return tuple([_count(*each) for each in zip(size, *geometry, strict=True)])


@kernel(function=False, method=False, out=False, node="Im2ColBackward0", batching="images")
def im2col(input: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints):
    """Columns (N, C * taps, blocks) of images (N, C, H, W)."""
    n, c, *sizes = input.shape
    blocks = _counts(sizes, kernel_size, dilation, padding, stride)
    shape = (n, c * math.prod(kernel_size), math.prod(blocks))
    what = Unfold(kernel_size, dilation, padding, stride, blocks)
    return Planned(what, [(shape, input.dtype)])


@im2col.derivative
def _(g, input_layout, kernel_size, dilation, padding, stride):
    size = tuple(input_layout.shape[2:])
    return T.col2im(g, size, kernel_size, dilation, padding, stride)


@kernel(function=False, method=False, out=False, node="Col2ImBackward0", batching="images")
def col2im(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
):
    """Images of ``output_size`` that the columns' blocks add up to."""
    n, rows, _ = input.shape
    c = rows // math.prod(kernel_size)
    blocks = _counts(output_size, kernel_size, dilation, padding, stride)
    what = Unfold(kernel_size, dilation, padding, stride, blocks, back=True)
    return Planned(what, [((n, c, *output_size), input.dtype)])


@col2im.derivative
def _(g, kernel_size, dilation, padding, stride):
    return T.im2col(g, kernel_size, dilation, padding, stride)


def _pair(op: str, name: str, value: _Any, least: int) -> tuple[int, ...]:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) not in (1, 2) or not all([hasattr(v, "__index__") for v in given]):
        raise ArgumentError(f"{op}: {name} must be an int or two ints, got {value!r}")
    if min(given) < least:
        raise ShapeError(f"{op}: {name} should be at least {least}, but got {name}={given}")
    return given if len(given) == 2 else given * 2


def _geometry(op: str, kernel_size: _Any, dilation: _Any, padding: _Any, stride: _Any) -> _Any:
    return (
        _pair(op, "kernel_size", kernel_size, 1), _pair(op, "dilation", dilation, 1),
        _pair(op, "padding", padding, 0), _pair(op, "stride", stride, 1),
    )  # fmt: skip


def _checked_blocks(op: str, size: _Any, given: _Any) -> tuple[int, ...]:
    kernel, dilation, padding, _ = given
    found = _counts(size, *given)
    if min(found) < 1:
        raise ShapeError(
            f"{op}: Given spatial size {tuple(size)}, kernel_size={kernel}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as "
            f"{tuple(found)}, but its components must be at least one."
        )
    return found


@composite(function=False, method=False, out=False, aliases=(F + "unfold",))
def unfold_images(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
):
    """The sliding blocks of images (N, C, H, W) as columns: (N, C * taps, blocks).

    >>> torch.nn.functional.unfold(torch.arange(4.).reshape(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """
    layout = input._layout
    if layout.ndim not in (3, 4):
        raise ShapeError(
            f"unfold: Expected 3D or 4D (batch mode) tensor for input, but got: "
            f"{list(layout.shape)}"
        )
    given = _geometry("unfold", kernel_size, dilation, padding, stride)
    _checked_blocks("unfold", layout.shape[-2:], given)
    if layout.ndim == 4:
        return T.im2col(input, *given)
    return T.squeeze(T.im2col(T.unsqueeze(input, 0), *given), 0)


@composite(method=False, namespace="nn.functional", out=False)
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
):
    """Adds blocks, given as columns, up to images of ``output_size``: the transpose of unfold.

    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    layout = input._layout
    if layout.ndim not in (2, 3):
        raise ShapeError(
            f"fold: Expected 2D or 3D (batch mode) tensor for input, but got: {list(layout.shape)}"
        )
    size = _pair("fold", "output_size", output_size, 1)
    given = _geometry("fold", kernel_size, dilation, padding, stride)
    rows, columns = layout.shape[-2:]
    if rows % math.prod(given[0]):
        raise ShapeError(
            f"fold: Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={rows} and kernel_size={given[0]}."
        )
    blocks = _checked_blocks("fold", size, given)
    if math.prod(blocks) != columns:
        raise ShapeError(
            f"fold: Given output_size={size}, kernel_size={given[0]}, dilation={given[1]}, "
            f"padding={given[2]}, stride={given[3]}, expected size of input's dimension 2 to match "
            f"the calculated number of sliding blocks {blocks[0]} * {blocks[1]} = "
            f"{math.prod(blocks)}, but got input.size(2)={columns}."
        )
    if layout.ndim == 3:
        return T.col2im(input, size, *given)
    return T.squeeze(T.col2im(T.unsqueeze(input, 0), size, *given), 0)


@unfold_images.samples
def _(make):
    yield make(2, 3, 4, 5), (2, 3), 1, 1, 2


@fold.samples
def _(make):
    yield make(2, 12, 9), (4, 4), 2
    yield (make(2, 36, 15), (6, 6), 3), {}, RuntimeError, "sliding blocks 4 * 4 = 16"
