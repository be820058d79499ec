"""Cauchy: the ratio of two normal numbers."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions.location_scale import LocationScale
from antorcha.ops.kinds.record import T

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The Cauchy distribution, ``1 / (pi scale (1 + ((x - loc) / scale)**2))``.

    Its tails are so heavy that it has neither mean nor variance. Support: the real numbers.

    Args:
        loc (float or Tensor): the median
        scale (float or Tensor): the half width at half maximum, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Cauchy(0.0, 1.0).icdf(torch.tensor(0.75))
    tensor(1.)
    """

    @property
    def mean(self) -> Any:
        return self._full(math.nan, self.loc)

    @property
    def variance(self) -> Any:
        return self._full(math.inf, self.loc)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = T.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (self._standardized(value) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return self._standardized(value).atan() / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return T.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
