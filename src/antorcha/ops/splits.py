"""Views of all the parts of a tensor: unbind, split, chunk and their relatives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any as _Any

from antorcha.core.shapes import normalize_dim
from antorcha.errors import OutOfRange, ShapeError
from antorcha.ops.kinds.kernel import views
from antorcha.ops.kinds.params import to_int, to_ints
from antorcha.ops.kinds.record import Composite, T, composite
from antorcha.ops.kinds.types import Any, Dim, Int, Ints, Tensor, Tensors
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

MOST_PARTS = 1 << 28


def parts_along(input: Layout, d: int, sizes: _Any) -> list[_Any]:
    """The (shape, strides, delta) of consecutive parts of a dim."""
    result, at = [], 0
    for n in sizes:
        shape = (*input.shape[:d], n, *input.shape[d + 1 :])
        result.append((shape, input.strides, at * input.strides[d] if input.numel else 0))
        at += n
    return result


def gather_parts(g: _Any, layout: Layout, d: int, sizes: _Any) -> _Any:
    """The gradient of a split: the parts' gradients one after the other, zeros for None."""
    g = g if isinstance(g, tuple) else (g,)
    some = next(each for each in g if each is not None)._layout
    filled = []
    for n, each in zip(sizes, g, strict=True):
        shape = (*layout.shape[:d], n, *layout.shape[d + 1 :])
        if each is None:
            each = T.full_layout(shape, 0, some.dtype, some.device)
        filled.append(each)
    return T.cat(filled, d)


def check_count(op: str, count: int) -> None:
    """Raises where so many parts are asked for that making them would never end."""
    if count > MOST_PARTS:
        raise ShapeError(f"{op}: {count} parts are too many; at most {MOST_PARTS} can be made")


def equal_parts(n: int, size: int) -> list[int]:
    if size == 0:
        return [0]
    check_count("split", n // size)
    return [min(size, n - at) for at in range(0, n, size)] or [0]


@views()
def unbind(input: Tensor, dim: Dim = 0):
    """The slices along a dim, each a view without it, as a tuple.

    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        raise OutOfRange("unbind: Dimension specified as 0 but tensor has no dimensions")
    d = normalize_dim(dim, input.ndim, op="unbind")
    shape = (*input.shape[:d], *input.shape[d + 1 :])
    strides = (*input.strides[:d], *input.strides[d + 1 :])
    step = input.strides[d] if input.numel else 0
    check_count("unbind", input.shape[d])
    return [(shape, strides, k * step) for k in range(input.shape[d])]


@unbind.derivative
def _(g, input_layout, dim):
    g = g if isinstance(g, tuple) else (g,)
    some = next(each for each in g if each is not None)
    zero = None
    if any(each is None for each in g):
        layout = some._layout
        zero = T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)
    return T.stack([zero if each is None else each for each in g], dim)


@unbind.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), -1
    yield (make(),), {}, IndexError, "no dimensions"


@views(function=False, method=False, name="split_parts", node="split")
def split_parts(input: Tensor, split_size: Int, dim: Dim = 0):
    """Parts of ``split_size`` along a dim; the last may be smaller."""
    if input.ndim == 0:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    d = normalize_dim(dim, input.ndim, op="split")
    if split_size < 0:
        raise ShapeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    n = input.shape[d]
    if split_size == 0 and n:
        raise ShapeError(
            "split_size can only be 0 if dimension size is 0, but got dimension size of "
            f"{n} (shape {tuple(input.shape)})"
        )
    return parts_along(input, d, equal_parts(n, split_size))


@split_parts.derivative
def _(g, input_layout, split_size, dim):
    d = normalize_dim(dim, input_layout.ndim)
    return gather_parts(g, input_layout, d, equal_parts(input_layout.shape[d], split_size))


@split_parts.samples
def _(make):
    yield make(5, 2), 2
    yield make(5, 3), 2, 1


@views(page=False)
def split_with_sizes(input: Tensor, split_sizes: Ints, dim: Dim = 0):
    """Parts of the given sizes along a dim, views, as a tuple.

    >>> torch.split_with_sizes(torch.arange(4), (1, 3))
    (tensor([0]), tensor([1, 2, 3]))
    """
    if input.ndim == 0:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    d = normalize_dim(dim, input.ndim, op="split_with_sizes")
    n = input.shape[d]
    if any(s < 0 for s in split_sizes):
        raise ShapeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != n:
        raise ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
            f"dimension {d}), but got split_sizes={list(split_sizes)} (sum {sum(split_sizes)})"
        )
    return parts_along(input, d, split_sizes)


@split_with_sizes.derivative
def _(g, input_layout, split_sizes, dim):
    d = normalize_dim(dim, input_layout.ndim)
    return gather_parts(g, input_layout, d, split_sizes)


@split_with_sizes.samples
def _(make):
    yield make(5, 2), (1, 4)
    yield make(2, 3), (1, 0, 2), 1
    yield (make(5), (1, 3)), {}, RuntimeError, "sum exactly to 5"


# ------------------------------------------------------------------------ made of those above
@composite(out=False)
def split(input: Tensor, split_size: Any, dim: Dim = 0):
    """Parts along a dim, views, as a tuple: of ``split_size`` elements, or of the sizes in a list.

    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size, (tuple, list)):
        return T.split_with_sizes(input, split_size, dim)
    return T.split_parts(input, split_size, dim)


@split.samples
def _(make):
    yield make(5, 2), 2
    yield make(5, 3), (1, 2), 1
    yield (make(5), -1), {}, RuntimeError, "non-negative"
    yield (make(), 1), {}, RuntimeError, "at least a 1-dimensional"


@composite(out=False)
def chunk(input: Tensor, chunks: Int, dim: Dim = 0):
    """At most ``chunks`` parts of equal size (but the last) along a dim: views, as a tuple.

    >>> torch.chunk(torch.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    layout = input._layout
    if layout.ndim == 0:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = layout.shape[normalize_dim(dim, layout.ndim, op="chunk")]
    size = -(-n // chunks)
    if size == 0:
        check_count("chunk", chunks)
        return T.split_with_sizes(input, (0,) * chunks, dim)
    return T.split_parts(input, size, dim)


@chunk.samples
def _(make):
    yield make(5, 2), 2
    yield make(4, 3), 3, 1
    yield (make(5), 0), {}, RuntimeError, "greater than 0"


def cut(input: TensorType, where: _Any, dim: int, op: str) -> tuple[TensorType, ...]:
    """Slices of a dim: so many of nearly equal size, or cut at the given places."""
    layout = input._layout
    if layout.ndim == 0:
        raise ShapeError(
            f"{op} expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = normalize_dim(dim, layout.ndim, op=op)
    n = layout.shape[d]
    if isinstance(where, TensorType):
        if where._layout.ndim > 1 or where._layout.dtype.name != "int64":
            raise ShapeError(
                f"{op} expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor of dtype torch.int64, not one of shape "
                f"{tuple(where._layout.shape)} and dtype {where._layout.dtype}"
            )
        where = where.tolist()
    if isinstance(where, (tuple, list)):
        where = to_ints(op, "indices_or_sections", where)
    else:
        sections = to_int(op, "indices_or_sections", where)
        if sections <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {sections}")
        check_count(op, sections)
        size, longer = divmod(n, sections)
        where = [k * size + min(k, longer) for k in range(1, sections)]
    edges = [0, *where, n]
    return tuple([T.slice(input, d, a, b, 1) for a, b in itertools.pairwise(edges)])


@composite(out=False)
def tensor_split(input: Tensor, indices_or_sections: Any, dim: Dim = 0):
    """Parts along a dim, views: so many of nearly equal size, or cut at the given indices.

    >>> torch.tensor_split(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> torch.tensor_split(torch.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    return cut(input, indices_or_sections, dim, "tensor_split")


@tensor_split.samples
def _(make):
    yield make(5, 2), 3
    yield make(5, 2), (1, 4)
    yield (make(5), 0), {}, RuntimeError, "larger than 0"
    yield (make(5), 1.5), {}, TypeError, "tensor_split: indices_or_sections must be an int"
    yield (make(5), (1, None)), {}, TypeError, "tensor_split: indices_or_sections must be an int"
    yield (make(5), make()), {}, RuntimeError, "dtype torch.int64"


def _split_along(name: str, dim: int, least: int, doc: str) -> Composite:
    """The op that splits along a dim (the last, where there are fewer) of tensors that have at
    least so many."""

    def fn(input: Tensor, indices_or_sections: Any) -> Tensors:
        ndim, where = input._layout.ndim, indices_or_sections
        if ndim < least:
            raise ShapeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {ndim} dimensions!"
            )
        d = min(dim, ndim - 1)
        if not isinstance(where, (tuple, list)):
            where, n = to_int(name, "indices_or_sections", where), input._layout.shape[d]
            if not where or n % where:
                raise ShapeError(
                    f"torch.{name} attempted to split along dimension {d}, but the size of the "
                    f"dimension {n} is not divisible by the split_size {where}!"
                )
        return cut(input, where, d, name)

    def samples(make: Any) -> Iterator[Any]:
        shape = [4 if k == dim else 2 for k in range(max(least, dim + 1))]
        yield make(*shape), 2
        yield make(*shape), (1, 3)
        yield (make(*shape), 3), {}, RuntimeError, "not divisible"
        for wrong in (1.5, None, make(2)):
            text = f"{name}: indices_or_sections must be an int"
            yield (make(*shape), wrong), {}, TypeError, text

    fn.__doc__ = doc
    op = composite(name=name, out=False)(fn)
    op.samples(samples)
    return op


hsplit = _split_along(
    "hsplit", 1, 1,
    """Parts side by side: ``tensor_split`` along the second dim (the first of a 1-dim tensor).

    >>> torch.hsplit(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """,
)  # fmt: skip
vsplit = _split_along(
    "vsplit", 0, 2,
    """Parts one above the other: ``tensor_split`` along the first dim.

    >>> torch.vsplit(torch.tensor([[1], [2]]), 2)
    (tensor([[1]]), tensor([[2]]))
    """,
)  # fmt: skip
dsplit = _split_along(
    "dsplit", 2, 3,
    """Parts one behind the other: ``tensor_split`` along the third dim.

    >>> [p.shape for p in torch.dsplit(torch.zeros(1, 2, 4), 2)]
    [torch.Size([1, 2, 2]), torch.Size([1, 2, 2])]
    """,
)  # fmt: skip


@hsplit.samples
def _(make):
    yield make(4), 2
