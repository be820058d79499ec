"""Functions around the gamma function: the incomplete ones, the multivariate one, and how gamma
and Dirichlet samples move with their parameters.

The last two are what makes those samples differentiable ("implicit reparametrisation", Figurnov,
Mohamed & Mnih 2018): the derivative of a sample is ``-(d cdf / d parameter) / density``. They
follow PyTorch's approximations (ATen/native/Distributions.h), computed in float64 throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from antorcha.core import dtypes
from antorcha.errors import ValueRangeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import Op, T
from antorcha.ops.kinds.types import Any, Int, Tensor


# ------------------------------------------------------------------------- incomplete gamma
@pointwise("float", inplace=True, aliases=("special.gammainc",))
def igamma(input: Tensor, other: Tensor):
    """The lower incomplete gamma function, scaled: the share of gamma(``input``) below ``other``.

    See https://docs.pytorch.org/docs/stable/special.html#torch.special.gammainc.

    >>> torch.igamma(torch.tensor([1.]), torch.tensor([2.]))
    tensor([0.8647])
    """
    return E.gammainc(input, other)


@pointwise("float", inplace=True, aliases=("special.gammaincc",))
def igammac(input: Tensor, other: Tensor):
    """The upper incomplete gamma function, scaled: ``1 - igamma(input, other)``.

    See https://docs.pytorch.org/docs/stable/special.html#torch.special.gammaincc.

    >>> torch.igammac(torch.tensor([1.]), torch.tensor([2.]))
    tensor([0.1353])
    """
    return E.gammaincc(input, other)


@pointwise("float", function=False, method=False)
def gamma_density(input: Tensor, other: Tensor):
    """The density of a gamma variable of this shape: the slope of the lower function."""
    return E.gamma_density(input, other)


def _slope(op: str, sign: int) -> Any:
    """The rule of a share, in ops: one of expressions would need both slopes."""

    def rule(g: Any, input: Any, other: Any, needs: Any) -> tuple[None, Any]:
        if needs[0]:
            raise NotImplementedError(f"the derivative for '{op}: input' is not implemented.")
        slope = T.mul(T.gamma_density(input, other), sign)
        return None, T.sum_to_size(T.mul(g, slope), other._layout.shape)

    return rule


for _op, _sign in ((igamma, 1), (igammac, -1)):
    Op.derivative(_op, _slope(_op.name, _sign))


# ------------------------------------------------------------------------- multivariate
@pointwise("float", row_major="bufic", inplace=True, aliases=("special.multigammaln",))
def mvlgamma(input: Tensor, p: Int):
    """The logarithm of the multivariate gamma function of dimension ``p``.

    ``p (p - 1) / 4 log(pi) + sum of lgamma(input - i / 2) for i < p``, for ``input > (p - 1) / 2``.
    See https://docs.pytorch.org/docs/stable/special.html#torch.special.multigammaln.

    >>> torch.mvlgamma(torch.tensor([2.]), 2)
    tensor([0.4516])
    """
    if p < 1:
        raise ValueRangeError(f"mvlgamma: p has to be greater than or equal to 1, got p={p}")
    terms = [E.lgamma(input - i / 2) for i in range(p)]
    return sum(terms) + p * (p - 1) * math.log(math.pi) / 4


@mvlgamma.samples
def _(make):
    yield make(3, 4, low=2, high=5), 3
    yield (make(3), 0), {}, ValueError, "greater than or equal to 1"


# ------------------------------------------------------------------------- gamma samples
def _polynomial(x: Tensor, coefficients: Sequence[Any]) -> Tensor:
    """Horner's rule, lowest power first."""
    found = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        found = c + x * found
    return found


GAMMA_RATIO = (
    ((0.16009398, -0.094634809, 0.025146376, -0.0030648343),
     (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
     (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777)),
    ((1, 0.32668115, 0.10406089, 0.0014179084),
     (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
     (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07)),
)  # fmt: skip
"""The logarithm of the middle range's slope: a ratio of polynomials in log(x / a) and log(a)."""


def _gamma_near_zero(a: Tensor, x: Tensor) -> Tensor:
    """From the Taylor series of the lower incomplete gamma function."""
    numerator, series, slope = 1, 1 / a, 1 / (a * a)
    for i in range(1, 6):
        numerator = numerator * (-x / i)
        series = series + numerator / (a + i)
        slope = slope + numerator / ((a + i) * (a + i))
    power = E.exp(a * E.log(x))
    cdf_slope = (E.log(x) - E.digamma(a)) * (power * series) - power * slope
    found = -cdf_slope / (E.exp((a - 1) * E.log(x)) * E.exp(-x))
    return E.where(E.isnan(found), 0.0, found)


def _gamma_near_mean(a: Tensor, x: Tensor) -> Tensor:
    """Rice's saddle point expansion for large shapes, where x is within a tenth of the shape."""
    square = a * a
    first = 1 + 24 * a * (1 + 12 * a)
    second = 1440 * square + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x)
    return first * second / (1244160 * square * square)


def _gamma_far(a: Tensor, x: Tensor) -> Tensor:
    """The same expansion, where x is further away."""
    root = E.sqrt(8 * a)
    one = root / (a - x)
    two = 1 / E.pow(x - a - a * E.log(x / a), 1.5)
    both = E.where(x < a, one - two, one + two)
    term = E.log(x / a) * both - E.sqrt(2 / a) * (a + x) / ((a - x) * (a - x))
    stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a))
    return -stirling * x * term / root


def _gamma_between(a: Tensor, x: Tensor) -> Tensor:
    u, v = E.log(x / a), E.log(a)
    above, below = [
        _polynomial(v, [_polynomial(u, [row[k] for row in rows]) for k in range(4)])
        for rows in GAMMA_RATIO
    ]
    return E.exp(above / below)


@pointwise("floating", method=False, out=False)
def _standard_gamma_grad(input: Tensor, output: Tensor):
    """The slope of a gamma sample ``output`` in its shape ``input``.

    >>> torch._standard_gamma_grad(torch.tensor([2.]), torch.tensor([1.5]))
    tensor([0.9366])
    """
    dtype = input.dtype
    a, x = E.cast(input, dtypes.float64), E.cast(output, dtypes.float64)
    near = (0.9 * a <= x) & (x <= 1.1 * a)
    large = E.where(near, _gamma_near_mean(a, x), _gamma_far(a, x))
    found = E.where(a > 8, large, _gamma_between(a, x))
    return E.cast(E.where(x < 0.8, _gamma_near_zero(a, x), found), dtype)


@_standard_gamma_grad.derivative
def _(g):
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


# ------------------------------------------------------------------------- Dirichlet samples
BETA_RATIO = (
    (((1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
      (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
      (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013)),
     ((0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
      (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
      (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05)),
     ((-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
      (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
      (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05))),
    (((1, -0.02924021934, -0.04438342661, 0.007285809825),
      (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
      (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149)),
     ((0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
      (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
      (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05)),
     ((0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
      (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
      (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06))),
)  # fmt: skip
"""A correction of the middle range: a ratio of polynomials in
log(x), log(a / x), log(total x / a)."""


def _beta_slope_in_a_near_zero(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """A Taylor series in x."""
    factor = E.digamma(a) - E.digamma(a + b) - E.log(x)
    numerator, series = 1, 1 / a * (factor + 1 / a)
    for i in range(1, 11):
        numerator = numerator * ((i - b) * x / i)
        series = series + numerator / (a + i) * (factor + 1 / (a + i))
    found = x * E.exp(-b * E.log1p(-x)) * series
    return E.where(E.isnan(found), 0.0, found)


def _beta_slope_in_b_near_zero(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """A Taylor series in x."""
    factor = E.digamma(a + b) - E.digamma(b)
    numerator, product, slope, series = 1, 1, 0, factor / a
    for i in range(1, 9):
        numerator = numerator * (-x / i)
        slope = slope * (b - i) + product
        product = product * (b - i)
        series = series + numerator / (a + i) * (slope + factor * product)
    found = -E.exp((1 - b) * E.log1p(-x)) * series
    return E.where(E.isnan(found), 0.0, found)


def _beta_slope_large(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Rice's saddle point expansion; close to the mean, a polynomial instead of its pole."""
    total = a + b
    mean = a / total
    std = E.sqrt(a * b / (total + 1)) / total
    b2 = b * b
    poly = 47 * x * b2 * b2 + a * (
        (43 + 20 * (16 + 27 * b) * x) * b2 * b
        + a * (
            3 * (59 + 180 * b - 90 * x) * b2
            + a * ((453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11)))
        )
    )  # fmt: skip
    scale = (1 + 12 * a) * (1 + 12 * b) / (total * total)
    close = scale / (1 - x) * poly / (12960 * a * a * a * b2 * (1 + 12 * total))

    prefactor = -x / E.sqrt(2 * a * b / total)
    stirling = _stirling(a) * _stirling(b) / _stirling(total)
    pole = a * (x - 1) + b * x
    above = 2 * (a * a) * (x - 1) + a * b * (x - 1) - x * b2
    one = above / (E.sqrt(2 * a / b) * E.pow(total, 1.5) * pole * pole)
    two = 0.5 * E.log(a / (total * x))
    three = E.sqrt(8 * a * b / total) / pole
    base = b * E.log(b / (total * (1 - x))) + a * E.log(a / (total * x))
    four = 1 / E.pow(base, 1.5)
    far = stirling * prefactor * (one + two * (three + E.where(x < mean, four, -four)))
    return E.where((mean - 0.1 * std <= x) & (x <= mean + 0.1 * std), close, far)


def _stirling(z: Tensor) -> Tensor:
    return 1 + 1 / (12 * z) + 1 / (288 * z * z)


def _beta_slope_between(x: Tensor, a: Tensor, total: Tensor) -> Tensor:
    u = E.log(x)
    v = E.log(a) - u
    w = E.log(total) - v
    above, below = [
        _polynomial(u, [_polynomial(v, [_polynomial(w, list(c)) for c in rows]) for rows in table])
        for table in BETA_RATIO
    ]
    return above / below * (x * (E.digamma(total) - E.digamma(a)) / (total - a))


@pointwise("floating", method=False, out=False)
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor):
    """The slope of a Dirichlet sample's part ``x`` in its own concentration, over ``1 - x``.

    ``total`` is the sum of the concentrations of ``x``'s row.

    >>> torch._dirichlet_grad(torch.tensor([0.3]), torch.tensor([2.]), torch.tensor([5.]))
    tensor([0.1993])
    """
    dtype = x.dtype
    x, a, total = [E.cast(each, dtypes.float64) for each in (x, alpha, total)]
    b = total - a
    boundary = total * x * (1 - x)
    found = E.where((a > 6) & (b > 6), _beta_slope_large(x, a, b), _beta_slope_between(x, a, total))
    at_one = (x >= 0.5) & (boundary < 0.75)
    found = E.where(at_one, -_beta_slope_in_b_near_zero(1 - x, b, a), found)
    at_zero = (x <= 0.5) & (boundary < 2.5)
    found = E.where(at_zero, _beta_slope_in_a_near_zero(x, a, b), found)
    return E.cast(found, dtype)


@_dirichlet_grad.derivative
def _(g):
    raise NotImplementedError("the derivative for '_dirichlet_grad' is not implemented.")
