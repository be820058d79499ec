"""OneHotCategorical: one of several, as a vector with a 1 at its place."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.probs_or_logits import OfCategorical
from antorcha.distributions.utils import attribute_of
from antorcha.ops.kinds.record import T

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategorical):
    """A vector with a single 1, at place k with probability ``probs[k]``.

    Args:
        probs (Tensor): weights along the last dim; they are divided by their sum
        logits (Tensor): logarithms of weights, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.OneHotCategorical(torch.tensor([0., 1.])).sample()
    tensor([0., 1.])
    """

    support: Any = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_categorical(probs, logits, validate_args)

    mean = attribute_of("probs")

    @property
    def mode(self) -> Any:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _one_hot(self, indices: Any) -> Any:
        return T.one_hot(indices, self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self._event_shape[0]
        values = T.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *[1] * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with gradients: a draw moves as the probabilities do.

    Bengio, Léonard & Courville, "Estimating or propagating gradients through stochastic neurons for
    conditional computation" (2013).

    >>> torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0., 1.])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())
