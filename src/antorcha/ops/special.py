"""Functions of two operands built on logarithms and exponentials, and the special functions.

Integers are computed in the default dtype where the record's rule is ``float``.
"""

from __future__ import annotations

import math

from antorcha.errors import ShapeError
from antorcha.lang import expr as E
from antorcha.ops.functions import function
from antorcha.ops.pointwise import pointwise
from antorcha.ops.record import T, composite
from antorcha.ops.sampled import of_shapes, spread
from antorcha.ops.types import Float, Int, Operand, Tensor


@pointwise("float", inplace=True, aliases=("arctan2",))
def atan2(input: Tensor, other: Tensor):
    """The angle of the point (``other``, ``input``), between -pi and pi.

    >>> torch.atan2(torch.tensor([1., -1.]), torch.tensor([1., -1.]))
    tensor([ 0.7854, -2.3562])
    """
    return E.atan2(input, other)


@atan2.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 1), make(4)


function("hypot", E.hypot.doc, "torch.tensor([3.]), torch.tensor([4.])", "tensor([5.])",
         takes=("Tensor", "Tensor"), inplace=True, samples=of_shapes((3, 4), (4,)))  # fmt: skip


@pointwise("floating", samples=of_shapes((3, 4), (4,)))
def logaddexp(input: Tensor, other: Tensor):
    """``log(exp(input) + exp(other))`` without overflow. Floats only.

    >>> torch.logaddexp(torch.tensor([-1.]), torch.tensor([-1., 0.]))
    tensor([-0.3069,  0.3133])
    """
    return _log_of_sum(input, other, E.exp, E.log1p)


def _log_of_sum(a, b, exp, log1p):
    """The larger plus what the smaller adds; equal infinities stay."""
    same_infinity = E.isinf(a) & (a == b)
    return E.where(same_infinity, a, E.maximum(a, b) + log1p(exp(-E.abs(a - b))))


@logaddexp.derivative
def _(g, input, other, out):
    # exp(input - out) is the share of each; a shared infinity is split as PyTorch splits it
    return g / (1 + E.exp(other - input)), g / (1 + E.exp(input - other))


@pointwise("floating", samples=of_shapes((3, 4), (4,)))
def logaddexp2(input: Tensor, other: Tensor):
    """``log2(2**input + 2**other)`` without overflow. Floats only.

    >>> torch.logaddexp2(torch.tensor([1.]), torch.tensor([1., 3.]))
    tensor([2.0000, 3.3219])
    """
    return _log_of_sum(input, other, E.exp2, lambda x: E.log1p(x) / math.log(2))


@logaddexp2.derivative
def _(g, input, other):
    return g / (1 + E.exp2(other - input)), g / (1 + E.exp2(input - other))


@pointwise("float", inplace=True, aliases=("special.xlogy",))
def xlogy(input: Operand, other: Operand):
    """``input * log(other)``, and 0 where ``input`` is 0 (nan where ``other`` is nan).

    >>> torch.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 1.]))
    tensor([0., 0.])
    """
    return E.where(E.isnan(other), math.nan, E.where(input == 0, 0.0, input * E.log(other)))


@xlogy.derivative
def _(g, input, other):
    return E.where((input == 0) & (other <= 0), 0.0, g * E.log(other)), g * input / other


@xlogy.samples
def _(make):
    yield make(3, 4), make(4, low=0.1)
    yield make(3, 4), 2.0


@pointwise("float", namespace="special")
def xlog1py(input: Operand, other: Operand):
    """``input * log1p(other)``, and 0 where ``input`` is 0 (nan where ``other`` is nan).

    >>> torch.special.xlog1py(torch.tensor([0., 2.]), torch.tensor([-1., 0.]))
    tensor([0., 0.])
    """
    return E.where(E.isnan(other), math.nan, E.where(input == 0, 0.0, input * E.log1p(other)))


@xlog1py.derivative
def _(g, input, other):
    return E.where((input == 0) & (other <= -1), 0.0, g * E.log1p(other)), g * input / (other + 1)


@xlog1py.samples
def _(make):
    yield make(3, 4), make(4, low=0.1)


@pointwise("float", inplace=True, aliases=("special.sinc",), samples=spread())
def sinc(input: Tensor):
    """``sin(pi * input) / (pi * input)``, and 1 at 0.

    >>> torch.sinc(torch.tensor([0., 0.5]))
    tensor([1.0000, 0.6366])
    """
    t = input * math.pi
    return E.where(input == 0, 1, E.sin(t) / t)


@sinc.derivative
def _(g, input):
    t = input * math.pi
    slope = (t * E.cos(t) - E.sin(t)) / (t * input)
    return E.where(t == 0, 0.0, g * E.conj(slope))


@pointwise("float", inplace=True, aliases=("special.logit",))
def logit(input: Tensor, eps: Float = None):
    """``log(input / (1 - input))``; with ``eps`` the input is first limited to eps..1 - eps.

    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    x = input
    if eps is not None:
        x = E.where(x < eps, eps, E.where(x > 1 - eps, 1 - eps, x))
    return E.log(x / (1 - x))


@logit.derivative
def _(g, input, eps):
    inner = g / (input * (1 - input))
    if eps is None:
        return E.where((input < 0) | (input > 1), math.nan, inner)
    return E.where((input < eps) | (input > 1 - eps), 0.0, inner)


@logit.samples
def _(make):
    yield (make(3, 4, low=0.1, high=0.9),)
    yield make(3, 4, low=0.1, high=0.9), 0.2


@pointwise("float", inplace=True, samples=of_shapes((3, 4), (4,)))
def ldexp(input: Tensor, other: Tensor):
    """``input * 2**other``.

    >>> torch.ldexp(torch.tensor([1.]), torch.tensor([1, 2, 3]))
    tensor([2., 4., 8.])
    """
    return input * E.exp2(other)


@pointwise("float", function=False, method=False, inplace=True, name="polygamma_of",
           node="polygamma")  # fmt: skip
def polygamma_of(input: Tensor, n: Int):
    """The n-th derivative of digamma: the kernel of ``torch.polygamma``."""
    return E.polygamma(n, input)


def _polygamma_method(self, n):
    return polygamma(n, self)


@composite(aliases=("special.polygamma",), method=_polygamma_method)
def polygamma(n: Int, input: Tensor):
    """The ``n``-th derivative of the digamma function.

    >>> torch.polygamma(1, torch.tensor([1., 0.5]))
    tensor([1.6449, 4.9348])
    """
    if n < 0:
        raise ShapeError(f"polygamma: polygamma(n, x) does not support negative n, got {n}")
    return T.digamma(input) if n == 0 else T.polygamma_of(input, n)


@polygamma.samples
def _(make):
    yield 1, make(3, 4, low=0.5, high=3)
    yield 2, make(3, 4, low=0.5, high=3)


@pointwise("float", namespace="special", samples=spread(0.1))
def entr(input: Tensor):
    """``-input * log(input)``, 0 at 0 and -inf below.

    >>> torch.special.entr(torch.tensor([-0.5, 0., 0.5]))
    tensor([  -inf, 0.0000, 0.3466])
    """
    inside = E.where(input > 0, -input * E.log(input), E.where(input == 0, 0.0, -math.inf))
    return E.where(E.isnan(input), input, inside)


entr.derivative(lambda g, input: g * (-E.log(input) - 1))
