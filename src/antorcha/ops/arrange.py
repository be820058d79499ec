"""The same elements in other places: flips, rolls, repeats, triangles, diagonals."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.core.shapes import normalize_dim, normalize_dims, suggests_channels_last
from antorcha.errors import DtypeError, OutOfRange, ShapeError
from antorcha.lang.kernels import Arrange
from antorcha.ops.kinds.concatenation import Copy, Pieces, pieces
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import held
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import (
    Any,
    Dim,
    Int,
    Ints,
    Shape,
    StaticNumber,
    Tensor,
)
from antorcha.ops.memory import constant, strides_of_format
from antorcha.ops.views import copied
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


# ----------------------------------------------------------------------------- flips and rolls
@kernel(out=False, batching="numbered")
def flip(input: Tensor, dims: Ints):
    """A copy with the order of the elements reversed along ``dims``.

    >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    at = normalize_dims(dims, input.ndim, op="flip") if dims else ()
    strides = strides_of_format(input.shape, input.strides, "preserve")
    out = L.layout(input.shape, strides, input.dtype, input.device)
    return Planned(Arrange(tuple(range(input.ndim)), tuple(at) if input.ndim else ()), [out])


flip.derivative(lambda g, dims: T.flip(g, dims))


@flip.samples
def _(make):
    yield make(3, 4), (0,)
    yield make(2, 3, 4), (0, -1)
    yield make(3, 37), (1,)
    yield make(5, 19).t(), (0, 1)
    yield make(3), ()
    yield make(0, 3), (0, 1)
    yield (make(3), (1,)), {}, IndexError, "out of range"
    yield (make(3, 3), (1, 1)), {}, RuntimeError, ""


@composite(out=False, samples=of_shapes((2, 3)))
def fliplr(input: Tensor):
    """A copy with the columns in reverse order.

    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input._layout.ndim < 2:
        raise ShapeError("fliplr: Input must be >= 2-d.")
    return T.flip(input, (1,))


@composite(out=False, samples=of_shapes((2, 3)))
def flipud(input: Tensor):
    """A copy with the rows in reverse order.

    >>> torch.flipud(torch.tensor([1, 2]))
    tensor([2, 1])
    """
    if input._layout.ndim < 1:
        raise ShapeError("flipud: Input must be >= 1-d.")
    return T.flip(input, (0,))


@kernel(out=False, batching="numbered")
def rot90(input: Tensor, k: Int = 1, dims: Ints = (0, 1)):
    """The tensor turned by 90 degrees ``k`` times, from the first of ``dims`` to the second.

    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    ndim = input.ndim
    if len(dims) != 2:
        raise ShapeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise ShapeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = [normalize_dim(d, ndim, op="rot90") for d in dims]
    if a == b:
        raise ShapeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    strides = list(strides_of_format(input.shape, input.strides, "preserve"))
    shape = list(input.shape)
    if k % 4 == 0:
        strides = list(strides_of_format(shape, (), "contiguous"))
    elif k % 2:
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    out = L.layout(tuple(shape), tuple(strides), input.dtype, input.device)
    # a quarter turn is a flip of the second dim (three quarters: of the first), then a transpose
    backwards: tuple[int, ...] = ((), (b,), (a, b), (a,))[k % 4]
    order = list(range(ndim))
    if k % 2:
        order[a], order[b] = b, a
    return Planned(Arrange(tuple(order), backwards), [out])


rot90.derivative(lambda g, k, dims: T.rot90(g, -k, dims))


@rot90.samples
def _(make):
    yield (make(2, 3),)
    yield make(2, 3), 3
    yield make(2, 3, 4), 2, (1, 2)
    yield make(2, 0), 1
    yield make(3, 19, 2), -1, (1, 0)


@composite(out=False)
def roll(input: Tensor, shifts: Ints, dims: Ints = ()):
    """A copy rolled along ``dims``: what leaves at one end enters at the other. Without ``dims``,
    the flattened tensor is rolled.

    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    return T.rolled(input if dims else T.contiguous(input), shifts, dims)


@pieces(function=False, method=False, out=False, node="roll")
def rolled(input: Tensor, shifts: Ints, dims: Ints):
    """What ``roll`` runs; without dims the elements lie in order."""
    if (not dims and len(shifts) != 1) or (dims and len(dims) != len(shifts)):
        raise ShapeError(
            f"roll: shifts and dimensions must align. shifts: {len(shifts)}, dims: {len(dims)}"
        )
    shape = tuple(input.shape)
    if not dims:
        n = input.numel
        flat = L.contiguous(shape, input.dtype, input.device)
        by = shifts[0] % n if n else 0
        return Pieces(flat, lambda out: blocks((n,), (1,), (1,), {0: by}))
    if not shape:
        raise OutOfRange(f"roll: Dimension specified as {dims[0]} but tensor has no dimensions")
    moved: dict[int, int] = {}
    for shift, dim in zip(shifts, dims, strict=True):
        d = normalize_dim(dim, len(shape), op="roll")
        moved[d] = (moved.get(d, 0) + shift) % max(shape[d], 1)
    out = L.contiguous(shape, input.dtype, input.device)
    return Pieces(out, lambda out: blocks(shape, input.strides, out.strides, moved))


@rolled.batches
def _(batch, run, input, shifts, dims):
    if dims:
        ndim = input._layout.ndim
        return run(
            batch.whole(input), shifts, tuple([normalize_dim(d, ndim, op="roll") + 1 for d in dims])
        )
    flat = T.flatten(batch.whole(input), 1)
    return T.view(run(flat, shifts, (1,)), (batch.size, *input._layout.shape))


def blocks(shape: tuple[int, ...], read: _Any, write: _Any, moved: dict[int, int]) -> list[Copy]:
    """Two blocks for every rolled dim: the elements that stay in order and those that wrap."""
    result = [Copy(0, shape, tuple(read), 0, tuple(write), 0)]
    for d, by in moved.items():
        if by == 0:
            continue
        cut_at = shape[d] - by
        halves = []
        for each in result:
            for size, start, goes_to in ((cut_at, 0, by), (by, cut_at, 0)):
                part = (*each.shape[:d], size, *each.shape[d + 1 :])
                halves.append(each._replace(
                    shape=part, read_at=each.read_at + start * read[d],
                    write_at=each.write_at + goes_to * write[d],
                ))  # fmt: skip
        result = halves
    return result


@rolled.derivative
def _(g, shifts, dims):
    back = tuple([-s for s in shifts])
    return T.roll(T.contiguous(g), back, dims)


@roll.samples
def _(make):
    yield make(3, 4), 1
    yield make(3, 4), (1, -2), (0, 1)
    yield make(3, 4), 5, 0
    yield (make(3), (1, 2)), {}, RuntimeError, "must align"


# ------------------------------------------------------------------------------------- repeats
@pieces(function=False, out=False)
def repeat(input: Tensor, repeats: Shape):
    """Copies of the tensor side by side, so many along each dim.

    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    lead = len(repeats) - input.ndim
    if lead < 0:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: {len(repeats)} repeats for shape {tuple(input.shape)}"
        )
    if any(r < 0 for r in repeats):
        raise ShapeError(f"repeat: Trying to create tensor with negative dimension: {repeats}")
    sizes = (1,) * lead + tuple(input.shape)
    read = (0,) * lead + tuple(input.strides)
    shape = tuple([n * r for n, r in zip(sizes, repeats, strict=True)])

    def copies(out: Layout) -> list[Copy]:
        steps = [n * s for n, s in zip(sizes, out.strides, strict=True)]
        return [Copy(0, (*repeats, *sizes), (0,) * len(sizes) + read, 0,
                     (*steps, *out.strides), 0)]  # fmt: skip

    return Pieces(L.contiguous(shape, input.dtype, input.device), copies)


@repeat.derivative
def _(g, input_layout, repeats):
    lead = len(repeats) - input_layout.ndim
    sizes = (1,) * lead + tuple(input_layout.shape)
    folded = [part for n, r in zip(sizes, repeats, strict=True) for part in (r, n)]
    if 0 in repeats:
        return T.full_layout(tuple(input_layout.shape), 0, input_layout.dtype, input_layout.device)
    total = T.sum(T.reshape(g, folded), tuple(range(0, 2 * len(sizes), 2))) if sizes else g
    return T.reshape(total, tuple(input_layout.shape))


@repeat.batches
def _(batch, run, input, repeats):
    return run(batch.beside(input, len(repeats)), (1, *repeats))


@repeat.samples
def _(make):
    yield make(2, 3), (2, 2)
    yield make(2), (3, 1, 2)
    yield make(), (2,)
    yield (make(2, 3), (2,)), {}, RuntimeError, "can not be smaller"


@composite(out=False)
def tile(input: Tensor, dims: Shape):
    """``repeat`` that puts ones in front of ``dims`` when they are fewer than the tensor's.

    >>> torch.tile(torch.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    return T.repeat(input, (1,) * (input._layout.ndim - len(dims)) + tuple(dims))


@tile.samples
def _(make):
    yield make(2, 3), (2,)
    yield make(2), (2, 2)


_MOST_BYTES = 1 << 47
"""More than this no process can address."""


@composite(out=False)
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None
):
    """Each element repeated in place, along a dim or (without one) of the flattened tensor.

    ``repeats`` is a number or an integer tensor, one count per element; alone, a tensor of counts
    gives the index of each repeated element.

    >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    >>> torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([3, 1]))
    tensor([1, 1, 1, 2])
    """
    if repeats is None:
        return T.repeat_places(input)
    if dim is None:
        input, dim = T.flatten(input), 0
    layout = input._layout
    d = normalize_dim(dim, layout.ndim, op="repeat_interleave")
    if isinstance(repeats, (list, tuple)):
        repeats = constant(np.array(repeats, np.int64), layout.device)
    if isinstance(repeats, TensorType) and repeats._layout.numel == 1:
        repeats = repeats.item()
    if not isinstance(repeats, TensorType):
        if repeats < 0:
            raise ShapeError(f"Repeats must be non-negative, not {repeats}")
        shape = tuple(layout.shape)
        wide = (*shape[: d + 1], repeats, *shape[d + 1 :])
        if layout.numel * repeats * layout.itemsize > _MOST_BYTES:
            raise ShapeError(
                f"repeat_interleave: {repeats} times {shape} {layout.dtype.name} is more than a "
                "tensor can hold"
            )
        spread = T.expand(T.unsqueeze(input, d + 1), wide)
        return copied(spread, (*shape[:d], wide[d] * repeats, *shape[d + 1 :]))
    if repeats._layout.ndim > 1:
        raise ShapeError("repeats must be 0-dim or 1-dim tensor")
    n = layout.shape[d] if layout.ndim else 1
    if repeats._layout.numel != n:
        raise ShapeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats._layout.numel} and input.size({d}) = {n}"
        )
    return T.index_select(input, d, T.repeat_places(repeats))


@repeat_interleave.samples
def _(make):
    yield make(2, 3), 2
    yield make(2, 3), 3, 1
    yield make(2, 3), make.ints((3,), 4), 1


@composite(function=False, method=False, out=False)
def repeat_places(repeats: Tensor):
    """The index of each element, as often as its count says: how many of the others end before."""
    layout = repeats._layout
    if layout.dtype.name not in ("int32", "int64"):
        raise DtypeError(f"repeat_interleave: repeats has to be Long or Int, not {layout.dtype}")
    if layout.ndim != 1:
        raise ShapeError("repeat_interleave only accept 1D vector as repeat")
    if layout.numel == 0:
        return T.clone(repeats)
    if T.amin(repeats).item() < 0:
        raise ShapeError("repeat_interleave: repeats can not be negative")
    ends = T.cumsum(repeats, 0)
    total = T.select(ends, 0, -1).item()
    ending = T.full_layout((total + 1,), 0, layout.dtype, layout.device)
    one = T.expand(T.full_layout((), 1, layout.dtype, layout.device), (layout.numel,))
    places = T.cumsum(T.scatter_add(ending, 0, ends, one), 0, dtype=layout.dtype)
    return T.clone(T.slice(places, 0, 0, total))


# ----------------------------------------------------------------------- triangles, diagonals
def _triangle(input: _Any, op: str, side: str, diagonal: int) -> Planned:
    if input.ndim < 2:
        raise ShapeError(f"{op}: input tensor must have at least 2 dimensions")
    out = L.contiguous(tuple(input.shape), input.dtype, input.device)
    order = tuple(range(input.ndim))
    return Planned(Arrange(order, triangle=side, diagonal=diagonal), [out])


@kernel(inplace=True, batching="leading")
def tril(input: Tensor, diagonal: Int = 0):
    """The lower triangle of the last two dims, up to the ``diagonal``-th diagonal; zeros above.

    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle(input, "tril", "lower", diagonal)


@kernel(inplace=True, batching="leading")
def triu(input: Tensor, diagonal: Int = 0):
    """The upper triangle of the last two dims, from the ``diagonal``-th diagonal; zeros below.

    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle(input, "triu", "upper", diagonal)


tril.derivative(lambda g, diagonal: T.tril(g, diagonal))
triu.derivative(lambda g, diagonal: T.triu(g, diagonal))


@tril.samples
@triu.samples
def _(make):
    yield (make(3, 4),)
    yield make(2, 3, 3), -1
    yield make(2, 3, 3), 1
    yield make(20, 37), 1
    yield make(20, 37), -1
    yield make(2, 5, 3).permute(2, 0, 1), 0
    yield make(3, 3), 100
    yield make(3, 3), -100
    yield make(0, 3), 1
    yield (make.ints((17, 19), 9, dtype=dtypes.uint8),)
    yield (make(3),), {}, RuntimeError, "at least 2 dimensions"


@pieces(method=False, out=False, batching="leading")
def constant_pad_nd(input: Tensor, pad: Ints, value: StaticNumber = 0):
    """``input`` with ``value`` around it: ``pad`` has (before, after) for each dim, the last first;
    negative numbers take elements away.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html.

    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 2), 7)
    tensor([7, 1, 2, 7, 7])
    """
    if len(pad) % 2:
        raise ShapeError(f"pad: Padding length must be divisible by 2, but got {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise ShapeError(
            "pad: Padding length should be less than or equal to two times the input dimension "
            f"but got padding length {len(pad)} and input of dimension {input.ndim}"
        )
    shape, kept = list(input.shape), list(input.shape)
    read_at, firsts = 0, [0] * input.ndim
    for d, before, after in zip(reversed(range(input.ndim)), pad[::2], pad[1::2]):
        n = input.shape[d]
        shape[d] = n + before + after
        if shape[d] < 0:
            raise ShapeError(
                f"pad: the input size {n} plus padding {before} and {after} resulted in a negative "
                f"output size, which is invalid. Check dimension {d} of your input."
            )
        kept[d] = n + min(before, 0) + min(after, 0)
        if kept[d] < 0:
            raise ShapeError(
                f"pad: {-min(before, 0) - min(after, 0)} elements cannot be taken away from "
                f"dimension {d} of size {n}: narrow(): length must be non-negative"
            )
        read_at += max(-before, 0) * input.strides[d]
        firsts[d] = max(before, 0)

    def copies(out: Layout) -> list[Copy]:
        write_at = sum([at * step for at, step in zip(firsts, out.strides, strict=True)])
        return [Copy(0, tuple(kept), input.strides, read_at, out.strides, write_at)]

    last = suggests_channels_last(input.shape, input.strides)
    strides = strides_of_format(tuple(shape), (), "channels_last" if last else "contiguous")
    rest = held("pad", input.dtype, value)
    return Pieces(L.layout(tuple(shape), strides, input.dtype, input.device), copies, rest)


@constant_pad_nd.derivative
def _(g, pad):
    return T.constant_pad_nd(g, tuple([-n for n in pad]))


@constant_pad_nd.samples
def _(make):
    yield make(3), (1, 2)
    yield make(3, 4), (1, 0, 2, 1), 2.5
    yield make(2, 3, 4), (-1, 2), 1
    yield make(3, 4).t(), (0, 1, -1, -1)


@constant_pad_nd.errors
def _(make):
    yield (make(3), (1, 2, 3)), {}, RuntimeError, "divisible by 2"
    yield (make(3), (1, 2, 3, 4)), {}, RuntimeError, "less than or equal to two times"
    yield (make(3), (-2, -2)), {}, RuntimeError, "negative"


@pieces(out=False)
def diag_embed(input: Tensor, offset: Int = 0, dim1: Dim = -2, dim2: Dim = -1):
    """Zeros with the last dim of ``input`` on the diagonal of dims ``dim1`` and ``dim2``.

    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = input.ndim + 1
    a = normalize_dim(dim1, ndim, op="diag_embed")
    b = normalize_dim(dim2, ndim, op="diag_embed")
    if a == b:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    shape = tuple([side if d in (a, b) else next(rest) for d in range(ndim)])

    def copies(out: Layout) -> list[Copy]:
        kept = [s for d, s in enumerate(out.strides) if d not in (a, b)]
        at = offset * out.strides[b] if offset >= 0 else -offset * out.strides[a]
        write = (*kept, out.strides[a] + out.strides[b])
        return [Copy(0, input.shape, input.strides, 0, write, at)]

    return Pieces(L.contiguous(shape, input.dtype, input.device), copies, rest=0)


diag_embed.derivative(lambda g, offset, dim1, dim2: T.diagonal(g, offset, dim1, dim2))


@diag_embed.batches
def _(batch, run, input, offset, dim1, dim2):
    a, b = [normalize_dim(d, input._layout.ndim + 1, op="diag_embed") + 1 for d in (dim1, dim2)]
    return run(batch.whole(input), offset, a, b)


@diag_embed.samples
def _(make):
    yield (make(3),)
    yield make(2, 3), 1
    yield make(2, 3), -1, 0, 2


@composite()
def diag(input: Tensor, diagonal: Int = 0):
    """A vector's matrix with it on the diagonal; a matrix's diagonal, as a copy.

    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    ndim = input._layout.ndim
    if ndim not in (1, 2):
        raise ShapeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 1:
        return T.diag_embed(input, diagonal)
    return T.diagonal_copy(input, diagonal)


@composite(out=False)
def diagflat(input: Tensor, offset: Int = 0):
    """A matrix with the elements of ``input``, in order, on a diagonal.

    >>> torch.diagflat(torch.tensor([[1, 2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return T.diag_embed(T.reshape(input, (-1,)), offset)


@diagflat.samples
def _(make):
    yield (make(2, 2),)
    yield make(3), 1


@diag.samples
def _(make):
    yield (make(3),)
    yield make(3, 4), 1
    yield (make(2, 2, 2),), {}, RuntimeError, "1D or 2D"
