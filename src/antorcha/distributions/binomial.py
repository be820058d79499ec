"""Binomial: how many of several tosses hit."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions import constraints
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import T

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """The binomial distribution, ``n! / (k! (n - k)!) p**k (1 - p)**(n - k)``, k from 0 to n.

    Args:
        total_count (int or Tensor): n. Default: 1
        probs (float or Tensor): p
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Binomial(4, 0.5).log_prob(torch.tensor(2.0)).exp()
    tensor(0.3750)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer, **ProbsOrLogits.arg_constraints,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_with_count(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return T.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n, logits = self.total_count, self.logits
        # log(1 + exp(logits)) without overflow; the clamps split the slope at 0 in two halves
        above = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        normalizer = n * above + n * (-logits.abs()).exp().log1p() - (n + 1).lgamma()
        return value * logits - (value + 1).lgamma() - (n - value + 1).lgamma() - normalizer

    def _one_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise MissingFeature(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Any:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        count = self._one_count("enumerate_support")
        values = T.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
