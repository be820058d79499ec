"""Pareto: incomes, cities, words."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.exponential import Exponential
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import AffineTransform, ExpTransform
from antorcha.distributions.utils import attribute_of, broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution, ``alpha scale**alpha / x**(alpha + 1)`` for ``x >= scale``.

    Args:
        scale (float or Tensor): the least value, positive
        alpha (float or Tensor): how light the tail is, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "alpha": constraints.positive, "scale": constraints.positive,
    }  # fmt: skip

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)  # infinite up to 1
        return a * self.scale / (a - 1)

    mode = attribute_of("scale")

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)  # infinite up to 2
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
