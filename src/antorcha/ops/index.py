"""Reading and writing at given indices: index_select, gather, x[tensor], take, and their inverses.

All indices are checked before anything is written; a bad one is named with its dim and size.
"""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.loops import dense_strides
from antorcha.core.shapes import (
    broadcast_shapes,
    normalize_dim,
)
from antorcha.core.structs import struct
from antorcha.errors import DtypeError, NumberOverflow, OutOfRange, ShapeError
from antorcha.lang.kernels import Gather, Scatter
from antorcha.ops.kinds.batching import call, record_of
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import as_word, held
from antorcha.ops.kinds.record import Call, Op, T, composite, sparse_gradients
from antorcha.ops.kinds.types import Bool, Dim, Number, Operand, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


class IndexOutOfBounds(OutOfRange, RuntimeError):
    """An index that is no position: PyTorch raises one or the other class, op by op."""


def out_of_bounds(op: str, index: int, size: int, dim: int) -> IndexOutOfBounds:
    return IndexOutOfBounds(
        "{op}: index {given} is out of bounds for dimension {dim} with size {size} (index out of "
        "range in self)",
        reason="index", op=op, given=index, dim=dim, size=size,
    )  # fmt: skip


@struct
class Outside:
    """The exception for an index that is no position in the k-th of the dims."""

    op: str
    dims: tuple[int, ...]
    sizes: tuple[int, ...]

    def __call__(self, index: int, k: int) -> IndexOutOfBounds:
        return out_of_bounds(self.op, index, self.sizes[k], self.dims[k])


def outside(op: str, layout: Layout, *dims: int) -> Outside:
    """The exception for an index that is no position in these dims of a layout."""
    return Outside(op, dims, tuple([layout.shape[d] if layout.ndim else 1 for d in dims]))


def check_index_dtype(op: str, index: Layout, wide_only: bool = False) -> None:
    name = index.dtype.name
    if name != "int64" and (wide_only or name != "int32"):
        wanted = "int64" if wide_only else "int32 or int64"
        kind = OutOfRange if op == "index_fill" else DtypeError
        raise kind(
            "{op}(): Expected dtype {wanted} for index, but got {0.dtype}", reason="integer index",
            op=op, operands=(index,), wanted=wanted,
        )  # fmt: skip


def check_same_dtype(op: str, input: Layout, other: Layout, what: str) -> None:
    if input.dtype is not other.dtype:
        raise DtypeError(
            f"{op}(): self and {what} expected to have the same dtype, but got (self) "
            f"{input.dtype} and ({what}) {other.dtype}"
        )


def check_vector(op: str, index: Layout) -> None:
    if index.ndim > 1:
        raise ShapeError(
            f"{op}(): Index is supposed to be a vector, but its shape is {tuple(index.shape)}"
        )


def plain(layout: Layout, shape: _Any = None) -> Layout:
    return L.contiguous(
        tuple(layout.shape) if shape is None else shape, layout.dtype, layout.device
    )


def kept(layout: Layout) -> Layout:
    """Of a copy that keeps the order of dims, as ``clone``'s does."""
    return L.layout(
        layout.shape, dense_strides(layout.shape, layout.strides), layout.dtype, layout.device
    )


def along(ndim: int, dim: int, op: str) -> int:
    return normalize_dim(dim, max(ndim, 1), op=op)


def zeros_like_layout(layout: Layout) -> TensorType:
    result: TensorType = T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)
    return result


# -------------------------------------------------------------------------- whole rows at a time
@kernel()
def index_select(input: Tensor, dim: Dim, index: Tensor):
    """The slices of ``input`` at the indices along ``dim``, in their order.

    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([1]))
    tensor([[2],
            [4]])
    """
    d = along(input.ndim, dim, "index_select")
    check_index_dtype("index_select", index)
    check_vector("index_select", index)
    if input.ndim == 0 and index.numel != 1:
        raise ShapeError("index_select(): Index to scalar can have only 1 value")
    shape = tuple(input.shape)
    out = plain(input, (*shape[:d], index.numel, *shape[d + 1 :]) if shape else ())
    return Planned(Gather((d,), d, outside("index_select", input, d)), [out])


@index_select.derivative
def _(g, input_layout, dim, index):
    return T.index_add_(zeros_like_layout(input_layout), dim, index, g), None


@index_select.samples
def _(make):
    yield make(3, 4), 0, make.ints((2,), 3)
    yield make(3, 4), -1, make.ints((5,), 4)
    yield (make(3, 4), 0, make.ints((2,), 1) + 3), {}, IndexError, "index 3 is out of bounds"
    yield (make(3, 4), 2, make.ints((2,), 3)), {}, IndexError, "out of range"


def check_source(op: str, input: Layout, d: int, index: Layout, source: Layout) -> None:
    """What index_add, index_copy and index_reduce ask of their operands."""
    check_index_dtype(op, index, wide_only=op == "index_copy")
    check_vector(op, index)
    check_same_dtype(op, input, source, "source")
    mine = [n for e, n in enumerate(input.shape) if e != d]
    theirs = [n for e, n in enumerate(source.shape) if e != d]
    count = source.shape[d] if source.ndim else 1
    if mine != theirs and (source.numel != 1 or source.ndim):
        raise ShapeError(
            f"{op}(): Source/destination tensor must have same slice shapes. Destination slice "
            f"shape: {mine} at dimension {d} and source slice shape: {theirs} at dimension {d}."
        )
    if count != index.numel:
        raise ShapeError(
            f"{op}(): Number of indices ({index.numel}) should be equal to source.size(dim) "
            f"({count}), for dim: {d}"
        )


def scaled(op: Op, args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> Call:
    """``index_add``: ``alpha`` multiplies the source first."""
    alpha = kwargs.get("alpha", 1)
    if isinstance(alpha, (int, float, complex)) and alpha == 1:  # (a bool, too)
        return args, {name: value for name, value in kwargs.items() if name != "alpha"}
    values = op.signature.fill(args, kwargs)
    source = values[3]
    product = T.mul(source, held("index_add", source._layout.dtype, alpha))
    if isinstance(source, TensorType) and product._layout.dtype is not source._layout.dtype:
        product = T.to_dtype(product, source._layout.dtype)
    return (*values[:3], product), {}


@kernel(inplace=True, rewrite=scaled)
def index_add(input: Tensor, dim: Dim, index: Tensor, source: Tensor, *, alpha: Number = 1):
    """``input`` with the slices of ``alpha * source`` added at the indices along ``dim``.

    An index that comes twice is added to twice.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html.

    >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.]))
    tensor([3., 0., 3.])
    """
    d = along(input.ndim, dim, "index_add")
    check_source("index_add", input, d, index, source)
    refuse = outside("index_add", input, d)
    return Planned(Scatter("add", (d,), d, refuse, source=2), [plain(input)])


@index_add.derivative
def _(g, source_layout, dim, index, needs):
    return g, None, taken(g, dim, index, source_layout) if needs[2] else None


def taken(g: _Any, dim: int, index: _Any, source: Layout) -> _Any:
    """The gradient's slices that went to a source."""
    part = T.index_select(g, dim, index)
    return part if part._layout.shape == source.shape else T.reshape(part, tuple(source.shape))


@index_add.samples
def _(make):
    yield make(3, 4), 0, make.ints((2,), 3), make(2, 4)
    yield make(3, 4), -1, make.ints((5,), 4), make(3, 5)
    yield (make(3), 0, make.ints((2,), 1) + 3, make(2)), {}, IndexError, "out of bounds"
    yield (make(3), 0, make.ints((2,), 3), make(3)), {}, RuntimeError, "Number of indices"


@kernel(inplace=True)
def index_copy(input: Tensor, dim: Dim, index: Tensor, source: Tensor):
    """``input`` with its slices at the indices along ``dim`` replaced by those of ``source``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_copy_.html.

    >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    d = along(input.ndim, dim, "index_copy")
    check_source("index_copy", input, d, index, source)
    refuse = outside("index_copy", input, d)
    return Planned(Scatter("set", (d,), d, refuse, source=2), [plain(input)])


@index_copy.derivative
def _(g, source_layout, dim, index, needs):
    return (
        T.index_fill(g, dim, index, 0) if needs[0] else None,
        None,
        taken(g, dim, index, source_layout) if needs[2] else None,
    )


@index_copy.samples
def _(make):
    yield make(4, 3), 0, make.ints((1,), 4), make(1, 3)


def filling(op: Op, args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> Call:
    """``index_fill``: the value as the input's dtype holds it."""
    input, dim, index, value = op.signature.fill(args, kwargs)
    if not isinstance(input, TensorType):
        return args, kwargs
    dtype = input._layout.dtype
    if isinstance(value, TensorType):
        if value._layout.dtype is not dtype and not value._layout.ndim:
            value = T.to_dtype(value, dtype)
    elif isinstance(value, complex) and dtype.kind != "c":
        raise NumberOverflow(
            "index_fill: Converting complex Scalar to non-complex type is not supported"
        )
    else:
        value = as_word(held("index_fill", dtype, value))
    return (input, dim, index, value), {}


@kernel(inplace=True, rewrite=filling)
def index_fill(input: Tensor, dim: Dim, index: Tensor, value: Operand):
    """``input`` with its slices at the indices along ``dim`` filled with a number or 0-dim tensor.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html.

    >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, -1]), 5)
    tensor([5., 0., 5.])
    """
    d = along(input.ndim, dim, "index_fill")
    check_index_dtype("index_fill", index, wide_only=True)
    check_vector("index_fill", index)
    if isinstance(value, Layout) and value.ndim:
        raise ShapeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    # every slice's elements have the same index and the same value
    shape = [*input.shape] or [1]
    shape[d] = index.numel
    steps = [0] * len(shape)
    steps[d] = index.strides[0] if index.ndim else 0
    number = not isinstance(value, Layout)
    source = type(value) if number else value.like(tuple(shape), (0,) * len(shape))
    ins = [input, index.like(tuple(shape), tuple(steps)), source]
    refuse = outside("index_fill", input, d)
    what = Scatter("set", (d,), None, refuse, negative=True, source=2)
    return Planned(what, [kept(input)], ins=ins)


@index_fill.derivative
def _(g, dim, index, needs):
    rest = T.index_fill(g, dim, index, 0) if needs[0] else None
    if not needs[2]:
        return rest, None, None
    return rest, None, T.sum(T.sub(g, T.index_fill(g, dim, index, 0)))


@index_fill.samples
def _(make):
    yield make(3, 4), 0, make.ints((2,), 3), 2.5
    yield make(3, 4), 1, make.ints((2,), 4), make()


def _along_batch(batch: _Any, run: _Any, input: _Any, dim: int, index: _Any, *rest: _Any) -> _Any:
    """One vector of indices for all examples: their dims move by one."""
    ndim = input._layout.ndim
    source: _Any = rest[0] if rest else None
    own = batch.has(index) or (batch.has(source) and not source._layout.ndim)
    if own or not ndim:
        result = _by_elements(record_of(run), input, dim, index, *rest)
        return T.copy_(input, result) if run.is_inplace else result
    if isinstance(source, TensorType) and source._layout.ndim:
        rest = (batch.beside(source, ndim), *rest[1:])
    return call(run, [batch.whole(input), normalize_dim(dim, ndim, op=run.name) + 1, index, *rest])


def _by_elements(op: Op, input: _Any, dim: int, index: _Any, *rest: _Any) -> _Any:
    """What an op with a vector of indices does, by an op with an index for each element: it can be
    another one for each example."""
    layout, name = input._layout, op.name
    d = along(layout.ndim, dim, name)
    check_vector(name, index._layout)
    check_index_dtype(name, index._layout, wide_only=name in ("index_copy", "index_fill"))
    x = input if layout.ndim else T.reshape(input, (1,))
    shape = [*x._layout.shape]
    n, shape[d] = shape[d], index._layout.numel
    at = T.expand(T.reshape(index, (-1, *[1] * (len(shape) - d - 1))), tuple(shape))
    if name == "index_select":
        if not layout.ndim and shape[d] != 1:
            raise ShapeError("index_select(): Index to scalar can have only 1 value")
        result = T.gather(x, d, at)
    elif name == "index_fill":
        at = T.where(T.lt(at, 0), T.add(at, n), at)
        filled = T.scatter_value(T.zeros_like(x, dtype=dtypes.bool_), d, at, True)
        result = T.masked_fill(x, filled, rest[0])
    else:
        check_source(name, layout, d, index._layout, rest[0]._layout)
        source, put_in = rest[0], T.scatter_src
        if name == "index_add":
            put_in = T.scatter_add
            source = scaled(op, (input, d, index, source), {"alpha": rest[1]})[0][3]
        result = put_in(x, d, at, T.reshape(source, tuple(shape)))
    return result if layout.ndim else T.reshape(result, ())


for _each in (index_select, index_add, index_copy, index_fill):
    _each.batches(_along_batch)


# ----------------------------------------------------------------------------- element by element
def check_same_ndim(op: str, input: Layout, index: Layout) -> None:
    if not index.numel:
        return  # an index of no elements may be of any dtype and number of dims
    check_index_dtype(op, index)
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise ShapeError(
            "{op}(): Index tensor must have the same number of dimensions as input tensor: index "
            "{0.shape}, input {1.shape}",
            reason="index dims", op=op, operands=(index, input), ndim=input.ndim, given=index.ndim,
        )  # fmt: skip


def check_within(op: str, index: Layout, other: Layout, dim: int, what: str) -> None:
    """An index may be smaller than what it reads, but not larger, outside of ``dim``."""
    for d in range(index.ndim):
        if d != dim and index.numel and index.shape[d] > other.shape[d]:
            raise ShapeError(
                f"{op}: Size does not match at dimension {d} expected index "
                f"{list(index.shape)} to be no larger than {what} {list(other.shape)} apart from "
                f"dimension {dim}"
            )


@kernel()
def gather(input: Tensor, dim: Dim, index: Tensor, *, sparse_grad: Bool = False):
    """Elements of ``input``, each at its own place but in ``dim``, where ``index`` says where.

    ``out[i, j] = input[index[i, j], j]`` for ``dim == 0``. The result has the index's shape.

    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    d = along(input.ndim, dim, "gather")
    check_same_ndim("gather", input, index)
    if input.ndim and index.ndim:
        check_within("gather", index, input, d, "self")
    out = plain(input, tuple(index.shape))
    return Planned(Gather((d,), None, outside("gather", input, d)), [out])


@gather.derivative
def _(g, input_layout, dim, index, sparse_grad):
    if sparse_grad:
        return sparse_gradients.of_gather(g, index, tuple(input_layout.shape), dim), None
    return T.scatter_add_(zeros_like_layout(input_layout), dim, index, g), None


@gather.samples
def _(make):
    yield make(3, 4), 0, make.ints((2, 4), 3)
    yield make(3, 4), 1, make.ints((3, 6), 4)
    yield (make(3, 4), 1, make.ints((3, 2), 1) + 4), {}, IndexError, "index 4 is out of bounds"
    yield (make(3, 4), 1, make.ints((3,), 2)), {}, RuntimeError, "same number of dimensions"
    yield (make(3, 4), 1, make.ints((4, 2), 2)), {}, RuntimeError, "no larger than"


@composite()
def take_along_dim(input: Tensor, indices: Tensor, dim: Dim = None):
    """``gather`` with ``input`` and ``indices`` broadcast outside of ``dim``; without a dim, of the
    flattened tensor.

    >>> t = torch.tensor([[10, 30, 20], [60, 40, 50]])
    >>> torch.take_along_dim(t, torch.argsort(t, dim=1), dim=1)
    tensor([[10, 20, 30],
            [40, 50, 60]])
    """
    if indices._layout.dtype.name != "int64":
        raise DtypeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices._layout.dtype}"
        )
    if dim is None:
        return T.gather(T.reshape(input, (-1,)), 0, T.reshape(indices, (-1,)))
    layout, at = input._layout, indices._layout
    if layout.ndim != at.ndim:
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {layout.ndim} dimensions for input, and {at.ndim} dimensions for indices"
        )
    d = along(layout.ndim, dim, "take_along_dim")
    mine = [1 if e == d else n for e, n in enumerate(layout.shape)]
    theirs = [1 if e == d else n for e, n in enumerate(at.shape)]
    common = list(broadcast_shapes(mine, theirs, op="take_along_dim"))
    wide, narrow = list(common), list(common)
    if layout.ndim:
        wide[d], narrow[d] = layout.shape[d], at.shape[d]
    n = layout.shape[d] if layout.ndim else 1
    indices = T.where(T.lt(indices, 0), T.add(indices, n), indices)
    return T.gather(T.expand(input, tuple(wide)), d, T.expand(indices, tuple(narrow)))


@take_along_dim.samples
def _(make):
    yield make(3, 4), make.ints((1, 2), 4), 1
    yield make(3, 4), make.ints((2,), 12)


@kernel()
def take(input: Tensor, index: Tensor):
    """The elements at positions in the flattened tensor; the result has the index's shape.

    >>> torch.take(torch.tensor([[4, 3], [2, 1]]), torch.tensor([0, -1]))
    tensor([4, 1])
    """
    check_index_dtype("take", index, wide_only=True)
    size = input.numel
    if size == 0 and index.numel:
        raise OutOfRange("take(): tried to take from an empty tensor")

    refuse = Outside("take", (0,), (size,))
    return Planned(Gather((), 0, refuse, negative=True), [plain(input, tuple(index.shape))])


@take.derivative
def _(g, input_layout, index):
    return T.put(zeros_like_layout(input_layout), index, g, True), None


@take.batches
def _(batch, run, input, index):
    if not batch.has(input):
        return run(input, batch.whole(index))
    return T.index_at(T.reshape(input, (-1,)), (index,), (0,))


@take.samples
def _(make):
    yield make(3, 4), make.ints((2, 2), 12)


@kernel(inplace=True, out=False)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: Bool = False):
    """``input`` with the elements at positions in its flattened order replaced, or added to.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.put_.html.

    >>> torch.put(torch.tensor([1, 2, 3]), torch.tensor([0, -1]), torch.tensor([8, 9]))
    tensor([8, 2, 9])
    """
    check_index_dtype("put", index, wide_only=True)
    check_same_dtype("put_", input, source, "source")
    if index.numel != source.numel:
        raise ShapeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel}, index.numel() = {index.numel}"
        )
    refuse = Outside("put", (0,), (input.numel,))
    fold = "add" if accumulate else "set"
    return Planned(Scatter(fold, (), 0, refuse, negative=True, source=2), [kept(input)])


@put.derivative
def _(g, source_layout, index, accumulate, needs):
    mine = None
    if needs[0]:
        zero = T.full_layout(tuple(index._layout.shape), 0, g._layout.dtype, g._layout.device)
        mine = g if accumulate else T.put(g, index, zero)
    source = T.reshape(T.take(g, index), tuple(source_layout.shape)) if needs[2] else None
    return mine, None, source


@put.batches
def _(batch, run, input, index, source, accumulate):
    shape = input._layout.shape
    values = T.reshape(source, index._layout.shape)
    flat = T.index_put_at(T.reshape(input, (-1,)), values, (index,), (0,), accumulate)
    result = T.reshape(flat, shape)
    return T.copy_(input, result) if run.is_inplace else result


@put.samples
def _(make):
    yield make(3, 4), make.ints((2,), 12), make(2), True
