"""Normal: the Gaussian distribution."""

from __future__ import annotations

import math
from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.location_scale import LocationScale
from antorcha.distributions.utils import _standard_normal, attribute_of
from antorcha.ops.kinds.record import T

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution, ``exp(-((x - loc) / scale)**2 / 2) / (scale sqrt(2 pi))``.

    Support: the real numbers.

    Args:
        loc (float or Tensor): the mean
        scale (float or Tensor): the standard deviation, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Normal(0.0, 2.0).log_prob(torch.tensor(1.0))
    tensor(-1.7371)
    """

    _mean_carrier_measure = 0

    mean = attribute_of("loc")
    stddev = attribute_of("scale")

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return T.normal_each(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        square = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return square - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 * (1 + T.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * T.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> Any:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * T.log(-math.pi / y)
