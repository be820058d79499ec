"""Writing to given places: scatter and its reductions, and what a mask chooses."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import ArgumentError, DtypeError, GraphError, ShapeError
from antorcha.lang.kernels import Replace, Scatter, Select
from antorcha.ops.index import (
    along,
    check_same_dtype,
    check_same_ndim,
    check_within,
    outside,
    plain,
)
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import held
from antorcha.ops.kinds.params import to_number
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Dim, Number, Str, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------- scatter
def check_scatter(op: str, input: Layout, d: int, index: Layout, src: Layout | None) -> None:
    check_same_ndim(op, input, index)
    if index.numel == 0:
        return
    if input.ndim and index.ndim:
        check_within(op, index, input, d, "self")
    if src is not None:
        check_same_dtype(op, input, src, "src")
        if max(src.ndim, 1) != max(index.ndim, 1):
            raise ShapeError(
                "{op}(): Index tensor must have the same number of dimensions as src tensor: "
                "index {0.shape}, src {1.shape}",
                reason="index dims", op=op, operands=(index, src), ndim=src.ndim, given=index.ndim,
            )  # fmt: skip
        if src.ndim and index.ndim:
            check_within(op, index, src, -1, "src")


def along_dim(op: str, fold: str, input: Layout, d: int, own: bool = True) -> Planned:
    """What the operands (input, index, source) give along a dim."""
    refuse = outside(op, input, d)
    return Planned(Scatter(fold, (d,), None, refuse, source=2, own=own), [plain(input)])


@kernel(function=False, method=False, inplace=True, node="scatter")
def scatter_src(input: Tensor, dim: Dim, index: Tensor, src: Tensor):
    """``scatter`` of a tensor: ``out[index[i, j], j] = src[i, j]``."""
    d = along(input.ndim, dim, "scatter")
    check_scatter("scatter", input, d, index, src)
    return along_dim("scatter", "set", input, d)


@scatter_src.derivative
def _(g, src_layout, dim, index, needs):
    mine = T.scatter_value(g, dim, index, 0) if needs[0] else None
    return mine, None, source_gradient(g, src_layout, dim, index) if needs[2] else None


def source_gradient(g: _Any, src: Layout, dim: int, index: _Any) -> _Any:
    """What arrives at a scattered source: zeros where the index did not reach."""
    part = T.gather(g, dim, index)
    if part._layout.shape == src.shape:
        return part
    part = T.reshape(part, tuple(part._layout.shape) or (1,)) if src.ndim else T.reshape(part, ())
    layout = part._layout
    strides = plain(layout, tuple(src.shape)).strides
    flat = T.embed_strided(part, src.numel, strides, 0)
    return T.view(flat, tuple(src.shape))


# PyTorch gives the node of the form of a number another name
@kernel(function=False, method=False, inplace=True, node="ScatterBackward1")
def scatter_value(input: Tensor, dim: Dim, index: Tensor, value: Number):
    """``scatter`` of a number."""
    d = along(input.ndim, dim, "scatter")
    check_scatter("scatter", input, d, index, None)
    return along_dim("scatter", "set", input, d)


scatter_value.derivative(lambda g, dim, index: (T.scatter_value(g, dim, index, 0), None))


@kernel(function=False, method=False, inplace=True, node="scatter")
def scatter_by(input: Tensor, dim: Dim, index: Tensor, src: Tensor, reduce: Str):
    """``scatter`` with ``reduce="add"`` or ``"multiply"``."""
    d = along(input.ndim, dim, "scatter")
    check_scatter("scatter", input, d, index, src)
    return along_dim("scatter", reduce, input, d)


@scatter_by.derivative
def _(g):
    raise GraphError(
        "scatter(reduce=...) has no derivative: use scatter_add or scatter_reduce instead"
    )


class ScatterForm:
    """How the two forms of a public op, functional and in place, find the record that runs."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    def __call__(self, input: _Any, dim: int, index: _Any, src: _Any, reduce: _Any) -> _Any:
        ops = {name: getattr(T, name + self.suffix) for name in
               ("scatter_src", "scatter_value", "scatter_by")}  # fmt: skip
        if reduce is None:
            if isinstance(src, TensorType):
                return ops["scatter_src"](input, dim, index, src)
            value = held("scatter", input._layout.dtype, src)
            return ops["scatter_value"](input, dim, index, value)
        if reduce not in ("add", "multiply"):
            raise ShapeError(f"reduce argument must be either add or multiply, got {reduce!r}")
        if not isinstance(src, TensorType):
            dtype = input._layout.dtype
            value = held("scatter", dtype, src)
            src = T.full_layout(tuple(index._layout.shape), value, dtype, input._layout.device)
        return ops["scatter_by"](input, dim, index, src, reduce)


def source_of(op: str, src: _Any, value: _Any) -> _Any:
    """The one of the two that is given: ``src``, a tensor or a number, or ``value``, a number."""
    if (src is None) == (value is None):
        raise ArgumentError(
            f"{op}(): {'nothing says' if src is None else 'src and value both say'} what is "
            "written: give src=, a tensor, or value=, a number"
        )
    if src is None or not isinstance(src, TensorType):
        return to_number(op, "value" if src is None else "src", value if src is None else src)
    return src


@composite()
def scatter(
    input: Tensor, dim: Dim, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: Any = None,
):  # fmt: skip
    """``input`` with elements of ``src`` (a tensor or a number) written where ``index`` says.

    ``out[index[i, j], j] = src[i, j]`` for ``dim == 0``. ``reduce``: ``"add"`` or ``"multiply"``.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html.

    >>> torch.scatter(torch.zeros(2, 2), 0, torch.tensor([[1, 0]]), torch.tensor([[5., 6.]]))
    tensor([[0., 6.],
            [5., 0.]])
    """
    return ScatterForm("")(input, dim, index, source_of("scatter", src, value), reduce)


@scatter.samples
def _(make):
    yield make(4, 3), 0, make.ints((1, 3), 4), make(1, 3)
    yield make(3, 4), 1, make.ints((3, 1), 4), 2.5
    yield (make(3, 4), 0, make.ints((1, 4), 1) + 3, 1.0), {}, RuntimeError, "out of bounds"


@composite(function=False, name="scatter_", out=False)
def scatter_(
    input: Tensor, dim: Dim, index: Tensor, src: Any = None, *, value: Any = None,
    reduce: Any = None,
):  # fmt: skip
    """In-place form of :func:`antorcha.scatter`; gives the changed tensor."""
    return ScatterForm("_")(input, dim, index, source_of("scatter_", src, value), reduce)


@kernel(inplace=True)
def scatter_add(input: Tensor, dim: Dim, index: Tensor, src: Tensor):
    """``input`` with the elements of ``src`` added where ``index`` says.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_add_.html.

    >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.]))
    tensor([3., 0., 3.])
    """
    d = along(input.ndim, dim, "scatter_add")
    check_scatter("scatter_add", input, d, index, src)
    return along_dim("scatter_add", "add", input, d)


@scatter_add.derivative
def _(g, src_layout, dim, index, needs):
    return g, None, source_gradient(g, src_layout, dim, index) if needs[2] else None


@scatter_add.samples
def _(make):
    yield make(3, 4), 0, make.ints((2, 4), 3), make(2, 4)
    yield make(3, 4), 1, make.ints((3, 6), 4), make(3, 6)


REDUCES = {"sum": "add", "prod": "multiply", "mean": "mean", "amax": "max", "amin": "min"}
"""PyTorch's names, and the folds that they are."""
OTHER_NAMES = {"max": "amax", "min": "amin"}


@kernel(inplace=True)
def scatter_reduce(
    input: Tensor, dim: Dim, index: Tensor, src: Tensor, reduce: Str, *, include_self: Bool = True
):
    """``input`` with the elements of ``src`` folded in where ``index`` says.

    ``reduce``: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``, of the old element (unless
    ``include_self`` is False) and all that arrive there.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_reduce_.html.

    >>> x, i = torch.tensor([1., 2.]), torch.tensor([0, 0, 1])
    >>> torch.scatter_reduce(x, 0, i, torch.tensor([3., 4., 5.]), reduce="sum")
    tensor([8., 7.])
    """
    reduce = OTHER_NAMES.get(reduce, reduce)
    if reduce not in REDUCES:
        raise ShapeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    d = along(input.ndim, dim, "scatter_reduce")
    check_scatter("scatter_reduce", input, d, index, src)
    return along_dim("scatter_reduce", REDUCES[reduce], input, d, include_self)


@scatter_reduce.derivative
def _(g, out, input, dim, index, src, reduce, include_self, needs):
    reduce = OTHER_NAMES.get(reduce, reduce)
    mine, theirs = reduce_gradients(g, out, input, dim, index, src, reduce, include_self)
    if not include_self:
        mine = T.scatter_value(mine, dim, index, 0)
    return mine, None, source_gradient(theirs, src._layout, dim, index) if isinstance(
        theirs, TensorType) else theirs(src._layout)  # fmt: skip


def reduce_gradients(
    g: _Any, out: _Any, input: _Any, dim: int, index: _Any, src: _Any, reduce: str, own: bool
) -> tuple[_Any, _Any]:
    """The gradient of the input, and what the source's is gathered from (or a function)."""
    own_layout = input._layout
    if reduce == "sum":
        return g, g
    if reduce == "mean":
        count = T.full_layout(
            tuple(own_layout.shape), 1 if own else 0, own_layout.dtype, own_layout.device
        )
        ones = T.full_layout(tuple(index._layout.shape), 1, own_layout.dtype, own_layout.device)
        count = T.scatter_add(count, dim, index, ones)
        count = T.where(T.eq(count, 0), 1, count)
        each = T.div(g, count)
        return each, each
    part = part_of(src, index)
    if reduce == "prod":
        return product_gradients(g, input, dim, index, part, own)
    value = T.gather(out, dim, index)
    hit = T.to_dtype(T.eq(part.detach(), value.detach()), own_layout.dtype)
    mine = T.to_dtype(T.eq(input.detach(), out.detach()), own_layout.dtype)
    start = mine if own else T.scatter_value(mine, dim, index, 0)
    count = T.scatter_add(start, dim, index, hit)
    count = T.where(T.eq(count, 0), 1, count)
    each = T.div(g, count)
    return T.mul(mine, each), lambda layout: put_back(
        T.mul(hit, T.gather(each, dim, index)), layout)  # fmt: skip


def product_gradients(
    g: _Any, input: _Any, dim: int, index: _Any, part: _Any, own: bool
) -> tuple[_Any, _Any]:
    """Products without each of their factors: by division, but for those with zeros."""
    base = input if own else T.scatter_value(input, dim, index, 1)
    zero_mine = T.eq(base, 0)
    zero_part = T.eq(part, 0)
    own_layout = input._layout
    filled = T.where(zero_mine, 1, base)
    rest = T.where(zero_part, 1, part)
    product = T.scatter_reduce(filled, dim, index, rest, "prod")  # of all that is not zero
    zeros = T.scatter_add(T.to_dtype(zero_mine, own_layout.dtype), dim, index,
                          T.to_dtype(zero_part, own_layout.dtype))  # fmt: skip
    alone = T.where(T.eq(zeros, T.to_dtype(zero_mine, own_layout.dtype)), T.div(product, filled), 0)
    there = T.gather(zeros, dim, index)
    others = T.sub(there, T.to_dtype(zero_part, own_layout.dtype))
    each = T.where(T.eq(others, 0), T.div(T.gather(product, dim, index), rest), 0)
    theirs = T.mul(T.gather(g, dim, index), each)
    return T.mul(g, alone), lambda layout: put_back(theirs, layout)


def part_of(src: _Any, index: _Any) -> _Any:
    """The part of a source that the index covers."""
    for d, n in enumerate(index._layout.shape):
        if src._layout.ndim and src._layout.shape[d] != n:
            src = T.slice(src, d, 0, n, 1)
    return src


def put_back(part: _Any, layout: Layout) -> _Any:
    if part._layout.shape == layout.shape:
        return part
    flat = T.embed_strided(part, layout.numel, plain(layout).strides, 0)
    return T.view(flat, tuple(layout.shape))


@scatter_reduce.samples
def _(make):
    for reduce in REDUCES:
        yield make(3, 4), 0, make.ints((2, 4), 3), make(2, 4), reduce
    yield (make(3, 4), 1, make.ints((3, 2), 4), make(3, 2), "mean"), {"include_self": False}
    yield (make(3), 0, make.ints((2,), 3), make(2), "most"), {}, RuntimeError, "either sum, prod"


# --------------------------------------------------------------------------------------- masks
@kernel(function=False, method=False, out=False, node="masked_select")
def selected(input: Tensor, mask: Tensor):
    """What ``masked_select`` runs: both operands broadcast."""
    if mask.dtype.name != "bool":
        raise DtypeError(f"masked_select: expected BoolTensor for mask, got {mask.dtype}")
    broadcast_shapes(input.shape, mask.shape, op="masked_select")
    return Planned(Select("masked_select", positions=False), [((0,), input.dtype)])


@selected.derivative
def _(g, input_layout, mask):
    shape = broadcast_shapes(input_layout.shape, mask._layout.shape)
    zeros = T.full_layout(tuple(shape), 0, input_layout.dtype, input_layout.device)
    return T.masked_scatter(zeros, mask, g), None


@composite()
def masked_select(input: Tensor, mask: Tensor):
    """The elements at which the mask is True, in order, in one dim.

    >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
    tensor([1, 3])
    """
    shape = tuple(broadcast_shapes(input._layout.shape, mask._layout.shape, op="masked_select"))
    return T.selected(spread(input, shape), T.contiguous(spread(mask, shape)))


def spread(tensor: _Any, shape: tuple[int, ...]) -> _Any:
    """The tensor as it broadcasts to a shape."""
    return tensor if tuple(tensor._layout.shape) == shape else T.expand(tensor, shape)


@masked_select.samples
def _(make):
    yield make(3, 4), make.bools((3, 4))
    yield make(3, 4), make.bools((4,))
    yield make(3, 1), make.bools((3, 70))


@kernel(inplace=True, out=False)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor):
    """``input`` with the elements at which the mask is True replaced by those of ``source``, in
    order. The mask broadcasts; ``source`` needs as many elements as are replaced.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_scatter_.html.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked_scatter(torch.zeros(3), mask, torch.tensor([1., 2.]))
    tensor([1., 0., 2.])
    """
    if mask.dtype.name != "bool":
        raise DtypeError(
            "masked_scatter_ only supports boolean masks, but got {0.dtype}", reason="needs mask",
            op="masked_scatter", operands=(mask,),
        )  # fmt: skip
    check_same_dtype("masked_scatter", input, source, "source")
    shape = tuple(broadcast_shapes(input.shape, mask.shape, op="masked_scatter"))
    out = L.contiguous(shape, input.dtype, input.device)
    return Planned(Replace("masked_scatter", short_of), [out])


def short_of(wanted: int, given: int) -> ShapeError:
    return ShapeError(
        f"masked_scatter: expected self and source to have same dtypes and source to have at least "
        f"as many elements as the mask has ones: {wanted} in the mask, {given} in the source"
    )


@masked_scatter.derivative
def _(g, source_layout, mask, needs):
    mine = T.masked_fill(g, mask, 0) if needs[0] else None
    if not needs[2]:
        return mine, None, None
    wide = T.expand(mask, tuple(g._layout.shape))
    part = T.selected(g, wide)
    if part._layout.numel != source_layout.numel:
        part = T.embed_strided(part, source_layout.numel, (1,), 0)
    return mine, None, T.reshape(part, tuple(source_layout.shape))


@masked_scatter.batches
def _(batch, run, input, mask, source):
    count = source._layout.numel
    if not count:
        return batch.one_by_one(run, (input, mask, source))
    shape = broadcast_shapes(input._layout.shape, mask._layout.shape, op="masked_scatter")
    chosen = T.expand(mask, tuple(shape))
    # the number of the element of the source that comes to each place
    number = T.sub(T.cumsum(T.reshape(chosen, (-1,)), 0), 1)
    number = T.where(T.reshape(chosen, (-1,)), number, 0)
    taken = T.reshape(T.gather(T.reshape(source, (-1,)), 0, number), tuple(shape))
    result = T.where(chosen, taken, input)
    return T.copy_(input, result) if run.is_inplace else result


@masked_scatter.samples
def _(make):
    yield make(3, 4), make.bools((3, 4)), make(12)
    yield make(2, 70), make.bools((2, 70)), make(150)
    yield make(3, 4), make.bools((4,)), make(12)
