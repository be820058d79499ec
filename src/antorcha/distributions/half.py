"""Half: the absolute value of a symmetric distribution around 0."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.distribution import _ABSTRACT
from antorcha.distributions.location_scale import LocationScale
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import AbsTransform
from antorcha.distributions.utils import attribute_of
from antorcha.ops.kinds.record import T
from antorcha.tensor.create import as_tensor


class Half(TransformedDistribution):
    """``|x|`` for x of `_whole`, a location-scale distribution, around 0: twice its density."""

    arg_constraints: Any = {"scale": constraints.positive}  # noqa: RUF012
    support: Any = constraints.nonnegative
    has_rsample = True
    _whole: type[LocationScale]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._whole(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale = attribute_of("base_dist.scale")

    @property
    def mode(self) -> Any:
        return T.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return T.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


_ABSTRACT.add(Half)
