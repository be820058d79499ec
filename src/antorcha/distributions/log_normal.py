"""LogNormal: the exponential of a normal number."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.normal import Normal
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import ExpTransform
from antorcha.distributions.utils import attribute_of

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The log-normal distribution: ``exp(x)`` for normal x. Support: positive numbers.

    Args:
        loc (float or Tensor): the mean of the logarithm
        scale (float or Tensor): its deviation, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints: Any = Normal.arg_constraints
    support: Any = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = attribute_of("base_dist.loc")
    scale = attribute_of("base_dist.scale")

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Any:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
