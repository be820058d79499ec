"""InverseGamma: one over a gamma number."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import PowerTransform
from antorcha.distributions.utils import attribute_of
from antorcha.ops.kinds.record import T

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The inverse gamma distribution: ``1 / x`` for gamma x. Support: positive numbers.

    Args:
        concentration (float or Tensor): the gamma distribution's shape, positive
        rate (float or Tensor): its rate, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "concentration": constraints.positive, "rate": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, power, validate_args=validate_args)

    concentration = attribute_of("base_dist.concentration")
    rate = attribute_of("base_dist.rate")

    @property
    def mean(self) -> Any:
        a = self.concentration
        return T.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = self.concentration
        return T.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
