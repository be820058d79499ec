"""HalfCauchy: the absolute value of a Cauchy number."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions.cauchy import Cauchy
from antorcha.distributions.half import Half
from antorcha.distributions.utils import attribute_of

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The half-Cauchy distribution: ``|x|`` for a Cauchy x around 0. Support: ``x >= 0``.

    Args:
        scale (float or Tensor): the Cauchy distribution's scale, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.HalfCauchy(1.0).icdf(torch.tensor(0.5))
    tensor(1.)
    """

    _whole = Cauchy

    @property
    def mean(self) -> Any:
        return self._full(math.inf, self.scale)

    variance = attribute_of("base_dist.variance")
