"""NegativeBinomial: how many hits come before a number of misses."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions import constraints
from antorcha.distributions.gamma import Gamma
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.distributions.utils import lazy_property
from antorcha.ops.kinds.record import T

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The negative binomial distribution, ``gamma(n + k) / (k! gamma(n)) (1 - p)**n p**k``.

    Support: ``k = 0, 1, ..``, the hits before the n-th miss. A draw is a Poisson number whose rate
    is a gamma number.

    Args:
        total_count (float or Tensor): n, not negative
        probs (float or Tensor): p, in ``[0, 1)``
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.NegativeBinomial(3.0, 0.5).mean
    tensor(3.)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: Any = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_with_count(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / T.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # a count of 0 is allowed, and its gamma is a point: not validated
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return T.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n = self.total_count
        shares = n * T.logsigmoid(-self.logits) + value * T.logsigmoid(self.logits)
        normalizer = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return shares - normalizer.masked_fill(n + value == 0.0, 0.0)
