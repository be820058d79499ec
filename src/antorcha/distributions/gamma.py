"""Gamma: the time to the n-th event, for any positive n."""

from __future__ import annotations

from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.distributions import constraints
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.utils import broadcast_all
from antorcha.ops.kinds.record import T
from antorcha.tensor.create import as_tensor

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution, ``rate**a / gamma(a) x**(a - 1) exp(-rate x)`` for ``x >= 0``.

    Draws are differentiable in both parameters: see ``ops.gammas``.

    Args:
        concentration (float or Tensor): the shape a, positive
        rate (float or Tensor): the inverse of the scale, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "concentration": constraints.positive, "rate": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _expanded = ("concentration", "rate")  # those of Chi2, too

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = T._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # no part of the derivative
        return value

    def log_prob(self, value: Any) -> Any:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        return (
            T.xlogy(self.concentration, self.rate)
            + T.xlogy(self.concentration - 1, value)
            - self.rate * value
            - self.concentration.lgamma()
        )

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return T.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> Any:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
