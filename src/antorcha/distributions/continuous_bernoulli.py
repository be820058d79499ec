"""ContinuousBernoulli: a Bernoulli distribution's formula between 0 and 1."""

from __future__ import annotations

import math
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """``C(p) p**x (1 - p)**(1 - x)`` for x in ``[0, 1]``, and C(p) what makes it a density.

    The formulas have a pole at p = 1/2 that cancels; between `lims` a Taylor series stands in.
    Loaiza-Ganem & Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational
    autoencoders" (2019).

    Args:
        probs (float or Tensor): p, in ``(0, 1)``; it is not the mean
        logits (float or Tensor): its log odds, instead
        lims (pair of float): where the Taylor series is used. Default: (0.499, 0.501)
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    support: Any = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set(probs, logits)
        if probs is not None:
            inside = constraints.unit_interval.check(self.probs)
            if validate_args is not None and not inside.all():
                raise ValueRangeError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        """The parameter p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self) -> Any:
        """Is p away from 1/2?"""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _safe_probs(self) -> Any:
        """p, or a number that is away from 1/2 where p is not."""
        return T.where(self._stable(), self.probs, self._lims[0])

    def _log_norm(self) -> Any:
        """log C(p)."""
        p = self._safe_probs()
        low = T.where(p <= 0.5, p, 0.0)
        high = T.where(p >= 0.5, p, 1.0)
        distance = T.where(p <= 0.5, (-2.0 * low).log1p(), (2.0 * high - 1.0).log())
        norm = ((-p).log1p() - p.log()).abs().log() - distance
        x = (self.probs - 0.5).pow(2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return T.where(self._stable(), norm, taylor)

    @property
    def mean(self) -> Any:
        p = self._safe_probs()
        mean = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return T.where(self._stable(), mean, taylor)

    @property
    def variance(self) -> Any:
        p = self._safe_probs()
        odds = (-p).log1p() - p.log()
        variance = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / odds.pow(2)
        x = (self.probs - 0.5).pow(2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return T.where(self._stable(), variance, taylor)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(T.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        of_toss = T.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -of_toss + self._log_norm()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        p = self._safe_probs()
        power = p.pow(value) * (1.0 - p).pow(1.0 - value)
        inside = T.where(self._stable(), (power + p - 1.0) / (2.0 * p - 1.0), value)
        return T.where(value <= 0.0, 0.0, T.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Any) -> Any:
        p = self._safe_probs()
        miss = (-p).log1p()
        found = ((-p + value * (2.0 * p - 1.0)).log1p() - miss) / (p.log() - miss)
        return T.where(self._stable(), found, value)

    def entropy(self) -> Any:
        miss = (-self.probs).log1p()
        return self.mean * (miss - self.probs.log()) - self._log_norm() - miss

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        stable = (x <= low) | (x > high)
        safe = T.where(stable, x, low)
        taylor = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return T.where(stable, safe.expm1().abs().log() - safe.abs().log(), taylor)
