"""StudentT: a normal number over the deviation estimated from few."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.chi2 import Chi2
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import _standard_normal, attribute_of, broadcast_all
from antorcha.ops.kinds.record import T

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution, ``~ (1 + y**2 / df)**(-(df + 1) / 2)``, ``y = (x - loc) / scale``.

    Support: the real numbers. It has no mean for ``df <= 1``, infinite variance for ``df <= 2``.

    Args:
        df (float or Tensor): the degrees of freedom, positive
        loc (float or Tensor): the middle. Default: 0
        scale (float or Tensor): the scale, positive. Default: 1
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return T.where(self.df <= 1, math.nan, self.loc)

    mode = attribute_of("loc")

    @property
    def variance(self) -> Any:
        finite = self.df > 2
        df = T.where(finite, self.df, 3.0)
        heavy = T.where(self.df > 1, math.inf, math.nan).to(df.dtype)
        return T.where(finite, self.scale.pow(2) * df / (df - 2), heavy)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        df = self.df
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * df).lgamma()
            - (0.5 * (df + 1.0)).lgamma()
        )
        return -0.5 * (df + 1.0) * (y**2.0 / df).log1p() - normalizer

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        slopes = more.digamma() - half.digamma()
        return self.scale.log() + more * slopes + 0.5 * self.df.log() + log_beta
