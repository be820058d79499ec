"""Gumbel: the largest of many."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.distributions import constraints
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import AffineTransform, ExpTransform
from antorcha.distributions.uniform import Uniform
from antorcha.distributions.utils import attribute_of, broadcast_all, euler_constant
from antorcha.ops.kinds.record import T

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution, ``exp(-y - exp(-y)) / scale`` with ``y = (x - loc) / scale``.

    A draw is ``loc - scale log(-log(u))`` for uniform u. Support: the real numbers.

    Args:
        loc (float or Tensor): the mode
        scale (float or Tensor): the scale, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Gumbel(1.0, 2.0).mean
    tensor(2.1544)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        low, high = [T.full_like(self.loc, end) for end in (info.tiny, 1 - info.eps)]
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-T.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args), steps, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    mode = attribute_of("loc")

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
