"""HalfNormal: the absolute value of a normal number."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions.half import Half
from antorcha.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The half-normal distribution: ``|x|`` for normal x of mean 0. Support: ``x >= 0``.

    Args:
        scale (float or Tensor): the normal distribution's deviation, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _whole = Normal

    @property
    def mean(self) -> Any:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        return self.scale.pow(2) * (1 - 2 / math.pi)
