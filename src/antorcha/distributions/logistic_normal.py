"""LogisticNormal: normal numbers as a point of a simplex."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.normal import Normal
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import StickBreakingTransform
from antorcha.distributions.utils import attribute_of

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution: a vector of normal numbers, by stick breaking.

    K numbers give a point of the simplex with K + 1 parts.

    Args:
        loc (float or Tensor): the normal distribution's means, along the last dim
        scale (float or Tensor): its deviations, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
    torch.Size([4])
    """

    arg_constraints: Any = Normal.arg_constraints
    support: Any = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = attribute_of("base_dist.base_dist.loc")
    scale = attribute_of("base_dist.base_dist.scale")
