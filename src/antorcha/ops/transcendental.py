"""Exponentials, logarithms, trigonometric, hyperbolic and special functions. One record per op.

Integers and bools are computed in the default dtype. All derivatives are found from the functions.
"""

from __future__ import annotations

import math

from antorcha.lang import expr as E
from antorcha.ops.elementwise import spread
from antorcha.ops.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.types import Tensor


@pointwise("float", inplace=True)
def exp(input: Tensor):
    """``e`` to the power of each element.

    >>> torch.exp(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """
    return E.exp(input)


exp.samples(spread())


@pointwise("float", inplace=True, aliases=("special.exp2",))
def exp2(input: Tensor):
    """2 to the power of each element.

    >>> torch.exp2(torch.tensor([0., 3.]))
    tensor([1., 8.])
    """
    return E.exp2(input)


exp2.samples(spread())


@pointwise("float", inplace=True, aliases=("special.expm1",))
def expm1(input: Tensor):
    """``exp(input) - 1``, accurate near 0.

    >>> torch.expm1(torch.tensor([0., 1.]))
    tensor([0.0000, 1.7183])
    """
    return E.expm1(input)


expm1.samples(spread())


@pointwise("float", inplace=True)
def log(input: Tensor):
    """The natural logarithm of each element: nan below 0, -inf at 0.

    >>> torch.log(torch.tensor([1., 2.]))
    tensor([0.0000, 0.6931])
    """
    return E.log(input)


log.samples(spread(0.1, 2))


@pointwise("float", inplace=True)
def log2(input: Tensor):
    """The logarithm to base 2 of each element.

    >>> torch.log2(torch.tensor([1., 8.]))
    tensor([0., 3.])
    """
    return E.log2(input)


log2.samples(spread(0.1, 2))


@pointwise("float", inplace=True)
def log10(input: Tensor):
    """The logarithm to base 10 of each element.

    >>> torch.log10(torch.tensor([1., 2.]))
    tensor([0.0000, 0.3010])
    """
    return E.log10(input)


log10.samples(spread(0.1, 2))


@pointwise("float", inplace=True, aliases=("special.log1p",))
def log1p(input: Tensor):
    """``log(1 + input)``, accurate near 0.

    >>> torch.log1p(torch.tensor([0., 1.]))
    tensor([0.0000, 0.6931])
    """
    return E.log1p(input)


log1p.samples(spread(-0.5, 2))


@pointwise("float", inplace=True)
def sqrt(input: Tensor):
    """The square root of each element: nan below 0.

    >>> torch.sqrt(torch.tensor([4., 2.]))
    tensor([2.0000, 1.4142])
    """
    return E.sqrt(input)


sqrt.samples(spread(0.1, 2))


@pointwise("float", inplace=True)
def rsqrt(input: Tensor):
    """One divided by the square root of each element.

    >>> torch.rsqrt(torch.tensor([4., 0.25]))
    tensor([0.5000, 2.0000])
    """
    return E.rsqrt(input)


rsqrt.samples(spread(0.1, 2))


@pointwise("float", inplace=True)
def sin(input: Tensor):
    """The sine of each element, in radians.

    >>> torch.sin(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8415])
    """
    return E.sin(input)


sin.samples(spread())


@pointwise("float", inplace=True)
def cos(input: Tensor):
    """The cosine of each element, in radians.

    >>> torch.cos(torch.tensor([0., 1.]))
    tensor([1.0000, 0.5403])
    """
    return E.cos(input)


cos.samples(spread())


@pointwise("float", inplace=True)
def tan(input: Tensor):
    """The tangent of each element, in radians.

    >>> torch.tan(torch.tensor([0., 1.]))
    tensor([0.0000, 1.5574])
    """
    return E.tan(input)


tan.samples(spread(-1, 1))


@pointwise("float", inplace=True, aliases=("arcsin",))
def asin(input: Tensor):
    """The inverse sine of each element: nan outside of -1..1.

    >>> torch.asin(torch.tensor([0., 1.]))
    tensor([0.0000, 1.5708])
    """
    return E.asin(input)


asin.samples(spread(-0.9, 0.9))


@pointwise("float", inplace=True, aliases=("arccos",))
def acos(input: Tensor):
    """The inverse cosine of each element: nan outside of -1..1.

    >>> torch.acos(torch.tensor([1., 0.]))
    tensor([0.0000, 1.5708])
    """
    return E.acos(input)


acos.samples(spread(-0.9, 0.9))


@pointwise("float", inplace=True, aliases=("arctan",))
def atan(input: Tensor):
    """The inverse tangent of each element.

    >>> torch.atan(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7854])
    """
    return E.atan(input)


atan.samples(spread())


@pointwise("float", inplace=True)
def sinh(input: Tensor):
    """The hyperbolic sine of each element.

    >>> torch.sinh(torch.tensor([0., 1.]))
    tensor([0.0000, 1.1752])
    """
    return E.sinh(input)


sinh.samples(spread())


@pointwise("float", inplace=True)
def cosh(input: Tensor):
    """The hyperbolic cosine of each element.

    >>> torch.cosh(torch.tensor([0., 1.]))
    tensor([1.0000, 1.5431])
    """
    return E.cosh(input)


cosh.samples(spread())


@pointwise("float", inplace=True)
def tanh(input: Tensor):
    """The hyperbolic tangent of each element.

    >>> torch.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return E.tanh(input)


tanh.samples(spread())


@pointwise("float", inplace=True, aliases=("arcsinh",))
def asinh(input: Tensor):
    """The inverse hyperbolic sine of each element.

    >>> torch.asinh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8814])
    """
    return E.asinh(input)


asinh.samples(spread())


@pointwise("float", inplace=True, aliases=("arccosh",))
def acosh(input: Tensor):
    """The inverse hyperbolic cosine of each element: nan below 1.

    >>> torch.acosh(torch.tensor([1., 2.]))
    tensor([0.0000, 1.3170])
    """
    return E.acosh(input)


acosh.samples(spread(1.1, 3))


@pointwise("float", inplace=True, aliases=("arctanh",))
def atanh(input: Tensor):
    """The inverse hyperbolic tangent of each element.

    >>> torch.atanh(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.5493])
    """
    return E.atanh(input)


atanh.samples(spread(-0.9, 0.9))


@pointwise("float", inplace=True, aliases=("special.erf",))
def erf(input: Tensor):
    """The error function of each element.

    >>> torch.erf(torch.tensor([0., 1.]))
    tensor([0.0000, 0.8427])
    """
    return E.erf(input)


erf.samples(spread())


@pointwise("float", inplace=True, aliases=("special.erfc",))
def erfc(input: Tensor):
    """``1 - erf(input)``, accurate where erf is near 1.

    >>> torch.erfc(torch.tensor([0., 1.]))
    tensor([1.0000, 0.1573])
    """
    return E.erfc(input)


erfc.samples(spread())


@pointwise("float", inplace=True, aliases=("special.erfinv",))
def erfinv(input: Tensor):
    """The inverse of ``erf``: nan outside of -1..1.

    >>> torch.erfinv(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.4769])
    """
    return E.erfinv(input)


erfinv.samples(spread(-0.9, 0.9))


@pointwise("float", inplace=True, aliases=("special.gammaln",))
def lgamma(input: Tensor):
    """The logarithm of the absolute value of the gamma function.

    >>> torch.lgamma(torch.tensor([1., 0.5]))
    tensor([0.0000, 0.5724])
    """
    return E.lgamma(input)


lgamma.samples(spread(0.5, 3))


@pointwise(
    "float",
    inplace=True,
    aliases=(
        "special.psi",
        "special.digamma",
    ),
)
def digamma(input: Tensor):
    """The derivative of ``lgamma``.

    >>> torch.digamma(torch.tensor([1., 0.5]))
    tensor([-0.5772, -1.9635])
    """
    return E.digamma(input)


digamma.samples(spread(0.5, 3))


@pointwise("float", inplace=True, aliases=("special.expit",))
def sigmoid(input: Tensor):
    """``1 / (1 + exp(-input))``.

    >>> torch.sigmoid(torch.tensor([0., 1.]))
    tensor([0.5000, 0.7311])
    """
    return E.sigmoid(input)


sigmoid.samples(spread())


def _no_complex(name):
    def check(input):
        if input._layout.dtype.kind == "c":
            raise UnsupportedDtype(f"{name}: is not supported for complex tensors")

    return check


@pointwise("float", inplace=True)
def deg2rad(input: Tensor):
    """Degrees as radians.

    >>> torch.deg2rad(torch.tensor([180., 90.]))
    tensor([3.1416, 1.5708])
    """
    return input * (math.pi / 180)


deg2rad.accepts(_no_complex("deg2rad"))
deg2rad.samples(spread())


@pointwise("float", inplace=True)
def rad2deg(input: Tensor):
    """Radians as degrees.

    >>> torch.rad2deg(torch.tensor([1., 2.]))
    tensor([ 57.2958, 114.5916])
    """
    return input * (180 / math.pi)


rad2deg.accepts(_no_complex("rad2deg"))
rad2deg.samples(spread())
