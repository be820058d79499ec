"""Geometric: how many misses come before the first hit."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.dtypes import finfo
from antorcha.distributions import constraints
from antorcha.distributions.probs_or_logits import ProbsOrLogits
from antorcha.distributions.utils import broadcast_all
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The geometric distribution, ``(1 - p)**k p`` for ``k = 0, 1, ..``.

    (``Tensor.geometric_`` counts the hit, too, and starts at 1.)

    Args:
        probs (float or Tensor): p, above 0
        logits (float or Tensor): its log odds, instead
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    support: Any = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueRangeError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n"
                f"{value.detach()[~(value > 0)]}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return T.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = T.empty(shape, dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_(finfo(u.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = T.where((probs == 1) & (value == 0), 0.0, probs)  # 0 log(0) is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        of_toss = T.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return of_toss / self.probs
