"""Categorical: one of several."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo, int64
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.probs_or_logits import ProbsOrLogits, check_one_given
from antorcha.distributions.utils import lazy_property, logits_to_probs, probs_to_logits
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """One of K categories, ``0 .. K - 1``, each with its own probability.

    Args:
        probs (Tensor): weights along the last dim; they are divided by their sum
        logits (Tensor): logarithms of weights, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Categorical(torch.tensor([1., 3.])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "probs": constraints.simplex, "logits": constraints.real_vector,
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if given.dim() < 1:
            raise ValueRangeError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        Distribution.__init__(self, given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Any:
        return self._full(math.nan, self.probs)

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Any:
        return self._full(math.nan, self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = T.multinomial(rows, sample_shape.numel(), True).mT  # a sample a row
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, log_pmf = T.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = T.clamp(self.logits, min=finfo(self.logits.dtype).min)  # 0 log(0) is 0
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = T.arange(self._num_events, dtype=int64, device=self._param.device)
        return self._enumerated(values, expand)
