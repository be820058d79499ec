"""Functions of two operands built on logarithms and exponentials, and the special functions.

Integers are computed in the default dtype where the record's rule is ``float``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.functions import function
from antorcha.ops.kinds.pointwise import PointwiseOp, pointwise
from antorcha.ops.kinds.record import Op, T, composite
from antorcha.ops.kinds.samples import of_shapes, spread
from antorcha.ops.kinds.types import Float, Int, Operand, Tensor


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


@pointwise("inexact", samples=of_shapes((3, 4), (4,)))
def logaddexp(input: Tensor, other: Tensor):
    """``log(exp(input) + exp(other))`` without overflow. Floats and complex numbers.

    >>> torch.logaddexp(torch.tensor([-1.]), torch.tensor([-1., 0.]))
    tensor([-0.3069,  0.3133])
    """
    if input.dtype.kind == "c":
        return _complex_log_of_sum(input, other)
    return _log_of_sum(input, other, E.exp, E.log1p)


def _log_of_sum(
    a: Tensor, b: Tensor, exp: Callable[[Tensor], Tensor], log1p: Callable[[Tensor], Tensor]
) -> Tensor:
    """The larger plus what the smaller adds; equal infinities stay."""
    same_infinity = E.isinf(a) & (a == b)
    return E.where(same_infinity, a, E.maximum(a, b) + log1p(exp(-E.abs(a - b))))


def _complex_log_of_sum(a: Tensor, b: Tensor) -> Tensor:
    """The number with the larger real part, plus what the other adds; -inf adds nothing."""
    larger = a.real() >= b.real()
    top, low = E.where(larger, a, b), E.where(larger, b, a)
    nothing = E.isinf(top.real()) & (top.real() < 0)
    return E.where(nothing, top, top + E.log1p(E.exp(low - top)))


@logaddexp.derivative
def _(g, input, other, out):
    # exp(input - out) is the share of each; a shared infinity is split as PyTorch splits it
    shares = 1 + E.exp(other - input), 1 + E.exp(input - other)
    return g / shares[0].conj(), g / shares[1].conj()


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
    if input.dtype.kind == "c":
        return E.where(input == 0, 1, E.sin(t) / t)
    return E.where(input == 0, 1, _sine_of_half_turns(input) / t)


def _sine_of_half_turns(x: Any) -> Any:
    """``sin(pi * x)``, which is 0 at whole numbers, whatever pi is rounded to."""
    whole = E.round(x)
    sine = E.sin((x - whole) * math.pi)
    half = whole * 0.5
    return E.where(E.floor(half) == half, sine, -sine)


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
    near = E.log1p((2 * x - 1) / (1 - x))  # (2 x - 1 is exact there)
    return E.where(E.abs(x - 0.5) < 0.25, near, E.log(x / (1 - x)))


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
    if input.dtype.kind == "c":
        return input * E.exp2(other)
    # in three steps: the power alone may leave the range of floats
    most = 1022 if input.dtype is dtypes.float64 else 126
    result, rest = input, other
    for _ in range(2):
        step = E.minimum(E.maximum(rest, -most), most)
        result, rest = result * E.exp2(step), rest - step
    last = E.minimum(E.maximum(rest, -most), most)
    return result * E.exp2(E.where(E.isinf(other), other, last))


@pointwise("float", function=False, method=False, inplace=True, name="polygamma_of",
           node="polygamma")  # fmt: skip
def polygamma_of(input: Tensor, n: Int):
    """The n-th derivative of digamma: the kernel of ``torch.polygamma``."""
    return E.polygamma(n, input)


def _polygamma_method(self: Tensor, n: int) -> Tensor:
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


polygamma.inplace = polygamma_of.inplace  # whose tensor comes first


@polygamma.samples
def _(make):
    yield 1, make(3, 4, low=0.5, high=3)
    yield 2, make(3, 4, low=0.5, high=3)


# The name; of an example, the numbers given and the results.
WITH_SLOPES = (
    ("erfcx", "[0., 10.]", "[1.0000, 0.0561]"),
    ("ndtr", "[0., 1.]", "[0.5000, 0.8413]"),
    ("ndtri", "[0.5, 0.8413]", "[0.0000, 0.9998]"),
    ("i0e", "[0., 10.]", "[1.0000, 0.1278]"),
    ("i1", "[0., 1.]", "[0.0000, 0.5652]"),
    ("i1e", "[0., 10.]", "[0.0000, 0.1213]"),
)
CONSTANTS = (
    ("modified_bessel_i0", "[0., 1.]", "[1.0000, 1.2661]"),
    ("modified_bessel_i1", "[0., 1.]", "[0.0000, 0.5652]"),
    ("modified_bessel_k0", "[1., 2.]", "[0.4210, 0.1139]"),
    ("modified_bessel_k1", "[1., 2.]", "[0.6019, 0.1399]"),
    ("scaled_modified_bessel_k0", "[1., 100.]", "[1.1445, 0.1252]"),
    ("scaled_modified_bessel_k1", "[1., 100.]", "[1.6362, 0.1258]"),
    ("bessel_j0", "[0., 1.]", "[1.0000, 0.7652]"),
    ("bessel_j1", "[0., 1.]", "[0.0000, 0.4401]"),
    ("bessel_y0", "[1., 2.]", "[0.0883, 0.5104]"),
    ("bessel_y1", "[1., 2.]", "[-0.7812, -0.1070]"),
    ("airy_ai", "[0., 1.]", "[0.3550, 0.1353]"),
)
"""Those whose derivatives PyTorch lacks."""


def _special(name: str, given: str, gives: str) -> PointwiseOp:
    """The record of a function of ``torch.special`` alone; ``modified_bessel_i0`` is ``i0``."""
    element = E.OPS[name if name in E.OPS else name[-2:]]
    node = "special_" + name.replace("0e", "0_e").replace("1e", "1_e")  # SpecialI0EBackward0
    return function(name, element.doc, f"torch.tensor({given})", f"tensor({gives})",
                    element=element, types="float", namespace="special", node=node,
                    samples=spread(*element.interior))  # fmt: skip


for _line in WITH_SLOPES:
    _special(*_line)
for _line in CONSTANTS:
    _special(*_line).gives_constants()
function("i0", E.i0.doc, "torch.tensor([0., 1.])", "tensor([1.0000, 1.2661])", types="float",
         inplace=True, aliases=("special.i0",), samples=spread())  # fmt: skip


@pointwise("float", namespace="special", node="special_zeta")
def zeta(input: Operand, other: Operand):
    """The Hurwitz zeta function, the sum of ``(k + other)**-input`` for k = 0, 1, 2, ...: inf where
    ``input`` is 1, nan below. It has a gradient in ``other`` alone.

    >>> torch.special.zeta(torch.tensor([2.]), torch.tensor([1., 2.]))
    tensor([1.6449, 0.6449])
    """
    return E.zeta(input, other)


def _zeta_slope(g: Any, input: Any, other: Any, needs: Any) -> tuple[None, Any]:
    if needs[0]:
        raise NotImplementedError("the derivative for 'zeta' is not implemented.")
    slope = T.mul(T.neg(input), T.zeta(T.add(input, 1), other))
    return None, T.sum_to_size(T.mul(g, slope), other._layout.shape)


Op.derivative(zeta, _zeta_slope)  # in ops: one of expressions would need both slopes


@zeta.samples
def _(make):
    yield make.ints((3, 4), 4) + 2, make(4, low=0.5)


@pointwise("float", namespace="special", node="special_log_ndtr", samples=spread())
def log_ndtr(input: Tensor):
    """The logarithm of ``ndtr``, the share of the standard normal distribution below a number.

    >>> torch.special.log_ndtr(torch.tensor([0., -10.]))
    tensor([ -0.6931, -53.2313])
    """
    tail = E.log(E.erfcx(-input * math.sqrt(0.5)) / 2) - input * input / 2
    return E.where(input < -1, tail, E.log1p(-E.ndtr(-input)))


@log_ndtr.derivative
def _(g, input):
    return g * math.sqrt(2 / math.pi) / E.erfcx(-input * math.sqrt(0.5))


@pointwise("float", namespace="special", samples=spread())
def spherical_bessel_j0(input: Tensor):
    """The spherical Bessel function of order 0: ``sin(input) / input``, and 1 at 0.

    >>> torch.special.spherical_bessel_j0(torch.tensor([0., 1.]))
    tensor([1.0000, 0.8415])
    """
    inside = E.where(input == 0, 1, E.sin(input) / input)
    return E.where(E.isinf(input), 0, inside)


spherical_bessel_j0.gives_constants()


def _of_degree(name: str, gives: str) -> None:
    """The record of a polynomial whose degree is an operand, too; its values are of degrees 1 and
    3 at 2."""
    polynomial = E.OPS[name]

    def op(input: Operand, n: Operand) -> E.Expr:
        return polynomial(input, n)

    op.__doc__ = (
        f"{polynomial.doc}\n\n>>> torch.special.{name}(torch.tensor([2.]), torch.tensor([1, 3]))\n"
        f"tensor({gives})\n"
    )
    record = pointwise("float", name=name, namespace="special",
                       samples=_degrees)(op)  # fmt: skip
    record.gives_constants()


def _degrees(make: Any) -> Any:
    yield make(3, 4), make.ints((4,), 6)
    yield make(3, 4), 3


for _name, _gives in (
    ("chebyshev_polynomial_t", "[ 2., 26.]"),
    ("chebyshev_polynomial_u", "[ 4., 56.]"),
    ("chebyshev_polynomial_v", "[ 3., 41.]"),
    ("chebyshev_polynomial_w", "[ 5., 71.]"),
    ("shifted_chebyshev_polynomial_t", "[ 3., 99.]"),
    ("shifted_chebyshev_polynomial_u", "[  6., 204.]"),
    ("shifted_chebyshev_polynomial_v", "[  5., 169.]"),
    ("shifted_chebyshev_polynomial_w", "[  7., 239.]"),
    ("hermite_polynomial_h", "[ 4., 40.]"),
    ("hermite_polynomial_he", "[2., 2.]"),
    ("laguerre_polynomial_l", "[-1.0000, -0.3333]"),
    ("legendre_polynomial_p", "[ 2., 17.]"),
):
    _of_degree(_name, _gives)


@pointwise("float", namespace="special", samples=spread(0.1))
def entr(input: Tensor):
    """``-input * log(input)``, 0 at 0 and -inf below.

    >>> torch.special.entr(torch.tensor([-0.5, 0., 0.5]))
    tensor([  -inf, 0.0000, 0.3466])
    """
    inside = E.where(input > 0, -input * E.log(input), E.where(input == 0, 0.0, -math.inf))
    return E.where(E.isnan(input), input, inside)


entr.derivative(lambda g, input: g * (-E.log(input) - 1))
