"""Kumaraswamy: like a beta distribution, with a simple cdf."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import AffineTransform, PowerTransform
from antorcha.distributions.uniform import Uniform
from antorcha.distributions.utils import broadcast_all, euler_constant
from antorcha.ops.kinds.record import T

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution, ``a b x**(a - 1) (1 - x**a)**(b - 1)`` on ``[0, 1]``.

    A draw is ``(1 - u**(1/b))**(1/a)`` for uniform u.

    Args:
        concentration1 (float or Tensor): a, positive
        concentration0 (float or Tensor): b, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero, one = T.zeros_like(self.concentration0), T.ones_like(self.concentration0)
        steps: list[Any] = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(zero, one, validate_args), steps, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """``E[x**n] = b B(1 + n / a, b)``."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return T.where((b < 1) | (a < 1), math.nan, log_mode).exp()

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
