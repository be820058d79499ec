"""VonMises: a normal distribution's cousin on the circle."""

from __future__ import annotations

import math
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.dtypes import bool_, float64
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import attribute_of, broadcast_all, lazy_property
from antorcha.ops.kinds.record import T

__all__ = ["VonMises"]

# Abramowitz & Stegun 9.8.1 to 9.8.4: the modified Bessel functions of order 0 and 1, below 3.75 in
# (x / 3.75)**2, above it sqrt(x) exp(-x) times the function in 3.75 / x
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1,
     0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1,
     -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
)  # fmt: skip


def _polynomial(y: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's rule, lowest power first."""
    found: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        found = c + y * found
    return found


def _log_bessel(x: Any, order: int = 0) -> Any:
    """The logarithm of the modified Bessel function of the first kind, for positive x."""
    y = x / 3.75
    small = _polynomial(y * y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return T.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """The von Mises distribution, ``exp(k cos(x - loc)) / (2 pi I0(k))``: angles in radians.

    Draws are by rejection, in float64 (Best & Fisher, "Efficient simulation of the von Mises
    distribution", 1979), and lie in ``[-pi, pi)``.

    Args:
        loc (float or Tensor): the mean angle
        concentration (float or Tensor): k, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.VonMises(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real, "concentration": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        log_prob = self.concentration * (value - self.loc).cos()
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration)

    @lazy_property
    def _proposal_r(self) -> Any:
        """The width of the wrapped Cauchy distribution that proposals are drawn from."""
        kappa = self.concentration.to(float64)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return T.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, kappa = self.loc.to(float64), self.concentration.to(float64)
            x = T.zeros(shape, dtype=float64, device=loc.device)
            done = T.zeros(shape, dtype=bool_, device=loc.device)
            r = self._proposal_r
            while not done.all():
                u1, u2, u3 = T.rand((3, *shape), dtype=float64, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = T.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = mode = attribute_of("loc")

    @lazy_property
    def variance(self) -> Any:
        """The circular variance, ``1 - I1(k) / I0(k)``."""
        k = self.concentration
        return 1 - (_log_bessel(k, order=1) - _log_bessel(k)).exp()
