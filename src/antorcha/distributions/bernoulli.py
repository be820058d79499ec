"""Bernoulli: one toss of a coin."""

from __future__ import annotations

import math
from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions import constraints
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.distributions.utils import attribute_of, broadcast_all
from antorcha.ops.kinds.record import T

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability p, else 0: ``p**x (1 - p)**(1 - x)``.

    Args:
        probs (float or Tensor): the probability of 1
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0)).exp()
    tensor(0.2500)
    """

    support: Any = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = attribute_of("probs")

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return T.where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return T.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -T.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return T.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = T.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> Any:
        return (T.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return x.exp().log1p()
