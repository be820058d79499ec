"""Tensors joined to one: cat, stack and their relatives, grids and products of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.device import as_device
from antorcha.core.shapes import (
    broadcast_shapes,
    channels_last_strides,
    contiguous_strides,
    normalize_dim,
    suggests_channels_last,
    view_strides,
)
from antorcha.errors import DtypeError, ShapeError, ValueRangeError, warn
from antorcha.ops.kinds.arguments import listed
from antorcha.ops.kinds.concatenation import Copy, Pieces, pieces
from antorcha.ops.kinds.operands import common_device, common_dtype
from antorcha.ops.kinds.record import Composite, Op, T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Bool, Dim, Int, Str, Tensor, Tensors
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout


# ------------------------------------------------------------------------------------ cat, stack
def skipped(layout: Layout) -> bool:
    """An empty 1-dim tensor fits anything in ``cat``: an old rule that programs rely on."""
    return tuple(layout.shape) == (0,)


def cat_dim(tensors: _Any, dim: int) -> int:
    some = next((t for t in tensors if not skipped(t)), tensors[0])
    return normalize_dim(dim, some.ndim, op="cat")


def common_format(shape: tuple[int, ...], tensors: _Any) -> tuple[int, ...]:
    """Channels last if all operands are, else row-major."""
    if len(shape) in (4, 5) and all(suggests_channels_last(t.shape, t.strides) for t in tensors):
        return tuple(channels_last_strides(shape))
    return tuple(contiguous_strides(shape))


@pieces(aliases=("concat", "concatenate"), method=False, batching="listed")
def cat(tensors: Tensors, dim: Dim = 0):
    """The tensors one after the other along ``dim``; their other sizes must agree.

    The result has the dtype that all promote to; tensors of shape (0,) are skipped.

    >>> torch.cat([torch.tensor([[1, 2]]), torch.tensor([[3, 4]])])
    tensor([[1, 2],
            [3, 4]])
    """
    if not tensors:
        raise ValueRangeError("cat: expected a non-empty list of Tensors")
    for k, layout in enumerate(tensors):
        if layout.ndim == 0:
            raise ShapeError(
                f"cat: zero-dimensional tensor (at position {k}) cannot be concatenated; "
                "torch.stack takes numbers, and .reshape(1) makes it 1-dimensional"
            )
    device = common_device("cat", tensors)
    dtype = common_dtype(tensors)
    kept = [k for k, layout in enumerate(tensors) if not skipped(layout)]
    d = cat_dim(tensors, dim)
    if not kept:
        return Pieces(L.contiguous((0,), dtype, device), lambda out: [])
    first = tensors[kept[0]]
    total = 0
    for k in kept:
        layout = tensors[k]
        if layout.ndim != first.ndim:
            raise ShapeError(
                "cat: Tensors must have same number of dimensions: got {one} and {two} (shapes "
                "{0.shape} and {1.shape})",
                reason="same dims", op="cat", operands=(first, layout), one=first.ndim,
                two=layout.ndim,
            )  # fmt: skip
        for e in range(layout.ndim):
            if e != d and layout.shape[e] != first.shape[e]:
                raise ShapeError(
                    "cat: Sizes of tensors must match except in dimension {dim}. Expected size "
                    "{expected} but got size {got} for tensor number {number} in the list (shapes "
                    "{0.shape} and {1.shape})",
                    reason="cat", op="cat", operands=(first, layout), dim=d, number=k,
                    expected=first.shape[e], got=layout.shape[e],
                )  # fmt: skip
        total += layout.shape[d]
    shape = (*first.shape[:d], total, *first.shape[d + 1 :])

    def copies(out: Layout) -> list[Copy]:
        result, at = [], 0
        for k in kept:
            layout = tensors[k]
            result.append(
                Copy(k, layout.shape, layout.strides, 0, out.strides, at * out.strides[d])
            )
            at += layout.shape[d]
        return result

    strides = common_format(shape, tensors)
    return Pieces(L.layout(shape, strides, dtype, device), copies)


@cat.derivative
def _(g, layouts, dim, needs):
    d = cat_dim(layouts, dim)
    result, at = [], 0
    for layout, needed in zip(layouts, needs, strict=True):
        if skipped(layout):
            result.append(T.full_layout((0,), 0, layout.dtype, layout.device) if needed else None)
            continue
        result.append(T.slice(g, d, at, at + layout.shape[d], 1) if needed else None)
        at += layout.shape[d]
    return result


@cat.samples
def _(make):
    yield ([make(2, 3), make(1, 3)],)
    yield [make(2, 3), make(2, 1), make(2, 2)], -1
    yield [make(0), make(2, 2)], 1
    yield ([make(2, 3).t(), make(3, 2)],)
    yield ([make(2, 3), make(2, 2)],), {}, RuntimeError, "Sizes of tensors must match"
    yield ([make(2, 3), make(2)],), {}, RuntimeError, "same number of dimensions"
    yield ([],), {}, ValueError, "non-empty list"


@pieces(method=False, batching="listed")
def stack(tensors: Tensors, dim: Dim = 0):
    """Tensors of one shape, joined along a new dim at ``dim``.

    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors:
        raise ShapeError("stack expects a non-empty TensorList")
    first = tensors[0]
    d = normalize_dim(dim, first.ndim + 1, op="stack")
    for k, layout in enumerate(tensors):
        if layout.shape != first.shape:
            raise ShapeError(
                "stack expects each tensor to be equal size, but got {first} at entry 0 and "
                "{other} at entry {number}",
                reason="stack", op="stack", operands=(first, layout), first=list(first.shape),
                other=list(layout.shape), number=k,
            )  # fmt: skip
    shape = (*first.shape[:d], len(tensors), *first.shape[d:])
    strides = tuple(contiguous_strides(shape))
    if first.ndim in (4, 5) and d < first.ndim:  # PyTorch joins along a dim that there is
        joined = (*first.shape[:d], len(tensors) * first.shape[d], *first.shape[d + 1 :])
        strides = view_strides(joined, common_format(joined, tensors), shape) or strides
    elif first.ndim in (3, 4) and d == first.ndim:
        each = [L.layout((*t.shape, 1), (*t.strides, 1), t.dtype, t.device) for t in tensors]
        strides = common_format(shape, each)

    def copies(out: Layout) -> list[Copy]:
        rest = (*out.strides[:d], *out.strides[d + 1 :])
        return [
            Copy(k, layout.shape, layout.strides, 0, rest, k * out.strides[d])
            for k, layout in enumerate(tensors)
        ]

    device = common_device("stack", tensors)
    return Pieces(L.layout(shape, strides, common_dtype(tensors), device), copies)


@stack.derivative
def _(g, needs, dim):
    d = normalize_dim(dim, g._layout.ndim)
    return [T.select(g, d, k) if needed else None for k, needed in enumerate(needs)]


@stack.samples
def _(make):
    yield ([make(2, 3), make(2, 3)],)
    yield [make(2, 3), make(2, 3)], -1
    yield ([make(), make()],)
    yield ([make(2, 3), make(2, 2)],), {}, RuntimeError, "equal size"
    yield ([],), {}, RuntimeError, "non-empty"


# ------------------------------------------------------------------------ along a certain dim
def sequence(op: str, tensors: _Any) -> _Any:
    if not tensors:
        raise ShapeError(f"{op} expects a non-empty TensorList")
    return tensors


@composite(method=False)
def hstack(tensors: Tensors):
    """The tensors side by side: along the second dim (the first of 1-dim tensors).

    >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
    parts = T.atleast_1d(sequence("hstack", tensors))
    return T.cat(parts, 0 if parts[0]._layout.ndim == 1 else 1)


@hstack.samples
def _(make):
    yield ([make(3), make(2)],)
    yield ([make(2, 3), make(2, 1)],)


@composite(method=False, aliases=("row_stack",))
def vstack(tensors: Tensors):
    """The tensors one above the other, as matrices.

    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return T.cat(T.atleast_2d(sequence("vstack", tensors)), 0)


@vstack.samples
def _(make):
    yield ([make(3), make(2, 3)],)


@composite(method=False)
def dstack(tensors: Tensors):
    """The tensors one behind the other: along the third dim.

    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return T.cat(T.atleast_3d(sequence("dstack", tensors)), 2)


@dstack.samples
def _(make):
    yield ([make(2, 3), make(2, 3)],)


@composite(method=False)
def column_stack(tensors: Tensors):
    """1-dim tensors as the columns of a matrix; others side by side.

    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [
        T.reshape(t, (t._layout.numel, 1)) if t._layout.ndim <= 1 else t
        for t in sequence("column_stack", tensors)
    ]
    return T.cat(parts, 1)


@column_stack.samples
def _(make):
    yield ([make(3), make(3, 2)],)


# ---------------------------------------------------------------------------- any number of tensors
def several(**options: _Any) -> Callable[[Callable[..., _Any]], Composite]:
    """Decorates a function of tensors that may be written one after the other or as a list."""
    return composite(method=False, out=False, rewrite=listed, **options)


def alone(op: Op, args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> _Any:
    """One tensor that is no list gives one result, not a tuple."""
    if len(args) == 1 and not isinstance(args[0], (tuple, list)):
        return op.fn((args[0],), **kwargs)[0]
    return NotImplemented


@several(samples=of_shapes((3,), (2, 1)))
def broadcast_tensors(tensors: Tensors):
    """The tensors, expanded to the shape that all broadcast to: views, as a tuple.

    >>> a, b = torch.broadcast_tensors(torch.zeros(3), torch.zeros(2, 1))
    >>> a.shape, b.shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    shape = broadcast_shapes(*[t._layout.shape for t in tensors], op="broadcast_tensors")
    return tuple([T.expand(t, shape) for t in tensors])


@several(other_form=alone)
def atleast_1d(tensors: Tensors):
    """The tensor (or each of several) with at least one dim.

    >>> torch.atleast_1d(torch.tensor(2))
    tensor([2])
    """
    return tuple([t if t._layout.ndim else T.reshape(t, (1,)) for t in tensors])


@atleast_1d.samples
def _(make):
    yield (make(),)
    yield make(2), make()


@several(other_form=alone, samples=of_shapes((3,)))
def atleast_2d(tensors: Tensors):
    """The tensor (or each of several) with at least two dims, put in front.

    >>> torch.atleast_2d(torch.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return tuple([_two(t) for t in tensors])


def _two(t: _Any) -> _Any:
    ndim = t._layout.ndim
    return t if ndim >= 2 else T.unsqueeze(t, 0) if ndim else T.reshape(t, (1, 1))


@several(other_form=alone)
def atleast_3d(tensors: Tensors):
    """The tensor (or each of several) with at least three dims: (n,) becomes (1, n, 1).

    >>> torch.atleast_3d(torch.tensor([1, 2])).shape
    torch.Size([1, 2, 1])
    """
    return tuple([_three(t) for t in tensors])


def _three(t: _Any) -> _Any:
    ndim = t._layout.ndim
    if ndim >= 3:
        return t
    if ndim == 2:
        return T.unsqueeze(t, -1)
    return T.unsqueeze(T.unsqueeze(t, 0), -1) if ndim else T.reshape(t, (1, 1, 1))


@atleast_3d.samples
def _(make):
    yield (make(3),)
    yield (make(3, 2),)


@several()
def meshgrid(tensors: Tensors, *, indexing: Str = None):
    """Grids of coordinates from 1-dim tensors, expanded views; ``indexing``: ``"ij"`` or ``"xy"``.

    >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
    >>> x
    tensor([[1, 1],
            [2, 2]])
    """
    if not tensors:
        raise ShapeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument: indexing='ij' is what this call does.", UserWarning,
        )  # fmt: skip
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise ShapeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    first = tensors[0]._layout
    for t in tensors:
        if t._layout.ndim > 1:
            raise ShapeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{tuple(t._layout.shape)}"
            )
        if t._layout.dtype is not first.dtype:
            raise DtypeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    order = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = tuple([t._layout.numel for t in order])
    grids = []
    for k, t in enumerate(order):
        alone = tuple([n if e == k else 1 for e, n in enumerate(shape)])
        grids.append(T.expand(T.view(t, alone), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@meshgrid.samples
def _(make):
    yield (make(3), make(2)), {"indexing": "ij"}
    yield (make(3), make(2), make(4)), {"indexing": "xy"}


@several(samples=of_shapes((3,), (2,)))
def cartesian_prod(tensors: Tensors):
    """All combinations of the elements of 1-dim tensors, one a row.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for t in tensors:
        if t._layout.ndim != 1:
            raise ShapeError(f"cartesian_prod: Expect a 1D vector, but got shape {t._layout.shape}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(tensors, indexing="ij")
    return T.stack([T.flatten(grid) for grid in grids], 1)


@pieces(method=False, function=False, out=False, node="block_diag")
def block_diag_list(tensors: Tensors):
    """What ``block_diag`` runs, on matrices."""
    rows = sum([t.shape[0] for t in tensors])
    columns = sum([t.shape[1] for t in tensors])
    out = L.contiguous((rows, columns), common_dtype(tensors), common_device("block_diag", tensors))

    def copies(out: Layout) -> list[Copy]:
        result, at, beside = [], 0, 0
        for k, t in enumerate(tensors):
            where = at * out.strides[0] + beside * out.strides[1]
            result.append(Copy(k, t.shape, t.strides, 0, out.strides, where))
            at, beside = at + t.shape[0], beside + t.shape[1]
        return result

    return Pieces(out, copies, rest=0)


@block_diag_list.derivative
def _(g, layouts):
    result, at, beside = [], 0, 0
    for t in layouts:
        rows, columns = t.shape
        result.append(T.slice(T.slice(g, 0, at, at + rows), 1, beside, beside + columns))
        at, beside = at + rows, beside + columns
    return result


@block_diag_list.batches
def _(batch, run, tensors):
    columns, beside = sum([t._layout.shape[1] for t in tensors]), 0
    rows = []
    for t in tensors:
        wide = t._layout.shape[1]
        rows.append(T.constant_pad_nd(t, (beside, columns - beside - wide), 0))
        beside += wide
    return T.cat(rows, 0)


@several(samples=of_shapes((2, 3), (2,), ()))
def block_diag(tensors: Tensors):
    """A matrix with the given matrices along its diagonal and zeros elsewhere.

    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    for k, t in enumerate(tensors):
        if t._layout.ndim > 2:
            raise ShapeError(
                "block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{k} has {t._layout.ndim} dimensions"
            )
    if not tensors:
        return T.full_layout((1, 0), 0, dtypes.get_default_dtype(), as_device(None))
    return T.block_diag_list([_two(t) for t in tensors])


@composite(method=False, out=False)
def combinations(input: Tensor, r: Int = 2, with_replacement: Bool = False):
    """All combinations of ``r`` elements of a 1-dim tensor, one a row.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    layout = input._layout
    if layout.ndim != 1:
        raise ShapeError(f"combinations: Expect a 1D vector, but got shape {tuple(layout.shape)}")
    if r < 0:
        raise ShapeError(f"combinations: Expect a non-negative number, but got {r}")
    if r == 0:
        return T.full_layout((0,), 0, layout.dtype, layout.device)
    if r == 1:
        return T.unsqueeze(T.clone(input), 1)
    n, skip = layout.numel, int(not with_replacement)
    places = list(T.unbind(T.triu_indices(n, n, skip, device=layout.device)))
    for _ in range(r - 2):  # each is continued by all positions from its last one on
        counts = n - skip - places[-1]
        which = T.repeat_places(counts)
        first = places[-1] + skip - (T.cumsum(counts, 0) - counts)
        more = T.arange(which._layout.numel, device=layout.device) + T.index_select(first, 0, which)
        places = [*[T.index_select(each, 0, which) for each in places], more]
    return T.index_at(input, [T.stack(places, 1)], (0,))


@combinations.samples
def _(make):
    yield (make(4),)
    yield make(3), 2, True
    for r in (1, 3, 4):
        yield make(4), r
        yield make(3), r, True
