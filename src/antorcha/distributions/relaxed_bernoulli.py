"""RelaxedBernoulli: a coin that may lie in between, so that draws are differentiable."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.distributions.transformed_distribution import TransformedDistribution
from antorcha.distributions.transforms import SigmoidTransform
from antorcha.distributions.utils import attribute_of, broadcast_all, clamp_probs
from antorcha.ops.kinds.record import T

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The logit of a relaxed Bernoulli number: a logistic number over a temperature.

    ``(log(p / (1 - p)) + log(u / (1 - u))) / temperature`` for uniform u. Support: the reals.
    Maddison, Mnih & Teh, "The Concrete distribution" (2017); Jang, Gu & Poole, "Categorical
    reparametrization with Gumbel-Softmax" (2017).

    Args:
        temperature (Tensor): the lower, the closer to a coin
        probs (float or Tensor): p
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?
    """

    support: Any = constraints.real

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(T.rand(shape, dtype=probs.dtype, device=probs.device))
        logistic = u.log() - (-u).log1p()
        return (logistic + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value * self.temperature
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A number between 0 and 1 that is close to 0 or 1 at a low temperature.

    The sigmoid of a :class:`LogitRelaxedBernoulli` number: a Bernoulli distribution whose draws are
    differentiable.

    Args:
        temperature (Tensor): the lower, the closer to a coin
        probs (float or Tensor): the coin's probability of 1
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(2.0), torch.tensor([0.1, 0.9]))
    >>> d.has_rsample
    True
    """

    arg_constraints: Any = ProbsOrLogits.arg_constraints
    support: Any = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature = attribute_of("base_dist.temperature")
    logits = attribute_of("base_dist.logits")
    probs = attribute_of("base_dist.probs")
