"""Reductions: sums, means, extrema, logic. One record per op."""

from __future__ import annotations

import builtins


from antorcha.lang import expr as E
from antorcha.ops.record import T
from antorcha.ops.reduction import Fold, reduction
from antorcha.ops.types import Bool, Dims, Dtype, Tensor


def spread(g, layout, dims, keepdim):
    """A reduction's gradient, put back over the reduced dims (a view)."""
    shape = tuple(layout.shape)
    if not keepdim and len(dims) < len(shape):
        g = T.view(
            T.contiguous(g), tuple([1 if d in dims else n for d, n in enumerate(shape)])
        )
    return T.expand(g, shape)


@reduction("sum")
def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The sum of all elements, or along ``dim`` (an int or a tuple); integers give int64.

    Floats are summed in blocks, so that the error grows slowly with their number.
    See https://docs.pytorch.org/docs/stable/generated/torch.sum.html.

    >>> torch.sum(torch.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    return Fold(start=0, merge=lambda a, b: a + b)


@sum.derivative
def _(g, input_layout, dims, keepdim):
    return spread(g, input_layout, dims, keepdim)


@sum.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0
    yield make(3, 4), (0, 1), True
    yield make(2, 3, 4), (0, 2)
    yield make(), None
    yield (make(0, 3), 0)


@sum.errors
def _(make):
    yield (make(3, 4), 2), {}, IndexError, "out of range"


@reduction("float")
def mean(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
    """The mean of all elements, or along ``dim``. Floats only.

    See https://docs.pytorch.org/docs/stable/generated/torch.mean.html.

    >>> torch.mean(torch.tensor([[1., 2.], [3., 4.]]), 1)
    tensor([1.5000, 3.5000])
    """
    return Fold(start=0, merge=lambda a, b: a + b, finish=lambda s, n: s / E.cast(n, s.dtype))


@mean.derivative
def _(g, input_layout, dims, keepdim):
    count = 1
    for d in dims:
        count *= input_layout.shape[d]
    return spread(g / builtins.max(count, 1), input_layout, dims, keepdim)


@mean.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield make(2, 3, 4), (0, 2), True


@mean.errors
def _(make):
    yield (make(3).long(),), {}, RuntimeError, "could not infer output dtype"



