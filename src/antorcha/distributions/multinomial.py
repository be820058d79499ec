"""Multinomial: how often each of several comes up."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.binomial import Binomial
from antorcha.distributions.probs_or_logits import OfCategorical
from antorcha.distributions.utils import broadcast_all
from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import T

__all__ = ["Multinomial"]


class Multinomial(OfCategorical):
    """The multinomial distribution, ``n! / prod x! prod probs**x``: counts of n draws of K.

    Args:
        total_count (int): n. Default: 1
        probs (Tensor): weights along the last dim; they are divided by their sum
        logits (Tensor): logarithms of weights, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Multinomial(4, torch.tensor([1., 3.])).mean
    tensor([1., 3.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise MissingFeature("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._set_categorical(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        drawn = drawn.movedim(0, -1)
        shape = self._extended_shape(sample_shape)
        counts = T.zeros(shape, dtype=drawn.dtype, device=drawn.device)
        counts.scatter_add_(-1, drawn, T.ones_like(drawn))
        return counts.to(self.probs.dtype)

    def entropy(self) -> Any:
        n = self.total_count
        support = self._binomial.enumerate_support(expand=False)[1:]
        probs = self._binomial.log_prob(support).exp()
        expected = (probs * (support + 1).lgamma()).sum([0, -1])  # sum over parts of E[log x!]
        return n * self._categorical.entropy() - math.lgamma(n + 1) + expected

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = T.where((value == 0) & (logits == -math.inf), 0.0, logits)  # 0 log(0) is 0
        factorials = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return factorials + (logits * value).sum(-1)
