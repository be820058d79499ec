"""Dirichlet: points of a simplex."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, ``gamma(sum a) / prod gamma(a) prod x**(a - 1)``.

    Support: vectors of positive numbers that sum to 1. Draws are differentiable.

    Args:
        concentration (Tensor): the a of each part, along the last dim, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Dirichlet(torch.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints: Any = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support: Any = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueRangeError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # where every part has its density's pole, PyTorch takes the first corner
        corner = T.one_hot(mode.argmax(-1), above.shape[-1]).to(mode.dtype)
        return T.where((self.concentration < 1).all(-1, True), corner, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        spread = self.concentration * (total - self.concentration)
        return spread / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return T._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        a = self.concentration
        return T.xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Any:
        a = self.concentration
        k, total = a.shape[-1], a.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((a - 1.0) * a.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
