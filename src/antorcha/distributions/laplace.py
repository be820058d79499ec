"""Laplace: the double exponential distribution."""

from __future__ import annotations

from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.distributions.location_scale import LocationScale
from antorcha.distributions.utils import attribute_of
from antorcha.ops.kinds.record import T

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The Laplace distribution, ``exp(-|x - loc| / scale) / (2 scale)``.

    Support: the real numbers.

    Args:
        loc (float or Tensor): the mean
        scale (float or Tensor): the mean distance from it, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Laplace(0.0, 1.0).cdf(torch.tensor(0.0))
    tensor(0.5000)
    """

    mean = attribute_of("loc")

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        u = T.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        u.uniform_(finfo(u.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Any:
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Any:
        return 1 + (2 * self.scale).log()
