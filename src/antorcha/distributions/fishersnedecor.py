"""FisherSnedecor: the ratio of two estimated variances."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.utils import broadcast_all
from antorcha.ops.kinds.record import T

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F-distribution: ``(X1 / df1) / (X2 / df2)`` for chi-squared X1 and X2; positive numbers.

    Args:
        df1 (float or Tensor): the numerator's degrees of freedom, positive
        df2 (float or Tensor): the denominator's, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "df1": constraints.positive, "df2": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        df2 = T.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return T.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Any:
        df1, df2 = self.df1, T.where(self.df2 <= 4, math.nan, self.df2)
        return 2 * df2.pow(2) * (df1 + df2 - 2) / (df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        x1 = self._gamma1.rsample(sample_shape)
        x2 = self._gamma2.rsample(sample_shape)
        tiny = finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        log_beta = (a + b).lgamma() - a.lgamma() - b.lgamma()
        power = a * ratio.log() + (a - 1) * value.log()
        return log_beta + power - (a + b) * (ratio * value).log1p()
