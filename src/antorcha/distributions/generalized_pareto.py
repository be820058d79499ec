"""GeneralizedPareto: what lies above a high threshold."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import attribute_of, broadcast_all
from antorcha.ops.kinds.record import T

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalised Pareto distribution, ``(1 + c z)**(-1 / c - 1) / scale``.

    ``z = (x - loc) / scale``; at ``c = 0`` it is the exponential distribution. Support: from `loc`
    on, for negative c up to ``loc - scale / c``.

    Args:
        loc (float or Tensor): the threshold
        scale (float or Tensor): the scale, positive
        concentration (float or Tensor): c, how heavy the tail is
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, T.where(self.concentration < 0, end, math.inf))

    def _split(self) -> tuple[Any, Any]:
        """Where c is (almost) 0, and a c that is not."""
        zero = T.isclose(self.concentration, T.zeros_like(self.concentration))
        return zero, T.where(zero, 1.0, self.concentration)

    def _z(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        finite = self.concentration < 1
        c = T.where(finite, self.concentration, 0.5)
        return T.where(finite, self.loc + self.scale / (1 - c), math.nan)

    mode = attribute_of("loc")

    @property
    def variance(self) -> Any:
        finite = self.concentration < 0.5
        c = T.where(finite, self.concentration, 0.25)
        return T.where(finite, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(T.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        z = self._z(value)
        zero, c = self._split()
        power = 1 / c + T.ones_like(z)
        heavy = T.where(power == 0, power, power * (c * z).log1p())
        return -self.scale.log() - T.where(zero, z, heavy)

    def log_survival_function(self, value: Any) -> Any:
        """``log(1 - cdf(value))``."""
        self._check(value)
        z = self._z(value)
        zero, c = self._split()
        return T.where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Any) -> Any:
        """``log(cdf(value))``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Any:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Any:
        zero, c = self._split()
        log_rest = (-value).log1p()
        heavy = self.loc + self.scale / c * (-c * log_rest).expm1()
        return T.where(zero, self.loc - self.scale * log_rest, heavy)

    def entropy(self) -> Any:
        return (self.scale.log() + self.concentration + 1).broadcast_to(self._batch_shape)
