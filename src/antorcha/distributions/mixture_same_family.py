"""MixtureSameFamily: a draw from one of several distributions of a kind."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.distributions import constraints
from antorcha.distributions.categorical import Categorical
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import attribute_of
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: ``p(x) = sum over k of weight_k p_k(x)``.

    Args:
        mixture_distribution (Categorical): which component a draw is from
        component_distribution (Distribution): the components, along its last batch dim
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions
    >>> which = d.Categorical(torch.tensor([0.25, 0.75]))
    >>> d.MixtureSameFamily(which, d.Normal(torch.tensor([0., 4.]), 1.0)).mean
    tensor(3.)
    """

    arg_constraints: Any = {}  # noqa: RUF012
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        mixture, components = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueRangeError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(components, Distribution):
            raise ValueRangeError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution, self._component_distribution = mixture, components
        shape = components.batch_shape[:-1]
        pairs = zip(reversed(mixture.batch_shape), reversed(shape), strict=False)
        if any(1 not in (a, b) and a != b for a, b in pairs):
            raise ValueRangeError(
                f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible "
                f"with `component_distribution.batch_shape`({shape})"
            )
        self._num_component = mixture.logits.shape[-1]
        if components.batch_shape[-1] != self._num_component:
            raise ValueRangeError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components.batch_shape[-1]})"
            )
        self._event_ndims = len(components.event_shape)
        super().__init__(shape, components.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = attribute_of("_mixture_distribution")
    component_distribution = attribute_of("_component_distribution")

    def _weighted(self, values: Any) -> Any:
        """The weighted sum over the components of what has a value for each event's element."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    def _pad(self, x: Any) -> Any:
        """With a dim for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        within = self._weighted(self._component_distribution.variance)
        away = self._component_distribution.mean - self._pad(self.mean)
        return within + self._weighted(away.pow(2.0))

    def cdf(self, x: Any) -> Any:
        below = self._component_distribution.cdf(self._pad(x))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:
        self._check(x)
        of_components = self._component_distribution.log_prob(self._pad(x))
        weights = T.log_softmax(self._mixture_distribution.logits, -1)
        return (of_components + weights).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = drawn.dim() - 1 - self._event_ndims
            which = which.reshape(which.shape + (1,) * (1 + self._event_ndims))
            which = which.expand(which.shape[: dim + 1] + self._event_shape)
            return drawn.gather(dim, which).squeeze(dim)

    def __repr__(self) -> str:
        mixture, components = self._mixture_distribution, self._component_distribution
        return f"MixtureSameFamily(\n  {mixture},\n  {components})"
