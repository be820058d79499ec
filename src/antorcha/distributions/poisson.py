"""Poisson: how many events there are."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions import constraints
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.utils import attribute_of, broadcast_all
from antorcha.ops.kinds.record import T

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution, ``rate**k exp(-rate) / k!`` for ``k = 0, 1, ..``.

    Args:
        rate (float or Tensor): the mean, not negative
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints: Any = {"rate": constraints.nonnegative}  # noqa: RUF012
    support: Any = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = attribute_of("rate")

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    variance = attribute_of("rate")

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return T.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return T.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> Any:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Any) -> Any:
        return x.exp()
