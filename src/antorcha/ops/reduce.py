"""Reductions: sums, means, products, logic. One record per op; extrema are in ``extrema``.

How a fold becomes a kernel is in ``reduction``. The gradients of a reduction go back over the
reduced dims as views (``spread``).
"""

from __future__ import annotations

import builtins
import math

from antorcha import dtypes
from antorcha.errors import DtypeError, MissingFeature
from antorcha.lang import expr as E
from antorcha.ops.pointwise import pointwise
from antorcha.ops.record import T
from antorcha.ops.reduction import Fold, reduction
from antorcha.ops.types import Bool, Dim, Dims, Dtype, Tensor


def spread(g, layout, dims, keepdim):
    """A reduction's gradient (or result), put back over the reduced dims (a view)."""
    if g._layout.ndim == 0:
        return g.expand(tuple(layout.shape))
    return beside(g, layout, dims, keepdim).expand(tuple(layout.shape))


def beside(g, layout, dims, keepdim):
    """A reduction's gradient or result with its reduced dims as size 1: it broadcasts (a view)."""
    if keepdim or not dims or g._layout.ndim == layout.ndim:
        return g
    return g.view(tuple([1 if d in dims else n for d, n in enumerate(layout.shape)]))


def count_of(layout, dims):
    """How many elements each result folds."""
    return math.prod([layout.shape[d] for d in dims])


@reduction("sum", nodes=("SumBackward0", "SumBackward1"))
def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The sum of all elements, or along ``dim`` (an int or a tuple); integers give int64.

    Floats are summed in blocks, so that the error grows slowly with their number.

    >>> torch.sum(torch.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    return Fold(start=0, merge=lambda a, b: a + b)


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


@reduction("float", nodes=("MeanBackward0", "MeanBackward1"))
def mean(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The mean of all elements, or along ``dim``. Floats only.

    >>> torch.mean(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([1.5000, 3.5000])
    """
    return Fold(start=0, merge=lambda a, b: a + b, finish=lambda s, n: s / E.cast(n, s.dtype))


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
    return Fold(start=0, lift=lambda x, i: E.where(E.isnan(x), 0, x), merge=lambda a, b: a + b)


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
    return Fold(
        start=(0, 0),
        lift=lambda x, i: (E.where(E.isnan(x), 0, x), E.where(E.isnan(x), 0, 1)),
        merge=lambda s, n, t, m: (s + t, n + m),
        finish=lambda s, n, count: s / n,
        state=(None, None),
    )


@nanmean.derivative
def _(g, input, dim, keepdim, dims):
    lay = input._layout
    count = T.sum(T.bitwise_not(T.isnan(input)), dims if dims else (), True)
    return T.nan_to_zero_backward(T.expand(beside(g, lay, dims, keepdim) / count, lay.shape), input)


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
    return Fold(start=1, merge=lambda a, b: a * b)


@prod.derivative
def _(g, input, out, dims, keepdim, create):
    lay = input._layout
    g = beside(g, lay, dims, keepdim)
    if not create:
        out = beside(out, lay, dims, keepdim)
        others, zeros = [beside(t, lay, dims, False) for t in T.prod_others(input, dims)]
        return T.prod_backward(g, input, out, others, zeros)
    # With zeros only the products of what lies left and right of each element derive further.
    if not dims:
        return T.mul(g, T.ones_like(input))
    flat = T.reshape(input, (-1,)) if len(dims) > 1 else input
    d = 0 if len(dims) > 1 else dims[0]
    found = T.mul(T.exclusive_cumprod(flat, d, False), T.exclusive_cumprod(flat, d, True))
    return T.mul(g, T.reshape(T.conj(found) if lay.dtype.kind == "c" else found, lay.shape))


@prod.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), 0, True


@reduction("sum", function=False, method=False)
def prod_others(input: Tensor, dim: Dims = None):
    """The product of all that is not zero, and how many zeros there are (dims are kept)."""
    return Fold(
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
def _truth_dtype(input):
    """bool; PyTorch keeps uint8, from the days before bool."""
    return input.dtype if input.dtype is dtypes.uint8 else dtypes.bool_


@reduction("bool", empty_dims_are_all=False)
def any(input: Tensor, dim: Dims = None, keepdim: Bool = False):
    """Whether any element is not zero (NaN is not), among all or along ``dim``.

    >>> torch.any(torch.tensor([[True, False], [False, False]]), 1)
    tensor([ True, False])
    """
    return Fold(start=False, merge=lambda a, b: a | b, outs=(_truth_dtype(input),))


@reduction("bool", empty_dims_are_all=False)
def all(input: Tensor, dim: Dims = None, keepdim: Bool = False):
    """Whether all elements are not zero, or all along ``dim``; over no elements it holds.

    >>> torch.all(torch.tensor([[True, True], [True, False]]), 1)
    tensor([ True, False])
    """
    return Fold(start=True, merge=lambda a, b: a & b, outs=(_truth_dtype(input),))


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
    return Fold(
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
    if input.dtype.kind == "c":
        raise MissingFeature(
            "logsumexp: complex inputs are not supported yet; use x.exp().sum(dim).log()"
        )

    def exponential(x, top, i):
        return E.exp(x - _finite(top)), top

    return Fold(
        before=Fold(start=-math.inf, merge=E.maximum),
        start=(0, -math.inf), lift=exponential,
        merge=lambda s, m, t, n: (s + t, E.maximum(m, n)),
        finish=lambda s, top, n: E.log(s) + _finite(top), state=(None, None),
    )  # fmt: skip


def _finite(top):
    return E.where(E.isinf(top), 0, top)


@logsumexp.derivative
def _(g, input, out, dims, keepdim):
    lay = input._layout
    return T.logsumexp_backward(
        beside(g, lay, dims, keepdim), input, beside(out, lay, dims, keepdim)
    )


@logsumexp.samples
def _(make):
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, 2), True
    yield make(3), 0


@pointwise(function=False, method=False)
def logsumexp_backward(g: Tensor, input: Tensor, out: Tensor):
    """The gradient of logsumexp: each element's share of the sum."""
    return g * E.exp(input - out)
