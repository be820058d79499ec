"""The greatest and the least: max, min and their kin. One record per op.

NaN wins: it is the maximum and the minimum of what contains it, at its first position. The public
``max`` and ``min`` choose among the forms of PyTorch: over all elements, along a dim (with
indices), and of two tensors element by element.
"""

from __future__ import annotations

import math

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.errors import DtypeError, MissingFeature
from antorcha.lang import expr as E
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.reduction import ElementKind, Folding, reduction
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, Bool, Dim, Dims, OptTensor, Tensor
from antorcha.ops.reduce import beside
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

NONE = "no extreme value exists"


def bounds(dtype: dtypes.dtype) -> tuple[float, float]:
    """The least and the greatest value of a dtype."""
    if dtype.kind == "f":
        return -math.inf, math.inf
    if dtype.kind == "b":
        return False, True
    info = np.iinfo(dtype.np)
    return int(info.min), int(info.max)


def check_ordered(
    op: str, input: Layout | ElementKind, exception: type[Exception] = MissingFeature
) -> None:
    """Complex numbers have no order."""
    if input.dtype.kind == "c":
        raise exception(
            f"{op}: does not support complex input, got {input.dtype}: complex numbers have no "
            "order. Compare their abs(), or real and imag."
        )


def before(a: Tensor, i: Tensor, b: Tensor, j: Tensor, greater: bool) -> Tensor:
    """Whether (b, j) goes before (a, i): more extreme, or NaN, or as extreme and earlier."""
    more = b > a if greater else b < a
    nan_a, nan_b = E.isnan(a), E.isnan(b)
    same = (a == b) | (nan_a & nan_b)
    return ~(nan_a & ~nan_b) & (more | (nan_b & ~nan_a) | (same & (j < i)))


def extreme_with_place(
    input: ElementKind, greater: bool, outs: tuple[dtypes.dtype | None, ...]
) -> Folding:
    """The fold to (extreme value, its first position)."""
    low, high = bounds(input.dtype)

    def merge(a: E.Expr, i: E.Expr, b: E.Expr, j: E.Expr) -> tuple[E.Expr, E.Expr]:
        take = before(a, i, b, j, greater)
        return E.where(take, b, a), E.where(take, j, i)

    def append(a: E.Expr, i: E.Expr, b: E.Expr, j: E.Expr) -> tuple[E.Expr, E.Expr]:
        take = ~(b <= a if greater else b >= a) & ~E.isnan(a)  # or b is NaN: nothing compares
        return E.where(take, b, a), E.where(take, j, i)

    # (what no element goes before is the start itself, all of them, and the first is at 0)
    return Folding(
        start=(low if greater else high, 0), lift=lambda x, i: (x, i), merge=merge, append=append,
        finish=(lambda v, i, n: (v, i)) if len(outs) == 2 else (lambda v, i, n: i),
        state=(None, dtypes.int64), outs=outs, empty=NONE,
    )  # fmt: skip


def extreme(input: ElementKind, greater: bool) -> Folding:
    low, high = bounds(input.dtype)
    return Folding(
        start=low if greater else high, merge=E.maximum if greater else E.minimum, empty=NONE
    )


# ------------------------------------------------------------------------------- over all elements
@reduction("same", function=False, method=False, node="MaxBackward1")
def max_all(input: Tensor):
    """The greatest of all elements: ``torch.max(input)``."""
    check_ordered("max", input)
    return extreme(input, True)


@reduction("same", function=False, method=False, node="MinBackward1", samples=of_shapes((3, 4)))
def min_all(input: Tensor):
    """The least of all elements: ``torch.min(input)``."""
    check_ordered("min", input)
    return extreme(input, False)


def _share_all(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    return T.share(g, input, out, T.count_equal(input, out, None, False))


max_all.derivative(_share_all)
min_all.derivative(_share_all)


@reduction("same", function=False, method=False)
def count_equal(input: Tensor, other: Tensor, dim: Dims = None, keepdim: Bool = False):
    """How many elements equal ``other`` (which broadcasts); NaN equals NaN."""
    return Folding(
        start=0,
        lift=lambda x, y, i: E.cast((x == y) | (E.isnan(x) & E.isnan(y)), dtypes.int64),
        merge=lambda a, b: a + b, state=(dtypes.int64,), outs=(dtypes.int64,),
    )  # fmt: skip


@pointwise(function=False, method=False)
def share(g: Tensor, input: Tensor, out: Tensor, count: Tensor):
    """A gradient shared evenly by the elements that equal the result."""
    equal = (input == out) | (E.isnan(input) & E.isnan(out))
    return E.where(equal, g / count, 0)


@max_all.samples
def _(make):
    yield (make(3, 4),)
    yield (make(),)


# ------------------------------------------------------------------------------------ along a dim
@reduction("same", function=False, method=False, node="MaxBackward0", returns=return_types.max)
def max_dim(input: Tensor, dim: Dim, keepdim: Bool = False):
    """The greatest along a dim and its index: ``torch.max(input, dim)``."""
    check_ordered("max", input)
    return extreme_with_place(input, True, (None, dtypes.int64))


@reduction("same", function=False, method=False, node="MinBackward0", returns=return_types.min)
def min_dim(input: Tensor, dim: Dim, keepdim: Bool = False):
    """The least along a dim and its index: ``torch.min(input, dim)``."""
    check_ordered("min", input)
    return extreme_with_place(input, False, (None, dtypes.int64))


def to_index(
    g: Any, input_layout: Layout, dims: tuple[int, ...], keepdim: bool, out1: Tensor
) -> OptTensor:
    """The gradient of values chosen along one dim: it goes to the element at each index."""
    (value, _) = g if isinstance(g, tuple) else (g, None)
    if value is None:
        return None
    if not dims:  # a 0-dim operand
        return T.view(value, input_layout.shape)
    value = beside(value, input_layout, dims, keepdim)
    index = beside(out1, input_layout, dims, keepdim)
    return T.put_along(value, index, dims[0], input_layout.shape[dims[0]])


max_dim.derivative(to_index)
min_dim.derivative(to_index)


@max_dim.samples
@min_dim.samples
def _(make):
    yield make(3, 4), 1
    yield make(2, 3, 4), 0, True


def choose(name: str, input: Tensor, dim: Any, keepdim: bool, other: OptTensor) -> Any:
    """The form of ``max`` or ``min`` that the arguments call."""
    if other is not None:
        return getattr(T, name + "imum")(input, other)
    if dim is None:
        return getattr(T, name + "_all")(input)
    if isinstance(dim, TensorType):
        return getattr(T, name + "imum")(input, dim)
    return getattr(T, name + "_dim")(input, dim, keepdim)


@composite()
def max(input: Tensor, dim: Any = None, keepdim: Bool = False, *, other: OptTensor = None):
    """The greatest of all elements; with ``dim`` the greatest along it and where, as
    (values, indices); with another tensor the greater of each two elements.

    Gradients go to the index along a dim; over all elements, ties share it evenly.

    >>> torch.max(torch.tensor([[1., 5.], [7., 3.]]), 1)
    torch.return_types.max(
    values=tensor([5., 7.]),
    indices=tensor([1, 0]))
    """
    return choose("max", input, dim, keepdim, other)


@composite()
def min(input: Tensor, dim: Any = None, keepdim: Bool = False, *, other: OptTensor = None):
    """The least of all elements; with ``dim`` the least along it and where, as (values, indices);
    with another tensor the lesser of each two elements.

    >>> torch.min(torch.tensor([4., 2., 8.]))
    tensor(2.)
    """
    return choose("min", input, dim, keepdim, other)


@max.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(3, 4), 0, True
    yield make(3, 4), make(4)
    yield (make(0),), {}, RuntimeError, "no elements"
    yield (make(0, 3), 0), {}, IndexError, "no elements"
    yield (make(2, 3), 2), {}, IndexError, "out of range"


@min.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(3, 4), make(4)


# ------------------------------------------------------------------------------------ amax, amin
def _share_along(
    g: Tensor, input: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool
) -> Tensor:
    layout = input._layout
    out = beside(out, layout, dims, keepdim)
    if not dims:
        return g
    return T.share(
        beside(g, layout, dims, keepdim), input, out, T.count_equal(input, out, dims, True)
    )


@reduction("same")
def amax(input: Tensor, dim: Dims = (), keepdim: Bool = False):
    """The greatest element along the dims (all, by default). Ties share the gradient evenly.

    >>> torch.amax(torch.tensor([[1., 5.], [7., 3.]]), 1)
    tensor([5., 7.])
    """
    check_ordered("amax", input)
    return extreme(input, True)


@reduction("same")
def amin(input: Tensor, dim: Dims = (), keepdim: Bool = False):
    """The least element along the dims (all, by default). Ties share the gradient evenly.

    >>> torch.amin(torch.tensor([[1., 5.], [7., 3.]]), 1)
    tensor([1., 3.])
    """
    check_ordered("amin", input)
    return extreme(input, False)


amax.derivative(_share_along)
amin.derivative(_share_along)


@amax.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, 2), True
    yield (make(0, 3), 0), {}, IndexError, "no elements"


@amin.samples
def _(make):
    yield (make(3, 4),)
    yield make(2, 3, 4), (0, 2)


@reduction("same", returns=return_types.aminmax)
def aminmax(input: Tensor, *, dim: Dim = None, keepdim: Bool = False):
    """The least and the greatest element in one pass, as (min, max).

    >>> torch.aminmax(torch.tensor([1, -3, 5]))
    torch.return_types.aminmax(
    min=tensor(-3),
    max=tensor(5))
    """
    check_ordered("aminmax", input)
    low, high = bounds(input.dtype)
    return Folding(
        start=(high, low), lift=lambda x, i: (x, x),
        merge=lambda a, b, c, d: (E.minimum(a, c), E.maximum(b, d)),
        state=(None, None), outs=(None, None), empty=NONE,
    )  # fmt: skip


@aminmax.derivative
def _(g, input, out0, out1, dims, keepdim):
    found = None
    for each, out in zip(g, (out0, out1), strict=True):
        if each is not None:
            part = _share_along(each, input, out, dims, keepdim)
            found = part if found is None else found + part
    return found


@aminmax.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3, 4),), {"dim": 1}
    yield (make(3, 4),), {"dim": 0, "keepdim": True}


# ------------------------------------------------------------------------------- argmax, argmin
def _check_arg(op: str, input: ElementKind) -> None:
    check_ordered(op, input, DtypeError)
    if input.dtype.kind == "b":
        raise DtypeError(f"{op}(): does not support bool input; use x.to(torch.uint8)")


@reduction("same")
def argmax(input: Tensor, dim: Dim = None, keepdim: Bool = False):
    """The index of the greatest element, in the flattened tensor or along ``dim``; the first of
    equals.

    >>> torch.argmax(torch.tensor([[1., 5.], [7., 3.]]), dim=1)
    tensor([1, 0])
    """
    _check_arg("argmax", input)
    return extreme_with_place(input, True, (dtypes.int64,))


@reduction("same")
def argmin(input: Tensor, dim: Dim = None, keepdim: Bool = False):
    """The index of the least element, in the flattened tensor or along ``dim``; the first of
    equals.

    >>> torch.argmin(torch.tensor([[1., 5.], [7., 3.]]), dim=1)
    tensor([0, 1])
    """
    _check_arg("argmin", input)
    return extreme_with_place(input, False, (dtypes.int64,))


@argmax.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), 0, True
    yield (make(0),), {}, IndexError, "no elements"


@argmin.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
