"""Reductions: sums, means, products, logic. One record per op; extrema are in ``extrema``.

How a fold becomes a kernel is in ``reduction``. The gradients of a reduction go back over the
reduced dims as views (``spread``).
"""

from __future__ import annotations

import builtins
import math

from antorcha.core import dtypes
from antorcha.errors import DtypeError, MissingFeature, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.reduction import ElementKind, Folding, reduction
from antorcha.ops.kinds.types import Bool, Dim, Dims, Dtype, Int, Tensor
from antorcha.runtime.memory.layout import Layout


def spread(g: Tensor, layout: Layout, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduction's gradient (or result), put back over the reduced dims (a view)."""
    if g._layout.ndim == 0:
        return g.expand(tuple(layout.shape))
    return beside(g, layout, dims, keepdim).expand(tuple(layout.shape))


def beside(g: Tensor, layout: Layout, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduction's gradient or result with its reduced dims as size 1: it broadcasts (a view)."""
    if keepdim or not dims or g._layout.ndim == layout.ndim:
        return g
    return g.view(tuple([1 if d in dims else n for d, n in enumerate(layout.shape)]))


def count_of(layout: Layout, dims: tuple[int, ...]) -> int:
    """How many elements each result folds."""
    return math.prod([layout.shape[d] for d in dims])


@reduction("sum", nodes=("SumBackward0", "SumBackward1"))
def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The sum of all elements, or along ``dim`` (an int or a tuple); integers give int64.

    Floats are summed in blocks, so that the error grows slowly with their number.

    >>> torch.sum(torch.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    return Folding(start=0, merge=lambda a, b: a + b)


sum.derivative(lambda g, input_layout, dims, keepdim: spread(g, input_layout, dims, keepdim))


@sum.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0
    yield make(3, 4), (0, 1), True
    yield make(2, 3, 4), (0, 2)
    yield make(), None
    yield (make(0, 3), 0)
    yield (make(3, 4), 2), {}, IndexError, "out of range"


@composite()
def hash_tensor(input: Tensor, dim: Dims = None, *, keepdim: Bool = False, mode: Int = 0):
    """A number that tells tensors apart: the exclusive or of the elements' bits, floats taken as
    float64, over all elements or along ``dim``.

    >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """
    layout = input._layout
    if mode != 0:
        raise ShapeError(f"hash_tensor: Unknown hash_tensor mode: {mode}")
    if layout.dtype.kind == "c":
        raise MissingFeature(f'hash_tensor: "xor_sum_cpu" not implemented for {layout.dtype}')
    exact = input
    if layout.dtype.kind == "f":
        exact = T.to_dtype(input, dtypes.float64).view(dtypes.int64)
    folded = T.xor_sum(T.to_dtype(exact, dtypes.int64), dim, keepdim)
    return folded.view(dtypes.uint64)


@hash_tensor.samples
def _(make):
    yield (make.ints((3, 4), 9),)
    yield (make.ints((3, 4), 9), 1), {"keepdim": True}
    yield (make.ints((3,), 9),), {"mode": 1}, RuntimeError, "Unknown hash_tensor mode"


@reduction("same", function=False, method=False, out=False)
def xor_sum(input: Tensor, dim: Dims = None, keepdim: Bool = False):
    """The exclusive or of integers: what ``hash_tensor`` runs."""
    return Folding(start=0, merge=lambda a, b: a ^ b, empty="hash_tensor")


@reduction("float", nodes=("MeanBackward0", "MeanBackward1"))
def mean(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The mean of all elements, or along ``dim``. Floats only.

    >>> torch.mean(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([1.5000, 3.5000])
    """
    return Folding(start=0, merge=lambda a, b: a + b, finish=lambda s, n: s / E.cast(n, s.dtype))


@mean.derivative
def _(g, input_layout, dims, keepdim):
    return spread(g / builtins.max(count_of(input_layout, dims), 1), input_layout, dims, keepdim)


@mean.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, 2), True
    yield (make(3).long(),), {}, RuntimeError, "could not infer output dtype"


@reduction("sum", nodes=("NansumBackward0", "NansumBackward0"))
def nansum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The sum in which NaN counts as zero.

    >>> torch.nansum(torch.tensor([1., 2., float("nan"), 4.]))
    tensor(7.)
    """
    if input.dtype.kind == "c":
        raise DtypeError(f"nansum: nansum does not support complex inputs, got {input.dtype}")
    return Folding(start=0, lift=lambda x, i: E.where(E.isnan(x), 0, x), merge=lambda a, b: a + b)


@nansum.derivative
def _(g, input, dims, keepdim):
    return T.nan_to_zero_backward(beside(g, input._layout, dims, keepdim), input)


@pointwise(function=False, method=False)
def nan_to_zero_backward(g: Tensor, input: Tensor):
    """The gradient where ``input`` is a number, 0 where it is NaN."""
    return E.where(E.isnan(input), 0, g)


@reduction("float", node="div")
def nanmean(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The mean of the elements that are not NaN.

    >>> torch.nanmean(torch.tensor([[1., 2., 3.], [float("nan"), 2., 4.]]), dim=1)
    tensor([2., 3.])
    """
    if input.dtype.kind != "f":
        raise DtypeError(
            f"nanmean(): expected input to have floating point dtype, got {input.dtype}"
        )
    return Folding(
        start=(0, 0),
        lift=lambda x, i: (E.where(E.isnan(x), 0, x), E.where(E.isnan(x), 0, 1)),
        merge=lambda s, n, t, m: (s + t, n + m),
        finish=lambda s, n, count: s / n,
        state=(None, None),
    )


@nanmean.derivative
def _(g, input, dim, keepdim, dims):
    layout = input._layout
    count = T.sum(T.bitwise_not(T.isnan(input)), dims if dims else (), True)
    return T.nan_to_zero_backward(
        T.expand(beside(g, layout, dims, keepdim) / count, layout.shape), input
    )


@nansum.samples
@nanmean.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, -1), True


@reduction("sum", nodes=("ProdBackward0", "ProdBackward1"))
def prod(input: Tensor, dim: Dim = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The product of all elements, or along one ``dim``; integers give int64.

    >>> torch.prod(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([ 2., 12.])
    """
    return Folding(start=1, merge=lambda a, b: a * b)


@prod.derivative
def _(g, input, out, dims, keepdim, create):
    layout = input._layout
    g = beside(g, layout, dims, keepdim)
    if not create:
        out = beside(out, layout, dims, keepdim)
        others, zeros = [beside(t, layout, dims, False) for t in T.prod_others(input, dims)]
        return T.prod_backward(g, input, out, others, zeros)
    # With zeros only the products of what lies left and right of each element derive further.
    if not dims:
        return T.mul(g, T.ones_like(input))
    flat = T.reshape(input, (-1,)) if len(dims) > 1 else input
    d = 0 if len(dims) > 1 else dims[0]
    found = T.mul(T.exclusive_cumprod(flat, d, False), T.exclusive_cumprod(flat, d, True))
    return T.mul(g, T.reshape(T.conj(found) if layout.dtype.kind == "c" else found, layout.shape))


@prod.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), 0, True


@reduction("sum", function=False, method=False)
def prod_others(input: Tensor, dim: Dims = None):
    """The product of all that is not zero, and how many zeros there are (dims are kept)."""
    return Folding(
        start=(1, 0),
        lift=lambda x, i: (E.where(x == 0, 1, x), E.cast(x == 0, dtypes.int64)),
        merge=lambda p, n, q, m: (p * q, n + m),
        state=(None, dtypes.int64), outs=(None, dtypes.int64),
    )  # fmt: skip


@pointwise(function=False, method=False)
def prod_backward(g: Tensor, input: Tensor, out: Tensor, others: Tensor, zeros: Tensor):
    """The gradient of a product: the product of the other elements."""
    zero = input == 0
    # the one zero's gradient is the product of the rest; with two zeros there is none
    rest = E.where(
        zeros == 0, out / E.where(zero, 1, input), E.where(zero & (zeros == 1), others, 0)
    )
    return g * E.conj(rest)


# ---------------------------------------------------------------------------------------- logic
def _truth_dtype(input: ElementKind) -> dtypes.dtype:
    """bool; PyTorch keeps uint8, from the days before bool."""
    return input.dtype if input.dtype is dtypes.uint8 else dtypes.bool_


@reduction("bool", empty_dims_are_all=False)
def any(input: Tensor, dim: Dims = None, keepdim: Bool = False):
    """Whether any element is not zero (NaN is not), among all or along ``dim``.

    >>> torch.any(torch.tensor([[True, False], [False, False]]), 1)
    tensor([ True, False])
    """
    return Folding(start=False, merge=lambda a, b: a | b, outs=(_truth_dtype(input),))


@reduction("bool", empty_dims_are_all=False)
def all(input: Tensor, dim: Dims = None, keepdim: Bool = False):
    """Whether all elements are not zero, or all along ``dim``; over no elements it holds.

    >>> torch.all(torch.tensor([[True, True], [True, False]]), 1)
    tensor([ True, False])
    """
    return Folding(start=True, merge=lambda a, b: a & b, outs=(_truth_dtype(input),))


@any.samples
@all.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0
    yield make(2, 3, 4), (0, 2), True
    yield (make(0, 3), 0)


@reduction("bool", out=False)
def count_nonzero(input: Tensor, dim: Dims = None):
    """How many elements are not zero, among all or along ``dim``.

    >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), 0)
    tensor([1, 2])
    """
    return Folding(
        start=0, lift=lambda x, i: E.cast(x, dtypes.int64), merge=lambda a, b: a + b,
        state=(dtypes.int64,), outs=(dtypes.int64,),
    )  # fmt: skip


@count_nonzero.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0
    yield make(2, 3, 4), (0, 2)


# ------------------------------------------------------------------------------------ logsumexp
@reduction("tofloat")
def logsumexp(input: Tensor, dim: Dims, keepdim: Bool = False):
    """``log(sum(exp(input)))`` along ``dim`` without overflow: the maximum is taken out first.

    >>> torch.logsumexp(torch.tensor([[1000., 1000.], [0., 1.]]), 1)
    tensor([1000.6932,    1.3133])
    """
    real = input.dtype.to_real() if input.dtype.kind == "c" else None

    def exponential(x: E.Expr, top: E.Expr, i: E.Expr) -> tuple[E.Expr, E.Expr]:
        return E.exp(x - _finite(top)), top

    return Folding(
        before=Folding(
            start=-math.inf, merge=E.maximum, lift=(lambda x, i: x.real()) if real else None,
            state=(real,), outs=(real,),
        ),
        start=(0, -math.inf), lift=exponential,
        merge=lambda s, m, t, n: (s + t, E.maximum(m, n)),
        finish=lambda s, top, n: E.log(s) + _finite(top), state=(None, real),
    )  # fmt: skip


def _finite(top: Tensor) -> Tensor:
    return E.where(E.isinf(top), 0, top)


@logsumexp.derivative
def _(g, input, out, dims, keepdim):
    layout = input._layout
    return T.logsumexp_backward(
        beside(g, layout, dims, keepdim), input, beside(out, layout, dims, keepdim)
    )


@logsumexp.samples
def _(make):
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, 2), True
    yield make(3), 0


@pointwise(function=False, method=False)
def logsumexp_backward(g: Tensor, input: Tensor, out: Tensor):
    """The gradient of logsumexp: each element's share of the sum."""
    return g * E.exp(input - out).conj()
