"""RelaxedOneHotCategorical: one of several, blurred so that draws are differentiable."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.probs_or_logits import OfCategorical
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import ExpTransform
from antorcha.distributions.utils import attribute_of, broadcast_all, clamp_probs
from antorcha.ops.kinds.record import T

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """The logarithm of a relaxed one-hot vector: ``log_softmax((logits + gumbel) / temperature)``.

    Maddison, Mnih & Teh, "The Concrete distribution" (2017); Jang, Gu & Poole, "Categorical
    reparametrization with Gumbel-Softmax" (2017).

    Args:
        temperature (Tensor): the lower, the closer to one-hot
        probs (Tensor): weights along the last dim
        logits (Tensor): logarithms of weights, instead
        validate_args (bool, optional): check the arguments?
    """

    support: Any = constraints.real_vector  # (vectors whose exponentials sum to 1, in truth)
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_categorical(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = T.rand(shape, dtype=self.logits.dtype, device=self.logits.device)
        gumbels = -(-clamp_probs(drawn).log()).log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        heat = self.temperature
        scale = T.full_like(heat, float(k)).lgamma() - heat.log() * -(k - 1)
        score = logits - value * heat
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A point of the simplex that is close to a corner at a low temperature (Gumbel-Softmax).

    The exponential of an :class:`ExpRelaxedCategorical` vector: a categorical distribution whose
    draws are differentiable.

    Args:
        temperature (Tensor): the lower, the closer to one-hot
        probs (Tensor): weights along the last dim
        logits (Tensor): logarithms of weights, instead
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(2.0), torch.tensor([1., 3.]))
    >>> d.event_shape
    torch.Size([2])
    """

    arg_constraints: Any = OfCategorical.arg_constraints
    support: Any = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = attribute_of("base_dist.temperature")
    logits = attribute_of("base_dist.logits")
    probs = attribute_of("base_dist.probs")
