"""Weibull: the time until the weakest part breaks."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.exponential import Exponential
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import AffineTransform, PowerTransform
from antorcha.distributions.utils import broadcast_all, euler_constant, lazy_property
from antorcha.ops.kinds.record import T

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, ``c / scale y**(c - 1) exp(-y**c)`` with ``y = x / scale``.

    A draw is ``scale e**(1 / c)`` for an exponential number e. Support: positive numbers.

    Args:
        scale (float or Tensor): the scale, positive
        concentration (float or Tensor): c, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Weibull(1.0, 1.0).mean
    tensor(1.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "scale": constraints.positive, "concentration": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(T.ones_like(self.scale), validate_args=validate_args)
        steps: list[Any] = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    @lazy_property
    def concentration_reciprocal(self) -> Any:
        """``1 / concentration``."""
        return self.concentration.reciprocal()

    @property
    def mean(self) -> Any:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Any:
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    @property
    def variance(self) -> Any:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Any:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
