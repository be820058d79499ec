"""ExponentialFamily: distributions ``exp(<t(x), theta> - F(theta) + k(x))``."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import grad
from antorcha.distributions.distribution import _ABSTRACT, Distribution
from antorcha.runtime.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base class of exponential families.

    ``p(x; theta) = exp(<t(x), theta> - F(theta) + k(x))`` with natural parameters theta, sufficient
    statistic t, log normaliser F and carrier measure k. Entropies and divergences follow from the
    gradient of F (Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Any:
        """``F(theta) - <theta, grad F(theta)> - E[k(x)]``."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        slopes = grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(params, slopes, strict=True):
            result = result - (p * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result


_ABSTRACT.add(ExponentialFamily)
